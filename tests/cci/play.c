/* SPDX-License-Identifier: BSD-3-Clause */
/* A process of a model run. */
#include "model.h"
#include "../support/patience.h"

#include <cci.h>

#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { HELD = 3000 };
enum { PROBE = STEPS }; /* the number of an RMA that is no step */

/* Events that a step owes to this process. */
enum {
	O_SEND = 1,
	O_RECV = 2,
	O_MAYBE = 4, /* a RECV that may come or not */
	O_CONNECT = 8,
	O_REQUEST = 16,
	O_ACCEPT = 32,
};

struct held {
	cci_event_t *event;
	const void *bytes; /* of a message */
	uint32_t length;
	unsigned step;
};

static struct play_room *room;
static const struct program *program;
static struct model model;
static unsigned self, round_now, from, to;

static cci_endpoint_t *endpoint[ENDPOINTS];
static unsigned char memory[ENDPOINTS][REGIONS][REGION];
static unsigned char source[REGION], results[(ROUND + 1) * REGION];
static cci_rma_handle_t *sources[ENDPOINTS], *results_handle[ENDPOINTS];
static cci_connection_t *connection[SLOTS][2];
static bool closed[SLOTS][2];
static unsigned last_sent[SLOTS][2], last_got[SLOTS][2]; /* steps + 1, on RO */
static bool has_failed[SLOTS][2];
static unsigned generation[SLOTS], step_generation[STEPS];
static unsigned char owed[STEPS];
static unsigned sure; /* events that must come */
static struct held held[ENDPOINTS][HELD];
static unsigned held_n[ENDPOINTS];
static uint64_t chance;

#define CHECK(truth, ...)                                                                \
	do {                                                                             \
		if (!(truth))                                                            \
			fail(__LINE__, __VA_ARGS__);                                     \
	} while (0)

__attribute__((format(printf, 2, 3))) _Noreturn static void fail(
	int line, const char *format, ...)
{
	char text[300];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	if (room->failed++ == 0)
		snprintf(room->why, sizeof room->why, "process %u, round %u, line %d: %s",
			self, round_now, line, text);
	_exit(1);
}

static unsigned below(unsigned n)
{
	chance = mix(chance);
	return (unsigned)(chance >> 32) % n;
}

static void look(struct patience *p, const char *what)
{
	if (room->failed)
		_exit(1);
	CHECK(!patience_is_over(p), "this does not come: %s", what);
}

static void meet(unsigned phase, unsigned count)
{
	struct patience p = patience_times(2);
	room->met[round_now][phase]++;
	for (unsigned spins = 0; room->met[round_now][phase] < count; spins++) {
		look(&p, "all processes");
		if (spins > 50)
			sched_yield();
	}
}

/* ---- messages ---- */

static const unsigned char *body(unsigned step)
{
	return model_source() + mix(step) % (REGION - MOST);
}

static uint32_t message_length(unsigned step)
{
	const struct step *s = &program->step[step];
	return s->kind == SEND ? s->length : 4 + step % 60;
}

static void write_message(unsigned char *at, unsigned step)
{
	uint32_t number = step;
	memcpy(at, &number, 4);
	memcpy(at + 4, body(step), message_length(step) - 4);
}

static bool is_message(const unsigned char *at, uint32_t length, unsigned step)
{
	uint32_t number;
	memcpy(&number, at, 4);
	return number == step && memcmp(at + 4, body(step), length - 4) == 0;
}

/* ---- lent events ---- */

static void give_back(unsigned e, unsigned at)
{
	struct held *h = &held[e][at];
	CHECK(!h->bytes || is_message(h->bytes, h->length, h->step),
		"the lent message of step %u has changed", h->step);
	CHECK(cci_return_event(h->event) == CCI_SUCCESS, "an event cannot be returned");
	*h = held[e][--held_n[e]];
}

