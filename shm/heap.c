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
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define FD_MIN      200 /* above the numbers that programs give their files */
#define FREE_PAGES  "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages"
#define HEAP_ALIGN  64
#define CARVE_LEAST ((uint64_t)16 << 10)
#define GROW_MOST   ((size_t)4 << 20) /* bytes that the arena requests beyond its need */
#define VIEW_BLOCK  ((uint64_t)256 << 10)

struct p3_heap {
	extent_hooks_t own;     /* of the arena for p3_heap_alloc */
	extent_hooks_t program; /* of the arena for the program's long blocks */
	struct p3_seg seg;
	dev_t dev; /* device and inode of the heap's file, since the program may have
		    * closed seg.fd and reused its number */
	ino_t ino;
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
static pthread_mutex_t p3_heaps_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct p3_heap *) p3_heaps; /* HEAP.1 */
/* The library could register its fork handlers when it was loaded. */
static bool watched;

static bool p3_heap_is_ours(const struct p3_heap *h)
{
	struct stat st;
	return fstat(h->seg.fd, &st) == 0 && st.st_ino == h->ino && st.st_dev == h->dev;
}

bool p3_heap_has(const struct p3_heap *h, const void *at)
{
	return (uintptr_t)at - (uintptr_t)h->seg.base < h->seg.len;
}

/* ---- creation ---- */

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

static void move_up(struct p3_seg *seg)
{
	int fd = fcntl(seg->fd, F_DUPFD_CLOEXEC, FD_MIN);
	if (fd < 0)
		return;
	close(seg->fd);
	seg->fd = fd;
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
	else
		move_up(seg);
	return rc;
}

static int remember_file(struct p3_heap *h)
{
	struct stat st;
	if (fstat(h->seg.fd, &st) != 0)
		return -errno;
	h->dev = st.st_dev;
	h->ino = st.st_ino;
	return 0;
}

static struct p3_heap *take_kept(uint64_t len)
{
	for (struct p3_heap *h = p3_acquire(&p3_heaps); h; h = h->next) /* HEAP.1 */
		if (h->kept && !p3_get(&h->mine) && h->seg.len == len &&
			p3_heap_is_ours(h)) {
			h->kept = false;
			return h;
		}
	return NULL;
}

static int make_new(uint64_t len, enum p3_huge_policy huge, struct p3_heap **heap_out)
{
	struct p3_heap *h = calloc(1, sizeof *h);
	int rc = h && watched ? make_segment(len, huge, &h->seg) : -ENOMEM;
	if (!rc)
		rc = remember_file(h);
	if (rc) {
		free(h);
		return rc;
	}
	h->next = p3_get(&p3_heaps);
	p3_release(&p3_heaps, h); /* HEAP.1 */
	*heap_out = h;
	return 0;
}

int p3_heap_create(uint64_t len, enum p3_huge_policy huge, struct p3_heap **heap_out)
{
	int rc = 0;
	if (!len || len > P3_HEAP_MOST)
		return -EINVAL;
	len = p3_round_up(len, P3_HUGE);
	pthread_mutex_lock(&p3_heaps_lock);
	struct p3_heap *h = take_kept(len);
	if (!h)
		rc = make_new(len, huge, &h);
	pthread_mutex_unlock(&p3_heaps_lock);
	if (!rc)
		*heap_out = h;
	return rc;
}

void p3_heap_keep(struct p3_heap *heap)
{
	pthread_mutex_lock(&p3_heaps_lock);
	heap->kept = true;
	pthread_mutex_unlock(&p3_heaps_lock);
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
	return fd >= 0 && p3_heap_is_ours(h) ? fd : -1;
}

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

/* ---- forks ---- */

/* The header in front of a heap's contents that were copied for a child. */
struct copy {
	struct copy *next;
	struct p3_heap *heap;
	uint64_t len;
};

static __thread struct {
	sigset_t mask;
	struct copy *copies;
	struct p3_heap *ended; /* the heap whose sharing this fork ended */
	const char *trouble;   /* why the child cannot have its copy */
} forking __attribute__((tls_model("initial-exec")));

/* Print one line of three texts in one call, without stdio. */
static void complain(const char *text, const char *why, const char *end)
{
	const char *part[] = {"libportals: ", text, why, end, "\n"};
	struct iovec io[5];
	for (unsigned i = 0; i < 5; i++)
		io[i] = (struct iovec){(void *)(uintptr_t)part[i], strlen(part[i])};
	/* libc's writev is a cancellation point, and fork is none */
	(void)syscall(SYS_writev, STDERR_FILENO, io, 5);
}

static _Noreturn void give_up(const char *why)
{
	complain("a forked child cannot copy the shared heap: ", why, "; it ends");
	_exit(127);
}

static bool read_contents(int fd, char *to, uint64_t len)
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

static void *private_memory(void *at, uint64_t len)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	return p3_pages_map(at, len, PROT_READ | PROT_WRITE,
		flags | (at ? MAP_FIXED_NOREPLACE : 0), -1, 0);
}

/* ---- the end of sharing ---- */

static const char *why_end(const struct p3_heap *h)
{
	if (h->serves)
		return "the program's malloc is there";
	if (p3_heap_has(h, __builtin_frame_address(0)))
		return "this stack lies there";
	return NULL;
}

/* Return true if the heap can be mapped privately.  Try it at another address: a private
 * mapping of hugepages needs free ones, and a failed attempt with MAP_FIXED would leave
 * a hole in place of the heap. */
