/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls every function of Portals 3.3 and of its extensions once, in a job of one node.
 * Both C99 and C++17; sees nothing but the headers that are installed.
 */
#ifdef PORTALS_DIRECTORY
#include <portals/portals3.h>
#else
#include <portals3.h>
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(truth)                                                                     \
	do {                                                                             \
		if (!(truth)) {                                                          \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__,       \
				#truth);                                                 \
			exit(1);                                                         \
		}                                                                        \
	} while (0)
#define OK(call) CHECK((call) == PTL_OK)

enum { PT = 7, BITS = 5, LENGTH = 64 };

static ptl_handle_ni_t ni;
static ptl_handle_eq_t eq, sent;
static ptl_process_id_t self;
static const ptl_process_id_t anyone = {PTL_NID_ANY, PTL_PID_ANY};
static char here[LENGTH], there[LENGTH];
static int handled;

static void on_event(ptl_event_t *event)
{
	handled += event->type == PTL_EVENT_SEND_END;
}

static ptl_md_t describe(void *start, unsigned int options, ptl_handle_eq_t queue)
{
	ptl_md_t md;
	memset(&md, 0, sizeof md);
	md.start = start;
	md.length = LENGTH;
	md.threshold = PTL_MD_THRESH_INF;
	md.max_size = 0;
	md.options = options;
	md.user_ptr = NULL;
	md.eq_handle = queue;
	return md;
}

static ptl_event_t expect(ptl_handle_eq_t queue, ptl_event_kind_t kind)
{
	ptl_event_t ev;
	int which = -1;
	CHECK(PtlEQPoll(&queue, 1, 300000, &ev, &which) == PTL_OK);
	CHECK(which == 0);
	CHECK(ev.type == kind);
	CHECK(ev.ni_fail_type == PTL_NI_OK);
	return ev;
}

/* ---- names ---- */

static void use_handles_and_wildcards(void)
{
	static ptl_handle_any_t none[] = {
		PTL_INVALID_HANDLE, PTL_EQ_NONE, PTL_HANDLE_NONE};
	ptl_nid_t nid = PTL_NID_ANY;
	ptl_pid_t pid = PTL_PID_ANY;
	ptl_uid_t uid = PTL_UID_ANY;
	ptl_jid_t jid = PTL_JID_ANY;
	ptl_pt_index_t pt = PTL_PT_INDEX_ANY;
	CHECK(none[0] != none[1] && none[1] != none[2] && none[0] != none[2]);
	CHECK(nid != 0 && pid != 0 && uid != 0 && jid != PTL_JID_NONE && pt != 0);
	ptl_interface_t iface = PTL_IFACE_DEFAULT;
	CHECK(iface != PTL_IFACE_SS);
	CHECK(CRAY_UK_SSNAL == PTL_IFACE_SS && CRAY_QK_NAL == PTL_IFACE_SS);
	CHECK(CRAY_USER_NAL == PTL_IFACE_SS);
	CHECK(IFACE_FROM_BRIDGE_AND_NALID(PTL_BRIDGE_UK, CRAY_UK_SSNAL) == PTL_IFACE_SS);
	CHECK(IFACE_FROM_BRIDGE_AND_NALID(PTL_BRIDGE_QK, CRAY_QK_NAL) == PTL_IFACE_SS);
	ptl_time_t ever = PTL_TIME_FOREVER;
	ptl_eq_handler_t no_handler = PTL_EQ_HANDLER_NONE;
	CHECK(ever > 0 && !no_handler);
	CHECK(PTL_NI_OK == 0 && PTL_NI_FAIL != 0);
}

static void use_options(void)
{
	ptl_ack_req_t no = PTL_NO_ACK_REQ;
	CHECK(no == PTL_NOACK_REQ && no != PTL_ACK_REQ);
	CHECK(PTL_RETAIN != PTL_UNLINK && PTL_INS_BEFORE != PTL_INS_AFTER);
	unsigned int all = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE |
			   PTL_MD_TRUNCATE | PTL_MD_ACK_DISABLE | PTL_MD_IOVEC |
			   PTL_MD_MAX_SIZE | PTL_MD_EVENT_START_DISABLE |
			   PTL_MD_EVENT_END_DISABLE;
	CHECK(all != 0);
	all |= PTL_MD_EVENT_AUTO_UNLINK_ENABLE | PTL_MD_EVENT_MANUAL_UNLINK_ENABLE |
	       PTL_MD_FLAG_AUTO_UNLINK | PTL_MD_LUSTRE_COMPLETION_SEMANTICS |
	       PTL_MD_LOCAL_ALIGN8 | PTL_MD_PHYS;
	CHECK(all != 0);
}

/* ---- interfaces ---- */

static void open_interface(void)
{
	int most = 0;
	ptl_ni_limits_t desired = {0, 0, 0, 0, 0, 0, 0, 0}, actual;
	OK(PtlInit(&most));
	CHECK(most >= 1);
	OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, &desired, &actual, &ni));
	CHECK(actual.max_mes > 0 && actual.max_mds > 0 && actual.max_eqs > 0);
	CHECK(actual.max_ac_index > 0 && actual.max_pt_index >= 63);
	CHECK(actual.max_md_iovecs > 0 && actual.max_me_list > 0);
	CHECK(actual.max_getput_md >= 8);
}

