/* SPDX-License-Identifier: BSD-3-Clause */
/* Deaths of peers: their last messages, the ends of the operations with them. */
#define P3_LOG_AREA P3_AREA_PEER
#include "nic/proto/lose.h"

#include "nic/cci/firmware.h"
#include "nic/generic/handle.h"
#include "nic/generic/take.h"
#include "nic/proto/exchange.h"
#include "nic/proto/hold.h"
#include "nic/proto/ids.h"
#include "nic/proto/peer.h"
#include "nic/proto/pending.h"
#include "nic/proto/reply.h"
#include "nic/proto/rx.h"
#include "nic/report/mirror.h"
#include "nic/report/trace.h"
#include "nic/wire/wire.h"
#include "nic/xfer/xfer.h"
#include "shm/fault.h"
#include "shm/log.h"

#include <errno.h>

/* Return the status of a get that was served to a lost peer: PTL_NI_OK if the peer had
 * read all bytes and said so before it left. */
static uint32_t serving_status(struct p3_nic *n, const struct p3_xfer_slot *x)
{
	const struct p3_xfer *theirs = p3_xfer_of_peer(n, x->peer, x->peer_id);
	bool seen = p3_acquire(&theirs->released) == x->peer_id; /* XFER.3 */
	return seen && !p3_get(&theirs->status) ? PTL_NI_OK : PTL_NI_FAIL;
}

static void end_transfers(struct p3_nic *n, struct p3_peer *p)
{
	p3_list_each(it, &n->pulls) {
		struct p3_pull *pull = p3_item(it, struct p3_pull, link);
		if (pull->peer == p)
			p3_pull_end(n, pull,
				pull->done == pull->end ? PTL_NI_OK : PTL_NI_FAIL);
	}
	p3_list_each(src, &n->sources) {
		struct p3_xfer_slot *x = p3_item(src, struct p3_xfer_slot, link);
		if (x->peer != p)
			continue;
		if (x->serving)
			p3_xfer_finish_serving(n, x, serving_status(n, x));
		else if (x->releasing)
			p3_xfer_free(n, x);
	}
}

static void end_pendings(struct p3_nic *n, struct p3_link *list, bool died)
{
	p3_list_each(it, list)
		p3_pending_fail(n, p3_item(it, struct p3_pending, link), died);
}

static void end_queues(struct p3_nic *n, struct p3_peer *p, bool died)
{
	p->state = died ? P3_DEAD : P3_GONE;
	p3_ring_shut(&p->req_out);
	p3_cci_peer_down(n, p);
	end_pendings(n, &p->outstanding, died);
	end_pendings(n, &p->queue, died);
	if (p->blocked)
		p3_list_del(&p->blocked_link);
	p->blocked = false;
	n->posted = P3_NEWS_ALL;
}

/* Lose a peer: take the messages that it had published, then end all operations with
 * it. */
static void lose(struct p3_nic *n, struct p3_peer *p, bool died)
{
	P3_TRACE(about, n, (struct p3_topic){p->index, 0}, P3_TRACE_DEATH, died,
		p->incarnation);
	if (p->wire->drain)
		p->wire->drain(n, p);
	p3_generic_handle(n);
	p->going = true;
	/* Take no more messages than the rings can hold: a peer that goes on publishing
	 * must not keep this thread here. */
	uint32_t most = 2 * (P3_BASE_CELLS + n->layout.req_cells);
	for (uint32_t i = 0; i < most && !p->bad && p3_peer_is_ready(n, p); i++)
		if (!p3_reply_take(n, p))
			break;
	for (uint32_t i = 0; i < most && !p->bad && p3_peer_is_ready(n, p); i++)
		if (!p3_rx_take(n, p) && !p3_rx_refuse(n, p))
			break;
	p3_generic_lose(n, p);
	FAULT_POINT("peer.drained");
	p3_log(P3_LOG_DEBUG, P3_AREA_PEER, "node %u (nid %u, process %u) has %s",
		p->index, p->nid, p->os_pid, died ? "died" : "left");
	p3_exchange_over(n, p);
	p->state = died ? P3_DEAD : P3_GONE;
	p3_ring_shut(&p->req_out);
	p3_peer_count_alive(n, p, false);
	P3_TRACE(focus, n, (struct p3_topic){p->index, 0}, 0);
	if (p->wire->cut)
		p->wire->cut(n, p); /* programs get their bytes back with END */
	end_transfers(n, p);
	FAULT_POINT("peer.half_lost");
	end_queues(n, p, died);
	p->rsp_used = 0;
	for (uint32_t i = 0; i < n->nhot; i++)
		if (n->hot[i] == p)
			n->hot[i] = n->hot[--n->nhot];
	p->hot = false;
	if (p->wire->detach)
		p->wire->detach(n, p);
}

void p3_lose_bad(struct p3_nic *n)
{
	n->some_bad = false;
	for (uint32_t i = 0; i < n->conf.nnodes; i++)
		if (n->peer[i].bad && n->peer[i].state == P3_LIVE)
			lose(n, &n->peer[i], true);
}

int p3_lose_peer(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_peer *p = &n->peer[c->peer->node];
	bool died = c->peer->end == P3_PEER_DIED;
	if (p->state == P3_ABSENT && c->peer->any) { /* no birth of it will come */
		c->peer->nid = n->first_nid + p->index;
		return p3_lose_rank(n, c);
	}
	if (p->state == P3_ABSENT ||
		(!c->peer->any && p->incarnation != c->peer->incarnation))
		return -ESTALE;
	if (p->state == P3_LIVE && !c->peer->now && p3_rx_settles(n, p))
		return -EAGAIN;
	if (p->state == P3_LIVE)
		lose(n, p, died);
	if (p->state == P3_EXPECTED) {
		p3_peer_end_meeting(n, p);
		p3_peer_count_alive(n, p, false);
		end_queues(n, p, died);
		p3_hold_give_up(n);
		c->peer->base = NULL;
		return 0;
	}
	p3_hold_give_up(n);
	p3_mirror_lost(p);
	p3_peer_unmapped(p, c->peer); /* the caller unmaps it */
	return 0;
}

int p3_lose_rank(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_peer *p = &n->peer[c->peer->node];
	if (n->ids) {
		p3_ids_end(n, c->peer->nid);
	} else if (p->state == P3_ABSENT) {
		p->state = P3_DEAD;
		p3_mirror_lost(p);
		p->nid = c->peer->nid;
		p->uid = PTL_UID_ANY;
		p->jid = PTL_JID_ANY;
	}
	p3_hold_give_up(n);
	return 0;
}
