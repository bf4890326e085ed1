/* SPDX-License-Identifier: BSD-3-Clause */
/* The peers' writes: mostly well-formed, sometimes with an error. */
#include "nic/cci/state.h"
#include "nic/xfer/xfer.h"
#include "fuzz/rig.h"

#include <string.h>

#define CELLS_MOST 256u

/* One message as it will lie in a ring. */
struct message {
	union {
		uint64_t w[CELLS_MOST * 8];
		struct p3_cell cell[CELLS_MOST];
	};
	uint32_t ncells; /* cells that are written, */
	uint32_t says;   /* and the number in the header */
	uint32_t kind, flags;
};

static struct message m; /* built anew for each */

/* ---- rings ---- */

static uint64_t ring_off(const struct fake *f, const struct p3_ring_rx *r)
{
	return (uint64_t)((char *)p3_ring_cell(r, 0) - (char *)f->seg.base);
}

static void write_cells(struct fake *f, const struct p3_ring_rx *r, uint64_t pos,
	const uint64_t *w, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint64_t at = (pos + i) & (r->n - 1);
		memcpy(fake_at(f, ring_off(f, r) + at * P3_CELL, P3_CELL), w + 8 * i,
			P3_CELL);
	}
}

static void clear_cell(struct fake *f, const struct p3_ring_rx *r, uint64_t pos)
{
	uint64_t at = pos & (r->n - 1);
	*(uint64_t *)fake_at(f, ring_off(f, r) + at * P3_CELL, 8) = 0;
}

static void publish(struct fake *f, const struct p3_ring_rx *r, uint64_t *pos,
	uint64_t *w, uint64_t word0, uint32_t n)
{
	clear_cell(f, r, *pos + n);
	w[0] = word0 | p3_ring_valid(*pos, p3_log2(r->n));
	write_cells(f, r, *pos, w, n);
	*pos += n;
}

static void pad(struct fake *f, const struct p3_ring_rx *r, uint64_t *pos)
{
	uint64_t w[8] = {0};
	uint32_t left = r->n - (uint32_t)(*pos & (r->n - 1));
	clear_cell(f, r, *pos + left);
	w[0] = p3_word0(P3_KIND_PAD, 0, left) | p3_ring_valid(*pos, p3_log2(r->n));
	write_cells(f, r, *pos, w, 1);
	*pos += left;
}

/* Put the message behind those that the node has not read yet. */
static void send(struct fake *f, bool request)
{
	struct p3_peer *p = rig_peer(f);
	const struct p3_ring_rx *r = request ? &p->req_in : &p->rsp_in;
	uint64_t *pos = request ? &f->req_pos : &f->rsp_pos;
	if (m.ncells > CELLS_MOST)
		m.ncells = CELLS_MOST; /* the header may have a larger number */
	if (rig.far) {
		uint64_t word0 = p3_word0(m.kind, m.flags, m.says);
		far_message(f, request, m.w, word0, m.ncells);
		return;
	}
	if (p->base != f->seg.base)
		return;
	if (*pos - r->pos > r->n)
		*pos = r->pos;
	if (m.ncells > p3_ring_most(r->n))
		m.ncells = p3_ring_most(r->n);
	if (m.ncells > r->n - (uint32_t)(*pos & (r->n - 1)))
		pad(f, r, pos);
	if (*pos + m.ncells - r->pos >= r->n)
		rig_passes(1);
	publish(f, r, pos, m.w, p3_word0(m.kind, m.flags, m.says), m.ncells);
}

/* Fill all bytes from this field on. */
static void fill(uint32_t field, uint8_t with)
{
	char *from = p3_format_bytes(m.cell, field);
	memset(from, with, (size_t)((char *)m.w + sizeof m.w - from));
}

/* Take the kind, the flags and the number of cells from a packed word 0. */
static void say(uint64_t word0)
{
	m.kind = p3_word0_kind(word0);
	m.flags = p3_word0_flags(word0);
	m.ncells = m.says = p3_word0_ncells(word0);
}

