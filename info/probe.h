/* SPDX-License-Identifier: BSD-3-Clause */
/* probe - tries the ways to move data; one thread calls it. */
#ifndef P3_INFO_PROBE_H
#define P3_INFO_PROBE_H

#include <jansson.h>

/* Try each way to move data.  Return an array of {name, allowed, why}.  Call it before
 * there are threads, since it forks. */
json_t *p3_info_probe(void);

#endif
