/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table's bits and view, the sending and queueing of packets to nodes; membership:
 * nodes that join, the barrier and the cards, nodes that end.
 */
#include "launcher/rdv/table.h"
#include "shm/fault.h"
#include "shm/layout.h"
#include "shm/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Copy the descriptors that a birth of the node carries. */
static void rdv_copy_fds_of(const struct p3_rdv_node *born, int fds_out[3])
{
	fds_out[0] = born->fds[FD_PUBLISHED];
	fds_out[1] = born->fds[FD_DOORBELL];
	fds_out[2] = born->heap_len ? born->fds[FD_HEAP] : -1;
}

void p3_rdv_owe_no_more(struct p3_rdv *r, uint32_t by, uint32_t dead)
{
	uint8_t *pair = &r->node[by].pair[dead];
	r->node[dead].owed_n -= (*pair & PAIR_OWES) != 0;
	*pair &= (uint8_t)~PAIR_OWES;
}

void p3_rdv_owe_nothing(struct p3_rdv *r, uint32_t dead)
{
	for (uint32_t by = 0; by < r->conf.size; by++)
		p3_rdv_owe_no_more(r, by, dead);
	r->node[dead].reap_at = P3_NEVER;
}

/* yod waits for nothing from node i. */
static void rdv_node_owes_nobody(struct p3_rdv *r, uint32_t i)
{
	for (uint32_t dead = 0; dead < r->conf.size; dead++)
		p3_rdv_owe_no_more(r, i, dead);
}

bool p3_rdv_may_reap(const struct p3_rdv *r, uint32_t i)
{
	return i >= r->conf.size || !r->node[i].owed_n;
}

uint32_t p3_rdv_barrier(const struct p3_rdv *r, int64_t *since_out)
{
	*since_out = r->barrier_since;
	return r->waits_n;
}

void p3_rdv_show(const struct p3_rdv *r, uint32_t i, struct p3_attach_msg *out,
	int fds_out[P3_ATTACH_FDS])
{
	const struct p3_rdv_node *n = &r->node[i];
	bool elsewhere = r->conf.here && i - r->conf.first >= r->conf.here;
	*out = (struct p3_attach_msg){.magic = P3_ATTACH_MAGIC,
		.op = P3_ATTACH_NODE,
		.node = i,
		.size = r->conf.size,
		.jid = r->conf.jid,
		.uid = getuid(),
		.nid = r->conf.nid_base + i,
		.pid = {n->pid[0], n->pid[1]},
		.os_pid = n->owner,
		.started_pid = n->started_pid,
		.state = elsewhere ? P3_RDV_ELSEWHERE : n->was,
		.inited = n->state == NODE_KNOWN || n->state == NODE_JOINED,
		.ended = n->ended,
		.status = n->status,
		.barrier_n = n->waits ? r->waits_n : 0,
		.barrier_ms = n->waits ? (uint32_t)(p3_now_ms() - n->waits_since) : 0,
		.remains = n->fds[FD_PUBLISHED] >= 0 && n->fds[FD_HOST] < 0,
		.incarnation = n->incarnation,
		.layout = r->conf.layout,
		.seg_len = n->seg_len};
	if (fds_out)
		memcpy(fds_out, (const int[]){n->fds[FD_PUBLISHED], n->fds[FD_HOST]},
			P3_ATTACH_FDS * sizeof *fds_out);
}

/* ---- queues ---- */

/* Keep copies of a peer's descriptors (-1: it has none) with the packet, because the
 * table is about to close them.  Return 0, or -errno with none kept. */
static int outq_keep_fds(struct p3_out *o, const int fds[3])
{
	for (unsigned k = 0; k < 3; k++) {
		if (fds[k] < 0)
			continue;
		o->fds[k] = fcntl(fds[k], F_DUPFD_CLOEXEC, 0);
		if (o->fds[k] < 0) {
			int rc = -errno;
			p3_close_fds(o->fds, 3);
			return rc;
		}
	}
	return 0;
}

static void outq_unlink_at(struct p3_outq *q, struct p3_out **at)
{
	struct p3_out *o = *at;
	*at = o->next;
	if (q->end == &o->next)
		q->end = at;
	q->n--;
	p3_close_fds(o->fds, 3);
	free(o);
}

