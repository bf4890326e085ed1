/* SPDX-License-Identifier: BSD-3-Clause */
/* Conformance of the libfabric provider: completions, counters, the queue of events. */
#include "../support/asleep.h"
#include "frame.h"

#include <poll.h>
#include <stdatomic.h>
#include <sys/syscall.h>

/* Send a message to itself, for which it has posted a receive; leave both completions. */
static void pass_one(struct side *s, uint64_t tag, void *sent, void *got)
{
	static uint64_t from = 53, to;
	TRY(s, fi_trecv(s->ep, &to, 8, NULL, FI_ADDR_UNSPEC, tag, 0, got));
	TRY(s, fi_tsend(s->ep, &from, 8, NULL, s->at[me.rank], tag, sent));
}

/* ---- 53, 54: fields and flags ---- */

/* Return the next entries, without their form. */
static void read_raw(struct side *s, struct fid_cq *cq, void *entries, size_t n)
{
	struct patience p = patience_begin();
	(void)s;
	ssize_t rc;
	while ((rc = fi_cq_read(cq, entries, n)) == -FI_EAGAIN)
		look_at(__FILE__, __LINE__, &p, "a completion");
	CHECK_EQ(rc, 1);
}

/* Read one entry of a form whose size is given, with a guard behind it. */
static void read_guarded(struct side *s, struct fid_cq *cq, void *entry, size_t size)
{
	memset(entry, 0xee, 128);
	read_raw(s, cq, entry, 1);
	CHECK_ALL((unsigned char *)entry + size, 128 - size, 0xee);
}

static const struct {
	enum fi_cq_format format;
	size_t size;
} forms[] = {{FI_CQ_FORMAT_CONTEXT, sizeof(struct fi_cq_entry)},
	{FI_CQ_FORMAT_MSG, sizeof(struct fi_cq_msg_entry)},
	{FI_CQ_FORMAT_DATA, sizeof(struct fi_cq_data_entry)},
	{FI_CQ_FORMAT_TAGGED, sizeof(struct fi_cq_tagged_entry)}};

