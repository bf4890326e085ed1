/* SPDX-License-Identifier: BSD-3-Clause */
/* Pulls: the reading of long transfers into the memory of this process. */
#include "nic/obj/obj.h"
#include "nic/proto/proto.h"
#include "nic/report/report.h"
#include "nic/run/run.h"
#include "nic/wire/wire.h"
#include "nic/xfer/movers.h"
#include "shm/fault.h"

#define P3_STALL_NS 100000u

struct p3_pull *p3_pull_alloc(struct p3_nic *n, struct p3_peer *p)
{
	struct p3_pull *pull = NULL;
	if (!p->own_pull.in_use)
		pull = &p->own_pull;
	for (uint32_t i = 0; !pull && p->npulls < P3_PULLS / 4 && i < P3_PULLS; i++)
		if (!n->pull[i].in_use)
			pull = &n->pull[i];
	if (!pull)
		return NULL;
	bool own = pull == &p->own_pull;
	*pull = (struct p3_pull){.peer = p, .in_use = true, .dedicated = own};
	p->npulls += !own;
	return pull;
}

static void pull_free(struct p3_pull *pull)
{
	pull->in_use = false;
	pull->peer->npulls -= !pull->dedicated;
}

bool p3_xfer_sees_heap(const struct p3_pull *pull)
{
	return pull->heap && pull->peer->heap.base;
}

#define P3_TURN_MOST 1048576u /* takes about P3_STALL_NS */

/* Return true if the pull is not the next one at the peer's window, and should wait for
 * its turn rather than read: the source sends ahead in the order of its puts, and only
 * such puts, which are not long either, go first. */
static bool pull_waits_in_turn(const struct p3_pull *pull)
{
	const struct p3_pull *now = pull->peer->bulk;
	return pull->ahead && (!now || (now->ahead && now->length <= P3_TURN_MOST));
}

/* Choose a mover, or wait for a window, in the order of such pulls.  Return
 * P3_MOVE_FAILED if no mover can continue the transfer. */
static enum p3_moved pull_choose(struct p3_nic *n, struct p3_pull *pull)
{
	enum p3_moved chosen = P3_MOVED;
	struct p3_peer *p = pull->peer;
	bool cma = p3_xfer_may_cma(pull);
	/* The peer's window is free, and no other pull waits for it for longer. */
	bool turn = !p->bulk && (p3_list_empty(&p->bulk_waits) ||
					p->bulk_waits.next == &pull->bulk_link);
	bool bulk = (n->conf.bulk || !cma) && turn && pull->done == pull->kept;
	if (p->index == n->conf.node || p3_xfer_sees_heap(pull))
		pull->mover = P3_MOVE_DIRECT;
	else if (!cma && p3_xfer_may_fetch(pull))
		pull->mover = P3_MOVE_FETCH;
	else if (bulk && (!cma || pull->ahead || p3_xfer_pick(n, pull)))
		chosen = p3_xfer_enter_window(n, pull);
	else if (cma && (turn || !pull_waits_in_turn(pull)))
		pull->mover = P3_MOVE_CMA;
	if (pull->mover != P3_MOVE_START)
		p3_list_del(&pull->bulk_link);
	else if (p3_list_empty(&pull->bulk_link))
		p3_list_add(&p->bulk_waits, &pull->bulk_link);
	return chosen;
}

void p3_pull_begin(struct p3_nic *n, struct p3_pull *pull)
{
	p3_xfer_note_bytes(n, pull);
	p3_list_add(&n->pulls, &pull->link);
	p3_list_init(&pull->bulk_link);
	p3_odd_set(n, P3_ODD_PULLS);
	pull->moved_ns = 0;
	pull->kick_ns = P3_STALL_NS;
	pull->began_ns = 0;
	pull->end = pull->kept_end = pull->length;
	pull->back.at = pull->back.known = pull->length;
	pull->again = 0; /* XFER.6: the value at publication */
	if (pull->length)
		(void)pull_choose(n, pull);
	n->worked = true;
	P3_TRACE(begin, n, pull);
	FAULT_POINT("pull.begun");
	p3_wake_self(n); /* this side pulls, and no peer rings for that */
}

