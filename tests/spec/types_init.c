/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Statements 1 to 59: types and constants; the library, interfaces and their ids;
 * comparing handles.
 */
#include "spec.h"
#include "../support/asleep.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

/* ---- types and constants ---- */

#define IS_UNSIGNED_8(type) (sizeof(type) == 8 && (type)-1 > (type)0)

STATEMENT(1, eight_byte_types)
{
	CHECK(IS_UNSIGNED_8(ptl_size_t));
	CHECK(IS_UNSIGNED_8(ptl_match_bits_t));
	CHECK(IS_UNSIGNED_8(ptl_hdr_data_t));
}

STATEMENT(2, register_values_are_signed)
{
	CHECK(sizeof(ptl_sr_value_t) >= 4);
	CHECK((ptl_sr_value_t)-1 < (ptl_sr_value_t)0);
}

STATEMENT(3, return_codes_are_distinct)
{
	static const int codes[] = {PTL_AC_INDEX_INVALID, PTL_EQ_DROPPED, PTL_EQ_EMPTY,
		PTL_EQ_INVALID, PTL_FAIL, PTL_HANDLE_INVALID, PTL_IFACE_INVALID,
		PTL_MD_ILLEGAL, PTL_MD_INVALID, PTL_MD_IN_USE, PTL_MD_NO_UPDATE,
		PTL_ME_INVALID, PTL_ME_IN_USE, PTL_ME_LIST_TOO_LONG, PTL_NI_INVALID,
		PTL_NO_INIT, PTL_NO_SPACE, PTL_PID_INVALID, PTL_PROCESS_INVALID,
		PTL_PT_FULL, PTL_PT_INDEX_INVALID, PTL_SEGV, PTL_SR_INDEX_INVALID,
		PTL_UNKNOWN_ERROR, PTL_IFACE_DUP, PTL_EQ_IN_USE, PTL_VAL_FAILED,
		PTL_PID_IN_USE, PTL_NOT_IMPLEMENTED};
	CHECK(PTL_OK == 0);
	for (size_t i = 0; i < COUNT_OF(codes); i++) {
		CHECK(codes[i] > 0);
		for (size_t j = 0; j < i; j++)
			CHECK(codes[i] != codes[j]);
	}
}

STATEMENT(4, ni_ok_is_zero)
{
	CHECK(PTL_NI_OK == 0);
	CHECK(PTL_NI_FAIL != 0);
}

STATEMENT(5, options_combine)
{
	static const unsigned options[] = {PTL_MD_OP_PUT, PTL_MD_OP_GET,
		PTL_MD_MANAGE_REMOTE, PTL_MD_TRUNCATE, PTL_MD_ACK_DISABLE, PTL_MD_IOVEC,
		PTL_MD_MAX_SIZE, PTL_MD_EVENT_START_DISABLE, PTL_MD_EVENT_END_DISABLE};
	unsigned all = 0;
	for (size_t i = 0; i < COUNT_OF(options); i++) {
		CHECK(options[i] != 0);
		CHECK((all & options[i]) == 0);
		all |= options[i];
	}
	ptl_md_iovec_t piece = {.iov_base = suite_alloc(8), .iov_len = 8};
	(void)spec_bind(spec_md(&piece, 1, all, PTL_EQ_NONE), PTL_RETAIN);
}

STATEMENT(6, infinity_is_no_count)
{
	ptl_md_t md = {.threshold = PTL_MD_THRESH_INF};
	CHECK(PTL_MD_THRESH_INF < 0);
	CHECK(md.threshold == PTL_MD_THRESH_INF);
}

/* One object of each kind. */
struct objects {
	ptl_handle_ni_t ni;
	ptl_handle_eq_t eq;
	ptl_handle_me_t me;
	ptl_handle_md_t md, bound;
};

static struct objects make_objects(void)
{
	static char byte;
	struct objects o = {.ni = spec.ni, .eq = spec_eq(4), .me = spec_me(1)};
	ptl_md_t md = spec_md(&byte, 1, PTL_MD_OP_PUT, o.eq);
	CHECK_OK(PtlMDAttach(o.me, md, PTL_RETAIN, &o.md));
	o.bound = spec_bind(md, PTL_RETAIN);
	return o;
}

static ptl_handle_any_t static_invalid = PTL_INVALID_HANDLE;
static ptl_handle_eq_t static_none = PTL_EQ_NONE;

static void check_is_real(ptl_handle_any_t handle)
{
	CHECK(handle != static_invalid);
	CHECK(handle != static_none);
	CHECK(handle != PTL_HANDLE_NONE);
}

STATEMENT(7, constant_handles)
{
	for (int i = 0; i < 100; i++) {
		struct objects o = make_objects();
		check_is_real(o.ni);
		check_is_real(o.eq);
		check_is_real(o.me);
		check_is_real(o.md);
		check_is_real(o.bound);
	}
	check_is_real(spec_second());
}

static const ptl_event_kind_t kinds[] = {PTL_EVENT_GET_START, PTL_EVENT_GET_END,
	PTL_EVENT_PUT_START, PTL_EVENT_PUT_END, PTL_EVENT_GETPUT_START,
	PTL_EVENT_GETPUT_END, PTL_EVENT_REPLY_START, PTL_EVENT_REPLY_END,
	PTL_EVENT_SEND_START, PTL_EVENT_SEND_END, PTL_EVENT_ACK, PTL_EVENT_UNLINK};

STATEMENT(8, event_kinds_are_distinct)
{
	CHECK(COUNT_OF(kinds) == 12);
	for (size_t i = 0; i < COUNT_OF(kinds); i++)
		for (size_t j = 0; j < i; j++)
			CHECK(kinds[i] != kinds[j]);
}

