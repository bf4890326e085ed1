/* SPDX-License-Identifier: BSD-3-Clause */
/* The frame of GASNet's conformance suite: checks, results, nodes, data. */
#include "gn.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { THREADS = 64 };

const struct suite suite = {.statements = 167,
	.table = "docs/conformance-gasnet.md",
	.outside = "scene",
	.status = 99};

struct gn gn;
struct gn_job *gn_job;

static bool failed_firmly, driver_failed;

/* ---- failure ---- */

const char *check_code(int rc)
{
	return gasnet_ErrorName(rc);
}

void suite_who(char *text, size_t n)
{
	snprintf(text, n, "node %u of %u", gn.rank, gn.size);
}

bool suite_failed(bool can_give_up)
{
	if (can_give_up && (suite_now->flags & WEAK || gn_program.is_driver)) {
		if (gn_program.is_driver)
			driver_failed = true;
		else
			gn_job->failed = 1;
		return true;
	}
	if (suite_now)
		suite_report(false, NULL);
	return false;
}

/* ---- waits ---- */

/* A thread that sleeps runs as soon as its time is over; one that yields comes behind all
 * programs that compute. */
static void gn_pause(void)
{
	const struct timespec nap = {.tv_nsec = 10000};
	(void)nanosleep(&nap, NULL); /* pause: between two looks for a state */
}

void gn_serve(const char *file, int line, struct patience *p, const char *cond)
{
	if (gasnet_AMPoll() != GASNET_OK)
		check_failed(file, line, "gasnet_AMPoll fails");
	if (patience_is_over(p))
		check_failed(file, line, "a wait in vain for: %s", cond);
	gn_pause();
}

void gn_look(const char *file, int line, struct patience *p, const char *cond)
{
	if (patience_is_over(p))
		check_failed(file, line, "a wait in vain for: %s", cond);
	gn_pause();
}

static void look_at_barrier(struct patience *p)
{
	gn_look(__FILE__, __LINE__, p, "all nodes at the barrier");
}

static void poll_at_barrier(struct patience *p)
{
	gn_serve(__FILE__, __LINE__, p, "all nodes at the barrier");
}

static void step(bool poll)
{
	meeting_come(
		&gn_job->meeting, gn.size, poll ? poll_at_barrier : look_at_barrier, 10);
}

/* Meet.  No node ends its part between the two steps: all get the same answer. */
static bool barrier_is_last(bool poll)
{
	step(poll);
	bool last = gn_job->ended == gn.size;
	step(poll);
	return last;
}

/* Let ThreadSanitizer see an order between this thread and this node's NIC thread that
 * goes through the other nodes.  A get goes out behind this thread's accesses, so the NIC
 * thread's later ones come behind them.  Its answer comes behind the puts and gets of the
 * other nodes, so this thread's later accesses come behind those of the NIC thread.  No
 * test that runs under ThreadSanitizer uses the last word of a segment otherwise. */
static void show_order(void)
{
#ifdef __SANITIZE_THREAD__
	uint64_t word;
	(void)gasnet_AMPoll();
	gasnet_get(&word, gn.next, gn_at(gn.next, gn.seg[gn.next].size - sizeof word),
		sizeof word);
#endif
}

void gn_barrier(void)
{
	show_order();
	(void)barrier_is_last(true);
	show_order();
}

void gn_meet(void)
{
	(void)barrier_is_last(false);
}

/* End this node's part; a node that ends early still comes to the barriers of the
 * others. */
static void end_part(void)
{
	gn_job->ended++;
	while (!barrier_is_last(true))
		;
}

/* ---- threads ---- */

static struct call {
	void (*fn)(unsigned nth);
	unsigned nth;
} calls[THREADS];
static unsigned calls_n;

static void thread_nth(void *arg)
{
	const struct call *c = arg;
	c->fn(c->nth);
}

void gn_thread(void (*fn)(unsigned nth), unsigned nth)
{
	CHECK(calls_n < THREADS);
	calls[calls_n] = (struct call){fn, nth};
	(void)thread_start(thread_nth, &calls[calls_n++]);
}

void gn_join(void)
{
	threads_join();
	calls_n = 0;
}

/* ---- data ---- */

size_t gn_below(uint64_t *seed, size_t n)
{
	return (size_t)(random_next(seed) % n);
}

uint64_t gn_seed(void)
{
	const char *text = getenv("GN_SEED");
	return text ? strtoull(text, NULL, 0) : 1;
}

void *gn_at(gasnet_node_t node, size_t offset)
{
	CHECK(offset <= gn.seg[node].size);
	return (char *)gn.seg[node].addr + offset;
}

void *gn_own(size_t offset)
{
	return gn_at(gn.rank, offset);
}

/* ---- the start of a node ---- */

void gn_know_nodes(void)
{
	gn.rank = gasnet_mynode();
	gn.size = gasnet_nodes();
	CHECK(gn.size <= GN_NODES);
	gn.is_a = gn.rank == 0;
	gn.b = gn.size > 1;
	gn.is_b = gn.rank == gn.b;
	gn.next = (gn.rank + 1) % gn.size;
	gn.before = (gn.rank + gn.size - 1) % gn.size;
}

