/* SPDX-License-Identifier: BSD-3-Clause */
/* A generator of random programs. */
#include "model/model.h"

#define BIT_VALUES 4u
#define OPENING    10u /* first operations of each node */

static uint32_t below(struct generator *g, uint32_t n)
{
	return (uint32_t)((random_next(&g->state) >> 32) * n >> 32);
}

static bool percent(struct generator *g, unsigned p)
{
	return below(g, 100) < p;
}

void generate_begin(struct generator *g, uint64_t seed)
{
	g->state = seed * 0x2545f4914f6cdd1du + 1;
	g->nodes = 2 + below(g, M_NODES - 1);
	g->longs = percent(g, 50) ? 1 : below(g, 16);
	g->made = 0;
	g->faults = percent(g, 50) ? 1 : below(g, 8);
	g->bursts = percent(g, 40) ? 0 : below(g, 70);
	g->iovecs = percent(g, 30) ? 0 : below(g, 50);
	g->events = 20 + below(g, 80);
	if (percent(g, 12)) { /* many operations are under way at a time */
		g->longs = 35;
		g->bursts = 85;
	}
}

/* ---- arguments ---- */

static uint64_t length(struct generator *g)
{
	if (percent(g, g->longs))
		return 5000 + below(g, percent(g, 60) ? 15000 : 195000);
	switch (below(g, 8)) {
	case 0:
		return below(g, 3);
	case 1:
	case 2:
	case 3:
		return below(g, 65);
	case 4:
	case 5:
		return below(g, 600);
	default:
		return below(g, percent(g, 20) ? 4200 : 1200);
	}
}

static uint64_t match_bits(struct generator *g)
{
	static const uint64_t high[] = {0, 0, 0, (uint64_t)1 << 63, (uint64_t)5 << 31};
	return below(g, BIT_VALUES) | high[below(g, 5)];
}

static uint64_t ignore_bits(struct generator *g)
{
	static const uint64_t masks[] = {
		0, 0, 0, 1, 2, 3, UINT64_MAX, (uint64_t)1 << 63, ~(uint64_t)1};
	return masks[below(g, sizeof masks / sizeof *masks)];
}

static uint32_t portal(struct generator *g)
{
	static const uint32_t some[] = {0, 0, 0, 0, 1, 1, 1, 2, 63};
	if (percent(g, g->faults))
		return percent(g, 50) ? 64 : below(g, 65000);
	return some[below(g, sizeof some / sizeof *some)];
}

static uint8_t who(struct generator *g)
{
	unsigned i = below(g, 3 * g->nodes);
	return (uint8_t)(percent(g, 1) ? M_OTHER : i < g->nodes ? i : M_ANY);
}

static struct m_ref odd(struct generator *g)
{
	static const uint8_t hows[] = {M_NONE, M_INVALID, M_ZERO, M_OTHER_KIND};
	return (struct m_ref){.how = hows[below(g, 4)]};
}

/* Choose a live object of n slots with this probability, else any slot. */
#define PICK(g, array, n)                                                                \
	({                                                                               \
		uint8_t pick_ = (uint8_t)below(g, n);                                    \
		for (unsigned try_ = 0; try_ < (n) && !(array)[pick_].live; try_++)      \
			pick_ = (uint8_t)((pick_ + 1u) % (n));                           \
		pick_;                                                                   \
	})

#define REF(g, array, n)                                                                 \
	(percent(g, (g)->faults) ? odd(g)                                                \
		: percent(g, 4)  ? (struct m_ref){M_SLOT, (uint8_t)below(g, n)}          \
				 : (struct m_ref){M_SLOT, PICK(g, array, n)})

/* Choose a free slot, if there is one. */
#define FREE(g, array, n)                                                                \
	({                                                                               \
		uint8_t free_ = (uint8_t)below(g, n);                                    \
		for (unsigned try_ = 0; try_ < (n) && (array)[free_].live; try_++)       \
			free_ = (uint8_t)((free_ + 1u) % (n));                           \
		free_;                                                                   \
	})

