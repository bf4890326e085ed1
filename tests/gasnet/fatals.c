/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Statements that need jobs of their own: tables of handlers, errors that end the job
 * with a message, very long puts.
 */
#include "gn.h"

#include <pthread.h>
#include <unistd.h>

enum { H_NONE = 128, H_OTHER, H_RULE, H_RULE_BACK, H_MISREPLY, H_UNKNOWN = 250 };

static void none(gasnet_token_t token);
static void other(gasnet_token_t token);
static void break_rule(gasnet_token_t token, gasnet_handlerarg_t rule);
static void break_rule_back(gasnet_token_t token, gasnet_handlerarg_t rule);
static void take_bytes(gasnet_token_t token, void *buf, size_t n);
static void reply_wrongly(gasnet_token_t token, gasnet_handlerarg_t handler);

static gasnet_handlerentry_t table[] = {{H_NONE, none}, {H_OTHER, take_bytes},
	{H_RULE, break_rule}, {H_RULE_BACK, break_rule_back},
	{H_MISREPLY, reply_wrongly}};
const struct gn_program gn_program = {.is_driver = true, GN_TABLE(table)};

static _Atomic unsigned nones, others;

static void none(gasnet_token_t token)
{
	(void)token;
	nones++;
}

static void other(gasnet_token_t token)
{
	(void)token;
	others++;
}

static void take_bytes(gasnet_token_t token, void *buf, size_t n)
{
	(void)token, (void)buf, (void)n;
}

/* ---- tables ---- */

static gasnet_handlerentry_t big[129];

/* Fill the table with entries of the indexes from the given one on; 0: any. */
static void fill_table(unsigned entries, unsigned first)
{
	for (unsigned i = 0; i < entries; i++) {
		big[i].index = (gasnet_handler_t)(first ? first + i : 0);
		big[i].fnptr = none;
	}
}

/* Arguments: entries, first index. */
SCENE(attaches_many)
{
	gn_scene_init();
	fill_table((unsigned)gn_number(0), (unsigned)gn_number(1));
	CHECK_OK(gasnet_attach(big, gn_number(0), GASNET_PAGESIZE, 0));
	for (int i = 0; i < gn_number(0); i++)
		CHECK_OK(gasnet_AMRequestShort0(gn.next, big[i].index));
	UNTIL(nones == (unsigned)gn_number(0));
	gn_scene_done();
}

/* Arguments: entries, first index, an index that replaces that of the last entry. */
SCENE(attaches_wrongly)
{
	gn_scene_init();
	fill_table((unsigned)gn_number(0), (unsigned)gn_number(1));
	if (gn_number(2))
		big[gn_number(0) - 1].index = (gasnet_handler_t)gn_number(2);
	gn_mark();
	int rc = gasnet_attach(big, gn_number(0), GASNET_PAGESIZE, 0);
	CHECK(rc != GASNET_OK);
	fprintf(stderr, "attach gives %s\n", gasnet_ErrorName(rc));
	gasnet_exit(3);
}

/* An entry without a function has an index of its own, too. */
SCENE(attaches_nothing)
{
	gn_scene_init();
	fill_table(3, 0);
	big[1].fnptr = NULL;
	CHECK_OK(gasnet_attach(big, 3, GASNET_PAGESIZE, 0));
	CHECK(big[0].index != big[1].index && big[1].index != big[2].index);
	CHECK_OK(gasnet_AMRequestShort0(gn.next, big[2].index));
	UNTIL(nones == 1);
	gn_scene_done();
}

#ifdef GASNET_DEBUG
SCENE(differs_in_offset)
{
	gn_scene_init();
	gn_mark();
	(void)gasnet_attach(NULL, 0, 0, gn.rank * GASNET_PAGESIZE);
	_exit(0); /* in vain */
}
#endif

