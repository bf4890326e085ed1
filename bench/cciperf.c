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

static void both_ways(struct program *p, struct end *e, int way, uint64_t count)
{
	struct perf_node *n = &p->copy;
	e->sent = e->got = 0;
	for (uint64_t i = 1; i <= count; i++, n->message++) {
		if (!n->first)
			await(p, e, i - 1, i);
		perf_stamp(n);
		send(p, e, way, n->length, 0);
		await(p, e, i, i);
	}
}

static void ping_pong(struct program *p, int way, uint64_t count)
{
	both_ways(p, &p->polled, way, count);
}

static void blocking(struct program *p, int way, uint64_t count)
{
	both_ways(p, &p->blocking, way, count);
}

/* The first rank sends a message and waits for its SEND event. */
static void complete(struct program *p, int way, uint64_t count)
{
	struct perf_node *n = &p->copy;
	struct end *e = &p->polled;
	e->sent = e->got = 0;
	for (uint64_t i = 1; i <= count; i++, n->message++)
		if (n->first) {
			perf_stamp(n);
			send(p, e, way, n->length, 0);
			await(p, e, i, 0);
		} else
			await(p, e, 0, i);
}

/* Tell that all of a round is here; nothing is to wait for. */
static void answer(struct program *p)
{
	send(p, &p->polled, RO, 0, CCI_FLAG_SILENT);
}

/* Windows of messages one way; a message of 0 bytes comes back for each. */
static void windows(struct program *p, int way, uint64_t count)
{
	struct perf_node *n = &p->copy;
	struct end *e = &p->polled;
	e->sent = e->got = 0;
	for (uint64_t i = 1; i <= count; i++, n->message++)
		if (n->first) {
			perf_stamp(n);
			for (unsigned k = 0; k < n->window; k++)
				send(p, e, way, n->length, 0);
			await(p, e, i * n->window, i);
		} else {
			await(p, e, 0, i * n->window);
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

/* A way runs rounds; of is a connection of CCI, a flag, or whether CCI is there. */
struct way {
	void (*run)(struct program *p, int of, uint64_t count);
	int of;
	void (*before)(struct program *p, int of); /* a batch; NULL: nothing to do */
};

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
		perf_put_for_ack(n, 0);
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

/* ---- turns ---- */

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
			if (w->before)
				w->before(p, w->of);
			double t = bench_now_ns();
			w->run(p, w->of, each);
			p->sample[now][i] = (bench_now_ns() - t) / (double)each / parts;
		}
}

/* Return the rounds of a batch: some 1 ms of them. */
static uint64_t rounds_of(const struct program *p, uint64_t bytes, uint64_t cost)
{
	uint64_t rounds = p->b.quick          ? 20
			  : bytes <= 1 << 10  ? 2000
			  : bytes <= 16 << 10 ? 500
			  : bytes <= 64 << 10 ? 100
					      : 10;
	return rounds / cost ? rounds / cost : 1;
}

/* Run the turns of a test of CCI beside one of Portals.  A round of some cost has this
 * number of parts.  Return true at rank 0, which has the samples. */
static bool run(struct program *p, enum perf_test test, uint64_t bytes,
	const struct way *way, unsigned n, uint64_t parts, uint64_t cost)
{
	uint64_t counted = p->copy.message;
	perf_begin(&p->n, test, bytes);
	if (p->n.active) {
		perf_full_rounds(&p->n);
		p->copy = p->n;
		p->copy.message = counted;
		take_turns(p, way, n, rounds_of(p, bytes, cost), (double)parts);
		perf_full_rounds(&p->n);
	}
	perf_end(&p->n);
	return p->b.rank == 0;
}

static bool run_windows(
	struct program *p, uint64_t bytes, const struct way *way, unsigned n)
{
	return run(p, PERF_STREAM, bytes, way, n, p->n.window, p->n.window / 4 + 1);
}

