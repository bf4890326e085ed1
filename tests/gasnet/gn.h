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
 * A check that fails ends the job; in a WEAK_STATEMENT only the rest of this node's part
 * is skipped.  support/suite.h has what all suites share.  A program has a name such as
 * gn_am_par, with its mode.
 */
#ifndef P3_TESTS_GASNET_GN_H
#define P3_TESTS_GASNET_GN_H

#include <gasnet.h>
#include <portals3.h>

#include "../support/random.h"
#include "../support/suite.h"

enum { GN_NODES = 64, GN_WORDS = 64 };

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
	struct meeting meeting;
	_Atomic uint32_t ended, failed, skipped;
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

#if defined(GASNET_SEQ)
#define GN_MODE      "seq"
#define GN_MODE_WORD "SEQ"
#elif defined(GASNET_PAR)
#define GN_MODE      "par"
#define GN_MODE_WORD "PAR"
#else
#define GN_MODE      "parsync"
#define GN_MODE_WORD "PARSYNC"
#endif
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

#define STATEMENT(number, name)      STATEMENT_OF(number, name, 0, 0)
#define WEAK_STATEMENT(number, name) STATEMENT_OF(number, name, 0, WEAK)

/* ---- checks ---- */

#define NEED_NODES(n)                                                                    \
	do {                                                                             \
		if (gn.size < (n))                                                       \
			suite_skip("needs " #n " nodes");                                \
	} while (0)
#define NEED_PAR()                                                                       \
	do {                                                                             \
		if (!GN_IS_PAR)                                                          \
			suite_skip("PAR only");                                          \
	} while (0)
#ifdef GASNET_SEGMENT_EVERYTHING
#define GN_HAS_SEGMENT false
#else
#define GN_HAS_SEGMENT true
#endif
#define NEED_SEGMENT()                                                                   \
	do {                                                                             \
		if (!GN_HAS_SEGMENT)                                                     \
			suite_skip("all memory is the segment");                         \
	} while (0)
#define NEED_DEBUG()                                                                     \
	do {                                                                             \
		if (!GN_IS_DEBUG)                                                        \
			suite_skip("debug builds only");                                 \
	} while (0)

#ifdef __SANITIZE_THREAD__
#define NO_TSAN(reason) suite_skip("ThreadSanitizer: " reason)
#else
#define NO_TSAN(reason) ((void)0)
#endif

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

/* Start threads of this process; gn_join() waits for all of them. */
void gn_thread(void (*fn)(unsigned nth), unsigned nth);
void gn_join(void);
/* The syncs of an operation, and a call in the form that has one of them: it returns the
 * handle, or GASNET_INVALID_HANDLE.  tail ends the names, as _bulk does. */
enum gn_sync { GN_BLOCKING, GN_EXPLICIT, GN_IMPLICIT, GN_SYNCS };
#define GN_FORM(sync, name, tail, ...)                                                   \
	((sync) == GN_EXPLICIT                                                           \
			? gasnet_##name##_nb##tail(__VA_ARGS__)                          \
			: ((sync) == GN_BLOCKING                                         \
					  ? gasnet_##name##tail(__VA_ARGS__)             \
					  : gasnet_##name##_nbi##tail(__VA_ARGS__),      \
				  GASNET_INVALID_HANDLE))

/* Return the interface of Portals that GASNet uses, too. */
ptl_handle_ni_t gn_interface(void);

/* ---- data ---- */

/* Return a number below n. */
size_t gn_below(uint64_t *seed, size_t n);
/* Return the seed of this run: GN_SEED, or 1. */
uint64_t gn_seed(void);

/* Return an address in a node's segment. */
void *gn_at(gasnet_node_t node, size_t offset);
void *gn_own(size_t offset);
#define CHECK_BYTES(at, len, seed) check_bytes(__FILE__, __LINE__, at, 0, len, seed)

/* ---- drivers ---- */

struct gn_run {
	int status; /* exit status, 128 + signal; -1 if it did not end in time */
	uint64_t ms;
	uint64_t word[GN_WORDS]; /* those of gn_job at the end of a scene */
	char out[1 << 15], err[1 << 15];
};

/* Give a further variable to the next job, and to no other. */
void gn_env(const char *name, const char *value);
/* Run a command of the shell. */
struct gn_run *gn_sh(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Run a scene of this program under yod with a number of nodes; the text is its name, and
 * further arguments.  Check that no process and no name below /dev/shm is left. */
struct gn_run *gn_scene(unsigned nodes, const char *scene, ...)
	__attribute__((format(printf, 2, 3)));
/* The same in two steps; between them the driver sees gn_job, and the pid of yod. */
pid_t gn_scene_start(unsigned nodes, const char *scene);
struct gn_run *gn_scene_end(void);
/* Numbers of nodes that most scenes run with. */
static const unsigned gn_sizes[] = {1, 2, 3, 8};
#define EACH_SIZE(i) for (int i = 0; i < 4; i++)
/* Run a scene with each of these numbers, and check the status. */
#define CHECK_EACH_SIZE(status, ...)                                                     \
	EACH_SIZE(size_)                                                                 \
	CHECK_STATUS(gn_scene(gn_sizes[size_], __VA_ARGS__), status)
/* Run a job program of this mode under yod, with some statements; settings: assignments
 * of the shell. */
struct gn_run *gn_run_program(unsigned nodes, const char *settings, const char *program,
	const char *statements);
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
/* Return an argument of the scene that is a number. */
int gn_number(int nth);
/* Wait outside of GASNet until all nodes have come here as often. */
void gn_scene_meet(void);
void gn_pass_barrier(void); /* an anonymous one of GASNet */
/* The job is to end from now on. */
void gn_mark(void);
/* End this scene on all nodes in an orderly way. */
_Noreturn void gn_scene_done(void);

/* ---- calls between the files of the frame (gn.c, driver.c); not for statements ---- */

void gn_know_nodes(void);
void gn_attach(uintptr_t segment);
void gn_driver_init(void);
/* End the job that a failed test has left behind. */
void gn_driver_reset(void);
/* Run the scene that the arguments name, as a node of a driver's job. */
_Noreturn void gn_run_scene(int argc, char **argv);

#endif
