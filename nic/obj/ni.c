/* SPDX-License-Identifier: BSD-3-Clause */
/* Network interfaces, and the tables of objects that handles name. */
#include "nic/obj/obj.h"
#include "shm/seg.h"

#include <errno.h>
#include <sys/mman.h>

#define LINKED_AT_ONCE 32u /* objects of an untouched page or more */

_Static_assert(P3_TABLE_EACH % LINKED_AT_ONCE == 0, "a batch lies in one chunk");

/* ---- memory of tables ---- */

/* Tell LeakSanitizer that memory named only in objects is no leak. */
extern void __lsan_register_root_region(const void *at, size_t len) __attribute__((weak));

static uint64_t table_chunk_len(const struct p3_table *t)
{
	return (uint64_t)t->elem * P3_TABLE_EACH;
}

static void table_set_up(struct p3_table *t, uint32_t elem)
{
	memset(t, 0, sizeof *t);
	t->elem = elem;
}

void p3_table_init(struct p3_table *t, uint32_t elem, char **chunk)
{
	table_set_up(t, elem);
	t->chunk = chunk;
}

void *p3_table_more(struct p3_table *t)
{
	int saved = errno;
	uint32_t chunks = p3_get(&t->nchunks);
	uint64_t len = table_chunk_len(t);
	char *at = t->base + chunks * len;
	if (chunks == P3_TABLE_CHUNKS)
		return NULL;
	bool ok = mprotect(at, len, PROT_READ | PROT_WRITE) == 0;
	errno = saved;
	if (ok && __lsan_register_root_region)
		__lsan_register_root_region(at, len);
	return ok ? at : NULL;
}

int p3_table_reserve(struct p3_table *t, uint32_t elem, enum p3_kind kind)
{
	int saved = errno;
	table_set_up(t, elem);
	t->kind = kind;
	/* Map the range without write permission, which no limit of memory counts; only
	 * that of the address space does.  It can be read from the start: a forged handle
	 * leads to zeros. */
	void *at = p3_pages_map(NULL, table_chunk_len(t) * P3_TABLE_CHUNKS, PROT_READ,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	errno = saved;
	if (at == MAP_FAILED)
		return -ENOMEM;
	t->base = at;
	void *first = p3_table_more(t);
	if (!first) {
		p3_table_unreserve(t);
		return -ENOMEM;
	}
	p3_table_add(t, first);
	return 0;
}

void p3_table_unreserve(struct p3_table *t)
{
	if (t->base)
		(void)munmap(t->base, table_chunk_len(t) * P3_TABLE_CHUNKS);
	t->base = NULL;
}

/* ---- free objects ---- */

void *p3_table_at(const struct p3_table *t, uint32_t index)
{
	char *chunk = t->chunk ? t->chunk[index / P3_TABLE_EACH] : t->base;
	uint32_t at = t->chunk ? index % P3_TABLE_EACH : index;
	return chunk + (uint64_t)at * t->elem;
}

/* Link some objects that never lived.  Few at a time, so that a program with few objects
 * touches few pages. */
static P3_RARE void table_link_some(struct p3_table *t)
{
	uint64_t name = p3_handle((enum p3_kind)t->kind, 0, 0, 0);
	for (uint32_t i = 0; i < LINKED_AT_ONCE; i++) {
		struct p3_object *o = p3_table_at(t, t->used);
		p3_set(&o->name, (name | t->used++) ^ P3_NAMELESS);
		p3_table_link(t, o);
	}
}

void p3_table_add(struct p3_table *t, void *chunk)
{
	uint32_t chunks = p3_get(&t->nchunks);
	if (t->chunk)
		t->chunk[chunks] = chunk;
	p3_set(&t->nchunks, chunks + 1);
	if (!t->free_head)
		table_link_some(t);
}

P3_HOT
void *p3_table_alloc(struct p3_table *t)
{
	if (p3_unlikely(!t->free_head)) {
		if (!p3_table_has_room(t))
			return NULL;
		table_link_some(t);
	}
	return p3_table_take(t);
}

P3_HOT
void p3_table_kill(struct p3_table *t, struct p3_object *o)
{
	p3_release(&o->name, p3_get(&o->name) ^ P3_NAMELESS); /* TABLE.2 */
	t->live--;
}

P3_HOT
void p3_table_release(struct p3_table *t, struct p3_object *o)
{
	p3_table_kill(t, o);
	p3_table_link(t, o);
}

/* ---- names ---- */

void *p3_obj_named(const struct p3_nic *n, enum p3_kind kind, uint64_t handle)
{
	static const uint8_t table[] = {
		[P3_KIND_ME] = P3_T_ME, [P3_KIND_MD] = P3_T_MD, [P3_KIND_EQ] = P3_T_EQ};
	const struct p3_table *t = &n->table[table[kind]];
	return p3_table_named(t, t->elem, handle);
}

void *p3_obj_next(const struct p3_table *t, uint32_t ni, uint32_t *at)
{
	while (*at < t->used) {
		struct p3_object *o = p3_table_at(t, (*at)++);
		if (p3_obj_lives(o) && o->ni == ni)
			return o;
	}
	return NULL;
}

/* ---- interfaces ---- */

int p3_ni_check(struct p3_nic *n, struct p3_cmd *c)
{
	uint32_t ni = p3_handle_ni(c->handle);
	return p3_ni_is(n, ni, c->handle) ? PTL_OK : PTL_NI_INVALID;
}

static void ni_set_ac(struct p3_ni *ni, uint32_t index, const struct p3_ac *entry)
{
	ni->ac[index] = *entry;
	if (index)
		return;
	ni->ac0_asks_owner = entry->who.mask == 0 && entry->pt_index == PTL_PT_INDEX_ANY;
	ni->ac0_owner = entry->owner;
}

int p3_ni_open(struct p3_nic *n, struct p3_cmd *c)
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
	ni_set_ac(ni, 0, &entry);
	p3_acl_cache_clear(n);
	uint32_t gen = p3_get(&ni->gen) + 1;
	p3_release(&ni->gen, gen); /* TABLE.2 */
	c->handle_out = p3_handle(P3_KIND_NI, c->ni, 0, gen);
	return PTL_OK;
}

