/* SPDX-License-Identifier: BSD-3-Clause */
/* Authentication of both ends of a connection. */
#include "lib/domain/call.h"
#include "shm/park.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAGIC 0x33504403u /* the low byte is the version */
#define NONE  0xffffffffu

enum op { HELLO = 1, ANSWER, PROOF };

/* What a proof or a key is the hash of. */
struct label {
	uint64_t what; /* of the words below */
	uint32_t from, to;
	unsigned char nonce[2][16];
};

enum what { PROOF_OF_CALLED = 1, PROOF_OF_CALLER, KEY_OF_CALLER, KEY_OF_CALLED };

static int fd_of(const struct p3_call *c)
{
	return (int)p3_get(&c->fd);
}

static struct p3_mac_key hash(const struct p3_call *c, enum what what)
{
	struct label l = {.what = what, .from = c->from, .to = c->to};
	memcpy(l.nonce, c->nonce, sizeof l.nonce);
	return p3_mac_hash(c->secret, &l, sizeof l);
}

/* Send a greeting: a new socket has room for it. */
static int greet(struct p3_call *c, enum op op, const unsigned char *nonce,
	struct p3_mac_key proof)
{
	struct p3_greeting g = {
		.magic = MAGIC, .op = op, .from = c->from, .to = c->to, .proof = proof};
	if (nonce)
		memcpy(g.nonce, nonce, sizeof g.nonce);
	ssize_t n = send(fd_of(c), &g, sizeof g, MSG_NOSIGNAL | MSG_DONTWAIT);
	return n == (ssize_t)sizeof g ? 0 : n < 0 && errno != EAGAIN ? -errno : -EPIPE;
}

/* Read until the next greeting is whole.  Return 0, -EAGAIN, or another -errno. */
static int fill(struct p3_call *c)
{
	while (c->got < sizeof c->in) {
		ssize_t n = recv(fd_of(c), (char *)&c->in + c->got, sizeof c->in - c->got,
			MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EPIPE;
		c->got += (uint32_t)n;
	}
	c->got = 0;
	return 0;
}

/* Return 0 at a greeting of this kind for this pair of ranks. */
static int take_greeting(struct p3_call *c, enum op op)
{
	const struct p3_greeting *g = &c->in;
	int rc = fill(c);
	if (rc)
		return rc;
	if (op == HELLO)
		c->from = g->from;
	return g->magic == MAGIC && g->op == op && g->from == c->from && g->to == c->to
		       ? 0
		       : -EACCES;
}

/* Return 0 if the greeting proves that the other end knows the secret. */
static int check(const struct p3_call *c, enum what what)
{
	struct p3_mac_key right = hash(c, what);
	return p3_mac_equal(&right, &c->in.proof) ? 0 : -EACCES;
}

static int receive_hello(struct p3_call *c)
{
	int rc = take_greeting(c, HELLO);
	if (rc)
		return rc;
	memcpy(c->nonce[0], c->in.nonce, sizeof c->nonce[0]);
	c->state = P3_CALL_ANSWERED;
	rc = greet(c, ANSWER, c->nonce[1], hash(c, PROOF_OF_CALLED));
	return rc ? rc : -EAGAIN;
}

static int receive_answer(struct p3_call *c)
{
	int rc = take_greeting(c, ANSWER);
	if (rc)
		return rc;
	memcpy(c->nonce[1], c->in.nonce, sizeof c->nonce[1]);
	rc = check(c, PROOF_OF_CALLED);
	return rc ? rc : greet(c, PROOF, NULL, hash(c, PROOF_OF_CALLER));
}

static int receive_proof(struct p3_call *c)
{
	int rc = take_greeting(c, PROOF);
	return rc ? rc : check(c, PROOF_OF_CALLER);
}

/* Send HELLO as soon as the socket is connected. */
static int finish_dialing(struct p3_call *c)
{
	struct pollfd on = {.fd = fd_of(c), .events = POLLOUT};
	int why = 0;
	socklen_t len = sizeof why;
	if (poll(&on, 1, 0) <= 0)
		return -EAGAIN;
	if (getsockopt(on.fd, SOL_SOCKET, SO_ERROR, &why, &len) || why)
		return why ? -why : -EPIPE;
	c->state = P3_CALL_CALLING;
	int rc = greet(c, HELLO, c->nonce[0], (struct p3_mac_key){{0}});
	return rc ? rc : -EAGAIN;
}

int p3_call_go_on(struct p3_call *c)
{
	int rc = -EPIPE;
	switch (c->state) {
	case P3_CALL_DIALING:
		return finish_dialing(c);
	case P3_CALL_CALLED:
		rc = receive_hello(c);
		return rc == -EAGAIN && c->state == P3_CALL_ANSWERED ? p3_call_go_on(c)
								     : rc;
	case P3_CALL_CALLING:
		rc = receive_answer(c);
		break;
	case P3_CALL_ANSWERED:
		rc = receive_proof(c);
		break;
	default:
		return -EPIPE;
	}
	if (!rc)
		c->state = P3_CALL_OPEN;
	return rc;
}

/* ---- lives ---- */

void p3_call_init(struct p3_call *c)
{
	*c = (struct p3_call){.from = NONE, .to = NONE};
	p3_set(&c->fd, NONE);
}

static void begin(struct p3_call *c, int fd, const struct p3_mac_key *secret,
	enum p3_call_state state)
{
	p3_call_init(c);
	c->state = state;
	c->calls = state == P3_CALL_DIALING;
	c->secret = secret;
	c->since_ns = p3_now_ns();
	c->file = p3_fd_file(fd);
	p3_set(&c->fd, (uint32_t)fd);
	/* getrandom() of 16 bytes never returns less.  It fails only while the kernel has
	 * no entropy: then the other end's nonce makes the pair of nonces new. */
	if (getrandom(c->nonce[!c->calls], sizeof c->nonce[0], 0) < 0)
		memcpy(c->nonce[!c->calls], &c->since_ns, sizeof c->since_ns);
}

void p3_call_begin(struct p3_call *c, int fd, const struct p3_mac_key *secret,
	uint32_t self, uint32_t other)
{
	begin(c, fd, secret, P3_CALL_DIALING);
	c->from = self;
	c->to = other;
}

void p3_call_accept(
	struct p3_call *c, int fd, const struct p3_mac_key *secret, uint32_t self)
{
	begin(c, fd, secret, P3_CALL_CALLED);
	c->to = self;
}

struct p3_connection p3_call_connection(const struct p3_call *c)
{
	struct p3_connection it = {.fd = fd_of(c), .file = c->file};
	it.key[!c->calls] = hash(c, KEY_OF_CALLER);
	it.key[c->calls] = hash(c, KEY_OF_CALLED);
	return it;
}

struct p3_connection p3_call_take(struct p3_call *c)
{
	struct p3_connection it = p3_call_connection(c);
	p3_call_init(c);
	return it;
}

bool p3_call_is_lost(const struct p3_call *c)
{
	return c->state != P3_CALL_NONE && !p3_fd_is(fd_of(c), c->file);
}

void p3_call_close(struct p3_call *c)
{
	if (c->state != P3_CALL_NONE)
		p3_fd_close_own(fd_of(c), c->file);
	p3_call_init(c);
}
