/* SPDX-License-Identifier: BSD-3-Clause */
/* Members as child processes of a test. */
#include "member.h"

#include <signal.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const outcomes[] = {"acked", "sent", "failed", "hung"};

struct kid kid_spawn(ptl_pid_t pid)
{
	int in[2], out[2];
	char text[20];
	struct kid k = {.os_pid = 0};
	if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
		fail("no pipe");
	snprintf(text, sizeof text, "%u", pid);
	k.os_pid = fork();
	if (k.os_pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		execl("/proc/self/exe", "meet", "member", text, NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	k.to = fdopen(in[1], "w");
	k.from = fdopen(out[0], "r");
	return k;
}

bool kid_joined(struct kid *k)
{
	char line[100];
	return fgets(line, sizeof line, k->from) &&
	       sscanf(line, "%u %u %u %u", &k->id.nid, &k->id.pid, &k->jid, &k->uid) == 4;
}

bool kid_says(const struct kid *k, int ms)
{
	struct pollfd f = {.fd = fileno(k->from), .events = POLLIN};
	return poll(&f, 1, ms) > 0 && (f.revents & POLLIN);
}

struct kid kid_start(ptl_pid_t pid)
{
	struct kid k = kid_spawn(pid);
	if (!kid_joined(&k))
		fail("a member does not start: status %#x", kid_status(&k));
	return k;
}

void kid_tell(struct kid *k, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vfprintf(k->to, format, args);
	va_end(args);
	fputc('\n', k->to);
	fflush(k->to);
}

const char *kid_ask(struct kid *k, const char *format, ...)
{
	static char line[200];
	va_list args;
	va_start(args, format);
	vfprintf(k->to, format, args);
	va_end(args);
	fputc('\n', k->to);
	fflush(k->to);
	if (!fgets(line, sizeof line, k->from))
		fail("process %d does not answer: status %#x", (int)k->os_pid,
			kid_status(k));
	line[strcspn(line, "\n")] = '\0';
	return line;
}

enum outcome kid_put(
	struct kid *from, const struct kid *to, size_t n, unsigned entry, unsigned ms)
{
	const char *word = kid_ask(
		from, "put %u %u %zu %u %u", to->id.nid, to->id.pid, n, entry, ms);
	for (enum outcome i = ACKED; i <= HUNG; i++)
		if (strcmp(word, outcomes[i]) == 0)
			return i;
	fail("'%s' is no answer", word);
}

void kid_meet(struct kid *from, const struct kid *to)
{
	struct patience p = patience_begin();
	while (kid_put(from, to, 8, 0, MEMBER_LONG_MS) != ACKED)
		if (patience_is_over(&p))
			fail("process %d does not reach process %d", (int)from->os_pid,
				(int)to->os_pid);
}

void kid_lost(struct kid *from, const struct kid *to)
{
	struct patience p = patience_begin();
	enum outcome out;
	do
		out = kid_put(from, to, 8, 0, 50); /* it may just be dying */
	while (out != FAILED && !patience_is_over(&p));
	if (out != FAILED)
		fail("a put to process %d that is gone is %s", (int)to->os_pid,
			outcomes[out]);
}

void kid_await_company(struct kid *k, unsigned n)
{
	struct patience p = patience_begin();
	unsigned alive;
	while ((alive = (unsigned)atoi(kid_ask(k, "company"))) != n)
		if (patience_is_over(&p))
			fail("process %d counts %u living processes, not %u",
				(int)k->os_pid, alive, n);
}

int kid_status(struct kid *k)
{
	int status;
	fclose(k->to);
	if (waitpid(k->os_pid, &status, 0) != k->os_pid)
		fail("no process %d", (int)k->os_pid);
	fclose(k->from);
	return status;
}

void kid_kill(struct kid *k)
{
	kill(k->os_pid, SIGKILL);
	(void)kid_status(k);
}

void kid_leave(struct kid *k)
{
	int status = kid_status(k);
	if (status)
		fail("process %d ended with status %#x", (int)k->os_pid, status);
}

void expect_nothing_left(void)
{
	char path[100];
	snprintf(path, sizeof path, "/dev/shm/ptl3-%u/%s", (unsigned)geteuid(),
		getenv("PTL3_DOMAIN"));
	if (access(path, F_OK) == 0)
		fail("%s is still there", path);
}
