/* SPDX-License-Identifier: BSD-3-Clause */
/* PtlXAlloc and PtlXFree: blocks of the node's shared heap, or of ordinary memory. */
#include "lib/node/call.h"
#include "lib/node/heap.h"
#include "lib/runtime/runtime.h"
#include "portals3x.h"

#include <errno.h>
#include <stdlib.h>

/* A header in front of every block, so that PtlFini can free all of them. */
struct block {
	struct block *next, **prev;
	uint64_t magic;
	struct p3_heap *heap; /* NULL if the block is ordinary memory */
	uint8_t pad[32];
};

_Static_assert(sizeof(struct block) == 64, "blocks are aligned to 64 bytes");

#define P3_BLOCK_MAGIC 0x50334c6f636b2121u

static struct block *block_alloc(struct p3_heap *heap, size_t length)
{
	size_t size = p3_round_up(length, 64) + sizeof(struct block);
	struct block *b = heap ? p3_heap_alloc(heap, size) : NULL;
	if (!b) {
		heap = NULL;
		b = aligned_alloc(64, size);
	}
	if (b) {
		b->heap = heap;
		b->magic = P3_BLOCK_MAGIC;
	}
	return b;
}

static void block_free(struct block *b)
{
	int saved = errno;
	b->magic = 0;
	if (b->heap)
		p3_heap_free(b->heap, b);
	else
		free(b);
	errno = saved;
}

/* Link a block.  The caller holds the lock node->life. */
static void block_link(struct p3_node *node, struct block *b)
{
	b->next = node->blocks;
	b->prev = (struct block **)&node->blocks;
	if (b->next)
		b->next->prev = &b->next;
	node->blocks = b;
}

int PtlXAlloc(ptl_size_t length, void **addr)
{
	struct p3_node *node = p3_node();
	if (!addr)
		return PTL_SEGV;
	if (!p3_is_up(node))
		return PTL_NO_INIT;
	if (length == 0) {
		*addr = NULL;
		return PTL_OK;
	}
	if (length > SIZE_MAX / 2 || p3_is_busy())
		return PTL_NO_SPACE;
	struct p3_caller caller = p3_caller_save();
	struct block *b = block_alloc(p3_node_heap_for_blocks(node), length);
	if (b) {
		pthread_mutex_lock(&node->life);
		block_link(node, b);
		pthread_mutex_unlock(&node->life);
		*addr = b + 1;
	}
	p3_caller_restore(caller);
	return b ? PTL_OK : PTL_NO_SPACE;
}

int PtlXFree(void *addr)
{
	struct p3_node *node = p3_node();
	if (!p3_is_up(node))
		return PTL_NO_INIT;
	if (!addr)
		return PTL_OK;
	struct block *b = (struct block *)addr - 1;
	if ((uintptr_t)addr % 64 || b->magic != P3_BLOCK_MAGIC)
		return PTL_FAIL;
	if (p3_is_busy())
		return PTL_NO_SPACE;
	struct p3_caller caller = p3_caller_save();
	pthread_mutex_lock(&node->life);
	*b->prev = b->next;
	if (b->next)
		b->next->prev = b->prev;
	pthread_mutex_unlock(&node->life);
	block_free(b);
	p3_caller_restore(caller);
	return PTL_OK;
}

void p3_blocks_free(struct p3_node *node)
{
	struct block *b = node->blocks;
	node->blocks = NULL;
	while (b) {
		struct block *next = b->next;
		block_free(b);
		b = next;
	}
}
