/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream - streams of checked messages from rank 0 to rank 1
 *
 * The functions keep the number of sends whose events are to come, so they serve one
 * connection of a process at a time.
 */
#ifndef P3_TESTS_CCI_STREAM_H
#define P3_TESTS_CCI_STREAM_H

#include "frame.h"

/* Send; while there is no buffer, take SEND events. */
void send_patiently(struct side s, const void *bytes, uint32_t length,
	const void *context, int flags);
/* Take SEND events, which must be successes, until at most this many are owed. */
void take_sends(struct side s, unsigned owed);
/* Leave the events that are owed to the caller. */
void forget_sends(void);
/* Give an unreliable receiver time: wait for it every now and then (words 30 and 31). */
void slow_down(unsigned sent);
/*
 * Send n messages of mixed lengths; the receiver checks each.  They arrive in order on
 * RO, and once each.  window > 0: that many may be on their way at most, which the
 * receiver tells by word 31.
 */
void stream(cci_conn_attribute_t attribute, unsigned long n, unsigned window);

#endif
