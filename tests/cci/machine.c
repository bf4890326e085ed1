/* SPDX-License-Identifier: BSD-3-Clause */
/* Conformance of CCI: neighbors, robustness, the machine. */
#include "frame.h"
#include "../support/leaks.h"

#include <portals3.h>
#include <portals3x.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- Portals beside CCI ---- */

static struct {
	ptl_handle_ni_t ni;
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;
	ptl_process_id_t id;
	char in[64], out[64];
} portals;

static void portals_open(void)
{
	int most;
	ptl_handle_me_t entry;
	ptl_process_id_t any = {PTL_NID_ANY, PTL_PID_ANY};
	CHECK(PtlInit(&most) == PTL_OK);
	CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &portals.ni) ==
		PTL_OK);
	CHECK(PtlGetId(portals.ni, &portals.id) == PTL_OK);
	CHECK(PtlEQAlloc(portals.ni, 4096, PTL_EQ_HANDLER_NONE, &portals.eq) == PTL_OK);
	ptl_md_t md = {.start = portals.in,
		.length = sizeof portals.in,
		.threshold = PTL_MD_THRESH_INF,
		.options =
			PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE,
		.eq_handle = portals.eq};
	CHECK(PtlMEAttach(portals.ni, 4, any, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &entry) ==
		PTL_OK);
	CHECK(PtlMDAttach(entry, md, PTL_RETAIN, NULL) == PTL_OK);
	md.start = portals.out;
	md.options = PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE;
	CHECK(PtlMDBind(portals.ni, md, PTL_RETAIN, &portals.md) == PTL_OK);
}

static void portals_put(ptl_process_id_t to, ptl_ack_req_t ack)
{
	int rc;
	ptl_size_t n = 8;
	while ((rc = PtlPutRegion(portals.md, 0, n, ack, to, 4, 0, 0, 0, 0)) ==
		PTL_NO_SPACE)
		;
	CHECK(rc == PTL_OK);
}

static void portals_expect(ptl_event_kind_t kind)
{
	ptl_event_t event;
	POLL(PtlEQGet(portals.eq, &event) == PTL_OK);
	CHECK(event.type == kind && event.ni_fail_type == PTL_NI_OK);
}

/* Put to oneself. */
static void portals_works(void)
{
	portals_put(portals.id, PTL_NO_ACK_REQ);
	portals_expect(PTL_EVENT_PUT_END);
}

static void tell_ids(void)
{
	memcpy(shared() + me.rank * sizeof portals.id, &portals.id, sizeof portals.id);
	barrier();
}

static ptl_process_id_t told_id(unsigned rank)
{
	ptl_process_id_t id;
	memcpy(&id, shared() + rank * sizeof id, sizeof id);
	return id;
}

/* ---- a bad peer ---- */

static uint64_t dice(void)
{
	static uint64_t state;
	if (!state)
		state = mix((uint64_t)getpid() ^ now_ns());
	return state = mix(state);
}

/* Write over a mapping that other processes share, words of all kinds. */
static void write_over(unsigned long *at, unsigned long words)
{
	for (unsigned i = 0; i < 400; i++) {
		uint64_t d = dice();
		_Atomic uint64_t *word = (_Atomic uint64_t *)at + d % words;
		if (d >> 60 == 0)
			*word = dice();
		else if (d >> 60 < 6)
			*word ^= UINT64_C(1) << (d >> 32) % 64;
		else if (d >> 60 < 9)
			*word += d >> 33 & 7;
		else
			*word = d >> 32 & 0xffff;
	}
}

static void write_over_all(void)
{
	char line[400], rights[8];
	unsigned long from, to;
	FILE *f = fopen("/proc/self/maps", "re");
	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "%lx-%lx %7s", &from, &to, rights) == 3 &&
			strcmp(rights, "rw-s") == 0 && !strstr(line, "/cci_machine."))
			write_over((unsigned long *)from, (to - from) / 8);
	if (f)
		fclose(f);
}

