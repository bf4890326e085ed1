/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * yod - starts a Portals job of N nodes on this machine or on others, and ends it
 *
 * yod.h explains how a job runs and how no process is left behind, rdv.h the exchange
 * between yod and its nodes, remote.h a job on several hosts.  yod makes only the files
 * of --output-dir and --trace.
 */
#include "launcher/yod/remote.h"
#include "launcher/tools/options.h"
#include "shm/heap.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int main_say_cannot(const char *what, int rc, const char *remedy)
{
	p3_say("%s: %s; %s", what, strerror(-rc), remedy);
	return P3_STATUS_YOD;
}

/*
 * valgrind - the library for nodes that run under valgrind
 *
 * Helgrind and drd take C11 atomics for races; a second libportals, in a folder beside
 * the usual one (cmake/variants.cmake), announces them.  Both have the same layout: one
 * job may use both.  yod puts that folder in front of LD_LIBRARY_PATH, which comes
 * before RUNPATH and /etc/ld.so.conf.  This does not work for a program with an RPATH
 * (--disable-new-dtags) or one that is linked with libportals.a; the library then says
 * by itself that it is the wrong one (lib/job/job.c).
 */

#define VALGRIND         "valgrind"
#define VALGRIND_BETWEEN " \t\n;&|(){}`'\"<>"

/* Return true if valgrind is the program, or a word in a wrapper's arguments: env
 * valgrind ..., sh -c '... /usr/bin/valgrind ...'. */
static bool valgrind_is_in(char *const *argv)
{
	const size_t n = strlen(VALGRIND);
	for (; *argv; argv++)
		for (const char *text = *argv; *text;) {
			size_t len = strcspn(text, VALGRIND_BETWEEN);
			/* a word that is "valgrind", or a path that ends so */
			if (len >= n && !memcmp(text + len - n, VALGRIND, n) &&
				(len == n || text[len - n - 1] == '/'))
				return true;
			text += len;
			text += strspn(text, VALGRIND_BETWEEN);
		}
	return false;
}

/* Print a line that names the folder, and return its path in malloc()ed memory; or
 * return NULL after an error line. */
static const char *valgrind_folder(void)
{
	char *dir = p3_own_path(P3_VALGRIND_DIR), *file = NULL;
	char *shorter = dir ? realpath(dir, NULL) : NULL;
	if (shorter) {
		free(dir);
		dir = shorter;
	}
	bool there =
		dir && asprintf(&file, "%s/" P3_SONAME, dir) >= 0 && !access(file, R_OK);
	if (there)
		p3_say("valgrind: nodes use %s, which tells it about atomics "
		       "(--valgrind off: they do not)",
			file);
	else
		p3_say("valgrind: no %s in %s; expected the one that tells helgrind "
		       "about atomics: it is built where valgrind's headers are "
		       "installed",
			P3_SONAME, dir ? dir : "lib/portals/valgrind");
	free(file);
	if (!there)
		free(dir);
	return there ? dir : NULL;
}

/* Choose the folder of the library that announces its atomics for each
 * program that runs under valgrind, or for all programs with --valgrind=on.  Return
 * false, after an error line, if that option is set and the library does not exist. */
static bool main_choose_libraries(struct p3_opt *opt)
{
	const char *dir = NULL;
	bool looked = false, always = !strcmp(opt->valgrind, "on");
	for (uint32_t i = 0; i < opt->prog_n && strcmp(opt->valgrind, "off"); i++) {
		if (!always && !valgrind_is_in(opt->prog[i].argv))
			continue;
		if (!looked)
			dir = valgrind_folder();
		looked = true;
		opt->prog[i].lib_dir = dir;
	}
	return dir || !always;
}

/* Return true if the loader finds the allocator that --shared-heap preloads into nodes;
 * else print a line. */
static bool main_finds_preload(void)
{
	if (dlopen(P3_HEAP_JEMALLOC, RTLD_LAZY | RTLD_LOCAL))
		return true;
	const char *why = dlerror();
	/* The loader found the library but has no thread storage left for it: programs
	 * that start with the library have it. */
	if (strstr(why, "static TLS"))
		return true;
	p3_say("--shared-heap: %s; install the package libjemalloc2", why);
	return false;
}

