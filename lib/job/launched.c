/* SPDX-License-Identifier: BSD-3-Clause */
/* The rank that another launcher gave, from its variables. */
#include "lib/job/job.h"
#include "shm/conf.h"
#include "shm/job.h"
#include "shm/log.h"
#include "shm/process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WORDS           4
#define LAUNCHED_REMEDY "or set PTL3_LAUNCHED=off to start each process by hand"
#define MOST_JOBS       0xffffu     /* most jobs of a family */
#define STEPS           0xfffffff0u /* steps of Slurm from here on are not srun's */

/* Names of variables; the first one that is set counts. */
struct launcher {
	const char *name;
	const char *rank;
	const char *needed; /* variable without which rank does not count */
	const char *size[WORDS];
	const char *here;         /* number of ranks on this host */
	const char *hosts[WORDS]; /* number of hosts, read if here is unset */
	const char *job[WORDS];
	const char *part; /* second part of the job's name */
	bool has_family;  /* the job's name tells its family */
};

static const struct launcher launchers[] = {
	{.name = "ompi",
		.rank = "OMPI_COMM_WORLD_RANK",
		.size = {"OMPI_COMM_WORLD_SIZE"},
		.here = "OMPI_COMM_WORLD_LOCAL_SIZE",
		.job = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid",
			"OMPI_MCA_orte_ess_jobid", "OMPI_MCA_orte_hnp_uri"},
		.has_family = true},
	{.name = "pmi",
		.rank = "PMI_RANK",
		.size = {"PMI_SIZE"},
		.here = "MPI_LOCALNRANKS",
		.hosts = {"SLURM_STEP_NUM_NODES", "SLURM_NNODES"},
		.job = {"PMI_JOBID"}},
	{.name = "pmix",
		.rank = "PMIX_RANK",
		.size = {"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
		.here = "OMPI_COMM_WORLD_LOCAL_SIZE",
		.hosts = {"SLURM_STEP_NUM_NODES", "SLURM_NNODES"},
		.job = {"PMIX_NAMESPACE"}},
	{.name = "slurm",
		.rank = "SLURM_PROCID",
		.needed = "SLURM_STEP_ID",
		.size = {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
		.hosts = {"SLURM_STEP_NUM_NODES", "SLURM_NNODES"},
		.job = {"SLURM_JOB_ID"},
		.part = "SLURM_STEP_ID"},
};

static const char *launched_text(const char *name)
{
	const char *text = name ? getenv(name) : NULL;
	return text && *text ? text : NULL;
}

/* Return the name of the first variable that is set, else the first name. */
static const char *launched_first_set(const char *const names[WORDS])
{
	for (int i = 0; i < WORDS && names[i]; i++)
		if (launched_text(names[i]))
			return names[i];
	return names[0];
}

static bool launched_number(const char *text, uint32_t *out)
{
	char *end;
	int saved = errno;
	errno = 0;
	unsigned long v = strtoul(text, &end, 10);
	bool ok = *text >= '0' && *text <= '9' && !*end && !errno && v <= UINT32_MAX;
	errno = saved;
	*out = (uint32_t)v;
	return ok;
}

/* Read a variable as a number between these two, or print a line. */
static int launched_read_number(
	const char *name, uint32_t least, uint32_t most, uint32_t *out)
{
	const char *text = launched_text(name);
	if (text && launched_number(text, out) && *out >= least && *out <= most)
		return 0;
	p3_error("%s is %s%.60s%s; expected a number from %u to %u: start all ranks by "
		 "the launcher that sets it, " LAUNCHED_REMEDY,
		name, text ? "'" : "not set", text ? text : "", text ? "'" : "", least,
		most);
	return -EINVAL;
}

static const struct launcher *launched_find(void)
{
	for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
		const struct launcher *l = &launchers[i];
		uint32_t step;
		const char *needed = launched_text(l->needed);
		if (launched_text(l->rank) &&
			(!l->needed || (needed && (!launched_number(needed, &step) ||
							  step < STEPS))))
			return l;
	}
	return NULL;
}

/* ---- the names of the job and its family ---- */

