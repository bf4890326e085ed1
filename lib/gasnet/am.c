/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * am.c - the calls of active messages, and polls and waits at FULL, which serve
 * everything
 */
#include <stdarg.h>

#include "internal.h"

/* ---- polling and waiting ---- */

/* Serve everything, and run request handlers.  Return the number of events. */
unsigned gasneti_poll_full(void)
{
	unsigned n = gasneti_poll_safe() + gasneti_poll_requests();
	n += gasneti_poll_others();
	if (gasneti_unlikely(gasneti_get(&gasneti.collectives)))
		gasneti_coll_advance();
	return n;
}

/* Serve an event of FULL; sleep if there was nothing to do for some time. */
void gasneti_turn_full(gasneti_wait_t *wait)
{
	unsigned n = gasneti_poll_either() + gasneti_poll_others();
	if (gasneti_unlikely(gasneti_get(&gasneti.collectives)))
		gasneti_coll_advance();
	gasneti_turn_end(wait, n);
}

void gasneti_wait_begin(gasneti_wait_t *wait)
{
	gasneti_check_main("GASNET_BLOCKUNTIL");
	gasneti_wait_init(wait);
}

void gasneti_wait_turn(gasneti_wait_t *wait)
{
	gasneti_turn_full(wait);
}

/* Acquire the data that a handler wrote before it made the condition true. */
void gasneti_wait_end(gasneti_wait_t *wait)
{
	(void)wait;
	gasneti_acquire_fence();
}

int gasnet_AMPoll(void)
{
	if (gasneti_unlikely(gasneti.state != GASNETI_ATTACHED))
		return GASNET_ERR_NOT_INIT;
	gasneti_check_main("gasnet_AMPoll");
	gasneti_poll_full();
	return GASNET_OK;
}

int gasnet_set_waitmode(int wait_mode)
{
	if (wait_mode != GASNET_WAIT_SPIN && wait_mode != GASNET_WAIT_BLOCK &&
		wait_mode != GASNET_WAIT_SPINBLOCK)
		return GASNET_ERR_BAD_ARG;
	gasneti_set(&gasneti.waitmode, wait_mode);
	return GASNET_OK;
}

/* ---- requests and replies ---- */

/* Send a request of a program, or to a handler of the library.  Serve everything while it
 * lacks credits. */
GASNETI_HOT int gasneti_am_send(struct gasneti_message *m)
{
	if (gasneti_unlikely(gasneti.state != GASNETI_ATTACHED))
		return GASNET_ERR_NOT_INIT;
	gasneti_check_main("gasnet_AMRequest");
	int rc = gasneti_message_check(m);
	if (gasneti_unlikely(rc != GASNET_OK))
		return rc;
	if (m->node == gasneti.me) {
		struct gasneti_token token = {
			.node = m->node, .request = true, .loopback = true};
		gasneti_loopback(m, &token);
	} else {
		struct gasneti_request r;
		if (!gasneti_request_begin(&r, m))
			gasneti_wait_for(full, gasneti_request_try(&r, m, true));
		gasneti_request_end(&r, m);
	}
	return GASNET_OK;
}

/* Make the message of a call, whose last parameter is the number of its arguments. */
#define AM_MESSAGE(m, node, category, source, bytes, target)                             \
	struct gasneti_message m;                                                        \
	gasneti_message_init(                                                            \
		&m, node, handler, category, source, bytes, target, numargs);            \
	do {                                                                             \
		va_list ap;                                                              \
		va_start(ap, numargs);                                                   \
		for (int i = 0; i < numargs && i < GASNETI_ARGS; i++)                    \
			m.args[i] = va_arg(ap, gasnet_handlerarg_t);                     \
		va_end(ap);                                                              \
	} while (0)

/* Define the calls of requests or of replies: their first parameter, the node, 0 for
 * a reply, and how the message is sent. */
#define AM_CALLS(kind, to, node, send)                                                   \
	int gasnetc_AM##kind##Short(to, gasnet_handler_t handler, int numargs, ...)      \
	{                                                                                \
		AM_MESSAGE(m, node, GASNETI_SHORT, NULL, 0, NULL);                       \
		return send;                                                             \
	}                                                                                \
	int gasnetc_AM##kind##Medium(to, gasnet_handler_t handler, void *source_addr,    \
		size_t nbytes, int numargs, ...)                                         \
	{                                                                                \
		AM_MESSAGE(m, node, GASNETI_MEDIUM, source_addr, nbytes, NULL);          \
		return send;                                                             \
	}                                                                                \
	int gasnetc_AM##kind##Long(to, gasnet_handler_t handler, void *source_addr,      \
		size_t nbytes, void *dest_addr, int numargs, ...)                        \
	{                                                                                \
		AM_MESSAGE(m, node, GASNETI_LONG, source_addr, nbytes, dest_addr);       \
		return send;                                                             \
	}

AM_CALLS(Request, gasnet_node_t dest, dest, gasneti_am_send(&m))
AM_CALLS(Reply, gasnet_token_t token, 0, gasneti_am_reply_send(token, &m))

int gasnetc_AMRequestLongAsync(gasnet_node_t dest, gasnet_handler_t handler,
	void *source_addr, size_t nbytes, void *dest_addr, int numargs, ...)
{
	AM_MESSAGE(m, dest, GASNETI_LONG, source_addr, nbytes, dest_addr);
	m.async = true;
	return gasneti_am_send(&m);
}

int gasnet_AMGetMsgSource(gasnet_token_t token, gasnet_node_t *src_node)
{
	if (!token || !src_node)
		return GASNET_ERR_BAD_ARG;
	*src_node = ((struct gasneti_token *)token)->node;
	return GASNET_OK;
}

size_t gasnet_AMMaxLongRequest(void)
{
	return gasneti.max_long;
}

size_t gasnet_AMMaxLongReply(void)
{
	return gasneti.max_long;
}
