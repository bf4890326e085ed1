/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cciperf - latency, rate and bandwidth of CCI beside Portals
 *
 *	yod -sz 2 cciperf [options]
 *
 * Each test takes turns between the ways of CCI, the corresponding puts or gets of
 * Portals in the same processes, and the raw hand-over of a cache line: a turn is a
 * batch of rounds of each.  A ratio is the median of those of the turns.
 *
 * Ranks 0 and 1 have an endpoint each, and a connection of each attribute; a second
 * pair of endpoints has OS handles.  The content of messages is that of perf.h: the loops
 * of both stamp and check the same words.
 */
#include "perf.h"

#include <cci.h>
#include <poll.h>
#include <stdlib.h>

enum {
	MOST_TURNS = 200,
	MOST_WAYS = 6,
	BLOCKING_BYTES = 8,
	URI_BYTES = 128,
	IDLERS = 99
};
enum test { IDLE, LATENCY, COMPLETION, STREAM, RMA, HANDLE, TESTS };
enum { UU, RO, RU, CONNECTIONS };

static const char *const test_name[TESTS] = {
	"idle", "latency", "completion", "stream", "rma", "os_handle"};

struct end {
	cci_endpoint_t *ep;
	cci_os_handle_t fd; /* -1: none */
	cci_connection_t *conn[CONNECTIONS];
	uint64_t sent, got; /* events since the loop began */
};

static struct program {
	struct bench b;
	bool test[TESTS];
	struct bench_list sizes, rma_sizes;
	struct bench_number window, turns;
	bool idles, yields;       /* idles: the connections of the test idle are there */
	struct perf_node n, copy; /* copy: CCI's, which counts its messages */
	struct end polled, blocking;
	cci_rma_handle_t *tx, *rx; /* this rank's memory */
	struct cci_rma_handle peer_rx;
	struct hand *hand;
	enum test running;
	double sample[MOST_WAYS][MOST_TURNS]; /* ns of a message, or operation */
} program = {.sizes = {.most = 4096},
	.rma_sizes = {.least = 1, .most = 1 << 30},
	.window = {64, 1, 1024},
	.turns = {30, 1, MOST_TURNS}};

static void check(int status, const char *what)
{
	if (status != CCI_SUCCESS)
		bench_die(1, "%s: %s", what, cci_strerror(NULL, (cci_status_t)status));
}

#define CCI_DO(function, ...) check(function(__VA_ARGS__), #function)

static void give_back(cci_event_t *event)
{
	CCI_DO(cci_return_event, event);
}

/* ---- connections ---- */

static cci_event_t *await_event(struct end *e, cci_event_type_t type)
{
	cci_event_t *event;
	while (cci_get_event(e->ep, &event) != CCI_SUCCESS)
		sched_yield();
	if (event->type != type)
		bench_die(1, "set-up: %s came; expected %s",
			cci_event_type_str(event->type), cci_event_type_str(type));
	return event;
}

static cci_connection_t *accept_one(struct end *e)
{
	cci_event_t *event = await_event(e, CCI_EVENT_CONNECT_REQUEST);
	CCI_DO(cci_accept, event, NULL);
	give_back(event);
	event = await_event(e, CCI_EVENT_ACCEPT);
	check((int)event->accept.status, "accept");
	cci_connection_t *conn = event->accept.connection;
	give_back(event);
	return conn;
}

static cci_connection_t *connect_one(struct end *e, const char *uri, unsigned way)
{
	static const cci_conn_attribute_t attribute[CONNECTIONS] = {
		CCI_CONN_ATTR_UU, CCI_CONN_ATTR_RO, CCI_CONN_ATTR_RU};
	CCI_DO(cci_connect, e->ep, uri, NULL, 0, attribute[way], NULL, 0, NULL);
	cci_event_t *event = await_event(e, CCI_EVENT_CONNECT);
	check((int)event->connect.status, "connect");
	cci_connection_t *conn = event->connect.connection;
	give_back(event);
	return conn;
}

