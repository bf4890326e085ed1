/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections: the calls of the program. */
#include "nic/cci/call.h"
#include "nic/cci/conn.h"
#include "nic/cci/event.h"
#include "nic/cci/host_wait.h"
#include "nic/cci/msg_rx.h"
#include "nic/cci/op.h"
#include "nic/cci/rma_tx.h"
#include "nic/cci/setup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Return memory, or NULL.  The caller's errno does not change. */
static void *get_memory(size_t len)
{
	int saved = errno;
	void *at = calloc(1, len);
	errno = saved;
	return at;
}

static struct p3_cci_conn *get_chunk(void)
{
	return get_memory(P3_CCI_CHUNK * sizeof(struct p3_cci_conn));
}

static void free_blobs(struct p3_cci_blob *list)
{
	while (list) {
		struct p3_cci_blob *next = list->next;
		free(list);
		list = next;
	}
}

/* ---- connect ---- */

static void connect_now(struct p3_nic *n, void *arg)
{
	p3_cci_setup_connect(n, arg);
}

static struct p3_cci_blob *copy_of(const struct p3_cci_connect *c)
{
	struct p3_cci_blob *blob = get_memory(sizeof *blob + c->data_len);
	if (!blob)
		return NULL;
	blob->len = c->data_len;
	memcpy(blob->data, c->data, c->data_len);
	return blob;
}

int p3_cci_connect(cci_endpoint_t *endpoint, const struct p3_cci_connect *c)
{
	struct p3_cci_endpoint *ep = (struct p3_cci_endpoint *)(uintptr_t)endpoint;
	struct p3_cci_dial d = {.ep = ep, .c = c, .rc = CCI_ENOBUFS};
	if (c->node >= ep->nic->conf.nnodes)
		return CCI_EADDRNOTAVAIL;
	if (c->data_len && !(d.data = copy_of(c)))
		return CCI_ENOMEM;
	(void)p3_cci_call(ep->nic, connect_now, &d);
	while (d.rc == CCI_EAGAIN) {
		free_blobs(d.garbage);
		d.garbage = NULL;
		d.chunk = get_chunk();
		d.rc = CCI_ENOMEM;
		if (!d.chunk || !p3_cci_call(ep->nic, connect_now, &d))
			break;
	}
	free(d.chunk);
	free(d.data);
	free_blobs(d.garbage);
	return d.rc;
}

/* ---- decisions ---- */

static void decide_now(struct p3_nic *n, void *arg)
{
	p3_cci_setup_decide(n, arg);
}

static int decide(cci_event_t *event, void *context, bool accept)
{
	struct p3_cci_item *item = (struct p3_cci_item *)(uintptr_t)event;
	struct p3_cci_decision d = {.request = (struct p3_cci_request *)item,
		.context = context,
		.accept = accept,
		.rc = CCI_ENOBUFS};
	if (item->what != P3_CCI_REQUEST)
		return CCI_EINVAL;
	(void)p3_cci_call(item->ep->nic, decide_now, &d);
	while (d.rc == CCI_EAGAIN) {
		d.chunk = get_chunk();
		d.rc = CCI_ENOMEM;
		if (!d.chunk || !p3_cci_call(item->ep->nic, decide_now, &d))
			break;
	}
	free(d.chunk);
	return d.rc;
}

int p3_cci_accept(cci_event_t *request, void *context)
{
	return decide(request, context, true);
}

int p3_cci_reject(cci_event_t *request)
{
	return decide(request, NULL, false);
}

/* ---- disconnect ---- */

static void close_now(struct p3_nic *n, void *arg)
{
	struct p3_cci_conn *conn = arg;
	if (conn->state == P3_CCI_CLOSED)
		return;
	conn->refs++; /* keeps the connection until the end of this function */
	p3_set(&conn->closed, 1);
	p3_cci_msg_forget(conn);
	p3_cci_rma_withdraw_all(n, conn);
	p3_cci_conn_detach(n, conn);
	p3_cci_op_break(n, conn, CCI_ERR_DISCONNECTED);
	conn->state = P3_CCI_CLOSED;
	p3_cci_conn_unref(n, conn);
}

int p3_cci_disconnect(cci_connection_t *connection)
{
	struct p3_cci_conn *conn = (struct p3_cci_conn *)(uintptr_t)connection;
	struct p3_nic *n = conn->ep->nic;
	if (!p3_cci_call(n, close_now, conn))
		return CCI_ENOBUFS;
	p3_cci_wait_for_readers(n);
	return CCI_SUCCESS;
}
