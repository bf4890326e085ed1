/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Traces from a file, an ELF core or a job: times on one clock, all records in order.
 * The kernel or gdb's gcore has written a core, which may be cut off, or not be a node's.
 * A node's published segment begins a mapping of its own and tells its address; its trace
 * is behind it.  Peers' segments are in no core (shm/seg.h).
 */
#include "launcher/tracedump/tracedump.h"
#include "launcher/look/look.h"
#include "launcher/tools/options.h"

#include <elf.h>
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAPPINGS 65536 /* about vm.max_map_count */

struct mapping {
	uint64_t at, off, len;
};

struct core {
	const char *path;
	int fd;
	size_t n;
	struct mapping *map; /* in the file's order: addresses ascend */
};

static int core_say(const struct core *c, int rc, const char *what)
{
	p3_tool_say("'%s': %s; expected a file of yod --trace, or the core of a node "
		    "that was "
		    "traced",
		c->path, what);
	return rc;
}

/* ---- memory ---- */

/* Read bytes at an address; they may extend over several mappings. */
static bool core_read_at(const struct core *c, uint64_t at, void *to, uint64_t len)
{
	char *out = to;
	for (size_t i = 0; i < c->n && len; i++) {
		const struct mapping *m = &c->map[i];
		if (at - m->at >= m->len)
			continue;
		uint64_t in = at - m->at, part = m->len - in < len ? m->len - in : len;
		if (pread(c->fd, out, part, (off_t)(m->off + in)) != (ssize_t)part)
			return false;
		at += part;
		out += part;
		len -= part;
	}
	return !len;
}

static int core_take_mappings(struct core *c, Elf *elf)
{
	size_t n;
	GElf_Phdr p;
	if (elf_getphdrnum(elf, &n) || n > MAPPINGS)
		return core_say(c, -EPROTO, "its mappings make no sense");
	c->map = calloc(n + 1, sizeof *c->map);
	if (!c->map)
		return core_say(c, -ENOMEM, "out of memory");
	for (size_t i = 0; i < n; i++)
		if (gelf_getphdr(elf, (int)i, &p) && p.p_type == PT_LOAD && p.p_filesz)
			c->map[c->n++] =
				(struct mapping){p.p_vaddr, p.p_offset, p.p_filesz};
	return 0;
}

static int core_open_core(struct core *c)
{
	GElf_Ehdr h;
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(c->fd, ELF_C_READ, NULL);
	int rc = 0;
	if (!elf || !gelf_getehdr(elf, &h) || h.e_type != ET_CORE)
		rc = core_say(c, -EPROTO, "an ELF file, but no core");
	if (!rc)
		rc = core_take_mappings(c, elf);
	elf_end(elf);
	return rc;
}

/* ---- nodes ---- */

static bool core_is_node(const struct core *c, const struct mapping *m)
{
	struct p3_seg_header h;
	return m->len >= sizeof h && core_read_at(c, m->at, &h, sizeof h) &&
	       h.magic == P3_SEG_MAGIC && h.self == m->at && h.nnodes &&
	       h.nnodes <= P3_MAX_NODES && h.node < h.nnodes;
}

/* Bytes of a segment in a core, and the memory into which they are read. */
struct core_seg {
	const struct core *c;
	uint64_t at;
	void *bytes;
};

static const void *core_bytes(void *arg, uint64_t off, uint64_t len)
{
	struct core_seg *s = arg;
	free(s->bytes);
	s->bytes = aligned_alloc(P3_PAGE, p3_round_up(len + 1, P3_PAGE));
	return s->bytes && core_read_at(s->c, s->at + off, s->bytes, len) ? s->bytes
									  : NULL;
}

/* Take the trace behind a segment whose header this mapping has.  Return NULL if the
 * segment has no trace, or the trace is not in this core. */
static struct p3_trace_taken *core_take_trace(
	const struct core *c, const struct mapping *m)
{
	struct core_seg s = {.c = c, .at = m->at};
	struct p3_trace_taken *taken = p3_trace_find(core_bytes, &s);
	free(s.bytes);
	return taken;
}

