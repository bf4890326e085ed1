/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * input - the path from a terminal to the standard input of rank 0
 *
 * A node is in a process group of its own; one that read the terminal itself would be
 * stopped by the kernel.  So yod's outer process, which is in the foreground, reads the
 * terminal and writes a pipe.  Rank 0 inherits any other standard input as it is.  One
 * thread (the guard's) calls these functions; the state is struct p3_input.
 */
#ifndef P3_LAUNCHER_INPUT_H
#define P3_LAUNCHER_INPUT_H

#include <poll.h>
#include <stdint.h>

struct p3_input {
	int from;   /* the terminal; -1: its input has ended */
	int to;     /* the pipe to rank 0 */
	uint32_t n; /* bytes in buf[at..] */
	uint32_t at;
	int64_t not_before; /* yod is in the background: try to read again then */
	char buf[4096];
};

/* Set *stdin_out to rank 0's descriptor 0: STDIN_FILENO, or a pipe. */
int p3_input_open(struct p3_input *in, int *stdin_out);

/* Close this side; rank 0 sees the end of file. */
void p3_input_close(struct p3_input *in);

/* Return the descriptor and events to poll for; the descriptor is -1 when there are
 * none.  Shorten *ms to the longest time to wait. */
struct pollfd p3_input_wants(const struct p3_input *in, int *ms);

void p3_input_step(struct p3_input *in, short revents);

#endif
