/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fault_node - verified traffic of all kinds between all ranks, one of which may die or
 * stop at any point (tests/fault/walk)
 *
 * With each peer one operation of each kind is under way: put (inline, eager, long from
 * ordinary memory and from the shared heap), get (the same), exchange.  A put is over
 * when its SEND_END, its ACK and the answer of the target's program, which has checked
 * the bytes, are there.  After the quota a rank says goodbye to each peer.
 *
 * A peer is dead when an END says that it failed.  Then all that is pending with it must
 * end within a second, calls that name it must give failed events, and the rest goes on.
 * At the end each operation that was started here has ended, and the node's tables hold
 * nothing of it any more.
 */
#include "../mp/mp.h"
#include "lib/node/node.h"
#include "nic/state.h"
#include "support/pools.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { INLINE, EAGER, LONG, HEAP, GET, GET_LONG, GET_HEAP, SWAP, KINDS, PROBE };

enum { OKAY = KINDS, BYE, HELLO, SMALL, BITS };

/* Events of an operation that are still to come. */
enum { W_SEND = 1, W_ACK = 2, W_OKAY = 4, W_REPLY = 8 };

enum {
	RANKS = 8,          /* most ranks */
	CELLS = 64 * RANKS, /* for exchanges, in front of the bytes of long puts */
	MOST = CELLS + 300000,
	SILENT_MS = 50,
	AWAY_MS = 60
};

struct stream {
	unsigned to;
	enum kind kind;
	unsigned waits; /* W_* */
	bool over;
	uint64_t seq;
	char *in; /* of gets and exchanges */
	ptl_handle_md_t md, out;
};

enum state { ALIVE, DYING, DEAD };

static struct peer {
	enum state state;
	bool said_bye, heard_bye, heard_hello;
	uint64_t heard, ended;    /* ns */
	struct patience patience; /* since it died */
	unsigned failed, refused;
	int open; /* operations of the peer here: STARTs without END */
	struct stream stream[KINDS], probe;
	char *in[KINDS]; /* destination of its puts */
	uint64_t swap[2];
} peer[RANKS];

static ptl_handle_eq_t eq;
static ptl_handle_md_t nobodys; /* descriptor for messages that need no events */
static char *mixed, *heap;
static unsigned quota = 10, victim = RANKS;
static struct patience limit; /* of the whole run */
static p3_a32 over;
static bool told;

/* ---- content of messages ---- */

static ptl_size_t length_of(unsigned from, unsigned to, enum kind kind, uint64_t seq)
{
	static const ptl_size_t least[] = {0, 17, 20000, 20000, 0, 20000, 20000, 8};
	static const ptl_size_t most[] = {
		17, 1000, 300000, 300000, 2000, 300000, 300000, 9};
	uint64_t dice = mp_mix(seq * 65537 + from * 257 + to * 17 + kind);
	ptl_size_t len = least[kind] + dice % (most[kind] - least[kind]);
	return kind == LONG ? CELLS + len : len;
}

/* Return the bytes; long puts of ordinary memory always have the same, behind the
 * exchanges'. */
static ptl_size_t cut_of(unsigned from, unsigned to, enum kind kind, uint64_t seq)
{
	return kind == LONG ? 0 : mp_cut(from, to, seq * KINDS + kind);
}

static bool is_put(enum kind kind)
{
	return kind <= HEAP;
}

static void start(struct stream *s)
{
	uint64_t seq = ++s->seq;
	ptl_size_t len = length_of(mp.rank, s->to, s->kind, seq);
	ptl_size_t cut = cut_of(mp.rank, s->to, s->kind, seq);
	if (is_put(s->kind)) {
		s->waits = W_SEND | W_ACK | W_OKAY;
		mp_put(s->md, cut, len, PTL_ACK_REQ, s->to, s->kind, 0, seq);
		return;
	}
	if (s->kind != SWAP) {
		s->waits = W_REPLY;
		mp_get(s->md, 0, len, s->to, s->kind, cut);
		return;
	}
	s->waits = W_SEND | W_REPLY;
	peer[s->to].swap[0] = seq;
	int rc;
	do
		rc = PtlGetPutRegion(s->md, 0, s->out, 0, 8, mp.id[s->to], MP_PORTAL, 0,
			SWAP, mp.rank * 64, seq);
	while (rc == PTL_NO_SPACE);
	mp_ok(rc);
}

