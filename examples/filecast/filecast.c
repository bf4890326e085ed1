/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * filecast - copy a file to all ranks of a job
 *
 *	yod -sz N filecast FILE OUTDIR
 *
 * Rank 0 reads FILE; every rank writes OUTDIR/<rank>.  The file goes down a binomial
 * tree in chunks, which every rank forwards while more are coming, through a ring of
 * SLOTS chunks in each rank, for any length of the file.
 *
 * A chunk passes through a slot of the ring in this order:
 *	have	it is there: put by the parent, or read from the file (rank 0)
 *	sent	it is on its way to child i, which had given credit
 *	eaten	it is written to the copy, and in the digest
 *	retired	eaten, and all children's SEND_ENDs have come: the slot is free, and the
 *		parent gets credit for one more chunk
 * All are counts of chunks from the first one on.  Notes are puts without bytes: their
 * match bits tell the kind, and the header data a number.  A rank that fails says why
 * and exits; then yod ends the job, and the copies are worth nothing.
 */
#include "../job.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SLOTS = 8, CHUNK = 256 << 10, CHILDREN = 10, DIGEST = 32 };
enum { DATA = 4, NOTES = 5, REPORTS = 6 }; /* portals */
enum { LENGTH, CREDIT };                   /* notes: bytes of the file; chunks in all */

struct report {
	uint64_t length;
	uint8_t digest[DIGEST];
};

static char ring[SLOTS * CHUNK];
static struct report *reports, mine; /* of all ranks, at rank 0; of this rank */
static ptl_handle_eq_t eq;
static ptl_handle_md_t ring_out, notes_out;
static unsigned parent, nchildren, child[CHILDREN];
static uint64_t length, chunks, have, eaten, retired;
static uint64_t sent[CHILDREN], credit[CHILDREN];
static unsigned unsent[SLOTS], nreports;
static bool known, is_there[SLOTS];
static int source = -1, copy = -1;
static const char *source_name;
static char copy_name[4096];
static double begun;

__attribute__((format(printf, 1, 2), noreturn)) static void fail(const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	fprintf(stderr, "filecast: rank %u: ", job.rank);
	vfprintf(stderr, fmt, args);
	fprintf(stderr, "\n");
	va_end(args);
	exit(1);
}

/* ---- files ---- */

static void open_source(void)
{
	struct stat st;
	source = open(source_name, O_RDONLY | O_CLOEXEC);
	if (source < 0 || fstat(source, &st))
		fail("%s: cannot be opened: %s; expected a file that rank 0 can read",
			source_name, strerror(errno));
	if (!S_ISREG(st.st_mode))
		fail("%s: is no regular file; expected one, whose length is known; copy "
		     "it to one",
			source_name);
	length = (uint64_t)st.st_size;
}

