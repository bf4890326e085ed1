/* SPDX-License-Identifier: BSD-3-Clause */
/* The report: warnings, table, JSON. */
#include "bench.h"

#include <portals3x.h>

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

enum { WIDTH = 10 };

/* ---- turns ---- */

static double median_of_copy(const double *a, const double *b, uint64_t n)
{
	double *copy = malloc(n * sizeof *copy);
	if (!copy)
		bench_die(1, "no memory for %llu samples; use fewer",
			(unsigned long long)n);
	for (uint64_t i = 0; i < n; i++)
		copy[i] = b ? a[i] / b[i] : a[i];
	double median = bench_stat_of(copy, n).p50;
	free(copy);
	return median;
}

double bench_median(const double *sample, uint64_t n)
{
	return median_of_copy(sample, NULL, n);
}

double bench_ratio(const double *a, const double *b, uint64_t n)
{
	return median_of_copy(a, b, n);
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

/* Return the least number of other threads that run or want to, of some looks, and the
 * load average. */
static int least_others(double *load_out)
{
	int least = 0, others;
	for (int i = 0; i < 5; i++) {
		FILE *f = fopen("/proc/loadavg", "re");
		if (!f)
			return 0;
		int n = fscanf(f, "%lf %*f %*f %d/", load_out, &others);
		fclose(f);
		if (n != 2)
			return 0;
		least = i && least < others - 1 ? least : others - 1;
		usleep(2000);
	}
	return least;
}

/* Read the ticks of all CPUs since boot, and those that the hypervisor took. */
static void read_ticks(uint64_t *stolen_out, uint64_t *ticks_out)
{
	unsigned long long v[8] = {0};
	FILE *f = fopen("/proc/stat", "re");
	*stolen_out = *ticks_out = 0;
	if (!f)
		return;
	if (fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1], &v[2],
		    &v[3], &v[4], &v[5], &v[6], &v[7]) == 8)
		*stolen_out = v[7];
	for (int i = 0; i < 8; i++)
		*ticks_out += v[i];
	fclose(f);
}

static void warn_before(struct bench *b)
{
	double load = 0;
	int others = least_others(&load);
	if (b->no_pin)
		bench_warn(b, "ranks are not pinned: figures depend on where they run; "
			      "leave out --no-pin");
	if (others > 0 || load > b->ncpus)
		bench_warn(b,
			"the machine is busy: %d other runnable threads, load average "
			"%.2f; expected 0 and at most %u; wait until it is quiet",
			others, load, b->ncpus);
	if (b->size > b->ncpus)
		bench_warn(b,
			"%u ranks on %u CPUs: they take turns, and figures are those of "
			"the scheduler, too",
			b->size, b->ncpus);
	read_ticks(&b->stolen, &b->ticks);
}

static void warn_after(struct bench *b)
{
	uint64_t stolen, ticks;
	read_ticks(&stolen, &ticks);
	double part = ticks > b->ticks ? 100.0 * (double)(stolen - b->stolen) /
						 (double)(ticks - b->ticks)
				       : 0;
	if (part >= 0.5)
		bench_warn(b,
			"the host took %.1f %% of the CPUs' time meanwhile (steal); "
			"expected less than 0.5; compare ratios of one run only",
			part);
}

/* ---- table ---- */

static void print_head(const struct bench *b)
{
	fprintf(b->table, "%s, %s: %u ranks", b->program, PtlXVersion(), b->size);
	fprintf(b->table, b->no_pin ? ", not pinned" : ", on CPUs");
	for (unsigned i = 0; !b->no_pin && i < b->size; i++)
		fprintf(b->table, " %d", b->cpu[i]);
	fprintf(b->table, "%s\n%s", b->quick ? "; --quick: no measurement" : "",
		b->legend ? b->legend : "");
}

static int width_of(const struct bench_cell *c)
{
	int n = (int)strlen(c->name);
	return n > WIDTH ? n : WIDTH;
}

static void print_columns(struct bench *b, const struct bench_cell *c)
{
	char line[sizeof b->columns];
	size_t n = 0;
	for (line[0] = '\0'; c->name && n < sizeof line; c++)
		n += (size_t)snprintf(
			line + n, sizeof line - n, "%*s ", width_of(c), c->name);
	if (!strcmp(line, b->columns))
		return;
	strcpy(b->columns, line);
	fprintf(b->table, "\n%s\n", line);
}

static json_t *print_cell(FILE *table, const struct bench_cell *c)
{
	if (c->text) {
		fprintf(table, "%*s ", width_of(c), c->text);
		return json_string(c->text);
	}
	fprintf(table, "%*.*f ", width_of(c), c->digits, c->number);
	return c->digits ? json_real(c->number) : json_integer((json_int_t)c->number);
}

void bench_row(struct bench *b, const struct bench_cell *cells)
{
	json_t *row = json_object();
	print_columns(b, cells);
	for (; cells->name; cells++)
		json_object_set_new(row, cells->name, print_cell(b->table, cells));
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

static json_t *new_document(const struct bench *b)
{
	struct utsname u;
	char date[32];
	time_t t = time(NULL);
	json_t *cpus = json_array();
	for (unsigned i = 0; !b->no_pin && i < b->size; i++)
		json_array_append_new(cpus, json_integer(b->cpu[i]));
	uname(&u);
	strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime(&t));
	return json_pack("{s:s s:s s:s s:s s:s s:i s:o s:b s:b s:O}", "program",
		b->program, "library", PtlXVersion(), "host", u.nodename, "kernel",
		u.release, "date", date, "ranks", (int)b->size, "cpus", cpus, "pinned",
		!b->no_pin, "quick", b->quick, "warnings", b->warnings);
}

static void say_no_json(const struct bench *b)
{
	fprintf(stderr, "%s: --json %s: cannot be written: %s; expected a file, or -\n",
		b->program, b->json, strerror(errno));
}

/* End the program before it measures if the file for JSON cannot be written. */
static void try_json(const struct bench *b)
{
	if (!b->json || !strcmp(b->json, "-"))
		return;
	FILE *f = fopen(b->json, "ae");
	if (!f) {
		say_no_json(b);
		exit(2);
	}
	fclose(f);
}

void bench_report_begin(struct bench *b)
{
	try_json(b);
	b->table = b->json && !strcmp(b->json, "-") ? stderr : stdout;
	b->warnings = json_array();
	b->document = new_document(b);
	bench_section(b, "results");
	warn_before(b);
	print_head(b);
}

static bool write_json(const struct bench *b)
{
	FILE *f = strcmp(b->json, "-") ? fopen(b->json, "we") : stdout;
	int rc =
		!f || json_dumpf(b->document, f, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
	if (f)
		rc |= fputc('\n', f) == EOF || (f == stdout ? fflush(f) : fclose(f));
	if (rc)
		say_no_json(b);
	return !rc;
}

bool bench_report_end(struct bench *b)
{
	warn_after(b);
	json_object_set_new(b->document, "errors", json_integer((json_int_t)b->errors));
	if (b->errors)
		fprintf(stderr, "%s: %llu errors in data or events; expected 0\n",
			b->program, (unsigned long long)b->errors);
	else
		fprintf(b->table,
			"\ndata and events: all that were checked were right\n");
	bool ok = fflush(b->table) == 0;
	if (b->json)
		ok &= write_json(b);
	json_decref(b->document);
	json_decref(b->warnings);
	return ok;
}
