/* SPDX-License-Identifier: BSD-3-Clause */
/* The clocks of several hosts: estimates, and the order of causes and effects. */
#include <stddef.h>
#include <stdint.h>

#include "launcher/tools/options.h"
#include "launcher/tracedump/tracedump.h"
#include "support/cases.h"

#include <stdlib.h>
#include <string.h>

enum { HOSTS = 3, MESSAGES = 200, MOST = 8 * MESSAGES, LEAST_NS = 900, MOST_NS = 5000 };

struct world {
	struct td_trace t;
	struct td_block block[HOSTS]; /* node i is on host i */
	struct td_file file[HOSTS];
	struct td_event event[MOST];
	int64_t ahead[HOSTS];
	double faster[HOSTS]; /* drift of the clocks */
};

void p3_tool_say(const char *fmt, ...)
{
	(void)fmt;
}

static void begin(struct world *w)
{
	memset(w, 0, sizeof *w);
	w->t = (struct td_trace){.size = HOSTS,
		.nfiles = HOSTS,
		.file = w->file,
		.nblocks = HOSTS,
		.block = w->block,
		.event = w->event};
	for (uint32_t i = 0; i < HOSTS; i++)
		w->block[i].file = w->block[i].node = i;
}

static void add(struct world *w, uint16_t node, uint16_t peer, enum p3_trace_point point,
	uint32_t name, int64_t at)
{
	bool in = point == P3_TRACE_TAKE || point == P3_TRACE_ANSWER;
	double ns = (double)at * (1 + w->faster[node]);
	w->event[w->t.nevents++] = (struct td_event){.ns = (int64_t)ns + w->ahead[node],
		.block = node,
		.e = {.node = node,
			.peer = peer,
			.which = name,
			.point = (uint8_t)point,
			.ring = P3_TRACE_FW,
			.in = in}};
}

static int64_t latency(void)
{
	return LEAST_NS + rand() % (MOST_NS - LEAST_NS);
}

/* Send messages each 10 us; with answers, each is answered at once. */
static void talk(struct world *w, uint16_t from, uint16_t to, bool answers)
{
	for (uint32_t i = 0; i < MESSAGES; i++) {
		int64_t at = 10000 * (int64_t)i, there = at + latency();
		add(w, from, to, P3_TRACE_SEND, i + 1, at);
		add(w, to, from, P3_TRACE_TAKE, i + 1, there);
		if (!answers)
			continue;
		add(w, to, from, P3_TRACE_ANSWER, i + 1, there + 100);
		add(w, from, to, P3_TRACE_ANSWERED, i + 1, there + 100 + latency());
	}
}

static int by_time(const void *x, const void *y)
{
	const struct td_event *a = x, *b = y;
	return (a->ns > b->ns) - (a->ns < b->ns);
}

static void merge(struct world *w)
{
	qsort(w->event, w->t.nevents, sizeof w->event[0], by_time);
	assert_int_equal(td_merge(&w->t), 0);
}

/* Return the number of messages and answers that come before they were sent. */
static uint32_t paradoxes(const struct world *w)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < w->t.nevents; i++)
		for (uint32_t k = 0; k < w->t.nevents; k++) {
			const struct td_event *a = &w->event[i], *b = &w->event[k];
			bool pair = (a->e.point == P3_TRACE_SEND &&
					    b->e.point == P3_TRACE_TAKE) ||
				    (a->e.point == P3_TRACE_ANSWER &&
					    b->e.point == P3_TRACE_ANSWERED);
			n += pair && a->e.which == b->e.which && a->e.node == b->e.peer &&
			     a->e.peer == b->e.node && b->ns <= a->ns;
		}
	return n;
}

static void assert_right(const struct world *w, uint32_t host)
{
	const struct td_file *f = &w->file[host];
	assert_true(f->known);
	assert_in_range(f->error, 0, 2 * MOST_NS);
	assert_in_range(llabs(f->ahead - (w->ahead[host] - w->ahead[0])), 0, f->error);
}

CASE(test_answers)
{
	static struct world w;
	(void)state;
	begin(&w);
	w.ahead[1] = INT64_C(5000000000000);
	w.ahead[2] = -INT64_C(70000000);
	talk(&w, 0, 1, true);
	talk(&w, 1, 2, true); /* 2 is known by 1 only */
	merge(&w);
	assert_right(&w, 1);
	assert_right(&w, 2);
	assert_int_equal(paradoxes(&w), 0);
	assert_int_equal(w.file[1].moved + w.file[2].moved, 0);
}

CASE(test_one_direction)
{
	static struct world w;
	(void)state;
	begin(&w);
	w.ahead[1] = 12345678;
	talk(&w, 0, 1, false);
	merge(&w);
	assert_true(w.file[1].known && w.file[1].error == TD_ERROR_UNKNOWN);
	assert_in_range(llabs(w.file[1].ahead - w.ahead[1]), 0, MOST_NS);
	assert_false(w.file[2].known);
	assert_int_equal(paradoxes(&w), 0);
}

/* A clock that drifts by more than the latency in the time of the trace: no offset is
 * right for all messages. */
CASE(test_drift)
{
	static struct world w;
	(void)state;
	begin(&w);
	w.ahead[1] = 1000000;
	w.faster[1] = 0.02;
	talk(&w, 0, 1, true);
	merge(&w);
	assert_int_equal(paradoxes(&w), 0);
	assert_true(w.file[0].moved + w.file[1].moved > 0);
	assert_in_range(w.file[1].moved_most + w.file[0].moved_most, 1, 100000);
	for (uint32_t i = 0; i < w.t.nevents; i++)
		for (uint32_t k = i + 1; k < w.t.nevents; k++)
			if (w.event[k].block == w.event[i].block)
				assert_true(w.event[k].ns >= w.event[i].ns);
}

/* Two lives of a node use a name twice: that name tells nothing. */
CASE(test_names_of_two_lives)
{
	static struct world w;
	(void)state;
	begin(&w);
	w.ahead[1] = 1000;
	talk(&w, 0, 1, true);
	add(&w, 0, 1, P3_TRACE_SEND, 1, -INT64_C(1000000000));
	add(&w, 1, 0, P3_TRACE_TAKE, 1, -INT64_C(999000000));
	merge(&w);
	assert_right(&w, 1);
	assert_int_equal(w.file[1].moved, 0);
	assert_int_equal(w.event[0].ns, 0);
}
