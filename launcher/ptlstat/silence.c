/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fate of the messages that could have made an event, when a node waits for one and
 * nothing is on its way; and endpoints of CCI whose program holds its peers up.
 */
#include "launcher/ptlstat/ptlstat.h"

struct search {
	const struct ptl_picture *p;
	uint32_t i; /* the node that waits */
	struct ptl_lines *lines;
	uint32_t found;
};

/* Report a text that is about a node (PTL_NODE). */
static void silence_found(struct search *s, uint32_t node, const struct ptl_text *t)
{
	s->found++;
	if (s->lines)
		ptl_lines_conclude(s->lines, node, "%s", t->s);
}

static const struct ptl_node *silence_waiter(const struct search *s)
{
	return &s->p->node[s->i];
}

/* Add a reason for which requests came to nothing; if `known`, add the reason's last
 * case, too.  `known` tells that this case was between the two nodes of the line. */
static void silence_add_case(
	struct ptl_text *t, uint32_t why, const struct p3_case *c, bool known)
{
	char about[100], reason[260];
	if (!known) {
		ptl_add(t, ": %s", p3_why_name(why));
		return;
	}
	p3_case_text(c, about, sizeof about);
	p3_why_text(why, c, reason, sizeof reason);
	ptl_add(t, ", the last one %s: %s", about, reason);
}

static bool silence_is_between(
	const struct ptl_node *at, uint32_t why, const struct ptl_node *from)
{
	return ptl_case_of(at, why)->count && ptl_case_of(at, why)->node == from->slot;
}

static bool silence_awaits_event(const struct ptl_picture *p, uint32_t i)
{
	const struct ptl_node *n = &p->node[i];
	const struct ptl_wait *w = n->unseen ? NULL : ptl_oldest_wait(n);
	return w && w->kind == P3_WAIT_EVENT && ptl_is_alive(n);
}

static void silence_add_name(struct ptl_text *t, uint32_t node, uint32_t subject)
{
	if (node == subject)
		ptl_add(t, PTL_NODE);
	else
		ptl_add(t, "node %u", node);
}

/* Report requests of one node that another one dropped, or gave no ACK to.  If both wait
 * for an event, the text is the same for both, and is printed once. */
static void silence_find_drops(struct search *s, uint32_t from, uint32_t at)
{
	struct ptl_text t = {.n = 0};
	struct ptl_drops d = ptl_drops_of(s->p, from, at);
	const struct ptl_node *target = &s->p->node[at], *source = &s->p->node[from];
	bool no_answer = from == s->i || silence_awaits_event(s->p, from);
	bool none = from != at && (at == s->i || silence_awaits_event(s->p, at));
	uint32_t subject = no_answer ? from : at;
	if (!d.count)
		return;
	silence_add_name(&t, at, subject);
	ptl_add(&t,
		d.why == P3_WHY_ACK_DISABLED ? " has given no ACK to %u put%s of "
					     : " has dropped %u message%s of ",
		d.count, ptl_plural(d.count));
	silence_add_name(&t, from, subject);
	silence_add_case(&t, d.why, ptl_case_of(target, d.why),
		silence_is_between(target, d.why, source));
	if (no_answer)
		ptl_add(&t, "; " PTL_NODE ", which waits for an event, gets no answer");
	if (none) {
		ptl_add(&t, "; ");
		silence_add_name(&t, at, subject);
		ptl_add(&t, ", which waits for an event, gets none of it");
	}
	silence_found(s, subject, &t);
}

/* Report messages of the waiting node that another one dropped before it left or died:
 * only the last case of each reason is kept. */
static void silence_find_remains(struct search *s, uint32_t at)
{
	const struct ptl_node *n = &s->p->node[at];
	for (uint32_t why = 1; why <= P3_WHY_ACK_DISABLED; why++) {
		struct ptl_text t = {.n = 0};
		if (n->unseen || !n->msg.remains ||
			!silence_is_between(n, why, silence_waiter(s)))
			continue;
		ptl_add(&t, "node %u, which is gone, dropped messages of " PTL_NODE, at);
		silence_add_case(&t, why, ptl_case_of(n, why), true);
		silence_found(s, s->i, &t);
	}
}