static unsigned options(struct generator *g)
{
	static const unsigned ops[] = {0, PTL_MD_OP_PUT, PTL_MD_OP_PUT, PTL_MD_OP_GET,
		PTL_MD_OP_PUT | PTL_MD_OP_GET};
	unsigned o = ops[percent(g, 60) ? 4 : below(g, 4)];
	if (percent(g, 40))
		o |= PTL_MD_MANAGE_REMOTE;
	if (percent(g, 35))
		o |= PTL_MD_TRUNCATE;
	if (percent(g, 10))
		o |= PTL_MD_ACK_DISABLE;
	if (percent(g, 20))
		o |= PTL_MD_MAX_SIZE;
	if (percent(g, 20))
		o |= PTL_MD_EVENT_START_DISABLE;
	if (percent(g, 15))
		o |= PTL_MD_EVENT_END_DISABLE;
	return o;
}

static int threshold(struct generator *g)
{
	if (percent(g, 6))
		return 0;
	return percent(g, 45) ? PTL_MD_THRESH_INF
			      : 1 + (int)below(g, percent(g, 70) ? 4 : 12);
}

static void iovec(struct generator *g, struct m_md_arg *a, uint64_t len)
{
	a->nseg = (uint8_t)below(g, M_IOVS + 1);
	uint32_t at = below(g, M_ARENA - (uint32_t)len - 512);
	for (unsigned i = 0; i < a->nseg; i++) {
		uint32_t most = (uint32_t)(len / a->nseg) + 1;
		a->seg[i] = (struct m_seg){at, percent(g, 15) ? 0 : below(g, most + 1)};
		at += a->seg[i].len + below(g, 40);
	}
	if (a->nseg && percent(g, 30)) { /* not in the order of the addresses */
		struct m_seg first = a->seg[0];
		a->seg[0] = a->seg[a->nseg - 1];
		a->seg[a->nseg - 1] = first;
	}
}

static void fault_of_md(struct generator *g, struct m_md_arg *a)
{
	a->fault = (uint8_t)(1 + below(g, 6));
	bool iov = a->options & PTL_MD_IOVEC;
	if (!iov && (a->fault == M_MD_IOVS || a->fault == M_MD_IOV_NULL))
		a->fault = M_MD_NULL_START;
	if (iov && (a->fault == M_MD_WRAPS || (a->nseg == 0 && a->fault != M_MD_IOVS)))
		a->fault = M_MD_OPTION;
	if (!iov && a->nseg == 0 && a->fault == M_MD_WRAPS)
		a->fault = M_MD_THRESHOLD;
}

static struct m_md_arg md_arg(struct generator *g, const struct m_node *n, bool bound)
{
	struct m_md_arg a = {.threshold = threshold(g),
		.options = options(g),
		.user = below(g, 1000),
		.eq = REF(g, n->eq, M_EQS)};
	uint64_t len = length(g);
	if (bound && percent(g, 50))
		a.threshold = PTL_MD_THRESH_INF;
	if (bound && len < 5000 && percent(g, 50))
		len = 4096;
	if (percent(g, 10))
		a.eq = (struct m_ref){.how = M_NONE};
	if (percent(g, 50))
		len = len * 3 > 200000 ? len : len * 3;
	a.max_size = percent(g, 10) ? len + below(g, 3) : len * below(g, 100) / 100;
	if (percent(g, g->iovecs)) {
		a.options |= PTL_MD_IOVEC;
		iovec(g, &a, len);
	} else if (len || percent(g, 50)) {
		a.nseg = 1;
		a.seg[0].len = (uint32_t)len;
		a.seg[0].at = below(g, M_ARENA - (uint32_t)len);
	}
	if (percent(g, g->faults))
		fault_of_md(g, &a);
	return a;
}

/* ---- operations ---- */

static void fill_match(struct generator *g, struct m_op *op)
{
	op->pt = portal(g);
	op->id_nid = who(g);
	op->id_pid = percent(g, 60) ? op->id_nid : who(g);
	op->bits = match_bits(g);
	op->ignore = ignore_bits(g);
	op->me_unlink = percent(g, 40);
	op->before = percent(g, 40);
}

static void gen_eq_alloc(struct generator *g, struct m_op *op)
{
	op->count = percent(g, 3) ? 0 : 1u << below(g, 9);
	op->handler = percent(g, 25);
}

