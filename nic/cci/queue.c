/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues of events: setup, revocation, shared readers. */
#include "nic/cci/queue.h"

#include "shm/fault.h"

#include <sched.h>

#define NO_OWNER 0xffffffffu
#define REVOKING 2u /* shared: plus the number of the thread that revokes */

void p3_cci_queue_init(struct p3_cci_queue *q, char *at)
{
	q->ring = (p3_a64 *)at;
	q->back = q->ring + P3_CCI_ITEMS;
	q->tail = q->back_head = 0;
}

/* ---- the firmware ---- */

struct p3_cci_item *p3_cci_queue_take_returned(struct p3_cci_queue *q)
{
	if (p3_likely(!p3_get(&q->returned)))
		return NULL;
	return (void *)(uintptr_t)p3_exchange64(&q->returned, 0); /* CCIQ.3 */
}

/* ---- several threads ---- */

/* Make the queue one that threads share.  The former owner is in no step afterwards. */
static void revoke(struct p3_cci_queue *q, uint32_t thread)
{
	uint32_t owned = 0;
	if (p3_cas32(&q->shared, &owned, REVOKING + thread)) {
		FAULT_POINT("cci.revoking");
		(void)p3_fence_heavy_here();   /* CCIQ.4 */
		while (p3_acquire(&q->inside)) /* CCIQ.4 */
			sched_yield();
		p3_set(&q->owner, NO_OWNER);
		p3_release(&q->shared, 2);
	}
	while (p3_acquire(&q->shared) != 2)
		sched_yield();
}

static struct p3_cci_item *take_shared(struct p3_cci_queue *q)
{
	uint64_t head = p3_acquire(&q->head);
	for (;;) {
		uint64_t word = p3_acquire(p3_cci_place(q->ring, head)); /* CCIQ.1 */
		struct p3_cci_item *item = p3_cci_item_in(head, word);
		if (item) {
			if (p3_cas64(&q->head, &head, head + 1))
				return item;
			continue; /* head is the present one now */
		}
		uint64_t now = p3_acquire(&q->head);
		if (now == head)
			return NULL;
		head = now;
	}
}

struct p3_cci_item *p3_cci_queue_take_rarely(struct p3_cci_queue *q)
{
	uint32_t none = 0, thread = p3_self_number();
	if (!p3_cci_queue_any(q) || (p3_get(&q->owner) == thread && p3_get(&q->inside)))
		return NULL;
	if (p3_get(&q->owner) == 0 && p3_cas32(&q->owner, &none, thread))
		return p3_cci_queue_take(q);
	uint32_t shared = p3_acquire(&q->shared);
	if (shared ==
		REVOKING + thread) /* this is a handler that has interrupted revoke() */
		return NULL;
	if (shared != 2)
		revoke(q, thread);
	return take_shared(q);
}

void p3_cci_queue_give_back_rarely(struct p3_cci_queue *q, struct p3_cci_item *item)
{
	uint64_t first = p3_get(&q->returned);
	do
		item->next = (void *)(uintptr_t)first;
	while (!p3_cas64(&q->returned, &first, (uintptr_t)item)); /* CCIQ.3 */
}
