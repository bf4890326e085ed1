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
#include "still.h"

#include <cci.h>
#include <gnu/libc-version.h>
#include <portals3x.h>
#include <stdlib.h>
#include <string.h>

enum { PORTAL = 4, BATCH = 64, POLLED = 3, SLOTS = 256, MOST = 4096 };
enum { WARM = 1000, PROBE = 16, TRIES = 1000 };

static struct program {
	struct bench b;
	struct bench_number batches, standing, rounds;
	const char *calls, *count; /* text of the lines to run; rows to count; or NULL */
	bool names, builder;
	ptl_process_id_t self;
	ptl_handle_eq_t eq, empty[POLLED];
	ptl_handle_md_t md;       /* the source of puts, the landing place of gets */
	ptl_handle_me_t me;       /* match entry of the target */
	ptl_handle_ni_t usual_ni; /* while a row uses PTL_IFACE_SS */
	ptl_handle_eq_t usual_eq, late; /* late: the test queue of PtlMEMDPost */
	uint64_t length;
	uint64_t kinds, fails; /* sums over the events */
	cci_endpoint_t *endpoint;
	cci_connection_t *connection; /* to the endpoint itself */
	ptl_handle_me_t entry[BATCH];
	ptl_handle_eq_t queue[BATCH];
	ptl_handle_me_t *posted; /* ring of receives, the oldest at head */
	uint64_t head;
	_Alignas(64) char here[MOST];
	_Alignas(64) char there[MOST];
} program = {.batches = {2000, 1, 1 << 16},
	.standing = {64, 1, 100000},
	.rounds = {10000, 1, 1000000000}};

/* ---- loops that are timed or counted ---- */

static inline void take(struct program *p)
{
	ptl_event_t ev;
	p->fails += PtlEQWait(p->eq, &ev) != PTL_OK;
	p->fails += ev.ni_fail_type;
	p->kinds += ev.type;
}

static inline void put(struct program *p, ptl_ack_req_t ack)
{
	p->fails += PtlPutRegion(p->md, 0, p->length, ack, p->self, PORTAL, 0, BENCH_BITS,
			    0, 0) != PTL_OK;
}

static void run_eqget(struct program *p, uint64_t rounds)
{
	ptl_event_t ev;
	while (rounds--)
		p->fails += PtlEQGet(p->eq, &ev) != PTL_EQ_EMPTY;
}

static void run_eqpoll(struct program *p, uint64_t rounds)
{
	ptl_event_t ev;
	int which;
	while (rounds--)
		p->fails += PtlEQPoll(p->empty, POLLED, 0, &ev, &which) != PTL_EQ_EMPTY;
}

static void run_put(struct program *p, uint64_t rounds)
{
	while (rounds--) {
		put(p, PTL_NO_ACK_REQ);
		take(p);
		take(p);
	}
}

static void run_put_whole(struct program *p, uint64_t rounds)
{
	while (rounds--) {
		p->fails += PtlPut(p->md, PTL_NO_ACK_REQ, p->self, PORTAL, 0, BENCH_BITS,
				    0, 0) != PTL_OK;
		take(p);
		take(p);
	}
}

static void run_put_quiet(struct program *p, uint64_t rounds)
{
	while (rounds--) {
		put(p, PTL_NO_ACK_REQ);
		take(p);
	}
}

static void run_inject(struct program *p, uint64_t rounds)
{
	while (rounds--) {
		p->fails += PtlXInject(p->b.ni, p->here, p->length, p->self, PORTAL, 0,
				    BENCH_BITS, 0, 0) != PTL_OK;
		take(p);
	}
}

static void run_put_ack(struct program *p, uint64_t rounds)
{
	while (rounds--) {
		put(p, PTL_ACK_REQ);
		take(p);
		take(p);
		take(p);
	}
}

