/* SPDX-License-Identifier: BSD-3-Clause */
/* Statements of blocking puts and gets. */
#include "gn.h"

#include <sys/mman.h>

enum { H_TELL = 128, H_TOLD };

static void tell(gasnet_token_t token, gasnet_handlerarg_t value);
static void told_back(gasnet_token_t token);

static gasnet_handlerentry_t table[] = {{H_TELL, tell}, {H_TOLD, told_back}};
const struct gn_program gn_program = {GN_TABLE(table), .segment = (uintptr_t)16 << 20};

/* Areas of each segment: the target of its neighbor's operations; its own local side. */
enum { REMOTE = 0x10000, LOCAL = 0x400000, GUARD = 64 };
#define MIB ((size_t)1 << 20)

/* ---- a put, and gets of the same bytes ---- */

struct route {
	gasnet_node_t to;
	unsigned char *far; /* in the segment of "to" */
	unsigned char *near,
		*back; /* on this node: source of the put, target of the get */
};

typedef void put_fn(gasnet_node_t to, void *far, void *near, size_t n);
typedef void get_fn(void *near, gasnet_node_t from, void *far, size_t n);

static void put(gasnet_node_t to, void *far, void *near, size_t n)
{
	gasnet_put(to, far, near, n);
}

static void put_bulk(gasnet_node_t to, void *far, void *near, size_t n)
{
	gasnet_put_bulk(to, far, near, n);
}

static void get(void *near, gasnet_node_t from, void *far, size_t n)
{
	gasnet_get(near, from, far, n);
}

static void get_bulk(void *near, gasnet_node_t from, void *far, size_t n)
{
	gasnet_get_bulk(near, from, far, n);
}

/* Color the far bytes by a put, put into their middle, and look at all of them. */
static void put_and_look(const struct route *r, size_t n, unsigned seed, put_fn *put_it)
{
	size_t all = n + (size_t)2 * GUARD;
	memset(r->back, 0x3c, all);
	put_bulk(r->to, r->far - GUARD, r->back, all);
	fill_bytes(r->near, n, seed);
	put_it(r->to, r->far, r->near, n);
	memset(r->back, 0, all);
	get_bulk(r->back, r->to, r->far - GUARD, all);
	CHECK_ALL(r->back, GUARD, 0x3c);
	CHECK_BYTES(r->back + GUARD, n, seed);
	CHECK_ALL(r->back + GUARD + n, GUARD, 0x3c);
}

/* Get the bytes of the last put_and_look() into the middle of colored memory. */
static void get_and_look(const struct route *r, size_t n, unsigned seed, get_fn *get_it)
{
	memset(r->back, 0x55, n + (size_t)2 * GUARD);
	get_it(r->back + GUARD, r->to, r->far, n);
	CHECK_ALL(r->back, GUARD, 0x55);
	CHECK_BYTES(r->back + GUARD, n, seed);
	CHECK_ALL(r->back + GUARD + n, GUARD, 0x55);
}

static void move(const struct route *r, size_t n, unsigned seed)
{
	put_and_look(r, n, seed, put);
	get_and_look(r, n, seed, get);
	put_and_look(r, n, seed + 1, put_bulk);
	get_and_look(r, n, seed + 1, get_bulk);
}

static const size_t long_sizes[] = {
	4095, 4096, 4097, 65535, 65536, 65537, MIB - 3, MIB, MIB + 3};
enum { LONG_SIZES = sizeof long_sizes / sizeof long_sizes[0] };

/* Return a route to a node, with both sides in segments. */
static struct route route_to(gasnet_node_t to)
{
	return (struct route){to, gn_at(to, REMOTE), gn_own(LOCAL), gn_own(2 * LOCAL)};
}

static void move_each_size(gasnet_node_t to)
{
	struct route r = route_to(to);
	for (size_t n = 1; n <= 64; n++)
		move(&r, n, (unsigned)n * 2);
	for (int i = 0; i < LONG_SIZES; i++)
		move(&r, long_sizes[i], 1000 + (unsigned)i * 2);
}

