/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that come to nothing: the reasons, for the log and for tools.  This code
 * runs when a request has failed already, so it may walk a match list a second time.
 */
#define P3_LOG_AREA P3_AREA_MATCH
#include "nic/match/match.h"
#include "nic/report/report.h"
#include "shm/log.h"
#include "shm/why.h"

#define P3_WHY_WALK  4096u /* entries looked at for the first requests of a peer, */
#define P3_WHY_SHORT 64u   /* and for most of the later ones */
#define P3_WHY_EACH  64u

_Static_assert(P3_REQ_GET == P3_REQ_PUT + 1 && P3_REQ_GETPUT == P3_REQ_PUT + 2 &&
		       P3_CASE_GET == P3_CASE_PUT + 1 &&
		       P3_CASE_GETPUT == P3_CASE_PUT + 2,
	"kinds of requests and of cases are in the same order");

/* ---- reasons why a request finds no descriptor ---- */

static enum p3_why why_access_lacks(
	const struct p3_ni *ni, const struct p3_ask *ask, struct p3_case *c)
{
	if (ask->ac_index > (uint32_t)ni->limits.max_ac_index) {
		c->near = (uint64_t)ni->limits.max_ac_index;
		return P3_WHY_AC_RANGE;
	}
	const struct p3_ac *e = &ni->ac[ask->ac_index];
	if (!e->valid)
		return P3_WHY_AC_UNSET;
	c->near = e->who.is;
	c->mask = e->who.mask;
	if (!p3_want_matches(e->who, ask->who))
		return P3_WHY_AC_ID;
	c->near = e->owner.is;
	c->mask = e->owner.mask;
	if (!p3_want_matches(e->owner, ask->owner))
		return P3_WHY_AC_OWNER;
	c->near = e->pt_index;
	return P3_WHY_AC_PORTAL;
}

/* Return P3_WHY_NONE if the descriptor accepts the request. */
static enum p3_why why_md_lacks(
	const struct p3_md *md, const struct p3_ask *ask, struct p3_case *c)
{
	uint32_t options = md->sink.options;
	bool remote = options & PTL_MD_MANAGE_REMOTE;
	uint64_t offset = remote ? ask->remote_offset : md->local_offset;
	uint64_t size = md->region.size;
	if (md->odd & P3_MD_ODD_INACTIVE)
		return md->words.threshold ? P3_WHY_MAX_SIZE : P3_WHY_THRESHOLD;
	if (p3_match_options(ask->kind) & ~options)
		return P3_WHY_OPERATION;
	c->near = size;
	c->mask = offset;
	if (offset > size)
		return P3_WHY_OFFSET;
	c->near = size - offset;
	bool fits = ask->length <= c->near || (options & PTL_MD_TRUNCATE);
	return fits ? P3_WHY_NONE : P3_WHY_LENGTH;
}

static enum p3_why why_entry_lacks(
	const struct p3_me *me, const struct p3_ask *ask, struct p3_case *c)
{
	c->near = me->bits;
	c->mask = me->ignore;
	if ((ask->bits ^ me->bits) & ~me->ignore)
		return P3_WHY_BITS;
	c->near = me->who.is;
	c->mask = me->who.mask;
	if (!p3_want_matches(me->who, ask->who))
		return P3_WHY_SOURCE;
	return me->md ? why_md_lacks(me->md, ask, c) : P3_WHY_NO_MD;
}

static int why_bits_between(const struct p3_case *c)
{
	return __builtin_popcountll((c->bits ^ c->near) & ~c->mask);
}

/* Find the nearest match entry, among the first "most" entries of the list.  Reasons are
 * in the order of the tests: a later one is nearer to a match. */
static enum p3_why why_list_lacks(const struct p3_portal *list, const struct p3_ask *ask,
	uint32_t most, struct p3_case *c)
{
	enum p3_why best = P3_WHY_EMPTY;
	struct p3_case one = *c;
	for (const struct p3_me *me = list->head; me && one.entries < most;
		me = me->next) {
		one.entries++;
		enum p3_why why = why_entry_lacks(me, ask, &one);
		if (why == P3_WHY_NONE)
			return P3_WHY_GONE; /* it matches: its initiator has ended */
		bool nearer = why == P3_WHY_BITS && best == P3_WHY_BITS
				      ? why_bits_between(&one) < why_bits_between(c)
				      : why > best;
		if (nearer) {
			best = why;
			*c = one;
		}
	}
	c->entries = one.entries;
	return best;
}

