/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Authenticated TCP connections.
 *
 * The calls of libc that can wait are cancellation points, and the lease is held: so the
 * calls are made by syscall().
 */
#include "nic/far/calls.h"
#include "shm/log.h"
#include "shm/park.h"
#include "shm/siphash.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BACKLOG 4096        /* as many as the kernel allows: all nodes may call at once */
#define MAGIC   0x33504601u /* the low byte is the version */
#define BATCH   64u         /* calls accepted in a row */

enum kind { HELLO = 1, ANSWER, PROOF };

/* The input of a proof. */
struct label {
	uint32_t by, half; /* kind of the greeting with the proof; word of it */
	uint32_t from, to;
	unsigned char nonce[2][16];
};

/* ---- printing lines ---- */

void p3_call_print(const union p3_call_address *a, char text[P3_CALL_TEXT])
{
	bool six = a->any.sa_family == AF_INET6;
	const void *bytes = six ? (const void *)&a->in6.sin6_addr : &a->in.sin_addr;
	if (!inet_ntop(a->any.sa_family, bytes, text, P3_CALL_TEXT - 8))
		snprintf(text, P3_CALL_TEXT, "?");
	size_t n = strlen(text);
	snprintf(text + n, P3_CALL_TEXT - n, ":%u",
		ntohs(six ? a->in6.sin6_port : a->in.sin_port));
}

static void say_stranger(struct p3_calls *cs, const union p3_call_address *from)
{
	char at[P3_CALL_TEXT];
	if (cs->said_stranger)
		return;
	cs->said_stranger = true;
	p3_call_print(from, at);
	p3_warn("a program at %s connects to this job and does not know its secret; it "
		"and all that follow are turned away (see which program that is, and "
		"whether PTL3_FABRIC_NET names a private network)",
		at);
}

static void say_silent(struct p3_calls *cs, const union p3_call_address *from)
{
	char at[P3_CALL_TEXT];
	if (cs->said_silent)
		return;
	cs->said_silent = true;
	p3_call_print(from, at);
	p3_warn("a program at %s has connected to rank %u and has not said for %u s that "
		"it is of this job; it and all that follow are turned away (see which "
		"program that is, or whether that rank is stopped)",
		at, cs->node, (uint32_t)(P3_CALL_NS / 1000000000));
}

static void say_flood(struct p3_calls *cs, const union p3_call_address *from)
{
	char at[P3_CALL_TEXT];
	if (cs->said_flood)
		return;
	cs->said_flood = true;
	p3_call_print(from, at);
	p3_warn("more than %u programs at a time, the last one at %s, are connected to "
		"rank %u and have not proven that they are of this job; the oldest are "
		"turned away (see which programs these are, and whether PTL3_FABRIC_NET "
		"names a private network)",
		P3_CALLS_PLACES, at, cs->node);
}

static void say_no_fds(struct p3_calls *cs, int why)
{
	if (!cs->said_no_fds)
		p3_warn("rank %u cannot accept the calls of other hosts now: %s; their "
			"frames wait; raise ulimit -n (two descriptors for each rank on "
			"another host)",
			cs->node, strerror(why));
	cs->said_no_fds = true;
}

/* ---- sockets ---- */

bool p3_call_is_over(const struct p3_call *c, uint64_t now, uint64_t ns)
{
	return (int64_t)(now - c->since_ns) >= (int64_t)ns; /* it may be later than now */
}

int p3_call_watch(struct p3_calls *cs, int op, int fd, uint32_t events, uint64_t tag)
{
	struct epoll_event ev = {.events = events, .data.u64 = tag};
	return epoll_ctl(cs->set, op, fd, &ev) ? -errno : 0;
}

static struct p3_socket socket_of(int fd)
{
	return (struct p3_socket){fd, p3_fd_file(fd)};
}

/* The set would report a socket that a forked child still has. */
void p3_call_hang_up(struct p3_calls *cs, struct p3_socket s)
{
	if (!p3_fd_is(s.fd, s.file))
		return;
	(void)p3_call_watch(cs, EPOLL_CTL_DEL, s.fd, 0, 0);
	(void)shutdown(s.fd, SHUT_RDWR);
	p3_fd_close(s.fd);
}

static int set_number(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof value) ? -errno : 0;
}

