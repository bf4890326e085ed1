/* SPDX-License-Identifier: BSD-3-Clause */
/* Event queues: look, wait for an event, take it. */
#include "nic/host/call.h"
#include "nic/obj/obj.h"
#include "nic/run/lease.h"

#include <sched.h>

#define P3_BRIEF_TURNS 128u

/* End a call that gives rc; rare: a signal handler has left commands behind. */
static P3_RARE int eq_end_late(struct p3_nic *n, int rc)
{
	p3_call_run_left(n);
	return rc;
}

static inline int eq_end_call(struct p3_nic *n, int rc)
{
	return p3_likely(p3_call_leave()) ? rc : eq_end_late(n, rc);
}

/* Return true if the queue is there and certainly has no event. */
static inline bool eq_is_empty(const struct p3_nic *n, uint64_t handle)
{
	return p3_eq_is_empty(p3_eq_place(n, handle), handle);
}

/* Call the handler with a copy, while this thread holds neither the lease nor a lock. */
static P3_RARE int eq_show(ptl_eq_handler_t handler, const ptl_event_t *event, int rc)
{
	ptl_event_t copy = *event;
	handler(&copy);
	return rc;
}

static int eq_take(struct p3_nic *n, struct p3_eq *eq, uint64_t handle, ptl_event_t *ev)
{
	uint64_t w[P3_EVQ_WORDS], sequence;
	enum p3_evq_got got = p3_evq_get(&eq->rx, handle, p3_self_number(), w, &sequence);
	if (got == P3_EVQ_EMPTY)
		return PTL_EQ_EMPTY;
	p3_event_from_words(w, sequence, handle, ev);
	P3_TRACE(host, n, P3_TRACE_TAKEN, (uint32_t)ev->type,
		p3_pair(p3_obj_index(&eq->o), (uint32_t)sequence));
	return got == P3_EVQ_LOST ? PTL_EQ_DROPPED : PTL_OK;
}

/*
 * Wait until the host has handled all that the firmware has told it, so that a look
 * behind this finds the events of all operations that are complete.  Return false if
 * there was nothing to wait for.  The host's thread needs a few microseconds, or a turn
 * of the CPU.
 */
static P3_RARE bool eq_catch_up(struct p3_nic *n)
{
	struct p3_generic *g = &n->generic_part;
	uint64_t staged = p3_acquire(&g->staged); /* GEN.1 */
	bool late = false;
	while ((int64_t)(p3_acquire(&g->handled) - staged) < 0 && /* GEN.2 */
		!p3_get(&n->closing)) {
		late = true;
		sched_yield();
	}
	return late;
}

/* Look for news where another thread runs the firmware.  Return true if there may be any.
 * In generic mode the host's thread may have posted an event between the caller's look at
 * its queue and this one, and have nothing more to handle.  Where threads share CPUs, let
 * the NIC thread and the host's thread run: this thread may poll. */
static bool eq_look_in_vain(struct p3_nic *n)
{
	if (p3_unlikely(n->generic != NULL)) {
		if (!eq_catch_up(n) && n->tight)
			sched_yield();
		return true;
	}
	p3_call_look_in_vain(n);
	return false;
}

int p3_nic_eq_peek(struct p3_nic *n, uint64_t handle, ptl_event_t *event_out)
{
	uint64_t w[P3_EVQ_WORDS], sequence;
	struct p3_eq *eq = p3_eq_named(n, handle);
	if (!eq)
		return PTL_EQ_INVALID;
	if (p3_eq_is_empty(eq, handle)) {
		p3_call_attend(n, p3_handle_ni(handle));
		if (!p3_call_pass(n) && p3_unlikely(n->generic != NULL))
			(void)eq_catch_up(n);
	}
	enum p3_evq_got got = p3_evq_peek(&eq->rx, handle, w, &sequence);
	if (got == P3_EVQ_EMPTY)
		return p3_eq_named(n, handle) ? PTL_EQ_EMPTY : PTL_EQ_INVALID;
	p3_event_from_words(w, sequence, handle, event_out);
	return got == P3_EVQ_LOST ? PTL_EQ_DROPPED : PTL_OK;
}

