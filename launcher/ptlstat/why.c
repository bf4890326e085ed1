/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The waits of nodes for each other.  A node waits for another node that has not come
 * to its barrier, or that has long taken nothing of the messages in its lane.  At the
 * end of such a chain is a node that does not wait, or that waits for a message that no
 * node has sent.
 */
#include "launcher/ptlstat/ptlstat.h"

#include <stdlib.h>
#include <string.h>

#define LONG_S   0.3 /* shorter waits are normal */
#define SILENT_S 3   /* a host that runs is heard each second, and looked at as often */
#define STALE_S  10  /* a library that still polls has told its wait again by then */

/* ---- libraries that poll their event queues ---- */

struct ptl_poll_name ptl_poll_library(const struct p3_poll *poll)
{
	struct ptl_poll_name name;
	memcpy(name.s, poll->library, sizeof name.s);
	p3_trace_printable(name.s, sizeof name.s);
	return name;
}

const struct p3_poll *ptl_oldest_poll(
	const struct ptl_picture *p, const struct ptl_node *n)
{
	const struct p3_poll *oldest = NULL;
	if (n->unseen || !ptl_is_alive(n) || ptl_is_stopped(n))
		return NULL;
	for (uint32_t k = 0; k < P3_POLLS; k++) {
		const struct p3_poll *poll = &n->of.poll[k].is;
		if (poll->eq && ptl_seconds(p, poll->told_ns) < STALE_S &&
			(!oldest || poll->since_ns < oldest->since_ns))
			oldest = poll;
	}
	return oldest;
}

static void poll_add_process(
	const struct ptl_picture *p, uint32_t slot, uint64_t who, struct ptl_text *t)
{
	uint32_t rank = slot == UINT32_MAX ? p->size : ptl_rank_of(p, slot);
	uint32_t nid = (uint32_t)who, pid = (uint32_t)(who >> 32);
	if (rank < p->size)
		ptl_add(t, " from node %u", rank);
	else if (nid == UINT32_MAX && pid == UINT32_MAX)
		ptl_add(t, " from any node");
	else
		ptl_add(t, " from nid %u, pid %u", nid, pid);
}

static void why_add_since(struct ptl_text *t, double seconds)
{
	ptl_add(t, " since " PTL_TIME "%.1f s" PTL_TIME, seconds);
}

static void poll_add_message(
	const struct ptl_picture *p, const struct p3_poll *poll, struct ptl_text *t)
{
	ptl_add(t, "waits by %s for a message", ptl_poll_library(poll).s);
	poll_add_process(p, poll->source_node, poll->source, t);
	if (poll->ignore == UINT64_MAX)
		ptl_add(t, " with any tag");
	else
		ptl_add(t, " with tag %#llx", (unsigned long long)poll->tag);
	if (poll->ignore && poll->ignore != UINT64_MAX)
		ptl_add(t, " (bits %#llx do not count)",
			(unsigned long long)poll->ignore);
}

/* Append it to the node's line. */
static void poll_describe(
	const struct ptl_picture *p, const struct p3_poll *poll, struct ptl_text *t)
{
	poll_add_message(p, poll, t);
	why_add_since(t, ptl_seconds(p, poll->since_ns));
	if (poll->receives > 1)
		ptl_add(t, ", the oldest of %u receives", poll->receives);
	if (!poll->unexpected)
		return;
	ptl_add(t, "; has unexpected");
	poll_add_process(p, poll->from_node, poll->from, t);
	ptl_add(t, ": tag %#llx, %llu bytes", (unsigned long long)poll->from_tag,
		(unsigned long long)poll->length);
	if (poll->unexpected > 1)
		ptl_add(t, ", and %u more", poll->unexpected - 1);
}

