/* SPDX-License-Identifier: BSD-3-Clause */
/* The frame of the conformance suite: jobs, checks, results. */
#include "spec.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SPEC_STATEMENTS = 267, SPEC_NODES = 64 };

struct test {
	int number;
	const char *name;
	bool weak;
	spec_fn *fn;
};

/*
 * State that the nodes share in any state of the library: a barrier, and the result of
 * the present test.
 */
#define JOB_FILE "SPEC_JOB_FILE" /* variable with the name of its file */

struct job {
	_Atomic uint32_t arrived, phase;
	_Atomic uint32_t ended;   /* nodes that have finished their part of the test */
	_Atomic uint32_t failed;  /* a check of the test failed */
	_Atomic uint32_t skipped; /* nodes that skipped the test */
	_Atomic uint32_t up;      /* nodes with an initialized library */
	_Atomic uint32_t bare;    /* nodes in the barrier without an interface */
	_Atomic uint32_t said;    /* words of spec_say() */
	_Atomic uint64_t told;    /* B's value */
	ptl_process_id_t id[SPEC_NODES];
};

struct spec_thread {
	pthread_t id;
	void (*fn)(void *arg);
	void *arg;
	struct spec_thread *next;
};

struct block {
	struct block *next;
	_Alignas(16) unsigned char bytes[];
};

struct spec spec;

static struct test tests[SPEC_STATEMENTS + 1];
static struct {
	const char *name;
	spec_fn *fn;
} children[8];
static unsigned children_n;
static struct job *job;
static const struct test *now;
static struct spec_thread *threads;
static struct block *blocks;
static const char *skip_reason;
static bool keep_going; /* after a failure the next test follows */
static bool failed_firmly;
static bool is_up;

/* The place to which this thread gives up its part of the test. */
static _Thread_local jmp_buf *give_up;

void spec_register(int number, const char *name, bool weak, spec_fn *fn)
{
	if (number < 1 || number > SPEC_STATEMENTS || tests[number].fn) {
		fprintf(stderr, "statement %d is out of range or twice there\n", number);
		exit(1);
	}
	tests[number] = (struct test){number, name, weak, fn};
}

