/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The NIC's thread.
 *
 * The thread gives application bypass.  A dedicated thread always holds the lease and
 * runs passes.  Any other NIC thread sleeps, and runs passes in these cases:
 *
 *	tick	every tick_ns.  If no pass since the last tick has found the lanes empty
 *		(drained), and the lease is free, the thread takes over: it runs passes
 *		until one finds them empty or a host thread wants the lease.
 *	kick	a peer has waited long for this node to take a message: a tick at once.
 *	asleep	after P3_QUIET_TICKS ticks without work and with no host thread inside, or
 *		when a take-over has emptied all lanes, the thread arms the doorbell
 *		(P3_ASLEEP_NIC), and the next message wakes it at once.  It goes back to
 *		ticks when host threads have looked for messages more than P3_FEW_PASSES
 *		times within the length of a tick.
 *
 * Memory ordering:
 *	SEG.1	owner of the segment's header: released when the kernel knows the thread's
 *		robust list (set_robust_list) -> acquired by peers
 */
#define P3_LOG_AREA P3_AREA_NIC
#include "nic/run/lease.h"
#include "nic/cci/firmware.h"
#include "nic/generic/generic.h"
#include "shm/cpuset.h"
#include "shm/log.h"
#include "shm/process.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define P3_BUSY_TICK_NS 200000u
#define P3_QUIET_TICKS  5u
#define P3_DOZE_NS      100000u
#define P3_SHORT_HOLDS  64u /* yields of the CPU before a hold of the lease is long */

/* Dedication of the thread: it holds the lease and runs passes on a CPU of its own. */
struct thread_dedication {
	bool resting;          /* the thread ticks, since no message has come for long
				* (with PTL3_MODE=auto only) */
	uint64_t shared_until; /* the CPU is left to other threads until this time; 0: it
				* is not */
	uint64_t shared_ns;    /* length of the last such period */
	uint64_t began_ns;     /* begin of dedication */
	uint64_t looked_ns;    /* the last readings of the clocks: real time, */
	uint64_t ran_ns;       /* and CPU time of the thread */
};

struct nic_thread {
	struct p3_nic *n;
	uint64_t drained;   /* value at the last tick */
	uint64_t hosts;     /* looks of hosts when the window began */
	uint64_t window_ns; /* begin of the window */
	uint32_t quiet;     /* consecutive ticks without news */
	uint32_t safety_ns; /* longest sleep */
	bool busy;          /* a transfer or a full lane makes progress: look again
			     * soon */
	struct thread_dedication dedicated;
};

/* ---- a thread that has a CPU to itself ---- */

#define P3_TIGHT_TURNS 64u /* empty passes between offers of a CPU that may be shared */
#define P3_LOOK_TURNS  1024u
#define P3_TAKEN_NS    3000u      /* a longer yield means that another thread ran */
#define P3_REST_TURNS  (1u << 20) /* empty passes, some 50 ms */
#define P3_LOOK_NS     1000000u
#define P3_SHARED_NS   100000000u /* time away from a CPU that others need */
#define P3_SHARED_MOST 10000000000u
#define P3_LASTING_NS  1000000000u

static uint64_t dedicated_ran_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/*
 * Return true if another thread needs this CPU: then the host threads are better served
 * without dedication.  A dedicated thread never sleeps, so another thread has run
 * whenever this one has not.
 */
static bool dedicated_cpu_is_shared(struct thread_dedication *d)
{
	uint64_t now = p3_now_ns(), since = now - d->looked_ns;
	if (since < P3_LOOK_NS)
		return false;
	uint64_t ran = dedicated_ran_ns(), mine = ran - d->ran_ns;
	d->looked_ns = now;
	d->ran_ns = ran;
	return since > mine && since - mine > P3_LOOK_NS / 2;
}

/* Offer the CPU; return true if another thread took it. */
static bool dedicated_cpu_is_taken(void)
{
	uint64_t before = p3_now_ns();
	sched_yield();
	return p3_now_ns() - before > P3_TAKEN_NS;
}

/* Leave a shared CPU to others: for P3_SHARED_NS, or for twice as long as the last time
 * (P3_SHARED_MOST at most) if this thread was dedicated for less than P3_LASTING_NS
 * since. */
static void dedicated_end(struct thread_dedication *d)
{
	uint64_t now = p3_now_ns();
	bool lasted = now - d->began_ns > P3_LASTING_NS;
	d->shared_ns = lasted || !d->shared_ns ? P3_SHARED_NS : 2 * d->shared_ns;
	if (d->shared_ns > P3_SHARED_MOST)
		d->shared_ns = P3_SHARED_MOST;
	d->shared_until = now + d->shared_ns;
}

