/* SPDX-License-Identifier: BSD-3-Clause */
/* Events for the program: taken, and returned. */
#include "nic/cci/call.h"
#include "nic/cci/host_wait.h"
#include "nic/cci/item.h"
#include "nic/cci/queue.h"
#include "nic/cci/retry.h"
#include "nic/host/call.h"
#include "nic/host/settle.h"
#include "nic/run/lease.h"
#include "nic/run/pass.h"
#include "nic/run/peek.h"
#include "nic/run/wait.h"
#include "shm/fault.h"
#include "shm/variant.h"

#include <sched.h>

/* ---- taking ---- */

/* Return true if the program has closed the connection whose message this is: the
 * message is discarded. */
static bool is_void(const struct p3_cci_item *item)
{
	return item->what == P3_CCI_RX && p3_unlikely(p3_get(&item->conn->closed));
}

static void give_back(struct p3_cci_item *item)
{
	struct p3_cci_endpoint *ep = item->ep;
	p3_cci_queue_give_back(&ep->queue, item);
}

/* Return true if the event must not be handed out at once: it is void, or it gives back
 * memory that a peer may still be reading. */
static P3_HOT bool is_odd(const struct p3_cci_item *item)
{
	return is_void(item) || p3_unlikely(item->what == P3_CCI_WITHDRAWN);
}

/* Return the next event that is not void, and wait for the readers of its memory. */
static P3_RARE struct p3_cci_item *take_oddly(struct p3_cci_item *item)
{
	struct p3_cci_endpoint *ep = item->ep;
	while (item && is_void(item)) {
		give_back(item);
		item = p3_cci_queue_take(&ep->queue);
	}
	if (item && item->what == P3_CCI_WITHDRAWN)
		p3_cci_wait_for_readers(ep->nic);
	return item;
}

static P3_HOT struct p3_cci_item *take(struct p3_cci_endpoint *ep)
{
	struct p3_cci_item *item = p3_cci_queue_take(&ep->queue);
	return p3_unlikely(item && is_odd(item)) ? take_oddly(item) : item;
}

/* Return true if the program sleeps on the OS handle when it finds no event. */
static bool sleeps(const struct p3_cci_endpoint *ep)
{
	return ep->handle.fd >= 0 && p3_get(&ep->handle.state) != P3_CCI_IDLE;
}

/* Count drained passes as those of a thread that sleeps next, so that the NIC thread does
 * not take it for one that polls. */
static void count_brief(
	struct p3_nic *n, const struct p3_cci_endpoint *ep, uint64_t looks)
{
	if (p3_unlikely(sleeps(ep)))
		p3_count(&n->cci.brief_looks, looks);
}

/* With the lease: run passes until the queue has an event, or nothing is left. */
static void pass_wholly(struct p3_nic *n, const struct p3_cci_endpoint *ep)
{
	for (uint32_t turn = 0; turn < P3_WHOLE_TURNS; turn += p3_pass_share(n))
		if (!p3_pass_run(n) || p3_cci_queue_any(&ep->queue))
			break;
}

/* With the lease, after a peek that has found a message: run a brief pass, and whole
 * passes only if it brings no event.  Give the lease up. */
static __attribute__((noinline)) void pass_briefly(
	struct p3_nic *n, const struct p3_cci_endpoint *ep)
{
	p3_lease_begin_to_pass(n);
	p3_pass_poll_briefly(n);
	if (p3_likely(p3_cci_queue_any(&ep->queue))) {
		p3_pass_count(n);
	} else {
		(void)p3_pass_end(n);
		pass_wholly(n, ep);
	}
	p3_lease_leave_here(n);
}

/* With the lease: run passes, and give the lease up. */
static void pass_on(struct p3_nic *n, const struct p3_cci_endpoint *ep)
{
	if (p3_straight() && n->brief && p3_pass_is_brief(n) && !sleeps(ep)) {
		pass_briefly(n, ep);
		return;
	}
	uint64_t drained = p3_get(&n->drained);
	p3_lease_begin(n, P3_LEASE_HOST);
	pass_wholly(n, ep);
	count_brief(n, ep, p3_get(&n->drained) - drained);
	p3_lease_leave(n);
}

