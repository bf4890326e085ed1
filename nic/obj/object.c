/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of objects, and the commands that create and remove them. */
#include "nic/fw.h"

#include <stdlib.h>
#include <string.h>

/* ---- tables ---- */

void p3_table_init(struct p3_table *t, uint32_t elem)
{
	memset(t, 0, sizeof *t);
	t->elem = elem;
	t->free_head = t->free_tail = P3_NONE;
}

void *p3_table_at(struct p3_table *t, uint32_t index)
{
	if (p3_unlikely(index >= P3_TABLE_CHUNKS * P3_TABLE_EACH))
		return NULL;
	/* TABLE.1: a chunk is whole before it is linked. */
	char *chunk = p3_acquire(&t->chunk[index / P3_TABLE_EACH]);
	return p3_likely(chunk != NULL)
		       ? chunk + (size_t)(index % P3_TABLE_EACH) * t->elem
		       : NULL;
}

static void put_free(struct p3_table *t, struct p3_object *o)
{
	o->next_free = P3_NONE;
	if (t->free_tail == P3_NONE)
		t->free_head = o->index;
	else
		((struct p3_object *)p3_table_at(t, t->free_tail))->next_free = o->index;
	t->free_tail = o->index;
}

void p3_table_add(struct p3_table *t, void *chunk)
{
	uint32_t chunks = p3_get(&t->nchunks), first = chunks * P3_TABLE_EACH;
	char *at = chunk;
	for (uint32_t i = 0; i < P3_TABLE_EACH; i++)
		((struct p3_object *)(at + (size_t)i * t->elem))->index = first + i;
	/* TABLE.1 */
	p3_release(&t->chunk[chunks], at);
	p3_set(&t->nchunks, chunks + 1);
	for (uint32_t i = 0; i < P3_TABLE_EACH; i++)
		put_free(t, p3_table_at(t, first + i));
}

/* Allocate an object with an even generation; the caller gives it the next odd one when
 * it is whole. */
void *p3_table_alloc(struct p3_table *t)
{
	if (t->free_head == P3_NONE)
		return NULL;
	struct p3_object *o = p3_table_at(t, t->free_head);
	t->free_head = o->next_free;
	if (t->free_head == P3_NONE)
		t->free_tail = P3_NONE;
	t->live++;
	return o;
}

static void object_born(struct p3_object *o)
{
	p3_release(&o->gen, p3_get(&o->gen) + 1); /* TABLE.2 */
}

void p3_table_kill(struct p3_table *t, struct p3_object *o)
{
	uint32_t gen = p3_get(&o->gen);
	p3_release(&o->gen, gen + (gen & 1)); /* TABLE.2 */
	t->live--;
}

void p3_table_bury(struct p3_table *t, struct p3_object *o)
{
	put_free(t, o);
}

void p3_table_release(struct p3_table *t, struct p3_object *o)
{
	p3_table_kill(t, o);
	p3_table_bury(t, o);
}

void *p3_fw_named(struct p3_nic *n, enum p3_kind kind, uint64_t handle)
{
	static const uint8_t table[] = {
		[P3_KIND_ME] = P3_T_ME, [P3_KIND_MD] = P3_T_MD, [P3_KIND_EQ] = P3_T_EQ};
	return p3_named_in(&n->table[table[kind]], kind, handle);
}

static int most_of(const struct p3_ni *ni, enum p3_table_id id)
{
	return id == P3_T_ME   ? ni->limits.max_mes
	       : id == P3_T_MD ? ni->limits.max_mds
			       : ni->limits.max_eqs;
}

/* Tables and the counts of interfaces have the same order. */
_Static_assert((int)P3_U_ME == (int)P3_T_ME && (int)P3_U_MD == (int)P3_T_MD &&
		       (int)P3_U_EQ == (int)P3_T_EQ,
	"one number for both");

/* Return PTL_OK if interface ni may have one more object, PTL_NO_SPACE, or the table
 * that must grow. */
static int room_for(struct p3_nic *n, enum p3_table_id id, uint32_t ni)
{
	if (n->ni[ni].use[id].cur >= (uint32_t)most_of(&n->ni[ni], id))
		return PTL_NO_SPACE;
	/* call.c adds a chunk and tries again */
	return n->table[id].free_head == P3_NONE ? -(1 + (int)id) : PTL_OK;
}

/* Make an object of interface ni.  Handles do not find it yet: it is not live.  The
 * caller has checked that the table and the interface's limit have room. */
