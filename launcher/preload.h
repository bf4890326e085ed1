/* SPDX-License-Identifier: BSD-3-Clause */
/* preload - can nodes be given the allocator that --shared-heap puts in front? */
#ifndef P3_LAUNCHER_PRELOAD_H
#define P3_LAUNCHER_PRELOAD_H

#include <stdbool.h>

/* Does the loader find it?  If not, this has been said. */
bool p3_preload_is_there(void);

#endif
