/* SPDX-License-Identifier: BSD-3-Clause */
/* Conformance of the libfabric provider: threads, deaths, sleep, starters, hosts. */
#include "../support/asleep.h"
#include "../support/leaks.h"
#include "frame.h"

#include <malloc.h>
#include <poll.h>
#include <portals3.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static struct side *plain_side(void)
{
	return side_open((struct how){.caps = FI_TAGGED});
}

/* ---- 82: threads ---- */

enum { THREADS = 4 };

static struct {
	struct side *s;
	uint32_t n; /* messages of each thread */
	_Atomic uint32_t sent, got;
	_Atomic uint64_t sum;
} shared_side;

/* Take what is there, whichever thread's it is. */
static void take_some(void)
{
	struct fi_cq_tagged_entry e[8];
	ssize_t n = fi_cq_read(shared_side.s->rx, e, 8);
	CHECK(n > 0 || n == -FI_EAGAIN);
	for (ssize_t i = 0; i < n; i++) {
		if (e[i].flags & FI_RECV) {
			CHECK(*(uint32_t *)e[i].op_context == e[i].tag);
			shared_side.sum += e[i].tag;
			shared_side.got++;
		} else {
			shared_side.sent++;
		}
	}
}

#define AGAIN(call)                                                                      \
	do {                                                                             \
		ssize_t again_;                                                          \
		while ((again_ = (call)) == -FI_EAGAIN)                                  \
			take_some();                                                     \
		OK(again_);                                                              \
	} while (0)

static void thread_of_many(void *arg)
{
	uint32_t first = (uint32_t)(uintptr_t)arg * shared_side.n;
	uint32_t *from = malloc(2 * shared_side.n * sizeof *from);
	uint32_t *to = from + shared_side.n;
	struct fid_ep *ep = shared_side.s->ep;
	fi_addr_t peer = shared_side.s->at[1 - me.rank];
	struct patience p = patience_begin();
	for (uint32_t i = 0; i < shared_side.n; i++) {
		from[i] = first + i;
		AGAIN(fi_trecv(ep, &to[i], 4, NULL, peer, from[i], 0, &to[i]));
		AGAIN(fi_tsend(ep, &from[i], 4, NULL, peer, from[i], &from[i]));
		take_some();
	}
	while (shared_side.got < THREADS * shared_side.n ||
		shared_side.sent < THREADS * shared_side.n) {
		take_some();
		look_at(__FILE__, __LINE__, &p, "all messages of all threads");
	}
}

STATEMENT(82, threads, 2, ALONE)
{
	not_over("shm", "its queues are too small");
	uint32_t n = (uint32_t)many(20000), all = THREADS * n;
	struct thread *t[THREADS];
	shared_side.s = side_open((struct how){
		.caps = FI_TAGGED | FI_DIRECTED_RECV, .threading = FI_THREAD_SAFE});
	shared_side.n = n;
	void (*progress)(void) = ranks_progress;
	ranks_progress = NULL; /* it would take completions from the threads */
	for (unsigned i = 0; i < THREADS; i++)
		t[i] = thread_start(thread_of_many, CONTEXT(i));
	for (unsigned i = 0; i < THREADS; i++)
		thread_join(t[i]);
	CHECK_EQ(shared_side.sent, all);
	CHECK_EQ(shared_side.got, all);
	CHECK_EQ(shared_side.sum, (uint64_t)all * (all - 1) / 2);
	ranks_progress = progress;
	barrier();
}

/* ---- 98: more ranks than CPUs ---- */

/* A rank that keeps its CPU until that is taken reads ten thousand times in each round;
 * one whose peer gets no CPU does so in some. */
STATEMENT(98, shared_cpu, 2, ALONE)
{
	only_portals("others keep the CPU");
	enum { ROUNDS = 200, READS = 2048 };
	static struct fi_context2 context;
	struct fi_cq_tagged_entry e;
	uint64_t value = 0;
	unsigned long_rounds = 0;
	ssize_t n;
	struct side *s = plain_side();
	void (*progress)(void) = ranks_progress;
	ranks_progress = NULL; /* it would take the completions */
	use_one_cpu();
	barrier();
	for (unsigned i = 0; i < ROUNDS; i++) {
		recv_from(s, true, FI_ADDR_UNSPEC, &value, 8, i, &context);
		if (me.is_client)
			TRY(s, fi_tinject(s->ep, &value, 8, s->at[1], i));
		unsigned reads = 0;
		for (; (n = fi_cq_read(s->rx, &e, 1)) == -FI_EAGAIN; reads++)
			; /* without look_at(), which sleeps */
		CHECK_EQ(n, 1);
		long_rounds += reads > READS;
		if (me.is_server)
			TRY(s, fi_tinject(s->ep, &value, 8, s->at[0], i));
	}
	CHECK(long_rounds < ROUNDS / 2);
	ranks_progress = progress;
	barrier();
}

/* ---- 83: without calls ---- */

