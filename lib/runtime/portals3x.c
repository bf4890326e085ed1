/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls of portals3x.h: PtlXBarrier (of yod, and of a job that another launcher
 * started), PtlXAlloc and PtlXFree (blocks of the node's shared heap, or of ordinary
 * memory), descriptors of event queues, PtlXVersion and PtlXStats
 */
#include "lib/domain/mesh.h"
#include "lib/job/job.h"
#include "lib/node/call.h"
#include "shm/heap.h"
#include "portals3x.h"
#include "shm/fault.h"
#include "shm/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- barrier ---- */

/* Name once the rank for which a barrier has failed. */
static void barrier_say_ended(struct p3_node *node, uint32_t rank)
{
	static p3_a32 said;
	if (rank < node->size && !p3_exchange32(&said, 1))
		p3_warn("PtlXBarrier: rank %u has ended, so this barrier and all that "
			"follow fail; see that all ranks call PtlXBarrier equally often "
			"before they end",
			rank);
}

/*
 * Wait until yod releases the barrier.  The caller holds the lock node->life.  If another
 * thread calls PtlFini, fail.  Yod then still counts this process as one that has come to
 * the barrier, so the process's next PtlXBarrier waits for the same release.
 */
static int barrier_await_release(struct p3_node *node)
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
static int barrier_come(struct p3_node *node)
{
	struct p3_job_msg m = {
		.magic = P3_JOB_MAGIC, .op = P3_JOB_BARRIER, .node = node->rank};
	if (node->in_barrier)
		return 0;
	node->barriers_taken = node->barriers_done;
	int rc = p3_job_send_to_yod(node, &m, NULL, 0);
	FAULT_POINT("barrier.entered");
	node->in_barrier = !rc;
	return rc;
}

static int barrier_of_yod(struct p3_node *node, uint32_t *ended_out)
{
	int rc = PTL_NO_INIT; /* another thread may have called PtlFini */
	pthread_mutex_lock(&node->life);
	if (p3_is_up(node))
		rc = barrier_come(node) || barrier_await_release(node) ? PTL_FAIL
								       : PTL_OK;
	if (rc == PTL_FAIL && node->barrier_status)
		*ended_out = node->barrier_ended;
	pthread_mutex_unlock(&node->life);
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
	if (node->sock < 0 && !node->launched)
		return PTL_OK;
	struct p3_caller caller = p3_caller_save();
	uint32_t ended = P3_JOB_NO_RANK;
	int rc = PTL_OK;
	if (nic)
		(void)p3_nic_settle(nic, P3_SETTLE_NS, NULL);
	if (node->sock >= 0)
		rc = barrier_of_yod(node, &ended);
	else if (node->size > 1)
		rc = p3_mesh_barrier(node, &ended) ? PTL_FAIL : PTL_OK;
	barrier_say_ended(node, ended);
	p3_caller_restore(caller);
	return rc;
}

/* ---- memory ---- */

