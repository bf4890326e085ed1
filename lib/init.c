/* SPDX-License-Identifier: BSD-3-Clause */
/* PtlInit and PtlFini. */
#include "lib/fork.h"
#include "lib/job/job.h"
#include "lib/ni.h"
#include "lib/node/call.h"
#include "lib/node/conf.h"
#include "lib/node/heap.h"
#include "lib/runtime/runtime.h"
#include "shm/log.h"
#include "shm/park.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static struct p3_ready *make_ready(void)
{
	struct p3_ready *ready = mmap(NULL, P3_PAGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ready == MAP_FAILED)
		return NULL;
	(void)madvise(ready, P3_PAGE, MADV_WIPEONFORK);
	p3_set(&ready->parent, 1);
	return ready;
}

static int init(struct p3_node *node)
{
	struct p3_ready *ready = p3_ready(node);
	if (ready == &p3_not_ready) {
		ready = make_ready();
		if (!ready)
			return -ENOMEM;
		p3_release(&node->ready, ready); /* INIT.1: parent is set */
	}
	p3_conf_log();
	if (!node->harness)
		p3_conf_set_stdout();
	p3_conf_join_fences(); /* before p3_job_begin starts another thread */
	int rc = p3_job_begin(node);
	if (!rc && node->sock < 0 && !node->rank) /* yod warns for its nodes */
		p3_conf_warn_unknown();
	if (!rc)
		p3_release(&ready->up, 1); /* INIT.1 */
	return rc;
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
	if (rc && rc != -EINVAL) /* -EINVAL has printed a line */
		p3_error("PtlInit: %s", strerror(-rc));
	p3_caller_restore(caller);
	if (rc)
		return PTL_FAIL;
	*max_interfaces = P3_JOB_NIS;
	return PTL_OK;
}

/* Wake the threads in the barrier: the life thread ends, so no RELEASED will arrive. */
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
		p3_job_end(node);
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

/*
 * Wait for sent messages in a process that leaves by exit() or the end of main without
 * PtlNIFini, or while another thread is inside it; _exit, exec and signals do not come
 * here, and a forked child is not up.  All waits for absent targets together take at most
 * P3_AWAIT_S.
 */
static __attribute__((destructor)) void see_off_at_exit(void)
{
	struct p3_node *node = &p3_process;
	uint64_t start = p3_now_ns();
	if (!p3_is_up(node) || p3_is_busy())
		return;
	struct p3_caller caller = p3_caller_save();
	if (take_call(node, start)) {
		if (p3_nic(node))
			p3_ni_see_off(p3_nic(node), start);
		pthread_mutex_unlock(&node->call);
	}
	p3_caller_restore(caller);
}
