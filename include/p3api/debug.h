/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * p3api/debug.h - masks for PtlNIDebug, for programs that name them
 *
 * In the reference implementation each bit made one part of the library, or of a network,
 * print what it does.  Here PtlNIDebug remembers the mask and prints nothing.
 */
#ifndef P3API_DEBUG_H
#define P3API_DEBUG_H

#include "../portals3.h"

#define PTL_DBG_NONE   0x00000000u
#define PTL_DBG_ALL    PTL_DEBUG_ALL
#define PTL_DBG_NI_ALL PTL_DEBUG_NI_ALL

#endif
