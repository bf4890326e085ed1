/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts for people: names of codes, and the library's state. */
#include "lib/node/call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define P3_TEXT_LEN ((size_t)1 << 18) /* longest dump; the rest is cut off */

unsigned int PtlNIDebug(ptl_handle_ni_t ni_handle, unsigned int mask)
{
	static p3_a32 masks[P3_JOB_NIS];
	uint32_t ni = p3_handle_ni(ni_handle);
	return p3_exchange32(&masks[ni < P3_JOB_NIS ? ni : 0], mask);
}

/* Let the firmware write the text of a dump, then print it without holding the lease. */
static int debug_dump(struct p3_nic *nic, struct p3_cmd *c)
{
	if (p3_is_busy())
		return PTL_NO_SPACE;
	struct p3_caller caller = p3_caller_save();
	int rc = PTL_NO_SPACE;
	c->op = P3_OP_DUMP;
	c->dump.size = P3_TEXT_LEN;
	c->dump.text = malloc(P3_TEXT_LEN);
	if (c->dump.text) {
		c->dump.text[0] = 0;
		rc = p3_nic_do(nic, c);
	}
	if (rc == PTL_OK)
		(void)fputs(c->dump.text, stderr);
	free(c->dump.text);
	p3_caller_restore(caller);
	return rc;
}

int PtlTblDump(ptl_handle_ni_t ni_handle, int pt_index)
{
	P3_CALL(nic, PTL_NI_INVALID);
	struct p3_cmd c = {.flag = P3_DUMP_LIST, .handle = ni_handle};
	c.dump.pt_index = (uint32_t)pt_index;
	return debug_dump(nic, &c);
}

int PtlMEDump(ptl_handle_me_t me_handle)
{
	P3_CALL(nic, PTL_ME_INVALID);
	struct p3_cmd c = {.flag = P3_DUMP_ME, .handle = me_handle};
	return debug_dump(nic, &c);
}

int PtlNIEqDump(ptl_handle_ni_t ni_handle)
{
	P3_CALL(nic, PTL_NI_INVALID);
	struct p3_cmd c = {.flag = P3_DUMP_QUEUES, .handle = ni_handle};
	return debug_dump(nic, &c);
}

/* ---- names of return codes, event kinds and failure types ---- */

/*
 * The two tables are part of the ABI: programs index them directly.  Tables and functions
 * cannot disagree, since the functions look up the tables.
 */

#define NAME(name)    [name] = #name
#define LENGTH(table) (sizeof(table) / sizeof((table)[0]))

/* The header does not declare this table: programs that use the table do. */
extern const char *ptl_event_str[];

const char *ptl_err_str[] = {NAME(PTL_OK), NAME(PTL_AC_INDEX_INVALID),
	NAME(PTL_EQ_DROPPED), NAME(PTL_EQ_EMPTY), NAME(PTL_EQ_INVALID), NAME(PTL_FAIL),
	NAME(PTL_HANDLE_INVALID), NAME(PTL_IFACE_INVALID), NAME(PTL_MD_ILLEGAL),
	NAME(PTL_MD_INVALID), NAME(PTL_MD_IN_USE), NAME(PTL_MD_NO_UPDATE),
	NAME(PTL_ME_INVALID), NAME(PTL_ME_IN_USE), NAME(PTL_ME_LIST_TOO_LONG),
	NAME(PTL_NI_INVALID), NAME(PTL_NO_INIT), NAME(PTL_NO_SPACE),
	NAME(PTL_PID_INVALID), NAME(PTL_PROCESS_INVALID), NAME(PTL_PT_FULL),
	NAME(PTL_PT_INDEX_INVALID), NAME(PTL_SEGV), NAME(PTL_SR_INDEX_INVALID),
	NAME(PTL_UNKNOWN_ERROR), NAME(PTL_IFACE_DUP), NAME(PTL_EQ_IN_USE),
	NAME(PTL_VAL_FAILED), NAME(PTL_PID_IN_USE), NAME(PTL_NOT_IMPLEMENTED),
	NAME(PTL_MAX_ERRNO), NULL};
_Static_assert(LENGTH(ptl_err_str) == PTL_MAX_ERRNO + 2, "one name for each code");

const char *ptl_event_str[] = {NAME(PTL_EVENT_GET_START), NAME(PTL_EVENT_GET_END),
	NAME(PTL_EVENT_PUT_START), NAME(PTL_EVENT_PUT_END), NAME(PTL_EVENT_GETPUT_START),
	NAME(PTL_EVENT_GETPUT_END), NAME(PTL_EVENT_REPLY_START),
	NAME(PTL_EVENT_REPLY_END), NAME(PTL_EVENT_SEND_START), NAME(PTL_EVENT_SEND_END),
	NAME(PTL_EVENT_ACK), NAME(PTL_EVENT_UNLINK), NULL};
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
