/* SPDX-License-Identifier: BSD-3-Clause */
/* RMA: cci_rma_register, cci_rma_deregister, cci_rma. */
#include "lib/cci/handle.h"
#include "lib/cci/up.h"
#include "nic/cci.h"

int cci_rma_register(cci_endpoint_t *endpoint, void *start, uint64_t length, int flags,
	cci_rma_handle_t **rma_handle)
{
	if (!p3_cci_is_up())
		return CCI_ERROR;
	if (!endpoint || !start || !length || !rma_handle)
		return CCI_EINVAL;
	return p3_cci_rma_register(endpoint, start, length, flags, rma_handle);
}

int cci_rma_deregister(cci_endpoint_t *endpoint, cci_rma_handle_t *rma_handle)
{
	if (!p3_cci_is_up())
		return CCI_ERROR;
	if (!endpoint || !rma_handle)
		return CCI_EINVAL;
	return p3_cci_rma_deregister(endpoint, rma_handle);
}

/* Check what the connection and the flags allow. */
static int check(cci_connection_t *connection, const struct p3_cci_rma *r)
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
	if (!p3_cci_is_up())
		return CCI_ERROR;
	if (!connection || !local_handle || !remote_handle)
		return CCI_EINVAL;
	const struct p3_cci_rma r = {.msg = msg_ptr,
		.msg_len = msg_ptr ? msg_len : 0,
		.local = *local_handle,
		.remote = *remote_handle,
		.local_offset = local_offset,
		.remote_offset = remote_offset,
		.data_len = data_len,
		.context = (void *)(uintptr_t)context,
		.flags = flags};
	int rc = check(connection, &r);
	if (rc != CCI_SUCCESS || (flags & CCI_FLAG_BLOCKING))
		return rc != CCI_SUCCESS ? rc : p3_cci_rma(connection, &r);
	cci_endpoint_t *endpoint = connection->endpoint;
	struct p3_cci_handle *h = p3_cci_handle_enter(endpoint);
	rc = p3_cci_rma(connection, &r);
	p3_cci_handle_leave(endpoint, h);
	return rc;
}