STATEMENT(83, computing_receiver, 2, 0)
{
	only_portals("others make no progress without calls");
	enum { LEN = 1000000 };
	static struct fi_context2 context;
	struct side *s = plain_side();
	if (me.is_client) {
		unsigned char *bytes = sent_bytes(83);
		hear(1);
		deliver(s, 1, bytes, LEN, 1);
		set_word(0, 1);
		barrier();
		return;
	}
	recv_from(s, true, FI_ADDR_UNSPEC, shared(), LEN, 1, &context);
	say();
	while (!word(0))
		compute_ms(1);
	CHECK_BYTES(shared(), LEN, 83);
	(void)TAKE(s, &context);
	barrier();
}

/* ---- 84 to 86: deaths and stops ---- */

/* Fail if the time since then is above this many seconds on a quiet machine; a loaded one
 * gets ten times more. */
static void check_within(uint64_t began_ms, unsigned seconds)
{
	uint64_t ms = now_ms() - began_ms;
	if (ms > seconds * UINT64_C(10000))
		check_failed(__FILE__, __LINE__, "it took %u ms", (unsigned)ms);
}

/* Start an operation on a peer that is dead.  Return true if it fails, as only a short
 * message may not that leaves before the death is known. */
static bool fails(struct side *s, unsigned kind, unsigned char *at)
{
	static struct fi_context2 context;
	struct region r = told_region(1, 1);
	ssize_t rc;
	do {
		rc = kind == 0   ? fi_tsend(s->ep, at, 8, NULL, s->at[1], 1, &context)
		     : kind == 1 ? fi_tsend(s->ep, at, LONG, NULL, s->at[1], 1, &context)
		     : kind == 2
			     ? fi_write(s->ep, at, 8, NULL, s->at[1], 0, r.key, &context)
		     : kind == 3 ? fi_read(s->ep, at, LONG, NULL, s->at[1], 0, r.key,
					   &context)
		     : kind == 4 ? fi_atomic(s->ep, at, 1, NULL, s->at[1], 0, r.key,
					   FI_UINT64, FI_SUM, &context)
				 : fi_fetch_atomic(s->ep, at, 1, NULL, at + 8, NULL,
					   s->at[1], 0, r.key, FI_UINT64,
					   kind == 5 ? FI_SUM : FI_ATOMIC_READ, &context);
		if (rc == -FI_EAGAIN)
			pump(s);
	} while (rc == -FI_EAGAIN);
	if (rc != 0) /* the address is refused */
		return true;
	struct done d = NEXT(s);
	CHECK(d.e.op_context == &context);
	CHECK(d.err == FI_ECONNABORTED || (d.err == 0 && kind == 0));
	return d.err;
}

STATEMENT(84, killed_peer, 3, ALONE)
{
	only_portals("others wait for ever");
	static unsigned char bytes[LONG];
	struct side *s = side_open((struct how){.caps = FI_TAGGED | FI_RMA | FI_ATOMIC});
	if (me.is_server) {
		struct region r =
			region_open(s, bytes, LONG, FI_REMOTE_READ | FI_REMOTE_WRITE, 1);
		tell_region(&r);
		send_now(s, 0, NULL, 0, 1);
		for (;;)
			pause();
	}
	if (me.is_client) {
		(void)recv_now(s, NULL, 0, 1);

		signal_rank(1, SIGKILL);
		say();
		for (unsigned kind = 0; kind < 7; kind++)
			for (uint64_t began = now_ms(); !fails(s, kind, bytes);)
				check_within(began, 1);
	}
	hear(1);
	for (unsigned i = 0; i < 100; i++) { /* the others go on */
		size_t len = i & 1 ? 8 : 100000;
		if (me.is_client)
			send_now(s, 2, bytes, len, 2);
		else
			CHECK_EQ(recv_now(s, bytes, LONG, 2).e.len, len);
	}
	if (me.is_client)
		hear(2);
	else
		say();
}

/* Write through a queue of its own, which is not read, and wait for the ACK. */
static struct fid_cq *write_unread(struct side *s, uint64_t key, void *context)
{
	static unsigned char bytes[8];
	struct fid_cq *cq = queue_open(s->domain, FI_CQ_FORMAT_TAGGED, FI_WAIT_NONE, 0);
	struct fid_ep *ep = NULL;
	OK(fi_endpoint(s->domain, s->info, &ep, NULL));
	OK(fi_ep_bind(ep, &s->av->fid, 0));
	OK(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT));
	OK(fi_ep_bind(ep, &s->rx->fid, FI_RECV));
	OK(fi_enable(ep));
	TRY(s, fi_write(ep, bytes, sizeof bytes, NULL, s->at[1], 0, key, context));
	TRY(s, fi_read(s->ep, bytes, sizeof bytes, NULL, s->at[1], 0, key, context));
	(void)TAKE(s, context); /* its reply comes behind the ACK */
	return cq;
}

/* Write to rank 1, which is stopped, until no operation is left, and kill it: all writes
 * end, and the long message before them, which has this context; but not a write whose
 * ACK has come. */
