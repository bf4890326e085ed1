/* SPDX-License-Identifier: BSD-3-Clause */
/* Registered memory, and the RMA calls of the program. */
#include "nic/cci/internal.h"
#include "nic/host/call.h"
#include "nic/run/lease.h"
#include "nic/wire/wire.h"

#include <errno.h>
#include <unistd.h>

/* Stop the reads of peers, and the pulls of this node, that use the region. */
static void cci_region_end_transfers(struct p3_nic *n, uint64_t name)
{
	p3_list_each(it, &n->pulls) {
		struct p3_pull *pull = p3_item(it, struct p3_pull, link);
		if (pull->region == name)
			p3_pull_end(n, pull, PTL_NI_FAIL);
	}
	p3_list_each(src, &n->sources) {
		struct p3_xfer_slot *x = p3_item(src, struct p3_xfer_slot, link);
		if (x->cci != name || !x->serving)
			continue;
		p3_set(&n->cci.withdrawn_ns, p3_now_ns());
		p3_xfer_finish_serving(n, x, PTL_NI_FAIL);
		if (x->offered)
			p3_far_reads_cut(n, x->peer);
	}
}

/* Return an operation of the connection whose data lie in the region, or NULL. */
static struct p3_cci_tx *cci_region_user(const struct p3_cci_conn *conn, uint64_t name)
{
	p3_list_each(it, &conn->fifo) {
		struct p3_cci_tx *tx = p3_item(it, struct p3_cci_tx, fifo);
		if (tx->rma && tx->local_name == name)
			return tx;
	}
	return NULL;
}

/* End this node's operations that use the region, and then send those that have waited
 * for them. */
static void cci_region_end_operations(
	struct p3_nic *n, struct p3_cci_endpoint *ep, uint64_t name)
{
	struct p3_cci_tx *tx;
	p3_list_each(it, &ep->conns) {
		struct p3_cci_conn *conn = p3_item(it, struct p3_cci_conn, of_ep);
		while ((tx = cci_region_user(conn, name)) != NULL)
			p3_cci_tx_end(n, tx, CCI_ERR_RMA_HANDLE);
		if (conn->state == P3_CCI_READY)
			p3_cci_conn_kick(n, conn);
	}
}

void p3_cci_region_end_all(struct p3_nic *n, struct p3_cci_endpoint *ep)
{
	for (uint32_t i = 0; i < ep->region_fresh; i++) {
		uint64_t name = ep->region[i].name;
		ep->region[i].name = 0;
		if (name)
			cci_region_end_transfers(n, name);
	}
}

/* ---- registration ---- */

struct cci_registration {
	struct p3_cci_endpoint *ep;
	char *start;
	uint64_t length;
	int flags;
	uint64_t secret;              /* random bits for the name, which is never 0 */
	struct p3_cci_region *region; /* out */
	int rc;                       /* out */
};

static void cci_region_register_now(struct p3_nic *n, void *arg)
{
	struct cci_registration *r = arg;
	struct p3_cci_endpoint *ep = r->ep;
	r->rc = CCI_ENOMEM;
	if (!ep->region_free && ep->region_fresh == P3_CCI_REGIONS)
		return;
	r->rc = CCI_SUCCESS;
	r->region = ep->region_free;
	if (r->region)
		ep->region_free = r->region->next;
	else
		r->region = &ep->region[ep->region_fresh++];
	r->region->name = (r->secret | 1) << P3_CCI_REGION_BITS |
			  (uint64_t)(r->region - ep->region);
	r->region->start = r->start;
	r->region->length = r->length;
	r->region->flags = r->flags;
	r->region->handle.stuff[0] = r->region->name;
	r->region->handle.stuff[1] = (uint64_t)n->conf.node << 32 | ep->number;
	r->region->handle.stuff[2] = n->conf.incarnation;
	r->region->handle.stuff[3] = r->length;
}

int p3_cci_rma_register(cci_endpoint_t *endpoint, void *start, uint64_t length, int flags,
	cci_rma_handle_t **handle_out)
{
	struct p3_cci_endpoint *ep = p3_cci_endpoint_own(endpoint);
	struct cci_registration r = {.ep = ep,
		.start = start,
		.length = length,
		.flags = flags,
		.rc = CCI_ENOBUFS};
	int saved = errno;
	if (getentropy(&r.secret, sizeof r.secret) != 0) /* the clock has to do */
		r.secret = p3_now_ns() * UINT64_C(0x9e3779b97f4a7c15);
	errno = saved;
	(void)p3_cci_call(ep->nic, cci_region_register_now, &r);
	if (r.rc == CCI_SUCCESS)
		*handle_out = &r.region->handle;
	return r.rc;
}

struct cci_deregistration {
	struct p3_cci_endpoint *ep;
	struct cci_rma_handle handle;
	int rc;
};

/* Return the region of the endpoint that a handle names, or NULL. */
static struct p3_cci_region *cci_region_own(const struct p3_nic *n,
	const struct p3_cci_endpoint *ep, const struct cci_rma_handle *h)
{
	bool own = h->stuff[1] == ((uint64_t)n->conf.node << 32 | ep->number) &&
		   h->stuff[2] == n->conf.incarnation;
	return own ? p3_cci_region_named(ep, h->stuff[0]) : NULL;
}

