/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes as threads of a test process. */
#include "support/nodes.h"

#include "far/placed.h"
#include "lib/node/node.h"
#include "support/own_node.h"
#include "nic/run/lease.h"
#include "support/starter.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SMALL_STACK (256 << 10)
#define LOOK_MS     1000u
#define FAILURES    8
#define LATE_MOST   5

struct block {
	struct block *next;
	_Alignas(64) unsigned char bytes[];
};

struct member;

struct side {
	struct member *member;
	struct side *next;
	pthread_t thread;
	void (*fn)(void *arg);
	void *arg;
	bool joined;
};

struct member {
	struct run *run;
	unsigned rank;
	int sock;
	pthread_t thread;
	struct p3_node *node;
	ptl_handle_ni_t ni;
	struct block *blocks;
	struct side *sides;
	bool frozen;
	pthread_mutex_t lock; /* guards blocks and sides */
	p3_a64 file;          /* last check of its threads: address of the file's name */
	p3_a32 line;          /* and line */
};

struct gate {
	unsigned n;
	p3_a32 come;
};

struct run {
	unsigned n;
	nodes_fn *fn;
	void *arg;
	struct nodes_opt opt;
	p3_a32 ended; /* nodes whose function has returned */
	p3_a32 met;   /* barriers: the checkers do not see an order through a socket */
	struct gate all;
	struct member member[NODES_MAX];
};

static __thread struct member *self;
static __thread jmp_buf *way_out;
static p3_a32 failures;

/* ---- checks ---- */

void check_at(const char *file, int line)
{
	if (!self)
		return;
	p3_set(&self->file, (uintptr_t)file);
	p3_set(&self->line, (uint32_t)line);
}

void check_failed(const char *file, int line, const char *fmt, ...)
{
	va_list ap;
	char text[400];
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (p3_add32(&failures, 1) < FAILURES)
		fprintf(stderr, "%s:%d: node %u: %s\n", file, line, self ? self->rank : 0,
			text);
	if (!way_out)
		abort();
	longjmp(*way_out, 1);
}

const char *check_code(int rc)
{
	return PtlErrorStr((unsigned)rc);
}

/* ---- watchdog ---- */

static pthread_mutex_t dog_lock = PTHREAD_MUTEX_INITIALIZER;
static struct run *dog_run;
static struct patience dog_patience;

static void dump_member(struct member *m)
{
	struct p3_node *node = m->node;
	struct p3_nic *nic = node ? p3_nic(node) : NULL;
	const char *file = (const char *)(uintptr_t)p3_get(&m->file);
	fprintf(stderr, "node %u: last check at %s:%u\n", m->rank, file ? file : "-",
		p3_get(&m->line));
	if (!nic)
		return;
	static const char *const names[] = {"heartbeat", "passes", "drained", "overruns",
		"sent", "sent bytes", "received", "received bytes", "drops", "drop bytes",
		"inline", "eager", "bulk", "cma", "fallback", "kicks", "wakes", "late",
		"ticks", "takeovers", "bad", "lanes full", "queued"};
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		fprintf(stderr, "%s %llu%s", names[i],
			(unsigned long long)p3_nic_counter(nic, (enum p3_counter)i),
			names[i + 1 < sizeof names / sizeof *names ? i + 1 : 0] ? ", "
										: "");
	fprintf(stderr, "\n");
}

static void *dog_main(void *arg)
{
	(void)arg;
	for (;;) {
		/* pause: between two looks at the clock */
		sleep_ms(200);
		pthread_mutex_lock(&dog_lock);
		if (dog_run && patience_is_over(&dog_patience)) {
			fprintf(stderr, "watchdog: this run hangs\n");
			for (unsigned i = 0; i < dog_run->n; i++)
				dump_member(&dog_run->member[i]);
			abort();
		}
		pthread_mutex_unlock(&dog_lock);
	}
	return NULL;
}

static void dog_watch(struct run *run)
{
	static bool started;
	pthread_mutex_lock(&dog_lock);
	dog_run = run;
	dog_patience = patience_times(4);
	if (!started) {
		pthread_t t;
		started = true;
		if (pthread_create(&t, NULL, dog_main, NULL) == 0)
			pthread_detach(t);
	}
	pthread_mutex_unlock(&dog_lock);
}

/* ---- memory ---- */

unsigned rounds(unsigned n)
{
	return !getenv("P3_QUICK") ? n : n > 40 ? n / 20 : n > 2 ? 2 : n;
}

