/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer_raw - the machine's limits: two processes on two CPUs, no library
 *
 *	peer_raw quick|full test=list ...
 *
 *	latency		raw_line	a cache line handed over and back
 *			raw_cma		process_vm_readv of x bytes
 *	ack, get	raw_line	the same, the way there and back
 *	rate		raw_ring	cache lines handed over one behind the other
 *	stream		raw_pipe	through a shared window of 8 * 32 KiB, both sides
 *					at once
 *			raw_memcpy	copied by one CPU, within a process
 *			raw_cma		process_vm_readv
 */
#include "../peer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

enum { CELLS = 1024, CREDIT = PEER_WINDOW, CHUNK = 32 << 10, CHUNKS = 8 };

struct cell {
	_Alignas(64) uint64_t data[7];
	_Atomic uint64_t valid;
};

/* The shared memory; each pair of lines, and all cells, have one writer. */
static struct shared {
	struct hand hand;
	_Alignas(128) struct cell cell[CELLS];
	_Alignas(4096) char window[CHUNKS * CHUNK];
} * shared;

static char *from, *to; /* private to each process, at the same addresses */

/* ---- rounds ---- */

static void line(uint64_t bytes, uint64_t done, uint64_t count)
{
	(void)bytes;
	hand_over(&shared->hand, !peer_rank, done, count, false);
}

/* Rounds are windows of 64; the sender waits until the last message of a batch has been
 * taken. */
static void ring(uint64_t bytes, uint64_t done, uint64_t count)
{
	_Atomic uint64_t *taken = &shared->hand.pong;
	uint64_t end = (done + count) * PEER_WINDOW;
	(void)bytes;
	for (uint64_t i = done * PEER_WINDOW; i < end; i++) {
		struct cell *c = &shared->cell[i % CELLS];
		if (!peer_rank) {
			if (i >= CELLS)
				hand_await(taken, (i - CELLS) / CREDIT * CREDIT + CREDIT,
					false);
			c->data[0] = i;
			hand_publish(&c->valid, i + 1);
			continue;
		}
		hand_await(&c->valid, i + 1, false);
		if (c->data[0] != i)
			peer_die("cell %" PRIu64 ": wrong bytes; expected what was sent",
				i);
		if ((i + 1) % CREDIT == 0)
			hand_publish(taken, i + 1);
	}
	if (!peer_rank)
		hand_await(taken, end, false);
}

static void pipe_chunk(uint64_t k, uint64_t at, uint64_t bytes)
{
	char *window = shared->window + k % CHUNKS * CHUNK;
	if (peer_rank) {
		hand_await(&shared->hand.ping, k + 1, false);
		memcpy(to + at, window, bytes);
		hand_publish(&shared->hand.pong, k + 1);
		return;
	}
	if (k >= CHUNKS)
		hand_await(&shared->hand.pong, k + 1 - CHUNKS, false);
	memcpy(window, from + at, bytes);
	hand_publish(&shared->hand.ping, k + 1);
}

static void pipe_rounds(uint64_t bytes, uint64_t done, uint64_t count)
{
	uint64_t chunks = (bytes + CHUNK - 1) / CHUNK, end = (done + count) * PEER_WINDOW;
	for (uint64_t i = done * PEER_WINDOW; i < end; i++) {
		if (!peer_rank)
			peer_stamp(from, bytes, i);
		for (uint64_t c = 0; c < chunks; c++) {
			uint64_t left = bytes - c * CHUNK;
			pipe_chunk(
				i * chunks + c, c * CHUNK, left < CHUNK ? left : CHUNK);
		}
		if (peer_rank)
			peer_check(to, bytes, i);
	}
	if (!peer_rank)
		hand_await(&shared->hand.pong, end * chunks, false);
}

/* Copy; rank 1 only lends its memory. */
static void copy(uint64_t bytes, uint64_t done, uint64_t count)
{
	for (uint64_t i = done; i < done + count && !peer_rank; i++) {
		peer_stamp(from, bytes, i);
		memcpy(to, from, bytes);
		__asm__ volatile("" : : "r"(to) : "memory");
		peer_check(to, bytes, i);
	}
}

static void cma(uint64_t bytes, uint64_t done, uint64_t count)
{
	(void)done;
	struct iovec local = {to, bytes}, remote = {from, bytes};
	for (uint64_t i = 0; i < count && !peer_rank; i++) {
		ssize_t n = process_vm_readv(peer_child[1], &local, 1, &remote, 1, 0);
		if (n != (ssize_t)bytes)
			peer_die("process_vm_readv: %s; expected %" PRIu64
				 " bytes; is ptrace of children allowed?",
				n < 0 ? strerror(errno) : "short", bytes);
	}
	if (!peer_rank && count)
		peer_check(to, bytes, 0);
}

static void before(uint64_t bytes)
{
	memset(shared, 0, sizeof *shared);
	from = peer_allocate(bytes + 64);
	to = peer_allocate(bytes + 64);
}

/* Give the second process its own pages. */
static void touch(uint64_t bytes)
{
	if (!peer_rank)
		return;
	memset(from, 0, bytes);
	memset(to, 0, bytes);
}

static void after(void)
{
	free(from);
	free(to);
}

static const struct peer_test tests[] = {
	{"latency", "raw_cma", 0, PEER_ANY, 1, cma, .open = touch},
	{"latency", "raw_line", PEER_WORD, PEER_WORD, 2, line, .open = touch},
	{"stream", "raw_pipe", 0, PEER_ANY, PEER_WINDOW, pipe_rounds, .open = touch},
	{"stream", "raw_memcpy", 0, PEER_ANY, 1, copy, .open = touch},
	{"stream", "raw_cma", 0, PEER_ANY, 1, cma, .open = touch},
	{"rate", "raw_ring", 0, PEER_ANY, PEER_WINDOW, ring, .open = touch},
	{"ack", "raw_line", 0, PEER_ANY, 1, line, .open = touch},
	{"get", "raw_line", 0, PEER_ANY, 1, line, .open = touch},
	{0},
};

int main(int argc, char **argv)
{
	static const struct peer peer = {.tests = tests,
		.forks = true,
		.partial = true,
		.before = before,
		.after = after};
	peer_program = "peer_raw";
	shared = peer_share(sizeof *shared);
	if (peer_cpus() < 2)
		fprintf(stderr, "peer_raw: 1 CPU; expected 2; figures are the "
				"scheduler's\n");
	peer_run(&peer, argc, argv);
	return 0;
}
