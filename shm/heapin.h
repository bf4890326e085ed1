/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heapin - what a heap is inside, for the files that make it (shm/heap.h)
 *
 *	heap.c		birth, and what others ask
 *	heaparena.c	its address space as jemalloc's extents
 *	heapfork.c	what a fork does to it
 *	heapview.c	a peer's heap, read only
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
	dev_t dev; /* of its file: programs close and replace descriptors */
	ino_t ino;
	p3_a64 used;
	p3_a32 mine; /* HEAP.2: private memory, of a forked child or since a fork */
	bool armed;
	bool carving;
	uint64_t carved; /* not 0: all is the arena's since it was armed */
	bool serves;     /* the program's malloc, too */
	bool kept;
	unsigned arena;
	struct p3_heap_calls calls;
	struct p3_heap *next;
};

/* Guards kept, additions, forks. */
extern pthread_mutex_t p3_heaps_lock;
extern _Atomic(struct p3_heap *) p3_heaps; /* HEAP.1 */

/* Its descriptor still names the file that was made. */
bool p3_heap_is_ours(const struct p3_heap *h);

/* Forks are noticed: handlers could be registered when the library was loaded. */
bool p3_heap_watches_forks(void);

#endif
