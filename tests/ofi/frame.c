/* SPDX-License-Identifier: BSD-3-Clause */
/* The frame of the conformance suite of the libfabric provider. */
#include "../support/asleep.h"
#include "frame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

const struct suite suite = {.statements = 98,
	.table = "docs/conformance-ofi.md",
	.outside = "no statement",
	.status = 1,
	.together = true};

enum { SIDES_MOST = 64, GUARD = 64, UNTOUCHED = 0xee };

static struct side *sides[SIDES_MOST];
static unsigned sides_n;

const char *check_code(int rc)
{
	return rc == 0 ? "success" : rc < 0 ? fi_strerror(-rc) : "a positive number";
}

void rank_ends(void)
{
	ranks_progress = NULL;
	while (sides_n > 0)
		side_close(sides[sides_n - 1]);
}

/* ---- the provider ---- */

const char *provider(void)
{
	const char *name = getenv("OFI_PROVIDER");
	return name ? name : "portals";
}

bool over_portals(void)
{
	return strcmp(provider(), "portals") == 0;
}

void only_portals(const char *reason)
{
	if (!over_portals())
		skip(reason);
}

void only_plain(void)
{
#ifdef OFI_SANITIZED
	skip("other programs cannot load a provider with a sanitizer");
#endif
}

void not_over(const char *name, const char *reason)
{
	if (strcmp(provider(), name) == 0)
		skip(reason);
}

struct fi_info *hints_of(uint64_t caps)
{
	struct fi_info *hints = fi_allocinfo();
	CHECK(hints);
	hints->caps = caps;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->mr_mode = over_portals() ? 0 : FI_MR_VIRT_ADDR;
	hints->fabric_attr->prov_name = strdup(provider());
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
	return hints;
}

struct fi_info *info_of(struct fi_info *hints)
{
	struct fi_info *info = NULL;
	int rc = fi_getinfo(API, NULL, NULL, 0, hints, &info);
	if (rc == -FI_ENODATA && !over_portals())
		skip("the provider does not claim the ability");
	if (rc == -FI_ENODATA && !getenv("FI_PROVIDER_PATH"))
		check_failed(__FILE__, __LINE__,
			"FI_PROVIDER_PATH, the folder of the provider, is not set");
	if (rc != 0)
		check_failed(__FILE__, __LINE__, "fi_getinfo gives %s for %s",
			check_code(rc), fi_tostr(&hints->caps, FI_TYPE_CAPS));
	fi_freeinfo(hints);
	return info;
}

/* ---- an endpoint with all that it needs ---- */

/* Make progress where only calls make it. */
static void progress(void)
{
	for (unsigned i = 0; i < sides_n; i++)
		pump(sides[i]);
}

struct fid_cq *queue_open(struct fid_domain *domain, enum fi_cq_format format,
	enum fi_wait_obj wait, size_t size)
{
	struct fi_cq_attr attr = {.format = format, .wait_obj = wait, .size = size};
	struct fid_cq *cq = NULL;
	OK(fi_cq_open(domain, &attr, &cq, NULL));
	return cq;
}

static void open_counters(struct side *s, struct fid_cntr **counters)
{
	static const uint64_t flags[COUNTERS] = {
		FI_SEND, FI_RECV, FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE};
	struct fi_cntr_attr attr = {
		.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC};
	for (unsigned i = 0; i < COUNTERS; i++) {
		counters[i] = NULL;
		if (i >= C_REMOTE_READ && !(s->info->caps & FI_RMA_EVENT))
			continue;
		OK(fi_cntr_open(s->domain, &attr, &counters[i], NULL));
		s->counters[i] = counters[i];
		OK(fi_ep_bind(s->ep, &counters[i]->fid, flags[i]));
	}
}

static void open_domain(struct side *s, struct how how)
{
	struct fi_info *hints = hints_of(how.caps);
	hints->tx_attr->op_flags = how.op_flags;
	hints->tx_attr->msg_order |= how.order;
	hints->rx_attr->msg_order |= how.order;
	hints->domain_attr->threading = how.threading;
	hints->domain_attr->av_type = how.av_type;
	s->info = info_of(hints);
	OK(fi_fabric(s->info->fabric_attr, &s->fabric, NULL));
	OK(fi_domain(s->fabric, s->info, &s->domain, NULL));
	struct fi_av_attr av = {.type = how.av_type ? how.av_type : FI_AV_TABLE};
	OK(fi_av_open(s->domain, &av, &s->av, NULL));
	s->tx = queue_open(s->domain, FI_CQ_FORMAT_TAGGED, how.wait, how.queue);
	s->rx = how.two_queues
			? queue_open(s->domain, FI_CQ_FORMAT_TAGGED, how.wait, how.queue)
			: s->tx;
}

