/* SPDX-License-Identifier: BSD-3-Clause */
/* The frame of the conformance suite: jobs, checks, results. */
#include "spec.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SPEC_NODES = 64 };

const struct suite suite = {.statements = 267,
	.table = "docs/conformance.md",
	.outside = "between tests",
	.status = 1};

/*
 * State that the nodes share in any state of the library: a barrier, and the result of
 * the present test.
 */
struct job {
	struct meeting meeting;
	_Atomic uint32_t ended;   /* nodes that have finished their part of the test */
	_Atomic uint32_t failed;  /* a check of the test failed */
	_Atomic uint32_t skipped; /* nodes that skipped the test */
	_Atomic uint32_t up;      /* nodes with an initialized library */
	_Atomic uint32_t bare;    /* nodes in the barrier without an interface */
	_Atomic uint32_t said;    /* words of spec_say() */
	_Atomic uint64_t told;    /* B's value */
	ptl_process_id_t id[SPEC_NODES];
};

struct spec spec;

static struct job *job;
static bool keep_going; /* after a failure the next test follows */
static bool failed_firmly;
static bool is_up;

/* ---- failure ---- */

const char *check_code(int rc)
{
	return PtlErrorStr((unsigned)rc);
}

void suite_who(char *text, size_t n)
{
	snprintf(text, n, "node %u of %u", spec.rank, spec.size);
}

bool suite_failed(bool can_give_up)
{
	if (can_give_up && job && (suite_now->flags & WEAK || keep_going)) {
		job->failed = 1u;
		return true;
	}
	if (suite_now)
		suite_report(false, NULL);
	return false;
}

void spec_note(const char *format, ...)
{
	char text[400];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	printf("# %d %s: node %u: %s\n", suite_now->number, suite_now->name, spec.rank,
		text);
	fflush(stdout);
}

/* ---- the job's barrier ---- */

static void step(void)
{
	meeting_come(&job->meeting, spec.size, NULL, 1000000);
}

/* Return true if the library's barrier needs an interface, which this node has not: under
 * a launcher other than yod. */
static bool is_bare(void)
{
	ptlx_stats_t st = {.struct_size = sizeof st};
	return getenv(SUITE_FILE) && PtlXStats(spec.ni, &st) != PTL_OK;
}

/*
 * Meet.  No node ends its part, and no library starts or ends, between the two steps:
 * all nodes get the same answers.  The library's own barrier makes sure that behind it
 * all nodes know the interfaces that were opened before.
 */
static bool barrier_is_last(void)
{
	bool bare = is_bare();
	job->bare += bare;
	step();
	bool last = job->ended == spec.size;
	bool all_up = job->up == spec.size && !job->bare;
	step();
	job->bare -= bare;
	if (all_up)
		CHECK_OK(PtlXBarrier());
	return last;
}

void spec_barrier(void)
{
	(void)barrier_is_last();
}

uint64_t spec_told(uint64_t value_of_b)
{
	spec_barrier();
	if (spec.is_b)
		job->told = value_of_b;
	spec_barrier();
	return job->told;
}

/* End this node's part; a node that ends early still comes to the barriers of the
 * others. */
static void end_part(void)
{
	job->ended++;
	while (!barrier_is_last())
		;
}

/* ---- the library and the interface ---- */

static void close_all(void)
{
	int rc = PtlNIFini(spec.ni);
	CHECK(rc == PTL_OK || rc == PTL_NI_INVALID || rc == PTL_NO_INIT);
	ptl_handle_ni_t other;
	if (rc != PTL_NO_INIT && spec.second != PTL_INVALID_HANDLE &&
		PtlNIHandle(spec.second, &other) == PTL_OK)
		CHECK_OK(PtlNIFini(spec.second));
	spec.ni = spec.second = PTL_INVALID_HANDLE;
}

static void set_up(bool up)
{
	if (job && is_up != up) {
		is_up = up;
		job->up += up ? 1u : -1u;
	}
}

void spec_down(void)
{
	set_up(false);
	PtlFini();
	spec.ni = spec.second = PTL_INVALID_HANDLE;
}

