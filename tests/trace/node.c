/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node CASE [STOP] - ranks whose traces are examined
 *
 *	put	 every rank puts 20 messages of all kinds to the next one, and gets some
 *	killed	 1 and 2 put to 0, one after the other; 1 is killed after its 501st, the
 *		 others go on until the file STOP exists
 *	left	 the same, but 1 calls PtlFini, and others know it as one that left
 *	dumped	 the same, but 1 dumps core
 *	hostile	 the same, but 1 is not killed: it writes random words into its trace
 */
#include "mp/mp.h"
#include "shm/trace.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BITS = 3, LAST = 9, DEATH = 501, LENGTH = 200000, TURNS = 20 };

static unsigned char in[LENGTH], got[LENGTH];
static ptl_handle_eq_t sent, came;

static void put_one(ptl_handle_md_t md, ptl_size_t length, unsigned to)
{
	mp_put(md, 0, length, PTL_ACK_REQ, to, BITS, 0, 0);
	mp_expect(sent, PTL_EVENT_SEND_END);
	mp_expect(sent, PTL_EVENT_ACK);
}

/* ---- put ---- */

static void put_all(ptl_handle_md_t md, ptl_handle_md_t get)
{
	static const ptl_size_t length[] = {0, 8, 16, 17, 3000, LENGTH};
	unsigned next = (mp.rank + 1) % mp.size;
	for (unsigned i = 0; i < TURNS; i++) {
		put_one(md, length[i % 6], next);
		mp_get(get, 0, i % 2 ? LENGTH : 30, next, BITS, 0);
		mp_expect(sent, PTL_EVENT_REPLY_END);
	}
	for (unsigned i = 0; i < 2 * TURNS; i++)
		(void)mp_next(came);
}

/* ---- killed, hostile ---- */

static void put_until_death(ptl_handle_md_t md, int sig)
{
	for (unsigned i = 1; i < DEATH; i++)
		put_one(md, 8, 0);
	mp_put(md, 0, 8, PTL_ACK_REQ, 0, BITS, 0, 0);
	if (!sig) {
		PtlFini();
		exit(0);
	}
	kill(getpid(), sig);
}

static void put_until(ptl_handle_md_t md, const char *stop)
{
	while (access(stop, F_OK) != 0) {
		put_one(md, 8, 0);
		sleep_ms(1);
	}
	mp_put(md, 0, 8, PTL_ACK_REQ, 0, LAST, 0, 0);
	mp_expect(sent, PTL_EVENT_SEND_END);
	mp_expect(sent, PTL_EVENT_ACK);
}

static void take_until_last(ptl_handle_eq_t eq)
{
	while (mp_next(eq).match_bits != LAST)
		;
}

/* Return the address of this process's own published segment. */
static uint64_t *find_trace(void)
{
	char line[300];
	unsigned long at = 0;
	FILE *maps = fopen("/proc/self/maps", "r");
	mp_check(maps, "no /proc");
	while (!at && fgets(line, sizeof line, maps))
		if (!strstr(line, "p3-published") ||
			sscanf(line, "%lx-%*x rw", &at) != 1 || !strstr(line, " rw"))
			at = 0;
	fclose(maps);
	mp_check(at, "no published segment");
	return (uint64_t *)(at + p3_layout_of(mp.size).seg_len);
}

static void scribble(const char *stop)
{
	uint64_t *w = find_trace(), x = 1;
	mp_check((uint32_t)*w == P3_TRACE_MAGIC, "no trace");
	uint64_t words = p3_trace_len(((struct p3_trace_header *)w)->records) / 8;
	for (; access(stop, F_OK) != 0; sleep_ms(1))
		for (unsigned i = 0; i < 300; i++) {
			x = mp_mix(x + i);
			uint64_t at = x % words;
			bool header = at < P3_PAGE / 8;
			if (!header || x >> 32 & 1 || mp.size > 3)
				w[at] = mp_mix(x) >> (x >> 40 & 63);
		}
}

/* ---- */

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "", *stop = argc > 2 ? argv[2] : NULL;
	mp_start();
	sent = mp_queue(64);
	came = mp_queue(4096);
	ptl_handle_md_t md = mp_bind(mp_pattern, LENGTH, sent, 0);
	ptl_handle_md_t get = mp_bind(got, LENGTH, sent, 0);
	mp_attach(BITS, in, LENGTH, PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE,
		came);
	mp_attach(LAST, in, LENGTH, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, came);
	mp_barrier();
	if (!strcmp(what, "put"))
		put_all(md, get);
	else if (mp.rank == 0)
		take_until_last(came);
	else if (mp.rank == 1 && strcmp(what, "hostile"))
		put_until_death(md, !strcmp(what, "killed")   ? SIGKILL
				    : !strcmp(what, "dumped") ? SIGSEGV
							      : 0);
	else if (mp.rank == 1)
		scribble(stop);
	else
		put_until(md, stop);
	if (!strcmp(what, "put") || !strcmp(what, "hostile"))
		mp_end();
	else
		PtlFini();
	return 0;
}
