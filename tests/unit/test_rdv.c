/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rendezvous, driven through socketpairs by nodes that live in this test.  Only the
 * cases about deadlines sleep; settle() runs the server until it is idle.
 */
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/loop.h"
#include "launcher/rdv/table.h"
#include "launcher/yod/yod.h"
#include "support/asleep.h"
#include "support/descriptors.h"
#include "support/patience.h"
#include "shm/job.h"
#include "shm/layout.h"
#include "support/cases.h"

#define NODES  4
#define LAYOUT UINT64_C(0xabcdef)
#define SEG    UINT64_C(8192)
#define HEAP   (4 * SEG)

struct world {
	struct p3_loop loop;
	struct p3_rdv *rdv;
	int sock[NODES];
	bool crowded; /* the case itself has too many descriptors under way */
	unsigned open_before;
};

static char said[2000]; /* by the rendezvous, in the present case */

static uint32_t count_joined(const struct world *w)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < w->rdv->conf.size; i++)
		n += w->rdv->node[i].state == NODE_JOINED;
	return n;
}

/* Return the number of packets that wait until the node reads. */
static uint32_t count_queued(const struct world *w, uint32_t i)
{
	return w->rdv->node[i].out.n;
}

static void hear(const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	vsnprintf(said + strlen(said), sizeof said - strlen(said), fmt, args);
	va_end(args);
}

/* Return true if a packet waits since other programs of this user have too many
 * descriptors under way. */
static bool is_kept_waiting(const struct world *w)
{
	bool waits = false;
	for (uint32_t i = 0; i < w->rdv->conf.size; i++)
		waits |= w->rdv->node[i].retry;
	return waits && !w->crowded;
}

static void settle(struct world *w)
{
	struct pollfd p = {.fd = w->loop.ep, .events = POLLIN};
	struct patience limit = patience_begin();
	for (;;) {
		while (poll(&p, 1, 0) > 0)
			p3_loop_run(&w->loop, 0);
		if (!is_kept_waiting(w) || patience_is_over(&limit))
			break;
		p3_loop_run(&w->loop, p3_now_ms() + 5);
	}
}

static void settle_for(struct world *w, int ms)
{
	int64_t end = p3_now_ms() + ms, began;
	do {
		began = p3_now_ms();
		p3_loop_run(&w->loop, began + 5);
	} while (began < end); /* so that all timers until then have gone off */
	settle(w);
}

/* Run the server until a packet arrives. */
static void settle_until_heard(struct world *w, uint32_t i)
{
	struct pollfd p = {.fd = w->sock[i], .events = POLLIN};
	struct patience limit = patience_begin();
	while (poll(&p, 1, 0) == 0 && !patience_is_over(&limit))
		p3_loop_run(&w->loop, p3_now_ms() + 5);
	settle(w);
}

/* Return yod's end of a new socket of the node. */
static int pair_of(struct world *w, uint32_t i)
{
	int pair[2];
	assert_int_equal(socketpair(AF_UNIX,
				 SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair),
		0);
	/* before a process can send */
	assert_int_equal(
		setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int)), 0);
	w->sock[i] = pair[1];
	return pair[0];
}

static void wire(struct world *w, uint32_t i, pid_t started)
{
	assert_int_equal(p3_rdv_add(w->rdv, i, pair_of(w, i), (uint32_t)started), 0);
}

/* Fork a process that yod has started as this node. */
static pid_t start(struct world *w, uint32_t i)
{
	int sock = pair_of(w, i);
	pid_t pid = fork();
	if (pid)
		assert_int_equal(p3_rdv_add(w->rdv, i, sock, (uint32_t)pid), 0);
	return pid;
}

/* A job: its ranks, the wait behind the end of a socket, whether ranks meet late, and the
 * first rank that the case itself starts; 0: it starts none. */
struct setting {
	uint32_t size, eof_ms;
	bool apart;
	uint32_t starts;
};

static struct world *world_new(struct setting of)
{
	struct world *w = calloc(1, sizeof *w);
	said[0] = 0;
	w->open_before = descriptors_of("self");
	struct p3_rdv_conf conf = {.loop = &w->loop,
		.size = of.size,
		.apart = of.apart,
		.layout = LAYOUT,
		.nid_base = 10,
		.jid = 77,
		.cpus = 2,
		.eof_ms = of.eof_ms,
		.ends = p3_reap_is_ending,
		.say = hear};
	assert_int_equal(p3_loop_open(&w->loop), 0);
	w->rdv = p3_rdv_create(&conf);
	assert_non_null(w->rdv);
	for (uint32_t i = 0; i < NODES; i++)
		if (!of.starts || i < of.starts)
			wire(w, i, 0);
		else
			w->sock[i] = -1;
	return w;
}

static void hang_up(struct world *w, uint32_t i)
{
	if (w->sock[i] >= 0)
		close(w->sock[i]);
	w->sock[i] = -1;
}

static void die(struct world *w, uint32_t i)
{
	hang_up(w, i);
	settle(w);
}

static int teardown(void **state)
{
	struct world *w = *state;
	p3_rdv_destroy(w->rdv);
	p3_loop_close(&w->loop);
	for (uint32_t i = 0; i < NODES; i++)
		hang_up(w, i);
	unsigned left = descriptors_of("self") - w->open_before;
	free(w);
	return left != 0;
}

