/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The OS handle at the end of a call.
 *
 * Memory ordering:
 *	CCIFD.1	Dekker: this thread lowers inside and stores ARMED, fences, looks at the
 *		queue; the firmware posts, fences, looks at inside and at the state.
 *		Without it an event is posted and the program sleeps in poll.
 *	CCIFD.2	state: SIGNALLED is released after the eventfd was written -> acquired by
 *		the thread that reads it; ARMED after it was read -> by the next writer
 *	CCIFD.3	Dekker: this thread stores IDLE, fences, looks if the NIC thread sleeps;
 *		the NIC thread stores that it sleeps, fences, and ends the state IDLE.
 *		Without it the handle stays IDLE, and no tick wakes the program.
 */
#include "lib/cci/handle.h"
#include "lib/cci/up.h"
#include "shm/fault.h"
#include "shm/fd.h"
#include "shm/park.h"

#include <sched.h>

#define YIELDS 64u

static bool polls(struct p3_cci_handle *h)
{
	return p3_get(&h->polls) >= P3_CCI_POLLS;
}

/* Judge by the times of its looks if the program polls. */
static void note_look(struct p3_cci_handle *h, bool found)
{
	if (found) {
		p3_set(&h->looked_ns, 0);
		return;
	}
	uint64_t now = p3_now_ns(), last = p3_get(&h->looked_ns);
	uint32_t pairs = p3_get(&h->polls);
	if (last && now - last > P3_CCI_POLL_NS)
		p3_set(&h->polls, 0);
	else if (last && pairs < P3_CCI_POLLS)
		p3_set(&h->polls, pairs + 1);
	p3_set(&h->looked_ns, now);
}

/* Make the handle unreadable, and the state next, unless another thread does that. */
static void drain(struct p3_cci_handle *h, enum p3_cci_handle_state next)
{
	uint32_t was = P3_CCI_SIGNALLED;
	if (!p3_cas32(&h->state, &was, P3_CCI_DRAINING)) /* CCIFD.2 */
		return;
	FAULT_POINT("cci.draining");
	p3_fd_drain(h->fd);
	p3_release(&h->state, next); /* CCIFD.2 */
}

/* A write of the eventfd may wake this thread in place of the thread that has written:
 * let that thread finish, or the handle stays readable for one more look. */
static void let_signaller_finish(struct p3_cci_handle *h)
{
	for (unsigned i = 0; i < YIELDS && p3_get(&h->state) == P3_CCI_SIGNALLING; i++)
		sched_yield();
}

/* The queue was seen empty: set the state that the next event shall find. */
static void set_empty(struct p3_cci_handle *h, enum p3_cci_handle_state next)
{
	let_signaller_finish(h);
	uint32_t other = next == P3_CCI_ARMED ? P3_CCI_IDLE : P3_CCI_ARMED;
	if (p3_get(&h->state) == P3_CCI_SIGNALLED)
		drain(h, next);
	else
		(void)p3_cas32(&h->state, &other, next);
}

/* Leave a call.  Events that wait make the handle readable, unless the program polls. */
static void leave_call(cci_endpoint_t *endpoint, struct p3_cci_handle *h)
{
	bool poller = polls(h);
	if (!p3_cci_any_event(endpoint))
		set_empty(h, poller ? P3_CCI_IDLE : P3_CCI_ARMED);
	p3_add32(&h->inside, (uint32_t)-1);
	FAULT_POINT("cci.armed");
	p3_fence(); /* CCIFD.1, CCIFD.3 */
	if (poller && p3_cci_nic_sleeps(endpoint)) {
		poller = false;
		set_empty(h, P3_CCI_ARMED);
		p3_fence(); /* CCIFD.1 */
	}
	if (!poller && p3_cci_any_event(endpoint))
		p3_cci_handle_signal(h);
}

void p3_cci_handle_begin(cci_endpoint_t *endpoint)
{
	struct p3_cci_handle *h = p3_cci_handle_enter(endpoint);
	p3_cci_handle_leave(endpoint, h);
}

void p3_cci_handle_leave_slowly(cci_endpoint_t *endpoint, struct p3_cci_handle *h)
{
	leave_call(endpoint, h);
}

void p3_cci_handle_looked_slowly(
	cci_endpoint_t *endpoint, struct p3_cci_handle *h, bool found)
{
	note_look(h, found);
	leave_call(endpoint, h);
}

int cci_arm_os_handle(cci_endpoint_t *endpoint, int flags)
{
	if (!p3_cci_is_up())
		return CCI_ERROR;
	if (!endpoint || flags || p3_cci_handle_of(endpoint)->fd < 0)
		return CCI_EINVAL;
	p3_cci_handle_begin(endpoint);
	return CCI_SUCCESS;
}