/* Add a conclusion for each node whose library waits for a message. */
static void polls_blame(const struct ptl_picture *p, struct ptl_lines *l)
{
	for (uint32_t i = 0; i < p->size; i++) {
		const struct p3_poll *poll = ptl_oldest_poll(p, &p->node[i]);
		struct ptl_text t = {.n = 0};
		if (!poll)
			continue;
		ptl_add(&t, PTL_NODE " ");
		poll_add_message(p, poll, &t);
		ptl_add(&t, ", which has not come");
		if (poll->unexpected) {
			ptl_add(&t, "; what came");
			poll_add_process(p, poll->from_node, poll->from, &t);
			ptl_add(&t, " has tag %#llx, and no receive takes it",
				(unsigned long long)poll->from_tag);
		}
		ptl_lines_conclude(l, i, "%s", t.s);
	}
}

/* ---- waits ---- */

struct view {
	const struct ptl_picture *p;
	struct ptl_pair *pair; /* indexed by from * size + to */
	bool *waits;           /* nodes that have waited for long */
	struct ptl_lines lines;
};

/* ---- conditions ---- */

static const struct ptl_pair *why_pair(const struct view *v, uint32_t from, uint32_t to)
{
	return &v->pair[(size_t)from * v->p->size + to];
}

static bool why_is_over(const struct ptl_node *n)
{
	return n->msg.state == P3_RDV_DIED || n->msg.state == P3_RDV_LEFT || n->msg.ended;
}

static const struct p3_wait_line *why_long_wait(
	const struct view *v, const struct ptl_node *n)
{
	const struct p3_wait_line *w = ptl_oldest_wait(n);
	return w && ptl_seconds(v->p, w->since_ns) >= LONG_S ? w : NULL;
}

static bool why_misses_barrier(const struct view *v, uint32_t from, uint32_t to)
{
	const struct ptl_node *n = &v->p->node[to];
	return v->p->node[from].msg.barrier_n && !n->msg.barrier_n && !ptl_is_far(n);
}

static bool why_waits_for(const struct view *v, uint32_t from, uint32_t to)
{
	const struct ptl_node *n = &v->p->node[to];
	if (from == to || !v->waits[from])
		return false;
	bool holds_sends = ptl_seconds(v->p, why_pair(v, from, to)->since_ns) >= LONG_S &&
			   !why_is_over(n) && !ptl_is_far(n);
	/* or a library of this one waits for the other */
	const struct p3_poll *poll = ptl_oldest_poll(v->p, &v->p->node[from]);
	return holds_sends || why_misses_barrier(v, from, to) ||
	       (poll && poll->source_node != UINT32_MAX &&
		       ptl_rank_of(v->p, poll->source_node) == to);
}

static bool why_waits_for_any(const struct view *v, uint32_t from)
{
	for (uint32_t to = 0; to < v->p->size; to++)
		if (why_waits_for(v, from, to))
			return true;
	return false;
}

/* Return the number of nodes that wait for a node. */
static uint32_t why_waiters(const struct view *v, uint32_t to)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < v->p->size; i++)
		n += why_waits_for(v, i, to);
	return n;
}

static struct view why_view_of(const struct ptl_picture *p)
{
	struct view v = {.p = p,
		.pair = calloc((size_t)p->size * p->size, sizeof *v.pair),
		.waits = calloc(p->size, sizeof *v.waits)};
	for (uint32_t i = 0; v.pair && v.waits && i < p->size; i++) {
		const struct ptl_node *n = &p->node[i];
		v.waits[i] = ptl_is_alive(n) && !ptl_is_stopped(n) &&
			     (n->msg.barrier_n || why_long_wait(&v, n) ||
				     ptl_oldest_poll(p, n));
		for (uint32_t to = 0; to < p->size; to++)
			v.pair[(size_t)i * p->size + to] = ptl_pair_of(p, i, to);
	}
	return v;
}

/* ---- a line for each node ---- */