static bool all_over(const struct peer *p)
{
	for (int k = 0; k < KINDS; k++)
		if (!p->stream[k].over)
			return false;
	return true;
}

static void say(unsigned to, unsigned bits, uint64_t word)
{
	mp_put(nobodys, 0, 0, PTL_NO_ACK_REQ, to, bits, 0, word);
}

static void finished(struct stream *s)
{
	if (s->seq < quota) {
		start(s);
		return;
	}
	s->over = true;
	if (all_over(&peer[s->to])) {
		say(s->to, BYE, 0);
		peer[s->to].said_bye = true;
	}
}

/* ---- death ---- */

static bool must_end(const struct stream *s)
{
	return !s->over && (s->waits & (W_SEND | W_REPLY));
}

static bool any_must_end(const struct peer *p)
{
	for (int k = 0; k < KINDS; k++)
		if (must_end(&p->stream[k]))
			return true;
	return false;
}

/* Make calls that name the dead rank. */
static void call_it(struct peer *p, unsigned r)
{
	mp_put(p->probe.md, 0, 8, PTL_ACK_REQ, r, INLINE, 0, 0);
	mp_get(p->probe.md, 0, 8, r, GET, 0);
	mp_ok(PtlGetPutRegion(
		p->probe.md, 0, p->probe.out, 0, 8, mp.id[r], MP_PORTAL, 0, SWAP, 0, 0));
}

static void maybe_buried(struct peer *p, unsigned r)
{
	if (p->state != DYING || any_must_end(p) || p->probe.waits)
		return;
	p->ended = now_ns();
	p->state = DEAD;
	for (int k = 0; k < KINDS; k++)
		p->stream[k].over = true;
	call_it(p, r);
}

static void died(unsigned r)
{
	struct peer *p = &peer[r];
	mp_check(r == victim, "rank %u is said to be dead", r);
	if (p->state != ALIVE)
		return;
	p->state = DYING;
	p->patience = patience_begin();
}

static void stream_failed(struct stream *s, const ptl_event_t *ev)
{
	struct peer *p = &peer[s->to];
	died(s->to);
	mp_check(ev->type == PTL_EVENT_SEND_END || ev->type == PTL_EVENT_REPLY_END,
		"%s fails", PtlEventKindStr(ev->type));
	if (s->kind == PROBE && p->state == DEAD) {
		mp_check(ev->mlength == 0, "%s of the dead has %llu bytes",
			PtlEventKindStr(ev->type), (unsigned long long)ev->mlength);
		p->refused++;
		return;
	}
	p->failed++;
	s->waits = 0;
	s->over = true;
	maybe_buried(p, s->to);
}

/* ---- events ---- */

static unsigned sender(const ptl_event_t *ev)
{
	for (unsigned r = 0; r < mp.size; r++)
		if (mp.id[r].nid == ev->initiator.nid)
			return r;
	mp_fail(__FILE__, __LINE__, "an event of nid %u", ev->initiator.nid);
}

static void look_at_put(unsigned from, enum kind kind, const ptl_event_t *ev)
{
	char *got = peer[from].in[kind];
	uint64_t seq = ev->hdr_data;
	ptl_size_t skip = kind == LONG ? CELLS : 0;
	ptl_size_t cut = cut_of(from, mp.rank, kind, seq);
	mp_check(ev->mlength == length_of(from, mp.rank, kind, seq) &&
			 !memcmp(got + skip, mp_pattern + cut, ev->mlength - skip),
		"rank %u's put %llu of kind %d is wrong", from, (unsigned long long)seq,
		kind);
	memset(got, 0, ev->mlength);
	say(from, OKAY, (uint64_t)kind << 32 | seq);
}

