/* SPDX-License-Identifier: BSD-3-Clause */
/* The job of a process: yod's, another launcher's, or a job of one. */
#include "lib/domain/wireup.h"
#include "lib/job/launched.h"
#include "lib/job/pmix.h"
#include "lib/job/yod.h"
#include "shm/log.h"
#include "shm/park.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if !defined(P3_VALGRIND) && __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#define UNDER_VALGRIND RUNNING_ON_VALGRIND
#else
#define UNDER_VALGRIND 0
#endif

static void warn_under_valgrind(const struct p3_node *node)
{
	if (node->rank || !UNDER_VALGRIND)
		return;
	p3_warn("under valgrind with a libportals that does not talk to it: helgrind and "
		"drd take its atomics for races; link with the shared library, without "
		"an RPATH, and start it by yod (see docs/testing.md)");
}

/* Set the domain from the environment; the table of settings reports a wrong value. */
static void set_domain(struct p3_node *node, bool any)
{
	const char *name = p3_conf_text(P3_CONF_DOMAIN);
	if (!name)
		name = p3_conf_row(P3_CONF_DOMAIN)->usual;
	any = any && strcmp(name, P3_DOMAIN_NONE) != 0;
	snprintf(node->domain, sizeof node->domain, "%s", any ? name : "");
}

/* Introduce this process to yod, which started it. */
static int introduce(struct p3_node *node)
{
	bool in_domain;
	int rc = p3_job_introduce(node, &in_domain);
	if (!rc)
		set_domain(node, in_domain);
	return rc;
}

/* Take rank and job from another launcher that has started this process, except in a
 * forked child (welcomed) and in a node of a test process. */
static int take_launched_rank(struct p3_node *node)
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
	node->exchange = by.spread ? p3_pmix : NULL;
	memcpy(node->domain, by.domain, sizeof by.domain);
	return 0;
}

static int begin_without_yod(struct p3_node *node)
{
	node->rank = 0;
	node->size = 1;
	node->job = 0;
	if (!p3_conf_nid(p3_conf_text(P3_CONF_NID), &node->nid))
		node->nid = P3_DOMAIN_NID;
	set_domain(node, !node->harness);
	node->jid = (uint32_t)getpid();
	node->uid = (uint32_t)geteuid();
	node->cpus = p3_usable_cpus();
	return take_launched_rank(node);
}

static uint32_t planned_nid(const struct p3_node *node, uint32_t rank)
{
	if (!node->launched)
		return node->nid - node->rank + rank;
	return node->wireup ? p3_wireup_nid(node->wireup, rank) : node->nid;
}

/* Find the hosts of the job, if it has several. */
static int find_hosts(struct p3_node *node)
{
	int rc = node->exchange ? p3_wireup_place(node) : 0;
	if (!rc && node->wireup && node->launched)
		node->nid = p3_wireup_nid(node->wireup, node->rank);
	return rc;
}

/* Make the directory, with planned nids and default pids, before the ranks join. */
static int make_directory(struct p3_node *node)
{
	struct p3_directory *d = p3_directory_new(node->size);
	node->missing = calloc(node->size, sizeof *node->missing);
	node->late = calloc(node->size, sizeof *node->late);
	node->apart = calloc(node->size, sizeof *node->apart);
	node->nmissing = node->nlate = 0;
	if (!d || !node->missing || !node->late || !node->apart) {
		free(node->missing);
		free(node->late);
		free(node->apart);
		free(d);
		return -ENOMEM;
	}
	d->ranked = true;
	d->rank = node->rank;
	for (uint32_t i = 0; i < node->size; i++) {
		p3_set(&d->member[i].nid, planned_nid(node, i));
		for (uint32_t k = 0; k < P3_JOB_NIS; k++)
			p3_set(&d->member[i].pid[k],
				P3_JOB_PID_BASE + i + k * P3_JOB_PID_STEP);
	}
	p3_directory_replace(&node->directory, d);
	return 0;
}

static void drop_directory(struct p3_node *node)
{
	p3_directory_replace(&node->directory, NULL);
	free(node->missing);
	free(node->late);
	free(node->apart);
	node->missing = NULL;
	node->late = NULL;
	node->apart = NULL;
}

int p3_job_begin(struct p3_node *node)
{
	int rc = p3_job_find_yod(node);
	if (!rc && node->sock < 0)
		rc = begin_without_yod(node);
	if (!rc && node->sock >= 0 && !node->welcomed)
		rc = introduce(node);
	if (!rc)
		rc = find_hosts(node);
	if (!rc)
		rc = make_directory(node);
	if (rc)
		return rc;
	p3_log_who(node->jid, node->nid);
	warn_under_valgrind(node);
	if (node->sock >= 0)
		rc = p3_job_start_life(node);
	if (rc)
		drop_directory(node);
	return rc;
}

void p3_job_end(struct p3_node *node)
{
	if (node->sock >= 0)
		p3_job_stop_life(node);
	p3_wireup_leave(node);
	drop_directory(node);
}
