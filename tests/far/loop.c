/* SPDX-License-Identifier: BSD-3-Clause */
/* An endpoint between nodes of one process. */
#include "far/loop.h"

#include "far/faults.h"
#include "shm/fd.h"
#include "shm/park.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define NODES      64u
#define REGIONS    1024u
#define LATE       50u   /* polls at most that a read is late */
#define PART_LEAST 4096u /* bytes of a read that is served in two parts */
#define MILLION    1000000u
#define SURE       20u /* a fault that is expected so often happens */
#define REFUSED    3u /* frames to a node that are refused before the connection stands */

static const char *const names[LOOP_FAULTS] = {
	"drop", "dup", "corrupt", "swap", "reset", "stranger", "old", "unread", "late"};

/* A frame on its way. */
struct parcel {
	struct parcel *next;
	uint32_t from, len;
	struct p3_frame frame;
};

struct parcels {
	struct parcel *first, **last;
	uint32_t n;
};

/* A buffer on its way back to the node that has sent it. */
struct receipt {
	struct receipt *next;
	struct p3_far_buffer *buffer;
	uint32_t to;
	bool failed;
};

/* A remote read on its way to the owner, or back. */
struct errand {
	struct errand *next;
	struct p3_far_read *read;
	const char *rest; /* of the bytes, when the first half is read */
	uint32_t reader;
	uint32_t polls; /* of the owner before it is served, or of the reader */
	bool failed;
};

struct region {
	const char *bytes; /* NULL: free */
	uint64_t len, key;
};

