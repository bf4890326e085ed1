/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames, checksums, go-back-n and faults, on a clock of the test's own. */

#include "far/faults.h"
#include "nic/wire/crc.h"
#include "nic/wire/frame.h"
#include "support/cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_AB   0x1234u
#define KEY_BA   0xabcdu
#define DEPTH    48u
#define STEP_NS  20000u
#define ASK_NS   1000000u
#define ASK_MOST 16000000u
#define HELD     8u /* frames of a direction that are late at a time */

/* Faults of the medium. */
enum fault {
	DROP,
	CORRUPT,
	DELAY, /* the frame comes up to 1 ms later, when others have passed it */
	DUP,
	SWAP, /* it comes behind the next one, or a moment later if there is none */
	FAULTS
};
static const char *const names[FAULTS] = {"drop", "corrupt", "delay", "dup", "swap"};

/* One direction of the medium. */
struct pipe {
	uint32_t head, tail;
	uint32_t len[DEPTH];
	struct p3_frame f[DEPTH];
	uint32_t ppm[FAULTS]; /* frames in a million */
	uint64_t state, met[FAULTS];
	struct {
		uint64_t until; /* 0: the place is free */
		bool behind_next;
		struct p3_frame f;
	} held[HELD];
};

struct end {
	struct p3_gbn gbn;
	struct p3_frame queue[P3_FRAME_WINDOW];
	struct pipe *out, *in;
	uint64_t made, got; /* frames with data */
	uint32_t probed;    /* probes that were put */
	bool kept;          /* the medium has all frames still */
};

struct pair {
	struct pipe ab, ba;
	struct end a, b;
	uint64_t now;
};

static bool put(struct pipe *p, const struct p3_frame *f, uint32_t len)
{
	if (p->tail - p->head == DEPTH)
		return false;
	memcpy(&p->f[p->tail % DEPTH], f, len);
	p->len[p->tail++ % DEPTH] = len;
	return true;
}

static uint64_t *now_of_put;

/* Put the frames that were held back until now. */
static void release(struct pipe *p, bool passed)
{
	for (uint32_t i = 0; i < HELD; i++)
		if (p->held[i].until &&
			(*now_of_put >= p->held[i].until ||
				(passed && p->held[i].behind_next)) &&
			put(p, &p->held[i].f, p3_frame_len(&p->held[i].f)))
			p->held[i].until = 0;
}

static bool strikes(struct pipe *p, enum fault what)
{
	return faults_strike(&p->state, p->ppm[what], &p->met[what]);
}

/* Hold a frame back if a fault strikes it and there is a place for it. */
static bool is_held(struct pipe *p, const struct p3_frame *f)
{
	uint32_t i = 0;
	uint64_t late = 10000 + faults_draw(&p->state) % 990000;
	bool delay = strikes(p, DELAY), behind = !delay && strikes(p, SWAP);
	while (i < HELD && p->held[i].until)
		i++;
	if (i == HELD || !(delay || behind))
		return false;
	p->held[i].until = *now_of_put + (delay ? late : 200000);
	p->held[i].behind_next = behind;
	memcpy(&p->held[i].f, f, p3_frame_len(f));
	return true;
}

static bool put_faulty(void *arg, const struct p3_frame *f, uint32_t len)
{
	struct pipe *p = ((struct end *)arg)->out;
	struct p3_frame sent;
	if (p->tail - p->head == DEPTH)
		return false; /* it is put again later */
	((struct end *)arg)->probed += f->kind == P3_FRAME_PROBE;
	if (strikes(p, DROP) || is_held(p, f))
		return true;
	memcpy(&sent, f, len);
	if (strikes(p, CORRUPT)) /* not the word of the medium */
		faults_flip(&p->state, &sent.sum, len - offsetof(struct p3_frame, sum));
	(void)put(p, &sent, len);
	if (strikes(p, DUP))
		(void)put(p, &sent, len);
	release(p, true);
	return true;
}

static bool keeps(void *arg, const struct p3_frame *f)
{
	(void)f;
	return ((struct end *)arg)->kept;
}

