/* SPDX-License-Identifier: BSD-3-Clause */
/* Return codes: portals3.h has them all. */
#include "../portals3.h"
