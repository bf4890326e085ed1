/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PtlInit and PtlFini; the job and its life thread.
 *
 * The life thread receives yod's packets: births, deaths, barriers.  yod's end of file
 * is the end of this process, too (the one case in which the library ends it: only
 * under yod, and only when yod itself has been killed).
 *
 * Memory ordering:
 *	INIT.1	up, nic: released when all they lead to is ready -> acquired by calls
 */
#include "lib/job/launched.h"
#include "lib/lib.h"
#include "shm/fault.h"
#include "shm/fd.h"
#include "shm/log.h"
#include "shm/park.h"
#include "shm/seg.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#if !defined(P3_VALGRIND) && __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#define IS_WATCHED_UNTOLD RUNNING_ON_VALGRIND
#else
#define IS_WATCHED_UNTOLD 0
#endif

#define P3_WELCOME_MS 30000
/* first wait, in ms, before AGAIN is sent for nodes that could not be mapped; it
 * doubles */
#define P3_AGAIN_MS   10
#define P3_AGAIN_MOST 1000
#define P3_HEAR_MOST  64 /* packets of yod taken in a row, before other work */
#define P3_LATE_MS    20 /* between looks at the last messages of nodes that have ended */

__thread struct p3_thread p3_thread __attribute__((tls_model("initial-exec")));
struct p3_node p3_process = {.call = PTHREAD_MUTEX_INITIALIZER,
	.life = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
	.sock = -1,
	.wake_fd = -1};

#define P3_LOOK_MS 1000 /* longest time until foreign descriptors are noticed */

/* ---- descriptors ---- */

/* Return true if the lifeline is still open.  The program may have closed it, and its
 * number may be a file of the program's. */
static bool has_lifeline(const struct p3_node *node)
{
	return p3_fd_is(node->sock, node->sock_file);
}

/* Return true if wake_fd still names the eventfd that wakes the life thread. */
static bool has_wake(const struct p3_node *node)
{
	return p3_fd_is(node->wake_fd, node->wake_file);
}

int p3_job_say(
	struct p3_node *node, const struct p3_job_msg *m, const int *fds, unsigned nfds)
{
	return has_lifeline(node) ? p3_job_send(node->sock, m, fds, nfds) : -EPIPE;
}

/* Wake the life thread.  If the program has closed the eventfd, the thread notices that
 * within P3_LOOK_MS. */
void p3_job_wake(struct p3_node *node)
{
	if (has_lifeline(node) && has_wake(node))
		p3_fd_signal(node->wake_fd);
}

static void close_own(int fd, p3_fd_id file)
{
	if (p3_fd_is(fd, file))
		close(fd);
}

/* ---- yod's packets ---- */

static void set_member(struct p3_node *node, const struct p3_job_msg *m)
{
	p3_directory_set(&node->directory, m->node, m->nid, m->pid);
}

/* Note the ids of a PIDS or of a BORN: while a BORN waits in its queue, yod puts new ids
 * into it. */
static void hear_ids(struct p3_node *node, const struct p3_job_msg *m)
{
	set_member(node, m);
	if (m->node == node->rank)
		memcpy(node->told_pid, m->pid, sizeof node->told_pid);
}

static struct p3_peer_info peer_info(const struct p3_job_msg *m, const int *fds)
{
	struct p3_peer_info info = {.node = m->node,
		.nid = m->nid,
		.uid = m->uid,
		.jid = m->jid,
		.os_pid = m->os_pid,
		.end = m->op == P3_JOB_DIED ? P3_PEER_DIED : P3_PEER_LEFT,
		.incarnation = m->incarnation,
		.seg_len = m->seg_len,
		.heap_len = fds[2] < 0 ? 0 : m->heap_len,
		.published = fds[0],
		.doorbell = fds[1],
		.heap = fds[2]};
	memcpy(info.pid, m->pid, sizeof info.pid);
	return info;
}

static void say_dropped(struct p3_node *node, uint32_t who, uint64_t incarnation)
{
	struct p3_job_msg dropped = {.magic = P3_JOB_MAGIC,
		.op = P3_JOB_DROPPED,
		.node = who,
		.incarnation = incarnation};
	(void)p3_job_say(node, &dropped, NULL, 0);
}

static void set_late(struct p3_node *node, uint32_t who, struct p3_late_end end)
{
	node->nlate += end.op && !node->late[who].op;
	node->nlate -= !end.op && node->late[who].op;
	node->late[who] = end;
}

static void on_end(struct p3_node *node, struct p3_nic *nic, const struct p3_job_msg *m,
	struct p3_peer_info *info)
{
	if (nic && !p3_nic_peer_down(nic, info)) {
		set_late(node, m->node, (struct p3_late_end){m->op, m->incarnation});
		return;
	}
	FAULT_POINT("peer.undropped");
	if (m->op == P3_JOB_DIED)
		say_dropped(node, m->node, m->incarnation);
}

/* Drop a node that has ended if all its messages are taken; if now is true, drop it and
 * the messages that are left. */
