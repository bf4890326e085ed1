/* SPDX-License-Identifier: BSD-3-Clause */
/* Statements of active messages: arguments, payloads, sources, replies. */
#include "gn.h"
#include "arity.h"

#include <sys/mman.h>
#include <unistd.h>

/*
 * There is a handler of each count M for Short requests, requests with a payload, Short
 * replies and replies with a payload.  A request's handler checks the payload, and
 * replies with the complement of each argument.  Words of the job:
 */
enum { W_REPLY, W_REPLY_BYTES, W_TARGET, W_TARGET_BACK = 32 };

enum { H_SHORT = 128, H_BUF = 145, H_SHORT_BACK = 162, H_BUF_BACK = 179, H_OTHER = 196 };
enum { H_ASYNC = H_OTHER, H_ASYNC_BACK, H_MIXED, H_MIXED_BACK, H_SILENT };
enum { H_DEEP = 201, H_DEEP_BACK, H_HUGE, H_HUGE_BACK, H_WAITING };

enum kind { SHORT, MEDIUM, LONG, LONG_ASYNC, SHORT_BACK, MEDIUM_BACK, LONG_BACK, KINDS };

#define SEGMENT ((size_t)20 << 20)
#define MOST    ((size_t)16 << 20) /* bytes of a Long */

struct load {
	int32_t args[16];
	int m;
	void *src, *dst;
	size_t n;
};

static struct load answer; /* load of the last reply */
static _Atomic unsigned answers, requests;
static unsigned char *reply_source;

static unsigned seed_of(size_t n, int m)
{
	return (unsigned)n * 37 + (unsigned)m;
}

/* ---- requests and replies of each count ---- */

/* A request goes to a node, a reply back to the sender of the token. */
typedef int send_fn(gasnet_node_t to, gasnet_token_t token, const struct load *l);

#define SENDER(name, M, ...)                                                             \
	static int name##_##M(                                                           \
		gasnet_node_t to, gasnet_token_t token, const struct load *l)            \
	{                                                                                \
		const int32_t *v = l->args;                                              \
		(void)to, (void)token, (void)v;                                          \
		return GN_CALL(__VA_ARGS__ GN_VALUES(M));                                \
	}
