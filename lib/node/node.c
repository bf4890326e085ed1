/* SPDX-License-Identifier: BSD-3-Clause */
/* The nodes of this process: one, or in tests several. */
#include "lib/node/node.h"
#include "shm/process.h"

__thread struct p3_thread p3_thread
	__attribute__((tls_model("initial-exec"))) = {.node = &p3_process};
struct p3_ready p3_not_ready;
struct p3_node p3_process = {.ready = &p3_not_ready,
	.call = PTHREAD_MUTEX_INITIALIZER,
	.life = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
	.sock = -1,
	.wake_fd = -1};

static void set_locks(void)
{
	p3_node_set_locks(&p3_process);
}

P3_IN_FORKED_CHILD(set_locks)

void p3_node_set_locks(struct p3_node *node)
{
	pthread_mutex_init(&node->call, NULL);
	pthread_mutex_init(&node->life, NULL);
	pthread_cond_init(&node->changed, NULL);
}

struct p3_lib_ni *p3_node_find_ni(struct p3_node *node, ptl_handle_ni_t handle)
{
	uint32_t i = p3_handle_ni(handle);
	if (p3_handle_kind(handle) != P3_KIND_NI || i >= P3_JOB_NIS)
		return NULL;
	struct p3_lib_ni *ni = &node->ni[i];
	return p3_acquire(&ni->open) && p3_get(&ni->handle) == handle ? ni
								      : NULL; /* INIT.1 */
}
