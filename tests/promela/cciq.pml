/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queue of a CCI endpoint (nic/cci/internal.h): the firmware posts words that name
 * items; two host threads take them, read the events in the items, and return them.
 *
 * Checked: an event is read after it was written, and written again after the thread
 * that took it has returned it; each event is taken once, in the order of the posts; a
 * word that no thread has taken is never overwritten, although the firmware does not
 * look at the head: each item has a place of its own in the ring; no item is lost.
 *
 * Bounds: two items, rings of two words, POSTS events.  The first reader owns the queue;
 * the second one may revoke that at any time.  The event ring (shm/evq.h) has the same
 * owner.
 *
 * A compare-and-swap reads the last value, so weak.inc does not show a store that comes
 * late for it.  So without the release of inside the head's store stands behind it.
 */
#ifndef POSTS
#define POSTS 3
#endif
#define SIZE 2 /* of the rings, and number of items */

#define CCIQ_1_p3_cci_event_post             1
#define CCIQ_1_p3_cci_queue_take             2
#define CCIQ_1_cci_queue_take_shared         3
#define CCIQ_3_p3_cci_queue_give_back        4
#define CCIQ_3_p3_cci_queue_first_back       5
#define CCIQ_3_p3_cci_queue_give_back_rarely 6
#define CCIQ_3_p3_cci_queue_take_returned    7
#define EVQ_4_p3_owner_enter                 8 /* its fence */
#define EVQ_4_p3_owner_leave                 9
#define EVQ_4_owner_ask                      10 /* its fence */

#define PROCS    3
#define RING(i)  ((i) % SIZE)
#define BACK(i)  (SIZE + (i) % SIZE)
#define HEAD     (2 * SIZE)
#define RETURNED (2 * SIZE + 1) /* a bit for each item */
#define INSIDE   (2 * SIZE + 2)
#define SHARED   (2 * SIZE + 3)
#define WORDS    (2 * SIZE + 4)
#define DATA     SIZE
#define WEAK     (ALL & ~BIT(RETURNED)) /* no process only looks at it */
#include "weak.inc"

/* A word: lap and item.  0: nothing was stored here yet. */
#define WORD(at, d)       (((at) / SIZE) * SIZE + (d) + 1)
#define IS_OF(word, at)   ((word) && ((word) - 1) / SIZE == (at) / SIZE)
#define ITEM_IN(word)     (((word) - 1) % SIZE)

/* The word shared. */
#define ASKED   1
#define REVOKED 2

byte event[SIZE]; /* the number of its post */
bool taken[POSTS];

inline p3_cci_queue_post(d)
{
	atomic {
		access(d);
		event[d] = tail;
		assert(tail < SIZE || mem[HEAD] > tail - SIZE);
		p3_release(RING(tail), WORD(tail, d), CCIQ_1_p3_cci_event_post);
		tail++
	}
}

inline p3_cci_queue_drain()
{
	p3_acquire(BACK(drained), x, CCIQ_3_p3_cci_queue_first_back);
	if
	:: IS_OF(x, drained) -> unused = unused | (1 << ITEM_IN(x)); drained++
	:: else
	fi;
	x = 0
}

inline p3_cci_queue_take_returned()
{
	p3_exchange(RETURNED, 0, x, CCIQ_3_p3_cci_queue_take_returned, 0);
	unused = unused | x;
	x = 0
}

active proctype firmware()
{
	byte x, tail, drained, unused = 3;
	do
	:: tail == POSTS -> break
	:: tail < POSTS && unused & 1 -> unused = unused - 1; p3_cci_queue_post(0)
	:: tail < POSTS && unused & 2 -> unused = unused - 2; p3_cci_queue_post(1)
	:: tail < POSTS && mem[BACK(drained)] != 0 && unused != 3 -> p3_cci_queue_drain()
	:: tail < POSTS && mem[RETURNED] -> p3_cci_queue_take_returned()
	od
}

inline use_event(d)
{
	atomic {
		access(d);
		assert(event[d] == head);
		assert(!taken[head]);
		taken[head] = true
	}
}

/* Returns true with inside set. */
inline p3_owner_begin(entered)
{
	p3_set(INSIDE, 1);
	p3_fence_light(EVQ_4_p3_owner_enter);
	p3_acquire(SHARED, x, ALWAYS);
	entered = !x;
	if
	:: x -> p3_owner_leave(); x = 0
	:: else
	fi
}

inline p3_owner_leave()
{
	p3_release(INSIDE, 0, EVQ_4_p3_owner_leave)
}

inline p3_cci_queue_give_back_rarely(d)
{
	p3_rmw(RETURNED, mem[RETURNED] | (1 << (d)), 0,
		CCIQ_3_p3_cci_queue_give_back_rarely)
}

inline cci_queue_take_shared()
{
	p3_acquire(HEAD, head, ALWAYS);
	p3_acquire(RING(head), word, CCIQ_1_cci_queue_take_shared);
	if
	:: IS_OF(word, head) ->
		p3_cas(HEAD, head, head + 1, x, ALWAYS, ALWAYS);
		got = (x == head);
		x = 0
	:: else
	fi
}

active proctype owner()
{
	byte x, head, word, back_tail;
	bool got, owns;
	do
	:: mem[HEAD] == POSTS -> break
	:: mem[HEAD] < POSTS ->
		p3_owner_begin(owns);
		if
		:: owns ->
			p3_get(HEAD, head);
			p3_acquire(RING(head), word, CCIQ_1_p3_cci_queue_take);
			got = IS_OF(word, head);
			if
			:: got && HAS(EVQ_4_p3_owner_leave) -> p3_set(HEAD, head + 1)
			:: else
			fi;
			p3_owner_leave();
			if
			:: got && !HAS(EVQ_4_p3_owner_leave) -> p3_set(HEAD, head + 1)
			:: else
			fi
		:: else -> cci_queue_take_shared()
		fi;
		if
		:: got ->
			use_event(ITEM_IN(word));
			p3_owner_begin(owns);
			if
			:: owns ->
				p3_release(BACK(back_tail), WORD(back_tail, ITEM_IN(word)),
					CCIQ_3_p3_cci_queue_give_back);
				back_tail++;
				p3_owner_leave()
			:: else -> p3_cci_queue_give_back_rarely(ITEM_IN(word))
			fi
		:: else
		fi;
		got = false;
		owns = false;
		head = 0;
		word = 0
	od
}

/* The loop that waits for inside may go round at any time. */
inline p3_owner_revoke()
{
	if
	:: !revoking ->
		revoking = true;
		p3_set(SHARED, ASKED);
		p3_fence_heavy(EVQ_4_owner_ask)
	:: else
	fi;
	p3_acquire(INSIDE, x, ALWAYS);
	if
	:: !x -> p3_set(SHARED, REVOKED)
	:: else
	fi;
	x = 0
}

active proctype other()
{
	byte x, head, word;
	bool got, revoking;
	do
	:: mem[HEAD] == POSTS -> break
	:: mem[HEAD] < POSTS && mem[SHARED] != REVOKED -> p3_owner_revoke()
	:: mem[HEAD] < POSTS && mem[SHARED] == REVOKED ->
		cci_queue_take_shared();
		if
		:: got ->
			use_event(ITEM_IN(word));
			p3_cci_queue_give_back_rarely(ITEM_IN(word))
		:: else
		fi;
		got = false;
		head = 0;
		word = 0
	od
}
