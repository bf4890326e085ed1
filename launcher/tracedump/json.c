/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Output in Trace Event Format: a process for each node, a thread for its firmware and
 * each of its host threads; complete events (X) for slices, flows (s, t, f) for
 * messages, async events (b, e) for long transfers.
 */
#include "launcher/tracedump/tracedump.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

struct writer {
	const struct td_trace *t;
	const struct td_filter *f;
	FILE *out;
	bool any;
	bool failed;
};

static void js_put(struct writer *w, json_t *o)
{
	fputs(w->any ? ",\n" : "\n", w->out);
	w->any = true;
	w->failed |= !o || json_dumpf(o, w->out, JSON_COMPACT | JSON_REAL_PRECISION(15));
	json_decref(o);
}

static json_t *js_event(const char *ph, const char *name, uint32_t node, uint32_t thread)
{
	return json_pack("{s:s, s:s, s:I, s:I}", "ph", ph, "name", name, "pid",
		(json_int_t)node, "tid", (json_int_t)thread);
}

static void js_set_time(json_t *o, const char *name, int64_t ns)
{
	json_object_set_new(o, name, json_real((double)ns / 1e3));
}

/* ---- names of processes and threads ---- */

static void js_name_track(struct writer *w, const char *what, uint32_t node,
	uint32_t thread, const char *is)
{
	json_t *o = js_event("M", what, node, thread);
	json_object_set_new(o, "args", json_pack("{s:s}", "name", is));
	js_put(w, o);
}

static void js_name_thread(struct writer *w, const struct td_event *ev)
{
	char text[32];
	bool nic = (ev->e.point == P3_TRACE_PARK || ev->e.point == P3_TRACE_WAKE) &&
		   ev->e.value;
	snprintf(text, sizeof text, nic ? "NIC thread" : "host thread %u", ev->e.which);
	js_name_track(w, "thread_name", ev->e.node, ev->e.which, text);
}

static void js_name_tracks(struct writer *w)
{
	char text[64];
	for (uint32_t i = 0; i < w->t->nblocks; i++) {
		const struct td_block *b = &w->t->block[i];
		snprintf(text, sizeof text, "node %u: %s", b->node, b->header.program);
		js_name_track(w, "process_name", b->node, 0, text);
		js_name_track(w, "thread_name", b->node, 0, "firmware");
	}
	for (uint32_t i = 0; i < w->t->nevents; i++)
		if (w->t->event[i].e.ring == P3_TRACE_HOST &&
			w->t->event[i].after == TD_NONE)
			js_name_thread(w, &w->t->event[i]); /* the thread's last record */
}

/* ---- slices ---- */

static json_t *js_args_of(const struct td_trace *t, const struct td_event *ev)
{
	char words[160], at[120], message[64] = "";
	struct td_code code = td_code_of(t, ev);
	td_describe(ev, words, sizeof words);
	snprintf(at, sizeof at, "%.100s+0x%x", code.function, code.offset);
	p3_trace_printable(at, sizeof at);
	if (ev->message != TD_NONE) {
		const struct td_message *m = &t->message[ev->message];
		snprintf(message, sizeof message, "%u-%u:%s", m->from, m->to,
			td_name_of(m->name).text);
	}
	return json_pack("{s:s, s:s, s:s}", "what", words, "at", at, "message", message);
}

static void js_name_slice(
	const struct td_slice *s, const struct td_event *ev, char *text, size_t size)
{
	const char *value = td_value(ev->e.point, ev->e.value);
	bool ours = ev->e.point != P3_TRACE_DELIVER && ev->e.point != P3_TRACE_WAIT;
	const char *verb = ours || strcmp(s->name, "request") ? s->name : value;
	if (ev->e.ring == P3_TRACE_FW && ev->e.peer != P3_TRACE_NOBODY && verb == value)
		snprintf(text, size, "%s from %u", value, ev->e.peer);
	else
		snprintf(text, size, "%s%s%s", s->name, *value ? " " : "", value);
}