/* Sometimes change one word of a message, or of the fields of its header. */
static void spoil(struct input *in, const struct fake *f)
{
	uint8_t how = in_u8(in);
	if (how < 0xc0)
		return;
	switch (how & 7) {
	case 0:
		m.says = (uint32_t)in_bytes(in, 2);
		break;
	case 1:
		m.kind = in_u8(in) % 9;
		break;
	case 2:
		m.flags = in_u8(in);
		break;
	case 3:
		m.w[in_below(in, 8)] ^= 1ull << in_below(in, 64);
		break;
	default:
		m.w[in_below(in, 8)] = rig_number(in, f);
	}
}

/* ---- requests ---- */

static const uint32_t lengths[] = {0, 1, 8, 16, 17, 40, 80, 200, 500, 1500, 4096, 40000,
	P3_CHUNK_LEN, 100000, 300000, 0x7fffffff};

static uint64_t length_of(struct input *in)
{
	uint8_t how = in_u8(in);
	uint64_t len = lengths[how % 16];
	return how & 0x80 ? len + 1 : len;
}

/* Return a place in the heap, or a wrong one. */
static uint64_t heap_word(uint8_t how, uint64_t len)
{
	const uint64_t of[] = {1, P3_HUGE / 2, P3_HUGE - len + 1, P3_HUGE - len + 2,
		P3_HUGE, P3_HUGE + 1, UINT64_MAX, UINT64_MAX - len};
	return how & 0x80 ? of[how >> 4 & 7] : 0;
}

/* Offer bytes: their place, and the number that is in a window already. */
static void offer(struct fake *f, struct input *in, uint64_t id, uint64_t len)
{
	struct p3_xfer *x = fake_xfer(f, id);
	uint8_t how = in_u8(in);
	uint64_t window = rig.nic->layout.ctl_len + (how >> 4) * (uint64_t)P3_PAGE;
	p3_set(&x->addr, how & 1 ? host_readable(len) : how & 2 ? rig_number(in, f) : 0);
	p3_set(&x->again, (how & 0xe0) == 0xe0 ? len : 0);
	p3_set(&x->heap, rig.far ? far_key(f, how, len) : heap_word(how, len));
	p3_set(&x->window, how & 4 ? window : 0);
	p3_set(&x->produced, how & 8 ? len : 0);
	p3_set(&x->id, id);
}

/* Address a request: a portal and match bits that mostly exist. */
static void address(const struct fake *f, struct input *in, struct p3_request *r)
{
	uint8_t to = in_u8(in), bits = in_u8(in);
	r->pid = to & 0x40 ? 200 + RIG_NODE : 100 + RIG_NODE;
	r->portal = to & 3;
	r->access = to & 0x80 ? in_u8(in) : 0;
	r->pending = to & 0x10 ? 0 : 0x40000 + to;
	r->bits = bits & 3;
	r->hdr = bits;
	r->offset = bits & 0x80 ? rig_number(in, f) : bits & 0x38;
}

static uint64_t transfer_name(struct input *in, bool serve)
{
	uint32_t slot = in_u8(in) % (rig.nic->layout.nxfers / 2);
	uint32_t half = serve ? rig.nic->layout.nxfers / 2 : 0;
	return p3_xfer_id(half + slot, 1 + in_below(in, 4));
}

static void eager_put(struct fake *f, struct input *in, struct p3_request *r)
{
	uint64_t most = p3_request_most(rig_peer(f)->req_in.n);
	r->kind = P3_REQ_PUT;
	r->room = 1;
	r->length = length_of(in) % (most + 1);
	r->ncells = p3_request_cells(r->length);
	address(f, in, r);
}

