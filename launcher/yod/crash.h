/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * crash - the line that tells how to find where a rank has crashed
 *
 * The main thread of yod, or of an agent, calls the function; there is no state.
 */
#ifndef P3_LAUNCHER_CRASH_H
#define P3_LAUNCHER_CRASH_H

#include "launcher/yod/prog.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* If this wait status is that of a crash, print the command that shows where it was, or
 * how to get a core file, and return true.  The program has not changed its working
 * directory, as far as yod knows. */
bool p3_crash_say(
	const struct p3_prog *prog, uint32_t rank, pid_t pid, int status, bool agent);

#endif
