/* SPDX-License-Identifier: BSD-3-Clause */
/* Verified traffic of all kinds. */
#include "stress/streams.h"
#include "shm/atomics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Events of an operation that are still to come. */
enum {
	W_SEND_START = 1,
	W_SEND = 2,
	W_ACK = 4,
	W_OKAY = 8,
	W_REPLY_START = 16,
	W_REPLY = 32,
	W_UNLINK = 64
};

enum {
	LONGEST = 300000,
	CUT_AT = 1000,
	GUARD = 64,
	ROOM = LONGEST + GUARD,
	PIECES = 61,
	GAP = 24,
	CELL = 64
};

static const struct shape {
	const char *name;
	ptl_size_t least, most;
	bool put;
} shape[S_KINDS] = {
	[S_INLINE] = {"inline", 0, 16, true},
	[S_EAGER] = {"eager", 17, 1500, true},
	[S_UPDATED] = {"updated", 0, 5000, true},
	[S_ONCE] = {"once", 0, 40000, true},
	[S_CUT] = {"cut", 0, 100000, true},
	[S_PIECES] = {"pieces", 0, 200000, true},
	[S_LONG] = {"long", 10000, LONGEST, true},
	[S_HEAP] = {"heap", 10000, LONGEST, true},
	[S_GET] = {"get", 0, 2000, false},
	[S_GET_LONG] = {"get long", 10000, LONGEST, false},
	[S_GET_HEAP] = {"get heap", 10000, LONGEST, false},
	[S_GET_PIECES] = {"get pieces", 0, 200000, false},
	[S_SWAP] = {"swap", 8, CELL, false},
};

/* A region of many parts; the gaps between them must stay unchanged. */
struct parts {
	ptl_md_iovec_t v[PIECES];
	unsigned char *base;
	size_t size;
};

struct stream {
	unsigned to;
	enum stream_kind kind;
	unsigned waits; /* W_* */
	bool over;
	uint64_t seq, begun_ns;
	ptl_seq_t link;
	ptl_handle_md_t md, out;
	unsigned char *in;    /* of gets and exchanges */
	struct parts *pieces; /* of gets into pieces */
};

/* The destination of a peer's puts of one kind. */
struct inlet {
	unsigned char *at, *other; /* other: of S_UPDATED */
	struct parts *pieces;
	ptl_handle_md_t md;
	bool open;
	ptl_seq_t link;
	uint64_t seq; /* S_ONCE: answered when its descriptor is attached again */
};

static struct peer {
	bool with, heard_bye;
	struct stream stream[S_KINDS];
	struct inlet inlet[S_KINDS];
	unsigned char swap_out[CELL], swap_was[CELL];
	uint64_t tell[S_TALLY];
} peer[S_RANKS];

struct streams streams;
static ptl_handle_eq_t eq, quiet;
static ptl_handle_me_t anchor;
static ptl_handle_md_t nobodys;
static unsigned char *heap;
static struct parts source;
static unsigned char cells[S_RANKS][CELL];
static uint64_t heard[S_RANKS][S_TALLY];
static p3_a32 stopped;
static struct patience patience; /* since something has moved */

double streams_median_us(void)
{
	size_t n = streams.nsamples < S_SAMPLES ? streams.nsamples : S_SAMPLES;
	streams.nsamples = 0;
	return n ? (double)mp_median(streams.sample, n) / 1000 : 0;
}

/* ---- content of messages ---- */

static uint64_t roll(unsigned from, unsigned to, enum stream_kind kind, uint64_t seq)
{
	return mp_mix(streams.seed ^
		      mp_mix(seq * 65537 + from * 257 + to * 17 + (unsigned)kind * 4099));
}

static ptl_size_t length_of(
	unsigned from, unsigned to, enum stream_kind kind, uint64_t seq)
{
	const struct shape *s = &shape[kind];
	return s->least + roll(from, to, kind, seq) % (s->most - s->least + 1);
}

static ptl_size_t cut_of(unsigned from, unsigned to, enum stream_kind kind, uint64_t seq)
{
	return mp_cut(from, to, roll(from, to, kind, seq) >> 20);
}

static const unsigned char *bytes_of(
	unsigned from, unsigned to, enum stream_kind kind, uint64_t seq)
{
	return mp_pattern + cut_of(from, to, kind, seq);
}

