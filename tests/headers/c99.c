/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * C99, portals3.h before anything else.  The test is that it compiles: a program that
 * was written for another Portals 3 probes for names, and defines some before it
 * includes the header.
 */
#define PTL_EQ_HANDLER_NONE ((ptl_eq_handler_t)0)
#define PTL_PID_ANY         (~(ptl_pid_t)0)
#define PTL_NO_ACK_REQ      PTL_NOACK_REQ
#define PTL_ACENTRY_5ARGS
#include <portals3.h>
#include <portals3_runtime.h>
#include <portals3x.h>

#ifndef NULL
#error "portals3.h does not show NULL"
#endif

/* Names of Cray, visible to the preprocessor. */
#if !defined(PTL_NOACK_REQ) || !defined(PTL_NO_ACK_REQ) || !defined(PTL_IFACE_DUP) ||    \
	!defined(PTL_EQ_IN_USE) || !defined(PTL_VAL_FAILED) ||                           \
	!defined(PTL_HANDLE_INVALID) || !defined(PTL_HANDLE_NONE) ||                     \
	!defined(PTL_MAX_ERRNO) || !defined(PTL_UNKNOWN_ERROR) ||                        \
	!defined(PTL_PID_IN_USE) || !defined(PTL_NOT_IMPLEMENTED)
#error "a code cannot be probed for"
#endif
#if !defined(PTL_MD_EVENT_AUTO_UNLINK_ENABLE) ||                                         \
	!defined(PTL_MD_EVENT_MANUAL_UNLINK_ENABLE) ||                                   \
	!defined(PTL_MD_FLAG_AUTO_UNLINK) || !defined(PTL_MD_LOCAL_ALIGN8) ||            \
	!defined(PTL_MD_LUSTRE_COMPLETION_SEMANTICS) || !defined(PTL_MD_PHYS)
#error "an option cannot be probed for"
#endif
#if !defined(PTL_IFACE_SS) || !defined(PTL_BRIDGE_QK) || !defined(PTL_BRIDGE_UK) ||      \
	!defined(IFACE_FROM_BRIDGE_AND_NALID) || !defined(CRAY_USER_NAL) ||              \
	!defined(CRAY_UK_SSNAL) || !defined(CRAY_QK_NAL)
#error "an interface cannot be probed for"
#endif

/* Names that programs define themselves, and a choice that is theirs. */
#if defined(PTL_SHORT_MSG) || defined(PTL_LONG_MSG) || defined(PTL_READY_MSG) ||         \
	defined(PTL_IS_SHORT_MSG) || defined(PTL_IS_LONG_MSG) ||                         \
	defined(PTL_IS_READY_MSG) || defined(PTL_GET_TAG) || defined(PTL_GET_SOURCE) ||  \
	defined(PTL_SET_SEND_BITS) || defined(PTL_SET_RECV_BITS) ||                      \
	defined(PTL_TAG_MASK) || defined(PTL_TAG_IGNR) || defined(PTL_SOURCE_MASK) ||    \
	defined(PTL_SOURCE_IGNR) || defined(PTL_CONTEXT_MASK) ||                         \
	defined(PTL_CONTEXT_IGNR) || defined(PTL_PROTOCOL_MASK) ||                       \
	defined(PTL_PROTOCOL_IGNR) || defined(PTL_SEND_CODE) ||                          \
	defined(PTL_IFACE_CLIENT) || defined(PTL_IFACE_SERVER) || defined(PTL_OPTS_H) || \
	defined(PTL_RESERVED_MATCHBITS) || defined(PTL_MD_MAX_IOV) ||                    \
	defined(CRAY_ACCEL)
#error "the header takes a name that programs define"
#endif
enum {
	PTL_SHORT_MSG,
	PTL_LONG_MSG,
	PTL_READY_MSG,
	PTL_SEND_CODE,
	PTL_IFACE_CLIENT,
	PTL_IFACE_SERVER,
	PTL_OPTS_H,
	PTL_RESERVED_MATCHBITS,
	PTL_MD_MAX_IOV
};

static ptl_handle_any_t statics[] = {PTL_INVALID_HANDLE, PTL_EQ_NONE, PTL_HANDLE_NONE};
static ptl_process_id_t anybody = {PTL_NID_ANY, PTL_PID_ANY};

/* Each code and kind appears once: two of one value do not compile. */
static int each_code_is_distinct(int code)
{
	switch (code) {
	case PTL_OK:
	case PTL_AC_INDEX_INVALID:
	case PTL_EQ_DROPPED:
	case PTL_EQ_EMPTY:
	case PTL_EQ_INVALID:
	case PTL_FAIL:
	case PTL_HANDLE_INVALID:
	case PTL_IFACE_INVALID:
	case PTL_MD_ILLEGAL:
	case PTL_MD_INVALID:
	case PTL_MD_IN_USE:
	case PTL_MD_NO_UPDATE:
	case PTL_ME_INVALID:
	case PTL_ME_IN_USE:
	case PTL_ME_LIST_TOO_LONG:
	case PTL_NI_INVALID:
	case PTL_NO_INIT:
	case PTL_NO_SPACE:
	case PTL_PID_INVALID:
	case PTL_PROCESS_INVALID:
	case PTL_PT_FULL:
	case PTL_PT_INDEX_INVALID:
	case PTL_SEGV:
	case PTL_SR_INDEX_INVALID:
	case PTL_UNKNOWN_ERROR:
	case PTL_IFACE_DUP:
	case PTL_EQ_IN_USE:
	case PTL_VAL_FAILED:
	case PTL_PID_IN_USE:
	case PTL_NOT_IMPLEMENTED:
	case PTL_MAX_ERRNO:
		return 1;
	default:
		return 0;
	}
}

int main(void)
{
	ptl_eq_handler_t handler = PTL_EQ_HANDLER_NONE;
	ptl_ack_req_t ack = PTL_NO_ACK_REQ;

	/* Checked, not called: the form without a job id. */
	(void)sizeof(PtlACEntry(statics[0], 0, anybody, PTL_UID_ANY, PTL_PT_INDEX_ANY));

	return !(statics[0] != statics[1] && anybody.pid == PTL_PID_ANY &&
		 handler == NULL && ack == PTL_NOACK_REQ && ack != PTL_ACK_REQ &&
		 each_code_is_distinct(PTL_SEGV));
}
