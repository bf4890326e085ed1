/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xfer - the room of long transfers, as other rooms use it
 *
 * Only a process's own firmware writes its user memory, so all movers pull: for a put
 * the target reads, for a get the initiator.  The source offers its bytes in a slot of
 * its transfer table (source.c); the reader moves them slice by slice (pull.c,
 * movers.c, pace.c).  Exchanges of the same bytes come between (getput.c).  Only the
 * lease holder calls these functions.
 *
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
 *	XFER.7	Dekker, between a slice of an RMA operation and its withdrawal: reader
 *		stores slice_of, fences lightly, looks at id, reads, releases slice_of;
 *		the owner changes id, fences heavily, acquires slice_of until the slice is
 *		over.  Without it the reader reads bytes that the program has got back.
 */
#ifndef P3_NIC_XFER_XFER_H
#define P3_NIC_XFER_XFER_H

#include "nic/proto/proto.h"
#include "nic/state.h"

/* ---- the transfer table: slots of bytes that peers may read ---- */

/*
 * A slot offers bytes of this node to one peer: those of an own long put, or those that
 * a peer's long get asks for.  It also serves an own long get, whose release it
 * publishes.  The private half is struct p3_xfer_slot, the half in the published segment
 * struct p3_xfer (shm/layout.h).  The state is n->xfer, the list n->sources of published
 * slots, each peer's list "serving", and the windows of the published segment
 * (n->window_off, n->window_free).
 */

/* Return the peer's published half of a slot; the caller has range-checked the number. */
static inline const struct p3_xfer *p3_xfer_of_peer(
	const struct p3_nic *n, const struct p3_peer *p, uint64_t id)
{
	return (const struct p3_xfer *)(p->image + n->layout.xfers_off) + (uint32_t)id;
}

void p3_xfer_start(struct p3_nic *n);
/* Stop all reads of this process's memory when the NIC stops. */
void p3_xfer_revoke_all(struct p3_nic *n);

/* The two halves of the table: slots of own requests, and of served ones. */
enum p3_xfer_class { P3_X_OWN, P3_X_SERVE };
/* Return a slot for a transfer to or from the peer, or NULL if the peer has used up its
 * share of slots. */
struct p3_xfer_slot *p3_xfer_alloc(
	struct p3_nic *n, struct p3_peer *p, enum p3_xfer_class class);
/* Let the peer read the bytes of x->span. */
void p3_xfer_publish(struct p3_nic *n, struct p3_xfer_slot *x);
/* Return true if the bytes of a published put should be copied into a window before the
 * reader asks: they are in one piece and in memory, the reader does not see them in a
 * heap, and puts of about this length took less time lately when they were. */
bool p3_xfer_may_go_ahead(struct p3_nic *n, struct p3_xfer_slot *x);
/* Do so with the first bytes, at most `most`, if a window can be had.  Set x->ahead
 * before; the passes go on with the bytes up to P3_AHEAD_MOST. */
#define P3_AHEAD_FIRST 8192u  /* bytes before the request */
#define P3_AHEAD_MOST  65536u /* bytes before the reader has asked */
void p3_xfer_send_ahead(struct p3_nic *n, struct p3_xfer_slot *x, uint64_t most);
void p3_xfer_free(struct p3_nic *n, struct p3_xfer_slot *x);
/* Tell the target of an own get or READ that its bytes are no longer needed.  The slot
 * stays in use until the target has seen that. */
void p3_xfer_release(struct p3_nic *n, struct p3_xfer_slot *x, uint32_t fail);
/* Stop all reads of a slot's bytes, which only the program uses from now on.  The slot
 * stays in use until the peer answers. */
void p3_xfer_withdraw(struct p3_nic *n, struct p3_xfer_slot *x);
/* Return true if a peer of this host is reading a slice of a transfer that this node has
 * withdrawn.  A heavy fence lies between the withdrawal and this call: XFER.7. */
bool p3_xfer_is_read(const struct p3_nic *n);

