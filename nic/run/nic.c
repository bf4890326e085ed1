/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The NIC's life and its thread.
 *
 * The thread gives application bypass.  A dedicated thread always holds the lease and
 * runs passes.  Otherwise it sleeps and looks after the node now and then:
 *
 *	tick	every tick_ns.  No drained pass since the last one, and the lease is
 *		free: it takes over and runs passes until all is drained or a host wants
 *		the lease.
 *	kick	a peer has waited long for this node to look: a tick at once.
 *	asleep	quiet for P3_QUIET_TICKS ticks with no host inside, or drained after a
 *		take-over: it sets ASLEEP, and the next message wakes it at once.  It
 *		goes back to ticks when hosts have looked for messages more than
 *		P3_FEW_PASSES times within the length of a tick.
 *
 * Memory ordering:
 *	STOP.1	Dekker: p3_nic_stop stores closing, fences, loads waiting; a host thread
 *		adds to waiting, fences, loads closing.  Without it a command is posted
 *		to a mailbox that will never be emptied.
 *	STOP.2	waiting: a host thread's last step, adding -1, releases -> p3_nic_stop
 *		acquires 0 (it looks at nothing any more)
 *	SEG.1	header state, and owner: released when the segment is formatted, and the
 *		thread's will is made -> acquired by peers
 */
#define P3_LOG_AREA P3_AREA_NIC
#include "nic/fw.h"
#include "shm/cpulist.h"
#include "shm/log.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define P3_TICK_NS      2000000u
#define P3_BUSY_TICK_NS 200000u
#define P3_QUIET_TICKS  5u
#define P3_FEW_PASSES   16u /* passes within a tick of a host that does not poll */
#define P3_TIGHT_TURNS  64u /* empty passes between offers of a CPU that may be shared */
#define P3_LOOK_TURNS   1024u
#define P3_TAKEN_NS     3000u      /* an offer that lasted longer was accepted */
#define P3_REST_TURNS   (1u << 20) /* empty passes, some 50 ms */
#define P3_LOOK_NS      1000000u
#define P3_SHARED_NS    100000000u /* time away from a CPU that others need */
#define P3_SHARED_MOST  10000000000u
#define P3_LASTING_NS   1000000000u
#define P3_CACHED_CELLS 32768u /* 2 MiB */
/* Up to this number of lanes are polled as few (pass.c); where nodes share CPUs, a
 * pair's lanes. */
#define P3_FEW_LANES         8u
#define P3_FEW_LANES_CROWDED 2u
/* nodes on one CPU: most of them do not run at a given moment */
#define P3_DENSE 4u

/* ---- the thread ---- */

struct nic_thread {
	struct p3_nic *n;
	uint64_t drained;   /* value at the last tick */
	uint64_t own;       /* drained passes of this thread */
	uint64_t hosts;     /* looks of hosts when the window began */
	uint64_t window_ns; /* begin of the window */
	uint32_t quiet;     /* consecutive ticks without news */
	uint32_t belt_ns;   /* longest sleep */
	bool busy;          /* a transfer or a full lane makes progress: look again
			     * soon */
	bool resting;       /* dedicated by choice of the library, but no message has
			     * come for long */
	uint64_t shared_until;
	uint64_t shared_ns;
	uint64_t began_ns;  /* begin of dedication */
	uint64_t looked_ns; /* the last reading of the clocks: real time, and the
			     * thread's own */
	uint64_t ran_ns;
};

/* The kernel's sched_attr, which libc does not declare. */
struct slice {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

static void warn_no_cpus(const struct p3_nic *n, int why)
{
	char list[128];
	p3_cpulist_print(n->conf.nic_cpus, list, sizeof list);
	p3_warn("the NIC thread cannot run on CPUs %s: %s; it runs where the thread does "
		"that called PtlNIInit; see PTL3_NIC_CPUS, taskset -p, cpuset cgroups",
		list, strerror(why));
}

static void settle(struct p3_nic *n)
{
	char name[16];
	snprintf(name, sizeof name, "p3nic.%u", n->conf.nid);
	int rc = n->conf.nic_cpus ? p3_cpuset_apply(n->conf.nic_cpus) : 0;
	if (rc)
		warn_no_cpus(n, -rc);
	(void)prctl(PR_SET_NAME, name); /* named only when its CPUs are set */
	(void)prctl(PR_SET_TIMERSLACK, 1);
	/* A short slice: it runs briefly and often (since Linux 6.12). */
	struct slice attr = {.size = sizeof attr, .runtime = 100000};
	(void)syscall(SYS_sched_setattr, 0, &attr, 0);
}

/* Run one pass as this thread, not as a host. */
static bool pass(struct nic_thread *t)
{
	bool worked = p3_fw_pass(t->n);
	t->own += !worked; /* as the pass has counted */
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
		else if (!worked || want ||
			 p3_waiter_turn(&idle, &n->idle) != P3_IDLE_SPIN)
			break;
	}
	t->own -= want != P3_WANT_NONE; /* a host looked: one pass counts as the host's */
	p3_set(&n->lease.want, P3_WANT_NONE);
	t->drained = p3_get(&n->drained);
	return worked;
}

