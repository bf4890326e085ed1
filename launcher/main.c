/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * yod - starts a Portals job of N nodes on this machine, and ends it
 *
 * guard.h says how no process is left behind, run.h how a job runs, rdv.h what is said
 * between yod and its nodes.  yod makes no files.
 */
#include "launcher/guard.h"
#include "launcher/opt.h"
#include "launcher/outdir.h"
#include "launcher/preload.h"
#include "launcher/run.h"
#include "launcher/say.h"
#include "launcher/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Else a socket of yod's would become some node's standard output. */
static int open_missing_standard_fds(void)
{
	int fd;
	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO && fcntl(fd, F_SETFD, 0) == 0);
	return fd < 0 ? -errno : close(fd);
}

static int say_cannot(const char *what, int rc)
{
	p3_say("%s: %s", what, strerror(-rc));
	return P3_STATUS_YOD;
}

/* False: it was asked for, and is not there; this has been said. */
static bool choose_library(const struct p3_opt *opt, const char **lib_dir_out)
{
	*lib_dir_out = NULL;
	if (opt->valgrind == P3_VALGRIND_OFF)
		return true;
	if (opt->valgrind == P3_VALGRIND_AUTO && !p3_valgrind_is_in(opt->argv))
		return true;
	*lib_dir_out = p3_valgrind_folder();
	return *lib_dir_out || opt->valgrind == P3_VALGRIND_AUTO;
}

int main(int argc, char **argv)
{
	struct p3_opt opt;
	struct p3_guard guard;
	int rc = open_missing_standard_fds();
	if (rc)
		return say_cannot("cannot open /dev/null", rc);
	rc = p3_opt_parse(argc, argv, &opt);
	if (rc != P3_OPT_RUN)
		return rc;

	if (opt.shared_heap && !p3_preload_is_there())
		return P3_STATUS_YOD;

	opt.output_dir_fd = -1;
	if (opt.output_dir) {
		opt.output_dir_fd = p3_outdir_open(opt.output_dir, opt.size);
		if (opt.output_dir_fd < 0)
			return P3_STATUS_YOD;
	}
	const char *lib_dir;
	if (!choose_library(&opt, &lib_dir))
		return P3_STATUS_YOD;

	uint32_t jid = (uint32_t)getpid(); /* what the user sees as yod; never 0 or ~0 */
	const struct p3_signals *signals = p3_signals_take();
	rc = p3_guard_split(&guard);
	if (rc)
		return say_cannot("cannot start the launcher", rc);
	return p3_run_job(&opt, lib_dir, jid, &guard, signals);
}
