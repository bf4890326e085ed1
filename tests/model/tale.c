/* SPDX-License-Identifier: BSD-3-Clause */
/* Races whose possible outcomes are listed here, not computed by the model. */
#include "model/model.h"
#include "model/scene.h"
#include "support/patience.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HANGS_MS 120000u

#define TARGET   0u
#define SOURCE   1u
#define BOTH     3u /* the nodes that take part, as bits */
#define SECOND   (256u * 1024)

static bool complain(const char *tale, uint64_t seed, const char *what)
{
	printf("race %s, seed %" PRIu64 ": %s\n", tale, seed, what);
	return false;
}

static uint32_t below(uint64_t *random, uint32_t n)
{
	return (uint32_t)(random_next(random) % n);
}

static void spin(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		__asm__ volatile("" ::: "memory");
}

static void must(int rc)
{
	if (rc == PTL_OK)
		return;
	printf("a tale's own call gives %s\n", PtlErrorStr((unsigned)rc));
	exit(1);
}

static bool all_are(const unsigned char *p, uint32_t len, unsigned char value)
{
	for (uint32_t i = 0; i < len; i++)
		if (p[i] != value)
			return false;
	return true;
}

static void start(pthread_t *t, void *(*fn)(void *), void *arg)
{
	if (pthread_create(t, NULL, fn, arg))
		abort();
}

/* Number of rounds in which the two met. */
static unsigned meetings;

/* ---- common parts of the tales of one long put ---- */

struct put {
	struct play *play;
	uint32_t len;
	uint32_t delay;
	unsigned looks;   /* looks at an empty queue before: each moves a piece */
	bool sent;        /* the put is sent before the target's thread begins */
	unsigned options; /* options of the target's descriptor */
	ptl_handle_eq_t eq, source_eq, empty_eq;
	ptl_handle_me_t me;
	ptl_handle_md_t md, source_md;
	uint64_t drops;
	/* used by the target's thread */
	bool by_entry, after_end;
	ptl_handle_eq_t test;
	int rc;
	unsigned refused;
	bool event_came;
	unsigned char *snapshot;
};

static ptl_md_t describe(struct put *t, uint32_t at, uintptr_t user)
{
	return (ptl_md_t){.start = t->play->memory[TARGET][0] + at,
		.length = t->len,
		.threshold = 1,
		.options = t->options | PTL_MD_OP_PUT,
		.user_ptr = (void *)user,
		.eq_handle = t->eq};
}

static void begin_target(struct put *t)
{
	ptl_process_id_t any = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_handle_ni_t ni = t->play->net.ni[TARGET];
	net_enter(&t->play->net, TARGET);
	memset(t->play->memory[TARGET][0], 0x11, M_ARENA);
	net_wrote(&t->play->net, TARGET, t->play->memory[TARGET][0], M_ARENA);
	must(PtlEQAlloc(ni, 8, PTL_EQ_HANDLER_NONE, &t->eq));
	must(PtlEQAlloc(ni, 1, PTL_EQ_HANDLER_NONE, &t->empty_eq));
	must(PtlMEMDAttach(ni, 0, any, 0, 0, PTL_RETAIN, PTL_INS_AFTER, describe(t, 0, 1),
		PTL_RETAIN, &t->me, &t->md));
	t->drops = net_drops(&t->play->net, TARGET);
}

static void begin_source(struct put *t, unsigned char value)
{
	ptl_handle_ni_t ni = t->play->net.ni[SOURCE];
	net_enter(&t->play->net, SOURCE);
	memset(t->play->memory[SOURCE][0], value, t->len);
	net_wrote(&t->play->net, SOURCE, t->play->memory[SOURCE][0], t->len);
	must(PtlEQAlloc(ni, 8, PTL_EQ_HANDLER_NONE, &t->source_eq));
	ptl_md_t md = {.start = t->play->memory[SOURCE][0],
		.length = t->len,
		.threshold = 2,
		.eq_handle = t->source_eq};
	must(PtlMDBind(ni, md, PTL_RETAIN, &t->source_md));
}

static void begin(struct put *t, struct play *p, uint64_t *random)
{
	static const unsigned quiets[] = {0, PTL_MD_EVENT_START_DISABLE,
		PTL_MD_EVENT_END_DISABLE,
		PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE};
	*t = (struct put){.play = p,
		.len = 5000 + below(random, below(random, 2) ? 20000 : 200000),
		.delay = below(random, 40000),
		.looks = below(random, 7),
		.sent = below(random, 4),
		.options = quiets[below(random, 4)]};
	begin_target(t);
	begin_source(t, 0x77);
}

static void send(struct put *t)
{
	net_enter(&t->play->net, SOURCE);
	must(PtlPut(t->source_md, PTL_ACK_REQ, t->play->net.id[TARGET], 0, 0, 0, 0, 0));
}

