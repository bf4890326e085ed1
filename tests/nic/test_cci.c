/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CCI in the firmware, without lib/cci: connections, messages, refusals, time-outs, and
 * the deaths of peers, between nodes that are threads.
 */
#include "nic/cases.h"
#include "nic/cci.h"

#include "lib/node/node.h"

#include <string.h>

#define SERVICE 5000

static struct p3_nic *nic(void)
{
	return p3_nic(p3_node());
}

static cci_endpoint_t *open_at(uint32_t service)
{
	cci_endpoint_t *ep = NULL;
	const struct p3_cci_endpoint_conf conf = {
		.service = service, .max_send_size = P3_CCI_MTU, .fd = -1};
	CHECK_EQ(p3_cci_endpoint_create(nic(), &conf, &ep), CCI_SUCCESS);
	return ep;
}

/* Take the next event, which must be of this type. */
static cci_event_t *next(cci_endpoint_t *ep, cci_event_type_t type)
{
	cci_event_t *e = NULL;
	int rc;
	do {
		rc = p3_cci_get_event(ep, &e);
	} while (rc == CCI_EAGAIN || rc == CCI_ENOBUFS);
	CHECK_EQ(rc, CCI_SUCCESS);
	CHECK_EQ(e->type, type);
	return e;
}

static void give(cci_event_t *e)
{
	CHECK_EQ(p3_cci_return_event(e), CCI_SUCCESS);
}

static void dial(cci_endpoint_t *ep, uint32_t node, uint32_t service,
	cci_conn_attribute_t attribute, const void *data, uint32_t len)
{
	const struct p3_cci_connect c = {.node = node,
		.endpoint = service,
		.data = data,
		.data_len = len,
		.attribute = attribute,
		.context = (void *)(uintptr_t)ep,
		.timeout_ns = P3_CCI_NO_TIMEOUT};
	CHECK_EQ(p3_cci_connect(ep, &c), CCI_SUCCESS);
}

static cci_connection_t *connected(cci_endpoint_t *ep, uint32_t node,
	cci_conn_attribute_t attribute, const void *data, uint32_t len)
{
	dial(ep, node, SERVICE, attribute, data, len);
	cci_event_t *e = next(ep, CCI_EVENT_CONNECT);
	CHECK_EQ(e->connect.status, CCI_SUCCESS);
	CHECK(e->connect.context == ep);
	cci_connection_t *conn = e->connect.connection;
	CHECK(conn->context == ep);
	CHECK_EQ(conn->attribute, attribute);
	give(e);
	return conn;
}

static cci_connection_t *accepted(cci_endpoint_t *ep, uint32_t len, unsigned seed)
{
	cci_event_t *e = next(ep, CCI_EVENT_CONNECT_REQUEST);
	CHECK_EQ(e->request.data_len, len);
	if (len) {
		CHECK_PATTERN(e->request.data_ptr, 0, len, seed);
		CHECK_EQ(((const char *)e->request.data_ptr)[len], 0);
	}
	CHECK_EQ(p3_cci_return_event(e), CCI_EINVAL); /* it is undecided */
	CHECK_EQ(p3_cci_accept(e, (void *)(uintptr_t)ep), CCI_SUCCESS);
	CHECK_EQ(p3_cci_accept(e, (void *)(uintptr_t)ep), CCI_EINVAL);
	give(e);
	e = next(ep, CCI_EVENT_ACCEPT);
	CHECK_EQ(e->accept.status, CCI_SUCCESS);
	cci_connection_t *conn = e->accept.connection;
	CHECK(conn->context == ep);
	give(e);
	return conn;
}

static int send_one(cci_connection_t *conn, const void *at, uint32_t len, int flags)
{
	const struct iovec v = {(void *)(uintptr_t)at, len};
	int rc;
	do
		rc = p3_cci_send(conn, &v, 1, len, (void *)(uintptr_t)len, flags);
	while (rc == CCI_ENOBUFS);
	return rc;
}

/* ---- payloads ---- */

static const uint32_t payloads[] = {0, 1, 24, 25, 96, 1023, 1024};

NODES_CASE(payloads_of_requests_arrive, 2)
{
	UNUSED_ARGS;
	unsigned char *data = node_pattern(CCI_CONN_REQ_LEN, 7);
	cci_endpoint_t *ep = open_at(rank == 0 ? SERVICE : 0);
	sync_nodes();
	for (unsigned i = 0; i < sizeof payloads / sizeof *payloads; i++) {
		if (rank == 0)
			(void)accepted(ep, payloads[i], 7);
		else
			(void)connected(ep, 0, CCI_CONN_ATTR_RO, data, payloads[i]);
	}
	sync_nodes();
	p3_cci_endpoint_destroy(ep);
}

/* ---- messages of all lengths ---- */

static const uint32_t lengths[] = {
	0, 1, 8, 31, 32, 33, 95, 96, 97, 128, 1023, 1024, 2048, 4063, 4064, 4065, 4096};

static void check_message(cci_endpoint_t *ep, cci_connection_t *conn, uint32_t len)
{
	cci_event_t *e = next(ep, CCI_EVENT_RECV);
	CHECK_EQ(e->recv.len, len);
	CHECK(e->recv.connection == conn);
	if (len)
		CHECK_PATTERN(e->recv.ptr, 0, len, len);
	give(e);
}

static void exchange(unsigned rank, cci_conn_attribute_t attribute)
{
	cci_endpoint_t *ep = open_at(rank == 0 ? SERVICE : 0);
	sync_nodes();
	cci_connection_t *conn =
		rank == 0 ? accepted(ep, 0, 0) : connected(ep, 0, attribute, NULL, 0);
	for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		unsigned char *at = node_pattern(P3_CCI_MTU, lengths[i]);
		if (rank == 0)
			check_message(ep, conn, lengths[i]);
		CHECK_EQ(send_one(conn, at, lengths[i], 0), CCI_SUCCESS);
		cci_event_t *e = next(ep, CCI_EVENT_SEND);
		CHECK_EQ(e->send.status, CCI_SUCCESS);
		CHECK(e->send.connection == conn);
		CHECK_EQ((uintptr_t)e->send.context, lengths[i]);
		give(e);
		if (rank == 1)
			check_message(ep, conn, lengths[i]);
	}
	sync_nodes();
	CHECK_EQ(p3_cci_disconnect(conn), CCI_SUCCESS);
	p3_cci_endpoint_destroy(ep);
	sync_nodes();
}

NODES_CASE(messages_of_all_lengths_arrive, 2)
{
	UNUSED_ARGS;
	exchange(rank, CCI_CONN_ATTR_RO);
	exchange(rank, CCI_CONN_ATTR_RU);
	exchange(rank, CCI_CONN_ATTR_UU);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(payloads_of_requests_arrive),
		cmocka_unit_test(messages_of_all_lengths_arrive),
	};
	return RUN_CASES(cases);
}