static void why_add_wait(struct ptl_text *t, const struct view *v,
	const struct ptl_node *n, const struct p3_wait_line *w)
{
	bool poll = w->n > 1 || w->deadline_ns != UINT64_MAX;
	uint64_t unread = 0;
	if (w->kind == P3_WAIT_COMMAND) {
		ptl_add(t, "waits for the NIC to execute a call (operation %u)",
			(unsigned)w->handle[0]);
	} else {
		ptl_add(t, "waits in %s", poll ? "PtlEQPoll" : "PtlEQWait");
		for (uint32_t k = 0; k < w->n && k < P3_WAIT_HANDLES; k++) {
			uint32_t q = (uint32_t)w->handle[k] & 0xffffff;
			ptl_add(t, "%s%u",
				k          ? ", "
				: w->n > 1 ? " on EQs "
					   : " on EQ ",
				q);
			if (q < P3_QUEUES_SHOWN && n->queue[q].there)
				unread += ptl_unread_events(&n->queue[q]);
		}
		ptl_add(t, "%s with %llu events unread",
			w->n > P3_WAIT_HANDLES ? ", ..." : "",
			(unsigned long long)unread);
	}
	why_add_since(t, ptl_seconds(v->p, w->since_ns));
}

static void why_add_state(
	struct ptl_text *t, const struct view *v, const struct ptl_node *n)
{
	char state[60], ranks[100] = "";
	const struct p3_wait_line *w = ptl_oldest_wait(n);
	const struct p3_poll *poll = n->msg.barrier_n ? NULL : ptl_oldest_poll(v->p, n);
	ptl_state_text(n, state, sizeof state);
	if (!ptl_is_alive(n) || ptl_is_stopped(n)) {
		ptl_add(t, "%s", state);
	} else if (n->msg.barrier_n) {
		struct p3_ranks missing = {{{0}}};
		ptl_add(t, "waits in PtlXBarrier");
		why_add_since(t, n->msg.barrier_ms / 1e3);
		for (uint32_t i = 0; i < v->p->size; i++)
			if (!v->p->node[i].msg.barrier_n && !ptl_is_far(&v->p->node[i]))
				p3_ranks_add(&missing, i);
		p3_ranks_print(&missing, ranks, sizeof ranks);
		if (*ranks)
			ptl_add(t, "; has not come: %s", ranks);
	} else if (n->msg.state != P3_RDV_JOINED) {
		ptl_add(t, "%s, %s", state,
			n->msg.inited                 ? "has called PtlInit"
			: n->msg.state == P3_RDV_LEFT ? "still runs"
						      : "has not called PtlInit");
	} else if (w) {
		why_add_wait(t, v, n, w);
		if (poll)
			ptl_add(t, "; ");
	} else if (!poll) {
		uint64_t all = 0;
		for (uint32_t k = 0; k < P3_QUEUES_SHOWN; k++)
			if (n->queue[k].there)
				all += ptl_unread_events(&n->queue[k]);
		ptl_add(t, "%s", n->computes ? "runs" : "sleeps outside of Portals");
		if (all)
			ptl_add(t, ", %llu events unread", (unsigned long long)all);
	}
	if (poll)
		poll_describe(v->p, poll, t);
}

static void why_add_far(struct ptl_text *t, const char *what, const struct ptl_far *f)
{
	ptl_add(t, "%s node %u on %s", what, f->slot, f->host ? f->host : "another host");
}

static void why_add_silence(struct ptl_text *t, const struct ptl_far *f)
{
	if (f->silent >= SILENT_S)
		ptl_add(t, ", host silent for " PTL_TIME "%.1f s" PTL_TIME, f->silent);
}

/* Add since when the target has taken nothing, if messages wait for it. */
static void why_add_stall(
	struct ptl_text *t, const struct view *v, const struct ptl_pair *pair)
{
	if (!pair->since_ns)
		return;
	ptl_add(t, ", nothing taken");
	why_add_since(t, ptl_seconds(v->p, pair->since_ns));
}

static void why_add_far_pairs(struct ptl_text *t, const struct view *v, uint32_t i)
{
	struct ptl_far f;
	for (uint32_t slot = 0; slot < v->p->node[i].nnodes; slot++) {
		if (!ptl_far_of(v->p, i, slot, &f) || (!f.pair.queued && !f.pair.out))
			continue;
		why_add_far(t, "; for", &f);
		ptl_add(t, ": %u queued, %u unanswered", f.pair.queued, f.pair.out);
		why_add_stall(t, v, &f.pair);
		why_add_silence(t, &f);
	}
}

