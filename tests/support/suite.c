/* SPDX-License-Identifier: BSD-3-Clause */
/* The frame of a conformance suite. */
#include "suite.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STATEMENTS_MOST = 300, SCENES_MOST = 128, SPINS = 50 };

struct thread {
	pthread_t id;
	void (*fn)(void *arg);
	void *arg;
	struct thread *next;
};

struct block {
	struct block *next;
	_Alignas(16) unsigned char bytes[];
};

const struct statement *suite_now;
const char *suite_skipped;

static struct statement statements[STATEMENTS_MOST];
static struct {
	const char *name;
	suite_fn *fn;
} scenes[SCENES_MOST];
static unsigned scenes_n;
static struct thread *threads;
static struct block *blocks;

/* The place to which this thread gives up its part of the test. */
static _Thread_local jmp_buf *give_up;

/* ---- statements ---- */

void statement_add(
	int number, const char *name, unsigned processes, int flags, suite_fn *fn)
{
	if (number < 1 || number > suite.statements || number >= STATEMENTS_MOST ||
		statements[number].fn) {
		fprintf(stderr, "statement %d is out of range or twice there\n", number);
		exit(1);
	}
	statements[number] = (struct statement){number, name, processes, flags, fn};
}

const struct statement *statement_of(int number)
{
	return &statements[number];
}

void scene_add(const char *name, suite_fn *fn)
{
	if (scenes_n == SCENES_MOST)
		abort();
	scenes[scenes_n].name = name;
	scenes[scenes_n++].fn = fn;
}

bool scene_run(const char *name)
{
	for (unsigned i = 0; i < scenes_n; i++)
		if (strcmp(scenes[i].name, name) == 0) {
			scenes[i].fn();
			return true;
		}
	return false;
}

static bool is_wanted(int number, int argc, char **argv)
{
	if (!statements[number].fn)
		return false;
	for (int i = 1; i < argc; i++)
		if (atoi(argv[i]) == number)
			return true;
	return argc < 2;
}

int suite_plan(int argc, char **argv, bool prints)
{
	int planned = 0;
	for (int i = 1; i <= suite.statements; i++)
		planned += is_wanted(i, argc, argv);
	if (prints && planned)
		printf("1..%d\n", planned);
	else if (prints) /* it would test nothing */
		fprintf(stderr,
			"no statement of this program has such a number; "
			"%s lists them\n",
			suite.table);
	fflush(stdout);
	return planned;
}

void suite_run(int argc, char **argv, void (*run)(const struct statement *s))
{
	for (int i = 1; i <= suite.statements; i++)
		if (is_wanted(i, argc, argv)) {
			suite_now = &statements[i];
			run(suite_now);
			suite_now = NULL;
		}
}

void suite_report(bool good, const char *skipped)
{
	const char *directive = "", *why = "";
	if (good && skipped) {
		directive = " # SKIP ";
		why = skipped;
	} else if (suite_now->flags & WEAK) {
		directive = " # TODO ";
		why = "weak evidence";
	}
	printf("%s %d - %s%s%s\n", good ? "ok" : "not ok", suite_now->number,
		suite_now->name, directive, why);
	fflush(stdout);
}

/* ---- failure ---- */

void check_failed(const char *file, int line, const char *format, ...)
{
	char text[1000], who[60];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	suite_who(who, sizeof who);
	fprintf(stderr, "# %d %s: %s: %s:%d: %s%s\n", suite_now ? suite_now->number : 0,
		suite_now ? suite_now->name : suite.outside, who, check_base_name(file),
		line, text, suite_now && suite_now->flags & WEAK ? " (weak)" : "");
	fflush(stderr);
	if (suite_failed(suite_now && give_up))
		longjmp(*give_up, 1);
	_exit(suite.status);
}

void suite_skip(const char *reason)
{
	suite_skipped = reason;
	if (give_up)
		longjmp(*give_up, 1);
	check_failed(__FILE__, __LINE__, "suite_skip() in no test");
}

void suite_part(suite_fn *fn)
{
	jmp_buf here;
	give_up = &here;
	if (setjmp(here) == 0)
		fn();
	give_up = NULL;
}

/* ---- threads and memory ---- */