static void came(struct stream *s, unsigned what)
{
	mp_check(s->waits & what, "rank %u: kind %d, %u comes, %u are waited for", s->to,
		s->kind, what, s->waits);
	s->waits &= ~what;
	if (!s->waits && !s->over && s->kind != PROBE && peer[s->to].state == ALIVE)
		finished(s);
	else
		maybe_buried(&peer[s->to], s->to);
}

static void on_put(unsigned from, const ptl_event_t *ev)
{
	struct peer *p = &peer[from];
	if (ev->match_bits < KINDS)
		look_at_put(from, (enum kind)ev->match_bits, ev);
	else if (ev->match_bits == BYE)
		p->heard_bye = true;
	else if (ev->match_bits == HELLO && !p->heard_hello)
		say(from, HELLO, 0);
	else if (ev->match_bits == OKAY)
		came(&p->stream[ev->hdr_data >> 32], W_OKAY);
	p->heard_hello |= ev->match_bits == HELLO;
}

static bool is_start(ptl_event_kind_t type)
{
	return type == PTL_EVENT_PUT_START || type == PTL_EVENT_GET_START ||
	       type == PTL_EVENT_GETPUT_START;
}

static void on_theirs(const ptl_event_t *ev)
{
	unsigned from = sender(ev);
	peer[from].heard = now_ns();
	peer[from].open += is_start(ev->type) ? 1 : -1;
	if (ev->ni_fail_type != PTL_NI_OK) {
		died(from);
		maybe_buried(&peer[from], from);
	} else if (ev->type == PTL_EVENT_PUT_END) {
		on_put(from, ev);
	}
}

static void on_reply(struct stream *s, const ptl_event_t *ev)
{
	ptl_size_t len =
		length_of(mp.rank, s->to, s->kind == PROBE ? SWAP : s->kind, s->seq);
	if (s->kind == SWAP)
		mp_check(peer[s->to].swap[1] == s->seq - 1, "exchange %llu gave %llu",
			(unsigned long long)s->seq,
			(unsigned long long)peer[s->to].swap[1]);
	else if (s->kind != PROBE)
		mp_check(!memcmp(s->in,
				 mp_pattern + cut_of(mp.rank, s->to, s->kind, s->seq),
				 len),
			"get %llu of kind %d from rank %u is wrong",
			(unsigned long long)s->seq, s->kind, s->to);
	mp_check(ev->mlength == len, "a short reply");
	if (s->kind != PROBE)
		memset(s->in, 0, len);
	came(s, W_REPLY);
}

static void on_ours(struct stream *s, const ptl_event_t *ev)
{
	if (ev->ni_fail_type != PTL_NI_OK) {
		stream_failed(s, ev);
		return;
	}
	peer[s->to].heard = now_ns();
	if (ev->type == PTL_EVENT_SEND_END)
		came(s, W_SEND);
	else if (ev->type == PTL_EVENT_ACK)
		came(s, W_ACK);
	else if (ev->type == PTL_EVENT_REPLY_END)
		on_reply(s, ev);
}

static void on_event(const ptl_event_t *ev)
{
	if (ev->md.user_ptr)
		on_ours(ev->md.user_ptr, ev);
	else
		on_theirs(ev);
}

/* ---- the clock ---- */

static bool is_over(const struct peer *p, unsigned r)
{
	if (r == mp.rank)
		return true;
	if (p->state == DEAD)
		return p->refused == 3;
	return p->said_bye && p->heard_bye;
}

static void look_at_clock(struct peer *p, unsigned r)
{
	uint64_t now = now_ns();
	if (p->state == DYING)
		mp_check(!patience_is_over(&p->patience),
			"operations with dead rank %u have not ended", r);
	if (p->state != ALIVE || r == mp.rank)
		return;
	/* A rank that has left in order does not answer, and does not fail. */
	if (now - p->heard < SILENT_MS * 1000000ull || p->probe.waits || is_over(p, r))
		return;
	p->probe.waits = W_REPLY;
	mp_get(p->probe.md, 0, 8, r, SMALL, 0);
}

