/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * job - the common part of the clients of this folder: start, meeting and end
 *
 *	client [-i iface] [-r cnos|p3rt] [-p pid] [words]
 *
 *	-i	default, ss, bridge (IFACE_FROM_BRIDGE_AND_NALID) or a number;
 *		else COMPAT_IFACE, else default
 *	-r	the source of rank, size and ids
 *	-p	pid of rank 0, rank r has r more; else any
 *
 * Under yod all of this is known.  A process started by hand takes its rank and the ids
 * from PTL_MY_RID, PTL_NIDMAP and PTL_PIDMAP.  Calls that fail end the process with a
 * line.
 */
#ifndef COMPAT_JOB_H
#define COMPAT_JOB_H

#include "../support/random.h"

#include <portals3.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

struct job {
	ptl_handle_ni_t ni;
	ptl_process_id_t self;
	int rank, size;
	bool by_hand; /* not under yod */
	ptl_process_id_t *ids;
	char **words; /* command line behind the options; ends with NULL */
};

extern struct job job;

/* Find rank, ids and the interface, and meet in a first barrier: then all are there. */
void job_begin(int argc, char **argv);

/* Find only rank, size and the interface, for processes that come and go.  Of the ids,
 * only those of a fixed address (-p, or the map of a start by hand) are set. */
void job_enter(int argc, char **argv);
void job_leave(void);

/* Meet all processes; the caller's other messages may still be under way. */
void job_barrier(void);

/* Return the messages discarded here since the first barrier, or since job_enter. */
long job_drops(void);

/* Print the number of tries and close the interface. */
void job_end(const char *what, unsigned long tried);

/* Return the seconds of a monotonic clock. */
double job_now(void);

/*
 * Return a descriptor as those programs made them: an automatic variable of which they
 * set the needed members.  The others are never 0 here.
 */
ptl_md_t job_md(void *start, ptl_size_t length, int threshold, unsigned options,
	ptl_handle_eq_t eq);

/* Write and check the bytes that belong to a number. */
void job_fill(void *bytes, size_t length, uint64_t number);
size_t job_wrong(const void *bytes, size_t length, uint64_t number); /* length: all are
								      * right */

#define CHECK(truth)                                                                     \
	do {                                                                             \
		if (!(truth))                                                            \
			job_failed(__FILE__, __LINE__, #truth);                          \
	} while (0)

/* Make a Portals call that has to succeed. */
#define DO(call)                                                                         \
	do {                                                                             \
		int code_ = (call);                                                      \
		if (code_ != PTL_OK)                                                     \
			job_failed(__FILE__, __LINE__, ptl_err_str[code_]);              \
	} while (0)

__attribute__((noreturn)) void job_failed(const char *file, int line, const char *what);

#endif