static void gen_queue(struct generator *g, struct m_op *op)
{
	op->count = 1 + below(g, percent(g, 50) ? 4 : 24);
}

static void gen_poll(struct generator *g, const struct m_node *n, struct m_op *op)
{
	op->npoll = (uint8_t)(percent(g, g->faults) ? 0 : 1 + below(g, M_POLLS));
	for (unsigned i = 0; i < op->npoll; i++)
		op->poll[i] = REF(g, n->eq, M_EQS);
}

static bool wants(const struct m_md *md, enum m_kind kind)
{
	unsigned o = md->given.options;
	if (!md->active || (kind != M_GET && !(o & PTL_MD_OP_PUT)))
		return false;
	return kind == M_PUT || o & PTL_MD_OP_GET;
}

/* Return an entry of the target, preferably one whose descriptor accepts such
 * operations. */
static const struct m_me *aimed_at(
	struct generator *g, const struct m_node *n, enum m_kind kind)
{
	const struct m_me *me = &n->me[PICK(g, n->me, M_MES)];
	for (unsigned i = 0; i < 8; i++) {
		if (me->live && me->md && wants(me->md, kind))
			return me;
		me = &n->me[PICK(g, n->me, M_MES)];
	}
	return me;
}

/* Choose parameters that match an entry of the target. */
static void aim(struct generator *g, const struct model *m, struct m_op *op)
{
	const struct m_node *n = &m->node[op->target];
	const struct m_me *me = aimed_at(g, n, op->kind);
	op->pt = portal(g);
	op->bits = match_bits(g);
	op->remote_offset = percent(g, 50) ? 0 : length(g);
	op->length = length(g);
	if (!me->live || percent(g, 8))
		return;
	op->pt = me->pt;
	op->bits = me->bits ^ (random_next(&g->state) & me->ignore & 3);
	if (!me->md)
		return;
	uint64_t size = me->md->region.size;
	bool managed = me->md->given.options & PTL_MD_MANAGE_REMOTE;
	op->remote_offset = percent(g, 5) ? size + below(g, 2) : below(g, (uint32_t)size);
	uint64_t at = managed ? op->remote_offset : me->md->local_offset;
	uint64_t room = size > at ? size - at : 0;
	op->length = percent(g, 15)   ? room + below(g, 2)
		     : percent(g, 30) ? below(g, (uint32_t)room / 4 + 1)
				      : below(g, (uint32_t)room + 1);
}

/* Choose a descriptor for an operation, seldom an unsuitable one. */
static struct m_ref mover(struct generator *g, const struct m_node *n)
{
	struct m_ref r = REF(g, n->md, M_MDS);
	for (unsigned i = 0; i < 6; i++) {
		const struct m_md *md = &n->md[r.slot % M_MDS];
		if (r.how != M_SLOT || (md->live && md->threshold && md->region.size))
			return r;
		if (percent(g, 5))
			return r;
		r = REF(g, n->md, M_MDS);
	}
	return r;
}

static void region(struct generator *g, const struct m_md *md, struct m_op *op)
{
	uint64_t size = md->region.size;
	if (op->length > size)
		op->length = size;
	op->local_offset = below(g, (uint32_t)(size - op->length) + 1);
	if (!percent(g, g->faults))
		return;
	if (percent(g, 50))
		op->local_offset = size - op->length + 1;
	else
		op->length = percent(g, 50) ? UINT64_MAX - below(g, 3) : size + 1;
}

static void swapped_region(struct generator *g, const struct m_node *n, struct m_op *op)
{
	uint64_t size = n->md[op->md2.slot % M_MDS].region.size;
	if (op->length > size && !percent(g, g->faults))
		op->length = size;
	uint64_t spare = size > op->length ? size - op->length : 0;
	op->local_offset2 = below(g, (uint32_t)spare + 1);
}

