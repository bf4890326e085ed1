/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of objects: only the handle of a living object finds it, and a table that the
 * address space has no room for is refused. */
#include <stddef.h>
#include <stdint.h>

#include "nic/obj/state.h"
#include "nic/proto/proto.h"
#include "support/cases.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

struct thing {
	struct p3_object o;
	uint64_t content[14];
};

static struct p3_table new_table(void)
{
	struct p3_table t;
	assert_int_equal(p3_table_reserve(&t, sizeof(struct thing), P3_KIND_MD), 0);
	return t;
}

static struct thing *named(const struct p3_table *t, uint64_t handle)
{
	return p3_table_named(t, sizeof(struct thing), handle);
}

static struct thing *thing_new(struct p3_table *t, uint32_t ni)
{
	if (!p3_table_has_room(t)) {
		void *chunk = p3_table_more(t);
		if (!chunk)
			return NULL;
		p3_table_add(t, chunk);
	}
	struct thing *x = p3_table_alloc(t);
	x->o.ni = ni;
	p3_obj_born(&x->o);
	return x;
}

CASE(handle_finds_its_object_while_that_lives)
{
	struct p3_table t = new_table();
	for (uint32_t i = 0; i < 3 * P3_TABLE_EACH; i++) {
		struct thing *x = thing_new(&t, i % 2);
		uint64_t h = p3_get(&x->o.name);
		assert_ptr_equal(named(&t, h), x);
		assert_int_equal(p3_handle_kind(h), P3_KIND_MD);
		assert_int_equal(p3_handle_ni(h), i % 2);
		assert_int_equal(p3_handle_index(h), p3_obj_index(&x->o));
		assert_ptr_equal(p3_table_at(&t, p3_handle_index(h)), x);
		if (i % 3)
			continue;
		p3_table_release(&t, &x->o);
		assert_null(named(&t, h));
		assert_int_equal(p3_handle_index(h), p3_obj_index(&x->o));
	}
	p3_table_unreserve(&t);
}

/* Check that no value near a dead object's handle, or its name, finds an object. */
static void assert_dead(const struct p3_table *t, const struct p3_object *o, uint64_t h)
{
	assert_false(p3_obj_lives(o));
	assert_null(named(t, h));
	assert_null(named(t, p3_get(&o->name)));
	for (unsigned bit = 0; bit < 64; bit++) {
		assert_null(named(t, h ^ UINT64_C(1) << bit));
		assert_null(named(t, p3_get(&o->name) ^ UINT64_C(1) << bit));
	}
}

CASE(no_value_finds_a_dead_object)
{
	struct p3_table t = new_table();
	struct p3_object *o = p3_table_at(&t, 0);
	assert_dead(&t, o, p3_obj_next_name(o)); /* it has never lived */
	assert_null(named(&t, 0));
	for (unsigned life = 0; life < 100; life++) {
		struct thing *x = thing_new(&t, 1);
		uint64_t h = p3_get(&x->o.name);
		p3_table_release(&t, &x->o);
		assert_dead(&t, &x->o, h);
	}
	p3_table_unreserve(&t);
}

/* Where no chunk is yet, the table is read as zeros. */
CASE(no_value_finds_an_object_beyond_the_last)
{
	struct p3_table t = new_table();
	struct thing *x = thing_new(&t, 0);
	uint64_t h = p3_get(&x->o.name);
	for (uint64_t i = 1; i < 1u << P3_HANDLE_INDEX_BITS; i++)
		if ((h ^ i) >> P3_HANDLE_INDEX_BITS == h >> P3_HANDLE_INDEX_BITS)
			assert_null(named(&t, h ^ i));
	for (uint64_t i = 0; i < P3_TABLE_MOST; i += P3_TABLE_EACH)
		assert_null(named(&t, i));
	p3_table_unreserve(&t);
}

CASE(place_gets_another_name_in_each_life)
{
	struct p3_table t = new_table();
	uint64_t before[P3_TABLE_EACH] = {0};
	for (unsigned i = 0; i < 20 * P3_TABLE_EACH; i++) {
		struct thing *x = thing_new(&t, i % 2);
		uint32_t at = p3_obj_index(&x->o);
		assert_true(at < P3_TABLE_EACH);
		assert_int_not_equal(p3_get(&x->o.name), before[at]);
		assert_null(named(&t, before[at]));
		before[at] = p3_get(&x->o.name);
		p3_table_release(&t, &x->o);
	}
	p3_table_unreserve(&t);
}