static void why_add_pairs(struct ptl_text *t, const struct view *v, uint32_t i)
{
	for (uint32_t to = 0; to < v->p->size; to++) {
		const struct ptl_pair *pr = why_pair(v, i, to);
		if ((!pr->queued && !pr->out && !pr->unread) ||
			ptl_is_far(&v->p->node[to]))
			continue;
		ptl_add(t, "; for node %u: %u in its lane%s, %u queued, %u unanswered",
			to, pr->unread, pr->cold ? " (which it does not poll)" : "",
			pr->queued, pr->out);
		why_add_stall(t, v, pr);
		if (pr->kept_at)
			ptl_add(t, ", the first one waits for a match entry");
	}
}

static void why_add_own(struct ptl_text *t, const struct ptl_node *n)
{
	if (n->of.word[P3_G_PULLS])
		ptl_add(t, "; reads %u long messages", (unsigned)n->of.word[P3_G_PULLS]);
	if (n->of.word[P3_C_DROPS])
		ptl_add(t, "; has dropped %llu",
			(unsigned long long)n->of.word[P3_C_DROPS]);
	if (n->of.word[P3_C_TRUNCATED])
		ptl_add(t, "; has truncated %llu",
			(unsigned long long)n->of.word[P3_C_TRUNCATED]);
	ptl_cci_describe(n, t);
	if (n->of.word[P3_G_QUEUED] &&
		n->of.word[P3_G_PENDINGS] >= n->of.word[P3_G_PENDINGS_MOST])
		ptl_add(t, "; all its pendings are in use");
}

static void why_describe(struct view *v, uint32_t i)
{
	const struct ptl_node *n = &v->p->node[i];
	struct ptl_text t = {.n = 0};
	ptl_add(&t, PTL_NODE ": ");
	why_add_state(&t, v, n);
	if (!n->unseen) {
		if (!why_is_over(n)) {
			why_add_pairs(&t, v, i);
			why_add_far_pairs(&t, v, i);
		}
		why_add_own(&t, n);
	} else if (n->msg.state == P3_RDV_JOINED || n->msg.state == P3_RDV_DIED) {
		ptl_add(&t, "; %s", n->unseen);
	}
	ptl_lines_add(&v->lines, false, i, ptl_process_of(n), t.s);
}

/* ---- conclusions ---- */

static void why_add_who_waits(
	struct ptl_text *t, const struct view *v, uint32_t to, uint32_t n)
{
	struct p3_ranks waiting = {{{0}}};
	char ranks[100];
	for (uint32_t i = 0; i < v->p->size; i++)
		if (why_waits_for(v, i, to))
			p3_ranks_add(&waiting, i);
	p3_ranks_print(&waiting, ranks, sizeof ranks);
	ptl_add(t, "; %u node%s for it: %s", n, n == 1 ? " waits" : "s wait", ranks);
}

static const char *why_silence_text(const struct view *v, uint32_t i)
{
	switch (ptl_silence_of(v->p, i)) {
	case PTL_LOST:
		return "waits for an event that will not come";
	case PTL_NOTHING_SENT:
		return "waits for an event that no node has sent";
	case PTL_NO_EVENT:
		return "waits for an event that no message so far has made";
	default:
		return "waits for an event";
	}
}

static void why_add_culprit(struct ptl_text *t, const struct view *v, uint32_t i)
{
	const struct ptl_node *n = &v->p->node[i];
	char state[60];
	uint32_t k = 0;
	ptl_state_text(n, state, sizeof state);
	if (n->state == 'T')
		ptl_add(t, "is stopped (SIGSTOP; kill -CONT %u lets it go on)",
			ptl_process_of(n));
	else if (!ptl_is_alive(n) || ptl_is_stopped(n))
		ptl_add(t, "is %s", state);
	else if (n->msg.state == P3_RDV_NEVER_JOINED && !n->msg.inited)
		ptl_add(t, "has not called PtlInit");
	else if (n->msg.state == P3_RDV_LEFT)
		ptl_add(t, "has left (PtlFini, or PtlNIFini of its last interface)");
	else if (why_long_wait(v, n))
		ptl_add(t, "%s", why_silence_text(v, i));
	else
		ptl_add(t, n->computes ? "computes outside of Portals"
				       : "sleeps outside of Portals");
	while (k < v->p->size && !why_pair(v, k, i)->kept_at)
		k++;
	if (k < v->p->size)
		ptl_add(t,
			", and holds messages back at portal index %u of its pid %u "
			"(PtlXPTHold), where no match entry accepts the first one of "
			"node %u",
			why_pair(v, k, i)->kept_at - 1, why_pair(v, k, i)->kept_pid, k);
	for (k = 0; k < v->p->size && !why_misses_barrier(v, k, i); k++)
		;
	if (k < v->p->size)
		ptl_add(t, ", and has not come to the barrier");
}

