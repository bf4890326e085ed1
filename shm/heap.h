/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heap - memory of this process that peers can map: the shared heap
 *
 *   base                         used                             base + len
 *	+---------------------------+---------------------------------+
 *	| was reserved for blocks   | never touched: address space    |
 *	| at some time              | only                            |
 *	+---------------------------+---------------------------------+
 *
 * A segment (shm/seg.h): a memfd of final size, sealed SHRINK | GROW | FUTURE_WRITE |
 * SEAL when it is made.  jemalloc manages the inside.  An arena of its own has the whole
 * segment as address space; it commits pieces to blocks, and reserves each piece with
 * fallocate when it commits the piece.
 * Memory never goes back to the kernel (a sealed memfd takes no holes).  jemalloc keeps
 * its metadata outside, in private memory, and none in the blocks: a peer reads users'
 * data only.
 *
 * Why a peer that reads at any offset below len cannot fault.  Size and pages cannot go
 * away: the seals forbid truncation and holes.  A page that was never reserved would be
 * allocated by the reader's touch, and a machine without room would send SIGBUS.  So a
 * reader does not trust the owner's word about its reservation: before it first touches
 * a block it makes the kernel bring the pages in (p3_heap_view_reach,
 * MADV_POPULATE_READ, which fails with an error and no signal).  It remembers that for
 * good.  An owner that has lied about its reservation makes its readers allocate at most
 * the pages of its heap.  The remaining risk (a page that cannot be read back from swap)
 * is the same as for published segments.
 *
 * The descriptor.  Programs close descriptors that they do not know, and give their
 * numbers to other files.  The heap's descriptor has a number above those that programs
 * use.  Before each use the library compares the descriptor's file with the file that it
 * made.  If it is another file, the heap grows no more, the library leaves the descriptor
 * alone, and a forked child cannot get a copy of the heap.
 *
 * fork.  A child that wrote here would write its parent's memory.  The mapping does not
 * go to the child (MADV_DONTFORK); instead, in handlers of pthread_atfork, the thread
 * that forks reads the contents from the memfd into private memory, which the child
 * moves to the heap's addresses and the parent drops: the child's blocks are private,
 * its allocations too, and no process can map them.  So a fork copies the heap's
 * contents (about 1 ms a MiB), and needs no descriptors.  If there is no memory for the
 * copy, the child says so in one line and ends with status 127.
 *
 *	signals		The forking thread blocks them meanwhile: a handler of the program
 *			could look at blocks.
 *	atfork handlers	The library registers its own when it is loaded.  Child handlers
 *			that are registered later run after it and find the heap.
 *	vfork and such	posix_spawn, vfork and system do not copy the address space, so
 *			they copy no heap.
 *	clone, _Fork	They run no handlers: their children have a hole in place of the
 *			heap.
 *	stacks		No thread but the forking one may have its stack in the heap:
 *			in the child, libc looks at these stacks before the handler runs.
 *	protections	The child does not inherit those that the program has set.
 *
 * The end of sharing.  A copy is not enough for two kinds of fork: a fork by a thread
 * whose stack is in the heap, and a fork of a program whose malloc is served, since the
 * stacks of its threads and the data of other libraries' handlers may be in the heap.
 * In these cases the forking thread first maps the file anew over the heap, privately,
 * by one call: earlier writes are in the file, later ones are not.  Then it forks as
 * usual.  This ends sharing for good, and the process says so in one line: it announces
 * no more blocks, and the descriptor is -1.  Peers still read earlier announced bytes
 * from the file.  This way needs no copy.  But other threads may sleep on a shared futex
 * in the heap (in pthread_join of a thread whose stack is there).  They sleep on the word
 * in the file, and a later wake-up reaches only the word in private memory.  So the
 * forking thread finds them through /proc/self/task and wakes them, and they sleep again,
 * on the private word.  Protections that the program has set in the heap are lost.  Other
 * forks use a copy: a program that calls PtlXAlloc wants shared memory after a fork, too.
 *
 * The program's malloc (p3_heap_serve).  If jemalloc replaces libc's malloc, it has an
 * arena for long blocks only (P3_HEAP_MALLOC_CONF): this arena gets the heap's hooks
 * when the node is made.  Earlier blocks stay ordinary memory, which returns to the
 * kernel when it has been free long enough.  No hook may fail: when the heap is full the
 * hooks give ordinary memory, and do not let the two kinds merge.  Short blocks, libc's
 * data and jemalloc's own data stay in the other arenas, which peers do not see; so does
 * the metadata of this arena, which existed before the hooks did.  The heap's pages are
 * reserved for a block when it is given, not when it is touched.
 *
 * One thread at a time may call p3_heap_create, p3_heap_arm and p3_heap_serve.  Any
 * threads may call the other functions at the same time.  The state is the list of heaps
 * and each struct p3_heap: a lock guards the list's changes, kept heaps and forks, and
 * the words that threads share are atomic.
 *
 * Memory ordering, between threads:
 *	HEAP.1	list of heaps: released when the heap is made -> acquired in fork handlers
 *	HEAP.2	mine: set before the private mapping -> seen by a thread that announces
 *		bytes that were written after it.  The kernel orders the two: a thread
 *		that writes to a page of the new mapping has met the address space's lock.
 */
