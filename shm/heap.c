/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared heaps: creation, extents of jemalloc's arenas, forks, and peers' heaps. */
#include "shm/heap.h"
#include "shm/fault.h"
#include "shm/layout.h"

#include <errno.h>
#include <jemalloc/jemalloc.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define FREE_PAGES  "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages"
#define HEAP_ALIGN  64
#define CARVE_LEAST ((uint64_t)16 << 10)
#define GROW_MOST   ((size_t)4 << 20) /* bytes that the arena requests beyond its need */
#define VIEW_BLOCK  ((uint64_t)256 << 10)

struct p3_heap {
	extent_hooks_t own;     /* of the arena for p3_heap_alloc */
	extent_hooks_t program; /* of the arena for the program's long blocks */
	struct p3_seg seg;
	p3_a64 used;
	p3_a32 mine; /* HEAP.2: the memory is private, in a forked child, or since a
		      * fork that ended sharing */
	bool armed;
	bool carving;
	uint64_t carved; /* bytes that the arena took when it was armed: the hook gives no
			  * more; 0: it takes bytes as it needs them */
	bool serves;     /* the program's malloc takes its long blocks from this heap */
	bool kept;
	unsigned arena;
	struct p3_heap_calls calls;
	struct p3_heap *next;
};

/* Guards kept heaps, additions to the list, and forks. */
static pthread_mutex_t heaps_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct p3_heap *) heaps; /* HEAP.1 */
/* The library could register its fork handlers when it was loaded. */
static bool heap_watches_forks;

/* Return true if the heap's descriptor still names the file that was made. */
static bool heap_is_ours(const struct p3_heap *h)
{
	return p3_fd_is(h->seg.fd, h->seg.file);
}

bool p3_heap_has(const struct p3_heap *h, const void *at)
{
	return (uintptr_t)at - (uintptr_t)h->seg.base < h->seg.len;
}

/* ---- creation ---- */

static uint64_t heap_free_hugepages(void)
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

static int heap_make_segment(uint64_t len, enum p3_huge_policy huge, struct p3_seg *seg)
{
	int fell_back, rc = 0;
	if (huge == P3_HUGE_AUTO && heap_free_hugepages() < len / P3_HUGE)
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

static int heap_make_new(
	uint64_t len, enum p3_huge_policy huge, struct p3_heap **heap_out)
{
	struct p3_heap *h = calloc(1, sizeof *h);
	int rc =
		h && heap_watches_forks ? heap_make_segment(len, huge, &h->seg) : -ENOMEM;
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
	pthread_mutex_lock(&heaps_lock);
	struct p3_heap *h = p3_acquire(&heaps); /* HEAP.1 */
	while (h &&
		(!h->kept || p3_get(&h->mine) || h->seg.len != len || !heap_is_ours(h)))
		h = h->next;
	if (h)
		h->kept = false;
	else
		rc = heap_make_new(len, huge, &h);
	pthread_mutex_unlock(&heaps_lock);
	if (!rc)
		*heap_out = h;
	return rc;
}

void p3_heap_keep(struct p3_heap *heap)
{
	pthread_mutex_lock(&heaps_lock);
	heap->kept = true;
	pthread_mutex_unlock(&heaps_lock);
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
	return p3_get(&h->mine) ? -1 : h->seg.fd; /* HEAP.2 */
}

int p3_heap_offer(const struct p3_heap *h)
{
	int fd = p3_heap_fd(h);
	return fd >= 0 && heap_is_ours(h) ? fd : -1;
}

/* ---- extents ---- */

/* Take the next space of the heap.  Return NULL if there is no room, or if at is not NULL
 * and the space would not begin there. */
static void *heap_take(struct p3_heap *h, const void *at, size_t size, size_t align)
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
	if (p3_get(&h->mine) || !p3_seg_reserve_range(&h->seg, off, end - off))
		return (char *)h->seg.base + off;
	(void)p3_cas64(&h->used, &end, used);
	return NULL;
}

/* ---- extents of the arena for p3_heap_alloc ---- */

static struct p3_heap *heap_of_own(extent_hooks_t *hooks)
{
	return (struct p3_heap *)((char *)hooks - offsetof(struct p3_heap, own));
}

