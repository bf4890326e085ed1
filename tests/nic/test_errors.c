/* SPDX-License-Identifier: BSD-3-Clause */
/* Wrong handles of all forms for each call that takes one, and the codes of extensions.
 * tests/spec has the codes of Portals' other wrong arguments. */
#include "nic/cases.h"

#include "support/hold.h"

#include <limits.h>
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

NODES_CASE(interfaces_are_not_taken_for_others, 1)
{
	struct stock s = stock_new(ni);
	ptl_handle_any_t wrong[30], h;
	ptl_md_t md = md_of(s.buf, 64, MD_ANY, s.eq);
	ptl_process_id_t id;
	ptl_uid_t uid;
	ptl_jid_t jid;
	unsigned n = wrong_handles(&s, ni, wrong);
	for (unsigned i = 0; i < n; i++) {
		IS_WRONG(PtlNIFini(wrong[i]), PTL_NI_INVALID);
		IS_WRONG(PtlGetId(wrong[i], &id), PTL_NI_INVALID);
		IS_WRONG(PtlGetUid(wrong[i], &uid), PTL_NI_INVALID);
		IS_WRONG(PtlGetJid(wrong[i], &jid), PTL_NI_INVALID);
		IS_WRONG(PtlMEAttach(
				 wrong[i], PT, s.id, 1, 0, PTL_RETAIN, PTL_INS_AFTER, &h),
			PTL_NI_INVALID);
		IS_WRONG(PtlMDBind(wrong[i], md, PTL_RETAIN, &h), PTL_NI_INVALID);
		IS_WRONG(PtlEQAlloc(wrong[i], 8, NULL, &h), PTL_NI_INVALID);
		IS_WRONG(PtlXPTHold(wrong[i], PT, 1), PTL_NI_INVALID);
		IS_WRONG(PtlXInject(wrong[i], s.buf, 8, s.id, PT, 0, 1, 0, 0),
			PTL_NI_INVALID);
	}
}

NODES_CASE(entries_are_not_taken_for_others, 1)
{
	struct stock s = stock_new(ni);
	ptl_handle_any_t wrong[30], h;
	ptl_md_t md = md_of(s.buf, 64, MD_ANY, s.eq);
	unsigned n = wrong_handles(&s, s.me, wrong);
	for (unsigned i = 0; i < n; i++) {
		IS_WRONG(PtlMDAttach(wrong[i], md, PTL_RETAIN, &h), PTL_ME_INVALID);
		IS_WRONG(PtlMEUnlink(wrong[i]), PTL_ME_INVALID);
	}
	CHECK_OK(PtlMEUnlink(s.me));
}

NODES_CASE(queues_are_not_taken_for_others, 1)
{
	struct stock s = stock_new(ni);
	ptl_handle_any_t wrong[30];
	ptl_event_t ev;
	int which;
	unsigned n = wrong_handles(&s, s.eq, wrong);
	for (unsigned i = 0; i < n; i++) {
		ptl_handle_eq_t both[2] = {s.eq, wrong[i]};
		IS_WRONG(PtlEQFree(wrong[i]), PTL_EQ_INVALID);
		IS_WRONG(PtlEQGet(wrong[i], &ev), PTL_EQ_INVALID);
		IS_WRONG(PtlEQWait(wrong[i], &ev), PTL_EQ_INVALID);
		IS_WRONG(PtlEQPoll(&both[1], 1, 0, &ev, &which), PTL_EQ_INVALID);
		IS_WRONG(PtlEQPoll(both, 2, PTL_TIME_FOREVER, &ev, &which),
			PTL_EQ_INVALID);
	}
	IS_WRONG(PtlEQGet(s.eq, &ev), PTL_EQ_EMPTY);
}

NODES_CASE(descriptors_are_not_taken_for_others, 1)
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
		IS_WRONG(PtlMDUnlink(wrong[i]), PTL_MD_INVALID);
	}
	expect_empty(s.eq);
	CHECK_OK(PtlMDUnlink(s.md));
}

/* A call that another thread's PtlNIFini overtakes answers as if its object were gone. */
NODES_CASE(objects_of_a_nic_that_closes_are_gone, 1)
{
	struct stock s = stock_new(ni);
	nic_hold(nic());
	p3_set(&nic()->closing, 1);
	int put = PtlPut(s.md, PTL_ACK_REQ, s.id, PT, 0, 1, 0, 0);
	int get = PtlGet(s.md, s.id, PT, 0, 1, 0);
	int md_unlink = PtlMDUnlink(s.md), me_unlink = PtlMEUnlink(s.me);
	p3_set(&nic()->closing, 0);
	p3_lease_leave(nic());
	IS_WRONG(put, PTL_MD_INVALID);
	IS_WRONG(get, PTL_MD_INVALID);
	IS_WRONG(md_unlink, PTL_MD_INVALID);
	IS_WRONG(me_unlink, PTL_ME_INVALID);
	CHECK_OK(PtlMDUnlink(s.md));
	CHECK_OK(PtlMEUnlink(s.me));
}

/* P3.3 3.13: a get has one target */
NODES_CASE(gets_answer_wildcards, 1)
{
	struct stock s = stock_new(ni);
	const ptl_process_id_t wildcard[] = {
		{PTL_NID_ANY, s.id.pid}, {s.id.nid, PTL_PID_ANY}, anybody()};
	for (unsigned i = 0; i < 3; i++) {
		IS_WRONG(PtlGet(s.md, wildcard[i], PT, 0, 1, 0), PTL_PROCESS_INVALID);
		IS_WRONG(PtlGetRegion(s.md, 0, 1, wildcard[i], PT, 0, 1, 0),
			PTL_PROCESS_INVALID);
	}
	expect_empty(s.eq);
}