static void end_late(struct p3_node *node, struct p3_nic *nic, uint32_t who, bool now)
{
	struct p3_late_end end = node->late[who];
	struct p3_peer_info info = {.node = who,
		.incarnation = end.incarnation,
		.end = end.op == P3_JOB_DIED ? P3_PEER_DIED : P3_PEER_LEFT,
		.now = now};
	if (!end.op || (nic && !p3_nic_peer_down(nic, &info)))
		return;
	set_late(node, who, (struct p3_late_end){0});
	if (end.op == P3_JOB_DIED)
		say_dropped(node, who, end.incarnation);
}

static void end_all_late(struct p3_node *node)
{
	for (uint32_t i = 0; node->nlate && i < node->size; i++)
		end_late(node, p3_nic(node), i, false);
}

/* ---- nodes without room ---- */

/* Note the incarnation of a node that could not be mapped, or 0: it is mapped or gone. */
static void set_missing(struct p3_node *node, uint32_t who, uint64_t incarnation)
{
	node->nmissing += incarnation && !node->missing[who];
	node->nmissing -= !incarnation && node->missing[who];
	node->missing[who] = incarnation;
}

static void want_nobody(struct p3_node *node)
{
	for (uint32_t i = 0; i < node->size; i++)
		node->apart[i] = 0;
	for (uint32_t i = 0; i < P3_MAX_NODES / 64; i++)
		p3_set(&node->wanted[i], 0);
}

static void miss_nobody(struct p3_node *node)
{
	for (uint32_t i = 0; i < node->size; i++) {
		set_missing(node, i, 0);
		set_late(node, i, (struct p3_late_end){0});
	}
	want_nobody(node);
}

/* Note a node that could not be mapped.  If the error may pass, messages to the node wait
 * here, and its own wait in its lanes; else the node counts as dead. */
static void miss(
	struct p3_node *node, struct p3_nic *nic, struct p3_peer_info *info, int why)
{
	bool first = !node->nmissing;
	p3_nic_peer_expect(nic, info);
	if (!p3_job_passes(why)) {
		p3_error("node %u (nid %u, process %u) cannot be attached: %s; "
			 "operations with it fail",
			info->node, info->nid, info->os_pid, strerror(-why));
		info->end = P3_PEER_DIED;
		p3_nic_peer_down(nic, info);
		return;
	}
	set_missing(node, info->node, info->incarnation);
	if (first)
		p3_warn("node %u cannot be attached: %s; messages to and from it wait "
			"until it can (open files: ulimit -n; memory; mappings: "
			"vm.max_map_count)",
			info->node, strerror(-why));
}

static int ask_for(struct p3_node *node, uint32_t who, uint64_t incarnation)
{
	struct p3_job_msg m = {.magic = P3_JOB_MAGIC,
		.op = P3_JOB_AGAIN,
		.node = who,
		.incarnation = incarnation};
	return p3_job_say(node, &m, NULL, 0);
}

/* Ask yod for the missing nodes once more, since there may be room now. */
static void ask_again(struct p3_node *node)
{
	for (uint32_t i = 0; i < node->size; i++)
		if (node->missing[i])
			(void)ask_for(node, i, node->missing[i]);
}

/* ---- nodes that neither have sent to this one nor were sent to ---- */

void p3_job_meet(void *arg, uint32_t who)
{
	struct p3_node *node = arg;
	p3_or64(&node->wanted[who / 64], UINT64_C(1) << who % 64); /* ASK.1 */
	p3_job_wake(node);
}

static bool wants_any(struct p3_node *node)
{
	uint64_t any = 0;
	for (uint32_t i = 0; i < P3_MAX_NODES / 64; i++)
		any |= p3_get(&node->wanted[i]);
	return any;
}

/* Ask yod to introduce a node, unless the node has left meanwhile.  The caller holds the
 * lock node->life. */
static void meet_one(struct p3_node *node, uint32_t who)
{
	if (who >= node->size || !node->apart[who])
		return;
	FAULT_POINT("apart.unsaid");
	if (p3_job_passes(ask_for(node, who, node->apart[who])))
		p3_or64(&node->wanted[who / 64], UINT64_C(1) << who % 64);
}

static void meet_wanted(struct p3_node *node)
{
	for (uint32_t i = 0; i < P3_MAX_NODES / 64; i++) {
		if (!p3_get(&node->wanted[i]))
			continue;
		uint64_t bits = p3_exchange64(&node->wanted[i], 0); /* ASK.1 */
		for (; bits; bits &= bits - 1)
			meet_one(node, i * 64 + (uint32_t)__builtin_ctzll(bits));
	}
}

/* Note a node whose descriptors yod keeps until one of the two asks for the other. */
static void set_apart(struct p3_node *node, struct p3_nic *nic, struct p3_peer_info *info)
{
	node->apart[info->node] = info->incarnation;
	info->apart = true;
	p3_nic_peer_expect(nic, info);
}

/* Process a birth.  rc is the result of receiving the packet; after -EMFILE its
 * descriptors are lost. */