/* Put the place into the header, as far as it fits. */
static void say_place(const struct p3_xfer *x, struct p3_request *r)
{
	uint64_t heap = p3_get(&x->heap), place = heap ? heap : p3_get(&x->addr);
	if (!place || (place | r->length) >> P3_PLACE_BITS)
		return;
	r->flags |= heap ? P3_F_HEAP : P3_F_ADDR;
	r->place = place;
}

static void long_request(
	struct fake *f, struct input *in, uint32_t kind, struct p3_request *r)
{
	r->kind = kind;
	r->flags |= P3_F_LONG;
	r->room = 1;
	r->length = length_of(in);
	r->xfer = transfer_name(in, false);
	address(f, in, r);
	r->pending |= 1;
	offer(f, in, r->xfer, r->length);
	if (kind == P3_REQ_PUT)
		say_place(fake_xfer(f, r->xfer), r);
}

static void short_get(struct fake *f, struct input *in, struct p3_request *r)
{
	r->kind = P3_REQ_GET;
	r->length = length_of(in) % 2000;
	r->room = p3_reply_room(r->length);
	r->xfer = m.w[p3_field_word(P3_GET_XFER)];
	address(f, in, r);
	r->pending |= 1;
}

/* Nine of ten operations exist, and most lengths fit them. */
static void atomic(struct fake *f, struct input *in, struct p3_request *r)
{
	uint8_t how = in_u8(in);
	eager_put(f, in, r);
	r->flags |= P3_F_ATOMIC;
	r->what = how & 1 ? P3_ATOMIC_SWAP : in_u8(in) % (P3_ATOMIC_SWAP + 20);
	if (how & 0xf0)
		r->length = r->length % (how & 8 ? 33 : 65) & ~UINT64_C(7);
	r->ncells = p3_request_cells(p3_atomic_sent(r->what, r->length));
	if (!(how & 1) && how & 2)
		return;
	r->kind = P3_REQ_GETPUT;
	r->pending |= 1;
	r->room = p3_reply_room(r->length);
}

static uint64_t pack(const struct p3_request *r)
{
	if (p3_request_is_eager(r->kind, r->flags))
		return p3_pack_eager(m.cell, r);
	if (r->flags & P3_F_ATOMIC)
		return p3_pack_atomic(m.cell, r);
	return r->kind == P3_REQ_GET ? p3_pack_get(m.cell, r) : p3_pack_long(m.cell, r);
}

static void request(struct fake *f, struct input *in)
{
	uint8_t how = in_u8(in);
	struct p3_request r = {.ncells = 1,
		.flags = (how & 0x10 ? P3_F_ACK : 0u) | (how & 0x20 ? P3_F_NI1 : 0u)};
	fill(P3_EAGER_DATA, how);
	switch (how & 7) {
	case 0:
	case 1:
		eager_put(f, in, &r);
		break;
	case 2:
		atomic(f, in, &r);
		break;
	case 3:
	case 4:
		long_request(f, in, P3_REQ_PUT, &r);
		break;
	case 5:
		long_request(f, in, P3_REQ_GET, &r);
		break;
	default:
		short_get(f, in, &r);
	}
	say(pack(&r));
	spoil(in, f);
	for (uint32_t times = how >= 0xf8 ? 40 : 1; times; times--) {
		send(f, true);
		if (times > 1)
			rig_passes(1);
	}
}

/* ---- responses ---- */

static struct p3_pending *pick_outstanding(struct fake *f, struct input *in)
{
	struct p3_peer *p = rig_peer(f);
	uint32_t n = 0, which = in_u8(in);
	p3_list_each(it, &p->outstanding)
		n++;
	if (!n)
		return NULL;
	which %= n;
	p3_list_each(it2, &p->outstanding)
		if (!which--)
			return p3_item(it2, struct p3_pending, link);
	return NULL;
}