/* Between perf_begin and perf_end: make an endpoint, and connect in each way, several
 * times; the end keeps the last connections.  The first rank gives its URI to the other
 * one, a word at a time. */
static void open_end(struct perf_node *n, struct end *e, bool blocking, unsigned times)
{
	uint64_t uri[URI_BYTES / 8] = {0};
	e->fd = -1;
	CCI_DO(cci_create_endpoint, NULL, 0, &e->ep, blocking ? &e->fd : NULL);
	if (n->first) {
		char *mine;
		CCI_DO(cci_get_opt, e->ep, CCI_OPT_ENDPT_URI, &mine);
		snprintf((char *)uri, sizeof uri, "%s", mine);
		free(mine);
	}
	for (unsigned i = 0; i < URI_BYTES / 8; i++)
		uri[i] = perf_agree(n, uri[i]);
	for (unsigned i = 0; i < times * CONNECTIONS; i++)
		e->conn[i % CONNECTIONS] =
			n->first ? accept_one(e)
				 : connect_one(e, (const char *)uri, i % CONNECTIONS);
}

static void start_cci(void)
{
	uint32_t caps;
	CCI_DO(cci_init, CCI_ABI_VERSION, 0, &caps);
}

/* Make endpoints and connections, register the memory of the node's messages, and
 * exchange the handles. */
static void open_cci(struct program *p)
{
	struct end *e = &p->polled;
	int both = CCI_FLAG_READ | CCI_FLAG_WRITE;
	uint64_t tx = p->n.largest + PERF_SHIFTS * 64, rx = perf_rx_bytes(&p->n);
	start_cci();
	open_end(&p->n, e, false, 1);
	open_end(&p->n, &p->blocking, true, 1);
	CCI_DO(cci_rma_register, e->ep, p->n.tx, tx, both, &p->tx);
	CCI_DO(cci_rma_register, e->ep, p->n.rx, rx, both, &p->rx);
	CCI_DO(cci_send, e->conn[RO], p->rx, sizeof *p->rx, NULL, CCI_FLAG_SILENT);
	cci_event_t *event = await_event(e, CCI_EVENT_RECV);
	memcpy(&p->peer_rx, event->recv.ptr, sizeof p->peer_rx);
	give_back(event);
}

/* ---- events ---- */

static void took(struct program *p, struct end *e, cci_event_t *event)
{
	struct perf_node *n = &p->copy;
	if (__builtin_expect(event->type == CCI_EVENT_RECV, 1)) {
		e->got++;
		if (event->recv.len && event->recv.len == n->length)
			perf_check_stamp(n, event->recv.ptr, n->b->rank ^ 1);
	} else if (event->type == CCI_EVENT_SEND) {
		e->sent++;
		if (__builtin_expect(event->send.status != CCI_SUCCESS, 0))
			check((int)event->send.status, "send");
	} else
		bench_die(1, "%s came; expected SEND or RECV",
			cci_event_type_str(event->type));
	give_back(event);
}

static inline void take(struct program *p, struct end *e)
{
	cci_event_t *event;
	if (cci_get_event(e->ep, &event) == CCI_SUCCESS)
		took(p, e, event);
	else if (p->yields)
		sched_yield();
}

/* Wait for so many events.  An endpoint with an OS handle sleeps on it. */
static inline void await(struct program *p, struct end *e, uint64_t sent, uint64_t got)
{
	struct pollfd readable = {.fd = e->fd, .events = POLLIN};
	while (e->sent < sent || e->got < got) {
		if (e->fd >= 0)
			(void)poll(&readable, 1, -1);
		take(p, e);
	}
}

/* ---- messages: both ranks run the same rounds ---- */

static void send(struct program *p, struct end *e, int way, uint64_t len, int flags)
{
	char *tx = p->copy.tx;
	int status = cci_send(e->conn[way], tx, (uint32_t)len, NULL, flags);
	while (__builtin_expect(status == CCI_ENOBUFS, 0)) {
		take(p, e);
		status = cci_send(e->conn[way], tx, (uint32_t)len, NULL, flags);
	}
	check(status, "cci_send");
}

