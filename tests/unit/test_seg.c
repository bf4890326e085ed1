/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Segments: page sizes, the guarantees of the seals, ranges.  Cases about hugepages are
 * skipped where there are none and none can be had.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <errno.h>
#include <linux/falloc.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shm/seg.h"
#include "shm/layout.h"
#include "unit/torture.h"
#include "support/cases.h"
#include "support/descriptors.h"

#define HUGE       ((uint64_t)P3_HUGE)
#define PAGE       ((uint64_t)P3_PAGE)
#define SEALS      (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE)
#define BELL_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)
#define NR_HUGE    "/proc/sys/vm/nr_hugepages"
#define MOST_POOL  1024 /* pages: a larger pool is not emptied for a test */

/* ---- reports of the system ---- */

static long number_in(const char *path, const char *name)
{
	char line[200];
	long value = -1;
	FILE *f = fopen(path, "re");
	assert_non_null(f);
	while (value < 0 && fgets(line, sizeof line, f))
		if (strncmp(line, name, strlen(name)) == 0)
			value = strtol(line + strlen(name) + 1, NULL, 10);
	fclose(f);
	return value;
}

static long read_long(const char *path)
{
	long value = -1;
	FILE *f = fopen(path, "re");
	if (f) {
		if (fscanf(f, "%ld", &value) != 1)
			value = -1;
		fclose(f);
	}
	return value;
}

static bool write_long(const char *path, long value)
{
	FILE *f = fopen(path, "we");
	if (!f)
		return false;
	bool ok = fprintf(f, "%ld\n", value) > 0;
	return fclose(f) == 0 && ok;
}

/* Return a field of the mapping that holds base in smaps, in bytes; or its name. */
static uint64_t smaps(const void *base, const char *field, char *name)
{
	char line[500];
	bool here = false;
	uint64_t value = 0;
	FILE *f = fopen("/proc/self/smaps", "re");
	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		unsigned long from, to;
		if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %250s", &from, &to, name) >= 2)
			here = from <= (uintptr_t)base && (uintptr_t)base < to;
		else if (here && strncmp(line, field, strlen(field)) == 0) {
			value = strtoull(line + strlen(field) + 1, NULL, 10) * 1024;
			break;
		}
	}
	fclose(f);
	return value;
}

static uint64_t page_of(const void *base)
{
	char name[251];
	return smaps(base, "KernelPageSize", name);
}

/* ---- hugepages ---- */

static long first_nr_huge;
static bool raised;

/* Make sure of n free hugepages, if need be by asking the kernel for more.  Return
 * false if that fails. */
static bool have_huge(long n)
{
	long missing = n - number_in("/proc/meminfo", "HugePages_Free");
	if (missing > 0) {
		raised = write_long(NR_HUGE, read_long(NR_HUGE) + missing);
		missing = n - number_in("/proc/meminfo", "HugePages_Free");
	}
	return missing <= 0;
}

static void need_huge(long n)
{
	if (have_huge(n))
		return;
	print_message("skipped: %ld free hugepages needed\n", n);
	skip();
}

/* Return a length that needs more hugepages than can be had. */
static uint64_t too_long(void)
{
	long over = read_long("/proc/sys/vm/nr_overcommit_hugepages");
	long pages =
		number_in("/proc/meminfo", "HugePages_Free") + (over > 0 ? over : 0) + 16;
	if (pages > MOST_POOL) {
		print_message("skipped: a pool of %ld pages is too large\n", pages);
		skip();
	}
	return (uint64_t)pages * HUGE;
}

/* This process maps no hugepages; teardown() looks for a descriptor that holds some.
 * The free ones of the machine would tell of other processes. */
static void assert_no_huge(void)
{
	assert_int_equal(number_in("/proc/self/status", "HugetlbPages"), 0);
}

static unsigned open_fds;
static int
	turn; /* with the machine's hugepages, which other runs of this test count, too */

static int setup(void **state)
{
	(void)state;
	turn = open(NR_HUGE, O_RDONLY | O_CLOEXEC);
	if (turn >= 0)
		(void)flock(turn, LOCK_EX);
	first_nr_huge = read_long(NR_HUGE);
	open_fds = descriptors_of("self");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	bool restored = !raised || write_long(NR_HUGE, first_nr_huge);
	bool same = descriptors_of("self") == open_fds;
	if (turn >= 0)
		close(turn);
	return restored && same ? 0 : -1;
}

