/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of shm/fd: whether a number still names the library's file. */
#include "shm/fd.h"
#include "support/cases.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

static int bell(void)
{
	int fd = eventfd(0, EFD_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

CASE(number_with_another_file_is_noticed)
{
	int fd = bell(), null = open("/dev/null", O_RDONLY | O_CLOEXEC), other = bell();
	p3_fd_id id = p3_fd_file(fd);
	assert_true(p3_fd_is(fd, id));
	assert_int_equal(dup2(null, fd), fd);
	assert_false(p3_fd_is(fd, id));
	assert_int_equal(dup2(other, fd), fd);
	assert_false(p3_fd_is(fd, id));
	close(fd);
	assert_false(p3_fd_is(fd, id));
	close(null);
	close(other);
}

/* The kernel's number of an eventfd takes a free descriptor to read. */
CASE(own_file_is_known_without_a_free_descriptor)
{
	struct rlimit was, none;
	int fd = bell(), null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	p3_fd_id id = p3_fd_file(fd);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = (struct rlimit){0, was.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	bool is = p3_fd_is(fd, id), foreign = p3_fd_is(null, id);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_true(is);
	assert_false(foreign);
	close(fd);
	close(null);
}
