/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lock - a lock in the memory of rank 0 that every rank takes by PtlGetPut
 *
 *	yod -sz N lock
 *
 * The exchange is atomic: of all ranks that put "taken" into the lock's word, one gets
 * "free" back and has the lock.  The lock holder reads a counter, adds one, and writes
 * it back, with other operations between; only the lock keeps two ranks from the same
 * number.  The program of rank 0 does nothing for the others: its interface serves
 * them.
 */
#include "job.h"

enum { PORTAL = 4, LOCK = 0, COUNTER = 1, WORDS = 2, ROUNDS = 200 };
enum { FREE = 0, TAKEN = 1 };

static uint64_t words[WORDS]; /* at rank 0 */
static ptl_handle_eq_t done;

static uint64_t out, in; /* words here, to put from and get into */
static ptl_handle_md_t out_md, in_md;

/* An exchange needs a descriptor that allows both puts and gets. */
static void open_portal(void)
{
	job_listen(PORTAL,
		(ptl_md_t){.start = words,
			.length = sizeof words,
			.threshold = PTL_MD_THRESH_INF,
			.options = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE,
			.eq_handle = PTL_EQ_NONE});
}

static ptl_size_t offset_of(int word)
{
	return (ptl_size_t)word * sizeof words[0];
}

static uint64_t swap(int word, uint64_t value)
{
	out = value;
	check(PtlGetPut(in_md, out_md, job_id(0), PORTAL, 0, 0, offset_of(word), 0),
		"PtlGetPut");
	job_await(done, PTL_EVENT_REPLY_END);
	return in;
}

static uint64_t load(int word)
{
	check(PtlGet(in_md, job_id(0), PORTAL, 0, 0, offset_of(word)), "PtlGet");
	job_await(done, PTL_EVENT_REPLY_END);
	return in;
}

/* Store a word at rank 0.  The ACK tells that the word is there, so that the next lock
 * holder will find it. */
static void store(int word, uint64_t value)
{
	out = value;
	check(PtlPut(out_md, PTL_ACK_REQ, job_id(0), PORTAL, 0, 0, offset_of(word), 0),
		"PtlPut");
	job_await(done, PTL_EVENT_ACK);
}

static void take_lock(void)
{
	while (swap(LOCK, TAKEN) != FREE)
		;
}

static void give_lock(void)
{
	expect(swap(LOCK, FREE) == TAKEN, "the lock was not taken");
}

int main(void)
{
	job_start();
	done = job_queue(64);
	out_md = job_bind(&out, sizeof out, done);
	in_md = job_bind(&in, sizeof in, done);
	if (job.rank == 0)
		open_portal();
	job_meet();
	for (int i = 0; i < ROUNDS; i++) {
		take_lock();
		store(COUNTER, load(COUNTER) + 1);
		give_lock();
	}
	job_meet();
	uint64_t counted = load(COUNTER);
	expect(counted == (uint64_t)job.size * ROUNDS, "the count");
	if (job.rank == 0)
		printf("%u ranks counted to %llu\n", job.size,
			(unsigned long long)counted);
	job_end();
	return 0;
}
