/* SPDX-License-Identifier: BSD-3-Clause */
/* The common functions of the programs of tests/mp. */
#include "mp.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct mp mp;
unsigned char *mp_pattern;
char mp_note[80];

void mp_fail(const char *where, int line, const char *format, ...)
{
	char text[400];
	const char *name = strrchr(where, '/');
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	fprintf(stderr, "rank %u: %s:%d: %s%s%s\n", mp.rank, name ? name + 1 : where,
		line, text, *mp_note ? "; " : "", mp_note);
	exit(1);
}

/* ---- life ---- */

/* Each piece of the bytes grows by 7 from byte to byte, so it is somewhere in these. */
enum { PIECE = 256, INVERSE_OF_7 = 183 };
static unsigned char sevens[2 * PIECE];

__attribute__((constructor)) static void make_sevens(void)
{
	for (unsigned i = 0; i < sizeof sevens; i++)
		sevens[i] = (unsigned char)(i * 7);
}

static const unsigned char *piece(unsigned seed, size_t i)
{
	return sevens + (seed * 31 + (i >> 9)) * INVERSE_OF_7 % PIECE;
}

static size_t rest_of_piece(size_t i, size_t n)
{
	return n - i < PIECE ? n - i : PIECE;
}

void mp_fill(unsigned char *at, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i += PIECE)
		memcpy(at + i, piece(seed, i), rest_of_piece(i, n));
}

void mp_compare(const unsigned char *at, size_t n, unsigned seed, const char *what)
{
	for (size_t i = 0; i < n; i += PIECE)
		for (size_t k = 0; memcmp(at + i, piece(seed, i), rest_of_piece(i, n));
			k++)
			mp_check(at[i + k] == piece(seed, i)[k], "%s: byte %zu is %u",
				what, i + k, at[i + k]);
}

uint64_t mp_mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ull;
	return x ^ x >> 33;
}

static void make_pattern(void)
{
	uint64_t *words = malloc(MP_PATTERN);
	mp_check(words, "no memory");
	for (size_t i = 0; i < MP_PATTERN / sizeof *words; i++)
		words[i] = mp_mix(i + 1);
	mp_pattern = (unsigned char *)words;
}

void mp_start(void)
{
	int most;
	mp_ok(PtlInit(&most));
	mp_ok(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &mp.ni));
	mp_ok(PtlGetRank(mp.ni, &mp.rank, &mp.size));
	mp_check(mp.size <= MP_MOST, "%u ranks are too many", mp.size);
	for (unsigned i = 0; i < mp.size; i++)
		mp_ok(PtlGetRankId(mp.ni, i, &mp.id[i]));
	make_pattern();
}

void mp_barrier(void)
{
	mp_ok(PtlXBarrier());
}

void mp_end(void)
{
	ptlx_stats_t st = {.struct_size = sizeof st};
	mp_ok(PtlXStats(mp.ni, &st));
	mp_check(st.bad_headers == 0, "%llu bad headers",
		(unsigned long long)st.bad_headers);
	mp_barrier();
	PtlFini();
	free(mp_pattern);
}

/* ---- objects ---- */

static unsigned md_options(unsigned options)
{
	return options & MP_STARTS ? options & ~MP_STARTS
				   : options | PTL_MD_EVENT_START_DISABLE;
}

ptl_handle_eq_t mp_queue(ptl_size_t events)
{
	ptl_handle_eq_t eq;
	mp_ok(PtlEQAlloc(mp.ni, events, PTL_EQ_HANDLER_NONE, &eq));
	return eq;
}

ptl_md_t mp_region(void *start, ptl_size_t length, unsigned options, ptl_handle_eq_t eq)
{
	return (ptl_md_t){.start = start,
		.length = length,
		.threshold = PTL_MD_THRESH_INF,
		.options = options,
		.eq_handle = eq};
}

ptl_handle_md_t mp_bind(
	void *start, ptl_size_t length, ptl_handle_eq_t eq, unsigned options)
{
	ptl_handle_md_t handle;
	mp_ok(PtlMDBind(mp.ni, mp_region(start, length, md_options(options), eq),
		PTL_RETAIN, &handle));
	return handle;
}

ptl_handle_md_t mp_attach(ptl_match_bits_t bits, void *start, ptl_size_t length,
	unsigned options, ptl_handle_eq_t eq)
{
	ptl_process_id_t anyone = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_handle_me_t me;
	ptl_handle_md_t handle;
	mp_ok(PtlMEAttach(
		mp.ni, MP_PORTAL, anyone, bits, 0, PTL_RETAIN, PTL_INS_AFTER, &me));
	mp_ok(PtlMDAttach(me, mp_region(start, length, md_options(options), eq),
		PTL_RETAIN, &handle));
	return handle;
}

