/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report - what `ptlstat why` says of yod's own job, on yod's standard error
 *
 * ptlstat is the program beside yod.  It is a child of yod, which goes on serving it and
 * the job meanwhile, takes its fate, and kills it when it takes longer than
 * P3_REPORT_MS.
 */
#ifndef P3_LAUNCHER_REPORT_H
#define P3_LAUNCHER_REPORT_H

#include <stdint.h>
#include <sys/types.h>

#define P3_REPORT_MS    5000
#define P3_REPORT_NODES 16u /* larger jobs: conclusions only */

/* Start it for the job of this number.  Return 0; or -errno, and say why not. */
int p3_report_start(uint32_t jid, uint32_t nodes, pid_t *pid_out);

#endif
