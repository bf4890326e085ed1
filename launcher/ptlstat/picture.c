/* SPDX-License-Identifier: BSD-3-Clause */
/* One picture of a job: from yod, /proc and the segments. */
#include "launcher/ptlstat/ptlstat.h"
#include "shm/evq.h"
#include "shm/lane.h"
#include "shm/process.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

double ptl_seconds(const struct ptl_picture *p, uint64_t since_ns)
{
	return since_ns && since_ns < p->at_ns ? (double)(p->at_ns - since_ns) / 1e9 : 0;
}

static void picture_read_process(struct ptl_node *n)
{
	char path[40];
	struct p3_stat stat;
	uint32_t pid = ptl_process_of(n);
	if (!pid || n->msg.ended || !p3_stat_read(pid, 0, &stat))
		return;
	n->state = stat.state;
	snprintf(path, sizeof path, "/proc/%u/task", pid);
	DIR *d = opendir(path);
	for (struct dirent *e; d && !n->computes && (e = readdir(d));) {
		uint32_t tid = (uint32_t)strtoul(e->d_name, NULL, 10);
		n->computes = tid && tid != n->of.word[P3_G_NIC_TID] &&
			      p3_stat_read(pid, tid, &stat) &&
			      (stat.state == 'R' || stat.state == 'D');
	}
	if (d)
		closedir(d);
}

/* ---- segments ---- */

_Static_assert(sizeof(struct ptl_poll) == sizeof(struct p3_poll_line) &&
		       offsetof(struct ptl_poll, is) == offsetof(struct p3_poll_line, w),
	"words lie as in a segment");

static const void *picture_published(
	const struct ptl_picture *p, uint32_t i, uint64_t off, uint64_t len)
{
	return p3_look_bytes(p->look, i, P3_LOOK_PUBLISHED, off, len);
}

/* Copy the words up to those for peers, each once: the node may change them at any time.
 * Return false if they cannot be mapped. */
static bool picture_copy(const struct ptl_picture *p, uint32_t i, struct ptl_block *of)
{
	uint64_t *to = (uint64_t *)of;
	const p3_a64 *from = picture_published(p, i, 0, sizeof *of);
	for (size_t k = 0; from && k < sizeof *of / sizeof *to; k++)
		to[k] = p3_get(&from[k]);
	for (uint32_t k = 0; k < P3_WAITS; k++)
		if (!of->wait[k].tid || of->wait[k].kind > P3_WAIT_BARRIER)
			of->wait[k].kind = 0;
	return from;
}

/* Return the reason why the words make no sense, or NULL. */
static const char *picture_check(const struct ptl_picture *p, uint32_t i, bool copied)
{
	const struct p3_attach_msg *m = &p->node[i].msg;
	const struct p3_seg_header *h = &p->node[i].of.header;
	if (m->state == P3_RDV_NEVER_JOINED)
		return "it has not joined";
	if (m->state == P3_RDV_ELSEWHERE)
		return "it is on another host";
	if (!copied)
		return m->state == P3_RDV_LEFT ? "it has left"
					       : "its segment cannot be mapped";
	if (h->magic != P3_SEG_MAGIC || h->layout != P3_LAYOUT_WORD)
		return "its library is of another build; use the ptlstat that came with "
		       "it";
	if (!h->nnodes || h->nnodes > P3_MAX_NODES || h->node >= h->nnodes ||
		h->incarnation != m->incarnation)
		return "its segment makes no sense";
	uint64_t len = p3_layout_of(h->nnodes).ctl_len;
	if (!m->remains && !picture_published(p, i, 0, len))
		return "its segment is too short";
	return NULL;
}

static void picture_read_queue(const struct ptl_picture *p, uint32_t i, uint32_t k)
{
	struct ptl_queue *q = &p->node[i].queue[k];
	uint64_t at = p->node[i].of.queue[k][0];
	q->there = at != 0;
	q->size = (uint32_t)p->node[i].of.queue[k][1];
	const struct p3_evq_ring *ring =
		at && (at - 1) % 64 == 0
			? p3_look_bytes(p->look, i, P3_LOOK_HOST, at - 1, sizeof *ring)
			: NULL;
	if (!ring)
		return;
	q->read = p3_get(&ring->head);
	q->posted = p3_get(&ring->tail);
	q->lost = p3_get(&ring->lost);
}