static void drop(void *arg, struct p3_frame *f)
{
	(void)arg;
	(void)f;
}

static void begin(struct end *e, uint32_t key_out, uint32_t key_in)
{
	static const struct p3_gbn_medium medium = {
		.put = put_faulty, .keeps = keeps, .drop = drop};
	p3_gbn_init(&e->gbn, &medium, e, key_out, key_in);
	p3_gbn_set_pace(&e->gbn, 0, ASK_NS, ASK_MOST);
	p3_gbn_set_room(&e->gbn, P3_FRAME_WINDOW);
}

/* Begin anew with the pair: each of these faults meets as many of its frames. */
static struct pair *pair_with_faults(uint32_t which, uint32_t ppm, uint64_t seed)
{
	static struct pair pair;
	struct pair *p = &pair;
	memset(p, 0, sizeof *p);
	begin(&p->a, KEY_AB, KEY_BA);
	begin(&p->b, KEY_BA, KEY_AB);
	for (uint32_t i = 0; i < FAULTS; i++)
		p->ab.ppm[i] = p->ba.ppm[i] = which >> i & 1 ? ppm : 0;
	p->ab.state = 2 * seed;
	p->ba.state = 2 * seed + 1;
	p->a.out = p->b.in = &p->ab;
	p->b.out = p->a.in = &p->ba;
	now_of_put = &p->now;
	return p;
}

static struct pair *pair_new(void)
{
	return pair_with_faults(0, 0, 0);
}

/* Return the content of the i-th frame. */
static uint32_t cells_of(uint64_t i)
{
	return 1 + (uint32_t)(i * 7 % P3_FRAME_CELLS);
}

static void fill(struct p3_frame *f, uint64_t i)
{
	f->kind = P3_FRAME_PARTS;
	f->cells = (uint16_t)cells_of(i);
	f->len = (uint32_t)i;
	for (uint32_t k = 0; k < 64u * f->cells; k++)
		f->data[k] = (unsigned char)(i * 31 + k);
}

static void check(const struct p3_frame *f, uint64_t i)
{
	assert_int_equal(f->len, i);
	assert_int_equal(f->cells, cells_of(i));
	for (uint32_t k = 0; k < 64u * f->cells; k++)
		assert_int_equal(f->data[k], (unsigned char)(i * 31 + k));
}

static void make(struct end *e, uint64_t most, uint64_t now)
{
	while (e->made < most && p3_gbn_has_room(&e->gbn)) {
		struct p3_frame *f = &e->queue[e->gbn.next % P3_FRAME_WINDOW];
		fill(f, e->made++);
		p3_gbn_commit(&e->gbn, f, now);
	}
}

static void receive(struct end *e, uint64_t now)
{
	struct p3_frame f;
	while (e->in->head != e->in->tail) {
		uint32_t at = e->in->head++ % DEPTH, len = e->in->len[at];
		memcpy(&f, &e->in->f[at], len);
		if (p3_gbn_take(&e->gbn, &f, len, now))
			check(&f, e->got++);
	}
}

static void turn(struct pair *p, struct end *e, uint64_t most)
{
	receive(e, p->now);
	make(e, most, p->now);
	p3_gbn_send(&e->gbn, p->now);
	release(e->out, false);
}

static bool is_over(const struct pair *p, uint64_t n)
{
	return p->a.got == n && p->b.got == n && !p3_gbn_waits(&p->a.gbn) &&
	       !p3_gbn_waits(&p->b.gbn);
}

/* Send n frames each way. */
static void run(struct pair *p, uint64_t n)
{
	for (uint64_t turns = 0; !is_over(p, n); turns++) {
		assert_true(turns < 10000000);
		p->now += STEP_NS;
		turn(p, &p->a, n);
		turn(p, &p->b, n);
	}
	for (int i = 0; i < 100; i++, p->now += STEP_NS) { /* delayed frames come now */
		turn(p, &p->a, n);
		turn(p, &p->b, n);
	}
	assert_true(is_over(p, n));
}

/* ---- cases ---- */

