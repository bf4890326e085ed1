/* SPDX-License-Identifier: BSD-3-Clause */
/* Pendings: requests of this node from their admission to their end. */
#include "nic/proto/proto.h"

#include "nic/obj/obj.h"
#include "nic/report/report.h"
#include "nic/run/run.h"
#include "nic/xfer/xfer.h"
#include "shm/seg.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

/* ---- memory for copies of short puts ---- */

/*
 * Copies of short puts and exchanges whose request cannot leave at once.
 *
 * The call itself posts their SEND_END, in any state of the lane, so their bytes need
 * memory of the NIC.  This memory is private, bounded, and mapped when the NIC starts,
 * because the firmware never allocates; pages that no copy has used cost nothing.  The
 * copies for one target get a quarter at most, so a stopped target leaves the rest to
 * others.  A put that finds no room for its copy is treated as a long one: its bytes stay
 * in the program's memory, and SEND_END comes when they have left.
 *
 * The bytes of a put to a target that has yet to join stay in the program's memory, until
 * the program unlinks the descriptor (close.c): a program that waits for SEND_END before
 * it ends by _exit then loses nothing.  All these targets together count as one.
 *
 * The memory is made of blocks.  All pieces of a block have the same size, a power of
 * two; a block without a piece in use may be cut anew.
 */

#define P3_COPY_LEAST   ((uint32_t)P3_CELL)
#define P3_COPY_CLASSES 8u /* P3_COPY_LEAST to P3_SHORT_MOST bytes */
#define P3_COPY_BLOCKS  (P3_COPIES_LEN / P3_SHORT_MOST)

_Static_assert(P3_COPY_LEAST << (P3_COPY_CLASSES - 1) == P3_SHORT_MOST,
	"the largest piece is a block");
_Static_assert(P3_SHORT_MOST / P3_COPY_LEAST <= 128, "a bit for each piece");

struct copy_block {
	struct p3_link link; /* in the list of empty blocks, or of its class's blocks
			      * with room */
	uint64_t free[2];    /* a bit for each free piece */
	uint32_t class;
	uint32_t used; /* number of pieces in use */
};

struct p3_copies {
	char *at;
	struct p3_link empty;
	struct p3_link roomy[P3_COPY_CLASSES];
	struct copy_block block[P3_COPY_BLOCKS];
};

