/* SPDX-License-Identifier: BSD-3-Clause */
/* Conformance of the libfabric provider: names, addresses, address vectors. */
#include "frame.h"

#include <stdio.h>
#include <stdlib.h>

enum { NAME = 16 };

STATEMENT(18, name, 1, 0)
{
	unsigned char name[TALE], again[TALE];
	size_t n = sizeof name;
	struct side *s = side_open((struct how){.caps = FI_TAGGED});
	memset(name, 0xee, sizeof name);
	OK(fi_getname(&s->ep->fid, name, &n));
	if (over_portals())
		CHECK_EQ(n, NAME);
	CHECK_ALL(name + n, sizeof name - n, 0xee);
	size_t whole = n, less = n - 1;
	memset(again, 0xee, sizeof again);
	FAILS(fi_getname(&s->ep->fid, again, &less), -FI_ETOOSMALL);
	CHECK_EQ(less, whole);
	CHECK_ALL(again + whole - 1, 1, 0xee);
	OK(fi_getname(&s->ep->fid, again, &whole));
	CHECK(memcmp(name, again, n) == 0);
}

/* Return n names of this endpoint, one behind the other, the bad one without sense. */
static unsigned char *names(struct side *s, unsigned n, unsigned bad)
{
	unsigned char name[TALE];
	size_t len = sizeof name;
	OK(fi_getname(&s->ep->fid, name, &len));
	unsigned char *all = suite_alloc(n * len);
	for (unsigned i = 0; i < n; i++) {
		memcpy(all + i * len, name, len);
		if (i == bad)
			memset(all + i * len, 0xa5, len);
	}
	return all;
}

STATEMENT(19, insert, 1, 0)
{
	enum { N = 5, BAD = 2 };
	fi_addr_t at[N];
	struct side *s = side_open((struct how){.caps = FI_TAGGED});
	CHECK_EQ(fi_av_insert(s->av, names(s, N, N), N, at, 0, NULL), N);
	for (unsigned i = 0; i < N; i++)
		CHECK(at[i] != FI_ADDR_NOTAVAIL);
	CHECK_EQ(fi_av_insert(s->av, names(s, N, N), N, NULL, 0, NULL), N);
	CHECK_EQ(fi_av_insert(s->av, names(s, N, N), 0, at, 0, NULL), 0);
	not_over("shm", "it believes any name");
	not_over("tcp;ofi_rxm", "it believes any name");
	CHECK_EQ(fi_av_insert(s->av, names(s, N, BAD), N, at, 0, NULL), N - 1);
	for (unsigned i = 0; i < N; i++)
		CHECK_EQ(at[i] == FI_ADDR_NOTAVAIL, i == BAD);
	int errors[N] = {1, 1, 1, 1, 1};
	CHECK_EQ(
		fi_av_insert(s->av, names(s, N, BAD), N, at, FI_SYNC_ERR, errors), N - 1);
	for (unsigned i = 0; i < N; i++)
		CHECK_EQ(errors[i] != 0, i == BAD);
}

STATEMENT(20, table, 1, 0)
{
	enum { N = 300 };
	static fi_addr_t at[N];
	static const enum fi_av_type types[] = {FI_AV_TABLE, FI_AV_MAP};
	not_over("tcp;ofi_rxm", "a name that is there keeps its index");
	not_over("shm", "a name that is there keeps its index");
	for (unsigned k = 0; k < 2; k++) {
		struct side *s = side_open((struct how){
			.caps = FI_TAGGED, .av_type = types[k], .alone = true});
		CHECK_EQ(fi_av_insert(s->av, names(s, 1, 1), 1, at, 0, NULL), 1);
		CHECK_EQ(fi_av_insert(s->av, names(s, N, N), N - 1, at + 1, 0, NULL),
			N - 1);
		for (unsigned i = 0; i < N && types[k] == FI_AV_TABLE; i++)
			CHECK_EQ(at[i], i);
		side_close(s);
	}
}

