/* SPDX-License-Identifier: BSD-3-Clause */
/* A shared heap by itself: sizes, seals, growth, views, and the effects of a fork. */

#include "shm/heap.h"
#include "shm/layout.h"
#include "support/asleep.h"
#include "support/cases.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <jemalloc/jemalloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define LEN ((uint64_t)32 << 20)

static struct p3_heap_calls calls;

static void find_calls(void)
{
	void *lib = dlopen("libjemalloc.so.2", RTLD_NOW | RTLD_NODELETE), *fn[3];
	if (!lib) {
		print_message("skipped: %s\n", dlerror());
		skip();
	}
	fn[0] = dlsym(lib, "mallctl");
	fn[1] = dlsym(lib, "mallocx");
	fn[2] = dlsym(lib, "dallocx");
	memcpy(&calls, fn, sizeof calls);
}

static struct p3_heap *heap_of(uint64_t len)
{
	struct p3_heap *h;
	find_calls();
	assert_int_equal(p3_heap_create(len, P3_HUGE_OFF, &h), 0);
	if (!p3_heap_is_armed(h))
		assert_int_equal(p3_heap_arm(h, &calls), 0);
	return h;
}

static struct p3_heap *heap_new(void)
{
	return heap_of(LEN);
}

static uint64_t used_kib(const struct p3_heap *h)
{
	struct stat st;
	assert_int_equal(fstat(p3_heap_fd(h), &st), 0);
	return (uint64_t)st.st_blocks / 2;
}

/* ---- one process ---- */

CASE(memory_is_used_as_blocks_need_it)
{
	struct p3_heap *h = heap_new();
	char *small = p3_heap_alloc(h, 100), *big = p3_heap_alloc(h, 10 << 20);
	assert_true(small && big && p3_heap_has(h, small) && p3_heap_has(h, big));
	assert_true(used_kib(h) >= 10 << 10 && used_kib(h) <= 24 << 10);
	memset(big, 1, 10 << 20);
	p3_heap_free(h, big);
	p3_heap_free(h, small);
	p3_heap_keep(h);
}

CASE(full_heap_gives_nothing)
{
	struct p3_heap *h = heap_new();
	void *block[64];
	unsigned n = 0;
	assert_null(p3_heap_alloc(h, LEN + 1));
	assert_null(p3_heap_alloc(h, SIZE_MAX));
	assert_null(p3_heap_alloc(h, 0));
	while (n < 64 && (block[n] = p3_heap_alloc(h, 1 << 20)))
		n++;
	assert_in_range(n, 16, 32);
	while (n)
		p3_heap_free(h, block[--n]);
	block[0] = p3_heap_alloc(h, 1 << 20);
	assert_non_null(block[0]);
	p3_heap_free(h, block[0]);
	p3_heap_keep(h);
}

static unsigned fill_up(struct p3_heap *h, size_t len)
{
	void *block[64];
	unsigned n = 0;
	while (n < 64 && (block[n] = p3_heap_alloc(h, len)))
		memset(block[n++], 1, len);
	for (unsigned i = 0; i < n; i++)
		p3_heap_free(h, block[i]);
	return n;
}

CASE(freed_neighbours_merge)
{
	struct p3_heap *h = heap_new();
	for (size_t mib = 1; mib <= 16; mib *= 2)
		assert_in_range(fill_up(h, mib << 20), 32 / mib * 3 / 4, 32 / mib);
	assert_in_range(fill_up(h, 28 << 20), 1, 1);
	assert_in_range(fill_up(h, 700 << 10), 40, 46);
	p3_heap_keep(h);
}

/* Freed memory is used before memory that was never used. */
CASE(free_memory_is_used_first)
{
	struct p3_heap *h = heap_of(48 << 20);
	void *block[100];
	for (unsigned round = 0; round < 50; round++) {
		for (unsigned i = 0; i < 100; i++)
			assert_non_null(block[i] = p3_heap_alloc(h, 1 + i * 977));
		for (unsigned i = 0; i < 100; i++)
			p3_heap_free(h, block[i]);
	}
	assert_true(used_kib(h) <= 8 << 10);
	p3_heap_keep(h);
}

