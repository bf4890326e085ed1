/* SPDX-License-Identifier: BSD-3-Clause */
#include "shm/heap.h"
#include "shm/atomics.h"
#include "shm/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <jemalloc/jemalloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

#define HEAP_ALIGN 64
#define VIEW_BLOCK ((uint64_t)256 << 10)
#define GROW_MOST  ((size_t)4 << 20) /* what the arena asks for beyond its need */
#define FREE_PAGES "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages"

struct p3_heap {
	extent_hooks_t hooks; /* first: hooks lead back to their heap */
	struct p3_seg seg;
	p3_a64 used;
	bool mine; /* private memory of a forked child */
	bool armed;
	bool kept;
	unsigned arena;
	struct p3_heap_calls calls;
	struct p3_heap *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards kept, and additions */
static _Atomic(struct p3_heap *) heaps;                  /* HEAP.1 */

/* ---- extents ---- */

static bool reserve(struct p3_heap *h, uint64_t off, uint64_t len)
{
	return h->mine || p3_seg_reserve_range(&h->seg, off, len) == 0;
}

/* Never says that memory is zero: of a forked child's that is not certain. */
static void *extent_alloc(extent_hooks_t *hooks, void *at, size_t size, size_t align,
	bool *zero, bool *commit, unsigned arena)
{
	struct p3_heap *h = (struct p3_heap *)hooks;
	uint64_t used = p3_get(&h->used), off, end;
	(void)arena;
	if (align < h->seg.page)
		align = h->seg.page;
	do {
		off = p3_round_up(used, align);
		if (off > h->seg.len || size > h->seg.len - off)
			return NULL;
		end = p3_round_up(off + size, h->seg.page);
	} while (!p3_cas64(&h->used, &used, end));
	if ((at && at != (char *)h->seg.base + off) || !reserve(h, off, end - off)) {
		(void)p3_cas64(&h->used, &end, used);
		return NULL;
	}
	*zero = false;
	*commit = true;
	return (char *)h->seg.base + off;
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

/* ---- fork ---- */

static __thread int copied[2] __attribute__((tls_model("initial-exec")));

static _Noreturn void give_up(void)
{
	static const char line[] = "libportals: a forked child has no room for a copy of "
				   "the shared heap, or "
				   "too many files are open; it ends\n";
	ssize_t n = write(STDERR_FILENO, line, sizeof line - 1);
	_exit(n < 0 ? 126 : 127);
}

static bool read_contents(int fd, char *to, uint64_t len)
{
	for (uint64_t at = 0; at < len;) {
		ssize_t n = pread(fd, to + at, len - at, (off_t)at);
		if (n <= 0 && !(n < 0 && errno == EINTR))
			return false;
		at += n > 0 ? (uint64_t)n : 0;
	}
	return true;
}

static void make_mine(struct p3_heap *h)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
	void *at = mmap(h->seg.base, h->seg.len, PROT_READ | PROT_WRITE, flags, -1, 0);
	if (at == MAP_FAILED || !read_contents(h->seg.fd, at, p3_get(&h->used)))
		give_up();
	close(h->seg.fd);
	h->seg.fd = -1;
	h->mine = true;
}

static bool is_shared(const struct p3_heap *h)
{
	return !h->mine && p3_get(&h->used);
}

static void before_fork(void)
{
	copied[0] = copied[1] = -1;
	for (struct p3_heap *h = p3_acquire(&heaps); h; h = h->next) /* HEAP.1 */
		if (is_shared(h)) {
			if (pipe2(copied, O_CLOEXEC) != 0)
				copied[0] = copied[1] = -2;
			return;
		}
}

static void after_fork_here(void)
{
	char byte;
	if (copied[0] < 0)
		return;
	close(copied[1]);
	while (syscall(SYS_read, copied[0], &byte, 1ul) < 0 && errno == EINTR)
		; /* a byte, or the end of the child; read() could be cancelled */
	close(copied[0]);
}

static void after_fork_in_child(void)
{
	if (copied[0] == -2)
		give_up();
	for (struct p3_heap *h = p3_acquire(&heaps); h; h = h->next) /* HEAP.1 */
		if (!h->mine)
			make_mine(h);
	pthread_mutex_init(&lock, NULL);
	if (copied[0] < 0)
		return;
	ssize_t n = write(copied[1], "", 1);
	close(copied[0]);
	close(copied[1]);
	if (n < 0 && errno != EPIPE)
		give_up();
}

static int watch_forks(void)
{
	static bool watched;
	if (!watched && pthread_atfork(before_fork, after_fork_here, after_fork_in_child))
		return -ENOMEM;
	watched = true;
	return 0;
}

/* ---- birth ---- */

static unsigned shift_of(const char *unit)
{
	static const char units[] = "KMG";
	const char *at = *unit && !unit[1] ? strchr(units, *unit & ~0x20) : NULL;
	return !*unit ? 0 : at ? 10 * (unsigned)(at - units + 1) : 64;
}

bool p3_heap_size(const char *text, uint64_t *len_out)
{
	char *unit;
	*len_out = P3_HEAP_USUAL;
	if (!text || !*text)
		return true;
	errno = 0;
	unsigned long long n = strtoull(text, &unit, 10);
	unsigned shift = shift_of(unit);
	if (*text < '0' || *text > '9' || errno || shift > 30 ||
		n > P3_HEAP_MOST >> shift)
		return false;
	*len_out = (uint64_t)n << shift;
	return true;
}

static uint64_t free_hugepages(void)
{
	unsigned long n = 0;
	FILE *f = fopen(FREE_PAGES, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%lu", &n) != 1)
		n = 0;
	fclose(f);
	return n;
}

static int make_segment(uint64_t len, enum p3_huge_policy huge, struct p3_seg *seg)
{
	int fell_back, rc = 0;
	if (huge == P3_HUGE_AUTO && free_hugepages() < len / P3_HUGE)
		huge = P3_HUGE_OFF;
	rc = p3_seg_create("p3-heap", len, 0, huge, seg, &fell_back);
	if (rc)
		return rc;
	p3_seg_bind_here(seg);
	(void)madvise(seg->base, seg->len, MADV_HUGEPAGE);
	rc = p3_seg_seal(seg);
	if (rc)
		p3_seg_destroy(seg);
	return rc;
}

static struct p3_heap *take_kept(uint64_t len)
{
	for (struct p3_heap *h = p3_acquire(&heaps); h; h = h->next) /* HEAP.1 */
		if (h->kept && !h->mine && h->seg.len == len) {
			h->kept = false;
			return h;
		}
	return NULL;
}

static int make_new(uint64_t len, enum p3_huge_policy huge, struct p3_heap **heap_out)
{
	struct p3_heap *h = calloc(1, sizeof *h);
	int rc = h ? watch_forks() : -ENOMEM;
	if (!rc)
		rc = make_segment(len, huge, &h->seg);
	if (rc) {
		free(h);
		return rc;
	}
	h->next = p3_get(&heaps);
	p3_release(&heaps, h); /* HEAP.1 */
	*heap_out = h;
	return 0;
}

int p3_heap_create(uint64_t len, enum p3_huge_policy huge, struct p3_heap **heap_out)
{
	int rc = 0;
	if (!len || len > P3_HEAP_MOST)
		return -EINVAL;
	len = p3_round_up(len, P3_HUGE);
	pthread_mutex_lock(&lock);
	struct p3_heap *h = take_kept(len);
	if (!h)
		rc = make_new(len, huge, &h);
	pthread_mutex_unlock(&lock);
	if (!rc)
		*heap_out = h;
	return rc;
}

void p3_heap_keep(struct p3_heap *heap)
{
	pthread_mutex_lock(&lock);
	heap->kept = true;
	pthread_mutex_unlock(&lock);
}

/* ---- the arena ---- */

/* jemalloc's arena_config_t, which its header does not declare. */
struct arena_config {
	extent_hooks_t *hooks;
	bool books_inside;
};

/* What is freed stays, so aging it would be work for nothing. */
static void settle(struct p3_heap *h)
{
	char name[64];
	ssize_t never = -1;
	size_t most = GROW_MOST;
	snprintf(name, sizeof name, "arena.%u.dirty_decay_ms", h->arena);
	(void)h->calls.mallctl(name, NULL, NULL, &never, sizeof never);
	snprintf(name, sizeof name, "arena.%u.muzzy_decay_ms", h->arena);
	(void)h->calls.mallctl(name, NULL, NULL, &never, sizeof never);
	snprintf(name, sizeof name, "arena.%u.retain_grow_limit", h->arena);
	(void)h->calls.mallctl(name, NULL, NULL, &most, sizeof most);
}

int p3_heap_arm(struct p3_heap *h, const struct p3_heap_calls *calls)
{
	struct arena_config config = {&h->hooks, false};
	size_t len = sizeof h->arena;
	h->hooks = (extent_hooks_t){
		.alloc = extent_alloc, .split = extent_split, .merge = extent_merge};
	h->calls = *calls;
	int rc = calls->mallctl("experimental.arenas_create_ext", &h->arena, &len,
		&config, sizeof config);
	if (rc)
		return -rc;
	settle(h);
	h->armed = true;
	return 0;
}

bool p3_heap_is_armed(const struct p3_heap *h)
{
	return h->armed;
}

void *p3_heap_alloc(struct p3_heap *h, size_t len)
{
	int flags =
		MALLOCX_ARENA(h->arena) | MALLOCX_TCACHE_NONE | MALLOCX_ALIGN(HEAP_ALIGN);
	return len && len <= h->seg.len ? h->calls.mallocx(len, flags) : NULL;
}

void p3_heap_free(struct p3_heap *h, void *block)
{
	h->calls.dallocx(block, MALLOCX_TCACHE_NONE);
}

bool p3_heap_has(const struct p3_heap *h, const void *at)
{
	return (uintptr_t)at - (uintptr_t)h->seg.base < h->seg.len;
}

void *p3_heap_base(const struct p3_heap *h)
{
	return h->seg.base;
}

uint64_t p3_heap_len(const struct p3_heap *h)
{
	return h->seg.len;
}

int p3_heap_fd(const struct p3_heap *h)
{
	return h->seg.fd;
}

/* ---- a peer's heap ---- */

static uint64_t blocks_of(uint64_t len)
{
	return (len + VIEW_BLOCK - 1) / VIEW_BLOCK;
}

int p3_heap_view_open(int fd, uint64_t len, struct p3_heap_view *view_out)
{
	struct p3_heap_view v = {.len = len};
	void *base;
	if (!len || len > P3_HEAP_MOST || len % P3_HUGE)
		return -EPROTO;
	v.ready = calloc((blocks_of(len) + 63) / 64, sizeof *v.ready);
	int rc = v.ready ? p3_seg_map(fd, len, false, &base) : -ENOMEM;
	if (rc) {
		free(v.ready);
		return rc;
	}
	(void)madvise(base, len, MADV_DONTDUMP); /* its owner's core has it */
	v.base = base;
	*view_out = v;
	return 0;
}

void p3_heap_view_close(struct p3_heap_view *v)
{
	if (v->base)
		p3_seg_unmap((void *)(uintptr_t)v->base, v->len);
	free(v->ready);
	*v = (struct p3_heap_view){0};
}

static bool bring_in(struct p3_heap_view *v, uint64_t block)
{
	uint64_t bit = UINT64_C(1) << block % 64;
	if (v->ready[block / 64] & bit)
		return true;
	void *at = (void *)(uintptr_t)(v->base + block * VIEW_BLOCK);
	if (syscall(SYS_madvise, at, VIEW_BLOCK, MADV_POPULATE_READ) != 0)
		return false;
	v->ready[block / 64] |= bit;
	return true;
}

bool p3_heap_view_reach(struct p3_heap_view *v, uint64_t off, uint64_t len)
{
	for (uint64_t b = off / VIEW_BLOCK; b * VIEW_BLOCK < off + len; b++)
		if (!bring_in(v, b))
			return false;
	return true;
}
