/* SPDX-License-Identifier: BSD-3-Clause */
/* Statements of non-blocking puts and gets, and of their syncs. */
#include "gn.h"
#include "mixer.h"

const struct gn_program gn_program = {.segment = (uintptr_t)24 << 20};

/* Areas of each segment: words for the neighbor, a long area, those of mixers. */
enum { WORDS = 0, LONG_AREA = 8 << 20, MIXERS = 20 << 20 };
enum { LONG_BYTES = 8 << 20 };

static uint64_t *far_word(size_t i)
{
	return gn_at(gn.next, WORDS + i * sizeof(uint64_t));
}

static uint64_t *own_word(size_t i)
{
	return gn_own(WORDS + i * sizeof(uint64_t));
}

/* As many at a time as the statements demand.  ThreadSanitizer takes 30 times as long: an
 * eighth at a time, and of those one after another a sixtieth. */
#ifdef __SANITIZE_THREAD__
enum { OUTSTANDING = 8191 };
#else
enum { OUTSTANDING = 65535 };
#endif

/* A long run has the statement's counts on each node. */
static unsigned many(unsigned n)
{
	n = OUTSTANDING < 65535 ? n / 60 : n;
	return getenv("GN_LONG") ? n : n / gn.size;
}

/* Clear the words of this node that its neighbor is to write. */
static void clear_words(size_t n)
{
	memset(own_word(0), 0, n * sizeof(uint64_t));
	gn_barrier();
}

static void check_own_words(size_t n, uint64_t first)
{
	gn_barrier();
	for (size_t i = 0; i < n; i++)
		CHECK_EQ(*own_word(i), first + i);
}

/* ---- explicit handles ---- */

STATEMENT(88, put_nb_from_a_variable_that_changes)
{
	enum { N = 10000 };
	static gasnet_handle_t handles[N];
	uint64_t value;
	clear_words(N);
	for (size_t i = 0; i < N; i++) {
		value = 77 + i;
		handles[i] = gasnet_put_nb(gn.next, far_word(i), &value, sizeof value);
	}
	value = 0;
	gasnet_wait_syncnb_all(handles, N);
	check_own_words(N, 77);
}

static void move_bulk(size_t n)
{
	unsigned char *near = suite_alloc(n), *back = suite_alloc(n);
	fill_bytes(near, n, (unsigned)n);
	gasnet_handle_t put =
		gasnet_put_nb_bulk(gn.next, gn_at(gn.next, LONG_AREA), near, n);
	gasnet_wait_syncnb(put);
	memset(near, 0xdd, n);
	gasnet_handle_t get =
		gasnet_get_nb_bulk(back, gn.next, gn_at(gn.next, LONG_AREA), n);
	gasnet_wait_syncnb(get);
	CHECK_BYTES(back, n, (unsigned)n);
	memset(back, 0, n);
	gasnet_wait_syncnb(gasnet_get_nb(back, gn.next, gn_at(gn.next, LONG_AREA), n));
	CHECK_BYTES(back, n, (unsigned)n);
}

STATEMENT(89, bulk_is_right_after_its_sync)
{
	const size_t sizes[] = {1, 7, 8, 1000, 4096, 65537, 3000001};
	gn_barrier();
	for (int i = 0; i < 7; i++)
		move_bulk(sizes[i]);
}

STATEMENT(90, very_many_explicit_operations)
{
	enum { N = OUTSTANDING };
	static gasnet_handle_t handles[N];
	static uint64_t source[N], got[N];
	for (size_t i = 0; i < N; i++)
		*own_word(i) = i & 1 ? 5000 + i : 0;
	gn_barrier();
	for (size_t i = 0; i < N; i++) {
		source[i] = 5000 + i;
		handles[i] =
			i & 1 ? gasnet_get_nb_bulk(&got[i], gn.next, far_word(i), 8)
			      : gasnet_put_nb_bulk(gn.next, far_word(i), &source[i], 8);
	}
	gasnet_wait_syncnb_all(handles, N);
	for (size_t i = 1; i < N; i += 2)
		CHECK_EQ(got[i], 5000 + i);
	check_own_words(N, 5000);
}

