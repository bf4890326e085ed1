/* SPDX-License-Identifier: BSD-3-Clause */
/* The same header under another name. */
#include "../../p3rt/p3rt.h"
