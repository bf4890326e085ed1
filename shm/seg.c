/* SPDX-License-Identifier: BSD-3-Clause */
/* Segments, and the bookkeeping of the addresses that they are mapped at. */
#include "shm/seg.h"
#include "shm/fault.h"
#include "shm/fd.h"
#include "shm/process.h"
#include "shm/layout.h"
#include "shm/log.h"

#include <errno.h>
#include <linux/magic.h>
#include <linux/memfd.h>
#include <numa.h>
#include <numaif.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

/* MiB that a node locks in any case: stacks of its threads, of usual size, and tables. */
#define P3_LOCKED_MIB 64u

#define P3_REMOTE     ((uintptr_t)256 << 30)
#define P3_ROWS       8u

/* ---- mappings of any file ---- */

/* ThreadSanitizer takes a new mapping that it sees for a write to the whole range, and a
 * late thread may look at words of the former mapping. */
static void *pages_mmap(void *at, uint64_t len, int prot, int flags, int fd, uint64_t off)
{
	/* Whole words: the kernel takes the offset from the stack as one. */
	return (void *)syscall(SYS_mmap, at, len, (long)prot, (long)flags, (long)fd, off);
}

/* Return true if the kernel brings the pages of new mappings in at once. */
static bool pages_are_filled(void)
{
	unsigned char in = 0;
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	void *page = pages_mmap(NULL, P3_PAGE, PROT_READ, flags, -1, 0);
	if (page == MAP_FAILED)
		return errno == EAGAIN; /* the limit of locked memory */
	(void)syscall(SYS_mincore, page, (unsigned long)P3_PAGE, &in);
	(void)syscall(SYS_munmap, page, (unsigned long)P3_PAGE);
	return in & 1;
}

static rlim_t pages_lock_limit(void)
{
	struct rlimit most;
	return getrlimit(RLIMIT_MEMLOCK, &most) == 0 ? most.rlim_cur : RLIM_INFINITY;
}

/*
 * Map a page, and grow it to len bytes.  Without permissions it stays empty while it is
 * locked: the first page of a private mapping would else be an early copy.  One call puts
 * the whole range in place: threads that read the range meanwhile never find a hole.
 */
static void *pages_grow(void *at, uint64_t len, int prot, int flags, int fd, uint64_t off)
{
	struct statfs fs;
	bool fixed = flags & MAP_FIXED;
	/* a mapping of hugepages cannot grow */
	bool huge = fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == HUGETLBFS_MAGIC;
	uint64_t first = huge ? len : P3_PAGE;
	void *start = fixed ? NULL : at;
	void *part = pages_mmap(start, first, PROT_NONE, flags & ~MAP_FIXED, fd, off);
	void *all = MAP_FAILED;
	if (part == MAP_FAILED)
		return part;
	if (syscall(SYS_munlock, part, first) == 0 &&
		syscall(SYS_mprotect, part, first, (long)prot) == 0)
		all = (void *)syscall(SYS_mremap, part, first, len,
			(long)(MREMAP_MAYMOVE | (fixed ? MREMAP_FIXED : 0)), at);
	if (all == MAP_FAILED) {
		int rc = errno;
		(void)syscall(SYS_munmap, part, first);
		errno = rc;
	} else if (pages_lock_limit() == RLIM_INFINITY) {
		(void)syscall(SYS_mlock2, all, len, (long)MLOCK_ONFAULT);
	}
	return all;
}

void *p3_pages_map(void *at, uint64_t len, int prot, int flags, int fd, uint64_t off)
{
	int saved = errno;
	/* Short mappings are not worth the question. */
	bool growing = len >= P3_HUGE && pages_are_filled();
	void *p = growing ? pages_grow(at, len, prot, flags, fd, off)
			  : pages_mmap(at, len, prot, flags, fd, off);
	if (p == MAP_FAILED && growing && errno == EINVAL) /* hugepages before 5.16 */
		p = pages_mmap(at, len, prot, flags, fd, off);
	else if (p == MAP_FAILED && !growing && errno == EAGAIN && len > P3_PAGE)
		/* the limit of locked memory */
		p = pages_grow(at, len, prot, flags, fd, off);
	if (p != MAP_FAILED)
		errno = saved;
	return p;
}

