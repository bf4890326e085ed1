/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests whose target has yet to join: questions, waits, ends. */
#include "nic/proto/hold.h"

#include "nic/proto/ids.h"
#include "nic/proto/peer.h"
#include "nic/proto/pending.h"
#include "nic/report/report.h"

#include <errno.h>

/* Return true if the target has yet to join, as far as this node knows. */
static bool is_absent(struct p3_nic *n, const struct p3_peer *p, ptl_process_id_t who)
{
	if (n->ids)
		return p == &n->unresolved && p3_ids_may_come(n, who);
	return p && p->state == P3_ABSENT;
}

int p3_hold_find_queue(struct p3_nic *n, struct p3_peer *p, ptl_process_id_t who,
	struct p3_peer **to_out)
{
	bool may_come = p ? p->state != P3_DEAD : n->ids != NULL;
	*to_out = NULL;
	if (p3_peer_is_expected(p, who.pid))
		*to_out = p;
	else if (n->conf.hold_ns && is_absent(n, p, who))
		*to_out = &n->absent;
	else if (n->conf.ask && may_come)
		*to_out = &n->unresolved;
	bool full = *to_out == &n->absent && n->absent.nqueued >= n->held_most;
	return full ? PTL_NO_SPACE : PTL_OK;
}

/* ---- targets that are not known ---- */

/* Let the newest request wait for the answer to a question that is asked after the
 * request came. */
static void question(struct p3_nic *n)
{
	struct p3_pending *newest =
		p3_item(n->unresolved.queue.prev, struct p3_pending, link);
	newest->question = p3_hold_ask(n);
}

static void move_to(struct p3_nic *n, struct p3_pending *t, struct p3_peer *p)
{
	if (t->copy)
		p3_pending_readdress_copy(n, t, p);
	p3_list_del(&t->link);
	t->peer->nqueued--;
	t->peer = p;
	p->nqueued++;
	p3_list_add(&p->queue, &t->link);
}

static void requeue(struct p3_nic *n, struct p3_pending *t, struct p3_peer *p)
{
	if (p3_pending_is_held(n, t->peer))
		p3_pending_start(n, t);
	move_to(n, t, p);
}

static void give_up(struct p3_nic *n, struct p3_pending *t);

/* Ask whether another node has the pid of a held request, since the request's node has
 * joined without that pid. */
static P3_RARE void ask_for(struct p3_nic *n, struct p3_pending *t)
{
	if (!n->conf.ask) {
		give_up(n, t);
		return;
	}
	move_to(n, t, &n->unresolved);
	question(n);
}

static void give_up(struct p3_nic *n, struct p3_pending *t)
{
	struct p3_peer *p = p3_peer_find(n, t->move.target);
	bool failure = p3_peer_is_failure(p, t->move.target.pid);
	if (p && p != &n->unresolved)
		requeue(n, t, p);
	p3_pending_fail(n, t, failure);
}

int p3_hold_told(struct p3_nic *n, const struct p3_cmd *c)
{
	if (n->told == n->asked || (uint32_t)c->handle != n->asked)
		return -ESTALE;
	n->told = n->asked;
	p3_list_each(it, &n->unresolved.queue) {
		struct p3_pending *t = p3_item(it, struct p3_pending, link);
		if (t->question == n->told)
			give_up(n, t);
	}
	if (!p3_list_empty(&n->unresolved.queue))
		n->conf.ask(n->conf.ask_arg, ++n->asked);
	n->posted = P3_NEWS_ALL;
	return 0;
}

/* ---- targets that have yet to join ---- */

/* Count a held request in the gauges of its target, which tools read. */
static void show_held(struct p3_nic *n, const struct p3_pending *t)
{
	struct p3_peer *p = p3_peer_find(n, t->move.target);
	if (!p || p == &n->unresolved)
		return;
	uint32_t queued = (uint32_t)p3_get(&p->shown->shown_ops);
	p3_set(&p->shown->shown_ops, p3_pair(0, queued + 1));
	if (!queued)
		p3_set(&p->shown->shown_since, t->held_ns);
}

void p3_hold_show_end(struct p3_nic *n, const struct p3_pending *t)
{
	struct p3_peer *p = p3_peer_find(n, t->move.target);
	if (!p || p == &n->unresolved || p->state != P3_ABSENT)
		return;
	uint32_t queued = (uint32_t)p3_get(&p->shown->shown_ops);
	p3_mirror_lost(p);
	p3_list_each(it, &n->absent.queue) {
		struct p3_pending *next = p3_item(it, struct p3_pending, link);
		if (next == t || p3_peer_find(n, next->move.target) != p)
			continue;
		p3_set(&p->shown->shown_since, next->held_ns);
		p3_set(&p->shown->shown_ops, p3_pair(0, queued - 1));
		return;
	}
}

/* Begin to hold the newest request: note the time.  If no other request is held, tell the
 * thread that hears of births, which ends such requests when their time is up. */
static void hold(struct p3_nic *n)
{
	struct p3_pending *newest =
		p3_item(n->absent.queue.prev, struct p3_pending, link);
	newest->held_ns = p3_now_ns();
	show_held(n, newest);
	if (n->absent.nqueued == 1)
		n->conf.hold(n->conf.ask_arg);
}

static struct p3_pending *first_held(struct p3_nic *n)
{
	struct p3_link *first = n->absent.queue.next;
	return p3_list_empty(&n->absent.queue) ? NULL
					       : p3_item(first, struct p3_pending, link);
}

int p3_hold_expire(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_pending *t;
	uint64_t now = p3_now_ns();
	while ((t = first_held(n)) && now - t->held_ns >= n->conf.hold_ns) {
		p3_hold_show_end(n, t);
		p3_pending_fail(n, t, true);
		n->posted = P3_NEWS_ALL;
	}
	c->held = (struct p3_on_hold){.n = n->absent.nqueued};
	if (t) {
		c->held.who = t->move.target;
		c->held.since_ns = t->held_ns;
	}
	return PTL_OK;
}

void p3_hold_give_up(struct p3_nic *n)
{
	p3_list_each(it, &n->absent.queue) {
		struct p3_pending *t = p3_item(it, struct p3_pending, link);
		struct p3_peer *p = p3_peer_find(n, t->move.target);
		if (p && p->state != P3_DEAD && p->state != P3_GONE)
			continue;
		give_up(n, t);
		n->posted = P3_NEWS_ALL;
	}
}

/* ---- requests of either pseudo-peer ---- */

struct p3_peer *p3_hold_readdress(struct p3_nic *n, struct p3_pending *t)
{
	ptl_process_id_t who = t->move.target;
	struct p3_peer *p = p3_peer_find(n, who);
	if (p3_peer_is_live(p, who.pid) || p3_peer_is_expected(p, who.pid)) {
		requeue(n, t, p);
		return p;
	}
	if (t->peer == &n->absent && !is_absent(n, p, who))
		ask_for(n, t);
	return NULL;
}

void p3_hold_newest(struct p3_nic *n, const struct p3_peer *pseudo)
{
	(pseudo == &n->absent ? hold : question)(n);
}