/* Return the code of a queue that is not empty. */
static int eq_arm_in_vain(const struct p3_nic *n, uint64_t handle)
{
	return p3_eq_named(n, handle) ? PTL_EQ_IN_USE : PTL_EQ_INVALID;
}

int p3_nic_eq_arm(struct p3_nic *n, uint64_t handle)
{
	const struct p3_eq *eq = p3_eq_named(n, handle);
	if (!eq)
		return PTL_EQ_INVALID;
	uint32_t slot = p3_acquire(&eq->evfd); /* EVFD.1 */
	if (!slot)
		return PTL_FAIL;
	struct p3_evfd *e = p3_evfd_numbered(n, slot);
	p3_call_attend(n, p3_handle_ni(handle));
	if (!p3_eq_is_empty(eq, handle))
		return eq_arm_in_vain(n, handle);
	/* A signal handler must not wait for what this thread does to the file. */
	p3_call_begin();
	bool armed = p3_evfd_settle(n, e, handle, P3_EVFD_ARMED);
	FAULT_POINT("queue.armed");
	p3_fence(); /* EVFD.1 */
	if (armed && !p3_eq_is_empty(eq, handle)) {
		p3_evfd_signal(n, e);
		armed = false;
	}
	p3_call_end(n);
	if (!armed)
		return eq_arm_in_vain(n, handle);
	p3_count(&n->brief_looks, 1); /* the look that has found the queue empty */
	return PTL_OK;
}

/*
 * Return the place in the list of queues at which the next look begins, so that no queue
 * starves.  Each call moves on by the golden section of a list, whose multiples lie close
 * to no simple fraction: if calls for k lists take turns, the calls for each of them
 * begin at every place of it, too, within about 3 * k calls for a list of two.
 */
static uint32_t eq_next_start(uint32_t n)
{
	static p3_a32 turn; /* in 2^-32 of a list */
	if (n == 1)
		return 0;
	uint32_t at = p3_get(&turn) + 0x9e3779b9u;
	p3_set(&turn, at);
	return (uint32_t)((uint64_t)at * n >> 32);
}

static bool eq_of_one_interface(const uint64_t *handles, uint32_t nq)
{
	for (uint32_t i = 1; i < nq; i++)
		if (p3_handle_ni(handles[i]) != p3_handle_ni(handles[0]))
			return false;
	return true;
}

struct eq_poll {
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

static bool eq_all_valid(const struct p3_nic *n, const uint64_t *handles, uint32_t nq)
{
	for (uint32_t i = 0; i < nq; i++)
		if (p3_unlikely(!p3_eq_named(n, handles[i])))
			return false;
	return true;
}

/* Look once at every queue, in turn from start; check all before reading one. */
P3_PATH
static bool eq_poll_ready(void *arg)
{
	struct eq_poll *p = arg;
	if (p->rc == PTL_EQ_EMPTY && !eq_all_valid(p->nic, p->handles, p->n))
		p->rc = PTL_EQ_INVALID;
	for (uint32_t i = 0, q = p->start; i < p->n && p->rc == PTL_EQ_EMPTY;
		i++, q = q + 1 < p->n ? q + 1 : 0) {
		struct p3_eq *eq = p3_eq_named(p->nic, p->handles[q]);
		if (!eq || p3_eq_is_empty(eq, p->handles[q]))
			continue;
		if (p->interrupts && !p3_evq_may_get(&eq->rx, p3_self_number()))
			continue;
		p->which = q;
		/* this queue's handler, if the take succeeds */
		p->handler = p3_get(&eq->handler);
		p->rc = eq_take(p->nic, eq, p->handles[q], p->event);
	}
	return p->rc != PTL_EQ_EMPTY;
}

static bool eq_is_any_there(const struct eq_poll *p)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (!eq_is_empty(p->nic, p->handles[i]))
			return true;
	return false;
}

/* With the lease: run a few passes, give the lease up, and look again. */
static void eq_pass_and_look(struct p3_nic *n, struct eq_poll *p)
{
	for (uint32_t turn = 0; turn < P3_WHOLE_TURNS; turn += p3_pass_share(n))
		if (!p3_pass_run(n) || eq_is_any_there(p))
			break;
	p3_lease_leave(n);
	(void)eq_poll_ready(p);
}

