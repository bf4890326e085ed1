/* SPDX-License-Identifier: BSD-3-Clause */
/* The rendezvous: packets, births, ends, barriers, and the table of nodes. */
#include "launcher/rdv/rdv.h"
#include "launcher/clock.h"
#include "launcher/rdv/libof.h"
#include "launcher/rdv/outq.h"
#include "launcher/rdv/remains.h"
#include "launcher/rdv/sleepers.h"
#include "shm/fault.h"
#include "shm/job.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define EVENTS 64 /* epoll events taken at a time */
/* packets taken from one node before the others have their turn */
#define PACKETS      64
#define PACKETS_LAST 4096 /* packets taken from a node at its end */
/* time until a send that lacked memory, or room for descriptors in flight, is tried
 * again: no event tells when there is room */
#define RETRY_MS 10
/* births in a job of n nodes are told after this time, several at once */
#define TELL_MS(n)   ((n) < 1000 ? (n) / 10 : 100)
#define QUEUE_MAX(n) (4 * (size_t)(n) + 64)

enum watch { WATCH_SOCK, WATCH_OWNER, WATCH_TIMER };

enum { FD_PUBLISHED, FD_DOORBELL, FD_HOST, FD_HEAP };

enum state { NEW, KNOWN, JOINED, GONE };

struct node {
	int sock;       /* -1: closed, or not added */
	int owner_fd;   /* pidfd of the process that said HELLO, or -1 */
	uint32_t owner; /* its process id, 0: unknown */
	enum state state;
	enum p3_rdv_state was; /* its state as tools see it: rdv.h */
	bool ended;            /* p3_rdv_ended() was called */
	int status;            /* with this status */
	int64_t waits_since;
	bool waits;   /* it waits in the barrier */
	bool writes;  /* EPOLLOUT is enabled */
	bool retry;   /* flush again after RETRY_MS */
	bool scolded; /* a line said that another process sends in its name */
	bool refused; /* the reason why it may not join was reported */
	uint64_t incarnation;
	uint64_t joined_as; /* number of joins before this one */
	uint64_t seg_len;
	uint64_t heap_len;
	uint32_t pid[P3_JOB_NIS];
	int fds[P3_JOB_FDS];
	int64_t fate_at; /* JOINED with its socket closed: it is dead at this time */
	int64_t reap_at; /* time at which yod waits for no DROPPED any more */
	uint64_t *owed;  /* a bit for each node whose DROPPED yod waits for */
	uint32_t owed_n;
	bool watches;   /* it wants to hear of ranks that will never join */
	uint64_t *over; /* ranks whose OVER it was sent: a bit per node */
	uint64_t *met;  /* nodes whose BORN to it has descriptors: a bit each */
	struct p3_outq out;
};

struct p3_rdv {
	struct p3_rdv_conf conf;
	int ep;
	int timer;
	int sleepers; /* file for all nodes; -1: they meet in a domain, or it could not
		       * be made */
	int64_t timer_at;
	uint32_t joined_n;
	uint64_t joins;
	uint32_t *untold; /* nodes whose births earlier nodes have yet to hear of */
	uint32_t untold_n;
	int64_t tell_at; /* time at which they hear of these births */
	uint32_t waits_n;
	int64_t barrier_since; /* time at which the first node came to the barrier */
	uint32_t gone_n;
	uint32_t first_gone; /* the rank that was gone before all others */
	uint64_t *bits;      /* memory of all owed, over and met words */
	struct node node[];
};

__attribute__((format(printf, 2, 3))) static void tell(
	struct p3_rdv *r, const char *fmt, ...)
{
	char line[700];
	va_list args;

	if (!r->conf.say)
		return;
	va_start(args, fmt);
	vsnprintf(line, sizeof line, fmt, args);
	va_end(args);
	r->conf.say(r->conf.say_arg, line);
}

static void close_fds(int *fds, unsigned n)
{
	for (unsigned k = 0; k < n; k++) {
		if (fds[k] >= 0)
			close(fds[k]);
		fds[k] = -1;
	}
}

/* ---- epoll and timer ---- */

static uint64_t watch_key(enum watch what, uint32_t i)
{
	return (uint64_t)what << 32 | i;
}

static int watch(
	struct p3_rdv *r, int op, int fd, enum watch what, uint32_t i, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.u64 = watch_key(what, i)};
	return epoll_ctl(r->ep, op, fd, &ev) ? -errno : 0;
}

static void timer_set(struct p3_rdv *r, int64_t at)
{
	struct itimerspec t = {.it_value = {at / 1000, at % 1000 * 1000000}};
	r->timer_at = at;
	timerfd_settime(r->timer, TFD_TIMER_ABSTIME, &t, NULL);
}

static void timer_arm(struct p3_rdv *r, int64_t at)
{
	if (at < r->timer_at)
		timer_set(r, at);
}

/* ---- sending ---- */

static struct p3_job_msg message(const struct p3_rdv *r, enum p3_job_op op, uint32_t i)
{
	struct p3_job_msg m = {.magic = P3_JOB_MAGIC,
		.op = op,
		.node = i,
		.incarnation = r->node[i].incarnation};
	return m;
}

static struct p3_job_msg message_born(const struct p3_rdv *r, uint32_t i)
{
	const struct node *n = &r->node[i];
	struct p3_job_msg m = message(r, P3_JOB_BORN, i);
	m.size = r->conf.size;
	m.nid = r->conf.nid_base + i;
	m.uid = getuid();
	m.jid = r->conf.jid;
	m.os_pid = n->owner;
	m.seg_len = n->seg_len;
	m.heap_len = n->heap_len;
	memcpy(m.pid, n->pid, sizeof m.pid);
	return m;
}

