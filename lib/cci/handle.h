/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handle - OS handles of endpoints, the host's half
 *
 * Each call on an endpoint that makes progress, and does not wait, begins with
 * p3_cci_handle_enter() and ends with p3_cci_handle_leave(), or for cci_get_event with
 * p3_cci_handle_looked().  Between them this thread's passes signal nothing; at the end
 * the thread looks at the queue itself, so that a program which only polls makes no
 * system call.  Endpoints without a handle pay one test.
 *
 * Any thread may call these functions.  The state is in struct p3_cci_handle (nic/cci.h).
 *
 * A program that looks in vain again and again polls: P3_CCI_POLLS times a look in vain
 * followed another one within P3_CCI_POLL_NS, and no longer pause came since.  While it
 * polls, no thread signals (IDLE); if it does sleep, the NIC thread's next tick wakes it.
 */
#ifndef P3_LIB_CCI_HANDLE_H
#define P3_LIB_CCI_HANDLE_H

#include "nic/cci.h"

#define P3_CCI_POLLS   16u
#define P3_CCI_POLL_NS 20000u

/* Begin to use the handle of a new endpoint, before the program has it. */
void p3_cci_handle_begin(cci_endpoint_t *endpoint);

void p3_cci_handle_leave_slowly(cci_endpoint_t *endpoint, struct p3_cci_handle *h);
void p3_cci_handle_looked_slowly(
	cci_endpoint_t *endpoint, struct p3_cci_handle *h, bool found);

static inline bool p3_cci_has_handle(cci_endpoint_t *endpoint)
{
	return p3_unlikely(p3_cci_handle_of(endpoint)->fd >= 0);
}

static inline struct p3_cci_handle *p3_cci_handle_enter(cci_endpoint_t *endpoint)
{
	struct p3_cci_handle *h = p3_cci_handle_of(endpoint);
	if (p3_unlikely(h->fd >= 0))
		p3_add32(&h->inside, 1);
	return h;
}

static inline void p3_cci_handle_leave(cci_endpoint_t *endpoint, struct p3_cci_handle *h)
{
	if (p3_unlikely(h->fd >= 0))
		p3_cci_handle_leave_slowly(endpoint, h);
}

/* End a cci_get_event, which has found an event or not. */
static inline void p3_cci_handle_looked(
	cci_endpoint_t *endpoint, struct p3_cci_handle *h, bool found)
{
	if (p3_unlikely(h->fd >= 0))
		p3_cci_handle_looked_slowly(endpoint, h, found);
}

#endif