static void why_blame_ends_of_chains(struct view *v)
{
	for (uint32_t to = 0; to < v->p->size; to++) {
		uint32_t n = why_waiters(v, to);
		struct ptl_text t = {.n = 0};
		uint64_t lane = 0, queued = 0;
		if (!n || why_waits_for_any(v, to))
			continue;
		ptl_add(&t, PTL_NODE " ");
		why_add_culprit(&t, v, to);
		why_add_who_waits(&t, v, to, n);
		for (uint32_t i = 0; i < v->p->size; i++) {
			lane += why_pair(v, i, to)->unread;
			queued += why_pair(v, i, to)->queued;
		}
		if (lane || queued)
			ptl_add(&t,
				"; %llu message%s lie in its lanes, %llu more are queued "
				"for it",
				(unsigned long long)lane, ptl_plural(lane),
				(unsigned long long)queued);
		ptl_lines_conclude(&v->lines, to, "%s", t.s);
	}
}

/* Add the reason for which nothing certain can be said of messages to node i. */
static void why_add_doubt(struct ptl_text *t, const struct view *v, uint32_t i)
{
	uint32_t k = 0;
	while (k < v->p->size && !ptl_is_stopped(&v->p->node[k]))
		k++;
	if (ptl_has_drops(&v->p->node[i]))
		ptl_add(t, ": it has dropped messages or lost events before, of which it "
			   "is not known whether it waits for one of them");
	else if (k < v->p->size)
		ptl_add(t,
			": nothing is known to be lost, and node %u, which is stopped, "
			"may have something to send",
			k);
	else
		ptl_add(t, ": nothing is known to be lost, but something may be on its "
			   "way to it: not all that could send to it can be seen, or one "
			   "of them is in the middle of a call");
}

static void why_blame_nobody(struct view *v, uint32_t i)
{
	struct ptl_text t = {.n = 0};
	const struct ptl_node *n = &v->p->node[i];
	const struct p3_wait_line *w = ptl_oldest_wait(n);
	ptl_add(&t, PTL_NODE " %s", why_silence_text(v, i));
	switch (ptl_silence_of(v->p, i)) {
	case PTL_NOTHING_SENT:
		ptl_add(&t, ": nothing has come since it waits, nothing was dropped or "
			    "lost before, and nothing is on its way to it");
		break;
	case PTL_NO_EVENT:
		ptl_add(&t,
			": %llu message%s came since it waits, and nothing is on its way "
			"to it (is a descriptor without an event queue, or with another "
			"one, or with PTL_MD_EVENT_END_DISABLE?)",
			(unsigned long long)(n->of.word[P3_C_RECEIVED] - w->received),
			ptl_plural(n->of.word[P3_C_RECEIVED] - w->received));
		break;
	default:
		why_add_doubt(&t, v, i);
	}
	ptl_lines_conclude(&v->lines, i, "%s", t.s);
}

/* Name the nodes on other hosts for which a node waits.  Return false if there are
 * none. */
static bool why_blame_far(struct view *v, uint32_t i)
{
	uint32_t before = v->lines.conclusions;
	struct ptl_far f;
	for (uint32_t slot = 0; slot < v->p->node[i].nnodes; slot++) {
		struct ptl_text t = {.n = 0};
		if (!ptl_far_of(v->p, i, slot, &f) ||
			ptl_seconds(v->p, f.pair.since_ns) < LONG_S)
			continue;
		why_add_far(&t, PTL_NODE " waits for an answer of", &f);
		why_add_silence(&t, &f);
		ptl_lines_conclude(&v->lines, i, "%s", t.s);
	}
	return v->lines.conclusions > before;
}