static void put_implicit(size_t n, uint64_t first)
{
	uint64_t value;
	for (size_t i = 0; i < n; i++) {
		value = first + i;
		gasnet_put_nbi(gn.next, far_word(i % 65536), &value, sizeof value);
	}
}

STATEMENT(91, very_many_implicit_operations)
{
	clear_words(65536);
	put_implicit(OUTSTANDING, 9);
	gasnet_wait_syncnbi_puts();
	check_own_words(OUTSTANDING, 9);
	gn_barrier();
	for (unsigned left = many(1000000) / OUTSTANDING + 1; left; left--)
		put_implicit(OUTSTANDING, 100);
	gasnet_wait_syncnbi_all();
	check_own_words(OUTSTANDING, 100);
}

STATEMENT(92, sync_of_the_invalid_handle)
{
	CHECK_OK(gasnet_try_syncnb(GASNET_INVALID_HANDLE));
	gasnet_wait_syncnb(GASNET_INVALID_HANDLE);
}

/* Loop over try_syncnb() alone. */
static void try_alone(gasnet_handle_t handle)
{
	struct patience p = patience_begin();
	int rc;
	while ((rc = gasnet_try_syncnb(handle)) == GASNET_ERR_NOT_READY)
		CHECK(!patience_is_over(&p));
	CHECK_OK(rc);
}

STATEMENT(93, try_loops_end)
{
	unsigned char *near = suite_alloc(LONG_BYTES);
	gn_barrier();
	for (size_t n = 1; n <= LONG_BYTES; n *= 8) {
		memset(near, (int)(n % 251), n);
		void *far = gn_at(gn.next, LONG_AREA);
		try_alone(gasnet_put_nb_bulk(gn.next, far, near, n));
		memset(near, 0, n);
		try_alone(gasnet_get_nb_bulk(near, gn.next, far, n));
		CHECK_ALL(near, n, (int)(n % 251));
	}
}

/* ---- lists ---- */

enum { LIST = 40 };

/* Begin puts of words; every third entry stays invalid. */
static void begin_list(gasnet_handle_t *handles, uint64_t first)
{
	for (size_t i = 0; i < LIST; i++) {
		uint64_t value = first + i;
		gasnet_handle_t h = gasnet_put_nb(gn.next, far_word(i), &value, 8);
		if (i % 3 == 0)
			gasnet_wait_syncnb(h);
		handles[i] = i % 3 ? h : GASNET_INVALID_HANDLE;
	}
}

static unsigned count_valid(const gasnet_handle_t *handles, size_t n)
{
	unsigned valid = 0;
	for (size_t i = 0; i < n; i++)
		valid += handles[i] != GASNET_INVALID_HANDLE;
	return valid;
}

STATEMENT(94, wait_all_leaves_invalid_entries)
{
	gasnet_handle_t handles[LIST];
	clear_words(LIST);
	begin_list(handles, 300);
	gasnet_wait_syncnb_all(handles, LIST);
	CHECK_EQ(count_valid(handles, LIST), 0);
	gasnet_wait_syncnb_all(handles, LIST);
	gasnet_wait_syncnb_all(handles, 0);
	gasnet_wait_syncnb_all(NULL, 0);
	CHECK_OK(gasnet_try_syncnb_all(handles, LIST));
	CHECK_OK(gasnet_try_syncnb_all(NULL, 0));
	check_own_words(LIST, 300);
}

/* Begin a long put, which takes longest, among short ones. */
static void begin_mixed(gasnet_handle_t *handles, unsigned char *near, uint64_t first)
{
	begin_list(handles, first);
	if (handles[1] != GASNET_INVALID_HANDLE)
		gasnet_wait_syncnb(handles[1]);
	handles[1] =
		gasnet_put_nb_bulk(gn.next, gn_at(gn.next, LONG_AREA), near, LONG_BYTES);
}

/* Check that each entry is as it was, or invalid. */
static void check_intact(const gasnet_handle_t *is, const gasnet_handle_t *was)
{
	for (size_t i = 0; i < LIST; i++)
		CHECK(is[i] == was[i] || is[i] == GASNET_INVALID_HANDLE);
}