static void ask_interface(void)
{
	ptl_sr_value_t value = -1;
	unsigned long distance;
	ptl_handle_ni_t same;
	ptl_uid_t uid;
	ptl_jid_t jid;
	for (ptl_sr_index_t i = PTL_SR_DROP_COUNT; i <= PTL_SR_MD_ALIGN_8; i++)
		OK(PtlNIStatus(ni, i, &value));
	OK(PtlGetId(ni, &self));
	OK(PtlGetUid(ni, &uid));
	OK(PtlGetJid(ni, &jid));
	OK(PtlNIDist(ni, self, &distance));
	OK(PtlNIHandle(ni, &same));
	OK(PtlHandleIsEqual(ni, same));
	CHECK(PtlHandleIsEqual(ni, PTL_INVALID_HANDLE) == PTL_FAIL);
	OK(PtlACEntry(ni, 1, self, uid, jid, PT));
}

static void use_registers(void)
{
	static const ptl_sr_index_t all[] = {PTL_SR_DROP_COUNT, PTL_SR_DROP_LENGTH,
		PTL_SR_RECV_COUNT, PTL_SR_RECV_LENGTH, PTL_SR_SEND_COUNT,
		PTL_SR_SEND_LENGTH, PTL_SR_PTLS_MAX, PTL_SR_PTLS_CUR, PTL_SR_MSGS_ALLOC,
		PTL_SR_MSGS_FREED, PTL_SR_MSGS_MAX, PTL_SR_MSGS_CUR, PTL_SR_MES_ALLOC,
		PTL_SR_MES_FREED, PTL_SR_MES_MAX, PTL_SR_MES_CUR, PTL_SR_MDS_ALLOC,
		PTL_SR_MDS_FREED, PTL_SR_MDS_MAX, PTL_SR_MDS_CUR, PTL_SR_EQS_ALLOC,
		PTL_SR_EQS_FREED, PTL_SR_EQS_MAX, PTL_SR_EQS_CUR, PTL_SR_MD_ALIGN_128,
		PTL_SR_MD_ALIGN_64, PTL_SR_MD_ALIGN_32, PTL_SR_MD_ALIGN_16,
		PTL_SR_MD_ALIGN_8};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		ptl_sr_value_t value = -1;
		OK(PtlNIStatus(ni, all[i], &value));
		CHECK(value >= 0);
	}
}

/* ---- entries, descriptors, queues ---- */

static ptl_handle_md_t make_target(void)
{
	ptl_handle_me_t me;
	ptl_handle_md_t md;
	OK(PtlMEAttach(ni, PT, anyone, BITS, 0, PTL_RETAIN, PTL_INS_AFTER, &me));
	OK(PtlMDAttach(me,
		describe(there, PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, eq),
		PTL_RETAIN, &md));
	OK(PtlMEDump(me));
	return md;
}

static void list_entries(void)
{
	ptl_handle_me_t any, next, both, beside, last;
	ptl_handle_md_t md;
	ptl_pt_index_t pt;
	ptl_md_t unused = describe(there, PTL_MD_OP_PUT, PTL_EQ_NONE);
	OK(PtlMEAttachAny(ni, &pt, anyone, 0, 0, PTL_RETAIN, &any));
	CHECK(pt != PT);
	OK(PtlMEInsert(any, anyone, 1, 0, PTL_UNLINK, PTL_INS_BEFORE, &next));
	OK(PtlMEMDAttach(ni, pt, anyone, 2, 0, PTL_UNLINK, PTL_INS_AFTER, unused,
		PTL_UNLINK, &both, &md));
	OK(PtlMDUnlink(md));
	CHECK(PtlMEUnlink(both) == PTL_ME_INVALID);
	OK(PtlMEMDInsert(any, anyone, 3, 0, PTL_RETAIN, PTL_INS_AFTER, unused, PTL_RETAIN,
		&beside, &md));
	OK(PtlMEMDPost(ni, any, anyone, 4, 0, PTL_RETAIN, PTL_INS_AFTER, unused,
		PTL_RETAIN, &last, &md, eq));
	OK(PtlTblDump(ni, (int)pt));
	OK(PtlMEUnlink(next));
	OK(PtlMEUnlink(beside));
	OK(PtlMEUnlink(last));
	OK(PtlMEUnlink(any));
}

static void look_and_change(ptl_handle_md_t md)
{
	ptl_md_t old, same;
	OK(PtlMDUpdate(md, &old, NULL, PTL_EQ_NONE));
	CHECK(old.start == there && old.length == LENGTH && old.eq_handle == eq);
	same = old;
	OK(PtlMDUpdate(md, NULL, &same, eq));
}

/* ---- data movement ---- */

static void sent_and_taken(ptl_event_kind_t start, ptl_event_kind_t end)
{
	expect(sent, PTL_EVENT_SEND_START);
	expect(sent, PTL_EVENT_SEND_END);
	expect(eq, start);
	expect(eq, end);
}

