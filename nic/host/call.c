/* SPDX-License-Identifier: BSD-3-Clause */
/* Host threads: commands under the lease or through the mailbox, and waiting. */
#include "nic/fw.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

_Static_assert(sizeof(struct p3_cmd) <= P3_MBX_CMD, "a command fits its slot");

/* ---- waiting ---- */

struct wait {
	struct p3_waiter idle;
	bool held;          /* this thread holds the lease */
	uint64_t since;     /* 0: the clock was not read yet */
	uint64_t deadline;  /* UINT64_MAX: no limit */
	uint64_t kick_wait; /* time until the next kick */
	bool unlooked;      /* the doorbell was armed for the NIC thread, without a
			     * full look since */
	bool dozes;         /* the last sleep ended without news */
	const struct p3_wants *wants;
	struct p3_wait_line *line; /* shows the wait to tools; NULL: no line */
	uint64_t nap_ns;           /* longest sleep while a peer may need a kick */
	uint32_t belt_ns;          /* longest sleep otherwise */
};

#define P3_BRIEF_TURNS 64u
#define P3_WHOLE_TURNS 16u

#define P3_NAP_NS      100000u
#define P3_NAP_MOST    10000000u

static void let_go(struct p3_nic *n, struct wait *w)
{
	if (w->held)
		p3_fw_leave(n);
	w->held = false;
}

/* Run passes until one finds nothing: the look that is needed after this thread has
 * armed the doorbell for the NIC thread. */
static bool look_whole(struct p3_nic *n, struct wait *w)
{
	bool worked = false;
	for (uint32_t turn = 0; turn < P3_WHOLE_TURNS && w->unlooked;
		turn += p3_fw_share(n)) {
		w->unlooked = p3_fw_pass(n);
		worked |= w->unlooked;
	}
	return worked;
}

/* Try once to make progress.  Return true if something happened. */
static bool progress(struct p3_nic *n, struct wait *w)
{
	if (!w->held)
		w->held = p3_fw_enter(n, P3_LEASE_HOST);
	if (w->held)
		return p3_unlikely(w->unlooked) ? look_whole(n, w) : p3_fw_pass(n);
	if (p3_get(&n->lease.want) != P3_WANT_LEASE)
		p3_set(&n->lease.want, P3_WANT_LEASE);
	FAULT_POINT("lease.wanted");
	return false;
}

/* Kick a peer whose answer is late, to make sure that it is awake. */
static void maybe_kick(struct p3_nic *n, struct wait *w, uint64_t now)
{
	if (!w->since) {
		w->since = now;
		w->kick_wait = n->kick_after_ns;
	}
	if (!w->held || now - w->since < w->kick_wait)
		return;
	w->kick_wait *= 2;
	p3_fw_kick_idle(n);
}

static uint64_t sleep_ns(const struct wait *w, uint64_t most)
{
	if (w->deadline == UINT64_MAX)
		return most;
	uint64_t now = p3_now_ns();
	uint64_t left = w->deadline > now ? w->deadline - now : 0;
	return left < most ? left : most;
}

/* Return the longest sleep: a short one while a message to or from a peer is on its
 * way. */
static uint64_t longest_sleep(struct p3_nic *n, struct wait *w)
{
	if (!p3_fw_is_restless(n)) {
		w->nap_ns = 0;
		return w->belt_ns;
	}
	w->nap_ns = w->nap_ns ? 2 * w->nap_ns : P3_NAP_NS;
	if (w->nap_ns > P3_NAP_MOST)
		w->nap_ns = P3_NAP_MOST;
	return w->nap_ns;
}

/* Take this thread's arming off the doorbell's word; arm it for the NIC thread if that
 * sleeps.  Return false if a peer has rung. */
static bool disarm(struct p3_nic *n, struct wait *w)
{
	uint32_t was = P3_ASLEEP_HOST, awake = P3_AWAKE;
	bool unrung = p3_cas32(n->asleep, &was, P3_AWAKE);
	/* after the word, or this would clear the next watcher's flag */
	p3_set(&n->watcher, 0);
	p3_fence(); /* PARK.1: the NIC thread may have gone to sleep on the old word */
	if (p3_get(&n->parked) > 1)
		p3_fw_fence(n, p3_fence_heavy_here); /* LEASE.2 */
	w->unlooked = p3_get(&n->nic_asleep);
	if (w->unlooked)
		(void)p3_cas32(n->asleep, &awake, P3_ASLEEP_NIC);
	if (w->unlooked)
		p3_fw_fence(n, p3_fence_heavy); /* PARK.1: the next pass looks */
	return unrung;
}

