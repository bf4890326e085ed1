/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * why - reasons of requests that come to nothing, for the log and for tools
 *
 * Only the lease holder calls these functions.  The state is in the published segment
 * (struct p3_case_line), and told and told_own of struct p3_peer.
 */
#ifndef P3_NIC_REPORT_WHY_H
#define P3_NIC_REPORT_WHY_H

#include "nic/match/match.h"

/* Report a request that no descriptor accepted.  It is passed by value, so that an
 * accepted request is never in memory. */
P3_RARE void p3_why_dropped(
	struct p3_nic *n, struct p3_peer *p, const struct p3_ni *ni, struct p3_ask ask);
/* Report a put that requested an ACK and was served by a descriptor that gives none. */
P3_RARE void p3_why_no_ack(struct p3_nic *n, struct p3_peer *p, struct p3_ask ask);
/* Report a request that was served with its first mlength bytes only. */
P3_RARE void p3_why_truncated(
	struct p3_nic *n, struct p3_peer *p, struct p3_ask ask, uint64_t mlength);
/* Report a request of this node that cannot be sent or will not be answered; p may be
 * NULL. */
P3_RARE void p3_why_nowhere(
	struct p3_nic *n, struct p3_peer *p, uint32_t kind, const struct p3_move *m);
/* Report an answer that came after its descriptor, or the descriptor's queue, was
 * freed. */
P3_RARE void p3_why_late(struct p3_nic *n, const struct p3_pending *t);
/* Report that the target of a put could not read its bytes from the copy that this node
 * made of them.  No event tells the program: SEND_END was posted when the copy was
 * made. */
P3_RARE void p3_why_failed(struct p3_nic *n, const struct p3_pending *t);
/* Report that an event was lost because its queue was full, once for each queue. */
P3_RARE void p3_why_lost(struct p3_evq_tx *tx);
/* Log the number of cases of each reason when the NIC stops. */
P3_RARE void p3_why_sum(struct p3_nic *n);

#endif
