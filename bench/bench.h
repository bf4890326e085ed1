/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench - the common functions of the benchmark programs
 *
 * A program calls bench_options, bench_begin, then bench_row on rank 0 for
 * each result, and bench_finish.  Wrong data are counted with bench_wrong; they make the
 * status 1.  All ranks must come to bench_finish.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include "measure.h"

#include <portals3.h>

#include <inttypes.h>
#include <jansson.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct bench {
	const char *program;
	const char *about;        /* for --help: usage, and the measured quantity */
	const char *legend;       /* printed above the table; may be NULL */
	ptl_ni_limits_t *desired; /* limits of the interface; may be NULL */
	/* options of all programs */
	bool quick, no_pin;
	/* of some programs */
	bool starts;      /* descriptors have START events, too */
	const char *json; /* name of a file, "-" for stdout, or NULL */
	/* identity of this rank */
	ptl_handle_ni_t ni;
	unsigned rank, size;
	struct cpus cpus; /* those that the job may use; a rank has one of them */
	unsigned ncpus;   /* number of them */
	uint64_t errors;
	/* rank 0: the report */
	FILE *table, *json_file;
	json_t *document, *rows, *warnings;
	char columns[600];      /* of the previous row */
	uint64_t stolen, ticks; /* ticks of all CPUs, at bench_begin */
};

/* ---- a program ---- */

