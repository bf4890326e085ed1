/* SPDX-License-Identifier: BSD-3-Clause */
/* The modex by PMIx. */
#include "lib/job/job.h"
#include "lib/node/call.h"
#include "lib/node/node.h"
#include "shm/atomics.h"
#include "shm/process.h"
#include "shm/log.h"

#ifdef P3_PMIX
#include <errno.h>
#include <pmix.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PMIX_FILE_NAME "libpmix.so.2"
#define KEY            "ptl3.card"
/* Up to this number of ranks the fence brings the cards; in larger jobs each rank asks
 * for those of the others. */
#define COLLECTED 256u
/* Time between two questions of a rank that waits in the fence, in seconds; more after
 * the line about a long wait.  That line comes at a multiple of it. */
#define ASK_S      2
#define FENCE_GOOD 1u

static struct {
	void *lib; /* NULL: not loaded */
	pmix_status_t (*init)(pmix_proc_t *proc, pmix_info_t info[], size_t ninfo);
	pmix_status_t (*finalize)(const pmix_info_t info[], size_t ninfo);
	pmix_status_t (*put)(pmix_scope_t scope, const char key[], pmix_value_t *value);
	pmix_status_t (*commit)(void);
	pmix_status_t (*fence)(const pmix_proc_t procs[], size_t nprocs,
		const pmix_info_t info[], size_t ninfo, pmix_op_cbfunc_t done, void *arg);
	pmix_status_t (*get)(const pmix_proc_t *proc, const char key[],
		const pmix_info_t info[], size_t ninfo, pmix_value_t **value);
	const char *(*error)(pmix_status_t status);
	pmix_status_t (*on_event)(pmix_status_t codes[], size_t ncodes,
		pmix_info_t info[], size_t ninfo, pmix_notification_fn_t handler,
		pmix_hdlr_reg_cbfunc_t registered, void *arg); /* or NULL */
	pmix_status_t (*query)(pmix_query_t queries[], size_t nqueries,
		pmix_info_cbfunc_t answer, void *arg); /* or NULL */
	_Atomic pid_t process;                         /* that has called init, or 0 */
	pmix_proc_t self;
	char *host; /* the last answer of pmix_host_name() */
} pmix;

static int pmix_load(void)
{
	if (pmix.lib)
		return 0;
	pmix.lib = dlopen(PMIX_FILE_NAME, RTLD_NOW | RTLD_LOCAL);
	if (pmix.lib && p3_dl_find(pmix.lib, "PMIx_Init", &pmix.init) &&
		p3_dl_find(pmix.lib, "PMIx_Finalize", &pmix.finalize) &&
		p3_dl_find(pmix.lib, "PMIx_Put", &pmix.put) &&
		p3_dl_find(pmix.lib, "PMIx_Commit", &pmix.commit) &&
		p3_dl_find(pmix.lib, "PMIx_Fence_nb", &pmix.fence) &&
		p3_dl_find(pmix.lib, "PMIx_Get", &pmix.get) &&
		p3_dl_find(pmix.lib, "PMIx_Error_string", &pmix.error))
		return 0;
	const char *why = dlerror();
	p3_error("a job on several hosts needs PMIx, which cannot be loaded: %s; install "
		 "it (Debian: libpmix2), or start all ranks on one host",
		why ? why : PMIX_FILE_NAME);
	pmix.lib = NULL;
	return -EINVAL;
}

static int pmix_say(const char *what, pmix_status_t status)
{
	p3_error("PMIx: %s: %s (%d); start the job by mpirun of Open MPI, or by "
		 "srun --mpi=pmix",
		what, pmix.error(status), (int)status);
	return -EINVAL;
}

/* PMIx calls this function in its own thread. */
static void pmix_on_lost(size_t id, pmix_status_t status, const pmix_proc_t *source,
	pmix_info_t info[], size_t ninfo, pmix_info_t *results, size_t nresults,
	pmix_event_notification_cbfunc_fn_t done, void *arg)
{
	(void)id, (void)source, (void)info, (void)ninfo, (void)results, (void)nresults;
	if (status == PMIX_ERR_LOST_CONNECTION && p3_get(&pmix.process) == getpid()) {
		p3_error("the launcher's process on this host (mpirun, or its daemon) "
			 "has ended, so this rank ends, too");
		(void)kill(getpid(), SIGKILL);
	}
	if (done)
		done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, arg);
}

