/* SPDX-License-Identifier: BSD-3-Clause */
/* Fault points: parsing PTL3_FAULT, arming points, and striking. */
#include "shm/fault.h"

#ifdef P3_FAULTS

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ENV "PTL3_FAULT"

enum action { KILL, STOP, EXIT };

extern struct p3_fault __start_p3_faults[], __stop_p3_faults[];

static struct {
	char name[64];
	uint32_t nth;
	enum action action;
	bool counting;
	p3_a32 hits;
} rule;

static _Noreturn void refuse(const char *text, const char *why)
{
	fprintf(stderr,
		ENV " is '%s': %s; expected name[:nth][:kill|stop|exit][@rank|@yod], "
		    "list or count\n",
		text, why);
	_exit(2);
}

/* ---- striking at a point ---- */

/* Say that the point strikes, in one write: the process may die with nothing flushed. */
static void announce(const char *what)
{
	char line[160];
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	int n = snprintf(line, sizeof line, "fault: %s at %s, pid %d, %lld%09ld ns\n",
		what, rule.name, (int)getpid(), (long long)t.tv_sec, t.tv_nsec);
	long rc = syscall(SYS_write, STDERR_FILENO, line, (size_t)n);
	(void)rc;
}

/* Send a signal to this thread, which then does not execute another instruction. */
static void signal_here(int sig)
{
	(void)syscall(SYS_tgkill, getpid(), (pid_t)syscall(SYS_gettid), sig);
}

static void strike(void)
{
	static const char *const says[] = {"kill", "stop", "exit"};
	announce(says[rule.action]);
	if (rule.action == KILL)
		signal_here(SIGKILL);
	else if (rule.action == STOP)
		signal_here(SIGSTOP);
	else
		_exit(1);
}

void p3_fault_reached(struct p3_fault *here)
{
	int saved = errno;
	(void)p3_add32(&here->hits, 1);
	if (!rule.counting && p3_add32(&rule.hits, 1) + 1 == rule.nth)
		strike();
	errno = saved;
}

/* ---- all points ---- */

static bool is_first(const struct p3_fault *f)
{
	for (const struct p3_fault *k = __start_p3_faults; k < f; k++)
		if (!strcmp(k->name, f->name))
			return false;
	return true;
}

static uint32_t hits_of(const char *name)
{
	uint32_t n = 0;
	for (struct p3_fault *f = __start_p3_faults; f < __stop_p3_faults; f++)
		if (!strcmp(f->name, name))
			n += p3_get(&f->hits);
	return n;
}

static _Noreturn void list(void)
{
	for (const struct p3_fault *f = __start_p3_faults; f < __stop_p3_faults; f++)
		if (is_first(f))
			puts(f->name);
	fflush(stdout);
	_exit(0);
}

static __attribute__((destructor)) void say_counts(void)
{
	for (struct p3_fault *f = __start_p3_faults;
		rule.counting && f < __stop_p3_faults; f++)
		if (is_first(f) && hits_of(f->name))
			fprintf(stderr, "fault: count %s %u\n", f->name,
				hits_of(f->name));
}

/* ---- PTL3_FAULT ---- */

static bool arm(const char *name)
{
	bool any = false;
	for (struct p3_fault *f = __start_p3_faults; f < __stop_p3_faults; f++) {
		if (name && strcmp(f->name, name) != 0)
			continue;
		p3_set(&f->armed, 1);
		any = true;
	}
	return any;
}

static bool is_yods(const char *name)
{
	return strncmp(name, "yod.", 4) == 0;
}

/* Return true if this program is yod, which has points of yod and of domains only.  A
 * test program also has the library's points. */
static bool we_are_yod(void)
{
	for (struct p3_fault *f = __start_p3_faults; f < __stop_p3_faults; f++)
		if (!is_yods(f->name) && strncmp(f->name, "domain.", 7) != 0)
			return false;
	return true;
}

static bool is_for_us(const char *text, const char *who)
{
	const char *rank = getenv("PTL_MY_RID");
	if (!who || we_are_yod())
		return !who || !strcmp(who, "yod");
	if (strspn(who, "0123456789") != strlen(who) && strcmp(who, "yod") != 0)
		refuse(text, "after @ there is no rank");
	return rank && !strcmp(rank, who);
}

static void set_part(const char *text, const char *part)
{
	static const char *const actions[] = {"kill", "stop", "exit"};
	char *end;
	for (int i = 0; i < 3; i++)
		if (!strcmp(part, actions[i])) {
			rule.action = (enum action)i;
			return;
		}
	unsigned long nth = strtoul(part, &end, 10);
	if (*part < '0' || *part > '9' || *end || !nth || nth > UINT32_MAX)
		refuse(text, "after : there is neither a count nor an action");
	rule.nth = (uint32_t)nth;
}

/* Obey a setting; words is a copy of it, which is cut into pieces. */
static void obey(const char *text, char *words)
{
	char *who = strchr(words, '@'), *rest;
	if (who)
		*who++ = 0;
	const char *name = strtok_r(words, ":", &rest);
	if (!name || strlen(name) >= sizeof rule.name)
		refuse(text, "there is no name");
	strcpy(rule.name, name);
	rule.nth = 1;
	for (const char *part; (part = strtok_r(NULL, ":", &rest));)
		set_part(text, part);
	bool yods = is_yods(name) || (who && strcmp(who, "yod") == 0);
	if (yods != we_are_yod() || !is_for_us(text, who))
		return;
	if (!arm(name))
		refuse(text, "there is no such point");
}

static __attribute__((constructor)) void read_environment(void)
{
	const char *text = getenv(ENV);
	char words[128];
	if (!text || !*text)
		return;
	if (!strcmp(text, "list"))
		list();
	if (!strcmp(text, "count")) {
		rule.counting = arm(NULL);
		return;
	}
	if (strlen(text) >= sizeof words)
		refuse(text, "it is too long");
	obey(text, strcpy(words, text));
}

#endif
