/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Readers of a node's memory: they check the owner (a process id may name another
 * process by now), and they may stop in the middle.
 */
#include "nic/run/lease.h"
#include "cases.h"
#include "lib/node/node.h"
#include "support/hold.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PT = 4, LONG = 300000, OLD = 1, NEW = 2 };

/* Make this node take another process for its peer 0. */
static void believe(pid_t pid)
{
	struct p3_nic *n = p3_nic(p3_node());
	nic_hold(n);
	n->peer[0].os_pid = (uint32_t)pid;
	p3_lease_leave(n);
}

/* Fork a process that sleeps.  It has a copy of this one's memory, except the segments,
 * at the same addresses. */
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
	ptl_handle_md_t md = bind_md(ni, source_md(bytes, LONG, eq));
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

/* The other process has the old bytes, which must not arrive. */
NODES_CASE(bytes_of_another_process_do_not_count, 2)
{
	unsigned char *bytes = node_pattern(LONG, rank ? 0 : OLD);
	ptl_handle_eq_t eq = eq_new(ni, 8);
	ptl_md_t md = sink_md(bytes, LONG, eq);
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

/* The peer's process id is that of no process, but yod has reported no death: the peer
 * counts as alive, and the transfer succeeds. */
NODES_CASE(transfer_goes_on_without_the_process_id, 2)
{
	unsigned char *bytes = node_pattern(LONG, rank ? 0 : NEW);
	ptl_handle_eq_t eq = eq_new(ni, 8);
	ptl_md_t md = sink_md(bytes, LONG, eq);
	post_md(ni, PT, 0, md);
	sync_nodes(); /* before, since a new birth brings the true id */
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

/* Bytes from this number on have not been read. */
static p3_a64 border;

/* Return the first byte that a pull has not read: fetches read ahead of the bytes that
 * count. */
static uint64_t border_of(const struct p3_pull *pull)
{
	if (pull->mover == P3_MOVE_FETCH)
		return pull->asked;
	return pull->done ? pull->done : pull->end;
}

static bool has_read_some(struct p3_nic *n)
{
	if (p3_list_empty(&n->pulls))
		return false;
	const struct p3_pull *pull = p3_item(n->pulls.next, struct p3_pull, link);
	p3_set(&border, border_of(pull));
	return pull->done || pull->end < pull->length;
}

static bool stops_before_it_says; /* it stops before it tells how far it has read */

/* Tell the owner how far this node has read, all (any) or nothing, where the test wants
 * that late.  Give the owner time to act. */
static void say_read(struct p3_nic *n, bool any)
{
	const struct p3_pull *pull = p3_item(n->pulls.next, struct p3_pull, link);
	if (!stops_before_it_says || pull->mover != P3_MOVE_BULK)
		return;
	p3_release(&pull->peer->mine->bulk_read, any ? pull->done : 0);
	p3_wake_kick(n, pull->peer);
	/* pause: time for the owner to act wrongly */
	sleep_ms(20);
}

/* Stop the firmware until the others have done their exchange. */
static void read_and_stop(ptl_handle_eq_t eq)
{
	struct p3_nic *n = p3_nic(p3_node());
	sync_nodes(); /* before, since meeting a peer needs the lease in here */
	nic_hold(n);
	gate_wait(stopped);
	while (!has_read_some(n))
		(void)p3_pass_run(n);
	say_read(n, false);
	gate_wait(begun);
	gate_wait(swapped);
	say_read(n, false);
	say_read(n, true);
	p3_lease_leave(n);
	(void)expect(eq, PTL_EVENT_PUT_END);
}

struct swaps {
	ptl_handle_ni_t ni;
	ptl_handle_eq_t eq;
	ptl_handle_md_t get, out;
	unsigned char *got;
};

static struct swaps make_swaps(ptl_handle_ni_t ni, unsigned with)
{
	struct swaps s = {.ni = ni, .eq = eq_new(ni, 8), .got = node_alloc(8)};
	unsigned char *put = node_alloc(8);
	fill_pattern(put, 8, with);
	s.get = bind_md(ni, source_md(s.got, 8, s.eq));
	s.out = bind_md(ni, md_of(put, 8, MD_QUIET, PTL_EQ_NONE));
	return s;
}

/* Exchange eight bytes of node 0. */
static void swap_at(const struct swaps *s, size_t at)
{
	CHECK_OK(PtlGetPut(s->get, s->out, id_of(s->ni, 0), PT_SWAP, 0, 0, at, 0));
	(void)expect(s->eq, PTL_EVENT_REPLY_END);
}

/* Exchange bytes that were read, bytes that were not, and half of each. */
static void swap_meanwhile(ptl_handle_ni_t ni)
{
	struct swaps s = make_swaps(ni, OLD);
	sync_nodes();
	gate_wait(stopped);
	gate_wait(begun);
	size_t at[] = {p3_get(&border) - 4, 0, HUGE / 2};
	for (int i = 0; i < 3; i++) {
		swap_at(&s, at[i]);
		CHECK_PATTERN(s.got, at[i], 8, NEW);
	}
	gate_wait(swapped);
}

static void send_to_reader(ptl_handle_ni_t ni, unsigned char *bytes)
{
	ptl_handle_eq_t eq = eq_new(ni, 8);
	post_md(ni, PT_SWAP, 0, md_of(bytes, HUGE, MD_ANY | MD_QUIET, PTL_EQ_NONE));
	sync_nodes();
	gate_wait(stopped);
	CHECK_OK(put_to(
		ni, bind_md(ni, source_md(bytes, HUGE, eq)), 1, PT, 0, PTL_ACK_REQ));
	gate_wait(begun);
	gate_wait(swapped); /* its NIC's thread does the exchange */
	(void)expect(eq, PTL_EVENT_SEND_END);
	(void)expect(eq, PTL_EVENT_ACK);
}

/* Return true if all bytes of the exchange came before the put read them, or none. */
static bool is_whole(const unsigned char *bytes, size_t at)
{
	unsigned olds = 0, news = 0;
	for (size_t i = 0; i < 8; i++) {
		olds += bytes[at + i] == pattern(OLD, i);
		news += bytes[at + i] == pattern(NEW, at + i);
	}
	return olds == 8 || news == 8;
}

static void fill_from(unsigned char *at, size_t from, unsigned seed)
{
	for (size_t i = 0; i < 8; i++)
		at[i] = pattern(seed, from + i);
}

/* An exchange does not wait for the reader, and the put does not carry half of the
 * exchange. */
static void swap_and_stop(unsigned rank, ptl_handle_ni_t ni)
{
	unsigned char *bytes = node_pattern(HUGE, rank ? 0 : NEW);
	ptl_handle_eq_t eq = eq_new(ni, 8);
	ptl_md_t md = sink_md(bytes, HUGE, eq);
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
	size_t mid = p3_get(&border) - 4;
	CHECK(is_whole(bytes, 0));
	CHECK_PATTERN(bytes + mid, 0, 8, OLD);
	CHECK_PATTERN(bytes + HUGE / 2, 0, 8, OLD);
	fill_from(bytes + mid, mid, NEW); /* all other bytes are as they were sent */
	fill_from(bytes + HUGE / 2, HUGE / 2, NEW);
	CHECK_PATTERN(bytes + 8, 8, HUGE - 8, NEW);
}

static void stopped_reader(NODE_ARGS)
{
	swap_and_stop(rank, ni);
}

CASE(exchange_does_not_wait_for_a_stopped_reader)
{
	stops_before_it_says = false;
	run_nodes(3, stopped_reader, NULL);
}

/* The reader tells that it has read bytes only when an exchange has replaced them: the
 * owner must not take that for the new bytes. */
CASE(late_word_of_a_stopped_reader_does_not_count)
{
	stops_before_it_says = true;
	run_nodes(3, stopped_reader, NULL);
}

/* ---- four stopped readers, and a running one ---- */

enum { STOPPED = 4, READERS = STOPPED + 1 };

static p3_a32 reading, over, held, come;

static void run_without_cma(unsigned n, nodes_fn *fn)
{
	p3_set(&reading, 0);
	p3_set(&over, 0);
	p3_set(&held, 0);
	p3_set(&come, 0);
	run_nodes_with("PTL3_MOVER", "window", n, fn);
}

static void await(const p3_a32 *word, unsigned least)
{
	struct patience p = patience_begin();
	while (p3_get(word) < least) {
		CHECK(!patience_is_over(&p));
		sleep_ms(1);
	}
}

static void stop_in_window(ptl_handle_eq_t eq)
{
	struct p3_nic *n = p3_nic(p3_node());
	nic_hold(n);
	sync_nodes();
	while (!has_read_some(n))
		(void)p3_pass_run(n);
	(void)p3_add32(&reading, 1);
	await(&over, 1);
	p3_lease_leave(n);
	(void)expect(eq, PTL_EVENT_PUT_END);
}

static void read_after_others(ptl_handle_ni_t ni, ptl_handle_eq_t eq)
{
	sync_nodes();
	await(&reading, STOPPED);
	CHECK_OK(put_to(ni, bind_md(ni, md_of(NULL, 0, MD_QUIET, PTL_EQ_NONE)), 0, PT, 7,
		PTL_NO_ACK_REQ));
	(void)expect(eq, PTL_EVENT_PUT_END);
	p3_set(&over, 1);
}

static void send_to_readers(ptl_handle_ni_t ni, unsigned char *bytes)
{
	ptl_handle_eq_t eq = eq_new(ni, 64), go = eq_new(ni, 8);
	ptl_md_t d = source_md(bytes, HUGE, eq);
	ptl_handle_md_t md = bind_md(ni, d);
	post_md(ni, PT, 7, sink_md(NULL, 0, go));
	sync_nodes();
	for (unsigned r = 1; r <= STOPPED; r++)
		CHECK_OK(put_to(ni, md, r, PT, 0, PTL_NO_ACK_REQ));
	(void)expect(go, PTL_EVENT_PUT_END);
	CHECK_OK(put_to(ni, md, READERS, PT, 0, PTL_NO_ACK_REQ));
	for (unsigned r = 1; r <= READERS; r++)
		(void)expect(eq, PTL_EVENT_SEND_END);
}

static void windows_node(NODE_ARGS)
{
	unsigned char *bytes = node_pattern(HUGE, rank ? 0 : NEW);
	ptl_handle_eq_t eq = eq_new(ni, 8);
	if (rank)
		post_md(ni, PT, 0, sink_md(bytes, HUGE, eq));
	sync_nodes();
	if (rank == 0)
		send_to_readers(ni, bytes);
	else if (rank <= STOPPED)
		stop_in_window(eq);
	else
		read_after_others(ni, eq);
	sync_nodes();
	CHECK_PATTERN(bytes, 0, HUGE, NEW);
}

/* Four stopped readers keep one of the source's windows each; a fifth must get one. */
CASE(stopped_readers_leave_a_window_to_others)
{
	run_without_cma(1 + READERS, windows_node);
}

/* ---- a source that has begun, and stops ---- */

enum { EXCHANGES = 3 };

static void send_and_stop(ptl_handle_ni_t ni, unsigned char *bytes)
{
	struct p3_nic *n = p3_nic(p3_node());
	ptl_handle_eq_t eq = eq_new(ni, 8);
	ptl_md_t d = source_md(bytes, HUGE, eq);
	ptl_handle_md_t md = bind_md(ni, d);
	sync_nodes();
	CHECK_OK(put_to(ni, md, 0, PT, 0, PTL_NO_ACK_REQ));
	nic_hold(n);
	p3_set(&held, 1);
	while (!p3_get(&come))
		(void)p3_pass_run(n);
	(void)p3_add32(&reading, 1);
	await(&over, 1);
	p3_lease_leave(n);
	(void)expect(eq, PTL_EVENT_SEND_END);
}

/* Make a pass.  Return the number of bytes that have come. */
static size_t pass_and_look(struct p3_nic *n)
{
	(void)p3_pass_run(n);
	if (p3_list_empty(&n->pulls))
		return 0;
	return p3_item(n->pulls.next, struct p3_pull, link)->done;
}

/* Hold the NIC until the first bytes have come, and the source has stopped. */
static void read_first(struct p3_nic *n)
{
	nic_hold(n);
	while (!pass_and_look(n))
		;
	p3_set(&come, 1);
	await(&reading, 1);
	p3_lease_leave(n);
}

/* Return true if the pull knows that it gets no bytes: exchanges do not wait for it then
 * (nic/xfer/getput.c). */
static bool is_stalled(struct p3_nic *n)
{
	nic_hold(n);
	bool is = p3_item(n->pulls.next, struct p3_pull, link)->moved_ns != 0;
	p3_lease_leave(n);
	return is;
}

/* Make passes until the target's pull gets no more bytes, since the source has stopped.
 * Return the number of bytes that have come. */
static size_t read_what_comes(void)
{
	struct p3_nic *n = p3_nic(p3_node());
	size_t at = 0, was = 0;
	read_first(n);
	for (unsigned still = 0; still < 20;) {
		nic_hold(n);
		at = pass_and_look(n);
		p3_lease_leave(n);
		still = at && at == was ? still + 1 : 0;
		was = at;
		/* pause: between two looks at the place */
		sleep_ms(1);
	}
	CHECK(at < HUGE);
	CHECK(is_stalled(n));
	return at;
}

/* Return the place of each of the three exchanges. */
static size_t place_of_swap(unsigned i)
{
	const size_t mid = p3_get(&border);
	return i == 0 ? mid - 4 : i == 1 ? 0 : HUGE / 2;
}

static void swap_at_target(ptl_handle_ni_t ni)
{
	struct swaps s = make_swaps(ni, 3);
	sync_nodes();
	await(&reading, 2);
	for (unsigned i = 0; i < EXCHANGES; i++) {
		swap_at(&s, place_of_swap(i));
		CHECK_PATTERN(s.got, place_of_swap(i), 8, i == 1 ? NEW : OLD);
	}
	p3_set(&over, 1);
}

/* Read nothing before the source holds its NIC: else the source's NIC thread could serve
 * the whole transfer before. */
static void receive(ptl_handle_eq_t eq, const unsigned char *bytes)
{
	nic_hold(p3_nic(p3_node()));
	sync_nodes();
	await(&held, 1);
	p3_lease_leave(p3_nic(p3_node()));
	p3_set(&border, read_what_comes());
	(void)p3_add32(&reading, 1);
	(void)expect(eq, PTL_EVENT_PUT_END);
	CHECK_PATTERN(bytes, 0, 8, 3); /* behind the put */
	CHECK_PATTERN(bytes + 8, 8, HUGE - 8, NEW);
}

static void stopped_source(NODE_ARGS)
{
	unsigned char *bytes = node_pattern(HUGE, rank ? NEW : OLD);
	ptl_handle_eq_t eq = eq_new(ni, 8);
	if (rank == 0) {
		post_md(ni, PT, 0, sink_md(bytes, HUGE, eq));
		post_md(ni, PT_SWAP, 0,
			md_of(bytes, HUGE, MD_ANY | MD_QUIET, PTL_EQ_NONE));
	}
	sync_nodes();
	if (rank == 0)
		receive(eq, bytes);
	else if (rank == 1)
		send_and_stop(ni, bytes);
	else
		swap_at_target(ni);
	sync_nodes();
}

/* Half of the put is there: each exchange has all its bytes before the put or behind
 * it. */
CASE(exchange_does_not_wait_for_a_stopped_source)
{
	run_without_cma(3, stopped_source);
}

/* ---- a peer that lies ---- */

/* The peer claims that it reads, and that its firmware moves, and does neither. */
static void lie(void)
{
	struct p3_nic *n = p3_nic(p3_node());
	nic_hold(n);
	p3_set(&n->peer[0].mine->reading, 1);
	sync_nodes();
	while (!p3_get(&over)) {
		p3_count(&n->count[P3_C_PASSES], 1);
		sched_yield();
	}
	p3_release(&n->peer[0].mine->reading, 0);
	p3_lease_leave(n);
}

static void send_to_liar(ptl_handle_ni_t ni, unsigned char *bytes)
{
	ptl_handle_eq_t eq = eq_new(ni, 8);
	ptl_md_t d = source_md(bytes, HUGE, eq);
	post_md(ni, PT_SWAP, 0, md_of(bytes, HUGE, MD_ANY | MD_QUIET, PTL_EQ_NONE));
	sync_nodes();
	CHECK_OK(put_to(ni, bind_md(ni, d), 1, PT, 0, PTL_NO_ACK_REQ));
	(void)p3_add32(&reading, 1);
	(void)expect(eq, PTL_EVENT_SEND_END);
}

static void swap_beside_liar(ptl_handle_ni_t ni)
{
	struct swaps s = make_swaps(ni, OLD);
	sync_nodes();
	await(&reading, 1);
	for (unsigned i = 0; i < EXCHANGES; i++) {
		swap_at(&s, 8 * i);
		CHECK_PATTERN(s.got, 8 * i, 8, NEW);
	}
	p3_set(&over, 1);
}

static void liar(NODE_ARGS)
{
	unsigned char *bytes = node_pattern(HUGE, rank ? 0 : NEW);
	if (rank == 1)
		post_md(ni, PT, 0, md_of(bytes, HUGE, MD_ANY | MD_QUIET, PTL_EQ_NONE));
	sync_nodes();
	if (rank == 0)
		send_to_liar(ni, bytes);
	else if (rank == 1)
		lie();
	else
		swap_beside_liar(ni);
	sync_nodes();
}

CASE(exchange_does_not_wait_for_a_liar)
{
	run_without_cma(3, liar);
	print_message("# tried: %d exchanges\n", EXCHANGES);
}

int main(void)
{
	make_gates();
	return cases_run();
}
