/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * storm - calls from signal handlers that interrupt the same thread anywhere: storm SCENE
 *
 *	calls	handlers (of a timer, and of signals that another thread sends at random)
 *		make all allowed calls while the main thread is in each call of the
 *		library, also in PtlNIInit and PtlNIFini of the second interface; messages
 *		of both go to the next rank, all that were accepted arrive, whole
 *	again	the same while the library comes and goes
 *	active	active messages: requests are answered by a handler only
 *
 * A call that waits for the interrupted call never returns: yod's time limit ends the
 * test then.
 */
#include "mp.h"

#include <catamount/cnos_mpi_os.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

enum {
	SLOTS = 4096,
	WORDS = 4,
	OTHER = 5,
	ROUNDS = 20,
	PHASE_MS = 400,
	LIVES = 25,
	REQUESTS = 800
};
enum { DATA = 1, TALE = 2, REQUEST = 3, REPLY = 4 };

typedef uint64_t slot_t[WORDS];

static slot_t out[SLOTS], in[SLOTS], fetched[2];
static ptl_handle_ni_t ni;
static ptl_handle_eq_t acks, news;
static ptl_handle_md_t out_md, get_md, in_md;
static ptl_process_id_t next_id;
static unsigned rank, size;
static _Atomic uint64_t numbered, next_seq[2], sent, sent_sum, acked, came, came_sum,
	asked, replied;
static _Atomic unsigned handled, refused, wrong_line;
static _Atomic bool quiet, over; /* no traffic; no signals */
static pthread_t victim;

/* These handlers may allocate: they never interrupt malloc. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "report_signal_unsafe=0";
}

static void is_right(bool right, unsigned line)
{
	if (!right)
		wrong_line = line;
}

/* Check a code.  From handlers each call may return PTL_NO_SPACE; while the library
 * comes and goes any code. */
static bool ok_at(int rc, unsigned line)
{
	refused += rc == PTL_NO_SPACE;
	is_right(rc == PTL_OK || rc == PTL_NO_SPACE || quiet, line);
	return rc == PTL_OK;
}
#define OK(call)    ok_at(call, __LINE__)
#define RIGHT(cond) is_right(cond, __LINE__)

/* ---- traffic ---- */

/* Put one message.  Handlers, and the main thread, which they may interrupt for long,
 * have half of the slots each. */
static void put_one(unsigned half)
{
	if (quiet || numbered - acked >= SLOTS / 4)
		return;
	numbered++;
	uint64_t seq = next_seq[half]++, at = seq % (SLOTS / 2) + half * (SLOTS / 2);
	seq |= (uint64_t)half << 32;
	for (unsigned i = 0; i < WORDS; i++)
		out[at][i] = mp_mix(seq + 1 + ((uint64_t)rank << 40)) + i;
	int rc = PtlPutRegion(out_md, at * sizeof(slot_t), sizeof(slot_t), PTL_ACK_REQ,
		next_id, MP_PORTAL, 0, DATA, at * sizeof(slot_t), seq);
	if (rc == PTL_OK) {
		sent++;
		sent_sum += mp_mix(seq);
	} else {
		refused++;
		acked++; /* up to the limit */
		RIGHT(rc == PTL_NO_SPACE);
	}
}

static void get_one(void)
{
	if (!quiet && asked - replied < 64 &&
		OK(PtlGet(get_md, next_id, MP_PORTAL, 0, OTHER, 0)))
		asked++;
}

static void take(const ptl_event_t *ev)
{
	RIGHT(ev->ni_fail_type == PTL_NI_OK || quiet);
	if (ev->type == PTL_EVENT_ACK) {
		acked++;
	} else if (ev->type == PTL_EVENT_REPLY_END) {
		replied++;
	} else if (ev->type == PTL_EVENT_PUT_END && ev->match_bits == DATA) {
		came++;
		came_sum += mp_mix(ev->hdr_data);
	}
}

