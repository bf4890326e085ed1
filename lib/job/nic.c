/* SPDX-License-Identifier: BSD-3-Clause */
/* The start of the node's NIC with all facts about the job, and the NIC's calls back. */
#include "lib/domain/meet.h"
#include "lib/domain/wireup.h"
#include "lib/job/yod.h"
#include "lib/node/conf.h"
#include "lib/node/heap.h"
#include "shm/footprint.h"
#include "shm/log.h"
#include "shm/seg.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>

/* ---- calls back ---- */

void p3_job_ask(void *arg, uint32_t question)
{
	struct p3_node *node = arg;
	p3_set(&node->question, question); /* ASK.1 */
	p3_job_wake(node);
}

void p3_job_meet(void *arg, uint32_t who)
{
	struct p3_node *node = arg;
	p3_or64(&node->wanted[who / 64], UINT64_C(1) << who % 64); /* ASK.1 */
	p3_job_wake(node);
}

void p3_job_hold(void *arg)
{
	struct p3_node *node = arg;
	if (node->sock >= 0)
		p3_job_wake(node);
	else
		p3_meet_wake(node->meeting);
}

/* ---- starting ---- */

/*
 * Find the CPUs for the NIC thread: the user's setting, or yod's plan, which is passed in
 * the same way; else yod's CPUs, even if this thread is pinned to fewer.  Return false if
 * there are none of these.
 */
static bool cpus(struct p3_node *node, struct p3_cpuset *set_out)
{
	struct ucred yod;
	socklen_t len = sizeof yod;
	if (p3_conf_nic_cpus(p3_conf_text(P3_CONF_NIC_CPUS), set_out))
		return true;
	if (node->sock < 0 || node->harness ||
		getsockopt(node->sock, SOL_SOCKET, SO_PEERCRED, &yod, &len) != 0)
		return false;
	return p3_cpuset_read(yod.pid, set_out) == 0;
}

static uint64_t new_incarnation(void)
{
	uint64_t word = 0;
	while (!word)
		if (getrandom(&word, sizeof word, 0) < 0)
			word = (uint64_t)(uintptr_t)&word ^ (uint64_t)clock();
	return word;
}

/* Choose the calls that the NIC makes when it needs the job's other nodes. */
static void set_calls(struct p3_node *node, uint32_t hold_s, struct p3_nic_conf *c)
{
	c->ask_arg = node;
	if (node->sock >= 0 && !node->meeting) {
		c->ask = p3_job_ask;
		c->meet = p3_job_meet;
	}
	if (node->meeting)
		c->ask = p3_meet_ask;
	if (node->sock >= 0 || node->meeting) {
		c->hold = p3_job_hold;
		c->hold_ns = hold_s * UINT64_C(1000000000);
	}
}

/* Tell the NIC about the domain that the node is in. */
static void set_domain(const struct p3_node *node, struct p3_nic_conf *c)
{
	c->domain = true;
	c->job_nid = node->launched ? node->nid : node->nid - node->rank;
	c->job_nids = node->sock >= 0 ? node->size : node->launched;
	c->job_ranks = node->launched ? node->size : 0;
	if (node->wireup && node->launched) {
		c->job_nid = p3_wireup_nid(node->wireup, 0);
		c->job_nids = node->wireup->hosts;
	}
	c->crew = p3_meet_crew(node);
}

/* Begin a life of the NIC in the job's state of the node. */
static void begin_life(struct p3_node *node, const struct p3_conf *conf)
{
	node->incarnation = new_incarnation();
	node->personality = conf->personality;
	node->asked = 0;
	p3_set(&node->question, 0);
	node->held = (struct p3_holding){.limit_s = conf->hold_s};
	for (int i = 0; i < P3_JOB_NIS; i++)
		p3_set(&node->ni[i].pid, P3_JOB_NO_PID);
}

int p3_job_start_nic(struct p3_node *node, struct p3_nic **nic_out)
{
	struct p3_conf conf;
	int rc = p3_conf_read(&conf);
	if (rc)
		return rc;
	begin_life(node, &conf);
	struct p3_nic_conf c = {.node = node->index,
		.nnodes = node->capacity,
		.nid = node->nid,
		.uid = node->uid,
		.jid = node->jid,
		.cpus = node->cpus,
		.incarnation = node->incarnation,
		.mode = conf.mode,
		.huge = conf.huge,
		.match_on_host = p3_conf_matches_on_host(node->rank),
		.interrupt = conf.interrupt,
		.inlined = conf.inlined,
		.cma = conf.cma,
		.bulk = conf.bulk,
		.membarrier = conf.membarrier,
		.trace = conf.trace,
		.base_lanes_only = conf.base_lanes_only,
		.unswept = conf.unswept,
		.far = node->far,
		.heap = p3_node_heap(node),
		.pending_limit = P3_PENDING_LIMIT};
	/* Print each warning once a job, or once a domain. */
	bool by_hand = node->meeting && node->sock < 0 && !node->launched;
	c.mute = node->rank != 0 || (by_hand && node->index);
	c.sleepers = node->meeting ? NULL : node->sleepers;
	set_calls(node, conf.hold_s, &c);
	if (node->meeting)
		set_domain(node, &c);
	c.nic_cpus = cpus(node, &node->nic_cpus) ? &node->nic_cpus : NULL;
	rc = p3_nic_start(&c, nic_out);
	if (rc && rc != -ENODEV && !p3_pages_say_limit(rc)) /* -ENODEV has its line */
		p3_error("the network interface cannot start: %s; check free memory, the "
			 "limits of open files, file size and address space (ulimit -n, "
			 "-f, -v) and, with PTL3_HUGEPAGES=on, free hugepages",
			strerror(-rc));
	return rc;
}