/* Run a pass after a sleep that reached its longest time, and count it if it finds
 * work: a peer should have rung for that. */
static void look_late(struct p3_nic *n, struct wait *w)
{
	w->held = p3_fw_enter(n, P3_LEASE_HOST);
	if (w->held && p3_fw_pass(n))
		p3_count(&n->count[P3_C_PARK_LATE], 1);
}

/* Sleep on the doorbell, so that a peer's message wakes this thread.  Return false if
 * none did. */
static bool sleep_as_watcher(
	struct p3_nic *n, struct wait *w, bool (*ready)(void *), void *arg)
{
	p3_set(&n->watcher, 1);
	p3_set(n->asleep, P3_ASLEEP_HOST);
	p3_fw_fence(n, p3_fence_heavy); /* PARK.1 */
	FAULT_POINT("park.armed");
	p3_fw_sweep(n);
	bool news = p3_fw_pass(n) || ready(arg) || p3_get(&n->closing);
	uint64_t ns = sleep_ns(w, longest_sleep(n, w));
	let_go(n, w);
	FAULT_POINT("park.asleep");
	bool woken = news ||
		     p3_futex_wait(n->asleep, P3_ASLEEP_HOST, ns, P3_ASLEEP_HOST, true);
	if (disarm(n, w) && !woken && ns == w->belt_ns)
		look_late(n, w);
	return woken;
}

/* Return true if another thread runs the firmware, or watches the doorbell with no
 * command left. */
static bool is_tended(struct p3_nic *n)
{
	if (p3_lease_held_by(&n->lease) != P3_LEASE_FREE)
		return true;
	return p3_get(&n->watcher) && !p3_mbx_any(n->mailbox); /* MBX.4 */
}

/* Sleep while another thread runs the firmware, or watches the doorbell, until it wakes
 * this one. */
static bool sleep_for_news(
	struct p3_nic *n, struct wait *w, bool (*ready)(void *), void *arg)
{
	uint32_t seen = p3_acquire(&n->news);
	let_go(n, w);
	p3_fw_fence(n, p3_fence_heavy_here); /* PARK.1, LEASE.2, MBX.4 */
	FAULT_POINT("park.for_news");
	if (!is_tended(n) || ready(arg) || p3_get(&n->closing))
		return true;
	return p3_futex_wait(&n->news, seen, sleep_ns(w, w->belt_ns), ~0u, false);
}

/* Show the wait and the gauges to tools, once a sleep has ended without news. */
static void mirror(struct p3_nic *n, struct wait *w)
{
	if (!w->dozes)
		return;
	if (!w->line)
		w->line = p3_mirror_wait(n, w->wants, w->since, w->deadline);
	if (w->held)
		p3_fw_mirror(n, P3_LEASE_FREE);
}

static P3_RARE void park(
	struct p3_nic *n, struct wait *w, bool (*ready)(void *), void *arg)
{
	p3_add32(&n->parked, 1);
	mirror(n, w);
	bool watch = w->held && !p3_get(&n->watcher);
	P3_PROBE1(park, n->conf.nid);
	P3_TRACE(host, n, P3_TRACE_PARK, 0, 0);
	bool woken = watch ? sleep_as_watcher(n, w, ready, arg)
			   : sleep_for_news(n, w, ready, arg);
	p3_add32(&n->parked, (uint32_t)-1);
	P3_PROBE1(wake, n->conf.nid);
	P3_TRACE(host, n, P3_TRACE_WAKE, 0, 0);
	FAULT_POINT("park.woken");
	/* After a time-out the waiter is not reset, so this thread sleeps again without
	 * yielding first: idle nodes leave the CPU to others. */
	w->dozes = !woken;
	if (woken)
		p3_waiter_reset(&w->idle);
	w->belt_ns = woken ? P3_BELT_NS : p3_longer_belt(w->belt_ns);
}

