/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections of sockets (nic/far/stream.c, nic/far/calls.c) among strangers, and bad
 * peers: all endpoints in one thread.  A relay between a peer and the node records what
 * the peer says, and says other things behind its greetings.
 */
#include "nic/cases.h"

#include "nic/far/calls.h"
#include "nic/far/stream.h"

#include <dirent.h>
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define LATER  600000u /* ms */
#define IDLE   500u    /* connections that say nothing */
#define POSTED 8u
#define SILENT 2u /* s */

static const struct p3_endpoint_ops *const ops = &p3_endpoint_stream;

/* An endpoint, and what has come to it. */
struct end {
	struct p3_endpoint *ep;
	uint64_t to; /* address of the other one */
	struct p3_far_buffer *in[POSTED], *out;
	bool sends;
	unsigned frames, sent, failed, broken;
};

static struct end node, peer; /* of the indexes 0 and 1 */

/* ---- endpoints ---- */

static bool is_of_job(void *arg, const void *address)
{
	struct sockaddr_in in;
	(void)arg;
	memcpy(&in, address, sizeof in);
	return in.sin_family == AF_INET && in.sin_addr.s_addr == htonl(INADDR_LOOPBACK);
}

static struct p3_far_buffer *buffer(bool receives)
{
	struct p3_far_buffer *b = aligned_alloc(64, sizeof *b);
	memset(b, 0, sizeof *b);
	b->receives = receives;
	return b;
}

static bool knows(void *arg, uint32_t index, uint64_t *to_out)
{
	*to_out = ((struct end *)arg)->to;
	return index == *to_out;
}

static void end_open(struct end *x, uint32_t index, const char *address)
{
	const struct p3_far_conf conf = {
		.address = address, .is_of_job = is_of_job, .timeout_s = SILENT};
	memset(x, 0, sizeof *x);
	assert_int_equal(ops->open(&conf, index, 2, POSTED, POSTED, &x->ep), 0);
	x->out = buffer(false);
	for (unsigned i = 0; i < POSTED; i++) {
		x->in[i] = buffer(true);
		assert_int_equal(ops->post(x->ep, x->in[i]), 0);
	}
	ops->trust(x->ep, knows, x);
}

static void end_close(struct end *x)
{
	ops->close(x->ep);
	for (unsigned i = 0; i < POSTED; i++)
		free(x->in[i]);
	free(x->out);
}

static struct sockaddr_in address_of(const struct end *x)
{
	struct sockaddr_in in;
	unsigned char name[P3_FAR_NAME];
	assert_int_equal(ops->name(x->ep, name), sizeof in);
	memcpy(&in, name, sizeof in);
	return in;
}

/* Tell x that the other node is at this address. */
static void end_meet(struct end *x, uint32_t other, const struct sockaddr_in *at)
{
	struct p3_far_keys k = {{{1, 2}}, {{3, 4}}};
	struct p3_far_keys back = {k.in, k.out};
	assert_int_equal(ops->resolve(x->ep, other, (const unsigned char *)at, sizeof *at,
				 other ? &k : &back, &x->to),
		0);
}

static void end_poll(struct end *x)
{
	struct p3_far_event ev[16];
	uint32_t n = ops->poll(x->ep, ev, 16);
	for (uint32_t i = 0; i < n; i++) {
		if (ev[i].buffer == x->out) {
			x->sends = false;
			x->failed += ev[i].what == P3_FAR_FAILED;
			continue;
		}
		x->frames += ev[i].what == P3_FAR_RECEIVED;
		assert_int_equal(ops->post(x->ep, ev[i].buffer), 0);
	}
}

static void end_send(struct end *x)
{
	int rc = x->sends ? -EBUSY : ops->send(x->ep, x->to, x->out, 128);
	x->sends |= rc == 0;
	x->sent += rc == 0;
	x->broken += rc == -EIO;
}

static void both_open(void)
{
	end_open(&node, 0, "127.0.0.1");
	end_open(&peer, 1, "127.0.0.1");
	struct sockaddr_in at = address_of(&node);
	end_meet(&peer, 0, &at);
	at = address_of(&peer);
	end_meet(&node, 1, &at);
}

