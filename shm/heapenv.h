/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heapenv - what launcher and library agree on for the shared heap
 *
 * jemalloc gives blocks from oversize_threshold on an arena of their own, which is what
 * the heap serves (shm/heap.h).  16K is the least it takes; tcache_max: none of those
 * blocks come from a thread's cache, which takes them from other arenas.  retain: unused
 * address space is given back, so neighbours that were asked for one by one can merge.
 */
#ifndef P3_SHM_HEAPENV_H
#define P3_SHM_HEAPENV_H

#include <stdint.h>

#define P3_HEAP_ENV         "PTL3_HEAP"        /* bytes, or with K, M or G */
#define P3_HEAP_SHARED_ENV  "PTL3_SHARED_HEAP" /* on: serve the program's malloc */
#define P3_HEAP_MOST        ((uint64_t)1 << 40)
#define P3_HEAP_JEMALLOC    "libjemalloc.so.2"
#define P3_HEAP_MALLOC_CONF "oversize_threshold:16384,tcache_max:14336,retain:false"

#endif