static void read_all(void)
{
	ptl_event_t ev;
	ptl_handle_eq_t both[2] = {news, acks};
	int which;
	while (PtlEQGet(acks, &ev) == PTL_OK)
		take(&ev);
	while (PtlEQPoll(both, 2, 0, &ev, &which) == PTL_OK)
		take(&ev);
	int rc = PtlEQPeek(news, &ev);
	RIGHT(rc == PTL_OK || rc == PTL_EQ_EMPTY || quiet);
}

/* ---- calls of handlers ---- */

static void objects(void)
{
	ptl_process_id_t any = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_md_t d = {.threshold = 1, .eq_handle = PTL_EQ_NONE};
	ptl_md_iovec_t piece = {fetched, 8};
	ptl_handle_md_t md;
	ptl_handle_me_t me;
	ptl_handle_eq_t eq;
	if (OK(PtlMDBind(ni, d, PTL_UNLINK, &md)))
		OK(PtlMDUnlink(md));
	d.options = PTL_MD_IOVEC;
	d.start = &piece;
	d.length = 1;
	if (OK(PtlMDBind(ni, d, PTL_UNLINK, &md)))
		OK(PtlMDUnlink(md));
	if (OK(PtlMEAttach(ni, OTHER, any, 1, 0, PTL_UNLINK, PTL_INS_AFTER, &me)))
		OK(PtlMEUnlink(me));
	if (OK(PtlEQAlloc(ni, 8, PTL_EQ_HANDLER_NONE, &eq)))
		OK(PtlEQFree(eq));
	OK(PtlMDUpdate(out_md, &d, NULL, PTL_EQ_NONE));
	OK(PtlACEntry(ni, 5, any, PTL_UID_ANY, PTL_JID_ANY, PTL_PT_INDEX_ANY));
}

static void questions(void)
{
	ptl_handle_ni_t whose;
	ptl_process_id_t id;
	ptl_uid_t uid;
	ptl_jid_t jid;
	ptl_sr_value_t drops;
	ptlx_stats_t stats = {.struct_size = sizeof stats};
	unsigned long distance;
	unsigned r, n;
	ptl_pid_t pids[MP_MOST];
	int most;
	RIGHT(quiet || (PtlNIHandle(out_md, &whose) == PTL_OK && whose == ni));
	RIGHT(quiet || PtlGetUid(ni, &uid) == PTL_OK);
	RIGHT(quiet || PtlGetJid(ni, &jid) == PTL_OK);
	RIGHT(quiet || PtlGetId(ni, &id) == PTL_OK);
	RIGHT(quiet || PtlNIDist(ni, next_id, &distance) == PTL_OK);
	RIGHT(quiet || PtlXStats(ni, &stats) == PTL_OK);
	OK(PtlNIStatus(ni, PTL_SR_DROP_COUNT, &drops));
	RIGHT(quiet || (PtlGetRank(ni, &r, &n) == PTL_OK && r == rank && n == size));
	RIGHT(quiet || PtlGetRankId(ni, 0, &id) == PTL_OK);
	RIGHT(quiet || PtlGetPIDMap(ni, pids, (int)size) == PTL_OK);
	RIGHT(quiet || cnos_get_rank() == (int)rank);
	RIGHT(quiet || cnos_get_size() == (int)size);
	RIGHT(quiet || cnos_launcher() == CNOS_LAUNCHER_YOD);
	RIGHT(PtlErrorStr(PTL_OK) && PtlEventKindStr(PTL_EVENT_ACK) && PtlXVersion());
	RIGHT(PtlNIFailStr(ni, PTL_NI_OK) && PtlHandleIsEqual(ni, ni) == PTL_OK);
	int rc = quiet ? PTL_OK : PtlInit(&most);
	RIGHT(rc == PTL_OK || rc == PTL_FAIL);
}

static void memory(void)
{
	void *block;
	cnos_nidpid_map_t *map;
	if (OK(PtlXAlloc(100, &block)))
		OK(PtlXFree(block));
	(void)cnos_get_nidpid_map(&map);
	(void)PtlSetRank(PTL_INVALID_HANDLE, -1, -1);
	(void)PtlProgress(ni, 0);
}

