/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ends - the end of a rank, as the ranks of other hosts and of its own see it
 *
 *	ends HOW FILE [MOST_MS [START_MS | go]]
 *
 * Rank 2 is the victim.  All others get bytes from it, one get after the other, until a
 * get fails.  Then they check that they reach each other, and that nothing else fails.
 *
 *	kill, exit, _exit, exec	the victim does that after START_MS: gets fail
 *	stop		it stops itself, rank 3 continues it after STOP_MS: no get fails
 *			before, and for MOST_MS after that
 *	wait		the test does something to the host of ranks 2 and 3
 *	idle		all ranks do nothing until the test ends them
 *	pause		as wait, but no get may fail for MOST_MS; 0: until FILE.enough
 *			is there
 *
 * The victim writes its process id to FILE.pid, and the time of its end to FILE.end.
 * With go the end comes when FILE.go is there.
 */
#include "../mp/mp.h"
#include "../support/asleep.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VICTIM = 2, HELPER = 3, STOP_MS = 2500, RING = 200 };
enum { BITS_GET = 1, BITS_PUT = 2, BYTES = 4096 };

static unsigned start_ms = 300;
static bool waits_for_go;
static bool both; /* rank 3 is a victim, too: its host is cut off */
static ptl_handle_eq_t eq, ring_eq;
static char bytes[BYTES], from[BYTES], ring[RING * 8];

/* ---- the victim ---- */

static void write_word(const char *path, const char *name, long long word)
{
	char whole[500], text[40];
	snprintf(whole, sizeof whole, "%s.%s", path, name);
	int n = snprintf(text, sizeof text, "%lld\n", word);
	int fd = open(whole, O_CREAT | O_WRONLY | O_TRUNC, 0600);
	mp_check(
		fd >= 0 && write(fd, text, (size_t)n) == n, "the file cannot be written");
	close(fd);
}

static long long read_word(const char *path, const char *name)
{
	char whole[500];
	long long word = 0;
	snprintf(whole, sizeof whole, "%s.%s", path, name);
	FILE *f = fopen(whole, "r");
	if (f && fscanf(f, "%lld", &word) != 1)
		word = 0;
	if (f)
		fclose(f);
	return word;
}

/* Serve gets, without calls of the library, until the end or until the helper has told
 * that the test is over. */
static void be_victim(const char *how, const char *file)
{
	/* pause: so that gets are under way */
	sleep_ms(start_ms);
	while (waits_for_go && !read_word(file, "go"))
		sleep_ms(20); /* pause: between two looks */
	if (mp.rank == VICTIM)
		write_word(file, "end", (long long)now_ms());
	if (strcmp(how, "kill") == 0)
		raise(SIGKILL);
	if (strcmp(how, "exit") == 0)
		exit(0);
	if (strcmp(how, "_exit") == 0)
		_exit(0);
	if (strcmp(how, "exec") == 0)
		execlp("sleep", "sleep", "4", (char *)NULL);
	if (strcmp(how, "stop") == 0)
		raise(SIGSTOP);
	while (!read_word(file, "over"))
		sleep_ms(20); /* pause: between two looks */
}

/* ---- the others ---- */

static ptl_ni_fail_t get_once(void)
{
	ptl_event_t ev;
	ptl_handle_md_t mdh;
	ptl_md_t md = {.start = from,
		.length = BYTES,
		.threshold = 1,
		.options = PTL_MD_EVENT_START_DISABLE,
		.eq_handle = eq};
	memset(from, 0, BYTES);
	mp_ok(PtlMDBind(mp.ni, md, PTL_UNLINK, &mdh));
	mp_ok(PtlGet(mdh, mp.id[VICTIM], MP_PORTAL, 0, BITS_GET, 0));
	do
		mp_ok(PtlEQWait(eq, &ev));
	while (ev.type != PTL_EVENT_REPLY_END);
	mp_check(ev.ni_fail_type != PTL_NI_OK || from[BYTES - 1] == 'v',
		"a get brings wrong bytes");
	return ev.ni_fail_type;
}

/* Get until a get fails, or for ms; 0: until FILE.enough is there. */
static bool get_until_end(const char *file, unsigned ms)
{
	uint64_t end = now_ms() + ms;
	while (ms ? now_ms() < end : !read_word(file, "enough")) {
		if (get_once() != PTL_NI_OK)
			return true;
		if (!ms)
			sleep_ms(20); /* pause: between two looks */
	}
	return false;
}

static void idle(const char *file)
{
	if (mp.rank == VICTIM)
		write_word(file, "end", (long long)now_ms());
	/* pause: the test ends the job meanwhile */
	sleep_ms(3600000);
}

