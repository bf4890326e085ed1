/* SPDX-License-Identifier: BSD-3-Clause */
/* The host's calls of CCI: two endpoints, few buffers, events kept for a while. */
#include "fuzz/rig.h"

#include <string.h>

enum { ENDS = 2, CONNS = 16, HELD = 12, MTU = 1024, BUFFERS = 6, REGIONS = 4 };

static struct {
	cci_endpoint_t *ep;
	cci_connection_t *conn[CONNS];
	cci_event_t *held[HELD];
	cci_rma_handle_t *region[REGIONS];
} ends[ENDS];

static char memory[8192];

static void check(int status, int want, const char *what)
{
	if (status != want)
		rig_fail(what, (uint64_t)status, (uint64_t)want);
}

static void open_end(uint32_t k)
{
	static const struct cci_device device = {.name = "fuzz", .max_send_size = MTU};
	struct p3_cci_endpoint_conf conf = {
		.device = &device, .service = 1 + k, .max_send_size = MTU};
	memset(&ends[k], 0, sizeof ends[k]);
	check(p3_cci_endpoint_create(rig.nic, &conf, &ends[k].ep), CCI_SUCCESS,
		"an endpoint");
	uint32_t buffers = BUFFERS;
	check(p3_cci_number(ends[k].ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, true, &buffers),
		CCI_SUCCESS, "buffers");
}

static void close_end(uint32_t k)
{
	check(p3_cci_endpoint_destroy(rig.nic, ends[k].ep), true, "destroy");
	ends[k].ep = NULL;
}

static cci_connection_t **slot_of(uint32_t k, const cci_connection_t *conn)
{
	for (uint32_t i = 0; i < CONNS; i++)
		if (ends[k].conn[i] == conn)
			return &ends[k].conn[i];
	return NULL;
}

/* ---- events ---- */

static void opened(uint32_t k, cci_connection_t *conn)
{
	cci_connection_t **slot = slot_of(k, NULL);
	if (slot)
		*slot = conn;
	else
		check(p3_cci_disconnect(conn), CCI_SUCCESS, "disconnect");
}

static void check_bytes(const char *at, uint32_t len, uint32_t most)
{
	if (len > most)
		rig_fail("a length", len, most);
	if (len && at[len] != 0)
		rig_fail("the byte behind a message", (uint64_t)at[len], 0);
}

static void look_at(uint32_t k, const cci_event_t *ev)
{
	switch (ev->type) {
	case CCI_EVENT_RECV:
		check_bytes(ev->recv.ptr, ev->recv.len, MTU);
		if (!slot_of(k, ev->recv.connection))
			rig_fail("a RECV of a connection that is not open", 0, 1);
		break;
	case CCI_EVENT_CONNECT_REQUEST:
		check_bytes(ev->request.data_ptr, ev->request.data_len, CCI_CONN_REQ_LEN);
		break;
	case CCI_EVENT_CONNECT:
	case CCI_EVENT_ACCEPT:
		if ((ev->connect.status == CCI_SUCCESS) !=
			(ev->connect.connection != NULL))
			rig_fail("a connection with a status", ev->connect.status, 0);
		if (ev->connect.connection)
			opened(k, ev->connect.connection);
		break;
	case CCI_EVENT_SEND:
	case CCI_EVENT_KEEPALIVE_TIMEDOUT:
		break;
	default:
		rig_fail("a type of event", ev->type, CCI_EVENT_RECV);
	}
}

static void decide(const cci_event_t *ev, uint8_t how)
{
	if (ev->type != CCI_EVENT_CONNECT_REQUEST)
		return;
	if (how & 0x40)
		check(p3_cci_decide((cci_event_t *)ev, NULL, false), CCI_SUCCESS,
			"reject");
	else if (p3_cci_decide((cci_event_t *)ev, NULL, true) != CCI_SUCCESS)
		check(p3_cci_decide((cci_event_t *)ev, NULL, false), CCI_SUCCESS,
			"reject");
}

static void take_event(uint32_t k, uint8_t how)
{
	cci_event_t *ev;
	uint32_t i = 0;
	while (i < HELD && ends[k].held[i])
		i++;
	if (i == HELD || p3_cci_get_event(ends[k].ep, &ev) != CCI_SUCCESS)
		return;
	look_at(k, ev);
	decide(ev, how);
	ends[k].held[i] = ev;
}

