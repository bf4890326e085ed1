/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer_sketch - the bare design: the cost of a put that consists of its path only
 *
 *	peer_sketch quick|full test=list ...
 *
 *	latency, rate	raw_sketch	8 bytes in the header's cell, two nodes
 *	alltoall	raw_sketch	64 bytes in a cell of their own, x nodes
 *	ack, get	raw_sketch	8 bytes there, or back, and an event at both ends
 *	am		raw_sketch	8 or 64 bytes there and back, by functions that
 *					the messages name
 *	eqget		raw_sketch	a look into an empty queue, with a pass
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
#include "../peer.h"
#include "../../cpus.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	MATCH = 7,
	OTHER = 9,
	EVENTS = 1024,
	WORDS = 12,
	INLINE = 16,
	NODES = 256,
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

struct peer {
	struct lane *in, *out;
	uint64_t rx, tx, credit; /* numbers of cells: taken; written, and the limit of
				  * writing */
};

struct node {
	_Alignas(128) _Atomic uint32_t lease;
	unsigned rank;
	uint64_t posted, taken; /* events */
	uint64_t last;          /* hdr_data of the last event */
	uint64_t there[2];      /* messages of even and odd rounds, not waited for yet */
	struct entry entry[2];
	_Alignas(64) char tx[PEER_BYTES];
	char got[PEER_WORD]; /* by the last get */
	struct peer peer[NODES];
	char rx[2 * NODES * PEER_BYTES]; /* two sets of a message from each node */
	struct event event[EVENTS];
};

/* The parameters of this job. */
static unsigned nodes;
static uint64_t cells; /* of a lane, a power of two */
static bool crowded;   /* more nodes than CPUs */
static unsigned cpus = 1;

/* The memory that all share; the lanes lie behind it. */
static struct start {
	_Alignas(128) _Atomic unsigned ready; /* nodes that have started */
	_Atomic unsigned done;                /* nodes that did all their rounds */
	struct {
		_Alignas(64) _Atomic uint32_t asleep;
	} node[NODES];
} * start;

static pid_t child[NODES];

/* Return the i-th peer behind this node. */
static struct peer *peer_at(struct node *n, unsigned i)
{
	unsigned rank = n->rank + i;
	while (rank >= nodes)
		rank -= nodes;
	return &n->peer[rank];
}

/* ---- lease ---- */

/* Take the lease; there is one thread, so it is always free, but costs the same. */
static void lease_take(struct node *n)
{
	uint32_t no_holder = 0;
	if (!atomic_compare_exchange_strong_explicit(
		    &n->lease, &no_holder, 1, memory_order_acquire, memory_order_relaxed))
		peer_die("rank %u: the lease is taken; expected one thread", n->rank);
}

static void lease_give(struct node *n)
{
	atomic_store_explicit(&n->lease, 0, memory_order_release);
}

static void spin(void)
{
	static unsigned turn;
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#endif
	if (++turn % (1 << 14) == 0)
		sched_yield();
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
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(asleep_of(rank), memory_order_relaxed) ||
		!atomic_exchange_explicit(asleep_of(rank), 0, memory_order_acq_rel))
		return;
	syscall(SYS_futex, asleep_of(rank), FUTEX_WAKE, 1, NULL, NULL, 0);
}

static bool pass(struct node *n);

