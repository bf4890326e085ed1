/* SPDX-License-Identifier: BSD-3-Clause */
/* Match entries and descriptors made on the straight path, and by commands: both are the
 * same. */
#include "nic/obj/obj.h"
#include "nic/run/lease.h"
#include "cases.h"

#include "lib/node/node.h"
#include "shm/variant.h"
#include "support/hold.h"

#include <sched.h>

enum { PT = 6, ROUNDS = 3000, TRIES = 100000 };

static struct p3_nic *nic(void)
{
	return p3_nic(p3_node());
}

static uint32_t dice(uint32_t sides)
{
	static uint64_t seed = 88172645463325252u;
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed % sides);
}

/* Return true if commands for which nothing is unusual must go straight sooner or later:
 * the NIC's thread may have the lease now. */
static bool is_straight(void)
{
#if defined(P3_STRAIGHT_RANDOM) || defined(P3_STRAIGHT_OFF)
	return false;
#else
	const char *mode = getenv("PTL3_MODE");
	return !nic()->wired && !nic()->traced &&
	       (!mode || strcmp(mode, "dedicated") != 0);
#endif
}

/* ---- descriptors ---- */

/* Execute MD_BIND or MD_ATTACH. */
static int make_generally(enum p3_op op, uint64_t of, const ptl_md_t *md,
	ptl_unlink_t unlink, uint64_t *out)
{
	struct p3_cmd c;
	p3_cmd_begin(&c, op, of);
	c.md = (struct p3_cmd_md){.md = *md, .unlink = (uint8_t)unlink};
	int rc = p3_nic_do(nic(), &c);
	*out = c.md.handle_out;
	return rc;
}

static bool make_straight(enum p3_op op, uint64_t of, const ptl_md_t *md,
	ptl_unlink_t unlink, uint64_t *out)
{
	bool ok = unlink == PTL_UNLINK;
	return op == P3_OP_MD_BIND ? p3_nic_md_bind(nic(), of, md, ok, out)
				   : p3_nic_md_attach(nic(), of, md, ok, out);
}

/* Make a descriptor on the straight path; legal: that is possible.  Return false if it
 * did not go straight. */
static bool try_straight(enum p3_op op, uint64_t of, const ptl_md_t *md,
	ptl_unlink_t unlink, bool legal, uint64_t *out)
{
	bool made = false;
	for (unsigned i = 0; i < (legal ? TRIES : 3) && !made; i++) {
		made = make_straight(op, of, md, unlink, out);
		if (!made)
			sched_yield();
		if (!is_straight() && i == 3)
			break;
	}
	CHECK(!made || legal);
	CHECK(made || !legal || !is_straight());
	return made;
}

static ptl_md_t any_md(void *at, const ptl_handle_eq_t eqs[3])
{
	static const ptl_size_t lengths[] = {0, 1, 8, 4096, SIZE_MAX / 2, SIZE_MAX};
	static const int thresholds[] = {
		PTL_MD_THRESH_INF, PTL_MD_THRESH_INF, 0, 1, 7, -2, INT32_MIN};
	ptl_md_t md = {.start = dice(8) ? (char *)at + dice(130) : NULL,
		.length = lengths[dice(dice(4) ? 4 : 6)],
		.threshold = thresholds[dice(dice(4) ? 5 : 7)],
		.max_size = dice(100),
		.options = dice(1 << 11) & ~(uint32_t)PTL_MD_IOVEC,
		.user_ptr = (void *)(uintptr_t)dice(1 << 30),
		.eq_handle = eqs[dice(dice(8) ? 2 : 3)]};
	if (dice(20) == 0)
		md.options |= 1u << (11 + dice(21));
	return md;
}

/* All of a descriptor that does not depend on its place, and the counts of its
 * interface. */
struct made {
	struct p3_region region;
	struct p3_sink sink;
	struct p3_md_words words;
	uint64_t odd, flags, pending, local_offset;
	struct p3_use use[P3_USES];
	uint64_t aligned[sizeof(((struct p3_ni *)0)->aligned) / 8];
};

static struct made look(ptl_handle_ni_t ni, const struct p3_md *md)
{
	struct made m;
	memset(&m, 0, sizeof m);
	nic_hold(nic());
	const struct p3_ni *i = &nic()->ni[p3_handle_ni(ni)];
	memcpy(m.use, i->use, sizeof m.use);
	memcpy(m.aligned, i->aligned, sizeof m.aligned);
	if (md) {
		m.region = md->region;
		m.sink = md->sink;
		m.words = md->words;
		m.odd = md->odd;
		m.flags = md->exhausted + 2u * md->unlink + 4u * md->owes_unlink;
		m.pending = md->pending;
		m.local_offset = md->local_offset;
	}
	p3_lease_leave(nic());
	return m;
}

/* Take the counts of before away, except the greatest number. */
static void subtract(struct made *m, const struct made *before)
{
	for (unsigned i = 0; i < P3_USES; i++) {
		m->use[i].made -= before->use[i].made;
		m->use[i].cur -= before->use[i].cur;
	}
	for (unsigned i = 0; i < sizeof m->aligned / 8; i++)
		m->aligned[i] -= before->aligned[i];
}