struct p3_endpoint {
	uint32_t node;
	struct errand *asked; /* reads of this node's memory */
	struct errand *over;  /* this node's reads that have ended */
	struct region regions[REGIONS];
	int news;
	struct parcels in;
	struct receipt *done, **done_last;
	struct p3_far_buffer *posted;
	uint32_t refused[NODES];    /* frames to each node that were refused */
	struct parcel *held[NODES]; /* the frame that comes behind the next one */
	struct parcel *old[NODES];  /* a copy of an earlier frame */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct p3_endpoint *ends[NODES];
static uint32_t rates[LOOP_FAULTS];
static uint64_t state;
static struct loop_counts counts;
static uint64_t slow_ns, served_ns; /* between parts of reads; of the last one */
static bool early;                  /* a stranger's frame waits for each new endpoint */

static uint64_t draw(void)
{
	return faults_draw(&state);
}

static bool strikes(enum loop_fault what)
{
	return faults_strike(&state, rates[what], &counts.faults[what]);
}

void loop_set(const uint32_t ppm[LOOP_FAULTS], uint64_t seed)
{
	memcpy(rates, ppm, sizeof rates);
	memset(&counts, 0, sizeof counts);
	state = seed;
}

void loop_call_early(bool calls)
{
	early = calls;
}

void loop_serve_slowly(uint32_t ms)
{
	pthread_mutex_lock(&lock);
	slow_ns = ms * UINT64_C(1000000);
	pthread_mutex_unlock(&lock);
}

struct loop_counts loop_counts(void)
{
	pthread_mutex_lock(&lock);
	struct loop_counts c = counts;
	pthread_mutex_unlock(&lock);
	return c;
}

uint32_t loop_reads_of(uint32_t owner)
{
	uint32_t n = 0;
	pthread_mutex_lock(&lock);
	for (const struct errand *e = ends[owner] ? ends[owner]->asked : NULL; e;
		e = e->next)
		n++;
	pthread_mutex_unlock(&lock);
	return n;
}

uint32_t loop_frames_for(uint32_t node)
{
	pthread_mutex_lock(&lock);
	uint32_t n = ends[node] ? ends[node]->in.n : 0;
	pthread_mutex_unlock(&lock);
	return n;
}

/* ---- frames on their way ---- */

static struct parcel *parcel_new(uint32_t from, const struct p3_frame *f, uint32_t len)
{
	struct parcel *p = calloc(1, sizeof *p + len);
	if (!p)
		abort();
	p->from = from;
	p->len = len;
	memcpy((void *)&p->frame, f, len);
	return p;
}

static void deliver(struct p3_endpoint *to, struct parcel *p)
{
	p->next = NULL;
	*to->in.last = p;
	to->in.last = &p->next;
	if (++to->in.n > counts.most_waiting)
		counts.most_waiting = to->in.n;
	p3_fd_signal(to->news);
}

/* Drop the frames from one node that another one has not taken. */
static void cut(struct p3_endpoint *to, uint32_t from)
{
	struct parcel **at = &to->in.first;
	while (*at) {
		struct parcel *p = *at;
		if (p->from != from) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		to->in.n--;
		free(p);
	}
	to->in.last = at;
}

/* Let a stranger, which does not know the key, send a frame like the next one. */
static void be_stranger(struct p3_endpoint *to, const struct parcel *p)
{
	struct parcel *fake = parcel_new(p->from, &p->frame, p->len);
	fake->frame.seq += (uint32_t)draw() % 3;
	fake->frame.sum = (uint32_t)draw();
	deliver(to, fake);
}

static void repeat_old(struct p3_endpoint *ep, struct p3_endpoint *to)
{
	struct parcel **old = &ep->old[to->node];
	if (!*old)
		return;
	deliver(to, *old);
	*old = NULL;
}

static void carry(struct p3_endpoint *ep, struct p3_endpoint *to, struct parcel *p)
{
	struct parcel **held = &ep->held[to->node], **old = &ep->old[to->node];
	if (!*old)
		*old = parcel_new(p->from, &p->frame, p->len);
	if (strikes(LOOP_STRANGER))
		be_stranger(to, p);
	if (strikes(LOOP_OLD))
		repeat_old(ep, to);
	if (strikes(LOOP_DUP))
		deliver(to, parcel_new(p->from, &p->frame, p->len));
	if (strikes(LOOP_CORRUPT))
		faults_flip(&state, (void *)&p->frame, p->len);
	if (!*held && strikes(LOOP_SWAP)) {
		*held = p;
		return;
	}
	deliver(to, p);
	if (*held)
		deliver(to, *held);
	*held = NULL;
}

/* ---- remote reads ---- */

/* Move a read from a list to those of its reader that have ended. */
static void report(struct p3_endpoint *ep, struct errand **at, bool failed)
{
	struct errand *e = *at;
	struct p3_endpoint *to = ends[e->reader];
	(void)ep;
	*at = e->next;
	if (!to) {
		free(e);
		return;
	}
	e->failed = failed;
	e->polls = strikes(LOOP_LATE) ? (uint32_t)draw() % LATE : 0;
	e->next = to->over;
	to->over = e;
	p3_fd_signal(to->news);
}

/* Forget the reads of an endpoint that closes. */
static void end_reads_of(struct p3_endpoint *owner, const struct p3_endpoint *reader)
{
	struct errand **at = &owner->asked;
	while (*at) {
		struct errand *e = *at;
		if (e->reader != reader->node) {
			at = &e->next;
			continue;
		}
		*at = e->next;
		free(e);
	}
}

static void fail_reads(struct p3_endpoint *owner, const struct p3_endpoint *reader)
{
	struct errand **at = &owner->asked;
	while (*at)
		if ((*at)->reader == reader->node)
			report(owner, at, true);
		else
			at = &(*at)->next;
}

static const char *find_bytes(const struct p3_endpoint *ep, const struct p3_far_read *r)
{
	for (uint32_t i = 0; i < REGIONS; i++) {
		const struct region *g = &ep->regions[i];
		if (g->bytes && g->key == r->key && r->from <= g->len &&
			r->len <= g->len - r->from)
			return g->bytes + r->from;
	}
	return NULL;
}

/* Read the first half of long bytes now, and the rest in a later poll, also if the key is
 * recalled meanwhile: so do providers when a socket is full.  Return true if the read is
 * over. */
static bool serve(const struct p3_endpoint *ep, struct errand *e)
{
	const struct p3_far_read *r = e->read;
	uint64_t half = r->len < PART_LEAST ? 0 : r->len / 2;
	const char *bytes = e->rest ? e->rest : find_bytes(ep, r);
	e->failed = !e->rest && (!bytes || strikes(LOOP_UNREAD));
	if (e->failed)
		return true;
	if (half && !e->rest) {
		memcpy(r->to, bytes, half);
		e->rest = bytes + half;
		e->polls = strikes(LOOP_LATE) ? (uint32_t)draw() % LATE : 1;
		p3_fd_signal(ep->news);
		return false;
	}
	memcpy((char *)r->to + half, bytes, r->len - half);
	counts.served++;
	return true;
}

/* Return true if it is not time yet to serve the next part of a read. */
static bool is_early(void)
{
	uint64_t now = p3_now_ns();
	if (now - served_ns < slow_ns)
		return true;
	served_ns = now;
	return false;
}

static void serve_all(struct p3_endpoint *ep)
{
	struct errand **at = &ep->asked;
	while (*at) {
		struct errand *e = *at;
		if (e->polls || is_early()) {
			e->polls -= e->polls != 0;
			p3_fd_signal(ep->news);
			at = &e->next;
		} else if (serve(ep, e)) {
			report(ep, at, e->failed);
		} else {
			at = &e->next;
		}
	}
}

static bool take_errand(struct p3_endpoint *ep, struct p3_far_event *out)
{
	for (struct errand **at = &ep->over; *at; at = &(*at)->next) {
		struct errand *e = *at;
		if (e->polls) {
			e->polls--;
			p3_fd_signal(ep->news);
			continue;
		}
		*out = (struct p3_far_event){.op = &e->read->op, .failed = e->failed};
		*at = e->next;
		free(e);
		return true;
	}
	return false;
}

static enum p3_far_reads_kind reads(const struct p3_endpoint *ep)
{
	(void)ep;
	return getenv("P3_FAR_READS") ? P3_FAR_NO_READS : P3_FAR_READS;
}

static int offer(struct p3_endpoint *ep, const void *bytes, uint64_t len,
	struct p3_far_region *out)
{
	struct region *g = NULL;
	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; !g && i < REGIONS; i++)
		if (!ep->regions[i].bytes)
			g = &ep->regions[i];
	if (g) {
		*g = (struct region){bytes, len, draw() | 1};
		*out = (struct p3_far_region){.handle = g, .key = g->key};
	}
	pthread_mutex_unlock(&lock);
	return g ? 0 : -ENOMEM;
}

