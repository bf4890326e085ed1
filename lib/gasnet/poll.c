/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * poll.c - reading the event queues, and waiting
 *
 * Three levels.  SAFE reads SAFE_EQ, whose events need nothing to be handled, so a reply
 * never runs a request.  AM reads AM_EQ, too, and runs request handlers (am_send.c);
 * SYS_EQ, which has room for all that can be under way, it reads now and then, as
 * sleepers do. FULL advances collectives, too (am.c), whose requests wait at AM.
 *
 * So the files are layers.  Below this one no function waits for events, so each event
 * can be handled in a wait: thread.c, credits.c, local.c, barrier.c, am_recv.c, and
 * exit.c, whose events any thread may handle.  Above it are am_send.c, coll.c and am.c,
 * and then all calls of programs that wait at FULL.  A lower layer calls an upper one
 * through gasneti.handlers alone, the table of AM handlers, since a program's handler may
 * call gasnet_AMReply.
 *
 * Waiting threads.  A thread that has nothing to do sleeps in PtlEQPoll, so the network
 * wakes it.  With threads (GASNET_PAR), one of them does so, the watcher, which takes the
 * word watcher by compare-and-swap; the others sleep on the futex word generation.  A
 * thread that has run a handler, or completed another thread's operation, or ceases to
 * watch, adds 1 to generation and then reads sleepers.  A sleeper adds 1 to sleepers and
 * then sleeps if generation is still the value that it read before it looked at its
 * condition.  All four are sequentially consistent: either the waker sees the sleeper, or
 * the sleeper sees the new generation.  A wake-up that is lost all the same costs
 * GASNETI_NAP_MS.
 */
#include "internal.h"

enum {
	SPIN_NS = 20000,
	SYS_EVERY = 16,   /* FULL polls for one look at SYS_EQ */
	EXIT_EVERY = 256, /* and at EXIT_EQ */
	CLOCK_EVERY = 32, /* idle turns for one look at the clock */
	LONGER_NAPS = 5   /* times that the sleep doubles */
};

/* ---- SAFE_EQ ---- */

/* Count one completion, and wake the operation's thread if it is another one. */
static GASNETI_HOT void op_count(uint64_t bits, size_t counter)
{
	struct gasneti_op *op = gasneti_op_of(bits);
	gasneti_add(&gasneti.tickets, 1);
	gasneti_add((uint32_t *)((char *)op + counter), 1);
	gasneti_wake();
}

/* Handle SEND_END, which says that a source may be reused. */
static GASNETI_HOT void op_sent(const ptl_event_t *ev)
{
	uint64_t bits = ev->match_bits;
	switch (bits >> 4 & 15) {
	case GASNETI_KIND_PUT_LOCAL: /* the ticket comes back with the ACK */
		gasneti_add(&gasneti_op_of(bits)->local_done, 1);
		gasneti_wake();
		break;
	case GASNETI_KIND_HEADER:
		gasneti_pool_back(
			&gasneti.replies.pool, (uint32_t)(ev->offset / GASNETI_CHUNK));
		gasneti_wake();
		break;
	case GASNETI_KIND_PAYLOAD:
		gasneti_local_release(bits);
		op_count(bits, offsetof(struct gasneti_op, local_done));
		break;
	default: /* the source of a bulk put, or the request of a get */
		break;
	}
}

/* Handle an event of an operation that this node began. */
static void op_event(const ptl_event_t *ev)
{
	uint64_t bits = ev->match_bits;
	if (gasneti_unlikely(ev->ni_fail_type != PTL_NI_OK))
		gasneti_peer_died(gasneti_node_of(ev->initiator));
	switch (ev->type) {
	case PTL_EVENT_ACK:
		gasneti_local_release(bits);
		op_count(bits, offsetof(struct gasneti_op, done[GASNETI_PUT]));
		break;
	case PTL_EVENT_REPLY_END:
		gasneti_local_arrived(bits, ev->mlength);
		gasneti_local_release(bits);
		op_count(bits, offsetof(struct gasneti_op, done[GASNETI_GET]));
		break;
	case PTL_EVENT_SEND_END:
		op_sent(ev);
		break;
	default:
		break;
	}
}

