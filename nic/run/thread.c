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
#include "nic/run/thread.h"
#include "nic/cci/event.h"
#include "nic/cci/timer.h"
#include "nic/proto/peer.h"
#include "nic/report/mirror.h"
#include "nic/run/alone.h"
#include "nic/run/dedicated.h"
#include "nic/run/lease.h"
#include "nic/run/looks.h"
#include "nic/run/pass.h"
#include "nic/run/ringer.h"
#include "nic/run/wait.h"
#include "shm/cpuset.h"
#include "shm/log.h"
#include "shm/process.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define P3_BUSY_TICK_NS 200000u
#define P3_QUIET_TICKS  5u
#define P3_DOZE_NS      100000u
#define P3_SHORT_HOLDS  64u /* yields of the CPU before a hold of the lease is long */

struct nic_thread {
	struct p3_nic *n;
	uint64_t drained;   /* value at the last tick */
	uint64_t hosts;     /* looks of hosts when the window began */
	uint64_t window_ns; /* begin of the window */
	uint32_t quiet;     /* consecutive ticks without news */
	uint32_t safety_ns; /* longest sleep */
	bool busy;          /* a transfer or a full lane makes progress: look again
			     * soon */
	struct p3_dedicated dedicated;
};

/* ---- settings of the thread ---- */

static void warn_no_cpus(const struct p3_nic *n, int why)
{
	char list[128];
	p3_cpulist_print(n->conf.nic_cpus, list, sizeof list);
	p3_warn("the NIC thread cannot run on CPUs %s: %s; it runs where the thread does "
		"that called PtlNIInit; see PTL3_NIC_CPUS, taskset -p, cpuset cgroups",
		list, strerror(why));
}

static void set_up_thread(struct p3_nic *n)
{
	char name[16];
	snprintf(name, sizeof name, "p3nic.%u", n->conf.nid);
	int rc = n->conf.nic_cpus ? p3_cpuset_apply(n->conf.nic_cpus) : 0;
	if (rc)
		warn_no_cpus(n, -rc);
	(void)prctl(PR_SET_NAME, name); /* named only when its CPUs are set */
	p3_worker_run_briefly();
}

/* ---- passes ---- */

/* Return the number of passes that found no work, without those of threads that sleep on
 * an OS handle after a look: no thread but this one runs the firmware then. */
static uint64_t drained(struct p3_nic *n)
{
	return p3_get(&n->drained) - p3_get(&n->cci.brief_looks);
}

/* Run one pass, and count it in nic_drained if it has found no work. */
static bool pass(struct nic_thread *t)
{
	bool worked = p3_pass_run(t->n);
	if (!worked)
		p3_count(&t->n->nic_drained, 1); /* n->drained counts the same pass */
	return worked;
}

/* Run passes until no work is left, or a host wants to run them itself. */
static bool run_passes(struct nic_thread *t)
{
	struct p3_nic *n = t->n;
	struct p3_waiter idle = {0};
	bool worked = false;
	uint32_t want;
	for (;;) {
		bool now = pass(t);
		worked |= now;
		want = p3_get(&n->lease.want);
		if (want == P3_WANT_LEASE || p3_get(&n->stop))
			break;
		if (now)
			p3_waiter_reset(&idle);
		else if (!worked || want || p3_get(&n->cci.handles) ||
			 p3_waiter_turn(&idle, &n->idle) != P3_IDLE_SPIN)
			break;
	}
	if (want != P3_WANT_NONE) /* a host looked: one pass counts as the host's */
		p3_count(&n->nic_drained, (uint64_t)-1);
	p3_set(&n->lease.want, P3_WANT_NONE);
	t->drained = drained(n);
	return worked;
}

/* ---- sleep ---- */

/* Return true if a host thread will run the firmware.  Where programs sleep on OS handles
 * a wait is mostly one for this thread's lease, and soon over; hosts_poll() tells the
 * others. */
static bool host_is_inside(struct p3_nic *n)
{
	return p3_get(&n->waiting) && !p3_get(&n->watcher) && !p3_get(&n->cci.handles);
}

/* Arm the doorbell, look once more, give up the lease, which the caller holds, and sleep.
 * Return false if a time-out ended the sleep. */