/* ---- segments ---- */

static struct p3_seg create(uint64_t len, uint64_t reserve, enum p3_huge_policy huge)
{
	struct p3_seg seg;
	int fell_back = 99;
	assert_int_equal(
		p3_seg_create("p3-test", len, reserve, huge, &seg, &fell_back), 0);
	assert_int_equal(fell_back, 0);
	return seg;
}

CASE(seg_has_small_pages_when_huge_is_off)
{
	struct p3_seg seg = create(2 * HUGE, 1, P3_HUGE_OFF);
	assert_int_equal(seg.len, 2 * HUGE);
	assert_int_equal(seg.page, PAGE);
	assert_int_equal(seg.reserved, PAGE);
	assert_int_equal(page_of(seg.base), PAGE);
	p3_seg_destroy(&seg);
	assert_int_equal(seg.fd, -1);
}

CASE(seg_has_huge_pages_when_huge_is_on_or_auto)
{
	need_huge(2);
	for (int i = 0; i < 2; i++) {
		struct p3_seg seg = create(2 * HUGE, 1, i ? P3_HUGE_ON : P3_HUGE_AUTO);
		assert_int_equal(seg.page, HUGE);
		assert_int_equal(seg.reserved, HUGE);
		assert_int_equal(page_of(seg.base), HUGE);
		memset(seg.base, 1, HUGE);
		p3_seg_destroy(&seg);
		assert_no_huge();
	}
}

CASE(seg_falls_back_and_says_so_when_huge_is_auto)
{
	uint64_t len = too_long();
	struct p3_seg seg;
	int fell_back = 0;
	assert_int_equal(
		p3_seg_create("p3-test", len, len, P3_HUGE_AUTO, &seg, &fell_back), 0);
	assert_no_huge();
	assert_in_range(fell_back, 1, 200);
	assert_int_equal(seg.page, PAGE);
	assert_int_equal(page_of(seg.base), PAGE);
	p3_seg_destroy(&seg);
}

CASE(seg_fails_and_leaves_nothing_when_huge_is_on)
{
	uint64_t len = too_long();
	struct p3_seg seg = {.fd = 1234};
	int fell_back;
	unsigned fds = descriptors_of("self");
	int rc = p3_seg_create("p3-test", len, len, P3_HUGE_ON, &seg, &fell_back);
	assert_int_equal(rc, -ENOSPC);
	assert_int_equal(seg.fd, 1234);
	assert_int_equal(descriptors_of("self"), fds);
	assert_no_huge();
}

CASE(seg_shows_its_name_in_maps)
{
	char name[251] = "";
	struct p3_seg seg = create(HUGE, 0, P3_HUGE_OFF);
	smaps(seg.base, "KernelPageSize", name);
	assert_string_equal(name, "/memfd:p3-test");
	p3_seg_destroy(&seg);
}

