/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stranger - a process of the same user that speaks to the members of a domain in ways
 * that no member does
 *
 *	stranger ours			prints the version of the protocol
 *	stranger silent SLOT N		has N connections, and sends nothing
 *	stranger insists SLOT N		the same; connections that are hung up are renewed
 *	stranger version SLOT		introduces itself in the next version of the
 *					protocol
 *	stranger bare SLOT		introduces itself without descriptors
 *	stranger early SLOT		begins with another packet
 *	stranger noise SLOT		begins with no packet
 *	stranger member			is a member of the next version
 *	stranger mute			is a member that answers no call
 *	stranger rude			is a member that hangs up each call
 *
 * Those with N print "there" when they have them, and how many were hung up at the end
 * of their standard input; the next four print "gone" when they are hung up, or "kept"
 * after 5 s; the members print "there", and live until the end of their input.  rude
 * prints "called" for each call; mute prints at the end how many calls have come.
 */
#include "../support/patience.h"
#include "shm/domain.h"
#include "shm/job.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST = 1000, CALLS_EACH_TURN = 50 };

static struct p3_domain here;

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "stranger: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void enter(void)
{
	struct p3_domain_why why;
	if (p3_domain_open(&here, P3_DOMAIN_BASE, getenv("PTL3_DOMAIN"), &why)) {
		fprintf(stderr, "stranger: %s\n", why.text);
		exit(1);
	}
}

static struct p3_job_msg message(enum p3_job_op op)
{
	return (struct p3_job_msg){.magic = P3_JOB_MAGIC,
		.op = op,
		.node = 9,
		.size = 64,
		.pid = {P3_JOB_NO_PID, P3_JOB_NO_PID},
		.os_pid = (uint32_t)getpid(),
		.incarnation = 4711,
		.layout = P3_LAYOUT_WORD,
		.seg_len = 4096};
}

static bool is_over(int fd)
{
	char packet[200];
	for (;;) {
		ssize_t n = recv(fd, packet, sizeof packet, MSG_DONTWAIT);
		if (n == 0)
			return true;
		if (n < 0 && errno != ECONNRESET)
			return errno != EAGAIN;
	}
}

/* ---- many silent connections ---- */

static int call_again(int *fds, int n, uint32_t slot)
{
	int gone = 0, calls = 0;
	for (int i = 0; i < n; i++) {
		if (fds[i] >= 0 && !is_over(fds[i]))
			continue;
		if (fds[i] >= 0) {
			close(fds[i]);
			gone++;
		}
		fds[i] = calls++ < CALLS_EACH_TURN ? p3_domain_call(&here, slot) : -1;
	}
	return gone;
}

static int count_over(const int *fds, int n)
{
	int gone = 0;
	for (int i = 0; i < n; i++)
		gone += is_over(fds[i]);
	return gone;
}

static void hold(uint32_t slot, int n, bool insists)
{
	static int fds[MOST];
	int gone = 0;
	for (int i = 0; i < n; i++) {
		fds[i] = p3_domain_call(&here, slot);
		if (fds[i] < 0)
			fail("a call");
	}
	puts("there");
	for (struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};;) {
		if (poll(&in, 1, 2) > 0)
			break;
		gone += insists ? call_again(fds, n, slot) : 0;
	}
	struct patience p = patience_begin();
	while (insists && gone < n && !patience_is_over(&p))
		gone += poll(NULL, 0, 2) + call_again(fds, n, slot);
	printf("%d\n", insists ? gone : count_over(fds, n));
}

/* ---- a wrong packet ---- */

static int say(int fd, const char *how)
{
	struct p3_job_msg msg = message(P3_JOB_BORN);
	int file = open("/dev/zero", O_RDONLY | O_CLOEXEC), fds[2] = {file, file};
	unsigned nfds = strcmp(how, "bare") == 0 ? 0 : 2;
	if (strcmp(how, "noise") == 0)
		return send(fd, "noise", 5, 0) == 5 ? 0 : -errno;
	if (strcmp(how, "early") == 0) {
		msg.op = P3_JOB_AGAIN;
		nfds = 0;
	}
	if (strcmp(how, "version") == 0)
		msg.magic++;
	int rc = p3_job_send(fd, &msg, fds, nfds);
	close(file);
	return rc;
}

static void misbehave(uint32_t slot, const char *how)
{
	int fd = p3_domain_call(&here, slot);
	if (fd < 0 || say(fd, how))
		fail(how);
	for (struct patience p = patience_begin(); !is_over(fd) && !patience_is_over(&p);)
		poll(NULL, 0, 10);
	puts(is_over(fd) ? "gone" : "kept");
}

/* ---- a member of another version ---- */

static void answer(int listen)
{
	int fd = accept4(listen, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0 || say(fd, "version"))
		fail("an answer");
}

static void hang_up(int listen)
{
	close(accept4(listen, NULL, NULL, SOCK_CLOEXEC));
	puts("called");
}

static void count_calls(int listen)
{
	int n = 0;
	for (struct pollfd p = {.fd = listen, .events = POLLIN}; poll(&p, 1, 0) > 0; n++)
		(void)accept4(listen, NULL, NULL, SOCK_CLOEXEC);
	printf("%d\n", n);
}

static void be_member(const char *how)
{
	int listen;
	bool mute = strcmp(how, "mute") == 0;
	if (p3_domain_take_slot(&here, 64, &listen))
		fail("a slot");
	puts("there");
	struct pollfd p[2] = {{.fd = STDIN_FILENO, .events = POLLIN},
		{.fd = listen, .events = mute ? 0 : POLLIN}};
	while (poll(p, 2, -1) > 0 && !p[0].revents)
		(strcmp(how, "rude") == 0 ? hang_up : answer)(listen);
	if (mute)
		count_calls(listen);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	const char *how = argc > 1 ? argv[1] : "";
	uint32_t slot = argc > 2 ? (uint32_t)atoi(argv[2]) : 0;
	int n = argc > 3 ? atoi(argv[3]) : 0;
	if (strcmp(how, "ours") == 0)
		return printf("%u\n", p3_job_version(P3_JOB_MAGIC)) < 0;
	enter();
	if (n > MOST)
		return 2;
	if (strcmp(how, "member") == 0 || strcmp(how, "mute") == 0 ||
		strcmp(how, "rude") == 0)
		be_member(how);
	else if (n)
		hold(slot, n, strcmp(how, "insists") == 0);
	else
		misbehave(slot, how);
	p3_domain_leave(&here);
	return 0;
}
