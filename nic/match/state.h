/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The data of match/: buckets of long match lists that later requests need.
 *
 * Only the lease holder touches this data.
 */
#ifndef P3_NIC_MATCH_STATE_H
#define P3_NIC_MATCH_STATE_H

#include <stdint.h>

struct p3_bucket;

/* Buckets that later requests will be looked up in: see ahead.c. */
#define P3_SOON   16u
#define P3_STAGES 4u

struct p3_soon {
	uint32_t n;
	const struct p3_bucket *bucket[P3_SOON];
};

#endif
