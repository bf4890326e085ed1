/* SPDX-License-Identifier: BSD-3-Clause */
/* A node without its NIC thread, fake peers, and a clock of the test's own. */
#include "nic/run/lease.h"
#include "fuzz/rig.h"
#include "shm/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define NID_BASE 10u
#define UID      1000u
#define JID      7u

struct rig rig;

/* ---- replacements of system calls ---- */

static bool starting; /* no thread for this NIC */
static pthread_t no_thread;

int __real_pthread_create(
	pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __real_pthread_join(pthread_t t, void **out);
int __wrap_pthread_create(
	pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __wrap_pthread_join(pthread_t t, void **out);
uint64_t __wrap_p3_now_ns(void);
ssize_t __real_process_vm_readv(pid_t pid, const struct iovec *here, unsigned long nhere,
	const struct iovec *there, unsigned long nthere, unsigned long flags);
ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *here, unsigned long nhere,
	const struct iovec *there, unsigned long nthere, unsigned long flags);
void __wrap_p3_log(enum p3_log_level level, enum p3_log_area area, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

int __wrap_pthread_create(
	pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	if (!starting)
		return __real_pthread_create(t, attr, fn, arg);
	*t = no_thread = pthread_self();
	free(arg); /* which the thread would do (shm/process.c) */
	return 0;
}

int __wrap_pthread_join(pthread_t t, void **out)
{
	return no_thread && pthread_equal(t, no_thread) ? 0 : __real_pthread_join(t, out);
}

uint64_t __wrap_p3_now_ns(void)
{
	rig.now += 500;
	return rig.now;
}

/* Peers withdraw their offers while these are being read. */
static void withdraw_all(void)
{
	struct p3_nic *n = rig.nic;
	rig.fickle = false;
	for (uint32_t i = 0; i < RIG_FAKES; i++)
		for (uint32_t slot = 0; slot < n->layout.nxfers; slot++)
			p3_set(&fake_xfer(&rig.fake[i], slot)->id, 0);
}

/* Forbid reads from the n-th one on. */
ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *here, unsigned long nhere,
	const struct iovec *there, unsigned long nthere, unsigned long flags)
{
	if (!rig.reads_allowed) {
		errno = EPERM;
		return -1;
	}
	rig.reads_allowed--;
	ssize_t got = __real_process_vm_readv(pid, here, nhere, there, nthere, flags);
	if (rig.fickle)
		withdraw_all();
	return got;
}

static void swallow(const char *fmt, va_list args)
{
	char line[512];
	vsnprintf(line, sizeof line, fmt, args);
}

void __wrap_p3_log(enum p3_log_level level, enum p3_log_area area, const char *fmt, ...)
{
	(void)level;
	(void)area;
	va_list args;
	va_start(args, fmt);
	swallow(fmt, args);
	va_end(args);
}

void rig_fail(const char *what, uint64_t is, uint64_t not_this)
{
	fprintf(stderr, "fuzz: %s: %#llx, not %#llx\n", what, (unsigned long long)is,
		(unsigned long long)not_this);
	abort();
}

RIG_UNSEEN static void expect(const char *what, uint64_t is, uint64_t want)
{
	if (is != want)
		rig_fail(what, is, want);
}

/* ---- fake peers ---- */

/* yod's packets: one life of a node begins once, and ends once. */
static bool here[RIG_MANY];
static const uint32_t fake_index[2][RIG_FAKES] = {{0, 2, 3}, {0, 2, 70}};
static struct fake fakes[2][RIG_FAKES];

static void format(struct fake *f, uint32_t nnodes)
{
	struct p3_layout l = p3_layout_of(nnodes);
	struct p3_seg_header *h = fake_at(f, 0, sizeof *h);
	h->magic = P3_SEG_MAGIC;
	h->self = (uintptr_t)h;
	h->layout = P3_LAYOUT_WORD;
	h->incarnation = f->incarnation;
	h->seg_len = l.seg_len;
	h->nnodes = nnodes;
	h->node = f->index;
	p3_set(&h->state, P3_SEG_LIVE);
}

static void make(struct fake *f, uint32_t nnodes)
{
	int fell_back;
	struct p3_layout l = p3_layout_of(nnodes);
	if (p3_seg_create(
		    "p3-fake", l.seg_len, l.seg_len, P3_HUGE_OFF, &f->seg, &fell_back) ||
		p3_seg_seal(&f->seg) || p3_seg_create_doorbell(&f->bell))
		abort();
	if (p3_seg_create("p3-fake-heap", P3_HUGE, P3_HUGE / 2, P3_HUGE_OFF, &f->heap,
		    &fell_back) ||
		p3_seg_seal(&f->heap))
		abort();
	f->dirty = calloc(l.seg_len / P3_PAGE, sizeof *f->dirty);
	f->unsent = calloc(l.seg_len / P3_PAGE, sizeof *f->unsent);
}

RIG_UNSEEN static void clean(struct fake *f)
{
	for (uint64_t page = 0; page < f->seg.len / P3_PAGE; page++) {
		if (f->dirty[page])
			memset((char *)f->seg.base + page * P3_PAGE, 0, P3_PAGE);
		f->dirty[page] = f->unsent[page] = false;
	}
	memset(f->bell.base, 0, P3_PAGE);
}

void *fake_at(struct fake *f, uint64_t off, uint64_t len)
{
	if (off > f->seg.len || len > f->seg.len - off)
		abort();
	for (uint64_t page = off / P3_PAGE; len && page <= (off + len - 1) / P3_PAGE;
		page++)
		f->dirty[page] = f->unsent[page] = true;
	return (char *)f->seg.base + off;
}

struct p3_peer_entry *fake_entry(struct fake *f)
{
	return fake_at(f, p3_entry_off(&rig.nic->layout, RIG_NODE),
		sizeof(struct p3_peer_entry));
}

struct p3_xfer *fake_xfer(struct fake *f, uint64_t id)
{
	uint32_t slot = (uint32_t)id % rig.nic->layout.nxfers;
	uint64_t off =
		rig.nic->layout.xfers_off + slot * (uint64_t)sizeof(struct p3_xfer);
	return fake_at(f, off, sizeof(struct p3_xfer));
}

struct fake *rig_pick(struct input *in)
{
	return &rig.fake[in_below(in, rig.far ? FAR_BAD : RIG_FAKES)];
}

struct p3_peer *rig_peer(const struct fake *f)
{
	return &rig.nic->peer[f->index];
}

static struct p3_peer_info info_of(struct fake *f, uint32_t index)
{
	return (struct p3_peer_info){.node = index,
		.far_len = rig.far ? sizeof index : 0,
		.nid = NID_BASE + index,
		.pid = {100 + index, 200 + index},
		.uid = UID + (index == 2),
		.jid = JID,
		.os_pid = (uint32_t)getpid(),
		.incarnation = f->incarnation,
		.seg_len = f->seg.len,
		.heap_len = f->heap.len,
		.published = f->seg.fd,
		.doorbell = f->bell.fd,
		.heap = f->heap.fd};
}

static bool peer_up(struct fake *f, uint32_t index)
{
	struct p3_peer_info info = info_of(f, index);
	struct p3_seg_header *h = fake_at(f, 0, sizeof *h);
	h->node = index;
	here[index] = p3_nic_peer_up(rig.nic, &info) == 0;
	h->node = f->index;
	return here[index];
}

static void peer_down(uint32_t index, enum p3_peer_end end)
{
	if (!here[index])
		return;
	here[index] = false;
	struct p3_peer_info info = {.node = index,
		.incarnation = rig.nic->peer[index].incarnation,
		.end = end};
	if (p3_nic_peer_down(rig.nic, &info))
		return;
	info.now = true;
	if (!p3_nic_peer_down(rig.nic, &info))
		abort();
}

/* Set credits and rings of both sides to each other's present lives. */
static void fake_agree(struct fake *f)
{
	struct p3_peer_entry *e = fake_entry(f);
	struct p3_peer *p = rig_peer(f);
	p3_set(&e->rx_for, rig.nic->conf.incarnation);
	p3_set(&e->tx_for, rig.nic->conf.incarnation);
	p3_set(&e->req_credit[0], p->req_out.pos);
	p3_set(&e->rsp_credit[0], p->rsp_out.pos);
	f->req_pos = p->req_in.pos;
	f->rsp_pos = p->rsp_in.pos;
}

void rig_revive(struct fake *f)
{
	struct p3_peer *p = rig_peer(f);
	if (p->state == P3_LIVE && !p->bad)
		return;
	peer_down(f->index, P3_PEER_DIED);
	f->incarnation += 1u << 20;
	format(f, rig.nic->conf.nnodes);
	if (!peer_up(f, f->index))
		return;
	fake_agree(f);
	if (rig.far)
		far_up(f);
}

void rig_peer_cmd(struct p3_cmd *c, struct p3_peer_info *info, struct input *in)
{
	struct fake *f = rig_pick(in);
	*info = info_of(f, f->index);
	info->nid ^= in_u8(in) & 1;
	info->pid[0] ^= in_u8(in) & 3;
	info->incarnation += in_u8(in) >= 0xe0;
	info->end = in_u8(in);
	info->base = f->seg.base;
	info->doorbell_at = f->bell.base;
	c->peer = info;
	if (c->op == P3_OP_PEER_PIDS || here[f->index] == (c->op == P3_OP_PEER_DOWN))
		return;
	c->op = P3_OP_PEER_PIDS; /* yod does not send it */
}

void rig_peer_cmd_done(const struct p3_cmd *c, int rc)
{
	const struct p3_peer_info *info = c->peer;
	struct p3_peer_info up = *info;
	if (rc != 0 || here[info->node] == (c->op == P3_OP_PEER_UP))
		return; /* or sent twice in one flight */
	here[info->node] = c->op == P3_OP_PEER_UP;
	if (c->op == P3_OP_PEER_UP) {
		if (p3_seg_map(up.published, up.seg_len, false, &up.base) ||
			p3_seg_map(up.doorbell, P3_PAGE, true, &up.doorbell_at))
			abort();
		return;
	}
	struct p3_heap_view view = info->view;
	p3_heap_view_close(&view);
	p3_seg_unmap(info->doorbell_at, P3_PAGE);
	p3_seg_unmap(info->base, rig.nic->layout.seg_len);
}

static void change_pids(struct fake *f, uint64_t pid)
{
	struct p3_peer_info info = info_of(f, f->index);
	info.pid[0] = (uint32_t)pid;
	info.pid[1] = pid & 1 ? P3_JOB_NO_PID : (uint32_t)pid + 1;
	info.incarnation += pid >> 1 & 1;
	p3_nic_peer_pids(rig.nic, &info);
}

/* Say a name that is too long, or the wrong pid. */
static void come_wrong_from_afar(struct fake *f, struct input *in)
{
	struct p3_peer_info info = info_of(f, f->index);
	info.far_len = in_u8(in);
	info.pid[0] = P3_JOB_NO_PID;
	here[f->index] = p3_nic_peer_up(rig.nic, &info) == 0;
	if (!here[f->index])
		return;
	fake_agree(f);
	far_up(f);
}

static void come_wrong(struct fake *f, struct input *in)
{
	struct p3_seg_header *h = fake_at(f, 0, sizeof *h);
	if (here[f->index])
		return;
	if (rig.far) {
		come_wrong_from_afar(f, in);
		return;
	}
	uint32_t word = in_below(in, sizeof *h / 4);
	((uint32_t *)h)[word] ^= (uint32_t)in_bytes(in, 2);
	struct p3_peer_info info = info_of(f, f->index);
	info.pid[0] = P3_JOB_NO_PID;
	here[f->index] = p3_nic_peer_up(rig.nic, &info) == 0;
	if (here[f->index])
		fake_agree(f);
	format(f, rig.nic->conf.nnodes);
}

void rig_peer_step(struct input *in)
{
	struct fake *f = rig_pick(in);
	uint8_t what = in_u8(in);
	switch (what % 5) {
	case 0:
		rig_revive(f);
		break;
	case 1:
		peer_down(f->index, what & 8 ? P3_PEER_LEFT : P3_PEER_DIED);
		break;
	case 2:
		change_pids(f, in_bytes(in, 1));
		break;
	case 3:
		come_wrong(f, in);
		break;
	default:
		peer_down(f->index, P3_PEER_LEFT);
		rig_revive(f);
	}
}

/* Write the node's own doorbell, which every peer may write. */
void rig_node_bell(struct input *in)
{
	struct p3_doorbell *d = rig.nic->doorbell;
	switch (in_below(in, 3)) {
	case 0:
		p3_set(&d->asleep, (uint32_t)in_bytes(in, 1));
		break;
	case 1:
		p3_set(&d->kick, (uint32_t)in_bytes(in, 4));
		break;
	default:
		p3_set(&d->lanes[in_below(in, 16)], rig_number(in, &rig.fake[0]));
	}
}

/* ---- numbers ---- */

static uint64_t number_of_state(uint8_t which, const struct fake *f)
{
	const struct p3_nic *n = rig.nic;
	const struct p3_peer *p = rig_peer(f);
	const uint64_t of[] = {n->conf.incarnation, f->incarnation, p->req_out.pos,
		p->rsp_out.pos, p->req_in.pos, p->rsp_in.pos, n->layout.ctl_len,
		n->layout.seg_len, n->layout.seg_len - P3_WINDOW_LEN, n->layout.nxfers,
		n->layout.nxfers / 2, (uint32_t)p->req_in.usual,
		(uint32_t)p->rsp_in.usual,
		n->layout.seg_len - n->layout.req_cells * 64ull, P3_CHUNK_LEN,
		P3_WINDOW_LEN};
	return of[which % (sizeof of / sizeof *of)] + (which >= 0xc0) - (which >= 0xe0);
}

uint64_t rig_number(struct input *in, const struct fake *f)
{
	uint8_t how = in_u8(in);
	if (how < 128)
		return how < 120 ? how % 8 : UINT64_MAX - how % 8;
	switch (how % 5) {
	case 0:
		return in_bytes(in, 1);
	case 1:
		return in_bytes(in, 2);
	case 2:
		return in_bytes(in, 4);
	case 3:
		return in_bytes(in, 8);
	default:
		return number_of_state(in_u8(in), f);
	}
}

/* ---- the node ---- */

/* Start the peers; in a crowd one segment serves many numbers. */
static void raise_peers(bool crowd)
{
	format(&rig.fake[0], rig.nic->conf.nnodes);
	for (uint32_t i = 0; crowd && i < RIG_MANY; i++)
		if (i != RIG_NODE && i % 8 != 2)
			(void)peer_up(&rig.fake[0], i);
	for (uint32_t i = 0; i < RIG_FAKES; i++)
		rig_revive(&rig.fake[i]);
}

/* Make the node a peer of itself. */
static void raise_self(void)
{
	struct p3_nic *n = rig.nic;
	struct p3_peer_info info = {.node = RIG_NODE,
		.nid = n->conf.nid,
		.pid = {100 + RIG_NODE, 200 + RIG_NODE},
		.uid = UID,
		.jid = JID,
		.os_pid = (uint32_t)getpid(),
		.incarnation = n->conf.incarnation,
		.seg_len = n->layout.seg_len,
		.published = n->published.fd,
		.doorbell = n->doorbell_seg.fd};
	if (p3_nic_peer_up(n, &info) != 0)
		abort();
	here[RIG_NODE] = true;
}

/* Answer; the answer is an ordinary command. */
static void hear_of_held(void *arg)
{
	(void)arg;
}

static void hear_question(void *arg, uint32_t question)
{
	(void)arg;
	if (question != rig.nic->asked)
		abort();
}

void rig_start(struct input *in)
{
	uint8_t how = in_u8(in);
	bool many = !rig.far && (how & 0xe0) == 0xe0;
	uint32_t nnodes = many ? RIG_MANY : RIG_FEW;
	struct p3_nic_conf conf = {.node = RIG_NODE,
		.nnodes = nnodes,
		.nid = NID_BASE + RIG_NODE,
		.uid = UID,
		.jid = JID,
		.cpus = 2,
		.incarnation = 0x1234567800000001,
		.mode = P3_MODE_LEASE,
		.huge = P3_HUGE_OFF,
		.cma = how & 1,
		.bulk = !(how & 2),
		.base_lanes_only = (how & 12) == 12,
		.pending_limit = 64 << 20,
		.far = rig.far ? &far_conf : NULL,
		.ask = how & 32 ? hear_question : NULL,
		.hold = how & 64 ? hear_of_held : NULL,
		.hold_ns = 1};
	rig.now = 1000000000;
	rig.fickle = false;
	rig.reads_allowed = (how & 12) == 8 ? in_u8(in) % 4 : UINT32_MAX;
	rig.fake = fakes[many];
	for (uint32_t i = 0; i < RIG_FAKES; i++) {
		struct fake *f = &rig.fake[i];
		if (!f->dirty)
			make(f, nnodes);
		f->index = fake_index[many][i];
		f->incarnation = 0x100 + i;
	}
	if (rig.far)
		far_open();
	starting = true;
	if (p3_nic_start(&conf, &rig.nic) != 0)
		abort();
	starting = false;
	if (how & 16)
		raise_self();
	raise_peers(many && (how & 1));
	host_start(in);
}

void rig_passes(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (!p3_lease_enter(rig.nic, P3_LEASE_HOST))
			rig_fail("the lease is held", 0, 1);
		(void)p3_pass_run(rig.nic);
		p3_lease_leave(rig.nic);
	}
}

