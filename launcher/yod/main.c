/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * yod - starts a Portals job of N nodes on this machine, and ends it
 *
 * guard.h explains how no process is left behind, run.h how a job runs, rdv.h the
 * exchange between yod and its nodes.  yod makes only the files of --output-dir and
 * --trace.
 */
#include "launcher/yod/cpus.h"
#include "launcher/yod/guard.h"
#include "launcher/yod/opt.h"
#include "launcher/yod/outdir.h"
#include "launcher/yod/place.h"
#include "launcher/yod/plan.h"
#include "launcher/yod/preload.h"
#include "launcher/yod/run.h"
#include "launcher/yod/say.h"
#include "launcher/yod/settings.h"
#include "launcher/yod/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Open missing standard descriptors: else a socket of yod could become a node's
 * stdout. */
static int open_missing_standard_fds(void)
{
	int fd;
	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO && fcntl(fd, F_SETFD, 0) == 0);
	return fd < 0 ? -errno : close(fd);
}

static int say_cannot(const char *what, int rc, const char *remedy)
{
	p3_record_set("%s: %s; %s", what, strerror(-rc), remedy);
	return P3_STATUS_YOD;
}

static int place_nodes(const struct p3_opt *opt, struct p3_place *place_out)
{
	struct p3_place_machine here;
	*place_out = (struct p3_place){.cpus = p3_cpus_usable()};
	if (opt->place.bind == P3_BIND_NONE)
		return 0;
	int rc = p3_place_here(&here);
	if (rc)
		return say_cannot("cannot read the CPUs that yod may use", rc,
			"do without --bind and -VN");
	return p3_place_make(&here, &opt->place, opt->size, place_out);
}

static bool is_watched(const struct p3_opt *opt, const struct p3_prog *prog)
{
	return opt->valgrind == P3_VALGRIND_ON ||
	       (opt->valgrind == P3_VALGRIND_AUTO && p3_valgrind_is_in(prog->argv));
}

/* Choose the folder of the library that announces its atomics (valgrind.h) for each
 * program that runs under valgrind, or for all programs with --valgrind=on.  Return
 * false, after an error line, if that option is set and the library does not exist. */
static bool choose_libraries(struct p3_opt *opt)
{
	const char *dir = NULL;
	bool looked = false;
	for (uint32_t i = 0; i < opt->prog_n; i++) {
		if (!is_watched(opt, &opt->prog[i]))
			continue;
		if (!looked)
			dir = p3_valgrind_folder();
		looked = true;
		opt->prog[i].lib_dir = dir;
	}
	return dir || opt->valgrind != P3_VALGRIND_ON;
}

static bool open_output_dir(struct p3_opt *opt)
{
	opt->output_dir_fd = -1;
	if (opt->output_dir)
		opt->output_dir_fd = p3_outdir_open(opt->output_dir, opt->size);
	return !opt->output_dir || opt->output_dir_fd >= 0;
}

/* Check all that can be checked before the start.  Return P3_OPT_RUN, or the exit
 * status. */
static int check(const struct p3_opt *opt, struct p3_place *place_out)
{
	if (p3_settings_check(opt))
		return P3_OPT_USAGE;
	for (uint32_t i = 0; i < opt->prog_n; i++) {
		int rc = p3_prog_check(&opt->prog[i]);
		if (rc)
			return rc;
	}
	if (place_nodes(opt, place_out))
		return P3_STATUS_YOD;
	return opt->shared_heap && !p3_preload_is_there() ? P3_STATUS_YOD : P3_OPT_RUN;
}

/* Return the exit status of a run that only printed (--help, --plan), or P3_STATUS_YOD if
 * the output is lost. */
static int printed(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	p3_record_set("cannot write to standard output; see df, and where it leads");
	return status ? status : P3_STATUS_YOD;
}

int main(int argc, char **argv)
{
	static struct p3_opt opt;
	static struct p3_place place;
	struct p3_guard guard;
	int rc = open_missing_standard_fds();
	if (rc)
		return say_cannot("cannot open /dev/null", rc,
			"see ulimit -n, and ls -l /dev/null");
	rc = p3_opt_parse(argc, argv, &opt);
	if (rc != P3_OPT_RUN)
		return printed(rc);

	rc = check(&opt, &place);
	if (rc != P3_OPT_RUN)
		return rc;
	if (opt.plan)
		return printed(p3_plan_print(&opt, &place));

	if (!open_output_dir(&opt) || !choose_libraries(&opt))
		return P3_STATUS_YOD;

	/* the pid that users see as yod's; never 0 or ~0 */
	uint32_t jid = (uint32_t)getpid();
	const struct p3_signals *signals = p3_signals_take();
	rc = p3_guard_split(&guard);
	if (rc)
		return say_cannot(
			"cannot start the launcher", rc, "see ulimit -u and ulimit -n");
	return p3_run_job(&opt, &place, jid, &guard, signals);
}