static void writes_to_the_stopped(struct side *s, void *context)
{
	static struct fi_context2 write, unread;
	static unsigned char bytes[8];
	struct region r = told_region(1, 1);
	struct fid_cq *cq = write_unread(s, r.key, &unread);
	struct fi_cq_tagged_entry e;
	unsigned n = 0;
	ssize_t rc;
	signal_rank(1, SIGSTOP);
	while (!(rc = fi_write(
			 s->ep, bytes, sizeof bytes, NULL, s->at[1], 0, r.key, &write)))
		n++;
	CHECK_RC((int)rc, -FI_EAGAIN);
	signal_rank(1, SIGKILL);
	uint64_t began = now_ms();
	while ((rc = fi_cq_sread(s->rx, &e, 1, NULL, -1)) == 1 && e.op_context == &write)
		n--; /* it was taken before rank 1 stopped */
	CHECK_RC((int)rc, -FI_EAVAIL);
	check_within(began, 3);
	for (unsigned i = 0; i <= n; i++) {
		struct done d = NEXT(s);
		CHECK(d.err == FI_ECONNABORTED ||
			(d.err == 0 && d.e.op_context != context));
	}
	check_within(began, 3);
	CHECK(fi_cq_read(cq, &e, 1) == 1 && e.op_context == &unread);
}

STATEMENT(85, killed_receiver, 2, ALONE)
{
	only_portals("others wait for ever");
	static struct fi_context2 context, own;
	static unsigned char bytes[LONG];
	struct side *s = side_open(
		(struct how){.caps = FI_TAGGED | FI_RMA, .wait = FI_WAIT_UNSPEC});
	if (me.is_server) {
		struct region r =
			region_open(s, bytes, LONG, FI_REMOTE_READ | FI_REMOTE_WRITE, 1);
		tell_region(&r);
	}
	barrier();
	if (me.is_server) {
		await_late(s, 1);
		say();
		for (;;)
			pause();
	}
	for (unsigned i = 0; i < 200; i++) /* to a peer that lives, and waits */
		send_to(s, true, 0, bytes, LONG, 5, &own);
	send_to(s, true, 1, bytes, LONG, 1, &context);
	while (word(31) == 0) { /* the message is there, and nobody receives it */
		hear(1);
		set_word(31, 1);
	}
	writes_to_the_stopped(s, &context);
}

STATEMENT(86, stopped_peer, 2, ALONE)
{
	static struct fi_context2 contexts[3];
	static unsigned char bytes[LONG], got[LONG], target[LONG];
	only_portals("others make no progress without calls");
	struct side *s = side_open((struct how){.caps = FI_TAGGED | FI_RMA});
	if (me.is_server) {
		struct region r = {0};
		r = region_open(s, target, LONG, FI_REMOTE_WRITE, 1);
		tell_region(&r);
		barrier();
		CHECK_EQ(recv_now(s, got, LONG, 1).e.len, 8);
		CHECK_EQ(recv_now(s, got, LONG, 2).e.len, LONG);
		barrier();
		CLOSE(r.mr);
		return;
	}
	barrier();
	signal_rank(1, SIGSTOP);
	send_to(s, true, 1, bytes, 8, 1, &contexts[0]);
	send_to(s, true, 1, bytes, LONG, 2, &contexts[1]);
	struct region r = told_region(1, 1);
	TRY(s, fi_write(s->ep, bytes, 1000, NULL, s->at[1], 0, r.key, &contexts[2]));
	for (struct patience p = patience_ms(200); !patience_is_over(&p);)
		pump(s);
	for (unsigned i = 0; i < s->early_n; i++) /* only the short message may be over */
		CHECK(s->early[i].err == 0 && s->early[i].e.op_context == &contexts[0]);
	signal_rank(1, SIGCONT);
	for (unsigned i = 0; i < (3); i++)
		(void)TAKE(s, &contexts[i]);
	barrier();
}

/* ---- 87: fork ---- */

static bool is_readable(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	return poll(&p, 1, ms) == 1;
}

/* What a child may not do. */
static int child_tries(struct side *s, struct fid_eq *events)
{
	static uint32_t value;
	struct fi_cq_tagged_entry e;
	struct fi_eq_entry entry = {0};
	uint32_t event;
	struct fid_domain *domain = NULL;
	const ssize_t rc[] = {fi_tsend(s->ep, &value, 4, NULL, s->at[0], 1, NULL),
		fi_tinject(s->ep, &value, 4, s->at[0], 1),
		fi_trecv(s->ep, &value, 4, NULL, FI_ADDR_UNSPEC, 1, 0, NULL),
		fi_cq_read(s->rx, &e, 1), fi_domain(s->fabric, s->info, &domain, NULL),
		fi_eq_write(events, FI_NOTIFY, &entry, sizeof entry, 0),
		fi_eq_read(events, &event, &entry, sizeof entry, 0),
		fi_close(&events->fid)};
	for (int i = 0; i < (int)(sizeof rc / sizeof rc[0]); i++)
		if (rc[i] != -FI_EOPBADSTATE)
			return i + 1;
	return 0;
}

