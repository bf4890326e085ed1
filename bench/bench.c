/* SPDX-License-Identifier: BSD-3-Clause */
/* The common functions of benchmarks: report, start and end, objects, options. */
#include "bench.h"
#include "launcher/tools/options.h"

#include <errno.h>
#include <limits.h>
#include <portals3_runtime.h>
#include <portals3x.h>
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

void bench_fail(int rc, const char *what)
{
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

double bench_ratio(const double *a, const double *b, uint64_t n)
{
	double *copy = malloc(n * sizeof *copy);
	if (!copy)
		bench_die(1, "no memory for %" PRIu64 " samples; use fewer", n);
	for (uint64_t i = 0; i < n; i++)
		copy[i] = a[i] / b[i];
	double median = bench_stat_of(copy, n).p50;
	free(copy);
	return median;
}

/* ---- warnings ---- */

__attribute__((format(printf, 2, 3))) static void bench_warn(
	struct bench *b, const char *fmt, ...)
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
static void report_begin(struct bench *b)
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
		json_array_append_new(cpus, json_integer(cpus_nth(&b->cpus, i)));
	uname(&u);
	strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime(&t));
	b->document = json_pack("{s:s s:s s:s s:s s:s s:i s:o s:b s:b s:O}", "program",
		b->program, "library", PtlXVersion(), "host", u.nodename, "kernel",
		u.release, "date", date, "ranks", (int)b->size, "cpus", cpus, "pinned",
		!b->no_pin, "quick", b->quick, "warnings", b->warnings);
	b->rows = json_array();
	json_object_set_new(b->document, "results", b->rows);
	warn_before(b);
	fprintf(b->table, "%s, %s: %u ranks", b->program, PtlXVersion(), b->size);
	fprintf(b->table, b->no_pin ? ", not pinned" : ", on CPUs");
	for (unsigned i = 0; !b->no_pin && i < b->size; i++)
		fprintf(b->table, " %d", cpus_nth(&b->cpus, i));
	fprintf(b->table, "%s\n%s", b->quick ? "; --quick: no measurement" : "",
		b->legend ? b->legend : "");
}

/* Return false if the JSON is not written. */
static bool report_end(struct bench *b)
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

enum { PORTAL_GATHER = 60 };

/* ---- start and end ---- */

void bench_barrier(void)
{
	BENCH_DO(PtlXBarrier);
}

void bench_leave(int status)
{
	fflush(stdout);
	(void)PtlXBarrier(); /* leave also if a rank is gone */
	PtlFini();
	exit(status);
}

void bench_start(struct bench *b)
{
	int most;
	program = b->program;
	BENCH_DO(PtlInit, &most);
	BENCH_DO(PtlNIInit, PTL_IFACE_DEFAULT, PTL_PID_ANY, b->desired, NULL, &b->ni);
	if (PtlGetRank(b->ni, &b->rank, &b->size) != PTL_OK)
		b->rank = 0, b->size = 1;
	own_rank = b->rank;
	if (!cpus_read(&b->cpus))
		bench_die(1, "the CPUs cannot be asked for: %s", strerror(errno));
	b->ncpus = cpus_count(&b->cpus);
}

void bench_refuse(const struct bench *b, const char *fmt, ...)
{
	char line[500];
	va_list args;
	va_start(args, fmt);
	vsnprintf(line, sizeof line, fmt, args);
	va_end(args);
	if (b->rank == 0)
		fprintf(stderr, "%s: %s\n", b->program, line);
	bench_leave(2);
}

void bench_want_ranks(const struct bench *b, unsigned least, unsigned most)
{
	if (b->size < least || b->size > most)
		bench_refuse(b, "%u rank%s; expected %u%s; use yod -sz %u", b->size,
			b->size == 1 ? "" : "s", least, most > least ? " or more" : "",
			least);
}

void bench_begin(struct bench *b)
{
	int cpu = cpus_nth(&b->cpus, b->rank);
	if (!b->no_pin && !cpus_pin(cpu))
		fprintf(stderr,
			"%s: rank %u cannot be pinned to CPU %d: %s; use --no-pin\n",
			b->program, b->rank, cpu, strerror(errno));
	bench_barrier();
	if (b->rank == 0)
		report_begin(b); /* other ranks sleep in the barrier */
	bench_barrier();
}

int bench_end(struct bench *b)
{
	bool ok = true;
	uint64_t sum = 0, *all = bench_allocate(b->size * sizeof *all);
	bench_gather(b, &b->errors, sizeof b->errors, all);
	for (unsigned i = 0; i < b->size; i++)
		sum += all[i];
	free(all);
	if (b->rank == 0) {
		b->errors = sum;
		ok = report_end(b);
	}
	return b->errors || !ok;
}

void bench_finish(struct bench *b)
{
	bench_leave(bench_end(b));
}

/* ---- memory and descriptors ---- */

