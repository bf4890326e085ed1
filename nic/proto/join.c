/* SPDX-License-Identifier: BSD-3-Clause */
/* Births of peers: their lanes, their ids, the requests that waited for them. */
#define P3_LOG_AREA P3_AREA_PEER
#include "nic/proto/join.h"

#include "nic/cci/firmware.h"
#include "nic/proto/hold.h"
#include "nic/proto/ids.h"
#include "nic/proto/peer.h"
#include "nic/proto/tx.h"
#include "nic/report/trace.h"
#include "nic/run/wake.h"
#include "nic/wire/wire.h"
#include "shm/fault.h"
#include "shm/log.h"

#include <errno.h>
#include <string.h>

static void reset_out(struct p3_peer *p, const struct p3_lane *lane)
{
	p3_ring_tx_init(
		&p->req_out, lane->req_out, lane->cells, &p->theirs->req_credit[0]);
	p3_ring_tx_init(
		&p->rsp_out, lane->rsp_out, lane->cells, &p->theirs->rsp_credit[0]);
	p3_set(&p->mine->full_req, 0);
	p3_set(&p->mine->full_rsp, 0);
	p3_set(&p->mine->swapping, 0);
	p->req_full = p->rsp_full = !lane->base;
	p->acked = false;
	p->nsent = p->nanswered = 0;
	p->rsp_used = 0;
	p->rsp_cap = lane->cells - 2; /* one cell stays free, one is for SWITCH */
	FAULT_POINT("peer.lanes_reset");
	p3_release(&p->mine->tx_for, p->incarnation); /* PEER.2 */
}

static void reset_in(struct p3_peer *p, const struct p3_lane *lane)
{
	p3_ring_rx_init(&p->req_in, lane->req_in, lane->cells, &p->mine->req_credit[0],
		P3_REQ_USUAL);
	if (lane->base) /* each visit ends with p3_ring_give() */
		p3_ring_pay_late(&p->req_in);
	p3_ring_rx_init(&p->rsp_in, lane->rsp_in, lane->cells, &p->mine->rsp_credit[0],
		P3_RSP_USUAL);
	p->ahead = p->req_in.pos;
	p3_set(&p->mine->req_credit[1], 0);
	p3_set(&p->mine->rsp_credit[1], 0);
	p3_set(&p->mine->bulk_slot, 0);
	p3_set(&p->mine->reading, 0);
	p3_set(&p->shown->shown_drops, 0);
	p->nreading = 0;
	p->ready = p->bad = p->going = false;
	p->deep = 0;
	FAULT_POINT("peer.credits_reset");
	p3_release(&p->mine->rx_for, p->incarnation); /* PEER.1 */
}

static void know(struct p3_peer *p, const struct p3_peer_info *info)
{
	p->nid = info->nid;
	memcpy(p->pid, info->pid, sizeof p->pid);
	p->uid = info->uid;
	p->jid = info->jid;
	p->os_pid = info->os_pid;
	p->incarnation = info->incarnation;
}

static void readdress_from(struct p3_nic *n, struct p3_peer *from)
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
static void readdress(struct p3_nic *n)
{
	readdress_from(n, &n->absent);
	readdress_from(n, &n->unresolved);
}

static int expect(struct p3_nic *n, struct p3_peer *p, const struct p3_peer_info *info)
{
	know(p, info);
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
	readdress(n);
	if (!p3_list_empty(&p->queue))
		p3_tx_push(n, p);
	p3_cci_peer_up(n, p);
	return 0;
}

int p3_join_peer(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_peer_info *info = c->peer;
	struct p3_peer *p = &n->peer[info->node];
	/* A bad peer stays mapped after lose(), until its end is reported. */
	bool known_bad = (p->state == P3_DEAD || p->state == P3_GONE) && p->base &&
			 p->incarnation == info->incarnation;
	p3_ids_come(n, info->rank);
	if (p->state == P3_LIVE || known_bad)
		return -EEXIST;
	struct p3_lane lane;
	if (!info->base)
		return expect(n, p, info);
	know(p, info);
	p->told = p->told_own = 0;
	p->kick_ns = 0;
	int rc = p->wire->attach(n, p, info, &lane);
	if (rc) { /* the caller unmaps what info names */
		struct p3_peer_info dead;
		p3_peer_unmapped(p, &dead);
		return rc;
	}
	reset_in(p, &lane);
	reset_out(p, &lane);
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
	readdress(n);
	p3_tx_push(n, p); /* requests that were made before the birth */
	p3_cci_peer_up(n, p);
	p3_peer_end_meeting(n, p); /* a thread may wait until they lie in the lane */
	return 0;
}

int p3_join_told(struct p3_nic *n, struct p3_cmd *c)
{
	int rc = p3_hold_told(n, c);
	if (!rc && p3_cci_setup_told(n, c->coming))
		(void)p3_hold_ask(n);
	return rc;
}

int p3_join_pids(struct p3_nic *n, struct p3_cmd *c)
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
	p3_ids_renew(n);
	readdress(n);
	n->posted = P3_NEWS_ALL;
	p3_wake_self(n);
	return 0;
}