bool p3_pages_say_limit(int rc)
{
	rlim_t most = pages_lock_limit();
	if ((rc != -EAGAIN && rc != -ENOMEM) || most == RLIM_INFINITY)
		return false;
	/* More than the limit is refused if it would be locked, and costs nothing. */
	uint64_t len = (uint64_t)p3_round_up(most, P3_PAGE) + P3_PAGE;
	void *p = pages_mmap(
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

/* ---- ranges of addresses ---- */

/* A mapping of this process, or (refs 0) a range that is kept for the next one. */
struct seg_range {
	struct seg_range *next;
	void *base;
	/* bytes of addresses; 0 for a view, whose addresses are given back */
	uint64_t room;
	uint64_t len; /* bytes that are mapped, from the start */
	ino_t ino;
	dev_t dev;
	unsigned refs;
	bool own; /* a segment that this process has made */
};

P3_PROCESS_LOCK(seg_lock) /* guards seg_ranges and seg_rows */
static struct seg_range *seg_ranges;
static struct seg_range *seg_spare; /* records that describe no range now */

static struct seg_range *seg_find_file(const struct stat *st)
{
	for (struct seg_range *r = seg_ranges; r; r = r->next)
		if (r->refs && r->ino == st->st_ino && r->dev == st->st_dev)
			return r;
	return NULL;
}

/* Map zero pages, readable and writable, that use no memory until touched. */
static void *seg_blank(void *at, uint64_t len)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED : 0);
	return p3_pages_map(at, len, PROT_READ | PROT_WRITE, flags, -1, 0);
}

/*
 * Map zero pages far below the addresses that the kernel usually chooses.  A forked
 * child does not inherit the range, but may map a copy at the same addresses later: the
 * kernel must not have given them to another mapping of the child by then.
 */
static void *seg_blank_remote(uint64_t len)
{
	static uintptr_t lowest;
	if (!lowest) {
		void *usual = seg_blank(NULL, P3_PAGE);
		if (usual == MAP_FAILED)
			return usual;
		munmap(usual, P3_PAGE);
		lowest = (uintptr_t)usual - P3_REMOTE;
	}
	lowest -= len;
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	return p3_pages_map((void *)lowest, len, PROT_READ | PROT_WRITE, flags, -1, 0);
}

/* Map a new range of addresses, aligned to hugepages where len allows for them. */
static void *seg_fresh_range(uint64_t len, bool remote)
{
	uint64_t align = len % P3_HUGE == 0 ? P3_HUGE : P3_PAGE;
	char *p = remote ? seg_blank_remote(len + align) : seg_blank(NULL, len + align);
	if (p == MAP_FAILED)
		return MAP_FAILED;
	char *at = (char *)p3_round_up((uintptr_t)p, align);
	if (at > p)
		munmap(p, (size_t)(at - p));
	munmap(at + len, (size_t)(p + align - at));
	return at;
}

/*
 * Return a record that describes no range: a spare one, or one from a new page.  Do not
 * call malloc here.  This thread holds the lock, and a signal handler may wait for the
 * lock after it has interrupted another thread's malloc: malloc would then wait for that
 * thread, and that thread for this one, for ever.  Pages of records are never unmapped.
 */