static unsigned count(ptl_handle_eq_t eq, ptl_event_kind_t kind)
{
	ptl_event_t ev;
	unsigned n = 0;
	while (PtlEQGet(eq, &ev) == PTL_OK)
		n += ev.type == kind && ev.ni_fail_type == PTL_NI_OK;
	return n;
}

/* Bring the target's thread to its call. */
static void approach(struct put *t)
{
	ptl_event_t ev;
	net_enter(&t->play->net, TARGET);
	spin(t->delay);
	for (unsigned i = 0; i < t->looks; i++)
		(void)PtlEQGet(t->empty_eq, &ev);
}

/* Run fn in the target's thread, and the put. */
static bool meet(struct put *t, void *(*fn)(void *))
{
	pthread_t thread;
	if (t->sent)
		send(t);
	start(&thread, fn, t);
	if (!t->sent)
		send(t);
	pthread_join(thread, NULL);
	return net_settle(&t->play->net, BOTH);
}

/* Return the number of ACKs that the source got: 1 if the put was accepted. */
static unsigned finish_source(struct put *t)
{
	net_enter(&t->play->net, SOURCE);
	unsigned acks = count(t->source_eq, PTL_EVENT_ACK);
	must(PtlMDUnlink(t->source_md));
	must(PtlEQFree(t->source_eq));
	net_enter(&t->play->net, TARGET);
	must(PtlEQFree(t->empty_eq));
	return acks;
}

/* ---- a put whose descriptor is unlinked meanwhile ---- */

static void wait_for_end(struct put *t)
{
	ptl_event_t ev;
	int which;
	do
		if (PtlEQPoll(&t->eq, 1, HANGS_MS, &ev, &which) != PTL_OK)
			return;
	while (ev.type != PTL_EVENT_PUT_END);
	t->event_came = true;
}

static void *unlinker(void *arg)
{
	struct put *t = arg;
	unsigned char *bytes = t->play->memory[TARGET][0];
	approach(t);
	if (t->after_end)
		wait_for_end(t);
	for (;; t->refused++) {
		t->rc = t->by_entry ? PtlMEUnlink(t->me) : PtlMDUnlink(t->md);
		if (t->after_end || (t->rc != PTL_MD_IN_USE && t->rc != PTL_ME_IN_USE))
			break;
		sched_yield();
	}
	net_read(&t->play->net, TARGET);
	memcpy(t->snapshot, bytes, t->len);
	memset(bytes, 0x22, t->len);
	net_wrote(&t->play->net, TARGET, bytes, t->len);
	return NULL;
}

static const char *unlinked(struct put *t)
{
	unsigned char *bytes = t->play->memory[TARGET][0];
	uint64_t drops = net_drops(&t->play->net, TARGET) - t->drops;
	net_enter(&t->play->net, TARGET);
	if (t->rc != PTL_OK)
		return t->after_end ? "not unlinked although the END was read"
				    : "an unexpected code";
	if (!all_are(bytes, t->len, 0x22))
		return "bytes were written after the unlink";
	bool had = all_are(t->snapshot, t->len, 0x77);
	if (!had && !all_are(t->snapshot, t->len, 0x11))
		return "a part of the put had come at the unlink";
	if (drops != (had ? 0 : 1))
		return "the drop count does not fit the bytes";
	if (!t->by_entry)
		must(PtlMEUnlink(t->me));
	if (!t->after_end && !(t->options & PTL_MD_EVENT_END_DISABLE) &&
		count(t->eq, PTL_EVENT_PUT_END) != (had ? 1u : 0u))
		return "the END does not fit the bytes";
	must(PtlEQFree(t->eq));
	if (finish_source(t) != (had ? 1u : 0u))
		return "the ACK does not fit the bytes";
	return NULL;
}

static bool unlink_round(struct play *p, uint64_t seed)
{
	static unsigned char snapshot[M_ARENA];
	struct put t;
	uint64_t random = seed;
	begin(&t, p, &random);
	t.snapshot = snapshot;
	t.by_entry = below(&random, 2);
	t.after_end = !(t.options & PTL_MD_EVENT_END_DISABLE) && below(&random, 8) == 0;
	if (!meet(&t, unlinker))
		return complain("unlink", seed, "no end");
	const char *wrong = unlinked(&t);
	meetings += t.refused > 0;
	return wrong ? complain("unlink", seed, wrong) : true;
}

/* ---- its descriptor is updated meanwhile ---- */

static bool is_silent(const struct put *t)
{
	return (t->options & PTL_MD_EVENT_START_DISABLE) &&
	       (t->options & PTL_MD_EVENT_END_DISABLE);
}

/* A put that is under way refuses the update also if it posts no event: then call again
 * until it has ended. */
