/* SPDX-License-Identifier: BSD-3-Clause */
/* Conformance of the libfabric provider: atomic operations. */
#include "frame.h"

enum { ALL = FI_REMOTE_READ | FI_REMOTE_WRITE, WIDEST = 32, COUNT_MOST = 8 };
enum way { PLAIN, FETCH, COMPARE, WAYS };

#define EACH_TYPE(t) for (enum fi_datatype t = FI_INT8; t <= FI_LONG_DOUBLE_COMPLEX; t++)
#define EACH_OP(o)   for (enum fi_op o = FI_MIN; o <= FI_MSWAP; o++)

static size_t size_of(enum fi_datatype type)
{
	static const size_t sizes[] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16,
		sizeof(long double), 2 * sizeof(long double)};
	return sizes[type];
}

static bool is_valid(
	struct side *s, enum way how, enum fi_datatype type, enum fi_op op, size_t *count)
{
	*count = 0;
	int rc = how == PLAIN   ? fi_atomicvalid(s->ep, type, op, count)
		 : how == FETCH ? fi_fetch_atomicvalid(s->ep, type, op, count)
				: fi_compare_atomicvalid(s->ep, type, op, count);
	return rc == 0 && *count > 0;
}

/* ---- what the CPU makes of it ---- */

/* Combine the old value with the operand as op says; MSWAP and CSWAP compare.  Sums and
 * products are those of W, which wraps round. */
#define COMBINE_REAL(T, W)                                                               \
	static void combine_##T(enum fi_op op, void *result, const void *old,            \
		const void *operand, const void *compare)                                \
	{                                                                                \
		T a, b, c, r;                                                            \
		memcpy(&a, old, sizeof a);                                               \
		memcpy(&b, operand, sizeof b);                                           \
		memcpy(&c, compare, sizeof c);                                           \
		bool swaps = op == FI_CSWAP      ? c == a                                \
			     : op == FI_CSWAP_NE ? c != a                                \
			     : op == FI_CSWAP_LE ? c <= a                                \
			     : op == FI_CSWAP_LT ? c < a                                 \
			     : op == FI_CSWAP_GE ? c >= a                                \
						 : op == FI_CSWAP_GT && c > a;           \
		r = op == FI_MIN                     ? (a < b ? a : b)                   \
		    : op == FI_MAX                   ? (a > b ? a : b)                   \
		    : op == FI_SUM                   ? (T)((W)a + (W)b)                  \
		    : op == FI_PROD                  ? (T)((W)a * (W)b)                  \
		    : op == FI_LOR                   ? (T)(a != 0 || b != 0)             \
		    : op == FI_LAND                  ? (T)(a != 0 && b != 0)             \
		    : op == FI_LXOR                  ? (T)((a != 0) != (b != 0))         \
		    : swaps || op == FI_ATOMIC_WRITE ? b                                 \
						     : a;                                \
		memcpy(result, &r, sizeof r);                                            \
	}

typedef long double long_double;
COMBINE_REAL(int8_t, uint64_t)
COMBINE_REAL(uint8_t, uint64_t)
COMBINE_REAL(int16_t, uint64_t)
COMBINE_REAL(uint16_t, uint64_t)
COMBINE_REAL(int32_t, uint64_t)
COMBINE_REAL(uint32_t, uint64_t)
COMBINE_REAL(int64_t, uint64_t)
COMBINE_REAL(uint64_t, uint64_t)
COMBINE_REAL(float, float)
COMBINE_REAL(double, double)
COMBINE_REAL(long_double, long_double)

/* Bitwise operations are the same for each width. */
static void combine_bits(enum fi_op op, unsigned char *result, const unsigned char *old,
	const unsigned char *operand, const unsigned char *compare, size_t size)
{
	for (size_t i = 0; i < size; i++)
		result[i] = op == FI_BOR    ? old[i] | operand[i]
			    : op == FI_BAND ? old[i] & operand[i]
			    : op == FI_BXOR
				    ? old[i] ^ operand[i]
				    : (operand[i] & compare[i]) | (old[i] & ~compare[i]);
}

static bool is_bitwise(enum fi_op op)
{
	return op == FI_BOR || op == FI_BAND || op == FI_BXOR || op == FI_MSWAP;
}