static void run_get(struct program *p, uint64_t rounds)
{
	while (rounds--) {
		p->fails += PtlGetRegion(p->md, 0, p->length, p->self, PORTAL, 0,
				    BENCH_BITS, 0) != PTL_OK;
		take(p);
		take(p);
	}
}

static inline void operate(struct program *p, ptl_handle_md_t get, ptlx_op_t op)
{
	p->fails +=
		PtlXAtomic(get, 0, p->md, 0, p->length, op, PTLX_UINT64, PTL_NO_ACK_REQ,
			p->self, PORTAL, 0, BENCH_BITS, 0, 0) != PTL_OK;
	take(p);
	take(p);
}

static void run_atomic(struct program *p, uint64_t rounds)
{
	while (rounds--)
		operate(p, PTL_INVALID_HANDLE, PTLX_WRITE);
}

static void run_fetch(struct program *p, uint64_t rounds)
{
	while (rounds--) {
		operate(p, p->md, PTLX_MAX);
		take(p);
	}
}

static ptl_md_t md_of(struct program *p)
{
	return (ptl_md_t){.start = p->there,
		.length = p->length,
		.threshold = PTL_MD_THRESH_INF,
		.options =
			PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE,
		.eq_handle = p->eq};
}

/* Post a receive for one message before the last entry. */
static inline ptl_handle_me_t post(struct program *p)
{
	ptl_process_id_t anyone = {PTL_NID_ANY, PTL_PID_ANY};
	const ptl_md_t md = {.start = p->there,
		.length = p->length,
		.threshold = 1,
		.options = PTL_MD_OP_PUT | PTL_MD_TRUNCATE | PTL_MD_EVENT_START_DISABLE,
		.user_ptr = p,
		.eq_handle = p->eq};
	ptl_handle_me_t me = PTL_INVALID_HANDLE;
	p->fails += PtlMEMDPost(p->b.ni, p->me, anyone, BENCH_BITS, 0, PTL_UNLINK,
			    PTL_INS_BEFORE, md, PTL_UNLINK, &me, NULL, p->late) != PTL_OK;
	return me;
}

static void run_post(struct program *p, uint64_t rounds)
{
	while (rounds--)
		p->fails += PtlMEUnlink(post(p)) != PTL_OK;
}

static void run_post_put(struct program *p, uint64_t rounds)
{
	while (rounds--) {
		(void)post(p);
		put(p, PTL_NO_ACK_REQ);
		take(p);
	}
}

static void run_attach(struct program *p, uint64_t rounds)
{
	ptl_process_id_t anyone = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_md_t md = md_of(p);
	ptl_handle_me_t me;
	ptl_handle_md_t handle;
	while (rounds--) {
		p->fails += PtlMEAttach(p->b.ni, PORTAL, anyone, BENCH_BITS, 0,
				    PTL_UNLINK, PTL_INS_AFTER, &me) != PTL_OK;
		p->fails += PtlMDAttach(me, md, PTL_UNLINK, &handle) != PTL_OK;
		p->fails += PtlMDUnlink(handle) != PTL_OK;
	}
}

static void run_bind(struct program *p, uint64_t rounds)
{
	ptl_md_t md = md_of(p);
	ptl_handle_md_t handle;
	while (rounds--) {
		p->fails += PtlMDBind(p->b.ni, md, PTL_UNLINK, &handle) != PTL_OK;
		p->fails += PtlMDUnlink(handle) != PTL_OK;
	}
}

static void run_cci_event(struct program *p, uint64_t rounds)
{
	cci_event_t *ev;
	while (rounds--)
		p->fails += cci_get_event(p->endpoint, &ev) != CCI_EAGAIN;
}

static inline void take_cci(struct program *p)
{
	cci_event_t *ev;
	while (cci_get_event(p->endpoint, &ev) == CCI_EAGAIN)
		;
	if (ev->type == CCI_EVENT_RECV)
		memcpy(p->there, ev->recv.ptr, ev->recv.len);
	else
		p->fails += ev->send.status != CCI_SUCCESS;
	p->kinds += ev->type;
	p->fails += cci_return_event(ev) != CCI_SUCCESS;
}

