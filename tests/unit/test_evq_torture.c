/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A writer and readers of one event queue at once.  A paced writer never has more than
 * n events unread: then every event arrives once, and none is reported lost.  A writer
 * without pace overwrites: then each event is whole and in order, and a gap is reported
 * exactly where it is.
 */
#include <stdlib.h>
#include <string.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>

#include "shm/evq.h"
#include "support/patience.h"
#include "unit/torture.h"
#include "support/cases.h"

#define MOST_RECORDS 64u
#define MOST_READERS 3u
#define MOST_SEEN    65536u /* events of one round with several readers */
#define FIRST        (P3_EVQ_START + 1)

static const uint32_t sizes[] = {1, 2, 4, MOST_RECORDS};

#define NSIZES ((unsigned)(sizeof sizes / sizeof sizes[0]))

struct writer {
	struct p3_evq_tx tx;
	uint64_t until;
	uint64_t most; /* events */
	bool paced;
	p3_a64 *last; /* sequence of the last event, once known */
	struct verdict verdict;
};

struct reader {
	struct p3_evq_rx *rx;
	uint32_t thread;
	bool paced;
	bool alone; /* no other reader takes events */
	p3_a64 *last;
	uint64_t before; /* sequence of the previous event */
	uint64_t count, lost;
	uint8_t *seen; /* indexed by sequence - FIRST */
	struct verdict verdict;
};

static uint64_t word_of(uint64_t sequence, unsigned i)
{
	return mix(sequence * 16 + i);
}

static bool wait_for_room(struct writer *w)
{
	struct spin spin = {0, 0};
	while (w->paced && w->tx.tail - p3_acquire(&w->tx.ring->head) >= w->tx.n)
		if (!SIDE_CHECK(&w->verdict, spin_on(&spin), w->tx.tail + 1))
			return false;
	return true;
}

/* Write one event in pairs, the next one word by word, and the upper half of a word
 * alone. */
static void post(struct writer *w)
{
	struct p3_event_record *rec = p3_evq_begin(&w->tx);
	uint64_t sequence = w->tx.tail + 1;
	unsigned i = 0;
	for (; sequence % 2 && i + 1 < P3_EVQ_WORDS; i += 2) {
		_Alignas(16) uint64_t two[] = {
			(uint32_t)word_of(sequence, i), word_of(sequence, i + 1)};
		p3_release_pair(&rec->w[i], two); /* EVQ.2 */
		p3_release_high(&rec->w[i], (uint32_t)(word_of(sequence, i) >> 32));
	}
	for (; i < P3_EVQ_WORDS; i++)
		p3_release(&rec->w[i], word_of(sequence, i));
	p3_evq_commit(&w->tx, rec);
}

static void *run_writer(void *arg)
{
	struct writer *w = arg;
	uint64_t seed = 5;
	for (uint64_t count = 0; count < w->most; count++) {
		if (count % 64 == 63 && p3_now_ns() >= w->until)
			break;
		if (!wait_for_room(w))
			break;
		post(w);
		if (!w->paced && dice(&seed, 64) == 0)
			sched_yield();
	}
	p3_release(w->last, w->tx.tail);
	return NULL;
}

static bool is_whole(struct reader *r, const uint64_t w[P3_EVQ_WORDS], uint64_t sequence)
{
	for (unsigned i = 0; i < P3_EVQ_WORDS; i++)
		if (!SIDE_CHECK(&r->verdict, w[i] == word_of(sequence, i), sequence))
			return false;
	return true;
}

static void mark_seen(struct reader *r, uint64_t sequence)
{
	if (r->seen && SIDE_CHECK(&r->verdict, sequence - FIRST < MOST_SEEN, sequence))
		r->seen[sequence - FIRST]++;
}

static bool take(struct reader *r, enum p3_evq_got got, const uint64_t w[P3_EVQ_WORDS],
	uint64_t sequence)
{
	bool gap = sequence != r->before + 1, lost = got == P3_EVQ_LOST;
	SIDE_CHECK(&r->verdict, sequence > r->before, sequence);
	SIDE_CHECK(&r->verdict, !r->paced || !lost, sequence);
	SIDE_CHECK(&r->verdict, !r->alone || gap == lost, sequence);
	mark_seen(r, sequence);
	r->before = sequence;
	r->count++;
	r->lost += lost;
	return is_whole(r, w, sequence) && !r->verdict.why;
}

