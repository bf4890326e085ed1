/* SPDX-License-Identifier: BSD-3-Clause */
/* Rings of records, reading them, and tracedump's results. */
#include <stddef.h>
#include <stdint.h>

#include "launcher/tracedump/tracedump.h"
#include "nic/proto/format.h"
#include "nic/state.h"
#include "shm/conf.h"
#include "shm/park.h"
#include "support/cases.h"
#include "support/random.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RECORDS = 64, HOSTS = RECORDS / 2 };

void p3_tool_say(const char *fmt, ...)
{
	(void)fmt;
}

/* ---- a region ---- */

static void *new_region(uint32_t node)
{
	void *region = calloc(1, p3_trace_len(RECORDS));
	const struct p3_trace_who who = {node, 4, 100 + node, 7};
	assert_non_null(region);
	p3_trace_format(region, RECORDS, &who, (const void *)(uintptr_t)new_region);
	return region;
}

static struct p3_trace_header *header_of(void *region)
{
	return region;
}

/* Compute a record from its number. */
static void words_of(uint64_t i, uint64_t w[4])
{
	w[0] = 1000 + i;
	w[1] = p3_trace_where((uint32_t)i * 3, P3_TRACE_MATCH, (uint32_t)i & 0xff,
		(uint32_t)(i * 5) & P3_TRACE_NOBODY);
	w[2] = (uint32_t)i * 7;
	w[3] = i * UINT64_C(0x9e3779b97f4a7c15);
}

static void write_one(void *region, uint64_t i)
{
	uint64_t w[4];
	words_of(i, w);
	p3_trace_write(p3_trace_at(region, RECORDS, P3_TRACE_FW), RECORDS - 1, i, w);
	p3_release(&header_of(region)->head[P3_TRACE_FW], i + 1); /* TRACE.1 */
}

/* Write a host's record; its number is unknown before, so its detail determines all. */
static uint64_t write_host(void *region, uint64_t seed)
{
	uint64_t w[4];
	words_of(seed, w);
	w[3] = seed;
	return p3_trace_write_shared(header_of(region),
		p3_trace_at(region, RECORDS, P3_TRACE_HOST), RECORDS / 2 - 1, w);
}

static void assert_whole(const struct p3_trace_entry *e, uint64_t i)
{
	assert_int_equal(e->ticks, 1000 + i);
	assert_int_equal(e->code, (uint32_t)i * 3);
	assert_int_equal(e->point, P3_TRACE_MATCH);
	assert_int_equal(e->value, i & 0xff);
	assert_int_equal(e->peer, (i * 5) & P3_TRACE_NOBODY);
	assert_int_equal(e->which, (uint32_t)i * 7);
}

static struct p3_trace_taken *read_region(void *region)
{
	struct p3_trace_taken *t = p3_trace_read(region, p3_trace_len(RECORDS));
	assert_non_null(t);
	return t;
}

CASE(ring_keeps_the_last_records_in_order)
{
	void *region = new_region(0);
	for (uint64_t n = 0; n < 1000; n++) {
		struct p3_trace_taken *t = read_region(region);
		uint64_t kept = n < RECORDS ? n : RECORDS;
		assert_int_equal(t->n, kept);
		assert_int_equal(t->written[P3_TRACE_FW], n);
		for (uint64_t k = 0; k < kept; k++)
			assert_whole(&t->entry[k], n - kept + k);
		free(t);
		write_one(region, n);
	}
	free(region);
}

CASE(ring_of_a_writer_that_died_in_a_record_lacks_that_one)
{
	void *region = new_region(0);
	for (uint64_t n = 0; n < 100; n++)
		write_one(region, n);
	struct p3_trace_record *r = p3_trace_at(region, RECORDS, P3_TRACE_FW);
	p3_set(&r[100 % RECORDS].w[2], p3_trace_state(100) - 1u);
	p3_set(&r[100 % RECORDS].w[0], 4711);
	struct p3_trace_taken *t = read_region(region);
	assert_int_equal(t->n, RECORDS - 1);
	for (uint32_t k = 0; k < t->n; k++)
		assert_whole(&t->entry[k], 37 + k);
	free(t);
	free(region);
}

