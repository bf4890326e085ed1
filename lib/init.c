/* SPDX-License-Identifier: BSD-3-Clause */
/* PtlInit and PtlFini. */
#include "lib/domain/mesh.h"
#include "lib/fork.h"
#include "lib/ni.h"
#include "lib/node/call.h"
#include "lib/node/heap.h"
#include "lib/runtime/runtime.h"
#include "lib/users.h"
#include "shm/log.h"
#include "shm/pages.h"
#include "shm/park.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int init(struct p3_node *node)
{
	int rc = p3_fork_watch(node);
	if (!rc)
		rc = p3_users_enter(node);
	if (rc)
		return rc;
	p3_release(&p3_ready(node)->up, 1); /* INIT.1 */
	return 0;
}

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
		rc = init(node);
	pthread_mutex_unlock(&node->call);
	if (rc && rc != -EINVAL && !p3_pages_say_limit(rc)) /* -EINVAL has its line */
		p3_error("PtlInit: %s; see ulimit -n, -u and -v", strerror(-rc));
	p3_caller_restore(caller);
	if (rc)
		return PTL_FAIL;
	*max_interfaces = P3_JOB_NIS;
	return PTL_OK;
}

/* Wake the threads in the barrier: if the life thread ends, no RELEASED will arrive. */
static void wake_barrier(struct p3_node *node)
{
	pthread_mutex_lock(&node->life);
	node->fini_calls++;
	pthread_cond_broadcast(&node->changed);
	pthread_mutex_unlock(&node->life);
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
		wake_barrier(node);
		p3_users_leave(node);
		p3_blocks_free(node);
	}
	pthread_mutex_unlock(&node->call);
	p3_caller_restore(caller);
}

/* Take the lock node->call, at the latest P3_AWAIT_S after start: PtlNIFini in another
 * thread holds the lock that long for absent targets.  Return false if a thread still
 * holds it then. */
static bool take_call(struct p3_node *node, uint64_t start)
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
static bool is_joined(struct p3_node *node)
{
	return p3_is_up(node) || p3_node_has_cci(node) ||
	       (node->modex && !p3_fork_is_child(node));
}

/*
 * Wait for sent messages in a process that leaves by exit() or the end of main without
 * PtlNIFini or cci_finalize, or while another thread is inside one of them; _exit, exec
 * and signals do not come here.  All waits for absent targets together take at most
 * P3_AWAIT_S.  Then take leave of the launcher.
 */
static __attribute__((destructor)) void await_sends_at_exit(void)
{
	struct p3_node *node = &p3_process;
	uint64_t start = p3_now_ns();
	if (!is_joined(node) || p3_is_busy())
		return;
	struct p3_caller caller = p3_caller_save();
	if (take_call(node, start)) {
		if (p3_nic(node))
			p3_ni_await_sends(p3_nic(node), start);
		p3_modex_exit(node);
		pthread_mutex_unlock(&node->call);
	}
	p3_caller_restore(caller);
}

/* Take leave of the launcher in a process that leaves by quick_exit(), as by gasnet_exit.
 * Its sent messages are not waited for, as after _exit(). */
static void leave_at_quick_exit(void)
{
	struct p3_node *node = &p3_process;
	if (!is_joined(node) || p3_is_busy())
		return;
	struct p3_caller caller = p3_caller_save();
	if (take_call(node, p3_now_ns())) {
		p3_modex_exit(node);
		pthread_mutex_unlock(&node->call);
	}
	p3_caller_restore(caller);
}

static __attribute__((constructor)) void set_quick_exit(void)
{
	p3_users_at_quick_exit = leave_at_quick_exit;
}