/* Check what n nodes, from rank first on, need on this host.  Return P3_OPT_RUN, or the
 * exit status. */
static int main_check(
	const struct p3_opt *opt, uint32_t first, uint32_t n, struct p3_place *place_out)
{
	struct p3_place_machine here = {.root = "", .quota = p3_cpus_quota()};
	int rc;
	for (uint32_t i = 0; i < opt->prog_n; i++)
		if ((rc = p3_prog_check(&opt->prog[i])))
			return rc;
	*place_out = (struct p3_place){.cpus = p3_cpus_usable()};
	if (opt->place.bind != P3_BIND_NONE) {
		rc = p3_cpuset_read(0, &here.mask);
		if (rc)
			return main_say_cannot("cannot read the CPUs that yod may use",
				rc, "do without --bind and -VN");
		if (p3_place_make(&here, &opt->place, first, n, place_out))
			return P3_STATUS_YOD;
	}
	return opt->shared_heap && !main_finds_preload() ? P3_STATUS_YOD : P3_OPT_RUN;
}

/* ---- an agent ---- */

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
	p3_signals_take();
	struct p3_agent *agent = p3_agent_connect(&rc);
	if (!agent)
		return rc;
	const struct p3_host *host = agent->host;
	opt = agent->spec.opt;
	opt.domain = agent->domain;
	rc = main_check(&opt, host->first, host->size, &place);
	if (rc == P3_OPT_RUN && (!p3_plan_check_fds(&opt, host->size, true) ||
					!main_choose_libraries(&opt)))
		rc = P3_STATUS_YOD;
	if (rc != P3_OPT_RUN)
		p3_agent_refuse(agent, rc);
	else if (!p3_agent_await_go(agent))
		rc = P3_STATUS_YOD;
	if (rc != P3_OPT_RUN)
		return rc;
	rc = p3_guard_split(0, agent, &guard);
	if (rc) {
		rc = main_say_cannot(
			"cannot start the agent", rc, "see ulimit -u and ulimit -n");
		p3_agent_refuse(agent, rc);
		return rc;
	}
	return p3_run_job(&opt, &place, agent->spec.jid, &guard, agent);
}

/* ---- yod ---- */

/* Return yod's answer to the command line: P3_OPT_RUN, or the exit status. */
static int main_prepare(struct p3_opt *opt, struct p3_place *place_out)
{
	if (p3_settings_check(opt))
		return P3_OPT_USAGE;
	int rc = opt->hosts.n ? P3_OPT_RUN : main_check(opt, 0, opt->size, place_out);
	if (rc != P3_OPT_RUN)
		return rc;
	if (opt->plan)
		return p3_tool_end(opt->hosts.n ? p3_plan_print_hosts(opt)
						: p3_plan_print(opt, place_out),
			P3_STATUS_YOD);
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
	int rc;
	/* Open missing standard descriptors: else a socket of yod could become a
	 * node's stdout.  Output to a missing stdout fails nevertheless: it would be
	 * lost without a word. */
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		int how = fd == STDOUT_FILENO ? O_RDONLY : O_RDWR;
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", how) < 0)
			return main_say_cannot("cannot open /dev/null", -errno,
				"see ulimit -n, and ls -l /dev/null");
	}
	if (argc == 2 && !strcmp(argv[1], P3_AGENT_OPTION))
		return main_be_agent();
	rc = p3_opt_parse(argc, argv, &opt);
	if (rc != P3_OPT_RUN)
		return p3_tool_end(rc, P3_STATUS_YOD);
	rc = main_prepare(&opt, &place);
	if (rc != P3_OPT_RUN)
		return rc;

	/* the pid that users see as yod's; never 0 or ~0 */
	uint32_t jid = (uint32_t)getpid();
	p3_signals_take();
	rc = p3_guard_split(opt.hosts.n ? P3_AGENTS_GRACE_MS : 0, NULL, &guard);
	if (rc)
		return main_say_cannot(
			"cannot start the launcher", rc, "see ulimit -u and ulimit -n");
	if (opt.hosts.n)
		return p3_agents_run(&opt, jid, &guard);
	return p3_run_job(&opt, &place, jid, &guard, NULL);
}
