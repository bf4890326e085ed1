/* SPDX-License-Identifier: BSD-3-Clause */
/* The firmware's main loop: one bounded pass over commands, lanes and transfers. */
#include "nic/run/lease.h"
#include "nic/cci/firmware.h"
#include "nic/proto/proto.h"
#include "nic/xfer/xfer.h"

/* lanes that one pass takes messages from, at most, where nodes share CPUs */
#define P3_PASS_MOST   128u
#define P3_PASS_BYTES  65536u
#define P3_UNLOOKED    8u  /* most shares (p3_pass_share()) between two looks */
#define P3_AHEAD       8u  /* lanes that are prefetched before they are polled */
#define P3_GATHER      16u /* lanes of a crowd that are looked at together */
#define P3_COOL_PASSES 64u /* passes between searches for quiet lanes */
#define P3_PROBING     64u /* one visit in 64 empties its lane */

/* Prefetch what an answer to this peer will touch: the peer has sent a message, and the
 * program often sends one back.  In a ring that is not open these may be other cells, or
 * the line behind the ring. */
static inline void pass_expect_to_answer(struct p3_peer *p)
{
	const struct p3_ring_tx *r = &p->req_out;
	p3_own_soon(r->next);
	p3_own_soon(r->next + 1);
	if (r->pos + 2 > r->until)
		p3_read_soon((const void *)r->credit);
	p3_read_soon((const void *)p->asleep);
}

/*
 * Tell the ring how many cells to expect at the lane's next visit.  all: this visit
 * emptied the lane.  One message says nothing about the next visit: where each side
 * waits for the other's message, no second one is there.  Nor do the positions after a
 * switch, which are of another ring.
 */
static inline void pass_expect_more(
	struct p3_ring_rx *r, uint32_t messages, uint64_t from, bool all)
{
	uint64_t took = messages > 1 ? r->pos - from : 0;
	/* a lane whose consumer lags behind has more at each visit */
	bool grows = messages < P3_PASS_MSGS;
	if (p3_unlikely(took > r->n))
		took = 0;
	if (p3_unlikely(took != 0))
		took = all ? took / 2 : grows ? 2 * took : took;
	p3_ring_expect(r, took);
}

/* The state at the begin of a visit. */
struct visit {
	uint32_t before; /* messages that the pass has taken */
	uint64_t from;   /* position in the lane */
};

static inline struct visit pass_arrive(const struct p3_nic *n, const struct p3_peer *p)
{
	return (struct visit){n->msgs, p->req_in.pos};
}

/* Poll a peer until this number of messages was taken in this pass. */
static inline void pass_poll_peer(
	struct p3_nic *n, struct p3_peer *p, struct visit v, uint32_t most)
{
	if (p3_unlikely(p->bad || !p3_peer_is_ready(n, p)))
		return;
	if (p3_unlikely(p->req_in.pos < p->req_in.sure))
		p3_ring_ask_some(&p->req_in);
	p3_rsp_take_all(n, p);
	while (n->msgs < most && p3_ring_any(&p->req_in) && n->bytes < P3_PASS_BYTES &&
		!p->bad && p3_rx_take(n, p))
		;
	p3_ring_give(&p->req_in);
	if (p3_unlikely(n->msgs == v.before))
		return;
	pass_expect_more(&p->req_in, n->msgs - v.before, v.from, n->msgs < most);
	p->quiet = 0;
	if (n->crowded)
		pass_expect_to_answer(p);
}

/* Return true if there is a message to take, or a credit to give back. */
static inline bool pass_has_news(struct p3_peer *p)
{
	return p3_likely(p3_ring_any(&p->req_in)) || p3_peer_has_response(p) ||
	       p->req_in.given != (uint32_t)p->req_in.pos;
}

static inline struct p3_peer *pass_peer_at(struct p3_nic *n, uint32_t i)
{
	return n->hot[p3_likely(i < n->nhot) ? i : i - n->nhot];
}

static inline struct p3_ring_rx *pass_lane_at(struct p3_nic *n, uint32_t i)
{
	return &pass_peer_at(n, i)->req_in;
}

/*
 * Visit a lane, and choose how many messages to take.  A look for one more message than
 * exists waits for a cache line of the producer, and takes it away just where the
 * producer writes its next message.
 *
 * With few lanes, take one message, and twice as many at each later visit, until a lane
 * has fewer.  On one CPU take all messages, since no producer runs meanwhile.
 */