int p3_copy_start(struct p3_nic *n)
{
	struct p3_copies *c = calloc(1, sizeof *c);
	if (!c)
		return -ENOMEM;
	c->at = p3_pages_map(NULL, P3_COPIES_LEN, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (c->at == MAP_FAILED) {
		free(c);
		return -ENOMEM;
	}
	p3_list_init(&c->empty);
	for (uint32_t i = 0; i < P3_COPY_CLASSES; i++)
		p3_list_init(&c->roomy[i]);
	for (uint32_t i = 0; i < P3_COPY_BLOCKS; i++)
		p3_list_add(&c->empty, &c->block[i].link);
	n->copies = c;
	return 0;
}

void p3_copy_stop(struct p3_nic *n)
{
	if (!n->copies)
		return;
	(void)munmap(n->copies->at, P3_COPIES_LEN);
	free(n->copies);
	n->copies = NULL;
}

static uint32_t copy_pieces_of(uint32_t class)
{
	return (P3_SHORT_MOST / P3_COPY_LEAST) >> class;
}

/* Return a block of the class with a free piece, or NULL. */
static struct copy_block *copy_roomy_block(struct p3_copies *c, uint32_t class)
{
	struct p3_link *list = &c->roomy[class];
	if (!p3_list_empty(list))
		return p3_item(list->next, struct copy_block, link);
	if (p3_list_empty(&c->empty))
		return NULL;
	struct copy_block *b = p3_item(c->empty.next, struct copy_block, link);
	p3_list_del(&b->link);
	p3_list_add(list, &b->link);
	uint32_t n = copy_pieces_of(class);
	b->class = class;
	b->used = 0;
	b->free[0] = n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
	b->free[1] = n > 64 ? UINT64_MAX : 0;
	return b;
}

/* Return memory for at most P3_SHORT_MOST bytes on their way to p, or NULL if there is
 * none. */
static char *copy_alloc(struct p3_nic *n, struct p3_peer *p, uint64_t len)
{
	struct p3_copies *c = n->copies;
	uint32_t class = 0;
	while ((uint64_t)P3_COPY_LEAST << class < len)
		class ++;
	uint32_t size = P3_COPY_LEAST << class;
	if (p->copied + size > P3_COPIES_LEN / 4)
		return NULL;
	struct copy_block *b = copy_roomy_block(c, class);
	if (!b)
		return NULL;
	uint32_t half = b->free[0] ? 0 : 1;
	uint32_t bit = (uint32_t)__builtin_ctzll(b->free[half]);
	b->free[half] &= b->free[half] - 1;
	if (++b->used == copy_pieces_of(class))
		p3_list_del(&b->link);
	p->copied += size;
	return c->at + (size_t)(b - c->block) * P3_SHORT_MOST +
	       (size_t)(half * 64 + bit) * size;
}

static struct copy_block *copy_block_of(struct p3_copies *c, const char *copy)
{
	return &c->block[(size_t)(copy - c->at) / P3_SHORT_MOST];
}

/* Free a copy.  Its block goes first in its list, so that the next copy uses a page that
 * was used lately. */
static void copy_free(struct p3_nic *n, struct p3_peer *p, const char *copy)
{
	struct p3_copies *c = n->copies;
	struct copy_block *b = copy_block_of(c, copy);
	uint32_t size = P3_COPY_LEAST << b->class;
	uint32_t piece = (uint32_t)((size_t)(copy - c->at) % P3_SHORT_MOST) / size;
	b->free[piece / 64] |= UINT64_C(1) << piece % 64;
	p->copied -= size;
	if (b->used-- == copy_pieces_of(b->class))
		p3_list_add(c->roomy[b->class].next, &b->link);
	if (b->used)
		return;
	p3_list_del(&b->link);
	p3_list_add(c->empty.next, &b->link);
}

/* ---- pendings ---- */

struct p3_pending *p3_pending_alloc(struct p3_nic *n, struct p3_peer *p, uint32_t kind,
	const struct p3_move *m, struct p3_md *md)
{
	struct p3_pending *t = p3_table_alloc(&n->table[P3_T_PENDING]);
	if (!t)
		return NULL;
	p3_obj_born(&t->o);
	t->kind = (uint8_t)kind;
	t->ni = md ? (uint8_t)md->o.ni : 0;
	t->peer = p;
	t->state = P3_PEND_QUEUED;
	t->md = md;
	t->md_name = md ? p3_get(&md->o.name) : 0;
	t->move = *m;
	t->is_long = false;
	t->xfer = NULL;
	t->rsp_cells = 0;
	t->send.md = NULL;
	t->copy = NULL;
	return t;
}

void p3_pending_start(struct p3_nic *n, struct p3_pending *t)
{
	if (t->send.md)
		p3_span_start(n, &t->send, PTL_EVENT_SEND_START);
	FAULT_POINT("request.started");
}

void p3_pending_end(struct p3_nic *n, struct p3_pending *t, uint32_t fail)
{
	if (fail)
		p3_record_set_mlength(&t->send.rec, 0);
	p3_span_end(n, &t->send, PTL_EVENT_SEND_END, fail);
	t->send.md = NULL; /* the send is over: no other function has to end it */
}

/* ---- copies of the bytes of short puts ---- */

/* Return the counter of copies that have not left, for copies that are addressed to
 * this peer. */
static p3_a32 *pending_copies_for(struct p3_nic *n, const struct p3_peer *p)
{
	return p3_pending_is_held(n, p) ? &n->promised : &n->leaving;
}

bool p3_pending_take_over(struct p3_nic *n, struct p3_pending *t)
{
	uint64_t len = p3_atomic_sent(t->move.what, t->move.length);
	p3_a32 *copies = pending_copies_for(n, t->peer);
	t->copy = copy_alloc(n, t->peer, len);
	if (!t->copy)
		return false;
	p3_region_read(&t->send.region, t->send.offset, t->copy, len);
	/* Before SEND_END: a thread that takes the event may look at once (LEAVE.1). */
	p3_set(copies, p3_get(copies) + 1);
	FAULT_POINT("request.copied");
	if (t->send.md) {
		if (p3_pending_is_held(n, t->peer))
			p3_pending_start(n, t);
		p3_pending_end(n, t, PTL_NI_OK);
	}
	t->send.region = (struct p3_region){.start = t->copy, .size = len};
	t->send.offset = 0;
	return true;
}

void p3_pending_copy_out(struct p3_nic *n, struct p3_pending *t)
{
	if (t->send.md && p3_pending_is_short(t) && t->peer->state == P3_LIVE)
		(void)p3_pending_take_over(n, t);
}

void p3_pending_drop_copy(struct p3_nic *n, struct p3_pending *t)
{
	p3_a32 *copies = pending_copies_for(n, t->peer);
	copy_free(n, t->peer, t->copy);
	t->copy = NULL;
	p3_release(copies, p3_get(copies) - 1); /* LEAVE.1 */
}

/* Count a copy for peer p, since its request goes to the queue of that peer. */
static P3_RARE void pending_readdress_copy(
	struct p3_nic *n, struct p3_pending *t, struct p3_peer *p)
{
	uint32_t size = P3_COPY_LEAST << copy_block_of(n->copies, t->copy)->class;
	p3_a32 *before = pending_copies_for(n, t->peer),
	       *copies = pending_copies_for(n, p);
	t->peer->copied -= size;
	p->copied += size;
	p3_set(copies, p3_get(copies) + 1);
	p3_release(before, p3_get(before) - 1); /* LEAVE.1 */
}

void p3_pending_free(struct p3_nic *n, struct p3_pending *t)
{
	if (t->copy)
		p3_pending_drop_copy(n, t);
	p3_list_del(&t->link);
	if (t->state == P3_PEND_QUEUED)
		t->peer->nqueued--;
	else
		t->peer->nout--;
	if (t->xfer)
		p3_xfer_free(n, t->xfer);
	t->xfer = NULL;
	if (t->md)
		p3_ni_use_less(&n->ni[t->ni], P3_U_OP);
	p3_table_release(&n->table[P3_T_PENDING], &t->o);
}

/* ---- ends ---- */

bool p3_pending_is_told(uint32_t kind, const struct p3_move *m, const struct p3_md *md)
{
	return md->sink.options & PTLX_MD_REPLY_ALWAYS &&
	       (kind != P3_REQ_PUT || (m->ack && p3_eq_of_sink(&md->sink)));
}

void p3_pending_answer_fails(struct p3_nic *n, uint32_t kind, const struct p3_move *m,
	struct p3_md *md, const struct p3_peer *p)
{
	bool put = kind == P3_REQ_PUT;
	struct p3_event_words rec;
	const struct p3_answerer by = {
		m->target, p ? p->uid : PTL_UID_ANY, p ? p->jid : PTL_JID_ANY};
	p3_match_threshold(md);
	p3_pending_describe_answer(m, md, &by, 0, n->next_link++, 0, &rec);
	if (!put)
		p3_event_write(n, &md->sink, &rec, PTL_EVENT_REPLY_START, PTL_NI_OK);
	p3_event_ends(n, md, &md->sink, &rec, put ? PTL_EVENT_ACK : PTL_EVENT_REPLY_END,
		PTL_NI_FAIL);
}

P3_RARE void p3_pending_unanswered(struct p3_nic *n, struct p3_pending *t, bool always)
{
	if (t->md && p3_pending_md_lives(t) &&
		(always || p3_pending_is_told(t->kind, &t->move, t->md)))
		p3_pending_answer_fails(n, t->kind, &t->move, t->md, t->peer);
}

void p3_pending_end_get(struct p3_nic *n, struct p3_pull *pull, uint32_t fail)
{
	struct p3_pending *t = pull->get;
	struct p3_span span = pull->span;
	p3_xfer_release(n, t->xfer, fail);
	t->xfer = NULL;
	if (fail)
		p3_record_set_mlength(&span.rec, 0);
	if (span.md)
		p3_span_end(n, &span, PTL_EVENT_REPLY_END, fail);
	p3_pending_free(n, t);
}

void p3_pending_fail(struct p3_nic *n, struct p3_pending *t, bool died)
{
	uint32_t fail = died ? PTL_NI_FAIL : PTL_NI_OK;
	if (!p3_pending_is_rma(t))
		p3_why_nowhere(n, t->peer, t->kind, &t->move);
	if (!t->md) {
		p3_pending_free(n, t);
		return;
	}
	if (p3_pending_is_held(n, t->peer))
		p3_pending_start(n, t);
	bool is_sent = !t->send.md; /* its send has ended, or has no events */
	if (!is_sent)
		p3_pending_end(n, t, fail);
	p3_pending_unanswered(n, t, is_sent && died && t->kind != P3_REQ_PUT);
	p3_pending_free(n, t);
}

/* ---- targets that have yet to join: questions, waits, ends ---- */

/* Return true if the target has yet to join, as far as this node knows. */
static bool hold_is_absent(
	struct p3_nic *n, const struct p3_peer *p, ptl_process_id_t who)
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
	else if (n->conf.hold_ns && hold_is_absent(n, p, who))
		*to_out = &n->absent;
	else if (n->conf.ask && may_come)
		*to_out = &n->unresolved;
	bool full = *to_out == &n->absent && n->absent.nqueued >= n->held_most;
	return full ? PTL_NO_SPACE : PTL_OK;
}

