/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cmdperf - the cost of the calls of a node alone: their time, or their instructions
 *
 *	yod -sz 1 cmdperf [options]
 *	cmdperf --count ROWS --rounds N
 *
 * Each line is one call, a pair of calls that makes and removes an object, or a message
 * to oneself with its events; the time is that of one of them, from batches.  Several
 * ranks do the same at a time, and the figures are those of rank 0.
 *
 * bench/instructions runs --count under callgrind, which counts inside of count_calls
 * only: the calls of the row, and the row's own loop.  Before, warm() has filled tables
 * and rings.  The kinds of the events are added up in the loop, and checked behind it.
 */
#include "bench.h"

#include <cci.h>
#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <linux/futex.h>
#include <portals3x.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PORTAL = 4, BATCH = 64, POLLED = 3, SLOTS = 256, MOST = 4096 };
enum { BATCHES = 2000, WARM = 1000, PROBE = 16, TRIES = 1000 };

static struct program {
	struct bench b;
	struct bench_number standing, rounds;
	const char *calls, *count; /* text of the lines to run; rows to count; or NULL */
	bool names;
	ptl_process_id_t self;
	ptl_handle_eq_t eq, empty[POLLED];
	ptl_handle_md_t md;       /* the source of puts, the landing place of gets */
	ptl_handle_me_t me;       /* match entry of the target */
	ptl_handle_ni_t usual_ni; /* while a row uses PTL_IFACE_SS */
	ptl_handle_eq_t usual_eq, late; /* late: the test queue of PtlMEMDPost */
	uint64_t length;
	ptl_md_t region;       /* of the target: puts to there */
	uint64_t kinds, fails; /* sums over the events */
	cci_endpoint_t *endpoint;
	cci_connection_t *connection; /* to the endpoint itself */
	ptl_handle_me_t entry[BATCH];
	ptl_handle_eq_t queue[BATCH];
	ptl_handle_me_t *posted; /* ring of receives, the oldest at head */
	uint64_t head;
	_Alignas(64) char here[MOST];
	_Alignas(64) char there[MOST];
} program = {.standing = {64, 1, 100000}, .rounds = {10000, 1, 1000000000}};

/* ---- loops that are timed or counted ---- */

/* Define the rounds of a row. */
#define ROUNDS(name, ...)                                                                \
	static void name(struct program *p, uint64_t rounds)                             \
	{                                                                                \
		while (rounds--) {                                                       \
			__VA_ARGS__;                                                     \
		}                                                                        \
	}

/* Count a call of Portals or CCI that fails. */
static inline void works(struct program *p, int rc)
{
	p->fails += rc != 0;
}

static inline void take(struct program *p)
{
	ptl_event_t ev;
	works(p, PtlEQWait(p->eq, &ev));
	p->fails += ev.ni_fail_type;
	p->kinds += ev.type;
}

static inline void put(struct program *p, ptl_ack_req_t ack)
{
	works(p, PtlPutRegion(
			 p->md, 0, p->length, ack, p->self, PORTAL, 0, BENCH_BITS, 0, 0));
}

static inline void operate(struct program *p, ptl_handle_md_t get, ptlx_op_t op)
{
	works(p, PtlXAtomic(get, 0, p->md, 0, p->length, op, PTLX_UINT64, PTL_NO_ACK_REQ,
			 p->self, PORTAL, 0, BENCH_BITS, 0, 0));
	take(p);
	take(p);
}

/* Post a receive for one message before the last entry. */
static inline ptl_handle_me_t post(struct program *p)
{
	const ptl_md_t md = {.start = p->there,
		.length = p->length,
		.threshold = 1,
		.options = PTL_MD_OP_PUT | PTL_MD_TRUNCATE | PTL_MD_EVENT_START_DISABLE,
		.user_ptr = p,
		.eq_handle = p->eq};
	ptl_handle_me_t me = PTL_INVALID_HANDLE;
	works(p, PtlMEMDPost(p->b.ni, p->me, bench_anyone, BENCH_BITS, 0, PTL_UNLINK,
			 PTL_INS_BEFORE, md, PTL_UNLINK, &me, NULL, p->late));
	return me;
}

