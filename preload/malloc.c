/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libportals-heap.so, which yod --shared-heap preloads: malloc and its relatives give
 * memory of the node's shared heap, so that peers read long messages where they are.
 *
 * All memory is jemalloc's (linked under the names of its own API, mallocx and the like,
 * so that it takes nobody's malloc away).  A thread that allocates first is bound to the
 * heap's arena, and is served from its cache from then on.  Two kinds of callers get
 * private memory, of jemalloc's first arena:
 *
 *	libc and ld.so	what they have allocated (streams, thread data, loaded objects)
 *			they look at in a forked child before any handler has run, when
 *			the heap is not there yet (shm/heap.h, fork)
 *	everybody	before there is a heap, and when it is full
 *
 * A block is the heap's or not by its address.  Caches hold blocks of the heap only, or
 * libc could be served one that the program has freed.
 *
 * The heap is made at the first call from outside libc: earlier than most others
 * register handlers of fork, which then run behind ours in the child.
 *
 * Memory ordering, between threads:
 *	HEAP.2	state: released when hidden and heap are set -> acquired by callers
 */
#include "shm/atomics.h"
#include "shm/heap.h"
#include "shm/layout.h"

#include <errno.h>
#include <jemalloc/jemalloc.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PRIVATE (MALLOCX_ARENA(0) | MALLOCX_TCACHE_NONE)
#define CALLER  __builtin_return_address(0)
#define SHOWN   __attribute__((visibility("default")))

enum state { NEW, LOOKING, LOOKED, MAKING, READY, OFF };

struct span {
	uintptr_t at;
	size_t len;
};

static p3_a32 state;          /* p3_acquire: HEAP.2 */
static struct span hidden[2]; /* text of libc and of ld.so */
static struct p3_heap *heap;
static __thread bool bound __attribute__((tls_model("initial-exec")));

/* ---- who calls ---- */

static void note_text(const struct dl_phdr_info *info, struct span *out)
{
	uintptr_t end = 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type == PT_LOAD && p->p_vaddr + p->p_memsz > end)
			end = p->p_vaddr + p->p_memsz;
	}
	*out = (struct span){info->dlpi_addr, end};
}

static int note_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size, (void)arg;
	if (strstr(info->dlpi_name, "/libc.so."))
		note_text(info, &hidden[0]);
	else if (strstr(info->dlpi_name, "/ld-linux"))
		note_text(info, &hidden[1]);
	return 0;
}

static bool is_hidden(const void *caller)
{
	return (uintptr_t)caller - hidden[0].at < hidden[0].len ||
	       (uintptr_t)caller - hidden[1].at < hidden[1].len;
}

/* ---- the heap ---- */

static enum p3_huge_policy huge_policy(void)
{
	const char *text = getenv("PTL3_HUGEPAGES");
	if (text && !strcmp(text, "on"))
		return P3_HUGE_ON;
	return text && !strcmp(text, "off") ? P3_HUGE_OFF : P3_HUGE_AUTO;
}

static bool make_heap(void)
{
	static const struct p3_heap_calls calls = {mallctl, mallocx, dallocx};
	uint64_t len;
	/* A bad setting is said by libportals. */
	if (!p3_heap_size(getenv(P3_HEAP_ENV), &len) || !len)
		return false;
	return p3_heap_create(len, huge_policy(), &heap) == 0 &&
	       p3_heap_arm(heap, &calls) == 0;
}

static bool step(enum state from, enum state to)
{
	uint32_t old = from;
	return p3_cas32(&state, &old, to);
}

/* False: private memory, this time or ever. */
static bool begin(const void *caller)
{
	int saved = errno;
	if (step(NEW, LOOKING)) {
		dl_iterate_phdr(note_object, NULL);
		p3_release(&state, LOOKED); /* HEAP.2 */
	}
	if (p3_acquire(&state) == LOOKED && !is_hidden(caller) && /* HEAP.2 */
		step(LOOKED, MAKING))
		p3_release(&state, make_heap() ? READY : OFF); /* HEAP.2 */
	errno = saved;
	return p3_acquire(&state) == READY; /* HEAP.2 */
}