static bool at_end(struct reader *r)
{
	uint64_t last = p3_acquire(r->last);
	return last && p3_acquire(&r->rx->ring->head) == last;
}

/* Take an event as p3_evq_get() does, but copy it in pairs if this thread owns the
 * queue and an event is there. */
static enum p3_evq_got get(
	struct reader *r, uint64_t w[P3_EVQ_WORDS], uint64_t *sequence_out)
{
	struct p3_evq_next next;
	if (!p3_evq_look(r->rx, P3_EVQ_FIRST, r->thread, &next))
		return p3_evq_get(r->rx, P3_EVQ_FIRST, r->thread, w, sequence_out);
	unsigned i = 0;
	for (; i + 1 < P3_EVQ_WORDS; i += 2)
		p3_acquire_pair(&w[i], &next.rec->w[i]); /* EVQ.2 */
	w[i] = p3_acquire(&next.rec->w[i]);
	*sequence_out = next.head + 1;
	return p3_evq_took(r->rx, &next) ? P3_EVQ_EVENT : P3_EVQ_EMPTY;
}

static void *run_reader(void *arg)
{
	struct reader *r = arg;
	struct spin spin = {0, 0};
	for (;;) {
		uint64_t w[P3_EVQ_WORDS], sequence;
		enum p3_evq_got got = get(r, w, &sequence);
		if (got != P3_EVQ_EMPTY) {
			spin = (struct spin){0, 0};
			if (!take(r, got, w, sequence))
				return NULL;
			continue;
		}
		if (at_end(r) || !SIDE_CHECK(&r->verdict, spin_on(&spin), r->before))
			return NULL;
	}
}

/* A thread that peeks only; its events are whole and their numbers never decrease. */
static void *run_peeker(void *arg)
{
	struct reader *r = arg;
	struct spin spin = {0, 0};
	while (!at_end(r)) {
		uint64_t w[P3_EVQ_WORDS], sequence;
		if (p3_evq_peek(r->rx, P3_EVQ_FIRST, w, &sequence) == P3_EVQ_EMPTY) {
			if (!SIDE_CHECK(&r->verdict, spin_on(&spin), r->before))
				break;
			continue;
		}
		spin = (struct spin){0, 0};
		if (!SIDE_CHECK(&r->verdict, sequence >= r->before, sequence) ||
			!is_whole(r, w, sequence))
			break;
		r->before = sequence;
		r->count++;
	}
	return NULL;
}

struct rig {
	struct p3_evq_ring *ring;
	struct p3_evq_rx rx;
	p3_a64 last;
	struct writer writer;
	struct reader reader[MOST_READERS];
};

static void rig_init(struct rig *r, uint32_t n, bool paced, bool alone, uint64_t ns)
{
	*r = (struct rig){.ring = r->ring};
	p3_evq_blank(p3_get(&r->ring->rec), n, P3_EVQ_START);
	p3_evq_format(r->ring, n, P3_EVQ_START, &r->writer.tx, &r->rx);
	r->writer.until = p3_now_ns() + ns;
	r->writer.most = UINT64_MAX;
	r->writer.paced = paced;
	r->writer.last = &r->last;
	for (uint32_t i = 0; i < MOST_READERS; i++)
		r->reader[i] = (struct reader){.rx = &r->rx,
			.thread = i + 1,
			.paced = paced,
			.alone = alone,
			.last = &r->last,
			.before = FIRST - 1};
}

#define RING_BYTES (sizeof(struct p3_evq_ring) + p3_evq_bytes(MOST_RECORDS))

/* Make a ring in this memory, with its records behind it. */
static struct p3_evq_ring *ring_in(void *memory)
{
	struct p3_evq_ring *ring = memory;
	memset(memory, 0, RING_BYTES);
	p3_set(&ring->rec, (struct p3_event_record *)(ring + 1));
	return ring;
}

static struct p3_evq_ring *ring_new(void)
{
	void *memory = aligned_alloc(P3_LINE, RING_BYTES);
	assert_non_null(memory);
	return ring_in(memory);
}

static void assert_well(const struct rig *r)
{
	for (uint32_t i = 0; i < MOST_READERS; i++)
		assert_side_is_well("reader", &r->reader[i].verdict);
	assert_side_is_well("writer", &r->writer.verdict);
}

