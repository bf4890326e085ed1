/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * local.c - the local side of puts, gets and Long payloads: the descriptor that names it
 *
 * Memory of the own segment is named by RARSRC.  GASNET_PORTAL_LOCAL says which
 * descriptor names other memory:
 *	all	one descriptor over the whole address space; nothing is made or copied
 *	bounce	up to the limit, a chunk of ReqSB, if one is free; otherwise as all
 *	tmpmd	as bounce; otherwise a descriptor of its own, until ACK or REPLY
 *	firehose	as bounce; otherwise a cached descriptor
 * Each try takes what it needs or returns false; the caller waits (poll.c).
 *
 * Each part of an operation carries the number of its resource in its match bits: a
 * chunk, a temporary descriptor, or a region; the handler of its last event gives it
 * back.
 */
#include <sys/queue.h>

#include "internal.h"

static struct gasneti_pool tmpmd_pool;
static ptl_handle_md_t *tmpmds;
static ptl_handle_md_t bounce_md;
static void **bounce_to; /* destinations of gets, for each chunk */

/* ---- chunks, and other things that are taken by their numbers ---- */

static void pool_init(struct gasneti_pool *pool, uint32_t count)
{
	*pool = (struct gasneti_pool){.lock = GASNETI_UNLOCKED};
	pool->stack = gasneti_alloc(count, sizeof(*pool->stack));
	while (pool->free < count) {
		pool->stack[pool->free] = count - 1 - pool->free;
		pool->free++;
	}
}

GASNETI_HOT int gasneti_pool_take(struct gasneti_pool *pool)
{
	int number = -1;
	gasneti_lock(&pool->lock);
	if (gasneti_likely(pool->free))
		number = (int)pool->stack[--pool->free];
	gasneti_unlock(&pool->lock);
	return number;
}

void gasneti_pool_back(struct gasneti_pool *pool, uint32_t number)
{
	gasneti_lock(&pool->lock);
	pool->stack[pool->free++] = number;
	gasneti_unlock(&pool->lock);
}

void gasneti_chunks_init(struct gasneti_chunks *chunks, uint32_t count)
{
	chunks->memory = aligned_alloc(GASNETI_CHUNK, (size_t)count * GASNETI_CHUNK);
	if (!chunks->memory)
		gasneti_fatal("no memory for %u chunks of messages", count);
	pool_init(&chunks->pool, count);
}

/* ---- descriptors ---- */

ptl_handle_md_t gasneti_bind(
	void *start, size_t length, unsigned options, ptl_handle_eq_t eq)
{
	ptl_md_t md = {.start = start,
		.length = length,
		.threshold = PTL_MD_THRESH_INF,
		.options = options | PTL_MD_EVENT_START_DISABLE,
		.eq_handle = eq};
	ptl_handle_md_t handle;
	gasneti_must(PtlMDBind(gasneti.ni, md, PTL_RETAIN, &handle), "PtlMDBind");
	return handle;
}

/* Attach memory as a target of puts; store its entry in *me unless that is NULL. */
ptl_handle_md_t gasneti_attach_target(ptl_pt_index_t index, uint64_t bits, void *start,
	size_t length, unsigned options, ptl_handle_eq_t eq, ptl_handle_me_t *me)
{
	static const ptl_process_id_t any = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_md_t md = {.start = start,
		.length = length,
		.threshold = PTL_MD_THRESH_INF,
		.options = options | PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE,
		.eq_handle = eq};
	ptl_handle_me_t entry;
	ptl_handle_md_t handle;
	gasneti_must(PtlMEMDAttach(gasneti.ni, index, any, bits, ~(ptl_match_bits_t)15,
			     PTL_RETAIN, PTL_INS_AFTER, md, PTL_RETAIN, me ? me : &entry,
			     &handle),
		"PtlMEMDAttach");
	return handle;
}

static ptl_handle_md_t attach_segment(uint64_t bits, unsigned options, ptl_handle_eq_t eq)
{
	return gasneti_attach_target(GASNETI_RAR_PTE, bits, (void *)gasneti.base,
		gasneti.size, options | PTL_MD_MANAGE_REMOTE, eq, NULL);
}

/* Copy the source of a put to a chunk, or let a get write one; return false if none is
 * free, or the bytes are too many. */
