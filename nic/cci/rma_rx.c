/* SPDX-License-Identifier: BSD-3-Clause */
/* RMA requests of peers: checks at the target, bytes in and out. */
#include "nic/cci/rma_rx.h"

#include "nic/cci/lane.h"
#include "nic/cci/region.h"
#include "nic/cci/setup.h"
#include "nic/proto/proto.h"
#include "nic/xfer/xfer.h"

#include <string.h>

/* A request as copied from its header. */
struct ask {
	uint64_t token;
	uint64_t region, offset, length;
	uint64_t xfer; /* the initiator's slot, or 0 */
	uint32_t kind;
	bool is_long;
	const char *bytes; /* WRITE that is not long */
};

static bool load(struct p3_nic *n, const struct p3_cell *c, uint64_t w0, struct ask *a)
{
	a->kind = p3_word0_kind(w0);
	a->is_long = p3_word0_flags(w0) & P3_F_CCI_LONG;
	a->token = p3_format_get(c, P3_CCI_TOKEN);
	a->region = p3_format_get(c, P3_CCI_RMA_REGION);
	a->offset = p3_format_get(c, P3_CCI_RMA_OFFSET);
	a->length = p3_format_get(c, P3_CCI_RMA_LENGTH);
	a->xfer = a->is_long ? p3_format_get(c, P3_CCI_RMA_XFER) : 0;
	a->bytes = p3_format_bytes(c, P3_CCI_RMA_DATA);
	uint32_t ncells = p3_word0_ncells(w0);
	bool carries = a->kind == P3_REQ_CCI_WRITE && !a->is_long;
	uint64_t most = p3_cci_most(P3_CCI_WRITE_HEAD, ncells);
	if (carries && (a->length > most ||
			       ncells != p3_cci_cells(P3_CCI_WRITE_HEAD, a->length)))
		return false;
	if (!carries && ncells != 1)
		return false;
	if (a->kind == P3_REQ_CCI_READ && !a->is_long && a->length > P3_CCI_ANSWER_HEAD)
		return false;
	if (a->is_long && (uint32_t)a->xfer >= n->layout.nxfers / 2)
		return false;
	return a->token && a->length &&
	       p3_field_of(P3_CCI_ROOM, p3_format_get(c, P3_CCI_ROOM)) == 1;
}

static void answer(struct p3_nic *n, struct p3_peer *p, const struct ask *a,
	enum p3_cci_status status)
{
	p3_cci_answer(n, p, a->kind, a->token, status, a->xfer);
}

/* ---- WRITE ---- */

/* A pull into a region has ended. */
static void write_over(struct p3_nic *n, struct p3_pull *pull, uint32_t fail)
{
	p3_cci_answer(n, pull->peer, P3_REQ_CCI_WRITE, pull->token,
		fail ? P3_CCI_HANDLE : P3_CCI_OK, pull->xfer_id);
}

static void write_now(struct p3_nic *n, struct p3_peer *p, const struct ask *a, char *to)
{
	memcpy(to, a->bytes, a->length);
	if (p3_unlikely(!p3_list_empty(&n->pulls))) {
		const struct p3_region r = {.start = to, .size = a->length};
		p3_xfer_wrote(n, &r, 0, a->length);
	}
	FAULT_POINT("cci.written");
	n->bytes += a->length;
	answer(n, p, a, P3_CCI_OK);
}

/* Begin to pull.  Return false if the request must wait. */
static bool write_long(struct p3_nic *n, struct p3_peer *p, const struct ask *a, char *to)
{
	const struct p3_region r = {.start = to, .size = a->length};
	if (n->swapper && p3_getput_waits(n, &r, 0, a->length))
		return false;
	struct p3_pull *pull = p3_pull_alloc(n, p);
	if (!pull)
		return false;
	const struct p3_xfer *src = p3_xfer_of_peer(n, p, a->xfer);
	pull->xfer_id = a->xfer;
	pull->heap = p3_get(&src->heap);
	if (!p3_xfer_sees_heap(pull))
		pull->addr = p3_get(&src->addr);
	pull->length = a->length;
	pull->span.region = r;
	pull->token = a->token;
	pull->region = a->region;
	pull->over = write_over;
	p3_pull_begin(n, pull);
	return true;
}

