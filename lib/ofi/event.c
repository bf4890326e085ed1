/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * event.c - queues of Portals, the requests and descriptors that their events name
 *
 * Events of a queue are handled in their order.  A thread that sleeps takes its event
 * without the lock; so a reader may find that an earlier event is on its way to being
 * handled.  Then the reader leaves its own event in the queue (early), and the thread
 * that handles the missing event goes on with it.  Queues of late messages are read
 * under the lock only: PtlMEMDPost would take an event for handled that has only been
 * taken.
 */
#include "prov.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Serial numbers: domain, generation, place. */
enum {
	REQ_CHUNK = 256,
	REQ_PLACE_BITS = 20,
	REQ_GENERATION_BITS = 8,
	REQ_MOST = 1 << REQ_PLACE_BITS
};

enum {
	SLEEP_TURN_MS = 400,   /* between two looks at late messages */
	SLEEP_WAITING_MS = 2,  /* the same while receives wait for them */
	PROGRESS_OTHERS = 256, /* reads between two looks at other domains */
	WATCH_PERIODS = 3,
	FENCE_MS = 10000
};

uint64_t ofi_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

int ofi_error(int ptl)
{
	switch (ptl) {
	case PTL_OK:
	case PTL_EQ_DROPPED:
		return 0;
	case PTL_NO_INIT:
		return -FI_EOPBADSTATE;
	case PTL_NO_SPACE:
	case PTL_ME_LIST_TOO_LONG:
		return -FI_EAGAIN;
	case PTL_PROCESS_INVALID:
		return -FI_EADDRNOTAVAIL;
	case PTL_PID_INVALID:
		return -FI_EADDRINUSE;
	case PTL_IFACE_DUP:
		return -FI_EBUSY;
	case PTL_IFACE_INVALID:
		return -FI_ENODEV;
	default:
		return -FI_EOTHER;
	}
}

int ofi_wait_control(enum fi_wait_obj wait, int fd, int command, void *arg)
{
	if (command != FI_GETWAITOBJ && (command != FI_GETWAIT || fd < 0))
		return -FI_ENOSYS;
	if (!arg)
		return -FI_EINVAL;
	if (command == FI_GETWAITOBJ)
		*(enum fi_wait_obj *)arg = wait;
	else
		*(int *)arg = fd;
	return 0;
}

int ofi_accept(ptl_pt_index_t index, unsigned options, ptl_handle_me_t *me)
{
	ptl_md_t md = {
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_TRUNCATE | options,
		.eq_handle = PTL_EQ_NONE,
	};
	return PtlMEMDAttach(ofi_node.ni, index, ofi_anyone, 0, ~0ull, PTL_RETAIN,
		PTL_INS_AFTER, md, PTL_RETAIN, me, NULL);
}

/* ---- requests ---- */

static OFI_RARE bool req_more(struct ofi_domain *domain)
{
	if (domain->nchunks == REQ_MOST / REQ_CHUNK - 1) /* no request has UINT32_MAX */
		return false;
	if (!(domain->nchunks & (domain->nchunks - 1))) {
		size_t room = domain->nchunks ? 2 * domain->nchunks : 1;
		void *chunks = realloc(domain->chunks, room * sizeof *domain->chunks);
		if (!chunks)
			return false;
		domain->chunks = chunks;
	}
	struct ofi_req *chunk = calloc(REQ_CHUNK, sizeof *chunk);
	if (!chunk)
		return false;
	for (uint32_t i = 0; i < REQ_CHUNK; i++) {
		chunk[i].serial = (uint32_t)domain->number << (32 - 4) |
				  (domain->nchunks * REQ_CHUNK + i);
		TAILQ_INSERT_TAIL(&domain->free, &chunk[i], link);
	}
	domain->chunks[domain->nchunks++] = chunk;
	return true;
}

struct ofi_req *ofi_req_new(struct ofi_ep *ep)
{
	struct ofi_domain *domain = ep->domain;
	struct ofi_req *req = TAILQ_FIRST(&domain->free);
	if (OFI_UNLIKELY(!req)) {
		if (!req_more(domain))
			return NULL;
		req = TAILQ_FIRST(&domain->free);
	}
	TAILQ_REMOVE(&domain->free, req, link);
	memset((char *)req + offsetof(struct ofi_req, context), 0,
		offsetof(struct ofi_req, link) - offsetof(struct ofi_req, context));
	req->ep = ep;
	return req;
}

