/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls around the API: rank, size, id maps; barrier, memory, version, statistics.
 *
 * Under yod the answers are the launcher's.  Else they are the values of the Set calls,
 * or of PTL_MY_RID, PTL_NIDMAP and PTL_PIDMAP when PtlSetRank(…, -1, -1) asked for
 * them; a process without any of these is rank 0 of 1.
 */
#include "lib/lib.h"
#include "shm/fault.h"
#include "portals3_runtime.h"
#include "portals3x.h"
#include "shm/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The values of the Set calls, replaced as a whole, one at a time. */
static p3_directory_ptr said;
static pthread_mutex_t said_lock = PTHREAD_MUTEX_INITIALIZER;

static int check_ni(ptl_handle_ni_t ni)
{
	struct p3_node *node = p3_node();
	if (p3_is_forked_child(node))
		return PTL_NO_INIT;
	if (ni == PTL_INVALID_HANDLE)
		return PTL_OK;
	return p3_is_up(node) && p3_lib_ni(node, ni) ? PTL_OK : PTL_NI_INVALID;
}

/* ---- the environment ---- */

static bool number(const char **text, uint32_t *out)
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
 * list. */
static uint32_t parse_map(const char *text, uint32_t **map_out)
{
	uint32_t n = 0, *map = NULL;
	while (text && *text && n < P3_MAX_NODES) {
		uint32_t *more = realloc(map, (n + 1) * sizeof *map);
		if (more)
			map = more;
		if (!more || !number(&text, &map[n++]) || (*text && *text++ != ':')) {
			free(map);
			return 0;
		}
	}
	*map_out = map;
	return n;
}

static struct p3_directory *from_lists(
	uint32_t rank, uint32_t size, const uint32_t *nid, const uint32_t *pid)
{
	struct p3_directory *d = p3_directory_new(size);
	if (!d)
		return NULL;
	d->ranked = true;
	d->rank = rank;
	for (uint32_t i = 0; i < size; i++) {
		p3_set(&d->member[i].nid, nid[i]);
		for (uint32_t iface = 0; iface < P3_JOB_NIS; iface++)
			p3_set(&d->member[i].pid[iface], pid[i]);
	}
	return d;
}

static int adopt_environment(struct p3_directory **d_out)
{
	const char *rid = getenv("PTL_MY_RID");
	uint32_t rank, *nid = NULL, *pid = NULL;
	uint32_t nnid = parse_map(getenv("PTL_NIDMAP"), &nid);
	uint32_t npid = parse_map(getenv("PTL_PIDMAP"), &pid);
	bool ok = rid && number(&rid, &rank) && !*rid && nnid && nnid == npid &&
		  rank < nnid;
	*d_out = ok ? from_lists(rank, nnid, nid, pid) : NULL;
	free(nid);
	free(pid);
	return *d_out ? PTL_OK : PTL_FAIL;
}

/* ---- values of the Set calls ---- */

/* Copy the values of the Set calls into a new table of this size, to be changed and
 * installed.  Fail if values of another size are set. */
