/* SPDX-License-Identifier: BSD-3-Clause */
#include "shm/fence.h"
#include "shm/log.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A CPU keeps what it has stored to itself for less than a microsecond. */
#define P3_BUFFERED_NS 1000000

#ifdef P3_TSAN
static bool membarrier(int command)
{
	(void)command;
	p3_fence();
	return true;
}
#else
static bool membarrier(int command)
{
	int saved = errno;
	bool done = syscall(SYS_membarrier, command, 0, 0) == 0;
	errno = saved;
	return done;
}
#endif

bool p3_fence_join(void)
{
	return membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) &&
	       membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
	       membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED) &&
	       membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

static P3_RARE void wait_for_buffers(void)
{
	static p3_a32 told;
	const struct timespec nap = {.tv_nsec = P3_BUFFERED_NS};
	int saved = errno;
	if (!p3_exchange32(&told, 1))
		p3_warn("the kernel refuses membarrier: who goes to sleep waits a "
			"millisecond instead; allow it, or set PTL3_MEMBARRIER=off");
	p3_fence();
	(void)nanosleep(&nap, NULL);
	p3_fence();
	errno = saved;
}

void p3_fence_heavy(void)
{
	if (!membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED))
		wait_for_buffers();
}

/* Who has an event queue and no network interface has not joined: tests. */
void p3_fence_heavy_here(void)
{
	if (!membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) &&
		!(membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
			membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)))
		wait_for_buffers();
}