/* Look for an event after a first look that found none: until the time is over, or with
 * a few passes if ns is 0. */
static void eq_wait_for_event(struct p3_nic *n, struct eq_poll *p, uint64_t ns)
{
	const struct p3_wants wants = {P3_WAIT_EVENT, p->n, p->handles};
	p3_call_attend(n, p3_handle_ni(p->handles[0]));
	if (ns)
		(void)p3_wait_until(n, ns, &wants, eq_poll_ready, p);
	else if (p3_lease_enter(n, P3_LEASE_HOST))
		eq_pass_and_look(n, p);
	else if (eq_look_in_vain(n))
		(void)eq_poll_ready(p);
}

/* End a poll, which has found an event or not. */
static int eq_polled(struct p3_nic *n, struct eq_poll *p, int *which_out)
{
	if (p->rc == PTL_EQ_EMPTY && p3_get(&n->closing))
		p->rc = PTL_EQ_INVALID;
	if (p->rc != PTL_OK && p->rc != PTL_EQ_DROPPED)
		return p->rc;
	*which_out = (int)p->which;
	return p->handler ? eq_show(p->handler, p->event, p->rc) : p->rc;
}

/* Poll in the general way, in any case, from this place in the list on. */
P3_PATH
static __attribute__((noinline)) int eq_poll_from(struct p3_nic *n, uint32_t start,
	const uint64_t *handles, uint32_t nq, uint64_t ns, ptl_event_t *event_out,
	int *which_out)
{
	struct eq_poll p = {.nic = n,
		.handles = handles,
		.event = event_out,
		.n = nq,
		.start = start,
		.rc = eq_of_one_interface(handles, nq) ? PTL_EQ_EMPTY : PTL_EQ_INVALID,
		.interrupts = p3_self.inside != 0};
	if (p3_unlikely(p.interrupts)) {
		(void)eq_poll_ready(&p);
		if (p.rc == PTL_EQ_EMPTY)
			return p.rc;
	} else {
		p3_call_begin();
		if (!eq_poll_ready(&p))
			eq_wait_for_event(n, &p, ns);
		p3_call_end(n);
	}
	return eq_polled(n, &p, which_out);
}

static inline int eq_poll_all(struct p3_nic *n, const uint64_t *handles, uint32_t nq,
	uint64_t ns, ptl_event_t *event_out, int *which_out)
{
	return eq_poll_from(n, eq_next_start(nq), handles, nq, ns, event_out, which_out);
}

/* End a call whose peek has found nothing, but a parked thread or a command. */
static P3_RARE int eq_end_left(struct p3_nic *n, struct p3_mailbox *mailbox)
{
	p3_lease_left(n, &n->never_asleep, &n->never_cold, NULL, 0, mailbox);
	return eq_end_call(n, PTL_EQ_EMPTY);
}

/* With the lease, inside of a call: run whole passes, and end the poll. */
P3_PATH
static __attribute__((noinline)) int eq_poll_wholly(struct p3_nic *n,
	const uint64_t *handles, uint32_t nq, ptl_event_t *event_out, int *which_out)
{
	struct eq_poll p = {.nic = n,
		.handles = handles,
		.event = event_out,
		.n = nq,
		.start = eq_next_start(nq),
		.rc = PTL_EQ_EMPTY};
	eq_pass_and_look(n, &p);
	p3_call_end(n);
	return eq_polled(n, &p, which_out);
}

/* ---- the short way to take an event ---- */

/* End a call that has taken event number `sequence`. */
static P3_RARE int eq_end_shown(struct p3_nic *n, const struct p3_eq *eq,
	uint64_t sequence, ptl_event_t *ev, ptl_eq_handler_t handler)
{
	P3_TRACE(host, n, P3_TRACE_TAKEN, (uint32_t)ev->type,
		p3_pair(p3_obj_index(&eq->o), (uint32_t)sequence));
	p3_call_end(n);
	return handler ? eq_show(handler, ev, PTL_OK) : PTL_OK;
}

/* Copy an event that the owner of its queue has found, and take it.  Return false if the
 * firmware has overwritten it meanwhile. */
