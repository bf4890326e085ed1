/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * echo_server - sends each message back to its sender
 *
 *	cci_echo_server
 *
 * It prints its address, which the client gets as an argument (echo_client.c), and
 * serves any number of clients at once.  It ends when a client says "bye".
 *
 * There is no receive call: a message comes as an event that lends a receive buffer of
 * the endpoint.  The message is sent back out of that buffer, and the event returned
 * afterwards.
 */
#include "common.h"

#include <stdbool.h>

/* Send a message back.  If all send buffers are in use, the call itself makes progress,
 * so it is repeated. */
static void send_back(const cci_event_recv_t *recv)
{
	int status;
	do
		status = cci_send(
			recv->connection, recv->ptr, recv->len, NULL, CCI_FLAG_SILENT);
	while (status == CCI_ENOBUFS);
	if (status != CCI_ERR_DISCONNECTED) /* the client has gone meanwhile */
		check(status, "cci_send");
}

/* Return false if a client says that the server is to end. */
static bool serve(cci_event_t *event)
{
	switch (event->type) {
	case CCI_EVENT_CONNECT_REQUEST:
		check(cci_accept(event, NULL), "cci_accept");
		return true;
	case CCI_EVENT_RECV:
		if (event->recv.len == 3 && !memcmp(event->recv.ptr, "bye", 3))
			return false;
		send_back(&event->recv);
		return true;
	default: /* an ACCEPT: nothing is to do before the client sends */
		return true;
	}
}

int main(void)
{
	bool more = true;
	open_endpoint();
	print_uri();
	while (more) {
		cci_event_t *event = next_event();
		more = serve(event);
		done_with(event);
	}
	close_endpoint();
	return 0;
}