/* Handle an event of SAFE_EQ whose kind is not the usual one. */
static GASNETI_RARE void safe_event_rare(const ptl_event_t *ev)
{
	switch (ev->match_bits & 15) {
	case GASNETI_MD_RARSRC:
		gasneti_am_reply_payload(ev);
		return;
	case GASNETI_MD_BARRIER:
		gasneti_barrier_event(ev);
		return;
	case GASNETI_MD_REQUEST:
		gasneti_fatal(
			"credit management failed: a request of node %u (%u:%u) found "
			"no buffer",
			gasneti_node_of(ev->initiator), ev->initiator.nid,
			ev->initiator.pid);
	default:
		gasneti_fatal("event %s with match bits %#llx", PtlEventKindStr(ev->type),
			(unsigned long long)ev->match_bits);
	}
}

/* Handle an event of SAFE_EQ; no handling waits. */
GASNETI_HOT void gasneti_safe_event(const ptl_event_t *ev)
{
	if (ev->type != PTL_EVENT_PUT_END)
		op_event(ev);
	else if (gasneti_likely((ev->match_bits & 15) == GASNETI_MD_REPLY))
		gasneti_am_reply(ev);
	else
		safe_event_rare(ev);
}

/* Serve one event of class 1: completions, replies and barriers.  After each the
 * caller looks at its condition.  Return the number of events. */
GASNETI_HOT unsigned gasneti_poll_one(void)
{
	ptl_event_t ev;
	if (!gasneti_next_event(gasneti.safe_eq, &ev, "SAFE"))
		return 0;
	gasneti_safe_event(&ev);
	return 1;
}

/* Serve several events of class 1.  Return their number. */
unsigned gasneti_poll_safe(void)
{
	unsigned n = 0, limit = gasneti.set.safe_limit;
	while (n < limit && gasneti_poll_one())
		n++;
	return n;
}

/* ---- the other queues ---- */

static unsigned poll_sys(void)
{
	ptl_event_t ev;
	unsigned n = 0;
	while (gasneti_next_event(gasneti.sys_eq, &ev, "SYS")) {
		gasneti_sys_event(&ev);
		n++;
	}
	if (gasneti_unlikely(gasneti_get(&gasneti.unsent))) {
		gasneti_sys_resend();
		gasneti_barrier_resend();
	}
	return n;
}

/* Serve SYS_EQ and EXIT_EQ now and then.  Return the number of events. */
GASNETI_HOT unsigned gasneti_poll_others(void)
{
	unsigned n = 0;
	uint32_t polls = gasneti_get(&gasneti.polls) + 1; /* threads may lose turns */
	gasneti_set(&gasneti.polls, polls);
	if (gasneti_unlikely(polls % SYS_EVERY == 0 || gasneti_get(&gasneti.unsent)))
		n += poll_sys();
	if (gasneti_unlikely(polls % EXIT_EVERY == 0))
		gasneti_exit_poll();
	return n;
}

/* ---- sleeping ---- */

/*
 * Return the time to sleep in the network, in ms.  Events end this sleep.  With threads,
 * other threads may wait for this one's return, so it is short, and shorter if this one
 * leaves the requests to them (without am).  Otherwise sleeps in vain become longer; they
 * end at all because a condition may be about memory that puts write.
 */
static ptl_time_t wait_nap_ms(const gasneti_wait_t *wait, bool am)
{
	if (GASNETI_THREADS)
		return am ? GASNETI_NAP_MS : 1;
	if (gasneti_get(&gasneti.unsent))
		return GASNETI_NAP_MS;
	uint32_t longer = wait->naps < LONGER_NAPS ? wait->naps : LONGER_NAPS;
	return (ptl_time_t)GASNETI_NAP_MS << longer;
}

/*
 * Sleep, and handle the event that ends this.  With requests, it may be one of AM_EQ:
 * return true then; the caller handles it, wakes the other threads, and gives back the
 * right to run a handler.
 */
