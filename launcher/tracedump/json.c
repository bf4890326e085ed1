/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Output in Trace Event Format: a process for each node, a thread for its firmware and
 * each of its host threads; complete events (X) for slices, flows (s, t, f) for
 * messages, async events (b, e) for long transfers.
 */
#include "launcher/tracedump/tracedump.h"
#include "launcher/tools/rows.h"

#include <stdlib.h>
#include <string.h>

#define N(v) P3_ROW_N(v)

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

/* ---- names of processes and threads ---- */

static void js_name_track(struct writer *w, const char *what, uint32_t node,
	uint32_t thread, const char *is)
{
	js_put(w, json_pack("{s:s, s:s, s:I, s:I, s:{s:s}}", "ph", "M", "name", what,
			  "pid", N(node), "tid", N(thread), "args", "name", is));
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
	for (uint32_t i = 0; i < w->t->nevents; i++) {
		const struct td_event *ev = &w->t->event[i];
		bool nic =
			(ev->e.point == P3_TRACE_PARK || ev->e.point == P3_TRACE_WAKE) &&
			ev->e.value;
		snprintf(text, sizeof text, nic ? "NIC thread" : "host thread %u",
			ev->e.which);
		if (ev->e.ring == P3_TRACE_HOST && ev->after == TD_NONE)
			js_name_track(w, "thread_name", ev->e.node, ev->e.which,
				text); /* the thread's last record */
	}
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

static void js_show_slice(void *arg, const struct td_slice *s)
{
	char name[64];
	struct writer *w = arg;
	const struct td_event *ev = &w->t->event[s->event];
	const char *value = td_value(ev->e.point, ev->e.value);
	bool ours = ev->e.point != P3_TRACE_DELIVER && ev->e.point != P3_TRACE_WAIT;
	bool request = !ours && !strcmp(s->name, "request");
	if (ev->e.ring == P3_TRACE_FW && ev->e.peer != P3_TRACE_NOBODY && request)
		snprintf(name, sizeof name, "%s from %u", value, ev->e.peer);
	else
		snprintf(name, sizeof name, "%s%s%s", s->name, *value ? " " : "", value);
	js_put(w, json_pack("{s:s, s:s, s:I, s:I, s:f, s:f, s:s, s:o}", "ph", "X", "name",
			  name, "pid", N(s->node), "tid", N(s->thread), "ts",
			  (double)s->from / 1e3, "dur", (double)(s->to - s->from) / 1e3,
			  "cat", td_point(ev->e.point), "args", js_args_of(w->t, ev)));
}

/* ---- long transfers ---- */

static void js_show_async(struct writer *w, const char *ph, const struct td_event *begin,
	uint32_t id, int64_t ns)
{
	bool served = begin->e.value == P3_TRACE_SERVED;
	js_put(w, json_pack("{s:s, s:s, s:I, s:I, s:f, s:s, s:o, s:o*}", "ph", ph, "name",
			  served ? "bytes are read" : "bytes are moved", "pid",
			  N(begin->e.node), "tid", N(0), "ts", (double)ns / 1e3, "cat",
			  "transfer", "id", json_sprintf("%u.%u", begin->e.node, id),
			  "args", *ph == 'b' ? js_args_of(w->t, begin) : NULL));
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
	for (uint32_t i = 0; i < t->nmessages; i++) {
		struct td_stop stop[TD_STOPS];
		unsigned n = td_stops(t, f, &t->message[i], stop);
		for (unsigned k = 0; k < n && n > 1; k++) {
			const char *ph = !k ? "s" : k + 1 < n ? "t" : "f";
			js_put(&w,
				json_pack("{s:s, s:s, s:I, s:I, s:f, s:s, s:I, s:s*}",
					"ph", ph, "name", "message", "pid",
					N(stop[k].node), "tid", N(stop[k].thread), "ts",
					(double)stop[k].ns / 1e3, "cat", "message", "id",
					N(i), "bp", *ph == 'f' ? "e" : NULL));
		}
	}
	js_show_transfers(&w);
	fputs("\n]}\n", out);
	return w.failed ? -1 : 0;
}