static int pmix_begin(void)
{
	static pmix_status_t lost = PMIX_ERR_LOST_CONNECTION;
	int rc = pmix_load();
	if (rc || p3_get(&pmix.process) == getpid())
		return rc;
	pmix_status_t status = pmix.init(&pmix.self, NULL, 0);
	if (status != PMIX_SUCCESS)
		return pmix_say("PMIx_Init", status);
	p3_set(&pmix.process, getpid());
	/* Let the end of the launcher end this process; older PMIx does not tell it. */
	if (p3_dl_find(pmix.lib, "PMIx_Register_event_handler", &pmix.on_event))
		(void)pmix.on_event(&lost, 1, NULL, 0, pmix_on_lost, NULL, NULL);
	(void)p3_dl_find(pmix.lib, "PMIx_Query_info_nb", &pmix.query);
	return 0;
}

/* ---- values ---- */

static void pmix_free_value(pmix_value_t *v)
{
	if (v->type == PMIX_STRING)
		free(v->data.string);
	if (v->type == PMIX_BYTE_OBJECT)
		free(v->data.bo.bytes);
	free(v);
}

/* Get the value of a rank, if it has this type.  known: it is one of the launcher's
 * tables, and is not waited for. */
static pmix_status_t pmix_get_value(uint32_t rank, const char *key, bool known,
	pmix_data_type_t type, pmix_value_t **out)
{
	pmix_info_t optional = {.value = {.type = PMIX_BOOL, .data = {.flag = true}}};
	pmix_proc_t who = pmix.self;
	who.rank = rank;
	strncpy(optional.key, PMIX_OPTIONAL, sizeof optional.key - 1);
	pmix_status_t status = pmix.get(&who, key, &optional, known, out);
	if (status != PMIX_SUCCESS || (*out)->type == type)
		return status;
	pmix_free_value(*out);
	return PMIX_ERR_TYPE_MISMATCH;
}

/* ---- the launcher's tables ---- */

/* Give all ranks of this process's host their leader; a text such as "0,1" lists them. */
static void pmix_lead_peers(char *list, uint32_t size, uint32_t *leader)
{
	uint32_t least = size;
	for (int again = 0; again < 2; again++)
		for (char *at = list, *end; *at; at = end + (*end == ',')) {
			unsigned long rank = strtoul(at, &end, 10);
			if (end == at)
				return;
			if (rank < least)
				least = (uint32_t)rank;
			if (again && rank < size)
				leader[rank] = least;
		}
}

/* Return the name of a rank's host, which the caller frees, or NULL. */
static char *pmix_name_of(uint32_t rank)
{
	pmix_value_t *v;
	if (pmix_get_value(rank, PMIX_HOSTNAME, true, PMIX_STRING, &v) != PMIX_SUCCESS)
		return NULL;
	char *name = v->data.string;
	v->data.string = NULL;
	pmix_free_value(v);
	return name;
}

/* Find the leader of a rank on another host; by the name of that host, if the launcher
 * does not tell it. */
static uint32_t pmix_leader_of(uint32_t rank, const uint32_t *leader)
{
	pmix_value_t *v;
	uint32_t found = rank;
	if (pmix_get_value(rank, PMIX_LOCALLDR, true, PMIX_PROC_RANK, &v) ==
		PMIX_SUCCESS) {
		found = v->data.rank;
		pmix_free_value(v);
		return found <= rank ? found : rank;
	}
	char *name = pmix_name_of(rank);
	for (uint32_t i = 0; name && i < rank && found == rank; i++) {
		char *other = leader[i] == i ? pmix_name_of(i) : NULL;
		if (other && strcmp(other, name) == 0)
			found = i;
		free(other);
	}
	free(name);
	return found;
}

static int pmix_hosts(struct p3_node *node, uint32_t *leader_out)
{
	const uint32_t unknown = node->size;
	pmix_value_t *v;
	int rc = pmix_begin();
	if (rc)
		return rc;
	for (uint32_t i = 0; i < node->size; i++)
		leader_out[i] = unknown;
	pmix_status_t status = pmix_get_value(
		PMIX_RANK_WILDCARD, PMIX_LOCAL_PEERS, true, PMIX_STRING, &v);
	if (status != PMIX_SUCCESS)
		return pmix_say(PMIX_LOCAL_PEERS, status);
	pmix_lead_peers(v->data.string, node->size, leader_out);
	pmix_free_value(v);
	for (uint32_t i = 0; i < node->size; i++)
		if (leader_out[i] == unknown)
			leader_out[i] = pmix_leader_of(i, leader_out);
	return 0;
}