static const char *silence_target_name(
	const struct search *s, const struct p3_case *c, char name[40])
{
	snprintf(name, 40, "nid %u, pid %u", (uint32_t)c->who, (uint32_t)(c->who >> 32));
	uint32_t k = ptl_rank_of(s->p, c->node);
	if (k < s->p->size)
		snprintf(name, 40, "node %u", k);
	return name;
}

/* Report requests of the waiting node that came to nothing or were answered too late. */
static void silence_find_own(struct search *s, uint32_t why, const char *what)
{
	struct ptl_text t = {.n = 0};
	char about[100], reason[260], name[40];
	const struct p3_case *c = ptl_case_of(silence_waiter(s), why);
	if (!c->count)
		return;
	p3_case_text(c, about, sizeof about);
	p3_why_text(why, c, reason, sizeof reason);
	ptl_add(&t, "%llu request%s of " PTL_NODE " %s, the last one %s for %s: %s",
		(unsigned long long)c->count, ptl_plural(c->count), what, about,
		silence_target_name(s, c, name), reason);
	silence_found(s, s->i, &t);
}

static bool silence_waits_on(const struct ptl_wait *w, uint32_t queue)
{
	for (uint32_t k = 0; k < w->n && k < P3_WAIT_HANDLES; k++)
		if ((w->handle[k] & 0xffffff) == queue)
			return true;
	return w->n > P3_WAIT_HANDLES;
}

static void silence_find_in_queue(struct search *s, const struct ptl_wait *w, uint32_t k)
{
	const struct ptl_queue *q = &silence_waiter(s)->queue[k];
	uint64_t unread = ptl_unread_events(q);
	struct ptl_text t = {.n = 0};
	if (!q->there)
		return;
	if (q->lost) {
		ptl_add(&t,
			"EQ %u of " PTL_NODE
			" has lost %llu event%s: it holds %u, which is too few (PtlEQGet "
			"says so once, PTL_EQ_DROPPED; PtlEQAlloc of a larger one helps)",
			k, (unsigned long long)q->lost, ptl_plural(q->lost), q->size);
		silence_found(s, s->i, &t);
	} else if (unread && !silence_waits_on(w, k)) {
		ptl_add(&t,
			"%llu event%s lie unread in EQ %u of " PTL_NODE
			", which waits on another queue",
			(unsigned long long)unread, ptl_plural(unread), k);
		silence_found(s, s->i, &t);
	}
}

uint32_t ptl_find_lost(const struct ptl_picture *p, uint32_t i, struct ptl_lines *l)
{
	struct search s = {.p = p, .i = i, .lines = l};
	const struct ptl_wait *w = ptl_oldest_wait(&p->node[i]);
	for (uint32_t k = 0; k < p->size; k++) {
		silence_find_drops(&s, i, k);
		if (k != i)
			silence_find_drops(&s, k, i);
		silence_find_remains(&s, k);
	}
	silence_find_own(&s, P3_WHY_LATE, "got an answer that was dropped");
	silence_find_own(&s, P3_WHY_ABSENT, "came to nothing");
	silence_find_own(&s, P3_WHY_ENDED, "came to nothing");
	silence_find_own(&s, P3_WHY_NO_PID, "came to nothing");
	for (uint32_t k = 0; w && k < P3_QUEUES_SHOWN; k++)
		silence_find_in_queue(&s, w, k);
	return s.found;
}

/* Return true if the node may have sent, or begun to send, more than its words tell. */
static bool silence_is_unknown(const struct ptl_node *n)
{
	const struct ptl_wait *w = n->unseen ? NULL : ptl_oldest_wait(n);
	if (n->unseen)
		return n->msg.state != P3_RDV_NEVER_JOINED;
	return ptl_is_stopped(n) || n->of.word[P3_G_HOSTS] ||
	       (w && w->kind == P3_WAIT_COMMAND);
}

/* Return true if a message is on its way from one node to the other, or not answered. */
static bool silence_is_under_way(const struct ptl_picture *p, uint32_t from, uint32_t to)
{
	struct ptl_pair pair = ptl_pair_of(p, from, to);
	return pair.queued || pair.out || pair.unread;
}

/* Return true if it is certain that no message is on its way to node i or from it.  This
 * is never certain while other members of the domain, outside the picture, can send. */
static bool silence_is_quiet(const struct ptl_picture *p, uint32_t i)
{
	if (!p->whole)
		return false;
	for (uint32_t k = 0; k < p->size; k++)
		if (silence_is_unknown(&p->node[k]) || silence_is_under_way(p, k, i) ||
			silence_is_under_way(p, i, k))
			return false;
	return true;
}

