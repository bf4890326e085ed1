/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cpulist - sets of CPUs as text, in the kernel's form: "0,2-3"
 *
 * Numbers and ranges with commas, in any order; no blanks.  CPUs up to CPU_SETSIZE - 1.
 */
#ifndef P3_SHM_CPULIST_H
#define P3_SHM_CPULIST_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

#define P3_CPULIST_LEN 5120 /* of any set's text; one that is full of holes is longest */

/* False: that is no list, or an empty one.  A newline at the end is no matter. */
bool p3_cpulist_parse(const char *text, cpu_set_t *set_out);

/* The shortest text of a set; cut off if len is less than P3_CPULIST_LEN. */
void p3_cpulist_print(const cpu_set_t *set, char *text_out, size_t len);

#endif