/* A case with a job of its own: RDV_CASE(name, settings) { ... } */
#define RDV_CASE(name, ...)                                                              \
	static int name##_job(void **state)                                              \
	{                                                                                \
		*state = world_new((struct setting){__VA_ARGS__});                       \
		return 0;                                                                \
	}                                                                                \
	CASE_OF(struct world *w, name, name##_job, teardown)

#define PLAIN NODES, 0, false, 0
#define APART NODES, 0, true, 0
/* So large that yod tells of several births at once; the others never come. */
#define LARGE 1000, 0, true, 0
/* The wait for a status is longer than any case, or so short that it is over. */
#define FATES      NODES, 3600000, false, 0
#define FATES_SOON NODES, 10, false, 1
#define FATE_MS    300

/* ---- a node's side ---- */

static void say_msg(struct world *w, uint32_t i, struct p3_job_msg m)
{
	m.magic = P3_JOB_MAGIC;
	assert_int_equal(p3_job_send(w->sock[i], &m, NULL, 0), 0);
	settle(w);
}

static void say(struct world *w, uint32_t i, enum p3_job_op op)
{
	say_msg(w, i, (struct p3_job_msg){.op = op});
}

static void leave(struct world *w, uint32_t i, uint64_t incarnation)
{
	say_msg(w, i,
		(struct p3_job_msg){.op = P3_JOB_LEAVE, .incarnation = incarnation});
}

static void watch(struct world *w, uint32_t i, uint64_t incarnation)
{
	say_msg(w, i,
		(struct p3_job_msg){.op = P3_JOB_WATCH, .incarnation = incarnation});
}

static void say_again(struct world *w, uint32_t i, uint32_t about, uint64_t incarnation)
{
	say_msg(w, i,
		(struct p3_job_msg){
			.op = P3_JOB_AGAIN, .node = about, .incarnation = incarnation});
}

static bool hear_any(struct world *w, uint32_t i, struct p3_job_packet *g)
{
	g->nfds = 0;
	return w->sock[i] >= 0 && p3_job_recv(w->sock[i], 0, g) == 0;
}

static struct p3_job_msg expect(struct world *w, uint32_t i, enum p3_job_op op)
{
	struct p3_job_packet g;
	assert_true(hear_any(w, i, &g));
	assert_int_equal(g.msg.op, op);
	assert_int_equal(g.nfds, op == P3_JOB_BORN ? 3 : op == P3_JOB_WELCOME ? 1 : 0);
	p3_job_close(&g);
	return g.msg;
}

static void expect_about(struct world *w, uint32_t i, enum p3_job_op op, uint32_t about,
	uint64_t incarnation)
{
	struct p3_job_msg m = expect(w, i, op);
	assert_int_equal(m.node, about);
	assert_int_equal(m.incarnation, incarnation);
}

static void expect_silence(struct world *w, uint32_t i)
{
	struct p3_job_packet g;
	assert_int_equal(p3_job_recv(w->sock[i], 0, &g), -EAGAIN);
}

static void expect_cut_off(struct world *w, uint32_t i)
{
	struct p3_job_packet g;
	while (hear_any(w, i, &g))
		p3_job_close(&g);
	assert_int_equal(p3_job_recv(w->sock[i], 0, &g), -EPIPE);
}

static void skip_all(struct world *w, uint32_t i)
{
	struct p3_job_packet g;
	while (hear_any(w, i, &g))
		p3_job_close(&g);
}

static void hello(struct world *w, uint32_t i)
{
	say_msg(w, i, (struct p3_job_msg){.op = P3_JOB_HELLO, .layout = LAYOUT});
}

static void segments(int fds[P3_JOB_FDS])
{
	for (int k = 0; k < P3_JOB_FDS; k++) {
		fds[k] = memfd_create("segment", MFD_CLOEXEC);
		assert_int_equal(ftruncate(fds[k], (off_t)SEG * (k + 1)), 0);
	}
}

static void join_with(struct world *w, uint32_t i, uint64_t incarnation, unsigned nfds)
{
	int fds[P3_JOB_FDS];
	struct p3_job_msg m = {.magic = P3_JOB_MAGIC,
		.op = P3_JOB_JOIN,
		.pid = {100 + i, P3_JOB_NO_PID},
		.seg_len = SEG,
		.heap_len = HEAP,
		.incarnation = incarnation};
	segments(fds);
	struct patience limit = patience_begin();
	int rc;
	while ((rc = p3_job_send(w->sock[i], &m, fds, nfds)) == -ETOOMANYREFS &&
		!patience_is_over(&limit))
		settle_for(w, 5);
	assert_int_equal(rc, 0);
	for (int k = 0; k < P3_JOB_FDS; k++)
		close(fds[k]);
	settle(w);
}

static void join(struct world *w, uint32_t i, uint64_t incarnation)
{
	join_with(w, i, incarnation, P3_JOB_FDS);
}

static void enter(struct world *w, uint32_t i, uint64_t incarnation)
{
	hello(w, i);
	join(w, i, incarnation);
}

/* Let nodes 0..n-1 join as incarnations 1..n, and read all packets. */
static void job_of(struct world *w, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		enter(w, i, i + 1);
	for (uint32_t i = 0; i < n; i++)
		skip_all(w, i);
}

/* ---- cases: births ---- */

RDV_CASE(rdv_welcomes_with_rank_and_job, PLAIN)
{
	hello(w, 2);
	struct p3_job_msg m = expect(w, 2, P3_JOB_WELCOME);
	assert_int_equal(m.node, 2);
	assert_int_equal(m.size, NODES);
	assert_int_equal(m.nid, 12);
	assert_int_equal(m.jid, 77);
	assert_int_equal(m.cpus, 2);
	assert_int_equal(m.uid, getuid());
	expect_silence(w, 2);
}

/* All nodes get one file, which cannot be shortened. */
RDV_CASE(rdv_hands_all_nodes_the_same_sleepers, PLAIN)
{
	struct stat st[2];
	for (uint32_t i = 0; i < 2; i++) {
		struct p3_job_packet g;
		hello(w, i);
		assert_true(hear_any(w, i, &g));
		assert_int_equal(g.nfds, 1);
		assert_int_equal(fstat(g.fds[0], &st[i]), 0);
		assert_int_equal(ftruncate(g.fds[0], 0), -1);
		p3_job_close(&g);
	}
	assert_int_equal(st[0].st_ino, st[1].st_ino);
	assert_int_equal(st[0].st_size, p3_sleepers_len(NODES));
}

RDV_CASE(rdv_tells_all_of_a_birth_then_joined, PLAIN)
{
	enter(w, 0, 5);
	expect(w, 0, P3_JOB_WELCOME);
	expect_about(w, 0, P3_JOB_BORN, 0, 5);
	expect(w, 0, P3_JOB_JOINED);

	enter(w, 3, 6);
	expect(w, 3, P3_JOB_WELCOME);
	expect_about(w, 3, P3_JOB_BORN, 0, 5);
	struct p3_job_msg m = expect(w, 3, P3_JOB_BORN);
	assert_int_equal(m.node, 3);
	assert_int_equal(m.nid, 13);
	assert_int_equal(m.pid[0], 103);
	assert_int_equal(m.pid[1], P3_JOB_NO_PID);
	assert_int_equal(m.jid, 77);
	assert_int_equal(m.uid, getuid());
	assert_int_equal(m.os_pid, getpid());
	assert_int_equal(m.seg_len, SEG);
	assert_int_equal(m.heap_len, HEAP);
	expect(w, 3, P3_JOB_JOINED);
	expect_silence(w, 3);

	expect_about(w, 0, P3_JOB_BORN, 3, 6);
	expect_silence(w, 0);
	expect_silence(w, 1);
	assert_int_equal(count_joined(w), 2);
}

RDV_CASE(rdv_hands_on_published_doorbell_and_heap, PLAIN)
{
	struct p3_job_packet g;
	struct stat st;
	enter(w, 1, 9);
	expect(w, 1, P3_JOB_WELCOME);
	assert_true(hear_any(w, 1, &g));
	assert_int_equal(g.nfds, 3);
	for (unsigned k = 0; k < 3; k++) {
		assert_int_equal(fstat(g.fds[k], &st), 0);
		assert_int_equal(st.st_size, k == 2 ? HEAP : SEG * (k + 1));
		assert_int_equal(fcntl(g.fds[k], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	}
	p3_job_close(&g);
}

RDV_CASE(rdv_tells_all_of_new_pids, PLAIN)
{
	job_of(w, 2);
	say_msg(w, 1, (struct p3_job_msg){.op = P3_JOB_PIDS, .pid = {7, 8}});
	for (uint32_t i = 0; i < 2; i++) {
		struct p3_job_msg m = expect(w, i, P3_JOB_PIDS);
		assert_int_equal(m.node, 1);
		assert_int_equal(m.incarnation, 2);
		assert_int_equal(m.pid[1], 8);
	}
}

/* ---- cases: ends ---- */

RDV_CASE(rdv_says_left_to_all_joined, PLAIN)
{
	job_of(w, 3);
	leave(w, 1, 2);
	for (uint32_t i = 0; i < 3; i++) {
		expect_about(w, i, P3_JOB_LEFT, 1, 2);
		expect_silence(w, i);
	}
	die(w, 1);
	expect_silence(w, 0);
	assert_true(p3_rdv_may_reap(w->rdv, 1));
}

RDV_CASE(rdv_lets_a_node_join_again, PLAIN)
{
	job_of(w, 2);
	leave(w, 1, 2);
	join(w, 1, 22);
	expect_about(w, 0, P3_JOB_LEFT, 1, 2);
	expect_about(w, 0, P3_JOB_BORN, 1, 22);
	expect_about(w, 1, P3_JOB_LEFT, 1, 2);
	expect_about(w, 1, P3_JOB_BORN, 0, 1);
	expect_about(w, 1, P3_JOB_BORN, 1, 22);
	expect(w, 1, P3_JOB_JOINED);
}

RDV_CASE(rdv_tells_a_leaver_nothing_more, PLAIN)
{
	job_of(w, 3);
	leave(w, 0, 1);
	die(w, 1);
	expect_about(w, 0, P3_JOB_LEFT, 0, 1);
	expect_silence(w, 0);
}

RDV_CASE(rdv_says_died_on_end_of_file, PLAIN)
{
	job_of(w, 3);
	die(w, 2);
	expect_about(w, 0, P3_JOB_DIED, 2, 3);
	expect_about(w, 1, P3_JOB_DIED, 2, 3);
	assert_int_equal(count_joined(w), 2);
}

RDV_CASE(rdv_reads_leave_before_end_of_file, PLAIN)
{
	struct p3_job_msg m = {
		.magic = P3_JOB_MAGIC, .op = P3_JOB_LEAVE, .incarnation = 2};
	for (uint32_t i = 0; i < 2; i++) {
		enter(w, i, i + 1);
	}
	skip_all(w, 0);
	p3_job_send(w->sock[1], &m, NULL, 0);
	hang_up(w, 1); /* with unread packets: the server sees a reset first */
	settle(w);
	expect_about(w, 0, P3_JOB_LEFT, 1, 2);
	expect_silence(w, 0);
}

RDV_CASE(rdv_reaps_when_all_have_dropped, FATES)
{
	struct p3_job_msg m = {.op = P3_JOB_DROPPED, .node = 2, .incarnation = 3};
	job_of(w, 3);
	p3_rdv_ended(w->rdv, 2, 9);
	assert_int_equal(expect(w, 0, P3_JOB_DIED).status, 9);
	assert_false(p3_rdv_may_reap(w->rdv, 2));
	say_msg(w, 0, m);
	say_msg(w, 0, m);
	assert_false(p3_rdv_may_reap(w->rdv, 2));
	m.incarnation = 4;
	say_msg(w, 1, m);
	assert_false(p3_rdv_may_reap(w->rdv, 2));
	m.incarnation = 3;
	say_msg(w, 1, m);
	assert_true(p3_rdv_may_reap(w->rdv, 2));
}

RDV_CASE(rdv_reaps_when_nobody_is_left, PLAIN)
{
	job_of(w, 3);
	p3_rdv_ended(w->rdv, 2, 9);
	die(w, 0);
	assert_false(p3_rdv_may_reap(w->rdv, 2));
	leave(w, 1, 2);
	assert_true(p3_rdv_may_reap(w->rdv, 2));
	assert_true(p3_rdv_may_reap(w->rdv, 0));
}

RDV_CASE(rdv_reaps_in_spite_of_a_stopped_survivor, FATES)
{
	job_of(w, 2);
	int64_t ended = p3_now_ms();
	p3_rdv_ended(w->rdv, 1, 9);
	while (!p3_rdv_may_reap(w->rdv, 1))
		p3_loop_run(&w->loop, p3_now_ms() + 5);
	assert_true(p3_now_ms() - ended >= P3_JOB_REAP_MS);
}

RDV_CASE(rdv_shows_status_0_as_left_and_tells_peers_died, FATES)
{
	job_of(w, 2);
	die(w, 1);
	expect_silence(w, 0);
	p3_rdv_ended(w->rdv, 1, 0);
	expect_about(w, 0, P3_JOB_DIED, 1, 2);
	struct p3_attach_msg view;
	p3_rdv_show(w->rdv, 1, &view, NULL);
	assert_int_equal(view.state, P3_RDV_LEFT);
	assert_false(p3_rdv_may_reap(w->rdv, 1));
	say_msg(w, 0,
		(struct p3_job_msg){.op = P3_JOB_DROPPED, .node = 1, .incarnation = 2});
	assert_true(p3_rdv_may_reap(w->rdv, 1));
}

/* Ranks that have never joined and end before the question, and after it. */
RDV_CASE(rdv_tells_watchers_of_ranks_that_end, PLAIN)
{
	job_of(w, 2);
	die(w, 2);
	expect_silence(w, 0);
	watch(w, 0, 1);
	assert_int_equal(expect(w, 0, P3_JOB_OVER).node, 2);
	die(w, 3);
	assert_int_equal(expect(w, 0, P3_JOB_OVER).node, 3);
	watch(w, 0, 1);
	watch(w, 1, 1); /* with another node's incarnation */
	expect_silence(w, 0);
	expect_silence(w, 1);
	watch(w, 1, 2);
	assert_int_equal(expect(w, 1, P3_JOB_OVER).node, 2);
	assert_int_equal(expect(w, 1, P3_JOB_OVER).node, 3);
	leave(w, 0, 1);
	skip_all(w, 0);
	skip_all(w, 1);
	join(w, 0, 10);
	skip_all(w, 0);
	watch(w, 0, 10);
	assert_int_equal(expect(w, 0, P3_JOB_OVER).node, 2);
	assert_int_equal(expect(w, 0, P3_JOB_OVER).node, 3);
	expect_silence(w, 0);
}

RDV_CASE(rdv_waits_for_the_fate_and_says_died, FATES)
{
	job_of(w, 2);
	die(w, 1);
	p3_rdv_ended(w->rdv, 1, 3 << 8);
	assert_int_equal(expect(w, 0, P3_JOB_DIED).status, 3 << 8);
	expect_silence(w, 0);
}

RDV_CASE(rdv_says_died_when_no_fate_comes, NODES, FATE_MS, false, 0)
{
	job_of(w, 2);
	int64_t hung_up = p3_now_ms();
	hang_up(w, 1);
	settle_until_heard(w, 0);
	assert_true(p3_now_ms() - hung_up >= FATE_MS);
	expect_about(w, 0, P3_JOB_DIED, 1, 2);
	p3_rdv_ended(w->rdv, 1, 0);
	settle(w);
	expect_silence(w, 0);
}

/* ---- cases: barrier ---- */

RDV_CASE(rdv_releases_when_all_wait, PLAIN)
{
	for (uint32_t i = 0; i < NODES; i++) {
		hello(w, i);
		skip_all(w, i);
	}
	for (int round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < NODES; i++) {
			expect_silence(w, 0);
			say(w, i, P3_JOB_BARRIER);
		}
		for (uint32_t i = 0; i < NODES; i++)
			assert_int_equal(expect(w, i, P3_JOB_RELEASED).status, 0);
	}
}

RDV_CASE(rdv_fails_the_barrier_when_a_node_ends, PLAIN)
{
	for (uint32_t i = 0; i < 2; i++) {
		hello(w, i);
		skip_all(w, i);
		say(w, i, P3_JOB_BARRIER);
		expect_silence(w, i);
	}
	die(w, 3);
	for (uint32_t i = 0; i < 2; i++) {
		struct p3_job_msg m = expect(w, i, P3_JOB_RELEASED);
		assert_int_equal(m.status, EPIPE);
		assert_int_equal(m.ended, 3);
	}
	say(w, 0, P3_JOB_BARRIER);
	assert_int_equal(expect(w, 0, P3_JOB_RELEASED).ended, 3);
}

RDV_CASE(rdv_fails_the_barrier_when_a_waiter_ends, PLAIN)
{
	job_of(w, 2);
	say(w, 0, P3_JOB_BARRIER);
	say(w, 1, P3_JOB_BARRIER);
	die(w, 1);
	skip_all(w, 1);
	struct p3_job_packet g;
	unsigned released = 0;
	while (hear_any(w, 0, &g))
		released += g.msg.op == P3_JOB_RELEASED && g.msg.status == EPIPE;
	assert_int_equal(released, 1);
}

/* ---- cases: misbehavior ---- */

/* A node of another layout is refused, also if it comes first; the others may join. */
RDV_CASE(rdv_refuses_another_layout, PLAIN)
{
	say_msg(w, 1, (struct p3_job_msg){.op = P3_JOB_HELLO, .layout = 0x999});
	struct p3_job_msg m = expect(w, 1, P3_JOB_REFUSED);
	assert_int_equal(m.layout, LAYOUT);
	assert_int_not_equal(m.status, 0);
	assert_non_null(strstr(said, "rank 1: layout 0000000000000999 "));
	assert_non_null(strstr(said, "is not 0000000000abcdef, that of this yod"));
	said[0] = 0;
	say_msg(w, 1, (struct p3_job_msg){.op = P3_JOB_HELLO, .layout = 0x999});
	expect(w, 1, P3_JOB_REFUSED);
	enter(w, 0, 5);
	expect(w, 0, P3_JOB_WELCOME);
	expect_about(w, 0, P3_JOB_BORN, 0, 5);
	expect(w, 0, P3_JOB_JOINED);
	assert_string_equal(said, "");
	say(w, 0, P3_JOB_BARRIER);
	assert_int_equal(expect(w, 0, P3_JOB_RELEASED).status, EPIPE);
}

RDV_CASE(rdv_cuts_off_garbage, PLAIN)
{
	struct p3_job_msg m = {.magic = P3_JOB_MAGIC ^ 1, .op = P3_JOB_BARRIER};
	job_of(w, 4);
	send(w->sock[1], "rubbish", 7, 0);
	send(w->sock[2], &m, sizeof m, 0);
	char longer[200] = {0};
	send(w->sock[3], longer, sizeof longer, 0);
	settle(w);
	for (uint32_t i = 1; i < 4; i++) {
		expect_cut_off(w, i);
		expect_about(w, 0, P3_JOB_DIED, i, i + 1);
	}
	assert_int_equal(count_joined(w), 1);
	char words[60];
	snprintf(words, sizeof words, "rank 2: speaks version %u of yod's protocol",
		p3_job_version(m.magic));
	assert_non_null(strstr(said, words));
}

RDV_CASE(rdv_cuts_off_an_empty_packet, PLAIN)
{
	job_of(w, 2);
	send(w->sock[1], "", 0, 0);
	settle(w);
	expect_cut_off(w, 1);
	expect_about(w, 0, P3_JOB_DIED, 1, 2);
}

RDV_CASE(rdv_cuts_off_unknown_and_foreign_operations, PLAIN)
{
	static const enum p3_job_op bad[] = {0, P3_JOB_WELCOME, P3_JOB_BORN, P3_JOB_OPS};
	for (uint32_t i = 0; i < 4; i++) {
		say(w, i, bad[i]);
		expect_cut_off(w, i);
	}
}

RDV_CASE(rdv_cuts_off_what_comes_out_of_turn, PLAIN)
{
	say(w, 0, P3_JOB_BARRIER);
	expect_cut_off(w, 0);
	join(w, 1, 1);
	expect_cut_off(w, 1);
	hello(w, 2);
	leave(w, 2, 1);
	expect_cut_off(w, 2);
	enter(w, 3, 4);
	join(w, 3, 5);
	expect_cut_off(w, 3);
}

RDV_CASE(rdv_cuts_off_a_wrong_number_of_descriptors, PLAIN)
{
	for (uint32_t i = 0; i < 3; i++) {
		hello(w, i);
		join_with(w, i, 1, i);
		expect_cut_off(w, i);
	}
	hello(w, 3);
	struct p3_job_msg m = {.magic = P3_JOB_MAGIC, .op = P3_JOB_BARRIER};
	int fd = 0;
	assert_int_equal(p3_job_send(w->sock[3], &m, &fd, 1), 0);
	settle(w);
	expect_cut_off(w, 3);
}

RDV_CASE(rdv_cuts_off_too_many_descriptors, PLAIN)
{
	enum { MANY = 9 };
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(MANY * sizeof(int))];
	} control = {{0}};
	struct p3_job_msg m = {
		.magic = P3_JOB_MAGIC, .op = P3_JOB_JOIN, .incarnation = 1};
	struct iovec iov = {&m, sizeof m};

	for (unsigned many = P3_JOB_FDS + 1; many <= MANY; many += 4) {
		uint32_t i = many == MANY;
		struct msghdr hdr = {.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = control.bytes,
			.msg_controllen = CMSG_SPACE(many * sizeof(int))};
		struct cmsghdr *c = CMSG_FIRSTHDR(&hdr);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(many * sizeof(int));
		memset(CMSG_DATA(c), 0, many * sizeof(int));
		hello(w, i);
		unsigned before = descriptors_of("self");
		assert_true(sendmsg(w->sock[i], &hdr, 0) > 0);
		settle(w);
		assert_int_equal(descriptors_of("self"), before - 1); /* its socket */
		expect_cut_off(w, i);
	}
}