static void on_birth(struct p3_node *node, struct p3_nic *nic, const struct p3_job_msg *m,
	struct p3_peer_info *info, int rc)
{
	hear_ids(node, m);
	if (!nic)
		return;
	if (node->late[m->node].incarnation != m->incarnation)
		end_late(node, nic, m->node, true);
	if (!rc && info->published < 0) {
		set_apart(node, nic, info);
		return;
	}
	node->apart[m->node] = 0;
	rc = info->published < 0 ? -EMFILE : p3_nic_peer_up(nic, info);
	if (rc == -EEXIST) /* asked for twice: the ids may be new */
		p3_nic_peer_pids(nic, info);
	if (!rc || rc == -EEXIST)
		set_missing(node, m->node, 0);
	else
		miss(node, nic, info, rc);
}

/*
 * Return true for news between this node's LEAVE and yod's LEFT for it: they are for
 * the incarnation that is over, and the next one will be told everything anew.
 */
static bool is_stale(struct p3_node *node, const struct p3_job_msg *m)
{
	if (!node->leaving || m->op == P3_JOB_RELEASED)
		return false;
	if (m->op == P3_JOB_LEFT && m->node == node->rank)
		node->leaving = false;
	return true;
}

/* Return true if this node is in a domain and hears such news from its peers.  yod has
 * the news, too, but only for tools that look from outside. */
static bool is_told_elsewhere(const struct p3_node *node, const struct p3_job_msg *m)
{
	return node->domain[0] && m->op != P3_JOB_JOINED && m->op != P3_JOB_RELEASED &&
	       m->op != P3_JOB_OVER;
}

/* Process a packet.  The caller holds the lock node->life. */
static void on_message(
	struct p3_node *node, const struct p3_job_msg *m, const int *fds, int rc)
{
	struct p3_nic *nic = p3_nic(node);
	struct p3_peer_info info = peer_info(m, fds);
	if (m->node >= node->size && m->op != P3_JOB_RELEASED && m->op != P3_JOB_JOINED)
		return;
	if (is_stale(node, m)) {
		if (m->op == P3_JOB_DIED)
			on_end(node, NULL, m, &info);
		return;
	}
	if (is_told_elsewhere(node, m)) {
		if (m->op == P3_JOB_DIED)
			on_end(node, NULL, m, &info);
		return;
	}
	switch (m->op) {
	case P3_JOB_BORN:
		on_birth(node, nic, m, &info, rc);
		break;
	case P3_JOB_JOINED:
		node->joined = true;
		break;
	case P3_JOB_PIDS:
		hear_ids(node, m);
		if (nic)
			p3_nic_peer_pids(nic, &info);
		break;
	case P3_JOB_TOLD:
		if (nic && m->incarnation == node->incarnation)
			p3_nic_peer_told(nic, m->round);
		break;
	case P3_JOB_OVER:
		info.nid = node->nid - node->rank + m->node;
		if (nic)
			p3_nic_peer_over(nic, &info);
		break;
	case P3_JOB_LEFT:
	case P3_JOB_DIED:
		if (node->missing[m->node] == m->incarnation)
			set_missing(node, m->node, 0);
		if (node->apart[m->node] == m->incarnation)
			node->apart[m->node] = 0;
		on_end(node, nic, m, &info);
		break;
	case P3_JOB_RELEASED:
		node->barriers_done++;
		node->barrier_status = m->status;
		node->barrier_ended = m->ended;
		break;
	default:
		break;
	}
	/* Threads wait for these two, and for packets about this node. */
	if (m->op == P3_JOB_JOINED || m->op == P3_JOB_RELEASED || m->node == node->rank)
		pthread_cond_broadcast(&node->changed);
}

/* End: yod is gone, and no process is left to clean up after this one. */
static void on_orphaned(struct p3_node *node)
{
	if (!node->harness)
		(void)kill(getpid(), SIGKILL);
	pthread_mutex_lock(&node->life);
	node->barriers_done++;
	node->barrier_status = EPIPE;
	node->barrier_ended = P3_JOB_NO_RANK;
	node->joined = node->orphaned = true;
	pthread_cond_broadcast(&node->changed);
	pthread_mutex_unlock(&node->life);
}

/* Drop all peers.  No more news of births and deaths will come, so present and later
 * operations with peers fail.  The caller holds the lock node->life. */
static void lose_all(struct p3_node *node, struct p3_nic *nic)
{
	for (uint32_t i = 0; i < node->capacity; i++) {
		struct p3_peer_info info = {
			.node = i, .end = P3_PEER_DIED, .now = true, .any = true};
		if (i != node->index)
			(void)p3_nic_peer_down(nic, &info);
	}
	p3_nic_peer_told(nic, p3_get(&node->question));
	miss_nobody(node);
}

/*
 * The program has closed the lifeline: for yod this node has ended, and yod no longer
 * listens.  End the node in order: no file that has a number of the library now is read
 * or written.
 */
