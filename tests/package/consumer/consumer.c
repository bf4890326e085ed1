/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * consumer - a program outside the tree: each rank puts a word into the next one
 *
 * It uses the installed headers and library only, and compiles as C99 and as C++17.
 *
 */
#include <catamount/cnos_mpi_os.h>
#include <p3api/debug.h>
#include <p3rt/p3rt.h>
#include <portals/p3nal_utcp.h>
#include <portals/portals3.h>
#include <portals3.h>
#include <portals3_runtime.h>
#include <portals3x.h>

#include <stdio.h>
#include <stdlib.h>

static void check(int rc, const char *what)
{
	if (rc != PTL_OK) {
		fprintf(stderr, "%s: %s\n", what, PtlErrorStr((unsigned)rc));
		exit(1);
	}
}

static ptl_md_t describe(unsigned *word, ptl_handle_eq_t eq)
{
	ptl_md_t md;
	md.start = word;
	md.length = sizeof *word;
	md.threshold = PTL_MD_THRESH_INF;
	md.max_size = 0;
	md.options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE;
	md.user_ptr = NULL;
	md.eq_handle = eq;
	return md;
}

static void await_put(ptl_handle_eq_t eq)
{
	ptl_event_t ev;
	do
		check(PtlEQWait(eq, &ev), "PtlEQWait");
	while (ev.type != PTL_EVENT_PUT_END);
}

int main(void)
{
	int most;
	unsigned rank, size, mine, came = 99;
	ptl_handle_ni_t ni;
	ptl_handle_eq_t eq;
	ptl_handle_me_t me;
	ptl_handle_md_t md;
	ptl_process_id_t next, anyone = {PTL_NID_ANY, PTL_PID_ANY};
	check(PtlInit(&most), "PtlInit");
	check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni), "PtlNIInit");
	check(PtlGetRank(ni, &rank, &size), "PtlGetRank");
	check(PtlGetRankId(ni, (rank + 1) % size, &next), "PtlGetRankId");
	check(PtlEQAlloc(ni, 8, PTL_EQ_HANDLER_NONE, &eq), "PtlEQAlloc");
	check(PtlMEAttach(ni, 4, anyone, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me),
		"PtlMEAttach");
	check(PtlMDAttach(me, describe(&came, eq), PTL_RETAIN, NULL), "PtlMDAttach");
	check(PtlXBarrier(), "PtlXBarrier");
	mine = rank;
	check(PtlMDBind(ni, describe(&mine, PTL_EQ_NONE), PTL_RETAIN, &md), "PtlMDBind");
	check(PtlPut(md, PTL_NO_ACK_REQ, next, 4, 0, 0, 0, 0), "PtlPut");
	await_put(eq);
	check(PtlXBarrier(), "PtlXBarrier");
	PtlFini();
	if (came != (rank + size - 1) % size)
		return 1;
	if (rank == 0)
		printf("%s: %u ranks\n", PtlXVersion(), size);
	return 0;
}
