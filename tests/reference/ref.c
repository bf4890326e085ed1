/* SPDX-License-Identifier: BSD-3-Clause */
#include "ref.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void ref_start(void)
{
	int interfaces;
	ptl_process_id_t me;

	mp_ok(PtlInit(&interfaces));
	if (getenv("PTL_MY_RID"))
		mp_ok(PtlSetRank(PTL_INVALID_HANDLE, -1, -1));
	mp_ok(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &mp.ni));
	mp_ok(PtlGetRank(mp.ni, &mp.rank, &mp.size));

	CHECK(mp.size <= MP_MOST);
	for (unsigned int r = 0; r < mp.size; r++)
		mp_ok(PtlGetRankId(mp.ni, r, &mp.id[r]));
	mp_ok(PtlGetId(mp.ni, &me));
	CHECK(me.nid == mp.id[mp.rank].nid && me.pid == mp.id[mp.rank].pid);
}

void ref_end(void)
{
	const char *how = getenv("REF_END");

	if (how && strcmp(how, "_exit") == 0)
		_exit(0);
	if (!how || strcmp(how, "fini") == 0) {
		mp_ok(PtlNIFini(mp.ni));
		PtlFini();
	}
	exit(0);
}

ptl_handle_md_t ref_attach(ptl_pt_index_t index, ptl_process_id_t from,
	ptl_match_bits_t bits, ptl_md_t md, ptl_unlink_t unlink)
{
	ptl_handle_me_t me;
	ptl_handle_md_t handle;

	mp_ok(PtlMEAttach(mp.ni, index, from, bits, 0, unlink, PTL_INS_AFTER, &me));
	mp_ok(PtlMDAttach(me, md, unlink, &handle));
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

	mp_ok(PtlEQWait(eq, &event));
	ref_good(&event);
	return event;
}

unsigned int ref_rank(ptl_process_id_t id)
{
	for (unsigned int r = 0; r < mp.size; r++)
		if (mp.id[r].nid == id.nid && mp.id[r].pid == id.pid)
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

const char *ref_form(int argc, char **argv, const char *fallback)
{
	return argc > 1 ? argv[1] : fallback;
}
