/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations on a descriptor, from START to END. */
#include "nic/obj/span.h"

#include "nic/obj/event.h"
#include "nic/obj/md.h"

void p3_span_begin(struct p3_span *span, struct p3_md *md, uint64_t offset)
{
	span->md = md;
	span->sink = md->sink;
	span->region = md->region;
	span->offset = offset;
	md->pending++;
	struct p3_eq *eq = p3_eq_of_sink(&span->sink);
	span->owed = eq && (p3_event_is_wanted(&span->sink, PTL_EVENT_SEND_END) ||
				   p3_event_is_wanted(&span->sink, PTL_EVENT_SEND_START));
	if (span->owed)
		eq->owed++;
	if (span->region.iov)
		span->region.iov->refs++;
	if (md->exhausted && md->unlink)
		p3_md_owe_unlink(md);
}

static void pay(struct p3_span *span)
{
	struct p3_eq *eq = p3_eq_of_sink(&span->sink);
	if (eq && span->owed)
		eq->owed--;
	span->owed = false;
}

void p3_span_start(struct p3_nic *n, struct p3_span *span, ptl_event_kind_t kind)
{
	p3_event_write(n, &span->sink, &span->rec, kind, PTL_NI_OK);
	if (!p3_event_is_wanted(&span->sink, PTL_EVENT_SEND_END))
		pay(span);
}

void p3_span_forget(struct p3_span *span)
{
	p3_md_drop_iov(span->region.iov);
	span->md = NULL;
	span->region = (struct p3_region){0};
}

void p3_span_end(
	struct p3_nic *n, struct p3_span *span, ptl_event_kind_t kind, uint32_t fail)
{
	struct p3_md *md = span->md;
	pay(span);
	md->pending--;
	p3_md_drop_iov(span->region.iov);
	p3_event_ends(n, md, &span->sink, &span->rec, kind, fail);
}