/* Fill a cell: the first eight bytes are the number, the rest is random. */
static void fill_cell(unsigned char *cell, unsigned from, unsigned to, uint64_t seq)
{
	memcpy(cell, bytes_of(from, to, S_SWAP, seq), CELL);
	memcpy(cell, &seq, sizeof seq);
}

/* ---- parts ---- */

static void make_parts(struct parts *p, unsigned char *base, size_t size, size_t gap)
{
	size_t each = size / PIECES, at = 0;
	p->base = base;
	p->size = size + PIECES * gap;
	for (size_t i = 0; i < PIECES; i++) {
		size_t len = i + 1 < PIECES ? each + i % 7 - 3 : size;
		p->v[i] = (ptl_md_iovec_t){base + at, len};
		at += len + gap;
		size -= len;
	}
}

static struct parts *new_parts(void)
{
	struct parts *p = malloc(sizeof *p);
	mp_check(p, "no memory");
	unsigned char *base = calloc(1, ROOM + PIECES * GAP);
	mp_check(base, "no memory");
	make_parts(p, base, ROOM, GAP);
	return p;
}

/* Return true if the first len bytes are want's and all others, with the gaps, are
 * zero.  Leave zeros. */
static bool take_parts(struct parts *p, const unsigned char *want, size_t len)
{
	bool right = true;
	for (size_t i = 0; i < PIECES; i++) {
		unsigned char *at = p->v[i].iov_base;
		size_t n = len < p->v[i].iov_len ? len : p->v[i].iov_len;
		right &= memcmp(at, want, n) == 0;
		memset(at, 0, n);
		want += n;
		len -= n;
	}
	for (size_t i = 0; i < p->size; i++)
		right &= p->base[i] == 0;
	return right;
}

/* Do the same for one piece, with a guard behind it. */
static bool take(unsigned char *at, const unsigned char *want, size_t len)
{
	bool right = memcmp(at, want, len) == 0;
	for (size_t i = len; i < len + GUARD; i++)
		right &= at[i] == 0;
	memset(at, 0, len);
	return right;
}

/* ---- own operations ---- */

static ptl_handle_md_t bind_md(struct stream *s, ptl_md_t md, ptl_unlink_t unlink)
{
	ptl_handle_md_t handle;
	md.user_ptr = s;
	mp_ok(PtlMDBind(mp.ni, md, unlink, &handle));
	return handle;
}

static ptl_handle_md_t bind(struct stream *s, void *at, ptl_size_t length)
{
	return bind_md(s, mp_region(at, length, 0, s ? eq : PTL_EQ_NONE), PTL_RETAIN);
}

static ptl_handle_md_t bind_parts(struct stream *s, struct parts *p)
{
	return bind_md(s, mp_region(p->v, PIECES, PTL_MD_IOVEC, eq), PTL_RETAIN);
}

/* Bind a descriptor that unlinks itself after SEND and ACK. */
static ptl_handle_md_t bind_once(struct stream *s)
{
	ptl_md_t md = mp_region(mp_pattern, MP_PATTERN, 0, eq);
	md.threshold = 2;
	return bind_md(s, md, PTL_UNLINK);
}

static void start_swap(struct stream *s, ptl_size_t len)
{
	struct peer *p = &peer[s->to];
	int rc;
	s->waits = W_SEND_START | W_SEND | W_REPLY_START | W_REPLY | W_OKAY;
	fill_cell(p->swap_out, mp.rank, s->to, s->seq);
	do
		mp_keeps_errno(rc, PtlGetPutRegion(s->md, 0, s->out, 0, len, mp.id[s->to],
					   MP_PORTAL, 0, S_SWAP, mp.rank * CELL, s->seq));
	while (rc == PTL_NO_SPACE);
	mp_ok(rc);
}

static void start(struct stream *s)
{
	uint64_t seq = ++s->seq;
	ptl_size_t len = length_of(mp.rank, s->to, s->kind, seq);
	ptl_size_t cut = cut_of(mp.rank, s->to, s->kind, seq);
	s->begun_ns = now_ns();
	if (s->kind == S_SWAP) {
		start_swap(s, len);
	} else if (shape[s->kind].put) {
		s->waits = W_SEND_START | W_SEND | W_ACK | W_OKAY;
		if (s->kind == S_ONCE) {
			s->waits |= W_UNLINK;
			s->md = bind_once(s);
		}
		mp_put(s->md, cut, len, PTL_ACK_REQ, s->to, s->kind, 0, seq);
	} else {
		s->waits = W_REPLY_START | W_REPLY | W_OKAY;
		mp_get(s->md, 0, len, s->to, s->kind, cut);
	}
	streams.messages++;
	streams.bytes += len;
	streams.by_kind[s->kind]++;
}

