/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ni - network interfaces: opening, access control list, status registers
 *
 * Only the lease holder calls these functions.  Their state is n->ni.  The functions with
 * a command return the PTL code that the program gets.
 */
#ifndef P3_NIC_OBJ_NI_H
#define P3_NIC_OBJ_NI_H

#include "nic/state.h"

int p3_ni_open(struct p3_nic *n, struct p3_cmd *c);
int p3_ni_check(struct p3_nic *n, struct p3_cmd *c);
int p3_ni_ac_entry(struct p3_nic *n, struct p3_cmd *c);
int p3_ni_status(struct p3_nic *n, struct p3_cmd *c);
/* Return the interface of the object that c->handle names. */
int p3_ni_of_handle(struct p3_nic *n, struct p3_cmd *c);
/* Return true if the handle names the open interface ni. */
bool p3_ni_is(struct p3_nic *n, uint32_t ni, uint64_t handle);

/* Return the interface of an object. */
static inline struct p3_ni *p3_ni_of(struct p3_nic *n, const struct p3_object *o)
{
	return &n->ni[o->ni];
}

#endif