/* Spend a turn in which nothing was found.  Return false when the deadline has passed. */
static bool idle(struct p3_nic *n, struct wait *w, bool (*ready)(void *), void *arg)
{
	enum p3_idle what = p3_waiter_turn(&w->idle, &n->idle);
	if (what == P3_IDLE_SPIN && w->idle.turns % 64)
		return true; /* a pause of the CPU costs as much as half a message */
	uint64_t now = w->idle.now;
	if (now >= w->deadline)
		return false;
	maybe_kick(n, w, now);
	if (what == P3_IDLE_YIELD) {
		let_go(n, w);
		p3_waiter_yield(&w->idle);
	} else if (what == P3_IDLE_PARK) {
		park(n, w, ready, arg);
	}
	return true;
}

/* Ring the NIC thread, when this thread leaves without the look that an armed doorbell
 * needs: the NIC thread does the look. */
static void ring_nic(struct p3_nic *n)
{
	uint32_t was = P3_ASLEEP_NIC;
	if (p3_cas32(n->asleep, &was, P3_AWAKE))
		p3_futex_wake(n->asleep, P3_ASLEEP_NIC, true);
}

/*
 * Yield the CPU if the last pass emptied every lane and sent all replies: the next pass
 * would find nothing while the nodes that will answer wait for this CPU.
 */
static inline void let_others_answer(struct p3_nic *n, const struct p3_wants *wants)
{
	if (p3_get(&n->emptied) && wants->kind == P3_WAIT_EVENT && n->idle.yield_ns)
		sched_yield();
}

/* Wait until ready(arg), the deadline, or the NIC's end.  Return true if ready. */
P3_PATH
static bool wait_until(struct p3_nic *n, uint64_t ns, const struct p3_wants *wants,
	bool (*ready)(void *), void *arg)
{
	struct wait w = {.deadline = ns == UINT64_MAX ? ns : p3_now_ns() + ns,
		.wants = wants,
		.belt_ns = P3_BELT_NS};
	bool is_ready = false, look = true;
	p3_add32(&n->waiting, 1);
	let_others_answer(n, wants);
	for (;;) {
		bool worked = progress(n, &w);
		/* While this thread holds the lease, only its own passes bring news:
		 * after one that found no work it need not look. */
		if ((worked || look) && (is_ready = ready(arg)))
			break;
		if (p3_get(&n->closing))
			break;
		if (worked)
			p3_waiter_reset(&w.idle);
		else if (!idle(n, &w, ready, arg))
			break;
		look = !w.held;
	}
	let_go(n, &w);
	p3_mirror_waited(w.line);
	if (w.unlooked || p3_get(&n->closing))
		ring_nic(n);
	p3_add32(&n->waiting, (uint32_t)-1);
	return is_ready || ready(arg);
}

/* ---- commands ---- */

static bool slot_is_done(void *slot)
{
	return p3_mbx_is_done(slot);
}

static int post_and_wait(struct p3_nic *n, struct p3_cmd *c)
{
	uint32_t slot;
	while ((slot = p3_mbx_alloc(n->mailbox)) == P3_MBX_NONE)
		sched_yield(); /* more threads than slots: a pass frees slots */
	struct p3_mbx_slot *s = p3_mbx_slot(n->mailbox, slot);
	p3_mbx_post(n->mailbox, slot, c, sizeof *c); /* MBX.4: sleep_for_news */
	const uint64_t op = c->op;
	const struct p3_wants wants = {P3_WAIT_COMMAND, 1, &op};
	while (!wait_until(n, UINT64_MAX, &wants, slot_is_done, s))
		sched_yield(); /* the NIC closes: p3_nic_stop executes the command */
	int rc = s->result;
	memcpy(c, p3_mbx_cmd(s), sizeof *c);
	p3_mbx_free(n->mailbox, slot);
	return rc;
}

/* Return the code of a command whose handle is void because the NIC closes. */
static int closed_code(const struct p3_cmd *c)
{
	switch (c->op) {
	case P3_OP_ME_ATTACH:
		return c->me.base == PTL_INVALID_HANDLE ? PTL_NI_INVALID : PTL_ME_INVALID;
	case P3_OP_ME_UNLINK:
	case P3_OP_MD_ATTACH:
		return PTL_ME_INVALID;
	case P3_OP_MD_UNLINK:
	case P3_OP_MD_UPDATE:
	case P3_OP_PUT:
	case P3_OP_GET:
	case P3_OP_GETPUT:
		return PTL_MD_INVALID;
	case P3_OP_WHOSE:
		return PTL_HANDLE_INVALID;
	case P3_OP_DUMP:
		return c->flag == P3_DUMP_ME ? PTL_ME_INVALID : PTL_NI_INVALID;
	case P3_OP_EQ_FREE:
		return PTL_EQ_INVALID;
	default:
		return PTL_NI_INVALID;
	}
}

