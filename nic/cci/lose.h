/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lose - CCI's part of the start of the NIC, of lost peers, and of passes
 *
 * Only the lease holder calls these functions.
 */
#ifndef P3_NIC_CCI_LOSE_H
#define P3_NIC_CCI_LOSE_H

#include "nic/state.h"

/* Reset the state for a new life of the NIC, and that of a peer. */
void p3_cci_reset(struct p3_nic *n);
void p3_cci_reset_peer(struct p3_peer *p);
/* The peer is lost, and its state says so: end all that is under way with it. */
void p3_cci_lose_peer(struct p3_nic *n, struct p3_peer *p);
/* End an endpoint: no connection of it takes messages any more.  It joins the list
 * n->cci.destroyed; its memory may be freed when none of its rejections waits. */
void p3_cci_lose_endpoint(struct p3_nic *n, struct p3_cci_endpoint *ep);
/* Do the part of a pass that P3_ODD_CCI asks for: timers, OS handles. */
void p3_cci_work(struct p3_nic *n);

/* Free all endpoints.  The NIC has stopped, and the caller has the lease for ever. */
void p3_cci_free_all(struct p3_nic *n);

#endif
