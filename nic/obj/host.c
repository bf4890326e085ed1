/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The host segment: mailbox, event rings, pendings.  Host threads allocate from it,
 * never the firmware.  When it is full or hugepages run out, a second segment of ordinary
 * pages carries on if the first one had hugepages.
 *
 *	0	mailbox
 *	...	arena: records of rings, heads of rings, chunks of pendings
 *
 * Extents of freed records are split and merged, so that they serve rings of any size,
 * and chunks.  Heads of rings are kept by size and serve nothing else (shm/evq.h); chunks
 * belong to a table and are never freed.  Records of a large ring have a file of their
 * own, where there is room for one more: their memory goes back to the kernel when the
 * queue ends, and delayed readers find zero pages there.
 */
#include "nic/obj/obj.h"
#include "shm/fd.h"
#include "shm/footprint.h"

#include <errno.h>
#include <string.h>

#define FIRST_HEADS 64u     /* number of heads made at first; four pages */
#define P3_LARGE    P3_HUGE /* bytes of records with a file of their own */

int p3_host_create(struct p3_nic *n)
{
	int fell_back;
	pthread_mutex_lock(&n->arena_lock);
	int rc = p3_seg_create("p3-host", P3_HOST_LEN, sizeof *n->mailbox, n->conf.huge,
		&n->host_seg[0], &fell_back);
	if (!rc) {
		n->mailbox = n->host_seg[0].base;
		n->host_used[0] = sizeof *n->mailbox;
		n->host_seg[1].fd = -1;
		p3_mbx_format(n->mailbox);
		rc = p3_seg_seal(&n->host_seg[0]);
		if (rc)
			p3_seg_destroy(&n->host_seg[0]);
	}
	pthread_mutex_unlock(&n->arena_lock);
	if (!rc)
		p3_seg_bind_here(&n->host_seg[0]);
	return rc;
}

/* Drop the host segments.  n->life counts up, so late threads with handles of this life
 * free nothing in the next one. */
void p3_host_drop(struct p3_nic *n)
{
	pthread_mutex_lock(&n->arena_lock);
	p3_count(&n->life, 1);
	for (int i = 0; i < 2; i++)
		if (n->host_seg[i].fd >= 0)
			p3_seg_destroy(&n->host_seg[i]);
	memset(n->free_rings, 0, sizeof n->free_rings);
	memset(n->free_extents, 0, sizeof n->free_extents);
	n->heads_made = n->heads_left = 0;
	pthread_mutex_unlock(&n->arena_lock);
}

/* ---- extents, with arena_lock held ---- */

/*
 * Free memory below host_used, described at its own start.  The list is in the order of
 * addresses, and no two extents of it touch.  Late readers of a former ring there may
 * load any word (shm/evq.h), so all stores here are atomic.
 */
struct p3_extent {
	_Atomic(struct p3_extent *) next;
	p3_a64 len;
};

static char *arena_end_of(struct p3_extent *e)
{
	return (char *)e + p3_get(&e->len);
}

static void arena_wipe(void *p, uint64_t len)
{
	p3_a64 *word = p;
	for (uint64_t i = 0; i < len / sizeof *word; i++)
		p3_set(&word[i], 0);
}

/* Take memory from the end of the smallest extent that is large enough, or return
 * NULL. */
static void *arena_reuse(struct p3_nic *n, int which, uint64_t len)
{
	_Atomic(struct p3_extent *) *at = &n->free_extents[which], *to_best = NULL;
	struct p3_extent *e, *best = NULL;
	for (; (e = p3_get(at)); at = &e->next)
		if (p3_get(&e->len) >= len &&
			(!best || p3_get(&e->len) < p3_get(&best->len))) {
			to_best = at;
			best = e;
		}
	if (!best)
		return NULL;
	p3_set(&best->len, p3_get(&best->len) - len);
	if (!p3_get(&best->len))
		p3_set(to_best, p3_get(&best->next));
	return arena_end_of(best);
}

