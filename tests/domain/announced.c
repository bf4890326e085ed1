/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * announced - a process id that the program tells faster than the library does
 *
 * A process opens its second interface again and again, each time with another process
 * id, and writes the id into a pipe as soon as PtlNIInit has returned.  The other process
 * reads the id and puts to it at once: each put is acknowledged, although the member's
 * packet about the id may be unread.  A put to an id that no process has ends without an
 * acknowledgement.
 */
#include "../mp/mp.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 300, FIRST = 5000, NOBODY = 9 };

static void open_default(void)
{
	int most;
	mp_ok(PtlInit(&most));
	mp_ok(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &mp.ni));
}

static void read_all(int fd, void *to, size_t n)
{
	mp_check(read(fd, to, n) == (ssize_t)n, "the other process has ended");
}

static void write_all(int fd, const void *from, size_t n)
{
	mp_check(write(fd, from, n) == (ssize_t)n, "the other process has ended");
}

/* ---- the process with new ids ---- */

static void be_named_anew(int from, int to, ptl_pid_t pid)
{
	static char bytes[8];
	ptl_process_id_t id;
	char answer;
	mp_ok(PtlNIInit(PTL_IFACE_SS, pid, NULL, NULL, &mp.ni));
	mp_ok(PtlGetId(mp.ni, &id));
	(void)mp_attach(0, bytes, sizeof bytes, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE,
		PTL_EQ_NONE);
	write_all(to, &id, sizeof id);
	read_all(from, &answer, 1);
	mp_ok(PtlNIFini(mp.ni));
}

static int target(int from, int to)
{
	char answer;
	open_default();
	ptl_handle_ni_t first = mp.ni;
	for (ptl_pid_t i = 0; i < ROUNDS; i++)
		be_named_anew(from, to, FIRST + i);
	write_all(to, &(ptl_process_id_t){0}, sizeof(ptl_process_id_t));
	read_all(from, &answer, 1);
	mp_ok(PtlNIFini(first));
	PtlFini();
	return 0;
}

/* ---- the process that puts ---- */

static struct {
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;
} mine;

/* Put, and take the event of its end.  Return true if it has succeeded. */
static bool ends_well(ptl_process_id_t to)
{
	ptl_event_t event;
	struct patience p = patience_begin();
	mp_ok(PtlPut(mine.md, PTL_ACK_REQ, to, MP_PORTAL, 0, 0, 0, 0));
	do {
		while (PtlEQGet(mine.eq, &event) == PTL_EQ_EMPTY)
			mp_check(!patience_is_over(&p),
				"the put to process id %u is not answered", to.pid);
	} while (event.type != PTL_EVENT_ACK && event.ni_fail_type == PTL_NI_OK &&
		 to.pid != NOBODY);
	return event.type == PTL_EVENT_ACK && event.ni_fail_type == PTL_NI_OK;
}

static void initiator(int from, int to)
{
	ptl_process_id_t id;
	static char bytes[8];
	open_default();
	mine.eq = mp_queue(64);
	mine.md = mp_bind(bytes, sizeof bytes, mine.eq, 0);
	for (read_all(from, &id, sizeof id); id.nid; read_all(from, &id, sizeof id)) {
		mp_check(ends_well(id), "a put to process id %u has failed", id.pid);
		mp_check(!ends_well((ptl_process_id_t){id.nid, NOBODY}),
			"a put to a process id that nobody has is acknowledged");
		write_all(to, "", 1);
	}
	write_all(to, "", 1);
	mp_ok(PtlNIFini(mp.ni));
	PtlFini();
}

int main(void)
{
	int there[2], back[2], status;
	char domain[40]; /* no other run of this test has the same */
	snprintf(domain, sizeof domain, "announced-%d", (int)getpid());
	setenv("PTL3_DOMAIN", domain, 1);
	mp_check(!pipe(there) && !pipe(back), "no pipes");
	pid_t child = fork();
	mp_check(child >= 0, "no process");
	close(child ? there[0] : there[1]);
	close(child ? back[1] : back[0]);
	if (!child)
		return target(there[0], back[1]);
	initiator(back[0], there[1]);
	mp_check(waitpid(child, &status, 0) == child && status == 0,
		"the target has failed");
	printf("# tried: %d new process ids\n", ROUNDS);
	return 0;
}
