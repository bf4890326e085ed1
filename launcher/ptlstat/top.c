/* SPDX-License-Identifier: BSD-3-Clause */
/* ptlstat's table of nodes. */
#include "launcher/ptlstat/ptlstat.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define HOME  "\033[H"
#define CLEAR "\033[J"
#define EOL   "\033[K"

struct rates {
	double seconds;
	const uint64_t *was, *is;
};

static double rate(const struct rates *r, enum p3_counter c)
{
	uint64_t d = r->is[c] - r->was[c];
	return r->seconds > 0 && (int64_t)d > 0 ? (double)d / r->seconds : 0;
}

/* Write a number in at most four characters: 0, 999, 12k, 1.2M. */
static const char *brief(double v, char text[16])
{
	static const char unit[] = " kMGTPE";
	size_t u = 0;
	while (v >= 999.5 && u < sizeof unit - 2) {
		v /= 1000;
		u++;
	}
	if (!u)
		snprintf(text, 16, "%.0f", v);
	else
		snprintf(text, 16, v < 9.95 ? "%.1f%c" : "%.0f%c", v, unit[u]);
	return text;
}

static const char *mover(const struct rates *r)
{
	static const struct {
		enum p3_counter c;
		const char *name;
	} movers[] = {{P3_C_DIRECT_BYTES, "direct"}, {P3_C_CMA_BYTES, "cma"},
		{P3_C_BULK_BYTES, "bulk"}};
	const char *best = "-";
	double most = 0;
	for (size_t k = 0; k < 3; k++)
		if (rate(r, movers[k].c) > most) {
			most = rate(r, movers[k].c);
			best = movers[k].name;
		}
	if (most > 0)
		return best;
	if (rate(r, P3_C_PUT_EAGER) > rate(r, P3_C_PUT_INLINE))
		return "eager";
	return rate(r, P3_C_PUT_INLINE) > 0 ? "inline" : "-";
}

static void does(const struct ptl_picture *p, const struct ptl_node *n, char text[40])
{
	const struct ptl_wait *w = n->unseen ? NULL : ptl_oldest_wait(n);
	if (!ptl_is_alive(n) || ptl_is_stopped(n) || n->msg.state != P3_RDV_JOINED)
		ptl_state_text(n, text, 40);
	else if (n->msg.barrier_n)
		snprintf(text, 40, "barrier %.1f s", n->msg.barrier_ms / 1e3);
	else if (w && w->kind == P3_WAIT_EVENT)
		snprintf(text, 40, "EQ %u %.1f s", (unsigned)(w->handle[0] & 0xffffff),
			ptl_seconds(p, w->since_ns));
	else if (w)
		snprintf(text, 40, "command %.1f s", ptl_seconds(p, w->since_ns));
	else
		snprintf(text, 40, "%s", n->proc.computes ? "runs" : "sleeps");
}

/* Return the percentage of all takes of the lease that were by the NIC thread. */
static int nic_share(const struct rates *r)
{
	double host = rate(r, P3_C_LEASE_HOST), nic = rate(r, P3_C_LEASE_NIC);
	return host + nic > 0 ? (int)(100 * nic / (host + nic)) : 0;
}

static const char *holder(uint64_t who)
{
	return who == 1 ? "host" : who == 2 ? "nic" : "free";
}

static const char *pages(uint64_t page)
{
	return page >= P3_HUGE ? "2M" : page ? "4k" : "-";
}

/* Cut text to this number of columns, between two words if it has some, with > at the
 * end. */
static void mark_cut(char *text, size_t columns)
{
	if (strlen(text) <= columns || columns < 2)
		return;
	size_t end = columns - 1;
	if (text[end] != ' ')
		while (end > columns / 2 && text[end - 1] != ' ')
			end--;
	if (end <= columns / 2)
		end = columns - 1;
	memset(text + end, ' ', columns - 1 - end);
	text[columns - 1] = '>';
	text[columns] = '\0';
}

#define HEAD                                                                             \
	"rank     pid does               out/s  in/s  outB/s   inB/s drops denied "      \
	"trunc "                                                                         \
	"queue  pend recv   hot/peers lease nic% mover  ME/MD/EQ    page numa"

#define FAR_HEAD "  fout/s  fin/s resent breaks unack credits silent"

/* Return the longest silence of a host of the node's peers, in ms. */
static double silence_ms(const struct ptl_picture *p, uint32_t i)
{
	double most = 0;
	struct ptl_far f;
	for (uint32_t slot = 0; slot < p->node[i].nnodes; slot++)
		if (ptl_far_of(p, i, slot, &f) && f.silent > most)
			most = f.silent;
	return most * 1000;
}

/* Append the columns of the wire between hosts. */
static void far_row(char *line, size_t size, const struct ptl_picture *p, uint32_t i,
	const struct rates *r)
{
	const uint64_t *w = p->node[i].word;
	char t[4][16];
	snprintf(line, size, " %7s %6s %6s %6s %5u %7u %6.0f",
		brief(rate(r, P3_C_FAR_OUT), t[0]), brief(rate(r, P3_C_FAR_IN), t[1]),
		brief((double)w[P3_C_FAR_RESENT], t[2]),
		brief((double)w[P3_C_FAR_BREAKS], t[3]), (unsigned)w[P3_G_FAR_HELD],
		(unsigned)w[P3_G_FAR_PROMISED], silence_ms(p, i));
}

