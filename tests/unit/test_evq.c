/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules of evq.h without concurrency; test_evq_torture.c has the rest. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <pthread.h>
#include <unistd.h>

#include "shm/evq.h"
#include "unit/torture.h"
#include "unit/rigs.h"

#define FIRST (P3_EVQ_START + 1) /* sequence of the first event */
#define ME    11
#ifdef P3_VALGRIND
#define ROUNDS 100
#else
#define ROUNDS 3000
#endif
#define OTHER 12

struct rig {
	struct p3_evq_ring *ring;
	struct p3_evq_tx tx;
	struct p3_evq_rx rx;
	uint64_t head; /* the content of an unlimited queue: head to tail */
};

static const uint32_t sizes[] = {1, 2, 4, 64};

static void format(struct rig *r, uint32_t n, uint64_t start)
{
	p3_evq_blank(p3_get(&r->ring->rec), n, start);
	p3_evq_format(r->ring, n, start, &r->tx, &r->rx);
	r->head = start;
}

static struct rig *rig_new(uint32_t n)
{
	size_t len = sizeof(struct p3_evq_ring) + p3_evq_bytes(n);
	struct rig *r = calloc(1, sizeof *r);
	assert_non_null(r);
	r->ring = aligned_alloc(P3_LINE, len);
	assert_non_null(r->ring);
	memset(r->ring, 0xa5, len);
	p3_set(&r->ring->rec, (struct p3_event_record *)(r->ring + 1));
	format(r, n, P3_EVQ_START);
	return r;
}

static bool is_empty(const struct rig *r)
{
	return p3_evq_is_empty(&r->rx, &r->rx.name, P3_EVQ_FIRST);
}

static void rig_free(struct rig *r)
{
	free(r->ring);
	free(r);
}

static uint64_t word_of(uint64_t sequence, unsigned i)
{
	return mix(sequence * 16 + i);
}

static struct p3_event_record *begin(struct rig *r, unsigned words)
{
	struct p3_event_record *rec = p3_evq_begin(&r->tx);
	for (unsigned i = 0; i < words; i++)
		p3_release(&rec->w[i], word_of(r->tx.tail + 1, i));
	return rec;
}

static void post(struct rig *r, uint64_t events)
{
	while (events--)
		p3_evq_commit(&r->tx, begin(r, P3_EVQ_WORDS));
}

static void assert_event(const uint64_t w[P3_EVQ_WORDS], uint64_t got, uint64_t sequence)
{
	assert_int_equal(got, sequence);
	for (unsigned i = 0; i < P3_EVQ_WORDS; i++)
		assert_int_equal(w[i], word_of(sequence, i));
}

static void get(struct rig *r, uint32_t thread, enum p3_evq_got want, uint64_t sequence)
{
	uint64_t w[P3_EVQ_WORDS], seq = 0;
	assert_int_equal(p3_evq_get(&r->rx, P3_EVQ_FIRST, thread, w, &seq), want);
	assert_event(w, seq, sequence);
}

static void peek(struct rig *r, enum p3_evq_got want, uint64_t sequence)
{
	uint64_t w[P3_EVQ_WORDS], seq = 0;
	assert_int_equal(p3_evq_peek(&r->rx, P3_EVQ_FIRST, w, &seq), want);
	assert_event(w, seq, sequence);
}

static void assert_empty(struct rig *r, uint32_t thread)
{
	uint64_t w[P3_EVQ_WORDS], seq = 77, head = p3_get(&r->ring->head);
	assert_int_equal(p3_evq_peek(&r->rx, P3_EVQ_FIRST, w, &seq), P3_EVQ_EMPTY);
	assert_int_equal(p3_evq_get(&r->rx, P3_EVQ_FIRST, thread, w, &seq), P3_EVQ_EMPTY);
	assert_int_equal(seq, 77);
	assert_int_equal(p3_get(&r->ring->head), head);
}

