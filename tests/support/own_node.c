/* SPDX-License-Identifier: BSD-3-Clause */
/* Several nodes in one process. */
#include "support/own_node.h"
#include "shm/heap.h"
#include "lib/node/node.h"
#include "shm/fd.h"
#include "shm/seg.h"

#include <stdlib.h>
#include <sys/mman.h>

struct p3_node *own_node_create(int sock)
{
	struct p3_node *node = calloc(1, sizeof *node);
	if (!node)
		return NULL;
	*node = (struct p3_node){.ready = &p3_not_ready,
		.sock = sock,
		.sock_file = p3_fd_file(sock),
		.wake_fd = -1,
		.harness = true};
	p3_node_set_locks(node);
	own_node_enter(node);
	return node;
}

void own_node_enter(struct p3_node *node)
{
	p3_thread.node = node ? node : &p3_process;
}

void own_node_destroy(struct p3_node *node)
{
	PtlFini();
	p3_node_leave_heap(node);
	p3_cnos_free_maps(node);
	own_node_enter(NULL);
	if (p3_ready(node) != &p3_not_ready)
		munmap(p3_ready(node), P3_PAGE);
	p3_fd_close_own(node->sock, node->sock_file);
	if (node->sleepers)
		p3_seg_unmap(node->sleepers, p3_sleepers_len(node->size));
	free(node);
}