HELPER(bad_peer)
{
	(void)argument;
	fclose(stderr); /* its firmware may complain of anything */
	up();
	cci_endpoint_t *ep;
	OK(cci_create_endpoint(NULL, 0, &ep, NULL));
	ask(ep, told_uri(1, 1), CCI_CONN_ATTR_RO, NULL);
	cci_event_t *event = NEXT(ep);
	cci_connection_t *conn = event->connect.connection;
	for (;;) {
		if (conn)
			(void)cci_send(conn, pattern(1), (uint32_t)(dice() % 4096), NULL,
				CCI_FLAG_SILENT);
		write_over_all();
		add_word(3, 1);
	}
}

static void *forbidden[3];

/* Let one bad peer live for a while, or until it dies of itself. */
static void suffer(struct side honest, unsigned round)
{
	int pid = spawn("bad_peer", NULL, NULL), status;
	uint64_t before = word(3);
	struct patience p = patience_ms(300);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		OK(cci_send(honest.conn, &round, sizeof round, NULL, CCI_FLAG_BLOCKING));
		if (patience_is_over(&p) || word(3) > before + 200)
			(void)kill(pid, SIGKILL);
	}
	set_word(4, round + 1);
}

static void be_attacked(struct side honest, cci_endpoint_t *bait, unsigned rounds)
{
	cci_event_t *event;
	while (word(4) < rounds) {
		if (cci_get_event(bait, &event) == CCI_SUCCESS) {
			if (event->type == CCI_EVENT_CONNECT_REQUEST)
				OK(cci_accept(event, NULL));
			RETURN(event);
		}
		if (cci_get_event(honest.ep, &event) == CCI_SUCCESS) {
			CHECK(event->type == CCI_EVENT_RECV);
			CHECK_EQ(event->recv.len, sizeof(unsigned));
			RETURN(event);
		}
	}
	for (int i = 0; i < 3; i++)
		CHECK_ALL(forbidden[i], 65536, 0x5a);
}

STATEMENT(128, bad_peer, 2, DOMAIN)
{
	struct side honest = meet(CCI_CONN_ATTR_RO);
	cci_endpoint_t *bait = endpoint();
	cci_rma_handle_t *h;
	unsigned rounds = (unsigned)many(100) / 5;
	for (int i = 0; i < 3; i++) {
		forbidden[i] = malloc(65536);
		CHECK(forbidden[i]);
		memset(forbidden[i], 0x5a, 65536);
	}
	OK(cci_rma_register(bait, forbidden[0], 65536, CCI_FLAG_READ, &h));
	OK(cci_rma_register(honest.ep, forbidden[1], 65536, CCI_FLAG_WRITE, &h));
	portals_open();
	barrier();
	if (me.is_server)
		be_attacked(honest, bait, rounds);
	for (unsigned i = 0; i < rounds && me.is_client; i++)
		suffer(honest, i);
	barrier();
	portals_works();
}

/* ---- two domains ---- */

HELPER(abroad)
{
	cci_endpoint_t *ep = first_endpoint();
	(void)argument;
	hear(1);
	SILENCE(ep, 5);
}

STATEMENT(129, two_domains, 1, DOMAIN)
{
	char name[64];
	cci_endpoint_t *ep = first_endpoint();
	snprintf(name, sizeof name, "cci_abroad.%d", (int)getpid());
	int pid = spawn("abroad", NULL, name);
	int rc =
		cci_connect(ep, told_uri(0, 1), NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL);
	CHECK(rc == CCI_SUCCESS || rc == CCI_EADDRNOTAVAIL || rc == CCI_ECONNREFUSED);
	if (rc == CCI_SUCCESS)
		RETURN(EXPECT_STATUS(ep, CCI_EVENT_CONNECT, CCI_ECONNREFUSED));
	SILENCE(ep, 5);
	say();
	join(pid);
}

/* ---- one program with both ---- */

static void messages_work(struct both two)
{
	OK(cci_send(two.a.conn, "works", 5, CONTEXT(1), 0));
	TAKE(two.b.ep, CCI_EVENT_RECV);
	SENT(two.a.ep, CONTEXT(1));
}

