/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The data of xfer/: long transfers into this node's memory and out of it.
 *
 * Only the lease holder touches this data; the published half of a slot is shared.
 */
#ifndef P3_NIC_XFER_STATE_H
#define P3_NIC_XFER_STATE_H

#include "nic/obj/state.h"
#include "shm/layout.h"

struct p3_fetch;
struct p3_pending;

#define P3_PULLS 128u

enum p3_mover { P3_MOVE_START, P3_MOVE_BULK, P3_MOVE_CMA, P3_MOVE_DIRECT, P3_MOVE_FETCH };

#define P3_EDGE 64u /* bytes; max_getput_md is not larger */

/* One end of the bytes that a transfer has written, from the front or from the back,
 * and the former content of the last P3_EDGE of them: byte i is at i % P3_EDGE. */
struct p3_edge {
	uint64_t at;
	uint64_t known;       /* value of at for which under has the former bytes */
	struct p3_range lent; /* bytes whose former content is in place for an exchange */
	unsigned char under[P3_EDGE];
};

/* One long transfer into this process's memory, which this firmware pulls. */
struct p3_pull {
	struct p3_link link;      /* in n->pulls */
	struct p3_link bulk_link; /* in the peer's bulk_waits while this pull waits for
				   * a window */
	struct p3_peer *peer;
	struct p3_span span; /* destination of the bytes */
	uint64_t xfer_id;    /* at the source */
	uint64_t addr;       /* address at the source; 0: readable through a window
			      * only */
	uint64_t heap;       /* offset in the source's shared heap, plus 1; 0: the
			      * bytes are not in the heap */
	uint64_t length;     /* bytes to read */
	uint64_t done;       /* bytes read from the front */
	uint64_t end;        /* the bytes from here on have been read, too */
	uint64_t again;      /* the source's value of again for the read bytes:
			      * XFER.6 */
	uint64_t moved_ns;   /* time of the last movement */
	uint64_t kick_ns;
	uint64_t began_ns;    /* 0: the transfer is not timed */
	uint64_t began_moved; /* n->moved at that time */
	enum p3_mover mover;
	enum p3_mover began; /* mover at the start of the timing */
	bool ack;
	bool announced; /* counted in this node's word "reading" to the peer */
	bool may_read;  /* announced, and then no exchange was under way at the source:
			 * XFER.5 */
	bool dedicated; /* the peer's own pull, not one of the pool */
	bool first;     /* the peer's next request waits for the pull's end */
	bool ahead;     /* the source puts bytes into a window unasked */
	bool from_back; /* the last slice was read from the back: the source idles */
	bool mixed;     /* another pull may write the same bytes */
	bool in_use;
	/* ends the put, the get or the RMA operation: all bytes are read, or never will
	 * be */
	void (*over)(struct p3_nic *n, struct p3_pull *pull, uint32_t fail);
	struct p3_pending *get; /* this node's get, or NULL */
	uint32_t peer_pending;  /* put: name of the initiator's pending */
	uint64_t region;        /* CCI: name of the region that is written; else 0 */
	struct p3_topic topic;
	struct p3_fetch *fetches; /* in the order of their places */
	uint64_t asked;           /* bytes up to here are fetched */
	uint32_t failures;        /* fetches that have failed */
	/* All written bytes, counted or not, for exchanges: see getput.c. */
	uint64_t kept, kept_end;
	/* Ranges that include all changes at the source that came after their bytes had
	 * been read. */
	struct p3_range old_front, old_back;
	struct p3_edge front, back;
};

/* Recent durations of transfers of similar length by two ways, 0: unknown.  The other way
 * of a pull is a window, that of a put is to copy past the cache. */
struct p3_pace {
	uint64_t usual_ns, other_ns;
	uint64_t began_ns; /* puts: when the timed half of the run began */
	uint32_t turns;
	bool other; /* this run goes the other way */
};

#define P3_SLICE_LENGTHS 4u

/* Recent paces of cross-memory reads by their length: see movers.h. */
struct p3_slices {
	uint64_t fit; /* bytes that take P3_SLICE_NS, by the last slices */
	uint64_t cost[P3_SLICE_LENGTHS]; /* recent time of 1 MiB, ns; 0: unknown */
	uint32_t seen[P3_SLICE_LENGTHS]; /* slices of that length, counted to P3_SEEN */
	uint32_t turns;                  /* slices in all */
	uint32_t best;                   /* number of the fastest length */
	uint32_t lone_after;             /* slices before a lone one is allowed */
	uint32_t caution; /* value of lone_after when a lone slice is next waited for */
};

#define P3_SEEN_PLACES 64u

/* Pages of this process that were in memory at a time. */
struct p3_seen {
	uint64_t page, end, ns;
};

/* The private half of a slot of the transfer table. */
struct p3_xfer_slot {
	struct p3_link link;        /* in n->sources while id is published */
	struct p3_link served_link; /* while serving: in its peer's serving */
	struct p3_xfer *pub;        /* own published half */
	struct p3_topic topic;
	uint32_t slot;
	uint32_t looks; /* counted while the reader sees the heap */
	uint32_t gen;
	struct p3_peer *peer;
	bool in_use;
	bool releasing;         /* own get, released: waits until the target notices */
	bool serving;           /* serves a get of the peer: span has an END to come */
	bool swapped;           /* an exchange of some of its bytes is being done */
	bool agreed;            /* the reader has told where it continues in the window */
	bool offered;           /* the wire lets the peer fetch the bytes: the reader may
				 * have begun, see wire.h */
	bool ahead;             /* bytes come into a window before the reader asks */
	bool absent;            /* bytes were not in memory at publication: only this
				 * process reads them */
	struct p3_range change; /* bytes of the exchange */
	uint64_t peer_id; /* serving a get: the initiator's slot; own get: the target's */
	struct p3_span span; /* readable bytes: region, offset */
	uint64_t cci;        /* serving a READ: name of the region that is read; else 0 */
	uint64_t length;
	uint32_t window;  /* number of its window, or P3_NONE */
	uint64_t lent_ns; /* time at which the window was lent */
	uint64_t produced;
	uint64_t again;
	struct p3_pull pull; /* the pull of an own get */
};

#endif
