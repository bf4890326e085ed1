/* SPDX-License-Identifier: BSD-3-Clause */
/* The model: match lists, descriptors, queues, operations. */
#include "model.h"

#include <string.h>

/* ---- arguments ---- */

struct m_eq *m_eq(struct model *m, unsigned node, struct m_ref r)
{
	struct m_eq *eq = &m->node[node].eq[r.slot % M_EQS];
	return r.how == M_SLOT && eq->live ? eq : NULL;
}

struct m_me *m_me(struct model *m, unsigned node, struct m_ref r)
{
	struct m_me *me = &m->node[node].me[r.slot % M_MES];
	return r.how == M_SLOT && me->live ? me : NULL;
}

struct m_md *m_md(struct model *m, unsigned node, struct m_ref r)
{
	struct m_md *md = &m->node[node].md[r.slot % M_MDS];
	return r.how == M_SLOT && md->live ? md : NULL;
}

static unsigned live_mes(const struct m_node *n)
{
	unsigned live = 0;
	for (unsigned i = 0; i < M_MES; i++)
		live += n->me[i].live;
	return live;
}

static unsigned live_mds(const struct m_node *n)
{
	unsigned live = 0;
	for (unsigned i = 0; i < M_MDS; i++)
		live += n->md[i].live;
	return live;
}

static unsigned live_eqs(const struct m_node *n)
{
	unsigned live = 0;
	for (unsigned i = 0; i < M_EQS; i++)
		live += n->eq[i].live;
	return live;
}

/* ---- queues ---- */

static bool is_start(ptl_event_kind_t k)
{
	return k == PTL_EVENT_GET_START || k == PTL_EVENT_PUT_START ||
	       k == PTL_EVENT_GETPUT_START || k == PTL_EVENT_REPLY_START ||
	       k == PTL_EVENT_SEND_START;
}

static bool is_end(ptl_event_kind_t k)
{
	return k == PTL_EVENT_GET_END || k == PTL_EVENT_PUT_END ||
	       k == PTL_EVENT_GETPUT_END || k == PTL_EVENT_REPLY_END ||
	       k == PTL_EVENT_SEND_END;
}

static bool is_target_start(ptl_event_kind_t k)
{
	return k == PTL_EVENT_GET_START || k == PTL_EVENT_PUT_START ||
	       k == PTL_EVENT_GETPUT_START;
}

/* Return true if a must be deposited before b.  Both are of one queue and one batch. */
bool m_event_before(const struct m_event *a, const struct m_event *b)
{
	if (b->type == PTL_EVENT_UNLINK)
		return a->md == b->md && a->type != PTL_EVENT_UNLINK;
	if (a->class == b->class)
		return is_start(a->type) && is_end(b->type);
	if (a->type == PTL_EVENT_SEND_START && b->type == PTL_EVENT_ACK)
		return a->call == b->call;
	if (a->type == PTL_EVENT_SEND_START && b->type == PTL_EVENT_SEND_START)
		return a->call < b->call;
	if (is_target_start(a->type) && is_target_start(b->type))
		return a->initiator == b->initiator && a->call < b->call;
	return false;
}

uint64_t m_eq_oldest(const struct m_eq *eq)
{
	uint64_t unread = eq->written - eq->read;
	return unread > eq->size ? eq->written - eq->size : eq->read;
}

struct m_eq *m_md_eq(const struct m_md *md)
{
	struct m_eq *eq = md->eq;
	return eq && eq->live && eq->number == md->eq_number ? eq : NULL;
}

static void deposit(
	struct model *m, const struct m_md *md, struct m_event *ev, ptl_event_kind_t type)
{
	struct m_eq *eq = m_md_eq(md);
	ev->type = type;
	ev->batch = m->batch;
	ev->burst = m->in_burst;
	if (m->in_burst && md->unlink && (is_end(type) || type == PTL_EVENT_ACK))
		m->cause[m->ncauses++ % M_CAUSES] = *ev;
	if (!eq)
		return;
	if (is_start(type) && md->given.options & PTL_MD_EVENT_START_DISABLE)
		return;
	if (is_end(type) && md->given.options & PTL_MD_EVENT_END_DISABLE)
		return;
	eq->ring[eq->written++ % M_RING] = *ev;
}

/* ---- memory ---- */

static void touched(
	struct model *m, unsigned node, struct m_seg seg, bool write, bool remote)
{
	if (!seg.len || m->ntouch == M_TOUCHES)
		return;
	m->touch[m->ntouch++] = (struct m_touch){.node = (uint8_t)node,
		.write = write,
		.remote = remote,
		.call = m->calls,
		.at = seg.at,
		.len = seg.len};
}