static void relay_step(void);

static void both_poll(void)
{
	end_poll(&node);
	end_poll(&peer);
	relay_step();
}

static void both_close(void)
{
	end_close(&peer);
	end_close(&node);
}

/* Let the peer send until a further frame has come. */
static void expect_frame(void)
{
	unsigned before = node.frames;
	struct patience late = patience_begin();
	while (node.frames == before) {
		assert_false(patience_is_over(&late));
		end_send(&peer);
		both_poll();
	}
}

/* Wait until no frame of the peer is under way. */
static void expect_quiet(void)
{
	struct patience late = patience_begin();
	while (node.frames + peer.failed < peer.sent) {
		assert_false(patience_is_over(&late));
		both_poll();
	}
}

/* ---- sockets of strangers ---- */

static int stranger(const struct sockaddr_in *to)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_true(connect(fd, (const struct sockaddr *)to, sizeof *to) == 0 ||
		    errno == EINPROGRESS);
	return fd;
}

/* Return true when the connection has ended, and add the bytes that came before. */
static bool has_ended(int fd, size_t *came)
{
	char bytes[4096];
	ssize_t n = recv(fd, bytes, sizeof bytes, 0);
	*came += n > 0 ? (size_t)n : 0;
	return n == 0 || (n < 0 && errno != EAGAIN);
}

/* Return the number of bytes that come before the node ends the connection. */
static size_t bytes_until_end(int fd)
{
	size_t came = 0;
	struct patience late = patience_begin();
	while (!has_ended(fd, &came)) {
		assert_false(patience_is_over(&late));
		both_poll();
	}
	close(fd);
	return came;
}

static void say(int fd, const void *what, size_t len)
{
	struct patience late = patience_begin();
	while (send(fd, what, len, MSG_NOSIGNAL) != (ssize_t)len) {
		assert_true(errno == EAGAIN || errno == ENOTCONN);
		assert_false(patience_is_over(&late));
		both_poll();
	}
}

static unsigned open_fds(void)
{
	unsigned n = 0;
	DIR *d = opendir("/proc/self/fd");
	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* ---- a relay ---- */

static struct {
	bool open;
	int listener, in, out;    /* towards the peer, towards the node */
	unsigned char said[4096]; /* by the peer */
	size_t nsaid;
} relay;

static void relay_open(void)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof at;
	relay.open = true;
	relay.nsaid = 0;
	relay.in = relay.out = -1;
	relay.listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(relay.listener, (struct sockaddr *)&at, len), 0);
	assert_int_equal(listen(relay.listener, 8), 0);
	assert_int_equal(getsockname(relay.listener, (struct sockaddr *)&at, &len), 0);
	end_meet(&peer, 0, &at);
}

static void relay_close(void)
{
	relay.open = false;
	close(relay.listener);
	if (relay.in >= 0)
		close(relay.in);
	if (relay.out >= 0)
		close(relay.out);
}

