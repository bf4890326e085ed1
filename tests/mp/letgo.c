/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * letgo - rank 0 puts to rank 1, which has yet to come, and unlinks at once
 *
 * Short puts let their descriptor go: the library copies the bytes, and their events are
 * there.  A long put does not, nor does a short one when the memory for copies is used
 * up.  When rank 1 comes, all messages arrive, once, in order and unchanged.
 *
 *	letgo [never]	never: rank 1 ends without having called PtlNIInit, and PtlFini
 *			of rank 0 discards the message without waiting any longer
 */
#include "mp.h"

#include <stdlib.h>
#include <string.h>

enum { BITS = 5, MOST = 8192, LONG = 200000, PIECES = 3, COPIES = (1 << 20) / MOST };
#define LAST ((ptl_hdr_data_t)1 << 32) /* in the header data of the last message */

static ptl_handle_eq_t eq;
static unsigned char bytes[LONG];
static unsigned sent; /* messages: the number of each is the seed of its bytes */

static void put(ptl_handle_md_t md, ptl_size_t length, ptl_hdr_data_t flag)
{
	mp_put(md, 0, length, PTL_NO_ACK_REQ, 1, BITS, 0, sent++ | flag);
}

static ptl_handle_md_t bind_next(ptl_size_t length)
{
	mp_fill(bytes, length, sent);
	return mp_bind(bytes, length, eq, MP_STARTS);
}

static void expect_now(ptl_event_kind_t kind)
{
	ptl_event_t ev;
	mp_check(mp_poll(eq, &ev) && ev.type == kind && ev.ni_fail_type == PTL_NI_OK,
		"no %s when the descriptor is unlinked", PtlEventKindStr(kind));
}

static void expect_nothing_now(void)
{
	ptl_event_t ev;
	mp_check(!mp_poll(eq, &ev), "unexpected %s", PtlEventKindStr(ev.type));
}

/* Expect that the put is over: its bytes are the program's again. */
static void expect_sent(void)
{
	expect_now(PTL_EVENT_SEND_START);
	expect_now(PTL_EVENT_SEND_END);
	memset(bytes, 0xee, sizeof bytes);
}

static void let_go_of(ptl_size_t length)
{
	ptl_handle_md_t md = bind_next(length);
	put(md, length, 0);
	expect_nothing_now();
	mp_ok(PtlMDUnlink(md));
	expect_sent();
	expect_nothing_now();
}

static void let_go_of_pieces(void)
{
	enum { EACH = 1000 };
	ptl_md_iovec_t iov[PIECES];
	ptl_md_t d = {.start = iov,
		.length = PIECES,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_IOVEC,
		.eq_handle = eq};
	ptl_handle_md_t md;
	mp_fill(bytes, PIECES * EACH, sent);
	for (int i = PIECES - 1; i >= 0; i--) { /* apart from each other */
		iov[i] = (ptl_md_iovec_t){bytes + 2 * i * EACH, EACH};
		memmove(bytes + 2 * i * EACH, bytes + i * EACH, EACH);
	}
	mp_ok(PtlMDBind(mp.ni, d, PTL_RETAIN, &md));
	put(md, PIECES * EACH, 0);
	mp_ok(PtlMDUnlink(md));
	expect_sent();
}

static void let_go_of_two(void)
{
	ptl_handle_md_t md = bind_next(64);
	put(md, 64, 0);
	mp_put(md, 0, 0, PTL_NO_ACK_REQ, 1, BITS, 0, sent++);
	mp_ok(PtlMDUnlink(md));
	expect_now(PTL_EVENT_SEND_START);
	expect_now(PTL_EVENT_SEND_END);
	expect_sent();
}

/* Check that a descriptor with threshold 1 and PTL_UNLINK is unlinked at the end of its
 * put, as it is where the target is there. */
static void let_go_of_automatic(void)
{
	ptl_md_t d = {.start = bytes, .length = 100, .threshold = 1, .eq_handle = eq};
	ptl_handle_md_t md;
	mp_fill(bytes, 100, sent);
	mp_ok(PtlMDBind(mp.ni, d, PTL_UNLINK, &md));
	put(md, 100, 0);
	expect_nothing_now();
	int rc = PtlMDUnlink(md);
	mp_check(rc == PTL_MD_INVALID, "PtlMDUnlink: %s", PtlErrorStr((unsigned)rc));
	expect_sent();
	expect_now(PTL_EVENT_UNLINK);
}