STATEMENT(130, portals_and_cci, 2, 0)
{
	/* Portals first, and its end in between. */
	portals_open();
	portals_works();
	struct both two = both(CCI_CONN_ATTR_RO);
	messages_work(two);
	portals_works();
	CHECK(PtlNIFini(portals.ni) == PTL_OK);
	messages_work(two);
	portals_open();
	portals_works();
	messages_work(two);
	PtlFini();
	messages_work(two);
	/* Now CCI is first, and ends first. */
	portals_open();
	portals_works();
	down();
	portals_works();
	two = both(CCI_CONN_ATTR_UU);
	messages_work(two);
	portals_works();
	PtlFini();
	down();
	/* Between processes, after all this. */
	portals_open();
	tell_ids();
	barrier();
	struct side s = meet(CCI_CONN_ATTR_RO);
	for (unsigned i = 0; i < 100; i++) {
		portals_put(told_id(1 - me.rank), PTL_NO_ACK_REQ);
		portals_expect(PTL_EVENT_PUT_END);
		OK(cci_send(s.conn, &i, sizeof i, CONTEXT(i), CCI_FLAG_SILENT));
		TAKE(s.ep, CCI_EVENT_RECV);
	}
	barrier();
	PtlFini();
	OK(cci_send(s.conn, "last", 4, CONTEXT(1), CCI_FLAG_SILENT));
	TAKE(s.ep, CCI_EVENT_RECV);
	barrier();
}

/* ---- the price for Portals ---- */

/* Few, so that some blocks meet no fault of a wire and no other program. */
#define TRIPS 20

/* Return the time of the fastest of some blocks of round trips. */
static uint64_t fastest_block(ptl_process_id_t to)
{
	uint64_t best = UINT64_MAX;
	for (int block = 0; block < 30; block++) {
		uint64_t began = now_ns();
		for (int i = 0; i < TRIPS; i++) {
			if (me.is_client)
				portals_put(to, PTL_NO_ACK_REQ);
			portals_expect(PTL_EVENT_PUT_END);
			if (me.is_server)
				portals_put(to, PTL_NO_ACK_REQ);
		}
		uint64_t took = now_ns() - began;
		best = took < best ? took : best;
	}
	return best;
}

/* Have an idle endpoint with 100 connections; without it, nothing of CCI is left. */
static void idle_connections(bool on)
{
	if (!on) {
		while (cci_finalize() == CCI_SUCCESS)
			;
		barrier();
		return;
	}
	up();
	unsigned nth = uris_told();
	cci_endpoint_t *ep = endpoint();
	for (int i = 0; i < 100; i++)
		(void)meet_again(ep, nth, (cci_conn_attribute_t)(i % 3));
	barrier();
}

/* The minimum of many blocks is free of other work; rounds only bring it nearer. */
STATEMENT(131, portals_pays_nothing, 2, 0)
{
	uint64_t with = UINT64_MAX, without = UINT64_MAX, took;
	if (on_one_cpu())
		skip("on one CPU a round trip takes as long as the scheduler wants");
	portals_open();
	tell_ids();
	ptl_process_id_t to = told_id(1 - me.rank);
	for (unsigned round = 0; round < 60; round++) {
		took = fastest_block(to);
		without = took < without ? took : without;
		idle_connections(true);
		took = fastest_block(to);
		with = took < with ? took : with;
		idle_connections(false);
		if (me.is_client)
			set_word(round % 8, round > 3 && with <= without + without / 10);
		barrier();
		if (word(round % 8))
			return;
	}
	check_failed(__FILE__, __LINE__,
		"%d round trips take %llu ns, %llu with CCI idle", TRIPS,
		(unsigned long long)without, (unsigned long long)with);
}

/* ---- 16 processes ---- */

enum { ALL = 16 };

static cci_connection_t *to_all[ALL];

/* Connect to all ranks above; accept from all below, whose payload is their rank. */
static void connect_all(cci_endpoint_t *ep)
{
	for (unsigned i = me.rank + 1; i < ALL; i++)
		OK(cci_connect(ep, told_uri(i, 0), &me.rank, sizeof me.rank,
			CCI_CONN_ATTR_RO, CONTEXT(i), 0, NULL));
	for (unsigned n = 0; n < ALL - 1;) {
		cci_event_t *event = NEXT(ep);
		CHECK_EQ(status_of(event), CCI_SUCCESS);
		if (event->type == CCI_EVENT_CONNECT_REQUEST) {
			unsigned from;
			memcpy(&from, event->request.data_ptr, sizeof from);
			OK(cci_accept(event, CONTEXT(from)));
		} else {
			to_all[(uintptr_t)event->connect.context] =
				event->connect.connection;
			n++;
		}
		RETURN(event);
	}
}

