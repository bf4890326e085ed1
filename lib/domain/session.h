/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session - the packets between two processes of a job on different hosts, each once and
 * in order, over any number of connections
 *
 *	send	keep the packet, with the next number, and give it to the channel
 *	receive	take the next packet of the other end
 *	open	on a channel that has just opened, both ends tell how many packets they
 *		have taken (TAKEN); then the other end drops these, and gives the rest
 *		to the new channel
 *
 * An end tells what it has taken only when it has closed the earlier connection, so no
 * packet of that one can come later.  The packets that are sent again have not been
 * taken, and all others have.  A channel neither loses nor doubles packets while it is
 * open, so they need no numbers of their own.  Each packet acknowledges those of the
 * other direction; a TAKEN does so when P3_SESSION_ACK have come and none went.
 *
 * The session is as old as the two processes.  One thread at a time uses it, with the
 * channel that is open now.
 */
#ifndef P3_LIB_DOMAIN_SESSION_H
#define P3_LIB_DOMAIN_SESSION_H

#include "lib/domain/channel.h"

#define P3_SESSION_KEPT 16u /* packets that the other end has not acknowledged */
#define P3_SESSION_ACK  4u

struct p3_kept {
	struct p3_job_msg msg;
	uint32_t name_len;
	unsigned char name[P3_FAR_NAME];
};

struct p3_session {
	bool begun;          /* a channel has been open */
	bool resumed;        /* the other end's first TAKEN has come over this channel */
	uint32_t acked;      /* packets that the other end has taken */
	uint32_t given;      /* packets that were given to a channel */
	uint32_t next;       /* packets that were sent; number of the next one */
	uint32_t taken;      /* packets of the other end that this one has taken */
	uint32_t taken_sent; /* value of taken that the other end was last told */
	struct p3_kept kept[P3_SESSION_KEPT];
};

/* Begin, or go on, over a channel that has just opened. */
void p3_session_open(struct p3_session *s, struct p3_channel *c);

/* Send a packet now, or when a channel is open.  name may be NULL.  Return 0, or -EAGAIN
 * if too many are kept. */
int p3_session_send(struct p3_session *s, struct p3_channel *c,
	const struct p3_job_msg *msg, const unsigned char *name, uint32_t name_len);

/* Tell the other end now which packets this one has taken, if it does not know. */
void p3_session_confirm(struct p3_session *s, struct p3_channel *c);

/* Give the channel the packets for which it had no room. */
void p3_session_push(struct p3_session *s, struct p3_channel *c);

/* Do as p3_channel_receive(), without the packets of the session itself.  Return -EPROTO
 * also if the other end acknowledges packets that were not sent. */
int p3_session_receive(
	struct p3_session *s, struct p3_channel *c, struct p3_packet *packet_out);

#endif
