/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * streams - verified traffic of all kinds between this rank and others, for programs of
 * tests/stress (on tests/mp/mp.h: processes under yod, the public API only)
 *
 * With each partner one operation of each kind is under way, all kinds at once.  Of
 * each operation every event must come, once and in order (START before END, SEND
 * before ACK, UNLINK last), every byte must be right at the other side, no byte beside
 * it may change, and a put is over only when the target's program has looked and says
 * so.  Any error ends the node with a line that names it and the seed.
 *
 *	streams_open, then for each round:
 *	streams_begin, streams_step until it is false (after streams_stop),
 *	streams_bye, streams_step until streams_heard_all, streams_rest
 *
 * Only one thread may call these functions, except streams_stop and functions that say
 * otherwise.
 */
#ifndef P3_TESTS_STREAMS_H
#define P3_TESTS_STREAMS_H

#include "mp/mp.h"

enum stream_kind {
	S_INLINE,
	S_EAGER,
	S_UPDATED, /* the target's descriptor is updated after each message */
	S_ONCE,    /* descriptors for one message, at both ends */
	S_CUT,     /* truncated at the target */
	S_PIECES,  /* from one iovec into another */
	S_LONG,
	S_HEAP, /* from PtlXAlloc */
	S_GET,
	S_GET_LONG,
	S_GET_HEAP,
	S_GET_PIECES,
	S_SWAP,
	S_KINDS,
	S_OKAY = S_KINDS,
	S_BYE,
	S_FREE /* the program may use match bits from here on, on portal MP_PORTAL */
};

enum { S_RANKS = 16, S_TALLY = 4, S_SAMPLES = 1 << 16 };

struct streams {
	uint64_t seed;
	uint64_t messages, bytes, events; /* operations of this rank, and its events */
	uint64_t by_kind[S_KINDS];
	uint64_t sample[S_SAMPLES]; /* ns from a short put's call to its ACK */
	uint64_t nsamples;
};
extern struct streams streams;

/* Open; after mp_start and after each PtlNIInit.  with[r]: rank r may be a partner. */
void streams_open(uint64_t seed, const bool *with);

/* Begin a round; with[r]: rank r is a partner in it. */
void streams_begin(const bool *with);

/* Take one event, waiting a little; return true if an own operation is under way. */
bool streams_step(void);

/* Start no new operations from now on; any thread may call it. */
void streams_stop(void);

/* Tell the partner that no more messages come, with some words. */
void streams_bye(unsigned to, const uint64_t words[S_TALLY]);
bool streams_heard_all(void);
const uint64_t *streams_heard(unsigned from);

/* Do all of that: operations for this time, then byes. */
void streams_round(const bool *with, unsigned ms);

/* Rest between two rounds: before the barrier of all ranks, when all byes were heard. */
void streams_rest(void);

/* Return the median of the samples since the last call. */
double streams_median_us(void);

#endif