static struct seg_range *seg_new_record(void)
{
	static struct seg_range *page;
	static unsigned left;
	struct seg_range *r = seg_spare;
	if (r) {
		seg_spare = r->next;
		return r;
	}
	if (!left) {
		page = mmap(NULL, P3_PAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		left = page == MAP_FAILED ? 0 : P3_PAGE / sizeof *page;
	}
	return left ? &page[--left] : NULL;
}

static void seg_spare_record(struct seg_range *r)
{
	r->next = seg_spare;
	seg_spare = r;
}

/* Make a range of `room` bytes of zero pages; if room is 0, make one of len bytes for a
 * view. */
static struct seg_range *seg_make_range(uint64_t room, uint64_t len)
{
	struct seg_range *r = seg_new_record();
	if (!r)
		return NULL;
	r->base = seg_fresh_range(room ? room : len, room != 0);
	if (r->base == MAP_FAILED) {
		seg_spare_record(r);
		return NULL;
	}
	r->room = room;
	r->refs = 0;
	r->next = seg_ranges;
	seg_ranges = r;
	return r;
}

/*
 * Find or make a range for a mapping.  Its room is up to an eighth more than len, so that
 * files of ever different lengths share ranges of few sizes, and the kept addresses have
 * a bound.
 */
static struct seg_range *seg_new_range(uint64_t len)
{
	uint64_t step = P3_PAGE;
	while (16 * step <= len)
		step *= 2;
	uint64_t room = p3_round_up(len, step);
	for (struct seg_range *r = seg_ranges; r; r = r->next)
		if (!r->refs && r->room == room)
			return r;
	return seg_make_range(room, len);
}

/* End a range's mapping: put zero pages in its place, or give a view's range back to the
 * kernel.  The caller knows that no thread reads a view any more. */
static void seg_clear_range(struct seg_range *r)
{
	if (r->room) {
		(void)seg_blank(r->base, r->len);
		return;
	}
	struct seg_range **at = &seg_ranges;
	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	/* ThreadSanitizer, which did not see the mapping, does not see its end. */
	(void)syscall(SYS_munmap, r->base, r->len);
	seg_spare_record(r);
}

/* The use of a mapping decides the fate of its addresses, and whether a core file holds
 * it. */
enum seg_use { OWN, PEERS, VIEW };

static int seg_map_fd(int fd, uint64_t len, int prot, enum seg_use use, void **base_out)
{
	struct stat st;
	if (fstat(fd, &st) != 0)
		return -errno;
	if (!len || st.st_size < 0 || (uint64_t)st.st_size != len)
		return -EPROTO;
	struct seg_range *r = seg_find_file(&st);
	if (r) {
		r->refs++;
		*base_out = r->base;
		return 0;
	}
	r = use == VIEW ? seg_make_range(0, len) : seg_new_range(len);
	if (!r)
		return -ENOMEM;
	r->len = len;
	int flags = MAP_SHARED | MAP_FIXED | MAP_NORESERVE;
	if (p3_pages_map(r->base, len, prot, flags, fd, 0) == MAP_FAILED) {
		int rc = -errno;
		/* the failed call may have removed the former mapping */
		seg_clear_range(r);
		return rc;
	}
	(void)madvise(r->base, len, MADV_DONTFORK);
	if (use != OWN)
		(void)madvise(r->base, len, MADV_DONTDUMP);
	r->ino = st.st_ino;
	r->dev = st.st_dev;
	r->refs = 1;
	r->own = use == OWN;
	*base_out = r->base;
	return 0;
}

/* Set while this thread holds the lock: a signal handler that interrupts it gets no
 * mapping. */
static __thread bool seg_here __attribute__((tls_model("initial-exec")));

static bool seg_enter(void)
{
	if (seg_here)
		return false;
	seg_here = true;
	atomic_signal_fence(memory_order_seq_cst);
	pthread_mutex_lock(&seg_lock);
	return true;
}

static void seg_leave(void)
{
	pthread_mutex_unlock(&seg_lock);
	atomic_signal_fence(memory_order_seq_cst);
	seg_here = false;
}

static int seg_map_locked(
	int fd, uint64_t len, int prot, enum seg_use use, void **base_out)
{
	if (!seg_enter())
		return -EAGAIN;
	int rc = seg_map_fd(fd, len, prot, use, base_out);
	seg_leave();
	return rc;
}

static bool seg_is_sealed(int fd, bool writable)
{
	int size = F_SEAL_SHRINK | F_SEAL_GROW;
	int seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || (seals & size) != size)
		return false;
	if (writable) /* of a file sealed against writing only the mmap would fail */
		return !(seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE));
	return seals & F_SEAL_FUTURE_WRITE;
}

