/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpi_program - an MPI-like program above mpi_layer, all forms one after the other
 *
 *	mpi_program [options of job.h] [rounds [longest]]
 *
 * Ping-pong of all sizes; truncation, cancelling, ready and synchronous sends; random
 * traffic with wildcards, checked against the rules of matching; all to all; a tree.
 */
#include "mpi_layer.h"

#include <string.h>
#include <unistd.h>

enum { TRAFFIC = 1, CONTROL, PAIR, TREE };
enum { MOST = 4 << 20, EACH = 10, TAGS = 4, WORDS = 500 };

static unsigned long tried;
static size_t longest = MOST;
static char *out, *in;

static uint64_t number(int from, int to, int what)
{
	return (uint64_t)from << 40 ^ (uint64_t)to << 20 ^ (uint64_t)what;
}

static void send_to(const void *bytes, size_t length, int to, int tag, int context)
{
	mpi_wait(mpi_isend(bytes, length, to, tag, context, MPI_STANDARD), NULL);
}

static struct mpi_status receive(
	void *bytes, size_t length, int from, int tag, int context)
{
	struct mpi_status status;
	mpi_wait(mpi_irecv(bytes, length, from, tag, context), &status);
	return status;
}

/* Meet: earlier messages have been matched or are in the list then. */
static void meet(void)
{
	struct mpi_request *request[1024];
	for (int i = 0; i < job.size; i++)
		request[i] = mpi_isend(NULL, 0, i, 0, CONTROL, MPI_STANDARD);
	for (int i = 0; i < job.size; i++)
		receive(NULL, 0, i, 0, CONTROL);
	for (int i = 0; i < job.size; i++)
		mpi_wait(request[i], NULL);
}

/* ---- ping-pong ---- */

static void ping(size_t length, int partner, int tag)
{
	job_fill(out, length, number(job.rank, partner, tag));
	send_to(out, length, partner, tag, PAIR);
}

static void pong(size_t length, int partner, int tag)
{
	memset(in, 0, length);
	struct mpi_status status = receive(in, MOST + 1, partner, tag, PAIR);
	CHECK(status.length == length && status.source == partner && status.tag == tag);
	CHECK(job_wrong(in, length, number(partner, job.rank, tag)) == length);
	tried++;
}

static void both(size_t length, int partner, int tag)
{
	if (job.rank < partner)
		ping(length, partner, tag);
	pong(length, partner, tag);
	if (job.rank > partner)
		ping(length, partner, tag);
}

static void pingpong(void)
{
	int partner = job.rank ^ 1;
	if (partner >= job.size)
		return;
	both(0, partner, 0);
	for (size_t length = 1; length <= longest; length *= 2)
		for (size_t l = length - 1; l <= length + 1; l++)
			both(l, partner, (int)l);
}

/* ---- one operation at a time, also with oneself ---- */

static void truncated(size_t length, size_t room, bool unexpected)
{
	struct mpi_request *s, *r = NULL;
	struct mpi_status status;
	job_fill(out, length, length);
	memset(in, 0x5a, length);
	if (!unexpected)
		r = mpi_irecv(in, room, job.rank, 1, PAIR);
	s = mpi_isend(out, length, job.rank, 1, PAIR, MPI_STANDARD);
	if (unexpected)
		r = mpi_irecv(in, room, MPI_ANY, MPI_ANY, PAIR);
	mpi_wait(r, &status);
	mpi_wait(s, NULL);
	CHECK(status.truncated && status.length == room);
	CHECK(job_wrong(in, room, length) == room);
	for (size_t i = room; i < length; i++)
		CHECK(in[i] == 0x5a);
	tried++;
}

static void truncation(void)
{
	for (int unexpected = 0; unexpected < 2; unexpected++) {
		truncated(100, 0, unexpected);
		truncated(MPI_SHORT, 77, unexpected);
		truncated(300000, 0, unexpected);
		truncated(300000, 1000, unexpected);
		truncated(300000, 200000, unexpected);
	}
}

static void cancelling(void)
{
	struct mpi_status status;
	struct mpi_request *posted = mpi_irecv(in, 8, job.rank, 2, PAIR);
	CHECK(!mpi_test(posted, NULL) && mpi_cancel(posted));
	send_to(out, 8, job.rank, 2, PAIR);
	while (!mpi_probe(MPI_ANY, 2, PAIR, &status))
		;
	CHECK(status.source == job.rank && status.length == 8);
	CHECK(!mpi_probe(MPI_ANY, 3, PAIR, &status));
	CHECK(receive(in, 8, job.rank, 2, PAIR).unexpected);
	posted = mpi_irecv(in, 8, job.rank, 2, PAIR);
	send_to(out, 8, job.rank, 2, PAIR);
	meet();
	CHECK(!mpi_cancel(posted));
	mpi_wait(posted, NULL);
	tried += 2;
}

