/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * placed - nodes of one process on hosts that P3_FAR names (loop.h)
 *
 * They exchange frames over loop.h, or with P3_FABRIC over sockets or libfabric (net.h).
 */
#ifndef P3_TESTS_FAR_PLACED_H
#define P3_TESTS_FAR_PLACED_H

#include "nic/far/endpoint.h"

struct p3_nic;

/* Read the environment.  Return the value for node->far of each node: NULL without
 * P3_FAR.  No endpoint is open. */
const struct p3_far_conf *placed_on_hosts(void);
/* Count the frames that have come to a node, before it stops. */
void placed_count(struct p3_nic *nic);
/* Print the counts.  Return true if there are hosts, and no frame came, or if faults that
 * P3_FAR asks for did not happen. */
bool placed_missed(void);

#endif