/* Return the part of a region's i-th segment that lies in off..off+len. */
static struct m_seg part_of(
	const struct m_region *r, unsigned i, uint64_t off, uint64_t len, uint64_t *skip)
{
	uint64_t begin = 0;
	for (unsigned k = 0; k < i; k++)
		begin += r->seg[k].len;
	uint64_t end = begin + r->seg[i].len;
	uint64_t from = off > begin ? off : begin;
	uint64_t to = off + len < end ? off + len : end;
	if (to <= from)
		return (struct m_seg){0, 0};
	*skip = from - off;
	return (struct m_seg){
		(uint32_t)(r->seg[i].at + (from - begin)), (uint32_t)(to - from)};
}

static void region_read(struct model *m, const struct m_md *md, uint64_t off,
	uint64_t len, unsigned char *to, bool remote)
{
	for (unsigned i = 0; i < md->region.n; i++) {
		uint64_t skip = 0;
		struct m_seg s = part_of(&md->region, i, off, len, &skip);
		memcpy(to + skip, m->node[md->node].memory + s.at, s.len);
		touched(m, md->node, s, false, remote);
	}
}

static void region_write(struct model *m, const struct m_md *md, uint64_t off,
	uint64_t len, const unsigned char *from, bool remote)
{
	for (unsigned i = 0; i < md->region.n; i++) {
		uint64_t skip = 0;
		struct m_seg s = part_of(&md->region, i, off, len, &skip);
		memcpy(m->node[md->node].memory + s.at, from + skip, s.len);
		touched(m, md->node, s, true, remote);
	}
}

/* ---- match lists ---- */

static void list_remove(struct m_list *l, const struct m_me *me)
{
	unsigned i = 0;
	while (l->me[i] != me)
		i++;
	for (; i + 1 < l->n; i++)
		l->me[i] = l->me[i + 1];
	l->n--;
}

static void list_insert(struct m_list *l, unsigned where, struct m_me *me)
{
	for (unsigned i = l->n; i > where; i--)
		l->me[i] = l->me[i - 1];
	l->me[where] = me;
	l->n++;
}

static unsigned list_find(const struct m_list *l, const struct m_me *me)
{
	unsigned i = 0;
	while (l->me[i] != me)
		i++;
	return i;
}

/* ---- ends of objects ---- */

static void me_remove(struct model *m, unsigned node, struct m_me *me)
{
	list_remove(&m->node[node].list[me->pt], me);
	me->live = false;
}

static void md_detach(struct model *m, struct m_md *md)
{
	struct m_me *me = md->me;
	md->live = false;
	if (!me)
		return;
	me->md = NULL;
	if (me->unlink)
		me_remove(m, md->node, me);
}

/* Unlink a descriptor after an operation's end, if that is due. */
static void maybe_unlink(struct model *m, struct m_md *md, const struct m_event *cause)
{
	struct m_event ev = *cause;
	if (!md->unlink || md->active || !md->exhausted)
		return;
	md_detach(m, md);
	deposit(m, md, &ev, PTL_EVENT_UNLINK);
}

static void threshold_dec(struct m_md *md)
{
	if (md->threshold == PTL_MD_THRESH_INF || md->threshold == 0)
		return;
	md->threshold--;
	if (md->threshold == 0) {
		md->active = false;
		md->exhausted = true;
	}
}

/* ---- messages ---- */

enum message { PUT, GET, GETPUT };

struct request {
	enum message kind;
	unsigned from, to;
	uint32_t pt, ac;
	uint64_t bits, remote_offset, length, hdr;
	bool ack;
	struct m_md *md; /* for the ACK or the reply */
	uint32_t md_number;
	uint64_t local_offset;
};

static struct m_event event_of(
	struct model *m, const struct request *q, const struct m_md *md, unsigned who)
{
	struct m_event ev = {.call = m->calls,
		.class = ++m->classes,
		.md = md->number,
		.initiator = (uint8_t)who,
		.pt = q->pt,
		.bits = q->bits,
		.rlength = q->length,
		.snap = md->given};
	ev.snap.threshold = md->threshold;
	return ev;
}

/* Return true if the descriptor that a request names is still the same. */
static bool still_there(const struct request *q)
{
	return q->md->live && q->md->number == q->md_number;
}

static void on_ack(struct model *m, const struct request *q, uint64_t mlength)
{
	if (!still_there(q) || !m_md_eq(q->md)) {
		m->node[q->from].drops++;
		return;
	}
	threshold_dec(q->md);
	struct m_event ev = event_of(m, q, q->md, q->to);
	ev.mlength = mlength;
	ev.offset = q->remote_offset;
	deposit(m, q->md, &ev, PTL_EVENT_ACK);
	maybe_unlink(m, q->md, &ev);
}