static void return_event(uint32_t k, uint8_t how)
{
	cci_event_t **held = &ends[k].held[how % HELD];
	if (*held)
		check(p3_cci_return_event(*held), CCI_SUCCESS, "an event's return");
	*held = NULL;
}

/* ---- connections and messages ---- */

static void ask(uint32_t k, struct input *in)
{
	struct p3_cci_connect c = {.node = in_below(in, 4),
		.endpoint = in_below(in, 4),
		.data = memory,
		.data_len = (uint32_t)in_bytes(in, 2) % (CCI_CONN_REQ_LEN + 1),
		.attribute = (cci_conn_attribute_t)in_below(in, 3),
		.timeout_ns = in_bit(in) ? 5000000 : P3_CCI_NO_TIMEOUT};
	(void)p3_cci_connect(ends[k].ep, &c);
}

static void send_one(uint32_t k, struct input *in)
{
	cci_connection_t *conn = ends[k].conn[in_below(in, CONNS)];
	uint8_t how = in_u8(in);
	uint32_t len = (uint32_t)in_bytes(in, 2) % (MTU + 1);
	struct iovec piece = {memory, len};
	if (!conn)
		return;
	if (len > conn->max_send_size)
		piece.iov_len = len = conn->max_send_size;
	for (uint32_t i = how >= 0xf0 ? 40 : 1; i; i--)
		(void)p3_cci_send(conn, &piece, 1, len, NULL,
			(how & 1 ? CCI_FLAG_SILENT : 0) |
				(how & 2 ? CCI_FLAG_NO_COPY : 0));
}

static void move(uint32_t k, struct input *in)
{
	cci_connection_t *conn = ends[k].conn[in_below(in, CONNS)];
	cci_rma_handle_t *local = ends[k].region[in_below(in, REGIONS)];
	uint8_t how = in_u8(in);
	if (!conn || !local || conn->attribute == CCI_CONN_ATTR_UU)
		return;
	struct p3_cci_rma rma = {.msg = memory,
		.msg_len = how & 1 ? 5 : 0,
		.local = *local,
		.remote = *local,
		.remote_offset = in_bytes(in, 2),
		.data_len = 1 + in_bytes(in, 2) % (sizeof memory / 2),
		.flags = (how & 2 ? CCI_FLAG_READ : CCI_FLAG_WRITE) |
			 (how & 4 ? CCI_FLAG_FENCE : 0)};
	(void)p3_cci_rma(conn, &rma);
}

static void region(uint32_t k, uint8_t how)
{
	cci_rma_handle_t **r = &ends[k].region[how % REGIONS];
	if (*r)
		check(p3_cci_rma_deregister(ends[k].ep, *r), CCI_SUCCESS, "deregister");
	if (*r || p3_cci_rma_register(ends[k].ep, memory, sizeof memory,
			  CCI_FLAG_READ | CCI_FLAG_WRITE, r) != CCI_SUCCESS)
		*r = NULL;
}

static void disconnect(uint32_t k, uint8_t how)
{
	cci_connection_t **conn = &ends[k].conn[how % CONNS];
	if (*conn)
		check(p3_cci_disconnect(*conn), CCI_SUCCESS, "disconnect");
	*conn = NULL;
}

static void set_times(uint32_t k, struct input *in)
{
	bool alive = in_bit(in);
	uint32_t us = (uint32_t)in_bytes(in, 2);
	(void)p3_cci_number(ends[k].ep,
		alive ? CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT : CCI_OPT_ENDPT_SEND_TIMEOUT,
		true, &us);
	rig.now += in_bytes(in, 3);
}

/* ---- */

void cci_start(void)
{
	for (uint32_t k = 0; k < ENDS; k++)
		open_end(k);
}

void cci_stop(void)
{
	for (uint32_t k = 0; k < ENDS; k++)
		close_end(k);
}

void cci_step(struct input *in)
{
	uint32_t k = in_below(in, ENDS);
	uint8_t what = in_u8(in), how = in_u8(in);
	switch (what % 16) {
	case 0:
		ask(k, in);
		break;
	case 1:
	case 2:
	case 3:
	case 4:
		take_event(k, how);
		break;
	case 5:
	case 6:
		return_event(k, how);
		break;
	case 7:
		region(k, how);
		break;
	case 8:
		move(k, in);
		break;
	case 9:
		disconnect(k, how);
		break;
	case 10:
		set_times(k, in);
		break;
	case 11:
		if (how < 32) {
			close_end(k);
			open_end(k);
		}
		break;
	default:
		send_one(k, in);
	}
}
