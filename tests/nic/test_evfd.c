/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors of event queues: PtlXEQDescriptor and PtlXEQArm, in programs that sleep in
 * poll() and epoll_wait().
 */
#include "nic/cases.h"

#include "lib/node/node.h"
#include "nic/run/evfd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PT        3
#define HANGS_MS  120000
#define END_BITS  99u
#define QUEUES    3u
#define LITTLE_MS 20

/* A put to this node's own queue comes by one pass. */
struct self {
	ptl_handle_ni_t ni;
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;
	unsigned rank;
	int fd;
};

static int descriptor_of(ptl_handle_eq_t eq)
{
	int fd = -1;
	CHECK_OK(PtlXEQDescriptor(eq, &fd));
	CHECK(fd > STDERR_FILENO);
	return fd;
}

static ptl_handle_eq_t target(ptl_handle_ni_t ni, ptl_match_bits_t bits, ptl_size_t n)
{
	ptl_handle_eq_t eq = eq_new(ni, n);
	post_md(ni, PT, bits, sink_md(node_alloc(64), 64, eq));
	return eq;
}

static ptl_handle_md_t source(ptl_handle_ni_t ni)
{
	return bind_md(ni, md_of(node_alloc(64), 8, MD_QUIET, PTL_EQ_NONE));
}

static struct self self_new(ptl_handle_ni_t ni, unsigned rank)
{
	struct self s = {
		.ni = ni, .eq = target(ni, 1, 8), .md = source(ni), .rank = rank};
	s.fd = descriptor_of(s.eq);
	return s;
}

/* Sleep until there is news of the descriptor, and return what poll() says of it. */
static int poll_it(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int rc;
	do
		rc = poll(&p, 1, ms);
	while (rc < 0 && errno == EINTR);
	CHECK(rc >= 0);
	return p.revents;
}

static bool is_readable(int fd, int ms)
{
	int news = poll_it(fd, ms);
	CHECK(!news || news == POLLIN);
	return news;
}

static void put_self(const struct self *s)
{
	CHECK_OK(put_to(s->ni, s->md, s->rank, PT, 1, PTL_NO_ACK_REQ));
}

/* Take all events; return their number. */
static unsigned take_all(ptl_handle_eq_t eq)
{
	ptl_event_t ev;
	unsigned n = 0;
	int rc;
	while ((rc = PtlEQGet(eq, &ev)) == PTL_OK)
		n++;
	CHECK_RC(rc, PTL_EQ_EMPTY);
	return n;
}

/* Prepare to sleep.  Return the number of events that were there. */
static unsigned arm(ptl_handle_eq_t eq)
{
	unsigned n = take_all(eq);
	int rc;
	while ((rc = PtlXEQArm(eq)) != PTL_OK) {
		CHECK_RC(rc, PTL_EQ_IN_USE);
		n += take_all(eq);
	}
	return n;
}

/* ---- codes, and what is readable when ---- */

NODES_CASE(codes_of_descriptors, 1)
{
	int fd = -7;
	ptl_handle_eq_t eq = eq_new(ni, 4), gone = eq_new(ni, 4);
	ptl_handle_any_t wrong[] = {ni, PTL_EQ_NONE, PTL_INVALID_HANDLE, 42, gone};
	CHECK_OK(PtlEQFree(gone));
	for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		CHECK_RC(PtlXEQDescriptor(wrong[i], &fd), PTL_EQ_INVALID);
		CHECK_RC(PtlXEQArm(wrong[i]), PTL_EQ_INVALID);
	}
	CHECK_RC(PtlXEQDescriptor(eq, NULL), PTL_SEGV);
	CHECK_RC(PtlXEQArm(eq), PTL_FAIL);
	CHECK_EQ(fd, -7);
	CHECK_OK(PtlXEQDescriptor(eq, &fd));
	CHECK_EQ(descriptor_of(eq), fd);
	CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	ptl_handle_eq_t other = eq_new(ni, 4);
	CHECK(descriptor_of(other) != fd);
	CHECK_OK(PtlXEQArm(eq));
	CHECK_OK(PtlNIFini(ni));
	CHECK_RC(PtlXEQDescriptor(eq, &fd), PTL_EQ_INVALID);
	CHECK_RC(PtlXEQArm(eq), PTL_EQ_INVALID);
	PtlFini();
	CHECK_RC(PtlXEQDescriptor(eq, &fd), PTL_NO_INIT);
	CHECK_RC(PtlXEQArm(eq), PTL_NO_INIT);
}

