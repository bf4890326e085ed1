/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const char *const perf_test_name[PERF_TESTS] = {"put", "get", "bidir"};

static const uint64_t default_sizes[] = {0, 1, 8, 16, 17, 32, 64, 100, 128, 256, 512,
	1000, 1024, 2048, 4096, 5000, 8192, 16384, 32768, 65536, 100000, 131072, 262144,
	524288, 1000003, 1048576, 2097152, 4194304};

static const char usage[] =
	"usage: yod -sz 2 portalperf [options]\n"
	"Latency and bandwidth of Portals operations between ranks 0 and 1, 2 and 3, "
	"...\n"
	"\n"
	"  --test LIST    of put, get, bidir; default all\n"
	"  --sizes LIST   of message sizes in bytes, with K or M; default 0 to 4M\n"
	"  --iters N      rounds for each size; default 20000 to 1K, 5000 to 64K, 1000 "
	"to\n"
	"                 1M, 200 above\n"
	"  --quick        few rounds: tests that the data are right, not the speed\n"
	"  --no-raw       leave out the comparison with a raw cache line hand-over "
	"(--raw is\n"
	"                 the default; it needs a CPU for each rank)\n"
	"  --poll         wait with PtlEQPoll instead of PtlEQWait\n"
	"  --no-pin       leave the ranks where the scheduler puts them\n"
	"  --json FILE    write the results as JSON, too; - is stdout (table to stderr)\n"
	"  --help         print this\n"
	"\n"
	"status: 0, 1 wrong data or no JSON, 2 usage.\n";

struct text {
	char *at;
	size_t room;
};

__attribute__((format(printf, 2, 3))) static bool wrong(
	struct text *t, const char *fmt, ...)
{
	va_list args;
	int n = snprintf(t->at, t->room, "portalperf: ");
	va_start(args, fmt);
	n += vsnprintf(t->at + n, t->room - (size_t)n, fmt, args);
	va_end(args);
	if ((size_t)n < t->room - 1)
		memcpy(t->at + n, "\n", 2);
	return false;
}

/* A whole number with an optional K or M behind it. */
static bool parse_number(const char *s, uint64_t most, uint64_t *n_out)
{
	char *end;
	errno = 0;
	unsigned long long n = strtoull(s, &end, 10);
	unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : 0;
	end += shift != 0;
	if (end == s || *s == '-' || *end || errno || n > most >> shift)
		return false;
	*n_out = (uint64_t)n << shift;
	return true;
}

static bool add_size(struct perf_opt *o, const char *word, struct text *t)
{
	enum { MOST = 1 << 30 };
	uint64_t n;
	if (!parse_number(word, MOST, &n))
		return wrong(t,
			"--sizes: '%.60s'; expected bytes, 0 to 1024M, as in 8,64K,1M",
			word);
	if (o->nsizes == PERF_SIZES)
		return wrong(t, "--sizes: more than %d; expected fewer", PERF_SIZES);
	o->size[o->nsizes++] = n;
	return true;
}

static bool add_test(struct perf_opt *o, const char *word, struct text *t)
{
	for (int i = 0; i < PERF_TESTS; i++)
		if (!strcmp(word, perf_test_name[i]))
			return o->test[i] = true;
	return wrong(t, "--test: '%.60s'; expected put, get or bidir", word);
}

static bool each_word(struct perf_opt *o, char *list, struct text *t,
	bool (*add)(struct perf_opt *, const char *, struct text *))
{
	char *word;
	while ((word = strsep(&list, ",")))
		if (!add(o, word, t))
			return false;
	return true;
}

static bool set_iters(struct perf_opt *o, const char *arg, struct text *t)
{
	if (parse_number(arg, 1000000000, &o->iters) && o->iters)
		return true;
	return wrong(t, "--iters: '%.60s'; expected rounds, 1 to 1000000000", arg);
}