STATEMENT(9, nid_comes_first)
{
	ptl_process_id_t id = {11, 22};
	CHECK_EQ(id.nid, 11);
	CHECK_EQ(id.pid, 22);
}

STATEMENT(10, order_of_limits)
{
	ptl_ni_limits_t l = {1, 2, 3, 4, 5, 6, 7, 8};
	CHECK_EQ(l.max_mes, 1);
	CHECK_EQ(l.max_mds, 2);
	CHECK_EQ(l.max_eqs, 3);
	CHECK_EQ(l.max_ac_index, 4);
	CHECK_EQ(l.max_pt_index, 5);
	CHECK_EQ(l.max_md_iovecs, 6);
	CHECK_EQ(l.max_me_list, 7);
	CHECK_EQ(l.max_getput_md, 8);
}

STATEMENT(11, own_ids_are_no_wildcards)
{
	ptl_process_id_t id;
	ptl_uid_t uid;
	ptl_jid_t jid;
	CHECK_OK(PtlGetId(spec.ni, &id));
	CHECK_OK(PtlGetUid(spec.ni, &uid));
	CHECK_OK(PtlGetJid(spec.ni, &jid));
	CHECK(id.nid != PTL_NID_ANY);
	CHECK(id.pid != PTL_PID_ANY);
	CHECK(uid != PTL_UID_ANY);
	CHECK(jid != PTL_JID_ANY);
}

STATEMENT(12, handles_survive_conversion)
{
	struct objects o = make_objects();
	ptl_handle_any_t ni = o.ni, eq = o.eq, me = o.me, md = o.md, bound = o.bound;
	struct objects back = {.ni = ni, .eq = eq, .me = me, .md = md, .bound = bound};
	CHECK(memcmp(&back, &o, sizeof o) == 0);
	ptl_process_id_t id;
	CHECK_OK(PtlGetId(back.ni, &id));
	CHECK_OK(PtlMDUnlink(back.md));
	CHECK_OK(PtlMDUnlink(back.bound));
	CHECK_OK(PtlMEUnlink(back.me));
	CHECK_OK(PtlEQFree(back.eq));
}

STATEMENT(13, opposites_differ)
{
	CHECK((int)PTL_ACK_REQ != (int)PTL_NO_ACK_REQ);
	CHECK((int)PTL_RETAIN != (int)PTL_UNLINK);
	CHECK((int)PTL_INS_BEFORE != (int)PTL_INS_AFTER);
}

/* ---- PtlInit, PtlFini ---- */

/* Arguments that would be valid in an initialized library. */
static ptl_process_id_t some_id = {1, 1};
static char some_bytes[8];
#define SOME_MD                                                                          \
	((ptl_md_t){.start = some_bytes,                                                 \
		.length = 8,                                                             \
		.threshold = 1,                                                          \
		.eq_handle = PTL_EQ_NONE})

static void no_init_from_interfaces(const struct objects *o)
{
	ptl_handle_ni_t ni;
	ptl_ni_limits_t limits;
	ptl_sr_value_t value;
	unsigned long distance;
	ptl_uid_t uid;
	ptl_jid_t jid;
	ptl_process_id_t id;
	CHECK_RC(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, &limits, &ni),
		PTL_NO_INIT);
	CHECK_RC(PtlNIFini(o->ni), PTL_NO_INIT);
	CHECK_RC(PtlNIStatus(o->ni, PTL_SR_DROP_COUNT, &value), PTL_NO_INIT);
	CHECK_RC(PtlNIDist(o->ni, some_id, &distance), PTL_NO_INIT);
	CHECK_RC(PtlNIHandle(o->me, &ni), PTL_NO_INIT);
	CHECK_RC(PtlGetUid(o->ni, &uid), PTL_NO_INIT);
	CHECK_RC(PtlGetId(o->ni, &id), PTL_NO_INIT);
	CHECK_RC(PtlGetJid(o->ni, &jid), PTL_NO_INIT);
	CHECK_RC(PtlACEntry(o->ni, 1, spec_any(), PTL_UID_ANY, PTL_JID_ANY,
			 PTL_PT_INDEX_ANY),
		PTL_NO_INIT);
	CHECK_RC(PtlTblDump(o->ni, 0), PTL_NO_INIT);
	CHECK_RC(PtlMEDump(o->me), PTL_NO_INIT);
	CHECK_RC(PtlNIEqDump(o->ni), PTL_NO_INIT);
	CHECK_RC(PtlProgress(o->ni, 0), PTL_NO_INIT);
}

static void no_init_from_entries(const struct objects *o)
{
	ptl_handle_me_t me;
	ptl_handle_md_t md;
	ptl_pt_index_t pt;
	CHECK_RC(PtlMEAttach(o->ni, SPEC_PT, spec_any(), 0, 0, PTL_RETAIN, PTL_INS_AFTER,
			 &me),
		PTL_NO_INIT);
	CHECK_RC(PtlMEAttachAny(o->ni, &pt, spec_any(), 0, 0, PTL_RETAIN, &me),
		PTL_NO_INIT);
	CHECK_RC(PtlMEInsert(o->me, spec_any(), 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me),
		PTL_NO_INIT);
	CHECK_RC(PtlMEUnlink(o->me), PTL_NO_INIT);
	CHECK_RC(PtlMEMDAttach(o->ni, SPEC_PT, spec_any(), 0, 0, PTL_RETAIN,
			 PTL_INS_AFTER, SOME_MD, PTL_RETAIN, &me, &md),
		PTL_NO_INIT);
	CHECK_RC(PtlMEMDInsert(o->me, spec_any(), 0, 0, PTL_RETAIN, PTL_INS_AFTER,
			 SOME_MD, PTL_RETAIN, &me, &md),
		PTL_NO_INIT);
	CHECK_RC(PtlMEMDPost(o->ni, o->me, spec_any(), 0, 0, PTL_RETAIN, PTL_INS_AFTER,
			 SOME_MD, PTL_RETAIN, &me, &md, PTL_EQ_NONE),
		PTL_NO_INIT);
}

