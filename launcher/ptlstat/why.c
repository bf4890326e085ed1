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

/* ---- waits ---- */

#define LONG_S   0.3 /* shorter waits are normal */
#define SILENT_S 3   /* a host that runs is heard each second, and looked at as often */

struct view {
	const struct ptl_picture *p;
	struct ptl_pair *pair; /* indexed by from * size + to */
	bool *waits;           /* nodes that have waited for long */
	struct ptl_lines lines;
};

static void why_add_since(struct ptl_text *t, double seconds)
{
	ptl_add(t, " since " PTL_TIME "%.1f s" PTL_TIME, seconds);
}

/* ---- conditions ---- */

static const struct ptl_pair *why_pair(const struct view *v, uint32_t from, uint32_t to)
{
	return &v->pair[(size_t)from * v->p->size + to];
}

static bool why_is_over(const struct ptl_node *n)
{
	return n->msg.state == P3_RDV_DIED || n->msg.state == P3_RDV_LEFT || n->msg.ended;
}

static const struct ptl_wait *why_long_wait(
	const struct view *v, const struct ptl_node *n)
{
	const struct ptl_wait *w = n->unseen ? NULL : ptl_oldest_wait(n);
	return w && ptl_seconds(v->p, w->since_ns) >= LONG_S ? w : NULL;
}

static bool why_is_waiting(const struct view *v, const struct ptl_node *n)
{
	if (!ptl_is_alive(n) || ptl_is_stopped(n))
		return false;
	return n->msg.barrier_n || why_long_wait(v, n) || ptl_oldest_poll(v->p, n);
}

static bool why_misses_barrier(const struct view *v, uint32_t from, uint32_t to)
{
	const struct ptl_node *n = &v->p->node[to];
	return v->p->node[from].msg.barrier_n && !n->msg.barrier_n && !ptl_is_far(n);
}

static bool why_holds_sends(const struct view *v, uint32_t from, uint32_t to)
{
	return ptl_seconds(v->p, why_pair(v, from, to)->since_ns) >= LONG_S &&
	       !why_is_over(&v->p->node[to]) && !ptl_is_far(&v->p->node[to]);
}

static bool why_waits_for(const struct view *v, uint32_t from, uint32_t to)
{
	return from != to && v->waits[from] &&
	       (why_misses_barrier(v, from, to) || why_holds_sends(v, from, to) ||
		       ptl_polls_for(v->p, from, to));
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
		v.waits[i] = why_is_waiting(&v, &p->node[i]);
		for (uint32_t to = 0; to < p->size; to++)
			v.pair[(size_t)i * p->size + to] = ptl_pair_of(p, i, to);
	}
	return v;
}

/* ---- a line for each node ---- */

static void why_add_queues(
	struct ptl_text *t, const struct ptl_node *n, const struct ptl_wait *w)
{
	uint64_t unread = 0;
	for (uint32_t k = 0; k < w->n && k < P3_WAIT_HANDLES; k++) {
		uint32_t q = (uint32_t)w->handle[k] & 0xffffff;
		ptl_add(t, "%s%u", k ? ", " : w->n > 1 ? " on EQs " : " on EQ ", q);
		if (q < P3_QUEUES_SHOWN && n->queue[q].there)
			unread += ptl_unread_events(&n->queue[q]);
	}
	if (w->n > P3_WAIT_HANDLES)
		ptl_add(t, ", ...");
	ptl_add(t, " with %llu events unread", (unsigned long long)unread);
}

static void why_add_wait(struct ptl_text *t, const struct view *v,
	const struct ptl_node *n, const struct ptl_wait *w)
{
	if (w->kind == P3_WAIT_COMMAND) {
		ptl_add(t, "waits for the NIC to execute a call (operation %u)",
			(unsigned)w->handle[0]);
	} else {
		bool poll = w->n > 1 || w->deadline_ns != UINT64_MAX;
		ptl_add(t, "waits in %s", poll ? "PtlEQPoll" : "PtlEQWait");
		why_add_queues(t, n, w);
	}
	why_add_since(t, ptl_seconds(v->p, w->since_ns));
}

