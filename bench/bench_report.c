/* SPDX-License-Identifier: BSD-3-Clause */
/* The report: lines of errors, warnings, table, JSON. */
#include "bench.h"

#include <portals3x.h>

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* ---- errors ---- */

enum { ERRORS_SHOWN = 3, WIDTH = 10 };

static const char *program = "bench";
static unsigned own_rank;

void bench_name_errors(const char *name, unsigned rank)
{
	program = name;
	own_rank = rank;
}

__attribute__((format(printf, 1, 0))) static void say(const char *fmt, va_list args)
{
	char line[400];
	vsnprintf(line, sizeof line, fmt, args);
	fprintf(stderr, "%s: rank %u: %s\n", program, own_rank, line);
}

void bench_die(int status, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	say(fmt, args);
	va_end(args);
	exit(status);
}

void bench_wrong(struct bench *b, const char *fmt, ...)
{
	va_list args;
	if (b->errors++ >= ERRORS_SHOWN)
		return;
	va_start(args, fmt);
	say(fmt, args);
	va_end(args);
}

void bench_check(int rc, const char *what)
{
	if (rc != PTL_OK)
		bench_die(1, "%s answers %s, expected PTL_OK; see portals3.h", what,
			PtlErrorStr((unsigned)rc));
}

/*
 * Process a failure, or an event after a gap in the sequence.  The NIC serves gets and
 * acknowledged puts also while the target's program is off its CPU, so the target's queue
 * may overflow.  It then loses only events of the kind may_lose, and their number follows
 * from sequence.
 */
void bench_watch_odd(struct bench_watch *w, int rc)
{
	if (rc == PTL_EQ_DROPPED && w->may_lose != BENCH_LOSE_NONE) {
		w->seen[w->may_lose] += (ptl_seq_t)(w->last.sequence - w->sequence - 1);
		rc = PTL_OK;
	}
	bench_check(rc, "waiting for an event");
	if (w->last.ni_fail_type != PTL_NI_OK)
		bench_die(1,
			"%s with ni_fail_type %u, expected PTL_NI_OK; is the peer gone?",
			PtlEventKindStr(w->last.type), w->last.ni_fail_type);
}

/* ---- turns ---- */

double bench_ratio(const double *a, const double *b, uint64_t n)
{
	double *copy = malloc(n * sizeof *copy);
	if (!copy)
		bench_die(1, "no memory for %" PRIu64 " samples; use fewer", n);
	for (uint64_t i = 0; i < n; i++)
		copy[i] = b ? a[i] / b[i] : a[i];
	double median = bench_stat_of(copy, n).p50;
	free(copy);
	return median;
}

double bench_median(const double *sample, uint64_t n)
{
	return bench_ratio(sample, NULL, n);
}

/* ---- warnings ---- */

void bench_warn(struct bench *b, const char *fmt, ...)
{
	char line[300];
	va_list args;
	va_start(args, fmt);
	vsnprintf(line, sizeof line, fmt, args);
	va_end(args);
	fprintf(stderr, "%s: %s\n", b->program, line);
	json_array_append_new(b->warnings, json_string(line));
}

/* Read the ticks of all CPUs since boot, and those that the hypervisor took. */
static void read_ticks(uint64_t *stolen_out, uint64_t *ticks_out)
{
	unsigned long long v[8] = {0};
	FILE *f = fopen("/proc/stat", "re");
	if (f && fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1],
			 &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]) != 8)
		v[7] = 0;
	if (f)
		fclose(f);
	*stolen_out = v[7];
	*ticks_out = 0;
	for (int i = 0; i < 8; i++)
		*ticks_out += v[i];
}

static void warn_before(struct bench *b)
{
	double load = 0;
	int least = INT_MAX,
	    threads = 1; /* that run or want to; the least of some looks */
	for (int i = 0; i < 5; i++) {
		FILE *f = fopen("/proc/loadavg", "re");
		if (f && fscanf(f, "%lf %*f %*f %d/", &load, &threads) == 2)
			least = threads < least ? threads : least;
		if (f)
			fclose(f);
		usleep(2000);
	}
	if (b->no_pin)
		bench_warn(b, "ranks are not pinned: figures depend on where they run; "
			      "leave out --no-pin");
	if ((least > 1 && least < INT_MAX) || load > b->ncpus)
		bench_warn(b,
			"the machine is busy: %d other runnable threads, load average "
			"%.2f; expected 0 and at most %u; wait until it is quiet",
			least - 1, load, b->ncpus);
	if (b->size > b->ncpus)
		bench_warn(b,
			"%u ranks on %u CPUs: they take turns, and figures are those of "
			"the scheduler, too",
			b->size, b->ncpus);
	read_ticks(&b->stolen, &b->ticks);
}

