/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Remote reads of the endpoints that P3_FABRIC names (nic/far/endpoint.h) by themselves:
 * two endpoints in one thread.  The far wire depends on what these cases show.
 */
#include "nic/cases.h"

#include "far/net.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define LEN    (16u << 20) /* more than sockets take */
#define LATER  600000u     /* ms */
#define READS  3u
#define ROUNDS 12u

static const struct p3_endpoint_ops *ops;
static const char *provider;

struct pair {
	struct p3_endpoint *owner, *reader;
	uint64_t to, back;
	struct p3_far_buffer *in, *out;
	struct p3_far_read read[READS];
	unsigned good, bad; /* reads that were reported */
	unsigned frames;    /* frames that came */
	bool sends;         /* the endpoint has out */
	char *bytes, *copy;
};

static struct p3_endpoint *open_one(uint32_t node)
{
	const struct p3_far_conf conf = {.provider = provider, .address = "127.0.0.1"};
	struct p3_endpoint *ep = NULL;
	assert_int_equal(ops->open(&conf, node, 2, &ep), 0);
	return ep;
}

static void poll_one(struct pair *p, struct p3_endpoint *ep)
{
	struct p3_far_event ev[16];
	uint32_t n = ops->poll(ep, ev, 16);
	for (uint32_t i = 0; i < n; i++) {
		bool read = ev[i].op->kind == P3_FAR_READ;
		p->good += read && !ev[i].failed;
		p->bad += read && ev[i].failed;
		if (ev[i].op == &p->out->op)
			p->sends = false;
		if (ev[i].op != &p->in->op || ev[i].failed)
			continue;
		p->frames++;
		assert_int_equal(ops->post(ep, p->in), 0);
	}
}

/* Poll both until this number of reads is over, or for a time. */
static void poll_both(struct pair *p, unsigned reads, unsigned ms)
{
	struct patience late = patience_ms(ms);
	while (p->good + p->bad < reads && !patience_is_over(&late)) {
		poll_one(p, p->owner);
		poll_one(p, p->reader);
	}
}

