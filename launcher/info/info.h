/* SPDX-License-Identifier: BSD-3-Clause */
/* info - what portals-info tells of this machine; one thread calls all functions. */
#ifndef P3_LAUNCHER_INFO_INFO_H
#define P3_LAUNCHER_INFO_INFO_H

#include <jansson.h>

/* Return {vendor, family, model, model_name, features, copy}: the CPU, and the copy loop
 * in use with its reason.  A member that /proc/cpuinfo lacks is null. */
json_t *p3_info_cpu(void);
/* Return the rule of each mover of long messages, by name. */
json_t *p3_info_movers(void);
/* Try each way to move data.  Return an array of {name, allowed, why}.  Call it before
 * there are threads, since it forks. */
json_t *p3_info_probe(void);

#endif