/* Check that the reserved part of a peer's response ring is enough for its answers. */
void rig_check(void)
{
	for (uint32_t i = 0; i < RIG_FAKES; i++) {
		const struct p3_peer *p = rig_peer(&rig.fake[i]);
		uint32_t cells =
			p->cci.asked; /* for answers of CCI, which have no pending */
		if (p->state != P3_LIVE)
			continue;
		p3_list_each(it, &p->outstanding) {
			const struct p3_pending *t = p3_item(it, struct p3_pending, link);
			cells += t->state == P3_PEND_SENT ? t->rsp_cells : 0;
		}
		expect("cells reserved of a response ring", p->rsp_used, cells);
	}
}

/* ---- the end: everything lent is back ---- */

RIG_UNSEEN static void check_peer(const struct p3_peer *p)
{
	expect("cells reserved", p->rsp_used, 0);
	expect("pulls of the pool", p->npulls, 0);
	expect("own pull", p->own_pull.in_use, 0);
	expect("slots of class 0", p->nxfer[0], 0);
	expect("slots of class 1", p->nxfer[1], 0);
	expect("blocked", p->blocked, 0);
	expect("sends queued", !p3_list_empty(&p->queue), 0);
	expect("sends outstanding", !p3_list_empty(&p->outstanding), 0);
	expect("bulk", p->bulk != NULL, 0);
	expect("reads announced", p->nreading, 0);
	expect("an exchange announced", p3_get(&p->mine->swapping), 0);
}

