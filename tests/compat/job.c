/* SPDX-License-Identifier: BSD-3-Clause */
/* Start, meeting and end of the clients of this folder. */
#define PTL_EQ_HANDLER_NONE ((ptl_eq_handler_t)0)
#include "job.h"

#include <catamount/cnos_mpi_os.h>
#include <p3nal_utcp.h>
#include <p3rt/p3rt.h>

#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { DOOR = 60, RETRY_MS = 20 };

struct job job;
static struct {
	const char *iface, *ask;
	ptl_pid_t pid;
} how = {"default", "cnos", PTL_PID_ANY};

static ptl_sr_value_t dropped_before;

void job_failed(const char *file, int line, const char *what)
{
	const char *name = strrchr(file, '/');
	printf("rank %d: %s:%d: %s\n", job.rank, name ? name + 1 : file, line, what);
	fflush(stdout);
	_exit(1);
}

double job_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

ptl_md_t job_md(void *start, ptl_size_t length, int threshold, unsigned options,
	ptl_handle_eq_t eq)
{
	ptl_md_t md;
	memset(&md, 0xa5, sizeof md);
	md.start = start;
	md.length = length;
	md.threshold = threshold;
	md.options = options;
	md.eq_handle = eq;
	return md;
}

/* ---- bytes ---- */

void job_fill(void *bytes, size_t length, uint64_t number)
{
	for (size_t at = 0; at < length; at += 8) {
		uint64_t word = random_next(&number);
		memcpy((char *)bytes + at, &word, length - at < 8 ? length - at : 8);
	}
}

size_t job_wrong(const void *bytes, size_t length, uint64_t number)
{
	for (size_t at = 0; at < length; at += 8) {
		uint64_t word = random_next(&number);
		size_t n = length - at < 8 ? length - at : 8;
		if (memcmp((const char *)bytes + at, &word, n) != 0)
			return at;
	}
	return length;
}

/* ---- options ---- */

static ptl_interface_t interface(void)
{
	if (strcmp(how.iface, "default") == 0)
		return PTL_IFACE_DEFAULT;
	if (strcmp(how.iface, "ss") == 0)
		return PTL_IFACE_SS;
	if (strcmp(how.iface, "bridge") == 0)
		return IFACE_FROM_BRIDGE_AND_NALID(PTL_BRIDGE_UK, PTL_IFACE_SS);
	return (ptl_interface_t)strtoul(how.iface, NULL, 0);
}

static void read_options(int argc, char **argv)
{
	int option;
	if (getenv("COMPAT_IFACE"))
		how.iface = getenv("COMPAT_IFACE");
	while ((option = getopt(argc, argv, "i:r:p:")) != -1) {
		if (option == 'i')
			how.iface = optarg;
		else if (option == 'r')
			how.ask = optarg;
		else if (option == 'p')
			how.pid = (ptl_pid_t)strtoul(optarg, NULL, 0);
		else
			exit(2);
	}
	job.words = argv + optind;
}

/* ---- ranks ---- */

static void ask_rank(void)
{
	unsigned rank, size;
	job.by_hand = cnos_launcher() != CNOS_LAUNCHER_YOD;
	if (job.by_hand && getenv("PTL_MY_RID"))
		DO(PtlSetRank(PTL_INVALID_HANDLE, -1, -1));
	if (strcmp(how.ask, "p3rt") == 0) {
		DO(PtlGetRank(PTL_INVALID_HANDLE, &rank, &size));
		job.rank = (int)rank;
		job.size = (int)size;
		return;
	}
	job.rank = cnos_get_rank();
	job.size = cnos_get_size();
}

static void ask_ids_p3rt(void)
{
	for (int i = 0; i < job.size; i++)
		DO(PtlGetRankId(job.ni, (unsigned)i, &job.ids[i]));
}

static void ask_ids_cnos(void)
{
	cnos_nidpid_map_t *map;
	CHECK(cnos_get_nidpid_map(&map) == job.size);
	for (int i = 0; i < job.size; i++)
		job.ids[i] = (ptl_process_id_t){map[i].nid, map[i].pid};
}

static void ask_ids(void)
{
	if (strcmp(how.ask, "p3rt") == 0)
		ask_ids_p3rt();
	else
		ask_ids_cnos();
}

/* Return the own pid; in a start by hand the map tells it. */
static ptl_pid_t own_pid(void)
{
	ptl_process_id_t id;
	if (how.pid != PTL_PID_ANY)
		return how.pid + (ptl_pid_t)job.rank;
	if (!job.by_hand || !getenv("PTL_PIDMAP"))
		return PTL_PID_ANY;
	DO(PtlGetRankId(PTL_INVALID_HANDLE, (unsigned)job.rank, &id));
	return id.pid;
}

/*
 * ---- the barrier of processes without a launcher ---- Every rank writes the number of
 * the barrier into its word at rank 0, which writes it into each rank's when all have
 * come: again and again until the ACK comes, since the other rank may not be there yet.
 */

static struct {
	ptl_handle_eq_t eq;
	ptl_handle_md_t source;
	volatile uint64_t *come; /* by rank; the last word means go */
	uint64_t number;
} door;

