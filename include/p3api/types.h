/* SPDX-License-Identifier: BSD-3-Clause */
/* Types: portals3.h has them all. */
#include "../portals3.h"
