/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer_mpi - the patterns of compare with MPI
 *
 *	peer_mpi WHO quick|full|tails test=list ...
 *
 * An ack is an empty message: the nearest to a put with an ACK.  A get is MPI_Get with a
 * flush, from a window that MPI has allocated.  Active messages go to a ring of
 * persistent receives, of which a poll tests the oldest; the first word of a message
 * names the function that its receiver shall run.  eqget tests a receive whose
 * message never comes.  A window of faa is MPI_Fetch_and_op and a flush.
 *
 * amput, for bench/papers/paper5.py, is a put by messages: a header and the bytes, which
 * the target copies to their place, and an answer.
 *
 * comm, tx and rx belong to the thread: each thread of the pattern threads has its own.
 */
#include "../am.h"
#include "../peer.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG = 1, TAG_BACK = 2, TAG_AM = 3, TAG_OTHERS = 100, TAG_QUEUES = 200 };
enum { SLOT_BYTES = 64 << 10, MOST_REQUESTS = 64 };
static const double alltoall_ns = 2e9, match_ns = 5e8; /* rough upper limits */
static const double work_ns = 1e7;

static int rank, size;
static __thread MPI_Comm comm;
static __thread char *tx, *rx;

static void send(const void *at, uint64_t bytes, int tag)
{
	MPI_Send(at, (int)bytes, MPI_BYTE, rank ^ 1, tag, comm);
}

static void receive(void *at, uint64_t bytes, int tag)
{
	MPI_Status status;
	int got;
	MPI_Recv(at, (int)bytes, MPI_BYTE, rank ^ 1, tag, comm, &status);
	MPI_Get_count(&status, MPI_BYTE, &got);
	if ((uint64_t)got != bytes)
		peer_die("a message of %d bytes; expected %" PRIu64, got, bytes);
}

static void allocate(uint64_t largest)
{
	tx = peer_allocate(largest + 128);
	rx = peer_allocate(
		2 * (largest + 128) + 2 * SLOT_BYTES + (size_t)size * PEER_BYTES);
}

static void release(void)
{
	free(tx);
	free(rx);
}

static void meet(void)
{
	MPI_Barrier(comm);
}

/* ---- latency, and ping-pongs that post each receive ---- */

static void send_whole(uint64_t bytes, uint64_t round)
{
	(void)round;
	send(tx, bytes, TAG);
}

static void receive_whole(uint64_t bytes, uint64_t round)
{
	receive(rx, bytes, TAG);
	peer_check(rx, bytes, round);
}

static void ping_pong(uint64_t bytes, uint64_t round)
{
	static const struct peer_calls calls = {
		.send = send_whole, .take = receive_whole};
	peer_stamp(tx, bytes, round);
	peer_ping_pong(&calls, bytes, round);
}

static MPI_Request answer, sending;

static void post(uint64_t bytes)
{
	MPI_Irecv(rx, (int)bytes, MPI_BYTE, rank ^ 1, TAG, comm, &answer);
}

static void start(uint64_t bytes, uint64_t round)
{
	peer_stamp(tx, bytes, round);
	MPI_Isend(tx, (int)bytes, MPI_BYTE, rank ^ 1, TAG, comm, &sending);
}

static void sent(uint64_t round)
{
	(void)round;
	MPI_Wait(&sending, MPI_STATUS_IGNORE);
}

static void take_answer(uint64_t bytes, uint64_t round)
{
	MPI_Wait(&answer, MPI_STATUS_IGNORE);
	peer_check(rx, bytes, round);
}

PEER_ROUNDS_OF(posted_pings, peer_posted, .post = post, .send = start, .sent = sent,
	.take = take_answer)

static void post_first(uint64_t bytes)
{
	if (rank == 1)
		post(bytes);
	meet();
}

/* ---- stream and rate ---- */