/* Return the request with this number, or NULL. */
static struct ofi_req *req_find(struct ofi_domain *domain, uint32_t serial)
{
	uint32_t place = serial & (REQ_MOST - 1);
	if (place / REQ_CHUNK >= domain->nchunks)
		return NULL;
	struct ofi_req *req = &domain->chunks[place / REQ_CHUNK][place % REQ_CHUNK];
	return req->serial == serial && req->ep ? req : NULL;
}

/* Give the op back.  A late ACK of a failed operation must not look like that of the
 * next one: its descriptor goes, and op_event() knows the handle. */
static void op_return(struct ofi_op *op, bool failed)
{
	op->req = NULL;
	if (op->own || failed) {
		PtlMDUnlink(op->md);
		op->md = PTL_INVALID_HANDLE;
	}
	op->own = false;
	op->next = op->pool->free;
	op->pool->free = op;
}

void ofi_req_free(struct ofi_req *req)
{
	struct ofi_domain *domain = req->ep->domain;
	const uint32_t step = 1u << REQ_PLACE_BITS;
	const uint32_t generation = ((1u << REQ_GENERATION_BITS) - 1) << REQ_PLACE_BITS;
	if (req->op)
		op_return(req->op, req->err != 0);
	req->ep = NULL;
	if (OFI_UNLIKELY(req->is_watched)) {
		req->serial =
			(req->serial & ~generation) | ((req->serial + step) & generation);
		TAILQ_REMOVE(&domain->watched, req, watch);
		/* A peer knows the serial number, which so returns late. */
		TAILQ_INSERT_TAIL(&domain->free, req, link);
	} else {
		TAILQ_INSERT_HEAD(&domain->free, req, link); /* near in the cache */
	}
}

void ofi_reqs_free(struct ofi_domain *domain)
{
	for (uint32_t i = 0; i < domain->nchunks; i++)
		free(domain->chunks[i]);
	free(domain->chunks);
}

/* ---- descriptors over the whole space ---- */

static void op_event(struct ofi_sink *sink, const ptl_event_t *event)
{
	struct ofi_op *op = container_of(sink, struct ofi_op, sink);
	if (op->req && event->md_handle == op->md)
		op->req->sink.event(&op->req->sink, event);
}

static int queue_bind(struct ofi_queue *queue, struct ofi_sink *sink, ptl_md_t md,
	ptl_handle_md_t *handle)
{
	md.threshold = PTL_MD_THRESH_INF;
	md.options |= PTL_MD_EVENT_START_DISABLE | PTLX_MD_REPLY_ALWAYS;
	md.user_ptr = sink;
	md.eq_handle = queue->eq;
	return PtlMDBind(ofi_node.ni, md, PTL_RETAIN, handle);
}

static const ptl_md_t queue_space = {
	.start = (void *)OFI_SPACE_BASE,
	.length = OFI_SPACE_END - OFI_SPACE_BASE,
};

static OFI_RARE struct ofi_op *op_make(struct ofi_queue *queue, struct ofi_pool *pool)
{
	struct ofi_op *op = pool->left ? calloc(1, sizeof *op) : NULL;
	if (!op)
		return NULL;
	pool->left--;
	op->made = queue->made;
	queue->made = op;
	op->sink.event = op_event;
	op->queue = queue;
	op->pool = pool;
	op->md = PTL_INVALID_HANDLE;
	return op;
}

/* Lend the op to the request, with a descriptor of md if it has none. */
static bool op_lend(struct ofi_op *op, struct ofi_req *req, const ptl_md_t *md)
{
	if (OFI_UNLIKELY(op->md == PTL_INVALID_HANDLE) &&
		queue_bind(op->queue, &op->sink, *md, &op->md) != PTL_OK) {
		op->md = PTL_INVALID_HANDLE;
		op_return(op, false);
		return false;
	}
	op->req = req;
	req->op = op;
	return true;
}

bool ofi_op_borrow(struct ofi_queue *queue, struct ofi_req *req, const struct iovec *iov,
	size_t count, enum ofi_ops use)
{
	struct ofi_pool *pool = &queue->pools[use];
	struct ofi_op *op = pool->free;
	if (OFI_LIKELY(op != NULL))
		pool->free = op->next;
	else if (!(op = op_make(queue, pool)))
		return false;
	if (OFI_LIKELY(count <= 1))
		return op_lend(op, req, &queue_space);
	if (op->md != PTL_INVALID_HANDLE)
		PtlMDUnlink(op->md);
	op->md = PTL_INVALID_HANDLE;
	op->own = true;
	return op_lend(op, req,
		&(ptl_md_t){
			.start = (void *)(uintptr_t)iov,
			.length = count,
			.options = PTL_MD_IOVEC,
		});
}