static void on_reply(struct model *m, const struct request *q, uint64_t length)
{
	if (!still_there(q)) {
		m->node[q->from].drops++;
		return;
	}
	struct m_md *md = q->md;
	uint64_t size = md->region.size;
	uint64_t space = size > q->local_offset ? size - q->local_offset : 0;
	threshold_dec(md);
	struct m_event ev = event_of(m, q, md, q->to);
	ev.mlength = length < space ? length : space;
	ev.offset = q->remote_offset;
	deposit(m, md, &ev, PTL_EVENT_REPLY_START);
	region_write(m, md, q->local_offset, ev.mlength, m->reply, false);
	deposit(m, md, &ev, PTL_EVENT_REPLY_END);
	maybe_unlink(m, md, &ev);
}

/* Return true if these are ids of the sender.  Nodes on one host may share a nid. */
static bool id_matches(const struct model *m, uint8_t nid, uint8_t pid, unsigned from)
{
	bool same_host = nid < m->n && m->node[nid].id.nid == m->node[from].id.nid;
	return (nid == M_ANY || same_host) && (pid == M_ANY || pid == from);
}

static bool admitted(
	const struct model *m, const struct m_node *n, const struct request *q)
{
	if (q->pt > (uint32_t)n->limits.max_pt_index)
		return false;
	if (q->ac > (uint32_t)n->limits.max_ac_index || q->ac >= M_ACS)
		return false;
	const struct m_ac *e = &n->ac[q->ac];
	if (!e->valid || !id_matches(m, e->id_nid, e->id_pid, q->from))
		return false;
	if (e->id_uid == M_OTHER || e->id_jid == M_OTHER)
		return false;
	return e->pt == PTL_PT_INDEX_ANY || e->pt == q->pt;
}

static bool accepts(const struct m_md *md, const struct request *q, uint64_t *offset,
	uint64_t *mlength)
{
	unsigned options = md->given.options;
	if ((q->kind == PUT || q->kind == GETPUT) && !(options & PTL_MD_OP_PUT))
		return false;
	if ((q->kind == GET || q->kind == GETPUT) && !(options & PTL_MD_OP_GET))
		return false;
	if (!md->active)
		return false;
	*offset = options & PTL_MD_MANAGE_REMOTE ? q->remote_offset : md->local_offset;
	if (*offset > md->region.size)
		return false;
	uint64_t room = md->region.size - *offset;
	*mlength = q->length <= room ? q->length : room;
	return q->length <= room || options & PTL_MD_TRUNCATE;
}

static struct m_md *match(
	struct model *m, const struct request *q, uint64_t *offset, uint64_t *mlength)
{
	struct m_list *l = &m->node[q->to].list[q->pt];
	for (unsigned i = 0; i < l->n; i++) {
		struct m_me *me = l->me[i];
		if (!id_matches(m, me->id_nid, me->id_pid, q->from))
			continue;
		if ((q->bits ^ me->bits) & ~me->ignore)
			continue;
		if (me->md && accepts(me->md, q, offset, mlength))
			return me->md;
	}
	return NULL;
}

static void account(struct m_md *md, uint64_t mlength)
{
	threshold_dec(md);
	if (md->given.options & PTL_MD_MANAGE_REMOTE)
		return;
	md->local_offset += mlength;
	if (md->given.options & PTL_MD_MAX_SIZE &&
		md->region.size - md->local_offset < md->given.max_size) {
		md->active = false;
		md->exhausted = true;
	}
}

/* Exchange: read and write the target's memory. */
static void exchange(struct model *m, const struct request *q, struct m_md *md,
	uint64_t offset, uint64_t mlength)
{
	if (q->kind != PUT)
		region_read(m, md, offset, mlength, m->reply, true);
	if (q->kind != GET)
		region_write(m, md, offset, mlength, m->data, true);
}

static void on_request(struct model *m, const struct request *q)
{
	static const ptl_event_kind_t start[] = {
		PTL_EVENT_PUT_START, PTL_EVENT_GET_START, PTL_EVENT_GETPUT_START};
	static const ptl_event_kind_t end[] = {
		PTL_EVENT_PUT_END, PTL_EVENT_GET_END, PTL_EVENT_GETPUT_END};
	struct m_node *n = &m->node[q->to];
	uint64_t offset = 0, mlength = 0;
	struct m_md *md = admitted(m, n, q) ? match(m, q, &offset, &mlength) : NULL;
	if (!md) {
		n->drops++;
		return;
	}
	bool ack = q->ack && !(md->given.options & PTL_MD_ACK_DISABLE);
	account(md, mlength);
	struct m_event ev = event_of(m, q, md, q->from);
	ev.mlength = mlength;
	ev.offset = offset;
	ev.hdr = q->kind == GET ? 0 : q->hdr;
	deposit(m, md, &ev, start[q->kind]);
	exchange(m, q, md, offset, mlength);
	deposit(m, md, &ev, end[q->kind]);
	maybe_unlink(m, md, &ev);
	if (q->kind != PUT)
		on_reply(m, q, mlength);
	else if (ack)
		on_ack(m, q, mlength);
}

