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

static const size_t lengths[] = {0, 1, 8, 15, 16, 17, 63, 64, 65, 80, 81, 4096,
	16384 - 100, 16384, 16384 + 100, 65536, (1 << 20) + 3, 5 << 20};
#define NLENGTHS (sizeof lengths / sizeof *lengths)
#define LONGEST  (5u << 20)

/* Expected fields of an event, except its kind; tests/spec checks all of them. */
struct want {
	ptl_match_bits_t bits;
	size_t length, offset;
	ptl_handle_md_t md;
	ptl_hdr_data_t hdr;
};

static void check_event(
	const ptl_event_t *ev, ptl_event_kind_t kind, const struct want *w)
{
	CHECK_EQ(ev->type, kind);
	CHECK_EQ(ev->match_bits, w->bits);
	CHECK_EQ(ev->rlength, w->length);
	CHECK_EQ(ev->mlength, w->length);
	CHECK_EQ(ev->offset, w->offset);
	CHECK_EQ(ev->hdr_data, w->hdr);
	CHECK_EQ(ev->md_handle, w->md);
	CHECK_EQ(ev->ni_fail_type, PTL_NI_OK);
}

/* Every node sends to every node, itself included. */
struct mesh {
	unsigned rank, size;
	ptl_handle_ni_t ni;
	ptl_handle_eq_t target_eq;
	ptl_handle_eq_t eq[4]; /* indexed by peer */
	unsigned char *out;
	unsigned char *in[4];
	ptl_handle_me_t me[4];
	ptl_handle_md_t at[4];
	ptl_seq_t sequence;
};

static struct mesh mesh_new(unsigned rank, unsigned size, ptl_handle_ni_t ni)
{
	struct mesh m = {.rank = rank, .size = size, .ni = ni};
	m.target_eq = eq_new(ni, 64);
	m.out = node_pattern(LONGEST, rank);
	for (unsigned i = 0; i < size; i++) {
		m.eq[i] = eq_new(ni, 16);
		m.in[i] = node_alloc(LONGEST + 64);
	}
	return m;
}

static void mesh_post(struct mesh *m, size_t len, unsigned op)
{
	for (unsigned i = 0; i < m->size; i++) {
		void *start = op == PTL_MD_OP_PUT ? m->in[i] : m->out;
		m->me[i] = me_last(m->ni, PT, 100 + i, 0, PTL_RETAIN);
		CHECK_OK(PtlMDAttach(m->me[i], md_of(start, len, op, m->target_eq),
			PTL_RETAIN, &m->at[i]));
	}
	sync_nodes();
}

static void mesh_unpost(struct mesh *m)
{
	sync_nodes();
	for (unsigned i = 0; i < m->size; i++) {
		CHECK_OK(PtlMEUnlink(m->me[i]));
		expect_empty(m->eq[i]);
	}
	expect_empty(m->target_eq);
}

/* Expect a START and an END from every node, each START first (P3.3 3.11.2). */
static void mesh_serve(struct mesh *m, size_t len, bool put)
{
	ptl_seq_t link[4] = {0};
	unsigned state[4] = {0};
	for (unsigned i = 0; i < 2 * m->size; i++) {
		ptl_event_t ev = next_event(m->target_eq);
		unsigned who = (unsigned)ev.match_bits - 100;
		CHECK(who < m->size);
		const struct want w = {.bits = 100 + who,
			.length = len,
			.md = m->at[who],
			.hdr = put ? 1000 * who + len : 0};
		unsigned start = put ? PTL_EVENT_PUT_START : PTL_EVENT_GET_START;
		unsigned end = put ? PTL_EVENT_PUT_END : PTL_EVENT_GET_END;
		check_event(&ev, state[who] ? end : start, &w);
		CHECK(state[who] < 2);
		if (state[who]++)
			CHECK_EQ(ev.link, link[who]);
		link[who] = ev.link;
		if (m->sequence)
			CHECK_EQ(ev.sequence, (ptl_seq_t)(m->sequence + 1));
		m->sequence = ev.sequence;
		if (put && state[who] == 2)
			CHECK_PATTERN(m->in[who], 0, len, who);
	}
}

