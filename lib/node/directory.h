/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * directory - tables of the ids of the job's ranks
 *
 * Process-private tables that any thread reads at any time, while another replaces or
 * frees them: guarded by RCU (liburcu).  There are two of them: the launcher's, with an
 * entry for each node that the life thread keeps up to date in place; and the program's
 * own, given by PtlSetNIDMap and PtlSetPIDMap and replaced as a whole.  The functions
 * have no other state.
 *
 * Calls at the same time ("-" no lock, "X" caller serializes):
 *			read	replace
 *	read		 -	 -
 *	replace		 -	 X
 *
 * Memory ordering:
 *	RCU.1	pointer: replace releases -> readers acquire (the table is whole)
 *	RCU.2	end of reading -> free of the old table: liburcu's grace period; announced
 *		once more by a word of our own, since the checkers cannot see into liburcu
 *
 * Reading is wait-free; replacing waits for the readers of this process, which never
 * block inside.
 */
#ifndef P3_LIB_NODE_DIRECTORY_H
#define P3_LIB_NODE_DIRECTORY_H

#include "shm/atomics.h"
#include "shm/job.h"

struct p3_member {
	p3_a32 nid; /* or P3_UNKNOWN */
	p3_a32 pid[P3_JOB_NIS];
};

#define P3_UNKNOWN 0xffffffffu

struct p3_directory {
	struct p3_directory *next_kept;
	bool ranked;          /* rank is valid */
	bool own[P3_JOB_NIS]; /* the program gave pids for that interface alone */
	uint32_t rank;
	uint32_t size; /* 0: unknown */
	struct p3_member member[];
};

typedef _Atomic(struct p3_directory *) p3_directory_ptr;

/* Make a table whose members are all unknown; return NULL without memory.  It is plain
 * memory until it is installed. */
struct p3_directory *p3_directory_new(uint32_t size);

/* Return the table (NULL: none), which stays until p3_directory_done; do not block
 * between. */
const struct p3_directory *p3_directory_read(p3_directory_ptr *where);
void p3_directory_done(void);

/* Install a new table (or NULL) and free the old one, or keep it in a forked child:
 * threads that were reading in the parent do not exist there, and waiting for them would
 * never end. */
void p3_directory_replace(p3_directory_ptr *where, struct p3_directory *now);

/* Enter the ids of a rank in the table, except pids that are P3_JOB_NO_PID.  The caller
 * has an open interface, so that no thread replaces the table meanwhile. */
void p3_directory_set(p3_directory_ptr *where, uint32_t rank, uint32_t nid,
	const uint32_t pid[P3_JOB_NIS]);

#endif
