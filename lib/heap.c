/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The node's shared heap, for PtlXAlloc.
 *
 * jemalloc is loaded when the first block is wanted, and privately: linked to us it would
 * be the malloc of programs that link us, and could not be loaded with us by dlopen (it
 * needs static thread storage, for which yod has its nodes leave room).  And without life
 * held: under the loader's lock, constructors may call us, who take life.
 */
#include "lib/lib.h"
#include "shm/log.h"

#include <dlfcn.h>
#include <string.h>

#define JEMALLOC "libjemalloc.so.2"

static void make_heap(struct p3_node *node)
{
	struct p3_conf conf;
	if (p3_conf_read(&conf) != 0 || !conf.heap)
		return;
	int rc = p3_heap_create(conf.heap, conf.huge, &node->heap);
	if (rc && node->rank == 0) /* once a job */
		p3_warn("no shared heap of %llu bytes: %s; PtlXAlloc gives ordinary "
			"memory; set PTL3_HEAP to a size that fits, or to 0",
			(unsigned long long)conf.heap, strerror(-rc));
}

struct p3_heap *p3_node_heap(struct p3_node *node)
{
	if (node->heap_tried)
		return node->heap;
	node->heap_tried = true;
	if (node->size > 1) /* else nobody could read it */
		make_heap(node);
	return node->heap;
}

static bool find_calls(struct p3_heap_calls *calls)
{
	void *lib = dlopen(JEMALLOC, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
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

static struct p3_heap *heap_of(struct p3_node *node, bool *armed_out)
{
	pthread_mutex_lock(&node->life);
	struct p3_heap *heap = node->heap_mute ? NULL : p3_node_heap(node);
	*armed_out = heap && p3_heap_is_armed(heap);
	pthread_mutex_unlock(&node->life);
	return heap;
}

static bool arm(struct p3_node *node, struct p3_heap *heap)
{
	struct p3_heap_calls calls;
	bool found = find_calls(&calls);
	pthread_mutex_lock(&node->life);
	bool ok = p3_heap_is_armed(heap) || (found && p3_heap_arm(heap, &calls) == 0);
	node->heap_mute |= !ok;
	pthread_mutex_unlock(&node->life);
	return ok;
}

struct p3_heap *p3_heap_for_blocks(struct p3_node *node)
{
	bool armed;
	struct p3_heap *heap = heap_of(node, &armed);
	return heap && (armed || arm(node, heap)) ? heap : NULL;
}

void p3_heap_leave(struct p3_node *node)
{
	if (node->heap)
		p3_heap_keep(node->heap);
	node->heap = NULL;
	node->heap_tried = false;
}
