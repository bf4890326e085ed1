/* SPDX-License-Identifier: BSD-3-Clause */
/* The name that the reference implementation has for portals3_runtime.h. */
#include "../portals3_runtime.h"