static void give_back_part(unsigned e, unsigned percent)
{
	unsigned n = held_n[e] * percent / 100;
	while (n--)
		give_back(e, below(held_n[e]));
}

static void hold(unsigned e, cci_event_t *event, unsigned step)
{
	bool message = event->type == CCI_EVENT_RECV;
	held[e][held_n[e]++] = (struct held){event, message ? event->recv.ptr : NULL,
		message ? event->recv.len : 0, step};
	if (held_n[e] > HELD / 2)
		give_back_part(e, 80);
}

/* ---- events ---- */

static void settle(unsigned step, unsigned char what, const char *name)
{
	CHECK(step < program->steps && (owed[step] & what), "step %u owes no %s", step,
		name);
	owed[step] &= (unsigned char)~what;
	sure -= what != O_MAYBE;
}

/* Find the slot and side of a connection of this process. */
static bool find(cci_connection_t *c, unsigned *slot, unsigned *side)
{
	for (*slot = 0; *slot < SLOTS; ++*slot)
		for (*side = 0; *side < 2; ++*side)
			if (c && connection[*slot][*side] == c)
				return true;
	return false;
}

static void on_send(cci_event_t *event)
{
	unsigned step = (unsigned)(uintptr_t)event->send.context - 1;
	if (step == PROBE) {
		CHECK(event->send.status == CCI_SUCCESS, "a probe has status %d",
			(int)event->send.status);
		sure--;
		return;
	}
	settle(step, O_SEND, "SEND");
	const struct step *s = &program->step[step];
	enum fate fate = model.fate[step];
	cci_status_t status = event->send.status;
	bool unreliable = event->send.connection->attribute == CCI_CONN_ATTR_UU;
	bool good = status == CCI_SUCCESS;
	if (fate == SURE || unreliable)
		CHECK(good, "step %u has status %d", step, (int)status);
	else if (fate == HANDLE)
		CHECK(status == CCI_ERR_RMA_HANDLE, "step %u has status %d, not HANDLE",
			step, (int)status);
	else
		CHECK((good && fate == OPEN_FATE) || status == CCI_ERR_DISCONNECTED,
			"step %u has status %d", step, (int)status);
	room->outcome[step] = good ? 1 : 2;
	if (event->send.connection->attribute != CCI_CONN_ATTR_RO)
		return;
	CHECK(step >= last_sent[s->slot][s->server], "SEND of step %u is out of order",
		step);
	last_sent[s->slot][s->server] = step + 1;
	CHECK(!good || !has_failed[s->slot][s->server],
		"step %u succeeds after a failure on RO", step);
	has_failed[s->slot][s->server] |= status == CCI_ERR_DISCONNECTED;
}

static unsigned on_recv(unsigned e, cci_event_t *event)
{
	unsigned slot, side;
	uint32_t step;
	CHECK(find(event->recv.connection, &slot, &side),
		"RECV of an unknown connection");
	CHECK(event->recv.connection->endpoint == endpoint[e],
		"RECV at another endpoint");
	CHECK(event->recv.len >= 4, "a message of %u bytes", event->recv.len);
	memcpy(&step, event->recv.ptr, 4);
	CHECK(step < program->steps, "a message with number %u", step);
	const struct step *s = &program->step[step];
	settle(step, owed[step] & O_RECV ? O_RECV : O_MAYBE, "RECV");
	CHECK(s->slot == slot && s->server != side &&
			step_generation[step] == generation[slot],
		"step %u arrives on slot %u", step, slot);
	CHECK(event->recv.len == message_length(step), "step %u has %u bytes", step,
		event->recv.len);
	CHECK(is_message(event->recv.ptr, event->recv.len, step), "step %u is damaged",
		step);
	if (event->recv.connection->attribute == CCI_CONN_ATTR_RO) {
		CHECK(step >= last_got[slot][side], "RECV of step %u is out of order",
			step);
		last_got[slot][side] = step + 1;
	}
	return step;
}

