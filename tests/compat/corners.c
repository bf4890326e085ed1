/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * corners default|ss - uses by existing programs that the document does not settle: on
 * PTL_IFACE_DEFAULT, or on each of Cray's names for PTL_IFACE_SS
 *
 * Default limits; a descriptor of 64 GiB; any memory as source and target; odd
 * descriptors; actions at the moment of an ACK or REPLY, and in a barrier.  Each node
 * sends to the next one, which may be itself.
 */
#include "../support/plain.h"

#include <cnos_mpi_os.h>
#include <portals3.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { PORTAL = 4, MOST = 65536, QUEUES = 64, SOON_MS = 600000, LONG = 300000 };
enum { ANY_LENGTHS = 4 };

static const ptl_size_t lengths[ANY_LENGTHS] = {8, 700, 50000, LONG};
static const ptl_process_id_t anybody = {PTL_NID_ANY, PTL_PID_ANY};
static ptl_ni_limits_t limits;
static ptl_process_id_t next;
static ptl_handle_ni_t ni;
static ptl_handle_eq_t sent, came; /* events of sent messages, and of received ones */
static ptl_match_bits_t bits;      /* of this case: each case has its own */
static bool cray;

/* ---- calls in one line ---- */

static void meet(void)
{
	CHECK(cnos_barrier() == 0);
}

/* Return a descriptor whose members that programs leave unset have arbitrary values. */
static ptl_md_t descriptor(void *start, ptl_size_t length, unsigned options)
{
	ptl_md_t md;
	memset(&md, 0xa5, sizeof md);
	md.start = start;
	md.length = length;
	md.threshold = PTL_MD_THRESH_INF;
	md.options = options | PTL_MD_EVENT_START_DISABLE;
	md.eq_handle = options & (PTL_MD_OP_PUT | PTL_MD_OP_GET) ? came : sent;
	return md;
}

static ptl_handle_me_t entry(ptl_unlink_t unlink)
{
	ptl_handle_me_t me;
	OK(PtlMEAttach(ni, PORTAL, anybody, bits, 0, unlink, PTL_INS_AFTER, &me));
	return me;
}

static ptl_handle_md_t attach(ptl_md_t md)
{
	ptl_handle_md_t mdh;
	OK(PtlMDAttach(entry(PTL_UNLINK), md, PTL_RETAIN, &mdh));
	return mdh;
}

static ptl_handle_md_t bind(ptl_md_t md)
{
	ptl_handle_md_t mdh;
	OK(PtlMDBind(ni, md, PTL_RETAIN, &mdh));
	return mdh;
}

static void put(ptl_handle_md_t mdh, ptl_size_t remote)
{
	OK(PtlPut(mdh, PTL_ACK_REQ, next, PORTAL, 0, bits, remote, bits));
}

static void get(ptl_handle_md_t mdh, ptl_size_t remote)
{
	OK(PtlGet(mdh, next, PORTAL, 0, bits, remote));
}

static ptl_event_t expect(ptl_handle_eq_t eq, ptl_event_kind_t kind)
{
	ptl_event_t ev;
	int which;
	OK(PtlEQPoll(&eq, 1, SOON_MS, &ev, &which));
	CHECK(ev.type == kind && ev.ni_fail_type == PTL_NI_OK);
	return ev;
}

static ptl_event_t put_is_over(void)
{
	(void)expect(sent, PTL_EVENT_SEND_END);
	return expect(sent, PTL_EVENT_ACK);
}

static ptl_event_t get_is_over(void)
{
	if (cray)
		(void)expect(sent, PTL_EVENT_SEND_END);
	return expect(sent, PTL_EVENT_REPLY_END);
}

static void nothing_more(void)
{
	ptl_event_t ev;
	meet();
	CHECK(PtlEQGet(sent, &ev) == PTL_EQ_EMPTY);
	CHECK(PtlEQGet(came, &ev) == PTL_EQ_EMPTY);
}

/* Return the CPU time of this process: it may have to wait for a CPU. */
static uint64_t cpu_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* ---- limits ---- */

static void limits_are_enough(void)
{
	CHECK(limits.max_pt_index >= 63 && limits.max_eqs >= QUEUES);
	CHECK(limits.max_mes >= MOST && limits.max_mds >= MOST);
	CHECK(limits.max_me_list >= MOST);
}

