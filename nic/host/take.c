/* SPDX-License-Identifier: BSD-3-Clause */
/* Event queues: look, wait for an event, take it. */
#include "nic/host/call.h"
#include "nic/host/settle.h"
#include "nic/obj/event.h"
#include "nic/run/lease.h"
#include "nic/run/pass.h"
#include "nic/run/wait.h"

#define P3_BRIEF_TURNS 64u

static inline struct p3_eq *queue_of(struct p3_nic *n, uint64_t handle)
{
	uint32_t gen = p3_handle_gen(handle);
	struct p3_eq *eq = p3_table_at(&n->table[P3_T_EQ], p3_handle_index(handle));
	if (p3_handle_kind(handle) != P3_KIND_EQ || !eq || !(gen & 1) ||
		p3_acquire(&eq->o.gen) != gen || /* TABLE.2 */
		p3_get(&eq->ni) != p3_handle_ni(handle))
		return NULL;
	return eq;
}

/* Call the handler with a copy, while this thread holds neither the lease nor a lock. */
static P3_RARE int show(ptl_eq_handler_t handler, const ptl_event_t *event, int rc)
{
	ptl_event_t copy = *event;
	handler(&copy);
	return rc;
}

static int take(struct p3_nic *n, struct p3_eq *eq, uint64_t handle, ptl_event_t *ev)
{
	uint64_t w[P3_EVQ_WORDS], sequence;
	enum p3_evq_got got = p3_evq_get(&eq->rx, handle, p3_self_number(), w, &sequence);
	if (got == P3_EVQ_EMPTY)
		return PTL_EQ_EMPTY;
	p3_event_from_words(w, sequence, handle, ev);
	P3_TRACE(host, n, P3_TRACE_TAKEN, (uint32_t)ev->type,
		p3_pair(eq->o.index, (uint32_t)sequence));
	return got == P3_EVQ_LOST ? PTL_EQ_DROPPED : PTL_OK;
}

int p3_nic_eq_peek(struct p3_nic *n, uint64_t handle, ptl_event_t *event_out)
{
	uint64_t w[P3_EVQ_WORDS], sequence;
	struct p3_eq *eq = queue_of(n, handle);
	if (!eq)
		return PTL_EQ_INVALID;
	if (!p3_evq_any(&eq->rx)) {
		p3_settle_attend(n, p3_handle_ni(handle));
		(void)p3_settle_pass(n);
	}
	enum p3_evq_got got = p3_evq_peek(&eq->rx, handle, w, &sequence);
	if (got == P3_EVQ_EMPTY)
		return queue_of(n, handle) ? PTL_EQ_EMPTY : PTL_EQ_INVALID;
	p3_event_from_words(w, sequence, handle, event_out);
	return got == P3_EVQ_LOST ? PTL_EQ_DROPPED : PTL_OK;
}

struct poll {
	struct p3_nic *nic;
	const uint64_t *handles;
	ptl_event_t *event;
	uint32_t n;
	uint32_t start;
	uint32_t which;           /* index of the event's queue in handles */
	ptl_eq_handler_t handler; /* the queue's handler, or NULL */
	int rc;                   /* PTL_EQ_EMPTY until something is known */
	bool interrupts;          /* in a signal handler: does not wait for other
				   * readers */
};

static bool all_valid(const struct poll *p)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (!queue_of(p->nic, p->handles[i]))
			return false;
	return true;
}

/* Look once at every queue, in turn from start; check all before reading one. */
P3_PATH
static bool poll_ready(void *arg)
{
	struct poll *p = arg;
	if (p->rc == PTL_EQ_EMPTY && !all_valid(p))
		p->rc = PTL_EQ_INVALID;
	for (uint32_t i = 0, q = p->start; i < p->n && p->rc == PTL_EQ_EMPTY;
		i++, q = q + 1 < p->n ? q + 1 : 0) {
		struct p3_eq *eq = queue_of(p->nic, p->handles[q]);
		if (!eq || !p3_evq_any(&eq->rx))
			continue;
		if (p->interrupts && !p3_evq_may_get(&eq->rx, p3_self_number()))
			continue;
		p->which = q;
		/* this queue's handler, if the take succeeds */
		p->handler = p3_get(&eq->handler);
		p->rc = take(p->nic, eq, p->handles[q], p->event);
	}
	return p->rc != PTL_EQ_EMPTY;
}

static bool is_any_there(const struct poll *p)
{
	for (uint32_t i = 0; i < p->n; i++) {
		struct p3_eq *eq = queue_of(p->nic, p->handles[i]);
		if (!eq || p3_evq_any(&eq->rx))
			return true;
	}
	return false;
}

/* Look for an event after a first look that found none: until the time is over, or with
 * a few passes if ns is 0. */
