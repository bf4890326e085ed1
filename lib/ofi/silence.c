/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * silence.c - a completion queue that gives nothing, while receives wait: tell tools the
 * source and tag that the oldest of them wants, and those of a message that has come
 *
 * Only reads that find nothing come here, and only some of them (cq.c).
 */
#include "prov.h"

enum { SILENCE_MS = 1000 }; /* before it is told, and between two times */

static uint32_t silence_count(const struct ofi_reqs *reqs)
{
	const struct ofi_req *req;
	uint32_t n = 0;
	TAILQ_FOREACH(req, reqs, link)
	n++;
	return n;
}

/* Name the first message that no receive has taken: one of the same source, if there
 * is one. */
static void silence_add_unexpected(const struct ofi_list *list, ptlx_wait_t *wait)
{
	const struct ofi_late *late, *first = NULL;
	bool near = false;
	TAILQ_FOREACH(late, &list->arrived, next)
	{
		bool same = ofi_is_same(late->from, wait->source);
		if (!first || (same && !near))
			first = late;
		near |= same;
		wait->unexpected++;
	}
	if (!first)
		return;
	wait->from = first->from;
	wait->from_tag = first->bits & OFI_TAG_MASK;
	wait->length = first->len;
}

/* Messages with tags come first: buffers for many messages without one may wait for
 * ever. */
static void silence_add(const struct ofi_ep *ep, ptlx_wait_t *wait)
{
	for (int i = OFI_TAGGED; i >= 0; i--) {
		const struct ofi_list *list = &ep->lists[i];
		const struct ofi_req *req = NULL; /* that was posted first */
		if (list->ep && !(req = TAILQ_FIRST(&list->posted)))
			req = TAILQ_FIRST(&list->waiting);
		if (!req)
			continue;
		if (!wait->receives) {
			wait->source = req->peer;
			wait->tag = req->rx.bits & OFI_TAG_MASK;
			wait->ignore = req->rx.ignore & OFI_TAG_MASK;
			if (i == OFI_MSG || wait->ignore == OFI_TAG_MASK)
				wait->ignore = ~0ull;
			silence_add_unexpected(list, wait);
		}
		wait->receives +=
			silence_count(&list->posted) + silence_count(&list->waiting);
	}
}

OFI_RARE void ofi_silence_end(struct ofi_cq *cq)
{
	cq->silent_since = 0;
	if (cq->told)
		(void)PtlXWaitsFor(cq->queue.eq, NULL);
	cq->told = false;
}

OFI_RARE void ofi_silence(struct ofi_cq *cq)
{
	uint64_t now = ofi_now();
	const struct ofi_ep *ep;
	if (!cq->silent_since)
		cq->silent_since = now;
	if (now - cq->silent_since < SILENCE_MS || now - cq->told_at < SILENCE_MS)
		return;
	cq->told_at = now;
	uint64_t silent = now - cq->silent_since;
	ptlx_wait_t wait = {
		.struct_size = sizeof wait,
		.silent_ms = silent < UINT32_MAX ? (uint32_t)silent : UINT32_MAX,
		.library = "libfabric",
	};
	LIST_FOREACH(ep, &cq->domain->eps, next)
	if (ep->rx_cq == cq)
		silence_add(ep, &wait);
	if (wait.receives)
		cq->told |= PtlXWaitsFor(cq->queue.eq, &wait) == PTL_OK;
	else
		ofi_silence_end(cq);
}
