/* SPDX-License-Identifier: BSD-3-Clause */
/* One picture of a job: from yod, /proc and the segments. */
#include "launcher/ptlstat/ptlstat.h"
#include "shm/evq.h"
#include "shm/lane.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

static uint64_t picture_now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

double ptl_seconds(const struct ptl_picture *p, uint64_t since_ns)
{
	return since_ns && since_ns < p->at_ns ? (double)(p->at_ns - since_ns) / 1e9 : 0;
}

/* ---- /proc ---- */

/* Read state and name of "pid (name) S ...", where the name may contain any character.
 * Return 0 if there is no such line. */
static char picture_read_stat(const char *path, char name[20])
{
	char line[400];
	FILE *f = fopen(path, "re");
	bool got = f && fgets(line, sizeof line, f);
	if (f)
		fclose(f);
	char *open = got ? strchr(line, '(') : NULL,
	     *close = got ? strrchr(line, ')') : NULL;
	if (!open || !close || close < open || strlen(close) < 3)
		return 0;
	if (name)
		snprintf(name, 20, "%.*s", (int)(close - open - 1), open + 1);
	return close[2];
}

static bool picture_a_thread_runs(uint32_t pid, uint64_t nic_tid)
{
	char path[64];
	bool runs = false;
	snprintf(path, sizeof path, "/proc/%u/task", pid);
	DIR *d = opendir(path);
	for (struct dirent *e; d && !runs && (e = readdir(d));) {
		unsigned long tid = strtoul(e->d_name, NULL, 10);
		if (!tid || tid == nic_tid)
			continue;
		snprintf(path, sizeof path, "/proc/%u/task/%lu/stat", pid, tid);
		char state = picture_read_stat(path, NULL);
		runs = state == 'R' || state == 'D';
	}
	if (d)
		closedir(d);
	return runs;
}

static void picture_read_proc(struct ptl_node *n)
{
	char path[40];
	uint32_t pid = ptl_process_of(n);
	n->proc.state = 0;
	if (!pid || n->msg.ended)
		return;
	snprintf(path, sizeof path, "/proc/%u/stat", pid);
	n->proc.state = picture_read_stat(path, n->proc.name);
	n->proc.computes = picture_a_thread_runs(pid, n->word[P3_G_NIC_TID]);
}

/* ---- segments ---- */

static const void *picture_published(
	const struct ptl_picture *p, uint32_t i, uint64_t off, uint64_t len)
{
	return p3_look_bytes(p->look, i, P3_LOOK_PUBLISHED, off, len);
}

static bool picture_is_all_there(const struct ptl_node *n)
{
	return !n->msg.remains;
}

/* Read a node's slot and size, each once: the node may change them at any time. */
static void picture_read_place(const struct ptl_picture *p, uint32_t i)
{
	const volatile struct p3_seg_header *h =
		picture_published(p, i, 0, sizeof(struct p3_seg_header));
	p->node[i].slot = h ? h->node : i;
	p->node[i].nnodes = h ? h->nnodes : p->size;
}

static const char *picture_check_header(const struct ptl_picture *p, uint32_t i)
{
	const struct p3_attach_msg *m = &p->node[i].msg;
	const struct p3_seg_header *h = picture_published(p, i, 0, sizeof *h);
	if (m->state == P3_RDV_NEVER_JOINED)
		return "it has not joined";
	if (m->state == P3_RDV_ELSEWHERE)
		return "it is on another host";
	if (!h)
		return m->state == P3_RDV_LEFT ? "it has left"
					       : "its segment cannot be mapped";
	if (h->magic != P3_SEG_MAGIC || h->layout != P3_LAYOUT_WORD)
		return "its library is of another build; use the ptlstat that came with "
		       "it";
	uint32_t nnodes = p->node[i].nnodes;
	if (!nnodes || nnodes > P3_MAX_NODES || p->node[i].slot >= nnodes ||
		h->incarnation != m->incarnation)
		return "its segment makes no sense";
	struct p3_layout l = p3_layout_of(nnodes);
	uint64_t len = picture_is_all_there(&p->node[i]) ? l.ctl_len : l.parts_off;
	return picture_published(p, i, 0, len) ? NULL : "its segment is too short";
}

static void picture_read_words(
	const struct ptl_picture *p, struct ptl_node *n, uint32_t i)
{
	struct p3_layout l = p3_layout_of(n->nnodes);
	const p3_a64 *w = picture_published(p, i, l.counters_off, sizeof n->word);
	for (uint32_t k = 0; w && k < P3_COUNTERS; k++)
		n->word[k] = p3_get(&w[k]);
}

