/* SPDX-License-Identifier: BSD-3-Clause */
/* A host thread's wait: passes, then yields of the CPU, then sleep on the doorbell. */
#include "nic/run/lease.h"
#include "nic/cci/firmware.h"
#include "shm/trace.h"

#include <sched.h>

struct wait {
	struct p3_waiter idle;
	struct p3_idle_policy policy;
	bool held;          /* this thread holds the lease */
	uint64_t since;     /* 0: the clock was not read yet */
	uint64_t deadline;  /* UINT64_MAX: no limit */
	uint64_t kick_wait; /* time until the next kick */
	bool unlooked;      /* the doorbell was armed for the NIC thread, without a
			     * full look since */
	bool dozes;         /* the last sleep ended without news */
	bool slept;
	bool others_poll; /* other threads have run passes during the last sleep */
	uint32_t news;    /* bits of the news that this thread waits for */
	const struct p3_wants *wants;
	struct p3_wait_line *line; /* shows the wait to tools; NULL: no line */
	uint64_t nap_ns;           /* longest sleep while a peer may need a kick */
	uint32_t safety_ns;        /* longest sleep otherwise */
};

#define WAIT_NAP_NS   100000u
#define WAIT_NAP_MOST 10000000u
#define P3_KICK_MOST  10000000u
/* a wait yields for this part of its time at most, and for this time at least */
#define P3_YIELDS_OF       16u
#define P3_YIELDS_LEAST_NS 250000u
/* Two yields of this time or more, with less time between them, give the CPU to other
 * programs.  Waits do not yield then for P3_HOGGED_TIMES the length of the second one.
 * After P3_VAIN_SPINS waits that have spun in vain, only one in P3_SPIN_AGAIN spins. */
#define P3_HOGGED_NS    1000000u
#define P3_HOGGED_TIMES 64u
#define P3_VAIN_SPINS   4u
#define P3_SPIN_AGAIN   64u

/* ---- kicks ---- */

static bool wait_is_unread(struct p3_peer *p, const struct p3_ring_tx *r)
{
	return p3_peer_has_acked(p) && p3_acquire(r->credit) != r->pos; /* LANE.2 */
}

bool p3_wait_is_restless(struct p3_nic *n)
{
	if (!p3_list_empty(&n->pulls) || !p3_list_empty(&n->blocked))
		return true;
	if (p3_wire_thread_misses(n))
		return true;
	/* A wire with a thread needs no kicks: it sends untaken frames once more. */
	bool rung = p3_wire_thread_serves(n);
	for (uint32_t i = 0; i < n->nhot; i++) {
		struct p3_peer *p = n->hot[i];
		if (!(rung && p->wire->poll) && (wait_is_unread(p, &p->req_out) ||
							wait_is_unread(p, &p->rsp_out)))
			return true;
	}
	return false;
}

void p3_wait_kick_idle(struct p3_nic *n)
{
	uint64_t now = p3_now_ns();
	for (uint32_t i = 0; i < n->nhot; i++) {
		struct p3_peer *p = n->hot[i];
		if (p->index == n->conf.node || now - p->kick_ns < p->kick_wait_ns)
			continue;
		if (!wait_is_unread(p, &p->req_out) && !wait_is_unread(p, &p->rsp_out)) {
			p->kick_wait_ns = 0;
			continue;
		}
		p->kick_ns = now;
		p->kick_wait_ns = 2 * p->kick_wait_ns + P3_KICK_NS;
		if (p->kick_wait_ns > P3_KICK_MOST)
			p->kick_wait_ns = P3_KICK_MOST;
		p3_wake_kick(n, p);
	}
}

/* ---- passes ---- */

static void wait_let_go(struct p3_nic *n, struct wait *w)
{
	if (w->held)
		p3_lease_leave(n);
	w->held = false;
}

/* Run passes until one finds nothing: the look that is needed after this thread has
 * armed the doorbell for the NIC thread. */