static void on_disowned(struct p3_node *node)
{
	if (!node->disowned)
		p3_error("the program has closed descriptor %d of the library, so this "
			 "process leaves the job, and its operations with others fail; "
			 "close only descriptors that the program has opened, and no "
			 "range "
			 "of all numbers",
			has_lifeline(node) ? node->wake_fd : node->sock);
	if (has_lifeline(node)) /* only the eventfd is lost: yod must see the end */
		(void)shutdown(node->sock, SHUT_RDWR);
	pthread_mutex_lock(&node->life);
	node->disowned = true;
	if (!node->orphaned)
		node->barriers_done++;
	node->barrier_status = EPIPE;
	node->barrier_ended = P3_JOB_NO_RANK;
	node->joined = node->orphaned = true;
	if (p3_nic(node) && !node->domain[0])
		lose_all(node, p3_nic(node));
	pthread_cond_broadcast(&node->changed);
	pthread_mutex_unlock(&node->life);
}

/* Take one message, if there is one.  Return 0, -EAGAIN if there is none, or -EPIPE if
 * yod is gone. */
static int hear(struct p3_node *node)
{
	struct p3_job_msg m;
	int fds[P3_JOB_FDS] = {-1, -1, -1, -1};
	unsigned nfds = 0;
	int rc = p3_job_recv_now(node->sock, &m, fds, &nfds);
	if (rc == -EPIPE || rc == -ECONNRESET)
		return -EPIPE;
	if (rc && rc != -EMFILE)
		return rc == -EAGAIN ? rc : 0;
	pthread_mutex_lock(&node->life);
	on_message(node, &m, fds, rc);
	pthread_mutex_unlock(&node->life);
	for (unsigned i = 0; i < nfds; i++)
		close(fds[i]);
	return 0;
}

/*
 * Take all messages of yod, P3_HEAR_MOST at a time, because the thread has other work,
 * too.  In a large job many messages come at once.  Return false if yod is gone.
 */
static bool hear_some(struct p3_node *node)
{
	int rc = 0;
	for (int i = 0; i < P3_HEAR_MOST && !rc && has_lifeline(node); i++)
		rc = hear(node);
	return rc != -EPIPE;
}

/* ---- questions ---- */

void p3_job_ask(void *arg, uint32_t question)
{
	struct p3_node *node = arg;
	p3_set(&node->question, question); /* ASK.1 */
	p3_job_wake(node);
}

/* Return true if the NIC has a question that yod has not got.  The caller holds the lock
 * node->life, so the NIC cannot stop meanwhile. */
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
	if (!p3_job_passes(p3_job_say(node, &m, NULL, 0)))
		node->asked = m.round;
}

/* ---- requests that are held ---- */

/* Watch for ranks that end without having joined; yod tells nodes that ask. */
static void watch_ends(struct p3_node *node)
{
	struct p3_job_msg m = {.magic = P3_JOB_MAGIC,
		.op = P3_JOB_WATCH,
		.incarnation = node->incarnation};
	if (!node->held.at || node->held.watches)
		return;
	int rc = p3_job_say(node, &m, NULL, 0);
	node->held.watches = !p3_job_passes(rc);
}

/* Care for held requests.  The caller holds the lock node->life. */
static void see_to_held(struct p3_node *node)
{
	if (!p3_nic(node))
		return;
	p3_held_see_to(node, p3_nic(node));
	watch_ends(node);
}

/* ---- the thread ---- */

/* When to repeat AGAIN and other requests that failed; packets that arrive earlier do
 * not change that time. */
struct again {
	uint64_t at; /* 0: there is nothing to repeat */
	uint32_t ms; /* between the last time and this one */
};

static void wait_again(struct again *a, uint32_t ms)
{
	a->ms = ms < P3_AGAIN_MOST ? ms : P3_AGAIN_MOST;
	a->at = p3_now_ns() + a->ms * UINT64_C(1000000);
}

/* Return the time-out for poll(). */
static int patience(struct p3_node *node, struct again *a)
{
	pthread_mutex_lock(&node->life);
	bool any = node->nmissing || node->nlate || has_question(node) ||
		   wants_any(node) || (node->held.at && !node->held.watches);
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
	ask_again(node);
	meet_wanted(node);
	pass_question_on(node);
	watch_ends(node);
	end_all_late(node);
	bool late = node->nlate;
	pthread_mutex_unlock(&node->life);
	wait_again(a, late ? P3_LATE_MS : 2 * a->ms);
}

static void see_to_held_if_due(struct p3_node *node)
{
	pthread_mutex_lock(&node->life);
	if (p3_held_is_due(node))
		see_to_held(node);
	pthread_mutex_unlock(&node->life);
}

/* Process a wake-up.  Return false if the thread shall end. */
static bool woken(struct p3_node *node)
{
	uint64_t n;
	while (read(node->wake_fd, &n, sizeof n) < 0 && errno == EINTR)
		;
	if (p3_get(&node->ending))
		return false;
	pthread_mutex_lock(&node->life);
	meet_wanted(node);
	pass_question_on(node);
	see_to_held(node);
	pthread_mutex_unlock(&node->life);
	return true;
}

/* Wait without yod until the node ends.  Repeat on_disowned: it answers the NIC's later
 * questions, for which no TOLD comes. */
static void *stay_disowned(struct p3_node *node)
{
	for (; !p3_get(&node->ending); (void)poll(NULL, 0, P3_LOOK_MS / 10))
		on_disowned(node);
	return NULL;
}