/* Let the newest request wait for the answer to a question that is asked after the
 * request came. */
static void hold_question(struct p3_nic *n)
{
	struct p3_pending *newest =
		p3_item(n->unresolved.queue.prev, struct p3_pending, link);
	newest->question = p3_hold_ask(n);
}

static void hold_move_to(struct p3_nic *n, struct p3_pending *t, struct p3_peer *p)
{
	if (t->copy)
		pending_readdress_copy(n, t, p);
	p3_list_del(&t->link);
	t->peer->nqueued--;
	t->peer = p;
	p->nqueued++;
	p3_list_add(&p->queue, &t->link);
}

static void hold_requeue(struct p3_nic *n, struct p3_pending *t, struct p3_peer *p)
{
	if (p3_pending_is_held(n, t->peer))
		p3_pending_start(n, t);
	hold_move_to(n, t, p);
}

static void hold_give_up(struct p3_nic *n, struct p3_pending *t)
{
	struct p3_peer *p = p3_peer_find(n, t->move.target);
	bool failure = p3_peer_is_failure(p, t->move.target.pid);
	if (p && p != &n->unresolved)
		hold_requeue(n, t, p);
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
			hold_give_up(n, t);
	}
	if (!p3_list_empty(&n->unresolved.queue))
		n->conf.ask(n->conf.ask_arg, ++n->asked);
	n->posted = P3_NEWS_ALL;
	return 0;
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

