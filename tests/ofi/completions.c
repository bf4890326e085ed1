/* SPDX-License-Identifier: BSD-3-Clause */
/* Conformance of the libfabric provider: completions, counters, the queue of events. */
#include "../support/asleep.h"
#include "frame.h"

#include <poll.h>
#include <sys/syscall.h>

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

/* An error comes although completions wait at each read of one. */
static void error_between(struct side *s)
{
	static struct fi_context2 sent, context;
	static uint64_t value;
	struct fi_cq_tagged_entry e;
	ssize_t rc = 1;
	for (unsigned i = 0; i < 5; i++) { /* the first one meets the target */
		send_to(s, true, 0, &value, 8, 2, &sent);
		if (i == 0)
			(void)TAKE(s, &sent);
	}
	recv_from(s, true, FI_ADDR_UNSPEC, &value, 8, 1, &context);
	OK(fi_cancel(&s->ep->fid, &context));
	for (unsigned i = 0; i < 50 && rc == 1; i++) {
		send_to(s, true, 0, &value, 8, 2, &sent);
		rc = fi_cq_read(s->rx, &e, 1);
	}
	CHECK_RC((int)rc, -FI_EAVAIL);
}

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
	if (over_portals())
		error_between(s);
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

/* Completions with data come although others wait at each read of one. */
static void data_between(void)
{
	enum { N = 50 };
	static struct fi_context2 sent, got, written;
	static uint64_t value, target;
	struct fi_cq_tagged_entry e;
	unsigned at = 0;
	struct side *s = side_open((struct how){.caps = FI_TAGGED | FI_RMA});
	struct region r = region_open(s, &target, 8, FI_REMOTE_WRITE, 60);
	TRY(s, fi_writedata(s->ep, &value, 8, NULL, 7, s->at[me.rank], r.base, r.key,
		       &written));
	for (unsigned i = 0; i < N; i++)
		pass_one(s, 1, &sent, &got);
	for (unsigned i = 0; i < 2 * N + 2; i++) {
		POLL(fi_cq_read(s->rx, &e, 1) == 1);
		if (e.flags & FI_REMOTE_CQ_DATA)
			at = i;
	}
	CHECK(at < N);
	CLOSE(r.mr);
	side_close(s);
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
	if (over_portals())
		data_between();
}

/* ---- 61: sleep ---- */

static struct sleeper {
	struct fid_cq *cq;
	_Atomic int tid;
	_Atomic int done;
	ssize_t rc;
	bool woken; /* it has come back before it would have looked by itself */
	struct fi_cq_tagged_entry e;
} sleepers[2];

static void sleep_in_read(void *arg)
{
	struct sleeper *sleeper = arg;
	uint64_t began = now_ms();
	sleeper->tid = (int)syscall(SYS_gettid);
	sleeper->rc = fi_cq_sread(sleeper->cq, &sleeper->e, 1, NULL, -1);
	sleeper->woken = now_ms() - began < WOKEN_MS;
	sleeper->done = 1;
}

/* Start a thread that reads, and wait until it sleeps. */
static struct thread *start_sleeper(struct sleeper *sleeper, struct fid_cq *cq)
{
	sleeper->cq = cq;
	sleeper->tid = sleeper->done = 0;
	struct thread *t = thread_start(sleep_in_read, sleeper);
	AWAIT(sleeper->tid != 0);
	CHECK(await_thread_state(sleeper->tid, 'S'));
	CHECK(!sleeper->done);
	return t;
}

/* One signal ends the reads of all threads. */
static void signal_sleepers(struct side *s)
{
	struct thread *t[2];
	struct fid_cq *cq = queue_open(s->domain, FI_CQ_FORMAT_TAGGED, FI_WAIT_UNSPEC, 0);
	for (unsigned i = 0; i < 2; i++)
		t[i] = start_sleeper(&sleepers[i], cq);
	if (over_portals()) /* others crash */
		FAILS(fi_close(&cq->fid), -FI_EBUSY);
	CHECK(!sleepers[0].done && !sleepers[1].done);
	OK(fi_cq_signal(cq));
	for (unsigned i = 0; i < 2; i++) {
		thread_join(t[i]);
		ssize_t rc = sleepers[i].rc;
		CHECK(rc == -FI_EAGAIN || rc == -FI_ECANCELED || rc == -FI_EINTR);
	}
	CLOSE(cq);
}

/* Another thread's look takes the event of a completion, and all that follows, before
 * one that sleeps does.  The latter looks by itself after 400 ms: 8 s in all, and no time
 * is shorter; if the machine stalls, most are. */
