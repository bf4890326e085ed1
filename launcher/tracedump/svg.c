/* SPDX-License-Identifier: BSD-3-Clause */
/* A picture: a row for the host threads and one for the firmware of each node. */
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
#define NAMES  128 /* most names of slices in a row */

/* Length of a picture without a range: its slices have room for names. */
#define BUSIEST_NS 4000

struct box {
	double x, y, w, h;
};

/* The places in a row that names of slices have taken. */
struct names {
	uint32_t n;
	struct box box[NAMES];
};

struct picture {
	const struct td_trace *t;
	const struct td_filter *f;
	FILE *out;
	int64_t from, to;
	int row[P3_MAX_NODES]; /* row of a node; -1: not shown */
	int rows;
	struct names *names; /* of host threads and firmware of each row */
};

static const char *const colours[] = {[P3_TRACE_COMMAND] = "#4878a8",
	[P3_TRACE_TAKEN] = "#4878a8",
	[P3_TRACE_PARK] = "#d0d0d0",
	[P3_TRACE_SEND] = "#e09040",
	[P3_TRACE_TAKE] = "#b0b0b0",
	[P3_TRACE_MATCH] = "#68a868",
	[P3_TRACE_EVENT] = "#b868a8",
	[P3_TRACE_DELIVER] = "#a8c8a8",
	[P3_TRACE_BEGIN] = "#d8c040",
	[P3_TRACE_END] = "#d8c040"};

static const char *svg_colour_of(unsigned point)
{
	bool known = point < sizeof colours / sizeof *colours && colours[point];
	return known ? colours[point] : "#c8b8a0";
}

static double svg_x_of(const struct picture *p, int64_t ns)
{
	double all = (double)(p->to - p->from);
	return LEFT + (WIDTH - LEFT - 10) * (double)(ns - p->from) / (all > 0 ? all : 1);
}

static double svg_y_of(const struct picture *p, uint32_t node, uint32_t thread)
{
	return TOP + ROW * (2 * p->row[node] + (thread == 0));
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
		if (!any)
			p->from = ev->ns;
		any = true;
		p->to = ev->ns;
		p->row[ev->e.node] = 0;
	}
	for (unsigned i = 0; i < P3_MAX_NODES; i++)
		if (!p->row[i])
			p->row[i] = p->rows++;
}

/* ---- drawing ---- */

static void svg_text(const struct picture *p, double x, double y, const char *colour,
	const char *words)
{
	fprintf(p->out, "<text x=\"%.1f\" y=\"%.1f\" fill=\"%s\">%s</text>\n", x, y,
		colour, words);
}

static void svg_draw_rows(const struct picture *p)
{
	char words[32];
	for (uint32_t i = 0; i < P3_MAX_NODES; i++) {
		if (p->row[i] < 0)
			continue;
		double y = svg_y_of(p, i, 1);
		fprintf(p->out,
			"<rect x=\"0\" y=\"%.1f\" width=\"%.0f\" height=\"%d\" "
			"fill=\"%s\"/>\n",
			y, WIDTH, 2 * ROW, p->row[i] % 2 ? "#f4f4f4" : "#fafafa");
		snprintf(words, sizeof words, "node %u host", i);
		svg_text(p, 6, y + 24, "#333", words);
		snprintf(words, sizeof words, "node %u NIC", i);
		svg_text(p, 6, y + ROW + 24, "#333", words);
	}
}

static double svg_nice_step(double all)
{
	double step = pow(10, floor(log10(all / TICKS)));
	return step * (all / step > 5 * TICKS ? 5 : all / step > 2 * TICKS ? 2 : 1);
}

/* The unit of the time axis: its labels have four digits at most. */
struct unit {
	double ns;
	const char *name;
};

static struct unit svg_unit_of(double all)
{
	static const struct unit units[] = {{1e3, "\xc2\xb5s"}, {1e6, "ms"}, {1e9, "s"}};
	size_t i = 0;
	while (i + 1 < sizeof units / sizeof *units && all >= 1e4 * units[i].ns)
		i++;
	return units[i];
}

static void svg_draw_times(const struct picture *p)
{
	char words[32];
	double all = (double)(p->to - p->from), step = svg_nice_step(all > 1 ? all : 1);
	struct unit unit = svg_unit_of(all);
	for (double at = 0; at <= all; at += step) {
		double x = svg_x_of(p, p->from + (int64_t)at);
		fprintf(p->out,
			"<line x1=\"%.1f\" y1=\"22\" x2=\"%.1f\" y2=\"%d\" "
			"stroke=\"#ddd\"/>\n",
			x, x, TOP + 2 * ROW * p->rows);
		snprintf(words, sizeof words, "%.4g%s%s", at / unit.ns, at > 0 ? "" : " ",
			at > 0 ? "" : unit.name);
		/* It is below the upper edge, at x or as far to the left of x as it must
		 * be to fit into the picture. */
		double most = WIDTH - LETTER * (double)strlen(words) - 2;
		svg_text(p, x - 6 < most ? x - 6 : most, 16, "#333", words);
	}
}

static bool svg_is_frame(const struct td_slice *s)
{
	return !strcmp(s->name, "lease") || !strcmp(s->name, "request");
}

/* Find the box of a slice, cut off at the picture's edges.  Return false if the slice is
 * not in the picture. */
