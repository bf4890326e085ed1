/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * evq - event ring: the firmware writes, any host thread reads
 *
 *	firmware  --post-->  [ record 0 .. record n-1 ]  --get-->  host threads
 *
 * The head of a ring (tail, head, the place of its records) and its records are
 * separate.  A head serves rings of one size while its memory lives, and its event
 * numbers only grow.  So a reader that is stopped in the middle of a get and goes on
 * during a later queue finds another head, and takes and changes nothing.
 * The memory of the records may be put to any other use once the queue has ended.
 *
 * A record is 15 words and a sequence word, moved by words or pairs with atomics.  Event
 * number i (free-running) lies in record i mod n and has sequence i + 1.  A full queue
 * overwrites the oldest unread event and holds nothing up.  A reader that was overtaken
 * never returns a torn event: it goes on with the oldest intact one and reports that
 * some were lost.
 *
 * The lease holder posts, any thread of the process gets; the state is struct
 * p3_evq_ring and its records, struct p3_evq_tx of the firmware, and struct p3_evq_rx of
 * the readers.  Calls at the same time (X: excluded, -: allowed):
 *			post	get
 *	post		 X	 -
 *	get		 -	 -
 *
 * Progress: post is wait-free, get lock-free (it repeats only if the writer overtook
 * it, or another reader took the event).
 *
 * Memory ordering:
 *	EVQ.1	sequence: post releases -> get acquires (the words are there); tail: the
 *		same (the sequences of the events before the last one are there)
 *	EVQ.2	each word: post releases -> get acquires, so that a get that saw a word of
 *		a newer event sees the sequence busy or newer when it looks again.  The
 *		order of the words among themselves is open, so they may move in pairs
 *	EVQ.3	head: get's compare-and-swap releases -> post acquires (the words were
 *		read)
 *
 * Readers.  The first thread that reads owns the queue: it moves the head by a plain
 * store.  A second thread revokes the ownership once: it sets shared, fences heavily
 * (atomics.h), waits until the owner is not between enter and leave, and from then on all
 * readers move the head by compare-and-swap.  The queues of CCI (nic/cci/) have owners,
 * too.
 *	EVQ.4	shared: revoker stores, fences heavily, loads inside;
 *		owner: stores inside, fences lightly, loads shared
 *	EVQ.5	name: retire releases 0, then a head that no reader has seen, both before
 *		the records' memory can become anything else, before the head's next ring
 *		(head is released again then), and before the queue's place gets another
 *		ring (where is released then) and name -> a reader that saw the new head,
 *		or the new ring, acquires another name than its own; and a reader that
 *		copied other data from that memory finds that the head has changed.
 *		Retire does not wait for an owner that was told to share; so that owner
 *		looks at shared first: if it loads 0, which the next queue released, it
 *		acquires another name
 *		p3_evq_expect() loads a head's words and then the name, so an address
 *		from memory that became anything else is never followed
 *	EVQ.6	late: a reader that revokes stores it, then shared; the thread that
 *		formats the place for the next queue stores shared, fences, loads late.
 *		So a value that a delayed reader stores in shared is about that queue's
 *		owner, or the queue has no owner
 *
 * A place that two threads have read, or whose queue was ended by a thread other than
 * its owner, gets no owner any more: a delayed reader of the old queue could clear the
 * next owner's inside, or set shared without having waited for that owner.
 *
 * Numbers start so that the low 32 bits wrap after a few events.
 */
#ifndef P3_SHM_EVQ_H
#define P3_SHM_EVQ_H

#include "shm/fault.h"
#include "shm/atomics.h"
#include "shm/layout.h"

#define P3_EVQ_WORDS  15
#define P3_EVQ_START  (((uint64_t)1 << 32) - 5)
#define P3_EVQ_LIVES  40 /* bits of an event number below the number of its life */
#define P3_EVQ_NOBODY 0xffffffffu
#define P3_EVQ_BUSY   0 /* sequence of a record that is being rewritten */

/* The content of an event; the last word is no part of it. */
struct p3_event_words {
	_Alignas(16) p3_a64 w[P3_EVQ_WORDS + 1];
};