static void window(uint64_t bytes, uint64_t round)
{
	MPI_Request request[PEER_WINDOW];
	uint64_t slots = SLOT_BYTES / (bytes + 128), pitch = (bytes + 127) / 128 * 128;
	slots = slots < 2 ? 2 : slots < PEER_WINDOW ? slots : PEER_WINDOW;
	if (rank == 0)
		peer_stamp(tx, bytes, round);
	for (uint64_t i = 0; i < PEER_WINDOW; i++)
		if (rank == 0)
			MPI_Isend(tx, (int)bytes, MPI_BYTE, 1, TAG, comm, &request[i]);
		else
			MPI_Irecv(rx + i % slots * pitch, (int)bytes, MPI_BYTE, 0, TAG,
				comm, &request[i]);
	MPI_Waitall(PEER_WINDOW, request, MPI_STATUSES_IGNORE);
	if (rank == 0) {
		receive(rx, 0, TAG_BACK);
		return;
	}
	for (uint64_t i = 0; i < slots; i++)
		peer_check(rx + i * pitch, bytes, round);
	send(tx, 0, TAG_BACK);
}

/* ---- match: receives without messages come before those of the windows ---- */

/* Send the messages of receives to the same number of the peer's, and end them all. */
static void end_receives(MPI_Request *request, uint64_t sends, uint64_t receives,
	uint64_t bytes, int first_tag, int step)
{
	meet();
	for (uint64_t i = 0; i < sends; i++)
		send(tx, bytes, first_tag + (int)i * step);
	MPI_Waitall((int)receives, request, MPI_STATUSES_IGNORE);
	meet();
}

/* Time batches of rounds, at least three, until rank 0 says that the time is over.
 * Return their number. */
static uint64_t time_batches(peer_rounds *rounds, uint64_t each, double limit_ns,
	bool quick, double ns[PEER_BATCHES])
{
	uint64_t n = 0, most = quick ? 3 : PEER_BATCHES;
	double end = bench_now_ns() + limit_ns;
	for (;; n++) {
		int more = n < most && (n < 3 || bench_now_ns() < end);
		MPI_Bcast(&more, 1, MPI_INT, 0, comm);
		if (!more)
			return n;
		double t = bench_now_ns();
		rounds(0, 1 + n * each, each);
		ns[n] = (bench_now_ns() - t) / (double)each;
	}
}

PEER_ROUNDS(windows, window)

static double match(uint64_t depth, bool quick)
{
	double ns[PEER_BATCHES];
	MPI_Request *others = peer_allocate(depth * sizeof *others);
	for (uint64_t i = 0; rank && i < depth; i++)
		MPI_Irecv(rx, 0, MPI_BYTE, 0, TAG_OTHERS, comm, &others[i]);
	meet();
	uint64_t n = time_batches(windows, 1, match_ns, quick, ns);
	end_receives(others, rank ? 0 : depth, rank ? depth : 0, 0, TAG_OTHERS, 0);
	free(others);
	return bench_stat_of(ns, n).p50 / PEER_WINDOW;
}

/* ---- all to all ---- */

static MPI_Request *of_all; /* a receive and a message for each other rank */

static void all_round(uint64_t x, uint64_t round)
{
	int n = 0;
	(void)x;
	peer_stamp(tx, PEER_BYTES, round);
	for (int i = 1; i < size; i++) {
		int from = (rank + size - i) % size;
		MPI_Irecv(rx + from * PEER_BYTES, PEER_BYTES, MPI_BYTE, from, TAG, comm,
			&of_all[n++]);
	}
	for (int i = 1; i < size; i++)
		MPI_Isend(tx, PEER_BYTES, MPI_BYTE, (rank + i) % size, TAG, comm,
			&of_all[n++]);
	MPI_Waitall(n, of_all, MPI_STATUSES_IGNORE);
	for (int i = 0; i < size; i++)
		if (i != rank)
			peer_check(rx + i * PEER_BYTES, PEER_BYTES, round);
}

PEER_ROUNDS(all_rounds, all_round)

static double alltoall(uint64_t nodes, bool quick)
{
	double ns[PEER_BATCHES], sum = 0;
	if (nodes != (uint64_t)size)
		peer_die("%d ranks; expected %" PRIu64 "; see mpirun", size, nodes);
	of_all = peer_allocate(2 * (size_t)size * sizeof *of_all);
	all_round(0, 0);
	uint64_t n = time_batches(all_rounds, quick ? 2 : 20, alltoall_ns, quick, ns);
	for (uint64_t i = 0; i < n; i++)
		sum += ns[i];
	free(of_all);
	return (double)(size * (size - 1)) * (double)n * 1e3 / sum;
}