ptl_event_t mp_next(ptl_handle_eq_t eq)
{
	ptl_event_t ev;
	mp_ok(PtlEQWait(eq, &ev));
	return ev;
}

ptl_event_t mp_expect(ptl_handle_eq_t eq, ptl_event_kind_t type)
{
	ptl_event_t ev = mp_next(eq);
	mp_check(ev.type == type, "%s came, not %s", PtlEventKindStr(ev.type),
		PtlEventKindStr(type));
	mp_check(ev.ni_fail_type == PTL_NI_OK, "%s failed", PtlEventKindStr(type));
	return ev;
}

bool mp_next_within(ptl_handle_eq_t eq, unsigned ms, ptl_event_t *ev)
{
	int which, rc;
	mp_keeps_errno(rc, PtlEQPoll(&eq, 1, ms, ev, &which));
	if (rc == PTL_EQ_EMPTY)
		return false;
	mp_check(rc == PTL_OK, "%s before a %s of %llu, sequence %u",
		PtlErrorStr((unsigned)rc), PtlEventKindStr(ev->type),
		(unsigned long long)ev->match_bits, ev->sequence);
	return true;
}

bool mp_next_soon(ptl_handle_eq_t eq, ptl_event_t *ev)
{
	struct patience p = patience_begin();
	while (!mp_next_within(eq, 100, ev))
		if (patience_is_over(&p))
			return false;
	return true;
}

bool mp_poll(ptl_handle_eq_t eq, ptl_event_t *ev)
{
	int rc;
	mp_keeps_errno(rc, PtlEQGet(eq, ev));
	if (rc == PTL_EQ_EMPTY)
		return false;
	mp_ok(rc);
	return true;
}

void mp_put(ptl_handle_md_t md, ptl_size_t offset, ptl_size_t length, ptl_ack_req_t ack,
	unsigned rank, ptl_match_bits_t bits, ptl_size_t remote, ptl_hdr_data_t hdr)
{
	int rc;
	do
		mp_keeps_errno(rc, PtlPutRegion(md, offset, length, ack, mp.id[rank],
					   MP_PORTAL, 0, bits, remote, hdr));
	while (rc == PTL_NO_SPACE);
	mp_ok(rc);
}

void mp_get(ptl_handle_md_t md, ptl_size_t offset, ptl_size_t length, unsigned rank,
	ptl_match_bits_t bits, ptl_size_t remote)
{
	int rc;
	do
		mp_keeps_errno(rc, PtlGetRegion(md, offset, length, mp.id[rank],
					   MP_PORTAL, 0, bits, remote));
	while (rc == PTL_NO_SPACE);
	mp_ok(rc);
}

/* ---- data ---- */

ptl_size_t mp_cut(unsigned from, unsigned to, uint64_t seq)
{
	uint64_t where = mp_mix(seq << 20 | (uint64_t)from << 10 | to);
	return where % (MP_PATTERN - MP_LONGEST);
}

bool mp_same(const void *got, unsigned from, unsigned to, uint64_t seq, ptl_size_t length)
{
	return memcmp(got, mp_pattern + mp_cut(from, to, seq), length) == 0;
}

/* ---- time ---- */

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

uint64_t mp_median(uint64_t *ns, size_t n)
{
	qsort(ns, n, sizeof *ns, ascending);
	return ns[n / 2];
}

uint64_t mp_percentile(const uint64_t *sorted, size_t n, double p)
{
	size_t at = (size_t)((double)n * p / 100);
	return sorted[at < n ? at : n - 1];
}

void mp_pin(unsigned nth)
{
	cpu_set_t may[8], one[8]; /* 8,192 CPUs: one set is too short for some kernels */
	mp_check(sched_getaffinity(0, sizeof may, may) == 0, "sched_getaffinity");
	nth %= (unsigned)CPU_COUNT_S(sizeof may, may);
	for (unsigned cpu = 0; cpu < 8 * CPU_SETSIZE; cpu++)
		if (CPU_ISSET_S(cpu, sizeof may, may) && nth-- == 0) {
			CPU_ZERO_S(sizeof one, one);
			CPU_SET_S(cpu, sizeof one, one);
			(void)sched_setaffinity(0, sizeof one, one);
			return;
		}
}
