/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shared - the effect of yod --shared-heap on a program: its long blocks of malloc lie
 * where peers read them, and all else is unchanged.  The scene heap has blocks of
 * PtlXAlloc, without that option.
 *
 * usage: mp_shared SCENE.  Two nodes put to and get from each other.  A scene expects
 * that all bytes came directly, or none.
 */
#include "mp.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { LENGTH = 300000, STACK = 256 << 10, BITS_IN = 1, BITS_OUT = 2 };

/* A sanitizer's malloc may be locked for ever in a child of a program with threads. */
#ifdef P3_SANITIZED
enum { FORKED_CHURN = 0 };
#else
enum { FORKED_CHURN = 10 };
#endif

extern char **environ;
static ptl_handle_eq_t eq, in_eq;

/* ---- messages ---- */

static uint64_t direct(void)
{
	ptlx_stats_t st = {.struct_size = sizeof st};
	mp_ok(PtlXStats(mp.ni, &st));
	return st.moved_direct_bytes;
}

/* Both nodes: put and get n bytes; return how many of the 2 n came directly. */
static uint64_t exchange(unsigned char *out, unsigned char *in, size_t n)
{
	static unsigned seed;
	unsigned other = 1 - mp.rank;
	uint64_t before = direct();
	mp_fill(out, n, ++seed + mp.rank);
	memset(in, 0, n);
	unsigned target = PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE;
	ptl_handle_md_t md[] = {mp_attach(BITS_IN, in, n, target | PTL_MD_OP_PUT, in_eq),
		mp_attach(BITS_OUT, out, n, target | PTL_MD_OP_GET, in_eq),
		mp_bind(out, n, eq, 0), mp_bind(in, n, eq, 0)};
	mp_barrier();
	mp_put(md[2], 0, n, PTL_NO_ACK_REQ, other, BITS_IN, 0, 0);
	(void)mp_expect(eq, PTL_EVENT_SEND_END);
	(void)mp_expect(in_eq, PTL_EVENT_PUT_END);
	mp_compare(in, n, seed + other, "put");
	memset(in, 0, n);
	mp_get(md[3], 0, n, other, BITS_OUT, 0);
	(void)mp_expect(eq, PTL_EVENT_REPLY_END);
	(void)mp_expect(in_eq, PTL_EVENT_GET_END);
	mp_compare(in, n, seed + other, "get");
	mp_barrier();
	for (unsigned i = 0; i < 4; i++)
		mp_ok(PtlMDUnlink(md[i]));
	return direct() - before;
}

static void come_direct(void *out, size_t n, const char *what)
{
	unsigned char *in = malloc(n);
	uint64_t got = exchange(out, in, n);
	mp_check(got == 2 * n, "%s: %llu bytes of 2 * %zu came direct", what,
		(unsigned long long)got, n);
	free(in);
}

static void come_otherwise(unsigned char *out, size_t n, const char *what)
{
	unsigned char *in = malloc(n);
	uint64_t got = exchange(out, in, n);
	mp_check(got == 0, "%s: %llu bytes of 2 * %zu came direct", what,
		(unsigned long long)got, n);
	free(in);
}

static void a_block_comes_direct(const char *what)
{
	unsigned char *out = malloc(LENGTH);
	come_direct(out, LENGTH, what);
	free(out);
}

static void a_block_comes_otherwise(const char *what)
{
	unsigned char *out = malloc(LENGTH);
	come_otherwise(out, LENGTH, what);
	free(out);
}

static void open_queues(void)
{
	eq = mp_queue(64);
	in_eq = mp_queue(64);
}

static void start(void)
{
	mp_start();
	mp_check(mp.size == 2, "%u nodes", mp.size);
	open_queues();
}

/* ---- children ---- */

static void succeed(pid_t pid, const char *what)
{
	int status;
	mp_check(pid > 0, "%s: %s", what, strerror(errno));
	mp_check(waitpid(pid, &status, 0) == pid && status == 0, "%s: status %#x", what,
		(unsigned)status);
}

