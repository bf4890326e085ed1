/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The node's own host.  Each piece of a descriptor's memory is a block of its own with
 * borders that AddressSanitizer protects, and that other builds check; it is freed when
 * the descriptor is gone, since nothing may touch it from then on.
 */
#include "nic/obj/obj.h"
#include "nic/proto/proto.h"
#include "nic/run/lease.h"
#include "nic/xfer/xfer.h"
#include "fuzz/rig.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define GUARDED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GUARDED 1
#endif
#endif
#ifdef GUARDED
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n)   ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

#define BORDER       64u
#define PIECES       4u
#define FORMERS      8u
#define MDS          24u
#define MES          16u
#define EQS          4u
#define MEMORY_MOST  (3u << 20) /* of one run */
#define READABLE_LEN (1u << 19)
#define VAST         (((size_t)1 << 38) + (1u << 20)) /* its cells do not fit 32 bits */

struct piece {
	unsigned char *block; /* with its borders; NULL: the vast block */
	size_t len;
};

struct memory {
	struct piece piece[PIECES];
	uint32_t n;
	bool constant; /* no peer may write it */
};

struct md {
	uint64_t handle; /* 0: it does not exist */
	bool promised;   /* to a command that is not executed yet */
	struct memory memory;
	struct memory former[FORMERS]; /* of earlier updates */
	uint32_t nformer;
	bool got; /* its own get may write it */
};

static struct md mds[MDS];
static uint64_t mes[MES], eqs[EQS];
static size_t memory_used;
static unsigned char readable[READABLE_LEN];

/* ---- memory ---- */

#define TINT_LEN 4096u

static const unsigned char *tint(void)
{
	static unsigned char ready[TINT_LEN];
	for (size_t i = 0; !ready[1] && i < TINT_LEN; i++)
		ready[TINT_LEN - 1 - i] = (unsigned char)(i * 7 + (i >> 8) * 13 + 1);
	return ready;
}

static void tint_all(unsigned char *at, size_t len)
{
	for (size_t i = 0; i < len; i += TINT_LEN)
		memcpy(at + i, tint(), len - i < TINT_LEN ? len - i : TINT_LEN);
}

static bool is_tinted(const unsigned char *at, size_t len)
{
	for (size_t i = 0; i < len; i += TINT_LEN)
		if (memcmp(at + i, tint(), len - i < TINT_LEN ? len - i : TINT_LEN) != 0)
			return false;
	return true;
}

/* Return address space for a descriptor larger than any machine, or NULL. */
static void *vast(void)
{
	static void *at;
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	if (!at)
		at = mmap(NULL, VAST, PROT_READ | PROT_WRITE, flags, -1, 0);
	return at == MAP_FAILED ? NULL : at;
}

static void *piece_new(struct piece *p, size_t len)
{
	if (len == VAST && vast()) {
		*p = (struct piece){.len = len};
		return vast();
	}
	if (len > MEMORY_MOST - memory_used)
		len = MEMORY_MOST - memory_used;
	memory_used += len;
	p->len = len;
	p->block = malloc(len + 2 * BORDER);
	if (!p->block)
		abort();
	tint_all(p->block, BORDER);
	tint_all(p->block + BORDER, len);
	tint_all(p->block + BORDER + len, BORDER);
	ASAN_POISON_MEMORY_REGION(p->block, BORDER);
	ASAN_POISON_MEMORY_REGION(p->block + BORDER + len, BORDER);
	return p->block + BORDER;
}

static void piece_free(struct piece *p, bool constant)
{
	if (!p->block) {
		(void)madvise(vast(), p->len, MADV_DONTNEED);
		return;
	}
	ASAN_UNPOISON_MEMORY_REGION(p->block, BORDER);
	ASAN_UNPOISON_MEMORY_REGION(p->block + BORDER + p->len, BORDER);
	if (!is_tinted(p->block, BORDER) ||
		!is_tinted(p->block + BORDER + p->len, BORDER))
		rig_fail("written outside a descriptor", 0, 1);
	if (constant && !is_tinted(p->block + BORDER, p->len))
		rig_fail("written to memory that no peer may write", 0, 1);
	free(p->block);
	p->block = NULL;
}

static void memory_free(struct memory *m, bool got)
{
	for (uint32_t i = 0; i < m->n; i++)
		piece_free(&m->piece[i], m->constant && !got);
	*m = (struct memory){0};
}

static void formers_free(struct md *m)
{
	while (m->nformer)
		memory_free(&m->former[--m->nformer], m->got);
}

static void md_forget(struct md *m)
{
	formers_free(m);
	memory_free(&m->memory, m->got);
	*m = (struct md){0};
}

