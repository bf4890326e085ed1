/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pingpong - two ranks throw a message to each other, and measure the time of flight
 *
 *	yod -sz 2 pingpong
 *
 * Each rank has one match entry with one descriptor behind it, into which the other one
 * puts.  With PTL_MD_MANAGE_REMOTE the sender decides where each message lands, here at
 * the start, again and again; without it messages would lie one behind the other.
 */
#include "job.h"

enum { PORTAL = 4, LONGEST = 1 << 20, ROUNDS = 200 };

static unsigned char out[LONGEST], in[LONGEST];
static ptl_handle_eq_t arrivals;
static ptl_handle_md_t sending;

/* Accept puts of any length up to LONGEST, each with one event. */
static void open_portal(void)
{
	ptl_md_t md = {.start = in,
		.length = LONGEST,
		.threshold = PTL_MD_THRESH_INF,
		.options =
			PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE,
		.eq_handle = arrivals = job_queue(16)};
	job_listen(PORTAL, md);
}

static void throw(ptl_size_t length)
{
	check(PtlPutRegion(sending, 0, length, PTL_NO_ACK_REQ, job_id(1 - job.rank),
		      PORTAL, 0, 0, 0, 0),
		"PtlPutRegion");
}

static void catch (ptl_size_t length)
{
	ptl_event_t ev = job_await(arrivals, PTL_EVENT_PUT_END);
	expect(ev.mlength == length, "the length of the message");
}

/* Play the rounds of one length.  Rank 1 throws back the bytes that it has caught, so
 * rank 0 must find its own bytes. */
static void play(ptl_size_t length)
{
	if (job.rank == 0)
		memset(in, 0, length);
	for (ptl_size_t i = 0; i < length && job.rank == 0; i++)
		out[i] = (unsigned char)(i * 7 + length);
	double begun = job_seconds();
	for (int i = 0; i < ROUNDS; i++) {
		if (job.rank == 0)
			throw(length);
		catch (length);
		if (job.rank == 1) {
			if (i == 0)
				memcpy(out, in, length);
			throw(length);
		}
	}
	double half = (job_seconds() - begun) / (2 * ROUNDS);
	if (job.rank == 0) {
		expect(!memcmp(in, out, length), "the bytes that came back");
		printf("%8llu bytes %10.2f us\n", (unsigned long long)length, half * 1e6);
	}
}

int main(void)
{
	job_start();
	job_want(job.size == 2, "2 ranks, as in yod -sz 2 pingpong");
	open_portal();
	/* Without events at the source: the answer tells enough. */
	sending = job_bind(out, LONGEST, PTL_EQ_NONE);
	job_meet();
	for (ptl_size_t length = 1; length <= LONGEST; length *= 8)
		play(length);
	job_end();
	return 0;
}
