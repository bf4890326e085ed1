/* SPDX-License-Identifier: BSD-3-Clause */
/* The exchange of cards by PMIx. */
#include "lib/job/pmix.h"
#include "lib/node/call.h"
#include "lib/node/node.h"
#include "shm/atomics.h"
#include "shm/log.h"

#ifdef P3_PMIX
#include <dlfcn.h>
#include <errno.h>
#include <pmix.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FILE_NAME "libpmix.so.2"
#define KEY       "ptl3.card"
/* Up to this number of ranks the fence brings the cards; in larger jobs each rank asks
 * for those of the others. */
#define COLLECTED 256u

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
	_Atomic pid_t process; /* that has called init, or 0 */
	pmix_proc_t self;
	char *host; /* the last answer of host_name() */
} pmix;

static bool find(const char *name, void *out)
{
	void *at = dlsym(pmix.lib, name);
	memcpy(out, &at, sizeof at);
	return at != NULL;
}

static int load(void)
{
	if (pmix.lib)
		return 0;
	pmix.lib = dlopen(FILE_NAME, RTLD_NOW | RTLD_LOCAL);
	if (pmix.lib && find("PMIx_Init", &pmix.init) &&
		find("PMIx_Finalize", &pmix.finalize) && find("PMIx_Put", &pmix.put) &&
		find("PMIx_Commit", &pmix.commit) && find("PMIx_Fence_nb", &pmix.fence) &&
		find("PMIx_Get", &pmix.get) && find("PMIx_Error_string", &pmix.error))
		return 0;
	const char *why = dlerror();
	p3_error("a job on several hosts needs PMIx, which cannot be loaded: %s; install "
		 "it (Debian: libpmix2), or start all ranks on one host",
		why ? why : FILE_NAME);
	pmix.lib = NULL;
	return -EINVAL;
}

static int say(const char *what, pmix_status_t status)
{
	p3_error("PMIx: %s: %s (%d); start the job by mpirun of Open MPI, or by "
		 "srun --mpi=pmix",
		what, pmix.error(status), (int)status);
	return -EINVAL;
}