/* Half of it was in use, the other half never: a long block spans both. */
CASE(used_and_unused_memory_merge)
{
	struct p3_heap *h = heap_of(24 << 20);
	void *block[16];
	for (unsigned i = 0; i < 12; i++)
		assert_non_null(block[i] = p3_heap_alloc(h, 1 << 20));
	assert_true(used_kib(h) <= 13 << 10);
	for (unsigned i = 0; i < 12; i++)
		p3_heap_free(h, block[i]);
	assert_non_null(block[0] = p3_heap_alloc(h, 20 << 20));
	p3_heap_free(h, block[0]);
	p3_heap_keep(h);
}

CASE(nobody_can_take_pages_away)
{
	struct p3_heap *h = heap_new();
	int fd = p3_heap_fd(h), hole = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	assert_int_equal(fallocate(fd, hole, 0, P3_PAGE), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(madvise(p3_heap_base(h), P3_PAGE, MADV_REMOVE), -1);
	assert_true(mmap(NULL, P3_PAGE, PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
	p3_heap_keep(h);
}

CASE(kept_heap_is_used_again)
{
	struct p3_heap *h = heap_new();
	p3_heap_keep(h);
	assert_ptr_equal(heap_new(), h);
	p3_heap_keep(h);
}

/* ---- another process ---- */

static int wait_for(pid_t pid)
{
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* The child reads pages that the owner has not reserved. */
CASE(reader_reaches_every_page)
{
	struct p3_heap *h = heap_new();
	char *block = p3_heap_alloc(h, 3 << 20);
	uint64_t off = (uint64_t)(block - (char *)p3_heap_base(h));
	int fd = fcntl(p3_heap_fd(h), F_DUPFD_CLOEXEC, 3);
	memset(block, 5, 3 << 20);
	pid_t pid = fork();
	if (!pid) {
		struct p3_heap_view v;
		p3_seg_forget_all();
		if (p3_heap_view_open(fd, LEN, &v) ||
			!p3_heap_view_reach(&v, off, 3 << 20))
			_exit(1);
		if (v.base[off] != 5 || v.base[off + (3 << 20) - 1] != 5)
			_exit(2);
		if (!p3_heap_view_reach(&v, 0, LEN) || v.base[LEN - 1] != 0)
			_exit(3);
		if (mprotect((void *)(uintptr_t)v.base, LEN, PROT_READ | PROT_WRITE) == 0)
			_exit(4);
		p3_heap_view_close(&v);
		_exit(0);
	}
	assert_int_equal(wait_for(pid), 0);
	close(fd);
	p3_heap_free(h, block);
	p3_heap_keep(h);
}

CASE(view_of_no_heap_is_refused)
{
	struct p3_heap *h = heap_new();
	struct p3_heap_view v;
	int plain = memfd_create("plain", MFD_CLOEXEC);
	assert_int_equal(ftruncate(plain, (off_t)LEN), 0);
	assert_int_equal(p3_heap_view_open(plain, LEN, &v), -EPROTO);
	assert_int_equal(p3_heap_view_open(p3_heap_fd(h), LEN + P3_HUGE, &v), -EPROTO);
	assert_int_equal(p3_heap_view_open(p3_heap_fd(h), LEN - 1, &v), -EPROTO);
	assert_int_equal(p3_heap_view_open(p3_heap_fd(h), 0, &v), -EPROTO);
	assert_int_equal(p3_heap_view_open(p3_heap_fd(h), P3_HEAP_MOST * 2, &v), -EPROTO);
	close(plain);
	p3_heap_keep(h);
}

static int write_all_over(struct p3_heap *h, char *block, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (block[i] != 7)
			return 1;
	memset(block, 9, len);
	p3_heap_free(h, block);
	for (int i = 0; i < 100; i++) {
		char *more = p3_heap_alloc(h, 50000);
		if (!more)
			return 2;
		memset(more, 9, 50000);
	}
	return p3_heap_fd(h) == -1 ? 0 : 3;
}

CASE(forked_child_has_its_own_copy)
{
	struct p3_heap *h = heap_new();
	size_t len = 5 << 20;
	char *block = p3_heap_alloc(h, len), *other;
	memset(block, 7, len);
	pid_t pid = fork();
	if (!pid)
		_exit(write_all_over(h, block, len));
	for (size_t i = 0; i < len; i++)
		assert_int_equal(block[i], 7);
	assert_int_equal(wait_for(pid), 0);
	other = p3_heap_alloc(h, 50000);
	memset(other, 8, 50000);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(block[i], 7);
	p3_heap_free(h, other);
	p3_heap_free(h, block);
	p3_heap_keep(h);
}

CASE(grandchild_has_its_own_copy)
{
	struct p3_heap *h = heap_new();
	size_t len = 1 << 20;
	char *block = p3_heap_alloc(h, len);
	memset(block, 7, len);
	pid_t pid = fork();
	if (!pid) {
		pid_t next = fork();
		if (!next)
			_exit(write_all_over(h, block, len));
		int bad = wait_for(next);
		_exit(bad ? 4 : write_all_over(h, block, len));
	}
	assert_int_equal(wait_for(pid), 0);
	p3_heap_free(h, block);
	p3_heap_keep(h);
}

/* Return the arena of the heap's blocks. */
static unsigned arena_of(struct p3_heap *h)
{
	unsigned arena = 0;
	size_t len = sizeof arena;
	void *block = p3_heap_alloc(h, 100);
	assert_non_null(block);
	assert_int_equal(
		calls.mallctl("arenas.lookup", &arena, &len, &block, sizeof block), 0);
	p3_heap_free(h, block);
	return arena;
}

CASE(blocks_are_aligned_as_asked)
{
	size_t align = 8 << 20;
	struct p3_heap *h = heap_of(20 << 20);
	void *block;
	unsigned n = 0;
	int flags = MALLOCX_ARENA(arena_of(h)) | MALLOCX_TCACHE_NONE;
	while ((block = calls.mallocx(4096, flags | MALLOCX_ALIGN(align)))) {
		assert_true(p3_heap_has(h, block));
		assert_int_equal((uintptr_t)block % align, 0);
		n++;
	}
	assert_in_range(n, 1, 3);
	p3_heap_keep(h);
}

/* ---- programs that fork ---- */

static int child_status(void)
{
	pid_t pid = fork();
	if (!pid)
		_exit(0);
	return wait_for(pid);
}

CASE(fork_needs_no_descriptors)
{
	struct p3_heap *h = heap_new();
	struct rlimit was, none;
	char *block = p3_heap_alloc(h, 100);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = (struct rlimit){0, was.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(child_status(), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	p3_heap_free(h, block);
	p3_heap_keep(h);
}

CASE(fork_leaves_signals_as_they_were)
{
	struct p3_heap *h = heap_new();
	sigset_t usr, now;
	sigemptyset(&usr);
	sigaddset(&usr, SIGUSR1);
	assert_int_equal(pthread_sigmask(SIG_BLOCK, &usr, NULL), 0);
	pid_t pid = fork();
	pthread_sigmask(SIG_SETMASK, NULL, &now);
	bool same = sigismember(&now, SIGUSR1) && !sigismember(&now, SIGUSR2);
	if (!pid)
		_exit(!same);
	assert_int_equal(wait_for(pid), 0);
	assert_true(same);
	assert_int_equal(pthread_sigmask(SIG_UNBLOCK, &usr, NULL), 0);
	p3_heap_keep(h);
}

/* ---- stacks ---- */

enum { STACK = 2 << 20 };

static ucontext_t main_context, other_context;
static struct p3_heap *stack_heap;
static int fork_status;

static void *fork_on_this_stack(void *arg)
{
	volatile char mine = 1;
	if (arg) /* the main thread waits in pthread_join */
		assert_true(await_thread_state(getpid(), 'S'));
	pid_t pid = fork();
	if (!pid) {
		char *more = p3_heap_alloc(stack_heap, 50000);
		memset(more, 9, 50000);
		mine = 2;
		p3_heap_free(stack_heap, more);
		_exit(mine != 2);
	}
	fork_status = wait_for(pid) | (mine != 1);
	return NULL;
}

static void coroutine(void)
{
	fork_on_this_stack(NULL);
}

/* Fork on a stack in h; from then on h is private, and everything works. */
static void check_end_of_sharing(struct p3_heap *h, void (*run)(void *stack))
{
	struct p3_heap_view v;
	char *stack = p3_heap_alloc(h, STACK), *block = p3_heap_alloc(h, 100000);
	int fd = fcntl(p3_heap_fd(h), F_DUPFD_CLOEXEC, 3);
	uint64_t off = (uint64_t)(block - (char *)p3_heap_base(h));
	memset(block, 5, 100000);
	stack_heap = h;
	run(stack);
	assert_int_equal(fork_status, 0);
	assert_int_equal(p3_heap_fd(h), -1);
	assert_int_equal(block[99999], 5);
	memset(block, 6, 100000);
	assert_int_equal(p3_heap_view_open(fd, LEN, &v), 0);
	assert_int_equal(v.base[off], p3_heap_base(h) == v.base ? 6 : 5);
	p3_heap_view_close(&v);
	close(fd);
	p3_heap_free(h, block);
	for (int i = 0; i < 100; i++)
		assert_non_null(memset(p3_heap_alloc(h, 100000), 3, 100000));
	assert_int_equal(child_status(), 0);
	p3_heap_free(h, stack);
	p3_heap_keep(h);
	assert_ptr_not_equal(heap_new(), h);
}

static void run_coroutine(void *stack)
{
	getcontext(&other_context);
	other_context.uc_stack = (stack_t){.ss_sp = stack, .ss_size = STACK};
	other_context.uc_link = &main_context;
	makecontext(&other_context, coroutine, 0);
	swapcontext(&main_context, &other_context);
}

static void run_thread(void *stack)
{
	pthread_attr_t attr;
	pthread_t t;
	pthread_attr_init(&attr);
	assert_int_equal(pthread_attr_setstack(&attr, stack, STACK), 0);
	assert_int_equal(pthread_create(&t, &attr, fork_on_this_stack, stack), 0);
	pthread_attr_destroy(&attr);
	alarm(600);
	assert_int_equal(pthread_join(t, NULL), 0);
	alarm(0);
}

CASE(fork_on_a_coroutines_stack_ends_sharing)
{
	check_end_of_sharing(heap_new(), run_coroutine);
}

CASE(fork_on_a_threads_stack_ends_sharing)
{
	check_end_of_sharing(heap_new(), run_thread);
}

CASE(child_has_no_guards)
{
	struct p3_heap *h = heap_new();
	char *block = p3_heap_alloc(h, 64 << 10);
	char *page = (char *)p3_round_up((uintptr_t)block, P3_PAGE);
	memset(block, 7, 64 << 10);
	assert_int_equal(mprotect(page, P3_PAGE, PROT_NONE), 0);
	pid_t pid = fork();
	if (!pid)
		_exit(write_all_over(h, block, 64 << 10));
	assert_int_equal(wait_for(pid), 0);
	assert_int_equal(mprotect(page, P3_PAGE, PROT_READ | PROT_WRITE), 0);
	p3_heap_free(h, block);
	p3_heap_keep(h);
}

/* The last test: children cannot have a copy of this heap any more. */
CASE(foreign_file_is_left_alone)
{
	struct p3_heap *h = heap_new();
	char *block = p3_heap_alloc(h, 100), *more;
	int other = memfd_create("other", MFD_CLOEXEC), fd = p3_heap_fd(h);
	struct stat st;
	assert_true(fd >= 200 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
	assert_non_null(block);
	assert_int_equal(dup2(other, fd), fd);
	for (unsigned n = 0; n < 64 && (more = p3_heap_alloc(h, 1 << 20)); n++)
		memset(more, 1, 1 << 20);
	assert_null(more);
	assert_int_equal(fstat(other, &st), 0);
	assert_int_equal(st.st_size, 0);
	assert_int_equal(st.st_blocks, 0);
	assert_int_equal(WEXITSTATUS(child_status()), 127);
	assert_int_equal(fcntl(fd, F_GETFD), 0);
	p3_heap_keep(h);
	assert_ptr_not_equal(heap_new(), h);
	close(other);
}
