/* SPDX-License-Identifier: BSD-3-Clause */
/* Each log line is one write: stderr is a socket that keeps the borders of writes. */
#include <stdio.h>
#include <string.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/log.h"
#include "support/cases.h"

static int wire[2], real_stderr;
static char line[4096];

/* Catch stderr in each case alone, so that the report of a failure reaches the real
 * one. */
static int catch_stderr(void **state)
{
	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, wire), 0);
	real_stderr = dup(STDERR_FILENO);
	p3_log_who(7741, 3);
	return dup2(wire[1], STDERR_FILENO) == STDERR_FILENO ? 0 : -1;
}

static int restore_stderr(void **state)
{
	(void)state;
	int rc = dup2(real_stderr, STDERR_FILENO) == STDERR_FILENO ? 0 : -1;
	close(real_stderr);
	close(wire[0]);
	close(wire[1]);
	return rc;
}

/* Return the length of the one write, which is in line; 0 if there is none. */
static size_t written(void)
{
	ssize_t n = recv(wire[0], line, sizeof line - 1, 0);
	if (n < 0)
		return 0;
	line[n] = 0;
	return (size_t)n;
}

static void assert_line(const char *level, const char *text)
{
	char want[sizeof line];
	snprintf(want, sizeof want, "p3[job 7741 nid 3 pid %d] %s: %s\n", (int)getpid(),
		level, text);
	assert_int_not_equal(written(), 0);
	assert_string_equal(line, want);
	assert_int_equal(written(), 0);
}

CASE_IN(log_writes_one_line_with_one_write, catch_stderr, restore_stderr)
{
	p3_warn("hugepages off: need %d, free %s", 12, "4");
	assert_line("warn", "hugepages off: need 12, free 4");
	p3_error("plain");
	assert_line("error", "plain");
}

CASE_IN(log_says_who_speaks_from_then_on, catch_stderr, restore_stderr)
{
	p3_log_who(UINT32_MAX, UINT32_MAX - 1);
	p3_error("x");
	assert_int_not_equal(written(), 0);
	assert_non_null(strstr(line, "p3[job 4294967295 nid 4294967294 pid "));
	p3_log_who(7741, 3);
	p3_error("y");
	assert_line("error", "y");
}

CASE_IN(log_keeps_errno_and_can_name_it, catch_stderr, restore_stderr)
{
	char want[200];
	snprintf(want, sizeof want, "open: %s (5)", strerror(ENOENT));
	errno = ENOENT;
	p3_error("open: %m (%d)", 5);
	assert_int_equal(errno, ENOENT);
	assert_line("error", want);
	errno = EILSEQ;
	p3_warn("w");
	assert_int_equal(errno, EILSEQ);
	assert_line("warn", "w");
}

CASE_IN(log_cuts_a_long_line_and_ends_it, catch_stderr, restore_stderr)
{
	char text[2000];
	memset(text, 'x', sizeof text);
	for (size_t len = 400; len < sizeof text; len += 13) {
		text[len] = 0;
		p3_warn("%s", text);
		size_t n = written();
		assert_in_range(n, 400, 512);
		assert_int_equal(strlen(line), n);
		assert_int_equal(strchr(line, '\n') - line, n - 1);
		assert_non_null(strstr(line, "warn: xxxx"));
		assert_int_equal(written(), 0);
		text[len] = 'x';
	}
}

CASE_IN(log_loses_no_byte_at_the_longest_line, catch_stderr, restore_stderr)
{
	char text[600];
	size_t before = 0, n;
	for (size_t len = 1; len < sizeof text; len++) {
		memset(text, 'y', len);
		text[len] = 0;
		p3_warn("%s", text);
		n = written();
		assert_int_equal(line[n - 1], '\n');
		assert_int_equal(line[n - 2], 'y');
		assert_in_range(n, before, before ? before + 1 : sizeof line);
		before = n;
	}
	assert_in_range(before, 500, 512);
}

CASE_IN(log_survives_a_closed_stderr_and_keeps_errno, catch_stderr, restore_stderr)
{
	close(STDERR_FILENO);
	errno = ERANGE;
	p3_error("nobody reads this");
	int err = errno;
	assert_int_equal(dup2(wire[1], STDERR_FILENO), STDERR_FILENO);
	assert_int_equal(err, ERANGE);
	assert_int_equal(written(), 0);
	p3_error("back");
	assert_line("error", "back");
}

/* Log in a child whose stderr is fd, and return its wait status. */
static int status_of_line_to(int fd)
{
	int status = -1;
	pid_t pid = fork();
	if (!pid) {
		struct rlimit none = {0, RLIM_INFINITY};
		dup2(fd, STDERR_FILENO);
		setrlimit(RLIMIT_FSIZE, &none);
		p3_error("nobody reads this");
		raise(0); /* a pending signal would arrive now */
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return status;
}

CASE(log_raises_no_signal_where_nothing_can_be_written)
{
	int ends[2];
	FILE *full = tmpfile();
	assert_non_null(full);
	assert_int_equal(status_of_line_to(fileno(full)), 0); /* SIGXFSZ */
	fclose(full);
	assert_int_equal(pipe(ends), 0);
	close(ends[0]);
	assert_int_equal(status_of_line_to(ends[1]), 0); /* SIGPIPE */
	close(ends[1]);
}

CASE_IN(log_heeds_its_levels, catch_stderr, restore_stderr)
{
	uint8_t levels[P3_LOG_AREAS];
	p3_log(P3_LOG_INFO, P3_AREA_NIC, "warn is the default");
	assert_int_equal(written(), 0);
	assert_true(p3_log_parse("off,match:drops,nic:error", levels));
	p3_log_set(levels);
	p3_log(P3_LOG_DROPS, P3_AREA_MATCH, "first");
	assert_line("drops match", "first");
	p3_log(P3_LOG_DEBUG, P3_AREA_MATCH, "too fine");
	p3_warn("of an area that is off");
	assert_int_equal(written(), 0);
	p3_log(P3_LOG_ERROR, P3_AREA_NIC, "said");
	assert_line("error", "said");
	assert_true(p3_log_parse(NULL, levels));
	p3_log_set(levels);
	p3_warn("back");
	assert_line("warn", "back");
}

/* A line that is neither an error nor a warning does not wait; those two are few. */
CASE_IN(log_does_not_wait_for_a_reader, catch_stderr, restore_stderr)
{
	uint8_t levels[P3_LOG_AREAS];
	char page[4096] = {0};
	int ends[2];
	assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
	while (write(ends[1], page, sizeof page) > 0)
		;
	assert_int_equal(fcntl(ends[1], F_SETFL, 0), 0); /* a write would block */
	assert_true(p3_log_parse("debug", levels));
	p3_log_set(levels);
	dup2(ends[1], STDERR_FILENO);
	uint32_t before = p3_log_unsaid();
	errno = ERANGE;
	p3_log(P3_LOG_DROPS, P3_AREA_MATCH, "nobody reads this");
	p3_log(P3_LOG_DEBUG, P3_AREA_PEER, "nor this");
	int err = errno;
	assert_int_equal(dup2(wire[1], STDERR_FILENO), STDERR_FILENO);
	assert_int_equal(p3_log_unsaid() - before, 2);
	assert_int_equal(err, ERANGE);
	p3_log(P3_LOG_INFO, P3_AREA_JOB, "read");
	assert_line("info job", "read");
	assert_true(p3_log_parse("", levels));
	p3_log_set(levels);
	close(ends[0]);
	close(ends[1]);
}