static void new_connection(unsigned step, unsigned side, cci_connection_t *c)
{
	const struct step *s = &program->step[step];
	CHECK(c && c->context == (void *)(uintptr_t)(step + 1), "step %u: wrong context",
		step);
	CHECK((unsigned)c->attribute == s->attribute, "step %u: wrong attribute", step);
	connection[s->slot][side] = c;
}

static void on_connect(cci_event_t *event)
{
	unsigned step = (unsigned)(uintptr_t)event->connect.context - 1;
	settle(step, O_CONNECT, "CONNECT");
	cci_status_t want = program->step[step].accepted ? CCI_SUCCESS : CCI_ECONNREFUSED;
	CHECK(event->connect.status == want, "connect, step %u: status %d, not %d", step,
		(int)event->connect.status, (int)want);
	if (want == CCI_SUCCESS)
		new_connection(step, 0, event->connect.connection);
	else
		CHECK(!event->connect.connection, "a refused connection is there");
}

static void on_request(cci_event_t *event)
{
	uint32_t step;
	CHECK(event->request.data_len >= 4, "a payload of %u", event->request.data_len);
	memcpy(&step, event->request.data_ptr, 4);
	settle(step, O_REQUEST, "CONNECT_REQUEST");
	const struct step *s = &program->step[step];
	CHECK((unsigned)event->request.attribute == s->attribute, "step %u: attribute",
		step);
	CHECK(memcmp((const char *)event->request.data_ptr + 4, body(step),
		      event->request.data_len - 4) == 0,
		"the payload of step %u is damaged", step);
	int rc = s->accepted ? cci_accept(event, (void *)(uintptr_t)(step + 1))
			     : cci_reject(event);
	CHECK(rc == CCI_SUCCESS, "the decision of step %u gives %d", step, rc);
}

static void on_accept(cci_event_t *event)
{
	unsigned step = (unsigned)(uintptr_t)event->accept.context - 1;
	settle(step, O_ACCEPT, "ACCEPT");
	CHECK(event->accept.status == CCI_SUCCESS, "accept, step %u: status %d", step,
		(int)event->accept.status);
	new_connection(step, 1, event->accept.connection);
}

static void on_event(unsigned e, cci_event_t *event)
{
	unsigned step = 0;
	room->events++;
	switch (event->type) {
	case CCI_EVENT_SEND:
		on_send(event);
		break;
	case CCI_EVENT_RECV:
		step = on_recv(e, event);
		break;
	case CCI_EVENT_CONNECT:
		on_connect(event);
		break;
	case CCI_EVENT_CONNECT_REQUEST:
		on_request(event);
		break;
	case CCI_EVENT_ACCEPT:
		on_accept(event);
		break;
	default:
		fail(__LINE__, "event %s comes", cci_event_type_str(event->type));
	}
	hold(e, event, step);
	if (event->type != CCI_EVENT_RECV && below(4))
		give_back(e, held_n[e] - 1);
}

/* Take one event of an endpoint, if there is one. */
static bool take(unsigned e)
{
	cci_event_t *event;
	int rc = cci_get_event(endpoint[e], &event);
	if (rc == CCI_SUCCESS) {
		on_event(e, event);
		return true;
	}
	CHECK(rc == CCI_EAGAIN || rc == CCI_ENOBUFS, "cci_get_event gives %d", rc);
	if (rc == CCI_ENOBUFS)
		give_back_part(e, 1 + below(100));
	if (rc == CCI_ENOBUFS && held_n[e])
		give_back(e, 0);
	return false;
}

static bool take_all(void)
{
	bool any = false;
	for (unsigned e = 0; e < ENDPOINTS; e++)
		while (take(e))
			any = true;
	return any;
}

/* ---- steps ---- */