/*
 * Set the timer for one more signal, or for none at the end: a timer that repeats would
 * leave the interrupted call no time.  Do not use it under ThreadSanitizer (of gcc 12),
 * which leaves all signals blocked when a second one comes just as it is about to run the
 * first one's handler.
 */
static void next_flash(void)
{
#ifndef __SANITIZE_THREAD__
	struct itimerval once = {.it_value = {0, over ? 0 : 50 + handled % 16 * 40}};
	(void)setitimer(ITIMER_REAL, &once, NULL);
#endif
	handled++;
}

static void on_signal(int number)
{
	static _Atomic unsigned turn;
	int saved = errno;
	(void)number;
	put_one(1);
	read_all();
	switch (turn++ % 4) {
	case 0:
		get_one();
		break;
	case 1:
		objects();
		break;
	case 2:
		questions();
		break;
	default:
		memory();
	}
	next_flash();
	errno = saved;
}

/* ---- signals ---- */

static void *thunder(void *arg)
{
	uint64_t random = 1 + rank;
	(void)arg;
	while (!over) {
		unsigned before = handled;
		struct timespec nap = {0, (long)((random = mp_mix(random)) % 500000)};
		(void)pthread_kill(victim, SIGUSR1);
		while (handled == before && !over)
			sched_yield();
		nanosleep(&nap, NULL);
	}
	return NULL;
}

/* Begin the signals of the timer and of the other thread.  nested: each may interrupt the
 * other's handler. */
static pthread_t begin(void (*handler)(int), bool nested)
{
	pthread_t other;
	sigset_t both, were;
	struct sigaction act = {.sa_handler = handler};
	victim = pthread_self();
	over = false;
	sigemptyset(&both);
	sigaddset(&both, SIGALRM);
	sigaddset(&both, SIGUSR1);
	if (!nested)
		act.sa_mask = both;
	pthread_sigmask(SIG_BLOCK, &both, &were); /* the other thread takes no SIGALRM */
	mp_check(pthread_create(&other, NULL, thunder, NULL) == 0, "no thread");
	mp_check(sigaction(SIGUSR1, &act, NULL) == 0, "sigaction");
	mp_check(sigaction(SIGALRM, &act, NULL) == 0, "sigaction");
	next_flash();
	pthread_sigmask(SIG_SETMASK, &were, NULL);
	return other;
}

static void end(pthread_t other)
{
	struct itimerval never = {{0, 0}, {0, 0}};
	over = true;
	(void)setitimer(ITIMER_REAL, &never, NULL); /* a handler may set it again later */
	mp_check(pthread_join(other, NULL) == 0, "join");
	(void)signal(SIGALRM, SIG_IGN);
	(void)signal(SIGUSR1, SIG_IGN);
	mp_check(!wrong_line, "line %u, in a handler", wrong_line);
}

/* ---- calls of the main thread ---- */

static void calls_on_objects(unsigned round)
{
	ptl_process_id_t any = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_md_iovec_t pieces[2] = {{fetched[0], 8}, {fetched[1], 8}};
	ptl_md_t d = {.threshold = 1, .eq_handle = PTL_EQ_NONE}, old = {.options = 0};
	ptl_handle_me_t me, second;
	ptl_handle_md_t md;
	ptl_handle_eq_t eq;
	mp_ok(PtlEQAlloc(ni, 16u << round % 8, PTL_EQ_HANDLER_NONE, &eq));
	mp_ok(PtlMEAttach(ni, OTHER, any, 2, 0, PTL_RETAIN, PTL_INS_BEFORE, &me));
	mp_ok(PtlMEInsert(me, any, 3, 0, PTL_RETAIN, PTL_INS_AFTER, &second));
	d.start = pieces;
	d.length = 2;
	d.options = PTL_MD_IOVEC | PTL_MD_OP_GET;
	mp_ok(PtlMDAttach(me, d, PTL_RETAIN, &md));
	d.eq_handle = eq;
	mp_ok(PtlMDUpdate(md, &old, &d, eq));
	mp_check(old.length == 2, "an updated descriptor");
	mp_ok(PtlMDUnlink(md));
	mp_ok(PtlMEUnlink(me));
	mp_ok(PtlMEUnlink(second));
	mp_ok(PtlEQFree(eq));
}

