/* SPDX-License-Identifier: BSD-3-Clause */
/* Fork handlers of shared heaps: a copy for the child, or the end of sharing. */
#include "shm/heapin.h"
#include "shm/fd.h"
#include "shm/kernel.h"
#include "shm/layout.h"
#include "shm/pages.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* The header in front of a heap's contents that were copied for a child. */
struct copy {
	struct copy *next;
	struct p3_heap *heap;
	uint64_t len;
};

static __thread struct {
	sigset_t mask;
	struct copy *copies;
	struct p3_heap *ended; /* the heap whose sharing this fork ended */
	const char *trouble;   /* why the child cannot have its copy */
} forking __attribute__((tls_model("initial-exec")));

static bool watched;

/* Print one line of three texts in one call, without stdio. */
static void complain(const char *text, const char *why, const char *end)
{
	const char *part[] = {"libportals: ", text, why, end, "\n"};
	struct iovec io[5];
	for (unsigned i = 0; i < 5; i++)
		io[i] = (struct iovec){(void *)(uintptr_t)part[i], strlen(part[i])};
	/* libc's writev is a cancellation point, and fork is none */
	(void)syscall(SYS_writev, STDERR_FILENO, io, 5);
}

static _Noreturn void give_up(const char *why)
{
	complain("a forked child cannot copy the shared heap: ", why, "; it ends");
	_exit(127);
}

static bool read_contents(int fd, char *to, uint64_t len)
{
	for (uint64_t at = 0; at < len;) {
		/* libc's pread is a cancellation point */
		long n = syscall(SYS_pread64, fd, to + at, len - at, (off_t)at);
		if (n <= 0 && !(n < 0 && errno == EINTR))
			return false;
		at += n > 0 ? (uint64_t)n : 0;
	}
	return true;
}

static void *private_memory(void *at, uint64_t len)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	return p3_pages_map(at, len, PROT_READ | PROT_WRITE,
		flags | (at ? MAP_FIXED_NOREPLACE : 0), -1, 0);
}

/* ---- the end of sharing ---- */

static const char *why_end(const struct p3_heap *h)
{
	if (h->serves)
		return "the program's malloc is there";
	if (p3_heap_has(h, __builtin_frame_address(0)))
		return "this stack lies there";
	return NULL;
}

/* Return true if the heap can be mapped privately.  Try it at another address: a private
 * mapping of hugepages needs free ones, and a failed attempt with MAP_FIXED would leave
 * a hole in place of the heap. */
static bool may_be_private(const struct p3_heap *h, int prot)
{
	if (h->seg.page == P3_PAGE)
		return true;
	void *p = p3_pages_map(NULL, h->seg.len, prot, MAP_PRIVATE, h->seg.fd, 0);
	if (p != MAP_FAILED)
		munmap(p, h->seg.len);
	return p != MAP_FAILED;
}

/*
 * Map the file anew over the heap, privately.  This is one call of mmap: earlier writes
 * are in the file, later ones are not.
 */
static bool end_sharing(struct p3_heap *h)
{
	int flags = MAP_PRIVATE | MAP_FIXED, prot = PROT_READ | PROT_WRITE;
	if (h->seg.page == P3_PAGE)
		flags |= MAP_NORESERVE;
	if (!p3_heap_is_ours(h) || !may_be_private(h, prot))
		return false;
	p3_set(&h->mine, 1); /* HEAP.2 */
	if (p3_pages_map(h->seg.base, h->seg.len, prot, flags, h->seg.fd, 0) !=
		MAP_FAILED)
		return true;
	p3_set(&h->mine, 0);
	return false;
}

/* Wake the threads that sleep at this word of the file: wake-ups by other threads now
 * reach the private page's word only. */
