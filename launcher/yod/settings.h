/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * settings - the nodes' PTL3_* variables, checked once for the job
 *
 * yod's main thread calls these functions; there is no state.
 */
#ifndef P3_LAUNCHER_SETTINGS_H
#define P3_LAUNCHER_SETTINGS_H

#include "launcher/yod/opt.h"

/* Return the value of a setting in a program's nodes, or NULL if it is unset or empty. */
const char *p3_settings_text(const struct p3_prog *prog, int conf_id);

/*
 * Print a line for each wrong value and unknown name.  Return 0, or -EINVAL for a wrong
 * value.  An unknown name is no error, since it may be that of another version.
 */
int p3_settings_check(const struct p3_opt *opt);

#endif