unsigned char *node_alloc(size_t len)
{
	struct block *b = aligned_alloc(64, (sizeof *b + len + 63) / 64 * 64);
	if (!b)
		abort();
	memset(b->bytes, 0, len);
	pthread_mutex_lock(&self->lock);
	b->next = self->blocks;
	self->blocks = b;
	pthread_mutex_unlock(&self->lock);
	return b->bytes;
}

static void free_blocks(struct member *m)
{
	while (m->blocks) {
		struct block *next = m->blocks->next;
		free(m->blocks);
		m->blocks = next;
	}
}

unsigned char pattern(unsigned seed, size_t i)
{
	return (unsigned char)(seed * 89 + i * 7 + (i >> 8) * 13 + (i >> 16) * 5 + 1);
}

/* From byte to byte the pattern grows by 7, but for the borders of pieces of 256 bytes.
 * So each piece is somewhere among the multiples of 7; whole pieces take sanitizers and
 * valgrind much less time than bytes. */
enum { PIECE = 256, INVERSE_OF_7 = 183 };
static unsigned char sevens[2 * PIECE];
static const unsigned char zeros[PIECE];

__attribute__((constructor)) static void make_sevens(void)
{
	for (unsigned i = 0; i < sizeof sevens; i++)
		sevens[i] = (unsigned char)(i * 7);
}

/* Return the bytes of the pattern from i to the end of its piece. */
static const unsigned char *piece(unsigned seed, size_t i)
{
	return sevens + pattern(seed, i - i % PIECE) * INVERSE_OF_7 % PIECE + i % PIECE;
}

static size_t rest_of_piece(size_t i, size_t end)
{
	size_t rest = PIECE - i % PIECE;
	return rest < end - i ? rest : end - i;
}

void fill_pattern(void *at, size_t len, unsigned seed)
{
	unsigned char *p = at;
	for (size_t i = 0; i < len; i += PIECE)
		memcpy(p + i, piece(seed, i), rest_of_piece(i, len));
}

unsigned char *node_pattern(size_t len, unsigned seed)
{
	unsigned char *p = node_alloc(len);
	fill_pattern(p, len, seed);
	return p;
}

/* Fail at the first byte of a piece that differs. */
static void check_piece(const char *file, int line, const unsigned char *p,
	const unsigned char *want, size_t n, size_t before, size_t len)
{
	if (memcmp(p, want, n) == 0)
		return;
	for (size_t i = 0; i < n; i++)
		if (p[i] != want[i])
			check_failed(file, line, "byte %zu of %zu is %u, not %u",
				before + i, len, p[i], want[i]);
	check_failed(file, line, "a byte behind byte %zu of %zu has changed twice",
		before, len);
}

void check_pattern(const char *file, int line, const void *at, size_t from, size_t len,
	unsigned seed)
{
	const unsigned char *p = at;
	check_at(file, line);
	for (size_t n, i = 0; i < len; i += n) {
		n = rest_of_piece(from + i, from + len);
		check_piece(file, line, p + i, piece(seed, from + i), n, i, len);
	}
}

void check_zero(const char *file, int line, const void *at, size_t len)
{
	const unsigned char *p = at;
	for (size_t n, i = 0; i < len; i += n) {
		n = rest_of_piece(i, len);
		check_piece(file, line, p + i, zeros, n, i, len);
	}
}

/* ---- threads ---- */

struct gate *gate_new(unsigned n)
{
	struct gate *g = calloc(1, sizeof *g);
	if (!g)
		abort();
	g->n = n;
	return g;
}

void gate_wait(struct gate *g)
{
	unsigned round = p3_add32(&g->come, 1) / g->n;
	while (p3_acquire(&g->come) < (round + 1) * g->n) {
		if (p3_get(&failures))
			check_failed(__FILE__, __LINE__, "not all can come to the gate");
		sleep_ms(1);
	}
}

void meet_nodes(void)
{
	gate_wait(&self->run->all);
}

void gate_free(struct gate *g)
{
	free(g);
}

static void *side_main(void *arg)
{
	struct side *s = arg;
	jmp_buf out;
	self = s->member;
	own_node_enter(s->member->node);
	way_out = &out;
	if (setjmp(out) == 0)
		s->fn(s->arg);
	return NULL;
}

