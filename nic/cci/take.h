/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * take - CCI's requests off the lanes
 *
 * A request never waits in its lane for a program: if there is no room, it is refused.
 *
 * Only the lease holder calls this function.
 */
#ifndef P3_NIC_CCI_TAKE_H
#define P3_NIC_CCI_TAKE_H

#include "nic/state.h"

/* Take a request of one of CCI's kinds, whose header is c with word 0 w0.  Return false
 * if it must wait, or if the peer wrote nonsense. */
bool p3_cci_take(
	struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c, uint64_t w0);

#endif
