/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cq.c - completion queues
 *
 * A read goes from the event to the caller's array: while it runs, completions are
 * written there.  A completion that comes of another call waits in a ring.
 *
 * A thread that waits sleeps in the queue of events, and in one more, news: a message to
 * itself there wakes it for completions that have no event any more.  Any look at the
 * queue of events takes them, also that of another thread or of a counter; events of news
 * are taken by threads that sleep, and before the program sleeps on the descriptor.
 */
#include "prov.h"

#include <errno.h>
#include <stdio.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum {
	CQ_STEPS = 256,        /* events that one read handles at most */
	CQ_EMPTY = 1024,       /* reads that find nothing, from one rest to the next */
	CQ_DATA_TURNS = 16,    /* reads of which one begins with completions with data, */
	CQ_EVENT_TURNS = 4,    /* and so many of which one begins with events */
	CQ_BURST_TICKS = 8192, /* from one read of a burst to the next, at most */
	CQ_TURN_NS = 400000000 /* a program sleeps on a descriptor for so long */
};

/* ---- writing ---- */

/* Make the ring larger, or the queue broken. */
static OFI_RARE void cq_grow(struct ofi_cq *cq)
{
	size_t room = cq->ring_room ? 2 * cq->ring_room : 256;
	struct ofi_entry *ring = malloc(room * sizeof *ring);
	cq->broken |= !ring;
	if (!ring)
		return;
	for (size_t i = 0; i < cq->ring_used; i++)
		ring[i] = cq->ring[(cq->ring_head + i) & (cq->ring_room - 1)];
	free(cq->ring);
	cq->ring = ring;
	cq->ring_head = 0;
	cq->ring_room = room;
}

/* Keep a completion until it is read. */
static inline void cq_keep(
	struct ofi_cq *cq, const struct fi_cq_err_entry *e, fi_addr_t source)
{
	if (OFI_UNLIKELY(cq->ring_used == cq->ring_room))
		cq_grow(cq);
	if (OFI_UNLIKELY(cq->broken))
		return;
	struct ofi_entry *entry =
		&cq->ring[(cq->ring_head + cq->ring_used++) & (cq->ring_room - 1)];
	memcpy(&entry->e, e, sizeof entry->e);
	entry->source = source;
	cq->silent_since = 0;
	if (OFI_UNLIKELY(cq->told))
		ofi_silence_end(cq);
	if (OFI_UNLIKELY(cq->news.asleep | cq->news.armed))
		ofi_queue_wake(&cq->news);
}

static OFI_RARE void cq_fail(
	struct ofi_cq *cq, const struct fi_cq_err_entry *e, fi_addr_t source)
{
	struct ofi_error *error = malloc(sizeof *error);
	if (!error) {
		cq->broken = true;
		return;
	}
	error->e = *e;
	error->source = source;
	STAILQ_INSERT_TAIL(&cq->errors, error, next);
	ofi_silence_end(cq);
	ofi_queue_wake(&cq->news);
}

/* The entries of all formats are beginnings of the longest. */
static inline void cq_write(struct ofi_cq *cq, const void *e, fi_addr_t source)
{
	switch (cq->format) {
	case FI_CQ_FORMAT_TAGGED:
		memcpy(cq->out, e, sizeof(struct fi_cq_tagged_entry));
		break;
	case FI_CQ_FORMAT_DATA:
		memcpy(cq->out, e, sizeof(struct fi_cq_data_entry));
		break;
	case FI_CQ_FORMAT_MSG:
		memcpy(cq->out, e, sizeof(struct fi_cq_msg_entry));
		break;
	default:
		memcpy(cq->out, e, sizeof(struct fi_cq_entry));
	}
	cq->out += cq->stride;
	cq->out_left--;
	if (cq->out_source)
		*cq->out_source++ = source;
}

void ofi_cq_add(struct ofi_cq *cq, const struct fi_cq_err_entry *e, fi_addr_t source)
{
	if (OFI_UNLIKELY(e->err))
		cq_fail(cq, e, source);
	else if (OFI_LIKELY(cq->out_left))
		cq_write(cq, e, source);
	else
		cq_keep(cq, e, source);
}

