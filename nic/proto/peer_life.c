/* SPDX-License-Identifier: BSD-3-Clause */
/* Births and ends of peers: their lanes and ids, their last messages, and the operations
 * with them. */
#define P3_LOG_AREA P3_AREA_PEER
#include "nic/proto/proto.h"

#include "nic/cci/firmware.h"
#include "nic/generic/upper.h"
#include "nic/report/report.h"
#include "nic/run/run.h"
#include "nic/wire/wire.h"
#include "nic/xfer/xfer.h"
#include "shm/fault.h"
#include "shm/log.h"

#include <errno.h>
#include <string.h>

/* ---- births ---- */

static void peer_reset_out(struct p3_peer *p, const struct p3_lane *lane)
{
	p3_ring_tx_init(
		&p->req_out, lane->req_out, P3_BASE_CELLS, &p->theirs->req_credit[0]);
	p3_ring_tx_init(
		&p->rsp_out, lane->rsp_out, P3_BASE_CELLS, &p->theirs->rsp_credit[0]);
	p3_set(&p->mine->full_req, 0);
	p3_set(&p->mine->full_rsp, 0);
	p3_set(&p->mine->swapping, 0);
	p->req_full = p->rsp_full = false;
	p->acked = false;
	p->nsent = p->nanswered = 0;
	p->rsp_used = 0;
	p->rsp_cap = P3_BASE_CELLS - 2; /* one cell stays free, one is for SWITCH */
	FAULT_POINT("peer.lanes_reset");
	p3_release(&p->mine->tx_for, p->incarnation); /* PEER.2 */
}

static void peer_reset_in(struct p3_peer *p, const struct p3_lane *lane)
{
	p3_ring_rx_init(&p->req_in, lane->req_in, P3_BASE_CELLS, &p->mine->req_credit[0],
		P3_REQ_USUAL);
	p3_peer_expect_usual(p);
	p3_ring_pay_late(&p->req_in); /* each visit ends with p3_ring_give() */
	p3_ring_rx_init(&p->rsp_in, lane->rsp_in, P3_BASE_CELLS, &p->mine->rsp_credit[0],
		P3_RSP_USUAL);
	p->prefetched = p->req_in.pos;
	p3_set(&p->mine->req_credit[1], 0);
	p3_set(&p->mine->rsp_credit[1], 0);
	p3_set(&p->mine->bulk_slot, 0);
	p3_set(&p->mine->reading, 0);
	p3_set(&p->shown->shown_drops, 0);
	p->nreading = 0;
	p->ready = p->bad = p->going = false;
	p->kept_at = p->left_ns = 0;
	p->deep = 0;
	FAULT_POINT("peer.credits_reset");
	p3_release(&p->mine->rx_for, p->incarnation); /* PEER.1 */
}

static void peer_know(struct p3_peer *p, const struct p3_peer_info *info)
{
	p->nid = info->nid;
	memcpy(p->pid, info->pid, sizeof p->pid);
	p3_peer_expect_usual(p);
	p->uid = info->uid;
	p->jid = info->jid;
	p->os_pid = info->os_pid;
	p->incarnation = info->incarnation;
}

static void peer_readdress_from(struct p3_nic *n, struct p3_peer *from)
{
	p3_list_each(it, &from->queue) {
		struct p3_pending *t = p3_item(it, struct p3_pending, link);
		struct p3_peer *p = p3_hold_readdress(n, t);
		if (p)
			p3_tx_push(n, p);
	}
}

/* Move each request that waited for its target to the queue of that target, in order,
 * before any later request can go there. */
static void peer_readdress(struct p3_nic *n)
{
	peer_readdress_from(n, &n->absent);
	peer_readdress_from(n, &n->unresolved);
}