void ofi_op_return(struct ofi_req *req)
{
	op_return(req->op, false);
	req->op = NULL;
}

/* ---- queues ---- */

/* SEND_END of a short message. */
static void queue_event(struct ofi_sink *sink, const ptl_event_t *event)
{
	struct ofi_queue *queue = container_of(sink, struct ofi_queue, sink);
	struct ofi_req *req = req_find(queue->domain, (uint32_t)event->hdr_data);
	if (OFI_LIKELY(req != NULL)) {
		req->sink.event(&req->sink, event);
	} else if ((uint32_t)event->hdr_data == UINT32_MAX) { /* of queue_ping() */
		queue->waking = false;
		queue->pings_seen++;
	}
}

int ofi_queue_open(struct ofi_queue *queue, struct ofi_domain *domain, unsigned count)
{
	*queue = (struct ofi_queue){
		.sink.event = queue_event,
		.domain = domain,
		.md = PTL_INVALID_HANDLE,
		.posted = OFI_POSTED,
		.sends = OFI_SENDS,
	};
	int rc = PtlEQAlloc(ofi_node.ni, count, PTL_EQ_HANDLER_NONE, &queue->eq);
	if (rc != PTL_OK) {
		queue->domain = NULL;
		return -FI_ENOMEM;
	}
	rc = queue_bind(queue, &queue->sink, queue_space, &queue->md);
	if (count == OFI_EVENTS) {
		queue->pools[OFI_OF_PROGRAM].left = OFI_OPS;
		queue->pools[OFI_OF_FETCH].left = OFI_FETCHES;
		queue->pools[OFI_OF_QUESTION].left = OFI_QUESTIONS;
	}
	if (rc != PTL_OK) {
		ofi_queue_close(queue);
		return -FI_ENOMEM;
	}
	return 0;
}

void ofi_queue_close(struct ofi_queue *queue)
{
	if (!queue->domain)
		return;
	if (queue->md != PTL_INVALID_HANDLE)
		PtlMDUnlink(queue->md);
	for (struct ofi_op *op = queue->made, *next; op; op = next) {
		next = op->made;
		if (op->md != PTL_INVALID_HANDLE)
			PtlMDUnlink(op->md);
		free(op);
	}
	PtlEQFree(queue->eq);
	queue->domain = NULL;
}

/* Have a SEND_END without a request put into the queue. */
static int queue_ping(struct ofi_queue *queue)
{
	int rc = PtlPutRegion(queue->md, 0, 0, PTL_NO_ACK_REQ, ofi_node.id, OFI_PT_SYSTEM,
		ofi_node.ac, 0, 0, UINT32_MAX);
	queue->pings += rc == PTL_OK;
	return rc;
}

void ofi_queue_wake(struct ofi_queue *queue)
{
	if ((!queue->asleep && !queue->armed) || queue->waking)
		return;
	queue->waking = queue_ping(queue) == PTL_OK;
}

void ofi_let_others(struct ofi_domain *domain)
{
	ofi_leave(domain);
	sched_yield();
	(void)ofi_enter(domain);
}

void ofi_queue_quiet(struct ofi_queue *queue)
{
	while (queue->sleepers) {
		ofi_queue_wake(queue);
		ofi_let_others(queue->domain);
	}
}

/* Handle the event that has waited. */
static void queue_handle_early(struct ofi_queue *queue)
{
	ptl_event_t early = queue->early;
	struct ofi_sink *sink = early.md.user_ptr;
	queue->has_early = false;
	sink->event(sink, &early);
}

/* Handle an event whose turn it is, and those that have waited for it. */
static void queue_handle(struct ofi_queue *queue, const ptl_event_t *event)
{
	struct ofi_sink *sink = event->md.user_ptr;
	queue->read = event->sequence;
	queue->started = true;
	sink->event(sink, event);
	while (OFI_UNLIKELY(queue->has_early) &&
		queue->early.sequence == queue->read + 1) {
		queue->read++;
		queue_handle_early(queue);
	}
}

/* This event comes next, as those before it were lost, or others have taken them
 * (sleep_handle): the one that waits, if it is among them, is handled now. */