bool gasneti_nap(gasneti_wait_t *wait, bool requests, ptl_event_t *ev)
{
	if (GASNETI_THREADS && !gasneti_cas(&gasneti.watcher, 0, 1)) {
		struct timespec ts = {0, GASNETI_NAP_MS * 1000000L};
		gasneti_seq_add(&gasneti.sleepers, 1);
		gasneti_futex_wait(&gasneti.generation, wait->generation, &ts);
		gasneti_seq_add(&gasneti.sleepers, UINT32_MAX);
		return false;
	}
	bool am =
		requests && !gasneti_acquire(&gasneti.leaving) && gasneti_handler_begin();
	ptl_handle_eq_t eqs[] = {
		gasneti.sys_eq, gasneti.safe_eq, gasneti.exit_eq, gasneti.am_eq};
	int queue, rc = PtlEQPoll(eqs, am ? 4 : 3, wait_nap_ms(wait, am), ev, &queue);
	if (rc == PTL_EQ_DROPPED && queue != 2)
		gasneti_fatal(
			"event queue %d overflowed: a defect of the conduit", queue);
	bool found = rc == PTL_OK || rc == PTL_EQ_DROPPED;
	wait->naps = found ? 0 : wait->naps + 1;
	/* Another thread watches while this one runs a handler, for any time. */
	if (GASNETI_THREADS) {
		gasneti_release(&gasneti.watcher, 0);
		gasneti_wake();
	}
	if (found && queue == 3)
		return true;
	if (found && queue == 0)
		gasneti_sys_event(ev);
	else if (found && queue == 1)
		gasneti_safe_event(ev);
	else if (found)
		gasneti_exit_event(ev);
	if (am)
		gasneti_handler_end();
	return false;
}

/* Return true if a thread that has just served n events, and has been idle for some time,
 * may sleep. */
GASNETI_HOT bool gasneti_may_sleep(gasneti_wait_t *wait, unsigned n)
{
	if (n) {
		wait->since = 0;
		return false;
	}
	int mode = gasneti_get(&gasneti.waitmode);
	if (mode == GASNET_WAIT_SPIN)
		return false;
	if (mode == GASNET_WAIT_BLOCK || (mode < 0 && gasneti.near > gasneti.cpus))
		return true;
	if (++wait->turns % CLOCK_EVERY)
		return false;
	uint64_t now = gasnett_ticks_now();
	if (!wait->since)
		wait->since = now;
	return now - wait->since >= SPIN_NS;
}

/* Serve an event of SAFE; sleep if there was nothing to do for some time. */
void gasneti_turn_safe(gasneti_wait_t *wait)
{
	ptl_event_t ev;
	if (gasneti_may_sleep(wait, gasneti_poll_one()))
		gasneti_nap(wait, false, &ev);
	if (GASNETI_THREADS)
		wait->generation = gasneti_seq_get(&gasneti.generation);
}

void gasneti_wait_init(gasneti_wait_t *wait)
{
	wait->since = 0;
	wait->turns = 0;
	wait->naps = 0;
	wait->generation = gasneti_seq_get(&gasneti.generation);
}

/* ---- waiting for the local side of an operation ---- */

/* Name memory in the modes that reproduce other networks (local.c). */
GASNETI_RARE void gasneti_local_take_otherwise(
	struct gasneti_local *local, void *addr, size_t nbytes, int way, bool whole)
{
	if (gasneti_bounce_try(local, addr, nbytes, way))
		return;
	if (gasneti.set.local == GASNETI_LOCAL_TMPMD) {
		gasneti_wait_for(safe, gasneti_tmpmd_try(local, addr, nbytes));
	} else if (gasneti.set.local == GASNETI_LOCAL_FIREHOSE) {
		size_t most = gasneti.set.fh_region - GASNET_PAGESIZE;
		size_t n = nbytes < most ? nbytes : most;
		struct gasneti_fh_span span = {0};
		if (whole && nbytes > most)
			gasneti_fatal("a Long payload of %zu bytes", nbytes);
		gasneti_wait_for(
			safe, gasneti_firehose_try(local, (uintptr_t)addr, n, &span));
	} else {
		*local = (struct gasneti_local){
			gasneti.any, (uintptr_t)addr - GASNETI_ANY_BASE, nbytes, 0};
	}
}
