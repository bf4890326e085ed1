/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * am.c - active messages
 *
 * A request is a put into the next free bytes of the target's request buffers (ReqRB);
 * its reply is a put into the chunk from which the request came (ReqSB), which stays
 * taken until then.  A Long payload that does not fit the message is a second put,
 * straight to its place; a Lid joins the two (lid.c).  Credits bound the requests under
 * way (credits.c), so a request always finds room.
 *
 * The body of a message: the 8 bytes of a packed Long's destination; arguments that are
 * not in the header data; padding to 16; the payload; padding to 16.  A message without a
 * body needs neither bytes of a buffer nor a chunk of the replier.
 *
 * Buffers.  Each buffer is a match entry whose descriptor unlinks itself when less than a
 * chunk is left; the next one is in the list then.  A buffer goes back into the list when
 * the handlers of all its messages have ended: balance (internal.h).  Its messages are
 * counted by their bytes, so the order in which threads read events does not matter.
 *
 * Requests have no local events: their chunk is free when the reply has come, which shows
 * that the target has read it.  Replies free their chunk at SEND_END.
 */
#include <stdarg.h>

#include "internal.h"

enum { ALIGN = 16, BUFFER_BYTES = GASNETI_BUFFER_CHUNKS * GASNETI_CHUNK };

static GASNETI_HOT uint32_t aligned(uint32_t n)
{
	return (n + ALIGN - 1) & ~(uint32_t)(ALIGN - 1);
}

static GASNETI_HOT char *chunk_memory(const struct gasneti_chunks *chunks, uint32_t chunk)
{
	return chunks->memory + (size_t)chunk * GASNETI_CHUNK;
}

/* ---- handlers ---- */

typedef gasnet_handlerarg_t arg_t;