static void reply(
	struct fake *f, struct input *in, const struct p3_pending *t, struct p3_answer *a)
{
	uint64_t most = p3_reply_most(rig_peer(f)->rsp_in.n);
	uint8_t how = in_u8(in);
	if (t->is_long && !(how & 1)) {
		a->kind = P3_RSP_REPLY_LONG;
		a->xfer = transfer_name(in, true);
		offer(f, in, a->xfer, a->mlength);
		a->addr = p3_get(&fake_xfer(f, a->xfer)->addr);
		a->heap = p3_get(&fake_xfer(f, a->xfer)->heap);
		say(p3_pack_long_reply(m.cell, a));
		return;
	}
	if (t->move.length > most && !(how & 4))
		a->mlength %= most + 1;
	say(p3_pack_reply(m.cell, a));
	m.kind = how & 2 ? P3_RSP_NONE : P3_RSP_REPLY;
	m.ncells = m.says = p3_reply_cells(a->mlength); /* may be too many */
	fill(P3_REPLY_DATA, how);
}

/* Answer a pending as its kind requires, mostly. */
static void answer(struct fake *f, struct input *in, const struct p3_pending *t,
	uint8_t how, struct p3_answer *a)
{
	a->pending = p3_pending_name(t);
	a->mlength = how & 4 && t->move.length ? rig_number(in, f) % t->move.length
					       : t->move.length;
	if ((how & 4) && t->move.length >> 38)
		a->mlength = (1ull << 38) + how; /* as many cells as for a few bytes */
	if (t->kind != P3_REQ_PUT) {
		reply(f, in, t, a);
	} else {
		a->kind = t->is_long ? P3_RSP_DONE : how & 8 ? P3_RSP_ACK : P3_RSP_NONE;
		say(p3_pack_brief(m.cell, a));
	}
	m.flags = a->flags;
	if (how >= 0xf0)
		m.kind = in_u8(in) % 8;
}

static void response(struct fake *f, struct input *in)
{
	const struct p3_pending *t = pick_outstanding(f, in);
	uint8_t how = in_u8(in);
	struct p3_answer a = {.kind = how >> 4 & 7, .flags = how & 1 ? P3_F_ACK : 0};
	a.status = how & 2 ? in_u8(in) : 0;
	memset(m.w, 0, P3_CELL);
	if (t)
		answer(f, in, t, how, &a);
	else if (how & 0x80)
		say(p3_pack_brief(m.cell, &a));
	else
		return;
	spoil(in, f);
	send(f, false);
}

/* ---- long transfers ---- */

/* The source of a pull makes its bytes readable, or withdraws them. */
static void pump(struct fake *f, struct input *in)
{
	uint8_t how = in_u8(in);
	p3_list_each(it, &rig.nic->pulls) {
		const struct p3_pull *pull = p3_item(it, struct p3_pull, link);
		if (pull->peer != rig_peer(f))
			continue;
		struct p3_xfer *x = fake_xfer(f, pull->xfer_id);
		uint64_t left = pull->length - pull->done;
		uint64_t step = how & 2 ? left : left / 2 + 1;
		p3_set(&x->id, how & 1 ? rig_number(in, f) : pull->xfer_id);
		p3_set(&x->window, how & 8 ? rig_number(in, f)
					   : rig.nic->layout.ctl_len +
						     (how >> 4) * (uint64_t)P3_PAGE);
		p3_set(&x->produced,
			how & 4 ? rig_number(in, f) + pull->done : pull->done + step);
	}
}

/* The reader of an offer takes a piece of it, or says that it is done. */
static void take(struct fake *f, const struct p3_xfer_slot *x, struct input *in)
{
	struct p3_peer_entry *e = fake_entry(f);
	uint8_t how = in_u8(in);
	uint64_t id = p3_xfer_name(x);
	if (x->releasing) {
		p3_set(&fake_xfer(f, x->peer_id)->id, how & 1 ? x->peer_id : 0);
	} else if (x->serving && (how & 2)) {
		p3_set(&fake_xfer(f, x->peer_id)->status, how & 4 ? UINT64_MAX : 0);
		p3_set(&fake_xfer(f, x->peer_id)->released, x->peer_id);
	} else {
		p3_set(&e->bulk_want, how & 8 ? rig_number(in, f) : x->length);
		p3_set(&e->bulk_read, how & 16 ? rig_number(in, f) : x->produced);
		p3_set(&e->bulk_again, x->again);
		p3_set(&e->bulk_slot, how & 32 ? 0 : id);
	}
}

