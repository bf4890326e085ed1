/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that are not in the document: names of codes, dumps, debug masks, ranks, maps. */
#include "debug.h"
#include "../portals3_runtime.h"