static void picture_read_waits(
	const struct ptl_picture *p, struct ptl_node *n, uint32_t i)
{
	struct p3_layout l = p3_layout_of(n->nnodes);
	const struct p3_wait_line *line =
		picture_published(p, i, l.waits_off, P3_WAITS * sizeof *line);
	for (uint32_t k = 0; line && k < P3_WAITS; k++) {
		struct ptl_wait *w = &n->wait[k];
		w->tid = p3_get(&line[k].tid);
		w->kind = w->tid ? p3_get(&line[k].kind) : 0;
		w->since_ns = p3_get(&line[k].since_ns);
		w->deadline_ns = p3_get(&line[k].deadline_ns);
		w->received = p3_get(&line[k].received);
		w->n = p3_get(&line[k].n);
		for (uint32_t h = 0; h < P3_WAIT_HANDLES; h++)
			w->handle[h] = p3_get(&line[k].handle[h]);
		if (w->kind > P3_WAIT_BARRIER)
			w->kind = 0;
	}
}

/* Take a wait in a barrier out of the waits of a node's threads: a member of a domain
 * shows it among them.  Under yod the wait is in yod's table. */
static void picture_read_barrier(struct ptl_node *n, uint64_t now)
{
	for (uint32_t k = 0; k < P3_WAITS; k++) {
		struct ptl_wait *w = &n->wait[k];
		if (w->kind != P3_WAIT_BARRIER)
			continue;
		w->kind = 0;
		n->msg.barrier_n = 1;
		n->msg.barrier_ms =
			now > w->since_ns ? (uint32_t)((now - w->since_ns) / 1000000) : 0;
	}
}

static void picture_read_queue(const struct ptl_picture *p, uint32_t i,
	const struct p3_queue_line *line, struct ptl_queue *out)
{
	uint64_t at = p3_get(&line->at);
	out->there = at != 0;
	out->size = (uint32_t)p3_get(&line->how);
	out->posted = out->read = out->lost = 0;
	const struct p3_evq_ring *ring =
		at ? p3_look_bytes(p->look, i, P3_LOOK_HOST, at - 1, sizeof *ring) : NULL;
	if (!ring || (at - 1) % 64)
		return;
	out->read = p3_get(&ring->head);
	out->posted = p3_get(&ring->tail);
	out->lost = p3_get(&ring->lost);
}

static void picture_read_queues(
	const struct ptl_picture *p, struct ptl_node *n, uint32_t i)
{
	struct p3_layout l = p3_layout_of(n->nnodes);
	const struct p3_queue_line *line =
		picture_published(p, i, l.queues_off, P3_QUEUES_SHOWN * sizeof *line);
	for (uint32_t k = 0; line && k < P3_QUEUES_SHOWN; k++)
		picture_read_queue(p, i, &line[k], &n->queue[k]);
}

static void picture_read_cases(
	const struct ptl_picture *p, struct ptl_node *n, uint32_t i)
{
	uint64_t w[P3_CASE_WORDS];
	struct p3_layout l = p3_layout_of(n->nnodes);
	const struct p3_case_line *line =
		picture_published(p, i, l.cases_off, P3_WHYS * sizeof *line);
	for (uint32_t why = 1; line && why < P3_WHY_END; why++) {
		for (uint32_t k = 0; k < P3_CASE_WORDS; k++)
			w[k] = p3_get(&line[why - 1].w[k]);
		memcpy(&n->cases[why], w, sizeof w);
	}
}

static void picture_read_endpoints(
	const struct ptl_picture *p, struct ptl_node *n, uint32_t i)
{
	struct p3_layout l = p3_layout_of(n->nnodes);
	const struct p3_cci_line *line =
		picture_published(p, i, l.cci_off, P3_CCI_SHOWN * sizeof *line);
	for (uint32_t k = 0; line && k < P3_CCI_SHOWN; k++) {
		uint64_t buffers = p3_get(&line[k].buffers);
		uint64_t conns = p3_get(&line[k].conns);
		n->endpoint[k] =
			(struct ptl_endpoint){.number = (uint32_t)p3_get(&line[k].number),
				.used = (uint32_t)(buffers >> 32),
				.buffers = (uint32_t)buffers,
				.conns = (uint32_t)(conns >> 32),
				.requests = (uint32_t)conns,
				.unread = p3_get(&line[k].unread),
				.full_since = p3_get(&line[k].full_since),
				.asked_since = p3_get(&line[k].asked_since)};
	}
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
	const struct ptl_wait *was = ptl_oldest_wait(&p->node[i]);
	picture_read_words(p, &now, i);
	picture_read_waits(p, &now, i);
	const struct ptl_wait *is = ptl_oldest_wait(&now);
	return now.word[P3_C_RECEIVED] == p->node[i].word[P3_C_RECEIVED] && was && is &&
	       is->tid == was->tid && is->since_ns == was->since_ns;
}

/* Return true if no process outside the picture can send to these nodes: they are the
 * ranks of a job, and their tables have room for these ranks only. */
static bool picture_is_whole(const struct ptl_picture *p)
{
	for (uint32_t i = 0; i < p->size; i++)
		if (p->node[i].nnodes != p->size || (p->domain && p->node[i].unseen))
			return false;
	return true;
}

/* Forget the slots of nodes that cannot be seen: in a domain only a node's own segment
 * tells its slot. */
static void picture_forget_slots(struct ptl_picture *p)
{
	bool domain = false;
	for (uint32_t i = 0; i < p->size; i++)
		domain |= !p->node[i].unseen && p->node[i].nnodes != p->size;
	for (uint32_t i = 0; domain && i < p->size; i++)
		if (p->node[i].unseen)
			p->node[i].slot = UINT32_MAX;
}