int p3_seg_map(int fd, uint64_t len, bool writable, void **base_out)
{
	if (!seg_is_sealed(fd, writable))
		return -EPROTO;
	int prot = writable ? PROT_READ | PROT_WRITE : PROT_READ;
	return seg_map_locked(fd, len, prot, PEERS, base_out);
}

int p3_seg_view(int fd, uint64_t len, void **base_out)
{
	if (!seg_is_sealed(fd, false))
		return -EPROTO;
	return seg_map_locked(fd, len, PROT_READ, VIEW, base_out);
}

int p3_seg_reach(const void *at, uint64_t len)
{
	uintptr_t from = (uintptr_t)at & ~(uintptr_t)(P3_PAGE - 1);
	uint64_t all = p3_round_up((uintptr_t)at + len - from, P3_PAGE);
	int rc, saved = errno;
	do
		rc = (int)syscall(SYS_madvise, from, all, MADV_POPULATE_READ);
	while (rc != 0 && errno == EINTR);
	bool reached = rc == 0 || errno == EINVAL; /* EINVAL: before Linux 5.14 */
	rc = errno == EFAULT ? -EFAULT : -ENOMEM;
	errno = saved;
	return reached ? 0 : rc;
}

#define P3_PAGES_ASKED 1024u

bool p3_seg_is_resident(const void *at, uint64_t len)
{
	unsigned char in_memory[P3_PAGES_ASKED];
	uintptr_t from = (uintptr_t)at & ~(uintptr_t)(P3_PAGE - 1);
	uintptr_t end = (uintptr_t)at + len;
	bool resident = true;
	int saved = errno;
	while (resident && from < end) {
		uint64_t pages = (end - from + P3_PAGE - 1) / P3_PAGE;
		if (pages > P3_PAGES_ASKED)
			pages = P3_PAGES_ASKED;
		if (syscall(SYS_mincore, from, pages * P3_PAGE, in_memory) != 0) {
			resident = errno != ENOMEM; /* ENOMEM: not mapped */
			break;
		}
		unsigned char all = 1;
		for (uint64_t i = 0; i < pages; i++)
			all &= in_memory[i];
		resident = all & 1;
		from += pages * P3_PAGE;
	}
	errno = saved;
	return resident;
}

/* Drop a mapping.  A signal handler that has interrupted the lock's holder cannot wait
 * for the lock, and leaves the mapping. */
bool p3_seg_unmap(void *base, uint64_t len)
{
	if (!seg_enter())
		return false;
	struct seg_range *r = seg_ranges;
	while (r && r->base != base)
		r = r->next;
	bool mapped = r && r->len == len && r->refs;
	if (mapped && --r->refs == 0)
		seg_clear_range(r);
	seg_leave();
	return mapped;
}

/* ---- single pages of many segments, side by side ---- */

struct seg_row {
	char *base; /* NULL: not in use yet */
	uint64_t taken[P3_HUGE / P3_PAGE / 64];
};

static struct seg_row seg_rows[P3_ROWS]; /* guarded by seg_lock */

/* Make a new row: a range of zero pages, without any file. */
static char *seg_new_row(void)
{
	struct seg_range *r = seg_new_range(P3_HUGE);
	if (!r)
		return NULL;
	r->len = P3_HUGE;
	r->refs = 1;
	r->ino = 0;
	r->dev = 0;
	r->own = false;
	return r->base;
}

static char *seg_take_place(void)
{
	for (struct seg_row *r = seg_rows; r < seg_rows + P3_ROWS; r++) {
		if (!r->base && !(r->base = seg_new_row()))
			return NULL;
		for (uint32_t w = 0; w < P3_HUGE / P3_PAGE / 64; w++)
			if (~r->taken[w]) {
				uint32_t bit = (uint32_t)__builtin_ctzll(~r->taken[w]);
				r->taken[w] |= UINT64_C(1) << bit;
				return r->base + (uint64_t)(w * 64 + bit) * P3_PAGE;
			}
	}
	return NULL;
}

