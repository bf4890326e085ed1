/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cmdperf - the cost of calls that move no data
 *
 *	yod -sz 1 cmdperf [options]
 *
 * Each line is one call, or a pair of calls that makes and removes an object; the time is
 * that of one call or pair, from batches.  Every return code is checked.  Several ranks
 * do the same at a time, and the figures are those of rank 0.
 */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

enum {
	PORTAL = 4,
	BATCH = 64,
	POLLED = 3,
	MOST_BATCHES = 1 << 16,
	MOST_STANDING = 100000
};

struct program {
	struct bench b;
	struct bench_number batches, standing;
	ptl_handle_eq_t eq;
	struct bench_watch w; /* watch of eq */
	ptl_process_id_t self, anyone;
	ptl_handle_md_t empty; /* descriptor of messages to oneself */
	ptl_handle_me_t me[BATCH];
	ptl_handle_md_t md[BATCH];
	ptl_handle_eq_t queue[BATCH];
	ptl_handle_me_t *posted; /* ring of receives, the oldest at head */
	const char *calls;       /* text of the lines to run, or NULL */
	uint64_t head;
	char byte[64];
};

/* ---- timed parts: BATCH calls ---- */

static ptl_md_t md_of(struct program *p)
{
	return (ptl_md_t){.start = p->byte,
		.length = sizeof p->byte,
		.threshold = 1,
		.options = PTL_MD_OP_PUT,
		.eq_handle = p->eq};
}

static ptl_handle_me_t attach_both(struct program *p, ptl_match_bits_t bits)
{
	ptl_handle_me_t me;
	int rc = PtlMEAttach(
		p->b.ni, PORTAL, p->anyone, bits, 0, PTL_UNLINK, PTL_INS_AFTER, &me);
	bench_check(rc, "PtlMEAttach");
	bench_check(PtlMDAttach(me, md_of(p), PTL_UNLINK, NULL), "PtlMDAttach");
	return me;
}

static ptl_handle_me_t attach_once(struct program *p, ptl_match_bits_t bits)
{
	ptl_handle_me_t me;
	int rc = PtlMEMDAttach(p->b.ni, PORTAL, p->anyone, bits, 0, PTL_UNLINK,
		PTL_INS_AFTER, md_of(p), PTL_UNLINK, &me, NULL);
	bench_check(rc, "PtlMEMDAttach");
	return me;
}

static void unlink_all(struct program *p)
{
	for (unsigned i = 0; i < BATCH; i++)
		bench_check(PtlMEUnlink(p->me[i]), "PtlMEUnlink");
}

static void me_md_unlink(struct program *p)
{
	for (unsigned i = 0; i < BATCH; i++)
		p->me[i] = attach_both(p, i);
	unlink_all(p);
}

static void memd_unlink(struct program *p)
{
	for (unsigned i = 0; i < BATCH; i++)
		p->me[i] = attach_once(p, i);
	unlink_all(p);
}

/* Attach an entry at the end of the list, and unlink the oldest. */
static void posted_stream(struct program *p)
{
	for (unsigned i = 0; i < BATCH; i++) {
		ptl_handle_me_t *oldest = &p->posted[p->head++ % p->standing.value];
		ptl_handle_me_t me = attach_both(p, p->head);
		bench_check(PtlMEUnlink(*oldest), "PtlMEUnlink");
		*oldest = me;
	}
}

static void bind_unlink(struct program *p)
{
	for (unsigned i = 0; i < BATCH; i++)
		bench_check(
			PtlMDBind(p->b.ni, md_of(p), PTL_RETAIN, &p->md[i]), "PtlMDBind");
	for (unsigned i = 0; i < BATCH; i++)
		bench_check(PtlMDUnlink(p->md[i]), "PtlMDUnlink");
}

static void queue_alloc_free(struct program *p)
{
	for (unsigned i = 0; i < BATCH; i++)
		p->queue[i] = bench_queue(&p->b, 64);
	for (unsigned i = 0; i < BATCH; i++)
		bench_check(PtlEQFree(p->queue[i]), "PtlEQFree");
}

static void get_empty(struct program *p)
{
	ptl_event_t ev;
	for (unsigned i = 0; i < BATCH; i++)
		if (PtlEQGet(p->eq, &ev) != PTL_EQ_EMPTY)
			bench_die(1,
				"PtlEQGet finds an event; expected PTL_EQ_EMPTY; the "
				"library invents events");
}

static void poll_empty(struct program *p)
{
	ptl_event_t ev;
	int which;
	for (unsigned i = 0; i < BATCH; i++)
		if (PtlEQPoll(p->queue, POLLED, 0, &ev, &which) != PTL_EQ_EMPTY)
			bench_die(1,
				"PtlEQPoll finds an event; expected PTL_EQ_EMPTY; the "
				"library invents events");
}

