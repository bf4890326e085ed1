/* SPDX-License-Identifier: BSD-3-Clause */
/* The domain's thread and a rank on another host (lib/domain/remote.c), whose end of the
 * connection is here, too. */
#include "lib/domain/internal.h"
#include "nic/far/endpoint.h"
#include "nic/streams.h"
#include "shm/park.h"
#include "support/cases.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RANKS = 2, OTHERS = 7 }; /* incarnation of the other rank */

/* This rank's side. */
static struct p3_node node;
static struct p3_modex modex;
static struct p3_remote remote[RANKS + 1]; /* no rank's is the last one */
static struct p3_card card[RANKS];
static uint32_t leader[RANKS];
static struct p3_member member[RANKS];
static struct p3_mesh_rank ranks[RANKS];
static struct p3_mesh mesh;

/* The side of the other rank. */
static uint32_t other;
static struct p3_endpoint *streams;

/* Make this process a rank of a job of two hosts, which yod or another launcher has
 * started, and which has not met the other rank. */
static void be_rank(uint32_t rank, bool launched)
{
	other = 1 - rank;
	memset(remote, 0, sizeof remote);
	memset(ranks, 0, sizeof ranks);
	streams = p3_streams_new(RANKS);
	modex = (struct p3_modex){.rank = rank,
		.size = RANKS,
		.leader = leader,
		.timeout_s = 30,
		.card = card,
		.streams = p3_streams_new(RANKS),
		.remote = remote};
	assert_non_null(streams);
	assert_non_null(modex.streams);
	node = (struct p3_node){.modex = &modex,
		.rank = rank,
		.size = RANKS,
		.launched = launched,
		.member = member,
		.capacity = RANKS};
	mesh = (struct p3_mesh){.node = &node,
		.nrank = launched ? RANKS : 0,
		.rank = ranks,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.changed = PTHREAD_COND_INITIALIZER};
	for (uint32_t i = 0; i < RANKS; i++) {
		leader[i] = i;
		member[i].rank = launched ? i : P3_MESH_NONE;
		ranks[i].slot = i;
		p3_call_init(&remote[i].call);
		remote[i].rank = i;
		remote[i].up.fd = remote[i].next.fd = -1;
	}
	for (uint32_t i = 0; i < P3_UNAUTH_MOST; i++)
		p3_call_init(&modex.unauth[i].call);
	p3_set(&mesh.ep, (uint32_t)epoll_create1(EPOLL_CLOEXEC));
}

static int end(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < RANKS; i++)
		p3_remote_close(&remote[i]);
	p3_streams_free(streams);
	p3_streams_free(modex.streams);
	return close((int)p3_get(&mesh.ep));
}

static void poll_both(void)
{
	struct p3_far_event none;
	(void)p3_endpoint_stream.poll(streams, &none, 1);
	(void)p3_endpoint_stream.poll(modex.streams, &none, 1);
}

/* Let the other rank be a member over an open connection.  Its descriptor stays open. */
static void meet(void)
{
	int fds[2];
	struct p3_remote *r = &remote[other];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	r->up = (struct p3_connection){.fd = fds[1], .file = p3_fd_file(fds[1])};
	struct p3_connection its = {.fd = fds[0], .file = p3_fd_file(fds[0])};
	p3_stream_give(streams, node.rank, &its);
	p3_stream_give(modex.streams, other, &r->up);
	r->begun = r->is_born = r->state_known = true;
	r->born.msg.incarnation = OTHERS;
}

static bool has_news(void)
{
	uint64_t n;
	return read(p3_streams_fd(modex.streams), &n, sizeof n) > 0;
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
	assert_int_equal(p3_stream_post(streams, node.rank, &m, NULL, 0), 0);
	for (int i = 0; !has_news(); i++) {
		assert_true(i < 1000);
		poll_both();
	}
	p3_mesh_on_remote(&mesh, P3_MESH_STREAMS, 0);
	assert_false(remote[other].ended);
}

/* ---- cases: barriers ---- */

CASE_IN(rank_0_takes_a_barrier, NULL, end)
{
	be_rank(0, true);
	meet();
	take(P3_JOB_BARRIER, 0);
	assert_int_equal(ranks[1].come, 1);
}

CASE_IN(a_rank_takes_a_release, NULL, end)
{
	be_rank(1, true);
	meet();
	take(P3_JOB_RELEASED, EPIPE);
	assert_int_equal(mesh.broken.status, EPIPE);
}

/* Rank 0 has released the barrier and ended before this rank has left it. */
CASE_IN(a_release_outlives_rank_0, NULL, end)
{
	be_rank(1, true);
	meet();
	mesh.entered = 1;
	take(P3_JOB_RELEASED, 0);
	assert_int_equal(mesh.released.round, 1);
	ranks[0].ended = true;
	p3_mesh_advance_barrier(&mesh);
	assert_int_equal(node.barriers_done, 0);
	struct p3_job_msg released = mesh.released;
	p3_mesh_leave_barrier(&mesh, &released);
	assert_int_equal(node.barriers_done, 1);
	assert_int_equal(node.barrier_status, 0);
}