/* Return false if this test does not compute with the type. */
static bool combine(enum fi_datatype type, enum fi_op op, unsigned char *result,
	const unsigned char *old, const unsigned char *operand,
	const unsigned char *compare)
{
	typedef void combine_fn(
		enum fi_op, void *, const void *, const void *, const void *);
	static combine_fn *const of[] = {combine_int8_t, combine_uint8_t, combine_int16_t,
		combine_uint16_t, combine_int32_t, combine_uint32_t, combine_int64_t,
		combine_uint64_t, combine_float, combine_double, NULL, NULL,
		combine_long_double, NULL};
	if (is_bitwise(op))
		combine_bits(op, result, old, operand, compare, size_of(type));
	else if (of[type])
		of[type](op, result, old, operand, compare);
	return is_bitwise(op) || of[type];
}

/* Make n values of a type, small so that all results are exact. */
static void make_values(unsigned char *at, enum fi_datatype type, size_t n, uint64_t seed)
{
	for (size_t i = 0; i < n; i++, at += size_of(type)) {
		uint64_t x = mix(seed * 31 + i);
		int small =
			(int)(x >> 8) % 6 - (type % 2 == 0 || type > FI_UINT64 ? 2 : 0);
		float f = (float)small;
		double d = small;
		long double l = small;
		memset(at, 0, size_of(type));
		if (type == FI_FLOAT)
			memcpy(at, &f, sizeof f);
		else if (type == FI_DOUBLE)
			memcpy(at, &d, sizeof d);
		else if (type == FI_LONG_DOUBLE)
			memcpy(at, &l, 10);
		else if (type <= FI_UINT64 && x % 4) /* of any size, too */
			memcpy(at, &x, size_of(type));
		else if (type <= FI_UINT64)
			memcpy(at, &(int64_t){small}, size_of(type));
	}
}

/* ---- one operation ---- */

struct operation {
	enum way how;
	enum fi_datatype type;
	enum fi_op op;
	size_t n;
	unsigned char operand[COUNT_MOST * WIDEST], compare[COUNT_MOST * WIDEST],
		result[COUNT_MOST * WIDEST];
};

static ssize_t start(
	struct side *s, struct operation *o, struct region r, uint64_t offset, void *c)
{
	uint64_t at = r.base + offset;
	if (o->how == PLAIN)
		return fi_atomic(s->ep, o->operand, o->n, NULL, s->at[1], at, r.key,
			o->type, o->op, c);
	if (o->how == FETCH)
		return fi_fetch_atomic(s->ep, o->operand, o->n, NULL, o->result, NULL,
			s->at[1], at, r.key, o->type, o->op, c);
	return fi_compare_atomic(s->ep, o->operand, o->n, NULL, o->compare, NULL,
		o->result, NULL, s->at[1], at, r.key, o->type, o->op, c);
}

static struct done perform(
	struct side *s, struct operation *o, struct region r, uint64_t offset)
{
	static struct fi_context2 context;
	TRY(s, start(s, o, r, offset, &context));
	return TAKE(s, &context);
}

static void wrong(const struct operation *o, size_t i, bool is_old)
{
	char op[40], type[40];
	(void)fi_tostr_r(op, sizeof op, &o->op, FI_TYPE_ATOMIC_OP);
	(void)fi_tostr_r(type, sizeof type, &o->type, FI_TYPE_ATOMIC_TYPE);
	check_failed(__FILE__, __LINE__, "%s of %s, form %d, element %zu of %zu: %s", op,
		type, o->how, i, o->n, is_old ? "wrong old value" : "wrong result");
}

/* Write the target, operate, and read the result. */
static void one_operation(struct side *s, struct operation *o, struct region r,
	uint64_t offset, uint64_t seed)
{
	unsigned char old[sizeof o->operand], want[sizeof o->operand], got[sizeof want];
	static struct fi_context2 context;
	size_t size = size_of(o->type);
	make_values(old, o->type, o->n, seed);
	make_values(o->operand, o->type, o->n, seed + 1);
	make_values(o->compare, o->type, o->n, seed + 2);
	if (mix(seed) % 2) /* often equal */
		memcpy(o->compare, old, size);
	memset(o->result, 0xee, sizeof o->result);
	for (size_t i = 0; i < o->n * size; i += size)
		if (!combine(o->type, o->op, want + i, old + i, o->operand + i,
			    o->compare + i))
			return;
	TRY(s, fi_write(s->ep, old, o->n * size, NULL, s->at[1], r.base + offset, r.key,
		       &context));
	(void)TAKE(s, &context);
	(void)perform(s, o, r, offset);
	TRY(s, fi_read(s->ep, got, o->n * size, NULL, s->at[1], r.base + offset, r.key,
		       &context));
	(void)TAKE(s, &context);
	size_t used = o->type == FI_LONG_DOUBLE ? 10 : size; /* the rest is padding */
	for (size_t i = 0; i < o->n * size; i += size)
		if (memcmp(got + i, want + i, used) != 0 ||
			(o->how != PLAIN && memcmp(o->result + i, old + i, used) != 0))
			wrong(o, i / size, memcmp(got + i, want + i, used) == 0);
	if (o->how != PLAIN)
		CHECK_ALL(o->result + o->n * size, 8, 0xee);
}

