/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * strerror - names of return codes, event kinds and failure types
 *
 * The two tables are part of the ABI: programs index them directly.  Tables and functions
 * cannot disagree, since the functions look up the tables.
 */
#include <portals3.h>

#define ENTRY(name)   [name] = #name
#define LENGTH(table) (sizeof(table) / sizeof((table)[0]))

/* The header does not declare this table: programs that use the table do. */
extern const char *ptl_event_str[];

const char *ptl_err_str[] = {ENTRY(PTL_OK), ENTRY(PTL_AC_INDEX_INVALID),
	ENTRY(PTL_EQ_DROPPED), ENTRY(PTL_EQ_EMPTY), ENTRY(PTL_EQ_INVALID),
	ENTRY(PTL_FAIL), ENTRY(PTL_HANDLE_INVALID), ENTRY(PTL_IFACE_INVALID),
	ENTRY(PTL_MD_ILLEGAL), ENTRY(PTL_MD_INVALID), ENTRY(PTL_MD_IN_USE),
	ENTRY(PTL_MD_NO_UPDATE), ENTRY(PTL_ME_INVALID), ENTRY(PTL_ME_IN_USE),
	ENTRY(PTL_ME_LIST_TOO_LONG), ENTRY(PTL_NI_INVALID), ENTRY(PTL_NO_INIT),
	ENTRY(PTL_NO_SPACE), ENTRY(PTL_PID_INVALID), ENTRY(PTL_PROCESS_INVALID),
	ENTRY(PTL_PT_FULL), ENTRY(PTL_PT_INDEX_INVALID), ENTRY(PTL_SEGV),
	ENTRY(PTL_SR_INDEX_INVALID), ENTRY(PTL_UNKNOWN_ERROR), ENTRY(PTL_IFACE_DUP),
	ENTRY(PTL_EQ_IN_USE), ENTRY(PTL_VAL_FAILED), ENTRY(PTL_PID_IN_USE),
	ENTRY(PTL_NOT_IMPLEMENTED), ENTRY(PTL_MAX_ERRNO), NULL};
_Static_assert(LENGTH(ptl_err_str) == PTL_MAX_ERRNO + 2, "one name for each code");

const char *ptl_event_str[] = {ENTRY(PTL_EVENT_GET_START), ENTRY(PTL_EVENT_GET_END),
	ENTRY(PTL_EVENT_PUT_START), ENTRY(PTL_EVENT_PUT_END),
	ENTRY(PTL_EVENT_GETPUT_START), ENTRY(PTL_EVENT_GETPUT_END),
	ENTRY(PTL_EVENT_REPLY_START), ENTRY(PTL_EVENT_REPLY_END),
	ENTRY(PTL_EVENT_SEND_START), ENTRY(PTL_EVENT_SEND_END), ENTRY(PTL_EVENT_ACK),
	ENTRY(PTL_EVENT_UNLINK), NULL};
_Static_assert(LENGTH(ptl_event_str) == PTL_EVENT_UNLINK + 2, "one name for each kind");

const char *PtlErrorStr(unsigned int code)
{
	if (code >= PTL_MAX_ERRNO)
		return "unknown return code";
	return ptl_err_str[code];
}

const char *PtlNIFailStr(ptl_handle_ni_t ni_handle, ptl_ni_fail_t fail)
{
	(void)ni_handle;
	switch (fail) {
	case PTL_NI_OK:
		return "PTL_NI_OK";
	case PTL_NI_FAIL:
		return "PTL_NI_FAIL";
	default:
		return "unknown failure type";
	}
}

const char *PtlEventKindStr(ptl_event_kind_t kind)
{
	if ((unsigned int)kind > PTL_EVENT_UNLINK)
		return "unknown event kind";
	return ptl_event_str[kind];
}