static int copy_said(int size, struct p3_directory **d_out)
{
	const struct p3_directory *now = p3_acquire(&said);
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

static int say_rank(int rank, int size, struct p3_directory **d_out)
{
	if (rank == -1 && size == -1)
		return adopt_environment(d_out);
	if (rank < 0 || rank >= size)
		return PTL_PROCESS_INVALID;
	int rc = copy_said(size, d_out);
	if (rc != PTL_OK)
		return rc;
	(*d_out)->ranked = true;
	(*d_out)->rank = (uint32_t)rank;
	return PTL_OK;
}

/* Set the pids of interface ni, or, for PTL_INVALID_HANDLE, of each interface without
 * pids of its own. */
static void say_pids(struct p3_directory *d, ptl_handle_ni_t ni, const uint32_t *map)
{
	bool all = ni == PTL_INVALID_HANDLE;
	for (uint32_t iface = 0; iface < P3_JOB_NIS; iface++) {
		if (all ? d->own[iface] : iface != p3_handle_ni(ni))
			continue;
		d->own[iface] = !all;
		for (uint32_t i = 0; i < d->size; i++)
			p3_set(&d->member[i].pid[iface], map[i]);
	}
}

static int say_map(ptl_handle_ni_t ni, const uint32_t *map, int size, bool pids,
	struct p3_directory **d_out)
{
	for (int i = 0; i < size; i++)
		if (map[i] == P3_UNKNOWN)
			return PTL_PROCESS_INVALID;
	int rc = copy_said(size, d_out);
	if (rc == PTL_OK && pids)
		say_pids(*d_out, ni, map);
	for (int i = 0; rc == PTL_OK && !pids && i < size; i++)
		p3_set(&(*d_out)->member[i].nid, map[i]);
	return rc;
}

/* ---- processes that may come ---- */

static void list_lists(struct p3_listed *l, const char *nids, const char *pids)
{
	uint32_t *nid = NULL, *pid = NULL;
	uint32_t n = parse_map(nids, &nid);
	bool ok = n && parse_map(pids, &pid) == n;
	for (uint32_t i = 0; ok && i < n; i++)
		l->id[l->n++] = (uint64_t)pid[i] << 32 | nid[i];
	free(nid);
	free(pid);
}

static void list_said(struct p3_listed *l, const struct p3_directory *d)
{
	for (uint32_t i = 0; d && i < d->size; i++)
		for (uint32_t k = 0; k < P3_JOB_NIS; k++) {
			uint64_t pid = p3_get(&d->member[i].pid[k]);
			uint32_t nid = p3_get(&d->member[i].nid);
			if (pid != P3_UNKNOWN && nid != P3_UNKNOWN)
				l->id[l->n++] = pid << 32 | nid;
		}
}

void p3_list_ids(struct p3_node *node, struct p3_nic *nic)
{
	const uint32_t most = P3_MAX_NODES * (P3_JOB_NIS + 1);
	if (p3_is_placed(node) || !node->domain[0])
		return;
	struct p3_listed *l = malloc(sizeof *l + most * sizeof l->id[0]);
	if (!l)
		return;
	l->n = 0;
	list_lists(l, getenv("PTL_NIDMAP"), getenv("PTL_PIDMAP"));
	list_said(l, p3_directory_read(&said));
	p3_directory_done();
	p3_nic_list(nic, l);
}

/* Install new values of the Set calls.  The caller holds said_lock. */
static void say(struct p3_node *node, struct p3_directory *d)
{
	struct p3_nic *nic = p3_is_up(node) ? p3_nic(node) : NULL;
	p3_directory_replace(&said, d);
	if (nic)
		p3_list_ids(node, nic);
}

/* Return the table from which queries are answered: the launcher's, else that of the Set
 * calls, else that of a job of one. */
static const struct p3_directory *read_answers(struct p3_node *node)
{
	if (!p3_is_placed(node)) {
		const struct p3_directory *d = p3_directory_read(&said);
		if (d)
			return d;
		p3_directory_done();
	}
	return p3_directory_read(&node->directory);
}

/* ---- rank ---- */

int PtlSetRank(ptl_handle_ni_t ni_handle, int rank, int size)
{
	struct p3_node *node = p3_node();
	struct p3_directory *d = NULL;
	int rc = check_ni(ni_handle);
	if (rc != PTL_OK)
		return rc;
	if (p3_is_placed(node)) {
		bool same = (rank == -1 || (uint32_t)rank == node->rank) &&
			    (size == -1 || (uint32_t)size == node->size);
		return same ? PTL_OK : PTL_FAIL;
	}
	if (p3_is_busy())
		return PTL_FAIL;
	struct p3_caller caller = p3_caller_save(); /* number() changes errno */
	pthread_mutex_lock(&said_lock);
	rc = say_rank(rank, size, &d);
	if (rc == PTL_OK)
		say(node, d);
	pthread_mutex_unlock(&said_lock);
	p3_caller_restore(caller);
	return rc;
}

int PtlGetRank(ptl_handle_ni_t ni_handle, unsigned int *rank, unsigned int *size)
{
	if (!rank || !size)
		return PTL_SEGV;
	int rc = check_ni(ni_handle);
	if (rc != PTL_OK)
		return rc;
	const struct p3_directory *d = read_answers(p3_node());
	rc = d && d->ranked ? PTL_OK : PTL_FAIL;
	if (rc == PTL_OK) {
		*rank = d->rank;
		*size = d->size;
	}
	p3_directory_done();
	return rc;
}

/* ---- ids and maps ---- */

static int id_in(
	const struct p3_directory *d, uint32_t iface, uint32_t rank, ptl_process_id_t *id)
{
	if (!d)
		return PTL_FAIL;
	if (rank >= d->size)
		return PTL_PROCESS_INVALID;
	id->nid = p3_get(&d->member[rank].nid);
	id->pid = p3_get(&d->member[rank].pid[iface]);
	return PTL_OK;
}

/* Return the interface that speaks for the process: PTL_IFACE_SS if it is the only
 * one. */
static uint32_t iface_of(ptl_handle_ni_t ni)
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
	int rc = check_ni(ni_handle);
	if (rc != PTL_OK)
		return rc;
	rc = id_in(read_answers(p3_node()), iface_of(ni_handle), rank, &found);
	p3_directory_done();
	if (rc == PTL_OK && (found.nid == P3_UNKNOWN || found.pid == P3_UNKNOWN))
		rc = PTL_FAIL;
	if (rc == PTL_OK)
		*id = found;
	return rc;
}