bool gasneti_bounce_try(struct gasneti_local *local, void *addr, size_t nbytes, int way)
{
	int chunk;
	if (nbytes > gasneti.set.bounce_limit ||
		(chunk = gasneti_pool_take(&gasneti.requests.pool)) < 0)
		return false;
	size_t at = (size_t)chunk * GASNETI_CHUNK;
	if (way == GASNETI_PUT)
		memcpy(gasneti.requests.memory + at, addr, nbytes);
	bounce_to[chunk] = addr;
	*local = (struct gasneti_local){
		bounce_md, at, nbytes, (uint64_t)chunk + GASNETI_BOUNCE_RESOURCE};
	return true;
}

/* Make a temporary descriptor; return false if there are too many. */
bool gasneti_tmpmd_try(struct gasneti_local *local, void *addr, size_t nbytes)
{
	int slot = gasneti_pool_take(&tmpmd_pool);
	if (slot < 0)
		return false;
	tmpmds[slot] = gasneti_bind(addr, nbytes, 0, gasneti.safe_eq);
	*local = (struct gasneti_local){
		tmpmds[slot], 0, nbytes, (uint64_t)slot + GASNETI_TMPMD_RESOURCE};
	return true;
}

/* ---- firehose ---- */

/*
 * A cache of descriptors over ranges of pages.  A region is a descriptor over whole
 * pages, of fh_region bytes at most.  It is busy while operations use it, then idle in
 * the LRU list, then destroyed.  A new region absorbs its neighbors as far as the limit
 * allows; these are redundant from then on: no longer found, and destroyed when their
 * last operation ends.  The bucket of a page names the newest region that covers the
 * page.
 *
 * Invariants: regions and bytes stay within their limits; each bucket names a live region
 * that covers its page and is not redundant; an idle region is in the LRU list once.
 *
 * One lock protects all of it.  A thread that waits for a victim holds no lock, and polls
 * class 1, whose events end references.  Descriptors are unlinked in gasneti_firehose_try
 * alone, not in event handling.
 */

enum { FH_NONE = UINT32_MAX };

struct fh_region {
	uintptr_t start;
	size_t length; /* 0: the slot is free */
	ptl_handle_md_t md;
	uint32_t references;
	TAILQ_ENTRY(fh_region) idle; /* in the LRU list */
	bool redundant;
};

struct fh_bucket {
	uintptr_t page;
	uint32_t region;
	struct fh_bucket *next;
};

static gasneti_lock_t fh_lock = GASNETI_UNLOCKED;
static struct fh_region *fh_table;
static struct fh_bucket **fh_buckets;
static size_t fh_mask, fh_bytes;
static TAILQ_HEAD(, fh_region) fh_lru = TAILQ_HEAD_INITIALIZER(fh_lru); /* oldest first */
static uint32_t fh_count;
static uint32_t fh_dead; /* redundant regions without references */

static uintptr_t fh_page_of(uintptr_t addr)
{
	return addr / GASNET_PAGESIZE;
}

/* ---- buckets ---- */

static struct fh_bucket **fh_bucket_link(uintptr_t page)
{
	struct fh_bucket **link = &fh_buckets[page & fh_mask];
	while (*link && (*link)->page != page)
		link = &(*link)->next;
	return link;
}

static struct fh_region *fh_find(uintptr_t page)
{
	struct fh_bucket *bucket = *fh_bucket_link(page);
	return bucket ? &fh_table[bucket->region] : NULL;
}

static void fh_bucket_set(uintptr_t page, uint32_t region)
{
	struct fh_bucket **link = fh_bucket_link(page), *bucket = *link;
	if (!bucket) {
		bucket = gasneti_alloc(1, sizeof(*bucket));
		bucket->page = page;
		*link = bucket;
	}
	bucket->region = region;
}

/* Remove the buckets that name a region. */
static void fh_buckets_clear(uint32_t index)
{
	const struct fh_region *r = &fh_table[index];
	uintptr_t end = fh_page_of(r->start + r->length);
	for (uintptr_t page = fh_page_of(r->start); page < end; page++) {
		struct fh_bucket **link = fh_bucket_link(page), *bucket = *link;
		if (!bucket || bucket->region != index)
			continue;
		*link = bucket->next;
		free(bucket);
	}
}

/* ---- life of a region ---- */

