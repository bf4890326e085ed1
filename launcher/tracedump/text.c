/* SPDX-License-Identifier: BSD-3-Clause */
/* tracedump's text output: functions and offsets, names, filters, lines. */
#include "launcher/tracedump/tracedump.h"
#include "launcher/tools/options.h"
#include "shm/why.h"

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
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

/* Load an object.  Its name comes from a trace, so it may be anything: refuse pipes and
 * devices.  After success the descriptor belongs to elfutils. */
static void code_open_object(struct object *o)
{
	const char *path = o->header.object;
	const unsigned char *bits;
	struct stat st;
	GElf_Addr at;
	Dwfl_Module *m = NULL;
	int fd = *path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
	bool file = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
	o->dwfl = file ? dwfl_begin(&callbacks) : NULL;
	if (o->dwfl) {
		dwfl_report_begin(o->dwfl);
		m = dwfl_report_offline(o->dwfl, path, path, fd);
		dwfl_report_end(o->dwfl, NULL, NULL);
	}
	if (!m && fd >= 0)
		close(fd);
	int n = m ? dwfl_module_build_id(m, &bits, &at) : 0;
	if (!m)
		p3_tool_say("'%s': no such ELF file: functions have no names", path);
	else if (n <= 0 || (uint32_t)n != o->header.build_len ||
		 memcmp(bits, o->header.build, (size_t)n) != 0)
		p3_tool_say(
			"'%s' is not the build that was traced: functions have no names",
			path);
	else if (dwfl_module_getelf(m, &o->bias))
		o->module = m;
}

static const struct object *code_object_of(const struct p3_trace_header *h)
{
	for (unsigned i = 0; i < nobjects; i++)
		if (!strcmp(objects[i].header.object, h->object) &&
			!memcmp(objects[i].header.build, h->build, sizeof h->build))
			return &objects[i];
	if (nobjects == OBJECTS)
		return NULL;
	struct object *o = &objects[nobjects++];
	o->header = *h;
	code_open_object(o);
	return o;
}