static bool is_victim(unsigned who)
{
	return who == VICTIM || (both && who == HELPER);
}

/* Put to the next rank but the victim, and wait for the puts of the one before. */
static void go_round(void)
{
	unsigned next = (mp.rank + 1) % mp.size;
	ptl_event_t ev;
	ptl_handle_md_t mdh;
	unsigned came = 0, sent = 0;
	while (is_victim(next))
		next = (next + 1) % mp.size;
	ptl_md_t md = {.start = bytes,
		.length = 8,
		.threshold = 2 * RING,
		.options = PTL_MD_EVENT_START_DISABLE,
		.eq_handle = ring_eq};
	mp_ok(PtlMDBind(mp.ni, md, PTL_UNLINK, &mdh));
	for (unsigned i = 0; i < RING; i++)
		mp_ok(PtlPut(
			mdh, PTL_ACK_REQ, mp.id[next], MP_PORTAL, 0, BITS_PUT, i * 8, 0));
	while (came < RING || sent < RING) {
		mp_ok(PtlEQWait(ring_eq, &ev));
		came += ev.type == PTL_EVENT_PUT_END;
		sent += ev.type == PTL_EVENT_ACK;
		mp_check(ev.ni_fail_type == PTL_NI_OK,
			"a put to a rank that lives has failed");
	}
}

/* Let the victim, which has stopped itself or will, go on after STOP_MS.  A SIGCONT that
 * comes before it stops would be lost. */
static void continue_victim(pid_t pid)
{
	while (thread_state(pid) != 'T')
		sleep_ms(20); /* pause: between two looks */
	/* pause: longer than PTL3_FAR_TIMEOUT */
	sleep_ms(STOP_MS);
	kill(pid, SIGCONT);
}

/* Wait until all others have come here: if one left earlier, another one might still need
 * an acknowledgement of it. */
static void meet_others(const char *file)
{
	char name[40];
	struct patience p = patience_begin();
	snprintf(name, sizeof name, "seen%u", mp.rank);
	write_word(file, name, 1);
	for (unsigned i = 0; i < mp.size; i++) {
		snprintf(name, sizeof name, "seen%u", i);
		while (!is_victim(i) && !read_word(file, name)) {
			mp_check(!patience_is_over(&p), "another rank does not come");
			sleep_ms(20); /* pause: between two looks */
		}
	}
}

/* Get while nothing may fail. */
static void get_in_peace(const char *how, const char *file, unsigned most_ms)
{
	bool stop = strcmp(how, "stop") == 0, helps = stop && mp.rank == HELPER;
	if (helps)
		continue_victim((pid_t)read_word(file, "pid"));
	mp_check(!get_until_end(file, stop && !helps ? 0 : most_ms),
		"a get has failed though the victim lives");
	if (helps)
		write_word(file, "enough", 1);
	go_round();
	printf("rank %u: nothing has failed\n", mp.rank);
	fflush(stdout);
	meet_others(file);
	if (mp.rank == HELPER)
		write_word(file, "over", 1);
}

/* Get until the victim ends. */
static void get_to_the_end(const char *file)
{
	mp_check(get_until_end(file, 600000), "no get has failed");
	long long end = read_word(file, "end"), late = (long long)now_ms() - end;
	go_round();
	printf("rank %u: a get failed after %lld ms, the others go on\n", mp.rank, late);
	fflush(stdout);
	meet_others(file);
}

static void be_other(const char *how, const char *file, unsigned most_ms)
{
	if (strcmp(how, "stop") == 0 || strcmp(how, "pause") == 0)
		get_in_peace(how, file, most_ms);
	else
		get_to_the_end(file);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	mp_start();
	memset(bytes, mp.rank == VICTIM ? 'v' : 'o', sizeof bytes);
	eq = mp_queue(1024);
	ring_eq = mp_queue(8 * RING);
	mp_attach(BITS_GET, bytes, sizeof bytes, PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE,
		PTL_EQ_NONE);
	mp_attach(BITS_PUT, ring, sizeof ring, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE,
		ring_eq);
	if (mp.rank == VICTIM)
		write_word(argv[2], "pid", getpid());
	mp_barrier();
	waits_for_go = argc > 4 && strcmp(argv[4], "go") == 0;
	if (argc > 4)
		start_ms = (unsigned)atoi(argv[4]);
	both = strcmp(argv[1], "wait") == 0;
	if (strcmp(argv[1], "idle") == 0)
		idle(argv[2]);
	else if (is_victim(mp.rank))
		be_victim(argv[1], argv[2]);
	else
		be_other(argv[1], argv[2], argc > 3 ? (unsigned)atoi(argv[3]) : 2000);
	PtlFini();
	return 0;
}