/* Report the missing events of an operation that should be over. */
static void lose_patience(void)
{
	char text[300] = "";
	for (unsigned r = 0; r < mp.size; r++) {
		const struct peer *p = &peer[r];
		size_t at = strlen(text);
		if (is_over(p, r))
			continue;
		snprintf(text + at, sizeof text - at,
			" rank %u: state %d, bye said %d, heard %d, probe %u, refused "
			"%u;",
			r, p->state, p->said_bye, p->heard_bye, p->probe.waits,
			p->refused);
		for (int k = 0; k < KINDS; k++)
			if (!p->stream[k].over && (at = strlen(text)) < sizeof text)
				snprintf(text + at, sizeof text - at, " %d: %llu, %u", k,
					(unsigned long long)p->stream[k].seq,
					p->stream[k].waits);
	}
	mp_fail(__FILE__, __LINE__, "not over:%s", text);
}

static void tell_progress(void)
{
	bool others = true;
	for (unsigned r = 0; r < mp.size; r++)
		others &= r == mp.rank || r == victim || peer[r].said_bye;
	if (others && !told)
		printf("others %u %llu\n", mp.rank, (unsigned long long)now_ns());
	told |= others;
}

/* One rank takes all events and sleeps on the descriptor of its queue now and then.  If
 * nobody wakes it, the descriptor is still armed, and its own message signals. */
static void sleep_on_descriptor(void)
{
	static unsigned turns;
	struct pollfd p = {.events = POLLIN};
	ptl_event_t ev;
	int rc;
	if (mp.rank != 2 || turns++ % 8)
		return;
	mp_ok(PtlXEQDescriptor(eq, &p.fd));
	do {
		while (mp_poll(eq, &ev))
			on_event(&ev);
	} while ((rc = PtlXEQArm(eq)) == PTL_EQ_IN_USE);
	mp_ok(rc);
	if (poll(&p, 1, 10) == 0)
		say(mp.rank, HELLO, 0);
}

static bool step(void)
{
	ptl_event_t ev;
	bool done = true;
	sleep_on_descriptor();
	if (mp_next_within(eq, 10, &ev))
		on_event(&ev);
	for (unsigned r = 0; r < mp.size; r++) {
		look_at_clock(&peer[r], r);
		done &= is_over(&peer[r], r);
	}
	tell_progress();
	if (!done && patience_is_over(&limit))
		lose_patience();
	return !done;
}

/* ---- beginning ---- */

static ptl_handle_md_t bind(struct stream *s, void *at, ptl_size_t length)
{
	ptl_md_t md = {.start = at,
		.length = length,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_EVENT_START_DISABLE,
		.user_ptr = s,
		.eq_handle = s ? eq : PTL_EQ_NONE};
	ptl_handle_md_t handle;
	mp_ok(PtlMDBind(mp.ni, md, PTL_RETAIN, &handle));
	return handle;
}

static void open_stream(struct stream *s, unsigned to, enum kind kind)
{
	*s = (struct stream){.to = to, .kind = kind};
	if (kind == LONG)
		s->md = bind(s, mixed, MOST);
	else if (kind == HEAP)
		s->md = bind(s, heap, MP_PATTERN);
	else if (is_put(kind))
		s->md = bind(s, mp_pattern, MP_PATTERN);
	if (is_put(kind))
		return;
	s->in = kind == SWAP ? (char *)&peer[to].swap[1] : malloc(MOST);
	mp_check(s->in, "no memory");
	s->md = bind(s, s->in, kind == SWAP ? 8 : MOST);
	s->out = bind(s, &peer[to].swap[0], 8);
}

