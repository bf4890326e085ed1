/* SPDX-License-Identifier: BSD-3-Clause */
/* rest - make passes of a node, and see whether it rests */
#ifndef P3_TESTS_MODEL_REST_H
#define P3_TESTS_MODEL_REST_H

#include <stdbool.h>
#include <stdint.h>

struct p3_nic;

/* Make one pass.  Return true if the node has no work and no operations under way, and
 * other hosts have all that it has written.  asked is 0 at the first look. */
bool rest_look(struct p3_nic *nic, uint32_t *asked);

#endif
