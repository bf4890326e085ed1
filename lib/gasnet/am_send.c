/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * am_send.c - active messages that are sent, and requests that are served
 *
 * A request takes a chunk of ReqSB, which stays taken until the reply has come.  A Long
 * payload that does not fit the message is a second put, straight to its place; a Lid
 * joins the two (am_recv.c).  Credits bound the requests under way (credits.c), so a
 * request always finds room.
 *
 * Requests have no local events: their chunk is free when the reply has come, which shows
 * that the target has read it.  Replies free their chunk at SEND_END.
 *
 * Replies wait at SAFE.  A request is sent in two steps, gasneti_request_begin and
 * gasneti_request_end, between which its caller waits for credits and a chunk: programs
 * at FULL (am.c), collectives at AM, since FULL polls advance collectives (coll.c).
 */
#include "internal.h"

/* ---- the parts of a message ---- */

static GASNETI_HOT struct gasneti_layout message_lay_out(const struct gasneti_message *m)
{
	struct gasneti_layout l = {.inline_args = m->category == GASNETI_SHORT ? 2 : 1};
	uint32_t rest = m->numargs > l.inline_args ? (m->numargs - l.inline_args) * 4 : 0;
	if (m->category == GASNETI_LONG)
		l.packed =
			m->nbytes == 0 ||
			(gasneti.set.packed &&
				m->nbytes <= GASNETI_CHUNK - gasneti_aligned(rest + 8));
	l.head = rest + (l.packed ? 8 : 0);
	l.start = gasneti_aligned(l.head);
	l.body = l.start;
	if (m->category == GASNETI_MEDIUM || l.packed)
		l.body = gasneti_aligned(l.start + (uint32_t)m->nbytes);
	return l;
}

static GASNETI_HOT void message_write_body(
	char *body, const struct gasneti_message *m, const struct gasneti_layout *l)
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

/* Send the header, with its body, to a REQUEST or REPLY; chunk is that of the request. */
static GASNETI_HOT void message_send_header(const struct gasneti_message *m,
	const struct gasneti_layout *l, ptl_handle_md_t md, uint64_t at, uint64_t to,
	uint32_t credits, uint64_t chunk, uint32_t lid)
{
	uint64_t bits = to | GASNETI_KIND_HEADER << 4 |
			(uint64_t)m->category << GASNETI_CATEGORY_SHIFT |
			(uint64_t)l->packed << GASNETI_PACKED_SHIFT |
			(uint64_t)m->numargs << GASNETI_ARGS_SHIFT |
			(uint64_t)m->handler << GASNETI_HANDLER_SHIFT |
			(uint64_t)credits << GASNETI_CREDIT_SHIFT |
			chunk << GASNETI_CHUNK_SHIFT;
	uint64_t low = m->category == GASNETI_SHORT                 ? (uint32_t)m->args[1]
		       : m->category == GASNETI_MEDIUM || l->packed ? (uint32_t)m->nbytes
								    : lid;
	gasneti_start(PtlPutRegion, md, at, l->body, PTL_NOACK_REQ,
		gasneti.peers[m->node].id, GASNETI_AM_PTE, 0, bits,
		to == GASNETI_MD_REPLY ? chunk : 0,
		(uint64_t)(uint32_t)m->args[0] << 32 | low);
}

/* Send a Long payload from the calling thread; op counts its local completion. */
static void message_send_payload(
	const struct gasneti_message *m, struct gasneti_op *op, uint64_t md, uint32_t lid)
{
	struct gasneti_local local;
	gasneti_ticket_take();
	gasneti_local_take(&local, m->src, m->nbytes, GASNETI_PUT, true);
	op->local_begun++;
	uint64_t bits = op->bits | md | GASNETI_KIND_PAYLOAD << 4 |
			local.resource << GASNETI_RESOURCE_SHIFT;
	uint64_t offset = (uintptr_t)m->to - gasneti.peers[m->node].base;
	gasneti_start(PtlPutRegion, local.md, local.offset, m->nbytes, PTL_NOACK_REQ,
		gasneti.peers[m->node].id, GASNETI_RAR_PTE, 0, bits, offset, lid);
}

