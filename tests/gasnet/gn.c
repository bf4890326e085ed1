/* SPDX-License-Identifier: BSD-3-Clause */
/* The frame of GASNet's conformance suite: checks, results, nodes, data. */
#include "gn.h"
#include "frame.h"

#include <portals3.h>

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define JOB_FILE "GN_JOB_FILE" /* variable with the name of the job's file on hosts */

enum { THREADS = 64 };

struct test {
	int number;
	const char *name;
	bool weak;
	gn_fn *fn;
};

struct block {
	struct block *next;
	_Alignas(16) unsigned char bytes[];
};

struct gn gn;
struct gn_job *gn_job;

static struct test tests[GN_STATEMENTS + 1];
static const struct test *now;
static struct block *blocks;
static const char *skip_reason;
static bool failed_firmly, driver_failed;
static struct thread {
	pthread_t id;
	void (*fn)(unsigned nth);
	unsigned nth;
} threads[THREADS];
static unsigned threads_n;

/* The place to which this thread gives up its part of the test. */
static _Thread_local jmp_buf *give_up;

void gn_register(int number, const char *name, bool weak, gn_fn *fn)
{
	if (number < 1 || number > GN_STATEMENTS || tests[number].fn) {
		fprintf(stderr, "statement %d is out of range or twice there\n", number);
		exit(1);
	}
	tests[number] = (struct test){number, name, weak, fn};
}

/* ---- failure ---- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static void print_line(const char *verdict, const char *directive, const char *why)
{
	printf("%s %d - %s%s%s\n", verdict, now->number, now->name, directive, why);
	fflush(stdout);
}

void gn_fail(const char *file, int line, const char *format, ...)
{
	char text[1000];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	fprintf(stderr, "# %d %s: node %u of %u: %s:%d: %s%s\n", now ? now->number : 0,
		now ? now->name : "scene", gn.rank, gn.size, base_name(file), line, text,
		now && now->weak ? " (weak)" : "");
	fflush(stderr);
	if (now && give_up && (now->weak || gn_program.is_driver)) {
		if (gn_program.is_driver)
			driver_failed = true;
		else
			gn_job->failed = 1;
		longjmp(*give_up, 1);
	}
	if (now)
		print_line("not ok", "", "");
	_exit(99);
}

void gn_skip(const char *reason)
{
	skip_reason = reason;
	if (give_up)
		longjmp(*give_up, 1);
	gn_fail(__FILE__, __LINE__, "gn_skip() in no test");
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
		gn_fail(file, line, "gasnet_AMPoll fails");
	if (patience_is_over(p))
		gn_fail(file, line, "a wait in vain for: %s", cond);
	gn_pause();
}

void gn_look(const char *file, int line, struct patience *p, const char *cond)
{
	if (patience_is_over(p))
		gn_fail(file, line, "a wait in vain for: %s", cond);
	gn_pause();
}

static void futex_wait(_Atomic uint32_t *word, uint32_t value)
{
	const struct timespec limit = {1, 0};
	(void)syscall(SYS_futex, word, FUTEX_WAIT, value, &limit, NULL, 0);
}

static void futex_wake_all(_Atomic uint32_t *word)
{
	(void)syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void await_phase(uint32_t phase, bool poll)
{
	struct patience p = patience_begin();
	while (gn_job->phase == phase)
		if (poll)
			gn_serve(__FILE__, __LINE__, &p, "all nodes at the barrier");
		else
			futex_wait(&gn_job->phase, phase);
}

static void step(bool poll)
{
	uint32_t phase = gn_job->phase;
	if (++gn_job->arrived == gn.size) {
		gn_job->arrived = 0;
		gn_job->phase++;
		futex_wake_all(&gn_job->phase);
	} else {
		await_phase(phase, poll);
	}
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

/* ---- threads, memory, time ---- */

static void *thread_main(void *arg)
{
	struct thread *t = arg;
	jmp_buf here;
	give_up = &here;
	if (setjmp(here) == 0)
		t->fn(t->nth);
	return NULL;
}

void gn_thread(void (*fn)(unsigned nth), unsigned nth)
{
	CHECK(threads_n < THREADS);
	struct thread *t = &threads[threads_n++];
	*t = (struct thread){.fn = fn, .nth = nth};
	CHECK(pthread_create(&t->id, NULL, thread_main, t) == 0);
}

void gn_join(void)
{
	while (threads_n)
		CHECK(pthread_join(threads[--threads_n].id, NULL) == 0);
}

void *gn_alloc(size_t len)
{
	struct block *b = calloc(1, sizeof *b + len);
	CHECK(b);
	b->next = blocks;
	blocks = b;
	return b->bytes;
}

static void free_blocks(void)
{
	while (blocks) {
		struct block *b = blocks;
		blocks = b->next;
		free(b);
	}
}

uint64_t gn_us(void)
{
	return patience_now() / 1000;
}

uint64_t gn_ms(void)
{
	return patience_now() / 1000000;
}

void gn_sleep_ms(unsigned ms)
{
	struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};
	while (nanosleep(&t, &t) != 0)
		;
}

void gn_compute_ms(unsigned ms)
{
	for (uint64_t until = gn_ms() + ms; gn_ms() < until;)
		;
}

/* ---- data ---- */

