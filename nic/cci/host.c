/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of host threads: under the lease, or through the mailbox; waits; events. */
#include "nic/cci/internal.h"
#include "nic/host/call.h"
#include "nic/run/evfd.h"
#include "nic/run/lease.h"

#include <sched.h>

int p3_cci_command(struct p3_nic *n, struct p3_cmd *c)
{
	c->cci.run(n, c->cci.arg);
	return PTL_OK;
}

bool p3_cci_call(struct p3_nic *n, void (*run)(struct p3_nic *n, void *arg), void *arg)
{
	struct p3_cmd c;
	p3_cmd_begin(&c, P3_OP_CCI, 0);
	c.cci.run = run;
	c.cci.arg = arg;
	return p3_nic_do(n, &c) == PTL_OK;
}

/* ---- waits ---- */

static bool cci_tx_is_done(void *arg)
{
	struct p3_cci_tx *tx = arg;
	return p3_acquire(&tx->done) != 0; /* CCIQ.2 */
}

static void cci_look_for_readers(struct p3_nic *n, void *arg)
{
	bool *is_read = arg;
	*is_read = p3_xfer_is_read(n);
}

void p3_cci_wait_for_readers(struct p3_nic *n)
{
	uint64_t since = p3_get(&n->cci.withdrawn_ns);
	bool is_read = true;
	if (p3_likely(!since) || p3_now_ns() - since > P3_CCI_READERS_NS)
		return;
	p3_looks_fence(n, p3_fence_heavy); /* XFER.7 */
	FAULT_POINT("cci.withdrawn");
	while (p3_cci_call(n, cci_look_for_readers, &is_read) && is_read &&
		p3_now_ns() - since <= P3_CCI_READERS_NS)
		sched_yield();
}

int p3_cci_wait_for(struct p3_nic *n, struct p3_cci_tx *tx)
{
	const uint64_t op = P3_OP_CCI;
	const struct p3_wants wants = {P3_WAIT_COMMAND, 1, &op};
	p3_call_begin();
	bool done = p3_wait_until(n, UINT64_MAX, &wants, cci_tx_is_done, tx);
	p3_call_end(n);
	if (!done)
		return CCI_ERROR; /* the NIC closes */
	int status = (int)p3_get(&tx->done) - 1;
	if (p3_unlikely(tx->item.what == P3_CCI_WITHDRAWN))
		p3_cci_wait_for_readers(n);
	p3_cci_queue_give_back(&tx->item.ep->queue, &tx->item);
	return status;
}

/*
 * ---- the OS handle, at the begin and the end of a call ----
 *
 * While a thread is inside, the state is IDLE: the passes of that thread make nothing
 * readable, and it looks at the queue when it leaves.  So a program that only polls makes
 * no system call.
 *
 * A program that looks in vain again and again polls: CCI_POLLS times a look in vain
 * followed another one within CCI_POLL_NS, and no longer pause came since.  While it
 * polls, the state stays IDLE; if it does sleep, the NIC thread's next tick wakes it.
 *
 * Memory ordering:
 *	EVFD.1	nic/run/evfd.h
 *	EVFD.3	Dekker: this thread stores IDLE, fences, looks if the NIC thread sleeps;
 *		the NIC thread stores that it sleeps, fences, and ends the state IDLE.
 *		Without it the handle stays IDLE, and no tick wakes the program.
 */
#define CCI_POLLS   16u
#define CCI_POLL_NS 20000u

void p3_cci_handle_enter_slowly(cci_endpoint_t *endpoint)
{
	struct p3_cci_endpoint *ep = p3_cci_endpoint_own(endpoint);
	p3_evfd_turn(ep->nic, ep->handle.evfd, P3_EVFD_IDLE);
}

/* Arm the handle, or make it readable if events wait. */
static void cci_handle_arm(struct p3_cci_endpoint *ep)
{
	struct p3_evfd *e = ep->handle.evfd;
	if (p3_cci_queue_any(&ep->queue))
		p3_evfd_turn(ep->nic, e, P3_EVFD_ARMED);
	else
		(void)p3_evfd_settle(ep->nic, e, (uintptr_t)ep, P3_EVFD_ARMED);
	FAULT_POINT("cci.armed");
	p3_fence(); /* EVFD.1 */
	if (p3_cci_queue_any(&ep->queue))
		p3_evfd_signal(ep->nic, e);
}

