/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control - the packets of a stream (nic/streams.h), and the news of all streams
 */
#ifndef P3_NIC_FAR_CONTROL_H
#define P3_NIC_FAR_CONTROL_H

#include "nic/streams.h"
#include "shm/atomics.h"

/* A packet as it goes: behind the head of a record (records.h). */
struct p3_control_record {
	uint64_t head;
	struct p3_packet packet;
};

struct p3_control {
	/* The domain's thread writes next, and the places from next on. */
	p3_a32 next; /* packets that were posted (STREAM.2) */
	/* The lease holder writes all others. */
	p3_a32 acked;        /* packets that the other end has taken (STREAM.3) */
	uint32_t given;      /* packets that were written to a connection */
	uint32_t taken;      /* packets of the other end that have come */
	uint32_t taken_sent; /* value of taken that the other end was last told */
	bool open;           /* there is a connection */
	bool told;           /* the first TAKEN was written to it */
	bool resumed;        /* that of the other end has come */
	bool hurries;        /* the other end waits for an acknowledgement */
	uint32_t left;       /* bytes of out that were not sent */
	uint64_t number[2];  /* of the next packet sent, received */
	struct p3_sipkey key[2];
	struct p3_control_record out;
	struct p3_packet in;
	struct p3_packet kept[P3_STREAM_KEPT];
};

/* A ring from the lease holder to the domain's thread.  Beside some packets it has room
 * for two news of each rank: a packet that has begun to come when there was room, and the
 * break of its connection. */
struct p3_inbox {
	p3_a32 head, tail; /* written by the domain's thread, by the lease holder */
	uint32_t mask, spare;
	struct p3_stream_news *ring;
};

/* Begin and end with a connection. */
void p3_control_open(struct p3_control *c, const struct p3_sipkey key[2]);
void p3_control_close(struct p3_control *c);

/* Return true if something is to be sent. */
bool p3_control_is_due(const struct p3_control *c);
/* Return the number of bytes to send next, and these. */
uint32_t p3_control_out(struct p3_control *c, const char **bytes_out);
static inline void p3_control_sent(struct p3_control *c, uint32_t n)
{
	c->left -= n;
}
/* Process the packet in c->in.  Return 1 if it is for the domain's thread, 0 if not, or
 * -EPROTO. */
int p3_control_take(struct p3_control *c);

int p3_control_post(struct p3_control *c, const struct p3_job_msg *msg,
	const unsigned char *name, uint32_t name_len);

int p3_inbox_open(struct p3_inbox *box, uint32_t ranks);
/* Return true if there is room for a packet that begins to come. */
bool p3_inbox_has_room(const struct p3_inbox *box);
void p3_inbox_put(
	struct p3_inbox *box, uint32_t rank, int broken, const struct p3_packet *p);
bool p3_inbox_next(struct p3_inbox *box, struct p3_stream_news *out);

#endif
