/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xfer - the room of long transfers, as other rooms use it
 *
 * Only a process's own firmware writes its user memory, so all movers pull: for a put
 * the target reads, for a get the initiator.  The source offers its bytes in a slot of
 * its transfer table (table.h, source.h); the reader moves them slice by slice (pull.h,
 * slice.h, movers.h, pace.h).  Exchanges of the same bytes come between (swap.h,
 * edge.h).  This header includes the headers that other rooms use; each says who calls
 * its functions, and which state they have.
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

#include "nic/xfer/edge.h"
#include "nic/xfer/pull.h"
#include "nic/xfer/source.h"
#include "nic/xfer/swap.h"
#include "nic/xfer/table.h"

#endif