/* A program may overwrite the header of its own trace: its writers stay in their ring. */
CASE(hosts_stay_in_their_ring_with_a_bad_header)
{
	void *region = new_region(0);
	header_of(region)->records = P3_TRACE_MOST;
	p3_set(&header_of(region)->head[P3_TRACE_HOST], RECORDS / 2 * 1001 + 5);
	assert_int_equal(write_host(region, 7), RECORDS / 2 * 1001 + 5);
	const struct p3_trace_record *r = p3_trace_at(region, RECORDS, P3_TRACE_HOST);
	assert_int_equal(p3_get(&r[5].w[3]), 7);
	free(region);
}

CASE(ring_of_hosts_goes_round_one_that_is_stuck)
{
	void *region = new_region(0);
	struct p3_trace_record *r = p3_trace_at(region, RECORDS, P3_TRACE_HOST);
	for (uint64_t n = 0; n < 5; n++)
		assert_int_equal(write_host(region, n), n);
	p3_set(&r[5].w[2], p3_trace_state(5) - 1u); /* claimed, and stopped */
	p3_set(&header_of(region)->head[P3_TRACE_HOST], 6);
	for (uint64_t n = 6; n < 6 + 3 * HOSTS; n++)
		assert_int_equal(write_host(region, n), n % HOSTS == 5 ? UINT64_MAX : n);
	struct p3_trace_taken *t = read_region(region);
	assert_int_equal(t->lost, 3);
	assert_int_equal(t->n, HOSTS - 1);
	for (uint32_t k = 0; k < t->n; k++)
		assert_int_equal(t->entry[k].detail % HOSTS == 5, false);
	free(t);
	free(region);
}

/* ---- concurrent writing ---- */

struct torture {
	void *region;
	p3_a32 stop;
	p3_a64 seed;
};

/* Fill the ring once at least. */
static void *write_records(void *arg)
{
	struct torture *x = arg;
	for (uint64_t i = 0; i < RECORDS || !p3_get(&x->stop); i++)
		write_one(x->region, i);
	return NULL;
}

static void *write_hosts(void *arg)
{
	struct torture *x = arg;
	while (!p3_get(&x->stop))
		(void)write_host(x->region, p3_add64(&x->seed, 1));
	return NULL;
}

static uint64_t look_at_all(void *region)
{
	struct p3_trace_taken *t = read_region(region);
	uint64_t n = t->n;
	for (uint32_t k = 0; k < t->n; k++) {
		const struct p3_trace_entry *e = &t->entry[k];
		bool fw = e->ring == P3_TRACE_FW;
		uint64_t i = fw ? e->ticks - 1000 : e->detail;
		assert_whole(e, i);
		assert_int_equal(e->detail,
			fw ? i * UINT64_C(0x9e3779b97f4a7c15) : e->ticks - 1000);
	}
	free(t);
	return n;
}

CASE(reader_of_a_live_ring_sees_no_torn_record)
{
	struct torture x = {.region = new_region(0)};
	pthread_t fw, host[3];
	assert_int_equal(pthread_create(&fw, NULL, write_records, &x), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&host[i], NULL, write_hosts, &x), 0);
	uint64_t seen = 0, end = p3_now_ns() + 200000000;
	while (!seen || p3_now_ns() < end)
		seen += look_at_all(x.region);
	p3_set(&x.stop, 1);
	pthread_join(fw, NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(host[i], NULL);
	print_message("# tried: %llu records read while they were written\n",
		(unsigned long long)seen);
	seen = look_at_all(x.region);
	assert_in_range(seen, RECORDS, RECORDS + HOSTS);
	free(x.region);
}

/* The clock is the one that the header names, whose readings never go back. */
CASE(ticks_are_those_of_the_clock)
{
	uint64_t before = p3_now_ns(), ticks = p3_trace_ticks(P3_TRACE_MONOTONIC);
	assert_in_range(ticks, before, p3_now_ns());
#if defined(__x86_64__)
	if (p3_trace_clock() == P3_TRACE_TSC) {
		before = __builtin_ia32_rdtsc();
		ticks = p3_trace_ticks(P3_TRACE_TSC);
		assert_in_range(ticks, before, __builtin_ia32_rdtsc());
	}
#endif
}

/* ---- invalid regions ---- */

