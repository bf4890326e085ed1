/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * portals3_runtime.h - the processes of a job: ranks, node and process ids, the job's id
 *
 * None of this is in the Portals 3.3 document.  The functions are those of the runtime
 * library of its reference implementation, for programs that use them.
 *
 * The processes of a job have ranks from 0 to size - 1.  A process under yod need not set
 * anything: its rank, the size and the maps are there after PtlInit, and complete after
 * PtlNIInit.  Everything said about yod here holds for mpirun, mpiexec and srun, too.
 * Any other process may describe its job with the Set functions, or have the library read
 * the description from the environment (see PtlSetRank).  A Set function only determines
 * the answers of the Get functions: it changes neither the ids of the process nor the
 * reach of its messages.  PtlSetJID is the exception, and has to be called after PtlInit.
 *
 * ni_handle is a live interface, whose own values are set or returned, or
 * PTL_INVALID_HANDLE, which stands for the process: its values hold for each interface
 * that has none of its own.  Under yod, PTL_INVALID_HANDLE gives the ids of
 * PTL_IFACE_DEFAULT or, in a process that has initialised PTL_IFACE_SS only, the ids of
 * PTL_IFACE_SS.
 *
 * All return PTL_OK on success.  They also work before PtlInit and PtlNIInit, and return
 * PTL_NO_INIT only in a forked child that has not called PtlInit.  On error no value is
 * set and no output is written.  Any thread may call any of them at any time; none of
 * them blocks.  If several threads set the same value at a time, one of their values
 * remains, complete.
 */
#ifndef PORTALS3_RUNTIME_H
#define PORTALS3_RUNTIME_H

#include <portals3.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * PtlSetRank - set the own rank and the size of the job
 *
 *	ni_handle	in	interface, or PTL_INVALID_HANDLE
 *	rank		in	own rank, 0 to size - 1; or -1
 *	size		in	processes in the job, 1 to 1,024; or -1
 *
 * With -1 for both, the rank is taken from PTL_MY_RID, the maps and the size from
 * PTL_NIDMAP and PTL_PIDMAP (1 to 1,024 numbers with colons between them) in the
 * environment.
 *
 * PTL_NI_INVALID	ni_handle is neither a live interface nor PTL_INVALID_HANDLE
 * PTL_PROCESS_INVALID	rank and size do not fit together, size is out of range, or it
 *			differs from that of a map that is set
 * PTL_FAIL		both are -1 and the environment has no correct description; or yod
 *			has set other values; or no memory
 *
 * Any thread; does not block.
 */
int PtlSetRank(ptl_handle_ni_t ni_handle, int rank, int size);

/*
 * PtlGetRank - get the own rank and the size of the job
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
 *	id		out	its process id, for use as target_id or match_id
 *
 * PTL_NI_INVALID	ni_handle is neither a live interface nor PTL_INVALID_HANDLE
 * PTL_SEGV		id is NULL
 * PTL_PROCESS_INVALID	the job has no such rank
 * PTL_FAIL		the maps are not known, or the entry of this rank is not known yet
 *
 * Any thread; does not block.
 */
int PtlGetRankId(ptl_handle_ni_t ni_handle, unsigned int rank, ptl_process_id_t *id);

/*
 * PtlSetNIDMap, PtlSetPIDMap - set the node and process ids of the ranks
 *
 *	ni_handle	in	interface, or PTL_INVALID_HANDLE
 *	map		in	array, indexed by rank; copied
 *	size		in	number of its elements: all processes of the job
 *
 * PTL_NI_INVALID	ni_handle is neither a live interface nor PTL_INVALID_HANDLE
 * PTL_SEGV		map is NULL
 * PTL_PROCESS_INVALID	size is not 1 to 1,024, or differs from the size of the other map
 *			or of PtlSetRank; or an element is PTL_NID_ANY or PTL_PID_ANY
 * PTL_FAIL		yod has set other maps; or no memory
 *
 * Any thread; do not block.
 */
int PtlSetNIDMap(ptl_handle_ni_t ni_handle, ptl_nid_t *map, int size);
int PtlSetPIDMap(ptl_handle_ni_t ni_handle, ptl_pid_t *map, int size);

/*
 * PtlGetNIDMap, PtlGetPIDMap - get the node and process ids of the ranks
 *
 *	ni_handle	in	interface, or PTL_INVALID_HANDLE
 *	map		out	array, indexed by rank
 *	size		in	number of elements to get, from rank 0 on
 *
 * PTL_NI_INVALID	ni_handle is neither a live interface nor PTL_INVALID_HANDLE
 * PTL_SEGV		map is NULL
 * PTL_PROCESS_INVALID	size is less than 1, or more than the job has processes
 * PTL_FAIL		the map is not known, or not complete yet
 *
 * Any thread; do not block.
 */
int PtlGetNIDMap(ptl_handle_ni_t ni_handle, ptl_nid_t *map, int size);
int PtlGetPIDMap(ptl_handle_ni_t ni_handle, ptl_pid_t *map, int size);

/*
 * PtlSetJID - set the job id of this process
 *
 *	ni_handle	in	interface, or PTL_INVALID_HANDLE; it makes no difference,
 *				since all interfaces have one job id
 *	jid		in	the id that PtlGetJid returns, and that peers see in
 *				events and access control
 *
 * A program calls it between PtlInit and the first PtlNIInit; later the id cannot change.
 * Under yod the process cannot choose it.  To set the id that is in force is a success.
 *
 * PTL_NI_INVALID	ni_handle is neither a live interface nor PTL_INVALID_HANDLE
 * PTL_FAIL		jid is PTL_JID_ANY; PtlInit has not succeeded; yod gave the job
 *			another id, or an interface has another id already
 *
 * Any thread; does not block.
 */
int PtlSetJID(ptl_handle_ni_t ni_handle, ptl_jid_t jid);

#ifdef __cplusplus
}
#endif

#endif /* PORTALS3_RUNTIME_H */