static enum p3_why why_request_lacks(const struct p3_ni *ni, const struct p3_ask *ask,
	uint32_t most, struct p3_case *c)
{
	if (!ni)
		return P3_WHY_NO_PROCESS;
	if (ask->pt_index > (uint32_t)ni->limits.max_pt_index) {
		c->near = (uint64_t)ni->limits.max_pt_index;
		return P3_WHY_NO_PORTAL;
	}
	return p3_match_allows(ni, ask)
		       ? why_list_lacks(&ni->portal[ask->pt_index], ask, most, c)
		       : why_access_lacks(ni, ask, c);
}

/* ---- keeping and reporting reasons ---- */

/* Return true if a reason is about requests of this node. */
static bool why_is_own(enum p3_why why)
{
	return why >= P3_WHY_LATE && why <= P3_WHY_NO_PID;
}

static void why_keep(struct p3_nic *n, enum p3_why why, struct p3_case *c)
{
	struct p3_case_line *lines = p3_published_at(n, n->layout.cases_off);
	struct p3_case_line *line = &lines[why - 1];
	uint64_t w[P3_CASE_WORDS];
	c->count = p3_get(&line->w[0]) + 1;
	memcpy(w, c, sizeof w);
	for (uint32_t i = 0; i < P3_CASE_WORDS; i++)
		p3_set(&line->w[i], w[i]);
}

/* Keep a case.  Log it if its mark, one of the bits of told, is not set and the log of
 * the area is on; then set the mark. */
static void why_report(struct p3_nic *n, uint32_t *told, enum p3_why mark,
	enum p3_why why, struct p3_case *c, const char *what)
{
	bool own = why_is_own(why);
	enum p3_log_area area = own ? P3_AREA_SEND : P3_AREA_MATCH;
	char about[100], reason[260];
	why_keep(n, why, c);
	if (*told >> mark & 1 || !p3_log_is(P3_LOG_DROPS, area))
		return;
	*told |= 1u << mark;
	p3_case_text(c, about, sizeof about);
	p3_why_text(why, c, reason, sizeof reason);
	p3_log(P3_LOG_DROPS, area, "%s %s nid %u, pid %u %s: %s", about,
		own ? "to" : "from", (uint32_t)c->who, (uint32_t)(c->who >> 32), what,
		reason);
}

static void why_keep_for_peer(struct p3_peer *p, enum p3_why why)
{
	uint32_t number = (uint32_t)p3_get(&p->shown->shown_drops) + 1;
	p3_set(&p->shown->shown_drops, p3_pair(why, number));
}

/* Return the kind of a case. */
static uint16_t why_kind_of(uint32_t kind, uint32_t what)
{
	uint32_t name = p3_request_name(kind, what);
	return (uint16_t)(name >= P3_REQ_KINDS ? name - P3_REQ_KINDS + P3_CASE_ATOMIC
					       : name - P3_REQ_PUT + P3_CASE_PUT);
}

static struct p3_case why_case_in(const struct p3_peer *p, const struct p3_ask *ask)
{
	return (struct p3_case){.who = ask->who,
		.node = p->index,
		.pt_index = ask->pt_index,
		.ac_index = (uint16_t)ask->ac_index,
		.kind = why_kind_of(ask->kind, ask->what),
		.bits = ask->bits,
		.length = ask->length};
}

void P3_RARE p3_why_dropped(
	struct p3_nic *n, struct p3_peer *p, const struct p3_ni *ni, struct p3_ask ask)
{
	uint32_t before = (uint32_t)p3_get(&p->shown->shown_drops);
	bool far = before < P3_WHY_EACH || before % P3_WHY_EACH == 0;
	struct p3_case c = why_case_in(p, &ask);
	enum p3_why why =
		why_request_lacks(ni, &ask, far ? P3_WHY_WALK : P3_WHY_SHORT, &c);
	if (why >= P3_WHY_AC_RANGE && why <= P3_WHY_AC_PORTAL)
		p3_count(&n->count[P3_C_DENIED], 1);
	why_keep_for_peer(p, why);
	why_report(n, &p->told, why, why, &c, "was dropped");
}