/* Write anywhere, or into often read words: the header, heads, points and messages. */
static void scribble(void *region, uint64_t *seed)
{
	uint64_t *w = region, n = p3_trace_len(RECORDS) / 8;
	uint64_t what = random_next(seed) % 4, times = random_next(seed) % 200;
	for (uint64_t i = 0; i < times; i++) {
		uint64_t at = random_next(seed) % n, is = random_next(seed);
		if (what == 0)
			at %= sizeof(struct p3_trace_header) / 8;
		else if (at < P3_PAGE / 8)
			at += P3_PAGE / 8;
		if (what == 2)
			is &= UINT64_C(0x00000000c00f00ff);
		w[at % n] = is;
	}
	if (what == 3)
		w[offsetof(struct p3_trace_header, head) / 8] = random_next(seed) % 300;
}

static void put_block(FILE *out, uint32_t node, const struct p3_trace_taken *t)
{
	struct p3_traceblock_header b = {.magic = P3_TRACEBLOCK_MAGIC,
		.node = node,
		.fate = P3_TRACE_DIED,
		.now = {UINT64_MAX / 2, 1u << 30},
		.taken = *t};
	fwrite(&b, sizeof b, 1, out);
	fwrite(t->entry, sizeof t->entry[0], t->n, out);
}

static char path[40];
static char *const paths[] = {path};

__attribute__((constructor)) static void name_path(void)
{
	snprintf(path, sizeof path, "test_trace.%d.tmp", (int)getpid());
}

static FILE *new_file(void)
{
	struct p3_tracefile_header h = {.magic = P3_TRACEFILE_MAGIC,
		.version = P3_TRACE_VERSION,
		.size = 4,
		.jid = 11,
		.clock = P3_TRACE_MONOTONIC};
	FILE *out = fopen(path, "w");
	assert_non_null(out);
	fwrite(&h, sizeof h, 1, out);
	return out;
}

static const struct td_filter everything = {
	.since = INT64_MIN, .until = INT64_MAX, .peer = TD_NONE, .message = TD_NONE};

static void dump_everything(const struct td_trace *t)
{
	FILE *out = fopen("/dev/null", "w");
	assert_non_null(out);
	td_text(t, &everything, out);
	assert_int_equal(td_json(t, &everything, out), 0);
	assert_int_equal(td_svg(t, &everything, out), 0);
	fclose(out);
}

/* Dump; a fifth of the files is cut, or has arbitrary bytes in it. */
static void dump_regions(void *a, void *b, uint64_t *seed)
{
	struct td_trace t;
	struct p3_trace_taken *ta = p3_trace_read(a, p3_trace_len(RECORDS));
	struct p3_trace_taken *tb = p3_trace_read(b, p3_trace_len(RECORDS));
	FILE *out = new_file();
	if (ta)
		put_block(out, 0, ta);
	if (tb)
		put_block(out, 1, tb);
	long len = ftell(out);
	for (uint64_t i = random_next(seed) % 5 ? 0 : 20; i--;) {
		uint64_t word = random_next(seed);
		fseek(out, (long)(random_next(seed) % (uint64_t)len), SEEK_SET);
		fwrite(&word, 1 + word % 8, 1, out);
	}
	fclose(out);
	if (random_next(seed) % 5 == 0)
		assert_int_equal(truncate(path, (off_t)(random_next(seed) % 9000)), 0);
	if (td_load_files(paths, 1, &t) == 0) {
		dump_everything(&t);
		td_free(&t);
	}
	free(ta);
	free(tb);
}

/* ---- cores ---- */

enum { CORE_MAPS = 6, CORE_NODES = 2 };

struct test_core {
	Elf64_Ehdr head;
	Elf64_Phdr map[CORE_MAPS];
	struct p3_seg_header node[CORE_NODES];
};

static const struct test_core blank_core = {
	.head = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			 EV_CURRENT},
		.e_type = ET_CORE,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = offsetof(struct test_core, map),
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = CORE_MAPS},
};

static Elf64_Phdr map_of(uint64_t at, uint64_t off, uint64_t len)
{
	return (Elf64_Phdr){.p_type = PT_LOAD,
		.p_offset = off,
		.p_vaddr = at,
		.p_filesz = len,
		.p_memsz = len,
		.p_align = 1};
}