static const char *pmix_host_name(struct p3_node *node, uint32_t rank)
{
	(void)node;
	free(pmix.host);
	pmix.host = pmix_name_of(rank);
	return pmix.host;
}

/* ---- cards ---- */

/* A fence, which PMIx's thread may end after this process has given it up. */
static struct {
	sem_t news;   /* posted after each change of the others */
	p3_a32 over;  /* 0: it is under way; FENCE_GOOD; or an error of PMIx */
	p3_a32 ended; /* 1 + a rank that has ended and will not come; 0: none is known */
	const struct p3_modex *modex; /* stays until the process ends */
	uint32_t size;
} waits;

static void pmix_on_fence(pmix_status_t status, void *arg)
{
	(void)arg;
	p3_set(&waits.over, status == PMIX_SUCCESS ? FENCE_GOOD : (uint32_t)status);
	(void)sem_post(&waits.news);
}

/* ---- ranks that end before they come to the fence ---- */

/*
 * mpirun ends the job if such a rank has a status other than 0, or if another rank of its
 * host has called PMIx_Init before.  Else no event tells of its end, but a rank may ask
 * for a table of processes.  The daemon of a host knows its own processes, and mpirun
 * those of a host on which all have ended.  Slurm answers no such question.
 */

/* Keep the first rank that has ended: others may have ended because of it.  The state of
 * a process is UNDEF when it has ended, but also for others whose state PMIx has no word
 * for. */
static void pmix_look_at(const pmix_proc_info_t *p)
{
	if (!p || p->proc.rank >= waits.size || p3_get(&waits.ended) || p->pid <= 0 ||
		strcmp(p->proc.nspace, pmix.self.nspace) != 0 ||
		(p->state != PMIX_PROC_STATE_UNDEF &&
			p->state < PMIX_PROC_STATE_TERMINATED))
		return;
	if (p3_modex_is_far(waits.modex, p->proc.rank) ||
		(kill(p->pid, 0) != 0 && errno == ESRCH))
		p3_set(&waits.ended, 1 + p->proc.rank);
}

/* Return an entry of the table.  PMIx defines an array of processes; Open MPI 4 makes an
 * array of values of which each is a process. */
static const pmix_proc_info_t *pmix_entry(const pmix_data_array_t *table, size_t i)
{
	const pmix_info_t *values = table->array;
	if (table->type == PMIX_PROC_INFO)
		return (const pmix_proc_info_t *)table->array + i;
	return table->type == PMIX_INFO && values[i].value.type == PMIX_PROC_INFO
		       ? values[i].value.data.pinfo
		       : NULL;
}

/* PMIx calls this function in its own thread. */
static void pmix_on_table(pmix_status_t status, pmix_info_t *info, size_t ninfo,
	void *arg, pmix_release_cbfunc_t release, void *release_arg)
{
	(void)arg;
	const pmix_data_array_t *table =
		status == PMIX_SUCCESS && ninfo && info->value.type == PMIX_DATA_ARRAY
			? info->value.data.darray
			: NULL;
	for (size_t i = 0; table && i < table->size; i++)
		pmix_look_at(pmix_entry(table, i));
	if (release)
		release(release_arg);
	(void)sem_post(&waits.news);
}

static void pmix_ask_for_table(void)
{
	static char table[] = PMIX_QUERY_PROC_TABLE, *keys[] = {table, NULL};
	static pmix_info_t how[] = {{.key = PMIX_NSPACE, .value = {.type = PMIX_STRING}},
		{.key = PMIX_QUERY_REFRESH_CACHE,
			.value = {.type = PMIX_BOOL, .data = {.flag = true}}}};
	static pmix_query_t query = {.keys = keys, .qualifiers = how, .nqual = 2};
	how[0].value.data.string = pmix.self.nspace;
	if (pmix.query)
		(void)pmix.query(&query, 1, pmix_on_table, NULL);
}

/* ---- the fence ---- */

/* Wait for the end of the fence, or until a rank is known to have ended.  Print a line
 * when that takes long: a rank that never calls PtlNIInit holds up all others. */
