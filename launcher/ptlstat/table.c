/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of nodes, and that of settings. */
#include "launcher/ptlstat/ptlstat.h"
#include "shm/conf.h"

#include <stdio.h>
#include <stdlib.h>
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

static double table_rate(const struct rates *r, enum p3_counter c)
{
	uint64_t d = r->is[c] - r->was[c];
	return r->seconds > 0 && (int64_t)d > 0 ? (double)d / r->seconds : 0;
}

/* Write a number in at most four characters: 0, 999, 12k, 1.2M. */
static const char *table_brief(double v, char text[16])
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

static const char *table_mover(const struct rates *r)
{
	static const struct {
		enum p3_counter c;
		const char *name;
	} movers[] = {{P3_C_DIRECT_BYTES, "direct"}, {P3_C_CMA_BYTES, "cma"},
		{P3_C_BULK_BYTES, "bulk"}};
	const char *best = "-";
	double most = 0;
	for (size_t k = 0; k < 3; k++)
		if (table_rate(r, movers[k].c) > most) {
			most = table_rate(r, movers[k].c);
			best = movers[k].name;
		}
	if (most > 0)
		return best;
	if (table_rate(r, P3_C_PUT_EAGER) > table_rate(r, P3_C_PUT_INLINE))
		return "eager";
	return table_rate(r, P3_C_PUT_INLINE) > 0 ? "inline" : "-";
}

static void table_does(
	const struct ptl_picture *p, const struct ptl_node *n, char text[40])
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
static int table_nic_share(const struct rates *r)
{
	double host = table_rate(r, P3_C_LEASE_HOST), nic = table_rate(r, P3_C_LEASE_NIC);
	return host + nic > 0 ? (int)(100 * nic / (host + nic)) : 0;
}

/* Cut text to this number of columns, between two words if it has some, with > at the
 * end. */
static void table_mark_cut(char *text, size_t columns)
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
static double table_silence_ms(const struct ptl_picture *p, uint32_t i)
{
	double most = 0;
	struct ptl_far f;
	for (uint32_t slot = 0; slot < p->node[i].nnodes; slot++)
		if (ptl_far_of(p, i, slot, &f) && f.silent > most)
			most = f.silent;
	return most * 1000;
}

/* Append the columns of the wire between hosts. */
static void table_far_row(char *line, size_t size, const struct ptl_picture *p,
	uint32_t i, const struct rates *r)
{
	const uint64_t *w = p->node[i].word;
	char t[4][16];
	snprintf(line, size, " %7s %6s %6s %6s %5u %7u %6.0f",
		table_brief(table_rate(r, P3_C_FAR_OUT), t[0]),
		table_brief(table_rate(r, P3_C_FAR_IN), t[1]),
		table_brief((double)w[P3_C_FAR_RESENT], t[2]),
		table_brief((double)w[P3_C_FAR_BREAKS], t[3]), (unsigned)w[P3_G_FAR_HELD],
		(unsigned)w[P3_G_FAR_PROMISED], table_silence_ms(p, i));
}

static bool table_has_far_links(const struct ptl_picture *p)
{
	bool any = false;
	for (uint32_t i = 0; i < p->size; i++)
		any |= !p->node[i].unseen && p->node[i].word[P3_G_FAR_LINKS];
	return any;
}