static bool host_is_inside(struct p3_nic *n)
{
	return p3_get(&n->waiting) && !p3_get(&n->watcher);
}

/* With the lease: arm the doorbell, look once more, give the lease up, sleep. */
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
	p3_fw_fence(n, p3_fence_heavy); /* PARK.1 */
	p3_fw_sweep(n);
	bool news = pass(t) || p3_get(&n->stop);
	p3_fw_leave(n);
	FAULT_POINT("nic.asleep");
	P3_TRACE(host, n, P3_TRACE_PARK, 1, 0);
	t->drained = p3_get(&n->drained);
	bool woken =
		news || p3_futex_wait(n->asleep, word, t->belt_ns, P3_ASLEEP_NIC, true);
	P3_TRACE(host, n, P3_TRACE_WAKE, 1, 0);
	t->belt_ns = woken ? P3_BELT_NS : p3_longer_belt(t->belt_ns);
	p3_set(&n->nic_asleep, 0);
	p3_set(&n->count[P3_G_NIC_ASLEEP], 0);
	bool armed = p3_cas32(n->asleep, &was, P3_AWAKE);
	p3_fence(); /* PARK.1: the caller's passes are the last look */
	return woken || !armed;
}

/* Return true if a request waits in its lane for the program to begin (P3_SETTLING_NS
 * in rx.c), and the program has yet to serve one of its open interfaces. */
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
 * of a waiting request, or for frames that a wire must send once more. */
static bool is_blocked(struct p3_nic *n)
{
	return !p3_list_empty(&n->blocked) || (n->wire && n->wire->waits(n)) ||
	       is_settling(n);
}

