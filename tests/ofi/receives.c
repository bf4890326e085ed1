/* SPDX-License-Identifier: BSD-3-Clause */
/* Conformance of the libfabric provider: peek, claim, cancel, multi-receive. */
#include "frame.h"

/* ---- 44 to 46: peek, claim, discard ---- */

static struct side *peeking(void)
{
	not_over("shm", "it cannot peek");
	return side_open((struct how){.caps = FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV});
}

/* Send with data; the receiver's look must find it. */
static void send_late(struct side *s, size_t len, uint64_t tag, void *context)
{
	if (me.is_client)
		TRY(s, fi_tsenddata(s->ep, sent_bytes(tag), len, NULL, 99, s->at[1], tag,
			       context));
}

/* Look until the message is there. */
static struct done find(struct side *s, uint64_t tag, uint64_t flags, void *context)
{
	struct patience p = patience_begin();
	struct done d;
	while ((d = peek(s, tag, flags, context)).err != 0)
		look_at(__FILE__, __LINE__, &p, "the message that a peek finds");
	return d;
}

STATEMENT(44, peek, 2, 0)
{
	static struct fi_context2 contexts[2], look;
	static unsigned char at[LONG];
	struct side *s = peeking();
	const size_t sizes[] = {100, LONG};
	for (unsigned i = 0; i < 2 && me.is_server; i++) {
		struct done d = peek(s, 10 + i, 0, &look);
		CHECK_EQ(d.err, FI_ENOMSG);
		CHECK(d.e.op_context == &look);
	}
	barrier();
	send_late(s, sizes[0], 10, &contexts[0]);
	send_late(s, sizes[1], 11, &contexts[1]);
	for (unsigned i = 0; i < 2 && me.is_server; i++) {
		struct done d = find(s, 10 + i, 0, &look);
		CHECK_EQ(d.e.len, sizes[i]);
		CHECK_EQ(d.e.tag, 10 + i);
		if (over_portals()) {
			CHECK_EQ(d.e.data, 99);
			CHECK_EQ(d.e.flags & FI_REMOTE_CQ_DATA, FI_REMOTE_CQ_DATA);
			CHECK_EQ(d.from, s->at[0]);
			CHECK(d.e.buf == NULL);
		}
		CHECK_EQ(peek(s, 12, 0, &look).err, FI_ENOMSG);
	}
	for (unsigned i = 0; i < 2; i++) {
		if (me.is_server)
			(void)recv_now(s, at, LONG, 10 + i);
		else
			(void)TAKE(s, &contexts[i]);
	}
	barrier();
}

/* Receive what the context has claimed, or discard it. */
static void take_claimed(
	struct side *s, uint64_t tag, void *at, size_t len, uint64_t flags, void *context)
{
	struct iovec iov = {at, len};
	struct fi_msg_tagged m = {.msg_iov = at ? &iov : NULL,
		.iov_count = at != NULL,
		.addr = FI_ADDR_UNSPEC,
		.tag = tag,
		.context = context};
	TRY(s, fi_trecvmsg(s->ep, &m, FI_CLAIM | FI_COMPLETION | flags));
}

static void claim_one(struct side *s, size_t len)
{
	static struct fi_context2 contexts[2], look, claim, other;
	unsigned char *first = guarded(LONG), *second = guarded(LONG);
	if (me.is_client) {
		unsigned char *one = sent_bytes(1), *two = sent_bytes(2);
		send_to(s, true, 1, one, len, 5, &contexts[0]);
		send_to(s, true, 1, two, len, 5, &contexts[1]);
		(void)TAKE(s, &contexts[0]);
		(void)TAKE(s, &contexts[1]);
		barrier();
		return;
	}
	CHECK_EQ(find(s, 5, 0, &look).e.len, len);
	CHECK_EQ(find(s, 5, 0, &look).e.len, len); /* it is still there */
	CHECK_EQ(find(s, 5, FI_CLAIM, &claim).e.len, len);
	recv_from(s, true, FI_ADDR_UNSPEC, second, LONG, 5, &other);
	CHECK_EQ(TAKE(s, &other).e.len, len);
	CHECK_GUARDED(second, LONG, len, 2);
	CHECK_EQ(peek(s, 5, 0, &look).err, FI_ENOMSG);
	take_claimed(s, 5, first, LONG, 0, &claim);
	CHECK_EQ(TAKE(s, &claim).e.len, len);
	CHECK_GUARDED(first, LONG, len, 1);
	barrier();
}

STATEMENT(45, claim, 2, 0)
{
	struct side *s = peeking();
	claim_one(s, 100);
	claim_one(s, SHORT_MOST + 1);
	claim_one(s, LONG);
}