static inline void pass_visit(struct p3_nic *n, struct p3_peer *p, struct visit v)
{
	uint32_t quota = n->conf.cpus <= 1 ? P3_PASS_MSGS : 1u << p->deep,
		 most = v.before + quota;
	if (pass_has_news(p))
		pass_poll_peer(n, p, v, most < P3_PASS_MSGS ? most : P3_PASS_MSGS);
	if (n->msgs - v.before >= quota) {
		if (p->deep < P3_DEEPEST)
			p->deep++;
	} else if (n->msgs < P3_PASS_MSGS && n->bytes < P3_PASS_BYTES) {
		p->deep = 0;
	}
}

/* Return true if no response comes before the lane's request, and the peer is as
 * usual. */
static P3_HOT bool pass_begins_plainly(struct p3_peer *p)
{
	return !p3_peer_has_response(p) && p3_likely(!p->odd && p->ready) &&
	       p3_likely(p->req_in.pos >= p->req_in.sure);
}

/* End a visit that has taken one message. */
static P3_HOT void pass_leave_after_one(struct p3_peer *p)
{
	p3_ring_give(&p->req_in);
	p3_ring_expect(&p->req_in, 0);
	p->quiet = 0;
}

/* Visit one of many lanes: take all messages, or one. */
static void pass_visit_slowly(struct p3_nic *n, struct p3_peer *p, bool all)
{
	uint32_t before = n->msgs, most = before + (all ? P3_PASS_MSGS : 1);
	pass_poll_peer(n, p, pass_arrive(n, p), most < n->most ? most : n->most);
	if (p3_unlikely(n->msgs - before > 1))
		p->deep = P3_DEEPEST;
	else if (p3_unlikely(p->deep))
		p->deep--;
}

/*
 * Visit one of many lanes of nodes that share CPUs.  Most have one message when their
 * consumer comes, so one is taken, unless the lane had more lately.  Some visits look
 * for more in order to know.
 */
static P3_HOT void pass_visit_in_crowd(
	struct p3_nic *n, struct p3_peer *p, uint64_t number)
{
	bool all = p3_unlikely(p->deep || number % P3_PROBING == 0);
	uint32_t before = n->msgs;
	if (p3_likely(!all) && p3_likely(pass_begins_plainly(p) && p3_rx_take(n, p)) &&
		p3_likely(n->msgs != before)) { /* it may have been no message */
		pass_leave_after_one(p);
		pass_expect_to_answer(p);
		return;
	}
	pass_visit_slowly(n, p, all);
}

/* Return the place behind place i of the hot lanes. */
static inline uint32_t pass_next_place(const struct p3_nic *n, uint32_t i)
{
	return p3_likely(i + 1 < n->nhot) ? i + 1 : 0;
}

/* The lanes of a crowd that have news, in turn. */
struct gathered {
	uint32_t n, next; /* next: place behind the last lane that was looked at */
	struct p3_peer *at[P3_GATHER];
};

/*
 * Look at this number of lanes from place i on, and prefetch what their visits will
 * touch, if they have news.  Lines that come from another CPU come at the same time,
 * since no look waits for another one, and no jump depends on what they find.
 */
static P3_HOT void pass_gather(
	struct p3_nic *n, uint32_t i, uint32_t lanes, struct gathered *g)
{
	g->n = 0;
	for (; lanes; lanes--, i = pass_next_place(n, i)) {
		struct p3_peer *p = n->hot[i];
		const struct p3_ring_rx *r = &p->req_in;
		uint64_t w0 = p3_get(&r->next->w[0]);
		bool any = (uint32_t)w0 == (uint32_t)r->usual;
		p3_read_soon(&r->next[any && p3_word0_ncells(w0) > 1]);
		p3_read_soon(&p->nid);
		p3_read_soon(&p->req_out);
		g->at[g->n] = p;
		any |= r->given != (uint32_t)r->pos;
		g->n += any | p3_peer_has_response(p);
	}
	g->next = i;
}

/* Let the next pass begin at the lane of this peer. */
static P3_RARE void pass_cut_at(struct p3_nic *n, const struct p3_peer *p)
{
	for (n->turn = 0; n->turn < n->nhot && n->hot[n->turn] != p; n->turn++)
		;
}

/*
 * Poll the lanes of nodes that share CPUs.  The next pass begins at the lane at which
 * this one stops.  One pass may take a message from each lane: a second pass would begin
 * without prefetched lines, which costs more than holding the lease for longer.
 */