static void *new_object(struct p3_nic *n, enum p3_table_id id, uint32_t ni)
{
	struct p3_object *o = p3_table_alloc(&n->table[id]);
	o->ni = ni;
	p3_use_more(&n->ni[ni], (enum p3_use_id)id);
	return o;
}

static void free_object(struct p3_nic *n, enum p3_table_id id, struct p3_object *o)
{
	p3_use_less(p3_ni_of(n, o), (enum p3_use_id)id);
	p3_table_release(&n->table[id], o);
}

/* ---- network interfaces ---- */

static bool ni_is(struct p3_nic *n, uint32_t ni, uint64_t handle)
{
	if (ni >= P3_JOB_NIS)
		return false;
	uint32_t gen = p3_get(&n->ni[ni].gen);
	return (gen & 1) && handle == p3_handle(P3_KIND_NI, ni, 0, gen);
}

int p3_fw_ni_check(struct p3_nic *n, struct p3_cmd *c)
{
	uint32_t ni = p3_handle_ni(c->handle);
	return ni_is(n, ni, c->handle) ? PTL_OK : PTL_NI_INVALID;
}

static void set_ac(struct p3_ni *ni, uint32_t index, const struct p3_ac *entry)
{
	ni->ac[index] = *entry;
	if (index)
		return;
	ni->ac0_asks_owner = entry->who.mask == 0 && entry->pt_index == PTL_PT_INDEX_ANY;
	ni->ac0_owner = entry->owner;
}

int p3_fw_ni_open(struct p3_nic *n, struct p3_cmd *c)
{
	if (c->ni >= P3_JOB_NIS || (p3_get(&n->ni[c->ni].gen) & 1))
		return PTL_NO_SPACE;
	struct p3_ni *ni = &n->ni[c->ni];
	ni->pid = c->ni_open.pid;
	ni->options = c->ni_open.cray ? P3_MD_CRAY : 0;
	ni->limits = c->ni_open.limits;
	ni->portal = c->ni_open.portals;
	ni->bucket = c->ni_open.buckets;
	ni->bucket_mask = c->ni_open.nbuckets - 1;
	ni->ac = c->ni_open.acs;
	p3_set(&ni->attended, 0);
	ni->opened_ns = p3_now_ns();
	ni->sent_before = p3_get(&n->count[P3_C_SENT]);
	ni->drops = ni->drop_bytes = 0;
	ni->received = ni->received_bytes = 0;
	ni->sent = ni->sent_bytes = 0;
	memset(ni->use, 0, sizeof ni->use);
	memset(ni->aligned, 0, sizeof ni->aligned);
	/* Entry 0 admits any process of the same user to any portal. */
	const struct p3_ac entry = {.valid = true,
		.who = p3_want_id((ptl_process_id_t){PTL_NID_ANY, PTL_PID_ANY}),
		.owner = p3_want_owner(n->conf.uid, PTL_JID_ANY),
		.pt_index = PTL_PT_INDEX_ANY};
	set_ac(ni, 0, &entry);
	uint32_t gen = p3_get(&ni->gen) + 1;
	p3_release(&ni->gen, gen); /* TABLE.2 */
	c->handle_out = p3_handle(P3_KIND_NI, c->ni, 0, gen);
	return PTL_OK;
}

static struct p3_ni *open_ni(struct p3_nic *n, uint64_t handle)
{
	uint32_t ni = p3_handle_ni(handle);
	return ni_is(n, ni, handle) ? &n->ni[ni] : NULL;
}

int p3_fw_ac_entry(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_ni *ni = open_ni(n, c->handle);
	if (!ni)
		return PTL_NI_INVALID;
	if (c->ac.index > (uint32_t)ni->limits.max_ac_index)
		return PTL_AC_INDEX_INVALID;
	if (c->ac.pt_index != PTL_PT_INDEX_ANY &&
		c->ac.pt_index > (uint32_t)ni->limits.max_pt_index)
		return PTL_PT_INDEX_INVALID;
	const struct p3_ac entry = {.valid = true,
		.who = p3_want_id(c->ac.id),
		.owner = p3_want_owner(c->ac.uid, c->ac.jid),
		.pt_index = c->ac.pt_index};
	set_ac(ni, c->ac.index, &entry);
	return PTL_OK;
}

/* Return a register of one p3_use: made, ended, most at once, now. */
static uint64_t use_register(const struct p3_use *u, uint32_t which)
{
	uint64_t value[] = {u->made, u->made - u->cur, u->max, u->cur};
	return value[which];
}

