/* SPDX-License-Identifier: BSD-3-Clause */
/* Match entries, and the descriptors attached to them. */
#include "nic/obj/obj.h"
#include "nic/match/match.h"

/* The place of a new match entry. */
struct me_place {
	struct p3_portal *list;
	struct p3_me *base; /* NULL: the list is empty */
	uint32_t position;
};

static int me_place_at_end(struct p3_ni *ni, struct p3_cmd_me *me, struct me_place *out)
{
	if (me->any_index) { /* take the first empty list */
		uint32_t i = 0;
		while (i <= (uint32_t)ni->limits.max_pt_index && ni->portal[i].head)
			i++;
		if (i > (uint32_t)ni->limits.max_pt_index)
			return PTL_PT_FULL;
		me->pt_index = i;
	}
	if (me->pt_index > (uint32_t)ni->limits.max_pt_index)
		return PTL_PT_INDEX_INVALID;
	struct p3_portal *list = &ni->portal[me->pt_index];
	struct p3_me *base = me->position == PTL_INS_AFTER ? list->tail : list->head;
	*out = (struct me_place){list, base, me->position};
	return PTL_OK;
}

static int me_place_by_base(struct p3_nic *n, struct p3_cmd *c, struct me_place *out)
{
	struct p3_me *base = p3_obj_named(n, P3_KIND_ME, c->me.base);
	if (!base || (c->handle != PTL_INVALID_HANDLE && base->o.ni != c->ni))
		return PTL_ME_INVALID;
	c->ni = (uint16_t)base->o.ni;
	c->me.pt_index = base->pt_index;
	struct p3_portal *list = &n->ni[c->ni].portal[base->pt_index];
	*out = (struct me_place){list, base, c->me.position};
	return PTL_OK;
}

/* Find the place of a new match entry.  c->handle names the interface; an insertion
 * beside another entry (me.base) may leave it out. */
static int me_find_place(struct p3_nic *n, struct p3_cmd *c, struct me_place *out)
{
	bool by_base = c->me.base != PTL_INVALID_HANDLE;
	if ((!by_base || c->handle != PTL_INVALID_HANDLE) &&
		!p3_ni_is(n, c->ni, c->handle))
		return PTL_NI_INVALID;
	int rc = by_base ? me_place_by_base(n, c, out)
			 : me_place_at_end(&n->ni[c->ni], &c->me, out);
	if (rc != PTL_OK)
		return rc;
	if (out->list->n >= (uint32_t)n->ni[c->ni].limits.max_me_list)
		return PTL_ME_LIST_TOO_LONG;
	return p3_obj_room(n, P3_T_ME, c->ni);
}

/* Make an entry that is in no list yet; list is the one that it will be in. */
static P3_HOT struct p3_me *me_begin(struct p3_nic *n, uint32_t ni,
	const struct p3_cmd_me *what, const struct p3_portal *list)
{
	struct p3_me *me = p3_obj_new(n, P3_T_ME, ni);
	me->id = what->id;
	me->who = p3_want_id(what->id);
	me->bits = what->bits;
	me->ignore = what->ignore;
	me->md = NULL;
	me->pt_index = what->pt_index;
	me->unlink = what->unlink == PTL_UNLINK;
	if (list->n == 0)
		p3_ni_use_more(&n->ni[ni], P3_U_LIST);
	return me;
}

/* Make an entry known that is in its list now. */
static P3_HOT void me_finish(
	struct p3_nic *n, struct p3_me *me, const struct p3_portal *list)
{
	if (p3_unlikely(list->n == P3_LONG))
		n->nlong++;
	p3_obj_born(&me->o);
}

static struct p3_me *me_make(
	struct p3_nic *n, struct p3_cmd *c, const struct me_place *place)
{
	struct p3_me *me = me_begin(n, c->ni, &c->me, place->list);
	p3_match_list_insert(&n->ni[c->ni], me, place->base, place->position);
	me_finish(n, me, place->list);
	c->handle_out = p3_get(&me->o.name);
	return me;
}