static uint64_t messages_to_all(cci_endpoint_t *ep, unsigned each)
{
	unsigned most = each * (ALL - 1), sent = 0, done = 0, got = 0;
	uint32_t next[ALL] = {0};
	barrier();
	uint64_t began = now_ns();
	struct patience p = patience_times(3);
	while (done < most || got < most) {
		cci_event_t *event;
		unsigned to = (me.rank + 1 + sent % (ALL - 1)) % ALL;
		uint32_t number = sent / (ALL - 1);
		look_at(__FILE__, __LINE__, &p, "all messages of all");
		if (sent < most && cci_send(to_all[to], &number, sizeof number, NULL,
					   0) == CCI_SUCCESS)
			sent++;
		if (cci_get_event(ep, &event) != CCI_SUCCESS)
			continue;
		CHECK_EQ(status_of(event), CCI_SUCCESS);
		if (event->type == CCI_EVENT_RECV) {
			uintptr_t from = (uintptr_t)event->recv.connection->context;
			memcpy(&number, event->recv.ptr, sizeof number);
			CHECK(from < ALL && number == next[from]++);
			got++;
		} else {
			done++;
		}
		RETURN(event);
	}
	barrier();
	return now_ns() - began;
}

static uint64_t puts_to_all(unsigned each)
{
	unsigned most = each * (ALL - 1), sent = 0, done = 0, got = 0;
	barrier();
	uint64_t began = now_ns();
	struct patience p = patience_times(3);
	while (done < most || got < most) {
		ptl_event_t event;
		unsigned to = (me.rank + 1 + sent % (ALL - 1)) % ALL;
		look_at(__FILE__, __LINE__, &p, "all puts of all");
		if (sent < most && sent - done < 64 && sent < got + 64 + 16 * ALL &&
			PtlPutRegion(portals.md, 0, 4, PTL_ACK_REQ, told_id(to), 4, 0, 0,
				0, 0) == PTL_OK)
			sent++;
		if (PtlEQGet(portals.eq, &event) != PTL_OK) {
			sched_yield(); /* else a turn of the CPU takes milliseconds */
			continue;
		}
		done += event.type == PTL_EVENT_ACK;
		got += event.type == PTL_EVENT_PUT_END;
	}
	barrier();
	return now_ns() - began;
}

STATEMENT(132, sixteen_processes, ALL, 0)
{
	unsigned each = (unsigned)many(1000);
	if (each < 200)
		each = 200; /* fewer take about as long as a turn of the CPU */
	cci_endpoint_t *ep = first_endpoint();
	portals_open();
	tell_ids();
	connect_all(ep);
	barrier();
	for (int round = 0; round < 8; round++) {
		uint64_t cci = messages_to_all(ep, each), ptl = puts_to_all(each);
		if (me.rank == 0)
			set_word((unsigned)round, cci <= 2 * ptl);
		barrier();
		if (word((unsigned)round))
			return;
		if (me.rank == 0 && round == 7)
			check_failed(__FILE__, __LINE__,
				"CCI takes %llu us, Portals %llu",
				(unsigned long long)cci / 1000,
				(unsigned long long)ptl / 1000);
	}
}

/* ---- sleep ---- */

static uint64_t cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static long switches(void)
{
	struct rusage use;
	getrusage(RUSAGE_SELF, &use);
	return use.ru_nvcsw;
}

/* Sleep, and get the CPU time and the number of sleeps of this process meanwhile.  Return
 * false if something wakes it: a thread that was about to write the handle may do so when
 * the event has been taken. */
static bool asleep(int fd, unsigned ms, uint64_t *used, long *slept)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	uint64_t before = cpu_ns();
	*slept = switches();
	int ready = poll(&p, 1, (int)ms);
	*slept = switches() - *slept;
	*used = cpu_ns() - before;
	CHECK(ready >= 0);
	return ready == 0;
}

