/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The nodes of this process (one, or in tests several), their settings, the tables of ids
 * under RCU, and the care for requests to processes that have yet to join
 */
#include "lib/node/node.h"
#include "lib/node/call.h"
#include "shm/variant.h"
#include "shm/atomics.h"
#include "shm/process.h"
#include "shm/log.h"
#include "shm/park.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <urcu-bp.h>

__thread struct p3_thread p3_thread
	__attribute__((tls_model("initial-exec"))) = {.node = &p3_process};
struct p3_ready p3_not_ready;
struct p3_node p3_process = {.ready = &p3_not_ready,
	.call = PTHREAD_MUTEX_INITIALIZER,
	.life = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
	.sock = -1,
	.wake_fd = -1};

static void node_renew_locks(void)
{
	p3_node_set_locks(&p3_process);
}

P3_IN_FORKED_CHILD(node_renew_locks)

void p3_node_set_locks(struct p3_node *node)
{
	pthread_mutex_init(&node->call, NULL);
	pthread_mutex_init(&node->life, NULL);
	pthread_cond_init(&node->changed, NULL);
}

struct p3_lib_ni *p3_node_find_ni(struct p3_node *node, ptl_handle_ni_t handle)
{
	uint32_t i = p3_handle_ni(handle);
	if (p3_handle_kind(handle) != P3_KIND_NI || i >= P3_JOB_NIS)
		return NULL;
	struct p3_lib_ni *ni = &node->ni[i];
	return p3_acquire(&ni->open) && p3_get(&ni->handle) == handle ? ni
								      : NULL; /* INIT.1 */
}

/* ---- settings: the effect of shm/conf.h's table on this library ---- */

/* Words of the table and their enumerators are in the same order. */
_Static_assert(P3_MODE_AUTO == 0 && P3_MODE_LEASE == 1 && P3_MODE_DEDICATED == 2 &&
		       P3_MODE_PARK == 3,
	"auto|lease|dedicated|park");
_Static_assert(
	P3_INTERRUPT_FUTEX == 0 && P3_INTERRUPT_SIGNAL == 1 && P3_INTERRUPT_POLL == 2,
	"futex|signal|poll");
_Static_assert(P3_PERSONALITY_AUTO == 0 && P3_PERSONALITY_DOCUMENT == 1 &&
		       P3_PERSONALITY_CRAY == 2,
	"auto|document|cray");
_Static_assert(P3_HUGE_AUTO == 0 && P3_HUGE_ON == 1 && P3_HUGE_OFF == 2, "auto|on|off");

static void conf_as_error(void *arg, const char *line)
{
	(void)arg;
	p3_error("%s", line);
}

static void conf_as_warning(void *arg, const char *line)
{
	(void)arg;
	p3_warn("%s", line);
}

static uint64_t conf_number(enum p3_conf_id id)
{
	uint64_t v;
	(void)p3_conf_value(p3_conf_row(id), p3_conf_text(id), &v);
	return v;
}

/* Return true if a setting whose words are on|off is on. */
static bool conf_is_on(enum p3_conf_id id)
{
	return conf_number(id) == 0;
}

/* Leave out the parts that PTL3_ABLATE lists.  Return -EINVAL after a line if this
 * library cannot. */
static int conf_ablate(void)
{
	uint32_t parts;
	const char *text = p3_conf_text(P3_CONF_ABLATE);
	(void)p3_ablation_parse(text, &parts);
	if (p3_ablate(parts))
		return 0;
	p3_error("PTL3_ABLATE is '%s', but this libportals cannot leave out any part; "
		 "load the one in ablation/ of a build with P3_ABLATION, or unset it",
		text);
	return -EINVAL;
}

int p3_conf_read(struct p3_conf *conf_out)
{
	int rc = p3_conf_check(conf_as_error, NULL);
	if (!rc)
		rc = conf_ablate();
	if (rc)
		return rc;
	struct p3_conf c = {.mode = (enum p3_mode)conf_number(P3_CONF_MODE),
		.personality = (enum p3_personality)conf_number(P3_CONF_PERSONALITY),
		.huge = (enum p3_huge_policy)conf_number(P3_CONF_HUGEPAGES),
		.cma = conf_number(P3_CONF_MOVER) != P3_CONF_MOVER_WINDOW,
		.bulk = conf_number(P3_CONF_MOVER) != P3_CONF_MOVER_READ,
		.membarrier = conf_is_on(P3_CONF_MEMBARRIER),
		.base_lanes_only = conf_number(P3_CONF_LANES) == P3_CONF_LANES_BASE,
		.unswept = conf_number(P3_CONF_LANES) == P3_CONF_LANES_UNSWEPT,
		.shared_heap = conf_is_on(P3_CONF_SHARED_HEAP),
		.heap = conf_number(P3_CONF_HEAP),
		.domain_nodes = (uint32_t)conf_number(P3_CONF_DOMAIN_NODES)};
	if (c.shared_heap && !p3_conf_text(P3_CONF_HEAP))
		c.heap = P3_HEAP_LARGE;
	(void)p3_conf_trace(p3_conf_text(P3_CONF_TRACE), &c.trace);
	(void)p3_conf_absent(p3_conf_text(P3_CONF_ABSENT), &c.hold_s);
	*conf_out = c;
	return 0;
}

struct p3_conf_match p3_conf_match_of(uint32_t rank)
{
	struct p3_conf_match match;
	(void)p3_conf_match(p3_conf_text(P3_CONF_MATCH), rank, &match);
	return match;
}

void p3_conf_log(void)
{
	uint8_t levels[P3_LOG_AREAS];
	if (p3_log_parse(p3_conf_text(P3_CONF_LOG), levels))
		p3_log_set(levels);
}

