/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gasnet_coll.h - collective operations, an extension of GASNet-1
 *
 * The members of a team call its operations in the same order.  A node has one image; its
 * number in a team is its rank.  Addresses may be anywhere in local memory.  There are no
 * reductions.
 *
 * An operation makes progress in every call that polls on each member.  Its blocks travel
 * as Medium messages and are copied twice.
 */
#ifndef _INCLUDED_GASNET_COLL_H
#define _INCLUDED_GASNET_COLL_H

#include <gasnet.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t gasnet_image_t; /* a rank in the team */

/* A function of a reduction, which this implementation does not have. */
typedef struct {
	void (*fnptr)(void);
	unsigned int flags;
} gasnet_coll_fn_entry_t;

/* An operation that has begun. */
typedef struct gasneti_coll *gasnet_coll_handle_t;
#define GASNET_COLL_INVALID_HANDLE ((gasnet_coll_handle_t)0)

/*
 * Flags, or-ed: one IN, one OUT, one of SINGLE and LOCAL, and hints.
 *
 *	IN_NOSYNC, IN_MYSYNC	A node may begin when it has called.
 *	IN_ALLSYNC		No node moves data before all have called.
 *	OUT_NOSYNC, OUT_MYSYNC	A node is done when its own data are in place.
 *	OUT_ALLSYNC		No node is done before all data are in place.
 *	SINGLE, LOCAL		All nodes give the same addresses, or each its own.
 *	DST_IN_SEGMENT, SRC_IN_SEGMENT	Hints without effect here.
 */
#define GASNET_COLL_IN_NOSYNC      1
#define GASNET_COLL_IN_MYSYNC      2
#define GASNET_COLL_IN_ALLSYNC     4
#define GASNET_COLL_OUT_NOSYNC     8
#define GASNET_COLL_OUT_MYSYNC     16
#define GASNET_COLL_OUT_ALLSYNC    32
#define GASNET_COLL_SINGLE         64
#define GASNET_COLL_LOCAL          128
#define GASNET_COLL_DST_IN_SEGMENT 1024
#define GASNET_COLL_SRC_IN_SEGMENT 2048

/*
 * gasnet_coll_init - begin to use collectives				extension
 *
 *	images		in	the number of images of each node, all 1; or NULL
 *	my_image, fn_tbl, fn_count, init_flags	in	without effect
 *
 * All nodes call it, once, after gasnet_attach and before any other function of
 * gasnet_coll.h.  Other numbers of images end the job with a message.
 *
 * Main-line code; one thread; does not block.
 */
void gasnet_coll_init(const gasnet_image_t images[], gasnet_image_t my_image,
	gasnet_coll_fn_entry_t fn_tbl[], size_t fn_count, int init_flags);

/*
 * gasnet_coll_broadcast, gasnet_coll_broadcast_nb, gasnet_coll_broadcastM,
 * gasnet_coll_broadcastM_nb, gasnet_coll_scatter, gasnet_coll_scatter_nb,
 * gasnet_coll_scatterM, gasnet_coll_scatterM_nb, gasnet_coll_gather,
 * gasnet_coll_gather_nb, gasnet_coll_gatherM, gasnet_coll_gatherM_nb,
 * gasnet_coll_gather_all, gasnet_coll_gather_all_nb, gasnet_coll_gather_allM,
 * gasnet_coll_gather_allM_nb, gasnet_coll_exchange, gasnet_coll_exchange_nb,
 * gasnet_coll_exchangeM, gasnet_coll_exchangeM_nb - move blocks between the members of a
 * team
 *									extension
 *
 *	team		in	GASNET_TEAM_ALL, or a team of gasnet_coll_team_split
 *	srcimage, dstimage	in	the root's rank
 *	dst		out	broadcast, scatter: nbytes on each member; gather: a block
 *				of nbytes for each member, on the root; gather_all,
 *				exchange: such blocks on each member
 *	src		in	broadcast: nbytes on the root; scatter: a block for each
 *				member, on the root; gather, gather_all: nbytes on each
 *				member; exchange: a block for each member
 *	dstlist, srclist	in	forms M: the addresses of all images by rank, or
 *				with LOCAL the address of the own one
 *	nbytes		in	length of one block
 *	flags		in	GASNET_COLL_*
 *
 * Forms with _nb return a handle at once, to be synced exactly once; dst and src belong
 * to the operation until then.  The others block until the operation is done.  A root
 * that is no rank, and lengths that differ between members, end the job with a message.
 *
 * Main-line code; one thread at a time for a team.  Forms without _nb block; all poll,
 * and run handlers.
 */