/* Return a register; most operations end in the step that begins them, and are not in
 * p3_use. */
static uint64_t operation_register(const struct p3_ni *ni, uint32_t which)
{
	struct p3_use all = ni->use[P3_U_OP];
	all.made = ni->sent + ni->received;
	if (all.made && !all.max)
		all.max = 1;
	return use_register(&all, which);
}

static uint64_t register_of(const struct p3_ni *ni, uint32_t i)
{
	const uint64_t plain[] = {[PTL_SR_DROP_COUNT] = ni->drops,
		[PTL_SR_DROP_LENGTH] = ni->drop_bytes,
		[PTL_SR_RECV_COUNT] = ni->received,
		[PTL_SR_RECV_LENGTH] = ni->received_bytes,
		[PTL_SR_SEND_COUNT] = ni->sent,
		[PTL_SR_SEND_LENGTH] = ni->sent_bytes,
		[PTL_SR_PTLS_MAX] = ni->use[P3_U_LIST].max,
		[PTL_SR_PTLS_CUR] = ni->use[P3_U_LIST].cur};
	if (i < PTL_SR_MSGS_ALLOC)
		return plain[i];
	if (i < PTL_SR_MES_ALLOC)
		return operation_register(ni, i - PTL_SR_MSGS_ALLOC);
	if (i < PTL_SR_MDS_ALLOC)
		return use_register(&ni->use[P3_U_ME], i - PTL_SR_MES_ALLOC);
	if (i < PTL_SR_EQS_ALLOC)
		return use_register(&ni->use[P3_U_MD], i - PTL_SR_MDS_ALLOC);
	if (i < PTL_SR_MD_ALIGN_128)
		return use_register(&ni->use[P3_U_EQ], i - PTL_SR_EQS_ALLOC);
	return ni->aligned[i - PTL_SR_MD_ALIGN_128];
}

int p3_fw_ni_status(struct p3_nic *n, struct p3_cmd *c)
{
	const struct p3_ni *ni = open_ni(n, c->handle);
	if (!ni)
		return PTL_NI_INVALID;
	if (c->status.index > PTL_SR_MD_ALIGN_8)
		return PTL_SR_INDEX_INVALID;
	c->status.value = (int64_t)register_of(ni, c->status.index);
	return PTL_OK;
}

int p3_fw_whose(struct p3_nic *n, struct p3_cmd *c)
{
	enum p3_kind kind = p3_handle_kind(c->handle);
	uint32_t ni = p3_handle_ni(c->handle);
	bool lives = kind == P3_KIND_NI ? open_ni(n, c->handle) != NULL
		     : kind == P3_KIND_ME || kind == P3_KIND_MD || kind == P3_KIND_EQ
			     ? p3_fw_named(n, kind, c->handle) != NULL
			     : false;
	if (!lives)
		return PTL_HANDLE_INVALID;
	c->handle_out = p3_handle(P3_KIND_NI, ni, 0, p3_get(&n->ni[ni].gen));
	return PTL_OK;
}

/* ---- event queues ---- */

int p3_fw_eq_alloc(struct p3_nic *n, struct p3_cmd *c)
{
	if (!ni_is(n, c->ni, c->handle))
		return PTL_NI_INVALID;
	int rc = room_for(n, P3_T_EQ, c->ni);
	if (rc != PTL_OK)
		return rc;
	struct p3_eq *eq = new_object(n, P3_T_EQ, c->ni);
	eq->n = c->eq.n;
	eq->owed = 0;
	p3_set(&eq->handler, c->eq.handler);
	p3_set(&eq->ni, c->ni);
	if (p3_get(&c->eq.ring->tail))
		p3_evq_reformat(c->eq.ring, c->eq.n, &eq->tx, &eq->rx);
	else
		p3_evq_format(c->eq.ring, c->eq.n, p3_get(&n->life), &eq->tx, &eq->rx);
	eq->nic = n;
	eq->tx.on_lost = p3_fw_why_lost;
	c->handle_out = p3_handle(P3_KIND_EQ, c->ni, eq->o.index, p3_get(&eq->o.gen) + 1);
	p3_release(&eq->rx.name, c->handle_out); /* EVQ.5 */
	object_born(&eq->o);
	p3_fw_mirror_queue(n, eq);
	return PTL_OK;
}

