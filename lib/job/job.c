/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The job of a process: yod's, another launcher's, or a job of one.  The search for the
 * launcher; the start of the NIC with all facts about the job, and the NIC's calls back;
 * joining and leaving.
 */
#include "lib/job/job.h"
#include "lib/node/node.h"
#include "shm/fault.h"
#include "shm/footprint.h"
#include "shm/log.h"
#include "shm/seg.h"
#include "shm/cpuset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#if !defined(P3_VALGRIND) && __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#define UNDER_VALGRIND RUNNING_ON_VALGRIND
#else
#define UNDER_VALGRIND 0
#endif

/* Set the domain from the environment; the table of settings reports a wrong value. */
static void job_set_domain(struct p3_node *node, bool any)
{
	const char *name = p3_conf_text(P3_CONF_DOMAIN);
	if (!name)
		name = p3_conf_row(P3_CONF_DOMAIN)->usual;
	any = any && strcmp(name, P3_DOMAIN_NONE) != 0;
	snprintf(node->domain, sizeof node->domain, "%s", any ? name : "");
}

/* Take rank and job from another launcher that has started this process, except in a
 * forked child (welcomed) and in a node of a test process. */
static int job_take_launched_rank(struct p3_node *node)
{
	struct p3_launched by;
	int rc = node->harness || node->welcomed ? 0 : p3_launched_read(&by);
	node->launched = rc > 0;
	if (rc <= 0)
		return rc;
	node->rank = by.rank;
	node->size = by.size;
	node->jid = by.jid;
	node->job = by.job;
	if (by.job > 1 && by.job - 1 >= PTL_NID_ANY - node->nid) {
		p3_error("PTL3_NID is %u, which leaves no node id for job %u of this "
			 "family; set it to less",
			node->nid, by.job);
		return -EINVAL;
	}
	node->nid += by.job ? by.job - 1 : 0;
	node->modex_ops = by.spread ? p3_pmix : NULL;
	memcpy(node->domain, by.domain, sizeof by.domain);
	return 0;
}

/* Begin a job of one, or of another launcher. */
static int job_begin_without_yod(struct p3_node *node)
{
	node->rank = 0;
	node->size = 1;
	node->job = 0;
	if (!p3_conf_nid(p3_conf_text(P3_CONF_NID), &node->nid))
		node->nid = P3_DOMAIN_NID;
	job_set_domain(node, !node->harness);
	node->jid = (uint32_t)getpid();
	node->uid = (uint32_t)geteuid();
	node->cpus = p3_cpus_usable();
	return job_take_launched_rank(node);
}

/* Make the directory, with planned nids and default pids, before the ranks join. */
static int job_make_directory(struct p3_node *node)
{
	struct p3_directory *d = p3_directory_new(node->size);
	if (!d)
		return -ENOMEM;
	d->ranked = true;
	d->rank = node->rank;
	for (uint32_t i = 0; i < node->size; i++) {
		p3_set(&d->member[i].nid, !node->launched ? node->nid - node->rank + i
					  : node->modex   ? p3_modex_nid(node->modex, i)
							  : node->nid);
		for (uint32_t k = 0; k < P3_JOB_NIS; k++)
			p3_set(&d->member[i].pid[k],
				P3_JOB_PID_BASE + i + k * P3_JOB_PID_STEP);
	}
	p3_directory_replace(&node->directory, d);
	return 0;
}

int p3_job_begin(struct p3_node *node)
{
	bool in_domain;
	int rc = p3_job_find_yod(node);
	if (!rc && node->sock < 0)
		rc = job_begin_without_yod(node);
	if (!rc && node->sock >= 0 && !node->welcomed) {
		rc = p3_job_introduce(node, &in_domain);
		if (!rc)
			job_set_domain(node, in_domain);
	}
	if (!rc && node->modex_ops) /* the job has several hosts */
		rc = p3_modex_place(node);
	if (!rc && node->modex && node->launched)
		node->nid = p3_modex_nid(node->modex, node->rank);
	if (!rc)
		rc = job_make_directory(node);
	if (rc)
		return rc;
	p3_log_who(node->jid, node->nid);
	if (!node->rank && UNDER_VALGRIND)
		p3_warn("under valgrind with a libportals that does not talk to it: "
			"helgrind and drd take its atomics for races; link with the "
			"shared library, without an RPATH, and start it by yod (see "
			"docs/testing.md)");
	if (node->sock >= 0)
		rc = p3_job_start_life(node);
	if (rc)
		p3_directory_replace(&node->directory, NULL);
	return rc;
}

