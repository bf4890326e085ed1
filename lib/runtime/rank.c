/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls about ranks: rank and size, maps of node ids and process ids, job id.
 *
 * Under yod the answers are the launcher's.  Else they are the values that the program
 * has named (lib/node/named.c); a process that has named none is rank 0 of 1.
 */
#include "lib/init.h"
#include "lib/node/call.h"
#include "portals3_runtime.h"

static int rank_check_ni(ptl_handle_ni_t ni)
{
	struct p3_node *node = p3_node();
	if (p3_fork_is_child(node))
		return PTL_NO_INIT;
	if (ni == PTL_INVALID_HANDLE)
		return PTL_OK;
	return p3_is_up(node) && p3_node_find_ni(node, ni) ? PTL_OK : PTL_NI_INVALID;
}

/* ---- rank ---- */

int PtlSetRank(ptl_handle_ni_t ni_handle, int rank, int size)
{
	struct p3_node *node = p3_node();
	int rc = rank_check_ni(ni_handle);
	if (rc != PTL_OK)
		return rc;
	if (p3_is_placed(node)) {
		bool same = (rank == -1 || (uint32_t)rank == node->rank) &&
			    (size == -1 || (uint32_t)size == node->size);
		return same ? PTL_OK : PTL_FAIL;
	}
	if (p3_is_busy())
		return PTL_FAIL;
	struct p3_caller caller = p3_caller_save();
	rc = p3_named_set_rank(node, rank, size);
	p3_caller_restore(caller);
	return rc;
}

int PtlGetRank(ptl_handle_ni_t ni_handle, unsigned int *rank, unsigned int *size)
{
	if (!rank || !size)
		return PTL_SEGV;
	int rc = rank_check_ni(ni_handle);
	if (rc != PTL_OK)
		return rc;
	const struct p3_directory *d = p3_named_read(p3_node());
	rc = d && d->ranked ? PTL_OK : PTL_FAIL;
	if (rc == PTL_OK) {
		*rank = d->rank;
		*size = d->size;
	}
	p3_directory_done();
	return rc;
}

/* ---- ids and maps ---- */

/* Return the interface that speaks for the process: PTL_IFACE_SS if it is the only
 * one. */
static uint32_t rank_iface(ptl_handle_ni_t ni)
{
	struct p3_node *node = p3_node();
	if (ni != PTL_INVALID_HANDLE)
		return p3_handle_ni(ni);
	return !p3_acquire(&node->ni[0].open) &&
	       p3_acquire(&node->ni[1].open); /* INIT.1 */
}

int PtlGetRankId(ptl_handle_ni_t ni_handle, unsigned int rank, ptl_process_id_t *id)
{
	ptl_process_id_t found;
	if (!id)
		return PTL_SEGV;
	int rc = rank_check_ni(ni_handle);
	if (rc != PTL_OK)
		return rc;
	const struct p3_directory *d = p3_named_read(p3_node());
	rc = !d ? PTL_FAIL : rank >= d->size ? PTL_PROCESS_INVALID : PTL_OK;
	if (rc == PTL_OK) {
		found.nid = p3_get(&d->member[rank].nid);
		found.pid = p3_get(&d->member[rank].pid[rank_iface(ni_handle)]);
		if (found.nid == P3_UNKNOWN || found.pid == P3_UNKNOWN)
			rc = PTL_FAIL;
	}
	p3_directory_done();
	if (rc == PTL_OK)
		*id = found;
	return rc;
}

static uint32_t map_entry(
	const struct p3_directory *d, uint32_t rank, uint32_t iface, bool pids)
{
	const struct p3_rank_ids *m = &d->member[rank];
	return p3_get(pids ? &m->pid[iface] : &m->nid);
}

/* Compare with the launcher's map, which stays: setting the same values is allowed. */
static int map_agrees(
	struct p3_node *node, uint32_t iface, const uint32_t *map, int size, bool pids)
{
	if (size < 1 || (uint32_t)size != node->size)
		return PTL_PROCESS_INVALID;
	const struct p3_directory *d = p3_directory_read(&node->directory);
	int rc = PTL_OK;
	for (uint32_t i = 0; d && i < d->size; i++)
		if (map[i] != map_entry(d, i, iface, pids))
			rc = PTL_FAIL;
	p3_directory_done();
	return rc;
}

static int map_set(ptl_handle_ni_t ni, const uint32_t *map, int size, bool pids)
{
	struct p3_node *node = p3_node();
	if (!map)
		return PTL_SEGV;
	int rc = rank_check_ni(ni);
	if (rc != PTL_OK)
		return rc;
	if (p3_is_placed(node))
		return map_agrees(node, rank_iface(ni), map, size, pids);
	if (p3_is_busy())
		return PTL_FAIL;
	struct p3_caller caller = p3_caller_save();
	rc = p3_named_set_map(node, ni, map, size, pids);
	p3_caller_restore(caller);
	return rc;
}

int PtlSetNIDMap(ptl_handle_ni_t ni_handle, ptl_nid_t *map, int size)
{
	return map_set(ni_handle, map, size, false);
}

int PtlSetPIDMap(ptl_handle_ni_t ni_handle, ptl_pid_t *map, int size)
{
	return map_set(ni_handle, map, size, true);
}

static int map_in(
	const struct p3_directory *d, uint32_t iface, uint32_t *map, int size, bool pids)
{
	if (!d)
		return PTL_FAIL;
	if (size < 1 || (uint32_t)size > d->size)
		return PTL_PROCESS_INVALID;
	for (uint32_t i = 0; i < (uint32_t)size; i++)
		if (map_entry(d, i, iface, pids) == P3_UNKNOWN)
			return PTL_FAIL;
	for (uint32_t i = 0; i < (uint32_t)size; i++)
		map[i] = map_entry(d, i, iface, pids);
	return PTL_OK;
}

static int map_get(ptl_handle_ni_t ni, uint32_t *map, int size, bool pids)
{
	if (!map)
		return PTL_SEGV;
	int rc = rank_check_ni(ni);
	if (rc != PTL_OK)
		return rc;
	rc = map_in(p3_named_read(p3_node()), rank_iface(ni), map, size, pids);
	p3_directory_done();
	return rc;
}

int PtlGetNIDMap(ptl_handle_ni_t ni_handle, ptl_nid_t *map, int size)
{
	return map_get(ni_handle, map, size, false);
}

int PtlGetPIDMap(ptl_handle_ni_t ni_handle, ptl_pid_t *map, int size)
{
	return map_get(ni_handle, map, size, true);
}

/* Set the job id of a process without a launcher, for interfaces opened from now on. */
int PtlSetJID(ptl_handle_ni_t ni_handle, ptl_jid_t jid)
{
	struct p3_node *node = p3_node();
	int rc = rank_check_ni(ni_handle);
	if (rc != PTL_OK)
		return rc;
	if (jid == PTL_JID_ANY || !p3_is_up(node))
		return PTL_FAIL;
	if (p3_is_placed(node) || p3_nic(node))
		return jid == node->jid ? PTL_OK : PTL_FAIL;
	node->jid = jid;
	return PTL_OK;
}
