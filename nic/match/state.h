/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The data of match/: buckets of long match lists that later requests need, and targets
 * that the access list admits.
 *
 * Only the lease holder touches this data.
 */
#ifndef P3_NIC_MATCH_STATE_H
#define P3_NIC_MATCH_STATE_H

#include <stdint.h>

struct p3_bucket;
struct p3_ni;
struct p3_portal;

/* Buckets that later requests will be looked up in (match.c). */
#define P3_PREFETCH 16u
#define P3_STAGES   4u

struct p3_prefetch {
	uint32_t n;
	const struct p3_bucket *bucket[P3_PREFETCH];
};

/*
 * A target that plain requests lately had (nic/proto/rx.c): an interface and portal,
 * with an access entry that admits all processes of this owner there.  It is forgotten
 * when the interface is opened or closed, or its access list changes.
 */
struct p3_acl_target {
	uint64_t target; /* as p3_acl_cache_key(); 0: none */
	uint64_t owner;
	struct p3_ni *ni;
	const struct p3_portal *list;
};

#define P3_ACL_CACHE 4u /* a program sends to a few portals in turn */

#endif
