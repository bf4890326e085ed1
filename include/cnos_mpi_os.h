/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cnos_mpi_os.h - the ranks of a job, for programs of Cray XT
 *
 * These functions give the same answers as those of portals3_runtime.h.  A process that
 * no launcher started has the rank that PtlSetRank and the other Set functions gave it,
 * else rank 0 of 1.
 *
 * Unlike other functions these start the library: they call PtlInit if the program has
 * not done so, and need no PtlFini.  They return -1 if the library cannot start (reported
 * on stderr), and in a forked child that has not called PtlInit and so has no part in the
 * job.  None changes errno.
 */
#ifndef CNOS_MPI_OS_H
#define CNOS_MPI_OS_H

#include <portals3.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A process of the job; copy the members into a target_id or match_id. */
typedef struct cnos_nidpid_map_t {
	ptl_nid_t nid;
	ptl_pid_t pid;
} cnos_nidpid_map_t;

/*
 * cnos_get_rank, cnos_get_size - the own rank and the size of the job
 *
 * Return the own rank, 0 to size - 1, and the number of processes in the job; or -1 if
 * they are not known.
 *
 * Any thread; do not block.
 */
int cnos_get_rank(void);
int cnos_get_size(void);

/*
 * cnos_get_nidpid_map - the node and process ids of all ranks
 *
 *	map		out	array of the library, indexed by rank; do not change or
 *				free it
 *
 * Returns the number of processes, which is the number of elements; or -1, with map
 * unchanged, if map is NULL, some ids are not known, or there is no memory.
 *
 * The ids are those on PTL_IFACE_DEFAULT or, while the process has initialised
 * PTL_IFACE_SS only, those on PTL_IFACE_SS.  All are there before PtlNIInit, if all
 * processes let the library choose their pid (PTL_PID_ANY).  The id of a process that
 * asks for another pid is right after a barrier, the own id when PtlNIInit has returned.
 * The array stays, also after PtlFini; a further call brings it up to date.
 *
 * Any thread; does not block.
 */
int cnos_get_nidpid_map(cnos_nidpid_map_t **map);

/*
 * cnos_barrier, cnos_pm_barrier - wait until all processes of the job have called it
 *
 *	flag		in	ignored
 *
 * Same as PtlXBarrier; under yod they work after PtlFini, too.  On a Cray XT programs
 * called cnos_pm_barrier, a barrier of the launcher, at their end.  Here both are the
 * same barrier: a process that calls one meets processes that call the other.
 *
 * Return 0, or -1 if a process of the job died or left before all had called; in a job of
 * another launcher also if this process has no interface.
 *
 * One thread of a process at a time; the program has to ensure this.  Not from signal
 * handlers.  Blocks until all processes have called, or one of them is gone.
 */
int cnos_barrier(void);
int cnos_pm_barrier(int flag);

/*
 * cnos_barrier_init - prepare the barrier
 *
 *	ni_handle	in	ignored
 *
 * Does nothing: the barrier is not made of messages.  Returns 0 always.
 *
 * Any thread; does not block, is local.
 */
int cnos_barrier_init(ptl_handle_ni_t ni_handle);

/*
 * cnos_register_ptlid - tell the launcher the caller's process id
 *
 *	id		in	ignored
 *
 * Does nothing, since PtlNIInit tells it.  Returns 0 always.
 *
 * Any thread; does not block.
 */
int cnos_register_ptlid(ptl_process_id_t id);

/*
 * cnos_launcher - the launcher of this process
 *
 * Returns CNOS_LAUNCHER_YOD if yod started the process, else 0.
 *
 * Any thread; does not block.
 */
int cnos_launcher(void);

#define CNOS_LAUNCHER_YOD 1

#ifdef __cplusplus
}
#endif

#endif
