/* SPDX-License-Identifier: BSD-3-Clause */
/* Conformance of CCI: remote memory access. */
#include "frame.h"
#include "../support/leaks.h"

#include <portals3.h>
#include <portals3x.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

enum { GUARD = 64 };

typedef struct cci_rma_handle handle;

static cci_rma_handle_t *region(cci_endpoint_t *ep, void *at, size_t length, int flags)
{
	cci_rma_handle_t *h = NULL;
	OK(cci_rma_register(ep, at, length, flags, &h));
	CHECK(h);
	return h;
}

/* Return the server's handle, on both sides; there is a barrier in between. */
static handle handle_of_server(unsigned slot, cci_rma_handle_t *own)
{
	handle h;
	unsigned char *at = shared() + slot * sizeof h;
	if (me.is_server)
		memcpy(at, own, sizeof h);
	barrier();
	memcpy(&h, at, sizeof h);
	return h;
}

/* Do an RMA and wait for its end; return its status. */
static int rma(struct side s, cci_rma_handle_t *local, uint64_t local_offset,
	cci_rma_handle_t *remote, uint64_t remote_offset, uint64_t length, int flags)
{
	OK(cci_rma(s.conn, NULL, 0, local, local_offset, remote, remote_offset, length,
		CONTEXT(length), flags));
	cci_event_t *event = NEXT(s.ep);
	CHECK(event->type == CCI_EVENT_SEND);
	CHECK(event->send.context == CONTEXT(length));
	CHECK(event->send.connection == s.conn);
	int status = (int)event->send.status;
	RETURN(event);
	return status;
}