STATEMENT(35, number_and_indexes_of_entries)
{
	CHECK_STATUS(gn_scene(2, "attaches_nothing"), 0);
#if defined(GASNET_DEBUG) && !defined(GASNET_SEGMENT_EVERYTHING)
	CHECK_FATAL(gn_scene(2, "differs_in_offset"));
#endif
	CHECK_STATUS(gn_scene(1, "attaches_many 128 128"), 0);
	CHECK_STATUS(gn_scene(2, "attaches_many 128 0"), 0);
	CHECK_FATAL(gn_scene(1, "attaches_wrongly 129 0 0"));   /* too many */
	CHECK_FATAL(gn_scene(1, "attaches_wrongly 2 140 140")); /* double */
	CHECK_FATAL(gn_scene(1, "attaches_wrongly 2 140 1"));   /* reserved */
	CHECK_FATAL(gn_scene(1, "attaches_wrongly 2 140 127"));
}

SCENE(different_tables)
{
	gasnet_handlerentry_t first[] = {{200, none}, {201, other}};
	gasnet_handlerentry_t second[] = {{200, other}, {202, none}};
	gn_scene_init();
	CHECK_OK(gasnet_attach(gn.rank & 1 ? second : first, 2, GASNET_PAGESIZE, 0));
	CHECK_OK(gasnet_AMRequestShort0(gn.next, 200));
	UNTIL(gn.rank & 1 ? others == 1 : nones == 1);
	CHECK_EQ(gn.rank & 1 ? nones : others, 0);
	gn_scene_meet(); /* no second request comes before all nodes have looked */
	CHECK_OK(gasnet_AMRequestShort0(gn.next, gn.next & 1 ? 202 : 201));
	UNTIL(nones == 1 && others == 1);
	gn_scene_meet();
	gn_scene_done();
}

STATEMENT(36, table_of_the_target_decides)
{
	CHECK_STATUS(gn_scene(2, "different_tables"), 0);
	CHECK_STATUS(gn_scene(8, "different_tables"), 0);
}

SCENE(unknown_handler)
{
	gn_scene_up();
	gn_scene_meet();
	gn_mark();
	if (gn.rank == 0)
		(void)gasnet_AMRequestShort0(gn.size - 1, H_UNKNOWN);
	for (;;)
		CHECK_OK(gasnet_AMPoll());
}

STATEMENT(37, unknown_index_ends_the_job)
{
	CHECK_FATAL(gn_scene(1, "unknown_handler"));
	CHECK_FATAL(gn_scene(3, "unknown_handler"));
}

/* ---- arguments ---- */

/* Report an error that the call returned; release builds need not end the job. */
static void told(int rc)
{
	CHECK_RC(rc, GASNET_ERR_BAD_ARG);
	fprintf(stderr, "the call gives GASNET_ERR_BAD_ARG\n");
	gasnet_exit(3);
}

static int call_wrongly(int which)
{
	static char bytes[8];
	size_t medium = gasnet_AMMaxMedium() + 1, most = gasnet_AMMaxLongRequest() + 1;
	switch (which) {
	case 0:
		return gasnet_AMRequestShort0(gn.size, H_NONE);
	case 1:
		return gasnet_AMRequestMedium0(gn.size + 7, H_OTHER, bytes, 8);
	case 2:
		return gasnet_AMRequestMedium0(0, H_OTHER, bytes, medium);
	case 3:
		return gasnet_AMRequestLong0(0, H_OTHER, bytes, most, gn_at(0, 0));
	case 4:
		return gasnet_AMRequestLongAsync0(0, H_OTHER, bytes, most, gn_at(0, 0));
	case 5:
		return gasnet_AMRequestLong0(gn.size, H_OTHER, bytes, 8, gn_at(0, 0));
	case 6: /* handlers of the library */
		return gasnet_AMRequestShort0(0, 127);
	case 7:
		return gasnet_AMRequestMedium0(gn.rank, 66, bytes, 8);
	case 8: /* outside of the segment */
		return gasnet_AMRequestLong0(0, H_OTHER, bytes, 8, bytes);
	case 9:
		return gasnet_AMRequestLong0(
			0, H_OTHER, bytes, 8, (char *)gn_at(0, gn.seg[0].size) - 4);
	case 10:
		return gasnet_AMRequestLongAsync0(
			0, H_OTHER, bytes, 8, (char *)gn_at(0, 0) - 8);
	default:
		check_failed(__FILE__, __LINE__, "there is no case %d", which);
	}
}

