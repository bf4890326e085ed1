/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * call - a TCP connection to a process of another host, until both ends are authenticated
 *
 *	caller	--HELLO {ranks, nonce}-->	called
 *		<--ANSWER {nonce, proof}--
 *		--PROOF {proof}-->
 *
 * Each greeting has the size of struct p3_greeting, and no byte behind the next one is
 * read.  Both ends prove that they know the job's secret: a proof is a keyed hash of
 * both nonces, both ranks and the end that proves.  So a recorded proof is void in every
 * later call, a HELLO that is repeated gets an ANSWER only, and no end can be made to
 * prove what another call needs.  The keys of what follows are made of the same words,
 * one for each direction.  The connection then goes to the streams (nic/streams.h).
 *
 * Nothing is encrypted, and a program that controls the network can break connections.
 *
 * The sockets do not block.  One thread at a time uses a call; its state is in struct
 * p3_call, and no memory is allocated.
 */
#ifndef P3_LIB_DOMAIN_CALL_H
#define P3_LIB_DOMAIN_CALL_H

#include "nic/streams.h"
#include "shm/atomics.h"
#include "shm/fd.h"

struct p3_greeting {
	uint32_t magic, op;
	uint32_t from, to; /* ranks of the caller and of the called, in all three kinds */
	unsigned char nonce[16];
	struct p3_mac_key proof;
};

enum p3_call_state {
	P3_CALL_NONE,
	P3_CALL_DIALING,  /* caller: the socket is being connected */
	P3_CALL_CALLING,  /* caller: HELLO was sent, ANSWER is awaited */
	P3_CALL_CALLED,   /* called: HELLO is awaited */
	P3_CALL_ANSWERED, /* called: ANSWER was sent, PROOF is awaited */
	P3_CALL_OPEN      /* both ends are authenticated */
};

struct p3_call {
	p3_a32 fd;
	p3_fd_id file;
	enum p3_call_state state;
	uint32_t from, to; /* ranks of caller and called */
	bool calls;        /* this end is the caller */
	uint32_t got;      /* bytes that in has */
	uint64_t since_ns; /* time of its beginning */
	const struct p3_mac_key *secret;
	unsigned char nonce[2][16]; /* of the caller, of the called */
	struct p3_greeting in;
};

void p3_call_init(struct p3_call *c);

/* Begin on a socket that is being connected, or that was accepted.  The descriptor
 * becomes the call's. */
void p3_call_begin(struct p3_call *c, int fd, const struct p3_mac_key *secret,
	uint32_t self, uint32_t other);
void p3_call_accept(
	struct p3_call *c, int fd, const struct p3_mac_key *secret, uint32_t self);

/* Return the rank of the other end; it is authenticated once the call is open. */
static inline uint32_t p3_call_other(const struct p3_call *c)
{
	return c->calls ? c->to : c->from;
}

/* Go on.  Return 0 if the call is open; -EAGAIN if it needs more of the other end;
 * -EACCES if that is not of the job; -EPIPE at the end of file; or another -errno: the
 * connection is broken. */
int p3_call_go_on(struct p3_call *c);

/* Return the connection of an open call; take it: the call is over then. */
struct p3_connection p3_call_connection(const struct p3_call *c);
struct p3_connection p3_call_take(struct p3_call *c);

/* Return true if the program has closed the descriptor. */
bool p3_call_is_lost(const struct p3_call *c);

/* Close the descriptor, unless the program has. */
void p3_call_close(struct p3_call *c);

#endif