/*
 * Kill a queue.  Descriptors that still name it find its generation changed: no queue.
 * The caller makes sure that its place and its ring are reused only when no reader can
 * be in it.
 */
static void eq_kill(struct p3_nic *n, struct p3_eq *eq, struct p3_eq **dead)
{
	p3_use_less(p3_ni_of(n, &eq->o), P3_U_EQ);
	p3_table_kill(&n->table[P3_T_EQ], &eq->o);
	p3_fw_mirror_no_queue(n, eq);
	eq->next_dead = *dead;
	*dead = eq;
}

int p3_fw_eq_free(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_eq *eq = p3_fw_named(n, P3_KIND_EQ, c->handle);
	if (!eq)
		return PTL_EQ_INVALID;
	c->eq.dead = NULL;
	eq_kill(n, eq, &c->eq.dead);
	n->posted = true; /* threads that wait for its events must look */
	return PTL_OK;
}

int p3_fw_eq_bury(struct p3_nic *n, struct p3_cmd *c)
{
	for (struct p3_eq *eq = c->eq.dead, *next; eq; eq = next) {
		next = eq->next_dead;
		p3_table_bury(&n->table[P3_T_EQ], &eq->o);
	}
	return PTL_OK;
}

/* ---- match entries ---- */

/* The place of a new match entry. */
struct place {
	struct p3_portal *list;
	struct p3_me *base; /* NULL: the list is empty */
	uint32_t position;
};

static bool free_index(struct p3_ni *ni, uint32_t *index_out)
{
	for (uint32_t i = 0; i <= (uint32_t)ni->limits.max_pt_index; i++)
		if (!ni->portal[i].head) {
			*index_out = i;
			return true;
		}
	return false;
}

static int place_at_end(struct p3_ni *ni, struct p3_cmd_me *me, struct place *out)
{
	if (me->any_index && !free_index(ni, &me->pt_index))
		return PTL_PT_FULL;
	if (me->pt_index > (uint32_t)ni->limits.max_pt_index)
		return PTL_PT_INDEX_INVALID;
	struct p3_portal *list = &ni->portal[me->pt_index];
	struct p3_me *base = me->position == PTL_INS_AFTER ? list->tail : list->head;
	*out = (struct place){list, base, me->position};
	return PTL_OK;
}

static int place_by_base(struct p3_nic *n, struct p3_cmd *c, struct place *out)
{
	struct p3_me *base = p3_fw_named(n, P3_KIND_ME, c->me.base);
	if (!base || (c->handle != PTL_INVALID_HANDLE && base->o.ni != c->ni))
		return PTL_ME_INVALID;
	c->ni = (uint16_t)base->o.ni;
	c->me.pt_index = base->pt_index;
	struct p3_portal *list = &n->ni[c->ni].portal[base->pt_index];
	*out = (struct place){list, base, c->me.position};
	return PTL_OK;
}

/* Find the place of a new match entry.  c->handle names the interface; an insertion
 * beside another entry (me.base) may leave it out. */
static int find_place(struct p3_nic *n, struct p3_cmd *c, struct place *out)
{
	bool by_base = c->me.base != PTL_INVALID_HANDLE;
	if ((!by_base || c->handle != PTL_INVALID_HANDLE) && !ni_is(n, c->ni, c->handle))
		return PTL_NI_INVALID;
	int rc = by_base ? place_by_base(n, c, out)
			 : place_at_end(&n->ni[c->ni], &c->me, out);
	if (rc != PTL_OK)
		return rc;
	if (out->list->n >= (uint32_t)n->ni[c->ni].limits.max_me_list)
		return PTL_ME_LIST_TOO_LONG;
	return room_for(n, P3_T_ME, c->ni);
}

static struct p3_me *me_make(
	struct p3_nic *n, struct p3_cmd *c, const struct place *place)
{
	struct p3_me *me = new_object(n, P3_T_ME, c->ni);
	me->id = c->me.id;
	me->who = p3_want_id(c->me.id);
	me->bits = c->me.bits;
	me->ignore = c->me.ignore;
	me->md = NULL;
	me->pt_index = c->me.pt_index;
	me->unlink = c->me.unlink == PTL_UNLINK;
	if (place->list->n == 0)
		p3_use_more(&n->ni[c->ni], P3_U_LIST);
	p3_match_list_insert(&n->ni[c->ni], me, place->base, place->position);
	n->nlong += place->list->n == P3_LONG;
	object_born(&me->o);
	c->handle_out = p3_handle_of(P3_KIND_ME, &me->o);
	return me;
}

