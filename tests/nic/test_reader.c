/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose memory is read across processes: a process id may name another one by now. */
#include "cases.h"
#include "lib/lib.h"
#include "nic/fw.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PT = 4, LONG = 300000, OLD = 1, NEW = 2 };

/* The process that this node takes for its peer 0. */
static void believe(pid_t pid)
{
	struct p3_nic *n = p3_nic(p3_node());
	while (!p3_fw_enter(n, P3_LEASE_HOST))
		sched_yield();
	n->peer[0].os_pid = (uint32_t)pid;
	p3_fw_leave(n);
}

/* With all memory as it is now at the same addresses, but for the segments. */
static pid_t fork_sleeper(void)
{
	pid_t pid = fork();
	while (pid == 0)
		pause();
	CHECK(pid > 0);
	return pid;
}

static void end(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
}

static void put_new_bytes(ptl_handle_ni_t ni, unsigned char *bytes)
{
	ptl_handle_eq_t eq = eq_new(ni, 8);
	ptl_handle_md_t md =
		bind_md(ni, md_of(bytes, LONG, PTL_MD_EVENT_START_DISABLE, eq));
	CHECK_OK(put_to(ni, md, 1, PT, 0, PTL_ACK_REQ));
	(void)expect(eq, PTL_EVENT_SEND_END);
	(void)expect(eq, PTL_EVENT_ACK);
}

static pid_t sleeper;

/* The other process has the bytes of before: they must not come. */
NODES_CASE(bytes_of_another_process_do_not_count, 2)
{
	UNUSED_ARGS;
	unsigned char *bytes = node_pattern(LONG, rank ? 0 : OLD);
	ptl_handle_eq_t eq = eq_new(ni, 8);
	ptl_md_t md = md_of(bytes, LONG, MD_ANY | PTL_MD_EVENT_START_DISABLE, eq);
	post_md(ni, PT, 0, md);
	if (rank == 0)
		sleeper = fork_sleeper();
	sync_nodes();
	if (rank == 0)
		fill_pattern(bytes, LONG, NEW);
	else
		believe(sleeper);
	sync_nodes();
	if (rank == 0)
		put_new_bytes(ni, bytes);
	else
		(void)expect(eq, PTL_EVENT_PUT_END);
	if (rank == 1)
		CHECK_PATTERN(bytes, 0, LONG, NEW);
	sync_nodes();
	if (rank == 0)
		end(sleeper);
}

/* Nobody has the process id, and yod has not said that the peer is dead: it is not. */
NODES_CASE(transfer_goes_on_without_the_process_id, 2)
{
	UNUSED_ARGS;
	unsigned char *bytes = node_pattern(LONG, rank ? 0 : NEW);
	ptl_handle_eq_t eq = eq_new(ni, 8);
	ptl_md_t md = md_of(bytes, LONG, MD_ANY | PTL_MD_EVENT_START_DISABLE, eq);
	post_md(ni, PT, 0, md);
	if (rank == 1)
		believe(0x7ffffffe); /* above all process ids */
	sync_nodes();
	if (rank == 0)
		put_new_bytes(ni, bytes);
	else
		(void)expect(eq, PTL_EVENT_PUT_END);
	if (rank == 1)
		CHECK_PATTERN(bytes, 0, LONG, NEW);
	sync_nodes();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_of_another_process_do_not_count),
		cmocka_unit_test(transfer_goes_on_without_the_process_id),
	};
	return RUN_CASES(tests);
}
