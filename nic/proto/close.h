/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * close - commands that first end the operations on the objects that they remove
 *
 * Only the lease holder calls these functions.  They have no state of their own.
 */
#ifndef P3_NIC_PROTO_CLOSE_H
#define P3_NIC_PROTO_CLOSE_H

#include "nic/state.h"

/* Commands: remove an interface, a match entry, a descriptor. */
int p3_close_ni(struct p3_nic *n, struct p3_cmd *c);
int p3_close_me(struct p3_nic *n, struct p3_cmd *c);
int p3_close_md(struct p3_nic *n, struct p3_cmd *c);
/* Free iovec copies and tables when the NIC ends. */
void p3_close_all(struct p3_nic *n);

#endif