void p3_job_end(struct p3_node *node)
{
	if (node->sock >= 0)
		p3_job_stop_life(node);
	p3_modex_leave(node);
	p3_directory_replace(&node->directory, NULL);
}

/* ---- calls back ---- */

void p3_job_ask(void *arg, uint32_t question)
{
	struct p3_node *node = arg;
	p3_set(&node->question, question); /* ASK.1 */
	if (node->mesh)
		p3_mesh_wake(node->mesh);
	else
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
		p3_mesh_wake(node->mesh);
}

/* ---- starting ---- */

/*
 * Find the CPUs for the NIC thread: the user's setting, or yod's plan, which is passed in
 * the same way; else yod's CPUs, even if this thread is pinned to fewer.  Return false if
 * there are none of these.
 */
static bool job_nic_cpus(struct p3_node *node, struct p3_cpuset *set_out)
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

/* Choose the calls that the NIC makes when it needs the job's other nodes. */
static void job_set_calls(struct p3_node *node, uint32_t hold_s, struct p3_nic_conf *c)
{
	c->ask_arg = node;
	if (node->sock >= 0 && !node->mesh)
		c->meet = p3_job_meet;
	if (node->sock >= 0 || node->mesh) {
		c->ask = p3_job_ask;
		c->hold = p3_job_hold;
		c->hold_ns = hold_s * UINT64_C(1000000000);
	}
}

/* Tell the NIC about the domain that the node is in. */
static void job_tell_domain(const struct p3_node *node, struct p3_nic_conf *c)
{
	c->domain = true;
	c->job_nid = node->launched ? node->nid : node->nid - node->rank;
	c->job_nids = node->sock >= 0 ? node->size : node->launched;
	c->job_ranks = node->launched ? node->size : 0;
	if (node->modex && node->launched) {
		c->job_nid = p3_modex_nid(node->modex, 0);
		c->job_nids = p3_modex_hosts(node->modex);
	}
	c->crew = p3_mesh_crew(node);
}