static void update_again(struct put *t, ptl_md_t *new)
{
	struct patience p = patience_begin();
	while (t->rc == PTL_MD_NO_UPDATE && !patience_is_over(&p)) {
		sched_yield();
		t->rc = PtlMDUpdate(t->md, NULL, new, t->test);
	}
}

static void *updater(void *arg)
{
	struct put *t = arg;
	ptl_event_t ev;
	int which;
	ptl_md_t new = describe(t, SECOND, 2);
	approach(t);
	t->rc = PtlMDUpdate(t->md, NULL, &new, t->test);
	t->refused = t->rc == PTL_MD_NO_UPDATE;
	if (t->refused && is_silent(t))
		update_again(t, &new);
	else if (t->refused)
		t->event_came = PtlEQPoll(&t->eq, 1, HANGS_MS, &ev, &which) == PTL_OK;
	return NULL;
}

/* Return true if all remaining events name the descriptor's state that took the bytes. */
static bool events_say(struct put *t, uintptr_t user)
{
	ptl_event_t ev;
	while (PtlEQGet(t->eq, &ev) == PTL_OK)
		if (ev.md.user_ptr != (void *)user || ev.md.threshold != 0)
			return false;
	return true;
}

static const char *updated(struct put *t)
{
	const unsigned char *bytes = t->play->memory[TARGET][0];
	bool silent = is_silent(t);
	bool first = all_are(bytes, t->len, 0x77);
	bool second = all_are(bytes + SECOND, t->len, 0x77);
	net_enter(&t->play->net, TARGET);
	if (first == second || !all_are(bytes + (first ? SECOND : 0), t->len, 0x11))
		return "the bytes are not in one place";
	if (!events_say(t, first ? 1 : 2))
		return "events name another state than that which took the bytes";
	if (t->test == PTL_EQ_NONE)
		return t->rc == PTL_OK ? NULL : "refused without a condition";
	if (t->rc == PTL_OK && first && !silent)
		return "updated, though events were owed or unread";
	if (t->refused && second)
		return "refused without reason";
	if (t->rc == PTL_OK)
		return NULL;
	if (t->rc != PTL_MD_NO_UPDATE)
		return "an unexpected code";
	if (silent)
		return "refused for ever";
	return t->event_came ? NULL : "refused, but no event came";
}

static bool update_round(struct play *p, uint64_t seed)
{
	struct put t;
	uint64_t random = seed;
	begin(&t, p, &random);
	t.test = below(&random, 3) ? t.eq : PTL_EQ_NONE;
	if (!meet(&t, updater))
		return complain("update under way", seed, "no end");
	const char *wrong = updated(&t);
	meetings += t.refused > 0;
	if (wrong)
		return complain("update under way", seed, wrong);
	must(PtlMEUnlink(t.me));
	must(PtlEQFree(t.eq));
	return finish_source(&t) == 1 ||
	       complain("update under way", seed, "not one ACK");
}

/* ---- a queue overflows under two readers ---- */

#define R_MOST 512u

struct reader {
	struct play *play;
	ptl_handle_eq_t eq;
	const p3_a32 *stop;
	unsigned n;
	struct {
		int rc;
		ptl_event_t event;
	} had[R_MOST];
};

static void *reader(void *arg)
{
	struct reader *r = arg;
	net_enter(&r->play->net, TARGET);
	for (bool last = false;;) {
		bool stop = p3_acquire(r->stop);
		int rc = PtlEQGet(r->eq, &r->had[r->n].event);
		if (rc == PTL_EQ_EMPTY && last)
			return NULL;
		if (rc == PTL_EQ_EMPTY)
			sched_yield();
		last = stop;
		r->had[r->n].rc = rc;
		r->n += rc != PTL_EQ_EMPTY && r->n + 1 < R_MOST;
	}
}

struct overflow {
	uint32_t size;
	unsigned per; /* events of one put */
	unsigned n;   /* number of events in all */
	ptl_seq_t base;
	struct reader reader[2];
	const void *had[R_MOST]; /* by position: the reader that has it */
	int rc[R_MOST];
};

static const char *collect(struct overflow *o, const struct reader *r)
{
	ptl_seq_t before = o->base - 1;
	for (unsigned i = 0; i < r->n; i++) {
		const ptl_event_t *ev = &r->had[i].event;
		ptl_seq_t at = ev->sequence - o->base;
		if (at >= o->n)
			return "a sequence number out of range";
		if (ev->sequence - before - 1 >= o->n)
			return "sequence numbers go down";
		if (o->had[at])
			return "an event was read twice";
		if (ev->hdr_data != at / o->per)
			return "an event with another's contents";
		if ((ev->type == PTL_EVENT_PUT_START) != (o->per == 2 && at % 2 == 0))
			return "an event of another kind";
		o->had[at] = ev;
		o->rc[at] = r->had[i].rc;
		before = ev->sequence;
	}
	return NULL;
}