CASE(sums_are_crc32c)
{
	unsigned char bytes[300];
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (unsigned char)(i * i + 3);
	assert_int_equal(p3_crc32c(0, "123456789", 9), 0xe3069283);
	assert_int_equal(p3_crc32c_portable(0, "123456789", 9), 0xe3069283);
	for (size_t i = 0; i < sizeof bytes; i++) {
		uint32_t whole = p3_crc32c(0, bytes, i),
			 half = p3_crc32c(0, bytes, i / 2);
		assert_int_equal(whole, p3_crc32c_portable(0, bytes, i));
		assert_int_equal(whole, p3_crc32c(half, bytes + i / 2, i - i / 2));
	}
}

/* Return one frame of a as it lies on the medium. */
static uint32_t one_frame(struct pair *p, struct p3_frame *f)
{
	make(&p->a, 1, p->now);
	p3_gbn_send(&p->a.gbn, p->now);
	assert_int_equal(p->ab.tail, 1);
	memcpy(f, &p->ab.f[0], p->ab.len[0]);
	return p->ab.len[0];
}

CASE(every_flipped_bit_is_seen)
{
	struct p3_frame f;
	struct pair *p = pair_new();
	uint32_t len = one_frame(p, &f);
	const uint32_t from = 8 * offsetof(struct p3_frame, sum);
	for (uint32_t bit = from; bit < 8 * len; bit++) {
		((unsigned char *)&f)[bit / 8] ^= (unsigned char)(1u << bit % 8);
		assert_false(p3_gbn_take(&p->b.gbn, &f, len, p->now));
		assert_int_equal(p->b.gbn.bad_sums, bit + 1 - from);
		((unsigned char *)&f)[bit / 8] ^= (unsigned char)(1u << bit % 8);
	}
	assert_int_equal(p->b.gbn.expected, P3_FRAME_START);
	assert_false(p->b.gbn.owes_ack);
	assert_false(p3_gbn_take(&p->b.gbn, &f, len - 64, p->now));
	assert_false(p3_gbn_take(&p->b.gbn, &f, len + 64, p->now));
	assert_true(p3_gbn_take(&p->b.gbn, &f, len, p->now));
}

/* A pair on a medium that loses nothing, and shows damage. */
static struct pair *pair_intact(void)
{
	struct pair *p = pair_new();
	p->a.gbn.intact = p->b.gbn.intact = true;
	return p;
}

/* Acknowledgements wait for a frame that carries them, until ack_ns have passed, or half
 * of the room is used. */
CASE(acknowledgements_ride_on_frames)
{
	struct pair *p = pair_intact();
	p->a.gbn.ack_ns = p->b.gbn.ack_ns = 10 * STEP_NS;
	for (uint64_t i = 1; i <= 100; i++) { /* ping-pong */
		p->now += STEP_NS;
		turn(p, &p->a, i);
		turn(p, &p->b, i);
	}
	assert_int_equal(p->ab.tail, 100);
	assert_int_equal(p->ba.tail, 100);
	turn(p, &p->a, 101);
	turn(p, &p->b, 100);
	assert_int_equal(p->ba.tail, 100);
	assert_int_equal(p3_gbn_due(&p->b.gbn), p->now + 10 * STEP_NS);
	p->now += 10 * STEP_NS;
	turn(p, &p->b, 100);
	assert_int_equal(p->ba.tail, 101);
	turn(p, &p->a, 101 + P3_FRAME_WINDOW / 2);
	turn(p, &p->b, 100);
	assert_int_equal(p->ba.tail, 102);
	turn(p, &p->a, 102 + P3_FRAME_WINDOW / 2);
	turn(p, &p->b, 100);
	assert_int_equal(p->ba.tail, 102);
	p3_gbn_hurry(&p->b.gbn);
	turn(p, &p->b, 100);
	assert_int_equal(p->ba.tail, 103);
}

/* A frame that was made with another key changes nothing, nor does one that this end has
 * made. */