static inline void take_cci(struct program *p)
{
	cci_event_t *ev;
	while (cci_get_event(p->endpoint, &ev) == CCI_EAGAIN)
		;
	if (ev->type == CCI_EVENT_RECV)
		memcpy(p->there, ev->recv.ptr, ev->recv.len);
	else
		works(p, (int)ev->send.status);
	p->kinds += ev->type;
	works(p, cci_return_event(ev));
}

ROUNDS(run_eqget, ptl_event_t ev; p->fails += PtlEQGet(p->eq, &ev) != PTL_EQ_EMPTY)
ROUNDS(run_eqpoll, ptl_event_t ev; int which;
	p->fails += PtlEQPoll(p->empty, POLLED, 0, &ev, &which) != PTL_EQ_EMPTY)
ROUNDS(run_put, put(p, PTL_NO_ACK_REQ); take(p); take(p))
ROUNDS(run_put_whole,
	works(p, PtlPut(p->md, PTL_NO_ACK_REQ, p->self, PORTAL, 0, BENCH_BITS, 0, 0));
	take(p); take(p))
ROUNDS(run_put_quiet, put(p, PTL_NO_ACK_REQ); take(p))
ROUNDS(run_inject, works(p, PtlXInject(p->b.ni, p->here, p->length, p->self, PORTAL, 0,
				    BENCH_BITS, 0, 0));
	take(p))
ROUNDS(run_put_ack, put(p, PTL_ACK_REQ); take(p); take(p); take(p))
ROUNDS(run_get,
	works(p, PtlGetRegion(p->md, 0, p->length, p->self, PORTAL, 0, BENCH_BITS, 0));
	take(p); take(p))
ROUNDS(run_atomic, operate(p, PTL_INVALID_HANDLE, PTLX_WRITE))
ROUNDS(run_fetch, operate(p, p->md, PTLX_MAX); take(p))
ROUNDS(run_post, works(p, PtlMEUnlink(post(p))))
ROUNDS(run_post_put, (void)post(p); put(p, PTL_NO_ACK_REQ); take(p))
ROUNDS(run_attach, ptl_handle_me_t me; ptl_handle_md_t md;
	works(p, PtlMEAttach(p->b.ni, PORTAL, bench_anyone, BENCH_BITS, 0, PTL_UNLINK,
			 PTL_INS_AFTER, &me));
	works(p, PtlMDAttach(me, p->region, PTL_UNLINK, &md)); works(p, PtlMDUnlink(md)))
ROUNDS(run_bind, ptl_handle_md_t md;
	works(p, PtlMDBind(p->b.ni, p->region, PTL_UNLINK, &md));
	works(p, PtlMDUnlink(md)))
ROUNDS(run_cci_event, cci_event_t *ev;
	p->fails += cci_get_event(p->endpoint, &ev) != CCI_EAGAIN)
ROUNDS(run_cci_send,
	works(p, cci_send(p->connection, p->here, (uint32_t)p->length, NULL, 0));
	take_cci(p); take_cci(p))

/* ---- loops that are timed only, with BATCH objects at a time ---- */

ROUNDS(run_wait_full, take(p))
ROUNDS(run_look, ptl_md_t old; works(p, PtlMDUpdate(p->md, &old, NULL, PTL_EQ_NONE)))
ROUNDS(run_update, works(p, PtlMDUpdate(p->md, NULL, &p->region, p->eq)))

static ptl_handle_me_t attach_both(struct program *p, ptl_match_bits_t bits)
{
	ptl_handle_me_t me;
	works(p, PtlMEAttach(p->b.ni, PORTAL, bench_anyone, bits, 0, PTL_UNLINK,
			 PTL_INS_AFTER, &me));
	works(p, PtlMDAttach(me, p->region, PTL_UNLINK, NULL));
	return me;
}

