/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xfer - long transfers: transfer table, windows, movers
 *
 * Only the lease holder calls these functions, except where a comment says (any).
 */
#ifndef P3_NIC_XFER_XFER_H
#define P3_NIC_XFER_XFER_H

#include "nic/proto/copy.h"

/*
 * Memory ordering of long transfers, between processes:
 *	XFER.1	id: owner releases after address, length and bytes are final -> reader
 *		acquires; the owner changes it before the bytes may go, and the reader
 *		looks again after every slice, before the slice counts (a load fence
 *		between)
 *	XFER.2	produced: owner releases (the window is filled) -> reader acquires;
 *		bulk_read: reader releases (the window was read) -> owner acquires
 *	XFER.3	released: initiator of a get releases (it has read all) -> target
 *		acquires, in each pass and before it takes a request of that initiator
 *	XFER.4	bulk_slot: reader releases (want and read are set) -> owner acquires
 *	XFER.5	Dekker, between the first cross-memory read of a put and a getput at its
 *		source: reader stores reading, fences lightly, acquires swapping, reads,
 *		releases reading; the owner stores swapping, fences heavily, acquires
 *		reading, exchanges, releases swapping.  Without it the put could carry
 *		one half of an exchange.
 *	XFER.6	seqlock, for readers that have begun: the owner makes again odd, fences,
 *		names the bytes that change, exchanges them, or gives their window to
 *		another transfer, releases again even.  A reader looks at it with the id
 *		(XFER.1): if it has changed, the slice does not count.  Earlier slices
 *		count, except the bytes of a change of which the reader has only a part;
 *		if those must not be read again the transfer fails.  Without this edge
 *		the put could carry half an exchange, or exchanges and other readers
 *		would wait for a stopped reader.  In the other direction the reader
 *		sets bulk_read to the place where it continues, then releases
 *		bulk_again; the owner acquires bulk_again, then bulk_read, and fills the
 *		window from there.  Without it a late word about the earlier bytes would
 *		let the owner overwrite unread ones.
 */

/* Return the peer's published half of a slot; the caller has range-checked the number. */
static inline const struct p3_xfer *p3_peer_xfer(
	const struct p3_nic *n, const struct p3_peer *p, uint64_t id)
{
	return (const struct p3_xfer *)(p->image + n->layout.xfers_off) + (uint32_t)id;
}

/*
 * Return true if the target may fetch these bytes, though they fit the lane, sooner than
 * one CPU puts them into cells and another takes them out: from a heap that it has
 * mapped, or with a cross-memory read (docs/design/transfers.md).  The caller asks only
 * where a SEND_END tells the program when the bytes may change; a put without one has
 * copied its bytes when the call returns.
 */
#define P3_EAGER_MOST_HEAP 1536u
#define P3_EAGER_MOST      P3_SHORT_MOST
bool p3_xfer_is_faster(const struct p3_nic *n, const struct p3_peer *p,
	const struct p3_region *r, uint64_t off, uint64_t len);
void p3_xfer_start(struct p3_nic *n);
enum p3_xfer_class { P3_X_OWN, P3_X_SERVE };
struct p3_xfer_slot *p3_xfer_alloc(
	struct p3_nic *n, struct p3_peer *p, enum p3_xfer_class class);
void p3_xfer_publish(struct p3_nic *n, struct p3_xfer_slot *x);
void p3_xfer_free(struct p3_nic *n, struct p3_xfer_slot *x);
/* Stop all reads of a slot's bytes, which are the program's alone from now on.  The
 * slot stays in use until the peer answers. */
void p3_xfer_withdraw(struct p3_nic *n, struct p3_xfer_slot *x);
static inline uint64_t p3_xfer_name(const struct p3_xfer_slot *x)
{
	return p3_xfer_id(x->slot, x->gen);
}
struct p3_pull *p3_pull_alloc(struct p3_nic *n, struct p3_peer *p);
/* Return true if the bytes lie in the source's heap and that is mapped here. */
bool p3_xfer_sees_heap(const struct p3_pull *pull);
void p3_pull_begin(struct p3_nic *n, struct p3_pull *pull);
void p3_fw_move(struct p3_nic *n);   /* move a slice of every pull that can go on */
void p3_fw_source(struct p3_nic *n); /* fill windows, notice releases */
void p3_fw_end_pull(struct p3_nic *n, struct p3_pull *pull, uint32_t fail);
/* Serve a get of the peer from this slot until its END. */
void p3_xfer_serve(struct p3_xfer_slot *x, uint64_t peer_id);
void p3_xfer_finish_serving(struct p3_nic *n, struct p3_xfer_slot *x, uint32_t fail);
/* Post the END of each get that the peer has released. */
void p3_xfer_end_served(struct p3_nic *n, struct p3_peer *p);
void p3_xfer_forget(struct p3_nic *n, uint32_t ni);
#define P3_SWAP_NS 50000000u /* longest wait of an exchange for transfers */
/* Return true if these few bytes may be exchanged now, or false while a long transfer
 * that has begun and is moving reads or writes some of them.  waited is the time that
 * the exchange has waited, in ns; after P3_SWAP_NS only a transfer without a side of
 * its own (see "exchanges of bytes that come" in xfer.c) holds it up.  After true:
 * exchange, then call p3_xfer_swapped. */
bool p3_xfer_may_swap(struct p3_nic *n, const struct p3_region *r, uint64_t off,
	uint64_t len, uint64_t waited);
void p3_xfer_swapped(struct p3_nic *n);
/* Call this while there are pulls, after an operation other than a pull or an exchange
 * has written these bytes: pulls forget what had lain there (struct p3_edge). */
P3_RARE void p3_xfer_wrote(
	struct p3_nic *n, const struct p3_region *r, uint64_t off, uint64_t len);
/* Stop all reads of this process's memory when the NIC stops. */
void p3_xfer_revoke_all(struct p3_nic *n);

#endif