static P3_HOT bool eq_take_found(struct p3_eq *eq, uint64_t handle,
	const struct p3_evq_next *next, ptl_event_t *event_out,
	ptl_eq_handler_t *handler_out)
{
	p3_event_from_record(&next->rec->words, next->head + 1, handle, event_out);
	*handler_out =
		p3_get(&eq->handler); /* the queue lives until the event is taken */
	return p3_likely(p3_evq_took(&eq->rx, next));
}

/* End a call that has taken the event behind head.  This is the last that a caller does,
 * so that the calls of the rare cases need no registers. */
static P3_HOT int eq_end_found(struct p3_nic *n, struct p3_eq *eq, uint64_t head,
	ptl_event_t *event_out, ptl_eq_handler_t handler)
{
	if (p3_unlikely(handler != NULL || n->traced != NULL))
		return eq_end_shown(n, eq, head + 1, event_out, handler);
	return eq_end_call(n, PTL_OK);
}

/* Inside of a call: take an event from the first queue that has one.  Return -1 if there
 * is none, or if the short way fails for that queue, which this thread may never have
 * read. */
static P3_HOT int eq_take_first(struct p3_nic *n, uint32_t start, const uint64_t *handles,
	uint32_t nq, ptl_event_t *event_out, int *which_out)
{
	struct p3_evq_next next;
	ptl_eq_handler_t handler;
	uint32_t q = start;
	for (uint32_t left = nq; left; left--, q = q + 1 < nq ? q + 1 : 0) {
		struct p3_eq *eq = p3_eq_place(n, handles[q]);
		if (p3_eq_is_empty(eq, handles[q]))
			continue;
		if (!p3_evq_look(&eq->rx, handles[q], p3_self.number, &next) ||
			!eq_take_found(eq, handles[q], &next, event_out, &handler))
			return -1;
		*which_out = (int)q; /* before the handler runs */
		return eq_end_found(n, eq, next.head, event_out, handler);
	}
	return -1;
}

/* Inside of a call: take an event that is most likely there, or poll in the general way,
 * from the same place in the list on. */
static P3_HOT int eq_take_first_or_poll(struct p3_nic *n, const uint64_t *handles,
	uint32_t nq, uint64_t ns, ptl_event_t *event_out, int *which_out)
{
	uint32_t start = eq_next_start(nq);
	int rc = eq_take_first(n, start, handles, nq, event_out, which_out);
	if (p3_likely(rc >= 0))
		return rc;
	p3_call_end(n);
	return eq_poll_from(n, start, handles, nq, ns, event_out, which_out);
}

/* End a call that could not peek, since another thread runs the firmware: look once more
 * if that thread has brought news. */
static __attribute__((noinline)) int eq_poll_in_vain(struct p3_nic *n,
	const uint64_t *handles, uint32_t nq, ptl_event_t *event_out, int *which_out)
{
	bool news = eq_look_in_vain(n);
	p3_call_end(n);
	if (news)
		return eq_poll_all(n, handles, nq, 0, event_out, which_out);
	return p3_get(&n->closing) ? PTL_EQ_INVALID : PTL_EQ_EMPTY;
}

static __attribute__((noinline)) int eq_get_in_vain(
	struct p3_nic *n, uint64_t handle, ptl_event_t *event_out)
{
	int which;
	return eq_poll_in_vain(n, &handle, 1, event_out, &which);
}

/* ---- a poll that has work ---- */

/* Return true if all queues are of one interface and certainly have no event. */
static inline bool eq_are_empty(struct p3_nic *n, const uint64_t *handles, uint32_t nq)
{
	uint64_t differs = 0;
	for (uint32_t i = 0; i < nq; i++) {
		if (p3_unlikely(!eq_is_empty(n, handles[i])))
			return false;
		differs |= handles[i] ^ handles[0];
	}
	return p3_handle_ni(differs) == 0;
}

/* With the lease, inside of a call, after a peek that has found a message: run a brief
 * pass.  Its messages may bring no event to these queues, and more may lie behind them:
 * whole passes go on then, with the same lease.  This is not P3_PATH, as eq_pass_on(). */