static struct p3_ni *ni_named(struct p3_nic *n, uint64_t handle)
{
	uint32_t ni = p3_handle_ni(handle);
	return p3_ni_is(n, ni, handle) ? &n->ni[ni] : NULL;
}

int p3_ni_ac_entry(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_ni *ni = ni_named(n, c->handle);
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
	ni_set_ac(ni, c->ac.index, &entry);
	p3_acl_cache_clear(n);
	return PTL_OK;
}

int p3_ni_hold(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_ni *ni = ni_named(n, c->handle);
	if (!ni)
		return PTL_NI_INVALID;
	if (c->pt_hold.pt_index > (uint32_t)ni->limits.max_pt_index)
		return PTL_PT_INDEX_INVALID;
	ni->portal[c->pt_hold.pt_index].keeps = c->pt_hold.on;
	return PTL_OK;
}

/* Return a register of one p3_use: made, ended, most at once, now. */
static uint64_t ni_use_register(const struct p3_use *u, uint32_t which)
{
	uint64_t value[] = {u->made, u->made - u->cur, u->max, u->cur};
	return value[which];
}

static uint64_t ni_register(const struct p3_ni *ni, uint32_t i)
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
	if (i < PTL_SR_MES_ALLOC) {
		/* Most operations end in the step that begins them, and are not in
		 * use. */
		struct p3_use all = ni->use[P3_U_OP];
		all.made = ni->sent + ni->received;
		if (all.made && !all.max)
			all.max = 1;
		return ni_use_register(&all, i - PTL_SR_MSGS_ALLOC);
	}
	if (i < PTL_SR_MDS_ALLOC)
		return ni_use_register(&ni->use[P3_U_ME], i - PTL_SR_MES_ALLOC);
	if (i < PTL_SR_EQS_ALLOC)
		return ni_use_register(&ni->use[P3_U_MD], i - PTL_SR_MDS_ALLOC);
	if (i < PTL_SR_MD_ALIGN_128)
		return ni_use_register(&ni->use[P3_U_EQ], i - PTL_SR_EQS_ALLOC);
	return ni->aligned[i - PTL_SR_MD_ALIGN_128];
}

int p3_ni_status(struct p3_nic *n, struct p3_cmd *c)
{
	const struct p3_ni *ni = ni_named(n, c->handle);
	if (!ni)
		return PTL_NI_INVALID;
	if (c->status.index > PTL_SR_MD_ALIGN_8)
		return PTL_SR_INDEX_INVALID;
	c->status.value = (int64_t)ni_register(ni, c->status.index);
	return PTL_OK;
}

int p3_ni_of_handle(struct p3_nic *n, struct p3_cmd *c)
{
	enum p3_kind kind = p3_handle_kind(c->handle);
	uint32_t ni = p3_handle_ni(c->handle);
	bool lives = kind == P3_KIND_NI ? ni_named(n, c->handle) != NULL
		     : kind == P3_KIND_ME || kind == P3_KIND_MD || kind == P3_KIND_EQ
			     ? p3_obj_named(n, kind, c->handle) != NULL
			     : false;
	if (!lives)
		return PTL_HANDLE_INVALID;
	c->handle_out = p3_handle(P3_KIND_NI, ni, 0, p3_get(&n->ni[ni].gen));
	return PTL_OK;
}