CASE(seg_descriptors_do_not_survive_exec)
{
	struct p3_seg seg = create(HUGE, 0, P3_HUGE_OFF), bell;
	assert_int_equal(p3_seg_create_doorbell(&bell), 0);
	assert_int_equal(fcntl(seg.fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fcntl(bell.fd, F_GETFD), FD_CLOEXEC);
	p3_seg_destroy(&seg);
	p3_seg_destroy(&bell);
}

static uint64_t allocated(int fd)
{
	struct stat st;
	assert_int_equal(fstat(fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

CASE(seg_reserve_allocates_what_it_promises)
{
	struct p3_seg seg = create(HUGE, 0, P3_HUGE_OFF);
	assert_int_equal(allocated(seg.fd), 0);
	for (uint64_t len = 1; len < 40 * PAGE; len += 3 * PAGE) {
		uint64_t want = p3_round_up(len, PAGE);
		assert_int_equal(p3_seg_reserve(&seg, len), 0);
		assert_int_equal(seg.reserved, want);
		assert_true(allocated(seg.fd) >= want);
		assert_int_equal(p3_seg_reserve(&seg, len / 2), 0);
		assert_int_equal(seg.reserved, want);
	}
	assert_int_equal(p3_seg_reserve(&seg, HUGE), 0);
	assert_int_equal(seg.reserved, HUGE);
	p3_seg_destroy(&seg);
}

CASE(seg_reserve_beyond_the_end_has_no_room)
{
	static const uint64_t len[] = {HUGE + 1, 2 * HUGE, UINT64_MAX / 2,
		UINT64_MAX - HUGE, UINT64_MAX - PAGE + 2, UINT64_MAX};
	struct p3_seg seg = create(HUGE, PAGE, P3_HUGE_OFF);
	for (size_t i = 0; i < sizeof len / sizeof len[0]; i++) {
		assert_int_equal(p3_seg_reserve(&seg, len[i]), -ENOSPC);
		assert_int_equal(seg.reserved, PAGE);
	}
	p3_seg_destroy(&seg);
}

CASE(seg_reserve_has_no_room_when_hugepages_run_out)
{
	need_huge(1);
	uint64_t len = too_long();
	struct p3_seg seg = create(len, 1, P3_HUGE_ON);
	assert_int_equal(p3_seg_reserve(&seg, len), -ENOSPC);
	assert_int_equal(seg.reserved, HUGE);
	memset(seg.base, 1, HUGE);
	p3_seg_destroy(&seg);
	assert_no_huge();
}

static int create_over_the_limit(void *arg)
{
	const struct rlimit limit = {HUGE, HUGE};
	struct p3_seg seg;
	int fell_back;
	(void)arg;
	signal(SIGXFSZ, SIG_DFL);
	if (setrlimit(RLIMIT_FSIZE, &limit) ||
		p3_seg_create("p3-test", HUGE, PAGE, P3_HUGE_OFF, &seg, &fell_back))
		return 1;
	int rc = p3_seg_create("p3-test", 2 * HUGE, PAGE, P3_HUGE_OFF, &seg, &fell_back);
	return rc == -EFBIG ? 0 : 2;
}

CASE(seg_over_the_limit_of_file_sizes_is_an_error_not_a_signal)
{
	assert_int_equal(wait_child(run_child(create_over_the_limit, NULL)), 0);
}

/* ---- a descriptor in other processes ---- */

/* Check a refusal.  EINVAL: files of hugepages have no write() at all. */
static void refused(long rc, int err, const char *what)
{
	if (rc != -1 || (err != EPERM && err != EACCES && err != EINVAL))
		fail_msg("%s: %ld, %s", what, rc, strerror(err));
}

#define assert_refused(call)                                                             \
	do {                                                                             \
		errno = 0;                                                               \
		long rc_ = (call);                                                       \
		refused(rc_, errno, #call);                                              \
	} while (0)

static void assert_not_mapped_writable(int fd, uint64_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_equal(p, MAP_FAILED);
	assert_in_range(errno, EPERM, EACCES);
	p = mmap(NULL, len, PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_equal(p, MAP_FAILED);
	p = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	assert_refused(mprotect(p, len, PROT_READ | PROT_WRITE));
	assert_refused(madvise(p, len, MADV_REMOVE));
	munmap(p, len);
}

static void assert_not_written(int fd)
{
	char byte = 'x';
	assert_refused(pwrite(fd, &byte, 1, 0));
	assert_refused(
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, HUGE));
}

static void assert_size_fixed(int fd, uint64_t len)
{
	assert_refused(ftruncate(fd, 0));
	assert_refused(ftruncate(fd, (off_t)(len - HUGE)));
	assert_refused(ftruncate(fd, (off_t)(len + HUGE)));
	assert_refused(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
	assert_refused(fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL));
}

/* Check that a newly opened description of the file can do no more. */
static void assert_not_reopened(int fd, uint64_t len)
{
	char path[40];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	assert_refused(open(path, O_RDWR | O_TRUNC | O_CLOEXEC));
	int again = open(path, O_RDWR | O_CLOEXEC);
	if (again < 0)
		return;
	assert_not_mapped_writable(again, len);
	assert_not_written(again);
	assert_size_fixed(again, len);
	close(again);
}

/* Check that a process cannot write to its own view through /proc. */
static void assert_not_poked(int fd, uint64_t len)
{
	char byte = 'x';
	void *p = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	if (mem >= 0) {
		assert_int_equal(pwrite(mem, &byte, 1, (off_t)(uintptr_t)p), -1);
		close(mem);
	}
	munmap(p, len);
}

static void seg_keeps_its_seals(enum p3_huge_policy huge)
{
	struct p3_seg seg = create(2 * HUGE, 1, huge);
	char *own = seg.base;
	own[0] = 'a';
	assert_int_equal(p3_seg_seal(&seg), 0);
	assert_int_equal(fcntl(seg.fd, F_GET_SEALS), SEALS | F_SEAL_SEAL);
	assert_not_mapped_writable(seg.fd, seg.len);
	assert_not_written(seg.fd);
	assert_size_fixed(seg.fd, seg.len);
	assert_not_reopened(seg.fd, seg.len);
	assert_not_poked(seg.fd, seg.len);
	assert_int_equal(own[0], 'a');
	own[0] = 'b'; /* its owner still writes, and reserves more */
	assert_int_equal(p3_seg_reserve(&seg, 2 * HUGE), 0);
	own[2 * HUGE - 1] = 'c';
	assert_int_equal(own[0], 'b');
	p3_seg_destroy(&seg);
}

CASE(seg_small_pages_keep_their_seals)
{
	seg_keeps_its_seals(P3_HUGE_OFF);
}

CASE(seg_huge_pages_keep_their_seals)
{
	need_huge(2);
	seg_keeps_its_seals(P3_HUGE_ON);
}

/* ---- mapping segments of other processes ---- */

/* Make a descriptor of len bytes, the first of them byte, as another process would. */
static int foreign(uint64_t len, int seals, char byte)
{
	int fd = memfd_create("foreign", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)len), 0);
	if (len)
		assert_int_equal(pwrite(fd, &byte, 1, 0), 1);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static const char *map(int fd, uint64_t len)
{
	void *base = NULL;
	assert_int_equal(p3_seg_map(fd, len, false, &base), 0);
	assert_non_null(base);
	return base;
}

static void assert_not_mapped(int fd, uint64_t len, bool writable)
{
	void *base = &base;
	unsigned fds = descriptors_of("self");
	assert_int_equal(p3_seg_map(fd, len, writable, &base), -EPROTO);
	assert_ptr_equal(base, &base);
	assert_int_equal(
		descriptors_of("self"), fds); /* the descriptor stays the caller's */
}

CASE(seg_map_shows_the_bytes_of_the_peer)
{
	int fd = foreign(HUGE, SEALS, 'p');
	const char *base = map(fd, HUGE);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
	assert_int_equal(base[0], 'p');
	assert_int_equal(base[HUGE - 1], 0);
	assert_int_equal((uintptr_t)base % HUGE, 0);
	p3_seg_unmap((void *)(uintptr_t)base, HUGE);
}

CASE(seg_map_refuses_a_wrong_size)
{
	static const uint64_t wrong[] = {0, PAGE, HUGE - PAGE, HUGE + PAGE, 2 * HUGE};
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		int fd = foreign(wrong[i], SEALS, 'p');
		assert_not_mapped(fd, HUGE, false);
		close(fd);
	}
}

CASE(seg_map_refuses_what_is_not_sealed)
{
	static const int some[] = {0, F_SEAL_SHRINK, F_SEAL_SHRINK | F_SEAL_GROW,
		F_SEAL_GROW | F_SEAL_FUTURE_WRITE, F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE};
	for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
		int fd = foreign(HUGE, some[i], 'p');
		assert_not_mapped(fd, HUGE, false);
		close(fd);
	}
	int fd = foreign(PAGE, F_SEAL_SHRINK, 'p');
	assert_not_mapped(fd, PAGE, true);
	close(fd);
	fd = foreign(PAGE, F_SEAL_GROW, 'p');
	assert_not_mapped(fd, PAGE, true);
	close(fd);
}

CASE(seg_map_refuses_a_doorbell_that_cannot_be_written)
{
	int fd = foreign(PAGE, SEALS, 'p');
	assert_not_mapped(fd, PAGE, true);
	close(fd);
	fd = foreign(PAGE, BELL_SEALS | F_SEAL_WRITE, 'p');
	assert_not_mapped(fd, PAGE, true);
	close(fd);
}

CASE(seg_map_refuses_what_is_no_memfd)
{
	int fds[2], null = open("/dev/null", O_RDWR | O_CLOEXEC);
	FILE *file = tmpfile();
	assert_non_null(file);
	assert_int_equal(ftruncate(fileno(file), (off_t)HUGE), 0);
	assert_int_equal(pipe(fds), 0);
	for (int writable = 0; writable <= 1; writable++) {
		assert_not_mapped(null, HUGE, writable);
		assert_not_mapped(fds[0], HUGE, writable);
		assert_not_mapped(fileno(file), HUGE, writable);
		assert_not_mapped(-1, HUGE, writable);
	}
	close(null);
	close(fds[0]);
	close(fds[1]);
	fclose(file);
}

/* An empty mapping has no base address that could be given back later. */
CASE(seg_map_refuses_nothing_at_all)
{
	int fd = foreign(0, SEALS, 0);
	assert_not_mapped(fd, 0, false);
	close(fd);
}

/* One page of file is under two of a mapping: touching the second would be SIGBUS, as
 * is touching a page that its owner did not reserve on a machine without room. */
CASE(seg_reach_finds_pages_that_are_not_there)
{
	int fd = memfd_create("short", MFD_CLOEXEC);
	assert_int_equal(ftruncate(fd, P3_PAGE), 0);
	char *at = mmap(NULL, 2 * P3_PAGE, PROT_READ, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	assert_int_equal(p3_seg_reach(at, P3_PAGE), 0);
	assert_int_equal(p3_seg_reach(at + 100, 8), 0);
	assert_int_equal(p3_seg_reach(at + P3_PAGE - 1, 2), -EFAULT);
	assert_int_equal(p3_seg_reach(at + P3_PAGE, 1), -EFAULT);
	munmap(at, 2 * P3_PAGE);
	close(fd);
}

CASE(seg_dropped_mapping_reads_as_zeros)
{
	int fd = foreign(HUGE, SEALS, 'p');
	const volatile char *base = map(fd, HUGE);
	close(fd);
	assert_int_equal(base[0], 'p');
	p3_seg_unmap((void *)(uintptr_t)base, HUGE);
	for (uint64_t i = 0; i < HUGE; i += 512)
		assert_int_equal(base[i], 0);
	p3_seg_unmap((void *)(uintptr_t)base, HUGE); /* once more: nothing to do */
	assert_int_equal(base[0], 0);
}

CASE(seg_dropped_ranges_are_used_again_for_the_same_length)
{
	const char *base[3];
	for (int i = 0; i < 3; i++) {
		int fd = foreign(3 * HUGE, SEALS, (char)('0' + i));
		base[i] = map(fd, 3 * HUGE);
		close(fd);
	}
	assert_ptr_not_equal(base[0], base[1]);
	for (int round = 0; round < 20; round++) {
		int fd = foreign(3 * HUGE, SEALS, 'n');
		p3_seg_unmap((void *)(uintptr_t)base[1], 3 * HUGE);
		assert_ptr_equal(map(fd, 3 * HUGE), base[1]);
		assert_int_equal(base[1][0], 'n');
		close(fd);
	}
	assert_int_equal(base[0][0], '0');
	assert_int_equal(base[2][0], '2');
	for (int i = 0; i < 3; i++)
		p3_seg_unmap((void *)(uintptr_t)base[i], 3 * HUGE);
	int fd = foreign(4 * HUGE, SEALS, 'x');
	const char *other = map(fd, 4 * HUGE);
	for (int i = 0; i < 3; i++) {
		assert_true(other >= base[i] + 3 * HUGE || other + 4 * HUGE <= base[i]);
		assert_int_equal(base[i][0], 0);
	}
	p3_seg_unmap((void *)(uintptr_t)other, 4 * HUGE);
	close(fd);
}

/* Peers come one after the other, and their traces make their segments differ. */
CASE(seg_dropped_ranges_serve_other_lengths)
{
	uint64_t before = address_space();
	for (uint64_t i = 0; i < 2000; i++) {
		uint64_t len = 2 * HUGE + i * PAGE;
		int fd = foreign(len, SEALS, 't');
		const char *base = map(fd, len);
		assert_int_equal(base[0], 't');
		p3_seg_unmap((void *)(uintptr_t)base, len);
		close(fd);
	}
	/* 12 MiB at most, by eighths from 4 MiB on, each once. */
	assert_true(address_space() < before + 16 * 12 * (HUGE / 2));
}

CASE(seg_view_gives_its_addresses_back)
{
	void *base;
	uint64_t before = address_space();
	for (uint64_t len = HUGE; len <= (uint64_t)64 << 30; len *= 2) {
		int fd = foreign(len, SEALS, 'v');
		assert_int_equal(p3_seg_view(fd, len, &base), 0);
		assert_int_equal(*(char *)base, 'v');
		assert_int_equal((uintptr_t)base % HUGE, 0);
		p3_seg_unmap(base, len);
		assert_true(address_space() < before + HUGE);
		close(fd);
	}
	int open = foreign(HUGE, 0, 'v');
	assert_int_equal(p3_seg_view(open, HUGE, &base), -EPROTO);
	close(open);
}

/* This also holds for an own segment, with any page size. */
CASE(seg_destroyed_segment_reads_as_zeros)
{
	for (int huge = 0; huge < 2; huge++) {
		if (huge && !have_huge(1))
			break;
		struct p3_seg seg = create(HUGE, 1, huge ? P3_HUGE_ON : P3_HUGE_OFF);
		volatile char *own = seg.base;
		own[5] = 'z';
		p3_seg_destroy(&seg);
		assert_int_equal(own[5], 0);
		assert_int_equal(own[HUGE - 1], 0);
		assert_int_equal(page_of((void *)(uintptr_t)own), PAGE);
	}
}

CASE(seg_is_mapped_once_in_a_process)
{
	struct p3_seg seg = create(HUGE, 1, P3_HUGE_OFF);
	volatile char *own = seg.base;
	assert_int_equal(p3_seg_seal(&seg), 0);
	assert_ptr_equal(map(seg.fd, HUGE), own);
	assert_ptr_equal(map(seg.fd, HUGE), own);
	own[0] = 'o';
	p3_seg_unmap(seg.base, HUGE);
	p3_seg_unmap(seg.base, HUGE);
	assert_int_equal(own[0], 'o');
	p3_seg_destroy(&seg);
	assert_int_equal(own[0], 0);
}

/* ---- single pages side by side ---- */

enum { IN_ROWS = 4096 }; /* pages of all rows */

/* Map page 1 of a peer's segment. */
static const volatile char *map_page(int fd)
{
	const void *at = NULL;
	assert_int_equal(p3_seg_map_page(fd, PAGE, &at), 0);
	assert_non_null(at);
	return at;
}

static void unmap_page(const volatile char *at)
{
	p3_seg_unmap_page((const void *)(uintptr_t)at);
}

static int foreign_page(char byte)
{
	int fd = foreign(HUGE, F_SEAL_SHRINK | F_SEAL_GROW, '0');
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)PAGE + 7), 1);
	return fd;
}