/* Put segments far from each other; a trace may lie in two mappings. */
static void put_node(struct test_core *c, unsigned k)
{
	uint64_t at = UINT64_C(0x7f0000000000) + k * UINT64_C(0x10000000);
	uint64_t len = p3_trace_len(RECORDS), off = sizeof *c + k * len;
	c->node[k] = (struct p3_seg_header){
		.magic = P3_SEG_MAGIC, .nnodes = 4, .node = k, .self = at};
	c->map[3 * k] = map_of(at, offsetof(struct test_core, node[k]), P3_LINE);
	at += p3_layout_of(4).seg_len;
	c->map[3 * k + 1] = map_of(at, off, 5000);
	c->map[3 * k + 2] = map_of(at + 5000, off + 5000, len - 5000);
}

static void write_core(void *const region[CORE_NODES])
{
	struct test_core c = blank_core;
	FILE *out = fopen(path, "w");
	assert_non_null(out);
	for (unsigned k = 0; k < CORE_NODES; k++)
		put_node(&c, k);
	fwrite(&c, sizeof c, 1, out);
	for (unsigned k = 0; k < CORE_NODES; k++)
		fwrite(region[k], p3_trace_len(RECORDS), 1, out);
	fclose(out);
}

static void fill_regions(void *region[CORE_NODES])
{
	for (uint32_t k = 0; k < CORE_NODES; k++)
		region[k] = new_region(k);
	for (uint64_t i = 0; i < 80; i++) {
		write_one(region[i % 2], i / 2);
		(void)write_host(region[i % 2], i);
	}
}

CASE(core_has_the_traces_of_its_nodes)
{
	void *region[CORE_NODES];
	struct td_trace t;
	fill_regions(region);
	write_core(region);
	assert_int_equal(td_load_files(paths, 1, &t), 0);
	assert_int_equal(t.size, 4);
	assert_int_equal(t.nblocks, CORE_NODES);
	for (uint32_t k = 0; k < CORE_NODES; k++) {
		assert_int_equal(t.block[k].node, k);
		assert_int_equal(t.block[k].fate, P3_TRACE_DUMPED);
		assert_int_equal(t.block[k].written[P3_TRACE_FW], 40);
		assert_int_equal(t.block[k].written[P3_TRACE_HOST], 40);
		free(region[k]);
	}
	td_free(&t);
	unlink(path);
}

static int count_sound(void *arg, const struct p3_trace_taken *taken)
{
	uint64_t *sound = arg;
	assert_true(taken->n <= 3 * RECORDS && taken->header.node < P3_MAX_NODES);
	++*sound;
	return 0;
}

static void spoil_core(uint64_t *seed)
{
	struct test_core c;
	FILE *f = fopen(path, "r+");
	assert_int_equal(fread(&c, sizeof c, 1, f), 1);
	for (uint64_t i = random_next(seed) % 6; i--;) {
		uint64_t at = random_next(seed) % (sizeof c / 8),
			 word = random_next(seed);
		((uint64_t *)&c)[at] = word >> (word % 64);
	}
	rewind(f);
	fwrite(&c, sizeof c, 1, f);
	fclose(f);
	if (random_next(seed) % 5 == 0)
		assert_int_equal(truncate(path, (off_t)(random_next(seed) % 9000)), 0);
}

CASE(anything_in_a_core_is_read)
{
	uint64_t seed = 20261122, tried = 0, sound = 0, end = p3_now_ns() + 300000000;
	for (; tried < 30 || p3_now_ns() < end; tried++) {
		void *region[CORE_NODES];
		fill_regions(region);
		if (tried % 3)
			scribble(region[tried % 2], &seed);
		write_core(region);
		spoil_core(&seed);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		(void)td_core_each(path, fd, count_sound, &sound);
		close(fd);
		free(region[0]);
		free(region[1]);
	}
	assert_true(sound > tried / 10);
	print_message("# tried: %llu cores, %llu traces in them\n",
		(unsigned long long)tried, (unsigned long long)sound);
	unlink(path);
}

