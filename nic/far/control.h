/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control - the packets of a stream (nic/streams.h), and the news of all streams
 */
#ifndef P3_NIC_FAR_CONTROL_H
#define P3_NIC_FAR_CONTROL_H

#include "nic/streams.h"
#include "shm/atomics.h"

/* The head of each record of a connection (records.h). */
struct p3_record_head {
	struct p3_mac_tag tag; /* of what follows, with the number of the record */
	uint64_t is;           /* its kind and length: p3_record_word() */
};

/* A record to be sent.  It lies in its frame's buffer, in its read, or in p3_control. */
struct p3_record_item {
	struct p3_record_item *next;
	struct p3_record_head *head; /* the bytes follow it */
	uint64_t sealed;             /* 1 + the number that its tag is for */
	uint32_t len;                /* with the head; 0: all were sent */
	bool failed;
	enum { P3_ITEM_FRAME, P3_ITEM_ASK, P3_ITEM_PACKET } kind;
};

/* A packet as it goes. */
struct p3_control_record {
	struct p3_record_head head;
	struct p3_packet packet;
};

struct p3_control {
	/* The domain's thread writes next, and the places from next on. */
	p3_a32 next; /* packets that were posted (STREAM.2) */
	/* The lease holder writes all others. */
	p3_a32 acked;               /* packets that the other end has taken (STREAM.3) */
	uint32_t given;             /* packets that were written to a connection */
	uint32_t taken;             /* packets of the other end that have come */
	uint32_t taken_sent;        /* value of taken that the other end was last told */
	bool open;                  /* there is a connection */
	bool told;                  /* the first TAKEN was written to it */
	bool resumed;               /* that of the other end has come */
	bool hurries;               /* the other end waits for an acknowledgement */
	struct p3_record_item item; /* of out; len is not 0 until all of it was sent */
	struct p3_control_record out, in;
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
void p3_control_open(struct p3_control *c);
void p3_control_close(struct p3_control *c);

/* Return true if the next packet is to be sent. */
bool p3_control_is_due(const struct p3_control *c);
/* Write that packet to c->out, and its item. */
void p3_control_write(struct p3_control *c);
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
