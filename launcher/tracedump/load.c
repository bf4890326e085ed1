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

/* ---- nodes ---- */

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

/* A core has hugepages only if its process' core filter includes them. */
#define NO_NODE                                                                          \
	"no node's memory is in this core, or it lay in hugepages, which "               \
	"/proc/PID/coredump_filter leaves out by default (0x73 has them)"

/* Set the mappings of a core. */
static int core_open_core(struct core *c)
{
	GElf_Ehdr h;
	GElf_Phdr p;
	size_t n;
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(c->fd, ELF_C_READ, NULL);
	int rc = 0;
	if (!elf || !gelf_getehdr(elf, &h) || h.e_type != ET_CORE)
		rc = core_say(c, -EPROTO, "an ELF file, but no core");
	else if (elf_getphdrnum(elf, &n) || n > MAPPINGS)
		rc = core_say(c, -EPROTO, "its mappings make no sense");
	else if (!(c->map = calloc(n + 1, sizeof *c->map)))
		rc = core_say(c, -ENOMEM, "out of memory");
	for (size_t i = 0; !rc && i < n; i++)
		if (gelf_getphdr(elf, (int)i, &p) && p.p_type == PT_LOAD && p.p_filesz)
			c->map[c->n++] =
				(struct mapping){p.p_vaddr, p.p_offset, p.p_filesz};
	elf_end(elf);
	return rc;
}

