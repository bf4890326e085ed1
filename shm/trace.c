/* SPDX-License-Identifier: BSD-3-Clause */
/* Trace regions: setting up, the hosts' ring, and reading by tools. */
#include "shm/trace.h"
#include "shm/seg.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

const char *const p3_trace_name[P3_TRACE_POINTS_N] = {
#define P3_X(id, name) [P3_TRACE_##id] = (name),
	P3_TRACE_POINTS(P3_X)
#undef P3_X
};

uint32_t p3_trace_clock(void)
{
#if defined(__x86_64__)
	/* the time stamp counter, if it runs at one pace in all states of the CPUs */
	unsigned a, b, c, d;
	if (__get_cpuid(0x80000007, &a, &b, &c, &d) && (d >> 8 & 1))
		return P3_TRACE_TSC;
#endif
	return P3_TRACE_MONOTONIC;
}

/* ---- setting up ---- */

struct trace_search {
	uintptr_t code;
	struct p3_trace_header *h;
};

static void trace_take_build_id(struct p3_trace_header *h, const char *note, uint64_t len)
{
	while (len > sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *n = (const void *)note;
		uint64_t name = sizeof *n, text = name + p3_round_up(n->n_namesz, 4);
		uint64_t all = text + p3_round_up(n->n_descsz, 4);
		if (all > len)
			return;
		if (n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4 &&
			!memcmp(note + name, "GNU", 4) &&
			n->n_descsz <= sizeof h->build) {
			h->build_len = n->n_descsz;
			memcpy(h->build, note + text, n->n_descsz);
		}
		note += all;
		len -= all;
	}
}

static int trace_take_object(struct dl_phdr_info *o, size_t size, void *arg)
{
	struct trace_search *s = arg;
	bool holds = false;
	(void)size;
	for (int i = 0; i < o->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &o->dlpi_phdr[i];
		holds |= p->p_type == PT_LOAD &&
			 s->code - o->dlpi_addr - p->p_vaddr < p->p_memsz;
	}
	if (!holds)
		return 0;
	s->h->code = o->dlpi_addr;
	char *path = realpath(*o->dlpi_name ? o->dlpi_name : "/proc/self/exe", NULL);
	if (path && strlen(path) < sizeof s->h->object)
		strcpy(s->h->object, path);
	free(path);
	for (int i = 0; i < o->dlpi_phnum; i++)
		if (o->dlpi_phdr[i].p_type == PT_NOTE)
			trace_take_build_id(s->h,
				(const char *)(o->dlpi_addr + o->dlpi_phdr[i].p_vaddr),
				o->dlpi_phdr[i].p_memsz);
	return 1;
}

void p3_trace_format(
	void *region, uint32_t records, const struct p3_trace_who *who, const void *code)
{
	struct p3_trace_header *h = region;
	struct trace_search s = {(uintptr_t)code, h};
	h->version = P3_TRACE_VERSION;
	h->node = who->node;
	h->nnodes = who->nnodes;
	h->nid = who->nid;
	h->incarnation = who->incarnation;
	h->os_pid = (uint32_t)getpid();
	h->clock = p3_trace_clock();
	h->records = records;
	h->ns = p3_trace_ticks(P3_TRACE_MONOTONIC);
	h->ticks = p3_trace_ticks(h->clock);
	strncpy(h->program, program_invocation_short_name, sizeof h->program - 1);
	(void)dl_iterate_phdr(trace_take_object, &s);
	h->magic = P3_TRACE_MAGIC;
}

/* ---- writing ---- */

uint64_t p3_trace_write_shared(struct p3_trace_header *h, struct p3_trace_record *ring,
	uint32_t mask, const uint64_t w[4])
{
	uint64_t i = p3_add64(&h->head[P3_TRACE_HOST], 1);
	struct p3_trace_record *r = &ring[i & mask];
	uint64_t was = p3_get(&r->w[2]);
	if ((was & 1) ||
		!p3_cas64(&r->w[2], &was, p3_trace_state(i) - 1u)) { /* TRACE.3 */
		(void)p3_add64(&h->lost, 1);
		return UINT64_MAX;
	}
	p3_trace_fill(r, w, i);
	return i;
}

/* ---- reading ---- */