static void picture_take_node(const struct ptl_picture *p, uint32_t i)
{
	struct ptl_node *n = &p->node[i];
	n->msg = p3_look_node(p->look, i)->msg;
	bool copied = picture_copy(p, i, &n->of);
	n->slot = copied ? n->of.header.node : i;
	n->nnodes = copied ? n->of.header.nnodes : p->size;
	n->unseen = picture_check(p, i, copied);
	if (n->unseen)
		memset(&n->of, 0, sizeof n->of);
	if (n->msg.remains) { /* it has left */
		memset(n->of.wait, 0, sizeof n->of.wait);
		memset(n->of.endpoint, 0, sizeof n->of.endpoint);
		memset(n->of.poll, 0, sizeof n->of.poll);
	} else if (!n->unseen) {
		/* Copy the waits of libraries again, each whole or not at all. */
		const struct p3_poll_line *line = picture_published(
			p, i, offsetof(struct ptl_block, poll), sizeof n->of.poll);
		for (uint32_t k = 0; line && k < P3_POLLS; k++)
			(void)p3_poll_read(&line[k], &n->of.poll[k].is);
		for (uint32_t k = 0; k < P3_QUEUES_SHOWN; k++)
			picture_read_queue(p, i, k);
	}
	/* Take a wait in a barrier out of the waits of the node's threads: a member of a
	 * domain shows it among them.  Under yod the wait is in yod's table. */
	uint64_t now = p3_trace_ticks(P3_TRACE_MONOTONIC);
	for (uint32_t k = 0; k < P3_WAITS; k++) {
		struct p3_wait_line *w = &n->of.wait[k];
		if (w->kind != P3_WAIT_BARRIER)
			continue;
		w->kind = 0;
		n->msg.barrier_n = 1;
		n->msg.barrier_ms =
			now > w->since_ns ? (uint32_t)((now - w->since_ns) / 1000000) : 0;
	}
	picture_read_process(n);
}

const struct p3_case *ptl_case_of(const struct ptl_node *n, uint32_t why)
{
	static const struct p3_case none;
	return why - 1 < P3_WHYS ? &n->of.cases[why - 1] : &none;
}

/* Return the number of unread events.  The two words are not read at the same time, so
 * their difference may be negative: return 0 then. */
uint64_t ptl_unread_events(const struct ptl_queue *q)
{
	uint64_t n = q->posted - q->read;
	return (int64_t)n < 0 ? 0 : n;
}

uint32_t ptl_rank_of(const struct ptl_picture *p, uint32_t slot)
{
	uint32_t i = 0;
	while (i < p->size && p->node[i].slot != slot)
		i++;
	return i;
}

bool ptl_is_as_pictured(const struct ptl_picture *p, uint32_t i)
{
	struct ptl_node now = p->node[i];
	(void)picture_copy(p, i, &now.of);
	const struct p3_wait_line *was = ptl_oldest_wait(&p->node[i]);
	const struct p3_wait_line *is = ptl_oldest_wait(&now);
	return now.of.word[P3_C_RECEIVED] == p->node[i].of.word[P3_C_RECEIVED] && was &&
	       is && is->tid == was->tid && is->since_ns == was->since_ns;
}