static void churn(unsigned seed, unsigned rounds)
{
	enum { BLOCKS = 60 };
	unsigned char *b[BLOCKS];
	while (rounds--) {
		for (unsigned i = 0; i < BLOCKS; i++) {
			size_t n = (size_t)rand_r(&seed) % 60000 + 1;
			b[i] = i % 3 ? malloc(n) : calloc(1, n);
			mp_check(i % 3 || (!b[i][0] && !b[i][n - 1]),
				"calloc is not zero");
			if (i % 5 == 0)
				b[i] = realloc(b[i], n *= 3);
			mp_fill(b[i], n, i);
		}
		for (unsigned i = 0; i < BLOCKS; i++) {
			mp_compare(b[i], 1, i, "a block has changed");
			free(b[i]);
		}
	}
}

/* In the child: check that all is there and may be written, and malloc works. */
static void be_a_child(unsigned char *block, unsigned seed)
{
	mp_compare(block, LENGTH, seed, "in a child");
	memset(block, 0xee, LENGTH);
	churn(seed, FORKED_CHURN);
}

static void fork_with(unsigned char *block, unsigned seed, void (*give_back)(void *block))
{
	mp_fill(block, LENGTH, seed);
	pid_t pid = fork();
	if (!pid) {
		be_a_child(block, seed);
		if (give_back)
			give_back(block);
		_exit(0);
	}
	mp_compare(block, LENGTH, seed, "in the parent");
	succeed(pid, "a child");
	mp_compare(block, LENGTH, seed, "in the parent, behind the child");
}

static void fork_one(unsigned seed)
{
	unsigned char *block = malloc(LENGTH);
	fork_with(block, seed, free);
	free(block);
}

/* ---- scenes ---- */

static void all_calls(void)
{
	static const size_t sizes[] = {20000, 32768, 40000, 100000, 700000, 5000000};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		size_t n = sizes[i];
		void *at = NULL;
		come_direct(malloc(n), n, "malloc");
		come_direct(calloc(n, 1), n, "calloc");
		come_direct(realloc(malloc(100), n), n, "realloc of a short block");
		come_direct(realloc(malloc(n / 2), n), n, "realloc");
		come_direct(aligned_alloc(64, n / 64 * 64 + 64), n, "aligned_alloc");
		mp_check(!posix_memalign(&at, 8192, n) && (uintptr_t)at % 8192 == 0,
			"posix_memalign");
		come_direct(at, n, "posix_memalign");
		come_direct(strndup(memset(malloc(n + 1), 'x', n), n), n, "strndup");
	}
}

static void freed_blocks_are_used_again(void)
{
	for (unsigned i = 0; i < 3000; i++) {
		unsigned char *block = malloc(5 << 20);
		block[i] = 1;
		free(block);
	}
	a_block_comes_direct("after 15 GB");
	unsigned char *big = malloc(200 << 20);
	come_direct(big, LENGTH, "200 MiB");
	free(big);
	for (unsigned i = 0; i < 40; i++) { /* neighbours merge: else it would be full */
		big = malloc((size_t)(100 + 10 * i) << 20);
		free(big);
	}
	a_block_comes_direct("after blocks that grow");
}

/* This runs under PTL3_HEAP=8M. */
static void full_heap(void)
{
	enum { BLOCKS = 60 };
	unsigned char *b[BLOCKS], *in = malloc(LENGTH);
	uint64_t got[BLOCKS], sum = 0;
	for (unsigned i = 0; i < BLOCKS; i++) {
		b[i] = malloc(LENGTH);
		sum += got[i] = exchange(b[i], in, LENGTH);
	}
	mp_check(got[0] == 2 * LENGTH, "the first block is not in the heap");
	mp_check(got[BLOCKS - 1] == 0, "the heap holds more than it can");
	mp_check(sum > 2 * LENGTH, "only one block was in the heap");
	b[0] = realloc(b[0], 3 * LENGTH);
	come_otherwise(b[0], 3 * LENGTH, "moved out of the heap");
	for (unsigned i = 0; i < BLOCKS; i++)
		free(b[i]);
	unsigned char *big = malloc(20 << 20);
	come_otherwise(big, LENGTH, "longer than the heap");
	free(big);
	churn(1, 20);
	fork_one(5);
}