static void *life_main(void *arg)
{
	struct p3_node *node = arg;
	struct pollfd on[2] = {{.fd = node->sock, .events = POLLIN},
		{.fd = node->wake_fd, .events = POLLIN}};
	struct again again = {0};
	for (;;) {
		int n = poll(on, 2, patience(node, &again));
		if (!has_lifeline(node) || ((on[1].revents || !n) && !has_wake(node)))
			return stay_disowned(node);
		if (n < 0)
			continue;
		if (on[1].revents && !woken(node))
			return NULL;
		ask_if_due(node, &again);
		see_to_held_if_due(node);
		if (on[0].revents && !hear_some(node)) {
			on_orphaned(node);
			return NULL;
		}
	}
}

/* ---- joining and leaving ---- */

static struct p3_job_msg message(struct p3_node *node, enum p3_job_op op)
{
	struct p3_job_msg m = {.magic = P3_JOB_MAGIC,
		.op = op,
		.node = node->rank,
		.incarnation = node->incarnation,
		.layout = P3_LAYOUT_WORD};
	for (int i = 0; i < P3_JOB_NIS; i++)
		m.pid[i] = p3_get(&node->ni[i].open) ? p3_get(&node->ni[i].pid)
						     : P3_JOB_NO_PID;
	return m;
}

/* Enter this node's ids in the directory before yod reports them, so that its entry is
 * right when PtlNIInit returns. */
static void know_self(struct p3_node *node, struct p3_job_msg m)
{
	m.nid = node->nid;
	set_member(node, &m);
}

/* Join a job of one: the node is its own only peer. */
static int join_alone(struct p3_node *node, struct p3_nic *nic)
{
	struct p3_job_msg m = message(node, P3_JOB_BORN);
	int fds[P3_JOB_FDS];
	(void)p3_nic_fds(nic, fds);
	m.nid = node->nid;
	m.uid = node->uid;
	m.jid = node->jid;
	m.os_pid = (uint32_t)getpid();
	m.seg_len = p3_nic_seg_len(nic);
	set_member(node, &m);
	struct p3_peer_info info = peer_info(&m, fds);
	int rc = p3_nic_peer_up(nic, &info);
	if (rc)
		p3_error("the network interface cannot map its own memory: %s",
			strerror(-rc));
	return rc;
}

int p3_job_enter(struct p3_node *node)
{
	node->index = node->rank;
	node->capacity = node->size;
	if (!node->domain[0])
		return 0;
	struct p3_conf conf;
	int rc = p3_conf_read(&conf);
	node->capacity = node->launched ? node->size : conf.domain_nodes;
	return rc ? rc : p3_meet_enter(node);
}

void p3_job_exit(struct p3_node *node)
{
	p3_meet_exit(node);
}

int p3_job_join(struct p3_node *node, struct p3_nic *nic)
{
	int met = node->meeting ? p3_meet_join(node, nic) : 0;
	if (met || (node->meeting && node->sock < 0))
		return met;
	if (node->sock < 0)
		return join_alone(node, nic);
	struct p3_job_msg m = message(node, P3_JOB_JOIN);
	int fds[P3_JOB_FDS];
	unsigned nfds = p3_nic_fds(nic, fds);
	m.seg_len = p3_nic_seg_len(nic);
	m.heap_len = p3_nic_heap_len(nic);
	node->joined = false;
	know_self(node, m);
	FAULT_POINT("init.unjoined");
	int rc = p3_job_say(node, &m, fds, nfds);
	FAULT_POINT("init.handed_over");
	if (rc)
		p3_error("the network interface cannot join the job: %s", strerror(-rc));
	while (!rc && !node->joined)
		pthread_cond_wait(&node->changed, &node->life);
	return rc;
}

static bool has_heard(const struct p3_node *node, const struct p3_job_msg *m)
{
	for (int i = 0; i < P3_JOB_NIS; i++)
		if (m->pid[i] != P3_JOB_NO_PID && m->pid[i] != node->told_pid[i])
			return false;
	return true;
}

/* Tell yod the new pids, and wait until its packets to this node have them: packets to
 * other nodes then have them, too.  In a domain peers tell each other, without a wait. */
static void tell_pids(struct p3_node *node, const struct p3_job_msg *m)
{
	memset(node->told_pid, 0xff, sizeof node->told_pid);
	FAULT_POINT("pids.unsaid");
	int rc = p3_job_say(node, m, NULL, 0);
	FAULT_POINT("pids.said");
	while (!rc && !node->domain[0] && !node->orphaned && !has_heard(node, m))
		pthread_cond_wait(&node->changed, &node->life);
}

void p3_job_pids(struct p3_node *node)
{
	struct p3_job_msg m = message(node, P3_JOB_PIDS);
	know_self(node, m);
	if (node->meeting)
		p3_meet_pids(node);
	if (node->sock >= 0)
		tell_pids(node, &m);
	if (node->sock >= 0 || node->meeting)
		return;
	m.nid = node->nid;
	int none[3] = {-1, -1, -1};
	struct p3_peer_info info = peer_info(&m, none);
	p3_nic_peer_pids(p3_nic(node), &info);
}