/* The send does not end before the receive is there, with any length. */
static void synchronous(size_t length)
{
	struct mpi_request *s =
		mpi_isend(out, length, job.rank, 4, PAIR, MPI_SYNCHRONOUS);
	meet();
	CHECK(!mpi_test(s, NULL));
	CHECK(receive(in, length, job.rank, MPI_ANY, PAIR).unexpected);
	mpi_wait(s, NULL);
	struct mpi_request *r = mpi_irecv(in, length, job.rank, 4, PAIR);
	mpi_wait(mpi_isend(out, length, job.rank, 4, PAIR, MPI_SYNCHRONOUS), NULL);
	mpi_wait(r, NULL);
	tried += 2;
}

static void ready(size_t length)
{
	int next = (job.rank + 1) % job.size,
	    before = (job.rank + job.size - 1) % job.size;
	struct mpi_request *r = mpi_irecv(in, length, before, 5, PAIR);
	struct mpi_status status;
	meet();
	job_fill(out, length, number(job.rank, next, 5));
	mpi_wait(mpi_isend(out, length, next, 5, PAIR, MPI_READY), NULL);
	mpi_wait(r, &status);
	CHECK(status.length == length && !status.unexpected);
	CHECK(job_wrong(in, length, number(before, job.rank, 5)) == length);
	tried++;
}

/* ---- a stream ---- Messages come all the time while receives are posted: some are
 * found, some are waited for, and some come between the search and the post. */

enum { STREAM = 400 };

static void stream(void)
{
	static uint64_t sent[STREAM], came[STREAM];
	struct mpi_request *s[STREAM], *r[STREAM];
	int next = (job.rank + 1) % job.size,
	    before = (job.rank + job.size - 1) % job.size;
	for (int i = 0; i < STREAM; i++) {
		sent[i] = number(job.rank, next, i);
		s[i] = mpi_isend(&sent[i], 8, next, i % TAGS, PAIR, MPI_STANDARD);
		r[i] = mpi_irecv(&came[i], 8, i & 4 ? MPI_ANY : before, i % TAGS, PAIR);
	}
	for (int i = 0; i < STREAM; i++) {
		mpi_wait(r[i], NULL);
		mpi_wait(s[i], NULL);
		CHECK(came[i] == number(before, job.rank, i));
		tried++;
	}
	meet();
}

/* ---- between search and post ---- */

static struct mpi_request *sent_between;
static size_t between_length;

static ptl_sr_value_t accepted(void)
{
	ptl_sr_value_t count;
	DO(PtlNIStatus(job.ni, PTL_SR_RECV_COUNT, &count));
	return count;
}

/* Send and wait for the acceptance, without the layer's progress, which would search
 * again. */
static void send_between(void)
{
	ptl_sr_value_t before = accepted();
	mpi_between = NULL;
	sent_between = mpi_isend(out, between_length, job.rank, 6, PAIR, MPI_STANDARD);
	while (accepted() == before)
		usleep(100);
}

/* Wait for the event that the refusal has promised, unless the receive was first. */
static void between(size_t length)
{
	between_length = length;
	job_fill(out, length, length);
	mpi_between = send_between;
	CHECK(receive(in, length, job.rank, 6, PAIR).length == length);
	mpi_wait(sent_between, NULL);
	CHECK(job_wrong(in, length, length) == length);
	tried++;
}

/* ---- random traffic ---- */

struct message { /* known on both sides */
	int tag;
	size_t length;
	enum mpi_send how;
	int taken_by; /* number of its receive, -1: none yet */
};

struct wanted {
	struct mpi_request *request;
	char *bytes;
	int source, tag;
	bool cancelled;
	int got_source, got; /* number among that source's messages */
};

static struct message (*coming)[EACH]; /* indexed by source */
static struct wanted *wanted;
static int nwanted;

static struct message message_of(int round, int from, int to, int n)
{
	uint64_t state = number(from, to, round * EACH + n);
	uint64_t r = random_next(&state);
	static const size_t limit[] = {1, 64, 1024, MPI_SHORT + 1, 70000};
	return (struct message){.tag = (int)(r % TAGS),
		.length = (size_t)(random_next(&state) % limit[r / TAGS % 5]),
		.how = r >> 32 & 3 ? MPI_STANDARD : MPI_SYNCHRONOUS,
		.taken_by = -1};
}

static void want(int source, int tag)
{
	struct wanted *w = &wanted[nwanted++];
	*w = (struct wanted){
		.bytes = malloc(70000), .source = source, .tag = tag, .got = -1};
	w->request = mpi_irecv(w->bytes, 70000, source, tag, TRAFFIC);
}