/* Make as many as promised in one list, a descriptor in each; the last one is found. */
static void entries_are_there(void)
{
	static ptl_handle_me_t me[MOST];
	ptl_md_t md = descriptor(&bits, sizeof bits, PTL_MD_OP_GET);
	ptl_handle_md_t mdh;
	uint64_t got = 0;
	ptl_sr_value_t in_use;
	OK(PtlNIStatus(ni, PTL_SR_MES_CUR, &in_use));
	for (unsigned i = 0; i < MOST - in_use - 8; i++) {
		bits = (uint64_t)1 << 32 | i;
		me[i] = entry(PTL_RETAIN);
		OK(PtlMDAttach(me[i], md, PTL_RETAIN, &mdh));
	}
	meet();
	mdh = bind(descriptor(&got, sizeof got, 0));
	get(mdh, 0);
	(void)get_is_over();
	(void)expect(came, PTL_EVENT_GET_END);
	CHECK(got == bits);
	OK(PtlMDUnlink(mdh));
	nothing_more();
	for (unsigned i = 0; i < MOST && me[i]; i++)
		OK(PtlMEUnlink(me[i]));
}

/* It takes 512 MiB: one node only does it. */
static void queues_are_there(void)
{
	ptl_handle_eq_t eq[QUEUES - 2];
	if (cnos_get_size() > 1)
		return;
	for (int i = 0; i < QUEUES - 2; i++)
		OK(PtlEQAlloc(ni, 65536, PTL_EQ_HANDLER_NONE, &eq[i]));
	for (int i = 0; i < QUEUES - 2; i++)
		OK(PtlEQFree(eq[i]));
}