/* A header in front of every block, so that PtlFini can free all of them. */
struct block {
	struct block *next, **prev;
	uint64_t magic;
	struct p3_heap *heap; /* NULL if the block is ordinary memory */
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
	struct block *b = block_alloc(p3_node_heap_for_blocks(node), length);
	if (b) {
		pthread_mutex_lock(&node->life);
		b->next = node->blocks;
		b->prev = (struct block **)&node->blocks;
		if (b->next)
			b->next->prev = &b->next;
		node->blocks = b;
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

/* ---- flow control, puts of bytes ---- */

int PtlXPTHold(ptl_handle_ni_t ni_handle, ptl_pt_index_t index, int on)
{
	P3_CALL(nic, PTL_NI_INVALID);
	struct p3_cmd c = {.op = P3_OP_PT_HOLD, .handle = ni_handle};
	c.pt_hold.pt_index = index;
	c.pt_hold.on = on != 0;
	return p3_nic_do(nic, &c);
}

int PtlXInject(ptl_handle_ni_t ni_handle, const void *start, ptl_size_t length,
	ptl_process_id_t target, ptl_pt_index_t pt_index, ptl_ac_index_t ac_index,
	ptl_match_bits_t match_bits, ptl_size_t remote_offset, ptl_hdr_data_t hdr_data)
{
	P3_CALL(nic, PTL_NI_INVALID);
	struct p3_cmd c;
	const struct p3_move m = {.target = target,
		.bits = match_bits,
		.hdr = hdr_data,
		.remote_offset = remote_offset,
		.length = length,
		.pt_index = pt_index,
		.ac_index = ac_index > 0xffff ? 0xffff : (uint16_t)ac_index};
	if (p3_likely((start || !length) && length <= PTLX_INJECT_MOST &&
		      (pt_index | ac_index) <= 0xffff &&
		      p3_nic_inject(nic, ni_handle, start, &m)))
		return PTL_OK;
	if (target.nid == PTL_NID_ANY || target.pid == PTL_PID_ANY)
		return PTL_PROCESS_INVALID;
	if (!start && length)
		return PTL_SEGV;
	p3_cmd_begin(&c, P3_OP_INJECT, ni_handle);
	c.bytes = start;
	c.move = m;
	return p3_nic_do(nic, &c);
}

/* ---- descriptors of event queues ---- */

int PtlXEQDescriptor(ptl_handle_eq_t eq_handle, int *fd)
{
	if (!fd)
		return PTL_SEGV;
	P3_CALL(nic, PTL_EQ_INVALID);
	return p3_nic_eq_descriptor(nic, eq_handle, fd);
}

int PtlXEQArm(ptl_handle_eq_t eq_handle)
{
	P3_CALL(nic, PTL_EQ_INVALID);
	return p3_nic_eq_arm(nic, eq_handle);
}

/* ---- waits of libraries ---- */

int PtlXWaitsFor(ptl_handle_eq_t eq_handle, const ptlx_wait_t *wait)
{
	P3_CALL(nic, PTL_EQ_INVALID);
	if (wait && wait->struct_size < sizeof *wait)
		return PTL_FAIL;
	if (wait && !wait->library)
		return PTL_SEGV;
	return p3_nic_waits_for(nic, eq_handle, wait);
}

/* ---- statistics ---- */

const char *PtlXVersion(void)
{
	return P3_VERSION;
}

static void stats_fill(struct p3_nic *nic, ptlx_stats_t *s)
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
	s->peers_alive = (uint32_t)p3_nic_counter(nic, P3_G_ALIVE);
	s->lanes_full = p3_nic_counter(nic, P3_C_QUEUED);
	s->hugepages = p3_nic_counter(nic, P3_G_PAGE) == P3_HUGE;
	s->bad_headers = p3_nic_counter(nic, P3_C_BAD_HEADERS);
	s->moved_direct_bytes = p3_nic_counter(nic, P3_C_DIRECT_BYTES);
	s->wire_resent = p3_nic_counter(nic, P3_C_FAR_RESENT);
	s->wire_bad_sums = p3_nic_counter(nic, P3_C_FAR_BAD_SUMS);
	s->wire_doubles = p3_nic_counter(nic, P3_C_FAR_DOUBLES);
	s->wire_gaps = p3_nic_counter(nic, P3_C_FAR_GAPS);
	s->job_alive = p3_nic_job_alive(nic);
	s->interrupts = p3_nic_counter(nic, P3_C_INTERRUPTS);
	s->generic_events = p3_nic_counter(nic, P3_C_GENERIC);
	s->moved_fetched_bytes = p3_nic_counter(nic, P3_C_FETCHED_BYTES);
	s->truncated = p3_nic_counter(nic, P3_C_TRUNCATED);
	s->kept = p3_nic_counter(nic, P3_C_KEPT);
}

/* Length of the first version, which programs may have been compiled with. */
#define STATS_LEAST offsetof(ptlx_stats_t, moved_direct_bytes)

int PtlXStats(ptl_handle_ni_t ni_handle, ptlx_stats_t *stats)
{
	ptlx_stats_t s = {.struct_size = sizeof s};
	if (!stats)
		return PTL_SEGV;
	P3_CALL(nic, PTL_NI_INVALID);
	if (!p3_node_find_ni(p3_node(), ni_handle))
		return PTL_NI_INVALID;
	uint32_t room = stats->struct_size;
	if (room < STATS_LEAST)
		return PTL_FAIL;
	stats_fill(nic, &s);
	memset(stats, 0, room);
	memcpy(stats, &s, room < sizeof s ? room : sizeof s);
	return PTL_OK;
}
