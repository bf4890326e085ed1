/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * frame - datagrams over a medium that may lose, change, double and reorder them, and
 * go-back-n, which makes a reliable stream of them
 *
 * Each end of a pair has a struct p3_gbn for both directions:
 *
 *	commit			a frame joins the queue of unacknowledged frames, which
 *				has room for it, with the next sequence number; it is
 *				the caller's again when drop gives it back
 *	send			puts the frames not put yet; goes back to the first one
 *				that is unacknowledged when the other end asks for it;
 *				then an acknowledgement if one is owed that no frame
 *				carried
 *	take			accepts a frame from the medium if it is intact and the
 *				next one
 *
 * An end does not go back when frames were unacknowledged for too long: it asks the
 * other end, by a frame without data, which frames are missing, and the answer makes it
 * go back (docs/design/far-frames.md).
 *
 * A frame carries its number, the number of the first frame that its sender has not
 * received (cumulative acknowledgement), the number of frames from there on that the
 * sender has room for, and a sum of all of it but the words that belong to the medium.
 * The sum begins with a key of the two lives of the pair, so a frame left over from
 * another life fails the check.  It is a CRC32C, which shows damage, or that key alone if
 * the medium shows damage itself.  Numbers are compared by difference, and start so that
 * they wrap early in every run.
 *
 * Acknowledgements ride on frames.  One of its own is sent when ack_ns have passed since
 * the first frame that it is for; before that, if half of the room that this end has
 * promised is used up, or if the other end asks or has lost something.
 *
 * An end has always room for one frame more, so the end that sends learns of new room by
 * the acknowledgement of that frame.
 *
 * This file knows neither firmware nor lanes.  One thread at a time (the lease holder)
 * may call the functions; the state is in struct p3_gbn.
 */
#ifndef P3_NIC_FRAME_H
#define P3_NIC_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define P3_FRAME_CELLS  33u /* cells of data at most, unless an end says more */
#define P3_FRAME_WINDOW 32u /* unacknowledged frames at most, a power of two */
#define P3_FRAME_START  0xfffffff0u
#define P3_FRAME_TIMES  4u /* times the usual time of an acknowledgement */

enum p3_frame_kind {
	P3_FRAME_ACK = 1, /* without number and data */
	P3_FRAME_PARTS,   /* len bytes of parts (carry.h) */
	P3_FRAME_PROBE    /* without data; its number is that of the next frame */
};

struct p3_frame {
	uint64_t tag[2]; /* used by the medium, as the next word: not part of the frame */
	uint64_t medium;
	uint32_t sum; /* of all that follows */
	uint32_t seq;
	uint32_t ack;   /* all frames before this one have been received */
	uint32_t room;  /* and this many from there on will be */
	uint8_t kind;   /* p3_frame_kind */
	uint8_t again;  /* a request: this frame is missing, later ones were received */
	uint16_t cells; /* cells of data */
	uint32_t len;   /* bytes of data that are used */
	uint64_t pad[2];
	unsigned char data[64 * P3_FRAME_CELLS];
};

/* Return the data of a frame, which may be longer than the array. */
static inline unsigned char *p3_frame_data(const struct p3_frame *f)
{
	return (unsigned char *)(uintptr_t)f + 64;
}

/* Return the bytes of a frame on the medium. */
static inline uint32_t p3_frame_len(const struct p3_frame *f)
{
	return 64 + 64u * f->cells;
}

/* Functions by which one end of a pair sends its frames. */
struct p3_gbn_medium {
	/* Put len bytes on the medium; return false if it has no room now. */
	bool (*put)(void *arg, const struct p3_frame *f, uint32_t len);
	/* Return true if the medium still has a frame that it was given, which must stay
	 * as it is and is put later. */
	bool (*keeps)(void *arg, const struct p3_frame *f);
	/* Return memory for a frame with fill cells of data, or NULL: not now. */
	struct p3_frame *(*take)(void *arg);
	/* Take a frame back that is acknowledged. */
	void (*drop)(void *arg, struct p3_frame *f);
};