/* A core has hugepages only if its process' core filter includes them. */
#define NO_NODE                                                                          \
	"no node's memory is in this core, or it lay in hugepages, which "               \
	"/proc/PID/coredump_filter leaves out by default (0x73 has them)"

static int core_each_node(const struct core *c,
	int (*found)(void *arg, const struct p3_trace_taken *taken), void *arg)
{
	unsigned nodes = 0, traces = 0;
	int rc = 0;
	for (size_t i = 0; i < c->n && !rc; i++) {
		if (!core_is_node(c, &c->map[i]))
			continue;
		nodes++;
		struct p3_trace_taken *taken = core_take_trace(c, &c->map[i]);
		traces += taken != NULL;
		rc = taken ? found(arg, taken) : 0;
		free(taken);
	}
	if (!rc && !nodes)
		rc = core_say(c, -ENODATA, NO_NODE);
	else if (!rc && !traces)
		rc = core_say(
			c, -ENODATA, "its node was not traced, or the core is cut off");
	return rc;
}

int td_core_each(const char *path, int fd,
	int (*found)(void *arg, const struct p3_trace_taken *taken), void *arg)
{
	struct core c = {.path = path, .fd = fd};
	int rc = core_open_core(&c);
	if (!rc)
		rc = core_each_node(&c, found, arg);
	free(c.map);
	return rc;
}

/* ---- traces ---- */

#define PACE_NS    20000000u /* time between two readings of the clock */
#define LONGEST_NS 1e18      /* longest job: 31 years */

struct scale {
	struct p3_trace_look began;
	double ns_per_tick;
};

void td_free(struct td_trace *t)
{
	free(t->file);
	free(t->block);
	free(t->event);
	free(t->message);
	*t = (struct td_trace){.jid = 0};
}

static int load_no_memory(void)
{
	p3_tool_say("out of memory; expected room for all records at once");
	return -ENOMEM;
}

/* Hand the trace out, or free it after a failure. */
static int load_end(struct td_trace *t, int rc, struct td_trace *trace_out)
{
	if (rc)
		td_free(t);
	else
		*trace_out = *t;
	return rc;
}

/* ---- blocks ---- */

static int load_grow(struct td_trace *t, uint32_t events)
{
	struct td_block *b = realloc(t->block, (t->nblocks + 1) * sizeof *b);
	if (b)
		t->block = b;
	struct td_event *e = realloc(t->event, (t->nevents + events + 1) * sizeof *e);
	if (e)
		t->event = e;
	return b && e ? 0 : load_no_memory();
}

/* Add an incarnation of a node and its records; `taken` may lie without its entries. */
static int load_add_block(struct td_trace *t, const struct p3_trace_taken *taken,
	uint32_t node, enum p3_trace_fate fate, struct p3_trace_look now,
	const struct p3_trace_entry *entry)
{
	int rc = load_grow(t, taken->n);
	if (rc)
		return rc;
	struct td_block *b = &t->block[t->nblocks];
	*b = (struct td_block){.header = taken->header,
		.file = t->nfiles,
		.node = node,
		.fate = fate,
		.now = now,
		.written = {taken->written[0], taken->written[1]},
		.lost = taken->lost};
	p3_trace_printable(b->header.object, sizeof b->header.object);
	p3_trace_printable(b->header.program, sizeof b->header.program);
	for (uint32_t i = 0; i < taken->n; i++) {
		/* a file may contain anything */
		if (entry[i].ring >= P3_TRACE_RINGS || entry[i].in > 1) {
			b->unsound++;
			continue;
		}
		struct td_event *ev = &t->event[t->nevents++];
		*ev = (struct td_event){.e = entry[i],
			.block = t->nblocks,
			.before = TD_NONE,
			.after = TD_NONE,
			.message = TD_NONE};
		ev->e.node = (uint16_t)b->node;
	}
	t->nblocks++;
	return 0;
}

/* In a domain, records name peers by slots.  Return the rank of one. */
static uint32_t load_rank_in(const struct td_trace *t, uint32_t slot)
{
	for (uint32_t i = t->nblocks; i-- > 0;)
		if (t->block[i].header.node == slot)
			return t->block[i].node;
	return P3_TRACE_NOBODY; /* a process of another job */
}

/* ---- order ---- */

