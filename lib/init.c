/* SPDX-License-Identifier: BSD-3-Clause */
/* PtlInit and PtlFini, the end of the process, and forked children. */
#include "lib/init.h"
#include "lib/domain/mesh.h"
#include "lib/node/call.h"
#include "shm/fd.h"
#include "shm/log.h"
#include "shm/seg.h"
#include "shm/park.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* ---- forked children ---- */

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
static struct p3_node fork_inherited __attribute__((used));

/* Forget the parent's node in a forked child, which has not inherited its segments. */
static void fork_forget_parent(struct p3_node *node)
{
	struct p3_ready *ready = p3_ready(node);
	/* An open copy of the socket would hide the parent's end from yod. */
	if (node->sock >= 0)
		p3_fd_close_own(node->sock, node->sock_file);
	p3_mesh_forget(node);
	p3_modex_forget(node);
	if (p3_nic(node))
		p3_nic_forget(p3_nic(node));
	fork_inherited = *node;
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
		fork_forget_parent(node);
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

/* ---- PtlInit and PtlFini ---- */

int PtlInit(int *max_interfaces)
{
	struct p3_node *node = p3_node();
	if (!max_interfaces)
		return PTL_SEGV;
	if (p3_is_busy())
		return PTL_FAIL;
	struct p3_caller caller = p3_caller_save();
	p3_fork_settle(node);
	int rc = 0;
	p3_node_look_for_malloc();
	pthread_mutex_lock(&node->call);
	if (!p3_is_up(node))
		rc = p3_fork_watch(node);
	if (!rc && !p3_is_up(node)) {
		rc = p3_users_enter(node);
		if (!rc)
			p3_release(&p3_ready(node)->up, 1); /* INIT.1 */
	}
	pthread_mutex_unlock(&node->call);
	if (rc && rc != -EINVAL && !p3_pages_say_limit(rc)) /* -EINVAL has its line */
		p3_error("PtlInit: %s; see ulimit -n, -u and -v", strerror(-rc));
	p3_caller_restore(caller);
	if (rc)
		return PTL_FAIL;
	*max_interfaces = P3_JOB_NIS;
	return PTL_OK;
}

void PtlFini(void)
{
	struct p3_node *node = p3_node();
	if (!p3_is_up(node) || p3_is_busy())
		return;
	struct p3_caller caller = p3_caller_save();
	pthread_mutex_lock(&node->call);
	if (p3_is_up(node)) {
		(void)p3_ni_fini_all(node);
		p3_release(&p3_ready(node)->up, 0); /* INIT.1 */
		/* Wake the threads in the barrier: if the life thread ends, no RELEASED
		 * will arrive. */
		pthread_mutex_lock(&node->life);
		node->fini_calls++;
		pthread_cond_broadcast(&node->changed);
		pthread_mutex_unlock(&node->life);
		p3_users_leave(node);
		p3_blocks_free(node);
	}
	pthread_mutex_unlock(&node->call);
	p3_caller_restore(caller);
}

/* Take the lock node->call, at the latest P3_AWAIT_S after start: PtlNIFini in another
 * thread holds the lock that long for absent targets.  Return false if a thread still
 * holds it then. */
static bool exit_take_call(struct p3_node *node, uint64_t start)
{
	const struct timespec nap = {.tv_nsec = 1000000};
	int rc;
	while ((rc = pthread_mutex_trylock(&node->call)) != 0 &&
		p3_now_ns() - start < P3_AWAIT_S * UINT64_C(1000000000))
		(void)nanosleep(&nap, NULL);
	return !rc;
}

/* Return true if the process is to take leave of its peers or its launcher.  A forked
 * child of such a process is not. */
static bool exit_is_joined(struct p3_node *node)
{
	return p3_is_up(node) || p3_acquire(&p3_ready(node)->cci) ||
	       (node->modex && !p3_fork_is_child(node));
}

/* Take leave of the launcher in a process that ends.  awaits: wait for sent messages
 * before; all waits for absent targets together take at most P3_AWAIT_S. */
static void exit_leave(bool awaits)
{
	struct p3_node *node = &p3_process;
	uint64_t start = p3_now_ns();
	if (!exit_is_joined(node) || p3_is_busy())
		return;
	struct p3_caller caller = p3_caller_save();
	if (exit_take_call(node, start)) {
		if (awaits && p3_nic(node))
			p3_ni_await_sends(p3_nic(node), start);
		p3_modex_exit(node);
		pthread_mutex_unlock(&node->call);
	}
	p3_caller_restore(caller);
}

/* A process leaves by exit() or the end of main without PtlNIFini or cci_finalize, or
 * while another thread is inside one of them; _exit, exec and signals do not come
 * here. */
static __attribute__((destructor)) void exit_await_sends(void)
{
	exit_leave(true);
}

/* A process leaves by quick_exit(), as by gasnet_exit: as after _exit(), its sent
 * messages are not waited for. */
static void quick_exit_leave(void)
{
	exit_leave(false);
}

static __attribute__((constructor)) void quick_exit_set(void)
{
	p3_users_at_quick_exit = quick_exit_leave;
}