struct p3_gbn {
	uint32_t base; /* first unacknowledged frame */
	uint32_t sent; /* first frame not put since the last going back */
	uint32_t next;
	uint32_t may;      /* first frame that the other end has no room for */
	uint32_t expected; /* next number from the other end */
	uint32_t told;     /* the last acknowledgement that was put */
	uint32_t room;     /* frames from expected on that this end has room for */
	uint32_t promised; /* first frame that this end has promised no room for */
	uint32_t key_out, key_in;
	bool intact;      /* the medium shows damage */
	uint64_t since;   /* time of the last progress */
	uint64_t wait_ns; /* ask this long after it: */
	uint64_t least_ns, most_ns;
	uint64_t soon_ns;   /* the shortest wait_ns, or 0: least_ns */
	uint64_t usual_ns;  /* time that acknowledgements take, on average */
	uint64_t timed_at;  /* time when the frame whose time is taken was put, */
	uint32_t timed;     /* its number, */
	bool times;         /* and whether there is one */
	uint64_t ack_since; /* time since which an acknowledgement is owed, */
	uint64_t ack_ns;    /* and the longest time that it may be owed */
	uint32_t fill;      /* cells of a frame that goes */
	bool owes_probe;
	bool owes_ack;
	bool owes_now; /* without delay */
	bool owes_again;
	bool asked; /* the missing frame was already requested */
	const struct p3_gbn_medium *medium;
	void *arg; /* of its functions */
	/* counters for people and tests */
	uint64_t resent, bad_sums, doubles, gaps;
	struct p3_frame *queue[P3_FRAME_WINDOW];
};

/* Set up one end.  The keys are numbers that belong to each direction of this pair of
 * lives.  The first p3_gbn_set_pace() and p3_gbn_set_room() come before the first
 * frame. */
void p3_gbn_init(struct p3_gbn *g, const struct p3_gbn_medium *medium, void *arg,
	uint32_t key_out, uint32_t key_in);

/* Ask first after P3_FRAME_TIMES times the usual time of an acknowledgement, but not
 * before soon_ns, and after least_ns at the latest; after least_ns if soon_ns is 0.  The
 * time doubles up to most_ns. */
void p3_gbn_set_pace(
	struct p3_gbn *g, uint64_t soon_ns, uint64_t least_ns, uint64_t most_ns);
/* Before the first frame: both ends have room for this number of frames, from 1 to
 * P3_FRAME_WINDOW.  Later this end sets g->room before each send. */
void p3_gbn_set_room(struct p3_gbn *g, uint32_t room);

/* Return true if the queue has room for a frame. */
static inline bool p3_gbn_has_room(const struct p3_gbn *g)
{
	return g->next - g->base < P3_FRAME_WINDOW;
}

/* Return memory for the next frame, or NULL: there is no room now. */
static inline struct p3_frame *p3_gbn_take_memory(const struct p3_gbn *g)
{
	return p3_gbn_has_room(g) ? g->medium->take(g->arg) : NULL;
}

/* Give the next frame its number.  The caller has filled kind, cells, len and the data,
 * and does not touch it until it is dropped. */
void p3_gbn_commit(struct p3_gbn *g, struct p3_frame *f, uint64_t now);

void p3_gbn_send(struct p3_gbn *g, uint64_t now);

/* Send the frames that are not acknowledged once more. */
void p3_gbn_go_back(struct p3_gbn *g, uint64_t now);
/* Give all frames back: this life of the pair is over. */
void p3_gbn_end(struct p3_gbn *g);

/* Let the next send put an acknowledgement that is owed: this end will not look for a
 * while. */
static inline void p3_gbn_hurry(struct p3_gbn *g)
{
	g->owes_now = g->owes_ack;
}

/* Process a frame of len bytes from the medium; f is a private copy.  Return true if it
 * is the next one: the caller then uses its content at once. */
bool p3_gbn_take(struct p3_gbn *g, const struct p3_frame *f, uint32_t len, uint64_t now);

/* Return true if a frame is unacknowledged. */
static inline bool p3_gbn_waits(const struct p3_gbn *g)
{
	return g->base != g->next;
}

/* Return the time at which p3_gbn_send() has work again, if no frame is taken before.
 * 0: the last call found no room on the medium; UINT64_MAX: there is no work. */
uint64_t p3_gbn_due(const struct p3_gbn *g);

/* Return true if all frames before this number have been acknowledged. */
static inline bool p3_gbn_is_past(const struct p3_gbn *g, uint32_t seq)
{
	return (int32_t)(g->base - seq) >= 0;
}

#endif