static struct side *start_side(
	void (*fn)(void *arg), void *arg, const pthread_attr_t *attr)
{
	struct side *s = calloc(1, sizeof *s);
	if (!s)
		abort();
	s->member = self;
	s->fn = fn;
	s->arg = arg;
	pthread_mutex_lock(&self->lock);
	s->next = self->sides;
	self->sides = s;
	pthread_mutex_unlock(&self->lock);
	if (pthread_create(&s->thread, attr, side_main, s) != 0)
		abort();
	return s;
}

struct side *side_start(void (*fn)(void *arg), void *arg)
{
	return start_side(fn, arg, NULL);
}

struct side *side_start_small(void (*fn)(void *arg), void *arg)
{
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	if (pthread_attr_setstacksize(&attr, SMALL_STACK) != 0)
		abort();
	struct side *s = start_side(fn, arg, &attr);
	pthread_attr_destroy(&attr);
	return s;
}

void side_join(struct side *s)
{
	if (s->joined)
		return;
	pthread_join(s->thread, NULL);
	s->joined = true;
}

static void join_sides(struct member *m)
{
	while (m->sides) {
		struct side *s = m->sides;
		side_join(s);
		m->sides = s->next;
		free(s);
	}
}

/* ---- one node ---- */

/* Do as freeze() if the host matches.  The NIC thread goes on when the node ends, since
 * no other thread executes the commands of the node's threads. */
static void freeze_generic(struct p3_nic *nic)
{
	while (!p3_lease_enter_reserved(nic, P3_LEASE_HOST))
		sched_yield();
	self->frozen = true;
}

/* Stop the firmware where it is: its thread ends, the lease is never given back. */
static void freeze(struct p3_nic *nic)
{
	if (nic->generic) {
		freeze_generic(nic);
		return;
	}
	p3_set(&nic->stop, 1);
	while (!p3_lease_enter(nic, P3_LEASE_HOST)) {
		p3_add32(&nic->doorbell->kick, 1);
		p3_futex_wake(&nic->doorbell->kick, ~0u, true);
		sched_yield();
	}
	self->frozen = true;
}

void node_leave_job(void)
{
	(void)shutdown(self->sock, SHUT_RDWR);
}

void node_die(void)
{
	freeze(p3_nic(self->node));
	(void)shutdown(self->sock, SHUT_RDWR);
}

void node_die_holding(void)
{
	p3_set(&p3_nic(self->node)->stop, 1);
	self->frozen = true;
	(void)shutdown(self->sock, SHUT_RDWR);
}

/* Let a node's puts go past its caches, as if that had been faster by far. */
static void send_ahead(struct p3_nic *n)
{
	for (uint32_t i = 0; i < 64; i++)
		n->pace[2][i] = (struct p3_pace){
			.usual_ns = UINT64_C(1) << 50, .other_ns = 1, .other = true};
}

ptl_handle_ni_t node_ni(void)
{
	ptl_ni_limits_t actual;
	CHECK_OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, self->run->opt.limits, &actual,
		&self->ni));
	if (getenv("P3_TEST_AHEAD"))
		send_ahead(p3_nic(self->node));
	return self->ni;
}

static const struct p3_far_conf *far; /* the nodes' hosts, or NULL */

int nodes_missed_faults(void)
{
	return placed_missed() && !getenv("P3_CASE");
}

/* Check the counters of errors that would otherwise pass unnoticed. */
static void check_stats(struct member *m)
{
	ptlx_stats_t st = {.struct_size = sizeof st};
	if (m->frozen || PtlXStats(m->ni, &st) != PTL_OK)
		return; /* the test has closed it */
	placed_count(p3_nic(m->node));
	if (st.bad_headers && !m->run->opt.bad_headers)
		CHECK_EQ(st.bad_headers, 0);
	/* park_late counts sleeps whose end finds work.  A wake-up that comes just at the
	 * end may count, too, and one whose sender has lost the CPU before it.  Where
	 * wake-ups are lost, there are as many of these as wake-ups. */
	CHECK(st.park_late <=
		LATE_MOST + p3_nic_counter(p3_nic(m->node), P3_C_WAKES) / 4);
	if (st.park_late)
		fprintf(stderr, "node %u: park_late %llu\n", m->rank,
			(unsigned long long)st.park_late);
}

static void live(struct member *m)
{
	int most;
	CHECK_OK(PtlInit(&most));
	m->ni = PTL_INVALID_HANDLE;
	if (!m->run->opt.no_ni)
		node_ni();
	m->run->fn(m->rank, m->run->n, m->ni, m->run->arg);
	check_stats(m);
}

