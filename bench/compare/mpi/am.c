/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Active messages over MPI: a ring of persistent receives, of which a poll tests the
 * oldest; the first word of a message names the function that its receiver shall run.
 */
#include "peer_mpi.h"

#include <string.h>

enum { RING = 16, MOST = PEER_WORD + PEER_BYTES, TAG_AM = 3 };
enum { ECHO, DONE };

static struct {
	MPI_Request in[RING], out[RING];
	char taken[RING][MOST], sent[RING][MOST];
	uint64_t bytes, next, sends, round, done;
} am;

static void request(uint64_t function, const void *bytes)
{
	uint64_t slot = am.sends++ % RING;
	MPI_Wait(&am.out[slot], MPI_STATUS_IGNORE);
	memcpy(am.sent[slot], &function, sizeof function);
	memcpy(am.sent[slot] + PEER_WORD, bytes, am.bytes);
	MPI_Isend(am.sent[slot], (int)(PEER_WORD + am.bytes), MPI_BYTE, rank ^ 1, TAG_AM,
		comm, &am.out[slot]);
}

static void on_echo(const char *bytes)
{
	peer_check(bytes, am.bytes, am.round++);
	request(DONE, bytes);
}

static void on_done(const char *bytes)
{
	peer_check(bytes, am.bytes, am.done++);
}

static void (*const functions[])(const char *bytes) = {
	[ECHO] = on_echo, [DONE] = on_done};

static void poll(void)
{
	uint64_t slot = am.next % RING, function;
	int here;
	MPI_Test(&am.in[slot], &here, MPI_STATUS_IGNORE);
	if (!here)
		return;
	memcpy(&function, am.taken[slot], sizeof function);
	functions[function](am.taken[slot] + PEER_WORD);
	am.next++;
	MPI_Start(&am.in[slot]);
}

static void round_trip(uint64_t bytes, uint64_t round)
{
	char message[PEER_BYTES];
	if (rank == 1) {
		while (am.round == round)
			poll();
		return;
	}
	peer_stamp(message, bytes, round);
	request(ECHO, message);
	while (am.done == round)
		poll();
}

static void open_ring(uint64_t bytes)
{
	memset(&am, 0, sizeof am);
	am.bytes = bytes;
	for (int i = 0; i < RING; i++) {
		am.out[i] = MPI_REQUEST_NULL;
		MPI_Recv_init(am.taken[i], (int)(PEER_WORD + bytes), MPI_BYTE,
			MPI_ANY_SOURCE, TAG_AM, comm, &am.in[i]);
	}
	MPI_Startall(RING, am.in);
	MPI_Barrier(comm);
}

/* Close the ring: its receives have no message, so they are cancelled. */
static void close_ring(void)
{
	MPI_Waitall(RING, am.out, MPI_STATUSES_IGNORE);
	for (int i = 0; i < RING; i++) {
		MPI_Cancel(&am.in[i]);
		MPI_Wait(&am.in[i], MPI_STATUS_IGNORE);
		MPI_Request_free(&am.in[i]);
	}
	MPI_Barrier(comm);
}

double pm_active(uint64_t bytes, bool quick)
{
	struct peer_plan p = peer_plan_of(quick, false, bytes);
	if (bytes < PEER_WORD || bytes > PEER_BYTES)
		peer_die("am=%llu: expected %d to %d bytes", (unsigned long long)bytes,
			PEER_WORD, PEER_BYTES);
	open_ring(bytes);
	double ns = peer_timed(&p, round_trip, bytes);
	close_ring();
	return ns;
}
