/* SPDX-License-Identifier: BSD-3-Clause */
/* hello - every rank puts a greeting into rank 0, which prints them as they come. */
#include <portals3.h>
#include <portals3_runtime.h>
#include <portals3x.h>

#include <stdio.h>
#include <stdlib.h>

enum { PORTAL = 4, LINE = 64 };

static void check(int rc, const char *what)
{
	if (rc != PTL_OK) {
		fprintf(stderr, "%s: %s\n", what, PtlErrorStr((unsigned)rc));
		exit(1);
	}
}

static ptl_handle_eq_t open_portal(
	ptl_handle_ni_t ni, ptl_size_t events, void *lines, ptl_size_t length)
{
	ptl_process_id_t anyone = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_md_t md = {.start = lines,
		.length = length,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE};
	ptl_handle_me_t me;
	check(PtlEQAlloc(ni, events, PTL_EQ_HANDLER_NONE, &md.eq_handle), "PtlEQAlloc");
	check(PtlMEAttach(ni, PORTAL, anyone, 7, 0, PTL_RETAIN, PTL_INS_AFTER, &me),
		"PtlMEAttach");
	check(PtlMDAttach(me, md, PTL_RETAIN, NULL), "PtlMDAttach");
	return md.eq_handle;
}

int main(void)
{
	int most;
	unsigned rank, size;
	ptl_handle_ni_t ni;
	ptl_process_id_t zero;
	check(PtlInit(&most), "PtlInit");
	check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni), "PtlNIInit");
	check(PtlGetRank(ni, &rank, &size), "PtlGetRank");
	check(PtlGetRankId(ni, 0, &zero), "PtlGetRankId");

	char(*lines)[LINE] = calloc(size, LINE), hello[LINE];
	/* Room for PUT_START and PUT_END of every rank: they may come all at once. */
	ptl_handle_eq_t eq =
		open_portal(ni, 2 * (ptl_size_t)size, lines, (ptl_size_t)LINE * size);
	check(PtlXBarrier(), "PtlXBarrier"); /* now every rank listens */

	snprintf(hello, LINE, "hello from rank %u of %u", rank, size);
	ptl_md_t md = {
		.start = hello, .length = LINE, .threshold = 1, .eq_handle = PTL_EQ_NONE};
	ptl_handle_md_t mdh;
	check(PtlMDBind(ni, md, PTL_UNLINK, &mdh), "PtlMDBind");
	check(PtlPut(mdh, PTL_NO_ACK_REQ, zero, PORTAL, 0, 7, rank * LINE, 0), "PtlPut");

	for (unsigned heard = 0; rank == 0 && heard < size;) {
		ptl_event_t ev;
		check(PtlEQWait(eq, &ev), "PtlEQWait");
		if (ev.type == PTL_EVENT_PUT_END && ++heard)
			puts(lines[ev.offset / LINE]);
	}
	PtlFini();
	return 0;
}
