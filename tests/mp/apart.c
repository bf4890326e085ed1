/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * apart - nodes that map each other's memory when they first talk (PTL3_ATTACH=use)
 *
 *	apart ring	each rank puts to its right neighbour, and gets from the left
 *			one.  It has mapped the memory of these two then, and of no
 *			other rank.  Then each puts a word to rank 0 and ends at once,
 *			and rank 0 has all of them.
 *	apart leave	each rank puts a word to rank 0, the first that it sends to any
 *			rank, and ends by _exit as soon as it has SEND_END.  Rank 0 has
 *			all words.
 *	apart stopped	rank 1 is stopped (SIGSTOP) before rank 2 has talked to it.
 *			Rank 2 puts to it, and ends.  Rank 1 goes on, and has the
 *			message.
 */
#include "mp.h"
#include "../support/asleep.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RING = 1, WORDS, PIDS, LAST, LENGTH = 3000 };
enum { TELLER, VICTIM, SENDER, ROLES };

static ptl_handle_eq_t eq;

/* Return the number of nodes whose published segment this process has mapped, this node
 * included. */
static unsigned mapped(void)
{
	static unsigned long inode[2 * MP_MOST];
	unsigned n = 0;
	char line[512];
	FILE *f = fopen("/proc/self/maps", "r");
	mp_check(f, "/proc/self/maps");
	while (fgets(line, sizeof line, f)) {
		unsigned long ino, k = 0;
		if (!strstr(line, "memfd:p3-published") ||
			sscanf(line, "%*s %*s %*s %*s %lu", &ino) != 1)
			continue;
		while (k < n && inode[k] != ino)
			k++;
		if (k == n)
			inode[n++] = ino;
		mp_check(n < 2 * MP_MOST, "mappings");
	}
	fclose(f);
	return n;
}

static void expect_mapped(unsigned most, const char *when)
{
	unsigned n = mapped();
	mp_check(n >= 1 && n <= most, "%s %u nodes are mapped, expected %u at most", when,
		n, most);
}

static void expect_alive(void)
{
	ptlx_stats_t st = {.struct_size = sizeof st};
	mp_ok(PtlXStats(mp.ni, &st));
	mp_check(st.peers_alive == mp.size, "%llu nodes are alive",
		(unsigned long long)st.peers_alive);
}

/* ---- ring ---- */

static void talk_to_neighbours(ptl_handle_md_t md)
{
	static char got[LENGTH];
	unsigned right = (mp.rank + 1) % mp.size;
	unsigned left = (mp.rank + mp.size - 1) % mp.size;
	mp_put(md, 0, 8, PTL_ACK_REQ, right, RING, 0, 0);
	(void)mp_expect(eq, PTL_EVENT_SEND_END);
	(void)mp_expect(eq, PTL_EVENT_ACK);
	ptl_handle_md_t into = mp_bind(got, LENGTH, eq, 0);
	mp_get(into, 0, LENGTH, left, RING, 0);
	(void)mp_expect(eq, PTL_EVENT_REPLY_END);
	mp_check(!memcmp(got, mp_pattern, LENGTH), "wrong bytes");
	mp_ok(PtlMDUnlink(into));
}

static void hear_words(ptl_handle_eq_t words)
{
	static bool heard[MP_MOST];
	for (unsigned n = 1; n < mp.size; n++) {
		ptl_event_t ev = mp_expect(words, PTL_EVENT_PUT_END);
		mp_check(ev.hdr_data < mp.size && !heard[ev.hdr_data],
			"a word of rank %u", (unsigned)ev.hdr_data);
		heard[ev.hdr_data] = true;
	}
}

