/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * output - the nodes' output, each line tagged with its rank, and yod's own lines
 *
 *	node's pipe --> [ stream, 64 KiB ] --> [ sink, one buffer ] --> stdout, stderr
 *	p3_say() --> [ own lines, 1 MiB ] --> [ the sink of stderr ]
 *
 * A line goes out in one write, whole, with "[rank] " before it.  A partial line goes
 * out when its node has written nothing more for 200 ms, and its rest follows without a
 * second tag; only if another node has printed meanwhile, the rest begins a new line with
 * a tag.  A line
 * that does not fit in the stream goes out piece by piece, and the others wait.  A full
 * stream is not read, so a node that prints faster than the reader reads is held up:
 * nothing is dropped, nothing grows.  Bytes other than newlines are passed through
 * unseen.
 *
 * A sink writes by a thread of its own: a reader that stops (a pager) stops the nodes'
 * output and nothing else in yod.  Own lines that find no room then are counted, and a
 * line tells the number later.  If the reader is gone, the nodes' pipes are closed,
 * so that they get the same error as without yod.
 *
 * One thread calls all functions.  All descriptors and deadlines are behind one epoll
 * descriptor: poll p3_output_fd(), then call p3_output_step().  The state is struct
 * p3_output.
 */
#ifndef P3_LAUNCHER_OUTPUT_H
#define P3_LAUNCHER_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define P3_OUTPUT_IDLE_MS 200

struct p3_output;

/* Make the output of `ranks` nodes to the descriptors to[], or with 0 that of yod's own
 * lines alone, which wait for p3_output_start().  Return NULL with errno. */
struct p3_output *p3_output_create(uint32_t ranks, const int to[2]);

/* Leave the tags out, and the newlines in front of them. */
void p3_output_set_plain(struct p3_output *out);

/* The streams come from other hosts, so a pause of their bytes is not one of the nodes:
 * p3_output_idle() tells that a node has written nothing for P3_OUTPUT_IDLE_MS, behind
 * the bytes that are in its pipe by now, or that more come. */
void p3_output_set_remote(struct p3_output *out);
void p3_output_idle(struct p3_output *out, uint32_t rank, int which, bool idle);

/* Take over the read end of the pipe of a node's stdout (which 0) or stderr (1). */
int p3_output_add(struct p3_output *out, uint32_t rank, int which, int fd);

/* Start writing; from here on the process has threads. */
int p3_output_start(struct p3_output *out);

int p3_output_fd(const struct p3_output *out);
void p3_output_step(struct p3_output *out);

/* Note that the node has ended: other holders of its pipes may print for 2 more
 * seconds. */
void p3_output_ended(struct p3_output *out, uint32_t rank);

/* Return true if all pipes are at their end, and all output and own lines are written. */
bool p3_output_is_done(const struct p3_output *out);

/* Return true if output could not be written although there is a reader; a line said
 * so. */
bool p3_output_is_lost(const struct p3_output *out);

/* Wait for own lines that are not written yet, while their reader takes some every 10 s
 * (in a hurry every 0.5 s), and free the output, unless a write is still under way.  From
 * here on p3_say() writes by itself, as before p3_output_create(). */
void p3_output_close(struct p3_output *out, bool hurry);

#endif