static void me_remove(struct p3_nic *n, struct p3_me *me)
{
	struct p3_ni *ni = p3_ni_of(n, &me->o);
	struct p3_portal *list = &ni->portal[me->pt_index];
	n->nlong -= list->n == P3_LONG;
	p3_match_list_remove(ni, me);
	if (list->n == 0)
		p3_use_less(ni, P3_U_LIST);
	free_object(n, P3_T_ME, &me->o);
}

/* The iovec copies that no operation uses, of all NICs of the process.  A host thread
 * frees them: the firmware does not. */
static p3_a64 unused_iovs;

void p3_iov_drop(struct p3_iov *iov)
{
	if (!iov || --iov->refs)
		return;
	uint64_t first = p3_get(&unused_iovs);
	do
		iov->next = (struct p3_iov *)(uintptr_t)first;
	while (!p3_cas64(&unused_iovs, &first, (uintptr_t)iov)); /* IOV.1 */
}

void p3_nic_free_iovs(void)
{
	if (!p3_get(&unused_iovs))
		return;
	uint64_t all = p3_exchange64(&unused_iovs, 0); /* IOV.1 */
	for (struct p3_iov *iov = (struct p3_iov *)(uintptr_t)all, *next; iov;
		iov = next) {
		next = iov->next;
		free(iov);
	}
}

static void md_remove(struct p3_nic *n, struct p3_md *md)
{
	p3_md_forgive_unlink(md);
	p3_iov_drop(md->region.iov);
	md->region.iov = NULL;
	free_object(n, P3_T_MD, &md->o);
}

int p3_fw_me_unlink(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_me *me = p3_fw_named(n, P3_KIND_ME, c->handle);
	if (!me)
		return PTL_ME_INVALID;
	if (me->md && p3_unlikely(me->md->pending)) {
		if (!p3_fw_let_go(n, me->md))
			return PTL_ME_IN_USE;
		me = p3_fw_named(n, P3_KIND_ME, c->handle); /* NULL if that unlinked it */
		if (!me)
			return PTL_ME_INVALID;
	}
	if (me->md)
		md_remove(n, me->md);
	me_remove(n, me);
	return PTL_OK;
}

/* ---- memory descriptors ---- */

static const uint32_t known_options =
	PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | PTL_MD_TRUNCATE |
	PTL_MD_ACK_DISABLE | PTL_MD_IOVEC | PTL_MD_MAX_SIZE | PTL_MD_EVENT_START_DISABLE |
	PTL_MD_EVENT_END_DISABLE | PTL_MD_EVENT_AUTO_UNLINK_ENABLE |
	PTL_MD_EVENT_MANUAL_UNLINK_ENABLE;

static bool wraps(const void *start, uint64_t len)
{
	return (uintptr_t)start + len < len;
}

/* Compute size and bounds of an iovec.  Return false if an element is illegal. */
static bool sum_up(struct p3_region *r)
{
	struct p3_iov *iov = r->iov;
	r->size = 0;
	iov->lo = iov->hi = NULL;
	for (uint32_t i = 0; i < iov->n; i++) {
		char *at = iov->v[i].iov_base;
		uint64_t len = iov->v[i].iov_len;
		if ((!at && len) || wraps(at, len) || r->size + len < r->size)
			return false;
		r->size += len;
		if (len && (!iov->hi || at < iov->lo))
			iov->lo = at;
		if (len && at + len > iov->hi)
			iov->hi = at + len;
	}
	return true;
}

/* Return PTL_OK and the region, or the code for illegal contents. */
static int md_region(
	const struct p3_ni *ni, const struct p3_cmd *c, struct p3_region *out)
{
	const ptl_md_t *md = &c->md.md;
	*out = (struct p3_region){.start = md->start, .size = md->length};
	if (md->options & ~known_options)
		return PTL_MD_ILLEGAL;
	if (md->threshold < 0 && md->threshold != PTL_MD_THRESH_INF)
		return PTL_MD_ILLEGAL;
	if (!md->start && md->length)
		return PTL_MD_ILLEGAL;
	if (!(md->options & PTL_MD_IOVEC))
		return wraps(md->start, md->length) ? PTL_MD_ILLEGAL : PTL_OK;
	if (md->length > (ptl_size_t)ni->limits.max_md_iovecs)
		return PTL_MD_ILLEGAL;
	out->iov = c->md.iov;
	return sum_up(out) ? PTL_OK : PTL_MD_ILLEGAL;
}