static unsigned char *memory(size_t length)
{
	void *at = mmap(
		NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(at != MAP_FAILED);
	return at;
}

/* ---- lengths ---- */

static const size_t rma_lengths[] = {1, 7, 8, 64, 4095, 4096, 65536, MIB + 3};
static const size_t offsets[] = {0, 1, 13};
enum { LENGTHS = 8, OFFSETS = 3 };

static unsigned seed_of(unsigned n, unsigned lo, unsigned ro)
{
	return n * 100 + lo * 10 + ro;
}

/*
 * The target's memory has a guard of 0xee on both sides of a region of the length and a
 * few bytes more; after a step the target checks all of it.
 */
static void one_length(struct side s, size_t length, unsigned n, bool write)
{
	size_t whole = length + 2 * GUARD + 16;
	unsigned char *bytes = memory(whole);
	cci_rma_handle_t *h =
		region(s.ep, bytes + GUARD, length + 16, CCI_FLAG_READ | CCI_FLAG_WRITE);
	handle remote = handle_of_server(0, h);
	for (unsigned lo = 0; lo < OFFSETS; lo++)
		for (unsigned ro = 0; ro < OFFSETS; ro++) {
			size_t at = GUARD + offsets[me.is_client ? lo : ro];
			bool has_source = write == me.is_client;
			unsigned seed = seed_of(n, lo, ro);
			memset(bytes, 0xee, whole);
			if (has_source)
				fill(bytes + at, length, seed);
			barrier();
			if (me.is_client)
				CHECK_EQ(rma(s, h, offsets[lo], &remote, offsets[ro],
						 length,
						 write ? CCI_FLAG_WRITE : CCI_FLAG_READ),
					CCI_SUCCESS);
			barrier();
			CHECK_BYTES(bytes + at, length, seed);
			CHECK_ALL(bytes, at, 0xee);
			CHECK_ALL(bytes + at + length, whole - at - length, 0xee);
			barrier();
		}
	OK(cci_rma_deregister(s.ep, h));
	CHECK(munmap(bytes, whole) == 0);
}

/* A gigabyte where there is time and memory for it, else 33 MiB. */
static size_t huge(void)
{
	bool full = many(1000) == 1000;
	return full ? 1024 * MIB : 33 * MIB;
}

static void one_huge(struct side s, bool write)
{
	size_t length = huge();
	unsigned char *bytes = memory(length);
	cci_rma_handle_t *h = region(s.ep, bytes, length, CCI_FLAG_READ | CCI_FLAG_WRITE);
	if (write == me.is_client)
		fill(bytes, length, 5);
	handle remote = handle_of_server(0, h);
	if (me.is_client)
		CHECK_EQ(rma(s, h, 0, &remote, 0, length,
				 write ? CCI_FLAG_WRITE : CCI_FLAG_READ),
			CCI_SUCCESS);
	barrier();
	CHECK_BYTES(bytes, length, 5);
	barrier();
	OK(cci_rma_deregister(s.ep, h));
	CHECK(munmap(bytes, length) == 0);
}

STATEMENT(97, lengths, 2, 0)
{
	for (cci_conn_attribute_t a = CCI_CONN_ATTR_RO; a <= CCI_CONN_ATTR_RU; a++) {
		struct side s = meet(a);
		for (unsigned n = 0; n < LENGTHS; n++) {
			one_length(s, rma_lengths[n], n, true);
			one_length(s, rma_lengths[n], n, false);
		}
		if (a == CCI_CONN_ATTR_RO) {
			one_huge(s, true);
			one_huge(s, false);
		}
	}
}

/* ---- one region of 64 KiB at the server ---- */

enum { LENGTH = 65536 };

static unsigned char target[LENGTH], local_bytes[LENGTH];

struct plain {
	struct side s;
	cci_rma_handle_t *local; /* the client's, flags 0 */
	handle remote;           /* the server's, as the client has it */
	cci_rma_handle_t *own;   /* the server's, as it has it */
};

static struct plain plain_with(cci_conn_attribute_t a, int rights)
{
	struct plain p = {.s = meet(a)};
	memset(target, 0x11, sizeof target);
	memset(local_bytes, 0x22, sizeof local_bytes);
	if (me.is_server)
		p.own = region(p.s.ep, target, LENGTH, rights);
	else
		p.local = region(p.s.ep, local_bytes, LENGTH, 0);
	p.remote = handle_of_server(0, p.own);
	return p;
}

static int write_all(struct plain *p)
{
	return rma(p->s, p->local, 0, &p->remote, 0, LENGTH, CCI_FLAG_WRITE);
}

static int read_all(struct plain *p)
{
	return rma(p->s, p->local, 0, &p->remote, 0, LENGTH, CCI_FLAG_READ);
}

STATEMENT(98, local_flags_0, 2, 0)
{
	struct plain p = plain_with(CCI_CONN_ATTR_RO, CCI_FLAG_READ | CCI_FLAG_WRITE);
	if (me.is_client) {
		fill(local_bytes, LENGTH, 98);
		CHECK_EQ(write_all(&p), CCI_SUCCESS);
		memset(local_bytes, 0, LENGTH);
		CHECK_EQ(read_all(&p), CCI_SUCCESS);
		CHECK_BYTES(local_bytes, LENGTH, 98);
	}
	barrier();
	if (me.is_server)
		CHECK_BYTES(target, LENGTH, 98);
}

static void try_lengths(struct plain *p, int flags, int status)
{
	static const uint64_t some[] = {1, 8, 32, 64, 1000, 4096, 20000, LENGTH};
	for (unsigned i = 0; i < 8; i++)
		CHECK_EQ(rma(p->s, p->local, 0, &p->remote, 0, some[i], flags), status);
}

STATEMENT(99, rights, 2, 0)
{
	static const int rights[] = {0, CCI_FLAG_READ, CCI_FLAG_WRITE};
	for (unsigned i = 0; i < 3; i++) {
		struct plain p = plain_with(
			i % 2 ? CCI_CONN_ATTR_RU : CCI_CONN_ATTR_RO, rights[i]);
		if (me.is_client) {
			if (!(rights[i] & CCI_FLAG_READ))
				try_lengths(&p, CCI_FLAG_READ, CCI_ERR_RMA_HANDLE);
			CHECK_ALL(local_bytes, LENGTH, 0x22);
			if (!(rights[i] & CCI_FLAG_WRITE))
				try_lengths(&p, CCI_FLAG_WRITE, CCI_ERR_RMA_HANDLE);
			OK(cci_send(p.s.conn, "works", 5, NULL, CCI_FLAG_BLOCKING));
		} else {
			TAKE(p.s.ep, CCI_EVENT_RECV);
			CHECK_ALL(target, LENGTH, 0x11);
		}
		barrier();
		if (me.is_client && (rights[i] & CCI_FLAG_WRITE))
			CHECK_EQ(write_all(&p), CCI_SUCCESS);
		if (me.is_client && (rights[i] & CCI_FLAG_READ))
			CHECK_EQ(read_all(&p), CCI_SUCCESS);
		barrier();
		CHECK_ALL(target, me.is_server ? LENGTH : 0,
			rights[i] & CCI_FLAG_WRITE ? 0x22 : 0x11);
	}
}

STATEMENT(100, ranges, 2, 0)
{
	static const struct {
		uint64_t offset, length;
	} wrong[] = {{LENGTH, 1}, {LENGTH - 1, 2}, {0, LENGTH + 1}, {LENGTH + 1, 1},
		{UINT64_MAX, 1}, {UINT64_MAX - 7, 8}, {UINT64_MAX - 7, 16},
		{1, UINT64_MAX}, {UINT64_MAX, UINT64_MAX}};
	struct plain p = plain_with(CCI_CONN_ATTR_RO, CCI_FLAG_READ | CCI_FLAG_WRITE);
	for (unsigned i = 0; i < 9 && me.is_client; i++)
		for (int flag = CCI_FLAG_READ; flag <= CCI_FLAG_WRITE; flag *= 2) {
			if (wrong[i].length <= LENGTH)
				CHECK_EQ(rma(p.s, p.local, 0, &p.remote, wrong[i].offset,
						 wrong[i].length, flag),
					CCI_ERR_RMA_HANDLE);
			CHECK_RC(cci_rma(p.s.conn, NULL, 0, p.local, wrong[i].offset,
					 &p.remote, 0, wrong[i].length, NULL, flag),
				CCI_EINVAL);
		}
	if (me.is_client)
		CHECK_EQ(rma(p.s, p.local, LENGTH - 1, &p.remote, LENGTH - 1, 1,
				 CCI_FLAG_WRITE),
			CCI_SUCCESS);
	barrier();
	if (me.is_server) {
		CHECK_ALL(target, LENGTH - 1, 0x11);
		CHECK_EQ(target[LENGTH - 1], 0x22);
	}
	SILENCE(p.s.ep, 2);
}

STATEMENT(101, other_endpoints, 2, 0)
{
	struct plain p = plain_with(CCI_CONN_ATTR_RO, CCI_FLAG_READ | CCI_FLAG_WRITE);
	cci_endpoint_t *other = endpoint();
	cci_rma_handle_t *h =
		region(other, local_bytes, LENGTH, CCI_FLAG_READ | CCI_FLAG_WRITE);
	handle foreign = handle_of_server(1, h);
	if (me.is_client) {
		CHECK_RC(cci_rma(p.s.conn, NULL, 0, h, 0, &p.remote, 0, 8, NULL,
				 CCI_FLAG_WRITE),
			CCI_EINVAL);
		CHECK_EQ(rma(p.s, p.local, 0, &foreign, 0, 8, CCI_FLAG_WRITE),
			CCI_ERR_RMA_HANDLE);
		CHECK_EQ(rma(p.s, p.local, 0, &foreign, 0, LENGTH, CCI_FLAG_READ),
			CCI_ERR_RMA_HANDLE);
		CHECK_RC(cci_rma_deregister(p.s.ep, h), CCI_EINVAL);
	}
	barrier();
	CHECK_ALL(
		me.is_server ? target : local_bytes, LENGTH, me.is_server ? 0x11 : 0x22);
}

STATEMENT(102, stale_and_random_handles, 2, 0)
{
	struct plain p = plain_with(CCI_CONN_ATTR_RO, CCI_FLAG_READ | CCI_FLAG_WRITE);
	if (me.is_server) {
		OK(cci_rma_deregister(p.s.ep, p.own));
		(void)region(p.s.ep, target, LENGTH, CCI_FLAG_READ | CCI_FLAG_WRITE);
	}
	barrier();
	if (me.is_client) {
		try_lengths(&p, CCI_FLAG_READ, CCI_ERR_RMA_HANDLE);
		try_lengths(&p, CCI_FLAG_WRITE, CCI_ERR_RMA_HANDLE);
		for (unsigned i = 0; i < 1000; i++) {
			handle any = p.remote;
			for (unsigned k = 0; k < 4; k++)
				if (i % 16 & 1u << k || i % 16 == 0)
					any.stuff[k] = mix(i * 4 + k);
			int rc = cci_rma(p.s.conn, NULL, 0, p.local, 0, &any, 0, 64,
				CONTEXT(i), i & 16 ? CCI_FLAG_WRITE : CCI_FLAG_READ);
			CHECK_EQ(rc, CCI_SUCCESS);
			RETURN(EXPECT_STATUS(p.s.ep, CCI_EVENT_SEND, CCI_ERR_RMA_HANDLE));
		}
		CHECK_ALL(local_bytes, LENGTH, 0x22);
	}
	barrier();
	CHECK_ALL(target, me.is_server ? LENGTH : 0, 0x11);
}

STATEMENT(103, copies_of_handles, 2, 0)
{
	struct plain p = plain_with(CCI_CONN_ATTR_RU, CCI_FLAG_READ | CCI_FLAG_WRITE);
	if (me.is_client) {
		handle copy = *p.local;
		CHECK_EQ(rma(p.s, &copy, 0, &p.remote, 0, LENGTH, CCI_FLAG_WRITE),
			CCI_SUCCESS);
		OK(cci_rma_deregister(p.s.ep, &copy));
		CHECK_RC(cci_rma_deregister(p.s.ep, &copy), CCI_EINVAL);
		CHECK_RC(cci_rma(p.s.conn, NULL, 0, &copy, 0, &p.remote, 0, 8, NULL,
				 CCI_FLAG_WRITE),
			CCI_EINVAL);
		CHECK_RC(cci_rma_deregister(p.s.ep, NULL), CCI_EINVAL);
		CHECK_RC(cci_rma_deregister(NULL, &copy), CCI_EINVAL);
	}
	barrier();
	CHECK_ALL(target, me.is_server ? LENGTH : 0, 0x22);
}

STATEMENT(104, wrong_arguments, 2, 0)
{
	struct plain p = plain_with(CCI_CONN_ATTR_RO, CCI_FLAG_READ | CCI_FLAG_WRITE);
	cci_connection_t *unreliable = meet_again(p.s.ep, 0, CCI_CONN_ATTR_UU);
	if (!me.is_client)
		return;
	enum { W = CCI_FLAG_WRITE, R = CCI_FLAG_READ };
	cci_connection_t *c = p.s.conn;
	static char bytes[1 << 16];
#define WRONG(conn, local, remote, n, flags)                                             \
	CHECK_RC(cci_rma(conn, NULL, 0, local, 0, remote, 0, n, NULL, flags), CCI_EINVAL)
	WRONG(c, p.local, &p.remote, 0, W);
	WRONG(c, p.local, &p.remote, 0, R);
	WRONG(c, p.local, &p.remote, 8, W | R);
	WRONG(c, p.local, &p.remote, 8, 0);
	WRONG(c, p.local, &p.remote, 8, CCI_FLAG_FENCE);
	WRONG(unreliable, p.local, &p.remote, 8, W);
	WRONG(unreliable, p.local, &p.remote, 8, R);
	WRONG(c, NULL, &p.remote, 8, W);
	WRONG(c, p.local, NULL, 8, W);
	WRONG(NULL, p.local, &p.remote, 8, W);
#undef WRONG
	CHECK_RC(cci_rma(c, bytes, c->max_send_size + 1, p.local, 0, &p.remote, 0, 8,
			 NULL, W),
		CCI_EMSGSIZE);
	SILENCE(p.s.ep, 5);
}

/* ---- completion messages ---- */

/* Write with a message, one after another; the target checks the data as the message
 * comes. */
static void write_with_message(struct plain *p, unsigned long rounds)
{
	for (uint32_t i = 0; i < rounds; i++) {
		uint32_t length = 8 + (uint32_t)(mix(i) % (i % 16 ? 4000 : LENGTH - 8));
		if (me.is_client) {
			fill(local_bytes, length, i);
			OK(cci_rma(p->s.conn, &i, sizeof i, p->local, 0, &p->remote, 0,
				length, CONTEXT(i), CCI_FLAG_WRITE));
			SENT(p->s.ep, CONTEXT(i));
			await_word(0, i + 1); /* the target has compared */
			continue;
		}
		cci_event_t *event = EXPECT(p->s.ep, CCI_EVENT_RECV);
		CHECK_EQ(event->recv.len, sizeof i);
		CHECK(memcmp(event->recv.ptr, &i, sizeof i) == 0);
		CHECK(event->recv.connection == p->s.conn);
		CHECK_BYTES(target, length, i);
		RETURN(event);
		set_word(0, i + 1);
	}
	barrier();
	SILENCE(p->s.ep, 2);
}

STATEMENT(105, completion_message, 2, 0)
{
	for (cci_conn_attribute_t a = CCI_CONN_ATTR_RO; a <= CCI_CONN_ATTR_RU; a++) {
		set_word(0, 0);
		struct plain p = plain_with(a, CCI_FLAG_WRITE);
		write_with_message(&p, many(50000));
		barrier();
	}
}

STATEMENT(106, no_completion_message, 2, 0)
{
	struct plain p = plain_with(CCI_CONN_ATTR_RO, CCI_FLAG_WRITE);
	if (me.is_client) {
		OK(cci_rma(p.s.conn, "x", 0, p.local, 0, &p.remote, 0, 8, CONTEXT(1),
			CCI_FLAG_WRITE));
		SENT(p.s.ep, CONTEXT(1));
		OK(cci_rma(p.s.conn, NULL, 5, p.local, 0, &p.remote, 0, LENGTH,
			CONTEXT(2), CCI_FLAG_WRITE));
		SENT(p.s.ep, CONTEXT(2));
	}
	barrier();
	SILENCE(p.s.ep, 5);
}

STATEMENT(107, read_with_message, 2, 0)
{
	struct plain p = plain_with(CCI_CONN_ATTR_RO, CCI_FLAG_READ);
	for (uint32_t i = 0; i < many(20000); i++) {
		uint32_t length = i % 2 ? 64 : i % 16 ? 3000 : LENGTH;
		if (me.is_server) {
			fill(target, length, i);
			set_word(1, i + 1);
			cci_event_t *event = EXPECT(p.s.ep, CCI_EVENT_RECV);
			CHECK(memcmp(event->recv.ptr, &i, sizeof i) == 0);
			memset(target, 0x77, length);
			RETURN(event);
			continue;
		}
		await_word(1, i + 1);
		OK(cci_rma(p.s.conn, &i, sizeof i, p.local, 0, &p.remote, 0, length,
			CONTEXT(i), CCI_FLAG_READ));
		SENT(p.s.ep, CONTEXT(i));
		CHECK_BYTES(local_bytes, length, i);
	}
}

static void check_letter(cci_endpoint_t *ep, char letter, uint32_t length)
{
	cci_event_t *event = EXPECT(ep, CCI_EVENT_RECV);
	CHECK_EQ(event->recv.len, length);
	CHECK_EQ(((const char *)event->recv.ptr)[0], letter);
	RETURN(event);
}

STATEMENT(108, order_of_messages, 2, 0)
{
	static unsigned char large[MIB];
	struct side s = meet(CCI_CONN_ATTR_RO);
	cci_rma_handle_t *h = region(s.ep, large, MIB, CCI_FLAG_WRITE);
	handle remote = handle_of_server(0, h);
	for (unsigned i = 0; i < many(1000); i++) {
		if (me.is_server) {
			check_letter(s.ep, 'A', 40);
			check_letter(s.ep, 'B', 4);
			check_letter(s.ep, 'C', 1);
			check_letter(s.ep, 'D', 2);
			continue;
		}
		static char a[40] = "A";
		uint64_t length = i % 4 ? 1 + mix(i) % 100000 : MIB;
		OK(cci_send(s.conn, a, sizeof a, CONTEXT(0), 0));
		OK(cci_rma(s.conn, "B...", 4, h, 0, &remote, 0, length, CONTEXT(1),
			CCI_FLAG_WRITE));
		OK(cci_send(s.conn, "C", 1, CONTEXT(2), 0));
		OK(cci_rma(s.conn, "D.", 2, h, 0, &remote, 0, 8, CONTEXT(3),
			CCI_FLAG_WRITE));
		for (unsigned k = 0; k < 4; k++)
			SENT(s.ep, CONTEXT(k));
	}
}

/* ---- fences ---- */

enum { BLOCKS = 4, BLOCK = 300000 }; /* long enough to move in several steps */

static struct {
	unsigned char bytes[BLOCKS][BLOCK];
	_Atomic uint64_t flag;
	unsigned char later[BLOCKS][BLOCK];
} fenced;

static void write_fenced(
	struct side s, cci_rma_handle_t *local, handle *remote, uint64_t i)
{
	memset(fenced.bytes, (int)(i & 0xff), sizeof fenced.bytes);
	fenced.flag = i;
	for (unsigned k = 0; k < BLOCKS; k++)
		OK(cci_rma(s.conn, NULL, 0, local, k * BLOCK, remote, k * BLOCK, BLOCK,
			CONTEXT(k), CCI_FLAG_WRITE));
	OK(cci_rma(s.conn, NULL, 0, local, offsetof(__typeof__(fenced), flag), remote,
		offsetof(__typeof__(fenced), flag), 8, CONTEXT(99),
		CCI_FLAG_WRITE | CCI_FLAG_FENCE));
	for (unsigned k = 0; k < BLOCKS; k++)
		OK(cci_rma(s.conn, NULL, 0, local,
			offsetof(__typeof__(fenced), later) + k * BLOCK, remote,
			offsetof(__typeof__(fenced), later) + k * BLOCK, BLOCK,
			CONTEXT(k), CCI_FLAG_WRITE));
	for (unsigned k = 0; k < 2 * BLOCKS + 1; k++)
		TAKE(s.ep, CCI_EVENT_SEND);
}

static void see_fenced(uint64_t i)
{
	POLL(fenced.flag == i);
	CHECK_ALL(fenced.bytes, sizeof fenced.bytes, (unsigned char)(i & 0xff));
}

STATEMENT(109, fence, 2, 0)
{
	for (cci_conn_attribute_t a = CCI_CONN_ATTR_RO; a <= CCI_CONN_ATTR_RU; a++) {
		struct side s = meet(a);
		fenced.flag = 0;
		set_word(5, 0);
		cci_rma_handle_t *h =
			region(s.ep, &fenced, sizeof fenced, CCI_FLAG_WRITE);
		handle remote = handle_of_server(0, h);
		for (uint64_t i = 1; i <= many(2000); i++) {
			if (me.is_client) {
				write_fenced(s, h, &remote, i);
				await_word(5, i);
			} else {
				see_fenced(i);
				set_word(5, i);
			}
		}
		barrier();
	}
}

STATEMENT(110, fence_and_messages, 2, WEAK)
{
	struct plain p = plain_with(CCI_CONN_ATTR_RU, CCI_FLAG_WRITE);
	static unsigned char large[32 * MIB];
	cci_rma_handle_t *h = region(p.s.ep, large, sizeof large, CCI_FLAG_WRITE);
	handle remote = handle_of_server(1, h);
	if (me.is_server) {
		TAKE(p.s.ep, CCI_EVENT_RECV);
		return;
	}
	OK(cci_rma(p.s.conn, NULL, 0, h, 0, &remote, 0, sizeof large, CONTEXT(1),
		CCI_FLAG_WRITE));
	OK(cci_rma(p.s.conn, NULL, 0, p.local, 0, &p.remote, 0, 8, CONTEXT(2),
		CCI_FLAG_WRITE | CCI_FLAG_FENCE));
	OK(cci_send(p.s.conn, "x", 1, CONTEXT(3), 0));
	bool first = true;
	for (unsigned i = 0; i < 3; i++) {
		cci_event_t *event = EXPECT(p.s.ep, CCI_EVENT_SEND);
		CHECK(!first || event->send.context == CONTEXT(3));
		first = false;
		RETURN(event);
	}
}

STATEMENT(111, blocking_and_silent, 2, 0)
{
	struct plain p = plain_with(CCI_CONN_ATTR_RO, CCI_FLAG_READ | CCI_FLAG_WRITE);
	if (me.is_client) {
		for (unsigned i = 0; i < 20; i++) {
			uint32_t length = i % 2 ? 100 : LENGTH;
			fill(local_bytes, LENGTH, i);
			/* behind the silent one, which may be under way */
			OK(cci_rma(p.s.conn, NULL, 0, p.local, 0, &p.remote, 0, length,
				NULL,
				CCI_FLAG_WRITE | CCI_FLAG_BLOCKING | CCI_FLAG_FENCE));
			memset(local_bytes, 0, LENGTH);
			OK(cci_rma(p.s.conn, NULL, 0, p.local, 0, &p.remote, 0, length,
				NULL, CCI_FLAG_READ | CCI_FLAG_BLOCKING));
			CHECK_BYTES(local_bytes, length, i);
			OK(cci_rma(p.s.conn, "s", 1, p.local, 0, &p.remote, 0, length,
				NULL, CCI_FLAG_WRITE | CCI_FLAG_SILENT));
		}
		OK(cci_send(p.s.conn, "end", 3, CONTEXT(9), 0));
		SENT(p.s.ep, CONTEXT(9));
		handle wrong = p.remote;
		wrong.stuff[0] ^= 1u << 30;
		CHECK_RC(cci_rma(p.s.conn, NULL, 0, p.local, 0, &wrong, 0, 8, NULL,
				 CCI_FLAG_WRITE | CCI_FLAG_BLOCKING),
			CCI_ERR_RMA_HANDLE);
	} else {
		for (unsigned i = 0; i < 21; i++)
			TAKE(p.s.ep, CCI_EVENT_RECV);
	}
	barrier();
	SILENCE(p.s.ep, 5);
}

STATEMENT(112, message_of_a_failed_one, 2, 0)
{
	for (cci_conn_attribute_t a = CCI_CONN_ATTR_RO; a <= CCI_CONN_ATTR_RU; a++) {
		struct plain p = plain_with(a, CCI_FLAG_READ);
		for (uint32_t n = 8; n <= LENGTH && me.is_client; n *= 8) {
			OK(cci_rma(p.s.conn, "never", 5, p.local, 0, &p.remote, 0, n,
				CONTEXT(n), CCI_FLAG_WRITE));
			RETURN(EXPECT_STATUS(p.s.ep, CCI_EVENT_SEND, CCI_ERR_RMA_HANDLE));
		}
		if (me.is_client)
			OK(cci_send(p.s.conn, "end", 3, NULL, CCI_FLAG_BLOCKING));
		if (me.is_server)
			check_letter(p.s.ep, 'e', 3);
		barrier();
		SILENCE(p.s.ep, 5);
	}
}

/* ---- deregistration in the middle ---- */

static void deregister_early(bool at_target)
{
	size_t length = huge();
	unsigned char *bytes = memory(length);
	struct side s = meet(CCI_CONN_ATTR_RO);
	cci_rma_handle_t *h = region(s.ep, bytes, length, CCI_FLAG_WRITE);
	memset(bytes, me.is_client ? 0x22 : 0, length);
	handle remote = handle_of_server(0, h);
	_Atomic unsigned char *seen = (_Atomic unsigned char *)bytes;
	if (me.is_client) {
		OK(cci_rma(s.conn, "never", 5, h, 0, &remote, 0, length, CONTEXT(1),
			CCI_FLAG_WRITE));
		if (!at_target) {
			await_word(0, 1);
			OK(cci_rma_deregister(s.ep, h));
			memset(bytes, 0x33, length);
		}
		cci_event_t *event = NEXT(s.ep);
		CHECK(event->type == CCI_EVENT_SEND);
		set_word(1, event->send.status == CCI_SUCCESS ? 1 : 2);
		if (event->send.status != CCI_SUCCESS && at_target)
			CHECK_EQ(event->send.status, CCI_ERR_RMA_HANDLE);
		RETURN(event);
		barrier();
		OK(cci_send(s.conn, "works", 5, NULL, CCI_FLAG_BLOCKING));
		return;
	}
	POLL(seen[0] || seen[length / 2] || seen[length - 1]);
	set_word(0, 1);
	if (at_target) {
		struct patience p = patience_begin();
		OK(cci_rma_deregister(s.ep, h));
		CHECK(!patience_is_over(&p));
		uint64_t sum = 0, again = 0;
		for (size_t i = 0; i < length; i += 64)
			sum += bytes[i];
		await_word(1, 1);
		for (size_t i = 0; i < length; i += 64)
			again += bytes[i];
		CHECK_EQ(again, sum);
	}
	await_word(1, 1);
	for (size_t i = 0; i < length && !at_target; i += 64)
		CHECK(bytes[i] == 0 || bytes[i] == 0x22);
	barrier();
	cci_event_t *event = EXPECT(s.ep, CCI_EVENT_RECV);
	if (word(1) == 1) { /* it was complete before: both messages come */
		CHECK_EQ(((const char *)event->recv.ptr)[0], 'n');
		RETURN(event);
		event = EXPECT(s.ep, CCI_EVENT_RECV);
	}
	CHECK_EQ(((const char *)event->recv.ptr)[0], 'w');
	RETURN(event);
}

/* Let the other process read this region, or write from it, for a while; deregister it,
 * and change its bytes. */
static void deregister_soon(struct side s, cci_rma_handle_t *h, unsigned char *bytes,
	size_t length, unsigned us)
{
	cci_event_t *event;
	for (uint64_t until = now_ns() + us * 1000; me.is_server && now_ns() < until;)
		CHECK_RC(cci_get_event(s.ep, &event), CCI_EAGAIN);
	OK(cci_rma_deregister(s.ep, h));
	memset(bytes, 0x33, length);
}

/* The client writes or reads 64 KiB, whose owner deregisters them at once. */
static void deregister_often(bool at_client)
{
	enum { OWNED = 65536 };
	unsigned char *bytes = memory(OWNED);
	struct side s = meet(CCI_CONN_ATTR_RU);
	bool owns = at_client == me.is_client;
	for (unsigned i = 0; i < many(1000); i++) {
		memset(bytes, owns ? 0x22 : 0, OWNED);
		cci_rma_handle_t *h = region(
			s.ep, bytes, OWNED, at_client ? CCI_FLAG_WRITE : CCI_FLAG_READ);
		handle remote = handle_of_server(0, h);
		if (me.is_client)
			OK(cci_rma(s.conn, NULL, 0, h, 0, &remote, 0, OWNED, CONTEXT(1),
				at_client ? CCI_FLAG_WRITE : CCI_FLAG_READ));
		if (owns)
			deregister_soon(s, h, bytes, OWNED, i % 32);
		if (me.is_client)
			RETURN(NEXT(s.ep));
		barrier();
		for (size_t k = 0; k < OWNED && !owns; k += 64)
			CHECK(bytes[k] == 0 || bytes[k] == 0x22);
		if (!owns)
			OK(cci_rma_deregister(s.ep, h));
	}
}

/* The server finds the request of a WRITE that has failed, and that of a later one.  A
 * long WRITE before them takes the first turns. */
static void fail_before_another(void)
{
	struct plain p = plain_with(CCI_CONN_ATTR_RU, CCI_FLAG_WRITE);
	cci_connection_t *other = meet_again(p.s.ep, uris_told() - 1, CCI_CONN_ATTR_RU);
	static unsigned char failing[LENGTH], large[8 * MIB];
	cci_rma_handle_t *l = region(p.s.ep, large, sizeof large, CCI_FLAG_WRITE);
	handle remote = handle_of_server(1, l);
	for (unsigned i = 0; i < 20; i++) {
		if (me.is_client) {
			memset(failing, 0x22, LENGTH);
			memset(local_bytes, 0x44, LENGTH);
			cci_rma_handle_t *h = region(p.s.ep, failing, LENGTH, 0);
			signal_rank(1, SIGSTOP);
			OK(cci_rma(other, NULL, 0, l, 0, &remote, 0, sizeof large, NULL,
				CCI_FLAG_WRITE | CCI_FLAG_SILENT));
			OK(cci_rma(p.s.conn, NULL, 0, h, 0, &p.remote, 0, LENGTH,
				CONTEXT(1), CCI_FLAG_WRITE));
			OK(cci_rma_deregister(p.s.ep, h));
			RETURN(EXPECT_STATUS(p.s.ep, CCI_EVENT_SEND, CCI_ERR_RMA_HANDLE));
			OK(cci_rma(p.s.conn, NULL, 0, p.local, 0, &p.remote, 0, 100,
				CONTEXT(2), CCI_FLAG_WRITE | CCI_FLAG_FENCE));
			signal_rank(1, SIGCONT);
			SENT(p.s.ep, CONTEXT(2));
			OK(cci_send(p.s.conn, "see", 3, NULL, CCI_FLAG_BLOCKING));
		} else {
			check_letter(p.s.ep, 's', 3);
			SILENCE(p.s.ep, 1);
			CHECK_ALL(target, 100, 0x44);
		}
		barrier();
	}
}

/* A huge WRITE, whose target may die. */
struct mortal {
	struct side s;
	size_t length;
	cci_rma_handle_t *local;
	handle remote;
};

/* Prepare such a WRITE.  The server returns when it sees some of the bytes. */
static struct mortal mortal(void)
{
	struct mortal m = {.length = huge()};
	unsigned char *bytes = memory(m.length);
	m.s = meet(CCI_CONN_ATTR_RU);
	m.local = region(m.s.ep, bytes, m.length, CCI_FLAG_WRITE);
	memset(bytes, me.is_client ? 0x22 : 0, m.length);
	may_die(1);
	m.remote = handle_of_server(0, m.local);
	_Atomic unsigned char *seen = (_Atomic unsigned char *)bytes;
	if (me.is_server)
		POLL(seen[0] || seen[m.length / 2] || seen[m.length - 1]);
	return m;
}

/* A target that is stopped in the middle of a slice, or dead, holds up no one. */
static void deregister_while_stopped(void)
{
	struct mortal m = mortal();
	if (me.is_server) {
		set_word(2, 1);
		POLL(false);
	}
	OK(cci_rma(m.s.conn, NULL, 0, m.local, 0, &m.remote, 0, m.length, CONTEXT(1),
		CCI_FLAG_WRITE));
	await_word(2, 1);
	signal_rank(1, SIGSTOP);
	struct patience p = patience_begin();
	OK(cci_rma_deregister(m.s.ep, m.local));
	RETURN(NEXT(m.s.ep));
	CHECK(!patience_is_over(&p));
	signal_rank(1, SIGKILL);
}

STATEMENT(113, deregister_at_the_target, 2, 0)
{
	deregister_early(true);
	deregister_often(false);
}

STATEMENT(114, deregister_at_the_initiator, 2, 0)
{
	deregister_early(false);
	deregister_often(true);
	fail_before_another();
	deregister_while_stopped();
}

/* ---- several threads ---- */

enum { THREADS = 8, EACH = 64 };

static struct plain shared_plain;
static _Atomic unsigned char done[THREADS * EACH];
static _Atomic unsigned done_n;
static unsigned char sources[THREADS][LENGTH];
static cci_rma_handle_t *locals[THREADS];

static void write_some(void *argument)
{
	unsigned t = (unsigned)(uintptr_t)argument, part = LENGTH / THREADS, begun = 0;
	struct patience p = patience_begin();
	while (done_n < THREADS * EACH) {
		cci_event_t *event;
		look_at(__FILE__, __LINE__, &p, "all RMAs");
		if (begun < EACH) {
			uint32_t length = 1 + (uint32_t)(mix(t * EACH + begun) % part);
			int rc = cci_rma(shared_plain.s.conn, NULL, 0, locals[t],
				t * part, &shared_plain.remote, t * part, length,
				CONTEXT(t * EACH + begun), CCI_FLAG_WRITE);
			CHECK(rc == CCI_SUCCESS || rc == CCI_ENOBUFS);
			begun += rc == CCI_SUCCESS;
		}
		if (cci_get_event(shared_plain.s.ep, &event) != CCI_SUCCESS)
			continue;
		uintptr_t at = (uintptr_t)event->send.context;
		CHECK(event->type == CCI_EVENT_SEND && at < THREADS * EACH);
		CHECK_EQ(event->send.status, CCI_SUCCESS);
		CHECK_EQ(done[at]++, 0);
		RETURN(event);
		done_n++;
	}
}

STATEMENT(115, many_threads, 2, 0)
{
	shared_plain = plain_with(CCI_CONN_ATTR_RU, CCI_FLAG_WRITE);
	struct thread *threads[THREADS];
	for (unsigned i = 0; i < THREADS && me.is_client; i++) {
		fill(sources[i], LENGTH, 115);
		locals[i] = region(shared_plain.s.ep, sources[i], LENGTH, 0);
	}
	for (unsigned i = 0; i < THREADS && me.is_client; i++)
		threads[i] = thread_start(write_some, (void *)(uintptr_t)i);
	for (unsigned i = 0; i < THREADS && me.is_client; i++)
		thread_join(threads[i]);
	barrier();
	for (unsigned i = 0; i < LENGTH && me.is_server; i++)
		CHECK(target[i] == 0x11 || target[i] == pattern(115)[i]);
	SILENCE(shared_plain.s.ep, 2);
}

/* ---- registration ---- */

STATEMENT(116, registrations, 1, 0)
{
	enum { LIVE = 10000 };
	struct both two = both(CCI_CONN_ATTR_RO);
	static unsigned char bytes[LENGTH], source[LENGTH];
	cci_rma_handle_t **h = calloc(LIVE, sizeof *h), *local;
	CHECK(h);
	local = region(two.a.ep, source, LENGTH, 0);
	for (unsigned i = 0; i < LIVE; i++)
		h[i] = region(i % 2 ? two.a.ep : two.b.ep, bytes + i % 100, LENGTH - 100,
			CCI_FLAG_WRITE);
	for (unsigned i = 0; i < LIVE; i += 2) {
		source[0] = (unsigned char)(i % 251);
		OK(cci_rma(two.a.conn, NULL, 0, local, 0, h[i], 0, 1, NULL,
			CCI_FLAG_WRITE | CCI_FLAG_BLOCKING));
		CHECK_EQ(bytes[i % 100], i % 251);
	}
	for (unsigned i = 0; i < LIVE; i++)
		OK(cci_rma_deregister(i % 2 ? two.a.ep : two.b.ep, h[i]));
	unsigned long before = leaks_now().kib;
	for (unsigned long i = 0; i < many(1000000); i++)
		OK(cci_rma_deregister(
			two.a.ep, region(two.a.ep, bytes, LENGTH, CCI_FLAG_READ)));
	CHECK(leaks_now().kib <= before + 256);
	free(h);
}

STATEMENT(117, register_nothing, 1, 0)
{
	static char bytes[8];
	cci_rma_handle_t *h;
	cci_endpoint_t *ep = first_endpoint();
	CHECK_RC(cci_rma_register(ep, bytes, 0, CCI_FLAG_READ, &h), CCI_EINVAL);
	CHECK_RC(cci_rma_register(ep, NULL, 8, CCI_FLAG_READ, &h), CCI_EINVAL);
	CHECK_RC(cci_rma_register(NULL, bytes, 8, CCI_FLAG_READ, &h), CCI_EINVAL);
	CHECK_RC(cci_rma_register(ep, bytes, 8, CCI_FLAG_READ, NULL), CCI_EINVAL);
}

/* ---- progress, death, order between connections ---- */

STATEMENT(118, bypass, 2, 0)
{
	struct plain p = plain_with(CCI_CONN_ATTR_RO, CCI_FLAG_READ | CCI_FLAG_WRITE);
	if (me.is_server) {
		while (!word(0)) /* no call of the library until all is done */
			compute_ms(1);
		CHECK_BYTES(target, LENGTH, 118);
		return;
	}
	fill(local_bytes, LENGTH, 118);
	for (int i = 0; i < 10; i++) {
		CHECK_EQ(write_all(&p), CCI_SUCCESS);
		CHECK_EQ(read_all(&p), CCI_SUCCESS);
		CHECK_EQ(rma(p.s, p.local, 0, &p.remote, 0, 8, CCI_FLAG_WRITE),
			CCI_SUCCESS);
	}
	set_word(0, 1);
}

/* Take an event of a write to a peer that dies; return true if the write has failed. */
static bool has_failed(struct side s, struct patience *p)
{
	cci_event_t *event;
	while (cci_get_event(s.ep, &event) != CCI_SUCCESS)
		CHECK(!patience_is_over(p));
	CHECK(event->type == CCI_EVENT_SEND);
	bool failed = event->send.status == CCI_ERR_DISCONNECTED;
	CHECK(failed || event->send.status == CCI_SUCCESS);
	RETURN(event);
	return failed;
}

/* Write until a write fails, however late the server sees the first bytes and dies.  The
 * writes that are under way then must end soon. */
static void write_to_the_dying(
	struct side s, cci_rma_handle_t *h, handle *remote, size_t length)
{
	enum { N = 16 };
	unsigned begun = 0, ended = 0;
	bool failed = false;
	int rc = CCI_SUCCESS;
	struct patience p = patience_times(2);
	while (!failed && rc == CCI_SUCCESS) {
		rc = cci_rma(s.conn, NULL, 0, h, 0, remote, 0, length, CONTEXT(begun),
			CCI_FLAG_WRITE);
		begun += rc == CCI_SUCCESS;
		for (; !failed && begun - ended == N; ended++)
			failed = has_failed(s, &p);
	}
	CHECK(begun > 0 && (rc == CCI_SUCCESS || rc == CCI_ERR_DISCONNECTED));
	await_end(1);
	p = patience_begin();
	for (; ended < begun; ended++)
		failed |= has_failed(s, &p);
	CHECK(failed || rc == CCI_ERR_DISCONNECTED);
}

STATEMENT(119, closed_and_dead_peers, 2, 0)
{
	struct plain p = plain_with(CCI_CONN_ATTR_RO, CCI_FLAG_READ | CCI_FLAG_WRITE);
	if (me.is_server)
		OK(cci_disconnect(p.s.conn));
	barrier();
	if (me.is_client) {
		CHECK_EQ(write_all(&p), CCI_ERR_DISCONNECTED);
		CHECK_RC(cci_rma(p.s.conn, NULL, 0, p.local, 0, &p.remote, 0, 8, NULL,
				 CCI_FLAG_READ),
			CCI_ERR_DISCONNECTED);
	}
	barrier();
	struct mortal m = mortal();
	if (me.is_server)
		(void)kill(getpid(), SIGKILL);
	write_to_the_dying(m.s, m.local, &m.remote, m.length);
}

/* Write, and send a message on another connection; return true if the message is done
 * first. */
static bool is_first(struct side s, cci_connection_t *other, cci_rma_handle_t *h,
	handle *remote, size_t length)
{
	OK(cci_rma(s.conn, NULL, 0, h, 0, remote, 0, length, CONTEXT(1), CCI_FLAG_WRITE));
	OK(cci_send(other, "12345678", 8, CONTEXT(2), 0));
	cci_event_t *event = EXPECT(s.ep, CCI_EVENT_SEND);
	bool first = event->send.context == CONTEXT(2);
	RETURN(event);
	SENT(s.ep, CONTEXT(first ? 1 : 2));
	return first;
}

STATEMENT(120, short_message_overtakes, 2, 0)
{
	size_t length = huge();
	unsigned char *bytes = memory(length);
	struct side s = meet(CCI_CONN_ATTR_RO);
	cci_connection_t *second = meet_again(s.ep, 0, CCI_CONN_ATTR_RO);
	cci_rma_handle_t *h = region(s.ep, bytes, length, CCI_FLAG_WRITE);
	memset(bytes, 0x22, length);
	handle remote = handle_of_server(0, h);
	/* A client that loses its CPU between both calls may find the write done, so the
	 * message has some chances. */
	enum { CHANCES = 20 };
	for (unsigned i = 0; i < CHANCES; i++) {
		if (me.is_server)
			TAKE(s.ep, CCI_EVENT_RECV);
		else
			set_word(i, is_first(s, second, h, &remote, length));
		barrier();
		if (word(i))
			return;
	}
	check_failed(__FILE__, __LINE__, "no message of %d overtakes a write", CHANCES);
}

/* Write from and to, and read back, memory of each kind. */
static void to_and_fro(struct side s, unsigned char *bytes, size_t length, bool touched)
{
	cci_rma_handle_t *h = region(s.ep, bytes, length, CCI_FLAG_READ | CCI_FLAG_WRITE);
	handle remote = handle_of_server(0, h);
	if (me.is_client && touched)
		fill(bytes, length, 121);
	if (me.is_client && !touched)
		CHECK_EQ(rma(s, h, 0, &remote, 0, length, CCI_FLAG_READ), CCI_SUCCESS);
	if (me.is_client) {
		CHECK_EQ(rma(s, h, 0, &remote, 0, length, CCI_FLAG_WRITE), CCI_SUCCESS);
		if (touched)
			memset(bytes, 0, length);
		CHECK_EQ(rma(s, h, 0, &remote, 0, length, CCI_FLAG_READ), CCI_SUCCESS);
	}
	barrier();
	if (touched)
		CHECK_BYTES(bytes, length, 121);
	else
		CHECK_ALL(bytes, length, 0);
	barrier();
	OK(cci_rma_deregister(s.ep, h));
}

STATEMENT(121, kinds_of_memory, 2, 0)
{
	static const size_t sizes[] = {100, 5000, 300000};
	struct side s = meet(CCI_CONN_ATTR_RO);
	unsigned char stack[300000];
	int most;
	CHECK(PtlInit(&most) == PTL_OK); /* for the shared heap */
	for (int i = 0; i < 3; i++) {
		unsigned char *heap = malloc(sizes[i]), *map = memory(sizes[i]),
			      *fresh = memory(sizes[i]);
		void *near = NULL;
		CHECK(heap);
		to_and_fro(s, stack, sizes[i], true);
		to_and_fro(s, heap, sizes[i], true);
		to_and_fro(s, map, sizes[i], true);
		to_and_fro(s, fresh, sizes[i], false);
		if (PtlXAlloc(sizes[i], &near) == PTL_OK) {
			to_and_fro(s, near, sizes[i], true);
			CHECK(PtlXFree(near) == PTL_OK);
		}
		free(heap);
	}
}
