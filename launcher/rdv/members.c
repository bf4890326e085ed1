/* SPDX-License-Identifier: BSD-3-Clause */
/* Membership: nodes that join, the barrier and the cards, nodes that end. */
#include "launcher/rdv/table.h"
#include "shm/fault.h"
#include "shm/seg.h"
#include "shm/layout.h"
#include "shm/trace.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* births in a job of n nodes are told after this time, several at once */
#define TELL_MS(n) ((n) < 1000 ? (n) / 10 : 100)

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
	p3_rdv_set_met(&r->node[to], about, true);
	struct p3_out *o = p3_outq_find(&r->node[to].out, P3_JOB_BORN, &m);
	if (o) { /* the queued birth carries the descriptors now */
		o->news |= !o->again;
		o->again = true;
		return;
	}
	p3_rdv_post(r, to, &m);
	o = p3_outq_find(&r->node[to].out, P3_JOB_BORN, &m);
	if (o)
		o->again = true;
}

void p3_rdv_post_pids(struct p3_rdv *r, uint32_t to, const struct p3_job_msg *m)
{
	struct p3_out *o = p3_outq_find(&r->node[to].out, P3_JOB_BORN, m);
	if (!o)
		o = p3_outq_find(&r->node[to].out, P3_JOB_PIDS, m);
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

void p3_rdv_tell_birth_later(struct p3_rdv *r, uint32_t i)
{
	int64_t ms = r->conf.apart ? TELL_MS(r->conf.size) : 0;
	if (!r->untold_n)
		r->tell_at = p3_now_ms() + ms;
	r->untold[r->untold_n++] = i;
	if (ms)
		p3_loop_before(r->conf.loop, &r->timer, r->tell_at);
	else
		p3_rdv_tell_births(r);
}

/* ---- the barrier ---- */

/* Tell news of this host where they are decided about. */
static void rdv_tell_news(struct p3_rdv *r, enum p3_rdv_news what, uint32_t i)
{
	r->conf.news(r->conf.news_arg, what, i, NULL, 0);
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
	if (p3_rdv_is_part(r)) {
		bool all = r->waits_n == r->conf.here && !r->told;
		r->told |= all;
		if (all)
			rdv_tell_news(r, P3_RDV_ALL_WAIT, P3_JOB_NO_RANK);
	} else if (r->waits_n == r->conf.size) {
		rdv_barrier_release(r, 0, P3_JOB_NO_RANK);
	}
}

void p3_rdv_release(struct p3_rdv *r, int status, uint32_t ended)
{
	r->told = false;
	rdv_barrier_release(r, status, ended);
}

/* ---- cards ---- */

static int rdv_make_cards_file(const void *bytes, size_t len)
{
	int fd = memfd_create("p3-cards", MFD_CLOEXEC);
	if (fd < 0 || write(fd, bytes, len) == (ssize_t)len)
		return fd;
	close(fd);
	return -1;
}

void p3_rdv_cards(struct p3_rdv *r, int status, uint32_t ended, const void *cards,
	size_t len, size_t each)
{
	p3_rdv_close_fds(&r->cards, 1);
	r->cards = status ? -1 : rdv_make_cards_file(cards, len);
	for (uint32_t i = 0; i < r->conf.size; i++) {
		struct p3_job_msg m = p3_rdv_message(r, P3_JOB_CARDS, i);
		if (!r->node[i].awaits_cards)
			continue;
		r->node[i].awaits_cards = false;
		m.status = r->cards < 0 ? (status ? status : ENOMEM) : 0;
		m.ended = ended;
		m.seg_len = each;
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

/* Return the length of the trace as its owner tells it, if the file has room for it;
 * else 0. */
static uint64_t remains_trace_len(int published, uint64_t off, uint64_t size)
{
	struct p3_trace_header h;
	if (size <= off || pread(published, &h, sizeof h, (off_t)off) != sizeof h)
		return 0;
	if (h.magic != P3_TRACE_MAGIC || h.records > P3_TRACE_MOST)
		return 0;
	uint64_t len = p3_trace_len(h.records);
	return len <= size - off ? len : 0;
}

static int remains_fill(
	int to, int published, const struct p3_layout *l, uint64_t trace, uint64_t size)
{
	struct rlimit most;
	/* Over the limit the kernel would send SIGXFSZ, which ends yod. */
	if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < size)
		return -EFBIG;
	int rc = ftruncate(to, (off_t)size) ? -errno : 0;
	if (!rc)
		rc = remains_copy(to, published, 0, l->parts_off);
	if (!rc)
		rc = remains_copy(to, published, l->seg_len, trace);
	return !rc && fcntl(to, F_ADD_SEALS, SEALS) ? -errno : rc;
}

int p3_remains_make(int published)
{
	struct stat st;
	uint32_t nnodes = p3_trace_nodes(published);
	if (!nnodes)
		return -EPROTO;
	if (fstat(published, &st))
		return -errno;
	struct p3_layout l = p3_layout_of(nnodes);
	uint64_t size = (uint64_t)st.st_size;
	uint64_t trace = remains_trace_len(published, l.seg_len, size);
	int fd = trace > COPIES_MOST
			 ? fcntl(published, F_DUPFD_CLOEXEC, 0)
			 : memfd_create("p3-remains", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	int rc = trace > COPIES_MOST ? 0 : remains_fill(fd, published, &l, trace, size);
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

/* ---- ends ---- */

#define ENDING_MS 5000 /* longest time that a process may take to end in the kernel */

/* Keep copies of the ended peer's descriptors with the introduction o in a node's queue:
 * the node needs them to read the peer's last messages.  Return false if o is no
 * introduction, on an error, or if the end of an earlier life of the peer is queued:
 * introductions of a peer that lives and ends many times would fill the queue. */
static bool rdv_keep_introduction(
	struct p3_rdv *r, uint32_t to, struct p3_out *o, uint32_t peer)
{
	int fds[3];
	if (!o->again || p3_outq_has_end(&r->node[to].out, peer))
		return false;
	p3_rdv_copy_fds_of(&r->node[peer], fds);
	int rc = p3_outq_keep_fds(o, fds);
	if (rc == -EMFILE || rc == -ENFILE)
		p3_rdv_tell(r,
			"rank %u: yod has no descriptors left for the memory of rank %u, "
			"which has ended; its last messages are lost; raise ulimit -Hn, "
			"or use fewer nodes",
			to, peer);
	return rc == 0;
}

/* Tell one node of an end.  If the birth is still queued for it, remove the birth, send
 * no end and return false, except for a birth that introduces the ended node. */
static bool rdv_post_end(struct p3_rdv *r, uint32_t to, const struct p3_job_msg *m)
{
	struct p3_rdv_node *n = &r->node[to];
	struct p3_out *birth = p3_outq_find(&n->out, P3_JOB_BORN, m);
	bool kept = birth && rdv_keep_introduction(r, to, birth, m->node);
	bool heard = !birth || kept || (birth->again && !birth->news);
	if (birth && !kept)
		p3_outq_drop(&n->out, P3_JOB_BORN, m);
	p3_outq_drop(&n->out, P3_JOB_PIDS, m);
	if (heard)
		p3_rdv_post(r, to, m);
	return heard;
}

static void rdv_broadcast_end(
	struct p3_rdv *r, uint32_t i, enum p3_job_op op, int status, bool owed)
{
	struct p3_job_msg m = p3_rdv_message(r, op, i);
	m.status = status;
	p3_rdv_owe_nothing(r, &r->node[i]);
	for (uint32_t to = 0; to < r->conf.size; to++) {
		if (to == i || !p3_rdv_listens(&r->node[to]))
			continue;
		if (rdv_post_end(r, to, &m) && owed && p3_rdv_has_met(&r->node[to], i))
			p3_rdv_owe(&r->node[i], to);
		FAULT_POINT("yod.end_half_told");
	}
	if (!r->node[i].owed_n)
		return;
	r->node[i].reap_at = p3_now_ms() + P3_JOB_REAP_MS;
	p3_loop_before(r->conf.loop, &r->timer, r->node[i].reap_at);
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

/* On several hosts, barriers fail only when p3_rdv_gone() says so: all hosts then hear of
 * releases and ends in one order. */
void p3_rdv_set_gone(struct p3_rdv *r, uint32_t i)
{
	rdv_mark_gone(r, i);
	if (p3_rdv_is_part(r))
		rdv_tell_news(r, P3_RDV_GONE, i);
	else
		rdv_count_gone(r, i);
}

void p3_rdv_gone(struct p3_rdv *r, uint32_t i)
{
	if (i >= r->conf.size)
		return;
	if (i - r->conf.first >= r->conf.here)
		rdv_mark_gone(r, i);
	rdv_count_gone(r, i);
	p3_rdv_barrier_look(r);
}

void p3_rdv_set_back(struct p3_rdv *r, uint32_t i)
{
	if (r->node[i].state != NODE_GONE || p3_rdv_is_part(r))
		return;
	r->gone_n--;
	for (uint32_t k = 0; r->first_gone == i && k < r->conf.size; k++)
		if (k != i && r->node[k].state == NODE_GONE)
			r->first_gone = k;
}

void p3_rdv_keep_remains(struct p3_rdv_node *n)
{
	int kept = p3_remains_make(n->fds[FD_PUBLISHED]);
	p3_rdv_close_fds(n->fds, P3_JOB_FDS);
	n->fds[FD_PUBLISHED] = kept < 0 ? -1 : kept;
}

void p3_rdv_owner_forget(struct p3_rdv *r, struct p3_rdv_node *n)
{
	if (n->owner_fd >= 0) {
		(void)p3_loop_watch(r->conf.loop, &n->on_owner, 0);
		close(n->owner_fd);
	}
	n->owner_fd = -1;
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
	p3_outq_clear(&n->out);
	p3_rdv_node_owes_nobody(r, i);
}

void p3_rdv_unjoin(struct p3_rdv *r, uint32_t i, enum p3_job_op op, int status, bool owed)
{
	struct p3_rdv_node *n = &r->node[i];
	p3_rdv_tell_births(r);
	n->state = NODE_KNOWN;
	n->fate_at = P3_NEVER;
	p3_outq_drop_news(&n->out);
	n->watches = false;
	p3_rdv_node_owes_nobody(r, i);
	rdv_broadcast_end(r, i, owed ? P3_JOB_DIED : P3_JOB_LEFT, status, owed);
	n->was = op == P3_JOB_DIED ? P3_RDV_DIED : P3_RDV_LEFT;
	if (r->conf.over)
		r->conf.over(
			r->conf.over_arg, i, n->fds[FD_PUBLISHED], op == P3_JOB_DIED);
	if (op == P3_JOB_DIED) {
		/* No process needs the memory of its doorbell and heap now.  Keep the
		 * published and the host segment for lookers. */
		p3_rdv_close_fds(&n->fds[FD_DOORBELL], 1);
		p3_rdv_close_fds(&n->fds[FD_HEAP], 1);
	} else
		p3_rdv_keep_remains(n);
}

void p3_rdv_node_over(struct p3_rdv *r, uint32_t i)
{
	struct p3_rdv_node *n = &r->node[i];
	if (n->state == NODE_GONE)
		return;
	p3_rdv_owner_forget(r, n);
	if (n->waits) {
		n->waits = false;
		r->waits_n--;
	}
	if (n->sock < 0)
		p3_rdv_set_gone(r, i);
	else
		n->state = NODE_NEW;
	p3_rdv_barrier_look(r);
}

/* End a node that died, and fail the barrier. */
static void rdv_node_died(struct p3_rdv *r, uint32_t i, int status)
{
	if (r->node[i].state == NODE_JOINED) {
		p3_rdv_unjoin(r, i, P3_JOB_DIED, status, true);
		if (p3_rdv_is_part(r))
			rdv_tell_news(r, P3_RDV_BROKEN, i);
		else
			rdv_barrier_release(r, EPIPE, i);
	}
	p3_rdv_node_over(r, i);
}

void p3_rdv_node_lost(struct p3_rdv *r, uint32_t i)
{
	struct p3_rdv_node *n = &r->node[i];
	if (n->state != NODE_JOINED) {
		p3_rdv_node_over(r, i);
		return;
	}
	if (!r->conf.eof_ms) {
		rdv_node_died(r, i, 0);
		return;
	}
	if (n->fate_at != P3_NEVER)
		return;
	n->fate_at = p3_now_ms() + r->conf.eof_ms;
	n->fate_by = n->fate_at + ENDING_MS;
	p3_loop_before(r->conf.loop, &r->timer, n->fate_at);
}

void p3_rdv_node_late(struct p3_rdv *r, uint32_t i)
{
	struct p3_rdv_node *n = &r->node[i];
	int64_t now = p3_now_ms();
	if (n->fate_by > now && r->conf.ends &&
		r->conf.ends(r->conf.ends_arg, i, n->owner))
		n->fate_at = now + r->conf.eof_ms;
	else
		rdv_node_died(r, i, 0);
}

void p3_rdv_cut_off(struct p3_rdv *r, uint32_t i)
{
	p3_rdv_sock_close(r, i);
	rdv_node_died(r, i, 0);
}

void p3_rdv_breach(struct p3_rdv *r, uint32_t i, const char *what)
{
	p3_rdv_tell(r,
		"rank %u: %s; cut off (run it with the libportals of this yod, and leave "
		"descriptor %s alone)",
		i, what, P3_JOB_ENV);
	p3_rdv_cut_off(r, i);
}
