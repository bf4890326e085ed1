/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls beside the document: texts of codes, dumps, debug masks, ranks and maps. */
#include "debug.h"
#include "../portals3_runtime.h"