RDV_CASE(rdv_cuts_off_a_segment_shorter_than_told, PLAIN)
{
	int fds[P3_JOB_FDS];
	struct p3_job_msg m = {.magic = P3_JOB_MAGIC,
		.op = P3_JOB_JOIN,
		.incarnation = 1,
		.seg_len = SEG + 1,
		.heap_len = HEAP};
	hello(w, 0);
	segments(fds);
	p3_job_send(w->sock[0], &m, fds, P3_JOB_FDS);
	for (int k = 0; k < P3_JOB_FDS; k++)
		close(fds[k]);
	settle(w);
	expect_cut_off(w, 0);
}

RDV_CASE(rdv_cuts_off_a_drop_of_no_node, PLAIN)
{
	job_of(w, 1);
	say_msg(w, 0, (struct p3_job_msg){.op = P3_JOB_DROPPED, .node = NODES});
	expect_cut_off(w, 0);
}

RDV_CASE(rdv_tells_a_birth_again, PLAIN)
{
	job_of(w, 2);
	say_again(w, 0, 1, 2);
	expect_about(w, 0, P3_JOB_BORN, 1, 2);
	expect_silence(w, 1);
	say_again(w, 0, 1, 77); /* of another life */
	expect_silence(w, 0);
	die(w, 1);
	expect_about(w, 0, P3_JOB_DIED, 1, 2);
	say_again(w, 0, 1, 2); /* this life has ended */
	expect_silence(w, 0);
	say_again(w, 0, NODES, 2);
	expect_cut_off(w, 0);
}