static void move_each_alignment(gasnet_node_t to)
{
	for (size_t far = 0; far < 16; far++)
		for (size_t near = 0; near < 16; near++) {
			struct route r = route_to(to);
			r.far += far;
			r.near += near;
			r.back += (far + near) % 16;
			put_and_look(&r, 37, (unsigned)(far * 16 + near), put_bulk);
			get_and_look(&r, 37, (unsigned)(far * 16 + near), get_bulk);
		}
}

STATEMENT(75, puts_and_gets_of_each_size_and_alignment)
{
	gn_barrier();
	move_each_size(gn.next);
	move_each_alignment(gn.next);
}

static void move_with(void *near, void *back)
{
	struct route r = {gn.next, gn_at(gn.next, REMOTE), near, back};
	for (size_t n = 1; n <= 64; n += 3)
		move(&r, n, (unsigned)n);
	move(&r, 4097, 70);
	move(&r, 70001, 72);
}

enum { ROOM = 80000 };

/* Return memory that begins in this node's segment and ends behind it, or NULL if other
 * memory lies there. */
static unsigned char *across_the_end(size_t behind)
{
	unsigned char *end = gn_own(gn.seg[gn.rank].size);
	void *is = mmap(end, behind, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (is == end)
		return end - behind;
	if (is != MAP_FAILED)
		CHECK_EQ(munmap(is, behind), 0);
	return NULL;
}

STATEMENT(76, local_side_in_any_memory)
{
	static unsigned char near_static[ROOM], back_static[ROOM];
	unsigned char near_stack[ROOM], back_stack[ROOM];
	gn_barrier();
	move_with(near_static, back_static);
	move_with(near_stack, back_stack);
	move_with(suite_alloc(ROOM), suite_alloc(ROOM));
	move_with(gn_own(LOCAL), suite_alloc(ROOM));
	unsigned char *across = across_the_end((size_t)ROOM / 2 / 4096 * 4096);
	if (across) {
		move_with(across, back_static);
		move_with(near_static, across);
	}
}

/* The last bytes of the segment are a target like others. */
static void move_at_the_end(void)
{
	struct route r = route_to(gn.next);
	r.far = (unsigned char *)gn_at(gn.next, gn.seg[gn.next].size) - 4097 - GUARD;
	move(&r, 4097, 5);
}

STATEMENT(77, loopback)
{
	gn_barrier();
	move_each_size(gn.rank);
	move_each_alignment(gn.rank);
	gn_barrier();
	move_at_the_end();
}

/* ---- visibility ---- */

static _Atomic unsigned tells, tolds;

/* Check that the owner's loads see what was put before the request. */
static void tell(gasnet_token_t token, gasnet_handlerarg_t value)
{
	CHECK_EQ(*(volatile uint64_t *)gn_own(REMOTE), value);
	tells++;
	CHECK_OK(gasnet_AMReplyShort0(token, H_TOLD));
}

static void told_back(gasnet_token_t token)
{
	(void)token;
	tolds++;
}

STATEMENT(78, put_is_visible_after_return)
{
	tells = tolds = 0;
	gn_barrier();
	for (unsigned i = 1; i <= 1000; i++) {
		uint64_t value = i * 0x10001, back = 0;
		gasnet_put(gn.next, gn_at(gn.next, REMOTE), &value, sizeof value);
		CHECK_OK(gasnet_AMRequestShort1(gn.next, H_TELL, (int)value));
		UNTIL(tolds == i);
		gasnet_get(&back, gn.next, gn_at(gn.next, REMOTE), sizeof back);
		CHECK_EQ(back, value);
	}
	UNTIL(tells == 1000);
}

static void overwrite_after(put_fn *put_it, size_t n)
{
	unsigned char *near = suite_alloc(n), *back = suite_alloc(n);
	fill_bytes(near, n, 3);
	put_it(gn.next, gn_at(gn.next, REMOTE), near, n);
	memset(near, 0xdd, n);
	get_bulk(back, gn.next, gn_at(gn.next, REMOTE), n);
	CHECK_BYTES(back, n, 3);
}

STATEMENT(79, source_is_free_after_return)
{
	gn_barrier();
	for (size_t n = 1; n <= MIB; n *= 2) {
		overwrite_after(put, n);
		overwrite_after(put_bulk, n);
	}
}

/* ---- no bytes ---- */

static void move_nothing(gasnet_node_t to, void *far, void *near)
{
	for (int sync = 0; sync < GN_SYNCS; sync++) {
		gasnet_wait_syncnb(GN_FORM(sync, put, , to, far, near, 0));
		gasnet_wait_syncnb(GN_FORM(sync, put, _bulk, to, far, near, 0));
		gasnet_wait_syncnb(GN_FORM(sync, get, , near, to, far, 0));
		gasnet_wait_syncnb(GN_FORM(sync, get, _bulk, near, to, far, 0));
		gasnet_wait_syncnb(GN_FORM(sync, memset, , to, far, 1, 0));
	}
	gasnet_wait_syncnbi_all();
}

STATEMENT(80, no_bytes)
{
	unsigned char near[32];
	memset(gn_own(REMOTE), 0x3c, 32);
	memset(near, 0x55, sizeof near);
	gn_barrier();
	for (gasnet_node_t to = 0; to < gn.size; to++) {
		move_nothing(to, gn_at(to, REMOTE + 8), near + 8);
		move_nothing(to, NULL, NULL);
	}
	gn_barrier();
	CHECK_ALL(gn_own(REMOTE), 32, 0x3c);
	CHECK_ALL(near, sizeof near, 0x55);
}

/* ---- values, memset ---- */

static void put_value(size_t n, size_t offset)
{
	const gasnet_register_value_t value = UINT64_C(0xfedcba9876543210);
	const gasnet_register_value_t want =
		n == 8 ? value : value & (((gasnet_register_value_t)1 << 8 * n) - 1);
	unsigned char back[32];
	char *far = gn_at(gn.next, REMOTE + offset);
	gasnet_memset(gn.next, far - 8, 0x3c, 24);
	gasnet_put_val(gn.next, far, value, n);
	CHECK_EQ(gasnet_get_val(gn.next, far, n), want);
	get_bulk(back, gn.next, far - 8, 24);
	CHECK_ALL(back, 8, 0x3c);
	CHECK(memcmp(back + 8, &value, n) == 0);
	CHECK_ALL(back + 8 + n, 16 - n, 0x3c);
}

STATEMENT(81, values)
{
	gn_barrier();
	for (size_t n = 1; n <= 8; n++)
		for (size_t offset = 0; offset < 16; offset++)
			put_value(n, offset);
}

static void set_bytes(size_t n, int val)
{
	unsigned char *back = suite_alloc(n + 16);
	char *far = gn_at(gn.next, REMOTE + 1);
	memset(back, 0x3c, n + 16);
	put_bulk(gn.next, far, back, n + 16);
	gasnet_memset(gn.next, far + 8, val, n);
	get_bulk(back, gn.next, far, n + 16);
	CHECK_ALL(back, 8, 0x3c);
	CHECK_ALL(back + 8, n, (unsigned char)val);
	CHECK_ALL(back + 8 + n, 8, 0x3c);
}

STATEMENT(82, memset_of_each_size_and_value)
{
	const size_t sizes[] = {0, 1, 8, 100000};
	const int values[] = {-1, 0, 255, 256 + 7};
	gn_barrier();
	for (int s = 0; s < 4; s++)
		for (int v = 0; v < 4; v++)
			set_bytes(sizes[s], values[v]);
}

STATEMENT(84, source_equals_destination)
{
	const size_t sizes[] = {1, 8, 4096, 70000};
	for (int i = 0; i < 4; i++) {
		fill_bytes(gn_own(REMOTE), sizes[i], 9);
		put(gn.rank, gn_own(REMOTE), gn_own(REMOTE), sizes[i]);
		put_bulk(gn.rank, gn_own(REMOTE), gn_own(REMOTE), sizes[i]);
		get(gn_own(REMOTE), gn.rank, gn_own(REMOTE), sizes[i]);
		get_bulk(gn_own(REMOTE), gn.rank, gn_own(REMOTE), sizes[i]);
		CHECK_BYTES(gn_own(REMOTE), sizes[i], 9);
	}
}

/* ---- words do not tear ---- */

enum { W_TEARING = 1, TEARS = 4000 };

static void put_alternating(void)
{
	for (unsigned i = 0; i < TEARS; i++) {
		uint64_t v8 = i & 1 ? 0 : UINT64_MAX;
		uint32_t v4 = (uint32_t)v8;
		gasnet_put(gn.b, gn_at(gn.b, REMOTE), &v8, 8);
		gasnet_put(gn.b, gn_at(gn.b, REMOTE + 12), &v4, 4);
		gasnet_put_val(gn.b, gn_at(gn.b, REMOTE + 16), v8, 8);
	}
	gn_job->word[W_TEARING] = 1;
}

static void spin_over_words(void)
{
	volatile uint64_t *v8 = gn_own(REMOTE), *val = gn_own(REMOTE + 16);
	volatile uint32_t *v4 = gn_own(REMOTE + 12);
	struct patience p = patience_begin();
	while (!gn_job->word[W_TEARING]) {
		uint64_t a = *v8, b = *val;
		uint32_t c = *v4;
		CHECK(a == 0 || a == UINT64_MAX);
		CHECK(b == 0 || b == UINT64_MAX);
		CHECK(c == 0 || c == UINT32_MAX);
		CHECK(!patience_is_over(&p));
	}
}

STATEMENT(85, aligned_words_do_not_tear)
{
	NEED_NODES(2);
	NO_TSAN("the words are read while they are written");
	memset(gn_own(REMOTE), 0, 64);
	gn_meet();
	if (gn.is_a)
		put_alternating();
	else if (gn.is_b)
		spin_over_words();
	else
		AWAIT(gn_job->word[W_TEARING]);
}

/* ---- targets that make no call ---- */

enum { W_MOVED = 2 };

/* Put and get, while B does something else until that is over. */
static void put_and_get(size_t n)
{
	unsigned char *near = suite_alloc(n), *back = suite_alloc(n);
	fill_bytes(near, n, 4);
	put_bulk(gn.b, gn_at(gn.b, REMOTE), near, n);
	get_bulk(back, gn.b, gn_at(gn.b, REMOTE), n);
	CHECK_BYTES(back, n, 4);
}

static void move_meanwhile(void)
{
	put_and_get(8);
	put_and_get(4096);
	put_and_get(200000);
	gn_job->word[W_MOVED] = 1; /* B has waited for this */
}

/* Make no call of GASNet until A has moved all: compute, or sleep. */
static void stay_away(unsigned nap_ms)
{
	struct patience p = patience_begin();
	while (!gn_job->word[W_MOVED]) {
		CHECK(!patience_is_over(&p));
		if (nap_ms)
			sleep_ms(nap_ms); /* pause: makes no call meanwhile */
	}
}

STATEMENT(86, target_that_computes)
{
	NEED_NODES(2);
	gn_meet();
	if (gn.is_b) {
		stay_away(0);
	} else if (gn.is_a) {
		move_meanwhile();
	} else {
		AWAIT(gn_job->word[W_MOVED]);
	}
}

static void in_barrier(void)
{
	gasnet_barrier_notify(5, 0);
	if (gn.is_a)
		put_and_get(70000);
	CHECK_OK(gasnet_barrier_wait(5, 0));
}

static void in_blockuntil(void)
{
	uint64_t one = 1;
	volatile uint64_t *flag = gn_own(REMOTE + 300000);
	*flag = 0;
	gn_meet();
	if (gn.is_b && !gn.is_a) {
		GASNET_BLOCKUNTIL(*flag == 1);
	} else if (gn.is_a) {
		put_and_get(70000);
		gasnet_put(gn.b, gn_at(gn.b, REMOTE + 300000), &one, sizeof one);
	}
	gn_meet();
}

static void in_sleep(void)
{
	gn_job->word[W_MOVED] = 0;
	gn_meet();
	if (gn.is_b) {
		stay_away(5);
	} else if (gn.is_a) {
		move_meanwhile();
	}
	gn_meet();
}

STATEMENT(87, target_that_waits_or_sleeps)
{
	NEED_NODES(2);
	in_barrier();
	in_blockuntil();
	in_sleep();
}
