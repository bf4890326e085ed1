/* SPDX-License-Identifier: BSD-3-Clause */
/* Gauges of CCI. */
#include "nic/cci/show.h"

_Static_assert(P3_C_CCI_RETRIES - P3_C_CCI_SENT == P3_CCI_C_RETRIES &&
		       P3_CCI_C_RETRIES + 1 == P3_CCI_COUNTERS,
	"one word for each counter");

/* Store the time since which a condition holds. */
static void since(p3_a64 *word, bool holds, uint64_t now)
{
	if (!holds)
		p3_set(word, 0);
	else if (!p3_get(word))
		p3_set(word, now);
}

static void show_endpoint(
	const struct p3_cci_endpoint *ep, struct p3_cci_line *line, uint64_t now)
{
	uint32_t left = p3_get(&ep->rx_left);
	if (p3_get(&line->number) != ep->number) {
		p3_set(&line->full_since, 0);
		p3_set(&line->asked_since, 0);
	}
	p3_set(&line->buffers, p3_pair(ep->rx_count - left, ep->rx_count));
	p3_set(&line->unread, ep->queue.tail - p3_get(&ep->queue.head));
	p3_set(&line->conns, p3_pair(ep->nconns, ep->nopen));
	since(&line->full_since, !left, now);
	since(&line->asked_since, ep->nopen != 0, now);
	p3_set(&line->number, ep->number);
}

void p3_cci_show(struct p3_nic *n, uint64_t now)
{
	struct p3_cci_line *line =
		(struct p3_cci_line *)((char *)n->published.base + n->layout.cci_off);
	uint32_t k = 0;
	n->cci.shown = n->cci.nendpoints != 0;
	for (uint32_t i = 0; i < n->cci.ends && k < P3_CCI_SHOWN; i++)
		if (n->cci.ep[i])
			show_endpoint(n->cci.ep[i], &line[k++], now);
	while (k < P3_CCI_SHOWN)
		p3_set(&line[k++].number, 0);
	for (uint32_t c = 0; c < P3_CCI_COUNTERS; c++)
		p3_set(&n->count[P3_C_CCI_SENT + c], p3_get(&n->cci.count[c]));
	p3_set(&n->count[P3_G_CCI_ENDPOINTS], n->cci.nendpoints);
	p3_set(&n->count[P3_G_CCI_CONNECTIONS], n->cci.nconns);
}
