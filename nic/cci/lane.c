/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers to CCI's requests. */
#include "nic/cci/lane.h"

#include "nic/report/report.h"
#include "shm/fault.h"

struct p3_cell *p3_cci_answer_begin(struct p3_nic *n, struct p3_peer *p)
{
	if (p->state != P3_LIVE || p->bad)
		return NULL;
	if (p3_unlikely(++p->nanswered >= 8 && !p->rsp_full))
		p3_peer_grow_responses(n, p);
	if (!p3_peer_has_room(p, &p->rsp_out, 1)) {
		p3_peer_ignore(n, p, "more requests than it reserved room for");
		return NULL;
	}
	return p3_ring_begin(&p->rsp_out, 1);
}

void p3_cci_answer_send(struct p3_nic *n, struct p3_peer *p)
{
	P3_TRACE(fw, n, P3_TRACE_ANSWER, P3_RSP_CCI, 0);
	FAULT_POINT("cci.answer_filled");
	p3_ring_publish(&p->rsp_out, p3_word0(P3_RSP_CCI, 0, 1), 1);
	FAULT_POINT("cci.answer_published");
	p3_looks_add(n, p);
}

void p3_cci_answer(struct p3_nic *n, struct p3_peer *p, uint32_t kind, uint64_t token,
	enum p3_cci_status status, uint64_t xfer)
{
	struct p3_cell *c = p3_cci_answer_begin(n, p);
	if (!c)
		return;
	p3_format_set(c, P3_CCI_ANSWER_STATUS,
		p3_field_in(P3_CCI_ANSWER_STATUS, status) |
			p3_field_in(P3_CCI_ANSWER_KIND, kind));
	p3_format_set(c, P3_CCI_ANSWER_TOKEN, token);
	p3_format_set(c, P3_CCI_ANSWER_XFER, xfer);
	p3_cci_answer_send(n, p);
}
