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
#include <sched.h>
#include <stdatomic.h>
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
	_Alignas(128) _Atomic uint64_t ping;
	_Alignas(128) _Atomic uint64_t pong;
	_Alignas(128) struct cell cell[CELLS];
	_Alignas(4096) char window[CHUNKS * CHUNK];
} * shared;

static char *from, *to; /* private to each process, at the same addresses */

/* Wait for a value.  The yield is for a CPU that another process has taken. */
static inline void await(_Atomic uint64_t *word, uint64_t least)
{
	for (unsigned turn = 1; atomic_load_explicit(word, memory_order_acquire) < least;
		turn++) {
#if defined(__x86_64__) || defined(__i386__)
		__builtin_ia32_pause();
#endif
		if (turn % (1 << 14) == 0)
			sched_yield();
	}
}

static inline void publish(_Atomic uint64_t *word, uint64_t value)
{
	atomic_store_explicit(word, value, memory_order_release);
}

/* ---- rounds ---- */

static void line(uint64_t bytes, uint64_t done, uint64_t count)
{
	(void)bytes;
	for (uint64_t i = done + 1; i <= done + count; i++) {
		if (peer_rank)
			await(&shared->ping, i);
		publish(peer_rank ? &shared->pong : &shared->ping, i);
		if (!peer_rank)
			await(&shared->pong, i);
	}
}

static void ring_send(uint64_t i)
{
	struct cell *c = &shared->cell[i % CELLS];
	if (i >= CELLS)
		await(&shared->pong, (i - CELLS) / CREDIT * CREDIT + CREDIT);
	c->data[0] = i;
	publish(&c->valid, i + 1);
}

static void ring_take(uint64_t i)
{
	struct cell *c = &shared->cell[i % CELLS];
	await(&c->valid, i + 1);
	if (c->data[0] != i)
		peer_die("cell %llu: wrong bytes; expected what was sent",
			(unsigned long long)i);
	if ((i + 1) % CREDIT == 0)
		publish(&shared->pong, i + 1);
}

/* Rounds are windows of 64; the sender waits until the last message of a batch has been
 * taken. */
static void ring(uint64_t bytes, uint64_t done, uint64_t count)
{
	(void)bytes;
	for (uint64_t i = done * PEER_WINDOW; i < (done + count) * PEER_WINDOW; i++)
		if (peer_rank)
			ring_take(i);
		else
			ring_send(i);
	if (!peer_rank)
		await(&shared->pong, (done + count) * PEER_WINDOW);
}

static void pipe_chunk(uint64_t k, uint64_t at, uint64_t bytes)
{
	char *window = shared->window + k % CHUNKS * CHUNK;
	if (peer_rank) {
		await(&shared->ping, k + 1);
		memcpy(to + at, window, bytes);
		publish(&shared->pong, k + 1);
		return;
	}
	if (k >= CHUNKS)
		await(&shared->pong, k + 1 - CHUNKS);
	memcpy(window, from + at, bytes);
	publish(&shared->ping, k + 1);
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
		await(&shared->pong, end * chunks);
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
			peer_die("process_vm_readv: %s; expected %llu bytes; is ptrace "
				 "of children allowed?",
				n < 0 ? strerror(errno) : "short",
				(unsigned long long)bytes);
	}
	if (!peer_rank && count)
		peer_check(to, bytes, 0);
}

/* ---- */

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
	{"latency", cma, 1, 0, PEER_ANY, touch, NULL, "raw_cma", NULL},
	{"latency", line, 2, PEER_WORD, PEER_WORD, touch, NULL, "raw_line", NULL},
	{"stream", pipe_rounds, PEER_WINDOW, 0, PEER_ANY, touch, NULL, "raw_pipe", NULL},
	{"stream", copy, 1, 0, PEER_ANY, touch, NULL, "raw_memcpy", NULL},
	{"stream", cma, 1, 0, PEER_ANY, touch, NULL, "raw_cma", NULL},
	{"rate", ring, PEER_WINDOW, 0, PEER_ANY, touch, NULL, "raw_ring", NULL},
	{"ack", line, 1, 0, PEER_ANY, touch, NULL, "raw_line", NULL},
	{"get", line, 1, 0, PEER_ANY, touch, NULL, "raw_line", NULL},
	{NULL, NULL, 0, 0, 0, NULL, NULL, NULL, NULL},
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
