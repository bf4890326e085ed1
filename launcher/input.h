/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * input - hands what is typed at a terminal to rank 0
 *
 * A node is in a process group of its own; one that read the terminal itself would be
 * stopped for it.  So yod's outer process, which is in the foreground, reads it and
 * writes a pipe.  Anything that is no terminal rank 0 inherits as it is.
 */
#ifndef P3_LAUNCHER_INPUT_H
#define P3_LAUNCHER_INPUT_H

#include <poll.h>
#include <stdint.h>

struct p3_input {
	int from; /* -1: nothing (more) to hand on */
	int to;
	uint32_t n; /* bytes in buf[at..] */
	uint32_t at;
	int64_t not_before; /* in the background: look again then */
	char buf[4096];
};

/* *stdin_out: what rank 0 is to have as descriptor 0 (STDIN_FILENO, or a pipe). */
int p3_input_open(struct p3_input *in, int *stdin_out);

/* Closes this side; rank 0 sees the end of file. */
void p3_input_close(struct p3_input *in);

/* What to poll for; the descriptor is -1 when there is nothing.  Wait at most *ms. */
struct pollfd p3_input_wants(const struct p3_input *in, int *ms);

void p3_input_step(struct p3_input *in, short revents);

#endif
