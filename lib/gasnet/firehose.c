/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * firehose.c - a cache of descriptors over ranges of pages, for
 * GASNET_PORTAL_LOCAL=firehose
 *
 * A region is a descriptor over whole pages, of fh_region bytes at most.  It is busy
 * while operations use it, then idle in the LRU list, then destroyed.  A new region
 * absorbs its neighbors as far as the limit allows; these are redundant from then on: no
 * longer found, and destroyed when their last operation ends.  The bucket of a page names
 * the newest region that covers the page.
 *
 * Invariants: regions and bytes stay within their limits; each bucket names a live region
 * that covers its page and is not redundant; an idle region is in the LRU list once.
 *
 * One lock protects all of it.  A thread that waits for a victim holds no lock, and polls
 * class 1, whose events end references.  Descriptors are unlinked in take alone, not
 * in event handling.
 */
#include "internal.h"

enum { NONE = UINT32_MAX };

struct region {
	uintptr_t start;
	size_t length; /* 0: the slot is free */
	ptl_handle_md_t md;
	uint32_t references;
	uint32_t older, newer; /* LRU list of idle regions */
	bool redundant;
};

struct bucket {
	uintptr_t page;
	uint32_t region;
	struct bucket *next;
};

static gasneti_lock_t lock = GASNETI_UNLOCKED;
static struct region *regions;
static struct bucket **buckets, *free_buckets;
static size_t mask, bytes;
static uint32_t count, oldest = NONE, newest = NONE, dead; /* dead: to be destroyed */

static uintptr_t page_of(uintptr_t addr)
{
	return addr / GASNET_PAGESIZE;
}

void gasneti_firehose_attach(void)
{
	size_t size = 1024;
	while (size < gasneti.set.fh_bytes / GASNET_PAGESIZE)
		size *= 2;
	mask = size - 1;
	regions = calloc(gasneti.set.fh_regions, sizeof(*regions));
	buckets = calloc(size, sizeof(*buckets));
	if (!regions || !buckets)
		gasneti_fatal("no memory for the firehose tables");
}

/* ---- buckets ---- */

static struct bucket **bucket_link(uintptr_t page)
{
	struct bucket **link = &buckets[page & mask];
	while (*link && (*link)->page != page)
		link = &(*link)->next;
	return link;
}

static struct region *find(uintptr_t page)
{
	struct bucket *bucket = *bucket_link(page);
	return bucket ? &regions[bucket->region] : NULL;
}

static void bucket_set(uintptr_t page, uint32_t region)
{
	struct bucket **link = bucket_link(page), *bucket = *link;
	if (!bucket) {
		bucket = free_buckets;
		if (bucket)
			free_buckets = bucket->next;
		else if (!(bucket = malloc(sizeof(*bucket))))
			gasneti_fatal("no memory for a firehose bucket");
		bucket->page = page;
		bucket->next = NULL;
		*link = bucket;
	}
	bucket->region = region;
}

/* Remove the buckets that name a region. */
static void buckets_clear(uint32_t index)
{
	const struct region *r = &regions[index];
	uintptr_t end = page_of(r->start + r->length);
	for (uintptr_t page = page_of(r->start); page < end; page++) {
		struct bucket **link = bucket_link(page), *bucket = *link;
		if (!bucket || bucket->region != index)
			continue;
		*link = bucket->next;
		bucket->next = free_buckets;
		free_buckets = bucket;
	}
}

/* ---- LRU list ---- */

static void lru_add(uint32_t index)
{
	struct region *r = &regions[index];
	r->older = newest;
	r->newer = NONE;
	if (newest != NONE)
		regions[newest].newer = index;
	else
		oldest = index;
	newest = index;
}

static void lru_remove(uint32_t index)
{
	struct region *r = &regions[index];
	if (r->older != NONE)
		regions[r->older].newer = r->newer;
	else
		oldest = r->newer;
	if (r->newer != NONE)
		regions[r->newer].older = r->older;
	else
		newest = r->older;
}

/* ---- life of a region ---- */

static void destroy(uint32_t index)
{
	struct region *r = &regions[index];
	gasneti_must(PtlMDUnlink(r->md), "PtlMDUnlink");
	buckets_clear(index);
	bytes -= r->length;
	count--;
	r->length = 0;
}