static struct p3_md *named(const struct md *m)
{
	return p3_obj_named(rig.nic, P3_KIND_MD, m->handle);
}

/* Check: operations under way keep their memory; later ones use the new memory only. */
static void md_check(struct md *m)
{
	const struct p3_md *md = named(m);
	if (!md)
		md_forget(m);
	else if (!md->pending)
		formers_free(m);
}

/* Check that peers are told addresses of existing memory only. */
RIG_UNSEEN static void check_published(void)
{
	struct p3_nic *n = rig.nic;
	for (uint32_t i = 0; i < n->layout.nxfers; i++) {
		const struct p3_xfer_slot *x = &n->xfer[i];
		uint64_t id = p3_get(&x->pub->id);
		if (!id)
			continue;
		if (!x->in_use || id != p3_xfer_name(x))
			rig_fail("a transfer that is none is offered", i, id);
#ifdef GUARDED
		void *at = (void *)(uintptr_t)p3_get(&x->pub->addr);
		size_t len = x->length;
		if (at && len < VAST / 2 && __asan_region_is_poisoned(at, len))
			rig_fail("memory that is gone is offered", (uintptr_t)at, len);
#endif
	}
}

void host_check(void)
{
	for (uint32_t i = 0; i < MDS; i++)
		if (mds[i].handle)
			md_check(&mds[i]);
	check_published();
}

uint64_t host_readable(uint64_t len)
{
	return (uintptr_t)readable + (len <= READABLE_LEN ? READABLE_LEN - len : 0);
}

/* ---- handles: mostly live ones, sometimes any ---- */

static struct md *pick_md(struct input *in)
{
	uint8_t which = in_u8(in);
	uint32_t live = 0;
	for (uint32_t i = 0; i < MDS; i++)
		live += mds[i].handle != 0;
	if (which >= 0xf0 || !live)
		return &mds[which % MDS];
	uint32_t left = which % live;
	for (uint32_t i = 0; i < MDS; i++)
		if (mds[i].handle && !left--)
			return &mds[i];
	return mds;
}

/* Choose an entry with a descriptor, or without. */
static uint64_t pick_me(struct input *in, bool full)
{
	uint8_t which = in_u8(in);
	for (uint32_t i = 0; i < MES && which < 0xf0; i++) {
		uint64_t handle = mes[(which + i) % MES];
		const struct p3_me *me = p3_obj_named(rig.nic, P3_KIND_ME, handle);
		if (me && (me->md != NULL) == full)
			return handle;
	}
	return mes[which % MES];
}

/* ---- descriptors ---- */

static const size_t sizes[] = {
	0, 1, 8, 16, 40, 104, 1000, 4096, 5000, 40000, 70000, 300000, 24, 256, VAST, 512};

/* Copy elements as lib/ does: the copy is the NIC's after success. */
static struct p3_iov *scatter(struct memory *m, size_t len, uint32_t pieces)
{
	struct p3_iov *iov = malloc(sizeof *iov + pieces * sizeof iov->v[0]);
	if (!iov)
		abort();
	*iov = (struct p3_iov){.refs = 1, .n = pieces};
	for (uint32_t i = 0; i < pieces; i++) {
		size_t each = i + 1 < pieces ? len / (i + 2) : len;
		iov->v[i].iov_base = piece_new(&m->piece[i], each);
		iov->v[i].iov_len = m->piece[i].len;
		len -= each;
	}
	m->n = pieces;
	return iov;
}

static uint32_t options_of(struct input *in)
{
	uint32_t options = (uint32_t)in_bytes(in, 2);
	if ((options & 0xf000) != 0xf000)
		options &= 0x7ff;
	return options;
}

static int threshold_of(struct input *in)
{
	uint8_t t = in_u8(in);
	return t < 0xc0 ? PTL_MD_THRESH_INF : t < 0xf8 ? (t & 7) : -2;
}

static uint64_t queue_of(uint8_t how)
{
	uint64_t eq = how & 0x80 ? 0 : eqs[(how >> 4) % EQS];
	return eq ? eq : PTL_EQ_NONE;
}

/* Sometimes make the command illegal. */
static void spoil(struct p3_cmd *c)
{
	ptl_md_t *md = &c->md.md;
	if (md->max_size < 253 * 8)
		return;
	if (c->md.iov && c->md.iov->n)
		c->md.iov->v[0].iov_base = NULL;
	else if (md->max_size == 253 * 8)
		md->start = NULL;
	else
		md->length = SIZE_MAX;
}

