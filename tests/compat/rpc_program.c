/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rpc_program - rank 0 serves files, the others are clients that come and go
 *
 *	rpc_program [options of job.h] directory [lives, an odd number]
 *
 * A client's process forks one client after the other, all with its rank's address.
 * Each writes a file, reads it back, reads files of earlier clients, and ends: by exit,
 * by _exit without PtlNIFini, or by SIGKILL with operations under way.  In the end the
 * server checks every byte of every file.
 */
#include "rpc_layer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHUNK = 100000, CHUNKS = 12, DEPTH = 4, MOST_LIVES = 64 };
enum end { EXIT, UNDERSCORE_EXIT, KILLED };

static char *written[DEPTH], *back[DEPTH];

static enum end end_of(int life)
{
	static const enum end ends[] = {EXIT, KILLED, UNDERSCORE_EXIT, KILLED};
	return ends[life % 4];
}

static unsigned file_of(int rank, int life)
{
	return (unsigned)(rank * MOST_LIVES + life);
}

static uint64_t number(unsigned file, int chunk)
{
	return (uint64_t)file << 32 | (uint64_t)chunk;
}

/* Return the length; the last chunk is a short one. */
static size_t length_of(int chunk)
{
	return chunk == CHUNKS - 1 ? 12345 : CHUNK;
}

/* Cut into pieces of all lengths, some empty. */
static int cut(char *bytes, size_t length, uint64_t seed, ptl_md_iovec_t *pieces)
{
	int n = 0;
	for (size_t at = 0; n < RPC_PIECES - 1 && at < length; n++) {
		size_t l = (size_t)random_next(&seed) % (length / 4 + 1);
		if (random_next(&seed) % 5 == 0)
			l = 0;
		l = l > length - at ? length - at : l;
		pieces[n] = (ptl_md_iovec_t){bytes + at, l};
		at += l;
		if (n == RPC_PIECES - 2 && at < length)
			pieces[n].iov_len += length - at;
	}
	return n;
}

static struct rpc_call *begin(
	enum rpc_operation operation, unsigned file, int chunk, char *bytes)
{
	ptl_md_iovec_t pieces[RPC_PIECES];
	size_t length = length_of(chunk);
	int n = cut(bytes, length, number(file, chunk) + operation, pieces);
	return rpc_begin(operation, file, (uint64_t)chunk * CHUNK, pieces, n);
}

static void write_file(unsigned file)
{
	struct rpc_call *call[DEPTH];
	for (int chunk = 0; chunk < CHUNKS; chunk += DEPTH) {
		for (int i = 0; i < DEPTH; i++) {
			size_t length = length_of(chunk + i);
			job_fill(written[i], length, number(file, chunk + i));
			call[i] = begin(RPC_WRITE, file, chunk + i, written[i]);
		}
		for (int i = 0; i < DEPTH; i++)
			CHECK(rpc_finish(call[i]) == (long)length_of(chunk + i));
	}
}

static void read_file(unsigned file)
{
	struct rpc_call *call[DEPTH];
	for (int chunk = 0; chunk < CHUNKS; chunk += DEPTH) {
		for (int i = 0; i < DEPTH; i++) {
			memset(back[i], 0, CHUNK);
			call[i] = begin(RPC_READ, file, chunk + i, back[i]);
		}
		for (int i = 0; i < DEPTH; i++) {
			size_t length = length_of(chunk + i);
			CHECK(rpc_finish(call[i]) == (long)length);
			CHECK(job_wrong(back[i], length, number(file, chunk + i)) ==
				length);
		}
	}
}

/* Request bytes behind the end, of no file, or too many: refused with an error. */
static void strange_requests(unsigned file)
{
	ptl_md_iovec_t piece = {back[0], 100};
	CHECK(rpc_call(RPC_READ, file, (uint64_t)CHUNKS * CHUNK, &piece, 1) == 0);
	CHECK(rpc_call(RPC_READ, 1u << 20, 0, &piece, 1) == -EINVAL);
	CHECK(rpc_call(RPC_READ, file, 0, &piece, 1) == 100);
}

/* Die in the middle of all kinds of operations. */
static void die(unsigned file)
{
	struct rpc_call *call[DEPTH];
	for (int i = 0; i < DEPTH; i++) {
		job_fill(written[i], CHUNK, number(file, i));
		call[i] = begin(RPC_WRITE, file, i, written[i]);
	}
	if (file % 2)
		rpc_finish(call[0]);
	for (int i = 0; i < DEPTH; i++)
		begin(RPC_READ, file - 1, i, back[i]);
	kill(getpid(), SIGKILL);
}

