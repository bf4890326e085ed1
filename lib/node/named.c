/* SPDX-License-Identifier: BSD-3-Clause */
/* The ids and the rank that the program has named, by Set calls or in the environment. */
#include "lib/node/node.h"
#include "shm/process.h"
#include "shm/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The values of the Set calls, replaced as a whole, one at a time. */
static p3_directory_ptr named_table;

P3_PROCESS_LOCK(named_lock)

/* ---- the environment ---- */

static bool named_number(const char **text, uint32_t *out)
{
	char *end;
	errno = 0;
	unsigned long v = strtoul(*text, &end, 0);
	if (end == *text || errno || v > UINT32_MAX)
		return false;
	*text = end;
	*out = (uint32_t)v;
	return true;
}

/* Parse numbers separated by colons.  Return their number, or 0 if the text is no such
 * list or too long. */
static uint32_t named_parse_map(const char *text, uint32_t **map_out)
{
	uint32_t n = 0, *map = NULL;
	while (text && *text) {
		uint32_t *more = realloc(map, (n + 1) * sizeof *map);
		if (more)
			map = more;
		if (!more || n == P3_MAX_NODES || !named_number(&text, &map[n++]) ||
			(*text && *text++ != ':')) {
			free(map);
			return 0;
		}
	}
	*map_out = map;
	return n;
}

static int named_from_environment(struct p3_directory **d_out)
{
	const char *rid = getenv("PTL_MY_RID");
	uint32_t rank, *nid = NULL, *pid = NULL;
	uint32_t nnid = named_parse_map(getenv("PTL_NIDMAP"), &nid);
	uint32_t npid = named_parse_map(getenv("PTL_PIDMAP"), &pid);
	bool ok = rid && named_number(&rid, &rank) && !*rid && nnid && nnid == npid &&
		  rank < nnid;
	struct p3_directory *d = *d_out = ok ? p3_directory_new(nnid) : NULL;
	if (d) {
		d->ranked = true;
		d->rank = rank;
	}
	for (uint32_t i = 0; d && i < nnid; i++) {
		p3_set(&d->member[i].nid, nid[i]);
		for (uint32_t iface = 0; iface < P3_JOB_NIS; iface++)
			p3_set(&d->member[i].pid[iface], pid[i]);
	}
	free(nid);
	free(pid);
	return d ? PTL_OK : PTL_FAIL;
}

/* ---- values of the Set calls ---- */

/* Copy the values of the Set calls into a new table of this size, to be changed and
 * installed.  Fail if values of another size are set. */
static int named_copy(int size, struct p3_directory **d_out)
{
	const struct p3_directory *now = p3_acquire(&named_table);
	if (size < 1 || size > (int)P3_MAX_NODES || (now && now->size != (uint32_t)size))
		return PTL_PROCESS_INVALID;
	struct p3_directory *d = p3_directory_new((uint32_t)size);
	if (!d)
		return PTL_FAIL;
	if (now) {
		d->ranked = now->ranked;
		d->rank = now->rank;
		memcpy(d->own, now->own, sizeof d->own);
		memcpy(d->member, now->member, (uint32_t)size * sizeof d->member[0]);
	}
	*d_out = d;
	return PTL_OK;
}

/* ---- processes that may join later ---- */

void p3_named_list(struct p3_node *node, struct p3_nic *nic)
{
	const uint32_t most = P3_MAX_NODES * (P3_JOB_NIS + 1);
	if (p3_is_placed(node) || !node->domain[0])
		return;
	struct p3_listed *l = malloc(sizeof *l + most * sizeof l->id[0]);
	if (!l)
		return;
	l->n = 0;
	uint32_t *nids = NULL, *pids = NULL;
	uint32_t n = named_parse_map(getenv("PTL_NIDMAP"), &nids);
	bool ok = n && named_parse_map(getenv("PTL_PIDMAP"), &pids) == n;
	for (uint32_t i = 0; ok && i < n; i++)
		l->id[l->n++] = (uint64_t)pids[i] << 32 | nids[i];
	free(nids);
	free(pids);
	const struct p3_directory *d = p3_directory_read(&named_table);
	for (uint32_t i = 0; d && i < d->size; i++)
		for (uint32_t k = 0; k < P3_JOB_NIS; k++) {
			uint64_t pid = p3_get(&d->member[i].pid[k]);
			uint32_t nid = p3_get(&d->member[i].nid);
			if (pid != P3_UNKNOWN && nid != P3_UNKNOWN)
				l->id[l->n++] = pid << 32 | nid;
		}
	p3_directory_done();
	p3_nic_list(nic, l);
}