STATEMENT(95, try_all_with_some_incomplete)
{
	gasnet_handle_t handles[LIST], was[LIST];
	unsigned char *near = suite_alloc(LONG_BYTES);
	clear_words(LIST);
	for (unsigned round = 0; round < 10; round++) {
		memset(near, (int)round, LONG_BYTES);
		begin_mixed(handles, near, 400);
		memcpy(was, handles, sizeof was);
		int rc = gasnet_try_syncnb_all(handles, LIST);
		check_intact(handles, was);
		CHECK((rc == GASNET_OK) == (count_valid(handles, LIST) == 0));
		CHECK(rc == GASNET_OK || rc == GASNET_ERR_NOT_READY);
		for (size_t i = 0; i < LIST; i++)
			gasnet_wait_syncnb(handles[i]);
	}
	check_own_words(LIST, 400);
	CHECK_ALL(gn_own(LONG_AREA), LONG_BYTES, 9);
}

/* Sync the list piece by piece, by waiting or trying. */
static void sync_some(gasnet_handle_t *handles, bool wait)
{
	struct patience p = patience_begin();
	for (unsigned left; (left = count_valid(handles, LIST)) > 0;) {
		int rc = GASNET_OK;
		if (wait)
			gasnet_wait_syncnb_some(handles, LIST);
		else
			rc = gasnet_try_syncnb_some(handles, LIST);
		CHECK(rc == GASNET_OK || rc == GASNET_ERR_NOT_READY);
		CHECK((count_valid(handles, LIST) < left) == (rc == GASNET_OK));
		CHECK(!patience_is_over(&p));
	}
}

STATEMENT(96, wait_some_and_try_some)
{
	gasnet_handle_t handles[LIST];
	unsigned char *near = suite_alloc(LONG_BYTES);
	clear_words(LIST);
	for (int wait = 0; wait < 2; wait++) {
		begin_mixed(handles, near, 500);
		sync_some(handles, wait);
		gasnet_wait_syncnb_some(handles, LIST);
		CHECK_OK(gasnet_try_syncnb_some(handles, LIST));
		gasnet_wait_syncnb_some(NULL, 0);
		CHECK_OK(gasnet_try_syncnb_some(NULL, 0));
	}
	check_own_words(1, 500);
}

static void wait_for_copy(gasnet_handle_t copy)
{
	gasnet_wait_syncnb(copy);
}

STATEMENT(97, handles_in_any_order_and_by_value)
{
	NO_TSAN("it does not see the order that goes through another process");
	enum { N = 500 };
	gasnet_handle_t handles[N];
	uint64_t got[N], seed = gn_seed();
	for (size_t i = 0; i < N; i++)
		*own_word(i) = 600 + i;
	gn_barrier();
	for (size_t i = 0; i < N; i++)
		handles[i] = gasnet_get_nb(&got[i], gn.next, far_word(i), 8);
	for (size_t left = N; left; left--) {
		size_t at = gn_below(&seed, left);
		wait_for_copy(handles[at]);
		handles[at] = handles[left - 1];
	}
	for (size_t i = 0; i < N; i++)
		CHECK_EQ(got[i], 600 + i);
}

/* ---- implicit syncs ---- */

WEAK_STATEMENT(98, syncs_of_gets_and_of_puts_are_apart)
{
	NO_TSAN("it does not see the order that goes through another process");
	unsigned char *near = suite_alloc(LONG_BYTES);
	uint64_t got = 0;
	*own_word(0) = 31;
	memset(gn_own(LONG_AREA), 0, LONG_BYTES);
	memset(near, 0x61, LONG_BYTES);
	gn_barrier();
	gasnet_put_nbi_bulk(gn.next, gn_at(gn.next, LONG_AREA), near, LONG_BYTES);
	gasnet_get_nbi(&got, gn.next, far_word(0), 8);
	gasnet_wait_syncnbi_gets();
	CHECK_EQ(got, 31);
	gasnet_get_nbi_bulk(
		suite_alloc(LONG_BYTES), gn.next, far_word(0), LONG_BYTES / 2);
	gasnet_wait_syncnbi_puts();
	gn_barrier();
	CHECK_ALL(gn_own(LONG_AREA), LONG_BYTES, 0x61);
	gasnet_wait_syncnbi_all();
}

