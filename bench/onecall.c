/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * onecall - the same calls, again and again, of a node to itself
 *
 *	onecall ROW ROUNDS
 *	onecall --names		names and titles of the rows, a line each
 *	onecall --builder	compiler and C library
 *
 * bench/instructions runs it under callgrind, which counts inside of count_calls only:
 * the calls of the row, and the row's own loop.  Before, warm() has filled tables and
 * rings.  The kinds of the events are added up in the loop, and checked
 * behind it.
 */
#include "bench.h"
#include "still.h"

#include <cci.h>
#include <gnu/libc-version.h>
#include <stdlib.h>
#include <string.h>

enum { PORTAL = 4, WARM = 1000, PROBE = 16, TRIES = 1000, SLOTS = 256, MOST = 4096 };
enum { MOST_ROUNDS = 1000000000 };

struct node {
	struct bench b;
	ptl_process_id_t self;
	ptl_handle_eq_t eq, empty[3];
	ptl_handle_md_t md; /* the source of puts, the landing place of gets */
	ptl_handle_me_t me; /* match entry of the target */
	uint64_t length;
	uint64_t kinds, fails; /* sums over the events */
	cci_endpoint_t *endpoint;
	cci_connection_t *connection; /* to the endpoint itself */
	_Alignas(64) char here[MOST];
	_Alignas(64) char there[MOST];
};

/* ---- the counted loops ---- */

static inline void take(struct node *n)
{
	ptl_event_t ev;
	n->fails += PtlEQWait(n->eq, &ev) != PTL_OK;
	n->fails += ev.ni_fail_type;
	n->kinds += ev.type;
}

static inline void put(struct node *n, ptl_ack_req_t ack)
{
	n->fails += PtlPutRegion(n->md, 0, n->length, ack, n->self, PORTAL, 0, BENCH_BITS,
			    0, 0) != PTL_OK;
}

static void run_eqget(struct node *n, uint64_t rounds)
{
	ptl_event_t ev;
	while (rounds--)
		n->fails += PtlEQGet(n->eq, &ev) != PTL_EQ_EMPTY;
}

static void run_eqpoll(struct node *n, uint64_t rounds)
{
	ptl_event_t ev;
	int which;
	while (rounds--)
		n->fails += PtlEQPoll(n->empty, 3, 0, &ev, &which) != PTL_EQ_EMPTY;
}

static void run_put(struct node *n, uint64_t rounds)
{
	while (rounds--) {
		put(n, PTL_NO_ACK_REQ);
		take(n);
		take(n);
	}
}

static void run_put_whole(struct node *n, uint64_t rounds)
{
	while (rounds--) {
		n->fails += PtlPut(n->md, PTL_NO_ACK_REQ, n->self, PORTAL, 0, BENCH_BITS,
				    0, 0) != PTL_OK;
		take(n);
		take(n);
	}
}

static void run_put_quiet(struct node *n, uint64_t rounds)
{
	while (rounds--) {
		put(n, PTL_NO_ACK_REQ);
		take(n);
	}
}

static void run_put_ack(struct node *n, uint64_t rounds)
{
	while (rounds--) {
		put(n, PTL_ACK_REQ);
		take(n);
		take(n);
		take(n);
	}
}

static void run_get(struct node *n, uint64_t rounds)
{
	while (rounds--) {
		n->fails += PtlGetRegion(n->md, 0, n->length, n->self, PORTAL, 0,
				    BENCH_BITS, 0) != PTL_OK;
		take(n);
		take(n);
	}
}

static ptl_md_t md_of(struct node *n)
{
	return (ptl_md_t){.start = n->there,
		.length = n->length,
		.threshold = PTL_MD_THRESH_INF,
		.options =
			PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE,
		.eq_handle = n->eq};
}

static void run_attach(struct node *n, uint64_t rounds)
{
	ptl_process_id_t anyone = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_md_t md = md_of(n);
	ptl_handle_me_t me;
	ptl_handle_md_t handle;
	while (rounds--) {
		n->fails += PtlMEAttach(n->b.ni, PORTAL, anyone, BENCH_BITS, 0,
				    PTL_UNLINK, PTL_INS_AFTER, &me) != PTL_OK;
		n->fails += PtlMDAttach(me, md, PTL_UNLINK, &handle) != PTL_OK;
		n->fails += PtlMDUnlink(handle) != PTL_OK;
	}
}

static void run_bind(struct node *n, uint64_t rounds)
{
	ptl_md_t md = md_of(n);
	ptl_handle_md_t handle;
	while (rounds--) {
		n->fails += PtlMDBind(n->b.ni, md, PTL_UNLINK, &handle) != PTL_OK;
		n->fails += PtlMDUnlink(handle) != PTL_OK;
	}
}