STATEMENT(87, fork, 2, ALONE)
{
	only_portals("others work in two processes at once");
	static uint32_t value;
	struct side *s = plain_side();
	struct fi_eq_attr attr = {.flags = FI_WRITE, .wait_obj = FI_WAIT_FD};
	struct fi_eq_entry entry = {0};
	struct fid_eq *events = NULL;
	uint32_t event;
	int fd = -1;
	OK(fi_eq_open(s->fabric, &attr, &events, NULL));
	OK(fi_control(&events->fid, FI_GETWAIT, &fd));
	CHECK_EQ(fi_eq_write(events, FI_NOTIFY, &entry, sizeof entry, 0), sizeof entry);
	for (unsigned i = 0; i < 5; i++) {
		int status;
		pid_t pid = fork();
		CHECK(pid >= 0);
		if (pid == 0) {
			int code = child_tries(s, events);
			(void)fi_close(&s->ep->fid);
			exit(code);
		}
		CHECK(waitpid(pid, &status, 0) == pid);
		CHECK_EQ(status, 0);
		CHECK(is_readable(fd, 0));
		if (me.is_client)
			send_now(s, 1, &value, 4, 1);
		else
			(void)recv_now(s, &value, 4, 1);
		barrier();
	}
	CHECK_EQ(fi_eq_read(events, &event, &entry, sizeof entry, 0), sizeof entry);
	CLOSE(events);
}

/* ---- 88: the descriptor ---- */

STATEMENT(88, descriptor, 2, 0)
{
	static struct fi_context2 context;
	static uint32_t value;
	not_over("shm", "it has no descriptors");
	not_over("tcp;ofi_rxm", "its descriptor wakes for other reasons, too");
	struct side *s = side_open((struct how){.caps = FI_TAGGED, .wait = FI_WAIT_FD});
	struct fid *fids[] = {&s->rx->fid};
	int fd = -1;
	OK(fi_control(&s->rx->fid, FI_GETWAIT, &fd));
	CHECK(fd >= 0);
	for (unsigned i = 0; i < 50; i++) {
		if (me.is_client) {
			hear(i + 1);
			send_now(s, 1, &value, 4, 1);
			barrier();
			continue;
		}
		recv_from(s, true, FI_ADDR_UNSPEC, &value, 4, 1, &context);
		int rc = fi_trywait(s->fabric, fids, 1);
		CHECK_EQ(rc, 0);
		CHECK(!is_readable(fd, i ? 0 : 20));
		say();
		CHECK(is_readable(fd, -1));
		if (i & 1) /* whoever looks first is told that entries wait */
			FAILS(fi_trywait(s->fabric, fids, 1), -FI_EAGAIN);
		CHECK(is_readable(fd, 0));
		(void)TAKE(s, &context);
		barrier();
	}
}

/* ---- 89: a peer with any headers ---- */

/* Send anything.  Return true if Portals has taken it. */
static bool put_anything(ptl_handle_md_t md, ptl_process_id_t to, uint64_t seed)
{
	uint64_t x = mix(seed), y = mix(x);
	static const ptl_pt_index_t places[] = {0, 1, 8, 9, 64, 65};
	ptl_pt_index_t at = x & 1 ? places[x / 2 % 6] : (ptl_pt_index_t)(x / 2 % 256);
	ptl_match_bits_t bits = y & 3 ? y & UINT64_C(0xc100000000000003) : mix(y);
	ptl_hdr_data_t data = y & 4 ? mix(y + 1) : mix(y + 1) % 70;
	ptl_size_t len = x & 64 ? mix(y + 2) % 64 : mix(y + 2) % 20000;
	/* A long message that does not say so stays in the attacker's lane, and the rest
	 * of the attack behind it. */
	if (at >= 64 && !(bits >> 63))
		len %= SHORT_MOST + 1;
	if (x % 5 == 0)
		return PtlGetRegion(md, 0, len, to, at, 0, bits, mix(y + 3) % 5000) ==
		       PTL_OK;
	return PtlPutRegion(md, 0, len, x & 32 ? PTL_ACK_REQ : PTL_NOACK_REQ, to, at, 0,
		       bits, x & 16 ? 0 : mix(y + 3), data) == PTL_OK;
}

/* Attack the process whose name is told, by Portals calls alone. */
static void attack(void)
{
	static unsigned char bytes[20000];
	int n;
	ptl_handle_ni_t ni;
	ptl_handle_md_t handle;
	ptl_process_id_t to;
	ptl_md_t md = {.start = bytes,
		.length = sizeof bytes,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE,
		.eq_handle = PTL_EQ_NONE};
	CHECK_EQ(PtlInit(&n), PTL_OK);
	CHECK_EQ(PtlNIInit(PTL_IFACE_SS, PTL_PID_ANY, NULL, NULL, &ni), PTL_OK);
	CHECK_EQ(PtlMDBind(ni, md, PTL_RETAIN, &handle), PTL_OK);
	const unsigned char *name = told(0, 0);
	memcpy(&to.nid, name + 8, sizeof to.nid);
	memcpy(&to.pid, name + 12, sizeof to.pid);
	for (uint64_t i = 0; !word(0) || i < 20000; i++) {
		put_anything(handle, to, i);
		ptl_sr_value_t dropped;
		(void)PtlNIStatus(
			ni, PTL_SR_DROP_COUNT, &dropped); /* and make progress */
	}
	(void)PtlNIFini(ni);
}