static void *cleared(void *p, uint64_t length)
{
	if (!p)
		bench_die(1,
			"no memory for %" PRIu64 " bytes of buffers; expected that they "
			"fit; use smaller sizes or fewer ranks",
			length);
	return memset(p, 0, length);
}

void *bench_allocate(uint64_t length)
{
	uint64_t whole = (length + 4095) / 4096 * 4096;
	return cleared(aligned_alloc(4096, whole ? whole : 4096), length);
}

/* Allocate page-aligned memory; blocks of PtlXAlloc are aligned to a cache line. */
void *bench_allocate_shared(uint64_t length)
{
	void *block;
	if (PtlXAlloc(length + 4096, &block) != PTL_OK)
		return cleared(NULL, length);
	return cleared((void *)(((uintptr_t)block + 4095) / 4096 * 4096), length);
}

ptl_process_id_t bench_id(const struct bench *b, unsigned rank)
{
	ptl_process_id_t id;
	if (b->size == 1)
		BENCH_DO(PtlGetId, b->ni, &id);
	else
		BENCH_DO(PtlGetRankId, b->ni, rank, &id);
	return id;
}

ptl_handle_eq_t bench_queue(const struct bench *b, uint64_t count)
{
	ptl_handle_eq_t eq;
	BENCH_DO(PtlEQAlloc, b->ni, count, PTL_EQ_HANDLER_NONE, &eq);
	return eq;
}

ptl_handle_md_t bench_bind(
	const struct bench *b, void *start, uint64_t length, ptl_handle_eq_t eq)
{
	ptl_handle_md_t md;
	BENCH_DO(
		PtlMDBind, b->ni, bench_region(b, start, length, 0, eq), PTL_RETAIN, &md);
	return md;
}

ptl_handle_me_t bench_post(const struct bench *b, ptl_pt_index_t portal, unsigned op,
	void *start, uint64_t length, ptl_handle_eq_t eq)
{
	ptl_handle_me_t me;
	ptl_md_t md = bench_region(b, start, length, op | PTL_MD_MANAGE_REMOTE, eq);
	BENCH_DO(PtlMEMDAttach, b->ni, portal, bench_anyone, BENCH_BITS, 0, PTL_UNLINK,
		PTL_INS_AFTER, md, PTL_RETAIN, &me, NULL);
	return me;
}

void bench_gather(const struct bench *b, const void *mine, uint64_t length, void *all)
{
	struct bench_watch w = {
		.eq = bench_queue(b, b->size + 8), .may_lose = BENCH_LOSE_NONE};
	if (b->rank) {
		bench_barrier();
		ptl_handle_md_t md = bench_bind(b, (void *)(uintptr_t)mine, length, w.eq);
		bench_put(b, md, PTL_NO_ACK_REQ, bench_id(b, 0), PORTAL_GATHER,
			BENCH_BITS, b->rank * length, 0);
		bench_await(&w, PTL_EVENT_SEND_END, 1);
		BENCH_DO(PtlMDUnlink, md);
	} else {
		ptl_handle_me_t me = bench_post(
			b, PORTAL_GATHER, PTL_MD_OP_PUT, all, b->size * length, w.eq);
		bench_barrier();
		memcpy(all, mine, length);
		bench_await(&w, PTL_EVENT_PUT_END, b->size - 1);
		BENCH_DO(PtlMEUnlink, me);
	}
	BENCH_DO(PtlEQFree, w.eq);
}

/* ---- events ---- */

void bench_watch_reset(struct bench_watch *w, int may_lose)
{
	memset(w->seen, 0, sizeof w->seen);
	w->may_lose = may_lose;
}

void bench_expect(struct bench *b, struct bench_watch *w, const char *test,
	ptl_event_kind_t kind, uint64_t count)
{
	if (w->may_lose == BENCH_LOSE_NONE)
		while (bench_try(w))
			;
	if (w->seen[kind] != count)
		bench_wrong(b,
			"%s: %" PRIu64 " events %s; expected %" PRIu64
			"; the library loses or invents events",
			test, w->seen[kind], PtlEventKindStr(kind), count);
}

/* ---- options, from a table ---- */

enum { OPTIONS = 32, LINE = 400 };

bool bench_set_flag(void *to, const char *value)
{
	(void)value;
	return *(bool *)to = true;
}

bool bench_set_text(void *to, const char *value)
{
	*(const char **)to = value;
	return *value != '\0';
}

/* Parse a whole number with an optional K, M or G behind it. */
static const char *parse(const char *s, uint64_t least, uint64_t most, uint64_t *n_out)
{
	char *end;
	errno = 0;
	unsigned long long n = strtoull(s, &end, 10);
	unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
	if (end == s || *s < '0' || *s > '9' || errno || n > most >> shift)
		return NULL;
	*n_out = (uint64_t)n << shift;
	return *n_out < least ? NULL : end + (shift != 0);
}

bool bench_set_number(void *to, const char *value)
{
	struct bench_number *n = to;
	const char *end = parse(value, n->least, n->most, &n->value);
	return end && !*end;
}