/* On some machines each wake-up, of any program, costs up to a millisecond. */
#define WAKE_UP_NS UINT64_C(1000000)

STATEMENT(133, sleep, 2, 0)
{
	const char *mode = getenv("PTL3_MODE");
	int fd;
	long slept, slept_without;
	uint64_t used = 0;
	if (mode && strcmp(mode, "dedicated") == 0)
		skip("a dedicated NIC thread polls");
	portals_open();
	CHECK(asleep(-1, 100, &used, &slept)); /* the machine settles */
	CHECK(asleep(-1, 500, &used, &slept_without));
	struct side s = meet_fd(CCI_CONN_ATTR_RO, &fd);
	barrier();
	bool good = false;
	for (int round = 0; round < 5 && !good; round++) {
		SILENCE(s.ep, 0);
		good = asleep(fd, 500, &used, &slept) &&
		       used < 10000000 + WAKE_UP_NS * (uint64_t)slept &&
		       slept <= slept_without + 10;
	}
	if (!good)
		check_failed(__FILE__, __LINE__,
			"500 ms asleep take %llu us of CPU and %ld switches, %ld without "
			"CCI",
			(unsigned long long)used / 1000, slept, slept_without);
}

/* ---- fork ---- */

static int use_after_fork(struct side s)
{
	cci_event_t *event = NULL;
	cci_endpoint_t *ep = NULL;
	cci_rma_handle_t *h = NULL;
	static char bytes[64];
	if (cci_send(s.conn, "x", 1, NULL, 0) == CCI_SUCCESS)
		return 1;
	if (cci_get_event(s.ep, &event) == CCI_SUCCESS)
		return 2;
	if (cci_create_endpoint(NULL, 0, &ep, NULL) == CCI_SUCCESS)
		return 3;
	if (cci_connect(s.ep, "x", NULL, 0, CCI_CONN_ATTR_RO, NULL, 0, NULL) ==
		CCI_SUCCESS)
		return 4;
	if (cci_rma_register(s.ep, bytes, sizeof bytes, 0, &h) == CCI_SUCCESS)
		return 5;
	if (cci_send(s.conn, "x", 1, NULL, CCI_FLAG_BLOCKING) == CCI_SUCCESS)
		return 6;
	if (cci_disconnect(s.conn) == CCI_SUCCESS)
		return 7;
	if (cci_finalize() == CCI_SUCCESS)
		return 8;
	return 0;
}

STATEMENT(134, fork, 2, 0)
{
	struct side s = meet(CCI_CONN_ATTR_RO);
	for (unsigned i = 0; i < 10 && me.is_client; i++) {
		int status, pid = fork();
		CHECK(pid >= 0);
		if (pid == 0)
			_exit(use_after_fork(s));
		OK(cci_send(s.conn, &i, sizeof i, NULL, CCI_FLAG_BLOCKING));
		CHECK(waitpid(pid, &status, 0) == pid);
		CHECK_EQ(status, 0);
		OK(cci_send(s.conn, &i, sizeof i, NULL, CCI_FLAG_BLOCKING));
	}
	for (unsigned i = 0; i < 20 && me.is_server; i++) {
		cci_event_t *event = EXPECT(s.ep, CCI_EVENT_RECV);
		CHECK_EQ(*(const unsigned *)event->recv.ptr, i / 2);
		RETURN(event);
	}
	barrier();
	SILENCE(s.ep, 2);
}

/* ---- deaths at any moment ---- */

HELPER(victim)
{
	static unsigned char bytes[300000];
	cci_rma_handle_t *h;
	(void)argument;
	cci_endpoint_t *ep = first_endpoint();
	OK(cci_rma_register(ep, bytes, sizeof bytes, CCI_FLAG_READ | CCI_FLAG_WRITE, &h));
	memcpy(shared(), h, sizeof *h);
	cci_connection_t *conn = accept_one(ep, NULL);
	for (unsigned n = 0;; n++) {
		cci_event_t *event = NEXT(ep);
		RETURN(event);
		(void)cci_send(conn, bytes, n % 4000, NULL, 0);
	}
}