static P3_RARE int post(struct p3_nic *n, struct p3_cmd *c)
{
	int rc = closed_code(c);
	p3_add32(&n->waiting, 1);
	p3_fence(); /* STOP.1: counted before the look at closing */
	if (!p3_get(&n->closing))
		rc = post_and_wait(n, c);
	p3_add32(&n->waiting, (uint32_t)-1);
	return rc;
}

static inline void come_in(void)
{
	p3_self.inside++;
	atomic_signal_fence(memory_order_seq_cst);
}

static P3_RARE void see_to_them(struct p3_nic *n);

static inline void go_out(struct p3_nic *n)
{
	atomic_signal_fence(memory_order_seq_cst);
	p3_self.inside--;
	atomic_signal_fence(memory_order_seq_cst);
	if (p3_unlikely(p3_self.left_behind && !p3_self.inside))
		see_to_them(n);
}

static inline bool is_in_use(int rc)
{
	return rc == PTL_MD_IN_USE || rc == PTL_ME_IN_USE;
}

static inline int do_once(struct p3_nic *n, struct p3_cmd *c)
{
	int rc;
	P3_PROBE2(command, c->op, n->conf.nid);
	P3_TRACE(command, n, c);
	if (p3_likely(p3_fw_enter(n, P3_LEASE_HOST))) {
		FAULT_POINT("command.held");
		P3_TRACE(focus, n, (struct p3_topic){P3_TRACE_NOBODY, 0}, c->trace);
		rc = p3_likely(c->op == P3_OP_PUT) ? p3_fw_put(n, c) : p3_fw_exec(n, c);
		FAULT_POINT("command.executed");
		/* A caller that only repeats its call must still see the change that it
		 * waits for: room, or the end of a transfer. */
		if (p3_unlikely(!p3_list_empty(&n->blocked) || is_in_use(rc)))
			(void)p3_fw_pass(n);
		p3_fw_leave(n);
	} else {
		rc = post(n, c);
	}
	return rc;
}

/* Tell LeakSanitizer that memory named only in descriptors is no leak. */
extern void __lsan_register_root_region(const void *at, size_t len) __attribute__((weak));