CASE(seg_pages_of_several_lie_side_by_side)
{
	int fd[3];
	const volatile char *at[3];
	for (int i = 0; i < 3; i++) {
		fd[i] = foreign_page((char)('a' + i));
		at[i] = map_page(fd[i]);
		assert_int_equal((uintptr_t)at[i] / HUGE, (uintptr_t)at[0] / HUGE);
	}
	assert_ptr_equal(at[1], at[0] + PAGE);
	assert_ptr_equal(at[2], at[1] + PAGE);
	for (int round = 0; round < 3; round++) {
		assert_int_equal(at[0][7], 'a');
		assert_int_equal(at[1][7], 'b');
		assert_int_equal(at[2][7], 'c');
		unmap_page(at[1]);
		for (uint64_t i = 0; i < PAGE; i++)
			assert_int_equal(at[1][i], 0);
		assert_int_equal(at[0][7] + at[2][7], 'a' + 'c');
		assert_ptr_equal(map_page(fd[1]), at[1]); /* its place, once more */
	}
	for (int i = 0; i < 3; i++) {
		unmap_page(at[i]);
		close(fd[i]);
	}
}

CASE(seg_pages_that_cannot_be_had_take_none_away)
{
	const void *none = NULL;
	int fd = foreign_page('q');
	const volatile char *there = map_page(fd);
	struct p3_seg own = create(HUGE, HUGE, P3_HUGE_OFF);
	assert_int_equal(p3_seg_map_page(own.fd, PAGE, &none), -EINVAL);
	assert_int_equal(p3_seg_map_page(fd, PAGE + 1, &none), -EINVAL);
	assert_true(p3_seg_map_page(fd, HUGE, &none) < 0); /* behind its end */
	assert_int_equal(p3_seg_map_page(-1, PAGE, &none), -EBADF);
	p3_seg_destroy(&own);
	for (int i = 0; i < 2 && have_huge(1); i++) {
		int huge = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB);
		assert_int_equal(ftruncate(huge, (off_t)HUGE), 0);
		assert_int_equal(
			p3_seg_map_page(huge, (uint64_t)i * PAGE, &none), -EINVAL);
		close(huge);
	}
	assert_null(none);
	assert_int_equal(there[7], 'q');
	unmap_page(there);
	close(fd);
}

