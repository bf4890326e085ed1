/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * am_layer - active messages: requests that run a handler where they arrive, and replies
 *
 * There are two queues, polled together: one of arriving requests, and one of returns.
 *
 *	short	no bytes but the two arguments
 *	medium	up to AM_MEDIUM bytes, into one of the request buffers, which fill one
 *		message behind the other (MAX_SIZE), unlink themselves and are put back
 *	long	into the segment of the target, at an offset that the sender chooses
 *
 * A request is sent from a chunk of the sender's chunk memory, whose number travels
 * along: the reply's bytes are put into the same chunk.  Each request is answered, by
 * its handler or by the layer, which gives the chunk back, and with it credits: a
 * sender has AM_CREDITS for each target, and a target has buffers for no more than
 * that.
 *
 * Handlers run in am_poll: on the caller's stack, or on that of a signal handler.
 */
#ifndef COMPAT_AM_LAYER_H
#define COMPAT_AM_LAYER_H

#include "job.h"

enum { AM_MEDIUM = 4096, AM_CREDITS = 8, AM_HANDLERS = 16 };

struct am_message {
	int from, handler;
	uint64_t argument;
	char *bytes; /* valid until the handler returns */
	size_t length;
	unsigned chunk; /* chunk of the request */
	bool is_request, answered;
};

typedef void (*am_handler)(struct am_message *);

/* Begin; the segment, which long messages write, is the caller's. */
void am_begin(void *segment, size_t length, const am_handler handlers[AM_HANDLERS]);

/* Send.  Each call waits for a credit, and polls meanwhile.  The bytes may be reused at
 * once. */
void am_request(int to, int handler, uint64_t argument, const void *bytes, size_t length);
void am_request_long(int to, int handler, uint64_t argument, const void *bytes,
	size_t length, size_t offset);

/* Reply; once in a handler of a request. */
void am_reply(struct am_message *, int handler, uint64_t argument, const void *bytes,
	size_t length);

/* Poll.  Return false if a signal handler interrupted the layer and must call it again
 * later. */
bool am_poll(void);

/* Wait until all requests of this process are answered. */
void am_quiet(void);

struct am_count {
	unsigned long handled, rotations, refused, from_signals, inside;
};
struct am_count am_counts(void);

/* Bracket the am_poll of a signal handler. */
void am_signal_begins(void);
void am_signal_ends(void);

#endif
