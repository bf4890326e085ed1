/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * channel - packets between two processes of a job on different hosts, over TCP
 *
 *	caller	--HELLO {ranks, nonce}-->	called
 *		<--ANSWER {nonce, proof}--
 *		--PROOF {proof}-->
 *		<--packets {message, number, MAC}-->
 *
 * Both ends prove that they know the job's secret: a proof is a MAC of both nonces, both
 * ranks and the end that proves.  Each packet has a MAC under a key for its direction,
 * which is made of the secret, the ranks and the nonces; so packets of other connections
 * and repeated ones have a wrong MAC.  So a program without the secret can send none.
 * Packets are not encrypted, and a program that controls the network can break
 * connections.
 *
 * The sockets do not block.  One thread at a time uses a channel; its state is in struct
 * p3_channel, and no memory is allocated.
 */
#ifndef P3_LIB_DOMAIN_CHANNEL_H
#define P3_LIB_DOMAIN_CHANNEL_H

#include "nic/nic.h"
#include "shm/siphash.h"
#include "shm/atomics.h"
#include "shm/fd.h"
#include "shm/job.h"

#define P3_CHANNEL_QUEUE 2 /* packets that wait for room in the socket */

/* A packet.  Unused bytes are zero. */
struct p3_packet {
	struct p3_job_msg msg;
	uint32_t name_len; /* BORN: the name of the sender's endpoint */
	uint32_t taken;    /* packets that the sender has taken (session.h) */
	unsigned char name[P3_FAR_NAME];
	uint64_t number; /* of the packet in its direction, from 0 */
	uint64_t mac;    /* of all bytes before */
};

struct p3_greeting {
	uint32_t magic, op;
	uint32_t from, to; /* ranks of the caller and of the called, in all three kinds */
	unsigned char nonce[16];
	uint64_t proof[2];
};

enum p3_channel_state {
	P3_CHANNEL_CLOSED,
	P3_CHANNEL_DIALING,  /* caller: the socket is being connected */
	P3_CHANNEL_CALLING,  /* caller: HELLO was sent, ANSWER is awaited */
	P3_CHANNEL_CALLED,   /* called: HELLO is awaited */
	P3_CHANNEL_ANSWERED, /* called: ANSWER was sent, PROOF is awaited */
	P3_CHANNEL_OPEN      /* both ends are authenticated */
};

struct p3_channel {
	p3_a32 fd;
	p3_fd_id file;
	enum p3_channel_state state;
	uint32_t from, to;              /* ranks of caller and called */
	bool calls;                     /* this end is the caller */
	uint64_t since_ns;              /* time of its beginning */
	const struct p3_sipkey *secret; /* two keys */
	unsigned char nonce[2][16];     /* of the caller, of the called */
	struct p3_sipkey key[2];        /* of packets sent, of packets received */
	uint64_t number[2];             /* of the next packet sent, received */
	uint32_t taken; /* written to the packets that are sent from now on */
	uint32_t got;   /* bytes that in has */
	union {
		struct p3_packet packet;
		struct p3_greeting greeting;
	} in;
	uint32_t left; /* bytes in out that the socket has not taken */
	unsigned char out[P3_CHANNEL_QUEUE * sizeof(struct p3_packet)];
};

void p3_channel_init(struct p3_channel *c);

/* Begin on a socket that is being connected, or that was accepted.  The descriptor
 * becomes the channel's. */
void p3_channel_call(struct p3_channel *c, int fd, const struct p3_sipkey secret[2],
	uint32_t self, uint32_t other);
void p3_channel_be_called(
	struct p3_channel *c, int fd, const struct p3_sipkey secret[2], uint32_t self);

/* Return the rank of the other end; it is authenticated once the channel is open. */
static inline uint32_t p3_channel_other(const struct p3_channel *c)
{
	return c->calls ? c->to : c->from;
}

static inline bool p3_channel_is_open(const struct p3_channel *c)
{
	return c->state == P3_CHANNEL_OPEN;
}

/*
 * Receive.  Return 1 and a packet; 0 if the channel has just
 * opened; -EAGAIN if no more has come; -EACCES if the other end is not of the job; -EPIPE
 * at the end of file; or another -errno: the connection is broken.
 */
int p3_channel_receive(struct p3_channel *c, struct p3_packet *packet_out);

/* Send a packet, or queue it.  name may be NULL.  Return 0, -EAGAIN if the queue is full,
 * or another -errno. */
int p3_channel_send(struct p3_channel *c, const struct p3_job_msg *msg,
	const unsigned char *name, uint32_t name_len);
/* Send what is queued, as far as there is room.  Return 0 or -errno. */
int p3_channel_flush(struct p3_channel *c);

/* Return true if the program has closed the descriptor. */
bool p3_channel_is_lost(const struct p3_channel *c);

/* Close the descriptor, unless the program has. */
void p3_channel_close(struct p3_channel *c);

#endif