static int md_queue(struct p3_nic *n, const struct p3_cmd *c, struct p3_sink *sink_out)
{
	*sink_out = (struct p3_sink){.options = c->md.md.options | n->ni[c->ni].options};
	if (c->md.md.eq_handle == PTL_EQ_NONE)
		return PTL_OK;
	struct p3_eq *eq = p3_fw_named(n, P3_KIND_EQ, c->md.md.eq_handle);
	if (!eq)
		return PTL_EQ_INVALID;
	sink_out->eq = eq;
	sink_out->eq_gen = p3_get(&eq->o.gen);
	return eq->o.ni == c->ni ? PTL_OK : PTL_MD_ILLEGAL;
}

/* The meaning of a descriptor's contents, if they are legal. */
struct meaning {
	struct p3_region region;
	struct p3_sink sink;
};

static int understand(struct p3_nic *n, const struct p3_cmd *c, struct meaning *out)
{
	int rc = md_region(&n->ni[c->ni], c, &out->region);
	return rc == PTL_OK ? md_queue(n, c, &out->sink) : rc;
}

static void md_fill(struct p3_md *md, const ptl_md_t *user, const struct meaning *meaning)
{
	md->region = meaning->region;
	md->sink = meaning->sink;
	md->threshold = user->threshold;
	md->active = user->threshold != 0;
	md->exhausted = false;
	md->local_offset = 0;
	md->snap[1] = (uintptr_t)user->start;
	md->snap[2] = user->length;
	md->snap[3] = user->max_size;
	md->snap[4] = (uintptr_t)user->user_ptr;
	md->snap[5] = (uint64_t)user->options << 32;
}

static void count_alignment(struct p3_ni *ni, const ptl_md_t *md)
{
	for (unsigned i = 0, align = 128; align >= 8; i++, align /= 2)
		if ((uintptr_t)md->start % align == 0) {
			ni->aligned[i]++;
			return;
		}
}

/* Make a descriptor.  The caller has checked that its contents are legal and that the
 * table and the interface's limit have room. */
static struct p3_md *md_make(
	struct p3_nic *n, struct p3_cmd *c, const struct meaning *meaning)
{
	struct p3_md *md = new_object(n, P3_T_MD, c->ni);
	md_fill(md, &c->md.md, meaning);
	md->unlink = c->md.unlink == PTL_UNLINK;
	md->owes_unlink = false;
	md->me = P3_NONE;
	md->pending = 0;
	count_alignment(&n->ni[c->ni], &c->md.md);
	object_born(&md->o);
	c->md.handle_out = md->snap[0] = p3_handle_of(P3_KIND_MD, &md->o);
	return md;
}

static int md_new(struct p3_nic *n, struct p3_cmd *c, struct p3_md **md_out)
{
	struct meaning meaning;
	int rc = understand(n, c, &meaning);
	if (rc == PTL_OK)
		rc = room_for(n, P3_T_MD, c->ni);
	if (rc == PTL_OK)
		*md_out = md_make(n, c, &meaning);
	return rc;
}

static void join(struct p3_me *me, struct p3_md *md)
{
	md->me = me->o.index;
	me->md = md;
}

int p3_fw_md_attach(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_me *me = p3_fw_named(n, P3_KIND_ME, c->handle);
	struct p3_md *md;
	if (!me)
		return PTL_ME_INVALID;
	if (me->md)
		return PTL_ME_IN_USE;
	c->ni = (uint16_t)me->o.ni;
	int rc = md_new(n, c, &md);
	if (rc == PTL_OK)
		join(me, md);
	return rc;
}

int p3_fw_md_bind(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_md *md;
	if (!ni_is(n, c->ni, c->handle))
		return PTL_NI_INVALID;
	return md_new(n, c, &md);
}

/*
 * Return PTL_OK if the condition of a conditional command holds: no event is in the
 * test queue or owed to it.  No message is matched while the command runs, since the
 * thread that runs it also matches.  So the events of each message matched before are
 * in the queue or owed to it, and all other messages are matched after the command.
 */
static int at_rest(struct p3_nic *n, const struct p3_cmd *c)
{
	if (c->md.test_eq == PTL_EQ_NONE)
		return PTL_OK;
	struct p3_eq *eq = p3_fw_named(n, P3_KIND_EQ, c->md.test_eq);
	if (!eq || eq->o.ni != c->ni)
		return PTL_EQ_INVALID;
	return eq->owed || p3_evq_any(&eq->rx) ? PTL_MD_NO_UPDATE : PTL_OK;
}

