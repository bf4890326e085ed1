/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sleepers - the file of the words that a job's nodes sleep on (shm/layout.h)
 *
 * Only the rendezvous (rdv.c) calls this function, once for a job; there is no state.
 */
#ifndef P3_LAUNCHER_SLEEPERS_H
#define P3_LAUNCHER_SLEEPERS_H

#include <stdint.h>

/* Make the file for nnodes nodes, with its size sealed and its memory reserved.  Return
 * a descriptor (close-on-exec), or -errno. */
int p3_sleepers_make(uint32_t nnodes);

#endif