NODES_CASE(readable_from_the_first_event_until_armed, 1)
{
	struct self s = self_new(ni, rank);
	CHECK(is_readable(s.fd, 0));
	for (unsigned i = 0; i < rounds(200); i++) {
		CHECK_EQ(arm(s.eq), 0);
		CHECK(!is_readable(s.fd, 0));
		CHECK_OK(PtlXEQArm(s.eq));
		put_self(&s);
		CHECK(is_readable(s.fd, HANGS_MS));
		CHECK_RC(PtlXEQArm(s.eq), PTL_EQ_IN_USE);
		put_self(&s);
		expect(s.eq, PTL_EVENT_PUT_END);
		CHECK(is_readable(s.fd, 0));
		expect(s.eq, PTL_EVENT_PUT_END);
	}
}

/* Events of other queues, also of those that share the news, and ends of other
 * descriptors wake no thread. */
NODES_CASE(other_queues_do_not_disturb, 1)
{
	struct self s = self_new(ni, rank);
	ptl_handle_eq_t eq[40];
	for (unsigned i = 0; i < 40; i++)
		eq[i] = target(ni, 2 + i, 4);
	CHECK_EQ(arm(s.eq), 0);
	(void)descriptor_of(eq[0]);
	CHECK_EQ(arm(eq[0]), 0);
	for (unsigned i = 0; i < 40; i++) {
		CHECK_OK(put_to(ni, s.md, rank, PT, 2 + i, PTL_NO_ACK_REQ));
		expect(eq[i], PTL_EVENT_PUT_END);
		CHECK_OK(PtlEQFree(eq[i]));
	}
	CHECK(!is_readable(s.fd, LITTLE_MS));
	put_self(&s);
	CHECK(is_readable(s.fd, HANGS_MS));
}

NODES_CASE(lost_events_make_the_descriptor_readable, 1)
{
	struct self s = self_new(ni, rank);
	ptl_event_t ev;
	CHECK_EQ(arm(s.eq), 0);
	ptl_handle_eq_t end = target(ni, END_BITS, 4);
	for (unsigned i = 0; i < 50; i++)
		put_self(&s);
	/* Behind this event there is none of the puts before it. */
	CHECK_OK(put_to(ni, s.md, rank, PT, END_BITS, PTL_NO_ACK_REQ));
	expect(end, PTL_EVENT_PUT_END);
	CHECK(is_readable(s.fd, HANGS_MS));
	while (PtlEQGet(s.eq, &ev) != PTL_EQ_DROPPED)
		CHECK(ev.type == PTL_EVENT_PUT_END);
	CHECK_RC(PtlXEQArm(s.eq), PTL_EQ_IN_USE);
	CHECK(arm(s.eq) >= 7);
	CHECK(!is_readable(s.fd, 0));
}

/* ---- the end of a descriptor ---- */

static void sleep_until_the_end(void *arg)
{
	const struct self *s = arg;
	CHECK(poll_it(s->fd, HANGS_MS)); /* POLLNVAL if this thread is late */
	CHECK_RC(PtlXEQArm(s->eq), PTL_EQ_INVALID);
}

NODES_CASE(free_wakes_and_closes, 1)
{
	for (unsigned i = 0; i < rounds(20); i++) {
		struct self s = {.eq = eq_new(ni, 8)};
		s.fd = descriptor_of(s.eq);
		CHECK_OK(PtlXEQArm(s.eq));
		struct side *side = side_start(sleep_until_the_end, &s);
		sleep_ms(i % 4 * 5);
		CHECK_OK(PtlEQFree(s.eq));
		side_join(side);
		CHECK(fcntl(s.fd, F_GETFD) < 0 && errno == EBADF);
	}
}

/* A program closes the descriptor by mistake, and its pipe gets the number. */
NODES_CASE(a_file_in_its_place_is_left_alone, 1)
{
	int ends[2];
	char bytes[16];
	struct self s = self_new(ni, rank);
	CHECK(pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0);
	CHECK_EQ(arm(s.eq), 0);
	CHECK(dup2(ends[1], s.fd) == s.fd); /* a write would go to the pipe */
	int other = descriptor_of(s.eq);
	CHECK(other != s.fd);
	CHECK_EQ(arm(s.eq), 0);
	put_self(&s);
	CHECK(is_readable(other, HANGS_MS));
	CHECK(read(ends[0], bytes, sizeof bytes) < 0 && errno == EAGAIN);
	CHECK(dup2(ends[0], other) == other); /* a read would take from the pipe */
	CHECK_EQ(write(ends[1], "x", 1), 1);
	CHECK_EQ(arm(s.eq), 1);
	CHECK_EQ(read(ends[0], bytes, sizeof bytes), 1);
	CHECK_OK(PtlEQFree(s.eq));
	CHECK(fcntl(s.fd, F_GETFD) >= 0 && fcntl(other, F_GETFD) >= 0);
	(void)close(s.fd);
	(void)close(other);
	(void)close(ends[0]);
	(void)close(ends[1]);
}

