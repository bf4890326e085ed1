/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of the NIC as text, for people. */
#include "nic/report/dump.h"
#include "nic/obj/obj.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* Text in a buffer; a rest that does not fit is cut off. */
struct text {
	char *at;
	size_t left;
};

__attribute__((format(printf, 2, 3))) static void say(
	struct text *t, const char *format, ...)
{
	va_list args;
	if (t->left <= 1)
		return;
	va_start(args, format);
	int len = vsnprintf(t->at, t->left, format, args);
	va_end(args);
	size_t step = len < 0 ? 0 : (size_t)len < t->left ? (size_t)len : t->left - 1;
	t->at += step;
	t->left -= step;
}

static void say_number(struct text *t, uint32_t number)
{
	if (number == UINT32_MAX)
		say(t, "any");
	else
		say(t, "%" PRIu32, number);
}

static void say_id(struct text *t, ptl_process_id_t id)
{
	say_number(t, id.nid);
	say(t, ":");
	say_number(t, id.pid);
}

static void say_md(struct text *t, const struct p3_md *md)
{
	say(t,
		"    md %#" PRIx64 ": start %#" PRIx64 ", %" PRIu64
		" bytes, offset %" PRIu64 ", threshold %" PRId32 ", options %#" PRIx32
		", %s, %" PRIu32 " pending, %s",
		p3_get(&md->o.name), md->words.start, md->region.size, md->local_offset,
		md->words.threshold, md->words.options,
		md->odd & P3_ODD_INACTIVE ? "inactive" : "active", md->pending,
		md->unlink ? "unlink" : "retain");
	const struct p3_eq *eq = p3_eq_of_sink(&md->sink);
	if (eq)
		say(t, ", eq %#" PRIx64, p3_get(&eq->o.name));
	say(t, "\n");
}

static void say_me(struct text *t, const struct p3_me *me)
{
	say(t, "  me %#" PRIx64 ": from ", p3_get(&me->o.name));
	say_id(t, me->id);
	say(t, ", bits %#" PRIx64 ", ignore %#" PRIx64 ", %s\n", me->bits, me->ignore,
		me->unlink ? "unlink" : "retain");
	if (me->md)
		say_md(t, me->md);
}

static void say_eq(struct text *t, struct p3_eq *eq)
{
	uint64_t unread = eq->tx.tail - p3_get(&eq->tx.ring->head);
	say(t,
		"  eq %#" PRIx64 ": %" PRIu64 " of %" PRIu32 " unread%s, %" PRIu32
		" owed\n",
		p3_get(&eq->o.name), unread < eq->n ? unread : eq->n, eq->n,
		unread > eq->n ? ", some lost" : "", eq->owed);
}

static int dump_list(struct p3_nic *n, struct p3_cmd *c, struct text *t)
{
	const struct p3_ni *ni = &n->ni[c->ni];
	if (c->dump.pt_index > (uint32_t)ni->limits.max_pt_index)
		return PTL_PT_INDEX_INVALID;
	const struct p3_portal *list = &ni->portal[c->dump.pt_index];
	say(t, "portal index %" PRIu32 ": %" PRIu32 " match entries\n", c->dump.pt_index,
		list->n);
	for (const struct p3_me *me = list->head; me && t->left > 1; me = me->next)
		say_me(t, me);
	return PTL_OK;
}

static int dump_queues(struct p3_nic *n, struct p3_cmd *c, struct text *t)
{
	say(t, "event queues: %" PRIu32 "\n", n->ni[c->ni].use[P3_U_EQ].cur);
	struct p3_eq *eq;
	for (uint32_t at = 0; (eq = p3_obj_next(&n->table[P3_T_EQ], c->ni, &at));)
		say_eq(t, eq);
	return PTL_OK;
}

int p3_dump_write(struct p3_nic *n, struct p3_cmd *c)
{
	struct text t = {c->dump.text, c->dump.size};
	if (c->flag == P3_DUMP_ME) {
		const struct p3_me *me = p3_obj_named(n, P3_KIND_ME, c->handle);
		if (!me)
			return PTL_ME_INVALID;
		say_me(&t, me);
		return PTL_OK;
	}
	int rc = p3_ni_check(n, c);
	if (rc != PTL_OK)
		return rc;
	c->ni = (uint16_t)p3_handle_ni(c->handle);
	return c->flag == P3_DUMP_LIST ? dump_list(n, c, &t) : dump_queues(n, c, &t);
}
