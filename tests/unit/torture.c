/* SPDX-License-Identifier: BSD-3-Clause */
/* The common functions of the torture tests. */
#include "unit/torture.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define STUCK_NS   20000000000u
#define MOST_SIDES 8

#ifdef P3_VALGRIND
#define RELAX_TURNS 1
#else
#define RELAX_TURNS 64
#endif

uint64_t torture_ns(unsigned parts)
{
	const char *text = getenv("P3_TORTURE_MS");
	uint64_t ms = text ? strtoull(text, NULL, 10) : 1000;
	return ms * 1000000 / parts;
}

uint64_t address_space(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lu", &pages), 1);
	fclose(f);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

bool spin_on(struct spin *s)
{
	if (s->turns++ < RELAX_TURNS) {
		p3_relax();
		return true;
	}
	uint64_t now = p3_now_ns();
	if (!s->since)
		s->since = now;
	sched_yield();
	return now - s->since < STUCK_NS;
}

void assert_side_is_well(const char *side, const struct verdict *v)
{
	if (v->why)
		fail_msg("%s, at %llu: not true: %s", side, (unsigned long long)v->at,
			v->why);
}

void run_threads(unsigned n, torture_side *const side[], void *const arg[])
{
	pthread_t thread[MOST_SIDES];
	assert_in_range(n, 1, MOST_SIDES);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, side[i], arg[i]), 0);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
}

pid_t run_child(int (*side)(void *arg), void *arg)
{
	fflush(NULL);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(side(arg));
	return pid;
}

int side_status(const char *side, const struct verdict *v)
{
	if (v->why)
		fprintf(stderr, "%s, at %llu: not true: %s\n", side,
			(unsigned long long)v->at, v->why);
	return v->why ? 1 : 0;
}

int wait_child(pid_t pid)
{
	int status;
	while (waitpid(pid, &status, 0) != pid)
		assert_int_equal(errno, EINTR);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
