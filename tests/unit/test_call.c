/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls between hosts (lib/domain/call.c) over a pair of sockets. */
#include "lib/domain/internal.h"
#include "support/cases.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CALLER = 5, CALLED = 2, STEPS = 8, SAID = 2 };

static const struct p3_mac_key right = {{1, 2}}, wrong = {{1, 3}};
static struct p3_call caller, called;

static int new_pair(int fds[2])
{
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds);
}

static void connect_both(const struct p3_mac_key *a, const struct p3_mac_key *b)
{
	int fds[2];
	assert_int_equal(new_pair(fds), 0);
	p3_call_dial(&caller, fds[0], a, CALLER, CALLED);
	p3_call_accept(&called, fds[1], b, CALLED);
}

static int close_both(void **state)
{
	(void)state;
	p3_call_close(&caller);
	p3_call_close(&called);
	return 0;
}

/* Let both ends go on, until each has an answer other than -EAGAIN. */
static void greet(int *caller_rc, int *called_rc)
{
	*caller_rc = *called_rc = -EAGAIN;
	for (int i = 0; i < STEPS; i++) {
		if (*caller_rc == -EAGAIN)
			*caller_rc = p3_call_go_on(&caller);
		if (*called_rc == -EAGAIN)
			*called_rc = p3_call_go_on(&called);
	}
}

static void open_both(void)
{
	int a, b;
	connect_both(&right, &right);
	greet(&a, &b);
	assert_int_equal(a, 0);
	assert_int_equal(b, 0);
}

/* Each end sends under the key under which the other one receives, and all keys differ,
 * also from those of another call. */
CASE_IN(both_ends_have_the_same_keys, NULL, close_both)
{
	struct p3_connection a, b, c;
	open_both();
	assert_int_equal(p3_call_other(&caller), CALLED);
	assert_int_equal(p3_call_other(&called), CALLER);
	a = p3_call_take(&caller);
	b = p3_call_take(&called);
	assert_memory_equal(&a.key[0], &b.key[1], sizeof a.key[0]);
	assert_memory_equal(&a.key[1], &b.key[0], sizeof a.key[0]);
	assert_memory_not_equal(&a.key[0], &a.key[1], sizeof a.key[0]);
	close(a.fd);
	close(b.fd);
	open_both();
	c = p3_call_take(&caller);
	assert_memory_not_equal(&a.key[0], &c.key[0], sizeof a.key[0]);
	assert_memory_not_equal(&a.key[1], &c.key[1], sizeof a.key[1]);
	close(c.fd);
}

/* The bytes behind the greetings stay in the socket. */
CASE_IN(no_byte_behind_is_read, NULL, close_both)
{
	char byte = 0;
	open_both();
	struct p3_connection a = p3_call_take(&caller);
	connect_both(&right, &right);
	while (caller.state != P3_CALL_OPEN) {
		(void)p3_call_go_on(&caller);
		if (caller.state != P3_CALL_OPEN)
			(void)p3_call_go_on(&called);
	}
	close(a.fd);
	a = p3_call_take(&caller);
	assert_int_equal(write(a.fd, "x", 1), 1);
	assert_int_equal(p3_call_go_on(&called), 0);
	struct p3_connection b = p3_call_take(&called);
	assert_int_equal(read(b.fd, &byte, 1), 1);
	assert_int_equal(byte, 'x');
	close(a.fd);
	close(b.fd);
}

CASE_IN(a_wrong_secret_opens_nothing, NULL, close_both)
{
	int a, b;
	connect_both(&wrong, &right);
	greet(&a, &b);
	assert_int_equal(a, -EACCES); /* the answer has no proof for the caller */
	assert_true(b != 0);
	close_both(state);
	/* A caller that does not look at the answer has no proof either. */
	connect_both(&right, &right);
	(void)p3_call_go_on(&caller);
	assert_int_equal(p3_call_go_on(&called), -EAGAIN);
	caller.secret = &wrong;
	caller.state = P3_CALL_ANSWERED; /* it takes ANSWER for a wrong PROOF */
	assert_int_equal(p3_call_go_on(&caller), -EACCES);
	struct p3_greeting proof = {.magic = caller.in.magic,
		.op = 3,
		.from = CALLER,
		.to = CALLED,
		.proof = {{1, 2}}};
	assert_int_equal(
		send((int)p3_get(&caller.fd), &proof, sizeof proof, 0), sizeof proof);
	assert_int_equal(p3_call_go_on(&called), -EACCES);
}