static inline uint64_t p3_xfer_name(const struct p3_xfer_slot *x)
{
	return p3_xfer_id(x->slot, x->gen);
}

/*
 * Return true if the target can read these bytes sooner from a heap that it has mapped,
 * or by a cross-memory read, than through the lane, which they would fit
 * (docs/design/movers.md).  The caller asks only for a put with SEND_END, which tells the
 * program when the bytes may change; the call of a put without SEND_END must copy them.
 */
#define P3_EAGER_MOST_HEAP P3_EAGER_APART
#define P3_EAGER_MOST      P3_SHORT_MOST
#define P3_EAGER_MOST_PAST 16384u /* copied by p3_copy_past() */
bool p3_xfer_is_faster(const struct p3_nic *n, const struct p3_peer *p,
	const struct p3_region *r, uint64_t off, uint64_t len);

/*
 * Return true if the bytes of a put, more than P3_EAGER_APART, go through the lane,
 * copied by p3_copy_past(), because messages of about this length took less time lately
 * when they did.  Otherwise they go as they would without that function: copied by
 * ordinary stores up to P3_EAGER_MOST, longer ones read by the target.
 */
bool p3_pace_copies_past(const struct p3_nic *n, uint64_t length);
/* Return true if longer puts are copied by p3_copy_past() into a window before their
 * reader asks, for the same reason. */
bool p3_pace_goes_ahead(const struct p3_nic *n, uint64_t length);
/* Note that a put of this length, more than P3_EAGER_APART, has been sent.  lone: no
 * request before it is under way to its target. */
void p3_pace_sent(struct p3_nic *n, uint64_t length, bool lone);

/*
 * XFER.6: the bytes of a slot change, or the slot loses its window.  The reader notices,
 * does not count its last slice, and tells where in the window it continues.
 *
 *	p3_xfer_begin_change	of each slot
 *	p3_fence		once
 *	p3_xfer_log_change	of each slot
 *	...			the bytes
 *	p3_xfer_end_change	of each slot
 */
void p3_xfer_begin_change(struct p3_xfer_slot *x, struct p3_range change);
void p3_xfer_log_change(struct p3_xfer_slot *x);
void p3_xfer_end_change(struct p3_xfer_slot *x);

/* Look after each published slot: fill its window, and notice its release. */
__attribute__((noinline)) void p3_source_look(struct p3_nic *n);
/* Serve a get of the peer from this slot until its END. */
void p3_xfer_serve(struct p3_xfer_slot *x, uint64_t peer_id);
void p3_xfer_finish_serving(struct p3_nic *n, struct p3_xfer_slot *x, uint32_t fail);
/* Post the END of each get that the peer has released. */
void p3_xfer_end_served(struct p3_nic *n, struct p3_peer *p);

/* ---- pulls: the reading of long transfers into the memory of this process ---- */

/*
 * A pull belongs to a put into this node, whose target reads the bytes, or to a get of
 * this node.  Each pass moves a slice of each pull that can go on.  A reader that finds
 * its window empty reads a slice from the message's other end by cma meanwhile.  If that
 * is impossible the reader waits: after P3_STALL_NS (pull.c) it reads the rest by cma,
 * or, where cma is not allowed, it kicks the owner's NIC.  The state is the list
 * n->pulls, the pool n->pull, and each peer's own pull.
 */

/* Return an empty pull for a put of the peer, or NULL if the peer has no more of its own
 * and of the pool. */
struct p3_pull *p3_pull_alloc(struct p3_nic *n, struct p3_peer *p);
/* Return true if the bytes lie in the source's heap, and this node has mapped it. */
bool p3_xfer_sees_heap(const struct p3_pull *pull);
/* Begin a pull, whose span, length and place at the source are set. */
void p3_pull_begin(struct p3_nic *n, struct p3_pull *pull);
/* Move a slice of every pull that can go on. */
__attribute__((noinline)) void p3_pull_move(struct p3_nic *n);
/* End a pull, and with it the put or get: all bytes are read, or never will be. */
void p3_pull_end(struct p3_nic *n, struct p3_pull *pull, uint32_t fail);
/* End all pulls and served gets of an interface that closes, without an event. */
void p3_xfer_forget(struct p3_nic *n, uint32_t ni);