/* ---- initiator ---- */

/* Account for the sending side of a put. */
static void send(struct model *m, struct m_md *md, uint64_t offset, struct request *q)
{
	threshold_dec(md);
	struct m_event ev = event_of(m, q, md, q->from);
	ev.mlength = q->length;
	ev.offset = offset;
	ev.hdr = q->hdr;
	deposit(m, md, &ev, PTL_EVENT_SEND_START);
	region_read(m, md, offset, q->length, m->data, false);
	deposit(m, md, &ev, PTL_EVENT_SEND_END);
	maybe_unlink(m, md, &ev);
}

/* Put to a process that does not exist: the operation begins and fails. */
static void put_to_nobody(struct model *m, struct m_md *md, const struct request *q)
{
	threshold_dec(md);
	struct m_event ev = event_of(m, q, md, q->from);
	ev.offset = q->local_offset;
	ev.hdr = q->hdr;
	deposit(m, md, &ev, PTL_EVENT_SEND_START);
	ev.fail = true;
	deposit(m, md, &ev, PTL_EVENT_SEND_END);
	ev.fail = false;
	maybe_unlink(m, md, &ev);
}

static void get_from_nobody(struct model *m, struct m_md *md, const struct request *q)
{
	threshold_dec(md);
	struct m_event ev = event_of(m, q, md, q->to);
	ev.offset = q->remote_offset;
	deposit(m, md, &ev, PTL_EVENT_REPLY_START);
	ev.fail = true;
	deposit(m, md, &ev, PTL_EVENT_REPLY_END);
	ev.fail = false;
	maybe_unlink(m, md, &ev);
}

static bool beyond(const struct m_md *md, uint64_t offset, uint64_t length)
{
	return offset > md->region.size || length > md->region.size - offset;
}

static struct request request_of(
	struct model *m, const struct m_op *op, enum message kind, struct m_md *md)
{
	(void)m;
	return (struct request){.kind = kind,
		.from = op->node,
		.to = op->target,
		.pt = op->pt,
		.ac = op->ac,
		.bits = op->bits,
		.remote_offset = op->remote_offset,
		.length = op->region ? op->length : md->region.size,
		.hdr = op->hdr,
		.md = md,
		.md_number = md->number,
		.local_offset = op->region ? op->local_offset : 0};
}

static uint32_t faults_of_move(const struct m_op *op, const struct m_md *md)
{
	uint32_t faults = op->target == M_ANY ? M_CODE(PTL_PROCESS_INVALID) : 0;
	if (!md || md->threshold == 0)
		faults |= M_CODE(PTL_MD_INVALID);
	if (md && op->region && beyond(md, op->local_offset, op->length))
		faults |= M_CODE(PTL_MD_ILLEGAL);
	return faults;
}

static uint32_t put(struct model *m, const struct m_op *op)
{
	struct m_md *md = m_md(m, op->node, op->md);
	uint32_t faults = faults_of_move(op, md);
	if (faults)
		return faults;
	m->calls++;
	struct request q = request_of(m, op, PUT, md);
	q.ack = op->ack && m_md_eq(md);
	if (op->target == M_OTHER) {
		put_to_nobody(m, md, &q);
		return M_CODE(PTL_OK);
	}
	send(m, md, q.local_offset, &q);
	on_request(m, &q);
	return M_CODE(PTL_OK);
}

static uint32_t get(struct model *m, const struct m_op *op)
{
	struct m_md *md = m_md(m, op->node, op->md);
	uint32_t faults = faults_of_move(op, md);
	if (faults)
		return faults;
	m->calls++;
	struct request q = request_of(m, op, GET, md);
	if (op->target == M_OTHER)
		get_from_nobody(m, md, &q);
	else
		on_request(m, &q);
	return M_CODE(PTL_OK);
}