/* ---- nodes that have each other's descriptors ---- */

static bool has_met(const struct node *n, uint32_t about)
{
	return n->met[about / 64] >> about % 64 & 1;
}

static void set_met(struct node *n, uint32_t about, bool met)
{
	uint64_t bit = UINT64_C(1) << about % 64;
	n->met[about / 64] = met ? n->met[about / 64] | bit : n->met[about / 64] & ~bit;
}

/* The descriptors that a birth of the node carries. */
static void copy_fds_of(const struct node *born, int fds_out[3])
{
	fds_out[0] = born->fds[FD_PUBLISHED];
	fds_out[1] = born->fds[FD_DOORBELL];
	fds_out[2] = born->heap_len ? born->fds[FD_HEAP] : -1;
}

/* Send BORN of a node to another.  kept holds the copies of the descriptors that a
 * queued packet has; if it is NULL or has none, send the node's own descriptors. */
static int transmit_born(const struct p3_rdv *r, struct node *to,
	const struct p3_job_msg *m, const int *kept)
{
	int fds[3];
	bool copies = kept && kept[0] >= 0;
	copy_fds_of(&r->node[m->node], fds);
	if (!copies)
		kept = fds;
	unsigned nfds = copies || has_met(to, m->node) ? (m->heap_len ? 3 : 2) : 0;
	return p3_job_send(to->sock, m, kept, nfds);
}

static int transmit(
	struct p3_rdv *r, struct node *to, const struct p3_job_msg *m, const int *kept)
{
	if (m->op == P3_JOB_BORN)
		return transmit_born(r, to, m, kept);
	bool hands_on = m->op == P3_JOB_WELCOME && r->sleepers >= 0;
	return p3_job_send(to->sock, m, &r->sleepers, hands_on ? 1 : 0);
}

/* Return true if the packet is to be sent later; false if it was sent or can never be
 * sent. */
static bool must_wait(struct p3_rdv *r, struct node *to, int rc)
{
	if (rc == -ETOOMANYREFS || rc == -ENOMEM || rc == -ENOBUFS) {
		to->retry = true;
		timer_arm(r, p3_now_ms() + RETRY_MS);
		return true;
	}
	return rc == -EAGAIN;
}

