/* SPDX-License-Identifier: BSD-3-Clause */
/* The common functions of the torture tests. */
#include "unit/torture.h"
#include "shm/job.h"
#include "support/patience.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define MOST_SIDES 8

#ifdef P3_VALGRIND
#define RELAX_TURNS 1
#else
#define RELAX_TURNS 64
#endif

uint64_t torture_ns(unsigned parts)
{
	const char *text = getenv("P3_TORTURE_MS");
	uint64_t ms = text ? strtoull(text, NULL, 10) : 500;
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
	if (!s->end_ns)
		s->end_ns = patience_begin().end_ns;
	sched_yield();
	return p3_now_ns() < s->end_ns;
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

/* ---- pairs ---- */

struct start {
	int sock;
	uint64_t first;
	int (*side)(struct pair *);
	void *arg;
};

static bool make_own(struct pair *half, uint64_t first)
{
	int fell_back;
	if (p3_seg_create(
		    "pair", PAIR_LEN, PAIR_USED, P3_HUGE_OFF, &half->own, &fell_back))
		return false;
	p3_a64 *word = half->own.base;
	for (unsigned i = 0; i < PAIR_USED / sizeof *word; i++)
		p3_set(&word[i], first);
	return p3_seg_seal(&half->own) == 0 && p3_seg_create_doorbell(&half->bell) == 0;
}

static bool map_peer(struct pair *half)
{
	struct p3_job_msg msg = {.magic = P3_JOB_MAGIC};
	int mine[2] = {half->own.fd, half->bell.fd};
	struct p3_job_packet its;
	if (p3_job_send(half->sock, &msg, mine, 2) || p3_job_recv(half->sock, 0, &its) ||
		its.nfds != 2)
		return false;
	int rc = p3_seg_map(its.fds[0], PAIR_LEN, false, &half->peer);
	if (!rc)
		rc = p3_seg_map(its.fds[1], P3_PAGE, true, &half->peer_bell);
	p3_job_close(&its);
	return rc == 0;
}

static bool make_half(struct pair *half, const struct start *start, int sock)
{
	*half = (struct pair){.sock = sock, .arg = start->arg};
	return make_own(half, start->first) && map_peer(half);
}

static int run_half(void *arg)
{
	const struct start *start = arg;
	struct pair half;
	p3_seg_forget_all();
	if (make_half(&half, start, start->sock))
		return start->side(&half);
	fprintf(stderr, "no segments in the child\n");
	return 1;
}

pid_t pair_start(struct pair *half, uint64_t first, int (*side)(struct pair *), void *arg)
{
	int sock[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock), 0);
	struct start start = {sock[1], first, side, arg};
	pid_t pid = run_child(run_half, &start);
	close(sock[1]);
	assert_true(make_half(half, &start, sock[0]));
	return pid;
}

bool pair_meet(struct pair *half)
{
	struct p3_job_msg msg = {.magic = P3_JOB_MAGIC};
	struct p3_job_packet its;
	return p3_job_send(half->sock, &msg, NULL, 0) == 0 &&
	       p3_job_recv(half->sock, 0, &its) == 0;
}

void pair_end(struct pair *half)
{
	p3_seg_unmap(half->peer, PAIR_LEN);
	p3_seg_unmap(half->peer_bell, P3_PAGE);
	p3_seg_destroy(&half->own);
	p3_seg_destroy(&half->bell);
	close(half->sock);
}
