/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmix - the exchange (lib/domain/exchange.h) by PMIx, of mpirun, prterun or
 * srun --mpi=pmix
 *
 * libpmix is loaded when the job turns out to have several hosts; other programs neither
 * link nor load it.  pmix.c alone knows it, and uses no more of it than Init, Put,
 * Commit, Fence, Get and Finalize.
 *
 * The state is the process's: PMIx knows one job in a process.
 */
#ifndef P3_LIB_JOB_PMIX_H
#define P3_LIB_JOB_PMIX_H

#include "lib/domain/exchange.h"

/* NULL if the library was built without PMIx. */
extern const struct p3_exchange *const p3_pmix;

#endif