static void describe(struct memory *m, struct p3_cmd *c, struct input *in)
{
	ptl_md_t *md = &c->md.md;
	uint8_t how = in_u8(in);
	size_t len = sizes[how % 16];
	md->options = options_of(in);
	md->threshold = threshold_of(in);
	md->max_size = in_u8(in) * 8;
	md->eq_handle = queue_of(how);
	c->md.unlink = in_bit(in) ? PTL_UNLINK : PTL_RETAIN;
	c->md.iov = NULL;
	if (md->options & PTL_MD_IOVEC) {
		c->md.iov = scatter(m, len, how % (PIECES + 1));
		md->start = c->md.iov->v;
		md->length = c->md.iov->n;
	} else {
		md->start = piece_new(&m->piece[0], len);
		md->length = m->piece[0].len;
		m->n = 1;
	}
	m->constant = !(md->options & PTL_MD_OP_PUT);
	spoil(c);
}

static struct md *unused_md(void)
{
	for (uint32_t i = 0; i < MDS; i++)
		if (!mds[i].handle && !mds[i].promised)
			return &mds[i];
	return NULL;
}

static bool md_make(struct p3_cmd *c, struct input *in)
{
	struct md *m = unused_md();
	if (!m)
		return false;
	describe(&m->memory, c, in);
	if (p3_nic_do(rig.nic, c) == PTL_OK) {
		m->handle = c->md.handle_out;
		return true;
	}
	free(c->md.iov);
	md_forget(m);
	return false;
}

static void md_attach(struct input *in)
{
	struct p3_cmd c = {.op = P3_OP_MD_ATTACH, .handle = pick_me(in, false)};
	(void)md_make(&c, in);
}

static void md_bind(struct input *in)
{
	uint16_t ni = in_u8(in) >= 0xc0;
	struct p3_cmd c = {.op = P3_OP_MD_BIND, .ni = ni, .handle = rig.ni[ni]};
	(void)md_make(&c, in);
}

static void md_update(struct input *in)
{
	struct md *m = pick_md(in);
	uint8_t how = in_u8(in);
	ptl_md_iovec_t elements[PIECES];
	struct memory memory = {.n = 0};
	struct p3_cmd c = {.op = P3_OP_MD_UPDATE, .handle = m->handle};
	if (m->nformer == FORMERS)
		return;
	c.md.test_eq = queue_of(how);
	c.md.change = !(how & 8);
	c.md.iov = NULL;
	c.old = (ptl_md_t){.start = elements,
		.length = how % PIECES,
		.options = how & 4 ? PTL_MD_IOVEC : 0};
	if (c.md.change)
		describe(&memory, &c, in);
	bool changed = p3_nic_do(rig.nic, &c) == PTL_OK && c.md.change;
	if (!changed) {
		free(c.md.iov);
		memory_free(&memory, false);
		return;
	}
	m->former[m->nformer++] = m->memory;
	m->memory = memory;
}

static void md_unlink(struct input *in)
{
	struct p3_cmd c = {.op = P3_OP_MD_UNLINK, .handle = pick_md(in)->handle};
	(void)p3_nic_do(rig.nic, &c);
}

/* ---- entries and queues ---- */

static struct p3_cmd entry(struct input *in)
{
	uint8_t how = in_u8(in), bits = in_u8(in);
	uint16_t ni = how >= 0xe0;
	struct p3_cmd c = {.op = P3_OP_ME_ATTACH, .ni = ni, .handle = rig.ni[ni]};
	c.me.base = PTL_INVALID_HANDLE;
	c.me.id = (ptl_process_id_t){PTL_NID_ANY, PTL_PID_ANY};
	if (how & 0x10)
		c.me.id.nid = 10 + (how & 3);
	c.me.bits = bits & 3;
	c.me.ignore = bits & 4 ? ~0ull : 0;
	c.me.pt_index = bits & 0x80 ? in_u8(in) : how & 3;
	c.me.position = how & 4 ? PTL_INS_AFTER : PTL_INS_BEFORE;
	c.me.unlink = how & 8 ? PTL_UNLINK : PTL_RETAIN;
	c.me.any_index = (bits & 0x60) == 0x60;
	c.md.test_eq = PTL_EQ_NONE;
	return c;
}

static void me_attach(struct input *in)
{
	uint64_t *me = &mes[in_below(in, MES)];
	struct p3_cmd c = entry(in);
	if (p3_nic_do(rig.nic, &c) == PTL_OK)
		*me = c.handle_out;
}

/* Insert many at one place, with many shapes: the list's index grows, and its labels
 * become scarce. */
static void insert_many(const struct p3_cmd *c)
{
	for (uint32_t i = 0; i < 40; i++) {
		struct p3_cmd one = *c;
		one.me.ignore = (uint64_t)(i % 24) << 8;
		(void)p3_nic_do(rig.nic, &one);
	}
}