static void read_sources(struct fake *f, struct input *in)
{
	uint32_t which = in_below(in, 4);
	p3_list_each(it, &rig.nic->sources) {
		const struct p3_xfer_slot *x = p3_item(it, struct p3_xfer_slot, link);
		if (x->peer == rig_peer(f) && !which--)
			take(f, x, in);
	}
}

/* ---- single words ---- */

/* Give credit for all or some of the node's cells. */
static void credit(struct fake *f, struct input *in)
{
	struct p3_peer_entry *e = fake_entry(f);
	const struct p3_peer *p = rig_peer(f);
	uint8_t how = in_u8(in);
	uint64_t less = how & 3;
	p3_set(&e->req_credit[p->req_full], p->req_out.pos - less);
	p3_set(&e->rsp_credit[p->rsp_full], p->rsp_out.pos - less);
	if (how & 4)
		p3_set(&e->cold, how & 8 ? 1 : 0);
	if (how & 16)
		p3_set(&((struct p3_doorbell *)f->bell.base)->asleep, how >> 5);
}

static void switch_ring(struct fake *f, struct input *in)
{
	struct p3_peer_entry *e = fake_entry(f);
	const struct p3_layout *l = &rig.nic->layout;
	uint8_t how = in_u8(in);
	bool requests = how & 1;
	uint64_t off = how & 0x80 ? rig_number(in, f)
				  : l->ctl_len + (how >> 2 & 7) * P3_WINDOW_LEN;
	p3_set(requests ? &e->full_req : &e->full_rsp, off);
	memset(m.w, 0, P3_CELL);
	say(p3_pack_switch(P3_REQ_SWITCH));
	spoil(in, f);
	send(f, requests);
	rig_passes(2);
	const struct p3_peer *p = rig_peer(f);
	*(requests ? &f->req_pos : &f->rsp_pos) =
		requests ? p->req_in.pos : p->rsp_in.pos;
}

static uint64_t where(struct fake *f, struct input *in)
{
	const struct p3_layout *l = &rig.nic->layout;
	const struct p3_peer *p = rig_peer(f);
	switch (in_below(in, 6)) {
	case 0:
		return p3_entry_off(l, RIG_NODE) +
		       8ull * in_below(in, sizeof(struct p3_peer_entry) / 8);
	case 1:
		return l->xfers_off +
		       (in_u8(in) % l->nxfers) * (uint64_t)sizeof(struct p3_xfer) +
		       8ull * in_below(in, 7);
	case 2:
		return p->base == f->seg.base
			       ? ring_off(f, &p->req_in) + 8ull * in_below(in, 64)
			       : 0;
	case 3:
		return p->base == f->seg.base
			       ? ring_off(f, &p->rsp_in) + 8ull * in_below(in, 64)
			       : 0;
	case 4:
		return 8ull * in_below(in, sizeof(struct p3_seg_header) / 8);
	default:
		return in_bytes(in, 3) % l->seg_len & ~7ull;
	}
}

static void poke(struct fake *f, struct input *in)
{
	uint64_t off = where(f, in);
	*(uint64_t *)fake_at(f, off, 8) = rig_number(in, f);
}

static void raw_cell(struct fake *f, struct input *in)
{
	uint8_t how = in_u8(in);
	m.ncells = 1;
	for (int i = 1; i < 8; i++)
		m.w[i] = how & 0x80 ? in_bytes(in, 8) : rig_number(in, f);
	m.kind = in_u8(in);
	m.flags = in_u8(in);
	m.says = how & 2 ? 1 : (uint32_t)in_bytes(in, 2);
	send(f, how & 1);
}