static __attribute__((noinline)) int eq_poll_briefly(struct p3_nic *n,
	const uint64_t *handles, uint32_t nq, ptl_event_t *event_out, int *which_out)
{
	p3_lease_begin_to_pass(n);
	p3_pass_poll_briefly(n);
	(void)p3_pass_end(n);
	if (p3_unlikely(eq_are_empty(n, handles, nq)))
		return eq_poll_wholly(n, handles, nq, event_out, which_out);
	p3_lease_leave_here(n);
	return eq_take_first_or_poll(n, handles, nq, 0, event_out, which_out);
}

/* With the lease, inside of a call: go on after a peek that has found work. */
P3_PATH
static __attribute__((noinline)) int eq_poll_on(struct p3_nic *n, const uint64_t *handles,
	uint32_t nq, ptl_event_t *event_out, int *which_out)
{
	if (n->brief && p3_pass_is_brief(n))
		return eq_poll_briefly(n, handles, nq, event_out, which_out);
	p3_lease_begin(n, P3_LEASE_HOST);
	return eq_poll_wholly(n, handles, nq, event_out, which_out);
}

/* ---- one queue ---- */

/* Inside of a call: poll in the general way, since the short way to take an event has
 * failed: there is none, or the queue has overflowed, has several readers, or has none
 * yet. */
P3_PATH
static __attribute__((noinline)) int eq_poll_one(
	struct p3_nic *n, uint64_t handle, uint64_t ns, ptl_event_t *event_out)
{
	int which;
	p3_call_end(n);
	return eq_poll_all(n, &handle, 1, ns, event_out, &which);
}

/* Inside of a call: take an event if it is there, else poll. */
static P3_HOT int eq_take_or_poll(
	struct p3_nic *n, uint64_t handle, uint64_t ns, ptl_event_t *event_out)
{
	struct p3_evq_next next;
	ptl_eq_handler_t handler;
	struct p3_eq *eq = p3_eq_place(n, handle);
	if (p3_likely(p3_evq_look(&eq->rx, handle, p3_self.number, &next)) &&
		eq_take_found(eq, handle, &next, event_out, &handler))
		return eq_end_found(n, eq, next.head, event_out, handler);
	return eq_poll_one(n, handle, ns, event_out);
}

P3_PATH
static __attribute__((noinline)) int eq_get_one(
	struct p3_nic *n, uint64_t handle, ptl_event_t *event_out)
{
	return eq_take_or_poll(n, handle, 0, event_out);
}

/* With the lease: run a pass.  Return true if the queue may have an event, whose record
 * is the one that `next` names. */
static P3_HOT bool eq_pass_for(struct p3_nic *n, const struct p3_evq_next *next)
{
	if (p3_unlikely(!n->brief || !p3_pass_is_brief(n)))
		return p3_pass_run(n) && p3_evq_is_come(next);
	p3_pass_poll_briefly(n);
	if (p3_likely(p3_evq_is_come(next))) {
		p3_pass_count(n);
		return true;
	}
	(void)p3_pass_end(n);
	return false;
}

/* Go on after a first pass that has not brought the event.  This is not P3_PATH: nodes
 * that take turns on a CPU have no brief passes. */
static __attribute__((noinline)) void eq_pass_on(
	struct p3_nic *n, const struct p3_evq_next *next)
{
	uint64_t since = p3_rest_begin(n);
	uint32_t left = P3_BRIEF_TURNS;
	do
		p3_rest(n);
	while (--left && !eq_pass_for(n, next));
	p3_rest_end(n, since);
}

/* With the lease: run a few passes, until the record that `next` names may have come. */
static P3_HOT void eq_pass_until_come(struct p3_nic *n, const struct p3_evq_next *next)
{
	if (!eq_pass_for(n, next))
		eq_pass_on(n, next);
	p3_lease_leave_here(n);
}

/* Find the place of the next event of a queue that this thread does not own.  Return
 * false if it may be there, or the queue has ended. */
static inline bool eq_expect(
	const struct p3_nic *n, uint64_t handle, struct p3_evq_next *next_out)
{
	const struct p3_eq *eq = p3_eq_place(n, handle);
	return p3_evq_expect(&eq->rx, &eq->o.name, handle, next_out) &&
	       !p3_evq_is_come(next_out);
}

