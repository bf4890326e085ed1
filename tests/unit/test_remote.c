/* SPDX-License-Identifier: BSD-3-Clause */
/* The domain's thread and a rank on another host (lib/domain/remote.c), whose end of the
 * connection is here, too. */
#include "lib/domain/meeting.h"
#include "shm/park.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RANKS = 2, OTHERS = 7 }; /* incarnation of the other rank */

static const struct p3_sipkey secret[2] = {{{1, 2}}, {{3, 4}}};

/* This rank's side. */
static struct p3_node node;
static struct p3_wireup wireup;
static struct p3_remote remote[RANKS + 1]; /* no rank's is the last one */
static struct p3_card card[RANKS];
static uint32_t leader[RANKS];
static struct p3_meet_member member[RANKS];
static struct p3_meet_rank ranks[RANKS];
static struct p3_meeting meeting;

/* The side of the other rank. */
static uint32_t other;
static struct p3_channel channel;
static struct p3_session session;

/* Make this process a rank of a job of two hosts, which yod or another launcher has
 * started, and which has not met the other rank. */
static void be_rank(uint32_t rank, bool launched)
{
	other = 1 - rank;
	memset(remote, 0, sizeof remote);
	memset(ranks, 0, sizeof ranks);
	memset(&session, 0, sizeof session);
	wireup = (struct p3_wireup){.rank = rank,
		.size = RANKS,
		.leader = leader,
		.timeout_s = 30,
		.card = card,
		.remote = remote};
	node = (struct p3_node){
		.wireup = &wireup, .rank = rank, .size = RANKS, .launched = launched};
	meeting = (struct p3_meeting){.node = &node,
		.nmember = RANKS,
		.member = member,
		.nrank = launched ? RANKS : 0,
		.rank = ranks,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.changed = PTHREAD_COND_INITIALIZER};
	for (uint32_t i = 0; i < RANKS; i++) {
		leader[i] = i;
		member[i].rank = launched ? i : P3_MEET_NONE;
		ranks[i].slot = i;
		p3_channel_init(&remote[i].channel);
	}
	for (uint32_t i = 0; i < P3_UNAUTH_MOST; i++)
		p3_channel_init(&wireup.unauth[i].channel);
	p3_set(&meeting.ep, (uint32_t)epoll_create1(EPOLL_CLOEXEC));
}

static int end(void **state)
{
	(void)state;
	p3_channel_close(&channel);
	for (uint32_t i = 0; i < RANKS; i++)
		p3_channel_close(&remote[i].channel);
	return close((int)p3_get(&meeting.ep));
}

/* Let the other rank be a member over an open connection. */
static void meet(void)
{
	int fds[2];
	struct p3_packet p;
	struct p3_remote *r = &remote[other];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	p3_channel_call(&channel, fds[0], secret, other, node.rank);
	p3_channel_be_called(&r->channel, fds[1], secret, node.rank);
	while (!p3_channel_is_open(&channel) || !p3_channel_is_open(&r->channel)) {
		(void)p3_channel_receive(&channel, &p);
		(void)p3_channel_receive(&r->channel, &p);
	}
	p3_session_open(&session, &channel);
	p3_session_open(&r->session, &r->channel);
	assert_int_equal(p3_session_receive(&session, &channel, &p), -EAGAIN);
	assert_int_equal(p3_session_receive(&r->session, &r->channel, &p), -EAGAIN);
	r->is_born = r->state_known = true;
	r->born.msg.incarnation = OTHERS;
}

/* Take a packet about a barrier from the other rank. */
static void take(enum p3_job_op op, int status)
{
	struct p3_job_msg m = {.magic = P3_JOB_MAGIC,
		.op = op,
		.node = other,
		.incarnation = OTHERS,
		.round = 1,
		.status = status};
	uint32_t before = remote[other].session.taken;
	assert_int_equal(p3_session_send(&session, &channel, &m, NULL, 0), 0);
	p3_meet_on_remote(&meeting, P3_MEET_REMOTE, other);
	assert_int_equal(remote[other].session.taken, before + 1);
	assert_false(remote[other].ended);
}

/* ---- cases: barriers ---- */

static void rank_0_takes_a_barrier(void **state)
{
	(void)state;
	be_rank(0, true);
	meet();
	take(P3_JOB_BARRIER, 0);
	assert_int_equal(ranks[1].come, 1);
}

static void a_rank_takes_a_release(void **state)
{
	(void)state;
	be_rank(1, true);
	meet();
	take(P3_JOB_RELEASED, EPIPE);
	assert_int_equal(meeting.broken.status, EPIPE);
}

/* Under yod, which leads the barriers, no rank sends such a packet.  One that comes all
 * the same changes nothing: the ranks have no entries then. */
static void yods_ranks_ignore_barriers_of_others(void **state)
{
	(void)state;
	be_rank(0, false);
	meet();
	take(P3_JOB_BARRIER, 0);
	take(P3_JOB_BARRIER, EPIPE);
	assert_int_equal(meeting.broken.status, 0);
	assert_int_equal(ranks[1].come, 0);
}

static void yods_ranks_ignore_releases_of_others(void **state)
{
	(void)state;
	be_rank(1, false);
	meet();
	take(P3_JOB_RELEASED, EPIPE);
	assert_int_equal(meeting.broken.status, 0);
}

/* ---- cases: first connections that take long ---- */

/* Look after the remote ranks at a time when the other one is late.  Return the length of
 * the line about it. */
static ssize_t look_late(bool over)
{
	char line[1000];
	int wire[2], saved = dup(STDERR_FILENO);
	assert_int_equal(pipe2(wire, O_NONBLOCK | O_CLOEXEC), 0);
	assert_int_equal(dup2(wire[1], STDERR_FILENO), STDERR_FILENO);
	uint64_t now = p3_now_ns();
	wireup.looked_ns = remote[other].await_call_ns = now;
	wireup.begun_ns = now - UINT64_C(20000000000);
	meeting.over = over;
	p3_meet_check_remotes(&meeting);
	dup2(saved, STDERR_FILENO);
	ssize_t n = read(wire[0], line, sizeof line - 1);
	line[n > 0 ? n : 0] = '\0';
	if (n > 0)
		assert_non_null(strstr(line, "for its first connections with 1 ranks"));
	close(saved);
	close(wire[0]);
	close(wire[1]);
	return n;
}

/* PtlNIFini waits for confirmations, and not for first connections. */
static void no_line_tells_of_late_connections_at_the_end(void **state)
{
	(void)state;
	be_rank(0, true);
	assert_int_equal(look_late(true), -1);
	assert_true(look_late(false) > 0);
	assert_int_equal(look_late(false), -1); /* it comes once */
}

/* ---- cases: a stop of this process ---- */

static void own_stop_is_no_silence_of_others(void **state)
{
	(void)state;
	const uint64_t s = UINT64_C(1000000000);
	be_rank(0, true);
	uint64_t now = p3_now_ns();
	wireup.looked_ns = wireup.begun_ns = remote[other].alive_ns = now - 60 * s;
	remote[other].retry_ns = UINT64_MAX;
	p3_meet_check_remotes(&meeting);
	assert_true(remote[other].alive_ns >= now - s);
	assert_int_equal(remote[RANKS].alive_ns, 0);
}

#define CASE(f) cmocka_unit_test_teardown(f, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(rank_0_takes_a_barrier),
		CASE(a_rank_takes_a_release),
		CASE(yods_ranks_ignore_barriers_of_others),
		CASE(yods_ranks_ignore_releases_of_others),
		CASE(no_line_tells_of_late_connections_at_the_end),
		CASE(own_stop_is_no_silence_of_others),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
