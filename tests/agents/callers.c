/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * callers - many ranks that call one
 *
 *	yod --hosts a:1,b:N -sz N+1 callers
 *
 * Each rank but 0 puts a message to rank 0 and takes its ACK; rank 0 takes all messages.
 */
#include "ranks.h"

#include <portals3.h>
#include <portals3_runtime.h>
#include <portals3x.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { PORTAL = 4, BITS = 7, MOST_MS = 400000 };

static char bytes[64];
static ptl_handle_ni_t ni;
static ptl_handle_eq_t eq;

static ptl_md_t md(unsigned options)
{
	return (ptl_md_t){.start = bytes,
		.length = sizeof bytes,
		.threshold = PTL_MD_THRESH_INF,
		.options = options | PTL_MD_EVENT_START_DISABLE,
		.eq_handle = eq};
}

static void begin(void)
{
	const ptl_process_id_t any = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_handle_me_t me;
	int most;
	DO(PtlInit(&most));
	int rc = PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni);
	if (rc != PTL_OK)
		sleep(100); /* pause: the others hear of it while this process lives */
	check(rc, "PtlNIInit");
	DO(PtlGetRank(ni, &rank, &size));
	DO(PtlEQAlloc(ni, 4096, PTL_EQ_HANDLER_NONE, &eq));
	DO(PtlMEAttach(ni, PORTAL, any, BITS, 0, PTL_RETAIN, PTL_INS_AFTER, &me));
	DO(PtlMDAttach(me, md(PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE), PTL_RETAIN, NULL));
	DO(PtlXBarrier());
}

/* Take an event of this type. */
static void await(ptl_event_kind_t type)
{
	ptl_event_t ev;
	int which;
	do {
		DO(PtlEQPoll(&eq, 1, MOST_MS, &ev, &which));
		if (ev.ni_fail_type != PTL_NI_OK) {
			printf("rank %u: an operation has failed\n", rank);
			exit(1);
		}
	} while (ev.type != type);
}

static void call(void)
{
	ptl_process_id_t first;
	ptl_handle_md_t h;
	DO(PtlMDBind(ni, md(0), PTL_UNLINK, &h));
	DO(PtlGetRankId(ni, 0, &first));
	DO(PtlPut(h, PTL_ACK_REQ, first, PORTAL, 0, BITS, 0, 0));
	await(PTL_EVENT_ACK);
}

int main(void)
{
	begin();
	if (rank)
		call();
	for (unsigned i = 1; !rank && i < size; i++)
		await(PTL_EVENT_PUT_END);
	DO(PtlXBarrier());
	if (!rank)
		printf("all %u messages have come\n", size - 1);
	PtlFini();
	return 0;
}