static void calls_around(unsigned round)
{
	void *block;
	cnos_nidpid_map_t *map;
	ptl_handle_ni_t other;
	ptl_event_t ev;
	unsigned r, n;
	int which, rc;
	mp_ok(PtlXAlloc(1000 + 4000 * (round % 50), &block));
	mp_check(cnos_get_nidpid_map(&map) == (int)size, "no map");
	mp_ok(PtlGetRank(ni, &r, &n));
	mp_ok(PtlXFree(block));
	mp_ok(PtlNIInit(PTL_IFACE_SS, PTL_PID_ANY, NULL, NULL, &other));
	mp_ok(PtlNIFini(other));
	while ((rc = PtlEQPoll(&acks, 1, 1, &ev, &which)) == PTL_OK)
		take(&ev);
	mp_check(rc == PTL_EQ_EMPTY, "PtlEQPoll: %s", PtlErrorStr((unsigned)rc));
}

static void set_up(void)
{
	mp_start();
	ni = mp.ni;
	rank = mp.rank;
	size = mp.size;
	next_id = mp.id[(rank + 1) % size];
	acks = mp_queue(1 << 14);
	news = mp_queue(1 << 16);
	out_md = mp_bind(out, sizeof out, acks, PTL_MD_EVENT_END_DISABLE);
	get_md = mp_bind(fetched, sizeof(slot_t), acks, 0);
	in_md = mp_attach(
		DATA, in, sizeof in, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, news);
	mp_attach(OTHER, mp_pattern, sizeof(slot_t),
		PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | PTL_MD_TRUNCATE, PTL_EQ_NONE);
	mp_barrier();
}

static void wait_until(_Atomic uint64_t *counter, uint64_t value, const char *what)
{
	for (struct patience p = patience_begin(); *counter != value;) {
		read_all();
		mp_check(!patience_is_over(&p) && *counter <= value, "%s: %llu of %llu",
			what, (unsigned long long)*counter, (unsigned long long)value);
	}
}

/* Tell the next rank the number of messages sent, which it must have received exactly. */
static void compare(void)
{
	static uint64_t mine[2], told[2];
	ptl_handle_eq_t eq = mp_queue(8);
	uint64_t ticks = numbered - sent; /* refused ones were counted as acked */
	wait_until(&acked, sent + ticks, "ACKs");
	wait_until(&replied, asked, "replies");
	mp_attach(TALE, told, sizeof told, PTL_MD_OP_PUT, eq);
	mp_barrier();
	mine[0] = sent;
	mine[1] = sent_sum;
	mp_put(mp_bind(mine, sizeof mine, PTL_EQ_NONE, 0), 0, sizeof mine, PTL_NO_ACK_REQ,
		(rank + 1) % size, TALE, 0, 0);
	(void)mp_expect(eq, PTL_EVENT_PUT_END);
	wait_until(&came, told[0], "messages");
	mp_check(came_sum == told[1], "others came than were sent");
	for (unsigned i = 0; i < SLOTS; i++)
		for (unsigned k = 1; k < WORDS; k++)
			mp_check(in[i][k] == (in[i][0] ? in[i][0] + k : 0),
				"torn data in slot %u: %llx %llx %llx %llx", i,
				(unsigned long long)in[i][0],
				(unsigned long long)in[i][1],
				(unsigned long long)in[i][2],
				(unsigned long long)in[i][3]);
	for (unsigned k = 0; k < sizeof(slot_t); k++)
		mp_check(!asked || ((char *)fetched[0])[k] == (char)mp_pattern[k],
			"what was fetched");
}

