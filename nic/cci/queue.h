/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queue - the queue of an endpoint's events, and the way back of returned ones
 *
 *	firmware  --post-->  ring  --take-->  program
 *	firmware  <--drain--  back, returned  <--give back--  program
 *
 * Both rings have a word for each item that the endpoint can have, so neither overflows
 * and no side waits.  A word is the address of an item, and in the upper 16 bits the lap
 * of the ring plus 1: a word of an earlier lap is no item.  The lease holder posts and
 * drains.  The thread that takes first owns the head and the ring back, and moves both by
 * plain stores.  A second thread that takes or gives back revokes the ownership, once.
 * From then on all threads move the head by compare-and-swap, and push what they return
 * on the list "returned".
 *
 * Memory ordering:
 *	CCIQ.1	word of the ring: post releases -> take acquires (the event is written)
 *	CCIQ.3	word of the ring back, or list "returned": give back releases -> drain
 *		acquires (the program has done with the event; the head has passed the
 *		item's word)
 *	CCIQ.4	shared: the revoker stores, fences heavily, loads inside; the owner stores
 *		inside, fences lightly, loads shared.  Without it two threads take the
 *		same event.
 */
#ifndef P3_NIC_CCI_QUEUE_H
#define P3_NIC_CCI_QUEUE_H

#include "nic/run/self.h"
#include "nic/state.h"
#include "shm/atomics.h"

#define P3_CCI_ITEMS_LOG2 15u
#define P3_CCI_ITEMS      (1u << P3_CCI_ITEMS_LOG2) /* most items of an endpoint */
#define P3_CCI_LAP_SHIFT  48u

/* Bytes of the two rings of a queue. */
#define P3_CCI_QUEUE_LEN (2u * P3_CCI_ITEMS * sizeof(p3_a64))

/* Set up a queue in zeroed memory of that length. */
void p3_cci_queue_init(struct p3_cci_queue *q, char *at);

/* Return the lap of a position, plus 1, in the upper 16 bits. */
static inline uint64_t p3_cci_lap(uint64_t pos)
{
	return ((pos >> P3_CCI_ITEMS_LOG2) + 1) << P3_CCI_LAP_SHIFT;
}

static inline uint64_t p3_cci_word(uint64_t pos, const struct p3_cci_item *item)
{
	return (uintptr_t)item | p3_cci_lap(pos);
}

/* Return the item in a word, or NULL if the word is of an earlier lap. */
static inline struct p3_cci_item *p3_cci_item_in(uint64_t pos, uint64_t word)
{
	uint64_t at = word ^ p3_cci_lap(pos);
	return p3_likely(at >> P3_CCI_LAP_SHIFT == 0) ? (void *)(uintptr_t)at : NULL;
}

static inline p3_a64 *p3_cci_place(p3_a64 *ring, uint64_t pos)
{
	return &ring[pos % P3_CCI_ITEMS];
}

/* ---- the firmware ---- */

static inline void p3_cci_queue_post(struct p3_cci_queue *q, struct p3_cci_item *item)
{
	uint64_t word = p3_cci_word(q->tail, item);
	p3_release(p3_cci_place(q->ring, q->tail), word); /* CCIQ.1 */
	q->tail++;
}

/* Return the next item of the ring back, or NULL. */
static inline struct p3_cci_item *p3_cci_queue_drain(struct p3_cci_queue *q)
{
	uint64_t at = q->back_head;
	uint64_t word = p3_acquire(p3_cci_place(q->back, at)); /* CCIQ.3 */
	struct p3_cci_item *item = p3_cci_item_in(at, word);
	q->back_head += item != NULL;
	return item;
}

/* Return the item that p3_cci_queue_drain() would return, or NULL, and leave it there. */
static inline struct p3_cci_item *p3_cci_queue_first_back(const struct p3_cci_queue *q)
{
	uint64_t at = q->back_head;
	uint64_t word = p3_acquire(p3_cci_place(q->back, at)); /* CCIQ.3 */
	return p3_cci_item_in(at, word);
}

/* Return true if the program has returned an item. */
static inline bool p3_cci_queue_has_back(const struct p3_cci_queue *q)
{
	uint64_t at = q->back_head;
	uint64_t word = p3_get(p3_cci_place(q->back, at));
	return p3_cci_item_in(at, word) || p3_unlikely(p3_get(&q->returned) != 0);
}

/* Return the list of all items that threads other than the owner have returned. */
struct p3_cci_item *p3_cci_queue_take_returned(struct p3_cci_queue *q);

/* ---- any thread ---- */

/* Return true if there is an event.  This is a hint. */
static inline bool p3_cci_queue_any(const struct p3_cci_queue *q)
{
	uint64_t head = p3_get(&q->head);
	uint64_t word = p3_acquire(p3_cci_place(q->ring, head)); /* CCIQ.1 */
	return p3_cci_item_in(head, word) != NULL;
}

/* Begin a step of the owner.  Return false if this thread does not own the queue, or is a
 * signal handler that has interrupted a step. */
static inline bool p3_cci_queue_enter(struct p3_cci_queue *q)
{
	if (p3_unlikely(p3_get(&q->owner) != p3_self.number || p3_get(&q->inside)))
		return false;
	p3_set(&q->inside, 1);
	p3_fence_light(true); /* CCIQ.4 */
	if (p3_likely(!p3_acquire(&q->shared)))
		return true;
	p3_release(&q->inside, 0); /* CCIQ.4 */
	return false;
}

static inline void p3_cci_queue_leave(struct p3_cci_queue *q)
{
	p3_release(&q->inside, 0); /* CCIQ.4 */
}

/* Take and give back in the rare cases: the thread does not own the queue. */
P3_RARE struct p3_cci_item *p3_cci_queue_take_rarely(struct p3_cci_queue *q);
P3_RARE void p3_cci_queue_give_back_rarely(
	struct p3_cci_queue *q, struct p3_cci_item *item);

/* Take the oldest event, or return NULL.  A first look finds most queues empty without a
 * step of the owner.  Only the owner moves the head of a queue that has one, but a signal
 * handler may have interrupted it. */
static inline struct p3_cci_item *p3_cci_queue_take(struct p3_cci_queue *q)
{
	uint64_t head = p3_get(&q->head);
	uint64_t word = p3_acquire(p3_cci_place(q->ring, head)); /* CCIQ.1 */
	struct p3_cci_item *item = p3_cci_item_in(head, word);
	if (!item)
		return NULL;
	if (p3_unlikely(!p3_cci_queue_enter(q)))
		return p3_cci_queue_take_rarely(q);
	if (p3_likely(p3_get(&q->head) == head))
		p3_set(&q->head, head + 1);
	else
		item = NULL;
	p3_cci_queue_leave(q);
	return item;
}

static inline void p3_cci_queue_give_back(
	struct p3_cci_queue *q, struct p3_cci_item *item)
{
	if (p3_unlikely(!p3_cci_queue_enter(q))) {
		p3_cci_queue_give_back_rarely(q, item);
		return;
	}
	uint64_t at = q->back_tail++;
	p3_release(p3_cci_place(q->back, at), p3_cci_word(at, item)); /* CCIQ.3 */
	p3_cci_queue_leave(q);
}

#endif