static void run_cci_send(struct program *p, uint64_t rounds)
{
	while (rounds--) {
		p->fails += cci_send(p->connection, p->here, (uint32_t)p->length, NULL,
				    0) != CCI_SUCCESS;
		take_cci(p);
		take_cci(p);
	}
}

/* ---- loops that are timed only, with BATCH objects at a time ---- */

static ptl_handle_me_t attach_both(struct program *p, ptl_match_bits_t bits)
{
	ptl_handle_me_t me;
	ptl_process_id_t anyone = {PTL_NID_ANY, PTL_PID_ANY};
	bench_check(PtlMEAttach(p->b.ni, PORTAL, anyone, bits, 0, PTL_UNLINK,
			    PTL_INS_AFTER, &me),
		"PtlMEAttach");
	bench_check(PtlMDAttach(me, md_of(p), PTL_UNLINK, NULL), "PtlMDAttach");
	return me;
}

static void unlink_all(struct program *p, uint64_t rounds)
{
	for (uint64_t i = 0; i < rounds; i++)
		bench_check(PtlMEUnlink(p->entry[i]), "PtlMEUnlink");
}

static void run_attach_all(struct program *p, uint64_t rounds)
{
	for (uint64_t i = 0; i < rounds; i++)
		p->entry[i] = attach_both(p, i);
	unlink_all(p, rounds);
}

static void run_attach_once(struct program *p, uint64_t rounds)
{
	ptl_process_id_t anyone = {PTL_NID_ANY, PTL_PID_ANY};
	for (uint64_t i = 0; i < rounds; i++)
		bench_check(
			PtlMEMDAttach(p->b.ni, PORTAL, anyone, i, 0, PTL_UNLINK,
				PTL_INS_AFTER, md_of(p), PTL_UNLINK, &p->entry[i], NULL),
			"PtlMEMDAttach");
	unlink_all(p, rounds);
}

/* Attach an entry at the end of the list, and unlink the oldest. */
static void run_posted(struct program *p, uint64_t rounds)
{
	while (rounds--) {
		ptl_handle_me_t *oldest = &p->posted[p->head++ % p->standing.value];
		ptl_handle_me_t me = attach_both(p, p->head);
		bench_check(PtlMEUnlink(*oldest), "PtlMEUnlink");
		*oldest = me;
	}
}

static void run_queues(struct program *p, uint64_t rounds)
{
	for (uint64_t i = 0; i < rounds; i++)
		p->queue[i] = bench_queue(&p->b, 64);
	for (uint64_t i = 0; i < rounds; i++)
		bench_check(PtlEQFree(p->queue[i]), "PtlEQFree");
}

static void run_get_full(struct program *p, uint64_t rounds)
{
	ptl_event_t ev;
	for (uint64_t i = 0; i < rounds; i++) {
		bench_check(PtlEQGet(p->eq, &ev), "PtlEQGet");
		p->kinds += ev.type;
		if (ev.hdr_data != i)
			bench_wrong(&p->b,
				"event %llu has hdr_data %llu; expected %llu; events are "
				"out of order",
				(unsigned long long)i, (unsigned long long)ev.hdr_data,
				(unsigned long long)i);
	}
}

static void run_wait_full(struct program *p, uint64_t rounds)
{
	while (rounds--)
		take(p);
}

static void run_look(struct program *p, uint64_t rounds)
{
	ptl_md_t old;
	while (rounds--)
		bench_check(PtlMDUpdate(p->md, &old, NULL, PTL_EQ_NONE), "PtlMDUpdate");
}

static void run_update(struct program *p, uint64_t rounds)
{
	ptl_md_t new = md_of(p);
	while (rounds--)
		bench_check(PtlMDUpdate(p->md, NULL, &new, p->eq), "PtlMDUpdate");
}