static void look_before_sleepers(struct side *s)
{
	enum { N = 20 };
	static struct fi_context2 context;
	static uint64_t value;
	struct fi_cq_err_entry error = {0};
	uint64_t slept = 0, by_pipe = 0, woken = 0;
	for (unsigned i = 0; i < N; i++) {
		by_pipe += wake_by_pipe();
		recv_from(s, true, FI_ADDR_UNSPEC, &value, 8, 61, &context);
		struct thread *t = start_sleeper(&sleepers[0], s->rx);
		OK(fi_tinject(s->ep, &i, 4, s->at[me.rank], 61));
		uint64_t began = now_ms();
		POLL(fi_cq_read(s->rx, NULL, 0) == 0 || sleepers[0].done);
		FAILS(fi_cq_readerr(s->rx, &error, 0), -FI_EAGAIN);
		thread_join(t);
		slept += now_ms() - began;
		woken += sleepers[0].woken;
		CHECK_EQ(sleepers[0].rc, 1);
		CHECK(sleepers[0].e.op_context == &context);
	}
	if (slept > 3000 + 20 * by_pipe && woken < N * 3 / 4)
		check_failed(__FILE__, __LINE__, "the threads slept for %u ms",
			(unsigned)slept);
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
	struct thread *t = start_sleeper(&sleepers[0], s->rx);
	say();
	thread_join(t);
	CHECK_EQ(sleepers[0].rc, 1);
	CHECK(sleepers[0].e.op_context == &context);
	uint64_t began = now_ms();
	FAILS(fi_cq_sread(s->rx, &sleepers[0].e, 1, NULL, 60), -FI_EAGAIN);
	CHECK(now_ms() - began >= 59);
	FAILS(fi_cq_sread(s->rx, &sleepers[0].e, 1, NULL, 0), -FI_EAGAIN);
	look_before_sleepers(s);
	signal_sleepers(s);
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

static struct event_reader {
	uint64_t flags;
	_Atomic int tid;
	_Atomic int done;
} event_readers[2] = {{.flags = FI_PEEK}, {.flags = 0}};

static void read_event(void *arg)
{
	struct event_reader *reader = arg;
	struct fi_eq_entry e;
	uint32_t event;
	reader->tid = (int)syscall(SYS_gettid);
	CHECK_EQ(fi_eq_sread(events, &event, &e, sizeof e, -1, reader->flags), sizeof e);
	reader->done = 1;
}

/* One entry is for a thread that reads, behind one that peeks.  The latter may find that
 * it has gone, and gets one more. */
static void read_behind_peek(void)
{
	struct fi_eq_entry e = {.context = CONTEXT(3)};
	struct thread *t[2];
	uint32_t event;
	for (unsigned i = 0; i < 2; i++) {
		t[i] = thread_start(read_event, &event_readers[i]);
		AWAIT(event_readers[i].tid != 0);
		CHECK(await_thread_state(event_readers[i].tid, 'S'));
	}
	CHECK_EQ(fi_eq_write(events, FI_NOTIFY, &e, sizeof e, 0), sizeof e);
	AWAIT(event_readers[1].done);
	thread_join(t[1]);
	CHECK_EQ(fi_eq_write(events, FI_NOTIFY, &e, sizeof e, 0), sizeof e);
	thread_join(t[0]);
	CHECK_EQ(fi_eq_read(events, &event, &e, sizeof e, 0), sizeof e);
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

/* In a program that has closed its stdin, the descriptor may be 0.  This process has no
 * other thread yet, which could take that number meanwhile. */
static void check_descriptor_0(void)
{
	struct fi_info *info = info_of(hints_of(FI_TAGGED));
	struct fid_fabric *fabric;
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_FD};
	struct fid_eq *eq;
	int fd = -1, in = dup(STDIN_FILENO);
	OK(fi_fabric(info->fabric_attr, &fabric, NULL));
	(void)close(STDIN_FILENO);
	OK(fi_eq_open(fabric, &attr, &eq, NULL));
	OK(fi_control(&eq->fid, FI_GETWAIT, &fd));
	CHECK(fd >= 0);
	CLOSE(eq);
	CLOSE(fabric);
	fi_freeinfo(info);
	CHECK(in < 0 || (dup2(in, STDIN_FILENO) == STDIN_FILENO && close(in) == 0));
}

STATEMENT(67, events, 1, ALONE)
{
	not_over("shm", "its fi_eq_sread does not wake");
	check_descriptor_0();
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
	if (over_portals())
		read_behind_peek();
	CHECK(fi_eq_strerror(events, 0, NULL, NULL, 0) != NULL);
	CLOSE(events);
}
