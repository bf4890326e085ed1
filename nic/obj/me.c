/* SPDX-License-Identifier: BSD-3-Clause */
/* Match entries, and the descriptors attached to them. */
#include "nic/obj/obj.h"
#include "nic/match/match.h"

/* The place of a new match entry. */
struct me_place {
	uint32_t ni;
	uint32_t pt_index;
	struct p3_portal *list;
	struct p3_me *base; /* NULL: the list is empty */
};

static P3_HOT int me_place_at_end(struct p3_nic *n, uint32_t ni, uint64_t ni_handle,
	const struct p3_cmd_me *what, struct me_place *out)
{
	if (p3_unlikely(!p3_ni_is(n, ni, ni_handle)))
		return PTL_NI_INVALID;
	if (p3_unlikely(what->pt_index > (uint32_t)n->ni[ni].limits.max_pt_index))
		return PTL_PT_INDEX_INVALID;
	struct p3_portal *list = &n->ni[ni].portal[what->pt_index];
	struct p3_me *base = what->position == PTL_INS_AFTER ? list->tail : list->head;
	*out = (struct me_place){ni, what->pt_index, list, base};
	return PTL_OK;
}

/* An insertion beside another entry may leave the interface out. */
static P3_HOT int me_place_by_base(struct p3_nic *n, uint32_t ni, uint64_t ni_handle,
	const struct p3_cmd_me *what, struct me_place *out)
{
	bool named = ni_handle != PTL_INVALID_HANDLE;
	if (named && p3_unlikely(!p3_ni_is(n, ni, ni_handle)))
		return PTL_NI_INVALID;
	struct p3_me *base = p3_me_named(n, what->base);
	if (p3_unlikely(!base || (named && base->o.ni != ni)))
		return PTL_ME_INVALID;
	struct p3_portal *list = &n->ni[base->o.ni].portal[base->pt_index];
	*out = (struct me_place){base->o.ni, base->pt_index, list, base};
	return PTL_OK;
}

/* Find the place of a new match entry. */
static P3_HOT int me_find_place(struct p3_nic *n, uint64_t ni_handle,
	const struct p3_cmd_me *what, struct me_place *out)
{
	uint32_t ni = p3_handle_ni(ni_handle);
	int rc = what->base == PTL_INVALID_HANDLE
			 ? me_place_at_end(n, ni, ni_handle, what, out)
			 : me_place_by_base(n, ni, ni_handle, what, out);
	if (p3_unlikely(rc != PTL_OK))
		return rc;
	if (p3_unlikely(out->list->n >= (uint32_t)n->ni[out->ni].limits.max_me_list))
		return PTL_ME_LIST_TOO_LONG;
	return p3_obj_room(n, P3_T_ME, out->ni);
}

/* Make an entry in this place. */
static P3_HOT struct p3_me *me_place_new(
	struct p3_nic *n, const struct me_place *place, const struct p3_cmd_me *what)
{
	struct p3_me *me = p3_obj_new(n, P3_T_ME, place->ni);
	me->who = p3_want_id(what->id);
	me->bits = what->bits;
	me->ignore = what->ignore;
	me->md = NULL;
	me->pt_index = place->pt_index;
	me->unlink = what->unlink == PTL_UNLINK;
	if (place->list->n == 0)
		p3_ni_use_more(&n->ni[place->ni], P3_U_LIST);
	p3_match_list_insert(
		&n->ni[place->ni], place->list, me, place->base, what->position);
	if (p3_unlikely(place->list->n == P3_LONG))
		n->nlong++;
	p3_obj_born(&me->o);
	return me;
}

P3_HOT
int p3_me_make(struct p3_nic *n, uint64_t ni_handle, const struct p3_cmd_me *what,
	struct p3_me **me_out)
{
	struct me_place place;
	int rc = me_find_place(n, ni_handle, what, &place);
	if (p3_likely(rc == PTL_OK))
		*me_out = me_place_new(n, &place, what);
	return rc;
}

P3_HOT
int p3_me_make_with_md(struct p3_nic *n, uint64_t ni_handle, const struct p3_cmd_me *what,
	const ptl_md_t *md, struct p3_iov *iov, bool unlink, uint64_t test_eq,
	struct p3_me **me_out)
{
	struct me_place place;
	struct p3_md_meaning meaning;
	int rc = me_find_place(n, ni_handle, what, &place);
	if (p3_unlikely(rc != PTL_OK))
		return rc;
	rc = p3_md_prepare(n, place.ni, md, iov, &meaning);
	if (p3_likely(rc == PTL_OK))
		rc = p3_md_at_rest(n, place.ni, test_eq);
	if (p3_unlikely(rc != PTL_OK))
		return rc;
	struct p3_me *me = me_place_new(n, &place, what);
	me->md = p3_md_create(n, place.ni, md, unlink, p3_obj_index(&me->o), &meaning);
	*me_out = me;
	return PTL_OK;
}

/* Choose the first empty list. */
static int me_choose_list(struct p3_nic *n, struct p3_cmd *c)
{
	if (!p3_ni_is(n, c->ni, c->handle))
		return PTL_NI_INVALID;
	const struct p3_ni *ni = &n->ni[c->ni];
	uint32_t i = 0;
	while (i <= (uint32_t)ni->limits.max_pt_index && ni->portal[i].head)
		i++;
	c->me.pt_index = i;
	return i > (uint32_t)ni->limits.max_pt_index ? PTL_PT_FULL : PTL_OK;
}

int p3_me_attach(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_me *me;
	int rc = PTL_OK;
	if (c->me.any_index && c->me.base == PTL_INVALID_HANDLE)
		rc = me_choose_list(n, c);
	if (rc == PTL_OK)
		rc = c->me.with_md ? p3_me_make_with_md(n, c->handle, &c->me, &c->md.md,
					     c->md.iov, c->md.unlink == PTL_UNLINK,
					     c->md.test_eq, &me)
				   : p3_me_make(n, c->handle, &c->me, &me);
	if (rc != PTL_OK)
		return rc;
	c->handle_out = p3_get(&me->o.name);
	if (me->md)
		c->md.handle_out = p3_get(&me->md->o.name);
	return PTL_OK;
}

/* Take an entry off its list and free it; its descriptor is gone. */
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

P3_HOT
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

P3_HOT
void p3_me_drop(struct p3_nic *n, struct p3_me *me)
{
	struct p3_ni *ni = p3_ni_at(n, me->o.ni);
	if (me->md)
		p3_md_remove(n, ni, me->md);
	me_remove(n, ni, me);
}

P3_HOT
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