static void ring(void)
{
	static char sink[8];
	ptl_handle_eq_t served = mp_queue(64), words = mp_queue(4 * mp.size);
	ptl_handle_md_t md = mp_bind(mp_pattern, LENGTH, eq, 0);
	mp_attach(RING, mp_pattern, LENGTH,
		PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, served);
	mp_attach(WORDS, sink, sizeof sink, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, words);
	mp_barrier();
	expect_mapped(1, "before the first message");
	expect_alive();
	mp_barrier();
	talk_to_neighbours(md);
	ptl_event_kind_t first = mp_next(served).type;
	(void)mp_expect(served,
		first == PTL_EVENT_GET_END ? PTL_EVENT_PUT_END : PTL_EVENT_GET_END);
	mp_barrier();
	expect_mapped(3, "with two neighbours");
	mp_barrier();
	if (mp.rank)
		mp_put(md, 0, 8, PTL_NO_ACK_REQ, 0, WORDS, 0, mp.rank);
	else
		hear_words(words);
	PtlFini();
}

/* ---- senders that end behind SEND_END ---- */

static void leave(void)
{
	static char sink[8];
	ptl_handle_eq_t words = mp_queue(4 * mp.size);
	mp_attach(WORDS, sink, sizeof sink, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, words);
	mp_barrier();
	if (!mp.rank) {
		hear_words(words);
		return;
	}
	mp_put(mp_bind(mp_pattern, LENGTH, eq, 0), 0, 8, PTL_NO_ACK_REQ, 0, WORDS, 0,
		mp.rank);
	(void)mp_expect(eq, PTL_EVENT_SEND_END);
	_exit(0);
}

/* ---- a target that is stopped ---- */

/* Let rank 0 receive the process ids of the other two ranks, which have not talked to
 * each other by then. */
static void hear_pids(ptl_handle_eq_t served, pid_t *pid)
{
	for (unsigned n = 1; n < ROLES; n++) {
		ptl_event_t ev = mp_expect(served, PTL_EVENT_PUT_END);
		pid[ev.match_bits == PIDS ? ev.hdr_data >> 32 : 0] = (pid_t)ev.hdr_data;
	}
}

/* A put is over for its sender whether its target runs or not. */
static void send_last(void)
{
	ptl_handle_md_t md = mp_bind(mp_pattern, LENGTH, eq, 0);
	mp_put(md, 0, 8, PTL_NO_ACK_REQ, VICTIM, LAST, 0, 7);
	(void)mp_expect(eq, PTL_EVENT_SEND_END);
	PtlFini();
}

static void say_pid(ptl_handle_md_t md)
{
	uint64_t me = (uint64_t)mp.rank << 32 | (uint32_t)getpid();
	mp_put(md, 0, 8, PTL_ACK_REQ, TELLER, PIDS, 0, me);
	(void)mp_expect(eq, PTL_EVENT_SEND_END);
	(void)mp_expect(eq, PTL_EVENT_ACK);
}

static void direct(ptl_handle_eq_t served, ptl_handle_md_t md)
{
	pid_t pid[ROLES] = {0};
	hear_pids(served, pid);
	kill(pid[VICTIM], SIGSTOP);
	mp_check(await_stopped(pid[VICTIM]), "the victim still runs");
	mp_put(md, 0, 8, PTL_NO_ACK_REQ, SENDER, LAST, 0, 0);
	(void)mp_expect(eq, PTL_EVENT_SEND_END);
	mp_check(await_thread_state(pid[SENDER], 'Z'), "the sender has not ended");
	kill(pid[VICTIM], SIGCONT);
}

static void stopped(void)
{
	static char sink[8];
	ptl_handle_eq_t served = mp_queue(64);
	ptl_handle_md_t md = mp_bind(mp_pattern, LENGTH, eq, 0);
	mp_attach(PIDS, sink, sizeof sink, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, served);
	mp_attach(LAST, sink, sizeof sink, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, served);
	mp_barrier();
	if (mp.rank == TELLER) {
		direct(served, md);
		return;
	}
	say_pid(md);
	ptl_event_t ev = mp_expect(served, PTL_EVENT_PUT_END);
	mp_check(ev.hdr_data == (mp.rank == VICTIM ? 7 : 0), "another message");
	if (mp.rank == SENDER)
		send_last();
}

int main(int argc, char **argv)
{
	mp_check(argc == 2, "usage: apart ring|leave|stopped");
	mp_start();
	eq = mp_queue(64);
	if (!strcmp(argv[1], "ring"))
		ring();
	else if (!strcmp(argv[1], "leave"))
		leave();
	else
		stopped();
	puts("fine");
	return 0;
}