static void fh_destroy(uint32_t index)
{
	struct fh_region *r = &fh_table[index];
	gasneti_must(PtlMDUnlink(r->md), "PtlMDUnlink");
	fh_buckets_clear(index);
	fh_bytes -= r->length;
	fh_count--;
	r->length = 0;
}

/* Destroy the redundant regions whose last operation has ended. */
static void fh_destroy_dead(void)
{
	for (uint32_t i = 0; fh_dead && i < gasneti.set.fh_regions; i++)
		if (fh_table[i].length && fh_table[i].redundant &&
			!fh_table[i].references) {
			fh_destroy(i);
			fh_dead--;
		}
}

/* Grow [*start, *end) by the regions that it meets or touches, within the limit.  The new
 * region covers these: they are not found any more. */
static void fh_coalesce(uintptr_t *start, uintptr_t *end)
{
	uintptr_t last = fh_page_of(*end);
	for (uintptr_t page = fh_page_of(*start) - 1; page <= last; page++) {
		struct fh_region *r = fh_find(page);
		if (!r)
			continue;
		uintptr_t from = r->start < *start ? r->start : *start;
		uintptr_t to = r->start + r->length;
		to = to > *end ? to : *end;
		if (to - from > gasneti.set.fh_region)
			continue;
		*start = from;
		*end = to;
		gasneti_count(&gasneti.stats.merges, 1);
		r->redundant = true;
		uint32_t index = (uint32_t)(r - fh_table);
		fh_buckets_clear(index);
		if (!r->references) {
			TAILQ_REMOVE(&fh_lru, r, idle);
			fh_destroy(index);
		}
	}
}

/* Make room for a region by destroying idle ones; return false if too many are busy. */
static bool fh_make_room(size_t length)
{
	while (fh_count + 1 > gasneti.set.fh_regions ||
		fh_bytes + length > gasneti.set.fh_bytes) {
		fh_destroy_dead();
		struct fh_region *victim = TAILQ_FIRST(&fh_lru);
		if (!victim)
			return fh_count + 1 <= gasneti.set.fh_regions &&
			       fh_bytes + length <= gasneti.set.fh_bytes;
		gasneti_count(&gasneti.stats.evictions, 1);
		TAILQ_REMOVE(&fh_lru, victim, idle);
		fh_destroy((uint32_t)(victim - fh_table));
	}
	return true;
}

static uint32_t fh_create(uintptr_t start, uintptr_t end)
{
	uint32_t index = 0;
	while (fh_table[index].length)
		index++;
	fh_table[index] = (struct fh_region){
		.start = start, .length = end - start, .references = 1};
	fh_table[index].md = gasneti_bind((void *)start, end - start, 0, gasneti.safe_eq);
	for (uintptr_t page = fh_page_of(start); page < fh_page_of(end); page++)
		fh_bucket_set(page, index);
	fh_bytes += end - start;
	fh_count++;
	gasneti_peak(&gasneti.stats.bytes_high, fh_bytes);
	gasneti_peak(&gasneti.stats.regions_high, fh_count);
	return index;
}

/* Return the index of a region that covers the bytes, with a reference; or NONE. */
static uint32_t fh_hit(uintptr_t addr, size_t nbytes)
{
	struct fh_region *r = fh_find(fh_page_of(addr));
	if (!r || r->start + r->length < addr + nbytes)
		return FH_NONE;
	uint32_t index = (uint32_t)(r - fh_table);
	gasneti_count(&gasneti.stats.hits, 1);
	if (!r->references++)
		TAILQ_REMOVE(&fh_lru, r, idle);
	return index;
}

/*
 * Name nbytes, which fit a region, by a region.  Return false if there is no room for a
 * new one; the caller then tries again with the same span, which is {0} at first.
 */
bool gasneti_firehose_try(struct gasneti_local *local, uintptr_t addr, size_t nbytes,
	struct gasneti_fh_span *span)
{
	uint32_t index = FH_NONE;
	gasneti_lock(&fh_lock);
	if (!span->end && (index = fh_hit(addr, nbytes)) == FH_NONE) {
		span->start = addr / GASNET_PAGESIZE * GASNET_PAGESIZE;
		span->end = (addr + nbytes + GASNET_PAGESIZE - 1) / GASNET_PAGESIZE *
			    GASNET_PAGESIZE;
		gasneti_count(&gasneti.stats.misses, 1);
		fh_destroy_dead();
		fh_coalesce(&span->start, &span->end);
	}
	if (index == FH_NONE && fh_make_room(span->end - span->start))
		index = fh_create(span->start, span->end);
	if (index != FH_NONE) {
		const struct fh_region *r = &fh_table[index];
		*local = (struct gasneti_local){r->md, addr - r->start, nbytes,
			(uint64_t)index + GASNETI_FIREHOSE_RESOURCE};
	}
	gasneti_unlock(&fh_lock);
	return index != FH_NONE;
}