/* Inside of a call: wait for an event after a first look that has found none; next is
 * what it gave.  Where nodes share CPUs, the node's turn brings the event. */
P3_PATH
static __attribute__((noinline)) int eq_wait_for(struct p3_nic *n, uint64_t handle,
	ptl_event_t *event_out, struct p3_evq_next next)
{
	if (p3_unlikely(p3_self.inside != 1) ||
		(p3_unlikely(!next.rec) && !eq_expect(n, handle, &next)))
		return eq_take_or_poll(n, handle, UINT64_MAX, event_out);
	p3_call_attend(n, p3_handle_ni(handle));
	if (p3_unlikely(!n->brief && !n->idle.spin_ns))
		p3_wait_in_turn(n);
	else if (p3_likely(p3_lease_enter_to_pass(n)))
		eq_pass_until_come(n, &next);
	return eq_take_or_poll(n, handle, UINT64_MAX, event_out);
}

/* With the lease, inside of a call: go on after a peek that has found something. */
P3_PATH
static __attribute__((noinline)) int eq_get_on(
	struct p3_nic *n, uint64_t handle, ptl_event_t *event_out)
{
	int which;
	return eq_poll_on(n, &handle, 1, event_out, &which);
}

P3_PATH
int p3_nic_eq_wait(struct p3_nic *n, uint64_t handle, ptl_event_t *event_out)
{
	struct p3_evq_next next;
	ptl_eq_handler_t handler;
	struct p3_eq *eq = p3_eq_place(n, handle);
	p3_call_begin();
	if (p3_likely(p3_evq_look(&eq->rx, handle, p3_self.number, &next)) &&
		eq_take_found(eq, handle, &next, event_out, &handler))
		return eq_end_found(n, eq, next.head, event_out, handler);
	return eq_wait_for(n, handle, event_out, next);
}

P3_PATH
int p3_nic_eq_get(struct p3_nic *n, uint64_t handle, ptl_event_t *event_out)
{
	struct p3_mailbox *mailbox;
	p3_call_begin();
	if (p3_unlikely(p3_self.inside != 1) || !eq_is_empty(n, handle))
		return eq_get_one(n, handle, event_out);
	p3_call_attend(n, p3_handle_ni(handle));
	switch (p3_peek(n, &mailbox)) {
	case P3_PEEK_NOTHING:
		return eq_end_call(n, PTL_EQ_EMPTY);
	case P3_PEEK_LEFT:
		return eq_end_left(n, mailbox);
	case P3_PEEK_NEWS:
		return eq_get_on(n, handle, event_out);
	default:
		return eq_get_in_vain(n, handle, event_out);
	}
}

/* ---- some queues ---- */

/* Poll queues that may have an event already, or for some time. */
P3_PATH
static __attribute__((noinline)) int eq_poll_seen(struct p3_nic *n,
	const uint64_t *handles, uint32_t nq, uint64_t ns, ptl_event_t *event_out,
	int *which_out)
{
	if (p3_self.inside || !eq_all_valid(n, handles, nq) ||
		!eq_of_one_interface(handles, nq))
		return eq_poll_all(n, handles, nq, ns, event_out, which_out);
	p3_call_begin();
	return eq_take_first_or_poll(n, handles, nq, ns, event_out, which_out);
}

P3_PATH
int p3_nic_eq_poll(struct p3_nic *n, const uint64_t *handles, uint32_t nq, uint64_t ns,
	ptl_event_t *event_out, int *which_out)
{
	struct p3_mailbox *mailbox;
	if (ns || p3_self.inside || !eq_are_empty(n, handles, nq))
		return eq_poll_seen(n, handles, nq, ns, event_out, which_out);
	p3_call_attend(n, p3_handle_ni(handles[0]));
	p3_call_begin();
	switch (p3_peek(n, &mailbox)) {
	case P3_PEEK_NOTHING:
		return eq_end_call(n, PTL_EQ_EMPTY);
	case P3_PEEK_LEFT:
		return eq_end_left(n, mailbox);
	case P3_PEEK_NEWS:
		return eq_poll_on(n, handles, nq, event_out, which_out);
	default:
		return eq_poll_in_vain(n, handles, nq, event_out, which_out);
	}
}