/* Insert beside another entry, with or without a descriptor. */
static void me_insert(struct input *in)
{
	uint64_t *me = &mes[in_below(in, MES)];
	uint8_t how = in_u8(in);
	struct p3_cmd c = entry(in);
	if (!(how & 1))
		c.me.base = mes[(how >> 4) % MES];
	if (how & 2)
		c.handle = PTL_INVALID_HANDLE;
	c.me.with_md = how & 4;
	c.md.test_eq = how & 8 ? queue_of(how) : PTL_EQ_NONE;
	if (!c.me.with_md && (how & 8))
		insert_many(&c);
	bool made = c.me.with_md ? md_make(&c, in) : p3_nic_do(rig.nic, &c) == PTL_OK;
	if (made)
		*me = c.handle_out;
}

static void me_unlink(struct input *in)
{
	struct p3_cmd c = {.op = P3_OP_ME_UNLINK, .handle = pick_me(in, in_bit(in))};
	(void)p3_nic_do(rig.nic, &c);
}

static void eq_new(struct input *in)
{
	uint32_t ni = in_u8(in) >= 0xe0;
	uint64_t *eq = &eqs[in_below(in, EQS)];
	(void)p3_nic_eq_alloc(
		rig.nic, rig.ni[ni], 1 + in_below(in, 64), PTL_EQ_HANDLER_NONE, eq);
}

static void eq_free(struct input *in)
{
	(void)p3_nic_eq_free(rig.nic, eqs[in_below(in, EQS)]);
}

static bool is_of_request(ptl_event_kind_t kind)
{
	return kind == PTL_EVENT_GET_START || kind == PTL_EVENT_GET_END ||
	       kind == PTL_EVENT_PUT_START || kind == PTL_EVENT_PUT_END ||
	       kind == PTL_EVENT_GETPUT_START || kind == PTL_EVENT_GETPUT_END;
}

static void check_event(const ptl_event_t *ev)
{
	bool plain = is_of_request(ev->type) && !(ev->md.options & PTL_MD_IOVEC);
	if (plain &&
		(ev->offset > ev->md.length || ev->mlength > ev->md.length - ev->offset))
		rig_fail("bytes outside of the descriptor", ev->offset, ev->md.length);
	if (ev->mlength > ev->rlength)
		rig_fail("bytes moved, more than asked for", ev->mlength, ev->rlength);
	if (ev->type > PTL_EVENT_UNLINK)
		rig_fail("an event of no kind", ev->type, PTL_EVENT_UNLINK);
}

static void eq_peek(struct input *in)
{
	ptl_event_t ev;
	int rc = p3_nic_eq_peek(rig.nic, eqs[in_below(in, EQS)], &ev);
	if (rc == PTL_OK || rc == PTL_EQ_DROPPED)
		check_event(&ev);
}

static void eq_get(struct input *in)
{
	ptl_event_t ev;
	uint32_t n = 1 + in_below(in, 3);
	int which;
	uint64_t handles[4];
	for (uint32_t i = 0; i < n; i++)
		handles[i] = eqs[in_below(in, EQS)];
	for (uint32_t i = 0; i < 16; i++) {
		int rc = p3_nic_eq_poll(rig.nic, handles, n, 0, &ev, &which);
		if (rc != PTL_OK && rc != PTL_EQ_DROPPED)
			break;
		check_event(&ev);
	}
}

/* ---- movement ---- */

ptl_process_id_t host_target(struct input *in)
{
	uint8_t who = in_u8(in);
	uint32_t index = who & 0x80 ? RIG_NODE : rig.fake[who % RIG_FAKES].index;
	ptl_process_id_t id = {10 + index, 100 + index};
	if ((who & 0x70) == 0x70)
		id.pid = 200 + index;
	if ((who & 0x70) == 0x60)
		id.nid += 500;
	if ((who & 0x70) == 0x50)
		id.pid = 5;
	return id;
}

static struct md *movement(struct p3_cmd *c, struct input *in)
{
	struct md *m = pick_md(in);
	uint8_t how = in_u8(in), bits = in_u8(in);
	c->handle = m->handle;
	c->move.target = host_target(in);
	c->move.bits = bits & 3;
	c->move.hdr = bits;
	c->move.remote_offset = how & 0x40 ? in_bytes(in, 2) : 0;
	c->move.offset = 0;
	c->move.length = P3_WHOLE;
	if (how & 0x20) {
		c->move.offset = in_bytes(in, 1);
		c->move.length = in_bytes(in, 1 + (how & 1));
	}
	c->move.pt_index = how & 3;
	c->move.ac_index = how & 0x10 ? in_u8(in) : 0;
	c->move.ack = how >> 2 & 1;
	c->move.what = how & 8 ? bits : 0;
	return m;
}

