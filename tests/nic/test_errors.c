/* SPDX-License-Identifier: BSD-3-Clause */
/* Exactly the codes that include/portals3.h promises: one fault for each call, and a call
 * that fails leaves no trace. */
#include "nic/cases.h"

#include <stdio.h>

#define PT 5

/* Check a call that must fail, and count it. */
static _Atomic unsigned tried;
#define IS_WRONG(call, code)                                                             \
	do {                                                                             \
		tried++;                                                                 \
		CHECK_RC(call, code);                                                    \
	} while (0)

/* An interface with a live and a freed object of each kind. */
struct stock {
	ptl_handle_ni_t ni;
	ptl_process_id_t id;
	ptl_handle_eq_t eq;
	ptl_handle_me_t me;
	ptl_handle_md_t md;
	ptl_handle_eq_t freed_eq;
	ptl_handle_me_t freed_me;
	ptl_handle_md_t freed_md;
	unsigned char *buf;
};

static struct stock stock_new(ptl_handle_ni_t ni)
{
	struct stock s = {.ni = ni, .buf = node_alloc(4096)};
	CHECK_OK(PtlGetId(ni, &s.id));
	s.eq = eq_new(ni, 16);
	s.freed_eq = eq_new(ni, 16);
	CHECK_OK(PtlEQFree(s.freed_eq));
	s.me = me_last(ni, PT, 1, 0, PTL_RETAIN);
	s.freed_me = me_last(ni, PT, 1, 0, PTL_RETAIN);
	CHECK_OK(PtlMEUnlink(s.freed_me));
	s.md = bind_md(ni, md_of(s.buf, 64, MD_ANY, s.eq));
	s.freed_md = bind_md(ni, md_of(s.buf, 64, MD_ANY, PTL_EQ_NONE));
	CHECK_OK(PtlMDUnlink(s.freed_md));
	return s;
}

/* List handles that are wrong where a call expects `live`: of other kinds, of freed
 * objects, and variations of `live` itself.  Return their number. */
static unsigned wrong_handles(
	const struct stock *s, ptl_handle_any_t live, ptl_handle_any_t out[30])
{
	const ptl_handle_any_t all[] = {PTL_INVALID_HANDLE, PTL_EQ_NONE, PTL_HANDLE_NONE,
		0, 1, s->ni, s->eq, s->me, s->md, s->freed_eq, s->freed_me, s->freed_md,
		live + 2 * ((ptl_handle_any_t)1 << 24), live + 1, live | 0xffffff,
		live ^ (ptl_handle_any_t)1 << 56, live | (ptl_handle_any_t)0xf << 56,
		live ^ (ptl_handle_any_t)1 << 24, live & 0xffffff, live ^ (1 << 17),
		live ^ (1 << 18), live ^ (1 << 23), s->freed_md ^ ((1 << 23) | 1),
		s->freed_me ^ ((1 << 23) | 1), s->freed_eq ^ ((1 << 23) | 1)};
	unsigned n = 0;
	for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
		if (all[i] != live)
			out[n++] = all[i];
	return n;
}

/* P3.3 3.4, 3.5 */
NODES_CASE(init_answers_bad_arguments, 1)
{
	int most = 0;
	ptl_handle_ni_t again = 0;
	ptl_ni_limits_t actual;
	IS_WRONG(PtlInit(NULL), PTL_SEGV);
	CHECK_OK(PtlInit(&most));
	CHECK(most >= 1);
	IS_WRONG(
		PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, &actual, NULL), PTL_SEGV);
	IS_WRONG(PtlNIInit(99, PTL_PID_ANY, NULL, &actual, &again), PTL_IFACE_INVALID);
	/* again: the same handle, pid and desired ignored */
	ptl_ni_limits_t desired = {.max_mes = 3};
	CHECK_OK(PtlNIInit(PTL_IFACE_DEFAULT, 4711, &desired, &actual, &again));
	CHECK_EQ(again, ni);
	CHECK(actual.max_mes > 3);
	CHECK(actual.max_pt_index >= 63);
	CHECK_OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &again));
	ptl_handle_any_t wrong[30];
	struct stock s = stock_new(ni);
	unsigned n = wrong_handles(&s, ni, wrong);
	for (unsigned i = 0; i < n; i++)
		IS_WRONG(PtlNIFini(wrong[i]), PTL_NI_INVALID);
}