uint64_t gn_next(uint64_t *seed)
{
	uint64_t x = (*seed += UINT64_C(0x9e3779b97f4a7c15));
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

size_t gn_below(uint64_t *seed, size_t n)
{
	return (size_t)(gn_next(seed) % n);
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

unsigned char gn_byte(unsigned seed, size_t i)
{
	uint64_t x = (i + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)seed << 32;
	x ^= x >> 29;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	return (unsigned char)(x >> 56);
}

void gn_fill(void *at, size_t len, unsigned seed)
{
	unsigned char *bytes = at;
	for (size_t i = 0; i < len; i++)
		bytes[i] = gn_byte(seed, i);
}

void gn_check_bytes(const char *file, int line, const void *at, size_t len, unsigned seed)
{
	const unsigned char *bytes = at;
	for (size_t i = 0; i < len; i++)
		if (bytes[i] != gn_byte(seed, i))
			gn_fail(file, line, "byte %zu of %zu is %#x, not %#x", i, len,
				bytes[i], gn_byte(seed, i));
}

void gn_check_all(const char *file, int line, const void *at, size_t len, int value)
{
	const unsigned char *bytes = at;
	for (size_t i = 0; i < len; i++)
		if (bytes[i] != (unsigned char)value)
			gn_fail(file, line, "byte %zu of %zu is %#x, not %#x", i, len,
				bytes[i], (unsigned char)value);
}

/* ---- the start of a node ---- */

static struct gn_job *map_job(int fd)
{
	CHECK(fd >= 0);
	CHECK(ftruncate(fd, sizeof(struct gn_job)) == 0);
	void *at = mmap(
		NULL, sizeof(struct gn_job), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(at != MAP_FAILED);
	close(fd);
	return at;
}

struct gn_job *gn_map_job(const char *name, int flags)
{
	return map_job(shm_open(name, O_RDWR | flags, 0600));
}

/* Return the time at which a process began: with its number it names the process for
 * ever. */
static unsigned long long began(int pid)
{
	char path[40], text[600];
	unsigned long long ticks = 0;
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	FILE *f = fopen(path, "re");
	const char *rest = f && fgets(text, sizeof text, f) ? strrchr(text, ')') : NULL;
	if (f)
		fclose(f);
	CHECK(rest && sscanf(rest,
			      ") %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
			      "%*s %*s %*s %*s %*s %llu",
			      &ticks) == 1);
	return ticks;
}

/* The name goes away when the last node has come.  One of a job that was killed stays. */
static void open_named_job(void)
{
	char name[64];
	int parent = (int)getppid();
	snprintf(name, sizeof name, "/gn_suite.%d.%llu", parent, began(parent));
	gn_job = gn_map_job(name, O_CREAT);
	if (++gn_job->opened == gn.size)
		shm_unlink(name);
}

/* JOB_FILE names an empty file that the test has made: the hosts of tests/hosts share the
 * machine's files, and no other memory. */
static void open_job(void)
{
	const char *path = getenv(JOB_FILE);
	if (path) {
		gn_job = map_job(open(path, O_RDWR | O_CLOEXEC));
		gn_job->opened++;
	} else {
		open_named_job();
	}
	AWAIT(gn_job->opened >= gn.size);
}

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

static void report(void)
{
	bool failed = gn_program.is_driver ? driver_failed : gn_job->failed != 0;
	bool skipped = gn_program.is_driver ? skip_reason != NULL : gn_job->skipped != 0;
	failed_firmly |= failed && !now->weak;
	if (gn.rank != 0)
		return;
	const char *directive = "", *why = "";
	if (!failed && skipped) {
		directive = " # SKIP ";
		why = skip_reason ? skip_reason : "by another node";
	} else if (now->weak) {
		directive = " # TODO ";
		why = "weak evidence";
	}
	print_line(failed ? "not ok" : "ok", directive, why);
}

static void fresh_test(void)
{
	skip_reason = NULL;
	driver_failed = false;
	free_blocks();
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

static void run(const struct test *test)
{
	jmp_buf here;
	now = test;
	fresh_test();
	give_up = &here;
	if (setjmp(here) == 0)
		test->fn();
	give_up = NULL;
	gn_join();
	if (!gn_program.is_driver) {
		if (skip_reason)
			gn_job->skipped++;
		end_part();
	}
	report();
	now = NULL;
}

static bool is_wanted(int number, int argc, char **argv)
{
	if (!tests[number].fn)
		return false;
	for (int i = 1; i < argc; i++)
		if (atoi(argv[i]) == number)
			return true;
	return argc < 2;
}

static void run_all(int argc, char **argv)
{
	int planned = 0;
	for (int i = 1; i <= GN_STATEMENTS; i++)
		planned += is_wanted(i, argc, argv);
	if (gn.rank == 0)
		printf("1..%d\n", planned);
	for (int i = 1; i <= GN_STATEMENTS; i++)
		if (is_wanted(i, argc, argv))
			run(&tests[i]);
}

static void start_node(int *argc, char ***argv)
{
	if (getenv(JOB_FILE))
		(void)atexit(PtlFini); /* it logs the frames between hosts */
	CHECK_OK(gasnet_init(argc, argv));
	gn_know_nodes();
	open_job();
	gn_attach(gn_program.segment ? gn_program.segment : GN_SEGMENT);
}

/* Return the interface that GASNet uses, too. */
static ptl_handle_ni_t interface(void)
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
	CHECK_EQ(PtlNIStatus(interface(), PTL_SR_DROP_COUNT, &drops), PTL_OK);
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
		run_all(argc, argv);
	bool is_right = nothing_was_dropped();
	if (!is_right && gn.rank == 0)
		printf("Bail out! messages were dropped\n");
	(void)barrier_is_last(true); /* no node ends while another one gets from it */
	/* The other way to end: PTL3_FAULT=count, and PtlFini, print then. */
	if (gn_program.whole || getenv(JOB_FILE))
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
	run_all(argc, argv);
	return failed_firmly;
}