static void cci_region_deregister_now(struct p3_nic *n, void *arg)
{
	struct cci_deregistration *d = arg;
	struct p3_cci_region *r = cci_region_own(n, d->ep, &d->handle);
	d->rc = r ? CCI_SUCCESS : CCI_EINVAL;
	if (!r)
		return;
	/* No byte of the region is read or written any more. */
	uint64_t name = r->name;
	r->name = 0;
	cci_region_end_transfers(n, name);
	cci_region_end_operations(n, d->ep, name);
	r->next = d->ep->region_free;
	d->ep->region_free = r;
	n->posted = P3_NEWS_ALL;
}

int p3_cci_rma_deregister(cci_endpoint_t *endpoint, cci_rma_handle_t *handle)
{
	struct p3_cci_endpoint *ep = p3_cci_endpoint_own(endpoint);
	struct cci_deregistration d = {ep, *handle, CCI_ENOBUFS};
	(void)p3_cci_call(ep->nic, cci_region_deregister_now, &d);
	if (d.rc == CCI_SUCCESS)
		p3_cci_wait_for_readers(ep->nic);
	return d.rc;
}

/* ---- operations ---- */

struct cci_rma_call {
	struct p3_cci_conn *conn;
	const struct p3_cci_rma *r;
	struct p3_cci_tx *tx; /* out: BLOCKING */
	int rc;
};

/* Return a pending that waits for its turn at the connection, for bytes that are here. */
static struct p3_pending *cci_rma_pending(struct p3_nic *n, struct p3_cci_conn *conn,
	const struct p3_cci_rma *r, char *here)
{
	const struct p3_move m = {.ack = r->flags & CCI_FLAG_WRITE,
		.bits = r->remote.stuff[0],
		.hdr = conn->peer_tag,
		.remote_offset = r->remote_offset,
		.length = r->data_len};
	struct p3_pending *t = p3_pending_alloc(
		n, conn->peer, m.ack ? P3_REQ_PUT : P3_REQ_GET, &m, NULL);
	t->ni = P3_JOB_NIS;
	t->send.region = (struct p3_region){.start = here, .size = r->data_len};
	t->send.offset = 0;
	t->command = n->trace.command;
	p3_list_add(&conn->rma, &t->link);
	conn->peer->nqueued++;
	return t;
}

static int cci_rma_try_to_start(struct p3_nic *n, struct cci_rma_call *o)
{
	const struct p3_cci_rma *r = o->r;
	struct p3_cci_conn *conn = o->conn;
	const struct p3_cci_region *local = cci_region_own(n, conn->ep, &r->local);
	const struct p3_cci_msg m = {conn, r->msg, 0, r->msg_len, r->context};
	if (!local || !p3_cci_region_holds(local, r->local_offset, r->data_len))
		return CCI_EINVAL;
	if (conn->state != P3_CCI_READY && conn->fate == CCI_ERR_DISCONNECTED)
		return CCI_ERR_DISCONNECTED;
	if (!p3_table_has_room(&n->table[P3_T_PENDING]))
		return CCI_EAGAIN;
	struct p3_cci_tx *tx;
	int rc = p3_cci_msg_new(n, &m, r->flags & ~CCI_FLAG_NO_COPY, &tx);
	if (!tx)
		return rc;
	tx->is.fence = r->flags & CCI_FLAG_FENCE;
	tx->is.with_msg = r->msg_len != 0;
	tx->local_name = local->name;
	tx->rma = cci_rma_pending(n, conn, r, local->start + r->local_offset);
	tx->rma->rma = tx;
	o->tx = tx->is.awaited ? tx : NULL;
	p3_list_add(&conn->fifo, &tx->fifo);
	if (tx->is.with_msg && conn->pub.attribute == CCI_CONN_ATTR_RO)
		p3_list_add(&conn->wait, &tx->wait); /* its place among the messages */
	p3_cci_expire_watch(n, conn);
	p3_cci_conn_kick(n, conn);
	return CCI_SUCCESS;
}

static void cci_rma_now(struct p3_nic *n, void *arg)
{
	struct cci_rma_call *o = arg;
	o->rc = cci_rma_try_to_start(n, o);
	if (p3_unlikely(o->rc == CCI_ENOBUFS))
		(void)p3_pass_run(n); /* a program may only repeat its call */
}

int p3_cci_rma(cci_connection_t *connection, const struct p3_cci_rma *rma)
{
	struct p3_cci_conn *conn = p3_cci_conn_own(connection);
	struct cci_rma_call o = {.conn = conn, .r = rma, .rc = CCI_ENOBUFS};
	struct p3_nic *n = conn->ep->nic;
	while (p3_cci_call(n, cci_rma_now, &o) && o.rc == CCI_EAGAIN) {
		o.rc = CCI_ENOBUFS;
		if (!p3_call_grow(n, P3_T_PENDING))
			break;
	}
	return o.tx ? p3_cci_wait_for(n, o.tx) : o.rc;
}
