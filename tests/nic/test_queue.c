/* SPDX-License-Identifier: BSD-3-Clause */
/* Event queues: overflow under readers, several readers, polling, freeing; waits in
 * them that libraries tell. */
#include "nic/cases.h"

#include "lib/node/node.h"
#include "nic/obj/obj.h"
#include "support/hold.h"

#include <sched.h>
#include <string.h>

#define PT 3

/* ---- overflow ---- */

struct lapped {
	ptl_handle_eq_t eq;
	uint64_t n;
	uint64_t read; /* events taken by this reader */
	bool alone;
	p3_a32 *done; /* the last event was read */
};

/* Read up to number n - 1: numbers increase, and DROPPED comes exactly where one is
 * missing. */
static void read_lapped(void *arg)
{
	struct lapped *l = arg;
	ptl_seq_t sequence = 0;
	struct patience p = patience_begin();
	uint64_t next = 0;
	while (!p3_acquire(l->done)) {
		ptl_event_t ev;
		int which;
		int rc = PtlEQPoll(&l->eq, 1, 20, &ev, &which);
		CHECK(!patience_is_over(&p));
		if (rc == PTL_EQ_EMPTY)
			continue;
		CHECK(rc == PTL_OK || rc == PTL_EQ_DROPPED);
		CHECK(ev.hdr_data >= next);
		CHECK_EQ(ev.type, PTL_EVENT_PUT_END);
		if (l->alone)
			CHECK_EQ(rc == PTL_EQ_DROPPED, ev.hdr_data != next);
		if (l->read)
			CHECK_EQ((ptl_seq_t)(ev.sequence - sequence),
				ev.hdr_data - next + 1);
		sequence = ev.sequence;
		next = ev.hdr_data + 1;
		l->read++;
		if (next == l->n)
			p3_release(l->done, 1);
	}
}

static void overflow_while_reading(ptl_handle_ni_t ni, unsigned rank, unsigned nreaders)
{
	unsigned char *buf = node_alloc(64);
	p3_a32 done = 0;
	struct lapped l[2] = {{.eq = eq_new(ni, 4), .n = rounds(50000), .done = &done}};
	if (rank == 1)
		post_md(ni, PT, 1, sink_md(buf, 64, l[0].eq));
	l[0].alone = nreaders == 1;
	l[1] = l[0];
	sync_nodes();
	if (rank == 0) {
		ptl_handle_md_t md = bind_md(ni, md_of(buf, 8, MD_QUIET, PTL_EQ_NONE));
		for (unsigned i = 0; i < l[0].n; i++)
			CHECK_OK(
				PtlPut(md, PTL_NO_ACK_REQ, id_of(ni, 1), PT, 0, 1, 0, i));
	} else {
		struct side *other =
			nreaders == 2 ? side_start(read_lapped, &l[1]) : NULL;
		read_lapped(&l[0]);
		if (other)
			side_join(other);
		CHECK(l[0].read + l[1].read <= l[0].n);
		CHECK(l[0].read + l[1].read >= 4);
	}
	sync_nodes();
}

/* A reader that is overtaken never sees a torn event, nor one twice */
NODES_CASE(overflow_under_a_reader_shows_each_gap, 2)
{
	overflow_while_reading(ni, rank, 1);
}

NODES_CASE(overflow_under_two_readers_stays_in_order, 2)
{
	overflow_while_reading(ni, rank, 2);
}

struct flooded {
	ptl_handle_eq_t eq;
	unsigned waits; /* for each reader */
};

static void wait_in_flood(void *arg)
{
	const struct flooded *f = arg;
	ptl_event_t ev;
	for (unsigned i = 0; i < f->waits; i++) {
		int rc = PtlEQWait(f->eq, &ev);
		CHECK(rc == PTL_OK || rc == PTL_EQ_DROPPED);
	}
}