static void why_add_unread(struct ptl_text *t, const struct ptl_node *n)
{
	uint64_t all = 0;
	for (uint32_t k = 0; k < P3_QUEUES_SHOWN; k++)
		if (n->queue[k].there)
			all += ptl_unread_events(&n->queue[k]);
	if (all)
		ptl_add(t, ", %llu events unread", (unsigned long long)all);
}

static void why_add_missing(struct ptl_text *t, const struct view *v)
{
	struct p3_ranks missing = {{0}};
	char ranks[100] = "";
	for (uint32_t i = 0; i < v->p->size; i++)
		if (!v->p->node[i].msg.barrier_n && !ptl_is_far(&v->p->node[i]))
			p3_ranks_add(&missing, i);
	p3_ranks_print(&missing, ranks, sizeof ranks);
	if (*ranks)
		ptl_add(t, "; has not come: %s", ranks);
}

static void why_add_state(
	struct ptl_text *t, const struct view *v, const struct ptl_node *n)
{
	char state[60];
	const struct ptl_wait *w = n->unseen ? NULL : ptl_oldest_wait(n);
	const struct p3_poll *poll = n->msg.barrier_n ? NULL : ptl_oldest_poll(v->p, n);
	ptl_state_text(n, state, sizeof state);
	if (!ptl_is_alive(n) || ptl_is_stopped(n)) {
		ptl_add(t, "%s", state);
	} else if (n->msg.barrier_n) {
		ptl_add(t, "waits in PtlXBarrier");
		why_add_since(t, n->msg.barrier_ms / 1e3);
		why_add_missing(t, v);
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
		ptl_add(t, "%s", n->computes ? "runs" : "sleeps outside of Portals");
		why_add_unread(t, n);
	}
	if (poll)
		ptl_poll_describe(v->p, poll, t);
}

static void why_add_far_name(struct ptl_text *t, const struct ptl_far *f)
{
	ptl_add(t, "node %u on %s", f->slot, f->host ? f->host : "another host");
}

static void why_add_silence(struct ptl_text *t, const struct ptl_far *f)
{
	if (f->silent >= SILENT_S)
		ptl_add(t, ", host silent for " PTL_TIME "%.1f s" PTL_TIME, f->silent);
}

