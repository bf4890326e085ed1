/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * job - the launcher that started this process, and the job's other nodes
 *
 *	job.c		the search for the launcher, the NIC, joining and leaving
 *	launched.c	rank and job of a process that a launcher other than yod started
 *	pmix.c		the modex of such a job on several hosts
 *	yod.c		the connection to yod, its life thread, and the modex by yod
 *
 * A file calls only files below it in this list.  The state is in struct p3_node: the
 * lock node->life guards it, and the life thread takes that lock for each packet that yod
 * sends.  The table names the functions of this header without the prefix p3_job_, and
 * the locks that their callers hold:
 *
 *	begin, end		node->call, and not node->life
 *	start_nic, enter, join,
 *	pids, leave, exit	node->call and node->life
 *	send_to_yod		node->life
 *	wake, ask, meet, hold	no lock is needed; the caller may hold the NIC's lease
 */
#ifndef P3_LIB_JOB_JOB_H
#define P3_LIB_JOB_JOB_H

#include "lib/domain/mesh.h"
#include "lib/node/node.h"

/* Find the launcher, and take rank, size and ids from it; under yod, start the life
 * thread.  Return 0 or -errno; -EINVAL comes after an error line. */
int p3_job_begin(struct p3_node *node);
/* End the job's life thread.  The socket stays open, since its end would be the end of
 * the node for yod, and PtlInit may come again. */
void p3_job_end(struct p3_node *node);

/* Take (enter) or give up (exit) the node's place in the domain, if it has a domain.
 * Call them while the NIC does not run.  Return 0 or -errno. */
int p3_job_enter(struct p3_node *node);
void p3_job_exit(struct p3_node *node);
/* Start the node's NIC.  Return 0, or -errno after an error line. */
int p3_job_start_nic(struct p3_node *node, struct p3_nic **nic_out);
/* Introduce this node to the other nodes and wait for their answers.  Return 0 or
 * -errno. */
int p3_job_join(struct p3_node *node, struct p3_nic *nic);
/* Tell the other nodes the process ids of this node's interfaces, which have changed. */
void p3_job_pids(struct p3_node *node);
/* Tell the other nodes that this one leaves; the NIC stops after that. */
void p3_job_leave(struct p3_node *node);

/* Send to yod as p3_job_send does; return -EPIPE also if the program has closed the
 * socket.  With descriptors it waits, without the lock node->life, while the kernel lets
 * this user send no more of them. */
int p3_job_send_to_yod(
	struct p3_node *node, const struct p3_job_msg *m, const int *fds, unsigned nfds);
/* Wake the life thread to serve the NIC's questions.  If the program has closed the
 * thread's eventfd, the thread notices that at its next check, within a second. */
void p3_job_wake(struct p3_node *node);

/* The NIC's conf.ask, conf.meet and conf.hold (nic.h); arg is the node. */
void p3_job_ask(void *arg, uint32_t question);
void p3_job_meet(void *arg, uint32_t node);
void p3_job_hold(void *arg);

/* The rest is for the files of this folder. */

/* ---- launched.c ---- */

/*
 * The rank and job that a launcher other than yod gives come from the environment:
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
 * functions, one thread at a time; they have no state.
 */

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

/* ---- pmix.c ---- */

/*
 * The modex (lib/domain/mesh.h) by PMIx, which mpirun, prterun and srun --mpi=pmix offer;
 * NULL if the library was built without PMIx.
 *
 * libpmix is loaded when the job turns out to have several hosts; other programs neither
 * link nor load it.  Only pmix.c calls it, and only Init, Put, Commit, Fence, Get and
 * Finalize.  If libpmix has them, pmix.c also uses two more things.  The event of a lost
 * connection says that the launcher's process on this host has ended, and cannot end this
 * process any more; so this process ends by itself, as a node of a killed yod does
 * (yod.c).  The query for the table of processes shows ranks that have ended before they
 * called PtlNIInit; then the fence fails.
 *
 * The state is static: a process takes part in one job of PMIx.
 */
extern const struct p3_modex_ops *const p3_pmix;

/*
 * For the rest of this header the caller holds the lock node->life, unless the function
 * says otherwise; the state is in struct p3_node.
 */

/* ---- yod.c: PtlInit and PtlFini; the caller does not hold node->life ---- */

/* Find yod's socket; no other thread uses the node.  Return 0, also without one, or
 * -EINVAL after a line. */
int p3_job_find_yod(struct p3_node *node);
/* Introduce this process to yod, and take rank, size and ids from the answer; no other
 * thread uses the node.  Set *in_domain_out to true if the job is in a domain.  Return 0
 * or -errno. */
int p3_job_introduce(struct p3_node *node, bool *in_domain_out);
/* Start the life thread.  Return 0 or -errno. */
int p3_job_start_life(struct p3_node *node);
/* End the life thread. */
void p3_job_stop_life(struct p3_node *node);

#endif