bool ptl_has_drops(const struct ptl_node *n)
{
	return n->of.word[P3_C_DROPS] || n->of.word[P3_C_BAD_HEADERS] ||
	       ptl_case_of(n, P3_WHY_EVENT_LOST)->count;
}

enum ptl_silence ptl_silence_of(const struct ptl_picture *p, uint32_t i)
{
	const struct ptl_node *n = &p->node[i];
	const struct ptl_wait *w = ptl_oldest_wait(n);
	if (ptl_find_lost(p, i, NULL))
		return PTL_LOST;
	if (!w || w->kind != P3_WAIT_EVENT || n->of.word[P3_G_PULLS])
		return PTL_UNKNOWN;
	/* A message that left its lane since the picture was taken has been received. */
	if (!silence_is_quiet(p, i) || !ptl_is_as_pictured(p, i))
		return PTL_UNKNOWN;
	if (n->of.word[P3_C_RECEIVED] != w->received)
		return PTL_NO_EVENT;
	/* None of these is of a node that can be seen: it has a new life, perhaps. */
	return ptl_has_drops(n) ? PTL_UNKNOWN : PTL_NOTHING_SENT;
}

/* ---- endpoints of CCI ---- */

void ptl_cci_describe(const struct ptl_node *n, struct ptl_text *t)
{
	const uint64_t *w = n->of.word;
	if (!w[P3_G_CCI_ENDPOINTS])
		return;
	ptl_add(t, "; %llu CCI endpoint%s, %llu connection%s",
		(unsigned long long)w[P3_G_CCI_ENDPOINTS],
		ptl_plural(w[P3_G_CCI_ENDPOINTS]),
		(unsigned long long)w[P3_G_CCI_CONNECTIONS],
		ptl_plural(w[P3_G_CCI_CONNECTIONS]));
	if (w[P3_C_CCI_RNR_SENT])
		ptl_add(t, ", refused %llu for want of a receive buffer",
			(unsigned long long)w[P3_C_CCI_RNR_SENT]);
	if (w[P3_C_CCI_RNR_GOT])
		ptl_add(t, ", was refused %llu times",
			(unsigned long long)w[P3_C_CCI_RNR_GOT]);
	if (w[P3_C_CCI_DROPS])
		ptl_add(t, ", dropped %llu unreliable",
			(unsigned long long)w[P3_C_CCI_DROPS]);
}

/* Tell of an endpoint whose buffers are all in use. */
static void cci_tell_full(const struct ptl_picture *p, uint32_t i,
	const struct ptl_endpoint *e, struct ptl_lines *l)
{
	char unread[60];
	snprintf(unread, sizeof unread, "%llu event%s wait for cci_get_event",
		(unsigned long long)e->unread, ptl_plural(e->unread));
	ptl_lines_conclude(l, i,
		PTL_NODE " holds all receive buffers of endpoint %u (%u) since " PTL_TIME
			 "%.1f s" PTL_TIME ": %s",
		(unsigned)e->number, (unsigned)e->buffers, ptl_seconds(p, e->full_since),
		e->unread ? unread
			  : "its program has taken the events, and has yet to return "
			    "them (cci_return_event)");
}

void ptl_cci_blame(const struct ptl_picture *p, double least_s, struct ptl_lines *l)
{
	for (uint32_t at = 0; at < p->size * P3_CCI_SHOWN; at++) {
		uint32_t i = at / P3_CCI_SHOWN;
		const struct ptl_endpoint *e = &p->node[i].of.endpoint[at % P3_CCI_SHOWN];
		if (!e->number || p->node[i].unseen || !ptl_is_alive(&p->node[i]))
			continue;
		if (ptl_seconds(p, e->full_since) >= least_s)
			cci_tell_full(p, i, e, l);
		if (ptl_seconds(p, e->asked_since) >= least_s)
			ptl_lines_conclude(l, i,
				PTL_NODE ": %u connect request%s not answered at "
					 "endpoint %u since " PTL_TIME "%.1f s" PTL_TIME
					 " (cci_accept or cci_reject)",
				(unsigned)e->conns, ptl_plural((uint32_t)e->conns),
				(unsigned)e->number, ptl_seconds(p, e->asked_since));
	}
}