/* ---- the calls ---- */

/* Install new values of the Set calls if rc is PTL_OK; return rc.  The caller holds
 * named_lock. */
static int named_install(struct p3_node *node, struct p3_directory *d, int rc)
{
	struct p3_nic *nic = p3_is_up(node) ? p3_nic(node) : NULL;
	if (rc != PTL_OK) {
		free(d);
		return rc;
	}
	p3_directory_replace(&named_table, d);
	if (nic)
		p3_named_list(node, nic);
	return PTL_OK;
}

int p3_named_set_rank(struct p3_node *node, int rank, int size)
{
	struct p3_directory *d = NULL;
	int rc = PTL_PROCESS_INVALID;
	pthread_mutex_lock(&named_lock);
	if (rank == -1 && size == -1) {
		rc = named_from_environment(&d);
	} else if (rank >= 0 && rank < size && !(rc = named_copy(size, &d))) {
		d->ranked = true;
		d->rank = (uint32_t)rank;
	}
	rc = named_install(node, d, rc);
	pthread_mutex_unlock(&named_lock);
	return rc;
}

int p3_named_set_map(struct p3_node *node, ptl_handle_ni_t ni, const uint32_t *map,
	int size, bool pids)
{
	struct p3_directory *d = NULL;
	bool all = ni == PTL_INVALID_HANDLE;
	for (int i = 0; i < size; i++)
		if (map[i] == P3_UNKNOWN)
			return PTL_PROCESS_INVALID;
	pthread_mutex_lock(&named_lock);
	int rc = named_copy(size, &d);
	for (int i = 0; rc == PTL_OK && !pids && i < size; i++)
		p3_set(&d->member[i].nid, map[i]);
	for (uint32_t k = 0; rc == PTL_OK && pids && k < P3_JOB_NIS; k++) {
		if (all ? d->own[k] : k != p3_handle_ni(ni))
			continue;
		d->own[k] = !all;
		for (int i = 0; i < size; i++)
			p3_set(&d->member[i].pid[k], map[i]);
	}
	rc = named_install(node, d, rc);
	pthread_mutex_unlock(&named_lock);
	return rc;
}

uint32_t p3_named_pid(struct p3_node *node, uint32_t iface)
{
	uint32_t rank = 0, nid = P3_UNKNOWN, pid = P3_UNKNOWN;
	const struct p3_directory *d = p3_directory_read(&named_table);
	if (d && d->ranked && !p3_is_placed(node)) {
		rank = d->rank;
		nid = p3_get(&d->member[rank].nid);
		pid = p3_get(&d->member[rank].pid[iface]);
	}
	p3_directory_done();
	if (pid != P3_UNKNOWN && nid != P3_UNKNOWN && nid != node->nid)
		p3_warn("rank %u has node id %u in PTL_NIDMAP or PtlSetNIDMap, and this "
			"process, which has that rank, has node id %u: messages to the "
			"rank do not come here; put %u into the map, or set PTL3_NID=%u",
			rank, nid, node->nid, node->nid, nid);
	return pid;
}

void p3_named_forked(void)
{
	p3_directory_replace(&named_table, NULL);
}

const struct p3_directory *p3_named_read(struct p3_node *node)
{
	if (!p3_is_placed(node)) {
		const struct p3_directory *d = p3_directory_read(&named_table);
		if (d)
			return d;
		p3_directory_done();
	}
	return p3_directory_read(&node->directory);
}