CASE(seg_rows_of_pages_end)
{
	static const volatile char *at[IN_ROWS];
	const void *none = NULL;
	int fd = foreign_page('e');
	for (int i = 0; i < IN_ROWS; i++)
		at[i] = map_page(fd);
	assert_int_equal(p3_seg_map_page(fd, PAGE, &none), -ENOMEM);
	assert_null(none);
	unmap_page(at[IN_ROWS / 2]);
	assert_ptr_equal(map_page(fd), at[IN_ROWS / 2]);
	for (int i = 0; i < IN_ROWS; i++) {
		assert_int_equal(at[i][7], 'e');
		unmap_page(at[i]);
	}
	close(fd);
}

/* The row lies where a segment was: that one comes back elsewhere, and whole. */
CASE(seg_row_is_nobodys_segment)
{
	p3_seg_forget_all(); /* so that the row is made anew */
	int fd = foreign(HUGE, SEALS, 's'), other = foreign_page('r');
	const char *before = map(fd, HUGE);
	p3_seg_unmap((void *)(uintptr_t)before, HUGE);
	const volatile char *at = map_page(other);
	assert_ptr_equal(at, before); /* else this tests nothing */
	const char *again = map(fd, HUGE);
	assert_ptr_not_equal(again, before);
	assert_int_equal(again[0], 's');
	p3_seg_unmap((void *)(uintptr_t)again, HUGE);
	assert_int_equal(at[7], 'r');
	unmap_page(at);
	close(fd);
	close(other);
}