static void *thread_main(void *arg)
{
	struct thread *t = arg;
	jmp_buf here;
	give_up = &here;
	if (setjmp(here) == 0)
		t->fn(t->arg);
	return NULL;
}

struct thread *thread_start(void (*fn)(void *arg), void *arg)
{
	struct thread *t = calloc(1, sizeof *t);
	CHECK(t);
	*t = (struct thread){.fn = fn, .arg = arg, .next = threads};
	CHECK(pthread_create(&t->id, NULL, thread_main, t) == 0);
	threads = t;
	return t;
}

void thread_join(struct thread *t)
{
	struct thread **at = &threads;
	while (*at && *at != t)
		at = &(*at)->next;
	CHECK(*at);
	CHECK(pthread_join(t->id, NULL) == 0);
	*at = t->next;
	free(t);
}

void threads_join(void)
{
	while (threads)
		thread_join(threads);
}

void *suite_alloc(size_t len)
{
	struct block *b = calloc(1, sizeof *b + len);
	CHECK(b);
	b->next = blocks;
	blocks = b;
	return b->bytes;
}

void suite_free(void)
{
	while (blocks) {
		struct block *b = blocks;
		blocks = b->next;
		free(b);
	}
}

/* ---- processes that meet ---- */

void meeting_come(
	struct meeting *m, unsigned n, void (*look)(struct patience *p), unsigned nap_us)
{
	const struct timespec nap = {nap_us / 1000000, nap_us % 1000000 * 1000L};
	struct patience p = patience_times(2);
	uint32_t phase = m->phase;
	if (++m->arrived == n) {
		m->arrived = 0;
		m->phase++;
		(void)syscall(SYS_futex, &m->phase, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
		return;
	}
	for (int spins = 0; m->phase == phase; spins++) {
		if (look)
			look(&p);
		if (spins < SPINS)
			sched_yield();
		else
			(void)syscall(
				SYS_futex, &m->phase, FUTEX_WAIT, phase, &nap, NULL, 0);
	}
}

void *map_shared(int fd, size_t size)
{
	CHECK(fd >= 0);
	CHECK(ftruncate(fd, (off_t)size) == 0);
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(at != MAP_FAILED);
	close(fd);
	return at;
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

void *meeting_open(const char *name, size_t size, unsigned n)
{
	const char *path = getenv(SUITE_FILE);
	char own[80];
	int parent = (int)getppid();
	snprintf(own, sizeof own, "/%s.%d.%llu", name, parent, began(parent));
	struct meeting *m = map_shared(path ? open(path, O_RDWR | O_CLOEXEC)
					    : shm_open(own, O_RDWR | O_CREAT, 0600),
		size);
	/* The name goes away when the last process has come.  One of a job that was
	 * killed stays. */
	if (++m->opened == n && !path)
		shm_unlink(own);
	struct patience p = patience_begin();
	while (m->opened < n) {
		if (patience_is_over(&p))
			check_failed(__FILE__, __LINE__, "not all processes come");
		sleep_us(100);
	}
	return m;
}

/* ---- data ---- */

unsigned char byte_of(unsigned seed, size_t i)
{
	uint64_t x = (i + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)seed << 32;
	x ^= x >> 29;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	return (unsigned char)(x >> 56);
}

void fill_bytes(void *at, size_t len, unsigned seed)
{
	unsigned char *bytes = at;
	for (size_t i = 0; i < len; i++)
		bytes[i] = byte_of(seed, i);
}

void check_bytes(const char *file, int line, const void *at, size_t from, size_t len,
	unsigned seed)
{
	const unsigned char *bytes = at;
	for (size_t i = 0; i < len; i++)
		if (bytes[i] != byte_of(seed, from + i))
			check_failed(file, line, "byte %zu of %zu is %#x, not %#x", i,
				len, bytes[i], byte_of(seed, from + i));
}

void check_all(const char *file, int line, const void *at, size_t len, int value)
{
	const unsigned char *bytes = at;
	for (size_t i = 0; i < len; i++)
		if (bytes[i] != (unsigned char)value)
			check_failed(file, line, "byte %zu of %zu is %#x, not %#x", i,
				len, bytes[i], (unsigned char)value);
}
