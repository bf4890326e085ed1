/* SPDX-License-Identifier: BSD-3-Clause */
/* Benchmarks' start and end, memory, descriptors and events. */
#include "bench.h"
#include "cpus.h"

#include <portals3_runtime.h>
#include <portals3x.h>

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { PORTAL_GATHER = 60 };

/* ---- start and end ---- */

void bench_barrier(void)
{
	BENCH_DO(PtlXBarrier);
}

void bench_leave(int status)
{
	fflush(stdout);
	(void)PtlXBarrier(); /* leave also if a rank is gone */
	PtlFini();
	exit(status);
}

void bench_start(struct bench *b)
{
	int most, rc;
	bench_name_errors(b->program, 0);
	BENCH_DO(PtlInit, &most);
	rc = PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, b->desired, NULL, &b->ni);
	bench_check(rc, "PtlNIInit");
	if (PtlGetRank(b->ni, &b->rank, &b->size) != PTL_OK)
		b->rank = 0, b->size = 1;
	bench_name_errors(b->program, b->rank);
	struct cpus cpus;
	if (!cpus_read(&cpus))
		bench_die(1, "the CPUs cannot be asked for: %s", strerror(errno));
	b->ncpus = cpus_count(&cpus);
	b->cpu = bench_allocate(b->size * sizeof *b->cpu);
	for (unsigned i = 0; i < b->size; i++)
		b->cpu[i] = cpus_nth(&cpus, i);
}

void bench_refuse(const struct bench *b, const char *fmt, ...)
{
	char line[500];
	va_list args;
	va_start(args, fmt);
	vsnprintf(line, sizeof line, fmt, args);
	va_end(args);
	if (b->rank == 0)
		fprintf(stderr, "%s: %s\n", b->program, line);
	bench_leave(2);
}

void bench_want_ranks(const struct bench *b, unsigned least, unsigned most)
{
	if (b->size < least || b->size > most)
		bench_refuse(b, "%u rank%s; expected %u%s; use yod -sz %u", b->size,
			b->size == 1 ? "" : "s", least, most > least ? " or more" : "",
			least);
}

void bench_begin(struct bench *b)
{
	if (!b->no_pin && !cpus_pin(b->cpu[b->rank]))
		fprintf(stderr,
			"%s: rank %u cannot be pinned to CPU %d: %s; use --no-pin\n",
			b->program, b->rank, b->cpu[b->rank], strerror(errno));
	bench_barrier();
	if (b->rank == 0)
		bench_report_begin(b); /* other ranks sleep in the barrier */
	bench_barrier();
}

int bench_end(struct bench *b)
{
	bool ok = true;
	uint64_t sum = 0, *all = bench_allocate(b->size * sizeof *all);
	bench_gather(b, &b->errors, sizeof b->errors, all);
	for (unsigned i = 0; i < b->size; i++)
		sum += all[i];
	free(all);
	if (b->rank == 0) {
		b->errors = sum;
		ok = bench_report_end(b);
	}
	free(b->cpu);
	return b->errors || !ok;
}

void bench_finish(struct bench *b)
{
	bench_leave(bench_end(b));
}

/* ---- memory and descriptors ---- */

static void *cleared(void *p, uint64_t length)
{
	if (!p)
		bench_die(1,
			"no memory for %" PRIu64 " bytes of buffers; expected that they "
			"fit; use smaller sizes or fewer ranks",
			length);
	return memset(p, 0, length);
}

void *bench_allocate(uint64_t length)
{
	uint64_t whole = (length + 4095) / 4096 * 4096;
	return cleared(aligned_alloc(4096, whole ? whole : 4096), length);
}

/* Allocate page-aligned memory; blocks of PtlXAlloc are aligned to a cache line. */
void *bench_allocate_shared(uint64_t length)
{
	void *block;
	if (PtlXAlloc(length + 4096, &block) != PTL_OK)
		return cleared(NULL, length);
	return cleared((void *)(((uintptr_t)block + 4095) / 4096 * 4096), length);
}

ptl_process_id_t bench_id(const struct bench *b, unsigned rank)
{
	ptl_process_id_t id;
	if (b->size == 1)
		BENCH_DO(PtlGetId, b->ni, &id);
	else
		BENCH_DO(PtlGetRankId, b->ni, rank, &id);
	return id;
}

ptl_handle_eq_t bench_queue(const struct bench *b, uint64_t count)
{
	ptl_handle_eq_t eq;
	BENCH_DO(PtlEQAlloc, b->ni, count, PTL_EQ_HANDLER_NONE, &eq);
	return eq;
}

ptl_handle_md_t bench_bind(
	const struct bench *b, void *start, uint64_t length, ptl_handle_eq_t eq)
{
	ptl_handle_md_t md;
	int rc = PtlMDBind(b->ni, bench_region(b, start, length, 0, eq), PTL_RETAIN, &md);
	bench_check(rc, "PtlMDBind");
	return md;
}

ptl_handle_me_t bench_post(const struct bench *b, ptl_pt_index_t portal,
	ptl_match_bits_t bits, unsigned op, void *start, uint64_t length,
	ptl_handle_eq_t eq)
{
	ptl_handle_me_t me;
	ptl_process_id_t anyone = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_md_t md = bench_region(b, start, length, op | PTL_MD_MANAGE_REMOTE, eq);
	BENCH_DO(PtlMEAttach, b->ni, portal, anyone, bits, 0, PTL_UNLINK, PTL_INS_AFTER,
		&me);
	BENCH_DO(PtlMDAttach, me, md, PTL_RETAIN, NULL);
	return me;
}

void bench_gather(const struct bench *b, const void *mine, uint64_t length, void *all)
{
	struct bench_watch w = {
		.eq = bench_queue(b, b->size + 8), .may_lose = BENCH_LOSE_NONE};
	if (b->rank) {
		bench_barrier();
		ptl_handle_md_t md = bench_bind(b, (void *)(uintptr_t)mine, length, w.eq);
		BENCH_DO(PtlPut, md, PTL_NO_ACK_REQ, bench_id(b, 0), PORTAL_GATHER, 0,
			BENCH_BITS, b->rank * length, 0);
		bench_await(&w, PTL_EVENT_SEND_END, 1);
		BENCH_DO(PtlMDUnlink, md);
	} else {
		ptl_handle_me_t me = bench_post(b, PORTAL_GATHER, BENCH_BITS,
			PTL_MD_OP_PUT, all, b->size * length, w.eq);
		bench_barrier();
		memcpy(all, mine, length);
		bench_await(&w, PTL_EVENT_PUT_END, b->size - 1);
		BENCH_DO(PtlMEUnlink, me);
	}
	BENCH_DO(PtlEQFree, w.eq);
}

/* ---- events ---- */

void bench_watch_reset(struct bench_watch *w, int may_lose)
{
	memset(w->seen, 0, sizeof w->seen);
	w->may_lose = may_lose;
}

void bench_expect(struct bench *b, struct bench_watch *w, const char *test,
	ptl_event_kind_t kind, uint64_t count)
{
	if (w->may_lose == BENCH_LOSE_NONE)
		while (bench_try(w))
			;
	if (w->seen[kind] != count)
		bench_wrong(b,
			"%s: %" PRIu64 " events %s; expected %" PRIu64
			"; the library loses or invents events",
			test, w->seen[kind], PtlEventKindStr(kind), count);
}
