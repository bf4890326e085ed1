/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hang SCENE - jobs that hang, each in its own way, for ptlstat to explain
 *
 *	stopped	 rank 2 stops itself, the others are in the barrier
 *	barrier	 rank 1 computes, and never comes to the barrier
 *	event	 rank 0 waits for an event that no rank sends, the others for it
 *	paused	 rank 0 waits for an event, and rank 1 stops itself
 *	drop	 rank 0 waits for the ACK of a put that nothing at rank 1 accepts
 *	denied	 the same, but rank 1's access control list refuses it
 *	noack	 the same, but rank 1's descriptor has PTL_MD_ACK_DISABLE
 *	lateack	 the same, but rank 0's descriptor is gone when the ACK comes
 *	own	 rank 0 waits for a message that it has dropped itself
 *	wrongpid rank 0 waits for the ACK of a put to a pid that rank 1 has not
 *	both	 all ranks put to rank 0, which drops the puts, and all wait for an event
 *	cut	 rank 1 has truncated two puts of rank 0
 *	lost	 rank 0 waits for the third event of a queue that holds two
 *	gone	 rank 0 waits for the ACK of a put to rank 1, which has killed itself
 *	parted	 rank 2 has called PtlFini, the others are in the barrier
 *	kept	 rank 0 waits for the ACK of a put that rank 1 holds back (PtlXPTHold)
 *	queued	 rank 0 sends to rank 1, which stopped itself, more than its lane holds
 *	killed	 rank 1 kills itself; rank 0 waits for its message
 *	left	 rank 1 sends to rank 0 and leaves, rank 2 ends; rank 0 waits on
 *	late	 rank 2 has not called PtlInit, the others are in the barrier
 *	absent	 rank 1 has not called PtlNIInit, rank 0 waits for it to take a message
 *	spoiled	 rank 1 ends in order, the others enter a barrier; this one ends
 *	idle	 all sleep outside of Portals
 *	talk	 all talk to their neighbours for good
 *	full	 rank 1 holds all receive buffers of a CCI endpoint, to which rank 0 sends
 *	unasked	 rank 1 does not decide about a CCI connect request of rank 0
 */
#include "../support/asleep.h"
#include "mp.h"

#include <cci.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BITS = 7, MANY = 3000, LAST = 5 };

static char bytes[64];

static _Noreturn void sleep_for_good(void)
{
	for (;;)
		pause();
}

static void stopped(void)
{
	if (mp.rank == 2)
		raise(SIGSTOP);
	mp_barrier();
}

static void barrier(void)
{
	volatile unsigned turns = 0;
	while (mp.rank == 1)
		turns++;
	mp_barrier();
}

static void event(void)
{
	ptl_event_t ev;
	if (mp.rank == 0)
		(void)PtlEQWait(mp_queue(8), &ev);
	mp_barrier();
}

static void paused(void)
{
	ptl_event_t ev;
	mp_barrier();
	if (mp.rank == 1)
		raise(SIGSTOP);
	(void)PtlEQWait(mp_queue(8), &ev);
}

static void await_ack(ptl_process_id_t target, ptl_ac_index_t access)
{
	ptl_event_t ev;
	ptl_handle_eq_t eq = mp_queue(8);
	ptl_handle_md_t md = mp_bind(bytes, sizeof bytes, eq, 0);
	mp_ok(PtlPut(md, PTL_ACK_REQ, target, MP_PORTAL, access, BITS, 0, 0));
	while (PtlEQWait(eq, &ev) == PTL_OK && ev.type != PTL_EVENT_ACK)
		;
}

static void put_and_wait(ptl_ac_index_t access)
{
	if (mp.rank == 0)
		await_ack(mp.id[1], access);
	mp_barrier();
}

static void wrongpid(void)
{
	ptl_process_id_t target = mp.id[1];
	target.pid += 1000;
	mp_barrier();
	if (mp.rank == 0)
		await_ack(target, 0);
	mp_barrier();
}

static void both(void)
{
	ptl_event_t ev;
	mp_barrier();
	if (mp.rank)
		await_ack(mp.id[0], 0);
	(void)PtlEQWait(mp_queue(8), &ev);
}

