/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * torture - the common parts of the torture tests: duration, spinning, verdicts
 *
 * A side of a torture is a thread or a process.  It may not use assert_*() of cmocka,
 * which jumps into the test's own thread: it notes its first failure in a verdict and
 * ends; the test asserts the verdict when all sides have ended.
 */
#ifndef P3_UNIT_TORTURE_H
#define P3_UNIT_TORTURE_H

#include "shm/atomics.h"
#include "shm/layout.h"
#include "shm/park.h"
#include "shm/seg.h"
#include "support/random.h"

#include <sched.h>
#include <sys/types.h>

struct verdict {
	const char *why; /* NULL: no failure */
	uint64_t at;     /* number of the message, event or command */
};

/* Note a failure unless one was noted; return true if the condition holds. */
#define SIDE_CHECK(v, condition, number)                                                 \
	side_check((v), (condition), #condition, (uint64_t)(number))

static inline bool side_check(struct verdict *v, bool ok, const char *why, uint64_t at)
{
	if (!ok && !v->why)
		*v = (struct verdict){why, at};
	return ok;
}

/* Fail the test with the reason if the side failed. */
void assert_side_is_well(const char *side, const struct verdict *v);

/* Return a part of P3_TORTURE_MS milliseconds (500 if not set), in nanoseconds. */
uint64_t torture_ns(unsigned parts);

static inline uint32_t dice(uint64_t *seed, uint32_t sides)
{
	return (uint32_t)(mix(++*seed) % sides);
}

/* The state of one wait for the other side. */
struct spin {
	uint32_t turns;
	uint64_t end_ns;
};

/*
 * Do one turn: first some relaxed ones, then yielding ones; all yield where threads
 * take turns.  Return false once the other side has not moved for so long that it never
 * will.
 */
bool spin_on(struct spin *s);

/* Run the sides as threads until all have ended. */
typedef void *torture_side(void *arg);
void run_threads(unsigned n, torture_side *const side[], void *const arg[]);

/* Return the bytes of address space that this process uses now. */
uint64_t address_space(void);

/* Run side(arg) in a child; its result is the exit status. */
pid_t run_child(int (*side)(void *arg), void *arg);

/* In a child: print the failure, and return 0 or 1. */
int side_status(const char *side, const struct verdict *v);

/* Wait for a child.  Return its exit status, or 128 + signal. */
int wait_child(pid_t pid);

/*
 * Pairs: two processes that map each other's segment, as nodes of a job do
 *
 * Each makes a segment, seals it and hands the descriptor to the other, which can map it
 * read-only; and a doorbell page, which both map writable.
 */
#define PAIR_LEN  ((uint64_t)P3_HUGE)
#define PAIR_USED 65536u /* bytes of a segment that may be used, zero at first */

struct pair {
	int sock;
	struct p3_seg own, bell;
	void *peer; /* the other's segment, read-only */
	void *peer_bell;
	void *arg;
};

/*
 * Start the child, which runs side(its half), and make this process's half.  The first
 * words of the two segments are set to first.  Both halves must then call pair_meet().
 */
pid_t pair_start(
	struct pair *half, uint64_t first, int (*side)(struct pair *), void *arg);

/* Return when both have called it; return false if the other process is gone. */
bool pair_meet(struct pair *half);
void pair_end(struct pair *half);

#endif