/* ---- a message that comes while its receiver computes ---- */

static void work(double ns)
{
	for (double end = bench_now_ns() + ns; bench_now_ns() < end;)
		;
}

static double overlap(uint64_t bytes, bool quick)
{
	double ns[PEER_BATCHES] = {0};
	uint64_t rounds = quick ? 3 : PEER_BATCHES;
	for (uint64_t i = 0; i < rounds; i++)
		if (rank == 0) {
			MPI_Request request;
			MPI_Irecv(rx, (int)bytes, MPI_BYTE, 1, TAG, comm, &request);
			meet();
			work(work_ns);
			double t = bench_now_ns();
			MPI_Wait(&request, MPI_STATUS_IGNORE);
			ns[i] = bench_now_ns() - t;
			peer_check(rx, bytes, i);
		} else {
			peer_stamp(tx, bytes, i);
			meet();
			work(work_ns / 10); /* the receiver has left the barrier */
			send(tx, bytes, TAG);
		}
	return bench_stat_of(ns, rounds).p50;
}

/* ---- acknowledged puts, gets ---- */

static void answered(uint64_t bytes, uint64_t round)
{
	if (rank == 0) {
		peer_stamp(tx, bytes, round);
		send(tx, bytes, TAG);
		receive(rx, 0, TAG_BACK);
		return;
	}
	receive(rx, bytes, TAG);
	peer_check(rx, bytes, round);
	send(tx, 0, TAG_BACK);
}

/* A message's header, as an active message of a put has it. */
struct header {
	uint64_t handler, offset, bytes;
};
static char *place; /* of a put by messages */

static void put_by_messages(uint64_t bytes, uint64_t round)
{
	struct header h = {1, 0, bytes};
	if (rank == 0) {
		peer_stamp(tx, bytes, round);
		memcpy(place, &h, sizeof h);
		memcpy(place + sizeof h, tx, bytes);
		send(place, sizeof h + bytes, TAG);
		receive(rx, 0, TAG_BACK);
		return;
	}
	receive(place, sizeof h + bytes, TAG);
	memcpy(&h, place, sizeof h);
	if (h.handler != 1)
		peer_die("amput: handler %" PRIu64 "; expected 1", h.handler);
	memcpy(rx + h.offset, place + sizeof h, h.bytes);
	peer_check(rx, bytes, round);
	send(tx, 0, TAG_BACK);
}

enum { SHIFTS = 16, STEP = 64 };
static MPI_Win win; /* of gets, or of additions */

/* Each get begins a step further on, and brings the number of its step. */
static void fetch(uint64_t bytes, uint64_t round)
{
	uint64_t shift = round % SHIFTS;
	if (rank)
		return;
	MPI_Get(rx, (int)bytes, MPI_BYTE, 1, (MPI_Aint)(shift * STEP), (int)bytes,
		MPI_BYTE, win);
	MPI_Win_flush(1, win);
	peer_check(rx, bytes, shift);
}

static void open_get(uint64_t bytes)
{
	char *memory;
	MPI_Win_allocate(SHIFTS * STEP, 1, MPI_INFO_NULL, comm, &memory, &win);
	MPI_Win_lock_all(0, win);
	for (uint64_t i = 0; i < SHIFTS; i++)
		peer_stamp(memory + i * STEP, bytes, i);
	MPI_Win_sync(win);
	meet();
}

static void close_win(uint64_t bytes)
{
	(void)bytes;
	meet(); /* makes progress for windows that need it */
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
}

/* ---- fetching additions to one word of the peer ---- */

static uint64_t sum, added; /* memory of an allocated window is shared: no messages */

static void open_sum(uint64_t bytes)
{
	(void)bytes;
	MPI_Win_create(&sum, PEER_WORD, 1, MPI_INFO_NULL, comm, &win);
	MPI_Win_lock_all(0, win);
	sum = added = 0;
	MPI_Win_sync(win);
	meet();
}