CASE(anything_in_a_ring_is_read_and_shown)
{
	uint64_t seed = 20261121, tried = 0, end = p3_now_ns() + 600000000;
	for (; p3_now_ns() < end; tried++) {
		void *region[2];
		fill_regions(region);
		for (int k = 0; k < 2; k++)
			if (tried % 3 != (uint64_t)k)
				scribble(region[k], &seed);
		dump_regions(region[0], region[1], &seed);
		free(region[0]);
		free(region[1]);
	}
	td_code_end();
	print_message("# tried: %llu pairs of rings with anything in them\n",
		(unsigned long long)tried);
	unlink(path);
}

CASE(what_is_no_region_is_refused)
{
	char *region = new_region(0);
	struct p3_trace_header *h = header_of(region);
	assert_null(p3_trace_read(region, P3_PAGE - 1));
	assert_null(p3_trace_read(region, p3_trace_len(RECORDS) - 1));
	static const uint32_t bad[] = {0, 63, 65, P3_TRACE_MOST * 2, UINT32_MAX};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		h->records = bad[i];
		assert_null(p3_trace_read(region, p3_trace_len(RECORDS)));
		assert_int_equal(errno, EPROTO);
	}
	h->records = RECORDS;
	h->magic++;
	assert_null(p3_trace_read(region, p3_trace_len(RECORDS)));
	free(region);
}

/* ---- golden ---- */

struct script {
	uint32_t node;
	uint64_t ns;
	enum p3_trace_ring ring;
	enum p3_trace_point point;
	uint32_t value, peer, which;
	uint64_t detail;
};

enum { MSG = 0x80000005 }; /* #5 of a full lane */

/* A put of 8 bytes from node 0 to node 1, in disorder. */
static const struct script script[] = {
	{1, 5000, P3_TRACE_FW, P3_TRACE_LEASE, 1, P3_TRACE_NOBODY, 0, 0},
	{1, 5100, P3_TRACE_FW, P3_TRACE_TAKE, 2, P3_TRACE_IN, MSG, 8},
	{1, 5150, P3_TRACE_FW, P3_TRACE_MATCH, 1, P3_TRACE_IN, MSG, 0xabc},
	{1, 5190, P3_TRACE_FW, P3_TRACE_EVENT, 3, P3_TRACE_IN, MSG, 2ull << 32 | 9},
	{1, 5210, P3_TRACE_FW, P3_TRACE_DELIVER, 2, P3_TRACE_IN, MSG, 8},
	{1, 5220, P3_TRACE_FW, P3_TRACE_GIVEN, 1, P3_TRACE_NOBODY, 0, 0},
	{1, 5300, P3_TRACE_HOST, P3_TRACE_TAKEN, 3, P3_TRACE_NOBODY, 1, 2ull << 32 | 9},
	{0, 4500, P3_TRACE_HOST, P3_TRACE_COMMAND, P3_OP_PUT, 1, 1, 8},
	{0, 4510, P3_TRACE_FW, P3_TRACE_LEASE, 1, P3_TRACE_NOBODY, 0, 0},
	{0, 4560, P3_TRACE_FW, P3_TRACE_SEND, 2, 1, MSG, 1ull << 32 | 8},
	{0, 4590, P3_TRACE_FW, P3_TRACE_EVENT, 9, 1, MSG, 1ull << 32 | 1},
	{0, 4600, P3_TRACE_FW, P3_TRACE_GIVEN, 1, P3_TRACE_NOBODY, 0, 0},
};

static const char golden[] =
	"# node 1: prog, pid 4711, died, 6+1 records written\n"
	"# node 0: prog, pid 4711, died, 4+1 records written\n"
	"#    time us: node: value: code function+offset (since the record before it) "
	"what\n"
	"       4.500: 0:  17: 00000000 ?+0000 host 1 command put node 1 8 B\n"
	"       4.510: 0:   1: 00000000 ?+0000 lease host\n"
	"       4.560: 0:   2: 00000000 ?+0000 (50 ns) send put to 1 #5 8 B\n"
	"       4.590: 0:   9: 00000000 ?+0000 (30 ns) event SEND_END to 1 #5 queue 1.1\n"
	"       4.600: 0:   1: 00000000 ?+0000 (10 ns) given host\n"
	"       5.000: 1:   1: 00000000 ?+0000 lease host\n"
	"       5.100: 1:   2: 00000000 ?+0000 (100 ns) take put from 0 #5 8 B\n"
	"       5.150: 1:   1: 00000000 ?+0000 (50 ns) match hit from 0 #5 bits abc\n"
	"       5.190: 1:   3: 00000000 ?+0000 (40 ns) event PUT_END from 0 #5 queue "
	"2.9\n"
	"       5.210: 1:   2: 00000000 ?+0000 (20 ns) deliver put from 0 #5 8 B\n"
	"       5.220: 1:   1: 00000000 ?+0000 (10 ns) given host\n"
	"       5.300: 1:   3: 00000000 ?+0000 host 1 taken PUT_END queue 2.9\n";