RIG_UNSEEN static void check_idle(struct p3_nic *n)
{
	expect("pendings", n->table[P3_T_PENDING].live, 0);
	expect("requests for unresolved targets", n->unresolved.nqueued, 0);
	expect("pulls", !p3_list_empty(&n->pulls), 0);
	expect("sources", !p3_list_empty(&n->sources), 0);
	expect("blocked peers", !p3_list_empty(&n->blocked), 0);
	expect("windows", n->window_free, (1u << n->windows) - 1);
	expect("peers alive", p3_get(&n->alive), 0);
	expect("hot peers", n->nhot, 0);
	expect("an exchange that waits", n->swapper != NULL, 0);
	for (uint32_t i = 0; i < n->layout.nxfers; i++)
		expect("transfer slots", n->xfer[i].in_use, 0);
	for (uint32_t i = 0; i < P3_PULLS; i++)
		expect("pulls in use", n->pull[i].in_use, 0);
	for (uint32_t i = 0; i < n->conf.nnodes; i++)
		check_peer(&n->peer[i]);
}

/* Check that a descriptor's word odd tells what is unusual about it. */
RIG_UNSEEN static void check_odd(const struct p3_md *md)
{
	uint32_t options = md->words.options, odd = md->odd;
	bool queue = md->sink.eq != NULL;
	expect("odd: inactive", !!(odd & P3_MD_ODD_INACTIVE),
		md->exhausted || md->words.threshold == 0);
	expect("odd: threshold", !!(odd & P3_MD_ODD_THRESHOLD), md->words.threshold >= 0);
	expect("odd: iovec", !!(odd & P3_MD_ODD_IOVEC), md->region.iov != NULL);
	expect("odd: size", !!(odd & P3_MD_ODD_MAX_SIZE), !!(options & PTL_MD_MAX_SIZE));
	expect("odd: no put", !(odd & P3_MD_ODD_PUT), !!(options & PTL_MD_OP_PUT));
	expect("odd: no get", !(odd & P3_MD_ODD_GET), !!(options & PTL_MD_OP_GET));
	expect("odd: no ACK", !!(odd & P3_MD_ODD_ACK), !!(options & PTL_MD_ACK_DISABLE));
	expect("odd: no queue", !(odd & P3_MD_ODD_QUEUE), queue);
	expect("odd: START", !!(odd & P3_MD_ODD_STARTS),
		queue && !(options & PTL_MD_EVENT_START_DISABLE));
	expect("odd: no END", !!(odd & P3_MD_ODD_ENDS),
		queue && (options & PTL_MD_EVENT_END_DISABLE));
}

