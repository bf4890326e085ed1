/* SPDX-License-Identifier: BSD-3-Clause */
/* Registered memory: names, and the ends of transfers that use it. */
#include "nic/cci/region.h"

#include "nic/cci/kick.h"
#include "nic/cci/op.h"
#include "nic/cci/rma_tx.h"
#include "nic/wire/wire.h"
#include "nic/xfer/xfer.h"

struct p3_cci_region *p3_cci_region_new(struct p3_cci_endpoint *ep, uint64_t secret)
{
	struct p3_cci_region *r = ep->region_free;
	if (!r)
		return NULL;
	ep->region_free = r->next;
	r->name = (secret | 1) << P3_CCI_REGION_BITS | r->number; /* never 0 */
	return r;
}

bool p3_cci_region_add(struct p3_cci_endpoint *ep, struct p3_cci_region *chunk)
{
	if (ep->nregions == P3_CCI_REGIONS)
		return false;
	for (uint32_t i = P3_CCI_REGIONS_EACH; i-- > 0;) {
		chunk[i].number = ep->nregions * P3_CCI_REGIONS_EACH + i;
		chunk[i].next = ep->region_free;
		ep->region_free = &chunk[i];
	}
	ep->region[ep->nregions++] = chunk;
	return true;
}

/* Stop the reads of peers, and the pulls of this node, that use the region. */
static void end_transfers(struct p3_nic *n, uint64_t name)
{
	p3_list_each(it, &n->pulls) {
		struct p3_pull *pull = p3_item(it, struct p3_pull, link);
		if (pull->over && pull->region == name)
			p3_pull_end(n, pull, PTL_NI_FAIL);
	}
	p3_list_each(src, &n->sources) {
		struct p3_xfer_slot *x = p3_item(src, struct p3_xfer_slot, link);
		if (x->cci != name || !x->serving)
			continue;
		p3_set(&n->cci.withdrawn_ns, p3_now_ns());
		p3_xfer_finish_serving(n, x, PTL_NI_FAIL);
		if (x->offered)
			x->peer->wire->cut(n, x->peer);
	}
}

/* End the operations in a list, of all or of one connection, that use the region. */
static bool end_listed(struct p3_nic *n, struct p3_link *list, uint64_t name)
{
	bool any = false;
	p3_list_each(it, list) {
		struct p3_cci_tx *tx = p3_item(it, struct p3_cci_tx, rma);
		if (tx->local_name != name)
			continue;
		any = true;
		p3_cci_rma_withdraw(n, tx);
		p3_cci_op_end(n, tx, CCI_ERR_RMA_HANDLE);
	}
	return any;
}

/* End this node's operations that use the region.  Kick the connections afterwards, since
 * that sends operations that wait. */
static void end_operations(struct p3_nic *n, struct p3_cci_endpoint *ep, uint64_t name)
{
	bool any = end_listed(n, &ep->rma_sent, name);
	p3_list_each(it, &ep->conns)
		any |= end_listed(n, &p3_item(it, struct p3_cci_conn, of_ep)->rma, name);
	if (!any)
		return;
	p3_list_each(again, &ep->conns) {
		struct p3_cci_conn *conn = p3_item(again, struct p3_cci_conn, of_ep);
		if (conn->state == P3_CCI_READY)
			p3_cci_kick_conn(n, conn);
	}
}

void p3_cci_region_end(
	struct p3_nic *n, struct p3_cci_endpoint *ep, struct p3_cci_region *r)
{
	uint64_t name = r->name;
	r->name = 0;
	end_transfers(n, name);
	end_operations(n, ep, name);
	r->next = ep->region_free;
	ep->region_free = r;
	n->posted = P3_NEWS_ALL;
}

void p3_cci_region_end_all(struct p3_nic *n, struct p3_cci_endpoint *ep)
{
	for (uint32_t i = 0; i < ep->nregions; i++)
		for (uint32_t k = 0; k < P3_CCI_REGIONS_EACH; k++) {
			uint64_t name = ep->region[i][k].name;
			ep->region[i][k].name = 0;
			if (name)
				end_transfers(n, name);
		}
}
