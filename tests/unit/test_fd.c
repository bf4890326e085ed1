/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of shm/fd: whether a number still names the library's file. */
#include "shm/fd.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

static int bell(void)
{
	int fd = eventfd(0, EFD_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void number_with_another_file_is_noticed(void **state)
{
	(void)state;
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
static void own_file_is_known_without_a_free_descriptor(void **state)
{
	(void)state;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(number_with_another_file_is_noticed),
		cmocka_unit_test(own_file_is_known_without_a_free_descriptor),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