static OFI_RARE void queue_skip(struct ofi_queue *queue, const ptl_event_t *event)
{
	queue->lost += event->sequence - queue->read - 1;
	queue->read = event->sequence - 1;
	if (!queue->has_early || (int32_t)(queue->early.sequence - event->sequence) >= 0)
		return;
	queue->lost--;
	queue_handle_early(queue);
}

bool ofi_queue_step(struct ofi_queue *queue)
{
	ptl_event_t event;
	if (OFI_UNLIKELY(queue->has_early))
		return false;
	int rc = PtlEQGet(queue->eq, &event);
	if (rc != PTL_OK && rc != PTL_EQ_DROPPED)
		return false;
	if (OFI_UNLIKELY(rc == PTL_EQ_DROPPED)) {
		queue_skip(queue, &event);
	} else if (OFI_UNLIKELY(event.sequence != queue->read + 1 && queue->sleepers)) {
		queue->early = event;
		queue->has_early = true;
		return false;
	}
	queue_handle(queue, &event);
	return true;
}

/* Without sleepers nobody but the lock's holder has an event; with some, an event that
 * comes last is handled last. */
bool ofi_queue_fence(struct ofi_queue *queue)
{
	uint64_t end = ofi_now() + FENCE_MS;
	unsigned pings = 0;
	bool pinged = false;
	for (;;) {
		while (ofi_queue_step(queue))
			;
		if (!queue->sleepers || (pinged && (int)(queue->pings_seen - pings) >= 0))
			return true;
		if (ofi_now() >= end)
			return false;
		if (!pinged && queue_ping(queue) == PTL_OK) {
			pinged = true;
			pings = queue->pings;
		}
		ofi_let_others(queue->domain);
		PtlProgress(queue->eq, 0);
	}
}

/* ---- progress ---- */

/* End a question whether a peer lives. */
static void watch_asked(struct ofi_req *ask)
{
	TAILQ_REMOVE(&ask->ep->domain->asks, ask, link);
	ask->ep->under_way--;
	ofi_req_free(ask);
}

/* The answer, which comes behind those of the requests in the same queue. */
static void watch_event(struct ofi_sink *sink, const ptl_event_t *event)
{
	struct ofi_req *ask = container_of(sink, struct ofi_req, sink), *req, *next;
	struct ofi_domain *domain = ask->ep->domain;
	const struct ofi_queue *queue = ask->op->queue;
	ptl_process_id_t peer = ask->peer;
	if (event->type != PTL_EVENT_REPLY_END) /* it follows a failed SEND_END, too */
		return;
	watch_asked(ask);
	if (event->ni_fail_type == PTL_NI_OK)
		return;
	for (req = TAILQ_FIRST(&domain->watched); req; req = next) {
		next = TAILQ_NEXT(req, watch);
		if (req->op->queue == queue && ofi_is_same(req->peer, peer))
			req->sink.event(&req->sink, event);
	}
}

/* Ask a peer for no bytes, unless it has yet to answer in this queue. */
static void watch_ask(struct ofi_req *req)
{
	struct ofi_domain *domain = req->ep->domain;
	struct ofi_req *ask;
	TAILQ_FOREACH(ask, &domain->asks, link)
	if (ask->op->queue == req->op->queue && ofi_is_same(ask->peer, req->peer))
		return;
	ask = ofi_req_new(req->ep);
	if (!ask)
		return;
	ask->sink.event = watch_event;
	ask->peer = req->peer;
	if (!ofi_op_borrow(req->op->queue, ask, NULL, 0, OFI_OF_QUESTION) ||
		PtlGetRegion(ask->op->md, 0, 0, req->peer, OFI_PT_SYSTEM, ofi_node.ac, 0,
			0) != PTL_OK) {
		ofi_req_free(ask);
		return;
	}
	FAULT_POINT("ofi.asked");
	req->ep->under_way++;
	TAILQ_INSERT_TAIL(&domain->asks, ask, link);
}

void ofi_watch_end(struct ofi_ep *ep)
{
	struct ofi_req *ask, *next;
	for (ask = TAILQ_FIRST(&ep->domain->asks); ask; ask = next) {
		next = TAILQ_NEXT(ask, link);
		if (ask->ep != ep)
			continue;
		ask->err = FI_ECANCELED; /* its answer finds another descriptor */
		watch_asked(ask);
	}
}

