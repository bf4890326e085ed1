/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * active - active messages: each message names the function that its target shall run
 *
 *	yod -sz N active
 *
 * Messages of all lengths lie one behind the other in a block, because the offset of
 * the block's descriptor is managed locally.  hdr_data is the index of the function.
 * When a block has less room than the longest message needs, the interface unlinks it,
 * and the next one in the match list takes over.  Events come in order, so the UNLINK
 * event tells that all messages of the block have been read: the block can go to the
 * end of the list again.
 *
 * Here the ranks count words together: rank w % N counts word w.  A sender goes on only
 * when its last WINDOW messages have been answered, so that the blocks never overflow.
 */
#include "job.h"

enum { PORTAL = 4, WINDOW = 8, ROUNDS = 50, WORDS = 64, LONGEST = 64 };
enum { COUNT, COUNTED };

static ptl_handle_eq_t arrivals;
static ptl_size_t block_length;
static char *block[2];
static char word[WORDS][LONGEST]; /* word w is w + 1 times the byte w */
static unsigned count[WORDS], counted, answers, share;
static ptl_handle_md_t words;

static unsigned rank_of(ptl_process_id_t id)
{
	unsigned rank = 0;
	while (job_id(rank).nid != id.nid || job_id(rank).pid != id.pid)
		rank++;
	return rank;
}

static void send(unsigned to, ptl_hdr_data_t function, unsigned w, ptl_size_t length)
{
	check(PtlPutRegion(words, w * LONGEST, length, PTL_NO_ACK_REQ, job_id(to), PORTAL,
		      0, 0, 0, function),
		"PtlPutRegion");
}

static void on_count(unsigned from, const char *bytes, ptl_size_t length)
{
	unsigned w = (unsigned)bytes[0];
	expect(length == w + 1 && bytes[length - 1] == bytes[0], "the bytes of the word");
	count[w]++;
	counted++;
	send(from, COUNTED, 0, 0);
}

static void on_counted(unsigned from, const char *bytes, ptl_size_t length)
{
	(void)from, (void)bytes;
	expect(length == 0, "the length of an answer");
	answers++;
}

static void (*const functions[])(unsigned, const char *, ptl_size_t) = {
	[COUNT] = on_count, [COUNTED] = on_counted};

static void add_block(void *start)
{
	ptl_md_t md = {.start = start,
		.length = block_length,
		.threshold = PTL_MD_THRESH_INF,
		.max_size = LONGEST,
		.options = PTL_MD_OP_PUT | PTL_MD_MAX_SIZE | PTL_MD_EVENT_START_DISABLE,
		.eq_handle = arrivals};
	job_append(PORTAL, 0, 0, md, PTL_UNLINK);
}

static void run_next(void)
{
	ptl_event_t ev;
	check(PtlEQWait(arrivals, &ev), "PtlEQWait");
	if (ev.type == PTL_EVENT_PUT_END)
		functions[ev.hdr_data](rank_of(ev.initiator),
			(char *)ev.md.start + ev.offset, ev.mlength);
	else if (ev.type == PTL_EVENT_UNLINK)
		add_block(ev.md.start);
}

/* Send all words, and serve until all answers and all words of this rank have come: other
 * ranks may still need this rank after its last answer. */
static void count_words(void)
{
	unsigned all = ROUNDS * WORDS, sent = 0;
	while (answers < all || counted < ROUNDS * job.size * share) {
		for (unsigned w = sent % WORDS; sent < all && sent - answers < WINDOW;
			w = ++sent % WORDS)
			send(w % job.size, COUNT, w, w + 1);
		run_next();
	}
}

int main(void)
{
	job_start();
	arrivals = job_queue(4 * (job.size + 1) * WINDOW);
	words = job_bind(word, sizeof word, PTL_EQ_NONE);
	for (unsigned w = 0; w < WORDS; w++) {
		memset(word[w], (int)w, LONGEST);
		share += w % job.size == job.rank;
	}
	block_length = (ptl_size_t)2 * (job.size + 1) * WINDOW * LONGEST;
	add_block(block[0] = malloc(block_length));
	add_block(block[1] = malloc(block_length));
	job_meet();
	count_words();
	job_meet();
	for (unsigned w = 0; w < WORDS; w++)
		expect(count[w] == (w % job.size == job.rank ? ROUNDS * job.size : 0),
			"the count");
	if (job.rank == 0)
		printf("%u ranks counted %d words %u times\n", job.size, WORDS,
			ROUNDS * job.size);
	job_end();
	return 0;
}