/* Messages come all the time; each wait returns, and uses no more stack for that. */
static void wait_while_messages_come(
	ptl_handle_ni_t ni, unsigned rank, ptl_size_t count, unsigned readers)
{
	static p3_a32 left;
	struct flooded f = {eq_new(ni, count), rounds(20000)};
	unsigned char *buf = node_alloc(64);
	struct side *side[2];
	p3_set(&left, readers);
	if (rank == 1)
		post_md(ni, PT, 1, sink_md(buf, 64, f.eq));
	sync_nodes();
	ptl_handle_md_t md = bind_md(ni, md_of(buf, 8, MD_QUIET, PTL_EQ_NONE));
	for (unsigned i = 0; rank == 0 && p3_get(&left); i++) {
		int rc = PtlPut(md, PTL_NO_ACK_REQ, id_of(ni, 1), PT, 0, 1, 0, 0);
		CHECK(rc == PTL_OK || rc == PTL_NO_SPACE); /* the reader lags behind */
		if (rc == PTL_NO_SPACE || i % 256 == 0)
			sched_yield();
	}
	for (unsigned i = 0; rank == 1 && i < readers; i++)
		side[i] = side_start_small(wait_in_flood, &f);
	for (unsigned i = 0; rank == 1 && i < readers; i++) {
		side_join(side[i]);
		(void)p3_add32(&left, UINT32_MAX);
	}
	sync_nodes();
}

NODES_CASE(wait_on_an_overflowing_queue_returns, 2)
{
	wait_while_messages_come(ni, rank, 4, 1);
}

NODES_CASE(wait_of_two_readers_returns, 2)
{
	wait_while_messages_come(ni, rank, 1024, 2);
}

struct readers {
	ptl_handle_eq_t eq;
	unsigned n;
	unsigned char *seen; /* number of times that each number was read */
	p3_a32 left;
};

static void read_some(void *arg)
{
	struct readers *r = arg;
	uint64_t last = 0;
	while (p3_acquire(&r->left)) {
		ptl_event_t ev;
		int which;
		int rc = PtlEQPoll(&r->eq, 1, 20, &ev, &which);
		if (rc == PTL_EQ_EMPTY)
			continue;
		CHECK_EQ(rc, PTL_OK);
		CHECK(ev.hdr_data < r->n);
		CHECK(ev.hdr_data + 1 > last); /* each reader sees them in order */
		last = ev.hdr_data + 1;
		r->seen[ev.hdr_data]++;
		(void)p3_add32(&r->left, UINT32_MAX);
	}
}

/* P3.3 3.11: each event goes to one reader */
static void several_readers(ptl_handle_ni_t ni, unsigned rank, unsigned nreaders)
{
	unsigned n = rounds(4000);
	unsigned char *buf = node_alloc(64);
	struct readers r = {.eq = eq_new(ni, 8192), .n = n, .left = n};
	r.seen = node_alloc(n);
	if (rank == 1)
		post_md(ni, PT, 1, sink_md(buf, 64, r.eq));
	sync_nodes();
	if (rank == 0) {
		ptl_handle_md_t md = bind_md(ni, md_of(buf, 8, MD_QUIET, PTL_EQ_NONE));
		for (unsigned i = 0; i < n; i++)
			CHECK_OK(
				PtlPut(md, PTL_NO_ACK_REQ, id_of(ni, 1), PT, 0, 1, 0, i));
	} else {
		struct side *side[3];
		for (unsigned i = 1; i < nreaders; i++)
			side[i] = side_start(read_some, &r);
		read_some(&r);
		for (unsigned i = 1; i < nreaders; i++)
			side_join(side[i]);
		for (unsigned i = 0; i < n; i++)
			CHECK_EQ(r.seen[i], 1);
		expect_empty(r.eq);
	}
	sync_nodes();
}

NODES_CASE(each_event_goes_to_one_of_two_readers, 2)
{
	several_readers(ni, rank, 2);
}

NODES_CASE(each_event_goes_to_one_of_three_readers, 2)
{
	several_readers(ni, rank, 3);
}

/* ---- polling ---- */

static void wait_for_messages(ptl_handle_ni_t ni, uint64_t n)
{
	while (stats_of(ni).msgs_received < n)
		/* pause: between two looks at the counter */
		sleep_ms(1);
}

/* The list may lie in a larger array of queues that have events, too. */
NODES_CASE(poll_takes_no_event_of_a_queue_behind_its_list, 1)
{
	enum { LIST = 2 };
	ptl_handle_eq_t eq[LIST + 1];
	unsigned char *buf = node_alloc(64);
	ptl_handle_md_t md = bind_md(ni, md_of(buf, 8, MD_QUIET, PTL_EQ_NONE));
	ptl_event_t ev;
	int which;
	for (unsigned i = 0; i <= LIST; i++) {
		eq[i] = eq_new(ni, 8);
		post_md(ni, PT, i, sink_md(buf, 64, eq[i]));
	}
	for (unsigned i = 1; i <= 16; i++) {
		CHECK_OK(put_to(ni, md, 0, PT, 0, PTL_NO_ACK_REQ));
		CHECK_OK(put_to(ni, md, 0, PT, LIST, PTL_NO_ACK_REQ));
		wait_for_messages(ni, (uint64_t)2 * i);
		CHECK_OK(PtlEQPoll(eq, LIST, PTL_TIME_FOREVER, &ev, &which));
		CHECK_EQ(which, 0);
		expect(eq[LIST], PTL_EVENT_PUT_END);
	}
}