static unsigned scaled(unsigned n)
{
	return getenv("P3_QUICK") ? n / 10 : n;
}

/* On a busy machine a call may cost some turns of the scheduler: a time limit ends the
 * loop. */
static void call_on_and_on(void)
{
	uint64_t end_ns = now_ns() + PHASE_MS * 1000000u;
	for (unsigned i = 0; i < scaled(ROUNDS) && now_ns() < end_ns; i++) {
		calls_on_objects(i);
		calls_around(i);
		put_one(0);
		get_one();
	}
}

static void calls(void)
{
	set_up();
	pthread_t other = begin(on_signal, true);
	for (unsigned i = 0; i < 2; i++) {
		call_on_and_on();
		mp_barrier();
	}
	end(other);
	mp_check(handled < 500 || refused, "%u handlers, and none interrupted a call",
		(unsigned)handled);
	compare();
	mp_end();
}

static void again(void)
{
	int most;
	set_up();
	quiet = true;
	pthread_t other = begin(on_signal, true);
	for (unsigned i = 0; i < LIVES; i++) {
		PtlFini();
		mp_ok(PtlInit(&most));
		mp_ok(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni));
		mp_barrier();
	}
	end(other);
	mp_check(handled > 0, "no handler ran");
	PtlFini();
}

/* ---- active messages ---- */

static ptl_handle_md_t word_md;
static _Atomic uint64_t answered, waiting[REQUESTS + 1];
static _Atomic unsigned first, last;

/* Answer; without room the answer waits for the next signal. */
static void answer(void)
{
	while (first != last) {
		int rc = PtlPut(word_md, PTL_NO_ACK_REQ, next_id, MP_PORTAL, 0, REPLY, 0,
			waiting[first]);
		RIGHT(rc == PTL_OK || rc == PTL_NO_SPACE);
		if (rc != PTL_OK)
			return;
		first++;
	}
}

static void on_message(int number)
{
	int saved = errno;
	ptl_event_t ev;
	(void)number;
	while (PtlEQGet(news, &ev) == PTL_OK) {
		if (ev.match_bits == REQUEST) {
			waiting[last++] = ev.hdr_data;
		} else if (ev.match_bits == REPLY) {
			came_sum += mp_mix(ev.hdr_data);
			answered++;
		}
	}
	answer();
	next_flash();
	errno = saved;
}

static void active(void)
{
	static uint64_t words[2];
	uint64_t sum = 0;
	set_up();
	word_md = mp_bind(words, 8, PTL_EQ_NONE, 0);
	mp_attach(REQUEST, &words[1], 8, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, news);
	mp_attach(REPLY, &words[1], 8, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, news);
	mp_barrier();
	pthread_t other = begin(on_message, false);
	unsigned n = scaled(REQUESTS);
	for (uint64_t i = 0; i < n; i++) {
		sum += mp_mix(i);
		int rc;
		while ((rc = PtlPut(word_md, PTL_NO_ACK_REQ, next_id, MP_PORTAL, 0,
				REQUEST, 0, i)) == PTL_NO_SPACE)
			;
		mp_check(rc == PTL_OK, "%s", PtlErrorStr((unsigned)rc));
	}
	for (struct patience p = patience_begin(); answered < n;)
		mp_check(!patience_is_over(&p), "%llu answers",
			(unsigned long long)answered);
	mp_check(came_sum == sum, "other answers than requests");
	mp_barrier(); /* the other's handler still answers meanwhile */
	end(other);
	mp_check(last == n && first == last, "%u of %u answered", first, last);
	mp_end();
}

int main(int argc, char **argv)
{
	const char *scene = argc > 1 ? argv[1] : "";
	if (strcmp(scene, "calls") == 0)
		calls();
	else if (strcmp(scene, "again") == 0)
		again();
	else if (strcmp(scene, "active") == 0)
		active();
	else
		mp_fail(__FILE__, __LINE__, "storm calls|again|active, not '%s'", scene);
	return 0;
}