static uint32_t getput(struct model *m, const struct m_op *op)
{
	struct m_md *get_md = m_md(m, op->node, op->md);
	struct m_md *put_md = m_md(m, op->node, op->md2);
	uint32_t faults = faults_of_move(op, get_md);
	if (!put_md || put_md->threshold == 0)
		faults |= M_CODE(PTL_MD_INVALID);
	uint64_t most = (uint64_t)m->node[op->node].limits.max_getput_md;
	uint64_t length = op->region ? op->length : put_md ? put_md->region.size : 0;
	if (length > most)
		faults |= M_CODE(PTL_MD_ILLEGAL);
	if (put_md && op->region && beyond(put_md, op->local_offset2, op->length))
		faults |= M_CODE(PTL_MD_ILLEGAL);
	if (faults)
		return faults;
	m->calls++;
	struct request q = request_of(m, op, GETPUT, get_md);
	q.length = length;
	if (op->target == M_OTHER) {
		q.local_offset = op->region ? op->local_offset2 : 0;
		put_to_nobody(m, put_md, &q);
		return M_CODE(PTL_OK);
	}
	send(m, put_md, op->region ? op->local_offset2 : 0, &q);
	on_request(m, &q);
	return M_CODE(PTL_OK);
}

/* ---- match entries ---- */

static uint32_t faults_of_new_me(struct model *m, const struct m_op *op)
{
	struct m_node *n = &m->node[op->node];
	return (int)live_mes(n) >= n->limits.max_mes ? M_CODE(PTL_NO_SPACE) : 0;
}

static uint32_t fault_of_list(const struct m_node *n, const struct m_list *l)
{
	return (int)l->n >= n->limits.max_me_list ? M_CODE(PTL_ME_LIST_TOO_LONG) : 0;
}

static uint32_t faults_of_attach(struct model *m, const struct m_op *op)
{
	struct m_node *n = &m->node[op->node];
	uint32_t faults = faults_of_new_me(m, op);
	if (op->ni_fault)
		faults |= M_CODE(PTL_NI_INVALID);
	if (op->pt > (uint32_t)n->limits.max_pt_index)
		faults |= M_CODE(PTL_PT_INDEX_INVALID);
	else
		faults |= fault_of_list(n, &n->list[op->pt]);
	return faults;
}

static uint32_t faults_of_insert(struct model *m, const struct m_op *op)
{
	struct m_node *n = &m->node[op->node];
	struct m_me *base = m_me(m, op->node, op->me);
	uint32_t faults = faults_of_new_me(m, op);
	if (!base)
		return faults | M_CODE(PTL_ME_INVALID);
	return faults | fault_of_list(n, &n->list[base->pt]);
}

static struct m_me *new_me(struct model *m, const struct m_op *op, uint32_t pt)
{
	struct m_me *me = &m->node[op->node].me[op->slot % M_MES];
	*me = (struct m_me){.live = true,
		.unlink = op->me_unlink,
		.id_nid = op->id_nid,
		.id_pid = op->id_pid,
		.pt = pt,
		.bits = op->bits,
		.ignore = op->ignore};
	return me;
}

static struct m_me *me_at_end(struct model *m, const struct m_op *op)
{
	struct m_list *l = &m->node[op->node].list[op->pt];
	struct m_me *me = new_me(m, op, op->pt);
	list_insert(l, op->before ? 0 : l->n, me);
	return me;
}

static struct m_me *me_beside(struct model *m, const struct m_op *op)
{
	struct m_me *base = m_me(m, op->node, op->me);
	struct m_list *l = &m->node[op->node].list[base->pt];
	unsigned where = list_find(l, base) + (op->before ? 0 : 1);
	struct m_me *me = new_me(m, op, base->pt);
	list_insert(l, where, me);
	return me;
}

static uint32_t me_attach(struct model *m, const struct m_op *op)
{
	uint32_t faults = faults_of_attach(m, op);
	if (faults)
		return faults;
	(void)me_at_end(m, op);
	return M_CODE(PTL_OK);
}

/* Attach; the library has chosen op->pt, or none. */
static uint32_t me_attach_any(struct model *m, const struct m_op *op)
{
	struct m_node *n = &m->node[op->node];
	uint32_t faults = faults_of_new_me(m, op);
	bool full = true;
	for (int pt = 0; pt <= n->limits.max_pt_index; pt++)
		full = full && n->list[pt].n > 0;
	faults |= op->ni_fault ? M_CODE(PTL_NI_INVALID) : 0;
	faults |= full ? M_CODE(PTL_PT_FULL) : 0;
	if (faults)
		return faults;
	if (op->pt > (uint32_t)n->limits.max_pt_index || n->list[op->pt].n > 0)
		return 0; /* a bad choice */
	(void)me_at_end(m, op);
	return M_CODE(PTL_OK);
}

static uint32_t me_insert(struct model *m, const struct m_op *op)
{
	uint32_t faults = faults_of_insert(m, op);
	if (faults)
		return faults;
	(void)me_beside(m, op);
	return M_CODE(PTL_OK);
}

