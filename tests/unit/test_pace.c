/* SPDX-License-Identifier: BSD-3-Clause */
/* The choosers of long transfers, with times of invented machines. */
#include <stdlib.h>

#include "nic/xfer/movers.h"
#include "support/cases.h"

#define KIB       UINT64_C(1024)
#define SLICES    3000u /* a change must be learnt within these */
#define TRANSFERS 1200u
#define RUNS      2048u /* of copies; a change must be learnt within half of them */

/* ---- lengths of slices ---- */

/* A machine: the price of a read, and ns for each KiB in slices of up to 64, 128, 256 and
 * 512 KiB. */
struct machine {
	uint64_t price;
	double kib[4];
};

/* Longer slices are always better; 10 us are about 210 KiB. */
static const struct machine even = {500, {45, 45, 45, 45}};
/* Longer slices fall out of a small cache. */
static const struct machine small_cache = {300, {55, 72, 90, 110}};
/* Slices of 128 KiB are the best. */
static const struct machine middle = {900, {52, 46, 58, 60}};
/* So fast that the longest slice takes less than 10 us. */
static const struct machine fast = {400, {15, 15, 15, 15}};
/* No slice takes less than 10 us. */
static const struct machine slow = {500, {400, 400, 400, 400}};

/* Return the time of a slice without noise. */
static uint64_t time_of(const struct machine *m, uint64_t len)
{
	unsigned k = 0;
	while (k < 3 && len > (80 * KIB) << k)
		k++;
	return m->price + (uint64_t)(m->kib[k] * (double)len / 1024);
}

static uint32_t dice(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)(*seed >> 33);
}

/* Move slices on a machine: each takes up to 10 % longer than usual, and one in 50 is
 * preempted for up to a millisecond.  Return the median length of the last half. */
static uint64_t move(struct p3_slices *s, const struct machine *m, uint64_t *seed)
{
	uint64_t count[1 + P3_SLICE_MOST / P3_PAGE] = {0}, half = 0, at = 0;
	for (uint32_t i = 0; i < SLICES; i++) {
		uint64_t len = p3_slices_length(s);
		assert_in_range(len, P3_SLICE_LEAST, P3_SLICE_MOST);
		assert_int_equal(len % P3_PAGE, 0);
		count[len / P3_PAGE] += i >= SLICES / 2;
		uint64_t ns = time_of(m, len);
		ns += ns * (dice(seed) % 100) / 1000;
		p3_slices_learn(s, len, dice(seed) % 50 ? ns : ns + dice(seed) % 1000000);
	}
	while ((half += count[at]) < SLICES / 4)
		at++;
	return at * P3_PAGE;
}

CASE(slices_find_the_best_length_of_each_machine)
{
	for (uint64_t seed = 1; seed < 20; seed++) {
		struct p3_slices s;
		uint64_t dice = seed;
		p3_slices_reset(&s);
		assert_int_equal(p3_slices_length(&s), 64 * KIB);
		assert_in_range(move(&s, &even, &dice), 161 * KIB, 224 * KIB);
		p3_slices_reset(&s);
		assert_int_equal(move(&s, &small_cache, &dice), 64 * KIB);
		p3_slices_reset(&s);
		assert_int_equal(move(&s, &middle, &dice), 128 * KIB);
		p3_slices_reset(&s);
		assert_int_equal(move(&s, &fast, &dice), 512 * KIB);
		p3_slices_reset(&s);
		assert_int_equal(move(&s, &slow, &dice), 64 * KIB);
	}
}

CASE(slices_follow_a_change_of_the_machine)
{
	for (uint64_t seed = 1; seed < 20; seed++) {
		struct p3_slices s;
		uint64_t dice = seed;
		p3_slices_reset(&s);
		assert_int_equal(move(&s, &small_cache, &dice), 64 * KIB);
		assert_int_equal(move(&s, &fast, &dice), 512 * KIB);
		assert_int_equal(move(&s, &middle, &dice), 128 * KIB);
		assert_in_range(move(&s, &even, &dice), 161 * KIB, 224 * KIB);
		assert_int_equal(move(&s, &slow, &dice), 64 * KIB);
		assert_int_equal(move(&s, &small_cache, &dice), 64 * KIB);
	}
}