static void run_attach_all(struct program *p, uint64_t rounds)
{
	for (uint64_t i = 0; i < rounds; i++)
		p->entry[i] = attach_both(p, i);
	while (rounds--)
		works(p, PtlMEUnlink(p->entry[rounds]));
}

static void run_attach_once(struct program *p, uint64_t rounds)
{
	for (uint64_t i = 0; i < rounds; i++)
		works(p, PtlMEMDAttach(p->b.ni, PORTAL, bench_anyone, i, 0, PTL_UNLINK,
				 PTL_INS_AFTER, p->region, PTL_UNLINK, &p->entry[i],
				 NULL));
	while (rounds--)
		works(p, PtlMEUnlink(p->entry[rounds]));
}

/* Attach an entry at the end of the list, and unlink the oldest. */
static void run_posted(struct program *p, uint64_t rounds)
{
	while (rounds--) {
		ptl_handle_me_t *oldest = &p->posted[p->head++ % p->standing.value];
		ptl_handle_me_t me = attach_both(p, p->head);
		works(p, PtlMEUnlink(*oldest));
		*oldest = me;
	}
}

static void run_queues(struct program *p, uint64_t rounds)
{
	for (uint64_t i = 0; i < rounds; i++)
		p->queue[i] = bench_queue(&p->b, 64);
	for (uint64_t i = 0; i < rounds; i++)
		works(p, PtlEQFree(p->queue[i]));
}

static void run_get_full(struct program *p, uint64_t rounds)
{
	ptl_event_t ev;
	for (uint64_t i = 0; i < rounds; i++) {
		works(p, PtlEQGet(p->eq, &ev));
		p->kinds += ev.type;
		if (ev.hdr_data != i)
			bench_wrong(&p->b,
				"event %" PRIu64 " has hdr_data %" PRIu64
				"; expected %" PRIu64 "; events are out of order",
				i, ev.hdr_data, i);
	}
}

/* Put BATCH messages to oneself.  All have arrived when all events are counted. */
static void fill_queue(struct program *p)
{
	ptl_sr_value_t before, now = 0;
	PtlNIStatus(p->b.ni, PTL_SR_RECV_COUNT, &before);
	for (unsigned i = 0; i < BATCH; i++)
		works(p, PtlPut(p->md, PTL_NO_ACK_REQ, p->self, PORTAL, 0, BENCH_BITS, 0,
				 i));
	while (now - before < BATCH) {
		PtlProgress(p->b.ni, 0);
		bench_check(PtlNIStatus(p->b.ni, PTL_SR_RECV_COUNT, &now), "NIStatus");
	}
}

/* ---- rows ---- */

/* The objects that the calls of a row use: none, standing receives, a descriptor with or
 * without an event queue, the latter with a full queue or on PTL_IFACE_SS, or an
 * unreliable or a reliable connection of CCI. */
enum needs { NOTHING, STANDING, QUEUE, QUIET, FULL, QUIET_SS, UU, RO };

