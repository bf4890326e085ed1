/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perf - the parts of portalperf
 *
 *	portalperf.c	Portals: descriptors, the timed loops, the checks of the data
 *	perf_raw.c	the raw hand-over of a cache line between the same two CPUs
 *	perf_opt.c	options, and how many rounds a size gets
 *	perf_report.c	percentiles, warnings, table, JSON
 */
#ifndef PORTALPERF_PERF_H
#define PORTALPERF_PERF_H

#include <portals3.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum perf_test { PERF_PUT, PERF_GET, PERF_BIDIR, PERF_TESTS };
enum { PERF_SIZES = 256, PERF_BATCHES = 200 };

struct perf_opt {
	bool test[PERF_TESTS];
	uint64_t size[PERF_SIZES];
	unsigned nsizes;
	uint64_t largest;
	uint64_t iters; /* 0: by size */
	bool quick, raw, poll, pin;
	const char *json; /* file, "-" for stdout, or NULL */
};

struct perf_plan {
	uint64_t warm, batches, each; /* rounds: warm, then batches * each */
};

/* What a rank tells rank 0 after each test and size.  Times are of one batch, means. */
struct perf_result {
	uint32_t test; /* perf_test */
	uint32_t rank; /* pairs are (rank, rank + 1) */
	uint64_t bytes, rounds, batches;
	double median_ns, p99_ns, min_ns;
	uint64_t errors; /* messages with wrong bytes, in this rank */
};

/* The same for raw: 8-byte puts and hand-overs in turns. */
struct perf_raw {
	uint32_t pairs; /* 0: not measured */
	uint32_t each;  /* round trips in each half of a pair */
	double put_ns, raw_ns;
	double ratio, ratio_p10, ratio_p90;
};

/* What else the report says. */
struct perf_setting {
	const struct perf_opt *opt;
	unsigned ranks;
	unsigned ncpus;
	int *cpu; /* of each rank, or -1 */
};

extern const char *const perf_test_name[PERF_TESTS];

/* One line "portalperf: ..." and exit. */
_Noreturn void perf_die(int status, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- perf_opt.c ---- */

/* False: there was an error, or help was asked for; *text_out is to be printed. */
bool perf_opt_parse(struct perf_opt *o, int argc, char **argv, int *status_out,
	char *text_out, size_t room);
struct perf_plan perf_plan_of(const struct perf_opt *o, uint64_t bytes);
struct perf_plan perf_plan_raw(const struct perf_opt *o); /* batches are pairs */

/* ---- perf_raw.c ---- */

struct perf_page; /* two cache lines that a pair of ranks share */

/* Made by one rank, opened by the other through /proc; NULL with errno. */
struct perf_page *perf_page_make(int *fd_out);
struct perf_page *perf_page_open(uint32_t pid, uint32_t fd);
void perf_page_close(struct perf_page *p);

/* rounds round trips, the first rank hands over first; both call it. */
void perf_page_bounce(struct perf_page *p, bool first, uint64_t rounds);

/* ---- perf_report.c ---- */

double perf_now_ns(void);
double perf_percentile(double *sample, uint64_t n, double part); /* sorts */

/* Lines to stderr, at most one for each cause; call it while the other ranks sleep. */
void perf_warn(const struct perf_setting *s);
void perf_report_begin(const struct perf_setting *s);
void perf_report_row(const struct perf_result *r);
void perf_report_raw(unsigned rank, const struct perf_raw *raw);
void perf_report_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The last line, and the JSON; false if that cannot be written (said on stderr). */
bool perf_report_end(uint64_t errors);

#endif
