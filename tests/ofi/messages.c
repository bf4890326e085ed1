/* SPDX-License-Identifier: BSD-3-Clause */
/* Conformance of the libfabric provider: messages. */
#include "frame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const size_t lengths[] = {0, 1, 8, 1536, 8192, 8193, LONG};
enum { LENGTHS = sizeof lengths / sizeof lengths[0] };

/* ---- 27, 28: lengths and pieces ---- */

static void check_received(struct done d, const unsigned char *at, size_t room,
	size_t len, uint64_t seed, bool tagged)
{
	CHECK_EQ(d.e.len, len);
	CHECK_EQ(d.e.flags & (FI_RECV | FI_SEND), FI_RECV);
	CHECK_EQ(d.e.flags & (FI_TAGGED | FI_MSG), tagged ? FI_TAGGED : FI_MSG);
	CHECK_GUARDED(at, room, len, seed);
}

static void one_length(struct side *s, bool tagged, size_t len, bool late)
{
	unsigned char *at = me.is_client ? sent_bytes(len) : guarded(len + 8);
	struct fi_context2 context;
	if (me.is_server && !late)
		recv_from(s, tagged, s->at[0], at, len + 8, len + 1, &context);
	barrier();
	if (me.is_client)
		send_to(s, tagged, 1, at, len, len + 1, &context);
	if (late)
		settle(s, SETTLED, 0, 1);
	if (me.is_server && late)
		recv_from(s, tagged, s->at[0], at, len + 8, len + 1, &context);
	struct done d = TAKE(s, &context);
	if (me.is_server)
		check_received(d, at, len + 8, len, len, tagged);
	barrier();
	suite_free();
}