int ptl_picture_take(struct p3_look *look, struct ptl_picture *out)
{
	int rc = p3_look_again(look);
	bool domain = false;
	if (rc)
		return rc;
	const struct p3_attach_msg *job = p3_look_job(look);
	struct ptl_picture p = {.look = look,
		.size = job->size,
		.jid = job->jid,
		.yod = job->os_pid,
		.domain = p3_look_domain(look),
		.whole = true,
		.node = calloc(job->size, sizeof *p.node)};
	if (!p.node)
		return -ENOMEM;
	for (uint32_t i = 0; i < p.size; i++) {
		const struct ptl_node *n = &p.node[i];
		picture_take_node(&p, i);
		p.here += !ptl_is_far(n);
		/* No process outside the picture can send to nodes that are the ranks
		 * of a job, and whose tables have room for these ranks only. */
		p.whole &= n->nnodes == p.size && !(p.domain && n->unseen);
		domain |= !n->unseen && n->nnodes != p.size;
	}
	/* In a domain only a node's own segment tells its slot. */
	for (uint32_t i = 0; domain && i < p.size; i++)
		if (p.node[i].unseen)
			p.node[i].slot = UINT32_MAX;
	p.at_ns = p3_trace_ticks(P3_TRACE_MONOTONIC); /* all words are older than this */
	*out = p;
	return 0;
}

void ptl_picture_drop(struct ptl_picture *p)
{
	free(p->node);
	p->node = NULL;
}

/* ---- pairs ---- */

static const struct p3_peer_entry *picture_entry_of(
	const struct ptl_picture *p, uint32_t of, uint32_t slot)
{
	const struct ptl_node *n = &p->node[of];
	const struct p3_peer_entry *e;
	if (n->unseen || n->msg.remains || slot >= n->nnodes)
		return NULL;
	struct p3_layout l = p3_layout_of(n->nnodes);
	return picture_published(p, of, p3_entry_off(&l, slot), sizeof *e);
}

static const struct p3_peer_entry *picture_entry(
	const struct ptl_picture *p, uint32_t of, uint32_t about)
{
	return picture_entry_of(p, of, p->node[about].slot);
}

#define KIND_SWITCH 1 /* the lane goes on in the full ring */

/* Count the messages in a ring of n cells from the target's credit on.  The validity word
 * behind the last message is not that of a header, so the count ends there. */
static uint32_t picture_unread_of_ring(const struct ptl_picture *p, uint32_t from,
	uint64_t off, uint32_t n, uint64_t credit)
{
	uint32_t messages = 0;
	const struct p3_cell *cells = picture_published(p, from, off, n * sizeof *cells);
	for (uint64_t pos = credit; cells && off % P3_CELL == 0 && pos - credit < n;) {
		uint64_t w0 = p3_get(&cells[pos & (n - 1)].w[0]);
		uint32_t k = p3_word0_ncells(w0);
		if ((uint32_t)w0 != p3_ring_valid(pos, p3_log2(n)) || !k)
			break;
		messages += p3_word0_kind(w0) > KIND_SWITCH;
		pos += k;
	}
	return messages;
}

/* Count the unread messages of the full ring, once there is one, and of the base ring. */
static uint32_t picture_unread(const struct ptl_picture *p, uint32_t from, uint32_t to,
	const struct p3_peer_entry *ours)
{
	struct p3_layout l = p3_layout_of(p->node[from].nnodes);
	const struct p3_peer_entry *theirs = picture_entry(p, to, from);
	uint64_t full = p3_get(&ours->full_req);
	if (!theirs || p3_get(&theirs->rx_for) != p->node[from].msg.incarnation)
		return 0;
	uint64_t credit[2] = {
		p3_get(&theirs->req_credit[0]), p3_get(&theirs->req_credit[1])};
	uint32_t messages = 0;
	if (!credit[1]) /* the target still reads the base ring */
		messages = picture_unread_of_ring(p, from,
			p3_base_req_off(&l, p->node[to].slot), P3_BASE_CELLS, credit[0]);
	if (full)
		messages += picture_unread_of_ring(p, from, full, l.req_cells,
			credit[1] ? credit[1] : p3_ring_start(l.req_cells));
	return messages;
}