void p3_cci_handle_leave_slowly(cci_endpoint_t *endpoint)
{
	struct p3_cci_endpoint *ep = p3_cci_endpoint_own(endpoint);
	struct p3_evfd *e = ep->handle.evfd;
	bool poller = p3_get(&ep->handle.polls) >= CCI_POLLS;
	if (poller) {
		if (!p3_cci_queue_any(&ep->queue))
			(void)p3_evfd_settle(ep->nic, e, (uintptr_t)ep, P3_EVFD_IDLE);
		p3_fence(); /* EVFD.3 */
		poller = !p3_get(&ep->nic->nic_asleep);
	}
	if (!poller)
		cci_handle_arm(ep);
}

void p3_cci_handle_looked_slowly(cci_endpoint_t *endpoint, bool found)
{
	struct p3_cci_handle *h = &p3_cci_endpoint_own(endpoint)->handle;
	if (found) {
		p3_set(&h->looked_ns, 0);
	} else { /* judge by the times of its looks if the program polls */
		uint64_t now = p3_now_ns(), last = p3_get(&h->looked_ns);
		uint32_t pairs = p3_get(&h->polls);
		if (last && now - last > CCI_POLL_NS)
			p3_set(&h->polls, 0);
		else if (last && pairs < CCI_POLLS)
			p3_set(&h->polls, pairs + 1);
		p3_set(&h->looked_ns, now);
	}
	p3_cci_handle_leave_slowly(endpoint);
}

void p3_cci_handle_begin(cci_endpoint_t *endpoint)
{
	p3_cci_handle_enter_slowly(endpoint);
	p3_cci_handle_leave_slowly(endpoint);
}

/* ---- taking ---- */

static struct p3_cci_item *cci_queue_take_shared(struct p3_cci_queue *q)
{
	uint64_t head = p3_acquire(&q->head);
	for (;;) {
		uint64_t word =
			p3_acquire(p3_cci_queue_place(q->ring, head)); /* CCIQ.1 */
		struct p3_cci_item *item = p3_cci_queue_item_in(head, word);
		if (item) {
			if (p3_cas64(&q->head, &head, head + 1))
				return item;
			continue; /* head is the present one now */
		}
		uint64_t now = p3_acquire(&q->head);
		if (now == head)
			return NULL;
		head = now;
	}
}

struct p3_cci_item *p3_cci_queue_take_rarely(struct p3_cci_endpoint *ep)
{
	struct p3_cci_queue *q = &ep->queue;
	bool owns = p3_owner_claim(&q->owner, p3_self_number());
	if (!p3_cci_queue_any(q) || (owns && p3_get(&q->owner.inside)))
		return NULL;
	if (owns && !p3_acquire(&q->owner.shared))
		return p3_cci_queue_take(ep);
	p3_call_begin(); /* a handler must not wait for the owner, too */
	p3_owner_revoke(&q->owner);
	p3_call_end(ep->nic);
	return cci_queue_take_shared(q);
}

/* Return true if the program has closed the connection whose message this is: the
 * message is discarded. */
static bool cci_event_is_void(const struct p3_cci_item *item)
{
	return item->what == P3_CCI_RX && p3_unlikely(p3_get(&item->conn->closed));
}

/* Return the next event that is not void, and wait for the readers of its memory. */
static P3_RARE struct p3_cci_item *cci_event_take_rarely(struct p3_cci_item *item)
{
	struct p3_cci_endpoint *ep = item->ep;
	while (item && cci_event_is_void(item)) {
		p3_cci_queue_give_back(&ep->queue, item);
		item = p3_cci_queue_take(ep);
	}
	if (item && item->what == P3_CCI_WITHDRAWN)
		p3_cci_wait_for_readers(ep->nic);
	return item;
}

static P3_HOT struct p3_cci_item *cci_event_take(struct p3_cci_endpoint *ep)
{
	struct p3_cci_item *item = p3_cci_queue_take(ep);
	/* An event that is not handed out at once is void, or it gives back memory that a
	 * peer may still be reading. */
	if (p3_unlikely(item && (cci_event_is_void(item) ||
					p3_unlikely(item->what == P3_CCI_WITHDRAWN))))
		return cci_event_take_rarely(item);
	return item;
}

/* Return true if the program sleeps on the OS handle when it finds no event. */
static bool cci_poll_sleeps(const struct p3_cci_endpoint *ep)
{
	return ep->handle.evfd && p3_get(&ep->handle.polls) < CCI_POLLS;
}

/* Count drained passes as those of a thread that sleeps next, so that the NIC thread does
 * not take it for one that polls. */
static void cci_poll_count_brief(
	struct p3_nic *n, const struct p3_cci_endpoint *ep, uint64_t looks)
{
	if (p3_unlikely(cci_poll_sleeps(ep)))
		p3_count(&n->brief_looks, looks);
}