static uint32_t me_unlink(struct model *m, const struct m_op *op)
{
	struct m_me *me = m_me(m, op->node, op->me);
	if (!me)
		return M_CODE(PTL_ME_INVALID);
	if (me->md)
		me->md->live = false;
	me_remove(m, op->node, me);
	return M_CODE(PTL_OK);
}

/* ---- memory descriptors ---- */

ptl_md_t model_md(struct model *m, unsigned node, unsigned slot, const struct m_md_arg *a)
{
	struct m_node *n = &m->node[node];
	ptl_md_t md = {.start = n->lib_memory + a->seg[0].at,
		.length = a->seg[0].len,
		.threshold = a->fault == M_MD_THRESHOLD ? -2 : a->threshold,
		.max_size = a->max_size,
		.options = a->options | (a->fault == M_MD_OPTION ? 1u << 20 : 0),
		.user_ptr = (void *)(uintptr_t)a->user};
	if (a->options & PTL_MD_IOVEC) {
		md.start = n->iov[slot];
		md.length = a->fault == M_MD_IOVS
				    ? (ptl_size_t)n->limits.max_md_iovecs + 1
				    : a->nseg;
	} else if (a->fault == M_MD_WRAPS) {
		md.length = UINT64_MAX - (uintptr_t)md.start + 2;
	}
	if (a->fault == M_MD_NULL_START) {
		md.start = NULL;
		md.length = md.length ? md.length : 1;
	} else if (a->nseg == 0 && !(a->options & PTL_MD_IOVEC)) {
		md.start = NULL;
		md.length = 0;
	}
	return md;
}

static uint32_t faults_of_md(struct model *m, unsigned node, const struct m_md_arg *a)
{
	uint32_t faults = a->fault != M_MD_FINE ? M_CODE(PTL_MD_ILLEGAL) : 0;
	if (a->eq.how != M_NONE && !m_eq(m, node, a->eq))
		faults |= M_CODE(PTL_EQ_INVALID);
	return faults;
}

static uint32_t fault_of_new_md(struct model *m, unsigned node)
{
	struct m_node *n = &m->node[node];
	return (int)live_mds(n) >= n->limits.max_mds ? M_CODE(PTL_NO_SPACE) : 0;
}

static void describe(
	struct model *m, struct m_md *md, unsigned slot, const struct m_md_arg *a)
{
	md->region = (struct m_region){.n = a->nseg};
	for (unsigned i = 0; i < a->nseg; i++) {
		md->region.seg[i] = a->seg[i];
		md->region.size += a->seg[i].len;
	}
	md->given = model_md(m, md->node, slot, a);
	md->eq = m_eq(m, md->node, a->eq);
	md->eq_number = md->eq ? md->eq->number : 0;
	md->threshold = a->threshold;
	md->active = a->threshold != 0;
	md->exhausted = false;
	md->local_offset = 0;
}

static struct m_md *new_md(struct model *m, const struct m_op *op, unsigned slot)
{
	struct m_md *md = &m->node[op->node].md[slot % M_MDS];
	*md = (struct m_md){.live = true,
		.node = op->node,
		.number = ++m->numbers,
		.unlink = op->md_unlink};
	describe(m, md, slot % M_MDS, &op->arg);
	return md;
}

static void attach(struct m_me *me, struct m_md *md)
{
	me->md = md;
	md->me = me;
}

static uint32_t md_attach(struct model *m, const struct m_op *op)
{
	struct m_me *me = m_me(m, op->node, op->me);
	uint32_t faults =
		faults_of_md(m, op->node, &op->arg) | fault_of_new_md(m, op->node);
	if (!me)
		faults |= M_CODE(PTL_ME_INVALID);
	else if (me->md)
		faults |= M_CODE(PTL_ME_IN_USE);
	if (faults)
		return faults;
	attach(me, new_md(m, op, op->slot));
	return M_CODE(PTL_OK);
}

static uint32_t md_bind(struct model *m, const struct m_op *op)
{
	uint32_t faults =
		faults_of_md(m, op->node, &op->arg) | fault_of_new_md(m, op->node);
	if (op->ni_fault)
		faults |= M_CODE(PTL_NI_INVALID);
	if (faults)
		return faults;
	(void)new_md(m, op, op->slot);
	return M_CODE(PTL_OK);
}

static uint32_t md_unlink(struct model *m, const struct m_op *op)
{
	struct m_md *md = m_md(m, op->node, op->md);
	if (!md)
		return M_CODE(PTL_MD_INVALID);
	md_detach(m, md);
	return M_CODE(PTL_OK);
}