STATEMENT(89, any_header, 3, ALONE)
{
	only_portals("it is about Portals' headers");
	enum { N = 300 };
	static unsigned char bytes[LONG], target[64];
	if (me.rank == 2) {
		attack();
		barrier();
		return;
	}
	struct side *s = side_open((struct how){
		.caps = FI_TAGGED | FI_MSG | FI_RMA | FI_DIRECTED_RECV, .alone = true});
	tell_name(s->ep);
	s->at[0] = address(s, 0, 0);
	s->at[1] = address(s, 1, 0);
	struct region r = {0};
	r = region_open(s, target, 64, FI_REMOTE_READ, 77);
	for (unsigned i = 0; i < N; i++) { /* what comes from rank 1 is not disturbed */
		static struct fi_context2 context;
		size_t len = i % 3 ? 100 : LONG;
		if (me.is_server) {
			fill(bytes, len, i);
			send_now(s, 0, bytes, len, 0xabcdef0000 + i);
			continue;
		}
		recv_from(s, true, s->at[1], bytes, LONG, 0xabcdef0000 + i, &context);
		CHECK_EQ(TAKE(s, &context).e.len, len);
		CHECK_BYTES(bytes, len, i);
	}
	CHECK_ALL(target, 64, 0);
	set_word(0, 1);
	barrier();
	CLOSE(r.mr);
}

/* ---- 90 to 92: starters, hosts ---- */

/* Run a script of this folder; its status is the result, and 77 that it is left out. */
static void run_script(const char *name)
{
	char command[1000];
	const char *sources = getenv("OFI_SOURCES");
	only_portals("it is about one provider");
	only_plain();
	if (!sources)
		skip("OFI_SOURCES does not name the folder of the scripts");
	(void)unsetenv("PTL3_DOMAIN");
	(void)unsetenv("PTL3_YOD_FD");
	snprintf(command, sizeof command, "'%s'/%s >&2", sources, name);
	int status = system(command);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip("a program that it needs is not installed");
	CHECK_EQ(status, 0);
}

STATEMENT(90, starters, 1, 0)
{
	run_script("meet.sh");
}

STATEMENT(91, spawn, 1, 0)
{
	run_script("mpi.sh spawn");
}

/* Each rank writes and reads the memory of the next one; wrong keys and ranges fail there
 * and change nothing. */
static void remote_memory(struct side *s, unsigned next)
{
	static unsigned char target[LONG], bytes[LONG], got[LONG];
	static const size_t sizes[] = {0, 1, 8, 8192, 8193, LONG - 9};
	static struct fi_context2 context;
	struct region r = region_open(
		s, target, LONG, FI_REMOTE_READ | FI_REMOTE_WRITE, me.rank + 1);
	unsigned nth = tales_told();
	tell_region(&r);
	struct region there = told_region(next, nth);
	fi_addr_t to = s->at[next];
	for (unsigned i = 0; i < 6; i++) {
		fill(bytes, sizes[i], 68 + i);
		TRY(s, fi_write(
			       s->ep, bytes, sizes[i], NULL, to, 9, there.key, &context));
		(void)TAKE(s, &context);
		TRY(s, fi_write(s->ep, target, 8, NULL, to, LONG - 7, there.key,
			       &context));
		(void)TAKE_ERR(s, &context, FI_EACCES);
		TRY(s, fi_read(s->ep, got, sizes[i], NULL, to, 9, 99, &context));
		(void)TAKE_ERR(s, &context, sizes[i] ? FI_EACCES : 0);
		TRY(s, fi_read(s->ep, got, sizes[i], NULL, to, 9, there.key, &context));
		(void)TAKE(s, &context);
		CHECK_BYTES(got, sizes[i], 68 + i);
	}
	barrier();
	CHECK_BYTES(target + 9, LONG - 9, 68 + 5);
	CHECK_ALL(target, 9, 0);
	barrier();
	CLOSE(r.mr);
}

STATEMENT(92, hosts, 3, ALONE)
{
	only_portals("it is about one provider");
	const char *by = getenv("SUITE_BY");
	if (!by || by[0] != '/')
		skip("tests/hosts runs this one on three hosts");
	static unsigned char bytes[LONG], got[LONG];
	static struct fi_context2 sent, received;
	struct side *s =
		side_open((struct how){.caps = FI_TAGGED | FI_DIRECTED_RECV | FI_RMA});
	unsigned next = (me.rank + 1) % 3, last = (me.rank + 2) % 3;
	for (unsigned i = 0; i < 60; i++) {
		size_t len = i % 3 == 2 ? LONG : i % 3 * 100;
		fill(bytes, len, i);
		recv_from(s, true, s->at[last], got, LONG, i, &received);
		send_to(s, true, next, bytes, len, i, &sent);
		CHECK_EQ(TAKE(s, &received).e.len, len);
		CHECK_BYTES(got, len, i);
		(void)TAKE(s, &sent);
	}
	barrier();
	remote_memory(s, next);
}