static void add_window(uint64_t bytes, uint64_t round)
{
	static const uint64_t one = 1;
	uint64_t old[PEER_WINDOW];
	(void)bytes, (void)round;
	if (rank)
		return;
	for (int i = 0; i < PEER_WINDOW; i++)
		MPI_Fetch_and_op(&one, &old[i], MPI_UINT64_T, 1, 0, MPI_SUM, win);
	MPI_Win_flush(1, win);
	added += PEER_WINDOW;
	for (int i = 0; i < PEER_WINDOW; i++)
		if (old[i] >= added)
			peer_die("faa: an old value of %" PRIu64
				 "; expected less than %" PRIu64,
				old[i], added);
}

static void close_sum(uint64_t bytes)
{
	meet();
	MPI_Bcast(&added, 1, MPI_UINT64_T, 0, comm);
	MPI_Win_sync(win);
	if (rank && sum != added)
		peer_die("faa: a sum of %" PRIu64 "; expected %" PRIu64, sum, added);
	close_win(bytes);
}

/* ---- active messages ---- */

enum { RING = 16, MOST_AM = PEER_WORD + PEER_BYTES };

static struct {
	MPI_Request in[RING], out[RING];
	char taken[RING][MOST_AM], sent[RING][MOST_AM];
	uint64_t next, sends;
} ring;

static void am_request(unsigned function, const void *bytes)
{
	uint64_t slot = ring.sends++ % RING, number = function;
	MPI_Wait(&ring.out[slot], MPI_STATUS_IGNORE);
	memcpy(ring.sent[slot], &number, sizeof number);
	memcpy(ring.sent[slot] + PEER_WORD, bytes, am.bytes);
	MPI_Isend(ring.sent[slot], (int)(PEER_WORD + am.bytes), MPI_BYTE, rank ^ 1,
		TAG_AM, comm, &ring.out[slot]);
}

static void am_poll(void)
{
	uint64_t slot = ring.next % RING, function;
	int here;
	MPI_Test(&ring.in[slot], &here, MPI_STATUS_IGNORE);
	if (!here)
		return;
	memcpy(&function, ring.taken[slot], sizeof function);
	am_functions[function](ring.taken[slot] + PEER_WORD);
	ring.next++;
	MPI_Start(&ring.in[slot]);
}

static void open_ring(uint64_t bytes)
{
	memset(&ring, 0, sizeof ring);
	am_open(bytes);
	for (int i = 0; i < RING; i++) {
		ring.out[i] = MPI_REQUEST_NULL;
		MPI_Recv_init(ring.taken[i], (int)(PEER_WORD + bytes), MPI_BYTE,
			MPI_ANY_SOURCE, TAG_AM, comm, &ring.in[i]);
	}
	MPI_Startall(RING, ring.in);
	meet();
}

/* Close the ring: its receives have no message, so they are cancelled. */
static void close_ring(uint64_t bytes)
{
	(void)bytes;
	MPI_Waitall(RING, ring.out, MPI_STATUSES_IGNORE);
	for (int i = 0; i < RING; i++) {
		MPI_Cancel(&ring.in[i]);
		MPI_Wait(&ring.in[i], MPI_STATUS_IGNORE);
		MPI_Request_free(&ring.in[i]);
	}
	meet();
}

/* ---- several receives: the last one ends, or none ---- */

static MPI_Request request[MOST_REQUESTS];

static void post_queue(int i)
{
	MPI_Irecv(rx, PEER_WORD, MPI_BYTE, rank ^ 1, TAG_QUEUES + i, comm, &request[i]);
}

static void send_to_queue(uint64_t count, uint64_t round)
{
	peer_stamp(tx, PEER_WORD, round);
	send(tx, PEER_WORD, TAG_QUEUES + (int)count - 1);
}

static void take_queue(uint64_t count, uint64_t round)
{
	int which, last = (int)count - 1;
	MPI_Waitany((int)count, request, &which, MPI_STATUS_IGNORE);
	if (which != last)
		peer_die("receive %d has ended; expected %d", which, last);
	peer_check(rx, PEER_WORD, round);
	post_queue(which);
}

PEER_ROUNDS_OF(queue_pings, peer_ping_pong, .send = send_to_queue, .take = take_queue)

