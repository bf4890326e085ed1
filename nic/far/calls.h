/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * calls - authenticated TCP connections between the nodes of a job
 *
 *	caller	--HELLO {nodes, nonce}-->		called
 *		<--ANSWER {nodes, nonce, proof}--
 *		--PROOF {nodes, proof}-->
 *
 * Each message has the size of struct p3_greeting.  A proof is a MAC of the end that
 * proves, both nodes and both nonces, under the prover's key of the pair of lives
 * (struct p3_far_keys).
 *
 * No other program gets in.  The keys are made of the job's secret, so only the two nodes
 * can make proofs.  The proof of each end covers a nonce of the other one, so a recorded
 * proof is void in every later call, and a HELLO that is repeated gets an ANSWER only.
 * The MAC names the proving end and the order of the nodes, so no end can be made to
 * prove what another call needs.  The keys serve for nothing else: no frame is a proof.
 *
 * A stranger costs little.  An accepted socket takes one of P3_CALLS_PLACES places: a
 * descriptor, a time, and the bytes of one greeting.  Nothing is allocated for it, and no
 * byte behind the next greeting is read.  A place has P3_CALL_NS.  When a call finds no
 * free place, the oldest one without a HELLO is closed for it, or else the oldest one
 * that has had P3_CALL_GRACE_NS, enough for a peer to answer.  Otherwise further calls
 * wait in the kernel.  Callers from hosts outside the job are turned away at once.  A
 * caller waits for P3_CALL_NS, too, since another program may have the port of a peer.
 *
 * No function waits.  The lease holder calls them, except open and close: the thread that
 * starts or stops the NIC.  The state is in struct p3_calls, and in a struct p3_call for
 * each connection that is not authenticated yet.
 */
#ifndef P3_NIC_FAR_CALLS_H
#define P3_NIC_FAR_CALLS_H

#include "nic/far/endpoint.h"
#include "shm/fd.h"

#include <netinet/in.h>

#define P3_CALLS_PLACES  64u
#define P3_CALL_NS       UINT64_C(5000000000)
#define P3_CALL_GRACE_NS UINT64_C(20000000)
#define P3_CALL_TEXT     56u /* bytes of an address as text */

union p3_call_address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

struct p3_greeting {
	uint32_t magic, kind;
	uint32_t from, to; /* the caller and the called, in all three kinds */
	unsigned char nonce[16];
	uint64_t proof[2];
};

/* A descriptor of the set of epoll; the program may have closed it. */
struct p3_socket {
	int fd; /* -1: none */
	p3_fd_id file;
};

enum p3_call_state {
	P3_CALL_NONE,
	P3_CALL_DIALING, /* caller: the socket is being connected */
	P3_CALL_CALLING, /* caller: HELLO was sent */
	P3_CALL_CALLED,  /* called: HELLO is awaited */
	P3_CALL_HELD,    /* called: HELLO has come, and cannot be answered yet */
	P3_CALL_ANSWERED /* called: ANSWER was sent */
};

/* A connection whose other end is not authenticated yet. */
struct p3_call {
	enum p3_call_state state;
	struct p3_socket socket;
	uint32_t from, to; /* the caller, as it says, and the called */
	uint32_t got;      /* bytes of in */
	uint64_t since_ns;
	unsigned char nonce[2][16]; /* of the caller, of the called */
	struct p3_greeting in;
	union p3_call_address other;
};

/* Return the keys of a peer, or NULL; for an ANSWER NULL also if that shall wait. */
typedef const struct p3_far_keys *p3_call_keys(void *arg, uint32_t node, bool answer);

struct p3_calls {
	bool (*is_of_job)(void *arg, const void *address); /* those of p3_far_conf */
	void *is_of_job_arg;
	uint32_t timeout_s;
	uint32_t node;
	int set; /* of epoll */
	struct p3_socket listener;
	socklen_t len; /* of all addresses */
	union p3_call_address own;
	p3_call_keys *keys_of;
	void *keys_arg;
	uint32_t used;   /* places */
	bool accept_due; /* callers wait in the kernel for a place or a descriptor */
	bool said_stranger, said_silent, said_flood, said_no_fds;
	struct p3_call place[P3_CALLS_PLACES];
};

/* What an event of the set is about: one of these, and a number. */
enum p3_call_tag { P3_CALL_LISTENER = 1, P3_CALL_PLACE, P3_CALL_PEER };

static inline uint64_t p3_call_tag(enum p3_call_tag what, uint32_t number)
{
	return (uint64_t)what << 32 | number;
}

/* Listen at conf->address.  Return 0 or -errno. */
int p3_calls_open(struct p3_calls *cs, const struct p3_far_conf *conf, uint32_t node,
	int set, p3_call_keys *keys_of, void *arg);
void p3_calls_close(struct p3_calls *cs);

/* Accept calls while there are places for them. */
void p3_calls_accept(struct p3_calls *cs, uint64_t now);
/* Go on with a place for which there is an event.  Return true if its caller is
 * authenticated, as place->from: then take its socket. */
bool p3_calls_answer(struct p3_calls *cs, struct p3_call *place);
struct p3_socket p3_calls_take(struct p3_calls *cs, struct p3_call *place);
/* Answer held calls that can be answered by now, end those whose time is over, and accept
 * those that had to wait. */
void p3_calls_check(struct p3_calls *cs, uint64_t now);

/* Call a peer; its number goes with the events.  Return 0 or -errno. */
int p3_call_begin(struct p3_calls *cs, struct p3_call *c, uint32_t node,
	const union p3_call_address *to);
/* Go on.  Return 0 if the called is authenticated: then take the socket; -EAGAIN; or
 * another -errno: then end the call. */
int p3_call_go_on(struct p3_call *c, const struct p3_far_keys *keys);
struct p3_socket p3_call_take(struct p3_call *c);
/* Return true if a call began ns ago. */
bool p3_call_is_over(const struct p3_call *c, uint64_t now, uint64_t ns);
void p3_call_end(struct p3_calls *cs, struct p3_call *c);

/* Close a socket of the set; the other end learns of it also if a forked child has the
 * socket, too. */
void p3_call_hang_up(struct p3_calls *cs, struct p3_socket s);
/* Change the events of the set for a socket, in the terms of epoll_ctl. */
int p3_call_watch(struct p3_calls *cs, int op, int fd, uint32_t events, uint64_t tag);
void p3_call_print(const union p3_call_address *a, char text[P3_CALL_TEXT]);

#endif