/* Return the number of a message of its source, which only its bytes tell. */
static int which_message(struct wanted *w, struct mpi_status status, int round)
{
	for (int n = 0; n < EACH; n++) {
		struct message *m = &coming[status.source][n];
		uint64_t bytes = number(status.source, job.rank, round * EACH + n);
		if (m->taken_by < 0 && m->tag == status.tag &&
			m->length == status.length &&
			job_wrong(w->bytes, m->length, bytes) == m->length)
			return n;
	}
	return -1;
}

static void got(int index, struct mpi_status status, int round)
{
	struct wanted *w = &wanted[index];
	CHECK(w->source == MPI_ANY || w->source == status.source);
	CHECK(w->tag == MPI_ANY || w->tag == status.tag);
	CHECK(!status.truncated);
	w->got_source = status.source;
	w->got = which_message(w, status, round);
	CHECK(w->got >= 0);
	coming[status.source][w->got].taken_by = index;
	tried++;
}

static bool fits(struct wanted *w, int source, struct message *m)
{
	return (w->source == MPI_ANY || w->source == source) &&
	       (w->tag == MPI_ANY || w->tag == m->tag);
}

/* Check that a receive takes the first of all messages of a source that match it. */
static void check_order(int source)
{
	for (int n = 0; n < EACH; n++)
		for (int earlier = 0; earlier < n; earlier++) {
			struct message *late = &coming[source][n],
				       *early = &coming[source][earlier];
			if (fits(&wanted[late->taken_by], source, early))
				CHECK(early->taken_by < late->taken_by);
		}
}

/* Check that the first receive that matches a message takes it, or an earlier message. */
static void check_posted(int source, struct message *m, int n)
{
	for (int i = 0; i < m->taken_by; i++) {
		struct wanted *w = &wanted[i];
		if (!fits(w, source, m))
			continue;
		CHECK(!w->cancelled);
		if (w->got_source == source)
			CHECK(w->got < n);
	}
}

static void send_all(int round, struct mpi_request **sent, char **bytes)
{
	for (int n = 0; n < EACH; n++)
		for (int to = 0; to < job.size; to++) {
			struct message m = message_of(round, job.rank, to, n);
			int at = n * job.size + to;
			bytes[at] = malloc(m.length + 1);
			job_fill(bytes[at], m.length,
				number(job.rank, to, round * EACH + n));
			sent[at] =
				mpi_isend(bytes[at], m.length, to, m.tag, TRAFFIC, m.how);
		}
}

/* Choose wanted messages, as exactly as they are known, or less exactly. */
static void want_some(uint64_t *seed, int share)
{
	for (int i = 0; i < EACH * job.size; i++) {
		uint64_t r = random_next(seed);
		int source = (int)(r % (uint64_t)job.size);
		int tag = coming[source][r >> 16 & 7].tag;
		if ((int)(r >> 20 & 3) < share)
			want(r >> 24 & 3 ? source : MPI_ANY, r >> 28 & 3 ? tag : MPI_ANY);
	}
}

static void finish_wanted(int round)
{
	struct mpi_status status;
	for (int i = 0; i < nwanted; i++) {
		struct wanted *w = &wanted[i];
		if (mpi_cancel(w->request)) {
			w->cancelled = true;
			w->got_source = -1;
			continue;
		}
		mpi_wait(w->request, &status);
		got(i, status, round);
	}
}

/* Receive the rest, which stands in the list in the order of sending. */
static void receive_rest(int round)
{
	struct mpi_status seen, status;
	while (mpi_probe(MPI_ANY, MPI_ANY, TRAFFIC, &seen)) {
		int index = nwanted;
		want(MPI_ANY, MPI_ANY);
		mpi_wait(wanted[index].request, &status);
		CHECK(status.unexpected && status.source == seen.source);
		CHECK(status.tag == seen.tag && status.length == seen.length);
		got(index, status, round);
	}
}

static void check_round(void)
{
	for (int source = 0; source < job.size; source++)
		for (int n = 0; n < EACH; n++)
			CHECK(coming[source][n].taken_by >= 0);
	for (int source = 0; source < job.size; source++) {
		check_order(source);
		for (int n = 0; n < EACH; n++)
			check_posted(source, &coming[source][n], n);
	}
}