/* Map so many bytes, of which all pieces of 64 MiB are the same memory. */
static unsigned char *repeated(size_t len)
{
	enum { PIECE = 64 << 20 };
	int fd = memfd_create("ofi", MFD_CLOEXEC);
	CHECK(fd >= 0 && ftruncate(fd, PIECE) == 0);
	unsigned char *at = mmap(
		NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(at != MAP_FAILED);
	for (size_t i = 0; i < len; i += PIECE)
		CHECK(mmap(at + i, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			      fd, 0) == at + i);
	close(fd);
	return at;
}

static void three_gibibytes(struct side *s)
{
	const size_t len = (size_t)3 << 30;
	struct fi_context2 context;
	unsigned char *at = me.is_client ? repeated(len) : suite_alloc(len);
	if (me.is_client) {
		fill(at, 64 << 20, 3);
		send_to(s, true, 1, at, len, 3, &context);
	} else {
		recv_from(s, true, s->at[0], at, len, 3, &context);
	}
	struct done d = TAKE(s, &context);
	if (me.is_server) {
		CHECK_EQ(d.e.len, len);
		for (size_t i = 0; i < len; i += 64 << 20)
			CHECK_BYTES(at + i, 64 << 20, 3);
	}
	barrier();
}

STATEMENT(27, lengths, 2, 0)
{
	struct side *s = both_kinds(FI_DIRECTED_RECV);
	for (unsigned i = 0; i < 4 * LENGTHS; i++)
		one_length(s, i & 1, lengths[i / 4], i & 2);
	if (many(3) == 3 && many(1000) == 1000) /* all that the checklist names */
		three_gibibytes(s);
}

/* Cut len bytes into n pieces, of which one is empty if there are several. */
static void cut(struct iovec *iov, unsigned n, unsigned char *at, size_t len)
{
	size_t from = 0;
	for (unsigned i = 0; i < n; i++) {
		size_t piece = i == n - 1 ? len - from : i == 1 ? 0 : len / (n + 1) + i;
		iov[i] = (struct iovec){at + from, piece};
		from += piece;
	}
}

static void some_pieces(struct side *s, bool tagged, unsigned n, size_t len, bool late)
{
	unsigned char *at = me.is_client ? sent_bytes(len) : guarded(len);
	struct iovec iov[IOV_MOST];
	struct fi_context2 context;
	cut(iov, n, at, len);
	if (late) {
		if (me.is_client && tagged)
			TRY(s, fi_tsendv(s->ep, iov, NULL, n, s->at[1], n, &context));
		else if (me.is_client)
			TRY(s, fi_sendv(s->ep, iov, NULL, n, s->at[1], &context));
		settle(s, SETTLED, 0, 1);
	}
	if (me.is_server && tagged)
		TRY(s, fi_trecvv(s->ep, iov, NULL, n, s->at[0], n, 0, &context));
	else if (me.is_server)
		TRY(s, fi_recvv(s->ep, iov, NULL, n, s->at[0], &context));
	barrier();
	if (me.is_client && !late && tagged)
		TRY(s, fi_tsendv(s->ep, iov, NULL, n, s->at[1], n, &context));
	else if (me.is_client && !late)
		TRY(s, fi_sendv(s->ep, iov, NULL, n, s->at[1], &context));
	struct done d = TAKE(s, &context);
	if (me.is_server)
		check_received(d, at, len, len, len, tagged);
	barrier();
	suite_free();
}

static void too_many_pieces(struct side *s)
{
	static char bytes[IOV_MOST + 1];
	struct iovec iov[IOV_MOST + 1];
	for (unsigned i = 0; i <= IOV_MOST; i++)
		iov[i] = (struct iovec){bytes + i, 1};
	FAILS(fi_sendv(s->ep, iov, NULL, IOV_MOST + 1, s->at[1], NULL), -FI_EINVAL);
	FAILS(fi_tsendv(s->ep, iov, NULL, IOV_MOST + 1, s->at[1], 1, NULL), -FI_EINVAL);
	FAILS(fi_recvv(s->ep, iov, NULL, IOV_MOST + 1, s->at[1], NULL), -FI_EINVAL);
	FAILS(fi_trecvv(s->ep, iov, NULL, IOV_MOST + 1, s->at[1], 1, 0, NULL),
		-FI_EINVAL);
	SILENCE(s, 1);
}

STATEMENT(28, pieces, 2, 0)
{
	struct side *s = both_kinds(FI_DIRECTED_RECV);
	size_t most = s->info->tx_attr->iov_limit;
	if (over_portals()) {
		CHECK_EQ(most, IOV_MOST);
		CHECK_EQ(s->info->rx_attr->iov_limit, IOV_MOST);
		too_many_pieces(s);
	}
	for (unsigned n = 1; n <= most; n++)
		for (unsigned i = 0; i < 8; i++)
			some_pieces(s, i & 1, n, i & 2 ? 200000 : 1000, i & 4);
}

/* ---- 29, 30: matching ---- */

/* Return the number of bits that a program may use in tags. */
static unsigned tag_bits(struct side *s)
{
	uint64_t format = s->info->ep_attr->mem_tag_format;
	unsigned bits = format ? 64 - (unsigned)__builtin_clzll(format) : 64;
	if (over_portals())
		CHECK_EQ(bits, 56);
	return bits;
}

static void each_bit_matches(struct side *s, unsigned bits)
{
	static struct fi_context2 contexts[64];
	static uint64_t got[64];
	for (unsigned i = 0; i < bits && me.is_server; i++)
		TRY(s, fi_trecv(s->ep, &got[i], 8, NULL, FI_ADDR_UNSPEC, UINT64_C(1) << i,
			       0, &contexts[i]));
	barrier();
	for (unsigned i = bits; i-- > 0 && me.is_client;) {
		uint64_t value = i + 100;
		send_now(s, 1, &value, sizeof value, UINT64_C(1) << i);
	}
	for (unsigned i = 0; i < bits && me.is_server; i++) {
		struct done d = TAKE(s, &contexts[i]);
		CHECK_EQ(d.e.tag, UINT64_C(1) << i);
		CHECK_EQ(got[i], i + 100);
	}
	barrier();
}

/* The first message differs in a bit that counts, the second one in ignored ones. */
static void ignored_bits_do_not(struct side *s, unsigned bits, bool late)
{
	const uint64_t all = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
	static struct fi_context2 wide, exact;
	for (unsigned i = 0; i < bits; i++) {
		uint64_t bit = UINT64_C(1) << i, tag = mix(i) & all, got = 0, other = 0;
		uint64_t ignore = mix(i + 99) & all & ~bit, one = 1, two = 2;
		if (me.is_server && !late)
			TRY(s, fi_trecv(s->ep, &got, 8, NULL, FI_ADDR_UNSPEC, tag, ignore,
				       &wide));
		barrier();
		if (me.is_client) {
			send_now(s, 1, &one, 8, tag ^ bit);
			send_now(s, 1, &two, 8, tag ^ ignore);
			barrier();
			continue;
		}
		if (late)
			TRY(s, fi_trecv(s->ep, &got, 8, NULL, FI_ADDR_UNSPEC, tag, ignore,
				       &wide));
		CHECK_EQ(TAKE(s, &wide).e.tag, tag ^ ignore);
		TRY(s, fi_trecv(s->ep, &other, 8, NULL, FI_ADDR_UNSPEC, tag ^ bit, 0,
			       &exact));
		(void)TAKE(s, &exact);
		CHECK_EQ(got, 2);
		CHECK_EQ(other, 1);
		barrier();
	}
}

STATEMENT(29, tags, 2, 0)
{
	struct side *s = side_open((struct how){.caps = FI_TAGGED});
	unsigned bits = tag_bits(s);
	each_bit_matches(s, bits);
	ignored_bits_do_not(s, bits, false);
	ignored_bits_do_not(s, bits, true);
}

static void two_kinds(struct side *s, bool late)
{
	static struct fi_context2 plain, tagged;
	uint64_t got_plain = 0, got_tagged = 0, one = 1, two = 2;
	if (me.is_client) {
		barrier();
		send_to(s, true, 1, &one, 8, 0, &tagged);
		send_to(s, false, 1, &two, 8, 0, &plain);
		if (late)
			settle(s, SETTLED, 0, 1);
	} else {
		if (late) {
			barrier();
			settle(s, SETTLED, 0, 1);
		}
		recv_from(s, false, FI_ADDR_UNSPEC, &got_plain, 8, 0, &plain);
		TRY(s, fi_trecv(s->ep, &got_tagged, 8, NULL, FI_ADDR_UNSPEC, 0,
			       late ? 0 : UINT64_MAX >> 8, &tagged));
		if (!late)
			barrier();
	}
	(void)TAKE(s, &tagged);
	(void)TAKE(s, &plain);
	if (me.is_server) {
		CHECK_EQ(got_tagged, 1);
		CHECK_EQ(got_plain, 2);
	}
	barrier();
}

STATEMENT(30, kinds_do_not_match, 2, 0)
{
	struct side *s = both_kinds(0);
	for (unsigned i = 0; i < 20; i++)
		two_kinds(s, i & 1);
}

/* ---- 31, 32: order ---- */

static size_t mixed_length(unsigned i)
{
	static const size_t mixed[] = {
		LONG, 8, 8193, 100, 8192, 300000, 8, 8, 1536, 9000};
	return mixed[mix(i) % (sizeof mixed / sizeof mixed[0])];
}

static void ordered_messages(bool tagged, unsigned late)
{
	enum { N = 40 };
	static struct fi_context2 contexts[N];
	static unsigned char *at[N];
	struct side *s = both_kinds(0);
	for (unsigned i = 0; i < N; i++)
		at[i] = me.is_client ? suite_alloc(mixed_length(i)) : guarded(LONG);
	for (unsigned i = 0; i < late && me.is_server; i++)
		recv_from(s, tagged, FI_ADDR_UNSPEC, at[i], LONG, 5, &contexts[i]);
	barrier();
	for (unsigned i = 0; i < N && me.is_client; i++) {
		fill(at[i], mixed_length(i), i);
		send_to(s, tagged, 1, at[i], mixed_length(i), 5, &contexts[i]);
	}
	for (unsigned i = late; i < N && me.is_server; i++)
		recv_from(s, tagged, FI_ADDR_UNSPEC, at[i], LONG, 5, &contexts[i]);
	for (unsigned i = 0; i < N; i++) {
		struct done d = TAKE(s, &contexts[i]);
		if (me.is_server)
			check_received(d, at[i], LONG, mixed_length(i), i, tagged);
	}
	barrier();
	side_close(s);
	suite_free();
}

STATEMENT(31, order_of_messages, 2, 0)
{
	for (unsigned i = 0; i < 6; i++)
		ordered_messages(i & 1, i / 2 * 20);
}

STATEMENT(32, order_of_receives, 2, ALONE)
{
	enum { N = 300 };
	static struct fi_context2 contexts[N];
	static unsigned got[N];
	few_posted("16");
	struct side *s = side_open((struct how){.caps = FI_TAGGED});
	for (unsigned i = 0; i < N && me.is_server; i++) /* all bits, some bits, none */
		TRY(s, fi_trecv(s->ep, &got[i], sizeof got[i], NULL, FI_ADDR_UNSPEC, 7,
			       i % 3 == 0   ? 0
			       : i % 3 == 1 ? 0xffff0
					    : UINT64_MAX >> 8,
			       &contexts[i]));
	barrier();
	for (unsigned i = 0; i < N && me.is_client; i++) {
		unsigned value = i + 1;
		send_now(s, 1, &value, sizeof value, 7);
	}
	for (unsigned i = 0; i < N && me.is_server; i++) {
		(void)TAKE(s, &contexts[i]);
		CHECK_EQ(got[i], i + 1);
	}
	barrier();
}

/* ---- 33, 34: sources ---- */

/* Ranks 1 and 2 send, rank 0 takes first what rank 2 has sent. */
static void directed(struct side *s, bool tagged, bool late)
{
	static struct fi_context2 contexts[3];
	unsigned got[3] = {0};
	if (me.is_client && !late)
		for (unsigned from = 2; from > 0; from--)
			recv_from(s, tagged, s->at[from], &got[from], 4, 9,
				&contexts[from]);
	barrier();
	for (unsigned turn = 1; turn <= 2; turn++) { /* rank 1 first */
		if (me.rank == turn)
			send_to(s, tagged, 0, &me.rank, 4, 9, &contexts[0]);
		settle(s, SETTLED, turn, 0);
	}
	if (me.is_client && late)
		for (unsigned from = 2; from > 0; from--)
			recv_from(s, tagged, s->at[from], &got[from], 4, 9,
				&contexts[from]);
	for (unsigned from = 2; from > 0 && me.is_client; from--) {
		(void)TAKE(s, &contexts[from]);
		CHECK_EQ(got[from], from);
	}
	if (!me.is_client)
		(void)TAKE(s, &contexts[0]);
	barrier();
}

/* Two more endpoints of this process send, and the second one's message is wanted. */
static void directed_within_a_process(struct side *s)
{
	static struct fi_context2 sent[2], got;
	struct fid_ep *a = endpoint(s), *b = endpoint(s);
	fi_addr_t self = address_of(s, s->ep), from = address_of(s, b);
	unsigned one = 1, two = 2, value = 0;
	TRY(s, fi_tsend(a, &one, 4, NULL, self, 4, &sent[0]));
	TRY(s, fi_tsend(b, &two, 4, NULL, self, 4, &sent[1]));
	recv_from(s, true, from, &value, 4, 4, &got);
	(void)TAKE(s, &got);
	CHECK_EQ(value, 2);
	recv_from(s, true, address_of(s, a), &value, 4, 4, &got);
	(void)TAKE(s, &got);
	CHECK_EQ(value, 1);
	(void)TAKE(s, &sent[0]);
	(void)TAKE(s, &sent[1]);
	CLOSE(a);
	CLOSE(b);
}

STATEMENT(33, directed, 3, 0)
{
	struct side *s = both_kinds(FI_DIRECTED_RECV);
	for (unsigned i = 0; i < 4; i++)
		directed(s, i & 1, i & 2);
	if (strcmp(provider(), "shm") != 0) /* which takes the other one's */
		directed_within_a_process(s);
}

STATEMENT(34, any_source, 3, 0)
{
	struct side *s = both_kinds(FI_DIRECTED_RECV);
	static struct fi_context2 contexts[4];
	for (unsigned i = 0; i < 8; i++) {
		unsigned got[2] = {0, 0};
		bool tagged = i & 1;
		if (me.is_client && i & 2)
			settle(s, SETTLED, 1, 0);
		else if (i & 2)
			send_to(s, tagged, 0, &me.rank, 4, 9, &contexts[0]);
		if (!me.is_client && i & 2)
			settle(s, SETTLED, 1, 0);
		for (unsigned j = 0; j < 2 && me.is_client; j++)
			recv_from(s, tagged, FI_ADDR_UNSPEC, &got[j], 4, 9, &contexts[j]);
		barrier();
		if (!me.is_client && !(i & 2))
			send_to(s, tagged, 0, &me.rank, 4, 9, &contexts[0]);
		(void)TAKE(s, &contexts[0]);
		if (me.is_client) {
			(void)TAKE(s, &contexts[1]);
			CHECK_EQ(got[0] + got[1], 3);
		}
		barrier();
	}
}

/* ---- 35, 36: inject ---- */

STATEMENT(35, inject, 2, 0)
{
	static unsigned char bytes[1 << 16], got[1 << 16];
	struct side *s = both_kinds(0);
	size_t most = s->info->tx_attr->inject_size;
	if (over_portals())
		CHECK(most >= INJECT_MOST);
	for (unsigned i = 0; i < 400; i++) {
		size_t len = i < 8 ? most - i : mix(i) % (most + 1);
		bool tagged = i & 1;
		if (me.is_server) {
			struct fi_context2 context;
			recv_from(s, tagged, FI_ADDR_UNSPEC, got, most, 3, &context);
			CHECK_EQ(TAKE(s, &context).e.len, len);
			CHECK_BYTES(got, len, i);
			continue;
		}
		fill(bytes, len, i);
		if (tagged)
			TRY(s, fi_tinject(s->ep, bytes, len, s->at[1], 3));
		else
			TRY(s, fi_inject(s->ep, bytes, len, s->at[1]));
		memset(bytes, 0x77, len);
	}
	barrier();
	SILENCE(s, 2);
}

STATEMENT(36, inject_too_much, 2, 0)
{
	only_portals("others refuse it by other codes");
	static unsigned char bytes[1 << 16];
	struct side *s = both_kinds(0);
	size_t len = s->info->tx_attr->inject_size + 1;
	FAILS(fi_inject(s->ep, bytes, len, s->at[1]), -FI_EINVAL);
	FAILS(fi_tinject(s->ep, bytes, len, s->at[1], 1), -FI_EINVAL);
	FAILS(fi_injectdata(s->ep, bytes, len, 5, s->at[1]), -FI_EINVAL);
	FAILS(fi_tinjectdata(s->ep, bytes, len, 5, s->at[1], 1), -FI_EINVAL);
	SILENCE(s, 2);
	barrier();
}

/* ---- 37: data ---- */

static void one_datum(struct side *s, bool tagged, unsigned how, uint64_t data)
{
	static unsigned char bytes[LONG];
	struct fi_context2 context;
	size_t len = how == 2 ? LONG : 8;
	bool injects = how == 3;
	if (me.is_server) {
		recv_from(s, tagged, FI_ADDR_UNSPEC, bytes, LONG, 6, &context);
		barrier();
		struct done d = TAKE(s, &context);
		CHECK_EQ(d.e.flags & FI_REMOTE_CQ_DATA, how ? FI_REMOTE_CQ_DATA : 0);
		if (how)
			CHECK_EQ(d.e.data, data);
		barrier();
		return;
	}
	barrier();
	if (injects && tagged)
		TRY(s, fi_tinjectdata(s->ep, bytes, len, data, s->at[1], 6));
	else if (injects)
		TRY(s, fi_injectdata(s->ep, bytes, len, data, s->at[1]));
	else if (how && tagged)
		TRY(s, fi_tsenddata(
			       s->ep, bytes, len, NULL, data, s->at[1], 6, &context));
	else if (how)
		TRY(s, fi_senddata(s->ep, bytes, len, NULL, data, s->at[1], &context));
	else
		send_to(s, tagged, 1, bytes, len, 6, &context);
	if (!injects)
		(void)TAKE(s, &context);
	barrier();
}

STATEMENT(37, data, 2, 0)
{
	static const uint64_t data[] = {0, 1, 0x80000000, 0xffffffff, 0x12345678};
	struct side *s = both_kinds(0);
	if (over_portals())
		CHECK_EQ(s->info->domain_attr->cq_data_size, 4);
	for (unsigned i = 0; i < 40; i++) /* without, short, long, injected */
		one_datum(s, i & 1, i / 2 % 4, data[i / 8]);
}

/* ---- 38: truncation ---- */

static void truncate_one(struct side *s, bool tagged, size_t len, size_t room, bool late)
{
	struct fi_context2 context;
	unsigned char *at = me.is_client ? sent_bytes(len) : guarded(room);
	if (me.is_server && !late)
		recv_from(s, tagged, FI_ADDR_UNSPEC, at, room, 8, &context);
	barrier();
	if (me.is_client && tagged)
		TRY(s, fi_tsenddata(s->ep, at, len, NULL, 77, s->at[1], 8, &context));
	else if (me.is_client)
		TRY(s, fi_senddata(s->ep, at, len, NULL, 77, s->at[1], &context));
	if (late)
		settle(s, SETTLED, 0, 1);
	if (me.is_server && late)
		recv_from(s, tagged, FI_ADDR_UNSPEC, at, room, 8, &context);
	if (me.is_client) {
		(void)TAKE(s, &context);
	} else {
		struct done d = TAKE_ERR(s, &context, FI_ETRUNC);
		CHECK_EQ(d.olen, len - room);
		if (over_portals()) {
			CHECK_EQ(d.e.len, room);
			CHECK_EQ(d.e.data, 77);
			CHECK_EQ(d.e.tag, tagged ? 8 : 0);
		}
		CHECK_GUARDED(at, room, room, len);
	}
	barrier();
	suite_free();
}

STATEMENT(38, truncation, 2, 0)
{
	static const size_t sent[] = {100, 8192, 8193, LONG};
	not_over("shm", "its error entries have no overflow length");
	not_over("tcp;ofi_rxm", "its error entries have no overflow length");
	struct side *s = both_kinds(0);
	for (unsigned i = 0; i < 16; i++) {
		truncate_one(s, i & 1, sent[i / 4], 50, i & 2);
		truncate_one(s, i & 1, sent[i / 4], 0, i & 2);
		truncate_one(s, i & 1, sent[i / 4], sent[i / 4] - 1, i & 2);
	}
}

/* ---- 39 to 43: many ---- */

STATEMENT(39, many_receives, 2, 0)
{
	only_portals("others have a limit");
	const uint32_t n = (uint32_t)many(100000);
	uint32_t *got = suite_alloc(n * sizeof *got);
	struct fi_context2 *contexts = suite_alloc(n * sizeof *contexts);
	struct side *s = side_open((struct how){.caps = FI_TAGGED});
	for (uint32_t i = 0; i < n && me.is_server; i++) /* without a repeat */
		OK(fi_trecv(s->ep, &got[i], 4, NULL, FI_ADDR_UNSPEC, i % 100, 0,
			&contexts[i]));
	barrier();
	for (uint32_t i = 0; i < n; i++) {
		if (me.is_client)
			TRY(s, fi_tinject(s->ep, &i, 4, s->at[1], i % 100));
		else
			(void)NEXT(s);
	}
	for (uint32_t i = 0; i < n && me.is_server; i++)
		CHECK_EQ(got[i], i);
	barrier();
	SILENCE(s, 1);
}

enum { W_SENT, W_STALLED, W_DONE, W_TARGET };

/* Send so many messages, number i with tag and content i; say how many have gone. */
static void flood(struct side *s, unsigned rank, uint32_t n, size_t len)
{
	unsigned char *bytes = suite_alloc(len);
	static struct fi_context2 context;
	for (uint32_t i = 0; i < n; i++) {
		memcpy(bytes, &i, sizeof i);
		if (len <= INJECT_MOST && over_portals())
			TRY(s, fi_tinject(s->ep, bytes, len, s->at[rank], i));
		else
			send_to(s, true, rank, bytes, len, i, &context);
		if (len > INJECT_MOST || !over_portals())
			(void)TAKE(s, &context);
		set_word(W_SENT, i + 1);
	}
	set_word(W_DONE, 1);
}

/* Wait, without a call of the library, until a flood has ended or makes no progress. */
static void await_stall(void)
{
	AWAIT(word(W_SENT) > 0);
	for (uint64_t had = 0; had != word(W_SENT) && !word(W_DONE);) {
		had = word(W_SENT);
		sleep_ms(60); /* pause: a sender that goes on would go on in this time */
	}
}

/* Receive the messages of a flood, each with its content. */
static void receive_flood(struct side *s, uint32_t n, size_t len)
{
	unsigned char *at = suite_alloc(len);
	for (uint32_t i = 0; i < n; i++) {
		struct done d = recv_now(s, at, len, i);
		CHECK_EQ(d.e.len, len);
		CHECK(memcmp(at, &i, sizeof i) == 0);
	}
}

STATEMENT(40, many_messages, 2, 0)
{
	not_over("shm", "it makes no progress without calls of the receiver");
	static const size_t sizes[] = {8, 64, SHORT_MOST};
	struct side *s = side_open((struct how){.caps = FI_TAGGED});
	for (unsigned i = 0; i < 3; i++) {
		const uint32_t n = (uint32_t)many(i < 2 ? 100000 : 20000);
		barrier();
		if (me.is_client) {
			flood(s, 1, n, sizes[i]);
		} else {
			await_stall();
			receive_flood(s, n, sizes[i]);
		}
		barrier();
		set_word(W_SENT, 0);
		set_word(W_DONE, 0);
	}
	SILENCE(s, 1);
}

/* What rank 2 does while rank 1's flood waits for rank 0, which makes no call. */
static void pass_the_flood(struct side *s)
{
	static unsigned char bytes[LONG];
	struct fi_context2 context;
	fill(bytes, LONG, 41);
	struct region r = told_region(0, 1);
	TRY(s, fi_write(s->ep, bytes, 1000, NULL, s->at[0], r.base, r.key, &context));
	(void)TAKE(s, &context);
	deliver(s, 0, bytes, 100, UINT64_C(1) << 40);
	deliver(s, 0, bytes, LONG, UINT64_C(1) << 41);
}

STATEMENT(41, others_pass_a_flood, 3, 0)
{
	only_portals("others make no progress without calls");
	static unsigned char target[1000], one[100], two[LONG];
	static struct fi_context2 contexts[2];
	const uint32_t n = (uint32_t)many(40000);
	const size_t len = 2000;
	struct side *s = side_open((struct how){.caps = FI_TAGGED | FI_RMA});
	if (!me.is_client)
		barrier();
	if (me.rank == 1)
		flood(s, 0, n, len);
	if (me.rank == 2) {
		await_stall();
		pass_the_flood(s);
		say();
	}
	if (me.is_client) {
		struct region r = {0};
		r = region_open(
			s, target, sizeof target, FI_REMOTE_WRITE | FI_REMOTE_READ, 1);
		tell_region(&r);
		recv_from(s, true, FI_ADDR_UNSPEC, one, 100, UINT64_C(1) << 40, contexts);
		recv_from(s, true, FI_ADDR_UNSPEC, two, LONG, UINT64_C(1) << 41,
			contexts + 1);
		barrier();
		hear(1);
		CHECK_BYTES(target, sizeof target, 41);
		CHECK_BYTES(one, sizeof one, 41);
		CHECK_BYTES(two, sizeof two, 41);
		(void)TAKE(s, &contexts[0]);
		(void)TAKE(s, &contexts[1]);
		receive_flood(s, n, len);
		CLOSE(r.mr);
	}
	barrier();
}

STATEMENT(42, floods_cross, 2, 0)
{
	not_over("shm", "its sends wait for receives");
	const uint32_t n = (uint32_t)many(50000);
	const size_t len = 1000;
	struct side *s = side_open((struct how){.caps = FI_TAGGED});
	flood(s, 1 - me.rank, n, len);
	receive_flood(s, n, len);
	barrier();
}

/* Serve requests, or take answers, at an endpoint of this process. */
static void serve(struct side *requests, struct side *answers, uint32_t n)
{
	static struct fi_context2 got, sent;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t value;
		recv_from(requests, false, FI_ADDR_UNSPEC, &value, 4, 0, &got);
		(void)TAKE(requests, &got);
		send_to(answers, false, 1, &value, 4, 0, &sent);
		(void)TAKE(answers, &sent);
	}
}