void p3_job_leave(struct p3_node *node)
{
	struct p3_job_msg m = message(node, P3_JOB_LEAVE);
	if (node->meeting)
		p3_meet_part(node);
	if (node->sock >= 0 && node->joined && p3_job_say(node, &m, NULL, 0) == 0)
		node->leaving = true;
	FAULT_POINT("fini.left");
	node->joined = false;
	if (node->sock >= 0)
		miss_nobody(node);
}

/*
 * Return the CPUs for the NIC thread: the user's setting, or yod's plan, which is
 * passed in the same way; else yod's CPUs, even if this thread was pinned.
 */
bool p3_job_cpus(struct p3_node *node, struct p3_cpuset *set_out)
{
	struct ucred yod;
	socklen_t len = sizeof yod;
	if (p3_conf_nic_cpus(p3_conf_text(P3_CONF_NIC_CPUS), set_out))
		return true;
	if (node->sock < 0 || node->harness ||
		getsockopt(node->sock, SOL_SOCKET, SO_PEERCRED, &yod, &len) != 0)
		return false;
	return p3_cpuset_read(yod.pid, set_out) == 0;
}

/* ---- the job ---- */

/* Return the inherited socket, or -1: the number may be a left-over that names another
 * file. */
static int inherited_socket(void)
{
	const char *text = getenv(P3_JOB_ENV);
	int type;
	socklen_t len = sizeof type;
	if (!text)
		return -1;
	int fd = atoi(text);
	if (fd <= 2 || getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) != 0 ||
		type != SOCK_SEQPACKET)
		return -1;
	return fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 ? fd : -1;
}

/* Receive a packet within P3_WELCOME_MS.  Its first descriptor, or -1, is in *fd_out and
 * becomes the caller's. */
static int receive_next(int sock, struct p3_job_msg *m, int *fd_out)
{
	int fds[P3_JOB_FDS] = {-1};
	unsigned nfds;
	struct pollfd on = {.fd = sock, .events = POLLIN};
	int rc;
	do
		rc = poll(&on, 1, P3_WELCOME_MS);
	while (rc < 0 && errno == EINTR);
	if (rc <= 0)
		return rc < 0 ? -errno : -ETIMEDOUT;
	rc = p3_job_recv(sock, m, fds, &nfds);
	for (unsigned i = 1; !rc && i < nfds; i++)
		close(fds[i]);
	*fd_out = !rc && nfds ? fds[0] : -1;
	return rc;
}

/* Receive the WELCOME, skipping news that an earlier program left unread. */
static int receive_welcome(int sock, struct p3_job_msg *m, int *fd_out)
{
	int rc = receive_next(sock, m, fd_out);
	while (!rc && m->op != P3_JOB_WELCOME && m->op != P3_JOB_REFUSED) {
		if (*fd_out >= 0)
			close(*fd_out);
		rc = receive_next(sock, m, fd_out);
	}
	return rc;
}

/* Map the job's sleepers for as long as the node is there.  fd stays the caller's. */
static int map_sleepers(struct p3_node *node, uint32_t size, int fd)
{
	uint64_t len = p3_sleepers_len(size);
	void *base;
	int rc = p3_seg_map(fd, len, true, &base);
	if (rc)
		return rc;
	rc = p3_seg_reach(base, len);
	if (rc)
		p3_seg_unmap(base, len);
	else
		node->sleepers = base;
	return rc;
}

/*
 * Let yod's descendants, which the other nodes are, read this process' memory: Yama's
 * scope 1 allows that only to ancestors.
 */
static void let_nodes_read(int sock)
{
	char scope = 0;
	struct ucred yod;
	socklen_t len = sizeof yod;
	int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	ssize_t n = read(fd, &scope, 1);
	close(fd);
	if (n == 1 && scope == '1' &&
		!getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &yod, &len))
		(void)prctl(PR_SET_PTRACER, (unsigned long)yod.pid, 0, 0, 0);
}

static void warn_if_watched(const struct p3_node *node)
{
	if (node->rank || !IS_WATCHED_UNTOLD)
		return;
	p3_warn("under valgrind with a libportals that does not talk to it: helgrind and "
		"drd take its atomics for races; link with the shared library, without "
		"an RPATH, and start it by yod (see docs/testing.md)");
}

/* Set the domain from the environment; the table of settings reports a wrong value. */
static void set_domain(struct p3_node *node, bool any)
{
	const char *name = p3_conf_text(P3_CONF_DOMAIN);
	if (!name)
		name = p3_conf_row(P3_CONF_DOMAIN)->usual;
	any = any && strcmp(name, P3_DOMAIN_NONE) != 0;
	snprintf(node->domain, sizeof node->domain, "%s", any ? name : "");
}