void spec_up(const ptl_ni_limits_t *desired)
{
	int most;
	ptl_ni_limits_t wish;
	CHECK_OK(PtlInit(&most));
	close_all();
	if (desired)
		wish = *desired;
	CHECK_OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, desired ? &wish : NULL,
		&spec.limits, &spec.ni));
	CHECK_OK(PtlGetId(spec.ni, &spec.self));
	set_up(true);
	if (job)
		job->id[spec.rank] = spec.self;
	if (spec.is_a)
		spec.a = spec.self;
	if (spec.is_b)
		spec.b = spec.self;
}

ptl_handle_ni_t spec_second(void)
{
	int rc = PtlNIInit(PTL_IFACE_SS, PTL_PID_ANY, NULL, NULL, &spec.second);
	CHECK(rc == PTL_OK || rc == PTL_IFACE_DUP);
	return spec.second;
}

static void fresh_interface(void)
{
	if (PtlNIFini(spec.ni) == PTL_NO_INIT)
		spec_up(NULL);
	close_all();
	step(); /* no old message finds a new interface */
	if (spec.rank == 0) {
		job->ended = 0;
		job->said = 0;
		job->failed = 0;
		job->skipped = 0;
	}
	suite_skipped = NULL;
	spec_up(NULL);
	suite_free();
	spec_barrier();
	spec.a = job->id[0];
	spec.b = job->id[spec.size > 1];
	step();
}

/* ---- additional processes ---- */

static void child_main(const char *name)
{
	spec = (struct spec){.size = 1, .is_a = true, .is_b = true};
	exit(scene_run(name) ? 0 : 2);
}

void spec_child(const char *name)
{
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		(void)unsetenv("PTL3_YOD_FD");
		(void)setenv("PTL3_LAUNCHED", "off", 1);
		execl("/proc/self/exe", "spec", "child", name, (char *)NULL);
		_exit(126);
	}
	int status = 0;
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_EQ(status, 0);
}

/* ---- Portals calls in one line ---- */

ptl_process_id_t spec_any(void)
{
	return (ptl_process_id_t){PTL_NID_ANY, PTL_PID_ANY};
}

ptl_handle_eq_t spec_eq(ptl_size_t events)
{
	ptl_handle_eq_t eq;
	CHECK_OK(PtlEQAlloc(spec.ni, events, PTL_EQ_HANDLER_NONE, &eq));
	return eq;
}

bool spec_cray(void)
{
	const char *personality = getenv("PTL3_PERSONALITY");
	return personality && strcmp(personality, "cray") == 0;
}

ptl_md_t spec_md(void *start, ptl_size_t length, unsigned options, ptl_handle_eq_t eq)
{
	return (ptl_md_t){.start = start,
		.length = length,
		.threshold = PTL_MD_THRESH_INF,
		.options = options | (spec_cray() ? PTL_MD_EVENT_AUTO_UNLINK_ENABLE : 0),
		.eq_handle = eq};
}

ptl_handle_me_t spec_me(ptl_match_bits_t bits)
{
	ptl_handle_me_t me;
	CHECK_OK(PtlMEAttach(
		spec.ni, SPEC_PT, spec_any(), bits, 0, PTL_RETAIN, PTL_INS_AFTER, &me));
	return me;
}

ptl_handle_md_t spec_target(ptl_match_bits_t bits, ptl_md_t md)
{
	ptl_handle_md_t handle;
	CHECK_OK(PtlMDAttach(spec_me(bits), md, PTL_RETAIN, &handle));
	return handle;
}

ptl_handle_md_t spec_bind(ptl_md_t md, ptl_unlink_t unlink)
{
	ptl_handle_md_t handle;
	CHECK_OK(PtlMDBind(spec.ni, md, unlink, &handle));
	return handle;
}

void spec_put(ptl_handle_md_t md, ptl_ack_req_t ack, ptl_match_bits_t bits)
{
	int rc;
	while ((rc = PtlPut(md, ack, spec.b, SPEC_PT, 0, bits, 0, 0)) == PTL_NO_SPACE)
		sched_yield();
	CHECK_OK(rc);
}

void spec_get(ptl_handle_md_t md, ptl_match_bits_t bits)
{
	int rc;
	while ((rc = PtlGet(md, spec.b, SPEC_PT, 0, bits, 0)) == PTL_NO_SPACE)
		sched_yield();
	CHECK_OK(rc);
}

/* Return true if another node has given up the test, so that its events will not come, or
 * the time is over. */
static bool is_hopeless(struct patience *p, uint64_t since)
{
	return patience_is_over(p) || (now_ms() - since >= 500 && job->failed);
}