static void no_init_from_descriptors(const struct objects *o)
{
	ptl_handle_md_t md;
	ptl_md_t old;
	CHECK_RC(PtlMDAttach(o->me, SOME_MD, PTL_RETAIN, &md), PTL_NO_INIT);
	CHECK_RC(PtlMDBind(o->ni, SOME_MD, PTL_RETAIN, &md), PTL_NO_INIT);
	CHECK_RC(PtlMDUnlink(o->md), PTL_NO_INIT);
	CHECK_RC(PtlMDUpdate(o->md, &old, NULL, PTL_EQ_NONE), PTL_NO_INIT);
}

static void no_init_from_queues(const struct objects *o)
{
	ptl_handle_eq_t eq = o->eq;
	ptl_event_t ev;
	int which;
	CHECK_RC(PtlEQAlloc(o->ni, 4, PTL_EQ_HANDLER_NONE, &eq), PTL_NO_INIT);
	CHECK_RC(PtlEQFree(o->eq), PTL_NO_INIT);
	CHECK_RC(PtlEQGet(o->eq, &ev), PTL_NO_INIT);
	CHECK_RC(PtlEQWait(o->eq, &ev), PTL_NO_INIT);
	CHECK_RC(PtlEQPoll(&eq, 1, 0, &ev, &which), PTL_NO_INIT);
	CHECK_RC(PtlEQPoll(&eq, 1, PTL_TIME_FOREVER, &ev, &which), PTL_NO_INIT);
	CHECK_RC(PtlEQPeek(o->eq, &ev), PTL_NO_INIT);
}

static void no_init_from_movers(const struct objects *o)
{
	CHECK_RC(PtlPut(o->bound, PTL_NO_ACK_REQ, some_id, SPEC_PT, 0, 0, 0, 0),
		PTL_NO_INIT);
	CHECK_RC(PtlPutRegion(
			 o->bound, 0, 1, PTL_NO_ACK_REQ, some_id, SPEC_PT, 0, 0, 0, 0),
		PTL_NO_INIT);
	CHECK_RC(PtlGet(o->bound, some_id, SPEC_PT, 0, 0, 0), PTL_NO_INIT);
	CHECK_RC(PtlGetRegion(o->bound, 0, 1, some_id, SPEC_PT, 0, 0, 0), PTL_NO_INIT);
	CHECK_RC(PtlGetPut(o->bound, o->md, some_id, SPEC_PT, 0, 0, 0, 0), PTL_NO_INIT);
	CHECK_RC(PtlGetPutRegion(o->bound, 0, o->md, 0, 1, some_id, SPEC_PT, 0, 0, 0, 0),
		PTL_NO_INIT);
}

static void no_init_from_all(const struct objects *o)
{
	no_init_from_interfaces(o);
	no_init_from_entries(o);
	no_init_from_descriptors(o);
	no_init_from_queues(o);
	no_init_from_movers(o);
}

SCENE(calls_before_init)
{
	struct objects never = {1, 2, 3, 4, 5};
	PtlFini();
	no_init_from_all(&never);
}

STATEMENT(14, nothing_works_before_init)
{
	spec_child("calls_before_init");
}

SCENE(init_null)
{
	CHECK_RC(PtlInit(NULL), PTL_SEGV);
}

STATEMENT(15, init_needs_its_output)
{
	CHECK_RC(PtlInit(NULL), PTL_SEGV);
	spec_child("init_null");
}

SCENE(init_once)
{
	int most = -1;
	CHECK_OK(PtlInit(&most));
	CHECK(most >= 1);
}

STATEMENT(16, init_counts_interfaces)
{
	spec_child("init_once");
}

SCENE(init_again)
{
	int first = -1, second = -2;
	CHECK_OK(PtlInit(&first));
	CHECK_OK(PtlInit(&second));
	CHECK_EQ(second, first);
	PtlFini(); /* one call undoes both */
	ptl_handle_ni_t ni;
	CHECK_RC(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni), PTL_NO_INIT);
}

STATEMENT(17, init_again_says_the_same)
{
	int first = -1, second = -2;
	CHECK_OK(PtlInit(&first));
	CHECK_OK(PtlInit(&second));
	CHECK_EQ(second, first);
	spec_child("init_again");
}

static void init_once_more(void *most)
{
	CHECK_OK(PtlInit(most));
}

SCENE(init_in_threads)
{
	int most[8] = {0};
	struct thread *t[COUNT_OF(most)];
	for (size_t i = 0; i < COUNT_OF(most); i++)
		t[i] = thread_start(init_once_more, &most[i]);
	for (size_t i = 0; i < COUNT_OF(most); i++)
		thread_join(t[i]);
	for (size_t i = 0; i < COUNT_OF(most); i++) {
		CHECK(most[i] >= 1);
		CHECK_EQ(most[i], most[0]);
	}
	PtlFini();
}

STATEMENT(18, init_from_many_threads)
{
	for (int i = 0; i < 5; i++)
		spec_child("init_in_threads");
}

WEAK_STATEMENT(19, nothing_works_after_fini)
{
	struct objects o = make_objects();
	spec_down();
	no_init_from_all(&o);
	PtlFini();
	no_init_from_all(&o);
}

