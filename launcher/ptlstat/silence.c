/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fate of the messages that could have made an event, when a node waits for one and
 * nothing is on its way; endpoints of CCI whose program holds its peers up; and the lines
 * that tell of these.
 */
#include "launcher/ptlstat/ptlstat.h"

#include <stdlib.h>
#include <string.h>

/* ---- lines: equal ones, but for their nodes and times, become one ---- */

/* Return the rest of a text behind a time, which ends with the same mark. */
static const char *lines_skip_time(const char *at)
{
	const char *end = *at == *PTL_TIME ? strchr(at + 1, *PTL_TIME) : NULL;
	return end ? end + 1 : at;
}

/* Compare two texts without their times. */
static bool lines_is_same(const char *a, const char *b)
{
	for (;;) {
		const char *rest_a = lines_skip_time(a), *rest_b = lines_skip_time(b);
		if ((rest_a == a) != (rest_b == b) || *rest_a != *rest_b)
			return false;
		if (!*rest_a)
			return true;
		a = rest_a + (rest_a == a);
		b = rest_b + (rest_b == b);
	}
}

/* Keep the shorter one of each two times of two texts that are equal otherwise. */
static void lines_keep_least_times(char **text, const char *other)
{
	struct ptl_text t = {.n = 0};
	for (const char *a = *text, *b = other; *a;) {
		const char *rest_a = lines_skip_time(a), *rest_b = lines_skip_time(b);
		bool less = rest_b > b && strtod(b + 1, NULL) < strtod(a + 1, NULL);
		const char *from = less ? b : a, *rest = less ? rest_b : rest_a;
		ptl_add(&t, "%.*s", rest > from ? (int)(rest - from) : 1, from);
		a = rest_a + (rest_a == a);
		b = rest_b + (rest_b == b);
	}
	char *least = strdup(t.s);
	if (least)
		free(*text);
	*text = least ? least : *text;
}

void ptl_lines_add(struct ptl_lines *l, bool conclusion, uint32_t node, uint32_t pid,
	const char *text)
{
	struct ptl_line *line = NULL;
	for (uint32_t i = 0; i < l->n && !line && (conclusion || !l->apart); i++)
		if (l->line[i].conclusion == conclusion &&
			lines_is_same(l->line[i].text, text))
			line = &l->line[i];
	if (line) {
		lines_keep_least_times(&line->text, text);
	} else {
		line = realloc(l->line, (l->n + 1) * sizeof *line);
		l->line = line ? line : l->line;
		char *copy = line ? strdup(text) : NULL;
		line = copy ? &l->line[l->n++] : NULL;
		if (line)
			*line = (struct ptl_line){.conclusion = conclusion, .text = copy};
	}
	l->failed |= !line;
	if (!line || p3_ranks_has(&line->nodes, node))
		return;
	p3_ranks_add(&line->nodes, node);
	line->pid = line->n++ ? 0 : pid;
}

void ptl_lines_conclude(struct ptl_lines *l, uint32_t node, const char *fmt, ...)
{
	char text[sizeof((struct ptl_text *)0)->s];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	ptl_lines_add(l, true, node, 0, text);
	l->conclusions++;
}

/* Return the text, with the line's node or nodes named so that a verb in the singular
 * fits behind. */
static json_t *lines_text(const struct ptl_line *line)
{
	struct ptl_text t = {.n = 0};
	char ranks[200];
	bool in_time = false;
	p3_ranks_print(&line->nodes, ranks, sizeof ranks);
	for (const char *at = line->text; *at; at++) {
		in_time ^= *at == *PTL_TIME;
		if (*at == *PTL_NODE) {
			ptl_add(&t, line->n > 1 ? "each of nodes %s" : "node %s", ranks);
			if (line->pid)
				ptl_add(&t, " (pid %u)", line->pid);
		} else if (*at != *PTL_TIME)
			ptl_add(&t, "%c", *at);
		else if (!in_time && line->n > 1)
			ptl_add(&t, " or more");
	}
	return json_string(t.s);
}

void ptl_lines_tell(struct ptl_lines *l, json_t *o)
{
	json_t *nodes = json_array(), *why = json_array();
	for (uint32_t i = 0; i < l->n; i++) {
		json_array_append_new(
			l->line[i].conclusion ? why : nodes, lines_text(&l->line[i]));
		free(l->line[i].text);
	}
	if (l->failed)
		json_array_append_new(why, json_string("out of memory"));
	free(l->line);
	json_object_set_new(o, "nodes", nodes);
	json_object_set_new(o, "why", why);
}

/* ---- silence ---- */

struct search {
	const struct ptl_picture *p;
	uint32_t i; /* the node that waits, */
	const struct ptl_node *waiter;
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
	const struct p3_wait_line *w = ptl_oldest_wait(n);
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
			!silence_is_between(n, why, s->waiter))
			continue;
		ptl_add(&t, "node %u, which is gone, dropped messages of " PTL_NODE, at);
		silence_add_case(&t, why, ptl_case_of(n, why), true);
		silence_found(s, s->i, &t);
	}
}