#ifdef GASNET_SEGMENT_EVERYTHING
/* Let each node use an area of its memory as its segment. */
static void make_areas(uintptr_t size)
{
	struct patience p = patience_begin();
	size = size < GN_AREA_MOST ? size : GN_AREA_MOST;
	void *area = mmap(
		NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(area != MAP_FAILED);
	gn_job->area[gn.rank] = (uintptr_t)area;
	for (unsigned i = 0; i < gn.size; i++) {
		CHECK(!gn.seg[i].addr && gn.seg[i].size == (uintptr_t)-1);
		while (!gn_job->area[i])
			gn_look(__FILE__, __LINE__, &p, "the other nodes attach");
		gn.seg[i] = (gasnet_seginfo_t){(void *)gn_job->area[i], size};
	}
}
#else
static void make_areas(uintptr_t size)
{
	(void)size;
}
#endif

void gn_attach(uintptr_t segment)
{
	CHECK_OK(gasnet_attach(gn_program.table, gn_program.entries, segment, 0));
	CHECK_OK(gasnet_getSegmentInfo(gn.seg, (int)gn.size));
	make_areas(segment);
}

/* ---- a run ---- */

static void fresh_test(void)
{
	suite_skipped = NULL;
	driver_failed = false;
	suite_free();
	if (gn_program.is_driver) {
		gn_driver_reset();
		return;
	}
	show_order();
	step(true);
	if (gn.rank == 0) {
		gn_job->ended = gn_job->failed = gn_job->skipped = 0;
		for (int i = 0; i < GN_WORDS; i++)
			gn_job->word[i] = 0;
	}
	step(true);
	show_order();
}

static void run(const struct statement *test)
{
	fresh_test();
	suite_part(test->fn);
	gn_join();
	bool failed = driver_failed, skipped = suite_skipped != NULL;
	if (!gn_program.is_driver) {
		gn_job->skipped += skipped;
		end_part();
		failed = gn_job->failed;
		skipped = gn_job->skipped;
	}
	failed_firmly |= failed && !(test->flags & WEAK);
	const char *why = suite_skipped ? suite_skipped : "by another node";
	if (gn.rank == 0)
		suite_report(!failed, skipped ? why : NULL);
}

/* Run the statements that are wanted; return false if none is. */
static bool run_all(int argc, char **argv)
{
	bool is_any = suite_plan(argc, argv, gn.rank == 0);
	suite_run(argc, argv, run);
	return is_any;
}

static void start_node(int *argc, char ***argv)
{
	if (getenv(SUITE_FILE))
		(void)atexit(PtlFini); /* it logs the frames between hosts */
	CHECK_OK(gasnet_init(argc, argv));
	gn_know_nodes();
	gn_job = meeting_open("gn_suite", sizeof *gn_job, gn.size);
	gn_attach(gn_program.segment ? gn_program.segment : GN_SEGMENT);
}

ptl_handle_ni_t gn_interface(void)
{
	ptl_handle_ni_t ni;
	int rc = PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni);
	CHECK(rc == PTL_OK || rc == PTL_IFACE_DUP);
	return ni;
}

/* Add up the messages that the nodes have dropped; print the sum. */
static bool nothing_was_dropped(void)
{
	ptl_sr_value_t drops = -1;
	gn_barrier();
	if (gn.rank == 0)
		gn_job->word[0] = 0;
	gn_barrier();
	CHECK_EQ(PtlNIStatus(gn_interface(), PTL_SR_DROP_COUNT, &drops), PTL_OK);
	gn_job->word[0] += (uint64_t)drops;
	gn_barrier();
	if (gn.rank == 0)
		printf("# drops: %llu\n", (unsigned long long)gn_job->word[0]);
	return gn_job->word[0] == 0;
}

static _Noreturn void run_job(int argc, char **argv)
{
	start_node(&argc, &argv);
	gn_meet();
	if (gn_program.whole)
		gn_program.whole(argc, argv);
	else
		failed_firmly = !run_all(argc, argv) || failed_firmly;
	bool is_right = nothing_was_dropped();
	if (!is_right && gn.rank == 0)
		printf("Bail out! messages were dropped\n");
	(void)barrier_is_last(true); /* no node ends while another one gets from it */
	/* The other way to end: PTL3_FAULT=count, and PtlFini, print then. */
	if (gn_program.whole || getenv(SUITE_FILE))
		exit(failed_firmly || !is_right);
	gasnet_exit(failed_firmly || !is_right);
	_exit(98);
}

int main(int argc, char **argv)
{
	if (argc > 2 && strcmp(argv[1], "scene") == 0)
		gn_run_scene(argc, argv);
	if (!gn_program.is_driver)
		run_job(argc, argv);
	gn_driver_init();
	return !run_all(argc, argv) || failed_firmly;
}
