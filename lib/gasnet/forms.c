/* SPDX-License-Identifier: BSD-3-Clause */
/* forms.c - blocking forms of collectives, and forms with lists of addresses */
#include "coll.h"

/* Return this node's address: LOCAL lists have that of each image here, others of all. */
static void *pick(gasnet_team_handle_t team, void *const list[], int flags)
{
	return list[flags & GASNET_COLL_LOCAL ? 0 : team->rank];
}

void gasnet_coll_broadcast(gasnet_team_handle_t team, void *dst, gasnet_image_t srcimage,
	void *src, size_t nbytes, int flags)
{
	gasnet_coll_wait_sync(
		gasnet_coll_broadcast_nb(team, dst, srcimage, src, nbytes, flags));
}

gasnet_coll_handle_t gasnet_coll_broadcastM_nb(gasnet_team_handle_t team,
	void *const dstlist[], gasnet_image_t srcimage, void *src, size_t nbytes,
	int flags)
{
	return gasnet_coll_broadcast_nb(
		team, pick(team, dstlist, flags), srcimage, src, nbytes, flags);
}

void gasnet_coll_broadcastM(gasnet_team_handle_t team, void *const dstlist[],
	gasnet_image_t srcimage, void *src, size_t nbytes, int flags)
{
	gasnet_coll_wait_sync(gasnet_coll_broadcast_nb(
		team, pick(team, dstlist, flags), srcimage, src, nbytes, flags));
}

void gasnet_coll_scatter(gasnet_team_handle_t team, void *dst, gasnet_image_t srcimage,
	void *src, size_t nbytes, int flags)
{
	gasnet_coll_wait_sync(
		gasnet_coll_scatter_nb(team, dst, srcimage, src, nbytes, flags));
}

gasnet_coll_handle_t gasnet_coll_scatterM_nb(gasnet_team_handle_t team,
	void *const dstlist[], gasnet_image_t srcimage, void *src, size_t nbytes,
	int flags)
{
	return gasnet_coll_scatter_nb(
		team, pick(team, dstlist, flags), srcimage, src, nbytes, flags);
}

void gasnet_coll_scatterM(gasnet_team_handle_t team, void *const dstlist[],
	gasnet_image_t srcimage, void *src, size_t nbytes, int flags)
{
	gasnet_coll_wait_sync(gasnet_coll_scatter_nb(
		team, pick(team, dstlist, flags), srcimage, src, nbytes, flags));
}

void gasnet_coll_gather(gasnet_team_handle_t team, gasnet_image_t dstimage, void *dst,
	void *src, size_t nbytes, int flags)
{
	gasnet_coll_wait_sync(
		gasnet_coll_gather_nb(team, dstimage, dst, src, nbytes, flags));
}

gasnet_coll_handle_t gasnet_coll_gatherM_nb(gasnet_team_handle_t team,
	gasnet_image_t dstimage, void *dst, void *const srclist[], size_t nbytes,
	int flags)
{
	return gasnet_coll_gather_nb(
		team, dstimage, dst, pick(team, srclist, flags), nbytes, flags);
}

void gasnet_coll_gatherM(gasnet_team_handle_t team, gasnet_image_t dstimage, void *dst,
	void *const srclist[], size_t nbytes, int flags)
{
	gasnet_coll_wait_sync(gasnet_coll_gather_nb(
		team, dstimage, dst, pick(team, srclist, flags), nbytes, flags));
}

void gasnet_coll_gather_all(
	gasnet_team_handle_t team, void *dst, void *src, size_t nbytes, int flags)
{
	gasnet_coll_wait_sync(gasnet_coll_gather_all_nb(team, dst, src, nbytes, flags));
}

gasnet_coll_handle_t gasnet_coll_gather_allM_nb(gasnet_team_handle_t team,
	void *const dstlist[], void *const srclist[], size_t nbytes, int flags)
{
	return gasnet_coll_gather_all_nb(team, pick(team, dstlist, flags),
		pick(team, srclist, flags), nbytes, flags);
}

void gasnet_coll_gather_allM(gasnet_team_handle_t team, void *const dstlist[],
	void *const srclist[], size_t nbytes, int flags)
{
	gasnet_coll_wait_sync(gasnet_coll_gather_all_nb(team, pick(team, dstlist, flags),
		pick(team, srclist, flags), nbytes, flags));
}

void gasnet_coll_exchange(
	gasnet_team_handle_t team, void *dst, void *src, size_t nbytes, int flags)
{
	gasnet_coll_wait_sync(gasnet_coll_exchange_nb(team, dst, src, nbytes, flags));
}

gasnet_coll_handle_t gasnet_coll_exchangeM_nb(gasnet_team_handle_t team,
	void *const dstlist[], void *const srclist[], size_t nbytes, int flags)
{
	return gasnet_coll_exchange_nb(team, pick(team, dstlist, flags),
		pick(team, srclist, flags), nbytes, flags);
}

void gasnet_coll_exchangeM(gasnet_team_handle_t team, void *const dstlist[],
	void *const srclist[], size_t nbytes, int flags)
{
	gasnet_coll_wait_sync(gasnet_coll_exchange_nb(team, pick(team, dstlist, flags),
		pick(team, srclist, flags), nbytes, flags));
}