static int peer_expect(
	struct p3_nic *n, struct p3_peer *p, const struct p3_peer_info *info)
{
	peer_know(p, info);
	p->base = NULL;
	p->page = NULL;
	p->acked = false;
	p->state = P3_EXPECTED;
	p3_peer_end_meeting(n, p);
	p->apart = info->apart && n->conf.meet;
	if (p->apart)
		p3_peer_count_alive(n, p, true);
	FAULT_POINT("apart.expected");
	p3_ids_renew(n);
	peer_readdress(n);
	if (!p3_list_empty(&p->queue))
		p3_tx_push(n, p);
	p3_cci_peer_up(n, p);
	return 0;
}

int p3_peer_up(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_peer_info *info = c->peer;
	struct p3_peer *p = &n->peer[info->node];
	/* A bad peer stays mapped after peer_lose(), until its end is reported. */
	bool known_bad = (p->state == P3_DEAD || p->state == P3_LEFT) && p->base &&
			 p->incarnation == info->incarnation;
	p3_ids_come(n, info->rank);
	if (p->state == P3_LIVE || known_bad)
		return -EEXIST;
	struct p3_lane lane;
	if (!info->base)
		return peer_expect(n, p, info);
	peer_know(p, info);
	p->told = p->told_own = 0;
	p->kick_ns = 0;
	p->wire->attach(n, p, info, &lane);
	peer_reset_in(p, &lane);
	peer_reset_out(p, &lane);
	p->state = P3_LIVE;
	p3_log(P3_LOG_DEBUG, P3_AREA_PEER, "node %u (nid %u, process %u) is mapped",
		p->index, p->nid, p->os_pid);
	p3_peer_say_reads(p);
	p3_ids_renew(n);
	FAULT_POINT("peer.up");
	P3_TRACE(about, n, (struct p3_topic){p->index, 0}, P3_TRACE_BIRTH, 0,
		p->incarnation);
	p3_peer_count_alive(n, p, true);
	if (p->index != n->conf.node) /* its own lane is polled from the first use on */
		p3_peer_heat(n, p);
	n->posted = P3_NEWS_ALL; /* waiting host threads look again, and poll the peer */
	p3_wake_self(n);         /* if there are none, the NIC thread does */
	peer_readdress(n);
	p3_tx_push(n, p); /* requests that were made before the birth */
	p3_cci_peer_up(n, p);
	p3_peer_end_meeting(n, p); /* a thread may wait until they lie in the lane */
	return 0;
}

int p3_peer_told(struct p3_nic *n, struct p3_cmd *c)
{
	int rc = p3_hold_told(n, c);
	if (!rc && p3_cci_setup_told(n, c->coming))
		(void)p3_hold_ask(n);
	return rc;
}

int p3_peer_pids(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_peer *p = &n->peer[c->peer->node];
	if ((p->state != P3_LIVE && p->state != P3_EXPECTED) ||
		p->incarnation != c->peer->incarnation)
		return -ESTALE;
	FAULT_POINT("peer.pids");
	/* A closed interface keeps its pid for its earlier messages. */
	for (int i = 0; i < P3_JOB_NIS; i++)
		if (c->peer->pid[i] != P3_JOB_NO_PID)
			p->pid[i] = c->peer->pid[i];
	p3_peer_expect_usual(p);
	p3_ids_renew(n);
	peer_readdress(n);
	n->posted = P3_NEWS_ALL;
	p3_wake_self(n);
	return 0;
}

/* ---- ends ---- */

/* End the transfers with a lost peer.  A get that was served to it ends well if the peer
 * had read all bytes and said so before it left. */
static void peer_end_transfers(struct p3_nic *n, struct p3_peer *p)
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
		if (x->serving) {
			const struct p3_xfer *theirs =
				p3_xfer_of_peer(n, x->peer, x->peer_id);
			bool seen =
				p3_acquire(&theirs->released) == x->peer_id; /* XFER.3 */
			bool well = seen && !p3_get(&theirs->status);
			p3_xfer_finish_serving(n, x, well ? PTL_NI_OK : PTL_NI_FAIL);
		} else if (x->releasing) {
			p3_xfer_free(n, x);
		}
	}
}

static void peer_end_pendings(struct p3_nic *n, struct p3_link *list, bool died)
{
	p3_list_each(it, list)
		p3_pending_fail(n, p3_item(it, struct p3_pending, link), died);
}