/* Map a chunk, not from malloc, which a signal handler may have interrupted. */
static void *map_chunk(uint64_t len)
{
	int saved = errno;
	void *at = mmap(
		NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	errno = saved;
	return at == MAP_FAILED ? NULL : at;
}

static void *new_chunk(struct p3_nic *n, enum p3_table_id id)
{
	uint64_t len = (uint64_t)n->table[id].elem * P3_TABLE_EACH;
	if (id != P3_T_PENDING)
		return map_chunk(len);
	/* A race of two threads may go over the limit by a chunk each. */
	if ((p3_get(&n->table[id].nchunks) + 1) * len > n->conf.pending_limit)
		return NULL;
	return p3_host_alloc(n, len);
}

static P3_RARE int add_chunk(struct p3_nic *n, enum p3_table_id id)
{
	struct p3_cmd c = {.op = P3_OP_GROW, .flag = id};
	uint64_t len = (uint64_t)n->table[id].elem * P3_TABLE_EACH;
	c.grow.life = p3_get(&n->life);
	c.grow.chunk = new_chunk(n, id);
	if (!c.grow.chunk)
		return PTL_NO_SPACE;
	int rc = do_once(n, &c);
	if (id == P3_T_PENDING)
		return rc;
	if (rc != PTL_OK)
		(void)munmap(c.grow.chunk, len);
	else if (__lsan_register_root_region)
		__lsan_register_root_region(c.grow.chunk, len);
	return rc;
}

/* Provide the memory that the command needs, and execute it again. */
static P3_RARE int feed_and_do(struct p3_nic *n, struct p3_cmd *c, int rc)
{
	while (rc < 0 && rc >= -(int)P3_TABLES) {
		rc = add_chunk(n, (enum p3_table_id)(-rc - 1));
		if (rc == PTL_OK)
			rc = do_once(n, c);
		else if (rc == PTL_NI_INVALID)
			rc = closed_code(c);
	}
	if (rc == PTL_NO_SPACE)
		/* a program may repeat its call: let targets on this CPU answer
		 * before */
		sched_yield();
	return rc;
}

/* Execute a command.  The caller has marked this thread as inside (come_in()). */
static inline int do_inside(struct p3_nic *n, struct p3_cmd *c)
{
	int rc = do_once(n, c);
	return p3_likely(rc == PTL_OK) ? rc : feed_and_do(n, c, rc);
}

/* ---- from a signal handler that interrupted a call ---- */

static P3_RARE void see_to_them(struct p3_nic *n)
{
	/* Each thread that executes this command first executes all that were posted
	 * before it, those of the handler included. */
	struct p3_cmd none = {.op = P3_OP_NI_CHECK};
	come_in();
	p3_self.left_behind = false;
	(void)do_once(n, &none);
	if (p3_get(&n->hungry) != P3_MBX_NONE)
		(void)add_chunk(n, P3_T_PENDING);
	go_out(n);
}

static bool is_live(struct p3_nic *n, enum p3_table_id table, uint64_t handle)
{
	uint32_t gen = p3_handle_gen(handle);
	struct p3_object *o = p3_table_at(&n->table[table], p3_handle_index(handle));
	return o && (gen & 1) && p3_lives(o, gen);
}

static int post_detached(struct p3_nic *n, struct p3_cmd *c)
{
	/* Use half of the slots at most: threads that can wait need some, too. */
	bool most = p3_add32(&n->detached, 1) >= P3_MBX_SLOTS / 2;
	uint32_t slot = most ? P3_MBX_NONE : p3_mbx_alloc(n->mailbox);
	if (slot == P3_MBX_NONE) {
		p3_add32(&n->detached, (uint32_t)-1);
		return PTL_NO_SPACE;
	}
	p3_mbx_post_detached(n->mailbox, slot, c, sizeof *c);
	p3_self.left_behind = true;
	/* The interrupted call may be about to sleep. */
	p3_add32(&n->news, 1);
	p3_set(n->asleep, P3_AWAKE);
	p3_futex_wake(n->asleep, ~0u, true);
	return PTL_OK;
}

static int leave_behind(struct p3_nic *n, struct p3_cmd *c)
{
	if (p3_handle_kind(c->handle) != P3_KIND_MD || !is_live(n, P3_T_MD, c->handle))
		return PTL_MD_INVALID;
	int rc = closed_code(c);
	p3_add32(&n->waiting, 1);
	p3_fence(); /* STOP.1 */
	if (!p3_get(&n->closing))
		rc = post_detached(n, c);
	p3_add32(&n->waiting, (uint32_t)-1);
	return rc;
}

/* Return the interface of a handle without the lease: the generation shows if the
 * object lives. */
static int whose(struct p3_nic *n, struct p3_cmd *c)
{
	static const uint8_t table[] = {
		[P3_KIND_ME] = P3_T_ME, [P3_KIND_MD] = P3_T_MD, [P3_KIND_EQ] = P3_T_EQ};
	enum p3_kind kind = p3_handle_kind(c->handle);
	uint32_t ni = p3_handle_ni(c->handle);
	if (ni >= P3_JOB_NIS || kind < P3_KIND_NI || kind > P3_KIND_EQ)
		return PTL_HANDLE_INVALID;
	uint32_t gen = p3_acquire(&n->ni[ni].gen); /* TABLE.2 */
	c->handle_out = p3_handle(P3_KIND_NI, ni, 0, gen);
	bool lives = kind == P3_KIND_NI ? (gen & 1) && c->handle == c->handle_out
					: is_live(n, table[kind], c->handle);
	return lives ? PTL_OK : PTL_HANDLE_INVALID;
}

bool p3_nic_interrupts(void)
{
	return p3_self.inside != 0;
}

static P3_RARE int do_interrupting(struct p3_nic *n, struct p3_cmd *c)
{
	switch (c->op) {
	case P3_OP_PUT:
	case P3_OP_GET:
	case P3_OP_GETPUT:
		return leave_behind(n, c);
	case P3_OP_WHOSE:
		return whose(n, c);
	default:
		return PTL_NO_SPACE;
	}
}

P3_PATH
int p3_nic_do(struct p3_nic *n, struct p3_cmd *c)
{
	if (p3_unlikely(p3_self.inside != 0))
		return do_interrupting(n, c);
	come_in();
	int rc = do_inside(n, c);
	go_out(n);
	return rc;
}

/* ---- interfaces and queues: the host provides the memory ---- */

static uint32_t power_of_two(ptl_size_t n)
{
	uint32_t p = 1;
	while (p < n)
		p *= 2;
	return p;
}

static void free_tables(struct p3_cmd *c)
{
	free(c->ni_open.portals);
	free(c->ni_open.buckets);
	free(c->ni_open.acs);
}

int p3_nic_ni_open(struct p3_nic *n, uint32_t ni, uint32_t pid, bool cray,
	const ptl_ni_limits_t *limits, uint64_t *handle_out)
{
	struct p3_cmd c = {.op = P3_OP_NI_OPEN, .ni = (uint16_t)ni};
	c.ni_open.pid = pid;
	c.ni_open.cray = cray;
	c.ni_open.limits = *limits;
	c.ni_open.nbuckets = power_of_two((ptl_size_t)limits->max_mes);
	c.ni_open.portals =
		calloc((size_t)limits->max_pt_index + 1, sizeof(struct p3_portal));
	c.ni_open.buckets = calloc(c.ni_open.nbuckets, sizeof(struct p3_bucket));
	c.ni_open.acs = calloc((size_t)limits->max_ac_index + 1, sizeof(struct p3_ac));
	int rc = PTL_NO_SPACE;
	if (c.ni_open.portals && c.ni_open.buckets && c.ni_open.acs)
		rc = p3_nic_do(n, &c);
	if (rc != PTL_OK) {
		free_tables(&c);
		return rc;
	}
	*handle_out = c.handle_out;
	return PTL_OK;
}

/* Append the queues to dead whose places could not be freed because the NIC was
 * closing.  Return the whole list. */
static struct p3_eq *with_unburied(struct p3_nic *n, struct p3_eq *dead)
{
	struct p3_eq *last = dead;
	while (last->next_dead)
		last = last->next_dead;
	last->next_dead = p3_host_unburied(n, NULL);
	return dead;
}

/*
 * Wait until the readers of dead queues have left, and free rings and places.  life is
 * the value of n->life when the rings were certainly in use: rings of an earlier life
 * are not freed, since their memory is gone.
 */
static void retire(struct p3_nic *n, struct p3_eq *dead, uint64_t life)
{
	struct p3_cmd c = {.op = P3_OP_EQ_BURY};
	if (!dead)
		return;
	for (struct p3_eq *eq = dead; eq; eq = eq->next_dead) {
		p3_evq_retire(&eq->rx, p3_this_thread());
		p3_host_ring_free(n, eq->tx.ring, eq->n, life);
	}
	FAULT_POINT("queue.unburied");
	c.eq.dead = with_unburied(n, dead);
	if (do_inside(n, &c) != PTL_OK)
		(void)p3_host_unburied(n, c.eq.dead);
}

int p3_nic_ni_close(struct p3_nic *n, uint64_t handle)
{
	struct p3_cmd c = {.op = P3_OP_NI_CLOSE, .handle = handle};
	uint64_t life = p3_get(&n->life);
	if (p3_self.inside)
		return PTL_NO_SPACE;
	come_in();
	int rc = do_inside(n, &c);
	if (rc == PTL_OK) {
		retire(n, c.ni_open.dead, life);
		free_tables(&c);
	}
	go_out(n);
	return rc;
}

static int eq_alloc(struct p3_nic *n, struct p3_cmd *c)
{
	uint64_t life = p3_get(&n->life);
	c->eq.ring = p3_host_ring(n, c->eq.n);
	if (!c->eq.ring)
		return p3_get(&n->closing) ? PTL_NI_INVALID : PTL_NO_SPACE;
	int rc = do_inside(n, c);
	if (rc != PTL_OK)
		p3_host_ring_free(n, c->eq.ring, c->eq.n, life);
	return rc;
}

int p3_nic_eq_alloc(struct p3_nic *n, uint64_t ni_handle, ptl_size_t count,
	ptl_eq_handler_t handler, uint64_t *handle_out)
{
	struct p3_cmd c = {.op = P3_OP_EQ_ALLOC,
		.ni = (uint16_t)p3_handle_ni(ni_handle),
		.handle = ni_handle};
	if (count > P3_EQ_MOST || p3_self.inside)
		return PTL_NO_SPACE;
	c.eq.handler = handler;
	c.eq.n = power_of_two(count);
	come_in();
	int rc = eq_alloc(n, &c);
	go_out(n);
	if (rc == PTL_OK)
		*handle_out = c.handle_out;
	return rc;
}

int p3_nic_eq_free(struct p3_nic *n, uint64_t handle)
{
	struct p3_cmd c = {.op = P3_OP_EQ_FREE, .handle = handle};
	uint64_t life = p3_get(&n->life);
	if (p3_self.inside)
		return PTL_NO_SPACE;
	come_in();
	int rc = do_inside(n, &c);
	if (rc == PTL_OK)
		retire(n, c.eq.dead, life);
	go_out(n);
	return rc;
}

/* ---- taking events ---- */

/* Note that the program has looked for an event of interface ni: the interface has
 * settled. */
static inline void attend(struct p3_nic *n, uint32_t ni)
{
	if (ni < P3_JOB_NIS && p3_unlikely(!p3_get(&n->ni[ni].attended)))
		p3_set(&n->ni[ni].attended, 1);
}

void p3_nic_attend(struct p3_nic *n)
{
	for (uint32_t i = 0; i < P3_JOB_NIS; i++)
		attend(n, i);
}

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
	enum p3_evq_got got = p3_evq_get(&eq->rx, handle, p3_this_thread(), w, &sequence);
	if (got == P3_EVQ_EMPTY)
		return PTL_EQ_EMPTY;
	p3_event_from_words(w, sequence, handle, ev);
	P3_TRACE(host, n, P3_TRACE_TAKEN, (uint32_t)ev->type,
		p3_pair(eq->o.index, (uint32_t)sequence));
	return got == P3_EVQ_LOST ? PTL_EQ_DROPPED : PTL_OK;
}