/* P3.3 3.6 to 3.8 */
NODES_CASE(ids_answer_bad_arguments, 1)
{
	struct stock s = stock_new(ni);
	ptl_handle_any_t wrong[30];
	ptl_process_id_t id;
	ptl_uid_t uid;
	ptl_jid_t jid;
	unsigned n = wrong_handles(&s, ni, wrong);
	IS_WRONG(PtlGetId(ni, NULL), PTL_SEGV);
	IS_WRONG(PtlGetUid(ni, NULL), PTL_SEGV);
	IS_WRONG(PtlGetJid(ni, NULL), PTL_SEGV);
	for (unsigned i = 0; i < n; i++) {
		IS_WRONG(PtlGetId(wrong[i], &id), PTL_NI_INVALID);
		IS_WRONG(PtlGetUid(wrong[i], &uid), PTL_NI_INVALID);
		IS_WRONG(PtlGetJid(wrong[i], &jid), PTL_NI_INVALID);
	}
}

/* P3.3 3.9 */
NODES_CASE(match_entries_answer_bad_arguments, 1)
{
	struct stock s = stock_new(ni);
	ptl_handle_any_t wrong[30];
	ptl_handle_me_t me = 42;
	unsigned n = wrong_handles(&s, ni, wrong);
	for (unsigned i = 0; i < n; i++)
		IS_WRONG(PtlMEAttach(wrong[i], PT, s.id, 1, 0, PTL_RETAIN, PTL_INS_AFTER,
				 &me),
			PTL_NI_INVALID);
	IS_WRONG(PtlMEAttach(ni, PT, s.id, 1, 0, PTL_RETAIN, PTL_INS_AFTER, NULL),
		PTL_SEGV);
	IS_WRONG(PtlMEAttach(ni, 64, s.id, 1, 0, PTL_RETAIN, PTL_INS_AFTER, &me),
		PTL_PT_INDEX_INVALID);
	IS_WRONG(PtlMEAttach(ni, UINT32_MAX, s.id, 1, 0, PTL_RETAIN, PTL_INS_AFTER, &me),
		PTL_PT_INDEX_INVALID);
	CHECK_EQ(me, 42);
	CHECK_OK(PtlMEAttach(ni, 63, s.id, 1, 0, PTL_RETAIN, PTL_INS_AFTER, &me));
	CHECK_OK(PtlMEUnlink(me));
	n = wrong_handles(&s, s.me, wrong);
	for (unsigned i = 0; i < n; i++)
		IS_WRONG(PtlMEUnlink(wrong[i]), PTL_ME_INVALID);
	CHECK_OK(PtlMEUnlink(s.me));
}

static void check_illegal(struct stock *s, const ptl_md_t *md, int code)
{
	ptl_handle_md_t h = 42;
	IS_WRONG(PtlMDAttach(s->me, *md, PTL_RETAIN, &h), code);
	IS_WRONG(PtlMDBind(s->ni, *md, PTL_RETAIN, &h), code);
	CHECK_EQ(h, 42);
}

