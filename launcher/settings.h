/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * settings - the PTL3_* variables that nodes will have, looked at once for the job
 */
#ifndef P3_LAUNCHER_SETTINGS_H
#define P3_LAUNCHER_SETTINGS_H

#include "launcher/opt.h"

/* What the nodes of a program have for a setting; NULL: nothing, or an empty text. */
const char *p3_settings_text(const struct p3_prog *prog, int conf_id);

/*
 * Says which values are wrong and which names are none; 0, or -EINVAL for values.  Names
 * that nobody knows are told and go on: they may be of another version.
 */
int p3_settings_check(const struct p3_opt *opt);

#endif
