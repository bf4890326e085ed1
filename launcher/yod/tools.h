/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that yod and the other tools use: sets of ranks, CPUs, the trace file. */
#ifndef P3_LAUNCHER_YOD_TOOLS_H
#define P3_LAUNCHER_YOD_TOOLS_H

#include "shm/cpuset.h"
#include "shm/layout.h"
#include "shm/trace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * ranks - a set of ranks in the form that users write, 0,2-3
 *
 * Any thread may call these functions; the state is struct p3_ranks.
 */

#define P3_RANKS_MOST P3_MAX_NODES

struct p3_ranks {
	struct p3_cpuset set; /* of numbers, which are ranks here */
};

_Static_assert(P3_RANKS_MOST <= P3_CPUS_MOST, "a set has room for all ranks");

/* Parse a list such as 0,2-3.  Return false if the text is no such list, or names a
 * rank that is not below P3_RANKS_MOST. */
bool p3_ranks_parse(const char *text, struct p3_ranks *ranks_out);
/* Return the greatest rank; the set is not empty after p3_ranks_parse(). */
uint32_t p3_ranks_last(const struct p3_ranks *ranks);
/* Print the ranks as p3_ranks_parse() reads them; a rest that does not fit becomes
 * "...". */
void p3_ranks_print(const struct p3_ranks *ranks, char *text, size_t size);

static inline bool p3_ranks_has(const struct p3_ranks *r, uint32_t rank)
{
	return rank < P3_RANKS_MOST && p3_cpuset_has(&r->set, rank);
}

static inline void p3_ranks_add(struct p3_ranks *r, uint32_t rank)
{
	p3_cpuset_add(&r->set, rank);
}

/*
 * files - texts from files, and the place of this program
 *
 * Any thread may call these functions; there is no state.
 */

/* Read the first line of a file, without its newline.  Return false if there is none;
 * then the line is empty. */
bool p3_line_read(char *line, size_t size, const char *path_fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Return the path of this program, or of a file in its folder, in malloc()ed memory; or
 * NULL with errno. */
char *p3_own_path(const char *beside);

/*
 * tracefile - the traces of a job's nodes in one file: yod --trace writes it
 *
 *	file header | block | block ...
 *
 * A block has the records that one incarnation of a node had written when it ended,
 * without torn ones.  The file's header and each block have a reading of the trace's
 * clock and of CLOCK_MONOTONIC: two such pairs, far apart, give the clock's rate.
 *
 * All numbers are in this machine's format; a reader checks each.  yod's main thread
 * calls these functions; the state is struct p3_tracefile.
 */

#define P3_TRACEFILE_MAGIC  0x31656361727433ffu /* never looks like text */
#define P3_TRACEBLOCK_MAGIC 0x6b636f6c62743370u

enum p3_trace_fate { P3_TRACE_RUNS, P3_TRACE_LEFT, P3_TRACE_DIED, P3_TRACE_DUMPED };

struct p3_trace_look {
	uint64_t ticks, ns;
};

struct p3_tracefile_header {
	uint64_t magic;
	uint32_t version; /* P3_TRACE_VERSION */
	uint32_t size;    /* nodes of the job */
	uint32_t jid;
	uint32_t clock;
	struct p3_trace_look began;
};

struct p3_traceblock_header {
	uint64_t magic;
	uint32_t node; /* as yod numbers it */
	uint32_t fate; /* p3_trace_fate */
	struct p3_trace_look now;
	struct p3_trace_taken taken; /* followed by its entries */
};

static inline struct p3_trace_look p3_trace_look_now(uint32_t clock)
{
	struct p3_trace_look look = {.ns = p3_trace_ticks(P3_TRACE_MONOTONIC)};
	look.ticks = p3_trace_ticks(clock);
	return look;
}

struct p3_tracefile;
struct p3_agent;

/* Make or empty a file; in an agent, send its bytes to yod.  Return 0, or -errno after an
 * error line. */
int p3_tracefile_open(
	const char *path, struct p3_agent *agent, struct p3_tracefile **file_out);
/* Begin the traces of a job. */
void p3_tracefile_begin(struct p3_tracefile *file, uint32_t size, uint32_t jid);
/* Append bytes that are such traces, from an agent; report an error once. */
void p3_tracefile_put(struct p3_tracefile *file, const void *bytes, size_t len);
/* Append the trace of a published segment, if it has one; report an error once. */
void p3_tracefile_add(
	struct p3_tracefile *file, uint32_t node, int published, enum p3_trace_fate fate);
/* Close the file, if it is not NULL.  Return false if not all of it could be written; an
 * error line has said so. */
bool p3_tracefile_close(struct p3_tracefile *file);

#endif
