/* SPDX-License-Identifier: BSD-3-Clause */
/* Random programs of CCI and their sequential model. */
#include "model.h"

#include <cci.h>

#include <stdio.h>
#include <string.h>

const unsigned char *model_source(void)
{
	static unsigned char bytes[REGION];
	static bool made;
	for (unsigned i = 0; i < REGION && !made; i += 8) {
		uint64_t x = mix(i);
		memcpy(bytes + i, &x, 8);
	}
	made = true;
	return bytes;
}

/* ---- programs ---- */

static uint64_t state;

static unsigned below(unsigned n)
{
	state = mix(state);
	return (unsigned)(state >> 32) % n;
}

static enum kind random_kind(void)
{
	static const unsigned char weights[KINDS] = {12, 50, 22, 4, 12, 0};
	unsigned dice = below(100), kind = 0;
	for (; dice >= weights[kind]; kind++)
		dice -= weights[kind];
	return (enum kind)kind;
}

static unsigned random_length(unsigned most)
{
	static const unsigned edges[] = {
		4, 7, 8, 31, 32, 33, 63, 64, 65, 96, 97, 512, 4095};
	switch (below(4)) {
	case 0:
		return edges[below(13)];
	case 1:
		return 4 + below(most - 4);
	default:
		return 4 + below(100);
	}
}

static void random_send(struct step *s)
{
	static const int flags[] = {0, 0, 0, CCI_FLAG_SILENT, CCI_FLAG_BLOCKING,
		CCI_FLAG_NO_COPY, CCI_FLAG_NO_COPY | CCI_FLAG_SILENT,
		CCI_FLAG_BLOCKING | CCI_FLAG_NO_COPY};
	s->length = random_length(MOST);
	s->flags = flags[below(8)];
	s->pieces = below(3) ? 0 : 1 + below(6);
}

static void random_rma(struct step *s)
{
	static const int flags[] = {0, 0, 0, CCI_FLAG_SILENT, CCI_FLAG_BLOCKING,
		CCI_FLAG_FENCE, CCI_FLAG_FENCE};
	unsigned most = below(4) ? 300 : REGION / 2;
	s->read = below(2);
	s->region = below(3) ? OPEN : below(REGIONS);
	s->length = 1 + below(most);
	s->local = below(REGION - s->length);
	s->remote = below(12) ? below(REGION - s->length) : REGION - below(s->length);
	s->flags = flags[below(7)];
	s->with_message = below(3) == 0;
}

static void random_step(struct step *s)
{
	s->kind = random_kind();
	s->slot = below(SLOTS);
	s->a = below(PROCESSES * ENDPOINTS);
	s->b = below(PROCESSES * ENDPOINTS);
	s->server = below(2);
	s->accepted = below(5) > 0;
	s->attribute = below(3);
	if (s->kind == SEND)
		random_send(s);
	if (s->kind == RMA)
		random_rma(s);
	if (s->kind == GIVE_BACK)
		s->length = below(101); /* percent */
}

void program_make(struct program *p, uint64_t seed, unsigned steps)
{
	memset(p, 0, sizeof *p);
	p->seed = seed;
	p->steps = steps < STEPS ? steps : STEPS;
	state = mix(seed);
	for (unsigned i = 0; i < p->steps; i++) {
		random_step(&p->step[i]);
		if (i % ROUND == ROUND / 2 && i > 4 * ROUND && below(12) == 0)
			p->step[i].kind = DIE;
	}
}

static const char *const region_names[] = {"open", "readable", "writable", "stale"};

void step_show(char *text, unsigned long n, unsigned number, const struct step *s)
{
	static const char *const kinds[] = {
		"connect", "send", "rma", "disconnect", "give back", "die"};
	static const char *const attributes[] = {"RO", "RU", "UU"};
	int at = snprintf(text, n, "%4u  %s", number, kinds[s->kind]);
	char *rest = text + at;
	n -= (unsigned long)at;
	if (s->kind == CONNECT)
		snprintf(rest, n, " slot %u, endpoint %u to %u, %s%s", s->slot, s->a,
			s->b, attributes[s->attribute], s->accepted ? "" : ", rejected");
	else if (s->kind == SEND)
		snprintf(rest, n, " slot %u, %s, %u bytes, flags %#x, %u pieces", s->slot,
			s->server ? "server" : "client", s->length, (unsigned)s->flags,
			s->pieces);
	else if (s->kind == RMA)
		snprintf(rest, n,
			" slot %u, %s %s region %s at %u, local %u, %u bytes, flags "
			"%#x%s",
			s->slot, s->server ? "server" : "client",
			s->read ? "reads" : "writes", region_names[s->region], s->remote,
			s->local, s->length, (unsigned)s->flags,
			s->with_message ? ", message" : "");
	else if (s->kind == DISCONNECT)
		snprintf(rest, n, " slot %u, %s", s->slot,
			s->server ? "server" : "client");
	else if (s->kind == GIVE_BACK)
		snprintf(rest, n, " endpoint %u, %u %%", s->a, s->length);
	else
		snprintf(rest, n, " process %u", process_of(s->a));
}