static void *map(void)
{
	void *at = mmap(
		NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(at != MAP_FAILED);
	return at;
}

static struct p3_far_buffer *buffer(void)
{
	struct p3_far_buffer *b = aligned_alloc(64, sizeof *b);
	memset(b, 0, sizeof *b);
	return b;
}

/* Return 0 if the frame is under way. */
static int send_one(struct pair *p)
{
	int rc = p->sends ? 0 : ops->send(p->reader, p->to, p->out, 64);
	p->sends = rc == 0;
	return rc;
}

/* Open both, and the connection by a frame. */
static void pair_open(struct pair *p)
{
	unsigned char name[P3_FAR_NAME];
	memset(p, 0, sizeof *p);
	p->owner = open_one(0);
	p->reader = open_one(1);
	p->in = buffer();
	p->out = buffer();
	p->in->op.kind = P3_FAR_RECEIVE;
	uint32_t len = ops->name(p->owner, name);
	assert_int_equal(ops->resolve(p->reader, 0, name, len, &p->to), 0);
	len = ops->name(p->reader, name);
	assert_int_equal(ops->resolve(p->owner, 1, name, len, &p->back), 0);
	assert_int_equal(ops->post(p->owner, p->in), 0);
	struct patience late = patience_begin();
	while (send_one(p) && !patience_is_over(&late))
		poll_both(p, 1, 1);
	while (!p->frames && !patience_is_over(&late))
		poll_both(p, 1, 1);
	assert_int_equal(p->frames, 1);
	p->bytes = map();
	p->copy = map();
	memset(p->bytes, 7, LEN);
}

static void pair_close(struct pair *p)
{
	if (p->reader)
		ops->close(p->reader);
	ops->close(p->owner);
	munmap(p->copy, LEN);
	free(p->in);
	free(p->out);
}

static void begin(struct pair *p, unsigned i, uint64_t key, uint64_t len)
{
	struct patience late = patience_begin();
	p->read[i] = (struct p3_far_read){
		.op.kind = P3_FAR_READ, .to = p->copy, .len = len, .key = key};
	while (ops->read(p->reader, p->to, &p->read[i])) {
		assert_false(patience_is_over(&late));
		(void)send_one(p); /* connects anew */
		poll_both(p, UINT32_MAX, 1);
	}
}

static bool is_all(const char *at, uint64_t len, char c)
{
	for (uint64_t i = 0; i < len; i++)
		if (at[i] != c)
			return false;
	return true;
}

CASE(bytes_are_read)
{
	struct pair p;
	struct p3_far_region r;
	pair_open(&p);
	assert_int_equal(ops->offer(p.owner, p.bytes, LEN, &r), 0);
	begin(&p, 0, r.key, LEN);
	poll_both(&p, 1, LATER);
	assert_int_equal(p.good, 1);
	assert_true(is_all(p.copy, LEN, 7));
	ops->recall(p.owner, &r);
	pair_close(&p);
	munmap(p.bytes, LEN);
}

CASE(wrong_and_recalled_keys_read_nothing)
{
	struct pair p;
	struct p3_far_region r;
	pair_open(&p);
	assert_int_equal(ops->offer(p.owner, p.bytes, LEN, &r), 0);
	begin(&p, 0, r.key + 1, LEN);
	poll_both(&p, 1, LATER);
	assert_int_equal(p.bad, 1);
	ops->recall(p.owner, &r);
	begin(&p, 1, r.key, LEN);
	poll_both(&p, 2, LATER);
	assert_int_equal(p.bad, 2);
	assert_true(is_all(p.copy, LEN, 0));
	pair_close(&p);
	munmap(p.bytes, LEN);
}

/* Begin reads, and let the owner serve them until the sockets are full, and the reader
 * take some of the bytes. */
static void begin_all(struct pair *p, struct p3_far_region *r, unsigned round)
{
	pair_open(p);
	assert_int_equal(ops->offer(p->owner, p->bytes, LEN, r), 0);
	for (unsigned i = 0; i < READS; i++)
		begin(p, i, r->key, LEN / 4 + 516 * round);
	for (unsigned i = 0; i < 200; i++)
		poll_one(p, p->owner);
	for (unsigned i = 0; i < round; i++) {
		poll_one(p, p->reader);
		poll_one(p, p->owner);
	}
}

static void read_again(struct pair *p)
{
	struct p3_far_region r;
	p->bytes = map();
	memset(p->bytes, 8, LEN);
	assert_int_equal(ops->offer(p->owner, p->bytes, LEN, &r), 0);
	p->good = 0;
	struct patience late = patience_begin();
	while (!p->good && !patience_is_over(&late)) {
		poll_both(p, UINT32_MAX, 10); /* the cut is noticed late */
		begin(p, 0, r.key, LEN);
		poll_both(p, p->good + p->bad + 1, LATER);
	}
	assert_int_equal(p->good, 1);
	assert_true(is_all(p->copy, LEN, 8));
	ops->recall(p->owner, &r);
	munmap(p->bytes, LEN);
}

/* Without the cut the reads stand still, or the provider copies bytes that are gone. */
CASE(bytes_may_go_after_their_owner_has_cut)
{
	struct pair p;
	struct p3_far_region r;
	for (unsigned round = 0; round < ROUNDS; round++) {
		begin_all(&p, &r, round);
		ops->recall(p.owner, &r);
		ops->cut(p.owner, p.back);
		munmap(p.bytes, LEN);
		poll_both(&p, READS, LATER);
		assert_int_equal(p.good + p.bad, READS);
		assert_true(round || p.bad == READS);
		read_again(&p);
		pair_close(&p);
	}
}

static void expect_no_bytes(struct pair *p)
{
	memset(p->copy, 9, LEN);
	for (unsigned i = 0; i < 300; i++) {
		poll_one(p, p->owner);
		if (p->reader)
			poll_one(p, p->reader);
	}
	assert_true(is_all(p->copy, LEN, 9));
}

/* The owner is stopped at first, and goes on later. */
CASE(a_reader_that_has_cut_gets_no_bytes)
{
	struct pair p;
	struct p3_far_region r;
	for (unsigned round = 0; round < ROUNDS; round++) {
		begin_all(&p, &r, round);
		ops->cut(p.reader, p.to);
		struct patience late = patience_begin();
		while (p.good + p.bad < READS && !patience_is_over(&late))
			poll_one(&p, p.reader);
		assert_int_equal(p.good + p.bad, READS);
		assert_true(round || p.bad == READS);
		expect_no_bytes(&p);
		ops->recall(p.owner, &r);
		pair_close(&p);
		munmap(p.bytes, LEN);
	}
}

CASE(a_reader_that_has_closed_gets_no_bytes)
{
	struct pair p;
	struct p3_far_region r;
	for (unsigned round = 0; round < ROUNDS; round++) {
		begin_all(&p, &r, round);
		ops->close(p.reader);
		p.reader = NULL;
		expect_no_bytes(&p);
		ops->recall(p.owner, &r);
		pair_close(&p);
		munmap(p.bytes, LEN);
	}
}

int main(void)
{
	ops = net_wished(&provider);
	if (!ops) {
		fprintf(stderr, "expected P3_FABRIC=stream, or a provider\n");
		return 2;
	}
	return cases_run();
}