/* ---- table ---- */

void bench_row(struct bench *b, const struct bench_cell *cells)
{
	char names[sizeof b->columns] = "", key[40];
	size_t n = 0;
	json_t *row = json_object();
	for (const struct bench_cell *c = cells; c->name && n < sizeof names; c++)
		n += (size_t)snprintf(
			names + n, sizeof names - n, "%*s ", WIDTH, c->name);
	if (strcmp(names, b->columns) != 0)
		fprintf(b->table, "\n%s\n", names);
	strcpy(b->columns, names);
	for (const struct bench_cell *c = cells; c->name; c++) {
		int width = (int)strlen(c->name) > WIDTH ? (int)strlen(c->name) : WIDTH;
		if (c->text)
			fprintf(b->table, "%*s ", width, c->text);
		else
			fprintf(b->table, "%*.*f ", width, c->digits, c->number);
		sscanf(c->name, "%39s", key);
		json_object_set_new(row, key,
			c->text     ? json_string(c->text)
			: c->digits ? json_real(c->number)
				    : json_integer((json_int_t)c->number));
	}
	fputc('\n', b->table);
	fflush(b->table);
	json_array_append_new(b->rows, row);
}

void bench_section(struct bench *b, const char *name)
{
	b->rows = json_array();
	json_object_set_new(b->document, name, b->rows);
}

void bench_note(struct bench *b, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	vfprintf(b->table, fmt, args);
	va_end(args);
	fputc('\n', b->table);
}

/* ---- JSON ---- */

static void say_no_json(const struct bench *b)
{
	fprintf(stderr, "%s: --json %s: cannot be written: %s; expected a file, or -\n",
		b->program, b->json, strerror(errno));
}

/* End the program before it measures if the file for JSON cannot be written. */
void bench_report_begin(struct bench *b)
{
	struct utsname u;
	char date[32];
	time_t t = time(NULL);
	json_t *cpus = json_array();
	bool is_file = b->json && strcmp(b->json, "-") != 0;
	b->table = b->json && !is_file ? stderr : stdout;
	b->json_file = is_file ? fopen(b->json, "we") : stdout;
	if (!b->json_file) {
		say_no_json(b);
		exit(2);
	}
	b->warnings = json_array();
	for (unsigned i = 0; !b->no_pin && i < b->size; i++)
		json_array_append_new(cpus, json_integer(b->cpu[i]));
	uname(&u);
	strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime(&t));
	b->document = json_pack("{s:s s:s s:s s:s s:s s:i s:o s:b s:b s:O}", "program",
		b->program, "library", PtlXVersion(), "host", u.nodename, "kernel",
		u.release, "date", date, "ranks", (int)b->size, "cpus", cpus, "pinned",
		!b->no_pin, "quick", b->quick, "warnings", b->warnings);
	bench_section(b, "results");
	warn_before(b);
	fprintf(b->table, "%s, %s: %u ranks", b->program, PtlXVersion(), b->size);
	fprintf(b->table, b->no_pin ? ", not pinned" : ", on CPUs");
	for (unsigned i = 0; !b->no_pin && i < b->size; i++)
		fprintf(b->table, " %d", b->cpu[i]);
	fprintf(b->table, "%s\n%s", b->quick ? "; --quick: no measurement" : "",
		b->legend ? b->legend : "");
}

bool bench_report_end(struct bench *b)
{
	const size_t flags = JSON_INDENT(1) | JSON_REAL_PRECISION(6);
	uint64_t stolen, ticks;
	FILE *f = b->json_file;
	read_ticks(&stolen, &ticks);
	double part = 100.0 * (double)(stolen - b->stolen) /
		      (double)(ticks > b->ticks ? ticks - b->ticks : 1);
	if (part >= 0.5)
		bench_warn(b,
			"the host took %.1f %% of the CPUs' time meanwhile (steal); "
			"expected less than 0.5; compare ratios of one run only",
			part);
	json_object_set_new(b->document, "errors", json_integer((json_int_t)b->errors));
	if (b->errors)
		fprintf(stderr, "%s: %" PRIu64 " errors in data or events; expected 0\n",
			b->program, b->errors);
	else
		fprintf(b->table,
			"\ndata and events: all that were checked were right\n");
	bool ok = fflush(b->table) == 0;
	if (b->json && (json_dumpf(b->document, f, flags) | (fputc('\n', f) == EOF) |
			       (f == stdout ? fflush(f) : fclose(f)))) {
		say_no_json(b);
		ok = false;
	}
	json_decref(b->document);
	json_decref(b->warnings);
	return ok;
}
