/* SPDX-License-Identifier: BSD-3-Clause */
/* Interfaces and peers come and go: incarnations, closing with operations under way,
 * death. */
#include "nic/cases.h"
#include "lib/node/node.h"
#include "nic/obj/state.h"
#include "nic/proto/proto.h"
#include "nic/run/lease.h"
#include "support/asleep.h"
#include "support/hold.h"

#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PT 11

/* ---- incarnations ---- */

static void exchange(ptl_handle_ni_t ni, unsigned rank, unsigned size, unsigned round)
{
	static const size_t len[] = {8, 700, 50000};
	size_t n = len[round % 3];
	ptl_handle_eq_t in = eq_new(ni, 64), out = eq_new(ni, 64);
	unsigned char *buf = node_alloc(size * n);
	unsigned char *src = node_pattern(n, rank);
	post_md(ni, PT, round, sink_md(buf, size * n, in));
	ptl_handle_md_t md = bind_md(ni, md_of(src, n, 0, out));
	sync_nodes();
	for (unsigned to = 0; to < size; to++)
		CHECK_OK(PtlPut(
			md, PTL_ACK_REQ, id_of(ni, to), PT, 0, round, rank * n, rank));
	for (unsigned i = 0; i < size; i++)
		expect(in, PTL_EVENT_PUT_END);
	for (unsigned i = 0; i < size; i++)
		CHECK_PATTERN(buf + i * n, 0, n, i);
	for (unsigned i = 0; i < 3 * size; i++)
		CHECK_EQ(next_event(out).ni_fail_type, PTL_NI_OK);
	expect_empty(in);
	expect_empty(out);
	CHECK_EQ(drops_of(ni), 0);
}

/* P3.3 3.5: after PtlNIFini PtlNIInit works again, all counts are 0, old handles are
 * dead */
HAND_CASE(interface_works_again_after_fini, 3)
{
	ptl_handle_ni_t before = PTL_INVALID_HANDLE;
	ptl_process_id_t id;
	for (unsigned round = 0; round < rounds(20); round++) {
		ni = node_ni();
		CHECK(ni != before);
		sync_nodes();
		exchange(ni, rank, size, round);
		sync_nodes();
		CHECK_OK(PtlNIFini(ni));
		CHECK_RC(PtlGetId(ni, &id), PTL_NI_INVALID);
		before = ni;
		sync_nodes();
	}
}

static uint64_t first_number(ptl_handle_eq_t eq)
{
	const struct p3_eq *q = p3_eq_named(p3_nic(p3_node()), eq);
	CHECK(q != NULL);
	return p3_get(&q->rx.ring->head);
}

/* Queues of each life number their events from another start.  So a reader that sleeps
 * through PtlNIFini and PtlNIInit cannot take a new ring's head for that of its own */
HAND_CASE(queues_of_each_life_count_from_elsewhere, 1)
{
	uint64_t before = 0;
	for (unsigned round = 0; round < 4; round++) {
		ni = node_ni();
		uint64_t life = first_number(eq_new(ni, 8)) >> P3_EVQ_LIVES;
		CHECK(round == 0 || life == before + 1);
		before = life;
		exchange(ni, rank, size, round);
		CHECK_OK(PtlNIFini(ni));
	}
}

/* One node comes and goes, the others stay, and meet a new incarnation each time */
HAND_CASE(peer_is_new_after_its_fini, 3)
{
	if (rank)
		ni = node_ni();
	for (unsigned round = 0; round < rounds(20); round++) {
		if (rank == 0)
			ni = node_ni();
		sync_nodes();
		exchange(ni, rank, size, round);
		sync_nodes();
		if (rank == 0 && round % 2)
			CHECK_OK(PtlNIFini(ni));
		if (rank == 0 && round % 2 == 0) {
			int most;
			PtlFini();
			CHECK_OK(PtlInit(&most));
		}
	}
}

/* Each life of a node gets full lanes, in both directions, after some messages */
HAND_CASE(lanes_become_full_in_each_life, 2)
{
	enum { LIVES = 3, MESSAGES = 10 };
	if (rank)
		ni = node_ni();
	for (unsigned life = 0; life < LIVES; life++) {
		if (rank == 0)
			ni = node_ni();
		struct p3_nic *n = p3_nic(p3_node());
		const struct p3_peer *p = &n->peer[1 - rank];
		sync_nodes();
		for (unsigned i = 0; i < MESSAGES; i++)
			exchange(ni, rank, size, life * MESSAGES + i);
		nic_hold(n);
		bool full = p->req_full && p->rsp_full;
		p3_lease_leave(n);
		CHECK(full || n->conf.base_lanes_only || n->sparing);
		sync_nodes();
		if (rank == 0)
			CHECK_OK(PtlNIFini(ni));
	}
}

/* A message published before PtlNIFini arrives, also at a node that had not met the
 * sender */
HAND_CASE(put_of_one_who_leaves_at_once_arrives, 2)
{
	ptl_handle_eq_t eq = PTL_EQ_NONE;
	if (rank) {
		ni = node_ni();
		eq = eq_new(ni, 8);
		post_md(ni, PT, 0, sink_md(node_alloc(8), 8, eq));
	}
	for (unsigned round = 0; round < rounds(200); round++) {
		if (rank == 0)
			ni = node_ni();
		sync_nodes();
		if (rank == 0) {
			ptl_handle_md_t md = bind_md(ni, md_of(NULL, 0, 0, PTL_EQ_NONE));
			CHECK_OK(PtlPut(
				md, PTL_NO_ACK_REQ, id_of(ni, 1), PT, 0, 0, 0, round));
			CHECK_OK(PtlNIFini(ni));
		} else {
			CHECK_EQ(expect(eq, PTL_EVENT_PUT_END).hdr_data, round);
		}
		sync_nodes();
	}
}

static void meet(void *arg)
{
	p3_a32 *met = arg;
	sync_nodes();
	p3_set(met, 1);
}

/*
 * A node comes and goes while others send to it, without a barrier between them.  The
 * senders join before its first life.  For a sender that joins after the last life the
 * node has yet to come, so messages wait until its process ends, and fail then
 * (message_to_a_peer_that_left_before_this_node_joined).
 */
HAND_CASE(peer_may_go_at_any_time, 3)
{
	static const size_t len[] = {8, 8, 700, 50000};
	if (rank == 0) {
		sync_nodes();
		for (unsigned round = 0; round < rounds(30); round++) {
			ni = node_ni();
			ptl_handle_eq_t eq = eq_new(ni, 16);
			post_md(ni, PT, 1, md_of(node_alloc(50000), 50000, MD_ANY, eq));
			ptl_event_t ev;
			int rc = round % 3 ? PtlEQWait(eq, &ev) : PTL_OK;
			CHECK(rc == PTL_OK || rc == PTL_EQ_DROPPED);
			CHECK_OK(PtlNIFini(ni));
		}
		sync_nodes();
		return;
	}
	ni = node_ni();
	sync_nodes();
	ptl_handle_eq_t eq = eq_new(ni, 4096);
	unsigned char *buf = node_alloc(50000);
	ptl_handle_md_t md = bind_md(ni, md_of(buf, 50000, 0, eq));
	p3_a32 met = 0;
	struct side *barrier = side_start(meet, &met);
	unsigned sent = 0, ended = 0;
	for (unsigned i = 0; !p3_get(&met); i++) {
		CHECK_OK(PtlPutRegion(
			md, 0, len[i % 4], PTL_NO_ACK_REQ, id_of(ni, 0), PT, 0, 1, 0, 0));
		sent++;
		ptl_event_t ev;
		while (sent - ended >= 100 || PtlEQGet(eq, &ev) == PTL_OK) {
			if (sent - ended >= 100)
				ev = next_event(eq);
			CHECK_EQ(ev.ni_fail_type, PTL_NI_OK); /* leaving is no failure */
			ended += ev.type == PTL_EVENT_SEND_END;
		}
	}
	while (ended < sent) {
		ptl_event_t ev = next_event(eq);
		CHECK_EQ(ev.ni_fail_type, PTL_NI_OK);
		ended += ev.type == PTL_EVENT_SEND_END;
	}
	side_join(barrier);
}

/* ---- finalising ---- */