/* ---- CCI ---- */

static void run_cci_event(struct node *n, uint64_t rounds)
{
	cci_event_t *ev;
	while (rounds--)
		n->fails += cci_get_event(n->endpoint, &ev) != CCI_EAGAIN;
}

static inline void take_cci(struct node *n)
{
	cci_event_t *ev;
	while (cci_get_event(n->endpoint, &ev) == CCI_EAGAIN)
		;
	if (ev->type == CCI_EVENT_RECV)
		memcpy(n->there, ev->recv.ptr, ev->recv.len);
	else
		n->fails += ev->send.status != CCI_SUCCESS;
	n->kinds += ev->type;
	n->fails += cci_return_event(ev) != CCI_SUCCESS;
}

static void run_cci_send(struct node *n, uint64_t rounds)
{
	while (rounds--) {
		n->fails += cci_send(n->connection, n->here, (uint32_t)n->length, NULL,
				    0) != CCI_SUCCESS;
		take_cci(n);
		take_cci(n);
	}
}

/* Take an event of the set-up, and accept a connect request. */
static void set_up(struct node *n)
{
	cci_event_t *ev;
	if (cci_get_event(n->endpoint, &ev) != CCI_SUCCESS)
		return;
	if (ev->type == CCI_EVENT_CONNECT_REQUEST)
		(void)cci_accept(ev, NULL);
	else if (ev->type == CCI_EVENT_CONNECT)
		n->connection = ev->connect.connection;
	(void)cci_return_event(ev);
}

static void open_cci(struct node *n, cci_conn_attribute_t attribute)
{
	uint32_t caps;
	char *uri = NULL;
	if (cci_init(CCI_ABI_VERSION, 0, &caps) != CCI_SUCCESS ||
		cci_create_endpoint(NULL, 0, &n->endpoint, NULL) != CCI_SUCCESS ||
		cci_get_opt(n->endpoint, CCI_OPT_ENDPT_URI, &uri) != CCI_SUCCESS ||
		cci_connect(n->endpoint, uri, NULL, 0, attribute, NULL, 0, NULL) !=
			CCI_SUCCESS)
		bench_die(1, "CCI did not start");
	free(uri);
	for (unsigned i = 0; i < TRIES; i++)
		set_up(n);
	if (!n->connection)
		bench_die(1, "no connection to the endpoint itself");
}

/* ---- rows ---- */

enum source { QUEUE, QUIET, UU, RO }; /* with a queue, without, a connection of CCI */

struct row {
	const char *name, *title;
	void (*run)(struct node *n, uint64_t rounds);
	uint64_t length; /* length of a message, or 0 */
	unsigned kinds;  /* sum over the events of a round */
	enum source source;
};

#define PUT_EVENTS (PTL_EVENT_SEND_END + PTL_EVENT_PUT_END)
#define CCI_EVENTS (CCI_EVENT_SEND + CCI_EVENT_RECV)

