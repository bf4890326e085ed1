/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * yod - starts a Portals job of N nodes on this machine or on others, and ends it
 *
 * yod.h explains how a job runs and how no process is left behind, rdv.h the exchange
 * between yod and its nodes, remote.h a job on several hosts.  yod makes only the files
 * of --output-dir and --trace.
 */
#include "launcher/yod/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Open missing standard descriptors: else a socket of yod could become a node's stdout.
 * Output to a missing stdout fails nevertheless: it would be lost without a word. */
static int main_open_missing_standard_fds(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		int how = fd == STDOUT_FILENO ? O_RDONLY : O_RDWR;
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", how) < 0)
			return -errno;
	}
	return 0;
}

static int main_say_cannot(const char *what, int rc, const char *remedy)
{
	p3_say("%s: %s; %s", what, strerror(-rc), remedy);
	return P3_STATUS_YOD;
}

/* Place n nodes on this host's CPUs. */
static int main_place_nodes(
	const struct p3_opt *opt, uint32_t n, struct p3_place *place_out)
{
	struct p3_place_machine here;
	*place_out = (struct p3_place){.cpus = p3_cpus_usable()};
	if (opt->place.bind == P3_BIND_NONE)
		return 0;
	int rc = p3_place_here(&here);
	if (rc)
		return main_say_cannot("cannot read the CPUs that yod may use", rc,
			"do without --bind and -VN");
	return p3_place_make(&here, &opt->place, n, place_out);
}

/* Choose the folder of the library that announces its atomics (yod.h) for each
 * program that runs under valgrind, or for all programs with --valgrind=on.  Return
 * false, after an error line, if that option is set and the library does not exist. */
static bool main_choose_libraries(struct p3_opt *opt)
{
	const char *dir = NULL;
	bool looked = false;
	for (uint32_t i = 0; i < opt->prog_n; i++) {
		bool watched = opt->valgrind == P3_VALGRIND_ON ||
			       (opt->valgrind == P3_VALGRIND_AUTO &&
				       p3_valgrind_is_in(opt->prog[i].argv));
		if (!watched)
			continue;
		if (!looked)
			dir = p3_valgrind_folder();
		looked = true;
		opt->prog[i].lib_dir = dir;
	}
	return dir || opt->valgrind != P3_VALGRIND_ON;
}

/* Check what n nodes need on this host.  Return P3_OPT_RUN, or the exit status. */
static int main_check(const struct p3_opt *opt, uint32_t n, struct p3_place *place_out)
{
	for (uint32_t i = 0; i < opt->prog_n; i++) {
		int rc = p3_prog_check(&opt->prog[i]);
		if (rc)
			return rc;
	}
	if (main_place_nodes(opt, n, place_out))
		return P3_STATUS_YOD;
	return opt->shared_heap && !p3_preload_is_there() ? P3_STATUS_YOD : P3_OPT_RUN;
}

/* Return the exit status of a run that only printed (--help, --plan), or P3_STATUS_YOD if
 * the output is lost. */
static int main_printed(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	p3_say("cannot write to standard output; see df, and where it leads");
	return status ? status : P3_STATUS_YOD;
}

/* ---- an agent ---- */

static int main_say_no_agent(int rc)
{
	return main_say_cannot(
		"cannot start the agent", rc, "see ulimit -u and ulimit -n");
}

/* Wait until the job is to start.  Return P3_OPT_RUN, or the exit status. */
static int main_prepare_agent(
	struct p3_agent *agent, struct p3_opt *opt, struct p3_place *place_out)
{
	const struct p3_host *host = p3_agent_host(agent);
	opt->domain = p3_agent_domain(agent);
	int rc = main_check(opt, host->size, place_out);
	int moved =
		rc == P3_OPT_RUN && place_out->bound
			? p3_place_shift(place_out, host->first, host->size, opt->size)
			: 0;
	if (moved)
		rc = main_say_no_agent(moved);
	if (rc == P3_OPT_RUN && (!p3_plan_check_fds(opt, host->size, true) ||
					!main_choose_libraries(opt)))
		rc = P3_STATUS_YOD;
	if (rc != P3_OPT_RUN)
		p3_agent_refuse(agent, rc);
	else if (!p3_agent_await_go(agent))
		rc = P3_STATUS_YOD;
	return rc;
}

/* Run the part of a job that is on this host, for the yod that has started this one. */
static int main_be_agent(void)
{
	static struct p3_opt opt;
	static struct p3_place place;
	struct p3_guard guard;
	int rc;
	sigset_t none; /* signals are as a remote shell has left them */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	const struct p3_signals *signals = p3_signals_take();
	struct p3_agent *agent = p3_agent_connect(&rc);
	if (!agent)
		return rc;
	opt = p3_agent_spec(agent)->opt;
	rc = main_prepare_agent(agent, &opt, &place);
	if (rc != P3_OPT_RUN)
		return rc;
	struct p3_guard_duty duty = {.last = p3_agent_clean, .arg = agent};
	rc = p3_guard_split(&duty, &guard);
	if (rc) {
		rc = main_say_no_agent(rc);
		p3_agent_refuse(agent, rc);
		return rc;
	}
	return p3_run_job(
		&opt, &place, p3_agent_spec(agent)->jid, &guard, signals, agent);
}

/* ---- yod ---- */

/* Return yod's answer to the command line: P3_OPT_RUN, or the exit status. */
static int main_prepare(struct p3_opt *opt, struct p3_place *place_out)
{
	if (p3_settings_check(opt))
		return P3_OPT_USAGE;
	int rc = opt->hosts.n ? P3_OPT_RUN : main_check(opt, opt->size, place_out);
	if (rc != P3_OPT_RUN)
		return rc;
	if (opt->plan)
		return main_printed(opt->hosts.n ? p3_plan_print_hosts(opt)
						 : p3_plan_print(opt, place_out));
	if (!opt->hosts.n && !p3_plan_check_fds(opt, opt->size, false))
		return P3_STATUS_YOD;
	opt->output_dir_fd =
		opt->output_dir ? p3_outdir_open(opt->output_dir, opt->size) : -1;
	if ((opt->output_dir && opt->output_dir_fd < 0) ||
		(!opt->hosts.n && !main_choose_libraries(opt)))
		return P3_STATUS_YOD;
	return P3_OPT_RUN;
}

int main(int argc, char **argv)
{
	static struct p3_opt opt;
	static struct p3_place place;
	struct p3_guard guard;
	struct p3_guard_duty duty = {.grace_ms = 0};
	int rc = main_open_missing_standard_fds();
	if (rc)
		return main_say_cannot("cannot open /dev/null", rc,
			"see ulimit -n, and ls -l /dev/null");
	if (argc == 2 && !strcmp(argv[1], P3_AGENT_OPTION))
		return main_be_agent();
	rc = p3_opt_parse(argc, argv, &opt);
	if (rc != P3_OPT_RUN)
		return main_printed(rc);
	rc = main_prepare(&opt, &place);
	if (rc != P3_OPT_RUN)
		return rc;

	/* the pid that users see as yod's; never 0 or ~0 */
	uint32_t jid = (uint32_t)getpid();
	const struct p3_signals *signals = p3_signals_take();
	if (opt.hosts.n)
		duty.grace_ms = P3_AGENTS_GRACE_MS;
	rc = p3_guard_split(&duty, &guard);
	if (rc)
		return main_say_cannot(
			"cannot start the launcher", rc, "see ulimit -u and ulimit -n");
	if (opt.hosts.n)
		return p3_agents_run(&opt, jid, &guard);
	return p3_run_job(&opt, &place, jid, &guard, signals, NULL);
}
