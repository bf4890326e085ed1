/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * streams - the connections of this process with those of other hosts
 *
 * A stream is as old as two processes of a job on different hosts.  It has one TCP
 * connection at a time, whose ends have authenticated each other before it was given.
 * The connection carries packets of the domains' threads (births, ends, barriers) and
 * frames of the NICs, packets first.
 *
 *	domain's thread	--give--> the streams have the connection --news: broken-->
 *			--post--> packet		--news: packet-->
 *
 * The lease holder alone reads and writes a connection that was given, and the domain's
 * thread alone closes it, once the streams have reported it as broken.  To break it, that
 * thread calls shutdown().  While no NIC runs, the kernel keeps what comes.
 *
 * Each packet comes once and in order over any number of connections.  A process keeps
 * the packets that the other one has not acknowledged.  On a new connection both ends
 * first tell how many packets they have taken (TAKEN); then the other end drops these,
 * and sends the rest.  No packet of an earlier connection can come after that, since both
 * ends have left it.  Each packet acknowledges those of the other direction; a TAKEN does
 * so when P3_STREAM_ACK have come and none went, and at once after a LEAVE.
 *
 * All records of a connection are numbered from 0, and have tags under a key for their
 * direction (nic/far/records.h), which is made of the job's secret, the ranks and the
 * nonces of both ends (lib/domain/call.c).
 *
 * Memory ordering, between the domain's thread (D) and the lease holder (L):
 *	STREAM.1  publish: D writes descriptor and keys -> L takes the order
 *	STREAM.2  publish: D writes a packet -> L sends it
 *	STREAM.3  publish: L has sent a packet, and its acknowledgement has come -> D
 *		  writes the next one to its place
 *	STREAM.4  publish: L writes news -> D reads it
 *	STREAM.5  publish: D has read news -> L writes the next one to its place
 *	STREAM.6  publish: L has written the news of a look -> D sees that it is over
 * D writes an order, and then the eventfd of L; L writes news, and then the eventfd of D:
 * so neither sleeps with work (ASK.1 has the argument).
 *
 * give, post, owes, next, look and have_looked are for the domain's thread.  None of the
 * functions waits.
 */
#ifndef P3_NIC_STREAMS_H
#define P3_NIC_STREAMS_H

#include "nic/far/mac.h"
#include "nic/nic.h"
#include "shm/fd.h"
#include "shm/job.h"

#define P3_STREAM_KEPT 16u /* packets that the other end has not acknowledged */
#define P3_STREAM_ACK  4u

/* A packet.  Unused bytes are zero. */
struct p3_packet {
	struct p3_job_msg msg;
	uint32_t name_len; /* BORN: the name of the sender's endpoint */
	uint32_t taken;    /* packets that the sender has taken */
	unsigned char name[P3_FAR_NAME];
};

/* An authenticated connection, which does not block. */
struct p3_connection {
	int fd; /* -1: none */
	p3_fd_id file;
	struct p3_mac_key key[2]; /* of records sent, of records received */
};

struct p3_stream_news {
	uint32_t rank;
	int broken; /* 0: packet has come; else the -errno of the break */
	struct p3_packet packet;
};

/* Make the streams of a process of a job of size ranks, after p3_mac_load() and before
 * its first NIC; conf->streams of all its NICs.
 * Return NULL, with errno, if there is no memory or no descriptor. */
struct p3_endpoint *p3_streams_new(uint32_t size);
/* After the last NIC, if the process goes on. */
void p3_streams_free(struct p3_endpoint *e);
/* In a forked child: close the parent's descriptors, but not the connections. */
void p3_streams_forget(struct p3_endpoint *e);

/* Give a connection.  The stream has none: its last one was reported as broken. */
void p3_stream_give(struct p3_endpoint *e, uint32_t rank, const struct p3_connection *c);
/* Send a packet, now or over a later connection.  name may be NULL.  Return 0, or -EAGAIN
 * if P3_STREAM_KEPT are not acknowledged. */
int p3_stream_post(struct p3_endpoint *e, uint32_t rank, const struct p3_job_msg *msg,
	const unsigned char *name, uint32_t name_len);
/* Return true if the other end has not acknowledged all packets. */
bool p3_stream_owes(struct p3_endpoint *e, uint32_t rank);
/* Take the next news.  Return false if there is none. */
bool p3_streams_next(struct p3_endpoint *e, struct p3_stream_news *out);
/* Let the lease holder read all that has come by now.  Return the number of this look,
 * which is not 0. */
uint32_t p3_streams_look(struct p3_endpoint *e);
/* Return true if that look is over: all packets of that time are among the news. */
bool p3_streams_have_looked(struct p3_endpoint *e, uint32_t look);
/* Return true if the descriptors of the streams still name their files. */
bool p3_streams_own(const struct p3_endpoint *e);
/* Return the eventfd that is written when there is news, and when a look is over. */
int p3_streams_fd(const struct p3_endpoint *e);

/* Send one packet over a connection that was not given to the streams.  Return 0 or
 * -errno. */
int p3_stream_say(const struct p3_connection *c, const struct p3_job_msg *msg);
/* Read the first packet of such a connection, and leave it in the socket.  Return 0,
 * -EAGAIN, or another -errno: there is none. */
int p3_stream_hear(const struct p3_connection *c, struct p3_job_msg *msg_out);

#endif