/* Hold the lease and run passes while no other thread needs the CPU. */
static void dedicated_run(struct p3_nic *n, struct thread_dedication *d)
{
	uint32_t turns = 0, empty = 0;
	if (!p3_lease_enter(n, P3_LEASE_NIC)) {
		sched_yield(); /* a host thread is about to leave */
		return;
	}
	d->began_ns = d->looked_ns = p3_now_ns();
	d->ran_ns = dedicated_ran_ns();
	while (!p3_get(&n->stop)) {
		empty = p3_pass_run(n) ? 0 : empty + 1;
		if (empty)
			p3_relax();
#ifdef P3_VALGRIND
		sched_yield();
#endif
		turns++;
		/* A single offer may take long because of an interrupt. */
		bool offer = n->tight && empty % P3_TIGHT_TURNS == 1;
		if ((offer && dedicated_cpu_is_taken() && dedicated_cpu_is_taken()) ||
			(turns % P3_LOOK_TURNS == 0 && dedicated_cpu_is_shared(d))) {
			dedicated_end(d);
			break;
		}
		if (turns % P3_LOOK_TURNS)
			continue;
		if (p3_unlikely(p3_get(&n->evfds)))
			p3_cci_event_remind(n);
		if (n->may_rest && empty > P3_REST_TURNS) {
			d->resting = true;
			break;
		}
		if (turns % 65536 == 0)
			p3_peer_sweep(n);
	}
	p3_lease_leave(n);
}

/* Return true if the thread shall be dedicated now. */
static bool dedicated_is_due(struct p3_nic *n, struct thread_dedication *d)
{
	if (n->conf.mode != P3_MODE_DEDICATED || d->resting)
		return false;
	if (d->shared_until && p3_now_ns() < d->shared_until)
		return false;
	d->shared_until = 0;
	return true;
}

/* ---- the doorbell ---- */

/* Arm the doorbell's word for this thread, before the last look; return its value. */
static uint32_t thread_arm(struct p3_nic *n)
{
	uint32_t word = P3_AWAKE;
	p3_set(&n->nic_asleep, 1);
	p3_set(&n->count[P3_G_NIC_ASLEEP], 1);
	/* Arm the word unless a watcher has armed it: no peer rings for a node whose
	 * word is AWAKE. */
	if (p3_cas32(n->asleep, &word, P3_ASLEEP_NIC))
		word = P3_ASLEEP_NIC;
	FAULT_POINT("nic.armed");
	p3_looks_fence(n, p3_fence_heavy); /* PARK.1, EVFD.3 */
	p3_peer_sweep(n);
	return word;
}

/* Disarm the word after the sleep.  Return false if another thread has done so. */
static bool thread_disarm(struct p3_nic *n)
{
	uint32_t was = P3_ASLEEP_NIC;
	p3_set(&n->nic_asleep, 0);
	p3_set(&n->count[P3_G_NIC_ASLEEP], 0);
	bool armed = p3_cas32(n->asleep, &was, P3_AWAKE);
	p3_fence(); /* PARK.1: the caller's passes are the last look */
	return armed;
}

/* ---- a node whose host matches ---- */

/*
 * No other thread runs the firmware of such a node (nic/generic/generic.h).  The NIC
 * thread runs passes, gives the lease up after each of them so that the host's thread can
 * match, and sleeps on the doorbell when there is nothing to do: peers, posters of
 * commands and the host's thread ring for it.
 */

#define THREAD_NAP_MOST                                                                  \
	2000000u /* longest sleep while work waits for which no peer rings */

static void generic_leave(struct p3_nic *n)
{
	p3_lease_leave(n);
	p3_interrupt_raise(n);
}

/* With the lease: arm the doorbell, look once more, give the lease up, and sleep.  Return
 * false if a time-out ended the sleep. */
static bool generic_sleep_until_rung(
	struct p3_nic *n, uint64_t safety_ns, uint64_t *nap_ns)
{
	uint32_t word = thread_arm(n);
	bool news = p3_pass_run(n) || p3_get(&n->stop);
	if (p3_get(&n->evfds))
		p3_cci_event_remind(n);
	p3_mirror_gauges(n, P3_LEASE_FREE);
	bool restless = n->generic->later || p3_wait_is_restless(n);
	if (restless)
		p3_wait_kick_idle(n);
	uint64_t ns = p3_cci_nap(
		n, p3_wait_longest_sleep(restless, safety_ns, THREAD_NAP_MOST, nap_ns));
	generic_leave(n);
	FAULT_POINT("nic.asleep");
	bool woken = news || p3_futex_wait(n->asleep, word, ns, P3_ASLEEP_NIC, true);
	(void)thread_disarm(n);
	return woken;
}

