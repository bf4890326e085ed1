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

#define MEMBER_LONGEST ((size_t)1 << 20)
#define MEMBER_CLASH   20 /* exit status: another process has the process id */
#define MEMBER_REFUSED 21 /* exit status: the domain cannot be entered */

/* Result of a put: acknowledged; sent without an answer; failed; still under way. */
enum outcome { ACKED, SENT, FAILED, HUNG };

_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

void member_start(ptl_pid_t pid);
void member_end(void);
ptl_process_id_t member_id(void);
/* Take all events. */
void member_take(void);
unsigned long member_got(void);
/* Put; wait for its end, and then ms for its acknowledgement. */
enum outcome member_put(ptl_process_id_t to, size_t n, unsigned entry, unsigned ms);
/* Send long puts for ever. */
void member_flood(ptl_process_id_t to, unsigned pause_ms);
void member_serve(void);
void member_say_who(void);

#endif