/* Return the faults that a test queue makes. */
static uint32_t faults_of_test(struct model *m, const struct m_op *op)
{
	struct m_eq *eq = m_eq(m, op->node, op->eq);
	if (op->eq.how == M_NONE)
		return 0;
	if (!eq)
		return M_CODE(PTL_EQ_INVALID);
	return eq->written != eq->read ? M_CODE(PTL_MD_NO_UPDATE) : 0;
}

static uint32_t md_update(struct model *m, const struct m_op *op)
{
	struct m_md *md = m_md(m, op->node, op->md);
	uint32_t faults = faults_of_test(m, op);
	if (!md)
		faults |= M_CODE(PTL_MD_INVALID);
	if (op->keep)
		faults &= ~M_CODE(PTL_MD_NO_UPDATE);
	else
		faults |= faults_of_md(m, op->node, &op->arg);
	if (faults)
		return faults;
	if (!op->keep)
		describe(m, md, op->md.slot % M_MDS, &op->arg);
	return M_CODE(PTL_OK);
}

static uint32_t memd_attach(struct model *m, const struct m_op *op)
{
	uint32_t faults = faults_of_attach(m, op) | faults_of_md(m, op->node, &op->arg) |
			  fault_of_new_md(m, op->node);
	if (faults)
		return faults;
	attach(me_at_end(m, op), new_md(m, op, op->slot2));
	return M_CODE(PTL_OK);
}

static uint32_t memd_insert(struct model *m, const struct m_op *op)
{
	uint32_t faults = faults_of_insert(m, op) | faults_of_md(m, op->node, &op->arg) |
			  fault_of_new_md(m, op->node);
	if (op->kind == M_MEMD_POST) {
		faults |= faults_of_test(m, op);
		faults |= op->ni_fault ? M_CODE(PTL_NI_INVALID) : 0;
	}
	if (faults)
		return faults;
	attach(me_beside(m, op), new_md(m, op, op->slot2));
	return M_CODE(PTL_OK);
}

/* ---- queues ---- */

static uint32_t eq_alloc(struct model *m, const struct m_op *op)
{
	struct m_node *n = &m->node[op->node];
	struct m_eq *eq = &n->eq[op->slot % M_EQS];
	uint32_t faults = op->ni_fault ? M_CODE(PTL_NI_INVALID) : 0;
	if (op->count && (int)live_eqs(n) >= n->limits.max_eqs)
		faults |= M_CODE(PTL_NO_SPACE);
	if (faults)
		return faults;
	if (op->count == 0)
		return M_CODE(PTL_OK); /* PTL_EQ_NONE */
	eq->live = true;
	eq->has_handler = op->handler;
	eq->number = ++m->numbers;
	eq->size = op->count;
	eq->written = eq->read = 0;
	return M_CODE(PTL_OK);
}

static uint32_t eq_free(struct model *m, const struct m_op *op)
{
	struct m_eq *eq = m_eq(m, op->node, op->eq);
	if (!eq)
		return M_CODE(PTL_EQ_INVALID);
	eq->live = false;
	return M_CODE(PTL_OK);
}

/* Return the first answer; the caller compares the event. */
static uint32_t eq_get(struct model *m, const struct m_op *op)
{
	struct m_eq *eq = m_eq(m, op->node, op->eq);
	if (!eq)
		return M_CODE(PTL_EQ_INVALID);
	if (eq->written == eq->read)
		return M_CODE(PTL_EQ_EMPTY);
	return M_CODE(m_eq_oldest(eq) == eq->read ? PTL_OK : PTL_EQ_DROPPED);
}

static uint32_t eq_poll(struct model *m, const struct m_op *op)
{
	uint32_t codes = 0;
	for (unsigned i = 0; i < op->npoll; i++) {
		struct m_op one = *op;
		one.eq = op->poll[i];
		codes |= eq_get(m, &one);
	}
	if (op->npoll == 0 || codes & M_CODE(PTL_EQ_INVALID))
		return M_CODE(PTL_EQ_INVALID);
	return codes == M_CODE(PTL_EQ_EMPTY) ? codes : codes & ~M_CODE(PTL_EQ_EMPTY);
}

/* ---- the rest ---- */

