/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perf_opt - portalperf's options, and the number of rounds for a size
 */
#ifndef BENCH_PERF_OPT_H
#define BENCH_PERF_OPT_H

#include "perf.h"

struct perf_opt {
	bool test[PERF_TESTS];
	struct bench_list sizes;
	struct bench_number iters;  /* 0: depends on the size */
	struct bench_number window; /* messages */
	struct bench_number busy;   /* processes beside the job that never sleep */
	bool no_raw, poll, each, silent, heap, yields;
};

struct perf_plan {
	uint64_t warm, batches, each; /* rounds: warm, then batches * each */
};

extern const char perf_about[];

/* Parse the options.  Exit on an error and after --help. */
void perf_opt_parse(struct perf_opt *o, struct bench *b, int argc, char **argv);
uint64_t perf_opt_largest(const struct perf_opt *o);
struct perf_plan perf_plan_of(const struct perf_opt *o, const struct bench *b,
	enum perf_test t, uint64_t bytes);
struct perf_plan perf_plan_raw(
	const struct perf_opt *o, const struct bench *b); /* batches are pairs */

#endif
