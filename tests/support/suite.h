/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * suite - the frame of a conformance suite: statements, results, threads, memory, data
 *
 * A program of a suite holds some statements of its checklist (statements.txt), each a
 * function behind STATEMENT(number, name), and prints a TAP line for each of them:
 *
 *	NAME             all of its statements, in the order of their numbers
 *	NAME NUMBER...   these statements only
 *
 * A check that fails prints the statement, the process, the file and line and the values.
 * In a WEAK_STATEMENT, one of weak evidence, nothing fails thereby.
 *
 * tests/spec, tests/cci and tests/gasnet each add the part that starts their processes.
 * That part defines `suite` and the functions at the end of this header.
 */
#ifndef P3_TESTS_SUITE_H
#define P3_TESTS_SUITE_H

#include "check.h"
#include "patience.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { WEAK = 1 }; /* flag of a statement; a suite may have others */

typedef void suite_fn(void);

struct statement {
	int number;
	const char *name;
	unsigned processes; /* 0: as many as the job has */
	int flags;
	suite_fn *fn;
};

void statement_add(
	int number, const char *name, unsigned processes, int flags, suite_fn *fn);
#define STATEMENT_OF(number, name, processes, flags)                                     \
	static void statement_##number##_##name(void);                                   \
	__attribute__((constructor)) static void add_##number##_##name(void)             \
	{                                                                                \
		statement_add(                                                           \
			number, #name, processes, flags, statement_##number##_##name);   \
	}                                                                                \
	static void statement_##number##_##name(void)

/* A function that other processes of the test run: SCENE(name) { ... } */
#define SCENE(name)                                                                      \
	static void scene_##name(void);                                                  \
	__attribute__((constructor)) static void add_scene_##name(void)                  \
	{                                                                                \
		scene_add(#name, scene_##name);                                          \
	}                                                                                \
	static void scene_##name(void)
void scene_add(const char *name, suite_fn *fn);
/* Run the scene; return false if there is none of this name. */
bool scene_run(const char *name);

/* Leave this process's part of the statement out; the table shows the reason. */
_Noreturn void suite_skip(const char *reason);

/* ---- threads and memory ---- */

/* Start a thread of this process; it is joined at the end of the test at the latest. */
struct thread;
struct thread *thread_start(void (*fn)(void *arg), void *arg);
void thread_join(struct thread *t);
void threads_join(void);
/* Return zeroed memory that lives until the next test begins. */
void *suite_alloc(size_t len);
void suite_free(void);

/* ---- processes that meet ---- */

struct meeting {
	_Atomic uint32_t opened, arrived, phase;
};
/* Wait for n processes; look at the state, and sleep so long between two looks. */
void meeting_come(
	struct meeting *m, unsigned n, void (*look)(struct patience *p), unsigned nap_us);
/* Map memory that begins with a meeting and that n processes of a job share: the file
 * that this variable names, if hosts share no other memory (tests/hosts/run.sh), or
 * memory of this machine. */
#define SUITE_FILE "P3_SUITE_FILE"
void *meeting_open(const char *name, size_t size, unsigned n);
/* Map a file as shared memory, and make it long enough. */
void *map_shared(int fd, size_t size);

/* ---- data ---- */

/* Return a byte that follows from seed and place. */
unsigned char byte_of(unsigned seed, size_t i);
void fill_bytes(void *at, size_t len, unsigned seed);
/* Check that the len bytes at "at" are bytes from.. of the pattern, or all this value. */
void check_bytes(const char *file, int line, const void *at, size_t from, size_t len,
	unsigned seed);
void check_all(const char *file, int line, const void *at, size_t len, int value);
#define CHECK_ALL(at, len, value) check_all(__FILE__, __LINE__, at, len, value)

/* ---- for the frames of the suites ---- */

struct suite {
	int statements;      /* of the checklist */
	const char *table;   /* the document that lists them */
	const char *outside; /* name of what fails in no statement */
	int status;          /* exit status of a process in which a check fails */
	bool together;       /* statements share processes (support/ranks.h) */
};
extern const struct suite suite; /* each suite defines it, and the next two */
/* Say which process this is. */
void suite_who(char *text, size_t n);
/* Note that a check has failed.  Return true if this thread gives up its part of the
 * test, which it can, and false to end the process. */
bool suite_failed(bool can_give_up);

extern const struct statement *suite_now;
extern const char *suite_skipped; /* reason of suite_skip() in this process */

const struct statement *statement_of(int number);
/* Run a function up to its end, or to a check that fails or skips. */
void suite_part(suite_fn *fn);
/* Print the plan; return 0, with a message, if no statement is wanted. */
int suite_plan(int argc, char **argv, bool prints);
/* Call run() for each statement that is wanted. */
void suite_run(int argc, char **argv, void (*run)(const struct statement *s));
/* Print the TAP line of suite_now. */
void suite_report(bool good, const char *skipped);

#endif