/* Return the events that must come before this one. */
static unsigned before(unsigned what)
{
	switch (what) {
	case W_SEND:
		return W_SEND_START;
	case W_ACK:
		return W_SEND_START | W_SEND;
	case W_REPLY:
		return W_REPLY_START;
	case W_UNLINK:
		return W_SEND | W_ACK;
	default:
		return 0;
	}
}

static void came(struct stream *s, unsigned what, ptl_seq_t link)
{
	mp_check((s->waits & what) && !(s->waits & before(what)),
		"rank %u, %s %llu: %#x comes, %#x are waited for", s->to,
		shape[s->kind].name, (unsigned long long)s->seq, what, s->waits);
	if (what == W_SEND || what == W_REPLY)
		mp_check(link == s->link, "START and END of different operations");
	s->link = link;
	s->waits &= ~what;
	patience = patience_begin();
	if (s->waits)
		return;
	if (!p3_get(&stopped))
		start(s);
	else
		s->over = true;
}

static void on_reply(struct stream *s, const ptl_event_t *ev)
{
	struct peer *p = &peer[s->to];
	ptl_size_t len = length_of(mp.rank, s->to, s->kind, s->seq);
	const unsigned char *want = bytes_of(mp.rank, s->to, s->kind, s->seq);
	bool right = ev->mlength == len;
	if (s->kind == S_SWAP) {
		right &= take(s->in, p->swap_was, len);
		memcpy(p->swap_was, p->swap_out, len);
	} else if (right) {
		right &= s->pieces ? take_parts(s->pieces, want, len)
				   : take(s->in, want, len);
	}
	mp_check(right, "rank %u, %s %llu: wrong bytes of %llu", s->to,
		shape[s->kind].name, (unsigned long long)s->seq, (unsigned long long)len);
	came(s, W_REPLY, ev->link);
}

static void on_ack(struct stream *s, const ptl_event_t *ev)
{
	ptl_size_t len = length_of(mp.rank, s->to, s->kind, s->seq);
	ptl_size_t want = s->kind == S_CUT && len > CUT_AT ? CUT_AT : len;
	mp_check(ev->mlength == want && ev->rlength == len, "rank %u, %s: ACK of %llu",
		s->to, shape[s->kind].name, (unsigned long long)ev->mlength);
	if (s->kind == S_INLINE)
		streams.sample[streams.nsamples++ % S_SAMPLES] = now_ns() - s->begun_ns;
	came(s, W_ACK, ev->link);
}

static void on_ours(struct stream *s, const ptl_event_t *ev)
{
	switch (ev->type) {
	case PTL_EVENT_SEND_START:
		came(s, W_SEND_START, ev->link);
		return;
	case PTL_EVENT_SEND_END:
		came(s, W_SEND, ev->link);
		return;
	case PTL_EVENT_ACK:
		on_ack(s, ev);
		return;
	case PTL_EVENT_REPLY_START:
		came(s, W_REPLY_START, ev->link);
		return;
	case PTL_EVENT_REPLY_END:
		on_reply(s, ev);
		return;
	case PTL_EVENT_UNLINK:
		came(s, W_UNLINK, ev->link);
		return;
	default:
		mp_fail(__FILE__, __LINE__, "%s at an initiator",
			PtlEventKindStr(ev->type));
	}
}

/* ---- operations of peers ---- */

static unsigned sender(const ptl_event_t *ev)
{
	for (unsigned r = 0; r < mp.size; r++)
		if (mp.id[r].nid == ev->initiator.nid)
			return r;
	mp_fail(__FILE__, __LINE__, "an event of nid %u", ev->initiator.nid);
}

static void say(unsigned to, unsigned bits, uint64_t word)
{
	mp_put(nobodys, 0, 0, PTL_NO_ACK_REQ, to, bits, 0, word);
}

