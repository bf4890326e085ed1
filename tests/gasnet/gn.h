/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gn - the conformance suite of GASNet: one test for each statement of the checklist
 *
 *	STATEMENT(64, blockuntil_true_at_start)
 *	{
 *		...
 *	}
 *
 * There are two kinds of programs.  A *job* program (gn_program.is_driver false) runs
 * under yod.  Its frame calls gasnet_init and gasnet_attach with gn_program's table and
 * segment; then all nodes run its statements in the order of their numbers.  A is node 0,
 * B is node 1; with one node they are the same.
 *
 * A *driver* runs alone, and its statements start jobs: scenes of the same program
 * (SCENE(name), which call GASNet themselves), or commands.  They check the status, the
 * output, the time and the remains of the job.
 *
 * A check that fails prints the statement, the file and line and the values, and ends the
 * job.  In a WEAK_STATEMENT, one of weak evidence, it is reported as well and the rest of
 * this node's part is skipped, but nothing fails.
 *
 *	gn_NAME_MODE            all of its statements; TAP lines on standard output
 *	gn_NAME_MODE NUMBER...  these statements only
 */
#ifndef P3_TESTS_GASNET_GN_H
#define P3_TESTS_GASNET_GN_H

#include <gasnet.h>

#include "../support/patience.h"

#include <stdbool.h>
#include <stdint.h>

enum { GN_STATEMENTS = 167, GN_NODES = 64, GN_WORDS = 64 };

struct gn_program {
	bool is_driver;
	gasnet_handlerentry_t *table;
	int entries;
	uintptr_t segment; /* bytes; 0: GN_SEGMENT */
	/* If not NULL, the job runs this instead of statements. */
	void (*whole)(int argc, char **argv);
};
extern const struct gn_program gn_program; /* each program defines it */

#define GN_AREA_MOST ((uintptr_t)1 << 30) /* GASNET_SEGMENT_EVERYTHING */
#define GN_SEGMENT   ((uintptr_t)4 << 20)
#define GN_TABLE(t)  .table = (t), .entries = (int)(sizeof(t) / sizeof(t)[0])

/* State that the nodes of a job, and its driver, share beside GASNet. */
struct gn_job {
	_Atomic uint32_t opened, arrived, phase, ended, failed, skipped;
	_Atomic uint64_t mark_ms;         /* time of gn_mark() */
	_Atomic int32_t pid[GN_NODES];    /* of the nodes of a scene */
	_Atomic uintptr_t area[GN_NODES]; /* see gn_attach() */
	_Atomic uint64_t word[GN_WORDS];  /* zero at the start of each test */
};
extern struct gn_job *gn_job;

struct gn {
	unsigned rank, size;
	bool is_a, is_b;
	gasnet_node_t a, b, next, before; /* next and before: neighbors on a ring */
	gasnet_seginfo_t seg[GN_NODES];
	int argc;
	char **argv; /* arguments of a scene, behind its name */
};
extern struct gn gn;

#ifdef GASNET_PAR
#define GN_IS_PAR true
#else
#define GN_IS_PAR false
#endif
#ifdef GASNET_DEBUG
#define GN_IS_DEBUG true
#else
#define GN_IS_DEBUG false
#endif

typedef void gn_fn(void);
void gn_register(int number, const char *name, bool weak, gn_fn *fn);
void gn_register_scene(const char *name, gn_fn *fn);

