/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * portals3_runtime.h - who is who in a job: ranks, node and process ids, the job's id
 *
 * None of this is in the Portals 3.3 document.  The functions are those of the runtime
 * library that came with its reference implementation, for programs that use them.
 *
 * A job is a number of processes, ranked 0 to size - 1.  A process under yod need not set
 * anything: its rank, the size and the maps are there after PtlInit, and complete after
 * PtlNIInit.  What is said of yod here holds for mpirun, mpiexec and srun, too, if all
 * processes of the job are on one host.  Any other process may describe its job with the
 * Set functions, or have it read from the environment (see PtlSetRank).  What is set here
 * only answers the Get functions: it changes neither the ids of the process nor the reach
 * of its messages.  PtlSetJID is the exception, and has to wait for PtlInit.
 *
 * ni_handle is a live interface, which then answers for itself; or PTL_INVALID_HANDLE,
 * which means the process, and thereby each interface for which nothing of its own was
 * set; under yod its answers are those of PTL_IFACE_DEFAULT or, in a process that has
 * initialised PTL_IFACE_SS only, of that.
 *
 * All return PTL_OK on success.  They work before PtlInit and PtlNIInit, too, and answer
 * PTL_NO_INIT only in a forked child that has not called PtlInit.  On error nothing is
 * set and no output is written.  Any thread may call any of them at any time; none of
 * them blocks.  Threads that set the same thing at a time leave one of their values,
 * whole.
 */
#ifndef PORTALS3_RUNTIME_H
#define PORTALS3_RUNTIME_H

#include <portals3.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * PtlSetRank - say which process of how many this is
 *
 *	ni_handle	in	interface, or PTL_INVALID_HANDLE
 *	rank		in	own rank, 0 to size - 1; or -1
 *	size		in	processes in the job, at least 1; or -1
 *
 * With -1 for both, the rank is taken from PTL_MY_RID, the maps and the size from
 * PTL_NIDMAP and PTL_PIDMAP (numbers with colons between them) in the environment.
 *
 * PTL_NI_INVALID	ni_handle is neither a live interface nor PTL_INVALID_HANDLE
 * PTL_PROCESS_INVALID	rank and size do not fit together, or size differs from that of a
 *			map that is set
 * PTL_FAIL		both are -1 and the environment does not say, or not properly; or
 *			yod has said something else
 *
 * Any thread; does not block.
 */
int PtlSetRank(ptl_handle_ni_t ni_handle, int rank, int size);

/*
 * PtlGetRank - ask for the own rank and the size of the job
 *
 *	ni_handle	in	interface, or PTL_INVALID_HANDLE
 *	rank		out	own rank
 *	size		out	processes in the job
 *
 * PTL_NI_INVALID	ni_handle is neither a live interface nor PTL_INVALID_HANDLE
 * PTL_SEGV		rank or size is NULL
 * PTL_FAIL		the rank is not known
 *
 * Any thread; does not block.
 */
int PtlGetRank(ptl_handle_ni_t ni_handle, unsigned int *rank, unsigned int *size);

/*
 * PtlGetRankId - the process id of a rank
 *
 *	ni_handle	in	interface, or PTL_INVALID_HANDLE
 *	rank		in	0 to size - 1
 *	id		out	fit for target_id and match_id
 *
 * PTL_NI_INVALID	ni_handle is neither a live interface nor PTL_INVALID_HANDLE
 * PTL_SEGV		id is NULL
 * PTL_PROCESS_INVALID	the job has no such rank
 * PTL_FAIL		the maps are not known, or this rank's entry not yet
 *
 * Any thread; does not block.
 */
int PtlGetRankId(ptl_handle_ni_t ni_handle, unsigned int rank, ptl_process_id_t *id);

/*
 * PtlSetNIDMap, PtlSetPIDMap - say which node and process ids the ranks have
 *
 *	ni_handle	in	interface, or PTL_INVALID_HANDLE
 *	map		in	array, indexed by rank; copied
 *	size		in	its elements: all processes of the job
 *
 * PTL_NI_INVALID	ni_handle is neither a live interface nor PTL_INVALID_HANDLE
 * PTL_SEGV		map is NULL
 * PTL_PROCESS_INVALID	size is less than 1, or differs from what the other map or
 *			PtlSetRank said; or an element is PTL_NID_ANY, PTL_PID_ANY
 * PTL_FAIL		yod has set the maps, and differently; or no memory
 *
 * Any thread; do not block.
 */
int PtlSetNIDMap(ptl_handle_ni_t ni_handle, ptl_nid_t *map, int size);
int PtlSetPIDMap(ptl_handle_ni_t ni_handle, ptl_pid_t *map, int size);

/*
 * PtlGetNIDMap, PtlGetPIDMap - ask for the node and process ids of the ranks
 *
 *	ni_handle	in	interface, or PTL_INVALID_HANDLE
 *	map		out	array, indexed by rank
 *	size		in	elements wanted, from rank 0 on
 *
 * PTL_NI_INVALID	ni_handle is neither a live interface nor PTL_INVALID_HANDLE
 * PTL_SEGV		map is NULL
 * PTL_PROCESS_INVALID	size is less than 1, or more than the job has processes
 * PTL_FAIL		the map is not known, or not yet
 *
 * Any thread; do not block.
 */
int PtlGetNIDMap(ptl_handle_ni_t ni_handle, ptl_nid_t *map, int size);
int PtlGetPIDMap(ptl_handle_ni_t ni_handle, ptl_pid_t *map, int size);

/*
 * PtlSetJID - say which job this process belongs to
 *
 *	ni_handle	in	interface, or PTL_INVALID_HANDLE: of no importance, since
 *				there is one id for all
 *	jid		in	what PtlGetJid answers and peers see in events and access
 *				control
 *
 * To be called between PtlInit and the first PtlNIInit; later the id stays as it is.
 * Under yod it is not the process's to choose.  Saying what holds anyhow is a success.
 *
 * PTL_NI_INVALID	ni_handle is neither a live interface nor PTL_INVALID_HANDLE
 * PTL_FAIL		jid is PTL_JID_ANY; PtlInit has not succeeded; yod gave the job
 *			another id, or an interface has another already
 *
 * Any thread; does not block.
 */
int PtlSetJID(ptl_handle_ni_t ni_handle, ptl_jid_t jid);

#ifdef __cplusplus
}
#endif

#endif /* PORTALS3_RUNTIME_H */