/* With the lease: run passes until the queue has an event, or nothing is left. */
static void cci_poll_wholly(struct p3_nic *n, const struct p3_cci_endpoint *ep)
{
	for (uint32_t turn = 0; turn < P3_WHOLE_TURNS; turn += p3_pass_share(n))
		if (!p3_pass_run(n) || p3_cci_queue_any(&ep->queue))
			break;
}

/* With the lease, after a peek that has found a message: run a brief pass, and whole
 * passes only if it brings no event.  Give the lease up. */
static __attribute__((noinline)) void cci_poll_briefly(
	struct p3_nic *n, const struct p3_cci_endpoint *ep)
{
	p3_lease_begin_to_pass(n);
	p3_pass_poll_briefly(n);
	if (p3_likely(p3_cci_queue_any(&ep->queue))) {
		p3_pass_count(n);
	} else {
		(void)p3_pass_end(n);
		cci_poll_wholly(n, ep);
	}
	p3_lease_leave_here(n);
}

/* With the lease: run passes, and give the lease up. */
static void cci_poll(struct p3_nic *n, const struct p3_cci_endpoint *ep)
{
	if (n->brief && p3_pass_is_brief(n) && !cci_poll_sleeps(ep)) {
		cci_poll_briefly(n, ep);
		return;
	}
	uint64_t drained = p3_get(&n->drained);
	p3_lease_begin(n, P3_LEASE_HOST);
	cci_poll_wholly(n, ep);
	cci_poll_count_brief(n, ep, p3_get(&n->drained) - drained);
	p3_lease_leave(n);
}

static void cci_drain_now(struct p3_nic *n, void *arg)
{
	p3_cci_desc_drain(n, arg);
}

/* Go on after a look that has found no event. */
static __attribute__((noinline)) int cci_poll_look_again(
	struct p3_cci_endpoint *ep, cci_event_t **event_out)
{
	struct p3_nic *n = ep->nic;
	struct p3_cci_item *item = NULL;
	struct p3_mailbox *mailbox;
	p3_call_begin();
	enum p3_peeked peeked = p3_peek(n, &mailbox);
	if (p3_likely(peeked == P3_PEEK_NOTHING)) {
		cci_poll_count_brief(n, ep, 1);
		p3_call_end(n);
	} else {
		if (p3_likely(peeked == P3_PEEK_NEWS))
			cci_poll(n, ep);
		else if (peeked == P3_PEEK_LEFT) { /* a parked thread, or a command */
			cci_poll_count_brief(n, ep, 1);
			p3_lease_left(
				n, &n->never_asleep, &n->never_cold, NULL, 0, mailbox);
		} else if (!cci_poll_sleeps(ep)) /* another thread runs the firmware */
			p3_call_look_in_vain(n);
		p3_call_end(n);
		item = cci_event_take(ep);
	}
	if (p3_likely(item != NULL)) {
		FAULT_POINT("cci.taken");
		*event_out = &item->event;
		return CCI_SUCCESS;
	}
	/* Programs poll in pure loops.  Where nodes share CPUs, the nodes that will
	 * answer wait for this CPU. */
	if (p3_unlikely(n->crowded) && n->idle.yield_ns)
		sched_yield();
	if (p3_likely(p3_get(&ep->rx_left)))
		return CCI_EAGAIN;
	(void)p3_cci_call(n, cci_drain_now, ep);
	return p3_get(&ep->rx_left) ? CCI_EAGAIN : CCI_ENOBUFS;
}

int p3_cci_get_event(cci_endpoint_t *endpoint, cci_event_t **event_out)
{
	struct p3_cci_endpoint *ep = p3_cci_endpoint_own(endpoint);
	*event_out = NULL;
	if (p3_unlikely(p3_self.inside != 0))
		return CCI_EAGAIN;
	struct p3_cci_item *item = cci_event_take(ep);
	if (!item)
		return cci_poll_look_again(ep, event_out);
	FAULT_POINT("cci.taken");
	*event_out = &item->event;
	return CCI_SUCCESS;
}

/* ---- returning ---- */

int p3_cci_return_event(cci_event_t *event)
{
	struct p3_cci_item *item = (struct p3_cci_item *)(uintptr_t)event;
	struct p3_cci_endpoint *ep = item->ep;
	if (p3_unlikely(item->what == P3_CCI_REQUEST &&
			((const struct p3_cci_request *)item)->state == P3_CCI_REQ_OPEN))
		return CCI_EINVAL; /* the program has not decided it */
	p3_cci_queue_give_back(&ep->queue, item);
	if (p3_unlikely(p3_get(&ep->starving)))
		(void)p3_cci_call(ep->nic, p3_cci_retry_feed, ep);
	return CCI_SUCCESS;
}