static const char *overflowed(struct overflow *o)
{
	const char *wrong = collect(o, &o->reader[0]);
	wrong = wrong ? wrong : collect(o, &o->reader[1]);
	for (unsigned i = 0; !wrong && i < o->n; i++) {
		bool gap = i > 0 && !o->had[i - 1];
		if (i + o->size >= o->n && !o->had[i])
			return "one of the newest events was lost";
		if (o->had[i] && o->rc[i] != (gap ? PTL_EQ_DROPPED : PTL_OK))
			return gap ? "a loss was not told"
				   : "a loss was told, but none was";
	}
	return wrong;
}

static void put_one(struct play *p, ptl_handle_md_t md, uint64_t hdr)
{
	must(PtlPut(md, PTL_NO_ACK_REQ, p->net.id[TARGET], 0, 0, 0, 0, hdr));
}

/* Do the first put: the numbers of the others' events follow from its events. */
static void find_base(struct play *p, struct overflow *o, ptl_handle_eq_t eq)
{
	ptl_event_t ev = {0};
	(void)net_settle(&p->net, BOTH);
	net_enter(&p->net, TARGET);
	while (PtlEQGet(eq, &ev) != PTL_EQ_EMPTY)
		;
	o->base = ev.sequence + 1;
}

static bool overflow_round(struct play *p, uint64_t seed)
{
	static struct overflow o;
	uint64_t random = seed;
	p3_a32 stop;
	struct put t;
	pthread_t thread[2];
	memset(&o, 0, sizeof o);
	p3_set(&stop, 0);
	begin(&t, p, &random);
	o.size = 1u << below(&random, 5);
	o.per = below(&random, 2) ? 2 : 1;
	o.n = o.per * (10 + below(&random, 150));
	net_enter(&p->net, TARGET);
	must(PtlMDUnlink(t.md));
	must(PtlEQFree(t.eq));
	must(PtlEQAlloc(p->net.ni[TARGET], o.size, PTL_EQ_HANDLER_NONE, &t.eq));
	ptl_md_t md = describe(&t, 0, 1);
	md.threshold = PTL_MD_THRESH_INF;
	md.options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE |
		     (o.per == 1 ? PTL_MD_EVENT_START_DISABLE : 0);
	must(PtlMDAttach(t.me, md, PTL_RETAIN, &t.md));
	net_enter(&p->net, SOURCE);
	must(PtlMDUnlink(t.source_md));
	md = (ptl_md_t){.start = p->memory[SOURCE][0],
		.length = below(&random, 17),
		.threshold = PTL_MD_THRESH_INF,
		.eq_handle = PTL_EQ_NONE};
	must(PtlMDBind(p->net.ni[SOURCE], md, PTL_RETAIN, &t.source_md));
	put_one(p, t.source_md, 0);
	find_base(p, &o, t.eq);
	for (unsigned i = 0; i < 2; i++) {
		o.reader[i] = (struct reader){.play = p, .eq = t.eq, .stop = &stop};
		start(&thread[i], reader, &o.reader[i]);
	}
	net_enter(&p->net, SOURCE);
	for (unsigned i = 0; i < o.n / o.per; i++) {
		put_one(p, t.source_md, i);
		spin(below(&random, 4) ? 0 : below(&random, 4000));
	}
	bool ended = net_settle(&p->net, BOTH);
	p3_release(&stop, 1);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	const char *wrong = ended ? overflowed(&o) : "no end";
	for (unsigned i = 0; i < o.n; i++)
		meetings += o.rc[i] == PTL_EQ_DROPPED;
	if (wrong)
		return complain("overflow", seed, wrong);
	net_enter(&p->net, TARGET);
	must(PtlMEUnlink(t.me));
	must(PtlEQFree(t.eq));
	(void)finish_source(&t);
	return true;
}

/* ---- all of them ---- */

typedef bool round_fn(struct play *p, uint64_t seed);

static bool tell(round_fn *fn, const char *name, struct play *p, uint64_t seed,
	unsigned rounds, uint64_t end)
{
	uint64_t begun = now_ns();
	unsigned i = 0;
	meetings = 0;
	play_begin(p, S_NODES); /* access control */
	for (; i < rounds && now_ns() < end; i++)
		if (!fn(p, seed + i))
			return false;
	printf("race %s: %u rounds, %u meetings, %.1f s\n", name, i, meetings,
		(double)(now_ns() - begun) / 1e9);
	return true;
}

bool tell_tales(struct play *p, uint64_t seed, unsigned rounds, uint64_t end)
{
	return tell(unlink_round, "unlink", p, seed, rounds, end) &&
	       tell(update_round, "update under way", p, seed, rounds, end) &&
	       tell(overflow_round, "overflow", p, seed, rounds, end);
}
