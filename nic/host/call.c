/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands of host threads: under the lease, or through the mailbox. */
#include "nic/host/call.h"
#include "nic/host/post.h"
#include "nic/obj/host.h"
#include "nic/obj/table.h"
#include "nic/proto/tx.h"
#include "nic/run/lease.h"
#include "nic/run/pass.h"
#include "shm/trace.h"

#include <sched.h>

_Static_assert(sizeof(struct p3_cmd) <= P3_MBX_CMD, "a command fits its slot");

static inline bool is_in_use(int rc)
{
	return rc == PTL_MD_IN_USE || rc == PTL_ME_IN_USE;
}

static inline int do_once(struct p3_nic *n, struct p3_cmd *c)
{
	int rc;
	P3_PROBE2(command, c->op, n->conf.nid);
	P3_TRACE(command, n, c);
	if (p3_likely(p3_lease_enter(n, P3_LEASE_HOST))) {
		FAULT_POINT("command.held");
		P3_TRACE(focus, n, (struct p3_topic){P3_TRACE_NOBODY, 0}, c->trace);
		rc = p3_likely(c->op == P3_OP_PUT) ? p3_tx_put(n, c)
						   : p3_command_execute(n, c);
		FAULT_POINT("command.executed");
		/* Run a pass for a program that only repeats its call: room in a lane, or
		 * the end of a transfer, which the program waits for, comes by passes. */
		if (p3_unlikely(!p3_list_empty(&n->blocked) || is_in_use(rc)))
			(void)p3_pass_run(n);
		p3_lease_leave(n);
	} else {
		rc = p3_post_command(n, c);
	}
	return rc;
}

/* ---- memory for tables ---- */

static void *new_chunk(struct p3_nic *n, enum p3_table_id id)
{
	uint64_t len = (uint64_t)n->table[id].elem * P3_TABLE_EACH;
	if (id != P3_T_PENDING)
		return p3_table_more(&n->table[id]);
	/* A race of two threads may go over the limit by a chunk each. */
	if ((p3_get(&n->table[id].nchunks) + 1) * len > n->conf.pending_limit)
		return NULL;
	return p3_host_alloc(n, len);
}

static P3_RARE int add_chunk(struct p3_nic *n, enum p3_table_id id)
{
	struct p3_cmd c = {.op = P3_OP_GROW, .flag = id};
	c.grow.life = p3_get(&n->life);
	c.grow.chunk = new_chunk(n, id);
	return c.grow.chunk ? do_once(n, &c) : PTL_NO_SPACE;
}

/* Provide the memory that the command needs, and execute it again. */
static P3_RARE int feed_and_do(struct p3_nic *n, struct p3_cmd *c, int rc)
{
	while (rc < 0 && rc >= -(int)P3_TABLES) {
		rc = add_chunk(n, (enum p3_table_id)(-rc - 1));
		if (rc == PTL_OK)
			rc = do_once(n, c);
		else if (rc == PTL_NI_INVALID)
			rc = p3_post_closed_code(c);
	}
	if (rc == PTL_NO_SPACE)
		/* Let targets on this CPU answer before the program repeats its call. */
		sched_yield();
	return rc;
}

static P3_HOT int do_inside(struct p3_nic *n, struct p3_cmd *c)
{
	int rc = do_once(n, c);
	return p3_likely(rc == PTL_OK) ? rc : feed_and_do(n, c, rc);
}

int p3_call_inside(struct p3_nic *n, struct p3_cmd *c)
{
	return do_inside(n, c);
}

/* ---- from a signal handler that interrupted a call ---- */

void p3_call_run_left(struct p3_nic *n)
{
	/* The thread that executes this command first executes all commands that were
	 * posted before it, those of the handler included. */
	struct p3_cmd none = {.op = P3_OP_NI_CHECK};
	p3_call_begin();
	p3_self.left_behind = false;
	(void)do_once(n, &none);
	if (p3_get(&n->hungry) != P3_MBX_NONE)
		(void)add_chunk(n, P3_T_PENDING);
	p3_call_end(n);
}

static int leave_behind(struct p3_nic *n, struct p3_cmd *c)
{
	return p3_md_named(n, c->handle) ? p3_post_detached(n, c) : PTL_MD_INVALID;
}

/* Return the interface of a handle without the lease. */
static int whose(struct p3_nic *n, struct p3_cmd *c)
{
	enum p3_kind kind = p3_handle_kind(c->handle);
	uint32_t ni = p3_handle_ni(c->handle);
	if (ni >= P3_JOB_NIS || kind < P3_KIND_NI || kind > P3_KIND_EQ)
		return PTL_HANDLE_INVALID;
	uint32_t gen = p3_acquire(&n->ni[ni].gen); /* TABLE.2 */
	c->handle_out = p3_handle(P3_KIND_NI, ni, 0, gen);
	bool lives = kind == P3_KIND_NI ? (gen & 1) && c->handle == c->handle_out
					: p3_obj_named(n, kind, c->handle) != NULL;
	return lives ? PTL_OK : PTL_HANDLE_INVALID;
}

bool p3_nic_interrupts(void)
{
	return p3_self.inside != 0;
}

static P3_RARE int do_interrupting(struct p3_nic *n, struct p3_cmd *c)
{
	switch (c->op) {
	case P3_OP_PUT:
	case P3_OP_GET:
	case P3_OP_GETPUT:
		return leave_behind(n, c);
	case P3_OP_WHOSE:
		return whose(n, c);
	default:
		return PTL_NO_SPACE;
	}
}

P3_PATH
int p3_nic_do(struct p3_nic *n, struct p3_cmd *c)
{
	if (p3_unlikely(p3_self.inside != 0))
		return do_interrupting(n, c);
	p3_call_begin();
	int rc = do_inside(n, c);
	p3_call_end(n);
	return rc;
}