struct ptl_pair ptl_pair_of(const struct ptl_picture *p, uint32_t from, uint32_t to)
{
	struct ptl_pair pair = {.queued = 0};
	const struct p3_peer_entry *ours = picture_entry(p, from, to),
				   *theirs = picture_entry(p, to, from);
	if (!ours)
		return pair;
	uint64_t ops = p3_get(&ours->shown_ops);
	pair.queued = (uint32_t)ops;
	pair.out = (uint32_t)(ops >> 32);
	pair.unread = picture_unread(p, from, to, ours);
	pair.reading = p3_get(&ours->reading);
	pair.cold = theirs && p3_get(&theirs->cold);
	uint64_t kept = theirs ? p3_get(&theirs->shown_kept) : 0;
	pair.kept_at = (uint32_t)kept;
	pair.kept_pid = (uint32_t)(kept >> 32);
	if (pair.queued || pair.out || pair.unread)
		pair.since_ns = p3_get(&ours->shown_since);
	return pair;
}

bool ptl_far_of(
	const struct ptl_picture *p, uint32_t i, uint32_t slot, struct ptl_far *out)
{
	const struct p3_peer_entry *e = picture_entry_of(p, i, slot);
	uint64_t heard = e ? p3_get(&e->shown_heard) : 0, ops;
	if (!heard)
		return false;
	ops = p3_get(&e->shown_ops);
	*out = (struct ptl_far){.slot = slot,
		.host = p3_look_host(p->look, slot),
		.pair = {.queued = (uint32_t)ops, .out = (uint32_t)(ops >> 32)},
		.silent = heard == P3_HEARD_UNKNOWN ? -1 : ptl_seconds(p, heard)};
	if (ops)
		out->pair.since_ns = p3_get(&e->shown_since);
	return true;
}

bool ptl_is_far(const struct ptl_node *n)
{
	return n->msg.state == P3_RDV_ELSEWHERE;
}

struct ptl_drops ptl_drops_of(const struct ptl_picture *p, uint32_t from, uint32_t at)
{
	const struct p3_peer_entry *e = picture_entry(p, at, from);
	uint64_t drops = e ? p3_get(&e->shown_drops) : 0;
	return (struct ptl_drops){(uint32_t)(drops >> 32), (uint32_t)drops};
}

/* ---- words for people ---- */

bool ptl_is_stopped(const struct ptl_node *n)
{
	return n->state == 'T' || n->state == 't';
}

bool ptl_is_alive(const struct ptl_node *n)
{
	return n->state && n->state != 'Z' && n->state != 'X' &&
	       n->msg.state != P3_RDV_DIED;
}

void ptl_state_text(const struct ptl_node *n, char *text, size_t size)
{
	static const char *const names[] = {[P3_RDV_NEVER_JOINED] = "not joined",
		[P3_RDV_JOINED] = "joined",
		[P3_RDV_LEFT] = "left"};
	int status = n->msg.status;
	if (ptl_is_far(n))
		snprintf(text, size, "on another host");
	else if (n->msg.ended && WIFSIGNALED(status))
		snprintf(text, size, "killed by signal %d", WTERMSIG(status));
	else if (n->msg.ended)
		snprintf(text, size, "exited with status %d", WEXITSTATUS(status));
	else if (n->msg.state == P3_RDV_DIED)
		snprintf(text, size, "dead");
	else if (!ptl_process_of(n))
		snprintf(text, size, "not there: no interface yet, or ended");
	else if (n->state == 't')
		snprintf(text, size, "held by a debugger");
	else if (n->state == 'T')
		snprintf(text, size, "stopped");
	else
		snprintf(text, size, "%s",
			n->msg.state < P3_RDV_DIED ? names[n->msg.state] : "?");
}

const struct p3_wait_line *ptl_oldest_wait(const struct ptl_node *n)
{
	const struct p3_wait_line *oldest = NULL;
	for (uint32_t k = 0; k < P3_WAITS; k++)
		if (n->of.wait[k].kind &&
			(!oldest || n->of.wait[k].since_ns < oldest->since_ns))
			oldest = &n->of.wait[k];
	return oldest;
}

const char *ptl_mode_name(uint64_t mode)
{
	static const char *const names[] = {
		"auto", "lease", "dedicated", "park", "generic"};
	return mode < sizeof names / sizeof names[0] ? names[mode] : "?";
}
