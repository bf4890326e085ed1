/* SPDX-License-Identifier: BSD-3-Clause */
/* The scenes of races. */
#include "model/scene.h"

#include "model/model.h"

#define TARGET 0u
#define SOURCE 1u
#define OTHER  2u

static uint32_t below(uint64_t *random, uint32_t n)
{
	return (uint32_t)(random_next(random) % n);
}

static struct m_ref slot(unsigned i)
{
	return (struct m_ref){M_SLOT, (uint8_t)i};
}

static struct m_ref none(void)
{
	return (struct m_ref){.how = M_NONE};
}

/* ---- setups ---- */

static void setup(struct scene *s, struct m_op op)
{
	s->setup[s->nsetup++] = op;
}

static void setup_queue(struct scene *s, unsigned node, unsigned eq, uint32_t count)
{
	setup(s, (struct m_op){.kind = M_EQ_ALLOC,
			 .node = (uint8_t)node,
			 .slot = (uint8_t)eq,
			 .count = count});
}

static struct m_md_arg region(
	uint32_t at, uint32_t len, int threshold, unsigned options, struct m_ref eq)
{
	return (struct m_md_arg){.nseg = 1,
		.seg = {{at, len}},
		.threshold = threshold,
		.options = options,
		.user = at,
		.eq = eq};
}

static struct m_op entry(
	enum m_kind kind, unsigned node, unsigned me, unsigned md, struct m_md_arg arg)
{
	return (struct m_op){.kind = (uint8_t)kind,
		.node = (uint8_t)node,
		.slot = (uint8_t)me,
		.slot2 = (uint8_t)md,
		.id_nid = M_ANY,
		.id_pid = M_ANY,
		.ignore = UINT64_MAX,
		.arg = arg,
		.eq = none()};
}

static void setup_bind(struct scene *s, unsigned node, uint32_t at, uint32_t len)
{
	setup_queue(s, node, S_LOOSE, 256);
	setup(s, (struct m_op){.kind = M_MD_BIND,
			 .node = (uint8_t)node,
			 .slot = 0,
			 .arg = region(at, len, PTL_MD_THRESH_INF, 0, slot(S_LOOSE))});
}

/* ---- actors ---- */

static struct actor *actor(struct scene *s, unsigned node)
{
	s->actor[s->nactors].node = node;
	return &s->actor[s->nactors++];
}

static void then(struct actor *a, uint64_t *random, struct m_op op)
{
	op.node = (uint8_t)a->node;
	a->delay[a->n] = below(random, 8) ? below(random, 700) : below(random, 3000);
	a->op[a->n++] = op;
}

static struct m_op move(uint64_t *random, enum m_kind kind, uint32_t from, uint32_t len)
{
	return (struct m_op){.kind = (uint8_t)kind,
		.target = TARGET,
		.region = true,
		.md = slot(0),
		.md2 = slot(0),
		.local_offset = from,
		.local_offset2 = from,
		.length = len,
		.ack = below(random, 2),
		.hdr = random_next(random)};
}

/* Puts and gets from a node, each from bytes of its own.  Bytes that fit in a header
 * are moved in the step that matches them; longer ones may take more time. */
#define BRIEF 16u

static void moves(
	struct scene *s, uint64_t *random, unsigned node, unsigned most, uint32_t len)
{
	struct actor *a = actor(s, node);
	unsigned n = 1 + below(random, most);
	for (uint32_t i = 0; i < n; i++) {
		enum m_kind kind = below(random, 4) ? M_PUT : M_GET;
		struct m_op op = move(random, kind, 4096 * i, below(random, len + 1));
		op.remote_offset = below(random, 2 * len);
		then(a, random, op);
	}
}

#define BOTH (PTL_MD_OP_PUT | PTL_MD_OP_GET)

static unsigned quiet(uint64_t *random)
{
	static const unsigned quiets[] = {0, 0, PTL_MD_EVENT_START_DISABLE,
		PTL_MD_EVENT_END_DISABLE,
		PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE};
	return quiets[below(random, 5)];
}

/* ---- an entry that unlinks itself is the base of an insertion ---- */

static struct m_op insertion(uint64_t *random, unsigned me, unsigned md)
{
	struct m_op op =
		entry(below(random, 2) ? M_MEMD_INSERT : M_MEMD_POST, TARGET, me, md,
			region(8192 + 1024 * me, 2 * BRIEF, 1 + (int)below(random, 2),
				BOTH | PTL_MD_TRUNCATE | quiet(random), slot(0)));
	op.me = slot(0);
	op.before = below(random, 2);
	op.me_unlink = below(random, 2);
	op.md_unlink = below(random, 2);
	op.eq = below(random, 2) ? slot(0) : none();
	return op;
}

static void insert(struct scene *s, uint64_t *random)
{
	s->name = "insert";
	setup_queue(s, TARGET, 0, 64);
	struct m_op base = entry(M_MEMD_ATTACH, TARGET, 0, 0,
		region(0, 2 * BRIEF, 1 + (int)below(random, 3), BOTH | quiet(random),
			slot(0)));
	base.me_unlink = base.md_unlink = true;
	setup(s, base);
	setup(s, entry(M_MEMD_ATTACH, TARGET, 1, 1,
			 region(4096, 2048, PTL_MD_THRESH_INF, BOTH | PTL_MD_TRUNCATE,
				 slot(0))));
	setup_bind(s, SOURCE, 0, 16384);
	moves(s, random, SOURCE, 4, BRIEF);
	struct actor *a = actor(s, TARGET);
	for (unsigned i = 0; i < 1 + below(random, 2); i++)
		then(a, random, insertion(random, 4 + i, 4 + i));
	if (below(random, 3) == 0)
		then(a, random, (struct m_op){.kind = M_ME_UNLINK, .me = slot(0)});
	if (below(random, 3) == 0)
		then(a, random, (struct m_op){.kind = M_MD_UNLINK, .md = slot(1)});
	if (below(random, 3) == 0)
		then(a, random,
			(struct m_op){.kind = M_EQ_GET, .eq = slot(0), .count = 1});
}