static bool sleep_until_rung(struct nic_thread *t)
{
	struct p3_nic *n = t->n;
	uint32_t word = P3_AWAKE, was = P3_ASLEEP_NIC;
	p3_set(&n->nic_asleep, 1);
	p3_set(&n->count[P3_G_NIC_ASLEEP], 1);
	/* Arm the word unless a watcher has armed it: no peer rings for a node whose
	 * word is AWAKE. */
	if (p3_cas32(n->asleep, &word, P3_ASLEEP_NIC))
		word = P3_ASLEEP_NIC;
	FAULT_POINT("nic.armed");
	p3_looks_fence(n, p3_fence_heavy); /* PARK.1, CCIFD.3 */
	p3_peer_sweep(n);
	bool news = pass(t) || p3_get(&n->stop);
	if (p3_unlikely(p3_get(&n->cci.handles)))
		p3_cci_event_remind(n);
	p3_lease_leave(n);
	FAULT_POINT("nic.asleep");
	P3_TRACE(host, n, P3_TRACE_PARK, 1, 0);
	t->drained = drained(n);
	bool woken = news || p3_futex_wait(n->asleep, word, p3_cci_nap(n, t->safety_ns),
				     P3_ASLEEP_NIC, true);
	P3_TRACE(host, n, P3_TRACE_WAKE, 1, 0);
	t->safety_ns = woken ? P3_SAFETY_NS : p3_longer_timeout(t->safety_ns);
	p3_set(&n->nic_asleep, 0);
	p3_set(&n->count[P3_G_NIC_ASLEEP], 0);
	bool armed = p3_cas32(n->asleep, &was, P3_AWAKE);
	p3_fence(); /* PARK.1: the caller's passes are the last look */
	return woken || !armed;
}

/* Return true if a request waits in its lane for the program to begin (P3_SETTLING_NS
 * in deliver.c), and the program has yet to serve one of its open interfaces. */
static bool is_settling(struct p3_nic *n)
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
static bool is_blocked(struct p3_nic *n)
{
	return !p3_list_empty(&n->blocked) || p3_ringer_misses(n) || is_settling(n);
}

/* Count work that a sleep's time-out has found: a peer should have rung for it.  A timer
 * of CCI ends sleeps early, and its work is no message. */
static P3_RARE void count_late(struct p3_nic *n)
{
	if (!p3_get(&n->cci.due_ns))
		p3_count(&n->count[P3_C_PARK_LATE], 1);
}

/* Serve messages after a doorbell or a time-out has ended the sleep; the caller holds the
 * lease.  Return true if the thread may sleep again. */
static bool serve(struct nic_thread *t, bool rung)
{
	struct p3_nic *n = t->n;
	bool worked = run_passes(t);
	if (worked && !rung)
		count_late(n);
	if (!rung)
		p3_mirror_gauges(n, P3_LEASE_FREE);
	t->busy = !p3_list_empty(&n->pulls) || (worked && is_blocked(n));
	if (t->dedicated.resting && worked) {
		t->dedicated.resting = false;
		return false;
	}
	return !t->busy && !is_blocked(n) && !host_is_inside(n) && !p3_get(&n->stop);
}

static void begin_window(struct nic_thread *t, uint64_t hosts)
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
static bool hosts_poll(struct nic_thread *t)
{
	uint64_t hosts = drained(t->n) - p3_get(&t->n->nic_drained);
	bool poll =
		(int64_t)(hosts - t->hosts) > P3_FEW_PASSES; /* or counts overlapped */
	if (p3_now_ns() - t->window_ns > t->n->tick_ns)
		begin_window(t, hosts);
	return poll;
}

/* Take the lease.  A program that sleeps on an OS handle, and that this thread has just
 * woken, holds it for a short time, and then sleeps again: only this thread serves its
 * next message then. */