static void put(ptl_handle_md_t md)
{
	strcpy(here, "to there");
	OK(PtlPut(md, PTL_ACK_REQ, self, PT, 1, BITS, 0, 99));
	sent_and_taken(PTL_EVENT_PUT_START, PTL_EVENT_PUT_END);
	CHECK(expect(sent, PTL_EVENT_ACK).mlength == LENGTH);
	CHECK(strcmp(there, "to there") == 0);
	OK(PtlPutRegion(md, 3, 5, PTL_NO_ACK_REQ, self, PT, 0, BITS, 0, 0));
	sent_and_taken(PTL_EVENT_PUT_START, PTL_EVENT_PUT_END);
	CHECK(memcmp(there, "therehere", 5) == 0);
}

static void get(ptl_handle_md_t md)
{
	strcpy(there, "from there");
	OK(PtlGet(md, self, PT, 0, BITS, 0));
	expect(sent, PTL_EVENT_REPLY_START);
	expect(sent, PTL_EVENT_REPLY_END);
	CHECK(strcmp(here, "from there") == 0);
	OK(PtlGetRegion(md, 0, 5, self, PT, 0, BITS, 5));
	expect(sent, PTL_EVENT_REPLY_START);
	expect(sent, PTL_EVENT_REPLY_END);
	CHECK(memcmp(here, "there", 5) == 0);
	for (int i = 0; i < 2; i++) {
		expect(eq, PTL_EVENT_GET_START);
		expect(eq, PTL_EVENT_GET_END);
	}
}

static ptl_handle_md_t bind_word(uint64_t *word)
{
	ptl_handle_md_t handle;
	ptl_md_t md = describe(word, 0, sent);
	md.length = sizeof *word;
	OK(PtlMDBind(ni, md, PTL_RETAIN, &handle));
	return handle;
}

static void swap_is_over(void)
{
	sent_and_taken(PTL_EVENT_GETPUT_START, PTL_EVENT_GETPUT_END);
	expect(sent, PTL_EVENT_REPLY_START);
	expect(sent, PTL_EVENT_REPLY_END);
}

static void swap(void)
{
	uint64_t old = 0, fresh = 17, now;
	ptl_handle_md_t to = bind_word(&old), from = bind_word(&fresh);
	memset(there, 0, sizeof there);
	OK(PtlGetPut(to, from, self, PT, 0, BITS, 0, 0));
	swap_is_over();
	memcpy(&now, there, sizeof now);
	CHECK(old == 0 && now == 17);
	fresh = 18;
	OK(PtlGetPutRegion(to, 0, from, 0, 8, self, PT, 0, BITS, 0, 0));
	swap_is_over();
	memcpy(&now, there, sizeof now);
	CHECK(old == 17 && now == 18);
	OK(PtlMDUnlink(to));
	OK(PtlMDUnlink(from));
}

static void read_queues(ptl_handle_md_t md)
{
	ptl_event_t ev, same;
	CHECK(PtlEQGet(eq, &ev) == PTL_EQ_EMPTY);
	OK(PtlPutRegion(md, 0, 1, PTL_NO_ACK_REQ, self, PT, 0, BITS, 0, 0));
	OK(PtlEQWait(eq, &ev));
	CHECK(ev.type == PTL_EVENT_PUT_START);
	expect(eq, PTL_EVENT_PUT_END);
	OK(PtlNIEqDump(ni));
	OK(PtlEQPeek(sent, &ev));
	OK(PtlEQGet(sent, &same));
	CHECK(ev.sequence == same.sequence && ev.type == PTL_EVENT_SEND_START);
	CHECK(ev.link == same.link && ev.unlinked == same.unlinked);
	expect(sent, PTL_EVENT_SEND_END);
	OK(PtlProgress(ni, 0));
	CHECK(PtlNIDebug(ni, 0) == 0);
	CHECK(PtlNIFailStr(ni, PTL_NI_OK) && PtlNIFailStr(ni, PTL_NI_FAIL));
	CHECK(PtlErrorStr(PTL_OK) && PtlEventKindStr(PTL_EVENT_ACK));
}

int main(void)
{
	ptl_handle_md_t md, target;
	use_handles_and_wildcards();
	use_options();
	open_interface();
	ask_interface();
	use_registers();
	OK(PtlEQAlloc(ni, 64, PTL_EQ_HANDLER_NONE, &eq));
	OK(PtlEQAlloc(ni, 64, on_event, &sent));
	target = make_target();
	list_entries();
	look_and_change(target);
	OK(PtlMDBind(ni, describe(here, 0, sent), PTL_RETAIN, &md));
	put(md);
	get(md);
	swap();
	read_queues(md);
	CHECK(handled == 5);
	OK(PtlMDUnlink(md));
	OK(PtlMDUnlink(target));
	OK(PtlEQFree(sent));
	OK(PtlEQFree(eq));
	OK(PtlNIFini(ni));
	PtlFini();
	puts("1..1\nok 1 - every_function");
	return 0;
}
