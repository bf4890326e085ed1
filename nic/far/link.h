/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link - this node's end of a pair of nodes on different hosts
 *
 *	frames of the pair (carry.h)	numbers, acknowledgements, sums: frame.h
 *	    | put
 *	endpoint (endpoint.h)		at most P3_FAR_FLIGHT frames of a link, and
 *					P3_FAR_BUFFERS of the node, at a time
 *
 * A frame lies in a buffer of the node from its first byte until it is acknowledged and
 * the endpoint has given it back.  Each link may hold P3_FAR_OWN buffers, however many
 * others hold; beyond that links share P3_FAR_BUFFERS.
 *
 * docs/design/far-frames.md tells when a link sends frames again, and when it takes back
 * the buffers of a broken connection, how credits bound what waits for a node, and how
 * sums tell frames of another life of the pair.
 *
 * Connections are lazy: the peer's name becomes an address with the first frame to it.
 *
 * The lease holder calls these functions, except where a comment says (any).
 */
#ifndef P3_NIC_FAR_LINK_H
#define P3_NIC_FAR_LINK_H

#include "nic/far/endpoint.h"
#include "nic/state.h"
#include "nic/wire/carry.h"

#define P3_FAR_OWN      4u
#define P3_FAR_PROMISED 256u /* frames that peers may send */
#define P3_FAR_FLIGHT   16u  /* frames of a link with the endpoint */
#define P3_FAR_FIRST    4u   /* frames that a link may send before it hears of room */

/* Longest time that an acknowledgement or a credit waits for a frame that carries it. */
#define P3_FAR_LAZY_NS 200000u
/* Wait for an acknowledgement: before the first one; later, when acknowledgements are
 * usually fast; and when they are slow.  The peer may not be there yet, so it is asked
 * often in the beginning. */
#define P3_FAR_EARLY_NS    2000000u
#define P3_FAR_SOON_NS     5000000u
#define P3_FAR_RESEND_NS   200000000u
#define P3_FAR_RESEND_MOST 3000000000u
/* Pause after a broken connection, doubled while connections break. */
#define P3_FAR_RETRY_NS   1000000u
#define P3_FAR_RETRY_MOST 1000000000u
/* After a connection broke its buffers come back at once, or never. */
#define P3_FAR_LOST_NS 100000000u
/* Look whether the endpoint takes a frame again, after it has refused one. */
#define P3_FAR_ROOM_NS   100000u
#define P3_FAR_ROOM_MOST 10000000u

/* The state that all links of a node share. */
struct p3_far {
	const struct p3_endpoint_ops *ops;
	struct p3_endpoint *ep;
	struct p3_far_buffer *buffers; /* those to receive, then those to send */
	uint32_t fill;                 /* cells of data of a sent frame, at most */
	uint32_t nbuffers, fresh;      /* those from fresh on were never used */
	struct p3_far_buffer *free;    /* those to send */
	struct p3_far_buffer *idle; /* those to receive that the endpoint has refused */
	uint32_t held;              /* frames that wait for acknowledgements */
	uint32_t lent;              /* frames with the endpoint */
	uint32_t links;             /* links that are up */
	uint32_t promised;          /* frames that all peers together may send now */
	struct p3_far_reads *reads; /* NULL: there are no remote reads (reads.h) */
};

struct p3_far_link {
	struct p3_far *far;
	uint32_t name_len;
	unsigned char name[P3_FAR_NAME];
	uint64_t to;        /* address of the peer */
	bool known;         /* to is valid */
	bool up;            /* the peer is attached */
	bool heard;         /* it has acknowledged a frame in this life */
	bool active;        /* each pass looks at the link */
	uint32_t held;      /* frames that wait for acknowledgements */
	uint32_t flight;    /* frames with the endpoint */
	uint32_t room;      /* frames of far->promised that are this link's */
	uint64_t retry_at;  /* no frame is sent before this time */
	uint64_t retry_ns;  /* the last pause */
	uint64_t lost_from; /* older buffers with the endpoint may be lost, */
	uint64_t lost_at;   /* and are treated so at this time; 0: none */
	uint64_t stuck;     /* time since which due frames could not be sent, or 0 */
	uint64_t flushed;   /* time of the last flush */
	uint32_t in_row;    /* messages within BURST_NS of each other (far.c) */
	bool was_burst;     /* so many came in a row before these */
	uint64_t waits;     /* time since which messages of a burst wait, or 0 */
	uint64_t came;      /* frames that came with a valid sum */
	bool offered;       /* bytes have been offered to the peer */
	uint64_t read_at;   /* no read of the peer's memory begins before this time */
	uint32_t slices;    /* fetches from the peer */
	uint32_t orphans;   /* fetches that were let go and are under way: until they are
			     * over, the link takes no messages */
	struct p3_carry carry;          /* last: most of it is for pairs that talk */
	_Alignas(P3_PAGE) char image[]; /* of the peer's segment */
};

/* Return the link of a peer that is attached, or was. */
static inline struct p3_far_link *p3_far_link_of(const struct p3_peer *p)
{
	return p3_item(p->mine, struct p3_far_link, carry.mine);
}

/* (any) Reserve zeroed memory, which takes pages as it is used; NULL: there is none. */
void *p3_far_reserve(uint64_t len);

/* (any) Make a link.  Return NULL if there is no memory. */
struct p3_far_link *p3_far_link_new(struct p3_nic *n, struct p3_far *far);
void p3_far_link_free(struct p3_nic *n, struct p3_far_link *l);

/* Begin a life of the pair, as p3_carry_reset() does. */
void p3_far_link_up(struct p3_nic *n, struct p3_far_link *l, struct p3_peer *p,
	struct p3_lane *lane_out);
void p3_far_link_down(struct p3_far_link *l);

/* Process a received frame of this link.  Return false if it breaks the rules although
 * its sum is valid. */
bool p3_far_link_take(
	struct p3_nic *n, struct p3_far_link *l, const struct p3_frame *f, uint32_t len);
/* Take back a buffer that was sent, or that failed. */
void p3_far_link_sent(struct p3_far_link *l, struct p3_far_buffer *b, bool failed);
/* Send what this node has written, and acknowledgements. */
void p3_far_link_send(struct p3_nic *n, struct p3_far_link *l);

/* Return the time at which the link needs a turn, or UINT64_MAX. */
uint64_t p3_far_link_turn(const struct p3_far_link *l);

#endif
