/* SPDX-License-Identifier: BSD-3-Clause */
/* cci_connect. */
#include "lib/cci/cci.h"
#include "lib/cci/handle.h"

/* Check the arguments that do not depend on the URI. */
static int check(const void *data, uint32_t len, cci_conn_attribute_t attribute,
	const struct timeval *timeout)
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
static uint64_t in_ns(const struct timeval *timeout)
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
		.timeout_ns = in_ns(timeout)};
	(void)flags;
	if (!p3_cci_is_up())
		return CCI_ERROR;
	if (!endpoint || !server_uri)
		return CCI_EINVAL;
	int rc = check(data_ptr, data_len, attribute, timeout);
	if (rc == CCI_SUCCESS)
		rc = p3_cci_uri_parse(p3_node(), endpoint->device->transport, server_uri,
			&c.node, &c.endpoint);
	if (rc != CCI_SUCCESS)
		return rc;
	struct p3_cci_handle *h = p3_cci_handle_enter(endpoint);
	rc = p3_cci_connect(endpoint, &c);
	p3_cci_handle_leave(endpoint, h);
	return rc;
}