/* Destroy the redundant regions whose last operation has ended. */
static void destroy_dead(void)
{
	for (uint32_t i = 0; dead && i < gasneti.set.fh_regions; i++)
		if (regions[i].length && regions[i].redundant && !regions[i].references) {
			destroy(i);
			dead--;
		}
}

/* A new region covers this one: it is not found any more. */
static void absorb(struct region *r)
{
	uint32_t index = (uint32_t)(r - regions);
	gasneti_count(&gasneti.stats.merges, 1);
	r->redundant = true;
	buckets_clear(index);
	if (!r->references) {
		lru_remove(index);
		destroy(index);
	}
}

/* Grow [*start, *end) by the regions that it meets or touches, within the limit. */
static void coalesce(uintptr_t *start, uintptr_t *end)
{
	uintptr_t last = page_of(*end);
	for (uintptr_t page = page_of(*start) - 1; page <= last; page++) {
		struct region *r = find(page);
		if (!r)
			continue;
		uintptr_t from = r->start < *start ? r->start : *start;
		uintptr_t to = r->start + r->length;
		to = to > *end ? to : *end;
		if (to - from > gasneti.set.fh_region)
			continue;
		*start = from;
		*end = to;
		absorb(r);
	}
}

/* Make room for a region by destroying idle ones; return false if too many are busy. */
static bool make_room(size_t length)
{
	while (count + 1 > gasneti.set.fh_regions ||
		bytes + length > gasneti.set.fh_bytes) {
		destroy_dead();
		if (oldest == NONE)
			return count + 1 <= gasneti.set.fh_regions &&
			       bytes + length <= gasneti.set.fh_bytes;
		uint32_t victim = oldest;
		gasneti_count(&gasneti.stats.evictions, 1);
		lru_remove(victim);
		destroy(victim);
	}
	return true;
}

static uint32_t create(uintptr_t start, uintptr_t end)
{
	uint32_t index = 0;
	while (regions[index].length)
		index++;
	regions[index] =
		(struct region){.start = start, .length = end - start, .references = 1};
	regions[index].md = gasneti_bind((void *)start, end - start, 0, gasneti.safe_eq);
	for (uintptr_t page = page_of(start); page < page_of(end); page++)
		bucket_set(page, index);
	bytes += end - start;
	count++;
	gasneti_peak(&gasneti.stats.bytes_high, bytes);
	gasneti_peak(&gasneti.stats.regions_high, count);
	return index;
}

/* Return the index of a region that covers the bytes, with a reference; or NONE. */
static uint32_t hit(uintptr_t addr, size_t nbytes)
{
	struct region *r = find(page_of(addr));
	if (!r || r->start + r->length < addr + nbytes)
		return NONE;
	uint32_t index = (uint32_t)(r - regions);
	gasneti_count(&gasneti.stats.hits, 1);
	if (!r->references++)
		lru_remove(index);
	return index;
}

/* Make a region over the bytes, waiting for room. */
static uint32_t miss(uintptr_t addr, size_t nbytes)
{
	uintptr_t start = addr & ~(uintptr_t)(GASNET_PAGESIZE - 1);
	uintptr_t end =
		(addr + nbytes + GASNET_PAGESIZE - 1) & ~(uintptr_t)(GASNET_PAGESIZE - 1);
	gasneti_count(&gasneti.stats.misses, 1);
	destroy_dead();
	coalesce(&start, &end);
	while (!make_room(end - start)) {
		gasneti_wait_t wait;
		gasneti_wait_init(&wait);
		gasneti_unlock(&lock);
		gasneti_turn(&wait, GASNETI_SAFE);
		gasneti_lock(&lock);
	}
	return create(start, end);
}

/* Name nbytes, which fit a region, by a region. */
void gasneti_firehose_take(struct gasneti_local *local, uintptr_t addr, size_t nbytes)
{
	gasneti_lock(&lock);
	uint32_t index = hit(addr, nbytes);
	if (index == NONE)
		index = miss(addr, nbytes);
	const struct region *r = &regions[index];
	*local = (struct gasneti_local){r->md, addr - r->start, nbytes,
		(uint64_t)index + GASNETI_FIREHOSE_RESOURCE};
	gasneti_unlock(&lock);
}

/* End one operation's use of a region. */
void gasneti_firehose_release(uint32_t index)
{
	struct region *r = &regions[index];
	gasneti_lock(&lock);
	if (!--r->references) {
		if (r->redundant)
			dead++;
		else
			lru_add(index);
	}
	gasneti_unlock(&lock);
}
