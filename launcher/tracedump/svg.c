/* SPDX-License-Identifier: BSD-3-Clause */
/* A picture for documents: a row for the host threads and one for the firmware of each
 * node. */
#include "launcher/tracedump/tracedump.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH  1100.0
#define LEFT   110.0
#define ROW    44
#define TOP    34
#define TICKS  8
#define LETTER 6.0 /* width of a letter in pixels */

/* Length of a picture without a range: its slices have room for names. */
#define BUSIEST_NS 4000

struct picture {
	const struct td_trace *t;
	const struct td_filter *f;
	FILE *out;
	int64_t from, to;
	int row[P3_MAX_NODES]; /* row of a node; -1: not shown */
	int rows;
	double *named; /* of host threads and firmware of each row: names end there */
};

static const char *const colours[P3_TRACE_POINTS_N] = {[P3_TRACE_COMMAND] = "#4878a8",
	[P3_TRACE_TAKEN] = "#4878a8",
	[P3_TRACE_PARK] = "#d0d0d0",
	[P3_TRACE_SEND] = "#e09040",
	[P3_TRACE_TAKE] = "#b0b0b0",
	[P3_TRACE_MATCH] = "#68a868",
	[P3_TRACE_EVENT] = "#b868a8",
	[P3_TRACE_DELIVER] = "#a8c8a8",
	[P3_TRACE_BEGIN] = "#d8c040",
	[P3_TRACE_END] = "#d8c040"};

static double svg_x_of(const struct picture *p, int64_t ns)
{
	double all = (double)(p->to - p->from);
	return LEFT + (WIDTH - LEFT - 10) * (double)(ns - p->from) / (all > 0 ? all : 1);
}

static int svg_line_of(const struct picture *p, uint32_t node, uint32_t thread)
{
	return 2 * p->row[node] + (thread == 0);
}

static int svg_y_of(const struct picture *p, uint32_t node, uint32_t thread)
{
	return TOP + ROW * svg_line_of(p, node, thread);
}

/* ---- range ---- */

/* Narrow a filter that has neither a range nor a message to the BUSIEST_NS in which most
 * records begin: the slices of a whole trace would be thinner than a pixel. */
static void svg_narrow(const struct td_trace *t, struct td_filter *f)
{
	const struct td_filter all = *f;
	uint32_t first = 0, n = 0, most = 0;
	if (f->since != INT64_MIN || f->until != INT64_MAX || f->message != TD_NONE)
		return;
	for (uint32_t i = 0; i < t->nevents; i++) {
		if (!td_shows(t, &all, &t->event[i]))
			continue;
		n++;
		for (; t->event[i].ns - t->event[first].ns > BUSIEST_NS; first++)
			n -= td_shows(t, &all, &t->event[first]);
		if (n <= most)
			continue;
		most = n;
		f->since = t->event[i].ns - BUSIEST_NS;
		f->until = t->event[i].ns;
	}
}

static void svg_span(struct picture *p)
{
	bool any = false;
	p->from = p->to = 0;
	memset(p->row, 0xff, sizeof p->row);
	for (uint32_t i = 0; i < p->t->nevents; i++) {
		const struct td_event *ev = &p->t->event[i];
		if (!td_shows(p->t, p->f, ev))
			continue;
		p->from = any ? p->from : ev->ns;
		any = true;
		p->to = ev->ns;
		p->row[ev->e.node] = 0;
	}
	for (unsigned i = 0; i < P3_MAX_NODES; i++)
		if (!p->row[i])
			p->row[i] = p->rows++;
}

/* ---- drawing ---- */

/* Draw the axis: its labels have four digits at most, and the first has their unit. */
static void svg_draw_times(const struct picture *p)
{
	static const char *const units[] = {"\xc2\xb5s", "ms", "s"};
	double all = (double)(p->to - p->from), unit = 1e3;
	double step = pow(10, floor(log10((all > 1 ? all : 1) / TICKS)));
	size_t u = 0;
	step *= all / step > 5 * TICKS ? 5 : all / step > 2 * TICKS ? 2 : 1;
	for (; u + 1 < sizeof units / sizeof *units && all >= 1e4 * unit; u++)
		unit *= 1e3;
	for (double at = 0; at <= all; at += step) {
		char words[32];
		double x = svg_x_of(p, p->from + (int64_t)at);
		snprintf(words, sizeof words, at > 0 ? "%.4g" : "%.4g %s", at / unit,
			units[u]);
		/* A label is at x, or as far to the left as it must be to fit. */
		double most = WIDTH - LETTER * (double)strlen(words) - 2;
		fprintf(p->out,
			"<line x1=\"%.1f\" y1=\"22\" x2=\"%.1f\" y2=\"%d\" "
			"stroke=\"#ddd\"/>\n<text x=\"%.1f\" y=\"16\">%s</text>\n",
			x, x, TOP + 2 * ROW * p->rows, x - 6 < most ? x - 6 : most,
			words);
	}
}

