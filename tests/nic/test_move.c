/* SPDX-License-Identifier: BSD-3-Clause */
/* Data movement by each mover: every length class, turns, slow memory. */
#include "nic/cases.h"
#include "lib/node/node.h"
#include "nic/state.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PT 4

/* Lengths of each form of message, and those around which another mover, another slice or
 * another piece begins; often enough that either mover has its turns. */
NODES_CASE(puts_and_gets_of_all_lengths_arrive_by_either_mover, 2)
{
	static const size_t around[] = {
		1, 8, 16, 64, 81, 4096, 16336, 65536, 131072, 262144, 524288, 1 << 20};
	enum { LENGTHS = sizeof around / sizeof *around, MOST = (1 << 20) + 64 };
	ptl_handle_eq_t eq = eq_new(ni, 8);
	unsigned char *buf = node_alloc(MOST);
	if (rank == 1)
		post_md(ni, PT, 1,
			md_of(buf, MOST, MD_ANY | PTL_MD_EVENT_START_DISABLE, eq));
	for (unsigned i = 0; i < LENGTHS * (rounds(40) + 1); i++) {
		size_t len = around[i % LENGTHS] + i / LENGTHS % 3 - 1;
		ptl_handle_md_t md = bind_md(ni, md_of(buf, len, 0, eq));
		sync_nodes();
		if (rank == 0) {
			fill_pattern(buf, len, i);
			CHECK_OK(put_to(ni, md, 1, PT, 1, PTL_ACK_REQ));
			expect_pair(eq, PTL_EVENT_SEND_START);
			CHECK_EQ(expect(eq, PTL_EVENT_ACK).mlength, len);
			memset(buf, 0, len);
			CHECK_OK(get_from(ni, md, 1, PT, 1));
			expect_pair(eq, PTL_EVENT_REPLY_START);
		} else {
			(void)expect(eq, PTL_EVENT_PUT_END);
			(void)expect(eq, PTL_EVENT_GET_END); /* buf may be written */
		}
		sync_nodes();
		CHECK_PATTERN(buf, 0, len, i);
		CHECK_ZERO(buf + len, MOST - len);
		memset(buf, 0, len);
		CHECK_OK(PtlMDUnlink(md));
	}
}

/* Where nodes share a CPU, short messages are copied by registers. */
CASE(few_bytes_are_copied_whole)
{
	unsigned char from[P3_FEW], to[P3_FEW + 2];
	fill_pattern(from, P3_FEW, 1);
	for (size_t len = 0; len <= P3_FEW; len++) {
		memset(to, 0xee, sizeof to);
		p3_region_copy_few((char *)to + 1, (char *)from, len);
		assert_memory_equal(to + 1, from, len);
		assert_true(to[0] == 0xee && to[len + 1] == 0xee);
	}
}

/* Keep TURNS gets under way, and count those that do not end in their turn. */
static void gets_take_turns_node(NODE_ARGS)
{
	enum { TURNS = 16, LONG = 100000, GETS = 400 };
	ptl_handle_eq_t eq = eq_new(ni, 2 * TURNS);
	ptl_handle_md_t md[TURNS];
	if (rank == 1)
		post_md(ni, PT, 1, md_of(node_alloc(LONG), LONG, MD_ANY, PTL_EQ_NONE));
	for (unsigned i = 0; i < TURNS && rank == 0; i++)
		md[i] = bind_md(ni, source_md(node_alloc(LONG), LONG, eq));
	sync_nodes();
	unsigned overtakings = 0;
	for (unsigned begun = 0, ended = 0; rank == 0 && ended < GETS; ended++) {
		for (; begun < GETS && begun < ended + TURNS; begun++)
			CHECK_OK(get_from(ni, md[begun % TURNS], 1, PT, 1));
		overtakings +=
			expect(eq, PTL_EVENT_REPLY_END).md_handle != md[ended % TURNS];
	}
	if (!stats_of(ni).moved_fetched_bytes) /* a wire that fetches needs no window */
		CHECK_EQ(overtakings, 0);
	sync_nodes();
}

/* Where the kernel refuses cross-memory reads, all gets from a node need its window, and
 * take turns: none overtakes another. */