/* Compare with the launcher's map, which stays: setting the same values is allowed. */
static int agree_with_launcher(
	struct p3_node *node, uint32_t iface, const uint32_t *map, int size, bool pids)
{
	if (size < 1 || (uint32_t)size != node->size)
		return PTL_PROCESS_INVALID;
	const struct p3_directory *d = p3_directory_read(&node->directory);
	int rc = PTL_OK;
	for (uint32_t i = 0; d && i < d->size; i++) {
		const struct p3_member *m = &d->member[i];
		if (map[i] != p3_get(pids ? &m->pid[iface] : &m->nid))
			rc = PTL_FAIL;
	}
	p3_directory_done();
	return rc;
}

static int set_map(ptl_handle_ni_t ni, const uint32_t *map, int size, bool pids)
{
	struct p3_node *node = p3_node();
	struct p3_directory *d = NULL;
	if (!map)
		return PTL_SEGV;
	int rc = check_ni(ni);
	if (rc != PTL_OK)
		return rc;
	if (p3_is_placed(node))
		return agree_with_launcher(node, iface_of(ni), map, size, pids);
	if (p3_is_busy())
		return PTL_FAIL;
	struct p3_caller caller = p3_caller_save();
	pthread_mutex_lock(&said_lock);
	rc = say_map(ni, map, size, pids, &d);
	if (rc == PTL_OK)
		say(node, d);
	else
		free(d);
	pthread_mutex_unlock(&said_lock);
	p3_caller_restore(caller);
	return rc;
}

int PtlSetNIDMap(ptl_handle_ni_t ni_handle, ptl_nid_t *map, int size)
{
	return set_map(ni_handle, map, size, false);
}

int PtlSetPIDMap(ptl_handle_ni_t ni_handle, ptl_pid_t *map, int size)
{
	return set_map(ni_handle, map, size, true);
}

static int map_in(
	const struct p3_directory *d, uint32_t iface, uint32_t *map, int size, bool pids)
{
	if (!d)
		return PTL_FAIL;
	if (size < 1 || (uint32_t)size > d->size)
		return PTL_PROCESS_INVALID;
	for (int i = 0; i < size; i++) {
		const struct p3_member *m = &d->member[i];
		if (p3_get(pids ? &m->pid[iface] : &m->nid) == P3_UNKNOWN)
			return PTL_FAIL;
	}
	for (int i = 0; i < size; i++) {
		const struct p3_member *m = &d->member[i];
		map[i] = p3_get(pids ? &m->pid[iface] : &m->nid);
	}
	return PTL_OK;
}

