/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of the heaps of this process, and questions about one of them. */
#include "shm/heapin.h"

#include <sys/stat.h>

pthread_mutex_t p3_heaps_lock = PTHREAD_MUTEX_INITIALIZER;
_Atomic(struct p3_heap *) p3_heaps; /* HEAP.1 */

bool p3_heap_is_ours(const struct p3_heap *h)
{
	struct stat st;
	return fstat(h->seg.fd, &st) == 0 && st.st_ino == h->ino && st.st_dev == h->dev;
}

bool p3_heap_has(const struct p3_heap *h, const void *at)
{
	return (uintptr_t)at - (uintptr_t)h->seg.base < h->seg.len;
}
