/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ni - the end of interfaces, for PtlFini and exit()
 *
 * The caller holds the lock node->call, and not node->life.  The functions
 * have no state of their own.
 */
#ifndef P3_LIB_NI_H
#define P3_LIB_NI_H

#include "lib/node/node.h"

/* longest wait of PtlNIFini and exit() for absent targets of puts whose descriptors are
 * unlinked */
#define P3_AWAIT_S 10

/* Wait, in bounded time, until the puts that have had SEND_END have left this process;
 * for absent targets until P3_AWAIT_S after start, a time of p3_now_ns(). */
void p3_ni_await_sends(struct p3_nic *nic, uint64_t start);

/* Close all open interfaces. */
int p3_ni_fini_all(struct p3_node *node);

#endif
