/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef P3_INFO_PROBE_H
#define P3_INFO_PROBE_H

#include <jansson.h>

/* Try each way to move data.  An array of {name, allowed, why}; call it before there are
 * threads, as it forks. */
json_t *p3_info_probe(void);

#endif
