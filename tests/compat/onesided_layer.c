/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts, gets and locks on a segment of each process. */
#include "onesided_layer.h"

#include <portals/portals3.h>

#include <cnos_mpi_os.h>

#include <sched.h>
#include <string.h>
#include <sys/mman.h>

enum { PORTAL = 12, CONTROL = 4096, FLAGS = 2048, ROUNDS = 16 };

/* The low half names the operation; the entry compares the high half. */
#define SEGMENT_BITS (0x0515ull << 32)
#define LOW_HALF     0xffffffffull

enum state { FREE, PUT, GET, COMPLETE };

struct operation {
	enum state state;
	ptl_handle_md_t own; /* PTL_INVALID_HANDLE: the segment's */
	ptl_size_t length;
};

static struct {
	ptl_handle_eq_t eq;
	ptl_handle_md_t segment; /* to send from and to receive into */
	char *bytes;
	struct operation operation[OS_OPERATIONS];
	unsigned next, under_way;
	ptl_handle_md_t swap_in, swap_out;
	uint64_t old, new;
	uint64_t barriers;
} os;

static void complete(struct operation *o)
{
	if (o->own != PTL_INVALID_HANDLE)
		DO(PtlMDUnlink(o->own));
	o->state = COMPLETE;
	os.under_way--;
}

static void event(const ptl_event_t *e)
{
	struct operation *o = &os.operation[e->match_bits & LOW_HALF];
	CHECK(e->ni_fail_type == PTL_NI_OK);
	if (e->type == PTL_EVENT_SEND_END)
		return; /* on some networks gets have it, too */
	CHECK(e->type == PTL_EVENT_ACK ? o->state == PUT
				       : e->type == PTL_EVENT_REPLY_END);
	CHECK(e->type == PTL_EVENT_ACK || o->state == GET);
	CHECK(e->mlength == o->length && e->rlength == o->length);
	complete(o);
}

static void progress(ptl_time_t patience)
{
	ptl_event_t e;
	int which, rc;
	while ((rc = PtlEQPoll(&os.eq, 1, patience, &e, &which)) == PTL_OK) {
		event(&e);
		patience = 0;
	}
	CHECK(rc == PTL_EQ_EMPTY);
}

static unsigned begin(enum state state, size_t length)
{
	while (os.operation[os.next].state == PUT || os.operation[os.next].state == GET)
		progress(100);
	unsigned n = os.next;
	os.next = (os.next + 1) % OS_OPERATIONS;
	os.operation[n] = (struct operation){state, PTL_INVALID_HANDLE, length};
	os.under_way++;
	return n;
}

/* Return a descriptor; threshold: SEND_END and ACK; or, for a get, REPLY and on some
 * networks SEND_END. */
static ptl_handle_md_t descriptor(
	const void *bytes, size_t length, struct operation *o, ptl_size_t *at)
{
	const char *b = bytes;
	if (b >= os.bytes && b + length <= os.bytes + OS_SEGMENT) {
		*at = (ptl_size_t)(b - os.bytes);
		return os.segment;
	}
	*at = 0;
	DO(PtlMDBind(job.ni,
		job_md((void *)bytes, length, 2, PTL_MD_EVENT_START_DISABLE, os.eq),
		PTL_RETAIN, &o->own));
	return o->own;
}

unsigned os_put_nb(int to, size_t offset, const void *bytes, size_t length)
{
	ptl_size_t at;
	unsigned n = begin(PUT, length);
	ptl_handle_md_t md = descriptor(bytes, length, &os.operation[n], &at);
	DO(PtlPutRegion(md, at, length, PTL_ACK_REQ, job.ids[to], PORTAL, 0,
		SEGMENT_BITS | n, offset, 0));
	return n;
}

unsigned os_get_nb(void *bytes, int from, size_t offset, size_t length)
{
	ptl_size_t at;
	unsigned n = begin(GET, length);
	ptl_handle_md_t md = descriptor(bytes, length, &os.operation[n], &at);
	DO(PtlGetRegion(
		md, at, length, job.ids[from], PORTAL, 0, SEGMENT_BITS | n, offset));
	return n;
}

bool os_test(unsigned n)
{
	if (os.operation[n].state != COMPLETE)
		progress(0);
	return os.operation[n].state == COMPLETE;
}

void os_wait(unsigned n)
{
	while (os.operation[n].state != COMPLETE)
		progress(100);
}

