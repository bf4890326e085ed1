/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two kinds of interface, the document's and Cray's, in one process at once: their
 * differences; spec_*_2_cray shows that there are no others.  PTL3_PERSONALITY makes both
 * of one kind.
 */
#include "cases.h"

enum { PT = 4, SHORT = 8, EAGER = 3000, LONG = 400000, AT = 16 };
static const size_t lengths[] = {SHORT, EAGER, LONG};

#define AUTO PTL_MD_EVENT_AUTO_UNLINK_ENABLE

/* One interface of this node, and its expected behavior. */
struct side_of {
	ptl_handle_ni_t ni;
	ptl_process_id_t self, peer;
	bool cray;
};

static bool is_cray(unsigned iface)
{
	const char *all = getenv("PTL3_PERSONALITY");
	return all && *all && strcmp(all, "auto") != 0 ? strcmp(all, "cray") == 0
						       : iface == 1;
}

static struct side_of side_of(ptl_handle_ni_t ni, unsigned iface, unsigned peer)
{
	struct side_of s = {.ni = ni, .cray = is_cray(iface)};
	CHECK_OK(PtlGetId(ni, &s.self));
	s.peer = id_of(ni, peer);
	return s;
}

typedef void scene(unsigned rank, const struct side_of *s);

/* Play the scene on both interfaces; with two nodes rank 0 acts on rank 1. */
static void on_both(unsigned rank, unsigned size, ptl_handle_ni_t ni, scene *play)
{
	ptl_handle_ni_t second;
	CHECK_OK(PtlNIInit(PTL_IFACE_SS, PTL_PID_ANY, NULL, NULL, &second));
	sync_nodes();
	struct side_of a = side_of(ni, 0, size - 1), b = side_of(second, 1, size - 1);
	play(rank, &a);
	play(rank, &b);
	play(rank, &a); /* the other interface has changed nothing */
	sync_nodes();
}

