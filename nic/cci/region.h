/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * region - registered memory
 *
 * A region is named by its index and 47 random bits, so a peer cannot guess the name of a
 * region whose handle it did not get, and an old name does not fit a later region.  Only
 * this process's own table counts: a peer's request names a region, and the firmware
 * checks it.
 *
 * Only the lease holder calls these functions.  The state is the table of an endpoint.
 */
#ifndef P3_NIC_CCI_REGION_H
#define P3_NIC_CCI_REGION_H

#include "nic/state.h"

#define P3_CCI_REGION_BITS 16u

_Static_assert(P3_CCI_REGIONS_EACH *P3_CCI_REGIONS == 1u << P3_CCI_REGION_BITS,
	"a name has the place of each region");

/* Return the region of the endpoint that has this name, or NULL. */
static inline struct p3_cci_region *p3_cci_region_named(
	const struct p3_cci_endpoint *ep, uint64_t name)
{
	uint32_t i = (uint32_t)name & ((1u << P3_CCI_REGION_BITS) - 1);
	if (p3_unlikely(!name || i / P3_CCI_REGIONS_EACH >= ep->nregions))
		return NULL;
	struct p3_cci_region *r =
		&ep->region[i / P3_CCI_REGIONS_EACH][i % P3_CCI_REGIONS_EACH];
	return p3_likely(r->name == name) ? r : NULL;
}

static inline bool p3_cci_region_holds(
	const struct p3_cci_region *r, uint64_t offset, uint64_t length)
{
	return offset <= r->length && length <= r->length - offset;
}

/* Return a new region whose name has these random bits, or NULL if the endpoint needs a
 * chunk. */
struct p3_cci_region *p3_cci_region_new(struct p3_cci_endpoint *ep, uint64_t secret);
/* Add a chunk of zeroed memory.  Return false if the endpoint has the most. */
bool p3_cci_region_add(struct p3_cci_endpoint *ep, struct p3_cci_region *chunk);
/* End a region: no byte of it is read or written any more. */
void p3_cci_region_end(
	struct p3_nic *n, struct p3_cci_endpoint *ep, struct p3_cci_region *r);
void p3_cci_region_end_all(struct p3_nic *n, struct p3_cci_endpoint *ep);

#endif