static ptl_md_t inlet_md(struct inlet *in, enum stream_kind kind)
{
	ptl_md_t md = mp_region(in->at, kind == S_CUT ? CUT_AT : ROOM,
		PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, eq);
	if (kind == S_CUT)
		md.options |= PTL_MD_TRUNCATE;
	if (kind == S_ONCE) {
		md.options &= ~PTL_MD_MANAGE_REMOTE;
		md.threshold = 1;
	}
	if (in->pieces) {
		md.start = in->pieces->v;
		md.length = PIECES;
		md.options |= PTL_MD_IOVEC;
	}
	return md;
}

static void post_once(unsigned from)
{
	struct inlet *in = &peer[from].inlet[S_ONCE];
	ptl_handle_me_t me;
	mp_ok(PtlMEMDPost(mp.ni, anchor, mp.id[from], S_ONCE, 0, PTL_UNLINK,
		PTL_INS_BEFORE, inlet_md(in, S_ONCE), PTL_UNLINK, &me, &in->md, quiet));
}

/* Let the next message go to the other place. */
static void turn_over(struct inlet *in)
{
	ptl_md_t old = {.options = 0}, new;
	unsigned char *at = in->at;
	in->at = in->other;
	in->other = at;
	new = inlet_md(in, S_UPDATED);
	mp_ok(PtlMDUpdate(in->md, &old, &new, quiet));
	mp_check(old.start == at && old.length == ROOM, "MDUpdate: another descriptor");
}

static void look_at_put(unsigned from, enum stream_kind kind, const ptl_event_t *ev)
{
	struct inlet *in = &peer[from].inlet[kind];
	uint64_t seq = ev->hdr_data;
	ptl_size_t len = length_of(from, mp.rank, kind, seq);
	ptl_size_t want = kind == S_CUT && len > CUT_AT ? CUT_AT : len;
	const unsigned char *bytes = bytes_of(from, mp.rank, kind, seq);
	bool right = ev->mlength == want && ev->rlength == len;
	if (right)
		right = in->pieces ? take_parts(in->pieces, bytes, want)
				   : take(in->at, bytes, want);
	mp_check(right, "rank %u's put, %s %llu: wrong bytes of %llu", from,
		shape[kind].name, (unsigned long long)seq, (unsigned long long)len);
	in->seq = seq;
	if (kind == S_ONCE)
		return; /* its UNLINK is to come */
	if (kind == S_UPDATED)
		turn_over(in);
	say(from, S_OKAY, (uint64_t)kind << 48 | seq);
}

/* Answer at an END; the initiator waits for the answer, since gets need no program. */
static void on_end(unsigned from, const ptl_event_t *ev)
{
	if (ev->match_bits == S_BYE)
		peer[from].heard_bye = true;
	else if (ev->type == PTL_EVENT_PUT_END)
		look_at_put(from, (enum stream_kind)ev->match_bits, ev);
	else
		say(from, S_OKAY, ev->match_bits << 48 | ev->hdr_data);
}

static void on_okay(unsigned from, uint64_t word)
{
	uint64_t kind = word >> 48, seq = word & 0xffffffffffff;
	mp_check(kind < S_KINDS, "an answer of no kind");
	struct stream *s = &peer[from].stream[kind];
	bool known = shape[kind].put || kind == S_SWAP;
	mp_check(seq == (known ? s->seq : 0), "rank %u, %s %llu: another's answer", from,
		shape[kind].name, (unsigned long long)s->seq);
	came(s, W_OKAY, s->link);
}

static bool is_start(ptl_event_kind_t type)
{
	return type == PTL_EVENT_PUT_START || type == PTL_EVENT_GET_START ||
	       type == PTL_EVENT_GETPUT_START;
}

/* Check one operation of a kind at a time: its START, then its END. */
static void pair_up(struct inlet *in, const ptl_event_t *ev)
{
	bool start = is_start(ev->type);
	mp_check(in->open == !start, "%s of %llu: %s", PtlEventKindStr(ev->type),
		(unsigned long long)ev->match_bits, in->open ? "a second" : "no START");
	mp_check(start || in->link == ev->link, "START and END of different operations");
	in->open = start;
	in->link = ev->link;
}

