/* SPDX-License-Identifier: BSD-3-Clause */
/* The same header under another name. */
#include "../../p3api/types.h"