void ofi_watch(struct ofi_req *req)
{
	req->due = req->ep->domain->period + WATCH_PERIODS;
	req->is_watched = true;
	TAILQ_INSERT_TAIL(&req->ep->domain->watched, req, watch);
}

/* A period ends here, when its time is over: so a request needs no clock, and the first
 * period of one that is watched may be short. */
static void watch_all(struct ofi_domain *domain)
{
	uint64_t now = ofi_now();
	struct ofi_req *req = TAILQ_FIRST(&domain->watched);
	if (now >= domain->period_ends) {
		domain->period++;
		domain->period_ends = now + OFI_PERIOD_MS;
	}
	for (; (int)(domain->period - req->due) >= 0;
		req = TAILQ_FIRST(&domain->watched)) {
		TAILQ_REMOVE(&domain->watched, req, watch);
		ofi_watch(req); /* so it is not due */
		watch_ask(req);
	}
}

static void progress_lists(struct ofi_domain *domain)
{
	struct ofi_ep *ep;
	LIST_FOREACH(ep, &domain->eps, next)
	for (int i = 0; i < OFI_LISTS; i++)
		if (ep->lists[i].ep)
			ep->lists[i].settle(&ep->lists[i]);
}

/*
 * A message that waits for one domain also holds up those behind it for others, so a
 * read of any queue goes on with all domains that no other thread is in, and that the
 * program does not keep to one thread.
 */
static OFI_SLOW void progress_others(struct ofi_domain *domain)
{
	if (pthread_mutex_trylock(&ofi_node.lock))
		return;
	for (int i = 0; i < OFI_DOMAINS; i++) {
		struct ofi_domain *other = ofi_node.open[i];
		if (!other || other == domain || !other->safe ||
			pthread_mutex_trylock(&other->lock))
			continue;
		progress_lists(other);
		pthread_mutex_unlock(&other->lock);
	}
	pthread_mutex_unlock(&ofi_node.lock);
}

void ofi_progress_now(struct ofi_domain *domain, bool urgent)
{
	progress_lists(domain);
	if (!TAILQ_EMPTY(&domain->watched))
		watch_all(domain);
	if (urgent || domain->reads % PROGRESS_OTHERS == 0)
		progress_others(domain);
}

/* Before threads sleep in a queue, one event must tell where their numbers begin. */
bool ofi_queue_start(struct ofi_queue *queue)
{
	if (OFI_LIKELY(queue->started))
		return true;
	if (queue_ping(queue) != PTL_OK)
		return false;
	while (!queue->started)
		if (!ofi_queue_step(queue))
			PtlProgress(queue->eq, 0);
	return true;
}

/* Take the event of a sleeper, in its turn. */
static void sleep_handle(struct ofi_queue *queue, int rc, const ptl_event_t *event)
{
	struct ofi_sink *sink = event->md.user_ptr;
	while (rc == PTL_OK && (int32_t)(event->sequence - queue->read) > 1)
		ofi_let_others(queue->domain);
	if ((int32_t)(event->sequence - queue->read) <= 0) {
		/* Another has taken it for lost, and gone on behind it. */
		queue->lost--;
		sink->event(sink, event);
		return;
	}
	if (rc == PTL_EQ_DROPPED)
		queue_skip(queue, event);
	queue_handle(queue, event);
}

bool ofi_sleep(struct ofi_domain *domain, struct ofi_queue *const *queues, int count,
	int timeout)
{
	ptl_handle_eq_t eqs[OFI_SLEEPS];
	ptl_event_t event;
	int which, turn = domain->waiting ? SLEEP_WAITING_MS : SLEEP_TURN_MS;
	if (timeout >= 0 && timeout < turn)
		turn = timeout;
	for (int i = 0; i < count; i++) {
		if (!ofi_queue_start(queues[i]))
			return false;
		eqs[i] = queues[i]->eq;
	}
	for (int i = 0; i < count; i++) {
		queues[i]->sleepers++;
		queues[i]->asleep++;
	}
	ofi_leave(domain);
	int rc = PtlEQPoll(eqs, count, (ptl_time_t)turn, &event, &which);
	(void)ofi_enter(domain);
	for (int i = 0; i < count; i++)
		queues[i]->asleep--;
	bool got = rc == PTL_OK || rc == PTL_EQ_DROPPED;
	if (got)
		sleep_handle(queues[which], rc, &event);
	for (int i = 0; i < count; i++)
		queues[i]->sleepers--;
	ofi_progress(domain, true);
	return got;
}
