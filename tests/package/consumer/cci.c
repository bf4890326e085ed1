/* SPDX-License-Identifier: BSD-3-Clause */
/* A program of CCI only: an endpoint sends a message to itself. */
#include <cci.h>

#include <stdlib.h>
#include <string.h>

static cci_event_t *next(cci_endpoint_t *endpoint)
{
	cci_event_t *event;
	while (cci_get_event(endpoint, &event) == CCI_EAGAIN)
		;
	return event;
}

/* Connect the endpoint to itself.  Return the connection of the client's side. */
static cci_connection_t *connect_to_self(cci_endpoint_t *endpoint)
{
	cci_connection_t *client = NULL;
	char *uri;
	if (cci_get_opt(endpoint, CCI_OPT_ENDPT_URI, &uri) != CCI_SUCCESS ||
		cci_connect(endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL) !=
			CCI_SUCCESS)
		return NULL;
	free(uri);
	for (int left = 3; left; left--) { /* request, ACCEPT, CONNECT */
		cci_event_t *event = next(endpoint);
		if (event->type == CCI_EVENT_CONNECT_REQUEST)
			(void)cci_accept(event, NULL);
		if (event->type == CCI_EVENT_CONNECT)
			client = event->connect.connection;
		(void)cci_return_event(event);
	}
	return client;
}

int main(void)
{
	uint32_t caps;
	cci_endpoint_t *endpoint;
	if (cci_init(CCI_ABI_VERSION, 0, &caps) != CCI_SUCCESS ||
		cci_create_endpoint(NULL, 0, &endpoint, NULL) != CCI_SUCCESS)
		return 1;
	cci_connection_t *connection = connect_to_self(endpoint);
	if (!connection ||
		cci_send(connection, "hello", 6, NULL, CCI_FLAG_SILENT) != CCI_SUCCESS)
		return 1;
	cci_event_t *event = next(endpoint);
	int good = event->type == CCI_EVENT_RECV && event->recv.len == 6 &&
		   strcmp((const char *)event->recv.ptr, "hello") == 0;
	(void)cci_return_event(event);
	printf("cci %s\n", good ? "works" : cci_event_type_str(event->type));
	return cci_finalize() != CCI_SUCCESS;
}