int td_core_each(const char *path, int fd,
	int (*found)(void *arg, const struct p3_trace_taken *taken), void *arg)
{
	struct core c = {.path = path, .fd = fd};
	int rc = core_open_core(&c);
	unsigned nodes = 0, traces = 0;
	for (size_t i = 0; i < c.n && !rc; i++) {
		const struct mapping *m = &c.map[i];
		struct p3_seg_header h;
		if (m->len < sizeof h || !core_read_at(&c, m->at, &h, sizeof h) ||
			h.magic != P3_SEG_MAGIC || h.self != m->at || !h.nnodes ||
			h.nnodes > P3_MAX_NODES || h.node >= h.nnodes)
			continue;
		nodes++;
		/* The trace is behind the segment whose header this mapping has. */
		struct core_seg s = {.c = &c, .at = m->at};
		struct p3_trace_taken *taken = p3_trace_find(core_bytes, &s);
		free(s.bytes);
		traces += taken != NULL;
		rc = taken ? found(arg, taken) : 0;
		free(taken);
	}
	if (!rc && !nodes)
		rc = core_say(&c, -ENODATA, NO_NODE);
	else if (!rc && !traces)
		rc = core_say(
			&c, -ENODATA, "its node was not traced, or the core is cut off");
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

/*
 * The clocks of several hosts.  A message is taken after it was sent, and its answer
 * comes after it was given.  With the clock of the one host ahead by d, the smallest
 * difference of such times in the one direction is an upper limit of d, and in the other
 * direction a lower one.  The estimate is in the middle, and its error half of the rest.
 */

#define NO_LIMIT INT64_MAX
#define TURNS    100 /* of the enforcement; each one moves records on by one message */

/* Two records on different hosts, of which the second is later. */
struct step {
	uint32_t first, second;
};

struct merge {
	struct td_trace *t;
	struct step *step;
	uint32_t nsteps;
	int64_t *least; /* of two files: smallest difference of a step from i to j */
};

static uint32_t merge_file_of(const struct td_trace *t, uint32_t event)
{
	return t->block[t->event[event].block].file;
}

static void merge_add_step(struct merge *m, uint32_t first, uint32_t second)
{
	if (first != TD_NONE && second != TD_NONE &&
		merge_file_of(m->t, first) != merge_file_of(m->t, second))
		m->step[m->nsteps++] = (struct step){first, second};
}

static int64_t *merge_least(const struct merge *m, uint32_t from, uint32_t to)
{
	return &m->least[from * m->t->nfiles + to];
}

/* Estimate how far clock j is ahead of clock i.  Return the error, TD_ERROR_UNKNOWN with
 * messages in one direction only, or -1 without any. */
static int64_t merge_estimate(
	const struct merge *m, uint32_t i, uint32_t j, int64_t *ahead_out)
{
	int64_t up = *merge_least(m, i, j), down = *merge_least(m, j, i);
	*ahead_out = 0;
	if (up == NO_LIMIT && down == NO_LIMIT)
		return -1;
	if (up == NO_LIMIT || down == NO_LIMIT) {
		*ahead_out = down == NO_LIMIT ? up : -down;
		return TD_ERROR_UNKNOWN;
	}
	*ahead_out = (up - down) / 2;
	return llabs(up + down) / 2;
}

/* Find the file that can be estimated best from those that are known. */
static bool merge_find_next(const struct merge *m, uint32_t *file_out)
{
	struct td_file *file = m->t->file;
	int64_t best = -1, ahead;
	struct td_file got = {.path = NULL};
	for (uint32_t k = 0; k < m->t->nfiles * m->t->nfiles; k++) {
		uint32_t i = k / m->t->nfiles, j = k % m->t->nfiles;
		int64_t error = file[i].known && !file[j].known
					? merge_estimate(m, i, j, &ahead)
					: -1;
		if (error < 0 || (best >= 0 && error >= best))
			continue;
		best = error;
		*file_out = j;
		got.ahead = file[i].ahead + ahead;
		got.error = file[i].error == TD_ERROR_UNKNOWN || error == TD_ERROR_UNKNOWN
				    ? TD_ERROR_UNKNOWN
				    : file[i].error + error;
	}
	if (best < 0)
		return false;
	file[*file_out].known = true;
	file[*file_out].ahead = got.ahead;
	file[*file_out].error = got.error;
	return true;
}

static void merge_move(struct td_trace *t, uint32_t i, int64_t to, int64_t *was)
{
	struct td_file *f = &t->file[merge_file_of(t, i)];
	f->moved += t->event[i].ns == was[i];
	t->event[i].ns = to;
	if (to - was[i] > f->moved_most)
		f->moved_most = to - was[i];
}

/* Move records that are before those that must precede them.  Return false if none is. */
static bool merge_move_steps(const struct merge *m, int64_t *was)
{
	bool any = false;
	for (uint32_t i = 0; i < m->nsteps; i++) {
		const struct step *s = &m->step[i];
		int64_t least_ns = m->t->event[s->first].ns + 1;
		if (m->t->event[s->second].ns >= least_ns)
			continue;
		merge_move(m->t, s->second, least_ns, was);
		any = true;
	}
	return any;
}

/* Keep the order of each node's own records; t->event is in order of the old times. */
static void merge_keep_order(struct td_trace *t, int64_t *last, int64_t *was)
{
	for (uint32_t b = 0; b < t->nblocks; b++)
		last[b] = INT64_MIN;
	for (uint32_t i = 0; i < t->nevents; i++) {
		int64_t *at = &last[t->event[i].block];
		if (t->event[i].ns < *at)
			merge_move(t, i, *at, was);
		*at = t->event[i].ns;
	}
}

int td_merge(struct td_trace *t)
{
	int rc = td_find_messages(t, true);
	uint32_t next, pairs = t->nfiles * t->nfiles;
	struct merge m = {.t = t,
		.step = calloc(2 * (size_t)t->nmessages + 1, sizeof *m.step),
		.least = calloc(pairs, sizeof *m.least)};
	int64_t *last = calloc(t->nblocks + 1, sizeof *last), first = 0;
	int64_t *was = calloc(t->nevents + 1, sizeof *was);
	bool room = m.step && m.least && last && was;
	/* A name that was sent twice, by two lives of a node, does not tell which records
	 * belong together. */
	for (uint32_t i = 0; !rc && room && i < t->nmessages; i++) {
		const struct td_message *msg = &t->message[i];
		if (msg->way[TD_SEND] == TD_NONE || msg->several & 1u << TD_SEND)
			continue;
		merge_add_step(&m, msg->way[TD_SEND], msg->way[TD_TAKE]);
		if (!(msg->several & (1u << TD_ANSWER | 1u << TD_ANSWERED)))
			merge_add_step(&m, msg->way[TD_ANSWER], msg->way[TD_ANSWERED]);
	}
	for (uint32_t i = 0; room && i < pairs; i++)
		m.least[i] = NO_LIMIT;
	for (uint32_t i = 0; i < m.nsteps; i++) {
		const struct step *s = &m.step[i];
		int64_t ns = t->event[s->second].ns - t->event[s->first].ns;
		int64_t *at = merge_least(
			&m, merge_file_of(t, s->first), merge_file_of(t, s->second));
		*at = ns < *at ? ns : *at;
	}
	t->file[0].known = true;
	while (!rc && room && merge_find_next(&m, &next))
		;
	for (uint32_t i = 0; !rc && room && i < t->nevents; i++)
		was[i] = t->event[i].ns -= t->file[merge_file_of(t, i)].ahead;
	for (int turn = 0; !rc && room && turn < TURNS && merge_move_steps(&m, was);
		turn++)
		merge_keep_order(t, last, was);
	/* Let no time be before the begin, which is that of the first file. */
	for (uint32_t i = 0; i < t->nevents; i++)
		first = t->event[i].ns < first ? t->event[i].ns : first;
	for (uint32_t i = 0; i < t->nevents; i++)
		t->event[i].ns -= first;
	free(m.step);
	free(m.least);
	free(last);
	free(was);
	return rc ? rc : room ? 0 : load_no_memory();
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
	double ns = (double)(ticks - s->began.ticks) * s->ns_per_tick;
	if (ticks < s->began.ticks || ticks > b->now.ticks || !(ns < LONGEST_NS)) {
		b->unsound++;
		return false;
	}
	ev->ns = (int64_t)(s->began.ns - scales[0].began.ns) + (int64_t)ns;
	return true;
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
	/* In a domain, records name peers by slots: set the ranks of these. */
	for (uint32_t i = 0; i < t->nevents; i++) {
		struct td_event *ev = &t->event[i];
		uint32_t slot = ev->e.peer;
		if (t->block[ev->block].header.nnodes == t->size ||
			slot == P3_TRACE_NOBODY)
			continue;
		ev->e.peer = P3_TRACE_NOBODY; /* a process of another job */
		for (uint32_t k = 0; k < t->nblocks; k++)
			if (t->block[k].header.node == slot)
				ev->e.peer = (uint16_t)t->block[k].node;
	}
	qsort(t->event, t->nevents, sizeof *t->event, load_by_time);
	if (t->nfiles > 1) {
		rc = td_merge(t);
		qsort(t->event, t->nevents, sizeof *t->event, load_by_time);
	}
	return rc ? rc : td_find_messages(t, false);
}

static double load_pace(struct p3_trace_look a, struct p3_trace_look b)
{
	if (b.ticks <= a.ticks || b.ns <= a.ns)
		return 1;
	return (double)(b.ns - a.ns) / (double)(b.ticks - a.ticks);
}

/* Return the clock's rate, and the earliest begin of a node that its range allows, or
 * now. */
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
	struct p3_trace_look first = now;
	for (uint32_t i = 0; i < t->nblocks; i++) {
		uint64_t ticks = t->block[i].header.ticks;
		if (ticks < first.ticks &&
			(double)(now.ticks - ticks) * ns_per_tick < (double)now.ns)
			first = (struct p3_trace_look){ticks, t->block[i].header.ns};
	}
	return (struct scale){first, ns_per_tick};
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

static int load_add_dumped(void *arg, const struct p3_trace_taken *taken)
{
	struct td_trace *t = arg;
	struct p3_trace_look last = {taken->header.ticks, taken->header.ns};
	for (uint32_t i = 0; i < taken->n; i++)
		if (taken->entry[i].ticks > last.ticks)
			last.ticks = taken->entry[i].ticks;
	t->size = taken->header.nnodes;
	return load_add_block(
		t, taken, taken->header.node, P3_TRACE_DUMPED, last, taken->entry);
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

/* Read a file, or a core if it is the only one. */
static int load_read_one(const char *path, struct td_trace *t, struct scale *s, bool only)
{
	struct stat st;
	FILE *in = fopen(path, "re");
	int rc = -ENOENT;
	if (in && !fstat(fileno(in), &st) && !S_ISDIR(st.st_mode)) {
		/* Look at one byte only, which can be put back into a pipe. */
		int c = getc(in);
		(void)ungetc(c, in);
		bool elf = c == ELFMAG0;
		rc = elf && only ? load_read_core(fileno(in), path, t, s)
		     : elf ? load_bad_file(path, "a core, which has no clock of its host")
			   : load_read_file(in, path, t, s);
	} else {
		p3_tool_say("'%s': %s; expected a file of yod --trace, or a node's core",
			path, in ? "a directory" : strerror(errno));
	}
	if (in)
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
	if (rc)
		td_free(&t);
	*trace_out = t;
	return rc;
}

/* ---- a job ---- */

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
	for (uint32_t i = 0; !rc && i < t->size; i++) {
		uint32_t state = p3_look_node(look, i)->msg.state;
		struct p3_trace_taken *taken = p3_look_node_trace(look, i);
		if (taken)
			rc = load_add_block(t, taken, i,
				state == P3_RDV_JOINED ? P3_TRACE_RUNS
				: state == P3_RDV_DIED ? P3_TRACE_DIED
						       : P3_TRACE_LEFT,
				p3_trace_look_now(taken->header.clock), taken->entry);
		free(taken);
	}
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
	if (rc)
		td_free(&t);
	*trace_out = t;
	return rc;
}