/* Open the interface, and find the ranks and the CPUs; bench_options calls it. */
void bench_start(struct bench *b);
/* Leave with an error line unless the number of ranks is in the range. */
void bench_want_ranks(const struct bench *b, unsigned least, unsigned most);
/* Pin the rank, warn, and begin the report. */
void bench_begin(struct bench *b);
/* Allocate as bench_allocate does, in the shared heap if it has room. */
void *bench_allocate_shared(uint64_t length);
/* Collect the errors of all ranks, and end the report.  Return the status. */
int bench_end(struct bench *b);
/* Do that, and leave. */
_Noreturn void bench_finish(struct bench *b);
_Noreturn void bench_leave(int status);
/* All ranks: leave with status 2; rank 0 prints the line "program: ...". */
_Noreturn void bench_refuse(const struct bench *b, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void bench_barrier(void);

static const ptl_process_id_t bench_anyone = {PTL_NID_ANY, PTL_PID_ANY};

void *bench_allocate(uint64_t length);
ptl_process_id_t bench_id(const struct bench *b, unsigned rank);
ptl_handle_eq_t bench_queue(const struct bench *b, uint64_t count);
/* Return a descriptor that is not used up. */
static inline ptl_md_t bench_region(const struct bench *b, void *start, uint64_t length,
	unsigned options, ptl_handle_eq_t eq)
{
	return (ptl_md_t){.start = start,
		.length = length,
		.threshold = PTL_MD_THRESH_INF,
		.options = options | (b->starts ? 0 : PTL_MD_EVENT_START_DISABLE),
		.eq_handle = eq};
}
/* Bind a descriptor for this node only: no START events, no threshold. */
ptl_handle_md_t bench_bind(
	const struct bench *b, void *start, uint64_t length, ptl_handle_eq_t eq);
/* Append an entry for all processes to the portal's list: remote offsets, no START
 * events. */
ptl_handle_me_t bench_post(const struct bench *b, ptl_pt_index_t portal, unsigned op,
	void *start, uint64_t length, ptl_handle_eq_t eq);

/* All ranks: put length bytes of each into all[rank] at rank 0; others pass NULL. */
void bench_gather(const struct bench *b, const void *mine, uint64_t length, void *all);

/* ---- errors ---- */

/* Print one line "program: rank N: ..." and exit. */
_Noreturn void bench_die(int status, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Count an error, and print the first few of this rank. */
void bench_wrong(struct bench *b, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
_Noreturn void bench_fail(int rc, const char *what);
/* End the program unless rc is PTL_OK. */
static inline void bench_check(int rc, const char *what)
{
	if (__builtin_expect(rc != PTL_OK, 0))
		bench_fail(rc, what);
}
#define BENCH_DO(function, ...) bench_check(function(__VA_ARGS__), #function)

/* Put all of a descriptor; while there is no room, operations that wait go on. */
static inline void bench_put(const struct bench *b, ptl_handle_md_t md, ptl_ack_req_t ack,
	ptl_process_id_t to, ptl_pt_index_t portal, ptl_match_bits_t bits,
	uint64_t remote, ptl_hdr_data_t hdr)
{
	int rc;
	while (__builtin_expect(
		(rc = PtlPut(md, ack, to, portal, 0, bits, remote, hdr)) == PTL_NO_SPACE,
		0))
		PtlProgress(b->ni, 0);
	bench_check(rc, "PtlPut");
}

/* ---- events ---- */

enum { BENCH_KINDS = 12, BENCH_BITS = 0x9e4f };
enum { BENCH_LOSE_NONE = -1 };

struct bench_watch {
	ptl_handle_eq_t eq;
	bool poll;    /* use PtlEQPoll instead of PtlEQWait */
	bool yields;  /* use PtlEQGet, and sched_yield if that finds no event */
	int may_lose; /* kind of event that a full queue may drop, or none */
	uint64_t seen[BENCH_KINDS];
	ptl_seq_t sequence;
	ptl_event_t last;
};

/* Restart the counts; the queue must be empty. */
void bench_watch_reset(struct bench_watch *w, int may_lose);
void bench_watch_odd(struct bench_watch *w, int rc);
/* Check that the counts are exactly as expected and the queue is empty; else count an
 * error. */
void bench_expect(struct bench *b, struct bench_watch *w, const char *test,
	ptl_event_kind_t kind, uint64_t count);

static inline void bench_took(struct bench_watch *w, int rc)
{
	if (__builtin_expect(rc != PTL_OK || w->last.ni_fail_type != PTL_NI_OK, 0))
		bench_watch_odd(w, rc);
	w->sequence = w->last.sequence;
	w->seen[w->last.type]++;
}

/* Take an event.  Return false if there is none. */
static inline bool bench_try(struct bench_watch *w)
{
	int rc = PtlEQGet(w->eq, &w->last);
	if (rc == PTL_EQ_EMPTY)
		return false;
	bench_took(w, rc);
	return true;
}

static inline void bench_take(struct bench_watch *w)
{
	int which;
	if (w->yields) {
		while (!bench_try(w))
			sched_yield();
		return;
	}
	bench_took(w, w->poll ? PtlEQPoll(&w->eq, 1, PTL_TIME_FOREVER, &w->last, &which)
			      : PtlEQWait(w->eq, &w->last));
}

static inline void bench_await(
	struct bench_watch *w, ptl_event_kind_t kind, uint64_t count)
{
	while (w->seen[kind] < count)
		bench_take(w);
}

/* ---- options ---- */

struct bench_option {
	const char *name;
	const char *arg;  /* NULL: no argument */
	const char *help; /* --help adds the values that the setter takes */
	bool (*set)(void *to, const char *value);
	void *to;
};

struct bench_number {
	uint64_t value, least, most;
};

enum { BENCH_LIST = 512 };

struct bench_list {
	uint64_t at[BENCH_LIST];
	unsigned n;
	uint64_t least, most;
};

/* Set a list that is empty. */
void bench_default_list(struct bench_list *list, const uint64_t *at, unsigned n);
/* Return the greatest number of a list, or least if that is greater. */
uint64_t bench_largest(const struct bench_list *list, uint64_t least);

/* A choice among words; none chosen means all of them. */
struct bench_words {
	const char *const *name;
	unsigned n;
	bool *on;
};

bool bench_set_flag(void *to, const char *value);   /* bool */
bool bench_set_text(void *to, const char *value);   /* const char * */
bool bench_set_number(void *to, const char *value); /* struct bench_number; K, M, G */
bool bench_set_list(void *to, const char *value);   /* struct bench_list, which it
						     * replaces */
bool bench_set_words(void *to, const char *value);  /* struct bench_words */
void bench_all_words(struct bench_words *w);        /* if none is chosen */

/*
 * Read the options, then open the interface; own ends with a row of zeros.  --help
 * needs no interface.  After an error rank 0 prints a line, and all ranks leave.
 */
void bench_options(
	struct bench *b, const struct bench_option *own, int argc, char **argv);

/* ---- results ---- */

/* Return the median of the quotients of two ways that took n turns. */
double bench_ratio(const double *a, const double *b, uint64_t n);

/* A column: name is also the key in JSON, without blanks that make the column wider, and
 * contains the unit. */
struct bench_cell {
	const char *name;
	const char *text; /* NULL: it is a number */
	double number;
	int digits; /* decimals; 0: a whole number */
};

/* clang-format off */
#define BENCH_TEXT(name, text) {name, text, 0, 0}
#define BENCH_COUNT(name, number) {name, NULL, (double)(number), 0}
#define BENCH_REAL(name, number, digits) {name, NULL, number, digits}
/* clang-format on */
/* Percentiles of a struct bench_stat, whose values are divided to be in a unit. */
#define BENCH_PERCENTILES(s, unit, divisor, digits)                                      \
	BENCH_REAL("p50_" unit, (s).p50 / (divisor), digits),                            \
		BENCH_REAL("p90_" unit, (s).p90 / (divisor), digits),                    \
		BENCH_REAL("p99_" unit, (s).p99 / (divisor), digits)

/* Rank 0: print a line of the table, with its head if the names are new, and of the
 * JSON. */
#define BENCH_ROW(b, ...) bench_row(b, (const struct bench_cell[]){__VA_ARGS__, {0}})

void bench_row(struct bench *b, const struct bench_cell *cells);
void bench_note(struct bench *b, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
