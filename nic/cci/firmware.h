/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * firmware - CCI's part of the firmware, as the other rooms of nic/ call it
 *
 * Only the lease holder calls these functions, except where a comment says (any).  The
 * state is that of nic/cci/state.h: n->cci, and p->cci of each peer.
 */
#ifndef P3_NIC_CCI_FIRMWARE_H
#define P3_NIC_CCI_FIRMWARE_H

#include "nic/state.h"
#include "shm/park.h"

struct p3_incoming;

/* ---- the NIC, peers, passes ---- */

/* Reset the state for a new life of the NIC, and that of a peer. */
void p3_cci_reset(struct p3_nic *n);
void p3_cci_reset_peer(struct p3_peer *p);
/* The peer is lost, and its state says so: end all that is under way with it. */
void p3_cci_peer_down(struct p3_nic *n, struct p3_peer *p);
/* Do the part of a pass that P3_ODD_CCI asks for: fire the timers that are due. */
void p3_cci_timer_run(struct p3_nic *n);
/* Free all endpoints.  The NIC has stopped, and the caller has the lease for ever. */
void p3_cci_free_all(struct p3_nic *n);
/* Execute a call of a host thread that came by the mailbox. */
int p3_cci_command(struct p3_nic *n, struct p3_cmd *c);
/* Show CCI's gauges and endpoints in the control block, for tools, with the other
 * gauges (nic/report/mirror.c): in the lines of shm/layout.h, which decide nothing. */
P3_RARE void p3_cci_gauges(struct p3_nic *n, uint64_t now);

/* The question n->told is answered; coming is that of p3_nic_peer_told().  Return true if
 * a connect waits for the answer to the next question. */
bool p3_cci_setup_told(struct p3_nic *n, const uint64_t *coming);
/* The peer has joined: ask it for the connections that wait for its node. */
void p3_cci_peer_up(struct p3_nic *n, struct p3_peer *p);

/* ---- timers ---- */

/* (any) Return true if a timer is due. */
static inline bool p3_cci_timer_is_due(const struct p3_nic *n)
{
	uint64_t due = p3_get(&n->cci.due_ns);
	return p3_unlikely(due != 0) && p3_now_ns() >= due;
}

/* Look for timers that are due: at a whole pass, if there are timers, or now. */
void p3_cci_timer_look_late(struct p3_nic *n);
void p3_cci_timer_look_now(struct p3_nic *n);

/* (any) Return the time that a thread may sleep: ns, or less if a timer is due before. */
uint64_t p3_cci_timer_nap(struct p3_nic *n, uint64_t ns);
static inline uint64_t p3_cci_nap(struct p3_nic *n, uint64_t ns)
{
	return p3_likely(!p3_get(&n->cci.due_ns)) ? ns : p3_cci_timer_nap(n, ns);
}

/* ---- OS handles ---- */

/* Make each OS handle readable whose endpoint has events that no thread takes: the NIC
 * thread does that at its ticks, and before it sleeps.  Before a sleep it also ends
 * the state IDLE, in which only ticks wake a program that does not poll any more. */
void p3_cci_event_remind(struct p3_nic *n);

/* ---- the send queue of a peer ----
 *
 * A connection that has messages to send and finds no room is in its peer's list "work".
 * That list has one entry in the peer's queue of Portals' requests, its marker.  So CCI
 * and Portals take turns where the lane is short of room, and neither starves the other.
 */

/* Return true if a message waits for room in the peer's lane. */
static inline bool p3_cci_sendq_waits(const struct p3_peer *p)
{
	return !p3_list_empty(&p->cci.work) || !p3_list_empty(&p->cci.rejects);
}

/* Send from the peer's lists.  Return true if a message was sent. */
bool p3_cci_sendq_push(struct p3_nic *n, struct p3_peer *p);

/* ---- requests and answers off the lanes ----
 *
 * A request never waits in its lane for a program: if there is no room, it is refused.
 */

/* Take a request of one of CCI's kinds but WRITE and READ, whose header is c with word 0
 * w0.  Return false if the peer wrote nonsense. */
bool p3_cci_req_take(
	struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c, uint64_t w0);

/*
 * Take a message at the peer's lane, which is not one of several parts, and has k cells,
 * a possible number; w1 is word 1 of its header c.  The caller has made sure that no
 * answer of the peer comes before it, and that nothing is traced.  Return false, with
 * nothing done, unless the connection lives and expects the message, and a receive
 * descriptor is free: then p3_cci_req_take() finds out what is wrong.
 */
bool p3_cci_msg_take(struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c,
	uint64_t w1, uint32_t k);

/*
 * ---- RMA ----
 *
 * A WRITE moves its data as a put does, a READ as a get: the same request, with the tag
 * of the connection in the place of the header data and the name of the region in that of
 * the match bits, the same pending, transfer and answers.  The functions below do the
 * rest.
 */

/* Deliver a WRITE or a READ, whose header is valid.  Return false if it must wait. */
bool p3_cci_rma_deliver(struct p3_nic *n, struct p3_peer *p, const struct p3_incoming *r);
/* Take the answer to a pending of RMA, other than REPLY_LONG, and free the pending.
 * Return false if the peer wrote nonsense. */
bool p3_cci_rma_answered(struct p3_nic *n, struct p3_pending *t, const struct p3_cell *c,
	const struct p3_answer *a);
/* Prepare the pull of a READ. */
void p3_cci_rma_expect(const struct p3_pending *t, struct p3_pull *pull);
/* The pull of a READ has ended. */
void p3_cci_rma_pulled(struct p3_nic *n, struct p3_pull *pull, uint32_t fail);

/* Take an answer, whose header is c.  Return the cells that its request had reserved, or
 * 0 if the peer wrote nonsense. */
uint32_t p3_cci_rsp_take(struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c);

#endif
