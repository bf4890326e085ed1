/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * register - a program of Cray XT finds its peers: PtlNIInit with a pid of its own
 * choice, cnos_register_ptlid, a barrier, the map; then a put to the next rank.
 */
#include "../support/plain.h"

#include <cnos_mpi_os.h>
#include <p3api/debug.h>
#include <p3nal_utcp.h>
#include <p3rt/p3rt.h>

enum { BITS = 7, PID = 500, PORTAL = 4 };

static ptl_handle_ni_t ni;
static ptl_handle_eq_t eq;
static unsigned own, got = ~0u;

static ptl_process_id_t enter(int rank)
{
	int most;
	unsigned nid;
	ptl_process_id_t self;
	CHECK(p3tcp_my_nid("eth0", &nid) == PTL_OK);
	CHECK(p3tcp_my_nid(NULL, NULL) == PTL_SEGV);
	CHECK(PtlInit(&most) == PTL_OK);
	CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PID + (ptl_pid_t)rank, NULL, NULL, &ni) ==
		PTL_OK);
	PtlNIDebug(ni, PTL_DBG_ALL | PTL_DBG_NI_ALL);
	CHECK(PtlNIDebug(ni, 0) == (PTL_DBG_ALL | PTL_DBG_NI_ALL));
	CHECK(PtlGetId(ni, &self) == PTL_OK && self.nid == nid);
	return self;
}

static void receive(void)
{
	ptl_process_id_t anybody = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_handle_me_t me;
	ptl_handle_md_t md_handle;
	ptl_md_t md = {.start = &got,
		.length = sizeof got,
		.threshold = 1,
		.options = PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE,
		.eq_handle = eq};
	CHECK(PtlMEAttach(ni, PORTAL, anybody, BITS, 0, PTL_RETAIN, PTL_INS_AFTER, &me) ==
		PTL_OK);
	CHECK(PtlMDAttach(me, md, PTL_RETAIN, &md_handle) == PTL_OK);
}

static void send(ptl_process_id_t to)
{
	ptl_handle_md_t md_handle;
	ptl_md_t md = {.start = &own,
		.length = sizeof own,
		.threshold = 1,
		.eq_handle = PTL_EQ_NONE};
	CHECK(PtlMDBind(ni, md, PTL_UNLINK, &md_handle) == PTL_OK);
	CHECK(PtlPut(md_handle, PTL_NOACK_REQ, to, PORTAL, 0, BITS, 0, 0) == PTL_OK);
}

static void check_map(const cnos_nidpid_map_t *map, int rank, ptl_process_id_t self)
{
	CHECK(map[rank].nid == self.nid && map[rank].pid == self.pid);
	for (int i = 0; i < cnos_get_size(); i++)
		CHECK(map[i].pid == PID + (ptl_pid_t)i);
}

static void exchange(const cnos_nidpid_map_t *map, int rank)
{
	ptl_event_t event;
	int size = cnos_get_size(), next = (rank + 1) % size;
	ptl_process_id_t to = {map[next].nid, map[next].pid};
	own = (unsigned)rank;
	send(to);
	CHECK(PtlEQWait(eq, &event) == PTL_OK && event.type == PTL_EVENT_PUT_END);
	CHECK(got == (unsigned)((rank + size - 1) % size));
}

int main(void)
{
	cnos_nidpid_map_t *planned, *map;
	int rank = cnos_get_rank();
	CHECK(cnos_barrier() == 0);
	CHECK(cnos_get_nidpid_map(&planned) == cnos_get_size());
	ptl_process_id_t self = enter(rank);
	CHECK(PtlEQAlloc(ni, 16, PTL_EQ_HANDLER_NONE, &eq) == PTL_OK);
	receive();
	CHECK(cnos_register_ptlid(self) == 0 && cnos_barrier_init(ni) == 0);
	CHECK(cnos_barrier() == 0);
	CHECK(cnos_get_nidpid_map(&map) == cnos_get_size() && map == planned);
	check_map(map, rank, self);
	exchange(map, rank);
	CHECK(cnos_barrier() == 0);
	CHECK(PtlNIFini(ni) == PTL_OK);
	PtlFini();
	CHECK(cnos_pm_barrier(0) == 0 && map[rank].pid == self.pid);
	return 0;
}