static void let_go_of_entry(void)
{
	ptl_process_id_t any = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_md_t d = {.start = bytes,
		.length = 300,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT,
		.eq_handle = eq};
	ptl_handle_me_t me;
	ptl_handle_md_t md;
	mp_fill(bytes, 300, sent);
	mp_ok(PtlMEAttach(mp.ni, MP_PORTAL, any, 77, 0, PTL_UNLINK, PTL_INS_AFTER, &me));
	mp_ok(PtlMDAttach(me, d, PTL_RETAIN, &md));
	put(md, 300, 0);
	mp_ok(PtlMEUnlink(me));
	expect_sent();
}

static void keep(ptl_handle_md_t md)
{
	int rc = PtlMDUnlink(md);
	mp_check(rc == PTL_MD_IN_USE, "PtlMDUnlink: %s", PtlErrorStr((unsigned)rc));
	expect_nothing_now();
}

static ptl_handle_md_t keep_long(void)
{
	static unsigned char far[LONG];
	mp_fill(far, LONG, sent);
	ptl_handle_md_t md = mp_bind(far, LONG, eq, MP_STARTS);
	put(md, LONG, 0);
	keep(md);
	return md;
}

/* Put until there is no room for a copy.  Return the descriptor of the put that could not
 * be copied. */
static ptl_handle_md_t use_up(void)
{
	static unsigned char own[MOST];
	for (unsigned i = 0; i <= COPIES; i++) {
		mp_fill(own, MOST, sent);
		ptl_handle_md_t md = mp_bind(own, MOST, eq, MP_STARTS);
		put(md, MOST, 0);
		if (PtlMDUnlink(md) == PTL_MD_IN_USE) {
			mp_check(i > COPIES / 2, "room for %u copies only", i);
			keep(md);
			return md;
		}
		expect_sent();
	}
	mp_fail(__FILE__, __LINE__, "more copies than there is room for");
}

static void say_last(void)
{
	static uint64_t word;
	mp_fill((unsigned char *)&word, sizeof word, sent);
	put(mp_bind(&word, sizeof word, PTL_EQ_NONE, 0), sizeof word, LAST);
}

static void send_all(void)
{
	ptl_handle_md_t kept[2];
	static const ptl_size_t lengths[] = {0, 8, 65, 2000, 5000, MOST};
	mp_start();
	mp_barrier(); /* rank 1's PtlInit */
	eq = mp_queue(1024);
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
		let_go_of(lengths[i]);
	let_go_of_pieces();
	let_go_of_two();
	let_go_of_automatic();
	let_go_of_entry();
	kept[0] = keep_long();
	kept[1] = use_up();
	say_last();
	mp_barrier();
	for (int i = 0; i < 2; i++) {
		ptl_event_t ev;
		do {
			ev = mp_next(eq);
			mp_check(ev.ni_fail_type == PTL_NI_OK, "a put fails");
		} while (ev.type != PTL_EVENT_SEND_END);
		mp_ok(PtlMDUnlink(ev.md_handle));
		mp_check(ev.md_handle == kept[0] || ev.md_handle == kept[1],
			"SEND_END of another descriptor");
	}
	expect_nothing_now();
}

static void receive_all(void)
{
	enum { ROOM = 4 << 20 };
	unsigned char *room = calloc(1, ROOM);
	int most;
	mp_check(room != NULL, "no memory");
	mp_ok(PtlInit(&most));
	mp_barrier();
	mp_barrier();
	mp_start();
	eq = mp_queue(1024);
	(void)mp_attach(BITS, room, ROOM, PTL_MD_OP_PUT | MP_STARTS, eq);
	bool last = false;
	for (unsigned ended = 0; !last || ended < sent;) {
		ptl_event_t ev = mp_next(eq);
		unsigned number = (unsigned)ev.hdr_data;
		if (ev.type == PTL_EVENT_PUT_START) {
			mp_check(number == sent, "message %u comes as %u", number, sent);
			last = ev.hdr_data & LAST;
			sent++;
			continue;
		}
		mp_check(ev.type == PTL_EVENT_PUT_END && ev.ni_fail_type == PTL_NI_OK,
			"%s of message %u, fail type %u", PtlEventKindStr(ev.type),
			number, (unsigned)ev.ni_fail_type);
		mp_compare(room + ev.offset, ev.mlength, number, "a put");
		ended++;
	}
	free(room);
}

static void never_come(bool sends)
{
	int most;
	mp_ok(PtlInit(&most));
	if (sends) {
		mp_start();
		eq = mp_queue(16);
		let_go_of(8);
	}
	mp_barrier();
	PtlFini();
}

int main(int argc, char **argv)
{
	const char *rank = getenv("PTL_MY_RID");
	if (argc > 1 && strcmp(argv[1], "never") == 0) {
		never_come(rank && atoi(rank) == 0);
		return 0;
	}
	if (rank && atoi(rank) == 0)
		send_all();
	else
		receive_all();
	mp_end();
	return 0;
}
