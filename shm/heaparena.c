/* SPDX-License-Identifier: BSD-3-Clause */
/* A heap's address space as extents of jemalloc's arenas. */
#include "shm/fault.h"
#include "shm/heapin.h"
#include "shm/layout.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HEAP_ALIGN  64
#define CARVE_LEAST ((uint64_t)16 << 10)
#define GROW_MOST   ((size_t)4 << 20) /* bytes that the arena requests beyond its need */

/* ---- extents ---- */

static bool reserve(struct p3_heap *h, uint64_t off, uint64_t len)
{
	return p3_get(&h->mine) ||
	       (p3_heap_is_ours(h) && p3_seg_reserve_range(&h->seg, off, len) == 0);
}

/* Take the next space of the heap.  Return NULL if there is no room, or if at is not NULL
 * and the space would not begin there. */
static void *take(struct p3_heap *h, const void *at, size_t size, size_t align)
{
	uint64_t base = (uintptr_t)h->seg.base, used = p3_get(&h->used), off, end;
	if (align < h->seg.page)
		align = h->seg.page;
	do {
		off = p3_round_up(base + used, align) - base;
		if (off > h->seg.len || size > h->seg.len - off)
			return NULL;
		if (at && at != (char *)h->seg.base + off)
			return NULL;
		end = p3_round_up(off + size, h->seg.page);
	} while (!p3_cas64(&h->used, &used, end));
	if (reserve(h, off, end - off))
		return (char *)h->seg.base + off;
	(void)p3_cas64(&h->used, &end, used);
	return NULL;
}

/* ---- extents of the arena for p3_heap_alloc ---- */

static struct p3_heap *owner(extent_hooks_t *hooks)
{
	return (struct p3_heap *)((char *)hooks - offsetof(struct p3_heap, own));
}

/* Take address space while the heap is carved, without reserving any of it. */
static void *take_space(struct p3_heap *h, size_t size, size_t align)
{
	uint64_t base = (uintptr_t)h->seg.base;
	uint64_t off = p3_round_up(base + h->carved, align) - base;
	if (!h->carving || off > h->seg.len || size > h->seg.len - off)
		return NULL;
	h->carved = off + size;
	return (char *)h->seg.base + off;
}

/* Allocate an extent.  *zero stays false: a forked child's memory may not be zero. */
static void *own_alloc(extent_hooks_t *hooks, void *at, size_t size, size_t align,
	bool *zero, bool *commit, unsigned arena)
{
	struct p3_heap *h = owner(hooks);
	(void)arena;
	*zero = false;
	*commit = true;
	if (h->carving || h->carved)
		return at ? NULL : take_space(h, size, align);
	return take(h, at, size, align);
}

/* Commit pages.  If they end beyond h->used, reserve all pages from h->used to their end:
 * every page below h->used is reserved, also between blocks. */
static bool own_commit(extent_hooks_t *hooks, void *at, size_t size, size_t off,
	size_t len, unsigned arena)
{
	struct p3_heap *h = owner(hooks);
	uint64_t end = (uintptr_t)at + off + len - (uintptr_t)h->seg.base,
		 used = p3_get(&h->used);
	(void)size, (void)arena;
	end = p3_round_up(end, h->seg.page);
	while (used < end) {
		if (!reserve(h, used, end - used))
			return true;
		FAULT_POINT("heap.grown");
		if (p3_cas64(&h->used, &used, end))
			break;
	}
	return false;
}

/* Decommit pages: let jemalloc mark them as uncommitted, so that they merge with pages
 * that never had memory.  The memory itself stays, since the file takes no holes. */
static bool own_decommit(extent_hooks_t *hooks, void *at, size_t size, size_t off,
	size_t len, unsigned arena)
{
	(void)hooks, (void)at, (void)size, (void)off, (void)len, (void)arena;
	return false;
}

static bool extent_split(extent_hooks_t *hooks, void *at, size_t size, size_t a, size_t b,
	bool committed, unsigned arena)
{
	(void)hooks, (void)at, (void)size, (void)a, (void)b, (void)committed, (void)arena;
	return false;
}

static bool extent_merge(extent_hooks_t *hooks, void *a, size_t size_a, void *b,
	size_t size_b, bool committed, unsigned arena)
{
	(void)hooks, (void)a, (void)size_a, (void)b, (void)size_b, (void)committed;
	(void)arena;
	return false;
}

/* ---- extents of the program's long blocks ---- */

static struct p3_heap *heap_of(extent_hooks_t *hooks)
{
	return (struct p3_heap *)((char *)hooks - offsetof(struct p3_heap, program));
}