/* Check an entry of a receive as far as its form goes. */
static void check_entry(const struct fi_cq_tagged_entry *e, size_t size, void *context)
{
	CHECK(e->op_context == context);
	if (size >= sizeof(struct fi_cq_msg_entry)) {
		CHECK_EQ(e->flags & (FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA),
			FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
		CHECK_EQ(e->len, 5);
	}
	if (size >= sizeof(struct fi_cq_data_entry))
		CHECK_EQ(e->data, 0xabcd);
	if (size >= sizeof(struct fi_cq_tagged_entry))
		CHECK_EQ(e->tag, 0x1234);
}

static void one_form(struct side *s, enum fi_cq_format format, size_t size)
{
	static struct fi_context2 sent, got;
	static char bytes[8];
	union {
		struct fi_cq_tagged_entry e;
		unsigned char bytes[128];
	} entry;
	struct fid_cq *tx = queue_open(s->domain, format, FI_WAIT_NONE, 0);
	struct fid_cq *rx = queue_open(s->domain, format, FI_WAIT_NONE, 0);
	struct fid_ep *ep = NULL;
	OK(fi_endpoint(s->domain, s->info, &ep, NULL));
	OK(fi_ep_bind(ep, &s->av->fid, 0));
	OK(fi_ep_bind(ep, &tx->fid, FI_TRANSMIT));
	OK(fi_ep_bind(ep, &rx->fid, FI_RECV));
	OK(fi_enable(ep));
	fi_addr_t self = address_of(s, ep);
	OK(fi_trecv(ep, bytes, 8, NULL, FI_ADDR_UNSPEC, 0x1234, 0, &got));
	struct patience p = patience_begin();
	ssize_t rc;
	while ((rc = fi_tsenddata(ep, "hello", 5, NULL, 0xabcd, self, 0x1234, &sent)) ==
		-FI_EAGAIN) {
		(void)fi_cq_read(tx, NULL, 0);
		(void)fi_cq_read(rx, NULL, 0);
		look_at(__FILE__, __LINE__, &p, "fi_tsenddata");
	}
	OK(rc);
	read_guarded(s, rx, &entry, size);
	check_entry(&entry.e, size, &got);
	read_guarded(s, tx, &entry, size);
	CHECK(entry.e.op_context == &sent);
	CLOSE(ep);
	CLOSE(tx);
	CLOSE(rx);
}

STATEMENT(53, formats, 1, 0)
{
	struct side *s = side_open((struct how){.caps = FI_TAGGED});
	for (unsigned i = 0; i < sizeof forms / sizeof forms[0]; i++)
		one_form(s, forms[i].format, forms[i].size);
}

static const uint64_t kinds = FI_SEND | FI_RECV | FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;

STATEMENT(54, flags, 2, 0)
{
	static struct fi_context2 c;
	static uint64_t value, target;
	struct side *s = both_kinds(FI_RMA | FI_ATOMIC);
	struct region r =
		region_open(s, &target, 8, FI_REMOTE_READ | FI_REMOTE_WRITE, me.rank + 1);
	tell_region(&r);
	struct region there = told_region(1, 1);
	for (unsigned tagged = 0; tagged < 2; tagged++) {
		if (me.is_client)
			send_to(s, tagged, 1, &value, 8, 1, &c);
		else
			recv_from(s, tagged, FI_ADDR_UNSPEC, &value, 8, 1, &c);
		CHECK_EQ(TAKE(s, &c).e.flags & kinds,
			(me.is_client ? FI_SEND : FI_RECV) |
				(tagged ? FI_TAGGED : FI_MSG));
	}
	if (me.is_client) {
		TRY(s, fi_write(s->ep, &value, 8, NULL, s->at[1], there.base, there.key,
			       &c));
		CHECK_EQ(TAKE(s, &c).e.flags & (kinds | FI_WRITE), FI_RMA | FI_WRITE);
		TRY(s, fi_read(s->ep, &value, 8, NULL, s->at[1], there.base, there.key,
			       &c));
		CHECK_EQ(TAKE(s, &c).e.flags & (kinds | FI_READ), FI_RMA | FI_READ);
		TRY(s, fi_atomic(s->ep, &value, 1, NULL, s->at[1], there.base, there.key,
			       FI_UINT64, FI_SUM, &c));
		CHECK_EQ(TAKE(s, &c).e.flags & kinds, FI_ATOMIC);
	}
	barrier();
	CLOSE(r.mr);
}

/* ---- 55, 56: which operations complete ---- */

static void tell_flags(struct side *s, const void *at, uint64_t flags, void *context)
{
	struct iovec iov = {(void *)(uintptr_t)at, 4};
	struct fi_msg_tagged m = {.msg_iov = &iov,
		.iov_count = 1,
		.addr = s->at[1],
		.tag = 1,
		.context = context};
	if (me.is_client) {
		TRY(s, fi_tsendmsg(s->ep, &m, flags));
	} else {
		m.addr = FI_ADDR_UNSPEC;
		TRY(s, fi_trecvmsg(s->ep, &m, flags));
	}
}

/* Do operations of which those with odd contexts complete. */
static void selected(struct side *s, bool by_op_flags)
{
	static uint32_t value;
	static struct fi_context2 contexts[6];
	tell_flags(s, &value, 0, &contexts[0]);
	tell_flags(s, &value, FI_COMPLETION, &contexts[1]);
	if (me.is_client)
		send_to(s, true, 1, &value, 4, 1, &contexts[2]);
	else
		recv_from(s, true, FI_ADDR_UNSPEC, &value, 4, 1, &contexts[2]);
	tell_flags(s, &value, FI_COMPLETION, &contexts[3]);
	bool default_completes = by_op_flags && me.is_client;
	for (unsigned n = default_completes ? 3 : 2; n > 0; n--) {
		struct done d = NEXT(s);
		CHECK(d.err == 0);
		CHECK(d.e.op_context == &contexts[1] || d.e.op_context == &contexts[3] ||
			(default_completes && d.e.op_context == &contexts[2]));
	}
	barrier();
	SILENCE(s, 2);
	barrier();
}

STATEMENT(55, selective_completion, 2, 0)
{
	struct how how = {.caps = FI_TAGGED, .selective = FI_SELECTIVE_COMPLETION};
	selected(side_open(how), false);
	how.op_flags = FI_COMPLETION;
	selected(side_open(how), true);
}

STATEMENT(56, errors_complete, 2, 0)
{
	static struct fi_context2 context;
	static char bytes[100];
	struct side *s = side_open(
		(struct how){.caps = FI_TAGGED, .selective = FI_SELECTIVE_COMPLETION});
	if (me.is_server)
		recv_from(s, true, FI_ADDR_UNSPEC, bytes, 10, 1, &context);
	barrier();
	if (me.is_client)
		send_to(s, true, 1, bytes, 100, 1, &context);
	barrier();
	if (me.is_server)
		CHECK_EQ(NEXT(s).err, FI_ETRUNC);
	barrier();
	SILENCE(s, 1);
}

/* ---- 57, 58: reading ---- */

STATEMENT(57, error_entry, 1, 0)
{
	static struct fi_context2 context;
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry error = {0};
	char bytes[8], text[200];
	struct side *s = side_open((struct how){.caps = FI_TAGGED});
	FAILS(fi_cq_read(s->rx, &e, 1), -FI_EAGAIN);
	FAILS(fi_cq_readerr(s->rx, &error, 0), -FI_EAGAIN);
	recv_from(s, true, FI_ADDR_UNSPEC, bytes, 8, 1, &context);
	OK(fi_cancel(&s->ep->fid, &context));
	POLL(fi_cq_read(s->rx, &e, 1) == -FI_EAVAIL);
	FAILS(fi_cq_read(s->rx, &e, 1), -FI_EAVAIL);
	FAILS(fi_cq_readfrom(s->rx, &e, 1, &(fi_addr_t){0}), -FI_EAVAIL);
	CHECK_EQ(fi_cq_readerr(s->rx, &error, 0), 1);
	CHECK(error.op_context == &context);
	CHECK_EQ(abs(error.err), FI_ECANCELED);
	CHECK(fi_cq_strerror(s->rx, error.prov_errno, error.err_data, text,
		      sizeof text) != NULL);
	FAILS(fi_cq_readerr(s->rx, &error, 0), -FI_EAGAIN);
	FAILS(fi_cq_read(s->rx, &e, 1), -FI_EAGAIN);
}

/* Send to rank 1, which knows this endpoint, or not. */
static void from_whom(uint64_t caps, bool is_known)
{
	static struct fi_context2 context;
	static uint32_t value;
	unsigned nth = tales_told();
	struct side *s = side_open((struct how){.caps = FI_TAGGED | caps, .alone = true});
	tell_name(s->ep);
	if (me.is_client)
		s->at[1] = address(s, 1, nth);
	else if (is_known) /* not the first address of the vector */
		s->at[0] = address(s, 1, nth), s->at[0] = address(s, 0, nth);
	if (me.is_client) {
		send_to(s, true, 1, &value, 4, 1, &context);
		(void)TAKE(s, &context);
	} else {
		struct done d = recv_now(s, &value, 4, 1);
		if (!(caps & FI_SOURCE) && over_portals())
			CHECK(d.from == FI_ADDR_NOTAVAIL || d.from == s->at[0]);
		else if (caps & FI_SOURCE)
			CHECK_EQ(d.from, is_known ? s->at[0] : FI_ADDR_NOTAVAIL);
	}
	barrier();
	side_close(s);
}

STATEMENT(58, source, 2, 0)
{
	not_over("shm", "it knows senders that are in no vector");
	from_whom(FI_SOURCE, true);
	from_whom(FI_SOURCE, false);
	from_whom(0, true);
}

/* ---- 59, 60: queues ---- */

STATEMENT(59, small_queue, 2, 0)
{
	enum { N = 1000 };
	static struct fi_context2 contexts[N];
	static uint32_t got[N];
	not_over("shm", "its queues have a limit");
	struct side *s = side_open((struct how){.caps = FI_TAGGED, .queue = 1});
	for (unsigned i = 0; i < N && me.is_server; i++)
		recv_from(s, true, FI_ADDR_UNSPEC, &got[i], 4, i, &contexts[i]);
	barrier();
	for (uint32_t i = 0; i < N && me.is_client; i++) {
		/* Each send is repeated while no completion is read, then they are. */
		got[i] = i;
		send_to(s, true, 1, &got[i], 4, i, &contexts[i]);
	}
	barrier(); /* all is here, and rank 1 has read nothing (over portals) */
	for (uint32_t i = 0; i < N; i++) {
		(void)TAKE(s, &contexts[i]);
		CHECK_EQ(got[i], i);
	}
	SILENCE(s, 2);
}

STATEMENT(60, one_queue_for_all, 1, 0)
{
	enum { ENDS = 3 };
	static struct fi_context2 sent[ENDS][ENDS], got[ENDS][ENDS];
	static uint32_t value[ENDS][ENDS];
	struct side *s = side_open((struct how){.caps = FI_TAGGED});
	struct fid_ep *ep[ENDS] = {s->ep, endpoint(s), endpoint(s)};
	fi_addr_t at[ENDS];
	for (unsigned i = 0; i < ENDS; i++)
		at[i] = address_of(s, ep[i]);
	for (uint32_t i = 0; i < ENDS * ENDS; i++)
		TRY(s, fi_trecv(ep[i / ENDS], &value[i / ENDS][i % ENDS], 4, NULL,
			       FI_ADDR_UNSPEC, i % ENDS, 0, &got[i / ENDS][i % ENDS]));
	static uint32_t numbers[ENDS * ENDS];
	for (uint32_t i = 0; i < ENDS * ENDS; i++) {
		numbers[i] = 100 + i;
		TRY(s, fi_tsend(ep[i % ENDS], &numbers[i], 4, NULL, at[i / ENDS],
			       i % ENDS, &sent[i / ENDS][i % ENDS]));
	}
	for (uint32_t i = 0; i < ENDS * ENDS; i++) {
		(void)TAKE(s, &sent[i / ENDS][i % ENDS]);
		(void)TAKE(s, &got[i / ENDS][i % ENDS]);
		CHECK_EQ(value[i / ENDS][i % ENDS], 100 + i);
	}
	SILENCE(s, 1);
	CLOSE(ep[1]);
	CLOSE(ep[2]);
}

/* ---- 61: sleep ---- */

static struct {
	struct side *s;
	_Atomic int tid;
	_Atomic int done;
	ssize_t rc;
	int timeout;
	struct fi_cq_tagged_entry e;
} sleeper;

static void sleep_in_read(void *arg)
{
	(void)arg;
	sleeper.tid = (int)syscall(SYS_gettid);
	sleeper.rc = fi_cq_sread(sleeper.s->rx, &sleeper.e, 1, NULL, sleeper.timeout);
	sleeper.done = 1;
}

/* Start a thread that reads, and wait until it sleeps. */
static struct thread *start_sleeper(struct side *s, int timeout)
{
	sleeper.s = s;
	sleeper.tid = sleeper.done = 0;
	sleeper.timeout = timeout;
	struct thread *t = thread_start(sleep_in_read, NULL);
	AWAIT(sleeper.tid != 0);
	CHECK(await_thread_state(sleeper.tid, 'S'));
	CHECK(!sleeper.done);
	return t;
}

STATEMENT(61, sleep, 2, 0)
{
	static struct fi_context2 context;
	static uint32_t value;
	not_over("tcp;ofi_rxm", "its sleep has short looks between");
	not_over("shm", "its sleep is a busy loop");
	struct side *s = side_open((struct how){
		.caps = FI_TAGGED, .wait = FI_WAIT_UNSPEC, .threading = FI_THREAD_SAFE});
	if (me.is_client) {
		hear(1);
		send_to(s, true, 1, &value, 4, 1, &context);
		(void)TAKE(s, &context);
		barrier();
		return;
	}
	recv_from(s, true, FI_ADDR_UNSPEC, &value, 4, 1, &context);
	struct thread *t = start_sleeper(s, -1);
	say();
	thread_join(t);
	CHECK_EQ(sleeper.rc, 1);
	CHECK(sleeper.e.op_context == &context);
	uint64_t began = now_ms();
	FAILS(fi_cq_sread(s->rx, &sleeper.e, 1, NULL, 60), -FI_EAGAIN);
	CHECK(now_ms() - began >= 59);
	struct fid_cq *bound = s->rx;
	s->rx = queue_open(s->domain, FI_CQ_FORMAT_TAGGED, FI_WAIT_UNSPEC, 0);
	t = start_sleeper(s, -1);
	if (over_portals()) /* others crash */
		FAILS(fi_close(&s->rx->fid), -FI_EBUSY);
	CHECK(!sleeper.done);
	OK(fi_cq_signal(s->rx));
	thread_join(t);
	CLOSE(s->rx);
	s->rx = bound;
	CHECK(sleeper.rc == -FI_EAGAIN || sleeper.rc == -FI_ECANCELED ||
		sleeper.rc == -FI_EINTR);
	barrier();
}

/* ---- 62, 63: when sends complete ---- */

STATEMENT(62, delivery_complete, 2, 0)
{
	static const size_t sizes[] = {1, 8, 1000, 8192, 8193, 500000};
	static struct fi_context2 context;
	static unsigned char bytes[500000];
	not_over("tcp;ofi_rxm", "its completion comes when the bytes have left");
	struct side *s = side_open((struct how){.caps = FI_TAGGED});
	for (unsigned i = 0; i < 60; i++) {
		size_t len = sizes[i % 6];
		if (me.is_server)
			recv_from(s, true, FI_ADDR_UNSPEC, shared(), len, 1, &context);
		barrier();
		if (me.is_client) {
			fill(bytes, len, i);
			deliver(s, 1, bytes, len, 1);
			CHECK_BYTES(shared(), len, i);
		}
		barrier();
		if (me.is_server)
			(void)TAKE(s, &context);
	}
}

STATEMENT(63, transmit_complete, 2, 0)
{
	only_portals("others make no progress without calls");
	static unsigned char bytes[8192];
	struct side *s = side_open((struct how){.caps = FI_TAGGED});
	const size_t sizes[] = {0, 8, 1536, 8192};
	for (unsigned i = 0; i < 4 && me.is_client; i++)
		send_now(s, 1, bytes, sizes[i], i);
	if (me.is_client)
		say();
	else
		hear(1); /* without a call */
	for (unsigned i = 0; i < 4 && me.is_server; i++)
		(void)recv_now(s, bytes, sizeof bytes, i);
	barrier();
}

/* ---- 64 to 66: counters ---- */

static void await_count(struct side *s, struct fid_cntr *c, uint64_t n)
{
	struct patience p = patience_begin();
	while (fi_cntr_read(c) < n) {
		if (!over_portals())
			pump(s);
		look_at(__FILE__, __LINE__, &p, "a counter");
	}
	CHECK_EQ(fi_cntr_read(c), n);
}

static struct region counted_region(struct side *s, struct fid_cntr **counters)
{
	static unsigned char target[64];
	struct region r = {0};
	OK(fi_mr_reg(s->domain, target, sizeof target, FI_REMOTE_READ | FI_REMOTE_WRITE,
		0, me.rank + 1, FI_RMA_EVENT, &r.mr, NULL));
	OK(fi_mr_bind(r.mr, &counters[C_REMOTE_WRITE]->fid, FI_REMOTE_WRITE));
	OK(fi_mr_bind(r.mr, &counters[C_REMOTE_READ]->fid, FI_REMOTE_READ));
	OK(fi_mr_enable(r.mr));
	r.key = fi_mr_key(r.mr);
	tell_region(&r);
	return r;
}

static void count_transfers(struct side *s, struct fid_cntr **c, unsigned n)
{
	static struct fi_context2 context;
	static unsigned char bytes[64];
	struct region there = told_region(1, 1);
	for (unsigned i = 0; i < n && me.is_client; i++) {
		send_to(s, true, 1, bytes, 8, 1, &context);
		TRY(s, fi_write(s->ep, bytes, 8, NULL, s->at[1], 0, there.key, &context));
		TRY(s, fi_read(s->ep, bytes, 8, NULL, s->at[1], 8, there.key, &context));
	}
	if (me.is_client) {
		await_count(s, c[C_SEND], n);
		await_count(s, c[C_WRITE], n);
		await_count(s, c[C_READ], n);
	} else {
		await_count(s, c[C_RECV], n);
		await_count(s, c[C_REMOTE_WRITE], n);
		await_count(s, c[C_REMOTE_READ], n);
	}
	for (unsigned i = 0; i < COUNTERS; i++)
		CHECK_EQ(fi_cntr_readerr(c[i]), 0);
}

/* Write to rank 1 and see that the counter has n more. */
static void count_one(struct side *s, struct region there, struct fid_cntr *c, uint64_t n)
{
	static struct fi_context2 context;
	static uint64_t value;
	if (me.is_client) {
		TRY(s, fi_write(
			       s->ep, &value, 8, NULL, s->at[1], 0, there.key, &context));
		(void)TAKE(s, &context);
	}
	barrier();
	if (me.is_server)
		await_count(s, c, n);
	barrier();
}

/* Two endpoints share a counter of what peers write; one of them is closed. */
static void share_counter(void)
{
	static unsigned char target[64];
	struct side *s =
		side_open((struct how){.caps = FI_TAGGED | FI_RMA | FI_RMA_EVENT});
	struct fid_ep *ep[2] = {NULL, NULL};
	struct fid_cntr *c = NULL;
	OK(fi_cntr_open(s->domain, NULL, &c, NULL));
	for (unsigned i = 0; i < 2; i++) {
		OK(fi_endpoint(s->domain, s->info, &ep[i], NULL));
		OK(fi_ep_bind(ep[i], &s->av->fid, 0));
		OK(fi_ep_bind(ep[i], &s->rx->fid, FI_TRANSMIT | FI_RECV));
		OK(fi_ep_bind(ep[i], &c->fid, FI_REMOTE_WRITE));
		OK(fi_enable(ep[i]));
	}
	struct region r = region_open(s, target, sizeof target, FI_REMOTE_WRITE, 9);
	unsigned nth = tales_told();
	tell_region(&r);
	struct region there = told_region(1, nth);
	count_one(s, there, c, 1);
	CLOSE(ep[0]);
	count_one(s, there, c, 2);
	CLOSE(ep[1]);
	CLOSE(r.mr);
	CLOSE(c);
}

STATEMENT(64, counters, 2, 0)
{
	enum { N = 100 };
	static struct fid_cntr *c[COUNTERS];
	static struct fi_context2 contexts[N];
	static unsigned char bytes[N][8];
	only_portals("others have no remote counters of regions");
	struct side *s = side_open(
		(struct how){.caps = FI_TAGGED | FI_RMA | FI_RMA_EVENT, .counters = c});
	struct region r = counted_region(s, c);
	for (unsigned i = 0; i < N && me.is_server; i++)
		recv_from(s, true, FI_ADDR_UNSPEC, bytes[i], 8, 1, &contexts[i]);
	barrier();
	count_transfers(s, c, N);
	barrier();
	if (me.is_server) { /* one that is truncated */
		recv_from(s, true, FI_ADDR_UNSPEC, bytes[0], 4, 1, &contexts[0]);
		POLL(fi_cntr_readerr(c[C_RECV]) == 1);
		CHECK_EQ(fi_cntr_read(c[C_RECV]), N);
		OK(fi_cntr_add(c[C_RECV], 5));
		CHECK_EQ(fi_cntr_read(c[C_RECV]), N + 5);
		OK(fi_cntr_set(c[C_RECV], 3));
		CHECK_EQ(fi_cntr_read(c[C_RECV]), 3);
		OK(fi_cntr_adderr(c[C_RECV], 2));
		CHECK_EQ(fi_cntr_readerr(c[C_RECV]), 3);
		OK(fi_cntr_seterr(c[C_RECV], 0));
		CHECK_EQ(fi_cntr_readerr(c[C_RECV]), 0);
	} else {
		send_to(s, true, 1, bytes[0], 8, 1, &contexts[0]);
	}
	barrier();
	CLOSE(r.mr);
	CLOSE(s->ep);
	s->ep = NULL;
	for (unsigned i = 0; i < COUNTERS; i++) {
		CLOSE(c[i]);
		s->counters[i] = NULL;
	}
	share_counter();
}

static struct {
	struct fid_cntr *c;
	uint64_t threshold;
	_Atomic int tid;
	_Atomic int done;
	int rc;
} waiters[2];

static void sleep_in_wait(void *arg)
{
	unsigned i = (unsigned)(uintptr_t)arg;
	waiters[i].tid = (int)syscall(SYS_gettid);
	waiters[i].rc = fi_cntr_wait(waiters[i].c, waiters[i].threshold, -1);
	waiters[i].done = 1;
}

/* Start a thread that waits for a value, and wait until it sleeps. */
static struct thread *start_waiter(unsigned i, struct fid_cntr *c, uint64_t threshold)
{
	waiters[i].c = c;
	waiters[i].threshold = threshold;
	waiters[i].tid = waiters[i].done = 0;
	struct thread *t = thread_start(sleep_in_wait, CONTEXT(i));
	AWAIT(waiters[i].tid != 0);
	CHECK(await_thread_state(waiters[i].tid, 'S'));
	CHECK(!waiters[i].done);
	return t;
}

static int control[2]; /* a pipe */

static void sleep_in_pipe(void *arg)
{
	char byte;
	*(_Atomic int *)arg = (int)syscall(SYS_gettid);
	CHECK_EQ(read(control[0], &byte, 1), 1);
}

/* Return the time in ms that it takes to wake a thread on this machine, now. */
static uint64_t wake_by_pipe(void)
{
	_Atomic int tid = 0;
	struct thread *t = thread_start(sleep_in_pipe, (void *)&tid);
	AWAIT(tid != 0);
	CHECK(await_thread_state(tid, 'S'));
	uint64_t began = now_ms();
	CHECK_EQ(write(control[1], "", 1), 1);
	thread_join(t);
	return now_ms() - began;
}

/* Counts without an event for a thread that sleeps: by the program, of injected messages,
 * of a counter that is bound to nothing, to an endpoint, to a region.  The thread looks
 * by itself after 400 ms, which would take 32 s in all, and 8 s for one kind. */
static void wake_waiters(struct side *s, struct fid_cntr *c)
{
	enum { N = 40 };
	static unsigned char target[8];
	struct fid_cntr *of_region = NULL, *of_nothing = NULL;
	struct fid_mr *mr = NULL;
	OK(fi_cntr_open(s->domain, NULL, &of_nothing, NULL));
	OK(fi_cntr_open(s->domain, NULL, &of_region, NULL));
	OK(fi_mr_reg(
		s->domain, target, 8, FI_REMOTE_WRITE, 0, 65, FI_RMA_EVENT, &mr, NULL));
	OK(fi_mr_bind(mr, &of_region->fid, FI_REMOTE_WRITE));
	OK(fi_mr_enable(mr));
	struct fid_cntr *all[] = {of_nothing, of_region, c, c};
	uint64_t counted = 0, by_pipe = 0;
	CHECK(pipe(control) == 0);
	for (unsigned i = 0; i < N; i++) {
		by_pipe += wake_by_pipe();
		struct fid_cntr *which = all[i % 4];
		uint64_t now = fi_cntr_read(which);
		struct thread *far = start_waiter(1, which, now + 2);
		struct thread *near = start_waiter(0, which, now + 1);
		for (unsigned n = 0; n < 2; n++) {
			counted -= now_ms();
			if (i % 4 == 3)
				TRY(s, fi_tinject(s->ep, target, 1, s->at[me.rank], 65));
			else
				OK(fi_cntr_add(which, 1));
			thread_join(n ? far : near);
			CHECK_EQ(waiters[1 - n].done, n);
			counted += now_ms();
		}
	}
	if (counted > 5000 + 20 * by_pipe)
		check_failed(__FILE__, __LINE__, "the threads slept for %u ms",
			(unsigned)counted);
	(void)close(control[0]);
	(void)close(control[1]);
	struct thread *t = start_waiter(0, of_nothing, 1000000);
	FAILS(fi_close(&of_nothing->fid), -FI_EBUSY);
	CHECK(!waiters[0].done);
	OK(fi_cntr_adderr(of_nothing, 1));
	thread_join(t);
	CHECK_EQ(waiters[0].rc, -FI_EAVAIL);
	CLOSE(of_nothing);
	CLOSE(mr);
	CLOSE(of_region);
}

STATEMENT(65, wait_for_counters, 2, 0)
{
	static struct fid_cntr *c[COUNTERS];
	static struct fi_context2 contexts[3];
	static uint32_t value;
	not_over("shm", "it waits for no counter");
	struct side *s = side_open((struct how){
		.caps = FI_TAGGED | (over_portals() ? FI_RMA | FI_RMA_EVENT : 0),
		.threading = over_portals() ? FI_THREAD_SAFE : FI_THREAD_UNSPEC,
		.counters = c});
	if (me.is_client) {
		for (unsigned i = 0; i < 3; i++) {
			hear(i + 1);
			send_to(s, true, 1, &value, i == 2 ? 4 : 0, 1, &contexts[i]);
			if (i == 1)
				OK(fi_cntr_wait(c[C_SEND], 2, -1));
		}
		barrier();
		return;
	}
	for (unsigned i = 0; i < 3; i++) /* the last one is truncated */
		recv_from(
			s, true, FI_ADDR_UNSPEC, &value, i == 2 ? 1 : 4, 1, &contexts[i]);
	uint64_t began = now_ms();
	FAILS(fi_cntr_wait(c[C_RECV], 1, 60), -FI_ETIMEDOUT);
	CHECK(now_ms() - began >= 59);
	say();
	say();
	OK(fi_cntr_wait(c[C_RECV], 2, -1));
	CHECK_EQ(fi_cntr_read(c[C_RECV]), 2);
	OK(fi_cntr_wait(c[C_RECV], 1, 0));
	say();
	FAILS(fi_cntr_wait(c[C_RECV], 3, -1), -FI_EAVAIL);
	CHECK_EQ(fi_cntr_readerr(c[C_RECV]), 1);
	CHECK_EQ(fi_cntr_read(c[C_RECV]), 2);
	if (over_portals())
		wake_waiters(s, c[C_SEND]);
	barrier();
}

STATEMENT(66, counter_and_queue, 1, 0)
{
	enum { N = 50 };
	static struct fid_cntr *c[COUNTERS];
	static struct fi_context2 sent[N], got[N];
	struct side *s = side_open((struct how){.caps = FI_TAGGED, .counters = c});
	for (unsigned i = 0; i < N; i++)
		pass_one(s, 1, &sent[i], &got[i]);
	for (unsigned i = 0; i < N; i++) {
		(void)TAKE(s, &sent[i]);
		(void)TAKE(s, &got[i]);
	}
	await_count(s, c[C_SEND], N);
	await_count(s, c[C_RECV], N);
	SILENCE(s, 2);
	CHECK_EQ(fi_cntr_read(c[C_SEND]), N);
	CHECK_EQ(fi_cntr_read(c[C_RECV]), N);
}

/* ---- 67: the queue of events ---- */

static struct fid_eq *events;

/* Write when the main thread sleeps. */
static void write_event(void *arg)
{
	(void)arg;
	struct fi_eq_entry e = {.context = CONTEXT(2)};
	CHECK(await_thread_state(getpid(), 'S'));
	if (over_portals()) /* others crash */
		FAILS(fi_close(&events->fid), -FI_EBUSY);
	CHECK_EQ(fi_eq_write(events, FI_NOTIFY, &e, sizeof e, 0), sizeof e);
}

/* Check the queue's descriptor, and that a program is told not to sleep on it. */
static void check_readable(struct side *s, bool is)
{
	struct fid *fids[] = {&events->fid};
	enum fi_wait_obj kind = FI_WAIT_NONE;
	struct pollfd p = {.fd = -1, .events = POLLIN};
	OK(fi_control(&events->fid, FI_GETWAIT, &p.fd));
	CHECK_EQ(poll(&p, 1, 0), is);
	FAILS(fi_trywait(s->fabric, fids, 1), is ? -FI_EAGAIN : 0);
	if (!over_portals())
		return;
	OK(fi_control(&events->fid, FI_GETWAITOBJ, &kind));
	CHECK_EQ(kind, FI_WAIT_FD);
}

STATEMENT(67, events, 1, 0)
{
	not_over("shm", "its fi_eq_sread does not wake");
	struct side *s = side_open((struct how){.caps = FI_TAGGED});
	struct fi_eq_attr attr = {.size = 4, .flags = FI_WRITE, .wait_obj = FI_WAIT_FD};
	struct fi_eq_entry e = {.context = CONTEXT(1), .data = 11}, got = {0};
	struct fi_eq_err_entry error = {0};
	uint32_t event = 0;
	OK(fi_eq_open(s->fabric, &attr, &events, NULL));
	FAILS(fi_eq_read(events, &event, &got, sizeof got, 0), -FI_EAGAIN);
	FAILS(fi_eq_readerr(events, &error, 0), -FI_EAGAIN);
	for (unsigned i = 0; i < 2; i++) {
		check_readable(s, false);
		CHECK_EQ(fi_eq_write(events, FI_NOTIFY, &e, sizeof e, 0), sizeof e);
		CHECK_EQ(fi_eq_write(events, FI_NOTIFY, &e, sizeof e, 0), sizeof e);
		check_readable(s, true);
		CHECK_EQ(fi_eq_read(events, &event, &got, sizeof got, FI_PEEK), sizeof e);
		CHECK_EQ(fi_eq_read(events, &event, &got, sizeof got, 0), sizeof e);
		if (over_portals()) /* that of others tells of the first entry */
			check_readable(s, true);
		CHECK_EQ(fi_eq_read(events, &event, &got, sizeof got, 0), sizeof e);
	}
	CHECK_EQ(event, FI_NOTIFY);
	CHECK(got.context == CONTEXT(1) && got.data == 11);
	uint64_t began = now_ms();
	FAILS(fi_eq_sread(events, &event, &got, sizeof got, 60, 0), -FI_EAGAIN);
	CHECK(now_ms() - began >= 59);
	struct thread *t = thread_start(write_event, NULL);
	CHECK_EQ(fi_eq_sread(events, &event, &got, sizeof got, -1, 0), sizeof e);
	CHECK(got.context == CONTEXT(2));
	thread_join(t);
	CHECK(fi_eq_strerror(events, 0, NULL, NULL, 0) != NULL);
	CLOSE(events);
}

/* ---- 97: poll sets ---- */

static struct fid_poll *set;
static atomic_bool polled_enough;

/* Return a bit for each context that a poll has told. */
static unsigned polled(void)
{
	void *news[8];
	unsigned bits = 0;
	int n = fi_poll(set, news, 8);
	CHECK(n >= 0 && n <= 4);
	for (int i = 0; i < n; i++)
		bits |= 1u << (uintptr_t)news[i];
	return bits;
}

static void poll_on(void *arg)
{
	(void)arg;
	while (!atomic_load(&polled_enough))
		(void)polled();
}

/* A member, and one that comes and goes while another thread polls, stay open. */
static void check_members(struct side *s)
{
	struct fid_cq *cq = queue_open(s->domain, FI_CQ_FORMAT_MSG, FI_WAIT_NONE, 0);
	struct fid_cntr *cntr;
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP};
	OK(fi_cntr_open(s->domain, &attr, &cntr, NULL));
	OK(fi_poll_add(set, &cntr->fid, 0));
	struct thread *t = thread_start(poll_on, NULL);
	for (unsigned i = 0; i < 1000; i++) {
		OK(fi_poll_add(set, &cq->fid, 0));
		OK(fi_poll_del(set, &cq->fid, 0));
	}
	atomic_store(&polled_enough, true);
	thread_join(t);
	OK(fi_poll_add(set, &cq->fid, 0));
	if (over_portals()) { /* others close members */
		FAILS(fi_close(&cq->fid), -FI_EBUSY);
		FAILS(fi_close(&cntr->fid), -FI_EBUSY);
		FAILS(fi_poll_add(set, &cq->fid, 0), -FI_EALREADY);
		FAILS(fi_poll_add(set, &s->ep->fid, 0), -FI_EINVAL);
	}
	OK(fi_poll_del(set, &cq->fid, 0));
	OK(fi_poll_del(set, &cntr->fid, 0));
	if (over_portals())
		FAILS(fi_poll_del(set, &cq->fid, 0), -FI_EINVAL);
	CLOSE(cq);
	CLOSE(cntr);
}

