/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * This node in a domain: entering, joining and leaving, which other threads call, and the
 * domain's thread with its periodic check.
 */
#include "lib/domain/internal.h"
#include "shm/fd.h"
#include "shm/log.h"
#include "shm/seg.h"
#include "shm/park.h"
#include "shm/process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define MESH_SPARE 16 /* connections whose other end is still unknown */
/* mesh_await_others() waits in slices: however long the process is stopped in the middle
 * of one, no more than this slice counts as waiting */
#define SLICE_NS      50000000
#define COUNTS        20 /* counts of the room for a job before it is refused */
#define MESH_EVENTS   16
#define MESH_CHECK_MS 1000 /* the longest time until foreign descriptors are noticed */
#define MESH_AGAIN_MS 50   /* time until an action that found no room is repeated */
#define MESH_LATE_S   10   /* wait in a barrier after which missing ranks are named */

/* ---- the descriptors of connections, members and ranks ---- */

/* Return true if the program has closed a descriptor that epoll watched, or given its
 * number to another file; false if there is no descriptor. */
static bool mesh_has_lost(
	struct p3_mesh *m, const p3_a32 *fd, enum p3_mesh_watch what, uint32_t which)
{
	return p3_mesh_fd(fd) >= 0 && !p3_mesh_watches(m, fd, what, which);
}

/* Close fd if p3_mesh_watches() is true for it, and forget its number in any case.  The
 * epoll set stays as it is: a forked child shares the set with its parent. */
static void mesh_drop(
	struct p3_mesh *m, p3_a32 *fd, enum p3_mesh_watch what, uint32_t which)
{
	if (p3_mesh_watches(m, fd, what, which))
		p3_mesh_close(fd);
	p3_set(fd, P3_MESH_NONE);
}

static uint32_t mesh_table_len(const struct p3_mesh *m, enum p3_mesh_watch what)
{
	return what == P3_MESH_CONN   ? m->nconn
	       : what == P3_MESH_LIFE ? (m->node->member ? m->node->capacity : 0)
				      : m->nrank;
}

/* Return the descriptor of a connection, or of the life of a member or rank. */
static p3_a32 *mesh_table_fd(
	const struct p3_mesh *m, enum p3_mesh_watch what, uint32_t which)
{
	return what == P3_MESH_CONN   ? &m->conn[which].fd
	       : what == P3_MESH_LIFE ? &m->node->member[which].life
				      : &m->rank[which].life;
}

/* Return true if the program has closed one of these descriptors.  drop: close them,
 * except those, whose numbers may name files of the program now. */
static bool mesh_sweep_fds(struct p3_mesh *m, bool drop)
{
	bool lost = false;
	for (enum p3_mesh_watch what = P3_MESH_CONN; what <= P3_MESH_RANK; what++)
		for (uint32_t i = 0; !lost && i < mesh_table_len(m, what); i++)
			if (drop)
				mesh_drop(m, mesh_table_fd(m, what, i), what, i);
			else
				lost = mesh_has_lost(
					m, mesh_table_fd(m, what, i), what, i);
	return lost;
}

/* ---- entering ---- */

static struct p3_mesh *mesh_new(struct p3_node *node)
{
	struct p3_mesh *m = calloc(1, sizeof *m);
	if (!m)
		return NULL;
	m->node = node;
	p3_domain_none(&m->place);
	m->entered = node->barriers_done;
	p3_set(&m->listen, P3_MESH_NONE);
	p3_set(&m->ep, P3_MESH_NONE);
	p3_set(&m->wake, P3_MESH_NONE);
	pthread_mutex_init(&m->lock, NULL);
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&m->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return m;
}

