/* SPDX-License-Identifier: BSD-3-Clause */
/* libof - finds the libportals that a process uses; any thread may call it */
#ifndef P3_LAUNCHER_LIBOF_H
#define P3_LAUNCHER_LIBOF_H

#include <stddef.h>
#include <stdint.h>

#define P3_LIBOF_LEN 256

/* Return the path of the process' libportals; that of its program, if it is linked in;
 * or "?". */
const char *p3_libof(uint32_t os_pid, char path[P3_LIBOF_LEN]);

#endif