static void gen_move(struct generator *g, const struct model *m, struct m_op *op)
{
	const struct m_node *n = &m->node[op->node];
	op->target = (uint8_t)below(g, g->nodes);
	op->md = mover(g, n);
	op->md2 = percent(g, 10) ? op->md : mover(g, n);
	aim(g, m, op);
	op->ac = percent(g, 85) ? 0 : below(g, percent(g, 80) ? 5 : 70000);
	op->hdr = random_next(&g->state);
	op->ack = percent(g, 60);
	op->region = percent(g, op->kind == M_GETPUT ? 90 : 70);
	if (op->kind == M_GETPUT && op->length > 256 && !percent(g, 5))
		op->length = below(g, 256);
	if (op->region)
		region(g, &n->md[op->md.slot % M_MDS], op);
	if (op->region && op->kind == M_GETPUT)
		swapped_region(g, n, op);
	op->burst = percent(g, g->bursts);
	if (percent(g, g->faults) && percent(g, 20))
		op->target = percent(g, 50) ? M_ANY : M_OTHER;
}

static void gen_ac(struct generator *g, struct m_op *op)
{
	op->ac = percent(g, 10) ? 0 : 1 + below(g, 3);
	op->id_nid = who(g);
	op->id_pid = percent(g, 70) ? M_ANY : who(g);
	op->id_uid = percent(g, 10) ? M_OTHER : percent(g, 50) ? M_ANY : 0;
	op->id_jid = percent(g, 10) ? M_OTHER : percent(g, 50) ? M_ANY : 0;
	op->pt = percent(g, 60) ? PTL_PT_INDEX_ANY : portal(g);
	if (op->ac == 0) { /* most requests name it */
		op->id_nid = op->id_pid = percent(g, 80) ? M_ANY : op->id_nid;
		op->id_uid = op->id_jid = M_ANY;
		op->pt = percent(g, 80) ? PTL_PT_INDEX_ANY : op->pt;
	}
	if (percent(g, g->faults))
		op->ac = 5 + below(g, 3);
}

static void gen_store(struct generator *g, struct m_op *op)
{
	op->length = below(g, 3000);
	op->at = below(g, M_ARENA - 3000);
	op->hdr = random_next(&g->state);
}

static enum m_kind event_kind(struct generator *g)
{
	unsigned i = below(g, 100);
	return i < 70 ? M_EQ_GET : i < 85 ? M_EQ_POLL : M_EQ_PEEK;
}

static enum m_kind object_kind(struct generator *g)
{
	static const uint8_t kinds[] = {M_EQ_ALLOC, M_EQ_ALLOC, M_EQ_FREE, M_ME_ATTACH,
		M_ME_ATTACH, M_ME_ATTACH, M_ME_ATTACH_ANY, M_ME_INSERT, M_ME_INSERT,
		M_ME_UNLINK, M_ME_UNLINK, M_ME_UNLINK, M_MD_ATTACH, M_MD_ATTACH,
		M_MD_ATTACH, M_MD_ATTACH, M_MD_ATTACH, M_MD_BIND, M_MD_BIND, M_MD_BIND,
		M_MD_UNLINK, M_MD_UNLINK, M_MD_UNLINK, M_MD_UPDATE, M_MD_UPDATE,
		M_MD_UPDATE, M_MEMD_ATTACH, M_MEMD_ATTACH, M_MEMD_ATTACH, M_MEMD_INSERT,
		M_MEMD_POST, M_MEMD_POST};
	return kinds[below(g, sizeof kinds)];
}

static enum m_kind kind(struct generator *g)
{
	unsigned i = below(g, 100);
	if (i < 35)
		return M_PUT;
	if (i < 47)
		return M_GET;
	if (i < 55)
		return M_GETPUT;
	if (i < 72)
		return percent(g, g->events) ? event_kind(g) : M_PUT;
	if (i < 97)
		return object_kind(g);
	static const uint8_t rest[] = {M_AC_ENTRY, M_STATUS, M_HANDLE, M_STORE};
	return rest[below(g, 4)];
}

/* Choose a descriptor to unlink, first an exhausted one. */
static struct m_ref worn_md(struct generator *g, const struct m_node *n)
{
	uint8_t from = (uint8_t)below(g, M_MDS);
	for (unsigned i = 0; i < M_MDS; i++) {
		uint8_t k = (uint8_t)((from + i) % M_MDS);
		if (n->md[k].live && !n->md[k].active)
			return (struct m_ref){M_SLOT, k};
	}
	return REF(g, n->md, M_MDS);
}