CASE(gets_take_turns)
{
	run_nodes_with("PTL3_MOVER", "window", 2, gets_take_turns_node);
}

/* ---- the word that sends a descriptor to the tails ---- */

struct odd_md {
	unsigned without, with; /* options that differ from the usual ones */
	int threshold;
	bool queue;
	uint32_t odd;
};

static const struct odd_md odd_mds[] = {
	{0, 0, PTL_MD_THRESH_INF, true, 0},
	{0, PTL_MD_TRUNCATE | PTL_MD_MANAGE_REMOTE, PTL_MD_THRESH_INF, true, 0},
	{PTL_MD_OP_PUT, 0, PTL_MD_THRESH_INF, true, P3_MD_ODD_PUT},
	{PTL_MD_OP_GET, 0, PTL_MD_THRESH_INF, true, P3_MD_ODD_GET},
	{PTL_MD_EVENT_START_DISABLE, 0, PTL_MD_THRESH_INF, true, P3_MD_ODD_STARTS},
	{PTL_MD_EVENT_START_DISABLE, 0, PTL_MD_THRESH_INF, false, P3_MD_ODD_QUEUE},
	{0, PTL_MD_EVENT_END_DISABLE, PTL_MD_THRESH_INF, true, P3_MD_ODD_ENDS},
	{0, PTL_MD_EVENT_END_DISABLE, PTL_MD_THRESH_INF, false, P3_MD_ODD_QUEUE},
	{0, PTL_MD_ACK_DISABLE, PTL_MD_THRESH_INF, true, P3_MD_ODD_ACK},
	{0, PTL_MD_IOVEC, PTL_MD_THRESH_INF, true, P3_MD_ODD_IOVEC},
	{0, PTL_MD_MAX_SIZE, PTL_MD_THRESH_INF, true, P3_MD_ODD_MAX_SIZE},
	{0, 0, 1, true, P3_MD_ODD_THRESHOLD},
	{0, 0, 0, true, P3_MD_ODD_THRESHOLD | P3_MD_ODD_INACTIVE},
};

static uint32_t odd_of(ptl_handle_md_t md)
{
	return p3_md_named(p3_nic(p3_node()), md)->odd & ~(uint32_t)P3_MD_ODD_CRAY;
}

/* Each unusual trait of a descriptor has its bit, after a bind and after an update */
NODES_CASE(descriptor_knows_what_is_odd_about_it, 1)
{
	const unsigned usual = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_EVENT_START_DISABLE;
	ptl_handle_eq_t eq = eq_new(ni, 8);
	uint64_t word = 0;
	ptl_md_iovec_t piece = {&word, sizeof word};
	for (unsigned i = 0; i < sizeof odd_mds / sizeof *odd_mds; i++) {
		const struct odd_md *o = &odd_mds[i];
		ptl_md_t was = md_of(&word, sizeof word, usual, eq), d = was;
		d.options = (usual & ~o->without) | o->with;
		d.threshold = o->threshold;
		if (!o->queue)
			d.eq_handle = PTL_EQ_NONE;
		if (o->with & PTL_MD_IOVEC) {
			d.start = &piece;
			d.length = 1;
		}
		ptl_handle_md_t bound = bind_md(ni, d), updated = bind_md(ni, was);
		CHECK_EQ(odd_of(bound), o->odd);
		CHECK_OK(PtlMDUpdate(updated, NULL, &d, PTL_EQ_NONE));
		CHECK_EQ(odd_of(updated), odd_of(bound));
		CHECK_OK(PtlMDUpdate(updated, NULL, &was, PTL_EQ_NONE));
		CHECK_EQ(odd_of(updated), 0);
		CHECK_OK(PtlMDUnlink(bound));
		CHECK_OK(PtlMDUnlink(updated));
	}
	ptl_handle_md_t last = bind_md(ni, (ptl_md_t){.start = &word,
						   .length = sizeof word,
						   .threshold = 1,
						   .options = usual,
						   .eq_handle = eq});
	CHECK_OK(put_to(ni, last, 0, PT, 1, PTL_NO_ACK_REQ));
	CHECK(odd_of(last) & P3_MD_ODD_INACTIVE);
}

