/* SPDX-License-Identifier: BSD-3-Clause */
/* ptlstat's command line, and its loop. */
#include "launcher/ptlstat/ptlstat.h"
#include "launcher/tools/options.h"
#include "launcher/tools/rows.h"
#include "launcher/yod/frames.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { STATUS_OK, STATUS_NO_JOB };

enum what { LOOK, WHY, CONF };

struct opt {
	enum what what;
	uint32_t job;       /* 0: not given */
	const char *domain; /* NULL: not given */
	double interval;
	uint64_t count; /* 0: not given */
	bool json;
	bool brief;
	bool hosts;
	int look_at; /* socket of an agent, or -1 */
};

/* ---- the command line ---- */

static int main_take_interval(void *to, const char *name, const char *text)
{
	struct opt *opt = to;
	if (p3_option_real(text, 0.01, 86400, &opt->interval))
		return P3_OPTIONS_GO;
	p3_tool_say("%s: '%s' is no time; expected seconds, 0.01 to 86400, as in -i 2",
		name, text);
	return P3_OPTIONS_USAGE;
}

static int main_take_count(void *to, const char *name, const char *text)
{
	struct opt *opt = to;
	if (p3_option_number(text, 1, INT64_MAX, &opt->count))
		return P3_OPTIONS_GO;
	p3_tool_say("%s: '%s' is no number of pictures; expected 1 or more, as in -c 5",
		name, text);
	return P3_OPTIONS_USAGE;
}

static int main_take_socket(void *to, const char *name, const char *text)
{
	(void)name;
	((struct opt *)to)->look_at = atoi(text);
	return P3_OPTIONS_GO;
}

#define AT(member) .at = offsetof(struct opt, member)
static const struct p3_option main_rows[] = {
	{"interval", 'i', "SEC", "time that rates are measured over; default 1",
		.set = main_take_interval},
	{"count", 'c', "N", "number of pictures; default: 1, on a terminal no end",
		.set = main_take_count},
	{"json", 'j', NULL, "for programs: one object a line", AT(json)},
	{"domain", 'd', "NAME",
		"not a job of yod's but the processes of this domain:\n"
		"ranks of mpirun or srun, or started by hand",
		AT(domain)},
	{"brief", 'b', NULL, "why: conclusions only, no line for each node", AT(brief)},
	{"hosts", 'H', NULL, "all hosts of a job of yod --hosts, from yod's host",
		AT(hosts)},
	{"look-at", 0, "SOCKET", NULL, .set = main_take_socket}, /* for agents */
};

static const struct p3_options main_options = {.program = "ptlstat",
	.usage =
		"usage: ptlstat [options] [why | conf] [JOB]\n"
		"Looks at a Portals job from outside: running, stopped, hung or with "
		"dead nodes.\n"
		"JOB is its number, as \"ptlstat\" alone lists it, or the pid of its yod "
		"or\n"
		"mpirun, or of a node.  why and conf without it take your newest "
		"job.\n\n"
		"  ptlstat             list your jobs and domains: program, start, "
		"user\n"
		"  ptlstat JOB         a line for each node: rates, queues, drops; on a "
		"terminal\n"
		"                      drawn anew until ^C\n"
		"  ptlstat why [JOB]   the calls and nodes that each node waits for\n"
		"  ptlstat conf [JOB]  the settings and resources of each node\n",
	.after = "status: 0, 1 there is no such job, it cannot be looked at, or its "
		 "picture\n"
		 "cannot be printed, 2 usage.",
	.row = main_rows,
	.n = sizeof main_rows / sizeof *main_rows,
	.say = p3_tool_say};

static int main_take_word(struct opt *opt, const char *word)
{
	uint64_t n;
	bool bare = opt->what == LOOK && !opt->job;
	if (bare && !strcmp(word, "why"))
		opt->what = WHY;
	else if (bare && !strcmp(word, "conf"))
		opt->what = CONF;
	else if (!opt->job && p3_option_number(word, 1, INT32_MAX, &n))
		opt->job = (uint32_t)n;
	else {
		p3_tool_say("'%s': not expected here; expected a job's number or a pid, "
			    "or why, or conf; see ptlstat --help",
			word);
		return P3_OPTIONS_USAGE;
	}
	return P3_OPTIONS_GO;
}

/* ---- jobs ---- */