static void one_reader(bool paced)
{
	struct rig r = {.ring = ring_new()};
	for (unsigned i = 0; i < NSIZES; i++) {
		rig_init(&r, sizes[i], paced, true, torture_ns(2 * NSIZES));
		run_threads(2, (torture_side *const[]){run_writer, run_reader},
			(void *const[]){&r.writer, &r.reader[0]});
		assert_well(&r);
		uint64_t posted = r.writer.tx.tail - P3_EVQ_START;
		assert_in_range(r.reader[0].count, 1, posted);
		assert_int_equal(r.reader[0].before, r.writer.tx.tail);
		if (paced)
			assert_int_equal(r.reader[0].count, posted);
	}
	free(r.ring);
}

CASE(evq_gives_one_reader_all_events_of_a_paced_writer)
{
	one_reader(true);
}

CASE(evq_gives_one_reader_whole_events_of_a_fast_writer)
{
	one_reader(false);
}

/* Check that no event was taken twice, and that each event of a paced writer was
 * taken. */
static void assert_seen_once(const struct rig *r, unsigned readers, bool paced)
{
	uint64_t posted = r->writer.tx.tail - P3_EVQ_START;
	for (uint64_t s = 0; s < posted; s++) {
		unsigned times = 0;
		for (unsigned i = 0; i < readers; i++)
			times += r->reader[i].seen[s];
		assert_in_range(times, paced ? 1 : 0, 1);
	}
}

static void several_rounds(bool paced, uint32_t n, uint64_t ns)
{
	static uint8_t seen[MOST_READERS][MOST_SEEN];
	struct rig r = {.ring = ring_new()};
	uint64_t end = p3_now_ns() + ns;
	do {
		rig_init(&r, n, paced, false, 1000000);
		r.writer.most = MOST_SEEN;
		memset(seen, 0, sizeof seen);
		for (unsigned i = 0; i < MOST_READERS; i++)
			r.reader[i].seen = seen[i];
		run_threads(4,
			(torture_side *const[]){
				run_writer, run_reader, run_reader, run_peeker},
			(void *const[]){
				&r.writer, &r.reader[0], &r.reader[1], &r.reader[2]});
		assert_well(&r);
		assert_seen_once(&r, 2, paced);
	} while (p3_now_ns() < end);
	free(r.ring);
}

/* In each of the short rounds one reader loses its ownership in the middle. */
CASE(evq_gives_each_event_to_one_of_two_readers)
{
	for (unsigned i = 0; i < NSIZES; i++)
		several_rounds(true, sizes[i], torture_ns(2 * NSIZES));
}

CASE(evq_gives_no_event_twice_when_it_overflows)
{
	for (unsigned i = 0; i < NSIZES; i++)
		several_rounds(false, sizes[i], torture_ns(2 * NSIZES));
}

/* The reader that handlers interrupt in its own thread, and its events. */
static struct reader *interrupted;
static volatile sig_atomic_t taken_in_handler;

static void on_alarm(int signal)
{
	uint64_t w[P3_EVQ_WORDS], sequence;
	(void)signal;
	if (p3_evq_get(interrupted->rx, P3_EVQ_FIRST, interrupted->thread, w,
		    &sequence) == P3_EVQ_EMPTY)
		return;
	if (is_whole(interrupted, w, sequence))
		mark_seen(interrupted, sequence);
	taken_in_handler++;
}

/* A bare loop: the order of the handlers' events is invisible from outside. */
static void *run_interrupted_reader(void *arg)
{
	struct reader *r = arg;
	struct spin spin = {0, 0};
	while (!at_end(r)) {
		uint64_t w[P3_EVQ_WORDS], sequence;
		enum p3_evq_got got =
			p3_evq_get(r->rx, P3_EVQ_FIRST, r->thread, w, &sequence);
		if (got == P3_EVQ_EMPTY) {
			if (!SIDE_CHECK(&r->verdict, spin_on(&spin), 0))
				break;
			continue;
		}
		spin = (struct spin){0, 0};
		SIDE_CHECK(&r->verdict, got == P3_EVQ_EVENT, sequence);
		if (!is_whole(r, w, sequence))
			break;
		mark_seen(r, sequence);
		r->count++;
	}
	return NULL;
}