/* ---- the model ---- */

/* Places that RMA of this round reads or writes. */
static struct touched {
	unsigned endpoint, region, from, to, slot;
	bool write, server;
} touched[ROUND];
static unsigned touched_n;

static void new_memory(struct model *m, unsigned process)
{
	for (unsigned i = 0; i < ENDPOINTS; i++)
		for (unsigned r = 0; r < REGIONS; r++) {
			struct memory *at = &m->memory[process * ENDPOINTS + i][r];
			memset(at->bytes, 0, sizeof at->bytes);
			memset(at->known, 1, sizeof at->known);
		}
}

void model_begin(struct model *m)
{
	memset(m, 0, sizeof *m);
	for (unsigned i = 0; i < PROCESSES; i++)
		new_memory(m, i);
}

static bool is_dying(struct model *m, unsigned endpoint)
{
	return m->dies[process_of(endpoint)];
}

/* A process acts until its death in the round, and not after it. */
static bool is_after_death(
	const struct program *p, unsigned from, unsigned at, unsigned process)
{
	for (unsigned i = from; i < at; i++)
		if (p->step[i].kind == DIE && !p->step[i].dropped &&
			process_of(p->step[i].a) == process)
			return true;
	return false;
}

static enum fate connect_fate(struct model *m, const struct step *s, unsigned number)
{
	struct slot *c = &m->slot[s->slot];
	if (c->used || is_dying(m, s->a) || is_dying(m, s->b))
		return LEFT_OUT;
	if (!s->accepted)
		return SURE;
	/* It may be used from the next round on: made, but not open. */
	*c = (struct slot){.used = true,
		.end = {s->a, s->b},
		.attribute = s->attribute,
		.made = number};
	return SURE;
}

/* The fate of an operation of one side. */
static enum fate side_fate(struct model *m, const struct step *s)
{
	struct slot *c = &m->slot[s->slot];
	if (!c->used || !c->open[s->server])
		return LEFT_OUT;
	if (c->ending)
		return OPEN_FATE;
	return c->open[!s->server] ? SURE : CLOSED;
}

static enum fate send_fate(struct model *m, const struct step *s)
{
	struct slot *c = &m->slot[s->slot];
	enum fate fate = side_fate(m, s);
	int both = CCI_FLAG_NO_COPY | CCI_FLAG_SILENT;
	if ((s->flags & both) == both && c->attribute != CCI_CONN_ATTR_RO)
		return LEFT_OUT;
	/* A blocking send waits for buffers that only the receiver's next steps free. */
	if ((s->flags & CCI_FLAG_BLOCKING) && has_few_buffers(c->end[!s->server]))
		return LEFT_OUT;
	return fate;
}

static bool has_right(const struct step *s)
{
	if (s->remote + s->length > REGION || s->region == STALE)
		return false;
	return s->region == OPEN ||
	       (s->read ? s->region == READABLE : s->region == WRITABLE);
}

/* Two RMAs may meet at a place if both read, or a later one is fenced off an earlier
 * write. */
static bool is_free(const struct step *s, unsigned endpoint)
{
	for (unsigned i = 0; i < touched_n; i++) {
		struct touched *t = &touched[i];
		if (t->endpoint != endpoint || t->region != s->region ||
			s->remote >= t->to || t->from >= s->remote + s->length)
			continue;
		bool fenced = (s->flags & CCI_FLAG_FENCE) && t->slot == s->slot &&
			      t->server == s->server;
		if ((t->write || !s->read) && !(t->write && fenced))
			return false;
	}
	return true;
}

/* A write on a connection that ends may arrive when a later round has begun: no event
 * tells when it is over.  So no later write makes its place known again. */