static bool enter_behind_sleepers(struct p3_nic *n)
{
	uint32_t left = p3_get(&n->cci.handles) ? P3_SHORT_HOLDS : 1;
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
static bool doze(struct nic_thread *t)
{
	struct p3_nic *n = t->n;
	if (!p3_get(&n->cci.handles))
		return false;
	uint64_t until = p3_now_ns() + P3_DOZE_NS;
	while (p3_now_ns() < until && !p3_get(&n->stop)) {
		p3_lease_leave(n);
		sched_yield();
		if (!enter_behind_sleepers(n))
			return true;
		if (pass(t)) {
			p3_lease_leave(n);
			return true;
		}
	}
	return false;
}

/* Sleep, and serve the messages that wake this thread, until a host thread polls or
 * waits.  Return without the lease. */
static void stay_asleep(struct nic_thread *t)
{
	struct p3_nic *n = t->n;
	bool again = true;
	t->quiet = 0;
	begin_window(t, drained(n) - p3_get(&n->nic_drained));
	while (again) {
		bool rung = doze(t) || sleep_until_rung(t);
		/* Stop sleeping here if hosts poll: while the doorbell is armed, each
		 * message makes its sender ring, which costs a system call. */
		bool poll = hosts_poll(t);
		if (!enter_behind_sleepers(n))
			return;
		again = serve(t, rung) && !poll;
	}
	p3_lease_leave(n);
}

/* ---- ticks ---- */

/* Remind the sleepers of OS handles, also while hosts run the firmware. */
static P3_RARE void remind(struct p3_nic *n)
{
	if (!p3_lease_enter(n, P3_LEASE_NIC))
		return;
	p3_cci_event_remind(n);
	p3_lease_leave(n);
}

static void tick(struct nic_thread *t)
{
	struct p3_nic *n = t->n;
	if (p3_unlikely(p3_get(&n->cci.handles)))
		remind(n);
	p3_count(&n->count[P3_C_TICKS], 1);
	p3_set(&n->emptied, 0); /* the pass that set this word may be long over */
	bool idle = drained(n) == t->drained || p3_cci_timer_is_due(n);
	if (!idle || !p3_lease_enter(n, P3_LEASE_NIC)) {
		t->drained = drained(n);
		t->quiet = 0;
		t->busy = false;
		return;
	}
	FAULT_POINT("nic.took_over");
	bool worked = run_passes(t);
	p3_mirror_gauges(n, P3_LEASE_FREE);
	if (worked) {
		t->dedicated.resting = false;
		p3_count(&n->count[P3_C_TAKEOVERS], 1);
	}
	t->quiet = worked ? P3_QUIET_TICKS : t->quiet + 1;
	t->busy = !p3_list_empty(&n->pulls) || (worked && is_blocked(n));
	if (t->busy || is_blocked(n) || host_is_inside(n) || t->quiet < P3_QUIET_TICKS)
		p3_lease_leave(n);
	else
		stay_asleep(t);
}

/* ---- start ---- */

/*
 * Make the word owner of the header a robust futex, on which no thread waits: when this
 * thread ends, by the end of the process, by a signal or by exec, the kernel marks the
 * word before it frees the memory, and then the process id.
 */
static void set_robust_list(struct p3_nic *n)
{
	struct p3_seg_header *h = n->published.base;
	n->robust_entry.next = &n->robust_head.list;
	n->robust_head.list.next = &n->robust_entry;
	n->robust_head.futex_offset = (char *)&h->owner - (char *)&n->robust_entry;
	n->robust_head.list_op_pending = NULL;
	if (syscall(SYS_set_robust_list, &n->robust_head, sizeof n->robust_head) == 0)
		p3_release(&h->owner, (uint32_t)syscall(SYS_gettid)); /* SEG.1 */
}

static void *nic_main(void *arg)
{
	struct nic_thread t = {.n = arg, .safety_ns = P3_SAFETY_NS};
	struct p3_nic *n = arg;
	set_robust_list(n);
	set_up_thread(n);
	p3_set(&n->count[P3_G_NIC_TID], (uint64_t)syscall(SYS_gettid));
	if (n->generic)
		p3_alone_run(n);
	while (!p3_get(&n->stop)) {
		if (p3_dedicated_is(n, &t.dedicated)) {
			p3_dedicated_run(n, &t.dedicated);
			continue;
		}
		uint32_t kicks = p3_get(&n->doorbell->kick);
		uint64_t ns = p3_cci_nap(n, t.busy ? P3_BUSY_TICK_NS : n->tick_ns);
		(void)p3_futex_wait(&n->doorbell->kick, kicks, ns, ~0u, true);
		if (!p3_get(&n->stop))
			tick(&t);
	}
	p3_set(&((struct p3_seg_header *)n->published.base)->owner, 0);
	return NULL;
}

int p3_thread_start(struct p3_nic *n)
{
	return p3_worker_start(&n->thread, nic_main, n);
}