struct p3_event_record {
	union {
		struct p3_event_words words;
		struct {
			p3_a64 w[P3_EVQ_WORDS];
			p3_a64 sequence;
		};
	};
};

typedef _Atomic(struct p3_event_record *) p3_evq_records;

/* The head of a ring, with one line for each writer. */
struct p3_evq_ring {
	p3_a64 tail;      /* (firmware) events posted */
	p3_a64 next_free; /* link of the list of unused heads (nic/obj/host.c) */
	p3_a64 lost;      /* (firmware) unread events overwritten, for tools */
	uint64_t pad0[13];
	p3_a64 head;        /* (hosts) events read */
	p3_evq_records rec; /* set before p3_evq_format */
	p3_a64 mask;        /* number of records, minus 1; a head keeps its size */
	uint64_t pad1[13];
};

_Static_assert(sizeof(struct p3_event_record) == P3_LINE, "one event, one line pair");
_Static_assert(sizeof(struct p3_evq_ring) == 2 * P3_LINE, "one line for each writer");

/* The firmware's side. */
struct p3_evq_tx {
	struct p3_evq_ring *ring;
	struct p3_event_record *rec;
	uint64_t tail;
	uint64_t head_seen;
	uint32_t n; /* number of records, a power of two */
	/* Called when the first unread event is overwritten; may be NULL. */
	void (*on_lost)(struct p3_evq_tx *q);
};

/* The thread that moves the head of a queue by plain stores. */
struct p3_owner {
	p3_a32 thread; /* its number; 0: none yet */
	p3_a32 inside; /* it is between enter and leave */
	p3_a32 shared; /* 2: the ownership is revoked, 1: a thread revokes it */
};

/* The hosts' side, in memory that all threads of the process share, and that is never
 * put to another use. */
struct p3_evq_rx {
	_Atomic(struct p3_evq_ring *) ring; /* delayed readers load it, too (EVQ.5) */
	/* bytes from here to the ring.  0 in a place that no queue has used: it leads to
	 * memory that can be read. */
	p3_a64 where;
	struct p3_owner owner;
	p3_a64 name; /* name of the queue in this place; 0: there is no queue */
	p3_a32 late; /* 1: delayed readers of an earlier queue may store here, so later
			* queues get no owner */
};

struct p3_evq_place {
	struct p3_evq_ring *ring;
	const struct p3_event_record *rec;
	uint32_t n;
};

/*
 * Return the ring in this place.  A delayed reader finds the ring of the earlier queue
 * or of the next one, but never a mixture: a head serves rings of one size only, so
 * mask + 1 records are there wherever rec leads.
 */
static inline struct p3_evq_place p3_evq_place(const struct p3_evq_rx *q)
{
	struct p3_evq_ring *ring = p3_acquire(&q->ring); /* EVQ.5 */
	return (struct p3_evq_place){
		ring, p3_acquire(&ring->rec), (uint32_t)p3_acquire(&ring->mask) + 1};
}

enum p3_evq_got { P3_EVQ_EMPTY = 0, P3_EVQ_EVENT = 1, P3_EVQ_LOST = 2 };

/* Return the size of a ring's records. */
static inline uint64_t p3_evq_bytes(uint32_t n)
{
	return (uint64_t)n * sizeof(struct p3_event_record);
}

#define P3_EVQ_FIRST 1u /* name of a queue after p3_evq_format */

/*
 * Return the number before the first event of a ring's next queue, of n events.  In a
 * zeroed ring, which no queue has had, it depends on life, which differs each time that
 * heads are taken from new memory.  Numbers of a later queue of the ring, with the same
 * n, continue where the retired one stopped.  So a reader that has slept since finds
 * neither its event nor its head.
 */
static inline uint64_t p3_evq_start(
	const struct p3_evq_ring *ring, uint32_t n, uint64_t life)
{
	return p3_get(&ring->tail) ? p3_get(&ring->head) + n
				   : P3_EVQ_START + (life << P3_EVQ_LIVES);
}

/* Prepare the records of a queue that is to start at this number.  Only this function
 * takes a time that grows with n: the caller holds no lease. */
void p3_evq_blank(struct p3_event_record *rec, uint32_t n, uint64_t start);

/* Set up a queue.  The caller passes a line-aligned ring whose rec points to n prepared
 * records; n is a power of two. */
