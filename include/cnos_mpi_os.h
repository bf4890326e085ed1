/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cnos_mpi_os.h - who is who in a job, as programs of Cray XT ask it
 *
 * The same answers as those of portals3_runtime.h, for programs that were started by yod
 * there.  A process that yod did not start is what PtlSetRank and the Set functions say,
 * else rank 0 of 1.
 *
 * Unlike other functions these start the library: PtlInit is called if that has not been
 * done, and no PtlFini is needed for it.  If the library cannot start (reported on
 * stderr), and in a forked child that has not called PtlInit and so has no part in the
 * job, they return -1.  None changes errno.
 */
#ifndef CNOS_MPI_OS_H
#define CNOS_MPI_OS_H

#include <portals3.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A process of the job; fit for target_id and match_id, member by member. */
typedef struct cnos_nidpid_map_t {
	ptl_nid_t nid;
	ptl_pid_t pid;
} cnos_nidpid_map_t;

/*
 * cnos_get_rank, cnos_get_size - which process of how many is this?
 *
 * Return the own rank, 0 to size - 1, and the number of processes in the job; or -1: not
 * known.
 *
 * Any thread; do not block.
 */
int cnos_get_rank(void);
int cnos_get_size(void);

/*
 * cnos_get_nidpid_map - the node and process ids of all ranks
 *
 *	map		out	array, indexed by rank: the library's, to be read only and
 *				not to be freed
 *
 * Returns the number of processes, which are the array's elements; or -1 with map
 * untouched: map is NULL, the ids are not all known, or there is no memory.
 *
 * The ids are those on PTL_IFACE_DEFAULT or, while the process has initialised
 * PTL_IFACE_SS only, those on that.  All are there before PtlNIInit, if all processes let
 * their pid be chosen (PTL_PID_ANY); those that ask for another one are right after a
 * barrier, the own one when PtlNIInit has returned.  The array stays, also after PtlFini;
 * a further call brings it up to date.
 *
 * Any thread; does not block.
 */
int cnos_get_nidpid_map(cnos_nidpid_map_t **map);

/*
 * cnos_barrier, cnos_pm_barrier - wait until all processes of the job have come here
 *
 *	flag		in	not looked at
 *
 * As PtlXBarrier: before and after PtlNIInit, and after PtlFini.  The second was that of
 * the launcher, which programs call in the end; here they are the same barrier, and a
 * process in the one meets those in the other.
 *
 * Return 0, or -1 if a process of the job died, or left it, before all had come.
 *
 * One thread of a process at a time: the caller serialises.  Not from signal handlers.
 * Blocks until all processes have come or one is gone.
 */
int cnos_barrier(void);
int cnos_pm_barrier(int flag);

/*
 * cnos_barrier_init - make the barrier ready
 *
 *	ni_handle	in	not looked at
 *
 * Does nothing: the barrier is not made of messages.  Returns 0 always.
 *
 * Any thread; does not block, is local.
 */
int cnos_barrier_init(ptl_handle_ni_t ni_handle);

/*
 * cnos_register_ptlid - tell the launcher the own process id
 *
 *	id		in	not looked at
 *
 * Does nothing: PtlNIInit has done it.  Returns 0 always.
 *
 * Any thread; does not block.
 */
int cnos_register_ptlid(ptl_process_id_t id);

/*
 * cnos_launcher - who has started this process?
 *
 * Returns CNOS_LAUNCHER_YOD, or 0: not yod.
 *
 * Any thread; does not block.
 */
int cnos_launcher(void);

#define CNOS_LAUNCHER_YOD 1

#ifdef __cplusplus
}
#endif

#endif