static void relay_step(void)
{
	unsigned char bytes[1024];
	struct sockaddr_in to = address_of(&node);
	if (!relay.open)
		return;
	if (relay.in < 0) {
		relay.in =
			accept4(relay.listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		relay.out = relay.in < 0 ? -1 : stranger(&to);
		return;
	}
	size_t room = sizeof relay.said - relay.nsaid;
	ssize_t n = recv(relay.in, relay.said + relay.nsaid, room, 0);
	if (n > 0)
		assert_int_equal(send(relay.out, relay.said + relay.nsaid, (size_t)n,
					 MSG_NOSIGNAL),
			n);
	relay.nsaid += n > 0 ? (size_t)n : 0;
	n = recv(relay.out, bytes, sizeof bytes, 0);
	if (n > 0)
		(void)send(relay.in, bytes, (size_t)n, MSG_NOSIGNAL);
}

/* ---- strangers ---- */

/* The node goes on while half a HELLO is there, and closes it when its time is over. */
static void half_a_hello_holds_up_no_peer(void **state)
{
	(void)state;
	both_open();
	struct sockaddr_in at = address_of(&node);
	int fd = stranger(&at);
	uint64_t began = now_ms();
	say(fd, "half a hello", 12);
	for (unsigned i = 0; i < 100; i++)
		expect_frame();
	assert_int_equal(bytes_until_end(fd), 0);
	assert_true(now_ms() - began >= P3_CALL_NS / 1000000);
	expect_frame();
	both_close();
}

static void garbage_gets_no_answer(void **state)
{
	(void)state;
	unsigned char bytes[4096];
	both_open();
	struct sockaddr_in at = address_of(&node);
	for (unsigned i = 0; i < 64; i++) {
		int fd = stranger(&at);
		memset(bytes, (int)(i * 37), sizeof bytes);
		say(fd, bytes, sizeof bytes);
		assert_int_equal(bytes_until_end(fd), 0);
	}
	assert_int_equal(node.frames, 0);
	expect_frame();
	both_close();
}

/* All that the peer has said is said again: the node answers the HELLO, and no more. */
static void a_replay_gets_nowhere(void **state)
{
	(void)state;
	both_open();
	relay_open();
	expect_frame();
	expect_quiet();
	unsigned frames = node.frames;
	struct sockaddr_in at = address_of(&node);
	for (unsigned i = 0; i < 10; i++) {
		int fd = stranger(&at);
		say(fd, relay.said, relay.nsaid);
		assert_true(bytes_until_end(fd) <= sizeof(struct p3_greeting));
	}
	assert_int_equal(node.frames, frames);
	expect_frame();
	relay_close();
	both_close();
}

/* They take P3_CALLS_PLACES descriptors of the node at most, and a peer gets in. */
static void idle_strangers_keep_no_peer_out(void **state)
{
	(void)state;
	static int fds[IDLE];
	both_open();
	struct sockaddr_in at = address_of(&node);
	unsigned before = open_fds();
	for (unsigned i = 0; i < IDLE; i++) {
		fds[i] = stranger(&at);
		end_poll(&node);
		assert_true(open_fds() <= before + i + 1 + P3_CALLS_PLACES);
	}
	expect_frame();
	assert_true(open_fds() <= before + IDLE + P3_CALLS_PLACES + 2);
	for (unsigned i = 0; i < IDLE; i++)
		close(fds[i]);
	expect_frame();
	both_close();
}

static void callers_of_other_hosts_are_turned_away(void **state)
{
	(void)state;
	both_open();
	end_close(&peer);
	end_open(&peer, 1, "127.0.0.2");
	struct sockaddr_in at = address_of(&node);
	end_meet(&peer, 0, &at);
	struct patience late = patience_begin();
	while (peer.broken < 5) {
		assert_false(patience_is_over(&late));
		end_send(&peer);
		both_poll();
	}
	assert_int_equal(node.frames, 0);
	both_close();
}

/* Another program has the port of a peer, and says nothing. */
static void a_port_without_a_node_fails_calls(void **state)
{
	(void)state;
	both_open();
	relay_open(); /* its program does not look */
	relay.open = false;
	struct patience late = patience_begin();
	while (!peer.broken) {
		assert_false(patience_is_over(&late));
		end_send(&peer);
		both_poll();
	}
	struct sockaddr_in at = address_of(&node);
	end_meet(&peer, 0, &at);
	expect_frame();
	relay_close();
	both_close();
}

/* ---- peers ---- */

/* Both call at once, again and again: one connection serves both. */
static void calls_that_meet_end_as_one_connection(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 50; i++) {
		both_open();
		unsigned before = open_fds();
		struct patience late = patience_begin();
		while (node.frames < 3 || peer.frames < 3) {
			assert_false(patience_is_over(&late));
			if (i % 3 != 1)
				end_send(&peer);
			if (i % 3 != 2 || node.frames)
				end_send(&node);
			if (i % 3 == 1 && peer.frames)
				end_send(&peer);
			both_poll();
		}
		while (open_fds() != before + 2) {
			assert_false(patience_is_over(&late));
			both_poll();
		}
		both_close();
	}
}