static void forks(void)
{
	FILE *open = fopen("/dev/null", "we"); /* libc looks at it in the child */
	a_block_comes_direct("before a fork");
	fork_one(1);
	for (unsigned i = 0; i < 10; i++) {
		a_block_comes_otherwise("between forks");
		fork_one(i);
	}
	pid_t pid = fork();
	if (!pid) { /* a child's child */
		fork_one(77);
		exit(0);
	}
	succeed(pid, "a child with a child");
	churn(1, 20);
	fclose(open);
}

/* The cost of a fork does not depend on the size, since nothing is copied. */
static void fork_with_much(void)
{
	size_t n = 300 << 20;
	unsigned char *much = malloc(n);
	come_direct(much + n - LENGTH, LENGTH, "300 MiB");
	much[0] = much[n - 1] = 7;
	uint64_t before = now_ns();
	pid_t pid = fork();
	if (!pid)
		_exit(much[0] != 7 || much[n - 1] != 7);
	printf("fork: %llu us\n", (unsigned long long)(now_ns() - before) / 1000);
	succeed(pid, "a child");
	a_block_comes_otherwise("behind the fork");
	free(much);
}

static volatile bool stop;

/* Count in the heap without a pause: a lost increment shows. */
static void *count(void *arg)
{
	volatile uint64_t *at = arg;
	for (uint64_t n = 1; !stop; n++) {
		for (unsigned page = 0; page < 64; page++) {
			uint64_t was = at[page * 512];
			at[page * 512] = n;
			mp_check(was == n - 1, "a write was lost: %llu behind %llu",
				(unsigned long long)was, (unsigned long long)n);
		}
	}
	return NULL;
}

static void *fork_here(void *arg)
{
	unsigned char on_stack[1000];
	volatile unsigned char *mine = on_stack;
	(void)arg;
	for (unsigned i = 0; i < sizeof on_stack; i++)
		mine[i] = (unsigned char)i;
	pid_t pid = fork();
	for (unsigned i = 0; i < sizeof on_stack; i++) {
		mp_check(mine[i] == (unsigned char)i, "the stack has changed");
		mine[i] = pid ? 1 : 2;
	}
	if (!pid) {
		churn(3, 5);
		exit(0);
	}
	succeed(pid, "a child");
	for (unsigned i = 0; i < sizeof on_stack; i++)
		mp_check(mine[i] == 1, "the child wrote to the parent's stack");
	fork_one(9);
	return NULL;
}

static pthread_t thread_on(void *stack, void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;
	pthread_t t;
	mp_check(!pthread_attr_init(&attr), "pthread_attr_init");
	mp_check(!stack || !pthread_attr_setstack(&attr, stack, STACK), "setstack");
	mp_check(!pthread_create(&t, &attr, fn, arg), "pthread_create");
	pthread_attr_destroy(&attr);
	return t;
}