static void get_full(struct program *p)
{
	ptl_event_t ev;
	for (unsigned i = 0; i < BATCH; i++) {
		bench_check(PtlEQGet(p->eq, &ev), "PtlEQGet");
		if (ev.hdr_data != i)
			bench_wrong(&p->b,
				"event %u has hdr_data %llu; expected %u; events are out "
				"of order",
				i, (unsigned long long)ev.hdr_data, i);
	}
}

static void wait_full(struct program *p)
{
	for (unsigned i = 0; i < BATCH; i++)
		bench_take(&p->w);
}

static void update_look(struct program *p)
{
	ptl_md_t old;
	for (unsigned i = 0; i < BATCH; i++)
		bench_check(
			PtlMDUpdate(p->md[0], &old, NULL, PTL_EQ_NONE), "PtlMDUpdate");
}

static void update_if_empty(struct program *p)
{
	ptl_md_t new = md_of(p);
	for (unsigned i = 0; i < BATCH; i++)
		bench_check(PtlMDUpdate(p->md[0], NULL, &new, p->eq), "PtlMDUpdate");
}

/* ---- before and after a batch, not timed ---- */

static void post_standing(struct program *p)
{
	uint64_t n = p->standing.value;
	p->posted = bench_allocate(n * sizeof *p->posted);
	for (p->head = 0; p->head < n; p->head++)
		p->posted[p->head] = attach_both(p, p->head);
}

static void remove_standing(struct program *p)
{
	for (uint64_t i = 0; i < p->standing.value; i++)
		bench_check(PtlMEUnlink(p->posted[i]), "PtlMEUnlink");
	free(p->posted);
}

static void bind_one(struct program *p)
{
	bench_check(PtlMDBind(p->b.ni, md_of(p), PTL_RETAIN, &p->md[0]), "PtlMDBind");
}

static void unbind_one(struct program *p)
{
	bench_check(PtlMDUnlink(p->md[0]), "PtlMDUnlink");
}

static void open_queues(struct program *p)
{
	for (unsigned i = 0; i < POLLED; i++)
		p->queue[i] = bench_queue(&p->b, 64);
}

static void close_queues(struct program *p)
{
	for (unsigned i = 0; i < POLLED; i++)
		bench_check(PtlEQFree(p->queue[i]), "PtlEQFree");
}

static void receive(struct program *p)
{
	p->me[0] = bench_post(&p->b, PORTAL, BENCH_BITS, PTL_MD_OP_PUT, NULL, 0, p->eq);
}

static void receive_no_more(struct program *p)
{
	bench_check(PtlMEUnlink(p->me[0]), "PtlMEUnlink");
}

/* Put BATCH messages to oneself.  All have arrived when all events are counted. */
static void fill_queue(struct program *p)
{
	ptl_sr_value_t before, now = 0;
	PtlNIStatus(p->b.ni, PTL_SR_RECV_COUNT, &before);
	for (unsigned i = 0; i < BATCH; i++)
		bench_check(PtlPut(p->empty, PTL_NO_ACK_REQ, p->self, PORTAL, 0,
				    BENCH_BITS, 0, i),
			"PtlPut");
	while (now - before < BATCH) {
		PtlProgress(p->b.ni, 0);
		bench_check(PtlNIStatus(p->b.ni, PTL_SR_RECV_COUNT, &now), "PtlNIStatus");
	}
}

/* Time whole messages, from PtlPut until PUT_END is taken. */
static void put_to_oneself(struct program *p)
{
	for (unsigned i = 0; i < BATCH; i++) {
		bench_check(PtlPut(p->empty, PTL_NO_ACK_REQ, p->self, PORTAL, 0,
				    BENCH_BITS, 0, i),
			"PtlPut");
		bench_take(&p->w);
	}
}

/* ---- */

static const struct test {
	const char *name;
	void (*timed)(struct program *), (*before_each)(struct program *);
	void (*open)(struct program *), (*close)(struct program *);
} tests[] = {
	{"MEAttach+MDAttach+MEUnlink", me_md_unlink, NULL, NULL, NULL},
	{"MEMDAttach+MEUnlink", memd_unlink, NULL, NULL, NULL},
	{"posted stream", posted_stream, NULL, post_standing, remove_standing},
	{"MDBind+MDUnlink", bind_unlink, NULL, NULL, NULL},
	{"MDUpdate, look", update_look, NULL, bind_one, unbind_one},
	{"MDUpdate, if empty", update_if_empty, NULL, bind_one, unbind_one},
	{"EQAlloc+EQFree", queue_alloc_free, NULL, NULL, NULL},
	{"EQGet, empty", get_empty, NULL, NULL, NULL},
	{"EQPoll of 3, empty", poll_empty, NULL, open_queues, close_queues},
	{"EQGet, full", get_full, fill_queue, receive, receive_no_more},
	{"EQWait, full", wait_full, fill_queue, receive, receive_no_more},
	{"Put to oneself, EQWait", put_to_oneself, NULL, receive, receive_no_more},
};

