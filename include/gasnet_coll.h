/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gasnet_coll.h - collective operations on all nodes, an extension of GASNet-1
 *
 * All nodes call the same operations in the same order.  A node has one image.  Local
 * addresses may be anywhere.  Blocking forms only, on GASNET_TEAM_ALL only.
 */
#ifndef _INCLUDED_GASNET_COLL_H
#define _INCLUDED_GASNET_COLL_H

#include <gasnet.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t gasnet_image_t; /* 0 to gasnet_nodes() - 1 */

/* A function of a reduction, which this implementation does not have. */
typedef struct {
	void (*fnptr)(void);
	unsigned int flags;
} gasnet_coll_fn_entry_t;

/*
 * Flags, or-ed: one IN, one OUT, one of SINGLE and LOCAL, and hints.
 *
 *	IN_NOSYNC, IN_MYSYNC	A node may begin when it has called.
 *	IN_ALLSYNC		No node moves data before all have called.
 *	OUT_NOSYNC, OUT_MYSYNC	A node returns when its own data are in place.
 *	OUT_ALLSYNC		No node returns before all data are in place.
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
 *	images, fn_tbl	in	NULL: one image a node, and no functions
 *	my_image, fn_count, init_flags	in	0
 *
 * All nodes call it, once, after gasnet_attach.  Other values have no effect.
 *
 * Main-line code; one thread; does not block.
 */
void gasnet_coll_init(const gasnet_image_t images[], gasnet_image_t my_image,
	gasnet_coll_fn_entry_t fn_tbl[], size_t fn_count, int init_flags);

/*
 * gasnet_coll_broadcast, gasnet_coll_scatter, gasnet_coll_gather, gasnet_coll_gather_all,
 * gasnet_coll_exchange - move blocks between all nodes				extension
 *
 *	team		in	GASNET_TEAM_ALL
 *	srcimage, dstimage	in	the root, the same on all nodes
 *	dst		out	broadcast, scatter: nbytes on each node; gather: a block
 *				of nbytes for each node, on the root; gather_all,
 *				exchange: such blocks on each node
 *	src		in	broadcast: nbytes on the root; scatter: a block for each
 *				node, on the root; gather, gather_all: nbytes on each
 *				node; exchange: a block for each node
 *	nbytes		in	length of one block
 *	flags		in	GASNET_COLL_*
 *
 * All nodes call the same operation, with equal nbytes and flags.
 *
 * Main-line code; one thread at a time; block as flags say, and run handlers meanwhile.
 */
void gasnet_coll_broadcast(gasnet_team_handle_t team, void *dst, gasnet_image_t srcimage,
	void *src, size_t nbytes, int flags);
void gasnet_coll_scatter(gasnet_team_handle_t team, void *dst, gasnet_image_t srcimage,
	void *src, size_t nbytes, int flags);
void gasnet_coll_gather(gasnet_team_handle_t team, gasnet_image_t dstimage, void *dst,
	void *src, size_t nbytes, int flags);
void gasnet_coll_gather_all(
	gasnet_team_handle_t team, void *dst, void *src, size_t nbytes, int flags);
void gasnet_coll_exchange(
	gasnet_team_handle_t team, void *dst, void *src, size_t nbytes, int flags);

#ifdef __cplusplus
}
#endif

#endif /* _INCLUDED_GASNET_COLL_H */