void ofi_complete(
	struct ofi_req *req, struct ofi_cq *cq, struct fi_cq_err_entry *e, fi_addr_t from)
{
	ofi_cntr_count(req->ep->cntrs[req->cntr], e->err);
	if (!cq || (req->silent && !e->err))
		return;
	e->op_context = req->context;
	e->flags |= req->flags;
	ofi_cq_add(cq, e, from);
}

/* ---- reading ---- */

/* Return true if completions with data come here. */
static bool cq_takes_data(const struct ofi_cq *cq)
{
	const struct ofi_ep *ep;
	LIST_FOREACH(ep, &cq->domain->eps, next)
	if (ep->rx_cq == cq)
		return true;
	return false;
}

/*
 * Handle the events that are there, as far as there is room for completions.  A read that
 * follows one without a completion ends with its first completion: most likely there is
 * no other one, and a look for it runs the firmware, while the program could answer.
 */
static inline void cq_step(struct ofi_cq *cq, size_t count)
{
	struct ofi_queue *data = cq->domain->data;
	/* A read that ends with its first event would never come to these. */
	if (OFI_UNLIKELY(data != NULL) && cq->reads % CQ_DATA_TURNS == 0 &&
		(cq->out_left || !count))
		(void)ofi_queue_step(data);
	for (int n = 0; n < CQ_STEPS && (cq->out_left || !count); n++)
		if (!ofi_queue_step(&cq->queue) || (cq->out_left < count && !cq->busy))
			break;
	if (OFI_LIKELY(!data) || (cq->out_left < count && !cq->busy))
		return;
	for (int n = 0; n < CQ_STEPS && (cq->out_left || !count); n++)
		if (!ofi_queue_step(data))
			break;
	if (OFI_UNLIKELY(data->lost != 0))
		cq->broken |= cq_takes_data(cq);
}

/* Give the program what has been kept for it, as far as there is room. */
static inline void cq_take_kept(struct ofi_cq *cq)
{
	while (cq->ring_used && cq->out_left) {
		struct ofi_entry *entry = &cq->ring[cq->ring_head];
		cq->ring_head = (cq->ring_head + 1) & (cq->ring_room - 1);
		cq->ring_used--;
		cq_write(cq, &entry->e, entry->source);
	}
}

/* After a read in a queue that has lost events, or whose wait tools know. */
static OFI_RARE void cq_seldom(struct ofi_cq *cq, bool got)
{
	cq->broken |= cq->queue.lost != 0;
	if (got)
		ofi_silence_end(cq);
}

/* Spend a moment between two looks of a program that waits: a look just when the peer
 * writes its message takes the line away from it, and the message comes later. */
static inline void cq_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield");
#endif
}

/* Read with the domain entered. */
static ssize_t cq_take(struct ofi_cq *cq, void *buf, size_t count, fi_addr_t *source)
{
	bool kept_first = ++cq->reads % CQ_EVENT_TURNS;
	if (OFI_UNLIKELY(!STAILQ_EMPTY(&cq->errors)) && (!cq->ring_used || !kept_first))
		return -FI_EAVAIL;
	if (OFI_UNLIKELY(cq->broken))
		return -FI_EOVERRUN;
	cq->out = buf;
	cq->out_source = source;
	cq->out_left = count;
	if (kept_first)
		cq_take_kept(cq);
	cq_step(cq, count);
	if (!kept_first)
		cq_take_kept(cq);
	ofi_progress(cq->domain, false);
	size_t got = count - cq->out_left;
	cq->out_left = 0;
	if (!got && !cq->busy)
		cq_pause();
	cq->busy = got != 0;
	if (OFI_UNLIKELY(cq->queue.lost | cq->told))
		cq_seldom(cq, got != 0);
	if (got) {
		cq->silent_since = 0;
		return (ssize_t)got;
	}
	if (OFI_UNLIKELY(!STAILQ_EMPTY(&cq->errors)))
		return -FI_EAVAIL;
	if (cq->ring_used && !count)
		return 0;
	if (OFI_UNLIKELY(++cq->empty % CQ_EMPTY == 0))
		ofi_silence(cq);
	return -FI_EAGAIN;
}