/* Keep the lease of a node that has died until all others have ended: its firmware would
 * answer them. */
static void stay_dead(struct member *m)
{
	while (p3_get(&m->run->ended) < m->run->n)
		sleep_ms(1);
	p3_lease_leave(p3_nic(m->node));
}

static void *member_main(void *arg)
{
	struct member *m = arg;
	jmp_buf out;
	self = m;
	m->node = own_node_create(m->sock);
	m->node->far = far;
	way_out = &out;
	if (setjmp(out) == 0)
		live(m);
	way_out = NULL;
	join_sides(m);
	(void)p3_add32(&m->run->ended, 1);
	if (m->frozen)
		stay_dead(m);
	struct p3_node *node = m->node;
	pthread_mutex_lock(&dog_lock);
	m->node = NULL;
	pthread_mutex_unlock(&dog_lock);
	own_node_destroy(node);
	free_blocks(m);
	return NULL;
}

/* ---- a run ---- */

/*
 * Return the number of CPUs that the library is told.  With too few, a dedicated NIC
 * thread yields as soon as a host wants to run, and would hardly be tested.
 */
static uint32_t cpus_for(unsigned n)
{
	const char *mode = getenv("PTL3_MODE");
	uint32_t cpus = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
	bool dedicated = mode && strcmp(mode, "dedicated") == 0;
	return dedicated && cpus < 2 * n ? 2 * n : cpus;
}

void run_nodes_opt(unsigned n, nodes_fn *fn, void *arg, const struct nodes_opt *opt)
{
	static const struct nodes_opt none;
	struct run *run = calloc(1, sizeof *run);
	int sock[NODES_MAX];
	far = placed_on_hosts();
	run->n = run->all.n = n;
	run->fn = fn;
	run->arg = arg;
	run->opt = opt ? *opt : none;
	struct starter *starter = starter_new(n, cpus_for(n),
		p3_conf_attach_late(p3_conf_text(P3_CONF_ATTACH), n), sock);
	for (unsigned i = 0; i < n; i++) {
		struct member *m = &run->member[i];
		m->run = run;
		m->rank = i;
		m->sock = sock[i];
		pthread_mutex_init(&m->lock, NULL);
	}
	p3_set(&failures, 0);
	dog_watch(run);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(pthread_create(&run->member[i].thread, NULL, member_main,
					 &run->member[i]),
			0);
	for (unsigned i = 0; i < n; i++)
		pthread_join(run->member[i].thread, NULL);
	starter_end(starter);
	pthread_mutex_lock(&dog_lock);
	dog_run = NULL;
	pthread_mutex_unlock(&dog_lock);
	free(run);
	assert_int_equal(p3_acquire(&failures), 0);
}

void run_nodes(unsigned n, nodes_fn *fn, void *arg)
{
	run_nodes_opt(n, fn, arg, NULL);
}

void sync_nodes(void)
{
	(void)p3_add32(&self->run->met, 1);
	CHECK_OK(PtlXBarrier());
	(void)p3_acquire(&self->run->met);
}

/* ---- Portals calls in one line ---- */

ptl_process_id_t id_of(ptl_handle_ni_t ni, unsigned rank)
{
	ptl_process_id_t id;
	CHECK_OK(PtlGetRankId(ni, rank, &id));
	return id;
}

ptl_process_id_t anybody(void)
{
	return (ptl_process_id_t){PTL_NID_ANY, PTL_PID_ANY};
}

ptl_handle_eq_t eq_new(ptl_handle_ni_t ni, ptl_size_t n)
{
	ptl_handle_eq_t eq;
	CHECK_OK(PtlEQAlloc(ni, n, PTL_EQ_HANDLER_NONE, &eq));
	return eq;
}

ptl_md_t md_of(void *start, size_t len, unsigned options, ptl_handle_eq_t eq)
{
	return (ptl_md_t){.start = start,
		.length = len,
		.threshold = PTL_MD_THRESH_INF,
		.options = options,
		.user_ptr = start,
		.eq_handle = eq};
}

ptl_md_t source_md(void *start, size_t len, ptl_handle_eq_t eq)
{
	return md_of(start, len, PTL_MD_EVENT_START_DISABLE, eq);
}

ptl_md_t sink_md(void *start, size_t len, ptl_handle_eq_t eq)
{
	return md_of(start, len, MD_ANY | PTL_MD_EVENT_START_DISABLE, eq);
}