/* Send a byte from A to B. */
static void check_traffic(void)
{
	unsigned char *byte = suite_alloc(1);
	ptl_handle_eq_t eq = spec_eq(16);
	ptl_handle_md_t md = PTL_INVALID_HANDLE;
	if (spec.is_b)
		md = spec_target(SPEC_BITS, spec_md(byte, 1,
						    PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE |
							    PTL_MD_EVENT_START_DISABLE,
						    eq));
	spec_barrier();
	if (spec.is_a) {
		unsigned char *out = suite_alloc(1);
		ptl_handle_eq_t sent = spec_eq(16);
		*out = 42;
		spec_put(spec_bind(spec_md(out, 1, PTL_MD_EVENT_START_DISABLE, sent),
				 PTL_RETAIN),
			PTL_ACK_REQ, SPEC_BITS);
		EXPECT(sent, PTL_EVENT_SEND_END);
		EXPECT(sent, PTL_EVENT_ACK);
	}
	if (spec.is_b) {
		ptl_event_t ev = EXPECT(eq, PTL_EVENT_PUT_END);
		CHECK_EQ(ev.md_handle, md);
		CHECK_EQ(*byte, 42);
	}
	spec_barrier();
}

WEAK_STATEMENT(20, init_after_fini)
{
	for (int i = 0; i < 3; i++) {
		int most = -1;
		spec_down();
		spec_barrier();
		CHECK_OK(PtlInit(&most));
		CHECK(most >= 1);
		spec_up(NULL);
		spec_barrier();
		check_traffic();
	}
}

/* ---- PtlNIInit, PtlNIFini ---- */

static int open_again(ptl_ni_limits_t *desired, ptl_ni_limits_t *actual)
{
	ptl_handle_ni_t old = spec.ni;
	int rc = PtlNIFini(old);
	if (rc == PTL_OK)
		rc = PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, desired, actual, &spec.ni);
	return rc;
}

STATEMENT(21, interface_with_defaults)
{
	ptl_ni_limits_t actual;
	memset(&actual, 0xff, sizeof actual);
	CHECK_OK(PtlNIFini(spec.ni));
	spec.ni = PTL_INVALID_HANDLE;
	CHECK_OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, &actual, &spec.ni));
	CHECK(spec.ni != PTL_INVALID_HANDLE);
	CHECK(actual.max_mes > 0);
}

STATEMENT(22, interface_needs_its_handle)
{
	ptl_ni_limits_t actual;
	CHECK_OK(PtlNIFini(spec.ni));
	CHECK_RC(
		PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, &actual, NULL), PTL_SEGV);
	CHECK_OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, &actual, &spec.ni));
}

WEAK_STATEMENT(23, limits_need_not_be_told)
{
	CHECK_OK(open_again(NULL, NULL));
	ptl_process_id_t id;
	CHECK_OK(PtlGetId(spec.ni, &id));
}

STATEMENT(24, impossible_interfaces)
{
	static const ptl_interface_t wrong[] = {12345, UINT32_MAX, 0x80000000u};
	for (size_t i = 0; i < COUNT_OF(wrong); i++) {
		ptl_handle_ni_t ni = SPEC_JUNK;
		ptl_ni_limits_t actual;
		CHECK_RC(PtlNIInit(wrong[i], PTL_PID_ANY, NULL, &actual, &ni),
			PTL_IFACE_INVALID);
		CHECK_EQ(ni, SPEC_JUNK);
	}
}

/*
 * A process of a job may be a node with a nid of its own, where the pids of other nodes
 * are free; then only its other interface can use its pids.
 */
STATEMENT(25, pid_in_use)
{
	ptl_handle_ni_t ni = SPEC_JUNK;
	ptl_ni_limits_t actual;
	CHECK_RC(PtlNIInit(PTL_IFACE_SS, spec.self.pid, NULL, &actual, &ni),
		PTL_PID_INVALID);
	CHECK_EQ(ni, SPEC_JUNK);
	if (spec.is_b && !spec.is_a && spec.a.nid == spec.b.nid) {
		CHECK_OK(PtlNIFini(spec.ni));
		CHECK_RC(PtlNIInit(PTL_IFACE_DEFAULT, spec.a.pid, NULL, &actual, &ni),
			PTL_PID_INVALID);
		CHECK_EQ(ni, SPEC_JUNK);
		spec_up(NULL);
	}
	spec_barrier();
	check_traffic();
}

STATEMENT(26, pid_as_wished)
{
	ptl_pid_t wish = (ptl_pid_t)(7000 + spec.rank);
	ptl_process_id_t id;
	CHECK_OK(PtlNIFini(spec.ni));
	CHECK_OK(PtlNIInit(PTL_IFACE_DEFAULT, wish, NULL, NULL, &spec.ni));
	CHECK_OK(PtlGetId(spec.ni, &id));
	CHECK_EQ(id.pid, wish);
	CHECK_EQ(id.nid, spec.self.nid);
	spec_barrier();
	spec.b.pid = (ptl_pid_t)(spec.size > 1 ? 7001 : 7000);
	check_traffic();
}

STATEMENT(27, second_init_gives_the_same_handle)
{
	ptl_handle_ni_t again = PTL_INVALID_HANDLE;
	CHECK_OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &again));
	CHECK_OK(PtlHandleIsEqual(again, spec.ni));
}

STATEMENT(28, second_init_ignores_limits)
{
	ptl_ni_limits_t desired = {7, 7, 7, 7, 7, 7, 7, 7}, actual;
	ptl_handle_ni_t again;
	memset(&actual, 0, sizeof actual);
	CHECK_OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, &desired, &actual, &again));
	CHECK(memcmp(&actual, &spec.limits, sizeof actual) == 0);
}

