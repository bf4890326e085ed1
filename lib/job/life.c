/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life thread of a node under yod, which runs from PtlInit to PtlFini.
 *
 * The thread processes yod's packets: births, ends, barriers.  At yod's end of file it
 * kills this process.  This is the one case in which the library ends a process: yod
 * itself has been killed.
 */
#include "lib/job/yod.h"
#include "shm/fault.h"
#include "shm/fd.h"
#include "shm/log.h"
#include "shm/park.h"
#include "shm/process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* first wait, in ms, before AGAIN is sent for nodes that could not be mapped; it
 * doubles */
#define P3_AGAIN_MS   10
#define P3_AGAIN_MOST 1000
#define P3_LATE_MS    20   /* time between looks at the last messages of ended nodes */
#define P3_LOOK_MS    1000 /* longest time until foreign descriptors are noticed */

/* ---- the end of yod, or of the lifeline ---- */

/* Kill this process: yod is gone, and no other process would clean up.  In a node of a
 * test process, release the waiting threads with an error instead. */
static void on_orphaned(struct p3_node *node)
{
	if (!node->harness)
		(void)kill(getpid(), SIGKILL);
	pthread_mutex_lock(&node->life);
	node->barriers_done++;
	node->barrier_status = EPIPE;
	node->barrier_ended = P3_JOB_NO_RANK;
	node->joined = node->yod_gone = true;
	pthread_cond_broadcast(&node->changed);
	pthread_mutex_unlock(&node->life);
}

/*
 * The program has closed the lifeline: for yod this node has ended, and yod no longer
 * listens.  Let all operations with other nodes fail, and read or write no file that now
 * has one of the library's numbers.
 */
static void on_fds_lost(struct p3_node *node)
{
	if (!node->fds_lost)
		p3_error("the program has closed descriptor %d of the library, so this "
			 "process leaves the job, and its operations with others fail; "
			 "close only descriptors that the program has opened, and no "
			 "range "
			 "of all numbers",
			p3_job_has_lifeline(node) ? node->wake_fd : node->sock);
	if (p3_job_has_lifeline(
		    node)) /* only the eventfd is lost: yod must see the end */
		(void)shutdown(node->sock, SHUT_RDWR);
	pthread_mutex_lock(&node->life);
	node->fds_lost = true;
	if (!node->yod_gone)
		node->barriers_done++;
	node->barrier_status = EPIPE;
	node->barrier_ended = P3_JOB_NO_RANK;
	node->joined = node->yod_gone = true;
	if (p3_nic(node) && !node->domain[0])
		p3_job_lose_peers(node, p3_nic(node));
	pthread_cond_broadcast(&node->changed);
	pthread_mutex_unlock(&node->life);
}

/* ---- questions ---- */

/* Return true if the NIC has a question that yod has not received.  The caller holds the
 * lock node->life, so the NIC cannot stop meanwhile. */
static bool has_question(struct p3_node *node)
{
	return p3_nic(node) && p3_get(&node->question) != node->asked; /* ASK.1 */
}

static void pass_question_on(struct p3_node *node)
{
	struct p3_job_msg m = {.magic = P3_JOB_MAGIC,
		.op = P3_JOB_ASK,
		.incarnation = node->incarnation,
		.round = p3_get(&node->question)}; /* ASK.1 */
	if (!has_question(node))
		return;
	FAULT_POINT("ask.unsaid");
	if (!p3_job_passes(p3_job_send_to_yod(node, &m, NULL, 0)))
		node->asked = m.round;
}

/* ---- requests that are held ---- */

/* Ask yod, once a life, to report ranks that end without having joined. */
static void watch_ends(struct p3_node *node)
{
	struct p3_job_msg m = {.magic = P3_JOB_MAGIC,
		.op = P3_JOB_WATCH,
		.incarnation = node->incarnation};
	if (!node->held.at || node->held.watches)
		return;
	int rc = p3_job_send_to_yod(node, &m, NULL, 0);
	node->held.watches = !p3_job_passes(rc);
}

/* Serve held requests (p3_held_see_to).  The caller holds the lock node->life. */
static void serve_held(struct p3_node *node)
{
	if (!p3_nic(node))
		return;
	p3_held_see_to(node, p3_nic(node));
	watch_ends(node);
}

/* ---- the thread ---- */