struct words {
	uint64_t head;
	uint64_t body[3];
};

/* What a bad peer may say; each closes its connection, and the pair goes on. */
static const struct words bad[] = {{0, {0}}, {9ull << 32, {0}}, {UINT64_MAX, {0}},
	{1ull << 32, {0}}, {1ull << 32 | 63, {0}}, {1ull << 32 | (P3_FAR_BYTES + 1), {0}},
	{1ull << 32 | UINT32_MAX, {0}}, {2ull << 32 | 23, {0}}, {2ull << 32 | 25, {0}},
	{3ull << 32, {0}}, {3ull << 32 | 1, {0}}, {4ull << 32, {0}},
	{4ull << 32 | 8, {0}}};

static void wrong_records_end_the_connection(void **state)
{
	(void)state;
	both_open();
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		relay_open();
		expect_frame();
		expect_quiet();
		assert_int_equal(send(relay.out, &bad[i], sizeof bad[i], MSG_NOSIGNAL),
			sizeof bad[i]);
		int fd = relay.out;
		relay.out = dup(fd);
		relay.open = false;
		(void)bytes_until_end(fd);
		relay_close();
	}
	struct sockaddr_in at = address_of(&node);
	end_meet(&peer, 0, &at);
	expect_frame();
	both_close();
}

/* A peer asks for reads of unknown keys, which fail, and for more than it may. */
static void questions_have_a_limit(void **state)
{
	(void)state;
	struct words ask = {2ull << 32 | 24, {1, 0, 1}}, many[17];
	both_open();
	relay_open();
	expect_frame();
	expect_quiet();
	relay.open = false;
	char came[64];
	for (unsigned i = 0; i < 100; i++) {
		say(relay.out, &ask, sizeof ask);
		ssize_t n = -1;
		struct patience late = patience_begin();
		while ((n = recv(relay.out, came, sizeof came, 0)) < 0) {
			assert_false(patience_is_over(&late));
			both_poll();
		}
		assert_int_equal(n, sizeof ask.head);
	}
	for (unsigned i = 0; i < 17; i++)
		many[i] = ask;
	say(relay.out, many, sizeof many);
	int fd = relay.out;
	relay.out = -1;
	(void)bytes_until_end(fd);
	relay_close();
	both_close();
}

/* ---- a network that swallows packets ---- */

static void set_network(bool up)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = up ? IFF_UP : 0};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &lo), 0);
	close(fd);
}

/* The kernel would try for a quarter of an hour. */
static void be_in_a_black_hole(void)
{
	set_network(true);
	both_open();
	uint64_t began = now_ms(); /* before the last acknowledgement */
	expect_frame();
	expect_quiet();
	set_network(false);
	while (!peer.broken) { /* until the connection is closed, and a call fails */
		assert_true(now_ms() - began < LATER);
		end_send(&peer);
		both_poll();
	}
	uint64_t ms = now_ms() - began;
	set_network(true);
	expect_frame();
	both_close();
	print_message("# the connection was closed after %u ms\n", (unsigned)ms);
	assert_true(ms >= SILENT * 500);
}

static void a_black_hole_ends_a_connection(void **state)
{
	(void)state;
	int status = 0;
	pid_t pid = fork(); /* for a network of its own */
	if (pid == 0) {
		if (unshare(CLONE_NEWNET))
			_exit(77);
		be_in_a_black_hole();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(half_a_hello_holds_up_no_peer),
		cmocka_unit_test(garbage_gets_no_answer),
		cmocka_unit_test(a_replay_gets_nowhere),
		cmocka_unit_test(idle_strangers_keep_no_peer_out),
		cmocka_unit_test(callers_of_other_hosts_are_turned_away),
		cmocka_unit_test(a_port_without_a_node_fails_calls),
		cmocka_unit_test(calls_that_meet_end_as_one_connection),
		cmocka_unit_test(wrong_records_end_the_connection),
		cmocka_unit_test(questions_have_a_limit),
		cmocka_unit_test(a_black_hole_ends_a_connection),
	};
	return cmocka_run_group_tests(cases, NULL, NULL);
}
