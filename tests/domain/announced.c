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
#include "../support/patience.h"

#include <portals3.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { ROUNDS = 300, FIRST = 5000, PORTAL = 4, NOBODY = 9 };

static _Noreturn void fail(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fprintf(stderr, "process %d: ", (int)getpid());
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(1);
}

static void ok(int rc, const char *what)
{
	if (rc != PTL_OK)
		fail("%s: %s", what, PtlErrorStr((unsigned)rc));
}

static ptl_handle_ni_t open_default(void)
{
	int most;
	ptl_handle_ni_t ni;
	ok(PtlInit(&most), "PtlInit");
	ok(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni), "PtlNIInit");
	return ni;
}

static void read_all(int fd, void *to, size_t n)
{
	if (read(fd, to, n) != (ssize_t)n)
		fail("the other process has ended");
}

static void write_all(int fd, const void *from, size_t n)
{
	if (write(fd, from, n) != (ssize_t)n)
		fail("the other process has ended");
}

/* ---- the process with new ids ---- */

static void accept_puts(ptl_handle_ni_t ni)
{
	static char bytes[8];
	const ptl_process_id_t any = {PTL_NID_ANY, PTL_PID_ANY};
	const ptl_md_t md = {.start = bytes,
		.length = sizeof bytes,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE,
		.eq_handle = PTL_EQ_NONE};
	ptl_handle_me_t me;
	ok(PtlMEAttach(ni, PORTAL, any, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me), "attach");
	ok(PtlMDAttach(me, md, PTL_RETAIN, NULL), "PtlMDAttach");
}

static void be_named_anew(int from, int to, ptl_pid_t pid)
{
	ptl_handle_ni_t ni;
	ptl_process_id_t id;
	char answer;
	ok(PtlNIInit(PTL_IFACE_SS, pid, NULL, NULL, &ni), "PtlNIInit of a new id");
	ok(PtlGetId(ni, &id), "PtlGetId");
	accept_puts(ni);
	write_all(to, &id, sizeof id);
	read_all(from, &answer, 1);
	ok(PtlNIFini(ni), "PtlNIFini");
}

static int target(int from, int to)
{
	char answer;
	ptl_handle_ni_t ni = open_default();
	for (ptl_pid_t i = 0; i < ROUNDS; i++)
		be_named_anew(from, to, FIRST + i);
	write_all(to, &(ptl_process_id_t){0}, sizeof(ptl_process_id_t));
	read_all(from, &answer, 1);
	ok(PtlNIFini(ni), "PtlNIFini");
	PtlFini();
	return 0;
}

/* ---- the process that puts ---- */

static struct {
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;
} mine;

static void bind(ptl_handle_ni_t ni)
{
	static char bytes[8];
	ok(PtlEQAlloc(ni, 64, PTL_EQ_HANDLER_NONE, &mine.eq), "PtlEQAlloc");
	const ptl_md_t md = {.start = bytes,
		.length = sizeof bytes,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_EVENT_START_DISABLE,
		.eq_handle = mine.eq};
	ok(PtlMDBind(ni, md, PTL_RETAIN, &mine.md), "PtlMDBind");
}

/* Put, and take the event of its end.  Return true if it has succeeded. */
static bool ends_well(ptl_process_id_t to)
{
	ptl_event_t event;
	struct patience p = patience_begin();
	ok(PtlPut(mine.md, PTL_ACK_REQ, to, PORTAL, 0, 0, 0, 0), "PtlPut");
	do {
		while (PtlEQGet(mine.eq, &event) == PTL_EQ_EMPTY)
			if (patience_is_over(&p))
				fail("the put to process id %u is not answered", to.pid);
	} while (event.type != PTL_EVENT_ACK && event.ni_fail_type == PTL_NI_OK &&
		 to.pid != NOBODY);
	return event.type == PTL_EVENT_ACK && event.ni_fail_type == PTL_NI_OK;
}

static void initiator(int from, int to)
{
	ptl_process_id_t id;
	ptl_handle_ni_t ni = open_default();
	bind(ni);
	for (read_all(from, &id, sizeof id); id.nid; read_all(from, &id, sizeof id)) {
		if (!ends_well(id))
			fail("a put to process id %u has failed", id.pid);
		if (ends_well((ptl_process_id_t){id.nid, NOBODY}))
			fail("a put to a process id that nobody has is acknowledged");
		write_all(to, "", 1);
	}
	write_all(to, "", 1);
	ok(PtlNIFini(ni), "PtlNIFini");
	PtlFini();
}

int main(void)
{
	int there[2], back[2], status;
	char domain[40]; /* no other run of this test has the same */
	snprintf(domain, sizeof domain, "announced-%d", (int)getpid());
	setenv("PTL3_DOMAIN", domain, 1);
	if (pipe(there) || pipe(back))
		fail("no pipes");
	pid_t child = fork();
	if (child < 0)
		fail("no process");
	close(child ? there[0] : there[1]);
	close(child ? back[1] : back[0]);
	if (!child)
		return target(there[0], back[1]);
	initiator(back[0], there[1]);
	if (waitpid(child, &status, 0) != child || status != 0)
		fail("the target has failed");
	printf("# tried: %d new process ids\n", ROUNDS);
	return 0;
}
