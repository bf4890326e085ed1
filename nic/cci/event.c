/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue of an endpoint's events, its OS handle, and its gauges. */
#include "nic/cci/internal.h"
#include "nic/run/evfd.h"

void p3_cci_queue_init(struct p3_cci_queue *q, char *at)
{
	q->ring = (p3_a64 *)at;
	q->back = q->ring + P3_CCI_ITEMS;
	q->tail = q->back_head = 0;
}

struct p3_cci_item *p3_cci_queue_take_returned(struct p3_cci_queue *q)
{
	if (p3_likely(!p3_get(&q->returned)))
		return NULL;
	return (void *)(uintptr_t)p3_exchange64(&q->returned, 0); /* CCIQ.3 */
}

void p3_cci_queue_give_back_rarely(struct p3_cci_queue *q, struct p3_cci_item *item)
{
	uint64_t first = p3_get(&q->returned);
	do
		item->next = (void *)(uintptr_t)first;
	while (!p3_cas64(&q->returned, &first, (uintptr_t)item)); /* CCIQ.3 */
}

void p3_cci_event_remind(struct p3_nic *n)
{
	bool sleeps = p3_get(&n->nic_asleep);
	for (uint32_t i = 0; i < n->cci.ends; i++) {
		struct p3_cci_endpoint *ep = n->cci.ep[i];
		if (!ep || !ep->handle.evfd)
			continue;
		struct p3_cci_handle *h = &ep->handle;
		uint64_t head = p3_get(&ep->queue.head);
		/* No tick will remind: the next event makes the handle readable. */
		if (sleeps)
			p3_evfd_turn(n, h->evfd, P3_EVFD_ARMED); /* EVFD.3 */
		/* An event has waited since the last look, also if the program was taken
		 * for one that polls (IDLE).  It does not poll any more. */
		if (p3_cci_queue_any(&ep->queue) && (sleeps || head == h->reminded)) {
			p3_set(&h->polls, 0);
			p3_evfd_signal(n, h->evfd);
		}
		h->reminded = head;
	}
}

/* ---- gauges for tools ---- */

/* Store the time since which a condition holds. */
static void cci_gauge_since(p3_a64 *word, bool holds, uint64_t now)
{
	if (!holds)
		p3_set(word, 0);
	else if (!p3_get(word))
		p3_set(word, now);
}

static void cci_gauge_endpoint(
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
	cci_gauge_since(&line->full_since, !left, now);
	cci_gauge_since(&line->asked_since, ep->nopen != 0, now);
	p3_set(&line->number, ep->number);
}

void p3_cci_gauges(struct p3_nic *n, uint64_t now)
{
	struct p3_cci_line *line = p3_published_at(n, n->layout.cci_off);
	uint32_t k = 0;
	n->cci.shown = n->cci.nendpoints != 0;
	for (uint32_t i = 0; i < n->cci.ends && k < P3_CCI_SHOWN; i++)
		if (n->cci.ep[i])
			cci_gauge_endpoint(n->cci.ep[i], &line[k++], now);
	while (k < P3_CCI_SHOWN)
		p3_set(&line[k++].number, 0);
	p3_set(&n->count[P3_G_CCI_ENDPOINTS], n->cci.nendpoints);
	p3_set(&n->count[P3_G_CCI_CONNECTIONS], n->cci.nconns);
}