/* Return the process that made PMI's pair of sockets, else the parent process. */
static uint32_t launched_starter(const struct launcher *l)
{
	uint32_t fd;
	struct ucred who = {.pid = 0};
	socklen_t len = sizeof who;
	const char *text = strcmp(l->name, "pmi") == 0 ? launched_text("PMI_FD") : NULL;
	if (text && launched_number(text, &fd) && fd <= INT32_MAX &&
		getsockopt((int)fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 &&
		who.pid > 0)
		return (uint32_t)who.pid;
	return (uint32_t)getppid();
}

/* Split the name of a job of Open MPI: ORTE's names are numbers with the job in the lower
 * 16 bits, PRRTE's end in @job.  Replace the name by the family's.  Return the job's
 * number, or 0 for another name. */
static uint32_t launched_split_name(char *name)
{
	uint32_t all, job = 0;
	char *at = strrchr(name, '@');
	if (at && at > name && launched_number(at + 1, &job) && job && job <= MOST_JOBS)
		*at = '\0';
	else if (launched_number(name, &all) && (job = all & MOST_JOBS))
		sprintf(name, "%u", all - job); /* not longer than it was */
	else
		job = 0;
	return job;
}

/* Return the number behind --pgid in the command line of a hydra_pmi_proxy, plus 1, or 0
 * if the process is another program. */
static uint32_t launched_hydra_job(uint32_t pid)
{
	char path[40], text[2000];
	uint32_t group = MOST_JOBS;
	snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
	FILE *f = fopen(path, "re");
	size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
	if (f)
		fclose(f);
	text[n] = '\0';
	if (!strstr(text, "hydra_pmi_proxy"))
		return 0;
	for (size_t i = 0; i < n; i += strlen(text + i) + 1) {
		const char *value = text + i + sizeof "--pgid";
		if (strcmp(text + i, "--pgid") == 0 && value < text + n)
			(void)launched_number(value, &group);
	}
	return group < MOST_JOBS ? group + 1 : 0;
}

/* Write the family's name, and return the number of the job in it; or write the job's
 * name, and return 0.  A job on several hosts is a family of its own: its ranks have
 * the same indexes on all hosts. */
static uint32_t launched_read_family(
	const struct launcher *l, bool is_spread, char *name, size_t len)
{
	const char *job = launched_text(launched_first_set(l->job)),
		   *part = launched_text(l->part);
	uint32_t by = job ? 0 : launched_starter(l),
		 group = job ? 0 : launched_hydra_job(by);
	struct p3_stat stat;
	uint32_t mpiexec = group && p3_stat_read(by, 0, &stat) ? stat.parent : 0;
	if (job)
		snprintf(name, len, "%s%s%s", job, part ? "." : "", part ? part : "");
	else
		snprintf(name, len, "by-%u", mpiexec ? mpiexec : by);
	if (!job)
		return mpiexec ? group : 0;
	return l->has_family && !is_spread ? launched_split_name(name) : 0;
}

/* Name the domain as the launcher names the family if that is a valid name, else by a
 * hash of it; the hash also gives the jid. */
static void launched_name_job(const struct launcher *l, struct p3_launched *out)
{
	char family[600], whole[640];
	out->job = launched_read_family(l, out->spread, family, sizeof family);
	snprintf(whole, sizeof whole, "%s-%s", l->name, family);
	uint64_t h = 0xcbf29ce484222325u; /* FNV-1a, then mixed */
	for (const char *c = whole; *c; c++)
		h = (h ^ (unsigned char)*c) * 0x100000001b3u;
	h = (h ^ h >> 32) * 0x9e3779b97f4a7c15u;
	h ^= h >> 29;
	if (p3_domain_is_name(whole))
		snprintf(out->domain, sizeof out->domain, "%.*s", P3_DOMAIN_NAMES, whole);
	else
		snprintf(out->domain, sizeof out->domain, "%s-%016llx", l->name,
			(unsigned long long)h);
	out->jid =
		out->job ? (uint32_t)(h >> 49) << 16 | out->job : (uint32_t)(h >> 33) | 1;
}

/* ---- the hosts ---- */

/* The ranks are on several hosts, as this variable tells: see if PMIx can carry their
 * cards. */
static int launched_take_spread(const char *name, uint32_t value, struct p3_launched *out)
{
	const char *fabric = p3_conf_text(P3_CONF_FABRIC), *remedy = NULL;
	if (fabric && strcmp(fabric, "off") == 0)
		remedy = "unset PTL3_FABRIC, which is 'off'";
	else if (!launched_text("PMIX_NAMESPACE") || !launched_text("PMIX_RANK"))
		remedy = launched_text("SLURM_PROCID")
				 ? "start them by srun --mpi=pmix"
				 : "start them by mpirun of Open MPI, or by yod --hosts";
	else if (!p3_pmix)
		remedy = "build libportals with PMIx (Debian: libpmix-dev)";
	out->spread = !remedy;
	if (remedy)
		p3_error("%s is %u, so the ranks are on several hosts; %s, start all "
			 "ranks on one host, " LAUNCHED_REMEDY,
			name, value, remedy);
	return remedy ? -EINVAL : 0;
}

static int launched_check_hosts(const struct launcher *l, struct p3_launched *out)
{
	uint32_t n;
	const char *hosts = l->hosts[0] ? launched_first_set(l->hosts) : NULL;
	int rc = 0;
	out->spread = false;
	if (launched_text(l->here)) {
		rc = launched_read_number(l->here, 1, UINT32_MAX, &n);
		return rc || n == out->size ? rc : launched_take_spread(l->here, n, out);
	}
	if (launched_text(hosts))
		rc = launched_read_number(hosts, 1, UINT32_MAX, &n);
	return rc || !launched_text(hosts) || n == 1
		       ? rc
		       : launched_take_spread(hosts, n, out);
}

int p3_launched_is_asked(void)
{
	char line[400];
	uint64_t off;
	const struct p3_conf_row *row = p3_conf_row(P3_CONF_LAUNCHED);
	const char *text = p3_conf_text(P3_CONF_LAUNCHED);
	if (p3_conf_value(row, text, &off))
		return !off;
	p3_conf_complain(row, text, line, sizeof line);
	p3_error("%s", line);
	return -EINVAL;
}

int p3_launched_read(struct p3_launched *out)
{
	if (getenv(P3_JOB_ENV) || p3_conf_text(P3_CONF_DOMAIN))
		return 0;
	int rc = p3_launched_is_asked();
	const struct launcher *l = rc > 0 ? launched_find() : NULL;
	if (!l)
		return rc < 0 ? rc : 0;
	rc = launched_read_number(
		launched_first_set(l->size), 1, P3_MAX_NODES, &out->size);
	rc = rc ? rc : launched_read_number(l->rank, 0, out->size - 1, &out->rank);
	rc = rc ? rc : launched_check_hosts(l, out);
	if (rc)
		return rc;
	launched_name_job(l, out);
	return 1;
}