static void wait_forever(void *arg)
{
	ptl_handle_eq_t *eq = arg;
	ptl_event_t ev;
	int which;
	if (eq[1] == PTL_EQ_NONE)
		CHECK_RC(PtlEQWait(eq[0], &ev), PTL_EQ_INVALID);
	else
		CHECK_RC(PtlEQPoll(eq, 2, PTL_TIME_FOREVER, &ev, &which), PTL_EQ_INVALID);
}

/* P3.3 3.5: threads that wait get PTL_EQ_INVALID */
HAND_CASE(fini_ends_the_waits_of_other_threads, 2)
{
	for (unsigned round = 0; round < rounds(20); round++) {
		ni = node_ni();
		ptl_handle_eq_t eq[4] = {
			eq_new(ni, 8), PTL_EQ_NONE, eq_new(ni, 8), eq_new(ni, 8)};
		struct side *side[3];
		for (unsigned i = 0; i < 3; i++)
			side[i] = side_start(wait_forever, i == 2 ? &eq[2] : &eq[0]);
		sleep_ms(round % 4 * 15);
		CHECK_OK(PtlNIFini(ni));
		for (unsigned i = 0; i < 3; i++)
			side_join(side[i]);
	}
}

static void call_until_fini(void *arg)
{
	ptl_handle_ni_t ni = *(ptl_handle_ni_t *)arg;
	unsigned char buf[64];
	for (;;) {
		ptl_handle_md_t md;
		ptl_handle_eq_t eq;
		ptl_handle_me_t me;
		int rc = PtlEQAlloc(ni, 8, NULL, &eq);
		if (rc == PTL_OK)
			rc = PtlMDBind(ni, md_of(buf, 0, MD_ANY, eq), PTL_RETAIN, &md);
		if (rc == PTL_OK)
			rc = PtlMEAttach(
				ni, PT, anybody(), 1, 0, PTL_RETAIN, PTL_INS_AFTER, &me);
		if (rc == PTL_OK && PtlMEUnlink(me) == PTL_OK &&
			PtlMDUnlink(md) == PTL_OK && PtlEQFree(eq) == PTL_OK)
			continue;
		/* an EQ of the interface that just went is PTL_EQ_INVALID to a bind */
		if (rc != PTL_OK && rc != PTL_EQ_INVALID)
			CHECK_EQ(rc, PTL_NI_INVALID);
		return;
	}
}

/* P3.3 3.5: other threads are in the middle of calls; each ends with a code */
HAND_CASE(fini_ends_the_calls_of_other_threads, 1)
{
	for (unsigned round = 0; round < rounds(30); round++) {
		ptl_handle_ni_t here = node_ni();
		struct side *side[4];
		for (unsigned i = 0; i < 4; i++)
			side[i] = side_start(call_until_fini, &here);
		sleep_ms(round % 5);
		CHECK_OK(PtlNIFini(here));
		for (unsigned i = 0; i < 4; i++)
			side_join(side[i]);
	}
}

/* ThreadSanitizer reports that PtlNIInit writes settings of the NIC (the mode, the trace)
 * while a thread of its last life looks at them; it takes either value. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) &&                              \
	!defined(__SANITIZE_ADDRESS__) && !defined(P3_VALGRIND)

/* Threads that poll while an interface ends: of the present interface, or of one that has
 * ended. */
static struct {
	p3_a64 queue[2];
	p3_a32 over;
} polled;

enum look { GET, PEEK, POLL_ONE, POLL_TWO, WAIT, TIMED, LOOKS };

static int look_at(enum look look, ptl_handle_eq_t eq[2], ptl_event_t *ev, int *which)
{
	switch (look) {
	case GET:
		return PtlEQGet(eq[0], ev);
	case PEEK:
		return PtlEQPeek(eq[0], ev);
	case WAIT:
		return PtlEQWait(eq[0], ev);
	default:
		return PtlEQPoll(eq, look == POLL_ONE ? 1 : 2, look == TIMED, ev, which);
	}
}

/* Look once.  An event is one of this queue. */
static int look_for_event(enum look look)
{
	int which = 0;
	ptl_event_t ev;
	ptl_handle_eq_t eq[2] = {p3_get(&polled.queue[0]), p3_get(&polled.queue[1])};
	int rc = look_at(look, eq, &ev, &which);
	if (rc == PTL_OK)
		CHECK_EQ((uintptr_t)ev.md.user_ptr, eq[which]);
	else if (rc != PTL_EQ_EMPTY)
		CHECK_EQ(rc, PTL_EQ_INVALID);
	return rc;
}

/* Put a word to this node.  Its events carry their queue's handle. */
static void put_to_myself(ptl_handle_ni_t ni, ptl_handle_eq_t eq)
{
	static unsigned char word[2][8];
	ptl_md_t in = md_of(word[0], 8, MD_ANY, eq), out = md_of(word[1], 8, 0, eq);
	in.user_ptr = out.user_ptr = (void *)(uintptr_t)eq;
	post_md(ni, PT, 1, in);
	CHECK_OK(PtlPut(bind_md(ni, out), PTL_NOACK_REQ, id_of(ni, 0), PT, 0, 1, 0, 0));
}

static ptl_handle_ni_t begin_polled(unsigned life)
{
	ptl_handle_ni_t ni = node_ni();
	for (unsigned q = 0; q < 2; q++)
		p3_set(&polled.queue[q], eq_new(ni, 4u << life % 5 * 3));
	return ni;
}

static void poll_until_over(void *arg)
{
	while (!p3_get(&polled.over))
		(void)look_for_event(*(enum look *)arg);
}

/* They find no queue, or no event, but never an event of a later interface. */
HAND_CASE(fini_ends_the_polls_of_other_threads, 1)
{
	enum look looks[LOOKS];
	struct side *side[LOOKS];
	p3_set(&polled.over, 0);
	for (unsigned i = 0; i < LOOKS; i++) {
		looks[i] = i;
		side[i] = side_start(poll_until_over, &looks[i]);
	}
	for (unsigned life = 0; life < rounds(40); life++) {
		ptl_handle_ni_t here = begin_polled(life);
		put_to_myself(here, p3_get(&polled.queue[life % 2]));
		CHECK_OK(PtlNIFini(here));
	}
	p3_set(&polled.over, 1);
	for (unsigned i = 0; i < LOOKS; i++)
		side_join(side[i]);
}

#define TRAP_FLAG  0x100
#define STEPS_MOST 500u
#define STRIDE     5u /* fewer instructions than a look has between its loads */

/* A thread that looks for an event, an instruction at a time. */
static struct {
	struct p3_nic *nic;
	enum look look;
	uint32_t step;  /* number of the present instruction */
	uint32_t place; /* stop at the first instruction from here on at which
			 * PtlNIFini does not wait for the thread */
	p3_a32 stopped; /* 1: at that place, 2: there is no such place */
	p3_a32 go;
} walk;

/* Return true if the thread holds a resource that the end of the interface waits for. */
static bool is_waited_for(void)
{
	if (p3_lease_held_by(&walk.nic->lease) == P3_LEASE_HOST ||
		p3_get(&walk.nic->waiting))
		return true;
	for (unsigned q = 0; q < 2; q++)
		if (p3_get(&p3_eq_place(walk.nic, p3_get(&polled.queue[q]))
				    ->rx.owner.inside))
			return true;
	return false;
}

static void at_step(int sig, siginfo_t *info, void *context)
{
	ucontext_t *at = context;
	(void)sig, (void)info;
	bool lost = ++walk.step > walk.place + STEPS_MOST; /* it waits for an event */
	if (walk.step < walk.place || (!lost && is_waited_for()))
		return;
	at->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
	walk.place = walk.step;
	p3_set(&walk.stopped, lost ? 2 : 1);
	while (!lost && !p3_get(&walk.go))
		sched_yield();
}

static void set_trap_flag(bool on)
{
	uint64_t flags = __builtin_ia32_readeflags_u64();
	__builtin_ia32_writeeflags_u64(
		on ? flags | TRAP_FLAG : flags & ~(uint64_t)TRAP_FLAG);
}

static void look_by_steps(void *arg)
{
	(void)arg;
	p3_release(&walk.go, 0);
	set_trap_flag(true);
	int rc = look_for_event(walk.look);
	set_trap_flag(false);
	if (!p3_get(&walk.stopped))
		p3_set(&walk.stopped, 2);
	CHECK(rc != PTL_OK);
}

/* End the interface while a thread has come to one place of its look for an event.
 * Return false if it has come to the end. */
