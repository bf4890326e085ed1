/* SPDX-License-Identifier: BSD-3-Clause */
#include "ref.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ref ref;

void ref_fail(const char *file, int line, const char *format, ...)
{
	va_list list;
	char text[256];

	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	fprintf(stderr, "rank %u: %s:%d: %s\n", ref.rank, file, line, text);
	_exit(1);
}

void ref_start(void)
{
	int interfaces;
	ptl_process_id_t me;

	CALL(PtlInit(&interfaces));
	if (getenv("PTL_MY_RID"))
		CALL(PtlSetRank(PTL_INVALID_HANDLE, -1, -1));
	CALL(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ref.ni));
	CALL(PtlGetRank(ref.ni, &ref.rank, &ref.size));

	ref.id = ref_memory(ref.size * sizeof *ref.id);
	for (unsigned int r = 0; r < ref.size; r++)
		CALL(PtlGetRankId(ref.ni, r, &ref.id[r]));
	CALL(PtlGetId(ref.ni, &me));
	CHECK(me.nid == ref.id[ref.rank].nid && me.pid == ref.id[ref.rank].pid);
}

void ref_end(void)
{
	const char *how = getenv("REF_END");

	if (how && strcmp(how, "_exit") == 0)
		_exit(0);
	if (!how || strcmp(how, "fini") == 0) {
		CALL(PtlNIFini(ref.ni));
		PtlFini();
	}
	exit(0);
}

ptl_handle_eq_t ref_queue(ptl_size_t count)
{
	ptl_handle_eq_t eq;

	CALL(PtlEQAlloc(ref.ni, count, PTL_EQ_HANDLER_NONE, &eq));
	return eq;
}

ptl_md_t ref_region(
	void *start, ptl_size_t length, unsigned int options, ptl_handle_eq_t eq)
{
	ptl_md_t md;

	memset(&md, 0, sizeof md);
	md.start = start;
	md.length = length;
	md.threshold = PTL_MD_THRESH_INF;
	md.options = options;
	md.eq_handle = eq;
	return md;
}

ptl_handle_md_t ref_attach(ptl_pt_index_t index, ptl_process_id_t from,
	ptl_match_bits_t bits, ptl_md_t md, ptl_unlink_t unlink)
{
	ptl_handle_me_t me;
	ptl_handle_md_t handle;

	CALL(PtlMEAttach(ref.ni, index, from, bits, 0, unlink, PTL_INS_AFTER, &me));
	CALL(PtlMDAttach(me, md, unlink, &handle));
	return handle;
}

void ref_good(const ptl_event_t *event)
{
	if (event->ni_fail_type != PTL_NI_OK)
		FAIL("%s of a failed operation, peer %u", PtlEventKindStr(event->type),
			ref_rank(event->initiator));
}

ptl_event_t ref_wait(ptl_handle_eq_t eq)
{
	ptl_event_t event;

	CALL(PtlEQWait(eq, &event));
	ref_good(&event);
	return event;
}

unsigned int ref_rank(ptl_process_id_t id)
{
	for (unsigned int r = 0; r < ref.size; r++)
		if (ref.id[r].nid == id.nid && ref.id[r].pid == id.pid)
			return r;
	FAIL("an event names the process %u/%u, which is no rank", id.nid, id.pid);
}

void *ref_memory(size_t bytes)
{
	void *memory = calloc(1, bytes ? bytes : 1);

	if (!memory)
		FAIL("no memory for %zu bytes", bytes);
	return memory;
}

static uint8_t byte_of(unsigned int seed, size_t at)
{
	return (uint8_t)(seed * 37 + at * 11 + at / 251);
}

void ref_fill(void *start, size_t bytes, unsigned int seed)
{
	for (size_t at = 0; at < bytes; at++)
		((uint8_t *)start)[at] = byte_of(seed, at);
}

void ref_compare(const void *start, size_t bytes, unsigned int seed)
{
	for (size_t at = 0; at < bytes; at++)
		if (((const uint8_t *)start)[at] != byte_of(seed, at))
			FAIL("byte %zu of %zu is wrong", at, bytes);
}

const char *ref_form(int argc, char **argv, const char *fallback)
{
	return argc > 1 ? argv[1] : fallback;
}