/* Talk to a victim until all that was begun has ended; end it after some steps. */
static void outlive(cci_endpoint_t *ep, unsigned nth, int pid, bool stop)
{
	static unsigned char bytes[300000];
	cci_rma_handle_t *local;
	cci_connection_t *conn = connect_to(ep, told_uri(0, nth), CCI_CONN_ATTR_RU, NULL);
	struct cci_rma_handle remote;
	memcpy(&remote, shared(), sizeof remote);
	OK(cci_rma_register(ep, bytes, sizeof bytes, 0, &local));
	unsigned steps = (unsigned)(dice() % 300), begun = 0, ended = 0, failed = 0;
	struct patience p = patience_begin();
	for (unsigned i = 0; ended < begun || failed == 0; i++) {
		cci_event_t *event;
		look_at(__FILE__, __LINE__, &p, "the end of operations with a victim");
		if (i == steps)
			(void)kill(pid, stop ? SIGSTOP : SIGKILL);
		if (i == steps + 200 && stop)
			(void)kill(pid, SIGCONT);
		if (i == steps + 5000 && stop)
			(void)kill(pid, SIGKILL);
		if (failed == 0 && begun - ended < 30) {
			uint64_t n = 1 + dice() % (i % 8 ? 5000 : sizeof bytes);
			int flag = i % 2 ? CCI_FLAG_READ : CCI_FLAG_WRITE;
			if (i % 3)
				begun += cci_send(conn, bytes, (uint32_t)n % 4000, NULL,
						 0) == CCI_SUCCESS;
			else
				begun += cci_rma(conn, NULL, 0, local, 0, &remote, 0, n,
						 NULL, flag) == CCI_SUCCESS;
		}
		if (cci_get_event(ep, &event) != CCI_SUCCESS)
			continue;
		if (event->type == CCI_EVENT_SEND) {
			CHECK(event->send.status == CCI_SUCCESS ||
				event->send.status == CCI_ERR_DISCONNECTED);
			failed += event->send.status != CCI_SUCCESS;
			ended++;
		}
		RETURN(event);
	}
	OK(cci_rma_deregister(ep, local));
	OK(cci_disconnect(conn));
	ask(ep, told_uri(0, nth), CCI_CONN_ATTR_RO, NULL);
	for (;;) { /* messages of the dead may still be in the queue */
		cci_event_t *event = NEXT(ep);
		bool last = event->type == CCI_EVENT_CONNECT;
		CHECK(!last || event->connect.status == CCI_ECONNREFUSED);
		RETURN(event);
		if (last)
			return;
	}
}

STATEMENT(135, deaths_and_stops, 1, DOMAIN)
{
	cci_endpoint_t *ep = first_endpoint();
	for (unsigned i = 0; i < many(200); i++) {
		int status, pid = spawn("victim", NULL, NULL);
		outlive(ep, i + 1, pid, i % 3 == 2);
		CHECK(waitpid(pid, &status, 0) == pid);
	}
	cci_event_t *event;
	CHECK_RC(cci_get_event(ep, &event), CCI_EAGAIN);
}

/* ---- memory of connections ---- */

/* The first connections give each pair of processes its full lanes. */
enum { CLIENTS = 64, FIRST = 10, EACH = 16 };

static void accept_many(cci_endpoint_t *ep, unsigned n)
{
	for (unsigned accepted = 0; accepted < n;) {
		cci_event_t *event = NEXT(ep);
		CHECK_EQ(status_of(event), CCI_SUCCESS);
		if (event->type == CCI_EVENT_CONNECT_REQUEST)
			OK(cci_accept(event, NULL));
		else
			accepted++;
		RETURN(event);
	}
}

