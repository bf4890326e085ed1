/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmix - the exchange (lib/domain/exchange.h) by PMIx, which mpirun, prterun and
 * srun --mpi=pmix offer
 *
 * libpmix is loaded when the job turns out to have several hosts; other programs neither
 * link nor load it.  Only pmix.c calls it, and only Init, Put, Commit, Fence, Get and
 * Finalize.  If libpmix has them, pmix.c also uses two more things.  The event of a lost
 * connection says that the launcher's process on this host has ended, and cannot end this
 * process any more; so this process ends by itself, as a node of a killed yod does
 * (life.c).  The query for the table of processes shows ranks that have ended before they
 * called PtlNIInit; then the fence fails.
 *
 * The state is static: a process takes part in one job of PMIx.
 */
#ifndef P3_LIB_JOB_PMIX_H
#define P3_LIB_JOB_PMIX_H

#include "lib/domain/exchange.h"

/* NULL if the library was built without PMIx. */
extern const struct p3_exchange *const p3_pmix;

#endif
