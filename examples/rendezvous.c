/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rendezvous - long messages stay with their sender until the receiver fetches them
 *
 *	yod -sz N rendezvous
 *
 * A message should not travel before its receiver has room for it.  Its sender exposes
 * it, with a descriptor that one get may use, and puts an announcement of no bytes:
 * hdr_data is the length of the message, and the match bits are its key.  The receiver
 * makes room and gets the message; GET_END tells the sender that its memory is its own
 * again.  Here each rank sends to the next one, lengths that the receiver does not
 * know.
 */
#include "job.h"

enum { NOTICES = 4, MESSAGES = 5, ROUNDS = 20 };

static ptl_handle_eq_t notices, exposed, fetched;
static ptl_handle_md_t notice;

/* An announcement has no bytes: a descriptor without memory is enough. */
static void open_portal(void)
{
	notices = job_queue(64);
	exposed = job_queue(64);
	fetched = job_queue(64);
	notice = job_bind(NULL, 0, PTL_EQ_NONE);
	ptl_md_t nothing = {.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE,
		.eq_handle = notices};
	job_listen(NOTICES, nothing);
}

/* Expose the message, then announce it.  The get unlinks entry and descriptor. */
static void send_long(unsigned to, ptl_match_bits_t key, void *bytes, ptl_size_t length)
{
	ptl_md_t md = {.start = bytes,
		.length = length,
		.threshold = 1,
		.options = PTL_MD_OP_GET | PTL_MD_EVENT_START_DISABLE,
		.eq_handle = exposed};
	job_append(MESSAGES, key, 0, md, PTL_UNLINK);
	check(PtlPut(notice, PTL_NO_ACK_REQ, job_id(to), NOTICES, 0, key, 0, length),
		"PtlPut");
}

/* Receive the next message that is announced.  The caller frees the result. */
static char *receive_long(ptl_size_t *length)
{
	ptl_event_t ev = job_await(notices, PTL_EVENT_PUT_END);
	ptl_md_t md = {.start = malloc(ev.hdr_data),
		.length = ev.hdr_data,
		.threshold = 1,
		.eq_handle = fetched};
	ptl_handle_md_t mdh;
	expect(md.start != NULL, "no memory");
	check(PtlMDBind(job.ni, md, PTL_UNLINK, &mdh), "PtlMDBind");
	check(PtlGet(mdh, ev.initiator, MESSAGES, 0, ev.match_bits, 0), "PtlGet");
	*length = job_await(fetched, PTL_EVENT_REPLY_END).mlength;
	return md.start;
}

static ptl_size_t length_of(unsigned rank, int round)
{
	return (ptl_size_t)(rank + 1) * 1000 + (ptl_size_t)round * 70001;
}

static void play(int round)
{
	unsigned next = (job.rank + 1) % job.size;
	unsigned before = (job.rank + job.size - 1) % job.size;
	ptl_size_t mine = length_of(job.rank, round), got;
	char *bytes = malloc(mine);
	expect(bytes != NULL, "no memory");
	memset(bytes, (int)job.rank + round, mine);
	send_long(next, (ptl_match_bits_t)round, bytes, mine);
	char *came = receive_long(&got);
	expect(got == length_of(before, round), "length");
	for (ptl_size_t i = 0; i < got; i++)
		expect(came[i] == (char)((int)before + round), "bytes");
	free(came);
	job_await(exposed, PTL_EVENT_GET_END);
	free(bytes);
}

int main(void)
{
	job_start();
	open_portal();
	job_meet();
	for (int round = 0; round < ROUNDS; round++)
		play(round);
	if (job.rank == 0)
		printf("%u ranks sent %d long messages each\n", job.size, ROUNDS);
	job_end();
	return 0;
}