static void mesh_clear(struct mesh *m, size_t len)
{
	for (unsigned i = 0; i < m->size; i++)
		memset(m->in[i], 0, len);
}

/* P3.3 3.13.2: SEND_START, SEND_END, ACK */
static void put_with_ack(struct mesh *m, size_t len)
{
	ptl_handle_md_t h[4];
	mesh_clear(m, len);
	mesh_post(m, len, PTL_MD_OP_PUT);
	for (unsigned i = 0; i < m->size; i++) {
		h[i] = bind_md(m->ni, md_of(m->out, len, 0, m->eq[i]));
		CHECK_OK(PtlPut(h[i], PTL_ACK_REQ, id_of(m->ni, i), PT, 0, 100 + m->rank,
			77, 1000 * m->rank + len));
	}
	mesh_serve(m, len, true);
	for (unsigned i = 0; i < m->size; i++) {
		struct want w = {.bits = 100 + m->rank,
			.length = len,
			.md = h[i],
			.hdr = 1000 * m->rank + len};
		ptl_event_t start = next_event(m->eq[i]);
		check_event(&start, PTL_EVENT_SEND_START, &w);
		ptl_event_t end = next_event(m->eq[i]);
		check_event(&end, PTL_EVENT_SEND_END, &w);
		CHECK_EQ(end.link, start.link);
		ptl_event_t ack = next_event(m->eq[i]);
		w.offset = 77;
		w.hdr = 0;
		check_event(&ack, PTL_EVENT_ACK, &w);
		CHECK(ack.link != start.link);
		CHECK_OK(PtlMDUnlink(h[i]));
	}
	mesh_unpost(m);
}

/* P3.3 3.13: no SEND events, REPLY_START, REPLY_END */
static void get_whole(struct mesh *m, size_t len)
{
	ptl_handle_md_t h[4];
	mesh_clear(m, len);
	mesh_post(m, len, PTL_MD_OP_GET);
	for (unsigned i = 0; i < m->size; i++) {
		h[i] = bind_md(m->ni, md_of(m->in[i], len, 0, m->eq[i]));
		CHECK_OK(PtlGet(h[i], id_of(m->ni, i), PT, 0, 100 + m->rank, 55));
	}
	mesh_serve(m, len, false);
	for (unsigned i = 0; i < m->size; i++) {
		const struct want w = {
			.bits = 100 + m->rank, .length = len, .offset = 55, .md = h[i]};
		ptl_event_t start = next_event(m->eq[i]);
		check_event(&start, PTL_EVENT_REPLY_START, &w);
		ptl_event_t end = next_event(m->eq[i]);
		check_event(&end, PTL_EVENT_REPLY_END, &w);
		CHECK_EQ(end.link, start.link);
		CHECK_PATTERN(m->in[i], 0, len, i);
		CHECK_OK(PtlMDUnlink(h[i]));
	}
	mesh_unpost(m);
}

static void every_length(struct mesh *m, void (*move)(struct mesh *m, size_t len))
{
	/* Quick runs leave long ones to test_flow.c; two nodes have all others. */
	bool quick = getenv("P3_QUICK") != NULL;
	unsigned step = quick && m->size > 2 ? 3 : 1;
	for (unsigned again = 0; again < (quick ? 1 : 3); again++)
		for (unsigned i = 0; i < NLENGTHS; i += step)
			if (!quick || lengths[i] <= 20000)
				move(m, lengths[i]);
}

static void put_each_length(NODE_ARGS)
{
	struct mesh m = mesh_new(rank, size, ni);
	every_length(&m, put_with_ack);
}

static void get_each_length(NODE_ARGS)
{
	struct mesh m = mesh_new(rank, size, ni);
	every_length(&m, get_whole);
}

CASE(puts_of_every_length_arrive)
{
	for (unsigned nodes = 1; nodes <= 4; nodes *= 2)
		run_nodes(nodes, put_each_length, NULL);
}

CASE(gets_of_every_length_arrive)
{
	for (unsigned nodes = 1; nodes <= 4; nodes *= 2)
		run_nodes(nodes, get_each_length, NULL);
}

/* ---- long transfers ---- */