static struct fid_ep *open_endpoint(struct side *s, uint64_t selective)
{
	struct fid_ep *ep = NULL;
	OK(fi_endpoint(s->domain, s->info, &ep, NULL));
	OK(fi_ep_bind(ep, &s->av->fid, 0));
	if (s->tx == s->rx) {
		OK(fi_ep_bind(ep, &s->tx->fid, FI_TRANSMIT | FI_RECV | selective));
	} else {
		OK(fi_ep_bind(ep, &s->tx->fid, FI_TRANSMIT | selective));
		OK(fi_ep_bind(ep, &s->rx->fid, FI_RECV | selective));
	}
	return ep;
}

struct side *side_open(struct how how)
{
	struct side *s = calloc(1, sizeof *s);
	CHECK(s && sides_n < SIDES_MOST);
	if (!over_portals())
		ranks_progress = progress;
	open_domain(s, how);
	s->ep = open_endpoint(s, how.selective);
	if (how.counters)
		open_counters(s, how.counters);
	OK(fi_enable(s->ep));
	sides[sides_n++] = s;
	unsigned nth = tales_told();
	if (!how.alone)
		tell_name(s->ep);
	for (unsigned i = 0; i < me.size && i < PEERS_MOST && !how.alone; i++)
		s->at[i] = address(s, i, nth);
	return s;
}

void side_close(struct side *s)
{
	for (unsigned i = 0; i < sides_n; i++)
		if (sides[i] == s)
			sides[i] = sides[--sides_n];
	/* A test that left other objects open ends here without their closing. */
	if ((!s->ep || fi_close(&s->ep->fid) == 0) && fi_close(&s->av->fid) == 0) {
		(void)fi_close(&s->tx->fid);
		if (s->rx != s->tx)
			(void)fi_close(&s->rx->fid);
		for (unsigned i = 0; i < COUNTERS; i++)
			if (s->counters[i])
				(void)fi_close(&s->counters[i]->fid);
		(void)fi_close(&s->domain->fid);
		(void)fi_close(&s->fabric->fid);
	}
	fi_freeinfo(s->info);
	free(s->early);
	free(s);
}

void close_at(const char *file, int line, struct fid *fid)
{
	struct patience p = patience_begin();
	bool waits = fid->fclass == FI_CLASS_MR || fid->fclass == FI_CLASS_EP;
	int rc;
	while ((rc = fi_close(fid)) == -FI_EBUSY && waits)
		look_at(file, line, &p, "the end of what an object does");
	if (rc != 0)
		check_failed(file, line, "fi_close gives %s", check_code(rc));
}

struct side *both_kinds(uint64_t caps)
{
	return side_open((struct how){.caps = FI_MSG | FI_TAGGED | caps});
}

void few_posted(const char *n)
{
	(void)setenv("FI_PORTALS_POSTED", n, 1);
}

struct fid_ep *endpoint(struct side *s)
{
	struct fid_ep *ep = open_endpoint(s, 0);
	OK(fi_enable(ep));
	return ep;
}

static void name_of(struct fid_ep *ep, unsigned char name[TALE])
{
	size_t n = TALE;
	memset(name, 0, TALE);
	OK(fi_getname(&ep->fid, name, &n));
	CHECK(n <= TALE);
}

void tell_name(struct fid_ep *ep)
{
	unsigned char name[TALE];
	name_of(ep, name);
	tell(name, TALE);
}

fi_addr_t enter(struct fid_av *av, const void *name)
{
	fi_addr_t at = FI_ADDR_NOTAVAIL;
	CHECK_EQ(fi_av_insert(av, name, 1, &at, 0, NULL), 1);
	return at;
}

fi_addr_t address(struct side *s, unsigned rank, unsigned n)
{
	return enter(s->av, told(rank, n));
}

fi_addr_t address_of(struct side *s, struct fid_ep *ep)
{
	unsigned char name[TALE];
	name_of(ep, name);
	return enter(s->av, name);
}

/* ---- completions ---- */

