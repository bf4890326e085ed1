/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer_raw - the machine's limits, and the cost of a put that consists of its path only:
 * processes that share memory, no library
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
 *	and others	raw_sketch	the bare design, see below
 */
#include "../am.h"
#include "../peer.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- limits of the machine ---- */

enum { SLOTS = 1024, CREDIT = PEER_WINDOW, CHUNK = 32 << 10, CHUNKS = 8 };

struct slot {
	_Alignas(64) uint64_t data[7];
	_Atomic uint64_t valid;
};

/* The shared memory; each pair of lines, and all slots, have one writer. */
static struct shared {
	struct hand hand;
	_Alignas(128) struct slot slot[SLOTS];
	_Alignas(4096) char window[CHUNKS * CHUNK];
} * shared;

static char *source, *target; /* private to each process, at the same addresses */

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
		struct slot *c = &shared->slot[i % SLOTS];
		if (!peer_rank) {
			if (i >= SLOTS)
				hand_await(taken, (i - SLOTS) / CREDIT * CREDIT + CREDIT,
					false);
			c->data[0] = i;
			hand_publish(&c->valid, i + 1);
			continue;
		}
		hand_await(&c->valid, i + 1, false);
		if (c->data[0] != i)
			peer_die("slot %" PRIu64 ": wrong bytes; expected what was sent",
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
		memcpy(target + at, window, bytes);
		hand_publish(&shared->hand.pong, k + 1);
		return;
	}
	if (k >= CHUNKS)
		hand_await(&shared->hand.pong, k + 1 - CHUNKS, false);
	memcpy(window, source + at, bytes);
	hand_publish(&shared->hand.ping, k + 1);
}

static void pipe_rounds(uint64_t bytes, uint64_t done, uint64_t count)
{
	uint64_t chunks = (bytes + CHUNK - 1) / CHUNK, end = (done + count) * PEER_WINDOW;
	for (uint64_t i = done * PEER_WINDOW; i < end; i++) {
		if (!peer_rank)
			peer_stamp(source, bytes, i);
		for (uint64_t c = 0; c < chunks; c++) {
			uint64_t left = bytes - c * CHUNK;
			pipe_chunk(
				i * chunks + c, c * CHUNK, left < CHUNK ? left : CHUNK);
		}
		if (peer_rank)
			peer_check(target, bytes, i);
	}
	if (!peer_rank)
		hand_await(&shared->hand.pong, end * chunks, false);
}

/* Copy; rank 1 only lends its memory. */
static void copy(uint64_t bytes, uint64_t done, uint64_t count)
{
	for (uint64_t i = done; i < done + count && !peer_rank; i++) {
		peer_stamp(source, bytes, i);
		memcpy(target, source, bytes);
		__asm__ volatile("" : : "r"(target) : "memory");
		peer_check(target, bytes, i);
	}
}

static void cma(uint64_t bytes, uint64_t done, uint64_t count)
{
	(void)done;
	struct iovec local = {target, bytes}, remote = {source, bytes};
	for (uint64_t i = 0; i < count && !peer_rank; i++) {
		ssize_t n = process_vm_readv(peer_child[1], &local, 1, &remote, 1, 0);
		if (n != (ssize_t)bytes)
			peer_die("process_vm_readv: %s; expected %" PRIu64
				 " bytes; is ptrace of children allowed?",
				n < 0 ? strerror(errno) : "short", bytes);
	}
	if (!peer_rank && count)
		peer_check(target, bytes, 0);
}

/*
 * ---- the bare design ----
 *
 * Messages of 8 bytes lie in the header's cell, those of 64 in a cell of their own.
 *
 * A node is a process with a lane from each other one (cells of a line, valid by their
 * last word, credit given back lazily), a list of two match entries, a ring of event
 * records, and a lease that a put and a wait take.  Lines are prefetched as far ahead
 * as is best for just these patterns.  Where nodes share CPUs, a node that finds
 * nothing yields, and sleeps after long; so a put fences (in the library sleepers do
 * that instead) and looks whether its target sleeps.  There are no handles, no
 * SEND_END, no access control, no counters, and peers are trusted: the remaining cost
 * is the limit of a library of this design.
 */

