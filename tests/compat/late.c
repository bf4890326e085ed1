/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * late - processes that begin with a message, while the others may come late
 *
 *	late style stagger_ms up|down gap_ms
 *
 *	put	one to all, without ACK; SEND_END of each, then as many from the others
 *	ack	the same with ACK, and the ACK of each
 *	long	the same with puts of LONG bytes, which their targets read
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
#include "../mp/mp.h"
#include "../support/asleep.h"

#include <catamount/cnos_mpi_os.h>
#include <p3nal_utcp.h>
#include <p3rt/p3rt.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 64, IN = 7, SHOWN = 9, LONG_IN = 11, LONG = 200000 };

static struct {
	ptl_handle_eq_t in, out;
	uint64_t shown;     /* for gets */
	uint64_t own[MOST]; /* for puts, by target */
	uint64_t got[MOST]; /* in any order */
	unsigned taken;
} me;

static uint64_t word(unsigned from, unsigned to)
{
	return ((uint64_t)from << 32 | to) * 0x9e3779b97f4a7c15u + 1;
}

/* ---- beginning ---- */

static void come(unsigned stagger_ms, bool up)
{
	int most;
	ptl_process_id_t own = {PTL_NID_ANY, PTL_PID_ANY};
	mp_ok(PtlInit(&most));
	if (getenv("PTL_MY_RID"))
		mp_ok(PtlSetRank(PTL_INVALID_HANDLE, -1, -1));
	mp_ok(PtlGetRank(PTL_INVALID_HANDLE, &mp.rank, &mp.size));
	mp_check(mp.size >= 2 && mp.size <= MOST, "from 2 to %d ranks, please", MOST);
	unsigned turn = up ? mp.rank : mp.size - 1 - mp.rank;
	/* pause: the stagger between processes, which this test is about */
	sleep_ms(stagger_ms * turn / (mp.size - 1));
	if (getenv("PTL_PIDMAP") && cnos_launcher() != CNOS_LAUNCHER_YOD)
		mp_ok(PtlGetRankId(PTL_INVALID_HANDLE, mp.rank, &own));
	mp_ok(PtlNIInit(PTL_IFACE_DEFAULT, own.pid, NULL, NULL, &mp.ni));
	for (unsigned i = 0; i < mp.size; i++)
		mp_ok(PtlGetRankId(mp.ni, i, &mp.id[i]));
}

static void open_doors(void)
{
	me.shown = word(mp.rank, mp.rank);
	me.in = mp_queue(1024);
	me.out = mp_queue(1024);
	mp_attach(IN, me.got, sizeof me.got, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, me.in);
	mp_attach(SHOWN, &me.shown, sizeof me.shown, PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE,
		PTL_EQ_NONE);
}

/* ---- messages ---- */

static ptl_handle_md_t put_own(unsigned to, ptl_ack_req_t ack)
{
	me.own[to] = word(mp.rank, to);
	ptl_handle_md_t md = mp_bind(&me.own[to], sizeof me.own[to], me.out, 0);
	mp_put(md, 0, sizeof me.own[to], ack, to, IN, sizeof me.got[0] * mp.rank, 0);
	return md;
}

static void expect_of_all(ptl_event_kind_t kind)
{
	for (unsigned n = mp.size - 1; n;) {
		ptl_event_t ev = mp_next(me.out);
		mp_check(ev.ni_fail_type == PTL_NI_OK, "%s fails",
			PtlEventKindStr(ev.type));
		n -= ev.type == kind;
	}
}

static void take(unsigned n)
{
	bool had[MOST] = {false};
	while (me.taken < n) {
		unsigned from = (unsigned)(mp_next(me.in).offset / sizeof me.got[0]);
		mp_check(from < mp.size && me.got[from] == word(from, mp.rank),
			"a wrong word from %u", from);
		me.taken += !had[from];
		had[from] = true;
	}
}

#define OTHERS(i)                                                                        \
	for (unsigned i = 0; i < mp.size; i++)                                           \
		if (i != mp.rank)

static void put_to_all(void)
{
	OTHERS(i)
	(void)put_own(i, PTL_NOACK_REQ);
	expect_of_all(PTL_EVENT_SEND_END);
	take(mp.size - 1);
}

static void put_until_acks(void)
{
	OTHERS(i)
	(void)put_own(i, PTL_ACK_REQ);
	expect_of_all(PTL_EVENT_ACK);
	take(mp.size - 1);
}

