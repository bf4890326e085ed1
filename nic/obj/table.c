/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of objects, and the room that an interface has for objects. */
#include "nic/obj/table.h"

#include "nic/obj/ni.h"
#include "shm/seg.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define LINKED_AT_ONCE 32u /* objects of an untouched page or more */

_Static_assert(P3_TABLE_EACH % LINKED_AT_ONCE == 0, "a batch lies in one chunk");

/* ---- memory ---- */

/* Tell LeakSanitizer that memory named only in objects is no leak. */
extern void __lsan_register_root_region(const void *at, size_t len) __attribute__((weak));

static uint64_t chunk_len(const struct p3_table *t)
{
	return (uint64_t)t->elem * P3_TABLE_EACH;
}

static void set_up(struct p3_table *t, uint32_t elem)
{
	memset(t, 0, sizeof *t);
	t->elem = elem;
}

void p3_table_init(struct p3_table *t, uint32_t elem, char **chunk)
{
	set_up(t, elem);
	t->chunk = chunk;
}

/*
 * Map the range without write permission, which no limit of memory counts; only that of
 * the address space does.  It can be read from the start: a forged handle leads to zeros.
 */
static char *reserve(uint64_t len)
{
	int saved = errno;
	void *at = p3_pages_map(
		NULL, len, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	errno = saved;
	return at == MAP_FAILED ? NULL : at;
}

void *p3_table_more(struct p3_table *t)
{
	int saved = errno;
	uint32_t chunks = p3_get(&t->nchunks);
	uint64_t len = chunk_len(t);
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
	set_up(t, elem);
	t->kind = kind;
	t->base = reserve(chunk_len(t) * P3_TABLE_CHUNKS);
	if (!t->base)
		return -ENOMEM;
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
		(void)munmap(t->base, chunk_len(t) * P3_TABLE_CHUNKS);
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
static P3_RARE void link_some(struct p3_table *t)
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
		link_some(t);
}

P3_SPREAD
void *p3_table_alloc(struct p3_table *t)
{
	if (p3_unlikely(!t->free_head)) {
		if (!p3_table_has_room(t))
			return NULL;
		link_some(t);
	}
	return p3_table_take(t);
}

P3_SPREAD
void p3_table_kill(struct p3_table *t, struct p3_object *o)
{
	p3_release(&o->name, p3_get(&o->name) ^ P3_NAMELESS); /* TABLE.2 */
	t->live--;
}

P3_SPREAD
void p3_table_reclaim(struct p3_table *t, struct p3_object *o)
{
	p3_table_link(t, o);
}

P3_SPREAD
void p3_table_release(struct p3_table *t, struct p3_object *o)
{
	p3_table_kill(t, o);
	p3_table_reclaim(t, o);
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
