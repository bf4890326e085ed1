/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * am_recv.c - active messages that arrive
 *
 * A request is a put into the next free bytes of the target's request buffers (ReqRB);
 * its reply is a put into the chunk from which the request came (ReqSB).  Nothing here
 * waits: a request whose handler has not replied is answered by the caller (am_send.c).
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
 * Lids.  A Long that does not fit the message is a put of the payload and a put of the
 * header, which arrive in either order; both carry the Lid, a number of the pair of
 * nodes. The half that comes first leaves a record with the peer, the second one takes it
 * out and runs the handler.  The record passes from one thread to the other under the
 * peer's lock, so the handler sees the payload.  Records are bounded by the credits of
 * the peers and the chunks of this node.
 */
#include "internal.h"

enum { BUFFER_BYTES = GASNETI_BUFFER_CHUNKS * GASNETI_CHUNK };

/* ---- handlers ---- */

typedef gasnet_handlerarg_t arg_t;

/* X(0) to X(n - 1). */
#define LIST_1(X)  X(0)
#define LIST_2(X)  LIST_1(X), X(1)
#define LIST_3(X)  LIST_2(X), X(2)
#define LIST_4(X)  LIST_3(X), X(3)
#define LIST_5(X)  LIST_4(X), X(4)
#define LIST_6(X)  LIST_5(X), X(5)
#define LIST_7(X)  LIST_6(X), X(6)
#define LIST_8(X)  LIST_7(X), X(7)
#define LIST_9(X)  LIST_8(X), X(8)
#define LIST_10(X) LIST_9(X), X(9)
#define LIST_11(X) LIST_10(X), X(10)
#define LIST_12(X) LIST_11(X), X(11)
#define LIST_13(X) LIST_12(X), X(12)
#define LIST_14(X) LIST_13(X), X(13)
#define LIST_15(X) LIST_14(X), X(14)
#define LIST_16(X) LIST_15(X), X(15)
#define TYPE(i)    arg_t
#define VALUE(i)   args[i]
#define SHORT_CASE(n)                                                                    \
	case n:                                                                          \
		((void (*)(gasnet_token_t, LIST_##n(TYPE)))(f))(token, LIST_##n(VALUE)); \
		break;
#define MEDIUM_CASE(n)                                                                   \
	case n:                                                                          \
		((void (*)(gasnet_token_t, void *, size_t, LIST_##n(TYPE)))(f))(         \
			token, buf, nbytes, LIST_##n(VALUE));                            \
		break;
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

/* Run the handler of a message.  buf and nbytes have no meaning for a Short. */
GASNETI_HOT void gasneti_run_handler(struct gasneti_token *token, uint32_t category,
	uint32_t handler, void *buf, size_t nbytes, uint32_t numargs, const arg_t *args)
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
		switch (numargs) {
			EACH_COUNT(SHORT_CASE)
		default:
			((void (*)(gasnet_token_t))(f))(token);
		}
	else
		switch (numargs) {
			EACH_COUNT(MEDIUM_CASE)
		default:
			((void (*)(gasnet_token_t, void *, size_t))(f))(
				token, buf, nbytes);
		}
	self->in_handler = outer;
#ifdef GASNET_DEBUG
	if (self->held)
		gasneti_fatal(
			"handler %u returned with a handler-safe lock held", handler);
#endif
}

/* ---- Lids ---- */

/*
 * Let one half of a Long, of which this event tells, meet the other.  mine holds the
 * members of this half: the header (bits, args), or the payload (addr, nbytes).  Return
 * the complete message, which the caller frees, or NULL if the other half has yet to
 * come: this one waits with the peer then.
 */
static struct gasneti_lid *lid_meet(uint32_t node, const ptl_event_t *ev, bool reply,
	bool header, const struct gasneti_lid *mine)
{
	struct gasneti_peer *peer = &gasneti.peers[node];
	uint64_t key = (uint64_t)(uint32_t)ev->hdr_data << 1 | reply;
	gasneti_lock(&peer->lock);
	struct gasneti_lid **link = &peer->lids;
	while (*link && (*link)->key != key)
		link = &(*link)->next;
	struct gasneti_lid *lid = *link;
	if (lid) {
		*link = lid->next;
	} else {
		struct gasneti_lid *half = gasneti_alloc(1, sizeof(*half));
		gasneti_peak(
			&gasneti.stats.lid_high, gasneti_add(&gasneti.stats.lids, 1));
		*half = *mine;
		half->key = key;
		half->has_header = header;
		half->next = peer->lids;
		peer->lids = half;
	}
	gasneti_unlock(&peer->lock);
	if (!lid)
		return NULL;
	if (header == lid->has_header)
		gasneti_fatal(
			"two %s of one Long message", header ? "headers" : "payloads");
	if (header) {
		lid->bits = mine->bits;
		memcpy(lid->args, mine->args, sizeof(lid->args));
	} else {
		lid->addr = mine->addr;
		lid->nbytes = mine->nbytes;
	}
	return lid;
}

/* ---- request buffers ---- */

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

/* ---- reading a message ---- */

/* Arguments and payload of a header. */
struct received {
	uint32_t category, numargs, handler;
	bool packed;
	void *payload;
	size_t nbytes;
	arg_t args[GASNETI_ARGS];
};

/* Read a header; body is where its body lies.  End the job if it makes no sense. */
static GASNETI_HOT void received_read(
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
	if (gasneti_unlikely(
		    r->numargs > GASNETI_ARGS ||
		    gasneti_aligned(head + rest) + (whole ? r->nbytes : 0) > length))
		gasneti_fatal("malformed message: header %#llx, %zu bytes",
			(unsigned long long)bits, length);
	if (rest)
		memcpy(r->args + inline_args, body + head, rest);
	r->payload = body + gasneti_aligned(head + rest);
}

/* Put a packed Long's payload into its place. */
static void received_unpack(struct received *r, const char *body)
{
	void *to;
	memcpy(&to, body, 8);
	if (r->nbytes && !gasneti_in_segment(to, r->nbytes))
		gasneti_fatal("a Long message for %p, outside of the segment", to);
	if (r->nbytes)
		memcpy(to, r->payload, r->nbytes);
	r->payload = to;
}

/* Take a header's part of a Long; return the complete message or NULL. */
static struct gasneti_lid *lid_meet_header(
	uint32_t node, const ptl_event_t *ev, const struct received *r, bool reply)
{
	struct gasneti_lid mine = {.bits = ev->match_bits};
	memcpy(mine.args, r->args, r->numargs * sizeof(arg_t));
	return lid_meet(node, ev, reply, true, &mine);
}

/* Take the payload of a Long; return the complete message or NULL. */
static struct gasneti_lid *lid_meet_payload(
	uint32_t node, const ptl_event_t *ev, bool reply)
{
	struct gasneti_lid mine = {
		.addr = (void *)(gasneti.base + ev->offset), .nbytes = ev->mlength};
	return lid_meet(node, ev, reply, false, &mine);
}

/* Make a received message of a Long that is complete, and free its record; return the
 * match bits of its header. */
static uint64_t received_take_lid(struct received *r, struct gasneti_lid *lid)
{
	uint64_t bits = lid->bits;
	r->category = GASNETI_LONG;
	r->numargs = (uint32_t)(lid->bits >> GASNETI_ARGS_SHIFT) & 31;
	r->handler = (uint32_t)(lid->bits >> GASNETI_HANDLER_SHIFT) & 255;
	r->payload = lid->addr;
	r->nbytes = lid->nbytes;
	memcpy(r->args, lid->args, sizeof(r->args));
	gasneti_add(&gasneti.stats.lids, UINT64_MAX);
	free(lid);
	return bits;
}

static GASNETI_HOT void token_init(
	struct gasneti_token *token, uint32_t node, uint64_t bits)
{
	uint32_t byte = (uint32_t)(bits >> GASNETI_CREDIT_SHIFT) & 255;
	*token = (struct gasneti_token){.node = node,
		.chunk = (uint32_t)(bits >> GASNETI_CHUNK_SHIFT),
		.request = true};
	token->credits = gasneti_credits_lend(&gasneti.peers[node], byte);
}

static GASNETI_HOT uint32_t event_sender(const ptl_event_t *ev)
{
	uint32_t node = gasneti_node_of(ev->initiator);
	if (gasneti_unlikely(node >= gasneti.nodes))
		gasneti_fatal("a message of process %u:%u, which is not in the job",
			ev->initiator.nid, ev->initiator.pid);
	if (gasneti_unlikely(ev->ni_fail_type != PTL_NI_OK))
		gasneti_peer_died(node);
	return node;
}

static GASNETI_HOT void received_run(struct gasneti_token *token, struct received *r)
{
	gasneti_run_handler(token, r->category, r->handler, r->payload, r->nbytes,
		r->numargs, r->args);
}

/* ---- requests ---- */

/* Run the handler of a Long request; return false if it is not complete: lid is NULL. */
static bool request_run_lid(
	struct gasneti_token *token, uint32_t node, struct gasneti_lid *lid)
{
	struct received r;
	if (!lid)
		return false;
	token_init(token, node, received_take_lid(&r, lid));
	received_run(token, &r);
	return true;
}

/*
 * Handle a request's header.  Return false if its payload has yet to come; otherwise its
 * handler has run, and the caller replies if the handler did not: token->replied.
 */
bool gasneti_am_request(const ptl_event_t *ev, struct gasneti_token *token)
{
	uint32_t node = event_sender(ev);
	struct gasneti_buffer *buffer = ev->md.user_ptr;
	char *body = buffer->memory + ev->offset;
	struct received r;
	received_read(&r, ev->match_bits, ev->hdr_data, body, ev->mlength);
	uint64_t end = ev->offset + ev->mlength;
	if (gasneti_unlikely(end > BUFFER_BYTES - GASNETI_CHUNK))
		buffer_count(buffer, (int64_t)end); /* the last message */
	if (gasneti_unlikely(r.category == GASNETI_LONG && !r.packed)) {
		struct gasneti_lid *lid = lid_meet_header(node, ev, &r, false);
		buffer_count(buffer, -(int64_t)ev->mlength);
		return request_run_lid(token, node, lid);
	}
	token_init(token, node, ev->match_bits);
	if (r.packed)
		received_unpack(&r, body);
	received_run(token, &r);
	buffer_count(buffer, -(int64_t)ev->mlength);
	return true;
}

/* Handle the payload of a Long request; the same for its header. */
bool gasneti_am_request_payload(const ptl_event_t *ev, struct gasneti_token *token)
{
	uint32_t node = event_sender(ev);
	return request_run_lid(token, node, lid_meet_payload(node, ev, false));
}

/* ---- replies ---- */

/* Run a reply's handler, and free the request's chunk. */
static GASNETI_HOT void reply_finish(uint32_t node, uint64_t bits, struct received *r)
{
	struct gasneti_token token = {.node = node};
	if (r->handler != GASNETI_H_NONE)
		received_run(&token, r);
	gasneti_pool_back(&gasneti.requests.pool,
		(uint32_t)(bits >> GASNETI_CHUNK_SHIFT) / GASNETI_CHUNK);
	gasneti_wake();
}

/* Finish a long message whose reply is complete: lid is not NULL. */
static void reply_finish_lid(uint32_t node, struct gasneti_lid *lid)
{
	struct received r;
	if (lid)
		reply_finish(node, received_take_lid(&r, lid), &r);
}

/* Handle a reply's header. */
void gasneti_am_reply(const ptl_event_t *ev)
{
	uint32_t node = event_sender(ev);
	uint32_t chunk =
		(uint32_t)(ev->match_bits >> GASNETI_CHUNK_SHIFT) / GASNETI_CHUNK;
	struct received r;
	if (gasneti_unlikely(chunk >= gasneti.set.sb_chunks))
		gasneti_fatal("a reply of node %u for chunk %u", node, chunk);
	char *body = gasneti_chunk_memory(&gasneti.requests, chunk);
	received_read(&r, ev->match_bits, ev->hdr_data, body, ev->mlength);
	gasneti_credits_back(&gasneti.peers[node],
		(uint32_t)(ev->match_bits >> GASNETI_CREDIT_SHIFT) & 255);
	if (gasneti_unlikely(r.category == GASNETI_LONG && !r.packed)) {
		reply_finish_lid(node, lid_meet_header(node, ev, &r, true));
		return;
	}
	if (r.packed)
		received_unpack(&r, body);
	reply_finish(node, ev->match_bits, &r);
}

/* Handle the payload of a Long reply. */
void gasneti_am_reply_payload(const ptl_event_t *ev)
{
	uint32_t node = event_sender(ev);
	reply_finish_lid(node, lid_meet_payload(node, ev, true));
}

/* ---- start ---- */

static void buffers_attach(void)
{
	uint32_t fit = (BUFFER_BYTES - GASNETI_CHUNK) / GASNETI_CREDIT_BYTES;
	gasneti.buffer_count =
		(gasneti_credits_total() + fit - 1) / fit + gasneti.set.handlers + 1;
	gasneti.buffers = gasneti_alloc(gasneti.buffer_count, sizeof(*gasneti.buffers));
	char *memory = aligned_alloc(
		GASNET_PAGESIZE, (size_t)gasneti.buffer_count * BUFFER_BYTES);
	if (!memory)
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
	buffers_attach();
	gasneti.request_md = gasneti_bind(requests->memory, bytes, 0, PTL_EQ_NONE);
	gasneti.reply_md = gasneti_bind(replies->memory,
		(size_t)gasneti.set.rpl_chunks * GASNETI_CHUNK, 0, gasneti.safe_eq);
	gasneti.handlers_free = gasneti.set.handlers;
}