static void seg_give_place(char *at)
{
	(void)seg_blank(at, P3_PAGE);
	for (struct seg_row *r = seg_rows; r < seg_rows + P3_ROWS; r++) {
		uint64_t page = (uint64_t)(at - r->base) / P3_PAGE;
		if (r->base && at >= r->base && page < P3_HUGE / P3_PAGE)
			r->taken[page / 64] &= ~(UINT64_C(1) << page % 64);
	}
}

/* Check that single pages of the file can be mapped.  The kernel maps whole hugepages
 * only: an attempt could replace the other places of the row, too. */
static int seg_may_map_page(int fd)
{
	struct stat st;
	struct statfs fs;
	if (fstat(fd, &st) != 0 || fstatfs(fd, &fs) != 0)
		return -errno;
	const struct seg_range *r = seg_find_file(&st);
	return (r && r->own) || fs.f_type == HUGETLBFS_MAGIC ? -EINVAL : 0;
}

static int seg_map_page(int fd, uint64_t off, const void **at_out)
{
	int rc = seg_may_map_page(fd);
	char *at = rc ? NULL : seg_take_place();
	if (!at)
		return rc ? rc : -ENOMEM;
	int flags = MAP_SHARED | MAP_FIXED | MAP_NORESERVE;
	rc = p3_pages_map(at, P3_PAGE, PROT_READ, flags, fd, off) == MAP_FAILED ? -errno
										: 0;
	if (!rc)
		rc = p3_seg_reach(at, P3_PAGE);
	if (rc) {
		seg_give_place(at);
		return rc;
	}
	(void)madvise(at, P3_PAGE, MADV_DONTFORK);
	(void)madvise(at, P3_PAGE, MADV_DONTDUMP);
	*at_out = at;
	return 0;
}

int p3_seg_map_page(int fd, uint64_t off, const void **at_out)
{
	if (off % P3_PAGE)
		return -EINVAL;
	if (!seg_enter())
		return -EAGAIN;
	int rc = seg_map_page(fd, off, at_out);
	seg_leave();
	return rc;
}

void p3_seg_unmap_page(const void *at)
{
	if (!seg_enter())
		return;
	seg_give_place((char *)(uintptr_t)at);
	seg_leave();
}

void p3_seg_forget_all(void)
{
	/* The child has neither mappings nor other threads: the list is a leftover. */
	seg_ranges = seg_spare = NULL;
	memset(seg_rows, 0, sizeof seg_rows);
	seg_here = false;
}

int p3_seg_reserve_range(const struct p3_seg *seg, uint64_t off, uint64_t len)
{
	int rc, saved = errno;
	if (!p3_fd_is(seg->fd, seg->file))
		/* the program has closed it, and the number may be another file's */
		return -EBADF;
	do
		/* libc's fallocate is a cancellation point, and a lease may be held */
		rc = syscall(SYS_fallocate, seg->fd, 0, (off_t)off, (off_t)len) ? -errno
										: 0;
	while (rc == -EINTR);
	if (!rc && seg->base)
		(void)madvise((char *)seg->base + off, len, MADV_DODUMP);
	errno = saved; /* the program's: this may run inside its PtlPut */
	return rc == -ENOMEM ? -ENOSPC : rc;
}

int p3_seg_reserve(struct p3_seg *seg, uint64_t len)
{
	if (len > seg->len)
		return -ENOSPC;
	len = p3_round_up(len, seg->page);
	if (len <= seg->reserved)
		return 0;
	int rc = p3_seg_reserve_range(seg, seg->reserved, len - seg->reserved);
	if (!rc)
		seg->reserved = len;
	return rc;
}

/* Return true if a file of hugepages that is sealed against writing cannot be mapped
 * writable.  Before Linux 5.13 hugetlbfs took that seal and ignored it.  The mapping
 * reserves no page, so that this works without free ones. */
