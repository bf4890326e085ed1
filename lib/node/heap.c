/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The node's shared heap, for PtlXAlloc.
 *
 * jemalloc is loaded when the first block is allocated, and privately: linked to this
 * library it would become the malloc of programs that link the library, and dlopen
 * could not load the two (jemalloc needs static thread storage, for which yod has its
 * nodes leave room).  The thread that loads it does not hold node->life: dlopen waits for
 * the loader's lock, and a constructor that runs under that lock may call this library,
 * which waits for node->life.
 */
#include "lib/node/node.h"
#include "shm/heap.h"
#define P3_LOG_AREA P3_AREA_HEAP
#include "shm/log.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* mallctl of the program's malloc, or NULL.  Several threads may set this word, all
 * of them to the same value. */
static _Atomic(void *) heap_program_mallctl;

void p3_node_look_for_malloc(void)
{
	if (getenv(P3_HEAP_SHARED_ENV) && !p3_get(&heap_program_mallctl))
		p3_set(&heap_program_mallctl, dlsym(RTLD_DEFAULT, "mallctl"));
}

static void heap_serve_malloc(struct p3_node *node)
{
	struct p3_heap_calls calls = {0};
	void *mallctl = p3_get(&heap_program_mallctl);
	memcpy(&calls.mallctl, &mallctl, sizeof mallctl);
	int rc = mallctl ? p3_heap_serve(node->heap, &calls) : -ENXIO;
	if (rc && node->rank == 0) /* one line a job */
		p3_warn("malloc gives ordinary memory: %s; " P3_HEAP_SHARED_ENV
			"=on is for programs under yod --shared-heap",
			rc == -ENXIO ? "the program's malloc is not jemalloc's"
			: rc == -ENOTSUP
				? "MALLOC_CONF leaves long blocks no arena of their own"
				: strerror(-rc));
}

static void heap_make(struct p3_node *node)
{
	struct p3_conf conf;
	if (p3_conf_read(&conf) != 0 || !conf.heap)
		return;
	/* A heap that serves malloc has ordinary pages: a fork maps it privately
	 * (shm/heap.h), and it would then need as many free hugepages again. */
	enum p3_huge_policy huge = conf.shared_heap ? P3_HUGE_OFF : conf.huge;
	int rc = p3_heap_create(conf.heap, huge, &node->heap);
	if (!rc && conf.shared_heap)
		heap_serve_malloc(node);
	if (rc && node->rank == 0) /* one line a job */
		p3_warn("no shared heap of %llu bytes: %s; PtlXAlloc gives ordinary "
			"memory; set PTL3_HEAP to a size that fits, or to 0",
			(unsigned long long)conf.heap, strerror(-rc));
}

struct p3_heap *p3_node_heap(struct p3_node *node)
{
	if (node->heap_tried)
		return node->heap;
	node->heap_tried = true;
	/* A lone process has no heap, since no other node could read it.  In a domain
	 * few nodes could read it, so there the user asks for a heap by PTL3_HEAP. */
	if (node->size > 1 || (node->domain[0] && p3_conf_text(P3_CONF_HEAP)))
		heap_make(node);
	return node->heap;
}

static bool heap_find_calls(struct p3_heap_calls *calls)
{
	void *lib = dlopen(P3_HEAP_JEMALLOC, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	void *fn[3] = {NULL};
	if (!lib) {
		p3_warn("no allocator for the shared heap: %s; PtlXAlloc gives ordinary "
			"memory",
			dlerror());
		return false;
	}
	fn[0] = dlsym(lib, "mallctl");
	fn[1] = dlsym(lib, "mallocx");
	fn[2] = dlsym(lib, "dallocx");
	memcpy(&calls->mallctl, &fn[0], sizeof fn[0]);
	memcpy(&calls->mallocx, &fn[1], sizeof fn[1]);
	memcpy(&calls->dallocx, &fn[2], sizeof fn[2]);
	return fn[0] && fn[1] && fn[2];
}

struct p3_heap *p3_node_heap_for_blocks(struct p3_node *node)
{
	struct p3_heap_calls calls;
	pthread_mutex_lock(&node->life);
	struct p3_heap *heap = node->heap_mute ? NULL : p3_node_heap(node);
	bool armed = heap && p3_heap_is_armed(heap);
	pthread_mutex_unlock(&node->life);
	if (!heap || armed)
		return heap;
	bool found = heap_find_calls(&calls);
	pthread_mutex_lock(&node->life);
	armed = p3_heap_is_armed(heap) || (found && p3_heap_arm(heap, &calls) == 0);
	node->heap_mute |= !armed;
	pthread_mutex_unlock(&node->life);
	return armed ? heap : NULL;
}

void p3_node_leave_heap(struct p3_node *node)
{
	if (node->heap)
		p3_heap_keep(node->heap);
	node->heap = NULL;
	node->heap_tried = false;
}