static const struct row {
	const char *title; /* its line in the tables of times and of instructions */
	const char *name;  /* if it is counted; or NULL */
	void (*run)(struct program *p, uint64_t rounds);
	enum needs needs;
	uint64_t length; /* length of a message, or 0 */
	unsigned kinds;  /* sum over the events of a round */
} rows[] = {
#define PUT_EVENTS (PTL_EVENT_SEND_END + PTL_EVENT_PUT_END)
#define CCI_EVENTS (CCI_EVENT_SEND + CCI_EVENT_RECV)
	{"MEAttach+MDAttach+MEUnlink", NULL, run_attach_all, NOTHING, 0, 0},
	{"MEMDAttach+MEUnlink", NULL, run_attach_once, NOTHING, 0, 0},
	{"posted stream", NULL, run_posted, STANDING, 0, 0},
	{"MDUpdate, look", NULL, run_look, QUEUE, 0, 0},
	{"MDUpdate, if empty", NULL, run_update, QUEUE, 0, 0},
	{"EQAlloc+EQFree", NULL, run_queues, NOTHING, 0, 0},
	{"EQGet, full", NULL, run_get_full, FULL, 0, PTL_EVENT_PUT_END},
	{"EQWait, full", NULL, run_wait_full, FULL, 0, PTL_EVENT_PUT_END},
	{"PtlEQGet, empty", "eqget", run_eqget, NOTHING, 0, 0},
	{"PtlEQPoll of three empty queues, timeout 0", "eqpoll", run_eqpoll, NOTHING, 0,
		0},
	{"PtlPutRegion 8 B + SEND_END + PUT_END taken", "put8", run_put, QUEUE, 8,
		PUT_EVENTS},
	{"the same, no queue at the source", "put8-quiet", run_put_quiet, QUIET, 8,
		PTL_EVENT_PUT_END},
	{"PtlXInject 8 B + PUT_END taken", "inject8", run_inject, QUIET, 8,
		PTL_EVENT_PUT_END},
	{"PtlPut in its place, both events", "put8-whole", run_put_whole, QUEUE, 8,
		PUT_EVENTS},
	{"64 B, both events", "put64", run_put, QUEUE, 64, PUT_EVENTS},
	{"1 KiB, both events", "put1k", run_put, QUEUE, 1024, PUT_EVENTS},
	{"8 B with ACK, three events", "put8-ack", run_put_ack, QUEUE, 8,
		PUT_EVENTS + PTL_EVENT_ACK},
	{"PtlGetRegion 8 B, two events", "get8", run_get, QUEUE, 8,
		PTL_EVENT_GET_END + PTL_EVENT_REPLY_END},
	{"PtlXAtomic 8 B, plain, two events", "atomic8", run_atomic, QUEUE, 8,
		PUT_EVENTS},
	{"PtlXAtomic 8 B, fetch, three events", "fetch8", run_fetch, QUEUE, 8,
		PTL_EVENT_SEND_END + PTL_EVENT_GETPUT_END + PTL_EVENT_REPLY_END},
	{"PtlMEAttach + PtlMDAttach + PtlMDUnlink", "attach", run_attach, NOTHING, 0, 0},
	{"PtlMEMDPost + PtlMEUnlink", "post", run_post, QUIET_SS, 0, 0},
	{"PTL_IFACE_SS: 8 B, no queue at the source", "put8-ss", run_put_quiet, QUIET_SS,
		8, PTL_EVENT_PUT_END},
	{"PtlMEMDPost and the same", "post-put8", run_post_put, QUIET_SS, 8,
		PTL_EVENT_PUT_END},
	{"PtlMDBind + PtlMDUnlink", "bind", run_bind, NOTHING, 0, 0},
	{"cci_get_event, empty", "cci-event", run_cci_event, UU, 0, 0},
	{"cci_send UU 8 B, SEND and RECV taken and returned", "cci-uu8", run_cci_send, UU,
		8, CCI_EVENTS},
	{"cci_send RO 8 B, SEND and RECV", "cci-ro8", run_cci_send, RO, 8, CCI_EVENTS},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

/* The list's words have commas between them. */
static bool is_listed(const char *list, const char *word)
{
	size_t n = strlen(word);
	for (const char *at = list; (at = strstr(at, word)); at += n)
		if ((at == list || at[-1] == ',') && (!at[n] || at[n] == ','))
			return true;
	return false;
}

static bool is_wanted(const struct program *p, const struct row *row)
{
	if (p->count)
		return row->name && is_listed(p->count, row->name);
	return !p->calls || strstr(row->title, p->calls);
}

/* ---- what a row needs ---- */

static void open_cci(struct program *p, cci_conn_attribute_t attribute)
{
	const struct timeval limit = {.tv_sec = 30};
	uint32_t caps;
	char *uri = NULL;
	works(p, cci_init(CCI_ABI_VERSION, 0, &caps));
	works(p, cci_create_endpoint(NULL, 0, &p->endpoint, NULL));
	works(p, cci_get_opt(p->endpoint, CCI_OPT_ENDPT_URI, &uri));
	works(p, cci_connect(p->endpoint, uri, NULL, 0, attribute, NULL, 0, &limit));
	free(uri);
	p->connection = NULL;
	for (unsigned ends = 0; ends < 2 && !p->fails;) { /* both are here */
		cci_event_t *ev;
		int rc = cci_get_event(p->endpoint, &ev);
		if (rc == CCI_EAGAIN) {
			sched_yield(); /* the NIC's thread may have the event */
			continue;
		}
		if (rc != CCI_SUCCESS)
			break;
		if (ev->type == CCI_EVENT_CONNECT_REQUEST) {
			works(p, cci_accept(ev, NULL));
		} else if (ev->type == CCI_EVENT_ACCEPT) {
			ends++;
			works(p, (int)ev->accept.status);
		} else if (ev->type == CCI_EVENT_CONNECT) {
			ends++;
			works(p, (int)ev->connect.status);
			p->connection = ev->connect.connection;
		}
		(void)cci_return_event(ev);
	}
	if (p->fails || !p->connection)
		bench_die(1, "no connection of CCI to the endpoint itself");
}

static void open_row(struct program *p, const struct row *row)
{
	p->kinds = p->fails = 0;
	p->length = row->length;
	p->region = bench_region(
		&p->b, p->there, p->length, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, p->eq);
	for (unsigned i = 0; i < MOST; i++) {
		p->here[i] = (char)(1 + i % 100);
		p->there[i] = (char)(101 + i % 100);
	}
	if (row->needs >= UU)
		open_cci(p, row->needs == UU ? CCI_CONN_ATTR_UU : CCI_CONN_ATTR_RO);
	if (row->needs == STANDING) {
		p->posted = bench_allocate(p->standing.value * sizeof *p->posted);
		for (p->head = 0; p->head < p->standing.value; p->head++)
			p->posted[p->head] = attach_both(p, p->head);
	}
	if (row->needs < QUEUE || row->needs > QUIET_SS)
		return;
	if (row->needs == QUIET_SS) { /* until close_row */
		p->usual_ni = p->b.ni;
		p->usual_eq = p->eq;
		BENCH_DO(PtlNIInit, PTL_IFACE_SS, PTL_PID_ANY, p->b.desired, NULL,
			&p->b.ni);
		BENCH_DO(PtlGetId, p->b.ni, &p->self);
		p->eq = bench_queue(&p->b, SLOTS);
		p->late = bench_queue(&p->b, SLOTS);
	}
	p->md = bench_bind(
		&p->b, p->here, row->length, row->needs == QUEUE ? p->eq : PTL_EQ_NONE);
	p->me = bench_post(
		&p->b, PORTAL, PTL_MD_OP_PUT | PTL_MD_OP_GET, p->there, MOST, p->eq);
}

/* Check the events and the bytes of all rounds. */
static void check_row(struct program *p, const struct row *row, uint64_t rounds)
{
	ptl_event_t ev;
	if (p->fails || p->kinds != row->kinds * rounds)
		bench_die(1,
			"%s: %" PRIu64 " calls or events failed, and the kinds of the "
			"events add up to %" PRIu64 "; expected none, and %" PRIu64,
			row->title, p->fails, p->kinds, row->kinds * rounds);
	if (PtlEQGet(p->eq, &ev) != PTL_EQ_EMPTY)
		bench_die(1, "%s: an event is left; expected an empty queue", row->title);
	if (memcmp(p->here, p->there, row->length) ||
		p->here[row->length] == p->there[row->length])
		bench_die(1,
			"%s: wrong bytes; expected %" PRIu64 " that are equal, and no "
			"more",
			row->title, row->length);
}

static void close_row(struct program *p, const struct row *row)
{
	if (row->needs >= UU && cci_finalize() != CCI_SUCCESS)
		bench_die(1, "%s: cci_finalize failed", row->title);
	if (row->needs == STANDING) {
		for (uint64_t i = 0; i < p->standing.value; i++)
			BENCH_DO(PtlMEUnlink, p->posted[i]);
		free(p->posted);
	}
	if (row->needs < QUEUE || row->needs > QUIET_SS)
		return;
	BENCH_DO(PtlMDUnlink, p->md);
	BENCH_DO(PtlMEUnlink, p->me);
	if (row->needs == QUIET_SS) {
		BENCH_DO(PtlNIFini, p->b.ni);
		p->b.ni = p->usual_ni;
		p->eq = p->usual_eq;
		p->self = bench_id(&p->b, p->b.rank);
	}
}

/* ---- times ---- */

static double time_batch(struct program *p, const struct row *row)
{
	if (row->needs == FULL)
		fill_queue(p);
	double begin = bench_now_ns();
	row->run(p, BATCH);
	return (bench_now_ns() - begin) / BATCH;
}

static void time_row(struct program *p, const struct row *row)
{
	static double sample[BATCHES];
	char what[64];
	uint64_t batches = p->b.quick ? 20 : BATCHES, warm = batches / 10 + 1;
	open_row(p, row);
	bench_barrier();
	for (uint64_t i = 0; i < warm; i++)
		time_batch(p, row);
	for (uint64_t i = 0; i < batches; i++)
		sample[i] = time_batch(p, row);
	check_row(p, row, (warm + batches) * BATCH);
	close_row(p, row);
	struct bench_stat s = bench_stat_of(sample, batches);
	snprintf(what, sizeof what, "%-50s", row->title);
	if (p->b.rank == 0)
		BENCH_ROW(&p->b,
			BENCH_TEXT("calls                                             ",
				what),
			BENCH_COUNT("samples", s.n), BENCH_PERCENTILES(s, "ns", 1, 1),
			BENCH_REAL("max_ns", s.max, 1), BENCH_REAL("min_ns", s.min, 1),
			BENCH_REAL("M_per_s", 1e3 / s.p50, 3));
	bench_barrier();
}

/*
 * ---- the library's threads are held while the main thread is counted ----
 *
 * A NIC thread that sleeps between two ticks would wake by the clock, take the lease, and
 * do work that the main thread then does not do.  The library sleeps with this program's
 * syscall(): a thread that wakes while the program is still goes to sleep again at once,
 * until still_end().
 */

static _Atomic uint32_t is_still, nheld;
static uint64_t syscalls;       /* of the main thread */
static _Thread_local int known; /* 0: unknown, 1: the main thread, 2: another one */

static long (*libc_syscall)(long number, ...);

static void wait_while(_Atomic uint32_t *word, uint32_t value)
{
	while (atomic_load(word) == value)
		(void)libc_syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL);
}