/* Return true if a read without any event would tell something. */
static bool cq_has(const struct ofi_cq *cq)
{
	return cq->ring_used || !STAILQ_EMPTY(&cq->errors) || cq->broken;
}

bool ofi_cq_peek(struct ofi_cq *cq)
{
	if (!cq->ring_used) /* else each look would take more events into the ring */
		(void)cq_take(cq, NULL, 0, NULL);
	return cq_has(cq);
}

/* Return a time of the processor's clock, or 0 if that takes long to read. */
static inline uint64_t cq_ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	return 0;
#endif
}

/*
 * A program that reads until nothing is left has had all that was there: it most likely
 * wants to go on with that, before a look for more, which runs the firmware.  So the read
 * directly behind one that has not filled its array finds nothing.
 * Where nothing has come for long, the program may be one of more ranks than CPUs: the
 * one that is to send may have the CPU.
 */
static ssize_t cq_readfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *source)
{
	struct ofi_cq *cq = container_of(fid, struct ofi_cq, fid);
	if (OFI_UNLIKELY(!buf && count))
		return -FI_EINVAL;
	OFI_ENTER(cq->domain);
	bool drained = cq->drained_at && cq_ticks() - cq->drained_at < CQ_BURST_TICKS &&
		       !cq_has(cq);
	ssize_t rc = drained ? -FI_EAGAIN : cq_take(cq, buf, count, source);
	cq->drained_at = rc > 0 && (size_t)rc < count ? cq_ticks() : 0;
	bool rests = !drained && rc == -FI_EAGAIN && cq->empty % CQ_EMPTY == 0;
	ofi_leave(cq->domain);
	if (OFI_UNLIKELY(rests))
		sched_yield();
	return rc;
}

static OFI_FAST ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	return cq_readfrom(fid, buf, count, NULL);
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf, uint64_t flags)
{
	struct ofi_cq *cq = container_of(fid, struct ofi_cq, fid);
	if (!buf)
		return -FI_EINVAL;
	if (flags)
		return -FI_EBADFLAGS;
	OFI_ENTER(cq->domain);
	/* Programs that are told to try again may look for errors only. */
	if (STAILQ_EMPTY(&cq->errors))
		(void)cq_take(cq, NULL, 0, NULL);
	struct ofi_error *error = STAILQ_FIRST(&cq->errors);
	if (error)
		STAILQ_REMOVE_HEAD(&cq->errors, next);
	ofi_leave(cq->domain);
	if (!error)
		return -FI_EAGAIN;
	/* There are no error data; programs for API 1.4 have no room for their length. */
	memcpy(buf, &error->e, offsetof(struct fi_cq_err_entry, err_data));
	if (FI_VERSION_GE(cq->domain->fabric->fid.api_version, FI_VERSION(1, 5)))
		buf->err_data_size = 0;
	else
		buf->err_data = NULL;
	free(error);
	return 1;
}

/* One message wakes one thread.  It may be another than that which has to wake, or leave
 * completions for more: so each thread calls this before it sleeps, or leaves. */
static void cq_wake_next(struct ofi_cq *cq)
{
	if (cq->signal_left || cq_has(cq))
		ofi_queue_wake(&cq->news);
}

static ssize_t cq_sreadfrom(struct fid_cq *fid, void *buf, size_t count,
	fi_addr_t *source, const void *cond, int timeout)
{
	struct ofi_cq *cq = container_of(fid, struct ofi_cq, fid);
	struct ofi_queue *queues[3] = {&cq->queue, &cq->news};
	uint64_t end = ofi_now() + (uint64_t)timeout;
	(void)cond; /* a hint only */
	if (!buf && count)
		return -FI_EINVAL;
	OFI_ENTER(cq->domain);
	ssize_t rc;
	unsigned signals = cq->signals;
	cq->readers++;
	while ((rc = cq_take(cq, buf, count, source)) == -FI_EAGAIN && !cq->signalled &&
		cq->signals == signals) {
		uint64_t now = ofi_now();
		if (timeout >= 0 && now >= end)
			break;
		cq_wake_next(cq);
		ofi_silence(cq);
		queues[2] = cq->domain->data;
		ofi_sleep(cq->domain, queues, queues[2] ? 3 : 2,
			timeout < 0 ? -1 : (int)(end - now));
	}
	if (rc == -FI_EAGAIN)
		cq->signalled = false;
	if (cq->signals != signals)
		cq->signal_left--;
	cq->readers--;
	cq_wake_next(cq);
	ofi_leave(cq->domain);
	return rc;
}

