/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two readers of one queue of the libfabric provider (lib/ofi/event.c), and events that
 * it has lost: another thread acts inside PtlEQPoll, or where a thread gives way, while
 * the domain is free.  Also the queues of a counter (lib/ofi/cntr.c).
 */
#include "lib/ofi/prov.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 16 };

struct ofi_node ofi_node;

static struct ofi_domain domain;
static struct ofi_queue queue;
static struct ofi_queue *const queues[] = {&queue};
static ptl_seq_t handled[MOST];
static unsigned handled_n;
static unsigned lost_before; /* sequence of the event in the queue that others precede */
static void (*others)(void); /* run once, at the next call that leaves the domain */
static ptl_seq_t polled;     /* the event that PtlEQPoll takes */
static ptl_seq_t next;       /* the event that PtlEQGet takes, 0: none */

static void sink_event(struct ofi_sink *sink, const ptl_event_t *event)
{
	(void)sink;
	assert_true(handled_n < MOST);
	handled[handled_n++] = event->sequence;
}
static struct ofi_sink sink = {sink_event};

/* ---- Portals ---- */

static int take(ptl_seq_t sequence, ptl_event_t *event)
{
	*event = (ptl_event_t){.sequence = sequence, .md.user_ptr = &sink};
	return sequence == lost_before ? PTL_EQ_DROPPED : PTL_OK;
}

static void run_others(void)
{
	void (*now)(void) = others;
	others = NULL;
	if (now)
		now();
}

int __wrap_PtlEQGet(ptl_handle_eq_t eq, ptl_event_t *event);
int __wrap_PtlEQGet(ptl_handle_eq_t eq, ptl_event_t *event)
{
	(void)eq;
	ptl_seq_t sequence = next;
	next = 0;
	return sequence ? take(sequence, event) : PTL_EQ_EMPTY;
}

int __wrap_PtlEQPoll(ptl_handle_eq_t *eqs, int size, ptl_time_t timeout,
	ptl_event_t *event, int *which);
int __wrap_PtlEQPoll(ptl_handle_eq_t *eqs, int size, ptl_time_t timeout,
	ptl_event_t *event, int *which)
{
	(void)eqs;
	(void)size;
	(void)timeout;
	*which = 0;
	int rc = take(polled, event);
	run_others();
	return rc;
}

int __wrap_sched_yield(void);
int __wrap_sched_yield(void)
{
	run_others();
	return 0;
}

/* ---- cases ---- */

static int begin(void **state)
{
	(void)state;
	domain = (struct ofi_domain){.lock = PTHREAD_MUTEX_INITIALIZER, .safe = true};
	queue = (struct ofi_queue){.domain = &domain, .started = true, .read = 2};
	TAILQ_INIT(&domain.watched);
	handled_n = lost_before = 0;
	next = 0;
	others = NULL;
	return 0;
}

/* Have another thread read the queue, in which this event comes next. */
static bool read_one(ptl_seq_t sequence)
{
	next = sequence;
	assert_int_equal(ofi_enter(&domain), 0);
	bool got = ofi_queue_step(&queue);
	ofi_leave(&domain);
	return got;
}

/* Sleep, and take this event; others act while the domain is free. */
static void sleep_one(ptl_seq_t sequence, void (*act)(void))
{
	polled = sequence;
	others = act;
	assert_int_equal(ofi_enter(&domain), 0);
	assert_true(ofi_sleep(&domain, queues, 1, -1));
	ofi_leave(&domain);
}

/* These events have been handled, in this order; the next one has its turn. */
static void expect(const ptl_seq_t *in_order, unsigned n, uint64_t lost)
{
	assert_int_equal(handled_n, n);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(handled[i], in_order[i]);
	assert_int_equal(queue.lost, lost);
	assert_int_equal(queue.sleepers, 0);
	assert_false(queue.has_early);
	ptl_seq_t turn = queue.read + 1;
	assert_true(read_one(turn));
	assert_int_equal(handled[n], turn);
}

static void read_4(void)
{
	assert_false(read_one(4));
	assert_int_equal(handled_n, 0);
}

static void test_order(void **state)
{
	(void)state;
	sleep_one(3, read_4);
	expect((ptl_seq_t[]){3, 4}, 2, 0);
	assert_int_equal(queue.read, 5);
}

static void read_10(void)
{
	assert_true(read_one(lost_before = 10));
}

/* The news that events were lost overtakes the sleeper's event. */
static void test_lost(void **state)
{
	(void)state;
	sleep_one(3, read_10);
	expect((ptl_seq_t[]){10, 3}, 2, 6);
	assert_int_equal(queue.read, 11);
}

static void read_4_sleep_10(void)
{
	read_4();
	lost_before = 10;
	sleep_one(10, NULL);
}

/* It comes to a second sleeper, while a third thread's event waits for its turn. */
static void test_lost_early(void **state)
{
	(void)state;
	sleep_one(3, read_4_sleep_10);
	expect((ptl_seq_t[]){4, 10, 3}, 3, 5);
	assert_int_equal(queue.read, 11);
}

static void give_way(void)
{
	others = read_10;
}

static void sleep_4(void)
{
	sleep_one(4, give_way);
}

/* It overtakes a sleeper that waits for the event of another sleeper. */
static void test_lost_turn(void **state)
{
	(void)state;
	sleep_one(3, sleep_4);
	expect((ptl_seq_t[]){10, 4, 3}, 3, 5);
	assert_int_equal(queue.read, 11);
}

/* ---- counters ---- */

/* A counter looks at a queue once, whatever its reasons, so that a thread that waits for
 * it can sleep in all queues. */
static void test_counted(void **state)
{
	static struct ofi_queue many[2 * OFI_ENDPOINTS];
	const int n = sizeof many / sizeof *many;
	struct ofi_cntr cntr = {.domain = &domain};
	(void)state;
	for (int i = 0; i < n * OFI_CNTRS; i++)
		assert_int_equal(ofi_cntr_watch(&cntr, &many[i % n]), 0);
	assert_int_equal(cntr.nqueues, n);
	for (int i = 0; i < n * OFI_CNTRS; i++) {
		assert_int_equal(cntr.nqueues, n - i / OFI_CNTRS);
		ofi_cntr_unwatch(&cntr, &many[i / OFI_CNTRS]);
	}
	assert_int_equal(cntr.nqueues, 0);
	free(cntr.queues);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_order, begin),
		cmocka_unit_test_setup(test_lost, begin),
		cmocka_unit_test_setup(test_lost_early, begin),
		cmocka_unit_test_setup(test_lost_turn, begin),
		cmocka_unit_test_setup(test_counted, begin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