static void pass_poll_crowd(struct p3_nic *n)
{
	struct gathered g;
	uint64_t number = p3_get(&n->count[P3_C_PASSES]);
	if (n->nhot >= P3_PASS_MSGS) /* a pass that takes all is not cut */
		n->most = (n->nhot < P3_PASS_MOST ? n->nhot : P3_PASS_MOST) + 1;
	g.next = n->turn < n->nhot ? n->turn : 0;
	for (uint32_t left = n->nhot, lanes; left; left -= lanes) {
		lanes = left < P3_GATHER ? left : P3_GATHER;
		pass_gather(n, g.next, lanes, &g);
		for (uint32_t k = 0; k < g.n; k++) {
			if (p3_unlikely(n->msgs >= n->most) ||
				p3_unlikely(n->bytes >= P3_PASS_BYTES)) {
				pass_cut_at(n, g.at[k]);
				return;
			}
			pass_visit_in_crowd(n, g.at[k], number++);
		}
	}
	n->turn = g.next;
}

/*
 * Poll many lanes.  Lines that came from another CPU are prefetched while earlier lanes
 * are worked on, and before that the lines that tell their places; but not those of
 * lanes that had their turn, since their producers write there soon.  The next pass
 * begins behind the lane at which this one stops.  This is not P3_PATH: nodes that take
 * turns on a CPU do not call it.
 */
static __attribute__((noinline)) void pass_poll_many(struct p3_nic *n)
{
	uint32_t i = n->turn < n->nhot ? n->turn : 0;
	for (uint32_t k = 0; k < P3_AHEAD && k < n->nhot; k++)
		p3_ring_ask(pass_lane_at(n, i + k));
	for (uint32_t left = n->nhot;
		left && n->msgs < n->most && n->bytes < P3_PASS_BYTES; left--) {
		if (left > 2 * P3_AHEAD) { /* the parts that a message touches */
			const struct p3_peer *p = pass_peer_at(n, i + 2 * P3_AHEAD);
			p3_read_soon(&p->req_in);
			p3_read_soon(&p->nid);
			p3_read_soon(&p->req_out);
		}
		if (left > P3_AHEAD)
			p3_ring_ask(pass_lane_at(n, i + P3_AHEAD));
		if (left > P3_AHEAD / 2)
			p3_ring_ask_more(pass_lane_at(n, i + P3_AHEAD / 2));
		if (p3_likely(pass_has_news(n->hot[i])))
			pass_visit_slowly(n, n->hot[i], true);
		i = pass_next_place(n, i);
	}
	n->turn = i;
}

/* Return the place in hot at which a pass over few lanes begins. */
static inline uint32_t pass_next_turn(struct p3_nic *n)
{
	uint32_t i = n->turn + 1;
	return n->turn = i < n->nhot ? i : 0;
}

static inline void pass_poll_few(struct p3_nic *n)
{
	uint32_t i = pass_next_turn(n);
	for (uint32_t left = n->nhot; left; left--) {
		pass_visit(n, n->hot[i], pass_arrive(n, n->hot[i]));
		i = p3_likely(i + 1 < n->nhot) ? i + 1 : 0;
	}
}

/*
 * Return true if every lane is empty, and few messages can have come since: none where
 * all nodes take turns on one CPU.  Return false if a few of many lanes had messages,
 * since they may have more; and if two or three nodes share a CPU, since those on the
 * others send meanwhile.
 */
static bool pass_has_emptied(const struct p3_nic *n)
{
	return ((n->dense && n->nhot > n->few) || n->conf.cpus <= 1) && n->msgs &&
	       4 * n->msgs >= n->nhot && n->msgs < n->most && p3_list_empty(&n->pulls) &&
	       p3_list_empty(&n->sources) && p3_list_empty(&n->blocked);
}

/* Do the part of a pass that is not for the hot lanes.  The work itself is not inlined:
 * it would not lie on the pages of the message path. */
P3_PATH
static __attribute__((noinline)) void pass_do_odd(struct p3_nic *n)
{
	if (!p3_list_empty(&n->pulls))
		p3_pull_move(n);
	if (!p3_list_empty(&n->sources))
		p3_source_look(n);
	if (!p3_list_empty(&n->blocked))
		p3_tx_unblock(n);
	if (p3_unlikely(p3_get(&n->hungry) != P3_MBX_NONE) &&
		p3_table_has_room(&n->table[P3_T_PENDING]))
		p3_command_feed(n);
	if (p3_unlikely(n->some_bad))
		p3_peer_down_bad(n);
	if (n->conf.nnodes > P3_ALL_HOT) {
		p3_peer_answer_doorbell(n);
		if (p3_get(&n->count[P3_C_PASSES]) % P3_COOL_PASSES == 0)
			p3_peer_cool(n);
	}
	if (p3_unlikely(n->odd & P3_ODD_CCI))
		p3_cci_timer_run(n);
	p3_odd_settle(n);
}

