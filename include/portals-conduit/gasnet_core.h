/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * portals-conduit/gasnet_core.h - the name by which configure scripts find this conduit
 *
 * All of the interface is in gasnet.h.  A script that looks for this file defines no
 * mode.
 */
#ifndef _GASNET_CORE_H
#define _GASNET_CORE_H

#if defined(GASNET_SEQ) || defined(GASNET_PARSYNC) || defined(GASNET_PAR)
#include <gasnet.h>
#endif

#endif /* _GASNET_CORE_H */