static void fill_defaults(struct perf_opt *o)
{
	bool any = false;
	for (int i = 0; i < PERF_TESTS; i++)
		any |= o->test[i];
	for (int i = 0; i < PERF_TESTS && !any; i++)
		o->test[i] = true;
	if (!o->nsizes) {
		memcpy(o->size, default_sizes, sizeof default_sizes);
		o->nsizes = sizeof default_sizes / sizeof default_sizes[0];
	}
	for (unsigned i = 0; i < o->nsizes; i++)
		if (o->size[i] > o->largest)
			o->largest = o->size[i];
}

enum { SHORT_SIZES = 's', SHORT_TEST = 't', SHORT_ITERS = 'i', SHORT_JSON = 'j' };

static const struct option options[] = {{"test", 1, NULL, SHORT_TEST},
	{"sizes", 1, NULL, SHORT_SIZES}, {"iters", 1, NULL, SHORT_ITERS},
	{"json", 1, NULL, SHORT_JSON}, {"quick", 0, NULL, 'q'}, {"raw", 0, NULL, 'r'},
	{"no-raw", 0, NULL, 'R'}, {"poll", 0, NULL, 'p'}, {"no-pin", 0, NULL, 'P'},
	{"help", 0, NULL, 'h'}, {NULL, 0, NULL, 0}};

static bool set(struct perf_opt *o, int c, char *arg, struct text *t)
{
	switch (c) {
	case SHORT_TEST:
		return each_word(o, arg, t, add_test);
	case SHORT_SIZES:
		return each_word(o, arg, t, add_size);
	case SHORT_ITERS:
		return set_iters(o, arg, t);
	case SHORT_JSON:
		o->json = arg;
		return true;
	case 'q':
		return o->quick = true;
	case 'r':
		return o->raw = true;
	case 'R':
		o->raw = false;
		return true;
	case 'p':
		return o->poll = true;
	case 'P':
		o->pin = false;
		return true;
	}
	return false;
}

bool perf_opt_parse(struct perf_opt *o, int argc, char **argv, int *status_out,
	char *text_out, size_t room)
{
	struct text t = {text_out, room};
	int c;
	*o = (struct perf_opt){.raw = true, .pin = true};
	opterr = 0;
	*status_out = 2;
	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		if (c == 'h') {
			*status_out = 0;
			snprintf(text_out, room, "%s", usage);
			return false;
		}
		if (c == '?')
			return wrong(&t,
				"%.60s: unknown option, or its value is missing; "
				"see --help",
				argv[optind - 1]);
		if (!set(o, c, optarg, &t))
			return false;
	}
	if (optind < argc)
		return wrong(
			&t, "'%.60s': expected options only; see --help", argv[optind]);
	fill_defaults(o);
	return true;
}

static uint64_t rounds_for(const struct perf_opt *o, uint64_t bytes)
{
	if (o->quick)
		return o->iters && o->iters < 20 ? o->iters : 20;
	if (o->iters)
		return o->iters;
	return bytes <= 1 << 10    ? 20000
	       : bytes <= 64 << 10 ? 5000
	       : bytes <= 1 << 20  ? 1000
				   : 200;
}

/* Batches of 50 rounds at least where one is short against a look at the clock. */
struct perf_plan perf_plan_of(const struct perf_opt *o, uint64_t bytes)
{
	uint64_t rounds = rounds_for(o, bytes);
	uint64_t batches = bytes <= 4096 ? rounds / 50 : rounds;
	batches = batches > PERF_BATCHES ? PERF_BATCHES : batches ? batches : 1;
	struct perf_plan p = {.batches = batches, .each = rounds / batches};
	p.warm = rounds / 10 > 1000 ? 1000 : rounds / 10 + 1;
	return p;
}

struct perf_plan perf_plan_raw(const struct perf_opt *o)
{
	if (o->quick)
		return (struct perf_plan){.warm = 10, .batches = 2, .each = 50};
	return (struct perf_plan){.warm = 2000, .batches = 50, .each = 2000};
}