static void ping_pong(struct program *p, int way, uint64_t count)
{
	struct perf_node *n = &p->copy;
	struct end *e = p->running == HANDLE ? &p->blocking : &p->polled;
	e->sent = e->got = 0;
	for (uint64_t i = 1; i <= count; i++, n->message++) {
		if (!n->first)
			await(p, e, i - 1, i);
		perf_stamp(n);
		send(p, e, way, n->length, 0);
		await(p, e, i, i);
	}
}

/* Tell that all of a round is here; nothing is to wait for. */
static void answer(struct program *p)
{
	send(p, &p->polled, RO, 0, CCI_FLAG_SILENT);
}

/* Rounds of a message one way, or, in a stream, of a window of them, each to its SEND
 * event; a message of 0 bytes comes back for each round if it is a window. */
static void one_way(struct program *p, int way, uint64_t count)
{
	struct perf_node *n = &p->copy;
	struct end *e = &p->polled;
	unsigned messages = p->running == STREAM ? n->window : 1;
	bool window = messages > 1;
	e->sent = e->got = 0;
	for (uint64_t i = 1; i <= count; i++, n->message++)
		if (n->first) {
			perf_stamp(n);
			for (unsigned k = 0; k < messages; k++)
				send(p, e, way, n->length, 0);
			await(p, e, i * messages, window ? i : 0);
		} else {
			await(p, e, 0, i * messages);
			if (window)
				answer(p);
		}
}

/* ---- RMA ---- */

static void start_rma(struct program *p, uint32_t msg_len, uint64_t offset, int flags)
{
	struct perf_node *n = &p->copy;
	int status;
	while ((status = cci_rma(p->polled.conn[RO], msg_len ? n->tx : NULL, msg_len,
			p->tx, 0, &p->peer_rx, offset, n->length, NULL, flags)) ==
		CCI_ENOBUFS)
		take(p, &p->polled);
	check(status, "cci_rma");
}

/* The target's program takes no part, but polls as that of a put does.  A word at the
 * beginning of its rx is what the first rank reads. */
static void be_target(struct program *p, int flag, uint64_t count)
{
	struct perf_node *n = &p->copy;
	uint64_t word = perf_word(n->message, 7);
	if (flag == CCI_FLAG_READ)
		memcpy(n->rx, &word, sizeof word);
	answer(p); /* its memory is ready */
	await(p, &p->polled, 0, 1);
	n->message += count - 1;
	if (flag == CCI_FLAG_WRITE && n->length)
		perf_check_stamp(n, n->rx, n->b->rank ^ 1);
	n->message++;
	answer(p); /* others may write its memory now */
}

/* The first rank writes to, or reads from, the other's memory, one RMA at a time. */
static void rma(struct program *p, int flag, uint64_t count)
{
	struct perf_node *n = &p->copy;
	struct end *e = &p->polled;
	uint64_t word = perf_word(n->message, 7);
	e->sent = e->got = 0;
	if (!n->first) {
		be_target(p, flag, count);
		return;
	}
	await(p, e, 0, 1);
	for (uint64_t i = 1; i <= count; i++, n->message++) {
		if (flag == CCI_FLAG_WRITE)
			perf_stamp(n);
		start_rma(p, 0, 0, flag);
		await(p, e, i, 0);
	}
	if (flag == CCI_FLAG_READ && n->length >= PERF_WORD)
		perf_check_word(n, *(uint64_t *)n->tx, word, 0);
	answer(p);
	await(p, e, count, 2);
}