static void why_add_far_pairs(struct ptl_text *t, const struct view *v, uint32_t i)
{
	struct ptl_far f;
	for (uint32_t slot = 0; slot < v->p->node[i].nnodes; slot++) {
		if (!ptl_far_of(v->p, i, slot, &f) || (!f.pair.queued && !f.pair.out))
			continue;
		ptl_add(t, "; for ");
		why_add_far_name(t, &f);
		ptl_add(t, ": %u queued, %u unanswered", f.pair.queued, f.pair.out);
		if (f.pair.since_ns) {
			ptl_add(t, ", nothing taken");
			why_add_since(t, ptl_seconds(v->p, f.pair.since_ns));
		}
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
		if (pr->since_ns) {
			ptl_add(t, ", nothing taken");
			why_add_since(t, ptl_seconds(v->p, pr->since_ns));
		}
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
	struct p3_ranks waiting = {{0}};
	char ranks[100];
	uint32_t k = 0;
	ptl_add(t, n == 1 ? "; 1 node waits for it: " : "; %u nodes wait for it: ", n);
	for (uint32_t i = 0; i < v->p->size; i++) {
		if (!why_waits_for(v, i, to))
			continue;
		p3_ranks_add(&waiting, i);
		k++;
		if (n < 10)
			ptl_add(t, "%s%u", k == 1 ? "" : k == n ? " and " : ", ", i);
	}
	p3_ranks_print(&waiting, ranks, sizeof ranks);
	if (n >= 10)
		ptl_add(t, "%s", ranks);
}

static void why_add_what_lies_there(struct ptl_text *t, const struct view *v, uint32_t to)
{
	uint64_t lane = 0, queued = 0;
	for (uint32_t i = 0; i < v->p->size; i++) {
		lane += why_pair(v, i, to)->unread;
		queued += why_pair(v, i, to)->queued;
	}
	if (lane || queued)
		ptl_add(t,
			"; %llu message%s lie in its lanes, %llu more are queued for it",
			(unsigned long long)lane, ptl_plural(lane),
			(unsigned long long)queued);
}

static bool why_is_missed(const struct view *v, uint32_t to)
{
	for (uint32_t i = 0; i < v->p->size; i++)
		if (why_misses_barrier(v, i, to))
			return true;
	return false;
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

/* Name a portal index of a node that keeps requests, if there is one. */
static void why_add_keeping(struct ptl_text *t, const struct view *v, uint32_t to)
{
	uint32_t i = 0;
	while (i < v->p->size && !why_pair(v, i, to)->kept_at)
		i++;
	if (i == v->p->size)
		return;
	const struct ptl_pair *pr = why_pair(v, i, to);
	ptl_add(t,
		", and holds messages back at portal index %u of its pid %u "
		"(PtlXPTHold), where no match entry accepts the first one of node %u",
		pr->kept_at - 1, pr->kept_pid, i);
}

static void why_add_culprit(struct ptl_text *t, const struct view *v, uint32_t i)
{
	const struct ptl_node *n = &v->p->node[i];
	char state[60];
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
	why_add_keeping(t, v, i);
	if (why_is_missed(v, i))
		ptl_add(t, ", and has not come to the barrier");
}

static void why_blame_ends_of_chains(struct view *v)
{
	for (uint32_t to = 0; to < v->p->size; to++) {
		uint32_t n = why_waiters(v, to);
		if (n && !why_waits_for_any(v, to)) {
			struct ptl_text t = {.n = 0};
			ptl_add(&t, PTL_NODE " ");
			why_add_culprit(&t, v, to);
			why_add_who_waits(&t, v, to, n);
			why_add_what_lies_there(&t, v, to);
			ptl_lines_conclude(&v->lines, to, "%s", t.s);
		}
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
	const struct ptl_wait *w = ptl_oldest_wait(n);
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
		ptl_add(&t, PTL_NODE " waits for an answer of ");
		why_add_far_name(&t, &f);
		why_add_silence(&t, &f);
		ptl_lines_conclude(&v->lines, i, "%s", t.s);
	}
	return v->lines.conclusions > before;
}

/* Tell of a barrier that all nodes of this host have reached. */
static void why_blame_far_barrier(struct view *v)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < v->p->size; i++)
		n += v->p->node[i].msg.barrier_n != 0;
	if (n != v->p->here || n == v->p->size)
		return;
	ptl_lines_conclude(&v->lines, 0,
		"all nodes of this host wait in PtlXBarrier for nodes on other hosts");
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

/* Name the dead nodes, whose messages will not come. */
static void why_tell_of_the_dead(struct view *v)
{
	for (uint32_t i = 0; i < v->p->size; i++) {
		char state[60];
		if (v->p->node[i].msg.state != P3_RDV_DIED)
			continue;
		ptl_state_text(&v->p->node[i], state, sizeof state);
		ptl_lines_conclude(&v->lines, i,
			PTL_NODE " is dead (%s): its further messages will not come",
			state);
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

/* Name the stopped nodes that no conclusion is about. */
static void why_tell_of_the_stopped(struct view *v)
{
	for (uint32_t i = 0; i < v->p->size; i++) {
		struct ptl_text t = {.n = 0};
		if (!ptl_is_stopped(&v->p->node[i]) || why_waiters(v, i))
			continue;
		ptl_add(&t, PTL_NODE " ");
		why_add_culprit(&t, v, i);
		ptl_lines_conclude(&v->lines, i, "%s", t.s);
	}
}

static void why_tell_that_all_is_well(struct view *v)
{
	uint32_t alive = 0;
	for (uint32_t i = 0; i < v->p->size; i++)
		alive += ptl_is_alive(&v->p->node[i]);
	ptl_lines_conclude(&v->lines, 0,
		"no node waits for long; %u of %u nodes%s are alive", alive, v->p->here,
		v->p->here < v->p->size ? " of this host" : "");
}

/* Name the causes of waits, if there are any. */
static void why_conclude(struct view *v, bool any)
{
	ptl_cci_blame(v->p, LONG_S, &v->lines);
	ptl_polls_blame(v->p, &v->lines);
	any |= v->lines.conclusions != 0;
	why_blame_ends_of_chains(v);
	why_blame_far_barrier(v);
	why_blame_silence(v);
	if (any && !v->lines.conclusions)
		why_blame_circle(v);
	why_tell_of_the_stopped(v);
	if (any)
		why_tell_of_the_dead(v);
	if (!any)
		why_tell_that_all_is_well(v);
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