STATEMENT(29, second_init_ignores_the_pid)
{
	ptl_handle_ni_t again;
	ptl_process_id_t id;
	ptl_pid_t other = spec.self.pid + 1000;
	CHECK_OK(PtlNIInit(PTL_IFACE_DEFAULT, other, NULL, NULL, &again));
	CHECK_EQ(again, spec.ni);
	CHECK_OK(PtlGetId(spec.ni, &id));
	CHECK_EQ(id.pid, spec.self.pid);
}

STATEMENT(30, portal_table_of_64)
{
	CHECK(spec.limits.max_pt_index >= 63);
}

STATEMENT(31, least_limits)
{
	CHECK(spec.limits.max_ac_index >= 0);
	CHECK(spec.limits.max_md_iovecs >= 1);
	CHECK(spec.limits.max_me_list >= 1);
	CHECK(spec.limits.max_mes >= 1);
	CHECK(spec.limits.max_mds >= 1);
	CHECK(spec.limits.max_eqs >= 1);
}

WEAK_STATEMENT(32, swap_of_a_word_at_least)
{
	CHECK(spec.limits.max_getput_md >= 8);
}

STATEMENT(33, limits_are_always_positive)
{
	static const int wishes[] = {0, -1, INT_MIN, 1, INT_MAX};
	for (size_t i = 0; i < COUNT_OF(wishes); i++) {
		int w = wishes[i];
		ptl_ni_limits_t desired = {w, w, w, w, w, w, w, w}, actual;
		memset(&actual, 0xff, sizeof actual);
		CHECK_OK(open_again(&desired, &actual));
		CHECK(actual.max_mes > 0);
		CHECK(actual.max_mds > 0);
		CHECK(actual.max_eqs > 0);
		CHECK(actual.max_ac_index > 0);
		CHECK(actual.max_pt_index >= 63);
		CHECK(actual.max_md_iovecs > 0);
		CHECK(actual.max_me_list > 0);
		CHECK(actual.max_getput_md > 0);
	}
}

STATEMENT(34, fini_of_no_interface)
{
	struct objects o = make_objects();
	CHECK_RC(PtlNIFini(PTL_INVALID_HANDLE), PTL_NI_INVALID);
	CHECK_RC(PtlNIFini(SPEC_JUNK), PTL_NI_INVALID);
	CHECK_RC(PtlNIFini(o.eq), PTL_NI_INVALID);
	CHECK_RC(PtlNIFini(o.me), PTL_NI_INVALID);
	CHECK_RC(PtlNIFini(o.md), PTL_NI_INVALID);
	ptl_handle_ni_t old = spec.ni;
	CHECK_OK(PtlNIFini(old));
	CHECK_RC(PtlNIFini(old), PTL_NI_INVALID);
}

static void check_ni_is_gone(ptl_handle_ni_t old)
{
	ptl_process_id_t id;
	ptl_uid_t uid;
	ptl_jid_t jid;
	ptl_sr_value_t value;
	unsigned long distance;
	ptl_handle_any_t handle;
	ptl_pt_index_t pt;
	CHECK_RC(PtlGetId(old, &id), PTL_NI_INVALID);
	CHECK_RC(PtlGetUid(old, &uid), PTL_NI_INVALID);
	CHECK_RC(PtlGetJid(old, &jid), PTL_NI_INVALID);
	CHECK_RC(PtlNIStatus(old, PTL_SR_DROP_COUNT, &value), PTL_NI_INVALID);
	CHECK_RC(PtlNIDist(old, spec.self, &distance), PTL_NI_INVALID);
	CHECK_RC(PtlEQAlloc(old, 4, PTL_EQ_HANDLER_NONE, &handle), PTL_NI_INVALID);
	CHECK_RC(PtlMEAttach(old, SPEC_PT, spec_any(), 0, 0, PTL_RETAIN, PTL_INS_AFTER,
			 &handle),
		PTL_NI_INVALID);
	CHECK_RC(PtlMEAttachAny(old, &pt, spec_any(), 0, 0, PTL_RETAIN, &handle),
		PTL_NI_INVALID);
	CHECK_RC(PtlMDBind(old, SOME_MD, PTL_RETAIN, &handle), PTL_NI_INVALID);
	CHECK_RC(PtlACEntry(
			 old, 0, spec_any(), PTL_UID_ANY, PTL_JID_ANY, PTL_PT_INDEX_ANY),
		PTL_NI_INVALID);
	CHECK_RC(PtlNIFini(old), PTL_NI_INVALID);
}

STATEMENT(35, finalised_interface_is_invalid)
{
	ptl_handle_ni_t old = spec.ni;
	CHECK_OK(PtlNIFini(old));
	check_ni_is_gone(old);
	spec_up(NULL); /* nor does the next one bring it back */
	CHECK(spec.ni != old);
	check_ni_is_gone(old);
}

static void check_objects_are_gone(const struct objects *o)
{
	ptl_event_t ev;
	ptl_handle_any_t handle;
	ptl_md_t old;
	ptl_handle_eq_t eq = o->eq;
	int which;
	CHECK_RC(PtlMEUnlink(o->me), PTL_ME_INVALID);
	CHECK_RC(PtlMEInsert(o->me, spec_any(), 0, 0, PTL_RETAIN, PTL_INS_AFTER, &handle),
		PTL_ME_INVALID);
	CHECK_RC(PtlMDAttach(o->me, SOME_MD, PTL_RETAIN, &handle), PTL_ME_INVALID);
	CHECK_RC(PtlMDUnlink(o->md), PTL_MD_INVALID);
	CHECK_RC(PtlMDUnlink(o->bound), PTL_MD_INVALID);
	CHECK_RC(PtlMDUpdate(o->bound, &old, NULL, PTL_EQ_NONE), PTL_MD_INVALID);
	CHECK_RC(PtlPut(o->bound, PTL_NO_ACK_REQ, spec.self, SPEC_PT, 0, 0, 0, 0),
		PTL_MD_INVALID);
	CHECK_RC(PtlGet(o->bound, spec.self, SPEC_PT, 0, 0, 0), PTL_MD_INVALID);
	CHECK_RC(PtlEQGet(o->eq, &ev), PTL_EQ_INVALID);
	CHECK_RC(PtlEQWait(o->eq, &ev), PTL_EQ_INVALID);
	CHECK_RC(PtlEQPoll(&eq, 1, 0, &ev, &which), PTL_EQ_INVALID);
	CHECK_RC(PtlEQFree(o->eq), PTL_EQ_INVALID);
}