/* Windows of WRITEs; the last one brings a message, and a message comes back. */
static void rma_windows(struct program *p, int way, uint64_t count)
{
	struct perf_node *n = &p->copy;
	struct end *e = &p->polled;
	(void)way;
	e->sent = e->got = 0;
	for (uint64_t i = 1; i <= count; i++, n->message++) {
		if (!n->first) {
			await(p, e, 0, i);
			perf_check_stamp(n, n->rx, n->b->rank ^ 1);
			answer(p);
			continue;
		}
		perf_stamp(n);
		for (unsigned k = 1; k < n->window; k++)
			start_rma(p, 0, k % n->slots * n->pitch, CCI_FLAG_WRITE);
		start_rma(p, 8, 0, CCI_FLAG_WRITE | CCI_FLAG_FENCE);
		await(p, e, i * n->window, i);
	}
}

/* ---- the ways beside CCI ---- */

/* The test of perf.h that has begun. */
static void portals(struct program *p, int of, uint64_t count)
{
	(void)of;
	perf_rounds(&p->n, count);
}

/* A ping-pong of puts with ACK: each rank also waits for the ACK of its own. */
static void put_acked(struct program *p, int of, uint64_t count)
{
	struct perf_node *n = &p->n;
	uint64_t acked = n->w.seen[PTL_EVENT_ACK];
	(void)of;
	for (uint64_t i = 1; i <= count; i++, n->message++) {
		if (!n->first)
			bench_await(&n->w, PTL_EVENT_PUT_END, n->message + 1);
		perf_stamp(n);
		perf_put(n, PTL_ACK_REQ, 0, 0);
		bench_await(&n->w, PTL_EVENT_PUT_END, n->message + 1);
		bench_await(&n->w, PTL_EVENT_SEND_END, n->message + 1);
		bench_await(&n->w, PTL_EVENT_ACK, acked + i);
	}
}

static void raw(struct program *p, int of, uint64_t count)
{
	(void)of;
	perf_hand_over(p->hand, &p->n, count);
}

/* Open or close the idle endpoints beside Portals, and meet. */
static void with_cci(struct program *p, int there)
{
	static struct end idle;
	if (there && !p->idles) {
		start_cci();
		open_end(&p->n, &idle, false, IDLERS / CONNECTIONS);
	} else if (!there && p->idles) {
		CCI_DO(cci_finalize);
	}
	p->idles = there;
	(void)perf_both(&p->n, true);
}

/* ---- tests ---- */

/* A test of CCI beside one of perf.h.  A way runs rounds; of is a connection of CCI, a
 * flag, or whether CCI is there.  Its times are compared with those of another way. */
static const struct plan {
	enum test test;
	enum perf_test perf;
	struct way {
		const char *name;
		void (*run)(struct program *p, int of, uint64_t count);
		int of, beside; /* beside: -1: none */
	} way[MOST_WAYS];
} plans[] = {
	{IDLE, PERF_PUT,
		{{"put, no CCI", portals, 0, -1}, {"put, idle CCI", portals, 1, 0}}},
	{IDLE, PERF_STREAM,
		{{"puts, no CCI", portals, 0, -1}, {"puts, idle CCI", portals, 1, 0}}},
	{LATENCY, PERF_PUT,
		{{"UU", ping_pong, UU, 3}, {"RO", ping_pong, RO, 4},
			{"RU", ping_pong, RU, 4}, {"put", portals, 0, 5},
			{"put+ACK", put_acked, 0, -1}, {"raw", raw, 0, -1}}},
	{COMPLETION, PERF_ACK,
		{{"RO", one_way, RO, 2}, {"RU", one_way, RU, 2},
			{"put to ACK", portals, 0, -1}}},
	{STREAM, PERF_STREAM,
		{{"UU", one_way, UU, 3}, {"RO", one_way, RO, 3}, {"RU", one_way, RU, 3},
			{"puts", portals, 0, -1}}},
	{RMA, PERF_ACK,
		{{"write", rma, CCI_FLAG_WRITE, 1}, {"put to ACK", portals, 0, -1}}},
	{RMA, PERF_GET, {{"read", rma, CCI_FLAG_READ, 1}, {"get", portals, 0, -1}}},
	{RMA, PERF_STREAM, {{"writes", rma_windows, 0, 1}, {"puts", portals, 0, -1}}},
	{HANDLE, PERF_PUT, {{"RO, sleeping", ping_pong, RO, -1}}},
};

