/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unexpected - receives with tags, as in MPI: messages may come before their receive
 *
 *	yod -sz 2 unexpected
 *
 * The match list has a mark in it:	posted receives | mark | block | block
 *
 * A message whose receive is posted meets it.  Others fall through to a block, lie
 * there one behind the other, and are found by their events.  A block with less than
 * max_size bytes of room is unlinked, and a new one goes to the end.  PtlMEMDPost posts
 * a receive only if there is no unread event, which might be that of its message.
 */
#include "job.h"

enum { PORTAL = 4, THIRD = 40, TAGS = 3 * THIRD, LONGEST = 2000 };
enum { BLOCKS = 4, BLOCK = 64 * LONGEST };

static ptl_handle_eq_t eq;
static ptl_handle_me_t mark;
static char bytes[TAGS][LONGEST], block[BLOCKS][BLOCK];
static const char *early[TAGS]; /* place of the message, if it is in a block */
static int had, had_early, blocks;

static void add_block(void)
{
	ptl_md_t md = {.start = block[blocks++],
		.length = BLOCK,
		.threshold = PTL_MD_THRESH_INF,
		.max_size = LONGEST,
		.options = PTL_MD_OP_PUT | PTL_MD_MAX_SIZE | PTL_MD_EVENT_START_DISABLE,
		.eq_handle = eq};
	job_append(PORTAL, 0, ~(ptl_match_bits_t)0, md, PTL_UNLINK);
}

/* Take one event: a receive is complete, a message came early, or a block is full. */
static void take_event(void)
{
	ptl_event_t ev;
	check(PtlEQWait(eq, &ev), "PtlEQWait");
	if (ev.type == PTL_EVENT_UNLINK && ev.md.length == BLOCK)
		add_block();
	else if (ev.type == PTL_EVENT_PUT_END && ev.md.length == BLOCK)
		early[ev.match_bits] = (char *)ev.md.start + ev.offset;
	else
		had += ev.type == PTL_EVENT_PUT_END;
}

/* Receive a message: copy it if it has come, otherwise post the receive. */
static void receive(int tag)
{
	ptl_md_t md = {.start = bytes[tag],
		.length = LONGEST,
		.threshold = 1,
		.options = PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE,
		.eq_handle = eq};
	ptl_handle_me_t me;
	while (!early[tag]) {
		int rc = PtlMEMDPost(job.ni, mark, job_anyone, (ptl_match_bits_t)tag, 0,
			PTL_UNLINK, PTL_INS_BEFORE, md, PTL_UNLINK, &me, NULL, eq);
		if (rc == PTL_OK)
			return;
		expect(rc == PTL_MD_NO_UPDATE, "PtlMEMDPost");
		take_event();
	}
	memcpy(bytes[tag], early[tag], LONGEST);
	had++;
	had_early++;
}

/* Receive all messages: one third came before any receive, one third comes while
 * receives are posted, and one third afterwards. */
static void receive_all(void)
{
	job_meet();
	for (int i = 0; i < TAGS; i++)
		receive(i * 7 % TAGS);
	job_meet();
	while (had < TAGS)
		take_event();
	for (int i = 0; i < TAGS * LONGEST; i++)
		expect(bytes[i / LONGEST][i % LONGEST] == i / LONGEST, "bytes");
	expect(had_early >= THIRD && had_early <= 2 * THIRD, "how many were early");
	printf("%d messages; %d came before they were asked for\n", had, had_early);
}

/* Send messages, and wait until they are there. */
static void send_third(ptl_handle_md_t md, ptl_size_t from)
{
	for (ptl_size_t i = from; i < from + THIRD; i++)
		check(PtlPutRegion(md, i * LONGEST, LONGEST, PTL_ACK_REQ, job_id(1),
			      PORTAL, 0, i, 0, 0),
			"PtlPutRegion");
	for (int i = 0; i < THIRD; i++)
		job_await(eq, PTL_EVENT_ACK);
}

static void send_all(void)
{
	ptl_handle_md_t md = job_bind(bytes, sizeof bytes, eq);
	for (int i = 0; i < TAGS * LONGEST; i++)
		bytes[i / LONGEST][i % LONGEST] = (char)(i / LONGEST);
	send_third(md, 0);
	job_meet();
	send_third(md, THIRD);
	job_meet();
	send_third(md, 2 * THIRD);
}

int main(void)
{
	job_start();
	job_want(job.size == 2, "2 ranks, as in yod -sz 2 unexpected");
	eq = job_queue(1024);
	check(PtlMEAttach(
		      job.ni, PORTAL, job_anyone, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &mark),
		"PtlMEAttach");
	add_block();
	add_block();
	job_meet();
	(job.rank == 0 ? send_all : receive_all)();
	job_end();
	return 0;
}