static void open_copy(const char *dir)
{
	struct stat st, other;
	if (mkdir(dir, 0777) && errno != EEXIST)
		fail("%s: cannot be made: %s; expected a directory, or a name in one; "
		     "make it, or choose another OUTDIR",
			dir, strerror(errno));
	int n = snprintf(copy_name, sizeof copy_name, "%s/%u", dir, job.rank);
	if (n >= (int)sizeof copy_name)
		fail("OUTDIR has %d characters, expected less than %zu", n,
			sizeof copy_name);
	copy = open(copy_name, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (copy < 0 || fstat(copy, &st))
		fail("%s: cannot be created: %s; expected a directory one may write in; "
		     "choose another OUTDIR",
			copy_name, strerror(errno));
	if (!stat(source_name, &other) && st.st_dev == other.st_dev &&
		st.st_ino == other.st_ino)
		fail("%s: is FILE itself; choose another OUTDIR", copy_name);
	if (S_ISREG(st.st_mode) && ftruncate(copy, 0))
		fail("%s: cannot be emptied: %s; remove it", copy_name, strerror(errno));
}

static void read_chunk(char *at, uint64_t from, uint32_t bytes)
{
	for (ssize_t n; bytes; at += n, from += (uint64_t)n, bytes -= (uint32_t)n) {
		n = pread(source, at, bytes, (off_t)from);
		if (n == 0)
			fail("%s: ends at byte %llu, expected %llu; do not change it "
			     "meanwhile",
				source_name, (unsigned long long)from,
				(unsigned long long)length);
		if (n < 0 && errno != EINTR)
			fail("%s: cannot be read at byte %llu: %s; check its disk",
				source_name, (unsigned long long)from, strerror(errno));
		n = n < 0 ? 0 : n;
	}
}

static void write_chunk(const char *at, uint32_t bytes)
{
	for (ssize_t n; bytes;
		at += n, mine.length += (uint64_t)n, bytes -= (uint32_t)n) {
		n = write(copy, at, bytes);
		if (n < 0 && errno != EINTR)
			fail("%s: cannot be written at byte %llu: %s; make room, or "
			     "choose another OUTDIR",
				copy_name, (unsigned long long)mine.length,
				strerror(errno));
		n = n < 0 ? 0 : n;
	}
}

static void hash(EVP_MD_CTX *sha, const char *at, uint32_t bytes)
{
	if (!EVP_DigestUpdate(sha, at, bytes))
		fail("libcrypto fails at sha256; install another");
}

/* ---- the network ---- */

/* Clearing the lowest bit of a rank gives its parent. */
static void find_family(void)
{
	unsigned low = job.rank ? job.rank & -job.rank : 1u << CHILDREN;
	parent = job.rank & (job.rank - 1);
	for (unsigned bit = low >> 1; bit; bit >>= 1)
		if (job.rank + bit < job.size) {
			credit[nchildren] = SLOTS;
			child[nchildren++] = job.rank + bit;
		}
}

static void open_portals(void)
{
	ptl_md_t md = {.start = ring,
		.length = sizeof ring,
		.threshold = PTL_MD_THRESH_INF,
		.options =
			PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE,
		.eq_handle = eq = job_queue(8192)};
	job_listen(DATA, md);
	md.start = reports = calloc(job.size, sizeof *reports);
	if (!reports)
		fail("no memory for %u reports; use fewer ranks", job.size);
	md.length = job.size * sizeof *reports;
	job_listen(REPORTS, md);
	md.length = 0;
	job_listen(NOTES, md);
	ring_out = job_bind(ring, sizeof ring, eq);
	notes_out = job_bind(NULL, 0, PTL_EQ_NONE);
}

static void tell(unsigned rank, ptl_match_bits_t note, uint64_t number)
{
	check(PtlPut(notes_out, PTL_NO_ACK_REQ, job_id(rank), NOTES, 0,
		      note << 32 | job.rank, 0, number),
		"PtlPut");
}

static void begin(uint64_t bytes)
{
	length = bytes;
	chunks = (length + CHUNK - 1) / CHUNK;
	known = true;
	for (unsigned i = 0; i < nchildren; i++)
		tell(child[i], LENGTH, length);
}

static void on_note(const ptl_event_t *ev)
{
	if (ev->match_bits >> 32 == LENGTH)
		begin(ev->hdr_data);
	for (unsigned i = 0; i < nchildren; i++)
		if (ev->match_bits == ((uint64_t)CREDIT << 32 | child[i]))
			credit[i] = ev->hdr_data;
}

/* ENDs may overtake each other: a chunk counts when all before it are there. */
static void count_arrived(void)
{
	for (; is_there[have % SLOTS]; have++) {
		is_there[have % SLOTS] = false;
		unsent[have % SLOTS] = nchildren;
	}
}

/* Give the parent credit, in one note for two chunks or more. */
static void retire(void)
{
	static uint64_t told = SLOTS;
	while (retired < eaten && !unsent[retired % SLOTS])
		retired++;
	if (job.rank && retired + SLOTS >= told + 2)
		tell(parent, CREDIT, told = retired + SLOTS);
}

/* Wait for one event. */
static void take(void)
{
	ptl_event_t ev;
	check(PtlEQWait(eq, &ev), "PtlEQWait");
	if (ev.ni_fail_type != PTL_NI_OK)
		fail("a message could not be delivered: a rank is gone; start the job "
		     "again");
	if (ev.type == PTL_EVENT_SEND_END)
		unsent[ev.offset / CHUNK]--;
	else if (ev.type == PTL_EVENT_PUT_END && ev.pt_index == DATA)
		is_there[ev.hdr_data % SLOTS] = true;
	else if (ev.type == PTL_EVENT_PUT_END && ev.pt_index == REPORTS)
		nreports++;
	else if (ev.type == PTL_EVENT_PUT_END)
		on_note(&ev);
	count_arrived();
	retire();
}

/* ---- the broadcast ---- */

static uint32_t length_of(uint64_t chunk)
{
	uint64_t left = length - chunk * CHUNK;
	return left < CHUNK ? (uint32_t)left : CHUNK;
}

/* Read rank 0's next chunks from the file, as far as slots are free. */
static void read_ahead(void)
{
	if (have < chunks && have - retired < SLOTS) {
		read_chunk(ring + have % SLOTS * CHUNK, have * CHUNK, length_of(have));
		is_there[have % SLOTS] = true;
		count_arrived();
	}
}

static bool forward(void)
{
	bool all = true;
	for (unsigned i = 0; i < nchildren; i++) {
		for (; sent[i] < have && sent[i] < credit[i]; sent[i]++) {
			ptl_size_t at = sent[i] % SLOTS * CHUNK;
			check(PtlPutRegion(ring_out, at, length_of(sent[i]),
				      PTL_NO_ACK_REQ, job_id(child[i]), DATA, 0, 0, at,
				      sent[i]),
				"PtlPutRegion");
		}
		all = all && sent[i] == chunks;
	}
	return all;
}

static void eat(EVP_MD_CTX *sha)
{
	const char *at = ring + eaten % SLOTS * CHUNK;
	write_chunk(at, length_of(eaten));
	hash(sha, at, length_of(eaten));
	eaten++;
	retire();
}

static void cast(void)
{
	EVP_MD_CTX *sha = EVP_MD_CTX_new();
	if (!sha || !EVP_DigestInit_ex(sha, EVP_sha256(), NULL))
		fail("libcrypto offers no sha256; install one that does");
	while (!known)
		take();
	while (!forward() || retired < chunks) {
		if (job.rank == 0)
			read_ahead();
		forward();
		if (eaten < have)
			eat(sha);
		else if (job.rank || have == chunks || have - retired == SLOTS)
			take();
	}
	EVP_DigestFinal_ex(sha, mine.digest, NULL);
	EVP_MD_CTX_free(sha);
	if (close(copy))
		fail("%s: cannot be finished: %s; make room, or choose another OUTDIR",
			copy_name, strerror(errno));
}

/* ---- results ---- */

static void report(void)
{
	ptl_handle_md_t md = job_bind(&mine, sizeof mine, PTL_EQ_NONE);
	check(PtlPut(md, PTL_NO_ACK_REQ, job_id(0), REPORTS, 0, 0, job.rank * sizeof mine,
		      0),
		"PtlPut");
	while (job.rank == 0 && nreports < job.size)
		take();
}

static bool agrees(const struct report *r)
{
	return r->length == reports->length &&
	       !memcmp(r->digest, reports->digest, DIGEST);
}

/* Print results, and return whether all is right; lost lines are a failure, too. */
static bool print_results(void)
{
	unsigned differ = 0;
	double took = job_seconds() - begun;
	for (unsigned i = 0; i < job.size; i++) {
		printf("rank %u: %llu bytes sha256 ", i,
			(unsigned long long)reports[i].length);
		for (int k = 0; k < DIGEST; k++)
			printf("%02x", reports[i].digest[k]);
		putchar('\n');
		differ += !agrees(&reports[i]);
	}
	if (differ)
		printf("%u of %u ranks differ from rank 0", differ, job.size);
	else
		printf("all %u ranks agree", job.size);
	printf("; %.3f s, %.1f MB/s\n", took, (double)length / 1e6 / (took + 1e-9));
	if (fflush(stdout))
		fail("the results cannot be printed; expected room on stdout");
	return !differ;
}

int main(int argc, char **argv)
{
	signal(SIGXFSZ, SIG_IGN); /* writes fail instead */
	signal(SIGPIPE, SIG_IGN);
	job_start();
	job_want_arguments(argc == 3, argc,
		"a file and a directory, as in yod -sz 4 filecast FILE OUTDIR");
	source_name = argv[1];
	find_family();
	open_portals();
	if (job.rank == 0)
		open_source();
	open_copy(argv[2]);
	job_meet();
	begun = job_seconds();
	if (job.rank == 0)
		begin(length);
	cast();
	report();
	bool right = job.rank || print_results();
	job_end();
	free(reports);
	return !right;
}