static int write_page(void *arg)
{
	const int *fd = arg;
	signal(SIGSEGV, SIG_DFL);
	p3_seg_forget_all();
	*(volatile char *)(uintptr_t)map_page(*fd) = 'w';
	return 0;
}

static int read_inherited_page(void *arg)
{
	signal(SIGSEGV, SIG_DFL);
	return *(volatile char *)arg;
}

CASE(seg_page_is_read_only_and_not_inherited)
{
	int fd = foreign_page('i');
	assert_int_equal(wait_child(run_child(write_page, &fd)), 128 + SIGSEGV);
	char *at = (char *)(uintptr_t)map_page(fd);
	assert_int_equal(at[7], 'i');
	assert_int_equal(wait_child(run_child(read_inherited_page, at)), 128 + SIGSEGV);
	unmap_page(at);
	close(fd);
}

/* ---- other processes ---- */

static int write_peer(void *arg)
{
	const int *fd = arg;
	void *base;
	signal(SIGSEGV, SIG_DFL); /* a sanitizer's handler would turn it into an exit */
	p3_seg_forget_all();
	if (p3_seg_map(*fd, HUGE, false, &base))
		return 1;
	if (*(volatile char *)base != 'a')
		return 2;
	*(volatile char *)base = 'b';
	return 0;
}

