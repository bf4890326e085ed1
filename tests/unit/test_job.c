/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waking the life thread: p3_job_wake() adds one to the thread's eventfd.  It touches no
 * file that the program has given the number of that eventfd or of the lifeline.
 */
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/job/job.h"
#include "shm/fd.h"
#include "support/cases.h"

static struct p3_node node;
static int yod;

static int set_up(void **state)
{
	int pair[2];
	(void)state;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0)
		return -1;
	yod = pair[1];
	node.sock = pair[0];
	node.sock_file = p3_fd_file(node.sock);
	node.wake_fd = eventfd(0, EFD_NONBLOCK);
	node.wake_file = p3_fd_file(node.wake_fd);
	return node.wake_fd < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(node.sock);
	close(node.wake_fd);
	return close(yod);
}

/* Return the number that an eventfd has counted, and reset it. */
static uint64_t counted(int fd)
{
	uint64_t n = 0;
	ssize_t got = read(fd, &n, sizeof n);
	return got == sizeof n ? n : 0;
}

CASE_IN(job_wake_signals_the_life_thread, set_up, tear_down)
{
	p3_job_wake(&node);
	assert_int_equal(counted(node.wake_fd), 1);
	p3_job_wake(&node);
	p3_job_wake(&node);
	assert_int_equal(counted(node.wake_fd), 2);
}

/* A question, and a peer that the NIC needs, wake the thread when they can be read. */
CASE_IN(job_wake_comes_with_questions, set_up, tear_down)
{
	p3_job_ask(&node, 7);
	assert_int_equal(p3_get(&node.question), 7);
	assert_int_equal(counted(node.wake_fd), 1);
	p3_job_meet(&node, 65);
	assert_int_equal(p3_get(&node.wanted[1]), 2);
	assert_int_equal(counted(node.wake_fd), 1);
}

/* Give the number of a descriptor to another file, as programs do. */
static void replace(int fd, int by)
{
	assert_true(by >= 0);
	assert_int_equal(dup2(by, fd), fd);
	close(by);
}

CASE_IN(job_wake_leaves_an_eventfd_of_the_program_alone, set_up, tear_down)
{
	replace(node.wake_fd, eventfd(0, EFD_NONBLOCK));
	p3_job_wake(&node);
	assert_int_equal(counted(node.wake_fd), 0);
}

CASE_IN(job_wake_ends_with_the_lifeline, set_up, tear_down)
{
	replace(node.sock, eventfd(0, EFD_NONBLOCK));
	p3_job_wake(&node);
	assert_int_equal(counted(node.wake_fd), 0);
	assert_int_equal(counted(node.sock), 0);
}