/* Pairs and upper halves move the words that single stores and loads move, no others. */
CASE(evq_words_move_in_pairs_and_halves)
{
	_Alignas(16) uint64_t two[2], got[4];
	_Alignas(16) p3_a64 word[4];
	for (unsigned i = 0; i < 3; i += 2) {
		for (unsigned k = 0; k < 4; k++)
			p3_set(&word[k], word_of(1, k));
		two[0] = word_of(2, 0);
		two[1] = word_of(2, 1);
		p3_release_pair(&word[i], two); /* EVQ.2 */
		p3_release_high(&word[i], 0xfedcba98);
		for (unsigned k = 0; k < 4; k++)
			got[k] = 77;
		char *unaligned = (char *)&got[1] + 4;
		p3_acquire_pair(unaligned, &word[i]); /* EVQ.2 */
		assert_memory_equal(unaligned + 4, "\x98\xba\xdc\xfe", 4);
		assert_memory_equal(unaligned, &two[0], 4);
		assert_memory_equal(unaligned + 8, &two[1], 8);
		assert_int_equal(got[0], 77);
		assert_int_equal((uint32_t)got[1], 77);
		assert_int_equal(got[3] >> 32, 0);
		p3_release_halves(&word[i + 1], 0x01234567, 0x89abcdef); /* EVQ.2 */
		assert_int_equal(p3_get(&word[i + 1]), UINT64_C(0x0123456789abcdef));
		for (unsigned k = 0; k < 4; k++)
			if (k - i > 1)
				assert_int_equal(p3_get(&word[k]), word_of(1, k));
	}
}

RIGS_CASE(evq_is_empty_at_first_whatever_the_memory_held)
{
	assert_true(is_empty(r));
	assert_empty(r, ME);
	post(r, 3 * r->tx.n + 7);
	format(r, r->tx.n, P3_EVQ_START);
	assert_true(is_empty(r));
	assert_empty(r, OTHER);
}

RIG_CASE(evq_starts_five_below_the_32_bit_wrap, 64)
{
	post(r, 12);
	for (uint64_t i = 0; i < 12; i++)
		get(r, ME, P3_EVQ_EVENT, FIRST + i);
	assert_int_equal((uint32_t)(FIRST + 4), 0);
	assert_empty(r, ME);
}

static enum p3_evq_got model_next(struct rig *r, uint64_t *sequence)
{
	if (r->tx.tail == r->head)
		return P3_EVQ_EMPTY;
	uint64_t oldest = r->head;
	if (r->tx.tail - oldest > r->tx.n)
		oldest = r->tx.tail - r->tx.n;
	*sequence = oldest + 1;
	return oldest == r->head ? P3_EVQ_EVENT : P3_EVQ_LOST;
}

static void model_read(struct rig *r, uint32_t thread)
{
	uint64_t sequence = 0;
	enum p3_evq_got want = model_next(r, &sequence);
	assert_int_equal(!is_empty(r), want != P3_EVQ_EMPTY);
	if (want == P3_EVQ_EMPTY) {
		assert_empty(r, thread);
		return;
	}
	peek(r, want, sequence);
	get(r, thread, want, sequence);
	r->head = sequence;
}

/* Any mixture of posts and reads agrees with a simple model, for both kinds of reader:
 * it holds n unread events, tells a gap once and where it is, and a peek takes none. */
CASE(evq_agrees_with_its_model)
{
	for (EACH_SIZE(i)) {
		for (uint32_t readers = 1; readers <= 2; readers++) {
			struct rig *r = rig_new(sizes[i]);
			uint64_t seed = sizes[i];
			for (int round = 0; round < ROUNDS; round++) {
				post(r, dice(&seed, 2 * sizes[i] + 2));
				uint32_t reads = dice(&seed, 2 * sizes[i] + 2);
				while (reads--)
					model_read(r, ME + dice(&seed, readers));
			}
			rig_free(r);
		}
	}
}

CASE(evq_shows_nothing_of_an_event_being_written)
{
	for (EACH_SIZE(i)) {
		for (unsigned words = 0; words <= P3_EVQ_WORDS; words++) {
			struct rig *r = rig_new(sizes[i]);
			for (uint64_t seq = FIRST; seq < FIRST + 9; seq++) {
				begin(r, words);
				assert_true(is_empty(r));
				assert_empty(r, ME);
				post(r, 1);
				get(r, ME, P3_EVQ_EVENT, seq);
			}
			rig_free(r);
		}
	}
}

