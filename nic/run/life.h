/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * life - start, stop, and the thread of the NIC
 *
 * Only the lease holder calls these functions, except where a comment says (any).
 */
#ifndef P3_NIC_RUN_LIFE_H
#define P3_NIC_RUN_LIFE_H

#include "nic/state.h"

/* Return true if a pull is under way, or a sent message has not been taken yet. */
bool p3_fw_is_restless(struct p3_nic *n);
/* Kick peers that have not looked at their messages from this node. */
void p3_fw_kick_idle(struct p3_nic *n);

#endif
