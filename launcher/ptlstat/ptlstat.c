/* SPDX-License-Identifier: BSD-3-Clause */
/* ptlstat's command line, and its loop. */
#include "launcher/ptlstat/ptlstat.h"
#include "launcher/yod/frames.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifndef P3_VERSION
#define P3_VERSION "unversioned"
#endif

enum { STATUS_OK, STATUS_NO_JOB, STATUS_USAGE };

enum what { LOOK, WHY, CONF };

struct opt {
	enum what what;
	uint32_t job;       /* 0: not given */
	const char *domain; /* NULL: not given */
	double interval;
	long count; /* 0: not given */
	bool json;
	bool brief;
	bool hosts;
	int look_at; /* socket of an agent, or -1 */
};

__attribute__((format(printf, 1, 2))) static void main_complain(const char *fmt, ...)
{
	va_list args;
	fputs("ptlstat: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
}

/* ---- the command line ---- */

static int main_show_help(void)
{
	puts("usage: ptlstat [options] [why | conf] [JOB]\n"
	     "Looks at a Portals job from outside: running, stopped, hung or with dead "
	     "nodes.\n"
	     "JOB is its number, as \"ptlstat\" alone lists it, or the pid of its yod "
	     "or\n"
	     "mpirun, or of a node.  why and conf without it take your newest job.\n\n"
	     "  ptlstat             list your jobs and domains: program, start, user\n"
	     "  ptlstat JOB         a line for each node: rates, queues, drops; on a "
	     "terminal\n"
	     "                      drawn anew until ^C\n"
	     "  ptlstat why [JOB]   the calls and nodes that each node waits for\n"
	     "  ptlstat conf [JOB]  the settings and resources of each node\n\n"
	     "  -i, --interval SEC  time that rates are measured over; default 1\n"
	     "  -c, --count N       number of pictures; default: no end on a terminal, "
	     "else 1\n"
	     "  -j, --json          for programs: one object a line\n"
	     "  -d, --domain NAME   not a job of yod's but the processes of this "
	     "domain:\n"
	     "                      ranks of mpirun or srun, or started by hand\n"
	     "  -b, --brief         why: conclusions only, no line for each node\n"
	     "  -H, --hosts         all hosts of a job of yod --hosts, from yod's host\n"
	     "  -h, --help          print this help\n"
	     "  --version           print the version\n\n"
	     "status: 0, 1 there is no such job, it cannot be looked at, or its picture\n"
	     "cannot be printed, 2 usage.");
	return STATUS_OK;
}

static int main_take_interval(struct opt *opt, const char *text)
{
	char *end;
	opt->interval = strtod(text, &end);
	if (end != text && !*end && opt->interval >= 0.01 && opt->interval <= 86400)
		return -1;
	main_complain(
		"-i: '%s' is no time; expected seconds, 0.01 to 86400, as in -i 2", text);
	return STATUS_USAGE;
}

static int main_take_count(struct opt *opt, const char *text)
{
	char *end;
	errno = 0;
	opt->count = strtol(text, &end, 10);
	if (end != text && !*end && !errno && opt->count >= 1)
		return -1;
	main_complain("-c: '%s' is no number of pictures; expected 1 or more, as in -c 5",
		text);
	return STATUS_USAGE;
}

static int main_take_word(struct opt *opt, const char *word)
{
	char *end;
	bool bare = opt->what == LOOK && !opt->job;
	if (bare && !strcmp(word, "why")) {
		opt->what = WHY;
		return -1;
	}
	if (bare && !strcmp(word, "conf")) {
		opt->what = CONF;
		return -1;
	}
	errno = 0;
	unsigned long n = strtoul(word, &end, 10);
	if (opt->job || *word < '0' || *word > '9' || *end || errno || !n ||
		n > INT32_MAX) {
		main_complain("'%s': not expected here; expected a job's number or a "
			      "pid, or why, or conf; see ptlstat --help",
			word);
		return STATUS_USAGE;
	}
	opt->job = (uint32_t)n;
	return -1;
}

static int main_take_option(struct opt *opt, int c, const char *word)
{
	switch (c) {
	case 'i':
		return main_take_interval(opt, optarg);
	case 'c':
		return main_take_count(opt, optarg);
	case 'j':
		opt->json = true;
		return -1;
	case 'd':
		opt->domain = optarg;
		return -1;
	case 'b':
		opt->brief = true;
		return -1;
	case 'H':
		opt->hosts = true;
		return -1;
	case 'L':
		opt->look_at = atoi(optarg);
		return -1;
	case 'h':
		return main_show_help();
	case 'v':
		puts("ptlstat (libportals " P3_VERSION ", Portals 3.3)");
		return STATUS_OK;
	case 1:
		return main_take_word(opt, optarg);
	default:
		main_complain(
			"%s: not an option, or its value is missing; see ptlstat --help",
			word);
		return STATUS_USAGE;
	}
}

/* Parse the command line.  Return -1 to go on, else the exit status. */
static int main_parse(int argc, char **argv, struct opt *opt)
{
	static const struct option longs[] = {{"interval", required_argument, NULL, 'i'},
		{"count", required_argument, NULL, 'c'}, {"json", no_argument, NULL, 'j'},
		{"brief", no_argument, NULL, 'b'},
		{"domain", required_argument, NULL, 'd'},
		{"hosts", no_argument, NULL, 'H'},
		{"look-at", required_argument, NULL, 'L'}, /* for agents */
		{"help", no_argument, NULL, 'h'}, {"version", no_argument, NULL, 'v'},
		{NULL, 0, NULL, 0}};
	opterr = 0;
	for (;;) {
		int at = optind;
		int c = getopt_long(argc, argv, "-:i:c:d:jbhH", longs, NULL);
		if (c < 0)
			break;
		int rc = main_take_option(opt, c, argv[at]);
		if (rc >= 0)
			return rc;
	}
	for (; optind < argc; optind++)
		if (main_take_word(opt, argv[optind]) >= 0)
			return STATUS_USAGE;
	return -1;
}

/* ---- jobs ---- */

static int main_say_no_domain(const char *name, int rc)
{
	if (rc == -ESRCH)
		main_complain("--domain: '%s' has no members of this user; ptlstat alone "
			      "lists the domains that have",
			name);
	else if (rc == -EPIPE)
		main_complain("the domain %s has no members any more", name);
	else
		main_complain(
			"the domain %s cannot be looked at: %s", name, strerror(-rc));
	return STATUS_NO_JOB;
}

static int main_say_no_look(uint32_t job, int rc)
{
	switch (-rc) {
	case ESRCH:
		main_complain("%u: no job of this user, nor a pid of one, nor of a "
			      "process with an interface; ptlstat alone lists jobs and "
			      "domains (a job whose yod was killed is gone)",
			job);
		break;
	case EPERM:
		main_complain(
			"%u: another user's job; only that user and root may look at it",
			job);
		break;
	case ETIMEDOUT:
		main_complain("%u: its yod does not answer within %d s: it is starting "
			      "nodes, or was stopped (then kill -CONT it)",
			job, P3_LOOK_MS / 1000);
		break;
	case EPIPE:
		main_complain("%u: the job has ended", job);
		break;
	case EPROTO:
		main_complain("%u: its yod is of another version; use the ptlstat that "
			      "came with it",
			job);
		break;
	default:
		main_complain("%u: cannot look at it: %s", job, strerror(-rc));
	}
	return STATUS_NO_JOB;
}

/* ---- looking ---- */

static void main_pause_for(double seconds)
{
	struct timespec t = {
		(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

static void main_show(const struct opt *opt, const struct ptl_picture *was,
	const struct ptl_picture *is)
{
	if (opt->json)
		ptl_json_job(was, is);
	else
		ptl_top(was, is, isatty(STDOUT_FILENO) && opt->count != 1);
	fflush(stdout);
}

static int main_look_on(const struct opt *opt, struct p3_look *look)
{
	struct ptl_picture was, is;
	int rc = ptl_picture_take(look, &was);
	if (rc)
		return rc;
	/* The first table is printed at once, without rates, which need a second
	 * picture. */
	if (!opt->json && isatty(STDOUT_FILENO) && opt->count != 1)
		main_show(opt, &was, &was);
	for (long n = 0; (!opt->count || n < opt->count) && !ferror(stdout); n++) {
		main_pause_for(opt->interval);
		rc = ptl_picture_take(look, &is);
		if (rc)
			break;
		main_show(opt, &was, &is);
		ptl_picture_drop(&was);
		was = is;
	}
	ptl_picture_drop(&was);
	return rc;
}

static void main_print_conclusion(void *arg, bool conclusion, const char *text)
{
	(void)arg;
	if (conclusion)
		puts(text);
}

static void main_print_line(void *arg, bool conclusion, const char *text)
{
	bool *concludes = arg;
	if (conclusion && !*concludes)
		putchar('\n');
	*concludes = conclusion;
	puts(text);
}

static int main_look_once(const struct opt *opt, struct p3_look *look)
{
	struct ptl_picture p;
	bool concludes = false;
	int rc = ptl_picture_take(look, &p);
	if (rc)
		return rc;
	if (opt->what == CONF)
		ptl_conf(&p);
	else if (opt->json)
		ptl_json_why(&p);
	else
		ptl_why(&p, false, opt->brief ? main_print_conclusion : main_print_line,
			&concludes);
	ptl_picture_drop(&p);
	return 0;
}

static int main_say_no(const struct opt *opt, int rc)
{
	return opt->domain ? main_say_no_domain(opt->domain, rc)
			   : main_say_no_look(opt->job, rc);
}

static int main_look_at(const struct opt *opt, struct p3_look **look_out)
{
	if (opt->look_at >= 0)
		return p3_look_open_socket(opt->look_at, look_out);
	return opt->domain ? p3_look_open_domain(opt->domain, look_out)
			   : p3_look_open(opt->job, look_out);
}

static int main_look(struct opt *opt)
{
	struct p3_look *look;
	int rc = main_look_at(opt, &look);
	if (rc)
		return main_say_no(opt, rc);
	if (!opt->count && !isatty(STDOUT_FILENO))
		opt->count = 1;
	rc = opt->what == LOOK ? main_look_on(opt, look) : main_look_once(opt, look);
	p3_look_close(look);
	return rc ? main_say_no(opt, rc) : STATUS_OK;
}

static int main_say_no_hosts(uint32_t job, int rc)
{
	if (rc == -ESRCH)
		main_complain("--hosts: %u: no job of this user that yod --hosts runs "
			      "from this host; expected the pid of such a yod (ranks of "
			      "mpirun: ptlstat on each host)",
			job);
	else
		return main_say_no_look(job, rc);
	return STATUS_NO_JOB;
}

/* Show all hosts of a job. */
static int main_look_at_hosts(const struct opt *opt)
{
	int rc = 0, bits = (opt->what == WHY           ? P3_ASK_WHY
				   : opt->what == CONF ? P3_ASK_CONF
						       : 0) |
			   (opt->json ? P3_ASK_JSON : 0) |
			   (opt->brief ? P3_ASK_BRIEF : 0);
	long count = opt->what == LOOK && opt->count ? opt->count : 1;
	if (!opt->job) {
		main_complain("--hosts: no job is named; expected the pid of its yod, as "
			      "in ptlstat --hosts 4711");
		return STATUS_USAGE;
	}
	if (opt->interval * 1000 > P3_QUERY_RATE_MS) {
		main_complain("-i: %g s is too long for --hosts; expected %d at most",
			opt->interval, P3_QUERY_RATE_MS / 1000);
		return STATUS_USAGE;
	}
	for (long n = 0; n < count && !rc; n++)
		rc = ptl_hosts(opt->job, bits, opt->interval);
	return rc ? main_say_no_hosts(opt->job, rc) : STATUS_OK;
}

/* Choose the user's newest job, and name it if there are others. */
static uint32_t main_choose_job(const struct opt *opt)
{
	uint32_t jobs, jid = ptl_newest_job(&jobs);
	if (jobs > 1 && !opt->json)
		printf("job %u, the newest of %u\n", jid, jobs);
	return jid;
}

static int main_perform(struct opt opt)
{
	static char domain[P3_DOMAIN_NAMES + 1];
	bool named = opt.job || opt.domain || opt.look_at >= 0;
	if (opt.hosts)
		return main_look_at_hosts(&opt);
	if (!named && opt.what == LOOK) {
		(opt.json ? ptl_json_jobs : ptl_list_jobs)();
		return STATUS_OK;
	}
	if (!named)
		opt.job = main_choose_job(&opt);
	if (!opt.job && !named && ptl_only_domain(domain))
		opt.domain = domain;
	if (named || opt.job || opt.domain)
		return main_look(&opt);
	if (opt.what == CONF) {
		ptl_conf(NULL);
		return STATUS_OK;
	}
	main_complain("why: this user has no job, and not just one domain; expected a "
		      "pid, or --domain NAME, of those that ptlstat alone lists");
	return STATUS_USAGE;
}

static int main_printed(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	main_complain("cannot write to standard output; see df, and where it leads");
	return status ? status : STATUS_NO_JOB;
}

int main(int argc, char **argv)
{
	struct opt opt = {.interval = 1, .look_at = -1};
	int rc = main_parse(argc, argv, &opt);
	return main_printed(rc >= 0 ? rc : main_perform(opt));
}
