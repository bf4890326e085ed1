/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Traces in an ELF core that the kernel or gdb's gcore has written.  A node's published
 * segment begins a mapping of its own and tells its address; its trace is behind it.
 * Peers' segments are in no core (shm/seg.h).  A core may be cut off, or not be a
 * node's.
 */
#include "launcher/tracedump/tracedump.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
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

static int say(const struct core *c, int rc, const char *what)
{
	td_say("'%s': %s; expected a file of yod --trace, or the core of a node that was "
	       "traced",
		c->path, what);
	return rc;
}

/* ---- memory ---- */

/* Read bytes at an address; they may extend over several mappings. */
static bool read_at(const struct core *c, uint64_t at, void *to, uint64_t len)
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

static int take_mappings(struct core *c, Elf *elf)
{
	size_t n;
	GElf_Phdr p;
	if (elf_getphdrnum(elf, &n) || n > MAPPINGS)
		return say(c, -EPROTO, "its mappings make no sense");
	c->map = calloc(n + 1, sizeof *c->map);
	if (!c->map)
		return say(c, -ENOMEM, "out of memory");
	for (size_t i = 0; i < n; i++)
		if (gelf_getphdr(elf, (int)i, &p) && p.p_type == PT_LOAD && p.p_filesz)
			c->map[c->n++] =
				(struct mapping){p.p_vaddr, p.p_offset, p.p_filesz};
	return 0;
}

static int open_core(struct core *c)
{
	GElf_Ehdr h;
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(c->fd, ELF_C_READ, NULL);
	int rc = 0;
	if (!elf || !gelf_getehdr(elf, &h) || h.e_type != ET_CORE)
		rc = say(c, -EPROTO, "an ELF file, but no core");
	if (!rc)
		rc = take_mappings(c, elf);
	elf_end(elf);
	return rc;
}

/* ---- nodes ---- */

static bool is_node(const struct core *c, const struct mapping *m)
{
	struct p3_seg_header h;
	return m->len >= sizeof h && read_at(c, m->at, &h, sizeof h) &&
	       h.magic == P3_SEG_MAGIC && h.self == m->at && h.nnodes &&
	       h.nnodes <= P3_MAX_NODES && h.node < h.nnodes;
}

/* Take the trace behind a segment whose header this mapping has.  Return NULL if the
 * segment has no trace, or the trace is not in this core. */
static struct p3_trace_taken *take_trace(const struct core *c, const struct mapping *m)
{
	struct p3_seg_header h;
	struct p3_trace_header t;
	if (!read_at(c, m->at, &h, sizeof h))
		return NULL;
	uint64_t at = m->at + p3_layout_of(h.nnodes).seg_len;
	if (!read_at(c, at, &t, sizeof t) || t.magic != P3_TRACE_MAGIC ||
		t.records > P3_TRACE_MOST)
		return NULL;
	uint64_t len = p3_trace_len(t.records);
	void *region = aligned_alloc(P3_PAGE, p3_round_up(len + 1, P3_PAGE));
	struct p3_trace_taken *taken =
		region && read_at(c, at, region, len) ? p3_trace_read(region, len) : NULL;
	free(region);
	return taken;
}

/* A core has hugepages only if its process' core filter includes them. */
#define NO_NODE                                                                          \
	"no node's memory is in this core, or it lay in hugepages, which "               \
	"/proc/PID/coredump_filter leaves out by default (0x73 has them)"

static int each_node(const struct core *c,
	int (*found)(void *arg, const struct p3_trace_taken *taken), void *arg)
{
	unsigned nodes = 0, traces = 0;
	int rc = 0;
	for (size_t i = 0; i < c->n && !rc; i++) {
		if (!is_node(c, &c->map[i]))
			continue;
		nodes++;
		struct p3_trace_taken *taken = take_trace(c, &c->map[i]);
		traces += taken != NULL;
		rc = taken ? found(arg, taken) : 0;
		free(taken);
	}
	if (!rc && !nodes)
		rc = say(c, -ENODATA, NO_NODE);
	else if (!rc && !traces)
		rc = say(c, -ENODATA, "its node was not traced, or the core is cut off");
	return rc;
}

int td_core_each(const char *path, int fd,
	int (*found)(void *arg, const struct p3_trace_taken *taken), void *arg)
{
	struct core c = {.path = path, .fd = fd};
	int rc = open_core(&c);
	if (!rc)
		rc = each_node(&c, found, arg);
	free(c.map);
	return rc;
}
