/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * records - what the connection of a stream (nic/streams.h) carries
 *
 * A connection carries records, each behind a head of 24 bytes:
 *
 *	CONTROL	a packet (control.c)
 *	FRAME	a frame; its first words, which belong to the medium, are the head
 *	ASK	key, offset and length of a read
 *	BYTES	a slice, of 64 KiB at most, of the first asked read that is not over
 *	FAILED	that read fails
 *
 * A head begins with the tag of the rest of the record (mac.h), of which the number is
 * that of the record on its connection.  So a record that is changed, repeated, left out,
 * or of another connection has a wrong tag.  It breaks the connection, as does a head
 * that cannot be, before anybody uses a byte of what follows its head.  The tag of BYTES
 * is of the head only: the program may change the bytes while they go.
 *
 * A record has its number when its first byte goes.  One that was made ready, and was not
 * sent since the socket had no room, is made ready again.
 *
 * Packets go first: behind the record that has begun, and what the kernel has.
 *
 * Order and ownership.  A buffer to send lies in the list of its connection until the
 * kernel has all its bytes (SENT), or the connection ends (FAILED).  The kernel may lose
 * what it has when a connection breaks; link.c sends it again.  A posted buffer is taken
 * when a frame's head has come, and goes back to the list if the connection ends.  While
 * none is posted, frames wait in the kernel.
 *
 * Reads of one node are served in their order, and each slice behind the one before: the
 * kernel copies a slice's bytes while this node sends them, so bytes that go later are of
 * a later moment (FAR.2).  Frames go before the next slices.  The owner looks the key up
 * for each slice.  If a region is recalled of which a slice is half sent (uses), its
 * connection must be ended, since the rest cannot be sent any more.
 *
 * Bytes are read into one stage for all connections, and copied to their places, but the
 * rest of a long record is read into its place.  The lease holder calls all functions;
 * none waits, or allocates.
 */
#ifndef P3_NIC_FAR_RECORDS_H
#define P3_NIC_FAR_RECORDS_H

#include "nic/far/endpoint.h"
#include "nic/streams.h"
#include "shm/atomics.h"

#define P3_RECORD_READS   16u    /* of a connection, in each direction */
#define P3_RECORD_STAGE   65536u /* bytes that a look takes of a connection */
#define P3_RECORD_BUCKETS 256u   /* of regions */

enum p3_record {
	P3_RECORD_FRAME = 1,
	P3_RECORD_ASK,
	P3_RECORD_BYTES,
	P3_RECORD_FAILED,
	P3_RECORD_CONTROL
};

static inline uint64_t p3_record_word(enum p3_record what, uint32_t len)
{
	return (uint64_t)what << 32 | len;
}

/* The head of each record of a connection. */
struct p3_record_head {
	struct p3_mac_tag tag; /* of what follows, with the number of the record */
	uint64_t is;           /* its kind and length: p3_record_word() */
};

/* A record to be sent.  It lies in the operation of its frame or read, or in control. */
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
	bool told;                  /* the first TAKEN was written, or there is no
				     * connection */
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

/* Begin with a connection, or with none. */
void p3_control_begin(struct p3_control *c, bool connected);

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

/* The words of a read that is asked. */
struct p3_record_ask {
	uint64_t key, from, len;
};

struct p3_record_asked {
	struct p3_record_head head;
	struct p3_record_ask ask;
};

struct p3_record_question {
	struct p3_record_item item;
	struct p3_record_question *later; /* the next one that awaits bytes */
	struct p3_record_asked asked;
};

/* The state of a connection. */
struct p3_records {
	uint32_t node; /* the peer */
	struct p3_control control;
	/* The other members begin with each connection. */
	int fd;
	uint64_t read; /* bytes that came */
	/* Out: items, of whose first one some bytes were sent; and a slice of which some
	 * were. */
	uint32_t sent;
	struct p3_record_item *first, **last;
	uint32_t nasks, ask; /* number of the peer's reads, and the first of them */
	uint32_t slice;      /* bytes of the slice with its head; 0: there is none */
	uint32_t slice_sent;
	struct p3_record_head slice_head;
	struct p3_far_region *region; /* of the slice; NULL: its read fails */
	struct p3_mac mac_out, mac_in;
	/* In: a head, of which got bytes have come, or a record, of whose bytes behind
	 * the head left have not come. */
	uint32_t got, left;
	struct p3_record_head head;
	char *to;
	struct p3_record_head *place; /* of the head, and behind bytes after it, which the
				       * tag is for; NULL: it was checked */
	uint32_t behind;
	struct p3_far_buffer *filling; /* of the frame that comes */
	struct p3_record_asked asked;  /* the question that comes */
	uint32_t nreads;               /* this node's reads, a list: */
	struct p3_record_question *reads, **last_read;
	uint64_t have; /* bytes of the first one that have come */
	struct p3_record_ask asks[P3_RECORD_READS];
};

/* The lists, the stage and the regions that all connections of an endpoint share. */
struct p3_record_pool {
	struct p3_record_item *done, **last_done; /* to be reported */
	struct p3_far_event *out;                 /* the n events of this poll */
	uint32_t n, most;
	struct p3_far_buffer *posted;
	struct p3_records *from; /* whose bytes the stage has; NULL: it is empty */
	uint32_t at, end;        /* those bytes */
	bool frames;             /* a NIC takes them: its endpoint is the streams */
	uint64_t came;           /* frames */
	uint64_t bytes;          /* that came */
	struct p3_mac keys;      /* its tags are the keys of regions */
	struct p3_far_region *regions[P3_RECORD_BUCKETS];
	struct p3_inbox inbox;
	_Alignas(64) char stage[P3_RECORD_STAGE];
};

void p3_records_open(struct p3_record_pool *pool);
void p3_records_begin(struct p3_records *c, const struct p3_connection *with);
/* Give back all that a connection holds. */
void p3_records_end(struct p3_record_pool *pool, struct p3_records *c);
/* The NIC stops, and its buffers go.  Return false if a record of it has begun that must
 * go on: then end the connection. */
bool p3_records_leave(struct p3_records *c);
/* The NIC has left all connections. */
void p3_records_close(struct p3_record_pool *pool);

/* Report what is over, while there is room. */
void p3_records_report(struct p3_record_pool *pool);
void p3_records_post(struct p3_record_pool *pool, struct p3_far_buffer *b);

/* Take a frame, or a read; false: there are too many. */
void p3_records_put(struct p3_records *c, struct p3_far_buffer *b, uint32_t len);
bool p3_records_ask(struct p3_records *c, struct p3_far_read *r);
/* Return true if something is to be sent. */
static inline bool p3_records_wait(const struct p3_records *c)
{
	return c->first || c->nasks || p3_control_is_due(&c->control);
}
/* Send what there is room for.  Return 0, or -errno: the connection is broken. */
int p3_records_send(struct p3_record_pool *pool, struct p3_records *c);

/* Receive.  Return 0, -EAGAIN if nothing has come, or another -errno: the connection is
 * broken. */
int p3_records_receive(struct p3_record_pool *pool, struct p3_records *c);
/* Take what the stage still has, of pool->from.  Return 0 or -errno, as above. */
int p3_records_go_on(struct p3_record_pool *pool);

/* These are functions of struct p3_endpoint_ops. */
void p3_records_offer(struct p3_record_pool *pool, const void *bytes, uint64_t len,
	struct p3_far_region *out);
void p3_records_recall(struct p3_record_pool *pool, struct p3_far_region *r);

#endif