/* Repeat the command once, or so often that a resource runs out. */
static void repeat(const struct p3_cmd *c, struct input *in)
{
	uint32_t times = in_u8(in) >= 0xf4 ? 40 : 1;
	while (times--) {
		struct p3_cmd copy = *c;
		(void)p3_nic_do(rig.nic, &copy);
	}
}

static void put(struct input *in)
{
	struct p3_cmd c = {.op = P3_OP_PUT};
	(void)movement(&c, in);
	repeat(&c, in);
}

static void get(struct input *in)
{
	struct p3_cmd c = {.op = P3_OP_GET};
	struct md *m = movement(&c, in);
	m->got = true;
	repeat(&c, in);
}

static void getput(struct input *in)
{
	struct p3_cmd c = {.op = P3_OP_GETPUT};
	struct md *m = movement(&c, in);
	m->got = true;
	if (!c.move.what)
		c.move.what = P3_ATOMIC_SWAP;
	c.move.put_handle = pick_md(in)->handle;
	c.move.put_offset = in_u8(in);
	(void)p3_nic_do(rig.nic, &c);
}

/* ---- interfaces ---- */

static ptl_ni_limits_t limits_of(uint8_t how)
{
	bool few = how & 0x80;
	return (ptl_ni_limits_t){.max_mes = few ? 4 : 64,
		.max_mds = few ? 6 : 64,
		.max_eqs = few ? 2 : 8,
		.max_ac_index = 3,
		.max_pt_index = 63,
		.max_md_iovecs = 3,
		.max_me_list = few ? 3 : 64,
		.max_getput_md = 64};
}

static void ni_open(uint32_t ni, uint8_t how)
{
	ptl_ni_limits_t limits = limits_of(how);
	uint64_t handle;
	uint32_t pid = ni ? 200 + RIG_NODE : 100 + RIG_NODE;
	if (p3_nic_ni_open(rig.nic, ni, pid, how & 0x40, &limits, &handle) == PTL_OK)
		rig.ni[ni] = handle;
}

static void ni_toggle(struct input *in)
{
	uint8_t how = in_u8(in);
	uint32_t ni = how & 1;
	if (rig.ni[ni]) {
		(void)p3_nic_ni_close(rig.nic, rig.ni[ni]);
		rig.ni[ni] = 0;
	} else {
		ni_open(ni, how);
	}
}

static void pt_hold(uint64_t ni, bool on, struct input *in)
{
	struct p3_cmd c = {.op = P3_OP_PT_HOLD, .handle = ni};
	c.pt_hold.pt_index = in_u8(in) % 70;
	c.pt_hold.on = on;
	(void)p3_nic_do(rig.nic, &c);
}

static void ac_entry(struct input *in)
{
	uint8_t how = in_u8(in);
	struct p3_cmd c = {.op = P3_OP_AC_ENTRY, .handle = rig.ni[how & 1]};
	c.ac.index = in_below(in, 6);
	c.ac.id.nid = how & 2 ? PTL_NID_ANY : 10;
	c.ac.id.pid = how & 4 ? PTL_PID_ANY : 100;
	c.ac.uid = how & 8 ? PTL_UID_ANY : how;
	c.ac.jid = how & 16 ? PTL_JID_ANY : how;
	c.ac.pt_index = how & 32 ? PTL_PT_INDEX_ANY : in_u8(in);
	(void)p3_nic_do(rig.nic, &c);
	if (how & 64)
		pt_hold(rig.ni[how & 1], how & 2, in);
}

static uint64_t any_handle(struct input *in)
{
	uint8_t how = in_u8(in), which = in_u8(in);
	const uint64_t of[] = {rig.ni[which % P3_JOB_NIS], mes[which % MES],
		mds[which % MDS].handle, eqs[which % EQS], rig_number(in, rig.fake)};
	return of[how % 5];
}

static void ask(struct input *in)
{
	char text[2000];
	struct p3_cmd c = {.op = P3_OP_WHOSE};
	c.handle = any_handle(in);
	(void)p3_nic_do(rig.nic, &c);
	c = (struct p3_cmd){.op = P3_OP_NI_STATUS, .handle = rig.ni[in_bit(in)]};
	c.status.index = in_below(in, 64);
	(void)p3_nic_do(rig.nic, &c);
	c = (struct p3_cmd){.op = P3_OP_DUMP, .handle = any_handle(in)};
	c.flag = in_below(in, 4);
	c.dump.text = text;
	c.dump.size = 1 + in_u8(in) * 7u;
	c.dump.pt_index = in_below(in, 70);
	(void)p3_nic_do(rig.nic, &c);
}

