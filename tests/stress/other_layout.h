/* SPDX-License-Identifier: BSD-3-Clause */
/* other_layout - compiled before a source of the library: a build whose segments
 * differ */
#include "shm/layout.h"

#undef P3_SEG_VERSION
#define P3_SEG_VERSION 99u
