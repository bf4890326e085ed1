/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of objects, and the commands that make and unmake them. */
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
	if (index >= P3_TABLE_CHUNKS * P3_TABLE_EACH)
		return NULL;
	/* TABLE.1: a chunk is whole before it is linked. */
	char *chunk = p3_acquire(&t->chunk[index / P3_TABLE_EACH]);
	return chunk ? chunk + (size_t)(index % P3_TABLE_EACH) * t->elem : NULL;
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

/* The object still has an even generation: give it the next odd one when it is whole. */
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

void p3_table_release(struct p3_table *t, struct p3_object *o)
{
	uint32_t gen = p3_get(&o->gen);
	p3_release(&o->gen, gen + (gen & 1)); /* TABLE.2 */
	t->live--;
	put_free(t, o);
}

void *p3_fw_named(struct p3_nic *n, enum p3_kind kind, uint64_t handle)
{
	static const uint8_t table[] = {
		[P3_KIND_ME] = P3_T_ME, [P3_KIND_MD] = P3_T_MD, [P3_KIND_EQ] = P3_T_EQ};
	if (p3_handle_kind(handle) != kind)
		return NULL;
	struct p3_object *o =
		p3_table_at(&n->table[table[kind]], p3_handle_index(handle));
	uint32_t gen = p3_handle_gen(handle);
	if (!o || !(gen & 1) || !p3_lives(o, gen) || o->ni != p3_handle_ni(handle))
		return NULL;
	return o;
}

/* A new object of interface ni, not yet live; NULL with *rc_out: why. */
static void *new_object(struct p3_nic *n, enum p3_table_id id, uint32_t ni, uint32_t used,
	int most, int *rc_out)
{
	if (used >= (uint32_t)most) {
		*rc_out = PTL_NO_SPACE;
		return NULL;
	}
	struct p3_object *o = p3_table_alloc(&n->table[id]);
	if (!o)
		*rc_out = -(1 + (int)id); /* call.c adds a chunk and comes again */
	else
		o->ni = ni;
	return o;
}

/* ---- network interfaces ---- */

static bool ni_is(struct p3_nic *n, uint32_t ni, uint64_t handle)
{
	uint32_t gen = p3_get(&n->ni[ni].gen);
	return (gen & 1) && handle == p3_handle(P3_KIND_NI, ni, 0, gen);
}

int p3_fw_ni_check(struct p3_nic *n, struct p3_cmd *c)
{
	uint32_t ni = p3_handle_ni(c->handle);
	return ni < P3_JOB_NIS && ni_is(n, ni, c->handle) ? PTL_OK : PTL_NI_INVALID;
}

int p3_fw_ni_open(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_ni *ni = &n->ni[c->ni];
	if (p3_get(&ni->gen) & 1)
		return PTL_NO_SPACE;
	ni->pid = c->ni_open.pid;
	ni->limits = c->ni_open.limits;
	ni->portal = c->ni_open.portals;
	ni->ac = c->ni_open.acs;
	ni->nme = ni->nmd = ni->neq = 0;
	ni->drops = 0;
	/* Same user, any process, any portal. */
	ni->ac[0] = (struct p3_ac){.valid = true,
		.id = {PTL_NID_ANY, PTL_PID_ANY},
		.uid = n->conf.uid,
		.jid = PTL_JID_ANY,
		.pt_index = PTL_PT_INDEX_ANY};
	uint32_t gen = p3_get(&ni->gen) + 1;
	p3_release(&ni->gen, gen); /* TABLE.2 */
	c->handle_out = p3_handle(P3_KIND_NI, c->ni, 0, gen);
	return PTL_OK;
}

/* ---- event queues ---- */

int p3_fw_eq_alloc(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_ni *ni = &n->ni[c->ni];
	int rc = PTL_OK;
	if (!ni_is(n, c->ni, c->handle))
		return PTL_NI_INVALID;
	struct p3_eq *eq =
		new_object(n, P3_T_EQ, c->ni, ni->neq, ni->limits.max_eqs, &rc);
	if (!eq)
		return rc;
	eq->n = c->eq.n;
	eq->owed = 0;
	eq->handler = c->eq.handler;
	p3_set(&eq->ni, c->ni);
	if (p3_get(&c->eq.ring->tail))
		p3_evq_reformat(c->eq.ring, c->eq.n, &eq->tx, &eq->rx);
	else
		p3_evq_format(c->eq.ring, c->eq.n, &eq->tx, &eq->rx);
	ni->neq++;
	object_born(&eq->o);
	c->handle_out = p3_handle_of(P3_KIND_EQ, &eq->o);
	return PTL_OK;
}

