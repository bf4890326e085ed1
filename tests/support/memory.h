/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory - the memory of this process, as the kernel counts it
 *
 * Any program may include this header; it has no state.
 */
#ifndef P3_TESTS_MEMORY_H
#define P3_TESTS_MEMORY_H

#include <stdio.h>
#include <string.h>

/* Return the KiB of a line of /proc/self/status such as VmRSS; or Pss, in which shared
 * pages count in equal parts.  Return 0 if there is none. */
static inline unsigned long memory_kib(const char *key)
{
	unsigned long kib = 0;
	char line[200], form[32];
	snprintf(form, sizeof form, "%s: %%lu", key);
	FILE *f = fopen(
		strcmp(key, "Pss") == 0 ? "/proc/self/smaps_rollup" : "/proc/self/status",
		"re");
	while (f && !kib && fgets(line, sizeof line, f))
		(void)sscanf(line, form, &kib);
	if (f)
		fclose(f);
	return kib;
}

#endif
