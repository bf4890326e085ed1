/* SPDX-License-Identifier: BSD-3-Clause */
/* Cleanup in a forked child of a process that has a node. */
#include "lib/fork.h"
#include "lib/domain/mesh.h"
#include "lib/node/named.h"
#include "lib/node/node.h"
#include "shm/fd.h"
#include "shm/seg.h"

#include <errno.h>
#include <sched.h>
#include <sys/mman.h>

int p3_fork_watch(struct p3_node *node)
{
	if (p3_ready(node) != &p3_not_ready)
		return 0;
	struct p3_ready *ready = mmap(NULL, P3_PAGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ready == MAP_FAILED)
		return -ENOMEM;
	(void)madvise(ready, P3_PAGE, MADV_WIPEONFORK);
	p3_set(&ready->parent, 1);
	p3_release(&node->ready, ready); /* INIT.1: calls look for parent */
	return 0;
}

/* State that a forked child has inherited and can neither use nor free, kept in sight
 * of leak checkers. */
static struct p3_node inherited __attribute__((used));

/* Forget the parent's node in a forked child, which has not inherited its segments. */
static void forget_parent(struct p3_node *node)
{
	struct p3_ready *ready = p3_ready(node);
	/* An open copy of the socket would hide the parent's end from yod. */
	if (node->sock >= 0)
		p3_fd_close_own(node->sock, node->sock_file);
	p3_mesh_forget(node);
	p3_modex_forget(node);
	if (p3_nic(node))
		p3_nic_forget(p3_nic(node));
	inherited = *node;
	p3_seg_forget_all();
	p3_named_forked();
	*node = (struct p3_node){
		.ready = ready, .sock = -1, .wake_fd = -1, .welcomed = true};
	p3_node_set_locks(node);
}

void p3_fork_settle(struct p3_node *node)
{
	uint32_t forked = 0;
	struct p3_ready *ready = p3_ready(node);
	if (ready == &p3_not_ready)
		return;
	if (p3_cas32(&ready->parent, &forked, 2)) {
		forget_parent(node);
		p3_release(&ready->parent, 1); /* INIT.1 */
	}
	while (p3_acquire(&ready->parent) == 2) /* INIT.1 */
		sched_yield();
}

bool p3_fork_is_child(const struct p3_node *node)
{
	struct p3_ready *ready = p3_acquire(&node->ready); /* INIT.1 */
	return ready != &p3_not_ready && p3_get(&ready->parent) == 0;
}