STATEMENT(21, lookup, 2, 0)
{
	unsigned char name[TALE];
	char text[200];
	struct side *s = side_open((struct how){.caps = FI_TAGGED});
	size_t n = sizeof name;
	OK(fi_av_lookup(s->av, s->at[1], name, &n));
	CHECK(memcmp(name, told(1, 0), n) == 0);
	size_t less = 1;
	(void)fi_av_lookup(s->av, s->at[1], name, &less);
	CHECK_EQ(less, n);
	n = sizeof text;
	memset(text, 0xee, sizeof text);
	CHECK(fi_av_straddr(s->av, told(1, 0), text, &n) == text);
	CHECK(n > 1 && n <= sizeof text && strlen(text) < n);
	if (!over_portals())
		return;
	unsigned a, b, c, d, pid, ep;
	CHECK_EQ(sscanf(text, "portals://%u.%u.%u.%u/%u/%u", &a, &b, &c, &d, &pid, &ep),
		6);
	CHECK_EQ(ep, 0);
	char less_text[8];
	size_t eight = sizeof less_text;
	CHECK(fi_av_straddr(s->av, told(1, 0), less_text, &eight) == less_text);
	CHECK(strlen(less_text) < sizeof less_text);
	CHECK_EQ(eight, n);
	FAILS(fi_av_lookup(s->av, 999, name, &n), -FI_EINVAL);
	barrier();
}

STATEMENT(22, removed, 2, 0)
{
	static uint32_t value;
	only_portals("others take a dead address, or crash");
	struct side *s = side_open((struct how){.caps = FI_TAGGED});
	fi_addr_t extra = address(s, 1, 0), last = address(s, 1, 0);
	OK(fi_av_remove(s->av, &extra, 1, 0));
	FAILS(fi_tsend(s->ep, &value, 4, NULL, extra, 1, NULL), -FI_EINVAL);
	FAILS(fi_tinject(s->ep, &value, 4, extra, 1), -FI_EINVAL);
	FAILS(fi_tsend(s->ep, &value, 4, NULL, last + 5, 1, NULL), -FI_EINVAL);
	FAILS(fi_tsend(s->ep, &value, 4, NULL, FI_ADDR_UNSPEC, 1, NULL), -FI_EINVAL);
	bool reused = false;
	for (unsigned i = 0; i < 1000 && !reused; i++)
		reused = address(s, 1, 0) == extra;
	CHECK(reused);
	SILENCE(s, 1);
	barrier();
	s->at[1] = extra; /* it works again */
	if (me.is_client)
		send_now(s, 1, &value, 4, 1);
	else
		(void)recv_now(s, &value, 4, 1);
	barrier();
}

STATEMENT(23, twice, 2, 0)
{
	static uint32_t value;
	struct side *s = side_open((struct how){.caps = FI_TAGGED | FI_SOURCE});
	fi_addr_t again = address(s, 1 - me.rank, 0), once = s->at[1 - me.rank];
	for (unsigned i = 0; i < 4; i++) {
		s->at[1 - me.rank] = i & 1 ? again : once;
		if (me.is_client) {
			send_now(s, 1, &value, 4, 1);
		} else {
			struct done d = recv_now(s, &value, 4, 1);
			CHECK(d.from == once || d.from == again);
		}
	}
	barrier();
}

/* ---- 24, 25: services ---- */

static struct fi_info *info_at(const char *node, const char *service, uint64_t flags)
{
	struct fi_info *info = NULL, *hints = hints_of(FI_TAGGED);
	int rc = fi_getinfo(API, node, service, flags, hints, &info);
	if (rc)
		check_failed(__FILE__, __LINE__, "fi_getinfo gives %s", check_code(rc));
	fi_freeinfo(hints);
	return info;
}

/* Return a service that no other process of the machine has, probably. */
static const char *service_here(void)
{
	static char text[12];
	if (me.is_client) {
		set_word(1, 1000 + (unsigned)pid_of(0) % 30000);
		set_word(0, 1);
	}
	await_word(0, 1);
	snprintf(text, sizeof text, "%u", (unsigned)word(1));
	return text;
}

struct open {
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
};