/* Members that no call of tests/spec has wrong. */
NODES_CASE(descriptor_contents_are_checked, 1)
{
	struct stock s = stock_new(ni);
	/* together UINT64_MAX bytes, the length that stands for a whole descriptor */
	ptl_md_iovec_t whole[] = {{(void *)1, UINT64_MAX - 1}, {s.buf, 1}};
	ptl_md_t md[5];
	for (unsigned i = 0; i < 5; i++)
		md[i] = md_of(s.buf, 64, MD_ANY, s.eq);
	md[0].length = UINT64_MAX;
	md[1].options |= 0x8000;
	md[2].threshold = -2;
	md[3] = md_of(whole, 2, PTL_MD_IOVEC, s.eq);
	md[4] = md_of(node_alloc(100000 * sizeof *whole), 100000, PTL_MD_IOVEC, s.eq);
	for (unsigned i = 0; i < 5; i++) {
		ptl_handle_md_t h = 42;
		IS_WRONG(PtlMDAttach(s.me, md[i], PTL_RETAIN, &h), PTL_MD_ILLEGAL);
		IS_WRONG(PtlMDBind(ni, md[i], PTL_RETAIN, &h), PTL_MD_ILLEGAL);
		CHECK_EQ(h, 42);
	}
	IS_WRONG(PtlEQAlloc(ni, UINT64_MAX, NULL, &s.freed_eq), PTL_NO_SPACE);
	IS_WRONG(PtlEQAlloc(ni, (ptl_size_t)1 << 40, NULL, &s.freed_eq), PTL_NO_SPACE);
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

static void grants(ptl_ni_limits_t *desired, const int want[8])
{
	union {
		ptl_ni_limits_t limits;
		int each[8];
	} actual;
	ptl_handle_ni_t other;
	CHECK_OK(PtlNIInit(PTL_IFACE_SS, PTL_PID_ANY, desired, &actual.limits, &other));
	for (unsigned i = 0; i < 8; i++)
		CHECK_EQ(actual.each[i], want[i]);
	CHECK_OK(PtlNIFini(other));
}

/* docs/porting.md, "Limits" */
NODES_CASE(limits_are_those_of_the_documents, 1)
{
	enum { ALL = INT_MAX };
	ptl_ni_limits_t all = {ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL};
	const int usual[8] = {65536, 65536, 256, 63, 63, 1024, 65536, 64};
	const int most[8] = {131072, 131072, 4096, 1023, 1023, 65536, 131072, 64};
	grants(NULL, usual);
	grants(&all, most);
}

/* The maps of the launcher stay: a program may say the same, and nothing else */
NODES_CASE(maps_are_compared_with_the_launchers, 1)
{
	/* behind its element each map has a word that is none of it */
	ptl_nid_t nid[] = {0, 0x5a5a5a5a};
	ptl_pid_t pid[] = {0, 0x5a5a5a5a};
	CHECK_OK(PtlGetNIDMap(ni, nid, 1));
	CHECK_OK(PtlGetPIDMap(ni, pid, 1));
	CHECK_OK(PtlSetNIDMap(ni, nid, 1));
	CHECK_OK(PtlSetPIDMap(ni, pid, 1));
	IS_WRONG(PtlSetNIDMap(ni, nid, 2), PTL_PROCESS_INVALID);
	IS_WRONG(PtlSetPIDMap(ni, pid, 2), PTL_PROCESS_INVALID);
	nid[0]++;
	pid[0]++;
	IS_WRONG(PtlSetNIDMap(ni, nid, 1), PTL_FAIL);
	IS_WRONG(PtlSetPIDMap(ni, pid, 1), PTL_FAIL);
}

/* portals3x.h */
NODES_CASE(extensions_answer_bad_arguments, 1)
{
	struct stock s = stock_new(ni);
	const ptl_process_id_t wildcard[] = {
		{PTL_NID_ANY, s.id.pid}, {s.id.nid, PTL_PID_ANY}, anybody()};
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

NODES_CASE(extensions_answer_no_init_after_fini, 1)
{
	struct stock s = stock_new(ni);
	ptlx_stats_t st = {.struct_size = sizeof st};
	CHECK_OK(PtlNIFini(ni));
	IS_WRONG(PtlXStats(ni, &st), PTL_NI_INVALID);
	IS_WRONG(PtlXPTHold(ni, PT, 1), PTL_NI_INVALID);
	IS_WRONG(PtlXInject(ni, s.buf, 8, s.id, PT, 0, 1, 0, 0), PTL_NI_INVALID);
	PtlFini();
	IS_WRONG(PtlXBarrier(), PTL_NO_INIT);
	IS_WRONG(PtlXStats(ni, &st), PTL_NO_INIT);
	IS_WRONG(PtlXPTHold(ni, PT, 1), PTL_NO_INIT);
	IS_WRONG(PtlXWaitsFor(s.eq, NULL), PTL_NO_INIT);
	IS_WRONG(PtlXInject(ni, s.buf, 8, s.id, PT, 0, 1, 0, 0), PTL_NO_INIT);
}

int main(void)
{
	int failed = cases_run();
	printf("# tried: %u calls\n", tried);
	return failed;
}