/* Take address space while the heap is carved, without reserving any of it. */
static void *heap_take_space(struct p3_heap *h, size_t size, size_t align)
{
	uint64_t base = (uintptr_t)h->seg.base;
	uint64_t off = p3_round_up(base + h->carved, align) - base;
	if (!h->carving || off > h->seg.len || size > h->seg.len - off)
		return NULL;
	h->carved = off + size;
	return (char *)h->seg.base + off;
}

/* Allocate an extent.  *zero stays false: a forked child's memory may not be zero. */
static void *heap_own_alloc(extent_hooks_t *hooks, void *at, size_t size, size_t align,
	bool *zero, bool *commit, unsigned arena)
{
	struct p3_heap *h = heap_of_own(hooks);
	(void)arena;
	*zero = false;
	*commit = true;
	if (h->carving || h->carved)
		return at ? NULL : heap_take_space(h, size, align);
	return heap_take(h, at, size, align);
}

/* Commit pages.  If they end beyond h->used, reserve all pages from h->used to their end:
 * every page below h->used is reserved, also between blocks. */
static bool heap_own_commit(extent_hooks_t *hooks, void *at, size_t size, size_t off,
	size_t len, unsigned arena)
{
	struct p3_heap *h = heap_of_own(hooks);
	uint64_t end = (uintptr_t)at + off + len - (uintptr_t)h->seg.base,
		 used = p3_get(&h->used);
	(void)size, (void)arena;
	end = p3_round_up(end, h->seg.page);
	while (used < end) {
		if (!p3_get(&h->mine) &&
			p3_seg_reserve_range(&h->seg, used, end - used) != 0)
			return true;
		FAULT_POINT("heap.grown");
		if (p3_cas64(&h->used, &used, end))
			break;
	}
	return false;
}

/* Decommit pages: let jemalloc mark them as uncommitted, so that they merge with pages
 * that never had memory.  The memory itself stays, since the file takes no holes. */
static bool heap_own_decommit(extent_hooks_t *hooks, void *at, size_t size, size_t off,
	size_t len, unsigned arena)
{
	(void)hooks, (void)at, (void)size, (void)off, (void)len, (void)arena;
	return false;
}

static bool heap_extent_split(extent_hooks_t *hooks, void *at, size_t size, size_t a,
	size_t b, bool committed, unsigned arena)
{
	(void)hooks, (void)at, (void)size, (void)a, (void)b, (void)committed, (void)arena;
	return false;
}

static bool heap_extent_merge(extent_hooks_t *hooks, void *a, size_t size_a, void *b,
	size_t size_b, bool committed, unsigned arena)
{
	(void)hooks, (void)a, (void)size_a, (void)b, (void)size_b, (void)committed;
	(void)arena;
	return false;
}

/* ---- extents of the program's long blocks ---- */

static struct p3_heap *heap_of_program(extent_hooks_t *hooks)
{
	return (struct p3_heap *)((char *)hooks - offsetof(struct p3_heap, program));
}

static void *heap_take_ordinary(size_t size, size_t align)
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
static void *heap_program_alloc(extent_hooks_t *hooks, void *at, size_t size,
	size_t align, bool *zero, bool *commit, unsigned arena)
{
	void *p = heap_take(heap_of_program(hooks), at, size, align);
	(void)arena;
	*zero = false;
	*commit = true;
	if (p || at)
		return p;
	*zero = true;
	return heap_take_ordinary(size, align);
}

/* Free an extent.  Refuse (true) an extent of the heap, which jemalloc then keeps; unmap
 * ordinary memory, also from before the heap served malloc. */
static bool heap_program_dalloc(
	extent_hooks_t *hooks, void *at, size_t size, bool committed, unsigned arena)
{
	(void)committed, (void)arena;
	return p3_heap_has(heap_of_program(hooks), at) || munmap(at, size) != 0;
}

static bool heap_program_merge(extent_hooks_t *hooks, void *a, size_t size_a, void *b,
	size_t size_b, bool committed, unsigned arena)
{
	(void)size_a, (void)size_b, (void)committed, (void)arena;
	return p3_heap_has(heap_of_program(hooks), a) !=
	       p3_heap_has(heap_of_program(hooks), b);
}

/* ---- the arena ---- */

/* jemalloc's arena_config_t, which its header does not declare. */
struct heap_arena_config {
	extent_hooks_t *hooks;
	bool books_inside;
};