struct td_code td_code_of(const struct td_trace *t, const struct td_event *ev)
{
	const struct object *o = code_object_of(&t->block[ev->block].header);
	struct td_code is = {"?", ev->e.code};
	GElf_Off off = 0;
	GElf_Sym sym;
	for (unsigned i = 0; i < nplaces; i++)
		if (places[i].object == o && places[i].code == ev->e.code)
			return places[i].is;
	/* It is the return address of a call, so look up the byte before it. */
	const char *name =
		o && o->module && ev->e.code
			? dwfl_module_addrinfo(o->module, ev->e.code - 1u + o->bias, &off,
				  &sym, NULL, NULL, NULL)
			: NULL;
	if (name)
		is = (struct td_code){name, (uint32_t)off + 1};
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

/* ---- names; tests/trace compares them with the code's own ---- */

static const char *const ops[] = {"?", "ni_open", "ni_close", "ni_check", "ni_status",
	"whose", "ac_entry", "me_attach", "me_unlink", "md_attach", "md_bind",
	"md_unlink", "md_update", "eq_alloc", "eq_free", "eq_watch", "eq_reclaim", "put",
	"get", "getput", "dump", "grow", "peer_up", "peer_pids", "peer_down", "peer_told",
	"peer_over", "held", "list", "cci", "pt_hold", "inject", "waits_for"};
static const char *const events[] = {"GET_START", "GET_END", "PUT_START", "PUT_END",
	"GETPUT_START", "GETPUT_END", "REPLY_START", "REPLY_END", "SEND_START",
	"SEND_END", "ACK", "UNLINK"};
static const char *const requests[] = {"?", "?", "put", "get", "getput", "cci_msg",
	"cci_connect", "cci_decide", "cci_write", "cci_read", "cci_ready", "cci_alive"};
static const char *const responses[] = {
	"?", "?", "none", "ack", "done", "reply", "reply_long", "cci"};
static const char *const movers[] = {"waits", "window", "cma", "direct"};
static const char *const sleepers[] = {"host", "nic"};
static const char *const holders[] = {"?", "host", "nic"};
static const char *const hits[] = {"none", "hit"};
static const char *const fails[] = {"ok", "failed"};
static const char *const deaths[] = {"left", "died"};

#define NAMES(list) list, sizeof list / sizeof *list

static const struct {
	const char *const *name;
	size_t n;
} values[P3_TRACE_POINTS_N] = {[P3_TRACE_COMMAND] = {NAMES(ops)},
	[P3_TRACE_EXECUTE] = {NAMES(ops)},
	[P3_TRACE_TAKEN] = {NAMES(events)},
	[P3_TRACE_EVENT] = {NAMES(events)},
	[P3_TRACE_PARK] = {NAMES(sleepers)},
	[P3_TRACE_WAKE] = {NAMES(sleepers)},
	[P3_TRACE_LEASE] = {NAMES(holders)},
	[P3_TRACE_GIVEN] = {NAMES(holders)},
	[P3_TRACE_SEND] = {NAMES(requests)},
	[P3_TRACE_TAKE] = {NAMES(requests)},
	[P3_TRACE_WAIT] = {NAMES(requests)},
	[P3_TRACE_DELIVER] = {NAMES(requests)},
	[P3_TRACE_MATCH] = {NAMES(hits)},
	[P3_TRACE_ANSWER] = {NAMES(responses)},
	[P3_TRACE_ANSWERED] = {NAMES(responses)},
	[P3_TRACE_BEGIN] = {NAMES(movers)},
	[P3_TRACE_END] = {NAMES(fails)},
	[P3_TRACE_DEATH] = {NAMES(deaths)}};

const char *td_point(unsigned point)
{
	return point < P3_TRACE_POINTS_N ? p3_trace_name[point] : "?";
}

const char *td_value(unsigned point, unsigned value)
{
	if (point == P3_TRACE_BEGIN && value == P3_TRACE_SERVED)
		return "served";
	if (point >= P3_TRACE_POINTS_N || !values[point].name)
		return "";
	if (values[point].name == requests && value >= values[point].n)
		return p3_why_atomic(value - (unsigned)values[point].n);
	return value < values[point].n ? values[point].name[value] : "?";
}

struct td_name td_name_of(uint32_t name)
{
	struct td_name n;
	snprintf(n.text, sizeof n.text, "%s%u", name & P3_TRACE_BASE ? "b" : "",
		name & 0x3fffffff);
	return n;
}

/* ---- details ---- */

static int text_say_detail(const struct td_event *ev, char *text, size_t size)
{
	uint64_t d = ev->e.detail;
	switch (ev->e.point) {
	case P3_TRACE_MATCH:
		return snprintf(text, size, " bits %" PRIx64, d);
	case P3_TRACE_TAKEN:
	case P3_TRACE_EVENT:
		return snprintf(
			text, size, " queue %u.%u", (unsigned)(d >> 32), (unsigned)d);
	case P3_TRACE_SEND:
		return snprintf(text, size, " %u B", (unsigned)d);
	case P3_TRACE_COMMAND:
		if (!strcmp(td_value(ev->e.point, ev->e.value), "me_attach"))
			return snprintf(text, size, " bits %" PRIx64, d);
		if (ev->e.peer == P3_TRACE_NOBODY)
			return snprintf(text, size, " %" PRIx64, d);
		return d == UINT64_MAX ? snprintf(text, size, " all")
				       : snprintf(text, size, " %" PRIu64 " B", d);
	case P3_TRACE_TAKE:
	case P3_TRACE_DELIVER:
	case P3_TRACE_DROP:
	case P3_TRACE_ANSWER:
	case P3_TRACE_ANSWERED:
	case P3_TRACE_BEGIN:
	case P3_TRACE_END:
		return snprintf(text, size, " %" PRIu64 " B", d);
	default:
		return 0;
	}
}

void td_describe(const struct td_event *ev, char *text, size_t size)
{
	char peer[40] = "", detail[40] = "";
	const char *value = td_value(ev->e.point, ev->e.value);
	bool message = ev->e.which && ev->e.ring != P3_TRACE_HOST;
	if (ev->e.peer != P3_TRACE_NOBODY && message)
		snprintf(peer, sizeof peer, " %s %u #%s", ev->e.in ? "from" : "to",
			ev->e.peer, td_name_of(ev->e.which).text);
	else if (ev->e.peer != P3_TRACE_NOBODY)
		snprintf(peer, sizeof peer, " node %u", ev->e.peer);
	(void)text_say_detail(ev, detail, sizeof detail);
	snprintf(text, size, "%s%s%s%s%s", td_point(ev->e.point), *value ? " " : "",
		value, peer, detail);
}

/* ---- filters ---- */

static bool text_shows_node(const struct td_filter *f, uint32_t node)
{
	return !f->some || p3_ranks_has(&f->nodes, node);
}

bool td_shows(
	const struct td_trace *t, const struct td_filter *f, const struct td_event *ev)
{
	return ev->ns >= f->since && ev->ns <= f->until &&
	       text_shows_node(f, ev->e.node) &&
	       (f->peer == TD_NONE || ev->e.peer == f->peer) &&
	       (f->message == TD_NONE || ev->message == f->message) &&
	       (!f->at || !strcmp(td_point(ev->e.point), f->at) ||
		       !strcmp(td_value(ev->e.point, ev->e.value), f->at) ||
		       !strcmp(td_code_of(t, ev).function, f->at));
}

/* ---- lines ---- */

static void text_line(const struct td_trace *t, const struct td_event *ev, FILE *out)
{
	char words[160], function[256];
	struct td_code code = td_code_of(t, ev);
	const struct td_event *before =
		ev->before == TD_NONE ? NULL : &t->event[ev->before];
	td_describe(ev, words, sizeof words);
	snprintf(function, sizeof function, "%s", code.function);
	p3_trace_printable(function, sizeof function);
	fprintf(out, "%12.3f: %u: %3u: %08x %s+%04x", (double)ev->ns / 1e3, ev->e.node,
		ev->e.value, ev->e.code, function, code.offset);
	if (before)
		fprintf(out, " (%" PRId64 " ns)", ev->ns - before->ns);
	if (ev->e.ring == P3_TRACE_HOST)
		fprintf(out, " host %u", ev->e.which);
	fprintf(out, " %s\n", words);
}

static void text_say_block(const struct td_block *b, FILE *out)
{
	static const char *const fates[] = {"runs", "left", "died", "dumped core"};
	fprintf(out, "# node %u: %s, pid %u, %s, %" PRIu64 "+%" PRIu64 " records written",
		b->node, b->header.program, b->header.os_pid, fates[b->fate],
		b->written[P3_TRACE_FW], b->written[P3_TRACE_HOST]);
	if (b->lost)
		fprintf(out, ", %" PRIu64 " lost", b->lost);
	if (b->unsound)
		fprintf(out, ", %u make no sense", b->unsound);
	fputc('\n', out);
}

/* Describe the clock of a host's file. */
static void text_say_file(const struct td_trace *t, uint32_t i, FILE *out)
{
	const struct td_file *f = &t->file[i];
	fprintf(out, "# %s: ", f->path);
	if (!i)
		fputs("times are by its clock", out);
	else if (!f->known)
		fputs("clock not known: it exchanges no messages with the others", out);
	else
		fprintf(out, "clock %+.1f us", (double)f->ahead / 1e3);
	if (i && f->known && f->error == TD_ERROR_UNKNOWN)
		fputs(", messages go in one direction only, so the error is not known",
			out);
	else if (i && f->known)
		fprintf(out, ", error %.1f us", (double)f->error / 1e3);
	if (f->moved)
		fprintf(out,
			"; %u records moved by up to %.1f us, since no message is taken "
			"before it was sent",
			f->moved, (double)f->moved_most / 1e3);
	fputc('\n', out);
}

void td_text(const struct td_trace *t, const struct td_filter *f, FILE *out)
{
	for (uint32_t i = 0; t->nfiles > 1 && i < t->nfiles; i++)
		text_say_file(t, i, out);
	for (uint32_t i = 0; i < t->nblocks; i++)
		if (text_shows_node(f, t->block[i].node))
			text_say_block(&t->block[i], out);
	fputs("#    time us: node: value: code function+offset (since the record before "
	      "it) what\n",
		out);
	for (uint32_t i = 0; i < t->nevents; i++)
		if (td_shows(t, f, &t->event[i]))
			text_line(t, &t->event[i], out);
}