STATEMENT(36, objects_of_a_finalised_interface)
{
	struct objects o = make_objects();
	CHECK_OK(PtlNIFini(spec.ni));
	check_objects_are_gone(&o);
	spec_up(NULL);
	struct objects newer = make_objects();
	CHECK(newer.me != o.me);
	check_objects_are_gone(&o);
}

/* Make as many entries as possible, one of each ten with a descriptor. */
static void fill_interface(void)
{
	ptl_handle_me_t me = PTL_INVALID_HANDLE;
	ptl_handle_md_t md;
	int lists = spec.limits.max_pt_index + 1;
	for (int i = 0; i < spec.limits.max_mes; i++) {
		CHECK_OK(PtlMEAttach(spec.ni, (ptl_pt_index_t)(i % lists), spec_any(), 0,
			0, PTL_RETAIN, PTL_INS_AFTER, &me));
		if (i % 10 == 0)
			CHECK_OK(PtlMDAttach(me, SOME_MD, PTL_RETAIN, &md));
	}
	for (int i = 0; i < spec.limits.max_eqs; i++)
		(void)spec_eq(4);
}

STATEMENT(37, fini_frees_all_objects)
{
	ptl_ni_limits_t few = {.max_mes = 1000, .max_mds = 1000, .max_eqs = 64};
	for (int i = 0; i < 3; i++) {
		spec_up(&few);
		fill_interface();
		CHECK_OK(PtlNIFini(spec.ni));
	}
}

/* Send one message to oneself that no entry accepts. */
static void drop_one(void)
{
	ptl_handle_md_t md = spec_bind(SOME_MD, PTL_RETAIN);
	CHECK_OK(PtlPut(md, PTL_NO_ACK_REQ, spec.self, SPEC_PT, 0, 0, 0, 0));
	EXPECT_DROPS(1);
}

STATEMENT(38, registers_start_anew)
{
	drop_one();
	CHECK_OK(PtlNIFini(spec.ni));
	spec_up(NULL);
	for (ptl_sr_index_t i = PTL_SR_DROP_COUNT; i <= PTL_SR_MD_ALIGN_8; i++) {
		ptl_sr_value_t value = -1;
		CHECK_OK(PtlNIStatus(spec.ni, i, &value));
		CHECK_EQ(value, 0);
	}
}

static void send_into_nothing(void)
{
	static const size_t lengths[] = {0, 8, 3000, 1u << 20};
	unsigned char *data = suite_alloc(1u << 20);
	ptl_handle_eq_t eq = spec_eq(64), gets = spec_eq(16);
	for (size_t i = 0; i < COUNT_OF(lengths); i++) {
		ptl_handle_md_t md =
			spec_bind(spec_md(data, lengths[i], 0, eq), PTL_RETAIN);
		spec_put(md, PTL_ACK_REQ, SPEC_BITS);
		CHECK_EQ(NEXT(eq).type, PTL_EVENT_SEND_START);
		CHECK_EQ(NEXT(eq).type, PTL_EVENT_SEND_END);
		ptl_handle_md_t to =
			spec_bind(spec_md(data, lengths[i], 0, gets), PTL_RETAIN);
		spec_get(to, SPEC_BITS);
	}
	SILENCE(eq);
}

STATEMENT(39, message_to_a_finalised_interface)
{
	NEED_TWO_NODES();
	if (spec.is_b)
		CHECK_OK(PtlNIFini(spec.ni));
	spec_barrier();
	if (spec.is_a)
		send_into_nothing();
	spec_barrier();
	if (spec.is_b)
		spec_up(NULL);
	spec_barrier();
	check_traffic();
}

struct waiter {
	ptl_handle_eq_t eq;
	_Atomic pid_t tid;
	int rc;
};

static void wait_for_ever(void *arg)
{
	struct waiter *w = arg;
	ptl_event_t ev;
	w->tid = gettid();
	w->rc = PtlEQWait(w->eq, &ev);
}

WEAK_STATEMENT(40, fini_ends_waiting)
{
	struct waiter w = {.eq = spec_eq(4), .rc = -1};
	struct thread *t = thread_start(wait_for_ever, &w);
	while (!w.tid)
		sleep_ms(1);
	CHECK(await_thread_state(w.tid, 'S'));
	CHECK_OK(PtlNIFini(spec.ni));
	thread_join(t);
	CHECK_EQ(w.rc, PTL_EQ_INVALID);
}

/* ---- registers, distance, ids ---- */

STATEMENT(41, no_drops_at_first)
{
	CHECK_EQ(spec_drops(), 0);
}

STATEMENT(42, reading_a_register_keeps_it)
{
	drop_one();
	for (int i = 0; i < 10; i++)
		CHECK_EQ(spec_drops(), 1);
}

STATEMENT(43, unknown_register)
{
	static const ptl_sr_index_t wrong[] = {
		PTL_SR_MD_ALIGN_8 + 1, 100000, 0x80000000u, UINT32_MAX};
	for (size_t i = 0; i < COUNT_OF(wrong); i++) {
		ptl_sr_value_t value = -77;
		CHECK_RC(PtlNIStatus(spec.ni, wrong[i], &value), PTL_SR_INDEX_INVALID);
		CHECK(value == -77);
	}
}

