/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Those who read a node's memory: whose it is (a process id may name another process by
 * now), and readers that stop in the middle.
 */
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

static void send_new_bytes(
	ptl_handle_ni_t ni, unsigned rank, unsigned char *bytes, ptl_handle_eq_t eq)
{
	if (rank == 0) {
		put_new_bytes(ni, bytes);
	} else {
		(void)expect(eq, PTL_EVENT_PUT_END);
		CHECK_PATTERN(bytes, 0, LONG, NEW);
	}
	sync_nodes();
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
	send_new_bytes(ni, rank, bytes, eq);
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
	sync_nodes(); /* before: who is heard of brings the true one */
	if (rank == 1)
		believe(0x7ffffffe); /* above all process ids */
	sync_nodes();
	send_new_bytes(ni, rank, bytes, eq);
}

/* ---- a reader that has begun, and stops ---- */

enum { PT_SWAP = 5, HUGE = 16 << 20 };

static struct gate *stopped, *begun, *swapped;

static void make_gates(void)
{
	stopped = gate_new(3);
	begun = gate_new(3);
	swapped = gate_new(3);
}

static bool has_read_some(struct p3_nic *n)
{
	if (p3_list_empty(&n->pulls))
		return false;
	const struct p3_pull *pull = p3_item(n->pulls.next, struct p3_pull, link);
	return pull->done || pull->end < pull->length;
}

static bool stops_before_it_says; /* how far it has read */

/* The owner has time to act on it. */
static void say_read(struct p3_nic *n, bool any)
{
	const struct p3_pull *pull = p3_item(n->pulls.next, struct p3_pull, link);
	if (!stops_before_it_says || pull->mover != P3_MOVE_BULK)
		return;
	p3_release(&pull->peer->mine->bulk_read, any ? pull->done : 0);
	p3_kick_peer(n, pull->peer);
	sleep_ms(20);
}

/* Holds the firmware where it is until others have done their exchange. */
static void read_and_stop(ptl_handle_eq_t eq)
{
	struct p3_nic *n = p3_nic(p3_node());
	sync_nodes(); /* before: who knows nobody yet needs the lease in here */
	while (!p3_fw_enter(n, P3_LEASE_HOST))
		sched_yield();
	gate_wait(stopped);
	while (!has_read_some(n))
		(void)p3_fw_pass(n);
	say_read(n, false);
	gate_wait(begun);
	gate_wait(swapped);
	say_read(n, false);
	say_read(n, true);
	p3_fw_leave(n);
	(void)expect(eq, PTL_EVENT_PUT_END);
}

static void swap_meanwhile(ptl_handle_ni_t ni)
{
	unsigned char *got = node_alloc(8), *put = node_alloc(8);
	ptl_handle_eq_t eq = eq_new(ni, 8);
	fill_pattern(put, 8, OLD);
	ptl_handle_md_t get = bind_md(ni, md_of(got, 8, PTL_MD_EVENT_START_DISABLE, eq));
	ptl_handle_md_t out = bind_md(ni, md_of(put, 8, MD_QUIET, PTL_EQ_NONE));
	sync_nodes();
	gate_wait(stopped);
	gate_wait(begun);
	CHECK_OK(PtlGetPut(get, out, id_of(ni, 0), PT_SWAP, 0, 0, 0, 0));
	(void)expect(eq, PTL_EVENT_REPLY_END);
	CHECK_PATTERN(got, 0, 8, NEW);
	gate_wait(swapped);
}

static void send_to_reader(ptl_handle_ni_t ni, unsigned char *bytes)
{
	ptl_handle_eq_t eq = eq_new(ni, 8);
	post_md(ni, PT_SWAP, 0, md_of(bytes, 8, MD_ANY | MD_QUIET, PTL_EQ_NONE));
	sync_nodes();
	gate_wait(stopped);
	CHECK_OK(put_to(ni,
		bind_md(ni, md_of(bytes, HUGE, PTL_MD_EVENT_START_DISABLE, eq)), 1, PT, 0,
		PTL_ACK_REQ));
	gate_wait(begun);
	gate_wait(swapped); /* its NIC's thread does the exchange */
	(void)expect(eq, PTL_EVENT_SEND_END);
	(void)expect(eq, PTL_EVENT_ACK);
}

/* An exchange does not wait for it; and the put does not carry half of the exchange. */
static void swap_and_stop(unsigned rank, ptl_handle_ni_t ni)
{
	unsigned char *bytes = node_pattern(HUGE, rank ? 0 : NEW);
	ptl_handle_eq_t eq = eq_new(ni, 8);
	ptl_md_t md = md_of(bytes, HUGE, MD_ANY | PTL_MD_EVENT_START_DISABLE, eq);
	post_md(ni, PT, 0, md);
	if (rank == 0)
		send_to_reader(ni, bytes);
	else if (rank == 1)
		read_and_stop(eq);
	else
		swap_meanwhile(ni);
	sync_nodes();
	if (rank != 1)
		return;
	CHECK_PATTERN(bytes, 0, 8, OLD);
	CHECK_PATTERN(bytes + 8, 8, HUGE - 8, NEW);
}

static void stopped_reader(unsigned rank, unsigned size, ptl_handle_ni_t ni, void *arg)
{
	UNUSED_ARGS;
	swap_and_stop(rank, ni);
}

static void exchange_does_not_wait_for_a_stopped_reader(void **state)
{
	(void)state;
	stops_before_it_says = false;
	run_nodes(3, stopped_reader, NULL);
}

/* What it says about the bytes of before must not count for the new ones. */
static void late_word_of_a_stopped_reader_does_not_count(void **state)
{
	(void)state;
	stops_before_it_says = true;
	run_nodes(3, stopped_reader, NULL);
}

int main(void)
{
	setenv("PTL3_MODE", "lease", 1); /* who is to stop has to hold the lease */
	make_gates();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_of_another_process_do_not_count),
		cmocka_unit_test(transfer_goes_on_without_the_process_id),
		cmocka_unit_test(exchange_does_not_wait_for_a_stopped_reader),
		cmocka_unit_test(late_word_of_a_stopped_reader_does_not_count),
	};
	return RUN_CASES(tests);
}