STATEMENT(99, try_with_nothing_outstanding)
{
	CHECK_OK(gasnet_try_syncnbi_gets());
	CHECK_OK(gasnet_try_syncnbi_puts());
	CHECK_OK(gasnet_try_syncnbi_all());
	gasnet_wait_syncnbi_gets();
	gasnet_wait_syncnbi_puts();
	gasnet_wait_syncnbi_all();
}

/* ---- access regions ---- */

/* Begin a region of implicit puts of n words from the given one on. */
static gasnet_handle_t region_of(size_t from, size_t n, uint64_t first)
{
	gasnet_begin_nbi_accessregion();
	for (size_t i = from; i < from + n; i++) {
		uint64_t value = first + i;
		gasnet_put_nbi(gn.next, far_word(i), &value, 8);
	}
	return gasnet_end_nbi_accessregion();
}

STATEMENT(100, one_handle_for_a_region)
{
	enum { N = 5000 };
	clear_words(2 * N);
	put_implicit(10, 700);
	gasnet_handle_t handle = region_of(10, N, 700);
	gasnet_wait_syncnbi_all();
	gasnet_wait_syncnb_all(&handle, 1);
	CHECK(handle == GASNET_INVALID_HANDLE);
	CHECK_OK(gasnet_try_syncnbi_all());
	check_own_words(10 + N, 700);
}

STATEMENT(101, explicit_operations_within_a_region)
{
	uint64_t value = 801, got = 0;
	clear_words(3);
	gasnet_begin_nbi_accessregion();
	gasnet_put_nbi_val(gn.next, far_word(0), 800, 8);
	gasnet_handle_t own = gasnet_put_nb(gn.next, far_word(1), &value, 8);
	gasnet_wait_syncnb(own);
	gasnet_get(&got, gn.next, far_word(1), 8);
	CHECK_EQ(got, 801);
	gasnet_put_nbi_val(gn.next, far_word(2), 802, 8);
	gasnet_wait_syncnb(gasnet_end_nbi_accessregion());
	gasnet_begin_nbi_accessregion();
	gasnet_handle_t empty = gasnet_end_nbi_accessregion();
	try_alone(empty);
	check_own_words(3, 800);
}

STATEMENT(102, several_regions_at_a_time)
{
	enum { REGIONS = 50, EACH = 30 };
	gasnet_handle_t handles[REGIONS];
	uint64_t seed = gn_seed() + gn.rank;
	clear_words(REGIONS * EACH);
	for (size_t i = 0; i < REGIONS; i++)
		handles[i] = region_of(i * EACH, EACH, 900);
	for (size_t left = REGIONS; left; left--) {
		size_t at = gn_below(&seed, left);
		if (left & 1)
			gasnet_wait_syncnb(handles[at]);
		else
			try_alone(handles[at]);
		handles[at] = handles[left - 1];
	}
	check_own_words(REGIONS * EACH, 900);
}

/* ---- memset, values ---- */

STATEMENT(103, memset_and_values_sync_as_puts)
{
	gasnet_handle_t handles[2];
	clear_words(16);
	handles[0] = gasnet_memset_nb(gn.next, far_word(0), 0x11, 16);
	handles[1] = gasnet_put_nb_val(gn.next, far_word(2), 12, 8);
	gasnet_wait_syncnb_all(handles, 2);
	gasnet_memset_nbi(gn.next, far_word(3), 0x22, 16);
	gasnet_put_nbi_val(gn.next, far_word(5), 15, 8);
	gasnet_wait_syncnbi_puts();
	gn_barrier();
	CHECK_ALL(own_word(0), 16, 0x11);
	CHECK_EQ(*own_word(2), 12);
	CHECK_ALL(own_word(3), 16, 0x22);
	CHECK_EQ(*own_word(5), 15);
	CHECK_ALL(own_word(6), 80, 0);
}

