/* SPDX-License-Identifier: BSD-3-Clause */
/* The names that Cray XT programs and the reference implementation use for the calls of
 * this folder. */
#include "cnos_mpi_os.h"
#include "lib/init.h"
#include "lib/node/call.h"
#include "p3nal_tcp.h"
#include "portals3_runtime.h"
#include "portals3x.h"
#include "shm/process.h"

#include <errno.h>
#include <stdlib.h>

/* Return true if the library is initialized.  Call PtlInit if need be, since programs
 * make the calls of this file before PtlInit, too. */
static bool cnos_begun(struct p3_node *node)
{
	int most;
	return p3_is_up(node) || (!p3_fork_is_child(node) && PtlInit(&most) == PTL_OK);
}

static bool cnos_ask(unsigned *rank, unsigned *size)
{
	return cnos_begun(p3_node()) &&
	       PtlGetRank(PTL_INVALID_HANDLE, rank, size) == PTL_OK;
}

int cnos_get_rank(void)
{
	unsigned rank, size;
	return cnos_ask(&rank, &size) ? (int)rank : -1;
}

int cnos_get_size(void)
{
	unsigned rank, size;
	return cnos_ask(&rank, &size) ? (int)size : -1;
}

int cnos_launcher(void)
{
	if (!cnos_begun(p3_node()))
		return -1;
	return p3_node()->sock >= 0 ? CNOS_LAUNCHER_YOD : 0;
}

/* ---- the map ---- */

/* A map that was returned to the program, which may read it at any later time. */
struct map {
	struct map *older;
	unsigned size;
	cnos_nidpid_map_t at[];
};

P3_PROCESS_LOCK(maps_lock)

/* Return the node's map of this size.  The caller holds maps_lock. */
static struct map *cnos_map_of(struct p3_node *node, unsigned size)
{
	struct map *m = node->maps;
	while (m && m->size != size)
		m = m->older;
	if (m)
		return m;
	m = calloc(1, sizeof *m + size * sizeof m->at[0]);
	if (!m)
		return NULL;
	m->size = size;
	m->older = node->maps;
	node->maps = m;
	return m;
}

void p3_cnos_free_maps(struct p3_node *node)
{
	while (node->maps) {
		struct map *m = node->maps;
		node->maps = m->older;
		free(m);
	}
}

/* Write the map.  Other threads may be reading: entries that are right are not
 * touched. */
static cnos_nidpid_map_t *cnos_make_map(struct p3_node *node, unsigned size)
{
	uint32_t *ids = calloc(size, 2 * sizeof *ids);
	struct map *m = NULL;
	if (ids && PtlGetNIDMap(PTL_INVALID_HANDLE, ids, (int)size) == PTL_OK &&
		PtlGetPIDMap(PTL_INVALID_HANDLE, ids + size, (int)size) == PTL_OK) {
		pthread_mutex_lock(&maps_lock);
		m = cnos_map_of(node, size);
		for (unsigned i = 0; m && i < size; i++) {
			if (m->at[i].nid != ids[i])
				m->at[i].nid = ids[i];
			if (m->at[i].pid != ids[size + i])
				m->at[i].pid = ids[size + i];
		}
		pthread_mutex_unlock(&maps_lock);
	}
	free(ids);
	return m ? m->at : NULL;
}

int cnos_get_nidpid_map(cnos_nidpid_map_t **map)
{
	unsigned rank, size;
	if (!map || !cnos_ask(&rank, &size))
		return -1;
	if (p3_is_busy())
		return -1;
	struct p3_caller caller = p3_caller_save();
	cnos_nidpid_map_t *made = cnos_make_map(p3_node(), size);
	p3_caller_restore(caller);
	if (!made)
		return -1;
	*map = made;
	return (int)size;
}

int cnos_register_ptlid(ptl_process_id_t id)
{
	(void)id;
	return 0;
}

/* ---- barrier ---- */

int cnos_barrier(void)
{
	return cnos_begun(p3_node()) && PtlXBarrier() == PTL_OK ? 0 : -1;
}

int cnos_pm_barrier(int flag)
{
	(void)flag;
	return cnos_barrier();
}

int cnos_barrier_init(ptl_handle_ni_t ni_handle)
{
	(void)ni_handle;
	return 0;
}

/* ---- the network's header ---- */

int p3tcp_my_nid(const char *if_str, unsigned int *nid)
{
	struct p3_node *node = p3_node();
	(void)if_str;
	if (!nid)
		return PTL_SEGV;
	struct p3_conf conf;
	if (!cnos_begun(node) || p3_conf_read(&conf))
		return PTL_FAIL;
	*nid = node->nid;
	return PTL_OK;
}