void unlink_at_last(ptl_handle_md_t md)
{
	int rc;
	struct patience p = patience_begin();
	while ((rc = PtlMDUnlink(md)) == PTL_MD_IN_USE && !patience_is_over(&p))
		sleep_ms(1);
	CHECK_OK(rc);
}

ptl_handle_md_t bind_md(ptl_handle_ni_t ni, ptl_md_t md)
{
	ptl_handle_md_t h;
	CHECK_OK(PtlMDBind(ni, md, PTL_RETAIN, &h));
	return h;
}

ptl_handle_me_t me_last(ptl_handle_ni_t ni, ptl_pt_index_t pt, ptl_match_bits_t bits,
	ptl_match_bits_t ignore, ptl_unlink_t unlink)
{
	ptl_handle_me_t me;
	CHECK_OK(
		PtlMEAttach(ni, pt, anybody(), bits, ignore, unlink, PTL_INS_AFTER, &me));
	return me;
}

ptl_handle_md_t post_md(
	ptl_handle_ni_t ni, ptl_pt_index_t pt, ptl_match_bits_t bits, ptl_md_t md)
{
	ptl_handle_md_t h;
	CHECK_OK(PtlMDAttach(me_last(ni, pt, bits, 0, PTL_RETAIN), md, PTL_RETAIN, &h));
	return h;
}

int put_to(ptl_handle_ni_t ni, ptl_handle_md_t md, unsigned rank, ptl_pt_index_t pt,
	ptl_match_bits_t bits, ptl_ack_req_t ack)
{
	return PtlPut(md, ack, id_of(ni, rank), pt, 0, bits, 0, 0);
}

int get_from(ptl_handle_ni_t ni, ptl_handle_md_t md, unsigned rank, ptl_pt_index_t pt,
	ptl_match_bits_t bits)
{
	return PtlGet(md, id_of(ni, rank), pt, 0, bits, 0);
}

ptl_event_t next_event_at(const char *file, int line, ptl_handle_eq_t eq)
{
	ptl_event_t ev;
	int which;
	check_at(file, line);
	struct patience p = patience_begin();
	int rc;
	do
		rc = PtlEQPoll(&eq, 1, LOOK_MS, &ev, &which);
	while (rc == PTL_EQ_EMPTY && !patience_is_over(&p));
	if (rc != PTL_OK)
		check_failed(file, line, "waiting for an event gives %s",
			PtlErrorStr((unsigned)rc));
	return ev;
}

ptl_event_t expect_at(
	const char *file, int line, ptl_handle_eq_t eq, ptl_event_kind_t kind)
{
	ptl_event_t ev = next_event_at(file, line, eq);
	if (ev.type != kind)
		check_failed(file, line, "event %s, not %s", PtlEventKindStr(ev.type),
			PtlEventKindStr(kind));
	if (ev.ni_fail_type != PTL_NI_OK)
		check_failed(file, line, "event %s says %s", PtlEventKindStr(ev.type),
			PtlNIFailStr(PTL_INVALID_HANDLE, ev.ni_fail_type));
	return ev;
}

ptl_event_t expect_pair_at(
	const char *file, int line, ptl_handle_eq_t eq, ptl_event_kind_t start)
{
	ptl_seq_t link = expect_at(file, line, eq, start).link;
	ptl_event_t end = expect_at(file, line, eq, start + 1);
	if (end.link != link)
		check_failed(file, line, "%s is not that of the START before it",
			PtlEventKindStr(end.type));
	return end;
}

void expect_empty_at(const char *file, int line, ptl_handle_eq_t eq)
{
	ptl_event_t ev;
	int rc = PtlEQGet(eq, &ev);
	check_at(file, line);
	if (rc == PTL_EQ_EMPTY)
		return;
	check_failed(file, line, "an event too many: %s, %s",
		rc == PTL_OK ? PtlEventKindStr(ev.type) : "", PtlErrorStr((unsigned)rc));
}

ptlx_stats_t stats_of(ptl_handle_ni_t ni)
{
	ptlx_stats_t st = {.struct_size = sizeof st};
	CHECK_OK(PtlXStats(ni, &st));
	return st;
}

uint64_t drops_of(ptl_handle_ni_t ni)
{
	return stats_of(ni).drops;
}

void run_for_drops(ptl_handle_ni_t ni, uint64_t drops)
{
	struct patience p = patience_begin();
	while (drops_of(ni) < drops && !patience_is_over(&p))
		sleep_ms(1);
	CHECK_EQ(drops_of(ni), drops);
}
