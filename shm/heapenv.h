/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heapenv - the settings of the shared heap that launcher and library agree on
 *
 * jemalloc gives blocks from oversize_threshold on an arena of their own, which the
 * heap serves (shm/heap.h).  16K is the smallest threshold that jemalloc takes.
 * tcache_max keeps these blocks out of the threads' caches, which take them from other
 * arenas.  retain:false makes jemalloc give unused address space back, so neighboring
 * extents that were requested one by one can merge.  The header has constants only: no
 * function, no state.
 */
#ifndef P3_SHM_HEAPENV_H
#define P3_SHM_HEAPENV_H

#include <stdint.h>

#define P3_HEAP_ENV         "PTL3_HEAP"        /* bytes, or a number with K, M or G */
#define P3_HEAP_SHARED_ENV  "PTL3_SHARED_HEAP" /* on: serve the program's malloc */
#define P3_HEAP_MOST        ((uint64_t)1 << 40)
#define P3_HEAP_JEMALLOC    "libjemalloc.so.2"
#define P3_HEAP_MALLOC_CONF "oversize_threshold:16384,tcache_max:14336,retain:false"

#endif