/* The order rotates, so that a slow drift does not show in the ratios. */
static void take_turns(
	struct program *p, const struct way *way, unsigned n, uint64_t each, double parts)
{
	for (unsigned k = 0; k < n; k++)
		way[k].run(p, way[k].of, each / 4 + 1); /* warm */
	for (uint64_t i = 0; i < p->turns.value; i++)
		for (unsigned k = 0; k < n; k++) {
			unsigned now = (unsigned)(k + i) % n;
			const struct way *w = &way[now];
			if (p->running == IDLE)
				with_cci(p, w->of);
			double t = bench_now_ns();
			w->run(p, w->of, each);
			p->sample[now][i] = (bench_now_ns() - t) / (double)each / parts;
		}
}

/* Return the rounds of a batch: some 1 ms of them. */
static uint64_t rounds_of(
	const struct program *p, const struct plan *plan, uint64_t bytes)
{
	uint64_t rounds = p->b.quick          ? 20
			  : bytes <= 1 << 10  ? 2000
			  : bytes <= 16 << 10 ? 500
			  : bytes <= 64 << 10 ? 100
					      : 10;
	uint64_t cost = plan->perf == PERF_STREAM ? p->n.window / 4 + 1
			: plan->test == HANDLE    ? 10
						  : 1;
	return rounds / cost ? rounds / cost : 1;
}

static void print_way(
	struct program *p, const struct plan *plan, unsigned k, double ratio)
{
	double bytes = (double)p->n.length;
	struct bench_stat s = bench_stat_of(p->sample[k], p->turns.value);
	BENCH_ROW(&p->b, BENCH_TEXT("test", test_name[plan->test]),
		BENCH_TEXT("           way", plan->way[k].name),
		BENCH_COUNT("bytes", bytes), BENCH_REAL("p50_ns", s.p50, 1),
		BENCH_REAL("p90_ns", s.p90, 1), BENCH_REAL("min_ns", s.min, 1),
		BENCH_REAL("Mmsg_per_s", 1e3 / s.p50, 3),
		BENCH_REAL("MB_per_s", bytes * 1e3 / s.p50, 1),
		BENCH_REAL("ratio", ratio, 3));
}

/* Run the turns of a test; rank 0 prints a row for each way. */
static void run(struct program *p, const struct plan *plan, uint64_t bytes)
{
	uint64_t counted = p->copy.message;
	double ratio[MOST_WAYS];
	unsigned n = 0;
	while (n < MOST_WAYS && plan->way[n].run && (plan->way[n].run != raw || p->hand))
		n++;
	p->running = plan->test;
	perf_begin(&p->n, plan->perf, bytes);
	perf_full_rounds(&p->n);
	p->copy = p->n;
	p->copy.message = counted;
	/* a round trip of a ping-pong has two messages */
	take_turns(p, plan->way, n, rounds_of(p, plan, bytes),
		(double)perf_messages(&p->n, 1) * (plan->perf == PERF_PUT ? 2 : 1));
	perf_full_rounds(&p->n);
	perf_end(&p->n);
	for (unsigned k = 0; k < n; k++) {
		unsigned beside = (unsigned)plan->way[k].beside;
		ratio[k] = bench_ratio(
			p->sample[k], p->sample[beside < n ? beside : k], p->turns.value);
	}
	for (unsigned k = 0; k < n && p->b.rank == 0; k++)
		print_way(p, plan, k, ratio[k]);
}