static void pmix_await_fence(const struct p3_node *node)
{
	uint32_t waited = 0, pause = ASK_S;
	while (!p3_get(&waits.over) && !p3_get(&waits.ended)) {
		struct timespec end;
		int rc;
		(void)clock_gettime(CLOCK_REALTIME, &end);
		end.tv_sec += pause;
		do
			rc = sem_timedwait(&waits.news, &end);
		while (rc != 0 && errno != ETIMEDOUT);
		if (rc == 0)
			continue;
		waited += pause;
		if (waited == P3_MODEX_LATE_S)
			p3_warn(P3_MODEX_LATE, node->rank, P3_MODEX_LATE_S, node->size);
		if (waited >= P3_MODEX_LATE_S)
			pause = P3_MODEX_LATE_S;
		pmix_ask_for_table();
	}
}

static int pmix_say_gone(uint32_t rank)
{
	p3_error("rank %u has ended before all ranks had called PtlNIInit; this rank "
		 "gives up with it: start Portals in each rank of a job on several hosts",
		rank);
	return -EPIPE;
}

static int pmix_fence(struct p3_node *node)
{
	pmix_info_t collect = {.value = {.type = PMIX_BOOL, .data = {.flag = true}}};
	strncpy(collect.key, PMIX_COLLECT_DATA, sizeof collect.key - 1);
	if (sem_init(&waits.news, 0, 0) != 0)
		return -errno;
	struct p3_caller caller =
		p3_caller_save(); /* the waits are no cancellation points */
	p3_set(&waits.over, 0);
	p3_set(&waits.ended, 0);
	waits.modex = node->modex;
	waits.size = node->size;
	pmix_status_t status = pmix.fence(
		NULL, 0, &collect, node->size <= COLLECTED, pmix_on_fence, NULL);
	if (status == PMIX_SUCCESS)
		pmix_await_fence(node);
	else
		p3_set(&waits.over, status == PMIX_OPERATION_SUCCEEDED
					    ? FENCE_GOOD
					    : (uint32_t)status);
	p3_caller_restore(caller);
	uint32_t over = p3_get(&waits.over);
	if (over == FENCE_GOOD)
		return 0;
	if (over)
		return pmix_say("PMIx_Fence", (pmix_status_t)over);
	return pmix_say_gone(p3_get(&waits.ended) - 1);
}

/* After a failure come to the fence all the same, which the launcher counts: the others
 * find no card of this rank behind it, and take it for one that has ended. */
static int pmix_put(struct p3_node *node, const struct p3_card *card)
{
	char bytes[sizeof *card];
	pmix_value_t v = {.type = PMIX_BYTE_OBJECT};
	memcpy(bytes, card, sizeof bytes);
	v.data.bo.bytes = bytes;
	v.data.bo.size = sizeof bytes;
	pmix_status_t status = pmix.put(PMIX_GLOBAL, KEY, &v);
	if (status == PMIX_SUCCESS)
		status = pmix.commit();
	explicit_bzero(bytes, sizeof bytes);
	if (status == PMIX_SUCCESS)
		return 0;
	int rc = pmix_say("PMIx_Put", status);
	(void)pmix_fence(node);
	return rc;
}

static int pmix_get(struct p3_node *node, uint32_t rank, struct p3_card *card_out)
{
	pmix_value_t *v;
	(void)node;
	pmix_status_t status = pmix_get_value(rank, KEY, false, PMIX_BYTE_OBJECT, &v);
	if (status == PMIX_ERR_TIMEOUT || status == PMIX_ERR_NOT_FOUND)
		return pmix_say_gone(rank);
	if (status != PMIX_SUCCESS)
		return pmix_say("PMIx_Get", status);
	memset(card_out, 0, sizeof *card_out);
	size_t len = v->data.bo.size;
	memcpy(card_out, v->data.bo.bytes,
		len < sizeof *card_out ? len : sizeof *card_out);
	pmix_free_value(v);
	return 0;
}

/* A rank that ends without this makes mpirun end the job.  PMIx 4.2 cannot begin again in
 * a process after its end. */
static void pmix_end(struct p3_node *node)
{
	(void)node;
	if (p3_get(&pmix.process) != getpid())
		return;
	p3_set(&pmix.process, 0);
	(void)pmix.finalize(NULL, 0);
	free(pmix.host);
	pmix.host = NULL;
}

static const struct p3_modex_ops exchange = {.hosts = pmix_hosts,
	.host_name = pmix_host_name,
	.put = pmix_put,
	.fence = pmix_fence,
	.get = pmix_get,
	.end = pmix_end};
const struct p3_modex_ops *const p3_pmix = &exchange;
#else
const struct p3_modex_ops *const p3_pmix = NULL;
#endif