SCENE(wrong_arguments)
{
	gn_scene_up();
	gn_scene_meet();
	gn_mark();
	if (gn.rank == gn.size - 1)
		told(call_wrongly(gn_number(0)));
	for (;;)
		CHECK_OK(gasnet_AMPoll());
}

/* A handler of the library gets no reply of the program, here or elsewhere. */
static void reply_wrongly(gasnet_token_t token, gasnet_handlerarg_t handler)
{
	told(gasnet_AMReplyShort0(token, (gasnet_handler_t)handler));
}

/* Arguments: the handler of the reply, and the node that is to reply. */
SCENE(wrong_reply)
{
	gn_scene_up();
	gn_scene_meet();
	gn_mark();
	if (gn.rank == 0)
		CHECK_OK(gasnet_AMRequestShort1(
			(gasnet_node_t)gn_number(1), H_MISREPLY, gn_number(0)));
	for (;;)
		CHECK_OK(gasnet_AMPoll());
}

/* Operations without a return code, with a node that is not there. */
SCENE(wrong_node)
{
	static char bytes[8];
	gn_scene_up();
	gasnet_node_t node = gn.size;
	gn_mark();
	switch (gn_number(0)) {
	case 0:
		gasnet_put(node, gn_at(0, 0), bytes, 8);
		break;
	case 1:
		gasnet_get(bytes, node, gn_at(0, 0), 8);
		break;
	case 2:
		gasnet_wait_syncnb(gasnet_put_nb_bulk(node, gn_at(0, 0), bytes, 8));
		break;
	case 3:
		gasnet_memset(node, gn_at(0, 0), 0, 8);
		break;
	default:
		(void)gasnet_get_val(node, gn_at(0, 0), 8);
	}
	_exit(0); /* in vain */
}

static void check_wrong(int from, int to)
{
	for (int i = from; i <= to; i++)
		CHECK_FATAL(gn_scene(2, "wrong_arguments %d", i));
}

static void check_wrong_nodes(void)
{
	for (int i = 0; i < 5; i++) {
		struct gn_run *r = gn_scene(2, "wrong_node %d", i);
		CHECK_FATAL(r);
		CHECK(strstr(r->err, "node 2"));
	}
}

/* Lists of different total lengths; in debug builds a target outside of the segment. */
SCENE(wrong_lists)
{
	static char bytes[64];
	bool outside = gn_number(0);
	gn_scene_up();
	gn_mark();
	gasnet_memvec_t to = {outside ? bytes : (char *)gn_at(0, 0), 32};
	gasnet_memvec_t from = {bytes, outside ? 32 : 31};
	gasnet_putv_bulk(0, 1, &to, 1, &from);
	_exit(0); /* in vain */
}

STATEMENT(61, wrong_node_and_too_many_bytes)
{
	check_wrong(0, 7);
	check_wrong_nodes();
	CHECK_FATAL(gn_scene(2, "wrong_reply 0 0"));
	CHECK_FATAL(gn_scene(2, "wrong_reply 0 1"));
	CHECK_FATAL(gn_scene(2, "wrong_reply 127 1"));
	CHECK_FATAL(gn_scene(1, "wrong_lists 0"));
	if (GN_IS_DEBUG && GN_HAS_SEGMENT)
		CHECK_FATAL(gn_scene(1, "wrong_lists 1"));
}

STATEMENT(62, long_outside_of_the_segment)
{
	NEED_SEGMENT();
	check_wrong(8, 10);
}

/* ---- rules of locks and sections ---- */

static gasnet_hsl_t a = GASNET_HSL_INITIALIZER, b = GASNET_HSL_INITIALIZER;