static void put_long_to_all(void)
{
	static unsigned char out[LONG], in[MOST][LONG];
	ptl_handle_md_t md = mp_bind(out, LONG, me.out, 0);
	mp_attach(LONG_IN, in, sizeof in, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, me.in);
	mp_fill(out, LONG, mp.rank);
	OTHERS(i)
	mp_put(md, 0, LONG, PTL_NOACK_REQ, i, LONG_IN, (ptl_size_t)LONG * mp.rank, 0);
	expect_of_all(PTL_EVENT_SEND_END);
	OTHERS(i)
	(void)mp_expect(me.in, PTL_EVENT_PUT_END);
	OTHERS(i)
	mp_compare(in[i], LONG, i, "a long put");
}

/* Get from all; stay until the others have got their words, too. */
static void get_from_all(void)
{
	OTHERS(i)
	{
		ptl_handle_md_t md = mp_bind(&me.own[i], sizeof me.own[i], me.out, 0);
		mp_get(md, 0, sizeof me.own[i], i, SHOWN, 0);
	}
	expect_of_all(PTL_EVENT_REPLY_END);
	OTHERS(i)
	mp_check(me.own[i] == word(i, i), "a wrong word of %u", i);
	put_to_all();
}

static void put_and_unlink(void)
{
	OTHERS(i)
	mp_ok(PtlMDUnlink(put_own(i, PTL_NOACK_REQ)));
	take(mp.size - 1);
}

/* Rank 0's messages are the only ones. */
static void put_and_end(void)
{
	if (mp.rank) {
		take(1);
		return;
	}
	OTHERS(i)
	(void)put_own(i, PTL_NOACK_REQ);
	expect_of_all(PTL_EVENT_SEND_END);
}

/* The same without a wait for SEND_END: it is there. */
static void put_unlink_and_end(void)
{
	ptl_event_t ev;
	if (mp.rank) {
		take(1);
		return;
	}
	OTHERS(i)
	{
		mp_ok(PtlMDUnlink(put_own(i, PTL_NOACK_REQ)));
		me.own[i] = 0;
		mp_check(mp_poll(me.out, &ev) && ev.ni_fail_type == PTL_NI_OK,
			"no SEND_END of the put to %u", i);
	}
}

/* The same; the interface of the messages closes, and a second one stays open. */
static void put_from_the_first_of_two(void)
{
	ptl_handle_ni_t other;
	put_unlink_and_end();
	if (mp.rank)
		return;
	mp_ok(PtlNIInit(PTL_IFACE_SS, PTL_PID_ANY, NULL, NULL, &other));
	mp_ok(PtlNIFini(mp.ni));
	mp.ni = other;
}

/* ---- ends ---- */

static pthread_barrier_t closing;
static pid_t closer;

static void *close_interface(void *unused)
{
	(void)unused;
	closer = gettid();
	pthread_barrier_wait(&closing);
	mp_ok(PtlNIFini(mp.ni));
	return NULL;
}

/* Let another thread call PtlNIFini, and return when it is most likely inside. */
static void begin_to_close(void)
{
	pthread_t thread;
	mp_check(pthread_barrier_init(&closing, NULL, 2) == 0 &&
			 pthread_create(&thread, NULL, close_interface, NULL) == 0,
		"no thread");
	pthread_detach(thread);
	pthread_barrier_wait(&closing);
	mp_check(await_thread_state(closer, 'S'),
		"the thread that closes neither sleeps nor ends");
}

enum end { BY_FINI, BY_EXIT, BY_RETURN, BESIDE_FINI };

static const struct style {
	const char *name;
	void (*play)(void);
	enum end end;
} styles[] = {{"put", put_to_all, BY_FINI}, {"ack", put_until_acks, BY_FINI},
	{"long", put_long_to_all, BY_FINI}, {"get", get_from_all, BY_FINI},
	{"unlink", put_and_unlink, BY_FINI}, {"leave", put_and_end, BY_FINI},
	{"exit", put_and_end, BY_EXIT}, {"part", put_unlink_and_end, BY_FINI},
	{"two", put_from_the_first_of_two, BY_FINI},
	{"quit", put_unlink_and_end, BY_RETURN},
	{"beside", put_unlink_and_end, BESIDE_FINI}};

static const struct style *find(const char *name)
{
	for (size_t i = 0; i < sizeof styles / sizeof styles[0]; i++)
		if (strcmp(name, styles[i].name) == 0)
			return &styles[i];
	mp_fail(__FILE__, __LINE__, "no style %s", name);
}

int main(int argc, char **argv)
{
	mp_check(argc == 5, "usage: late style stagger_ms up|down gap_ms");
	const struct style *style = find(argv[1]);
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
	mp_ok(PtlNIFini(mp.ni));
	PtlFini();
	return 0;
}