static void with_counters(void (*fn)(void *), void *arg)
{
	pthread_t t[2];
	for (unsigned i = 0; i < 2; i++)
		t[i] = thread_on(NULL, count, calloc(64, 4096));
	fn(arg);
	/* pause: the other threads go on counting meanwhile */
	sleep_ms(5);
	stop = true;
	for (unsigned i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
}

static void run_thread(void *stack)
{
	pthread_join(thread_on(stack, fork_here, NULL), NULL);
}

static void fork_on_a_threads_stack(void)
{
	void *stack = aligned_alloc(4096, STACK);
	a_block_comes_direct("before the fork");
	with_counters(run_thread, stack);
	a_block_comes_otherwise("behind the fork");
	free(stack);
	churn(1, 10);
}

static ucontext_t here, there;

static void coroutine(void)
{
	fork_here(NULL);
}

static void run_coroutine(void *stack)
{
	getcontext(&there);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = STACK;
	there.uc_link = &here;
	makecontext(&there, coroutine, 0);
	swapcontext(&here, &there);
}

static void fork_on_a_coroutines_stack(void)
{
	void *stack = malloc(STACK);
	a_block_comes_direct("before the fork");
	with_counters(run_coroutine, stack);
	a_block_comes_otherwise("behind the fork");
	free(stack);
}

static void *wait_for_stop(void *arg)
{
	while (!stop)
		sleep_ms(1);
	return arg;
}

static void *do_nothing(void *arg)
{
	return arg;
}

/* Fork beside a thread that has ended and one that runs, whose stacks lie in the heap:
 * libc in the child looks at its data about threads, which lie on these stacks. */
static void fork_beside_threads(void)
{
	void *stack[2] = {aligned_alloc(4096, STACK), aligned_alloc(4096, STACK)};
	pthread_t ended = thread_on(stack[0], do_nothing, NULL),
		  runs = thread_on(stack[1], wait_for_stop, NULL);
	fork_one(1);
	stop = true;
	pthread_join(ended, NULL);
	pthread_join(runs, NULL);
	a_block_comes_otherwise("behind the fork");
}

static void guard_page(void)
{
	unsigned char *block = aligned_alloc(4096, 64 << 10);
	memset(block, 3, 64 << 10);
	mp_check(!mprotect(block + 8192, 4096, PROT_NONE), "mprotect");
	mp_check(!mprotect(block + 16384, 4096, PROT_READ), "mprotect");
	fork_one(1);
	a_block_comes_otherwise("behind the fork");
	mp_check(!mprotect(block + 8192, 12288, PROT_READ | PROT_WRITE), "mprotect");
	for (unsigned i = 0; i < 64 << 10; i++)
		mp_check(block[i] == 3, "behind the guard");
	free(block);
}

static void programs(void)
{
	char line[100] = "", *argv[] = {"sh", "-c", "exit 0", NULL};
	pid_t pid;
	FILE *f = popen("echo $((6 * 7)); true", "re");
	mp_check(f && fgets(line, sizeof line, f) && !strcmp(line, "42\n"), "popen");
	mp_check(pclose(f) == 0, "pclose");
	mp_check(system("ls / | wc -l >/dev/null") == 0, "system");
	mp_check(!posix_spawnp(&pid, "sh", NULL, NULL, argv, environ), "posix_spawn");
	succeed(pid, "posix_spawn");
	pid = vfork();
	if (!pid) {
		execvp("sh", argv);
		_exit(127);
	}
	succeed(pid, "vfork");
	a_block_comes_direct("behind programs");
	pid = fork();
	if (!pid)
		_exit(execvp("sh", argv));
	succeed(pid, "fork and exec");
	a_block_comes_otherwise("behind fork and exec");
}

/* ---- threads ---- */

enum { PASSED = 2000 };
static _Atomic(unsigned char *) passed[PASSED];

static void *free_all(void *arg)
{
	for (unsigned i = 0; i < PASSED; i++) {
		unsigned char *b;
		while (!(b = passed[i]))
			sched_yield();
		mp_compare(b, 500, i, "passed");
		free(b);
		if (i % 100 == 0)
			churn(i, 1);
	}
	return arg;
}

static void *allocate_all(void *arg)
{
	for (unsigned i = 0; i < PASSED; i++) {
		unsigned char *b = malloc(500 + i * 37 % 90000);
		mp_fill(b, 500, i);
		passed[i] = b;
	}
	return arg;
}

static void threads(void)
{
	for (unsigned round = 0; round < 5; round++) {
		memset((void *)passed, 0, sizeof passed);
		pthread_t a = thread_on(NULL, free_all, NULL),
			  b = thread_on(NULL, allocate_all, NULL);
		if (round < 3)
			a_block_comes_direct("beside threads");
		else
			fork_one(round);
		pthread_join(a, NULL);
		pthread_join(b, NULL);
	}
}

/* ---- before and after ---- */

static unsigned char *early[64];

static void allocate_early(void)
{
	for (unsigned i = 0; i < 64; i++) {
		early[i] = malloc(LENGTH);
		mp_fill(early[i], LENGTH, i);
	}
	for (unsigned i = 0; i < 64; i += 2) /* memory that is free by now is not used
					      * again */
		free(early[i]);
}

static void blocks_of_before(void)
{
	come_otherwise(early[1], LENGTH, "a block of before");
	mp_fill(early[1], LENGTH, 1);
	for (unsigned i = 0; i < 40; i++)
		come_direct(malloc(LENGTH), LENGTH, "a block of now");
	for (unsigned i = 1; i < 64; i += 2) {
		mp_compare(early[i], LENGTH, i, "a block of before");
		early[i] = realloc(early[i], LENGTH * 2);
		mp_compare(early[i], LENGTH, i, "a block of before, longer");
		free(early[i]);
	}
}

static void init_again(void)
{
	for (unsigned i = 0; i < 5; i++) {
		unsigned char *kept = malloc(LENGTH);
		a_block_comes_direct("before PtlFini");
		mp_fill(kept, LENGTH, i);
		mp_end();
		mp_compare(kept, LENGTH, i, "behind PtlFini");
		churn(i, 5);
		start();
		come_direct(kept, LENGTH, "a block of the last time");
		free(kept);
	}
	fork_one(1);
	mp_end();
	start();
	a_block_comes_otherwise("behind a fork and PtlInit");
}

static void blocks_of_two_kinds(void)
{
	void *block;
	mp_ok(PtlXAlloc(LENGTH, &block));
	come_direct(block, LENGTH, "PtlXAlloc");
	a_block_comes_direct("malloc beside PtlXAlloc");
	mp_ok(PtlXFree(block));
}

/* Without an allocator for the heap. */
static void ordinary_blocks(void)
{
	void *block;
	mp_ok(PtlXAlloc(LENGTH, &block));
	come_otherwise(block, LENGTH, "PtlXAlloc");
	mp_ok(PtlXFree(block));
}

static void *churn_until_stop(void *arg)
{
	for (unsigned seed = mp.rank; !stop; seed++)
		churn(seed, 1);
	return arg;
}

/* Without --shared-heap; meanwhile threads use malloc, and children are forked. */
static void blocks_of_a_heap(void)
{
	enum { TIMES = 30, THREADS = 3 };
	void *block[3];
	pthread_t t[THREADS];
	for (unsigned i = 0; i < 3; i++)
		mp_ok(PtlXAlloc(LENGTH, &block[i]));
	for (unsigned i = 0; i < THREADS; i++)
		t[i] = thread_on(NULL, churn_until_stop, NULL);
	for (unsigned i = 0; i < TIMES; i++) {
		uint64_t got = exchange(block[0], block[1], LENGTH);
		mp_check(got == 2 * LENGTH, "%llu bytes came direct",
			(unsigned long long)got);
		if (i % 2 == 0)
			fork_with(block[2], i, NULL);
	}
	stop = true;
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	for (unsigned i = 0; i < 3; i++)
		mp_ok(PtlXFree(block[i]));
}

static void leave_at_once(void)
{
	a_block_comes_direct("before the end");
	mp_barrier();
	exit(0);
}

static void nothing_is_shared(void)
{
	a_block_comes_otherwise("without a heap");
	fork_one(1);
	churn(1, 10);
}

static void go_on_as(char **argv, const char *scene)
{
	argv[1] = (char *)(uintptr_t)scene;
	execv("/proc/self/exe", argv);
	mp_check(false, "execv: %s", strerror(errno));
}

static const struct scene {
	const char *name;
	void (*play)(void);
} scenes[] = {
	{"calls", all_calls},
	{"again", freed_blocks_are_used_again},
	{"full", full_heap},
	{"forks", forks},
	{"much", fork_with_much},
	{"stack", fork_on_a_threads_stack},
	{"coroutine", fork_on_a_coroutines_stack},
	{"beside", fork_beside_threads},
	{"guard", guard_page},
	{"programs", programs},
	{"threads", threads},
	{"before", blocks_of_before},
	{"init", init_again},
	{"kinds", blocks_of_two_kinds},
	{"ordinary", ordinary_blocks},
	{"heap", blocks_of_a_heap},
	{"exit", leave_at_once},
	{"nothing", nothing_is_shared},
};

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	if (!strcmp(name, "exec"))
		go_on_as(argv, "calls");
	if (!strcmp(name, "before"))
		allocate_early();
	for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++)
		if (!strcmp(name, scenes[i].name)) {
			start();
			scenes[i].play();
			mp_end();
			return 0;
		}
	fprintf(stderr, "no scene '%s'\n", name);
	return 2;
}