void p3_pull_end(struct p3_nic *n, struct p3_pull *pull, uint32_t fail)
{
	P3_TRACE(about, n, pull->topic, P3_TRACE_END, fail, pull->length);
	p3_list_del(&pull->link);
	p3_list_del(&pull->bulk_link);
	p3_xfer_leave_window(pull);
	if (p3_unlikely(pull->fetches != NULL))
		p3_xfer_leave_fetches(pull);
	p3_xfer_recant(pull);
	if (pull->first)
		pull->peer->behind = false;
	n->worked = true;
	if (fail == PTL_NI_OK && (pull->span.md || pull->region))
		p3_xfer_learn(n, pull);
	if (pull->in_use)
		pull_free(pull);
	pull->over(n, pull, fail);
}

/* ---- slices ---- */

/* If nothing has moved for P3_STALL_NS, change the mover, or kick the owner's NIC. */
static enum p3_moved pull_unstall(struct p3_nic *n, struct p3_pull *pull)
{
	const struct p3_pull *first = pull->peer->bulk;
	if (pull->mover == P3_MOVE_START && pull->ahead && first && !first->moved_ns) {
		pull->moved_ns = 0; /* the pull in front moves */
		return P3_MOVED_NOTHING;
	}
	uint64_t now = p3_now_ns();
	if (!pull->moved_ns)
		pull->moved_ns = now;
	if (now - pull->moved_ns < P3_STALL_NS)
		return P3_MOVED_NOTHING;
	if (p3_xfer_may_cma(pull)) {
		/* Keep the window: the kernel may refuse any later slice. */
		enum p3_moved moved = p3_xfer_move_cma(n, pull);
		if (moved == P3_MOVED) {
			pull->mover = P3_MOVE_CMA;
			p3_list_del(&pull->bulk_link);
		}
		if (moved != P3_MOVED_NOTHING || pull->mover != P3_MOVE_BULK)
			return moved;
	}
	if (now - pull->moved_ns >= pull->kick_ns) {
		pull->kick_ns *= 2;
		p3_wake_kick(n, pull->peer);
	}
	return P3_MOVED_NOTHING;
}

static void pull_move_one(struct p3_nic *n, struct p3_pull *pull)
{
	enum p3_moved moved = P3_MOVED_NOTHING;
	if (pull->done == pull->end) {
		p3_pull_end(n, pull, PTL_NI_OK);
		return;
	}
	if (pull->mover == P3_MOVE_START && pull_choose(n, pull) == P3_MOVE_FAILED)
		moved = P3_MOVE_FAILED;
	else if (pull->mover == P3_MOVE_BULK)
		moved = p3_xfer_move_window(n, pull);
	else if (pull->mover == P3_MOVE_CMA)
		moved = p3_xfer_move_cma(n, pull);
	else if (pull->mover == P3_MOVE_DIRECT)
		moved = p3_xfer_move_direct(n, pull);
	else if (pull->mover == P3_MOVE_FETCH)
		moved = p3_xfer_move_fetch(n, pull);
	if (moved == P3_MOVED_NOTHING)
		moved = pull_unstall(n, pull);
	if (moved == P3_MOVE_FAILED)
		p3_pull_end(n, pull, PTL_NI_FAIL);
	else if (pull->done == pull->end)
		p3_pull_end(n, pull, PTL_NI_OK);
}

void p3_pull_move(struct p3_nic *n)
{
	n->bytes = 0; /* bytes that came through the lanes do not count here */
	p3_list_each(it, &n->pulls) {
		if (n->bytes >= P3_SLICE_LEAST)
			break;
		pull_move_one(n, p3_item(it, struct p3_pull, link));
	}
	if (p3_list_empty(&n->pulls) || n->pulls.next->next == &n->pulls)
		return;
	struct p3_link *first = n->pulls.next; /* the next pass begins with another */
	p3_list_del(first);
	p3_list_add(&n->pulls, first);
}

/* ---- ends ---- */

void p3_xfer_forget(struct p3_nic *n, uint32_t ni)
{
	p3_list_each(it, &n->pulls) {
		struct p3_pull *pull = p3_item(it, struct p3_pull, link);
		if (!pull->span.md || pull->span.md->o.ni != ni)
			continue;
		p3_span_forget(&pull->span);
		pull->ack = false;
		if (pull->get)
			pull->get->md = NULL;
		p3_pull_end(n, pull, PTL_NI_OK); /* a put ends as one that is dropped */
	}
	p3_list_each(src, &n->sources) {
		struct p3_xfer_slot *x = p3_item(src, struct p3_xfer_slot, link);
		if (!x->serving || !x->span.md || x->span.md->o.ni != ni)
			continue;
		p3_span_forget(&x->span);
		p3_xfer_finish_serving(n, x, PTL_NI_FAIL);
		if (x->offered)
			p3_far_reads_cut(n, x->peer);
	}
}
