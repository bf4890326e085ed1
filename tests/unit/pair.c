/* SPDX-License-Identifier: BSD-3-Clause */
/* Two processes with mapped segments. */
#include "unit/pair.h"
#include "shm/job.h"
#include "unit/torture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <sys/socket.h>
#include <unistd.h>

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