static void thread_run_generic(struct p3_nic *n)
{
	uint64_t reminded_ns = 0;
	struct p3_waiter idle = {0};
	uint32_t safety_ns = P3_SAFETY_NS;
	uint64_t nap_ns = 0;
	while (!p3_get(&n->stop)) {
		enum p3_idle what = P3_IDLE_SPIN;
		if (!p3_lease_enter_reserved(n, P3_LEASE_NIC)) {
			sched_yield(); /* the host's thread handles entries */
			continue;
		}
		if (p3_unlikely(p3_get(&n->evfds))) { /* once in a tick's time */
			uint64_t now = p3_now_ns();
			if (now - reminded_ns >= n->tick_ns) {
				reminded_ns = now;
				p3_cci_event_remind(n);
			}
		}
		if (p3_pass_run(n))
			p3_waiter_reset(&idle);
		else
			what = p3_waiter_turn(&idle, &n->idle);
		if (what == P3_IDLE_PARK) {
			bool woken = generic_sleep_until_rung(n, safety_ns, &nap_ns);
			safety_ns = woken ? P3_SAFETY_NS : p3_longer_timeout(safety_ns);
			if (woken)
				p3_waiter_reset(&idle);
			continue;
		}
		generic_leave(n);
		if (what == P3_IDLE_YIELD)
			p3_waiter_yield(&idle);
		else if (p3_get(&n->generic->wants))
			sched_yield();
	}
}

/* ---- passes ---- */

/* Return the number of passes that found no work, without those of threads that sleep on
 * a descriptor (evfd.h) after a look: no thread but this one runs the firmware then. */
static uint64_t thread_drained(struct p3_nic *n)
{
	return p3_get(&n->drained) - p3_get(&n->brief_looks);
}

/* Run one pass, and count it in nic_drained if it has found no work. */
static bool thread_pass(struct nic_thread *t)
{
	bool worked = p3_pass_run(t->n);
	if (!worked)
		p3_count(&t->n->nic_drained, 1); /* n->drained counts the same pass */
	return worked;
}

/* Run passes until no work is left, or a host wants to run them itself. */
static bool thread_run_passes(struct nic_thread *t)
{
	struct p3_nic *n = t->n;
	struct p3_waiter idle = {0};
	bool worked = false;
	uint32_t want;
	for (;;) {
		bool now = thread_pass(t);
		worked |= now;
		want = p3_get(&n->lease.want);
		if (want == P3_WANT_LEASE || p3_get(&n->stop))
			break;
		if (now)
			p3_waiter_reset(&idle);
		else if (!worked || want || p3_get(&n->evfds) ||
			 p3_waiter_turn(&idle, &n->idle) != P3_IDLE_SPIN)
			break;
	}
	if (want != P3_WANT_NONE) /* a host looked: one pass counts as the host's */
		p3_count(&n->nic_drained, (uint64_t)-1);
	p3_set(&n->lease.want, P3_WANT_NONE);
	t->drained = thread_drained(n);
	return worked;
}

/* ---- sleep ---- */

/* Return true if a host thread will run the firmware.  Where programs sleep on
 * descriptors a wait is mostly one for this thread's lease, and soon over;
 * thread_hosts_poll() tells the others. */
static bool thread_host_is_inside(struct p3_nic *n)
{
	return p3_get(&n->waiting) && !p3_get(&n->watcher) && !p3_get(&n->evfds);
}

/* Arm the doorbell, look once more, give up the lease, which the caller holds, and sleep.
 * Return false if a time-out ended the sleep. */
static bool thread_sleep_until_rung(struct nic_thread *t)
{
	struct p3_nic *n = t->n;
	uint32_t word = thread_arm(n);
	bool news = thread_pass(t) || p3_get(&n->stop);
	if (p3_unlikely(p3_get(&n->evfds)))
		p3_cci_event_remind(n);
	p3_lease_leave(n);
	FAULT_POINT("nic.asleep");
	P3_TRACE(host, n, P3_TRACE_PARK, 1, 0);
	t->drained = thread_drained(n);
	bool woken = news || p3_futex_wait(n->asleep, word, p3_cci_nap(n, t->safety_ns),
				     P3_ASLEEP_NIC, true);
	P3_TRACE(host, n, P3_TRACE_WAKE, 1, 0);
	t->safety_ns = woken ? P3_SAFETY_NS : p3_longer_timeout(t->safety_ns);
	return !thread_disarm(n) || woken;
}