/* Begin a life of the NIC in the job's state of the node. */
static void job_begin_life(struct p3_node *node, const struct p3_conf *conf)
{
	for (node->incarnation = 0; !node->incarnation;)
		if (getrandom(&node->incarnation, sizeof node->incarnation, 0) < 0)
			node->incarnation =
				(uint64_t)(uintptr_t)&conf ^ (uint64_t)clock();
	node->personality = conf->personality;
	node->asked = 0;
	p3_set(&node->question, 0);
	for (uint32_t i = 0; i < P3_MAX_NODES / 64; i++)
		p3_set(&node->wanted[i], 0);
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
	job_begin_life(node, &conf);
	struct p3_conf_match match = p3_conf_match_of(node->rank);
	struct p3_nic_conf c = {.node = node->index,
		.nnodes = node->capacity,
		.nid = node->nid,
		.uid = node->uid,
		.jid = node->jid,
		.cpus = node->cpus,
		.incarnation = node->incarnation,
		.mode = conf.mode,
		.huge = conf.huge,
		.match_on_host = match.on_host,
		.interrupt = (enum p3_interrupt)match.interrupt,
		.inlined = match.inlined,
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
	bool by_hand = node->mesh && node->sock < 0 && !node->launched;
	c.mute = node->rank != 0 || (by_hand && node->index);
	c.sleepers = node->mesh ? NULL : node->sleepers;
	job_set_calls(node, conf.hold_s, &c);
	if (node->mesh)
		job_tell_domain(node, &c);
	c.nic_cpus = job_nic_cpus(node, &node->nic_cpus) ? &node->nic_cpus : NULL;
	rc = p3_nic_start(&c, nic_out);
	if (rc && rc != -ENODEV && !p3_pages_say_limit(rc)) /* -ENODEV has its line */
		p3_error("the network interface cannot start: %s; check free memory, the "
			 "limits of open files, file size and address space (ulimit -n, "
			 "-f, -v) and, with PTL3_HUGEPAGES=on, free hugepages",
			strerror(-rc));
	return rc;
}

/* ---- PtlNIInit, PtlNIFini, and the process ids ---- */

#define FAMILY_ROOM 64 /* least capacity of the domain of a family of jobs */

/* Return the capacity of the domain that a launched job needs: room for itself, and if it
 * may spawn jobs, for these, too. */
static uint32_t job_wished_capacity(
	const struct p3_node *node, const struct p3_conf *conf)
{
	uint32_t most =
		3 * node->size / 2 > FAMILY_ROOM ? 3 * node->size / 2 : FAMILY_ROOM;
	if (p3_conf_text(P3_CONF_DOMAIN_NODES))
		most = conf->domain_nodes;
	if (most < node->size || !node->job)
		most = node->size;
	return most < P3_MAX_NODES ? most : P3_MAX_NODES;
}

int p3_job_enter(struct p3_node *node)
{
	node->index = node->rank;
	node->capacity = node->size;
	if (!node->domain[0])
		return p3_members_make(node);
	struct p3_conf conf;
	int rc = p3_conf_read(&conf);
	if (rc)
		return rc;
	node->capacity =
		node->launched ? job_wished_capacity(node, &conf) : conf.domain_nodes;
	if (node->modex && !node->launched)
		node->capacity = node->size; /* the domain is this job's alone */
	rc = p3_mesh_enter(node);
	rc = rc ? rc : p3_members_make(node);
	if (!rc && node->modex)
		rc = p3_modex_enter(node);
	if (rc)
		p3_job_exit(node);
	return rc;
}

void p3_job_exit(struct p3_node *node)
{
	p3_mesh_exit(node);
	p3_members_free(node);
}

int p3_job_join(struct p3_node *node, struct p3_nic *nic)
{
	int rc = node->mesh ? p3_mesh_join(node, nic) : 0;
	if (rc || (node->mesh && node->sock < 0))
		return rc;
	if (node->sock < 0) { /* a job of one: the node is its own only peer */
		rc = p3_member_attach_self(node, nic);
		if (rc)
			p3_error("the network interface cannot map its own memory: %s",
				strerror(-rc));
		return rc;
	}
	struct p3_job_msg m = p3_member_message(node, P3_JOB_JOIN);
	int fds[P3_JOB_FDS];
	unsigned nfds = p3_nic_fds(nic, fds);
	m.heap_len = p3_nic_heap_len(nic);
	node->joined = false;
	/* Before yod reports it, so that the entry is right when PtlNIInit returns. */
	p3_directory_set(&node->directory, node->rank, node->nid, m.pid);
	FAULT_POINT("init.unjoined");
	rc = p3_job_send_to_yod(node, &m, fds, nfds);
	FAULT_POINT("init.handed_over");
	if (rc)
		p3_error("the network interface cannot join the job: %s", strerror(-rc));
	while (!rc && !node->joined)
		pthread_cond_wait(&node->changed, &node->life);
	return rc;
}

static bool job_yod_has_told(const struct p3_node *node, const struct p3_job_msg *m)
{
	for (int i = 0; i < P3_JOB_NIS; i++)
		if (m->pid[i] != P3_JOB_NO_PID && m->pid[i] != node->told_pid[i])
			return false;
	return true;
}

void p3_job_pids(struct p3_node *node)
{
	struct p3_job_msg m = p3_member_message(node, P3_JOB_PIDS);
	p3_directory_set(&node->directory, node->rank, node->nid, m.pid);
	if (node->mesh)
		p3_mesh_pids(node);
	if (node->sock >= 0) {
		memset(node->told_pid, 0xff, sizeof node->told_pid);
		FAULT_POINT("pids.unsaid");
		int rc = p3_job_send_to_yod(node, &m, NULL, 0);
		FAULT_POINT("pids.said");
		/* Wait until a packet of yod to this node has them: packets to other
		 * nodes then have them, too.  In a domain members tell each other. */
		while (!rc && !node->domain[0] && !node->yod_gone &&
			!job_yod_has_told(node, &m))
			pthread_cond_wait(&node->changed, &node->life);
	}
	if (node->sock >= 0 || node->mesh)
		return;
	struct p3_peer_info info = p3_member_info(node, &m, NULL);
	p3_nic_peer_pids(p3_nic(node), &info);
}

void p3_job_leave(struct p3_node *node)
{
	struct p3_job_msg m = p3_member_message(node, P3_JOB_LEAVE);
	if (node->mesh)
		p3_mesh_part(node);
	if (node->sock >= 0 && node->joined && p3_job_send_to_yod(node, &m, NULL, 0) == 0)
		node->leaving = true;
	FAULT_POINT("fini.left");
	node->joined = false;
}