/* No descriptor is left, for the process or for the library. */
static void short_node(NODE_ARGS)
{
	struct rlimit most, few;
	int fd = -7;
	unsigned n = 0;
	static ptl_handle_eq_t eq[P3_EVFDS + 1];
	eq[0] = eq_new(ni, 1);
	CHECK(getrlimit(RLIMIT_NOFILE, &most) == 0);
	few = most;
	few.rlim_cur = 3;
	CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
	int rc = PtlXEQDescriptor(eq[0], &fd);
	few.rlim_cur = most.rlim_max;
	CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
	CHECK_RC(rc, PTL_NO_SPACE);
	CHECK_EQ(fd, -7);
	while ((rc = PtlXEQDescriptor(eq[n], &fd)) == PTL_OK) {
		CHECK(n < P3_EVFDS);
		eq[++n] = eq_new(ni, 1);
	}
	CHECK_RC(rc, PTL_NO_SPACE);
	CHECK_RC(PtlXEQDescriptor(eq[n], &fd), PTL_NO_SPACE);
	CHECK_RC(PtlXEQArm(eq[n]), PTL_FAIL);
	CHECK_OK(PtlEQFree(eq[0]));
	CHECK_OK(PtlXEQDescriptor(eq[n], &fd));
	CHECK_OK(PtlXEQArm(eq[n]));
	CHECK(setrlimit(RLIMIT_NOFILE, &most) == 0);
}

CASE(descriptors_may_be_short)
{
	ptl_ni_limits_t limits = {.max_eqs = 2 * P3_EVFDS};
	run_nodes_opt(1, short_node, NULL, &(struct nodes_opt){.limits = &limits});
}