/* The time at which to repeat AGAIN and other requests that failed.  Packets that arrive
 * earlier do not change that time. */
struct again {
	uint64_t at; /* 0 if there is nothing to repeat */
	uint32_t ms; /* from the last time to this one */
};

static void wait_again(struct again *a, uint32_t ms)
{
	a->ms = ms < P3_AGAIN_MOST ? ms : P3_AGAIN_MOST;
	a->at = p3_now_ns() + a->ms * UINT64_C(1000000);
}

/* Return the time-out for poll(). */
static int poll_ms(struct p3_node *node, struct again *a)
{
	pthread_mutex_lock(&node->life);
	bool any = node->nmissing || node->nlate || has_question(node) ||
		   p3_job_wants_any(node) || (node->held.at && !node->held.watches);
	int held = p3_held_patience(node, -1);
	pthread_mutex_unlock(&node->life);
	if (any && !a->at)
		wait_again(a, P3_AGAIN_MS);
	if (!any)
		*a = (struct again){0};
	uint64_t now = p3_now_ns();
	int ms = !any ? P3_LOOK_MS : a->at > now ? (int)((a->at - now) / 1000000 + 1) : 0;
	return held < 0 || ms < held ? ms : held;
}

static void ask_if_due(struct p3_node *node, struct again *a)
{
	if (!a->at || p3_now_ns() < a->at)
		return;
	pthread_mutex_lock(&node->life);
	p3_job_ask_again(node);
	p3_job_meet_wanted(node);
	pass_question_on(node);
	watch_ends(node);
	p3_job_end_late(node);
	bool late = node->nlate;
	pthread_mutex_unlock(&node->life);
	wait_again(a, late ? P3_LATE_MS : 2 * a->ms);
}

static void serve_held_if_due(struct p3_node *node)
{
	pthread_mutex_lock(&node->life);
	if (p3_held_is_due(node))
		serve_held(node);
	pthread_mutex_unlock(&node->life);
}

/* Process a wake-up.  Return false if the thread must end. */
static bool on_wake(struct p3_node *node)
{
	uint64_t n;
	while (read(node->wake_fd, &n, sizeof n) < 0 && errno == EINTR)
		;
	if (p3_get(&node->ending))
		return false;
	pthread_mutex_lock(&node->life);
	p3_job_meet_wanted(node);
	pass_question_on(node);
	serve_held(node);
	pthread_mutex_unlock(&node->life);
	return true;
}

/* Wait, without packets of yod, until the node ends.  Repeat on_fds_lost(), which
 * answers the NIC's later questions: yod sends no TOLD for them. */
static void *wait_for_end(struct p3_node *node)
{
	for (; !p3_get(&node->ending); (void)poll(NULL, 0, P3_LOOK_MS / 10))
		on_fds_lost(node);
	return NULL;
}

static void *life_main(void *arg)
{
	struct p3_node *node = arg;
	struct pollfd on[2] = {{.fd = node->sock, .events = POLLIN},
		{.fd = node->wake_fd, .events = POLLIN}};
	struct again again = {0};
	for (;;) {
		int n = poll(on, 2, poll_ms(node, &again));
		if (!p3_job_has_lifeline(node) ||
			((on[1].revents || !n) && !p3_job_has_wake(node)))
			return wait_for_end(node);
		if (n < 0)
			continue;
		if (on[1].revents && !on_wake(node))
			return NULL;
		ask_if_due(node, &again);
		serve_held_if_due(node);
		if (on[0].revents && !p3_job_receive(node)) {
			on_orphaned(node);
			return NULL;
		}
	}
}

int p3_job_start_life(struct p3_node *node)
{
	node->wake_fd = p3_fd_high(eventfd(0, EFD_CLOEXEC));
	if (node->wake_fd < 0)
		return -errno;
	node->wake_file = p3_fd_file(node->wake_fd);
	p3_set(&node->ending, 0);
	int rc = p3_worker_start(&node->thread, life_main, node);
	if (rc)
		close(node->wake_fd);
	return rc;
}

void p3_job_stop_life(struct p3_node *node)
{
	p3_set(&node->ending, 1);
	p3_job_wake(node);
	pthread_join(node->thread, NULL);
	FAULT_POINT("fini.job_over");
	p3_fd_close_own(node->wake_fd, node->wake_file);
	node->wake_fd = -1;
}