CASE(seg_of_a_peer_is_read_only)
{
	struct p3_seg seg = create(HUGE, 1, P3_HUGE_OFF);
	volatile char *own = seg.base;
	own[0] = 'a';
	assert_int_equal(p3_seg_seal(&seg), 0);
	assert_int_equal(wait_child(run_child(write_peer, &seg.fd)), 128 + SIGSEGV);
	assert_int_equal(own[0], 'a');
	p3_seg_destroy(&seg);
}

static int read_inherited(void *arg)
{
	const struct p3_seg *seg = arg;
	signal(SIGSEGV, SIG_DFL);
	return *(volatile char *)seg->base;
}

CASE(seg_is_not_inherited)
{
	struct p3_seg seg = create(HUGE, 1, P3_HUGE_OFF);
	assert_int_equal(wait_child(run_child(read_inherited, &seg)), 128 + SIGSEGV);
	p3_seg_destroy(&seg);
}

static int ring_doorbell(void *arg)
{
	const int *fd = arg;
	void *base;
	p3_seg_forget_all();
	if (p3_seg_map(*fd, PAGE, true, &base))
		return 1;
	struct p3_doorbell *bell = base;
	p3_release(&bell->kick, 7);
	p3_or64(&bell->lanes[P3_MAX_NODES / 64 - 1], 5);
	return p3_acquire(&bell->asleep) == P3_ASLEEP_NIC ? 0 : 2;
}