/* The writer is in the middle of overwriting the oldest event. */
CASE(evq_skips_an_event_being_overwritten)
{
	for (unsigned i = 1; i < sizeof sizes / sizeof sizes[0]; i++) {
		for (unsigned words = 0; words <= P3_EVQ_WORDS; words++) {
			struct rig *r = rig_new(sizes[i]);
			post(r, sizes[i]);
			struct p3_event_record *rec = begin(r, words);
			peek(r, P3_EVQ_LOST, FIRST + 1);
			get(r, ME, P3_EVQ_LOST, FIRST + 1);
			for (uint32_t j = 2; j < sizes[i]; j++)
				get(r, ME, P3_EVQ_EVENT, FIRST + j);
			assert_empty(r, ME);
			begin(r, P3_EVQ_WORDS);
			p3_evq_commit(&r->tx, rec);
			get(r, ME, P3_EVQ_EVENT, FIRST + sizes[i]);
			assert_empty(r, ME);
			rig_free(r);
		}
	}
}

RIG_CASE(evq_of_one_is_empty_while_its_event_is_overwritten, 1)
{
	post(r, 1);
	struct p3_event_record *rec = begin(r, 7);
	assert_empty(r, ME);
	begin(r, P3_EVQ_WORDS);
	p3_evq_commit(&r->tx, rec);
	get(r, ME, P3_EVQ_LOST, FIRST + 1);
	assert_empty(r, ME);
}

/* The tail of an event is visible before its sequence: the event is not there yet. */
RIGS_CASE(evq_is_empty_between_tail_and_sequence)
{
	for (uint64_t seq = FIRST; seq < FIRST + 9; seq++) {
		begin(r, P3_EVQ_WORDS);
		p3_set(&r->ring->tail, r->tx.tail + 1);
		assert_empty(r, ME);
		post(r, 1);
		get(r, ME, P3_EVQ_EVENT, seq);
	}
}

RIG_CASE(evq_second_reader_ends_the_first_ones_privilege, 64)
{
	post(r, 40);
	for (uint64_t i = 0; i < 10; i++)
		get(r, ME, P3_EVQ_EVENT, FIRST + i);
	assert_int_equal(p3_get(&r->rx.owner.thread), ME);
	assert_int_equal(p3_get(&r->rx.owner.shared), 0);
	for (uint64_t i = 10; i < 40; i++)
		get(r, i % 3 ? OTHER : ME, P3_EVQ_EVENT, FIRST + i);
	assert_int_equal(p3_get(&r->rx.owner.thread), ME);
	assert_int_not_equal(p3_get(&r->rx.owner.shared), 0);
	assert_int_equal(p3_get(&r->rx.owner.inside), 0);
	assert_empty(r, ME);
	assert_empty(r, OTHER);
}

struct other {
	struct rig *rig;
	p3_a32 returned;
	enum p3_evq_got got;
	uint64_t sequence;
};

static void *get_as_other(void *arg)
{
	struct other *o = arg;
	uint64_t w[P3_EVQ_WORDS];
	o->got = p3_evq_get(&o->rig->rx, P3_EVQ_FIRST, OTHER, w, &o->sequence);
	p3_release(&o->returned, 1);
	return NULL;
}

/* The owner may have looked at shared already, and will move the head by a plain
 * store. */
