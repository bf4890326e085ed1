/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf.h"

#include <portals3x.h>

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static struct {
	const struct perf_setting *setting;
	FILE *table;
	json_t *results, *raw, *warnings;
} report;

void perf_die(int status, const char *fmt, ...)
{
	char line[400];
	va_list args;
	va_start(args, fmt);
	vsnprintf(line, sizeof line, fmt, args);
	va_end(args);
	fprintf(stderr, "portalperf: %s\n", line);
	exit(status);
}

/* ---- numbers ---- */

double perf_now_ns(void)
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

double perf_percentile(double *sample, uint64_t n, double part)
{
	qsort(sample, n, sizeof *sample, compare);
	uint64_t at = (uint64_t)(part * (double)n);
	if (part == 0.5 && n % 2 == 0)
		return (sample[n / 2 - 1] + sample[n / 2]) / 2;
	return sample[at < n ? at : n - 1];
}

/* Bytes per microsecond; both directions count. */
static double mb_per_s(const struct perf_result *r)
{
	double bytes = (double)r->bytes * (r->test == PERF_BIDIR ? 2 : 1);
	return bytes * 1e3 / r->median_ns;
}

/* ---- warnings ---- */

__attribute__((format(printf, 1, 2))) static void warn(const char *fmt, ...)
{
	char line[300];
	va_list args;
	va_start(args, fmt);
	vsnprintf(line, sizeof line, fmt, args);
	va_end(args);
	fprintf(stderr, "portalperf: %s\n", line);
	json_array_append_new(report.warnings, json_string(line));
}

/* Load average, and the threads that run or want to, but for this one. */
static bool read_load(double *load_out, int *others_out)
{
	FILE *f = fopen("/proc/loadavg", "re");
	if (!f)
		return false;
	int n = fscanf(f, "%lf %*f %*f %d/", load_out, others_out);
	fclose(f);
	--*others_out;
	return n == 2;
}

static int least_others(double *load_out)
{
	int least = 0;
	for (int i = 0; i < 5; i++) {
		int others = 0;
		if (!read_load(load_out, &others))
			return 0;
		least = i && least < others ? least : others;
		usleep(2000);
	}
	return least;
}

void perf_warn(const struct perf_setting *s)
{
	double load = 0;
	int others = least_others(&load);
	report.warnings = json_array();
	if (!s->opt->pin)
		warn("ranks are not pinned: figures depend on where they run; leave out "
		     "--no-pin");
	if (others > 0 || load > s->ncpus)
		warn("the machine is busy: %d other runnable threads, load average %.2f; "
		     "expected 0 and at most %u; wait until it is quiet",
			others, load, s->ncpus);
	if (s->ranks > s->ncpus)
		warn("%u ranks on %u CPUs: they take turns, and figures are those of the "
		     "scheduler; use fewer ranks",
			s->ranks, s->ncpus);
}

/* ---- table ---- */

static void print_cpus(const struct perf_setting *s)
{
	fprintf(report.table, "%u ranks", s->ranks);
	if (!s->opt->pin) {
		fprintf(report.table, ", not pinned");
		return;
	}
	fprintf(report.table, ", on CPUs");
	for (unsigned i = 0; i < s->ranks; i++)
		fprintf(report.table, " %d", s->cpu[i]);
}

static void print_legend(const struct perf_opt *o)
{
	fprintf(report.table,
		"; waiting: %s\n"
		"START events disabled, no ACK; SEND_END, PUT_END, GET_END, REPLY_END "
		"taken; descriptors persistent\n"
		"put    ping-pong: half a round trip; MB/s = 10^6 bytes in that time\n"
		"get    PtlGet to REPLY_END\n"
		"bidir  both put at once, until both messages are sent and there; MB/s "
		"of "
		"both\n"
		"median, p99, min of batches' means; rounds: %s\n\n",
		o->poll ? "PtlEQPoll" : "PtlEQWait",
		o->quick   ? "few (--quick), no measurement"
		: o->iters ? "--iters"
			   : "1000 or more up to 1 MiB, 200 above");
}

void perf_report_begin(const struct perf_setting *s)
{
	report.setting = s;
	report.results = json_array();
	report.raw = json_array();
	report.table = s->opt->json && !strcmp(s->opt->json, "-") ? stderr : stdout;
	fprintf(report.table, "portalperf, %s: ", PtlXVersion());
	print_cpus(s);
	print_legend(s->opt);
	fprintf(report.table, "%-6s %5s %9s %8s %8s %12s %12s %12s %10s\n", "test",
		"ranks", "bytes", "rounds", "batches", "median ns", "p99 ns", "min ns",
		"MB/s");
}