static void ring_alarms(suseconds_t us)
{
	struct itimerval every = {{0, us}, {0, us}};
	assert_int_equal(setitimer(ITIMER_REAL, &every, NULL), 0);
}

/* All other threads block the signal. */
static void *run_noisy_reader(void *arg)
{
	sigset_t mask;
	sigemptyset(&mask);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	run_interrupted_reader(arg);
	sigfillset(&mask);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	return NULL;
}

static void one_noisy_round(struct rig *r)
{
	static uint8_t seen[MOST_SEEN];
	rig_init(r, 4, true, true, 50000000);
	r->writer.most = MOST_SEEN;
	memset(seen, 0, sizeof seen);
	r->reader[0].seen = seen;
	interrupted = &r->reader[0];
	ring_alarms(200);
	run_threads(2, (torture_side *const[]){run_writer, run_noisy_reader},
		(void *const[]){&r->writer, &r->reader[0]});
	ring_alarms(0);
	assert_well(r);
	assert_seen_once(r, 1, true);
}

CASE(evq_loses_nothing_to_a_handler_that_reads_too)
{
	struct rig r = {.ring = ring_new()};
	struct sigaction act = {.sa_handler = on_alarm}, before;
	sigset_t all, mask;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	sigaction(SIGALRM, &act, &before);
	taken_in_handler = 0;
	struct patience p = patience_begin();
	uint64_t end = p3_now_ns() + torture_ns(2);
	do
		one_noisy_round(&r);
	while (p3_now_ns() < end || (!taken_in_handler && !patience_is_over(&p)));
	assert_int_not_equal(taken_in_handler, 0);
	signal(SIGALRM, SIG_IGN); /* an alarm may be pending */
	sigaction(SIGALRM, &before, NULL);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	free(r.ring);
}

/* Post and take in turn, so that every record is rewritten unmarked all the time. */
static void *run_writer_that_takes(void *arg)
{
	struct rig *r = arg;
	uint64_t w[P3_EVQ_WORDS], sequence;
	while (p3_now_ns() < r->writer.until && !r->writer.verdict.why)
		for (int i = 0; i < 64; i++) {
			post(&r->writer);
			enum p3_evq_got got =
				p3_evq_get(&r->rx, P3_EVQ_FIRST, 1, w, &sequence);
			SIDE_CHECK(&r->writer.verdict, got == P3_EVQ_EVENT, sequence);
			SIDE_CHECK(&r->writer.verdict, sequence == r->writer.tx.tail,
				sequence);
		}
	p3_release(&r->last, r->writer.tx.tail);
	return NULL;
}

CASE(evq_peek_gives_whole_events_while_others_take_them)
{
	struct rig r = {.ring = ring_new()};
	for (unsigned i = 0; i < NSIZES; i++) {
		rig_init(&r, sizes[i], true, true, torture_ns(2 * NSIZES));
		run_threads(2, (torture_side *const[]){run_writer_that_takes, run_peeker},
			(void *const[]){&r, &r.reader[0]});
		assert_well(&r);
	}
	free(r.ring);
}

static int writer_process(void *arg)
{
	struct writer *w = arg;
	run_writer(w);
	return side_status("writer", &w->verdict);
}

/* The ring is in memory that two processes share. */
CASE(evq_gives_whole_events_to_another_process)
{
	size_t len = RING_BYTES + sizeof(p3_a64);
	void *mem = mmap(
		NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(mem, MAP_FAILED);
	p3_a64 *last = (p3_a64 *)((char *)mem + len - sizeof *last);
	for (unsigned i = 0; i < 2 * NSIZES; i++) {
		struct rig r = {.ring = ring_in(mem)};
		bool paced = i % 2 == 0;
		rig_init(&r, sizes[i / 2], paced, true, torture_ns(2 * NSIZES));
		p3_set(last, 0);
		r.writer.last = r.reader[0].last = last;
		pid_t pid = run_child(writer_process, &r.writer);
		run_reader(&r.reader[0]);
		assert_side_is_well("reader", &r.reader[0].verdict);
		assert_int_equal(wait_child(pid), 0);
		if (paced)
			assert_int_equal(r.reader[0].count, p3_get(last) - P3_EVQ_START);
		assert_int_equal(r.reader[0].before, p3_get(last));
	}
	munmap(mem, len);
}