static int say_hello(struct p3_node *node)
{
	struct p3_job_msg m = message(node, P3_JOB_HELLO);
	int fd = -1, rc = p3_job_say(node, &m, NULL, 0);
	FAULT_POINT("init.said_hello");
	if (!rc)
		rc = receive_welcome(node->sock, &m, &fd);
	if (!rc && m.op == P3_JOB_REFUSED) {
		p3_error("this library has layout %#llx, the launcher's %#llx; link and "
			 "launch with the same libportals",
			(unsigned long long)P3_LAYOUT_WORD, (unsigned long long)m.layout);
		rc = -EPROTO;
	}
	if (!rc && (m.op != P3_JOB_WELCOME || !m.size || m.size > P3_MAX_NODES ||
			   m.node >= m.size))
		rc = -EPROTO;
	if (!rc && fd >= 0)
		rc = map_sleepers(node, m.size, fd);
	if (fd >= 0)
		close(fd);
	if (rc)
		return rc;
	node->rank = m.node;
	node->size = m.size;
	node->nid = m.nid;
	node->jid = m.jid;
	node->uid = m.uid;
	node->cpus = m.cpus;
	set_domain(node, m.status == P3_JOB_IN_DOMAIN);
	node->welcomed = true;
	let_nodes_read(node->sock);
	FAULT_POINT("init.welcomed");
	return 0;
}

/* Take rank and job from another launcher that has started this process, except in a
 * forked child (welcomed) and in a node of a test process. */
static int be_launched(struct p3_node *node)
{
	struct p3_launched by;
	int rc = node->harness || node->welcomed ? 0 : p3_launched_read(&by);
	node->launched = rc > 0;
	if (rc <= 0)
		return rc;
	node->rank = by.rank;
	node->size = by.size;
	node->jid = by.jid;
	memcpy(node->domain, by.domain, sizeof by.domain);
	return 0;
}

static int be_without_yod(struct p3_node *node)
{
	node->rank = 0;
	node->size = 1;
	if (!p3_conf_nid(p3_conf_text(P3_CONF_NID), &node->nid))
		node->nid = P3_DOMAIN_NID;
	set_domain(node, !node->harness);
	node->jid = (uint32_t)getpid();
	node->uid = (uint32_t)geteuid();
	node->cpus = p3_usable_cpus();
	return be_launched(node);
}

/* Make the directory, with planned nids and default pids, before the ranks join. */
static int make_directory(struct p3_node *node)
{
	struct p3_directory *d = p3_directory_new(node->size);
	node->missing = calloc(node->size, sizeof *node->missing);
	node->late = calloc(node->size, sizeof *node->late);
	node->apart = calloc(node->size, sizeof *node->apart);
	node->nmissing = node->nlate = 0;
	if (!d || !node->missing || !node->late || !node->apart) {
		free(node->missing);
		free(node->late);
		free(node->apart);
		free(d);
		return -ENOMEM;
	}
	d->ranked = true;
	d->rank = node->rank;
	for (uint32_t i = 0; i < node->size; i++) {
		p3_set(&d->member[i].nid,
			node->launched ? node->nid : node->nid - node->rank + i);
		for (uint32_t k = 0; k < P3_JOB_NIS; k++)
			p3_set(&d->member[i].pid[k],
				P3_JOB_PID_BASE + i + k * P3_JOB_PID_STEP);
	}
	p3_directory_replace(&node->directory, d);
	return 0;
}

static void drop_directory(struct p3_node *node)
{
	p3_directory_replace(&node->directory, NULL);
	free(node->missing);
	free(node->late);
	free(node->apart);
	node->missing = NULL;
	node->late = NULL;
	node->apart = NULL;
}

static int start_life(struct p3_node *node)
{
	sigset_t all, old;
	node->wake_fd = p3_fd_high(eventfd(0, EFD_CLOEXEC));
	if (node->wake_fd < 0)
		return -errno;
	node->wake_file = p3_fd_file(node->wake_fd);
	p3_set(&node->ending, 0);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int rc = pthread_create(&node->thread, NULL, life_main, node);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc)
		close(node->wake_fd);
	return -rc;
}

/* Find yod.  Return 0, also without one, or -EINVAL after a line. */
static int find_yod(struct p3_node *node)
{
	if (node->harness || node->welcomed)
		return 0;
	int rc = p3_launched_is_asked();
	int sock = rc > 0 ? inherited_socket() : -1;
	rc = rc < 0 ? rc : 0;
	if (sock >= 0)
		rc = p3_launched_claim(sock);
	node->sock = rc ? -1 : sock;
	node->sock_file = p3_fd_file(node->sock);
	return rc;
}

int p3_job_begin(struct p3_node *node)
{
	int rc = find_yod(node);
	if (!rc && node->sock < 0)
		rc = be_without_yod(node);
	if (!rc && node->sock >= 0 && !node->welcomed)
		rc = say_hello(node);
	if (!rc)
		rc = make_directory(node);
	if (rc)
		return rc;
	p3_log_who(node->jid, node->nid);
	warn_if_watched(node);
	if (node->sock >= 0)
		rc = start_life(node);
	if (rc)
		drop_directory(node);
	return rc;
}

/* End the job; the socket stays open as the proof of life, and PtlInit may come again. */
void p3_job_end(struct p3_node *node)
{
	if (node->sock >= 0) {
		p3_set(&node->ending, 1);
		p3_job_wake(node);
		pthread_join(node->thread, NULL);
		FAULT_POINT("fini.job_over");
		close_own(node->wake_fd, node->wake_file);
		node->wake_fd = -1;
	}
	drop_directory(node);
}