static void bind_thread(void)
{
	unsigned arena = p3_heap_arena(heap);
	bound = true; /* before: it may allocate */
	if (mallctl("thread.arena", NULL, NULL, &arena, sizeof arena) != 0)
		bound = false;
}

static bool is_ready(const void *caller)
{
	if (__builtin_expect(p3_acquire(&state) != READY, 0) &&
		!begin(caller)) /* HEAP.2 */
		return false;
	if (is_hidden(caller))
		return false;
	if (__builtin_expect(!bound, 0))
		bind_thread();
	return bound;
}

static bool is_of_heap(const void *block)
{
	return p3_acquire(&state) == READY && p3_heap_has(heap, block); /* HEAP.2 */
}

static void *get(const void *caller, size_t n, int flags)
{
	void *p = NULL;
	n = n ? n : 1;
	if (is_ready(caller))
		p = mallocx(n, flags);
	if (!p)
		p = mallocx(n, flags | PRIVATE);
	if (!p)
		errno = ENOMEM;
	return p;
}

static void give(void *p)
{
	int saved = errno;
	if (p)
		dallocx(p, is_of_heap(p) ? 0 : MALLOCX_TCACHE_NONE);
	errno = saved;
}

static void *move(const void *caller, void *p, size_t n)
{
	size_t had = sallocx(p, 0);
	if (n <= had && n >= had / 2)
		return p;
	if (n > had && xallocx(p, n, 0, 0) >= n)
		return p;
	void *to = get(caller, n, 0);
	if (!to)
		return NULL;
	memcpy(to, p, n < had ? n : had);
	give(p);
	return to;
}

static void *resize(const void *caller, void *p, size_t n)
{
	if (!p)
		return get(caller, n, 0);
	if (n)
		return move(caller, p, n);
	give(p);
	return NULL;
}

static bool is_power(size_t n)
{
	return n && !(n & (n - 1));
}

static void *get_aligned(const void *caller, size_t align, size_t n)
{
	if (is_power(align))
		return get(caller, n, MALLOCX_ALIGN(align));
	errno = EINVAL;
	return NULL;
}

/* ---- what programs call ---- */

SHOWN void *malloc(size_t n)
{
	return get(CALLER, n, 0);
}

SHOWN void free(void *p)
{
	give(p);
}

SHOWN void *calloc(size_t count, size_t each)
{
	size_t n;
	if (!__builtin_mul_overflow(count, each, &n))
		return get(CALLER, n, MALLOCX_ZERO);
	errno = ENOMEM;
	return NULL;
}

SHOWN void *realloc(void *p, size_t n)
{
	return resize(CALLER, p, n);
}

SHOWN void *reallocarray(void *p, size_t count, size_t each)
{
	size_t n;
	if (!__builtin_mul_overflow(count, each, &n))
		return resize(CALLER, p, n);
	errno = ENOMEM;
	return NULL;
}

SHOWN int posix_memalign(void **out, size_t align, size_t n)
{
	int saved = errno;
	if (!is_power(align) || align % sizeof(void *))
		return EINVAL;
	void *p = get(CALLER, n, MALLOCX_ALIGN(align));
	errno = saved;
	if (p)
		*out = p;
	return p ? 0 : ENOMEM;
}

SHOWN void *aligned_alloc(size_t align, size_t n)
{
	return get_aligned(CALLER, align, n);
}

SHOWN void *memalign(size_t align, size_t n)
{
	return get_aligned(CALLER, align, n);
}

SHOWN void *valloc(size_t n)
{
	return get_aligned(CALLER, (size_t)getpagesize(), n);
}

SHOWN void *pvalloc(size_t n)
{
	size_t page = (size_t)getpagesize();
	return get_aligned(CALLER, page, n > SIZE_MAX - page ? n : p3_round_up(n, page));
}

SHOWN size_t malloc_usable_size(void *p)
{
	return p ? sallocx(p, 0) : 0;
}

/* libportals asks for it; NULL: none, or of another build. */
SHOWN struct p3_heap *p3_program_heap(uint64_t layout)
{
	return layout == P3_LAYOUT_WORD && p3_acquire(&state) == READY ? heap /* HEAP.2 */
								       : NULL;
}