/* A length on trial takes 10 us at most, too, by the times before it. */
CASE(slices_take_a_limited_time)
{
	const struct machine *const all[] = {&even, &small_cache, &middle, &fast};
	for (unsigned i = 0; i < sizeof all / sizeof all[0]; i++) {
		struct p3_slices s;
		uint64_t longest = 0;
		p3_slices_reset(&s);
		for (unsigned turn = 0; turn < SLICES; turn++) {
			uint64_t len = p3_slices_length(&s), ns = time_of(all[i], len);
			longest = ns > longest ? ns : longest;
			p3_slices_learn(&s, len, ns);
		}
		assert_true(longest <= P3_SLICE_NS * 5 / 4);
	}
}

/* Transfers shorter than the best slice teach nothing about longer ones. */
CASE(slices_learn_from_messages_of_any_length)
{
	struct p3_slices s;
	p3_slices_reset(&s);
	for (unsigned turn = 0; turn < SLICES; turn++) {
		uint64_t len = p3_slices_length(&s);
		len = len < 100 * KIB ? len : 100 * KIB;
		p3_slices_learn(&s, len, time_of(&fast, len));
	}
	assert_in_range(p3_slices_length(&s), 128 * KIB, P3_SLICE_MOST);
	uint64_t seed = 1;
	assert_int_equal(move(&s, &fast, &seed), 512 * KIB);
}

/* Return the number of slices until the next lone one, which is not moved yet. */
static unsigned usual_slices(struct p3_slices *s)
{
	unsigned n = 0;
	for (; p3_slices_lone_length(s) == p3_slices_length(s); n++) {
		uint64_t len = p3_slices_length(s);
		assert_true(n <= P3_CAUTION_MOST);
		p3_slices_learn(s, len, time_of(&even, len));
	}
	return n;
}

static void move_lone(struct p3_slices *s, bool waited)
{
	uint64_t len = p3_slices_lone_length(s), ns = time_of(&even, len);
	assert_true(len > p3_slices_length(s) && ns <= P3_LONE_NS * 5 / 4);
	p3_slices_learn_lone(s, len, ns, waited);
}

CASE(lone_slices_are_rare_where_others_wait_for_them)
{
	struct p3_slices s;
	uint64_t seed = 1;
	p3_slices_reset(&s);
	(void)move(&s, &even, &seed);
	assert_int_equal(p3_slices_lone_length(&s), P3_LONE_MOST);
	for (unsigned n = P3_CAUTION; n < 2 * P3_CAUTION_MOST; n *= 2) {
		move_lone(&s, true);
		assert_int_equal(usual_slices(&s), n);
	}
	move_lone(&s, true);
	assert_int_equal(usual_slices(&s), P3_CAUTION_MOST);
	for (unsigned n = 0; n < P3_CAUTION_MOST; n++)
		move_lone(&s, false);
	move_lone(&s, true);
	assert_int_equal(usual_slices(&s), P3_CAUTION);
}

CASE(lone_slices_take_a_limited_time)
{
	const struct machine *const all[] = {&even, &small_cache, &middle, &fast, &slow};
	for (unsigned i = 0; i < sizeof all / sizeof all[0]; i++) {
		struct p3_slices s;
		p3_slices_reset(&s);
		for (unsigned turn = 0; turn < SLICES; turn++) {
			uint64_t len = p3_slices_lone_length(&s);
			uint64_t ns = time_of(all[i], len);
			assert_in_range(len, p3_slices_length(&s), P3_LONE_MOST);
			assert_int_equal(len % P3_PAGE, 0);
			if (turn > 10 && len > P3_SLICE_LEAST)
				assert_true(ns <= P3_LONE_NS * 5 / 4);
			p3_slices_learn_lone(&s, len, ns, false);
		}
	}
}

/* ---- window or read ---- */

static struct p3_nic *nic;

/* Let transfers of 1 MiB take these times, of puts, or of gets if get is not NULL; return
 * the number of those by window in the last half. */