static bool svg_box_of(
	const struct picture *p, const struct td_slice *s, struct box *box_out)
{
	int64_t from = s->from > p->from ? s->from : p->from;
	int64_t to = s->to < p->to ? s->to : p->to;
	*box_out = (struct box){.x = svg_x_of(p, from),
		.y = svg_y_of(p, s->node, s->thread) + 4 + 3 * s->depth,
		.w = svg_x_of(p, to) - svg_x_of(p, from),
		.h = ROW - 8 - 6 * (double)s->depth};
	return to >= from;
}

static void svg_draw_slice(void *arg, const struct td_slice *s)
{
	const struct picture *p = arg;
	const struct td_event *ev = &p->t->event[s->event];
	struct box b;
	if (!svg_box_of(p, s, &b))
		return;
	fprintf(p->out,
		"<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\" "
		"stroke=\"%s\"/>\n",
		b.x, b.y, b.w > 0.6 ? b.w : 0.6, b.h,
		svg_is_frame(s) ? "none" : svg_colour_of(ev->e.point),
		svg_is_frame(s) ? "#999" : "none");
}

static bool svg_overlap(const struct box *a, const struct box *b)
{
	return a->x < b->x + b->w && b->x < a->x + a->w && a->y < b->y + b->h &&
	       b->y < a->y + a->h;
}

/* Take a place in a row for a name.  Return false if another name is there: the slices of
 * several threads lie in one row. */
static bool svg_take_place(struct names *names, const struct box *b)
{
	for (uint32_t i = 0; i < names->n; i++)
		if (svg_overlap(&names->box[i], b))
			return false;
	if (names->n == NAMES)
		return false;
	names->box[names->n++] = *b;
	return true;
}

/* Write the name of a slice over the arrows, with a light edge around the letters: level
 * if it fits, upright in a narrow slice.  Omit a name that fits in neither way, or whose
 * place is taken. */
static void svg_draw_name(void *arg, const struct td_slice *s)
{
	const struct picture *p = arg;
	double length = LETTER * (double)strlen(s->name);
	struct box b;
	if (!svg_box_of(p, s, &b) || svg_is_frame(s))
		return;
	bool level = b.w > length + 4;
	if (!level && (b.w < LETTER + 5 || b.h < length))
		return;
	double x = b.x + b.w / 2, y = b.y + b.h / 2, high = LETTER + 6;
	double w = level ? length : high, h = level ? high : length;
	struct box place = {x - w / 2, y - h / 2, w, h};
	if (!svg_take_place(&p->names[2 * p->row[s->node] + (s->thread == 0)], &place))
		return;
	fprintf(p->out,
		"<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" fill=\"#111\" "
		"stroke=\"#fff\" stroke-width=\"2.5\" stroke-linejoin=\"round\" "
		"paint-order=\"stroke\"",
		x, y + 4);
	if (!level)
		fprintf(p->out, " transform=\"rotate(-90 %.1f %.1f)\"", x, y);
	fprintf(p->out, ">%s</text>\n", s->name);
}

static void svg_draw_arrows(const struct picture *p, const struct td_message *m)
{
	struct td_stop stop[TD_STOPS];
	unsigned n = td_stops(p->t, p->f, m, stop);
	for (unsigned i = 1; i < n; i++) {
		const struct td_stop *a = &stop[i - 1], *b = &stop[i];
		fprintf(p->out,
			"<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" "
			"stroke=\"#c03030\" stroke-width=\"1.3\" "
			"marker-end=\"url(#tip)\"/>\n",
			svg_x_of(p, p->t->event[a->event].ns),
			svg_y_of(p, a->node, a->thread) + ROW / 2,
			svg_x_of(p, p->t->event[b->event].ns),
			svg_y_of(p, b->node, b->thread) + ROW / 2);
	}
}

static void svg_draw_legend(const struct picture *p)
{
	double x = LEFT, y = TOP + 2 * ROW * p->rows + 8;
	for (unsigned i = 0; i < sizeof colours / sizeof *colours; i++) {
		if (!colours[i])
			continue;
		fprintf(p->out,
			"<rect x=\"%.1f\" y=\"%.1f\" width=\"10\" height=\"10\" "
			"fill=\"%s\"/>\n",
			x, y, colours[i]);
		svg_text(p, x + 14, y + 9, "#333", td_point(i));
		x += 80;
	}
	char words[48];
	snprintf(words, sizeof words, "begins at %.3f us", (double)p->from / 1e3);
	svg_text(p, WIDTH - 29 * LETTER, y + 9, "#333", words);
}

int td_svg(const struct td_trace *t, const struct td_filter *asked, FILE *out)
{
	struct td_filter filter = *asked, *f = &filter;
	struct picture p = {.t = t, .f = f, .out = out};
	svg_narrow(t, f);
	svg_span(&p);
	p.names = calloc(2 * (size_t)p.rows + 1, sizeof *p.names);
	if (!p.names)
		return -ENOMEM;
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%d\" "
		"font-family=\"sans-serif\" font-size=\"11\">\n"
		"<defs><marker id=\"tip\" markerWidth=\"7\" markerHeight=\"6\" "
		"refX=\"6\" refY=\"3\" orient=\"auto\"><path d=\"M0,0 L7,3 L0,6 z\" "
		"fill=\"#c03030\"/></marker></defs>\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
		WIDTH, TOP + 2 * ROW * p.rows + 24);
	svg_draw_rows(&p);
	svg_draw_times(&p);
	td_each_slice(t, f, svg_draw_slice, &p);
	for (uint32_t i = 0; i < t->nmessages; i++)
		svg_draw_arrows(&p, &t->message[i]);
	td_each_slice(t, f, svg_draw_name, &p);
	svg_draw_legend(&p);
	fputs("</svg>\n", out);
	free(p.names);
	return 0;
}
