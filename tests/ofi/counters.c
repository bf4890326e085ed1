/* SPDX-License-Identifier: BSD-3-Clause */
/* Conformance of the libfabric provider: counters, waiting for them, poll sets. */
#include "../support/asleep.h"
#include "frame.h"

#include <sys/syscall.h>

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

/* Open an endpoint with a counter of remote operations. */
static struct fid_ep *counted_endpoint(
	struct side *s, struct fid_cntr *c, uint64_t operations)
{
	struct fid_ep *ep = NULL;
	OK(fi_endpoint(s->domain, s->info, &ep, NULL));
	OK(fi_ep_bind(ep, &s->av->fid, 0));
	OK(fi_ep_bind(ep, &s->rx->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_ep_bind(ep, &c->fid, operations));
	OK(fi_enable(ep));
	return ep;
}

/* Two endpoints share a counter of remote writes; one of them is closed. */
static void share_counter(void)
{
	static unsigned char target[64];
	struct side *s =
		side_open((struct how){.caps = FI_TAGGED | FI_RMA | FI_RMA_EVENT});
	struct fid_ep *ep[2];
	struct fid_cntr *c = NULL;
	OK(fi_cntr_open(s->domain, NULL, &c, NULL));
	for (unsigned i = 0; i < 2; i++)
		ep[i] = counted_endpoint(s, c, FI_REMOTE_WRITE);
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

/* The counters of rank 1: of writes, of reads, of the writes to its first region. */
struct split {
	struct side *s;
	struct fid_cntr *c[3];
	struct region there[2];
};

/* Write to a region of rank 1, or read it, and see what its counters have then. */
static void count_split(const struct split *x, bool writes, unsigned region, uint64_t all,
	uint64_t reads, uint64_t first)
{
	static struct fi_context2 context;
	static uint64_t value;
	const struct region *r = &x->there[region];
	struct fid_ep *ep = x->s->ep;
	fi_addr_t to = x->s->at[1];
	if (me.is_client && writes)
		TRY(x->s, fi_write(ep, &value, 8, NULL, to, 0, r->key, &context));
	else if (me.is_client)
		TRY(x->s, fi_read(ep, &value, 8, NULL, to, 0, r->key, &context));
	if (me.is_client)
		(void)TAKE(x->s, &context);
	barrier();
	await_count(x->s, x->c[0], me.is_server ? all : 0);
	await_count(x->s, x->c[1], me.is_server ? reads : 0);
	await_count(x->s, x->c[2], me.is_server ? first : 0);
	barrier();
}

/* Two endpoints have counters of their own, and so has a region; a second counter of the
 * same kind is refused, and changes nothing. */
static void split_counters(void)
{
	static unsigned char target[2][64];
	struct split x = {
		.s = side_open((struct how){.caps = FI_TAGGED | FI_RMA | FI_RMA_EVENT})};
	struct fid_ep *writes, *reads, *refused = NULL;
	struct region r[2];
	for (unsigned i = 0; i < 3; i++)
		OK(fi_cntr_open(x.s->domain, NULL, &x.c[i], NULL));
	writes = counted_endpoint(x.s, x.c[0], FI_REMOTE_WRITE);
	reads = counted_endpoint(x.s, x.c[1], FI_REMOTE_READ);
	OK(fi_endpoint(x.s->domain, x.s->info, &refused, NULL));
	FAILS(fi_ep_bind(refused, &x.c[2]->fid, FI_REMOTE_WRITE), -FI_ENOSYS);
	CLOSE(refused);
	for (unsigned i = 0; i < 2; i++) {
		unsigned nth = tales_told();
		r[i] = region_open(x.s, target[i], sizeof target[i],
			FI_REMOTE_READ | FI_REMOTE_WRITE, 9 + i);
		tell_region(&r[i]);
		x.there[i] = told_region(1, nth);
	}
	OK(fi_mr_bind(r[0].mr, &x.c[2]->fid, FI_REMOTE_WRITE));
	barrier();
	count_split(&x, true, 0, 0, 0, 1);
	count_split(&x, true, 1, 1, 0, 1);
	count_split(&x, false, 0, 1, 1, 1);
	count_split(&x, false, 1, 1, 2, 1);
	CLOSE(writes);
	barrier();
	count_split(&x, true, 0, 1, 2, 2);
	count_split(&x, true, 1, 1, 2, 2);
	count_split(&x, false, 1, 1, 3, 2);
	CLOSE(reads);
	barrier();
	count_split(&x, false, 0, 1, 3, 2);
	for (unsigned i = 0; i < 2; i++)
		CLOSE(r[i].mr);
	for (unsigned i = 0; i < 3; i++)
		CLOSE(x.c[i]);
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
	split_counters();
}

static struct {
	struct fid_cntr *c; /* NULL: the thread waits for an entry of cq */
	struct fid_cq *cq;
	uint64_t threshold;
	_Atomic int tid;
	_Atomic int done;
	int rc;
	bool woken; /* it has come back before it would have looked by itself */
	struct fi_cq_tagged_entry e;
} waiters[2];

static void sleep_in_wait(void *arg)
{
	unsigned i = (unsigned)(uintptr_t)arg;
	uint64_t began = now_ms();
	waiters[i].tid = (int)syscall(SYS_gettid);
	if (waiters[i].c)
		waiters[i].rc = fi_cntr_wait(waiters[i].c, waiters[i].threshold, -1);
	else
		waiters[i].rc =
			(int)fi_cq_sread(waiters[i].cq, &waiters[i].e, 1, NULL, -1);
	waiters[i].woken = now_ms() - began < WOKEN_MS;
	waiters[i].done = 1;
}

/* Fail if the threads have slept long, which they do if the machine stalls, too, unless
 * of each kind most have come back before they would have looked by themselves. */
static void check_woken(uint64_t slept, uint64_t most, const unsigned *woken,
	unsigned kinds, unsigned of_each)
{
	bool each = true;
	for (unsigned i = 0; i < kinds; i++)
		each &= woken[i] >= of_each * 3 / 4;
	if (slept > most && !each)
		check_failed(__FILE__, __LINE__, "the threads slept for %u ms",
			(unsigned)slept);
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
	unsigned woken[4] = {0};
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
			woken[i % 4] += waiters[n].woken;
		}
	}
	check_woken(counted, 5000 + 20 * by_pipe, woken, 4, N / 4 * 2);
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

/* Writes of rank 0 wake a thread of rank 1 that waits for the counter of a region or of
 * an endpoint, or, with data, for a completion.  It looks by itself after 400 ms: 9 s in
 * all. */
static void wake_by_writes(struct side *s, struct fid_cntr *of_endpoint, unsigned said)
{
	enum { N = 24 };
	static struct fi_context2 context;
	static uint64_t target[2], value;
	struct fid_cntr *c[] = {NULL, of_endpoint, NULL};
	struct region r[2], there[2];
	uint64_t slept = 0, by_pipe = 0;
	unsigned woken[3] = {0};
	OK(fi_cntr_open(s->domain, NULL, &c[0], NULL));
	for (unsigned i = 0; i < 2; i++) {
		unsigned nth = tales_told();
		r[i] = region_open(s, &target[i], 8, FI_REMOTE_WRITE, 66 + i);
		tell_region(&r[i]);
		there[i] = told_region(1, nth);
	}
	OK(fi_mr_bind(r[0].mr, &c[0]->fid, FI_REMOTE_WRITE));
	waiters[0].cq = s->rx;
	pump(s); /* completions of the messages before */
	for (unsigned i = 0; i < N && me.is_server; i++) {
		struct fid_cntr *which = c[i % 3];
		by_pipe += wake_by_pipe();
		struct thread *t =
			start_waiter(0, which, which ? fi_cntr_read(which) + 1 : 0);
		slept -= now_ms();
		say();
		thread_join(t);
		slept += now_ms();
		woken[i % 3] += waiters[0].woken;
		CHECK_EQ(waiters[0].rc, which ? 0 : 1);
		CHECK(which || waiters[0].e.data == i);
	}
	for (unsigned i = 0; i < N && me.is_client; i++) {
		uint64_t key = there[i % 3 != 0].key;
		hear(said + i + 1);
		if (c[i % 3])
			TRY(s, fi_write(s->ep, &value, 8, NULL, s->at[1], 0, key,
				       &context));
		else
			TRY(s, fi_writedata(s->ep, &value, 8, NULL, i, s->at[1], 0, key,
				       &context));
		(void)TAKE(s, &context);
	}
	if (me.is_server)
		check_woken(slept, 3000 + 20 * by_pipe, woken, 3, N / 3);
	for (unsigned i = 0; i < 2; i++)
		CLOSE(r[i].mr);
	CLOSE(c[0]);
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
		.wait = over_portals() ? FI_WAIT_UNSPEC : FI_WAIT_NONE,
		.counters = c});
	if (me.is_client) {
		for (unsigned i = 0; i < 3; i++) {
			hear(i + 1);
			send_to(s, true, 1, &value, i == 2 ? 4 : 0, 1, &contexts[i]);
			if (i == 1)
				OK(fi_cntr_wait(c[C_SEND], 2, -1));
		}
		if (over_portals())
			wake_by_writes(s, c[C_REMOTE_WRITE], 3);
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
	if (over_portals()) {
		wake_by_writes(s, c[C_REMOTE_WRITE], 3);
		wake_waiters(s, c[C_SEND]);
	}
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

/* ---- 97: poll sets ---- */

static struct fid_poll *set;
static _Atomic int polled_enough;

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
	while (!polled_enough)
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
	polled_enough = 1;
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
	if (over_portals()) { /* numbers that the program adds are no news */
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