/* ---- getputs: exchanges of bytes that long transfers read or write (getput.c) ---- */

/*
 * The state is the mark "swapped" of each slot in n->sources, this node's words
 * "swapping" to the readers, the two edges (struct p3_edge) of each pull, and n->pulled,
 * the bounds of all bytes that pulls write.  getput.c says what exchanges need edges for.
 */

#define P3_SWAP_NS 50000000u /* longest wait of an exchange for transfers */
/* Return true if these few bytes may be exchanged now.  Return false while a long
 * transfer that has begun, and that moves, uses some of them.  waited is the time that
 * the exchange has waited, in ns; after P3_SWAP_NS only an exchange without a side
 * (getput.c) goes on waiting.  If the result is true, the caller exchanges the bytes, and
 * then calls p3_xfer_swapped(). */
bool p3_xfer_may_swap(struct p3_nic *n, const struct p3_region *r, uint64_t off,
	uint64_t len, uint64_t waited);
/* End an exchange, or the attempt at one that has to wait. */
void p3_xfer_swapped(struct p3_nic *n);

/* Return true if an exchange of these bytes has a place neither before nor behind the
 * transfer. */
bool p3_xfer_has_no_side(const struct p3_pull *pull, struct p3_range s);
/* Call this while there are pulls, after an operation other than a pull or an exchange
 * has written these bytes: pulls forget the former bytes there (struct p3_edge). */
P3_RARE void p3_xfer_wrote(
	struct p3_nic *n, const struct p3_region *r, uint64_t off, uint64_t len);
/* Add the bytes that a new pull writes to n->pulled.  The pull must not be in n->pulls
 * yet, or it would be found to share bytes with itself. */
void p3_xfer_note_bytes(struct p3_nic *n, struct p3_pull *pull);

/* A getput is one step of one pass.  A long transfer goes on over many passes, and a peer
 * may read its bytes at any time.  While a transfer that has begun uses the bytes of a
 * getput, the getput waits, and no other transfer begins on these bytes.  The state is
 * n->swapper, n->swapper_wants, n->swapper_until, and p->swap_pos and p->swap_ns of each
 * peer. */

bool p3_getput_waits_for(
	struct p3_nic *n, const struct p3_region *r, uint64_t off, uint64_t len);
/* Return true if a waiting getput must go before a transfer of these bytes. */
static inline bool p3_getput_waits(
	struct p3_nic *n, const struct p3_region *r, uint64_t off, uint64_t len)
{
	return p3_unlikely(n->swapper != NULL) && p3_getput_waits_for(n, r, off, len);
}
/* Return true if the peer's transfer of these bytes must let a getput of another peer go
 * first. */
bool p3_getput_precedes(
	struct p3_nic *n, const struct p3_peer *p, const struct p3_hit *hit);
/* Return true if the peer's getput may be done now.  Otherwise it begins to wait, or goes
 * on waiting. */
bool p3_getput_may_go(struct p3_nic *n, struct p3_peer *p, const struct p3_hit *hit);
/* Note that the peer's getput waits no longer. */
static inline void p3_getput_over(struct p3_nic *n, const struct p3_peer *p)
{
	if (p3_unlikely(n->swapper == p))
		n->swapper = NULL;
}

/* ---- the operation itself (atomic.c) ---- */

/* Change length bytes of a region, whole elements and at most P3_ATOMIC_MOST, by a valid
 * atomic operation, and store the former bytes in old_out.  compare is the second operand
 * of the elements, if the operation has one. */
void p3_atomic_do(uint32_t what, const struct p3_region *r, uint64_t off, uint64_t length,
	const char *operand, const char *compare, char *old_out);

#endif
