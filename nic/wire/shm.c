/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wire between nodes of one machine: shared memory.  The rings, words and tables of a
 * pair are the published segments of both nodes, so this wire has nothing to carry.  It
 * owns the mapping of a peer's descriptors; its state is in struct p3_peer.
 *
 * The proof of ownership.  A cross-memory read names the owner of the memory by its
 * process id.  Once the owner is dead and reaped (yod delays the reaping of its children,
 * other parents do not) the id may name another process; after exec it names another
 * program.  The transfer's id in the published segment does not show this: a mapped
 * segment outlives the process.  So the first cross-memory read takes a proof along: the
 * owner's incarnation (64 random bits), from the owner's mapping of its segment's header.
 * The bytes count only if the proof is right:
 *
 *	- The kernel looks the address space up once for a call, and holds it: all bytes
 *	  of the call come from the address space of the proof.
 *	- Only the owner's address space has the proof at that address.  Forked children
 *	  do not inherit the mapping (MADV_DONTFORK), exec and exit drop it, and PtlNIFini
 *	  puts zeros in its place, after all transfers' ids are taken back.
 *	- The transfer's id, read afterwards (XFER.1), shows that the owner still offered
 *	  the bytes.
 *
 * From then on the process id is the owner's until its process ends or executes another
 * program.  The kernel shows that end in the header: the word `owner` names the NIC's
 * thread, and is the futex of its robust list (see set_robust_list, nic/run/thread.c).
 * When that thread ends, at the latest with the process or before exec, the kernel marks
 * the word, before the address space goes, and long before the process id is free.  So if
 * the word is unchanged after a read, the bytes came from the owner's memory.  If the
 * header has no such word, each read takes the proof along.
 *
 * A pidfd would distinguish death from a new process by a second system call, but not
 * exec; and each peer would cost a descriptor, which programs close.
 */
#include "nic/wire/wire.h"
#include "nic/run/run.h"
#include "nic/state.h"
#include "shm/log.h"
#include "shm/trace.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/uio.h>

/* ---- mapping: any thread ---- */

/* Check the header of a peer's segment.  Accept a node that has finished, since it may
 * have sent a message before. */
static int shm_check_header(struct p3_nic *n, const struct p3_peer_info *info)
{
	const struct p3_seg_header *h = info->base;
	uint32_t state = p3_acquire(&h->state); /* SEG.1 */
	uint64_t layout = h->layout;
	if (h->magic != P3_SEG_MAGIC || h->nnodes != n->conf.nnodes ||
		h->node != info->node || h->incarnation != info->incarnation)
		return -EPROTO;
	if (layout == P3_LAYOUT_WORD)
		return state == P3_SEG_LIVE || state == P3_SEG_FINISHED ? 0 : -ESTALE;
	p3_error("node %u: its segment has layout %#llx, this library %#llx; "
		 "link all programs of a job with the same libportals",
		info->node, (unsigned long long)layout,
		(unsigned long long)P3_LAYOUT_WORD);
	return -EPROTO;
}

/*
 * Make sure that all pages that the firmware accesses without further checks have memory:
 * header and counters, the part for this node, the transfer table, and the doorbell.
 * Leave out the parts for other nodes: in a job of N nodes they would be N page table
 * entries for each of N peers in each of N nodes.
 */
static int shm_reach(const struct p3_nic *n, const struct p3_peer_info *info)
{
	const struct p3_layout *l = &n->layout;
	const char *base = info->base;
	int rc = p3_seg_reach(base, l->parts_off);
	if (!rc)
		rc = p3_seg_reach(
			base + p3_part_off(l, n->conf.node), sizeof(struct p3_peer_part));
	if (!rc)
		rc = p3_seg_reach(base + l->xfers_off, l->ctl_len - l->xfers_off);
	return rc ? rc : p3_seg_reach(info->doorbell_at, P3_PAGE);
}