CASE(only_the_key_makes_frames)
{
	for (int intact = 0; intact < 2; intact++) {
		struct p3_frame f;
		struct pair *p = intact ? pair_intact() : pair_new();
		uint32_t len = one_frame(p, &f), key = p->b.gbn.key_in;
		p->b.gbn.key_in = key ^ 1;
		assert_false(p3_gbn_take(&p->b.gbn, &f, len, p->now));
		p->b.gbn.key_in = p->b.gbn.key_out;
		assert_false(p3_gbn_take(&p->b.gbn, &f, len, p->now));
		assert_int_equal(p->b.gbn.expected, P3_FRAME_START);
		assert_false(p->b.gbn.owes_ack);
		p->b.gbn.key_in = key;
		assert_true(p3_gbn_take(&p->b.gbn, &f, len, p->now));
	}
}

CASE(frames_of_an_intact_medium_travel)
{
	struct pair *p = pair_intact();
	run(p, 500);
	assert_int_equal(p->a.gbn.bad_sums + p->b.gbn.bad_sums, 0);
}

/* A frame that the medium still has stays as it is, and goes once it has come back. */
CASE(a_kept_frame_stays_as_it_is)
{
	struct p3_frame was;
	struct pair *p = pair_intact();
	make(&p->a, 1, p->now);
	p3_gbn_send(&p->a.gbn, p->now);
	assert_int_equal(p->ab.tail, 1);
	const struct p3_frame *f = p->a.gbn.queue[P3_FRAME_START % P3_FRAME_WINDOW];
	memcpy(&was, f, p->ab.len[0]);
	p->a.kept = true;
	p->a.gbn.room = 1;
	p3_gbn_go_back(&p->a.gbn, p->now);
	p3_gbn_send(&p->a.gbn, p->now);
	assert_int_equal(p->ab.tail, 1);
	assert_memory_equal(&was, f, p->ab.len[0]);
	p->a.kept = false;
	p3_gbn_send(&p->a.gbn, p->now);
	assert_int_equal(p->ab.tail, 2);
	assert_int_equal(f->room, 1);
}

/* The other end's room bounds the frames under way; one may always be. */
CASE(room_bounds_the_sender)
{
	struct pair *p = pair_intact();
	p3_gbn_set_room(&p->a.gbn, 4);
	p3_gbn_set_room(&p->b.gbn, 4);
	turn(p, &p->a, 1000);
	assert_int_equal(p->ab.tail, 4);
	assert_int_equal(p3_gbn_due(&p->a.gbn), p->a.gbn.since + p->a.gbn.wait_ns);
	static const uint32_t rooms[] = {1, 1, 9, 2, P3_FRAME_WINDOW};
	for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) {
		uint32_t all = p->b.gbn.promised - P3_FRAME_START;
		p->b.gbn.room = rooms[i];
		turn(p, &p->b, 0);
		assert_true(p->b.gbn.promised - P3_FRAME_START >= all);
		turn(p, &p->a, 1000);
		assert_int_equal(p->a.gbn.sent, p->b.gbn.promised);
		assert_int_equal(p->a.gbn.sent - p->b.gbn.expected, rooms[i]);
	}
}

/* Frames are not sent again because no answer comes: a stopped peer would find them all.
 * They are sent again when the answer to a probe says that they are missing. */
CASE(a_probe_finds_what_is_missing)
{
	struct pair *p = pair_intact();
	turn(p, &p->a, 5);
	p->ab.head = p->ab.tail; /* these are lost */
	for (int i = 0; i < 10; i++) {
		p->now = p3_gbn_due(&p->a.gbn);
		turn(p, &p->a, 5);
		assert_int_equal(p->ab.tail - p->ab.head, i + 1);
		assert_int_equal(p->ab.len[(p->ab.tail - 1) % DEPTH], 64);
	}
	assert_int_equal(p->a.probed, 10);
	assert_int_equal(p->a.gbn.resent, 0);
	turn(p, &p->b, 0);
	turn(p, &p->a, 5);
	assert_int_equal(p->a.gbn.resent, 5);
	turn(p, &p->b, 0);
	assert_int_equal(p->b.got, 5);
	turn(p, &p->a, 5);
	assert_false(p3_gbn_waits(&p->a.gbn));
}

