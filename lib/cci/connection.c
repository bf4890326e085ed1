/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections, messages, RMA and events: the calls that the firmware executes. */
#include "lib/cci/cci.h"
#include "nic/cci.h"

#include <cci.h>
#include <string.h>

/* Check the arguments that do not depend on the URI. */
static int cci_connect_check(const void *data, uint32_t len,
	cci_conn_attribute_t attribute, const struct timeval *timeout)
{
	if (len > CCI_CONN_REQ_LEN || (!data && len))
		return CCI_EINVAL;
	if (timeout && (timeout->tv_sec < 0 || timeout->tv_usec < 0))
		return CCI_EINVAL;
	switch (attribute) {
	case CCI_CONN_ATTR_RO:
	case CCI_CONN_ATTR_RU:
	case CCI_CONN_ATTR_UU:
		return CCI_SUCCESS;
	case CCI_CONN_ATTR_UU_MC_TX:
	case CCI_CONN_ATTR_UU_MC_RX:
		return CCI_ERR_NOT_IMPLEMENTED;
	default:
		return CCI_EINVAL;
	}
}

/* Convert a time-out; one that is too long for the clock never comes. */
static uint64_t cci_connect_ns(const struct timeval *timeout)
{
	const uint64_t most = P3_CCI_NO_TIMEOUT / 4 / 1000000000;
	if (!timeout || (uint64_t)timeout->tv_sec > most ||
		(uint64_t)timeout->tv_usec > most * 1000000)
		return P3_CCI_NO_TIMEOUT;
	return (uint64_t)timeout->tv_sec * 1000000000 + (uint64_t)timeout->tv_usec * 1000;
}

int cci_connect(cci_endpoint_t *endpoint, const char *server_uri, const void *data_ptr,
	uint32_t data_len, cci_conn_attribute_t attribute, const void *context, int flags,
	const struct timeval *timeout)
{
	struct p3_cci_connect c = {.data = data_ptr,
		.data_len = data_len,
		.attribute = attribute,
		.context = (void *)(uintptr_t)context,
		.timeout_ns = cci_connect_ns(timeout)};
	(void)flags;
	P3_CCI_CHECK(endpoint && server_uri);
	int rc = cci_connect_check(data_ptr, data_len, attribute, timeout);
	if (rc == CCI_SUCCESS)
		rc = p3_cci_uri_parse(p3_node(), endpoint->device->transport, server_uri,
			&c.node, &c.endpoint);
	if (rc != CCI_SUCCESS)
		return rc;
	p3_cci_handle_enter(endpoint);
	rc = p3_cci_connect(endpoint, &c);
	p3_cci_handle_leave(endpoint);
	return rc;
}

static int cci_decide(cci_event_t *conn_req, const void *context, bool accept)
{
	P3_CCI_CHECK(conn_req && conn_req->type == CCI_EVENT_CONNECT_REQUEST);
	return p3_cci_decide(conn_req, (void *)(uintptr_t)context, accept);
}

int cci_accept(cci_event_t *conn_req, const void *context)
{
	return cci_decide(conn_req, context, true);
}

int cci_reject(cci_event_t *conn_req)
{
	return cci_decide(conn_req, NULL, false);
}

int cci_disconnect(cci_connection_t *connection)
{
	P3_CCI_CHECK(connection);
	return p3_cci_disconnect(connection);
}

/* ---- messages ---- */

static __attribute__((noinline)) int cci_send_with_handle(cci_connection_t *connection,
	const void *data, uint32_t pieces, uint32_t len, void *context, int flags)
{
	cci_endpoint_t *endpoint = connection->endpoint;
	if (flags & CCI_FLAG_BLOCKING)
		return p3_cci_send(connection, data, pieces, len, context, flags);
	p3_cci_handle_enter(endpoint);
	int rc = p3_cci_send(connection, data, pieces, len, context, flags);
	p3_cci_handle_leave(endpoint);
	return rc;
}

/* Send the bytes at data, or those of the pieces there. */
static inline int cci_send_bytes(cci_connection_t *connection, const void *data,
	uint32_t pieces, uint64_t len, const void *context, int flags)
{
	const int both = CCI_FLAG_NO_COPY | CCI_FLAG_SILENT;
	if (len > connection->max_send_size)
		return CCI_EMSGSIZE;
	/* Nothing would tell the program when it may use its buffer again. */
	if (p3_unlikely(flags & CCI_FLAG_NO_COPY) && (flags & both) == both &&
		!(flags & CCI_FLAG_BLOCKING) && connection->attribute != CCI_CONN_ATTR_RO)
		return CCI_EINVAL;
	void *own = (void *)(uintptr_t)context;
	return p3_unlikely(p3_cci_has_handle(connection->endpoint))
		       ? cci_send_with_handle(
				 connection, data, pieces, (uint32_t)len, own, flags)
		       : p3_cci_send(connection, data, pieces, (uint32_t)len, own, flags);
}

int cci_send(cci_connection_t *connection, const void *msg_ptr, uint32_t msg_len,
	const void *context, int flags)
{
	P3_CCI_CHECK(connection && (msg_ptr || !msg_len));
	return cci_send_bytes(connection, msg_ptr, 0, msg_len, context, flags);
}

int cci_sendv(cci_connection_t *connection, const struct iovec *data, uint32_t iovcnt,
	const void *context, int flags)
{
	uint64_t len = 0;
	P3_CCI_CHECK(connection && (data || !iovcnt));
	for (uint32_t i = 0; i < iovcnt; i++) {
		if (!data[i].iov_base && data[i].iov_len)
			return CCI_EINVAL;
		if (data[i].iov_len > connection->max_send_size)
			return CCI_EMSGSIZE;
		len += data[i].iov_len;
	}
	return cci_send_bytes(connection, data, iovcnt, len, context, flags);
}