static void wait_for_event(struct p3_nic *n, struct poll *p, uint64_t ns)
{
	const struct p3_wants wants = {P3_WAIT_EVENT, p->n, p->handles};
	p3_settle_attend(n, p3_handle_ni(p->handles[0]));
	if (ns) {
		(void)p3_wait_until(n, ns, &wants, poll_ready, p);
	} else if (p3_lease_enter(n, P3_LEASE_HOST)) {
		for (uint32_t turn = 0; turn < P3_WHOLE_TURNS; turn += p3_pass_share(n))
			if (!p3_pass_run(n) || is_any_there(p))
				break;
		p3_lease_leave(n);
		(void)poll_ready(p);
	} else {
		p3_settle_look_in_vain(n);
	}
}

P3_PATH
int p3_nic_eq_poll(struct p3_nic *n, const uint64_t *handles, uint32_t nq, uint32_t start,
	uint64_t ns, ptl_event_t *event_out, int *which_out)
{
	struct poll p = {.nic = n,
		.handles = handles,
		.event = event_out,
		.n = nq,
		.start = start,
		.rc = PTL_EQ_EMPTY,
		.interrupts = p3_self.inside != 0};
	if (p3_unlikely(p.interrupts)) {
		(void)poll_ready(&p);
	} else {
		p3_call_begin();
		if (!poll_ready(&p))
			wait_for_event(n, &p, ns);
		p3_call_end(n);
		if (p.rc == PTL_EQ_EMPTY && p3_get(&n->closing))
			p.rc = PTL_EQ_INVALID;
	}
	if (p.rc != PTL_OK && p.rc != PTL_EQ_DROPPED)
		return p.rc;
	*which_out = (int)p.which;
	return p.handler ? show(p.handler, event_out, p.rc) : p.rc;
}

static bool passes_until_any(struct p3_nic *n, struct p3_eq *eq)
{
	bool any = false;
	if (!p3_lease_enter(n, P3_LEASE_HOST))
		return false;
	for (uint32_t turn = 0; turn < P3_BRIEF_TURNS && !any; turn++)
		any = p3_pass_run(n) && p3_evq_any(&eq->rx);
	p3_lease_leave(n);
	return any;
}

/* Run a few passes.  Return true when this queue has an event. */
static bool await_briefly(struct p3_nic *n, uint64_t handle)
{
	struct p3_eq *eq = queue_of(n, handle);
	if (!eq || p3_self.inside || !n->idle.spin_ns)
		return false;
	p3_call_begin();
	bool any = p3_evq_any(&eq->rx) || passes_until_any(n, eq);
	p3_call_end(n);
	return any;
}

/* Take an event in the common case: one thread reads the queue, and an event lies
 * there. */
static inline bool take_at_once(struct p3_nic *n, uint64_t handle, ptl_event_t *event_out,
	ptl_eq_handler_t *handler_out)
{
	uint64_t head;
	bool taken = false;
	struct p3_eq *eq = p3_table_at(&n->table[P3_T_EQ], p3_handle_index(handle));
	if (p3_unlikely(!eq))
		return false;
	p3_call_begin();
	struct p3_event_record *rec =
		p3_evq_look(&eq->rx, handle, p3_self_number(), &head);
	if (p3_likely(rec != NULL)) {
		*handler_out = p3_get(&eq->handler);
		p3_event_from_record(&rec->words, head + 1, handle, event_out);
		taken = p3_evq_took(&eq->rx, rec, head);
		if (taken)
			P3_TRACE(host, n, P3_TRACE_TAKEN, (uint32_t)event_out->type,
				p3_pair(eq->o.index, (uint32_t)head + 1));
	}
	p3_call_end(n);
	return taken;
}

/*
 * Wait for an event after an empty first look.  If the second look cannot take an event
 * (the queue has overflowed, has several readers, or has none yet), take the long way.
 */
P3_PATH
static __attribute__((noinline)) int wait_for(
	struct p3_nic *n, uint64_t handle, uint64_t ns, ptl_event_t *event_out)
{
	int which;
	ptl_eq_handler_t handler;
	p3_settle_attend(n, p3_handle_ni(handle));
	if (ns && await_briefly(n, handle) &&
		take_at_once(n, handle, event_out, &handler))
		return handler ? show(handler, event_out, PTL_OK) : PTL_OK;
	return p3_nic_eq_poll(n, &handle, 1, 0, ns, event_out, &which);
}

P3_PATH
int p3_nic_eq_get(struct p3_nic *n, uint64_t handle, uint64_t ns, ptl_event_t *event_out)
{
	ptl_eq_handler_t handler;
	if (p3_unlikely(!take_at_once(n, handle, event_out, &handler)))
		return wait_for(n, handle, ns, event_out);
	if (p3_unlikely(handler != NULL))
		return show(handler, event_out, PTL_OK);
	return PTL_OK;
}