/* P3.3 3.10.1: invalid descriptors */
NODES_CASE(descriptor_contents_are_checked, 1)
{
	struct stock s = stock_new(ni);
	const ptl_md_t good = md_of(s.buf, 64, MD_ANY, s.eq);
	ptl_md_iovec_t *iov = (ptl_md_iovec_t *)(void *)node_alloc(2000 * sizeof *iov);
	ptl_md_t md = good;
	md.start = NULL;
	check_illegal(&s, &md, PTL_MD_ILLEGAL);
	md = good;
	md.length = UINT64_MAX;
	check_illegal(&s, &md, PTL_MD_ILLEGAL);
	md = good;
	md.options |= 0x8000;
	check_illegal(&s, &md, PTL_MD_ILLEGAL);
	md = good;
	md.threshold = -2;
	check_illegal(&s, &md, PTL_MD_ILLEGAL);
	const ptl_handle_eq_t no_eq[] = {s.freed_eq, PTL_INVALID_HANDLE, s.me, s.ni};
	for (unsigned i = 0; i < 4; i++) {
		md = good;
		md.eq_handle = no_eq[i];
		check_illegal(&s, &md, PTL_EQ_INVALID);
	}
	md = md_of(iov, 2, PTL_MD_IOVEC, s.eq);
	iov[1] = (ptl_md_iovec_t){NULL, 1};
	check_illegal(&s, &md, PTL_MD_ILLEGAL);
	iov[0] = (ptl_md_iovec_t){s.buf, UINT64_MAX};
	iov[1] = (ptl_md_iovec_t){s.buf, 2};
	check_illegal(&s, &md, PTL_MD_ILLEGAL);
	/* UINT64_MAX bytes, the length that stands for a whole descriptor */
	iov[0] = (ptl_md_iovec_t){(void *)1, UINT64_MAX - 1};
	iov[1] = (ptl_md_iovec_t){s.buf, 1};
	check_illegal(&s, &md, PTL_MD_ILLEGAL);
	memset(iov, 0, 2000 * sizeof *iov);
	md.length = 1025; /* the default of max_md_iovecs is 1024 */
	check_illegal(&s, &md, PTL_MD_ILLEGAL);
	md.length = 100000;
	check_illegal(&s, &md, PTL_MD_ILLEGAL);
	md.length = 1;
	md.start = NULL;
	check_illegal(&s, &md, PTL_MD_ILLEGAL);
	/* and valid ones that look odd */
	md = md_of(NULL, 0, MD_ANY, PTL_EQ_NONE);
	md.max_size = 77;
	CHECK_OK(PtlMDUnlink(bind_md(ni, md)));
	md.options = PTL_MD_IOVEC;
	CHECK_OK(PtlMDUnlink(bind_md(ni, md)));
}

/* Check that no operation takes UINT64_MAX bytes of this descriptor. */
static void check_too_long(const struct stock *s, ptl_handle_md_t md)
{
	for (unsigned i = 0; i < 2; i++) {
		ptl_ack_req_t ack = i ? PTL_ACK_REQ : PTL_NO_ACK_REQ;
		IS_WRONG(PtlPutRegion(md, 0, UINT64_MAX, ack, s->id, PT, 0, 1, 0, 0),
			PTL_MD_ILLEGAL);
	}
	IS_WRONG(PtlGetRegion(md, 0, UINT64_MAX, s->id, PT, 0, 1, 0), PTL_MD_ILLEGAL);
	IS_WRONG(PtlGetPutRegion(md, 0, md, 0, UINT64_MAX, s->id, PT, 0, 1, 0, 0),
		PTL_MD_ILLEGAL);
}

/* The longest descriptors are shorter than the longest length. */
NODES_CASE(longest_descriptors_are_checked, 1)
{
	struct stock s = stock_new(ni);
	ptl_md_t md = md_of((void *)1, UINT64_MAX - 1, MD_ANY, s.eq);
	ptl_handle_md_t whole = bind_md(ni, md);
	check_too_long(&s, whole);
	CHECK_OK(PtlMDUnlink(whole));
	ptl_md_iovec_t iov[2] = {{(void *)1, UINT64_MAX - 2}, {s.buf, 1}};
	md = md_of(iov, 2, MD_ANY | PTL_MD_IOVEC, s.eq);
	whole = bind_md(ni, md);
	check_too_long(&s, whole);
	CHECK_OK(PtlMDUnlink(whole));
	expect_empty(s.eq);
}