STATEMENT(43, requests_and_answers, 2, 0)
{
	not_over("shm", "its sends wait for receives");
	const uint32_t n = (uint32_t)many(50000), asked = 200;
	static struct fi_context2 got, sent;
	struct side *requests = side_open((struct how){.caps = FI_MSG});
	struct side *answers = side_open((struct how){.caps = FI_MSG});
	for (uint32_t i = 0; i < n && me.is_client; i++) {
		TRY(requests, fi_inject(requests->ep, &i, 4, requests->at[1]));
		if (i % 256 == 0)
			set_word(W_SENT, i + 1);
		if (i == n / 2)
			serve(requests, answers, asked);
	}
	for (uint32_t i = 0; i < asked && me.is_server; i++) {
		uint32_t value = 0;
		send_to(requests, false, 0, &i, 4, 0, &sent);
		recv_from(answers, false, FI_ADDR_UNSPEC, &value, 4, 0, &got);
		(void)TAKE(answers, &got); /* the only queue that is read */
		CHECK_EQ(value, i);
		(void)TAKE(requests, &sent);
	}
	for (uint32_t i = 0; i < n && me.is_server; i++) {
		uint32_t value = 0;
		recv_from(requests, false, FI_ADDR_UNSPEC, &value, 4, 0, &got);
		(void)TAKE(requests, &got);
		CHECK_EQ(value, i);
	}
	barrier();
}
