/* SPDX-License-Identifier: BSD-3-Clause */
/* Responses that this node sends, and the count of dropped messages. */
#include "nic/proto/proto.h"

/* Count an answer that is about to be sent, and first switch to the full ring if it is
 * time.  A switch cell needs an answer behind it: the peer looks into the ring only while
 * it waits for answers.  It would leave a last switch cell untaken, and this node would
 * kick it as if it had not taken a message. */
static inline void rsp_count(struct p3_nic *n, struct p3_peer *p)
{
	if (p3_unlikely(++p->nanswered >= 8 && !p->rsp_full))
		p3_peer_grow_responses(n, p);
}

struct p3_cell *p3_rsp_begin(struct p3_nic *n, struct p3_peer *p)
{
	if (p->state != P3_LIVE || p->bad)
		return NULL;
	rsp_count(n, p);
	if (p3_peer_has_room(p, &p->rsp_out, 1))
		return p3_ring_begin(&p->rsp_out, 1);
	p3_peer_ignore(n, p, "more requests than it reserved room for");
	return NULL;
}

void p3_rsp_publish(struct p3_nic *n, struct p3_peer *p, uint64_t word0, uint64_t mlength)
{
	FAULT_POINT("response.filled");
	P3_TRACE(fw, n, P3_TRACE_ANSWER, p3_word0_kind(word0), mlength);
	p3_ring_publish(&p->rsp_out, word0, p3_word0_ncells(word0));
	FAULT_POINT("response.published");
	p3_looks_add(n, p);
}

void p3_rsp_send(struct p3_nic *n, struct p3_peer *p, const struct p3_answer *a)
{
	struct p3_cell *c = p3_rsp_begin(n, p);
	if (!c)
		return;
	uint64_t word0 = a->kind == P3_RSP_REPLY_LONG ? p3_pack_long_reply(c, a)
						      : p3_pack_brief(c, a);
	p3_rsp_publish(n, p, word0, a->mlength);
}

void p3_rsp_send_brief(struct p3_nic *n, struct p3_peer *p, uint32_t pending,
	enum p3_rsp_kind kind, uint64_t mlength)
{
	struct p3_answer a = {.kind = kind, .pending = pending, .mlength = mlength};
	p3_rsp_send(n, p, &a);
}

bool p3_rsp_has_room(struct p3_peer *p, uint64_t mlength)
{
	return p3_peer_has_room(p, &p->rsp_out, p3_reply_cells(mlength));
}

char *p3_rsp_begin_reply(struct p3_nic *n, struct p3_peer *p, uint32_t pending,
	uint64_t mlength, uint64_t *word0_out)
{
	rsp_count(n, p);
	const struct p3_answer a = {.pending = pending, .mlength = mlength};
	struct p3_cell *c = p3_ring_begin(&p->rsp_out, p3_reply_cells(mlength));
	*word0_out = p3_pack_reply(c, &a);
	return p3_reply_bytes(c);
}

void p3_rsp_drop(struct p3_nic *n, struct p3_ni *ni, uint64_t length)
{
	if (ni) {
		ni->drops++;
		ni->drop_bytes += length;
	}
	P3_TRACE(fw, n, P3_TRACE_DROP, 0, length);
	p3_count(&n->count[P3_C_DROPS], 1);
	p3_count(&n->count[P3_C_DROP_BYTES], length);
}