static int load_by_time(const void *x, const void *y)
{
	const struct td_event *a = x, *b = y;
	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	if (a->block != b->block)
		return a->block < b->block ? -1 : 1;
	if (a->e.ticks != b->e.ticks) /* two of them may be one ns */
		return a->e.ticks < b->e.ticks ? -1 : 1;
	if (a->e.ring != b->e.ring)
		return a->e.ring < b->e.ring ? -1 : 1;
	return (a->e.number > b->e.number) - (a->e.number < b->e.number);
}

/* Set a record's time in ns.  Return false if its time is impossible: before the job's
 * begin, after the records were read, or outside of the clock's range. */
static bool load_has_time(
	struct td_trace *t, struct td_event *ev, const struct scale *scales)
{
	struct td_block *b = &t->block[ev->block];
	const struct scale *s = &scales[b->file];
	uint64_t ticks = ev->e.ticks;
	if (ticks < s->began.ticks || ticks > b->now.ticks) {
		b->unsound++;
		return false;
	}
	double ns = (double)(ticks - s->began.ticks) * s->ns_per_tick;
	if (!(ns < LONGEST_NS)) {
		b->unsound++;
		return false;
	}
	ev->ns = (int64_t)(s->began.ns - scales[0].began.ns) + (int64_t)ns;
	return true;
}

static int load_link_rings(struct td_trace *t)
{
	uint32_t *last = malloc((size_t)t->nblocks * P3_TRACE_RINGS * sizeof *last + 1);
	if (!last)
		return load_no_memory();
	memset(last, 0xff, (size_t)t->nblocks * P3_TRACE_RINGS * sizeof *last);
	for (uint32_t i = 0; i < t->nevents; i++) {
		struct td_event *ev = &t->event[i];
		uint32_t ring = ev->block * P3_TRACE_RINGS + ev->e.ring;
		ev->before = last[ring];
		last[ring] = i;
	}
	free(last);
	return 0;
}

/* Sort the records; there is a scale for each file. */
static int load_in_order(struct td_trace *t, const struct scale *s)
{
	int rc = 0;
	t->began = s->began;
	uint32_t n = 0;
	for (uint32_t i = 0; i < t->nevents; i++)
		if (load_has_time(t, &t->event[i], s))
			t->event[n++] = t->event[i];
	t->nevents = n;
	for (uint32_t i = 0; i < t->nevents; i++) {
		struct td_event *ev = &t->event[i];
		if (t->block[ev->block].header.nnodes != t->size &&
			ev->e.peer != P3_TRACE_NOBODY)
			ev->e.peer = (uint16_t)load_rank_in(t, ev->e.peer);
	}
	qsort(t->event, t->nevents, sizeof *t->event, load_by_time);
	if (t->nfiles > 1) {
		rc = td_merge(t);
		qsort(t->event, t->nevents, sizeof *t->event, load_by_time);
	}
	rc = rc ? rc : load_link_rings(t);
	return rc ? rc : td_find_messages(t, false);
}

static double load_pace(struct p3_trace_look a, struct p3_trace_look b)
{
	if (b.ticks <= a.ticks || b.ns <= a.ns)
		return 1;
	return (double)(b.ns - a.ns) / (double)(b.ticks - a.ticks);
}

/* Return the earliest begin of a node that the clock's range allows, or `now`. */
static struct p3_trace_look load_first_look(
	const struct td_trace *t, struct p3_trace_look now, double ns_per_tick)
{
	struct p3_trace_look first = now;
	for (uint32_t i = 0; i < t->nblocks; i++) {
		uint64_t ticks = t->block[i].header.ticks;
		if (ticks < first.ticks &&
			(double)(now.ticks - ticks) * ns_per_tick < (double)now.ns)
			first = (struct p3_trace_look){ticks, t->block[i].header.ns};
	}
	return first;
}

static struct scale load_measure(
	const struct td_trace *t, uint32_t clock, struct p3_trace_look before)
{
	struct p3_trace_look now = p3_trace_look_now(clock);
	const struct timespec nap = {.tv_nsec = PACE_NS};
	if (now.ns - before.ns < PACE_NS) {
		nanosleep(&nap, NULL);
		now = p3_trace_look_now(clock);
	}
	double ns_per_tick = load_pace(before, now);
	return (struct scale){load_first_look(t, now, ns_per_tick), ns_per_tick};
}