static void other_bell(struct fake *f, struct input *in)
{
	rig.fickle = true;
	uint64_t *w = f->bell.base;
	w[in_below(in, 64)] = rig_number(in, f);
}

/* ---- CCI ---- */

static struct p3_cci_endpoint *pick_endpoint(struct input *in)
{
	uint32_t k = in_u8(in);
	return rig.nic->cci.ends ? rig.nic->cci.ep[k % rig.nic->cci.ends] : NULL;
}

/* Return a connection, mostly one with this peer, or NULL. */
static struct p3_cci_conn *pick_conn(struct fake *f, struct input *in)
{
	struct p3_cci_endpoint *ep = pick_endpoint(in);
	uint8_t how = in_u8(in);
	uint32_t skip = how % 4;
	if (!ep)
		return NULL;
	p3_list_each(it, &ep->conns) {
		struct p3_cci_conn *conn = p3_item(it, struct p3_cci_conn, of_ep);
		if ((conn->peer == rig_peer(f) || how >= 0xf0) && !skip--)
			return conn;
	}
	return NULL;
}

static void cci_say(uint32_t kind, uint32_t flags, uint64_t len)
{
	m.kind = kind;
	m.flags = flags;
	m.ncells = m.says = p3_cci_cells(len);
}

static void cci_words(uint64_t word1, uint64_t token, uint64_t tag)
{
	m.w[p3_field_word(P3_CCI_ROOM)] = word1;
	m.w[p3_field_word(P3_CCI_TOKEN)] = token;
	m.w[p3_field_word(P3_CCI_TAG)] = tag;
}

static void cci_msg(struct fake *f, struct input *in)
{
	const struct p3_cci_conn *conn = pick_conn(f, in);
	uint8_t how = in_u8(in);
	uint64_t len = length_of(in) % 1200;
	bool reliable = conn && conn->pub.attribute != CCI_CONN_ATTR_UU, last = how & 7;
	uint32_t flags = (last ? 0u : P3_F_CCI_MORE) | (how & 0x18 ? 0u : P3_F_CCI_LATER);
	cci_words(p3_field_in(P3_CCI_LENGTH, len) |
			  p3_field_in(P3_CCI_MSG_SEQ, conn ? conn->seq_in : 0) |
			  p3_field_in(P3_CCI_ROOM, reliable && last),
		reliable ? how : 0, conn ? conn->tag : rig_number(in, f));
	fill(P3_CCI_DATA, how);
	cci_say(P3_REQ_CCI_MSG, flags, len);
}

static void cci_ask(struct fake *f, struct input *in)
{
	uint8_t how = in_u8(in);
	uint64_t len = length_of(in) % (CCI_CONN_REQ_LEN + 1);
	bool last = how & 7;
	uint64_t total = last ? len : CCI_CONN_REQ_LEN;
	uint32_t flags = (last ? 0u : P3_F_CCI_MORE) | (how & 0x18 ? 0u : P3_F_CCI_LATER);
	(void)f;
	fill(P3_CCI_DATA, how);
	cci_words(p3_field_in(P3_CCI_LENGTH, len) |
			  p3_field_in(P3_CCI_CONNECT_TOTAL, total) |
			  p3_field_in(P3_CCI_CONNECT_ATTRIBUTE, how >> 6) |
			  p3_field_in(P3_CCI_ROOM, last),
		how,
		p3_field_in(P3_CCI_CONNECT_NUMBER, 1 + (how >> 5 & 1)) |
			p3_field_in(P3_CCI_CONNECT_MTU, how & 1 ? 4096 : 128));
	cci_say(P3_REQ_CCI_CONNECT, flags, len);
}

