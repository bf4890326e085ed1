/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * md - creation of a memory descriptor, for the calls of this folder that create one
 *
 * Any thread may call this function, without the lease; it has no state.
 */
#ifndef P3_LIB_MD_H
#define P3_LIB_MD_H

#include "nic/nic.h"

/* Execute a command that makes a descriptor of *md.  Return its PTL_* code. */
int p3_md_make(
	struct p3_nic *nic, struct p3_cmd *c, const ptl_md_t *md, ptl_unlink_t unlink);

#endif