/* Descriptors that still name it find its generation changed: no queue. */
int p3_fw_eq_free(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_eq *eq = p3_fw_named(n, P3_KIND_EQ, c->handle);
	if (!eq)
		return PTL_EQ_INVALID;
	c->eq.ring = eq->tx.ring;
	c->eq.n = eq->n;
	p3_ni_of(n, &eq->o)->neq--;
	p3_table_release(&n->table[P3_T_EQ], &eq->o);
	n->posted = true; /* its waiters must look */
	return PTL_OK;
}

/* ---- match entries ---- */

static void list_insert(
	struct p3_portal *list, struct p3_me *me, struct p3_me *base, uint32_t position)
{
	struct p3_me *prev = position == PTL_INS_AFTER ? base : base ? base->prev : NULL;
	struct p3_me *next = prev ? prev->next : list->head;
	me->prev = prev;
	me->next = next;
	*(prev ? &prev->next : &list->head) = me;
	*(next ? &next->prev : &list->tail) = me;
	list->n++;
}

static void list_remove(struct p3_portal *list, struct p3_me *me)
{
	*(me->prev ? &me->prev->next : &list->head) = me->next;
	*(me->next ? &me->next->prev : &list->tail) = me->prev;
	list->n--;
}

int p3_fw_me_attach(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_ni *ni = &n->ni[c->ni];
	int rc = PTL_OK;
	if (!ni_is(n, c->ni, c->handle))
		return PTL_NI_INVALID;
	if (c->me.pt_index > (uint32_t)ni->limits.max_pt_index)
		return PTL_PT_INDEX_INVALID;
	struct p3_portal *list = &ni->portal[c->me.pt_index];
	if (list->n >= (uint32_t)ni->limits.max_me_list)
		return PTL_ME_LIST_TOO_LONG;
	struct p3_me *me =
		new_object(n, P3_T_ME, c->ni, ni->nme, ni->limits.max_mes, &rc);
	if (!me)
		return rc;
	me->id = c->me.id;
	me->bits = c->me.bits;
	me->ignore = c->me.ignore;
	me->md = NULL;
	me->pt_index = c->me.pt_index;
	me->unlink = c->flag == PTL_UNLINK;
	list_insert(list, me, c->me.position == PTL_INS_AFTER ? list->tail : list->head,
		c->me.position);
	ni->nme++;
	object_born(&me->o);
	c->handle_out = p3_handle_of(P3_KIND_ME, &me->o);
	return PTL_OK;
}

static void me_remove(struct p3_nic *n, struct p3_me *me)
{
	struct p3_ni *ni = p3_ni_of(n, &me->o);
	list_remove(&ni->portal[me->pt_index], me);
	ni->nme--;
	p3_table_release(&n->table[P3_T_ME], &me->o);
}

static void md_remove(struct p3_nic *n, struct p3_md *md)
{
	p3_ni_of(n, &md->o)->nmd--;
	free(md->region.iov);
	md->region.iov = NULL;
	p3_table_release(&n->table[P3_T_MD], &md->o);
}

int p3_fw_me_unlink(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_me *me = p3_fw_named(n, P3_KIND_ME, c->handle);
	if (!me)
		return PTL_ME_INVALID;
	if (me->md && me->md->pending)
		return PTL_ME_IN_USE;
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

/* PTL_OK and the region, or the code that the contents deserve. */
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
		return (uintptr_t)md->start + md->length < md->length ? PTL_MD_ILLEGAL
								      : PTL_OK;
	if (md->length > (ptl_size_t)ni->limits.max_md_iovecs)
		return PTL_MD_ILLEGAL;
	out->iov = c->md.iov;
	out->size = 0;
	for (uint32_t i = 0; i < out->iov->n; i++) {
		const ptl_md_iovec_t *v = &out->iov->v[i];
		if ((!v->iov_base && v->iov_len) || out->size + v->iov_len < out->size)
			return PTL_MD_ILLEGAL;
		out->size += v->iov_len;
	}
	return PTL_OK;
}

