/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launched - rank and job of a process that a launcher other than yod has started, from
 * the environment
 *
 *	Open MPI	OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE; PMIX_NAMESPACE, or a
 *			variable of older versions
 *	PMI (MPICH)	PMI_RANK, PMI_SIZE; PMI_JOBID, or the maker of the socket PMI_FD
 *	PMIx		PMIX_RANK, the size of Open MPI or Slurm; PMIX_NAMESPACE
 *	Slurm		SLURM_PROCID, SLURM_STEP_NUM_TASKS or SLURM_NTASKS; SLURM_JOB_ID
 *			with SLURM_STEP_ID
 *
 * A job and the jobs that it spawns are a family (docs/design/families.md).  In Open MPI,
 * a job's name contains the family's name and the job's number in it.  In MPICH without
 * PMI_JOBID, the process that made the socket PMI_FD shows both: the number is in its
 * command line, and the process id of its parent names the family.  Any other job is a
 * family of its own; if it has no name, the process that made PMI_FD names it, or else
 * the parent of its ranks.
 *
 * The first of these launchers whose rank variable is set counts.  A batch script of
 * Slurm has that variable, too, but no step, so it is not a rank.  PtlInit calls these
 * functions, one thread at a time; their only state is the lock of p3_launched_claim().
 */
#ifndef P3_LIB_JOB_LAUNCHED_H
#define P3_LIB_JOB_LAUNCHED_H

#include "shm/domain.h"

struct p3_launched {
	uint32_t rank, size;
	uint32_t jid; /* the same for all ranks, and for no other job of the family */
	bool spread;  /* the ranks are on several hosts */
	uint32_t job; /* number of the job in its family, or 0: a family of its own */
	char domain[P3_DOMAIN_NAMES + 1]; /* the domain in which the family meets */
};

/* Read the rank.  Return 1 if there is one; 0 if there is none, or if PTL3_DOMAIN or
 * PTL3_LAUNCHED tells to ignore it; or -EINVAL, after a line, if it makes no sense or
 * not all ranks are on this host and nothing can carry their cards. */
int p3_launched_read(struct p3_launched *out);

/* Return 1 if the process is to be the rank that a launcher says, 0 if it is not
 * (PTL3_LAUNCHED=off), or -EINVAL after a line: the setting has another value. */
int p3_launched_is_asked(void);

/*
 * Make this process the only one that uses the socket to yod, until it ends or becomes
 * another program.  Processes that were forked before PtlInit share the socket, and
 * each would take packets that yod sends to another one; a record lock, which no child
 * inherits, says which of them is the rank.  Return 0, or -EINVAL after a line: another
 * process is the rank.
 */
int p3_launched_claim(int sock);

/* The remedy in messages for both kinds of launchers. */
#define P3_LAUNCHED_ONE                                                                  \
	"start one process of a rank at a time, or set PTL3_LAUNCHED=off for those "     \
	"that "                                                                          \
	"are none of the ranks"

#endif