/* Take one completion from a queue into *d; return false if there is none. */
static bool read_one(struct fid_cq *cq, struct done *d)
{
	*d = (struct done){.from = FI_ADDR_NOTAVAIL};
	ssize_t rc = fi_cq_readfrom(cq, &d->e, 1, &d->from);
	if (rc == 1)
		return true;
	if (rc == -FI_EAGAIN)
		return false;
	CHECK_EQ(rc, -FI_EAVAIL);
	struct fi_cq_err_entry e = {0};
	CHECK_EQ(fi_cq_readerr(cq, &e, 0), 1);
	CHECK(e.err > 0 || !over_portals()); /* some have a negative code */
	*d = (struct done){{e.op_context, e.flags, e.len, e.buf, e.data, e.tag},
		FI_ADDR_NOTAVAIL, abs(e.err), e.olen};
	return true;
}

static bool read_any(struct side *s, struct done *d)
{
	return read_one(s->tx, d) || (s->rx != s->tx && read_one(s->rx, d));
}

void pump(struct side *s)
{
	struct done d;
	for (unsigned n = 0; n < 64 && read_any(s, &d); n++) {
		if (s->early_n == s->early_most) {
			s->early_most = 2 * s->early_most + 16;
			s->early = realloc(s->early, s->early_most * sizeof d);
			CHECK(s->early);
		}
		s->early[s->early_n++] = d;
	}
}

static struct done take_early(struct side *s, unsigned i)
{
	struct done d = s->early[i];
	s->early_n--;
	memmove(s->early + i, s->early + i + 1, (s->early_n - i) * sizeof d);
	return d;
}

struct done next_at(const char *file, int line, struct side *s)
{
	struct patience p = patience_begin();
	while (s->early_n == 0) {
		pump(s);
		look_at(file, line, &p, "a completion");
	}
	return take_early(s, 0);
}

struct done take_at(const char *file, int line, struct side *s, void *context, int err)
{
	struct patience p = patience_begin();
	unsigned i = 0;
	while (i == s->early_n || s->early[i].e.op_context != context) {
		if (i < s->early_n) {
			i++;
			continue;
		}
		pump(s);
		look_at(file, line, &p, "a completion with the context");
	}
	struct done d = take_early(s, i);
	if (d.err != err)
		check_failed(file, line, "the completion of %p is \"%s\", not \"%s\"",
			context, check_code(-d.err), check_code(-err));
	return d;
}

void silence_at(const char *file, int line, struct side *s, unsigned ms)
{
	uint64_t end = now_ns() + ms * UINT64_C(1000000);
	do {
		pump(s);
		if (s->early_n > 0)
			check_failed(file, line,
				"a completion comes that should not: context %p, "
				"flags %#llx, \"%s\"",
				s->early[0].e.op_context,
				(unsigned long long)s->early[0].e.flags,
				check_code(-s->early[0].err));
	} while (now_ns() < end);
}

/* ---- operations ---- */

void send_to(struct side *s, bool tagged, unsigned rank, const void *at, size_t len,
	uint64_t tag, void *context)
{
	if (tagged)
		TRY(s, fi_tsend(s->ep, at, len, NULL, s->at[rank], tag, context));
	else
		TRY(s, fi_send(s->ep, at, len, NULL, s->at[rank], context));
}

void recv_from(struct side *s, bool tagged, fi_addr_t from, void *at, size_t len,
	uint64_t tag, void *context)
{
	if (tagged)
		TRY(s, fi_trecv(s->ep, at, len, NULL, from, tag, 0, context));
	else
		TRY(s, fi_recv(s->ep, at, len, NULL, from, context));
}

void send_now(struct side *s, unsigned rank, const void *at, size_t len, uint64_t tag)
{
	static struct fi_context2 context;
	send_to(s, true, rank, at, len, tag, &context);
	(void)TAKE(s, &context);
}

void deliver(struct side *s, unsigned rank, const void *at, size_t len, uint64_t tag)
{
	static struct fi_context2 context;
	struct iovec iov = {(void *)(uintptr_t)at, len};
	struct fi_msg_tagged m = {.msg_iov = &iov,
		.iov_count = 1,
		.addr = s->at[rank],
		.tag = tag,
		.context = &context};
	TRY(s, fi_tsendmsg(s->ep, &m, FI_COMPLETION | FI_DELIVERY_COMPLETE));
	(void)TAKE(s, &context);
}

struct done recv_now(struct side *s, void *at, size_t len, uint64_t tag)
{
	static struct fi_context2 context;
	recv_from(s, true, FI_ADDR_UNSPEC, at, len, tag, &context);
	return TAKE(s, &context);
}