static int md_queue(struct p3_nic *n, const struct p3_cmd *c, struct p3_eq **eq_out)
{
	*eq_out = NULL;
	if (c->md.md.eq_handle == PTL_EQ_NONE)
		return PTL_OK;
	struct p3_eq *eq = p3_fw_named(n, P3_KIND_EQ, c->md.md.eq_handle);
	if (!eq)
		return PTL_EQ_INVALID;
	*eq_out = eq;
	return eq->o.ni == c->ni ? PTL_OK : PTL_MD_ILLEGAL;
}

static void md_fill(struct p3_md *md, const ptl_md_t *user,
	const struct p3_region *region, struct p3_eq *eq)
{
	md->region = *region;
	md->threshold = user->threshold;
	md->options = user->options;
	md->active = user->threshold != 0;
	md->exhausted = false;
	md->max_size = user->max_size;
	md->local_offset = 0;
	md->pending = 0;
	md->eq = eq;
	md->eq_gen = eq ? p3_get(&eq->o.gen) : 0;
	md->snap[1] = (uintptr_t)user->start;
	md->snap[2] = user->length;
	md->snap[3] = user->max_size;
	md->snap[4] = (uintptr_t)user->user_ptr;
	md->snap[5] = (uint64_t)user->options << 32;
}

static int md_new(struct p3_nic *n, struct p3_cmd *c, struct p3_md **md_out)
{
	struct p3_ni *ni = &n->ni[c->ni];
	struct p3_region region;
	struct p3_eq *eq;
	int rc = md_region(ni, c, &region);
	if (rc == PTL_OK)
		rc = md_queue(n, c, &eq);
	if (rc != PTL_OK)
		return rc;
	struct p3_md *md =
		new_object(n, P3_T_MD, c->ni, ni->nmd, ni->limits.max_mds, &rc);
	if (!md)
		return rc;
	md_fill(md, &c->md.md, &region, eq);
	md->unlink = c->flag == PTL_UNLINK;
	md->me = P3_NONE;
	ni->nmd++;
	object_born(&md->o);
	c->handle_out = md->snap[0] = p3_handle_of(P3_KIND_MD, &md->o);
	*md_out = md;
	return PTL_OK;
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
	if (rc != PTL_OK)
		return rc;
	md->me = me->o.index;
	me->md = md;
	return PTL_OK;
}

int p3_fw_md_bind(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_md *md;
	if (!ni_is(n, c->ni, c->handle))
		return PTL_NI_INVALID;
	return md_new(n, c, &md);
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
	if (md->pending)
		return PTL_MD_IN_USE;
	p3_fw_md_drop(n, md);
	return PTL_OK;
}

/* ---- the end of an interface ---- */

static void drop_objects(struct p3_nic *n, uint32_t ni)
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
			p3_table_release(&n->table[P3_T_EQ], &eq->o);
	}
}

int p3_fw_ni_close(struct p3_nic *n, struct p3_cmd *c)
{
	uint32_t i = p3_handle_ni(c->handle);
	if (i >= P3_JOB_NIS || !ni_is(n, i, c->handle))
		return PTL_NI_INVALID;
	struct p3_ni *ni = &n->ni[i];
	p3_release(&ni->gen, p3_get(&ni->gen) + 1); /* TABLE.2 */
	p3_fw_forget(n, i);
	drop_objects(n, i);
	c->ni_open.portals = ni->portal;
	c->ni_open.acs = ni->ac;
	ni->portal = NULL;
	ni->ac = NULL;
	n->posted = true;
	return PTL_OK;
}

void p3_fw_drop_all(struct p3_nic *n)
{
	for (uint32_t i = 0; i < P3_JOB_NIS; i++) {
		struct p3_ni *ni = &n->ni[i];
		uint32_t gen = p3_get(&ni->gen);
		p3_release(&ni->gen, gen + (gen & 1)); /* TABLE.2 */
		drop_objects(n, i);
		free(ni->portal);
		free(ni->ac);
		ni->portal = NULL;
		ni->ac = NULL;
	}
}
