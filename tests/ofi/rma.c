/* SPDX-License-Identifier: BSD-3-Clause */
/* Conformance of the libfabric provider: remote memory. */
#include "../support/asleep.h"
#include "frame.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { ALL = FI_REMOTE_READ | FI_REMOTE_WRITE };

static struct side *rma_side(uint64_t caps)
{
	return side_open((struct how){.caps = FI_RMA | FI_TAGGED | caps});
}

static void write_there(struct side *s, const void *at, size_t len, struct region r,
	uint64_t offset, void *context)
{
	TRY(s, fi_write(s->ep, at, len, NULL, s->at[1], r.base + offset, r.key, context));
}

static void read_there(struct side *s, void *at, size_t len, struct region r,
	uint64_t offset, void *context)
{
	TRY(s, fi_read(s->ep, at, len, NULL, s->at[1], r.base + offset, r.key, context));
}

/* Write, read, and wait for both. */
static void write_now(
	struct side *s, const void *at, size_t len, struct region r, uint64_t offset)
{
	static struct fi_context2 context;
	write_there(s, at, len, r, offset, &context);
	(void)TAKE(s, &context);
}

static void read_now(
	struct side *s, void *at, size_t len, struct region r, uint64_t offset)
{
	static struct fi_context2 context;
	read_there(s, at, len, r, offset, &context);
	(void)TAKE(s, &context);
}

/* Open a region at rank 1 and return it at both ranks; its nth tale is 1 + n. */
static struct region region_at_server(
	struct side *s, void *at, size_t len, uint64_t access, uint64_t key, unsigned n)
{
	if (me.is_client)
		return told_region(1, 1 + n);
	struct region r = region_open(s, at, len, access, key);
	tell_region(&r);
	return r;
}

static void server_closes(struct region r)
{
	if (me.is_server)
		CLOSE(r.mr);
}

/* ---- 68: lengths and offsets ---- */