/* Put BATCH messages to oneself.  All have arrived when all events are counted. */
static void fill_queue(struct program *p)
{
	ptl_sr_value_t before, now = 0;
	PtlNIStatus(p->b.ni, PTL_SR_RECV_COUNT, &before);
	for (unsigned i = 0; i < BATCH; i++)
		bench_check(PtlPut(p->md, PTL_NO_ACK_REQ, p->self, PORTAL, 0, BENCH_BITS,
				    0, i),
			"PtlPut");
	while (now - before < BATCH) {
		PtlProgress(p->b.ni, 0);
		bench_check(PtlNIStatus(p->b.ni, PTL_SR_RECV_COUNT, &now), "NIStatus");
	}
}

/* ---- rows ---- */

/* The objects that the calls of a row use: none, standing receives, a descriptor with or
 * without an event queue, the latter on PTL_IFACE_SS, or an unreliable or a reliable
 * connection of CCI. */
enum needs { NOTHING, STANDING, QUEUE, QUIET, QUIET_SS, UU, RO };

static const struct row {
	const char *call;         /* its line in the table of times */
	const char *name, *title; /* if it is counted; or NULL */
	void (*run)(struct program *p, uint64_t rounds);
	uint64_t length; /* length of a message, or 0 */
	unsigned kinds;  /* sum over the events of a round */
	enum needs needs;
	void (*before_batch)(struct program *p); /* not timed */
} rows[] = {
#define PUT_EVENTS (PTL_EVENT_SEND_END + PTL_EVENT_PUT_END)
#define CCI_EVENTS (CCI_EVENT_SEND + CCI_EVENT_RECV)
	{"MEAttach+MDAttach+MEUnlink", NULL, NULL, run_attach_all, 0, 0, NOTHING, NULL},
	{"MEMDAttach+MEUnlink", NULL, NULL, run_attach_once, 0, 0, NOTHING, NULL},
	{"posted stream", NULL, NULL, run_posted, 0, 0, STANDING, NULL},
	{"MDUpdate, look", NULL, NULL, run_look, 0, 0, QUEUE, NULL},
	{"MDUpdate, if empty", NULL, NULL, run_update, 0, 0, QUEUE, NULL},
	{"EQAlloc+EQFree", NULL, NULL, run_queues, 0, 0, NOTHING, NULL},
	{"EQGet, full", NULL, NULL, run_get_full, 0, PTL_EVENT_PUT_END, QUIET,
		fill_queue},
	{"EQWait, full", NULL, NULL, run_wait_full, 0, PTL_EVENT_PUT_END, QUIET,
		fill_queue},
	{"EQGet, empty", "eqget", "PtlEQGet, empty", run_eqget, 0, 0, NOTHING, NULL},
	{"EQPoll of 3, empty", "eqpoll", "PtlEQPoll of three empty queues, timeout 0",
		run_eqpoll, 0, 0, NOTHING, NULL},
	{"put 8 B, 2 events", "put8", "PtlPutRegion 8 B + SEND_END + PUT_END taken",
		run_put, 8, PUT_EVENTS, QUEUE, NULL},
	{"put 8 B, 1 event", "put8-quiet", "the same, no queue at the source",
		run_put_quiet, 8, PTL_EVENT_PUT_END, QUIET, NULL},
	{"PtlXInject 8 B, 1 event", "inject8", "PtlXInject 8 B + PUT_END taken",
		run_inject, 8, PTL_EVENT_PUT_END, QUIET, NULL},
	{"PtlPut 8 B, 2 events", "put8-whole", "PtlPut in its place, both events",
		run_put_whole, 8, PUT_EVENTS, QUEUE, NULL},
	{"put 64 B, 2 events", "put64", "64 B, both events", run_put, 64, PUT_EVENTS,
		QUEUE, NULL},
	{"put 1 KiB, 2 events", "put1k", "1 KiB, both events", run_put, 1024, PUT_EVENTS,
		QUEUE, NULL},
	{"put 8 B, ACK, 3 events", "put8-ack", "8 B with ACK, three events", run_put_ack,
		8, PUT_EVENTS + PTL_EVENT_ACK, QUEUE, NULL},
	{"get 8 B, 2 events", "get8", "PtlGetRegion 8 B, two events", run_get, 8,
		PTL_EVENT_GET_END + PTL_EVENT_REPLY_END, QUEUE, NULL},
	{"PtlXAtomic 8 B, 2 events", "atomic8", "PtlXAtomic 8 B, plain, two events",
		run_atomic, 8, PUT_EVENTS, QUEUE, NULL},
	{"PtlXAtomic 8 B, 3 events", "fetch8", "PtlXAtomic 8 B, fetch, three events",
		run_fetch, 8,
		PTL_EVENT_SEND_END + PTL_EVENT_GETPUT_END + PTL_EVENT_REPLY_END, QUEUE,
		NULL},
	{"MEAttach+MDAttach+MDUnlink", "attach",
		"PtlMEAttach + PtlMDAttach + PtlMDUnlink", run_attach, 0, 0, NOTHING,
		NULL},
	{"MEMDPost+MEUnlink", "post", "PtlMEMDPost + PtlMEUnlink", run_post, 0, 0,
		QUIET_SS, NULL},
	{"put 8 B, PTL_IFACE_SS", "put8-ss", "PTL_IFACE_SS: 8 B, no queue at the source",
		run_put_quiet, 8, PTL_EVENT_PUT_END, QUIET_SS, NULL},
	{"MEMDPost, put 8 B", "post-put8", "PtlMEMDPost and the same", run_post_put, 8,
		PTL_EVENT_PUT_END, QUIET_SS, NULL},
	{"MDBind+MDUnlink", "bind", "PtlMDBind + PtlMDUnlink", run_bind, 0, 0, NOTHING,
		NULL},
	{"cci_get_event, empty", "cci-event", "cci_get_event, empty", run_cci_event, 0, 0,
		UU, NULL},
	{"cci_send UU 8 B, 2 events", "cci-uu8",
		"cci_send UU 8 B, SEND and RECV taken and returned", run_cci_send, 8,
		CCI_EVENTS, UU, NULL},
	{"cci_send RO 8 B, 2 events", "cci-ro8", "cci_send RO 8 B, SEND and RECV",
		run_cci_send, 8, CCI_EVENTS, RO, NULL},
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
	return !p->calls || strstr(row->call, p->calls);
}