/* Return the KiB of shared memory that this process has touched, of any page size. */
static uint64_t shared_kib(void)
{
	char line[200];
	uint64_t kib = 0;
	FILE *f = fopen("/proc/self/status", "r");
	CHECK(f != NULL);
	while (fgets(line, sizeof line, f))
		if (strncmp(line, "RssShmem:", 9) == 0 ||
			strncmp(line, "HugetlbPages:", 13) == 0)
			kib += strtoull(strchr(line, ':') + 1, NULL, 10);
	fclose(f);
	return kib;
}

/* The memory of large queues is there while they live, and no longer. */
NODES_CASE(memory_of_large_queues_is_given_back, 1)
{
	enum { LARGE = 1 << 18, KIB = LARGE / 8 };
	uint64_t before = shared_kib();
	for (unsigned i = 0; i < 3; i++) {
		ptl_handle_eq_t eq[2] = {eq_new(ni, LARGE), eq_new(ni, LARGE)};
		unsigned char *buf = node_alloc(8);
		ptl_handle_md_t md = bind_md(ni, md_of(buf, 8, 0, eq[1]));
		CHECK(shared_kib() - before >= 2 * KIB);
		CHECK_OK(PtlEQFree(eq[0]));
		CHECK(shared_kib() - before < KIB + KIB / 2);
		CHECK_OK(put_to(ni, md, 0, PT, 0, PTL_NO_ACK_REQ));
		expect_pair(eq[1], PTL_EVENT_SEND_START);
		CHECK_OK(PtlMDUnlink(md));
		CHECK_OK(PtlEQFree(eq[1]));
		CHECK(shared_kib() - before < KIB / 2);
	}
}

enum { SETS = 5, TURNS = 60 };

/* Fill the queues of `sets` pairs, and poll the pairs in turns. */
static void poll_sets(ptl_handle_ni_t ni, ptl_handle_eq_t eq[SETS][2], ptl_handle_md_t md,
	unsigned sets)
{
	ptl_event_t ev;
	int which;
	unsigned got[SETS][2] = {{0}};
	for (unsigned i = 0; i < 2 * sets * TURNS; i++)
		CHECK_OK(put_to(ni, md, 0, PT, i % (2 * sets), PTL_NO_ACK_REQ));
	wait_for_messages(ni, (uint64_t)sets * (sets + 1) * TURNS);
	for (unsigned i = 0; i < sets * TURNS; i++) {
		CHECK_OK(PtlEQPoll(eq[i % sets], 2, 600000, &ev, &which));
		got[i % sets][which]++;
	}
	for (unsigned i = 0; i < sets; i++) {
		CHECK(got[i][0] > TURNS / 4 && got[i][1] > TURNS / 4);
		for (unsigned q = 0; q < 2; q++)
			for (; got[i][q] < TURNS; got[i][q]++)
				ev = next_event(eq[i][q]);
	}
}

/* Calls for several sets of queues in turns serve all queues of each set. */
NODES_CASE(polls_of_other_queues_starve_no_queue, 1)
{
	ptl_handle_eq_t eq[SETS][2];
	unsigned char *buf = node_alloc(64);
	ptl_handle_md_t md = bind_md(ni, md_of(buf, 8, MD_QUIET, PTL_EQ_NONE));
	for (unsigned i = 0; i < 2 * SETS; i++) {
		eq[i / 2][i % 2] = eq_new(ni, 2 * TURNS);
		post_md(ni, PT, i, sink_md(buf, 64, eq[i / 2][i % 2]));
	}
	for (unsigned sets = 1; sets <= SETS; sets++)
		poll_sets(ni, eq, md, sets);
}

/* ---- freeing ---- */

struct waiter {
	ptl_handle_eq_t eq;
	ptl_handle_eq_t other; /* PTL_EQ_NONE: PtlEQWait */
};