static void table_row(char *line, size_t size, const struct ptl_picture *p, uint32_t i,
	const struct rates *r)
{
	const struct ptl_node *n = &p->node[i];
	const uint64_t *w = n->word;
	const char *holder = w[P3_G_LEASE] == 1   ? "host"
			     : w[P3_G_LEASE] == 2 ? "nic"
						  : "free";
	char what[40], t[7][16], numa[16] = "-";
	table_does(p, n, what);
	table_mark_cut(what, 18);
	int at = snprintf(line, size, "%4u %7u %-18s", i,
		n->msg.os_pid ? n->msg.os_pid : n->msg.started_pid, what);
	if (n->unseen)
		return;
	if (w[P3_G_NUMA])
		snprintf(numa, sizeof numa, "%d", (int)w[P3_G_NUMA] - 1);
	at += snprintf(line + at, size - (size_t)at,
		" %5s %5s %7s %7s %5s %6s %5s %5u %5u %4u %5u/%-5u %5s %3d%% %-6s "
		"%3u/%u/%-5u %4s %4s",
		table_brief(table_rate(r, P3_C_SENT), t[0]),
		table_brief(table_rate(r, P3_C_RECEIVED), t[1]),
		table_brief(table_rate(r, P3_C_SENT_BYTES), t[2]),
		table_brief(table_rate(r, P3_C_RECEIVED_BYTES), t[3]),
		table_brief((double)w[P3_C_DROPS], t[4]),
		table_brief((double)w[P3_C_DENIED], t[5]),
		table_brief((double)w[P3_C_TRUNCATED], t[6]), (unsigned)w[P3_G_QUEUED],
		(unsigned)w[P3_G_PENDINGS], (unsigned)w[P3_G_PULLS],
		(unsigned)w[P3_G_HOT], (unsigned)w[P3_G_ALIVE], holder,
		table_nic_share(r), table_mover(r), (unsigned)w[P3_G_MES],
		(unsigned)w[P3_G_MDS], (unsigned)w[P3_G_EQS],
		w[P3_G_PAGE] >= P3_HUGE ? "2M"
		: w[P3_G_PAGE]          ? "4k"
					: "-",
		numa);
	if (w[P3_G_FAR_LINKS] && (size_t)at < size)
		table_far_row(line + at, size - (size_t)at, p, i, r);
}

struct screen {
	bool on;
	int rows, columns;
};

static struct screen table_screen_of(bool on)
{
	struct winsize ws = {0};
	struct screen s = {on, 24, 80};
	if (on && ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_row && ws.ws_col)
		s = (struct screen){on, ws.ws_row, ws.ws_col};
	return s;
}

static void table_put(const struct screen *s, char *line)
{
	if (s->on) {
		table_mark_cut(line, (size_t)s->columns - 1);
		printf("%s" EOL "\n", line);
	} else
		puts(line);
}

static void table_head(
	const struct screen *s, const struct ptl_picture *p, double seconds)
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
	table_put(s, line);
	snprintf(line, sizeof line, "%s%s", HEAD, table_has_far_links(p) ? FAR_HEAD : "");
	table_put(s, line);
}

void ptl_top(const struct ptl_picture *was, const struct ptl_picture *is, bool on)
{
	static const uint64_t zero[P3_COUNTERS];
	struct screen s = table_screen_of(on);
	double seconds = (double)(is->at_ns - was->at_ns) / 1e9;
	char line[400];
	if (s.on)
		fputs(HOME, stdout);
	table_head(&s, is, seconds);
	for (uint32_t i = 0; i < is->size; i++) {
		if (ptl_is_far(&is->node[i]))
			continue;
		struct rates r = {seconds, zero, is->node[i].word};
		const struct ptl_node *before = ptl_before(was, &is->node[i]);
		if (before) /* else the node has joined anew, and counts from zero */
			r.was = before->word;
		if (s.on && (int)i + 4 > s.rows && i + 1 < is->size) {
			snprintf(line, sizeof line, "  ... and %u more", is->size - i);
			table_put(&s, line);
			break;
		}
		table_row(line, sizeof line, is, i, &r);
		table_put(&s, line);
	}
	if (s.on)
		fputs(CLEAR, stdout);
}

/* ---- settings ---- */

#define ENV_MOST 262144

/* Return the environment with which the node's program was started, or NULL. */
static char *conf_environment_of(const struct ptl_node *n, size_t *len_out)
{
	char path[40];
	uint32_t pid = ptl_process_of(n);
	snprintf(path, sizeof path, "/proc/%u/environ", pid);
	FILE *f = ptl_is_alive(n) ? fopen(path, "re") : NULL;
	if (!f)
		return NULL;
	char *env = malloc(ENV_MOST + 1);
	*len_out = env ? fread(env, 1, ENV_MOST, f) : 0;
	fclose(f);
	if (env) {
		/* A program can write any text into its environment, and a terminal would
		 * obey control characters. */
		for (size_t i = 0; i < *len_out; i++)
			if (env[i] && ((unsigned char)env[i] < ' ' || env[i] == 0x7f))
				env[i] = '?';
		env[*len_out] = '\0';
	}
	return env;
}

