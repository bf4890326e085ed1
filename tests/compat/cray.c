/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cray - a program of Cray XT, which knows PTL_IFACE_SS only: an interface that may
 * already be initialised, the map as soon as it exists, and messages as its libraries
 * send them: a word to the next rank, which gets the data from the word's sender with a
 * descriptor of threshold 2 that unlinks itself, and counts the events
 */
#define PTL_IFACE_DEFAULT IFACE_FROM_BRIDGE_AND_NALID(PTL_BRIDGE_UK, PTL_IFACE_SS)
#define PTL_ACENTRY_5ARGS
#include "../support/plain.h"

#include <cnos_mpi_os.h>
#include <portals3.h>
#include <portals3_runtime.h>
#include <string.h>

enum { WORDS = 4, DATA = 5, ROUNDS = 60, LONGEST = 200000 };

static int rank, size;

static ptl_handle_ni_t ni;
static ptl_handle_eq_t eq;
static const cnos_nidpid_map_t *map;
static char mine[LONGEST], got[LONGEST];
static unsigned words, sends, replies, others;
static uint64_t word;

static const ptl_process_id_t anybody = {PTL_NID_ANY, PTL_PID_ANY};

static ptl_process_id_t id_of(int who)
{
	return (ptl_process_id_t){map[who].nid, map[who].pid};
}

static void enter(void)
{
	int most;
	cnos_nidpid_map_t *planned, *at_once;
	ptl_handle_ni_t again;
	ptl_ni_limits_t limits = {0};
	ptl_process_id_t self;
	ptl_pid_t pid;
	OK(PtlInit(&most));
	CHECK(cnos_get_nidpid_map(&planned) == size);
	OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni));
	CHECK(cnos_get_nidpid_map(&at_once) == size);
	map = at_once;
	OK(PtlGetId(ni, &self));
	CHECK(map[rank].nid == self.nid && map[rank].pid == self.pid);
	for (int i = 0; i < size; i++)
		CHECK(map[i].pid == self.pid - (ptl_pid_t)rank + (ptl_pid_t)i);
	OK(PtlGetPIDMap(PTL_INVALID_HANDLE, &pid, 1));
	CHECK(pid == map[0].pid);
	CHECK(PtlNIInit(CRAY_USER_NAL, PTL_PID_ANY, NULL, &limits, &again) ==
		PTL_IFACE_DUP);
	CHECK(again == ni && limits.max_pt_index >= 63);
	OK(PtlACEntry(ni, 1, anybody, PTL_UID_ANY, PTL_PT_INDEX_ANY));
	OK(PtlEQAlloc(ni, 64, PTL_EQ_HANDLER_NONE, &eq));
}

static void attach(unsigned pt, void *start, ptl_size_t length, unsigned operation)
{
	ptl_handle_me_t me;
	ptl_handle_md_t mdh;
	ptl_md_t md = {.start = start,
		.length = length,
		.threshold = PTL_MD_THRESH_INF,
		.options = operation | PTL_MD_MANAGE_REMOTE | PTL_MD_TRUNCATE |
			   PTL_MD_EVENT_START_DISABLE,
		.eq_handle = pt == WORDS ? eq : PTL_EQ_NONE};
	OK(PtlMEAttach(ni, pt, anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me));
	OK(PtlMDAttach(me, md, PTL_RETAIN, &mdh));
}

static void count(const ptl_event_t *ev)
{
	CHECK(ev->ni_fail_type == PTL_NI_OK);
	CHECK(ev->mlength == ev->rlength); /* also in a get's SEND_END */
	if (ev->type == PTL_EVENT_PUT_END)
		words++;
	else if (ev->type == PTL_EVENT_SEND_END)
		sends++;
	else if (ev->type == PTL_EVENT_REPLY_END)
		replies++;
	else
		others++;
}

static void wait_for(const unsigned *counter, unsigned value)
{
	ptl_event_t ev;
	int which;
	while (*counter < value) {
		OK(PtlEQPoll(&eq, 1, 600000, &ev, &which));
		count(&ev);
	}
}

static ptl_handle_md_t once(void *start, ptl_size_t length, int threshold)
{
	ptl_handle_md_t mdh;
	ptl_md_t md = {.start = start,
		.length = length,
		.threshold = threshold,
		.options = PTL_MD_EVENT_START_DISABLE,
		.eq_handle = eq};
	OK(PtlMDBind(ni, md, PTL_UNLINK, &mdh));
	return mdh;
}

static void round_of(unsigned i)
{
	ptl_size_t length = (ptl_size_t[]){8, 3000, LONGEST}[i % 3];
	int next = (rank + 1) % size, last = (rank + size - 1) % size;
	memset(got, 0, length);
	word = i;
	OK(PtlPut(once(&word, sizeof word, 1), PTL_NOACK_REQ, id_of(next), WORDS, 1, 0, 0,
		0));
	wait_for(&words, i + 1);
	OK(PtlGet(once(got, length, 2), id_of(last), DATA, 1, 0, 0));
	wait_for(&replies, i + 1);
	wait_for(&sends, 2 * (i + 1)); /* of the word and of the get */
	CHECK(got[0] == 'a' + last && got[length - 1] == 'a' + last);
}

static void leave(ptl_sr_value_t descriptors)
{
	ptl_event_t ev;
	ptl_sr_value_t now;
	CHECK(cnos_barrier() == 0);
	CHECK(PtlEQGet(eq, &ev) == PTL_EQ_EMPTY && others == 0);
	OK(PtlNIStatus(ni, PTL_SR_MDS_CUR, &now));
	CHECK(now == descriptors);
	PtlFini();
}

int main(void)
{
	static uint64_t landing;
	ptl_sr_value_t descriptors;
	rank = cnos_get_rank();
	size = cnos_get_size();
	enter();
	memset(mine, 'a' + rank, sizeof mine);
	attach(WORDS, &landing, sizeof landing, PTL_MD_OP_PUT);
	attach(DATA, mine, sizeof mine, PTL_MD_OP_GET);
	OK(PtlNIStatus(ni, PTL_SR_MDS_CUR, &descriptors));
	CHECK(cnos_barrier() == 0);
	for (unsigned i = 0; i < ROUNDS; i++)
		round_of(i);
	leave(descriptors);
	return 0;
}