static void wait_for_end(void *arg)
{
	struct waiter *w = arg;
	ptl_event_t ev;
	int which;
	if (w->other == PTL_EQ_NONE) {
		CHECK_RC(PtlEQWait(w->eq, &ev), PTL_EQ_INVALID);
		return;
	}
	ptl_handle_eq_t both[2] = {w->other, w->eq};
	CHECK_RC(PtlEQPoll(both, 2, PTL_TIME_FOREVER, &ev, &which), PTL_EQ_INVALID);
}

/* P3.3 3.11: threads that wait on the queue get PTL_EQ_INVALID */
NODES_CASE(free_ends_the_waits_on_a_queue, 2)
{
	for (unsigned i = 0; i < rounds(20); i++) {
		ptl_handle_eq_t keep = eq_new(ni, 8);
		struct waiter w[3] = {
			{eq_new(ni, 8), PTL_EQ_NONE}, {0, PTL_EQ_NONE}, {0, keep}};
		struct side *side[3];
		for (unsigned k = 0; k < 3; k++) {
			w[k].eq = w[0].eq;
			side[k] = side_start(wait_for_end, &w[k]);
		}
		sleep_ms(i % 4 * 15);
		CHECK_OK(PtlEQFree(w[0].eq));
		for (unsigned k = 0; k < 3; k++)
			side_join(side[k]);
		ptl_event_t ev;
		CHECK_RC(PtlEQGet(w[0].eq, &ev), PTL_EQ_INVALID);
		CHECK_RC(PtlEQFree(w[0].eq), PTL_EQ_INVALID);
		CHECK_OK(PtlEQFree(keep));
	}
	sync_nodes();
}

/* A descriptor of a freed queue goes on without one; the ring's memory is reused */
NODES_CASE(free_leaves_descriptors_without_a_queue, 1)
{
	unsigned char *buf = node_alloc(64);
	ptl_handle_eq_t eq = eq_new(ni, 8);
	post_md(ni, PT, 1, md_of(buf, 64, MD_ANY, eq));
	ptl_handle_md_t md = bind_md(ni, md_of(buf, 8, 0, eq));
	CHECK_OK(PtlEQFree(eq));
	for (unsigned i = 0; i < 300; i++) {
		ptl_handle_eq_t again = eq_new(ni, 8);
		CHECK(again != eq);
		CHECK_OK(put_to(ni, md, 0, PT, 1, PTL_ACK_REQ));
		expect_empty(again);
		CHECK_OK(PtlEQFree(again));
	}
	CHECK_EQ(drops_of(ni), 0);
}

/* ---- the memory of freed queues ---- */

#define HOST_ROOM ((uint64_t)4 << 20) /* for rings, and for the host's other needs */

/* Leave little room in the host's memory.  Return its former length. */
static uint64_t limit_host(void)
{
	struct p3_nic *n = p3_nic(p3_node());
	uint64_t len = n->host_seg[0].len;
	n->host_seg[0].len = p3_round_up(n->host_used[0], P3_PAGE) + HOST_ROOM;
	return len;
}

static unsigned queues_that_fit(ptl_handle_ni_t ni, ptl_size_t events)
{
	ptl_handle_eq_t eq[256];
	unsigned n = 0;
	while (n < 256 && PtlEQAlloc(ni, events, PTL_EQ_HANDLER_NONE, &eq[n]) == PTL_OK)
		n++;
	for (unsigned i = 1; i < n; i += 2) /* not in the order of their addresses */
		CHECK_OK(PtlEQFree(eq[i]));
	for (unsigned i = 0; i < n; i += 2)
		CHECK_OK(PtlEQFree(eq[i]));
	return n;
}

/* After queues of one size have filled the memory of the host and were freed, queues of
 * any other size fit, and so do the records of operations under way */