/* Pass on all greetings of the caller, but change one byte of the stream. */
CASE_IN(a_changed_greeting_opens_nothing, NULL, close_both)
{
	for (unsigned at = 0; at < SAID * sizeof(struct p3_greeting); at++) {
		int near[2], far[2], b = -EAGAIN;
		unsigned passed = 0;
		unsigned char byte;
		assert_int_equal(new_pair(near), 0);
		assert_int_equal(new_pair(far), 0);
		p3_call_dial(&caller, near[0], &right, CALLER, CALLED);
		p3_call_accept(&called, far[1], &right, CALLED);
		for (int i = 0; i < STEPS; i++) {
			(void)p3_call_go_on(&caller);
			while (recv(near[1], &byte, 1, MSG_DONTWAIT) == 1) {
				byte ^= passed++ == at;
				assert_int_equal(write(far[0], &byte, 1), 1);
			}
			b = b == -EAGAIN ? p3_call_go_on(&called) : b;
			while (recv(far[0], &byte, 1, MSG_DONTWAIT) == 1)
				assert_int_equal(write(near[1], &byte, 1), 1);
		}
		unsigned rest = at % sizeof(struct p3_greeting);
		bool of_proof = at >= sizeof(struct p3_greeting);
		/* PROOF has no nonce, and HELLO no proof. */
		bool unused = of_proof ? rest >= 16 && rest < 32 : rest >= 32;
		assert_int_equal(b == 0, unused);
		close(near[1]);
		close(far[0]);
		close_both(state);
	}
}

/* All that a caller said is said again: the called answers HELLO, and no more. */
CASE_IN(a_replay_opens_nothing, NULL, close_both)
{
	struct p3_greeting said[SAID];
	int near[2], far[2];
	assert_int_equal(new_pair(near), 0);
	assert_int_equal(new_pair(far), 0);
	p3_call_dial(&caller, near[0], &right, CALLER, CALLED);
	p3_call_accept(&called, far[1], &right, CALLED);
	for (unsigned i = 0; i < SAID; i++) {
		struct p3_greeting answer;
		(void)p3_call_go_on(&caller);
		assert_int_equal(read(near[1], &said[i], sizeof said[i]), sizeof said[i]);
		assert_int_equal(write(far[0], &said[i], sizeof said[i]), sizeof said[i]);
		int rc = p3_call_go_on(&called);
		assert_int_equal(rc, i ? 0 : -EAGAIN);
		if (read(far[0], &answer, sizeof answer) > 0)
			assert_int_equal(
				write(near[1], &answer, sizeof answer), sizeof answer);
	}
	close(near[1]);
	close(far[0]);
	close_both(state);
	assert_int_equal(new_pair(far), 0);
	p3_call_accept(&called, far[1], &right, CALLED);
	assert_int_equal(write(far[0], said, sizeof said), sizeof said);
	assert_int_equal(p3_call_go_on(&called), -EACCES);
	close(far[0]);
}

/* Nothing that an end says is right when it is said to that end. */
CASE_IN(a_greeting_sent_back_opens_nothing, NULL, close_both)
{
	struct p3_greeting g;
	int fds[2];
	assert_int_equal(new_pair(fds), 0);
	p3_call_dial(&caller, fds[0], &right, CALLER, CALLED);
	assert_int_equal(p3_call_go_on(&caller), -EAGAIN);
	assert_int_equal(read(fds[1], &g, sizeof g), sizeof g);
	assert_int_equal(write(fds[1], &g, sizeof g), sizeof g);
	assert_int_equal(p3_call_go_on(&caller), -EACCES);
	p3_call_accept(&called, fds[1], &right, CALLED);
}

CASE_IN(half_a_greeting_waits, NULL, close_both)
{
	struct p3_greeting g = {.magic = 0};
	int fds[2];
	assert_int_equal(new_pair(fds), 0);
	p3_call_accept(&called, fds[1], &right, CALLED);
	for (size_t i = 0; i + 1 < sizeof g; i++) {
		assert_int_equal(write(fds[0], &g, 1), 1);
		assert_int_equal(p3_call_go_on(&called), -EAGAIN);
	}
	assert_int_equal(write(fds[0], &g, 1), 1);
	assert_int_equal(p3_call_go_on(&called), -EACCES);
	close(fds[0]);
}

CASE_IN(the_end_is_told, NULL, close_both)
{
	connect_both(&right, &right);
	p3_call_close(&caller);
	assert_int_equal(p3_call_go_on(&called), -EPIPE);
	assert_int_equal(p3_call_go_on(&caller), -EPIPE);
}

/* A number that the program has given to another file is not closed. */
CASE_IN(a_lost_descriptor_is_noticed, NULL, close_both)
{
	int fds[2];
	connect_both(&right, &right);
	int fd = (int)p3_get(&called.fd);
	assert_false(p3_call_is_lost(&called));
	assert_int_equal(new_pair(fds), 0);
	assert_int_equal(dup2(fds[0], fd), fd);
	assert_true(p3_call_is_lost(&called));
	p3_call_close(&called);
	assert_int_equal(close(fd), 0);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	p3_call_init(&caller);
	p3_call_init(&called);
	if (p3_mac_load())
		return 1;
	return cases_run();
}
