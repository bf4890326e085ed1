/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report - the output of `ptlstat why` about yod's own job, on yod's standard error
 *
 * ptlstat, from yod's own folder, runs as a child of yod.  Only yod's main thread calls
 * this function, from its loop (run.c).  The loop must go on meanwhile, since ptlstat
 * gets its data from yod, must reap the child, and kills it after P3_REPORT_MS.  There
 * is no state.
 */
#ifndef P3_LAUNCHER_REPORT_H
#define P3_LAUNCHER_REPORT_H

#include "launcher/yod/frames.h"

#include <stdint.h>
#include <sys/types.h>

#define P3_REPORT_MS    5000
#define P3_REPORT_FD    3   /* ptlstat's socket to look through: --look-at */
#define P3_REPORT_NODES 16u /* larger jobs: conclusions only */

/* Start ptlstat for the job of this number, which writes to out; *pid_out is the child.
 * Return 0, or -errno after an error line. */
int p3_report_start(uint32_t jid, uint32_t nodes, int out, pid_t *pid_out);

/* Let ptlstat answer a question of yod about the job that is served at the other end of
 * the socket, and write it to out.  Return 0, or -errno after an error line. */
int p3_report_answer(const struct p3_frame *ask, int out, int look);

#endif