static bool wait_look_whole(struct p3_nic *n, struct wait *w)
{
	bool worked = false;
	for (uint32_t turn = 0; turn < P3_WHOLE_TURNS && w->unlooked;
		turn += p3_pass_share(n)) {
		w->unlooked = p3_pass_run(n);
		worked |= w->unlooked;
	}
	return worked;
}

/* Try once to make progress.  Return true if something happened. */
static bool wait_progress(struct p3_nic *n, struct wait *w)
{
	if (!w->held)
		w->held = p3_lease_enter(n, P3_LEASE_HOST);
	if (w->held)
		return p3_unlikely(w->unlooked) ? wait_look_whole(n, w) : p3_pass_run(n);
	if (p3_get(&n->lease.want) != P3_WANT_LEASE)
		p3_set(&n->lease.want, P3_WANT_LEASE);
	FAULT_POINT("lease.wanted");
	return false;
}

/* Kick a peer whose answer is late, to make sure that it is awake. */
static void wait_maybe_kick(struct p3_nic *n, struct wait *w, uint64_t now)
{
	if (!w->since) {
		w->since = now;
		w->kick_wait = n->kick_after_ns;
	}
	if (!w->held || now - w->since < w->kick_wait)
		return;
	w->kick_wait *= 2;
	p3_wait_kick_idle(n);
}

/* ---- sleep ---- */

static uint64_t wait_sleep_ns(const struct wait *w, uint64_t most)
{
	if (w->deadline == UINT64_MAX)
		return most;
	uint64_t now = p3_now_ns();
	uint64_t left = w->deadline > now ? w->deadline - now : 0;
	return left < most ? left : most;
}

uint64_t p3_wait_longest_sleep(
	bool restless, uint64_t safety_ns, uint64_t most_ns, uint64_t *nap_ns)
{
	*nap_ns = !restless ? 0 : *nap_ns ? 2 * *nap_ns : WAIT_NAP_NS;
	if (*nap_ns > most_ns)
		*nap_ns = most_ns;
	return restless ? *nap_ns : safety_ns;
}

/* Disarm the doorbell's word, which this thread has armed; arm it for the NIC thread if
 * the NIC thread sleeps.  Return false if a peer has rung. */
static bool wait_disarm(struct p3_nic *n, struct wait *w)
{
	uint32_t was = P3_ASLEEP_HOST, awake = P3_AWAKE;
	bool unrung = p3_cas32(n->asleep, &was, P3_AWAKE);
	/* Clear the flag last: from then on another thread may arm the word as watcher,
	 * and this thread must not disarm that. */
	p3_set(&n->watcher, 0);
	p3_fence(); /* PARK.1: the NIC thread may have gone to sleep on the old word */
	if (p3_get(&n->parked) > 1)
		p3_looks_fence(n, p3_fence_heavy_here); /* LEASE.2 */
	w->unlooked = p3_get(&n->nic_asleep);
	if (w->unlooked)
		(void)p3_cas32(n->asleep, &awake, P3_ASLEEP_NIC);
	if (w->unlooked)
		p3_looks_fence(n, p3_fence_heavy); /* PARK.1: the next pass looks */
	return unrung;
}

/* Sleep on the doorbell, so that a peer's message wakes this thread.  Return true if a
 * message ended the sleep or prevented it.  After a time-out, or a wake-up for the wire,
 * return false: then this thread sleeps again without yielding first if its passes find
 * no message. */