/* ---- PtlInit, PtlFini ---- */

/*
 * Make two words on a page that the kernel zeroes in forked children.  The second word is
 * 0 in a child after that, 2 while the child forgets its parent, and else 1.
 */
static p3_a32 *make_up_word(void)
{
	p3_a32 *up = mmap(NULL, P3_PAGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (up == MAP_FAILED)
		return NULL;
	(void)madvise(up, P3_PAGE, MADV_WIPEONFORK);
	p3_set(&up[1], 1);
	return up;
}

/* State that a forked child has inherited and can neither use nor free, kept in sight
 * of leak checkers. */
static struct p3_node inherited __attribute__((used));

/* Forget the parent in a forked child: the memory of the parent's node is not there. */
static void forget_parent(struct p3_node *node)
{
	p3_a32 *up = p3_get(&node->up);
	if (node->sock >= 0)
		close_own(node->sock, node->sock_file); /* the parent's proof of life */
	p3_meet_disown(node);
	inherited = *node;
	p3_seg_forget_all();
	p3_directory_forked();
	*node = (struct p3_node){.up = up, .sock = -1, .wake_fd = -1, .welcomed = true};
	pthread_mutex_init(&node->call, NULL);
	pthread_mutex_init(&node->life, NULL);
	pthread_cond_init(&node->changed, NULL);
}

/* Forget the parent in the first of a forked child's threads; the others wait. */
static void settle_fork(struct p3_node *node)
{
	uint32_t forked = 0;
	p3_a32 *up = p3_acquire(&node->up); /* INIT.1 */
	if (up && p3_cas32(&up[1], &forked, 2)) {
		forget_parent(node);
		p3_release(&up[1], 1); /* INIT.1 */
	}
	while (up && p3_acquire(&up[1]) == 2) /* INIT.1 */
		sched_yield();
}

bool p3_is_forked_child(const struct p3_node *node)
{
	p3_a32 *up = p3_acquire(&node->up); /* INIT.1 */
	return up && p3_get(&up[1]) == 0;
}

static int init(struct p3_node *node)
{
	p3_a32 *up = p3_get(&node->up);
	if (!up) {
		up = make_up_word();
		if (!up)
			return -ENOMEM;
		p3_release(&node->up, up); /* INIT.1: others look for up[1] in PtlInit */
	}
	p3_conf_log();
	if (!node->harness)
		p3_conf_set_stdout();
	p3_conf_join_fences(); /* before p3_job_begin starts another thread */
	int rc = p3_job_begin(node);
	if (!rc && node->sock < 0 && !node->rank) /* yod warns for its nodes */
		p3_conf_warn_unknown();
	if (!rc)
		p3_release(up, 1); /* INIT.1 */
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
	settle_fork(node);
	int rc = 0;
	p3_heap_look_for_malloc();
	pthread_mutex_lock(&node->call);
	if (!p3_is_up(node))
		rc = init(node);
	pthread_mutex_unlock(&node->call);
	if (rc && rc != -EINVAL) /* which had a line of its own */
		p3_error("PtlInit: %s", strerror(-rc));
	p3_caller_restore(caller);
	if (rc)
		return PTL_FAIL;
	*max_interfaces = P3_JOB_NIS;
	return PTL_OK;
}

/* Wake the threads in the barrier: the life thread ends, so no RELEASED will be heard. */
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
		p3_release(p3_get(&node->up), 0); /* INIT.1 */
		wake_barrier(node);
		p3_job_end(node);
		p3_blocks_free(node);
	}
	pthread_mutex_unlock(&node->call);
	p3_caller_restore(caller);
}

/* Take the lock node->call within P3_AWAIT_S from start, which is as long as PtlNIFini in
 * another thread holds it for absent targets.  Return false if a thread keeps it. */
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
			p3_see_off(p3_nic(node), start);
		pthread_mutex_unlock(&node->call);
	}
	p3_caller_restore(caller);
}

/* ---- several nodes in one process ---- */

struct p3_node *p3_node_create(int sock)
{
	struct p3_node *node = calloc(1, sizeof *node);
	if (!node)
		return NULL;
	*node = (struct p3_node){.sock = sock,
		.sock_file = p3_fd_file(sock),
		.wake_fd = -1,
		.harness = true};
	pthread_mutex_init(&node->call, NULL);
	pthread_mutex_init(&node->life, NULL);
	pthread_cond_init(&node->changed, NULL);
	p3_node_enter(node);
	return node;
}

void p3_node_enter(struct p3_node *node)
{
	p3_thread.node = node;
}

void p3_node_destroy(struct p3_node *node)
{
	PtlFini();
	p3_heap_leave(node);
	p3_maps_free(node);
	p3_node_enter(NULL);
	if (p3_get(&node->up))
		munmap(p3_get(&node->up), P3_PAGE);
	close_own(node->sock, node->sock_file);
	if (node->sleepers)
		p3_seg_unmap(node->sleepers, p3_sleepers_len(node->size));
	free(node);
}
