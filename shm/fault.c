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

static const char *const fault_actions[] = {"kill", "stop", "exit"};

extern struct p3_fault __start_p3_faults[], __stop_p3_faults[];

static struct {
	char name[64];
	uint32_t nth;
	enum action action;
	bool counting;
	p3_a32 hits;
} fault_rule;

static _Noreturn void fault_refuse(const char *text, const char *why)
{
	fprintf(stderr,
		ENV " is '%s': %s; expected name[:nth][:kill|stop|exit][@rank|@yod], "
		    "list or count\n",
		text, why);
	_exit(2);
}

/* ---- striking at a point ---- */

static void fault_strike(void)
{
	char line[160];
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	/* in one write, since the process may die with nothing flushed */
	int n = snprintf(line, sizeof line, "fault: %s at %s, pid %d, %lld%09ld ns\n",
		fault_actions[fault_rule.action], fault_rule.name, (int)getpid(),
		(long long)t.tv_sec, t.tv_nsec);
	long rc = syscall(SYS_write, STDERR_FILENO, line, (size_t)n);
	(void)rc;
	if (fault_rule.action == EXIT)
		_exit(1);
	/* to this thread, which then does not execute another instruction */
	(void)syscall(SYS_tgkill, getpid(), (pid_t)syscall(SYS_gettid),
		fault_rule.action == KILL ? SIGKILL : SIGSTOP);
}

void p3_fault_reached(struct p3_fault *here)
{
	int saved = errno;
	(void)p3_add32(&here->hits, 1);
	if (!fault_rule.counting && p3_add32(&fault_rule.hits, 1) + 1 == fault_rule.nth)
		fault_strike();
	errno = saved;
}

/* ---- all points ---- */

static bool fault_is_first(const struct p3_fault *f)
{
	for (const struct p3_fault *k = __start_p3_faults; k < f; k++)
		if (!strcmp(k->name, f->name))
			return false;
	return true;
}

static uint32_t fault_hits_of(const char *name)
{
	uint32_t n = 0;
	for (struct p3_fault *f = __start_p3_faults; f < __stop_p3_faults; f++)
		if (!strcmp(f->name, name))
			n += p3_get(&f->hits);
	return n;
}

static __attribute__((destructor)) void fault_say_counts(void)
{
	for (struct p3_fault *f = __start_p3_faults;
		fault_rule.counting && f < __stop_p3_faults; f++)
		if (fault_is_first(f) && fault_hits_of(f->name))
			fprintf(stderr, "fault: count %s %u\n", f->name,
				fault_hits_of(f->name));
}

/* ---- PTL3_FAULT ---- */

static bool fault_arm(const char *name)
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

static bool fault_is_yods(const char *name)
{
	return strncmp(name, "yod.", 4) == 0;
}

/* Return true if this program is yod, which has no NIC.  A test program of yod's parts
 * has the library's points, too. */
static bool fault_we_are_yod(void)
{
	for (struct p3_fault *f = __start_p3_faults; f < __stop_p3_faults; f++)
		if (strncmp(f->name, "nic.", 4) == 0)
			return false;
	return true;
}

static bool fault_is_for_us(const char *text, const char *who)
{
	const char *rank = getenv("PTL_MY_RID");
	if (!who || fault_we_are_yod())
		return !who || !strcmp(who, "yod");
	if (strspn(who, "0123456789") != strlen(who) && strcmp(who, "yod") != 0)
		fault_refuse(text, "after @ there is no rank");
	return rank && !strcmp(rank, who);
}

static void fault_set_part(const char *text, const char *part)
{
	char *end;
	for (int i = 0; i < 3; i++)
		if (!strcmp(part, fault_actions[i])) {
			fault_rule.action = (enum action)i;
			return;
		}
	unsigned long nth = strtoul(part, &end, 10);
	if (*part < '0' || *part > '9' || *end || !nth || nth > UINT32_MAX)
		fault_refuse(text, "after : there is neither a count nor an action");
	fault_rule.nth = (uint32_t)nth;
}

/* Obey a setting; words is a copy of it, which is cut into pieces. */
static void fault_obey(const char *text, char *words)
{
	char *who = strchr(words, '@'), *rest;
	if (who)
		*who++ = 0;
	const char *name = strtok_r(words, ":", &rest);
	if (!name || strlen(name) >= sizeof fault_rule.name)
		fault_refuse(text, "there is no name");
	strcpy(fault_rule.name, name);
	fault_rule.nth = 1;
	for (const char *part; (part = strtok_r(NULL, ":", &rest));)
		fault_set_part(text, part);
	bool yods = fault_is_yods(name) || (who && strcmp(who, "yod") == 0);
	if (yods != fault_we_are_yod() || !fault_is_for_us(text, who))
		return;
	if (!fault_arm(name))
		fault_refuse(text, "there is no such point");
}

static __attribute__((constructor)) void fault_read_environment(void)
{
	const char *text = getenv(ENV);
	char words[128];
	if (!text || !*text)
		return;
	if (!strcmp(text, "list")) {
		for (struct p3_fault *f = __start_p3_faults; f < __stop_p3_faults; f++)
			if (fault_is_first(f))
				puts(f->name);
		fflush(stdout);
		_exit(0);
	}
	if (!strcmp(text, "count")) {
		fault_rule.counting = fault_arm(NULL);
		return;
	}
	if (strlen(text) >= sizeof words)
		fault_refuse(text, "it is too long");
	fault_obey(text, strcpy(words, text));
}

#endif