/* ---- RMA ---- */

int cci_rma_register(cci_endpoint_t *endpoint, void *start, uint64_t length, int flags,
	cci_rma_handle_t **rma_handle)
{
	P3_CCI_CHECK(endpoint && start && length && rma_handle);
	return p3_cci_rma_register(endpoint, start, length, flags, rma_handle);
}

int cci_rma_deregister(cci_endpoint_t *endpoint, cci_rma_handle_t *rma_handle)
{
	P3_CCI_CHECK(endpoint && rma_handle);
	return p3_cci_rma_deregister(endpoint, rma_handle);
}

/* Check what the connection and the flags allow. */
static int cci_rma_check(cci_connection_t *connection, const struct p3_cci_rma *r)
{
	int which = r->flags & (CCI_FLAG_READ | CCI_FLAG_WRITE);
	if (!r->data_len || (which != CCI_FLAG_READ && which != CCI_FLAG_WRITE))
		return CCI_EINVAL;
	if (connection->attribute != CCI_CONN_ATTR_RO &&
		connection->attribute != CCI_CONN_ATTR_RU)
		return CCI_EINVAL;
	return r->msg_len > connection->max_send_size ? CCI_EMSGSIZE : CCI_SUCCESS;
}

int cci_rma(cci_connection_t *connection, const void *msg_ptr, uint32_t msg_len,
	cci_rma_handle_t *local_handle, uint64_t local_offset,
	cci_rma_handle_t *remote_handle, uint64_t remote_offset, uint64_t data_len,
	const void *context, int flags)
{
	P3_CCI_CHECK(connection && local_handle && remote_handle);
	const struct p3_cci_rma r = {.msg = msg_ptr,
		.msg_len = msg_ptr ? msg_len : 0,
		.local = *local_handle,
		.remote = *remote_handle,
		.local_offset = local_offset,
		.remote_offset = remote_offset,
		.data_len = data_len,
		.context = (void *)(uintptr_t)context,
		.flags = flags};
	int rc = cci_rma_check(connection, &r);
	if (rc != CCI_SUCCESS || (flags & CCI_FLAG_BLOCKING))
		return rc != CCI_SUCCESS ? rc : p3_cci_rma(connection, &r);
	cci_endpoint_t *endpoint = connection->endpoint;
	p3_cci_handle_enter(endpoint);
	rc = p3_cci_rma(connection, &r);
	p3_cci_handle_leave(endpoint);
	return rc;
}

/* ---- events ---- */

/* Take an event of an endpoint with an OS handle. */
static __attribute__((noinline)) int cci_event_get_with_handle(
	cci_endpoint_t *endpoint, cci_event_t **event)
{
	p3_cci_handle_enter(endpoint);
	int rc = p3_cci_get_event(endpoint, event);
	p3_cci_handle_looked(endpoint, rc == CCI_SUCCESS);
	return rc;
}

static P3_RARE int cci_event_get_nothing(cci_endpoint_t *endpoint, cci_event_t **event)
{
	if (event)
		*event = NULL;
	return p3_cci_is_up() && (!endpoint || !event) ? CCI_EINVAL : CCI_ERROR;
}

int cci_get_event(cci_endpoint_t *endpoint, cci_event_t **event)
{
	if (p3_unlikely(!event || !endpoint || !p3_cci_is_up()))
		return cci_event_get_nothing(endpoint, event);
	return p3_cci_has_handle(endpoint) ? cci_event_get_with_handle(endpoint, event)
					   : p3_cci_get_event(endpoint, event);
}

int cci_return_event(cci_event_t *event)
{
	P3_CCI_CHECK(event);
	return p3_cci_return_event(event);
}

/* ---- statuses ---- */

#define CCI_STATUS_NAME(name) [name] = #name

static const char *const names[] = {CCI_STATUS_NAME(CCI_SUCCESS),
	CCI_STATUS_NAME(CCI_ERROR), CCI_STATUS_NAME(CCI_ERR_DISCONNECTED),
	CCI_STATUS_NAME(CCI_ERR_RNR), CCI_STATUS_NAME(CCI_ERR_DEVICE_DEAD),
	CCI_STATUS_NAME(CCI_ERR_RMA_HANDLE), CCI_STATUS_NAME(CCI_ERR_RMA_OP),
	CCI_STATUS_NAME(CCI_ERR_NOT_IMPLEMENTED), CCI_STATUS_NAME(CCI_ERR_NOT_FOUND),
	CCI_STATUS_NAME(CCI_EINVAL), CCI_STATUS_NAME(CCI_ETIMEDOUT),
	CCI_STATUS_NAME(CCI_ENOMEM), CCI_STATUS_NAME(CCI_ENODEV),
	CCI_STATUS_NAME(CCI_ENETDOWN), CCI_STATUS_NAME(CCI_EBUSY),
	CCI_STATUS_NAME(CCI_ERANGE), CCI_STATUS_NAME(CCI_EAGAIN),
	CCI_STATUS_NAME(CCI_ENOBUFS), CCI_STATUS_NAME(CCI_EMSGSIZE),
	CCI_STATUS_NAME(CCI_ENOMSG), CCI_STATUS_NAME(CCI_EADDRNOTAVAIL),
	CCI_STATUS_NAME(CCI_ECONNREFUSED)};

const char *cci_strerror(cci_endpoint_t *endpoint, enum cci_status status)
{
	(void)endpoint;
	if ((size_t)status < sizeof names / sizeof names[0] && names[status])
		return names[status];
	const char *text = strerrordesc_np((int)status);
	return text ? text : "unknown error";
}