void p3_evq_format(struct p3_evq_ring *ring, uint32_t n, uint64_t start,
	struct p3_evq_tx *tx, struct p3_evq_rx *rx);

/*
 * End the queue.  After the return no reader takes an event from its ring or writes to
 * it; delayed readers may still look at its records, whatever that memory holds then.
 * thread is the caller: if it is not the owner, later queues in this place have no
 * owner.
 */
void p3_evq_retire(struct p3_evq_rx *q, uint32_t thread);

/* Slow half of post: make room in a queue that looks full. */
void p3_evq_make_room(struct p3_evq_tx *q, struct p3_event_record *rec);

/* Return true if the ring is known to have room: the next event overwrites none. */
static inline bool p3_evq_has_room(const struct p3_evq_tx *q)
{
	return p3_likely(q->tail - q->head_seen < q->n);
}

static inline struct p3_event_record *p3_evq_next(const struct p3_evq_tx *q)
{
	return &q->rec[q->tail & (q->n - 1)];
}

/* Begin to write the next event.  Fill all words with p3_release, then commit. */
static inline struct p3_event_record *p3_evq_begin(struct p3_evq_tx *q)
{
	struct p3_event_record *rec = p3_evq_next(q);
	if (p3_unlikely(!p3_evq_has_room(q)))
		p3_evq_make_room(q, rec);
	return rec;
}

static inline void p3_evq_commit(struct p3_evq_tx *q, struct p3_event_record *rec)
{
	uint64_t tail = q->tail + 1;
	q->tail = tail;
	p3_release(&q->ring->tail, tail); /* EVQ.1 */
	FAULT_POINT("event.tail_moved");
	p3_release(&rec->sequence, tail); /* EVQ.1 */
}

static inline bool p3_evq_copy(
	const struct p3_event_record *rec, uint64_t head, uint64_t w[P3_EVQ_WORDS])
{
#pragma GCC unroll 15
	for (int i = 0; i < P3_EVQ_WORDS; i++)
		w[i] = p3_acquire(&rec->w[i]); /* EVQ.2 */
	return p3_get(&rec->sequence) == head + 1;
}

/* ---- the owner of a queue ---- */

/* Return true if the thread owns the queue.  It becomes the owner if there is none. */
bool p3_owner_claim(struct p3_owner *o, uint32_t thread);
/* Make all threads move the head by compare-and-swap.  The owner is in no step
 * afterwards, and begins none. */
void p3_owner_revoke(struct p3_owner *o);

static P3_HOT void p3_owner_enter(struct p3_owner *o)
{
	p3_set(&o->inside, 1);
	p3_fence_light(true); /* EVQ.4 */
}

static P3_HOT void p3_owner_leave(struct p3_owner *o)
{
	p3_release(&o->inside, 0); /* EVQ.4 */
}

/* Begin a step of the owner.  Return false if the thread does not own the queue, or is a
 * signal handler that has interrupted a step. */
static P3_HOT bool p3_owner_begin(struct p3_owner *o, uint32_t thread)
{
	if (p3_unlikely(p3_get(&o->thread) != thread || p3_get(&o->inside)))
		return false;
	p3_owner_enter(o);
	if (p3_likely(!p3_acquire(&o->shared))) /* EVQ.4 */
		return true;
	p3_owner_leave(o);
	return false;
}

/* ---- get ---- */

/*
 * Take the oldest event: its words in w and its sequence number.  Return P3_EVQ_EMPTY
 * if there is none, or if the queue with this name has given its place to another one.
 * P3_EVQ_LOST is an event, too; at least one before it was overwritten.  thread is a
 * number that names the calling thread, never 0.  The call of a signal handler that has
 * interrupted a get of the same thread returns P3_EVQ_EMPTY.
 */
enum p3_evq_got p3_evq_get(struct p3_evq_rx *q, uint64_t name, uint32_t thread,
	uint64_t w[P3_EVQ_WORDS], uint64_t *sequence_out);

/*
 * Return true if p3_evq_get would not wait for another thread that is inside.  A signal
 * handler must not wait for such a thread, since a handler in that thread may wait for
 * this thread.  After false the owner's later gets move the head by compare-and-swap.
 */
