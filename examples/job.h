/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * job.h - the common part of these programs: starting, meeting, and waiting for one
 * event
 *
 * job_start() opens the interface.  job_meet() waits until all ranks are there; those
 * that have opened a portal before listen then.  job_want() ends a job that has the
 * wrong number of ranks, and job_want_arguments() one whose program has the wrong
 * arguments.
 */
#ifndef JOB_H
#define JOB_H

#include <portals3.h>
#include <portals3_runtime.h>
#include <portals3x.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const ptl_process_id_t job_anyone = {PTL_NID_ANY, PTL_PID_ANY};

static struct {
	ptl_handle_ni_t ni;
	unsigned rank, size;
} job;

/* End the job if a call failed: an example cannot go on then. */
static inline void check(int rc, const char *what)
{
	if (rc != PTL_OK) {
		fprintf(stderr, "%s: %s\n", what, PtlErrorStr((unsigned)rc));
		exit(1);
	}
}

/* End the job if a result is wrong. */
static inline void expect(int right, const char *what)
{
	if (!right) {
		fprintf(stderr, "rank %u: wrong: %s\n", job.rank, what);
		exit(1);
	}
}

static inline ptl_process_id_t job_id(unsigned rank)
{
	ptl_process_id_t id;
	check(PtlGetRankId(job.ni, rank, &id), "PtlGetRankId");
	return id;
}

/* Wait for the next event of that type; others are skipped. */
static inline ptl_event_t job_await(ptl_handle_eq_t eq, ptl_event_kind_t type)
{
	ptl_event_t ev;
	do
		check(PtlEQWait(eq, &ev), "PtlEQWait");
	while (ev.type != type);
	expect(ev.ni_fail_type == PTL_NI_OK, PtlEventKindStr(type));
	return ev;
}

static inline ptl_handle_eq_t job_queue(ptl_size_t events)
{
	ptl_handle_eq_t eq;
	check(PtlEQAlloc(job.ni, events, PTL_EQ_HANDLER_NONE, &eq), "PtlEQAlloc");
	return eq;
}

/*
 * Append a match entry for any process to the portal's list, with its descriptor.  With
 * PTL_UNLINK both go when the descriptor is used up.
 */
static inline void job_append(ptl_pt_index_t portal, ptl_match_bits_t bits,
	ptl_match_bits_t ignore, ptl_md_t md, ptl_unlink_t unlink)
{
	ptl_handle_me_t me;
	check(PtlMEAttach(job.ni, portal, job_anyone, bits, ignore, unlink, PTL_INS_AFTER,
		      &me),
		"PtlMEAttach");
	check(PtlMDAttach(me, md, unlink, NULL), "PtlMDAttach");
}

/* Let every request to that portal meet md, which stays. */
static inline void job_listen(ptl_pt_index_t portal, ptl_md_t md)
{
	job_append(portal, 0, ~(ptl_match_bits_t)0, md, PTL_RETAIN);
}

/* Bind a descriptor of memory here, to put from or to get into. */
static inline ptl_handle_md_t job_bind(void *start, ptl_size_t length, ptl_handle_eq_t eq)
{
	ptl_md_t md = {.start = start,
		.length = length,
		.threshold = PTL_MD_THRESH_INF,
		.eq_handle = eq};
	ptl_handle_md_t mdh;
	check(PtlMDBind(job.ni, md, PTL_RETAIN, &mdh), "PtlMDBind");
	return mdh;
}

static inline double job_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline void job_start(void)
{
	int most;
	check(PtlInit(&most), "PtlInit");
	check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &job.ni),
		"PtlNIInit");
	check(PtlGetRank(job.ni, &job.rank, &job.size), "PtlGetRank");
}

/* Wait for all ranks.  The barrier fails when one of them has ended: that rank or yod has
 * said why, so this one ends without a line. */
static inline void job_meet(void)
{
	if (PtlXBarrier() != PTL_OK)
		exit(1);
}

static inline void job_end(void)
{
	job_meet();
	PtlFini();
}

/* Leave a job that is wrong, with all ranks.  Rank 0 prints what the program needs. */
static inline void job_refuse(const char *what, unsigned count, const char *of)
{
	if (job.rank == 0)
		fprintf(stderr, "expected %s; this job has %u %s%s\n", what, count, of,
			count == 1 ? "" : "s");
	job_end();
	exit(2);
}

static inline void job_want(int right, const char *what)
{
	if (!right)
		job_refuse(what, job.size, "rank");
}

static inline void job_want_arguments(int right, int argc, const char *what)
{
	if (!right)
		job_refuse(what, (unsigned)argc - 1, "argument");
}

#endif /* JOB_H */