STATEMENT(93, no_recursion, 1, 0)
{
	struct fi_info *info = NULL, *hints = hints_of(FI_TAGGED);
	char text[4096], command[1000], folder[] = "/tmp/ofi_meet.XXXXXX";
	only_portals("it is about one provider");
	OK(fi_getinfo(API, NULL, NULL, 0, hints, &info));
	fi_freeinfo(info);
	fi_freeinfo(hints);
	CHECK(mkdtemp(folder));
	snprintf(command, sizeof command,
		"env -u PTL3_YOD_FD PTL3_FABRIC=portals '%s' -sz 2 '%s' %s 2 2>&1",
		getenv("P3_YOD"), getenv("P3_OFI_MEET"), folder);
	FILE *f = popen(command, "re");
	CHECK(f);
	size_t n = fread(text, 1, sizeof text - 1, f);
	text[n] = 0;
	(void)rmdir(folder);
	CHECK(pclose(f) != 0);
	CHECK(strstr(text, "PTL3_FABRIC") && strstr(text, "portals"));
}

/* ---- 94 to 96: ends ---- */

/* As many long messages to oneself as there are operations, and then their receives. */
static void receive_own(void)
{
	static struct fi_context2 sent, received;
	static unsigned char bytes[10000], got[10000];
	struct side *s = plain_side();
	unsigned n = 0, left;
	ssize_t rc;
	while (!(rc = fi_tsend(
			 s->ep, bytes, sizeof bytes, NULL, s->at[me.rank], 1, &sent)))
		n++;
	CHECK_RC((int)rc, -FI_EAGAIN);
	for (left = 2 * n; n--;)
		recv_from(s, true, FI_ADDR_UNSPEC, got, sizeof got, 1, &received);
	while (left--)
		CHECK_EQ(NEXT(s).err, 0);
	side_close(s);
	barrier();
}

/* An endpoint is closed that has sent a long message, and then all requests have as many
 * further uses as give them their old serial numbers: another message's bytes are not
 * taken for those of the first one. */
static void withdraw_then_send(void)
{
	enum { REQUESTS = 256, GENERATIONS = 256 };
	static struct fi_context2 contexts[REQUESTS];
	static unsigned char bytes[10000];
	struct side *s = plain_side();
	struct fid_ep *first = endpoint(s);
	TRY(s, fi_tsend(first, bytes, sizeof bytes, NULL, s->at[me.rank], 1, NULL));
	await_late(s, 1);
	CLOSE(first);
	for (unsigned n = 1; n < GENERATIONS; n++) {
		for (unsigned i = 0; i < REQUESTS; i++)
			recv_from(s, true, FI_ADDR_UNSPEC, bytes, 8, 2, &contexts[i]);
		for (unsigned i = 0; i < REQUESTS; i++) {
			OK(fi_cancel(&s->ep->fid, &contexts[i]));
			(void)TAKE_ERR(s, &contexts[i], FI_ECANCELED);
		}
	}
	for (unsigned i = 0; i < REQUESTS; i++)
		send_to(s, true, me.rank, bytes, sizeof bytes, 2, &contexts[i]);
	recv_from(s, true, FI_ADDR_UNSPEC, bytes, sizeof bytes, 1, &bytes);
	(void)TAKE_ERR(s, &bytes, FI_ECONNABORTED);
	side_close(s);
	barrier();
}

enum { STALLED = 42 }; /* 32 of them are fetched at once */

static void continue_client(void *arg)
{
	(void)arg;
	/* pause: let the close begin, which withdraws the receives that wait */
	usleep(20000);
	signal_rank(0, SIGCONT);
}

/* An endpoint is closed while receives wait for a descriptor to fetch their messages,
 * since exposed messages of its own, and fetches from a stopped peer, have all of them:
 * the senders' operations end. */
static void close_stalled(void)
{
	static struct fi_context2 contexts[STALLED], other;
	static unsigned char bytes[10000], got[STALLED][sizeof bytes];
	struct side *s = plain_side();
	for (unsigned i = 0; i < STALLED && me.is_client; i++)
		send_to(s, true, 1, bytes, sizeof bytes, i, &contexts[i]);
	settle(s, 77, 0, 1);
	if (me.is_client) {
		barrier();
		for (unsigned i = 0; i < STALLED; i++)
			(void)NEXT(s);
		barrier();
		return;
	}
	ssize_t rc;
	while (!(rc = fi_tsend(s->ep, bytes, sizeof bytes, NULL, s->at[0], 5, &other)))
		;
	CHECK_RC((int)rc, -FI_EAGAIN);
	signal_rank(0, SIGSTOP);
	for (unsigned i = 0; i < STALLED; i++)
		recv_from(s, true, FI_ADDR_UNSPEC, got[i], sizeof bytes, i, &contexts[i]);
	struct thread *t = thread_start(continue_client, NULL);
	CLOSE(s->ep);
	thread_join(t);
	s->ep = NULL;
	barrier();
	barrier();
}