int gasneti_message_check(const struct gasneti_message *m)
{
	const char *bad =
		m->node >= gasneti.nodes ? "there is no such node"
		: m->handler < m->least_handler
			? "handlers of programs have indexes from 128 to 255"
		: m->numargs > GASNETI_ARGS    ? "too many arguments"
		: m->category == GASNETI_SHORT ? NULL
		: m->category == GASNETI_MEDIUM
			? m->nbytes > GASNETI_MAX_MEDIUM
				  ? "the Medium payload is too long"
				  : NULL
		: m->nbytes > gasneti.max_long ? "the Long payload is too long"
		: m->nbytes && !gasneti_segment_has(gasneti.peers[m->node].base,
				       gasneti.peers[m->node].size, m->to, m->nbytes)
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

/* Run the handler of a message that stays here. */
void gasneti_loopback(const struct gasneti_message *m, struct gasneti_token *token)
{
	char buf[GASNETI_MAX_MEDIUM] __attribute__((aligned(GASNETI_ALIGN)));
	void *payload = m->category == GASNETI_LONG ? m->to : buf;
	if (m->category != GASNETI_SHORT && m->nbytes)
		memmove(payload, m->src, m->nbytes);
	gasneti_run_handler(
		token, m->category, m->handler, payload, m->nbytes, m->numargs, m->args);
	gasneti_wake();
}

/* ---- requests ---- */

/*
 * Take the credits and the chunk of a request, or neither, and note how many credits to
 * ask for.  A thread that waits for a request holds none of both: its polls at FULL
 * advance collectives, whose requests need the same.
 */
GASNETI_HOT bool gasneti_request_try(
	struct gasneti_request *r, const struct gasneti_message *m, bool stall)
{
	struct gasneti_peer *peer = &gasneti.peers[m->node];
	uint32_t want = r->want; /* lets *r stay in registers */
	bool taken = gasneti_credits_take(peer, r->credits, stall ? &want : NULL);
	r->want = want;
	if (!taken)
		return false;
	r->chunk = gasneti_pool_take(&gasneti.requests.pool);
	if (gasneti_likely(r->chunk >= 0))
		return true;
	gasneti_credits_back(peer, r->credits - 1);
	return false;
}

/*
 * Begin a request: take its credits and its chunk, reading replies while there are some.
 * Return false if there are too few; the caller then waits until gasneti_request_try
 * returns true with stall.
 */
GASNETI_HOT bool gasneti_request_begin(
	struct gasneti_request *r, const struct gasneti_message *m)
{
	r->layout = message_lay_out(m);
	r->split = m->category == GASNETI_LONG && !r->layout.packed;
	r->credits = (r->layout.body + GASNETI_CREDIT_BYTES - 1) / GASNETI_CREDIT_BYTES;
	r->credits = (r->credits ? r->credits : 1) + r->split;
	r->want = 0;
	r->chunk = 0;
	while (!gasneti_request_try(r, m, false))
		if (!gasneti_poll_safe()) {
			gasneti_count(&gasneti.stats.chunk_stalls, r->chunk < 0);
			return false;
		}
	return true;
}

/* Send a request that has its credits and its chunk. */
GASNETI_HOT void gasneti_request_end(
	const struct gasneti_request *r, const struct gasneti_message *m)
{
	const struct gasneti_layout *l = &r->layout;
	struct gasneti_peer *peer = &gasneti.peers[m->node];
	struct gasneti_thread *self = gasneti_self();
	struct gasneti_op *op = m->async ? self->async : self->blocking;
	uint32_t lid = 0;
	if (r->split) {
		lid = gasneti_add(&peer->request_lid, 1);
		message_send_payload(m, op, GASNETI_MD_RARAM, lid);
	}
	if (l->body)
		message_write_body(
			gasneti_chunk_memory(&gasneti.requests, (uint32_t)r->chunk), m,
			l);
	uint64_t at = (uint64_t)r->chunk * GASNETI_CHUNK;
	uint32_t byte = gasneti_credits_byte(peer, r->credits, r->want);
	message_send_header(
		m, l, gasneti.request_md, at, GASNETI_MD_REQUEST, byte, at, lid);
	if (r->split && !m->async)
		gasneti_await_local(op);
}

/* ---- replies ---- */

static GASNETI_HOT uint32_t reply_chunk(void)
{
	int chunk = gasneti_pool_take(&gasneti.replies.pool);
	if (gasneti_unlikely(chunk < 0)) {
		gasneti_count(&gasneti.stats.chunk_stalls, 1);
		gasneti_wait_for(
			safe, (chunk = gasneti_pool_take(&gasneti.replies.pool)) >= 0);
	}
	return (uint32_t)chunk;
}

static void reply_send(const struct gasneti_token *token, const struct gasneti_message *m)
{
	struct gasneti_layout l = message_lay_out(m);
	struct gasneti_op *op = gasneti_self()->blocking;
	bool split = m->category == GASNETI_LONG && !l.packed;
	ptl_handle_md_t md = gasneti.none;
	uint32_t lid = 0;
	uint64_t at = 0;
	if (split) {
		lid = gasneti_add(&gasneti.peers[m->node].reply_lid, 1);
		message_send_payload(m, op, GASNETI_MD_RARSRC, lid);
	}
	if (l.body) {
		uint32_t chunk = reply_chunk();
		md = gasneti.reply_md;
		at = (uint64_t)chunk * GASNETI_CHUNK;
		message_write_body(gasneti_chunk_memory(&gasneti.replies, chunk), m, &l);
	}
	message_send_header(
		m, &l, md, at, GASNETI_MD_REPLY, token->credits, token->chunk, lid);
	if (split)
		gasneti_await_local(op);
}

static void reply_check(const struct gasneti_token *token)
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

GASNETI_HOT int gasneti_am_reply_send(gasnet_token_t t, struct gasneti_message *m)
{
	struct gasneti_token *token = t;
	if (gasneti_unlikely(!token || !token->request || token->replied)) {
		if (token)
			reply_check(token);
		return GASNET_ERR_BAD_ARG;
	}
	reply_check(token);
	m->node = token->node;
	int rc = gasneti_message_check(m);
	if (gasneti_unlikely(rc != GASNET_OK))
		return rc;
	token->replied = true;
	if (token->loopback) {
		struct gasneti_token reply = {.node = m->node, .loopback = true};
		gasneti_loopback(m, &reply);
	} else {
		reply_send(token, m);
	}
	return GASNET_OK;
}

/* ---- serving requests ---- */

/* Handle an event of AM_EQ: run a request's handler, and reply if the handler did not. */
static GASNETI_HOT void request_serve(const ptl_event_t *ev)
{
	struct gasneti_token token;
	if (ev->type != PTL_EVENT_PUT_END)
		return; /* UNLINK of a request buffer */
	bool served = gasneti_likely((ev->match_bits & 15) == GASNETI_MD_REQUEST)
			      ? gasneti_am_request(ev, &token)
			      : gasneti_am_request_payload(ev, &token);
	if (!served)
		return;
	if (!token.replied) {
		struct gasneti_message m;
		gasneti_message_init(
			&m, token.node, GASNETI_H_NONE, GASNETI_SHORT, NULL, 0, NULL, 0);
		token.replied = true;
		reply_send(&token, &m);
	}
	gasneti_credits_scavenge();
}

/* Run handlers of requests.  Return the number of events. */
unsigned gasneti_poll_requests(void)
{
	ptl_event_t ev;
	unsigned n = 0, limit = gasneti.set.am_limit;
	if (gasneti_unlikely(gasneti_acquire(&gasneti.leaving)) ||
		!gasneti_handler_begin())
		return 0;
	while (n < limit && gasneti_next_event(gasneti.am_eq, &ev, "AM")) {
		request_serve(&ev);
		n++;
	}
	gasneti_handler_end();
	if (GASNETI_THREADS && n)
		gasneti_wake();
	return n;
}

/* Serve one event of class 1, or a request.  Return the number of events. */
GASNETI_HOT unsigned gasneti_poll_either(void)
{
	ptl_handle_eq_t eqs[] = {gasneti.safe_eq, gasneti.am_eq};
	ptl_event_t ev;
	int which, rc;
	if (gasneti_unlikely(gasneti_acquire(&gasneti.leaving)) ||
		!gasneti_handler_begin())
		return gasneti_poll_one();
	rc = PtlEQPoll(eqs, 2, 0, &ev, &which);
	if (gasneti_unlikely(rc == PTL_EQ_DROPPED))
		gasneti_fatal("event queue %s overflowed: a defect of the conduit",
			which ? "AM" : "SAFE");
	if (rc == PTL_OK && which)
		request_serve(&ev);
	gasneti_handler_end();
	if (rc == PTL_OK && !which)
		gasneti_safe_event(&ev);
	else if (GASNETI_THREADS && rc == PTL_OK)
		gasneti_wake();
	return rc == PTL_OK;
}

/* End a turn of a wait at AM or FULL, which served n events: sleep if there was nothing
 * to do for some time. */
GASNETI_HOT void gasneti_turn_end(gasneti_wait_t *wait, unsigned n)
{
	ptl_event_t ev;
	if (gasneti_may_sleep(wait, n) && gasneti_nap(wait, true, &ev)) {
		request_serve(&ev);
		gasneti_wake();
		gasneti_handler_end();
	}
	if (GASNETI_THREADS)
		wait->generation = gasneti_seq_get(&gasneti.generation);
}

/* Serve an event of AM, which is all but collectives; sleep if there was none. */
void gasneti_turn_am(gasneti_wait_t *wait)
{
	unsigned n = gasneti_poll_either() + gasneti_poll_others();
	gasneti_turn_end(wait, n);
}