/* PMIx calls this function in its own thread. */
static void on_lost(size_t id, pmix_status_t status, const pmix_proc_t *source,
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

/* Let the end of the launcher end this process.  An older PMIx does not tell it. */
static void watch_launcher(void)
{
	static pmix_status_t lost = PMIX_ERR_LOST_CONNECTION;
	if (find("PMIx_Register_event_handler", &pmix.on_event))
		(void)pmix.on_event(&lost, 1, NULL, 0, on_lost, NULL, NULL);
}

static int begin(void)
{
	int rc = load();
	if (rc || p3_get(&pmix.process) == getpid())
		return rc;
	pmix_status_t status = pmix.init(&pmix.self, NULL, 0);
	if (status != PMIX_SUCCESS)
		return say("PMIx_Init", status);
	p3_set(&pmix.process, getpid());
	watch_launcher();
	return 0;
}

/* ---- values ---- */

static void free_value(pmix_value_t *v)
{
	if (v->type == PMIX_STRING)
		free(v->data.string);
	if (v->type == PMIX_BYTE_OBJECT)
		free(v->data.bo.bytes);
	free(v);
}

/* Get the value of a rank, if it has this type.  known: it is one of the launcher's
 * tables, and is not waited for. */
static pmix_status_t get_value(uint32_t rank, const char *key, bool known,
	pmix_data_type_t type, pmix_value_t **out)
{
	pmix_info_t optional = {.value = {.type = PMIX_BOOL, .data = {.flag = true}}};
	pmix_proc_t who = pmix.self;
	who.rank = rank;
	strncpy(optional.key, PMIX_OPTIONAL, sizeof optional.key - 1);
	pmix_status_t status = pmix.get(&who, key, &optional, known, out);
	if (status != PMIX_SUCCESS || (*out)->type == type)
		return status;
	free_value(*out);
	return PMIX_ERR_TYPE_MISMATCH;
}

/* ---- the launcher's tables ---- */

/* Give all ranks of this process's host their leader; a text such as "0,1" lists them. */
static void lead_peers(char *list, uint32_t size, uint32_t *leader)
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

static int find_own_host(const struct p3_node *node, uint32_t *leader)
{
	pmix_value_t *v;
	pmix_status_t status =
		get_value(PMIX_RANK_WILDCARD, PMIX_LOCAL_PEERS, true, PMIX_STRING, &v);
	if (status != PMIX_SUCCESS)
		return say(PMIX_LOCAL_PEERS, status);
	lead_peers(v->data.string, node->size, leader);
	free_value(v);
	return 0;
}

/* Return the name of a rank's host, which the caller frees, or NULL. */
static char *name_of(uint32_t rank)
{
	pmix_value_t *v;
	if (get_value(rank, PMIX_HOSTNAME, true, PMIX_STRING, &v) != PMIX_SUCCESS)
		return NULL;
	char *name = v->data.string;
	v->data.string = NULL;
	free_value(v);
	return name;
}

/* Find the leader of a rank on another host by the name of that host. */
static uint32_t leader_by_name(uint32_t rank, const uint32_t *leader)
{
	uint32_t found = rank;
	char *name = name_of(rank);
	for (uint32_t i = 0; name && i < rank && found == rank; i++) {
		char *other = leader[i] == i ? name_of(i) : NULL;
		if (other && strcmp(other, name) == 0)
			found = i;
		free(other);
	}
	free(name);
	return found;
}

/* Find the leader of a rank on another host. */
static uint32_t leader_of(uint32_t rank, const uint32_t *leader)
{
	pmix_value_t *v;
	if (get_value(rank, PMIX_LOCALLDR, true, PMIX_PROC_RANK, &v) != PMIX_SUCCESS)
		return leader_by_name(rank, leader);
	uint32_t found = v->data.rank;
	free_value(v);
	return found <= rank ? found : rank;
}

static int hosts(struct p3_node *node, uint32_t *leader_out)
{
	const uint32_t unknown = node->size;
	int rc = begin();
	for (uint32_t i = 0; i < node->size; i++)
		leader_out[i] = unknown;
	rc = rc ? rc : find_own_host(node, leader_out);
	for (uint32_t i = 0; i < node->size && !rc; i++)
		if (leader_out[i] == unknown)
			leader_out[i] = leader_of(i, leader_out);
	return rc;
}

static const char *host_name(struct p3_node *node, uint32_t rank)
{
	(void)node;
	free(pmix.host);
	pmix.host = name_of(rank);
	return pmix.host;
}

/* ---- cards ---- */

static int put(struct p3_node *node, const struct p3_card *card)
{
	char bytes[sizeof *card];
	pmix_value_t v = {.type = PMIX_BYTE_OBJECT};
	(void)node;
	memcpy(bytes, card, sizeof bytes);
	v.data.bo.bytes = bytes;
	v.data.bo.size = sizeof bytes;
	pmix_status_t status = pmix.put(PMIX_GLOBAL, KEY, &v);
	if (status == PMIX_SUCCESS)
		status = pmix.commit();
	explicit_bzero(bytes, sizeof bytes);
	return status == PMIX_SUCCESS ? 0 : say("PMIx_Put", status);
}

/* A fence under way; PMIx's thread posts done. */
struct fence {
	sem_t done;
	pmix_status_t status;
};

static void on_fence(pmix_status_t status, void *arg)
{
	struct fence *f = arg;
	f->status = status;
	(void)sem_post(&f->done);
}

/* Wait for the end of a fence.  Print a line when it takes long: a rank that never calls
 * PtlNIInit holds up all others. */
static void await_fence(const struct p3_node *node, struct fence *f)
{
	struct timespec late;
	(void)clock_gettime(CLOCK_REALTIME, &late);
	late.tv_sec += P3_EXCHANGE_LATE_S;
	while (sem_timedwait(&f->done, &late) != 0) {
		if (errno != ETIMEDOUT)
			continue;
		p3_warn(P3_EXCHANGE_LATE, node->rank, P3_EXCHANGE_LATE_S, node->size);
		while (sem_wait(&f->done) != 0)
			;
		return;
	}
}

static int fence(struct p3_node *node)
{
	pmix_info_t collect = {.value = {.type = PMIX_BOOL, .data = {.flag = true}}};
	struct fence f;
	strncpy(collect.key, PMIX_COLLECT_DATA, sizeof collect.key - 1);
	if (sem_init(&f.done, 0, 0) != 0)
		return -errno;
	struct p3_caller caller =
		p3_caller_save(); /* the waits are no cancellation points */
	f.status = pmix.fence(NULL, 0, &collect, node->size <= COLLECTED, on_fence, &f);
	if (f.status == PMIX_SUCCESS)
		await_fence(node, &f);
	else if (f.status == PMIX_OPERATION_SUCCEEDED)
		f.status = PMIX_SUCCESS;
	p3_caller_restore(caller);
	(void)sem_destroy(&f.done);
	return f.status == PMIX_SUCCESS ? 0 : say("PMIx_Fence", f.status);
}

/* The others find no card of this rank behind the fence. */
static void give_up(struct p3_node *node)
{
	(void)fence(node);
}

static int get(struct p3_node *node, uint32_t rank, struct p3_card *card_out)
{
	pmix_value_t *v;
	(void)node;
	pmix_status_t status = get_value(rank, KEY, false, PMIX_BYTE_OBJECT, &v);
	if (status != PMIX_SUCCESS)
		return say("PMIx_Get", status);
	memset(card_out, 0, sizeof *card_out);
	size_t len = v->data.bo.size;
	memcpy(card_out, v->data.bo.bytes,
		len < sizeof *card_out ? len : sizeof *card_out);
	free_value(v);
	return 0;
}

/* A rank that ends without this makes mpirun end the job. */
static void end(struct p3_node *node)
{
	(void)node;
	if (p3_get(&pmix.process) != getpid())
		return;
	p3_set(&pmix.process, 0);
	(void)pmix.finalize(NULL, 0);
	free(pmix.host);
	pmix.host = NULL;
}

static const struct p3_exchange exchange = {.hosts = hosts,
	.host_name = host_name,
	.put = put,
	.give_up = give_up,
	.fence = fence,
	.get = get,
	.end = end};
const struct p3_exchange *const p3_pmix = &exchange;
#else
const struct p3_exchange *const p3_pmix = NULL;
#endif
