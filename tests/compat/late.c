/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * late - processes that begin with a message, while the others may come late
 *
 *	late style stagger_ms up|down gap_ms
 *
 *	put	one to all, without ACK; SEND_END of each, then as many from the others
 *	ack	the same with ACK, put once more each second until it comes
 *	get	one from all, each of which shows its own number
 *	unlink	put, whose descriptor is unlinked as soon as the call has returned
 *	leave	rank 0 puts, waits for its SEND_END, and ends; the others take that
 *	exit	the same by _exit, without PtlNIFini
 *	part	rank 0 puts, unlinks at once as above, and calls PtlNIFini
 *	two	the same with a second interface, which closes last
 *	quit	the same without PtlNIFini: main returns
 *	beside	the same, while another thread is inside PtlNIFini
 *
 * The last rank (up), or rank 0 (down), calls PtlNIInit stagger_ms after the first one,
 * those between come between.  Each attaches its entries gap_ms after PtlNIInit.  No
 * rank enters a barrier.  Written as programs for the reference implementation were: a
 * process that yod did not start takes its rank and the ids from PTL_MY_RID, PTL_NIDMAP
 * and PTL_PIDMAP, or from the variables of mpirun.
 */
#include "../support/asleep.h"

#include <portals3.h>

#include <catamount/cnos_mpi_os.h>
#include <p3nal_utcp.h>
#include <p3rt/p3rt.h>

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 64, PT_IN = 7, PT_SHOWN = 9, SECOND_MS = 1000, LIMIT_S = 400 };

static struct {
	unsigned rank, size;
	ptl_handle_ni_t ni;
	ptl_handle_eq_t in, out;
	ptl_process_id_t id[MOST];
	uint64_t shown;     /* for gets */
	uint64_t own[MOST]; /* for puts, by target */
	uint64_t got[MOST]; /* in any order */
	unsigned taken;
} me;

static _Noreturn void fail(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fprintf(stderr, "rank %u: ", me.rank);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	_exit(1);
}

