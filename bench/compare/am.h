/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * am - the rounds of active messages: each names the function that its receiver shall run
 *
 * A peer that includes this file defines am_request and am_poll.  It calls am_open, and
 * for each message that has come the function of am_functions.
 */
#ifndef BENCH_COMPARE_AM_H
#define BENCH_COMPARE_AM_H

#include "peer.h"

enum { AM_ECHO, AM_DONE, AM_FUNCTIONS };

static struct {
	uint64_t bytes, served, done; /* length; requests and replies that have come */
} am;

/* Send a message; bytes stay if they are those of a request. */
static void am_request(unsigned function, const void *bytes);
/* Run the functions of messages that are there. */
static void am_poll(void);

static void am_on_echo(const char *bytes)
{
	peer_check(bytes, am.bytes, am.served++);
	am_request(AM_DONE, bytes);
}

static void am_on_done(const char *bytes)
{
	peer_check(bytes, am.bytes, am.done++);
}

static void (*const am_functions[AM_FUNCTIONS])(const char *) = {
	[AM_ECHO] = am_on_echo, [AM_DONE] = am_on_done};

static void am_open(uint64_t bytes)
{
	am.bytes = bytes;
	am.served = am.done = 0;
}

static void am_round(uint64_t bytes, uint64_t round)
{
	static char message[PEER_BYTES];
	if (peer_rank) {
		while (am.served == round)
			am_poll();
		return;
	}
	peer_stamp(message, bytes, round);
	am_request(AM_ECHO, message);
	while (am.done == round)
		am_poll();
}

PEER_ROUNDS(am_rounds, am_round)

#endif