static void play(void *region, uint32_t node)
{
	struct p3_trace_header *h = header_of(region);
	uint64_t head = 0;
	for (size_t i = 0; i < sizeof script / sizeof *script; i++) {
		const struct script *s = &script[i];
		const uint64_t w[4] = {s->ns,
			p3_trace_where(0, s->point, s->value, s->peer), s->which,
			s->detail};
		if (s->node != node)
			continue;
		if (s->ring == P3_TRACE_HOST)
			(void)p3_trace_write_shared(h,
				p3_trace_at(region, RECORDS, P3_TRACE_HOST),
				RECORDS / 2 - 1, w);
		else
			p3_trace_write(p3_trace_at(region, RECORDS, P3_TRACE_FW),
				RECORDS - 1, head++, w);
	}
	p3_release(&h->head[P3_TRACE_FW], head); /* TRACE.1 */
	strcpy(h->program, "prog");
	h->os_pid = 4711;
	*h->object = '\0';
}

static void write_golden(void)
{
	FILE *out = new_file();
	for (uint32_t node = 2; node-- > 0;) {
		void *region = new_region(node);
		play(region, node);
		struct p3_trace_taken *t = read_region(region);
		put_block(out, node, t);
		free(t);
		free(region);
	}
	fclose(out);
}

/* Load it; the clock is CLOCK_MONOTONIC, and both readings of it say so. */
static void load_golden(struct td_trace *t)
{
	write_golden();
	FILE *f = fopen(path, "r+");
	struct p3_traceblock_header b;
	struct p3_tracefile_header h;
	assert_int_equal(fread(&h, sizeof h, 1, f), 1);
	for (long at = sizeof h; fread(&b, sizeof b, 1, f) == 1; at = ftell(f)) {
		b.now = (struct p3_trace_look){1000000, 1000000};
		fseek(f, at, SEEK_SET);
		fwrite(&b, sizeof b, 1, f);
		fseek(f, (long)(b.taken.n * sizeof(struct p3_trace_entry)), SEEK_CUR);
	}
	fclose(f);
	assert_int_equal(td_load_files(paths, 1, t), 0);
	unlink(path);
}

static char *text_of(const struct td_trace *t, const struct td_filter *f)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	td_text(t, f, out);
	fclose(out);
	return text;
}

CASE(two_rings_are_merged_by_time)
{
	struct td_trace t;
	load_golden(&t);
	char *text = text_of(&t, &everything);
	assert_string_equal(text, golden);
	free(text);
	td_free(&t);
	td_code_end();
}

static unsigned lines_of(const struct td_trace *t, struct td_filter f)
{
	unsigned n = 0;
	char *text = text_of(t, &f);
	for (const char *at = text; (at = strchr(at, '\n')); at++)
		n += at[1] && at[1] != '#';
	free(text);
	return n;
}

CASE(filters_take_what_they_name)
{
	struct td_trace t;
	struct td_filter f = everything;
	load_golden(&t);
	assert_int_equal(lines_of(&t, f), 12);
	f.some = p3_ranks_parse("1-3", &f.nodes);
	assert_int_equal(lines_of(&t, f), 7);
	f.since = 5190;
	assert_int_equal(lines_of(&t, f), 4);
	f.until = 5220;
	assert_int_equal(lines_of(&t, f), 3);
	f.at = "deliver";
	assert_int_equal(lines_of(&t, f), 1);
	f = everything;
	f.at = "PUT_END";
	assert_int_equal(lines_of(&t, f), 2);
	f = everything;
	f.peer = 0;
	assert_int_equal(lines_of(&t, f), 4);
	td_free(&t);
	td_code_end();
}

