/* SPDX-License-Identifier: BSD-3-Clause */
/* Entering, joining and leaving a domain. */
#include "lib/domain/meet.h"
#include "lib/domain/meeting.h"
#include "lib/job/launched.h"
#include "shm/fd.h"
#include "shm/log.h"
#include "shm/seg.h"
#include "shm/process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define SPARE 16 /* connections whose other end is still unknown */
/* wait_for_others() waits in slices: however long the process is stopped in the middle of
 * one, no more than this slice counts as waiting */
#define SLICE_NS 50000000
#define COUNTS   20 /* counts of the room for a job before it is refused */

/* ---- entering ---- */

static struct p3_meeting *meeting_new(struct p3_node *node)
{
	struct p3_meeting *m = calloc(1, sizeof *m);
	if (!m)
		return NULL;
	m->node = node;
	p3_domain_none(&m->place);
	m->entered = node->barriers_done;
	p3_set(&m->listen, P3_MEET_NONE);
	p3_set(&m->ep, P3_MEET_NONE);
	p3_set(&m->wake, P3_MEET_NONE);
	pthread_mutex_init(&m->lock, NULL);
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&m->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return m;
}

/* Make the tables, whose sizes are known once the domain's capacity is. */
static int make_tables(struct p3_meeting *m)
{
	uint32_t nmember = m->node->capacity, nconn = 2 * nmember + SPARE;
	uint32_t nrank = m->node->launched ? m->node->size : 0;
	m->conn = calloc(nconn, sizeof *m->conn);
	m->member = calloc(nmember, sizeof *m->member);
	m->rank = calloc(nrank + 1, sizeof *m->rank);
	if (!m->conn || !m->member || !m->rank)
		return -ENOMEM;
	for (uint32_t i = 0; i < nconn; i++)
		p3_set(&m->conn[i].fd, P3_MEET_NONE);
	for (uint32_t i = 0; i < nmember; i++) {
		p3_set(&m->member[i].life, P3_MEET_NONE);
		m->member[i].rank = P3_MEET_NONE;
	}
	for (uint32_t i = 0; i < nrank; i++) {
		p3_set(&m->rank[i].life, P3_MEET_NONE);
		m->rank[i].slot = P3_MEET_NONE;
	}
	m->nconn = nconn;
	m->nmember = nmember;
	m->nrank = nrank;
	return 0;
}

static void meeting_free(struct p3_meeting *m)
{
	pthread_cond_destroy(&m->changed);
	pthread_mutex_destroy(&m->lock);
	free(m->rank);
	free(m->member);
	free(m->conn);
	free(m);
}

static int say_full(const struct p3_meeting *m)
{
	p3_error("the domain %s is full: it has room for %u processes; end some, or set "
		 "PTL3_DOMAIN_NODES to more for all in it",
		m->place.path, m->node->capacity);
	return -ENOSPC;
}

static int take_rank(struct p3_meeting *m)
{
	uint32_t holder, rank = m->node->rank;
	int rc = p3_domain_take_rank(&m->place, m->node->job, rank, &holder);
	if (rc == -EADDRINUSE)
		p3_error("rank %u of the job in the domain %s is process %u "
			 "already; " P3_LAUNCHED_ONE,
			rank, m->place.path, holder);
	FAULT_POINT("meet.rank_taken");
	return rc;
}

/* Return the number of slots that the job can have: the free ones and its own. */
static uint32_t room_of_job(const struct p3_meeting *m)
{
	uint32_t used = p3_domain_count(&m->place, m->node->capacity), own = 0, holder;
	for (uint32_t i = 0; i < m->node->size; i++)
		own += p3_domain_has_rank(&m->place, m->node->job, i, &holder);
	return used > own ? m->node->capacity - (used - own) : m->node->capacity;
}

