/* SPDX-License-Identifier: BSD-3-Clause */
/* RMA: the calls of the program. */
#include "nic/cci/call.h"
#include "nic/cci/conn.h"
#include "nic/cci/expire.h"
#include "nic/cci/host_wait.h"
#include "nic/cci/item.h"
#include "nic/cci/kick.h"
#include "nic/cci/msg_tx.h"
#include "nic/cci/region.h"
#include "nic/run/lease.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- registration ---- */

struct registration {
	struct p3_cci_endpoint *ep;
	char *start;
	uint64_t length;
	int flags;
	uint64_t secret; /* random bits for the name */
	struct p3_cci_region *chunk;
	struct p3_cci_region *region; /* out */
	int rc;
};

/* Return random bits.  If the kernel refuses, the clock has to do. */
static uint64_t secret(void)
{
	uint64_t bits;
	int saved = errno;
	if (getentropy(&bits, sizeof bits) != 0)
		bits = p3_now_ns() * UINT64_C(0x9e3779b97f4a7c15);
	errno = saved;
	return bits;
}

static void register_now(struct p3_nic *n, void *arg)
{
	struct registration *r = arg;
	struct p3_cci_endpoint *ep = r->ep;
	r->region = p3_cci_region_new(ep, r->secret);
	if (!r->region && r->chunk && p3_cci_region_add(ep, r->chunk)) {
		r->chunk = NULL;
		r->region = p3_cci_region_new(ep, r->secret);
	}
	r->rc = r->region ? CCI_SUCCESS : r->chunk ? CCI_ENOMEM : CCI_EAGAIN;
	if (!r->region)
		return;
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
	struct p3_cci_endpoint *ep = (struct p3_cci_endpoint *)(uintptr_t)endpoint;
	struct registration r = {.ep = ep,
		.start = start,
		.length = length,
		.flags = flags,
		.secret = secret(),
		.rc = CCI_ENOBUFS};
	(void)p3_cci_call(ep->nic, register_now, &r);
	if (r.rc == CCI_EAGAIN) {
		int saved = errno;
		r.chunk = calloc(P3_CCI_REGIONS_EACH, sizeof *r.chunk);
		errno = saved;
		r.rc = CCI_ENOMEM;
		if (r.chunk)
			(void)p3_cci_call(ep->nic, register_now, &r);
		free(r.chunk);
	}
	if (r.rc == CCI_SUCCESS)
		*handle_out = &r.region->handle;
	return r.rc;
}

struct deregistration {
	struct p3_cci_endpoint *ep;
	struct cci_rma_handle handle;
	int rc;
};

/* Return the region of the endpoint that a handle names, or NULL. */
static struct p3_cci_region *region_of(const struct p3_nic *n,
	const struct p3_cci_endpoint *ep, const struct cci_rma_handle *h)
{
	bool own = h->stuff[1] == ((uint64_t)n->conf.node << 32 | ep->number) &&
		   h->stuff[2] == n->conf.incarnation;
	return own ? p3_cci_region_named(ep, h->stuff[0]) : NULL;
}

static void deregister_now(struct p3_nic *n, void *arg)
{
	struct deregistration *d = arg;
	struct p3_cci_region *r = region_of(n, d->ep, &d->handle);
	d->rc = r ? CCI_SUCCESS : CCI_EINVAL;
	if (r)
		p3_cci_region_end(n, d->ep, r);
}

int p3_cci_rma_deregister(cci_endpoint_t *endpoint, cci_rma_handle_t *handle)
{
	struct p3_cci_endpoint *ep = (struct p3_cci_endpoint *)(uintptr_t)endpoint;
	struct deregistration d = {ep, *handle, CCI_ENOBUFS};
	(void)p3_cci_call(ep->nic, deregister_now, &d);
	if (d.rc == CCI_SUCCESS)
		p3_cci_wait_for_readers(ep->nic);
	return d.rc;
}

/* ---- operations ---- */

struct operation {
	struct p3_cci_conn *conn;
	const struct p3_cci_rma *r;
	struct p3_cci_tx *tx; /* out: BLOCKING */
	int rc;
};

/* Fill in the parts of an operation that a message has not. */
static void fill(struct p3_cci_tx *tx, const struct p3_cci_region *local,
	const struct p3_cci_rma *r)
{
	tx->op = r->flags & CCI_FLAG_WRITE ? P3_CCI_OP_WRITE : P3_CCI_OP_READ;
	tx->is.fence = r->flags & CCI_FLAG_FENCE;
	tx->is.with_msg = r->msg_len != 0;
	tx->local = local->start + r->local_offset;
	tx->local_name = local->name;
	tx->region = r->remote.stuff[0];
	tx->offset = r->remote_offset;
	tx->length = r->data_len;
}

static void start(struct p3_nic *n, struct p3_cci_conn *conn, struct p3_cci_tx *tx)
{
	p3_list_add(&conn->fifo, &tx->fifo);
	p3_list_add(&conn->rma, &tx->rma);
	if (tx->is.with_msg && conn->pub.attribute == CCI_CONN_ATTR_RO)
		p3_list_add(&conn->wait, &tx->wait); /* its place among the messages */
	p3_cci_expire_watch(n, conn);
	p3_cci_kick_conn(n, conn);
}

static int try_to_start(struct p3_nic *n, struct operation *o)
{
	const struct p3_cci_rma *r = o->r;
	struct p3_cci_conn *conn = o->conn;
	const struct p3_cci_region *local = region_of(n, conn->ep, &r->local);
	const struct iovec msg = {(void *)(uintptr_t)r->msg, r->msg_len};
	if (!local || !p3_cci_region_holds(local, r->local_offset, r->data_len))
		return CCI_EINVAL;
	if (conn->state != P3_CCI_READY && conn->fate == CCI_ERR_DISCONNECTED)
		return CCI_ERR_DISCONNECTED;
	struct p3_cci_tx *tx = p3_cci_msg_begin(n, conn, r->context, r->flags);
	if (!tx)
		return CCI_ENOBUFS;
	if (conn->state != P3_CCI_READY)
		return p3_cci_msg_too_late(n, tx, r->flags);
	if (!p3_cci_msg_keep(tx, &msg, r->msg_len ? 1 : 0, r->msg_len, 0)) {
		p3_cci_msg_give_up(n, tx);
		return CCI_ENOBUFS;
	}
	fill(tx, local, r);
	o->tx = tx->is.awaited ? tx : NULL;
	start(n, conn, tx);
	return CCI_SUCCESS;
}

static void rma_now(struct p3_nic *n, void *arg)
{
	struct operation *o = arg;
	o->rc = try_to_start(n, o);
	if (p3_unlikely(o->rc == CCI_ENOBUFS))
		(void)p3_pass_run(n); /* a program may only repeat its call */
}

int p3_cci_rma(cci_connection_t *connection, const struct p3_cci_rma *rma)
{
	struct p3_cci_conn *conn = (struct p3_cci_conn *)(uintptr_t)connection;
	struct operation o = {.conn = conn, .r = rma, .rc = CCI_ENOBUFS};
	struct p3_nic *n = conn->ep->nic;
	(void)p3_cci_call(n, rma_now, &o);
	return o.tx ? p3_cci_wait_for(n, o.tx) : o.rc;
}