static struct region target_region(struct side *s, void *at, size_t len)
{
	if (me.rank != 1)
		return told_region(1, 1);
	struct region r = region_open(s, at, len, ALL, 1);
	tell_region(&r);
	return r;
}

static unsigned try_all(
	struct side *s, struct region r, enum fi_op first, enum fi_op last)
{
	static struct operation o;
	unsigned valid = 0;
	for (enum way how = PLAIN; how < WAYS; how++)
		EACH_TYPE(type)
	for (enum fi_op op = first; op <= last; op++) {
		size_t most;
		if (!is_valid(s, how, type, op, &most))
			continue;
		valid++;
		for (unsigned i = 0; i < 12; i++) {
			size_t n = i % 4 == 3 ? most : 1;
			o.how = how;
			o.type = type;
			o.op = op;
			o.n = n < COUNT_MOST ? n : COUNT_MOST;
			one_operation(s, &o, r, i * size_of(type) % 64 * 16, i * 7 + op);
		}
	}
	return valid;
}

static struct side *atomic_side(uint64_t order)
{
	return side_open((struct how){.caps = FI_RMA | FI_ATOMIC | FI_TAGGED,
		.order = order,
		/* that of portals means this by itself */
		.op_flags = over_portals() ? 0 : FI_DELIVERY_COMPLETE});
}

static void all_between(enum fi_op first, enum fi_op last, unsigned least)
{
	static _Alignas(64) unsigned char target[8192];
	struct side *s = atomic_side(0);
	struct region r = target_region(s, target, sizeof target);
	if (me.is_client) {
		unsigned valid = try_all(s, r, first, last);
		CHECK(!over_portals() || valid >= least);
	}
	barrier();
	if (me.is_server)
		CLOSE(r.mr);
}

STATEMENT(77, operations, 2, 0)
{
	/* SUM, MIN, MAX, bits, READ, WRITE of 32 and 64 bits, twice, are wanted least. */
	all_between(FI_MIN, FI_ATOMIC_WRITE, 2 * 4 * 8);
}

STATEMENT(78, compare_and_swap, 2, 0)
{
	all_between(FI_CSWAP, FI_MSWAP, 4 * 7);
}

/* ---- 79 to 81 ---- */

STATEMENT(79, sum_of_four, 4, 0)
{
	not_over("shm", "it crashes");
	static _Alignas(64) uint64_t target[2];
	static struct fi_context2 context;
	const uint64_t n = many(1000000), window = 64;
	const uint64_t one = 1;
	struct side *s = atomic_side(0);
	struct region r = target_region(s, target, sizeof target);
	uint64_t seen = 0, under_way = 0;
	barrier();
	for (uint64_t i = 0; i < n; i++) {
		uint64_t old = 0;
		if (i % 100 == 0) { /* fetched values grow */
			TRY(s, fi_fetch_atomic(s->ep, &one, 1, NULL, &old, NULL, s->at[1],
				       r.base, r.key, FI_UINT64, FI_SUM, &target[1]));
			(void)TAKE(s, &target[1]);
			CHECK(i == 0 || old > seen);
			seen = old;
			continue;
		}
		TRY(s, fi_atomic(s->ep, &one, 1, NULL, s->at[1], r.base, r.key, FI_UINT64,
			       FI_SUM, &context));
		for (under_way++; under_way > window; under_way--)
			(void)TAKE(s, &context);
	}
	for (; under_way > 0; under_way--)
		(void)TAKE(s, &context);
	barrier();
	if (me.is_server) {
		CHECK_EQ(target[0], 4 * n);
		CLOSE(r.mr);
	}
	barrier();
}