/* Return the place of the packet of this operation about m's node and incarnation, or of
 * NULL. */
static struct p3_out **outq_find(
	struct p3_outq *q, enum p3_job_op op, const struct p3_job_msg *m)
{
	struct p3_out **at = &q->first;
	while (*at && ((*at)->msg.op != op || (*at)->msg.node != m->node ||
			      (*at)->msg.incarnation != m->incarnation))
		at = &(*at)->next;
	return at;
}

void p3_outq_drop(struct p3_outq *q, enum p3_job_op op, const struct p3_job_msg *m)
{
	struct p3_out **at = outq_find(q, op, m);
	if (*at)
		outq_unlink_at(q, at);
}

/* Remove all births, ends and pid changes of peers, and JOINED; answers to the node's
 * other requests stay. */
static void outq_drop_news(struct p3_outq *q)
{
	static const uint32_t news = 1u << P3_JOB_BORN | 1u << P3_JOB_JOINED |
				     1u << P3_JOB_PIDS | 1u << P3_JOB_DIED |
				     1u << P3_JOB_LEFT | 1u << P3_JOB_TOLD |
				     1u << P3_JOB_OVER;
	struct p3_out **at = &q->first;
	while (*at)
		if (news >> (*at)->msg.op & 1)
			outq_unlink_at(q, at);
		else
			at = &(*at)->next;
}

static void outq_clear(struct p3_outq *q)
{
	while (q->first)
		outq_unlink_at(q, &q->first);
}

/* ---- sending ---- */

/* time until a send that lacked memory, or room for descriptors in flight, is tried
 * again: no event tells when there is room */
#define RETRY_MS     10
#define QUEUE_MAX(n) (4 * (size_t)(n) + 64)

struct p3_job_msg p3_rdv_message(const struct p3_rdv *r, enum p3_job_op op, uint32_t i)
{
	return (struct p3_job_msg){.magic = P3_JOB_MAGIC,
		.op = op,
		.node = i,
		.incarnation = r->node[i].incarnation};
}

/* Send a packet with its descriptors.  kept holds the copies of them that a queued BORN
 * has; if it is NULL or has none, send the born node's own. */
static int rdv_transmit(struct p3_rdv *r, struct p3_rdv_node *to,
	const struct p3_job_msg *m, const int *kept)
{
	const struct p3_rdv_node *born = &r->node[m->node];
	int fds[3] = {r->sleepers, -1, -1};
	unsigned n = 0;
	if (m->op == P3_JOB_BORN) {
		bool copies = kept && kept[0] >= 0;
		rdv_copy_fds_of(born, fds);
		if (copies || to->pair[m->node] & PAIR_MET)
			n = m->heap_len ? 3 : 2;
		return p3_job_send(to->sock, m, copies ? kept : fds, n);
	}
	if (m->op == P3_JOB_CARDS) {
		fds[0] = r->cards;
		n = !m->status && r->cards >= 0;
	} else if (m->op == P3_JOB_WELCOME) {
		fds[0] = r->conf.hosts >= 0 ? r->conf.hosts : r->sleepers;
		n = fds[0] >= 0;
	}
	return p3_job_send(to->sock, m, fds, n);
}

/* Return true if the packet must be sent later, or false if it was sent or can never be
 * sent. */
static bool rdv_must_wait(struct p3_rdv *r, struct p3_rdv_node *to, int rc)
{
	if (rc == -ETOOMANYREFS || rc == -ENOMEM || rc == -ENOBUFS) {
		to->retry = true;
		p3_loop_before(r->conf.loop, &r->timer, p3_now_ms() + RETRY_MS);
		return true;
	}
	return rc == -EAGAIN;
}