static bool is_wanted(const struct program *p, const struct test *t)
{
	return !p->calls || strstr(t->name, p->calls);
}

static void want_lines(const struct program *p)
{
	for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
		if (is_wanted(p, &tests[i]))
			return;
	if (p->b.rank == 0)
		fprintf(stderr,
			"cmdperf: --calls: '%s'; expected text of a line, as in "
			"EQGet\n",
			p->calls);
	bench_leave(2);
}

static void print(struct program *p, const char *name, const struct bench_stat *s)
{
	char what[32];
	snprintf(what, sizeof what, "%-26s", name);
	BENCH_ROW(&p->b, BENCH_TEXT("calls                     ", what),
		BENCH_COUNT("samples", s->n), BENCH_REAL("p50_ns", s->p50, 1),
		BENCH_REAL("p90_ns", s->p90, 1), BENCH_REAL("p99_ns", s->p99, 1),
		BENCH_REAL("max_ns", s->max, 1), BENCH_REAL("min_ns", s->min, 1),
		BENCH_REAL("M_per_s", 1e3 / s->p50, 3));
}

static double time_batch(struct program *p, const struct test *t)
{
	if (t->before_each)
		t->before_each(p);
	double begin = bench_now_ns();
	t->timed(p);
	return (bench_now_ns() - begin) / BATCH;
}

static void run(struct program *p, const struct test *t, double *sample)
{
	uint64_t batches = p->batches.value;
	if (t->open)
		t->open(p);
	bench_barrier();
	for (uint64_t i = 0; i < batches / 10 + 1; i++)
		time_batch(p, t);
	for (uint64_t i = 0; i < batches; i++)
		sample[i] = time_batch(p, t);
	if (t->close)
		t->close(p);
	struct bench_stat s = bench_stat_of(sample, batches);
	if (p->b.rank == 0)
		print(p, t->name, &s);
	bench_barrier();
}

static const char about[] = "usage: yod -sz 1 cmdperf [options]\n"
			    "Cost of the calls that post, unlink, update and read.\n";

static const char legend[] =
	"Time of one line's calls, by batches of 64.  Posted stream: attach an entry and "
	"its descriptor\n"
	"at the end of a list of --standing receives, unlink the oldest.\n";

static void parse(struct program *p, int argc, char **argv)
{
	const struct bench_option rows[] = {
		{"batches", "N", "of 64, for each line; default 2000",
			"batches, 1 to 65536", bench_set_number, &p->batches},
		{"standing", "N", "receives on the list of the posted stream; default 64",
			"entries, 1 to 100000", bench_set_number, &p->standing},
		{"calls", "TEXT", "only the lines that contain it; default all",
			"text of a line", bench_set_text, &p->calls},
		{NULL, NULL, NULL, NULL, NULL, NULL}};
	bench_options(&p->b, rows, argc, argv);
	want_lines(p);
	if (p->b.quick && p->batches.value > 20)
		p->batches.value = 20;
}

static void open_node(struct program *p)
{
	p->anyone = (ptl_process_id_t){PTL_NID_ANY, PTL_PID_ANY};
	p->self = bench_id(&p->b, p->b.rank);
	p->w.eq = p->eq = bench_queue(&p->b, 4 * BATCH);
	p->empty = bench_bind(&p->b, NULL, 0, PTL_EQ_NONE);
	bench_watch_reset(&p->w, BENCH_LOSE_NONE);
}

int main(int argc, char **argv)
{
	static struct program p = {
		.b = {.program = "cmdperf", .about = about, .legend = legend},
		.batches = {2000, 1, MOST_BATCHES},
		.standing = {64, 1, MOST_STANDING}};
	ptl_ni_limits_t much = {.max_mes = 1 << 17,
		.max_mds = 1 << 17,
		.max_me_list = 1 << 17,
		.max_eqs = 256};
	p.b.desired = &much;
	parse(&p, argc, argv);
	open_node(&p);
	bench_begin(&p.b);
	double *sample = bench_allocate(p.batches.value * sizeof *sample);
	for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
		if (is_wanted(&p, &tests[i]))
			run(&p, &tests[i], sample);
	free(sample);
	bench_finish(&p.b);
}
