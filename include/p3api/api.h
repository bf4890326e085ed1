/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls: portals3.h declares those of the document. */
#include "../portals3.h"
