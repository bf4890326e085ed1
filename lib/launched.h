/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launched - which rank of which job this process is, by what a launcher other than yod
 * has left in the environment
 *
 *	Open MPI	OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE; PMIX_NAMESPACE
 *	PMI (MPICH)	PMI_RANK, PMI_SIZE; PMI_JOBID, or who made the socket PMI_FD
 *	PMIx		PMIX_RANK, the size of Open MPI or Slurm; PMIX_NAMESPACE
 *	Slurm		SLURM_PROCID, SLURM_STEP_NUM_TASKS or SLURM_NTASKS; SLURM_JOB_ID
 *			with SLURM_STEP_ID
 *
 * The first of them whose rank is there counts.  A batch script of Slurm's is no rank: it
 * has a rank and no step.  Where the job has no name, its ranks' parent is its name.
 */
#ifndef P3_LIB_LAUNCHED_H
#define P3_LIB_LAUNCHED_H

#include "shm/domain.h"

struct p3_launched {
	uint32_t rank, size;
	uint32_t jid;                     /* the same for all ranks */
	char domain[P3_DOMAIN_NAMES + 1]; /* where they meet */
};

/* 1; 0: nobody has, or PTL3_DOMAIN or PTL3_LAUNCHED says that it does not count; or
 * -EINVAL: it makes no sense, or not all ranks are on this host; that has been said. */
int p3_launched_read(struct p3_launched *out);

/* Return 1 if the process is to be the rank that a launcher says, 0 if it is not
 * (PTL3_LAUNCHED=off), or -EINVAL after a line: the setting has another value. */
int p3_launched_is_asked(void);

/*
 * Make this process the one that speaks through the socket to yod, until it ends or
 * becomes another program.  Processes that were forked before PtlInit share the socket,
 * and each would take what yod sends to another one, so a record lock, which no child
 * inherits, says which of them it is.  Return 0, or -EINVAL after a line: another process
 * is the rank.
 */
int p3_launched_claim(int sock);

/* The remedy, for both kinds of launchers. */
#define P3_LAUNCHED_ONE                                                                  \
	"start one process of a rank at a time, or set PTL3_LAUNCHED=off for those "     \
	"that "                                                                          \
	"are none of the ranks"

#endif
