/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heapin - the inside of a heap, for the files that implement it (shm/heap.h)
 *
 *	heap.c		creation, and the functions that others call
 *	heaparena.c	its address space as jemalloc's extents
 *	heapfork.c	the effect of a fork on it
 *	heaplist.c	the list of heaps, which the others use
 *	heapview.c	a peer's heap, read only
 *
 * The state is the list p3_heaps and each struct p3_heap: p3_heaps_lock guards the list's
 * changes, kept heaps and forks, and the words that threads share are atomic.  heap.h
 * says which threads may call the functions.
 */
#ifndef P3_SHM_HEAPIN_H
#define P3_SHM_HEAPIN_H

#include "shm/atomics.h"
#include "shm/heap.h"

#include <jemalloc/jemalloc.h>
#include <pthread.h>
#include <sys/types.h>

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
extern pthread_mutex_t p3_heaps_lock;
extern _Atomic(struct p3_heap *) p3_heaps; /* HEAP.1 */

/* Return true if the heap's descriptor still names the file that was made. */
bool p3_heap_is_ours(const struct p3_heap *h);

/* Return true if the library could register its fork handlers when it was loaded, so
 * that it notices forks. */
bool p3_heap_watches_forks(void);

#endif