/* Return true if a call has to be repeated; take events meanwhile. */
static bool again(int rc, struct patience *p)
{
	if (rc != CCI_ENOBUFS)
		return false;
	look(p, "a buffer");
	(void)take_all();
	for (unsigned e = 0; e < ENDPOINTS; e++)
		give_back_part(e, 50);
	return true;
}

/* Handle the code of a send or RMA: an event is owed, or the outcome is known. */
static void began(unsigned step, int rc, bool unreliable)
{
	const struct step *s = &program->step[step];
	enum fate fate = model.fate[step];
	bool blocks = s->flags & CCI_FLAG_BLOCKING, silent = s->flags & CCI_FLAG_SILENT;
	bool may_fail = (fate == OPEN_FATE || fate == CLOSED) && !unreliable &&
			(blocks || silent || s->kind == RMA);
	bool good = rc == CCI_SUCCESS ||
		    (blocks && fate == HANDLE && rc == CCI_ERR_RMA_HANDLE);
	CHECK(good || (may_fail && rc == CCI_ERR_DISCONNECTED), "step %u gives %d", step,
		rc);
	CHECK(!(blocks && fate == CLOSED && good && !unreliable),
		"step %u succeeds on a closed connection", step);
	CHECK(!(blocks && fate == HANDLE && rc == CCI_SUCCESS), "step %u succeeds", step);
	bool event = !blocks && !silent && rc == CCI_SUCCESS;
	if (!event && (owed[step] & O_SEND))
		settle(step, O_SEND, "SEND");
	if (blocks)
		room->outcome[step] = rc == CCI_SUCCESS ? 1 : 2;
}

static int send_pieces(cci_connection_t *c, unsigned char *bytes, const struct step *s,
	const void *context)
{
	struct iovec piece[8];
	uint32_t at = 0, n = s->pieces;
	for (unsigned i = 0; i < n; i++) {
		uint32_t part = i + 1 == n ? s->length - at : (s->length - at) / 2;
		piece[i] = (struct iovec){bytes + at, part};
		at += part;
	}
	return cci_sendv(c, piece, n, context, s->flags);
}

static void do_send(unsigned step)
{
	const struct step *s = &program->step[step];
	cci_connection_t *c = connection[s->slot][s->server];
	bool unreliable = c->attribute == CCI_CONN_ATTR_UU;
	void *context = (void *)(uintptr_t)(step + 1);
	unsigned char *bytes = malloc(s->length);
	struct patience p = patience_begin();
	int rc;
	write_message(bytes, step);
	do
		rc = s->pieces ? send_pieces(c, bytes, s, context)
			       : cci_send(c, bytes, s->length, context, s->flags);
	while (again(rc, &p));
	began(step, rc, unreliable);
	if (s->flags & CCI_FLAG_NO_COPY)
		return; /* kept for ever: its end may be unknown */
	memset(bytes, 0xdb, s->length);
	free(bytes);
}

/* A read whose outcome is open may still write when a later round has begun, so these
 * reads share a place that no test compares. */
static uint64_t place_of_result(unsigned step)
{
	return (model.fate[step] == SURE ? step - from : ROUND) * (uint64_t)REGION;
}

static void do_rma(unsigned step)
{
	const struct step *s = &program->step[step];
	struct slot *slot = &model.slot[s->slot];
	cci_connection_t *c = connection[s->slot][s->server];
	unsigned e = slot->end[s->server] % ENDPOINTS, end = slot->end[!s->server];
	struct cci_rma_handle remote;
	unsigned char message[64];
	struct patience p = patience_begin();
	int rc, flags = s->flags | (s->read ? CCI_FLAG_READ : CCI_FLAG_WRITE);
	uint64_t local = s->read ? place_of_result(step) : s->local;
	memcpy(&remote, room->handle[end][s->region], sizeof remote);
	write_message(message, step);
	do
		rc = cci_rma(c, s->with_message ? message : NULL,
			s->with_message ? message_length(step) : 0,
			s->read ? results_handle[e] : sources[e], local, &remote,
			s->remote, s->length, (void *)(uintptr_t)(step + 1), flags);
	while (again(rc, &p));
	began(step, rc, false);
}