static double median(const struct program *p, unsigned way)
{
	return bench_median(p->sample[way], p->turns.value);
}

static double ratio(const struct program *p, unsigned a, unsigned b)
{
	return bench_ratio(p->sample[a], p->sample[b], p->turns.value);
}

/* ---- tests ---- */

static void idle(struct program *p)
{
	static const struct way ways[] = {{portals, 0, with_cci}, {portals, 1, with_cci}};
	for (unsigned streams = 0; streams < 2; streams++) {
		if (streams ? run_windows(p, 8, ways, 2)
			    : run(p, PERF_PUT, 8, ways, 2, 2, 1))
			BENCH_ROW(&p->b, BENCH_TEXT("test", "idle"),
				BENCH_TEXT("of", streams ? "puts" : "put"),
				BENCH_COUNT("connections", IDLERS),
				BENCH_REAL("without_ns", median(p, 0), 1),
				BENCH_REAL("with_ns", median(p, 1), 1),
				BENCH_REAL("with_per_without", ratio(p, 1, 0), 3));
	}
	if (p->idles)
		CCI_DO(cci_finalize);
	p->idles = false;
}

static void latency(struct program *p, uint64_t bytes)
{
	static const struct way ways[] = {{ping_pong, UU, NULL}, {ping_pong, RO, NULL},
		{ping_pong, RU, NULL}, {portals, 0, NULL}, {put_acked, 0, NULL},
		{raw, 0, NULL}};
	if (!run(p, PERF_PUT, bytes, ways, p->hand ? 6 : 5, 2, 1))
		return;
	BENCH_ROW(&p->b, BENCH_TEXT("test", "latency"), BENCH_COUNT("bytes", bytes),
		BENCH_REAL("uu_ns", median(p, 0), 1),
		BENCH_REAL("ro_ns", median(p, 1), 1),
		BENCH_REAL("ru_ns", median(p, 2), 1),
		BENCH_REAL("put_ns", median(p, 3), 1),
		BENCH_REAL("put_ack_ns", median(p, 4), 1),
		BENCH_REAL("raw_ns", p->hand ? median(p, 5) : 0, 1),
		BENCH_REAL("uu_per_put", ratio(p, 0, 3), 3),
		BENCH_REAL("ro_per_ack", ratio(p, 1, 4), 3),
		BENCH_REAL("ru_per_ack", ratio(p, 2, 4), 3));
}

static void completion(struct program *p, uint64_t bytes)
{
	static const struct way ways[] = {
		{complete, RO, NULL}, {complete, RU, NULL}, {portals, 0, NULL}};
	if (run(p, PERF_ACK, bytes, ways, 3, 1, 1))
		BENCH_ROW(&p->b, BENCH_TEXT("test", "completion"),
			BENCH_COUNT("bytes", bytes), BENCH_REAL("ro_ns", median(p, 0), 1),
			BENCH_REAL("ru_ns", median(p, 1), 1),
			BENCH_REAL("put_ack_ns", median(p, 2), 1),
			BENCH_REAL("ro_per_ack", ratio(p, 0, 2), 3),
			BENCH_REAL("ru_per_ack", ratio(p, 1, 2), 3));
}

static void stream(struct program *p, uint64_t bytes)
{
	static const struct way ways[] = {{windows, UU, NULL}, {windows, RO, NULL},
		{windows, RU, NULL}, {portals, 0, NULL}};
	if (!run_windows(p, bytes, ways, 4))
		return;
	BENCH_ROW(&p->b, BENCH_TEXT("test", "stream"), BENCH_COUNT("bytes", bytes),
		BENCH_REAL("uu_Mmsg_per_s", 1e3 / median(p, 0), 3),
		BENCH_REAL("ro_Mmsg_per_s", 1e3 / median(p, 1), 3),
		BENCH_REAL("ru_Mmsg_per_s", 1e3 / median(p, 2), 3),
		BENCH_REAL("put_Mmsg_per_s", 1e3 / median(p, 3), 3),
		BENCH_REAL("uu_MB_per_s", 1e3 / median(p, 0) * (double)bytes, 1),
		BENCH_REAL("uu_per_put", ratio(p, 3, 0), 3),
		BENCH_REAL("ro_per_put", ratio(p, 3, 1), 3),
		BENCH_REAL("ro_per_uu", ratio(p, 0, 1), 3));
}