static int heap_set_option(struct p3_heap *h, unsigned arena, const char *option,
	const void *value, size_t len)
{
	char name[64];
	snprintf(name, sizeof name, "arena.%u.%s", arena, option);
	return -h->calls.mallctl(name, NULL, NULL, (void *)(uintptr_t)value, len);
}

static bool heap_option_is_on(const struct p3_heap *h, const char *option)
{
	bool on = false;
	size_t len = sizeof on;
	(void)h->calls.mallctl(option, &on, &len, NULL, 0);
	return on;
}

/* Return true if jemalloc does not write to fresh blocks. */
static bool heap_blocks_stay_unwritten(const struct p3_heap *h)
{
	const char *junk = "";
	size_t len = sizeof junk;
	(void)h->calls.mallctl("opt.junk", &junk, &len, NULL, 0);
	return !heap_option_is_on(h, "opt.zero") && !strcmp(junk, "false");
}

/*
 * Let the arena own all of the heap.  jemalloc never merges extents that it got by
 * several calls of the hook `alloc`, because the heap retains its space: a heap that has
 * once been full of short blocks would have no room for long ones.  So the arena
 * allocates all space now, in few pieces, and frees the pieces.  It keeps them as large
 * extents without memory, which jemalloc splits, commits and merges as it likes.
 */
static void heap_carve(struct p3_heap *h)
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
	(void)heap_set_option(h, h->arena, "purge", NULL, 0);
	h->carving = false;
}

int p3_heap_arm(struct p3_heap *h, const struct p3_heap_calls *calls)
{
	struct heap_arena_config config = {&h->own, false};
	size_t len = sizeof h->arena, most = GROW_MOST;
	ssize_t at_once = 0;
	h->own = (extent_hooks_t){.alloc = heap_own_alloc,
		.commit = heap_own_commit,
		.decommit = heap_own_decommit,
		.split = heap_extent_split,
		.merge = heap_extent_merge};
	h->calls = *calls;
	int rc = calls->mallctl("experimental.arenas_create_ext", &h->arena, &len,
		&config, sizeof config);
	if (rc)
		return -rc;
	if (!h->serves && heap_option_is_on(h, "opt.retain") &&
		heap_blocks_stay_unwritten(h))
		heap_carve(h);
	/* Freed extents merge at once with all free ones, without a stay in jemalloc's
	 * cache of dirty extents: there it splits no long extent for a short block, which
	 * would take fresh memory instead. */
	(void)heap_set_option(h, h->arena, "dirty_decay_ms", &at_once, sizeof at_once);
	(void)heap_set_option(h, h->arena, "muzzy_decay_ms", &at_once, sizeof at_once);
	(void)heap_set_option(h, h->arena, "retain_grow_limit", &most, sizeof most);
	h->armed = true;
	return 0;
}

/* ---- the program's malloc ---- */

static bool heap_read_size(
	const struct p3_heap_calls *calls, const char *name, size_t *out)
{
	size_t len = sizeof *out;
	return calls->mallctl(name, out, &len, NULL, 0) == 0;
}

static uint64_t heap_allocated(const struct p3_heap_calls *calls)
{
	uint64_t n = 0;
	size_t len = sizeof n;
	(void)calls->mallctl("thread.allocated", &n, &len, NULL, 0);
	return n;
}

/* Find the arena of a block of this size from malloc.  Return -ENXIO if malloc is not
 * this jemalloc's. */
static int heap_arena_of_malloc(
	const struct p3_heap_calls *calls, size_t size, unsigned *arena_out)
{
	size_t len = sizeof *arena_out;
	uint64_t before = heap_allocated(calls);
	void *block = malloc(size);
	if (!block)
		return -ENOMEM;
	int rc = ENXIO; /* jemalloc may crash when asked about another library's block */
	if (heap_allocated(calls) >= before + size)
		rc = calls->mallctl(
			"arenas.lookup", arena_out, &len, &block, sizeof block);
	free(block);
	return -rc;
}