/* Agree on the capacity of a family's domain, and see if the job fits in. */
static int take_room(struct p3_meeting *m)
{
	struct p3_node *node = m->node;
	uint32_t room = 0;
	int rc = p3_domain_take_room(&m->place, node->capacity, &node->capacity);
	/* Ranks that come or go between the two counts of room_of_job() distort it. */
	for (int i = 0; !rc && i < COUNTS; i++) {
		room = room_of_job(m);
		if (room >= node->size)
			return 0;
		usleep(1000);
	}
	if (rc)
		return rc;
	p3_error("a job of %u ranks needs as many nodes in the domain %s of its family, "
		 "which has room for %u more of %u; end some jobs, or set "
		 "PTL3_DOMAIN_NODES to more (at most %u) for all of them",
		node->size, m->place.path, room, node->capacity, P3_MAX_NODES);
	return -EDQUOT;
}

/* Take a slot.  A rank prefers the slot of its own number, which tools show as the
 * node's. */
static int take_slot(struct p3_meeting *m, int *fd_out)
{
	uint32_t holder, rank = m->node->rank;
	int rc = -EADDRINUSE;
	if (m->node->launched || m->node->wireup)
		rc = p3_domain_take_this_slot(&m->place, rank, fd_out, &holder);
	if (rc == -EADDRINUSE && m->node->wireup) /* other hosts know it by its rank */
		p3_error("process %u has the place of rank %u in the domain %s; "
			 "" P3_LAUNCHED_ONE,
			holder, rank, m->place.path);
	return rc == -EADDRINUSE && !m->node->wireup
		       ? p3_domain_take_slot(&m->place, m->node->capacity, fd_out)
		       : rc;
}

/* Lock the node id, unless yod has started this node: then yod has locked it. */
static int take_nid(struct p3_meeting *m)
{
	uint32_t holder, nid = m->node->nid;
	if (m->node->sock >= 0)
		return 0;
	int rc = p3_domain_take_nid(&m->place, nid, &holder);
	if (rc == -EADDRINUSE)
		p3_error("node id %u belongs to a job that yod (process %u) runs in the "
			 "domain %s; set PTL3_NID to another",
			nid, holder, m->place.path);
	return rc;
}

static int go_in(struct p3_meeting *m)
{
	struct p3_domain_why why;
	int fd, rc = p3_domain_open(&m->place, P3_DOMAIN_BASE, m->node->domain, &why);
	if (rc) {
		p3_error("%s", why.text);
		return rc;
	}
	rc = take_nid(m);
	FAULT_POINT("meet.nid_taken");
	if (!rc && m->node->launched)
		rc = take_rank(m);
	if (!rc && m->node->job)
		rc = take_room(m);
	if (!rc)
		rc = take_slot(m, &fd);
	if (rc == -EUSERS)
		return say_full(m);
	if (rc == -EDQUOT) /* take_room() has reported it */
		return -ENOSPC;
	if (rc && rc != -EADDRINUSE)
		p3_error("the domain %s: %s", m->place.path, strerror(-rc));
	if (!rc)
		p3_set(&m->listen, (uint32_t)fd);
	return rc;
}

int p3_meet_enter(struct p3_node *node)
{
	struct p3_meeting *m = meeting_new(node);
	if (!m)
		return -ENOMEM;
	int rc = go_in(m);
	node->meeting = m;
	node->index = m->place.slot;
	rc = rc ? rc : make_tables(m);
	if (rc)
		p3_meet_exit(node);
	return rc;
}

void p3_meet_exit(struct p3_node *node)
{
	struct p3_meeting *m = node->meeting;
	if (!m)
		return;
	p3_meet_close(&m->listen);
	p3_domain_leave(&m->place);
	node->meeting = NULL;
	meeting_free(m);
}

uint32_t p3_meet_crew(const struct p3_node *node)
{
	uint64_t slots[P3_MAX_NODES / 64];
	uint32_t n = 0;
	(void)p3_domain_list(&node->meeting->place, slots);
	for (uint32_t i = 0; i < P3_MAX_NODES / 64; i++)
		n += (uint32_t)__builtin_popcountll(slots[i]);
	uint32_t here = node->wireup ? node->wireup->here : node->size;
	uint32_t least = here > 2 ? here : 2;
	return n > least ? n : least;
}