/* Return true if the program's address space is limited: the program needs the
 * addresses that views of heaps would take. */
static bool shm_is_space_limited(void)
{
	struct rlimit space;
	return getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY;
}

/* Map the peer's heap.  Without this mapping long messages are slower. */
static void shm_map_heap(struct p3_nic *n, struct p3_peer_info *info)
{
	if (!info->heap_len || info->node == n->conf.node)
		return;
	static p3_a32 told;
	if (shm_is_space_limited())
		return;
	int rc = p3_heap_view_open(info->heap, info->heap_len, &info->view);
	if (rc && !n->conf.mute && !p3_exchange32(&told, 1))
		p3_warn("node %u: its shared heap cannot be mapped (%s); its long "
			"messages are moved otherwise, and those of other nodes perhaps",
			info->node, strerror(-rc));
}

/* Map the page of the peer's segment that has the part for this node, a second time,
 * beside such pages of other peers.  Without this second mapping polling is slower. */
static void shm_map_page(const struct p3_nic *n, struct p3_peer_info *info)
{
	uint64_t off = p3_part_off(&n->layout, n->conf.node);
	if (p3_seg_map_page(info->published, off - off % P3_PAGE, &info->page))
		info->page = NULL;
}

static int shm_map(struct p3_nic *n, struct p3_peer_info *info)
{
	info->base = info->doorbell_at = NULL;
	info->page = NULL;
	info->view = (struct p3_heap_view){0};
	if (!p3_trace_may_follow(&n->layout, info->seg_len))
		return -EPROTO;
	int rc = p3_seg_map(info->published, info->seg_len, false, &info->base);
	if (!rc)
		rc = p3_seg_map(info->doorbell, P3_PAGE, true, &info->doorbell_at);
	if (!rc)
		rc = shm_reach(n, info);
	if (!rc)
		rc = shm_check_header(n, info);
	if (!rc) {
		shm_map_page(n, info);
		shm_map_heap(n, info);
	}
	return rc;
}

static void shm_unmap(struct p3_peer_info *info)
{
	p3_heap_view_close(&info->view);
	if (info->doorbell_at)
		p3_seg_unmap(info->doorbell_at, P3_PAGE);
	if (info->page)
		p3_seg_unmap_page(info->page);
	if (info->base)
		p3_seg_unmap(info->base, info->seg_len);
}

/* ---- birth ---- */

/* Set the peer's members from the mappings and from the header of its segment. */
static void shm_take_over(
	struct p3_nic *n, struct p3_peer *p, const struct p3_peer_info *info)
{
	p->base = info->base;
	p->page = info->page;
	p->seg_len = info->seg_len;
	p->proof = ((const struct p3_seg_header *)info->base)->self +
		   offsetof(struct p3_seg_header, incarnation);
	p->owner = 0;
	p->nwindows = 0;
	p->proven = false;
	p->doorbell = info->doorbell_at;
	p->asleep = p3_wake_word(n, p->index, p->doorbell);
	n->light = n->light && ((const struct p3_seg_header *)info->base)->fences;
	p->heap = info->view;
	p->cma_off = !n->conf.cma;
}

/* Return the peer's part for this node. */
static struct p3_peer_part *shm_part_of(const struct p3_nic *n, const struct p3_peer *p)
{
	uint64_t off = p3_part_off(&n->layout, n->conf.node);
	return (struct p3_peer_part *)(p->page ? (uintptr_t)p->page + off % P3_PAGE
					       : (uintptr_t)p->base + off);
}