/* Find the arena for long blocks only. */
static int heap_find_long_arena(const struct p3_heap_calls *calls, unsigned *arena_out)
{
	size_t least, cached, len = sizeof(unsigned);
	unsigned automatic;
	if (!heap_read_size(calls, "opt.oversize_threshold", &least) ||
		!heap_read_size(calls, "opt.tcache_max", &cached) ||
		calls->mallctl("opt.narenas", &automatic, &len, NULL, 0))
		return -ENXIO;
	int rc = heap_arena_of_malloc(
		calls, least > cached ? least : cached + 1, arena_out);
	return !rc && (!least || *arena_out < automatic) ? -ENOTSUP : rc;
}

int p3_heap_serve(struct p3_heap *h, const struct p3_heap_calls *calls)
{
	unsigned arena;
	extent_hooks_t *hooks = &h->program;
	ssize_t age, never = -1;
	size_t len = sizeof age;
	int rc = h->serves ? 0 : heap_find_long_arena(calls, &arena);
	if (rc || h->serves)
		return rc;
	h->program = (extent_hooks_t){.alloc = heap_program_alloc,
		.dalloc = heap_program_dalloc,
		.split = heap_extent_split,
		.merge = heap_program_merge};
	h->calls.mallctl = calls->mallctl;
	rc = heap_set_option(h, arena, "extent_hooks", &hooks, sizeof hooks);
	if (rc)
		return rc;
	h->serves = true;
	(void)heap_set_option(h, arena, "purge", NULL, 0);
	/* Let jemalloc keep freed long blocks for a time, as it keeps other freed
	 * blocks.  By default it gives their pages back at once, and the next long blocks
	 * cost page faults.  In an arena whose muzzy decay time is endless it keeps them
	 * for the dirty decay time.  No extent becomes muzzy, since the arena's hooks
	 * have no lazy purge, so no page stays for ever. */
	(void)heap_set_option(h, arena, "muzzy_decay_ms", &never, sizeof never);
	if (calls->mallctl("arenas.dirty_decay_ms", &age, &len, NULL, 0) == 0)
		(void)heap_set_option(h, arena, "dirty_decay_ms", &age, sizeof age);
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
	if (!len || len > h->seg.len)
		return NULL;
	return h->calls.mallocx(len, flags);
}

void p3_heap_free(struct p3_heap *h, void *block)
{
	h->calls.dallocx(block, MALLOCX_TCACHE_NONE);
}

/* ---- forks ---- */

/* The header in front of a heap's contents that were copied for a child. */
struct heap_copy {
	struct heap_copy *next;
	struct p3_heap *heap;
	uint64_t len;
};

static __thread struct {
	sigset_t mask;
	struct heap_copy *copies;
	struct p3_heap *ended; /* the heap whose sharing this fork ended */
	const char *trouble;   /* why the child cannot have its copy */
} heap_forking __attribute__((tls_model("initial-exec")));

/* Print one line of three texts in one call, without stdio. */
static void heap_complain(const char *text, const char *why, const char *end)
{
	const char *part[] = {"libportals: ", text, why, end, "\n"};
	struct iovec io[5];
	for (unsigned i = 0; i < 5; i++)
		io[i] = (struct iovec){(void *)(uintptr_t)part[i], strlen(part[i])};
	/* libc's writev is a cancellation point, and fork is none */
	(void)syscall(SYS_writev, STDERR_FILENO, io, 5);
}

static _Noreturn void heap_give_up(const char *why)
{
	heap_complain("a forked child cannot copy the shared heap: ", why, "; it ends");
	_exit(127);
}

static bool heap_read_contents(int fd, char *to, uint64_t len)
{
	for (uint64_t at = 0; at < len;) {
		/* libc's pread is a cancellation point */
		long n = syscall(SYS_pread64, fd, to + at, len - at, (off_t)at);
		if (n <= 0 && !(n < 0 && errno == EINTR))
			return false;
		at += n > 0 ? (uint64_t)n : 0;
	}
	return true;
}

static void *heap_map_private(void *at, uint64_t len)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	return p3_pages_map(at, len, PROT_READ | PROT_WRITE,
		flags | (at ? MAP_FIXED_NOREPLACE : 0), -1, 0);
}

/* ---- the end of sharing ---- */

/*
 * Map the file anew over the heap, privately.  This is one call of mmap: earlier writes
 * are in the file, later ones are not.
 */