static void js_show_slice(void *arg, const struct td_slice *s)
{
	char name[64];
	struct writer *w = arg;
	const struct td_event *ev = &w->t->event[s->event];
	js_name_slice(s, ev, name, sizeof name);
	json_t *o = js_event("X", name, s->node, s->thread);
	js_set_time(o, "ts", s->from);
	js_set_time(o, "dur", s->to - s->from);
	json_object_set_new(o, "cat", json_string(td_point(ev->e.point)));
	json_object_set_new(o, "args", js_args_of(w->t, ev));
	js_put(w, o);
}

/* ---- flows ---- */

static void js_show_flow(struct writer *w, uint32_t i)
{
	struct td_stop stop[TD_STOPS];
	unsigned n = td_stops(w->t, w->f, &w->t->message[i], stop);
	for (unsigned k = 0; k < n && n > 1; k++) {
		const char *ph = !k ? "s" : k + 1 < n ? "t" : "f";
		json_t *o = js_event(ph, "message", stop[k].node, stop[k].thread);
		js_set_time(o, "ts", stop[k].ns);
		json_object_set_new(o, "cat", json_string("message"));
		json_object_set_new(o, "id", json_integer(i));
		if (*ph == 'f')
			json_object_set_new(o, "bp", json_string("e"));
		js_put(w, o);
	}
}

/* ---- long transfers ---- */

static void js_show_async(struct writer *w, const char *ph, const struct td_event *begin,
	uint32_t id, int64_t ns)
{
	char text[48];
	json_t *o = js_event(ph,
		begin->e.value == P3_TRACE_SERVED ? "bytes are read" : "bytes are moved",
		begin->e.node, 0);
	js_set_time(o, "ts", ns);
	snprintf(text, sizeof text, "%u.%u", begin->e.node, id);
	json_object_set_new(o, "cat", json_string("transfer"));
	json_object_set_new(o, "id", json_string(text));
	if (*ph == 'b')
		json_object_set_new(o, "args", js_args_of(w->t, begin));
	js_put(w, o);
}

/* Print transfers.  Of one message at most one transfer is under way in a node: as
 * sender, or as receiver. */
static void js_show_transfers(struct writer *w)
{
	const struct td_trace *t = w->t;
	uint32_t *begun = malloc(((size_t)t->nmessages * 2 + 1) * sizeof *begun);
	if (!begun)
		return;
	memset(begun, 0xff, (size_t)t->nmessages * 2 * sizeof *begun);
	for (uint32_t i = 0; i < t->nevents; i++) {
		const struct td_event *ev = &t->event[i];
		if (ev->message == TD_NONE || ev->e.ring != P3_TRACE_FW)
			continue;
		uint32_t *at = &begun[(size_t)ev->message * 2 + ev->e.in];
		if (ev->e.point == P3_TRACE_BEGIN)
			*at = i;
		if (ev->e.point != P3_TRACE_END || *at == TD_NONE)
			continue;
		if (td_shows(t, w->f, &t->event[*at])) {
			js_show_async(w, "b", &t->event[*at], i, t->event[*at].ns);
			js_show_async(w, "e", &t->event[*at], i, ev->ns);
		}
		*at = TD_NONE;
	}
	free(begun);
}

int td_json(const struct td_trace *t, const struct td_filter *f, FILE *out)
{
	struct writer w = {.t = t, .f = f, .out = out};
	fprintf(out,
		"{\"displayTimeUnit\":\"ns\",\"otherData\":{\"job\":%u,\"nodes\":%u},"
		"\"traceEvents\":[",
		t->jid, t->size);
	js_name_tracks(&w);
	td_each_slice(t, f, js_show_slice, &w);
	for (uint32_t i = 0; i < t->nmessages; i++)
		js_show_flow(&w, i);
	js_show_transfers(&w);
	fputs("\n]}\n", out);
	return w.failed ? -1 : 0;
}