/* Draw a slice, cut off at the picture's edges. */
static void svg_draw_slice(void *arg, const struct td_slice *s)
{
	const struct picture *p = arg;
	unsigned point = p->t->event[s->event].e.point;
	double x = svg_x_of(p, s->from > p->from ? s->from : p->from);
	double w = svg_x_of(p, s->to < p->to ? s->to : p->to) - x;
	const char *colour = point < P3_TRACE_POINTS_N ? colours[point] : NULL;
	if (w >= 0)
		fprintf(p->out,
			"<rect x=\"%.1f\" y=\"%u\" width=\"%.1f\" height=\"%u\" "
			"fill=\"%s\" stroke=\"%s\"/>\n",
			x, (unsigned)svg_y_of(p, s->node, s->thread) + 4 + 3 * s->depth,
			w > 0.6 ? w : 0.6, ROW - 8 - 6 * s->depth,
			s->frame ? "none"
			: colour ? colour
				 : "#c8b8a0",
			s->frame ? "#999" : "none");
}

/* Write the name of a slice over the arrows, with a light edge around the letters: level
 * if it fits, upright in a narrow slice.  Omit a name that fits in neither way, or that
 * another one of its row leaves no room. */
static void svg_draw_name(void *arg, const struct td_slice *s)
{
	const struct picture *p = arg;
	double left = svg_x_of(p, s->from > p->from ? s->from : p->from);
	double right = svg_x_of(p, s->to < p->to ? s->to : p->to), x = (left + right) / 2;
	double length = LETTER * (double)strlen(s->name), y = ROW / 2;
	double *named = &p->named[svg_line_of(p, s->node, s->thread)];
	bool level = right - left > length + 4;
	double w = level ? length : LETTER + 6;
	if (s->frame ||
		(!level &&
			(right - left < LETTER + 5 || ROW - 8 - 6 * s->depth < length)) ||
		x - w / 2 < *named)
		return;
	*named = x + w / 2;
	y += svg_y_of(p, s->node, s->thread);
	fprintf(p->out,
		"<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" fill=\"#111\" "
		"stroke=\"#fff\" stroke-width=\"2.5\" stroke-linejoin=\"round\" "
		"paint-order=\"stroke\" transform=\"rotate(%d %.1f %.1f)\">%s</text>\n",
		x, y + 4, level ? 0 : -90, x, y, s->name);
}

static void svg_draw_arrows(const struct picture *p, const struct td_message *m)
{
	struct td_stop stop[TD_STOPS];
	unsigned n = td_stops(p->t, p->f, m, stop);
	for (unsigned i = 1; i < n; i++) {
		const struct td_stop *a = &stop[i - 1], *b = &stop[i];
		fprintf(p->out,
			"<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" "
			"stroke=\"#c03030\" stroke-width=\"1.3\" "
			"marker-end=\"url(#tip)\"/>\n",
			svg_x_of(p, p->t->event[a->event].ns),
			svg_y_of(p, a->node, a->thread) + ROW / 2,
			svg_x_of(p, p->t->event[b->event].ns),
			svg_y_of(p, b->node, b->thread) + ROW / 2);
	}
}

int td_svg(const struct td_trace *t, const struct td_filter *asked, FILE *out)
{
	struct td_filter filter = *asked, *f = &filter;
	struct picture p = {.t = t, .f = f, .out = out};
	svg_narrow(t, f);
	svg_span(&p);
	p.named = calloc(2 * (size_t)p.rows + 1, sizeof *p.named);
	if (!p.named)
		return -ENOMEM;
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%d\" "
		"font-family=\"sans-serif\" font-size=\"11\" fill=\"#333\">\n"
		"<defs><marker id=\"tip\" markerWidth=\"7\" markerHeight=\"6\" "
		"refX=\"6\" refY=\"3\" orient=\"auto\"><path d=\"M0,0 L7,3 L0,6 z\" "
		"fill=\"#c03030\"/></marker></defs>\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
		WIDTH, TOP + 2 * ROW * p.rows + 24);
	for (uint32_t i = 0; i < P3_MAX_NODES; i++) {
		int y = svg_y_of(&p, i, 1);
		if (p.row[i] >= 0)
			fprintf(out,
				"<rect x=\"0\" y=\"%d\" width=\"%.0f\" height=\"%d\" "
				"fill=\"%s\"/>\n"
				"<text x=\"6\" y=\"%d\">node %u host</text>\n"
				"<text x=\"6\" y=\"%d\">node %u NIC</text>\n",
				y, WIDTH, 2 * ROW, p.row[i] % 2 ? "#f4f4f4" : "#fafafa",
				y + 24, i, y + ROW + 24, i);
	}
	svg_draw_times(&p);
	td_each_slice(t, f, svg_draw_slice, &p);
	for (uint32_t i = 0; i < t->nmessages; i++)
		svg_draw_arrows(&p, &t->message[i]);
	td_each_slice(t, f, svg_draw_name, &p);
	/* the legend */
	double x = LEFT;
	int y = TOP + 2 * ROW * p.rows + 8;
	for (unsigned i = 0; i < P3_TRACE_POINTS_N; i++) {
		if (!colours[i])
			continue;
		fprintf(out,
			"<rect x=\"%.0f\" y=\"%d\" width=\"10\" height=\"10\" "
			"fill=\"%s\"/>\n<text x=\"%.0f\" y=\"%d\">%s</text>\n",
			x, y, colours[i], x + 14, y + 9, td_point(i));
		x += 80;
	}
	fprintf(out, "<text x=\"%.0f\" y=\"%d\">begins at %.3f us</text>\n",
		WIDTH - 29 * LETTER, y + 9, (double)p.from / 1e3);
	fputs("</svg>\n", out);
	free(p.named);
	return 0;
}
