/* SPDX-License-Identifier: BSD-3-Clause */
/* The trials of movers; trial.h describes them. */
#include "launcher/info/trial.h"
#include "launcher/tools/options.h"
#include "launcher/yod/tools.h"
#include "portals3.h"
#include "portals3_runtime.h"
#include "portals3x.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LEAST = 12, MOST = 22, LENGTHS = MOST - LEAST + 1 }; /* powers of two */
/* A node tries both movers in run 16 of 8 transfers, and not again before run 32. */
enum { LEARNING = 136, TIMED = 65, PORTAL = 4 };
enum { BY_READS, BY_WINDOWS, WAYS };

/* ---- a rank ---- */

static ptl_handle_ni_t trial_ni;

static void trial_check(int rc, const char *call)
{
	if (rc == PTL_OK)
		return;
	p3_tool_say("%s: %s", call, PtlErrorStr((unsigned)rc));
	exit(1);
}

static void trial_barrier(void)
{
	trial_check(PtlXBarrier(), "PtlXBarrier");
}

static int trial_compare(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* Put n times.  Return the median time until the ACK, in microseconds. */
static double trial_put(ptl_handle_md_t md, ptl_handle_eq_t eq, ptl_process_id_t to,
	ptl_size_t length, unsigned n)
{
	double us[LEARNING + TIMED];
	for (unsigned i = 0; i < n; i++) {
		struct timespec a, b;
		ptl_event_t ev = {.type = PTL_EVENT_SEND_END};
		clock_gettime(CLOCK_MONOTONIC, &a);
		trial_check(
			PtlPutRegion(md, 0, length, PTL_ACK_REQ, to, PORTAL, 0, 0, 0, 0),
			"PtlPutRegion");
		while (ev.type != PTL_EVENT_ACK)
			trial_check(PtlEQWait(eq, &ev), "PtlEQWait");
		clock_gettime(CLOCK_MONOTONIC, &b);
		us[i] = (double)(b.tv_sec - a.tv_sec) * 1e6 +
			(double)(b.tv_nsec - a.tv_nsec) / 1e3;
	}
	qsort(us, n, sizeof *us, trial_compare);
	return us[n / 2];
}

static void trial_source(ptl_md_t md, ptl_process_id_t to)
{
	ptl_handle_md_t handle;
	trial_check(PtlEQAlloc(trial_ni, 64, PTL_EQ_HANDLER_NONE, &md.eq_handle),
		"PtlEQAlloc");
	trial_check(PtlMDBind(trial_ni, md, PTL_RETAIN, &handle), "PtlMDBind");
	for (int i = LEAST; i <= MOST; i++) {
		trial_barrier(); /* rank 0 listens */
		(void)trial_put(handle, md.eq_handle, to, (ptl_size_t)1 << i, LEARNING);
		trial_barrier();
		trial_barrier(); /* rank 0 has its first counts */
		printf("time %d %.2f\n", i,
			trial_put(handle, md.eq_handle, to, (ptl_size_t)1 << i, TIMED));
	}
	trial_barrier();
}

static ptlx_stats_t trial_stats(void)
{
	ptlx_stats_t st = {.struct_size = sizeof st};
	trial_check(PtlXStats(trial_ni, &st), "PtlXStats");
	return st;
}

static void trial_target(ptl_md_t md)
{
	ptl_process_id_t anyone = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_handle_me_t me;
	trial_check(PtlMEAttach(trial_ni, PORTAL, anyone, 0, 0, PTL_RETAIN, PTL_INS_AFTER,
			    &me),
		"PtlMEAttach");
	trial_check(PtlMDAttach(me, md, PTL_RETAIN, NULL), "PtlMDAttach");
	trial_barrier();
	for (int i = LEAST; i <= MOST; i++) {
		trial_barrier(); /* rank 1 has let this one learn */
		ptlx_stats_t a = trial_stats();
		trial_barrier();
		trial_barrier(); /* rank 1 has timed */
		ptlx_stats_t b = trial_stats();
		printf("moved %d %.0f %.0f %.0f\n", i,
			(double)(b.moved_cma_bytes - a.moved_cma_bytes),
			(double)(b.moved_bulk_bytes - a.moved_bulk_bytes),
			(double)(b.bytes_received - a.bytes_received));
	}
}

int info_trial_rank(void)
{
	int most;
	unsigned rank, size;
	ptl_process_id_t zero;
	trial_check(PtlInit(&most), "PtlInit");
	trial_check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &trial_ni),
		"PtlNIInit");
	trial_check(PtlGetRank(trial_ni, &rank, &size), "PtlGetRank");
	trial_check(PtlGetRankId(trial_ni, 0, &zero), "PtlGetRankId");
	if (size != 2) {
		p3_tool_say(
			"a trial of %u ranks; expected 2, as --movers starts them", size);
		return 1;
	}
	ptl_md_t md = {.start = calloc(1, (size_t)1 << MOST),
		.length = (ptl_size_t)1 << MOST,
		.threshold = PTL_MD_THRESH_INF,
		.options =
			PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE,
		.eq_handle = PTL_EQ_NONE};
	if (!md.start) {
		p3_tool_say("no memory for 4 MiB");
		return 1;
	}
	memset(md.start, (int)rank + 1, (size_t)md.length);
	if (rank)
		trial_source(md, zero);
	else
		trial_target(md);
	PtlFini();
	free(md.start);
	return 0;
}

