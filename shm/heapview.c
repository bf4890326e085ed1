/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer's heap, mapped read-only. */
#include "shm/heap.h"
#include "shm/kernel.h"
#include "shm/layout.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define VIEW_BLOCK ((uint64_t)256 << 10)

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
