/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * preload - a check for the allocator that --shared-heap preloads into nodes
 *
 * yod's main thread calls this function; there is no state.
 */
#ifndef P3_LAUNCHER_PRELOAD_H
#define P3_LAUNCHER_PRELOAD_H

#include <stdbool.h>

/* Return true if the loader finds the allocator; else print a line. */
bool p3_preload_is_there(void);

#endif