/* With the lease: serve messages after a doorbell or the belt ended the sleep. */
static bool serve(struct nic_thread *t, bool rung)
{
	struct p3_nic *n = t->n;
	bool worked = run_passes(t);
	if (worked && !rung)
		p3_count(&n->count[P3_C_PARK_LATE], 1);
	if (!rung)
		p3_fw_mirror(n, P3_LEASE_FREE);
	t->busy = !p3_list_empty(&n->pulls) || (worked && is_blocked(n));
	if (t->resting && worked) {
		t->resting = false;
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
 * Return true if hosts have looked for messages more than a few times within a tick.
 * Where nodes share a CPU and yield to each other, a host looks once or twice for each
 * message.  So the count goes on when a message rings, until a tick's time has passed.
 */
static bool hosts_poll(struct nic_thread *t)
{
	uint64_t hosts = p3_get(&t->n->drained) - t->own;
	bool poll = hosts - t->hosts > P3_FEW_PASSES;
	if (p3_now_ns() - t->window_ns > t->n->tick_ns)
		begin_window(t, hosts);
	return poll;
}

/* Stay asleep except for messages, until a host comes.  Return without the lease. */
static void stay_asleep(struct nic_thread *t)
{
	struct p3_nic *n = t->n;
	bool again = true;
	t->quiet = 0;
	begin_window(t, p3_get(&n->drained) - t->own);
	while (again) {
		bool rung = sleep_until_rung(t);
		/* Stop sleeping here if hosts poll: while the doorbell is armed, each
		 * message makes its sender ring, which costs a system call. */
		bool poll = hosts_poll(t);
		if (!p3_fw_enter(n, P3_LEASE_NIC))
			return;
		again = serve(t, rung) && !poll;
	}
	p3_fw_leave(n);
}

static void tick(struct nic_thread *t)
{
	struct p3_nic *n = t->n;
	p3_count(&n->count[P3_C_TICKS], 1);
	p3_set(&n->emptied, 0); /* the pass that set it may be long ago */
	if (p3_get(&n->drained) != t->drained || !p3_fw_enter(n, P3_LEASE_NIC)) {
		t->drained = p3_get(&n->drained);
		t->quiet = 0;
		t->busy = false;
		return;
	}
	FAULT_POINT("nic.took_over");
	bool worked = run_passes(t);
	p3_fw_mirror(n, P3_LEASE_FREE);
	if (worked) {
		t->resting = false;
		p3_count(&n->count[P3_C_TAKEOVERS], 1);
	}
	t->quiet = worked ? P3_QUIET_TICKS : t->quiet + 1;
	t->busy = !p3_list_empty(&n->pulls) || (worked && is_blocked(n));
	if (t->busy || is_blocked(n) || host_is_inside(n) || t->quiet < P3_QUIET_TICKS)
		p3_fw_leave(n);
	else
		stay_asleep(t);
}

static uint64_t thread_ran_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void begin_dedicated(struct nic_thread *t)
{
	t->began_ns = t->looked_ns = p3_now_ns();
	t->ran_ns = thread_ran_ns();
}

/*
 * Return true if another thread needs this CPU: then the host threads are better served
 * without dedication.  This thread never sleeps meanwhile: when it did not run, another
 * one did.
 */
static bool cpu_is_shared(struct nic_thread *t)
{
	uint64_t now = p3_now_ns(), since = now - t->looked_ns;
	if (since < P3_LOOK_NS)
		return false;
	uint64_t ran = thread_ran_ns(), mine = ran - t->ran_ns;
	t->looked_ns = now;
	t->ran_ns = ran;
	return since > mine && since - mine > P3_LOOK_NS / 2;
}

/* Offer the CPU; return true if another thread took it. */
static bool is_taken(void)
{
	uint64_t before = p3_now_ns();
	sched_yield();
	return p3_now_ns() - before > P3_TAKEN_NS;
}

/* Return true if another thread took the CPU both times that this one offered it.  A
 * single offer may take long because of an interrupt. */
static bool somebody_waits(void)
{
	return is_taken() && is_taken();
}

static bool has_company(struct nic_thread *t, uint32_t turns, uint32_t empty)
{
	bool offer = t->n->tight && empty % P3_TIGHT_TURNS == 1;
	return (offer && somebody_waits()) ||
	       (turns % P3_LOOK_TURNS == 0 && cpu_is_shared(t));
}

/* Leave a shared CPU, each time for longer, unless this thread had it for long. */
static void end_dedicated(struct nic_thread *t)
{
	uint64_t now = p3_now_ns();
	bool lasted = now - t->began_ns > P3_LASTING_NS;
	t->shared_ns = lasted || !t->shared_ns ? P3_SHARED_NS : 2 * t->shared_ns;
	if (t->shared_ns > P3_SHARED_MOST)
		t->shared_ns = P3_SHARED_MOST;
	t->shared_until = now + t->shared_ns;
}

/* Hold the lease and run passes while no other thread needs the CPU. */
static void run_dedicated(struct nic_thread *t)
{
	struct p3_nic *n = t->n;
	uint32_t turns = 0, empty = 0;
	if (!p3_fw_enter(n, P3_LEASE_NIC)) {
		sched_yield(); /* a host thread is about to leave */
		return;
	}
	begin_dedicated(t);
	while (!p3_get(&n->stop)) {
		empty = p3_fw_pass(n) ? 0 : empty + 1;
		if (empty)
			p3_relax();
#ifdef P3_VALGRIND
		sched_yield();
#endif
		turns++;
		if (has_company(t, turns, empty)) {
			end_dedicated(t);
			break;
		}
		if (turns % P3_LOOK_TURNS)
			continue;
		if (n->may_rest && empty > P3_REST_TURNS) {
			t->resting = true;
			break;
		}
		if (turns % 65536 == 0)
			p3_fw_sweep(n);
	}
	p3_fw_leave(n);
}

static bool is_dedicated(struct nic_thread *t)
{
	struct p3_nic *n = t->n;
	if (n->conf.mode != P3_MODE_DEDICATED || t->resting)
		return false;
	if (t->shared_until && p3_now_ns() < t->shared_until)
		return false;
	t->shared_until = 0;
	return true;
}

/*
 * Make the kernel mark the word of the header that names this thread, however this
 * process ends or becomes another by exec, before it frees the memory and then the
 * process id: the word is a robust futex, on which no thread waits.
 */
static void leave_a_will(struct p3_nic *n)
{
	struct p3_seg_header *h = n->published.base;
	n->heir.next = &n->last_will.list;
	n->last_will.list.next = &n->heir;
	n->last_will.futex_offset = (char *)&h->owner - (char *)&n->heir;
	n->last_will.list_op_pending = NULL;
	if (syscall(SYS_set_robust_list, &n->last_will, sizeof n->last_will) == 0)
		p3_release(&h->owner, (uint32_t)syscall(SYS_gettid)); /* SEG.1 */
}

static void *nic_main(void *arg)
{
	struct nic_thread t = {.n = arg, .belt_ns = P3_BELT_NS};
	struct p3_nic *n = arg;
	leave_a_will(n);
	settle(n);
	p3_set(&n->count[P3_G_NIC_TID], (uint64_t)syscall(SYS_gettid));
	while (!p3_get(&n->stop)) {
		if (is_dedicated(&t)) {
			run_dedicated(&t);
			continue;
		}
		uint32_t kicks = p3_get(&n->doorbell->kick);
		uint64_t ns = t.busy ? P3_BUSY_TICK_NS : n->tick_ns;
		(void)p3_futex_wait(&n->doorbell->kick, kicks, ns, ~0u, true);
		if (!p3_get(&n->stop))
			tick(&t);
	}
	p3_set(&((struct p3_seg_header *)n->published.base)->owner, 0);
	return NULL;
}

/* ---- start ---- */

/* NICs are kept for reuse and never freed: a thread that still has the pointer of a
 * closed one may read it. */
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static struct p3_nic *kept;

static void init_tables(struct p3_nic *n)
{
	p3_table_init(&n->table[P3_T_ME], sizeof(struct p3_me));
	p3_table_init(&n->table[P3_T_MD], sizeof(struct p3_md));
	p3_table_init(&n->table[P3_T_EQ], sizeof(struct p3_eq));
}

static struct p3_nic *nic_alloc(void)
{
	pthread_mutex_lock(&kept_lock);
	struct p3_nic *n = kept;
	if (n)
		kept = n->next_kept;
	pthread_mutex_unlock(&kept_lock);
	if (n)
		return n;
	n = aligned_alloc(P3_PAGE, p3_round_up(sizeof *n, P3_PAGE));
	if (!n)
		return NULL;
	memset(n, 0, sizeof *n);
	p3_set(&n->lease.word, P3_LEASE_HOST);
	pthread_mutex_init(&n->arena_lock, NULL);
	n->host_seg[0].fd = n->host_seg[1].fd = -1;
	init_tables(n);
	return n;
}

static void nic_keep(struct p3_nic *n)
{
	pthread_mutex_lock(&kept_lock);
	n->next_kept = kept;
	kept = n;
	pthread_mutex_unlock(&kept_lock);
}

static void plan(struct p3_nic *n)
{
	struct p3_nic_conf *c = &n->conf;
	uint32_t cpus = c->cpus ? c->cpus : 1;
	uint32_t crew = c->crew ? c->crew : c->nnodes;
	uint32_t crowd = (crew + cpus - 1) / cpus; /* nodes on one CPU */
	n->may_rest = c->mode == P3_MODE_AUTO;
	if (c->mode == P3_MODE_AUTO)
		c->mode = crew > 1 && cpus >= 2 * crew && !c->domain ? P3_MODE_DEDICATED
								     : P3_MODE_LEASE;
	n->crowded = crowd > 1;
	n->dense = crowd >= P3_DENSE;
	n->few = n->crowded ? P3_FEW_LANES_CROWDED : P3_FEW_LANES;
	n->tight = cpus < 2 * crew;
	n->sparing = (uint64_t)crowd * crew * p3_layout_of(c->nnodes).req_cells >
		     P3_CACHED_CELLS;
	n->idle.spin_ns = n->crowded ? 0 : P3_SPIN_NS;
	n->idle.yield_ns = P3_YIELD_NS;
	if (c->mode == P3_MODE_PARK) {
		n->idle = (struct p3_idle_policy){0, 0};
		c->membarrier = false; /* each sleep would cost a membarrier */
	}
	n->tick_ns = (uint64_t)P3_TICK_NS * crowd;
	n->kick_after_ns = crowd > 1 ? 4ull * P3_KICK_NS * crowd : P3_KICK_NS;
}

/* Make a pseudo-peer: requests in its queue wait for news of their targets. */
static void init_nobody(struct p3_nic *n, struct p3_peer *p)
{
	*p = (struct p3_peer){.nic = n,
		.index = n->conf.nnodes,
		.state = P3_ABSENT,
		.pid = {P3_JOB_NO_PID, P3_JOB_NO_PID},
		.uid = PTL_UID_ANY,
		.jid = PTL_JID_ANY};
	p3_list_init(&p->queue);
}

/* Reset the state, except parked and waiting: a thread that is late from the last life
 * may still be counted there. */
static void reset_state(struct p3_nic *n)
{
	p3_set(&n->alive, 0);
	p3_set(&n->closing, 0);
	p3_set(&n->drained, 0);
	p3_set(&n->nic_asleep, 0);
	p3_set(&n->watcher, 0);
	p3_set(&n->stop, 0);
	p3_set(&n->emptied, 0); /* only crowded lives store it */
	p3_set(&n->lease.want, 0);
	p3_table_init(&n->table[P3_T_PENDING], sizeof(struct p3_pending));
	struct p3_cmd left = {.op = P3_OP_EQ_BURY};
	left.eq.dead = p3_host_unburied(n, NULL);
	(void)p3_fw_eq_bury(n, &left); /* queues of the last life */
	n->next_link = 0xfffffff0;     /* wraps in every run */
	n->ntouched = n->nhot = n->turn = 0;
	p3_set(&n->hungry, P3_MBX_NONE);
	p3_set(&n->detached, 0);
	p3_set(&n->settle, 0);
	p3_set(&n->settled, 0);
	p3_set(&n->leaving, 0);
	p3_set(&n->promised, 0);
	p3_set(&n->meeting, 0);
	n->posted = n->some_bad = false;
	n->light = n->conf.membarrier;
	init_nobody(n, &n->nobody);
	init_nobody(n, &n->absent);
	n->held_most = (uint32_t)(n->conf.pending_limit / 2 / sizeof(struct p3_pending));
	memset(n->over, 0, sizeof n->over);
	n->asked = n->told = 0;
	n->settling_until = 0;
	/* The first window is there from the start: where the kernel refuses
	 * cross-memory reads, all long transfers need one. */
	n->windows = n->window_free = 1;
	n->window_off[0] = n->layout.ctl_len;
	memset(n->pace, 0, sizeof n->pace);
	n->swapper = NULL;
	n->swapper_until = n->window_ns = 0;
	n->arena_used = n->layout.ctl_len + P3_WINDOW_LEN;
	p3_list_init(&n->blocked);
	p3_list_init(&n->pulls);
	p3_list_init(&n->sources);
}

static void init_peers(struct p3_nic *n)
{
	char *base = n->published.base;
	for (uint32_t i = 0; i < n->conf.nnodes; i++) {
		struct p3_peer *p = &n->peer[i];
		p->nic = n;
		p->index = i;
		p->mine = (struct p3_peer_entry *)(base + p3_entry_off(&n->layout, i));
		p3_list_init(&p->queue);
		p3_list_init(&p->outstanding);
		p3_list_init(&p->serving);
		p3_list_init(&p->blocked_link);
	}
}

static void warn_small_pages(const struct p3_nic *n, int why)
{
	static p3_a32 told;
	if (n->conf.mute || p3_exchange32(&told, 1)) /* once a job */
		return;
	if (why == EPERM) {
		p3_warn("no hugepages: this kernel would let other processes write to "
			"sealed ones (Linux 5.13 does not); ordinary pages are used, "
			"which costs some speed; use a newer kernel, or set "
			"PTL3_HUGEPAGES=off");
		return;
	}
	uint32_t crew = n->conf.crew ? n->conf.crew : n->conf.nnodes;
	uint64_t need = 2ull * crew;
	p3_warn("no hugepages (%s): ordinary pages are used, which costs some speed; a "
		"job "
		"of %u nodes wants about %llu of 2 MiB: echo %llu | sudo tee "
		"/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages, or set "
		"PTL3_HUGEPAGES=off",
		strerror(why), crew, (unsigned long long)need, (unsigned long long)need);
}

static int reserve_trace(struct p3_nic *n, uint64_t len)
{
	uint64_t all = p3_round_up(len, n->published.page);
	int rc = p3_seg_reserve_range(&n->published, n->layout.seg_len, all);
	if (rc)
		p3_error("no room for %llu bytes of trace (%s); set PTL3_TRACE to fewer "
			 "records, or to off",
			(unsigned long long)all, strerror(-rc));
	if (rc)
		p3_seg_destroy(&n->published);
	return rc;
}

static int make_published(struct p3_nic *n)
{
	int fell_back;
	n->layout = p3_layout_of(n->conf.nnodes);
	uint64_t trace = p3_trace_len(n->conf.trace);
	int rc = p3_seg_create("p3-published",
		n->layout.seg_len + p3_round_up(trace, P3_HUGE),
		n->layout.ctl_len + P3_WINDOW_LEN, n->conf.huge, &n->published,
		&fell_back);
	if (!rc && trace)
		rc = reserve_trace(n, trace);
	if (rc)
		return rc;
	if (fell_back)
		warn_small_pages(n, fell_back);
	p3_seg_bind_here(&n->published);
	struct p3_seg_header *h = n->published.base;
	h->magic = P3_SEG_MAGIC;
	h->version = P3_SEG_VERSION;
	h->layout = P3_LAYOUT_WORD;
	h->incarnation = n->conf.incarnation;
	h->seg_len = n->published.len;
	h->nnodes = n->conf.nnodes;
	h->node = n->conf.node;
	h->fences = n->conf.membarrier;
	h->self = (uintptr_t)h;
	n->count = (p3_a64 *)((char *)n->published.base + n->layout.counters_off);
	rc = p3_seg_seal(&n->published);
	if (rc)
		p3_seg_destroy(&n->published);
	return rc;
}

static int make_segments(struct p3_nic *n)
{
	int rc = make_published(n);
	if (rc)
		return rc;
	rc = p3_seg_create_doorbell(&n->doorbell_seg);
	if (rc)
		goto drop_published;
	n->doorbell = n->doorbell_seg.base;
	n->asleep = p3_asleep_of(n, n->conf.node, n->doorbell);
	p3_set(n->asleep, P3_AWAKE); /* an earlier life may have left any value */
	rc = p3_host_create(n);
	if (!rc)
		return 0;
	p3_seg_destroy(&n->doorbell_seg);
drop_published:
	p3_seg_destroy(&n->published);
	return rc;
}

static int make_private(struct p3_nic *n)
{
	n->peer = aligned_alloc(
		P3_LINE, p3_round_up(n->conf.nnodes * sizeof *n->peer, P3_LINE));
	n->hot = calloc(n->conf.nnodes, sizeof *n->hot);
	n->xfer = calloc(n->layout.nxfers, sizeof *n->xfer);
	n->pull = calloc(P3_PULLS, sizeof *n->pull);
	if (!n->peer || !n->hot || !n->xfer || !n->pull || p3_ids_make(n) != 0 ||
		p3_copies_start(n) != 0)
		return -ENOMEM;
	memset(n->peer, 0, n->conf.nnodes * sizeof *n->peer);
	return 0;
}

static void drop_private(struct p3_nic *n)
{
	p3_ids_drop(n);
	p3_copies_stop(n);
	free(n->peer);
	free(n->hot);
	free(n->xfer);
	free(n->pull);
	n->peer = NULL;
}

static void drop_segments(struct p3_nic *n)
{
	p3_seg_destroy(&n->published);
	p3_seg_destroy(&n->doorbell_seg);
	p3_host_drop(n);
}

static void wake_everybody(struct p3_nic *n)
{
	p3_wake_hosts(n);
	p3_set(n->asleep, P3_AWAKE);
	p3_futex_wake(n->asleep, ~0u, true);
	p3_add32(&n->doorbell->kick, 1);
	p3_futex_wake(&n->doorbell->kick, ~0u, true);
}

/* Wait until all threads of this process have left the NIC's calls, and answer posted
 * commands meanwhile.  Return with the lease, which this thread then never gives up. */
static void drain_threads(struct p3_nic *n)
{
	bool held = false;
	for (;;) {
		wake_everybody(n);
		if (!held)
			held = p3_fw_enter(n, P3_LEASE_HOST);
		else if (p3_mbx_any(n->mailbox))
			p3_fw_mail(n);
		if (held && !p3_acquire(&n->waiting)) /* STOP.2 */
			return;
		sched_yield();
	}
}

/* Start the thread without signals, which belong to the program. */
static int start_thread(struct p3_nic *n)
{
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int rc = pthread_create(&n->thread, NULL, nic_main, n);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -rc;
}

static int start_wire(struct p3_nic *n)
{
	n->wire = n->conf.faults ? &p3_wire_faulty : NULL;
	((struct p3_seg_header *)n->published.base)->wire = n->wire ? n->wire->id : 0;
	return n->wire ? n->wire->start(n) : 0;
}

int p3_nic_start(const struct p3_nic_conf *conf, struct p3_nic **nic_out)
{
	struct p3_nic *n = nic_alloc();
	if (!n)
		return -ENOMEM;
	n->conf = *conf;
	if (!n->conf.hold)
		n->conf.hold_ns = 0; /* no thread would end requests whose time is over */
	plan(n);
	n->conf.membarrier = n->conf.membarrier && p3_fence_join();
	int rc = make_segments(n);
	if (rc)
		goto keep;
	rc = make_private(n);
	if (rc)
		goto drop;
	reset_state(n);
	init_peers(n);
	p3_xfer_start(n);
	p3_trace_start(n);
	rc = start_wire(n);
	if (rc)
		goto drop;
	p3_mirror_conf(n);
	FAULT_POINT("init.formatted");
	p3_release(&((struct p3_seg_header *)n->published.base)->state,
		P3_SEG_LIVE); /* SEG.1 */
	p3_release(&n->lease.word, P3_LEASE_FREE);
	FAULT_POINT("init.live");
	rc = start_thread(n);
	if (rc)
		goto close;
	*nic_out = n;
	return 0;

close: /* answer late threads with handles of an earlier life */
	p3_set(&n->closing, 1);
	p3_fence(); /* STOP.1 */
	drain_threads(n);
	if (n->wire)
		n->wire->stop(n);
drop:
	drop_private(n);
	drop_segments(n);
keep:
	nic_keep(n);
	return rc;
}

/* ---- stop ---- */

void p3_nic_stop(struct p3_nic *n)
{
	p3_set(&n->closing, 1);
	p3_set(&n->stop, 1);
	p3_fence(); /* STOP.1 */
	wake_everybody(n);
	FAULT_POINT("fini.closing");
	pthread_join(n->thread, NULL);
	drain_threads(n);
	p3_xfer_revoke_all(n);
	p3_fw_why_sum(n);
	FAULT_POINT("fini.revoked");
	struct p3_seg_header *h = n->published.base;
	p3_release(&h->state, P3_SEG_FINISHED); /* SEG.1 */
	p3_fw_drop_all(n);
	p3_nic_free_iovs();
	FAULT_POINT("fini.finished");
	for (uint32_t i = 0; i < n->conf.nnodes; i++) {
		struct p3_peer *p = &n->peer[i];
		p3_heap_view_close(&p->heap);
		if (p->state != P3_LIVE)
			continue;
		p3_seg_unmap(p->doorbell, P3_PAGE);
		if (p->page)
			p3_seg_unmap_page(p->page);
		p3_seg_unmap(p->base, p->seg_len);
	}
	if (n->wire)
		n->wire->stop(n);
	drop_private(n);
	drop_segments(n);
	nic_keep(n);
}

/* ---- queries from outside ---- */

unsigned p3_nic_fds(struct p3_nic *n, int fds_out[P3_JOB_FDS])
{
	fds_out[0] = n->published.fd;
	fds_out[1] = n->doorbell_seg.fd;
	fds_out[2] = n->host_seg[0].fd;
	fds_out[3] = n->conf.heap ? p3_heap_offer(n->conf.heap) : -1;
	return fds_out[3] < 0 ? 3 : 4;
}

uint64_t p3_nic_heap_len(struct p3_nic *n)
{
	int fds[P3_JOB_FDS];
	return p3_nic_fds(n, fds) == P3_JOB_FDS ? p3_heap_len(n->conf.heap) : 0;
}

uint64_t p3_nic_seg_len(struct p3_nic *n)
{
	return n->published.len;
}

uint64_t p3_nic_counter(struct p3_nic *n, enum p3_counter c)
{
	return c == P3_C_DRAINED ? p3_get(&n->drained) : p3_get(&n->count[c]);
}

uint64_t p3_nic_wire_counter(struct p3_nic *n, unsigned c)
{
	return p3_get(&n->wire_count[c]);
}

bool p3_nic_is_huge(struct p3_nic *n)
{
	return n->published.page == P3_HUGE;
}

uint32_t p3_nic_peers_alive(struct p3_nic *n)
{
	return p3_get(&n->alive);
}