static void live(int argc, char **argv, int rank, int life, bool last)
{
	unsigned file = file_of(rank, life);
	job_enter(argc, argv);
	for (int i = 0; i < DEPTH; i++) {
		written[i] = malloc(CHUNK);
		back[i] = malloc(CHUNK);
	}
	rpc_connect((unsigned)life + 1);
	if (end_of(life) == KILLED)
		die(file);
	write_file(file);
	strange_requests(file);
	for (int earlier = 0; earlier <= life; earlier++)
		if (end_of(earlier) != KILLED)
			read_file(file_of(rank, earlier));
	if (end_of(life) == EXIT)
		rpc_trespass();
	if (last)
		rpc_call(RPC_BYE, 0, 0, NULL, 0);
	if (end_of(life) == UNDERSCORE_EXIT && !last)
		_exit(0);
	rpc_disconnect();
	for (int i = 0; i < DEPTH; i++) {
		free(written[i]);
		free(back[i]);
	}
	job_leave();
	exit(0);
}

static bool as_expected(int status, enum end end)
{
	if (end == KILLED)
		return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void be_clients(int argc, char **argv, int rank, int lives)
{
	for (int life = 0; life < lives; life++) {
		int status;
		pid_t child = fork();
		if (child == 0)
			live(argc, argv, rank, life, life == lives - 1);
		CHECK(child > 0 && waitpid(child, &status, 0) == child);
		CHECK(as_expected(status, end_of(life)));
	}
}

/* ---- the server's files ---- */

/* Return true if a chunk of a killed client is missing; it may also be whole. */
static bool is_empty(const char *bytes, ssize_t length)
{
	for (ssize_t i = 0; i < length; i++)
		if (bytes[i])
			return false;
	return true;
}

static unsigned long check_file(const char *directory, unsigned file, bool whole)
{
	char name[4096], bytes[CHUNK];
	unsigned long good = 0;
	snprintf(name, sizeof name, "%s/%u", directory, file);
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	for (int chunk = 0; chunk < CHUNKS; chunk++) {
		size_t length = length_of(chunk);
		ssize_t n = fd < 0 ? 0 : pread(fd, bytes, length, (off_t)chunk * CHUNK);
		bool right = n == (ssize_t)length &&
			     job_wrong(bytes, length, number(file, chunk)) == length;
		CHECK(right || (!whole && is_empty(bytes, n)));
		good += right;
	}
	if (fd >= 0)
		close(fd);
	return good;
}

/* Only forbidden messages were dropped, and answers that came too late. */
static void check_drops(struct rpc_served served, int lives)
{
	long trespasses = 0;
	for (int life = 0; life < lives; life++)
		trespasses += (job.size - 1) * (end_of(life) == EXIT);
	CHECK(served.dropped >= trespasses);
	CHECK(served.dropped <= trespasses + (long)served.late);
}

static void be_server(int argc, char **argv, const char *directory, int lives)
{
	unsigned long good = 0;
	job_enter(argc, argv);
	rpc_serve(directory, job.size - 1);
	for (int rank = 1; rank < job.size; rank++)
		for (int life = 0; life < lives; life++)
			good += check_file(
				directory, file_of(rank, life), end_of(life) != KILLED);
	struct rpc_served served = rpc_served();
	CHECK(served.writes >= good && served.reads > 0);
	CHECK(lives < 2 || served.lost + served.late > 0);
	check_drops(served, lives);
	job_end("requests to a file server", served.requests);
}

int main(int argc, char **argv)
{
	const char *rank = getenv("PTL_MY_RID"), *words[2] = {NULL, NULL};
	int at = 0;
	for (int i = 1; i < argc && at < 2; i++) {
		if (argv[i][0] == '-')
			i++; /* with its value */
		else
			words[at++] = argv[i];
	}
	CHECK(rank && words[0]);
	int lives = words[1] ? atoi(words[1]) : 5;
	CHECK(lives <= MOST_LIVES && lives % 2 == 1); /* the last one says bye */
	if (atoi(rank) == 0)
		be_server(argc, argv, words[0], lives);
	else
		be_clients(argc, argv, atoi(rank), lives);
	return 0;
}