/* Only one page of it is touched; the length does not matter for making it. */
static void descriptor_of_64_gib(void)
{
	const size_t length = (size_t)64 << 30, at = (size_t)40 << 30, page = 4096;
	uint64_t word = bits;
	char *all = mmap(NULL, length, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(all != MAP_FAILED);
	CHECK(mprotect(all + at, page, PROT_READ | PROT_WRITE) == 0);
	uint64_t start = cpu_us();
	ptl_handle_md_t target =
		attach(descriptor(all, length, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE));
	ptl_handle_md_t source = bind(descriptor(all, length, 0));
	CHECK(cpu_us() - start < 1000000);
	meet();
	ptl_handle_md_t small = bind(descriptor(&word, sizeof word, 0));
	put(small, at + 8);
	(void)put_is_over();
	(void)expect(came, PTL_EVENT_PUT_END);
	CHECK(*(uint64_t *)(all + at + 8) == bits);
	OK(PtlPutRegion(source, at + 8, 8, PTL_ACK_REQ, next, PORTAL, 0, bits, at, 0));
	CHECK(put_is_over().offset == at);
	(void)expect(came, PTL_EVENT_PUT_END);
	CHECK(*(uint64_t *)(all + at) == bits);
	OK(PtlMDUnlink(small));
	OK(PtlMDUnlink(source));
	nothing_more();
	OK(PtlMDUnlink(target));
	CHECK(munmap(all, length) == 0);
}

/* ---- memory ---- */

enum { STACK, HEAP, BSS, DATA, MAPPED, KINDS };

static unsigned char bss[2][LONG], data[2][LONG] = {{1}, {1}};

static unsigned char byte_of(int kind, ptl_size_t length, ptl_size_t i)
{
	return (unsigned char)((unsigned)kind * 50 + length + i * 7 + (i >> 8));
}

static void move(unsigned char *from, unsigned char *to, int kind, ptl_size_t length)
{
	for (ptl_size_t i = 0; i < length; i++)
		from[i] = byte_of(kind, length, i);
	for (int is_put = 0; is_put < 2; is_put++) {
		memset(to, 0, length);
		bits++;
		ptl_handle_md_t target =
			attach(is_put ? descriptor(to, length, PTL_MD_OP_PUT)
				      : descriptor(from, length, PTL_MD_OP_GET));
		ptl_handle_md_t own = bind(descriptor(is_put ? from : to, length, 0));
		meet();
		if (is_put)
			put(own, 0);
		else
			get(own, 0);
		CHECK((is_put ? put_is_over() : get_is_over()).mlength == length);
		(void)expect(came, is_put ? PTL_EVENT_PUT_END : PTL_EVENT_GET_END);
		for (ptl_size_t i = 0; i < length; i++)
			CHECK(to[i] == byte_of(kind, length, i));
		OK(PtlMDUnlink(own));
		nothing_more();
		OK(PtlMDUnlink(target));
	}
}

static void any_memory_will_do(void)
{
	unsigned char on_stack[2][LONG], *heap = malloc(2 * LONG);
	unsigned char *mapped = mmap(NULL, 2 * LONG, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char *from[KINDS] = {on_stack[0], heap, bss[0], data[0], mapped};
	CHECK(heap && mapped != MAP_FAILED);
	for (int kind = 0; kind < KINDS; kind++)
		for (int i = 0; i < ANY_LENGTHS; i++)
			move(from[kind], from[kind] + LONG, kind, lengths[i]);
	free(heap);
	CHECK(munmap(mapped, 2 * LONG) == 0);
}

/* ---- odd descriptors ---- */

/* A descriptor of an entry sends, too, and is bound with bits that sending ignores. */
static void both_ends_at_once(void)
{
	uint64_t out[2] = {7, 8}, in = 0;
	unsigned all = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE;
	ptl_md_t md = descriptor(out, sizeof out, all);
	ptl_handle_md_t attached = attach(md);
	ptl_md_t bound = descriptor(&in, sizeof in, all | PTL_MD_TRUNCATE);
	bound.eq_handle = sent;
	ptl_handle_md_t own = bind(bound);
	meet();
	OK(PtlGetRegion(own, 0, 8, next, PORTAL, 0, bits, 8));
	(void)get_is_over();
	CHECK(in == 8 && expect(came, PTL_EVENT_GET_END).offset == 8);
	meet();
	OK(PtlPutRegion(attached, 0, 8, PTL_NO_ACK_REQ, next, PORTAL, 0, bits, 8, 0));
	for (int sends = 0, puts = 0; sends + puts < 2;) {
		ptl_event_t ev;
		int which;
		OK(PtlEQPoll(&came, 1, SOON_MS, &ev, &which));
		CHECK(ev.md_handle == attached && ev.ni_fail_type == PTL_NI_OK);
		sends += ev.type == PTL_EVENT_SEND_END;
		puts += ev.type == PTL_EVENT_PUT_END;
	}
	CHECK(out[1] == 7);
	OK(PtlMDUnlink(own));
	nothing_more();
	OK(PtlMDUnlink(attached));
}

static void nothing_of_nothing(void)
{
	unsigned all = PTL_MD_OP_PUT | PTL_MD_OP_GET;
	ptl_handle_md_t target = attach(descriptor(NULL, 0, all));
	ptl_handle_md_t own = bind(descriptor(NULL, 0, 0));
	meet();
	put(own, 0);
	CHECK(put_is_over().mlength == 0);
	CHECK(expect(came, PTL_EVENT_PUT_END).rlength == 0);
	get(own, 0);
	CHECK(get_is_over().mlength == 0);
	CHECK(expect(came, PTL_EVENT_GET_END).rlength == 0);
	OK(PtlMDUnlink(own));
	nothing_more();
	OK(PtlMDUnlink(target));
}

/* Receives stand before an entry without descriptor, unexpected messages behind it. */
static void mark_in_the_list(void)
{
	uint64_t word = 9, in[2] = {0, 0};
	ptl_handle_me_t mark = entry(PTL_RETAIN), before, after;
	ptl_handle_md_t early, late, own = bind(descriptor(&word, 8, 0));
	OK(PtlMEInsert(mark, anybody, bits, 0, PTL_UNLINK, PTL_INS_AFTER, &after));
	OK(PtlMDAttach(after, descriptor(&in[1], 8, PTL_MD_OP_PUT), PTL_RETAIN, &late));
	meet();
	put(own, 0);
	(void)put_is_over();
	CHECK(expect(came, PTL_EVENT_PUT_END).md_handle == late);
	meet();
	OK(PtlMEInsert(mark, anybody, bits, 0, PTL_UNLINK, PTL_INS_BEFORE, &before));
	OK(PtlMDAttach(before, descriptor(&in[0], 8, PTL_MD_OP_PUT), PTL_RETAIN, &early));
	meet();
	put(own, 0);
	(void)put_is_over();
	CHECK(expect(came, PTL_EVENT_PUT_END).md_handle == early);
	OK(PtlMDUnlink(own));
	nothing_more();
	OK(PtlMDUnlink(early));
	CHECK(PtlMEUnlink(before) == PTL_ME_INVALID); /* gone with its descriptor */
	OK(PtlMEUnlink(after));
	CHECK(PtlMDUnlink(late) == PTL_MD_INVALID); /* gone with its entry */
	OK(PtlMEUnlink(mark));
}

static void unlinked_at_its_last_event(void)
{
	static unsigned char in[LONG], out[LONG];
	unsigned all = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE;
	ptl_handle_md_t target = attach(descriptor(in, LONG, all));
	meet();
	for (int i = 0; i < 40; i++) {
		ptl_handle_md_t own = bind(descriptor(out, lengths[i % ANY_LENGTHS], 0));
		if (i / 4 % 2)
			put(own, 0);
		else
			get(own, 0);
		ptl_event_t ev = i / 4 % 2 ? put_is_over() : get_is_over();
		CHECK(ev.md_handle == own && ev.md.start == out);
		OK(PtlMDUnlink(ev.md_handle));
	}
	for (int puts = 0, gets = 0;
		puts + gets < 40;) { /* a long get's END may be late */
		ptl_event_t ev;
		int which;
		OK(PtlEQPoll(&came, 1, SOON_MS, &ev, &which));
		puts += ev.type == PTL_EVENT_PUT_END;
		gets += ev.type == PTL_EVENT_GET_END;
		CHECK(ev.ni_fail_type == PTL_NI_OK && puts <= 20 && gets <= 20);
	}
	nothing_more();
	OK(PtlMDUnlink(target));
}

/* The first rank's put is over before it comes to the barrier that the others are in. */
static void served_in_a_barrier(void)
{
	static unsigned char in[LONG], out[LONG];
	int last = cnos_get_size() > 1 ? 1 : 0;
	ptl_handle_md_t target =
		attach(descriptor(in, LONG, PTL_MD_OP_PUT | PTL_MD_OP_GET));
	ptl_handle_md_t own = bind(descriptor(out, LONG, 0));
	meet();
	if (cnos_get_rank() == 0) {
		put(own, 0);
		(void)put_is_over();
	}
	meet();
	if (cnos_get_rank() == last)
		(void)expect(came, PTL_EVENT_PUT_END);
	OK(PtlMDUnlink(own));
	nothing_more();
	OK(PtlMDUnlink(target));
}

/* ---- interfaces ---- */

static void enter(ptl_interface_t iface)
{
	ptl_handle_ni_t again;
	ptl_process_id_t self;
	cnos_nidpid_map_t *map;
	unsigned long far;
	int size = cnos_get_size();
	OK(PtlNIInit(iface, PTL_PID_ANY, NULL, &limits, &ni));
	CHECK(PtlNIInit(iface, PTL_PID_ANY, NULL, NULL, &again) ==
		(cray ? PTL_IFACE_DUP : PTL_OK));
	CHECK(again == ni && cnos_get_nidpid_map(&map) == size);
	OK(PtlGetId(ni, &self));
	for (int i = 0; i < size; i++) {
		ptl_process_id_t who = {map[i].nid, map[i].pid};
		OK(PtlNIDist(ni, who, &far));
		CHECK(i != cnos_get_rank() ||
			(who.nid == self.nid && who.pid == self.pid));
		if (i == (cnos_get_rank() + 1) % size)
			next = who;
	}
	OK(PtlEQAlloc(ni, 256, PTL_EQ_HANDLER_NONE, &sent));
	OK(PtlEQAlloc(ni, 256, PTL_EQ_HANDLER_NONE, &came));
}

static void all_of_it(void)
{
	static void (*const cases[])(void) = {limits_are_enough, entries_are_there,
		queues_are_there, descriptor_of_64_gib, any_memory_will_do,
		both_ends_at_once, nothing_of_nothing, mark_in_the_list,
		unlinked_at_its_last_event, served_in_a_barrier};
	for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		bits = (i + 1) * 1000;
		cases[i]();
	}
}

static void some_of_it(void)
{
	bits = 1;
	mark_in_the_list();
	bits = 2;
	both_ends_at_once();
}

int main(int argc, char **argv)
{
	static const ptl_interface_t names[] = {PTL_IFACE_SS, CRAY_USER_NAL,
		CRAY_UK_SSNAL, CRAY_QK_NAL,
		IFACE_FROM_BRIDGE_AND_NALID(PTL_BRIDGE_UK, CRAY_UK_SSNAL),
		IFACE_FROM_BRIDGE_AND_NALID(PTL_BRIDGE_QK, CRAY_QK_NAL),
		IFACE_FROM_BRIDGE_AND_NALID(PTL_BRIDGE_UK, PTL_IFACE_SS)};
	const char *variable = getenv("PTL_IFACE");
	int most;
	CHECK(variable && strcmp(variable, "0") == 0);
	cray = argc > 1 && strcmp(argv[1], "ss") == 0;
	OK(PtlInit(&most));
	for (unsigned i = 0; i < (cray ? sizeof names / sizeof names[0] : 1); i++) {
		enter(cray ? names[i] : PTL_IFACE_DEFAULT);
		meet();
		if (i == 0)
			all_of_it();
		else
			some_of_it();
		meet();
		OK(PtlNIFini(ni));
		meet();
	}
	PtlFini();
	return 0;
}