static bool has_far_links(const struct ptl_picture *p)
{
	bool any = false;
	for (uint32_t i = 0; i < p->size; i++)
		any |= !p->node[i].unseen && p->node[i].word[P3_G_FAR_LINKS];
	return any;
}

static void row(char *line, size_t size, const struct ptl_picture *p, uint32_t i,
	const struct rates *r)
{
	const struct ptl_node *n = &p->node[i];
	const uint64_t *w = n->word;
	char what[40], t[7][16], numa[16] = "-";
	does(p, n, what);
	mark_cut(what, 18);
	int at = snprintf(line, size, "%4u %7u %-18s", i,
		n->msg.os_pid ? n->msg.os_pid : n->msg.started_pid, what);
	if (n->unseen)
		return;
	if (w[P3_G_NUMA])
		snprintf(numa, sizeof numa, "%d", (int)w[P3_G_NUMA] - 1);
	at += snprintf(line + at, size - (size_t)at,
		" %5s %5s %7s %7s %5s %6s %5s %5u %5u %4u %5u/%-5u %5s %3d%% %-6s "
		"%3u/%u/%-5u %4s %4s",
		brief(rate(r, P3_C_SENT), t[0]), brief(rate(r, P3_C_RECEIVED), t[1]),
		brief(rate(r, P3_C_SENT_BYTES), t[2]),
		brief(rate(r, P3_C_RECEIVED_BYTES), t[3]),
		brief((double)w[P3_C_DROPS], t[4]), brief((double)w[P3_C_DENIED], t[5]),
		brief((double)w[P3_C_TRUNCATED], t[6]), (unsigned)w[P3_G_QUEUED],
		(unsigned)w[P3_G_PENDINGS], (unsigned)w[P3_G_PULLS],
		(unsigned)w[P3_G_HOT], (unsigned)w[P3_G_ALIVE], holder(w[P3_G_LEASE]),
		nic_share(r), mover(r), (unsigned)w[P3_G_MES], (unsigned)w[P3_G_MDS],
		(unsigned)w[P3_G_EQS], pages(w[P3_G_PAGE]), numa);
	if (w[P3_G_FAR_LINKS] && (size_t)at < size)
		far_row(line + at, size - (size_t)at, p, i, r);
}

struct screen {
	bool on;
	int rows, columns;
};

static struct screen screen_of(bool on)
{
	struct winsize ws = {0};
	struct screen s = {on, 24, 80};
	if (on && ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_row && ws.ws_col)
		s = (struct screen){on, ws.ws_row, ws.ws_col};
	return s;
}

static void put(const struct screen *s, char *line)
{
	if (s->on) {
		mark_cut(line, (size_t)s->columns - 1);
		printf("%s" EOL "\n", line);
	} else
		puts(line);
}

static void head(const struct screen *s, const struct ptl_picture *p, double seconds)
{
	char line[240];
	unsigned joined = 0, stopped = 0;
	for (uint32_t i = 0; i < p->size; i++) {
		joined += p->node[i].msg.state == P3_RDV_JOINED;
		stopped += ptl_is_stopped(&p->node[i]);
	}
	int at = p->domain && *p->domain
			 ? snprintf(line, sizeof line, "domain %s", p->domain)
		 : p->domain
			 ? snprintf(line, sizeof line, "a process in no domain")
			 : snprintf(line, sizeof line, "job %u (yod %u)", p->jid, p->yod);
	snprintf(line + at, sizeof line - (size_t)at,
		": %u nodes%s, %u joined, %u stopped; rates over %.2f s", p->here,
		p->here < p->size ? " of this host" : "", joined, stopped, seconds);
	put(s, line);
	snprintf(line, sizeof line, "%s%s", HEAD, has_far_links(p) ? FAR_HEAD : "");
	put(s, line);
}

void ptl_top(const struct ptl_picture *was, const struct ptl_picture *is, bool on)
{
	static const uint64_t zero[P3_COUNTERS];
	struct screen s = screen_of(on);
	double seconds = (double)(is->at_ns - was->at_ns) / 1e9;
	char line[400];
	if (s.on)
		fputs(HOME, stdout);
	head(&s, is, seconds);
	for (uint32_t i = 0; i < is->size; i++) {
		if (ptl_is_far(&is->node[i]))
			continue;
		struct rates r = {seconds, zero, is->node[i].word};
		const struct ptl_node *before = ptl_before(was, &is->node[i]);
		if (before) /* else the node has joined anew, and counts from zero */
			r.was = before->word;
		if (s.on && (int)i + 4 > s.rows && i + 1 < is->size) {
			snprintf(line, sizeof line, "  ... and %u more", is->size - i);
			put(&s, line);
			break;
		}
		row(line, sizeof line, is, i, &r);
		put(&s, line);
	}
	if (s.on)
		fputs(CLEAR, stdout);
}