static void cut(void)
{
	unsigned options = PTL_MD_OP_PUT | PTL_MD_TRUNCATE | PTL_MD_MANAGE_REMOTE;
	(void)mp_attach(BITS, bytes, 24, options, PTL_EQ_NONE);
	mp_barrier();
	for (int i = 0; i < 2; i++)
		if (mp.rank == 0)
			await_ack(mp.id[1], 0);
	mp_barrier();
	sleep_for_good();
}

static void drop(void)
{
	mp_barrier();
	put_and_wait(0);
}

static void denied(void)
{
	(void)mp_attach(BITS, bytes, sizeof bytes, PTL_MD_OP_PUT, PTL_EQ_NONE);
	mp_barrier();
	put_and_wait(3);
}

static void noack(void)
{
	(void)mp_attach(BITS, bytes, sizeof bytes, PTL_MD_OP_PUT | PTL_MD_ACK_DISABLE,
		PTL_EQ_NONE);
	mp_barrier();
	put_and_wait(0);
}

/* The put itself uses up the threshold of 1. */
static void lateack(void)
{
	ptl_event_t ev;
	ptl_handle_md_t handle;
	ptl_md_t md = {.start = bytes,
		.length = 8,
		.threshold = 1,
		.options = PTL_MD_EVENT_START_DISABLE,
		.eq_handle = mp_queue(8)};
	(void)mp_attach(BITS, bytes, sizeof bytes, PTL_MD_OP_PUT, PTL_EQ_NONE);
	mp_barrier();
	if (mp.rank == 0) {
		mp_ok(PtlMDBind(mp.ni, md, PTL_UNLINK, &handle));
		mp_ok(PtlPut(handle, PTL_ACK_REQ, mp.id[1], MP_PORTAL, 0, BITS, 0, 0));
		while (PtlEQWait(md.eq_handle, &ev) == PTL_OK && ev.type != PTL_EVENT_ACK)
			;
	}
	mp_barrier();
}

/* Let rank 1 put count times, until rank 0 has taken all that match; let rank 0 wait for
 * one more event than there will be. */
static void await_puts(int count, ptl_match_bits_t bits, ptl_size_t events)
{
	ptl_event_t ev;
	ptl_handle_eq_t eq = mp_queue(events);
	(void)mp_attach(BITS, bytes, sizeof bytes, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE,
		mp.rank ? PTL_EQ_NONE : eq);
	mp_barrier();
	if (mp.rank == 1) {
		ptl_handle_eq_t acks = mp_queue(2 * (ptl_size_t)count);
		ptl_handle_md_t md = mp_bind(bytes, 8, acks, 0);
		for (int i = 0; i < count; i++)
			mp_ok(PtlPut(
				md, PTL_ACK_REQ, mp.id[0], MP_PORTAL, 0, bits, 0, 0));
		for (int i = 0; i < count * (bits == BITS ? 2 : 1); i++)
			(void)mp_next(acks);
	}
	mp_barrier();
	for (int i = 0; mp.rank == 0 && i <= count; i++)
		(void)PtlEQWait(eq, &ev);
	mp_barrier();
}

static void own(void)
{
	await_puts(1, BITS + 1, 8);
}

static void lost(void)
{
	await_puts(5, BITS, 2);
}

static void gone(void)
{
	mp_barrier();
	if (mp.rank == 1)
		raise(SIGKILL);
	if (mp.rank == 0) {
		ptl_event_t ev = {.ni_fail_type = PTL_NI_OK};
		ptl_handle_eq_t eq = mp_queue(8);
		ptl_handle_md_t md = mp_bind(bytes, sizeof bytes, eq, 0);
		/* pause: between two looks at the end of the peer */
		for (; ev.ni_fail_type == PTL_NI_OK; sleep_ms(10)) {
			mp_ok(PtlPut(
				md, PTL_ACK_REQ, mp.id[1], MP_PORTAL, 0, BITS, 0, 0));
			mp_ok(PtlEQWait(eq, &ev));
		}
		while (PtlEQWait(eq, &ev) == PTL_OK)
			;
	}
	sleep_for_good();
}

static void parted(void)
{
	mp_barrier();
	if (mp.rank == 2) {
		PtlFini();
		sleep_for_good();
	}
	mp_barrier();
}