RIG_UNSEEN static void check_objects(struct p3_nic *n)
{
	struct p3_table *mds = &n->table[P3_T_MD], *eqs = &n->table[P3_T_EQ];
	for (uint32_t i = 0; i < P3_JOB_NIS; i++)
		if (p3_get(&n->ni[i].gen) & 1)
			expect("operations counted", n->ni[i].use[P3_U_OP].cur, 0);
	for (uint32_t i = 0; i < mds->used; i++) {
		const struct p3_md *md = p3_table_at(mds, i);
		if (!p3_obj_lives(&md->o))
			continue;
		expect("operations on a descriptor", md->pending, 0);
		check_odd(md);
	}
	for (uint32_t i = 0; i < eqs->used; i++) {
		const struct p3_eq *eq = p3_table_at(eqs, i);
		if (p3_obj_lives(&eq->o))
			expect("events owed", eq->owed, 0);
	}
}

void rig_stop(void)
{
	struct p3_nic *n = rig.nic;
	for (uint32_t i = 0; i < n->conf.nnodes; i++)
		peer_down(i, i == RIG_NODE ? P3_PEER_LEFT : P3_PEER_DIED);
	while (n->told != n->asked)
		p3_nic_peer_told(n, n->asked, NULL);
	struct p3_on_hold held;
	rig.now++;
	p3_nic_held(n, &held);
	expect("requests that are held", held.n, 0);
	check_idle(n);
	check_objects(n);
	if (rig.far)
		far_check_idle();
	host_check();
	host_stop();
	p3_nic_stop(n);
	if (rig.far)
		far_close();
	rig.nic = NULL;
	for (uint32_t i = 0; i < RIG_FAKES; i++)
		clean(&rig.fake[i]);
}
