/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * patience - the limit of a wait inside a test, counted as on an idle machine
 *
 *	struct patience p = patience_ms(5000);
 *	while (!is_there())
 *		if (patience_is_over(&p))
 *			fail("it is not there");
 *
 * While more threads are runnable than there are CPUs, time counts proportionally less,
 * as for tests/support/bounded: the limit is stretched to ten times at most.  Checkers
 * that slow everything down stretch it, too.  Any program may include this header; it has
 * no state.
 */
#ifndef P3_TESTS_PATIENCE_H
#define P3_TESTS_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#if defined(P3_VALGRIND) || defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define PATIENCE_SCALE 6u
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PATIENCE_SCALE 6u
#endif
#endif
#ifndef PATIENCE_SCALE
#define PATIENCE_SCALE 1u
#endif

#define PATIENCE_MOST    10u       /* times the limit, whatever else runs */
#define PATIENCE_TICK_NS 20000000u /* between two looks at the load */

struct patience {
	uint64_t last_ns; /* the last look at the load */
	double left_ns;   /* of an idle machine */
};

static inline uint64_t patience_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline struct patience patience_ms(uint64_t ms)
{
	return (struct patience){
		patience_now(), (double)ms * 1e6 * (double)PATIENCE_SCALE};
}

/* Return the part of a CPU that a thread has while this number of threads runs. */
static inline double patience_share(unsigned running, unsigned cpus)
{
	double share = running > cpus ? (double)cpus / (double)running : 1;
	return share < 1.0 / PATIENCE_MOST ? 1.0 / PATIENCE_MOST : share;
}

/* Return the part of a CPU that a thread has now, by the number of runnable threads or by
 * the load of the last minute, whichever is larger.  The minute matters for a wait inside
 * of a call: it is counted when the call has returned, and the load may be gone then. */
static inline double patience_share_now(void)
{
	unsigned running = 1, minute = 0;
	FILE *f = fopen("/proc/loadavg", "re");
	if (!f || fscanf(f, "%u.%*u %*f %*f %u/", &minute, &running) != 2 || !running)
		running = 1;
	if (f)
		fclose(f);
	running = running - 1 > minute ? running - 1 : minute;
	return patience_share(running, (unsigned)sysconf(_SC_NPROCESSORS_ONLN));
}

/* Count the time until now_ns, in which a thread had this part of a CPU. */
static inline void patience_count(struct patience *p, uint64_t now_ns, double share)
{
	p->left_ns -= (double)(now_ns - p->last_ns) * share;
	p->last_ns = now_ns;
}

/* Count the time since the last look at the load; return true if the limit is over. */
static inline bool patience_is_over(struct patience *p)
{
	uint64_t now = patience_now();
	if (now - p->last_ns >= PATIENCE_TICK_NS ||
		(double)(now - p->last_ns) >= p->left_ns)
		patience_count(p, now, patience_share_now());
	return p->left_ns <= 0;
}

#endif
