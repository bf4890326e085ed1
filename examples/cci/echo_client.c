/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * echo_client - sends its arguments to an echo server, and checks what comes back
 *
 *	cci_echo_client URI [WORD ...]
 *
 * The last word that the server should get is "bye", which ends it (echo_server.c).
 */
#include "common.h"

static uint32_t checked_len(cci_connection_t *connection, const char *word)
{
	size_t len = strlen(word);
	expect(len <= connection->max_send_size, "a word longer than a message");
	return (uint32_t)len;
}

/* Send a word, and wait until it is back.  SEND tells that the server's CCI has the
 * message; it may come before or after the answer. */
static void echo(cci_connection_t *connection, const char *word)
{
	uint32_t len = checked_len(connection, word);
	check(cci_send(connection, word, len, word, 0), "cci_send");
	for (unsigned events = 0; events < 2; events++) {
		cci_event_t *event = next_event();
		if (event->type == CCI_EVENT_SEND) {
			check((int)event->send.status, "send");
			expect(event->send.context == word, "the context of SEND");
		} else {
			expect(event->type == CCI_EVENT_RECV, "an event");
			expect(event->recv.len == len &&
					!memcmp(event->recv.ptr, word, len),
				"the echo");
			printf("%.*s\n", (int)len, (const char *)event->recv.ptr);
		}
		done_with(event);
	}
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: cci_echo_client URI [WORD ...]\n");
		return 2;
	}
	open_endpoint();
	cci_connection_t *server = connect_to(argv[1]);
	for (int i = 2; i < argc; i++)
		if (strcmp(argv[i], "bye") != 0)
			echo(server, argv[i]);
		else /* the server answers nothing: wait until its CCI has the message */
			check(cci_send(server, "bye", 3, NULL, CCI_FLAG_BLOCKING), "bye");
	check(cci_disconnect(server), "cci_disconnect");
	close_endpoint();
	return 0;
}