void spec_register_child(const char *name, spec_fn *fn)
{
	if (children_n == sizeof children / sizeof children[0])
		abort();
	children[children_n].name = name;
	children[children_n++].fn = fn;
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

void spec_fail(const char *file, int line, const char *format, ...)
{
	char text[600];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	fprintf(stderr, "# %d %s: node %u of %u: %s:%d: %s%s\n", now ? now->number : 0,
		now ? now->name : "between tests", spec.rank, spec.size, base_name(file),
		line, text, now && now->weak ? " (weak)" : "");
	fflush(stderr);
	if (now && job && (now->weak || keep_going) && give_up) {
		job->failed = 1u;
		longjmp(*give_up, 1);
	}
	if (now)
		print_line("not ok", "", "");
	_exit(1);
}

void spec_skip(const char *reason)
{
	skip_reason = reason;
	if (give_up)
		longjmp(*give_up, 1);
	spec_fail(__FILE__, __LINE__, "spec_skip() in no test");
}

void spec_note(const char *format, ...)
{
	char text[400];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	printf("# %d %s: node %u: %s\n", now->number, now->name, spec.rank, text);
	fflush(stdout);
}

/* ---- the job's barrier ---- */

static void futex_wait(_Atomic uint32_t *word, uint32_t value)
{
	(void)syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

static void futex_wake_all(_Atomic uint32_t *word)
{
	(void)syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void step(void)
{
	uint32_t phase = job->phase;
	if (++job->arrived == spec.size) {
		job->arrived = 0;
		job->phase++;
		futex_wake_all(&job->phase);
		return;
	}
	for (int spins = 0; job->phase == phase; spins++)
		if (spins < 50)
			sched_yield();
		else
			futex_wait(&job->phase, phase);
}

/* Return true if the library's barrier needs an interface, which this node has not: under
 * a launcher other than yod. */
static bool is_bare(void)
{
	ptlx_stats_t st = {.struct_size = sizeof st};
	return getenv(JOB_FILE) && PtlXStats(spec.ni, &st) != PTL_OK;
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

static struct job *map_job(int fd)
{
	CHECK(fd >= 0);
	void *at =
		mmap(NULL, sizeof(struct job), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(at != MAP_FAILED);
	close(fd);
	return at;
}

/* Map a file that the test has made: the hosts of tests/hosts share the machine's files,
 * and no other memory. */
static struct job *open_job_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	CHECK(fd < 0 || ftruncate(fd, sizeof(struct job)) == 0);
	return map_job(fd);
}

static struct job *open_job(void)
{
	const char *path = getenv(JOB_FILE);
	if (path)
		return open_job_file(path);
	char name[64];
	snprintf(name, sizeof name, "/p3_spec.%d", (int)getppid());
	if (spec.rank == 0)
		(void)shm_unlink(name);
	else
		CHECK_OK(PtlXBarrier());
	int fd = shm_open(name, O_RDWR | (spec.rank ? 0 : O_CREAT | O_EXCL), 0600);
	CHECK(fd < 0 || spec.rank || ftruncate(fd, sizeof(struct job)) == 0);
	struct job *at = map_job(fd);
	if (spec.rank == 0)
		CHECK_OK(PtlXBarrier());
	CHECK_OK(PtlXBarrier());
	if (spec.rank == 0)
		(void)shm_unlink(name);
	return at;
}

/* ---- threads, memory, time ---- */

static void *thread_main(void *arg)
{
	struct spec_thread *t = arg;
	jmp_buf here;
	give_up = &here;
	if (setjmp(here) == 0)
		t->fn(t->arg);
	return NULL;
}

struct spec_thread *spec_start(void (*fn)(void *arg), void *arg)
{
	struct spec_thread *t = calloc(1, sizeof *t);
	CHECK(t);
	*t = (struct spec_thread){.fn = fn, .arg = arg, .next = threads};
	CHECK(pthread_create(&t->id, NULL, thread_main, t) == 0);
	threads = t;
	return t;
}

void spec_join(struct spec_thread *t)
{
	struct spec_thread **at = &threads;
	while (*at && *at != t)
		at = &(*at)->next;
	CHECK(*at);
	CHECK(pthread_join(t->id, NULL) == 0);
	*at = t->next;
	free(t);
}

static void join_all(void)
{
	while (threads)
		spec_join(threads);
}

void *spec_alloc(size_t len)
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

uint64_t spec_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void spec_sleep_ms(unsigned ms)
{
	struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};
	while (nanosleep(&t, &t) != 0)
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
	skip_reason = NULL;
	spec_up(NULL);
	free_blocks();
	spec_barrier();
	spec.a = job->id[0];
	spec.b = job->id[spec.size > 1];
	step();
}

/* ---- additional processes ---- */

static void child_main(const char *name)
{
	for (unsigned i = 0; i < children_n; i++)
		if (strcmp(children[i].name, name) == 0) {
			spec = (struct spec){.size = 1, .is_a = true, .is_b = true};
			children[i].fn();
			exit(0);
		}
	exit(2);
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
	return patience_is_over(p) || (spec_ms() - since >= 500 && job->failed);
}

void spec_say(void)
{
	job->said++;
}

void spec_hear(unsigned n)
{
	struct patience p = patience_begin();
	uint64_t since = spec_ms();
	while (job->said < n) {
		if (is_hopeless(&p, since))
			spec_fail(__FILE__, __LINE__, "the other node says nothing");
		spec_sleep_ms(1);
	}
}

ptl_event_t spec_next(const char *file, int line, ptl_handle_eq_t eq)
{
	ptl_event_t ev;
	struct patience p = patience_begin();
	uint64_t since = spec_ms();
	int which, rc;
	do
		rc = PtlEQPoll(&eq, 1, 250, &ev, &which);
	while (rc == PTL_EQ_EMPTY && !is_hopeless(&p, since));
	if (rc == PTL_EQ_EMPTY)
		spec_fail(file, line, "no event comes");
	if (rc != PTL_OK)
		spec_fail(file, line, "waiting for an event gives %s",
			PtlErrorStr((unsigned)rc));
	return ev;
}

ptl_event_t spec_expect(
	const char *file, int line, ptl_handle_eq_t eq, ptl_event_kind_t kind)
{
	ptl_event_t ev = spec_next(file, line, eq);
	if (ev.type != kind)
		spec_fail(file, line, "the event is %s, not %s", PtlEventKindStr(ev.type),
			PtlEventKindStr(kind));
	if (ev.ni_fail_type != PTL_NI_OK)
		spec_fail(file, line, "%s says %s", PtlEventKindStr(kind),
			PtlNIFailStr(spec.ni, ev.ni_fail_type));
	return ev;
}

void spec_silence(const char *file, int line, ptl_handle_eq_t eq)
{
	ptl_event_t ev;
	int which, rc = PtlEQPoll(&eq, 1, 20, &ev, &which);
	if (rc == PTL_OK || rc == PTL_EQ_DROPPED)
		spec_fail(file, line, "%s comes, and nothing should",
			PtlEventKindStr(ev.type));
	if (rc != PTL_EQ_EMPTY)
		spec_fail(file, line, "waiting for nothing gives %s",
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
	uint64_t since = spec_ms(), drops = spec_drops();
	while (drops < count && !is_hopeless(&p, since)) {
		spec_sleep_ms(1);
		drops = spec_drops();
	}
	if (drops == count) {
		/* pause: time for a further message to be dropped wrongly */
		spec_sleep_ms(20);
		drops = spec_drops();
	}
	if (drops != count)
		spec_fail(file, line, "%llu messages were dropped, not %llu",
			(unsigned long long)drops, (unsigned long long)count);
}

/* ---- data ---- */

unsigned char spec_byte(unsigned seed, size_t i)
{
	uint64_t x = (i + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)seed << 32;
	x ^= x >> 29;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	return (unsigned char)(x >> 56);
}

void spec_fill(void *at, size_t len, unsigned seed)
{
	unsigned char *bytes = at;
	for (size_t i = 0; i < len; i++)
		bytes[i] = spec_byte(seed, i);
}

void spec_check_bytes(const char *file, int line, const void *at, size_t from, size_t len,
	unsigned seed)
{
	const unsigned char *bytes = at;
	for (size_t i = 0; i < len; i++)
		if (bytes[i] != spec_byte(seed, from + i))
			spec_fail(file, line, "byte %zu of %zu is %#x, not %#x", i, len,
				bytes[i], spec_byte(seed, from + i));
}

void spec_check_zero(const char *file, int line, const void *at, size_t len)
{
	const unsigned char *bytes = at;
	for (size_t i = 0; i < len; i++)
		if (bytes[i])
			spec_fail(file, line, "byte %zu of %zu is %#x, not 0", i, len,
				bytes[i]);
}

/* ---- a run ---- */

static void report(void)
{
	bool failed = job->failed;
	failed_firmly |= failed && !now->weak;
	if (spec.rank != 0)
		return;
	const char *directive = "", *why = "";
	if (!failed && job->skipped) {
		directive = " # SKIP ";
		why = skip_reason ? skip_reason : "by another node";
	} else if (now->weak) {
		directive = " # TODO ";
		why = "weak evidence";
	}
	print_line(failed ? "not ok" : "ok", directive, why);
}

static void run(const struct test *test)
{
	jmp_buf here;
	now = test;
	fresh_interface();
	give_up = &here;
	if (setjmp(here) == 0)
		test->fn();
	if (skip_reason)
		job->skipped++;
	give_up = NULL;
	join_all();
	end_part();
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

/* Refuse numbers of which this program has no statement: it would test nothing. */
static void want_statements(int planned)
{
	if (planned)
		return;
	if (spec.rank == 0)
		fprintf(stderr, "no statement of this program has such a number; "
				"docs/conformance.md lists them\n");
	PtlFini();
	exit(2);
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
	job = open_job();
}

int main(int argc, char **argv)
{
	int planned = 0;
	if (argc == 3 && strcmp(argv[1], "child") == 0)
		child_main(argv[2]);
	keep_going = getenv("SPEC_KEEP_GOING") != NULL;
	who_am_i();
	for (int i = 1; i <= SPEC_STATEMENTS; i++)
		planned += is_wanted(i, argc, argv);
	want_statements(planned);
	if (spec.rank == 0)
		printf("1..%d\n", planned);
	for (int i = 1; i <= SPEC_STATEMENTS; i++)
		if (is_wanted(i, argc, argv))
			run(&tests[i]);
	step();
	PtlFini();
	return failed_firmly;
}
