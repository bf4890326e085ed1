/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report - the output of `ptlstat why` about yod's own job, on yod's standard error
 *
 * ptlstat is the program beside yod.  It is a child of yod.  yod continues to serve it
 * and the job meanwhile, reaps it, and kills it when it takes longer than P3_REPORT_MS.
 */
#ifndef P3_LAUNCHER_REPORT_H
#define P3_LAUNCHER_REPORT_H

#include <stdint.h>
#include <sys/types.h>

#define P3_REPORT_MS    5000
#define P3_REPORT_NODES 16u /* larger jobs: conclusions only */

/* Start it for the job of this number.  Return 0, or -errno after saying why not. */
int p3_report_start(uint32_t jid, uint32_t nodes, pid_t *pid_out);

#endif
