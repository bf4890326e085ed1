/* SPDX-License-Identifier: BSD-3-Clause */
/* portals-conduit/gasnet_extended.h - a name of GASNet's for gasnet_core.h */
#include <portals-conduit/gasnet_core.h>