static bool trace_read_record(
	const struct p3_trace_record *r, uint64_t i, struct p3_trace_entry *e)
{
	uint64_t w[4];
	w[2] = p3_acquire(&r->w[2]); /* TRACE.1 */
	for (int k = 0; k < 4; k++)
		if (k != 2)
			w[k] = p3_acquire(&r->w[k]); /* TRACE.2 */
	if ((uint32_t)w[2] != p3_trace_state(i) || p3_get(&r->w[2]) != w[2])
		return false;
	*e = (struct p3_trace_entry){.ticks = w[0],
		.detail = w[3],
		.code = (uint32_t)(w[1] >> 32),
		.which = (uint32_t)(w[2] >> 32),
		.number = (uint32_t)i,
		.peer = w[1] & P3_TRACE_NOBODY,
		.point = (uint8_t)(w[1] >> 24),
		.value = (uint8_t)(w[1] >> 16),
		.in = (w[1] & P3_TRACE_IN) != 0};
	return true;
}

static void trace_read_ring(struct p3_trace_taken *t, const char *region,
	const struct p3_trace_header *live, enum p3_trace_ring ring)
{
	uint32_t n = p3_trace_records(t->header.records, ring);
	struct p3_trace_record *r = p3_trace_at(region, t->header.records, ring);
	uint64_t head = p3_acquire(&live->head[ring]); /* TRACE.1 */
	t->written[ring] = head;
	for (uint64_t i = head > n ? head - n : 0; i < head; i++) {
		struct p3_trace_entry *e = &t->entry[t->n];
		if (!trace_read_record(&r[i & (n - 1)], i, e))
			continue;
		e->ring = (uint8_t)ring;
		e->node = (uint16_t)t->header.node;
		t->n++;
	}
}

static bool trace_is_sound(const struct p3_trace_header *h, uint64_t len)
{
	return h->magic == P3_TRACE_MAGIC && h->version == P3_TRACE_VERSION &&
	       h->records >= P3_TRACE_LEAST && h->records <= P3_TRACE_MOST &&
	       !(h->records & (h->records - 1)) && p3_trace_len(h->records) <= len &&
	       h->node < h->nnodes && h->nnodes <= P3_MAX_NODES &&
	       h->build_len <= sizeof h->build;
}

void p3_trace_printable(char *text, size_t size)
{
	text[size - 1] = '\0';
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

struct p3_trace_taken *p3_trace_read(const void *region, uint64_t len)
{
	struct p3_trace_header h;
	errno = EPROTO;
	if (len < P3_PAGE)
		return NULL;
	memcpy(&h, region, offsetof(struct p3_trace_header, head)); /* never changes */
	if (!trace_is_sound(&h, len))
		return NULL;
	p3_trace_printable(h.object, sizeof h.object);
	p3_trace_printable(h.program, sizeof h.program);
	size_t most = h.records + h.records / 2;
	struct p3_trace_taken *t =
		calloc(1, sizeof *t + most * sizeof(struct p3_trace_entry));
	if (!t)
		return NULL;
	memcpy(&t->header, &h, offsetof(struct p3_trace_header, head));
	trace_read_ring(t, region, region, P3_TRACE_FW);
	trace_read_ring(t, region, region, P3_TRACE_HOST);
	t->lost = p3_get(&((const struct p3_trace_header *)region)->lost);
	return t;
}

struct p3_trace_taken *p3_trace_find(p3_trace_bytes *bytes, void *arg)
{
	const volatile struct p3_seg_header *s = bytes(arg, 0, sizeof *s);
	uint32_t nnodes = s ? s->nnodes : 0;
	errno = EPROTO;
	if (!nnodes || nnodes > P3_MAX_NODES || s->magic != P3_SEG_MAGIC)
		return NULL;
	uint64_t off = p3_layout_of(nnodes).seg_len;
	const volatile struct p3_trace_header *h = bytes(arg, off, P3_PAGE);
	uint32_t records = h ? h->records : 0;
	uint64_t len = records <= P3_TRACE_MOST ? p3_trace_len(records) : 0;
	errno = h ? EPROTO : ENODATA;
	const void *region = len ? bytes(arg, off, len) : NULL;
	return region ? p3_trace_read(region, len) : NULL;
}

uint32_t p3_trace_nodes(int published)
{
	struct p3_seg_header h;
	/* A descriptor from another process may be any file. */
	int seals = fcntl(published, F_GET_SEALS);
	if (seals < 0 || !(seals & F_SEAL_SHRINK) ||
		pread(published, &h, sizeof h, 0) != sizeof h)
		return 0;
	bool is_one = h.magic == P3_SEG_MAGIC && h.layout == P3_LAYOUT_WORD &&
		      h.nnodes <= P3_MAX_NODES;
	return is_one ? h.nnodes : 0;
}
