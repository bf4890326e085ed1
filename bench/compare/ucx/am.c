/* SPDX-License-Identifier: BSD-3-Clause */
/* Active messages of UCX: each has the number of the function that its receiver runs. */
#include "peer_ucx.h"

#include <string.h>

enum { ECHO, DONE };

static uint64_t echoed, done, length;

static void send_message(struct side *s, unsigned function, const void *bytes)
{
	static const ucp_request_param_t plain;
	ucs_status_ptr_t request =
		ucp_am_send_nbx(s->ep, function, NULL, 0, bytes, length, &plain);
	if (UCS_PTR_IS_PTR(request))
		ucp_request_free(request); /* UCX ends it itself; bytes stay */
	else
		ucx_check(UCS_PTR_STATUS(request), "ucp_am_send_nbx");
}

static const char *received(void *data, size_t bytes, const ucp_am_recv_param_t *param)
{
	if (bytes != length || param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)
		peer_die("an active message of %zu bytes; expected %llu, and no "
			 "rendezvous",
			bytes, (unsigned long long)length);
	return data;
}

/* The reply outlives this call if UCX keeps it for a while. */
static ucs_status_t on_echo(void *arg, const void *header, size_t header_length,
	void *data, size_t bytes, const ucp_am_recv_param_t *param)
{
	static char reply[PEER_BYTES];
	(void)header, (void)header_length;
	const char *message = received(data, bytes, param);
	peer_check(message, length, echoed++);
	memcpy(reply, message, length);
	send_message(arg, DONE, reply);
	return UCS_OK;
}

static ucs_status_t on_done(void *arg, const void *header, size_t header_length,
	void *data, size_t bytes, const ucp_am_recv_param_t *param)
{
	(void)arg, (void)header, (void)header_length;
	peer_check(received(data, bytes, param), length, done++);
	return UCS_OK;
}

static void handle(struct side *s, unsigned function, ucp_am_recv_callback_t call)
{
	ucp_am_handler_param_t param = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
						      UCP_AM_HANDLER_PARAM_FIELD_CB |
						      UCP_AM_HANDLER_PARAM_FIELD_ARG,
		.id = function,
		.cb = call,
		.arg = s};
	ucx_check(ucp_worker_set_am_recv_handler(s->worker, &param),
		"ucp_worker_set_am_recv_handler");
}

void am_open(struct side *s, uint64_t bytes)
{
	if (bytes < PEER_WORD || bytes > PEER_BYTES)
		peer_die("am=%llu: expected %d to %d bytes", (unsigned long long)bytes,
			PEER_WORD, PEER_BYTES);
	length = bytes;
	echoed = done = 0;
	handle(s, ECHO, on_echo);
	handle(s, DONE, on_done);
}

static void round_trip(struct side *s, uint64_t bytes, uint64_t round)
{
	static char message[PEER_BYTES];
	peer_stamp(message, bytes, round);
	send_message(s, ECHO, message);
	while (done == round)
		ucx_progress(s);
}

double am_run(struct side *s, uint64_t bytes)
{
	return ucx_timed(s, round_trip, bytes);
}