static void peer_end_queues(struct p3_nic *n, struct p3_peer *p, bool died)
{
	p->state = died ? P3_DEAD : P3_LEFT;
	p3_ring_shut(&p->req_out);
	p3_cci_peer_down(n, p);
	peer_end_pendings(n, &p->outstanding, died);
	peer_end_pendings(n, &p->queue, died);
	if (p->blocked)
		p3_list_del(&p->blocked_link);
	p->blocked = false;
	n->posted = P3_NEWS_ALL;
}

/* Lose a peer: take the messages that it had published, then end all operations with
 * it. */
static void peer_lose(struct p3_nic *n, struct p3_peer *p, bool died)
{
	P3_TRACE(about, n, (struct p3_topic){p->index, 0}, P3_TRACE_DEATH, died,
		p->incarnation);
	p3_far_drain(n, p);
	p3_generic_handle(n);
	p->going = true;
	p3_deliver_keep_no_more(n, p);
	/* Take no more messages than the rings can hold: a peer that goes on publishing
	 * must not keep this thread here. */
	uint32_t most = 2 * (P3_BASE_CELLS + n->layout.req_cells);
	for (uint32_t i = 0; i < most && !p->bad && p3_peer_is_ready(n, p); i++)
		if (!p3_rsp_take(n, p))
			break;
	for (uint32_t i = 0; i < most && !p->bad && p3_peer_is_ready(n, p); i++)
		if (!p3_rx_take(n, p) && !p3_rx_refuse(n, p))
			break;
	p3_generic_lose(n, p);
	FAULT_POINT("peer.drained");
	p3_log(P3_LOG_DEBUG, P3_AREA_PEER, "node %u (nid %u, process %u) has %s",
		p->index, p->nid, p->os_pid, died ? "died" : "left");
	p3_getput_over(n, p);
	p->state = died ? P3_DEAD : P3_LEFT;
	p3_ring_shut(&p->req_out);
	p3_peer_count_alive(n, p, false);
	P3_TRACE(focus, n, (struct p3_topic){p->index, 0}, 0);
	p3_far_reads_cut(n, p); /* programs get their bytes back with END */
	peer_end_transfers(n, p);
	FAULT_POINT("peer.half_lost");
	peer_end_queues(n, p, died);
	p->rsp_used = 0;
	for (uint32_t i = 0; i < n->nhot; i++)
		if (n->hot[i] == p)
			n->hot[i] = n->hot[--n->nhot];
	p->hot = false;
	p3_far_detach(n, p);
}

void p3_peer_down_bad(struct p3_nic *n)
{
	n->some_bad = false;
	for (uint32_t i = 0; i < n->conf.nnodes; i++)
		if (n->peer[i].bad && n->peer[i].state == P3_LIVE)
			peer_lose(n, &n->peer[i], true);
}

int p3_peer_down(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_peer *p = &n->peer[c->peer->node];
	bool died = c->peer->end == P3_PEER_DIED;
	if (p->state == P3_ABSENT && c->peer->any) { /* no birth of it will come */
		c->peer->nid = n->first_nid + p->index;
		return p3_peer_over(n, c);
	}
	if (p->state == P3_ABSENT ||
		(!c->peer->any && p->incarnation != c->peer->incarnation))
		return -ESTALE;
	if (p->state == P3_LIVE && !c->peer->now && p3_rx_take_last(n, p, !died))
		return -EAGAIN;
	if (p->state == P3_LIVE)
		peer_lose(n, p, died);
	bool mapped = p->state != P3_EXPECTED;
	if (!mapped) {
		p3_peer_end_meeting(n, p);
		p3_peer_count_alive(n, p, false);
		peer_end_queues(n, p, died);
	}
	p3_hold_give_up(n);
	p3_mirror_lost(p);
	if (mapped)
		p3_peer_unmapped(p, c->peer); /* the caller unmaps it */
	else
		c->peer->base = NULL;
	return 0;
}

int p3_peer_over(struct p3_nic *n, struct p3_cmd *c)
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