#define BOTH_CASE(name, nodes)                                                           \
	static scene name##_scene;                                                       \
	NODES_CASE(name, nodes)                                                          \
	{                                                                                \
		on_both(rank, size, ni, name##_scene);                                   \
	}                                                                                \
	static void name##_scene(unsigned rank MAYBE_UNUSED, const struct side_of *s)

/* ---- the content of events ---- */

static ptl_handle_md_t post_counted(const struct side_of *s, ptl_unlink_t me_unlink,
	ptl_md_t d, int threshold, ptl_unlink_t unlink)
{
	ptl_handle_md_t md;
	d.threshold = threshold;
	ptl_handle_me_t me = me_last(s->ni, PT, 1, 0, me_unlink);
	CHECK_OK(PtlMDAttach(me, d, unlink, &md));
	return md;
}

static ptl_handle_md_t bind_counted(
	const struct side_of *s, ptl_md_t d, int threshold, ptl_unlink_t unlink)
{
	ptl_handle_md_t md;
	d.threshold = threshold;
	CHECK_OK(PtlMDBind(s->ni, d, unlink, &md));
	return md;
}

static int left_of(ptl_handle_md_t md)
{
	ptl_md_t d = {.options = 0};
	CHECK_OK(PtlMDUpdate(md, &d, NULL, PTL_EQ_NONE));
	return d.threshold;
}

/* Check that the next event is of this kind and its descriptor lives on. */
static ptl_event_t not_last(ptl_handle_eq_t eq, ptl_event_kind_t kind)
{
	ptl_event_t ev = expect(eq, kind);
	CHECK_EQ(ev.unlinked, 0);
	return ev;
}

/* Check that the next event is of this kind and its descriptor is gone: an UNLINK tells
 * so, or that event itself on Cray's interface where no UNLINK was requested. */
static void then_gone(const struct side_of *s, ptl_handle_eq_t eq, ptl_event_kind_t kind,
	unsigned options)
{
	bool silent = s->cray && !(options & AUTO);
	ptl_event_t ev = expect(eq, kind), un = ev;
	CHECK_EQ(ev.unlinked != 0, silent);
	if (!silent)
		un = expect(eq, PTL_EVENT_UNLINK);
	CHECK(un.unlinked);
	CHECK_EQ(un.link, ev.link);
	CHECK_EQ(un.md.options, options);
	CHECK_RC(PtlMDUnlink(ev.md_handle), PTL_MD_INVALID);
	expect_empty(eq);
}

/* ---- gets ---- */

static void expect_send(const struct side_of *s, ptl_handle_eq_t eq, size_t len)
{
	ptl_event_t start = not_last(eq, PTL_EVENT_SEND_START);
	ptl_event_t end = not_last(eq, PTL_EVENT_SEND_END);
	CHECK_EQ(start.link, end.link);
	CHECK_EQ(end.rlength, len);
	CHECK_EQ(start.mlength, len);
	CHECK_EQ(end.mlength, len);
	CHECK_EQ(end.offset, AT);
	CHECK_EQ(end.match_bits, 1);
	CHECK_EQ(end.initiator.pid, s->self.pid);
	CHECK_EQ(end.md.threshold, 1);
}

static void expect_reply(const struct side_of *s, ptl_handle_eq_t eq, size_t len)
{
	ptl_event_t start = not_last(eq, PTL_EVENT_REPLY_START);
	ptl_event_t end = not_last(eq, PTL_EVENT_REPLY_END);
	CHECK_EQ(start.link, end.link);
	CHECK_EQ(end.mlength, len);
	CHECK_EQ(end.initiator.pid, s->peer.pid);
	CHECK_EQ(end.md.threshold, s->cray ? 0 : 1);
}

static void get_of(const struct side_of *s, size_t len)
{
	ptl_sr_value_t before, after;
	ptl_handle_eq_t eq = eq_new(s->ni, 16);
	unsigned char *to = node_alloc(len + AT);
	ptl_handle_md_t md = bind_counted(s, md_of(to, len + AT, 0, eq), 2, PTL_RETAIN);
	CHECK_OK(PtlNIStatus(s->ni, PTL_SR_SEND_LENGTH, &before));
	CHECK_OK(PtlGetRegion(md, AT, len, s->peer, PT, 0, 1, 0));
	if (s->cray)
		expect_send(s, eq, len);
	expect_reply(s, eq, len);
	expect_empty(eq);
	CHECK_PATTERN(to + AT, 0, len, 7);
	CHECK_EQ(left_of(md), s->cray ? 0 : 1);
	CHECK_OK(PtlNIStatus(s->ni, PTL_SR_SEND_LENGTH, &after));
	CHECK_EQ(after, before);
	CHECK_OK(PtlMDUnlink(md));
	CHECK_OK(PtlEQFree(eq));
}

BOTH_CASE(get_gives_reply_and_on_cray_send_before_it, 2)
{
	unsigned char *from = node_pattern(LONG, 7);
	ptl_handle_md_t there = PTL_INVALID_HANDLE;
	if (rank == 1)
		there = post_md(s->ni, PT, 1, md_of(from, LONG, MD_ANY, PTL_EQ_NONE));
	sync_nodes();
	for (unsigned i = 0; rank == 0 && i < 3; i++)
		get_of(s, lengths[i]);
	sync_nodes();
	if (rank == 1)
		unlink_at_last(there); /* in use until the last get is released */
}

/* Programs of the Cray XT rely on this: threshold 2 and PTL_UNLINK is one get. */
static void used_up_by_get(const struct side_of *s, size_t len, unsigned options)
{
	ptl_handle_eq_t eq = eq_new(s->ni, 16);
	unsigned char *to = node_alloc(len);
	options |= PTL_MD_EVENT_START_DISABLE;
	ptl_md_t d = md_of(to, len, options, eq);
	ptl_handle_md_t md = bind_counted(s, d, s->cray ? 2 : 1, PTL_UNLINK);
	CHECK_OK(PtlGet(md, s->peer, PT, 0, 1, 0));
	if (s->cray)
		(void)not_last(eq, PTL_EVENT_SEND_END);
	then_gone(s, eq, PTL_EVENT_REPLY_END, options);
	CHECK_PATTERN(to, 0, len, 7);
	CHECK_OK(PtlEQFree(eq));
}

BOTH_CASE(get_uses_up_two_units_on_cray, 1)
{
	ptl_md_t d = md_of(node_pattern(LONG, 7), LONG, MD_ANY, PTL_EQ_NONE);
	ptl_handle_md_t there = post_md(s->ni, PT, 1, d);
	for (unsigned i = 0; i < 3; i++) {
		used_up_by_get(s, lengths[i], 0);
		used_up_by_get(s, lengths[i], AUTO);
	}
	unlink_at_last(there);
}

/* Threshold 1 and PTL_UNLINK: gone with SEND_END; the reply is discarded, as an ACK
 * would be. */
BOTH_CASE(reply_to_a_descriptor_that_is_gone_is_discarded, 1)
{
	ptl_md_t d = md_of(node_pattern(LONG, 7), LONG, MD_ANY, PTL_EQ_NONE);
	ptl_handle_md_t there = post_md(s->ni, PT, 1, d);
	for (unsigned i = 0; s->cray && i < 3; i++) {
		uint64_t drops = drops_of(s->ni);
		ptl_handle_eq_t eq = eq_new(s->ni, 16);
		unsigned char *to = node_alloc(lengths[i]);
		d = source_md(to, lengths[i], eq);
		ptl_handle_md_t md = bind_counted(s, d, 1, PTL_UNLINK);
		CHECK_OK(PtlGet(md, s->peer, PT, 0, 1, 0));
		then_gone(s, eq, PTL_EVENT_SEND_END, d.options);
		run_for_drops(s->ni, drops + 1);
		expect_empty(eq);
		CHECK_ZERO(to, lengths[i]);
		CHECK_OK(PtlEQFree(eq));
	}
	unlink_at_last(there);
}

/* Get until a request waits for room.  On Cray's interface its SEND events are still to
 * come, so PtlMDUpdate with that queue must refuse. */
BOTH_CASE(send_of_a_waiting_get_is_owed, 1)
{
	ptl_event_t ev;
	ptl_handle_eq_t eq = eq_new(s->ni, 4096);
	ptl_md_t d = md_of(node_alloc(LONG), LONG, 0, eq);
	ptl_handle_md_t md = bind_md(s->ni, d);
	ptl_handle_md_t there = post_md(
		s->ni, PT, 1, md_of(node_pattern(LONG, 7), LONG, MD_ANY, PTL_EQ_NONE));
	unsigned gets = 0, sends = 0, replies = 0;
	int rc = PTL_MD_NO_UPDATE;
	while (gets < 600 && rc == PTL_MD_NO_UPDATE) {
		CHECK_OK(PtlGet(md, s->peer, PT, 0, 1, 0));
		gets++;
		while (PtlEQGet(eq, &ev) == PTL_OK) {
			sends += ev.type == PTL_EVENT_SEND_END;
			replies += ev.type == PTL_EVENT_REPLY_END;
		}
		if (sends == gets || !s->cray)
			continue; /* it left at once */
		rc = PtlMDUpdate(md, NULL, &d, eq);
		CHECK(rc == PTL_MD_NO_UPDATE || rc == PTL_OK);
		if (rc == PTL_OK) /* did its events come meanwhile? */
			CHECK_EQ(PtlEQPeek(eq, &ev), PTL_EQ_EMPTY);
		CHECK(rc != PTL_OK || sends == gets);
	}
	while (replies < gets) {
		ev = next_event(eq);
		CHECK_EQ(ev.ni_fail_type, PTL_NI_OK);
		sends += ev.type == PTL_EVENT_SEND_END;
		replies += ev.type == PTL_EVENT_REPLY_END;
	}
	CHECK_EQ(sends, s->cray ? gets : 0);
	CHECK_OK(PtlMDUpdate(md, NULL, &d, eq)); /* nothing is owed any more */
	CHECK_OK(PtlMDUnlink(md));
	unlink_at_last(there);
}

/* ---- automatic unlinks ---- */

/* Check that descriptors go with their last event: PUT_END or GET_END at the target,
 * SEND_END or ACK at the source. */
static void unlinks_by_put(const struct side_of *s, size_t len, unsigned options)
{
	ptl_handle_eq_t eq = eq_new(s->ni, 16), src_eq = eq_new(s->ni, 16);
	unsigned quiet = PTL_MD_EVENT_START_DISABLE | options;
	ptl_md_t d = md_of(node_alloc(len), len, MD_ANY | quiet, eq);
	ptl_md_t from = md_of(node_pattern(len, 7), len, quiet, src_eq);
	ptl_handle_md_t md = post_counted(s, PTL_UNLINK, d, 1, PTL_UNLINK);
	CHECK_OK(PtlPut(bind_counted(s, from, 1, PTL_UNLINK), PTL_NO_ACK_REQ, s->peer, PT,
		0, 1, 0, 0));
	then_gone(s, src_eq, PTL_EVENT_SEND_END, quiet);
	then_gone(s, eq, PTL_EVENT_PUT_END, d.options);
	CHECK_PATTERN(d.start, 0, len, 7);
	post_counted(s, PTL_UNLINK, d, 1, PTL_UNLINK);
	md = bind_counted(s, from, 2, PTL_UNLINK);
	CHECK_OK(PtlPut(md, PTL_ACK_REQ, s->peer, PT, 0, 1, 0, 0));
	(void)not_last(src_eq, PTL_EVENT_SEND_END);
	then_gone(s, src_eq, PTL_EVENT_ACK, quiet);
	then_gone(s, eq, PTL_EVENT_PUT_END, d.options);
	post_counted(s, PTL_UNLINK, d, 1, PTL_UNLINK);
	md = bind_md(s->ni, md_of(node_alloc(len), len, MD_QUIET, PTL_EQ_NONE));
	CHECK_OK(PtlGet(md, s->peer, PT, 0, 1, 0));
	then_gone(s, eq, PTL_EVENT_GET_END, d.options);
	while (left_of(md) == 0 || PtlMDUnlink(md) == PTL_MD_IN_USE)
		;
	CHECK_OK(PtlEQFree(eq));
	CHECK_OK(PtlEQFree(src_eq));
}

BOTH_CASE(unlink_events_come_on_request_on_cray, 1)
{
	for (unsigned i = 0; i < 3; i++) {
		unlinks_by_put(s, lengths[i], 0);
		unlinks_by_put(s, lengths[i], AUTO);
		unlinks_by_put(s, lengths[i], PTL_MD_EVENT_MANUAL_UNLINK_ENABLE);
	}
}

/* Two long puts run at a time: the later END tells of the unlinking, and nothing stays
 * owed. */
static void last_of_two(const struct side_of *s, unsigned options)
{
	ptl_handle_eq_t eq = eq_new(s->ni, 16);
	ptl_md_t d = md_of(node_alloc(2 * LONG), 2 * LONG,
		PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE | options, eq);
	ptl_md_t probe = md_of(NULL, 0, 0, PTL_EQ_NONE);
	ptl_handle_md_t looker = bind_md(s->ni, probe);
	ptl_handle_md_t from =
		bind_md(s->ni, md_of(node_pattern(LONG, 7), LONG, MD_QUIET, PTL_EQ_NONE));
	(void)post_counted(s, PTL_UNLINK, d, 2, PTL_UNLINK);
	for (unsigned i = 0; i < 2; i++)
		CHECK_OK(PtlPut(from, PTL_NO_ACK_REQ, s->peer, PT, 0, 1, 0, 0));
	(void)not_last(eq, PTL_EVENT_PUT_END);
	then_gone(s, eq, PTL_EVENT_PUT_END, d.options);
	CHECK_OK(PtlMDUpdate(looker, NULL, &probe, eq));
	CHECK_OK(PtlMDUnlink(looker));
	CHECK_PATTERN(d.start, 0, LONG, 7);
	unlink_at_last(from);
}

BOTH_CASE(last_of_two_ends_says_it, 1)
{
	last_of_two(s, 0);
	last_of_two(s, AUTO);
}

/* Without END events an unlink that was not requested is silent. */
BOTH_CASE(quiet_descriptors_go_silently_on_cray, 1)
{
	ptl_handle_eq_t eq = eq_new(s->ni, 16);
	ptl_md_t d = md_of(node_alloc(8), 8, PTL_MD_OP_PUT | MD_QUIET, eq);
	ptl_handle_md_t md = post_counted(s, PTL_UNLINK, d, 1, PTL_UNLINK);
	ptl_handle_md_t src =
		bind_md(s->ni, md_of(node_alloc(8), 8, 0, eq_new(s->ni, 8)));
	CHECK_OK(PtlPut(src, PTL_NO_ACK_REQ, s->peer, PT, 0, 1, 0, 0));
	while (PtlMDUpdate(md, &d, NULL, PTL_EQ_NONE) == PTL_OK)
		;
	if (!s->cray)
		CHECK(expect(eq, PTL_EVENT_UNLINK).unlinked);
	expect_empty(eq);
	CHECK_OK(PtlMDUnlink(src));
}

/* ---- targets that do not exist ---- */

/* Return true if a get failed: either SEND fails, or it ends with REPLY. */
static bool get_failed(const struct side_of *s, ptl_handle_eq_t eq)
{
	ptl_event_t ev = next_event(eq);
	if (s->cray) {
		CHECK_EQ(ev.type, PTL_EVENT_SEND_START);
		ev = next_event(eq);
		CHECK_EQ(ev.type, PTL_EVENT_SEND_END);
		if (ev.ni_fail_type != PTL_NI_OK)
			return true;
		ev = next_event(eq);
	}
	CHECK_EQ(ev.type, PTL_EVENT_REPLY_START);
	ev = next_event(eq);
	CHECK_EQ(ev.type, PTL_EVENT_REPLY_END);
	CHECK(ev.ni_fail_type == PTL_NI_OK || ev.mlength == 0);
	return ev.ni_fail_type != PTL_NI_OK;
}

BOTH_CASE(get_from_nobody_fails, 1)
{
	ptl_handle_eq_t eq = eq_new(s->ni, 16);
	ptl_process_id_t absent = {s->self.nid, 60000};
	ptl_md_t d = md_of(node_alloc(8), 8, 0, eq);
	ptl_handle_md_t md = bind_counted(s, d, 1, PTL_RETAIN);
	CHECK_OK(PtlGet(md, absent, PT, 0, 1, 0));
	CHECK(get_failed(s, eq));
	expect_empty(eq);
	CHECK_EQ(left_of(md), 0);
	CHECK_OK(PtlMDUnlink(md));
	d.options = PTL_MD_EVENT_START_DISABLE;
	md = bind_counted(s, d, 1, PTL_UNLINK);
	CHECK_OK(PtlGet(md, absent, PT, 0, 1, 0));
	ptl_event_t ev = next_event(eq);
	CHECK_EQ(ev.type, s->cray ? PTL_EVENT_SEND_END : PTL_EVENT_REPLY_END);
	CHECK_EQ(ev.ni_fail_type, PTL_NI_FAIL);
	CHECK_EQ(ev.unlinked != 0, s->cray);
	CHECK_EQ(ev.mlength, 0);
	if (!s->cray)
		(void)expect(eq, PTL_EVENT_UNLINK);
	expect_empty(eq);
}

static void get_until_it_dies(const struct side_of *s, size_t len)
{
	ptl_handle_eq_t eq = eq_new(s->ni, 64);
	ptl_handle_md_t md = bind_md(s->ni, md_of(node_alloc(len), len, 0, eq));
	bool failed = false;
	while (!failed) {
		CHECK_OK(PtlGet(md, s->peer, PT, 0, 1, 0));
		failed = get_failed(s, eq);
	}
	expect_empty(eq);
	CHECK_OK(PtlMDUnlink(md));
}

NODES_CASE(get_from_a_node_that_dies_ends, 2)
{
	ptl_handle_ni_t second;
	CHECK_OK(PtlNIInit(PTL_IFACE_SS, PTL_PID_ANY, NULL, NULL, &second));
	struct side_of a = side_of(ni, 0, 1), b = side_of(second, 1, 1);
	ptl_md_t d = md_of(node_pattern(LONG, 7), LONG, MD_ANY, PTL_EQ_NONE);
	(void)post_md(a.ni, PT, 1, d);
	(void)post_md(b.ni, PT, 1, d);
	sync_nodes();
	if (rank == 1) {
		/* pause: the gets of the other node go on meanwhile */
		sleep_ms(20);
		node_die();
		return;
	}
	get_until_it_dies(&b, LONG);
	get_until_it_dies(&a, SHORT);
	get_until_it_dies(&b, SHORT);
}

/* ---- PtlNIInit ---- */

static void init_again(ptl_interface_t iface, const struct side_of *s)
{
	ptl_ni_limits_t limits = {.max_mes = 0}, wish = {.max_mes = 5};
	ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
	CHECK_EQ(PtlNIInit(iface, 12345, &wish, &limits, &ni),
		s->cray ? PTL_IFACE_DUP : PTL_OK);
	CHECK_EQ(ni, s->ni);
	CHECK(limits.max_mes > 5 && limits.max_pt_index >= 63);
	CHECK_EQ(PtlNIInit(iface, PTL_PID_ANY, NULL, NULL, &ni),
		s->cray ? PTL_IFACE_DUP : PTL_OK);
	CHECK_RC(PtlNIInit(iface, PTL_PID_ANY, NULL, NULL, NULL), PTL_SEGV);
}

NODES_CASE(second_init_answers_in_the_manner_of_its_kind, 1)
{
	ptl_handle_ni_t second;
	for (unsigned i = 0; i < 2; i++) {
		ptl_interface_t iface = IFACE_FROM_BRIDGE_AND_NALID(
			i ? PTL_BRIDGE_QK : PTL_BRIDGE_UK, CRAY_USER_NAL);
		CHECK_OK(PtlNIInit(iface, PTL_PID_ANY, NULL, NULL, &second));
		struct side_of a = side_of(ni, 0, 0), b = side_of(second, 1, 0);
		init_again(PTL_IFACE_DEFAULT, &a);
		init_again(PTL_IFACE_SS, &b);
		init_again(iface, &b);
		CHECK_OK(PtlNIFini(second)); /* however often */
		CHECK_RC(PtlNIFini(second), PTL_NI_INVALID);
	}
}

/* Each descriptor counts at the largest power of two that divides its address. */
BOTH_CASE(registers_of_alignments_count_descriptors, 1)
{
	unsigned char *at = node_alloc(512);
	at += 256 - (uintptr_t)at % 256;
	for (unsigned log = 0; log <= 8; log++) {
		ptl_sr_value_t before[5], after[5];
		for (ptl_sr_index_t i = 0; i < 5; i++)
			CHECK_OK(PtlNIStatus(s->ni, PTL_SR_MD_ALIGN_128 + i, &before[i]));
		CHECK_OK(PtlMDUnlink(bind_md(
			s->ni, md_of(at + (1u << log) % 256, 8, 0, PTL_EQ_NONE))));
		for (ptl_sr_index_t i = 0; i < 5; i++) {
			CHECK_OK(PtlNIStatus(s->ni, PTL_SR_MD_ALIGN_128 + i, &after[i]));
			CHECK_EQ(after[i] - before[i],
				log >= 3 && i == (log > 7 ? 0 : 7 - log));
		}
	}
}
