/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heap - memory of this process that peers can map: the shared heap
 *
 *   base                         used                             base + len
 *	+---------------------------+---------------------------------+
 *	| reserved for blocks at    | never touched: address space    |
 *	| some time                 | only                            |
 *	+---------------------------+---------------------------------+
 *
 * A segment (shm/seg.h): a memfd of final size, sealed SHRINK | GROW | FUTURE_WRITE |
 * SEAL when it is made.  What is inside is jemalloc's business: an arena of its own has
 * all of it as address space, and commits pieces to blocks, each reserved with fallocate
 * then.  Memory never goes back (a sealed memfd takes no holes).  jemalloc keeps its
 * books outside, in private memory, and nothing in the blocks: what a peer reads is
 * users' data only.
 *
 * Why a peer that reads at any offset below len cannot fault.  Size and pages cannot go
 * away: the seals forbid truncation and holes.  A page that was never reserved would be
 * allocated by the reader's touch, and a machine without room would send SIGBUS.  So a
 * reader believes nothing that the owner says about its reservation: before it first
 * touches a block it lets the kernel bring the pages in (p3_heap_view_reach,
 * MADV_POPULATE_READ, which fails with an error and no signal).  It remembers that for
 * good.  A lying owner costs at most the pages of its heap.  What remains (a page that
 * cannot be read back from swap) is the same as for published segments.
 *
 * The descriptor.  Programs close descriptors that they do not know, and give their
 * numbers to other files.  It has a number above those that programs use, and before
 * each use its file is compared with the one that was made: if it is another the heap
 * grows no more, the descriptor is left alone, and children cannot have a copy.
 *
 * fork.  A child that wrote here would write its parent's memory.  The mapping does not
 * go to the child (MADV_DONTFORK); instead, in handlers of pthread_atfork, the thread
 * that forks reads the contents from the memfd into private memory, which the child
 * moves to the heap's addresses and the parent drops: the child's blocks are private,
 * its allocations too, nobody can map them.  So a fork copies what the heap holds (about
 * 1 ms a MiB).  It needs no descriptors.  If there is no memory for it the child says
 * so in one line and ends with status 127.
 *
 *	signals		are blocked meanwhile: their handlers could look at blocks
 *	handlers	of pthread_atfork are registered when the library is loaded;
 *			those that are registered later find the heap in the child
 *	no fork		posix_spawn, vfork and system share or leave the address space
 *			and copy nothing
 *	no handlers	children of a bare clone() or of _Fork() have no heap: a hole
 *	other stacks	of threads may not lie in a heap when there is a fork: libc looks
 *			at them in the child before the handler has run
 *	protections	that the program has set are not the child's
 *
 * The end of sharing.  A fork on a stack in the heap cannot be served by a copy, and one
 * of a program whose malloc is served need not have its stacks and other libraries'
 * handlers elsewhere.  There the thread that forks first maps the file anew over the
 * heap, privately: one call, before which writes are in the file and after which they are
 * not, and an ordinary fork follows.  It is the end of sharing for good, said in one
 * line: nothing is announced any more, and the descriptor is -1.  What has been announced
 * is still read from the file.  It costs no copy, but other threads that sleep on a
 * shared futex in the heap (pthread_join of a thread whose stack is there) sleep at the
 * file's word; /proc/self/task tells who they are, and they are woken to sleep again.
 * Protections that the program has set there are lost.  It is no way for all forks: who
 * asked for PtlXAlloc's memory wants it shared behind a fork, too.
 *
 * The program's malloc (p3_heap_serve).  jemalloc in front of libc's malloc has an arena
 * that nothing but long blocks comes from (shm/heapenv.h): it gets hooks of ours, when
 * the program has run for a while.  Blocks of before stay ordinary memory, which goes
 * back where it came from when it is free long enough.  No hook may fail: when the heap
 * is full they give ordinary memory, and do not let both kinds merge.  Short blocks,
 * libc's and jemalloc's own data stay in the other arenas, which peers do not see; the
 * books of this one, too, since it was there before the hooks were.  The heap's pages are
 * reserved for a block when it is given, not when it is touched.
 *
 * p3_heap_create, p3_heap_arm and p3_heap_serve: one thread at a time.  The others may be
 * called by any thread at the same time.
 *
 * Memory ordering, between threads:
 *	HEAP.1	list of heaps: released when the heap is made -> acquired in fork handlers
 *	HEAP.2	mine: set before the private mapping -> seen by who announces bytes that
 *		were written after it.  The kernel orders them: who writes to a page of
 *		the new mapping has met its lock.
 */
#ifndef P3_SHM_HEAP_H
#define P3_SHM_HEAP_H

#include "shm/heapenv.h"
#include "shm/seg.h"

#include <stddef.h>

#define P3_HEAP_LARGE ((uint64_t)1 << 30) /* usual where malloc is served */

struct p3_heap;

/* jemalloc's calls, wherever it was found. */
struct p3_heap_calls {
	int (*mallctl)(const char *, void *, size_t *, void *, size_t);
	void *(*mallocx)(size_t, int);
	void (*dallocx)(void *, int);
};

/*
 * The segment, of len bytes rounded up to P3_HUGE; no memory is used yet.  AUTO takes
 * hugepages if there are enough free ones for all of it.  0 or -errno.
 */
int p3_heap_create(uint64_t len, enum p3_huge_policy huge, struct p3_heap **heap_out);

/* The arena inside; once for each heap.  0 or -errno. */
int p3_heap_arm(struct p3_heap *heap, const struct p3_heap_calls *calls);
bool p3_heap_is_armed(const struct p3_heap *heap);
unsigned p3_heap_arena(const struct p3_heap *heap);

/*
 * The program's malloc, which must be jemalloc's, takes its long blocks from this heap
 * from now on.  Of calls mallctl is used only.  0, or
 *	-ENXIO		malloc is another one
 *	-ENOTSUP	its long blocks have no arena of their own
 */
int p3_heap_serve(struct p3_heap *heap, const struct p3_heap_calls *calls);

/* Blocks aligned to 64 bytes; NULL when there is no room. */
void *p3_heap_alloc(struct p3_heap *heap, size_t len);
void p3_heap_free(struct p3_heap *heap, void *block);

bool p3_heap_has(const struct p3_heap *heap, const void *at);
void *p3_heap_base(const struct p3_heap *heap);
uint64_t p3_heap_len(const struct p3_heap *heap);
/* The descriptor to hand on, or -1: the heap is private now. */
int p3_heap_fd(const struct p3_heap *heap);

/* A heap that its node needs no more waits for the next p3_heap_create of its size. */
void p3_heap_keep(struct p3_heap *heap);

/* ---- a peer's heap ---- */

struct p3_heap_view {
	const char *base; /* NULL: not mapped */
	uint64_t len;
	uint64_t *ready; /* bit for each block whose pages are known to be there */
};

/*
 * Only the lease holder reads it: its addresses are given back when it is closed.
 * -EPROTO if it is no heap, -ENOMEM: no address space.
 */
int p3_heap_view_open(int fd, uint64_t len, struct p3_heap_view *view_out);
void p3_heap_view_close(struct p3_heap_view *view);

static inline bool p3_heap_view_holds(
	const struct p3_heap_view *view, uint64_t off, uint64_t len)
{
	return view->base && off < view->len && len <= view->len - off;
}

/*
 * Bytes that the view holds may be read from now on; false: there is no memory for their
 * pages.  A system call for each block (256 KiB) once.
 */
bool p3_heap_view_reach(struct p3_heap_view *view, uint64_t off, uint64_t len);

#endif