static void recall(struct p3_endpoint *ep, struct p3_far_region *r)
{
	struct region *g = r->handle;
	(void)ep;
	pthread_mutex_lock(&lock);
	g->bytes = NULL;
	pthread_mutex_unlock(&lock);
}

static int read_locked(struct p3_endpoint *ep, struct p3_endpoint *to, uint32_t at,
	struct p3_far_read *r)
{
	struct errand *e = calloc(1, sizeof *e);
	if (!e)
		abort();
	*e = (struct errand){.read = r, .reader = ep->node};
	if (!to) { /* as if the connection broke later */
		e->failed = true;
		e->next = ep->over;
		ep->over = e;
		p3_fd_signal(ep->news);
		return 0;
	}
	if (ep->refused[at] < REFUSED) {
		ep->refused[at]++;
		counts.refused++;
		free(e);
		return -EAGAIN;
	}
	counts.reads++;
	e->polls = strikes(LOOP_LATE) ? (uint32_t)draw() % LATE : 0;
	e->next = to->asked; /* the last one is served first */
	to->asked = e;
	p3_fd_signal(to->news);
	return 0;
}

static int read_there(struct p3_endpoint *ep, uint64_t to, struct p3_far_read *r)
{
	pthread_mutex_lock(&lock);
	int rc = read_locked(ep, ends[to], (uint32_t)to, r);
	pthread_mutex_unlock(&lock);
	return rc;
}

/* ---- the endpoint ---- */