#define GN_TEST_(number, name, weak)                                                     \
	static void gn_##number##_##name(void);                                          \
	__attribute__((constructor)) static void gn_add_##number(void)                   \
	{                                                                                \
		gn_register(number, #name, weak, gn_##number##_##name);                  \
	}                                                                                \
	static void gn_##number##_##name(void)

#define STATEMENT(number, name)      GN_TEST_(number, name, false)
#define WEAK_STATEMENT(number, name) GN_TEST_(number, name, true)

#define SCENE(name)                                                                      \
	static void gn_scene_##name(void);                                               \
	__attribute__((constructor)) static void gn_add_scene_##name(void)               \
	{                                                                                \
		gn_register_scene(#name, gn_scene_##name);                               \
	}                                                                                \
	static void gn_scene_##name(void)

/* ---- checks ---- */

_Noreturn void gn_fail(const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Skip this node's part; each node calls it. */
_Noreturn void gn_skip(const char *reason);
#define NEED_NODES(n)                                                                    \
	do {                                                                             \
		if (gn.size < (n))                                                       \
			gn_skip("needs " #n " nodes");                                   \
	} while (0)
#define NEED_PAR()                                                                       \
	do {                                                                             \
		if (!GN_IS_PAR)                                                          \
			gn_skip("PAR only");                                             \
	} while (0)
#ifdef GASNET_SEGMENT_EVERYTHING
#define GN_HAS_SEGMENT false
#else
#define GN_HAS_SEGMENT true
#endif
#define NEED_SEGMENT()                                                                   \
	do {                                                                             \
		if (!GN_HAS_SEGMENT)                                                     \
			gn_skip("all memory is the segment");                            \
	} while (0)
#define NEED_DEBUG()                                                                     \
	do {                                                                             \
		if (!GN_IS_DEBUG)                                                        \
			gn_skip("debug builds only");                                    \
	} while (0)

#ifdef __SANITIZE_THREAD__
#define NO_TSAN(reason) gn_skip("ThreadSanitizer: " reason)
#else
#define NO_TSAN(reason) ((void)0)
#endif

#define CHECK(truth)                                                                     \
	do {                                                                             \
		if (!(truth))                                                            \
			gn_fail(__FILE__, __LINE__, "not so: %s", #truth);               \
	} while (0)

#define CHECK_EQ(is, want)                                                               \
	do {                                                                             \
		long long is_ = (long long)(is), want_ = (long long)(want);              \
		if (is_ != want_)                                                        \
			gn_fail(__FILE__, __LINE__,                                      \
				"%s is %lld (%#llx), not %lld (%#llx)", #is, is_,        \
				(unsigned long long)is_, want_,                          \
				(unsigned long long)want_);                              \
	} while (0)

#define CHECK_RC(call, want)                                                             \
	do {                                                                             \
		int rc_ = (call);                                                        \
		if (rc_ != (want))                                                       \
			gn_fail(__FILE__, __LINE__, "%s gives %s, not %s", #call,        \
				gasnet_ErrorName(rc_), #want);                           \
	} while (0)

#define CHECK_OK(call) CHECK_RC(call, GASNET_OK)

/* ---- jobs ---- */

/* Wait for all nodes, outside of GASNet; poll GASNet meanwhile.  The order between two
 * nodes' memory is that of a lock. */
void gn_barrier(void);
/* The same without a GASNet call. */
void gn_meet(void);
/* Serve GASNet until the condition holds or the limit is over. */
#define UNTIL(cond)                                                                      \
	do {                                                                             \
		struct patience until_ = patience_begin();                               \
		while (!(cond))                                                          \
			gn_serve(__FILE__, __LINE__, &until_, #cond);                    \
	} while (0)
/* The same without a GASNet call. */
#define AWAIT(cond)                                                                      \
	do {                                                                             \
		struct patience await_ = patience_begin();                               \
		while (!(cond))                                                          \
			gn_look(__FILE__, __LINE__, &await_, #cond);                     \
	} while (0)
void gn_serve(const char *file, int line, struct patience *p, const char *cond);
void gn_look(const char *file, int line, struct patience *p, const char *cond);

uint64_t gn_us(void); /* monotonic */
uint64_t gn_ms(void);
void gn_sleep_ms(unsigned ms);
/* Compute for a time without any call of GASNet. */
void gn_compute_ms(unsigned ms);
/* Start threads of this process; gn_join() waits for all of them. */
void gn_thread(void (*fn)(unsigned nth), unsigned nth);
void gn_join(void);
/* Return zeroed memory that lives until the end of the test. */
void *gn_alloc(size_t len);

/* ---- data ---- */

/* Return the next number of a sequence. */
uint64_t gn_next(uint64_t *seed);
/* Return a number below n. */
size_t gn_below(uint64_t *seed, size_t n);
/* Return the seed of this run: GN_SEED, or 1. */
uint64_t gn_seed(void);

/* Return an address in a node's segment. */
void *gn_at(gasnet_node_t node, size_t offset);
void *gn_own(size_t offset);
/* Return a byte that follows from seed and place. */
unsigned char gn_byte(unsigned seed, size_t i);
void gn_fill(void *at, size_t len, unsigned seed);
/* Check that the bytes at "at" are those of gn_fill(). */
void gn_check_bytes(
	const char *file, int line, const void *at, size_t len, unsigned seed);
#define CHECK_BYTES(at, len, seed) gn_check_bytes(__FILE__, __LINE__, at, len, seed)
/* Check that all bytes at "at" have this value. */
void gn_check_all(const char *file, int line, const void *at, size_t len, int value);
#define CHECK_ALL(at, len, value) gn_check_all(__FILE__, __LINE__, at, len, value)

/* ---- drivers ---- */

struct gn_run {
	int status; /* exit status, 128 + signal; -1 if it did not end in time */
	uint64_t ms;
	uint64_t word[GN_WORDS]; /* those of gn_job at the end of a scene */
	char out[1 << 15], err[1 << 15];
};

/* Give a further variable to the next job; gn_job_of() forgets all of them. */
void gn_env(const char *name, const char *value);
/* Run a command of the shell. */
struct gn_run *gn_sh(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Run a scene of this program under yod with a number of nodes, with further arguments in
 * one string.  Check that no process and no name below /dev/shm is left. */
struct gn_run *gn_scene(unsigned nodes, const char *scene, const char *arguments);
/* The same in two steps; between them the driver sees gn_job, and the pid of yod. */
pid_t gn_scene_start(unsigned nodes, const char *scene, const char *arguments);
struct gn_run *gn_scene_end(void);
/* Check the status, and that stdout and stderr together contain the text. */
void gn_check_run(const char *file, int line, const struct gn_run *r, int status);
#define CHECK_STATUS(run, status) gn_check_run(__FILE__, __LINE__, run, status)
/* Check that the job ended with a status other than 0 and with a message. */
void gn_check_fatal(const char *file, int line, const struct gn_run *r);
#define CHECK_FATAL(run) gn_check_fatal(__FILE__, __LINE__, run)

/* ---- nodes of scenes ---- */

/* Call gasnet_init, and join gn_job. */
void gn_scene_init(void);
/* Call gasnet_attach with gn_program's table and one MiB. */
void gn_scene_attach(void);
/* The same with a segment of gasnet_getMaxGlobalSegmentSize(). */
void gn_attach_most(void);
void gn_scene_up(void); /* gn_scene_init() and gn_scene_attach() */
/* The job is to end from now on. */
void gn_mark(void);
/* End this scene on all nodes in an orderly way. */
_Noreturn void gn_scene_done(void);

#endif