static void open_door(void)
{
	ptl_process_id_t anybody = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_size_t bytes = 8 * ((ptl_size_t)job.size + 1);
	ptl_handle_me_t me;
	door.come = calloc(1, bytes);
	DO(PtlEQAlloc(job.ni, 64, PTL_EQ_HANDLER_NONE, &door.eq));
	DO(PtlMEAttach(job.ni, DOOR, anybody, 0, ~(ptl_match_bits_t)0, PTL_RETAIN,
		PTL_INS_AFTER, &me));
	DO(PtlMDAttach(me,
		job_md((void *)door.come, bytes, PTL_MD_THRESH_INF,
			PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE),
		PTL_RETAIN, NULL));
	DO(PtlMDBind(job.ni,
		job_md(&door.number, 8, PTL_MD_THRESH_INF, PTL_MD_EVENT_START_DISABLE,
			door.eq),
		PTL_RETAIN, &door.source));
}

/* Return true for an answer; the ACK of an earlier attempt is none to a later barrier. */
static bool is_answer(const ptl_event_t *event, int rank)
{
	return event->type == PTL_EVENT_ACK && event->match_bits == door.number &&
	       event->initiator.nid == job.ids[rank].nid &&
	       event->initiator.pid == job.ids[rank].pid;
}

/* Return true if a rank that was here has left: it has seen the awaited word. */
static bool has_left(const ptl_event_t *event, int rank)
{
	return door.number > 1 && event->type == PTL_EVENT_SEND_END &&
	       event->ni_fail_type != PTL_NI_OK && event->match_bits == door.number &&
	       event->hdr_data == (ptl_hdr_data_t)rank;
}

static bool answered(int rank)
{
	ptl_event_t event;
	int which;
	while (PtlEQPoll(&door.eq, 1, RETRY_MS, &event, &which) == PTL_OK)
		if (is_answer(&event, rank) || has_left(&event, rank))
			return true;
	return false;
}

static void tell(int rank, int word)
{
	do
		DO(PtlPut(door.source, PTL_ACK_REQ, job.ids[rank], DOOR, 0, door.number,
			8 * (ptl_size_t)word, (ptl_hdr_data_t)rank));
	while (!answered(rank));
}

/* Load a word without an event: other processes order it with the NIC's writing. */
__attribute__((no_sanitize("thread"), noinline)) static uint64_t look(int word)
{
	return door.come[word];
}

static void wait_word(int word)
{
	while (look(word) < door.number)
		usleep(200);
}

static void door_barrier(void)
{
	door.number++;
	if (job.rank != 0) {
		tell(0, job.rank);
		wait_word(job.size);
		return;
	}
	for (int i = 1; i < job.size; i++)
		wait_word(i);
	for (int i = 1; i < job.size; i++)
		tell(i, job.size);
}

void job_barrier(void)
{
	if (job.by_hand)
		door_barrier();
	else
		CHECK(cnos_barrier() == 0);
}

/* ---- begin and end ---- */

static ptl_sr_value_t drop_count(void)
{
	ptl_sr_value_t count;
	DO(PtlNIStatus(job.ni, PTL_SR_DROP_COUNT, &count));
	return count;
}

long job_drops(void)
{
	return (long)(drop_count() - dropped_before);
}

/* Set fixed ids: the start determines which node has which ids. */
static void fixed_ids(void)
{
	ptl_nid_t *nid = calloc((size_t)job.size, sizeof *nid);
	DO(PtlGetNIDMap(PTL_INVALID_HANDLE, nid, job.size));
	for (int i = 0; i < job.size; i++)
		job.ids[i] = (ptl_process_id_t){nid[i], how.pid + (ptl_pid_t)i};
	free(nid);
}

static void known_ids(void)
{
	if (how.pid != PTL_PID_ANY)
		fixed_ids();
	else if (job.by_hand)
		ask_ids();
}

void job_enter(int argc, char **argv)
{
	int most;
	ptl_ni_limits_t actual;
	read_options(argc, argv);
	DO(PtlInit(&most));
	ask_rank();
	int rc = PtlNIInit(interface(), own_pid(), NULL, &actual, &job.ni);
	CHECK(rc == PTL_OK || rc == PTL_IFACE_DUP);
	DO(PtlGetId(job.ni, &job.self));
	DO(cnos_register_ptlid(job.self));
	job.ids = calloc((size_t)job.size, sizeof *job.ids);
	known_ids();
	dropped_before = drop_count();
}

static void all_are_near(void)
{
	unsigned long distance;
	for (int i = 0; i < job.size; i++) {
		ptl_process_id_t id = {job.ids[i].nid, job.ids[i].pid};
		DO(PtlNIDist(job.ni, id, &distance));
	}
}

void job_begin(int argc, char **argv)
{
	job_enter(argc, argv);
	open_door();
	DO(cnos_barrier_init(job.ni));
	job_barrier();
	ask_ids();
	CHECK(job.ids[job.rank].nid == job.self.nid);
	CHECK(job.ids[job.rank].pid == job.self.pid);
	all_are_near();
	dropped_before = drop_count();
}

void job_leave(void)
{
	fflush(stdout);
	free(job.ids);
	DO(PtlNIFini(job.ni));
	PtlFini();
	free((void *)door.come);
}

void job_end(const char *what, unsigned long tried)
{
	printf("# tried: %lu %s\n", tried, what);
	job_leave();
}
