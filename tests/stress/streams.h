/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * streams - verified traffic of all kinds between this rank and others, for programs of
 * tests/stress (on tests/mp/mp.h: processes under yod, the public API only)
 *
 * With each partner one operation of each kind is under way, all kinds at once.  Of each
 * operation every event must come, once and in order (START before END, SEND before ACK,
 * UNLINK last), every byte must be right at the other side, no byte beside it may change,
 * and a put is over only when the target's program, having looked, says so.  Whatever is
 * wrong ends the node with a line that says what, and the seed.
 *
 *	streams_open, then for each round:
 *	streams_begin, streams_step until it is false (after streams_stop),
 *	streams_bye, streams_step until streams_heard_all, streams_rest
 *
 * One thread only, but for streams_stop and what says otherwise.
 */
#ifndef P3_TESTS_STREAMS_H
#define P3_TESTS_STREAMS_H

#include "mp/mp.h"

enum stream_kind {
	S_INLINE,
	S_EAGER,
	S_UPDATED, /* the target's descriptor is updated after each */
	S_ONCE,    /* descriptors for one message, at both ends */
	S_CUT,     /* truncated at the target */
	S_PIECES,  /* of an iovec into another */
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
	S_FREE /* match bits from here on are the program's, on portal MP_PORTAL */
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

/* After mp_start, and after each PtlNIInit.  with[r]: may rank r ever be a partner? */
void streams_open(uint64_t seed, const bool *with);

/* with[r]: is rank r a partner in this round? */
void streams_begin(const bool *with);

/* One event, waiting a little; is any operation of ours under way? */
bool streams_step(void);

/* Nothing new is started from now on; any thread. */
void streams_stop(void);

/* No more comes from here; and words for the partner. */
void streams_bye(unsigned to, const uint64_t words[S_TALLY]);
bool streams_heard_all(void);
const uint64_t *streams_heard(unsigned from);

/* All of that: operations for so long, then byes. */
void streams_round(const bool *with, unsigned ms);

/* Between two rounds: before the barrier that all come to, when all was heard. */
void streams_rest(void);

/* Of the samples since this was asked last. */
double streams_median_us(void);

#endif