void gasnet_coll_broadcast(gasnet_team_handle_t team, void *dst, gasnet_image_t srcimage,
	void *src, size_t nbytes, int flags);
gasnet_coll_handle_t gasnet_coll_broadcast_nb(gasnet_team_handle_t team, void *dst,
	gasnet_image_t srcimage, void *src, size_t nbytes, int flags);
void gasnet_coll_broadcastM(gasnet_team_handle_t team, void *const dstlist[],
	gasnet_image_t srcimage, void *src, size_t nbytes, int flags);
gasnet_coll_handle_t gasnet_coll_broadcastM_nb(gasnet_team_handle_t team,
	void *const dstlist[], gasnet_image_t srcimage, void *src, size_t nbytes,
	int flags);
void gasnet_coll_scatter(gasnet_team_handle_t team, void *dst, gasnet_image_t srcimage,
	void *src, size_t nbytes, int flags);
gasnet_coll_handle_t gasnet_coll_scatter_nb(gasnet_team_handle_t team, void *dst,
	gasnet_image_t srcimage, void *src, size_t nbytes, int flags);
void gasnet_coll_scatterM(gasnet_team_handle_t team, void *const dstlist[],
	gasnet_image_t srcimage, void *src, size_t nbytes, int flags);
gasnet_coll_handle_t gasnet_coll_scatterM_nb(gasnet_team_handle_t team,
	void *const dstlist[], gasnet_image_t srcimage, void *src, size_t nbytes,
	int flags);
void gasnet_coll_gather(gasnet_team_handle_t team, gasnet_image_t dstimage, void *dst,
	void *src, size_t nbytes, int flags);
gasnet_coll_handle_t gasnet_coll_gather_nb(gasnet_team_handle_t team,
	gasnet_image_t dstimage, void *dst, void *src, size_t nbytes, int flags);
void gasnet_coll_gatherM(gasnet_team_handle_t team, gasnet_image_t dstimage, void *dst,
	void *const srclist[], size_t nbytes, int flags);
gasnet_coll_handle_t gasnet_coll_gatherM_nb(gasnet_team_handle_t team,
	gasnet_image_t dstimage, void *dst, void *const srclist[], size_t nbytes,
	int flags);
void gasnet_coll_gather_all(
	gasnet_team_handle_t team, void *dst, void *src, size_t nbytes, int flags);
gasnet_coll_handle_t gasnet_coll_gather_all_nb(
	gasnet_team_handle_t team, void *dst, void *src, size_t nbytes, int flags);
void gasnet_coll_gather_allM(gasnet_team_handle_t team, void *const dstlist[],
	void *const srclist[], size_t nbytes, int flags);
gasnet_coll_handle_t gasnet_coll_gather_allM_nb(gasnet_team_handle_t team,
	void *const dstlist[], void *const srclist[], size_t nbytes, int flags);
void gasnet_coll_exchange(
	gasnet_team_handle_t team, void *dst, void *src, size_t nbytes, int flags);
gasnet_coll_handle_t gasnet_coll_exchange_nb(
	gasnet_team_handle_t team, void *dst, void *src, size_t nbytes, int flags);
void gasnet_coll_exchangeM(gasnet_team_handle_t team, void *const dstlist[],
	void *const srclist[], size_t nbytes, int flags);
gasnet_coll_handle_t gasnet_coll_exchangeM_nb(gasnet_team_handle_t team,
	void *const dstlist[], void *const srclist[], size_t nbytes, int flags);