static struct m_ref worn_me(struct generator *g, const struct m_node *n)
{
	uint8_t from = (uint8_t)below(g, M_MES);
	for (unsigned i = 0; i < M_MES; i++) {
		uint8_t k = (uint8_t)((from + i) % M_MES);
		if (n->me[k].live && !(n->me[k].md && n->me[k].md->active))
			return (struct m_ref){M_SLOT, k};
	}
	return REF(g, n->me, M_MES);
}

/* Choose the first operations, which make the objects to work on. */
static enum m_kind first_kind(unsigned i)
{
	static const uint8_t kinds[] = {M_EQ_ALLOC, M_EQ_ALLOC, M_MD_BIND, M_MD_BIND,
		M_MEMD_ATTACH, M_MEMD_ATTACH, M_MEMD_ATTACH, M_MD_BIND, M_EQ_ALLOC,
		M_MEMD_ATTACH};
	return kinds[i % sizeof kinds];
}

static void kind_and_node(struct generator *g, struct m_op *op)
{
	unsigned i = g->made++;
	op->node = (uint8_t)below(g, g->nodes);
	op->kind = (uint8_t)kind(g);
	if (i < g->nodes * OPENING) {
		op->node = (uint8_t)(i / OPENING);
		op->kind = (uint8_t)first_kind(i % OPENING);
	}
}

struct m_op generate_op(struct generator *g, const struct model *m)
{
	struct m_op op = {0};
	kind_and_node(g, &op);
	const struct m_node *n = &m->node[op.node];
	op.md = REF(g, n->md, M_MDS);
	op.me = REF(g, n->me, M_MES);
	op.eq = REF(g, n->eq, M_EQS);
	op.ni_fault = percent(g, g->faults) && percent(g, 20);
	fill_match(g, &op);
	switch (op.kind) {
	case M_EQ_ALLOC:
		op.slot = FREE(g, n->eq, M_EQS);
		gen_eq_alloc(g, &op);
		break;
	case M_EQ_GET:
		gen_queue(g, &op);
		break;
	case M_EQ_POLL:
		gen_poll(g, n, &op);
		break;
	case M_ME_ATTACH:
	case M_ME_ATTACH_ANY:
	case M_ME_INSERT:
		op.slot = FREE(g, n->me, M_MES);
		break;
	case M_MD_ATTACH:
		for (unsigned i = 0; i < 4 && n->me[op.me.slot % M_MES].md; i++)
			op.me = REF(g, n->me, M_MES);
		/* fall through */
	case M_MD_BIND:
		op.slot = FREE(g, n->md, M_MDS);
		op.arg = md_arg(g, n, op.kind == M_MD_BIND);
		break;
	case M_MD_UNLINK:
		op.md = percent(g, 80) ? worn_md(g, n) : op.md;
		break;
	case M_ME_UNLINK:
		op.me = percent(g, 60) ? worn_me(g, n) : op.me;
		break;
	case M_MD_UPDATE:
		op.md = percent(g, 40) ? worn_md(g, n) : op.md;
		op.keep = percent(g, 25);
		op.arg = md_arg(g, n, false);
		if (percent(g, 30))
			op.eq = (struct m_ref){.how = M_NONE};
		break;
	case M_MEMD_POST:
		if (percent(g, 30))
			op.eq = (struct m_ref){.how = M_NONE};
		/* fall through */
	case M_MEMD_ATTACH:
	case M_MEMD_INSERT:
		op.slot = FREE(g, n->me, M_MES);
		op.slot2 = FREE(g, n->md, M_MDS);
		op.arg = md_arg(g, n, false);
		break;
	case M_PUT:
	case M_GET:
	case M_GETPUT:
		gen_move(g, m, &op);
		break;
	case M_AC_ENTRY:
		gen_ac(g, &op);
		break;
	case M_STORE:
		gen_store(g, &op);
		break;
	default:
		break;
	}
	op.md_unlink = percent(g, 50);
	return op;
}
