/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends: cci_send, cci_sendv. */
#include "lib/cci/handle.h"
#include "lib/cci/up.h"
#include "nic/cci.h"

/* Return true if nothing would tell the program when it may use its buffer again. */
static bool keeps_silent_about_buffer(cci_connection_t *connection, int flags)
{
	const int both = CCI_FLAG_NO_COPY | CCI_FLAG_SILENT;
	return (flags & both) == both && !(flags & CCI_FLAG_BLOCKING) &&
	       connection->attribute != CCI_CONN_ATTR_RO;
}

/* Send a message of len bytes, whose pieces are right. */
static int send_pieces(cci_connection_t *connection, const struct iovec *data, uint32_t n,
	uint64_t len, const void *context, int flags)
{
	if (len > connection->max_send_size)
		return CCI_EMSGSIZE;
	if (keeps_silent_about_buffer(connection, flags))
		return CCI_EINVAL;
	void *own = (void *)(uintptr_t)context;
	if (flags & CCI_FLAG_BLOCKING)
		return p3_cci_send(connection, data, n, (uint32_t)len, own, flags);
	cci_endpoint_t *endpoint = connection->endpoint;
	struct p3_cci_handle *h = p3_cci_handle_enter(endpoint);
	int rc = p3_cci_send(connection, data, n, (uint32_t)len, own, flags);
	p3_cci_handle_leave(endpoint, h);
	return rc;
}

/* Do as cci_send(), with arguments that are not NULL by mistake. */
static __attribute__((noinline)) int send_generally(cci_connection_t *connection,
	const void *msg_ptr, uint32_t msg_len, const void *context, int flags)
{
	const struct iovec piece = {(void *)(uintptr_t)msg_ptr, msg_len};
	return send_pieces(connection, &piece, msg_len ? 1 : 0, msg_len, context, flags);
}

int cci_send(cci_connection_t *connection, const void *msg_ptr, uint32_t msg_len,
	const void *context, int flags)
{
	const int unusual = CCI_FLAG_BLOCKING | CCI_FLAG_NO_COPY;
	if (!p3_cci_is_up())
		return CCI_ERROR;
	if (!connection || (!msg_ptr && msg_len))
		return CCI_EINVAL;
	if (p3_likely(!(flags & unusual) && msg_len <= connection->max_send_size &&
		      !p3_cci_has_handle(connection->endpoint)) &&
		p3_likely(p3_cci_send_straight(
			connection, msg_ptr, msg_len, (void *)(uintptr_t)context, flags)))
		return CCI_SUCCESS;
	return send_generally(connection, msg_ptr, msg_len, context, flags);
}

int cci_sendv(cci_connection_t *connection, const struct iovec *data, uint32_t iovcnt,
	const void *context, int flags)
{
	uint64_t len = 0;
	if (!p3_cci_is_up())
		return CCI_ERROR;
	if (!connection || (!data && iovcnt))
		return CCI_EINVAL;
	for (uint32_t i = 0; i < iovcnt; i++) {
		if (!data[i].iov_base && data[i].iov_len)
			return CCI_EINVAL;
		if (data[i].iov_len > connection->max_send_size)
			return CCI_EMSGSIZE;
		len += data[i].iov_len;
	}
	return send_pieces(connection, data, iovcnt, len, context, flags);
}