static void kept(void)
{
	if (mp.rank == 1)
		mp_ok(PtlXPTHold(mp.ni, MP_PORTAL, 1));
	mp_barrier();
	if (mp.rank == 0)
		await_ack(mp.id[1], 0);
	sleep_for_good();
}

/* Return the process of rank 1, which rank 1 tells rank 0 at a call of its own. */
static pid_t process_of_1(void)
{
	static uint64_t pid;
	ptl_handle_eq_t eq = mp_queue(8);
	(void)mp_attach(BITS + 1, &pid, sizeof pid, PTL_MD_OP_PUT, eq);
	mp_barrier();
	if (mp.rank == 0)
		return (pid_t)mp_expect(eq, PTL_EVENT_PUT_END).hdr_data;
	ptl_handle_md_t md = mp_bind(&pid, sizeof pid, eq, 0);
	mp_put(md, 0, sizeof pid, PTL_ACK_REQ, 0, BITS + 1, 0, (uint64_t)getpid());
	(void)mp_expect(eq, PTL_EVENT_SEND_END);
	(void)mp_expect(eq, PTL_EVENT_ACK);
	return getpid();
}

static void queued(void)
{
	ptl_event_t ev;
	ptl_handle_eq_t eq = mp_queue(2 * MANY);
	(void)mp_attach(BITS, bytes, sizeof bytes, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE,
		PTL_EQ_NONE);
	pid_t pid = process_of_1();
	mp_barrier();
	if (mp.rank == 1)
		raise(SIGSTOP);
	if (mp.rank == 0) {
		ptl_handle_md_t md = mp_bind(bytes, sizeof bytes, eq, 0);
		mp_check(await_stopped(pid), "rank 1 does not stop");
		for (int i = 0; i < MANY; i++)
			mp_ok(PtlPut(
				md, PTL_ACK_REQ, mp.id[1], MP_PORTAL, 0, BITS, 0, 0));
		for (;;)
			(void)PtlEQWait(eq, &ev);
	}
	sleep_for_good();
}

static void killed(void)
{
	ptl_event_t ev;
	mp_barrier();
	if (mp.rank == 1)
		raise(SIGKILL);
	if (mp.rank == 0)
		(void)PtlEQWait(mp_queue(8), &ev);
	sleep_for_good();
}

static void left(void)
{
	ptl_event_t ev;
	ptl_handle_eq_t eq = mp_queue(64);
	(void)mp_attach(
		BITS, bytes, sizeof bytes, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, eq);
	mp_barrier();
	if (mp.rank == 1) {
		ptl_handle_md_t md = mp_bind(bytes, 8, eq, 0);
		for (int i = 0; i < LAST; i++) {
			mp_put(md, 0, 8, PTL_ACK_REQ, 0, BITS, 0, 0);
			mp_expect(eq, PTL_EVENT_SEND_END);
			mp_expect(eq, PTL_EVENT_ACK);
		}
	}
	for (int i = 0; mp.rank == 0 && i <= LAST; i++)
		(void)PtlEQWait(eq, &ev);
	PtlFini();
	if (mp.rank == 2)
		exit(0);
	sleep_for_good();
}

static void late(void)
{
	mp_barrier();
}

static void absent(void)
{
	ptl_event_t ev;
	mp_put(mp_bind(bytes, sizeof bytes, mp_queue(8), 0), 0, 8, PTL_ACK_REQ, 1, BITS,
		0, 0);
	for (ptl_handle_eq_t eq = mp_queue(8);;)
		(void)PtlEQWait(eq, &ev);
}

static _Noreturn void stay_absent(void)
{
	int most;
	mp_ok(PtlInit(&most));
	sleep_for_good();
}

static _Noreturn void spoiled(void)
{
	mp_barrier();
	if (mp.rank == 1)
		exit(0);
	if (PtlXBarrier() == PTL_FAIL)
		puts("spoiled");
	PtlFini();
	exit(0);
}

static void idle(void)
{
	mp_barrier();
	sleep_for_good();
}