/* Attach an entry for each kind of a peer's puts. */
static void listen_to(unsigned r)
{
	struct peer *p = &peer[r];
	for (int k = INLINE; k <= HEAP; k++) {
		ptl_handle_me_t me;
		ptl_handle_md_t md;
		p->in[k] = calloc(1, MOST);
		mp_check(p->in[k], "no memory");
		mp_ok(PtlMEAttach(mp.ni, MP_PORTAL, mp.id[r], (ptl_match_bits_t)k, 0,
			PTL_RETAIN, PTL_INS_AFTER, &me));
		mp_ok(PtlMDAttach(me,
			(ptl_md_t){.start = p->in[k],
				.length = MOST,
				.threshold = PTL_MD_THRESH_INF,
				.options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE,
				.eq_handle = eq},
			PTL_RETAIN, &md));
	}
}

static void listen_all(void)
{
	unsigned get = PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | MP_STARTS;
	unsigned put = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | MP_STARTS;
	for (unsigned r = 0; r < mp.size; r++)
		if (r != mp.rank)
			listen_to(r);
	for (unsigned bits = OKAY; bits <= HELLO; bits++)
		mp_attach(bits, NULL, 0, put, eq);
	mp_attach(GET, mp_pattern, MP_PATTERN, get, eq);
	mp_attach(GET_LONG, mp_pattern, MP_PATTERN, get, eq);
	mp_attach(GET_HEAP, heap, MP_PATTERN, get, eq);
	mp_attach(SMALL, mp_pattern, 8, get, mp_queue(4)); /* this queue is never read */
	mp_attach(SWAP, mixed, CELLS, put | PTL_MD_OP_GET, eq);
}

static void open_all(void)
{
	void *block;
	eq = mp_queue(4096);
	mixed = calloc(1, MOST);
	mp_ok(PtlXAlloc(MP_PATTERN, &block));
	heap = block;
	mp_check(mixed, "no memory");
	memcpy(heap, mp_pattern, MP_PATTERN);
	memcpy(mixed + CELLS, mp_pattern, MOST - CELLS);
	nobodys = bind(NULL, NULL, 0);
	for (unsigned r = 0; r < mp.size; r++) {
		for (int k = 0; k < KINDS; k++)
			open_stream(&peer[r].stream[k], r, (enum kind)k);
		peer[r].probe = (struct stream){.to = r, .kind = PROBE};
		peer[r].probe.md = bind(&peer[r].probe, malloc(8), 8);
		peer[r].probe.out = bind(&peer[r].probe, malloc(8), 8);
		peer[r].heard = now_ns();
	}
	listen_all();
}

static uint64_t alive(void)
{
	ptlx_stats_t st = {.struct_size = sizeof st};
	mp_ok(PtlXStats(mp.ni, &st));
	return st.peers_alive;
}

static void greet(void)
{
	for (unsigned r = 0; r < mp.size; r++)
		if (r != victim && r != mp.rank && !peer[r].heard_hello)
			say(r, HELLO, 0);
}

static bool all_greeted(void)
{
	for (unsigned r = 0; r < mp.size; r++)
		if (r != victim && r != mp.rank && !peer[r].heard_hello)
			return false;
	return true;
}

/* Begin without a rank that died before all had come: the others find each other. */
static void begin_without(void)
{
	ptl_event_t ev;
	while (alive() != mp.size - 1)
		sleep_ms(1);
	while (!all_greeted()) {
		greet();
		if (mp_next_within(eq, 10, &ev))
			on_event(&ev);
	}
	peer[victim].state = DEAD;
	peer[victim].refused = 3;
	for (int k = 0; k < KINDS; k++)
		peer[victim].stream[k].over = true;
}

/* Overflow the queue that is never read. */
static void overflow_theirs(void)
{
	static char got[8];
	ptl_handle_md_t md = bind(NULL, got, sizeof got);
	for (unsigned r = 0; r < mp.size; r++)
		for (int k = 0; k < 3 && r != mp.rank && peer[r].state == ALIVE; k++)
			mp_get(md, 0, sizeof got, r, SMALL, 0);
}

/* Rest until the NIC's thread goes to sleep, and then this one. */
static void rest(void)
{
	/* pause: away for so long that NIC threads go to sleep */
	sleep_ms(AWAY_MS);
	uint64_t until = now_ns() + 40000000u;
	ptl_event_t ev;
	while (now_ns() < until)
		if (mp_next_within(eq, 40, &ev))
			on_event(&ev);
}