CASE(seg_doorbell_is_written_by_all_and_fixed_in_size)
{
	struct p3_seg seg;
	assert_int_equal(p3_seg_create_doorbell(&seg), 0);
	struct p3_doorbell *bell = seg.base;
	assert_int_equal(seg.len, PAGE);
	assert_int_equal(allocated(seg.fd), PAGE);
	assert_int_equal(fcntl(seg.fd, F_GET_SEALS), BELL_SEALS | F_SEAL_SEAL);
	assert_refused(ftruncate(seg.fd, 0));
	assert_refused(ftruncate(seg.fd, (off_t)HUGE));
	assert_refused(fcntl(seg.fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE));
	p3_release(&bell->asleep, P3_ASLEEP_NIC);
	assert_int_equal(wait_child(run_child(ring_doorbell, &seg.fd)), 0);
	assert_int_equal(p3_acquire(&bell->kick), 7);
	assert_int_equal(p3_get(&bell->lanes[P3_MAX_NODES / 64 - 1]), 5);
	p3_seg_destroy(&seg);
}

/* ---- threads ---- */

struct mapper {
	int fd[2];
	uint64_t until;
	struct verdict verdict;
};

static void *run_mapper(void *arg)
{
	struct mapper *m = arg;
	for (unsigned i = 0; p3_now_ns() < m->until && !m->verdict.why; i++) {
		void *base;
		int rc = p3_seg_map(m->fd[i % 2], HUGE, false, &base);
		if (!SIDE_CHECK(&m->verdict, rc == 0, i))
			break;
		const volatile char *byte = base;
		SIDE_CHECK(&m->verdict, *byte == (i % 2 ? 'r' : 'q'), i);
		p3_seg_unmap(base, HUGE);
	}
	return NULL;
}

CASE(seg_maps_and_unmaps_in_several_threads)
{
	int q = foreign(HUGE, SEALS, 'q'), r = foreign(HUGE, SEALS, 'r');
	struct mapper m[2];
	for (int i = 0; i < 2; i++)
		m[i] = (struct mapper){{q, r}, p3_now_ns() + torture_ns(4), {NULL, 0}};
	run_threads(2, (torture_side *const[]){run_mapper, run_mapper},
		(void *const[]){&m[0], &m[1]});
	assert_side_is_well("first", &m[0].verdict);
	assert_side_is_well("second", &m[1].verdict);
	close(q);
	close(r);
}

CASE(seg_binding_does_no_harm)
{
	struct p3_seg seg = create(HUGE, HUGE, P3_HUGE_OFF);
	memset(seg.base, 'm', HUGE);
	p3_seg_bind_here(&seg);
	for (uint64_t i = 0; i < HUGE; i += PAGE)
		assert_int_equal(((char *)seg.base)[i], 'm');
	p3_seg_destroy(&seg);
}

/* ---- a machine of two NUMA nodes, which is played here (--wrap) ---- */

static bool two_nodes;
static int node_of_pages; /* -1: the kernel refuses to tell */

int __real_numa_available(void);
int __real_numa_num_configured_nodes(void);
long __real_get_mempolicy(
	int *mode, unsigned long *mask, unsigned long bits, void *at, unsigned flags);
int __wrap_numa_available(void);
int __wrap_numa_num_configured_nodes(void);
long __wrap_get_mempolicy(
	int *mode, unsigned long *mask, unsigned long bits, void *at, unsigned flags);

int __wrap_numa_available(void)
{
	return two_nodes ? 0 : __real_numa_available();
}

int __wrap_numa_num_configured_nodes(void)
{
	return two_nodes ? 2 : __real_numa_num_configured_nodes();
}

long __wrap_get_mempolicy(
	int *mode, unsigned long *mask, unsigned long bits, void *at, unsigned flags)
{
	if (!two_nodes)
		return __real_get_mempolicy(mode, mask, bits, at, flags);
	if (node_of_pages < 0)
		return -1;
	*mode = node_of_pages;
	return 0;
}

CASE(seg_tells_the_numa_node_of_its_pages)
{
	struct p3_seg seg = create(HUGE, HUGE, P3_HUGE_OFF);
	two_nodes = true;
	for (node_of_pages = -1; node_of_pages < 2; node_of_pages++)
		assert_int_equal(p3_seg_numa_node(&seg), node_of_pages);
	two_nodes = false;
	p3_seg_destroy(&seg);
}

int main(void)
{
	return cases_run_in(setup, teardown);
}
