/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cpulist - sets of CPUs as text, in the kernel's form: "0,2-3"
 *
 * A list has numbers and ranges with commas, in any order, without blanks; CPUs go up
 * to P3_CPUS_MOST - 1.  Any thread may call these functions; there is no state.
 */
#ifndef P3_SHM_CPULIST_H
#define P3_SHM_CPULIST_H

#include "shm/cpuset.h"

#include <stdbool.h>
#include <stddef.h>

/* bytes that the text of any set fits in; a set full of holes has the longest */
#define P3_CPULIST_LEN 40960

/* Parse a list, with or without a newline at its end.  Return false if the text is not
 * a list or the list is empty. */
bool p3_cpulist_parse(const char *text, struct p3_cpuset *set_out);

/* Print the shortest text of a set, cut off if len is less than P3_CPULIST_LEN. */
void p3_cpulist_print(const struct p3_cpuset *set, char *text_out, size_t len);

#endif