static void wake_at(const struct p3_heap *h, uintptr_t word)
{
	uint64_t off = word - (uintptr_t)h->seg.base, at = off & ~(h->seg.page - 1);
	char *page = mmap(NULL, h->seg.page, PROT_READ, MAP_SHARED, h->seg.fd, (off_t)at);
	if (page == MAP_FAILED)
		return;
	syscall(SYS_futex, page + (off - at), FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	munmap(page, h->seg.page);
}

/* Wake a thread of /proc/self/task if it sleeps on a futex in the heap.  The line reads
 * "202 0x7f12a4c8e910 0x109 ...": number and arguments of the system call that it
 * sleeps in. */
static void wake_thread(const struct p3_heap *h, long task, const char *tid)
{
	char path[48], call[128], *at;
	size_t len = 0;
	while (tid[len] && len < 32)
		len++;
	memcpy(path, tid, len);
	memcpy(path + len, "/syscall", sizeof "/syscall");
	long fd = syscall(SYS_openat, task, path, O_RDONLY | O_CLOEXEC);
	long n = fd < 0 ? -1 : syscall(SYS_read, fd, call, sizeof call - 1);
	if (fd >= 0)
		syscall(SYS_close, fd);
	call[n > 0 ? n : 0] = '\0';
	if (strtol(call, &at, 10) != SYS_futex)
		return;
	uintptr_t word = strtoul(at, &at, 16);
	if (p3_heap_has(h, (void *)word) && !(strtoul(at, NULL, 16) & FUTEX_PRIVATE_FLAG))
		wake_at(h, word);
}

struct entry { /* a record of getdents64 */
	uint64_t ino, off;
	uint16_t len;
	uint8_t type;
	char name[];
};

/*
 * Wake the threads that sleep on a futex in the heap.  A thread that sleeps on a word
 * that processes may share, as pthread_join does, sleeps at the file's word, but will
 * be woken at the private one.  Once awake it sleeps again, at the right one.
 */
static void wake_sleepers(const struct p3_heap *h)
{
	_Alignas(struct entry) char list[1024];
	int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	long n, task = syscall(SYS_openat, AT_FDCWD, "/proc/self/task", flags);
	if (task < 0)
		return;
	while ((n = syscall(SYS_getdents64, task, list, sizeof list)) > 0)
		for (long at = 0; at < n;) {
			const struct entry *e = (const struct entry *)(list + at);
			wake_thread(h, task, e->name);
			at += e->len;
		}
	syscall(SYS_close, task);
}

static bool end_if_needed(struct p3_heap *h)
{
	const char *why = why_end(h);
	if (!why || !end_sharing(h))
		return false;
	wake_sleepers(h);
	forking.ended = h;
	complain("fork ends the sharing of the heap: ", why,
		"; long messages take other ways from now on");
	return true;
}

/* ---- a copy ---- */

static const char *copy_contents(struct p3_heap *h)
{
	uint64_t len = p3_get(&h->used);
	if (!p3_heap_is_ours(h))
		return "its descriptor was closed, or names another file";
	struct copy *c = private_memory(NULL, P3_PAGE + len);
	if (c == MAP_FAILED)
		return "there is no memory for it";
	*c = (struct copy){forking.copies, h, len};
	forking.copies = c;
	return read_contents(h->seg.fd, (char *)c + P3_PAGE, len) ? NULL
								  : "reading it failed";
}

static void before_fork(void)
{
	sigset_t all;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &forking.mask);
	pthread_mutex_lock(
		/* held until the fork is done, so that no thread makes or keeps a heap */
		&p3_heaps_lock);
	forking.copies = NULL;
	forking.ended = NULL;
	forking.trouble = NULL;
	for (struct p3_heap *h = p3_acquire(&p3_heaps); h; h = h->next) /* HEAP.1 */
		if (!p3_get(&h->mine) && p3_get(&h->used) && !forking.trouble &&
			!end_if_needed(h))
			forking.trouble = copy_contents(h);
}

static void after_fork_here(void)
{
	if (forking.ended) /* again, for threads that were just about to sleep */
		wake_sleepers(forking.ended);
	while (forking.copies) {
		struct copy *c = forking.copies;
		forking.copies = c->next;
		munmap(c, P3_PAGE + c->len);
	}
	pthread_mutex_unlock(&p3_heaps_lock);
	pthread_sigmask(SIG_SETMASK, &forking.mask, NULL);
}

static void drop_descriptor(struct p3_heap *h)
{
	if (h->seg.fd >= 0 && p3_heap_is_ours(h))
		p3_fd_close(h->seg.fd);
	h->seg.fd = -1;
}

static void make_mine(struct p3_heap *h)
{
	void *at = private_memory(h->seg.base, h->seg.len);
	if (at == MAP_FAILED && errno != EEXIST)
		give_up("there is no memory for it");
	if (at != h->seg.base)
		give_up("something else is mapped at its addresses");
	p3_set(&h->mine, 1);
}

static void move_in(struct copy *c)
{
	char *from = (char *)c + P3_PAGE;
	int flags = MREMAP_MAYMOVE | MREMAP_FIXED;
	if (mremap(from, c->len, c->len, flags, c->heap->seg.base) == MAP_FAILED)
		give_up("there is no memory for it");
}

static void after_fork_in_child(void)
{
	if (forking.trouble)
		give_up(forking.trouble);
	for (struct p3_heap *h = p3_acquire(&p3_heaps); h; h = h->next) { /* HEAP.1 */
		if (!p3_get(&h->mine))
			make_mine(h);
		drop_descriptor(h);
	}
	while (forking.copies) {
		struct copy *c = forking.copies;
		forking.copies = c->next;
		move_in(c);
		munmap(c, P3_PAGE);
	}
	pthread_mutex_init(&p3_heaps_lock, NULL);
	pthread_sigmask(SIG_SETMASK, &forking.mask, NULL);
}

bool p3_heap_watches_forks(void)
{
	return watched;
}

__attribute__((constructor)) static void watch_forks(void)
{
	watched = !pthread_atfork(before_fork, after_fork_here, after_fork_in_child);
}