/* Poll until the handler ends the job; the driver's limit ends a job that goes on. */
static _Noreturn void request_rule(int rule)
{
	CHECK_OK(gasnet_AMRequestShort1(gn.rank, H_RULE, rule));
	for (;;)
		CHECK_OK(gasnet_AMPoll());
}

static void break_lock_rule(int rule)
{
	gasnet_hsl_t c;
	switch (rule) {
	case 2:
		gasnet_hsl_init(&a);
		break;
	case 3:
		gasnet_hsl_init(&c);
		gasnet_hsl_destroy(&c);
		gasnet_hsl_destroy(&c);
		break;
	case 4:
		gasnet_hsl_unlock(&a);
		break;
	case 5:
		gasnet_hsl_lock(&a);
		gasnet_hsl_lock(&b);
		gasnet_hsl_unlock(&a);
		break;
	case 6:
		gasnet_hsl_lock(&a);
		gasnet_hsl_lock(&a);
		break;
	default:
		gasnet_hsl_lock(&a);
		(void)gasnet_hsl_trylock(&a);
	}
}

static void break_section_rule(int rule)
{
	switch (rule) {
	case 0:
		gasnet_hold_interrupts();
		gasnet_hold_interrupts();
		break;
	case 1:
		gasnet_resume_interrupts();
		break;
	case 8:
		gasnet_hsl_lock(&a);
		(void)gasnet_AMPoll();
		break;
	case 9:
		gasnet_hold_interrupts();
		(void)gasnet_AMPoll();
		break;
	default:
		gasnet_hsl_lock(&a);
		(void)gasnet_AMRequestShort0(gn.rank, H_NONE);
	}
}

/* Rules of GN.73: 0 to 12; of GN.74: 13 to 18. */
enum { RETURNS_LOCKED = 11, REPLIES_LOCKED, TWO_REPLIES, REPLY_OF_REPLY, REQUESTS, PUTS };
enum { POLLS = PUTS + 1, WAITS };

static void break_rule(gasnet_token_t token, gasnet_handlerarg_t rule)
{
	if (rule == RETURNS_LOCKED || rule == REPLIES_LOCKED)
		gasnet_hsl_lock(&a);
	if (rule != RETURNS_LOCKED && rule != REQUESTS && rule != PUTS && rule != POLLS &&
		rule != WAITS)
		(void)gasnet_AMReplyShort1(token, H_RULE_BACK, rule);
	if (rule == TWO_REPLIES)
		(void)gasnet_AMReplyShort1(token, H_RULE_BACK, 0);
	if (rule == REQUESTS)
		(void)gasnet_AMRequestShort0(gn.rank, H_NONE);
	if (rule == PUTS)
		gasnet_put_val(gn.rank, gn_own(0), 1, 1);
	if (rule == POLLS)
		(void)gasnet_AMPoll();
	if (rule == WAITS)
		gasnet_barrier_notify(0, 0);
}

static void break_rule_back(gasnet_token_t token, gasnet_handlerarg_t rule)
{
	if (rule == REPLY_OF_REPLY)
		(void)gasnet_AMReplyShort0(token, H_NONE);
}

SCENE(breaks_rule)
{
	gn_scene_up();
	gn_mark();
	int rule = gn_number(0);
	if (rule >= RETURNS_LOCKED)
		request_rule(rule);
	else if (rule >= 2 && rule <= 7)
		break_lock_rule(rule);
	else
		break_section_rule(rule);
	_exit(0); /* in vain */
}

static void check_rules(int from, int to)
{
	for (int i = from; i <= to; i++)
		CHECK_FATAL(gn_scene(1, "breaks_rule %d", i));
}

STATEMENT(73, rules_of_locks_and_sections)
{
	NEED_DEBUG();
	check_rules(0, REPLIES_LOCKED);
}

STATEMENT(74, rules_of_handlers)
{
	NEED_DEBUG();
	check_rules(TWO_REPLIES, WAITS);
}