static void sleep_until_woken(struct node *n)
{
	_Atomic uint32_t *asleep = asleep_of(n->rank);
	atomic_store_explicit(asleep, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	if (pass(n))
		atomic_store_explicit(asleep, 0, memory_order_relaxed);
	else
		syscall(SYS_futex, asleep, FUTEX_WAIT, 1, NULL, NULL, 0);
}

/* ---- initiator ---- */

static struct cell *cell_of(struct lane *l, uint64_t number)
{
	return &l->cell[number & (cells - 1)];
}

static void await_credit(struct peer *p)
{
	while (p->tx + 2 > p->credit) {
		p->credit = cells +
			    atomic_load_explicit(&p->out->credit, memory_order_acquire);
		if (p->tx + 2 > p->credit)
			sched_yield();
	}
}

/*
 * Write the data into the header, or into the cell behind it.  There they never look
 * like a valid header: they end with a round's number, so 0 lies where the cell would
 * have its validity word.  Return the number of cells.
 */
static unsigned write_data(struct peer *p, struct cell *c, const char *tx, unsigned bytes)
{
	if (bytes <= PEER_WORD) {
		memcpy(c->data, tx, PEER_WORD);
		return 1;
	}
	memcpy(cell_of(p->out, p->tx + 1), tx, PEER_BYTES);
	return 2;
}

static void send_cell(struct node *n, struct peer *p, uint32_t kind, const char *tx,
	unsigned bytes, uint64_t hdr_data, uint64_t offset)
{
	await_credit(p);
	struct cell *c = cell_of(p->out, p->tx);
	unsigned used = write_data(p, c, tx, bytes);
	c->bits = MATCH;
	c->hdr_data = hdr_data;
	c->offset = offset;
	c->length = bytes;
	c->kind = kind;
	c->initiator = n->rank;
	atomic_store_explicit(&c->valid, (uint32_t)p->tx + 1, memory_order_release);
	p->tx += used;
}

/* Begin an operation: a put, or a get. */
static void start_one(struct node *n, struct peer *p, uint32_t kind, unsigned bytes,
	uint64_t hdr_data, uint64_t offset)
{
	lease_take(n);
	send_cell(n, p, kind, n->tx, bytes, hdr_data, offset);
	lease_give(n);
	if (crowded)
		wake((unsigned)(p - n->peer));
}

static void put(struct node *n, struct peer *p, unsigned bytes, uint64_t hdr_data,
	uint64_t offset)
{
	start_one(n, p, PUT, bytes, hdr_data, offset);
}

/* ---- target ---- */

static struct entry *match(struct node *n, const struct cell *c)
{
	struct entry *e = n->entry;
	while (e && (((c->bits ^ e->bits) & ~e->ignore) || !e->threshold ||
			    c->offset + c->length > e->length))
		e = e->next;
	return e;
}

static void post_event(struct node *n, const struct cell *c, const struct entry *e)
{
	struct event *v = &n->event[n->posted % EVENTS];
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
	v->word[11] = n->posted;
	atomic_store_explicit(&v->valid, ++n->posted, memory_order_release);
}

/* Take a message whose bytes go to a match entry, or come from there. */
static void serve(struct node *n, struct peer *p, const struct cell *c)
{
	struct entry *e = match(n, c);
	if (!e)
		peer_die("rank %u: no entry matches; expected one", n->rank);
	char *at = e->start + c->offset;
	if (c->kind == GET)
		send_cell(n, p, REPLY, at, c->length, c->hdr_data, c->offset);
	else if (c->length <= PEER_WORD)
		memcpy(at, c->data, PEER_WORD);
	else
		memcpy(at, cell_of(p->in, p->rx + 1), PEER_BYTES);
	if (c->kind == PUT_FOR_ACK)
		send_cell(n, p, ACK, n->tx, 0, c->hdr_data, c->offset);
	if (e->threshold > 0)
		e->threshold--;
	post_event(n, c, e);
}

static void deliver(struct node *n, struct peer *p, const struct cell *c)
{
	if (c->kind != ACK && c->kind != REPLY) {
		serve(n, p, c);
		return;
	}
	if (c->kind == REPLY)
		memcpy(n->got, c->data, PEER_WORD);
	post_event(n, c, &n->entry[1]); /* the descriptor is known: no match */
}

static bool take_message(struct node *n, struct peer *p)
{
	struct cell *c = cell_of(p->in, p->rx);
	if (atomic_load_explicit(&c->valid, memory_order_acquire) != (uint32_t)p->rx + 1)
		return false;
	if (nodes == 2)
		__builtin_prefetch(cell_of(p->in, p->rx + AHEAD_RX));
	deliver(n, p, c);
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
static bool pass(struct node *n)
{
	bool some = false;
	for (unsigned i = 1; i < nodes; i++) {
		if (nodes > AHEAD) {
			struct peer *later = peer_at(n, i + AHEAD);
			ask(later->in, later->rx);
		}
		some |= take_message(n, peer_at(n, i));
	}
	return some;
}

static bool take_event(struct node *n)
{
	uint64_t word[WORDS];
	struct event *v = &n->event[n->taken % EVENTS];
	if (atomic_load_explicit(&v->valid, memory_order_acquire) != n->taken + 1)
		return false;
	/* Word by word: a wide load would wait for the stores. */
	const volatile uint64_t *from = v->word;
	for (unsigned i = 0; i < WORDS; i++)
		word[i] = from[i];
	n->taken++;
	n->last = word[5];
	n->there[n->last & 1]++; /* the round is in hdr_data */
	return true;
}

/* Wait for an event; a node that shares its CPU yields, and sleeps after long. */
static void await_event(struct node *n)
{
	unsigned empty = 0;
	if (take_event(n))
		return;
	lease_take(n);
	while (!take_event(n)) {
		if (pass(n))
			empty = 0;
		else if (!crowded)
			spin();
		else if (++empty > YIELDS)
			sleep_until_woken(n);
		else
			sched_yield();
	}
	lease_give(n);
}

/* ---- rounds ---- */

typedef void round_fn(struct node *n, uint64_t round);

static uint64_t slot_of(uint64_t round, unsigned sender)
{
	return ((round & 1) * nodes + sender) * PEER_BYTES;
}

static void await_messages(struct node *n, uint64_t round, uint64_t count)
{
	while (n->there[round & 1] < count)
		await_event(n);
	n->there[round & 1] -= count;
}

static void await_word(struct node *n, uint64_t round)
{
	await_messages(n, round, 1);
	peer_check(n->rx + slot_of(round, !n->rank), PEER_WORD, round);
}

static void put_word(struct node *n, uint64_t round)
{
	peer_stamp(n->tx, PEER_WORD, round);
	put(n, &n->peer[!n->rank], PEER_WORD, round, slot_of(round, n->rank));
}

static void ping_pong(struct node *n, uint64_t round)
{
	if (n->rank == 0)
		put_word(n, round);
	await_word(n, round);
	if (n->rank == 1)
		put_word(n, round);
}

static void await_one(struct node *n, uint64_t round)
{
	await_messages(n, round, 1);
	if (n->last != round)
		peer_die("event %llu; expected %llu", (unsigned long long)n->last,
			(unsigned long long)round);
}

/* Put and wait for the ACK; the other node takes the put's event. */
static void put_acked(struct node *n, uint64_t round)
{
	peer_stamp(n->tx, PEER_WORD, round);
	if (n->rank == 0)
		start_one(n, &n->peer[1], PUT_FOR_ACK, PEER_WORD, round, 0);
	await_one(n, round);
}

/* Get a word that make_node has left, another one in every second round. */
static void get_word(struct node *n, uint64_t round)
{
	uint64_t slot = round & 1;
	if (n->rank == 0)
		start_one(n, &n->peer[1], GET, PEER_WORD, round, slot * PEER_BYTES);
	await_one(n, round);
	if (n->rank == 0)
		peer_check(n->got, PEER_WORD, slot + 1);
}

/* Look into the queue, which is empty, and into the lanes, as a get of an event does. */
static void look(struct node *n, uint64_t round)
{
	(void)round;
	if (take_event(n))
		peer_die("an event; expected none");
	lease_take(n);
	pass(n);
	lease_give(n);
}

/* Active messages: hdr_data is the round, and the function above it. */
enum { ECHO, DONE, FUNCTION_SHIFT = 32 };

static unsigned active_bytes;

static void send_active(struct node *n, uint64_t function, uint64_t round)
{
	peer_stamp(n->tx, active_bytes, round);
	put(n, &n->peer[!n->rank], active_bytes, round | function << FUNCTION_SHIFT,
		slot_of(round, n->rank));
}

static void on_echo(struct node *n, uint64_t round)
{
	peer_check(n->rx + slot_of(round, !n->rank), active_bytes, round);
	send_active(n, DONE, round);
}

static void on_done(struct node *n, uint64_t round)
{
	peer_check(n->rx + slot_of(round, !n->rank), active_bytes, round);
}

static void active(struct node *n, uint64_t round)
{
	static void (*const functions[])(struct node *, uint64_t) = {
		[ECHO] = on_echo, [DONE] = on_done};
	if (n->rank == 0)
		send_active(n, ECHO, round);
	await_messages(n, round, 1);
	functions[n->last >> FUNCTION_SHIFT](n, round);
}

static void window(struct node *n, uint64_t round)
{
	for (unsigned i = 0; n->rank == 0 && i < PEER_WINDOW; i++)
		put_word(n, round);
	if (n->rank == 0) {
		await_word(n, round);
		return;
	}
	await_messages(n, round, PEER_WINDOW - 1);
	await_word(n, round);
	put_word(n, round);
}

static void all_to_all(struct node *n, uint64_t round)
{
	peer_stamp(n->tx, PEER_BYTES, round);
	for (unsigned i = 1; i < nodes; i++) {
		struct peer *next = peer_at(n, i + AHEAD_TX);
		ask(next->out, next->tx);
		put(n, peer_at(n, i), PEER_BYTES, round, slot_of(round, n->rank));
	}
	await_messages(n, round, nodes - 1);
	for (unsigned i = 0; i < nodes; i++)
		if (i != n->rank)
			peer_check(n->rx + slot_of(round, i), PEER_BYTES, round);
}

/* ---- a job ---- */

static size_t lane_bytes(void)
{
	return sizeof(struct lane) + cells * sizeof(struct cell);
}

static struct lane *lane_of(unsigned to, unsigned from)
{
	return (struct lane *)((char *)(start + 1) + (to * nodes + from) * lane_bytes());
}

static size_t shared_bytes(void)
{
	return sizeof *start + nodes * nodes * lane_bytes();
}

static struct node *make_node(unsigned rank)
{
	struct node *n = peer_allocate(sizeof *n);
	n->rank = rank;
	for (unsigned i = 0; i < nodes; i++)
		n->peer[i] = (struct peer){lane_of(rank, i), lane_of(i, rank), 0, 0, 0};
	n->entry[0] =
		(struct entry){.bits = OTHER, .threshold = -1, .next = &n->entry[1]};
	n->entry[1] = (struct entry){
		.bits = MATCH, .threshold = -1, .start = n->rx, .length = sizeof n->rx};
	for (uint64_t slot = 0; slot < 2; slot++)
		peer_stamp(n->rx + slot * PEER_BYTES, PEER_WORD, slot + 1);
	return n;
}

static void await_all(void)
{
	atomic_fetch_add_explicit(&start->ready, 1, memory_order_acq_rel);
	while (atomic_load_explicit(&start->ready, memory_order_acquire) < nodes)
		sched_yield();
}

static void become_child(pid_t parent, unsigned rank, round_fn *fn, uint64_t rounds)
{
	peer_expect_children(false);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	peer_pin(rank);
	struct node *n = make_node(rank);
	await_all();
	for (uint64_t i = 0; i < rounds; i++)
		fn(n, i);
	atomic_fetch_add_explicit(&start->done, 1, memory_order_acq_rel);
	for (;;)
		pause();
}

static void start_children(round_fn *fn, uint64_t rounds)
{
	pid_t parent = getpid();
	fflush(stdout);
	peer_expect_children(true);
	for (unsigned i = 1; i < nodes; i++) {
		child[i] = fork();
		if (child[i] < 0)
			peer_die("fork: %s", strerror(errno));
		if (!child[i])
			become_child(parent, i, fn, rounds);
	}
}

/* End the children; their checks count, too. */
static void end_children(void)
{
	while (atomic_load_explicit(&start->done, memory_order_acquire) < nodes - 1)
		sched_yield();
	peer_expect_children(false);
	for (unsigned i = 1; i < nodes; i++) {
		kill(child[i], SIGKILL);
		waitpid(child[i], NULL, 0);
	}
}

/* ns of a round */
static double timed(struct node *n, round_fn *fn, const struct peer_plan *p)
{
	double ns[PEER_BATCHES];
	uint64_t round = 0;
	while (round < p->warm)
		fn(n, round++);
	for (uint64_t b = 0; b < p->batches; b++) {
		double t = peer_now_ns();
		for (uint64_t i = 0; i < p->each; i++)
			fn(n, round++);
		ns[b] = (peer_now_ns() - t) / (double)p->each;
	}
	return peer_median(ns, p->batches);
}

static double measure(unsigned size, round_fn *fn, const struct peer_plan *p)
{
	nodes = size;
	cells = size > 2 ? 16 : 1024;
	crowded = size > cpus;
	start = mmap(NULL, shared_bytes(), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (start == MAP_FAILED)
		peer_die("no shared memory for %u nodes: %s", size, strerror(errno));
	start_children(fn, p->warm + p->batches * p->each);
	peer_pin(0);
	struct node *n = make_node(0);
	await_all();
	double ns = timed(n, fn, p);
	end_children();
	free(n);
	munmap(start, shared_bytes());
	return ns;
}

/* Plan as many rounds as oversub has, timed as one batch as there. */
static struct peer_plan alltoall_plan(bool quick, uint64_t messages)
{
	uint64_t rounds = 4000000 / messages;
	rounds = quick ? 20 : rounds < 400 ? 400 : rounds > 200000 ? 200000 : rounds;
	return (struct peer_plan){rounds / 10 + 1, 1, rounds};
}

static double run_alltoall(uint64_t x, bool quick)
{
	if (x < 2 || x > NODES)
		peer_die("alltoall=%llu: expected 2 to %d nodes", (unsigned long long)x,
			NODES);
	struct peer_plan p = alltoall_plan(quick, x * (x - 1));
	return (double)(x * (x - 1)) * 1e3 / measure((unsigned)x, all_to_all, &p);
}

/* The patterns of two nodes; value is made of the time of a round. */
static const struct pattern {
	const char *name;
	round_fn *fn;
	bool windows, is_rate;
	unsigned parts; /* of a round: the value is that of one */
	unsigned least, most;
} patterns[] = {{"latency", ping_pong, false, false, 2, PEER_WORD, PEER_WORD},
	{"rate", window, true, true, PEER_WINDOW, PEER_WORD, PEER_WORD},
	{"ack", put_acked, false, false, 1, PEER_WORD, PEER_WORD},
	{"get", get_word, false, false, 1, PEER_WORD, PEER_WORD},
	{"eqget", look, false, false, 1, 1, 1},
	{"am", active, false, false, 1, PEER_WORD, PEER_BYTES}};

static double run_pair(const struct pattern *p, uint64_t x, bool quick)
{
	struct peer_plan plan = peer_plan_of(quick, p->windows, PEER_WORD);
	active_bytes = (unsigned)x;
	double ns = measure(2, p->fn, &plan) / p->parts;
	return p->is_rate ? 1e3 / ns : ns;
}

static void run(const char *test, uint64_t x, bool quick)
{
	if (!strcmp(test, "alltoall"))
		peer_print("raw_sketch", test, x, run_alltoall(x, quick));
	for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
		const struct pattern *p = &patterns[i];
		if (!strcmp(test, p->name) && x >= p->least && x <= p->most)
			peer_print("raw_sketch", test, x, run_pair(p, x, quick));
	}
}

int main(int argc, char **argv)
{
	struct cpus all;
	peer_program = "peer_sketch";
	if (cpus_read(&all))
		cpus = cpus_count(&all);
	peer_each(argc, argv, run);
	return 0;
}
