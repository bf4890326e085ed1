/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model_test - random programs, carried out by the library and by the model
 *
 * A disagreement is shrunk to a few operations and printed with both results.
 */
#include "model/model.h"
#include "model/play.h"

#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define QUICK 50u
#define TRIES 10u

struct args {
	uint64_t seed;
	uint64_t seeds;
	unsigned ops;
	unsigned seconds;
	unsigned rounds;
	bool programs, races, shrinks;
};

static struct play play;
static struct m_op program[PLAY_OPS];
static unsigned program_n;
static volatile uint64_t now_seed;

static void on_crash(int sig)
{
	char text[100];
	int n = snprintf(text, sizeof text,
		"model_test: signal %d in seed %llu, operation %u\n", sig,
		(unsigned long long)now_seed, program_n);
	if (n > 0)
		(void)!write(STDERR_FILENO, text, (size_t)n);
	signal(sig, SIG_DFL);
	raise(sig);
}

static void print_program(const struct m_op *ops, unsigned n)
{
	char text[800];
	for (unsigned i = 0; i < n; i++) {
		show_op(text, sizeof text, &ops[i]);
		printf("%4u  %s\n", i, text);
	}
}

static void report(struct args *a, uint64_t seed, unsigned nodes)
{
	printf("seed %" PRIu64 ", operation %u: disagreement\n%s"
	       "rerun: model_test --seed %" PRIu64 " --ops %u\n",
		seed, program_n - 1, play.text, seed, a->ops);
	fflush(stdout);
	if (!a->shrinks)
		return;
	struct shrink s = {.play = &play, .nodes = nodes, .fresh = true};
	unsigned tries = 0;
	while (replay(&s, program, program_n) && ++tries < TRIES)
		s.fresh = false;
	if (tries == TRIES) {
		printf("it does not come again; the program:\n");
		print_program(program, program_n);
		return;
	}
	unsigned n = shrink(&s, program, program_n);
	printf("shrunk to %u operations on %u nodes:\n", n, nodes);
	print_program(program, n);
	if (!replay(&s, program, n))
		printf("first disagreement:\n%s", play.text);
}

static bool run_seed(struct args *a, uint64_t seed)
{
	struct generator g;
	generate_begin(&g, seed);
	now_seed = seed;
	program_n = 0;
	play_begin(&play, g.nodes);
	while (program_n < a->ops && !play.differs) {
		program[program_n] = generate_op(&g, play.model);
		struct m_op op = program[program_n++];
		(void)play_op(&play, &op);
	}
	if (!play.differs && play_end(&play))
		return true;
	report(a, seed, g.nodes);
	return false;
}

static void print_counts(void)
{
	printf("%" PRIu64 " events (%" PRIu64 " UNLINK), %" PRIu64
	       " gaps; moves with bytes: %" PRIu64 ", long: %" PRIu64
	       ", in bursts: %" PRIu64 "\n",
		play.events, play.unlinks, play.lost, play.accepted, play.longs,
		play.bursts);
	for (unsigned k = 0; k < M_KINDS; k++) {
		struct m_op op = {.kind = (uint8_t)k};
		if (play.ok[k] + play.failed[k])
			printf("  %-14s %9" PRIu64 " done %9" PRIu64 " refused\n",
				show_kind(&op), play.ok[k], play.failed[k]);
	}
}

static bool programs(struct args *a)
{
	uint64_t start = now_ns(), done = 0;
	bool ok = true;
	play_init(&play);
	while (ok && done < a->seeds) {
		if (a->seconds && now_ns() - start > a->seconds * 1000000000ull)
			break;
		ok = run_seed(a, a->seed + done++);
	}
	double s = (double)(now_ns() - start) / 1e9;
	printf("%" PRIu64 " programs, %" PRIu64 " operations, %.1f s, %.0f/s\n", done,
		play.calls, s, (double)play.calls / s);
	print_counts();
	play_fini(&play);
	return ok;
}

static uint64_t number(const char *option, const char *text)
{
	char *end;
	unsigned long long n = strtoull(text, &end, 0);
	if (!*text || *end) {
		fprintf(stderr, "model_test: --%s takes a number, not '%s'\n", option,
			text);
		exit(2);
	}
	return n;
}

static void usage(void)
{
	puts("model_test [--seed S] [--seeds N] [--ops N] [--seconds T]\n"
	     "           [--race-only] [--no-race] [--rounds N] [--no-shrink]\n"
	     "  --seed S     first seed\n"
	     "  --seeds N    programs, seeds S to S+N-1; 1 if --seed is given\n"
	     "  --ops N      operations of a program\n"
	     "  --seconds T  stop after so long\n"
	     "  --rounds N   of each racing scene\n"
	     "  --no-shrink  print no smaller program that fails");
	exit(0);
}

static struct args arguments(int argc, char **argv)
{
	static const struct option options[] = {{"seed", 1, NULL, 's'},
		{"seeds", 1, NULL, 'n'}, {"ops", 1, NULL, 'o'}, {"seconds", 1, NULL, 't'},
		{"race-only", 0, NULL, 'r'}, {"no-race", 0, NULL, 'p'},
		{"rounds", 1, NULL, 'c'}, {"no-shrink", 0, NULL, 'k'},
		{"help", 0, NULL, 'h'}, {0}};
	struct args a = {.seed = 1,
		.seeds = 0,
		.ops = 800,
		.rounds = 500,
		.programs = true,
		.races = true,
		.shrinks = true};
	bool one = false;
	int c, i;
	while ((c = getopt_long(argc, argv, "h", options, &i)) != -1) {
		uint64_t n = optarg ? number(options[i].name, optarg) : 0;
		a.seed = c == 's' ? n : a.seed;
		one = one || c == 's';
		a.seeds = c == 'n' ? n : a.seeds;
		a.ops = c == 'o' ? (unsigned)n : a.ops;
		a.seconds = c == 't' ? (unsigned)n : a.seconds;
		a.rounds = c == 'c' ? (unsigned)n : a.rounds;
		a.programs = a.programs && c != 'r';
		a.races = a.races && c != 'p';
		a.shrinks = a.shrinks && c != 'k';
		if (c == 'h' || c == '?')
			usage();
	}
	a.races = a.races && !(one && a.programs);
	a.seeds = a.seeds ? a.seeds : one ? 1 : 1000;
	if (a.ops > PLAY_OPS)
		a.ops = PLAY_OPS;
	if (getenv("P3_QUICK") && !one) {
		a.seeds = a.seeds / QUICK + 1;
		a.rounds = a.rounds / QUICK + 1;
	}
	return a;
}

int main(int argc, char **argv)
{
	struct args a = arguments(argc, argv);
	bool ok = true;
	signal(SIGSEGV, on_crash);
	signal(SIGABRT, on_crash);
	setenv("PTL3_HUGEPAGES", "off", 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (a.programs)
		ok = programs(&a);
	if (ok && a.races)
		ok = race(
			a.seed, a.rounds, (a.seconds ? a.seconds : 1000) * 1000000000ull);
	return ok && !net_missed_faults() ? 0 : 1;
}