static void traffic_round(int round)
{
	size_t all = (size_t)job.size * EACH;
	struct mpi_request **sent = calloc(all, sizeof *sent);
	char **bytes = calloc(all, sizeof *bytes);
	uint64_t seed = number(job.rank, 7, round);
	wanted = calloc(3 * all, sizeof *wanted);
	nwanted = 0;
	for (int from = 0; from < job.size; from++)
		for (int n = 0; n < EACH; n++)
			coming[from][n] = message_of(round, from, job.rank, n);
	want_some(&seed, 1 + round % 3);
	send_all(round, sent, bytes);
	want_some(&seed, 2);
	meet();
	finish_wanted(round);
	receive_rest(round);
	check_round();
	for (size_t i = 0; i < all; i++) {
		mpi_wait(sent[i], NULL);
		free(bytes[i]);
	}
	for (int i = 0; i < nwanted; i++)
		free(wanted[i].bytes);
	free(wanted);
	free(sent);
	free(bytes);
	job_barrier();
}

static void traffic(int rounds)
{
	coming = calloc((size_t)job.size, sizeof *coming);
	for (int round = 0; round < rounds; round++)
		traffic_round(round);
	free(coming);
}

/* ---- collectives ---- */

static void all_to_all(size_t length)
{
	size_t size = (size_t)job.size;
	char *to = malloc(size * length), *from = malloc(size * length);
	struct mpi_request **request = calloc(2 * size, sizeof *request);
	for (int i = 0; i < job.size; i++) {
		size_t at = (size_t)i * length;
		job_fill(to + at, length, number(job.rank, i, 9));
		request[i] = mpi_irecv(from + at, length, i, 9, TREE);
	}
	for (int i = 0; i < job.size; i++)
		request[job.size + i] = mpi_isend(to + (size_t)i * length, length,
			(job.rank + i) % job.size, 9, TREE, MPI_STANDARD);
	for (size_t i = 0; i < 2 * size; i++)
		mpi_wait(request[i], NULL);
	for (int i = 0; i < job.size; i++) {
		uint64_t which = number(i, (job.rank - i + job.size) % job.size, 9);
		CHECK(job_wrong(from + (size_t)i * length, length, which) == length);
		tried++;
	}
	free(to);
	free(from);
	free(request);
}

/* Add up a binary tree, from either child first, and send the total down. */
static void tree(int step)
{
	uint64_t sum[WORDS], part[WORDS];
	int left = 2 * job.rank + 1, children = 0;
	for (int i = 0; i < WORDS; i++)
		sum[i] = (uint64_t)(job.rank * i + step);
	for (int child = left; child < left + 2 && child < job.size; child++)
		children++;
	for (int c = 0; c < children; c++) {
		receive(part, sizeof part, MPI_ANY, step, TREE);
		for (int i = 0; i < WORDS; i++)
			sum[i] += part[i];
	}
	if (job.rank > 0) {
		send_to(sum, sizeof sum, (job.rank - 1) / 2, step, TREE);
		receive(sum, sizeof sum, (job.rank - 1) / 2, step, TREE);
	}
	for (int child = left; child < left + children; child++)
		send_to(sum, sizeof sum, child, step, TREE);
	uint64_t ranks = (uint64_t)(job.size * (job.size - 1) / 2);
	for (int i = 0; i < WORDS; i++)
		CHECK(sum[i] == ranks * (uint64_t)i + (uint64_t)(job.size * step));
	tried++;
}

static void collectives(void)
{
	all_to_all(1);
	all_to_all(3000);
	all_to_all(100000);
	for (int step = 0; step < 20; step++)
		tree(step + 100);
}

static void everything(enum mpi_long long_form, enum mpi_post post_form, int rounds)
{
	mpi_begin(long_form, post_form);
	job_barrier();
	pingpong();
	truncation();
	cancelling();
	for (size_t length = 0; length < 100000; length = 3 * length + 1) {
		synchronous(length);
		ready(length);
	}
	for (size_t length = 1; length <= MPI_SHORT; length *= 4)
		between(length);
	CHECK(mpi_counts().again > 0);
	for (int i = 0; i < rounds; i++)
		stream();
	traffic(rounds);
	collectives();
	job_barrier();
	struct mpi_count count = mpi_counts();
	CHECK(count.posted > 0 && count.unexpected > 0 && count.fetched > 0);
	mpi_end();
}

int main(int argc, char **argv)
{
	job_begin(argc, argv);
	int rounds = job.words[0] ? atoi(job.words[0]) : 20;
	if (job.words[0] && job.words[1])
		longest = strtoul(job.words[1], NULL, 0);
	out = malloc(MOST + 2);
	in = malloc(MOST + 2);
	everything(MPI_EAGER_LONG, MPI_BY_UPDATE, rounds);
	everything(MPI_EAGER_LONG, MPI_BY_POST, rounds);
	everything(MPI_RENDEZVOUS, MPI_BY_UPDATE, rounds);
	everything(MPI_RENDEZVOUS, MPI_BY_POST, rounds);
	job_barrier();
	CHECK(job_drops() == 0);
	job_end("messages of an MPI-like program", tried);
	free(out);
	free(in);
	return 0;
}