static void print_rma(
	struct program *p, const char *test, uint64_t bytes, const char *beside)
{
	double ours = median(p, 0), other = median(p, 1);
	BENCH_ROW(&p->b, BENCH_TEXT("test", test), BENCH_TEXT("beside", beside),
		BENCH_COUNT("bytes", bytes), BENCH_REAL("rma_ns", ours, 1),
		BENCH_REAL("portals_ns", other, 1),
		BENCH_REAL("rma_MB_per_s", (double)bytes * 1e3 / ours, 1),
		BENCH_REAL("portals_MB_per_s", (double)bytes * 1e3 / other, 1),
		BENCH_REAL("bandwidth_ratio", ratio(p, 1, 0), 3));
}

static void rma_tests(struct program *p, uint64_t bytes)
{
	static const struct way writes[] = {
		{rma, CCI_FLAG_WRITE, NULL}, {portals, 0, NULL}};
	static const struct way reads[] = {
		{rma, CCI_FLAG_READ, NULL}, {portals, 0, NULL}};
	static const struct way streams[] = {{rma_windows, 0, NULL}, {portals, 0, NULL}};
	if (run(p, PERF_ACK, bytes, writes, 2, 1, 1))
		print_rma(p, "write", bytes, "put to ACK");
	if (run(p, PERF_GET, bytes, reads, 2, 1, 1))
		print_rma(p, "read", bytes, "get");
	if (run_windows(p, bytes, streams, 2))
		print_rma(p, "writes", bytes, "puts");
}

static void os_handle(struct program *p)
{
	static const struct way ways[] = {{blocking, RO, NULL}};
	if (!run(p, PERF_PUT, BLOCKING_BYTES, ways, 1, 2, 10))
		return;
	struct bench_stat s = bench_stat_of(p->sample[0], p->turns.value);
	BENCH_ROW(&p->b, BENCH_TEXT("test", "os_handle"),
		BENCH_COUNT("bytes", BLOCKING_BYTES), BENCH_REAL("p50_ns", s.p50, 1),
		BENCH_REAL("p90_ns", s.p90, 1), BENCH_REAL("min_ns", s.min, 1));
}

static void run_sizes(struct program *p, enum test test, const struct bench_list *sizes,
	void (*one)(struct program *p, uint64_t bytes))
{
	for (unsigned i = 0; p->test[test] && i < sizes->n; i++)
		one(p, sizes->at[i]);
}

/* ---- */

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
	"Medians of the turns.  Ratios above 1: in latency Portals is faster, in rates "
	"and "
	"bandwidth CCI.\n";

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
	if (p->test[IDLE])
		idle(p);
	perf_begin(&p->n, PERF_PUT, 8);
	p->copy = p->n;
	open_cci(p);
	p->hand = perf_hand_share(&p->n);
	perf_full_rounds(&p->n);
	perf_end(&p->n);
	run_sizes(p, LATENCY, &p->sizes, latency);
	run_sizes(p, COMPLETION, &p->sizes, completion);
	run_sizes(p, STREAM, &p->sizes, stream);
	run_sizes(p, RMA, &p->rma_sizes, rma_tests);
	if (p->test[HANDLE])
		os_handle(p);
	bench_barrier();
	CCI_DO(cci_destroy_endpoint, p->polled.ep);
	CCI_DO(cci_destroy_endpoint, p->blocking.ep);
	CCI_DO(cci_finalize);
	bench_finish(&p->b);
}