void p3_pass_report(struct p3_nic *n)
{
	p3_mirror_gauges(n, p3_lease_held_by(&n->lease));
	p3_cci_timer_look_now(n);
}

static P3_HOT void pass_begin(struct p3_nic *n)
{
	n->worked = false;
	n->msgs = 0;
	n->most = P3_PASS_MSGS;
	n->bytes = 0;
	FAULT_POINT("pass.begun");
}

/* Do what is due behind the polling of lanes. */
static P3_HOT bool pass_finish(struct p3_nic *n)
{
	/* That the hot lanes are many is no more to do than to poll them; the bit that
	 * says so is cleared when they have become few.  Wires were polled before. */
	const uint32_t odd = n->odd & ~(uint32_t)P3_ODD_WIRED;
	if (p3_unlikely(odd != 0) &&
		(odd != P3_ODD_LANES || p3_unlikely(n->nhot <= n->few)))
		pass_do_odd(n);
	if (p3_unlikely(n->crowded))
		p3_set(&n->emptied, pass_has_emptied(n));
	/* Peers that poll see this node's messages without a look.  Look for sleeping
	 * peers, and wake them, after a pass that found no work, or when the passes since
	 * the last look weigh P3_UNLOOKED: one that took many messages counts as several
	 * (p3_pass_share()). */
	bool worked = n->worked;
	if ((n->ntouched || n->posted) &&
		(!worked || (n->unlooked += p3_pass_share(n)) >= P3_UNLOOKED))
		p3_looks_take(n);
	if (!worked)
		p3_count(&n->drained, 1);
	p3_pass_count(n);
	return worked;
}

P3_PATH
bool p3_pass_run(struct p3_nic *n)
{
	pass_begin(n);
	if (p3_unlikely(p3_mbx_any(n->mailbox)))
		p3_command_take_posted(n);
	if (p3_unlikely(n->odd & P3_ODD_WIRED))
		p3_wires_poll(n);
	if (n->nhot <= n->few)
		pass_poll_few(n);
	else if (p3_likely(n->crowded))
		pass_poll_crowd(n);
	else
		pass_poll_many(n);
	if (p3_unlikely(n->bytes >= P3_PASS_BYTES))
		n->msgs = n->most; /* the pass was cut: transfers count bytes anew */
	if (p3_unlikely(p3_get(&n->cci.due_ns) != 0))
		p3_cci_timer_look_late(n);
	return pass_finish(n);
}

/* ---- a pass that is brief ---- */

/* Do the whole of a visit, or its rest.  This is not P3_PATH: nodes that take turns on a
 * CPU have no brief passes. */
static __attribute__((noinline)) void pass_visit_on(
	struct p3_nic *n, struct p3_peer *p, uint32_t before, uint64_t from)
{
	pass_visit(n, p, (struct visit){before, from});
}

/* Visit a lane that has a request, as pass_visit() does.  Usually there is only one. */
static P3_HOT void pass_visit_for_one(struct p3_nic *n, struct p3_peer *p)
{
	uint32_t before = n->msgs;
	uint64_t from = p->req_in.pos;
	if (p3_unlikely(!pass_begins_plainly(p) || n->msgs >= P3_PASS_MSGS ||
			!p3_rx_take(n, p)) ||
		(p->deep && p3_ring_any(&p->req_in))) {
		pass_visit_on(n, p, before, from);
		return;
	}
	p->deep = !p->deep;
	pass_leave_after_one(p);
}

P3_HOT
void p3_pass_poll_briefly(struct p3_nic *n)
{
	pass_begin(n);
	uint32_t i = pass_next_turn(n);
	for (uint32_t left = n->nhot; left; left--) {
		struct p3_peer *p = n->hot[i];
		if (p3_likely(p3_ring_any(&p->req_in)))
			pass_visit_for_one(n, p);
		else if (p3_unlikely(pass_has_news(p)))
			pass_visit_on(n, p, n->msgs, p->req_in.pos);
		else
			p->deep = 0;
		i = i + 1 < n->nhot ? i + 1 : 0;
	}
}

bool p3_pass_end(struct p3_nic *n)
{
	return pass_finish(n);
}