static ssize_t cq_sread(
	struct fid_cq *fid, void *buf, size_t count, const void *cond, int timeout)
{
	return cq_sreadfrom(fid, buf, count, NULL, cond, timeout);
}

static int cq_signal(struct fid_cq *fid)
{
	struct ofi_cq *cq = container_of(fid, struct ofi_cq, fid);
	OFI_ENTER(cq->domain);
	cq->signals++;
	cq->signal_left = cq->readers;
	cq->signalled |= !cq->readers || cq->news.armed;
	ofi_queue_wake(&cq->news);
	ofi_leave(cq->domain);
	return 0;
}

static const char *cq_strerror(
	struct fid_cq *fid, int prov_errno, const void *err_data, char *buf, size_t len)
{
	(void)fid;
	(void)err_data;
	const char *text = PtlNIFailStr(ofi_node.ni, (ptl_ni_fail_t)prov_errno);
	if (!buf || !len)
		return text;
	snprintf(buf, len, "%s", text);
	return buf;
}

/* ---- a descriptor ---- */

static int cq_watch(struct ofi_cq *cq, struct ofi_queue *queue)
{
	int fd;
	struct epoll_event event = {.events = EPOLLIN};
	if (PtlXEQDescriptor(queue->eq, &fd) != PTL_OK)
		return -FI_EMFILE;
	return epoll_ctl(cq->set, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int cq_open_set(struct ofi_cq *cq)
{
	struct epoll_event event = {.events = EPOLLIN};
	cq->set = epoll_create1(EPOLL_CLOEXEC);
	cq->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (cq->set < 0 || cq->timer < 0 ||
		epoll_ctl(cq->set, EPOLL_CTL_ADD, cq->timer, &event))
		return -errno;
	int rc = cq_watch(cq, &cq->queue);
	return rc ? rc : cq_watch(cq, &cq->news);
}

/* Return true if no event waits, and the next one makes the descriptor readable. */
static bool cq_arm(struct ofi_queue *queue)
{
	return PtlXEQArm(queue->eq) == PTL_OK;
}

/* The same for news, whose events are over for the program; a thread that sleeps there
 * takes its own.  From now on completions without an event put one there. */
static bool cq_arm_news(struct ofi_cq *cq)
{
	cq->news.armed = true;
	while (!cq->news.asleep && ofi_queue_step(&cq->news))
		;
	return cq_arm(&cq->news);
}

int ofi_cq_trywait(struct ofi_cq *cq)
{
	struct ofi_domain *domain = cq->domain;
	if (cq->set < 0)
		return -FI_EINVAL;
	int rc = 0;
	OFI_ENTER(domain);
	if (domain->data && !cq->knows_data) {
		rc = cq_watch(cq, domain->data);
		cq->knows_data = !rc;
	}
	ofi_progress(domain, true);
	ofi_silence(cq);
	/* The timer wakes a program that late messages or deaths of peers wait for. */
	const struct itimerspec turn = {.it_value.tv_nsec = CQ_TURN_NS};
	if (!rc && timerfd_settime(cq->timer, 0, &turn, NULL))
		rc = -errno;
	bool signalled = cq->signalled;
	cq->signalled = false;
	/* Receives that wait for late messages make progress by reads only. */
	if (!rc &&
		(cq_has(cq) || signalled || domain->waiting || !cq_arm_news(cq) ||
			!cq_arm(&cq->queue) || (domain->data && !cq_arm(domain->data))))
		rc = -FI_EAGAIN;
	ofi_leave(domain);
	return rc;
}

static int cq_control(struct fid *fid, int command, void *arg)
{
	struct ofi_cq *cq = container_of(fid, struct ofi_cq, fid.fid);
	return ofi_wait_control(cq->wait, cq->set, command, arg);
}

/* ---- life ---- */

static void cq_free(struct ofi_cq *cq)
{
	ofi_queue_close(&cq->queue);
	ofi_queue_close(&cq->news);
	if (cq->set >= 0)
		close(cq->set);
	if (cq->timer >= 0)
		close(cq->timer);
	free(cq->ring);
	free(cq);
}

static int cq_close(struct fid *fid)
{
	struct ofi_cq *cq = container_of(fid, struct ofi_cq, fid.fid);
	struct ofi_error *error;
	if (ofi_node.forked)
		return -FI_EOPBADSTATE;
	(void)ofi_enter(cq->domain);
	bool held = ofi_is_held(&cq->refs) || cq->readers;
	if (!held) /* a counter may sleep in the queue */
		ofi_queue_quiet(&cq->queue);
	ofi_leave(cq->domain);
	if (held)
		return -FI_EBUSY;
	while ((error = STAILQ_FIRST(&cq->errors))) {
		STAILQ_REMOVE_HEAD(&cq->errors, next);
		free(error);
	}
	ofi_let_go(&cq->domain->refs);
	cq_free(cq);
	return 0;
}

static struct fi_ops cq_fid_ops = OFI_FID_OPS(cq_close, ofi_no_bind, cq_control);
static struct fi_ops_cq cq_ops = {
	.size = sizeof cq_ops,
	.read = cq_read,
	.readfrom = cq_readfrom,
	.readerr = cq_readerr,
	.sread = cq_sread,
	.sreadfrom = cq_sreadfrom,
	.signal = cq_signal,
	.strerror = cq_strerror,
};

/* Return the bytes of an entry, or 0: no format. */
static size_t cq_stride(enum fi_cq_format format)
{
	switch (format) {
	case FI_CQ_FORMAT_UNSPEC:
	case FI_CQ_FORMAT_CONTEXT:
		return sizeof(struct fi_cq_entry);
	case FI_CQ_FORMAT_MSG:
		return sizeof(struct fi_cq_msg_entry);
	case FI_CQ_FORMAT_DATA:
		return sizeof(struct fi_cq_data_entry);
	case FI_CQ_FORMAT_TAGGED:
		return sizeof(struct fi_cq_tagged_entry);
	default:
		return 0;
	}
}

int ofi_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
	void *context)
{
	if (!attr || !cq || !cq_stride(attr->format))
		return -FI_EINVAL;
	if (attr->flags & ~FI_AFFINITY)
		return -FI_EBADFLAGS;
	if (!ofi_wait_is_known(attr->wait_obj, true))
		return -FI_ENOSYS;
	struct ofi_cq *made = calloc(1, sizeof *made);
	if (!made)
		return -FI_ENOMEM;
	made->domain = container_of(domain, struct ofi_domain, fid);
	made->set = made->timer = -1;
	int rc = ofi_queue_open(&made->queue, made->domain, OFI_EVENTS);
	if (!rc)
		rc = ofi_queue_open(&made->news, made->domain, OFI_NEWS);
	if (!rc && attr->wait_obj == FI_WAIT_FD)
		rc = cq_open_set(made);
	if (rc) {
		cq_free(made);
		return rc;
	}
	made->fid.fid = (struct fid){FI_CLASS_CQ, context, &cq_fid_ops};
	made->fid.ops = &cq_ops;
	if (attr->format == FI_CQ_FORMAT_UNSPEC)
		attr->format = FI_CQ_FORMAT_CONTEXT;
	made->format = attr->format;
	made->stride = cq_stride(attr->format);
	made->wait = attr->wait_obj;
	STAILQ_INIT(&made->errors);
	ofi_hold(&made->domain->refs);
	*cq = &made->fid;
	return 0;
}
