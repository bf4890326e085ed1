/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The search for names of functions, by elfutils.  It also finds the symbols of a
 * stripped library, by its build-id, if they are installed.  A file that was rebuilt
 * since the trace has another build-id: then functions have no names.
 */
#include "launcher/tracedump/tracedump.h"

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OBJECTS 64
#define PLACES  1024 /* places of all objects; further ones are looked up each time */

struct object {
	struct p3_trace_header header; /* a header with the object's name and build */
	Dwfl *dwfl;
	Dwfl_Module *module; /* NULL: no names are known */
	GElf_Addr bias;
};

struct place {
	const struct object *object;
	uint32_t code;
	struct td_code is;
};

static struct object objects[OBJECTS];
static struct place places[PLACES];
static unsigned nobjects, nplaces;

static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = dwfl_standard_find_debuginfo,
	.section_address = dwfl_offline_section_address};

/* Open a file whose name comes from a trace, so it may be anything: refuse pipes and
 * devices. */
static int open_file(const char *path)
{
	struct stat st;
	int fd = *path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
	if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static bool is_same_build(Dwfl_Module *m, const struct p3_trace_header *h)
{
	const unsigned char *bits;
	GElf_Addr at;
	int n = dwfl_module_build_id(m, &bits, &at);
	return n > 0 && (uint32_t)n == h->build_len && !memcmp(bits, h->build, (size_t)n);
}

/* Load an object.  After success the descriptor belongs to elfutils. */
static Dwfl_Module *report(struct object *o, int fd)
{
	const char *path = o->header.object;
	dwfl_report_begin(o->dwfl);
	Dwfl_Module *m = dwfl_report_offline(o->dwfl, path, path, fd);
	if (!m)
		close(fd);
	dwfl_report_end(o->dwfl, NULL, NULL);
	return m;
}

static void open_object(struct object *o)
{
	const char *path = o->header.object;
	int fd = open_file(path);
	o->dwfl = fd < 0 ? NULL : dwfl_begin(&callbacks);
	Dwfl_Module *m = o->dwfl ? report(o, fd) : NULL;
	if (!m)
		td_say("'%s': no such ELF file: functions have no names", path);
	else if (!is_same_build(m, &o->header))
		td_say("'%s' is not the build that was traced: functions have no names",
			path);
	else if (dwfl_module_getelf(m, &o->bias))
		o->module = m;
}

static const struct object *object_of(const struct p3_trace_header *h)
{
	for (unsigned i = 0; i < nobjects; i++)
		if (!strcmp(objects[i].header.object, h->object) &&
			!memcmp(objects[i].header.build, h->build, sizeof h->build))
			return &objects[i];
	if (nobjects == OBJECTS)
		return NULL;
	struct object *o = &objects[nobjects++];
	o->header = *h;
	open_object(o);
	return o;
}

/* Look up an address.  It is the return address of a call, so the byte before it is
 * looked up. */
static struct td_code look_up(const struct object *o, uint32_t code)
{
	GElf_Off off = 0;
	GElf_Sym sym;
	const char *name = NULL;
	if (o && o->module && code)
		name = dwfl_module_addrinfo(
			o->module, code - 1u + o->bias, &off, &sym, NULL, NULL, NULL);
	return name ? (struct td_code){name, (uint32_t)off + 1}
		    : (struct td_code){"?", code};
}

struct td_code td_code_of(const struct td_trace *t, const struct td_event *ev)
{
	const struct object *o = object_of(&t->block[ev->block].header);
	for (unsigned i = 0; i < nplaces; i++)
		if (places[i].object == o && places[i].code == ev->e.code)
			return places[i].is;
	struct td_code is = look_up(o, ev->e.code);
	if (nplaces < PLACES)
		places[nplaces++] = (struct place){o, ev->e.code, is};
	return is;
}

void td_code_end(void)
{
	for (unsigned i = 0; i < nobjects; i++)
		if (objects[i].dwfl)
			dwfl_end(objects[i].dwfl);
	nobjects = nplaces = 0;
}