/* Merge two extents that touch; the first may be NULL. */
static bool arena_merge(struct p3_extent *e, struct p3_extent *next)
{
	if (!e || !next || arena_end_of(e) != (char *)next)
		return false;
	p3_set(&e->len, p3_get(&e->len) + p3_get(&next->len));
	p3_set(&e->next, p3_get(&next->next));
	return true;
}

/* Put memory into the list of its segment. */
static void arena_give(struct p3_nic *n, void *p, uint64_t len)
{
	const struct p3_seg *first = &n->host_seg[0];
	int which = (uint64_t)((char *)p - (char *)first->base) < first->len ? 0 : 1;
	_Atomic(struct p3_extent *) *at = &n->free_extents[which], *to_before = at;
	struct p3_extent *e = p, *before = NULL, *next;
	while ((next = p3_get(at)) && next < e) {
		to_before = at;
		before = next;
		at = &next->next;
	}
	p3_set(&e->len, len);
	p3_set(&e->next, next);
	p3_set(at, e);
	(void)arena_merge(e, next);
	if (arena_merge(before, e)) {
		e = before;
		at = to_before;
	}
	char *end = (char *)n->host_seg[which].base + n->host_used[which];
	if (arena_end_of(e) == end) { /* all above the extent is free */
		n->host_used[which] -= p3_get(&e->len);
		p3_set(at, NULL);
	}
}

static void *arena_get_from(struct p3_nic *n, int which, uint64_t len)
{
	void *p = arena_reuse(n, which, len);
	if (p)
		return p;
	uint64_t off = p3_round_up(n->host_used[which], P3_PAGE);
	if (p3_seg_reserve(&n->host_seg[which], off + len) != 0)
		return NULL;
	n->host_used[which] = off + len;
	return (char *)n->host_seg[which].base + off;
}

static bool arena_have_second(struct p3_nic *n)
{
	int fell_back;
	if (n->host_seg[1].fd >= 0)
		return true;
	if (n->host_seg[0].page == P3_PAGE)
		return false; /* the first one already had ordinary pages */
	n->host_used[1] = 0;
	if (p3_seg_create("p3-host", P3_HOST_LEN, 0, P3_HUGE_OFF, &n->host_seg[1],
		    &fell_back) != 0)
		return false;
	if (p3_seg_seal(&n->host_seg[1]) == 0)
		return true;
	p3_seg_destroy(&n->host_seg[1]);
	return false;
}

/* Return whole pages with any content. */
static void *arena_get(struct p3_nic *n, uint64_t len)
{
	bool here = n->host_seg[0].fd >= 0;
	void *p = here ? arena_get_from(n, 0, len) : NULL;
	if (!p && here && arena_have_second(n))
		p = arena_get_from(n, 1, len);
	return p;
}

/* ---- functions for other files ---- */

void *p3_host_alloc(struct p3_nic *n, uint64_t len)
{
	int saved = errno;
	len = p3_round_up(len, P3_PAGE);
	pthread_mutex_lock(&n->arena_lock);
	void *p = arena_get(n, len);
	if (p)
		arena_wipe(p, len);
	pthread_mutex_unlock(&n->arena_lock);
	errno = saved;
	return p;
}

struct p3_eq *p3_host_unreclaimed(struct p3_nic *n, struct p3_eq *more)
{
	pthread_mutex_lock(&n->arena_lock);
	struct p3_eq *were = n->unreclaimed, *last = more;
	while (last && last->next_dead)
		last = last->next_dead;
	if (last)
		last->next_dead = were;
	n->unreclaimed = more;
	pthread_mutex_unlock(&n->arena_lock);
	return were;
}

static uint64_t ring_bytes(uint32_t records)
{
	return p3_round_up(p3_evq_bytes(records), P3_PAGE);
}

/* Put a head that serves no ring into the list of its size. */
static void ring_keep_head(struct p3_nic *n, struct p3_evq_ring *ring, uint32_t records)
{
	struct p3_evq_ring **list = &n->free_rings[p3_log2(records)];
	p3_set(&ring->next_free, (uintptr_t)*list);
	*list = ring;
}

