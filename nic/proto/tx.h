/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tx - puts and gets of this node: send queues, reservations, responses received
 *
 * Only the lease holder calls these functions, except where a comment says (any).
 */
#ifndef P3_NIC_PROTO_TX_H
#define P3_NIC_PROTO_TX_H

#include "nic/state.h"

int p3_fw_put(struct p3_nic *n, struct p3_cmd *c);
int p3_fw_get(struct p3_nic *n, struct p3_cmd *c);
int p3_fw_getput(struct p3_nic *n, struct p3_cmd *c);
/* End the operation of a command that found no room among the pendings, and whose
 * poster does not wait for a return code: the operation's events say that it failed. */
P3_RARE void p3_fw_refuse(struct p3_nic *n, struct p3_cmd *c);
void p3_fw_push(struct p3_nic *n, struct p3_peer *p); /* send from the queue while
						       * there is room */
/* Call this when a peer has come or has other ids: move requests that waited for their
 * targets to the queues of these, in order, before any later request can go there. */
void p3_fw_readdress(struct p3_nic *n);
/* Fail the held requests whose target will not join any more. */
void p3_fw_give_up(struct p3_nic *n);
/* Copy the bytes of the short puts that keep a descriptor in use because their targets
 * are not there yet.  Return false if other operations keep it in use, or there is no
 * memory for a copy.  The last SEND_END may unlink the descriptor: look its handle up
 * again. */
P3_RARE bool p3_fw_let_go(struct p3_nic *n, struct p3_md *md);
void p3_fw_unblock(struct p3_nic *n);
bool p3_fw_take_response(struct p3_nic *n, struct p3_peer *p);
/* Return true if a response is there.  A response comes only for a request that has
 * reserved room for it.  While there is no reservation the ring is not looked at, which
 * saves a cache line; a switch cell or nonsense in it waits for the next
 * reservation. */
static inline bool p3_fw_has_response(struct p3_peer *p)
{
	uint64_t w0;
	return p3_unlikely(p->rsp_used) && p3_ring_peek(&p->rsp_in, &w0);
}
static inline void p3_fw_take_responses(struct p3_nic *n, struct p3_peer *p)
{
	while (p3_unlikely(p3_fw_has_response(p)))
		if (!p3_fw_take_response(n, p))
			break;
}
void p3_fw_get_done(struct p3_nic *n, struct p3_pull *pull, uint32_t fail);
void p3_fw_fail_pending(struct p3_nic *n, struct p3_pending *t, bool died);
void p3_fw_forget(struct p3_nic *n, uint32_t ni);

#endif
