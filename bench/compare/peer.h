/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer - the patterns of bench/compare, and the common functions of its programs
 *
 *	peer.h	the rounds of a pattern, made of the calls of a peer
 *	am.h	the rounds of active messages
 *	peer.c	arguments, times and results; processes and threads
 *
 * Arguments are "quick", "full" or "tails", then test=x,y,z.  x is a size in bytes if
 * the table does not say otherwise; the other tests ignore it.  For each x a line is
 * printed: the name of the peer, test, x, value, with tabs between them; with tails also
 * p99 of the rounds, in ns, of which some are timed one by one.
 *
 *	latency		ns, half a round trip
 *	stream		MB/s (10^6 bytes), windows of 64 one way, an empty message back
 *	rate		10^6 messages of 8 bytes a second, windows of 64
 *	match		ns for a message behind a list of x others
 *	alltoall	10^6 messages of 64 bytes a second, of all; x is the nodes
 *	ack, get	ns, from the call to the event (or its like) that ends it
 *	am		ns, an active message there and its reply
 *	eqget		ns, a call that finds a queue empty
 *	queues		ns, half a round trip of 8 bytes; x queues are looked into
 *	threads		10^6 messages of 8 bytes a second, of x threads, windows of 64
 *	balls		ns, half a round trip of 8 bytes, of each of x threads at a time
 *	balls_one	the same if the threads of a rank look into one queue
 *	posted		ns, half a round trip of x bytes; each round posts its receive
 *	step		ns, step x of such a round without bytes, see enum peer_step
 *	overlap		ns, the wait for a message of x bytes behind 10 ms of computing
 *	faa		10^6 fetching additions a second, windows of 64
 */
#ifndef BENCH_COMPARE_PEER_H
#define BENCH_COMPARE_PEER_H

#include "../measure.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum {
	PEER_WINDOW = 64,
	PEER_BATCHES = 100,
	PEER_BYTES = 64,
	PEER_WORD = 8,
	PEER_THREADS = 16,
	PEER_NODES = 256,
	PEER_ANY = 1 << 30
};

struct peer_plan {
	uint64_t warm, batches, each; /* rounds: warm, then batches * each */
	uint64_t singles;             /* that are timed one by one behind each batch */
};

/* Run count rounds of a pattern, of which done have gone before. */
typedef void peer_rounds(uint64_t x, uint64_t done, uint64_t count);

struct peer_threads {
	void (*open)(unsigned thread), (*close)(unsigned thread); /* main thread */
	void (*meet)(void);                                       /* of the ranks */
	void (*enter)(unsigned thread), (*leave)(void);  /* the thread, or NULL */
	void (*window)(unsigned thread, uint64_t round); /* or another pattern */
};

/* A pattern that a peer has.  Its functions are called by all ranks. */
struct peer_test {
	const char *name, *who; /* who: the peer's name, or NULL: it is an argument */
	uint64_t least, most;   /* x */
	unsigned parts; /* of a round, in the value; PEER_WINDOW if rounds are windows */
	peer_rounds *rounds;
	void (*open)(uint64_t x), (*close)(uint64_t x); /* or NULL */
	double (*run)(uint64_t x, bool quick); /* in place of rounds: return the value */
	const struct peer_threads *threads;    /* in place of rounds: x of them */
};

struct peer {
	const struct peer_test *tests; /* ends with a row of zeros */
	bool named;                    /* the first argument is the peer's name */
	bool forks;                    /* the second rank is a copy of this process */
	bool partial;                  /* leave an x out that no pattern has */
	/* before each test, and before its fork; after it; or NULL */
	void (*before)(uint64_t x), (*after)(void);
};

extern const char *peer_program; /* for error lines */
extern unsigned peer_rank;       /* 0 keeps the time and prints */

/* Run the tests of the arguments. */
void peer_run(const struct peer *peer, int argc, char **argv);

_Noreturn void peer_die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void *peer_allocate(size_t bytes);
/* Map memory that copies of this process share. */
void *peer_share(size_t bytes);

/* Pin this process to the rank-th available CPU, before a library knows the rank. */
void peer_pin(unsigned rank);
unsigned peer_cpus(void);

/* Steps of a round at rank 0.  The first is a second look at the clock: the time of a
 * look, which each step contains. */
enum peer_step { PEER_CLOCK, PEER_POST, PEER_SEND, PEER_SENT, PEER_ANSWER, PEER_STEPS };

/* Begin a step; PEER_STEPS ends the last one.  Only the test step reads the clock. */
void peer_step(enum peer_step step);
extern uint64_t peer_last_round; /* of the test */

/* ---- processes that are copies of this one ---- */

extern pid_t peer_child[PEER_NODES]; /* indexed by rank */

/* Run the rounds of a test with this number of nodes, and return the median of a round in
 * ns. */
double peer_job(
	const struct peer_test *t, unsigned nodes, uint64_t x, const struct peer_plan *p);

/* ---- data: the first and the last word of a message are the number of its round ---- */

void peer_stamp(char *at, uint64_t bytes, uint64_t round);
void peer_check(const char *at, uint64_t bytes, uint64_t round);

/* ---- patterns ---- */

/*
 * The calls of a peer.  A table is a constant, and patterns are inlined where it is
 * known, so no message goes through a pointer to a function.
 */
struct peer_calls {
	void (*send)(uint64_t bytes, uint64_t round);
	void (*take)(uint64_t bytes, uint64_t round); /* wait for it, and check it */
	void (*post)(uint64_t bytes);                 /* a receive */
	void (*sent)(uint64_t round);                 /* wait until a message is sent */
};

#define PEER_PATTERN static inline __attribute__((always_inline))

/* Define the counted rounds of a pattern, whose one round is a function of x and its
 * number. */
#define PEER_ROUNDS(name, one)                                                           \
	static void name(uint64_t x, uint64_t done, uint64_t count)                      \
	{                                                                                \
		for (uint64_t round = done; round < done + count; round++)               \
			one(x, round);                                                   \
	}

/* Define those of a pattern that is made of calls: fields of struct peer_calls. */
#define PEER_ROUNDS_OF(name, pattern, ...)                                               \
	static void name##_one(uint64_t x, uint64_t round)                               \
	{                                                                                \
		static const struct peer_calls calls = {__VA_ARGS__};                    \
		pattern(&calls, x, round);                                               \
	}                                                                                \
	PEER_ROUNDS(name, name##_one)

PEER_PATTERN void peer_ping_pong(
	const struct peer_calls *c, uint64_t bytes, uint64_t round)
{
	if (peer_rank == 0)
		c->send(bytes, round);
	c->take(bytes, round);
	if (peer_rank == 1)
		c->send(bytes, round);
}

/* Post a receive in each round.  Rank 1 has posted the first one, so the receive of a
 * message is posted before the message is sent. */
PEER_PATTERN void peer_posted(const struct peer_calls *c, uint64_t bytes, uint64_t round)
{
	if (peer_rank) {
		c->take(bytes, round);
		if (round < peer_last_round)
			c->post(bytes);
		c->send(bytes, round);
		c->sent(round);
		return;
	}
	peer_step(PEER_CLOCK);
	peer_step(PEER_POST);
	c->post(bytes);
	peer_step(PEER_SEND);
	c->send(bytes, round);
	peer_step(PEER_SENT);
	c->sent(round);
	peer_step(PEER_ANSWER);
	c->take(bytes, round);
	peer_step(PEER_STEPS);
}

#endif