CASE(a_message_is_found_at_both_ends)
{
	struct td_trace t;
	struct td_stop stop[TD_STOPS];
	load_golden(&t);
	assert_int_equal(t.nmessages, 1);
	const struct td_message *m = &t.message[0];
	assert_int_equal(m->from, 0);
	assert_int_equal(m->to, 1);
	assert_string_equal(td_name_of(m->name).text, "5");
	assert_int_equal(td_stops(&t, &everything, m, stop), TD_STOPS);
	static const int64_t at[TD_STOPS] = {4500, 4510, 5100, 5150, 5300};
	for (unsigned i = 0; i < TD_STOPS; i++)
		assert_int_equal(stop[i].ns, at[i]);
	assert_int_equal(t.event[m->way[TD_MATCH]].e.detail, 0xabc);
	assert_int_equal(t.event[m->way[TD_DELIVER]].ns, 5210);
	struct td_filter f = everything;
	f.message = 0;
	assert_int_equal(lines_of(&t, f), 8);
	td_free(&t);
	td_code_end();
}

/* ---- names and settings ---- */

CASE(names_are_those_of_the_code)
{
	assert_string_equal(td_value(P3_TRACE_COMMAND, P3_OP_PUT), "put");
	assert_string_equal(td_value(P3_TRACE_COMMAND, P3_OP_EQ_RECLAIM), "eq_reclaim");
	assert_string_equal(td_value(P3_TRACE_COMMAND, P3_OP_PEER_DOWN), "peer_down");
	assert_string_equal(td_value(P3_TRACE_COMMAND, P3_OPS), "?");
	assert_string_equal(td_value(P3_TRACE_EVENT, PTL_EVENT_GET_START), "GET_START");
	assert_string_equal(td_value(P3_TRACE_EVENT, PTL_EVENT_PUT_END), "PUT_END");
	assert_string_equal(td_value(P3_TRACE_TAKEN, PTL_EVENT_UNLINK), "UNLINK");
	assert_string_equal(td_value(P3_TRACE_SEND, P3_REQ_GETPUT), "getput");
	assert_string_equal(td_value(P3_TRACE_TAKE, P3_REQ_KINDS), "atomic_min");
	assert_string_equal(
		td_value(P3_TRACE_SEND,
			p3_request_name(P3_REQ_PUT, P3_ATOMIC(PTLX_MSWAP, PTLX_INT8))),
		"atomic_mswap");
	assert_string_equal(td_value(P3_TRACE_SEND, P3_REQ_KINDS + PTLX_MSWAP + 1), "?");
	assert_string_equal(td_value(P3_TRACE_ANSWER, P3_RSP_REPLY_LONG), "reply_long");
	assert_string_equal(td_value(P3_TRACE_BEGIN, P3_MOVE_DIRECT), "direct");
	assert_string_equal(td_value(P3_TRACE_BEGIN, P3_TRACE_SERVED), "served");
	assert_string_equal(td_value(P3_TRACE_GIVEN, P3_LEASE_NIC), "nic");
	assert_string_equal(td_value(P3_TRACE_END, PTL_NI_FAIL), "failed");
	assert_string_equal(td_value(P3_TRACE_DROP, 77), "");
	assert_string_equal(td_value(255, 1), "");
	assert_string_equal(td_point(255), "?");
}

CASE(sizes_are_records_or_bytes)
{
	static const struct {
		const char *text;
		uint32_t records;
	} good[] = {{NULL, 0}, {"", 0}, {"off", 0}, {"64", 64}, {"65", 128},
		{"32768", 32768}, {"16777216", P3_TRACE_MOST}, {"7K", 64}, {"2M", 32768},
		{"1G", P3_TRACE_MOST}};
	static const char *const bad[] = {"on", "0", "63", "16777217", "6K", "2T", "-64",
		" 64", "64 ", "64x", "1025M", "99999999999999999999", "0x40", "1.5M"};
	uint32_t n;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		assert_true(p3_conf_trace(good[i].text, &n));
		assert_int_equal(n, good[i].records);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(p3_conf_trace(bad[i], &n));
	assert_true(p3_trace_len(32768) < P3_HUGE);
	assert_int_equal(p3_trace_len(0), 0);
}