static struct p3_pending *hold_first_held(struct p3_nic *n)
{
	struct p3_link *first = n->absent.queue.next;
	return p3_list_empty(&n->absent.queue) ? NULL
					       : p3_item(first, struct p3_pending, link);
}

int p3_hold_expire(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_pending *t;
	uint64_t now = p3_now_ns();
	while ((t = hold_first_held(n)) && now - t->held_ns >= n->conf.hold_ns) {
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
		if (p && p->state != P3_DEAD && p->state != P3_LEFT)
			continue;
		hold_give_up(n, t);
		n->posted = P3_NEWS_ALL;
	}
}

struct p3_peer *p3_hold_readdress(struct p3_nic *n, struct p3_pending *t)
{
	ptl_process_id_t who = t->move.target;
	struct p3_peer *p = p3_peer_find(n, who);
	if (p3_peer_is_live(p, who.pid) || p3_peer_is_expected(p, who.pid)) {
		hold_requeue(n, t, p);
		return p;
	}
	if (t->peer != &n->absent || hold_is_absent(n, p, who))
		return NULL;
	/* The request's node has joined without that pid. */
	if (n->conf.ask) {
		hold_move_to(n, t, &n->unresolved);
		hold_question(n);
	} else {
		hold_give_up(n, t);
	}
	return NULL;
}

void p3_hold_newest(struct p3_nic *n, const struct p3_peer *pseudo)
{
	if (pseudo != &n->absent) {
		hold_question(n);
		return;
	}
	struct p3_pending *t = p3_item(n->absent.queue.prev, struct p3_pending, link);
	struct p3_peer *p = p3_peer_find(n, t->move.target);
	t->held_ns = p3_now_ns();
	/* Count the request in the gauges of its target, which tools read. */
	if (p && p != &n->unresolved) {
		uint32_t queued = (uint32_t)p3_get(&p->shown->shown_ops);
		p3_set(&p->shown->shown_ops, p3_pair(0, queued + 1));
		if (!queued)
			p3_set(&p->shown->shown_since, t->held_ns);
	}
	/* The thread that hears of births ends held requests when their time is up. */
	if (n->absent.nqueued == 1)
		n->conf.hold(n->conf.ask_arg);
}
