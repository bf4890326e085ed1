/* SPDX-License-Identifier: BSD-3-Clause */
/* Authenticated packets over TCP. */
#include "lib/domain/channel.h"
#include "shm/park.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAGIC 0x33504401u /* the low byte is the version */
#define NONE  0xffffffffu

enum op { HELLO = 1, ANSWER, PROOF };

/* The input of a MAC of the greeting. */
struct label {
	uint64_t what; /* of the words below */
	uint32_t from, to;
	unsigned char nonce[2][16];
};

enum what { PROOF_OF_CALLED = 1, PROOF_OF_CALLER, KEY_OF_CALLER, KEY_OF_CALLED };

static int fd_of(const struct p3_channel *c)
{
	return (int)p3_get(&c->fd);
}

static struct p3_sipkey hash(const struct p3_channel *c, enum what what)
{
	struct label l = {.what = what, .from = c->from, .to = c->to};
	memcpy(l.nonce, c->nonce, sizeof l.nonce);
	return (struct p3_sipkey){{p3_siphash(&c->secret[0], &l, sizeof l),
		p3_siphash(&c->secret[1], &l, sizeof l)}};
}

/* ---- out ---- */

int p3_channel_flush(struct p3_channel *c)
{
	while (c->left) {
		ssize_t n = send(fd_of(c), c->out, c->left, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		c->left -= (uint32_t)n;
		memmove(c->out, c->out + n, c->left);
	}
	return 0;
}

static int queue(struct p3_channel *c, const void *bytes, uint32_t len)
{
	if (len > sizeof c->out - c->left)
		return -EAGAIN;
	memcpy(c->out + c->left, bytes, len);
	c->left += len;
	return p3_channel_flush(c);
}

static int greet(struct p3_channel *c, enum op op, const unsigned char *nonce,
	struct p3_sipkey proof)
{
	struct p3_greeting g = {.magic = MAGIC, .op = op, .from = c->from, .to = c->to};
	if (nonce)
		memcpy(g.nonce, nonce, sizeof g.nonce);
	memcpy(g.proof, proof.k, sizeof g.proof);
	return queue(c, &g, sizeof g);
}

static uint64_t mac_of(const struct p3_sipkey *key, const struct p3_packet *p)
{
	return p3_siphash(key, p, offsetof(struct p3_packet, mac));
}

int p3_channel_send(struct p3_channel *c, const struct p3_job_msg *msg,
	const unsigned char *name, uint32_t name_len)
{
	struct p3_packet p = {.msg = *msg, .taken = c->taken, .number = c->number[0]};
	if (c->state != P3_CHANNEL_OPEN)
		return -ENOTCONN;
	if (sizeof p > sizeof c->out - c->left)
		return -EAGAIN;
	if (name) {
		p.name_len = name_len;
		memcpy(p.name, name, name_len);
	}
	p.mac = mac_of(&c->key[0], &p);
	c->number[0]++;
	return queue(c, &p, sizeof p);
}

/* ---- in ---- */

/* Read until in has len bytes.  Return 0, -EAGAIN, or another -errno. */
static int fill(struct p3_channel *c, uint32_t len)
{
	while (c->got < len) {
		ssize_t n = recv(
			fd_of(c), (char *)&c->in + c->got, len - c->got, MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EPIPE;
		c->got += (uint32_t)n;
	}
	c->got = 0;
	return 0;
}

static int take_packet(struct p3_channel *c, struct p3_packet *packet_out)
{
	int rc = fill(c, sizeof c->in.packet);
	struct p3_packet *p = &c->in.packet;
	if (rc)
		return rc;
	if (p->mac != mac_of(&c->key[1], p) || p->number != c->number[1] ||
		p->msg.magic != P3_JOB_MAGIC || p->name_len > sizeof p->name)
		return -EACCES;
	c->number[1]++;
	*packet_out = *p;
	return 1;
}

/* Return 0 at a greeting of this kind for this pair of ranks. */
static int take_greeting(struct p3_channel *c, enum op op)
{
	const struct p3_greeting *g = &c->in.greeting;
	int rc = fill(c, sizeof *g);
	if (rc)
		return rc;
	if (op == HELLO)
		c->from = g->from;
	return g->magic == MAGIC && g->op == op && g->from == c->from && g->to == c->to
		       ? 0
		       : -EACCES;
}

/* Return 0 if the greeting proves that the other end knows the secret. */
static int check(const struct p3_channel *c, enum what what)
{
	struct p3_sipkey right = hash(c, what);
	const uint64_t *proof = c->in.greeting.proof;
	return ((proof[0] ^ right.k[0]) | (proof[1] ^ right.k[1])) == 0 ? 0 : -EACCES;
}

static int open_up(struct p3_channel *c)
{
	c->key[!c->calls] = hash(c, KEY_OF_CALLER);
	c->key[c->calls] = hash(c, KEY_OF_CALLED);
	c->state = P3_CHANNEL_OPEN;
	return 0;
}

static int receive_hello(struct p3_channel *c)
{
	int rc = take_greeting(c, HELLO);
	if (rc)
		return rc;
	memcpy(c->nonce[0], c->in.greeting.nonce, sizeof c->nonce[0]);
	c->state = P3_CHANNEL_ANSWERED;
	rc = greet(c, ANSWER, c->nonce[1], hash(c, PROOF_OF_CALLED));
	return rc ? rc : -EAGAIN;
}

static int receive_answer(struct p3_channel *c)
{
	int rc = take_greeting(c, ANSWER);
	if (rc)
		return rc;
	memcpy(c->nonce[1], c->in.greeting.nonce, sizeof c->nonce[1]);
	rc = check(c, PROOF_OF_CALLED);
	rc = rc ? rc : greet(c, PROOF, NULL, hash(c, PROOF_OF_CALLER));
	return rc ? rc : open_up(c);
}

static int receive_proof(struct p3_channel *c)
{
	int rc = take_greeting(c, PROOF);
	rc = rc ? rc : check(c, PROOF_OF_CALLER);
	return rc ? rc : open_up(c);
}

/* Send HELLO as soon as the socket is connected. */
static int finish_dialing(struct p3_channel *c)
{
	struct pollfd on = {.fd = fd_of(c), .events = POLLOUT};
	int why = 0;
	socklen_t len = sizeof why;
	if (poll(&on, 1, 0) <= 0)
		return -EAGAIN;
	if (getsockopt(on.fd, SOL_SOCKET, SO_ERROR, &why, &len) || why)
		return why ? -why : -EPIPE;
	c->state = P3_CHANNEL_CALLING;
	int rc = greet(c, HELLO, c->nonce[0], (struct p3_sipkey){{0, 0}});
	return rc ? rc : -EAGAIN;
}

int p3_channel_receive(struct p3_channel *c, struct p3_packet *packet_out)
{
	int rc = -EAGAIN;
	if (c->left)
		rc = p3_channel_flush(c);
	if (rc && rc != -EAGAIN)
		return rc;
	switch (c->state) {
	case P3_CHANNEL_DIALING:
		return finish_dialing(c);
	case P3_CHANNEL_CALLING:
		return receive_answer(c);
	case P3_CHANNEL_CALLED:
		return receive_hello(c);
	case P3_CHANNEL_ANSWERED:
		return receive_proof(c);
	case P3_CHANNEL_OPEN:
		return take_packet(c, packet_out);
	default:
		return -EPIPE;
	}
}

/* ---- lives ---- */

void p3_channel_init(struct p3_channel *c)
{
	*c = (struct p3_channel){.from = NONE, .to = NONE};
	p3_set(&c->fd, NONE);
}

static void begin(struct p3_channel *c, int fd, const struct p3_sipkey secret[2],
	enum p3_channel_state state)
{
	p3_channel_init(c);
	c->state = state;
	c->calls = state == P3_CHANNEL_DIALING;
	c->secret = secret;
	c->since_ns = p3_now_ns();
	c->file = p3_fd_file(fd);
	p3_set(&c->fd, (uint32_t)fd);
	/* getrandom() of 16 bytes never returns less.  It fails only while the kernel has
	 * no entropy: then the other end's nonce makes the pair of nonces new. */
	if (getrandom(c->nonce[!c->calls], sizeof c->nonce[0], 0) < 0)
		memcpy(c->nonce[!c->calls], &c->since_ns, sizeof c->since_ns);
}

void p3_channel_call(struct p3_channel *c, int fd, const struct p3_sipkey secret[2],
	uint32_t self, uint32_t other)
{
	begin(c, fd, secret, P3_CHANNEL_DIALING);
	c->from = self;
	c->to = other;
}

void p3_channel_be_called(
	struct p3_channel *c, int fd, const struct p3_sipkey secret[2], uint32_t self)
{
	begin(c, fd, secret, P3_CHANNEL_CALLED);
	c->to = self;
}

bool p3_channel_is_lost(const struct p3_channel *c)
{
	return c->state != P3_CHANNEL_CLOSED && !p3_fd_is(fd_of(c), c->file);
}

void p3_channel_close(struct p3_channel *c)
{
	int fd = fd_of(c);
	bool own = c->state != P3_CHANNEL_CLOSED;
	p3_set(&c->fd, NONE);
	c->state = P3_CHANNEL_CLOSED;
	if (own)
		p3_fd_close_own(fd, c->file);
}
