/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libof - the search for the libportals that a process uses
 *
 * Any thread may call this function; there is no state.
 */
#ifndef P3_LAUNCHER_LIBOF_H
#define P3_LAUNCHER_LIBOF_H

#include <stddef.h>
#include <stdint.h>

#define P3_LIBOF_LEN 256

/* Return the path of the process' libportals; that of its program, if it is linked in;
 * or "?". */
const char *p3_libof(uint32_t os_pid, char path[P3_LIBOF_LEN]);

#endif