static bool wait_sleep_as_watcher(
	struct p3_nic *n, struct wait *w, bool (*ready)(void *), void *arg)
{
	p3_set(&n->watcher, w->news);
	p3_set(n->asleep, P3_ASLEEP_HOST);
	p3_looks_fence(n, p3_fence_heavy); /* PARK.1 */
	FAULT_POINT("park.armed");
	p3_peer_sweep(n);
	bool news = p3_pass_run(n) || ready(arg) || p3_get(&n->closing);
	uint64_t most = p3_wait_longest_sleep(
		p3_wait_is_restless(n), w->safety_ns, WAIT_NAP_MOST, &w->nap_ns);
	uint64_t ns = p3_cci_nap(n, wait_sleep_ns(w, most));
	uint32_t rung = p3_get(&n->rung);
	wait_let_go(n, w);
	FAULT_POINT("park.asleep");
	bool woken = news ||
		     p3_futex_wait(n->asleep, P3_ASLEEP_HOST, ns, P3_ASLEEP_HOST, true);
	if (wait_disarm(n, w) && !woken && ns == w->safety_ns) {
		/* Count work of this pass: a peer should have rung for it. */
		w->held = p3_lease_enter(n, P3_LEASE_HOST);
		if (w->held && p3_pass_run(n))
			p3_count(&n->count[P3_C_PARK_LATE], 1);
	}
	return woken && p3_get(&n->rung) == rung;
}

/* Return true if another thread runs the firmware, or watches the doorbell while the
 * mailbox is empty. */
static bool wait_is_tended(struct p3_nic *n)
{
	if (p3_lease_held_by(&n->lease) != P3_LEASE_FREE)
		return true;
	return p3_get(&n->watcher) && !p3_mbx_any(n->mailbox); /* MBX.4 */
}

/* Count a time-out behind which there is news although no thread has told of it: an
 * event, or a message while no thread tends the node. */
static void wait_count_late(
	struct p3_nic *n, struct wait *w, bool (*ready)(void *), void *arg)
{
	bool found = ready(arg);
	if (!found && !wait_is_tended(n) && p3_get(n->asleep) == P3_AWAKE) {
		w->held = p3_lease_enter(n, P3_LEASE_HOST);
		found = w->held && p3_pass_run(n);
	}
	if (found)
		p3_count(&n->count[P3_C_PARK_LATE], 1);
}

/* Sleep while another thread runs the firmware, or watches the doorbell, until it wakes
 * this one: for news, or to tend the node unless this thread naps. */
static bool wait_sleep_for_news(
	struct p3_nic *n, struct wait *w, bool naps, bool (*ready)(void *), void *arg)
{
	uint32_t seen = p3_acquire(&n->news);
	wait_let_go(n, w);
	p3_looks_fence(n, p3_fence_heavy_here); /* PARK.1, LEASE.2, MBX.4 */
	FAULT_POINT("park.for_news");
	if ((!naps && !wait_is_tended(n)) || ready(arg) || p3_get(&n->closing))
		return true;
	uint64_t ns = wait_sleep_ns(w, naps ? P3_SAFETY_NS : w->safety_ns);
	bool woken = p3_futex_wait(
		&n->news, seen, ns, naps ? w->news : w->news | P3_NEWS_TENDING, false);
	if (!woken && ns == w->safety_ns && p3_get(&n->news) == seen)
		wait_count_late(n, w, ready, arg);
	return woken;
}

/* Count this thread among those that are parked, or take it from there. */
static void wait_count_parked(struct p3_nic *n, uint32_t news, uint32_t one)
{
	for (uint32_t left = news; left; left &= left - 1)
		p3_add32(&n->sleepers[__builtin_ctz(left)], one);
	p3_add32(&n->parked, one);
}

/* Return the number of looks of host threads that found no message. */
static uint64_t wait_looks_of_hosts(struct p3_nic *n)
{
	return p3_get(&n->drained) - p3_get(&n->nic_drained);
}

/* Return true if this thread is alone in its wait, so that all news are for it. */
static bool wait_is_alone(const struct p3_nic *n, const struct wait *w)
{
	return w->wants->kind != P3_WAIT_EVENT || p3_get(&n->waiting) == 1;
}

/*
 * Sleep.  Where other host threads have looked for messages during the last sleep, sleep
 * for news only, and leave the node to them and to the ticks of the NIC thread: a thread
 * that watched would make each message ring, and one that took over whenever another
 * leaves would be woken for each message.
 */
