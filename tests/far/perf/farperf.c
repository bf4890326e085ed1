/* SPDX-License-Identifier: BSD-3-Clause */
/* Options, the two processes and the report. */
#include "farperf.h"

#include "launcher/rdv/rdv.h"
#include "nic/nic.h"
#include "shm/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST_ROUNDS 1000u

static const struct {
	const char *name, *unit;
	const char *test; /* of its lines, and bytes */
	unsigned bytes;
	uint64_t count; /* round trips, windows or messages of a block */
	double per;     /* figure: this many per time, or half a time if 0 */
} rows[FAR_ROWS] = {
	[FAR_PING] = {"8 B half round trip", "us", "latency", 8, 1000, 0},
	[FAR_SLEEPY] = {"the same, TCP sleeps", "us", "asleep", 8, 1000, 0},
	[FAR_RATE] = {"8 B rate, window 64", "M/s", "rate", 8, 100, FAR_WINDOW},
	[FAR_PUT] = {"1 MiB put", "MB/s", "put", FAR_LONG, 50, FAR_LONG},
	[FAR_GET] = {"1 MiB get", "MB/s", "get", FAR_LONG, 50, FAR_LONG},
	[FAR_BYPASS] = {"8 B get, target outside", "us", "outside", 8, 200, 0},
	[FAR_PUT_64K] = {"64 KiB put", "MB/s", "put", 1 << 16, 500, 1 << 16},
	[FAR_GET_64K] = {"64 KiB get", "MB/s", "get", 1 << 16, 500, 1 << 16},
};

static struct {
	unsigned rounds, idle_ms;
	const char *net[2];
	bool quick, lines;
	uint32_t skip; /* a bit for each row */
} opt = {.rounds = 15, .idle_ms = 5000};

static double figures[2][FAR_ROWS][MOST_ROUNDS];

void far_die(const char *what, const char *why)
{
	fprintf(stderr, "farperf: %s: %s\n", what, why);
	exit(1);
}

uint64_t far_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void far_meet(struct far_end *e)
{
	uint32_t mine = p3_add32(&e->shared->met, 1) / 2 * 2 + 2;
	while ((int32_t)(p3_acquire(&e->shared->met) - mine) < 0)
		sched_yield();
}

/* ---- one process ---- */

static double figure_of(enum far_row row, uint64_t count, uint64_t ns)
{
	if (!rows[row].per)
		return (double)ns / 1e3 / 2 / (double)count;
	return rows[row].per * (double)count / ((double)ns / 1e3);
}

static double block(struct far_end *e, enum far_row row, bool portals)
{
	uint64_t count = opt.quick ? rows[row].count / 10 : rows[row].count;
	far_meet(e);
	uint64_t from = far_now();
	if (portals)
		far_portals_run(e, row, count);
	else
		far_tcp_run(e, row, count);
	uint64_t ns = far_now() - from;
	far_meet(e);
	return figure_of(row, count, ns);
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(const double *of, unsigned n)
{
	double sorted[MOST_ROUNDS];
	memcpy(sorted, of, n * sizeof *sorted);
	qsort(sorted, n, sizeof *sorted, ascending);
	return sorted[n / 2];
}

/* Print each figure: who, test, bytes, value. */
static void print_lines(enum far_row row)
{
	static const char *who[] = {"tcp", "portals"};
	for (unsigned i = 0; i < opt.rounds; i++)
		for (int portals = 0; portals < 2; portals++)
			printf("%s\t%s\t%u\t%.6g\n", who[portals], rows[row].test,
				rows[row].bytes, figures[portals][row][i]);
}

static void report(enum far_row row)
{
	double ratio[MOST_ROUNDS];
	const double *tcp = figures[0][row], *far = figures[1][row];
	for (unsigned i = 0; i < opt.rounds; i++)
		ratio[i] = far[i] / tcp[i];
	printf("%-26s TCP %9.3f   far %9.3f %-5s ratio %.3f\n", rows[row].name,
		median(tcp, opt.rounds), median(far, opt.rounds), rows[row].unit,
		median(ratio, opt.rounds));
}

static void run_row(struct far_end *e, enum far_row row)
{
	uint64_t out = far_portals_counter(P3_C_FAR_OUT);
	(void)block(e, row, true); /* connects, and warms */
	for (unsigned i = 0; i < opt.rounds; i++)
		for (int portals = 0; portals < 2; portals++)
			figures[portals][row][i] = block(e, row, portals);
	if (e->rank == 0 && opt.lines)
		print_lines(row);
	else if (e->rank == 0)
		report(row);
	double n = (double)((opt.rounds + 1) *
			    (opt.quick ? rows[row].count / 10 : rows[row].count));
	printf("    rank %u: %.2f frames out each\n", e->rank,
		(double)(far_portals_counter(P3_C_FAR_OUT) - out) / n);
	fflush(stdout);
}

static uint64_t cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void run_idle(struct far_end *e, bool waiting)
{
	far_meet(e);
	far_portals_idle(waiting, 300); /* until all threads sleep */
	uint64_t from = cpu_ns(), since = far_now();
	far_portals_idle(waiting, opt.idle_ms);
	double share = (double)(cpu_ns() - from) / (double)(far_now() - since);
	printf("idle, %s: rank %u uses %.3f %% of a CPU\n",
		waiting ? "in PtlEQPoll" : "outside of the library", e->rank,
		100 * share);
	fflush(stdout);
	far_meet(e);
}

static long rss_kib(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	if (!f || fscanf(f, "%*d %ld", &pages) != 1)
		far_die("/proc/self/statm", "cannot be read");
	fclose(f);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void enter_net(const char *net)
{
	char path[256];
	snprintf(path, sizeof path, "/run/netns/%s", net);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		far_die(path, strerror(errno));
	close(fd);
}

static void stay_on(unsigned cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set))
		far_die("sched_setaffinity", strerror(errno));
}