static int get_map(ptl_handle_ni_t ni, uint32_t *map, int size, bool pids)
{
	if (!map)
		return PTL_SEGV;
	int rc = check_ni(ni);
	if (rc != PTL_OK)
		return rc;
	rc = map_in(read_answers(p3_node()), iface_of(ni), map, size, pids);
	p3_directory_done();
	return rc;
}

int PtlGetNIDMap(ptl_handle_ni_t ni_handle, ptl_nid_t *map, int size)
{
	return get_map(ni_handle, map, size, false);
}

int PtlGetPIDMap(ptl_handle_ni_t ni_handle, ptl_pid_t *map, int size)
{
	return get_map(ni_handle, map, size, true);
}

/* Set the job id of a process without a launcher, for interfaces opened from now on. */
int PtlSetJID(ptl_handle_ni_t ni_handle, ptl_jid_t jid)
{
	struct p3_node *node = p3_node();
	int rc = check_ni(ni_handle);
	if (rc != PTL_OK)
		return rc;
	if (jid == PTL_JID_ANY || !p3_is_up(node))
		return PTL_FAIL;
	if (p3_is_placed(node) || p3_nic(node))
		return jid == node->jid ? PTL_OK : PTL_FAIL;
	node->jid = jid;
	return PTL_OK;
}

/* ---- barrier ---- */

/* Name once the rank for which a barrier has failed. */
static void say_ended(struct p3_node *node, uint32_t rank)
{
	static p3_a32 said;
	if (rank < node->size && !p3_exchange32(&said, 1))
		p3_warn("PtlXBarrier: rank %u has ended, so this barrier and all that "
			"follow fail; see that all ranks call PtlXBarrier equally often "
			"before they end",
			rank);
}

static int barrier_of_domain(struct p3_node *node)
{
	struct p3_caller caller = p3_caller_save();
	struct p3_nic *nic = p3_nic(node);
	if (nic)
		p3_nic_settle(nic, P3_SETTLE_NS);
	uint32_t ended = P3_JOB_NO_RANK;
	int rc = node->size > 1 ? p3_meet_barrier(node, &ended) : 0;
	say_ended(node, ended);
	p3_caller_restore(caller);
	return rc ? PTL_FAIL : PTL_OK;
}

/*
 * Wait until yod releases the barrier.  The caller holds the lock node->life.  If another
 * thread calls PtlFini, it wakes this one, and the call fails; but for yod this process
 * has come to the barrier, so its next PtlXBarrier waits for the same release.
 */
static int await_release(struct p3_node *node)
{
	uint32_t life = node->fini_calls, before = node->barriers_taken;
	while (node->barriers_done == before && node->fini_calls == life)
		pthread_cond_wait(&node->changed, &node->life);
	if (node->barriers_done == before)
		return -EPIPE;
	if (node->barriers_taken == before) { /* this caller is the first */
		node->barriers_taken = node->barriers_done;
		node->in_barrier = false;
	}
	return node->barrier_status;
}

/* Send BARRIER to yod, unless an earlier one has no release yet.  The caller holds the
 * lock node->life. */
static int come_to_barrier(struct p3_node *node)
{
	struct p3_job_msg m = {
		.magic = P3_JOB_MAGIC, .op = P3_JOB_BARRIER, .node = node->rank};
	if (node->in_barrier)
		return 0;
	node->barriers_taken = node->barriers_done;
	int rc = p3_job_say(node, &m, NULL, 0);
	FAULT_POINT("barrier.entered");
	node->in_barrier = !rc;
	return rc;
}