/* Return true if a request waits in its lane for the program to begin (P3_SETTLING_NS
 * in deliver.c), and the program has yet to serve one of its open interfaces. */
static bool thread_is_settling(struct p3_nic *n)
{
	bool begun = true;
	if (!n->settling_until || p3_now_ns() >= n->settling_until)
		return false;
	for (uint32_t i = 0; i < P3_JOB_NIS; i++)
		if (p3_get(&n->ni[i].gen) & 1)
			begun &= p3_get(&n->ni[i].attended) != 0;
	return !begun;
}

/* Return true if work waits without a doorbell: for room in a lane, for a match entry
 * of a waiting request, or for frames that a wire must send once more while no thread
 * rings for it. */
static bool thread_is_blocked(struct p3_nic *n)
{
	return !p3_list_empty(&n->blocked) || p3_wire_thread_misses(n) ||
	       thread_is_settling(n);
}

/* Serve messages after a doorbell or a time-out has ended the sleep; the caller holds the
 * lease.  Return true if the thread may sleep again. */
static bool thread_serve(struct nic_thread *t, bool rung)
{
	struct p3_nic *n = t->n;
	bool worked = thread_run_passes(t);
	/* Count work that a time-out has found: a peer should have rung for it.  A
	 * timer of CCI ends sleeps early, and its work is no message. */
	if (worked && !rung && !p3_get(&n->cci.due_ns))
		p3_count(&n->count[P3_C_PARK_LATE], 1);
	if (!rung)
		p3_mirror_gauges(n, P3_LEASE_FREE);
	t->busy = !p3_list_empty(&n->pulls) || (worked && thread_is_blocked(n));
	if (t->dedicated.resting && worked) {
		t->dedicated.resting = false;
		return false;
	}
	return !t->busy && !thread_is_blocked(n) && !thread_host_is_inside(n) &&
	       !p3_get(&n->stop);
}

static void thread_begin_window(struct nic_thread *t, uint64_t hosts)
{
	t->hosts = hosts;
	t->window_ns = p3_now_ns();
}

/*
 * Return true if host threads have looked for messages more than P3_FEW_PASSES times
 * within a tick.  Where nodes share a CPU and yield to each other, a host thread looks
 * once or twice for each message.  So the count goes on when a message ends the sleep,
 * until a tick's time has passed.
 */
static bool thread_hosts_poll(struct nic_thread *t)
{
	uint64_t hosts = thread_drained(t->n) - p3_get(&t->n->nic_drained);
	bool poll =
		(int64_t)(hosts - t->hosts) > P3_FEW_PASSES; /* or counts overlapped */
	if (p3_now_ns() - t->window_ns > t->n->tick_ns)
		thread_begin_window(t, hosts);
	return poll;
}

/* Take the lease.  A program that sleeps on a descriptor, and that this thread has just
 * woken, holds it for a short time, and then sleeps again: only this thread serves its
 * next message then. */
static bool thread_enter_behind_sleepers(struct p3_nic *n)
{
	uint32_t left = p3_get(&n->evfds) ? P3_SHORT_HOLDS : 1;
	bool entered = p3_lease_enter(n, P3_LEASE_NIC);
	while (!entered && --left) {
		sched_yield();
		entered = p3_lease_enter(n, P3_LEASE_NIC);
	}
	return entered;
}

/*
 * With the lease: before a sleep, run passes for a while, and yield the CPU between them.
 * The next message for a program that sleeps on a handle often comes soon, and to wake
 * a thread on an idle CPU takes longer than these passes.  Return true without the lease
 * if a message came, or if another thread has the lease for long; false with the lease.
 */
static bool thread_doze(struct nic_thread *t)
{
	struct p3_nic *n = t->n;
	if (!p3_get(&n->evfds))
		return false;
	uint64_t until = p3_now_ns() + P3_DOZE_NS;
	while (p3_now_ns() < until && !p3_get(&n->stop)) {
		p3_lease_leave(n);
		sched_yield();
		if (!thread_enter_behind_sleepers(n))
			return true;
		if (thread_pass(t)) {
			p3_lease_leave(n);
			return true;
		}
	}
	return false;
}

/* Sleep, and serve the messages that wake this thread, until a host thread polls or
 * waits.  Return without the lease. */