static int say_clash(const struct p3_node *node, uint32_t pid, uint32_t holder)
{
	p3_error("process id %u on node %u is process %u's in the domain %s; ask for "
		 "another one, or give this process another rank of PTL_PIDMAP, or set "
		 "PTL3_NID or PTL3_DOMAIN",
		pid, node->nid, holder, node->meeting->place.path);
	return PTL_PID_INVALID;
}

static int say_no_lock(const struct p3_node *node, uint32_t pid, int why)
{
	p3_error("process id %u on node %u cannot be locked in the domain %s: %s; see "
		 "that "
		 "the kernel has locks and memory, or set PTL3_DOMAIN=" P3_DOMAIN_NONE
		 " to stay alone",
		pid, node->nid, node->meeting->place.path, strerror(-why));
	return why == -ENOLCK || p3_job_passes(why) ? PTL_NO_SPACE : PTL_IFACE_INVALID;
}

/* Return true if another interface of this process has the pid: the kernel would grant
 * the process the pid's lock again. */
static bool is_own(const struct p3_node *node, uint32_t pid)
{
	for (int i = 0; i < P3_JOB_NIS; i++)
		if (p3_get(&node->ni[i].open) && p3_get(&node->ni[i].pid) == pid)
			return true;
	return false;
}

static int claim(struct p3_node *node, uint32_t pid, uint32_t *holder_out)
{
	*holder_out = (uint32_t)getpid();
	if (is_own(node, pid))
		return -EADDRINUSE;
	return p3_domain_take_id(&node->meeting->place, node->nid, pid, holder_out);
}

int p3_meet_claim(struct p3_node *node, ptl_pid_t base, ptl_pid_t *pid)
{
	bool any = *pid == PTL_PID_ANY;
	uint32_t holder, want = any ? base : *pid;
	int rc;
	while ((rc = claim(node, want, &holder)) == -EADDRINUSE)
		if (!any || ++want >= P3_DOMAIN_PIDS)
			return say_clash(node, want, holder);
	if (rc)
		return say_no_lock(node, want, rc);
	FAULT_POINT("meet.claimed");
	*pid = want;
	return PTL_OK;
}

/* ---- joining and leaving ---- */