/* ---- the jobs ---- */

/* The results of one job for puts of one length. */
struct trial {
	double us, moved[WAYS], bytes;
};

/* Start a job whose long messages go by this mover.  Return its output, or NULL. */
static FILE *trial_start(const char *mover, pid_t *pid_out)
{
	int fd[2];
	char *yod = p3_own_path("yod"), *own = p3_own_path(NULL);
	fflush(stdout);
	if (!yod || !own || pipe2(fd, O_CLOEXEC) || (*pid_out = fork()) < 0) {
		p3_tool_say("no job for the trial: %s", strerror(errno));
		return NULL;
	}
	if (*pid_out == 0) {
		setenv("PTL3_MOVER", mover, 1);
		dup2(fd[1], STDOUT_FILENO);
		execl(yod, yod, "-sz", "2", own, "--trial", (char *)NULL);
		p3_tool_say("%s: %s; expected beside portals-info", yod, strerror(errno));
		_exit(1);
	}
	close(fd[1]);
	free(yod);
	free(own);
	return fdopen(fd[0], "r");
}

/* Run a job, and read the results that its ranks print.  Return false after an error
 * line. */
static bool trial_run(const char *mover, struct trial *t)
{
	char line[100];
	unsigned told = 0;
	int i, status = 1;
	pid_t pid;
	double a, b, c;
	FILE *f = trial_start(mover, &pid);
	while (f && fgets(line, sizeof line, f)) {
		bool time = sscanf(line, "time %d %lf", &i, &a) == 2;
		if (!time && sscanf(line, "moved %d %lf %lf %lf", &i, &a, &b, &c) != 4)
			continue;
		if (i < LEAST || i > MOST)
			continue;
		struct trial *of = &t[i - LEAST];
		if (time)
			of->us = a;
		else
			of->moved[BY_READS] = a, of->moved[BY_WINDOWS] = b, of->bytes = c;
		told++;
	}
	if (f) {
		fclose(f);
		waitpid(pid, &status, 0);
	}
	if (f && (status || told != 2 * LENGTHS))
		p3_tool_say(
			"the job with PTL3_MOVER=%s ended with status %d and %u of %u "
			"lines; expected 0 and all: see its errors above",
			mover, WIFEXITED(status) ? WEXITSTATUS(status) : status, told,
			2 * LENGTHS);
	return status == 0 && told == 2 * LENGTHS;
}

/* Return the time of a job that forced this way, or null if the bytes went otherwise. */
static json_t *trial_forced(const struct trial *t, int way)
{
	return t->moved[way] > t->bytes / 2 ? json_sprintf("%.1f", t->us) : json_null();
}

static json_t *trial_row(const struct trial *t, const struct trial *reads,
	const struct trial *windows, int log)
{
	static const char *const name[] = {"reads", "windows", "cells"};
	double rest = t->bytes - t->moved[BY_READS] - t->moved[BY_WINDOWS];
	int way = t->moved[BY_WINDOWS] > t->moved[BY_READS];
	double most = t->moved[way] > rest ? t->moved[way] : rest;
	return json_pack("{s:i, s:o, s:s, s:o, s:o, s:o}", "bytes", 1 << log, "us",
		json_sprintf("%.1f", t->us), "mover", name[most == rest ? WAYS : way],
		"percent", json_integer(t->bytes > 0 ? (int)(100 * most / t->bytes) : 0),
		"us_by_reads", trial_forced(reads, BY_READS), "us_by_windows",
		trial_forced(windows, BY_WINDOWS));
}

json_t *info_trial(void)
{
	struct trial t[LENGTHS] = {0}, reads[LENGTHS] = {0}, windows[LENGTHS] = {0};
	if (!trial_run("auto", t) || !trial_run("read", reads) ||
		!trial_run("window", windows))
		return NULL;
	json_t *rows = json_array();
	for (int i = 0; i < LENGTHS; i++)
		json_array_append_new(
			rows, trial_row(&t[i], &reads[i], &windows[i], LEAST + i));
	return rows;
}