enum {
	MATCH = 7,
	OTHER = 9,
	EVENTS = 1024,
	WORDS = 12,
	INLINE = 16,
	NODES = PEER_NODES,
	AHEAD = 8,    /* lanes, */
	AHEAD_TX = 2, /* puts, or */
	AHEAD_RX = 4, /* cells for which lines are prefetched ahead of use */
	YIELDS = 1000 /* empty passes before a node sleeps, where they share CPUs */
};

/* The kinds of cells. */
enum { PUT = 1, PUT_FOR_ACK, ACK, GET, REPLY };

/* A cell is valid if this is 1 more than its number, which is free-running. */
struct cell {
	_Alignas(64) uint64_t bits;
	uint64_t hdr_data, offset;
	uint32_t length, kind;
	uint64_t initiator;
	char data[INLINE];
	uint32_t pad;
	_Atomic uint32_t valid;
};

_Static_assert(sizeof(struct cell) == 64, "a cell, a line");

struct lane {
	_Alignas(128) _Atomic uint64_t credit; /* cells taken */
	_Alignas(128) struct cell cell[];
};

struct event {
	_Alignas(128) uint64_t word[WORDS];
	uint64_t pad[3];
	_Atomic uint64_t valid; /* 1 more than the number of the event */
};

struct entry {
	uint64_t bits, ignore;
	int threshold;
	unsigned options;
	char *start;
	uint64_t length;
	struct entry *next;
};

struct link {
	struct lane *in, *out;
	uint64_t rx, tx, credit; /* numbers of cells: taken; written, and the limit of
				  * writing */
};

static struct node {
	_Alignas(4096) _Atomic uint32_t lease;
	uint64_t posted, taken; /* events */
	uint64_t last;          /* hdr_data of the last event */
	uint64_t there[2];      /* messages of even and odd rounds, not waited for yet */
	struct entry entry[2];
	_Alignas(64) char tx[PEER_BYTES];
	char got[PEER_WORD]; /* by the last get */
	struct link link[NODES];
	char rx[2 * NODES * PEER_BYTES]; /* two sets of a message from each node */
	struct event event[EVENTS];
} node;

/* The parameters of this job. */
static unsigned nodes;
static uint64_t cells; /* of a lane, a power of two */
static bool crowded;   /* more nodes than CPUs */

/* The memory that all share; the lanes lie behind it. */
static struct start {
	_Alignas(128) struct {
		_Alignas(64) _Atomic uint32_t asleep;
	} node[NODES];
} * start;

/* Return the i-th peer behind this node. */
static struct link *link_at(unsigned i)
{
	unsigned rank = peer_rank + i;
	while (rank >= nodes)
		rank -= nodes;
	return &node.link[rank];
}

/* ---- lease ---- */

/* Take the lease; there is one thread, so it is always free, but costs the same. */
static void lease_take(void)
{
	uint32_t no_holder = 0;
	if (!atomic_compare_exchange_strong_explicit(&node.lease, &no_holder, 1,
		    memory_order_acquire, memory_order_relaxed))
		peer_die("rank %u: the lease is taken; expected one thread", peer_rank);
}

static void lease_give(void)
{
	atomic_store_explicit(&node.lease, 0, memory_order_release);
}

/* ---- sleep ---- */

static _Atomic uint32_t *asleep_of(unsigned rank)
{
	return &start->node[rank].asleep;
}

/* Wake a node that sleeps.  There is a fence before, here as in sleep_until_woken: one
 * of the two sees the other's store. */
