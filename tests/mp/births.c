/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * births - a node that hears of another by messages can send to it, however late yod's
 * packet is
 *
 * Rank 2 comes, comes again, and opens another interface; each time it tells rank 0,
 * that one tells rank 1, and rank 1 sends to rank 2 at once: one put without
 * acknowledgement and events, whose loss would go unnoticed.  yod's packets reach rank
 * 1 SLOW_MS late, by a recvmsg() of this program.  Its sendmsg() fails with ENOBUFS for
 * every other packet of the library's thread there.  Rank 3 never comes; under
 * PTL3_ABSENT=drop a put to it ends without failure, but only when yod has said that
 * there is no such node.
 *
 *	births [hold]	without the word PTL3_ABSENT is drop
 */
#include "mp.h"

#include <cnos_mpi_os.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SLOW_MS = 150, BITS = 1, ROUNDS = 3, PID = 77 };

static volatile bool slow;         /* delays calls of the library */
static bool holds;                 /* messages wait for nodes that have yet to join */
static volatile unsigned refused;  /* number of refused packets */
static ptl_handle_ni_t ni[ROUNDS]; /* interfaces for sending */
static ptl_handle_eq_t eq[ROUNDS]; /* queues for receiving */
static uint64_t word;

ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
	static ssize_t (*real)(int, struct msghdr *, int);
	if (!real)
		real = (ssize_t(*)(int, struct msghdr *, int))dlsym(RTLD_NEXT, "recvmsg");
	ssize_t got = real(fd, m, flags);
	if (slow)
		/* pause: a rank that is slow to come, which this test is about */
		sleep_ms(SLOW_MS);
	return got;
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	static ssize_t (*real)(int, const struct msghdr *, int);
	static unsigned packets;
	if (!real)
		real = (ssize_t(*)(int, const struct msghdr *, int))dlsym(
			RTLD_NEXT, "sendmsg");
	if (slow && gettid() != getpid() && packets++ % 2 == 0) {
		refused++;
		errno = ENOBUFS;
		return -1;
	}
	return real(fd, m, flags);
}

/* Open the interface of a round; the last round has another interface. */
static void open_for(unsigned round)
{
	bool last = round == ROUNDS - 1;
	mp_ok(PtlNIInit(last ? PTL_IFACE_SS : PTL_IFACE_DEFAULT, last ? PID : PTL_PID_ANY,
		NULL, NULL, &ni[round]));
}

static void tell(unsigned rank, unsigned round)
{
	ptl_process_id_t whom;
	ptl_md_t md = {.start = &word,
		.length = sizeof word,
		.threshold = 1,
		.eq_handle = PTL_EQ_NONE};
	ptl_handle_md_t mdh;
	mp_ok(PtlGetRankId(ni[0], rank, &whom));
	if (round == ROUNDS - 1)
		whom.pid = PID;
	mp_ok(PtlMDBind(ni[round], md, PTL_UNLINK, &mdh));
	mp_ok(PtlPut(mdh, PTL_NO_ACK_REQ, whom, MP_PORTAL, 0, BITS, 0, round));
}

static void hear(unsigned round)
{
	ptl_event_t ev;
	mp_check(mp_next_soon(eq[round], &ev), "round %u: nothing came", round);
	mp_check(ev.type == PTL_EVENT_PUT_END && ev.hdr_data == round, "round %u: %s",
		round, PtlEventKindStr(ev.type));
}

static void listen_in(unsigned round)
{
	static const ptl_process_id_t anyone = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_md_t md = {.start = &word,
		.length = sizeof word,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE |
			   PTL_MD_EVENT_START_DISABLE};
	ptl_handle_me_t me;
	mp_ok(PtlEQAlloc(ni[round], 16, PTL_EQ_HANDLER_NONE, &eq[round]));
	md.eq_handle = eq[round];
	mp_ok(PtlMEAttach(
		ni[round], MP_PORTAL, anyone, BITS, 0, PTL_RETAIN, PTL_INS_AFTER, &me));
	mp_ok(PtlMDAttach(me, md, PTL_RETAIN, NULL));
}

/* Put to rank 3, which does not exist: SEND_END comes, and only after yod's delayed
 * answer. */
static void send_into_the_void(void)
{
	mp.ni = ni[0];
	mp_ok(PtlGetRankId(mp.ni, 3, &mp.id[3]));
	ptl_handle_eq_t sent = mp_queue(8);
	ptl_handle_md_t md = mp_bind(&word, sizeof word, sent, 0);
	uint64_t begun = now_ns();
	mp_put(md, 0, 8, PTL_ACK_REQ, 3, BITS, 0, 0);
	ptl_event_t ev;
	mp_check(mp_next_soon(sent, &ev), "the put does not end");
	mp_check(ev.type == PTL_EVENT_SEND_END && ev.ni_fail_type == PTL_NI_OK, "%s",
		PtlEventKindStr(ev.type));
	mp_check(refused, "nothing was sent in vain");
	mp_check(now_ns() - begun > SLOW_MS * UINT64_C(1000000),
		"ended before yod has answered");
}

/* Before round 1 wait until all ranks know that rank 2 has left: a message to its earlier
 * life would be lost, and the round would not test the new birth. */
static void all_know_the_end(unsigned round)
{
	if (round == 1)
		mp_ok(PtlXBarrier());
}

static void relay(void)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		all_know_the_end(i);
		hear(i);
		tell(1, i);
	}
}

static void answer(void)
{
	slow = true;
	for (unsigned i = 0; i < ROUNDS; i++) {
		all_know_the_end(i);
		hear(i);
		tell(2, i);
	}
	if (!holds)
		send_into_the_void();
}

static void come(void)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		if (i == 1)
			mp_ok(PtlNIFini(ni[0]));
		all_know_the_end(i);
		open_for(i);
		ni[0] = i == 1 ? ni[1] : ni[0];
		listen_in(i);
		tell(0, i);
		hear(i);
	}
}

static void open_all(void)
{
	for (unsigned i = 0; i < ROUNDS; i += 2)
		open_for(i);
	ni[1] = ni[0];
	for (unsigned i = 0; i < ROUNDS; i += 2)
		listen_in(i);
	eq[1] = eq[0];
}

int main(int argc, char **argv)
{
	int most;
	holds = argc > 1 && strcmp(argv[1], "hold") == 0;
	setenv("PTL3_ABSENT", holds ? "hold" : "drop", 1);
	mp_ok(PtlInit(&most));
	mp.rank = (unsigned)cnos_get_rank();
	if (mp.rank < 2)
		open_all();
	mp_ok(PtlXBarrier());
	if (mp.rank == 0)
		relay();
	else if (mp.rank == 1)
		answer();
	else if (mp.rank == 2)
		come();
	else
		all_know_the_end(1);
	mp_ok(PtlXBarrier());
	PtlFini();
	return 0;
}