static P3_RARE void wait_park(
	struct p3_nic *n, struct wait *w, bool (*ready)(void *), void *arg)
{
	/* A poster does not nap: it has to see to its command itself. */
	bool naps = w->others_poll && w->wants->kind == P3_WAIT_EVENT && !n->generic &&
		    p3_lease_held_by(&n->lease) != P3_LEASE_NIC;
	bool watch = !naps && w->held && !p3_get(&n->watcher);
	w->news = w->wants->kind == P3_WAIT_EVENT ? 0 : P3_NEWS_RESULT;
	for (uint32_t i = 0; w->wants->kind == P3_WAIT_EVENT && i < w->wants->n; i++)
		w->news |= p3_news_of_queue(w->wants->handles[i]);
	const uint32_t parked_for = naps ? w->news : w->news | P3_NEWS_TENDING;
	const uint64_t looks = wait_looks_of_hosts(n);
	wait_count_parked(n, parked_for, 1);
	if (w->dozes && !w->line) /* show the wait and the gauges to tools */
		w->line = p3_mirror_wait(n, w->wants, w->since, w->deadline);
	if (w->dozes && w->held)
		p3_mirror_gauges(n, P3_LEASE_FREE);
	P3_PROBE1(park, n->conf.nid);
	P3_TRACE(host, n, P3_TRACE_PARK, 0, 0);
	w->slept = true;
	bool woken = watch ? wait_sleep_as_watcher(n, w, ready, arg)
			   : wait_sleep_for_news(n, w, naps, ready, arg);
	wait_count_parked(n, parked_for, (uint32_t)-1);
	w->others_poll =
		(int64_t)(wait_looks_of_hosts(n) - looks) > (int64_t)P3_FEW_PASSES;
	P3_PROBE1(wake, n->conf.nid);
	P3_TRACE(host, n, P3_TRACE_WAKE, 0, 0);
	FAULT_POINT("park.woken");
	/* After a time-out the waiter is not reset, so this thread sleeps again without
	 * yielding first: idle nodes leave the CPU to others. */
	w->dozes = !woken;
	if (woken && wait_is_alone(n, w))
		p3_waiter_reset(&w->idle);
	if (!naps)
		w->safety_ns = woken ? P3_SAFETY_NS : p3_longer_timeout(w->safety_ns);
}

/* ---- other programs that want the CPU ---- */

/*
 * A program that computes keeps the CPU that a yield gives it for milliseconds, and a
 * thread that spins or yields comes behind all such programs.  A thread that sleeps has
 * not used up its time, so the kernel lets it run as soon as it is woken.  Where nodes of
 * the job share CPUs they yield to each other all the same.
 */

/* Return how this wait spins and yields. */
static P3_RARE struct p3_idle_policy wait_hogged_policy(struct p3_nic *n)
{
	uint32_t vain = p3_get(&n->vain_spins);
	if (p3_now_ns() >= p3_get(&n->hogged_until)) {
		p3_set(&n->hogged_until, 0);
		return n->idle;
	}
	bool spin = vain < P3_VAIN_SPINS || vain % P3_SPIN_AGAIN == 0;
	return (struct p3_idle_policy){spin ? n->idle.spin_ns : 0, 0};
}

static inline bool wait_is_hogged(const struct p3_nic *n)
{
	return p3_unlikely(p3_get(&n->hogged_until) != 0);
}

/* End the yields of this wait, and of those to come, if other programs took the CPU for
 * half of the time or more.  Those of low priority take it now and then only. */
static void wait_learn_from_yield(struct p3_nic *n, struct wait *w, uint64_t took)
{
	if (n->crowded || took < P3_HOGGED_NS)
		return;
	uint64_t between = w->idle.now - took - p3_get(&n->taken_ns);
	p3_set(&n->taken_ns, w->idle.now);
	if ((int64_t)(between - took) > 0) /* or another thread's yield ended later */
		return;
	w->policy.yield_ns = 0;
	p3_set(&n->vain_spins, 0);
	p3_set(&n->hogged_until, w->idle.now + P3_HOGGED_TIMES * took);
}