bool p3_evq_may_get(struct p3_evq_rx *q, uint32_t thread);

/* The place of a queue's next event. */
struct p3_evq_next {
	const struct p3_event_record *rec;
	uint64_t head;
};

/*
 * The common case of p3_evq_get, in two steps.  p3_evq_look returns true if the owner's
 * next event is there; else use p3_evq_get.  *next_out is the place of the next event,
 * also if it is not there; rec is NULL if the thread does not own the queue, or the queue
 * has ended.  The caller reads the words of the record, each once by p3_acquire (EVQ.2),
 * and calls p3_evq_took.  This takes the event and returns true if all these words belong
 * to this event.  Between the two steps the caller must not leave by longjmp or end the
 * thread: a thread that revokes the ownership would wait for p3_evq_took for ever.
 */
static inline bool p3_evq_look(
	struct p3_evq_rx *q, uint64_t name, uint32_t thread, struct p3_evq_next *next_out)
{
	*next_out = (struct p3_evq_next){NULL, 0};
	if (p3_unlikely(!p3_owner_begin(&q->owner, thread)))
		return false;
	if (p3_likely(p3_acquire(&q->name) == name)) {           /* EVQ.5, after shared */
		struct p3_evq_ring *ring = p3_acquire(&q->ring); /* EVQ.5 */
		uint64_t head = p3_get(&ring->head);
		const struct p3_event_record *rec =
			p3_get(&ring->rec) + (head & p3_get(&ring->mask));
		*next_out = (struct p3_evq_next){rec, head};
		if (p3_likely(p3_acquire(&rec->sequence) == head + 1)) /* EVQ.1 */
			return true;
	}
	p3_owner_leave(&q->owner);
	return false;
}

static inline bool p3_evq_took(struct p3_evq_rx *q, const struct p3_evq_next *next)
{
	bool taken = p3_get(&next->rec->sequence) == next->head + 1;
	if (p3_likely(taken))
		p3_release(&p3_get(&q->ring)->head, next->head + 1); /* EVQ.3 */
	p3_owner_leave(&q->owner);
	return taken;
}

/* Read the oldest event without taking it. */
enum p3_evq_got p3_evq_peek(struct p3_evq_rx *q, uint64_t name, uint64_t w[P3_EVQ_WORDS],
	uint64_t *sequence_out);

/*
 * Find the place of the next event of a queue, which may have ended.  *name_at is a word
 * that differs from name from before p3_evq_retire() on.  Return false if it differs.
 * Any thread may call this for any place that has such a word, also while the memory of
 * a ring goes: the name is compared behind the loads from the ring.
 */
static inline bool p3_evq_expect(const struct p3_evq_rx *q, const p3_a64 *name_at,
	uint64_t name, struct p3_evq_next *next_out)
{
	const struct p3_evq_ring *ring =
		(void *)((uintptr_t)q + p3_acquire(&q->where)); /* EVQ.5 */
	uint64_t head = p3_acquire(&ring->head),
		 mask = p3_acquire(&ring->mask);           /* EVQ.5 */
	uintptr_t rec = (uintptr_t)p3_acquire(&ring->rec); /* EVQ.5 */
	/* The pointer may be any word, or NULL, unless the name fits. */
	next_out->rec = (void *)(rec + (head & mask) * sizeof *next_out->rec);
	next_out->head = head;
	return p3_likely(p3_acquire(name_at) == name); /* EVQ.5 */
}

/* Return false if the event has certainly not been posted. */
static inline bool p3_evq_is_come(const struct p3_evq_next *next)
{
	/* The sequence of an older event; P3_EVQ_BUSY minus 1 is larger than any head. */
	return p3_acquire(&next->rec->sequence) - 1 >= next->head; /* EVQ.1 */
}

/* Return true if the queue is there and certainly has no event.  This may be called as
 * p3_evq_expect(), and costs one load of the next sequence. */
static inline bool p3_evq_is_empty(
	const struct p3_evq_rx *q, const p3_a64 *name_at, uint64_t name)
{
	struct p3_evq_next next;
	return p3_evq_expect(q, name_at, name, &next) && !p3_evq_is_come(&next);
}

#endif