static void do_connect(unsigned step)
{
	const struct step *s = &program->step[step];
	unsigned char payload[1024];
	uint32_t number = step, length = 4 + (uint32_t)(mix(step) % 1021);
	struct patience p = patience_begin();
	int rc;
	memcpy(payload, &number, 4);
	memcpy(payload + 4, body(step), length - 4);
	do
		rc = cci_connect(endpoint[s->a % ENDPOINTS], room->uri[s->b], payload,
			length, (cci_conn_attribute_t)s->attribute,
			(void *)(uintptr_t)(step + 1), 0, NULL);
	while (again(rc, &p));
	CHECK(rc == CCI_SUCCESS, "connect, step %u gives %d", step, rc);
}

static void do_disconnect(unsigned step)
{
	const struct step *s = &program->step[step];
	CHECK(cci_disconnect(connection[s->slot][s->server]) == CCI_SUCCESS,
		"disconnect, step %u", step);
	closed[s->slot][s->server] = true;
	connection[s->slot][s->server] = NULL; /* the library may use its memory again */
}

static unsigned actor(const struct step *s)
{
	bool plain = s->kind == CONNECT || s->kind == GIVE_BACK || s->kind == DIE;
	return plain ? s->a : model.slot[s->slot].end[s->server];
}

static void do_step(unsigned step)
{
	const struct step *s = &program->step[step];
	if (model.fate[step] == LEFT_OUT || process_of(actor(s)) != self)
		return;
	room->steps++;
	switch (s->kind) {
	case CONNECT:
		do_connect(step);
		break;
	case SEND:
		do_send(step);
		break;
	case RMA:
		do_rma(step);
		break;
	case DISCONNECT:
		do_disconnect(step);
		break;
	case GIVE_BACK:
		give_back_part(s->a % ENDPOINTS, s->length);
		break;
	default:
		room->round_of_death[self] = round_now + 1;
		/* By a signal or in order, with everything left as it is. */
		if (s->b % 2)
			(void)raise(SIGKILL);
		_exit(DIED);
	}
	if (below(3) == 0)
		(void)take(below(ENDPOINTS));
}

/* ---- rounds ---- */

static void owe(unsigned step, unsigned char what)
{
	owed[step] |= what;
	sure += what != O_MAYBE;
}

/* Note a message that comes to this process. */
static void expect_message(unsigned step, const struct step *s, enum fate fate)
{
	struct slot *c = &model.slot[s->slot];
	unsigned end = c->end[!s->server];
	bool lossy = c->attribute == CCI_CONN_ATTR_UU && has_few_buffers(end);
	if (process_of(end) != self || (fate != SURE && fate != OPEN_FATE))
		return;
	owe(step, fate == SURE && !lossy ? O_RECV : O_MAYBE);
}

static void expect_of(unsigned step)
{
	const struct step *s = &program->step[step];
	enum fate fate = model.fate[step];
	step_generation[step] = generation[s->slot];
	if (fate == LEFT_OUT)
		return;
	if (s->kind == CONNECT && process_of(s->a) == self)
		owe(step, O_CONNECT);
	if (s->kind == CONNECT && process_of(s->b) == self) {
		owe(step, O_REQUEST);
		if (s->accepted)
			owe(step, O_ACCEPT);
	}
	if (s->kind == SEND || (s->kind == RMA && s->with_message))
		expect_message(step, s, fate);
	bool event = !(s->flags & (CCI_FLAG_SILENT | CCI_FLAG_BLOCKING));
	if ((s->kind == SEND || s->kind == RMA) && event && process_of(actor(s)) == self)
		owe(step, O_SEND);
}