static int open_end(const struct p3_far_conf *conf, uint32_t node, uint32_t nnodes,
	struct p3_endpoint **ep_out)
{
	(void)conf;
	(void)nnodes;
	struct p3_endpoint *ep = calloc(1, sizeof *ep);
	if (!ep || node >= NODES)
		abort();
	ep->node = node;
	ep->news = p3_fd_high(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	ep->in.last = &ep->in.first;
	ep->done_last = &ep->done;
	pthread_mutex_lock(&lock);
	if (ends[node])
		abort();
	ends[node] = ep;
	if (early)
		deliver(ep, parcel_new(NODES, &(const struct p3_frame){.medium = NODES},
				    sizeof(struct p3_frame)));
	pthread_mutex_unlock(&lock);
	*ep_out = ep;
	return 0;
}

static void free_errands(struct errand *e)
{
	while (e) {
		struct errand *next = e->next;
		free(e);
		e = next;
	}
}

static void close_end(struct p3_endpoint *ep)
{
	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < NODES; i++)
		if (ends[i] && ends[i] != ep)
			end_reads_of(ends[i], ep);
	while (ep->asked)
		report(ep, &ep->asked, true);
	free_errands(ep->over);
	ends[ep->node] = NULL;
	for (uint32_t i = 0; i < NODES; i++) {
		if (ends[i])
			ends[i]->refused[ep->node] = 0;
		cut(ep, i);
		free(ep->held[i]);
		free(ep->old[i]);
	}
	pthread_mutex_unlock(&lock);
	while (ep->done) {
		struct receipt *r = ep->done;
		ep->done = r->next;
		free(r);
	}
	close(ep->news);
	free(ep);
}

static uint32_t name(const struct p3_endpoint *ep, unsigned char out[P3_FAR_NAME])
{
	memcpy(out, &ep->node, sizeof ep->node);
	return sizeof ep->node;
}

static int resolve(struct p3_endpoint *ep, uint32_t node, const unsigned char *text,
	uint32_t len, uint64_t *to_out)
{
	(void)ep;
	(void)text;
	(void)len;
	*to_out = node;
	pthread_mutex_lock(&lock); /* close_end() of another end writes it, too */
	ep->refused[node] = 0;
	pthread_mutex_unlock(&lock);
	return 0;
}

static void give_back(
	struct p3_endpoint *ep, struct p3_far_buffer *b, uint32_t to, bool failed)
{
	struct receipt *r = calloc(1, sizeof *r);
	if (!r)
		abort();
	*r = (struct receipt){.buffer = b, .to = to, .failed = failed};
	*ep->done_last = r;
	ep->done_last = &r->next;
	counts.failed += failed;
	p3_fd_signal(ep->news);
}

/* Break the connection: frames under way are lost both ways, though most of them were
 * reported as sent; half of those not taken back yet fail, and all reads. */
static void break_connection(struct p3_endpoint *ep, struct p3_endpoint *to)
{
	fail_reads(ep, to);
	fail_reads(to, ep);
	cut(to, ep->node);
	cut(ep, to->node);
	ep->refused[to->node] = to->refused[ep->node] = 0;
	for (struct receipt *r = ep->done; r; r = r->next)
		if (r->to == to->node && !r->failed && draw() % 2) {
			r->failed = true;
			counts.failed++;
		}
}

static void cut_off(struct p3_endpoint *ep, uint64_t to)
{
	pthread_mutex_lock(&lock);
	if (ends[to])
		break_connection(ep, ends[to]);
	counts.cuts++;
	pthread_mutex_unlock(&lock);
}

static int send_locked(struct p3_endpoint *ep, struct p3_endpoint *to, uint32_t at,
	struct p3_far_buffer *b, uint32_t len)
{
	if (!to) {
		give_back(ep, b, at, true);
		return 0;
	}
	if (ep->refused[at] < REFUSED) {
		ep->refused[at]++;
		counts.refused++;
		p3_fd_signal(ep->news);
		return -EAGAIN;
	}
	counts.sent++;
	if (strikes(LOOP_RESET)) {
		break_connection(ep, to);
		bool kept = draw() % 3 == 0;
		counts.kept += kept;
		if (!kept)
			give_back(ep, b, at, draw() % 2);
	} else {
		give_back(ep, b, at, false);
		if (!strikes(LOOP_DROP))
			carry(ep, to, parcel_new(ep->node, &b->frame, len));
	}
	return 0;
}

static int send(
	struct p3_endpoint *ep, uint64_t to, struct p3_far_buffer *b, uint32_t len)
{
	pthread_mutex_lock(&lock);
	int rc = send_locked(ep, ends[to], (uint32_t)to, b, len);
	pthread_mutex_unlock(&lock);
	errno = EPROTO; /* as the calls of libfabric change it */
	return rc;
}

