/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gasnet_node - GASNet and bare Portals between two ranks, for gasnetperf
 *
 * Rank 0 begins and keeps the time.  Both halves of a comparison use the same memory in
 * the same processes: bytes go from "from", in rank 0's segment, or from "outside", to
 * "to" in rank 1's segment.  As the conduit's target does, that of a bare put with an
 * ACK has no queue; rank 1 polls meanwhile, and takes no part otherwise.
 */
#ifndef BENCH_GASNET_NODE_H
#define BENCH_GASNET_NODE_H

#include "bench.h"

#include <gasnet.h>

enum { GN_LARGEST = 16 << 20, GN_UNDER_WAY = 4096 };
/* The conduit has 38 and 39, and bench_node.c has 60. */
enum { GN_PORTAL_PUT = 8, GN_PORTAL_PING = 9 };
/* Handlers that reply, with no bytes and with those of the request. */
enum { GN_ECHO_SHORT = 210, GN_ECHO_MEDIUM };

struct gn_node {
	struct bench *b;
	bool first;
	gasnet_node_t peer;
	ptl_process_id_t peer_id;
	uint64_t largest;          /* longest message, set by the caller */
	unsigned window;           /* bare puts without their ACK, set by the caller */
	char *from, *to, *outside; /* memory of this rank */
	char *there;               /* to of the peer */
	/* the test */
	const char *what;
	uint64_t bytes;
	uint64_t seed; /* of the content, another one for each batch */
	/* GASNet */
	gasnet_handle_t handle[GN_UNDER_WAY];
	size_t under_way;
	volatile uint32_t notes, replies;
	uint32_t noted, replied; /* the numbers of them that this rank has awaited */
	/* bare Portals: "acks" has the ACKs, "pings" the PUT_ENDs */
	struct bench_watch acks, pings;
	ptl_handle_md_t out;    /* bytes of from, events of ACK only */
	ptl_handle_md_t stream; /* bytes of from, also SEND_END */
	ptl_handle_md_t ping;   /* bytes of from, or at rank 1 of to, without events */
	ptl_handle_md_t note;
	uint64_t acked; /* puts so far whose ACK is awaited */
};

/* A way to move a message.  Rank 0 runs op again and again, and sync at the end. */
struct gn_way {
	const char *name;
	enum gn_side { GN_GASNET, GN_BARE, GN_ALONE } side; /* rank 1 polls, or nothing */
	void (*op)(struct gn_node *n);
	void (*sync)(struct gn_node *n);  /* NULL: each op is complete when it returns */
	void (*serve)(struct gn_node *n); /* rank 1, for each op; NULL: nothing to do */
	enum gn_lands { GN_NOWHERE, GN_AT_TARGET, GN_AT_BOTH } lands; /* to be checked */
};

/* The caller has set b, largest and window. */
void gn_open(struct gn_node *n);
/* Both ranks: begin and end the tests of one size. */
void gn_begin(struct gn_node *n, const char *what, uint64_t bytes);
void gn_end(struct gn_node *n);
/* Both ranks: fill the source of a batch; meet behind a batch, and check its data. */
void gn_fill(struct gn_node *n);
void gn_meet(struct gn_node *n, const struct gn_way *way);

extern const struct gn_way gn_put, gn_put_outside, gn_puts, gn_short, gn_medium;
extern const struct gn_way gn_bare_put, gn_bare_puts, gn_bare_pings;
extern const struct gn_way gn_memcpy, gn_bind;

#endif