static void thread_stay_asleep(struct nic_thread *t)
{
	struct p3_nic *n = t->n;
	bool again = true;
	t->quiet = 0;
	thread_begin_window(t, thread_drained(n) - p3_get(&n->nic_drained));
	while (again) {
		bool rung = thread_doze(t) || thread_sleep_until_rung(t);
		/* Stop sleeping here if hosts poll: while the doorbell is armed, each
		 * message makes its sender ring, which costs a system call. */
		bool poll = thread_hosts_poll(t);
		if (!thread_enter_behind_sleepers(n))
			return;
		again = thread_serve(t, rung) && !poll;
	}
	p3_lease_leave(n);
}

/* ---- ticks ---- */

static void thread_tick(struct nic_thread *t)
{
	struct p3_nic *n = t->n;
	if (p3_unlikely(p3_get(&n->evfds)) && p3_lease_enter(n, P3_LEASE_NIC)) {
		/* Remind the sleepers of OS handles, also while hosts run the
		 * firmware. */
		p3_cci_event_remind(n);
		p3_lease_leave(n);
	}
	p3_count(&n->count[P3_C_TICKS], 1);
	p3_set(&n->emptied, 0); /* the pass that set this word may be long over */
	bool idle = thread_drained(n) == t->drained || p3_cci_timer_is_due(n);
	if (!idle || !p3_lease_enter(n, P3_LEASE_NIC)) {
		t->drained = thread_drained(n);
		t->quiet = 0;
		t->busy = false;
		return;
	}
	FAULT_POINT("nic.took_over");
	bool worked = thread_run_passes(t);
	p3_mirror_gauges(n, P3_LEASE_FREE);
	if (worked) {
		t->dedicated.resting = false;
		p3_count(&n->count[P3_C_TAKEOVERS], 1);
	}
	t->quiet = worked ? P3_QUIET_TICKS : t->quiet + 1;
	t->busy = !p3_list_empty(&n->pulls) || (worked && thread_is_blocked(n));
	if (t->busy || thread_is_blocked(n) || thread_host_is_inside(n) ||
		t->quiet < P3_QUIET_TICKS)
		p3_lease_leave(n);
	else
		thread_stay_asleep(t);
}

/* ---- start ---- */

/*
 * Make the word owner of the header a robust futex, on which no thread waits: when this
 * thread ends, by the end of the process, by a signal or by exec, the kernel marks the
 * word before it frees the memory, and then the process id.
 */
static void thread_set_robust_list(struct p3_nic *n)
{
	struct p3_seg_header *h = n->published.base;
	n->robust_entry.next = &n->robust_head.list;
	n->robust_head.list.next = &n->robust_entry;
	n->robust_head.futex_offset = (char *)&h->owner - (char *)&n->robust_entry;
	n->robust_head.list_op_pending = NULL;
	if (syscall(SYS_set_robust_list, &n->robust_head, sizeof n->robust_head) == 0)
		p3_release(&h->owner, (uint32_t)syscall(SYS_gettid)); /* SEG.1 */
}

static void *thread_main(void *arg)
{
	struct nic_thread t = {.n = arg, .safety_ns = P3_SAFETY_NS};
	struct p3_nic *n = arg;
	char name[16], list[128];
	thread_set_robust_list(n);
	snprintf(name, sizeof name, "p3nic.%u", n->conf.nid);
	int rc = n->conf.nic_cpus ? p3_cpuset_apply(n->conf.nic_cpus) : 0;
	if (rc) {
		p3_cpulist_print(n->conf.nic_cpus, list, sizeof list);
		p3_warn("the NIC thread cannot run on CPUs %s: %s; it runs where the "
			"thread does that called PtlNIInit; see PTL3_NIC_CPUS, "
			"taskset -p, cpuset cgroups",
			list, strerror(-rc));
	}
	(void)prctl(PR_SET_NAME, name); /* named only when its CPUs are set */
	p3_worker_run_briefly();
	p3_set(&n->count[P3_G_NIC_TID], (uint64_t)syscall(SYS_gettid));
	if (n->generic)
		thread_run_generic(n);
	while (!p3_get(&n->stop)) {
		if (dedicated_is_due(n, &t.dedicated)) {
			dedicated_run(n, &t.dedicated);
			continue;
		}
		uint32_t kicks = p3_get(&n->doorbell->kick);
		uint64_t ns = p3_cci_nap(n, t.busy ? P3_BUSY_TICK_NS : n->tick_ns);
		(void)p3_futex_wait(&n->doorbell->kick, kicks, ns, ~0u, true);
		if (!p3_get(&n->stop))
			thread_tick(&t);
	}
	p3_set(&((struct p3_seg_header *)n->published.base)->owner, 0);
	return NULL;
}

int p3_thread_start(struct p3_nic *n)
{
	return p3_worker_start(&n->thread, thread_main, n);
}