static int barrier_of_yod(struct p3_node *node)
{
	uint32_t ended = P3_JOB_NO_RANK;
	int rc = PTL_NO_INIT; /* another thread may have called PtlFini */
	struct p3_caller caller = p3_caller_save();
	struct p3_nic *nic = p3_nic(node);
	if (nic)
		p3_nic_settle(nic, P3_SETTLE_NS);
	pthread_mutex_lock(&node->life);
	if (p3_is_up(node))
		rc = come_to_barrier(node) || await_release(node) ? PTL_FAIL : PTL_OK;
	if (rc == PTL_FAIL && node->barrier_status)
		ended = node->barrier_ended;
	pthread_mutex_unlock(&node->life);
	say_ended(node, ended);
	p3_caller_restore(caller);
	return rc;
}

int PtlXBarrier(void)
{
	struct p3_node *node = p3_node();
	if (!p3_is_up(node))
		return PTL_NO_INIT;
	if (p3_is_busy())
		return PTL_FAIL;
	struct p3_nic *nic = p3_nic(node);
	if (nic)
		p3_nic_attend(nic);
	if (node->sock >= 0)
		return barrier_of_yod(node);
	return node->launched ? barrier_of_domain(node) : PTL_OK;
}

/* ---- memory ---- */

/* A header in front of every block, so that PtlFini can free all of them. */
struct block {
	struct block *next, **prev;
	uint64_t magic;
	struct p3_heap *heap; /* NULL: ordinary memory */
	uint8_t pad[32];
};

_Static_assert(sizeof(struct block) == 64, "blocks are aligned to 64 bytes");

#define P3_BLOCK_MAGIC 0x50334c6f636b2121u

static struct block *block_alloc(struct p3_heap *heap, size_t length)
{
	size_t size = p3_round_up(length, 64) + sizeof(struct block);
	struct block *b = heap ? p3_heap_alloc(heap, size) : NULL;
	if (!b) {
		heap = NULL;
		b = aligned_alloc(64, size);
	}
	if (b) {
		b->heap = heap;
		b->magic = P3_BLOCK_MAGIC;
	}
	return b;
}

static void block_free(struct block *b)
{
	int saved = errno;
	b->magic = 0;
	if (b->heap)
		p3_heap_free(b->heap, b);
	else
		free(b);
	errno = saved;
}

/* Link a block.  The caller holds the lock node->life. */
static void block_link(struct p3_node *node, struct block *b)
{
	b->next = node->blocks;
	b->prev = (struct block **)&node->blocks;
	if (b->next)
		b->next->prev = &b->next;
	node->blocks = b;
}

int PtlXAlloc(ptl_size_t length, void **addr)
{
	struct p3_node *node = p3_node();
	if (!addr)
		return PTL_SEGV;
	if (!p3_is_up(node))
		return PTL_NO_INIT;
	if (length == 0) {
		*addr = NULL;
		return PTL_OK;
	}
	if (length > SIZE_MAX / 2 || p3_is_busy())
		return PTL_NO_SPACE;
	struct p3_caller caller = p3_caller_save();
	struct block *b = block_alloc(p3_heap_for_blocks(node), length);
	if (b) {
		pthread_mutex_lock(&node->life);
		block_link(node, b);
		pthread_mutex_unlock(&node->life);
		*addr = b + 1;
	}
	p3_caller_restore(caller);
	return b ? PTL_OK : PTL_NO_SPACE;
}

int PtlXFree(void *addr)
{
	struct p3_node *node = p3_node();
	if (!p3_is_up(node))
		return PTL_NO_INIT;
	if (!addr)
		return PTL_OK;
	struct block *b = (struct block *)addr - 1;
	if ((uintptr_t)addr % 64 || b->magic != P3_BLOCK_MAGIC)
		return PTL_FAIL;
	if (p3_is_busy())
		return PTL_NO_SPACE;
	struct p3_caller caller = p3_caller_save();
	pthread_mutex_lock(&node->life);
	*b->prev = b->next;
	if (b->next)
		b->next->prev = b->prev;
	pthread_mutex_unlock(&node->life);
	block_free(b);
	p3_caller_restore(caller);
	return PTL_OK;
}

void p3_blocks_free(struct p3_node *node)
{
	struct block *b = node->blocks;
	node->blocks = NULL;
	while (b) {
		struct block *next = b->next;
		block_free(b);
		b = next;
	}
}