/* ---- a very long put ---- */

#define HUGE (((size_t)2 << 30) + 1)

SCENE(huge_put)
{
	gn_scene_init();
	uintptr_t bytes = gn.rank ? 0
				  : HUGE / GASNET_PAGESIZE * GASNET_PAGESIZE +
					    (uintptr_t)GASNET_PAGESIZE;
	CHECK_OK(gasnet_attach(table, 4, bytes, 0));
	CHECK_OK(gasnet_getSegmentInfo(gn.seg, (int)gn.size));
	if (gn.rank == gn.size - 1) {
		unsigned char *near = malloc(HUGE);
		CHECK(near);
		fill_bytes(near, HUGE, 83);
		gasnet_put_bulk(0, gn_at(0, 0), near, HUGE);
		free(near);
	}
	gasnet_barrier_notify(0, 0);
	CHECK_OK(gasnet_barrier_wait(0, 0));
	if (gn.rank == 0) {
		CHECK_BYTES(gn_at(0, 0), HUGE, 83);
		CHECK_ALL(gn_at(0, HUGE), bytes - HUGE, 0);
	}
	gn_scene_done();
}

WEAK_STATEMENT(83, very_long_put)
{
	size_t free_bytes = (size_t)sysconf(_SC_AVPHYS_PAGES) * GASNET_PAGESIZE;
	if (!getenv("GN_LONG") || free_bytes < 3 * HUGE)
		suite_skip("long runs only, with 6 GiB");
	CHECK_STATUS(gn_scene(2, "huge_put"), 0);
}

/* ---- barriers ---- */

SCENE(misuses_barrier)
{
	gn_scene_up();
	gn_scene_meet();
	gn_mark();
	switch (gn_number(0)) {
	case 0:
		gasnet_barrier_notify(1, 0);
		gasnet_barrier_notify(1, 0);
		break;
	case 1:
		(void)gasnet_barrier_wait(1, 0);
		break;
	case 2:
		(void)gasnet_barrier_try(1, 0);
		break;
	default:
		gasnet_barrier_notify(1, 0);
		CHECK_OK(gasnet_barrier_wait(1, 0));
		(void)gasnet_barrier_wait(1, 0);
	}
	_exit(0); /* in vain */
}

SCENE(asks_too_early)
{
	int id;
	gn_scene_init();
	gn_mark();
	(void)gasnet_barrier_result(&id);
	_exit(0); /* in vain */
}

STATEMENT(119, unpaired_notify_and_wait)
{
	for (int i = 0; i < 4; i++) {
		CHECK_FATAL(gn_scene(1, "misuses_barrier %d", i));
		CHECK_FATAL(gn_scene(3, "misuses_barrier %d", i));
	}
	CHECK_FATAL(gn_scene(1, "asks_too_early"));
}

/* ---- threads ---- */

static _Atomic unsigned alive;

static void *stay(void *arg)
{
	uint64_t value = 1;
	gasnet_wait_syncnb(gasnet_put_nb(gn.rank, gn_own(8), &value, 8));
	alive++;
	for (;;)
		pause();
	return arg;
}

/* This thread is one of them. */
SCENE(too_many_threads)
{
	gn_scene_up();
	gasnet_put_val(gn.rank, gn_own(0), 1, 8);
	gn_mark();
	for (int i = 1; i <= gn_number(0); i++) {
		pthread_t id;
		CHECK_EQ(pthread_create(&id, NULL, stay, NULL), 0);
		AWAIT(alive == (unsigned)i);
	}
	gasnet_exit(0);
}

STATEMENT(128, too_many_threads)
{
	NEED_PAR();
	gn_env("GASNET_MAX_THREADS", "8");
	CHECK_STATUS(gn_scene(2, "too_many_threads 7"), 0);
	gn_env("GASNET_MAX_THREADS", "8");
	CHECK_FATAL(gn_scene(2, "too_many_threads 8"));
}