static void unlink_md(uint64_t handle, bool straight)
{
	struct p3_cmd c;
	if (straight && p3_nic_md_unlink(nic(), handle))
		return;
	p3_cmd_begin(&c, P3_OP_MD_UNLINK, handle);
	CHECK_OK(p3_nic_do(nic(), &c));
}

/* Make the same descriptor by both ways, and compare. */
static void make_both(ptl_handle_ni_t ni, enum p3_op op, uint64_t of, const ptl_md_t *md,
	ptl_unlink_t unlink)
{
	struct made before = look(ni, NULL), generally, straight;
	uint64_t handle;
	bool legal = make_generally(op, of, md, unlink, &handle) == PTL_OK;
	if (legal) {
		generally = look(ni, p3_md_named(nic(), handle));
		subtract(&generally, &before);
		unlink_md(handle, true);
		CHECK(!p3_md_named(nic(), handle));
		CHECK(!p3_nic_md_unlink(nic(), handle));
	}
	before = look(ni, NULL);
	if (!try_straight(op, of, md, unlink, legal, &handle))
		return;
	straight = look(ni, p3_md_named(nic(), handle));
	subtract(&straight, &before);
	CHECK_EQ(memcmp(&straight, &generally, sizeof straight), 0);
	unlink_md(handle, dice(2));
	CHECK(!p3_md_named(nic(), handle));
	struct made after = look(ni, NULL);
	CHECK_EQ(after.use[P3_U_MD].cur, before.use[P3_U_MD].cur);
}

NODES_CASE(both_paths_make_the_same_descriptors, 1)
{
	UNUSED_ARGS;
	unsigned char *at = node_alloc(8192);
	ptl_handle_eq_t eqs[3] = {eq_new(ni, 8), PTL_EQ_NONE, eq_new(ni, 8)};
	ptl_handle_me_t me;
	CHECK_OK(PtlEQFree(eqs[2]));
	CHECK_OK(PtlMEAttach(ni, PT, id_of(ni, 0), 1, 0, PTL_RETAIN, PTL_INS_AFTER, &me));
	for (unsigned i = 0; i < rounds(ROUNDS); i++) {
		ptl_md_t md = any_md(at, eqs);
		ptl_unlink_t unlink = dice(2) ? PTL_UNLINK : PTL_RETAIN;
		make_both(ni, P3_OP_MD_BIND, ni, &md, unlink);
		make_both(ni, P3_OP_MD_ATTACH, me, &md, unlink);
	}
}

/* The straight path refuses what it is not for, and other handles. */
NODES_CASE(unusual_descriptors_take_the_general_path, 1)
{
	UNUSED_ARGS;
	ptl_md_iovec_t piece = {node_alloc(8), 8};
	ptl_md_t several = md_of(&piece, 1, PTL_MD_IOVEC, PTL_EQ_NONE);
	ptl_md_t plain = md_of(piece.iov_base, 8, 0, PTL_EQ_NONE);
	ptl_handle_me_t me;
	ptl_handle_md_t md, got = 0;
	CHECK(!p3_nic_md_bind(nic(), ni, &several, false, &got));
	CHECK_OK(PtlMDBind(ni, several, PTL_RETAIN, &md));
	CHECK(!p3_nic_md_bind(nic(), md, &plain, false, &got));
	CHECK(!p3_nic_md_bind(nic(), ni ^ 1u << 24, &plain, false, &got));
	CHECK(!p3_nic_md_bind(nic(), ni ^ (uint64_t)1 << 56, &plain, false, &got));
	CHECK(!p3_nic_md_attach(nic(), ni, &plain, false, &got));
	CHECK_OK(PtlMEAttach(ni, PT, id_of(ni, 0), 1, 0, PTL_RETAIN, PTL_INS_AFTER, &me));
	CHECK_OK(PtlMDAttach(me, plain, PTL_RETAIN, NULL));
	CHECK(!p3_nic_md_attach(nic(), me, &plain, false, &got));
	CHECK_RC(PtlMDAttach(me, plain, PTL_RETAIN, &got), PTL_ME_IN_USE);
	CHECK(!p3_nic_md_unlink(nic(), me));
	CHECK_EQ(got, 0);
	CHECK_OK(PtlMDUnlink(md));
	CHECK_RC(PtlMDUnlink(md), PTL_MD_INVALID);
}

/* ---- entries ---- */

static void attach(ptl_handle_ni_t ni, const struct p3_cmd_me *what, bool straight,
	ptl_handle_me_t *out)
{
	struct p3_cmd c;
	for (unsigned i = 0; straight && i < TRIES; i++) {
		if (p3_nic_me_attach(nic(), ni, what, out))
			return;
		sched_yield();
		if (!is_straight() && i == 3)
			break;
	}
	CHECK(!straight || !is_straight());
	p3_cmd_begin(&c, P3_OP_ME_ATTACH, ni);
	c.me = *what;
	c.me.base = PTL_INVALID_HANDLE;
	c.me.position = PTL_INS_AFTER;
	c.md.test_eq = PTL_EQ_NONE;
	CHECK_OK(p3_nic_do(nic(), &c));
	*out = c.handle_out;
}