static struct open open_at(struct fi_info *info)
{
	struct open o;
	struct fi_av_attr attr = {.type = FI_AV_TABLE};
	OK(fi_fabric(info->fabric_attr, &o.fabric, NULL));
	OK(fi_domain(o.fabric, info, &o.domain, NULL));
	OK(fi_av_open(o.domain, &attr, &o.av, NULL));
	o.cq = queue_open(o.domain, FI_CQ_FORMAT_TAGGED, FI_WAIT_NONE, 0);
	OK(fi_endpoint(o.domain, info, &o.ep, NULL));
	OK(fi_ep_bind(o.ep, &o.av->fid, 0));
	OK(fi_ep_bind(o.ep, &o.cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(o.ep));
	return o;
}

static void close_all(struct open *o)
{
	CLOSE(o->ep);
	CLOSE(o->av);
	CLOSE(o->cq);
	CLOSE(o->domain);
	CLOSE(o->fabric);
}

static void one_completion(struct fid_cq *cq)
{
	struct fi_cq_tagged_entry e;
	POLL(fi_cq_read(cq, &e, 1) == 1);
}

STATEMENT(24, service, 2, 0)
{
	only_portals("the services of others are other things");
	static uint32_t value = 24;
	struct fi_info *info = me.is_server ? info_at(NULL, service_here(), FI_SOURCE)
					    : info_at("127.0.0.1", service_here(), 0);
	struct open o = open_at(info);
	barrier();
	if (me.is_client) {
		CHECK(info->dest_addr && info->dest_addrlen == NAME);
		fi_addr_t at = enter(o.av, info->dest_addr);
		OK(fi_tsend(o.ep, &value, 4, NULL, at, 1, NULL));
	} else {
		unsigned char name[NAME];
		size_t n = NAME;
		CHECK(info->src_addr && info->src_addrlen == NAME);
		OK(fi_getname(&o.ep->fid, name, &n));
		CHECK(memcmp(name, info->src_addr, NAME) == 0);
		OK(fi_trecv(o.ep, &value, 4, NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
	}
	one_completion(o.cq);
	barrier();
	close_all(&o);
	fi_freeinfo(info);
}

STATEMENT(25, service_in_use, 2, 0)
{
	only_portals("the services of others are other things");
	struct fi_info *info = info_at(NULL, service_here(), FI_SOURCE);
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	if (me.is_server) {
		struct open o = open_at(info);
		barrier();
		barrier();
		close_all(&o);
	} else {
		OK(fi_fabric(info->fabric_attr, &fabric, NULL));
		barrier();
		FAILS(fi_domain(fabric, info, &domain, NULL), -FI_EADDRINUSE);
		barrier();
		CLOSE(fabric);
	}
	barrier();
	fi_freeinfo(info);
}

/* ---- 26: within a process ---- */

STATEMENT(26, within_a_process, 1, 0)
{
	static const size_t sizes[] = {0, 8, 8192, 8193, LONG};
	static struct fi_context2 sent, got;
	struct side *s = side_open((struct how){.caps = FI_TAGGED | FI_MSG});
	struct fid_ep *other = endpoint(s);
	fi_addr_t there = address_of(s, other);
	unsigned char *from = suite_alloc(LONG);
	fill(from, LONG, 26);
	for (unsigned i = 0; i < 20; i++) { /* to itself, to the other; early, late */
		unsigned char *to = guarded(LONG);
		struct fid_ep *receiver = i & 1 ? other : s->ep;
		size_t len = sizes[i / 4];
		if (i & 2)
			TRY(s, fi_trecv(receiver, to, LONG, NULL, FI_ADDR_UNSPEC, 1, 0,
				       &got));
		TRY(s, fi_tsend(s->ep, from, len, NULL, i & 1 ? there : s->at[0], 1,
			       &sent));
		if (!(i & 2))
			TRY(s, fi_trecv(receiver, to, LONG, NULL, FI_ADDR_UNSPEC, 1, 0,
				       &got));
		CHECK_EQ(TAKE(s, &got).e.len, len);
		(void)TAKE(s, &sent);
		CHECK_GUARDED(to, LONG, len, 26);
	}
	CLOSE(other);
}