static void *ordinary_memory(size_t size, size_t align)
{
	size_t more = align > P3_PAGE ? align - P3_PAGE : 0;
	int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	if (size > SIZE_MAX - more)
		return NULL;
	char *p = mmap(NULL, size + more, PROT_READ | PROT_WRITE, flags, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	char *at = (char *)p3_round_up((uintptr_t)p, align);
	if (at > p)
		munmap(p, (size_t)(at - p));
	if (at < p + more)
		munmap(at + size, (size_t)(p + more - at));
	return at;
}

/* Allocate an extent for a long block; ordinary memory where the heap is full, since
 * jemalloc has no other source. */
static void *program_alloc(extent_hooks_t *hooks, void *at, size_t size, size_t align,
	bool *zero, bool *commit, unsigned arena)
{
	void *p = take(heap_of(hooks), at, size, align);
	(void)arena;
	*zero = false;
	*commit = true;
	if (p || at)
		return p;
	*zero = true;
	return ordinary_memory(size, align);
}

/* Free an extent.  Refuse (true) an extent of the heap, which jemalloc then keeps; unmap
 * ordinary memory, also from before the heap served malloc. */
static bool program_dalloc(
	extent_hooks_t *hooks, void *at, size_t size, bool committed, unsigned arena)
{
	(void)committed, (void)arena;
	return p3_heap_has(heap_of(hooks), at) || munmap(at, size) != 0;
}

static bool program_merge(extent_hooks_t *hooks, void *a, size_t size_a, void *b,
	size_t size_b, bool committed, unsigned arena)
{
	(void)size_a, (void)size_b, (void)committed, (void)arena;
	return p3_heap_has(heap_of(hooks), a) != p3_heap_has(heap_of(hooks), b);
}

/* ---- the arena ---- */

/* jemalloc's arena_config_t, which its header does not declare. */
struct arena_config {
	extent_hooks_t *hooks;
	bool books_inside;
};

static int set_option(struct p3_heap *h, unsigned arena, const char *option,
	const void *value, size_t len)
{
	char name[64];
	snprintf(name, sizeof name, "arena.%u.%s", arena, option);
	return -h->calls.mallctl(name, NULL, NULL, (void *)(uintptr_t)value, len);
}

/*
 * Make freed extents merge at once with all free ones, without a stay in jemalloc's cache
 * of dirty extents: there it splits no long extent for a short block, which would take
 * fresh memory instead.
 */
static void merge_at_once(struct p3_heap *h)
{
	ssize_t at_once = 0;
	size_t most = GROW_MOST;
	(void)set_option(h, h->arena, "dirty_decay_ms", &at_once, sizeof at_once);
	(void)set_option(h, h->arena, "muzzy_decay_ms", &at_once, sizeof at_once);
	(void)set_option(h, h->arena, "retain_grow_limit", &most, sizeof most);
}

static bool is_on(const struct p3_heap *h, const char *option)
{
	bool on = false;
	size_t len = sizeof on;
	(void)h->calls.mallctl(option, &on, &len, NULL, 0);
	return on;
}

/* Return true if jemalloc does not write to fresh blocks. */
static bool leaves_alone(const struct p3_heap *h)
{
	const char *junk = "";
	size_t len = sizeof junk;
	(void)h->calls.mallctl("opt.junk", &junk, &len, NULL, 0);
	return !is_on(h, "opt.zero") && !strcmp(junk, "false");
}

/*
 * Let the arena own all of the heap.  jemalloc never merges extents that it got by
 * several calls of the hook `alloc`, because the heap retains its space: a heap that has
 * once been full of short blocks would have no room for long ones.  So the arena
 * allocates all space now, in few pieces, and frees the pieces.  It keeps them as large
 * extents without memory, which jemalloc splits, commits and merges as it likes.
 */
static void carve(struct p3_heap *h)
{
	void *piece[64];
	unsigned n = 0;
	int flags = MALLOCX_ARENA(h->arena) | MALLOCX_TCACHE_NONE;
	h->carving = true;
	for (uint64_t size = h->seg.len; size >= CARVE_LEAST && n < 64;)
		if ((piece[n] = h->calls.mallocx(size, flags)))
			n++;
		else
			size -= size / 8; /* try the next smaller size class */
	while (n)
		h->calls.dallocx(piece[--n], MALLOCX_TCACHE_NONE);
	(void)set_option(h, h->arena, "purge", NULL, 0);
	h->carving = false;
}

int p3_heap_arm(struct p3_heap *h, const struct p3_heap_calls *calls)
{
	struct arena_config config = {&h->own, false};
	size_t len = sizeof h->arena;
	h->own = (extent_hooks_t){.alloc = own_alloc,
		.commit = own_commit,
		.decommit = own_decommit,
		.split = extent_split,
		.merge = extent_merge};
	h->calls = *calls;
	int rc = calls->mallctl("experimental.arenas_create_ext", &h->arena, &len,
		&config, sizeof config);
	if (rc)
		return -rc;
	if (!h->serves && is_on(h, "opt.retain") && leaves_alone(h))
		carve(h);
	merge_at_once(h);
	h->armed = true;
	return 0;
}

/* ---- the program's malloc ---- */

static bool read_size(const struct p3_heap_calls *calls, const char *name, size_t *out)
{
	size_t len = sizeof *out;
	return calls->mallctl(name, out, &len, NULL, 0) == 0;
}

static uint64_t allocated(const struct p3_heap_calls *calls)
{
	uint64_t n = 0;
	size_t len = sizeof n;
	(void)calls->mallctl("thread.allocated", &n, &len, NULL, 0);
	return n;
}

/* Find the arena of a block of this size from malloc.  Return -ENXIO if malloc is not
 * this jemalloc's. */
static int arena_of_malloc(
	const struct p3_heap_calls *calls, size_t size, unsigned *arena_out)
{
	size_t len = sizeof *arena_out;
	uint64_t before = allocated(calls);
	void *block = malloc(size);
	if (!block)
		return -ENOMEM;
	int rc = ENXIO; /* jemalloc may crash when asked about another library's block */
	if (allocated(calls) >= before + size)
		rc = calls->mallctl(
			"arenas.lookup", arena_out, &len, &block, sizeof block);
	free(block);
	return -rc;
}

/* Find the arena for long blocks only. */
static int find_long_arena(const struct p3_heap_calls *calls, unsigned *arena_out)
{
	size_t least, cached, len = sizeof(unsigned);
	unsigned automatic;
	if (!read_size(calls, "opt.oversize_threshold", &least) ||
		!read_size(calls, "opt.tcache_max", &cached) ||
		calls->mallctl("opt.narenas", &automatic, &len, NULL, 0))
		return -ENXIO;
	int rc = arena_of_malloc(calls, least > cached ? least : cached + 1, arena_out);
	return !rc && (!least || *arena_out < automatic) ? -ENOTSUP : rc;
}

/*
 * Let jemalloc keep freed long blocks for a time, as it keeps other freed blocks.  By
 * default it gives their pages back at once, and the next long blocks cost page faults.
 * In an arena whose muzzy decay time is endless it keeps them for the dirty decay time.
 * No extent becomes muzzy, since the arena's hooks have no lazy purge, so no page stays
 * for ever.
 */
static void let_age(struct p3_heap *h, unsigned arena)
{
	ssize_t age, never = -1;
	size_t len = sizeof age;
	(void)set_option(h, arena, "muzzy_decay_ms", &never, sizeof never);
	if (h->calls.mallctl("arenas.dirty_decay_ms", &age, &len, NULL, 0) == 0)
		(void)set_option(h, arena, "dirty_decay_ms", &age, sizeof age);
}

int p3_heap_serve(struct p3_heap *h, const struct p3_heap_calls *calls)
{
	unsigned arena;
	extent_hooks_t *hooks = &h->program;
	int rc = h->serves ? 0 : find_long_arena(calls, &arena);
	if (rc || h->serves)
		return rc;
	h->program = (extent_hooks_t){.alloc = program_alloc,
		.dalloc = program_dalloc,
		.split = extent_split,
		.merge = program_merge};
	h->calls.mallctl = calls->mallctl;
	rc = set_option(h, arena, "extent_hooks", &hooks, sizeof hooks);
	if (rc)
		return rc;
	h->serves = true;
	(void)set_option(h, arena, "purge", NULL, 0);
	let_age(h, arena);
	return 0;
}

bool p3_heap_is_armed(const struct p3_heap *h)
{
	return h->armed;
}

unsigned p3_heap_arena(const struct p3_heap *h)
{
	return h->arena;
}

void *p3_heap_alloc(struct p3_heap *h, size_t len)
{
	int flags =
		MALLOCX_ARENA(h->arena) | MALLOCX_TCACHE_NONE | MALLOCX_ALIGN(HEAP_ALIGN);
	if (!len || len > h->seg.len)
		return NULL;
	return h->calls.mallocx(len, flags);
}

void p3_heap_free(struct p3_heap *h, void *block)
{
	h->calls.dallocx(block, MALLOCX_TCACHE_NONE);
}