/* A probe that finds nothing missing makes no frame travel twice. */
CASE(a_probe_of_a_slow_peer_repeats_nothing)
{
	struct pair *p = pair_intact();
	turn(p, &p->a, 5);
	p->now = p3_gbn_due(&p->a.gbn);
	turn(p, &p->a, 5);
	assert_int_equal(p->a.probed, 1);
	turn(p, &p->b, 0);
	turn(p, &p->a, 5);
	assert_int_equal(p->b.got, 5);
	assert_int_equal(p->a.gbn.resent + p->b.gbn.doubles + p->b.gbn.gaps, 0);
	assert_false(p3_gbn_waits(&p->a.gbn));
}

#define SOON_NS   5000000u
#define LATE_NS   200000000u
#define SELDOM_NS 3000000000u

/* Return a pair whose end a has had n frames acknowledged, each after this time. */
static struct pair *pair_used_to(uint64_t ns, uint64_t n)
{
	struct pair *p = pair_intact();
	p3_gbn_set_pace(&p->a.gbn, SOON_NS, LATE_NS, SELDOM_NS);
	for (uint64_t i = 1; i <= n; i++) {
		for (unsigned k = 0; k < 20; k++, p->now += ns / 20)
			turn(p, &p->a, i);
		turn(p, &p->b, 0);
		turn(p, &p->a, i);
	}
	assert_false(p3_gbn_waits(&p->a.gbn));
	return p;
}

/* No later frame shows that the last one of a burst is lost: the sender asks soon, and
 * then more and more rarely. */
CASE(the_loss_of_the_last_frame_is_found_soon)
{
	struct pair *p = pair_used_to(STEP_NS, 100);
	uint64_t waits = SOON_NS;
	turn(p, &p->a, 103);
	p->ab.tail--; /* this one is lost */
	turn(p, &p->b, 0);
	turn(p, &p->a, 103);
	for (uint32_t i = 1; i <= 15; i++) {
		assert_int_equal(p3_gbn_due(&p->a.gbn), p->now + waits);
		p->now += waits;
		turn(p, &p->a, 103);
		assert_int_equal(p->a.probed, i);
		waits = 2 * waits < SELDOM_NS ? 2 * waits : SELDOM_NS;
	}
	assert_int_equal(p->ab.tail - p->ab.head, 15);
	turn(p, &p->b, 0);
	turn(p, &p->a, 103);
	turn(p, &p->b, 0);
	turn(p, &p->a, 103);
	assert_int_equal(p->b.got, 103);
	assert_false(p3_gbn_waits(&p->a.gbn));
	assert_int_equal(p->a.gbn.resent, 1);
	assert_int_equal(p->b.gbn.doubles, 0);
	turn(p, &p->a, 104); /* a frame that was sent twice says nothing about the time */
	assert_int_equal(p3_gbn_due(&p->a.gbn), p->now + SOON_NS);
}

/* Where acknowledgements take long, the sender learns to wait for them. */
CASE(a_slow_medium_is_not_asked_all_the_time)
{
	struct pair *p = pair_used_to(SOON_NS - 1, 100);
	assert_int_equal(p->a.probed, 0);
	turn(p, &p->a, 101);
	assert_in_range(p3_gbn_due(&p->a.gbn) - p->now, 3 * SOON_NS, 4 * SOON_NS);
	p = pair_used_to(8 * SOON_NS, 100);
	assert_in_range(p->a.probed, 1, 10); /* for the first few frames */
	turn(p, &p->a, 101);
	assert_in_range(p3_gbn_due(&p->a.gbn) - p->now, 30 * SOON_NS, 32 * SOON_NS);
	p = pair_used_to(LATE_NS, 100);
	assert_in_range(p->a.probed, 1, 20);
	turn(p, &p->a, 101);
	assert_int_equal(p3_gbn_due(&p->a.gbn), p->now + LATE_NS);
}