static void pass_time(struct input *in)
{
	rig.now += 1000ull << in_below(in, 24);
	if (in_bit(in))
		p3_peer_sweep(rig.nic);
	if (in_bit(in) && p3_wait_is_restless(rig.nic))
		p3_wait_kick_idle(rig.nic);
}

/* ---- a run ---- */

static void each(void (*make)(struct input *in), const uint8_t *from, size_t len)
{
	struct input in = {from, from + len};
	while (in_any(&in))
		make(&in);
}

/* Furnish the node for a first message: an entry on each of four indexes, and
 * descriptors. */
static void furnish(void)
{
	static const uint8_t queues[] = {0, 0, 63, 0, 1, 3};
	static const uint8_t entries[] = {
		0, 4, 4, 1, 5, 4, 2, 6, 4, 3, 0x0f, 4, 4, 0x0f, 4, 5, 7, 4};
	static const uint8_t listed[] = {0, 7, 0x0f, 0, 0, 0, 0, /* remote offset */
		1, 11, 0x0b, 0, 0, 0, 0,                         /* local offset */
		2, 27, 0x2f, 0, 0, 0, 0,                         /* elements */
		3, 6, 0x4b, 0, 0, 8, 1,                          /* max_size, unlinked */
		4, 10, 0x0b, 0, 0xc2, 0, 1,                      /* threshold, unlinked */
		5, 9, 0x0b, 2, 0, 0, 0};
	static const uint8_t bound[] = {0, 9, 3, 0, 0, 0, 0, 0, 4, 3, 0, 0, 0, 0, /**/
		0, 11, 0, 0, 0xc3, 0, 1, 0, 2, 0, 0, 0, 0, 0,                     /**/
		0, 14, 3, 0, 0, 0, 0};
	each(eq_new, queues, sizeof queues);
	each(me_attach, entries, sizeof entries);
	each(md_attach, listed, sizeof listed);
	each(md_bind, bound, sizeof bound);
}

void host_start(struct input *in)
{
	uint8_t how = in_u8(in);
	memory_used = 0;
	memset(mes, 0, sizeof mes);
	memset(eqs, 0, sizeof eqs);
	ni_open(0, how);
	if (how & 1)
		ni_open(1, how);
	if (!(how & 2))
		furnish();
}

void host_stop(void)
{
	for (uint32_t i = 0; i < P3_JOB_NIS; i++) {
		if (rig.ni[i])
			(void)p3_nic_ni_close(rig.nic, rig.ni[i]);
		rig.ni[i] = 0;
	}
	host_check();
}

/* ---- commands as in the mailbox ---- */

uint64_t host_handle(struct input *in, enum p3_kind kind)
{
	uint8_t which = in_u8(in);
	if (which >= 0xf0)
		return any_handle(in);
	switch (kind) {
	case P3_KIND_NI:
		return rig.ni[which >= 0xc0];
	case P3_KIND_ME:
		return pick_me(in, which & 1);
	case P3_KIND_MD:
		return pick_md(in)->handle;
	default:
		return eqs[which % EQS];
	}
}

/* Give memory for a descriptor; the rest of the command decides whether it is legal. */
static void give_md(struct host_gift *g, struct input *in)
{
	struct md *m = unused_md();
	struct p3_cmd *c = &g->cmd;
	if (!m) {
		c->op = P3_OP_WHOSE;
		return;
	}
	g->md = (uint32_t)(m - mds);
	m->promised = true;
	describe(&m->memory, c, in);
}

static void give_tables(struct p3_cmd *c, struct input *in)
{
	c->ni_open.pid = 100 + in_u8(in);
	c->ni_open.limits = limits_of(in_u8(in));
	c->ni_open.nbuckets = (uint32_t)c->ni_open.limits.max_mes;
	c->ni_open.portals = calloc(64, sizeof(struct p3_portal));
	c->ni_open.buckets = calloc(c->ni_open.nbuckets, sizeof(struct p3_bucket));
	c->ni_open.acs = calloc(4, sizeof(struct p3_ac));
}

static void give_ring(struct p3_cmd *c, struct input *in)
{
	c->eq.n = 1u << in_below(in, 7);
	c->eq.handler = PTL_EQ_HANDLER_NONE;
	c->eq.ring = p3_host_ring(rig.nic, c->eq.n, &c->eq.rec, &c->eq.start);
	if (!c->eq.ring)
		abort();
}

