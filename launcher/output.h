/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * output - what the nodes print, each line tagged with its rank
 *
 *	node's pipe --> [ stream, 64 KiB ] --> [ sink, one buffer ] --> stdout, stderr
 *
 * A line goes out in one write, whole, with "[rank] " before it.  A partial line goes
 * out after 200 ms without more, and its rest follows without a second tag; only if
 * another node has printed meanwhile, the rest begins a new line with a tag.  A line
 * that does not fit in the stream goes out piece by piece, and the others wait.  A full
 * stream is not read, so a node that prints faster than the reader reads is held up:
 * nothing is dropped, nothing grows.  Bytes are not looked at but for newlines.
 *
 * A sink writes by a thread of its own: a reader that stops (a pager) stops the
 * nodes' output and nothing else in yod.  If it is gone, the nodes' pipes are closed,
 * so they see what they would see without yod.
 *
 * One thread calls all functions.  All descriptors and deadlines are behind one epoll
 * descriptor: poll p3_output_fd(), then call p3_output_step().
 */
#ifndef P3_LAUNCHER_OUTPUT_H
#define P3_LAUNCHER_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>

struct p3_output;

/* For `ranks` nodes; to[] are the descriptors to write.  NULL with errno. */
struct p3_output *p3_output_create(uint32_t ranks, const int to[2]);

/* Read end of the pipe of a node's stdout (which 0) or stderr (1); output's from here. */
int p3_output_add(struct p3_output *out, uint32_t rank, int which, int fd);

/* Starts writing; from here on the process has threads. */
int p3_output_start(struct p3_output *out);

int p3_output_fd(const struct p3_output *out);
void p3_output_step(struct p3_output *out);

/* The node has ended: others that hold its pipes may print for 2 s yet. */
void p3_output_ended(struct p3_output *out, uint32_t rank);

/* All pipes are at their end and all is written. */
bool p3_output_is_done(const struct p3_output *out);

/* Something could not be written although there is a reader.  That has been said. */
bool p3_output_is_lost(const struct p3_output *out);

/* Only when it is done, or never started. */
void p3_output_destroy(struct p3_output *out);

#endif