/* Lengths around which another mover, another slice or another piece begins; often
 * enough that either mover has its turns. */
NODES_CASE(long_puts_arrive_by_either_mover, 2)
{
	static const size_t around[] = {16336, 65536, 131072, 262144, 524288, 1 << 20};
	enum { MOST = (1 << 20) + 64 };
	ptl_handle_eq_t eq = eq_new(ni, 8);
	unsigned char *buf = node_alloc(MOST);
	if (rank == 1)
		post_md(ni, PT, 1, md_of(buf, MOST, MD_ANY | MD_QUIET, eq));
	sync_nodes();
	for (unsigned i = 0; i < 6 * rounds(40); i++) {
		size_t len = around[i % 6] + i % 3 - 1;
		if (rank == 0) {
			fill_pattern(buf, len, i);
			ptl_handle_md_t md = bind_md(ni, md_of(buf, len, 0, eq));
			CHECK_OK(put_to(ni, md, 1, PT, 1, PTL_ACK_REQ));
			expect_pair(eq, PTL_EVENT_SEND_START);
			CHECK_EQ(expect(eq, PTL_EVENT_ACK).mlength, len);
			CHECK_OK(PtlMDUnlink(md));
		}
		sync_nodes();
		if (rank == 1) {
			CHECK_PATTERN(buf, 0, len, i);
			CHECK_ZERO(buf + len, MOST - len);
			memset(buf, 0, len);
		}
		sync_nodes();
	}
}

static uint64_t moved_by(ptl_handle_ni_t ni)
{
	ptlx_stats_t st = stats_of(ni);
	return st.moved_bulk_bytes + st.moved_cma_bytes;
}

static p3_a32 overtaken; /* soon enough in some round; both ranks see it after the
			  * round */

/* Measure the part of a long put that has been moved when the short one behind it
 * arrives. */
static void overtake(
	unsigned rank, ptl_handle_ni_t ni, ptl_handle_eq_t eq, ptl_handle_md_t md[2])
{
	enum { SOON = 32 << 20 };
	uint64_t before = moved_by(ni);
	sync_nodes();
	if (rank == 0) {
		CHECK_OK(put_to(ni, md[0], 1, PT, 1, PTL_NO_ACK_REQ));
		CHECK_OK(put_to(ni, md[1], 1, PT, 2, PTL_NO_ACK_REQ));
		for (int i = 0; i < 4; i++)
			next_event(eq);
	} else {
		ptl_event_t first = expect(eq, PTL_EVENT_PUT_END);
		if (first.mlength == 8 && moved_by(ni) - before < SOON)
			p3_set(&overtaken, 1);
		expect(eq, PTL_EVENT_PUT_END);
	}
	sync_nodes();
}

/* A pass moves a slice, so a short message comes between.  It does not in every round:
 * the sender may lose its CPU between the two, or the reader its own.  Where all is
 * slow (P3_QUICK) only the data count. */
NODES_CASE(short_put_overtakes_a_long_one, 2)
{
	enum { LONG = 64 << 20 };
	ptl_handle_eq_t eq = eq_new(ni, 16);
	unsigned char *buf = node_alloc(LONG);
	ptl_handle_md_t md[2];
	const unsigned least = rounds(12), most = getenv("P3_QUICK") ? least : 200;
	for (unsigned i = 0; i < 2; i++) {
		ptl_md_t d = md_of(buf, i ? 8 : LONG, MD_ANY, eq);
		d.options |= PTL_MD_EVENT_START_DISABLE;
		md[i] = rank ? post_md(ni, PT, i + 1, d)
			     : bind_md(ni, md_of(buf, d.length, 0, eq));
	}
	for (unsigned i = 0; i < least || (i < most && !p3_get(&overtaken)); i++)
		overtake(rank, ni, eq, md);
	CHECK(p3_get(&overtaken) || most == least);
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
	const char *cma = getenv("PTL3_MOVER");
	setenv("PTL3_MOVER", "window", 1);
	run_nodes(2, gets_take_turns_node, NULL);
	if (cma)
		setenv("PTL3_MOVER", cma, 1);
	else
		unsetenv("PTL3_MOVER");
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