static void talk(void)
{
	ptl_event_t ev;
	unsigned next = (mp.rank + 1) % mp.size;
	ptl_handle_eq_t eq = mp_queue(64);
	(void)mp_attach(
		BITS, bytes, sizeof bytes, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, eq);
	ptl_handle_md_t md = mp_bind(bytes, 8, PTL_EQ_NONE, 0);
	mp_barrier();
	for (;;) {
		mp_ok(PtlPut(md, PTL_NOACK_REQ, mp.id[next], MP_PORTAL, 0, BITS, 0, 0));
		mp_ok(PtlEQWait(eq, &ev));
		sleep_ms(2); /* pause: between two words */
	}
}

/* ---- CCI ---- */

enum { CCI_BUFFERS = 4 };
#define CCI_SERVICE "77"

static void cci_ok(int status)
{
	mp_check(status == CCI_SUCCESS, "%s", cci_strerror(NULL, (cci_status_t)status));
}

/* Rank 1 opens an endpoint with a number that rank 0 knows. */
static cci_endpoint_t *cci_open(void)
{
	uint32_t caps, buffers = CCI_BUFFERS;
	cci_device_t *const *devices;
	cci_endpoint_t *ep;
	cci_ok(cci_init(CCI_ABI_VERSION, 0, &caps));
	cci_ok(cci_get_devices(&devices));
	if (mp.rank == 1)
		cci_ok(cci_create_endpoint_at(devices[0], CCI_SERVICE, 0, &ep, NULL));
	else
		cci_ok(cci_create_endpoint(devices[0], 0, &ep, NULL));
	cci_ok(cci_set_opt(ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, &buffers));
	mp_barrier();
	return ep;
}

static cci_event_t *cci_await(cci_endpoint_t *ep, cci_event_type_t type)
{
	cci_event_t *ev;
	do
		while (cci_get_event(ep, &ev) != CCI_SUCCESS)
			usleep(1000); /* pause: between two looks */
	while (ev->type != type);
	return ev;
}

static void cci_ask(cci_endpoint_t *ep)
{
	char *own, uri[200];
	cci_ok(cci_get_opt(ep, CCI_OPT_ENDPT_URI, &own));
	*strrchr(own, '/') = 0;
	*strrchr(own, '/') = 0;
	snprintf(uri, sizeof uri, "%s/1/" CCI_SERVICE, own);
	free(own);
	cci_ok(cci_connect(ep, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL));
}

static void full(void)
{
	cci_endpoint_t *ep = cci_open();
	if (mp.rank == 0) {
		cci_ask(ep);
		cci_event_t *ev = cci_await(ep, CCI_EVENT_CONNECT);
		cci_ok((int)ev->connect.status);
		for (int i = 0; i <= CCI_BUFFERS; i++)
			cci_ok(cci_send(ev->connect.connection, bytes, 8, NULL, 0));
	} else {
		cci_ok(cci_accept(cci_await(ep, CCI_EVENT_CONNECT_REQUEST), NULL));
		for (int i = 0; i < CCI_BUFFERS; i++)
			(void)cci_await(ep, CCI_EVENT_RECV);
	}
	sleep_for_good();
}

static void unasked(void)
{
	cci_endpoint_t *ep = cci_open();
	if (mp.rank == 0)
		cci_ask(ep);
	else
		(void)cci_await(ep, CCI_EVENT_CONNECT_REQUEST);
	sleep_for_good();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*play)(void);
	} scenes[] = {{"stopped", stopped}, {"barrier", barrier}, {"event", event},
		{"paused", paused}, {"noack", noack}, {"lateack", lateack}, {"own", own},
		{"wrongpid", wrongpid}, {"both", both}, {"cut", cut}, {"lost", lost},
		{"gone", gone}, {"kept", kept}, {"parted", parted}, {"drop", drop},
		{"denied", denied}, {"queued", queued}, {"killed", killed},
		{"left", left}, {"late", late}, {"idle", idle}, {"talk", talk},
		{"absent", absent}, {"spoiled", spoiled}, {"full", full},
		{"unasked", unasked}};
	const char *rank = getenv("PTL_MY_RID");
	if (argc > 1 && !strcmp(argv[1], "absent") && rank && !strcmp(rank, "1"))
		stay_absent();
	if (argc > 1 && !strcmp(argv[1], "late") && rank && !strcmp(rank, "2"))
		sleep_for_good();
	mp_start();
	for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++)
		if (argc > 1 && !strcmp(argv[1], scenes[i].name))
			scenes[i].play();
	mp_check(false, "no such scene, or it ended");
}