static void on_theirs(const ptl_event_t *ev)
{
	unsigned from = sender(ev);
	if (ev->match_bits == S_OKAY) {
		on_okay(from, ev->hdr_data);
		return;
	}
	if (ev->type == PTL_EVENT_UNLINK) {
		struct inlet *in = &peer[from].inlet[S_ONCE];
		mp_check(ev->match_bits == S_ONCE && !in->open, "UNLINK of another");
		post_once(from);
		say(from, S_OKAY, (uint64_t)S_ONCE << 48 | in->seq);
		return;
	}
	if (ev->match_bits < S_KINDS)
		pair_up(&peer[from].inlet[ev->match_bits], ev);
	if (!is_start(ev->type))
		on_end(from, ev);
}

/* ---- steps ---- */

static void lose_patience(void)
{
	for (unsigned r = 0; r < mp.size; r++)
		for (int k = 0; k < S_KINDS && peer[r].with; k++) {
			const struct stream *s = &peer[r].stream[k];
			if (!s->over)
				fprintf(stderr,
					"rank %u: %s %llu of %llu bytes with rank %u "
					"waits "
					"for %#x\n",
					mp.rank, shape[k].name,
					(unsigned long long)s->seq,
					(unsigned long long)length_of(
						mp.rank, r, (enum stream_kind)k, s->seq),
					r, s->waits);
		}
	mp_fail(__FILE__, __LINE__, "nothing moves");
}

bool streams_step(void)
{
	ptl_event_t ev;
	bool busy = false;
	if (mp_next_within(eq, 10, &ev)) {
		streams.events++;
		mp_check(ev.ni_fail_type == PTL_NI_OK, "%s of %llu failed",
			PtlEventKindStr(ev.type), (unsigned long long)ev.match_bits);
		if (ev.md.user_ptr)
			on_ours(ev.md.user_ptr, &ev);
		else
			on_theirs(&ev);
	} else if (patience_is_over(&patience)) {
		lose_patience();
	}
	for (unsigned r = 0; r < mp.size && !busy; r++)
		for (int k = 0; k < S_KINDS && peer[r].with && !busy; k++)
			busy = !peer[r].stream[k].over;
	return busy;
}

void streams_stop(void)
{
	p3_set(&stopped, 1);
}

void streams_begin(const bool *with)
{
	p3_set(&stopped, 0);
	patience = patience_begin();
	for (unsigned r = 0; r < mp.size; r++) {
		peer[r].with = with[r] && r != mp.rank;
		peer[r].heard_bye = false;
	}
	for (unsigned r = 0; r < mp.size; r++)
		for (int k = 0; k < S_KINDS && peer[r].with; k++) {
			peer[r].stream[k].over = false;
			start(&peer[r].stream[k]);
		}
}

void streams_bye(unsigned to, const uint64_t words[S_TALLY])
{
	struct peer *p = &peer[to];
	memcpy(p->tell, words, sizeof p->tell);
	ptl_handle_md_t md = bind(NULL, p->tell, sizeof p->tell);
	mp_put(md, 0, sizeof p->tell, PTL_NO_ACK_REQ, to, S_BYE, mp.rank * sizeof p->tell,
		0);
	int rc;
	while ((rc = PtlMDUnlink(md)) == PTL_MD_IN_USE)
		(void)streams_step();
	mp_ok(rc);
}

bool streams_heard_all(void)
{
	for (unsigned r = 0; r < mp.size; r++)
		if (peer[r].with && !peer[r].heard_bye)
			return false;
	return true;
}

const uint64_t *streams_heard(unsigned from)
{
	return heard[from];
}

void streams_round(const bool *with, unsigned ms)
{
	static const uint64_t nothing[S_TALLY];
	uint64_t until = now_ns() + ms * 1000000ull;
	streams_begin(with);
	while (now_ns() < until)
		(void)streams_step();
	streams_stop();
	while (streams_step())
		;
	for (unsigned r = 0; r < mp.size; r++)
		if (with[r] && r != mp.rank)
			streams_bye(r, nothing);
	while (!streams_heard_all())
		(void)streams_step();
}

/* Restart exchanges, perhaps with a partner that has restarted.  The NIC's thread may
 * serve the next one: the command shows ThreadSanitizer that it does so later, which only
 * the barrier of the job ensures otherwise. */
void streams_rest(void)
{
	ptl_sr_value_t value;
	memset(cells, 0, sizeof cells);
	for (unsigned r = 0; r < mp.size; r++)
		memset(peer[r].swap_was, 0, CELL);
	mp_ok(PtlNIStatus(mp.ni, PTL_SR_DROP_COUNT, &value));
}

/* ---- beginning ---- */