P3_SPREAD
struct p3_me *p3_me_append(
	struct p3_nic *n, uint64_t ni_handle, const struct p3_cmd_me *what)
{
	uint32_t i = p3_handle_ni(ni_handle);
	if (p3_unlikely(!p3_ni_is(n, i, ni_handle)))
		return NULL;
	struct p3_ni *ni = &n->ni[i];
	if (p3_unlikely(what->pt_index > (uint32_t)ni->limits.max_pt_index))
		return NULL;
	struct p3_portal *list = &ni->portal[what->pt_index];
	if (p3_unlikely(list->n >= (uint32_t)ni->limits.max_me_list ||
			p3_obj_room(n, P3_T_ME, i) != PTL_OK))
		return NULL;
	struct p3_me *me = me_begin(n, i, what, list);
	p3_match_list_append(ni, list, me);
	me_finish(n, me, list);
	return me;
}

static P3_HOT void me_remove(struct p3_nic *n, struct p3_ni *ni, struct p3_me *me)
{
	struct p3_portal *list = &ni->portal[me->pt_index];
	if (p3_unlikely(list->n == P3_LONG))
		n->nlong--;
	p3_match_list_remove(ni, me);
	if (list->n == 0)
		p3_ni_use_less(ni, P3_U_LIST);
	p3_obj_free(n, P3_T_ME, ni, &me->o);
}

void p3_me_remove(struct p3_nic *n, struct p3_me *me)
{
	me_remove(n, p3_ni_of(n, &me->o), me);
}

P3_SPREAD
int p3_me_give_md(struct p3_nic *n, uint64_t handle, const ptl_md_t *what,
	struct p3_iov *iov, bool unlink, struct p3_md **md_out)
{
	struct p3_me *me = p3_me_named(n, handle);
	if (p3_unlikely(!me))
		return PTL_ME_INVALID;
	if (p3_unlikely(me->md != NULL))
		return PTL_ME_IN_USE;
	uint32_t index = (uint32_t)handle & (P3_TABLE_MOST - 1);
	int rc = p3_md_make(n, me->o.ni, what, iov, unlink, index, md_out);
	if (p3_likely(rc == PTL_OK))
		me->md = *md_out;
	return rc;
}

int p3_me_attach_md(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_md *md;
	int rc = p3_me_give_md(
		n, c->handle, &c->md.md, c->md.iov, c->md.unlink == PTL_UNLINK, &md);
	if (rc == PTL_OK)
		c->md.handle_out = p3_get(&md->o.name);
	return rc;
}

int p3_me_attach(struct p3_nic *n, struct p3_cmd *c)
{
	struct me_place place;
	struct p3_md_meaning meaning;
	int rc = me_find_place(n, c, &place);
	if (rc != PTL_OK)
		return rc;
	if (!c->me.with_md) {
		(void)me_make(n, c, &place);
		return PTL_OK;
	}
	/* Make a match entry and a descriptor in one step. */
	rc = p3_md_prepare(n, c->ni, &c->md.md, c->md.iov, &meaning);
	if (rc == PTL_OK)
		rc = p3_md_at_rest(n, c);
	if (rc != PTL_OK)
		return rc;
	struct p3_me *me = me_make(n, c, &place);
	me->md = p3_md_create(n, c->ni, &c->md.md, c->md.unlink == PTL_UNLINK,
		p3_obj_index(&me->o), &meaning);
	c->md.handle_out = p3_get(&me->md->o.name);
	return PTL_OK;
}

P3_SPREAD
void p3_me_drop_md(struct p3_nic *n, struct p3_md *md)
{
	uint32_t index = md->me;
	struct p3_ni *ni = p3_ni_at(n, md->o.ni);
	p3_md_remove(n, ni, md);
	if (index == P3_NONE)
		return;
	struct p3_me *me = p3_me_place(n, index);
	me->md = NULL;
	if (me->unlink)
		me_remove(n, ni, me);
}