STATEMENT(44, bad_calls_of_status)
{
	ptl_sr_value_t value = -77;
	CHECK_RC(PtlNIStatus(spec.ni, PTL_SR_DROP_COUNT, NULL), PTL_SEGV);
	CHECK_RC(PtlNIStatus(PTL_INVALID_HANDLE, PTL_SR_DROP_COUNT, &value),
		PTL_NI_INVALID);
	CHECK_RC(PtlNIStatus(SPEC_JUNK, PTL_SR_DROP_COUNT, &value), PTL_NI_INVALID);
	CHECK_RC(PtlNIStatus(spec_eq(4), PTL_SR_DROP_COUNT, &value), PTL_NI_INVALID);
	CHECK(value == -77);
}

STATEMENT(45, distance_is_constant)
{
	unsigned long first = 0, again = 1, other = 0;
	CHECK_OK(PtlNIDist(spec.ni, spec.self, &first));
	for (int i = 0; i < 5; i++) {
		CHECK_OK(PtlNIDist(spec.ni, spec.self, &again));
		CHECK_EQ(again, first);
	}
	CHECK_OK(PtlNIDist(spec.ni, spec.a, &other));
	CHECK_OK(PtlNIDist(spec.ni, spec.a, &again));
	CHECK_EQ(again, other);
	CHECK(first <= other);
}

STATEMENT(46, bad_calls_of_distance)
{
	unsigned long distance;
	CHECK_RC(PtlNIDist(spec.ni, spec.self, NULL), PTL_SEGV);
	CHECK_RC(PtlNIDist(PTL_INVALID_HANDLE, spec.self, &distance), PTL_NI_INVALID);
	CHECK_RC(PtlNIDist(SPEC_JUNK, spec.self, &distance), PTL_NI_INVALID);
	CHECK_RC(PtlNIDist(spec_eq(4), spec.self, &distance), PTL_NI_INVALID);
}

WEAK_STATEMENT(47, no_distance_to_wildcards)
{
	unsigned long distance;
	ptl_process_id_t nid = {PTL_NID_ANY, spec.self.pid};
	ptl_process_id_t pid = {spec.self.nid, PTL_PID_ANY};
	CHECK_RC(PtlNIDist(spec.ni, nid, &distance), PTL_PROCESS_INVALID);
	CHECK_RC(PtlNIDist(spec.ni, pid, &distance), PTL_PROCESS_INVALID);
	CHECK_RC(PtlNIDist(spec.ni, spec_any(), &distance), PTL_PROCESS_INVALID);
}

STATEMENT(48, interface_of_an_interface)
{
	ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
	CHECK_OK(PtlNIHandle(spec.ni, &ni));
	CHECK_OK(PtlHandleIsEqual(ni, spec.ni));
}

static void check_is_of(ptl_handle_any_t object, ptl_handle_ni_t want)
{
	ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
	CHECK_OK(PtlNIHandle(object, &ni));
	CHECK_EQ(ni, want);
}

STATEMENT(49, interface_of_an_object)
{
	struct objects o = make_objects();
	check_is_of(o.eq, spec.ni);
	check_is_of(o.me, spec.ni);
	check_is_of(o.md, spec.ni);
	check_is_of(o.bound, spec.ni);
	ptl_handle_ni_t second = spec_second();
	ptl_handle_eq_t eq;
	CHECK_OK(PtlEQAlloc(second, 4, PTL_EQ_HANDLER_NONE, &eq));
	check_is_of(eq, second);
	check_is_of(o.eq, spec.ni);
}

static void check_is_of_none(ptl_handle_any_t object)
{
	ptl_handle_ni_t ni = SPEC_JUNK;
	CHECK_RC(PtlNIHandle(object, &ni), PTL_HANDLE_INVALID);
	CHECK_EQ(ni, SPEC_JUNK);
}

STATEMENT(50, interface_of_nothing)
{
	check_is_of_none(PTL_INVALID_HANDLE);
	check_is_of_none(PTL_EQ_NONE);
	check_is_of_none(PTL_HANDLE_NONE);
	check_is_of_none(SPEC_JUNK);
}

WEAK_STATEMENT(51, interface_of_freed_objects)
{
	struct objects o = make_objects();
	CHECK_OK(PtlMDUnlink(o.bound));
	CHECK_OK(PtlMDUnlink(o.md));
	CHECK_OK(PtlMEUnlink(o.me));
	CHECK_OK(PtlEQFree(o.eq));
	check_is_of_none(o.bound);
	check_is_of_none(o.md);
	check_is_of_none(o.me);
	check_is_of_none(o.eq);
	ptl_handle_ni_t old = spec.ni;
	CHECK_OK(PtlNIFini(old));
	check_is_of_none(old);
}

STATEMENT(52, interface_needs_an_output)
{
	CHECK_RC(PtlNIHandle(spec.ni, NULL), PTL_SEGV);
}

static void check_bad_id_calls(ptl_handle_any_t bad)
{
	ptl_uid_t uid;
	ptl_process_id_t id;
	ptl_jid_t jid;
	CHECK_RC(PtlGetUid(bad, &uid), PTL_NI_INVALID);
	CHECK_RC(PtlGetId(bad, &id), PTL_NI_INVALID);
	CHECK_RC(PtlGetJid(bad, &jid), PTL_NI_INVALID);
}