/* Report requests of the waiting node that came to nothing or were answered too late. */
static void silence_find_own(struct search *s, uint32_t why, const char *what)
{
	struct ptl_text t = {.n = 0};
	char about[100], reason[260], name[40];
	const struct p3_case *c = ptl_case_of(s->waiter, why);
	uint32_t k = ptl_rank_of(s->p, c->node);
	if (!c->count)
		return;
	if (k < s->p->size)
		snprintf(name, sizeof name, "node %u", k);
	else
		snprintf(name, sizeof name, "nid %u, pid %u", (uint32_t)c->who,
			(uint32_t)(c->who >> 32));
	p3_case_text(c, about, sizeof about);
	p3_why_text(why, c, reason, sizeof reason);
	ptl_add(&t, "%llu request%s of " PTL_NODE " %s, the last one %s for %s: %s",
		(unsigned long long)c->count, ptl_plural(c->count), what, about, name,
		reason);
	silence_found(s, s->i, &t);
}

static void silence_find_in_queue(
	struct search *s, const struct p3_wait_line *w, uint32_t k)
{
	const struct ptl_queue *q = &s->waiter->queue[k];
	uint64_t unread = ptl_unread_events(q);
	bool waits = w->n > P3_WAIT_HANDLES;
	struct ptl_text t = {.n = 0};
	if (!q->there)
		return;
	for (uint32_t i = 0; i < w->n && i < P3_WAIT_HANDLES; i++)
		waits |= (w->handle[i] & 0xffffff) == k;
	if (q->lost)
		ptl_add(&t,
			"EQ %u of " PTL_NODE
			" has lost %llu event%s: it holds %u, which is too few (PtlEQGet "
			"says so once, PTL_EQ_DROPPED; PtlEQAlloc of a larger one helps)",
			k, (unsigned long long)q->lost, ptl_plural(q->lost), q->size);
	else if (unread && !waits)
		ptl_add(&t,
			"%llu event%s lie unread in EQ %u of " PTL_NODE
			", which waits on another queue",
			(unsigned long long)unread, ptl_plural(unread), k);
	if (t.n)
		silence_found(s, s->i, &t);
}

uint32_t ptl_find_lost(const struct ptl_picture *p, uint32_t i, struct ptl_lines *l)
{
	struct search s = {.p = p, .i = i, .waiter = &p->node[i], .lines = l};
	const struct p3_wait_line *w = ptl_oldest_wait(&p->node[i]);
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
	const struct p3_wait_line *w = ptl_oldest_wait(n);
	if (n->unseen)
		return n->msg.state != P3_RDV_NEVER_JOINED;
	return ptl_is_stopped(n) || n->of.word[P3_G_HOSTS] ||
	       (w && w->kind == P3_WAIT_COMMAND);
}

bool ptl_has_drops(const struct ptl_node *n)
{
	return n->of.word[P3_C_DROPS] || n->of.word[P3_C_BAD_HEADERS] ||
	       ptl_case_of(n, P3_WHY_EVENT_LOST)->count;
}

enum ptl_silence ptl_silence_of(const struct ptl_picture *p, uint32_t i)
{
	const struct ptl_node *n = &p->node[i];
	const struct p3_wait_line *w = ptl_oldest_wait(n);
	/* It is certain that no message is on its way to the node or from it.  This is
	 * never certain while other members of the domain, outside the picture, can
	 * send. */
	bool quiet = p->whole;
	if (ptl_find_lost(p, i, NULL))
		return PTL_LOST;
	if (!w || w->kind != P3_WAIT_EVENT || n->of.word[P3_G_PULLS])
		return PTL_UNKNOWN;
	for (uint32_t k = 0; k < p->size && quiet; k++) {
		struct ptl_pair to = ptl_pair_of(p, k, i), from = ptl_pair_of(p, i, k);
		quiet = !silence_is_unknown(&p->node[k]) && !to.queued && !to.out &&
			!to.unread && !from.queued && !from.out && !from.unread;
	}
	/* A message that left its lane since the picture was taken has been received. */
	if (!quiet || !ptl_is_as_pictured(p, i))
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

void ptl_cci_blame(const struct ptl_picture *p, double least_s, struct ptl_lines *l)
{
	for (uint32_t at = 0; at < p->size * P3_CCI_SHOWN; at++) {
		uint32_t i = at / P3_CCI_SHOWN;
		const struct p3_cci_line *e = &p->node[i].of.endpoint[at % P3_CCI_SHOWN];
		char unread[60];
		if (!e->number || p->node[i].unseen || !ptl_is_alive(&p->node[i]))
			continue;
		snprintf(unread, sizeof unread, "%llu event%s wait for cci_get_event",
			(unsigned long long)e->unread, ptl_plural(e->unread));
		if (ptl_seconds(p, e->full_since) >= least_s)
			ptl_lines_conclude(l, i,
				PTL_NODE " holds all receive buffers of endpoint %u (%u) "
					 "since " PTL_TIME "%.1f s" PTL_TIME ": %s",
				(unsigned)e->number, (unsigned)e->buffers,
				ptl_seconds(p, e->full_since),
				e->unread ? unread
					  : "its program has taken the events, and has "
					    "yet to return them (cci_return_event)");
		if (ptl_seconds(p, e->asked_since) >= least_s)
			ptl_lines_conclude(l, i,
				PTL_NODE ": %u connect request%s not answered at "
					 "endpoint %u since " PTL_TIME "%.1f s" PTL_TIME
					 " (cci_accept or cci_reject)",
				(unsigned)e->conns, ptl_plural((uint32_t)e->conns),
				(unsigned)e->number, ptl_seconds(p, e->asked_since));
	}
}