/* Tell the lease holder that a host thread has looked for messages and found the lease
 * taken; that thread does not wait for the lease. */
static inline void look_in_vain(struct p3_nic *n)
{
	if (!p3_get(&n->lease.want))
		p3_set(&n->lease.want, P3_WANT_LOOK);
}

/* Make a pass.  Return false if no work was left, or another thread has the lease. */
static bool pass_once(struct p3_nic *n)
{
	bool worked = false;
	if (p3_self.inside)
		return false;
	come_in();
	if (p3_fw_enter(n, P3_LEASE_HOST)) {
		worked = p3_fw_pass(n);
		p3_fw_leave(n);
	} else {
		look_in_vain(n);
	}
	go_out(n);
	return worked;
}

void p3_nic_progress(struct p3_nic *n, uint64_t ns)
{
	uint64_t start = p3_now_ns();
	p3_nic_attend(n);
	while (pass_once(n) && p3_now_ns() - start < ns)
		;
}

#define P3_REST_NS    20000
#define P3_MEET_TIMES 30u

/* Return true if all copies with a posted SEND_END have left this node, and no message
 * waits for yod to introduce its target. */
static bool has_left(struct p3_nic *n)
{
	return !p3_acquire(&n->leaving) && !p3_get(&n->meeting); /* LEAVE.1 */
}

