/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * source - the source of long transfers: windows, and the END of served gets
 *
 * Only the lease holder calls these functions.  Their state is the list n->sources of
 * published slots, the windows of the published segment (n->window_off, n->window_free),
 * and each peer's list "serving".
 */
#ifndef P3_NIC_XFER_SOURCE_H
#define P3_NIC_XFER_SOURCE_H

#include "nic/state.h"

/* Look after each published slot: fill its window, and notice its release. */
__attribute__((noinline)) void p3_source_look(struct p3_nic *n);
/* Serve a get of the peer from this slot until its END. */
void p3_xfer_serve(struct p3_xfer_slot *x, uint64_t peer_id);
void p3_xfer_finish_serving(struct p3_nic *n, struct p3_xfer_slot *x, uint32_t fail);
/* Post the END of each get that the peer has released. */
void p3_xfer_end_served(struct p3_nic *n, struct p3_peer *p);

#endif