STATEMENT(46, discard, 2, 0)
{
	static struct fi_context2 sent, look;
	struct side *s = peeking();
	const size_t sizes[] = {100, LONG};
	not_over("tcp;ofi_rxm", "its discard tells no length");
	for (unsigned i = 0; i < 4; i++) {
		bool claims = i & 1;
		send_late(s, sizes[i / 2], 20, &sent);
		if (me.is_client) {
			(void)TAKE(s, &sent);
			barrier();
			continue;
		}
		CHECK_EQ(find(s, 20, claims ? FI_CLAIM : FI_DISCARD, &look).e.len,
			sizes[i / 2]);
		if (claims) {
			take_claimed(s, 20, NULL, 0, FI_DISCARD, &look);
			(void)TAKE(s, &look);
		}
		CHECK_EQ(peek(s, 20, 0, &look).err, FI_ENOMSG);
		barrier();
		SILENCE(s, 1);
	}
}

/* ---- 47, 48: cancel ---- */

static void cancel_one(struct side *s, bool tagged, unsigned n, unsigned which)
{
	static struct fi_context2 contexts[64];
	static uint32_t got[64];
	for (unsigned i = 0; i < n; i++)
		recv_from(s, tagged, FI_ADDR_UNSPEC, &got[i], 4, 1, &contexts[i]);
	OK(fi_cancel(&s->ep->fid, &contexts[which]));
	struct done d = TAKE_ERR(s, &contexts[which], FI_ECANCELED);
	CHECK_EQ(d.e.flags & FI_RECV, FI_RECV);
	SILENCE(s, 1);
	got[which] = 4711;
	barrier();
	for (unsigned i = 0; i < n; i++)
		if (i != which)
			(void)TAKE(s, &contexts[i]);
	for (unsigned i = 0, sent = 0; i < n; i++)
		CHECK_EQ(got[i], i == which ? 4711 : sent++);
	SILENCE(s, 1);
	barrier();
}

static void send_some(struct side *s, bool tagged, uint32_t n)
{
	static struct fi_context2 context;
	barrier();
	for (uint32_t i = 0; i < n; i++) {
		send_to(s, tagged, 1, &i, 4, 1, &context);
		(void)TAKE(s, &context);
	}
	barrier();
}

STATEMENT(47, cancel, 2, ALONE)
{
	few_posted("8");
	struct side *s = both_kinds(0);
	for (unsigned i = 0; i < 4; i++) {
		unsigned n = i & 2 ? 40 : 5; /* all posted; most of them wait */
		if (me.is_client)
			send_some(s, i & 1, n - 1);
		else
			cancel_one(s, i & 1, n, i & 2 ? 30 : 2);
	}
}

STATEMENT(48, cancel_too_late, 2, 0)
{
	not_over("tcp;ofi_rxm", "it takes any context");
	not_over("shm", "it takes any context");
	static struct fi_context2 context, unknown;
	struct side *s = side_open((struct how){.caps = FI_TAGGED});
	uint32_t value = 48;
	for (unsigned i = 0; i < 20; i++) {
		uint32_t got = 0;
		if (me.is_client) {
			barrier();
			deliver(s, 1, &value, 4, 1);
			barrier();
			continue;
		}
		recv_from(s, true, FI_ADDR_UNSPEC, &got, 4, 1, &context);
		barrier();
		FAILS(fi_cancel(&s->ep->fid, &unknown), -FI_ENOENT);
		barrier();
		int rc = (int)fi_cancel(&s->ep->fid, &context); /* it has matched */
		CHECK(rc == 0 || rc == -FI_ENOENT);
		(void)TAKE(s, &context);
		CHECK_EQ(got, 48);
		SILENCE(s, 1);
		FAILS(fi_cancel(&s->ep->fid, &context), -FI_ENOENT);
	}
	barrier();
}

/* ---- 49 to 52: multi-receive ---- */

static struct side *packing(size_t least)
{
	struct side *s =
		side_open((struct how){.caps = FI_MSG | FI_TAGGED | FI_MULTI_RECV});
	OK(fi_setopt(&s->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least,
		sizeof least));
	return s;
}

static void post_multi(struct side *s, void *at, size_t len, void *context)
{
	struct iovec iov = {at, len};
	struct fi_msg m = {.msg_iov = &iov,
		.iov_count = 1,
		.addr = FI_ADDR_UNSPEC,
		.context = context};
	TRY(s, fi_recvmsg(s->ep, &m, FI_MULTI_RECV | FI_COMPLETION));
}

static size_t packed_length(unsigned i)
{
	return mix(i) % 900 + 100;
}

static void send_packed(struct side *s, unsigned from, unsigned to)
{
	static struct fi_context2 context;
	for (unsigned i = from; i < to; i++) {
		unsigned char *bytes = suite_alloc(1000);
		fill(bytes, packed_length(i), i);
		send_to(s, false, 1, bytes, packed_length(i), 0, &context);
		(void)TAKE(s, &context);
	}
}

/* A buffer of multi-receives: what has come is in order and without overlap. */
struct packed {
	struct fi_context2 context;
	unsigned char *at;
	size_t used;
	bool released;
};
enum { PACK = 1 << 16 };

static struct packed pack_new(struct side *s)
{
	struct packed p = {.at = guarded(PACK)};
	(void)s;
	return p;
}