/* Send to a pid that only yod could know. */
static void ask_for_nobody(void)
{
	ptl_process_id_t who = {.nid = mp.id[mp.rank].nid, .pid = 9};
	mp_ok(PtlPut(nobodys, PTL_NO_ACK_REQ, who, MP_PORTAL, 0, HELLO, 0, 0));
}

static void begin(void)
{
	int rc = PtlXBarrier();
	if (rc == PTL_FAIL)
		begin_without();
	else
		mp_ok(rc);
	printf("go %u\n", mp.rank);
	limit = patience_times(2);
	ask_for_nobody();
	overflow_theirs();
	rest();
	for (unsigned r = 0; r < mp.size; r++)
		for (int k = 0; k < KINDS && r != mp.rank && peer[r].state == ALIVE; k++)
			start(&peer[r].stream[k]);
}

/* Open a second interface, so that pids are told; and a thread that competes for the
 * lease. */
static void open_second(void)
{
	ptl_handle_ni_t ni;
	mp_ok(PtlNIInit(PTL_IFACE_SS, PTL_PID_ANY, NULL, NULL, &ni));
	mp_ok(PtlNIFini(ni));
}

static void *nag(void *arg)
{
	ptl_sr_value_t value;
	ptl_event_t ev;
	ptl_handle_eq_t quiet = mp_queue(4);
	(void)arg;
	/* pause: away for so long that NIC threads go to sleep */
	sleep_ms(AWAY_MS);
	while (!p3_get(&over)) {
		struct timespec t = {0, 50000};
		for (int i = 0; i < 20; i++) {
			mp_ok(PtlNIStatus(mp.ni, PTL_SR_MSGS_CUR, &value));
			/* pause: a slow stream of calls, until all is over */
			nanosleep(&t, NULL);
		}
		(void)mp_next_within(quiet, 5, &ev);
	}
	mp_ok(PtlEQFree(quiet));
	return NULL;
}

/* ---- the end: leftovers ---- */

static bool any_open(unsigned *of)
{
	ptl_event_t ev;
	while (mp_poll(eq, &ev))
		on_event(&ev);
	for (*of = 0; *of < mp.size; ++*of)
		if (peer[*of].open)
			return true;
	return false;
}

static void check_clean(void)
{
	struct patience p = patience_begin();
	const char *what;
	unsigned of;
	while (((what = pools_left(p3_nic(p3_node()), &of)) || any_open(&of)) &&
		!patience_is_over(&p))
		sleep_ms(1);
	mp_check(!what, "%s is left of rank %u", what, of);
	mp_check(!any_open(&of), "%d operations of rank %u have no END", peer[of].open,
		of);
}

static void report(void)
{
	for (unsigned r = 0; r < mp.size; r++)
		if (peer[r].ended)
			printf("ended %u %u %llu\n", mp.rank, peer[r].failed,
				(unsigned long long)peer[r].ended);
	printf("fine %u\n", mp.rank);
}

/* Let every second rank copy puts past its caches, so that long ones go through windows
 * unasked: as if that had been faster lately. */
static void send_ahead(void)
{
	for (uint32_t i = 0; mp.rank % 2 && i < 64; i++)
		p3_nic(p3_node())->pace[2][i].other = true;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	if (argc > 1)
		quota = (unsigned)atoi(argv[1]);
	if (argc > 2)
		victim = (unsigned)atoi(argv[2]);
	setvbuf(stdout, NULL, _IOLBF, 0);
	mp_start();
	mp_check(mp.size >= 4 && mp.size <= RANKS, "4 to 8 ranks, please");
	send_ahead();
	open_second();
	open_all();
	mp_check(!pthread_create(&thread, NULL, nag, NULL), "no thread");
	begin();
	while (step())
		;
	p3_set(&over, 1);
	pthread_join(thread, NULL);
	check_clean();
	report();
	PtlFini();
	return 0;
}