static bool may_be_private(const struct p3_heap *h, int prot)
{
	if (h->seg.page == P3_PAGE)
		return true;
	void *p = p3_pages_map(NULL, h->seg.len, prot, MAP_PRIVATE, h->seg.fd, 0);
	if (p != MAP_FAILED)
		munmap(p, h->seg.len);
	return p != MAP_FAILED;
}

/*
 * Map the file anew over the heap, privately.  This is one call of mmap: earlier writes
 * are in the file, later ones are not.
 */
static bool end_sharing(struct p3_heap *h)
{
	int flags = MAP_PRIVATE | MAP_FIXED, prot = PROT_READ | PROT_WRITE;
	if (h->seg.page == P3_PAGE)
		flags |= MAP_NORESERVE;
	if (!p3_heap_is_ours(h) || !may_be_private(h, prot))
		return false;
	p3_set(&h->mine, 1); /* HEAP.2 */
	if (p3_pages_map(h->seg.base, h->seg.len, prot, flags, h->seg.fd, 0) !=
		MAP_FAILED)
		return true;
	p3_set(&h->mine, 0);
	return false;
}

/* Wake the threads that sleep at this word of the file: wake-ups by other threads now
 * reach the private page's word only. */
static void wake_at(const struct p3_heap *h, uintptr_t word)
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
static void wake_thread(const struct p3_heap *h, long task, const char *tid)
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
		wake_at(h, word);
}

struct entry { /* a record of getdents64 */
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
static void wake_sleepers(const struct p3_heap *h)
{
	_Alignas(struct entry) char list[1024];
	int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	long n, task = syscall(SYS_openat, AT_FDCWD, "/proc/self/task", flags);
	if (task < 0)
		return;
	while ((n = syscall(SYS_getdents64, task, list, sizeof list)) > 0)
		for (long at = 0; at < n;) {
			const struct entry *e = (const struct entry *)(list + at);
			wake_thread(h, task, e->name);
			at += e->len;
		}
	syscall(SYS_close, task);
}

static bool end_if_needed(struct p3_heap *h)
{
	const char *why = why_end(h);
	if (!why || !end_sharing(h))
		return false;
	wake_sleepers(h);
	forking.ended = h;
	complain("fork ends the sharing of the heap: ", why,
		"; long messages take other ways from now on");
	return true;
}

/* ---- a copy ---- */

static const char *copy_contents(struct p3_heap *h)
{
	uint64_t len = p3_get(&h->used);
	if (!p3_heap_is_ours(h))
		return "its descriptor was closed, or names another file";
	struct copy *c = private_memory(NULL, P3_PAGE + len);
	if (c == MAP_FAILED)
		return "there is no memory for it";
	*c = (struct copy){forking.copies, h, len};
	forking.copies = c;
	return read_contents(h->seg.fd, (char *)c + P3_PAGE, len) ? NULL
								  : "reading it failed";
}

static void before_fork(void)
{
	sigset_t all;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &forking.mask);
	pthread_mutex_lock(
		/* held until the fork is done, so that no thread makes or keeps a heap */
		&p3_heaps_lock);
	forking.copies = NULL;
	forking.ended = NULL;
	forking.trouble = NULL;
	for (struct p3_heap *h = p3_acquire(&p3_heaps); h; h = h->next) /* HEAP.1 */
		if (!p3_get(&h->mine) && p3_get(&h->used) && !forking.trouble &&
			!end_if_needed(h))
			forking.trouble = copy_contents(h);
}

static void after_fork_here(void)
{
	if (forking.ended) /* again, for threads that were just about to sleep */
		wake_sleepers(forking.ended);
	while (forking.copies) {
		struct copy *c = forking.copies;
		forking.copies = c->next;
		munmap(c, P3_PAGE + c->len);
	}
	pthread_mutex_unlock(&p3_heaps_lock);
	pthread_sigmask(SIG_SETMASK, &forking.mask, NULL);
}

static void drop_descriptor(struct p3_heap *h)
{
	if (h->seg.fd >= 0 && p3_heap_is_ours(h))
		p3_fd_close(h->seg.fd);
	h->seg.fd = -1;
}

static void make_mine(struct p3_heap *h)
{
	void *at = private_memory(h->seg.base, h->seg.len);
	if (at == MAP_FAILED && errno != EEXIST)
		give_up("there is no memory for it");
	if (at != h->seg.base)
		give_up("something else is mapped at its addresses");
	p3_set(&h->mine, 1);
}

static void move_in(struct copy *c)
{
	char *from = (char *)c + P3_PAGE;
	int flags = MREMAP_MAYMOVE | MREMAP_FIXED;
	if (mremap(from, c->len, c->len, flags, c->heap->seg.base) == MAP_FAILED)
		give_up("there is no memory for it");
}

static void after_fork_in_child(void)
{
	if (forking.trouble)
		give_up(forking.trouble);
	for (struct p3_heap *h = p3_acquire(&p3_heaps); h; h = h->next) { /* HEAP.1 */
		if (!p3_get(&h->mine))
			make_mine(h);
		drop_descriptor(h);
	}
	while (forking.copies) {
		struct copy *c = forking.copies;
		forking.copies = c->next;
		move_in(c);
		munmap(c, P3_PAGE);
	}
	pthread_mutex_init(&p3_heaps_lock, NULL);
	pthread_sigmask(SIG_SETMASK, &forking.mask, NULL);
}

__attribute__((constructor)) static void watch_forks(void)
{
	watched = !pthread_atfork(before_fork, after_fork_here, after_fork_in_child);
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

static bool bring_in(struct p3_heap_view *v, uint64_t block)
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
		if (!bring_in(v, b))
			return false;
	return true;
}
