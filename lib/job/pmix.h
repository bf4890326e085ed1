/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmix - the exchange (lib/domain/exchange.h) by PMIx, of mpirun, prterun or
 * srun --mpi=pmix
 *
 * libpmix is loaded when the job turns out to have several hosts; other programs neither
 * link nor load it.  pmix.c alone knows it, and uses no more of it than Init, Put,
 * Commit, Fence, Get and Finalize, and if there is one the event of a lost connection:
 * the launcher's process on this host has ended and cannot end this one any more, so
 * this process ends by itself, as a node of a killed yod does (life.c).
 *
 * The state is the process's: PMIx knows one job in a process.
 */
#ifndef P3_LIB_JOB_PMIX_H
#define P3_LIB_JOB_PMIX_H

#include "lib/domain/exchange.h"

/* NULL if the library was built without PMIx. */
extern const struct p3_exchange *const p3_pmix;

#endif
