/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * up - whether CCI may be called
 *
 * Any thread may call this function.  The state is that of cci_init and cci_finalize.
 */
#ifndef P3_LIB_CCI_UP_H
#define P3_LIB_CCI_UP_H

#include "lib/node/node.h"

/* Return true between cci_init and the last cci_finalize, but false in a forked child. */
static inline bool p3_cci_is_up(void)
{
	return p3_node_has_cci(p3_node());
}

#endif
