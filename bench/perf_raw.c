/* SPDX-License-Identifier: BSD-3-Clause */
/* The raw hand-over of a cache line between two CPUs. */
#include "perf.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <fcntl.h>
#include <unistd.h>

/* One writer per pair of cache lines. */
struct perf_page {
	_Alignas(128) _Atomic uint64_t ping; /* first rank */
	_Alignas(128) _Atomic uint64_t pong; /* second rank */
};

static struct perf_page *map(int fd)
{
	void *at = mmap(NULL, sizeof(struct perf_page), PROT_READ | PROT_WRITE,
		MAP_SHARED, fd, 0);
	return at == MAP_FAILED ? NULL : at;
}

struct perf_page *perf_page_make(int *fd_out)
{
	struct perf_page *p = NULL;
	*fd_out = memfd_create("portalperf-raw", MFD_CLOEXEC);
	if (*fd_out >= 0 && !ftruncate(*fd_out, sizeof *p))
		p = map(*fd_out);
	return p;
}

struct perf_page *perf_page_open(uint32_t pid, uint32_t fd)
{
	char name[64];
	snprintf(name, sizeof name, "/proc/%u/fd/%u", pid, fd);
	int mine = open(name, O_RDWR | O_CLOEXEC);
	if (mine < 0)
		return NULL;
	struct perf_page *p = map(mine);
	close(mine);
	return p;
}

void perf_page_close(struct perf_page *p)
{
	if (p)
		munmap(p, sizeof *p);
}

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* Wait for a value.  The yield is for a CPU that both ranks share, or that is taken
 * away. */
static inline void await(_Atomic uint64_t *word, uint64_t value, bool yields)
{
	for (unsigned turn = 1; atomic_load_explicit(word, memory_order_acquire) != value;
		turn++) {
		if (!yields)
			relax();
		if (yields || turn % (1 << 14) == 0)
			sched_yield();
	}
}

static inline void hand_over(_Atomic uint64_t *word, uint64_t value)
{
	atomic_store_explicit(word, value, memory_order_release);
}

void perf_page_bounce(struct perf_page *p, bool first, uint64_t rounds, bool yields)
{
	_Atomic uint64_t *mine = first ? &p->ping : &p->pong;
	uint64_t value = atomic_load_explicit(mine, memory_order_relaxed);
	for (uint64_t end = value + rounds; value++ < end;) {
		if (!first)
			await(&p->ping, value, yields);
		hand_over(mine, value);
		if (first)
			await(&p->pong, value, yields);
	}
}