static void why_blame_silence(struct view *v)
{
	for (uint32_t i = 0; i < v->p->size; i++) {
		const struct ptl_node *n = &v->p->node[i];
		if (!v->waits[i] || n->msg.barrier_n || why_waits_for_any(v, i) ||
			ptl_oldest_poll(v->p, n) || why_blame_far(v, i))
			continue;
		if (!ptl_find_lost(v->p, i, &v->lines) && !why_waiters(v, i))
			why_blame_nobody(v, i);
	}
}

/* Report a circle in which each node waits for the next one. */
static void why_blame_circle(struct view *v)
{
	struct ptl_text t = {.n = 0};
	uint32_t at = 0, first = v->p->size;
	for (uint32_t i = 0; i < v->p->size && first == v->p->size; i++)
		if (why_waits_for_any(v, i))
			first = i;
	if (first == v->p->size)
		return;
	at = first;
	ptl_add(&t, "circular wait: node %u", at);
	for (uint32_t steps = 0; steps < v->p->size && steps < 16; steps++) {
		uint32_t to = 0;
		while (to < v->p->size && !why_waits_for(v, at, to))
			to++;
		if (to == v->p->size)
			break;
		ptl_add(&t, " waits for %u, which", at = to);
		if (at == first)
			break;
	}
	ptl_add(&t, " waits");
	ptl_lines_conclude(&v->lines, 0, "%s", t.s);
}

/* Name the causes of waits, if there are any. */
static void why_conclude(struct view *v, bool any)
{
	const struct ptl_picture *p = v->p;
	uint32_t alive = 0, in_barrier = 0;
	for (uint32_t i = 0; i < p->size; i++) {
		alive += ptl_is_alive(&p->node[i]);
		in_barrier += p->node[i].msg.barrier_n != 0;
	}
	ptl_cci_blame(p, LONG_S, &v->lines);
	polls_blame(p, &v->lines);
	any |= v->lines.conclusions != 0;
	why_blame_ends_of_chains(v);
	if (in_barrier == p->here && in_barrier < p->size)
		ptl_lines_conclude(&v->lines, 0,
			"all nodes of this host wait in PtlXBarrier for nodes on other "
			"hosts");
	why_blame_silence(v);
	if (any && !v->lines.conclusions)
		why_blame_circle(v);
	for (uint32_t i = 0; i < p->size; i++) { /* stopped, with no conclusion yet */
		struct ptl_text t = {.n = 0};
		if (!ptl_is_stopped(&p->node[i]) || why_waiters(v, i))
			continue;
		ptl_add(&t, PTL_NODE " ");
		why_add_culprit(&t, v, i);
		ptl_lines_conclude(&v->lines, i, "%s", t.s);
	}
	for (uint32_t i = 0; i < p->size && any; i++) {
		char state[60];
		ptl_state_text(&p->node[i], state, sizeof state);
		if (p->node[i].msg.state == P3_RDV_DIED)
			ptl_lines_conclude(&v->lines, i,
				PTL_NODE " is dead (%s): its further messages will not "
					 "come",
				state);
	}
	if (!any)
		ptl_lines_conclude(&v->lines, 0,
			"no node waits for long; %u of %u nodes%s are alive", alive,
			p->here, p->here < p->size ? " of this host" : "");
}

void ptl_why(const struct ptl_picture *p, bool apart, json_t *o)
{
	struct view v = why_view_of(p);
	bool any = false;
	v.lines.apart = apart;
	v.lines.failed = !v.pair || !v.waits;
	for (uint32_t i = 0; !v.lines.failed && i < p->size; i++) {
		any |= v.waits[i];
		if (!ptl_is_far(&p->node[i]))
			why_describe(&v, i);
	}
	if (v.pair && v.waits)
		why_conclude(&v, any);
	ptl_lines_tell(&v.lines, o);
	free(v.pair);
	free(v.waits);
}