/* End one operation's use of a region. */
static void fh_release(uint32_t index)
{
	struct fh_region *r = &fh_table[index];
	gasneti_lock(&fh_lock);
	if (!--r->references) {
		if (r->redundant)
			fh_dead++;
		else
			TAILQ_INSERT_TAIL(&fh_lru, r, idle);
	}
	gasneti_unlock(&fh_lock);
}

/* ---- the start ---- */

/* Make the descriptors of the segment and of the local side. */
void gasneti_local_attach(void)
{
	if (gasneti.size) {
		attach_segment(GASNETI_MD_RAR, PTL_MD_OP_GET, PTL_EQ_NONE);
		attach_segment(GASNETI_MD_RARAM, PTL_MD_ACK_DISABLE, gasneti.am_eq);
		gasneti.rarsrc = attach_segment(
			GASNETI_MD_RARSRC, PTL_MD_ACK_DISABLE, gasneti.safe_eq);
	}
	void *start = (void *)GASNETI_ANY_BASE;
	size_t length = GASNETI_ANY_END - GASNETI_ANY_BASE;
	gasneti.any = gasneti_bind(start, length, 0, gasneti.safe_eq);
	gasneti.any_quiet =
		gasneti_bind(start, length, PTL_MD_EVENT_END_DISABLE, gasneti.safe_eq);
	if (gasneti.set.local == GASNETI_LOCAL_ALL)
		return;
	bounce_md = gasneti_bind(gasneti.requests.memory,
		(size_t)gasneti.set.sb_chunks * GASNETI_CHUNK, 0, gasneti.safe_eq);
	bounce_to = gasneti_alloc(gasneti.set.sb_chunks, sizeof(*bounce_to));
	tmpmds = gasneti_alloc(gasneti.set.tmpmds, sizeof(*tmpmds));
	pool_init(&tmpmd_pool, gasneti.set.tmpmds);
	size_t size = 1024;
	while (size < gasneti.set.fh_bytes / GASNET_PAGESIZE)
		size *= 2;
	fh_mask = size - 1;
	fh_table = gasneti_alloc(gasneti.set.fh_regions, sizeof(*fh_table));
	fh_buckets = gasneti_alloc(size, sizeof(*fh_buckets));
}

/* ---- what an operation gives back ---- */

static GASNETI_RARE void local_release(uint64_t resource)
{
	uint32_t slot = (uint32_t)(resource - GASNETI_TMPMD_RESOURCE);
	if (resource >= GASNETI_FIREHOSE_RESOURCE) {
		fh_release((uint32_t)(resource - GASNETI_FIREHOSE_RESOURCE));
	} else if (resource >= GASNETI_TMPMD_RESOURCE) {
		gasneti_must(PtlMDUnlink(tmpmds[slot]), "PtlMDUnlink");
		gasneti_pool_back(&tmpmd_pool, slot);
	} else {
		gasneti_pool_back(&gasneti.requests.pool,
			(uint32_t)(resource - GASNETI_BOUNCE_RESOURCE));
	}
}

/* Give back the resource that match bits name. */
void gasneti_local_release(uint64_t bits)
{
	if (gasneti_unlikely(bits >> GASNETI_RESOURCE_SHIFT))
		local_release(bits >> GASNETI_RESOURCE_SHIFT);
}

/* Copy the bytes of a get from its bounce buffer, if it has one. */
void gasneti_local_arrived(uint64_t bits, size_t nbytes)
{
	uint64_t resource = bits >> GASNETI_RESOURCE_SHIFT;
	if (gasneti_likely(!resource || resource >= GASNETI_TMPMD_RESOURCE))
		return;
	uint64_t chunk = resource - GASNETI_BOUNCE_RESOURCE;
	memcpy(bounce_to[chunk], gasneti.requests.memory + chunk * GASNETI_CHUNK, nbytes);
}