/* Make the tables, whose sizes are known once the domain's capacity is. */
static int mesh_make_tables(struct p3_mesh *m)
{
	uint32_t nconn = 2 * m->node->capacity + MESH_SPARE;
	uint32_t nrank = m->node->launched ? m->node->size : 0;
	m->conn = calloc(nconn, sizeof *m->conn);
	m->rank = calloc(nrank + 1, sizeof *m->rank);
	if (!m->conn || !m->rank)
		return -ENOMEM;
	for (uint32_t i = 0; i < nconn; i++)
		p3_set(&m->conn[i].fd, P3_MESH_NONE);
	for (uint32_t i = 0; i < nrank; i++) {
		p3_set(&m->rank[i].life, P3_MESH_NONE);
		m->rank[i].slot = P3_MESH_NONE;
	}
	m->nconn = nconn;
	m->nrank = nrank;
	return 0;
}

/* Agree on the capacity of a family's domain, and see if the job fits in. */
static int mesh_take_room(struct p3_mesh *m)
{
	struct p3_node *node = m->node;
	uint32_t room = 0, holder;
	int rc = p3_domain_take_room(&m->place, node->capacity, &node->capacity);
	/* The job can have the free slots and its own.  Ranks that come or go between
	 * these counts distort them. */
	for (int k = 0; !rc && k < COUNTS; k++) {
		uint32_t used = p3_domain_count(&m->place, node->capacity), own = 0;
		for (uint32_t i = 0; i < node->size; i++)
			own += p3_domain_has_rank(&m->place, node->job, i, &holder);
		room = node->capacity - (used > own ? used - own : 0);
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
static int mesh_take_slot(struct p3_mesh *m, int *fd_out)
{
	uint32_t holder, rank = m->node->rank;
	int rc = -EADDRINUSE;
	if (m->node->launched || m->node->modex)
		rc = p3_domain_take_this_slot(&m->place, rank, fd_out, &holder);
	if (rc == -EADDRINUSE && m->node->modex) /* other hosts know it by its rank */
		p3_error("process %u has the place of rank %u in the domain "
			 "%s; " P3_LAUNCHED_ONE,
			holder, rank, m->place.path);
	return rc == -EADDRINUSE && !m->node->modex
		       ? p3_domain_take_slot(&m->place, m->node->capacity, fd_out)
		       : rc;
}

static int mesh_go_in(struct p3_mesh *m)
{
	struct p3_domain_why why;
	const struct p3_node *node = m->node;
	uint32_t holder;
	int fd, rc = p3_domain_open(&m->place, P3_DOMAIN_BASE, node->domain, &why);
	if (rc) {
		p3_error("%s", why.text);
		return rc;
	}
	if (node->sock < 0) /* else yod has locked the node id */
		rc = p3_domain_take_nid(&m->place, node->nid, &holder);
	if (rc == -EADDRINUSE)
		p3_error("node id %u belongs to a job that yod (process %u) runs in the "
			 "domain %s; set PTL3_NID to another",
			node->nid, holder, m->place.path);
	FAULT_POINT("meet.nid_taken");
	if (!rc && node->launched) {
		rc = p3_domain_take_rank(&m->place, node->job, node->rank, &holder);
		if (rc == -EADDRINUSE)
			p3_error("rank %u of the job in the domain %s is process %u "
				 "already; " P3_LAUNCHED_ONE,
				node->rank, m->place.path, holder);
		FAULT_POINT("meet.rank_taken");
	}
	if (!rc && node->job)
		rc = mesh_take_room(m);
	if (!rc)
		rc = mesh_take_slot(m, &fd);
	if (rc == -EUSERS) {
		p3_error("the domain %s is full: it has room for %u processes; end some, "
			 "or set PTL3_DOMAIN_NODES to more for all in it",
			m->place.path, node->capacity);
		return -ENOSPC;
	}
	if (rc == -EDQUOT) /* mesh_take_room() has reported it */
		return -ENOSPC;
	if (rc && rc != -EADDRINUSE)
		p3_error("the domain %s: %s", m->place.path, strerror(-rc));
	if (!rc)
		p3_set(&m->listen, (uint32_t)fd);
	return rc;
}

int p3_mesh_enter(struct p3_node *node)
{
	struct p3_mesh *m = mesh_new(node);
	if (!m)
		return -ENOMEM;
	int rc = mesh_go_in(m);
	node->mesh = m;
	node->index = m->place.slot;
	rc = rc ? rc : mesh_make_tables(m);
	if (rc)
		p3_mesh_exit(node);
	return rc;
}

void p3_mesh_exit(struct p3_node *node)
{
	struct p3_mesh *m = node->mesh;
	if (!m)
		return;
	p3_mesh_close(&m->listen);
	p3_domain_leave(&m->place);
	node->mesh = NULL;
	pthread_cond_destroy(&m->changed);
	pthread_mutex_destroy(&m->lock);
	free(m->rank);
	free(m->conn);
	free(m);
}

uint32_t p3_mesh_crew(const struct p3_node *node)
{
	uint64_t slots[P3_MAX_NODES / 64];
	uint32_t n = 0;
	(void)p3_domain_list(&node->mesh->place, slots);
	for (uint32_t i = 0; i < P3_MAX_NODES / 64; i++)
		n += (uint32_t)__builtin_popcountll(slots[i]);
	uint32_t here = node->modex ? node->modex->here : node->size;
	uint32_t least = here > 2 ? here : 2;
	return n > least ? n : least;
}

/* Return true if another interface of this process has the pid: the kernel would grant
 * the process the pid's lock again. */
static bool mesh_is_own_pid(const struct p3_node *node, uint32_t pid)
{
	for (int i = 0; i < P3_JOB_NIS; i++)
		if (p3_get(&node->ni[i].open) && p3_get(&node->ni[i].pid) == pid)
			return true;
	return false;
}

int p3_mesh_claim(struct p3_node *node, ptl_pid_t base, ptl_pid_t *pid)
{
	struct p3_mesh *m = node->mesh;
	bool any = *pid == PTL_PID_ANY;
	uint32_t holder, want = any ? base : *pid;
	int rc;
	for (;;) {
		holder = (uint32_t)getpid();
		rc = mesh_is_own_pid(node, want)
			     ? -EADDRINUSE
			     : p3_domain_take_id(&m->place, node->nid, want, &holder);
		if (rc != -EADDRINUSE)
			break;
		if (any && ++want < P3_DOMAIN_PIDS)
			continue;
		p3_error("process id %u on node %u is process %u's in the domain %s; ask "
			 "for another one, or give this process another rank of "
			 "PTL_PIDMAP, or set PTL3_NID or PTL3_DOMAIN",
			want, node->nid, holder, m->place.path);
		return PTL_PID_INVALID;
	}
	if (rc) {
		p3_error(
			"process id %u on node %u cannot be locked in the domain %s: %s; "
			"see that the kernel has locks and memory, or set "
			"PTL3_DOMAIN=" P3_DOMAIN_NONE " to stay alone",
			want, node->nid, m->place.path, strerror(-rc));
		return rc == -ENOLCK || p3_job_passes(rc) ? PTL_NO_SPACE
							  : PTL_IFACE_INVALID;
	}
	FAULT_POINT("meet.claimed");
	*pid = want;
	return PTL_OK;
}

/* ---- the periodic check ---- */

static void mesh_send_pids(struct p3_mesh *m, struct p3_mesh_conn *c)
{
	struct p3_job_msg msg = p3_member_message(m->node, P3_JOB_PIDS);
	c->owes = p3_job_send(p3_mesh_fd(&c->fd), &msg, NULL, 0) == -EAGAIN;
	m->rescan |= c->owes;
}

/* Return true for a member that has introduced itself and has not heard of this node. */
static bool conn_owes_answer(const struct p3_mesh_conn *c)
{
	return p3_mesh_fd(&c->fd) >= 0 && c->slot != P3_MESH_NONE && !c->born_sent;
}

/*
 * Hang up a connection whose process has not introduced itself, if that process is dead
 * or has been silent for too long: a dead process may have children that hold the other
 * end, so no end of file comes.  Ask a member that could not be attached to introduce
 * itself again, and repeat the packets to a member that found no room.
 */
static void conn_check(struct p3_mesh *m, struct p3_mesh_conn *c)
{
	if (c->slot == P3_MESH_NONE)
		p3_mesh_receive(m, c); /* the process may have sent a packet and ended */
	if (p3_mesh_fd(&c->fd) < 0)
		return;
	if (c->slot == P3_MESH_NONE && kill((pid_t)c->os_pid, 0) != 0 && errno == ESRCH) {
		p3_mesh_hang_up(m, c);
		return;
	}
	if (p3_mesh_close_mute(m, c))
		return;
	if (conn_owes_answer(c))
		(void)p3_mesh_send_born(m, c);
	struct p3_job_msg msg = p3_member_message(m->node, P3_JOB_AGAIN);
	if (p3_mesh_talks(c) && c->slot != P3_MESH_NONE &&
		m->node->member[c->slot].missing)
		(void)p3_job_send(p3_mesh_fd(&c->fd), &msg, NULL, 0);
	if (c->owes)
		mesh_send_pids(m, c);
}

/* Do the work that no descriptor reports, and repeat actions that found no room. */
static void mesh_check(struct p3_mesh *m)
{
	for (uint32_t i = 0; i < m->node->capacity; i++)
		if (m->node->member[i].incarnation && !p3_mesh_is_far(m, i) &&
			p3_domain_is_over(&m->place, i, m->node->member[i].os_pid))
			p3_mesh_on_process_end(m, i);
	for (uint32_t i = 0; i < m->node->capacity; i++)
		p3_mesh_remove(m, i, false);
	p3_mesh_resume(m, &m->accept_paused, &m->listen, P3_MESH_LISTEN);
	if (m->rescan)
		p3_mesh_scan(m);
	p3_mesh_check_remotes(m);
	if (!p3_mesh_is_disconnected(m, 0))
		m->barrier_sent = 0; /* send it to rank 0 once more */
	for (uint32_t i = 0; i < m->nconn; i++)
		if (p3_mesh_fd(&m->conn[i].fd) >= 0)
			conn_check(m, &m->conn[i]);
}

/* Return the milliseconds until mesh_check() must run again: it runs every MESH_AGAIN_MS
 * while an action has to be repeated, else every MESH_CHECK_MS. */
static int mesh_ms_until_check(const struct p3_mesh *m)
{
	bool again = m->accept_paused || m->rescan || p3_mesh_sum_remotes(m).need_retry ||
		     p3_members_wait(m->node);
	for (uint32_t i = 0; i < m->nconn && !again; i++)
		again = conn_owes_answer(&m->conn[i]);
	uint64_t now = p3_now_ns(), ms = again ? MESH_AGAIN_MS : MESH_CHECK_MS;
	uint64_t at = m->checked_ns + ms * 1000000;
	if (m->pids_sent_ns && at > now + MESH_AGAIN_MS * 1000000)
		at = now + MESH_AGAIN_MS * 1000000;
	return at > now ? (int)((at - now) / 1000000 + 1) : 0;
}

/* ---- the thread ---- */

void p3_mesh_wake(struct p3_mesh *m)
{
	/* If the program has closed the eventfd, the thread notices that by itself. */
	if (p3_mesh_watches(m, &m->wake, P3_MESH_WAKE, 0))
		p3_fd_signal(p3_mesh_fd(&m->wake));
}

/* Return true if this thread serves held requests (p3_held_see_to); under yod the life
 * thread does. */
static bool mesh_serves_held(const struct p3_mesh *m)
{
	return m->node->sock < 0;
}

/* Set a flag on which other threads wait. */
static void mesh_set_flag(struct p3_mesh *m, bool *flag, bool value)
{
	pthread_mutex_lock(&m->lock);
	*flag = value;
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
}

static void mesh_on_wake(struct p3_mesh *m)
{
	uint64_t n;
	(void)!read(p3_mesh_fd(&m->wake), &n, sizeof n);
	pthread_mutex_lock(&m->lock);
	bool pids = m->new_pids;
	m->over = m->stop;
	pthread_mutex_unlock(&m->lock);
	if (mesh_serves_held(m))
		p3_held_see_to(m->node, m->nic);
	if (!pids || m->pids_sent_ns)
		return;
	for (uint32_t i = 0; i < m->nconn; i++)
		if (p3_mesh_talks(&m->conn[i])) {
			mesh_send_pids(m, &m->conn[i]);
			FAULT_POINT("meet.pids_half");
		}
	p3_mesh_send_pids_to_remotes(m);
	m->pids_sent_ns = p3_now_ns();
}

/* Return true if the process of a pidfd has ended.  An event alone does not show that: it
 * may be about an earlier process in the same slot. */
static bool life_has_ended(const p3_a32 *fd)
{
	struct pollfd life = {.fd = p3_mesh_fd(fd), .events = POLLIN};
	return life.fd >= 0 && poll(&life, 1, 0) > 0;
}

static void mesh_on_event(struct p3_mesh *m, enum p3_mesh_watch kind, uint32_t which)
{
	switch (kind) {
	case P3_MESH_WAKE:
		mesh_on_wake(m);
		break;
	case P3_MESH_LISTEN:
		p3_mesh_accept(m);
		break;
	case P3_MESH_CONN:
		p3_mesh_receive(m, &m->conn[which]);
		break;
	case P3_MESH_LIFE:
		if (!life_has_ended(&m->node->member[which].life))
			break;
		p3_mesh_on_process_end(m, which);
		if (m->node->member[which]
				.ending) /* else epoll would report it for ever */
			p3_mesh_unwatch(m, &m->node->member[which].life);
		break;
	case P3_MESH_RANK:
		if (!life_has_ended(&m->rank[which].life))
			break;
		m->rank[which].ended = true; /* it had left in order */
		p3_mesh_unwatch(m, &m->rank[which].life);
		break;
	case P3_MESH_TCP_LISTEN:
	case P3_MESH_UNAUTH:
	case P3_MESH_REMOTE:
	case P3_MESH_STREAMS:
		p3_mesh_on_remote(m, kind, which);
		break;
	}
}

/* Wait at most ms for events, and process them.  Return false if the program has closed
 * descriptors of the mesh. */
static bool mesh_take_ready(struct p3_mesh *m, int ms)
{
	struct epoll_event ev[MESH_EVENTS];
	int n = epoll_wait(p3_mesh_fd(&m->ep), ev, MESH_EVENTS, ms);
	if (!p3_domain_holds(&m->place) ||
		!p3_mesh_watches(m, &m->wake, P3_MESH_WAKE, 0) ||
		(!m->accept_paused && !p3_mesh_watches(m, &m->listen, P3_MESH_LISTEN, 0)))
		return false;
	for (int i = 0; i < n; i++) {
		enum p3_mesh_watch kind = (enum p3_mesh_watch)(ev[i].data.u64 >> 32);
		uint32_t which = (uint32_t)ev[i].data.u64;
		/* A forked child that holds a copy of a descriptor that the program has
		 * closed, or whose number it has given to another file, causes events. */
		if ((kind >= P3_MESH_CONN && kind <= P3_MESH_RANK &&
			    mesh_has_lost(
				    m, mesh_table_fd(m, kind, which), kind, which)) ||
			(kind == P3_MESH_REMOTE &&
				p3_call_is_lost(&m->node->modex->remote[which].call)))
			return false;
		mesh_on_event(m, kind, which);
	}
	return true;
}

/* If all earlier members have introduced themselves, let joining end.  First process what
 * other hosts had sent when this thread began: an interface that they know to have closed
 * may be among the members until then. */
static void mesh_check_met(struct p3_mesh *m)
{
	if (m->met || m->rescan)
		return;
	if (!m->current) {
		if (!p3_mesh_has_news_of(m, &m->met_look))
			return;
		p3_mesh_receive_remotes(m);
		m->current = true;
	}
	if (!p3_mesh_sum_remotes(m).met)
		return;
	for (uint32_t i = 0; i < m->nconn; i++)
		if (m->conn[i].awaited)
			return;
	mesh_set_flag(m, &m->met, true);
}

/* ---- questions ---- */

/* Process the packets that members have sent. */
static void mesh_receive_all(struct p3_mesh *m)
{
	for (uint32_t i = 0; i < m->nconn; i++)
		p3_mesh_receive(m, &m->conn[i]);
	p3_mesh_receive_remotes(m);
}

/*
 * Answer the NIC's question.  A process id whose PtlNIInit has returned before the
 * question is in a packet that lies in a socket of this process by now (p3_mesh_pids), or
 * in a BORN that came earlier; so what is unknown after mesh_receive_all() does not
 * exist.  Those of other hosts are read by the lease holder first.
 */
static void mesh_answer(struct p3_mesh *m)
{
	uint64_t coming[P3_MAX_NODES / 64];
	uint32_t question = p3_get(&m->node->question); /* ASK.1 */
	if (question == m->answered)
		return;
	if (question != m->asked)
		m->ask_look = 0; /* the last look was for another one */
	m->asked = question;
	if (!p3_mesh_has_news_of(m, &m->ask_look))
		return;
	m->answered = question;
	mesh_receive_all(m);
	/* the slots of living processes that have not introduced themselves */
	(void)p3_domain_list(&m->place, coming);
	for (uint32_t i = 0; i < m->node->capacity; i++)
		if ((coming[i / 64] >> i % 64 & 1) &&
			(m->node->member[i].incarnation || p3_domain_reap(&m->place, i)))
			coming[i / 64] &= ~(UINT64_C(1) << i % 64);
	p3_nic_peer_told(m->nic, question, coming);
}

/* ---- a program that closes descriptors of the mesh ---- */

/* Leave the domain, and treat all other members as dead.  They notice that this one is
 * gone by the ends of its connections, or by its locks, which are released here in case
 * the program has not.  Then wait until the interface closes.  The program may have
 * closed the eventfd too, so poll the flag instead. */
static void mesh_wait_for_stop(struct p3_mesh *m)
{
	bool stop = false;
	p3_error("the program has closed descriptors of the domain %s, so this process "
		 "leaves it, and its operations with others fail; close only "
		 "descriptors that the program has opened, and no range of all numbers",
		m->place.path);
	mesh_set_flag(m, &m->fds_lost, true);
	mesh_set_flag(m, &m->met, true);
	p3_mesh_end_remotes(m);
	(void)mesh_sweep_fds(m, true);
	for (uint32_t i = 0; i < m->node->capacity; i++) {
		if (!m->node->member[i].incarnation)
			continue;
		m->node->member[i].how = P3_PEER_DIED;
		m->node->member[i].ending = true;
		p3_mesh_remove(m, i, true);
	}
	if (!m->accept_paused)
		mesh_drop(m, &m->listen, P3_MESH_LISTEN, 0);
	p3_domain_leave(&m->place);
	while (!stop) {
		mesh_answer(m);
		if (mesh_serves_held(m))
			p3_held_see_to(m->node, m->nic);
		(void)poll(NULL, 0, MESH_CHECK_MS / 10);
		pthread_mutex_lock(&m->lock);
		stop = m->stop;
		pthread_mutex_unlock(&m->lock);
	}
}

/* ---- turns ---- */

/* Return false if the program has closed descriptors of the mesh. */
static bool mesh_turn(struct p3_mesh *m)
{
	int ms = mesh_ms_until_check(m);
	if (!mesh_take_ready(m, mesh_serves_held(m) ? p3_held_patience(m->node, ms) : ms))
		return false;
	if (mesh_serves_held(m) && p3_held_is_due(m->node))
		p3_held_see_to(m->node, m->nic);
	if (mesh_ms_until_check(m) == 0) {
		if (mesh_sweep_fds(m, false) || p3_mesh_has_lost_remotes(m))
			return false;
		mesh_check(m);
		m->checked_ns = p3_now_ns();
	}
	mesh_answer(m);
	/* Let p3_mesh_pids() return when the remote nodes know the ids.  One that is
	 * stopped delays it by P3_SETTLE_NS at most. */
	if (m->pids_sent_ns && (p3_mesh_sum_remotes(m).know_pids ||
				       p3_now_ns() - m->pids_sent_ns >= P3_SETTLE_NS)) {
		m->pids_sent_ns = 0;
		mesh_set_flag(m, &m->new_pids, false);
	}
	/* Leave the barrier that rank 0 has released.  First process the packets that the
	 * others sent before they entered it, such as new process ids. */
	struct p3_job_msg released = m->released;
	if (p3_mesh_follows(m) && released.round &&
		p3_mesh_has_news_of(m, &m->release_look)) {
		mesh_receive_all(m);
		p3_mesh_leave_barrier(m, &released);
	}
	p3_mesh_advance_barrier(m);
	mesh_check_met(m);
	return true;
}

/* Run as the domain's thread, until p3_mesh_part(). */
static void *mesh_thread(void *arg)
{
	struct p3_mesh *m = arg;
	p3_mesh_scan(m);
	p3_mesh_begin_remotes(m);
	m->checked_ns = p3_now_ns();
	mesh_check_met(m);
	while (!m->over && mesh_turn(m))
		;
	if (!m->over) {
		mesh_wait_for_stop(m);
		return NULL;
	}
	FAULT_POINT("meet.leaving");
	struct p3_job_msg leave = p3_member_message(m->node, P3_JOB_LEAVE);
	for (uint32_t i = 0; i < m->nconn; i++)
		if (p3_mesh_talks(&m->conn[i])) {
			(void)p3_job_send(p3_mesh_fd(&m->conn[i].fd), &leave, NULL, 0);
			FAULT_POINT("meet.leave_half");
		}
	p3_mesh_leave_remotes(m);
	return NULL;
}

/* ---- joining ---- */

static int mesh_open_fds(struct p3_mesh *m)
{
	int fd = p3_fd_high(epoll_create1(EPOLL_CLOEXEC));
	p3_set(&m->ep, (uint32_t)fd);
	if (fd < 0)
		return -errno;
	fd = p3_fd_high(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	p3_set(&m->wake, (uint32_t)fd);
	if (fd < 0)
		return -errno;
	int rc = p3_mesh_watch(m, EPOLL_CTL_ADD, fd, P3_MESH_WAKE, 0);
	return rc ? rc
		  : p3_mesh_watch(
			    m, EPOLL_CTL_ADD, p3_mesh_fd(&m->listen), P3_MESH_LISTEN, 0);
}

/* Wait until this process has met the earlier members, for P3_SETTLE_NS at most.  Time
 * during which this process is stopped does not count: it cannot meet members then. */
static bool mesh_await_others(struct p3_mesh *m)
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

/* Close the mesh's descriptors, except those that the program has closed. */
static void mesh_close_fds(struct p3_mesh *m)
{
	(void)mesh_sweep_fds(m, true);
	bool own = p3_mesh_watches(m, &m->wake, P3_MESH_WAKE, 0);
	if (own && m->accept_paused)
		p3_mesh_close(&m->listen);
	mesh_drop(m, &m->listen, P3_MESH_LISTEN, 0);
	if (own) {
		p3_mesh_close(&m->wake);
		p3_mesh_close(&m->ep);
	}
	p3_set(&m->wake, P3_MESH_NONE);
	p3_set(&m->ep, P3_MESH_NONE);
}

int p3_mesh_join(struct p3_node *node, struct p3_nic *nic)
{
	struct p3_mesh *m = node->mesh;
	m->nic = nic;
	int rc = p3_member_attach_self(node, nic);
	rc = rc ? rc : mesh_open_fds(m);
	FAULT_POINT("meet.unmet");
	rc = rc ? rc : p3_worker_start(&m->thread, mesh_thread, m);
	if (rc) {
		if (!p3_pages_say_limit(rc))
			p3_error("the network interface cannot join the domain %s: %s; "
				 "see ulimit -n, and the space and rights of that "
				 "directory",
				m->place.path, strerror(-rc));
		m->nic = NULL;
		p3_mesh_close(&m->listen);
		p3_mesh_close(&m->wake);
		p3_mesh_close(&m->ep);
		return rc;
	}
	return mesh_await_others(m) ? 0 : -EPROTO;
}

void p3_mesh_pids(struct p3_node *node)
{
	struct p3_mesh *m = node->mesh;
	struct p3_job_msg msg = p3_member_message(m->node, P3_JOB_PIDS);
	struct p3_peer_info info = p3_member_info(m->node, &msg, NULL);
	p3_directory_set(&node->directory, node->rank, msg.nid, msg.pid);
	p3_nic_peer_pids(m->nic, &info);
	pthread_mutex_lock(&m->lock);
	m->new_pids = true;
	FAULT_POINT("meet.new_pids");
	p3_mesh_wake(m);
	while (m->new_pids && !m->fds_lost)
		pthread_cond_wait(&m->changed, &m->lock);
	pthread_mutex_unlock(&m->lock);
}

/* ---- threads in the barrier of the job ---- */

/* Name the missing ranks.  The caller holds m->lock. */
static void mesh_say_late(struct p3_mesh *m)
{
	uint32_t late = 0, first = 0, holder;
	for (uint32_t i = m->node->size; i-- > 0;)
		if (i != m->node->rank && !p3_mesh_is_far(m, i) &&
			!p3_domain_has_rank(&m->place, m->node->job, i, &holder)) {
			first = i;
			late++;
		}
	if (late)
		p3_warn("a barrier waits for %u of %u ranks that have no interface in "
			"the domain %s for %d s, rank %u first; see that all ranks call "
			"PtlNIInit, and have one job's name in the environment",
			late, m->node->size, m->place.path, MESH_LATE_S, first);
}

static int mesh_wait_barrier(struct p3_mesh *m, uint32_t round, uint32_t *ended_out)
{
	struct timespec late;
	bool said = false;
	clock_gettime(CLOCK_MONOTONIC, &late);
	late.tv_sec += MESH_LATE_S;
	while (m->node->barriers_done != round && !m->stop && !m->fds_lost) {
		int rc = said ? pthread_cond_wait(&m->changed, &m->lock)
			      : pthread_cond_timedwait(&m->changed, &m->lock, &late);
		if (rc != ETIMEDOUT)
			continue;
		said = true;
		mesh_say_late(m);
	}
	bool over = m->node->barriers_done == round;
	if (over && m->node->barrier_status)
		*ended_out = m->node->barrier_ended;
	return over && !m->node->barrier_status ? 0 : -EPIPE;
}

int p3_mesh_barrier(struct p3_node *node, uint32_t *ended_out)
{
	pthread_mutex_lock(&node->life);
	struct p3_mesh *m = node->mesh;
	if (!m || !m->nic) {
		pthread_mutex_unlock(&node->life);
		p3_error("PtlXBarrier: this process has no interface; in a job that "
			 "mpirun or the like has started call it between PtlNIInit and "
			 "PtlNIFini, or start the job by yod");
		return -EPIPE;
	}
	pthread_mutex_lock(&m->lock);
	pthread_mutex_unlock(&node->life);
	uint32_t round = ++m->entered;
	m->inside++;
	p3_mesh_wake(m);
	struct p3_wait_line *line = p3_nic_show_barrier(m->nic);
	int rc = mesh_wait_barrier(m, round, ended_out);
	p3_nic_left_barrier(line);
	m->inside--;
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
	return rc;
}

/* ---- leaving ---- */

void p3_mesh_part(struct p3_node *node)
{
	struct p3_mesh *m = node->mesh;
	if (!m || !m->nic)
		return;
	pthread_mutex_lock(&m->lock);
	m->stop = true;
	pthread_cond_broadcast(&m->changed);
	while (m->inside)
		pthread_cond_wait(&m->changed, &m->lock);
	pthread_mutex_unlock(&m->lock);
	p3_mesh_wake(m);
	pthread_join(m->thread, NULL);
	FAULT_POINT("meet.left");
	mesh_close_fds(m);
	m->nic = NULL;
}

void p3_mesh_forget(struct p3_node *node)
{
	struct p3_mesh *m = node->mesh;
	if (!m)
		return;
	mesh_close_fds(m);
	p3_domain_forget(&m->place);
}