static void check_same_entry(const struct p3_me *a, const struct p3_me *b)
{
	CHECK_EQ(memcmp(&a->who, &b->who, sizeof a->who), 0);
	CHECK_EQ(memcmp(&a->id, &b->id, sizeof a->id), 0);
	CHECK_EQ(a->bits, b->bits);
	CHECK_EQ(a->ignore, b->ignore);
	CHECK_EQ(a->md == NULL, b->md == NULL);
	CHECK_EQ(a->unlink, b->unlink);
	CHECK_EQ(a->label, b->label);
	CHECK(!a->prev == !b->prev);
}

/* Compare the lists of portals PT and PT + 1, forwards and backwards. */
static void check_same_lists(ptl_handle_ni_t ni)
{
	nic_hold(nic());
	const struct p3_portal *l = &nic()->ni[p3_handle_ni(ni)].portal[PT];
	const struct p3_me *a = l[0].head, *b = l[1].head;
	uint32_t n = 0;
	for (; a && b; a = a->next, b = b->next, n++) {
		check_same_entry(a, b);
		CHECK(a->next ? a->next->prev == a : l[0].tail == a);
	}
	CHECK(!a && !b);
	CHECK_EQ(l[0].n, n);
	CHECK_EQ(l[1].n, n);
	CHECK_EQ(l[0].indexed, l[1].indexed);
	CHECK_EQ(l[0].used, l[1].used);
	p3_lease_leave(nic());
}

static struct p3_cmd_me any_entry(ptl_handle_ni_t ni)
{
	ptl_process_id_t self = id_of(ni, 0);
	return (struct p3_cmd_me){.id = {dice(2) ? self.nid : PTL_NID_ANY,
					  dice(2) ? self.pid : PTL_PID_ANY},
		.bits = dice(50),
		.ignore = dice(3),
		.unlink = dice(2) ? PTL_UNLINK : PTL_RETAIN};
}

/* Two lists with the same history: one straight, the other by commands; longer than where
 * a list gets an index. */
NODES_CASE(both_paths_make_the_same_lists, 1)
{
	UNUSED_ARGS;
	enum { MOST = 40 };
	ptl_handle_me_t me[2][MOST];
	ptl_handle_md_t md[2][MOST];
	unsigned n = 0;
	ptl_md_t plain = md_of(node_alloc(8), 8, PTL_MD_OP_PUT, PTL_EQ_NONE);
	for (unsigned i = 0; i < rounds(ROUNDS); i++) {
		unsigned at = n ? dice(n) : 0;
		struct p3_cmd_me what = any_entry(ni);
		bool add = n < MOST && (!n || dice(i / 200 % 2 ? 4 : 2));
		for (unsigned way = 0; way < 2 && add; way++) {
			what.pt_index = PT + way;
			attach(ni, &what, way == 0, &me[way][n]);
			CHECK_OK(make_generally(P3_OP_MD_ATTACH, me[way][n], &plain,
				PTL_RETAIN, &md[way][n]));
		}
		for (unsigned way = 0; way < 2 && !add; way++) {
			unlink_md(md[way][at], way == 0);
			(void)PtlMEUnlink(me[way][at]); /* if it was to be retained */
			CHECK_RC(PtlMEUnlink(me[way][at]), PTL_ME_INVALID);
			me[way][at] = me[way][n - 1];
			md[way][at] = md[way][n - 1];
		}
		n = add ? n + 1 : n - 1;
		check_same_lists(ni);
	}
}

NODES_CASE(unusual_entries_take_the_general_path, 1)
{
	UNUSED_ARGS;
	struct p3_cmd_me what = any_entry(ni);
	uint64_t got = 0;
	ptl_ni_limits_t limits = nic()->ni[p3_handle_ni(ni)].limits;
	what.pt_index = (uint32_t)limits.max_pt_index + 1;
	CHECK(!p3_nic_me_attach(nic(), ni, &what, &got));
	what.pt_index = UINT32_MAX;
	CHECK(!p3_nic_me_attach(nic(), ni, &what, &got));
	what.pt_index = 0;
	CHECK(!p3_nic_me_attach(nic(), ni ^ 1u << 24, &what, &got));
	CHECK(!p3_nic_me_attach(nic(), PTL_INVALID_HANDLE, &what, &got));
	nic_hold(nic());
	CHECK(!p3_nic_me_attach(nic(), ni, &what, &got)); /* another call has the lease */
	p3_lease_leave(nic());
	CHECK_EQ(got, 0);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(both_paths_make_the_same_descriptors),
		cmocka_unit_test(unusual_descriptors_take_the_general_path),
		cmocka_unit_test(both_paths_make_the_same_lists),
		cmocka_unit_test(unusual_entries_take_the_general_path),
	};
	return RUN_CASES(cases);
}
