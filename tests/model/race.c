/* SPDX-License-Identifier: BSD-3-Clause */
/* Races: threads of a scene, and the search for an order that explains the outcome. */
#include "model/play.h"

#include "model/model.h"
#include "model/scene.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPIN_MOST 3000u

/* ---- the actors' threads ---- */

struct stage {
	struct play play;
	pthread_t thread[S_ACTORS];
	p3_a32 round; /* increases when a scene begins */
	p3_a32 done;
	p3_a32 stop;
	struct scene scene;
	struct answer answer[S_ACTORS][S_OPS];
};

struct seat {
	struct stage *stage;
	unsigned actor;
};

static void spin(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		__asm__ volatile("" ::: "memory");
}

static void act(struct stage *g, unsigned i)
{
	struct scene *s = &g->scene;
	if (i >= s->nactors)
		return;
	struct actor *a = &s->actor[i];
	net_enter(&g->play.net, a->node);
	for (unsigned k = 0; k < a->n; k++) {
		spin(a->delay[k] % SPIN_MOST);
		g->answer[i][k].rc =
			play_library(&g->play, &a->op[k], &g->answer[i][k].event);
	}
}

static void *actor_main(void *arg)
{
	struct seat *seat = arg;
	struct stage *g = seat->stage;
	for (uint32_t round = 1;; round++) {
		while (p3_acquire(&g->round) < round)
			sched_yield();
		if (p3_acquire(&g->stop))
			return NULL;
		act(g, seat->actor);
		(void)p3_add32(&g->done, 1);
	}
}

static void perform(struct stage *g)
{
	p3_release(&g->done, 0);
	(void)p3_add32(&g->round, 1);
	while (p3_acquire(&g->done) < S_ACTORS)
		sched_yield();
}

/* ---- outcomes ---- */

struct outcome {
	unsigned n[M_NODES][M_EQS]; /* number of events left in the queues */
	struct answer left[M_NODES][M_EQS][S_EVENTS];
	uint64_t drops[M_NODES];
	unsigned char *before[M_NODES]; /* memory before the scene */
};

static void read_queue(struct stage *g, struct outcome *o, unsigned node, uint8_t slot)
{
	struct m_op get = {.kind = M_EQ_GET, .node = (uint8_t)node, .eq = {M_SLOT, slot}};
	unsigned n = 0;
	for (; n < S_EVENTS; n++) {
		struct answer *a = &o->left[node][slot][n];
		a->rc = play_library(&g->play, &get, &a->event);
		if (a->rc != PTL_OK && a->rc != PTL_EQ_DROPPED)
			break;
	}
	o->n[node][slot] = n;
}

static void look(struct stage *g, struct outcome *o)
{
	for (unsigned i = 0; i < g->play.model->n; i++) {
		net_enter(&g->play.net, i);
		for (uint8_t k = 0; k < M_EQS; k++)
			if (m_eq(g->play.model, i, (struct m_ref){M_SLOT, k}))
				read_queue(g, o, i, k);
		o->drops[i] = net_drops(&g->play.net, i) - g->play.drops[i];
	}
}

/* ---- orders ---- */

/* Drop the order in queues from S_LOOSE on, except that of m_event_before(). */
static void loosen(struct model *m)
{
	for (unsigned i = 0; i < m->ncauses && i < M_CAUSES; i++)
		m->cause[i].batch = 0;
	for (unsigned i = 0; i < m->n; i++)
		for (unsigned k = S_LOOSE; k < M_EQS; k++)
			for (uint64_t e = 0; e < m->node[i].eq[k].written; e++) {
				m->node[i].eq[k].ring[e % M_RING].batch = 0;
				m->node[i].eq[k].ring[e % M_RING].burst = true;
			}
}