/* ---- a file ---- */

static int load_bad_file(const char *path, const char *what)
{
	p3_tool_say("'%s': %s; expected a file of yod --trace, whole, or a node's core",
		path, what);
	return -EPROTO;
}

static int load_read_block(
	FILE *in, const char *path, struct td_trace *t, struct p3_traceblock_header *b)
{
	const struct p3_trace_header *h = &b->taken.header;
	if (b->magic != P3_TRACEBLOCK_MAGIC || b->node >= t->size ||
		b->fate > P3_TRACE_DIED || h->build_len > sizeof h->build ||
		b->taken.n > P3_TRACE_MOST + P3_TRACE_MOST / 2)
		return load_bad_file(path, "a node's part makes no sense");
	size_t n = b->taken.n;
	struct p3_trace_entry *entry = malloc(n * sizeof *entry + 1);
	if (!entry)
		return load_no_memory();
	int rc = fread(entry, sizeof *entry, n, in) == n
			 ? load_add_block(t, &b->taken, b->node,
				   (enum p3_trace_fate)b->fate, b->now, entry)
			 : load_bad_file(path, "it ends in the middle");
	free(entry);
	return rc;
}

static int load_read_blocks(
	FILE *in, const char *path, struct td_trace *t, struct scale *s)
{
	struct p3_traceblock_header b;
	int rc = 0;
	size_t n;
	struct p3_trace_look last = s->began;
	while (!rc && (n = fread(&b, 1, sizeof b, in)) == sizeof b) {
		rc = load_read_block(in, path, t, &b);
		if (b.now.ticks > last.ticks)
			last = b.now;
	}
	if (!rc && n)
		rc = load_bad_file(path, "it ends in the middle");
	s->ns_per_tick = load_pace(s->began, last);
	return rc;
}

/* Read a file of yod as that of the next host. */
static int load_read_file(
	FILE *in, const char *path, struct td_trace *t, struct scale *s_out)
{
	uint32_t before = t->nblocks;
	struct p3_tracefile_header h;
	if (fread(&h, 1, sizeof h, in) != sizeof h || h.magic != P3_TRACEFILE_MAGIC)
		return load_bad_file(path, "it is something else");
	if (h.version != P3_TRACE_VERSION || !h.size || h.size > P3_MAX_NODES)
		return load_bad_file(path, "it is of another version");
	if (t->nfiles && (t->jid != h.jid || t->size != h.size))
		return load_bad_file(path, "it is of another job than the first file");
	*s_out = (struct scale){.began = h.began};
	t->jid = h.jid;
	t->size = h.size;
	int rc = load_read_blocks(in, path, t, s_out);
	if (!rc && t->nblocks == before)
		rc = load_bad_file(path, "no node was traced");
	t->nfiles++;
	return rc;
}

/* ---- a core ---- */

static struct p3_trace_look load_last_look(const struct p3_trace_taken *taken)
{
	struct p3_trace_look last = {taken->header.ticks, taken->header.ns};
	for (uint32_t i = 0; i < taken->n; i++)
		if (taken->entry[i].ticks > last.ticks)
			last.ticks = taken->entry[i].ticks;
	return last;
}

static int load_add_dumped(void *arg, const struct p3_trace_taken *taken)
{
	struct td_trace *t = arg;
	t->size = taken->header.nnodes;
	return load_add_block(t, taken, taken->header.node, P3_TRACE_DUMPED,
		load_last_look(taken), taken->entry);
}

/* Read a core.  It has one reading of the clock, so this machine's clock provides the
 * rate. */
static int load_read_core(
	int fd, const char *path, struct td_trace *t, struct scale *s_out)
{
	int rc = td_core_each(path, fd, load_add_dumped, t);
	if (rc)
		return rc;
	const struct p3_trace_header *first = &t->block[0].header;
	struct p3_trace_look before = p3_trace_look_now(first->clock);
	struct scale s = load_measure(t, first->clock, before);
	s.began = (struct p3_trace_look){first->ticks, first->ns};
	for (uint32_t i = 1; i < t->nblocks; i++)
		if (t->block[i].header.ticks < s.began.ticks)
			s.began.ticks = t->block[i].header.ticks;
	*s_out = s;
	return 0;
}