/* Let short messages go at once, and the kernel ask an idle host whether it lives. */
static int tune(const struct p3_calls *cs, int fd)
{
	int rc = set_number(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	if (rc || !cs->timeout_s)
		return rc;
	rc = set_number(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	rc = rc ? rc : set_number(fd, IPPROTO_TCP, TCP_KEEPIDLE, 1);
	rc = rc ? rc : set_number(fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
	return rc ? rc : set_number(fd, IPPROTO_TCP, TCP_KEEPCNT, 127);
}

/* Begin with a socket of this state.  Each event is reported once. */
static int begin(struct p3_calls *cs, struct p3_call *c, int fd, enum p3_call_state state,
	uint64_t tag)
{
	bool out = state == P3_CALL_DIALING;
	c->state = state;
	c->socket = socket_of(fd);
	c->got = 0;
	c->since_ns = p3_now_ns();
	/* The kernel has no entropy for a moment after its start: then the nonce of the
	 * other end makes the pair of nonces new. */
	if (syscall(SYS_getrandom, c->nonce[!out], sizeof c->nonce[0], 0) < 0)
		memcpy(c->nonce[!out], &c->since_ns, sizeof c->since_ns);
	return p3_call_watch(
		cs, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLET | (out ? EPOLLOUT : 0u), tag);
}

void p3_call_end(struct p3_calls *cs, struct p3_call *c)
{
	if (c->state != P3_CALL_NONE)
		p3_call_hang_up(cs, c->socket);
	c->state = P3_CALL_NONE;
}

struct p3_socket p3_call_take(struct p3_call *c)
{
	c->state = P3_CALL_NONE;
	return c->socket;
}

/* ---- greetings ---- */

static void make_proof(const struct p3_call *c, enum kind by, const struct p3_sipkey *key,
	uint64_t proof_out[2])
{
	struct label l = {.by = by, .from = c->from, .to = c->to};
	memcpy(l.nonce, c->nonce, sizeof l.nonce);
	for (l.half = 0; l.half < 2; l.half++)
		proof_out[l.half] = p3_siphash(key, &l, sizeof l);
}

/* Send a greeting: an empty socket has room for it. */
static int greet(const struct p3_call *c, enum kind kind, const unsigned char *nonce,
	const struct p3_sipkey *key)
{
	struct p3_greeting g = {
		.magic = MAGIC, .kind = kind, .from = c->from, .to = c->to};
	if (nonce)
		memcpy(g.nonce, nonce, sizeof g.nonce);
	if (key)
		make_proof(c, kind, key, g.proof);
	long n = syscall(SYS_sendto, c->socket.fd, &g, sizeof g,
		MSG_NOSIGNAL | MSG_DONTWAIT, NULL, 0);
	return n == (long)sizeof g ? 0 : n < 0 && errno != EAGAIN ? -errno : -EPIPE;
}

/* Read until the next greeting is whole.  Return 0, -EAGAIN, or another -errno. */
static int fill(struct p3_call *c)
{
	while (c->got < sizeof c->in) {
		long n = syscall(SYS_recvfrom, c->socket.fd, (char *)&c->in + c->got,
			sizeof c->in - c->got, MSG_DONTWAIT, NULL, NULL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EPIPE;
		c->got += (uint32_t)n;
	}
	c->got = 0;
	return 0;
}

/* Return 0 if the greeting that has come is of this kind and these nodes, and proves that
 * its sender has the key. */
static int check(const struct p3_call *c, enum kind kind, const struct p3_sipkey *key)
{
	const struct p3_greeting *g = &c->in;
	uint64_t right[2] = {g->proof[0], g->proof[1]};
	if (g->magic != MAGIC || g->kind != kind || g->from != c->from || g->to != c->to)
		return -EACCES;
	if (key)
		make_proof(c, kind, key, right);
	return ((g->proof[0] ^ right[0]) | (g->proof[1] ^ right[1])) ? -EACCES : 0;
}

/* ---- the caller ---- */

static int dial(struct p3_calls *cs, const union p3_call_address *to)
{
	union p3_call_address from = cs->own;
	int fd = p3_fd_high(socket(
		from.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	if (fd < 0)
		return -errno;
	*(from.any.sa_family == AF_INET6 ? &from.in6.sin6_port : &from.in.sin_port) = 0;
	/* The port is chosen at connect, for the pair of addresses. */
	(void)set_number(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
	int rc = tune(cs, fd);
	if (!rc && bind(fd, &from.any, cs->len))
		rc = -errno;
	if (!rc && syscall(SYS_connect, fd, &to->any, cs->len) && errno != EINPROGRESS)
		rc = -errno;
	if (rc)
		p3_fd_close(fd);
	return rc ? rc : fd;
}

int p3_call_begin(struct p3_calls *cs, struct p3_call *c, uint32_t node,
	const union p3_call_address *to)
{
	int fd = dial(cs, to);
	if (fd < 0)
		return fd;
	c->from = cs->node;
	c->to = node;
	c->other = *to;
	int rc = begin(cs, c, fd, P3_CALL_DIALING, p3_call_tag(P3_CALL_PEER, node));
	if (rc)
		p3_call_end(cs, c);
	return rc;
}

/* Send HELLO as soon as the socket is connected. */
static int finish_dialing(struct p3_call *c)
{
	union p3_call_address at;
	int why = 0;
	socklen_t len = sizeof why, at_len = sizeof at;
	if (getsockopt(c->socket.fd, SOL_SOCKET, SO_ERROR, &why, &len) || why)
		return why ? -why : -EPIPE;
	if (getpeername(c->socket.fd, &at.any, &at_len))
		return -EAGAIN;
	c->state = P3_CALL_CALLING;
	return greet(c, HELLO, c->nonce[0], NULL);
}

int p3_call_go_on(struct p3_call *c, const struct p3_far_keys *keys)
{
	int rc = c->state == P3_CALL_DIALING ? finish_dialing(c) : 0;
	rc = rc ? rc : fill(c);
	if (rc)
		return rc;
	memcpy(c->nonce[1], c->in.nonce, sizeof c->nonce[1]);
	rc = check(c, ANSWER, &keys->in);
	return rc ? rc : greet(c, PROOF, NULL, &keys->out);
}

/* ---- the called ---- */

static void drop(struct p3_calls *cs, struct p3_call *place)
{
	cs->used--;
	p3_call_end(cs, place);
}

struct p3_socket p3_calls_take(struct p3_calls *cs, struct p3_call *place)
{
	cs->used--;
	return p3_call_take(place);
}

/* Answer a HELLO, if its caller's keys are known by now. */
static int answer(struct p3_calls *cs, struct p3_call *c)
{
	const struct p3_far_keys *keys = cs->keys_of(cs->keys_arg, c->from, true);
	if (!keys)
		return -EAGAIN;
	c->state = P3_CALL_ANSWERED;
	return greet(c, ANSWER, c->nonce[1], &keys->out);
}

static int receive_hello(struct p3_calls *cs, struct p3_call *c)
{
	int rc = fill(c);
	if (rc)
		return rc;
	c->from = c->in.from;
	c->to = cs->node;
	memcpy(c->nonce[0], c->in.nonce, sizeof c->nonce[0]);
	rc = check(c, HELLO, NULL);
	c->state = P3_CALL_HELD;
	return rc ? rc : answer(cs, c);
}

static int receive_proof(struct p3_calls *cs, struct p3_call *c)
{
	int rc = fill(c);
	const struct p3_far_keys *keys = cs->keys_of(cs->keys_arg, c->from, false);
	if (rc || !keys)
		return rc ? rc : -ESTALE; /* the peer has gone meanwhile */
	return check(c, PROOF, &keys->in);
}

bool p3_calls_answer(struct p3_calls *cs, struct p3_call *place)
{
	int rc = 0;
	if (place->state == P3_CALL_CALLED)
		rc = receive_hello(cs, place);
	if (!rc && place->state == P3_CALL_ANSWERED) {
		rc = receive_proof(cs, place);
		if (!rc)
			return true;
	}
	if (rc == -EACCES)
		say_stranger(cs, &place->other);
	if (rc && rc != -EAGAIN)
		drop(cs, place);
	return false;
}

/* Return a free place; without one, free that of the caller that is the least likely to
 * be a peer, or return NULL. */
static struct p3_call *make_room(struct p3_calls *cs, uint64_t now)
{
	struct p3_call *mute = NULL, *old = NULL;
	for (uint32_t i = 0; i < P3_CALLS_PLACES; i++) {
		struct p3_call *c = &cs->place[i];
		struct p3_call **oldest = c->state == P3_CALL_CALLED ? &mute : &old;
		if (c->state == P3_CALL_NONE)
			return c;
		if (!*oldest || c->since_ns < (*oldest)->since_ns)
			*oldest = c;
	}
	struct p3_call *c = mute ? mute : old;
	if (!mute && !p3_call_is_over(old, now, P3_CALL_GRACE_NS))
		return NULL;
	say_flood(cs, &c->other);
	drop(cs, c);
	return c;
}

/* Put an accepted socket into a place, unless its host is not of the job. */
static void seat(struct p3_calls *cs, struct p3_call *c, int fd)
{
	bool of_job = !cs->is_of_job || cs->is_of_job(cs->is_of_job_arg, &c->other);
	uint64_t tag = p3_call_tag(P3_CALL_PLACE, (uint32_t)(c - cs->place));
	if (!of_job)
		say_stranger(cs, &c->other);
	if (!of_job || tune(cs, fd)) {
		p3_fd_close(fd);
		return;
	}
	cs->used++;
	if (begin(cs, c, fd, P3_CALL_CALLED, tag))
		drop(cs, c);
}

static int accept_one(struct p3_calls *cs, struct p3_call *c)
{
	socklen_t len = sizeof c->other;
	int fd = p3_fd_high((int)syscall(SYS_accept4, cs->listener.fd, &c->other, &len,
		SOCK_CLOEXEC | SOCK_NONBLOCK));
	if (fd < 0)
		return -errno;
	seat(cs, c, fd);
	return 0;
}

static bool lacks_fds(int rc)
{
	return rc == -EMFILE || rc == -ENFILE || rc == -ENOBUFS || rc == -ENOMEM;
}

void p3_calls_accept(struct p3_calls *cs, uint64_t now)
{
	int rc = 0;
	for (uint32_t i = 0; i < BATCH && rc != -EAGAIN && !lacks_fds(rc); i++) {
		struct p3_call *c = make_room(cs, now);
		if (!c)
			break;
		rc = accept_one(cs, c);
	}
	if (lacks_fds(rc))
		say_no_fds(cs, -rc);
	cs->accept_due = rc != -EAGAIN; /* the set tells of new callers only */
}

void p3_calls_check(struct p3_calls *cs, uint64_t now)
{
	for (uint32_t i = 0; cs->used && i < P3_CALLS_PLACES; i++) {
		struct p3_call *c = &cs->place[i];
		int rc = c->state == P3_CALL_HELD ? answer(cs, c) : 0;
		if (c->state == P3_CALL_NONE)
			continue;
		if (!p3_call_is_over(c, now, P3_CALL_NS) && (!rc || rc == -EAGAIN))
			continue;
		if (c->state == P3_CALL_CALLED)
			say_silent(cs, &c->other);
		drop(cs, c);
	}
	if (cs->accept_due)
		p3_calls_accept(cs, now);
}

/* ---- opening and closing ---- */

/* Convert the address; NULL: this host only. */
static int own_address(struct p3_calls *cs, const char *address)
{
	const char *text = address ? address : "127.0.0.1";
	if (inet_pton(AF_INET, text, &cs->own.in.sin_addr) == 1) {
		cs->own.in.sin_family = AF_INET;
		cs->len = sizeof cs->own.in;
	} else if (inet_pton(AF_INET6, text, &cs->own.in6.sin6_addr) == 1) {
		cs->own.in6.sin6_family = AF_INET6;
		cs->len = sizeof cs->own.in6;
	} else {
		return -EINVAL;
	}
	return 0;
}

int p3_calls_open(struct p3_calls *cs, const struct p3_far_conf *conf, uint32_t node,
	int set, p3_call_keys *keys_of, void *arg)
{
	*cs = (struct p3_calls){.is_of_job = conf->is_of_job,
		.is_of_job_arg = conf->arg,
		.timeout_s = conf->timeout_s,
		.node = node,
		.set = set,
		.listener = {.fd = -1},
		.keys_of = keys_of,
		.keys_arg = arg};
	int rc = own_address(cs, conf->address);
	int fd = rc ? -1
		    : p3_fd_high(socket(cs->own.any.sa_family,
			      SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	if (fd < 0)
		return rc ? rc : -errno;
	cs->listener = socket_of(fd);
	if (bind(fd, &cs->own.any, cs->len) || listen(fd, BACKLOG) ||
		getsockname(fd, &cs->own.any, &cs->len))
		return -errno;
	return p3_call_watch(cs, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLET,
		p3_call_tag(P3_CALL_LISTENER, 0));
}

void p3_calls_close(struct p3_calls *cs)
{
	for (uint32_t i = 0; i < P3_CALLS_PLACES; i++)
		p3_call_end(cs, &cs->place[i]);
	if (cs->listener.fd >= 0)
		p3_fd_close_own(cs->listener.fd, cs->listener.file);
}
