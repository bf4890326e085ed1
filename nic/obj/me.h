/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * me - match entries, and the descriptors attached to them
 *
 * Only the lease holder calls these functions.  An entry lies in the table P3_T_ME and in
 * the match list of its portal index (match/match.c).
 */
#ifndef P3_NIC_OBJ_ME_H
#define P3_NIC_OBJ_ME_H

#include "nic/state.h"

int p3_me_attach(struct p3_nic *n, struct p3_cmd *c);
int p3_me_attach_md(struct p3_nic *n, struct p3_cmd *c);
/* Make an entry at the end of a list, in the most frequent case.  Return NULL, having
 * done nothing, in all others: an argument is illegal, or there is no room. */
struct p3_me *p3_me_append(
	struct p3_nic *n, uint64_t ni_handle, const struct p3_cmd_me *what);
/* Attach a descriptor to the entry with this handle, likewise. */
struct p3_md *p3_me_give_md(
	struct p3_nic *n, uint64_t handle, const ptl_md_t *what, bool unlink);
/* Take an entry off its list and free it; its descriptor must be gone. */
void p3_me_remove(struct p3_nic *n, struct p3_me *me);
/* Take a descriptor off its entry and free it; free the entry, too, if it is to be
 * unlinked automatically. */
void p3_me_drop_md(struct p3_nic *n, struct p3_md *md);

#endif