void spec_say(void)
{
	job->said++;
}

void spec_hear(unsigned n)
{
	struct patience p = patience_begin();
	uint64_t since = now_ms();
	while (job->said < n) {
		if (is_hopeless(&p, since))
			check_failed(__FILE__, __LINE__, "the other node says nothing");
		sleep_ms(1);
	}
}

ptl_event_t spec_next(const char *file, int line, ptl_handle_eq_t eq)
{
	ptl_event_t ev;
	struct patience p = patience_begin();
	uint64_t since = now_ms();
	int which, rc;
	do
		rc = PtlEQPoll(&eq, 1, 250, &ev, &which);
	while (rc == PTL_EQ_EMPTY && !is_hopeless(&p, since));
	if (rc == PTL_EQ_EMPTY)
		check_failed(file, line, "no event comes");
	if (rc != PTL_OK)
		check_failed(file, line, "waiting for an event gives %s",
			PtlErrorStr((unsigned)rc));
	return ev;
}

ptl_event_t spec_expect(
	const char *file, int line, ptl_handle_eq_t eq, ptl_event_kind_t kind)
{
	ptl_event_t ev = spec_next(file, line, eq);
	if (ev.type != kind)
		check_failed(file, line, "the event is %s, not %s",
			PtlEventKindStr(ev.type), PtlEventKindStr(kind));
	if (ev.ni_fail_type != PTL_NI_OK)
		check_failed(file, line, "%s says %s", PtlEventKindStr(kind),
			PtlNIFailStr(spec.ni, ev.ni_fail_type));
	return ev;
}

void spec_silence(const char *file, int line, ptl_handle_eq_t eq)
{
	ptl_event_t ev;
	int which, rc = PtlEQPoll(&eq, 1, 20, &ev, &which);
	if (rc == PTL_OK || rc == PTL_EQ_DROPPED)
		check_failed(file, line, "%s comes, and nothing should",
			PtlEventKindStr(ev.type));
	if (rc != PTL_EQ_EMPTY)
		check_failed(file, line, "waiting for nothing gives %s",
			PtlErrorStr((unsigned)rc));
}

uint64_t spec_drops(void)
{
	ptl_sr_value_t drops;
	CHECK_OK(PtlNIStatus(spec.ni, PTL_SR_DROP_COUNT, &drops));
	CHECK(drops >= 0);
	return (uint64_t)drops;
}

void spec_expect_drops(const char *file, int line, uint64_t count)
{
	struct patience p = patience_begin();
	uint64_t since = now_ms(), drops = spec_drops();
	while (drops < count && !is_hopeless(&p, since)) {
		sleep_ms(1);
		drops = spec_drops();
	}
	if (drops == count) {
		/* pause: time for a further message to be dropped wrongly */
		sleep_ms(20);
		drops = spec_drops();
	}
	if (drops != count)
		check_failed(file, line, "%llu messages were dropped, not %llu",
			(unsigned long long)drops, (unsigned long long)count);
}

/* ---- a run ---- */

static void run(const struct statement *test)
{
	fresh_interface();
	suite_part(test->fn);
	if (suite_skipped)
		job->skipped++;
	threads_join();
	end_part();
	bool failed = job->failed;
	failed_firmly |= failed && !(test->flags & WEAK);
	const char *why = suite_skipped ? suite_skipped : "by another node";
	if (spec.rank == 0)
		suite_report(!failed, job->skipped ? why : NULL);
}

static void who_am_i(void)
{
	int most;
	CHECK_OK(PtlInit(&most));
	if (PtlGetRank(PTL_INVALID_HANDLE, &spec.rank, &spec.size) != PTL_OK) {
		spec.rank = 0;
		spec.size = 1;
	}
	CHECK(spec.size <= SPEC_NODES);
	spec.is_a = spec.rank == 0;
	spec.is_b = spec.rank == (spec.size > 1);
	spec.ni = spec.second = PTL_INVALID_HANDLE;
	job = meeting_open("p3_spec", sizeof *job, spec.size);
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "child") == 0)
		child_main(argv[2]);
	keep_going = getenv("SPEC_KEEP_GOING") != NULL;
	who_am_i();
	if (!suite_plan(argc, argv, spec.rank == 0)) {
		PtlFini();
		return 2;
	}
	suite_run(argc, argv, run);
	step();
	PtlFini();
	return failed_firmly;
}