NODES_CASE(freed_queues_serve_every_size, 2)
{
	static const ptl_size_t sizes[] = {200, 1 << 14, 3000, 1, 1 << 14, 500, 200};
	unsigned char *buf = node_alloc(64);
	ptl_handle_eq_t eq = eq_new(ni, 8);
	post_md(ni, PT, 1, md_of(buf, 64, MD_ANY, PTL_EQ_NONE));
	ptl_handle_md_t md = bind_md(ni, source_md(buf, 8, eq));
	sync_nodes();
	if (rank == 0) {
		uint64_t len = limit_host();
		unsigned first = queues_that_fit(ni, 200);
		CHECK(first >= 100);
		for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
			unsigned n = queues_that_fit(ni, sizes[i]);
			/* there are at most 256 queues, and some room stays unused */
			CHECK(n >= 250 || n * sizes[i] * 128 >= HOST_ROOM / 4);
			CHECK(n >= 1);
		}
		CHECK_OK(put_to(ni, md, 1, PT, 1, PTL_ACK_REQ));
		expect(eq, PTL_EVENT_SEND_END);
		expect(eq, PTL_EVENT_ACK);
		CHECK_OK(PtlGet(md, id_of(ni, 1), PT, 0, 1, 0));
		expect(eq, PTL_EVENT_REPLY_END);
		p3_nic(p3_node())->host_seg[0].len = len;
	}
	sync_nodes();
}

#define CHURNED 12

/* Queues that come and go under readers, whose handles may be those of ended queues:
 * each queue's events carry its serial number. */
struct churn {
	p3_a64 handle[CHURNED];
	p3_a64 made[CHURNED]; /* serial number of the queue of that handle; 0: it
			       * changes */
	p3_a32 over;
	p3_a32 taken;
};

static void read_stale(void *arg)
{
	struct churn *c = arg;
	for (unsigned i = 0; !p3_get(&c->over); i++) {
		ptl_event_t ev;
		uint64_t made = p3_acquire(&c->made[i % CHURNED]);
		uint64_t handle = p3_acquire(&c->handle[i % CHURNED]);
		bool same = made && p3_acquire(&c->made[i % CHURNED]) == made;
		int rc = handle ? PtlEQGet(handle, &ev) : PTL_EQ_EMPTY;
		CHECK(rc == PTL_OK || rc == PTL_EQ_EMPTY || rc == PTL_EQ_INVALID ||
			rc == PTL_EQ_DROPPED);
		if (rc == PTL_EQ_EMPTY || rc == PTL_EQ_INVALID)
			continue;
		CHECK_EQ(ev.hdr_data, ev.match_bits);
		CHECK(!same || ev.hdr_data == made);
		p3_add32(&c->taken, 1);
	}
}

static void make_queue(struct churn *c, ptl_handle_ni_t ni, ptl_handle_md_t md,
	unsigned char *buf, unsigned k, uint64_t number)
{
	static const ptl_size_t sizes[] = {1, 32, 33, 200, 1000, 600, 64, 2};
	ptl_handle_eq_t eq;
	CHECK_OK(PtlEQAlloc(ni, sizes[number * 5 / 3 % 8], PTL_EQ_HANDLER_NONE, &eq));
	ptl_md_t in = sink_md(buf, 64, eq);
	in.threshold = 3;
	ptl_handle_me_t me = me_last(ni, PT, number, 0, PTL_UNLINK);
	CHECK_OK(PtlMDAttach(me, in, PTL_UNLINK, NULL));
	p3_release(&c->made[k], 0);
	p3_release(&c->handle[k], eq);
	p3_release(&c->made[k], number);
	for (unsigned i = 0; i < 3; i++)
		CHECK_OK(PtlPut(
			md, PTL_NO_ACK_REQ, id_of(ni, 0), PT, 0, number, 0, number));
}

/* No reader gets an event of a queue whose records lie where those of its own had been */
NODES_CASE(split_and_merged_rings_keep_their_readers_apart, 1)
{
	static struct churn c;
	unsigned char *buf = node_alloc(64);
	memset(&c, 0, sizeof c);
	uint64_t len = limit_host();
	ptl_handle_md_t md = bind_md(ni, md_of(buf, 8, MD_QUIET, PTL_EQ_NONE));
	struct side *side[2];
	for (unsigned i = 0; i < 2; i++)
		side[i] = side_start(read_stale, &c);
	/* At least until a reader had the CPU while there were events. */
	for (uint64_t number = 1; number < rounds(4000) || !p3_get(&c.taken); number++) {
		unsigned k = (unsigned)(number * 7919 % CHURNED);
		if (!p3_get(&c.taken))
			sched_yield();
		if (p3_get(&c.handle[k]))
			CHECK_OK(PtlEQFree(p3_get(&c.handle[k])));
		make_queue(&c, ni, md, buf, k, number);
		/* The room for rings must not fill with pendings, which stay there. */
		if (number % 64 == 0)
			wait_for_messages(ni, 3 * number);
	}
	p3_set(&c.over, 1);
	for (unsigned i = 0; i < 2; i++)
		side_join(side[i]);
	for (unsigned k = 0; k < CHURNED; k++)
		if (p3_get(&c.handle[k]))
			CHECK_OK(PtlEQFree(p3_get(&c.handle[k])));
	CHECK(queues_that_fit(ni, 1 << 13) >= 1);
	p3_nic(p3_node())->host_seg[0].len = len;
}