/* An endpoint is closed while its target has no room: it waits, and nothing is lost. */
static void close_held(void)
{
	enum { N = 1600 }; /* 1,024 of them fill the blocks of the target */
	static struct fi_context2 context;
	static unsigned char bytes[8192];
	struct side *s = plain_side();
	if (me.is_client) {
		for (unsigned i = 0; i < N; i++)
			send_to(s, true, 1, bytes, sizeof bytes, i, &context);
		pump(s);
		CHECK(s->early_n < N);
		say();
		CLOSE(s->ep);
		s->ep = NULL;
		barrier();
		return;
	}
	hear(1); /* without a call, so there is no room */
	CHECK(await_sleeps(pid_of(0)));
	for (unsigned i = 0; i < N; i++)
		CHECK_EQ(recv_now(s, bytes, sizeof bytes, i).e.len, sizeof bytes);
	barrier();
}

/* A peer closes its endpoint, its domain, or with the last one its interface, and lives
 * on: operations that it cannot answer fail. */
enum closed { ENDPOINT, DOMAIN_OF_TWO, INTERFACE };

static void close_peer(enum closed what)
{
	const int err = what == ENDPOINT ? FI_EACCES : FI_ECONNABORTED; /* of regions */
	static struct fi_context2 contexts[6];
	static unsigned char bytes[LONG], got[LONG];
	static _Alignas(8) unsigned char target[64];
	struct side *other = what == INTERFACE ? NULL : plain_side();
	struct side *s = side_open((struct how){.caps = FI_TAGGED | FI_RMA | FI_ATOMIC});
	struct region r = region_open(
		s, target, sizeof target, FI_REMOTE_READ | FI_REMOTE_WRITE, 1);
	unsigned nth = tales_told();
	tell_region(&r);
	struct region there = told_region(1, nth);
	if (me.is_server) {
		send_to(s, true, 0, bytes, LONG, 1, &contexts[0]);
		await_late(s, 2);
		barrier(); /* each has the other's message */
		CLOSE(r.mr);
		if (what == ENDPOINT) {
			CLOSE(s->ep);
			s->ep = NULL;
		} else {
			side_close(s);
		}
		barrier();
	} else {
		send_to(s, true, 1, bytes, LONG, 2, &contexts[5]);
		await_late(s, 1);
		barrier();
		barrier();
		(void)TAKE_ERR(s, &contexts[5], FI_ECONNABORTED);
		recv_from(s, true, FI_ADDR_UNSPEC, bytes, LONG, 1, &contexts[0]);
		(void)TAKE_ERR(s, &contexts[0], FI_ECONNABORTED);
		send_to(s, true, 1, bytes, LONG, 1, &contexts[1]);
		TRY(s, fi_write(s->ep, bytes, 8, NULL, s->at[1], there.base, there.key,
			       &contexts[2]));
		TRY(s, fi_read(s->ep, got, LONG, NULL, s->at[1], there.base, there.key,
			       &contexts[3]));
		TRY(s, fi_atomic(s->ep, bytes, 1, NULL, s->at[1], there.base, there.key,
			       FI_UINT64, FI_SUM, &contexts[4]));
		for (unsigned i = 1; i < 5; i++)
			(void)TAKE_ERR(s, &contexts[i], i == 1 ? FI_ECONNABORTED : err);
		CLOSE(r.mr);
	}
	barrier();
	if (me.is_client || what == ENDPOINT)
		side_close(s);
	if (other)
		side_close(other);
}

/* A write with data to an endpoint that is closed reaches the region of its domain, and
 * nobody is told. */
static void write_to_nobody(void)
{
	static struct fi_context2 context;
	static uint64_t value = 7, target;
	struct side *s = side_open((struct how){.caps = FI_TAGGED | FI_RMA});
	struct region r = region_open(s, &target, sizeof target, FI_REMOTE_WRITE, 1);
	unsigned nth = tales_told();
	tell_region(&r);
	struct region there = told_region(1, nth);
	if (me.is_server) {
		CLOSE(s->ep);
		s->ep = NULL;
		barrier();
		barrier();
		CHECK_EQ(target, value);
		SILENCE(s, 2);
	} else {
		barrier();
		TRY(s, fi_writedata(s->ep, &value, sizeof value, NULL, 5, s->at[1],
			       there.base, there.key, &context));
		(void)TAKE(s, &context);
		barrier();
	}
	CLOSE(r.mr);
	barrier();
	side_close(s);
}

/* A short message to a rank that has not joined lies in this process, so it is not over.
 * Of a job's two ranks either may be rank 0 of the test; the second one of the job has
 * the next node and process number. */
static void send_before_joining(void)
{
	static struct fi_context2 context;
	static uint64_t value;
	uint32_t name[4];
	size_t n = sizeof name;
	if (me.is_server)
		await_word(0, 1);
	struct side *s = side_open((struct how){.caps = FI_TAGGED, .alone = true});
	if (me.is_server) {
		(void)recv_now(s, &value, 8, 1);
	} else {
		OK(fi_getname(&s->ep->fid, name, &n));
		uint32_t to_other = atoi(getenv("PTL_MY_RID")) ? UINT32_MAX : 1;
		name[2] += to_other;
		name[3] += to_other;
		s->at[1] = enter(s->av, name);
		send_to(s, true, 1, &value, 8, 1, &context);
		SILENCE(s, 1);
		set_word(0, 1);
		(void)TAKE(s, &context);
	}
	barrier();
	side_close(s);
}