/* Programs poll in pure loops.  Where nodes share CPUs, the nodes that will answer wait
 * for this CPU. */
static void let_others_answer(struct p3_nic *n)
{
	if (p3_unlikely(n->crowded) && n->idle.yield_ns)
		sched_yield();
}

/* End a look that has found nothing, but a parked thread or a command. */
static P3_RARE void end_left(
	struct p3_nic *n, const struct p3_cci_endpoint *ep, struct p3_mailbox *mailbox)
{
	count_brief(n, ep, 1);
	p3_lease_left(n, &n->never_asleep, &n->never_cold, NULL, 0, mailbox);
}

/* Make progress after a look in vain.  Return the event that it brings, or NULL. */
static struct p3_cci_item *progress(struct p3_nic *n, struct p3_cci_endpoint *ep)
{
	struct p3_mailbox *mailbox;
	p3_call_begin();
	enum p3_peeked peeked = p3_peek(n, &mailbox);
	if (p3_likely(peeked == P3_PEEK_NOTHING)) {
		count_brief(n, ep, 1);
		p3_call_end(n);
		return NULL;
	}
	if (p3_likely(peeked == P3_PEEK_NEWS))
		pass_on(n, ep);
	else if (peeked == P3_PEEK_LEFT)
		end_left(n, ep, mailbox);
	else if (!sleeps(ep)) /* another thread runs the firmware */
		p3_settle_look_in_vain(n);
	p3_call_end(n);
	return take(ep);
}

static void drain(struct p3_nic *n, void *arg)
{
	p3_cci_item_drain(n, arg);
}

/* Return what a look that has found nothing says. */
static int none(struct p3_nic *n, struct p3_cci_endpoint *ep)
{
	let_others_answer(n);
	if (p3_likely(p3_get(&ep->rx_left)))
		return CCI_EAGAIN;
	(void)p3_cci_call(n, drain, ep);
	return p3_get(&ep->rx_left) ? CCI_EAGAIN : CCI_ENOBUFS;
}

/* Go on after a look that has found no event. */
static __attribute__((noinline)) int look_again(
	struct p3_cci_endpoint *ep, cci_event_t **event_out)
{
	struct p3_nic *n = ep->nic;
	struct p3_cci_item *item = progress(n, ep);
	if (p3_unlikely(!item))
		return none(n, ep);
	FAULT_POINT("cci.taken");
	*event_out = &item->event;
	return CCI_SUCCESS;
}

int p3_cci_get_event(cci_endpoint_t *endpoint, cci_event_t **event_out)
{
	struct p3_cci_endpoint *ep = (struct p3_cci_endpoint *)(uintptr_t)endpoint;
	*event_out = NULL;
	if (p3_unlikely(p3_self.inside != 0))
		return CCI_EAGAIN;
	struct p3_cci_item *item = take(ep);
	if (!item)
		return look_again(ep, event_out);
	FAULT_POINT("cci.taken");
	*event_out = &item->event;
	return CCI_SUCCESS;
}

/* ---- returning ---- */

/* Return true if the item is a connect request that the program has not decided. */
static bool is_undecided(const struct p3_cci_item *item)
{
	return item->what == P3_CCI_REQUEST &&
	       ((const struct p3_cci_request *)item)->state == P3_CCI_REQ_OPEN;
}

static void feed(struct p3_nic *n, void *arg)
{
	p3_cci_retry_feed(n, arg);
}

int p3_cci_return_event(cci_event_t *event)
{
	struct p3_cci_item *item = (struct p3_cci_item *)(uintptr_t)event;
	struct p3_cci_endpoint *ep = item->ep;
	if (p3_unlikely(is_undecided(item)))
		return CCI_EINVAL;
	give_back(item);
	if (p3_unlikely(p3_get(&ep->starving)))
		(void)p3_cci_call(ep->nic, feed, ep);
	return CCI_SUCCESS;
}
