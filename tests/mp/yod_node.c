/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node that speaks shm/job.h word by word, for test_yod.sh:
 *
 *	yod_node hello join barrier wait:DIED drop leave
 *
 * "R:" before a word: only rank R does it.  It prints packets about ends and barriers.
 */
#include "../support/asleep.h"
#include "shm/job.h"
#include "shm/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEG  4096
#define MOST 64

static int sock;
static uint32_t rank;
static uint64_t incarnation;
static uint32_t os_pid[MOST];
static uint64_t lives[MOST]; /* incarnations, as births tell them */
static struct p3_job_msg last;
static uint64_t met; /* milliseconds: before the last barrier */

static void give_up(const char *what, int rc)
{
	printf("%u %s: %s\n", rank, what, strerror(-rc));
	exit(99);
}

static void send_msg(struct p3_job_msg m, const int *fds, unsigned nfds)
{
	m.magic = P3_JOB_MAGIC;
	int rc = p3_job_send(sock, &m, fds, nfds);
	if (rc)
		give_up("send", rc);
}

static void hear(enum p3_job_op op)
{
	struct p3_job_packet p;
	do {
		int rc = p3_job_recv(sock, 0, &p);
		if (rc)
			give_up("recv", rc);
		p3_job_close(&p);
		last = p.msg;
		if (last.op == P3_JOB_BORN && last.node < MOST)
			os_pid[last.node] = last.os_pid,
			lives[last.node] = last.incarnation;
		if (last.op == P3_JOB_REFUSED)
			give_up("refused", -last.status);
	} while (last.op != op);
}

static void hello(const char *arg)
{
	send_msg((struct p3_job_msg){.op = P3_JOB_HELLO,
			 .layout = P3_LAYOUT_WORD + strtoull(arg, NULL, 0)},
		NULL, 0);
	hear(P3_JOB_WELCOME);
	if (last.node != rank)
		give_up("wrong rank", -EPROTO);
}

static void join(const char *arg)
{
	int fds[P3_JOB_FDS];
	for (int k = 0; k < P3_JOB_FDS; k++) {
		fds[k] = memfd_create("yod_node", MFD_CLOEXEC);
		if (fds[k] < 0 || ftruncate(fds[k], SEG))
			give_up("memfd", -errno);
	}
	incarnation = (uint64_t)getpid() << 20 | (uint64_t)atoi(arg) << 10 | 1;
	send_msg((struct p3_job_msg){.op = P3_JOB_JOIN,
			 .incarnation = incarnation,
			 .seg_len = SEG,
			 .heap_len = SEG,
			 .pid = {P3_JOB_PID_BASE + rank, P3_JOB_NO_PID}},
		fds, P3_JOB_FDS);
	for (int k = 0; k < P3_JOB_FDS; k++)
		close(fds[k]);
	hear(P3_JOB_JOINED);
}

static void leave(const char *arg)
{
	(void)arg;
	send_msg((struct p3_job_msg){.op = P3_JOB_LEAVE, .incarnation = incarnation},
		NULL, 0);
	do
		hear(P3_JOB_LEFT);
	while (last.node != rank || last.incarnation != incarnation);
}

static void barrier(const char *arg)
{
	(void)arg;
	met = now_ms();
	send_msg((struct p3_job_msg){.op = P3_JOB_BARRIER}, NULL, 0);
	hear(P3_JOB_RELEASED);
	printf("%u released %d\n", rank, last.status);
}

static void wait_for_death(const char *arg)
{
	hear(P3_JOB_DIED);
	printf("%u %s %u %d\n", rank, arg, last.node, last.status);
}

static void drop(const char *arg)
{
	(void)arg;
	send_msg((struct p3_job_msg){.op = P3_JOB_DROPPED,
			 .node = last.node,
			 .incarnation = last.incarnation},
		NULL, 0);
}

/* Wait until the process that the last end was about is not about to sleep or to end; if
 * gone, until it is not there any more. */
static char settled_state(bool gone)
{
	pid_t pid = (pid_t)os_pid[last.node];
	struct patience p = patience_begin();
	char now;
	while (((now = thread_state(pid)) != 0 && (gone || strchr("RD", now))) &&
		!patience_is_over(&p))
		/* pause: between two looks */
		usleep(1000);
	return now ? now : '-';
}

/* Print the state of the process that the last end was about, which was behind the
 * barrier; "-": it is gone, "late": so late that it may be. */
static void state(const char *arg)
{
	char now = settled_state(false);
	(void)arg;
	if (now == '-' && now_ms() - met >= P3_JOB_REAP_MS)
		printf("%u state late\n", rank);
	else
		printf("%u state %c\n", rank, now);
}