static void wake(unsigned rank)
{
	_Atomic uint32_t *asleep = asleep_of(rank);
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(asleep, memory_order_relaxed) &&
		atomic_exchange_explicit(asleep, 0, memory_order_acq_rel))
		syscall(SYS_futex, asleep, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static bool pass(void);

static void sleep_until_woken(void)
{
	_Atomic uint32_t *asleep = asleep_of(peer_rank);
	atomic_store_explicit(asleep, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	if (pass())
		atomic_store_explicit(asleep, 0, memory_order_relaxed);
	else
		syscall(SYS_futex, asleep, FUTEX_WAIT, 1, NULL, NULL, 0);
}

/* ---- initiator ---- */

static struct cell *cell_of(struct lane *l, uint64_t number)
{
	return &l->cell[number & (cells - 1)];
}

/*
 * Write a header, and the data into it, or into the cell behind it.  There they never
 * look like a valid header: they end with a round's number, so 0 lies where the cell
 * would have its validity word.
 */
static void send_cell(struct link *p, uint32_t kind, const char *tx, unsigned bytes,
	uint64_t hdr_data, uint64_t offset)
{
	while (p->tx + 2 > p->credit) {
		p->credit = cells +
			    atomic_load_explicit(&p->out->credit, memory_order_acquire);
		if (p->tx + 2 > p->credit)
			sched_yield();
	}
	struct cell *c = cell_of(p->out, p->tx);
	if (bytes <= PEER_WORD)
		memcpy(c->data, tx, PEER_WORD);
	else
		memcpy(cell_of(p->out, p->tx + 1), tx, PEER_BYTES);
	c->bits = MATCH;
	c->hdr_data = hdr_data;
	c->offset = offset;
	c->length = bytes;
	c->kind = kind;
	c->initiator = peer_rank;
	atomic_store_explicit(&c->valid, (uint32_t)p->tx + 1, memory_order_release);
	p->tx += bytes <= PEER_WORD ? 1 : 2;
}

/* Begin an operation: a put, or a get. */
static void start_one(struct link *p, uint32_t kind, const char *tx, unsigned bytes,
	uint64_t hdr_data, uint64_t offset)
{
	lease_take();
	send_cell(p, kind, tx, bytes, hdr_data, offset);
	lease_give();
	if (crowded)
		wake((unsigned)(p - node.link));
}

/* ---- target ---- */

static struct entry *match(const struct cell *c)
{
	struct entry *e = node.entry;
	while (e && (((c->bits ^ e->bits) & ~e->ignore) || !e->threshold ||
			    c->offset + c->length > e->length))
		e = e->next;
	return e;
}

static void post_event(const struct cell *c, const struct entry *e)
{
	struct event *v = &node.event[node.posted % EVENTS];
	v->word[0] = c->kind;
	v->word[1] = c->bits;
	v->word[2] = v->word[3] = c->length;
	v->word[4] = c->offset;
	v->word[5] = c->hdr_data;
	v->word[6] = (uint64_t)e->start;
	v->word[7] = e->length;
	v->word[8] = (uint64_t)e->threshold;
	v->word[9] = e->options;
	v->word[10] = c->initiator;
	v->word[11] = node.posted;
	atomic_store_explicit(&v->valid, ++node.posted, memory_order_release);
}

/* Take a message whose bytes go to a match entry, or come from there. */
static void serve(struct link *p, const struct cell *c)
{
	struct entry *e = match(c);
	if (!e)
		peer_die("rank %u: no entry matches; expected one", peer_rank);
	char *at = e->start + c->offset;
	if (c->kind == GET)
		send_cell(p, REPLY, at, c->length, c->hdr_data, c->offset);
	else if (c->length <= PEER_WORD)
		memcpy(at, c->data, PEER_WORD);
	else
		memcpy(at, cell_of(p->in, p->rx + 1), PEER_BYTES);
	if (c->kind == PUT_FOR_ACK)
		send_cell(p, ACK, node.tx, 0, c->hdr_data, c->offset);
	if (e->threshold > 0)
		e->threshold--;
	post_event(c, e);
}

static bool take_message(struct link *p)
{
	struct cell *c = cell_of(p->in, p->rx);
	if (atomic_load_explicit(&c->valid, memory_order_acquire) != (uint32_t)p->rx + 1)
		return false;
	if (nodes == 2)
		__builtin_prefetch(cell_of(p->in, p->rx + AHEAD_RX));
	if (c->kind == REPLY)
		memcpy(node.got, c->data, PEER_WORD);
	if (c->kind == ACK || c->kind == REPLY)
		post_event(c, &node.entry[1]); /* the descriptor is known: no match */
	else
		serve(p, c);
	uint64_t before = p->rx;
	p->rx += c->length <= PEER_WORD ? 1 : 2;
	if ((before ^ p->rx) & (cells / 4))
		atomic_store_explicit(&p->in->credit, p->rx, memory_order_release);
	return true;
}

/* Prefetch lines that the other CPU has, before their turn. */
static void ask(struct lane *l, uint64_t number)
{
	__builtin_prefetch(cell_of(l, number));
	__builtin_prefetch(cell_of(l, number + 1));
}

/* Take a message of each lane. */
static bool pass(void)
{
	bool some = false;
	for (unsigned i = 1; i < nodes; i++) {
		if (nodes > AHEAD) {
			struct link *later = link_at(i + AHEAD);
			ask(later->in, later->rx);
		}
		some |= take_message(link_at(i));
	}
	return some;
}

static bool take_event(void)
{
	uint64_t word[WORDS];
	struct event *v = &node.event[node.taken % EVENTS];
	if (atomic_load_explicit(&v->valid, memory_order_acquire) != node.taken + 1)
		return false;
	/* Word by word: a wide load would wait for the stores. */
	const volatile uint64_t *from = v->word;
	for (unsigned i = 0; i < WORDS; i++)
		word[i] = from[i];
	node.taken++;
	node.last = word[5];
	node.there[node.last & 1]++; /* the round is in hdr_data */
	return true;
}

/* Wait for an event; a node that shares its CPU yields, and sleeps after long. */
static void await_event(void)
{
	static unsigned turn;
	unsigned empty = 0;
	if (take_event())
		return;
	lease_take();
	while (!take_event()) {
		if (pass())
			empty = 0;
		else if (!crowded)
			hand_pause(++turn, false);
		else if (++empty > YIELDS)
			sleep_until_woken();
		else
			sched_yield();
	}
	lease_give();
}

/* ---- rounds ---- */

static uint64_t slot_of(uint64_t round, unsigned sender)
{
	return ((round & 1) * nodes + sender) * PEER_BYTES;
}

static void await_messages(uint64_t round, uint64_t count)
{
	while (node.there[round & 1] < count)
		await_event();
	node.there[round & 1] -= count;
}

static void await_word(uint64_t bytes, uint64_t round)
{
	(void)bytes;
	await_messages(round, 1);
	peer_check(node.rx + slot_of(round, !peer_rank), PEER_WORD, round);
}

static void put_word(uint64_t bytes, uint64_t round)
{
	(void)bytes;
	peer_stamp(node.tx, PEER_WORD, round);
	start_one(&node.link[!peer_rank], PUT, node.tx, PEER_WORD, round,
		slot_of(round, peer_rank));
}

PEER_ROUNDS_OF(ping_pongs, peer_ping_pong, .send = put_word, .take = await_word)

static void await_one(uint64_t round)
{
	await_messages(round, 1);
	if (node.last != round)
		peer_die("event %" PRIu64 "; expected %" PRIu64, node.last, round);
}

/* Put and wait for the ACK; the other node takes the put's event. */
static void put_acked(uint64_t bytes, uint64_t round)
{
	(void)bytes;
	peer_stamp(node.tx, PEER_WORD, round);
	if (peer_rank == 0)
		start_one(&node.link[1], PUT_FOR_ACK, node.tx, PEER_WORD, round, 0);
	await_one(round);
}

/* Get a word that open_node has left, another one in every second round. */
static void get_word(uint64_t bytes, uint64_t round)
{
	uint64_t slot = round & 1;
	(void)bytes;
	if (peer_rank == 0)
		start_one(
			&node.link[1], GET, node.tx, PEER_WORD, round, slot * PEER_BYTES);
	await_one(round);
	if (peer_rank == 0)
		peer_check(node.got, PEER_WORD, slot + 1);
}

/* Look into the queue, which is empty, and into the lanes, as a get of an event does. */
static void look(uint64_t queues, uint64_t round)
{
	(void)queues, (void)round;
	if (take_event())
		peer_die("an event; expected none");
	lease_take();
	pass();
	lease_give();
}

/* Active messages: hdr_data is the round, and the function above it. */
enum { FUNCTION_SHIFT = 32 };

static void am_request(unsigned function, const void *bytes)
{
	uint64_t round;
	memcpy(&round, bytes, sizeof round);
	start_one(&node.link[!peer_rank], PUT, bytes, (unsigned)am.bytes,
		round | (uint64_t)function << FUNCTION_SHIFT, slot_of(round, peer_rank));
}

static void am_poll(void)
{
	uint64_t round = peer_rank ? am.served : am.done;
	await_messages(round, 1);
	am_functions[node.last >> FUNCTION_SHIFT](node.rx + slot_of(round, !peer_rank));
}

static void window(uint64_t bytes, uint64_t round)
{
	for (unsigned i = 0; peer_rank == 0 && i < PEER_WINDOW; i++)
		put_word(bytes, round);
	if (peer_rank == 0) {
		await_word(bytes, round);
		return;
	}
	await_messages(round, PEER_WINDOW - 1);
	await_word(bytes, round);
	put_word(bytes, round);
}

static void all_to_all(uint64_t x, uint64_t round)
{
	(void)x;
	peer_stamp(node.tx, PEER_BYTES, round);
	for (unsigned i = 1; i < nodes; i++) {
		struct link *next = link_at(i + AHEAD_TX);
		ask(next->out, next->tx);
		start_one(link_at(i), PUT, node.tx, PEER_BYTES, round,
			slot_of(round, peer_rank));
	}
	await_messages(round, nodes - 1);
	for (unsigned i = 0; i < nodes; i++)
		if (i != peer_rank)
			peer_check(node.rx + slot_of(round, i), PEER_BYTES, round);
}

PEER_ROUNDS(windows, window)
PEER_ROUNDS(acked_puts, put_acked)
PEER_ROUNDS(gets, get_word)
PEER_ROUNDS(looks, look)
PEER_ROUNDS(all_to_alls, all_to_all)

/* ---- a job ---- */

static size_t lane_bytes(void)
{
	return sizeof(struct lane) + cells * sizeof(struct cell);
}

static struct lane *lane_of(unsigned to, unsigned from)
{
	return (struct lane *)((char *)(start + 1) + (to * nodes + from) * lane_bytes());
}

static void open_node(uint64_t x)
{
	memset(&node, 0, sizeof node);
	for (unsigned i = 0; i < nodes; i++)
		node.link[i] = (struct link){
			lane_of(peer_rank, i), lane_of(i, peer_rank), 0, 0, 0};
	node.entry[0] =
		(struct entry){.bits = OTHER, .threshold = -1, .next = &node.entry[1]};
	node.entry[1] = (struct entry){.bits = MATCH,
		.threshold = -1,
		.start = node.rx,
		.length = sizeof node.rx};
	for (uint64_t slot = 0; slot < 2; slot++)
		peer_stamp(node.rx + slot * PEER_BYTES, PEER_WORD, slot + 1);
	am_open(x);
}

static size_t shared_bytes(void)
{
	return sizeof *start + nodes * nodes * lane_bytes();
}

static void share(unsigned size)
{
	nodes = size;
	cells = size > 2 ? 16 : 1024;
	crowded = size > peer_cpus();
	start = peer_share(shared_bytes());
}

/* Run as many rounds as oversub does, timed as one batch as there. */
static double all(uint64_t size, bool quick)
{
	static const struct peer_test t = {.rounds = all_to_alls, .open = open_node};
	uint64_t rounds = quick ? 20 : bench_all_rounds(size);
	struct peer_plan p = {rounds / 10 + 1, 1, rounds, 0};
	munmap(start, shared_bytes());
	share((unsigned)size);
	return (double)(size * (size - 1)) * 1e3 / peer_job(&t, nodes, size, &p);
}

static void before(uint64_t bytes)
{
	memset(shared, 0, sizeof *shared);
	source = peer_allocate(bytes + 64);
	target = peer_allocate(bytes + 64);
	share(2);
}

/* Give the second process its own pages. */
static void touch(uint64_t bytes)
{
	if (!peer_rank)
		return;
	memset(source, 0, bytes);
	memset(target, 0, bytes);
}

static void after(void)
{
	free(source);
	free(target);
	munmap(start, shared_bytes());
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
	{"latency", "raw_sketch", PEER_WORD, PEER_WORD, 2, ping_pongs, .open = open_node},
	{"rate", "raw_sketch", PEER_WORD, PEER_WORD, PEER_WINDOW, windows,
		.open = open_node},
	{"ack", "raw_sketch", PEER_WORD, PEER_WORD, 1, acked_puts, .open = open_node},
	{"get", "raw_sketch", PEER_WORD, PEER_WORD, 1, gets, .open = open_node},
	{"eqget", "raw_sketch", 1, 1, 1, looks, .open = open_node},
	{"am", "raw_sketch", PEER_WORD, PEER_BYTES, 1, am_rounds, .open = open_node},
	{"alltoall", "raw_sketch", 2, NODES, .run = all},
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
