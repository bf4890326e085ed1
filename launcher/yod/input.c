/* SPDX-License-Identifier: BSD-3-Clause */
/* Typed input on its way to rank 0. */
#include "launcher/yod/input.h"
#include "launcher/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define BACKGROUND_MS 300

int p3_input_open(struct p3_input *in, int *stdin_out)
{
	int pipefd[2];
	*in = (struct p3_input){.from = -1, .to = -1};
	*stdin_out = STDIN_FILENO;
	if (!isatty(STDIN_FILENO))
		return 0;
	if (pipe2(pipefd, O_CLOEXEC))
		return -errno;
	if (fcntl(pipefd[1], F_SETFL, O_NONBLOCK)) {
		close(pipefd[0]);
		close(pipefd[1]);
		return -errno;
	}
	in->from = STDIN_FILENO;
	in->to = pipefd[1];
	*stdin_out = pipefd[0];
	return 0;
}

void p3_input_close(struct p3_input *in)
{
	if (in->to >= 0)
		close(in->to);
	in->from = in->to = -1;
}

struct pollfd p3_input_wants(const struct p3_input *in, int *ms)
{
	if (in->from < 0)
		return (struct pollfd){.fd = -1};
	if (in->n)
		return (struct pollfd){.fd = in->to, .events = POLLOUT};
	int64_t wait = in->not_before - p3_now_ms();
	if (wait <= 0)
		return (struct pollfd){.fd = in->from, .events = POLLIN};
	*ms = (int)wait;
	return (struct pollfd){.fd = -1};
}

static void hand_on(struct p3_input *in)
{
	ssize_t n = write(in->to, in->buf + in->at, in->n);
	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR)
			p3_input_close(in);
		return;
	}
	in->at += (uint32_t)n;
	in->n -= (uint32_t)n;
}

static void take_in(struct p3_input *in)
{
	if (tcgetpgrp(in->from) != getpgrp()) {
		in->not_before = p3_now_ms() + BACKGROUND_MS;
		return;
	}
	ssize_t n = read(in->from, in->buf, sizeof in->buf);
	if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == EIO)) {
		in->not_before = p3_now_ms() + BACKGROUND_MS;
		return;
	}
	if (n <= 0) {
		p3_input_close(in);
		return;
	}
	in->at = 0;
	in->n = (uint32_t)n;
}

void p3_input_step(struct p3_input *in, short revents)
{
	if (in->from < 0 || !revents)
		return;
	if (in->n)
		hand_on(in);
	else
		take_in(in);
}