/* The state of a wait in p3_nic_settle() until all copies have left. */
struct patience {
	uint64_t start, ns;
	uint64_t last;    /* time of the last change of their number */
	uint32_t copies;  /* copies that have not left */
	uint32_t meeting; /* peers that yod introduces */
	long nap_ns;
};

/* Return true when the wait ends with copies left: none has left for the whole time (a
 * stopped target takes none), or the limit is over.  While yod introduces targets, which
 * no other node can hold up, the limit is P3_MEET_TIMES of the time. */
static bool is_spent(struct p3_nic *n, struct patience *w)
{
	uint64_t now = p3_now_ns();
	uint32_t copies = p3_get(&n->leaving), meeting = p3_get(&n->meeting);
	if (copies != w->copies || meeting != w->meeting)
		w->last = now;
	w->copies = copies;
	w->meeting = meeting;
	if (meeting)
		return now - w->start >= P3_MEET_TIMES * w->ns;
	return now - w->last >= w->ns / 2 || now - w->start >= 10 * w->ns;
}

/* Run a pass, or sleep, longer each time: many nodes may wait for few CPUs. */
static void pass_or_nap(struct p3_nic *n, struct patience *w)
{
	const struct timespec nap = {.tv_nsec = w->nap_ns};
	if (pass_once(n)) {
		w->nap_ns = P3_REST_NS;
		return;
	}
	(void)nanosleep(&nap, NULL);
	if ((uint64_t)w->nap_ns < n->tick_ns / 4)
		w->nap_ns *= 2;
}