/* Count the waits that have slept, and so have spun in vain. */
static P3_RARE void wait_learn(struct p3_nic *n, const struct wait *w)
{
	p3_set(&n->vain_spins, w->slept ? p3_get(&n->vain_spins) + 1 : 0);
}

/* ---- the wait ---- */

/* Spend a turn in which nothing was found.  Return false when the deadline has passed. */
static bool wait_idle(struct p3_nic *n, struct wait *w, bool (*ready)(void *), void *arg)
{
	enum p3_idle what = p3_waiter_turn(&w->idle, &w->policy);
	if (what == P3_IDLE_SPIN && w->idle.turns % 64)
		return true; /* no pause: it would cost as much as half a message */
	uint64_t now = w->idle.now;
	if (now >= w->deadline)
		return false;
	wait_maybe_kick(n, w, now);
	/* A wait yields for a part of the time until its deadline, and sleeps for the
	 * rest. A thread that waits for less than P3_YIELD_NS again and again would
	 * otherwise never sleep while other threads want its CPU. */
	uint64_t since = w->idle.since, yielded = now - since;
	bool enough = yielded >= P3_YIELDS_LEAST_NS &&
		      yielded >= (w->deadline - since) / P3_YIELDS_OF;
	if (what == P3_IDLE_YIELD && !enough) {
		wait_let_go(n, w);
		wait_learn_from_yield(n, w, p3_waiter_yield(&w->idle));
	} else if (what != P3_IDLE_SPIN) {
		wait_park(n, w, ready, arg);
	}
	return true;
}

/*
 * Return true if a wait is to begin with a yield of the CPU, because the last pass
 * emptied every lane and sent all replies: the next pass would find nothing while the
 * nodes that will answer wait for this CPU.
 */
static inline bool wait_must_others_answer(const struct p3_nic *n)
{
	return p3_get(&n->emptied) && n->idle.yield_ns;
}

P3_PATH
void p3_wait_in_turn(struct p3_nic *n)
{
	if (!wait_must_others_answer(n))
		return;
	p3_add32(&n->waiting, 1);
	sched_yield();
	if (!p3_get(&n->closing) && p3_lease_enter(n, P3_LEASE_HOST)) {
		(void)p3_pass_run(n);
		p3_lease_leave(n);
	}
	p3_add32(&n->waiting, (uint32_t)-1);
}

P3_PATH
bool p3_wait_until(struct p3_nic *n, uint64_t ns, const struct p3_wants *wants,
	bool (*ready)(void *), void *arg)
{
	struct wait w = {.deadline = ns == UINT64_MAX ? ns : p3_now_ns() + ns,
		.policy = wait_is_hogged(n) ? wait_hogged_policy(n) : n->idle,
		.wants = wants,
		.safety_ns = P3_SAFETY_NS};
	bool is_ready = false, look = true;
	p3_add32(&n->waiting, 1);
	if (wants->kind == P3_WAIT_EVENT && wait_must_others_answer(n))
		sched_yield();
	for (;;) {
		bool worked = wait_progress(n, &w);
		/* While this thread holds the lease, only its own passes bring news:
		 * after one that found no work it need not look. */
		if ((worked || look) && (is_ready = ready(arg)))
			break;
		if (p3_get(&n->closing))
			break;
		if (worked && (!w.slept || wait_is_alone(n, &w)))
			p3_waiter_reset(&w.idle);
		else if (!worked && !wait_idle(n, &w, ready, arg))
			break;
		look = !w.held;
	}
	wait_let_go(n, &w);
	p3_mirror_waited(w.line);
	if (wait_is_hogged(n))
		wait_learn(n, &w);
	/* If this thread leaves without the look that an armed doorbell needs, the NIC
	 * thread does it. */
	uint32_t was = P3_ASLEEP_NIC;
	if ((w.unlooked || p3_get(&n->closing)) && p3_cas32(n->asleep, &was, P3_AWAKE))
		p3_futex_wake(n->asleep, P3_ASLEEP_NIC, true);
	p3_add32(&n->waiting, (uint32_t)-1);
	return is_ready || ready(arg);
}