static unsigned transfer(struct p3_pending *get, uint64_t bulk_ns, uint64_t cma_ns)
{
	unsigned by_window = 0;
	struct p3_pull pull = {.length = 1024 * KIB, .get = get};
	for (unsigned i = 0; i < TRANSFERS; i++) {
		bool bulk = p3_xfer_pick(nic, &pull);
		assert_int_equal(pull.began, bulk ? P3_MOVE_BULK : P3_MOVE_CMA);
		if (pull.began_ns)
			p3_pace_learn(&nic->pace[get != NULL][20], bulk,
				bulk ? bulk_ns : cma_ns);
		by_window += bulk && i >= TRANSFERS / 2;
	}
	return by_window;
}

CASE(pace_takes_the_faster_way_and_follows_a_change)
{
	nic = calloc(1, sizeof *nic);
	assert_non_null(nic);
	const unsigned all = TRANSFERS / 2;
	struct p3_pending *get = (struct p3_pending *)nic; /* any but NULL */
	assert_in_range(transfer(NULL, 90000, 50000), 0, 16);
	assert_in_range(transfer(NULL, 40000, 70000), all - 16, all);
	assert_in_range(transfer(NULL, 70000, 70000), 0, 16);
	assert_in_range(transfer(NULL, 60000, 70000), 0, 16);
	assert_in_range(transfer(NULL, 55000, 70000), all - 16, all);
	assert_in_range(transfer(get, 67000, 70000), 0, 16);
	assert_in_range(transfer(get, 60000, 70000), all - 16, all);
	free(nic);
}

CASE(pace_counts_the_bytes_of_other_transfers)
{
	assert_int_equal(p3_pace_share(1000, 1024 * KIB, 1024 * KIB), 1000);
	assert_int_equal(p3_pace_share(1000, 1024 * KIB, 512 * KIB), 1000);
	assert_in_range(p3_pace_share(80000, 1024 * KIB, 4096 * KIB), 19990, 20010);
	assert_in_range(p3_pace_share(80000, 1, 1024 * KIB), 1, 10);
	/* a minute for 16 GiB */
	assert_in_range(p3_pace_share(UINT64_C(60000000000), KIB << 24, KIB << 25),
		UINT64_C(29990000000), UINT64_C(30010000000));
}

/* ---- copies past the cache ---- */

/* Let puts take these times, the usual way and past the cache; noise: every 50th half of
 * a run takes four times as long.  Return the number of halves past the cache among the
 * last RUNS halves. */
static unsigned copy(
	struct p3_pace *pace, uint64_t usual_ns, uint64_t past_ns, bool noise)
{
	static uint64_t now = 1000;
	unsigned past = 0;
	for (unsigned half = 0; half < 2 * RUNS; half++) {
		bool other = pace->other;
		uint64_t took = P3_COPY_RUN / 2 * (other ? past_ns : usual_ns);
		now += noise && half % 50 == 49 ? 4 * took : took;
		pace->turns += P3_COPY_RUN / 2;
		p3_pace_halve(pace, P3_COPY_RUN, now);
		past += other && half >= RUNS;
		if (pace->turns % P3_COPY_RUN) /* a run goes one way */
			assert_int_equal(pace->other, other);
	}
	return past;
}

CASE(copies_go_past_the_cache_where_that_is_faster)
{
	const unsigned all = RUNS;
	for (int noise = 0; noise < 2; noise++) {
		struct p3_pace pace = {0};
		assert_in_range(copy(&pace, 700, 900, noise), 0, all / 16);
		assert_in_range(copy(&pace, 2400, 900, noise), all - all / 16, all);
		assert_in_range(copy(&pace, 700, 900, noise), 0, all / 16);
		/* a gain that is too small to tell */
		if (!noise)
			assert_in_range(copy(&pace, 900, 890, noise), 0, all / 16);
	}
}

/* The first run is usual, the second one is the first trial, and a trial of a way that is
 * much slower ends in the middle. */
CASE(trials_of_copies_are_soon_and_short)
{
	struct p3_pace pace = {0};
	uint64_t now = 1000;
	unsigned past = 0;
	for (unsigned half = 0; half < 20; half++) {
		past += pace.other;
		assert_int_equal(pace.other, half == 2 || half == 7); /* runs 1 and 4 */
		now += pace.other ? 2000 : 1000;
		pace.turns += P3_COPY_RUN / 2;
		p3_pace_halve(&pace, P3_COPY_RUN, now);
	}
	assert_int_equal(past, 2);
}