static void rdv_want_writes(struct p3_rdv *r, uint32_t i, bool on)
{
	(void)p3_loop_watch(
		r->conf.loop, &r->node[i].on_sock, on ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

void p3_rdv_flush(struct p3_rdv *r, uint32_t i)
{
	struct p3_rdv_node *n = &r->node[i];
	if (n->sock < 0)
		return;
	n->retry = false;
	while (n->out.first) {
		if (rdv_must_wait(r, n,
			    rdv_transmit(r, n, &n->out.first->msg, n->out.first->fds)))
			break;
		outq_unlink_at(&n->out, &n->out.first);
	}
	rdv_want_writes(r, i, n->out.first && !n->retry);
}

void p3_rdv_post(struct p3_rdv *r, uint32_t i, const struct p3_job_msg *m)
{
	struct p3_rdv_node *n = &r->node[i];
	if (n->sock < 0)
		return;
	if (!n->out.first && !rdv_must_wait(r, n, rdv_transmit(r, n, m, NULL)))
		return;
	struct p3_out *o = n->out.n < QUEUE_MAX(r->conf.size) ? malloc(sizeof *o) : NULL;
	if (!o) {
		/* Its queue is too long.  Only shut its socket down: closing it here,
		 * inside a broadcast, would begin another one.  The next step sees the
		 * end of file. */
		r->conf.say(
			"rank %u: does not read what it asks for (%u packets queued); "
			"cut off",
			i, r->node[i].out.n);
		outq_clear(&r->node[i].out);
		shutdown(r->node[i].sock, SHUT_RDWR);
		return;
	}
	*o = (struct p3_out){.msg = *m, .fds = {-1, -1, -1}};
	*n->out.end = o;
	n->out.end = &o->next;
	n->out.n++;
	rdv_want_writes(r, i, !n->retry);
}

/* ---- nodes that join ---- */

struct p3_job_msg p3_rdv_message_born(const struct p3_rdv *r, uint32_t i)
{
	const struct p3_rdv_node *n = &r->node[i];
	struct p3_job_msg m = p3_rdv_message(r, P3_JOB_BORN, i);
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

void p3_rdv_post_born(struct p3_rdv *r, uint32_t to, uint32_t about)
{
	struct p3_job_msg m = p3_rdv_message_born(r, about);
	p3_rdv_post(r, to, &m);
}

void p3_rdv_post_introduction(struct p3_rdv *r, uint32_t to, uint32_t about)
{
	struct p3_job_msg m = p3_rdv_message_born(r, about);
	r->node[to].pair[about] |= PAIR_MET;
	struct p3_out *o = *outq_find(&r->node[to].out, P3_JOB_BORN, &m);
	if (o) /* the queued birth carries the descriptors now */
		o->news |= !o->again;
	else
		p3_rdv_post(r, to, &m);
	if (o || (o = *outq_find(&r->node[to].out, P3_JOB_BORN, &m)))
		o->again = true;
}

void p3_rdv_post_pids(struct p3_rdv *r, uint32_t to, const struct p3_job_msg *m)
{
	struct p3_out *o = *outq_find(&r->node[to].out, P3_JOB_BORN, m);
	if (!o)
		o = *outq_find(&r->node[to].out, P3_JOB_PIDS, m);
	if (!o) {
		p3_rdv_post(r, to, m);
		return;
	}
	/* A closed interface keeps its pid for its earlier messages. */
	for (int k = 0; k < P3_JOB_NIS; k++)
		if (m->pid[k] != P3_JOB_NO_PID)
			o->msg.pid[k] = m->pid[k];
}

void p3_rdv_tell_births(struct p3_rdv *r)
{
	uint32_t n = r->untold_n;
	r->untold_n = 0;
	r->tell_at = P3_NEVER;
	for (uint32_t to = 0; n && to < r->conf.size; to++)
		for (uint32_t k = 0; k < n && p3_rdv_listens(&r->node[to]); k++) {
			const struct p3_rdv_node *born = &r->node[r->untold[k]];
			if (born->joined_as > r->node[to].joined_as)
				p3_rdv_post_born(r, to, r->untold[k]);
			FAULT_POINT("yod.births_half");
		}
}

/* ---- the barrier ---- */

/* Pass news of this host on.  Return false if this process decides about them. */
static bool rdv_pass_on(struct p3_rdv *r, enum p3_frame_op what, uint32_t i)
{
	struct p3_frame f = {.op = what, .node = i, .number = r->round};
	if (r->conf.parent)
		p3_frames_send(r->conf.parent, f, NULL);
	return r->conf.parent;
}

/* Release the waiting nodes; ended is a rank whose end makes this barrier fail.  If its
 * failure ends the job, do not tell the nodes its name: yod prints it, and a line of
 * each node would only repeat that. */
static void rdv_barrier_release(struct p3_rdv *r, int status, uint32_t ended)
{
	p3_rdv_tell_births(r);
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
		p3_rdv_post(r, i, &m);
		FAULT_POINT("yod.barrier_half");
	}
	r->waits_n = 0;
}

void p3_rdv_barrier_look(struct p3_rdv *r)
{
	if (r->waits_n && r->gone_n)
		rdv_barrier_release(r, EPIPE, r->first_gone);
	if (r->told || r->waits_n != (r->conf.here ? r->conf.here : r->conf.size))
		return;
	r->told = rdv_pass_on(r, P3_FRAME_BARRIER, P3_JOB_NO_RANK);
	if (!r->told)
		rdv_barrier_release(r, 0, P3_JOB_NO_RANK);
}

/* ---- cards ---- */

/* Hand the cards of all ranks to the nodes that wait for them, or the news that a rank
 * has ended without a card. */
static void rdv_take_cards(struct p3_rdv *r, const struct p3_frame *f, const char *cards)
{
	int status = f->value;
	p3_close_fds(&r->cards, 1);
	if (!status)
		r->cards = memfd_create("p3-cards", MFD_CLOEXEC);
	if (r->cards >= 0 && write(r->cards, cards, f->len) != (ssize_t)f->len)
		p3_close_fds(&r->cards, 1);
	for (uint32_t i = 0; i < r->conf.size; i++) {
		struct p3_job_msg m = p3_rdv_message(r, P3_JOB_CARDS, i);
		if (!r->node[i].awaits_cards)
			continue;
		r->node[i].awaits_cards = false;
		m.status = r->cards < 0 ? (status ? status : ENOMEM) : 0;
		m.ended = f->node;
		m.seg_len = P3_JOB_CARD_LEN;
		p3_rdv_post(r, i, &m);
	}
}

/* ---- remains ---- */

#define PIECE 16384u
/* The longest trace that is copied.  A longer copy would hold up yod's other work: 8
 * MiB take about 5 ms. */
#define COPIES_MOST (UINT64_C(8) << 20)
#define SEALS       (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)

/* Copy len bytes, or fewer if the file ends before.  Read the file instead of mapping it:
 * a hole in the file then raises no signal. */
static int remains_copy(int to, int from, uint64_t off, uint64_t len)
{
	char piece[PIECE];
	while (len) {
		ssize_t n = pread(from, piece, len < PIECE ? len : PIECE, (off_t)off);
		if (n > 0)
			n = pwrite(to, piece, (size_t)n, (off_t)off);
		if (n <= 0)
			return n ? -errno : 0;
		off += (uint64_t)n;
		len -= (uint64_t)n;
	}
	return 0;
}

int p3_remains_make(int published)
{
	struct stat st;
	struct p3_trace_header h;
	uint32_t nnodes = p3_trace_nodes(published);
	if (!nnodes)
		return -EPROTO;
	if (fstat(published, &st))
		return -errno;
	struct p3_layout l = p3_layout_of(nnodes);
	uint64_t size = (uint64_t)st.st_size, trace = 0;
	/* The trace has the length that its owner tells, if the file has room for it. */
	if (size > l.seg_len &&
		pread(published, &h, sizeof h, (off_t)l.seg_len) == sizeof h &&
		h.magic == P3_TRACE_MAGIC && h.records <= P3_TRACE_MOST)
		trace = p3_trace_len(h.records);
	trace = trace <= size - l.seg_len ? trace : 0;
	int fd = trace > COPIES_MOST
			 ? fcntl(published, F_DUPFD_CLOEXEC, 0)
			 : memfd_create("p3-remains", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	if (trace > COPIES_MOST)
		return fd;
	int rc = ftruncate(fd, (off_t)size) ? -errno : 0;
	rc = rc ? rc : remains_copy(fd, published, 0, l.parts_off);
	rc = rc ? rc : remains_copy(fd, published, l.seg_len, trace);
	rc = rc || !fcntl(fd, F_ADD_SEALS, SEALS) ? rc : -errno;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

/* ---- ends ---- */

#define ENDING_MS 5000 /* longest time that a process may take to end in the kernel */

/* Tell one node of an end.  If the birth is still queued for it, remove the birth,
 * send no end and return false, except for a birth that introduces the ended node:
 * keep copies of that one's descriptors with it, which the node needs to read the
 * peer's last messages.  If the end of an earlier life of the peer is queued, keep
 * none: introductions of a peer that lives and ends many times would fill the queue. */
static bool rdv_post_end(struct p3_rdv *r, uint32_t to, const struct p3_job_msg *m)
{
	struct p3_rdv_node *n = &r->node[to];
	struct p3_out *birth = *outq_find(&n->out, P3_JOB_BORN, m);
	int fds[3], rc = -ENOENT;
	bool ended = false; /* the end of any incarnation of the peer is queued */
	for (const struct p3_out *o = n->out.first; o; o = o->next)
		ended |= o->msg.node == m->node &&
			 (o->msg.op == P3_JOB_LEFT || o->msg.op == P3_JOB_DIED);
	if (birth && birth->again && !ended) {
		rdv_copy_fds_of(&r->node[m->node], fds);
		rc = outq_keep_fds(birth, fds);
	}
	if (rc == -EMFILE || rc == -ENFILE)
		r->conf.say(
			"rank %u: yod has no descriptors left for the memory of rank %u, "
			"which has ended; its last messages are lost; raise ulimit -Hn, "
			"or use fewer nodes",
			to, m->node);
	bool heard = !birth || !rc || (birth->again && !birth->news);
	if (birth && rc)
		p3_outq_drop(&n->out, P3_JOB_BORN, m);
	p3_outq_drop(&n->out, P3_JOB_PIDS, m);
	if (heard)
		p3_rdv_post(r, to, m);
	return heard;
}

void p3_rdv_post_over(struct p3_rdv *r, uint32_t to, uint32_t about)
{
	struct p3_job_msg m = p3_rdv_message(r, P3_JOB_OVER, about);
	if (r->node[to].watches && p3_rdv_listens(&r->node[to]))
		p3_rdv_post(r, to, &m);
}

static void rdv_count_gone(struct p3_rdv *r, uint32_t i)
{
	if (!r->gone_n++)
		r->first_gone = i;
}

static void rdv_mark_gone(struct p3_rdv *r, uint32_t i)
{
	r->node[i].state = NODE_GONE;
	for (uint32_t to = 0; to < r->conf.size; to++)
		p3_rdv_post_over(r, to, i);
}

/* On several hosts, barriers fail only when yod says so: all hosts then hear of
 * releases and ends in one order. */
void p3_rdv_set_gone(struct p3_rdv *r, uint32_t i)
{
	rdv_mark_gone(r, i);
	if (!rdv_pass_on(r, P3_FRAME_GONE, i))
		rdv_count_gone(r, i);
}

void p3_rdv_order(struct p3_rdv *r, const struct p3_frame *f, const char *bytes)
{
	if (f->op == P3_FRAME_CARDS)
		rdv_take_cards(r, f, bytes);
	if (f->op == P3_FRAME_RELEASED) {
		r->told = false;
		r->round = f->number + 1;
		rdv_barrier_release(r, f->value, f->node);
	}
	if (f->op != P3_FRAME_GONE || f->node >= r->conf.size)
		return;
	if (f->node - r->conf.first >= r->conf.here)
		rdv_mark_gone(r, f->node);
	rdv_count_gone(r, f->node);
	p3_rdv_barrier_look(r);
}

void p3_rdv_keep_remains(struct p3_rdv_node *n)
{
	int kept = p3_remains_make(n->fds[FD_PUBLISHED]);
	p3_close_fds(n->fds, P3_JOB_FDS);
	n->fds[FD_PUBLISHED] = kept < 0 ? -1 : kept;
}

void p3_rdv_owner_forget(struct p3_rdv *r, struct p3_rdv_node *n)
{
	(void)p3_loop_watch(r->conf.loop, &n->on_owner, 0);
	p3_close_fds(&n->on_owner.fd, 1);
}

void p3_rdv_sock_close(struct p3_rdv *r, uint32_t i)
{
	struct p3_rdv_node *n = &r->node[i];
	if (n->sock < 0)
		return;
	(void)p3_loop_watch(r->conf.loop, &n->on_sock, 0);
	close(n->sock);
	n->sock = -1;
	n->retry = false;
	outq_clear(&n->out);
	rdv_node_owes_nobody(r, i);
}

void p3_rdv_unjoin(struct p3_rdv *r, uint32_t i, enum p3_job_op op, int status, bool owed)
{
	struct p3_rdv_node *n = &r->node[i];
	p3_rdv_tell_births(r);
	n->state = NODE_KNOWN;
	n->fate_at = P3_NEVER;
	outq_drop_news(&n->out);
	n->watches = false;
	rdv_node_owes_nobody(r, i);
	struct p3_job_msg m = p3_rdv_message(r, owed ? P3_JOB_DIED : P3_JOB_LEFT, i);
	m.status = status;
	p3_rdv_owe_nothing(r, i);
	for (uint32_t to = 0; to < r->conf.size; to++) {
		uint8_t *pair = &r->node[to].pair[i];
		if (to == i || !p3_rdv_listens(&r->node[to]))
			continue;
		if (rdv_post_end(r, to, &m) && owed && *pair & PAIR_MET) {
			*pair |= PAIR_OWES;
			n->owed_n++;
		}
		FAULT_POINT("yod.end_half_told");
	}
	if (n->owed_n) {
		n->reap_at = p3_now_ms() + P3_JOB_REAP_MS;
		p3_loop_before(r->conf.loop, &r->timer, n->reap_at);
	}
	n->was = op == P3_JOB_DIED ? P3_RDV_DIED : P3_RDV_LEFT;
	if (r->conf.life)
		r->conf.life(r->conf.arg, i, n->fds[FD_PUBLISHED], n->was);
	if (op == P3_JOB_DIED) {
		/* No process needs the memory of its doorbell and heap now.  Keep the
		 * published and the host segment for lookers. */
		p3_close_fds(&n->fds[FD_DOORBELL], 1);
		p3_close_fds(&n->fds[FD_HEAP], 1);
	} else
		p3_rdv_keep_remains(n);
}

void p3_rdv_node_over(struct p3_rdv *r, uint32_t i)
{
	struct p3_rdv_node *n = &r->node[i];
	n->fate_at = P3_NEVER;
	if (n->state == NODE_GONE)
		return;
	p3_rdv_owner_forget(r, n);
	if (n->waits) {
		n->waits = false;
		r->waits_n--;
		r->told = r->told && !rdv_pass_on(r, P3_FRAME_BARRIER, i);
	}
	if (n->sock < 0)
		p3_rdv_set_gone(r, i);
	else
		n->state = NODE_NEW;
	p3_rdv_barrier_look(r);
}

void p3_rdv_node_died(struct p3_rdv *r, uint32_t i, int status)
{
	if (r->node[i].state == NODE_JOINED) {
		p3_rdv_unjoin(r, i, P3_JOB_DIED, status, true);
		if (!rdv_pass_on(r, P3_FRAME_BROKEN, i))
			rdv_barrier_release(r, EPIPE, i);
	}
	p3_rdv_node_over(r, i);
}

void p3_rdv_node_lost(struct p3_rdv *r, uint32_t i)
{
	struct p3_rdv_node *n = &r->node[i];
	bool goes_on = n->state != NODE_JOINED && n->sock >= 0;
	if (!r->conf.eof_ms || goes_on) {
		p3_rdv_node_died(r, i, 0);
		return;
	}
	if (n->fate_at != P3_NEVER || n->state == NODE_GONE)
		return;
	n->fate_at = p3_now_ms() + r->conf.eof_ms;
	n->fate_by = n->fate_at + ENDING_MS;
	p3_loop_before(r->conf.loop, &r->timer, n->fate_at);
}

void p3_rdv_cut_off(struct p3_rdv *r, uint32_t i)
{
	p3_rdv_sock_close(r, i);
	p3_rdv_node_died(r, i, 0);
}

void p3_rdv_breach(struct p3_rdv *r, uint32_t i, const char *what)
{
	r->conf.say(
		"rank %u: %s; cut off (run it with the libportals of this yod, and leave "
		"descriptor %s alone)",
		i, what, P3_JOB_ENV);
	p3_rdv_cut_off(r, i);
}
