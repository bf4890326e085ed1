/* SPDX-License-Identifier: BSD-3-Clause */
/* Mappings that take pages as they are used, and the limit of locked memory. */
#include "shm/pages.h"
#include "shm/kernel.h"
#include "shm/layout.h"
#include "shm/log.h"

#include <errno.h>
#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

/* MiB that a node locks in any case: stacks of its threads, of usual size, and tables. */
#define P3_LOCKED_MIB 64u

/* ThreadSanitizer takes a new mapping that it sees for a write to the whole range, and a
 * late thread may look at words of the former mapping. */
static void *map(void *at, uint64_t len, int prot, int flags, int fd, uint64_t off)
{
	/* Whole words: the kernel takes the offset from the stack as one. */
	return (void *)syscall(SYS_mmap, at, len, (long)prot, (long)flags, (long)fd, off);
}

/* Return true if the kernel brings the pages of new mappings in at once. */
static bool are_filled(void)
{
	unsigned char in = 0;
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	void *page = map(NULL, P3_PAGE, PROT_READ, flags, -1, 0);
	if (page == MAP_FAILED)
		return errno == EAGAIN; /* the limit of locked memory */
	(void)syscall(SYS_mincore, page, (unsigned long)P3_PAGE, &in);
	(void)syscall(SYS_munmap, page, (unsigned long)P3_PAGE);
	return in & 1;
}

static rlim_t lock_limit(void)
{
	struct rlimit most;
	return getrlimit(RLIMIT_MEMLOCK, &most) == 0 ? most.rlim_cur : RLIM_INFINITY;
}

/* Return true if the file's pages are hugepages: its mappings cannot grow. */
static bool is_huge(int fd)
{
	struct statfs fs;
	return fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == HUGETLBFS_MAGIC;
}

/* Move a mapping of `len` bytes to its place, and make it `all` bytes long. */
static void *move(void *from, uint64_t len, void *at, uint64_t all, bool fixed)
{
	long flags = MREMAP_MAYMOVE | (fixed ? MREMAP_FIXED : 0);
	void *to = (void *)syscall(SYS_mremap, from, len, all, flags, at);
	if (to != MAP_FAILED && lock_limit() == RLIM_INFINITY)
		(void)syscall(SYS_mlock2, to, all, (long)MLOCK_ONFAULT);
	return to;
}

/*
 * Map a page, and grow it to len bytes.  Without permissions it stays empty while it is
 * locked: the first page of a private mapping would else be an early copy.  One call puts
 * the whole range in place: threads that read the range meanwhile never find a hole.
 */
static void *grow(void *at, uint64_t len, int prot, int flags, int fd, uint64_t off)
{
	bool fixed = flags & MAP_FIXED;
	uint64_t first = is_huge(fd) ? len : P3_PAGE;
	void *start = fixed ? NULL : at;
	void *part = map(start, first, PROT_NONE, flags & ~MAP_FIXED, fd, off);
	void *all = MAP_FAILED;
	if (part == MAP_FAILED)
		return part;
	if (syscall(SYS_munlock, part, first) == 0 &&
		syscall(SYS_mprotect, part, first, (long)prot) == 0)
		all = move(part, first, at, len, fixed);
	if (all == MAP_FAILED) {
		int rc = errno;
		(void)syscall(SYS_munmap, part, first);
		errno = rc;
	}
	return all;
}

void *p3_pages_map(void *at, uint64_t len, int prot, int flags, int fd, uint64_t off)
{
	int saved = errno;
	/* Short mappings are not worth the question. */
	bool growing = len >= P3_HUGE && are_filled();
	void *p = growing ? grow(at, len, prot, flags, fd, off)
			  : map(at, len, prot, flags, fd, off);
	if (p == MAP_FAILED && growing && errno == EINVAL) /* hugepages before 5.16 */
		p = map(at, len, prot, flags, fd, off);
	else if (p == MAP_FAILED && !growing && errno == EAGAIN && len > P3_PAGE)
		p = grow(at, len, prot, flags, fd, off); /* the limit of locked memory */
	if (p != MAP_FAILED)
		errno = saved;
	return p;
}

bool p3_pages_say_limit(int rc)
{
	rlim_t most = lock_limit();
	if ((rc != -EAGAIN && rc != -ENOMEM) || most == RLIM_INFINITY)
		return false;
	/* More than the limit is refused if it would be locked, and costs nothing. */
	uint64_t len = (uint64_t)p3_round_up(most, P3_PAGE) + P3_PAGE;
	void *p = map(
		NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	bool over = p == MAP_FAILED && errno == EAGAIN;
	if (p != MAP_FAILED)
		(void)syscall(SYS_munmap, p, len);
	if (over)
		p3_error("the program has locked its future memory (mlockall with "
			 "MCL_FUTURE), and `ulimit -l` allows %llu KiB in all; the "
			 "library needs about %u MiB more than the program: raise "
			 "`ulimit -l`, or call mlockall without MCL_FUTURE",
			(unsigned long long)(most >> 10), P3_LOCKED_MIB);
	return over;
}