/*
 * gasnet_coll_try_sync, gasnet_coll_try_sync_some, gasnet_coll_try_sync_all,
 * gasnet_coll_wait_sync, gasnet_coll_wait_sync_some, gasnet_coll_wait_sync_all - end
 * operations								extension
 *
 *	handle		in	of a form _nb; GASNET_COLL_INVALID_HANDLE counts as done
 *	handles		in	array of handles; the call writes
 *				GASNET_COLL_INVALID_HANDLE over those that are done
 *	n		in	elements of handles
 *
 * _all: all of them; _some: at least one, or none if all are GASNET_COLL_INVALID_HANDLE.
 * The try forms poll once.
 *
 * GASNET_ERR_NOT_READY	try forms: the operation, or not all, or none, is done
 *
 * Main-line code; a handle by one thread at a time.  The wait forms block, the try forms
 * do not.
 */
int gasnet_coll_try_sync(gasnet_coll_handle_t handle);
int gasnet_coll_try_sync_some(gasnet_coll_handle_t *handles, size_t n);
int gasnet_coll_try_sync_all(gasnet_coll_handle_t *handles, size_t n);
void gasnet_coll_wait_sync(gasnet_coll_handle_t handle);
void gasnet_coll_wait_sync_some(gasnet_coll_handle_t *handles, size_t n);
void gasnet_coll_wait_sync_all(gasnet_coll_handle_t *handles, size_t n);

/*
 * gasnet_coll_team_split - make teams of the members of a team		extension
 *
 *	team		in	the old team; all its members call
 *	mycolor		in	members with the same color get into one team
 *	myrelrank	in	orders them; equal ones keep the order of their ranks
 *	clientdata	in	without effect
 *
 * Returns the caller's new team, which lasts until the end of the job.
 *
 * Main-line code; one thread at a time for a team; blocks.
 */
gasnet_team_handle_t gasnet_coll_team_split(gasnet_team_handle_t team,
	gasnet_node_t mycolor, gasnet_node_t myrelrank, gasnet_seginfo_t *clientdata);

/*
 * gasnet_coll_team_size, gasnet_coll_team_rank2node, gasnet_coll_team_node2rank - ask for
 * a team's members							extension
 *
 *	team		in	GASNET_TEAM_ALL, or a team of gasnet_coll_team_split
 *	rank		in	number of a member in the team
 *	node		in	number of a node in the job
 *
 * Return the number of members; the node of a rank; the rank of a node.  The latter two
 * return (gasnet_node_t)-1 if there is no such rank or member.
 *
 * Main-line code; any thread; do not block.
 */
gasnet_node_t gasnet_coll_team_size(gasnet_team_handle_t team);
gasnet_node_t gasnet_coll_team_rank2node(gasnet_team_handle_t team, gasnet_node_t rank);
gasnet_node_t gasnet_coll_team_node2rank(gasnet_team_handle_t team, gasnet_node_t node);

/*
 * gasnet_coll_barrier_notify, gasnet_coll_barrier_try, gasnet_coll_barrier_wait,
 * gasnet_coll_barrier - wait for the members of a team			extension
 *
 *	team		in	GASNET_TEAM_ALL, or a team of gasnet_coll_team_split
 *	id, flags	in	as for gasnet_barrier_notify
 *
 * As gasnet_barrier_notify, gasnet_barrier_try, gasnet_barrier_wait and gasnet_barrier,
 * among the team's members; those of GASNET_TEAM_ALL are the same barrier.
 *
 * GASNET_ERR_NOT_READY		try: not all members have notified; no effect
 * GASNET_ERR_BARRIER_MISMATCH	values differ, or this node's wait has another one
 *
 * Main-line code; one thread at a time for a team.  gasnet_coll_barrier_wait and
 * gasnet_coll_barrier block.
 */
void gasnet_coll_barrier_notify(gasnet_team_handle_t team, int id, int flags);
int gasnet_coll_barrier_try(gasnet_team_handle_t team, int id, int flags);
int gasnet_coll_barrier_wait(gasnet_team_handle_t team, int id, int flags);
int gasnet_coll_barrier(gasnet_team_handle_t team, int id, int flags);

#ifdef __cplusplus
}
#endif

#endif /* _INCLUDED_GASNET_COLL_H */