/* Take the completion of a look, good or bad. */
static struct done take_any(struct side *s, void *context)
{
	for (struct patience p = patience_begin();;) {
		for (unsigned i = 0; i < s->early_n; i++)
			if (s->early[i].e.op_context == context)
				return take_early(s, i);
		pump(s);
		look_at(__FILE__, __LINE__, &p, "the completion of a peek");
	}
}

struct done peek(struct side *s, uint64_t tag, uint64_t flags, void *context)
{
	struct fi_msg_tagged m = {.addr = FI_ADDR_UNSPEC, .tag = tag, .context = context};
	TRY(s, fi_trecvmsg(s->ep, &m, FI_PEEK | FI_COMPLETION | flags));
	struct done d = take_any(s, context);
	CHECK(d.err == 0 || d.err == FI_ENOMSG);
	return d;
}

void await_late(struct side *s, uint64_t tag)
{
	static struct fi_context2 context;
	struct patience p = patience_begin();
	while (peek(s, tag, 0, &context).err != 0) {
		look_at(__FILE__, __LINE__, &p, "a message without a receive");
		sleep_us(20); /* pause: between two looks */
	}
}

void settle(struct side *s, uint64_t tag, unsigned sender, unsigned receiver)
{
	static struct fi_context2 mark;
	if (me.rank == sender)
		send_to(s, true, receiver, NULL, 0, tag, &mark);
	barrier();
	if (me.rank == receiver && over_portals())
		await_late(s, tag);
	/* pause: others do not show that a message has arrived */
	for (struct patience p = patience_ms(30);
		!over_portals() && !patience_is_over(&p);)
		pump(s);
	if (me.rank == receiver)
		(void)recv_now(s, NULL, 0, tag);
	if (me.rank == sender)
		(void)TAKE(s, &mark);
	barrier();
}

/* ---- memory ---- */

unsigned char *sent_bytes(uint64_t seed)
{
	unsigned char *at = suite_alloc(LONG);
	fill(at, LONG, seed);
	return at;
}

unsigned char *guarded(size_t len)
{
	unsigned char *at = suite_alloc(len + 2 * GUARD);
	memset(at, UNTOUCHED, len + 2 * GUARD);
	return at + GUARD;
}

void check_guarded_at(const char *file, int line, const unsigned char *at, size_t len,
	size_t filled, uint64_t seed)
{
	check_bytes_at(file, line, at, filled, seed);
	check_all(file, line, at + filled, len - filled + GUARD, UNTOUCHED);
	check_all(file, line, at - GUARD, GUARD, UNTOUCHED);
}

void pass_one(struct side *s, uint64_t tag, void *sent, void *got)
{
	static uint64_t from = 53, to;
	TRY(s, fi_trecv(s->ep, &to, 8, NULL, FI_ADDR_UNSPEC, tag, 0, got));
	TRY(s, fi_tsend(s->ep, &from, 8, NULL, s->at[me.rank], tag, sent));
}

static struct {
	int pipe[2];
	_Atomic int tid;
} piped;

static void sleep_in_pipe(void *arg)
{
	char byte;
	(void)arg;
	piped.tid = (int)syscall(SYS_gettid);
	CHECK_EQ(read(piped.pipe[0], &byte, 1), 1);
}

uint64_t wake_by_pipe(void)
{
	piped.tid = 0;
	CHECK(pipe(piped.pipe) == 0);
	struct thread *t = thread_start(sleep_in_pipe, NULL);
	AWAIT(piped.tid != 0);
	CHECK(await_thread_state(piped.tid, 'S'));
	uint64_t began = now_ms();
	CHECK_EQ(write(piped.pipe[1], "", 1), 1);
	thread_join(t);
	uint64_t took = now_ms() - began;
	(void)close(piped.pipe[0]);
	(void)close(piped.pipe[1]);
	return took;
}

struct region region_open(
	struct side *s, void *at, size_t len, uint64_t access, uint64_t key)
{
	struct region r = {0};
	OK(fi_mr_reg(s->domain, at, len, access, 0, key, 0, &r.mr, NULL));
	r.key = fi_mr_key(r.mr);
	r.base = s->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)at : 0;
	return r;
}

void tell_region(const struct region *r)
{
	tell(r, sizeof *r);
}

struct region told_region(unsigned rank, unsigned n)
{
	struct region r;
	memcpy(&r, told(rank, n), sizeof r);
	return r;
}