/* ---- what a row needs ---- */

static void open_cci(struct program *p, cci_conn_attribute_t attribute)
{
	uint32_t caps;
	char *uri = NULL;
	if (cci_init(CCI_ABI_VERSION, 0, &caps) != CCI_SUCCESS ||
		cci_create_endpoint(NULL, 0, &p->endpoint, NULL) != CCI_SUCCESS ||
		cci_get_opt(p->endpoint, CCI_OPT_ENDPT_URI, &uri) != CCI_SUCCESS ||
		cci_connect(p->endpoint, uri, NULL, 0, attribute, NULL, 0, NULL) !=
			CCI_SUCCESS)
		bench_die(1, "CCI did not start");
	free(uri);
	p->connection = NULL;
	for (unsigned i = 0; i < TRIES; i++) {
		cci_event_t *ev;
		if (cci_get_event(p->endpoint, &ev) != CCI_SUCCESS)
			continue;
		if (ev->type == CCI_EVENT_CONNECT_REQUEST)
			(void)cci_accept(ev, NULL);
		else if (ev->type == CCI_EVENT_CONNECT)
			p->connection = ev->connect.connection;
		(void)cci_return_event(ev);
	}
	if (!p->connection)
		bench_die(1, "no connection to the endpoint itself");
}

/* Use PTL_IFACE_SS until close_ss(). */
static void open_ss(struct program *p)
{
	p->usual_ni = p->b.ni;
	p->usual_eq = p->eq;
	bench_check(PtlNIInit(PTL_IFACE_SS, PTL_PID_ANY, p->b.desired, NULL, &p->b.ni),
		"PtlNIInit");
	bench_check(PtlGetId(p->b.ni, &p->self), "PtlGetId");
	p->eq = bench_queue(&p->b, SLOTS);
	p->late = bench_queue(&p->b, SLOTS);
}