/* Begin a read behind all RMAs of a connection: its SEND tells that they are over. */
static void probe(unsigned slot, bool server)
{
	unsigned e = model.slot[slot].end[server] % ENDPOINTS;
	unsigned end = model.slot[slot].end[!server];
	struct cci_rma_handle remote;
	struct patience p = patience_begin();
	int rc;
	memcpy(&remote, room->handle[end][OPEN], sizeof remote);
	sure++;
	do
		rc = cci_rma(connection[slot][server], NULL, 0, results_handle[e],
			(uint64_t)ROUND * REGION, &remote, 0, 1,
			(void *)(uintptr_t)(PROBE + 1), CCI_FLAG_READ | CCI_FLAG_FENCE);
	while (again(rc, &p));
	CHECK(rc == CCI_SUCCESS, "a probe on slot %u gives %d", slot, rc);
}

/* Nothing tells the end of a silent RMA. */
static void probe_silent(void)
{
	bool has_silent[SLOTS][2] = {{false}};
	for (unsigned i = from; i < to; i++) {
		const struct step *s = &program->step[i];
		if (s->kind == RMA && (s->flags & CCI_FLAG_SILENT) &&
			model.fate[i] == SURE && process_of(actor(s)) == self)
			has_silent[s->slot][s->server] = true;
	}
	for (unsigned slot = 0; slot < SLOTS; slot++)
		for (int side = 0; side < 2; side++)
			if (has_silent[slot][side])
				probe(slot, side);
}

static void await_sure(void)
{
	struct patience p = patience_begin();
	while (sure)
		if (!take_all()) {
			for (unsigned i = from; i < to && patience_is_over(&p); i++)
				CHECK(!(owed[i] & ~O_MAYBE), "step %u owes events %#x", i,
					owed[i]);
			look(&p, "all events");
		}
}

/* A message that its sender knows to have arrived must be here. */
static void await_reported(void)
{
	for (unsigned i = from; i < to; i++) {
		const struct step *s = &program->step[i];
		struct slot *c = &model.slot[s->slot];
		struct patience p = patience_begin();
		if (c->attribute == CCI_CONN_ATTR_UU || room->outcome[i] != 1)
			continue;
		while ((owed[i] & O_MAYBE) && !closed[s->slot][!s->server]) {
			(void)take_all();
			CHECK(!patience_is_over(&p),
				"step %u succeeds and does not arrive", i);
		}
	}
	(void)take_all();
}

/* Compare memory that RMA was to change, and the results of reads. */
static void compare_memory(void)
{
	for (unsigned e = 0; e < ENDPOINTS; e++)
		for (unsigned r = 0; r < STALE; r++) {
			struct memory *want = &model.memory[self * ENDPOINTS + e][r];
			for (unsigned i = 0; i < REGION; i++)
				CHECK(memory[e][r][i] == want->bytes[i] ||
						!want->known[i],
					"byte %u of region %u at endpoint %u is wrong", i,
					r, self * ENDPOINTS + e);
		}
}

/* No write of the round follows a read at the same place, so the read has seen all. */
static void compare_read(unsigned step, const struct memory *at)
{
	const struct step *s = &program->step[step];
	const unsigned char *got = results + (step - from) * REGION;
	for (unsigned i = 0; i < s->length; i++)
		CHECK(got[i] == at->bytes[s->remote + i] || !at->known[s->remote + i],
			"step %u reads a wrong byte %u", step, i);
}

static void compare_reads(void)
{
	for (unsigned i = from; i < to; i++) {
		const struct step *s = &program->step[i];
		if (s->kind != RMA || !s->read || model.fate[i] != SURE ||
			process_of(actor(s)) != self)
			continue;
		compare_read(
			i, &model.memory[model.slot[s->slot].end[!s->server]][s->region]);
	}
}

static unsigned living(void)
{
	unsigned n = 0;
	for (unsigned i = 0; i < PROCESSES; i++)
		n += !model.dies[i];
	return n;
}

