/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * member - one process of a domain that yod did not start: it takes verified messages
 * of all processes, sends some, and obeys the orders of a test on its standard input
 */
#ifndef P3_TESTS_DOMAIN_MEMBER_H
#define P3_TESTS_DOMAIN_MEMBER_H

#include "../support/patience.h"

#include <portals3.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define MEMBER_LONGEST ((size_t)1 << 20)
#define MEMBER_LONG_MS 1000000u /* longer than the limit of a test's wait */
#define MEMBER_CLASH   20       /* exit status: another process has the process id */
#define MEMBER_REFUSED 21       /* exit status: the domain cannot be entered */

/* Result of a put: acknowledged; sent without an answer; failed; still under way. */
enum outcome { ACKED, SENT, FAILED, HUNG };

_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

void member_start(ptl_pid_t pid);
void member_end(void);
ptl_process_id_t member_id(void);
/* Take all events. */
void member_take(void);
unsigned long member_got(void);
/* Put; wait for its end, and then ms for its acknowledgement, which is
 * MEMBER_LONG_MS where it has to come. */
enum outcome member_put(ptl_process_id_t to, size_t n, unsigned entry, unsigned ms);
/* Send long puts for ever. */
void member_flood(ptl_process_id_t to, unsigned pause_ms);
/* Put until it is acknowledged: who joins waits a second at most for members
 * without a CPU. */
void member_meet(ptl_process_id_t other);
void member_serve(void);
void member_say_who(void);

/* kid.c: a member as a child process, and orders for it */
struct kid {
	pid_t os_pid;
	FILE *to, *from;
	ptl_process_id_t id;
	unsigned jid, uid;
};

/* Start this program as "member PID", and wait until it has joined. */
struct kid kid_start(ptl_pid_t pid);
/* Start it without waiting, and without an id. */
struct kid kid_spawn(ptl_pid_t pid);
/* Read the line that tells that it has joined.  Return false if it has ended instead. */
bool kid_joined(struct kid *k);
/* Return true if it prints a line within ms. */
bool kid_says(const struct kid *k, int ms);
/* Return its answer to an order. */
const char *kid_ask(struct kid *k, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void kid_tell(struct kid *k, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Let one put to another; wait this long for the acknowledgement. */
enum outcome kid_put(
	struct kid *from, const struct kid *to, size_t n, unsigned entry, unsigned ms);
/* Wait until from reaches to, whom it may meet only now if one of them had no CPU. */
void kid_meet(struct kid *from, const struct kid *to);
/* Wait until from cannot reach to any more. */
void kid_lost(struct kid *from, const struct kid *to);
/* Wait until it counts this number of living processes, with itself. */
void kid_await_company(struct kid *k, unsigned n);
void kid_kill(struct kid *k);
/* Let it leave in order. */
void kid_leave(struct kid *k);
int kid_status(struct kid *k);
/* Check that the domain's directory is gone. */
void expect_nothing_left(void);

#endif