static void three_gibibytes(struct side *s)
{
	const size_t len = (size_t)3 << 30, piece = 64 << 20;
	unsigned char *at = mmap(NULL, len, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(at != MAP_FAILED);
	struct region r = region_at_server(s, at, len, ALL, 3, over_portals() ? 3 : 1);
	if (me.is_client) {
		for (size_t i = 0; i < len; i += piece)
			fill(at + i, piece, i / piece);
		write_now(s, at, len, r, 0);
		memset(at, 0, len);
		read_now(s, at, len, r, 0);
	}
	for (size_t i = 0; i < len && me.is_client; i += piece)
		CHECK_BYTES(at + i, piece, i / piece);
	barrier();
	server_closes(r);
	CHECK(munmap(at, len) == 0);
}

/* A region of all memory: its offsets are addresses. */
static void all_memory(struct side *s)
{
	static unsigned char target[LONG], bytes[LONG];
	static _Alignas(8) uint64_t sum;
	struct region r = {0};
	if (me.is_server) {
		r = region_open(s, NULL, SIZE_MAX, ALL, 2);
		struct region places[] = {r, r};
		places[0].base += (uintptr_t)target;
		places[1].base += (uintptr_t)&sum;
		tell_region(&places[0]);
		tell_region(&places[1]);
	} else {
		struct fi_context2 context;
		const uint64_t five = 5;
		r = told_region(1, 2);
		fill(bytes, LONG, 1);
		write_now(s, bytes, LONG, r, 0);
		memset(bytes, 0, LONG);
		read_now(s, bytes, LONG, r, 0);
		CHECK_BYTES(bytes, LONG, 1);
		r = told_region(1, 3);
		TRY(s, fi_atomic(s->ep, &five, 1, NULL, s->at[1], r.base, r.key,
			       FI_UINT64, FI_SUM, &context));
		(void)TAKE(s, &context);
	}
	barrier();
	if (me.is_server) {
		CHECK_BYTES(target, LONG, 1);
		CHECK_EQ(sum, 5);
		CLOSE(r.mr);
	}
}

STATEMENT(68, lengths, 2, 0)
{
	static const size_t sizes[] = {0, 1, 7, 8, 64, 4095, 8192, 8193, 100000, LONG};
	static const size_t offsets[] = {0, 1, 63, 4096, 12345};
	enum { MOST = LONG + 12345 };
	static unsigned char target[MOST], from[LONG], to[LONG];
	struct side *s = rma_side(over_portals() ? FI_ATOMIC : 0);
	memset(target, 0xee, MOST);
	struct region r = region_at_server(s, target, MOST, ALL, 1, 0);
	for (unsigned i = 0; i < 50; i++) {
		size_t len = sizes[i % 10], offset = offsets[i / 10];
		if (me.is_client) {
			fill(from, LONG, i);
			memset(to, 0x55, LONG);
			write_now(s, from, len, r, offset);
			read_now(s, to, len, r, offset);
			CHECK_BYTES(to, len, i);
			CHECK_ALL(to + len, LONG - len, 0x55);
		}
		barrier();
		if (me.is_server) {
			CHECK_ALL(target, offset, 0xee);
			CHECK_BYTES(target + offset, len, i);
			CHECK_ALL(target + offset + len, MOST - offset - len, 0xee);
			memset(target, 0xee, MOST);
		}
		barrier();
	}
	server_closes(r);
	if (over_portals())
		all_memory(s);
	if (many(1000) == 1000)
		three_gibibytes(s);
}

/* ---- 69, 70: keys, ranges, rights ---- */

STATEMENT(69, keys, 2, 0)
{
	enum { KEYS = 4 };
	static const uint64_t keys[KEYS] = {0, 1, UINT64_C(1) << 63, UINT64_MAX};
	static uint64_t target[KEYS], value;
	only_portals("others choose keys, or have shorter ones");
	struct side *s = rma_side(0);
	struct region r[KEYS];
	struct fid_mr *mr;
	CHECK_EQ(s->info->domain_attr->mr_key_size, 8);
	for (unsigned i = 0; i < KEYS; i++) {
		r[i] = region_at_server(s, &target[i], 8, ALL, keys[i], i);
		CHECK_EQ(r[i].key, keys[i]);
	}
	for (unsigned i = 0; i < KEYS && me.is_server; i++)
		FAILS(fi_mr_reg(s->domain, &value, 8, ALL, 0, keys[i], 0, &mr, NULL),
			-FI_ENOKEY);
	for (unsigned i = 0; i < KEYS && me.is_client; i++) {
		value = 100 + i;
		write_now(s, &value, 8, r[i], 0);
	}
	barrier();
	for (unsigned i = 0; i < KEYS && me.is_server; i++) {
		CHECK_EQ(target[i], 100 + i);
		CLOSE(r[i].mr);
		OK(fi_mr_reg(s->domain, &value, 8, ALL, 0, keys[i], 0, &mr, NULL));
		CLOSE(mr);
	}
}

static void refused(struct side *s, bool writes, struct region r, uint64_t offset)
{
	static struct fi_context2 context;
	static unsigned char bytes[20000];
	for (size_t len = 8; len <= sizeof bytes; len += sizeof bytes - 8) {
		memset(bytes, 0x33, sizeof bytes);
		if (writes)
			write_there(s, bytes, len, r, offset, &context);
		else
			read_there(s, bytes, len, r, offset, &context);
		struct done d = TAKE_ERR(s, &context, FI_EACCES);
		CHECK_EQ(d.e.flags & (FI_RMA | FI_READ | FI_WRITE),
			FI_RMA | (writes ? FI_WRITE : FI_READ));
		CHECK_ALL(bytes, sizeof bytes, 0x33);
	}
}

STATEMENT(70, refused, 2, 0)
{
	enum { LEN = 4096 };
	static unsigned char target[3][3 * LEN], bytes[LEN];
	only_portals("others end otherwise");
	struct side *s = rma_side(0);
	memset(target, 0xee, sizeof target);
	struct region both = region_at_server(s, target[0] + LEN, LEN, ALL, 10, 0);
	struct region reads =
		region_at_server(s, target[1] + LEN, LEN, FI_REMOTE_READ, 11, 1);
	struct region writes =
		region_at_server(s, target[2] + LEN, LEN, FI_REMOTE_WRITE, 12, 2);
	if (me.is_client) {
		for (unsigned w = 0; w < 2; w++) {
			refused(s, w, (struct region){.key = 99}, 0);
			refused(s, w, both, LEN - 7);
			refused(s, w, both, LEN);
			refused(s, w, both, UINT64_C(1) << 40);
			refused(s, w, both, UINT64_MAX - 3);
		}
		refused(s, true, reads, 0);
		refused(s, false, writes, 0);
		SILENCE(s, 1);
		fill(bytes, LEN, 70);
		write_now(s, bytes, LEN, both, 0);
		read_now(s, bytes, LEN, reads, 0);
		write_now(s, bytes, LEN, writes, 0);
	}
	barrier();
	for (unsigned i = 0; i < 3 && me.is_server; i++) {
		CHECK_ALL(target[i], LEN, 0xee);
		CHECK_ALL(target[i] + 2 * LEN, LEN, 0xee);
		if (i == 0)
			CHECK_BYTES(target[i] + LEN, LEN, 70);
		else
			CHECK_ALL(target[i] + LEN, LEN, 0xee);
	}
	server_closes(both);
	server_closes(reads);
	server_closes(writes);
}

/* ---- 71 to 73: data, inject, vectors ---- */

STATEMENT(71, data, 2, 0)
{
	static const size_t sizes[] = {0, 8, 8192, 100000};
	static unsigned char target[100000], bytes[100000];
	static struct fi_context2 context;
	struct side *s = rma_side(0);
	struct region r = region_at_server(s, target, sizeof target, ALL, 1, 0);
	for (unsigned i = 0; i < 40; i++) {
		size_t len = sizes[i % 4];
		if (me.is_client) {
			fill(bytes, len, i);
			TRY(s, fi_writedata(s->ep, bytes, len, NULL, 0xff000000u + i,
				       s->at[1], r.base, r.key, &context));
			(void)TAKE(s, &context);
		} else {
			struct done d = NEXT(s);
			CHECK_EQ(d.err, 0);
			CHECK_BYTES(target, len, i);
			CHECK_EQ(d.e.data, 0xff000000u + i);
			uint64_t flags = FI_REMOTE_CQ_DATA;
			if (over_portals())
				flags |= FI_RMA | FI_REMOTE_WRITE;
			CHECK_EQ(d.e.flags & flags, flags);
		}
		barrier();
	}
	server_closes(r);
}

STATEMENT(72, inject, 2, 0)
{
	enum { N = 200 };
	static unsigned char bytes[1 << 16], target[1 << 16];
	struct side *s = rma_side(0);
	size_t most = s->info->tx_attr->inject_size;
	struct region r = region_at_server(s, target, most, ALL, 1, 0);
	for (unsigned i = 0; i < N && me.is_client; i++) {
		size_t len = mix(i) % (most + 1);
		fill(bytes, len, i);
		TRY(s, fi_inject_write(s->ep, bytes, len, s->at[1], r.base, r.key));
		memset(bytes, 0x99, len);
		POLL((read_now(s, bytes, len, r, 0), is_pattern(bytes, len, i)));
	}
	if (over_portals())
		FAILS(fi_inject_write(s->ep, bytes, most + 1, s->at[1], r.base, r.key),
			-FI_EINVAL);
	SILENCE(s, 1);
	barrier();
	server_closes(r);
}

/* Cut len bytes at random into n pieces, in order. */
static void pieces_of(
	struct iovec *iov, unsigned n, unsigned char *at, size_t len, unsigned seed)
{
	for (unsigned i = 0; i < n; i++) {
		size_t piece = i == n - 1 ? len : mix(seed + i) % (len / 2 + 1);
		iov[i] = (struct iovec){at, piece};
		at = at ? at + piece : NULL; /* or only lengths are wanted */
		len -= piece;
	}
}

static void one_vector(struct side *s, struct region r, unsigned locals, unsigned remotes,
	size_t len, uint64_t base)
{
	static unsigned char from[1 << 17], to[1 << 17];
	static struct fi_context2 context;
	struct iovec iov[IOV_MOST], there[IOV_MOST];
	struct fi_rma_iov rma[IOV_MOST];
	struct fi_msg_rma m = {.msg_iov = iov,
		.iov_count = locals,
		.addr = s->at[1],
		.rma_iov = rma,
		.rma_iov_count = remotes,
		.context = &context};
	pieces_of(iov, locals, from, len, locals);
	pieces_of(there, remotes, NULL, len, remotes * 100);
	for (unsigned i = 0; i < remotes; i++) /* in reverse order, with gaps */
		rma[i] = (struct fi_rma_iov){base + (remotes - 1 - i) * UINT64_C(20000),
			there[i].iov_len, r.key};
	fill(from, len, locals * 10 + remotes);
	TRY(s, fi_writemsg(s->ep, &m, FI_COMPLETION));
	(void)TAKE(s, &context);
	pieces_of(iov, locals, to, len, locals + 7);
	memset(to, 0, len);
	TRY(s, fi_readmsg(s->ep, &m, FI_COMPLETION));
	(void)TAKE(s, &context);
	CHECK_BYTES(to, len, locals * 10 + remotes);
}

/* The lengths there, whose sum wraps to that here. */
static void wrapping_vector(struct side *s, struct region r)
{
	static unsigned char from[8];
	struct iovec iov = {from, sizeof from};
	const struct fi_rma_iov there[] = {
		{r.base, SIZE_MAX, r.key}, {r.base, sizeof from + 1, r.key}};
	struct fi_msg_rma m = {.msg_iov = &iov,
		.iov_count = 1,
		.addr = s->at[1],
		.rma_iov = there,
		.rma_iov_count = 2};
	FAILS(fi_writemsg(s->ep, &m, 0), -FI_EINVAL);
}

STATEMENT(73, vectors, 2, 0)
{
	static unsigned char target[8 * 20000];
	struct side *s = rma_side(0);
	struct region r = region_at_server(s, target, sizeof target, ALL, 1, 0);
	unsigned locals = (unsigned)s->info->tx_attr->iov_limit;
	unsigned remotes = (unsigned)s->info->tx_attr->rma_iov_limit;
	if (over_portals()) {
		CHECK_EQ(locals, IOV_MOST);
		CHECK_EQ(remotes, IOV_MOST);
	}
	for (unsigned l = 1; l <= locals && me.is_client; l++)
		for (unsigned n = 1; n <= remotes; n++) {
			one_vector(s, r, l, n, 100, r.base);
			one_vector(s, r, l, n, 20000, r.base);
		}
	if (over_portals() && me.is_client)
		wrapping_vector(s, r);
	barrier();
	server_closes(r);
}

/* ---- 74: counters ---- */

STATEMENT(74, remote_counters, 2, 0)
{
	static struct fid_cntr *c[COUNTERS];
	static uint64_t target, value;
	const uint64_t n = many(1000000);
	only_portals("others have no remote counters of regions");
	struct side *s = side_open((struct how){.caps = FI_RMA | FI_TAGGED | FI_RMA_EVENT,
		.selective = FI_SELECTIVE_COMPLETION,
		.counters = c});
	struct region r = {0};
	if (me.is_server) {
		OK(fi_mr_reg(
			s->domain, &target, 8, ALL, 0, 1, FI_RMA_EVENT, &r.mr, NULL));
		OK(fi_mr_bind(r.mr, &c[C_REMOTE_WRITE]->fid, FI_REMOTE_WRITE));
		OK(fi_mr_enable(r.mr));
		r.key = fi_mr_key(r.mr);
		tell_region(&r);
	} else {
		r = told_region(1, 1);
		for (uint64_t i = 0; i < n; i++) {
			value = i;
			if (i & 1)
				write_there(s, &value, 8, r, 0, NULL);
			else
				TRY(s, fi_inject_write(
					       s->ep, &value, 8, s->at[1], 0, r.key));
		}
		POLL(fi_cntr_read(c[C_WRITE]) == n);
		say();
	}
	if (me.is_server) {
		hear(1); /* without a call: the counter misses nothing thereby */
		POLL(fi_cntr_read(c[C_REMOTE_WRITE]) >= n);
		CHECK_EQ(fi_cntr_read(c[C_REMOTE_WRITE]), n);
		CHECK_EQ(fi_cntr_readerr(c[C_REMOTE_WRITE]), 0);
		sleep_ms(5); /* pause: nothing is counted afterwards */
		CHECK_EQ(fi_cntr_read(c[C_REMOTE_WRITE]), n);
	}
	barrier();
	server_closes(r);
}

/* ---- 75, 76: the target ---- */

static struct {
	struct side *s;
	struct fid_cntr *cntr;
	_Atomic int enough;
} counting;

/* Have gets counted apart, and no longer, again and again. */
static void count_on(void *arg)
{
	(void)arg;
	while (!counting.enough) {
		struct fid_ep *ep = NULL;
		OK(fi_endpoint(counting.s->domain, counting.s->info, &ep, NULL));
		OK(fi_ep_bind(ep, &counting.cntr->fid, FI_REMOTE_READ));
		CLOSE(ep);
	}
}

/* Close a region while another thread makes entries for gets of all regions. */
static void close_counted(struct side *s, struct fid_mr *mr)
{
	counting.s = s;
	counting.enough = 0;
	OK(fi_cntr_open(s->domain, NULL, &counting.cntr, NULL));
	struct thread *t = thread_start(count_on, NULL);
	CLOSE(mr);
	counting.enough = 1;
	thread_join(t);
	CLOSE(counting.cntr);
}

STATEMENT(75, closed_region, 2, 0)
{
	enum { LEN = 1 << 20 };
	static unsigned char target[LEN], bytes[LEN];
	static struct fi_context2 context;
	only_portals("others end otherwise");
	struct side *s = side_open((struct how){
		.caps = FI_RMA | FI_TAGGED | FI_RMA_EVENT, .threading = FI_THREAD_SAFE});
	for (unsigned i = 0; i < 20; i++) {
		struct region r = region_at_server(s, target, LEN, ALL, i, i);
		if (me.is_server) {
			hear(i + 1);
			close_counted(s, r.mr); /* in the middle of writes */
			memset(target, 0x11, LEN);
			barrier();
			CHECK_ALL(target, LEN, 0x11);
			barrier();
			continue;
		}
		bool failed = false;
		memset(bytes, 0x22, LEN);
		for (unsigned n = 0; !failed; n++) {
			write_there(s, bytes, n & 1 ? LEN : 8, r, 0, &context);
			struct done d = NEXT(s);
			CHECK(d.err == 0 || d.err == FI_EACCES);
			failed = d.err;
			if (n == 2)
				say();
		}
		barrier();
		TRY(s, fi_read(s->ep, bytes, 8, NULL, s->at[1], r.base, r.key, &context));
		(void)TAKE_ERR(s, &context, FI_EACCES);
		barrier();
	}
}

/* Write and read at a target that makes no call; return the longest time in ms. */
static uint64_t slowest(struct side *s, struct region r)
{
	static unsigned char bytes[100000];
	uint64_t most = 0;
	for (unsigned i = 0; i < 20; i++) {
		uint64_t began = now_ms();
		write_now(s, bytes, i & 1 ? 8 : sizeof bytes, r, 0);
		read_now(s, bytes, i & 1 ? 8 : sizeof bytes, r, 0);
		if (now_ms() - began > most)
			most = now_ms() - began;
	}
	return most;
}

STATEMENT(76, busy_target, 2, 0)
{
	static unsigned char target[100000];
	only_portals("others make no progress without calls");
	struct side *s = rma_side(0);
	struct region r = region_at_server(s, target, sizeof target, ALL, 1, 0);
	barrier();
	for (unsigned sleeps = 0; sleeps < 2; sleeps++) {
		if (me.is_client) {
			(void)slowest(s, r);
			set_word(sleeps, 1);
		}
		while (me.is_server && !word(sleeps)) {
			if (sleeps)
				sleep_ms(10); /* pause: the target sleeps */
			else
				compute_ms(1);
		}
	}
	barrier();
	server_closes(r);
}