static int open_ends(struct p3_meeting *m)
{
	int fd = p3_fd_high(epoll_create1(EPOLL_CLOEXEC));
	p3_set(&m->ep, (uint32_t)fd);
	if (fd < 0)
		return -errno;
	fd = p3_fd_high(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	p3_set(&m->wake, (uint32_t)fd);
	if (fd < 0)
		return -errno;
	int rc = p3_meet_watch(m, EPOLL_CTL_ADD, fd, P3_MEET_WAKE, 0);
	return rc ? rc
		  : p3_meet_watch(
			    m, EPOLL_CTL_ADD, p3_meet_fd(&m->listen), P3_MEET_LISTEN, 0);
}

/* Attach the node as a peer of itself. */
static int attach_self(struct p3_meeting *m)
{
	int fds[P3_JOB_FDS];
	struct p3_job_msg msg = p3_meet_message(m, P3_JOB_BORN);
	struct p3_peer_info info = p3_meet_info(m, &msg);
	(void)p3_nic_fds(m->nic, fds);
	info.published = fds[0];
	info.doorbell = fds[1];
	p3_directory_set(&m->node->directory, m->node->rank, msg.nid, msg.pid);
	return p3_nic_peer_up(m->nic, &info);
}

/* Wait until this process has met the earlier members, for P3_SETTLE_NS at most.  Time
 * during which this process is stopped does not count: it cannot meet members then. */
static bool wait_for_others(struct p3_meeting *m)
{
	struct timespec until;
	pthread_mutex_lock(&m->lock);
	for (int left = P3_SETTLE_NS / SLICE_NS; !m->met && left;) {
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += SLICE_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		left -= pthread_cond_timedwait(&m->changed, &m->lock, &until) ==
			ETIMEDOUT;
	}
	bool refused = m->refused;
	pthread_mutex_unlock(&m->lock);
	return !refused;
}

/* Close the meeting's descriptors, except those that the program has closed: their
 * numbers may name files of the program now. */
static void close_ends(struct p3_meeting *m)
{
	for (uint32_t i = 0; i < m->nconn; i++)
		p3_meet_drop(m, &m->conn[i].fd, P3_MEET_CONN, i);
	for (uint32_t i = 0; i < m->nmember; i++)
		p3_meet_drop(m, &m->member[i].life, P3_MEET_LIFE, i);
	for (uint32_t i = 0; i < m->nrank; i++)
		p3_meet_drop(m, &m->rank[i].life, P3_MEET_RANK, i);
	bool own = p3_meet_watches(m, &m->wake, P3_MEET_WAKE, 0);
	if (own && m->accept_paused)
		p3_meet_close(&m->listen);
	p3_meet_drop(m, &m->listen, P3_MEET_LISTEN, 0);
	if (own) {
		p3_meet_close(&m->wake);
		p3_meet_close(&m->ep);
	}
	p3_set(&m->wake, P3_MEET_NONE);
	p3_set(&m->ep, P3_MEET_NONE);
}

int p3_meet_join(struct p3_node *node, struct p3_nic *nic)
{
	struct p3_meeting *m = node->meeting;
	m->nic = nic;
	int rc = attach_self(m);
	rc = rc ? rc : open_ends(m);
	FAULT_POINT("meet.unmet");
	rc = rc ? rc : p3_worker_start(&m->thread, p3_meet_thread, m);
	if (rc) {
		if (!p3_pages_say_limit(rc))
			p3_error("the network interface cannot join the domain %s: %s; "
				 "see ulimit -n, and the space and rights of that "
				 "directory",
				m->place.path, strerror(-rc));
		m->nic = NULL;
		p3_meet_close(&m->listen);
		p3_meet_close(&m->wake);
		p3_meet_close(&m->ep);
		return rc;
	}
	return wait_for_others(m) ? 0 : -EPROTO;
}

void p3_meet_pids(struct p3_node *node)
{
	struct p3_meeting *m = node->meeting;
	struct p3_job_msg msg = p3_meet_message(m, P3_JOB_PIDS);
	struct p3_peer_info info = p3_meet_info(m, &msg);
	p3_directory_set(&node->directory, node->rank, msg.nid, msg.pid);
	p3_nic_peer_pids(m->nic, &info);
	pthread_mutex_lock(&m->lock);
	m->new_pids = true;
	FAULT_POINT("meet.new_pids");
	p3_meet_wake(m);
	while (m->new_pids && !m->fds_lost)
		pthread_cond_wait(&m->changed, &m->lock);
	pthread_mutex_unlock(&m->lock);
}

void p3_meet_ask(void *arg, uint32_t question)
{
	struct p3_node *node = arg;
	p3_set(&node->meeting->question, question); /* ASK.1 */
	p3_meet_wake(node->meeting);
}

void p3_meet_part(struct p3_node *node)
{
	struct p3_meeting *m = node->meeting;
	if (!m || !m->nic)
		return;
	pthread_mutex_lock(&m->lock);
	m->stop = true;
	pthread_cond_broadcast(&m->changed);
	while (m->inside)
		pthread_cond_wait(&m->changed, &m->lock);
	pthread_mutex_unlock(&m->lock);
	p3_meet_wake(m);
	pthread_join(m->thread, NULL);
	FAULT_POINT("meet.left");
	close_ends(m);
	m->nic = NULL;
}

void p3_meet_forget(struct p3_node *node)
{
	struct p3_meeting *m = node->meeting;
	if (!m)
		return;
	close_ends(m);
	p3_domain_forget(&m->place);
}