static void await_gone(const char *arg)
{
	(void)arg;
	printf("%u state %c\n", rank, settled_state(true));
}

static void nap(const char *arg)
{
	/* pause: as long as the script says */
	usleep((useconds_t)atoi(arg) * 1000);
}

static void die(const char *arg)
{
	raise(atoi(arg));
}

static void end(const char *arg)
{
	_exit(atoi(arg));
}

static void babble(const char *arg)
{
	ssize_t n = send(sock, arg, strlen(arg), MSG_NOSIGNAL);
	(void)n;
}

/* Send a packet with an op and a node only: "op,node". */
static void packet(const char *arg)
{
	const char *node = strchr(arg, ',');
	send_msg((struct p3_job_msg){.op = (uint32_t)atoi(arg),
			 .node = node ? (uint32_t)atoi(node + 1) : 0},
		NULL, 0);
}

/* Hand over a card. */
static void card(const char *arg)
{
	int fd = memfd_create("yod_node", MFD_CLOEXEC);
	(void)arg;
	send_msg((struct p3_job_msg){.op = P3_JOB_CARD}, &fd, 1);
	close(fd);
}

/* Join with a segment that is shorter than announced. */
static void join_short(const char *arg)
{
	int fd = memfd_create("yod_node", MFD_CLOEXEC), fds[] = {fd, fd, fd};
	(void)arg;
	send_msg((struct p3_job_msg){.op = P3_JOB_JOIN, .incarnation = 1, .seg_len = SEG},
		fds, 3);
	close(fd);
}

/* Greet this number of times, without reading the answers. */
static void greet(const char *arg)
{
	for (int i = atoi(arg); i > 0; i--)
		send_msg(
			(struct p3_job_msg){.op = P3_JOB_HELLO, .layout = P3_LAYOUT_WORD},
			NULL, 0);
}

/* Send this number of questions, without reading the answers. */
static void deaf(const char *arg)
{
	for (int i = atoi(arg); i > 0; i--)
		send_msg(
			(struct p3_job_msg){.op = P3_JOB_ASK, .incarnation = incarnation},
			NULL, 0);
}

/* Ask for the descriptors of this rank, and wait until yod has taken all packets. */
static void again(const char *arg)
{
	int left = 1;
	uint32_t about = (uint32_t)atoi(arg);
	send_msg(
		(struct p3_job_msg){
			.op = P3_JOB_AGAIN, .node = about, .incarnation = lives[about]},
		NULL, 0);
	while (!ioctl(sock, SIOCOUTQ, &left) && left > 0)
		sched_yield();
}

/* Write a byte into a file. */
static void mark(const char *arg)
{
	int fd = open(arg, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, "\n", 1) != 1)
		give_up("mark", -errno);
	close(fd);
}

/* Wait until a file has a byte. */
static void await(const char *arg)
{
	struct stat st;
	while (stat(arg, &st) || !st.st_size)
		sched_yield();
}

/* Take from yod the right to open any more descriptors. */
static void starve(const char *arg)
{
	struct rlimit none = {3, 3};
	(void)arg;
	if (prlimit(getppid(), RLIMIT_NOFILE, &none, NULL))
		give_up("prlimit", -errno);
}

static const struct word {
	const char *name;
	void (*say)(const char *arg);
} words[] = {
	{"hello", hello},
	{"join", join},
	{"leave", leave},
	{"barrier", barrier},
	{"wait", wait_for_death},
	{"drop", drop},
	{"state", state},
	{"gone", await_gone},
	{"nap", nap},
	{"die", die},
	{"exit", end},
	{"babble", babble},
	{"card", card},
	{"packet", packet},
	{"short", join_short},
	{"greet", greet},
	{"deaf", deaf},
	{"again", again},
	{"mark", mark},
	{"await", await},
	{"starve", starve},
};

static void say(const char *text)
{
	const char *arg = strchr(text, ':');
	size_t len = arg ? (size_t)(arg - text) : strlen(text);
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (strlen(words[i].name) == len && !strncmp(text, words[i].name, len)) {
			words[i].say(arg ? arg + 1 : "");
			return;
		}
	give_up(text, -EINVAL);
}

int main(int argc, char **argv)
{
	const char *fd = getenv(P3_JOB_ENV), *me = getenv("PTL_MY_RID");
	if (!fd || !me)
		give_up("not started by yod", -EINVAL);
	sock = atoi(fd);
	rank = (uint32_t)atoi(me);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 1; i < argc; i++) {
		const char *text = argv[i];
		if (text[0] >= '0' && text[0] <= '9') {
			if ((uint32_t)atoi(text) != rank)
				continue;
			text = strchr(text, ':') + 1;
		}
		say(text);
	}
	return 0;
}