void perf_report_row(const struct perf_result *r)
{
	fprintf(report.table,
		"%-6s %2u-%-2u %9llu %8llu %8llu %12.1f %12.1f %12.1f %10.1f\n",
		perf_test_name[r->test], r->rank, r->rank + 1,
		(unsigned long long)r->bytes, (unsigned long long)r->rounds,
		(unsigned long long)r->batches, r->median_ns, r->p99_ns, r->min_ns,
		mb_per_s(r));
	fflush(report.table);
	json_array_append_new(report.results,
		json_pack("{s:s s:[i,i] s:I s:I s:I s:f s:f s:f s:f}", "test",
			perf_test_name[r->test], "ranks", (int)r->rank, (int)r->rank + 1,
			"bytes", (json_int_t)r->bytes, "rounds", (json_int_t)r->rounds,
			"batches", (json_int_t)r->batches, "median_ns", r->median_ns,
			"p99_ns", r->p99_ns, "min_ns", r->min_ns, "mb_per_s",
			mb_per_s(r)));
}

void perf_report_raw(unsigned rank, const struct perf_raw *raw)
{
	fprintf(report.table,
		"\nranks %u-%u, 8 B put: %.1f ns half round trip, raw hand-over %.1f ns, "
		"median ratio %.2f (%u pairs of %u, p10 %.2f, p90 %.2f)\n",
		rank, rank + 1, raw->put_ns, raw->raw_ns, raw->ratio, raw->pairs,
		raw->each, raw->ratio_p10, raw->ratio_p90);
	json_array_append_new(report.raw,
		json_pack("{s:[i,i] s:i s:i s:f s:f s:f s:f s:f}", "ranks", (int)rank,
			(int)rank + 1, "pairs", (int)raw->pairs, "round_trips",
			(int)raw->each, "put_8_ns", raw->put_ns, "raw_ns", raw->raw_ns,
			"ratio_median", raw->ratio, "ratio_p10", raw->ratio_p10,
			"ratio_p90", raw->ratio_p90));
}

void perf_report_note(const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	fputc('\n', report.table);
	vfprintf(report.table, fmt, args);
	fputc('\n', report.table);
	va_end(args);
}

/* ---- JSON ---- */

static json_t *cpus_json(const struct perf_setting *s)
{
	json_t *list = json_array();
	for (unsigned i = 0; s->opt->pin && i < s->ranks; i++)
		json_array_append_new(list, json_integer(s->cpu[i]));
	return list;
}

static json_t *document(uint64_t errors)
{
	const struct perf_setting *s = report.setting;
	struct utsname u;
	char date[32];
	time_t t = time(NULL);
	uname(&u);
	strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime(&t));
	return json_pack(
		"{s:s s:s s:s s:s s:s s:i s:o s:b s:b s:s s:b s:b s:I s:o s:o s:o}",
		"program", "portalperf", "library", PtlXVersion(), "host", u.nodename,
		"kernel", u.release, "date", date, "ranks", (int)s->ranks, "cpus",
		cpus_json(s), "pinned", s->opt->pin, "quick", s->opt->quick, "wait",
		s->opt->poll ? "PtlEQPoll" : "PtlEQWait", "start_events", 0, "ack", 0,
		"errors", (json_int_t)errors, "warnings", report.warnings, "results",
		report.results, "raw", report.raw);
}

static bool write_json(const char *name, uint64_t errors)
{
	FILE *f = strcmp(name, "-") ? fopen(name, "we") : stdout;
	json_t *doc = document(errors);
	int rc =
		!f || !doc || json_dumpf(doc, f, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
	if (f)
		rc |= fputc('\n', f) == EOF || (f == stdout ? fflush(f) : fclose(f));
	json_decref(doc);
	if (rc)
		fprintf(stderr,
			"portalperf: --json %s: cannot be written: %s; expected a file, "
			"or -\n",
			name, strerror(errno));
	return !rc;
}

bool perf_report_end(uint64_t errors)
{
	const char *json = report.setting->opt->json;
	if (errors)
		fprintf(stderr, "portalperf: %llu messages had wrong bytes; expected 0\n",
			(unsigned long long)errors);
	else
		fprintf(report.table, "\ndata: all messages checked were right\n");
	bool ok = fflush(stdout) == 0;
	if (json)
		return write_json(json, errors) && ok;
	json_decref(report.warnings);
	json_decref(report.results);
	json_decref(report.raw);
	return ok;
}