void P3_RARE p3_why_no_ack(struct p3_nic *n, struct p3_peer *p, struct p3_ask ask)
{
	struct p3_case c = why_case_in(p, &ask);
	why_keep_for_peer(p, P3_WHY_ACK_DISABLED);
	why_report(
		n, &p->told, P3_WHY_ACK_DISABLED, P3_WHY_ACK_DISABLED, &c, "gets no ACK");
}

void P3_RARE p3_why_truncated(
	struct p3_nic *n, struct p3_peer *p, struct p3_ask ask, uint64_t mlength)
{
	struct p3_case c = why_case_in(p, &ask);
	c.near = mlength;
	p3_count(&n->count[P3_C_TRUNCATED], 1);
	why_report(n, &p->told, P3_WHY_TRUNCATED, P3_WHY_TRUNCATED, &c, "was truncated");
}

static struct p3_case why_case_out(const struct p3_nic *n, const struct p3_peer *p,
	uint32_t kind, const struct p3_move *m)
{
	return (struct p3_case){.who = p3_pair(m->target.pid, m->target.nid),
		.node = p && p->index < n->conf.nnodes ? p->index : P3_NONE,
		.pt_index = m->pt_index,
		.ac_index = m->ac_index,
		.kind = why_kind_of(kind, m->what),
		.bits = m->bits,
		.length = m->length};
}

void P3_RARE p3_why_nowhere(
	struct p3_nic *n, struct p3_peer *p, uint32_t kind, const struct p3_move *m)
{
	struct p3_case c = why_case_out(n, p, kind, m);
	struct p3_peer *to = p ? p : &n->unresolved;
	enum p3_why why = to->state == P3_LEFT || to->state == P3_DEAD ? P3_WHY_ENDED
			  : to->state == P3_ABSENT                     ? P3_WHY_ABSENT
								       : P3_WHY_NO_PID;
	why_report(n, &to->told_own, why, why, &c, "comes to nothing");
}

void P3_RARE p3_why_late(struct p3_nic *n, const struct p3_pending *t)
{
	struct p3_case c = why_case_out(n, t->peer, t->kind, &t->move);
	why_report(n, &t->peer->told_own, P3_WHY_LATE, P3_WHY_LATE, &c,
		"has an answer that is dropped");
}

void P3_RARE p3_why_failed(struct p3_nic *n, const struct p3_pending *t)
{
	struct p3_case c = why_case_out(n, t->peer, t->kind, &t->move);
	c.near = 1;
	/* Use a bit of told_own that belongs to no reason: that of P3_WHY_LATE may be
	 * set already, for another late answer. */
	why_report(
		n, &t->peer->told_own, P3_WHY_END, P3_WHY_LATE, &c, "was not delivered");
}

void P3_RARE p3_why_lost(struct p3_evq_tx *tx)
{
	struct p3_eq *eq = p3_item(tx, struct p3_eq, tx);
	struct p3_case c = {.node = P3_NONE, .near = p3_obj_index(&eq->o), .mask = eq->n};
	char reason[260];
	why_keep(eq->nic, P3_WHY_EVENT_LOST, &c);
	p3_why_text(P3_WHY_EVENT_LOST, &c, reason, sizeof reason);
	p3_log(P3_LOG_DROPS, P3_AREA_EVENT, "an unread event was overwritten: %s",
		reason);
}

/* ---- the end ---- */

/* Log the number of each reason that has more cases than the one that was logged. */
void p3_why_sum(struct p3_nic *n)
{
	const struct p3_case_line *line = p3_published_at(n, n->layout.cases_off);
	for (uint32_t why = 1; why < P3_WHY_END; why++) {
		uint64_t count = p3_get(&line[why - 1].w[0]);
		enum p3_log_area area = why_is_own(why)            ? P3_AREA_SEND
					: why == P3_WHY_EVENT_LOST ? P3_AREA_EVENT
								   : P3_AREA_MATCH;
		if (count > 1)
			p3_log(P3_LOG_DROPS, area, "%s: %llu in all", p3_why_name(why),
				(unsigned long long)count);
	}
	if (p3_log_unsaid())
		p3_log(P3_LOG_INFO, P3_AREA_NIC,
			"%u lines were not written: standard error had no room",
			p3_log_unsaid());
}