static bool heap_end_sharing(struct p3_heap *h)
{
	int flags = MAP_PRIVATE | MAP_FIXED, prot = PROT_READ | PROT_WRITE;
	if (!heap_is_ours(h))
		return false;
	if (h->seg.page == P3_PAGE) {
		flags |= MAP_NORESERVE;
	} else {
		/* A private mapping of hugepages needs free ones, and a failed attempt
		 * with MAP_FIXED would leave a hole in place of the heap. */
		void *try =
			p3_pages_map(NULL, h->seg.len, prot, MAP_PRIVATE, h->seg.fd, 0);
		if (try == MAP_FAILED)
			return false;
		munmap(try, h->seg.len);
	}
	p3_set(&h->mine, 1); /* HEAP.2 */
	if (p3_pages_map(h->seg.base, h->seg.len, prot, flags, h->seg.fd, 0) !=
		MAP_FAILED)
		return true;
	p3_set(&h->mine, 0);
	return false;
}

/* Wake the threads that sleep at this word of the file: wake-ups by other threads now
 * reach the private page's word only. */
static void heap_wake_at(const struct p3_heap *h, uintptr_t word)
{
	uint64_t off = word - (uintptr_t)h->seg.base, at = off & ~(h->seg.page - 1);
	char *page = mmap(NULL, h->seg.page, PROT_READ, MAP_SHARED, h->seg.fd, (off_t)at);
	if (page == MAP_FAILED)
		return;
	syscall(SYS_futex, page + (off - at), FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	munmap(page, h->seg.page);
}

/* Wake a thread of /proc/self/task if it sleeps on a futex in the heap.  The line reads
 * "202 0x7f12a4c8e910 0x109 ...": number and arguments of the system call that it
 * sleeps in. */
static void heap_wake_thread(const struct p3_heap *h, long task, const char *tid)
{
	char path[48], call[128], *at;
	size_t len = 0;
	while (tid[len] && len < 32)
		len++;
	memcpy(path, tid, len);
	memcpy(path + len, "/syscall", sizeof "/syscall");
	long fd = syscall(SYS_openat, task, path, O_RDONLY | O_CLOEXEC);
	long n = fd < 0 ? -1 : syscall(SYS_read, fd, call, sizeof call - 1);
	if (fd >= 0)
		syscall(SYS_close, fd);
	call[n > 0 ? n : 0] = '\0';
	if (strtol(call, &at, 10) != SYS_futex)
		return;
	uintptr_t word = strtoul(at, &at, 16);
	if (p3_heap_has(h, (void *)word) && !(strtoul(at, NULL, 16) & FUTEX_PRIVATE_FLAG))
		heap_wake_at(h, word);
}

struct heap_task { /* a record of getdents64 */
	uint64_t ino, off;
	uint16_t len;
	uint8_t type;
	char name[];
};

/*
 * Wake the threads that sleep on a futex in the heap.  A thread that sleeps on a word
 * that processes may share, as pthread_join does, sleeps at the file's word, but will
 * be woken at the private one.  Once awake it sleeps again, at the right one.
 */
static void heap_wake_sleepers(const struct p3_heap *h)
{
	_Alignas(struct heap_task) char list[1024];
	int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	long n, task = syscall(SYS_openat, AT_FDCWD, "/proc/self/task", flags);
	if (task < 0)
		return;
	while ((n = syscall(SYS_getdents64, task, list, sizeof list)) > 0)
		for (long at = 0; at < n;) {
			const struct heap_task *e = (const struct heap_task *)(list + at);
			heap_wake_thread(h, task, e->name);
			at += e->len;
		}
	syscall(SYS_close, task);
}

static bool heap_end_if_needed(struct p3_heap *h)
{
	const char *why = h->serves ? "the program's malloc is there"
			  : p3_heap_has(h, __builtin_frame_address(0))
				  ? "this stack lies there"
				  : NULL;
	if (!why || !heap_end_sharing(h))
		return false;
	heap_wake_sleepers(h);
	heap_forking.ended = h;
	heap_complain("fork ends the sharing of the heap: ", why,
		"; long messages take other ways from now on");
	return true;
}

/* ---- a copy ---- */

static const char *heap_copy_contents(struct p3_heap *h)
{
	uint64_t len = p3_get(&h->used);
	if (!heap_is_ours(h))
		return "its descriptor was closed, or names another file";
	struct heap_copy *c = heap_map_private(NULL, P3_PAGE + len);
	if (c == MAP_FAILED)
		return "there is no memory for it";
	*c = (struct heap_copy){heap_forking.copies, h, len};
	heap_forking.copies = c;
	return heap_read_contents(h->seg.fd, (char *)c + P3_PAGE, len)
		       ? NULL
		       : "reading it failed";
}

static void heap_before_fork(void)
{
	sigset_t all;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &heap_forking.mask);
	/* held until the fork is done, so that no thread makes or keeps a heap */
	pthread_mutex_lock(&heaps_lock);
	heap_forking.copies = NULL;
	heap_forking.ended = NULL;
	heap_forking.trouble = NULL;
	for (struct p3_heap *h = p3_acquire(&heaps); h; h = h->next) /* HEAP.1 */
		if (!p3_get(&h->mine) && p3_get(&h->used) && !heap_forking.trouble &&
			!heap_end_if_needed(h))
			heap_forking.trouble = heap_copy_contents(h);
}

