/* SPDX-License-Identifier: BSD-3-Clause */
/* Heavy fences by membarrier, and the fallback where the kernel refuses it. */
#include "shm/atomics.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* far longer than a CPU keeps a store in its buffer, which is less than a microsecond */
#define P3_BUFFERED_NS 1000000

#ifdef P3_TSAN
static bool fence_call(int command)
{
	(void)command;
	p3_fence();
	return true;
}
#else
static bool fence_call(int command)
{
	int saved = errno;
	bool done = syscall(SYS_membarrier, command, 0, 0) == 0;
	errno = saved;
	return done;
}
#endif

bool p3_fence_join(void)
{
	return fence_call(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) &&
	       fence_call(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
	       fence_call(MEMBARRIER_CMD_GLOBAL_EXPEDITED) &&
	       fence_call(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

static P3_RARE bool fence_wait_for_buffers(void)
{
	struct timespec nap = {.tv_nsec = P3_BUFFERED_NS};
	int saved = errno;
	p3_fence();
	/* libc's nanosleep is a cancellation point, and the lease may be held */
	while (syscall(SYS_nanosleep, &nap, &nap) != 0 && errno == EINTR)
		; /* interrupted by a signal */
	p3_fence();
	errno = saved;
	return false;
}

bool p3_fence_heavy(void)
{
	return fence_call(MEMBARRIER_CMD_GLOBAL_EXPEDITED) || fence_wait_for_buffers();
}

/* Register this process if it has not registered yet: a process with full fences has not
 * joined, but its event queues need this fence (EVQ.4). */
bool p3_fence_heavy_here(void)
{
	return fence_call(MEMBARRIER_CMD_PRIVATE_EXPEDITED) ||
	       (fence_call(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
		       fence_call(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) ||
	       fence_wait_for_buffers();
}