void os_fence(void)
{
	while (os.under_way > 0)
		progress(100);
}

void os_put(int to, size_t offset, const void *bytes, size_t length)
{
	os_wait(os_put_nb(to, offset, bytes, length));
}

void os_get(void *bytes, int from, size_t offset, size_t length)
{
	os_wait(os_get_nb(bytes, from, offset, length));
}

/* ---- locks ---- */

static uint64_t swap(int of, size_t offset, uint64_t word)
{
	unsigned n = begin(GET, sizeof word);
	os.new = word;
	DO(PtlGetPut(os.swap_in, os.swap_out, job.ids[of], PORTAL, 0, SEGMENT_BITS | n,
		offset, 0));
	os_wait(n);
	return os.old;
}

void os_lock(int of, unsigned which)
{
	while (swap(of, which * sizeof(uint64_t), (uint64_t)job.rank + 1) != 0)
		sched_yield();
}

void os_unlock(int of, unsigned which)
{
	CHECK(swap(of, which * sizeof(uint64_t), 0) != 0);
}

void os_accumulate(int to, size_t offset, const uint64_t *add, size_t words)
{
	uint64_t sum[512];
	CHECK(words <= 512);
	os_lock(to, 0);
	os_get(sum, to, offset, words * sizeof *sum);
	for (size_t i = 0; i < words; i++)
		sum[i] += add[i];
	os_put(to, offset, sum, words * sizeof *sum);
	os_unlock(to, 0);
}

/* ---- barrier ---- In round k each rank raises a flag of the rank 2^k behind, and
 * waits for its own. */

/* Load a word.  ThreadSanitizer does not see the order of these accesses: there is no
 * event; x86 keeps stores in order, and a rank that waits here makes no call. */
__attribute__((no_sanitize("thread"), noinline)) uint64_t os_word(size_t offset)
{
	return *(volatile uint64_t *)(os.bytes + offset);
}

void os_look(void *bytes, size_t offset, size_t length)
{
	for (size_t at = 0; at < length; at += sizeof(uint64_t)) {
		uint64_t word = os_word(offset + at);
		memcpy((char *)bytes + at, &word, length - at < 8 ? length - at : 8);
	}
}

static void wait_flag(unsigned round)
{
	while (os_word(FLAGS + round * sizeof(uint64_t)) < os.barriers)
		sched_yield();
}

void os_barrier(void)
{
	os_fence();
	os.barriers++;
	for (unsigned k = 0; 1 << k < job.size; k++) {
		os_put((job.rank + (1 << k)) % job.size, FLAGS + k * sizeof(uint64_t),
			&os.barriers, sizeof os.barriers);
		wait_flag(k);
	}
}

/* ---- begin and end ---- */

static void attach_segment(void)
{
	ptl_process_id_t anybody = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_handle_me_t me;
	ptl_md_t md = job_md(os.bytes, OS_SEGMENT, PTL_MD_THRESH_INF,
		PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE |
			PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE,
		PTL_EQ_NONE);
	DO(PtlMEAttach(job.ni, PORTAL, anybody, SEGMENT_BITS, LOW_HALF, PTL_RETAIN,
		PTL_INS_AFTER, &me));
	DO(PtlMDAttach(me, md, PTL_RETAIN, NULL));
}

static ptl_handle_md_t bind(void *bytes, size_t length)
{
	ptl_handle_md_t md;
	DO(PtlMDBind(job.ni,
		job_md(bytes, length, PTL_MD_THRESH_INF,
			PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_EVENT_START_DISABLE,
			os.eq),
		PTL_RETAIN, &md));
	return md;
}

char *os_begin(void)
{
	os.bytes = mmap(NULL, OS_SEGMENT, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(os.bytes != MAP_FAILED);
	DO(PtlEQAlloc(job.ni, 4 * OS_OPERATIONS, PTL_EQ_HANDLER_NONE, &os.eq));
	attach_segment();
	os.segment = bind(os.bytes, OS_SEGMENT);
	os.swap_in = bind(&os.old, sizeof os.old);
	os.swap_out = bind(&os.new, sizeof os.new);
	return os.bytes;
}

void os_end(void)
{
	os_fence();
	DO(PtlMDUnlink(os.segment));
	DO(PtlMDUnlink(os.swap_in));
	DO(PtlMDUnlink(os.swap_out));
	DO(PtlEQFree(os.eq));
}
