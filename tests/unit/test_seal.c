/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hugepages that peers could write to are not used.  The fcntl of this program takes the
 * seal FUTURE_WRITE and forgets it, as hugetlbfs did before Linux 5.13.
 */
#include "shm/seg.h"
#include "shm/layout.h"
#include "support/cases.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define HUGETLBFS 0x958458f6

static bool forgets;

static bool is_huge(int fd)
{
	struct statfs fs;
	return fstatfs(fd, &fs) == 0 && fs.f_type == HUGETLBFS;
}

static int control(int fd, int cmd, long arg)
{
	if (forgets && cmd == F_ADD_SEALS && is_huge(fd))
		arg &= ~F_SEAL_FUTURE_WRITE;
	return (int)syscall(SYS_fcntl, fd, cmd, arg);
}

/* The library calls these in place of libc's. */
int fcntl(int fd, int cmd, ...)
{
	va_list ap;
	va_start(ap, cmd);
	long arg = va_arg(ap, long);
	va_end(ap);
	return control(fd, cmd, arg);
}

int fcntl64(int fd, int cmd, ...)
{
	va_list ap;
	va_start(ap, cmd);
	long arg = va_arg(ap, long);
	va_end(ap);
	return control(fd, cmd, arg);
}

/* Return what the attempt with hugepages said: 0, or an errno. */
static int made(enum p3_huge_policy policy, int *rc_out)
{
	struct p3_seg seg;
	int fell_back;
	*rc_out = p3_seg_create("test", P3_HUGE, P3_PAGE, policy, &seg, &fell_back);
	if (!*rc_out)
		p3_seg_destroy(&seg);
	return fell_back;
}

CASE(kernel_that_keeps_the_seal_may_give_hugepages)
{
	int rc;
	forgets = false;
	assert_int_not_equal(made(P3_HUGE_AUTO, &rc), EPERM);
	assert_int_equal(rc, 0);
}

CASE(kernel_that_forgets_the_seal_gives_ordinary_pages)
{
	int rc, fd = memfd_create("test", MFD_CLOEXEC | MFD_HUGETLB);
	if (fd < 0)
		skip(); /* the kernel has no hugepages at all */
	close(fd);
	forgets = true;
	assert_int_equal(made(P3_HUGE_AUTO, &rc), EPERM);
	assert_int_equal(rc, 0);
	made(P3_HUGE_ON, &rc);
	assert_int_equal(rc, -EPERM);
}