static void write_memory(struct model *m, const struct step *s, unsigned end, bool known)
{
	struct memory *at = &m->memory[end][s->region];
	memcpy(at->bytes + s->remote, model_source() + s->local, s->length);
	if (!known)
		memset(at->known + s->remote, 0, s->length);
}

/* A blocking RMA on RO ends after the messages before it, too, which wait for buffers
 * that only the receiver's next steps free. */
static bool may_block_for_ever(const struct step *s, const struct slot *c)
{
	return (s->flags & CCI_FLAG_BLOCKING) && has_few_buffers(c->end[!s->server]) &&
	       (s->with_message || c->attribute == CCI_CONN_ATTR_RO);
}

static enum fate rma_fate(struct model *m, const struct step *s)
{
	struct slot *c = &m->slot[s->slot];
	enum fate fate = side_fate(m, s);
	unsigned end = c->end[!s->server];
	if (fate == LEFT_OUT || c->attribute == CCI_CONN_ATTR_UU)
		return LEFT_OUT;
	if (may_block_for_ever(s, c))
		return LEFT_OUT;
	if (fate == CLOSED)
		return CLOSED;
	if (!has_right(s))
		return fate == SURE ? HANDLE : LEFT_OUT;
	if (!is_free(s, end))
		return LEFT_OUT;
	touched[touched_n++] = (struct touched){end, s->region, s->remote,
		s->remote + s->length, s->slot, !s->read, s->server};
	if (!s->read)
		write_memory(m, s, end, fate == SURE);
	return fate;
}

static enum fate disconnect_fate(struct model *m, const struct step *s)
{
	struct slot *c = &m->slot[s->slot];
	if (!c->used || !c->open[s->server])
		return LEFT_OUT;
	c->open[s->server] = false;
	return SURE;
}

static enum fate fate_of(
	struct model *m, const struct program *p, unsigned from, unsigned i)
{
	const struct step *s = &p->step[i];
	struct slot *c = &m->slot[s->slot];
	unsigned actor = s->kind == CONNECT || s->kind == GIVE_BACK || s->kind == DIE
				 ? s->a
				 : c->end[s->server];
	if (s->dropped || is_after_death(p, from, i, process_of(actor)))
		return LEFT_OUT;
	switch (s->kind) {
	case CONNECT:
		return connect_fate(m, s, i);
	case SEND:
		return send_fate(m, s);
	case RMA:
		return rma_fate(m, s);
	case DISCONNECT:
		return disconnect_fate(m, s);
	default:
		return SURE;
	}
}

/* Find the connections of which a side ends in the round. */
static void find_ends(
	struct model *m, const struct program *p, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++) {
		const struct step *s = &p->step[i];
		struct slot *c = &m->slot[s->slot];
		if (!s->dropped && s->kind == DIE)
			m->dies[process_of(s->a)] = true;
		if (!s->dropped && s->kind == DISCONNECT && c->used && c->open[s->server])
			c->ending = true;
	}
	for (unsigned i = 0; i < SLOTS; i++) {
		struct slot *c = &m->slot[i];
		c->ending |=
			c->used && (is_dying(m, c->end[0]) || is_dying(m, c->end[1]));
		c->ending &= c->open[0] && c->open[1];
	}
}

void model_round(struct model *m, const struct program *p, unsigned from, unsigned to)
{
	touched_n = 0;
	memset(m->dies, 0, sizeof m->dies);
	find_ends(m, p, from, to);
	for (unsigned i = from; i < to; i++)
		m->fate[i] = fate_of(m, p, from, i);
}

void model_end_round(struct model *m)
{
	for (unsigned i = 0; i < SLOTS; i++) {
		struct slot *c = &m->slot[i];
		if (!c->used)
			continue;
		if (!c->open[0] && !c->open[1] && !c->ending && c->made != UINT32_MAX) {
			c->open[0] = c->open[1] = true; /* made in this round */
			c->made = UINT32_MAX;
		}
		c->ending = false;
		for (int side = 0; side < 2; side++)
			if (is_dying(m, c->end[side]))
				c->open[side] = false;
		if (!c->open[0] && !c->open[1])
			c->used = false;
	}
	for (unsigned i = 0; i < PROCESSES; i++)
		if (m->dies[i]) {
			m->life[i]++;
			new_memory(m, i);
		}
}