#ifndef P3_SHM_HEAP_H
#define P3_SHM_HEAP_H

#include "shm/seg.h"

#include <stddef.h>

/*
 * The settings that launcher and library agree on.  jemalloc gives blocks from
 * oversize_threshold on an arena of their own, which the heap serves.  16K is the
 * smallest threshold that jemalloc takes.  tcache_max keeps these blocks out of the
 * threads' caches, which take them from other arenas.  retain:false makes jemalloc give
 * unused address space back, so neighboring extents that were requested one by one can
 * merge.
 */
#define P3_HEAP_ENV         "PTL3_HEAP"        /* bytes, or a number with K, M or G */
#define P3_HEAP_SHARED_ENV  "PTL3_SHARED_HEAP" /* on: serve the program's malloc */
#define P3_HEAP_MOST        ((uint64_t)1 << 40)
#define P3_HEAP_JEMALLOC    "libjemalloc.so.2"
#define P3_HEAP_MALLOC_CONF "oversize_threshold:16384,tcache_max:14336,retain:false"
/* default length where malloc is served */
#define P3_HEAP_LARGE ((uint64_t)1 << 30)

struct p3_heap;

/* jemalloc's functions, from whichever library has them. */
struct p3_heap_calls {
	int (*mallctl)(const char *, void *, size_t *, void *, size_t);
	void *(*mallocx)(size_t, int);
	void (*dallocx)(void *, int);
};

/*
 * Make the segment, of len bytes rounded up to P3_HUGE; no memory is used yet.  AUTO
 * takes hugepages if enough are free for all of it.  Return 0 or -errno.
 */
int p3_heap_create(uint64_t len, enum p3_huge_policy huge, struct p3_heap **heap_out);

/* Make the arena in the heap, once for each heap.  Return 0 or -errno. */
int p3_heap_arm(struct p3_heap *heap, const struct p3_heap_calls *calls);
bool p3_heap_is_armed(const struct p3_heap *heap);

/*
 * Make the program's malloc, which must be jemalloc's, take its long blocks from this
 * heap from now on.  Only mallctl of calls is used.  Return 0, or
 *	-ENXIO		malloc is another library's
 *	-ENOTSUP	its long blocks have no arena of their own
 */
int p3_heap_serve(struct p3_heap *heap, const struct p3_heap_calls *calls);

/* Allocate a block aligned to 64 bytes.  Return NULL when there is no room. */
void *p3_heap_alloc(struct p3_heap *heap, size_t len);
void p3_heap_free(struct p3_heap *heap, void *block);

bool p3_heap_has(const struct p3_heap *heap, const void *at);
void *p3_heap_base(const struct p3_heap *heap);
uint64_t p3_heap_len(const struct p3_heap *heap);
/* Return the heap's descriptor, or -1 if the heap is private now. */
int p3_heap_fd(const struct p3_heap *heap);
/* Return the descriptor to send to peers, or -1 if the heap is private, or if the program
 * has closed the descriptor. */
int p3_heap_offer(const struct p3_heap *heap);

/* Keep a heap that its node needs no more for the next p3_heap_create of the same
 * length. */
void p3_heap_keep(struct p3_heap *heap);

/* ---- a peer's heap ---- */

struct p3_heap_view {
	const char *base; /* NULL: not mapped */
	uint64_t len;
	uint64_t *ready; /* a bit for each block whose pages are known to be there */
};

/*
 * Map a peer's heap.  Only the lease holder may read it: p3_heap_view_close gives the
 * addresses back to the kernel, and a thread that still read there would fault.  Return
 * -EPROTO if fd is no heap, -ENOMEM if there is no address space.
 */
int p3_heap_view_open(int fd, uint64_t len, struct p3_heap_view *view_out);
void p3_heap_view_close(struct p3_heap_view *view);

static inline bool p3_heap_view_holds(
	const struct p3_heap_view *view, uint64_t off, uint64_t len)
{
	return view->base && off < view->len && len <= view->len - off;
}

/*
 * Make sure that bytes which the view holds may be read from now on.  Return false if
 * there is no memory for their pages.  The first call for a block (256 KiB) makes a
 * system call.
 */
bool p3_heap_view_reach(struct p3_heap_view *view, uint64_t off, uint64_t len);

#endif