/* Make a match entry and a descriptor in one step. */
static int memd_new(struct p3_nic *n, struct p3_cmd *c, const struct place *place)
{
	struct meaning meaning;
	int rc = understand(n, c, &meaning);
	if (rc == PTL_OK)
		rc = room_for(n, P3_T_MD, c->ni);
	if (rc == PTL_OK)
		rc = at_rest(n, c);
	if (rc == PTL_OK)
		join(me_make(n, c, place), md_make(n, c, &meaning));
	return rc;
}

int p3_fw_me_attach(struct p3_nic *n, struct p3_cmd *c)
{
	struct place place;
	int rc = find_place(n, c, &place);
	if (rc != PTL_OK)
		return rc;
	if (c->me.with_md)
		return memd_new(n, c, &place);
	(void)me_make(n, c, &place);
	return PTL_OK;
}

/* Describe the descriptor as its user would describe it now. */
static void md_tell(const struct p3_md *md, ptl_md_t *out)
{
	const struct p3_iov *iov = md->region.iov;
	ptl_md_iovec_t *to = out->start;
	uint64_t room = iov && (out->options & PTL_MD_IOVEC) ? out->length : 0;
	for (uint64_t i = 0; i < room && i < iov->n; i++)
		to[i] = iov->v[i];
	struct p3_eq *eq = p3_sink_eq(&md->sink);
	*out = (ptl_md_t){.start = (void *)(uintptr_t)md->snap[1],
		.length = md->snap[2],
		.threshold = md->threshold,
		.max_size = p3_max_size(md),
		.options = (uint32_t)(md->snap[5] >> 32),
		.user_ptr = (void *)(uintptr_t)md->snap[4],
		.eq_handle = eq ? p3_handle_of(P3_KIND_EQ, &eq->o) : PTL_EQ_NONE};
}

/* Replace a descriptor's contents; operations under way keep the former elements. */
static void replace(struct p3_md *md, struct p3_cmd *c, const struct meaning *meaning)
{
	p3_md_forgive_unlink(md);
	p3_iov_drop(md->region.iov);
	md_fill(md, &c->md.md, meaning);
}

/* Return PTL_OK if a descriptor may be updated.  A conditional update also needs that
 * no operation on the descriptor is under way: then no message that was matched before
 * touches the old region any more. */
static int may_update(struct p3_nic *n, const struct p3_cmd *c, const struct p3_md *md)
{
	int rc = at_rest(n, c);
	bool conditional = c->md.test_eq != PTL_EQ_NONE;
	return rc == PTL_OK && conditional && md->pending ? PTL_MD_NO_UPDATE : rc;
}

int p3_fw_md_update(struct p3_nic *n, struct p3_cmd *c)
{
	struct meaning meaning;
	struct p3_md *md = p3_fw_named(n, P3_KIND_MD, c->handle);
	if (!md)
		return PTL_MD_INVALID;
	c->ni = (uint16_t)md->o.ni;
	int legal = c->md.change ? understand(n, c, &meaning) : PTL_OK;
	int rest = may_update(n, c, md);
	if (legal != PTL_OK || rest == PTL_EQ_INVALID)
		return legal != PTL_OK ? legal : rest;
	if (md->region.iov && (c->old.options & PTL_MD_IOVEC) && !c->old.start &&
		c->old.length)
		return PTL_SEGV;
	md_tell(md, &c->old);
	if (!c->md.change)
		return PTL_OK;
	if (rest == PTL_OK)
		replace(md, c, &meaning);
	return rest;
}

void p3_fw_md_drop(struct p3_nic *n, struct p3_md *md)
{
	struct p3_me *me =
		md->me == P3_NONE ? NULL : p3_table_at(&n->table[P3_T_ME], md->me);
	md_remove(n, md);
	if (!me)
		return;
	me->md = NULL;
	if (me->unlink)
		me_remove(n, me);
}

int p3_fw_md_unlink(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_md *md = p3_fw_named(n, P3_KIND_MD, c->handle);
	if (!md)
		return PTL_MD_INVALID;
	if (p3_unlikely(md->pending)) {
		if (!p3_fw_let_go(n, md))
			return PTL_MD_IN_USE;
		md = p3_fw_named(n, P3_KIND_MD, c->handle); /* NULL if that unlinked it */
		if (!md)
			return PTL_MD_INVALID;
	}
	p3_fw_md_drop(n, md);
	return PTL_OK;
}