/* P3.3 3.10 */
NODES_CASE(descriptors_answer_bad_handles, 1)
{
	struct stock s = stock_new(ni);
	const ptl_md_t good = md_of(s.buf, 64, MD_ANY, s.eq);
	ptl_handle_any_t wrong[30];
	ptl_handle_md_t h;
	unsigned n = wrong_handles(&s, s.me, wrong);
	for (unsigned i = 0; i < n; i++)
		IS_WRONG(PtlMDAttach(wrong[i], good, PTL_RETAIN, &h), PTL_ME_INVALID);
	CHECK_OK(PtlMDAttach(s.me, good, PTL_RETAIN, NULL)); /* NULL is allowed here */
	IS_WRONG(PtlMDAttach(s.me, good, PTL_RETAIN, &h), PTL_ME_IN_USE);
	n = wrong_handles(&s, ni, wrong);
	for (unsigned i = 0; i < n; i++)
		IS_WRONG(PtlMDBind(wrong[i], good, PTL_RETAIN, &h), PTL_NI_INVALID);
	IS_WRONG(PtlMDBind(ni, good, PTL_RETAIN, NULL), PTL_SEGV);
	n = wrong_handles(&s, s.md, wrong);
	for (unsigned i = 0; i < n; i++)
		IS_WRONG(PtlMDUnlink(wrong[i]), PTL_MD_INVALID);
	CHECK_OK(PtlMDUnlink(s.md));
	IS_WRONG(PtlMDUnlink(s.md), PTL_MD_INVALID);
}

/* P3.3 3.11 */
NODES_CASE(queues_answer_bad_arguments, 1)
{
	struct stock s = stock_new(ni);
	ptl_handle_any_t wrong[30];
	ptl_handle_eq_t eq = 42;
	ptl_event_t ev;
	int which;
	unsigned n = wrong_handles(&s, ni, wrong);
	for (unsigned i = 0; i < n; i++)
		IS_WRONG(PtlEQAlloc(wrong[i], 8, NULL, &eq), PTL_NI_INVALID);
	IS_WRONG(PtlEQAlloc(ni, 8, NULL, NULL), PTL_SEGV);
	IS_WRONG(PtlEQAlloc(ni, UINT64_MAX, NULL, &eq), PTL_NO_SPACE);
	IS_WRONG(PtlEQAlloc(ni, (ptl_size_t)1 << 40, NULL, &eq), PTL_NO_SPACE);
	CHECK_EQ(eq, 42);
	CHECK_OK(PtlEQAlloc(ni, 0, NULL, &eq));
	CHECK_EQ(eq, PTL_EQ_NONE);
	n = wrong_handles(&s, s.eq, wrong);
	for (unsigned i = 0; i < n; i++) {
		ptl_handle_eq_t both[2] = {s.eq, wrong[i]};
		IS_WRONG(PtlEQFree(wrong[i]), PTL_EQ_INVALID);
		IS_WRONG(PtlEQGet(wrong[i], &ev), PTL_EQ_INVALID);
		IS_WRONG(PtlEQWait(wrong[i], &ev), PTL_EQ_INVALID);
		IS_WRONG(PtlEQPoll(&both[1], 1, 0, &ev, &which), PTL_EQ_INVALID);
		IS_WRONG(PtlEQPoll(both, 2, PTL_TIME_FOREVER, &ev, &which),
			PTL_EQ_INVALID);
	}
	IS_WRONG(PtlEQGet(s.eq, NULL), PTL_SEGV);
	IS_WRONG(PtlEQWait(s.eq, NULL), PTL_SEGV);
	IS_WRONG(PtlEQPoll(NULL, 1, 0, &ev, &which), PTL_SEGV);
	IS_WRONG(PtlEQPoll(&s.eq, 1, 0, NULL, &which), PTL_SEGV);
	IS_WRONG(PtlEQPoll(&s.eq, 1, 0, &ev, NULL), PTL_SEGV);
	IS_WRONG(PtlEQPoll(&s.eq, 0, 0, &ev, &which), PTL_EQ_INVALID);
	IS_WRONG(PtlEQPoll(&s.eq, -1, 0, &ev, &which), PTL_EQ_INVALID);
	IS_WRONG(PtlEQGet(s.eq, &ev), PTL_EQ_EMPTY);
}