/* ---- a receive is posted: look at the queue, then update if it is empty ---- */

static struct m_op update(uint64_t *random)
{
	return (struct m_op){.kind = M_MD_UPDATE,
		.md = slot(0),
		.eq = below(random, 4) ? slot(0) : none(),
		.arg = region(
			8192, 512, (int)below(random, 3), BOTH | quiet(random), slot(0))};
}

static void posting(struct scene *s, uint64_t *random)
{
	s->name = "update";
	setup_queue(s, TARGET, 0, 64);
	setup(s, entry(M_MEMD_ATTACH, TARGET, 0, 0,
			 region(0, 2 * BRIEF, (int)below(random, 3), BOTH | quiet(random),
				 slot(0))));
	s->setup[s->nsetup - 1].md_unlink = below(random, 2);
	setup(s, entry(M_MEMD_ATTACH, TARGET, 1, 1,
			 region(4096, 2048, PTL_MD_THRESH_INF,
				 BOTH | PTL_MD_TRUNCATE | quiet(random), slot(0))));
	setup_bind(s, SOURCE, 0, 16384);
	moves(s, random, SOURCE, 4, BRIEF);
	struct actor *a = actor(s, TARGET);
	unsigned gets = below(random, 3);
	for (unsigned i = 0; i < gets; i++)
		then(a, random,
			(struct m_op){.kind = M_EQ_GET, .eq = slot(0), .count = 1});
	then(a, random, update(random));
	if (below(random, 2))
		then(a, random,
			(struct m_op){.kind = M_EQ_GET, .eq = slot(0), .count = 1});
	if (below(random, 2))
		then(a, random, update(random));
}

/* ---- two sources, one list ---- */

static void two_sources(struct scene *s, uint64_t *random)
{
	s->name = "two sources";
	uint32_t len = below(random, 2) ? BRIEF : 4000;
	struct m_ref eq = slot(len == BRIEF ? 0 : S_LOOSE);
	setup_queue(s, TARGET, eq.slot, 64);
	unsigned n = 2 + below(random, 3);
	for (unsigned i = 0; i < n; i++) {
		unsigned o = BOTH | quiet(random);
		o |= below(random, 3) ? 0 : PTL_MD_MANAGE_REMOTE;
		o |= below(random, 2) ? 0 : PTL_MD_TRUNCATE;
		struct m_op op = entry(M_MEMD_ATTACH, TARGET, i, i,
			region(8192 * i, 2 * len, 1 + (int)below(random, 3), o, eq));
		op.id_nid = below(random, 3)       ? M_ANY
			    : 1 + below(random, 2) ? SOURCE
						   : OTHER;
		op.me_unlink = below(random, 2);
		op.md_unlink = below(random, 2);
		setup(s, op);
	}
	setup_bind(s, SOURCE, 0, 16384);
	setup_bind(s, OTHER, 0, 16384);
	moves(s, random, SOURCE, 4, len);
	moves(s, random, OTHER, 4, len);
}

/* ---- exchanges over a long put under way ---- */

#define SPARE 240000u /* bytes of a node that no long put uses */

static struct m_op swap(uint64_t *random, uint32_t i, uint32_t at, uint32_t len)
{
	struct m_op op = move(random, M_GETPUT, 256 * i, 1 + below(random, 256));
	op.md = op.md2 = slot(1);
	op.remote_offset = at + below(random, 64);
	op.ack = false;
	if (op.remote_offset + op.length > len)
		op.remote_offset = len - op.length;
	return op;
}

static void swaps(struct actor *a, uint64_t *random, uint32_t n, uint32_t len)
{
	uint32_t at = below(random, len);
	for (uint32_t i = 0; i < n; i++)
		then(a, random, swap(random, i, at, len));
}

static void setup_spare(struct scene *s, unsigned node)
{
	setup(s,
		(struct m_op){.kind = M_MD_BIND,
			.node = (uint8_t)node,
			.slot = 1,
			.arg = region(SPARE, 4096, PTL_MD_THRESH_INF, 0, slot(S_LOOSE))});
}

static void exchange(struct scene *s, uint64_t *random)
{
	s->name = "exchange";
	uint32_t len = 20000 + below(random, 200000);
	unsigned o = BOTH | PTL_MD_MANAGE_REMOTE;
	setup_queue(s, TARGET, S_LOOSE, 64);
	setup(s, entry(M_MEMD_ATTACH, TARGET, 0, 0,
			 region(0, len, PTL_MD_THRESH_INF, o, slot(S_LOOSE))));
	setup_bind(s, SOURCE, 0, len);
	setup_spare(s, SOURCE);
	setup_bind(s, OTHER, 0, 4096);
	setup_spare(s, OTHER);
	struct actor *a = actor(s, SOURCE);
	if (below(random, 2))
		then(a, random, move(random, M_PUT, 0, 8));
	then(a, random, move(random, M_PUT, 0, len));
	swaps(a, random, below(random, 3), len);
	swaps(actor(s, OTHER), random, 1 + below(random, 3), len);
}

scene_fn *const scenes[] = {insert, posting, two_sources, exchange, NULL};