/* ---- the end of an interface ---- */

/* Remove all objects of an interface.  Add its queues to dead: threads may still read
 * them, so p3_fw_eq_bury() frees their places later. */
static void drop_objects(struct p3_nic *n, uint32_t ni, struct p3_eq **dead)
{
	for (uint32_t i = 0; i < p3_get(&n->table[P3_T_MD].nchunks) * P3_TABLE_EACH;
		i++) {
		struct p3_md *md = p3_table_at(&n->table[P3_T_MD], i);
		if ((p3_get(&md->o.gen) & 1) && md->o.ni == ni)
			md_remove(n, md);
	}
	for (uint32_t i = 0; i < p3_get(&n->table[P3_T_ME].nchunks) * P3_TABLE_EACH;
		i++) {
		struct p3_me *me = p3_table_at(&n->table[P3_T_ME], i);
		if ((p3_get(&me->o.gen) & 1) && me->o.ni == ni)
			me_remove(n, me);
	}
	for (uint32_t i = 0; i < p3_get(&n->table[P3_T_EQ].nchunks) * P3_TABLE_EACH;
		i++) {
		struct p3_eq *eq = p3_table_at(&n->table[P3_T_EQ], i);
		if ((p3_get(&eq->o.gen) & 1) && eq->o.ni == ni)
			eq_kill(n, eq, dead);
	}
}

int p3_fw_ni_close(struct p3_nic *n, struct p3_cmd *c)
{
	uint32_t i = p3_handle_ni(c->handle);
	if (!ni_is(n, i, c->handle))
		return PTL_NI_INVALID;
	struct p3_ni *ni = &n->ni[i];
	p3_release(&ni->gen, p3_get(&ni->gen) + 1); /* TABLE.2 */
	p3_fw_forget(n, i);
	p3_fw_look_no_more(n);
	c->ni_open.dead = NULL;
	drop_objects(n, i, &c->ni_open.dead);
	c->ni_open.portals = ni->portal;
	c->ni_open.buckets = ni->bucket;
	c->ni_open.acs = ni->ac;
	ni->portal = NULL;
	ni->bucket = NULL;
	ni->ac = NULL;
	n->posted = true;
	return PTL_OK;
}

static void forget_sends(struct p3_link *list)
{
	p3_list_each(it, list) {
		struct p3_pending *t = p3_item(it, struct p3_pending, link);
		if (t->send.md)
			p3_span_forget(&t->send);
	}
}

/* Forget operations under way when the NIC ends, which drops their references to iovec
 * copies. */
static void forget_spans(struct p3_nic *n)
{
	p3_list_each(it, &n->pulls) {
		struct p3_pull *pull = p3_item(it, struct p3_pull, link);
		if (pull->span.md)
			p3_span_forget(&pull->span);
	}
	p3_list_each(src, &n->sources) {
		struct p3_xfer_slot *x = p3_item(src, struct p3_xfer_slot, link);
		if (x->serving && x->span.md)
			p3_span_forget(&x->span);
	}
	forget_sends(&n->nobody.queue);
	forget_sends(&n->absent.queue);
	for (uint32_t i = 0; i < n->conf.nnodes; i++) {
		forget_sends(&n->peer[i].queue);
		forget_sends(&n->peer[i].outstanding);
	}
}

void p3_fw_drop_all(struct p3_nic *n)
{
	struct p3_cmd c = {.op = P3_OP_EQ_BURY};
	c.eq.dead = NULL;
	forget_spans(n);
	p3_fw_look_no_more(n);
	for (uint32_t i = 0; i < P3_JOB_NIS; i++) {
		struct p3_ni *ni = &n->ni[i];
		uint32_t gen = p3_get(&ni->gen);
		p3_release(&ni->gen, gen + (gen & 1)); /* TABLE.2 */
		drop_objects(n, i, &c.eq.dead);
		free(ni->portal);
		free(ni->bucket);
		free(ni->ac);
		ni->portal = NULL;
		ni->bucket = NULL;
		ni->ac = NULL;
	}
	for (struct p3_eq *eq = c.eq.dead; eq; eq = eq->next_dead)
		p3_evq_retire(&eq->rx, p3_this_thread());
	(void)p3_fw_eq_bury(n, &c);
}