/* Under yod, which leads the barriers, no rank sends such a packet.  One that comes all
 * the same changes nothing: the ranks have no entries then. */
CASE_IN(yods_ranks_ignore_barriers_of_others, NULL, end)
{
	be_rank(0, false);
	meet();
	take(P3_JOB_BARRIER, 0);
	take(P3_JOB_BARRIER, EPIPE);
	assert_int_equal(mesh.broken.status, 0);
	assert_int_equal(ranks[1].come, 0);
}

CASE_IN(yods_ranks_ignore_releases_of_others, NULL, end)
{
	be_rank(1, false);
	meet();
	take(P3_JOB_RELEASED, EPIPE);
	assert_int_equal(mesh.broken.status, 0);
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
	modex.looked_ns = now;
	remote[other].retry_ns = UINT64_MAX;
	modex.begun_ns = now - UINT64_C(20000000000);
	mesh.over = over;
	p3_mesh_check_remotes(&mesh);
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
CASE_IN(no_line_tells_of_late_connections_at_the_end, NULL, end)
{
	be_rank(0, true);
	assert_int_equal(look_late(true), -1);
	assert_true(look_late(false) > 0);
	assert_int_equal(look_late(false), -1); /* it comes once */
}

/* ---- cases: a stop of this process ---- */

CASE_IN(own_stop_is_no_silence_of_others, NULL, end)
{
	const uint64_t s = UINT64_C(1000000000);
	be_rank(0, true);
	uint64_t now = p3_now_ns();
	modex.looked_ns = modex.begun_ns = remote[other].alive_ns = now - 60 * s;
	remote[other].retry_ns = UINT64_MAX;
	p3_mesh_check_remotes(&mesh);
	assert_true(remote[other].alive_ns >= now - s);
	assert_int_equal(remote[RANKS].alive_ns, 0);
}

/* ---- cases: calls of strangers ---- */

/* Call this rank from its own host, and let it accept that. */
static void call_it(struct p3_call *c)
{
	int fd = p3_tcp_dial(&card[node.rank], &card[node.rank], 30);
	assert_true(fd >= 0);
	p3_call_dial(c, fd, &modex.secret, other, node.rank);
	struct pollfd on = {.fd = fd, .events = POLLOUT};
	assert_int_equal(poll(&on, 1, -1), 1);
	on = (struct pollfd){.fd = (int)p3_get(&modex.listener), .events = POLLIN};
	assert_int_equal(poll(&on, 1, -1), 1);
	p3_mesh_on_remote(&mesh, P3_MESH_TCP_LISTEN, 0);
}

static void answer_calls(void)
{
	for (uint32_t i = 0; i < P3_UNAUTH_MOST; i++)
		if (modex.unauth[i].call.state != P3_CALL_NONE)
			p3_mesh_on_remote(&mesh, P3_MESH_UNAUTH, i);
}

/* Strangers that have said HELLO, and prove nothing, hold all places but one.  A rank
 * that takes that keeps it until it says HELLO, whoever calls behind it: such a caller
 * gets the place of the oldest stranger. */
CASE_IN(strangers_leave_a_rank_the_time_for_hello, NULL, end)
{
	static struct p3_call calls[P3_UNAUTH_MOST + 1];
	struct p3_call *rank = &calls[P3_UNAUTH_MOST - 1];
	be_rank(0, true);
	card[0] = (struct p3_card){.family = AF_INET, .address = {127, 0, 0, 1}};
	int fd = p3_tcp_listen(&card[0]);
	assert_true(fd >= 0);
	card[1] = card[0];
	p3_set(&modex.listener, (uint32_t)fd);
	for (struct p3_call *c = calls; c < rank; c++) {
		call_it(c);
		assert_int_equal(p3_call_go_on(c), -EAGAIN);
	}
	for (uint32_t i = 0; i < P3_UNAUTH_MOST - 1; i++)
		while (modex.unauth[i].call.state != P3_CALL_ANSWERED)
			answer_calls();
	for (uint32_t i = 0; i < P3_UNAUTH_MOST - 1; i++)
		modex.unauth[i].call.since_ns -= P3_AUTH_NS / 2;
	call_it(rank);
	p3_mesh_on_remote(&mesh, P3_MESH_TCP_LISTEN, 0); /* nobody calls */
	assert_int_equal(modex.unauth[0].call.state, P3_CALL_ANSWERED);
	call_it(rank + 1);
	assert_int_equal(modex.unauth[0].call.state, P3_CALL_CALLED);
	assert_int_equal(p3_call_go_on(rank), -EAGAIN);
	int rc;
	while ((rc = p3_call_go_on(rank)) == -EAGAIN)
		answer_calls();
	assert_int_equal(rc, 0);
	for (uint32_t i = 0; i < P3_UNAUTH_MOST; i++)
		p3_call_close(&modex.unauth[i].call);
	for (struct p3_call *c = calls; c <= rank + 1; c++)
		p3_call_close(c);
	close(fd);
}

int main(void)
{
	if (p3_mac_load())
		return 1;
	return cases_run();
}