static int post(struct p3_endpoint *ep, struct p3_far_buffer *b)
{
	pthread_mutex_lock(&lock);
	b->next = ep->posted;
	ep->posted = b;
	pthread_mutex_unlock(&lock);
	return 0;
}

static bool take_receipt(struct p3_endpoint *ep, struct p3_far_event *out)
{
	struct receipt *r = ep->done;
	if (!r)
		return false;
	*out = (struct p3_far_event){.op = &r->buffer->op, .failed = r->failed};
	ep->done = r->next;
	if (!ep->done)
		ep->done_last = &ep->done;
	free(r);
	return true;
}

static bool take_parcel(struct p3_endpoint *ep, struct p3_far_event *out)
{
	struct parcel *p = ep->in.first;
	struct p3_far_buffer *b = ep->posted;
	if (!p || !b)
		return false;
	memcpy(&b->frame, &p->frame, p->len);
	*out = (struct p3_far_event){.op = &b->op, .len = p->len};
	ep->posted = b->next;
	ep->in.first = p->next;
	ep->in.n--;
	if (!ep->in.first)
		ep->in.last = &ep->in.first;
	free(p);
	counts.came++;
	return true;
}

static uint32_t poll(struct p3_endpoint *ep, struct p3_far_event *out, uint32_t most)
{
	uint32_t n = 0;
	pthread_mutex_lock(&lock);
	serve_all(ep);
	while (n < most && (take_receipt(ep, &out[n]) || take_errand(ep, &out[n]) ||
				   take_parcel(ep, &out[n])))
		n++;
	pthread_mutex_unlock(&lock);
	errno = EPROTO;
	return n;
}

static int news(const struct p3_endpoint *ep)
{
	return ep->news;
}

static int arm(struct p3_endpoint *ep)
{
	uint64_t times;
	pthread_mutex_lock(&lock);
	bool any = ep->done || ep->asked || ep->over || (ep->in.first && ep->posted);
	if (!any)
		(void)!read(ep->news, &times, sizeof times);
	pthread_mutex_unlock(&lock);
	return any ? -EAGAIN : 0;
}

const struct p3_endpoint_ops loop_ops = {.loses_buffers = true,
	.open = open_end,
	.close = close_end,
	.name = name,
	.resolve = resolve,
	.send = send,
	.post = post,
	.poll = poll,
	.news = news,
	.arm = arm,
	.reads = reads,
	.offer = offer,
	.recall = recall,
	.read = read_there,
	.cut = cut_off};

/* ---- settings ---- */

static void read_fault(const char *text)
{
	for (int i = 0; i < LOOP_FAULTS; i++) {
		size_t len = strlen(names[i]);
		if (strncmp(text, names[i], len) == 0 && text[len] == '=') {
			rates[i] = (uint32_t)strtoul(text + len + 1, NULL, 10);
			return;
		}
	}
	fprintf(stderr, "P3_FAR: no fault is named '%s'\n", text);
	abort();
}

uint32_t loop_from_environment(void)
{
	char text[200];
	const char *from = getenv("P3_FAR");
	if (!from)
		return 0;
	snprintf(text, sizeof text, "%s", from);
	char *rest, *first = strtok_r(text, ",", &rest), *next;
	while ((next = strtok_r(NULL, ",", &rest)))
		read_fault(next);
	state = 1;
	return first ? (uint32_t)strtoul(first, NULL, 10) : 0;
}

bool loop_missed(void)
{
	struct loop_counts c = loop_counts();
	bool missed = !c.came;
	printf("# far: %llu reads, %llu served\n", (unsigned long long)c.reads,
		(unsigned long long)c.served);
	printf("# far: %llu frames sent, %llu came, %llu refused, %llu failed;",
		(unsigned long long)c.sent, (unsigned long long)c.came,
		(unsigned long long)c.refused, (unsigned long long)c.failed);
	for (int i = 0; i < LOOP_FAULTS; i++) {
		printf(" %s %llu", names[i], (unsigned long long)c.faults[i]);
		uint64_t chances = i < LOOP_UNREAD ? c.sent : c.reads;
		missed |= chances * rates[i] > SURE * MILLION && !c.faults[i];
	}
	printf("; at most %u waited\n", c.most_waiting);
	return missed;
}