static void open_stream(struct stream *s, unsigned to, enum stream_kind kind)
{
	unsigned char *in = s->in;
	struct parts *pieces = s->pieces;
	*s = (struct stream){.to = to, .kind = kind, .over = true, .seq = s->seq};
	if (kind == S_GET_PIECES) {
		s->pieces = pieces ? pieces : new_parts();
		s->md = bind_parts(s, s->pieces);
	} else if (kind == S_PIECES) {
		s->md = bind_parts(s, &source);
	} else if (shape[kind].put) {
		s->md = bind(s, kind == S_HEAP ? heap : mp_pattern, MP_PATTERN);
	} else {
		s->in = in ? in : calloc(1, ROOM);
		mp_check(s->in, "no memory");
		s->md = bind(s, s->in, kind == S_SWAP ? CELL : ROOM);
		s->out = bind(s, peer[to].swap_out, CELL);
	}
}

static void *room(void *before)
{
	void *at = before ? before : calloc(1, ROOM);
	mp_check(at, "no memory");
	return at;
}

static void open_inlet(unsigned from, enum stream_kind kind)
{
	struct inlet *in = &peer[from].inlet[kind];
	ptl_handle_me_t me;
	in->at = room(in->at);
	in->open = false;
	if (kind == S_UPDATED)
		in->other = room(in->other);
	if (kind == S_PIECES && !in->pieces)
		in->pieces = new_parts();
	if (kind == S_ONCE)
		post_once(from);
	else
		mp_ok(PtlMEMDAttach(mp.ni, MP_PORTAL, mp.id[from], kind, 0, PTL_RETAIN,
			PTL_INS_AFTER, inlet_md(in, kind), PTL_RETAIN, &me, &in->md));
}

static void listen_to(
	unsigned from, unsigned bits, void *at, ptl_size_t length, unsigned options)
{
	ptl_handle_me_t me;
	ptl_md_t md = mp_region(at, length, options | PTL_MD_MANAGE_REMOTE, eq);
	mp_ok(PtlMEMDAttach(mp.ni, MP_PORTAL, mp.id[from], bits, 0, PTL_RETAIN,
		PTL_INS_AFTER, md, PTL_RETAIN, &me, NULL));
}

/* Append entries that each name a partner, so that no other rank matches. */
static void open_outlets(unsigned from)
{
	unsigned get = PTL_MD_OP_GET, silent = PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE;
	listen_to(from, S_GET, mp_pattern, MP_PATTERN, get);
	listen_to(from, S_GET_LONG, mp_pattern, MP_PATTERN, get);
	listen_to(from, S_GET_HEAP, heap, MP_PATTERN, get);
	listen_to(from, S_GET_PIECES, source.v, PIECES, get | PTL_MD_IOVEC);
	listen_to(from, S_SWAP, cells, sizeof cells, get | PTL_MD_OP_PUT);
	listen_to(from, S_OKAY, NULL, 0, silent);
	listen_to(from, S_BYE, heard, sizeof heard, silent);
}

static void make_memory(void)
{
	void *block;
	mp_ok(PtlXAlloc(MP_PATTERN, &block));
	heap = block;
	memcpy(heap, mp_pattern, MP_PATTERN);
	make_parts(&source, mp_pattern, MP_PATTERN, 0);
}

static void open_anchor(void)
{
	ptl_process_id_t anyone = {PTL_NID_ANY, PTL_PID_ANY};
	mp_ok(PtlMEAttach(mp.ni, MP_PORTAL, anyone, ~UINT64_C(0), 0, PTL_RETAIN,
		PTL_INS_AFTER, &anchor));
}

static void open_peer(unsigned r)
{
	for (int k = 0; k < S_KINDS; k++) {
		open_stream(&peer[r].stream[k], r, (enum stream_kind)k);
		if (shape[k].put)
			open_inlet(r, (enum stream_kind)k);
	}
	open_outlets(r);
}

void streams_open(uint64_t seed, const bool *with)
{
	mp_check(mp.size <= S_RANKS, "%u ranks are too many", mp.size);
	streams.seed = seed;
	if (!heap)
		make_memory();
	eq = mp_queue(4096);
	quiet = mp_queue(4);
	nobodys = bind(NULL, NULL, 0);
	open_anchor();
	for (unsigned r = 0; r < mp.size; r++)
		if (with[r] && r != mp.rank)
			open_peer(r);
}
