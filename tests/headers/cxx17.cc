// SPDX-License-Identifier: BSD-3-Clause
// C++17, portals3x.h before anything else.  Compiling is the test: types, C linkage and
// every prototype, with the calls that a program would write.
#include <portals3x.h>
#include <portals3.h>
#include <portals3_runtime.h>

#include <type_traits>

#ifndef PTL_NOACK_REQ
#error "PTL_NOACK_REQ cannot be probed for"
#endif
#ifndef PTL_IFACE_DUP
#error "PTL_IFACE_DUP cannot be probed for"
#endif

extern "C" const char *ptl_event_str[]; // as programs declare it

static_assert(std::is_unsigned<ptl_handle_any_t>::value, "handles are scalars");
static_assert(std::is_signed<ptl_sr_value_t>::value, "registers are signed");
static_assert(std::is_standard_layout<ptl_event_t>::value, "events are plain");
static_assert(PTL_NO_ACK_REQ == PTL_NOACK_REQ, "two spellings");

static constexpr ptl_handle_eq_t no_queue = PTL_EQ_NONE;
static constexpr ptl_handle_any_t no_handle = PTL_INVALID_HANDLE;
static_assert(no_queue != no_handle && no_handle != PTL_HANDLE_NONE, "three handles");

static int handled;

static void handler(ptl_event_t *event)
{
	handled += event->type == PTL_EVENT_ACK;
}

static ptl_eq_handler_t handlers[] = {PTL_EQ_HANDLER_NONE, handler};

// The operand of decltype is checked, not evaluated: neither library nor objects needed.
#define CALL(type, call) static_assert(std::is_same<decltype(call), type>::value, #call)
#define INT_CALL(call)   CALL(int, call)

extern ptl_ni_limits_t limits;
extern ptl_process_id_t id;
extern ptl_md_t md;
extern ptl_event_t event;
extern ptl_handle_any_t h;
extern ptl_pt_index_t pt;
extern ptl_nid_t nids[1];
extern ptl_pid_t pids[1];
extern ptl_sr_value_t value;
extern ptlx_stats_t stats;
extern unsigned long distance;
extern unsigned int rank, size;
extern int i;
extern void *block;

INT_CALL(PtlInit(&i));
CALL(void, PtlFini());
INT_CALL(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, &limits, &h));
INT_CALL(PtlNIFini(h));
INT_CALL(PtlNIStatus(h, PTL_SR_DROP_COUNT, &value));
INT_CALL(PtlNIDist(h, id, &distance));
INT_CALL(PtlNIHandle(h, &h));
INT_CALL(PtlGetUid(h, nids));
INT_CALL(PtlGetId(h, &id));
INT_CALL(PtlGetJid(h, nids));
INT_CALL(PtlMEAttach(h, pt, id, 1, 0, PTL_UNLINK, PTL_INS_AFTER, &h));
INT_CALL(PtlMEAttachAny(h, &pt, id, 1, 0, PTL_RETAIN, &h));
INT_CALL(PtlMEInsert(h, id, 1, 0, PTL_UNLINK, PTL_INS_BEFORE, &h));
INT_CALL(PtlMEUnlink(h));
INT_CALL(PtlMDAttach(h, md, PTL_UNLINK, &h));
INT_CALL(PtlMDBind(h, md, PTL_RETAIN, &h));
INT_CALL(PtlMDUnlink(h));
INT_CALL(PtlMDUpdate(h, &md, NULL, PTL_EQ_NONE));
INT_CALL(PtlEQAlloc(h, 16, PTL_EQ_HANDLER_NONE, &h));
INT_CALL(PtlEQFree(h));
INT_CALL(PtlEQGet(h, &event));
INT_CALL(PtlEQWait(h, &event));
INT_CALL(PtlEQPoll(&h, 1, PTL_TIME_FOREVER, &event, &i));
INT_CALL(PtlACEntry(h, 0, id, PTL_UID_ANY, PTL_JID_ANY, PTL_PT_INDEX_ANY));
INT_CALL(PtlPut(h, PTL_NO_ACK_REQ, id, pt, 0, 1, 0, 0));
INT_CALL(PtlPutRegion(h, 0, 8, PTL_ACK_REQ, id, pt, 0, 1, 0, 0));
INT_CALL(PtlGet(h, id, pt, 0, 1, 0));
INT_CALL(PtlGetRegion(h, 0, 8, id, pt, 0, 1, 0));
INT_CALL(PtlGetPut(h, h, id, pt, 0, 1, 0, 0));
INT_CALL(PtlHandleIsEqual(h, PTL_INVALID_HANDLE));

INT_CALL(PtlMEMDAttach(
	h, pt, id, 1, 0, PTL_UNLINK, PTL_INS_AFTER, md, PTL_UNLINK, &h, &h));
INT_CALL(PtlMEMDInsert(h, id, 1, 0, PTL_UNLINK, PTL_INS_AFTER, md, PTL_UNLINK, &h, &h));
INT_CALL(PtlMEMDPost(
	h, h, id, 1, 0, PTL_UNLINK, PTL_INS_BEFORE, md, PTL_UNLINK, &h, &h, h));
INT_CALL(PtlEQPeek(h, &event));
INT_CALL(PtlGetPutRegion(h, 0, h, 0, 8, id, pt, 0, 1, 0, 0));
INT_CALL(PtlTblDump(h, 0));
INT_CALL(PtlMEDump(h));
INT_CALL(PtlNIEqDump(h));
CALL(unsigned int, PtlNIDebug(h, 0));
CALL(const char *, PtlErrorStr(0));
CALL(const char *, PtlNIFailStr(h, PTL_NI_OK));
CALL(const char *, PtlEventKindStr(PTL_EVENT_ACK));

INT_CALL(PtlSetRank(PTL_INVALID_HANDLE, -1, -1));
INT_CALL(PtlGetRank(h, &rank, &size));
INT_CALL(PtlGetRankId(h, rank, &id));
INT_CALL(PtlSetNIDMap(h, nids, 1));
INT_CALL(PtlGetNIDMap(h, nids, 1));
INT_CALL(PtlSetPIDMap(h, pids, 1));
INT_CALL(PtlGetPIDMap(h, pids, 1));
INT_CALL(PtlSetJID(h, 1));

INT_CALL(PtlXBarrier());
INT_CALL(PtlXAlloc(64, &block));
INT_CALL(PtlXFree(block));
INT_CALL(PtlXStats(h, &stats));
CALL(const char *, PtlXVersion());

int main()
{
	ptl_event_t ack = {};

	ack.type = PTL_EVENT_ACK;
	ptl_event_t copy = ack;
	handlers[1](&copy);
	return !(handlers[0] == nullptr && handled == 1);
}