static void wake(_Atomic uint32_t *word)
{
	(void)libc_syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX);
}

/* Replace libc's function for this program and the libraries that it has loaded.  As that
 * one does, it takes six arguments, also where its caller has passed fewer. */
__attribute__((no_sanitize("address"))) long syscall(long number, ...)
{
	long a[6];
	va_list args;
	va_start(args, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (!libc_syscall)
		libc_syscall = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	long rc = libc_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	int why = errno;
	if (!known)
		known = getpid() == gettid() ? 1 : 2;
	if (known == 1)
		syscalls++;
	else if (number == SYS_futex && atomic_load(&is_still)) {
		atomic_fetch_add(&nheld, 1);
		wake(&nheld);
		wait_while(&is_still, 1);
		atomic_fetch_sub(&nheld, 1);
	}
	errno = why;
	return rc;
}

/* Return when a thread of the library is held.  There must be one. */
static void still_begin(void)
{
	atomic_store(&is_still, 1);
	wait_while(&nheld, 0);
}

static void still_end(void)
{
	atomic_store(&is_still, 0);
	wake(&is_still);
}

/* ---- instructions ---- */

/*
 * Run rounds that are not counted, until the node is in the state of a busy one: no call
 * wakes the NIC thread, which is held between two ticks.  Return the number of rounds.
 */
static uint64_t warm(struct program *p, const struct row *row)
{
	uint64_t rounds = 0;
	for (unsigned i = 0; i < TRIES; i++) {
		row->run(p, WARM);
		still_begin();
		uint64_t before = syscalls;
		row->run(p, PROBE);
		rounds += WARM + PROBE;
		if (before == syscalls)
			return rounds;
		still_end();
	}
	bench_die(1, "%s: each round makes system calls; expected none", row->name);
}

/* Run rounds.  callgrind counts from this function's first instruction to its return. */
__attribute__((noinline)) static void count_calls(
	struct program *p, const struct row *row, uint64_t rounds)
{
	row->run(p, rounds);
	__asm__ volatile("" ::: "memory"); /* no tail call, so that the return is here */
}

static void count_row(struct program *p, const struct row *row)
{
	bench_want_ranks(&p->b, 1, 1);
	open_row(p, row);
	uint64_t before = warm(p, row);
	count_calls(p, row, p->rounds.value);
	still_end();
	check_row(p, row, before + p->rounds.value);
	close_row(p, row);
}

static const char about[] =
	"usage: yod -sz 1 cmdperf [options]\n"
	"Cost of the calls that post, unlink, update and read, and of messages to "
	"oneself.\n";

static const char legend[] =
	"Time of one line's calls, by batches of 64.  Posted stream: attach an entry and "
	"its descriptor\n"
	"at the end of a list of --standing receives, unlink the oldest.\n";

/* Counts are those of a node with the usual limits. */
static bool set_count(void *to, const char *value)
{
	struct program *p = to;
	p->b.desired = NULL;
	return bench_set_text(&p->count, value);
}

static void parse(struct program *p, int argc, char **argv)
{
	static ptl_ni_limits_t much = {.max_mes = 1 << 17,
		.max_mds = 1 << 17,
		.max_me_list = 1 << 17,
		.max_eqs = 256};
	const struct bench_option options[] = {
		{"standing", "N", "receives on the list of the posted stream; default 64",
			bench_set_number, &p->standing},
		{"calls", "TEXT", "only the lines that contain it; default all",
			bench_set_text, &p->calls},
		{"count", "ROWS",
			"make their calls under callgrind, which counts count_calls; see "
			"bench/instructions",
			set_count, p},
		{"rounds", "N", "of --count; default 10000", bench_set_number,
			&p->rounds},
		{"names", NULL,
			"print compiler and C library, then names and titles of the rows "
			"of --count",
			bench_set_flag, &p->names},
		{0}};
	p->b.desired = &much;
	bench_options(&p->b, options, argc, argv);
	unsigned wanted = 0;
	for (unsigned i = 0; i < ROWS; i++)
		wanted += is_wanted(p, &rows[i]);
	if (!wanted && p->count)
		bench_refuse(&p->b, "--count: '%s'; expected rows of --names", p->count);
	if (!wanted)
		bench_refuse(&p->b, "--calls: '%s'; expected text of a line, as in EQGet",
			p->calls);
}

int main(int argc, char **argv)
{
	struct program *p = &program;
	p->b = (struct bench){.program = "cmdperf", .about = about, .legend = legend};
	parse(p, argc, argv);
	if (p->names) {
		printf("gcc %d.%d.%d, glibc %s\n", __GNUC__, __GNUC_MINOR__,
			__GNUC_PATCHLEVEL__, gnu_get_libc_version());
		for (unsigned i = 0; i < ROWS; i++)
			if (rows[i].name)
				printf("%s\t%s\n", rows[i].name, rows[i].title);
		bench_leave(0);
	}
	p->self = bench_id(&p->b, p->b.rank);
	p->eq = bench_queue(&p->b, SLOTS);
	for (unsigned i = 0; i < POLLED; i++)
		p->empty[i] = bench_queue(&p->b, SLOTS);
	for (unsigned i = 0; p->count && i < ROWS; i++)
		if (is_wanted(p, &rows[i]))
			count_row(p, &rows[i]);
	if (p->count)
		bench_leave(0);
	bench_begin(&p->b);
	for (unsigned i = 0; i < ROWS; i++)
		if (is_wanted(p, &rows[i]))
			time_row(p, &rows[i]);
	bench_finish(&p->b);
}