static int live(struct far_end *e, int sock)
{
	if (opt.net[e->rank])
		enter_net(opt.net[e->rank]);
	far_tcp_open(e);
	long before = rss_kib();
	far_portals_open(e, sock);
	far_meet(e);
	printf("rank %u: %ld KiB resident, %ld before PtlNIInit\n", e->rank, rss_kib(),
		before);
	stay_on(e->rank % (unsigned)sysconf(_SC_NPROCESSORS_ONLN));
	for (enum far_row row = 0; row < FAR_ROWS; row++)
		if (!(opt.skip & 1u << row))
			run_row(e, row);
	printf("rank %u: %ld KiB resident after all\n", e->rank, rss_kib());
	run_idle(e, true);
	run_idle(e, false);
	far_portals_close();
	return 0;
}

/* ---- the launcher's side ---- */

static void say(const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	fputs("farperf: ", stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
}

static void start(struct p3_rdv *rdv, struct far_end *e)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		far_die("socketpair", strerror(errno));
	fflush(stdout);
	if (p3_rdv_add(rdv, e->rank, pair[0], 0)) /* before the process speaks */
		far_die("p3_rdv_add", strerror(errno));
	e->pid = fork();
	if (e->pid == 0)
		exit(live(e, pair[1]));
	close(pair[1]);
	if (e->pid < 0)
		far_die("fork", strerror(errno));
}

/* Return true if a process has ended now.  After a failure end the other one, which would
 * wait for it. */
static bool has_ended(struct far_end ends[2], unsigned i, int *worst)
{
	int status;
	if (!ends[i].pid || waitpid(ends[i].pid, &status, WNOHANG) <= 0)
		return false;
	ends[i].pid = 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return true;
	*worst = 1;
	if (ends[1 - i].pid)
		(void)kill(ends[1 - i].pid, SIGKILL);
	return true;
}

/* Serve both processes until they have ended.  Return the worse status. */
static int serve(struct p3_loop *loop, struct far_end ends[2])
{
	int worst = 0;
	for (unsigned ended = 0; ended < 2;) {
		p3_loop_run(loop, p3_now_ms() + 20);
		for (unsigned i = 0; i < 2; i++)
			ended += has_ended(ends, i, &worst);
	}
	return worst;
}

static int run(struct far_end ends[2])
{
	struct p3_loop loop;
	struct p3_rdv_conf conf = {.loop = &loop,
		.size = 2,
		.layout = P3_LAYOUT_WORD,
		.nid_base = 10,
		.jid = 78,
		.cpus = 2,
		.say = say};
	struct p3_rdv *rdv = p3_loop_open(&loop) ? NULL : p3_rdv_create(&conf);
	if (!rdv)
		far_die("p3_rdv_create", strerror(errno));
	for (unsigned i = 0; i < 2; i++)
		start(rdv, &ends[i]);
	int worst = serve(&loop, ends);
	p3_rdv_destroy(rdv);
	p3_loop_close(&loop);
	return worst;
}

static void usage(void)
{
	fprintf(stderr,
		"usage: farperf [--quick] [--rounds N] [--idle MS] [--only ROW,...] "
		"[--lines]\n"
		"               [--provider P] [--address A,B] [--net "
		"NAMESPACE,NAMESPACE]\n"
		"rows: 0 to %d\n",
		FAR_ROWS - 1);
	exit(2);
}

/* Divide a text at its comma; without one both halves are the text. */
static void halve(char *text, const char *out[2])
{
	char *comma = strchr(text, ',');
	out[0] = out[1] = text;
	if (comma) {
		*comma = '\0';
		out[1] = comma + 1;
	}
}

static void only(const char *list)
{
	opt.skip = ~0u;
	for (; *list; list += *list != '\0') {
		opt.skip &= ~(1u << strtoul(list, (char **)&list, 10) % 32);
		if (*list && *list != ',')
			usage();
	}
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {{"quick", 0, 0, 'q'}, {"rounds", 1, 0, 'r'},
		{"idle", 1, 0, 'i'}, {"only", 1, 0, 'o'}, {"provider", 1, 0, 'p'},
		{"address", 1, 0, 'a'}, {"net", 1, 0, 'n'}, {"lines", 0, 0, 'l'},
		{0, 0, 0, 0}};
	struct far_end ends[2] = {{.rank = 0}, {.rank = 1}};
	const char *address[2] = {"127.0.0.1", "127.0.0.1"}, *provider = "stream";
	int c;
	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == 'q')
			opt.quick = true, opt.rounds = 3, opt.idle_ms = 200;
		else if (c == 'r')
			opt.rounds = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'l')
			opt.lines = true;
		else if (c == 'i')
			opt.idle_ms = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'o')
			only(optarg);
		else if (c == 'p')
			provider = optarg;
		else if (c == 'a')
			halve(optarg, address);
		else if (c == 'n')
			halve(optarg, opt.net);
		else
			usage();
	}
	if (optind < argc || !opt.rounds || opt.rounds > MOST_ROUNDS)
		usage();
	struct far_shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		far_die("mmap", strerror(errno));
	for (unsigned i = 0; i < 2; i++)
		ends[i] = (struct far_end){
			i, {address[0], address[1]}, provider, shared, 0};
	return run(ends);
}