void p3_nic_settle(struct p3_nic *n, uint64_t ns)
{
	const struct timespec nap = {.tv_nsec = P3_REST_NS};
	uint64_t start = p3_now_ns();
	struct patience patience = {
		.start = start, .ns = ns, .last = start, .nap_ns = P3_REST_NS};
	if ((!n->wire && has_left(n)) || p3_self.inside)
		return;
	while (!has_left(n) && !is_spent(n, &patience))
		pass_or_nap(n, &patience);
	if (!n->wire)
		return;
	/* The wire sets its goals to the messages that lie in the lanes by now. */
	uint32_t call = p3_add32(&n->settle, 1) + 1;
	start = p3_now_ns();
	while ((int32_t)(p3_get(&n->settled) - call) < 0 && p3_now_ns() - start < ns)
		if (!pass_once(n))
			(void)nanosleep(&nap, NULL);
}

uint32_t p3_nic_await_absent(struct p3_nic *n, uint64_t ns)
{
	const struct timespec nap = {.tv_nsec = 1000000};
	uint64_t start = p3_now_ns();
	uint32_t left = 0;
	while (!p3_self.inside && (left = p3_acquire(&n->promised)) != 0 && /* LEAVE.1 */
		p3_now_ns() - start < ns)
		if (!pass_once(n))
			(void)nanosleep(&nap, NULL);
	return left;
}

int p3_nic_eq_peek(struct p3_nic *n, uint64_t handle, ptl_event_t *event_out)
{
	uint64_t w[P3_EVQ_WORDS], sequence;
	struct p3_eq *eq = queue_of(n, handle);
	if (!eq)
		return PTL_EQ_INVALID;
	if (!p3_evq_any(&eq->rx)) {
		attend(n, p3_handle_ni(handle));
		(void)pass_once(n);
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
		if (p->interrupts && !p3_evq_may_get(&eq->rx, p3_this_thread()))
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
	attend(n, p3_handle_ni(p->handles[0]));
	if (ns) {
		(void)wait_until(n, ns, &wants, poll_ready, p);
	} else if (p3_fw_enter(n, P3_LEASE_HOST)) {
		for (uint32_t turn = 0; turn < P3_WHOLE_TURNS; turn += p3_fw_share(n))
			if (!p3_fw_pass(n) || is_any_there(p))
				break;
		p3_fw_leave(n);
		(void)poll_ready(p);
	} else {
		look_in_vain(n);
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
		come_in();
		if (!poll_ready(&p))
			wait_for_event(n, &p, ns);
		go_out(n);
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
	if (!p3_fw_enter(n, P3_LEASE_HOST))
		return false;
	for (uint32_t turn = 0; turn < P3_BRIEF_TURNS && !any; turn++)
		any = p3_fw_pass(n) && p3_evq_any(&eq->rx);
	p3_fw_leave(n);
	return any;
}

/* Run a few passes.  Return true when this queue has an event. */
static bool await_briefly(struct p3_nic *n, uint64_t handle)
{
	struct p3_eq *eq = queue_of(n, handle);
	if (!eq || p3_self.inside || !n->idle.spin_ns)
		return false;
	come_in();
	bool any = p3_evq_any(&eq->rx) || passes_until_any(n, eq);
	go_out(n);
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
	come_in();
	struct p3_event_record *rec =
		p3_evq_look(&eq->rx, handle, p3_this_thread(), &head);
	if (p3_likely(rec != NULL)) {
		*handler_out = p3_get(&eq->handler);
		p3_event_from_record(&rec->words, head + 1, handle, event_out);
		taken = p3_evq_took(&eq->rx, rec, head);
		if (taken)
			P3_TRACE(host, n, P3_TRACE_TAKEN, (uint32_t)event_out->type,
				p3_pair(eq->o.index, (uint32_t)head + 1));
	}
	go_out(n);
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
	attend(n, p3_handle_ni(handle));
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