/* Check that what is said to be valid works, and that what is not is refused. */
static void check_truth(struct side *s, struct region r, enum way how,
	enum fi_datatype type, enum fi_op op)
{
	static struct operation o;
	static const uint64_t flags[] = {0, FI_FETCH_ATOMIC, FI_COMPARE_ATOMIC};
	struct fi_atomic_attr attr = {0};
	size_t most;
	bool valid = is_valid(s, how, type, op, &most);
	int rc = fi_query_atomic(s->domain, type, op, &attr, flags[how]);
	CHECK_EQ(rc == 0, valid);
	if (valid && over_portals()) {
		CHECK_EQ(attr.count, most);
		CHECK_EQ(attr.size, size_of(type));
	}
	o = (struct operation){.how = how, .type = type, .op = op, .n = 1};
	if (valid)
		(void)perform(s, &o, r, 0);
	else if (over_portals())
		FAILS(start(s, &o, r, 0, NULL), -FI_EOPNOTSUPP);
}

/* The flag of another kind of operation is refused. */
static void check_other_kind(struct side *s, struct region r)
{
	uint64_t one = 1, old = 0;
	struct fi_ioc from = {&one, 1}, to = {&old, 1};
	struct fi_rma_ioc at = {r.base, 1, r.key};
	struct fi_msg_atomic m = {.msg_iov = &from,
		.iov_count = 1,
		.addr = s->at[1],
		.rma_iov = &at,
		.rma_iov_count = 1,
		.datatype = FI_UINT64,
		.op = FI_SUM};
	FAILS(fi_atomicmsg(s->ep, &m, FI_FETCH_ATOMIC), -FI_EBADFLAGS);
	FAILS(fi_fetch_atomicmsg(s->ep, &m, &to, NULL, 1, FI_COMPARE_ATOMIC),
		-FI_EBADFLAGS);
}

STATEMENT(80, truth, 2, 0)
{
	static _Alignas(64) unsigned char target[256];
	struct side *s = atomic_side(0);
	struct region r = target_region(s, target, sizeof target);
	for (enum way how = PLAIN; how < WAYS && me.is_client; how++)
		EACH_TYPE(type)
	EACH_OP(op)
	check_truth(s, r, how, type, op);
	if (over_portals() && me.is_client) {
		static struct operation o = {.type = FI_UINT64, .op = FI_SUM, .n = 9};
		size_t most;
		CHECK(is_valid(s, PLAIN, FI_UINT64, FI_SUM, &most) && most == 8);
		FAILS(start(s, &o, r, 0, NULL), -FI_EINVAL); /* 72 bytes */
		check_other_kind(s, r);
		SILENCE(s, 1);
	}
	barrier();
	if (me.is_server)
		CLOSE(r.mr);
}

/* As many elements at once as the provider says to keep in order. */
STATEMENT(81, order, 2, 0)
{
	enum { N = 2000, WINDOW = 32, MOST = 8 };
	static _Alignas(64) uint64_t target[MOST];
	static uint64_t old[N][MOST], value[N][MOST];
	static struct fi_context2 context;
	not_over("shm", "it does not keep the order that it claims");
	struct side *s = atomic_side(
		FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW);
	const struct fi_ep_attr *attr = s->info->ep_attr;
	size_t n = attr->max_order_raw_size / sizeof target[0];
	if (over_portals())
		CHECK(n == MOST && attr->max_order_war_size == sizeof target &&
			attr->max_order_waw_size == sizeof target);
	n = n < 1 ? 1 : n > MOST ? MOST : n;
	struct region r = target_region(s, target, sizeof target);
	unsigned under_way = 0;
	for (unsigned i = 0; i < N && me.is_client; i++) { /* write i, fetch, write.. */
		for (unsigned k = 0; k < n; k++)
			value[i][k] = i + 1;
		if (i % 2 == 0)
			TRY(s, fi_atomic(s->ep, value[i], n, NULL, s->at[1], r.base,
				       r.key, FI_UINT64, FI_ATOMIC_WRITE, &context));
		else
			TRY(s, fi_fetch_atomic(s->ep, value[i], n, NULL, old[i], NULL,
				       s->at[1], r.base, r.key, FI_UINT64, FI_SUM,
				       &context));
		for (under_way++; under_way > WINDOW; under_way--)
			(void)TAKE(s, &context);
	}
	for (; under_way > 0; under_way--)
		(void)TAKE(s, &context);
	for (unsigned i = 1; i < N && me.is_client; i += 2)
		for (unsigned k = 0; k < n; k++)
			CHECK_EQ(old[i][k], i); /* what the write before has written */
	barrier();
	if (me.is_server) {
		for (unsigned k = 0; k < n; k++)
			CHECK_EQ(target[k], 2 * N - 1);
		CLOSE(r.mr);
	}
}