void p3_conf_join_fences(void)
{
	if (conf_is_on(P3_CONF_MEMBARRIER) && conf_number(P3_CONF_MODE) != P3_MODE_PARK)
		(void)p3_fence_join();
}

void p3_conf_set_stdout(void)
{
	static p3_a32 done;
	if (conf_is_on(P3_CONF_STDOUT) || p3_exchange32(&done, 1))
		return;
	/* A stdout that keeps its old buffer keeps the limits of a full buffer, and is
	 * not written at the end of a line.  The new buffer is never freed: stdout is
	 * used until the process ends. */
	char *buffer = malloc(BUFSIZ);
	(void)fflush(stdout);
	if (buffer && setvbuf(stdout, buffer, _IOLBF, BUFSIZ) != 0)
		free(buffer);
}

void p3_conf_warn_unknown(void)
{
	p3_conf_unknown(environ, conf_as_warning, NULL);
}

/* ---- tables of ids ---- */

static p3_a32 directory_readers_done; /* RCU.2 */
static p3_a32 directory_forked;
static p3_directory_ptr
	directory_kept; /* tables that cannot be freed, for leak checkers */

/* A variable of liburcu: 0 if liburcu found no membarrier when it was loaded, and so
 * does not use it. */
extern int urcu_bp_has_sys_membarrier __attribute__((weak));

struct p3_directory *p3_directory_new(uint32_t size)
{
	struct p3_directory *d = calloc(1, sizeof *d + size * sizeof d->member[0]);
	if (!d)
		return NULL;
	d->size = size;
	for (uint32_t i = 0; i < size; i++) {
		p3_set(&d->member[i].nid, P3_UNKNOWN);
		for (int k = 0; k < P3_JOB_NIS; k++)
			p3_set(&d->member[i].pid[k], P3_UNKNOWN);
	}
	return d;
}

const struct p3_directory *p3_directory_read(p3_directory_ptr *where)
{
	p3_busy();
	if (!p3_get(&directory_forked)) /* no table is freed there */
		urcu_bp_read_lock();
	return p3_acquire(where); /* RCU.1 */
}

void p3_directory_done(void)
{
	(void)p3_add32(&directory_readers_done, 1); /* RCU.2 */
	if (!p3_get(&directory_forked))
		urcu_bp_read_unlock();
	p3_idle();
}

void p3_directory_replace(p3_directory_ptr *where, struct p3_directory *now)
{
	P3_HB_WORD(where);
	P3_HB_BEFORE(where);
	struct p3_directory *old =
		atomic_exchange_explicit(where, now, memory_order_acq_rel); /* RCU.1 */
	P3_HB_AFTER(where);
	if (!old)
		return;
	/* Waiting for readers is not safe in a forked child, nor when the kernel now
	 * refuses membarrier but granted it when liburcu was loaded: liburcu would
	 * abort. */
	bool needs = !&urcu_bp_has_sys_membarrier || urcu_bp_has_sys_membarrier;
	if (p3_get(&directory_forked) || (needs && !p3_fence_heavy_here())) {
		old->next_kept = atomic_exchange_explicit(
			&directory_kept, old, memory_order_acq_rel);
		return;
	}
	urcu_bp_synchronize_rcu();
	(void)p3_add32(&directory_readers_done, 0); /* RCU.2 */
	free(old);
}

void p3_directory_set(p3_directory_ptr *where, uint32_t rank, uint32_t nid,
	const uint32_t pid[P3_JOB_NIS])
{
	/* While an interface is open no thread replaces the table. */
	struct p3_directory *d = p3_acquire(where); /* RCU.1 */
	struct p3_rank_ids *who = &d->member[rank];
	p3_set(&who->nid, nid);
	for (int i = 0; i < P3_JOB_NIS; i++)
		if (pid[i] != P3_JOB_NO_PID)
			p3_set(&who->pid[i], pid[i]);
}

/* In a child, liburcu's locks may be those of threads that it does not have. */
static void directory_in_child(void)
{
	p3_set(&directory_forked, 1);
}

P3_IN_FORKED_CHILD(directory_in_child)

/* ---- requests to processes that have yet to join ---- */

#define HELD_LATE_S 10 /* wait in seconds after which a line is printed */
#define SECOND      UINT64_C(1000000000)

void p3_held_see_to(struct p3_node *node, struct p3_nic *nic)
{
	struct p3_on_hold held;
	p3_nic_held(nic, &held);
	node->held.at = 0;
	if (!held.n)
		return;
	uint64_t late = held.since_ns + HELD_LATE_S * SECOND;
	uint64_t end = held.since_ns + node->held.limit_s * SECOND;
	if (!node->held.said && p3_now_ns() >= late) {
		node->held.said = true;
		p3_warn("%u messages wait for the process with node id %u and process id "
			"%u, which has not called PtlNIInit, the first one for %d s; "
			"they fail "
			"after %u s: start that process, or set PTL3_ABSENT=hold:SECONDS "
			"for "
			"another time or PTL3_ABSENT=drop for none",
			held.n, held.who.nid, held.who.pid, HELD_LATE_S,
			node->held.limit_s);
	}
	node->held.at = !node->held.said && late < end ? late : end;
}

bool p3_held_is_due(const struct p3_node *node)
{
	return node->held.at && p3_now_ns() >= node->held.at;
}

int p3_held_patience(const struct p3_node *node, int ms)
{
	if (!node->held.at)
		return ms;
	uint64_t now = p3_now_ns(), at = node->held.at;
	uint64_t left = at > now ? (at - now) / 1000000 + 1 : 0;
	return ms >= 0 && (uint64_t)ms < left ? ms : (int)left;
}
