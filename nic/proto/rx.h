/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rx - requests received: delivery, responses sent
 *
 * Only the lease holder calls these functions, except where a comment says (any).
 */
#ifndef P3_NIC_PROTO_RX_H
#define P3_NIC_PROTO_RX_H

#include "nic/state.h"

/* Take one request off the lane.  Return false if there is none, or it must wait. */
bool p3_fw_take_request(struct p3_nic *n, struct p3_peer *p);
/* Return true if a waiting exchange must go before other requests. */
bool p3_fw_swap_waits(struct p3_nic *n);
/* Take the peer's requests.  Return true if one of them waits for an interface of this
 * node to settle. */
bool p3_fw_settles(struct p3_nic *n, struct p3_peer *p);
/* Discard the request of a dead or departed peer that would have to wait.  Return false
 * if there is none. */
bool p3_fw_refuse_request(struct p3_nic *n, struct p3_peer *p);
void p3_fw_drop(struct p3_nic *n, struct p3_ni *ni, uint64_t length);
/* A response of one cell; flags P3_F_ACK: DONE with acknowledgement. */
struct p3_answer {
	enum p3_rsp_kind kind;
	uint32_t flags;
	uint32_t pending;
	uint32_t status;
	uint64_t mlength;
	uint64_t extra[3];
};
void p3_fw_respond(struct p3_nic *n, struct p3_peer *p, const struct p3_answer *a);

#endif