static void close_ss(struct program *p)
{
	bench_check(PtlNIFini(p->b.ni), "PtlNIFini");
	p->b.ni = p->usual_ni;
	p->eq = p->usual_eq;
	p->self = bench_id(&p->b, p->b.rank);
}

static void open_row(struct program *p, const struct row *row)
{
	p->kinds = p->fails = 0;
	p->length = row->length;
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
	if (row->needs == QUIET_SS)
		open_ss(p);
	p->md = bench_bind(
		&p->b, p->here, row->length, row->needs == QUEUE ? p->eq : PTL_EQ_NONE);
	p->me = bench_post(&p->b, PORTAL, BENCH_BITS, PTL_MD_OP_PUT | PTL_MD_OP_GET,
		p->there, MOST, p->eq);
}

/* Check the events and the bytes of all rounds. */
static void check_row(struct program *p, const struct row *row, uint64_t rounds)
{
	ptl_event_t ev;
	if (p->fails || p->kinds != row->kinds * rounds)
		bench_die(1,
			"%s: %llu calls or events failed, and the kinds of the events "
			"add up to %llu; expected none, and %llu",
			row->call, (unsigned long long)p->fails,
			(unsigned long long)p->kinds,
			(unsigned long long)(row->kinds * rounds));
	if (PtlEQGet(p->eq, &ev) != PTL_EQ_EMPTY)
		bench_die(1, "%s: an event is left; expected an empty queue", row->call);
	if (memcmp(p->here, p->there, row->length) ||
		p->here[row->length] == p->there[row->length])
		bench_die(1, "%s: wrong bytes; expected %llu that are equal, and no more",
			row->call, (unsigned long long)row->length);
}

static void close_row(struct program *p, const struct row *row)
{
	if (row->needs >= UU && cci_finalize() != CCI_SUCCESS)
		bench_die(1, "%s: cci_finalize failed", row->call);
	if (row->needs == STANDING) {
		for (uint64_t i = 0; i < p->standing.value; i++)
			bench_check(PtlMEUnlink(p->posted[i]), "PtlMEUnlink");
		free(p->posted);
	}
	if (row->needs < QUEUE || row->needs > QUIET_SS)
		return;
	bench_check(PtlMDUnlink(p->md), "PtlMDUnlink");
	bench_check(PtlMEUnlink(p->me), "PtlMEUnlink");
	if (row->needs == QUIET_SS)
		close_ss(p);
}

/* ---- times ---- */

static double time_batch(struct program *p, const struct row *row)
{
	if (row->before_batch)
		row->before_batch(p);
	double begin = bench_now_ns();
	row->run(p, BATCH);
	return (bench_now_ns() - begin) / BATCH;
}