/* P3.3 3.13 */
NODES_CASE(data_movement_answers_bad_arguments, 1)
{
	struct stock s = stock_new(ni);
	ptl_handle_any_t wrong[30];
	unsigned n = wrong_handles(&s, s.md, wrong);
	for (unsigned i = 0; i < n; i++) {
		IS_WRONG(PtlPut(wrong[i], PTL_ACK_REQ, s.id, PT, 0, 1, 0, 0),
			PTL_MD_INVALID);
		IS_WRONG(PtlPutRegion(wrong[i], 0, 0, PTL_ACK_REQ, s.id, PT, 0, 1, 0, 0),
			PTL_MD_INVALID);
		IS_WRONG(PtlGet(wrong[i], s.id, PT, 0, 1, 0), PTL_MD_INVALID);
		IS_WRONG(PtlGetRegion(wrong[i], 0, 0, s.id, PT, 0, 1, 0), PTL_MD_INVALID);
	}
	static const struct {
		ptl_size_t offset, length;
	} beyond[] = {{0, 65}, {1, 64}, {65, 0}, {64, 1}, {0, UINT64_MAX},
		{1, UINT64_MAX}, {UINT64_MAX, 1}, {UINT64_MAX, 0}, {32, UINT64_MAX - 16}};
	for (unsigned i = 0; i < sizeof beyond / sizeof *beyond; i++) {
		IS_WRONG(PtlPutRegion(s.md, beyond[i].offset, beyond[i].length,
				 PTL_ACK_REQ, s.id, PT, 0, 1, 0, 0),
			PTL_MD_ILLEGAL);
		IS_WRONG(PtlGetRegion(s.md, beyond[i].offset, beyond[i].length, s.id, PT,
				 0, 1, 0),
			PTL_MD_ILLEGAL);
	}
	const ptl_process_id_t wildcard[] = {{PTL_NID_ANY, s.id.pid},
		{s.id.nid, PTL_PID_ANY}, {PTL_NID_ANY, PTL_PID_ANY}};
	for (unsigned i = 0; i < 3; i++) {
		IS_WRONG(PtlPut(s.md, PTL_ACK_REQ, wildcard[i], PT, 0, 1, 0, 0),
			PTL_PROCESS_INVALID);
		IS_WRONG(PtlPutRegion(
				 s.md, 0, 1, PTL_ACK_REQ, wildcard[i], PT, 0, 1, 0, 0),
			PTL_PROCESS_INVALID);
		IS_WRONG(PtlGet(s.md, wildcard[i], PT, 0, 1, 0), PTL_PROCESS_INVALID);
		IS_WRONG(PtlGetRegion(s.md, 0, 1, wildcard[i], PT, 0, 1, 0),
			PTL_PROCESS_INVALID);
	}
	expect_empty(s.eq);
	CHECK_EQ(drops_of(ni), 0);
	/* the very end is in the region */
	CHECK_OK(PtlPutRegion(s.md, 64, 0, PTL_NO_ACK_REQ, s.id, PT, 0, 1, 0, 0));
	CHECK_EQ(expect(s.eq, PTL_EVENT_SEND_START).offset, 64);
	expect(s.eq, PTL_EVENT_SEND_END);
}