int ptl_picture_take(struct p3_look *look, struct ptl_picture *out)
{
	int rc = p3_look_again(look);
	if (rc)
		return rc;
	const struct p3_attach_msg *job = p3_look_job(look);
	struct ptl_picture p = {.look = look,
		.size = job->size,
		.jid = job->jid,
		.yod = job->os_pid,
		.domain = p3_look_domain(look),
		.node = calloc(job->size, sizeof *p.node)};
	if (!p.node)
		return -ENOMEM;
	for (uint32_t i = 0; i < p.size; i++) {
		struct ptl_node *n = &p.node[i];
		n->msg = p3_look_node(p.look, i)->msg;
		picture_read_place(&p, i);
		n->unseen = picture_check_header(&p, i);
		if (!n->unseen) {
			picture_read_words(&p, n, i);
			picture_read_cases(&p, n, i);
		}
		if (!n->unseen && picture_is_all_there(n)) {
			picture_read_waits(&p, n, i);
			picture_read_barrier(n, picture_now_ns());
			picture_read_queues(&p, n, i);
			picture_read_endpoints(&p, n, i);
		}
		picture_read_proc(n);
		p.here += !ptl_is_far(n);
	}
	p.whole = picture_is_whole(&p);
	picture_forget_slots(&p);
	p.at_ns = picture_now_ns(); /* all words are older than this */
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
	if (n->unseen || !picture_is_all_there(n) || slot >= n->nnodes)
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

/* Count the messages from the target's credit on.  The validity word behind the last
 * message is not that of a header, so the count ends there. */
static uint32_t picture_count_unread(
	const struct p3_cell *cells, uint32_t n, uint64_t credit)
{
	uint32_t messages = 0;
	for (uint64_t pos = credit; cells && pos - credit < n;) {
		uint64_t w0 = p3_get(&cells[pos & (n - 1)].w[0]);
		uint32_t k = p3_word0_ncells(w0);
		if ((uint32_t)w0 != p3_ring_valid(pos, p3_log2(n)) || !k)
			break;
		messages += p3_word0_kind(w0) > KIND_SWITCH;
		pos += k;
	}
	return messages;
}

static uint32_t picture_unread_of_ring(const struct ptl_picture *p, uint32_t from,
	uint64_t off, uint32_t n, uint64_t credit)
{
	const struct p3_cell *cells = picture_published(p, from, off, n * sizeof *cells);
	return off % P3_CELL ? 0 : picture_count_unread(cells, n, credit);
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
	return n->proc.state == 'T' || n->proc.state == 't';
}

bool ptl_is_alive(const struct ptl_node *n)
{
	return n->proc.state && n->proc.state != 'Z' && n->proc.state != 'X' &&
	       n->msg.state != P3_RDV_DIED;
}

static void picture_end_text(const struct ptl_node *n, char *text, size_t size)
{
	int s = n->msg.status;
	if (!n->msg.ended)
		snprintf(text, size, "dead");
	else if (WIFSIGNALED(s))
		snprintf(text, size, "killed by signal %d", WTERMSIG(s));
	else
		snprintf(text, size, "exited with status %d", WEXITSTATUS(s));
}

const struct ptl_node *ptl_before(const struct ptl_picture *was, const struct ptl_node *n)
{
	for (uint32_t k = 0; k < was->size; k++)
		if (was->node[k].msg.incarnation == n->msg.incarnation &&
			was->node[k].slot == n->slot && !was->node[k].unseen)
			return &was->node[k];
	return NULL;
}

void ptl_state_text(const struct ptl_node *n, char *text, size_t size)
{
	static const char *const names[] = {[P3_RDV_NEVER_JOINED] = "not joined",
		[P3_RDV_JOINED] = "joined",
		[P3_RDV_LEFT] = "left"};
	if (ptl_is_far(n))
		snprintf(text, size, "on another host");
	else if (n->msg.state == P3_RDV_DIED || n->msg.ended)
		picture_end_text(n, text, size);
	else if (!ptl_process_of(n))
		snprintf(text, size, "not there: no interface yet, or ended");
	else if (n->proc.state == 't')
		snprintf(text, size, "held by a debugger");
	else if (n->proc.state == 'T')
		snprintf(text, size, "stopped");
	else
		snprintf(text, size, "%s",
			n->msg.state < P3_RDV_DIED ? names[n->msg.state] : "?");
}

const struct ptl_wait *ptl_oldest_wait(const struct ptl_node *n)
{
	const struct ptl_wait *oldest = NULL;
	for (uint32_t k = 0; k < P3_WAITS; k++)
		if (n->wait[k].kind &&
			(!oldest || n->wait[k].since_ns < oldest->since_ns))
			oldest = &n->wait[k];
	return oldest;
}

const char *ptl_mode_name(uint64_t mode)
{
	static const char *const names[] = {
		"auto", "lease", "dedicated", "park", "generic"};
	return mode < sizeof names / sizeof names[0] ? names[mode] : "?";
}