static void compare_queue(
	struct play *p, const struct outcome *o, unsigned node, uint8_t slot)
{
	struct m_op get = {.kind = M_EQ_GET, .node = (uint8_t)node, .eq = {M_SLOT, slot}};
	for (unsigned i = 0; i < o->n[node][slot] && !p->differs; i++) {
		const struct answer *a = &o->left[node][slot][i];
		play_model(p, &get, a->rc, &a->event);
	}
	struct m_eq *eq = m_eq(p->model, node, get.eq);
	if (eq && eq->read != eq->written)
		p->differs = true;
}

static void compare(struct stage *g, const struct outcome *o)
{
	struct play *p = &g->play;
	struct model *m = p->model;
	loosen(m);
	for (unsigned i = 0; i < m->n && !p->differs; i++) {
		p->differs = m->node[i].drops != o->drops[i] ||
			     memcmp(p->memory[i][0], p->memory[i][1], S_MEMORY) != 0;
		for (uint8_t k = 0; k < M_EQS && !p->differs; k++)
			compare_queue(p, o, i, k);
	}
}

/* Return true if the model, from the scene's begin, gives the outcome in this order. */
static bool is_order(struct stage *g, const struct outcome *o, const uint8_t *order,
	unsigned n, bool whole)
{
	struct scene *s = &g->scene;
	struct play *p = &g->play;
	unsigned at[S_ACTORS] = {0};
	play_restart(p);
	for (unsigned i = 0; i < p->model->n; i++)
		memcpy(p->memory[i][1], o->before[i], S_MEMORY);
	for (unsigned i = 0; i < s->nsetup; i++)
		play_model(p, &s->setup[i], PTL_OK, NULL);
	for (unsigned i = 0; i < n && !p->differs; i++) {
		unsigned a = order[i], k = at[a]++;
		model_pause(p->model);
		p->model->in_burst = s->actor[a].op[k].kind != M_EQ_GET;
		play_model(p, &s->actor[a].op[k], g->answer[a][k].rc,
			&g->answer[a][k].event);
	}
	if (whole && !p->differs)
		compare(g, o);
	return !p->differs;
}

/* Return true if an order that begins with these n operations gives this outcome. */
static bool some_order(struct stage *g, const struct outcome *o, uint8_t *order,
	unsigned n, unsigned at[S_ACTORS])
{
	struct scene *s = &g->scene;
	bool whole = true;
	for (unsigned a = 0; a < s->nactors; a++)
		whole = whole && at[a] == s->actor[a].n;
	if (whole)
		return is_order(g, o, order, n, true);
	for (unsigned a = 0; a < s->nactors; a++) {
		if (at[a] == s->actor[a].n)
			continue;
		order[n] = (uint8_t)a;
		at[a]++;
		bool found = some_order(g, o, order, n + 1, at);
		at[a]--;
		if (found)
			return true;
	}
	return false;
}

/* ---- reports ---- */

static void print_ops(
	const char *who, const struct m_op *ops, unsigned n, const struct answer *answers)
{
	char text[800];
	for (unsigned i = 0; i < n; i++) {
		show_op(text, sizeof text, &ops[i]);
		printf("  %s %s%s%s\n", who, text, answers ? " = " : "",
			answers ? PtlErrorStr((unsigned)answers[i].rc) : "");
	}
}

static void print_outcome(const struct outcome *o)
{
	char text[800];
	for (unsigned i = 0; i < M_NODES; i++) {
		printf("  node %u drops %" PRIu64 "\n", i, o->drops[i]);
		for (unsigned k = 0; k < M_EQS; k++)
			for (unsigned e = 0; e < o->n[i][k]; e++) {
				show_event(text, sizeof text, &o->left[i][k][e].event);
				printf("  node %u eq%u %s\n", i, k, text);
			}
	}
}