CASE(frames_of_another_life_are_damaged)
{
	struct p3_frame f;
	struct pair *p = pair_new();
	uint32_t len = one_frame(p, &f);
	begin(&p->b, KEY_BA, KEY_AB + 1);
	assert_false(p3_gbn_take(&p->b.gbn, &f, len, p->now));
	assert_int_equal(p->b.gbn.bad_sums, 1);
}

CASE(nothing_is_sent_twice_without_faults)
{
	struct pair *p = pair_new();
	run(p, 5000);
	assert_int_equal(p->a.gbn.resent + p->b.gbn.resent, 0);
	assert_int_equal(p->a.gbn.doubles + p->b.gbn.doubles, 0);
	assert_int_equal(p->a.gbn.gaps + p->b.gbn.gaps, 0);
	assert_int_equal(p->a.gbn.next, P3_FRAME_START + 5000); /* it wrapped */
}

CASE(queue_is_full_until_acknowledged)
{
	struct pair *p = pair_new();
	make(&p->a, 1000, p->now);
	assert_int_equal(p->a.made, P3_FRAME_WINDOW);
	assert_false(p3_gbn_has_room(&p->a.gbn));
	turn(p, &p->a, 1000);
	turn(p, &p->b, 0);
	assert_false(p3_gbn_has_room(&p->a.gbn));
	receive(&p->a, p->now);
	assert_true(p3_gbn_has_room(&p->a.gbn));
}

/* A delayed acknowledgement tells nothing new, nor does one of frames that were not
 * sent. */
CASE(old_acknowledgement_changes_nothing)
{
	struct pair *p = pair_new();
	turn(p, &p->a, 1);
	turn(p, &p->b, 0);
	struct p3_frame old = p->ba.f[0];
	run(p, 100);
	assert_false(p3_gbn_take(&p->a.gbn, &old, 64, p->now));
	assert_int_equal(p->a.gbn.base, P3_FRAME_START + 100);
	assert_int_equal(p->a.gbn.bad_sums + p->a.gbn.resent, 0);
}

/* Return the counter that must have moved. */
static uint64_t trace_of(const struct pair *p, int fault)
{
	const struct p3_gbn *a = &p->a.gbn, *b = &p->b.gbn;
	return fault == DROP      ? a->resent + b->resent
	       : fault == CORRUPT ? a->bad_sums + b->bad_sums
	       : fault == DUP     ? a->doubles + b->doubles
				  : a->gaps + b->gaps;
}

static uint64_t all[FAULTS];

static void survives(uint32_t which, uint32_t ppm, uint64_t seed, uint64_t frames)
{
	struct pair *p = pair_with_faults(which, ppm, seed);
	run(p, frames);
	for (int i = 0; i < FAULTS; i++) {
		bool on = which >> i & 1;
		assert_int_equal(p->ab.met[i] > 0, on);
		assert_int_equal(p->ba.met[i] > 0, on);
		assert_true(!on || trace_of(p, i) > 0);
		all[i] += p->ab.met[i] + p->ba.met[i];
	}
}

static uint64_t frames(void)
{
	const char *text = getenv("P3_FRAMES");
	return text ? strtoull(text, NULL, 10) : getenv("P3_QUICK") ? 300 : 2000;
}

/* Return the first of ten seeds. */
static uint64_t first_seed(void)
{
	const char *text = getenv("P3_SEED");
	return text ? 10 * strtoull(text, NULL, 10) : 1;
}

CASE(each_fault_alone_is_survived)
{
	uint64_t first = first_seed();
	for (uint32_t i = 0; i < FAULTS; i++)
		for (uint64_t seed = first; seed < first + 3; seed++)
			survives(1u << i, 300000, seed, frames());
}

CASE(all_faults_together_are_survived)
{
	uint64_t first = first_seed();
	for (uint64_t seed = first; seed < first + 3; seed++)
		survives((1u << FAULTS) - 1, 300000, seed, frames());
	survives((1u << FAULTS) - 1, 10000, first + 3, 10 * frames());
}

int main(void)
{
	int failed = cases_run();
	printf("# medium:");
	for (int i = 0; i < FAULTS; i++)
		printf(" %s %llu", names[i], (unsigned long long)all[i]);
	printf("\n");
	return failed;
}
