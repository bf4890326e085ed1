/* SPDX-License-Identifier: BSD-3-Clause */
/* kid - a member in a process of its own, and orders for it */
#ifndef P3_TESTS_DOMAIN_KID_H
#define P3_TESTS_DOMAIN_KID_H

#include "member.h"

#include <stdio.h>
#include <sys/types.h>

struct kid {
	pid_t os_pid;
	FILE *to, *from;
	ptl_process_id_t id;
	unsigned jid, uid;
};

/* Starts this program as "member PID"; waits until it has joined. */
struct kid kid_start(ptl_pid_t pid);
/* The same without waiting, and without an id. */
struct kid kid_spawn(ptl_pid_t pid);
/* The line that it says when it has joined; false: it has ended instead. */
bool kid_joined(struct kid *k);
/* Has it said something, or does it within ms? */
bool kid_says(const struct kid *k, int ms);
/* Its answer to an order. */
const char *kid_ask(struct kid *k, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void kid_tell(struct kid *k, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The acknowledgement is waited for so long. */
enum outcome kid_put(
	struct kid *from, const struct kid *to, size_t n, unsigned entry, unsigned ms);
/* Until from cannot reach to any more; ms at most. */
void kid_lost_within(struct kid *from, const struct kid *to, unsigned ms);
void kid_kill(struct kid *k);
/* Leaves in order. */
void kid_leave(struct kid *k);
int kid_status(struct kid *k);
/* The directory of the domain is there no more. */
void expect_nothing_left(void);

#endif