static void heap_after_fork_here(void)
{
	if (heap_forking.ended) /* again, for threads that were just about to sleep */
		heap_wake_sleepers(heap_forking.ended);
	while (heap_forking.copies) {
		struct heap_copy *c = heap_forking.copies;
		heap_forking.copies = c->next;
		munmap(c, P3_PAGE + c->len);
	}
	pthread_mutex_unlock(&heaps_lock);
	pthread_sigmask(SIG_SETMASK, &heap_forking.mask, NULL);
}

static void heap_after_fork_in_child(void)
{
	if (heap_forking.trouble)
		heap_give_up(heap_forking.trouble);
	for (struct p3_heap *h = p3_acquire(&heaps); h; h = h->next) { /* HEAP.1 */
		if (!p3_get(&h->mine)) {
			void *at = heap_map_private(h->seg.base, h->seg.len);
			if (at == MAP_FAILED && errno != EEXIST)
				heap_give_up("there is no memory for it");
			if (at != h->seg.base)
				heap_give_up("something else is mapped at its addresses");
			p3_set(&h->mine, 1);
		}
		p3_fd_close_own(h->seg.fd, h->seg.file);
		h->seg.fd = -1;
	}
	while (heap_forking.copies) {
		struct heap_copy *c = heap_forking.copies;
		heap_forking.copies = c->next;
		if (mremap((char *)c + P3_PAGE, c->len, c->len,
			    MREMAP_MAYMOVE | MREMAP_FIXED,
			    c->heap->seg.base) == MAP_FAILED)
			heap_give_up("there is no memory for it");
		munmap(c, P3_PAGE);
	}
	pthread_mutex_init(&heaps_lock, NULL);
	pthread_sigmask(SIG_SETMASK, &heap_forking.mask, NULL);
}

__attribute__((constructor)) static void heap_watch_forks(void)
{
	heap_watches_forks = !pthread_atfork(
		heap_before_fork, heap_after_fork_here, heap_after_fork_in_child);
}

/* ---- a peer's heap ---- */

int p3_heap_view_open(int fd, uint64_t len, struct p3_heap_view *view_out)
{
	struct p3_heap_view v = {.len = len};
	void *base;
	if (!len || len > P3_HEAP_MOST || len % P3_HUGE)
		return -EPROTO;
	v.ready = calloc((len / VIEW_BLOCK + 63) / 64, sizeof *v.ready);
	int rc = v.ready ? p3_seg_view(fd, len, &base) : -ENOMEM;
	if (rc) {
		free(v.ready);
		return rc;
	}
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

static bool heap_view_bring_in(struct p3_heap_view *v, uint64_t block)
{
	uint64_t bit = UINT64_C(1) << block % 64;
	if (v->ready[block / 64] & bit)
		return true;
	void *at = (void *)(uintptr_t)(v->base + block * VIEW_BLOCK);
	int saved = errno;
	if (syscall(SYS_madvise, at, VIEW_BLOCK, MADV_POPULATE_READ) != 0) {
		errno = saved;
		return false;
	}
	v->ready[block / 64] |= bit;
	return true;
}

bool p3_heap_view_reach(struct p3_heap_view *v, uint64_t off, uint64_t len)
{
	for (uint64_t b = off / VIEW_BLOCK; b * VIEW_BLOCK < off + len; b++)
		if (!heap_view_bring_in(v, b))
			return false;
	return true;
}
