/* SPDX-License-Identifier: BSD-3-Clause */
/* Channels between hosts (lib/domain/channel.h) over a pair of sockets. */
#include "lib/domain/session.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CALLER = 5, CALLED = 2 };

static const struct p3_sipkey right[2] = {{{1, 2}}, {{3, 4}}};
static const struct p3_sipkey wrong[2] = {{{1, 2}}, {{3, 5}}};
static struct p3_channel caller, called;
static int wire[2]; /* duplicates of the ends: to read and write beside the channels */

static void connect_both(const struct p3_sipkey *a, const struct p3_sipkey *b)
{
	int fds[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	wire[0] = dup(fds[0]);
	wire[1] = dup(fds[1]);
	p3_channel_call(&caller, fds[0], a, CALLER, CALLED);
	p3_channel_be_called(&called, fds[1], b, CALLED);
}

static int close_both(void **state)
{
	(void)state;
	p3_channel_close(&caller);
	p3_channel_close(&called);
	close(wire[0]);
	close(wire[1]);
	return 0;
}

/* Let both ends go on, until one has an answer other than -EAGAIN twice. */
static void greet(int *caller_rc, int *called_rc)
{
	struct p3_packet p;
	*caller_rc = *called_rc = -EAGAIN;
	for (int i = 0; i < 8; i++) {
		if (*caller_rc == -EAGAIN)
			*caller_rc = p3_channel_receive(&caller, &p);
		if (*called_rc == -EAGAIN)
			*called_rc = p3_channel_receive(&called, &p);
	}
}

static void open_both(void)
{
	int a, b;
	connect_both(right, right);
	greet(&a, &b);
	assert_int_equal(a, 0);
	assert_int_equal(b, 0);
	assert_true(p3_channel_is_open(&caller) && p3_channel_is_open(&called));
	assert_int_equal(p3_channel_other(&caller), CALLED);
	assert_int_equal(p3_channel_other(&called), CALLER);
}

static struct p3_job_msg message(uint32_t round)
{
	return (struct p3_job_msg){
		.magic = P3_JOB_MAGIC, .op = P3_JOB_BARRIER, .round = round};
}

static void packets_come_in_order(void **state)
{
	struct p3_packet p;
	unsigned char name[P3_FAR_NAME] = "a name";
	(void)state;
	open_both();
	for (uint32_t i = 0; i < 100; i++) {
		struct p3_job_msg m = message(i);
		assert_int_equal(p3_channel_send(&caller, &m, name, 6), 0);
		assert_int_equal(p3_channel_send(&called, &m, NULL, 0), 0);
		assert_int_equal(p3_channel_receive(&called, &p), 1);
		assert_int_equal(p.msg.round, i);
		assert_int_equal(p.name_len, 6);
		assert_memory_equal(p.name, name, 6);
		assert_int_equal(p3_channel_receive(&caller, &p), 1);
		assert_int_equal(p.msg.round, i);
		assert_int_equal(p3_channel_receive(&caller, &p), -EAGAIN);
	}
}

static void a_wrong_secret_opens_nothing(void **state)
{
	int a, b;
	(void)state;
	connect_both(wrong, right);
	greet(&a, &b);
	assert_int_equal(a, -EACCES); /* the answer has no proof for the caller */
	assert_false(p3_channel_is_open(&caller) || p3_channel_is_open(&called));
}

/* Pass on all greetings of the caller, but change one byte of the stream. */
static void a_changed_greeting_opens_nothing(void **state)
{
	(void)state;
	for (unsigned at = 0; at < 2 * sizeof(struct p3_greeting); at++) {
		int a = -EAGAIN, b = -EAGAIN, fds[2];
		unsigned passed = 0;
		struct p3_packet p;
		unsigned char byte;
		connect_both(right, right);
		assert_int_equal(
			socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
		p3_channel_close(&called);
		p3_channel_be_called(&called, fds[1], right, CALLED);
		for (int i = 0; i < 8; i++) {
			a = a == -EAGAIN ? p3_channel_receive(&caller, &p) : a;
			while (recv(wire[1], &byte, 1, MSG_DONTWAIT) == 1) {
				byte ^= passed++ == at;
				assert_int_equal(write(fds[0], &byte, 1), 1);
			}
			b = b == -EAGAIN ? p3_channel_receive(&called, &p) : b;
			while (recv(fds[0], &byte, 1, MSG_DONTWAIT) == 1)
				assert_int_equal(write(wire[1], &byte, 1), 1);
		}
		/* The nonce of PROOF is unused. */
		unsigned rest = at % sizeof(struct p3_greeting);
		bool unused = at >= sizeof(struct p3_greeting) && rest >= 16 && rest < 32;
		unused |=
			at < sizeof(struct p3_greeting) && rest >= 32; /* HELLO's proof */
		assert_int_equal(p3_channel_is_open(&called), unused);
		close(fds[0]);
		close_both(NULL);
	}
	connect_both(right, right);
}

static void a_changed_packet_is_refused(void **state)
{
	(void)state;
	for (unsigned at = 0; at < sizeof(struct p3_packet); at++) {
		struct p3_packet p;
		struct p3_job_msg m = message(7);
		open_both();
		assert_int_equal(p3_channel_send(&caller, &m, NULL, 0), 0);
		assert_int_equal(recv(wire[1], &p, sizeof p, 0), sizeof p);
		((unsigned char *)&p)[at] ^= 0x10;
		assert_int_equal(write(wire[0], &p, sizeof p), sizeof p);
		assert_int_equal(p3_channel_receive(&called, &p), -EACCES);
		close_both(NULL);
	}
	open_both();
}

static void a_repeated_packet_is_refused(void **state)
{
	struct p3_packet p;
	struct p3_job_msg m = message(7);
	(void)state;
	open_both();
	assert_int_equal(p3_channel_send(&caller, &m, NULL, 0), 0);
	assert_int_equal(recv(wire[1], &p, sizeof p, MSG_PEEK), sizeof p);
	assert_int_equal(write(wire[0], &p, sizeof p), sizeof p);
	assert_int_equal(p3_channel_receive(&called, &p), 1);
	assert_int_equal(p3_channel_receive(&called, &p), -EACCES);
}

static void a_packet_sent_back_is_refused(void **state)
{
	struct p3_packet p;
	struct p3_job_msg m = message(7);
	(void)state;
	open_both();
	assert_int_equal(p3_channel_send(&caller, &m, NULL, 0), 0);
	assert_int_equal(recv(wire[1], &p, sizeof p, 0), sizeof p);
	assert_int_equal(write(wire[1], &p, sizeof p), sizeof p);
	assert_int_equal(p3_channel_receive(&caller, &p), -EACCES);
}

/* The queue takes a few packets when the socket is full, and loses none that it took. */
static void a_full_socket_loses_nothing(void **state)
{
	uint32_t said = 0, heard = 0;
	struct p3_packet p;
	(void)state;
	open_both();
	for (int rc = 0; rc != -EAGAIN; said += rc == 0) {
		struct p3_job_msg m = message(said);
		rc = p3_channel_send(&caller, &m, NULL, 0);
		assert_true(rc == 0 || rc == -EAGAIN);
	}
	while (heard < said) {
		assert_int_equal(p3_channel_flush(&caller), 0);
		assert_int_equal(p3_channel_receive(&called, &p), 1);
		assert_int_equal(p.msg.round, heard++);
	}
	assert_int_equal(p3_channel_receive(&called, &p), -EAGAIN);
}

static void the_end_is_told(void **state)
{
	struct p3_packet p;
	(void)state;
	open_both();
	shutdown(wire[0], SHUT_RDWR);
	p3_channel_close(&caller);
	assert_int_equal(p3_channel_receive(&called, &p), -EPIPE);
}

#define CASE(fn) cmocka_unit_test_teardown(fn, close_both)

static void a_session_outlives_connections(void **state)
{
	static struct p3_session a, b;
	struct p3_packet p;
	uint32_t said = 0, taken = 0;
	(void)state;
	a = b = (struct p3_session){.begun = false};
	for (int life = 0; life < 300; life++) {
		open_both();
		p3_session_open(&a, &caller);
		p3_session_open(&b, &called);
		for (int i = 0; i < life % 7; i++) {
			struct p3_job_msg m = message(said);
			if (p3_session_send(&a, &caller, &m, NULL, 0) == 0)
				said++;
			for (int k = 0; k < life % 3; k++)
				if (p3_session_receive(&b, &called, &p) == 1)
					assert_int_equal(p.msg.round, taken++);
			while (life % 2 && p3_session_receive(&a, &caller, &p) != -EAGAIN)
				;
		}
		close_both(state);
	}
	assert_true(taken > 100 && said - taken <= P3_SESSION_KEPT);
	open_both();
	p3_session_open(&a, &caller);
	p3_session_open(&b, &called);
	for (int i = 0; i < 2 * (int)P3_SESSION_KEPT; i++) {
		while (p3_session_receive(&b, &called, &p) == 1)
			assert_int_equal(p.msg.round, taken++);
		assert_int_equal(p3_session_receive(&a, &caller, &p), -EAGAIN);
	}
	assert_int_equal(taken, said);
	assert_true(a.next - a.acked < P3_SESSION_ACK); /* TAKEN has come */
}

static void a_session_believes_no_wrong_count(void **state)
{
	static struct p3_session a;
	struct p3_packet p;
	struct p3_job_msg m = {.magic = P3_JOB_MAGIC, .op = P3_JOB_TAKEN};
	(void)state;
	a = (struct p3_session){.begun = false};
	open_both();
	p3_session_open(&a, &caller);
	called.taken = 1; /* nothing was said */
	assert_int_equal(p3_channel_send(&called, &m, NULL, 0), 0);
	assert_int_equal(p3_session_receive(&a, &caller, &p), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {CASE(packets_come_in_order),
		CASE(a_wrong_secret_opens_nothing),
		CASE(a_changed_greeting_opens_nothing), CASE(a_changed_packet_is_refused),
		CASE(a_repeated_packet_is_refused), CASE(a_packet_sent_back_is_refused),
		CASE(a_full_socket_loses_nothing), CASE(the_end_is_told),
		CASE(a_session_outlives_connections),
		CASE(a_session_believes_no_wrong_count)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