STATEMENT(136, memory_of_a_connection, CLIENTS + 1, 0)
{
	const char *mode = getenv("PTL3_MODE");
	if (on_one_cpu() || (mode && strcmp(mode, "dedicated") == 0))
		skip("65 processes take long here");
	const char *fabric = getenv("PTL3_FABRIC");
	if (fabric && strstr(fabric, "rxm"))
		skip("the pools of libfabric's rxm grow meanwhile, under load by 17 MiB");
	cci_endpoint_t *ep = first_endpoint();
	barrier();
	if (me.rank == 1) {
		accept_many(ep, CLIENTS * FIRST);
		unsigned long before = leaks_now().kib;
		barrier();
		accept_many(ep, CLIENTS * (EACH - FIRST));
		unsigned long after = leaks_now().kib;
		if (after > before && (after - before) > CLIENTS * (EACH - FIRST))
			check_failed(__FILE__, __LINE__, "%lu KiB for %d connections",
				after - before, CLIENTS * (EACH - FIRST));
		barrier();
		return;
	}
	for (int i = 0; i < EACH; i++) {
		if (i == FIRST)
			barrier();
		(void)connect_to(ep, told_uri(1, 0), CCI_CONN_ATTR_RO, NULL);
	}
	barrier();
}

/* ---- no memory ---- */

static unsigned long virtual_kib(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");
	CHECK(f && fscanf(f, "%lu", &pages) == 1);
	fclose(f);
	return pages * (unsigned long)sysconf(_SC_PAGESIZE) / 1024;
}

static void limit_memory(unsigned long kib)
{
	struct rlimit limit;
	CHECK(getrlimit(RLIMIT_AS, &limit) == 0);
	limit.rlim_cur = kib ? kib * 1024 : limit.rlim_max;
	CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
}

/* Make objects until there is no memory for them; return the number. */
static unsigned use_up(cci_endpoint_t *ep, const char *uri, unsigned kind, unsigned most)
{
	static char bytes[8];
	unsigned n = 0;
	for (; n < most; n++) {
		cci_endpoint_t *new_one;
		cci_rma_handle_t *h;
		int rc = kind == 0   ? cci_create_endpoint(NULL, 0, &new_one, NULL)
			 : kind == 1 ? cci_rma_register(ep, bytes, 8, 0, &h)
				     : cci_connect(ep, uri, NULL, 0, CCI_CONN_ATTR_RO,
					       NULL, 0, NULL);
		if (rc == CCI_SUCCESS)
			continue;
		CHECK(rc == CCI_ENOMEM || rc == CCI_ENOBUFS || rc == CCI_ERANGE);
		break;
	}
	return n;
}

/* Decide all requests; each connect must end. */
static void decide_all(cci_endpoint_t *client, cci_endpoint_t *server, unsigned asked)
{
	unsigned requests = 0, connects = 0, accepts = 0;
	struct patience p = patience_begin();
	while (connects < asked || accepts < requests) {
		cci_event_t *event;
		look_at(__FILE__, __LINE__, &p, "the end of all connects");
		if (cci_get_event(server, &event) == CCI_SUCCESS) {
			if (event->type == CCI_EVENT_CONNECT_REQUEST)
				requests += cci_accept(event, NULL) == CCI_SUCCESS;
			else
				accepts++;
			RETURN(event);
		}
		if (cci_get_event(client, &event) == CCI_SUCCESS) {
			CHECK(event->type == CCI_EVENT_CONNECT);
			connects++;
			RETURN(event);
		}
	}
}

STATEMENT(137, no_memory, 1, 0)
{
#if defined(__SANITIZE_ADDRESS__)
	skip("AddressSanitizer needs address space");
#endif
	struct both two = both(CCI_CONN_ATTR_RO);
	cci_endpoint_t *client = endpoint(), *server = endpoint();
	const char *uri = uri_of(server);
	messages_work(two);
	(void)is_pattern("", 1, 1);
	limit_memory(virtual_kib() + 1024);
	unsigned endpoints = use_up(client, uri, 0, 3000);
	messages_work(two);
	unsigned regions = use_up(client, uri, 1, 2000000);
	messages_work(two);
	unsigned asked = use_up(client, uri, 2, 100000);
	messages_work(two);
	CHECK(endpoints < 3000 && regions < 2000000 && asked < 100000);
	limit_memory(0);
	decide_all(client, server, asked);
	messages_work(two);
	OK(cci_create_endpoint(NULL, 0, &client, NULL));
	CHECK_EQ(use_up(client, uri, 1, 1000), 1000);
}
