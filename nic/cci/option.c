/* SPDX-License-Identifier: BSD-3-Clause */
/* Options that the firmware keeps. */
#include "nic/cci/call.h"
#include "nic/cci/expire.h"
#include "nic/cci/item.h"

struct option {
	const void *handle;
	cci_opt_name_t name;
	uint32_t value;
	int rc;
};

static void set_alive(struct p3_nic *n, struct p3_cci_endpoint *ep, uint32_t us)
{
	ep->alive_us = us;
	p3_list_each(it, &ep->conns)
		p3_cci_expire_set_alive(n, p3_item(it, struct p3_cci_conn, of_ep), us);
}

static void set_endpoint(struct p3_nic *n, void *arg)
{
	struct option *o = arg;
	struct p3_cci_endpoint *ep = (struct p3_cci_endpoint *)(uintptr_t)o->handle;
	o->rc = CCI_SUCCESS;
	p3_cci_item_drain(n, ep);
	switch (o->name) {
	case CCI_OPT_ENDPT_SEND_TIMEOUT:
		ep->timeout_us = o->value;
		break;
	case CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT:
		set_alive(n, ep, o->value);
		break;
	case CCI_OPT_ENDPT_RECV_BUF_COUNT:
		if (!o->value || o->value > P3_CCI_RX_MOST)
			o->rc = CCI_ERANGE;
		else
			p3_cci_item_set_rx_count(ep, o->value);
		break;
	case CCI_OPT_ENDPT_SEND_BUF_COUNT:
		if (!o->value || o->value > P3_CCI_TX_USUAL)
			o->rc = CCI_ERANGE;
		else
			ep->tx_count = o->value;
		break;
	default:
		o->rc = CCI_EINVAL;
	}
}

static void set_connection(struct p3_nic *n, void *arg)
{
	struct option *o = arg;
	struct p3_cci_conn *conn = (struct p3_cci_conn *)(uintptr_t)o->handle;
	o->rc = CCI_SUCCESS;
	if (o->name == CCI_OPT_CONN_SEND_TIMEOUT)
		p3_cci_expire_set_timeout(
			n, conn, o->value ? o->value : conn->ep->timeout_us);
	else
		p3_cci_expire_set_alive(n, conn, o->value);
}

static bool is_of_connection(cci_opt_name_t name)
{
	return name == CCI_OPT_CONN_SEND_TIMEOUT ||
	       name == CCI_OPT_CONN_KEEPALIVE_TIMEOUT;
}

int p3_cci_set_number(const void *handle, cci_opt_name_t name, uint32_t value)
{
	struct option o = {handle, name, value, CCI_ENOBUFS};
	const struct p3_cci_conn *conn = handle;
	const struct p3_cci_endpoint *ep = handle;
	if (is_of_connection(name))
		(void)p3_cci_call(conn->ep->nic, set_connection, &o);
	else
		(void)p3_cci_call(ep->nic, set_endpoint, &o);
	return o.rc;
}

static void get(struct p3_nic *n, void *arg)
{
	struct option *o = arg;
	const struct p3_cci_conn *conn = o->handle;
	const struct p3_cci_endpoint *ep = o->handle;
	(void)n;
	o->rc = CCI_SUCCESS;
	switch (o->name) {
	case CCI_OPT_ENDPT_SEND_TIMEOUT:
		o->value = ep->timeout_us;
		break;
	case CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT:
		o->value = ep->alive_us;
		break;
	case CCI_OPT_ENDPT_RECV_BUF_COUNT:
		o->value = ep->rx_count;
		break;
	case CCI_OPT_ENDPT_SEND_BUF_COUNT:
		o->value = ep->tx_count;
		break;
	case CCI_OPT_CONN_SEND_TIMEOUT:
		o->value = conn->timeout_us;
		break;
	case CCI_OPT_CONN_KEEPALIVE_TIMEOUT:
		o->value = conn->alive_us;
		break;
	default:
		o->rc = CCI_EINVAL;
	}
}

int p3_cci_get_number(const void *handle, cci_opt_name_t name, uint32_t *value_out)
{
	struct option o = {handle, name, 0, CCI_ENOBUFS};
	const struct p3_cci_conn *conn = handle;
	const struct p3_cci_endpoint *ep = handle;
	(void)p3_cci_call(is_of_connection(name) ? conn->ep->nic : ep->nic, get, &o);
	if (o.rc == CCI_SUCCESS)
		*value_out = o.value;
	return o.rc;
}