static void want_writes(struct p3_rdv *r, uint32_t i, bool on)
{
	struct node *n = &r->node[i];
	if (n->writes == on)
		return;
	n->writes = on;
	watch(r, EPOLL_CTL_MOD, n->sock, WATCH_SOCK, i,
		on ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static void flush(struct p3_rdv *r, uint32_t i)
{
	struct node *n = &r->node[i];
	if (n->sock < 0)
		return;
	n->retry = false;
	while (n->out.first) {
		if (must_wait(
			    r, n, transmit(r, n, &n->out.first->msg, n->out.first->fds)))
			break;
		p3_outq_drop_first(&n->out);
	}
	want_writes(r, i, n->out.first && !n->retry);
}

/* Cut off a node whose queue is too long.  Only shut its socket down: closing it here,
 * inside a broadcast, would begin another one.  The next step sees the end of file. */
static void overrun(struct p3_rdv *r, uint32_t i)
{
	tell(r, "rank %u: does not read what it asks for (%u packets queued); cut off", i,
		r->node[i].out.n);
	p3_outq_clear(&r->node[i].out);
	shutdown(r->node[i].sock, SHUT_RDWR);
}

/* Send a packet to a node, or queue it while its socket is full.  A send that fails for
 * good does not end the node here: yod first reads the packets that the node has sent. */
static void post(struct p3_rdv *r, uint32_t i, const struct p3_job_msg *m)
{
	struct node *n = &r->node[i];
	if (n->sock < 0)
		return;
	if (!n->out.first && !must_wait(r, n, transmit(r, n, m, NULL)))
		return;
	if (n->out.n >= QUEUE_MAX(r->conf.size) || p3_outq_add(&n->out, m)) {
		overrun(r, i);
		return;
	}
	want_writes(r, i, !n->retry);
}

static bool listens(const struct node *n)
{
	return n->state == JOINED && n->sock >= 0;
}

static void post_born(struct p3_rdv *r, uint32_t to, uint32_t about)
{
	struct p3_job_msg m = message_born(r, about);
	post(r, to, &m);
}

/* Send node `about` with its descriptors to node `to`, since one of them sent AGAIN. */
static void post_introduction(struct p3_rdv *r, uint32_t to, uint32_t about)
{
	struct p3_job_msg m = message_born(r, about);
	set_met(&r->node[to], about, true);
	struct p3_out *o = p3_outq_find(&r->node[to].out, P3_JOB_BORN, &m);
	if (o) { /* it carries the descriptors now */
		o->news |= !o->again;
		o->again = true;
		return;
	}
	post(r, to, &m);
	o = p3_outq_find(&r->node[to].out, P3_JOB_BORN, &m);
	if (o)
		o->again = true;
}

static void post_pids(struct p3_rdv *r, uint32_t to, const struct p3_job_msg *m)
{
	struct p3_out *o = p3_outq_find(&r->node[to].out, P3_JOB_BORN, m);
	if (!o)
		o = p3_outq_find(&r->node[to].out, P3_JOB_PIDS, m);
	if (!o) {
		post(r, to, m);
		return;
	}
	/* A closed interface keeps its pid for its earlier messages. */
	for (int k = 0; k < P3_JOB_NIS; k++)
		if (m->pid[k] != P3_JOB_NO_PID)
			o->msg.pid[k] = m->pid[k];
}

/* ---- deaths: survivors must drop the dead node before it may be reaped ---- */

static void owe(struct node *dead, uint32_t by)
{
	dead->owed[by / 64] |= UINT64_C(1) << by % 64;
	dead->owed_n++;
}

static void owe_no_more(struct node *dead, uint32_t by)
{
	uint64_t bit = UINT64_C(1) << by % 64;
	if (!(dead->owed[by / 64] & bit))
		return;
	dead->owed[by / 64] &= ~bit;
	dead->owed_n--;
}

static void owe_nothing(struct p3_rdv *r, struct node *dead)
{
	memset(dead->owed, 0, (r->conf.size + 63) / 64 * sizeof *dead->owed);
	dead->owed_n = 0;
	dead->reap_at = P3_NEVER;
}

static void node_owes_nobody(struct p3_rdv *r, uint32_t i)
{
	for (uint32_t d = 0; d < r->conf.size; d++)
		owe_no_more(&r->node[d], i);
}

/*
 * Keep copies of the ended peer's descriptors with the introduction o in a node's queue:
 * the node needs them to read the peer's last messages.  Return false if o is no
 * introduction, on an error, or if the end of an earlier life of the peer is queued:
 * introductions of a peer that lives and ends many times would fill the queue.
 */
static bool keep_introduction(
	struct p3_rdv *r, uint32_t to, struct p3_out *o, uint32_t peer)
{
	int fds[3];
	if (!o->again || p3_outq_has_end(&r->node[to].out, peer))
		return false;
	copy_fds_of(&r->node[peer], fds);
	return p3_outq_keep_fds(o, fds) == 0;
}

/*
 * Tell each node of the nodes that have joined after it.  Each packet wakes a thread, so
 * in a large job, where nodes join one after the other for seconds, a node is told of
 * several at once.  Functions that send a release, an end or an answer call this first,
 * so that a node has heard of the births before it reads such a packet.
 */
static void tell_births(struct p3_rdv *r)
{
	uint32_t n = r->untold_n;
	r->untold_n = 0;
	r->tell_at = P3_NEVER;
	for (uint32_t to = 0; n && to < r->conf.size; to++)
		for (uint32_t k = 0; k < n && listens(&r->node[to]); k++) {
			const struct node *born = &r->node[r->untold[k]];
			if (born->joined_as > r->node[to].joined_as)
				post_born(r, to, r->untold[k]);
			FAULT_POINT("yod.births_half");
		}
}

/* Note a birth that earlier nodes have yet to hear of. */
static void tell_birth_later(struct p3_rdv *r, uint32_t i)
{
	int64_t ms = r->conf.apart ? TELL_MS(r->conf.size) : 0;
	if (!r->untold_n)
		r->tell_at = p3_now_ms() + ms;
	r->untold[r->untold_n++] = i;
	if (ms)
		timer_arm(r, r->tell_at);
	else
		tell_births(r);
}

/* Tell one node of an end.  If the birth is still queued for it, remove the birth, send
 * no end and return false, except for a birth that introduces the ended node. */
static bool post_end(struct p3_rdv *r, uint32_t to, const struct p3_job_msg *m)
{
	struct node *n = &r->node[to];
	struct p3_out *birth = p3_outq_find(&n->out, P3_JOB_BORN, m);
	bool kept = birth && keep_introduction(r, to, birth, m->node);
	bool heard = !birth || kept || (birth->again && !birth->news);
	if (birth && !kept)
		p3_outq_drop(&n->out, P3_JOB_BORN, m);
	p3_outq_drop(&n->out, P3_JOB_PIDS, m);
	if (heard)
		post(r, to, m);
	return heard;
}

static void broadcast_end(
	struct p3_rdv *r, uint32_t i, enum p3_job_op op, int status, bool owed)
{
	struct p3_job_msg m = message(r, op, i);
	m.status = status;
	owe_nothing(r, &r->node[i]);
	for (uint32_t to = 0; to < r->conf.size; to++) {
		if (to == i || !listens(&r->node[to]))
			continue;
		if (post_end(r, to, &m) && owed && has_met(&r->node[to], i))
			owe(&r->node[i], to);
		FAULT_POINT("yod.end_half_told");
	}
	if (!r->node[i].owed_n)
		return;
	r->node[i].reap_at = p3_now_ms() + P3_JOB_REAP_MS;
	timer_arm(r, r->node[i].reap_at);
}

/* ---- ranks that will never join ---- */

static void post_over(struct p3_rdv *r, uint32_t to, uint32_t about)
{
	struct node *n = &r->node[to];
	uint64_t bit = UINT64_C(1) << about % 64;
	if (!n->watches || !listens(n) || (n->over[about / 64] & bit))
		return;
	n->over[about / 64] |= bit;
	struct p3_job_msg m = message(r, P3_JOB_OVER, about);
	post(r, to, &m);
}

static void watch_no_more(struct p3_rdv *r, struct node *n)
{
	n->watches = false;
	memset(n->over, 0, (r->conf.size + 63) / 64 * sizeof *n->over);
}

static void set_gone(struct p3_rdv *r, uint32_t i)
{
	r->node[i].state = GONE;
	if (!r->gone_n++)
		r->first_gone = i;
	for (uint32_t to = 0; to < r->conf.size; to++)
		post_over(r, to, i);
}

/* Note that a rank that was gone has a process again. */
static void set_back(struct p3_rdv *r, uint32_t i)
{
	if (r->node[i].state != GONE)
		return;
	r->gone_n--;
	for (uint32_t k = 0; r->first_gone == i && k < r->conf.size; k++)
		if (k != i && r->node[k].state == GONE)
			r->first_gone = k;
	for (uint32_t to = 0; to < r->conf.size; to++)
		r->node[to].over[i / 64] &= ~(UINT64_C(1) << i % 64);
}

/* ---- barrier ---- */

/* Release the waiting nodes; ended is a rank whose end makes this barrier fail.  If its
 * failure ends the job, do not tell the nodes its name: yod prints it, and a line of
 * each node would only repeat that. */
static void barrier_release(struct p3_rdv *r, int status, uint32_t ended)
{
	tell_births(r);
	if (ended < r->conf.size && r->conf.ends_job && r->node[ended].status)
		ended = P3_JOB_NO_RANK;
	for (uint32_t i = 0; i < r->conf.size; i++) {
		if (!r->node[i].waits)
			continue;
		struct p3_job_msg m = {.magic = P3_JOB_MAGIC,
			.op = P3_JOB_RELEASED,
			.status = status,
			.ended = ended};
		r->node[i].waits = false;
		post(r, i, &m);
		FAULT_POINT("yod.barrier_half");
	}
	r->waits_n = 0;
}

static void barrier_look(struct p3_rdv *r)
{
	if (r->waits_n && r->gone_n)
		barrier_release(r, EPIPE, r->first_gone);
	if (r->waits_n == r->conf.size)
		barrier_release(r, 0, P3_JOB_NO_RANK);
}

/* ---- ends ---- */

/* Close a dead node's doorbell and heap, whose memory no process needs now.  Lookers
 * need the published and the host segment. */
static void close_but_for_lookers(struct node *n)
{
	close_fds(&n->fds[FD_DOORBELL], 1);
	close_fds(&n->fds[FD_HEAP], 1);
}

/* Replace an ended node's descriptors by one of its remains (remains.h), which hold
 * neither its hugepages nor its lanes. */
static void keep_remains(struct node *n)
{
	int kept = p3_remains_make(n->fds[FD_PUBLISHED]);
	close_fds(n->fds, P3_JOB_FDS);
	n->fds[FD_PUBLISHED] = kept < 0 ? -1 : kept;
}

static void owner_forget(struct p3_rdv *r, struct node *n)
{
	if (n->owner_fd >= 0) {
		epoll_ctl(r->ep, EPOLL_CTL_DEL, n->owner_fd, NULL);
		close(n->owner_fd);
	}
	n->owner_fd = -1;
}

static void sock_close(struct p3_rdv *r, uint32_t i)
{
	struct node *n = &r->node[i];
	if (n->sock < 0)
		return;
	epoll_ctl(r->ep, EPOLL_CTL_DEL, n->sock, NULL);
	close(n->sock);
	n->sock = -1;
	n->writes = false;
	n->retry = false;
	p3_outq_clear(&n->out);
	node_owes_nobody(r, i);
}

/* End an incarnation.  owed: the process ended without LEAVE, so the peers are sent DIED
 * and must answer DROPPED.  op: the end that tools are shown, DIED or LEFT. */
static void unjoin(struct p3_rdv *r, uint32_t i, enum p3_job_op op, int status, bool owed)
{
	struct node *n = &r->node[i];
	tell_births(r);
	n->state = KNOWN;
	n->fate_at = P3_NEVER;
	r->joined_n--;
	p3_outq_drop_news(&n->out);
	watch_no_more(r, n);
	node_owes_nobody(r, i);
	broadcast_end(r, i, owed ? P3_JOB_DIED : P3_JOB_LEFT, status, owed);
	n->was = op == P3_JOB_DIED ? P3_RDV_DIED : P3_RDV_LEFT;
	if (r->conf.over)
		r->conf.over(
			r->conf.over_arg, i, n->fds[FD_PUBLISHED], op == P3_JOB_DIED);
	if (op == P3_JOB_DIED)
		close_but_for_lookers(n);
	else
		keep_remains(n);
}

/*
 * Note that the node's process has ended.  A wrapper that still holds the socket may
 * start another one, so the node is gone only with its socket.
 */
static void node_over(struct p3_rdv *r, uint32_t i)
{
	struct node *n = &r->node[i];
	if (n->state == GONE)
		return;
	owner_forget(r, n);
	if (n->waits) {
		n->waits = false;
		r->waits_n--;
	}
	if (n->sock < 0)
		set_gone(r, i);
	else
		n->state = NEW;
	barrier_look(r);
}

static void node_died(struct p3_rdv *r, uint32_t i, int status)
{
	if (r->node[i].state == JOINED) {
		unjoin(r, i, P3_JOB_DIED, status, true);
		barrier_release(r, EPIPE, i);
	}
	node_over(r, i);
}

/* Note the end of the process or of its socket.  A joined node has died eof_ms later,
 * unless p3_rdv_ended() tells its status before. */
static void node_lost(struct p3_rdv *r, uint32_t i)
{
	struct node *n = &r->node[i];
	if (n->state != JOINED) {
		node_over(r, i);
		return;
	}
	if (!r->conf.eof_ms) {
		node_died(r, i, 0);
		return;
	}
	if (n->fate_at != P3_NEVER)
		return;
	n->fate_at = p3_now_ms() + r->conf.eof_ms;
	timer_arm(r, n->fate_at);
}

static void cut_off(struct p3_rdv *r, uint32_t i)
{
	sock_close(r, i);
	node_died(r, i, 0);
}

static void breach(struct p3_rdv *r, uint32_t i, const char *what)
{
	tell(r,
		"rank %u: %s; cut off (run it with the libportals of this yod, and leave "
		"descriptor %s alone)",
		i, what, P3_JOB_ENV);
	cut_off(r, i);
}

/* ---- packets of nodes ---- */

struct packet {
	struct p3_job_msg msg;
	struct p3_job_from from;
	int fds[P3_JOB_FDS];
	unsigned nfds;
};

static int owner_watch(struct p3_rdv *r, uint32_t i, uint32_t os_pid)
{
	struct node *n = &r->node[i];
	owner_forget(r, n);
	n->owner = os_pid;
	if (!os_pid || os_pid == (uint32_t)getpid())
		return 0;
	n->owner_fd = (int)syscall(SYS_pidfd_open, os_pid, 0);
	if (n->owner_fd < 0)
		return -errno;
	return watch(r, EPOLL_CTL_ADD, n->owner_fd, WATCH_OWNER, i, EPOLLIN);
}

static void refuse(struct p3_rdv *r, uint32_t i, int err)
{
	r->node[i].refused = true;
	struct p3_job_msg m = message(r, P3_JOB_REFUSED, i);
	m.incarnation = 0;
	m.status = err;
	m.layout = r->conf.layout;
	post(r, i, &m);
	if (r->node[i].state == GONE)
		return;
	set_gone(r, i);
	barrier_look(r);
}

/* Check a node's layout against the job's, which no node decides: a rank with another
 * library must not make the others fail. */
static bool same_layout(struct p3_rdv *r, uint32_t i, const struct packet *p)
{
	char its[P3_LIBOF_LEN];
	if (p->msg.layout == r->conf.layout)
		return true;
	if (!r->node[i].refused)
		tell(r,
			"rank %u: layout %016" PRIx64
			" of its libportals (%s) is not %016" PRIx64
			", that of this yod; run it with the libportals of this yod",
			i, p->msg.layout, p3_libof(p->from.os_pid, its), r->conf.layout);
	return false;
}

static void on_hello(struct p3_rdv *r, uint32_t i, const struct packet *p)
{
	struct node *n = &r->node[i];
	if (n->state == JOINED) {
		breach(r, i, "says hello while it is joined");
		return;
	}
	if (p->from.uid != getuid()) {
		if (!n->refused)
			tell(r,
				"rank %u: runs as uid %u, yod as uid %u; start it "
				"without setuid",
				i, p->from.uid, getuid());
		refuse(r, i, EPERM);
		return;
	}
	if (!same_layout(r, i, p)) {
		refuse(r, i, EPROTO);
		return;
	}
	set_back(r, i);
	n->state = KNOWN;
	owner_watch(r, i, p->from.os_pid);
	if (n->fds[FD_HOST] >= 0)
		keep_remains(n);

	struct p3_job_msg m = message(r, P3_JOB_WELCOME, i);
	m.size = r->conf.size;
	m.nid = r->conf.nid_base + i;
	m.jid = r->conf.jid;
	m.uid = getuid();
	m.cpus = r->conf.cpus;
	m.status = r->conf.in_domain ? P3_JOB_IN_DOMAIN : 0;
	m.incarnation = 0;
	FAULT_POINT("yod.unwelcomed");
	post(r, i, &m);
	FAULT_POINT("yod.welcomed");
}

static bool is_as_long(int fd, uint64_t len)
{
	struct stat st;
	return !fstat(fd, &st) && S_ISREG(st.st_mode) && (uint64_t)st.st_size >= len;
}

static bool join_is_sound(const struct packet *p)
{
	return p->msg.incarnation && is_as_long(p->fds[FD_PUBLISHED], p->msg.seg_len) &&
	       (!p->msg.heap_len || is_as_long(p->fds[FD_HEAP], p->msg.heap_len));
}

static void on_join(struct p3_rdv *r, uint32_t i, struct packet *p)
{
	struct node *n = &r->node[i];
	if (n->state != KNOWN || p->msg.incarnation == n->incarnation) {
		breach(r, i, "joins out of turn");
		return;
	}
	if (!join_is_sound(p)) {
		breach(r, i, "joins with a segment that is shorter than it says");
		return;
	}
	n->state = JOINED;
	n->joined_as = r->joins++;
	n->was = P3_RDV_JOINED;
	n->incarnation = p->msg.incarnation;
	n->seg_len = p->msg.seg_len;
	n->heap_len = p->msg.heap_len;
	memcpy(n->pid, p->msg.pid, sizeof n->pid);
	close_fds(n->fds, P3_JOB_FDS); /* an earlier incarnation's */
	for (unsigned k = 0; k < P3_JOB_FDS; k++)
		n->fds[k] = k < p->nfds ? p->fds[k] : -1;
	p->nfds = 0;
	r->joined_n++;
	if (r->conf.joined)
		r->conf.joined(r->conf.joined_arg, i, n->fds[FD_PUBLISHED]);
	FAULT_POINT("yod.join_taken");

	for (uint32_t k = 0; k < r->conf.size; k++) {
		if (r->node[k].state != JOINED)
			continue;
		set_met(n, k, k == i || !r->conf.apart);
		set_met(&r->node[k], i, k == i || !r->conf.apart);
		post_born(r, i, k);
	}
	tell_birth_later(r, i);
	struct p3_job_msg m = message(r, P3_JOB_JOINED, i);
	FAULT_POINT("yod.births_published");
	post(r, i, &m);
}

static void on_pids(struct p3_rdv *r, uint32_t i, const struct packet *p)
{
	struct node *n = &r->node[i];
	if (n->state != JOINED) {
		breach(r, i, "changes its pids before it joins");
		return;
	}
	tell_births(r);
	memcpy(n->pid, p->msg.pid, sizeof n->pid);
	struct p3_job_msg m = message_born(r, i);
	m.op = P3_JOB_PIDS;
	for (uint32_t to = 0; to < r->conf.size; to++)
		if (listens(&r->node[to])) {
			post_pids(r, to, &m);
			FAULT_POINT("yod.pids_half");
		}
}

static void on_leave(struct p3_rdv *r, uint32_t i, const struct packet *p)
{
	struct node *n = &r->node[i];
	if (n->state != JOINED || p->msg.incarnation != n->incarnation) {
		breach(r, i, "leaves without having joined");
		return;
	}
	unjoin(r, i, P3_JOB_LEFT, 0, false);
	FAULT_POINT("yod.leave_taken");
	struct p3_job_msg m = message(r, P3_JOB_LEFT, i);
	post(r, i, &m);
}

static void on_dropped(struct p3_rdv *r, uint32_t i, const struct packet *p)
{
	if (p->msg.node >= r->conf.size) {
		breach(r, i, "drops a node that the job does not have");
		return;
	}
	if (r->node[p->msg.node].incarnation == p->msg.incarnation)
		owe_no_more(&r->node[p->msg.node], i);
}

/*
 * Send a birth with its descriptors to a node that had no room for it, or that wants to
 * send to the peer, unless that incarnation has ended.  The peer must take the node's
 * messages, so it gets the node's descriptors, too.
 */
static void on_again(struct p3_rdv *r, uint32_t i, const struct packet *p)
{
	uint32_t about = p->msg.node;
	if (about >= r->conf.size) {
		breach(r, i, "asks for a node that the job does not have");
		return;
	}
	const struct node *born = &r->node[about];
	if (!listens(&r->node[i]) || born->state != JOINED ||
		born->incarnation != p->msg.incarnation)
		return;
	tell_births(r);
	post_introduction(r, i, about);
	FAULT_POINT("yod.introduction_half");
	if (!has_met(born, i) && listens(born))
		post_introduction(r, about, i);
}

/* Answer an ASK with TOLD, behind the births before it.  Drop a queued answer to an
 * earlier ASK, since only the last one counts. */
static void on_ask(struct p3_rdv *r, uint32_t i, const struct packet *p)
{
	struct p3_job_msg m = message(r, P3_JOB_TOLD, i);
	m.incarnation = p->msg.incarnation;
	m.round = p->msg.round;
	if (!listens(&r->node[i]) || r->node[i].incarnation != m.incarnation)
		return;
	tell_births(r);
	p3_outq_drop(&r->node[i].out, P3_JOB_TOLD, &m);
	FAULT_POINT("yod.asked");
	post(r, i, &m);
}

static void on_watch(struct p3_rdv *r, uint32_t i, const struct packet *p)
{
	struct node *n = &r->node[i];
	if (!listens(n) || n->incarnation != p->msg.incarnation)
		return;
	n->watches = true;
	for (uint32_t k = 0; k < r->conf.size; k++)
		if (r->node[k].state == GONE)
			post_over(r, i, k);
}

static void on_barrier(struct p3_rdv *r, uint32_t i)
{
	struct node *n = &r->node[i];
	if ((n->state != KNOWN && n->state != JOINED) || n->waits) {
		breach(r, i, "enters the barrier out of turn");
		return;
	}
	n->waits = true;
	n->waits_since = p3_now_ms();
	if (!r->waits_n++)
		r->barrier_since = n->waits_since;
	barrier_look(r);
}

static bool owner_lives(const struct node *n)
{
	struct pollfd fd = {.fd = n->owner_fd, .events = POLLIN};
	if (n->owner_fd < 0)
		return kill((pid_t)n->owner, 0) == 0 || errno != ESRCH;
	return poll(&fd, 1, 0) == 0;
}

/* Return true if the packet must be ignored: the node's process lives, and another one,
 * such as a forked child, sent it.  If the node's process has ended, end the node; the
 * sender is the wrapper's next program, and may become the node. */
static bool is_stranger(struct p3_rdv *r, uint32_t i, const struct packet *p)
{
	struct node *n = &r->node[i];
	if (n->state == NEW || n->state == GONE || p->from.os_pid == n->owner)
		return false;
	if (!owner_lives(n)) {
		if (n->state == JOINED)
			unjoin(r, i, P3_JOB_DIED, 0, true);
		node_over(r, i);
		return false;
	}
	if (!n->scolded)
		tell(r,
			"rank %u: process %u speaks for the node that process %u is; "
			"ignored "
			"(start it by a yod of its own)",
			i, p->from.os_pid, n->owner);
	n->scolded = true;
	return true;
}

static void dispatch(struct p3_rdv *r, uint32_t i, struct packet *p)
{
	unsigned join = p->msg.heap_len ? P3_JOB_FDS : P3_JOB_FDS - 1;
	unsigned want = p->msg.op == P3_JOB_JOIN ? join : 0;
	if (p->nfds != want) {
		breach(r, i, "sends a wrong number of descriptors");
		return;
	}
	if (is_stranger(r, i, p))
		return;
	switch (p->msg.op) {
	case P3_JOB_HELLO:
		on_hello(r, i, p);
		return;
	case P3_JOB_JOIN:
		on_join(r, i, p);
		return;
	case P3_JOB_PIDS:
		on_pids(r, i, p);
		return;
	case P3_JOB_LEAVE:
		on_leave(r, i, p);
		return;
	case P3_JOB_DROPPED:
		on_dropped(r, i, p);
		return;
	case P3_JOB_BARRIER:
		on_barrier(r, i);
		return;
	case P3_JOB_AGAIN:
		on_again(r, i, p);
		return;
	case P3_JOB_ASK:
		on_ask(r, i, p);
		return;
	case P3_JOB_WATCH:
		on_watch(r, i, p);
		return;
	}
	breach(r, i, "sends a packet that nodes do not send");
}

/* Find the sender.  If SO_PASSCRED was not set when the packet was sent, take the process
 * that made the socket. */
static void know_sender(int sock, struct p3_job_from *from)
{
	struct ucred cred;
	socklen_t len = sizeof cred;
	if (from->os_pid || getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return;
	if (from->uid == UINT32_MAX || from->uid == 65534)
		*from = (struct p3_job_from){(uint32_t)cred.pid, cred.uid};
}

static void other_version(struct p3_rdv *r, uint32_t i, uint32_t magic)
{
	char text[80];
	snprintf(text, sizeof text, "speaks version %u of yod's protocol, this yod %u",
		p3_job_version(magic), p3_job_version(P3_JOB_MAGIC));
	breach(r, i, text);
}

/* Take one packet.  Return false if there is no more for now, or the socket is gone. */
static bool take_packet(struct p3_rdv *r, uint32_t i)
{
	struct node *n = &r->node[i];
	struct packet p = {.nfds = 0};
	int rc = p3_job_recv_from(n->sock, &p.msg, p.fds, &p.nfds, &p.from);
	if (rc == -EAGAIN)
		return false;
	if (rc == -EMFILE) {
		tell(r,
			"rank %u: joins, and yod has no descriptors left for it; cut "
			"off; "
			"raise ulimit -Hn, or use fewer nodes",
			i);
		cut_off(r, i);
		return false;
	}
	if (rc == -EPROTONOSUPPORT) {
		other_version(r, i, p.msg.magic);
		return false;
	}
	if (rc == -EPROTO) {
		breach(r, i, "sends what is no packet of this yod");
		return false;
	}
	if (rc) {
		sock_close(r, i);
		node_lost(r, i);
		return false;
	}
	know_sender(n->sock, &p.from);
	dispatch(r, i, &p);
	close_fds(p.fds, p.nfds);
	return n->sock >= 0;
}

static void read_sock(struct p3_rdv *r, uint32_t i, unsigned most)
{
	for (unsigned k = 0; k < most; k++)
		if (r->node[i].sock < 0 || !take_packet(r, i))
			return;
}

/* ---- the loop ---- */

/* Read the packets that a process sent before it ended, since a LEAVE among them counts;
 * then note its end. */
static void owner_ended(struct p3_rdv *r, uint32_t i)
{
	read_sock(r, i, PACKETS_LAST);
	if (r->node[i].owner_fd < 0 || owner_lives(&r->node[i]))
		return;
	epoll_ctl(r->ep, EPOLL_CTL_DEL, r->node[i].owner_fd, NULL);
	node_lost(r, i);
}

static void node_late(struct p3_rdv *r, uint32_t i, int64_t now)
{
	struct node *n = &r->node[i];
	if (n->fate_at <= now)
		node_died(r, i, 0);
	if (n->reap_at <= now)
		owe_nothing(r, n);
	if (n->retry)
		flush(r, i);
}

static void timer_expired(struct p3_rdv *r)
{
	uint64_t ticks;
	if (read(r->timer, &ticks, sizeof ticks) < 0)
		return;
	r->timer_at = P3_NEVER;
	int64_t now = p3_now_ms();
	if (r->tell_at <= now)
		tell_births(r);
	timer_arm(r, r->tell_at);
	for (uint32_t i = 0; i < r->conf.size; i++)
		node_late(r, i, now);
	for (uint32_t i = 0; i < r->conf.size; i++)
		timer_arm(r, p3_earlier(r->node[i].fate_at, r->node[i].reap_at));
}

static void take_event(struct p3_rdv *r, const struct epoll_event *ev)
{
	uint32_t i = (uint32_t)ev->data.u64;
	switch ((enum watch)(ev->data.u64 >> 32)) {
	case WATCH_SOCK:
		if (ev->events & EPOLLOUT)
			flush(r, i);
		if (ev->events & (EPOLLIN | EPOLLHUP | EPOLLERR))
			read_sock(r, i, PACKETS);
		return;
	case WATCH_OWNER:
		if (r->node[i].owner_fd >= 0)
			owner_ended(r, i);
		return;
	case WATCH_TIMER:
		timer_expired(r);
		return;
	}
}

int p3_rdv_step(struct p3_rdv *r, int timeout_ms)
{
	struct epoll_event ev[EVENTS];
	int n = epoll_wait(r->ep, ev, EVENTS, timeout_ms);
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	for (int k = 0; k < n; k++)
		take_event(r, &ev[k]);
	return 0;
}

/* ---- yod's side ---- */

static void node_init(struct p3_rdv *r, uint32_t i)
{
	struct node *n = &r->node[i];
	size_t words = (r->conf.size + 63) / 64;
	*n = (struct node){.sock = -1,
		.owner_fd = -1,
		.fds = {-1, -1, -1, -1},
		.fate_at = P3_NEVER,
		.reap_at = P3_NEVER,
		.owed = r->bits + 3 * i * words,
		.over = r->bits + (3 * i + 1) * words,
		.met = r->bits + (3 * i + 2) * words};
	p3_outq_init(&n->out);
}

/* Make the file of sleepers (shm/layout.h).  Without it each node sleeps on a word of its
 * own doorbell, and a sender's look at these words takes longer. */
static void make_sleepers(struct p3_rdv *r)
{
	r->sleepers = -1;
	if (r->conf.in_domain)
		return;
	int fd = p3_sleepers_make(r->conf.size);
	if (fd < 0)
		tell(r,
			"no memory for what all nodes sleep on (%s): each has its own, "
			"which costs some speed; check the limits of open files (ulimit "
			"-n)",
			strerror(-fd));
	else
		r->sleepers = fd;
}

static int rdv_open(struct p3_rdv *r)
{
	r->timer_at = r->tell_at = P3_NEVER;
	make_sleepers(r);
	r->ep = epoll_create1(EPOLL_CLOEXEC);
	r->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (r->ep < 0 || r->timer < 0)
		return -errno;
	return watch(r, EPOLL_CTL_ADD, r->timer, WATCH_TIMER, 0, EPOLLIN);
}

struct p3_rdv *p3_rdv_create(const struct p3_rdv_conf *conf)
{
	size_t size = conf->size;
	struct p3_rdv *r = calloc(1, sizeof *r + size * sizeof r->node[0]);
	uint64_t *bits = calloc(3 * size * ((size + 63) / 64), sizeof *bits);
	uint32_t *untold = calloc(size, sizeof *untold);
	if (!r || !bits || !untold || !size) {
		free(r);
		free(bits);
		free(untold);
		errno = size ? ENOMEM : EINVAL;
		return NULL;
	}
	r->conf = *conf;
	r->bits = bits;
	r->untold = untold;
	for (uint32_t i = 0; i < conf->size; i++)
		node_init(r, i);

	int rc = rdv_open(r);
	if (!rc)
		return r;
	p3_rdv_destroy(r);
	errno = -rc;
	return NULL;
}

void p3_rdv_destroy(struct p3_rdv *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; i < r->conf.size; i++) {
		owner_forget(r, &r->node[i]);
		sock_close(r, i);
		close_fds(r->node[i].fds, P3_JOB_FDS);
	}
	if (r->sleepers >= 0)
		close(r->sleepers);
	if (r->timer >= 0)
		close(r->timer);
	if (r->ep >= 0)
		close(r->ep);
	free(r->bits);
	free(r->untold);
	free(r);
}

static int check_user(int sock)
{
	struct ucred cred;
	socklen_t len = sizeof cred;
	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return -errno;
	return cred.uid == geteuid() ? 0 : -EPERM;
}

static int prepare_sock(int sock)
{
	int on = 1;
	int flags = fcntl(sock, F_GETFL);
	if (flags < 0 || fcntl(sock, F_SETFL, flags | O_NONBLOCK))
		return -errno;
	if (setsockopt(sock, SOL_SOCKET, SO_PASSCRED, &on, sizeof on))
		return -errno;
	return check_user(sock);
}

int p3_rdv_add(struct p3_rdv *r, uint32_t i, int sock)
{
	if (i >= r->conf.size)
		return -EINVAL;
	struct node *n = &r->node[i];
	if (n->sock >= 0 || n->state == JOINED)
		return -EBUSY;
	int rc = prepare_sock(sock);
	if (!rc)
		rc = watch(r, EPOLL_CTL_ADD, sock, WATCH_SOCK, i, EPOLLIN);
	if (rc)
		return rc;
	set_back(r, i);
	n->state = NEW;
	n->ended = false;
	n->sock = sock;
	return 0;
}

int p3_rdv_fd(const struct p3_rdv *r)
{
	return r->ep;
}

void p3_rdv_ended(struct p3_rdv *r, uint32_t i, int wait_status)
{
	if (i >= r->conf.size || r->node[i].ended)
		return;
	struct node *n = &r->node[i];
	read_sock(r, i, PACKETS_LAST);
	n->ended = true;
	n->status = wait_status;
	bool orderly = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
	if (n->state == JOINED)
		unjoin(r, i, orderly ? P3_JOB_LEFT : P3_JOB_DIED, wait_status, true);
	sock_close(r, i);
	node_over(r, i);
}

bool p3_rdv_may_reap(const struct p3_rdv *r, uint32_t i)
{
	return i >= r->conf.size || !r->node[i].owed_n;
}

uint32_t p3_rdv_joined(const struct p3_rdv *r)
{
	return r->joined_n;
}

uint32_t p3_rdv_barrier(const struct p3_rdv *r, int64_t *since_out)
{
	*since_out = r->barrier_since;
	return r->waits_n;
}

uint32_t p3_rdv_queued(const struct p3_rdv *r, uint32_t i)
{
	return i < r->conf.size ? r->node[i].out.n : 0;
}

void p3_rdv_show(const struct p3_rdv *r, uint32_t i, struct p3_rdv_view *out)
{
	const struct node *n = &r->node[i];
	*out = (struct p3_rdv_view){.state = n->was,
		.inited = n->state == KNOWN || n->state == JOINED,
		.ended = n->ended,
		.status = n->status,
		.barrier_n = n->waits ? r->waits_n : 0,
		.barrier_since = n->waits_since,
		.os_pid = n->owner,
		.nid = r->conf.nid_base + i,
		.pid = {n->pid[0], n->pid[1]},
		.incarnation = n->incarnation,
		.layout = r->conf.layout,
		.seg_len = n->seg_len,
		.published = n->fds[FD_PUBLISHED],
		.host = n->fds[FD_HOST]};
}