static bool end_at_place(bool again, unsigned life)
{
	ptl_handle_ni_t here = begin_polled(life);
	walk.nic = p3_nic(p3_node());
	walk.step = 0;
	p3_set(&walk.stopped, 0);
	struct side *side = side_start(look_by_steps, NULL);
	while (!p3_acquire(&walk.stopped))
		sched_yield();
	CHECK_OK(PtlNIFini(here));
	if (again) { /* the handles stay those of the life that has ended */
		uint64_t old[2] = {p3_get(&polled.queue[0]), p3_get(&polled.queue[1])};
		here = begin_polled(life + 1);
		put_to_myself(here, p3_get(&polled.queue[0]));
		p3_set(&polled.queue[0], old[0]);
		p3_set(&polled.queue[1], old[1]);
	}
	p3_release(&walk.go, 1);
	side_join(side);
	if (again)
		CHECK_OK(PtlNIFini(here));
	return p3_get(&walk.stopped) == 1;
}

/* The same at many instructions of each look, and also with a next interface. */
HAND_CASE(fini_may_come_at_any_place_of_a_poll, 1)
{
	struct sigaction step = {.sa_sigaction = at_step, .sa_flags = SA_SIGINFO}, was;
	CHECK(sigaction(SIGTRAP, &step, &was) == 0);
	for (unsigned i = 0; i < 2 * TIMED; i++) {
		walk.look = i / 2;
		walk.place = i % STRIDE;
		for (unsigned life = 0; end_at_place(i % 2, life); life++)
			walk.place += STRIDE;
	}
	CHECK(sigaction(SIGTRAP, &was, NULL) == 0);
}
#endif

static p3_a32 left; /* number of times that node 0 has aborted */

static void come(void *arg)
{
	*(int *)arg = PtlXBarrier();
}

/* Return true if a thread of this node waits in the barrier. */
static bool waits_in_barrier(void)
{
	struct p3_node *node = p3_node();
	pthread_mutex_lock(&node->life);
	bool waits = node->in_barrier;
	pthread_mutex_unlock(&node->life);
	return waits;
}

/* Node 0, with a thread in the barrier or on its way, closes its interfaces. */
static int break_off(unsigned round, bool all)
{
	int rc = -1;
	ptl_handle_ni_t ni = all && round % 2 ? PTL_INVALID_HANDLE : node_ni();
	struct side *s = side_start(come, &rc);
	/* pause: a stagger: the other thread is on its way, or in the barrier */
	sleep_ms(round % 4 * 10);
	while (all && round % 4 && !waits_in_barrier())
		sleep_ms(1);
	if (all)
		PtlFini();
	else
		CHECK_OK(PtlNIFini(ni));
	if (all)
		side_join(s);
	p3_set(&left, round + 1);
	if (!all)
		side_join(s);
	return rc;
}

static void wait_until_broken_off(unsigned round)
{
	while (p3_get(&left) != round + 1)
		sleep_ms(1);
}

/* PtlFini ends another thread's call of PtlXBarrier, although yod has counted this node
 * in: the node's next call is for the same barrier */
HAND_CASE(fini_of_the_library_ends_the_barrier_of_another_thread, 2)
{
	int most;
	p3_set(&left, 0);
	sync_nodes();
	for (unsigned round = 0; round < rounds(8); round++) {
		if (rank) {
			wait_until_broken_off(round);
		} else {
			int rc = break_off(round, true);
			CHECK(rc == PTL_FAIL || (rc == PTL_NO_INIT && round % 4 == 0));
			CHECK_RC(PtlXBarrier(), PTL_NO_INIT);
			/* pause: the others break off before or after the next PtlInit */
			sleep_ms(round % 3 * 5);
			CHECK_OK(PtlInit(&most));
		}
		sync_nodes();
	}
}

HAND_CASE(fini_of_the_interface_leaves_the_barrier_of_another_thread, 2)
{
	p3_set(&left, 0);
	sync_nodes();
	for (unsigned round = 0; round < rounds(8); round++) {
		if (rank)
			wait_until_broken_off(round);
		CHECK_OK(rank ? PtlXBarrier() : break_off(round, false));
	}
}

/* Two threads of node 0 wait for one barrier.  BROKEN_OFF has come to it; NEXT has
 * aborted that call by PtlFini, and takes the same barrier up by a call of its own. */
enum { BROKEN_OFF, NEXT };

static p3_a32 stays[2], is_there[2]; /* the thread must stay, is, in its handler */
static __thread unsigned which;

static struct {
	pthread_t thread[2];
	pid_t next;      /* the kernel's number of thread[NEXT] */
	p3_a32 is_known; /* thread[BROKEN_OFF] is set */
	p3_a32 broken_off_ends;
	int rc;
} two;

static void stay(int number)
{
	const struct timespec ms = {.tv_nsec = 1000000};
	(void)number;
	p3_set(&is_there[which], 1);
	while (p3_get(&stays[which]))
		nanosleep(&ms, NULL);
}

static void make_stay(unsigned i)
{
	p3_set(&stays[i], 1);
	p3_set(&is_there[i], 0);
	CHECK_EQ(pthread_kill(two.thread[i], SIGUSR2), 0);
	while (!p3_get(&is_there[i]))
		sleep_ms(1);
}

static void come_first(void *arg)
{
	(void)arg;
	two.thread[BROKEN_OFF] = pthread_self();
	p3_release(&two.is_known, 1);
	two.rc = PtlXBarrier();
	p3_release(&two.broken_off_ends, 1);
}

/* Return true if the node has heard of the barrier's end.  Its life thread wakes waiting
 * threads with node->life locked, and threads that stay in their handlers may keep it in
 * that call: so a lock that is taken counts as heard. */
static bool has_heard_of_end(uint32_t before)
{
	struct p3_node *node = p3_node();
	if (pthread_mutex_trylock(&node->life) != 0)
		return true;
	bool heard = node->barriers_done != before;
	pthread_mutex_unlock(&node->life);
	return heard;
}

static uint32_t barriers_done(void)
{
	struct p3_node *node = p3_node();
	pthread_mutex_lock(&node->life);
	uint32_t done = node->barriers_done;
	pthread_mutex_unlock(&node->life);
	return done;
}

/* Keep NEXT in its handler until BROKEN_OFF has returned from the barrier. */
static void let_the_first_hear_first(void *arg)
{
	(void)arg;
	CHECK(await_thread_state(two.next, 'S')); /* in its PtlXBarrier */
	make_stay(NEXT);
	uint32_t before = barriers_done();
	p3_set(&left, 1);
	while (!has_heard_of_end(before))
		sleep_ms(1);
	p3_set(&stays[BROKEN_OFF], 0);
	while (!p3_acquire(&two.broken_off_ends))
		sleep_ms(1);
	p3_set(&stays[NEXT], 0);
}

HAND_CASE(barrier_ends_for_all_that_wait_for_it, 2)
{
	int most;
	struct sigaction act = {.sa_handler = stay, .sa_flags = SA_RESTART};
	p3_set(&left, 0);
	sync_nodes();
	if (rank) {
		wait_until_broken_off(0);
		CHECK_OK(PtlXBarrier());
		return;
	}
	sigaction(SIGUSR2, &act, NULL);
	which = NEXT;
	two.thread[NEXT] = pthread_self();
	two.next = gettid();
	(void)side_start(come_first, NULL);
	while (!p3_acquire(&two.is_known))
		sleep_ms(1);
	while (!waits_in_barrier())
		sleep_ms(1);
	make_stay(BROKEN_OFF);
	PtlFini();
	CHECK_OK(PtlInit(&most));
	(void)side_start(let_the_first_hear_first, NULL);
	CHECK_OK(PtlXBarrier());
	CHECK(p3_acquire(&two.broken_off_ends));
	CHECK_EQ(two.rc, PTL_OK);
}

/* P3.3 3.5: after the return no memory of the caller is touched.  Both ways at once:
 * node 0 finalises while long puts and gets of either side are under way, and its
 * memory goes at once. */