/* Run the tests that need CCI while the process has it, or those that do not. */
static void run_all(struct program *p, bool idle)
{
	static const uint64_t eight[] = {BLOCKING_BYTES};
	for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
		enum test test = plans[i].test;
		struct bench_list sizes = test == RMA ? p->rma_sizes : p->sizes;
		if (test == IDLE || test == HANDLE) {
			sizes.n = 0;
			bench_default_list(&sizes, eight, 1);
		}
		for (unsigned k = 0; k < sizes.n; k++)
			if (p->test[test] && (test == IDLE) == idle)
				run(p, &plans[i], sizes.at[k]);
	}
}

static const char about[] =
	"usage: yod -sz 2 cciperf [options]\n"
	"Latency, rate and bandwidth of CCI between ranks 0 and 1, beside Portals.\n";

static const char legend[] =
	"idle        puts of 8 bytes, one way, or windows of them, without CCI and with\n"
	"            an idle endpoint that has 99 connections\n"
	"latency     ping-pong: half a round trip; put+ACK waits for the ACK, too\n"
	"completion  one message to its SEND event, beside a put to its ACK\n"
	"stream      --window messages one way, their events taken, an empty one back\n"
	"write, read one RMA to its SEND event, beside a put to its ACK, and a get\n"
	"writes      --window RMA writes one way, beside as many puts\n"
	"os_handle   ping-pong of RO, both ranks sleep in poll(): half a round trip\n"
	"raw         the hand-over of a cache line between the CPUs, half a round trip\n"
	"Times of a message, in turns.  ratio: of the way's time to that of put, "
	"put+ACK, "
	"put to ACK,\n"
	"puts, or get; of put to raw; to no CCI.\n";

static const uint64_t default_sizes[] = {
	0, 8, 32, 33, 64, 128, 256, 512, 1024, 2048, 4096};
static const uint64_t default_rma[] = {8, 512, 4096, 16384, 65536, 262144, 1048576};

static void parse(struct program *p, int argc, char **argv)
{
	struct bench_words tests = {test_name, TESTS, p->test};
	const struct bench_option rows[] = {
		{"test", "LIST", "default all", bench_set_words, &tests},
		{"sizes", "LIST", "message sizes; default 0 to 4096", bench_set_list,
			&p->sizes},
		{"rma", "LIST", "RMA sizes; default 8 to 1M", bench_set_list,
			&p->rma_sizes},
		{"window", "N", "messages before an answer; default 64", bench_set_number,
			&p->window},
		{"turns", "N", "batches of each kind in a test; default 30",
			bench_set_number, &p->turns},
		{"yield", NULL, "sched_yield where nothing is there", bench_set_flag,
			&p->yields},
		{0}};
	bench_options(&p->b, rows, argc, argv);
	bench_all_words(&tests);
	bench_default_list(
		&p->sizes, default_sizes, sizeof default_sizes / sizeof *default_sizes);
	bench_default_list(
		&p->rma_sizes, default_rma, sizeof default_rma / sizeof *default_rma);
	if (p->b.quick)
		p->turns.value = 3;
}

int main(int argc, char **argv)
{
	struct program *p = &program;
	p->b = (struct bench){.program = "cciperf", .about = about, .legend = legend};
	parse(p, argc, argv);
	bench_want_ranks(&p->b, 2, 2);
	p->n.b = &p->b;
	p->n.largest = bench_largest(&p->rma_sizes, bench_largest(&p->sizes, 8));
	p->n.window = (unsigned)p->window.value;
	p->n.w.yields = p->yields;
	perf_open(&p->n);
	bench_begin(&p->b);
	run_all(p, true);
	if (p->idles)
		CCI_DO(cci_finalize);
	perf_begin(&p->n, PERF_PUT, 8);
	p->copy = p->n;
	open_cci(p);
	p->hand = perf_hand_share(&p->n);
	perf_full_rounds(&p->n);
	perf_end(&p->n);
	run_all(p, false);
	bench_barrier();
	CCI_DO(cci_destroy_endpoint, p->polled.ep);
	CCI_DO(cci_destroy_endpoint, p->blocking.ep);
	CCI_DO(cci_finalize);
	bench_finish(&p->b);
}