static void report(struct stage *g, const struct outcome *o, uint64_t seed)
{
	struct scene *s = &g->scene;
	printf("race %s, seed %" PRIu64 ": no order of the calls gives this\n", s->name,
		seed);
	print_ops("setup", s->setup, s->nsetup, NULL);
	for (unsigned i = 0; i < s->nactors; i++) {
		char who[20];
		snprintf(who, sizeof who, "actor %u", i);
		print_ops(who, s->actor[i].op, s->actor[i].n, g->answer[i]);
	}
	print_outcome(o);
	printf("the last order tried: %s\n",
		g->play.text[0] ? g->play.text
				: "another number of events, drops, or "
				  "other bytes");
}

/* ---- rounds ---- */

static void set_up(struct stage *g, struct outcome *o)
{
	struct play *p = &g->play;
	for (unsigned i = 0; i < p->model->n; i++)
		memcpy(o->before[i], p->memory[i][0], S_MEMORY);
	for (unsigned i = 0; i < g->scene.nsetup; i++) {
		struct m_op op = g->scene.setup[i];
		if (!play_op(p, &op)) {
			printf("setup of %s: %s", g->scene.name, p->text);
			exit(1);
		}
	}
}

static void clean_up(struct stage *g)
{
	struct play *p = &g->play;
	for (unsigned i = 0; i < p->model->n; i++)
		memcpy(p->memory[i][1], p->memory[i][0], S_MEMORY);
	if (!play_end(p)) {
		printf("after %s: %s", g->scene.name, p->text);
		exit(1);
	}
}

static bool round_of(struct stage *g, struct outcome *o, scene_fn *fn, uint64_t seed)
{
	uint8_t order[S_ACTORS * S_OPS];
	unsigned at[S_ACTORS] = {0};
	struct generator random;
	generate_begin(&random, seed);
	memset(&g->scene, 0, sizeof g->scene);
	memset(o->n, 0, sizeof o->n);
	play_begin(&g->play, S_NODES);
	fn(&g->scene, &random.state);
	set_up(g, o);
	perform(g);
	if (!net_settle(&g->play.net, (1u << S_NODES) - 1)) {
		printf("race %s, seed %" PRIu64 ": no end\n", g->scene.name, seed);
		return false;
	}
	look(g, o);
	if (!some_order(g, o, order, 0, at)) {
		report(g, o, seed);
		return false;
	}
	clean_up(g);
	return true;
}

static bool rounds_of(struct stage *g, struct outcome *o, scene_fn *fn, uint64_t seed,
	unsigned rounds, uint64_t end)
{
	uint64_t start = now_ns();
	unsigned i = 0;
	for (; i < rounds && now_ns() < end; i++)
		if (!round_of(g, o, fn, seed + i))
			return false;
	printf("race %s: %u rounds, %.1f s\n", g->scene.name, i,
		(double)(now_ns() - start) / 1e9);
	return true;
}

static void start(struct stage *g, struct seat *seats)
{
	play_init(&g->play);
	for (unsigned i = 0; i < S_ACTORS; i++) {
		seats[i] = (struct seat){g, i};
		if (pthread_create(&g->thread[i], NULL, actor_main, &seats[i]))
			abort();
	}
}

static void stop(struct stage *g)
{
	p3_release(&g->stop, 1);
	(void)p3_add32(&g->round, 1);
	for (unsigned i = 0; i < S_ACTORS; i++)
		pthread_join(g->thread[i], NULL);
	play_fini(&g->play);
}

bool race(uint64_t seed, unsigned rounds, uint64_t ns)
{
	static struct stage g;
	static struct outcome o;
	static struct seat seats[S_ACTORS];
	uint64_t end = now_ns() + ns;
	bool ok = true;
	start(&g, seats);
	for (unsigned i = 0; i < M_NODES; i++)
		if (!(o.before[i] = malloc(S_MEMORY)))
			abort();
	for (unsigned i = 0; ok && scenes[i]; i++)
		ok = rounds_of(&g, &o, scenes[i], seed, rounds, end);
	ok = ok && tell_tales(&g.play, seed, rounds, end);
	stop(&g);
	for (unsigned i = 0; i < M_NODES; i++)
		free(o.before[i]);
	return ok;
}