STATEMENT(104, very_many_gets_of_values)
{
	enum { N = 1000 };
	gasnet_valget_handle_t handles[N];
	for (size_t i = 0; i < N; i++)
		*own_word(i) = UINT64_C(0xf1f2f3f4f5f60000) + i;
	gn_barrier();
	for (size_t i = 0; i < N; i++)
		handles[i] = gasnet_get_nb_val(gn.next, far_word(i), i % 8 + 1);
	for (size_t i = N; i-- > 0;) {
		uint64_t want = UINT64_C(0xf1f2f3f4f5f60000) + i;
		if (i % 8 != 7)
			want &= (UINT64_C(1) << 8 * (i % 8 + 1)) - 1;
		CHECK_EQ(gasnet_wait_syncnb_valget(handles[i]), want);
	}
}

/* ---- threads ---- */

static _Atomic bool synced;

static void begin_all_the_time(unsigned nth)
{
	struct patience p = patience_begin();
	(void)nth;
	for (uint64_t i = 0; !synced; i++) {
		gasnet_put_nbi_val(gn.next, far_word(100 + i % 100), i, 8);
		CHECK(!patience_is_over(&p));
	}
	gasnet_wait_syncnbi_all();
}

STATEMENT(105, implicit_sets_belong_to_threads)
{
	NEED_PAR();
	synced = false;
	clear_words(200);
	gn_thread(begin_all_the_time, 0);
	for (unsigned i = 0; i < 200; i++) {
		put_implicit(50, i);
		gasnet_wait_syncnbi_all();
		CHECK_OK(gasnet_try_syncnbi_all());
	}
	synced = true;
	gn_join();
	check_own_words(50, 199);
}

static size_t mixer_base(unsigned nth)
{
	return MIXERS + ((size_t)nth * gn.size + gn.rank) * MIXER_BYTES;
}

static void run_mix(unsigned nth)
{
	struct mixer *m =
		mixer_new(mixer_base(nth), gn_seed() * 100 + nth * 10 + gn.rank);
	mixer_run(m, many(10000));
	mixer_free(m);
}

STATEMENT(106, threads_mix_all_operations)
{
	NEED_PAR();
	gn_barrier();
	for (unsigned i = 0; i < 8; i++)
		gn_thread(run_mix, i);
	gn_join();
}

STATEMENT(107, operation_across_a_barrier)
{
	enum { N = 3000 };
	unsigned char *near = suite_alloc((size_t)1 << 20);
	uint64_t got = 0;
	clear_words(N);
	*own_word(4000) = 71;
	memset(near, 0x37, (size_t)1 << 20);
	gn_barrier();
	gasnet_handle_t put = gasnet_put_nb_bulk(
		gn.next, gn_at(gn.next, LONG_AREA), near, (size_t)1 << 20);
	gasnet_handle_t get = gasnet_get_nb(&got, gn.next, far_word(4000), 8);
	gasnet_barrier_notify(1, 0);
	CHECK_OK(gasnet_barrier_wait(1, 0));
	gasnet_wait_syncnb(get);
	CHECK_EQ(got, 71);
	gasnet_wait_syncnb(put);
	gn_barrier();
	CHECK_ALL(gn_own(LONG_AREA), (size_t)1 << 20, 0x37);
}

STATEMENT(108, conflicting_puts_leave_one_value)
{
	enum { ROUNDS = 500, EACH = 4 };
	NO_TSAN("two nodes write a word");
	clear_words(ROUNDS);
	gasnet_handle_t handles[EACH];
	for (size_t i = 0; i < ROUNDS; i++) {
		for (uint64_t k = 0; k < EACH; k++)
			handles[k] = gasnet_put_nb_val(gn.a, gn_at(gn.a, 8 * i),
				UINT64_C(0x0101010101010101) * (1 + gn.rank * EACH + k),
				8);
		gasnet_wait_syncnb_all(handles, EACH);
	}
	gn_barrier();
	for (size_t i = 0; gn.is_a && i < ROUNDS; i++) {
		uint64_t byte = *own_word(i) & 0xff;
		CHECK(byte >= 1 && byte <= gn.size * EACH);
		CHECK_EQ(*own_word(i), UINT64_C(0x0101010101010101) * byte);
	}
}
