/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections: cci_accept, cci_reject, cci_disconnect. */
#include "lib/cci/up.h"
#include "nic/cci.h"

int cci_accept(cci_event_t *conn_req, const void *context)
{
	if (!p3_cci_is_up())
		return CCI_ERROR;
	if (!conn_req || conn_req->type != CCI_EVENT_CONNECT_REQUEST)
		return CCI_EINVAL;
	return p3_cci_accept(conn_req, (void *)(uintptr_t)context);
}

int cci_reject(cci_event_t *conn_req)
{
	if (!p3_cci_is_up())
		return CCI_ERROR;
	if (!conn_req || conn_req->type != CCI_EVENT_CONNECT_REQUEST)
		return CCI_EINVAL;
	return p3_cci_reject(conn_req);
}

int cci_disconnect(cci_connection_t *connection)
{
	if (!p3_cci_is_up())
		return CCI_ERROR;
	return connection ? p3_cci_disconnect(connection) : CCI_EINVAL;
}