bool bench_set_list(void *to, const char *value)
{
	struct bench_list *list = to;
	for (list->n = 0; list->n < BENCH_LIST;) {
		value = parse(value, list->least, list->most, &list->at[list->n++]);
		if (!value || (*value && *value != ','))
			return false;
		if (!*value++)
			return true;
	}
	return false;
}

void bench_default_list(struct bench_list *list, const uint64_t *at, unsigned n)
{
	if (list->n)
		return;
	memcpy(list->at, at, n * sizeof *at);
	list->n = n;
}

uint64_t bench_largest(const struct bench_list *list, uint64_t least)
{
	uint64_t largest = least;
	for (unsigned i = 0; i < list->n; i++)
		largest = list->at[i] > largest ? list->at[i] : largest;
	return largest;
}

bool bench_set_words(void *to, const char *value)
{
	const struct bench_words *w = to;
	for (size_t length;; value += length + 1) {
		unsigned i = 0;
		length = strcspn(value, ",");
		while (i < w->n && (strlen(w->name[i]) != length ||
					   strncmp(value, w->name[i], length) != 0))
			i++;
		if (i == w->n)
			return false;
		w->on[i] = true;
		if (!value[length])
			return true;
	}
}

void bench_all_words(struct bench_words *w)
{
	for (unsigned i = 0; i < w->n; i++)
		if (w->on[i])
			return;
	for (unsigned i = 0; i < w->n; i++)
		w->on[i] = true;
}

/* Write the values that an option takes; nothing for a flag, and for text. */
static void print_values(const struct bench_option *row, char text[LINE])
{
	text[0] = '\0';
	if (row->set == bench_set_number) {
		const struct bench_number *n = row->to;
		snprintf(text, LINE, "%" PRIu64 " to %" PRIu64, n->least, n->most);
	} else if (row->set == bench_set_list) {
		const struct bench_list *n = row->to;
		snprintf(text, LINE, "%" PRIu64 " to %" PRIu64 ", as in 8,64K", n->least,
			n->most);
	} else if (row->set == bench_set_words) {
		const struct bench_words *w = row->to;
		int at = snprintf(text, LINE, "some of %s", w->name[0]);
		for (unsigned i = 1; i < w->n; i++)
			at += snprintf(text + at, LINE - (size_t)at, ",%s", w->name[i]);
	}
}

static bool take_option(const struct p3_option *row, void *own, const char *value)
{
	const struct bench_option *o = own;
	(void)row;
	return o->set(o->to, value);
}

/* Ranks other than 0 say nothing of the command line. */
__attribute__((format(printf, 1, 2))) static void say_nothing(const char *fmt, ...)
{
	(void)fmt;
}

/* Return true if the launcher has made this process a rank other than 0. */
static bool is_another_rank(void)
{
	static const char *const names[] = {"PTL_MY_RID", "OMPI_COMM_WORLD_RANK",
		"PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		const char *rank = getenv(names[i]);
		if (rank)
			return strcmp(rank, "0") != 0;
	}
	return false;
}

void bench_options(struct bench *b, const struct bench_option *own, int argc, char **argv)
{
	const struct bench_option common[] = {
		{"quick", NULL,
			"little work: tests that results are right, not the speed",
			bench_set_flag, &b->quick},
		{"json", "FILE",
			"write the results as JSON, too; - is stdout (table to stderr)",
			bench_set_text, &b->json},
		{"no-pin", NULL, "leave the ranks where the scheduler puts them",
			bench_set_flag, &b->no_pin}};
	struct bench_option all[OPTIONS];
	struct p3_option row[OPTIONS];
	char values[LINE], help[OPTIONS][2 * LINE], no[OPTIONS][LINE + 20];
	struct p3_options options = {.program = b->program,
		.usage = b->about,
		.after = "status: 0, 1 wrong data or no JSON, 2 usage.",
		.row = row,
		.say = is_another_rank() ? say_nothing : p3_tool_say};
	size_t n = 0;
	int first;
	for (; own->name; own++)
		all[n++] = *own;
	memcpy(&all[n], common, sizeof common);
	options.n = n + sizeof common / sizeof *common;
	for (size_t i = 0; i < options.n; i++) {
		print_values(&all[i], values);
		snprintf(help[i], sizeof help[i], "%s%s%s%s", all[i].help,
			*values ? " (" : "", values, *values ? ")" : "");
		snprintf(no[i], sizeof no[i], "value of it; expected %s",
			*values ? values : "a text");
		row[i] = (struct p3_option){.name = all[i].name,
			.arg = all[i].arg,
			.help = help[i],
			.at = i * sizeof all[i],
			.parse = take_option,
			.no = no[i]};
	}
	if (options.say == say_nothing && !freopen("/dev/null", "w", stdout))
		bench_die(1, "/dev/null: %s", strerror(errno));
	int status = p3_options_read(&options, all, argc, argv, &first);
	if (!status)
		exit(p3_tool_end(status, 1));
	bench_start(b);
	if (status != P3_OPTIONS_GO)
		bench_leave(status);
}
