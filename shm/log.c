/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing log lines to stderr, and parsing PTL3_LOG. */
#include "shm/log.h"
#include "shm/atomics.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define P3_SIGSET 8u /* bytes of a signal set in the kernel */

const char *const p3_log_level_names[P3_LOG_LEVELS] = {
	"off", "error", "warn", "info", "drops", "debug"};
const char *const p3_log_area_names[P3_LOG_AREAS] = {
	"job", "nic", "peer", "match", "send", "event", "heap"};

static p3_a32 log_jid, log_nid;
static p3_a32 log_levels[P3_LOG_AREAS]; /* the level plus 1; 0: not set, warn */
static p3_a32 log_unsaid;

void p3_log_set(const uint8_t levels[P3_LOG_AREAS])
{
	for (int i = 0; i < P3_LOG_AREAS; i++)
		p3_set(&log_levels[i], levels[i] + 1u);
}

bool p3_log_is(enum p3_log_level level, enum p3_log_area area)
{
	uint32_t most = p3_get(&log_levels[area]);
	return level < (most ? most : P3_LOG_WARN + 1u);
}

uint32_t p3_log_unsaid(void)
{
	return p3_get(&log_unsaid);
}

void p3_log_who(uint32_t jid, uint32_t nid)
{
	p3_set(&log_jid, jid);
	p3_set(&log_nid, nid);
}

/*
 * Write a line, and take away the signal of a write that fails: SIGPIPE of a pipe without
 * readers, or SIGXFSZ of a file at its size limit, would end the program.
 */
static void log_write(const char *line, size_t len)
{
	static const struct timespec at_once;
	sigset_t ours, was, pending;
	sigemptyset(&ours);
	sigaddset(&ours, SIGPIPE);
	sigaddset(&ours, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &ours, &was);
	sigpending(&pending);
	/* not write(): that is a cancellation point */
	bool failed = syscall(SYS_write, STDERR_FILENO, line, len) < 0;
	int ended = errno == EPIPE ? SIGPIPE : errno == EFBIG ? SIGXFSZ : 0;
	if (failed && ended && !sigismember(&pending, ended))
		(void)syscall(SYS_rt_sigtimedwait, &ours, NULL, &at_once, P3_SIGSET);
	pthread_sigmask(SIG_SETMASK, &was, NULL);
}

/* Return true if stderr has room.  A full pipe must not stop the lease holder. */
static bool log_has_room(void)
{
	static const struct timespec at_once;
	struct pollfd on = {.fd = STDERR_FILENO, .events = POLLOUT};
	struct timespec limit = at_once; /* the kernel changes it */
	return syscall(SYS_ppoll, &on, 1, &limit, NULL, P3_SIGSET) > 0 &&
	       (on.revents & POLLOUT);
}

static void log_say(const char *level, const char *area, const char *fmt, va_list args)
{
	char line[512];
	int saved = errno;
	int n = snprintf(line, sizeof line,
		"p3[job %u nid %u pid %d] %s%s%s: ", p3_get(&log_jid), p3_get(&log_nid),
		(int)getpid(), level, *area ? " " : "", area);
	errno = saved; /* for %m */
	int m = vsnprintf(line + n, sizeof line - (size_t)n - 1, fmt, args);
	size_t len = (size_t)(n + m);
	if (len > sizeof line - 2)
		len = sizeof line - 2;
	line[len++] = '\n';
	log_write(line, len);
	errno = saved;
}

void p3_log(enum p3_log_level level, enum p3_log_area area, const char *fmt, ...)
{
	bool minor = level > P3_LOG_WARN;
	int saved = errno;
	va_list args;
	if (!p3_log_is(level, area))
		return;
	if (minor && !log_has_room()) {
		p3_add32(&log_unsaid, 1);
		errno = saved;
		return;
	}
	errno = saved;
	va_start(args, fmt);
	log_say(p3_log_level_names[level], minor ? p3_log_area_names[area] : "", fmt,
		args);
	va_end(args);
}

/* ---- PTL3_LOG ---- */

/* Return the index of a word among n words, or n. */
static unsigned log_index_of(
	const char *const *words, unsigned n, const char *word, size_t len)
{
	unsigned i = 0;
	while (i < n && (strlen(words[i]) != len || memcmp(words[i], word, len) != 0))
		i++;
	return i;
}

/* Parse one item of the list, such as "drops" or "match:drops". */
static bool log_parse_item(const char *item, size_t len, uint8_t levels[P3_LOG_AREAS])
{
	const char *colon = memchr(item, ':', len);
	const char *word = colon ? colon + 1 : item;
	unsigned area = P3_LOG_AREAS;
	unsigned level = log_index_of(
		p3_log_level_names, P3_LOG_LEVELS, word, len - (size_t)(word - item));
	if (colon)
		area = log_index_of(
			p3_log_area_names, P3_LOG_AREAS, item, (size_t)(colon - item));
	if (level == P3_LOG_LEVELS || (colon && area == P3_LOG_AREAS))
		return false;
	if (colon)
		levels[area] = (uint8_t)level;
	else
		memset(levels, (int)level, P3_LOG_AREAS);
	return true;
}

bool p3_log_parse(const char *text, uint8_t levels_out[P3_LOG_AREAS])
{
	memset(levels_out, P3_LOG_WARN, P3_LOG_AREAS);
	if (!text || !*text)
		return true;
	for (;;) {
		size_t len = strcspn(text, ",");
		if (!log_parse_item(text, len, levels_out))
			return false;
		if (!text[len])
			return true;
		text += len + 1;
	}
}
