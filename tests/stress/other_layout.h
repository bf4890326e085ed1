/* SPDX-License-Identifier: BSD-3-Clause */
/* Compiled before a source of the library: another build, whose segments differ. */
#include "shm/layout.h"

#undef P3_SEG_VERSION
#define P3_SEG_VERSION 99u