/* WRITE and READ, mostly of a region. */
static void cci_data(struct fake *f, struct input *in)
{
	const struct p3_cci_conn *conn = pick_conn(f, in);
	uint8_t how = in_u8(in);
	struct p3_request r = {.ncells = 1};
	fill(P3_EAGER_DATA, how);
	if (how & 1)
		long_request(f, in, how & 2 ? P3_REQ_PUT : P3_REQ_GET, &r);
	else if (how & 2)
		eager_put(f, in, &r);
	else
		short_get(f, in, &r);
	r.pending |= 1;
	r.hdr = conn ? conn->tag : rig_number(in, f);
	if (conn && how & 0xc)
		r.bits = conn->ep->region[how >> 6].name;
	say(pack(&r));
	m.kind += P3_REQ_CCI_WRITE - P3_REQ_PUT;
}

/* DECIDE, READY and ALIVE. */
static void cci_other(struct fake *f, struct input *in)
{
	const struct p3_cci_conn *conn = pick_conn(f, in);
	uint8_t how = in_u8(in);
	uint32_t kind = how & 3   ? P3_REQ_CCI_DECIDE
			: how & 4 ? P3_REQ_CCI_READY
				  : P3_REQ_CCI_ALIVE;
	for (int i = 4; i < 8; i++)
		m.w[i] = rig_number(in, f);
	cci_words(p3_field_in(P3_CCI_ROOM, kind != P3_REQ_CCI_READY) |
			  p3_field_in(P3_CCI_DECIDE_MTU, kind != P3_REQ_CCI_DECIDE ? 0
							 : how & 8                 ? 128
								   : 4096),
		kind != P3_REQ_CCI_READY ? how | 1u : 0,
		conn ? conn->tag : rig_number(in, f));
	cci_say(kind, kind == P3_REQ_CCI_DECIDE && how & 0x80 ? P3_F_CCI_ACCEPT : 0, 0);
}

/* Answer an operation or a request of this node. */
static void cci_answer(struct fake *f, struct input *in)
{
	const struct p3_cci_conn *conn = pick_conn(f, in);
	uint8_t how = in_u8(in);
	uint32_t kind = how & 0x20   ? P3_REQ_CCI_DECIDE
			: how & 0x40 ? P3_REQ_CCI_CONNECT
				     : P3_REQ_CCI_MSG;
	uint64_t token = conn ? conn->tag : rig_number(in, f);
	if (conn && kind == P3_REQ_CCI_MSG && !p3_list_empty(&conn->fifo)) {
		const struct p3_cci_tx *tx =
			p3_item(conn->fifo.next, struct p3_cci_tx, fifo);
		token = tx->token;
	}
	memset(m.w, 0, P3_CELL);
	cci_words(p3_field_in(P3_CCI_ANSWER_STATUS, how & 0x10 ? how & 7 : 0) |
			  p3_field_in(P3_CCI_ANSWER_KIND, kind),
		token, how & 8 ? rig_number(in, f) : 0);
	m.kind = P3_RSP_CCI;
	m.flags = 0;
	m.ncells = m.says = 1;
}

void wire_cci_step(struct input *in)
{
	static void (*const makes[])(struct fake * f, struct input * in) = {cci_msg,
		cci_msg, cci_data, cci_ask, cci_other, cci_answer, cci_answer,
		cci_answer};
	uint32_t which = in_below(in, 8);
	struct fake *f = rig_pick(in);
	makes[which](f, in);
	spoil(in, f);
	send(f, which < 5);
	rig_passes(1);
}

typedef void step(struct fake *f, struct input *in);

void wire_step(struct input *in)
{
	static step *const steps[] = {request, request, request, request, response,
		response, response, pump, pump, read_sources, read_sources, credit,
		credit, switch_ring, poke, raw_cell, other_bell};
	step *what = steps[in_below(in, sizeof steps / sizeof *steps)];
	what(rig_pick(in), in);
}