#define A1  arg_t
#define A2  A1, arg_t
#define A3  A2, arg_t
#define A4  A3, arg_t
#define A5  A4, arg_t
#define A6  A5, arg_t
#define A7  A6, arg_t
#define A8  A7, arg_t
#define A9  A8, arg_t
#define A10 A9, arg_t
#define A11 A10, arg_t
#define A12 A11, arg_t
#define A13 A12, arg_t
#define A14 A13, arg_t
#define A15 A14, arg_t
#define A16 A15, arg_t
#define V1  a[0]
#define V2  V1, a[1]
#define V3  V2, a[2]
#define V4  V3, a[3]
#define V5  V4, a[4]
#define V6  V5, a[5]
#define V7  V6, a[6]
#define V8  V7, a[7]
#define V9  V8, a[8]
#define V10 V9, a[9]
#define V11 V10, a[10]
#define V12 V11, a[11]
#define V13 V12, a[12]
#define V14 V13, a[13]
#define V15 V14, a[14]
#define V16 V15, a[15]
#define SHORT_CASE(n)                                                                    \
	case n:                                                                          \
		((void (*)(gasnet_token_t, A##n))(f))(t, V##n);                          \
		return;
#define MEDIUM_CASE(n)                                                                   \
	case n:                                                                          \
		((void (*)(gasnet_token_t, void *, size_t, A##n))(f))(                   \
			t, buf, nbytes, V##n);                                           \
		return;
#define EACH_COUNT(CASE)                                                                 \
	CASE(1)                                                                          \
	CASE(2)                                                                          \
	CASE(3)                                                                          \
	CASE(4)                                                                          \
	CASE(5)                                                                          \
	CASE(6)                                                                          \
	CASE(7)                                                                          \
	CASE(8)                                                                          \
	CASE(9)                                                                          \
	CASE(10)                                                                         \
	CASE(11)                                                                         \
	CASE(12)                                                                         \
	CASE(13)                                                                         \
	CASE(14)                                                                         \
	CASE(15)                                                                         \
	CASE(16)

static void call_short(
	void (*f)(void), gasnet_token_t t, uint32_t numargs, const arg_t *a)
{
	switch (numargs) {
		EACH_COUNT(SHORT_CASE)
	default:
		((void (*)(gasnet_token_t))(f))(t);
	}
}

static void call_medium(void (*f)(void), gasnet_token_t t, void *buf, size_t nbytes,
	uint32_t numargs, const arg_t *a)
{
	switch (numargs) {
		EACH_COUNT(MEDIUM_CASE)
	default:
		((void (*)(gasnet_token_t, void *, size_t))(f))(t, buf, nbytes);
	}
}

/* Run the handler of a message.  buf and nbytes have no meaning for a Short. */
static void run_handler(struct gasneti_token *token, uint32_t category, uint32_t handler,
	void *buf, size_t nbytes, uint32_t numargs, const arg_t *args)
{
	struct gasneti_thread *self = gasneti_self();
	void (*f)(void) = gasneti.handlers[handler];
	uint8_t outer = self->in_handler;
	if (gasneti_unlikely(!f))
		gasneti_fatal(
			"node %u sent a message for handler %u, which is not registered",
			token->node, handler);
	self->in_handler = token->request ? 1 : 2;
	if (category == GASNETI_SHORT)
		call_short(f, token, numargs, args);
	else
		call_medium(f, token, buf, nbytes, numargs, args);
	self->in_handler = outer;
#ifdef GASNET_DEBUG
	if (self->held)
		gasneti_fatal(
			"handler %u returned with a handler-safe lock held", handler);
#endif
}

/* ---- sending ---- */

/* Where the parts of a message go. */
struct layout {
	uint32_t inline_args, head, start, body;
	bool packed;
};

static GASNETI_HOT struct layout lay_out(const struct gasneti_message *m)
{
	struct layout l = {.inline_args = m->category == GASNETI_SHORT ? 2 : 1};
	uint32_t rest = m->numargs > l.inline_args ? (m->numargs - l.inline_args) * 4 : 0;
	if (m->category == GASNETI_LONG)
		l.packed = m->nbytes == 0 ||
			   (gasneti.set.packed &&
				   m->nbytes <= GASNETI_CHUNK - aligned(rest + 8));
	l.head = rest + (l.packed ? 8 : 0);
	l.start = aligned(l.head);
	l.body = l.start;
	if (m->category == GASNETI_MEDIUM || l.packed)
		l.body = aligned(l.start + (uint32_t)m->nbytes);
	return l;
}

static GASNETI_HOT void write_body(
	char *body, const struct gasneti_message *m, const struct layout *l)
{
	char *args = body;
	if (l->packed) {
		memcpy(body, &m->to, 8);
		args += 8;
	}
	if (m->numargs > l->inline_args)
		memcpy(args, m->args + l->inline_args, (m->numargs - l->inline_args) * 4);
	if (l->body > l->start)
		memcpy(body + l->start, m->src, m->nbytes);
}

static GASNETI_HOT uint64_t header_bits(const struct gasneti_message *m,
	const struct layout *l, uint64_t md, uint32_t credits, uint64_t chunk)
{
	return md | GASNETI_KIND_HEADER << 4 |
	       (uint64_t)m->category << GASNETI_CATEGORY_SHIFT |
	       (uint64_t)l->packed << GASNETI_PACKED_SHIFT |
	       (uint64_t)m->numargs << GASNETI_ARGS_SHIFT |
	       (uint64_t)m->handler << GASNETI_HANDLER_SHIFT |
	       (uint64_t)credits << GASNETI_CREDIT_SHIFT | chunk << GASNETI_CHUNK_SHIFT;
}

static GASNETI_HOT uint64_t header_data(
	const struct gasneti_message *m, const struct layout *l, uint32_t lid)
{
	uint64_t low = m->category == GASNETI_SHORT                 ? (uint32_t)m->args[1]
		       : m->category == GASNETI_MEDIUM || l->packed ? (uint32_t)m->nbytes
								    : lid;
	return (uint64_t)(uint32_t)m->args[0] << 32 | low;
}

/* Send the header, with its body; without events if quiet. */
static GASNETI_HOT void send_header(const struct gasneti_message *m, ptl_handle_md_t md,
	uint64_t at, uint32_t body, uint64_t bits, uint64_t remote, uint64_t hdr)
{
	int rc;
	gasneti_wait_for(GASNETI_SAFE,
		(rc = PtlPutRegion(md, at, body, PTL_NOACK_REQ, gasneti.peers[m->node].id,
			 GASNETI_AM_PTE, 0, bits, remote, hdr)) != PTL_NO_SPACE);
	gasneti_must(rc, "PtlPutRegion");
}

/* Send a Long payload from the calling thread; op counts its local completion. */
static void send_payload(
	const struct gasneti_message *m, struct gasneti_op *op, uint64_t md, uint32_t lid)
{
	struct gasneti_local local;
	gasneti_ticket_take();
	gasneti_local_take(&local, m->src, m->nbytes, GASNETI_PUT, true);
	op->local_begun++;
	uint64_t bits = op->bits | md | GASNETI_KIND_PAYLOAD << 4 |
			local.resource << GASNETI_RESOURCE_SHIFT;
	uint64_t offset = (uintptr_t)m->to - gasneti.peers[m->node].base;
	int rc;
	gasneti_wait_for(GASNETI_SAFE,
		(rc = PtlPutRegion(local.md, local.offset, m->nbytes, PTL_NOACK_REQ,
			 gasneti.peers[m->node].id, GASNETI_RAR_PTE, 0, bits, offset,
			 lid)) != PTL_NO_SPACE);
	gasneti_must(rc, "PtlPutRegion");
}

static GASNETI_HOT void await_local(struct gasneti_op *op)
{
	gasneti_wait_for(
		GASNETI_SAFE, gasneti_acquire(&op->local_done) == op->local_begun);
}

/*
 * Take the credits and the chunk of a request, or neither.  A thread that waits at FULL
 * holds none of both: its polls advance collectives, whose requests need the same.
 */
static GASNETI_HOT bool request_try(
	struct gasneti_peer *peer, uint32_t credits, uint32_t *want, int *chunk)
{
	if (!gasneti_credits_take(peer, credits, want))
		return false;
	*chunk = gasneti_chunk_take(&gasneti.requests);
	if (gasneti_likely(*chunk >= 0))
		return true;
	gasneti_credits_back(peer, credits - 1);
	return false;
}

/* Take the credits and the chunk of a request; store the number of credits to ask for. */
static GASNETI_HOT uint32_t request_begin(
	struct gasneti_peer *peer, uint32_t credits, uint32_t *want)
{
	int chunk = 0;
	*want = 0;
	while (!request_try(peer, credits, NULL, &chunk))
		if (!gasneti_poll_safe()) {
			gasneti_count(&gasneti.stats.chunk_stalls, chunk < 0);
			gasneti_wait_for(
				GASNETI_FULL, request_try(peer, credits, want, &chunk));
			break;
		}
	return (uint32_t)chunk;
}

static void send_request(const struct gasneti_message *m)
{
	struct layout l = lay_out(m);
	struct gasneti_peer *peer = &gasneti.peers[m->node];
	struct gasneti_thread *self = gasneti_self();
	struct gasneti_op *op = m->async ? self->async : self->blocking;
	uint32_t credits = (l.body + GASNETI_CREDIT_BYTES - 1) / GASNETI_CREDIT_BYTES;
	uint32_t want, lid = 0;
	bool split = m->category == GASNETI_LONG && !l.packed;
	credits = (credits ? credits : 1) + split;
	uint32_t chunk = request_begin(peer, credits, &want);
	if (split) {
		lid = gasneti_add(&peer->request_lid, 1);
		send_payload(m, op, GASNETI_MD_RARAM, lid);
	}
	if (l.body)
		write_body(chunk_memory(&gasneti.requests, chunk), m, &l);
	uint64_t at = (uint64_t)chunk * GASNETI_CHUNK;
	uint32_t byte = gasneti_credits_byte(peer, credits, want);
	send_header(m, gasneti.request_md, at, l.body,
		header_bits(m, &l, GASNETI_MD_REQUEST, byte, at), 0,
		header_data(m, &l, lid));
	if (split && !m->async)
		await_local(op);
}

static GASNETI_HOT uint32_t reply_chunk(void)
{
	int chunk = gasneti_chunk_take(&gasneti.replies);
	if (gasneti_unlikely(chunk < 0)) {
		gasneti_count(&gasneti.stats.chunk_stalls, 1);
		gasneti_wait_for(GASNETI_SAFE,
			(chunk = gasneti_chunk_take(&gasneti.replies)) >= 0);
	}
	return (uint32_t)chunk;
}

static void send_reply(const struct gasneti_token *token, const struct gasneti_message *m)
{
	struct layout l = lay_out(m);
	struct gasneti_op *op = gasneti_self()->blocking;
	bool split = m->category == GASNETI_LONG && !l.packed;
	ptl_handle_md_t md = gasneti.none;
	uint32_t lid = 0;
	uint64_t at = 0;
	if (split) {
		lid = gasneti_add(&gasneti.peers[m->node].reply_lid, 1);
		send_payload(m, op, GASNETI_MD_RARSRC, lid);
	}
	if (l.body) {
		uint32_t chunk = reply_chunk();
		md = gasneti.reply_md;
		at = (uint64_t)chunk * GASNETI_CHUNK;
		write_body(chunk_memory(&gasneti.replies, chunk), m, &l);
	}
	send_header(m, md, at, l.body,
		header_bits(m, &l, GASNETI_MD_REPLY, token->credits, token->chunk),
		token->chunk, header_data(m, &l, lid));
	if (split)
		await_local(op);
}

/* ---- messages to the own node ---- */

/* Run the handler of a message that stays here. */
static void loopback(const struct gasneti_message *m, struct gasneti_token *token)
{
	char buf[GASNETI_MAX_MEDIUM] __attribute__((aligned(ALIGN)));
	void *payload = m->category == GASNETI_LONG ? m->to : buf;
	if (m->category != GASNETI_SHORT && m->nbytes)
		memmove(payload, m->src, m->nbytes);
	run_handler(
		token, m->category, m->handler, payload, m->nbytes, m->numargs, m->args);
	gasneti_wake();
}

/* ---- the calls ---- */

static bool in_peer_segment(const struct gasneti_message *m)
{
	const struct gasneti_peer *peer = &gasneti.peers[m->node];
	uintptr_t offset = (uintptr_t)m->to - peer->base;
	return m->nbytes == 0 ||
	       (offset < peer->size && peer->size - offset >= m->nbytes);
}

static int check_message(const struct gasneti_message *m)
{
	const char *bad = m->node >= gasneti.nodes ? "there is no such node"
			  : m->handler < m->least_handler
				  ? "handlers of programs have indexes from 128 to 255"
			  : m->numargs > GASNETI_ARGS    ? "too many arguments"
			  : m->category == GASNETI_SHORT ? NULL
			  : m->category == GASNETI_MEDIUM
				  ? m->nbytes > GASNETI_MAX_MEDIUM
					    ? "the Medium payload is too long"
					    : NULL
			  : m->nbytes > gasneti.max_long ? "the Long payload is too long"
			  : !in_peer_segment(m)
				  ? "the Long target is outside of the segment"
				  : NULL;
	if (gasneti_likely(!bad))
		return GASNET_OK;
#ifdef GASNET_DEBUG
	gasneti_fatal("message to node %u, handler %u, %zu bytes: %s", m->node,
		m->handler, m->nbytes, bad);
#endif
	return GASNET_ERR_BAD_ARG;
}

static GASNETI_HOT int do_request(struct gasneti_message *m)
{
	if (gasneti_unlikely(gasneti.state != GASNETI_ATTACHED))
		return GASNET_ERR_NOT_INIT;
	gasneti_check_main("gasnet_AMRequest");
	int rc = check_message(m);
	if (gasneti_unlikely(rc != GASNET_OK))
		return rc;
	if (m->node == gasneti.me) {
		struct gasneti_token token = {
			.node = m->node, .request = true, .loopback = true};
		loopback(m, &token);
	} else {
		send_request(m);
	}
	return GASNET_OK;
}

static void check_reply(const struct gasneti_token *token)
{
#ifdef GASNET_DEBUG
	if (!token->request)
		gasneti_fatal("a reply handler calls gasnet_AMReply");
	if (token->replied)
		gasneti_fatal("a request handler calls gasnet_AMReply twice");
	if (gasneti_self()->held)
		gasneti_fatal("gasnet_AMReply with a handler-safe lock held");
#endif
	(void)token;
}

static GASNETI_HOT int do_reply(gasnet_token_t t, struct gasneti_message *m)
{
	struct gasneti_token *token = t;
	if (gasneti_unlikely(!token || !token->request || token->replied)) {
		if (token)
			check_reply(token);
		return GASNET_ERR_BAD_ARG;
	}
	check_reply(token);
	m->node = token->node;
	int rc = check_message(m);
	if (gasneti_unlikely(rc != GASNET_OK))
		return rc;
	token->replied = true;
	if (token->loopback) {
		struct gasneti_token reply = {.node = m->node, .loopback = true};
		loopback(m, &reply);
	} else {
		send_reply(token, m);
	}
	return GASNET_OK;
}

/* Send a request, or the answer to one, to a handler of the library. */
int gasneti_am_send(struct gasneti_message *m)
{
	return do_request(m);
}

int gasneti_am_answer(gasnet_token_t token, struct gasneti_message *m)
{
	return do_reply(token, m);
}

/* Read the arguments of a call into m. */
#define READ_ARGS(m, n)                                                                  \
	do {                                                                             \
		va_list ap;                                                              \
		va_start(ap, n);                                                         \
		for (int i = 0; i < (n) && i < GASNETI_ARGS; i++)                        \
			(m).args[i] = va_arg(ap, gasnet_handlerarg_t);                   \
		va_end(ap);                                                              \
	} while (0)

/* Begin a message without clearing its arguments; the first two are read in any case. */
#define MESSAGE(m, dest, h, cat, n)                                                      \
	struct gasneti_message m;                                                        \
	m.node = dest, m.handler = h, m.category = cat, m.numargs = (uint32_t)(n);       \
	m.least_handler = GASNETI_FIRST_HANDLER;                                         \
	m.src = NULL, m.nbytes = 0, m.to = NULL, m.async = false;                        \
	m.args[0] = m.args[1] = 0

int gasnetc_AMRequestShort(gasnet_node_t dest, gasnet_handler_t handler, int numargs, ...)
{
	MESSAGE(m, dest, handler, GASNETI_SHORT, numargs);
	READ_ARGS(m, numargs);
	return do_request(&m);
}

int gasnetc_AMRequestMedium(gasnet_node_t dest, gasnet_handler_t handler,
	void *source_addr, size_t nbytes, int numargs, ...)
{
	MESSAGE(m, dest, handler, GASNETI_MEDIUM, numargs);
	READ_ARGS(m, numargs);
	m.src = source_addr;
	m.nbytes = nbytes;
	return do_request(&m);
}

int gasnetc_AMRequestLong(gasnet_node_t dest, gasnet_handler_t handler, void *source_addr,
	size_t nbytes, void *dest_addr, int numargs, ...)
{
	MESSAGE(m, dest, handler, GASNETI_LONG, numargs);
	READ_ARGS(m, numargs);
	m.src = source_addr;
	m.nbytes = nbytes;
	m.to = dest_addr;
	return do_request(&m);
}

int gasnetc_AMRequestLongAsync(gasnet_node_t dest, gasnet_handler_t handler,
	void *source_addr, size_t nbytes, void *dest_addr, int numargs, ...)
{
	MESSAGE(m, dest, handler, GASNETI_LONG, numargs);
	READ_ARGS(m, numargs);
	m.src = source_addr;
	m.nbytes = nbytes;
	m.to = dest_addr;
	m.async = true;
	return do_request(&m);
}

int gasnetc_AMReplyShort(gasnet_token_t token, gasnet_handler_t handler, int numargs, ...)
{
	MESSAGE(m, 0, handler, GASNETI_SHORT, numargs);
	READ_ARGS(m, numargs);
	return do_reply(token, &m);
}

int gasnetc_AMReplyMedium(gasnet_token_t token, gasnet_handler_t handler,
	void *source_addr, size_t nbytes, int numargs, ...)
{
	MESSAGE(m, 0, handler, GASNETI_MEDIUM, numargs);
	READ_ARGS(m, numargs);
	m.src = source_addr;
	m.nbytes = nbytes;
	return do_reply(token, &m);
}

int gasnetc_AMReplyLong(gasnet_token_t token, gasnet_handler_t handler, void *source_addr,
	size_t nbytes, void *dest_addr, int numargs, ...)
{
	MESSAGE(m, 0, handler, GASNETI_LONG, numargs);
	READ_ARGS(m, numargs);
	m.src = source_addr;
	m.nbytes = nbytes;
	m.to = dest_addr;
	return do_reply(token, &m);
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

/* ---- receiving ---- */

/* Arguments and payload of a header. */
struct received {
	uint32_t category, numargs, handler;
	bool packed;
	void *payload;
	size_t nbytes;
	arg_t args[GASNETI_ARGS];
};

/* Read a header; body is where its body lies.  End the job if it makes no sense. */
static GASNETI_HOT void read_header(
	struct received *r, uint64_t bits, uint64_t hdr, char *body, size_t length)
{
	r->category = (uint32_t)(bits >> GASNETI_CATEGORY_SHIFT) & 3;
	r->packed = bits >> GASNETI_PACKED_SHIFT & 1;
	r->numargs = (uint32_t)(bits >> GASNETI_ARGS_SHIFT) & 31;
	r->handler = (uint32_t)(bits >> GASNETI_HANDLER_SHIFT) & 255;
	r->args[0] = (arg_t)(hdr >> 32);
	r->args[1] = (arg_t)hdr;
	r->nbytes = r->category == GASNETI_SHORT ? 0 : (uint32_t)hdr;
	uint32_t inline_args = r->category == GASNETI_SHORT ? 2 : 1;
	uint32_t head = r->packed ? 8 : 0, rest = 0;
	if (r->numargs > inline_args)
		rest = (r->numargs - inline_args) * 4;
	bool whole = r->category == GASNETI_MEDIUM || r->packed;
	if (gasneti_unlikely(r->numargs > GASNETI_ARGS ||
			     aligned(head + rest) + (whole ? r->nbytes : 0) > length))
		gasneti_fatal("malformed message: header %#llx, %zu bytes",
			(unsigned long long)bits, length);
	if (rest)
		memcpy(r->args + inline_args, body + head, rest);
	r->payload = body + aligned(head + rest);
}

/* Put a packed Long's payload into its place. */
static void unpack(struct received *r, const char *body)
{
	void *to;
	memcpy(&to, body, 8);
	if (r->nbytes && !gasneti_in_segment(to, r->nbytes))
		gasneti_fatal("a Long message for %p, outside of the segment", to);
	if (r->nbytes)
		memcpy(to, r->payload, r->nbytes);
	r->payload = to;
}

/* Run a request's handler, and send a reply if the handler did not. */
static void serve(struct gasneti_token *token, struct received *r)
{
	run_handler(token, r->category, r->handler, r->payload, r->nbytes, r->numargs,
		r->args);
	if (!token->replied) {
		MESSAGE(m, token->node, GASNETI_H_NONE, GASNETI_SHORT, 0);
		token->replied = true;
		send_reply(token, &m);
	}
	gasneti_credits_scavenge();
}

/* Take a header's part of a Long; return the complete message or NULL. */
static struct gasneti_lid *meet_header(
	uint32_t node, const ptl_event_t *ev, const struct received *r, bool reply)
{
	struct gasneti_lid mine = {.bits = ev->match_bits, .hdr = ev->hdr_data};
	memcpy(mine.args, r->args, r->numargs * sizeof(arg_t));
	return gasneti_lid_meet(&gasneti.peers[node],
		(uint64_t)(uint32_t)ev->hdr_data << 1 | reply, true, &mine);
}

/* Make a received message of a Long that is complete. */
static void read_lid(struct received *r, const struct gasneti_lid *lid)
{
	r->category = GASNETI_LONG;
	r->numargs = (uint32_t)(lid->bits >> GASNETI_ARGS_SHIFT) & 31;
	r->handler = (uint32_t)(lid->bits >> GASNETI_HANDLER_SHIFT) & 255;
	r->payload = lid->addr;
	r->nbytes = lid->nbytes;
	memcpy(r->args, lid->args, sizeof(r->args));
}

static void token_init(struct gasneti_token *token, uint32_t node, uint64_t bits)
{
	uint32_t byte = (uint32_t)(bits >> GASNETI_CREDIT_SHIFT) & 255;
	*token = (struct gasneti_token){.node = node,
		.chunk = (uint32_t)(bits >> GASNETI_CHUNK_SHIFT),
		.request = true};
	token->credits = gasneti_credits_lend(&gasneti.peers[node], byte);
}

static void buffer_insert(struct gasneti_buffer *buffer)
{
	static const ptl_process_id_t any = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_md_t md = {.start = buffer->memory,
		.length = BUFFER_BYTES,
		.threshold = PTL_MD_THRESH_INF,
		.max_size = GASNETI_CHUNK,
		.options = PTL_MD_OP_PUT | PTL_MD_MAX_SIZE | PTL_MD_ACK_DISABLE |
			   PTL_MD_EVENT_START_DISABLE,
		.user_ptr = buffer,
		.eq_handle = gasneti.am_eq};
	ptl_handle_me_t me;
	gasneti_must(PtlMEMDInsert(gasneti.catch_basin, any, GASNETI_MD_REQUEST,
			     ~(ptl_match_bits_t)15, PTL_UNLINK, PTL_INS_BEFORE, md,
			     PTL_UNLINK, &me, NULL),
		"PtlMEMDInsert");
}

/*
 * Change a buffer's balance; at 0 all its messages are over, and it is linked again.  The
 * message that leaves less than a chunk is the last in the buffer, and its end is the sum
 * of all.  The event UNLINK does not tell that sum: messages of a lane may end in another
 * order than that of their places.
 */
static GASNETI_HOT void buffer_count(struct gasneti_buffer *buffer, int64_t bytes)
{
	if (bytes && gasneti_unlikely(gasneti_add(&buffer->balance, bytes) == 0)) {
		gasneti_count(&gasneti.stats.turns, 1);
		buffer_insert(buffer);
	}
}

/* Count the bytes of all messages of a buffer, if this one is its last. */
static GASNETI_HOT void buffer_close(struct gasneti_buffer *buffer, const ptl_event_t *ev)
{
	uint64_t end = ev->offset + ev->mlength;
	if (gasneti_unlikely(end > BUFFER_BYTES - GASNETI_CHUNK))
		buffer_count(buffer, (int64_t)end);
}

static uint32_t sender_of(const ptl_event_t *ev)
{
	uint32_t node = gasneti_node_of(ev->initiator);
	if (gasneti_unlikely(node >= gasneti.nodes))
		gasneti_fatal("a message of process %u:%u, which is not in the job",
			ev->initiator.nid, ev->initiator.pid);
	if (gasneti_unlikely(ev->ni_fail_type != PTL_NI_OK))
		gasneti_peer_died(node);
	return node;
}

/* Serve a complete Long request, and free its record. */
static void serve_lid(uint32_t node, struct gasneti_lid *lid)
{
	struct gasneti_token token;
	struct received r;
	read_lid(&r, lid);
	token_init(&token, node, lid->bits);
	gasneti_lid_free(lid);
	serve(&token, &r);
}

/* Handle a request's header. */
void gasneti_am_request(const ptl_event_t *ev)
{
	uint32_t node = sender_of(ev);
	struct gasneti_buffer *buffer = ev->md.user_ptr;
	char *body = buffer->memory + ev->offset;
	struct received r;
	read_header(&r, ev->match_bits, ev->hdr_data, body, ev->mlength);
	buffer_close(buffer, ev);
	if (gasneti_unlikely(r.category == GASNETI_LONG && !r.packed)) {
		struct gasneti_lid *lid = meet_header(node, ev, &r, false);
		buffer_count(buffer, -(int64_t)ev->mlength);
		if (lid)
			serve_lid(node, lid);
		return;
	}
	struct gasneti_token token;
	token_init(&token, node, ev->match_bits);
	if (r.packed)
		unpack(&r, body);
	serve(&token, &r);
	buffer_count(buffer, -(int64_t)ev->mlength);
}

/* Run a reply's handler, and free the request's chunk. */
static void finish(uint32_t node, uint64_t bits, struct received *r)
{
	struct gasneti_token token = {.node = node};
	if (r->handler != GASNETI_H_NONE)
		run_handler(&token, r->category, r->handler, r->payload, r->nbytes,
			r->numargs, r->args);
	gasneti_chunk_back(&gasneti.requests,
		(uint32_t)(bits >> GASNETI_CHUNK_SHIFT) / GASNETI_CHUNK);
	gasneti_wake();
}

static void finish_lid(uint32_t node, struct gasneti_lid *lid)
{
	struct received r;
	uint64_t bits = lid->bits;
	read_lid(&r, lid);
	gasneti_lid_free(lid);
	finish(node, bits, &r);
}

/* Handle a reply's header. */
void gasneti_am_reply(const ptl_event_t *ev)
{
	uint32_t node = sender_of(ev);
	uint32_t chunk =
		(uint32_t)(ev->match_bits >> GASNETI_CHUNK_SHIFT) / GASNETI_CHUNK;
	struct received r;
	if (gasneti_unlikely(chunk >= gasneti.requests.count))
		gasneti_fatal("a reply of node %u for chunk %u", node, chunk);
	char *body = chunk_memory(&gasneti.requests, chunk);
	read_header(&r, ev->match_bits, ev->hdr_data, body, ev->mlength);
	gasneti_credits_back(&gasneti.peers[node],
		(uint32_t)(ev->match_bits >> GASNETI_CREDIT_SHIFT) & 255);
	if (gasneti_unlikely(r.category == GASNETI_LONG && !r.packed)) {
		struct gasneti_lid *lid = meet_header(node, ev, &r, true);
		if (lid)
			finish_lid(node, lid);
		return;
	}
	if (r.packed)
		unpack(&r, body);
	finish(node, ev->match_bits, &r);
}

/* Handle the payload of a Long request or reply. */
void gasneti_am_payload(const ptl_event_t *ev, bool reply)
{
	uint32_t node = sender_of(ev);
	struct gasneti_lid mine = {
		.addr = (void *)(gasneti.base + ev->offset), .nbytes = ev->mlength};
	uint64_t key = (uint64_t)(uint32_t)ev->hdr_data << 1 | reply;
	struct gasneti_lid *lid =
		gasneti_lid_meet(&gasneti.peers[node], key, false, &mine);
	if (!lid)
		return;
	if (reply)
		finish_lid(node, lid);
	else
		serve_lid(node, lid);
}

/* ---- start ---- */

static uint32_t buffers_needed(void)
{
	uint32_t fit = (BUFFER_BYTES - GASNETI_CHUNK) / GASNETI_CREDIT_BYTES;
	return (gasneti_credits_total() + fit - 1) / fit + gasneti.set.handlers + 1;
}

static void attach_buffers(void)
{
	gasneti.buffer_count = buffers_needed();
	gasneti.buffers = calloc(gasneti.buffer_count, sizeof(*gasneti.buffers));
	char *memory = aligned_alloc(
		GASNET_PAGESIZE, (size_t)gasneti.buffer_count * BUFFER_BYTES);
	if (!gasneti.buffers || !memory)
		gasneti_fatal("no memory for %u request buffers", gasneti.buffer_count);
	for (uint32_t i = 0; i < gasneti.buffer_count; i++) {
		gasneti.buffers[i].memory = memory + (size_t)i * BUFFER_BYTES;
		buffer_insert(&gasneti.buffers[i]);
	}
}

/* Make the chunks, the request buffers, and the entry behind these (catch_basin), which a
 * request reaches only if flow control has failed. */
void gasneti_am_attach(void)
{
	struct gasneti_chunks *requests = &gasneti.requests, *replies = &gasneti.replies;
	size_t bytes = (size_t)gasneti.set.sb_chunks * GASNETI_CHUNK;
	gasneti_chunks_init(requests, gasneti.set.sb_chunks);
	gasneti_chunks_init(replies, gasneti.set.rpl_chunks);
	gasneti_attach_target(GASNETI_AM_PTE, GASNETI_MD_REPLY, requests->memory, bytes,
		PTL_MD_MANAGE_REMOTE | PTL_MD_ACK_DISABLE, gasneti.safe_eq, NULL);
	gasneti_attach_target(GASNETI_AM_PTE, GASNETI_MD_REQUEST, NULL, 0,
		PTL_MD_TRUNCATE | PTL_MD_ACK_DISABLE, gasneti.safe_eq,
		&gasneti.catch_basin);
	attach_buffers();
	gasneti.request_md = gasneti_bind(requests->memory, bytes, 0, PTL_EQ_NONE);
	gasneti.reply_md = gasneti_bind(replies->memory,
		(size_t)gasneti.set.rpl_chunks * GASNETI_CHUNK, 0, gasneti.safe_eq);
	gasneti.handlers_free = gasneti.set.handlers;
	gasneti.handlers[GASNETI_H_MEMSET] = (void (*)(void))gasneti_memset_request;
	gasneti.handlers[GASNETI_H_MEMSET_DONE] = (void (*)(void))gasneti_memset_done;
	gasneti.handlers[GASNETI_H_COLL] = (void (*)(void))gasneti_coll_request;
}
