/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer - the common functions of the programs of bench/compare
 *
 * Arguments are "quick" or "full", then test=x,y,z.  x is a size in bytes if the table
 * does not say otherwise; the other tests ignore it.  For each x a line is printed: the
 * name of the peer, test, x, value, with tabs between them.
 *
 *	latency		ns, half a round trip
 *	stream		MB/s (10^6 bytes), windows of 64 one way, an empty message back
 *	rate		10^6 messages of 8 bytes a second, windows of 64
 *	match		ns for a message behind a list of x others
 *	alltoall	10^6 messages of 64 bytes a second, of all; x is the nodes
 *	ack, get	ns, from the call to the event (or its like) that ends it
 *	am		ns, an active message there and its reply
 *	eqget, eqpoll	ns, a call that finds x queues empty
 *	queues		ns, half a round trip of 8 bytes; x queues are looked into
 *	threads		10^6 messages of 8 bytes a second, of x threads, windows of 64
 *	posted		ns, half a round trip of x bytes; each round posts its receive
 *	step		ns, step x of such a round without bytes, see enum peer_step
 */
#ifndef BENCH_COMPARE_PEER_H
#define BENCH_COMPARE_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PEER_WINDOW = 64, PEER_BATCHES = 100, PEER_BYTES = 64, PEER_WORD = 8 };

struct peer_plan {
	uint64_t warm, batches, each; /* rounds: warm, then batches * each */
};

extern const char *peer_program;

_Noreturn void peer_die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
double peer_now_ns(void);
double peer_median(double *sample, uint64_t n); /* sorts */
void *peer_allocate(size_t bytes);

/* Pin this process to the rank-th available CPU, before a library knows the rank. */
void peer_pin(unsigned rank);

/* Plan as many rounds as portalperf does; a window is a round of 64 messages. */
struct peer_plan peer_plan_of(bool quick, bool windows, uint64_t bytes);

/* Time rounds in batches, and return the median of a round, in ns. */
typedef void peer_round(uint64_t bytes, uint64_t round);
double peer_timed(const struct peer_plan *p, peer_round *fn, uint64_t bytes);

/* Steps of a round at rank 0.  The first is a second look at the clock: the time of a
 * look, which each step contains. */
enum peer_step { PEER_CLOCK, PEER_POST, PEER_SEND, PEER_SENT, PEER_ANSWER, PEER_STEPS };

/* Begin a step; PEER_STEPS ends the last one.  Only peer_step_of reads the clock here. */
void peer_step(enum peer_step step);
/* Run rounds without bytes, and return the median of a step, in ns. */
double peer_step_of(const struct peer_plan *p, peer_round *fn, uint64_t step);
/* Return the rounds of peer_timed and peer_step_of. */
static inline uint64_t peer_rounds(const struct peer_plan *p)
{
	return p->warm + p->batches * p->each;
}

/* Call run for each test=x of the arguments; rank 0 prints. */
typedef void peer_run(const char *test, uint64_t x, bool quick);
void peer_each(int argc, char **argv, peer_run *run);
void peer_print(const char *who, const char *test, uint64_t x, double value);

/*
 * If alive is true, make this process exit with an error line as soon as a child ends: it
 * would wait for that child for ever.  If alive is false, end this rule.
 */
void peer_expect_children(bool alive);

/* Write and check the first and last word of a message: the number of its round. */
void peer_stamp(char *at, uint64_t bytes, uint64_t round);
void peer_check(const char *at, uint64_t bytes, uint64_t round);

#endif