CASE(evq_second_reader_waits_until_the_owner_is_outside)
{
	pthread_t thread;
	struct other o = {.rig = rig_new(4)};
	post(o.rig, 3);
	get(o.rig, ME, P3_EVQ_EVENT, FIRST);
	p3_set(&o.rig->rx.owner.inside, 1);
	assert_int_equal(pthread_create(&thread, NULL, get_as_other, &o), 0);
	while (!p3_acquire(&o.rig->rx.owner.shared))
		sched_yield();
	/* pause: time for the other reader to return wrongly */
	usleep(20000);
	assert_int_equal(p3_acquire(&o.returned), 0);
	p3_release(&o.rig->ring->head, FIRST + 1); /* the owner takes one event */
	p3_release(&o.rig->rx.owner.inside, 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(o.got, P3_EVQ_EVENT);
	assert_int_equal(o.sequence, FIRST + 2);
	rig_free(o.rig);
}

/* A handler that gets an event interrupts the owner inside a get. */
RIG_CASE(evq_nested_read_of_the_owner_is_empty, 4)
{
	uint64_t w[P3_EVQ_WORDS], seq = 77;
	post(r, 2);
	get(r, ME, P3_EVQ_EVENT, FIRST);
	p3_set(&r->rx.owner.inside, 1);
	assert_int_equal(p3_evq_get(&r->rx, P3_EVQ_FIRST, ME, w, &seq), P3_EVQ_EMPTY);
	assert_int_equal(seq, 77);
	assert_int_equal(p3_get(&r->rx.owner.inside), 1);
	peek(r, P3_EVQ_EVENT, FIRST + 1);
	p3_set(&r->rx.owner.inside, 0);
	get(r, ME, P3_EVQ_EVENT, FIRST + 1);
}

/* Setting up a queue, which is done with the lease, takes the same time for each n. */
RIG_CASE(format_touches_no_record, 4)
{
	const uint32_t n = 1u << 20;
	void *none = mmap(
		NULL, p3_evq_bytes(n), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(none, MAP_FAILED);
	p3_set(&r->ring->rec, (struct p3_event_record *)none);
	p3_evq_format(r->ring, n, P3_EVQ_START, &r->tx, &r->rx);
	munmap(none, p3_evq_bytes(n));
}

static void renew(struct rig *r, uint32_t by)
{
	p3_evq_retire(&r->rx, by);
	format(r, r->tx.n, p3_evq_start(r->ring, r->tx.n, 0));
}

/* A reader is stopped before it moves the head until the same memory has a queue of
 * another life: that queue has none of its numbers. */
RIG_CASE(evq_heads_of_lives_differ, 4)
{
	post(r, 3);
	get(r, ME, P3_EVQ_EVENT, FIRST);
	uint64_t was = p3_get(&r->ring->head);
	for (uint64_t life = 1; life < 4; life++) {
		p3_evq_retire(&r->rx, ME);
		p3_set(&r->ring->tail, 0);
		format(r, r->tx.n, p3_evq_start(r->ring, r->tx.n, life));
		for (unsigned i = 0; i < 6; i++) {
			uint64_t late = was;
			post(r, 1);
			assert_false(p3_cas64(&r->ring->head, &late, was + 1));
			get(r, ME, P3_EVQ_EVENT, r->tx.tail);
		}
		was = p3_get(&r->ring->head) - 3;
	}
}

/* A reader is stopped before its compare-and-swap until the records of its ended queue
 * serve another ring whose numbers are the same. */
CASE(evq_late_reader_takes_nothing_from_records_of_another_ring)
{
	uint64_t w[P3_EVQ_WORDS], seq;
	struct rig *r = rig_new(4), *other = rig_new(4);
	post(r, 1);
	struct p3_evq_place at = p3_evq_place(&r->rx);
	uint64_t head = p3_get(&at.ring->head), late = head;
	p3_evq_retire(&r->rx, ME);
	p3_set(&other->ring->rec, p3_get(&r->ring->rec));
	format(other, 4, P3_EVQ_START);
	post(other, 1);
	assert_int_equal(p3_get(&at.rec[head & 3].sequence), head + 1);
	assert_false(p3_cas64(&at.ring->head, &late, head + 1));
	assert_int_equal(p3_evq_get(&r->rx, P3_EVQ_FIRST, OTHER, w, &seq), P3_EVQ_EMPTY);
	assert_int_equal(p3_evq_peek(&r->rx, P3_EVQ_FIRST, w, &seq), P3_EVQ_EMPTY);
	get(other, ME, P3_EVQ_EVENT, FIRST);
	rig_free(other);
	rig_free(r);
}

/* A reader is stopped in the middle of its look until its queue has ended and the
 * records hold words that no queue would write: the look must end. */
RIG_CASE(evq_late_reader_does_not_look_for_ever, 4)
{
	pthread_t thread;
	struct other o = {.rig = r};
	post(r, 2);
	get(r, ME, P3_EVQ_EVENT, FIRST);
	get(r, OTHER, P3_EVQ_EVENT, FIRST + 1);
	post(r, 1);
	p3_set(&p3_get(&r->ring->rec)[(r->tx.tail - 1) & 3].sequence, UINT64_MAX);
	assert_int_equal(pthread_create(&thread, NULL, get_as_other, &o), 0);
	/* pause: a stagger, in which the reader begins its look */
	usleep(20000);
	p3_evq_retire(&r->rx, ME);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(o.got, P3_EVQ_EMPTY);
}

/* The owner is stopped before it leaves an ended queue, and clears inside much later. */
RIG_CASE(evq_owner_who_may_still_come_is_the_last_one, 4)
{
	post(r, 1);
	get(r, OTHER, P3_EVQ_EVENT, FIRST);
	renew(r, ME);
	p3_set(&r->rx.owner.inside, 1);
	for (unsigned i = 0; i < 3; i++) {
		uint64_t w[P3_EVQ_WORDS], seq;
		post(r, 1);
		assert_int_equal(
			p3_evq_get(&r->rx, P3_EVQ_FIRST, i % 2 ? OTHER : ME, w, &seq),
			P3_EVQ_EVENT);
		assert_int_equal(seq, r->tx.tail);
		assert_int_equal(p3_get(&r->rx.owner.thread), P3_EVQ_NOBODY);
		renew(r, ME);
		p3_set(&r->rx.owner.inside, 1);
	}
}

/* The second reader is stopped before it sets shared. */
RIG_CASE(evq_owner_of_a_shared_queue_is_the_last_one, 4)
{
	post(r, 2);
	get(r, ME, P3_EVQ_EVENT, FIRST);
	get(r, OTHER, P3_EVQ_EVENT, FIRST + 1);
	renew(r, ME);
	post(r, 1);
	get(r, ME, P3_EVQ_EVENT, r->tx.tail);
	assert_int_equal(p3_get(&r->rx.owner.thread), P3_EVQ_NOBODY);
	assert_int_equal(p3_get(&r->rx.owner.shared), 2);
}

RIG_CASE(evq_owner_who_ends_its_queue_has_successors, 4)
{
	post(r, 1);
	get(r, OTHER, P3_EVQ_EVENT, FIRST);
	renew(r, OTHER);
	post(r, 1);
	get(r, ME, P3_EVQ_EVENT, r->tx.tail);
	assert_int_equal(p3_get(&r->rx.owner.thread), ME);
	assert_int_equal(p3_get(&r->rx.owner.shared), 0);
}

static bool look(struct rig *r, uint32_t thread, struct p3_evq_next *next_out)
{
	return p3_evq_look(&r->rx, P3_EVQ_FIRST, thread, next_out);
}

/* The short way is the owner's, and there is none before the first get. */
RIG_CASE(evq_owner_takes_an_event_after_a_look, 4)
{
	struct p3_evq_next next;
	post(r, 3);
	assert_false(look(r, ME, &next));
	assert_null(next.rec);
	get(r, ME, P3_EVQ_EVENT, FIRST);
	assert_false(look(r, OTHER, &next));
	assert_null(next.rec);
	assert_true(look(r, ME, &next));
	assert_int_equal(next.head, FIRST);
	assert_int_equal(p3_get(&next.rec->sequence), FIRST + 1);
	assert_true(p3_evq_took(&r->rx, &next));
	get(r, ME, P3_EVQ_EVENT, FIRST + 2);
	assert_false(look(r, ME, &next));
	assert_false(p3_get(&r->rx.owner.inside));
	assert_non_null(next.rec); /* the place of the event that comes next */
	assert_false(p3_evq_is_come(&next));
	post(r, 1);
	assert_true(p3_evq_is_come(&next));
	get(r, ME, P3_EVQ_EVENT, FIRST + 3);
	assert_empty(r, ME);
}

CASE(evq_has_one_line_for_each_writer)
{
	assert_int_equal(offsetof(struct p3_evq_ring, head), P3_LINE);
	assert_int_equal(sizeof(struct p3_evq_ring), 2 * P3_LINE);
	assert_int_equal(p3_evq_bytes(1), P3_LINE);
	assert_int_equal(p3_evq_bytes(1024), 1024 * P3_LINE);
}
