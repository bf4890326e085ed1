/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node - one node of a job of yod in a domain: it prints its identity, talks with its
 * own job and with a service whose ids are in the arguments; the service's access
 * control admits it or not
 *
 *	node NID PID ENTRY acked|sent
 */
#include "member.h"

#include <portals3_runtime.h>
#include <portals3x.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	static const char *const names[] = {"acked", "sent", "failed", "hung"};
	unsigned rank, size;
	if (argc != 5)
		return 2;
	member_start(PTL_PID_ANY);
	ptl_process_id_t service = {(ptl_nid_t)strtoul(argv[1], NULL, 10),
		(ptl_pid_t)strtoul(argv[2], NULL, 10)};
	if (PtlGetRank(PTL_INVALID_HANDLE, &rank, &size) != PTL_OK || size != 3)
		fail("rank %u of %u", rank, size);
	if (PtlXBarrier() != PTL_OK)
		fail("the first barrier");
	for (unsigned i = 0; i < size; i++) {
		ptl_process_id_t id;
		if (PtlGetRankId(PTL_INVALID_HANDLE, i, &id) != PTL_OK ||
			id.nid != member_id().nid - rank + i || id.pid != 100 + i)
			fail("rank %u is %u,%u", i, id.nid, id.pid);
		if (member_put(id, 5000, 0, MEMBER_LONG_MS) != ACKED)
			fail("rank %u cannot be reached", i);
	}
	bool acked = strcmp(argv[4], "acked") == 0;
	struct patience p = patience_begin();
	enum outcome out;
	do /* it fails until this process and the service have met */
		out = member_put(service, 3000, (unsigned)atoi(argv[3]),
			acked ? MEMBER_LONG_MS : 300);
	while (out == FAILED && !patience_is_over(&p));
	if (strcmp(names[out], argv[4]) != 0)
		fail("a put to the service is %s, not %s", names[out], argv[4]);
	if (PtlXBarrier() != PTL_OK)
		fail("the last barrier");
	member_take();
	if (member_got() < size)
		fail("%lu messages came, of %u", member_got(), size);
	if (rank == 0)
		member_say_who();
	member_end();
	return 0;
}