/* ---- version, statistics ---- */

const char *PtlXVersion(void)
{
	return P3_VERSION;
}

static void fill(struct p3_nic *nic, ptlx_stats_t *s)
{
	s->msgs_sent = p3_nic_counter(nic, P3_C_SENT);
	s->msgs_received = p3_nic_counter(nic, P3_C_RECEIVED);
	s->bytes_sent = p3_nic_counter(nic, P3_C_SENT_BYTES);
	s->bytes_received = p3_nic_counter(nic, P3_C_RECEIVED_BYTES);
	s->drops = p3_nic_counter(nic, P3_C_DROPS);
	s->puts_inline = p3_nic_counter(nic, P3_C_PUT_INLINE);
	s->puts_eager = p3_nic_counter(nic, P3_C_PUT_EAGER);
	s->moved_bulk_bytes = p3_nic_counter(nic, P3_C_BULK_BYTES);
	s->moved_cma_bytes = p3_nic_counter(nic, P3_C_CMA_BYTES);
	s->passes = p3_nic_counter(nic, P3_C_PASSES);
	s->passes_drained = p3_nic_counter(nic, P3_C_DRAINED);
	s->pass_overruns = p3_nic_counter(nic, P3_C_OVERRUNS);
	s->lease_host = p3_nic_counter(nic, P3_C_LEASE_HOST);
	s->lease_nic = p3_nic_counter(nic, P3_C_LEASE_NIC);
	s->kicks_sent = p3_nic_counter(nic, P3_C_KICKS);
	s->wakes_sent = p3_nic_counter(nic, P3_C_WAKES);
	s->park_late = p3_nic_counter(nic, P3_C_PARK_LATE);
	s->cma_fallback = p3_nic_counter(nic, P3_C_CMA_FALLBACK);
	s->peers_alive = p3_nic_peers_alive(nic);
	s->lanes_full = p3_nic_counter(nic, P3_C_QUEUED);
	s->hugepages = p3_nic_is_huge(nic);
	s->bad_headers = p3_nic_counter(nic, P3_C_BAD_HEADERS);
	s->moved_direct_bytes = p3_nic_counter(nic, P3_C_DIRECT_BYTES);
	s->wire_dropped = p3_nic_wire_counter(nic, P3_W_FAULTS + P3_FAULT_DROP);
	s->wire_corrupted = p3_nic_wire_counter(nic, P3_W_FAULTS + P3_FAULT_CORRUPT);
	s->wire_delayed = p3_nic_wire_counter(nic, P3_W_FAULTS + P3_FAULT_DELAY);
	s->wire_doubled = p3_nic_wire_counter(nic, P3_W_FAULTS + P3_FAULT_DUP);
	s->wire_reordered = p3_nic_wire_counter(nic, P3_W_FAULTS + P3_FAULT_REORDER);
	s->wire_resent = p3_nic_wire_counter(nic, P3_W_RESENT);
	s->wire_bad_sums = p3_nic_wire_counter(nic, P3_W_BAD_SUMS);
	s->wire_doubles = p3_nic_wire_counter(nic, P3_W_DOUBLES);
	s->wire_gaps = p3_nic_wire_counter(nic, P3_W_GAPS);
}

/* Length of the first version, which programs may have been compiled with. */
#define STATS_LEAST offsetof(ptlx_stats_t, moved_direct_bytes)

int PtlXStats(ptl_handle_ni_t ni_handle, ptlx_stats_t *stats)
{
	ptlx_stats_t s = {.struct_size = sizeof s};
	if (!stats)
		return PTL_SEGV;
	P3_CALL(nic, PTL_NI_INVALID);
	if (!p3_lib_ni(p3_node(), ni_handle))
		return PTL_NI_INVALID;
	uint32_t room = stats->struct_size;
	if (room < STATS_LEAST)
		return PTL_FAIL;
	fill(nic, &s);
	memset(stats, 0, room);
	memcpy(stats, &s, room < sizeof s ? room : sizeof s);
	return PTL_OK;
}