static uint32_t ac_entry(struct model *m, const struct m_op *op)
{
	struct m_node *n = &m->node[op->node];
	uint32_t faults = op->ni_fault ? M_CODE(PTL_NI_INVALID) : 0;
	if (op->ac > (uint32_t)n->limits.max_ac_index)
		faults |= M_CODE(PTL_AC_INDEX_INVALID);
	if (op->pt != PTL_PT_INDEX_ANY && op->pt > (uint32_t)n->limits.max_pt_index)
		faults |= M_CODE(PTL_PT_INDEX_INVALID);
	if (faults)
		return faults;
	n->ac[op->ac % M_ACS] = (struct m_ac){.valid = true,
		.id_nid = op->id_nid,
		.id_pid = op->id_pid,
		.id_uid = op->id_uid,
		.id_jid = op->id_jid,
		.pt = op->pt};
	return M_CODE(PTL_OK);
}

static uint32_t handle(struct model *m, const struct m_op *op)
{
	bool lives = m_md(m, op->node, op->md) != NULL;
	return M_CODE(lives ? PTL_OK : PTL_HANDLE_INVALID);
}

static uint32_t store(struct model *m, const struct m_op *op)
{
	unsigned char *p = m->node[op->node].memory + op->at;
	for (uint64_t i = 0; i < op->length; i++)
		p[i] = (unsigned char)(op->hdr + i * 37 + (i >> 8));
	return M_CODE(PTL_OK);
}

static uint32_t status(struct model *m, const struct m_op *op)
{
	(void)m;
	return M_CODE(op->ni_fault ? PTL_NI_INVALID : PTL_OK);
}

/* ---- interface ---- */

/*
 * Return true if a descriptor is both ends of an operation and unlinks itself: the
 * specification does not say whether its SEND or its PUT is over first, and so which of
 * them unlinks it.
 */
static bool meets_its_end(const struct m_node *n, const struct m_op *op, struct m_ref r)
{
	const struct m_md *md = &n->md[r.slot % M_MDS];
	return op->target == op->node && r.how == M_SLOT && md->live && md->me &&
	       md->unlink;
}

bool model_skips(const struct model *m, const struct m_op *op)
{
	const struct m_node *n = &m->node[op->node];
	switch (op->kind) {
	case M_GETPUT:
		return meets_its_end(n, op, op->md) || meets_its_end(n, op, op->md2);
	case M_PUT:
	case M_GET:
		return meets_its_end(n, op, op->md);
	case M_EQ_ALLOC:
		return n->eq[op->slot % M_EQS].live;
	case M_ME_ATTACH:
	case M_ME_ATTACH_ANY:
	case M_ME_INSERT:
		return n->me[op->slot % M_MES].live;
	case M_MD_ATTACH:
	case M_MD_BIND:
		return n->md[op->slot % M_MDS].live;
	case M_MEMD_ATTACH:
	case M_MEMD_INSERT:
	case M_MEMD_POST:
		return n->me[op->slot % M_MES].live || n->md[op->slot2 % M_MDS].live;
	default:
		return false;
	}
}

uint32_t model_call(struct model *m, const struct m_op *op)
{
	typedef uint32_t call(struct model * m, const struct m_op *op);
	static call *const calls[M_KINDS] = {
		[M_EQ_ALLOC] = eq_alloc,
		[M_EQ_FREE] = eq_free,
		[M_EQ_GET] = eq_get,
		[M_EQ_PEEK] = eq_get,
		[M_EQ_POLL] = eq_poll,
		[M_ME_ATTACH] = me_attach,
		[M_ME_ATTACH_ANY] = me_attach_any,
		[M_ME_INSERT] = me_insert,
		[M_ME_UNLINK] = me_unlink,
		[M_MD_ATTACH] = md_attach,
		[M_MD_BIND] = md_bind,
		[M_MD_UNLINK] = md_unlink,
		[M_MD_UPDATE] = md_update,
		[M_MEMD_ATTACH] = memd_attach,
		[M_MEMD_INSERT] = memd_insert,
		[M_MEMD_POST] = memd_insert,
		[M_PUT] = put,
		[M_GET] = get,
		[M_GETPUT] = getput,
		[M_AC_ENTRY] = ac_entry,
		[M_STATUS] = status,
		[M_HANDLE] = handle,
		[M_STORE] = store,
	};
	return calls[op->kind](m, op);
}

void model_pause(struct model *m)
{
	m->batch++;
	m->ntouch = 0;
	m->in_burst = false;
}

void model_reset(struct model *m)
{
	m->batch = m->calls = m->classes = m->numbers = m->ncauses = 0;
	model_pause(m);
	for (unsigned i = 0; i < m->n; i++) {
		struct m_node *n = &m->node[i];
		n->drops = 0;
		for (unsigned k = 0; k < M_EQS; k++)
			n->eq[k].live = false;
		memset(n->me, 0, sizeof n->me);
		memset(n->md, 0, sizeof n->md);
		memset(n->list, 0, sizeof n->list);
		memset(n->ac, 0, sizeof n->ac);
	}
}