/* Take one message into one of n buffers; return its length, 0 for a release alone. */
static size_t take_packed(struct side *s, struct packed *p, unsigned n)
{
	struct done d = NEXT(s);
	unsigned i = 0;
	while (i < n && d.e.op_context != &p[i].context)
		i++;
	CHECK(i < n && d.err == 0);
	CHECK(!p[i].released);
	p[i].released = d.e.flags & FI_MULTI_RECV;
	if (!(d.e.flags & FI_RECV) && !over_portals())
		return 0;
	CHECK_EQ(d.e.flags & FI_RECV, FI_RECV);
	CHECK((unsigned char *)d.e.buf >= p[i].at + p[i].used);
	CHECK((unsigned char *)d.e.buf + d.e.len <= p[i].at + PACK);
	p[i].used = (size_t)((unsigned char *)d.e.buf - p[i].at) + d.e.len;
	return d.e.len;
}

static void receive_packed(
	struct side *s, struct packed *p, unsigned n, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to;) {
		size_t len = take_packed(s, p, n);
		if (len == 0)
			continue;
		CHECK_EQ(len, packed_length(i));
		unsigned in = 0;
		while (in < n - 1 && p[in].released && p[in + 1].used > 0)
			in++;
		CHECK_BYTES(p[in].at + p[in].used - len, len, i);
		i++;
	}
}

STATEMENT(49, multi_receive, 2, 0)
{
	enum { N = 300, BUFFERS = 4 };
	static struct packed p[BUFFERS];
	struct side *s = packing(1000);
	for (unsigned i = 0; i < BUFFERS && me.is_server; i++) {
		p[i] = pack_new(s);
		post_multi(s, p[i].at, PACK, &p[i].context);
	}
	barrier();
	if (me.is_client) {
		send_packed(s, 0, N);
		barrier();
		return;
	}
	receive_packed(s, p, BUFFERS, 0, N);
	barrier();
	CHECK(p[0].released && p[1].released && !p[BUFFERS - 1].released);
	for (unsigned i = 0; i < BUFFERS; i++) {
		if (p[i].released)
			CHECK(PACK - p[i].used < 1000);
		CHECK_ALL(p[i].at + p[i].used, PACK - p[i].used, 0xee);
	}
}

STATEMENT(50, multi_receive_goes_on, 2, 0)
{
	static struct fi_context2 contexts[2], context;
	static unsigned char bytes[1000];
	not_over("shm", "it truncates the message");
	not_over("tcp;ofi_rxm", "it truncates the message");
	struct side *s = packing(100);
	unsigned char *at[2] = {guarded(1000), guarded(1000)};
	const size_t sizes[] = {600, 700};
	for (unsigned i = 0; i < 2 && me.is_server; i++)
		post_multi(s, at[i], 1000, &contexts[i]);
	barrier();
	for (unsigned i = 0; i < 2 && me.is_client; i++) {
		fill(bytes, sizes[i], i);
		send_to(s, false, 1, bytes, sizes[i], 0, &context);
		(void)TAKE(s, &context);
		barrier();
	}
	for (unsigned i = 0; i < 2 && me.is_server; i++) {
		struct done d = NEXT(s);
		while (!over_portals() && !(d.e.flags & FI_RECV))
			d = NEXT(s);
		CHECK(d.err == 0);
		CHECK(d.e.op_context == &contexts[i]);
		CHECK_EQ(d.e.len, sizes[i]);
		CHECK(d.e.buf == at[i]);
		CHECK_BYTES(at[i], sizes[i], i);
		barrier();
	}
}

STATEMENT(51, multi_receive_of_late_ones, 2, 0)
{
	struct side *s = packing(1000);
	struct packed p = pack_new(s);
	if (me.is_client)
		send_packed(s, 0, 5);
	settle(s, SETTLED, 0, 1);
	if (me.is_server) { /* the rest is as long as the least, and takes one more */
		size_t len = 1000;
		for (unsigned i = 0; i < 5; i++)
			len += packed_length(i);
		post_multi(s, p.at, len, &p.context);
		receive_packed(s, &p, 1, 0, 5);
		CHECK(!p.released);
	}
	barrier();
	if (me.is_client)
		send_packed(s, 5, 6);
	else
		receive_packed(s, &p, 1, 5, 6);
	barrier();
}

STATEMENT(52, least_of_multi_receive, 1, 0)
{
	size_t value = 0, len = sizeof value;
	struct side *s = packing(1234);
	OK(fi_getopt(&s->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, &len));
	CHECK_EQ(value, 1234);
	CHECK_EQ(len, sizeof value);
	if (!over_portals())
		return;
	struct fid_ep *other = endpoint(s); /* each endpoint has its own */
	OK(fi_getopt(&other->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, &len));
	CHECK(value != 1234 && value > 0);
	len = 1;
	FAILS(fi_getopt(
		      &s->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, &len),
		-FI_ETOOSMALL);
	CHECK(fi_setopt(&s->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, 1) <
		0);
	CLOSE(other);
}