/* Tables have memory for 1,024 objects, and get more up to the limits. */
static void growth_node(NODE_ARGS)
{
	enum { MANY = 2100 };
	static ptl_handle_any_t md[MANY], me[MANY], eq[MANY];
	const ptl_md_t what = md_of(node_alloc(64), 64, MD_ANY, PTL_EQ_NONE);
	for (unsigned n = 0; n < MANY; n++) {
		CHECK_OK(PtlMDBind(ni, what, PTL_RETAIN, &md[n]));
		CHECK_OK(PtlEQAlloc(ni, 1, NULL, &eq[n]));
		me[n] = me_last(ni, n % 8, 1, 0, PTL_RETAIN);
	}
	for (unsigned n = 0; n < MANY; n++) {
		CHECK_OK(PtlMDUnlink(md[n]));
		CHECK_OK(PtlEQFree(eq[n]));
		CHECK_OK(PtlMEUnlink(me[n]));
	}
}

CASE(tables_grow_up_to_the_limits)
{
	ptl_ni_limits_t limits = {.max_eqs = 1 << 12};
	run_nodes_opt(1, growth_node, NULL, &(struct nodes_opt){.limits = &limits});
}

/* portals3x.h */
NODES_CASE(extensions_answer_bad_arguments, 1)
{
	struct stock s = stock_new(ni);
	ptl_handle_any_t wrong[30];
	unsigned n = wrong_handles(&s, ni, wrong);
	const ptl_process_id_t wildcard[] = {{PTL_NID_ANY, s.id.pid},
		{s.id.nid, PTL_PID_ANY}, {PTL_NID_ANY, PTL_PID_ANY}};
	for (unsigned i = 0; i < n; i++) {
		IS_WRONG(PtlXPTHold(wrong[i], PT, 1), PTL_NI_INVALID);
		IS_WRONG(PtlXInject(wrong[i], s.buf, 8, s.id, PT, 0, 1, 0, 0),
			PTL_NI_INVALID);
	}
	ptlx_wait_t wait = {.struct_size = sizeof wait};
	IS_WRONG(PtlXWaitsFor(s.eq, &wait), PTL_SEGV);
	wait = (ptlx_wait_t){.library = "x"};
	IS_WRONG(PtlXWaitsFor(s.eq, &wait), PTL_FAIL);
	IS_WRONG(PtlXWaitsFor(ni, NULL), PTL_EQ_INVALID);
	IS_WRONG(PtlXWaitsFor(PTL_EQ_NONE, NULL), PTL_EQ_INVALID);
	IS_WRONG(PtlXPTHold(ni, 64, 1), PTL_PT_INDEX_INVALID);
	IS_WRONG(PtlXPTHold(ni, UINT32_MAX, 0), PTL_PT_INDEX_INVALID);
	CHECK_OK(PtlXPTHold(ni, 63, 1));
	for (unsigned i = 0; i < 3; i++)
		IS_WRONG(PtlXInject(ni, s.buf, 8, wildcard[i], PT, 0, 1, 0, 0),
			PTL_PROCESS_INVALID);
	IS_WRONG(PtlXInject(ni, s.buf, PTLX_INJECT_MOST + 1, s.id, PT, 0, 1, 0, 0),
		PTL_FAIL);
	IS_WRONG(PtlXInject(ni, s.buf, UINT64_MAX, s.id, PT, 0, 1, 0, 0), PTL_FAIL);
	IS_WRONG(PtlXInject(ni, NULL, 1, s.id, PT, 0, 1, 0, 0), PTL_SEGV);
	CHECK_OK(PtlXInject(ni, NULL, 0, s.id, PT, 0, 1, 0, 0));
}

