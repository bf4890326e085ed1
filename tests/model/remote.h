/* SPDX-License-Identifier: BSD-3-Clause */
/* remote - calls of Portals that another process makes */
#ifndef P3_TESTS_MODEL_REMOTE_H
#define P3_TESTS_MODEL_REMOTE_H

#include "model/orders.h"

/* Let the node of the last net_enter() of this thread carry an order out.  End the
 * program if the node's process has ended or hangs. */
void remote_ask(const struct order *o, struct answer *answer_out);

#endif