HAND_CASE(fini_in_mid_transfer_touches_nothing_after, 2)
{
	const size_t len = 8 << 20;
	for (unsigned round = 0; round < rounds(12); round++) {
		ni = node_ni();
		unsigned char *in = mmap(NULL, 2 * len, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(in != MAP_FAILED);
		unsigned char *out = in + len;
		ptl_handle_eq_t eq = eq_new(ni, 64), started = eq_new(ni, 64);
		post_md(ni, PT, 1, md_of(in, len, MD_ANY, started));
		post_md(ni, PT, 2, md_of(out, len, MD_ANY, started));
		ptl_handle_md_t put = bind_md(ni, md_of(out, len, 0, eq));
		ptl_handle_md_t get = bind_md(ni, md_of(in, len, 0, eq));
		sync_nodes();
		CHECK_OK(put_to(ni, put, 1 - rank, PT, 1, PTL_ACK_REQ));
		CHECK_OK(get_from(ni, get, 1 - rank, PT, 2));
		(void)next_event(round % 2 ? started : eq);
		if (rank == round / 2 % 2) {
			CHECK_OK(PtlNIFini(ni));
			CHECK_EQ(munmap(in, 2 * len), 0);
			sync_nodes();
			continue;
		}
		/* its operations end, well or badly: all can be unlinked */
		unlink_at_last(put);
		unlink_at_last(get);
		sync_nodes();
		CHECK_OK(PtlNIFini(ni));
		CHECK_EQ(munmap(in, 2 * len), 0);
	}
}

/* Return the bytes that all threads have allocated. */
static size_t heap_used(void)
{
	struct mallinfo2 m = mallinfo2();
	return m.uordblks + m.hblkhd;
}

/* A move into an IOVEC is under way: the copies of its elements go with the interface */
HAND_CASE(fini_in_mid_transfer_frees_the_iovec, 2)
{
	enum { LIVES = 33, PIECES = 1024, PIECE = 1 << 16 };
	const size_t copy = PIECES * sizeof(ptl_md_iovec_t);
	size_t before = 0;
	unsigned char *piece = node_alloc(PIECE);
	ptl_md_iovec_t *iov = (ptl_md_iovec_t *)node_alloc(copy);
	for (unsigned i = 0; i < PIECES; i++)
		iov[i] = (ptl_md_iovec_t){piece, PIECE};
	for (unsigned life = 0; life < LIVES; life++) {
		ni = node_ni();
		ptl_handle_eq_t eq = eq_new(ni, 8);
		ptl_md_t all = md_of(iov, PIECES, MD_ANY | PTL_MD_IOVEC, eq);
		if (rank)
			post_md(ni, PT, 1, all);
		sync_nodes();
		if (!rank)
			CHECK_OK(put_to(ni, bind_md(ni, all), 1, PT, 1, PTL_NO_ACK_REQ));
		expect(eq, rank ? PTL_EVENT_PUT_START : PTL_EVENT_SEND_START);
		if (rank)
			CHECK_OK(PtlNIFini(ni));
		sync_nodes();
		if (!rank)
			CHECK_OK(PtlNIFini(ni));
		sync_nodes();
		size_t used = heap_used();
		before = life ? before : used;
		sync_nodes();
		CHECK(used < before + LIVES / 2 * copy);
	}
}

/* ---- targets that do not exist ---- */

static const size_t lengths[] = {8, 3000, 100000};
enum { LENGTHS = 3, MOST = 100000, ABSENT = 40 };

/* A put from it and a get into it, each recognizable by its length. */
struct tried {
	ptl_handle_md_t put[LENGTHS], get[LENGTHS];
	unsigned char *buf;
};

static void try_all(struct tried *t, ptl_handle_ni_t ni, ptl_process_id_t to,
	ptl_handle_eq_t eq, ptl_handle_eq_t got)
{
	t->buf = node_pattern(MOST, ABSENT);
	for (unsigned i = 0; i < LENGTHS; i++) {
		t->put[i] = bind_md(ni, md_of(t->buf, lengths[i], 0, eq));
		t->get[i] = bind_md(ni, md_of(node_alloc(MOST), lengths[i], 0, got));
		CHECK_OK(PtlPut(t->put[i], PTL_ACK_REQ, to, PT, 0, i, 0, 0));
		CHECK_OK(PtlGet(t->get[i], to, PT, 0, 10 + i, 0));
	}
}

static void unlink_all(struct tried *t)
{
	for (unsigned i = 0; i < LENGTHS; i++) {
		CHECK_OK(PtlMDUnlink(t->put[i]));
		CHECK_OK(PtlMDUnlink(t->get[i]));
	}
}

/* Wait for n events of a kind, among others; all of them are failures, or none. */
static void count_events(ptl_handle_eq_t eq, ptl_event_kind_t kind, unsigned n, bool fail)
{
	while (n) {
		ptl_event_t ev = next_event(eq);
		if (ev.type != kind)
			continue;
		CHECK_EQ(ev.ni_fail_type != PTL_NI_OK, fail);
		n--;
	}
}

/* To a peer that has yet to join: messages arrive in the order of their calls */
HAND_CASE(message_waits_for_a_peer_that_has_yet_to_join, 2)
{
	struct tried t;
	if (rank == 0) {
		ni = node_ni();
		ptl_handle_eq_t eq = eq_new(ni, 64), got = eq_new(ni, 64);
		try_all(&t, ni, id_of(ni, 1), eq, got);
		expect_empty(got);
		CHECK_RC(PtlMDUnlink(t.put[LENGTHS - 1]), PTL_MD_IN_USE);
		sync_nodes();
		count_events(eq, PTL_EVENT_ACK, LENGTHS, false);
		count_events(got, PTL_EVENT_REPLY_END, LENGTHS, false);
		unlink_all(&t);
		sync_nodes();
		CHECK_EQ(drops_of(ni), 0);
		return;
	}
	sync_nodes();
	ni = node_ni();
	ptl_handle_eq_t in = eq_new(ni, 64);
	unsigned char *buf = node_alloc(LENGTHS * (size_t)MOST);
	for (unsigned i = 0; i < LENGTHS; i++)
		post_md(ni, PT, i,
			md_of(buf + i * (size_t)MOST, MOST,
				MD_ANY | PTL_MD_EVENT_END_DISABLE, in));
	for (unsigned i = 0; i < LENGTHS; i++)
		post_md(ni, PT, 10 + i, md_of(buf, MOST, MD_ANY, PTL_EQ_NONE));
	for (unsigned i = 0; i < LENGTHS; i++)
		CHECK_EQ(expect(in, PTL_EVENT_PUT_START).match_bits, i);
	sync_nodes();
	CHECK_EQ(drops_of(ni), 0);
	for (unsigned i = 0; i < LENGTHS; i++)
		CHECK_PATTERN(buf + i * (size_t)MOST, 0, lengths[i], ABSENT);
}

/* A rank ends without having joined: messages to it fail, those to others arrive */
HAND_CASE(message_to_a_peer_that_ends_before_it_joins_fails, 3)
{
	if (rank == 1) {
		sync_nodes();
		node_leave_job();
		return;
	}
	ni = node_ni();
	ptl_handle_eq_t in = eq_new(ni, 64);
	post_md(ni, PT, 1, md_of(node_alloc(8), 8, MD_ANY, in));
	if (rank == 2) {
		sync_nodes();
		expect_pair(in, PTL_EVENT_PUT_START);
		while (put_to(ni, bind_md(ni, md_of(node_alloc(8), 8, 0, PTL_EQ_NONE)), 0,
			       PT, 1, PTL_NOACK_REQ) != PTL_OK)
			;
		return;
	}
	struct tried t;
	ptl_handle_eq_t eq = eq_new(ni, 64), got = eq_new(ni, 64), live = eq_new(ni, 8);
	try_all(&t, ni, id_of(ni, 1), eq, got);
	sync_nodes();
	ptl_handle_md_t md = bind_md(ni, md_of(t.buf, 8, 0, live));
	CHECK_OK(put_to(ni, md, 2, PT, 1, PTL_ACK_REQ));
	count_events(live, PTL_EVENT_ACK, 1, false);
	count_events(got, PTL_EVENT_REPLY_END, LENGTHS, true);
	unlink_all(&t);
	CHECK_OK(put_to(ni, md, 1, PT, 1, PTL_ACK_REQ));
	count_events(live, PTL_EVENT_SEND_END, 1, true);
	expect_pair(in, PTL_EVENT_PUT_START);
}

/* A rank joins and leaves before this node joins, and does not come back: messages to it
 * wait, since it may come back, and fail when its process ends.  They do not fail if this
 * node has seen it leave (message_to_a_finalised_peer_is_no_failure). */
HAND_CASE(message_to_a_peer_that_left_before_this_node_joined, 2)
{
	if (rank == 1) {
		CHECK_OK(PtlNIFini(node_ni()));
		sync_nodes();
		sync_nodes();
		node_leave_job();
		return;
	}
	struct tried t;
	sync_nodes();
	ni = node_ni();
	ptl_handle_eq_t eq = eq_new(ni, 64), got = eq_new(ni, 64);
	try_all(&t, ni, id_of(ni, 1), eq, got);
	expect_empty(eq);
	expect_empty(got);
	sync_nodes();
	count_events(eq, PTL_EVENT_SEND_END, LENGTHS, true);
	count_events(got, PTL_EVENT_REPLY_END, LENGTHS, true);
	unlink_all(&t);
}

/* The message waits for a rank that joins with another pid: it fails then. */
HAND_CASE(message_to_a_pid_that_never_joins_fails, 2)
{
	if (rank == 1) {
		sync_nodes();
		(void)node_ni();
		sync_nodes();
		return;
	}
	struct tried t, later;
	ni = node_ni();
	ptl_handle_eq_t eq = eq_new(ni, 64), got = eq_new(ni, 64);
	ptl_process_id_t other = id_of(ni, 1);
	other.pid += 1000;
	try_all(&t, ni, other, eq, got);
	expect_empty(got);
	sync_nodes();
	count_events(got, PTL_EVENT_REPLY_END, LENGTHS, true);
	count_events(eq, PTL_EVENT_SEND_END, LENGTHS, true);
	unlink_all(&t);
	try_all(&later, ni, other, eq, got);
	count_events(got, PTL_EVENT_REPLY_END, LENGTHS, true);
	count_events(eq, PTL_EVENT_SEND_END, LENGTHS, true);
	unlink_all(&later);
	sync_nodes();
}

/* Rank 1 of the next cases stays outside of the library until rank 0 is done. */
static p3_a32 done;

static void stay_away(void)
{
	while (!p3_get(&done))
		sleep_ms(1);
	p3_set(&done, 0);
}

/* Put another file in the place of the connection to yod, as a program does that closes
 * all descriptors and opens files. */
static void close_lifeline(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
	CHECK(dup2(fd, p3_node()->sock) >= 0);
	close(fd);
}

/* Without the connection yod cannot tell when a rank joins or ends: messages that wait
 * for a rank fail. */
HAND_CASE(message_that_is_held_fails_without_a_lifeline, 2)
{
	if (rank == 1) {
		stay_away();
		return;
	}
	struct tried t;
	ni = node_ni();
	ptl_handle_eq_t eq = eq_new(ni, 64), got = eq_new(ni, 64);
	try_all(&t, ni, id_of(ni, 1), eq, got);
	expect_empty(got);
	close_lifeline();
	count_events(got, PTL_EVENT_REPLY_END, LENGTHS, true);
	count_events(eq, PTL_EVENT_SEND_END, LENGTHS, true);
	unlink_all(&t);
	p3_set(&done, 1);
}

/* Post a command as a signal handler does, which cannot wait for the result. */
static void post_detached(
	struct p3_nic *n, uint16_t op, ptl_handle_md_t md, ptl_process_id_t to)
{
	struct p3_cmd c = {
		.op = op, .handle = md, .move = {.target = to, .length = P3_WHOLE}};
	uint32_t slot = p3_mbx_alloc(n->mailbox);
	CHECK(slot != P3_MBX_NONE);
	p3_add32(&n->detached, 1);
	p3_mbx_post(n->mailbox, slot, &c, sizeof c, true);
}

HAND_CASE(message_of_a_handler_that_cannot_be_held_fails, 2)
{
	if (rank == 1) {
		stay_away();
		return;
	}
	ni = node_ni();
	struct p3_nic *n = p3_nic(p3_node());
	ptl_handle_eq_t eq = eq_new(ni, 64), got = eq_new(ni, 64);
	ptl_process_id_t to = id_of(ni, 1);
	ptl_handle_md_t put = bind_md(ni, md_of(node_alloc(8), 8, 0, eq));
	ptl_handle_md_t get = bind_md(ni, md_of(node_alloc(8), 8, 0, got));
	nic_hold(n);
	n->held_most = 0;
	p3_lease_leave(n);
	CHECK_RC(PtlPut(put, PTL_NOACK_REQ, to, PT, 0, 0, 0, 0), PTL_NO_SPACE);
	expect_empty(eq);
	post_detached(n, P3_OP_PUT, put, to);
	post_detached(n, P3_OP_GET, get, to);
	count_events(eq, PTL_EVENT_SEND_END, 1, true);
	count_events(got, PTL_EVENT_REPLY_END, 1, true);
	CHECK_OK(PtlMDUnlink(put));
	CHECK_OK(PtlMDUnlink(get));
	p3_set(&done, 1);
}

static uint32_t shown_held(struct p3_nic *n)
{
	return (uint32_t)p3_get(&n->peer[1].mine->shown_ops);
}

/* End the request that has been held longest, as if its time was over. */
static void expire_one(struct p3_nic *n)
{
	struct p3_on_hold rest;
	nic_hold(n);
	p3_item(n->absent.queue.next, struct p3_pending, link)->held_ns = 0;
	p3_lease_leave(n);
	p3_nic_held(n, &rest);
}

/* Tools see as many requests as are held, also when an interface has closed. */
HAND_CASE(gauge_of_held_messages_follows_them, 2)
{
	enum { OWN = 2, OTHERS = 3 };
	if (rank == 1) {
		stay_away();
		return;
	}
	ptl_handle_ni_t other;
	ni = node_ni();
	struct p3_nic *n = p3_nic(p3_node());
	CHECK_OK(PtlNIInit(PTL_IFACE_SS, PTL_PID_ANY, NULL, NULL, &other));
	ptl_md_t d = md_of(node_alloc(8), 8, MD_QUIET, PTL_EQ_NONE);
	ptl_handle_md_t own = bind_md(ni, d), others = bind_md(other, d);
	for (unsigned i = 0; i < OWN + OTHERS; i++)
		CHECK_OK(put_to(ni, i < OTHERS ? others : own, 1, PT, 0, PTL_NOACK_REQ));
	CHECK_EQ(shown_held(n), OWN + OTHERS);
	CHECK_OK(PtlNIFini(other));
	CHECK_EQ(shown_held(n), OWN);
	expire_one(n);
	CHECK_EQ(shown_held(n), OWN - 1);
	expire_one(n);
	CHECK_EQ(shown_held(n), 0);
	p3_set(&done, 1);
}

/*
 * Both interfaces of a process close while short puts of each wait for a peer that has
 * yet to join.  The puts outlive their interfaces: PtlNIFini of the last one waits for
 * them, and each arrives with the id of its own interface.
 */
static void close_two(NODE_ARGS)
{
	enum { EACH = 3 };
	static ptl_process_id_t id[2];
	static pid_t leaver;
	const unsigned *first = arg;
	ptl_handle_ni_t both[2];
	if (rank == 0) {
		both[0] = node_ni();
		CHECK_OK(PtlNIInit(PTL_IFACE_SS, PTL_PID_ANY, NULL, NULL, &both[1]));
		ptl_md_t d = md_of(node_alloc(8), 8, MD_QUIET, PTL_EQ_NONE);
		for (unsigned i = 0; i < 2; i++)
			CHECK_OK(PtlGetId(both[i], &id[i]));
		for (unsigned i = 0; i < 2 * EACH; i++) {
			ptl_handle_md_t md = bind_md(both[i % 2], d);
			CHECK_OK(put_to(both[0], md, 1, PT, i % 2, PTL_NOACK_REQ));
			CHECK_OK(PtlMDUnlink(md));
		}
		CHECK_OK(PtlNIFini(both[*first]));
		leaver = gettid();
		sync_nodes();
		CHECK_OK(PtlNIFini(both[1 - *first]));
		sync_nodes();
		return;
	}
	sync_nodes();
	CHECK(await_thread_state(leaver, 'S')); /* in its last PtlNIFini */
	ni = node_ni();
	ptl_handle_eq_t eq = eq_new(ni, 64);
	for (unsigned i = 0; i < 2; i++)
		post_md(ni, PT, i, sink_md(node_alloc(8), 8, eq));
	for (unsigned i = 0; i < 2 * EACH; i++) {
		ptl_event_t ev = expect(eq, PTL_EVENT_PUT_END);
		CHECK_EQ(ev.match_bits, i % 2);
		CHECK_EQ(ev.initiator.pid, id[i % 2].pid);
	}
	sync_nodes();
	CHECK_EQ(drops_of(ni), 0);
}

CASE(held_puts_outlive_both_interfaces)
{
	for (unsigned first = 0; first < 2; first++)
		run_by_hand(2, close_two, &first);
}

/* Only the first p3_nic_peer_down() returns the peer's mappings.  Its caller unmaps them,
 * and other memory may lie at these addresses at the second call. */
NODES_CASE(mappings_of_a_lost_peer_are_handed_out_once, 2)
{
	sync_nodes();
	if (rank == 0) {
		struct p3_nic *n = p3_nic(p3_node());
		struct p3_peer_info first = {.node = 1, .any = true, .now = true};
		first.end = P3_PEER_DIED;
		struct p3_peer_info second = first;
		struct p3_cmd c = {.op = P3_OP_PEER_DOWN, .peer = &second};
		nic_hold(n);
		void *base = n->peer[1].base;
		p3_lease_leave(n);
		CHECK(base != NULL);
		CHECK(p3_nic_peer_down(n, &first));
		CHECK(first.base == base);
		nic_hold(n);
		(void)p3_peer_down(n, &c);
		p3_lease_leave(n);
		CHECK(second.base == NULL && second.doorbell_at == NULL);
	}
	sync_nodes();
}

/* At most half of the pendings wait; then the call says so, and others are still
 * reached */
HAND_CASE(messages_that_wait_are_bounded_and_stay_in_order, 2)
{
	static p3_a32 sent;
	const unsigned most = 200000;
	unsigned n = 0;
	if (rank == 0) {
		ni = node_ni();
		uint64_t *src = (uint64_t *)node_alloc(8 * (size_t)most);
		ptl_handle_eq_t eq = eq_new(ni, 64);
		ptl_handle_md_t md =
			bind_md(ni, md_of(src, 8 * (size_t)most, 0, PTL_EQ_NONE));
		for (int rc = PTL_OK; rc == PTL_OK && n < most; n += rc == PTL_OK) {
			src[n] = n + 1;
			rc = PtlPutRegion(md, 8 * (ptl_size_t)n, 8, PTL_NOACK_REQ,
				id_of(ni, 1), PT, 0, 0, 0, 0);
			if (rc != PTL_OK)
				CHECK_RC(rc, PTL_NO_SPACE);
		}
		CHECK(n > 1000 && n < most);
		post_md(ni, PT, 2, md_of(node_alloc(8), 8, MD_ANY, PTL_EQ_NONE));
		ptl_handle_md_t self = bind_md(ni, md_of(src, 8, 0, eq));
		CHECK_OK(put_to(ni, self, 0, PT, 2, PTL_ACK_REQ));
		count_events(eq, PTL_EVENT_ACK, 1, false);
		p3_set(&sent, n);
		sync_nodes();
		int rc;
		while ((rc = put_to(ni, self, 1, PT, 1, PTL_ACK_REQ)) == PTL_NO_SPACE)
			sched_yield();
		CHECK_EQ(rc, PTL_OK);
		count_events(eq, PTL_EVENT_ACK, 1, false);
		sync_nodes();
		return;
	}
	sync_nodes();
	n = p3_get(&sent);
	ni = node_ni();
	uint64_t *got = (uint64_t *)node_alloc(8 * (size_t)most);
	ptl_handle_eq_t last = eq_new(ni, 8);
	post_md(ni, PT, 0,
		md_of(got, 8 * (size_t)most, PTL_MD_OP_PUT | MD_QUIET, PTL_EQ_NONE));
	post_md(ni, PT, 1, md_of(node_alloc(8), 8, MD_ANY, last));
	expect_pair(last, PTL_EVENT_PUT_START);
	for (unsigned i = 0; i < n; i++)
		CHECK_EQ(got[i], i + 1);
	CHECK_EQ(drops_of(ni), 0);
	sync_nodes();
}

/* P3.3 5.6: a message to a finalised interface is discarded, which is no failure; under
 * PTL3_ABSENT=drop also one to an interface that does not exist yet. */
static void discarded_node(NODE_ARGS)
{
	const bool *before = arg;
	if (rank) {
		sync_nodes();
		if (!*before)
			CHECK_OK(PtlNIFini(node_ni()));
		sync_nodes();
		sync_nodes();
		return;
	}
	struct tried t;
	ni = node_ni();
	ptl_handle_eq_t eq = eq_new(ni, 64), got = eq_new(ni, 64);
	sync_nodes();
	sync_nodes();
	try_all(&t, ni, id_of(ni, 1), eq, got);
	for (unsigned i = 0; i < LENGTHS; i++) {
		expect_pair(eq, PTL_EVENT_SEND_START);
	}
	expect_empty(eq);
	expect_empty(got);
	unlink_all(&t);
	sync_nodes();
}

CASE(message_to_a_finalised_peer_is_no_failure)
{
	bool before = false;
	run_by_hand(2, discarded_node, &before);
}

CASE(message_to_an_absent_peer_is_dropped_on_request)
{
	bool before = true;
	setenv("PTL3_ABSENT", "drop", 1);
	run_by_hand(2, discarded_node, &before);
	unsetenv("PTL3_ABSENT");
}

/* ---- unlink behind puts that wait ---- */

/* Rank 0 puts this number of words to rank 1 before that comes, and unlinks the
 * descriptor at once.  Rank 1 attaches its entry after that. */
struct early {
	unsigned words;
	bool expected; /* rank 0 expects rank 1; else it unlinks when rank 1 is there */
};

static void wait_until_live(struct p3_nic *n, unsigned rank)
{
	for (bool live = false; !live; sleep_ms(1)) {
		nic_hold(n);
		live = n->peer[rank].state == P3_LIVE;
		p3_lease_leave(n);
	}
}

/* Announce rank 1 to rank 0's NIC, as a domain does before it maps a new member. */
static void expect_rank_1(ptl_handle_ni_t ni)
{
	ptl_process_id_t id = id_of(ni, 1);
	struct p3_peer_info info = {.node = 1,
		.nid = id.nid,
		.pid = {id.pid, P3_JOB_NO_PID},
		.incarnation = 1};
	p3_nic_peer_expect(p3_nic(p3_node()), &info);
}

/* Tools see no request for a peer that has ended before it was mapped. */
HAND_CASE(gauge_of_an_expected_peer_ends_with_it, 2)
{
	if (rank == 1) {
		stay_away();
		return;
	}
	ni = node_ni();
	struct p3_nic *n = p3_nic(p3_node());
	struct p3_peer_info end = {.node = 1, .incarnation = 1, .end = P3_PEER_DIED};
	expect_rank_1(ni);
	CHECK_OK(put_to(ni, bind_md(ni, md_of(node_alloc(8), 8, MD_QUIET, PTL_EQ_NONE)),
		1, PT, 0, PTL_NOACK_REQ));
	CHECK_EQ(shown_held(n), 1);
	CHECK(p3_nic_peer_down(n, &end));
	CHECK_EQ(shown_held(n), 0);
	p3_set(&done, 1);
}

static void put_words_early(ptl_handle_ni_t ni, const struct early *e)
{
	ptl_handle_eq_t eq = eq_new(ni, e->words);
	uint64_t *from = (uint64_t *)node_alloc(8 * e->words);
	ptl_handle_md_t md = bind_md(ni, source_md(from, 8 * e->words, eq));
	if (e->expected)
		expect_rank_1(ni);
	for (unsigned i = 0; i < e->words; i++) {
		from[i] = i + 1;
		CHECK_OK(PtlPutRegion(
			md, 8 * i, 8, PTL_NO_ACK_REQ, id_of(ni, 1), PT, 0, 1, 8 * i, 0));
	}
	if (!e->expected) {
		meet_nodes();
		wait_until_live(p3_nic(p3_node()), 1);
	}
	CHECK_OK(PtlMDUnlink(md));
	memset(from, 0, 8 * e->words);
	if (e->expected)
		meet_nodes();
	count_events(eq, PTL_EVENT_SEND_END, e->words, false);
}

#define UNSETTLED (-3600) /* age of an interface that waits, however long that takes */

/* Make this node's interface look as if it was opened this time ago, or will be. */
static void be_old(int seconds)
{
	nic_hold(nic());
	nic()->ni[0].opened_ns = p3_now_ns() - (uint64_t)seconds * UINT64_C(1000000000);
	p3_lease_leave(nic());
}

static void early_node(NODE_ARGS)
{
	const struct early *e = arg;
	if (rank == 0) {
		ni = node_ni();
		put_words_early(ni, e);
		meet_nodes();
		meet_nodes();
		return;
	}
	meet_nodes();
	ni = node_ni();
	be_old(UNSETTLED);
	meet_nodes();
	ptl_handle_eq_t eq = eq_new(ni, e->words);
	uint64_t *to = (uint64_t *)node_alloc(8 * e->words);
	post_md(ni, PT, 1,
		md_of(to, 8 * e->words,
			MD_ANY | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE, eq));
	for (unsigned i = 0; i < e->words; i++) {
		expect(eq, PTL_EVENT_PUT_END);
		CHECK_EQ(to[i], i + 1);
	}
	meet_nodes();
}

static void run_early(unsigned words, bool expected)
{
	struct early e = {words, expected};
	run_by_hand(2, early_node, &e);
}

/* The target is announced, and its segment is about to be mapped */
CASE(descriptor_of_a_put_to_an_expected_peer_is_free)
{
	run_early(3, true);
}

/* The target has joined, and its lane is too short for all that waited for it */
CASE(descriptor_of_puts_that_waited_is_free)
{
	run_early(2000, false);
}

/* ---- an interface settles ---- */

/* Wait until the firmware has looked at its lanes twice more. */
static void wait_for_passes(void)
{
	struct p3_nic *n = p3_nic(p3_node());
	uint64_t before = p3_nic_counter(n, P3_C_PASSES);
	while (p3_nic_counter(n, P3_C_PASSES) < before + 2)
		sleep_ms(1);
}

enum { SETTLE = 0x5e };

/* Wait for the events of n puts: all START in the order of hdr_data, and as many END. */
static void await_puts(ptl_handle_eq_t eq, unsigned n)
{
	unsigned started = 0, ended = 0;
	while (started < n || ended < n) {
		ptl_event_t ev = next_event(eq);
		CHECK_EQ(ev.ni_fail_type, PTL_NI_OK);
		if (ev.type == PTL_EVENT_PUT_START)
			CHECK_EQ(ev.hdr_data, started++);
		else
			ended++;
	}
}

/* A message that comes before the program has attached its entry waits for the entry; a
 * message that comes after the program has looked for an event does not */
HAND_CASE(message_waits_for_an_interface_to_settle, 2)
{
	ptl_event_t ev;
	ni = node_ni();
	be_old(UNSETTLED);
	ptl_handle_eq_t eq = eq_new(ni, 64);
	meet_nodes();
	if (rank == 0) {
		ptl_handle_md_t md = bind_md(ni, md_of(node_alloc(8), 8, 0, eq));
		CHECK_OK(put_to(ni, md, 1, PT, 1, PTL_ACK_REQ));
		count_events(eq, PTL_EVENT_SEND_END, 1, false);
		meet_nodes();
		count_events(eq, PTL_EVENT_ACK, 1, false);
		meet_nodes();
		CHECK_OK(put_to(ni, md, 1, PT, 2, PTL_ACK_REQ));
		count_events(eq, PTL_EVENT_SEND_END, 1, false);
		meet_nodes();
		return;
	}
	meet_nodes();
	wait_for_passes();
	CHECK_EQ(drops_of(ni), 0);
	me_last(ni, PT, 9, 0, PTL_RETAIN); /* another one, without a descriptor */
	wait_for_passes();
	CHECK_EQ(drops_of(ni), 0);
	post_md(ni, PT, 1, md_of(node_alloc(8), 8, MD_ANY, eq));
	expect_pair(eq, PTL_EVENT_PUT_START);
	CHECK_RC(PtlEQGet(eq, &ev), PTL_EQ_EMPTY);
	meet_nodes();
	run_for_drops(ni, 1);
	meet_nodes();
}

/* Messages of several lengths, more than the lane has room for, wait for an interface to
 * settle; each arrives once and in its order */
HAND_CASE(many_messages_wait_for_an_interface_to_settle, 2)
{
	enum { COUNT = 300, ROOM = 9000 };
	static const ptl_size_t len[] = {8, 700, ROOM};
	unsigned char *bytes = rank == 0 ? node_pattern((size_t)COUNT * ROOM, SETTLE)
					 : node_alloc((size_t)COUNT * ROOM);
	ni = node_ni();
	be_old(UNSETTLED);
	ptl_handle_eq_t eq = eq_new(ni, 2 * COUNT);
	ptl_md_t all = md_of(bytes, (size_t)COUNT * ROOM, MD_ANY, eq);
	meet_nodes();
	if (rank == 0) {
		ptl_handle_md_t md = bind_md(ni, all);
		for (unsigned i = 0; i < COUNT; i++)
			CHECK_OK(PtlPutRegion(md, i * ROOM, len[i % 3], PTL_NOACK_REQ,
				id_of(ni, 1), PT, 0, 1, i * ROOM, i));
		meet_nodes();
		count_events(eq, PTL_EVENT_SEND_END, COUNT, false);
	} else {
		meet_nodes();
		wait_for_passes();
		CHECK_EQ(drops_of(ni), 0);
		post_md(ni, PT, 1, all);
		await_puts(eq, COUNT);
		for (unsigned i = 0; i < COUNT; i++)
			CHECK_PATTERN(bytes + i * ROOM, i * ROOM, len[i % 3], SETTLE);
		expect_empty(eq);
		CHECK_EQ(drops_of(ni), 0);
	}
	meet_nodes();
}

/* While a program attaches no entry and looks for no event, messages to it wait: five
 * seconds after PtlNIInit they still do, after ten the target drops them */
HAND_CASE(interface_settles_by_itself, 2)
{
	ni = node_ni();
	be_old(UNSETTLED);
	meet_nodes();
	if (rank == 0) {
		ptl_handle_eq_t eq = eq_new(ni, 64);
		ptl_handle_md_t md = bind_md(ni, md_of(node_alloc(8), 8, 0, eq));
		CHECK_OK(put_to(ni, md, 1, PT, 1, PTL_ACK_REQ));
		count_events(eq, PTL_EVENT_SEND_END, 1, false);
	} else {
		uint64_t since = now_ms();
		be_old(5);
		/* pause: time for a wrong drop */
		sleep_ms(50);
		wait_for_passes();
		/* or this thread stood still until the ten seconds were over */
		CHECK(drops_of(ni) == 0 || now_ms() - since >= 5000);
		be_old(10);
		run_for_drops(ni, 1);
	}
	meet_nodes();
}

/* ---- unknown targets ---- */

/* The interface closes while a request waits for news of its target.  The request must
 * drop its reference to the copy of its IOVEC elements, or the leak checker reports it */
HAND_CASE(fini_drops_what_waits_for_word_of_its_target, 2)
{
	static const unsigned n = 4;
	for (unsigned i = 0; rank == 0 && i < rounds(100); i++) {
		ni = node_ni();
		ptl_md_iovec_t *iov = (ptl_md_iovec_t *)node_alloc(n * sizeof *iov);
		for (unsigned k = 0; k < n; k++)
			iov[k] = (ptl_md_iovec_t){node_alloc(8), 8};
		ptl_handle_md_t md =
			bind_md(ni, md_of(iov, n, PTL_MD_IOVEC, PTL_EQ_NONE));
		CHECK_OK(put_to(ni, md, 1, PT, 1, PTL_NO_ACK_REQ));
		CHECK_OK(PtlNIFini(ni));
	}
	sync_nodes();
}

/* P3.3 5.6: no such process: put SEND_START, failing SEND_END; get REPLY_START, failing
 * REPLY_END with nothing moved */
NODES_CASE(message_to_nobody_fails, 2)
{
	ptl_handle_eq_t eq = eq_new(ni, 64);
	unsigned char *buf = node_alloc(100000);
	ptl_process_id_t mine = id_of(ni, rank);
	const ptl_process_id_t absent[] = {{mine.nid + 1000, mine.pid}, {9, 100},
		{12, 102}, {0, 0}, {0xfffffffe, 5}};
	static const size_t len[] = {8, 3000, 100000};
	for (unsigned i = 0; i < 5; i++)
		for (unsigned k = 0; k < 3; k++) {
			ptl_md_t md = md_of(buf, len[k], 0, eq);
			md.threshold = 2;
			ptl_handle_md_t h = bind_md(ni, md);
			CHECK_OK(PtlPut(h, PTL_ACK_REQ, absent[i], PT, 0, 1, 0, 3));
			CHECK_EQ(expect(eq, PTL_EVENT_SEND_START).md.threshold, 1);
			ptl_event_t ev = next_event(eq);
			CHECK_EQ(ev.type, PTL_EVENT_SEND_END);
			CHECK(ev.ni_fail_type != PTL_NI_OK);
			CHECK_EQ(ev.hdr_data, 3);
			CHECK_OK(PtlGet(h, absent[i], PT, 0, 1, 0));
			CHECK_EQ(expect(eq, PTL_EVENT_REPLY_START).md.threshold, 0);
			ev = next_event(eq);
			CHECK_EQ(ev.type, PTL_EVENT_REPLY_END);
			CHECK(ev.ni_fail_type != PTL_NI_OK);
			CHECK_EQ(ev.mlength, 0);
			CHECK_OK(PtlMDUnlink(h));
		}
	expect_empty(eq);
	CHECK_EQ(drops_of(ni), 0);
	sync_nodes();
}

/* A node of the job has no interface with this pid, perhaps not yet: in every case the
 * put ends, and everything can be unlinked */
NODES_CASE(message_to_a_foreign_pid_ends, 2)
{
	ptl_handle_eq_t eq = eq_new(ni, 64), silent = eq_new(ni, 64);
	unsigned char *buf = node_alloc(100000);
	ptl_process_id_t to = id_of(ni, 1 - rank);
	const ptl_pid_t pid[] = {to.pid + 500, 0xfffe, 0x10000 + to.pid, 0xfffffffe};
	static const size_t len[] = {8, 3000, 100000};
	sync_nodes();
	for (unsigned i = 0; i < 4; i++)
		for (unsigned k = 0; k < 3; k++) {
			ptl_handle_md_t h = bind_md(ni, md_of(buf, len[k], 0, eq));
			ptl_handle_md_t g = bind_md(ni, md_of(buf, len[k], 0, silent));
			to.pid = pid[i];
			CHECK_OK(PtlPut(h, PTL_ACK_REQ, to, PT, 0, 1, 0, 3));
			CHECK_OK(PtlGet(g, to, PT, 0, 1, 0));
			expect(eq, PTL_EVENT_SEND_START);
			CHECK_EQ(next_event(eq).type, PTL_EVENT_SEND_END);
			CHECK_OK(PtlMDUnlink(h));
			CHECK_OK(PtlMDUnlink(g));
		}
	expect_empty(eq);
	sync_nodes();
	CHECK_EQ(drops_of(ni), 0);
}

/* ---- death ---- */

static bool ends(const ptl_event_t *ev)
{
	return ev->type == PTL_EVENT_SEND_END || ev->type == PTL_EVENT_REPLY_END ||
	       ev->type == PTL_EVENT_PUT_END || ev->type == PTL_EVENT_GET_END;
}

/* Every START has its END, those with the dead node may fail; unlinking works. */
static void drain_all(ptl_handle_eq_t eq, unsigned starts_due, bool *failed)
{
	unsigned starts = 0, finished = 0;
	while (starts < starts_due || finished < starts) {
		ptl_event_t ev = next_event(eq);
		if (ends(&ev)) {
			finished++;
			*failed |= ev.ni_fail_type != PTL_NI_OK;
		} else if (ev.type != PTL_EVENT_ACK) {
			CHECK_EQ(ev.ni_fail_type, PTL_NI_OK);
			starts++;
		}
	}
}

/* A node dies with operations of either side pending, short, long, and not yet sent */
static void death_node(NODE_ARGS)
{
	const size_t len = 30 << 20;
	unsigned char *buf = node_alloc(len);
	ptl_handle_eq_t eq = eq_new(ni, 1024), in = eq_new(ni, 1024);
	post_md(ni, PT, 1, md_of(buf, len, MD_ANY, in));
	ptl_handle_md_t md = bind_md(ni, md_of(buf, len, 0, eq));
	sync_nodes();
	if (rank == 2) {
		CHECK_OK(put_to(ni, md, 0, PT, 1, PTL_ACK_REQ));
		CHECK_OK(get_from(ni, md, 1, PT, 1));
		(void)next_event(in);
		node_die();
		meet_nodes();
		meet_nodes();
		meet_nodes();
		return;
	}
	for (unsigned i = 0; i < 10; i++) {
		CHECK_OK(put_to(ni, md, 2, PT, 1, PTL_ACK_REQ));
		CHECK_OK(get_from(ni, md, 2, PT, 1));
	}
	bool failed = false;
	drain_all(eq, 20, &failed);
	struct patience p = patience_begin();
	while (!failed && !patience_is_over(&p)) { /* all had ended before it died */
		CHECK_OK(put_to(ni, md, 2, PT, 1, PTL_ACK_REQ));
		drain_all(eq, 1, &failed);
	}
	CHECK(failed);
	unlink_at_last(md);
	meet_nodes();
	/* the others go on, and messages to the dead node fail at once */
	ptl_handle_eq_t after = eq_new(ni, 64), there = eq_new(ni, 64);
	post_md(ni, PT, 7, md_of(buf, 100, MD_ANY, there));
	md = bind_md(ni, md_of(buf, 100, 0, after));
	meet_nodes();
	CHECK_OK(put_to(ni, md, 1 - rank, PT, 7, PTL_ACK_REQ));
	expect_pair(after, PTL_EVENT_SEND_START);
	expect(after, PTL_EVENT_ACK);
	expect_pair(there, PTL_EVENT_PUT_START);
	CHECK_OK(put_to(ni, md, 2, PT, 7, PTL_ACK_REQ));
	expect(after, PTL_EVENT_SEND_START);
	CHECK(next_event(after).ni_fail_type != PTL_NI_OK);
	CHECK_OK(get_from(ni, md, 2, PT, 7));
	expect(after, PTL_EVENT_REPLY_START);
	CHECK(next_event(after).ni_fail_type != PTL_NI_OK);
	CHECK_RC(PtlXBarrier(), PTL_FAIL);
	meet_nodes();
}

CASE(death_ends_what_is_pending_with_the_dead)
{
	for (unsigned i = 0; i < rounds(4); i++)
		run_nodes(3, death_node, NULL);
}

/* ---- queues that are freed while their interface closes ---- */

static void make_and_free_queues(void *arg)
{
	ptl_handle_ni_t ni = *(ptl_handle_ni_t *)arg;
	ptl_handle_eq_t eq;
	while (PtlEQAlloc(ni, 4, PTL_EQ_HANDLER_NONE, &eq) == PTL_OK)
		if (PtlEQFree(eq) != PTL_OK)
			return;
}

/* Check that all places in the table are free in a node without queues. */
static void check_places(void)
{
	struct p3_table *t = &p3_nic(p3_node())->table[P3_T_EQ];
	uint32_t n = 0;
	for (const struct p3_object *at = t->free_head; at; at = at->next_free)
		n++;
	CHECK_EQ(n, t->used);
}

HAND_CASE(queues_freed_while_the_interface_closes_leave_their_places, 1)
{
	for (unsigned i = 0; i < rounds(500); i++) {
		ptl_handle_ni_t mine = node_ni();
		check_places();
		struct side *s = side_start(make_and_free_queues, &mine);
		uint64_t until = p3_now_ns() + 100000 + i * 500;
		while (p3_now_ns() < until)
			sched_yield();
		CHECK_OK(PtlNIFini(mine));
		side_join(s);
	}
	(void)node_ni();
	check_places();
}

/* ---- large queues ---- */

/* Return the number of files of event records that are mapped. */
static unsigned mapped_queues(void)
{
	char line[400];
	unsigned n = 0;
	FILE *f = fopen("/proc/self/maps", "r");
	CHECK(f != NULL);
	while (fgets(line, sizeof line, f))
		n += strstr(line, "memfd:p3-queue") != NULL;
	fclose(f);
	return n;
}

HAND_CASE(fini_gives_the_memory_of_large_queues_back, 1)
{
	for (unsigned life = 0; life < 3; life++) {
		ptl_handle_ni_t mine = node_ni();
		for (unsigned i = 0; i < 3; i++)
			(void)eq_new(mine, 1 << 15);
		CHECK_EQ(mapped_queues(), 3);
		CHECK_OK(PtlNIFini(mine));
		CHECK_EQ(mapped_queues(), 0);
	}
	(void)node_ni();
}