#define INDEX(first, M) (gasnet_handler_t)((first) + (M))
#define SENDERS(M)                                                                       \
	SENDER(send_short, M, gasnet_AMRequestShort##M, to, INDEX(H_SHORT, M))           \
	SENDER(send_medium, M, gasnet_AMRequestMedium##M, to, INDEX(H_BUF, M), l->src,   \
		l->n)                                                                    \
	SENDER(send_long, M, gasnet_AMRequestLong##M, to, INDEX(H_BUF, M), l->src, l->n, \
		l->dst)                                                                  \
	SENDER(send_async, M, gasnet_AMRequestLongAsync##M, to, INDEX(H_BUF, M), l->src, \
		l->n, l->dst)                                                            \
	SENDER(short_back, M, gasnet_AMReplyShort##M, token, INDEX(H_SHORT_BACK, M))     \
	SENDER(medium_back, M, gasnet_AMReplyMedium##M, token, INDEX(H_BUF_BACK, M),     \
		l->src, l->n)                                                            \
	SENDER(long_back, M, gasnet_AMReplyLong##M, token, INDEX(H_BUF_BACK, M), l->src, \
		l->n, l->dst)
GN_EACH_M(SENDERS)

#define SENDERS_OF(M)                                                                    \
	{send_short_##M, send_medium_##M, send_long_##M, send_async_##M, short_back_##M, \
		medium_back_##M, long_back_##M},
static send_fn *const senders[17][KINDS] = {GN_EACH_M(SENDERS_OF)};

static void reply(gasnet_token_t token, int m, const int32_t *args)
{
	unsigned kind = (unsigned)gn_job->word[W_REPLY]; /* 0: none */
	struct load l = {.src = reply_source, .n = (size_t)gn_job->word[W_REPLY_BYTES]};
	gasnet_node_t to;
	for (int i = 0; i < m; i++)
		l.args[i] = ~args[i];
	if (kind > 1)
		fill_bytes(reply_source, l.n, seed_of(l.n, m));
	CHECK_OK(gasnet_AMGetMsgSource(token, &to));
	l.dst = (void *)gn_job->word[W_TARGET_BACK + to % 8];
	if (kind)
		CHECK_OK(senders[m][SHORT_BACK + kind - 1](to, token, &l));
}

/* ---- handlers of each count ---- */

/* A Long's payload is where the sender said, a Medium's buffer is aligned. */
static void check_payload(int m, const void *buf, size_t n, uint64_t target)
{
	if (target)
		CHECK(n == 0 || buf == (void *)target);
	else
		CHECK(n == 0 || (uintptr_t)buf % 16 == 0);
	CHECK_BYTES(buf, n, seed_of(n, m));
}

static void take_request(gasnet_token_t token, int m, const int32_t *args)
{
	reply(token, m, args);
	requests++;
}

static void take_reply(int m, const int32_t *args, size_t n)
{
	answer.m = m;
	answer.n = n;
	memcpy(answer.args, args, sizeof answer.args);
	answers++;
}

#define ARGS(M) const int32_t args[17] = {GN_NAMES(M) 0}

#define HANDLERS(M)                                                                      \
	static void take_short_##M(gasnet_token_t token GN_PARAMS(M))                    \
	{                                                                                \
		ARGS(M);                                                                 \
		take_request(token, M, args);                                            \
	}                                                                                \
	static void take_buf_##M(gasnet_token_t token, void *buf, size_t n GN_PARAMS(M)) \
	{                                                                                \
		ARGS(M);                                                                 \
		check_payload(M, buf, n, gn_job->word[W_TARGET + gn.rank % 8]);          \
		take_request(token, M, args);                                            \
	}                                                                                \
	static void take_short_back_##M(gasnet_token_t token GN_PARAMS(M))               \
	{                                                                                \
		ARGS(M);                                                                 \
		(void)token;                                                             \
		take_reply(M, args, 0);                                                  \
	}                                                                                \
	static void take_buf_back_##M(                                                   \
		gasnet_token_t token, void *buf, size_t n GN_PARAMS(M))                  \
	{                                                                                \
		ARGS(M);                                                                 \
		(void)token;                                                             \
		check_payload(M, buf, n,                                                 \
			gn_job->word[W_REPLY] == 3                                       \
				? gn_job->word[W_TARGET_BACK + gn.rank % 8]              \
				: 0);                                                    \
		take_reply(M, args, n);                                                  \
	}
GN_EACH_M(HANDLERS)

static void async(gasnet_token_t token, void *buf, size_t n, gasnet_handlerarg_t seed);
static void async_back(gasnet_token_t token);
static void mixed(gasnet_token_t token, void *buf, size_t n, gasnet_handlerarg_t value,
	gasnet_handlerarg_t slot);
static void mixed_back(gasnet_token_t token, gasnet_handlerarg_t slot);
static void silent(gasnet_token_t token);
static void deep(gasnet_token_t token);
static void deep_back(gasnet_token_t token);
static void huge(gasnet_token_t token, gasnet_handlerarg_t half);
static void huge_back(gasnet_token_t token, void *buf, size_t n);
static void waiting(gasnet_token_t token);

#define ENTRIES(M)                                                                       \
	{H_SHORT + M, take_short_##M}, {H_BUF + M, take_buf_##M},                        \
		{H_SHORT_BACK + M, take_short_back_##M},                                 \
		{H_BUF_BACK + M, take_buf_back_##M},

static gasnet_handlerentry_t table[] = {GN_EACH_M(ENTRIES){H_ASYNC, async},
	{H_ASYNC_BACK, async_back}, {H_MIXED, mixed}, {H_MIXED_BACK, mixed_back},
	{H_SILENT, silent}, {H_DEEP, deep}, {H_DEEP_BACK, deep_back}, {H_HUGE, huge},
	{H_HUGE_BACK, huge_back}, {H_WAITING, waiting}};
const struct gn_program gn_program = {GN_TABLE(table), .segment = SEGMENT};

/* ---- exchanges ---- */

/* Arguments with each sign, and the extremes. */
static void choose_args(struct load *l, uint64_t *seed)
{
	for (int i = 0; i < 16; i++)
		l->args[i] = (int32_t)random_next(seed);
	l->args[gn_below(seed, 16)] = INT32_MIN;
	l->args[gn_below(seed, 16)] = -1;
}

/* The handler of a Long, or of a Long reply, at this node's neighbor looks there. */
static void say_target(enum kind kind, gasnet_node_t to, const struct load *l)
{
	gn_job->word[W_TARGET + to % 8] = kind >= LONG ? (uintptr_t)l->dst : 0;
	gn_job->word[W_TARGET_BACK + gn.rank % 8] = (uintptr_t)gn_own(SEGMENT / 2 + 3);
}

/* Send a request, and wait for the reply. */
static void exchange(enum kind kind, gasnet_node_t to, struct load *l)
{
	unsigned before = answers;
	say_target(kind, to, l);
	CHECK_OK(senders[l->m][kind](to, NULL, l));
	UNTIL(answers != before);
	CHECK_EQ(answer.m, l->m);
	for (int i = 0; i < l->m; i++)
		CHECK_EQ(answer.args[i], ~l->args[i]);
}

static void say_reply(unsigned kind, size_t bytes)
{
	gn_barrier();
	gn_job->word[W_REPLY] = kind;
	gn_job->word[W_REPLY_BYTES] = bytes;
	if (!reply_source)
		reply_source = malloc(MOST);
	CHECK(reply_source);
	gn_barrier();
}

/* Exchange a load of each count, each kind of request, with one kind of reply. */
static void exchange_all(gasnet_node_t to, uint64_t *seed)
{
	unsigned char bytes[40];
	struct load l = {.src = bytes, .n = sizeof bytes, .dst = gn_at(to, 1001)};
	for (int kind = SHORT; kind <= LONG_ASYNC; kind++)
		for (l.m = 0; l.m <= 16; l.m++) {
			fill_bytes(bytes, sizeof bytes, seed_of(sizeof bytes, l.m));
			choose_args(&l, seed);
			exchange((enum kind)kind, to, &l);
		}
}

/* ---- statements ---- */

STATEMENT(42, limits)
{
	char sized[gasnet_AMMaxArgs()];
	static const char fixed[gasnet_AMMaxArgs()];
	CHECK_EQ(sizeof sized, 16);
	CHECK_EQ(sizeof fixed, 16);
	CHECK(gasnet_AMMaxMedium() >= 512);
	CHECK(gasnet_AMMaxLongRequest() >= 512);
	CHECK(gasnet_AMMaxLongReply() >= 512);
}

STATEMENT(43, arguments_of_each_count_and_kind)
{
	uint64_t seed = gn_seed() + gn.rank;
	for (unsigned kind = 1; kind <= 3; kind++) {
		say_reply(kind, 24);
		exchange_all(gn.next, &seed);
	}
}

STATEMENT(44, loopback_of_each_kind)
{
	uint64_t seed = gn_seed() + gn.rank;
	for (unsigned kind = 1; kind <= 3; kind++) {
		say_reply(kind, 24);
		exchange_all(gn.rank, &seed);
	}
}

static const int counts[] = {0, 1, 2, 3, 16};

/* Exchange Mediums of this size with each count; the source stays as it was. */
static void exchange_mediums(size_t n, uint64_t *seed)
{
	unsigned char *bytes = suite_alloc(n + 1);
	struct load l = {.src = bytes, .n = n};
	say_reply(2, n);
	for (int i = 0; i < 5; i++) {
		l.m = counts[i];
		fill_bytes(bytes, n, seed_of(n, l.m));
		choose_args(&l, seed);
		exchange(MEDIUM, gn.next, &l);
		CHECK_BYTES(bytes, n, seed_of(n, l.m));
		CHECK_EQ(answer.n, n);
	}
}

STATEMENT(45, mediums_of_each_size)
{
	const size_t most = gasnet_AMMaxMedium();
	const size_t sizes[] = {0, 1, 7, 8, 9, 511, 512, most - 1, most};
	uint64_t seed = gn_seed() + gn.rank;
	for (int i = 0; i < 9; i++)
		exchange_mediums(sizes[i], &seed);
}

/* check_payload() checks the buffer's address, in the requests and the replies. */
STATEMENT(46, medium_buffers_are_aligned)
{
	unsigned char bytes[256];
	struct load l = {.src = bytes};
	unsigned before;
	for (l.n = 1; l.n <= sizeof bytes; l.n += 15) {
		say_reply(2, l.n);
		before = answers;
		for (l.m = 0; l.m <= 16; l.m++) {
			fill_bytes(bytes, l.n, seed_of(l.n, l.m));
			exchange(MEDIUM, gn.next, &l);
		}
		CHECK_EQ(answers - before, 17);
	}
}

static void overwrite_at_once(enum kind kind, size_t n)
{
	unsigned char *bytes = suite_alloc(n);
	struct load l = {.src = bytes, .n = n, .m = 2, .dst = gn_at(gn.next, 64)};
	unsigned before;
	say_reply(1, 0);
	before = answers;
	say_target(kind, gn.next, &l);
	fill_bytes(bytes, n, seed_of(n, l.m));
	CHECK_OK(senders[l.m][kind](gn.next, NULL, &l));
	memset(bytes, 0xdd, n);
	UNTIL(answers != before);
}

STATEMENT(47, source_is_free_after_return)
{
	for (size_t n = 1; n <= gasnet_AMMaxMedium(); n += n)
		overwrite_at_once(MEDIUM, n);
	overwrite_at_once(MEDIUM, gasnet_AMMaxMedium());
	for (size_t n = 1; n <= (size_t)1 << 20 && n <= gasnet_AMMaxLongRequest(); n *= 4)
		overwrite_at_once(LONG, n);
}

static size_t at_most(size_t n, size_t most)
{
	return n < most ? n : most;
}

enum { EDGE = 4096 };

/* Color the bytes around a payload that is to come into this node's segment. */
static void color(size_t at, size_t n)
{
	memset(gn_own(at - EDGE), 0x3c, n + (size_t)2 * EDGE);
	gn_barrier();
}

static void check_edges(size_t at, size_t n)
{
	gn_barrier();
	CHECK_ALL(gn_own(at - EDGE), EDGE, 0x3c);
	CHECK_ALL(gn_own(at + n), EDGE, 0x3c);
}

static void exchange_long(size_t n)
{
	unsigned char *bytes = suite_alloc(n + 1);
	struct load l = {.src = bytes, .n = n, .m = 3, .dst = gn_at(gn.next, EDGE + 5)};
	fill_bytes(bytes, n, seed_of(n, l.m));
	say_reply(1, 0);
	color(EDGE + 5, n);
	exchange(LONG, gn.next, &l);
	check_edges(EDGE + 5, n);
	CHECK_BYTES(gn_own(EDGE + 5), n, seed_of(n, l.m));
}

STATEMENT(48, longs_of_each_size)
{
	const size_t most = at_most(gasnet_AMMaxLongRequest(), MOST);
	const size_t sizes[] = {0, 1, 8, 4095, 4096, 65536};
	for (int i = 0; i < 6; i++)
		exchange_long(at_most(sizes[i], most));
	exchange_long(most);
}

static void exchange_long_reply(size_t n)
{
	struct load l = {.m = 1};
	const size_t at = SEGMENT / 2 + 3;
	say_reply(3, n);
	color(at, n);
	exchange(SHORT, gn.next, &l);
	CHECK_EQ(answer.n, n);
	check_edges(at, n);
	CHECK_BYTES(gn_own(at), n, seed_of(n, l.m));
}

STATEMENT(49, long_replies_of_each_size)
{
	const size_t most = at_most(gasnet_AMMaxLongReply(), SEGMENT / 2 - 2 * EDGE);
	const size_t sizes[] = {0, 1, 8, 4095, 4096, 65536};
	for (int i = 0; i < 6; i++)
		exchange_long_reply(at_most(sizes[i], most));
	exchange_long_reply(most);
}

/* Send Longs from a source at odd places to odd places. */
static void send_from(void *source, size_t n)
{
	struct load l = {.src = source, .n = n, .m = 1};
	for (size_t i = 0; i < 8; i++) {
		l.dst = gn_at(gn.next, 10000 + i * 3);
		exchange(LONG, gn.next, &l);
	}
}

/* Memory that cannot be written during a test. */
static unsigned char constant[4096] __attribute__((aligned(4096)));

STATEMENT(50, longs_from_any_memory)
{
	enum { N = 777 };
	unsigned char stack[N + 1], *heap = suite_alloc(N + 3), *own = gn_own(12345);
	say_reply(1, 0);
	fill_bytes(stack + 1, N, seed_of(N, 1));
	send_from(stack + 1, N);
	fill_bytes(heap + 3, N, seed_of(N, 1));
	send_from(heap + 3, N);
	fill_bytes(own, N, seed_of(N, 1));
	send_from(own, N);
	fill_bytes(constant + 5, N, seed_of(N, 1));
	CHECK_EQ(mprotect(constant, sizeof constant, PROT_READ), 0);
	send_from(constant + 5, N);
	CHECK_EQ(mprotect(constant, sizeof constant, PROT_READ | PROT_WRITE), 0);
}

/* ---- LongAsync ---- */

static unsigned char async_source[100000];
static _Atomic unsigned asyncs;

static void async(gasnet_token_t token, void *buf, size_t n, gasnet_handlerarg_t seed)
{
	CHECK_BYTES(buf, n, (unsigned)seed);
	CHECK_OK(gasnet_AMReplyShort0(token, H_ASYNC_BACK));
}

/* The source is free from here on. */
static void async_back(gasnet_token_t token)
{
	(void)token;
	memset(async_source, 0xdd, sizeof async_source);
	asyncs++;
}

STATEMENT(51, source_is_free_in_the_reply_handler)
{
	gn_barrier();
	for (unsigned i = 0; i < 40; i++) {
		size_t n = (size_t)1 + (size_t)i * i * 60;
		asyncs = 0;
		fill_bytes(async_source, n, i);
		CHECK_OK(gasnet_AMRequestLongAsync1(
			gn.next, H_ASYNC, async_source, n, gn_at(gn.next, 512), (int)i));
		UNTIL(asyncs);
		CHECK_ALL(async_source, sizeof async_source, 0xdd);
	}
}

/* ---- Longs under way at the same time ---- */

enum { SLOTS = 8, SLOT = 9000 };
static _Atomic bool busy[SLOTS];

static void mixed(gasnet_token_t token, void *buf, size_t n, gasnet_handlerarg_t value,
	gasnet_handlerarg_t slot)
{
	CHECK_ALL(buf, n, value);
	CHECK_OK(gasnet_AMReplyShort1(token, H_MIXED_BACK, slot));
}

static void mixed_back(gasnet_token_t token, gasnet_handlerarg_t slot)
{
	(void)token;
	busy[slot] = false;
}

static void send_mixed(unsigned i, uint64_t *seed)
{
	static unsigned char source[SLOTS][SLOT];
	unsigned slot = (unsigned)gn_below(seed, SLOTS);
	size_t n = gn_below(seed, SLOT);
	gasnet_node_t to = (gasnet_node_t)gn_below(seed, gn.size);
	void *at = gn_at(to, (gn.rank * SLOTS + slot) * (size_t)SLOT);
	UNTIL(!busy[slot]);
	busy[slot] = true;
	memset(source[slot], (unsigned char)i, n);
	if (random_next(seed) & 1)
		CHECK_OK(gasnet_AMRequestLong2(
			to, H_MIXED, source[slot], n, at, (unsigned char)i, (int)slot));
	else
		CHECK_OK(gasnet_AMRequestLongAsync2(
			to, H_MIXED, source[slot], n, at, (unsigned char)i, (int)slot));
}

STATEMENT(52, handler_sees_no_old_byte)
{
	uint64_t seed = gn_seed() * 1000 + gn.rank;
	gn_barrier();
	for (unsigned i = 0; i < 10000 / gn.size; i++)
		send_mixed(i, &seed);
	for (int i = 0; i < SLOTS; i++)
		UNTIL(!busy[i]);
}

STATEMENT(53, no_bytes_without_source)
{
	struct load l = {.m = 0};
	for (unsigned kind = 1; kind <= 3; kind++) {
		say_reply(kind, 0);
		for (int request = MEDIUM; request <= LONG_ASYNC; request++)
			for (l.m = 0; l.m <= 16; l.m += 8) {
				l.dst = gn_at(gn.next, 0);
				exchange((enum kind)request, gn.next, &l);
				CHECK_EQ(answer.n, 0);
			}
	}
}

/* ---- requests without a reply ---- */

static _Atomic unsigned silents;

static void silent(gasnet_token_t token)
{
	(void)token;
	silents++;
}

static size_t resident_bytes(void)
{
	size_t pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	CHECK(f);
	CHECK_EQ(fscanf(f, "%*u %zu", &pages), 1);
	fclose(f);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void send_silents(unsigned n)
{
	silents = 0;
	gn_barrier();
	for (unsigned i = 0; i < n; i++)
		CHECK_OK(gasnet_AMRequestShort0(gn.next, H_SILENT));
	UNTIL(silents == n);
	gn_barrier();
}

STATEMENT(54, requests_without_reply_need_no_memory)
{
	NO_TSAN("its own memory grows with each message");
	send_silents(1000);
	size_t before = resident_bytes();
	send_silents(getenv("GN_LONG") ? 100000 : 100000 / gn.size);
	size_t after = resident_bytes();
	CHECK(after < before + ((size_t)2 << 20));
}

/* ---- replies ---- */

static _Atomic unsigned deeps, deep_ends;

static void reply_at_depth(gasnet_token_t token, int left)
{
	volatile int here = left;
	if (left)
		reply_at_depth(token, left - 1);
	else
		CHECK_OK(gasnet_AMReplyShort0(token, H_DEEP_BACK));
	CHECK_EQ(here, left);
}

static void deep(gasnet_token_t token)
{
	gasnet_node_t from = (gasnet_node_t)-1;
	reply_at_depth(token, 60);
	CHECK_OK(gasnet_AMGetMsgSource(token, &from));
	CHECK_EQ(from, gn.before);
	deep_ends++;
}

static void deep_back(gasnet_token_t token)
{
	(void)token;
	deeps++;
}

STATEMENT(59, reply_from_any_depth)
{
	deeps = deep_ends = 0;
	gn_barrier();
	for (int i = 0; i < 100; i++)
		CHECK_OK(gasnet_AMRequestShort0(gn.next, H_DEEP));
	UNTIL(deeps == 100 && deep_ends == 100);
}

static _Thread_local bool in_reply;
static _Atomic unsigned huges, waited;

static size_t huge_bytes(void)
{
	return at_most(gasnet_AMMaxLongReply(), (size_t)8 << 20);
}

static void huge(gasnet_token_t token, gasnet_handlerarg_t offset)
{
	gasnet_node_t from;
	CHECK(!in_reply);
	CHECK_OK(gasnet_AMGetMsgSource(token, &from));
	in_reply = true;
	CHECK_OK(gasnet_AMReplyLong0(token, H_HUGE_BACK, reply_source, huge_bytes(),
		gn_at(from, (size_t)offset)));
	in_reply = false;
}

static void huge_back(gasnet_token_t token, void *buf, size_t n)
{
	(void)token, (void)buf;
	CHECK_EQ(n, huge_bytes());
	huges++;
}

static void waiting(gasnet_token_t token)
{
	(void)token;
	CHECK(!in_reply);
	waited++;
}

STATEMENT(60, no_request_handler_inside_a_reply)
{
	huges = waited = 0;
	say_reply(1, 0);
	if (gn.is_a) {
		CHECK_OK(gasnet_AMRequestShort1(gn.b, H_HUGE, 0));
		for (int i = 0; i < 100; i++)
			CHECK_OK(gasnet_AMRequestShort0(gn.b, H_WAITING));
	}
	if (gn.is_b && !gn.is_a)
		compute_ms(50); /* pause: time for requests to pile up */
	if (gn.is_b)
		UNTIL(waited == 100);
	if (gn.is_a)
		UNTIL(huges == 1);
}