STATEMENT(53, own_ids)
{
	ptl_uid_t uid[2];
	ptl_process_id_t id[2];
	ptl_jid_t jid[2];
	for (int i = 0; i < 2; i++) {
		CHECK_OK(PtlGetUid(spec.ni, &uid[i]));
		CHECK_OK(PtlGetId(spec.ni, &id[i]));
		CHECK_OK(PtlGetJid(spec.ni, &jid[i]));
	}
	CHECK_EQ(uid[0], uid[1]);
	CHECK_EQ(id[0].nid, id[1].nid);
	CHECK_EQ(id[0].pid, id[1].pid);
	CHECK_EQ(jid[0], jid[1]);
	CHECK_RC(PtlGetUid(spec.ni, NULL), PTL_SEGV);
	CHECK_RC(PtlGetId(spec.ni, NULL), PTL_SEGV);
	CHECK_RC(PtlGetJid(spec.ni, NULL), PTL_SEGV);
	check_bad_id_calls(PTL_INVALID_HANDLE);
	check_bad_id_calls(SPEC_JUNK);
	check_bad_id_calls(spec_eq(4));
}

STATEMENT(54, pids_differ)
{
	NEED_TWO_NODES();
	CHECK(spec.a.pid != spec.b.pid);
	CHECK(!spec.is_a || spec.self.pid == spec.a.pid);
	CHECK(!spec.is_b || spec.self.pid == spec.b.pid);
}

struct who {
	ptl_process_id_t id;
	ptl_uid_t uid;
	ptl_jid_t jid;
};

static struct who who_am_i(void)
{
	struct who me;
	CHECK_OK(PtlGetId(spec.ni, &me.id));
	CHECK_OK(PtlGetUid(spec.ni, &me.uid));
	CHECK_OK(PtlGetJid(spec.ni, &me.jid));
	return me;
}

/* A introduces itself to B in a put. */
static ptl_event_t introduce(struct who *a)
{
	ptl_handle_eq_t eq = spec_eq(8);
	ptl_event_t ev = {0};
	if (spec.is_b)
		(void)spec_target(SPEC_BITS, spec_md(a, sizeof *a, PTL_MD_OP_PUT, eq));
	spec_barrier();
	if (spec.is_a) {
		struct who *me = suite_alloc(sizeof *me);
		*me = who_am_i();
		spec_put(spec_bind(spec_md(me, sizeof *me, 0, PTL_EQ_NONE), PTL_RETAIN),
			PTL_NO_ACK_REQ, SPEC_BITS);
	}
	if (spec.is_b) {
		(void)EXPECT(eq, PTL_EVENT_PUT_START);
		ev = EXPECT(eq, PTL_EVENT_PUT_END);
	}
	return ev;
}

STATEMENT(55, events_name_the_sender)
{
	struct who *a = suite_alloc(sizeof *a);
	ptl_event_t ev = introduce(a);
	if (spec.is_b) {
		CHECK_EQ(ev.initiator.nid, a->id.nid);
		CHECK_EQ(ev.initiator.pid, a->id.pid);
		CHECK_EQ(ev.uid, a->uid);
		CHECK_EQ(ev.jid, a->jid);
		CHECK_EQ(ev.uid, getuid());
	}
	spec_barrier();
}

WEAK_STATEMENT(56, one_job_one_jid)
{
	NEED_TWO_NODES();
	struct who *a = suite_alloc(sizeof *a);
	(void)introduce(a);
	if (spec.is_b)
		CHECK_EQ(who_am_i().jid, a->jid);
	spec_barrier();
}

/* ---- PtlHandleIsEqual ---- */

STATEMENT(57, equality)
{
	struct objects o = make_objects();
	ptl_handle_me_t other = spec_me(2);
	CHECK_RC(PtlHandleIsEqual(o.me, o.me), PTL_OK);
	CHECK_RC(PtlHandleIsEqual(o.md, o.md), PTL_OK);
	CHECK_RC(PtlHandleIsEqual(o.eq, o.eq), PTL_OK);
	CHECK_RC(PtlHandleIsEqual(o.me, other), PTL_FAIL);
	CHECK_RC(PtlHandleIsEqual(other, o.me), PTL_FAIL);
	CHECK_RC(PtlHandleIsEqual(o.md, o.bound), PTL_FAIL);
	CHECK_RC(PtlHandleIsEqual(o.me, o.md), PTL_FAIL);
}

STATEMENT(58, equality_of_no_handles)
{
	CHECK_RC(PtlHandleIsEqual(PTL_INVALID_HANDLE, PTL_INVALID_HANDLE), PTL_OK);
	CHECK_RC(PtlHandleIsEqual(PTL_INVALID_HANDLE, spec.ni), PTL_FAIL);
	CHECK_RC(PtlHandleIsEqual(spec_eq(4), PTL_INVALID_HANDLE), PTL_FAIL);
	CHECK_RC(PtlHandleIsEqual(PTL_EQ_NONE, PTL_EQ_NONE), PTL_OK);
	CHECK_RC(PtlHandleIsEqual(PTL_EQ_NONE, PTL_INVALID_HANDLE), PTL_FAIL);
}

SCENE(equality_before_init)
{
	CHECK_RC(PtlHandleIsEqual(5, 5), PTL_OK);
	CHECK_RC(PtlHandleIsEqual(5, 6), PTL_FAIL);
	CHECK_RC(PtlHandleIsEqual(PTL_INVALID_HANDLE, PTL_INVALID_HANDLE), PTL_OK);
}

STATEMENT(59, equality_before_and_after)
{
	spec_child("equality_before_init");
	ptl_handle_ni_t old = spec.ni;
	spec_down();
	CHECK_RC(PtlHandleIsEqual(old, old), PTL_OK);
	CHECK_RC(PtlHandleIsEqual(old, PTL_INVALID_HANDLE), PTL_FAIL);
}