static int main_say_no_domain(const char *name, int rc)
{
	if (rc == -ESRCH)
		p3_tool_say("--domain: '%s' has no members of this user; ptlstat alone "
			    "lists the domains that have",
			name);
	else if (rc == -EPIPE)
		p3_tool_say("the domain %s has no members any more", name);
	else
		p3_tool_say("the domain %s cannot be looked at: %s", name, strerror(-rc));
	return STATUS_NO_JOB;
}

static int main_say_no_look(uint32_t job, int rc)
{
	switch (-rc) {
	case ESRCH:
		p3_tool_say("%u: no job of this user, nor a pid of one, nor of a "
			    "process with an interface; ptlstat alone lists jobs and "
			    "domains (a job whose yod was killed is gone)",
			job);
		break;
	case EPERM:
		p3_tool_say(
			"%u: another user's job; only that user and root may look at it",
			job);
		break;
	case ETIMEDOUT:
		p3_tool_say("%u: its yod does not answer within %d s: it is starting "
			    "nodes, or was stopped (then kill -CONT it)",
			job, P3_LOOK_MS / 1000);
		break;
	case EPIPE:
		p3_tool_say("%u: the job has ended", job);
		break;
	case EPROTO:
		p3_tool_say("%u: its yod is of another version; use the ptlstat that "
			    "came with it",
			job);
		break;
	default:
		p3_tool_say("%u: cannot look at it: %s", job, strerror(-rc));
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
	json_t *job = ptl_rows_job(was, is);
	if (opt->json)
		p3_rows_json(job);
	else
		ptl_table_job(job, isatty(STDOUT_FILENO) && opt->count != 1);
	json_decref(job);
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
	for (uint64_t n = 0; (!opt->count || n < opt->count) && !ferror(stdout); n++) {
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

static void main_print_conf(const struct opt *opt, json_t *rows)
{
	(opt->json ? p3_rows_json : ptl_table_conf)(rows);
	json_decref(rows);
}

static int main_look_once(const struct opt *opt, struct p3_look *look)
{
	struct ptl_picture p;
	int rc = ptl_picture_take(look, &p);
	if (rc)
		return rc;
	if (opt->what == CONF) {
		main_print_conf(opt, ptl_rows_conf(&p));
	} else {
		json_t *job = ptl_rows_why(&p, opt->json);
		if (opt->json)
			p3_rows_json(job);
		else
			ptl_table_why(job, opt->brief);
		json_decref(job);
	}
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
		p3_tool_say("--hosts: %u: no job of this user that yod --hosts runs "
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
	uint64_t count = opt->what == LOOK && opt->count ? opt->count : 1;
	if (!opt->job) {
		p3_tool_say("--hosts: no job is named; expected the pid of its yod, as "
			    "in ptlstat --hosts 4711");
		return P3_OPTIONS_USAGE;
	}
	if (opt->interval * 1000 > P3_QUERY_RATE_MS) {
		p3_tool_say("-i: %g s is too long for --hosts; expected %d at most",
			opt->interval, P3_QUERY_RATE_MS / 1000);
		return P3_OPTIONS_USAGE;
	}
	for (uint64_t n = 0; n < count && !rc; n++)
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
		json_t *lists = ptl_rows_jobs();
		(opt.json ? p3_rows_json : ptl_table_jobs)(lists);
		json_decref(lists);
		return STATUS_OK;
	}
	if (!named)
		opt.job = main_choose_job(&opt);
	if (!opt.job && !named && ptl_only_domain(domain))
		opt.domain = domain;
	if (named || opt.job || opt.domain)
		return main_look(&opt);
	if (opt.what == CONF) {
		main_print_conf(&opt, ptl_rows_conf_here());
		return STATUS_OK;
	}
	p3_tool_say("why: this user has no job, and not just one domain; expected a "
		    "pid, or --domain NAME, of those that ptlstat alone lists");
	return P3_OPTIONS_USAGE;
}

int main(int argc, char **argv)
{
	struct opt opt = {.interval = 1, .look_at = -1};
	int at, rc = p3_options_read(&main_options, &opt, argc, argv, &at);
	for (; rc == P3_OPTIONS_GO && at < argc; at++)
		rc = main_take_word(&opt, argv[at]);
	return p3_tool_end(rc == P3_OPTIONS_GO ? main_perform(opt) : rc, STATUS_NO_JOB);
}