#define DO(call)                                                                         \
	do {                                                                             \
		int rc_ = (call);                                                        \
		if (rc_ != PTL_OK)                                                       \
			fail("%s: %s", #call, ptl_err_str[rc_]);                         \
	} while (0)

static uint64_t word(unsigned from, unsigned to)
{
	return ((uint64_t)from << 32 | to) * 0x9e3779b97f4a7c15u + 1;
}

/* ---- beginning ---- */

static void come(unsigned stagger_ms, bool up)
{
	int most;
	ptl_process_id_t own = {PTL_NID_ANY, PTL_PID_ANY};
	DO(PtlInit(&most));
	if (getenv("PTL_MY_RID"))
		DO(PtlSetRank(PTL_INVALID_HANDLE, -1, -1));
	DO(PtlGetRank(PTL_INVALID_HANDLE, &me.rank, &me.size));
	if (me.size > MOST || me.size < 2)
		fail("from 2 to %d ranks, please", MOST);
	unsigned turn = up ? me.rank : me.size - 1 - me.rank;
	/* pause: the stagger between processes, which this test is about */
	sleep_ms(stagger_ms * turn / (me.size - 1));
	if (getenv("PTL_PIDMAP") && cnos_launcher() != CNOS_LAUNCHER_YOD)
		DO(PtlGetRankId(PTL_INVALID_HANDLE, me.rank, &own));
	DO(PtlNIInit(PTL_IFACE_DEFAULT, own.pid, NULL, NULL, &me.ni));
	for (unsigned i = 0; i < me.size; i++)
		DO(PtlGetRankId(me.ni, i, &me.id[i]));
}

static void attach(ptl_pt_index_t index, void *start, ptl_size_t length, unsigned options,
	ptl_handle_eq_t eq)
{
	ptl_handle_me_t entry;
	ptl_process_id_t any = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_md_t md = {.start = start,
		.length = length,
		.threshold = PTL_MD_THRESH_INF,
		.options = options | PTL_MD_EVENT_START_DISABLE,
		.eq_handle = eq};
	DO(PtlMEAttach(me.ni, index, any, 0, ~(ptl_match_bits_t)0, PTL_RETAIN,
		PTL_INS_AFTER, &entry));
	DO(PtlMDAttach(entry, md, PTL_RETAIN, NULL));
}

static void open_doors(void)
{
	me.shown = word(me.rank, me.rank);
	DO(PtlEQAlloc(me.ni, 1024, PTL_EQ_HANDLER_NONE, &me.in));
	DO(PtlEQAlloc(me.ni, 1024, PTL_EQ_HANDLER_NONE, &me.out));
	attach(PT_IN, me.got, sizeof me.got, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, me.in);
	attach(PT_SHOWN, &me.shown, sizeof me.shown, PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE,
		PTL_EQ_NONE);
}

static ptl_handle_md_t bind(uint64_t *at)
{
	ptl_handle_md_t handle;
	ptl_md_t md = {.start = at,
		.length = sizeof *at,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_EVENT_START_DISABLE,
		.eq_handle = me.out};
	DO(PtlMDBind(me.ni, md, PTL_RETAIN, &handle));
	return handle;
}

/* ---- messages ---- */

static void put(ptl_handle_md_t md, unsigned to, ptl_ack_req_t ack)
{
	DO(PtlPut(md, ack, me.id[to], PT_IN, 0, to, sizeof me.got[0] * me.rank, 0));
}

static ptl_handle_md_t put_own(unsigned to, ptl_ack_req_t ack)
{
	me.own[to] = word(me.rank, to);
	ptl_handle_md_t md = bind(&me.own[to]);
	put(md, to, ack);
	return md;
}

static void check_end(const ptl_event_t *ev)
{
	if (ev->ni_fail_type != PTL_NI_OK)
		fail("%s of the message to %u fails", PtlEventKindStr(ev->type),
			(unsigned)ev->match_bits);
}

/* Expect this number of events of a kind, without failure. */
static void expect(ptl_event_kind_t kind, unsigned n)
{
	ptl_event_t ev;
	while (n) {
		DO(PtlEQWait(me.out, &ev));
		check_end(&ev);
		n -= ev.type == kind;
	}
}

static void take(unsigned n)
{
	ptl_event_t ev;
	bool had[MOST] = {false};
	while (me.taken < n) {
		DO(PtlEQWait(me.in, &ev));
		unsigned from = (unsigned)(ev.offset / sizeof me.got[0]);
		if (from >= me.size || me.got[from] != word(from, me.rank))
			fail("a wrong word from %u", from);
		me.taken += !had[from];
		had[from] = true;
	}
}

#define OTHERS(i)                                                                        \
	for (unsigned i = 0; i < me.size; i++)                                           \
		if (i != me.rank)

static void put_to_all(void)
{
	OTHERS(i)
	(void)put_own(i, PTL_NOACK_REQ);
	expect(PTL_EVENT_SEND_END, me.size - 1);
	take(me.size - 1);
}

static bool has_ack(unsigned to)
{
	ptl_event_t ev;
	int which, rc;
	while ((rc = PtlEQPoll(&me.out, 1, SECOND_MS, &ev, &which)) == PTL_OK) {
		check_end(&ev);
		if (ev.type == PTL_EVENT_ACK && ev.match_bits == to)
			return true;
	}
	if (rc != PTL_EQ_EMPTY)
		fail("PtlEQPoll: %s", ptl_err_str[rc]);
	return false;
}

static void shake_hands(void)
{
	OTHERS(i)
	{
		ptl_handle_md_t md = put_own(i, PTL_ACK_REQ);
		while (!has_ack(i))
			put(md, i, PTL_ACK_REQ);
	}
	take(me.size - 1);
}

/* Get from all; stay until the others have got their words, too. */
static void get_from_all(void)
{
	OTHERS(i)
	{
		ptl_handle_md_t md = bind(&me.own[i]);
		DO(PtlGet(md, me.id[i], PT_SHOWN, 0, i, 0));
	}
	expect(PTL_EVENT_REPLY_END, me.size - 1);
	OTHERS(i)
	if (me.own[i] != word(i, i))
		fail("a wrong word of %u", i);
	put_to_all();
}

static void put_and_unlink(void)
{
	OTHERS(i)
	DO(PtlMDUnlink(put_own(i, PTL_NOACK_REQ)));
	take(me.size - 1);
}

/* Rank 0's messages are the only ones. */
static void put_and_end(void)
{
	if (me.rank) {
		take(1);
		return;
	}
	OTHERS(i)
	(void)put_own(i, PTL_NOACK_REQ);
	expect(PTL_EVENT_SEND_END, me.size - 1);
}

/* The same without a wait for SEND_END: it is there. */
static void put_unlink_and_end(void)
{
	ptl_event_t ev;
	if (me.rank) {
		take(1);
		return;
	}
	OTHERS(i)
	{
		DO(PtlMDUnlink(put_own(i, PTL_NOACK_REQ)));
		me.own[i] = 0;
		DO(PtlEQGet(me.out, &ev));
		check_end(&ev);
	}
}

/* The same; the interface of the messages closes, and a second one stays open. */
static void put_from_the_first_of_two(void)
{
	ptl_handle_ni_t other;
	put_unlink_and_end();
	if (me.rank)
		return;
	DO(PtlNIInit(PTL_IFACE_SS, PTL_PID_ANY, NULL, NULL, &other));
	DO(PtlNIFini(me.ni));
	me.ni = other;
}

/* ---- ends ---- */

static pthread_barrier_t closing;
static pid_t closer;

static void *close_interface(void *unused)
{
	(void)unused;
	closer = gettid();
	pthread_barrier_wait(&closing);
	DO(PtlNIFini(me.ni));
	return NULL;
}

/* Let another thread call PtlNIFini, and return when it is most likely inside. */
static void begin_to_close(void)
{
	pthread_t thread;
	if (pthread_barrier_init(&closing, NULL, 2) != 0)
		fail("pthread_barrier_init fails");
	if (pthread_create(&thread, NULL, close_interface, NULL) != 0)
		fail("pthread_create fails");
	pthread_detach(thread);
	pthread_barrier_wait(&closing);
	if (!await_thread_state(closer, 'S'))
		fail("the thread that closes neither sleeps nor ends");
}

enum end { BY_FINI, BY_EXIT, BY_RETURN, BESIDE_FINI };

static const struct style {
	const char *name;
	void (*play)(void);
	enum end end;
} styles[] = {{"put", put_to_all, BY_FINI}, {"ack", shake_hands, BY_FINI},
	{"get", get_from_all, BY_FINI}, {"unlink", put_and_unlink, BY_FINI},
	{"leave", put_and_end, BY_FINI}, {"exit", put_and_end, BY_EXIT},
	{"part", put_unlink_and_end, BY_FINI},
	{"two", put_from_the_first_of_two, BY_FINI},
	{"quit", put_unlink_and_end, BY_RETURN},
	{"beside", put_unlink_and_end, BESIDE_FINI}};

static const struct style *find(const char *name)
{
	for (size_t i = 0; i < sizeof styles / sizeof styles[0]; i++)
		if (strcmp(name, styles[i].name) == 0)
			return &styles[i];
	fail("no style %s", name);
}

int main(int argc, char **argv)
{
	if (argc != 5)
		fail("usage: late style stagger_ms up|down gap_ms");
	const struct style *style = find(argv[1]);
	alarm(LIMIT_S);
	come((unsigned)atoi(argv[2]), strcmp(argv[3], "up") == 0);
	/* pause: a gap before the first descriptor, which this test is about */
	sleep_ms((unsigned)atoi(argv[4]));
	open_doors();
	style->play();
	printf("fine\n");
	fflush(stdout);
	if (style->end == BY_EXIT)
		_exit(0);
	if (style->end == BESIDE_FINI)
		begin_to_close();
	if (style->end == BY_RETURN || style->end == BESIDE_FINI)
		return 0;
	DO(PtlNIFini(me.ni));
	PtlFini();
	return 0;
}