/* Return the value of a name in an environment, or NULL. */
static const char *conf_in_environment(const char *env, size_t len, const char *name)
{
	size_t n = strlen(name);
	for (const char *at = env; at && at < env + len; at += strlen(at) + 1)
		if (!strncmp(at, name, n) && at[n] == '=' && at[n + 1])
			return at + n + 1;
	return NULL;
}

static const char *conf_size_text(uint64_t bytes, char text[30])
{
	if (bytes && bytes % (1 << 30) == 0)
		snprintf(text, 30, "%lluG", (unsigned long long)bytes >> 30);
	else if (bytes && bytes % (1 << 20) == 0)
		snprintf(text, 30, "%lluM", (unsigned long long)bytes >> 20);
	else
		snprintf(text, 30, "%llu", (unsigned long long)bytes);
	return text;
}

/* Return the value in effect, or NULL if the node's words do not tell the value. */
const char *ptl_conf_got(const uint64_t *w, enum p3_conf_id id, char text[30])
{
	switch (id) {
	case P3_CONF_MODE:
		return ptl_mode_name(w[P3_G_MODE]);
	case P3_CONF_MATCH:
		return strcmp(ptl_mode_name(w[P3_G_MODE]), "generic") == 0 ? "host"
									   : "firmware";
	case P3_CONF_HUGEPAGES:
		return w[P3_G_PAGE] >= P3_HUGE ? "on" : "off";
	case P3_CONF_MOVER:
		return !w[P3_G_CMA] ? "window" : w[P3_G_BULK] ? "auto" : "read";
	case P3_CONF_MEMBARRIER:
		return w[P3_G_MEMBARRIER] ? "on" : "off";
	case P3_CONF_LANES:
		return w[P3_G_BASE_LANES] ? "base" : NULL; /* else full or unswept */
	case P3_CONF_HEAP:
		return conf_size_text(w[P3_G_HEAP], text);
	default:
		return NULL;
	}
}

static void conf_of_node(const struct ptl_picture *p, uint32_t i)
{
	const struct ptl_node *n = &p->node[i];
	size_t len = 0;
	char text[30];
	if (n->unseen) {
		printf("%5u  %s\n", i, n->unseen);
		return;
	}
	char *env = conf_environment_of(n, &len);
	for (int id = 0; id < P3_CONF_ROWS; id++) {
		const struct p3_conf_row *row = p3_conf_row((enum p3_conf_id)id);
		const char *set = conf_in_environment(env, len, row->name);
		if (row->internal && !set)
			continue;
		const char *got = ptl_conf_got(n->word, (enum p3_conf_id)id, text);
		printf("%5u  %-18s %-16s %s\n", i, row->name, set ? set : "-",
			got   ? got
			: set ? set
			      : row->usual);
	}
	free(env);
}

/* Return true if a node's values are those of the node before it: they are not shown
 * again. */
static bool conf_is_as_before(const struct ptl_picture *p, uint32_t i)
{
	const struct ptl_node *n = &p->node[i];
	if (!i || n->unseen || p->node[i - 1].unseen)
		return false;
	return !memcmp(&n->word[P3_G_MODE], &p->node[i - 1].word[P3_G_MODE],
		(P3_G_SPIN + 1 - P3_G_MODE) * sizeof n->word[0]);
}

void ptl_conf(const struct ptl_picture *p)
{
	if (!p) {
		printf("%-18s %-16s %s\n", "setting", "here", "usual");
		for (int id = 0; id < P3_CONF_ROWS; id++) {
			const struct p3_conf_row *row = p3_conf_row((enum p3_conf_id)id);
			const char *text = p3_conf_text((enum p3_conf_id)id);
			if (row->internal && !text)
				continue;
			printf("%-18s %-16s %s\n", row->name, text ? text : "-",
				row->usual);
		}
		return;
	}
	printf("%5s  %-18s %-16s %s\n", "node", "setting", "set to", "got");
	for (uint32_t i = 0; i < p->size; i++) {
		if (conf_is_as_before(p, i))
			printf("%5u  as node %u\n", i, i - 1);
		else
			conf_of_node(p, i);
	}
}
