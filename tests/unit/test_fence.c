/* SPDX-License-Identifier: BSD-3-Clause */
/* Heavy fences: allowed, not joined, refused.  The torture tests check the order that
 * they give. */
#include <errno.h>
#include <stdlib.h>

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/atomics.h"
#include "shm/park.h"
#include "support/deny.h"
#include "support/cases.h"

#define A_MS 1000000u

/* Run in a child, whose exit status is the number of the first false condition. */
#define TRUTH(truth)                                                                     \
	do {                                                                             \
		if (!(truth))                                                            \
			_exit(__LINE__ % 251 + 1);                                       \
	} while (0)

static void in_child(void (*fn)(void))
{
	int status;
	pid_t child = fork();
	if (child == 0) {
		errno = EXDEV;
		fn();
		TRUTH(errno == EXDEV);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* Return true if the fence took a millisecond. */
static bool waits(bool (*heavy)(void), bool *done_out)
{
	uint64_t start = p3_now_ns();
	*done_out = heavy();
	return p3_now_ns() - start >= A_MS;
}

static void joins(void)
{
	bool done;
	for (int i = 0; i < 3; i++)
		TRUTH(p3_fence_join());
	(void)waits(p3_fence_heavy, &done);
	TRUTH(done);
	(void)waits(p3_fence_heavy_here, &done);
	TRUTH(done);
}

static void fences_without_joining(void)
{
	TRUTH(p3_fence_heavy_here());
	TRUTH(p3_fence_heavy());
}

#ifndef P3_TSAN /* where heavy fences make no system call */
static void refuse_membarrier(void)
{
	if (!deny_call(SYS_membarrier))
		_exit(0);
}

static void is_refused(void)
{
	bool done;
	refuse_membarrier();
	TRUTH(!p3_fence_join());
	TRUTH(waits(p3_fence_heavy, &done) && !done);
	TRUTH(waits(p3_fence_heavy_here, &done) && !done);
}

static void is_refused_after_joining(void)
{
	TRUTH(p3_fence_join());
	is_refused();
}

CASE(takes_a_millisecond_if_refused)
{
	in_child(is_refused);
	in_child(is_refused_after_joining);
}
#endif

CASE(joins_any_number_of_times)
{
	in_child(joins);
}

CASE(needs_not_have_joined)
{
	in_child(fences_without_joining);
}
