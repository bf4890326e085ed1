/* SPDX-License-Identifier: BSD-3-Clause */
/* sleepers - the file of the words that a job's nodes sleep on (shm/layout.h) */
#ifndef P3_LAUNCHER_SLEEPERS_H
#define P3_LAUNCHER_SLEEPERS_H

#include <stdint.h>

/* Make it for nnodes nodes, fixed in size and fully reserved.  Return a descriptor
 * (close-on-exec), or -errno. */
int p3_sleepers_make(uint32_t nnodes);

#endif