STATEMENT(94, close_then_exit, 2, ALONE)
{
	static struct fi_context2 contexts[40];
	only_portals("others lose what is under way");
	const char *by = getenv("SUITE_BY");
	if (!by || strcmp(by, "yod") == 0)
		send_before_joining();
	for (enum closed what = ENDPOINT; what <= INTERFACE; what++)
		close_peer(what);
	write_to_nobody();
	receive_own();
	withdraw_then_send();
	close_stalled();
	close_held();
	struct side *s = plain_side();
	if (me.is_client) {
		for (uint32_t i = 0; i < 40; i++) {
			uint32_t *bytes = suite_alloc(8192);
			*bytes = i;
			if (i & 1)
				TRY(s, fi_tinject(s->ep, bytes, 1000, s->at[1], i));
			else
				send_to(s, true, 1, bytes, i % 4 ? 8192 : 8, i,
					&contexts[i]);
		}
		CLOSE(s->ep);
		may_die(0);
		exit(0);
	}
	await_end(0);
	for (uint32_t i = 0; i < 40; i++) {
		uint32_t got[2048];
		(void)recv_now(s, got, sizeof got, i);
		CHECK_EQ(got[0], i);
	}
}

static uint64_t cpu_us(void)
{
	struct rusage u;
	CHECK(getrusage(RUSAGE_SELF, &u) == 0);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

STATEMENT(95, idle, 2, ALONE)
{
	only_portals("others look again and again");
	const char *mode = getenv("PTL3_MODE");
	if (mode && strcmp(mode, "dedicated") == 0)
		skip("the NIC has a thread of its own, which polls");
	struct fi_cq_tagged_entry e;
	struct side *s =
		side_open((struct how){.caps = FI_TAGGED, .wait = FI_WAIT_UNSPEC});
	barrier();
	FAILS(fi_cq_sread(s->rx, &e, 1, NULL, 50), -FI_EAGAIN);
	uint64_t before = cpu_us(), began = now_ms();
	FAILS(fi_cq_sread(s->rx, &e, 1, NULL, 400), -FI_EAGAIN);
	uint64_t used = cpu_us() - before, ms = now_ms() - began;
	if (used > ms * 1000 / 20) /* each sleep begins with some ms of looking */
		check_failed(__FILE__, __LINE__, "%u us of CPU time in %u ms",
			(unsigned)used, (unsigned)ms);
	barrier();
}

/* Open all, use it, close all. */
static void one_life(void)
{
	static struct fi_context2 contexts[2];
	static unsigned char bytes[LONG], target[64];
	struct side *s = side_open((struct how){
		.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_MULTI_RECV,
		.alone = true});
	s->at[0] = address_of(s, s->ep);

	for (unsigned i = 0; i < 10; i++) {
		recv_from(s, true, FI_ADDR_UNSPEC, bytes, LONG, i, &contexts[1]);
		send_to(s, true, 0, bytes, i & 1 ? LONG : 8, i, &contexts[0]);
		(void)TAKE(s, &contexts[0]);
		(void)TAKE(s, &contexts[1]);
	}
	send_now(s, 0, bytes, 100, 5); /* never received */
	recv_from(
		s, true, FI_ADDR_UNSPEC, bytes, LONG, 77, &contexts[1]); /* never sent */
	struct region r = region_open(s, target, 64, FI_REMOTE_READ | FI_REMOTE_WRITE, 1);
	TRY(s, fi_write(s->ep, bytes, 64, NULL, s->at[0], r.base, r.key, &contexts[0]));
	(void)TAKE(s, &contexts[0]);
	CLOSE(r.mr);
	side_close(s);
}

/* More messages wait for their receives than the memory for such ones holds. */
static void many_late_ones(void)
{
	enum { N = 1200 };
	static unsigned char bytes[8192];
	struct side *s = side_open((struct how){.caps = FI_TAGGED, .alone = true});
	s->at[0] = address_of(s, s->ep);
	for (unsigned i = 0; i < N; i++)
		send_now(s, 0, bytes, sizeof bytes, 1);
	for (unsigned i = 0; i < N; i++)
		(void)recv_now(s, bytes, sizeof bytes, 1);
	side_close(s);
	(void)malloc_trim(0); /* so that only what is in use is resident */
}

STATEMENT(96, no_leak, 1, ALONE)
{
	enum { LIVES = 100 };
	only_portals("others leak");
	for (unsigned i = 0; i < 10; i++)
		one_life();
	many_late_ones();
	struct leaks before = leaks_now();
	size_t heap = mallinfo2().uordblks;
	for (unsigned i = 0; i < LIVES; i++)
		one_life();
	many_late_ones();
	size_t heap_after = mallinfo2().uordblks;
	struct leaks after = leaks_after(&before);
	CHECK_EQ(after.descriptors, before.descriptors);
	CHECK_EQ(after.threads, before.threads);
	CHECK(after.mappings <= before.mappings + 2);
	CHECK(after.kib <= before.kib + 1024);
	if (heap_after > heap + 100 * LIVES)
		check_failed(__FILE__, __LINE__, "the heap grows from %zu to %zu bytes",
			heap, heap_after);
}
