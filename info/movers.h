/* SPDX-License-Identifier: BSD-3-Clause */
/* movers - tells how bytes are moved on this machine; one thread calls it. */
#ifndef P3_INFO_MOVERS_H
#define P3_INFO_MOVERS_H

#include <jansson.h>

/* Return {vendor, family, model, model_name, features, copy}: the CPU, and the copy loop
 * in use with its reason.  A member that /proc/cpuinfo lacks is null. */
json_t *p3_info_cpu(void);
/* Return the rule of each mover of long messages, by name. */
json_t *p3_info_movers(void);

#endif