static void open_queues(uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		post_queue((int)i);
	meet();
}

static void close_queues(uint64_t count)
{
	end_receives(request, count, count, PEER_WORD, TAG_QUEUES, 1);
}

/* Test a receive whose message does not come. */
static void test_queue(uint64_t count, uint64_t round)
{
	int here;
	(void)count, (void)round;
	MPI_Test(request, &here, MPI_STATUS_IGNORE);
	if (here)
		peer_die("a receive without a message has ended; expected that it waits");
}

/* ---- threads: each has a communicator and memory of its own ---- */

static MPI_Comm comm_of[PEER_THREADS];

static void open_thread(unsigned thread)
{
	MPI_Comm_dup(comm, &comm_of[thread]);
}

static void close_thread(unsigned thread)
{
	MPI_Comm_free(&comm_of[thread]);
}

static void enter_thread(unsigned thread)
{
	comm = comm_of[thread];
	allocate(PEER_WORD);
}

static void thread_window(unsigned thread, uint64_t round)
{
	(void)thread;
	window(PEER_WORD, round);
}

static const struct peer_threads threads = {
	open_thread, close_thread, meet, enter_thread, release, thread_window};

PEER_ROUNDS(ping_pongs, ping_pong)
PEER_ROUNDS(acked, answered)
PEER_ROUNDS(puts_by_messages, put_by_messages)
PEER_ROUNDS(gets, fetch)
PEER_ROUNDS(looks, test_queue)
PEER_ROUNDS(additions, add_window)

static const struct peer_test tests[] = {
	{"latency", NULL, 0, PEER_ANY, 2, ping_pongs},
	{"stream", NULL, 0, PEER_ANY, PEER_WINDOW, windows},
	{"rate", NULL, 0, PEER_ANY, PEER_WINDOW, windows},
	{"match", NULL, 0, PEER_ANY, 0, .run = match},
	{"alltoall", NULL, 0, PEER_ANY, 0, .run = alltoall},
	{"ack", NULL, 0, PEER_ANY, 1, acked},
	{"amput", NULL, 0, PEER_ANY, 1, puts_by_messages},
	{"get", NULL, PEER_WORD, STEP, 1, gets, open_get, close_win},
	{"am", NULL, PEER_WORD, PEER_BYTES, 1, am_rounds, open_ring, close_ring},
	{"eqget", NULL, 1, 1, 1, looks, open_queues, close_queues},
	{"queues", NULL, 1, MOST_REQUESTS, 2, queue_pings, open_queues, close_queues},
	{"threads", NULL, 1, PEER_THREADS, PEER_WINDOW, .threads = &threads},
	{"overlap", NULL, PEER_WORD, PEER_ANY, 0, .run = overlap},
	{"faa", NULL, PEER_WORD, PEER_WORD, PEER_WINDOW, additions, open_sum, close_sum},
	{"posted", NULL, 0, PEER_ANY, 2, posted_pings, post_first},
	{"step", NULL, 0, PEER_STEPS - 1, 1, posted_pings, post_first},
	{0},
};

static void before(uint64_t x)
{
	allocate(x);
	place = peer_allocate(x + sizeof(struct header));
	meet();
}

static void after(void)
{
	release();
	free(place);
}

int main(int argc, char **argv)
{
	static const struct peer peer = {
		.tests = tests, .named = true, .before = before, .after = after};
	peer_program = "peer_mpi";
	const char *number = getenv("OMPI_COMM_WORLD_RANK");
	number = number ? number : getenv("PMI_RANK");
	peer_pin(number ? (unsigned)atoi(number) : 0);
	/* threads make every call slower, so no other pattern has them */
	int level = MPI_THREAD_SINGLE, got;
	for (int i = 1; i < argc; i++)
		if (!strncmp(argv[i], "threads=", 8))
			level = MPI_THREAD_MULTIPLE;
	MPI_Init_thread(&argc, &argv, level, &got);
	if (got < level)
		peer_die("this MPI has no threads; expected MPI_THREAD_MULTIPLE");
	comm = MPI_COMM_WORLD;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	peer_rank = (unsigned)rank;
	peer_run(&peer, argc, argv);
	MPI_Finalize();
	return 0;
}
