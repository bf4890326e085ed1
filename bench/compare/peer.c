/* SPDX-License-Identifier: BSD-3-Clause */
/* The common functions of the programs of bench/compare. */
#include "peer.h"
#include "../cpus.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const char *peer_program = "peer";

void peer_die(const char *fmt, ...)
{
	char line[300];
	va_list args;
	va_start(args, fmt);
	vsnprintf(line, sizeof line, fmt, args);
	va_end(args);
	fprintf(stderr, "%s: %s\n", peer_program, line);
	exit(1);
}

double peer_now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

double peer_median(double *sample, uint64_t n)
{
	qsort(sample, n, sizeof *sample, compare);
	return n % 2 ? sample[n / 2] : (sample[n / 2 - 1] + sample[n / 2]) / 2;
}

void *peer_allocate(size_t bytes)
{
	size_t whole = (bytes + 4095) / 4096 * 4096;
	void *p = aligned_alloc(4096, whole ? whole : 4096);
	if (!p)
		peer_die("no memory for %zu bytes; expected that they fit; use smaller "
			 "sizes",
			bytes);
	memset(p, 0, whole);
	return p;
}

void peer_pin(unsigned rank)
{
	static struct cpus at_start;
	static bool known;
	if (!known && !cpus_read(&at_start))
		peer_die("the CPUs cannot be asked for: %s", strerror(errno));
	known = true;
	int cpu = cpus_nth(&at_start, rank);
	if (!cpus_pin(cpu))
		peer_die("cannot be pinned to CPU %d: %s", cpu, strerror(errno));
}

/* ---- children ---- */

static void on_child_end(int sig)
{
	static const char line[] =
		"compare: a process of a pattern has ended; expected that "
		"all do all their rounds\n";
	(void)sig;
	(void)!write(STDERR_FILENO, line, sizeof line - 1);
	_exit(1);
}

void peer_expect_children(bool alive)
{
	struct sigaction act = {
		.sa_handler = alive ? on_child_end : SIG_DFL, .sa_flags = SA_NOCLDSTOP};
	sigset_t chld;
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigaction(SIGCHLD, &act, NULL);
	sigprocmask(SIG_UNBLOCK, &chld, NULL);
}

/* ---- number of rounds ---- */

static uint64_t usual_rounds(uint64_t bytes)
{
	return bytes <= 1 << 10    ? 20000
	       : bytes <= 64 << 10 ? 5000
	       : bytes <= 1 << 20  ? 1000
				   : 200;
}

struct peer_plan peer_plan_of(bool quick, bool windows, uint64_t bytes)
{
	uint64_t rounds = quick ? 20 : usual_rounds(bytes);
	rounds = windows ? rounds / 16 + 1 : rounds;
	uint64_t batches = rounds < PEER_BATCHES ? rounds : PEER_BATCHES;
	return (struct peer_plan){rounds / 10 + 1, batches, rounds / batches};
}

double peer_timed(const struct peer_plan *p, peer_round *fn, uint64_t bytes)
{
	double ns[PEER_BATCHES];
	uint64_t round = 0;
	for (uint64_t i = 0; i < p->warm; i++)
		fn(bytes, round++);
	for (uint64_t b = 0; b < p->batches; b++) {
		double t = peer_now_ns();
		for (uint64_t i = 0; i < p->each; i++)
			fn(bytes, round++);
		ns[b] = (peer_now_ns() - t) / (double)p->each;
	}
	return peer_median(ns, p->batches);
}

/* ---- steps of a round ---- */

static double began[PEER_STEPS + 1];
static bool looks;

void peer_step(enum peer_step step)
{
	if (looks)
		began[step] = peer_now_ns();
}

double peer_step_of(const struct peer_plan *p, peer_round *fn, uint64_t step)
{
	uint64_t rounds = peer_rounds(p), n = 0;
	if (step >= PEER_STEPS)
		peer_die("step=%llu: expected 0 to %d", (unsigned long long)step,
			PEER_STEPS - 1);
	double *ns = peer_allocate(rounds * sizeof *ns);
	looks = true;
	for (uint64_t i = 0; i < rounds; i++) {
		fn(0, i);
		if (i >= p->warm)
			ns[n++] = began[step + 1] - began[step];
	}
	looks = false;
	double median = peer_median(ns, n);
	free(ns);
	return median;
}

/* ---- arguments ---- */

static void each_x(const char *arg, bool quick, peer_run *run)
{
	char test[32];
	char *end;
	size_t length = strcspn(arg, "=");
	if (!arg[length] || length >= sizeof test)
		peer_die("'%.60s': expected test=list, as in latency=8,1024", arg);
	memcpy(test, arg, length);
	test[length] = '\0';
	for (const char *at = arg + length + 1;; at = end + 1) {
		uint64_t x = strtoull(at, &end, 10);
		if (*at < '0' || *at > '9' || (*end && *end != ','))
			peer_die("'%.60s': expected numbers, as in latency=8,1024", arg);
		run(test, x, quick);
		if (!*end)
			return;
	}
}

void peer_each(int argc, char **argv, peer_run *run)
{
	if (argc < 3 || (strcmp(argv[1], "quick") && strcmp(argv[1], "full")))
		peer_die("expected quick or full, then test=list, as in latency=8,1024");
	for (int i = 2; i < argc; i++)
		each_x(argv[i], argv[1][0] == 'q', run);
}

void peer_print(const char *who, const char *test, uint64_t x, double value)
{
	printf("%s\t%s\t%llu\t%.6g\n", who, test, (unsigned long long)x, value);
	fflush(stdout);
}

/* ---- data ---- */

void peer_stamp(char *at, uint64_t bytes, uint64_t round)
{
	if (bytes < PEER_WORD)
		return;
	memcpy(at, &round, sizeof round);
	memcpy(at + bytes - sizeof round, &round, sizeof round);
}

void peer_check(const char *at, uint64_t bytes, uint64_t round)
{
	if (bytes >= PEER_WORD &&
		(memcmp(at, &round, sizeof round) ||
			memcmp(at + bytes - sizeof round, &round, sizeof round)))
		peer_die(
			"message %llu of %llu bytes: wrong bytes; expected what was sent",
			(unsigned long long)round, (unsigned long long)bytes);
}