static void time_row(struct program *p, const struct row *row, double *sample)
{
	char what[32];
	uint64_t batches = p->batches.value, warm = batches / 10 + 1;
	open_row(p, row);
	bench_barrier();
	for (uint64_t i = 0; i < warm; i++)
		time_batch(p, row);
	for (uint64_t i = 0; i < batches; i++)
		sample[i] = time_batch(p, row);
	check_row(p, row, (warm + batches) * BATCH);
	close_row(p, row);
	struct bench_stat s = bench_stat_of(sample, batches);
	snprintf(what, sizeof what, "%-26s", row->call);
	if (p->b.rank == 0)
		BENCH_ROW(&p->b, BENCH_TEXT("calls                     ", what),
			BENCH_COUNT("samples", s.n), BENCH_REAL("p50_ns", s.p50, 1),
			BENCH_REAL("p90_ns", s.p90, 1), BENCH_REAL("p99_ns", s.p99, 1),
			BENCH_REAL("max_ns", s.max, 1), BENCH_REAL("min_ns", s.min, 1),
			BENCH_REAL("M_per_s", 1e3 / s.p50, 3));
	bench_barrier();
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
		uint64_t calls = still_syscalls();
		row->run(p, PROBE);
		rounds += WARM + PROBE;
		if (calls == still_syscalls())
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
	if (p->b.size != 1)
		bench_die(2, "%u nodes; expected a node alone", p->b.size);
	open_row(p, row);
	uint64_t before = warm(p, row);
	count_calls(p, row, p->rounds.value);
	still_end();
	check_row(p, row, before + p->rounds.value);
	close_row(p, row);
}

/* ---- */

static const char about[] =
	"usage: yod -sz 1 cmdperf [options]\n"
	"Cost of the calls that post, unlink, update and read, and of messages to "
	"oneself.\n";

static const char legend[] =
	"Time of one line's calls, by batches of 64.  Posted stream: attach an entry and "
	"its descriptor\n"
	"at the end of a list of --standing receives, unlink the oldest.\n";

static void want_lines(const struct program *p)
{
	for (unsigned i = 0; i < ROWS; i++)
		if (is_wanted(p, &rows[i]))
			return;
	if (p->b.rank == 0 && p->count)
		fprintf(stderr, "cmdperf: --count: '%s'; expected rows of --names\n",
			p->count);
	else if (p->b.rank == 0)
		fprintf(stderr,
			"cmdperf: --calls: '%s'; expected text of a line, as in "
			"EQGet\n",
			p->calls);
	bench_leave(2);
}

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
		{"batches", "N", "of 64, for each line; default 2000",
			"batches, 1 to 65536", bench_set_number, &p->batches},
		{"standing", "N", "receives on the list of the posted stream; default 64",
			"entries, 1 to 100000", bench_set_number, &p->standing},
		{"calls", "TEXT", "only the lines that contain it; default all",
			"text of a line", bench_set_text, &p->calls},
		{"count", "ROWS",
			"make their calls under callgrind, which counts count_calls; see "
			"bench/instructions",
			"rows of --names, with commas between", set_count, p},
		{"rounds", "N", "of --count; default 10000", "rounds, 1 to 1000000000",
			bench_set_number, &p->rounds},
		{"names", NULL, "print names and titles of the rows of --count", NULL,
			bench_set_flag, &p->names},
		{"builder", NULL, "print compiler and C library", NULL, bench_set_flag,
			&p->builder},
		{NULL, NULL, NULL, NULL, NULL, NULL}};
	p->b.desired = &much;
	bench_options(&p->b, options, argc, argv);
	want_lines(p);
	if (p->b.quick && p->batches.value > 20)
		p->batches.value = 20;
}

static void print_facts(const struct program *p)
{
	for (unsigned i = 0; p->names && i < ROWS; i++)
		if (rows[i].name)
			printf("%s\t%s\n", rows[i].name, rows[i].title);
	if (p->builder)
		printf("gcc %d.%d.%d, glibc %s\n", __GNUC__, __GNUC_MINOR__,
			__GNUC_PATCHLEVEL__, gnu_get_libc_version());
	if (p->names || p->builder)
		bench_leave(0);
}

int main(int argc, char **argv)
{
	struct program *p = &program;
	p->b = (struct bench){.program = "cmdperf", .about = about, .legend = legend};
	parse(p, argc, argv);
	print_facts(p);
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
	double *sample = bench_allocate(p->batches.value * sizeof *sample);
	for (unsigned i = 0; i < ROWS; i++)
		if (is_wanted(p, &rows[i]))
			time_row(p, &rows[i], sample);
	free(sample);
	bench_finish(&p->b);
}