static void give_chunk(struct host_gift *g, struct input *in)
{
	struct p3_cmd *c = &g->cmd;
	c->flag = in_below(in, P3_TABLES + 2);
	c->grow.life = g->life - (in_u8(in) >= 0xf0);
	c->grow.chunk = NULL;
	if (c->flag >= P3_TABLES)
		return;
	struct p3_table *t = &rig.nic->table[c->flag];
	uint64_t len = (uint64_t)t->elem * P3_TABLE_EACH;
	if (p3_get(&t->nchunks) >= 2)
		c->op = P3_OP_WHOSE;
	else if (c->flag == P3_T_PENDING)
		c->grow.chunk = p3_host_alloc(rig.nic, len);
	else
		c->grow.chunk = p3_table_more(t);
}

static struct md *md_of(uint64_t handle)
{
	for (uint32_t i = 0; i < MDS; i++)
		if (mds[i].handle && mds[i].handle == handle)
			return &mds[i];
	return NULL;
}

static void give_update(struct host_gift *g, struct input *in)
{
	struct p3_cmd *c = &g->cmd;
	uint8_t how = in_u8(in);
	const struct md *m = md_of(c->handle);
	if (m && m->nformer >= FORMERS / 2) {
		c->op = P3_OP_WHOSE;
		return;
	}
	c->old = (ptl_md_t){.start = g->elements,
		.length = how % 5,
		.options = how & 8 ? PTL_MD_IOVEC : 0};
	c->md.change = how & 16;
	if (c->md.change)
		give_md(g, in);
	c->md.test_eq = how & 32 ? host_handle(in, P3_KIND_EQ) : PTL_EQ_NONE;
}

static void give_place(struct host_gift *g, struct input *in)
{
	struct p3_cmd_me *me = &g->cmd.me;
	uint8_t how = in_u8(in);
	me->base = how & 1 ? host_handle(in, P3_KIND_ME) : PTL_INVALID_HANDLE;
	me->any_index = how & 2;
	me->with_md = how & 4;
	if (how & 8)
		me->pt_index = how >> 4;
	if (how & 0x80)
		g->cmd.handle = PTL_INVALID_HANDLE;
	if (me->with_md)
		give_md(g, in);
	g->cmd.md.test_eq = how & 0x40 ? host_handle(in, P3_KIND_EQ) : PTL_EQ_NONE;
}

static void give_movement(struct p3_cmd *c, struct input *in)
{
	uint8_t how = in_u8(in);
	if (how & 1)
		c->move.target = host_target(in);
	if (how & 2)
		c->move.length = P3_WHOLE;
	if (how & 4)
		c->move.offset = 0;
	if (how & 8)
		c->move.put_handle = host_handle(in, P3_KIND_MD);
	struct md *m = md_of(c->handle);
	if (m && c->op != P3_OP_PUT)
		m->got = true;
}

/* A call of CCI posts what is to be run; fuzz_cci has the calls themselves. */
static void run_nothing(struct p3_nic *n, void *arg)
{
	if (n != rig.nic || arg != &rig)
		rig_fail("a command of CCI has another argument", 0, 0);
}

void host_prepare(struct host_gift *g, struct input *in)
{
	struct p3_cmd *c = &g->cmd;
	g->md = P3_NONE;
	g->life = p3_get(&rig.nic->life);
	switch (c->op) {
	case P3_OP_NI_OPEN:
		give_tables(c, in);
		break;
	case P3_OP_ME_ATTACH:
		give_place(g, in);
		break;
	case P3_OP_MD_ATTACH:
	case P3_OP_MD_BIND:
		give_md(g, in);
		break;
	case P3_OP_MD_UPDATE:
		give_update(g, in);
		break;
	case P3_OP_EQ_ALLOC:
		give_ring(c, in);
		break;
	case P3_OP_EQ_WATCH:
		c->flag = 0; /* no slot: p3_nic_eq_descriptor() alone opens one */
		break;
	case P3_OP_EQ_RECLAIM:
		c->eq.dead = NULL; /* see retire() */
		break;
	case P3_OP_PUT:
	case P3_OP_GET:
	case P3_OP_GETPUT:
		give_movement(c, in);
		break;
	case P3_OP_DUMP:
		c->dump.text = g->text;
		c->dump.size = 1 + in_u8(in) % sizeof g->text;
		break;
	case P3_OP_GROW:
		give_chunk(g, in);
		break;
	case P3_OP_PEER_TOLD:
		c->handle = rig.nic->asked - in_u8(in) % 2;
		break;
	case P3_OP_PEER_UP:
	case P3_OP_PEER_PIDS:
	case P3_OP_PEER_DOWN:
	case P3_OP_PEER_OVER:
		rig_peer_cmd(c, &g->info, in);
		break;
	case P3_OP_LIST:
		c->listed = NULL;
		break;
	case P3_OP_PT_HOLD:
		c->pt_hold.on = in_u8(in) & 1;
		break;
	case P3_OP_INJECT:
		give_movement(c, in);
		c->move.what = 0; /* a put, whose bytes are as many as it says */
		c->bytes = g->text;
		if (in_u8(in) & 1)
			c->move.length %= sizeof g->text;
		else if (c->move.length <= P3_SHORT_MOST)
			c->move.length += P3_SHORT_MOST + 1;
		break;
	case P3_OP_CCI:
		c->cci.run = run_nothing;
		c->cci.arg = &rig;
		break;
	}
}