static bool seg_huge_seal_holds(void)
{
	int fd = memfd_create(
		"p3-probe", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB | MFD_HUGE_2MB);
	if (fd < 0)
		return true; /* the segment's creation will say why there are none */
	void *at = MAP_FAILED;
	if (ftruncate(fd, P3_HUGE) == 0 &&
		fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) == 0)
		at = mmap(NULL, P3_HUGE, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (at != MAP_FAILED)
		munmap(at, P3_HUGE);
	p3_fd_close(fd);
	return at == MAP_FAILED;
}

static int seg_create_with(
	const char *name, uint64_t len, uint64_t reserve, bool huge, struct p3_seg *out)
{
	struct p3_seg seg = {.base = NULL, .len = len, .page = huge ? P3_HUGE : P3_PAGE};
	struct rlimit most;
	/* A file longer than the limit would raise SIGXFSZ. */
	if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < len)
		return -EFBIG;
	if (huge && !seg_huge_seal_holds())
		return -EPERM;
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	seg.fd = p3_fd_high(
		memfd_create(name, flags | (huge ? MFD_HUGETLB | MFD_HUGE_2MB : 0)));
	if (seg.fd < 0)
		return -errno;
	int rc = 0;
	seg.file = p3_fd_file(seg.fd);
	FAULT_POINT("seg.created");
	if (ftruncate(seg.fd, (off_t)len) != 0)
		rc = -errno;
	if (!rc)
		rc = p3_seg_reserve(&seg, reserve);
	FAULT_POINT("seg.reserved");
	if (!rc)
		rc = seg_map_locked(seg.fd, len, PROT_READ | PROT_WRITE, OWN, &seg.base);
	if (rc) {
		p3_fd_close(seg.fd); /* also gives partly reserved hugepages back */
		return rc;
	}
	(void)madvise((char *)seg.base + seg.reserved, len - seg.reserved, MADV_DONTDUMP);
	*out = seg;
	FAULT_POINT("seg.mapped");
	return 0;
}

int p3_seg_create(const char *name, uint64_t len, uint64_t reserve,
	enum p3_huge_policy huge, struct p3_seg *seg_out, int *fell_back_out)
{
	*fell_back_out = 0;
	if (huge != P3_HUGE_OFF) {
		int rc = seg_create_with(name, len, reserve, true, seg_out);
		if (!rc || huge == P3_HUGE_ON)
			return rc;
		*fell_back_out = -rc;
	}
	return seg_create_with(name, len, reserve, false, seg_out);
}

int p3_seg_create_doorbell(struct p3_seg *seg_out)
{
	int rc = seg_create_with("p3-doorbell", P3_PAGE, P3_PAGE, false, seg_out);
	if (rc)
		return rc;
	if (fcntl(seg_out->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) ==
		0)
		return 0;
	rc = -errno;
	p3_seg_destroy(seg_out);
	return rc;
}

int p3_seg_seal(const struct p3_seg *seg)
{
	int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
	FAULT_POINT("seg.unsealed");
	return fcntl(seg->fd, F_ADD_SEALS, seals) == 0 ? 0 : -errno;
}

void p3_seg_destroy(struct p3_seg *seg)
{
	p3_seg_unmap(seg->base, seg->len);
	if (p3_fd_is(seg->fd, seg->file))
		p3_fd_close(seg->fd);
	seg->fd = -1;
}

void p3_seg_bind_here(const struct p3_seg *seg)
{
	if (numa_available() < 0 || numa_num_configured_nodes() < 2)
		return;
	int cpu = sched_getcpu();
	int node = cpu < 0 ? -1 : numa_node_of_cpu(cpu);
	if (node < 0 || node >= 64)
		return;
	unsigned long mask = 1ul << node;
	/* Many containers refuse it: first touch by the owner serves as well. */
	(void)mbind(seg->base, seg->len, MPOL_PREFERRED, &mask, 64, 0);
}

int p3_seg_numa_node(const struct p3_seg *seg)
{
	int node = -1;
	if (numa_available() < 0 || numa_num_configured_nodes() < 2)
		return -1;
	if (get_mempolicy(&node, NULL, 0, seg->base, MPOL_F_NODE | MPOL_F_ADDR) != 0)
		return -1;
	return node;
}