/* ---- waits that a library tells ---- */

/* Return the wait of a queue as tools see it; eq is 0 if there is none. */
static struct p3_poll shown(ptl_handle_eq_t eq)
{
	const struct p3_poll_line *line =
		(const void *)((const char *)nic()->published.base +
			       nic()->layout.polls_off);
	struct p3_poll poll = {.eq = 0};
	for (unsigned i = 0; i < P3_POLLS; i++)
		if (p3_poll_read(&line[i], &poll) && poll.eq == eq)
			return poll;
	return (struct p3_poll){.eq = 0};
}

/* A wait whose parts all follow from k. */
static int tell(ptl_handle_eq_t eq, uint64_t k)
{
	char library[] = "the name of a library";
	memset(library, 'a' + (int)(k % 26), sizeof library - 1);
	ptlx_wait_t wait = {.struct_size = sizeof wait, .library = library};
	wait.tag = wait.ignore = wait.from_tag = wait.length = k;
	wait.receives = wait.unexpected = wait.from.nid = wait.source.pid = (uint32_t)k;
	return PtlXWaitsFor(eq, &wait);
}

static void check_told(const struct p3_poll *poll)
{
	const uint64_t k = poll->tag;
	CHECK(poll->ignore == k && poll->from_tag == k && poll->length == k);
	CHECK(poll->receives == k && poll->unexpected == k && poll->since_ns);
	CHECK((uint32_t)poll->from == k && poll->source >> 32 == k);
	for (unsigned i = 0; i < P3_POLL_NAME - 1; i++)
		CHECK_EQ(poll->library[i], 'a' + (int)(k % 26));
}

struct teller {
	ptl_handle_eq_t eq;
	p3_a32 got;
};

static void tell_often(void *arg)
{
	struct teller *t = arg;
	for (uint64_t k = 0; k < rounds(5000) || !p3_get(&t->got); k++)
		CHECK_OK(k % 3 ? tell(t->eq, k) : PtlXWaitsFor(t->eq, NULL));
	p3_set(&t->got, UINT32_MAX);
}

NODES_CASE(tools_see_a_told_wait_whole, 1)
{
	struct teller t = {.eq = eq_new(ni, 4)};
	struct side *other = side_start(tell_often, &t);
	while (p3_get(&t.got) != UINT32_MAX) {
		struct p3_poll poll = shown(t.eq);
		uint32_t none = 0;
		if (!poll.eq)
			continue;
		check_told(&poll);
		(void)p3_cas32(&t.got, &none, 1);
	}
	side_join(other);
}

NODES_CASE(told_waits_end_with_their_queues, 1)
{
	ptl_handle_ni_t second;
	ptl_handle_eq_t eq[P3_POLLS + 1];
	CHECK_OK(PtlNIInit(PTL_IFACE_SS, PTL_PID_ANY, NULL, NULL, &second));
	for (unsigned i = 0; i <= P3_POLLS; i++) {
		eq[i] = eq_new(i ? ni : second, 4);
		CHECK_RC(tell(eq[i], i), i < P3_POLLS ? PTL_OK : PTL_NO_SPACE);
		CHECK_EQ(shown(eq[i]).tag, i % P3_POLLS);
	}
	CHECK_OK(tell(eq[1], 100));
	CHECK_EQ(shown(eq[1]).tag, 100);
	CHECK_OK(PtlNIFini(second));
	CHECK(!shown(eq[0]).eq);
	CHECK_RC(tell(eq[0], 1), PTL_EQ_INVALID);
	CHECK_OK(tell(eq[P3_POLLS], 7));
	CHECK_OK(PtlXWaitsFor(eq[1], NULL));
	CHECK_OK(PtlXWaitsFor(eq[1], NULL));
	CHECK(!shown(eq[1]).eq);
	CHECK_OK(PtlEQFree(eq[2]));
	CHECK(!shown(eq[2]).eq);
	CHECK_EQ(shown(eq[P3_POLLS]).tag, 7);
}
