/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * job - what the clients of this folder share: how they begin, meet and end
 *
 *	client [-i iface] [-r cnos|p3rt] [-p pid] [words]
 *
 *	-i	default, ss, bridge (IFACE_FROM_BRIDGE_AND_NALID) or a number;
 *		else COMPAT_IFACE, else default
 *	-r	whom to ask for rank, size and ids
 *	-p	pid of rank 0, rank r has r more; else any
 *
 * Under yod all is known.  A process started by hand takes its rank and the ids from
 * PTL_MY_RID, PTL_NIDMAP and PTL_PIDMAP.  Calls that fail end the process with a line.
 */
#ifndef COMPAT_JOB_H
#define COMPAT_JOB_H

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
	char **words; /* of the command line, behind the options; ends with NULL */
};

extern struct job job;

/* Rank, ids and the interface, and a first barrier: all are there when it is over. */
void job_begin(int argc, char **argv);

/* Only rank, size and the interface: for who comes and goes.  Of ids, only those of a
 * fixed address (-p, or the map of a start by hand) are set. */
void job_enter(int argc, char **argv);
void job_leave(void);

/* Of all processes; the caller's other messages are its own business. */
void job_barrier(void);

/* Messages discarded here since the first barrier, or since job_enter. */
long job_drops(void);

/* Prints what was tried and ends the interface. */
void job_end(const char *what, unsigned long tried);

/* Seconds of a clock that only goes on. */
double job_now(void);

/*
 * A descriptor as those programs made them: an automatic variable of which they set what
 * they needed.  What they left alone is rubbish here, never 0.
 */
ptl_md_t job_md(void *start, ptl_size_t length, int threshold, unsigned options,
	ptl_handle_eq_t eq);

/* 64 random bits; and the bytes that belong to a number. */
uint64_t job_random(uint64_t *state);
void job_fill(void *bytes, size_t length, uint64_t number);
size_t job_wrong(const void *bytes, size_t length, uint64_t number); /* length: none */

#define CHECK(truth)                                                                     \
	do {                                                                             \
		if (!(truth))                                                            \
			job_failed(__FILE__, __LINE__, #truth);                          \
	} while (0)

/* A Portals call that has to succeed. */
#define DO(call)                                                                         \
	do {                                                                             \
		int code_ = (call);                                                      \
		if (code_ != PTL_OK)                                                     \
			job_failed(__FILE__, __LINE__, ptl_err_str[code_]);              \
	} while (0)

__attribute__((noreturn)) void job_failed(const char *file, int line, const char *what);

#endif