/* Forget the connections that the round has ended, as the model does. */
static void forget_slots(void)
{
	struct slot before[SLOTS];
	memcpy(before, model.slot, sizeof before);
	model_end_round(&model);
	for (unsigned i = 0; i < SLOTS; i++) {
		if (!before[i].used || model.slot[i].used)
			continue;
		for (unsigned side = 0; side < 2; side++) {
			connection[i][side] = NULL;
			closed[i][side] = has_failed[i][side] = false;
			last_sent[i][side] = last_got[i][side] = 0;
		}
		generation[i]++;
	}
}

static void play_round(void)
{
	meet(0, PROCESSES);
	model_round(&model, program, from, to);
	for (unsigned i = from; i < to; i++)
		expect_of(i);
	for (unsigned i = from; i < to; i++)
		do_step(i);
	probe_silent();
	await_sure();
	meet(1, living());
	await_reported();
	compare_memory();
	compare_reads();
	meet(2, living());
	forget_slots();
}

static void skip_round(void)
{
	model_round(&model, program, from, to);
	forget_slots();
}

/* ---- a life ---- */

static cci_rma_handle_t *registered(unsigned e, void *at, uint64_t n, int flags)
{
	cci_rma_handle_t *h;
	CHECK(cci_rma_register(endpoint[e], at, n, flags, &h) == CCI_SUCCESS, "register");
	return h;
}

static void open_endpoint(unsigned e)
{
	static const int rights[REGIONS] = {CCI_FLAG_READ | CCI_FLAG_WRITE, CCI_FLAG_READ,
		CCI_FLAG_WRITE, CCI_FLAG_READ | CCI_FLAG_WRITE};
	unsigned all = self * ENDPOINTS + e;
	uint32_t few = FEW;
	char *uri;
	CHECK(cci_create_endpoint(NULL, 0, &endpoint[e], NULL) == CCI_SUCCESS, "create");
	if (has_few_buffers(all))
		CHECK(cci_set_opt((cci_opt_handle_t *)endpoint[e],
			      CCI_OPT_ENDPT_RECV_BUF_COUNT, &few) == CCI_SUCCESS,
			"few buffers");
	CHECK(cci_get_opt((cci_opt_handle_t *)endpoint[e], CCI_OPT_ENDPT_URI, &uri) ==
			CCI_SUCCESS,
		"URI");
	snprintf(room->uri[all], sizeof room->uri[all], "%s", uri);
	free(uri);
	for (unsigned r = 0; r < REGIONS; r++) {
		cci_rma_handle_t *h = registered(e, memory[e][r], REGION, rights[r]);
		memcpy(room->handle[all][r], h, sizeof *h);
		if (r == STALE)
			CHECK(cci_rma_deregister(endpoint[e], h) == CCI_SUCCESS, "stale");
	}
	sources[e] = registered(e, source, REGION, 0);
	results_handle[e] = registered(e, results, sizeof results, 0);
}

void play(struct play_room *r, const struct program *p, unsigned me, unsigned from_round)
{
	uint32_t caps;
	room = r;
	program = p;
	self = me;
	chance = p->seed ^ (uint64_t)me << 40 ^ (uint64_t)from_round << 50;
	memcpy(source, model_source(), REGION);
	model_begin(&model);
	CHECK(cci_init(CCI_ABI_VERSION, 0, &caps) == CCI_SUCCESS, "init");
	for (unsigned e = 0; e < ENDPOINTS; e++)
		open_endpoint(e);
	for (round_now = 0; round_now * ROUND < p->steps; round_now++) {
		from = round_now * ROUND;
		to = from + ROUND < p->steps ? from + ROUND : p->steps;
		if (round_now < from_round)
			skip_round();
		else
			play_round();
	}
	CHECK(cci_finalize() == CCI_SUCCESS, "finalize");
	_exit(0);
}