/* A child has the descriptor, too: its calls fail, and leave the parent's alone. */
NODES_CASE(forked_children_get_an_error, 1)
{
	struct self s = self_new(ni, rank);
	CHECK_EQ(arm(s.eq), 0);
	int status, child = fork();
	if (child == 0) {
		int fd;
		_exit(PtlXEQArm(s.eq) != PTL_NO_INIT ||
			PtlXEQDescriptor(s.eq, &fd) != PTL_NO_INIT);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
	CHECK(!is_readable(s.fd, 0));
	put_self(&s);
	CHECK(is_readable(s.fd, HANGS_MS));
}

/* ---- programs that sleep ---- */

static unsigned mix(unsigned i)
{
	return (unsigned)(i * UINT64_C(0x9e3779b97f4a7c15) >> 40);
}

/* Send n puts to random queues, with pauses of all lengths, and then the last one. */
static void stream(ptl_handle_ni_t ni, unsigned n)
{
	ptl_handle_md_t md = source(ni);
	for (unsigned i = 0; i < n; i++) {
		CHECK_OK(put_to(ni, md, 1, PT, mix(i) % QUEUES, PTL_NO_ACK_REQ));
		for (volatile unsigned k = 0; k < mix(i + n) % 2000; k++)
			;
		if (i % 512 == 511)
			sleep_ms(1); /* pause: both threads of the other node sleep */
	}
	CHECK_OK(put_to(ni, md, 1, PT, END_BITS, PTL_NO_ACK_REQ));
}

/* An event loop over three queues takes each event of a stream, and sleeps for each. */
NODES_CASE(epoll_over_queues_loses_no_event, 2)
{
	const unsigned n = rounds(20000);
	ptl_handle_eq_t eq[QUEUES + 1];
	unsigned got[QUEUES + 1] = {0}, sent[QUEUES + 1] = {0};
	int set = epoll_create1(EPOLL_CLOEXEC);
	CHECK(set >= 0);
	for (unsigned i = 0; rank == 1 && i <= QUEUES; i++) {
		struct epoll_event one = {.events = EPOLLIN, .data.u32 = i};
		eq[i] = target(ni, i < QUEUES ? i : END_BITS, 32768);
		CHECK(epoll_ctl(set, EPOLL_CTL_ADD, descriptor_of(eq[i]), &one) == 0);
	}
	sync_nodes();
	if (rank == 0)
		stream(ni, n);
	for (unsigned i = 0; i < n; i++)
		sent[mix(i) % QUEUES]++;
	while (rank == 1 && !got[QUEUES]) {
		struct epoll_event ready[2];
		int rc = epoll_wait(set, ready, 2, HANGS_MS);
		CHECK(rc > 0 || (rc < 0 && errno == EINTR));
		for (int i = 0; i < rc; i++)
			got[ready[i].data.u32] += arm(eq[ready[i].data.u32]);
	}
	for (unsigned i = 0; rank == 1 && i < QUEUES; i++) {
		got[i] += take_all(eq[i]);
		CHECK_EQ(got[i], sent[i]);
	}
	(void)close(set);
	sync_nodes();
}

static void sleep_and_take(ptl_handle_eq_t eq, int fd)
{
	unsigned n = arm(eq);
	while (!n) {
		CHECK(is_readable(fd, HANGS_MS));
		n = take_all(eq);
	}
	CHECK_EQ(n, 1);
}

/* If ticks of the NIC thread found the messages, there would be a take-over for each. */
NODES_CASE(sleepers_do_not_wait_for_ticks, 2)
{
	const unsigned n = rounds(400);
	struct self s = self_new(ni, rank);
	struct p3_nic *nic = p3_nic(p3_node());
	sync_nodes();
	uint64_t overs = p3_nic_counter(nic, P3_C_TAKEOVERS);
	for (unsigned i = 0; i < n; i++) {
		if (rank == i % 2)
			CHECK_OK(put_to(ni, s.md, !rank, PT, 1, PTL_NO_ACK_REQ));
		else
			sleep_and_take(s.eq, s.fd);
	}
	CHECK(p3_nic_counter(nic, P3_C_TAKEOVERS) - overs < 10 + n / 8);
	sync_nodes();
}

struct shared {
	struct self s;
	p3_a32 taken;
	uint32_t most;
};

/* One of the threads that arm, sleep on, and read the same queue. */
static void share(void *arg)
{
	struct shared *s = arg;
	while (p3_get(&s->taken) < s->most) {
		ptl_event_t ev;
		if (PtlXEQArm(s->s.eq) == PTL_OK)
			CHECK(is_readable(s->s.fd, HANGS_MS));
		if (PtlEQGet(s->s.eq, &ev) == PTL_OK)
			p3_add32(&s->taken, 1);
	}
	/* Wake the other threads. */
	CHECK_OK(put_to(s->s.ni, s->s.md, s->s.rank, PT, 2, PTL_NO_ACK_REQ));
}

NODES_CASE(threads_share_a_descriptor, 2)
{
	struct shared s = {.most = rounds(5000)};
	s.s = self_new(ni, rank);
	CHECK_OK(PtlEQFree(s.s.eq));
	s.s.eq = target(ni, 2, 16384);
	s.s.fd = descriptor_of(s.s.eq);
	sync_nodes();
	for (unsigned i = 0; rank == 0 && i < s.most; i++) {
		CHECK_OK(put_to(ni, s.s.md, 1, PT, 2, PTL_NO_ACK_REQ));
		for (volatile unsigned k = 0; k < mix(i) % 5000; k++)
			;
	}
	if (rank == 1) {
		struct side *side[2];
		for (unsigned i = 0; i < 2; i++)
			side[i] = side_start(share, &s);
		share(&s);
		for (unsigned i = 0; i < 2; i++)
			side_join(side[i]);
	}
	sync_nodes();
}

/* ---- no CPU while nothing comes ---- */

static uint64_t cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool is_dedicated(void)
{
	const char *mode = getenv("PTL3_MODE");
	return mode && strcmp(mode, "dedicated") == 0;
}

/* On some machines each wake-up costs up to a millisecond. */
NODES_CASE(a_sleeping_program_takes_no_cpu, 1)
{
	struct self s = self_new(ni, rank);
	bool asleep = is_dedicated();
	CHECK_EQ(arm(s.eq), 0);
	CHECK(!is_readable(s.fd, 100)); /* the NIC thread goes to sleep, too */
	for (unsigned i = 0; i < 10 && !asleep; i++) {
		uint64_t before = cpu_ns();
		CHECK(!is_readable(s.fd, 100));
		asleep = cpu_ns() - before < 5000000;
	}
	CHECK(asleep);
	put_self(&s);
	CHECK(is_readable(s.fd, HANGS_MS));
}
