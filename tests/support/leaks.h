/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * leaks - the resources of a process: descriptors, threads, mappings, memory
 *
 * Any test includes it, and compares two looks; it has no state.
 */
#ifndef P3_TESTS_LEAKS_H
#define P3_TESTS_LEAKS_H

#include "descriptors.h"

#include <stdio.h>

struct leaks {
	unsigned long descriptors, threads, mappings;
	unsigned long kib; /* anonymous and shared memory that is resident */
};

/* Sanitizers map memory of their own, and AddressSanitizer keeps freed memory for a
 * while.  Builds with them count neither here, but LeakSanitizer finds leaks. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LEAKS_NO_MEMORY 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LEAKS_NO_MEMORY 1
#endif
#endif

static inline unsigned long leaks_mappings(void)
{
#ifdef LEAKS_NO_MEMORY
	return 0;
#endif
	unsigned long n = 0;
	FILE *f = fopen("/proc/self/maps", "re");
	for (int c; f && (c = getc(f)) != EOF;)
		n += c == '\n';
	if (f)
		fclose(f);
	return n;
}

static inline unsigned long leaks_kib(void)
{
#ifdef LEAKS_NO_MEMORY
	return 0;
#endif
	char line[200];
	unsigned long sum = 0, kib;
	FILE *f = fopen("/proc/self/status", "re");
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "RssAnon: %lu", &kib) == 1 ||
			sscanf(line, "RssShmem: %lu", &kib) == 1)
			sum += kib;
	if (f)
		fclose(f);
	return sum;
}

static inline struct leaks leaks_now(void)
{
	return (struct leaks){descriptors_settled("self"),
		entries_settled("/proc/self/task"), leaks_mappings(), leaks_kib()};
}

/* Look when descriptors and threads are as many as before, or do not become so. */
static inline struct leaks leaks_after(const struct leaks *before)
{
	(void)descriptors_within("self", (unsigned)before->descriptors);
	(void)entries_within("/proc/self/task", (unsigned)before->threads);
	return leaks_now();
}

#endif