/* ---- memory that is slow to read ---- */

#define SLOW 262144u

/* Bytes of node 1.  A thread that reads them waits until node 2 provides them. */
static struct {
	int fd;
	unsigned char *at;
	struct gate *gate; /* of nodes 0 and 2 */
} slow;

/* Return false if the kernel or the user's rights do not allow it. */
static bool make_slow(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	slow.at = mmap(
		NULL, SLOW, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register all = {.range = {(uintptr_t)slow.at, SLOW},
		.mode = UFFDIO_REGISTER_MODE_MISSING};
	slow.fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	return slow.at != MAP_FAILED && slow.fd >= 0 &&
	       ioctl(slow.fd, UFFDIO_API, &api) == 0 &&
	       ioctl(slow.fd, UFFDIO_REGISTER, &all) == 0;
}

static void await_reader(void)
{
	struct uffd_msg msg;
	struct pollfd p = {.fd = slow.fd, .events = POLLIN};
	CHECK_EQ(poll(&p, 1, -1), 1);
	CHECK_EQ(read(slow.fd, &msg, sizeof msg), sizeof msg);
	CHECK_EQ(msg.event, UFFD_EVENT_PAGEFAULT);
}

static void provide(unsigned seed)
{
	struct uffdio_copy copy = {.dst = (uintptr_t)slow.at,
		.src = (uintptr_t)node_pattern(SLOW, seed),
		.len = SLOW};
	CHECK_EQ(ioctl(slow.fd, UFFDIO_COPY, &copy), 0);
}

enum { SLOW_PUT, SLOW_GET, SLOW_END, SLOW_ROUNDS };

/* Node 0 waits for the slow bytes of node 1. */
static void receive_slowly(ptl_handle_ni_t ni, unsigned round)
{
	ptl_sr_value_t drops;
	ptl_handle_eq_t eq = eq_new(ni, 8);
	unsigned char *to = node_alloc(SLOW), *word = node_alloc(8);
	ptl_md_t md = sink_md(to, SLOW, eq);
	post_md(ni, PT, 2, md_of(word, 8, MD_ANY, PTL_EQ_NONE));
	if (round != SLOW_GET)
		post_md(ni, PT, 1, md);
	sync_nodes();
	if (round == SLOW_GET)
		CHECK_OK(PtlGet(bind_md(ni, md), id_of(ni, 1), PT, 0, 1, 0));
	gate_wait(slow.gate);
	if (round == SLOW_END)
		CHECK_OK(PtlNIFini(ni));
	else
		CHECK_OK(PtlNIStatus(ni, PTL_SR_DROP_COUNT, &drops));
	gate_wait(slow.gate);
	if (round == SLOW_END)
		return;
	ptl_event_t ev = next_event(eq);
	while (ev.type == PTL_EVENT_SEND_END)
		ev = next_event(eq);
	CHECK_EQ(ev.type, round == SLOW_GET ? PTL_EVENT_REPLY_END : PTL_EVENT_PUT_END);
	CHECK_EQ(ev.ni_fail_type, PTL_NI_OK);
	CHECK_PATTERN(to, 0, SLOW, round);
}

static void send_slowly(ptl_handle_ni_t ni, unsigned round)
{
	ptl_handle_eq_t eq = eq_new(ni, 8);
	ptl_md_t md = sink_md(slow.at, SLOW, eq);
	if (round == SLOW_GET)
		post_md(ni, PT, 1, md);
	sync_nodes();
	if (round != SLOW_GET)
		CHECK_OK(PtlPut(
			bind_md(ni, md), PTL_NOACK_REQ, id_of(ni, 0), PT, 0, 1, 0, 0));
	(void)next_event(eq);
}

/* Node 2 has nothing to do with the transfer, and exchanges a word with node 0. */
static void be_quick(ptl_handle_ni_t ni, unsigned round)
{
	ptl_handle_eq_t eq = eq_new(ni, 8);
	unsigned char *word = node_pattern(8, 7);
	ptl_md_t md = source_md(word, 8, eq);
	CHECK_EQ(madvise(slow.at, SLOW, MADV_DONTNEED), 0);
	sync_nodes();
	await_reader();
	gate_wait(slow.gate);
	if (round != SLOW_END) {
		CHECK_OK(PtlPut(
			bind_md(ni, md), PTL_ACK_REQ, id_of(ni, 0), PT, 0, 2, 0, 0));
		expect(eq, PTL_EVENT_SEND_END);
		expect(eq, PTL_EVENT_ACK);
	}
	gate_wait(slow.gate);
	provide(round);
}

static void slow_node(NODE_ARGS)
{
	static void (*const act[])(ptl_handle_ni_t, unsigned) = {
		receive_slowly, send_slowly, be_quick};
	act[rank](ni, *(unsigned *)arg);
}

CASE(slow_memory_delays_no_other_process)
{
	if (!make_slow()) {
		fprintf(stderr, "SKIPPED: no userfaultfd for faults of the kernel\n");
		skip();
	}
	slow.gate = gate_new(2);
	for (unsigned round = 0; round < SLOW_ROUNDS; round++)
		run_nodes(3, slow_node, &round);
	gate_free(slow.gate);
	close(slow.fd);
	munmap(slow.at, SLOW);
}

/* Memory that has no pages yet, again and again, so that each mover has its turn. */
NODES_CASE(memory_that_was_never_written_arrives, 2)
{
	enum { PUTS = 20 };
	ptl_handle_eq_t eq = eq_new(ni, PUTS);
	unsigned char *to = node_pattern(SLOW, 1);
	void *from = mmap(
		NULL, SLOW, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(from != MAP_FAILED);
	if (rank)
		post_md(ni, PT, 1, sink_md(to, SLOW, eq));
	sync_nodes();
	ptl_handle_md_t md =
		rank ? PTL_INVALID_HANDLE : bind_md(ni, source_md(from, SLOW, eq));
	for (unsigned i = 0; i < PUTS; i++) {
		if (rank)
			memset(to, 1, SLOW);
		sync_nodes();
		if (rank) {
			expect(eq, PTL_EVENT_PUT_END);
			CHECK_ZERO(to, SLOW);
			continue;
		}
		CHECK_EQ(madvise(from, SLOW, MADV_DONTNEED), 0);
		CHECK_OK(put_to(ni, md, 1, PT, 1, PTL_ACK_REQ));
		expect(eq, PTL_EVENT_SEND_END);
		expect(eq, PTL_EVENT_ACK);
	}
	sync_nodes();
	CHECK_EQ(munmap(from, SLOW), 0);
}

/* Have a put and a get of bytes that cannot be read fail at once. */
static void fail_to_read(ptl_handle_ni_t ni, unsigned rank, void *none)
{
	ptl_handle_eq_t eq = eq_new(ni, 8);
	ptl_md_t from = sink_md(none, SLOW, eq);
	ptl_md_t to = md_of(node_alloc(SLOW), SLOW, MD_ANY, PTL_EQ_NONE);
	to.options |= PTL_MD_EVENT_START_DISABLE;
	post_md(ni, PT, 1, rank ? to : from);
	sync_nodes();
	if (!rank)
		CHECK_OK(PtlPut(
			bind_md(ni, from), PTL_ACK_REQ, id_of(ni, 1), PT, 0, 1, 0, 0));
	else
		to.eq_handle = eq;
	if (rank)
		CHECK_OK(PtlGet(bind_md(ni, to), id_of(ni, 0), PT, 0, 1, 0));
	ptl_event_t ev = next_event(eq);
	while (ev.ni_fail_type == PTL_NI_OK)
		ev = next_event(eq);
	sync_nodes();
}

/* No page of it was ever there. */
NODES_CASE(memory_without_permission_fails, 2)
{
	void *none = mmap(NULL, SLOW, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(none != MAP_FAILED);
	fail_to_read(ni, rank, none);
	CHECK_EQ(munmap(none, SLOW), 0);
}

/* The kernel maps nothing at the second page, unless a program asks for it. */
NODES_CASE(memory_that_is_not_mapped_fails, 2)
{
	fail_to_read(ni, rank, (void *)(uintptr_t)4096);
}