/* P3.3 3.4: all other calls, before PtlInit and after PtlFini */
NODES_CASE(calls_answer_no_init_after_fini, 1)
{
	struct stock s = stock_new(ni);
	ptl_md_t md = md_of(s.buf, 64, MD_ANY, PTL_EQ_NONE);
	ptl_handle_any_t h;
	ptl_process_id_t id;
	ptl_uid_t uid;
	ptl_jid_t jid;
	ptl_event_t ev;
	int which;
	ptlx_stats_t st = {.struct_size = sizeof st};
	CHECK_OK(PtlNIFini(ni));
	IS_WRONG(PtlNIFini(ni), PTL_NI_INVALID);
	IS_WRONG(PtlGetId(ni, &id), PTL_NI_INVALID);
	IS_WRONG(PtlXStats(ni, &st), PTL_NI_INVALID);
	IS_WRONG(PtlXPTHold(ni, PT, 1), PTL_NI_INVALID);
	IS_WRONG(PtlXInject(ni, s.buf, 8, s.id, PT, 0, 1, 0, 0), PTL_NI_INVALID);
	IS_WRONG(PtlMEUnlink(s.me), PTL_ME_INVALID);
	IS_WRONG(PtlMDUnlink(s.md), PTL_MD_INVALID);
	IS_WRONG(PtlEQGet(s.eq, &ev), PTL_EQ_INVALID);
	IS_WRONG(PtlPut(s.md, PTL_ACK_REQ, s.id, PT, 0, 1, 0, 0), PTL_MD_INVALID);
	PtlFini();
	IS_WRONG(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &h), PTL_NO_INIT);
	IS_WRONG(PtlNIFini(ni), PTL_NO_INIT);
	IS_WRONG(PtlGetId(ni, &id), PTL_NO_INIT);
	IS_WRONG(PtlGetUid(ni, &uid), PTL_NO_INIT);
	IS_WRONG(PtlGetJid(ni, &jid), PTL_NO_INIT);
	IS_WRONG(PtlMEAttach(ni, PT, s.id, 1, 0, PTL_RETAIN, PTL_INS_AFTER, &h),
		PTL_NO_INIT);
	IS_WRONG(PtlMEUnlink(s.me), PTL_NO_INIT);
	IS_WRONG(PtlMDAttach(s.me, md, PTL_RETAIN, &h), PTL_NO_INIT);
	IS_WRONG(PtlMDBind(ni, md, PTL_RETAIN, &h), PTL_NO_INIT);
	IS_WRONG(PtlMDUnlink(s.md), PTL_NO_INIT);
	IS_WRONG(PtlEQAlloc(ni, 4, NULL, &h), PTL_NO_INIT);
	IS_WRONG(PtlEQFree(s.eq), PTL_NO_INIT);
	IS_WRONG(PtlEQGet(s.eq, &ev), PTL_NO_INIT);
	IS_WRONG(PtlEQWait(s.eq, &ev), PTL_NO_INIT);
	IS_WRONG(PtlEQPoll(&s.eq, 1, 0, &ev, &which), PTL_NO_INIT);
	IS_WRONG(PtlPut(s.md, PTL_ACK_REQ, s.id, PT, 0, 1, 0, 0), PTL_NO_INIT);
	IS_WRONG(
		PtlPutRegion(s.md, 0, 0, PTL_ACK_REQ, s.id, PT, 0, 1, 0, 0), PTL_NO_INIT);
	IS_WRONG(PtlGet(s.md, s.id, PT, 0, 1, 0), PTL_NO_INIT);
	IS_WRONG(PtlGetRegion(s.md, 0, 0, s.id, PT, 0, 1, 0), PTL_NO_INIT);
	IS_WRONG(PtlXBarrier(), PTL_NO_INIT);
	IS_WRONG(PtlXStats(ni, &st), PTL_NO_INIT);
	IS_WRONG(PtlXPTHold(ni, PT, 1), PTL_NO_INIT);
	IS_WRONG(PtlXWaitsFor(s.eq, NULL), PTL_NO_INIT);
	IS_WRONG(PtlXInject(ni, s.buf, 8, s.id, PT, 0, 1, 0, 0), PTL_NO_INIT);
	PtlFini();
}

int main(void)
{
	int failed = cases_run();
	printf("# tried: %u calls\n", tried);
	return failed;
}