/* Make heads of rings, twice as many as last time.  A head's memory is never used for
 * anything else, so few large pieces of heads fragment the arena less than many small
 * ones. */
static bool ring_make_heads(struct p3_nic *n)
{
	uint32_t many = n->heads_made ? 2 * n->heads_made : FIRST_HEADS;
	struct p3_evq_ring *head = arena_get(n, many * sizeof *head);
	if (!head)
		return false;
	arena_wipe(head, many * sizeof *head);
	n->new_heads = head;
	n->heads_made = n->heads_left = many;
	return true;
}

static struct p3_evq_ring *ring_get_head(struct p3_nic *n, uint32_t records)
{
	struct p3_evq_ring **list = &n->free_rings[p3_log2(records)], *head = *list;
	if (head) {
		*list = (struct p3_evq_ring *)(uintptr_t)p3_get(&head->next_free);
		return head;
	}
	if (!n->heads_left && !ring_make_heads(n))
		return NULL;
	n->heads_left--;
	return n->new_heads++;
}

/* A head that serves no ring yet, and its segment's life and page size. */
struct ring_head {
	struct p3_evq_ring *ring;
	uint64_t life, start, page;
};

/* Return the prepared records of a large ring, in a file of their own, or NULL.  This is
 * slow, since each page is touched: the caller holds no lock. */
static struct p3_event_record *ring_large_records(
	const struct ring_head *h, uint32_t records)
{
	struct p3_seg seg;
	int fell_back;
	uint64_t len = p3_evq_bytes(records);
	enum p3_huge_policy huge = h->page == P3_PAGE ? P3_HUGE_OFF : P3_HUGE_AUTO;
	if (!h->ring || len < P3_LARGE ||
		p3_seg_create("p3-queue", len, len, huge, &seg, &fell_back) != 0)
		return NULL;
	p3_fd_close(seg.fd);
	p3_evq_blank(seg.base, records, h->start);
	return seg.base;
}

/* Give the head its records, large ones or else some of the arena's.  Return NULL if
 * there are none, or if the host segment has been dropped meanwhile. */
static struct p3_event_record *ring_join(struct p3_nic *n, const struct ring_head *h,
	struct p3_event_record *rec, uint32_t records)
{
	if (!h->ring || h->life != p3_get(&n->life))
		return NULL;
	if (!rec && (rec = arena_get(n, ring_bytes(records))) != NULL)
		p3_evq_blank(rec, records, h->start);
	if (rec)
		p3_release(&h->ring->rec, rec);
	else
		ring_keep_head(n, h->ring, records);
	return rec;
}

struct p3_evq_ring *p3_host_ring(struct p3_nic *n, uint32_t records,
	struct p3_event_record **rec_out, uint64_t *start_out)
{
	int saved = errno;
	pthread_mutex_lock(&n->arena_lock);
	struct ring_head h = {.ring = ring_get_head(n, records),
		.life = p3_get(&n->life),
		.page = n->host_seg[0].page};
	if (h.ring)
		h.start = p3_evq_start(h.ring, records, h.life);
	pthread_mutex_unlock(&n->arena_lock);
	struct p3_event_record *large = ring_large_records(&h, records);
	pthread_mutex_lock(&n->arena_lock);
	*rec_out = ring_join(n, &h, large, records);
	pthread_mutex_unlock(&n->arena_lock);
	if (large && !*rec_out)
		(void)p3_seg_unmap(large, p3_evq_bytes(records));
	*start_out = h.start;
	errno = saved;
	return *rec_out ? h.ring : NULL;
}

void p3_host_ring_free(struct p3_nic *n, struct p3_evq_ring *ring,
	struct p3_event_record *rec, uint32_t records, uint64_t life)
{
	uint64_t len = p3_evq_bytes(records);
	bool large = len >= P3_LARGE && p3_seg_unmap(rec, len);
	pthread_mutex_lock(&n->arena_lock);
	if (life == p3_get(&n->life)) {
		if (!large)
			arena_give(n, rec, ring_bytes(records));
		ring_keep_head(n, ring, records);
	}
	pthread_mutex_unlock(&n->arena_lock);
}