/* The bytes that a write to itself brings are told as the queue of receives. */
static void check_data(struct side *s)
{
	static struct fi_context2 c;
	static uint64_t from = 97, to;
	struct region r = region_open(s, &to, 8, FI_REMOTE_WRITE, 1);
	TRY(s, fi_writedata(s->ep, &from, 8, NULL, 5, s->at[me.rank], r.base, r.key, &c));
	POLL((polled() & 4u) != 0);
	(void)TAKE(s, &c);
	CHECK_EQ(NEXT(s).e.data, 5);
	CHECK_EQ(to, 97);
	CHECK_EQ(polled() & 6u, 0);
	CLOSE(r.mr);
}

STATEMENT(97, poll_sets, 1, 0)
{
	static struct fid_cntr *c[COUNTERS];
	static struct fi_context2 sent, got;
	not_over("shm", "its counters do not wait");
	struct side *s = side_open((struct how){
		.caps = FI_TAGGED | FI_RMA, .two_queues = true, .counters = c});
	struct fid *members[] = {
		&s->tx->fid, &s->rx->fid, &c[C_SEND]->fid, &c[C_RECV]->fid};
	void *one;
	unsigned bits = 0;
	OK(fi_poll_open(s->domain, &(struct fi_poll_attr){0}, &set));
	for (unsigned i = 0; i < 4; i++) {
		members[i]->context = CONTEXT(i + 1);
		OK(fi_poll_add(set, members[i], 0));
	}
	if (over_portals()) /* others close it */
		FAILS(fi_close(&set->fid), -FI_EBUSY);
	CHECK_EQ(polled(), 0);
	pass_one(s, 1, &sent, &got);
	POLL((bits |= polled()) == 30);
	CHECK_EQ(polled(), 6); /* the queues are not empty; the counters told all */
	CHECK_EQ(fi_poll(set, &one, 1), 1);
	CHECK_EQ(fi_poll(set, &one, 0), 0);
	(void)TAKE(s, &sent);
	(void)TAKE(s, &got);
	CHECK_EQ(polled(), 0);
	if (over_portals()) { /* what the program adds is no news */
		OK(fi_cntr_add(c[C_SEND], 5));
		OK(fi_cntr_set(c[C_RECV], 0));
		OK(fi_cntr_adderr(c[C_RECV], 1));
		CHECK_EQ(polled(), 0);
	}
	check_data(s);
	check_members(s);
	for (unsigned i = 0; i < 4; i++)
		OK(fi_poll_del(set, members[i], 0));
	CHECK_EQ(polled(), 0);
	CLOSE(set);
}