static void md_done(struct host_gift *g, int rc)
{
	struct md *m = &mds[g->md];
	m->promised = false;
	if (rc == PTL_OK) {
		m->handle = g->cmd.md.handle_out;
		return;
	}
	free(g->cmd.md.iov);
	md_forget(m);
}

/* Give the memory to the updated descriptor, or take it back. */
static void update_done(struct host_gift *g, int rc)
{
	if (g->md == P3_NONE)
		return;
	struct md *from = &mds[g->md], *to = md_of(g->cmd.handle);
	from->promised = false;
	if (rc != PTL_OK) {
		free(g->cmd.md.iov);
		md_forget(from);
		return;
	}
	if (!to || to->nformer == FORMERS)
		abort();
	to->former[to->nformer++] = to->memory;
	to->memory = from->memory;
	*from = (struct md){0};
}

/* Retire queues, as lib/'s calls do. */
static void retire(struct p3_eq *dead, uint64_t life)
{
	struct p3_cmd c = {.op = P3_OP_EQ_RECLAIM};
	for (struct p3_eq *eq = dead; eq; eq = eq->next_dead) {
		p3_evq_retire(&eq->rx, p3_self_number());
		p3_host_ring_free(rig.nic, eq->tx.ring, eq->tx.rec, eq->n, life);
	}
	c.eq.dead = dead;
	(void)p3_nic_do(rig.nic, &c);
}

static void ni_done(struct host_gift *g, int rc)
{
	struct p3_cmd *c = &g->cmd;
	if (c->op == P3_OP_NI_OPEN && rc == PTL_OK) {
		rig.ni[c->ni] = c->handle_out;
		return;
	}
	if (c->op == P3_OP_NI_CLOSE && rc != PTL_OK)
		return;
	if (c->op == P3_OP_NI_CLOSE) {
		rig.ni[p3_handle_ni(c->handle)] = 0;
		retire(c->ni_open.dead, g->life);
	}
	free(c->ni_open.portals);
	free(c->ni_open.buckets);
	free(c->ni_open.acs);
}

static void eq_keep(uint64_t handle)
{
	for (uint32_t i = 0; i < EQS; i++)
		if (!p3_obj_named(rig.nic, P3_KIND_EQ, eqs[i])) {
			eqs[i] = handle;
			return;
		}
}

static void eq_done(struct host_gift *g, int rc)
{
	struct p3_cmd *c = &g->cmd;
	bool made = c->op == P3_OP_EQ_ALLOC;
	if (made && rc == PTL_OK)
		eq_keep(c->handle_out);
	else if (made)
		p3_host_ring_free(rig.nic, c->eq.ring, c->eq.rec, c->eq.n, g->life);
	else if (rc == PTL_OK)
		retire(c->eq.dead, g->life);
}

void host_done(struct host_gift *g, int rc)
{
	struct p3_cmd *c = &g->cmd;
	switch (c->op) {
	case P3_OP_NI_OPEN:
	case P3_OP_NI_CLOSE:
		ni_done(g, rc);
		break;
	case P3_OP_ME_ATTACH:
	case P3_OP_MD_ATTACH:
	case P3_OP_MD_BIND:
		if (g->md != P3_NONE)
			md_done(g, rc);
		if (c->op == P3_OP_ME_ATTACH && rc == PTL_OK)
			mes[p3_handle_index(c->handle_out) % MES] = c->handle_out;
		break;
	case P3_OP_MD_UPDATE:
		update_done(g, rc);
		break;
	case P3_OP_EQ_ALLOC:
	case P3_OP_EQ_FREE:
		eq_done(g, rc);
		break;
	case P3_OP_PEER_UP:
	case P3_OP_PEER_DOWN:
		rig_peer_cmd_done(c, rc);
		break;
	}
}

/* ---- a step of any kind ---- */

typedef void step(struct input *in);

void host_step(struct input *in)
{
	static step *const steps[] = {put, put, put, get, get, get, getput, getput,
		eq_get, eq_get, eq_peek, me_attach, me_insert, md_attach, md_attach,
		md_bind, md_update, md_update, md_unlink, me_unlink, eq_new, eq_free,
		ni_toggle, ac_entry, ask, pass_time, pass_time};
	steps[in_below(in, sizeof steps / sizeof *steps)](in);
}