static const struct row rows[] = {
	{"eqget", "PtlEQGet, empty", run_eqget, 0, 0, QUEUE},
	{"eqpoll", "PtlEQPoll of three empty queues, timeout 0", run_eqpoll, 0, 0, QUEUE},
	{"put8", "PtlPutRegion 8 B + SEND_END + PUT_END taken", run_put, 8, PUT_EVENTS,
		QUEUE},
	{"put8-quiet", "the same, no queue at the source", run_put_quiet, 8,
		PTL_EVENT_PUT_END, QUIET},
	{"put8-whole", "PtlPut in its place, both events", run_put_whole, 8, PUT_EVENTS,
		QUEUE},
	{"put64", "64 B, both events", run_put, 64, PUT_EVENTS, QUEUE},
	{"put1k", "1 KiB, both events", run_put, 1024, PUT_EVENTS, QUEUE},
	{"put8-ack", "8 B with ACK, three events", run_put_ack, 8,
		PUT_EVENTS + PTL_EVENT_ACK, QUEUE},
	{"get8", "PtlGetRegion 8 B, two events", run_get, 8,
		PTL_EVENT_GET_END + PTL_EVENT_REPLY_END, QUEUE},
	{"attach", "PtlMEAttach + PtlMDAttach + PtlMDUnlink", run_attach, 0, 0, QUEUE},
	{"bind", "PtlMDBind + PtlMDUnlink", run_bind, 0, 0, QUEUE},
	{"cci-event", "cci_get_event, empty", run_cci_event, 0, 0, UU},
	{"cci-uu8", "cci_send UU 8 B, SEND and RECV taken and returned", run_cci_send, 8,
		CCI_EVENTS, UU},
	{"cci-ro8", "cci_send RO 8 B, SEND and RECV", run_cci_send, 8, CCI_EVENTS, RO},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

static const struct row *row_of(const char *name)
{
	for (unsigned i = 0; i < ROWS; i++)
		if (!strcmp(rows[i].name, name))
			return &rows[i];
	bench_die(2, "'%s' is no row; expected one that --names lists", name);
}

static void open_node(struct node *n, const struct row *row)
{
	n->b.program = "onecall";
	bench_start(&n->b);
	if (n->b.size != 1)
		bench_die(2, "%u nodes; expected a node alone", n->b.size);
	n->self = bench_id(&n->b, 0);
	n->eq = bench_queue(&n->b, SLOTS);
	for (unsigned i = 0; i < 3; i++)
		n->empty[i] = bench_queue(&n->b, SLOTS);
	n->length = row->length;
	if (row->source >= UU)
		open_cci(n, row->source == UU ? CCI_CONN_ATTR_UU : CCI_CONN_ATTR_RO);
	if (!row->length || row->source >= UU)
		return;
	n->md = bench_bind(
		&n->b, n->here, row->length, row->source == QUIET ? PTL_EQ_NONE : n->eq);
	n->me = bench_post(&n->b, PORTAL, BENCH_BITS, PTL_MD_OP_PUT | PTL_MD_OP_GET,
		n->there, MOST, n->eq);
}

static void set_bytes(struct node *n)
{
	for (unsigned i = 0; i < MOST; i++) {
		n->here[i] = (char)(1 + i % 100);
		n->there[i] = (char)(101 + i % 100);
	}
}

/*
 * Run rounds that are not counted, until the node is in the state of a busy one: no call
 * wakes the NIC thread, which is held between two ticks.  Return the number of rounds.
 */
static uint64_t warm(struct node *n, const struct row *row)
{
	uint64_t rounds = 0;
	for (unsigned i = 0; i < TRIES; i++) {
		row->run(n, WARM);
		still_begin();
		uint64_t calls = still_syscalls();
		row->run(n, PROBE);
		rounds += WARM + PROBE;
		if (calls == still_syscalls())
			return rounds;
		still_end();
	}
	bench_die(1, "%s: each round makes system calls; expected none", row->name);
}

/* Run rounds.  callgrind counts from this function's first instruction to its return. */
__attribute__((noinline)) static void count_calls(
	struct node *n, const struct row *row, uint64_t rounds)
{
	row->run(n, rounds);
	__asm__ volatile("" ::: "memory"); /* no tail call, so that the return is here */
}

static void check(struct node *n, const struct row *row, uint64_t rounds)
{
	ptl_event_t ev;
	if (n->fails || n->kinds != row->kinds * rounds)
		bench_die(1,
			"%s: %llu calls or events failed, and the kinds of the events "
			"add up to %llu; expected none, and %llu",
			row->name, (unsigned long long)n->fails,
			(unsigned long long)n->kinds,
			(unsigned long long)(row->kinds * rounds));
	if (PtlEQGet(n->eq, &ev) != PTL_EQ_EMPTY)
		bench_die(1, "%s: an event is left; expected an empty queue", row->name);
	if (memcmp(n->here, n->there, row->length) ||
		n->here[row->length] == n->there[row->length])
		bench_die(1, "%s: wrong bytes; expected %llu that are equal, and no more",
			row->name, (unsigned long long)row->length);
}

static int print_names(void)
{
	for (unsigned i = 0; i < ROWS; i++)
		printf("%s\t%s\n", rows[i].name, rows[i].title);
	return 0;
}

static int print_builder(void)
{
	printf("gcc %d.%d.%d, glibc %s\n", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__,
		gnu_get_libc_version());
	return 0;
}

int main(int argc, char **argv)
{
	static struct node n;
	struct bench_number rounds = {0, 1, MOST_ROUNDS};
	bench_name_errors("onecall", 0);
	if (argc == 2 && !strcmp(argv[1], "--names"))
		return print_names();
	if (argc == 2 && !strcmp(argv[1], "--builder"))
		return print_builder();
	if (argc != 3)
		bench_die(2, "%d arguments; expected ROW ROUNDS, or --names", argc - 1);
	if (!bench_set_number(&rounds, argv[2]))
		bench_die(2, "'%s' is no number of rounds; expected 1 to %u", argv[2],
			MOST_ROUNDS);
	const struct row *row = row_of(argv[1]);
	set_bytes(&n);
	open_node(&n, row);
	uint64_t before = warm(&n, row);
	count_calls(&n, row, rounds.value);
	still_end();
	check(&n, row, before + rounds.value);
	bench_leave(0);
}