static void ask(struct world *w, uint32_t i, uint32_t round)
{
	say_msg(w, i,
		(struct p3_job_msg){
			.op = P3_JOB_ASK, .incarnation = i + 1, .round = round});
}

RDV_CASE(rdv_answers_behind_all_it_had_to_tell, PLAIN)
{
	job_of(w, 2);
	die(w, 1);
	ask(w, 0, 7);
	expect_about(w, 0, P3_JOB_DIED, 1, 2);
	struct p3_job_msg m = expect(w, 0, P3_JOB_TOLD);
	assert_int_equal(m.round, 7);
	assert_int_equal(m.incarnation, 1);
	say_msg(w, 0, (struct p3_job_msg){.op = P3_JOB_ASK, .incarnation = 99});
	expect_silence(w, 0); /* another life's */
}

RDV_CASE(rdv_ignores_a_forked_child, PLAIN)
{
	job_of(w, 2);
	pid_t pid = fork();
	if (!pid) {
		struct p3_job_msg m = {
			.magic = P3_JOB_MAGIC, .op = P3_JOB_LEAVE, .incarnation = 1};
		_exit(p3_job_send(w->sock[0], &m, NULL, 0) != 0);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	settle(w);
	expect_silence(w, 0);
	expect_silence(w, 1);
	assert_int_equal(count_joined(w), 2);
	assert_non_null(strstr(said, "ignored"));
}

/* ---- cases: programs one after the other behind one wrapper ---- */

static pid_t program(struct world *w, uint32_t i, uint64_t incarnation, bool stays)
{
	pid_t pid = w->sock[i] < 0 ? start(w, i) : fork();
	if (pid)
		return pid;
	int fds[P3_JOB_FDS];
	struct p3_job_msg m = {
		.magic = P3_JOB_MAGIC, .op = P3_JOB_HELLO, .layout = LAYOUT};
	segments(fds);
	p3_job_send(w->sock[i], &m, NULL, 0);
	m = (struct p3_job_msg){.magic = P3_JOB_MAGIC,
		.op = P3_JOB_JOIN,
		.incarnation = incarnation,
		.seg_len = SEG,
		.heap_len = HEAP};
	p3_job_send(w->sock[i], &m, fds, P3_JOB_FDS);
	if (stays)
		pause();
	_exit(0);
}

RDV_CASE(rdv_sees_a_wrapped_program_die, PLAIN)
{
	int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (self < 0)
		skip(); /* without pidfds (valgrind) only the wrapper's end is noticed */
	close(self);
	enter(w, 0, 1);
	skip_all(w, 0);
	for (uint64_t run = 2; run < 4; run++) {
		pid_t pid = program(w, 1, run, true);
		settle_until_heard(w, 0);
		struct p3_job_msg m = expect(w, 0, P3_JOB_BORN);
		assert_int_equal(m.os_pid, pid);
		kill(pid, SIGKILL);
		settle_until_heard(w, 0);
		expect_about(w, 0, P3_JOB_DIED, 1, run);
		waitpid(pid, NULL, 0);
	}
}

/* A process that has ended or is ending has a status, however late that comes. */
RDV_CASE(rdv_waits_for_the_fate_of_a_process_that_ends, FATES_SOON)
{
	siginfo_t info;
	enter(w, 0, 1);
	pid_t pid = program(w, 1, 2, true);
	skip_all(w, 0);
	settle_until_heard(w, 0);
	expect_about(w, 0, P3_JOB_BORN, 1, 2);
	assert_false(p3_reap_is_ending(pid));
	hang_up(w, 1);
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_true(p3_reap_is_ending(pid));
	settle_for(w, 100);
	expect_silence(w, 0);
	p3_rdv_ended(w->rdv, 1, SIGKILL);
	assert_int_equal(expect(w, 0, P3_JOB_DIED).status, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Others hear of the end of a node that never joined when its status is known, or when
 * its process goes on without its socket. */
RDV_CASE(rdv_waits_for_the_fate_of_a_rank_that_never_joins, FATES_SOON)
{
	siginfo_t info;
	hello(w, 0);
	skip_all(w, 0);
	say(w, 0, P3_JOB_BARRIER);
	pid_t pid = start(w, 3);
	if (!pid)
		_exit(5);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	hang_up(w, 3);
	settle_for(w, 100);
	expect_silence(w, 0);
	p3_rdv_ended(w->rdv, 3, 5 << 8);
	assert_int_equal(expect(w, 0, P3_JOB_RELEASED).ended, 3);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	wire(w, 2, getpid());
	hang_up(w, 2);
	while (w->rdv->node[2].state != NODE_GONE)
		p3_loop_run(&w->loop, p3_now_ms() + 5);
}

static void *pause_for_ever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

/* A process whose first thread has ended, while another one lives, is not ending. */
RDV_CASE(rdv_tells_the_end_of_a_thread_from_that_of_a_process, PLAIN)
{
	siginfo_t info;
	pthread_t other;
	pid_t pid = fork();
	if (!pid) {
		if (pthread_create(&other, NULL, pause_for_ever, NULL))
			_exit(1);
		pthread_exit(NULL);
	}
	while (thread_state(pid) != 'Z')
		sched_yield();
	bool lives = !p3_reap_is_ending(pid);
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_true(p3_reap_is_ending(pid));
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(lives);
	(void)w;
}

RDV_CASE(rdv_lets_a_wrappers_next_program_take_over, FATES)
{
	int status;
	enter(w, 0, 1);
	skip_all(w, 0);
	say(w, 0, P3_JOB_BARRIER);
	for (uint64_t run = 2; run < 4; run++)
		assert_true(waitpid(program(w, 1, run, false), &status, 0) > 0);
	settle(w);
	expect_about(w, 0, P3_JOB_BORN, 1, 2);
	expect_about(w, 0, P3_JOB_DIED, 1, 2);
	expect_about(w, 0, P3_JOB_BORN, 1, 3);
}

/* ---- cases: nodes that do not read ---- */

static void cycle(struct world *w, uint32_t i, uint64_t incarnation)
{
	join(w, i, incarnation);
	say_msg(w, i, (struct p3_job_msg){.op = P3_JOB_PIDS, .pid = {1, 2}});
	say_msg(w, i, (struct p3_job_msg){.op = P3_JOB_PIDS, .pid = {3, 4}});
	leave(w, i, incarnation);
	skip_all(w, i);
}

RDV_CASE(rdv_bounds_the_queue_of_one_that_never_reads, PLAIN)
{
	enter(w, 0, 1);
	hello(w, 1);
	for (uint64_t k = 0; k < 2000; k++) {
		cycle(w, 1, 100 + k);
		assert_true(count_queued(w, 0) < 4 * NODES);
	}
	join(w, 1, 5000);
	assert_true(count_queued(w, 0) > 0);

	int64_t alive = 0;
	struct p3_job_packet g;
	for (int k = 0; k < 20000; k++) {
		settle(w);
		if (!hear_any(w, 0, &g))
			break;
		if (g.msg.node == 1 && g.msg.op == P3_JOB_BORN)
			alive = (int64_t)g.msg.incarnation;
		if (g.msg.node == 1 && g.msg.op == P3_JOB_LEFT) {
			assert_int_equal(alive, g.msg.incarnation);
			alive = 0;
		}
		p3_job_close(&g);
	}
	assert_int_equal(alive, 5000);
	assert_int_equal(count_queued(w, 0), 0);
}

RDV_CASE(rdv_cuts_off_one_that_asks_and_never_reads, PLAIN)
{
	struct p3_job_msg m = {
		.magic = P3_JOB_MAGIC, .op = P3_JOB_HELLO, .layout = LAYOUT};
	int rc = 0;
	for (int k = 0; k < 5000 && !rc; k++) {
		rc = p3_job_send(w->sock[0], &m, NULL, 0);
		settle(w);
		assert_true(count_queued(w, 0) <= 4 * NODES + 64);
	}
	assert_int_equal(rc, -EPIPE);
	assert_non_null(strstr(said, "does not read"));
	hello(w, 1);
	expect(w, 1, P3_JOB_WELCOME);
}

/* Descriptors in flight are limited per user: a sleeping node must not miss a birth. */
RDV_CASE(rdv_outlasts_too_many_descriptors_in_flight, PLAIN)
{
	struct rlimit was, low = {64, 64};
	if (geteuid() == 0)
		skip(); /* root has no such limit */
	getrlimit(RLIMIT_NOFILE, &was);
	low.rlim_max = was.rlim_max;
	enter(w, 0, 1);
	hello(w, 1);
	w->crowded = true;
	setrlimit(RLIMIT_NOFILE, &low);
	for (uint64_t k = 0; k < 40; k++)
		cycle(w, 1, 100 + k);
	join(w, 1, 5000);
	bool born = false;
	struct p3_job_packet g;
	for (int k = 0; k < 400 && !born; k++) {
		settle_for(w, 10);
		while (hear_any(w, 0, &g)) {
			born |= g.msg.op == P3_JOB_BORN && g.msg.incarnation == 5000;
			p3_job_close(&g);
		}
	}
	setrlimit(RLIMIT_NOFILE, &was);
	assert_true(born);
}

/* ---- cases: nodes that are introduced when they first talk ---- */

/* Expect a packet about a node with nfds descriptors. */
static void expect_fds(struct world *w, uint32_t i, enum p3_job_op op, uint32_t about,
	uint64_t incarnation, unsigned nfds)
{
	struct p3_job_packet g;
	assert_true(hear_any(w, i, &g));
	assert_int_equal(g.msg.op, op);
	assert_int_equal(g.msg.node, about);
	assert_int_equal(g.msg.incarnation, incarnation);
	assert_int_equal(g.nfds, nfds);
	p3_job_close(&g);
}

RDV_CASE(rdv_tells_of_births_apart_without_descriptors, APART)
{
	for (uint32_t i = 0; i < 2; i++) {
		hello(w, i);
		expect(w, i, P3_JOB_WELCOME);
		join(w, i, i + 1);
	}
	expect_fds(w, 0, P3_JOB_BORN, 0, 1, 3);
	expect(w, 0, P3_JOB_JOINED);
	expect_fds(w, 0, P3_JOB_BORN, 1, 2, 0);
	expect_silence(w, 0);
	expect_fds(w, 1, P3_JOB_BORN, 0, 1, 0);
	expect_fds(w, 1, P3_JOB_BORN, 1, 2, 3);
	expect(w, 1, P3_JOB_JOINED);
	expect_silence(w, 1);
}

RDV_CASE(rdv_introduces_both_once, APART)
{
	job_of(w, 3);
	say_again(w, 0, 1, 2);
	expect_fds(w, 0, P3_JOB_BORN, 1, 2, 3);
	expect_fds(w, 1, P3_JOB_BORN, 0, 1, 3);
	say_again(w, 1, 0, 1); /* both had asked */
	expect_fds(w, 1, P3_JOB_BORN, 0, 1, 3);
	expect_silence(w, 0);
	expect_silence(w, 2);
	say_again(w, 2, 0, 77); /* another life */
	expect_silence(w, 2);
	expect_silence(w, 0);
}

/* The introduction of an earlier life does not count for a new one. */
RDV_CASE(rdv_introduces_a_new_life_anew, APART)
{
	job_of(w, 2);
	say_again(w, 0, 1, 2);
	leave(w, 1, 2);
	skip_all(w, 0);
	skip_all(w, 1);
	join(w, 1, 9);
	expect_fds(w, 0, P3_JOB_BORN, 1, 9, 0);
	expect_fds(w, 1, P3_JOB_BORN, 0, 1, 0);
	skip_all(w, 1);
	say_again(w, 1, 0, 1);
	expect_fds(w, 1, P3_JOB_BORN, 0, 1, 3);
	expect_fds(w, 0, P3_JOB_BORN, 1, 9, 3);
}

/* A node hears once, late, of the births of nodes 1 and 2, and of nothing else. */
RDV_CASE(rdv_tells_of_births_late_and_once, LARGE)
{
	for (uint32_t i = 0; i < 3; i++) {
		enter(w, i, i + 1);
	}
	skip_all(w, 2);
	expect(w, 0, P3_JOB_WELCOME);
	expect_fds(w, 0, P3_JOB_BORN, 0, 1, 3);
	expect(w, 0, P3_JOB_JOINED);
	settle_until_heard(w, 0);
	settle_for(w, 300);
	expect_fds(w, 0, P3_JOB_BORN, 1, 2, 0);
	expect_fds(w, 0, P3_JOB_BORN, 2, 3, 0);
	expect_silence(w, 0);
	expect_silence(w, 2);
}

/* Any other packet to a node comes behind the births before it. */
RDV_CASE(rdv_tells_of_births_before_all_else, LARGE)
{
	for (uint32_t i = 0; i < 3; i++) {
		enter(w, i, i + 1);
		skip_all(w, 0);
	}
	settle_for(w, 300);
	skip_all(w, 0);
	for (uint64_t k = 10; k < 13; k++) {
		leave(w, 1, k == 10 ? 2 : k - 1);
		join(w, 1, k);
	}
	say_msg(w, 0,
		(struct p3_job_msg){.op = P3_JOB_ASK, .incarnation = 1, .round = 7});
	expect_about(w, 0, P3_JOB_LEFT, 1, 2);
	for (uint64_t k = 10; k < 13; k++) {
		expect_fds(w, 0, P3_JOB_BORN, 1, k, 0);
		if (k < 12)
			expect_about(w, 0, P3_JOB_LEFT, 1, k);
	}
	expect(w, 0, P3_JOB_TOLD);
	expect_silence(w, 0);
}

/* Fill the node's socket with packets, so that yod must queue the next one. */
static void fill_socket_of(struct world *w, uint32_t i, uint32_t by, uint64_t incarnation)
{
	for (int k = 0; k < 5000 && !count_queued(w, i); k++)
		say_again(w, i, by, incarnation);
	assert_int_equal(count_queued(w, i), 1);
}

/*
 * Node 2 talks to node 0, which reads slowly, and ends: node 0 may find messages of it
 * in the memory that the descriptors name, so it gets them before it hears of the end.
 */
static void end_after_introduction(struct world *w, bool leaves)
{
	struct p3_job_packet g;
	bool met = false, over = false;
	job_of(w, 3);
	fill_socket_of(w, 0, 1, 2);
	say_again(w, 2, 0, 1);
	expect_fds(w, 2, P3_JOB_BORN, 0, 1, 3);
	assert_int_equal(count_queued(w, 0), 2);
	if (leaves)
		leave(w, 2, 3);
	else
		die(w, 2);
	assert_int_equal(count_queued(w, 0), 3);
	while (!over && hear_any(w, 0, &g)) {
		bool about = g.msg.node == 2;
		assert_true(!about || g.msg.incarnation == 3);
		if (about && g.msg.op == P3_JOB_BORN) {
			assert_int_equal(g.nfds, 3);
			assert_true(lseek(g.fds[0], 0, SEEK_END) == SEG);
			met = true;
		}
		if (about && g.msg.op == (leaves ? P3_JOB_LEFT : P3_JOB_DIED))
			over = true;
		assert_true(met || !over);
		p3_job_close(&g);
		settle(w);
	}
	assert_true(met && over);
	expect_silence(w, 0);
}

RDV_CASE(rdv_introduces_one_that_has_left_since, APART)
{
	end_after_introduction(w, true);
}

RDV_CASE(rdv_introduces_one_that_has_died_since, APART)
{
	end_after_introduction(w, false);
}

/* Hear what node 0 is told of a life of node 2: its birth with nfds descriptors,
 * and then its end, if that is expected. */
static void hear_life(struct world *w, uint64_t incarnation, unsigned nfds, bool end)
{
	struct p3_job_packet g;
	bool born = false, over = false;
	while ((!born || over != end) && hear_any(w, 0, &g)) {
		if (g.msg.node == 2 && g.msg.op == P3_JOB_BORN) {
			assert_int_equal(g.msg.incarnation, incarnation);
			assert_int_equal(g.nfds, nfds);
			born = true;
		}
		if (g.msg.node == 2 && g.msg.op == P3_JOB_LEFT)
			over = born;
		p3_job_close(&g);
		settle(w);
	}
	assert_true(born && over == end);
}

/* The first birth of node 2 waits for node 0 when node 2 talks to that, and ends. */
RDV_CASE(rdv_introduces_one_whose_birth_was_not_read, APART)
{
	job_of(w, 2);
	fill_socket_of(w, 0, 1, 2);
	enter(w, 2, 3);
	settle_for(w, 300);
	assert_int_equal(count_queued(w, 0), 2);
	skip_all(w, 2);
	say_again(w, 2, 0, 1);
	expect_fds(w, 2, P3_JOB_BORN, 0, 1, 3);
	leave(w, 2, 3);
	hear_life(w, 3, 3, true);
	expect_silence(w, 0);
}

/* Node 2 lives anew before node 0 has read of its first life: it reads of both, and of
 * no third that has ended. */
RDV_CASE(rdv_keeps_an_ended_life_behind_a_new_one, APART)
{
	job_of(w, 3);
	fill_socket_of(w, 0, 1, 2);
	say_again(w, 2, 0, 1);
	expect_fds(w, 2, P3_JOB_BORN, 0, 1, 3);
	leave(w, 2, 3);
	for (uint64_t k = 10; k < 20; k++) {
		join(w, 2, k);
		settle_for(w, 300);
		skip_all(w, 2);
		say_again(w, 2, 0, 1);
		leave(w, 2, k);
	}
	assert_int_equal(count_queued(w, 0), 3);
	join(w, 2, 20);
	settle_for(w, 300);
	hear_life(w, 3, 3, true);
	hear_life(w, 20, 0, false);
	expect_silence(w, 0);
}

/* ---- cases: adding ---- */

RDV_CASE(rdv_takes_a_socket_once, PLAIN)
{
	int pair[2];
	socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
	assert_int_equal(p3_rdv_add(w->rdv, NODES, pair[0], 0), -EINVAL);
	assert_int_equal(p3_rdv_add(w->rdv, 0, pair[0], 0), -EBUSY);
	die(w, 0);
	assert_int_equal(p3_rdv_add(w->rdv, 0, pair[0], 0), 0);
	close(pair[1]);
}

RDV_CASE(job_send_refuses_too_many_descriptors, PLAIN)
{
	int fds[P3_JOB_FDS + 1] = {0};
	struct p3_job_msg m = {.magic = P3_JOB_MAGIC};
	assert_int_equal(p3_job_send(w->sock[0], &m, fds, P3_JOB_FDS + 1), -EINVAL);
}