/* Return true for an ELF file.  Look at one byte only, which can be put back into a
 * pipe. */
static bool load_is_elf(FILE *in)
{
	int c = getc(in);
	(void)ungetc(c, in);
	return c == ELFMAG0;
}

static FILE *load_open_file(const char *path)
{
	struct stat st;
	FILE *in = fopen(path, "re");
	if (in && !fstat(fileno(in), &st) && !S_ISDIR(st.st_mode))
		return in;
	p3_tool_say("'%s': %s; expected a file of yod --trace, or a node's core", path,
		in ? "a directory" : strerror(errno));
	if (in)
		fclose(in);
	return NULL;
}

/* Read a file, or a core if it is the only one. */
static int load_read_one(const char *path, struct td_trace *t, struct scale *s, bool only)
{
	FILE *in = load_open_file(path);
	if (!in)
		return -ENOENT;
	bool elf = load_is_elf(in);
	int rc = elf && only ? load_read_core(fileno(in), path, t, s)
		 : elf ? load_bad_file(path, "a core, which has no clock of its host")
		       : load_read_file(in, path, t, s);
	fclose(in);
	return rc;
}

int td_load_files(char *const *paths, uint32_t n, struct td_trace *trace_out)
{
	struct td_trace t = {.file = calloc(n, sizeof *t.file)};
	struct scale *scales = calloc(n, sizeof *scales);
	int rc = t.file && scales ? 0 : load_no_memory();
	for (uint32_t i = 0; i < n && !rc; i++) {
		t.file[i].path = paths[i];
		rc = load_read_one(paths[i], &t, &scales[i], n == 1);
	}
	rc = rc ? rc : load_in_order(&t, scales);
	free(scales);
	return load_end(&t, rc, trace_out);
}

/* ---- a job ---- */

static enum p3_trace_fate load_fate_of(const struct p3_look_node *n)
{
	return n->msg.state == P3_RDV_JOINED ? P3_TRACE_RUNS
	       : n->msg.state == P3_RDV_DIED ? P3_TRACE_DIED
					     : P3_TRACE_LEFT;
}

static int load_add_node(struct td_trace *t, struct p3_look *look, uint32_t i)
{
	struct p3_trace_taken *taken = p3_look_node_trace(look, i);
	if (!taken)
		return 0;
	int rc = load_add_block(t, taken, i, load_fate_of(p3_look_node(look, i)),
		p3_trace_look_now(taken->header.clock), taken->entry);
	free(taken);
	return rc;
}

static int load_no_job(uint32_t pid, int rc)
{
	p3_tool_say("--job %u: %s; expected the number of a job of yours, or a process "
		    "of one",
		pid, strerror(-rc));
	return rc;
}

static int load_read_job(struct td_trace *t, struct p3_look *look)
{
	uint32_t clock = p3_trace_clock();
	struct p3_trace_look before = p3_trace_look_now(clock);
	int rc = p3_look_again(look);
	t->jid = p3_look_job(look)->jid;
	t->size = p3_look_job(look)->size;
	if (rc)
		return load_no_job(t->jid, rc);
	if (t->size > P3_MAX_NODES)
		return load_no_job(t->jid, -EPROTO);
	for (uint32_t i = 0; !rc && i < t->size; i++)
		rc = load_add_node(t, look, i);
	struct scale s = load_measure(t, clock, before);
	if (!rc && !t->nblocks) {
		p3_tool_say("job %u has no trace; expected one that was started with yod "
			    "--trace FILE, or with PTL3_TRACE set",
			t->jid);
		return -ENODATA;
	}
	return rc ? rc : load_in_order(t, &s);
}

int td_load_job(uint32_t pid, struct td_trace *trace_out)
{
	struct td_trace t = {.jid = 0};
	struct p3_look *look;
	int rc = p3_look_open(pid, &look);
	if (rc)
		return load_no_job(pid, rc);
	rc = load_read_job(&t, look);
	p3_look_close(look);
	return load_end(&t, rc, trace_out);
}
