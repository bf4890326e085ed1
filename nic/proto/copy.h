/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * copy - memory for the bytes of short puts that cannot leave at once
 *
 * Only the lease holder calls these functions.  The state is n->copies, and p->copied of
 * each peer.
 */
#ifndef P3_NIC_PROTO_COPY_H
#define P3_NIC_PROTO_COPY_H

#include "nic/state.h"

/*
 * The call of a put or an exchange of at most P3_SHORT_MOST bytes posts SEND_END before
 * it returns, if there is room in the P3_COPIES_LEN bytes for copies (copy.c).  The
 * bytes of a longer put stay in place until the target has read them; so do those of a
 * put from a shared heap that the target reads (p3_xfer_is_faster()).
 */
#define P3_SHORT_MOST 8192u
#define P3_COPIES_LEN (4u << 20)
int p3_copy_start(struct p3_nic *n);
void p3_copy_stop(struct p3_nic *n);
/* Return memory for at most P3_SHORT_MOST bytes on their way to p, or NULL if there is
 * none. */
char *p3_copy_alloc(struct p3_nic *n, struct p3_peer *p, uint64_t len);
void p3_copy_free(struct p3_nic *n, struct p3_peer *p, const char *copy);
/* Count a copy for peer to instead of peer from. */
void p3_copy_readdress(
	struct p3_nic *n, struct p3_peer *from, struct p3_peer *to, const char *copy);

#endif