/* The last generation is followed by the first, and changes no other part of the name. */
CASE(generations_wrap_within_their_bits)
{
	struct p3_table t = new_table();
	struct p3_object *o = p3_table_alloc(&t);
	uint32_t index = p3_obj_index(o);
	o->ni = 1;
	p3_set(&o->name, p3_handle(P3_KIND_MD, 1, index, UINT32_MAX) ^ P3_NAMELESS);
	p3_obj_born(o);
	assert_int_equal(p3_get(&o->name), p3_handle(P3_KIND_MD, 1, index, 0));
	assert_ptr_equal(named(&t, p3_handle(P3_KIND_MD, 1, index, 0)), o);
	p3_table_unreserve(&t);
}

CASE(table_grows_to_its_end)
{
	struct p3_table t = new_table();
	uint32_t n = 0;
	struct thing *x, *last = NULL;
	for (; (x = thing_new(&t, 0)); n++)
		last = x;
	assert_int_equal(n, P3_TABLE_MOST);
	assert_ptr_equal(named(&t, p3_get(&last->o.name)), last);
	p3_table_release(&t, &last->o);
	assert_ptr_equal(thing_new(&t, 0), last);
	p3_table_unreserve(&t);
}

CASE(table_without_address_space_is_refused)
{
	struct p3_table t;
	struct rlimit was, none = {0};
	assert_int_equal(getrlimit(RLIMIT_AS, &was), 0);
	none.rlim_max = was.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
	errno = 0;
	int rc = p3_table_reserve(&t, sizeof(struct thing), P3_KIND_MD);
	int after = errno;
	assert_int_equal(setrlimit(RLIMIT_AS, &was), 0);
	assert_int_equal(rc, -ENOMEM);
	assert_int_equal(after, 0);
	p3_table_unreserve(&t);
}

static uint64_t data_bytes(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%*u %*u %*u %*u %*u %lu", &pages), 1);
	fclose(f);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* A limit of the memory that can be written does not count what no object uses. */
CASE(table_takes_no_memory_for_its_range)
{
	struct p3_table t;
	struct rlimit was, few;
	assert_int_equal(getrlimit(RLIMIT_DATA, &was), 0);
	few = was;
	few.rlim_cur = data_bytes() + MIB;
	assert_int_equal(setrlimit(RLIMIT_DATA, &few), 0);
	int rc = p3_table_reserve(&t, sizeof(struct thing), P3_KIND_MD);
	assert_int_equal(setrlimit(RLIMIT_DATA, &was), 0);
	assert_int_equal(rc, 0);
	assert_true(sizeof(struct thing) * P3_TABLE_MOST > MIB);
	p3_table_unreserve(&t);
}

/* Requests of an initiator name its pendings; 0 names none. */
CASE(pendings_have_a_name_in_each_generation)
{
	static struct p3_pending t;
	for (uint64_t gen = 0; gen < 1 << 14; gen++) {
		p3_set(&t.o.name, gen << P3_HANDLE_INDEX_BITS);
		assert_int_not_equal(p3_pending_name(&t), 0);
		assert_int_equal(p3_pending_name(&t) & P3_PENDING_INDEX, 0);
	}
}

/* A peer may send any name, also while all memory for pendings is in use. */
CASE(no_name_finds_a_pending_beyond_the_last)
{
	static struct p3_nic n;
	static struct p3_peer p;
	static struct p3_pending room[P3_TABLE_EACH];
	static char *chunk[P3_TABLE_CHUNKS];
	struct p3_table *t = &n.table[P3_T_PENDING];
	p3_table_init(t, sizeof room[0], chunk);
	p3_table_add(t, room);
	for (uint32_t i = 0; i < P3_TABLE_EACH; i++)
		assert_non_null(p3_table_alloc(t));
	for (uint32_t name = 0; name <= P3_PENDING_INDEX; name++)
		assert_null(p3_pending_named(&n, &p, name));
}
