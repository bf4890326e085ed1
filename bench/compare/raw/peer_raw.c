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
#include "../../cpus.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

enum { CELLS = 1024, CREDIT = PEER_WINDOW, CHUNK = 32 << 10, CHUNKS = 8 };

struct cell {
	_Alignas(64) uint64_t data[7];
	_Atomic uint64_t valid;
};

/* The shared memory; each pair of lines, and all cells, have one writer. */
static struct shared {
	_Alignas(128) _Atomic uint64_t ping;
	_Alignas(128) _Atomic uint64_t pong;
	/* the second process: 1 at its start; 2 when done */
	_Alignas(128) _Atomic uint64_t ready;
	_Alignas(128) struct cell cell[CELLS];
	_Alignas(4096) char window[CHUNKS * CHUNK];
} * shared;

static char *from, *to; /* private to each process */

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

/* ---- rounds: side 0 is the parent and keeps the time; done counts earlier rounds
 * ---- */

typedef void rounds_fn(int side, uint64_t bytes, uint64_t done, uint64_t count);

static void line(int side, uint64_t bytes, uint64_t done, uint64_t count)
{
	(void)bytes;
	for (uint64_t i = done + 1; i <= done + count; i++) {
		if (side)
			await(&shared->ping, i);
		publish(side ? &shared->pong : &shared->ping, i);
		if (!side)
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

/* Rounds are windows of 64; the sender waits until the last message of one has been
 * taken. */
static void ring(int side, uint64_t bytes, uint64_t done, uint64_t count)
{
	(void)bytes;
	for (uint64_t i = done * PEER_WINDOW; i < (done + count) * PEER_WINDOW; i++)
		if (side)
			ring_take(i);
		else
			ring_send(i);
	if (!side)
		await(&shared->pong, (done + count) * PEER_WINDOW);
}

static void pipe_chunk(int side, uint64_t k, uint64_t at, uint64_t bytes)
{
	char *window = shared->window + k % CHUNKS * CHUNK;
	if (side) {
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

static void pipe_message(int side, uint64_t bytes, uint64_t message)
{
	uint64_t chunks = (bytes + CHUNK - 1) / CHUNK;
	if (!side)
		peer_stamp(from, bytes, message);
	for (uint64_t c = 0; c < chunks; c++) {
		uint64_t left = bytes - c * CHUNK;
		pipe_chunk(side, message * chunks + c, c * CHUNK,
			left < CHUNK ? left : CHUNK);
	}
	if (side)
		peer_check(to, bytes, message);
}

static void pipe_rounds(int side, uint64_t bytes, uint64_t done, uint64_t count)
{
	for (uint64_t i = done * PEER_WINDOW; i < (done + count) * PEER_WINDOW; i++)
		pipe_message(side, bytes, i);
	uint64_t chunks = (bytes + CHUNK - 1) / CHUNK;
	if (!side)
		await(&shared->pong, (done + count) * PEER_WINDOW * chunks);
}

/* Copy; side 1 only lends its memory. */
static void copy(int side, uint64_t bytes, uint64_t done, uint64_t count)
{
	for (uint64_t i = done; i < done + count && !side; i++) {
		peer_stamp(from, bytes, i);
		memcpy(to, from, bytes);
		__asm__ volatile("" : : "r"(to) : "memory");
		peer_check(to, bytes, i);
	}
}

static pid_t child;
static char *child_from; /* the same address as in the parent: the child is a copy of
			  * it */

static void cma(int side, uint64_t bytes, uint64_t done, uint64_t count)
{
	(void)done;
	struct iovec local = {to, bytes}, remote = {child_from, bytes};
	for (uint64_t i = 0; i < count && !side; i++) {
		ssize_t n = process_vm_readv(child, &local, 1, &remote, 1, 0);
		if (n != (ssize_t)bytes)
			peer_die("process_vm_readv: %s; expected %llu bytes; is ptrace "
				 "of children allowed?",
				n < 0 ? strerror(errno) : "short",
				(unsigned long long)bytes);
	}
	if (!side && count)
		peer_check(to, bytes, 0);
}

/* ---- */

static void become_child(pid_t parent, rounds_fn *fn, uint64_t bytes, uint64_t rounds)
{
	peer_expect_children(false);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	peer_pin(1);
	memset(from, 0, bytes); /* gives the process its own pages */
	memset(to, 0, bytes);
	publish(&shared->ready, 1);
	fn(1, bytes, 0, rounds);
	publish(&shared->ready, 2);
	for (;;)
		pause();
}

static double timed(rounds_fn *fn, uint64_t bytes, const struct peer_plan *p)
{
	double ns[PEER_BATCHES];
	fn(0, bytes, 0, p->warm);
	for (uint64_t b = 0; b < p->batches; b++) {
		double t = peer_now_ns();
		fn(0, bytes, p->warm + b * p->each, p->each);
		ns[b] = (peer_now_ns() - t) / (double)p->each;
	}
	return peer_median(ns, p->batches);
}

/* End the child; its checks count, too. */
static void end_child(void)
{
	await(&shared->ready, 2);
	peer_expect_children(false);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* ns of a round */
static double measure(rounds_fn *fn, bool windows, uint64_t bytes, bool quick)
{
	struct peer_plan p = peer_plan_of(quick, windows, bytes);
	pid_t parent = getpid();
	fflush(stdout);
	memset(shared, 0, sizeof *shared);
	child_from = from;
	peer_expect_children(true);
	child = fork();
	if (child < 0)
		peer_die("fork: %s", strerror(errno));
	if (!child)
		become_child(parent, fn, bytes, p.warm + p.batches * p.each);
	await(&shared->ready, 1);
	double ns = timed(fn, bytes, &p);
	end_child();
	return ns;
}

static void run_latency(uint64_t x, bool quick)
{
	peer_print("raw_cma", "latency", x, measure(cma, false, x, quick));
	if (x == PEER_WORD)
		peer_print("raw_line", "latency", x, measure(line, false, x, quick) / 2);
}

static void run_stream(uint64_t x, bool quick)
{
	double bytes = (double)x * 1e3;
	peer_print("raw_pipe", "stream", x,
		bytes * PEER_WINDOW / measure(pipe_rounds, true, x, quick));
	peer_print("raw_memcpy", "stream", x, bytes / measure(copy, false, x, quick));
	peer_print("raw_cma", "stream", x, bytes / measure(cma, false, x, quick));
}

static void run_rate(uint64_t x, bool quick)
{
	peer_print(
		"raw_ring", "rate", x, PEER_WINDOW * 1e3 / measure(ring, true, x, quick));
}

static void run(const char *test, uint64_t x, bool quick)
{
	from = peer_allocate(x + 64);
	to = peer_allocate(x + 64);
	if (!strcmp(test, "latency"))
		run_latency(x, quick);
	else if (!strcmp(test, "stream"))
		run_stream(x, quick);
	else if (!strcmp(test, "rate"))
		run_rate(x, quick);
	else if (!strcmp(test, "ack") || !strcmp(test, "get"))
		peer_print("raw_line", test, x, measure(line, false, x, quick));
	free(from);
	free(to);
}

int main(int argc, char **argv)
{
	peer_program = "peer_raw";
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		peer_die("no shared memory: %s", strerror(errno));
	struct cpus cpus;
	if (cpus_read(&cpus) && cpus_count(&cpus) < 2)
		fprintf(stderr, "peer_raw: 1 CPU; expected 2; figures are the "
				"scheduler's\n");
	peer_pin(0);
	peer_each(argc, argv, run);
	return 0;
}