/* Use rings in the published segments themselves. */
static void shm_attach(struct p3_nic *n, struct p3_peer *p,
	const struct p3_peer_info *info, struct p3_lane *lane_out)
{
	shm_take_over(n, p, info);
	const struct p3_layout *l = &n->layout;
	char *here = n->published.base;
	struct p3_peer_part *there = shm_part_of(n, p);
	p->mine = (struct p3_peer_entry *)(here + p3_entry_off(l, p->index));
	p->theirs = &there->entry;
	p->cold = n->conf.nnodes > P3_ALL_HOT ? &p->theirs->cold : &n->never_cold;
	p->image = p->base;
	*lane_out = (struct p3_lane){
		.req_out = (struct p3_cell *)(here + p3_base_req_off(l, p->index)),
		.rsp_out = (struct p3_cell *)(here + p3_base_rsp_off(l, p->index)),
		.req_in = there->req,
		.rsp_in = there->rsp};
}

/* ---- life ---- */

static void shm_kick(struct p3_nic *n, struct p3_peer *p)
{
	struct p3_doorbell *d = p->doorbell;
	if (p3_get(p->asleep) != P3_AWAKE) {
		p3_wake_peer(n, p->asleep);
		return;
	}
	p3_add32(&d->kick, 1);
	FAULT_POINT("kick.counted");
	p3_futex_wake(&d->kick, ~0u, true);
}

static uint64_t shm_passes(const struct p3_nic *n, const struct p3_peer *p)
{
	const p3_a64 *count = (const p3_a64 *)(p->base + n->layout.counters_off);
	return p3_get(&count[P3_C_PASSES]);
}

/* ---- cross-memory reads ---- */

ssize_t p3_shm_read(uint32_t os_pid, const struct iovec *here, unsigned k,
	const struct iovec *there, unsigned l)
{
	int saved = errno;
	ssize_t got = process_vm_readv((pid_t)os_pid, here, k, there, l, 0);
	if (got >= 0)
		return got;
	got = -errno;
	errno = saved;
	return got;
}

/* Read together with the proof of ownership.  The destination is here[1] to
 * here[k]; here[0] is free for the proof. */
static ssize_t shm_read_proven(const struct p3_peer *p, struct iovec *here, unsigned k,
	uint64_t at, uint64_t len)
{
	uint64_t proof;
	struct iovec there[2] = {{(void *)(uintptr_t)p->proof, sizeof proof},
		{(void *)(uintptr_t)at, len}};
	here[0] = (struct iovec){&proof, sizeof proof};
	ssize_t got = p3_shm_read(p->os_pid, here, k + 1, there, 2);
	if (got > (ssize_t)sizeof proof && proof == p->incarnation)
		return got - (ssize_t)sizeof proof;
	if (got >= 0 || got == -EFAULT)
		return got == sizeof proof && proof == p->incarnation ? -EFAULT : -ESRCH;
	return got;
}

/* Return true if the peer's process has neither ended nor become another program. */
static bool shm_is_there(const struct p3_peer *p)
{
	p3_load_fence(); /* SEG.1 */
	return p->owner &&
	       p3_get(&((const struct p3_seg_header *)p->base)->owner) == p->owner;
}

static ssize_t shm_read_known(const struct p3_peer *p, struct iovec *here, unsigned k,
	uint64_t at, uint64_t len)
{
	struct iovec there = {(void *)(uintptr_t)at, len};
	ssize_t got = p3_shm_read(p->os_pid, here + 1, k, &there, 1);
	return shm_is_there(p) ? got : -ESRCH;
}

ssize_t p3_shm_read_peer(
	struct p3_peer *p, struct iovec *here, unsigned k, uint64_t at, uint64_t len)
{
	if (p->proven)
		return shm_read_known(p, here, k, at, len);
	/* Load the word owner before the proof.  The word may still be 0: the NIC's
	 * thread stores it when the thread begins. */
	p->owner =
		p3_acquire(&((const struct p3_seg_header *)p->base)->owner); /* SEG.1 */
	ssize_t got = shm_read_proven(p, here, k, at, len);
	p->proven = got > 0 && shm_is_there(p);
	return got;
}

const struct p3_wire p3_wire_shm = {
	.map = shm_map,
	.unmap = shm_unmap,
	.attach = shm_attach,
	.passes = shm_passes,
	.kick = shm_kick,
};