/* ---- READ ---- */

static void read_now(
	struct p3_nic *n, struct p3_peer *p, const struct ask *a, const char *from)
{
	struct p3_cell *c = p3_cci_answer_begin(n, p);
	if (!c)
		return;
	memcpy(p3_format_bytes(c, P3_CCI_ANSWER_DATA), from, a->length);
	p3_format_set(c, P3_CCI_ANSWER_STATUS, p3_field_in(P3_CCI_ANSWER_KIND, a->kind));
	p3_format_set(c, P3_CCI_ANSWER_TOKEN, a->token);
	p3_cci_answer_send(n, p);
}

/* Offer the bytes.  Return false if the request must wait. */
static bool read_long(
	struct p3_nic *n, struct p3_peer *p, const struct ask *a, char *from)
{
	const struct p3_region r = {.start = from, .size = a->length};
	if (n->swapper && p3_getput_waits(n, &r, 0, a->length))
		return false;
	struct p3_xfer_slot *x = p3_xfer_alloc(n, p, P3_X_SERVE);
	if (!x)
		return false;
	p3_xfer_serve(x, a->xfer);
	x->cci = a->region;
	x->length = a->length;
	x->span.region = r;
	x->span.offset = 0;
	p3_xfer_publish(n, x);
	struct p3_cell *c = p3_cci_answer_begin(n, p);
	if (!c)
		return true;
	p3_format_set(c, P3_CCI_ANSWER_STATUS,
		p3_field_in(P3_CCI_ANSWER_KIND, a->kind) |
			p3_field_in(P3_CCI_ANSWER_LONG, 1));
	p3_format_set(c, P3_CCI_ANSWER_TOKEN, a->token);
	p3_format_set(c, P3_CCI_ANSWER_XFER, p3_xfer_name(x));
	p3_format_set(c, P3_CCI_ANSWER_ADDR, p3_get(&x->pub->addr));
	p3_format_set(c, P3_CCI_ANSWER_HEAP, p3_get(&x->pub->heap));
	p3_format_set(c, P3_CCI_ANSWER_OWN, a->xfer);
	p3_cci_answer_send(n, p);
	return true;
}

/* ---- both ---- */

/* Serve a request whose region has the right and the bytes.  Return false if it must
 * wait. */
static bool serve(struct p3_nic *n, struct p3_peer *p, const struct ask *a, char *at)
{
	if (a->kind == P3_REQ_CCI_WRITE && a->is_long)
		return write_long(n, p, a, at);
	if (a->kind == P3_REQ_CCI_READ && a->is_long)
		return read_long(n, p, a, at);
	if (a->kind == P3_REQ_CCI_WRITE)
		write_now(n, p, a, at);
	else
		read_now(n, p, a, at);
	return true;
}

bool p3_cci_rma_take(struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c,
	uint64_t w0, bool *waits_out)
{
	struct ask a;
	if (!load(n, c, w0, &a))
		return false;
	if (p->going && a.is_long)
		return true; /* the peer has died, and no byte will come or go */
	const struct p3_cci_conn *conn =
		p3_cci_setup_used(n, p, p3_format_get(c, P3_CCI_TAG));
	if (!conn) {
		answer(n, p, &a, P3_CCI_REFUSED);
		return true;
	}
	const struct p3_cci_region *r = p3_cci_region_named(conn->ep, a.region);
	int right = a.kind == P3_REQ_CCI_WRITE ? CCI_FLAG_WRITE : CCI_FLAG_READ;
	if (!r || !(r->flags & right) || !p3_cci_region_holds(r, a.offset, a.length))
		answer(n, p, &a, P3_CCI_HANDLE);
	else
		*waits_out = !serve(n, p, &a, r->start + a.offset);
	return true;
}
