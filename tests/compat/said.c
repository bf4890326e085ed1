/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * said - a process that yod did not start has the identity that it is given: by the
 * environment, by the Set calls, on each interface; its job's id; five arguments for
 * PtlACEntry; a forked child has none until it is given one, whatever other threads of
 * its parent were doing
 */
#define PTL_ACENTRY_5ARGS
#include "../support/plain.h"

#include <catamount/cnos_mpi_os.h>
#include <p3nal_tcp.h>
#include <p3rt/p3rt.h>
#include <portals/portals3.h>

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BITS = 3, PORTAL = 5, ENTRY = 2, JOB = 77, MOST = 1024 /* ranks of a job */ };

static void environment(const char *rid, const char *nids, const char *pids)
{
	CHECK(setenv("PTL_MY_RID", rid, 1) == 0);
	CHECK(setenv("PTL_NIDMAP", nids, 1) == 0 && setenv("PTL_PIDMAP", pids, 1) == 0);
}

static int adopt(void)
{
	return PtlSetRank(PTL_INVALID_HANDLE, -1, -1);
}

static void bad_environments_are_refused(void)
{
	CHECK(adopt() == PTL_FAIL);
	environment("3", "5:6:7", "10:11:12");
	CHECK(adopt() == PTL_FAIL);
	environment("1", "5:6:7", "10:11");
	CHECK(adopt() == PTL_FAIL);
	environment("1", "5:6:x", "10:11:12");
	CHECK(adopt() == PTL_FAIL);
	environment("", "5:6:7", "10:11:12");
	CHECK(adopt() == PTL_FAIL);
	char too_long[2 * (MOST + 1) + 1];
	for (unsigned i = 0; i <= MOST; i++)
		memcpy(&too_long[2 * i], "5:", sizeof "5:");
	environment("1", too_long, too_long);
	CHECK(adopt() == PTL_FAIL);
}

static void is(unsigned wanted_rank, ptl_nid_t first_nid, ptl_pid_t first_pid)
{
	unsigned rank, size;
	ptl_process_id_t id;
	ptl_nid_t nid[3];
	ptl_pid_t pid[3];
	CHECK(PtlGetRank(PTL_INVALID_HANDLE, &rank, &size) == PTL_OK);
	CHECK(rank == wanted_rank && size == 3);
	CHECK(PtlGetRankId(PTL_INVALID_HANDLE, 2, &id) == PTL_OK);
	CHECK(id.nid == first_nid + 2 && id.pid == first_pid + 2);
	CHECK(PtlGetNIDMap(PTL_INVALID_HANDLE, nid, 3) == PTL_OK);
	CHECK(PtlGetPIDMap(PTL_INVALID_HANDLE, pid, 3) == PTL_OK);
	for (unsigned i = 0; i < 3; i++)
		CHECK(nid[i] == first_nid + i && pid[i] == first_pid + i);
}

static void the_environment_is_adopted(void)
{
	environment("1", "5:6:7", "10:11:12");
	CHECK(adopt() == PTL_OK);
	is(1, 5, 10);
}

static void what_is_said_counts(void)
{
	ptl_nid_t nid[] = {20, 21, 22};
	ptl_pid_t pid[] = {30, 31, 32};
	CHECK(PtlSetRank(PTL_INVALID_HANDLE, 2, 3) == PTL_OK);
	CHECK(PtlSetRank(PTL_INVALID_HANDLE, 2, 4) == PTL_PROCESS_INVALID);
	CHECK(PtlSetNIDMap(PTL_INVALID_HANDLE, nid, 2) == PTL_PROCESS_INVALID);
	CHECK(PtlSetNIDMap(PTL_INVALID_HANDLE, nid, 3) == PTL_OK);
	CHECK(PtlSetPIDMap(PTL_INVALID_HANDLE, pid, 3) == PTL_OK);
	is(2, 20, 30);
}

static void cnos_says_the_same(void)
{
	cnos_nidpid_map_t *map, *again;
	CHECK(cnos_get_rank() == 2 && cnos_get_size() == 3 && cnos_launcher() == 0);
	CHECK(cnos_get_nidpid_map(&map) == 3);
	CHECK(map[1].nid == 21 && map[1].pid == 31);
	the_environment_is_adopted();
	CHECK(cnos_get_nidpid_map(&again) == 3 && again == map);
	CHECK(map[1].nid == 6 && map[1].pid == 11);
}

static ptl_handle_ni_t enter(void)
{
	int most;
	unsigned nid;
	ptl_jid_t jid;
	ptl_handle_ni_t ni;
	ptl_process_id_t self;
	CHECK(PtlInit(&most) == PTL_OK);
	CHECK(PtlSetJID(PTL_INVALID_HANDLE, JOB) == PTL_OK);
	CHECK(PtlSetJID(PTL_INVALID_HANDLE, PTL_JID_ANY) == PTL_FAIL);
	CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni) == PTL_OK);
	CHECK(PtlGetJid(ni, &jid) == PTL_OK && jid == JOB);
	CHECK(PtlSetJID(ni, JOB) == PTL_OK && PtlSetJID(ni, JOB + 1) == PTL_FAIL);
	CHECK(PtlGetId(ni, &self) == PTL_OK && p3tcp_my_nid("lo", &nid) == PTL_OK);
	CHECK(self.nid == nid && self.nid == 6 &&
		self.pid == 11); /* rank 1 of the maps */
	return ni;
}

static ptl_pid_t first_pid(ptl_handle_ni_t ni)
{
	ptl_process_id_t id;
	CHECK(PtlGetRankId(ni, 0, &id) == PTL_OK);
	return id.pid;
}

/* Values for the process hold for an interface until it gets its own. */
static void each_interface_knows(ptl_handle_ni_t ni)
{
	ptl_pid_t pid[] = {40, 41, 42}, other[] = {50, 51, 52};
	ptl_process_id_t self;
	ptl_handle_ni_t ss;
	CHECK(PtlNIInit(PTL_IFACE_SS, PTL_PID_ANY, NULL, NULL, &ss) == PTL_OK);
	CHECK(PtlGetId(ss, &self) == PTL_OK && self.pid != 11); /* ni has it */
	CHECK(first_pid(ni) == 10 && first_pid(ss) == 10);
	CHECK(PtlSetPIDMap(ss, pid, 3) == PTL_OK);
	CHECK(first_pid(ni) == 10 && first_pid(ss) == 40);
	CHECK(PtlSetPIDMap(PTL_INVALID_HANDLE, other, 3) == PTL_OK);
	CHECK(first_pid(ni) == 50 && first_pid(ss) == 40);
	CHECK(PtlNIFini(ss) == PTL_OK);
}

/* A program of Cray XT has that interface alone. */
static void the_only_interface_knows(void)
{
	cnos_nidpid_map_t *map;
	ptl_handle_ni_t ss;
	int most;
	CHECK(PtlInit(&most) == PTL_OK);
	CHECK(PtlNIInit(PTL_IFACE_SS, PTL_PID_ANY, NULL, NULL, &ss) == PTL_OK);
	the_environment_is_adopted();
	CHECK(cnos_get_nidpid_map(&map) == 3 && map[2].nid == 7 && map[2].pid == 12);
	PtlFini();
}

static ptl_handle_eq_t receive(ptl_handle_ni_t ni, unsigned *got)
{
	ptl_process_id_t anybody = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_handle_me_t me;
	ptl_handle_md_t md_handle;
	ptl_md_t md = {.start = got,
		.length = sizeof *got,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE};
	CHECK(PtlEQAlloc(ni, 16, PTL_EQ_HANDLER_NONE, &md.eq_handle) == PTL_OK);
	CHECK(PtlMEAttach(ni, PORTAL, anybody, BITS, 0, PTL_RETAIN, PTL_INS_AFTER, &me) ==
		PTL_OK);
	CHECK(PtlMDAttach(me, md, PTL_RETAIN, &md_handle) == PTL_OK);
	return md.eq_handle;
}

static void put_to_self(ptl_handle_ni_t ni, unsigned *word, ptl_ac_index_t entry)
{
	ptl_process_id_t self;
	ptl_handle_md_t md_handle;
	ptl_md_t md = {.start = word,
		.length = sizeof *word,
		.threshold = 1,
		.eq_handle = PTL_EQ_NONE};
	CHECK(PtlGetId(ni, &self) == PTL_OK);
	CHECK(PtlMDBind(ni, md, PTL_UNLINK, &md_handle) == PTL_OK);
	CHECK(PtlPut(md_handle, PTL_NO_ACK_REQ, self, PORTAL, entry, BITS, 0, 0) ==
		PTL_OK);
}

/* The entry admits no process, then every process of any job on this portal index. */
static void five_arguments_admit(ptl_handle_ni_t ni)
{
	static unsigned word = 0xabad1dea, got;
	ptl_process_id_t anybody = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_handle_eq_t eq = receive(ni, &got);
	ptl_event_t event;
	int which;
	put_to_self(ni, &word, ENTRY);
	CHECK(PtlEQPoll(&eq, 1, 50, &event, &which) == PTL_EQ_EMPTY);
	CHECK(PtlACEntry(ni, ENTRY, anybody, PTL_UID_ANY, PORTAL) == PTL_OK);
	put_to_self(ni, &word, ENTRY);
	CHECK(PtlEQWait(eq, &event) == PTL_OK && event.type == PTL_EVENT_PUT_END);
	CHECK(event.jid == JOB && got == word);
}

static void a_child_is_nobody(void)
{
	int status;
	pid_t child = fork();
	if (child == 0) {
		unsigned nid;
		cnos_nidpid_map_t *map;
		CHECK(cnos_get_rank() == -1 && cnos_get_size() == -1);
		CHECK(cnos_get_nidpid_map(&map) == -1 && cnos_launcher() == -1);
		CHECK(cnos_barrier() == -1 && p3tcp_my_nid("lo", &nid) == PTL_FAIL);
		_exit(0);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

/* The parent's maps are of another size, and its rank is none of the child's. */
static void child(int rank)
{
	unsigned word = 0xfeed, got = 0;
	ptl_nid_t nid[] = {6, 6};
	ptl_pid_t pid[] = {60, 61};
	ptl_process_id_t self;
	ptl_handle_md_t md_handle;
	ptl_handle_ni_t ni;
	ptl_event_t event;
	ptl_md_t md = {.start = &word,
		.length = sizeof word,
		.threshold = 1,
		.eq_handle = PTL_EQ_NONE};
	int most;
	/* No line tells of a message that waits until the other has begun. */
	CHECK(setenv("PTL3_LOG", "error", 1) == 0);
	CHECK(PtlInit(&most) == PTL_OK && cnos_get_size() == 1);
	CHECK(PtlSetRank(PTL_INVALID_HANDLE, rank, 2) == PTL_OK);
	CHECK(PtlGetNIDMap(PTL_INVALID_HANDLE, nid, 2) == PTL_FAIL); /* not known yet */
	CHECK(PtlSetNIDMap(PTL_INVALID_HANDLE, nid, 2) == PTL_OK);
	CHECK(PtlGetPIDMap(PTL_INVALID_HANDLE, pid, 2) == PTL_FAIL);
	CHECK(PtlSetPIDMap(PTL_INVALID_HANDLE, pid, 2) == PTL_OK);
	CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni) == PTL_OK);
	CHECK(PtlGetId(ni, &self) == PTL_OK && self.pid == pid[rank]);
	ptl_handle_eq_t eq = receive(ni, &got);
	self.pid = pid[1 - rank];
	CHECK(PtlMDBind(ni, md, PTL_UNLINK, &md_handle) == PTL_OK);
	CHECK(PtlPut(md_handle, PTL_NO_ACK_REQ, self, PORTAL, 0, BITS, 0, 0) == PTL_OK);
	CHECK(PtlEQWait(eq, &event) == PTL_OK && event.type == PTL_EVENT_PUT_END);
	CHECK(got == word && event.initiator.pid == self.pid);
	CHECK(PtlNIFini(ni) == PTL_OK);
	PtlFini();
}

/* Each mistake of the maps has a line: a node id of another node, the parent's pid. */
static void wrong_maps_are_told(void)
{
	char text[1024] = "", line[80];
	int status, most, out[2];
	ptl_handle_ni_t ni;
	ptl_nid_t nid[] = {9, 9};
	ptl_pid_t pid[] = {11, 12};
	snprintf(line, sizeof line, "process id 11 on node 6 is process %d's", getpid());
	CHECK(pipe(out) == 0);
	pid_t child = fork();
	if (child == 0) {
		CHECK(dup2(out[1], 2) == 2 && PtlInit(&most) == PTL_OK);
		CHECK(PtlSetRank(PTL_INVALID_HANDLE, 0, 2) == PTL_OK);
		CHECK(PtlSetNIDMap(PTL_INVALID_HANDLE, nid, 2) == PTL_OK);
		CHECK(PtlSetPIDMap(PTL_INVALID_HANDLE, pid, 2) == PTL_OK);
		CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni) ==
			PTL_PID_INVALID);
		_exit(0);
	}
	CHECK(close(out[1]) == 0 && waitpid(child, &status, 0) == child && status == 0);
	CHECK(read(out[0], text, sizeof text - 1) > 0);
	CHECK(strstr(text, "rank 0 has node id 9") && strstr(text, "PTL3_NID=9"));
	CHECK(strstr(text, line));
	CHECK(close(out[0]) == 0);
}

static void children_take_their_own_maps(void)
{
	int status;
	pid_t pid[2];
	for (int i = 0; i < 2; i++)
		if ((pid[i] = fork()) == 0) {
			child(i);
			_exit(0);
		}
	for (int i = 0; i < 2; i++)
		CHECK(waitpid(pid[i], &status, 0) == pid[i] && status == 0);
}

/* ---- children of threads that are inside calls ---- */

enum { PAGE = 4096, INSIDE = 2 };

static ptl_nid_t *slow; /* a map in memory that stops its first users */
static int stopped[2], go_on[2];

static void stop_here(int sig)
{
	char c = 0;
	(void)sig;
	CHECK(write(stopped[1], &c, 1) == 1 && read(go_on[0], &c, 1) == 1);
	CHECK(mprotect(slow, PAGE, PROT_READ | PROT_WRITE) == 0);
}

static void *set_slowly(void *arg)
{
	CHECK(PtlSetNIDMap(PTL_INVALID_HANDLE, slow, 3) == PTL_OK);
	return arg;
}

static void *get_slowly(void *arg)
{
	CHECK(PtlGetNIDMap(PTL_INVALID_HANDLE, slow, 3) == PTL_OK);
	return arg;
}

/* Be a child whose calls do not wait for threads that it does not have. */
static void be_child(bool init)
{
	int most;
	cnos_nidpid_map_t *map;
	ptl_nid_t nid[] = {60, 61, 62};
	ptl_pid_t pid[] = {70, 71, 72};
	if (init)
		CHECK(PtlInit(&most) == PTL_OK);
	CHECK(PtlSetRank(PTL_INVALID_HANDLE, 0, 3) == PTL_OK);
	CHECK(PtlSetPIDMap(PTL_INVALID_HANDLE, pid, 3) == PTL_OK);
	for (unsigned i = 0; i < 3; i++) {
		nid[0] += i;
		CHECK(PtlSetNIDMap(PTL_INVALID_HANDLE, nid, 3) == PTL_OK);
		CHECK(!init || cnos_get_nidpid_map(&map) == 3);
	}
	_exit(0);
}

/* Fork while one thread replaces the maps and another one reads them. */
static void a_child_waits_for_no_thread(bool init)
{
	int status;
	char c[INSIDE] = {0};
	const ptl_nid_t nid[] = {20, 21, 22};
	pthread_t thread[INSIDE];
	slow = mmap(
		NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(slow != MAP_FAILED && pipe(stopped) == 0 && pipe(go_on) == 0);
	memcpy(slow, nid, sizeof nid);
	CHECK(mprotect(slow, PAGE, PROT_NONE) == 0);
	CHECK(signal(SIGSEGV, stop_here) != SIG_ERR);
	CHECK(pthread_create(&thread[0], NULL, set_slowly, NULL) == 0);
	CHECK(pthread_create(&thread[1], NULL, get_slowly, NULL) == 0);
	CHECK(read(stopped[0], c, 1) == 1 && read(stopped[0], c + 1, 1) == 1);
	pid_t child = fork();
	if (child == 0)
		be_child(init);
	CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
	CHECK(write(go_on[1], c, INSIDE) == INSIDE);
	for (unsigned i = 0; i < INSIDE; i++)
		CHECK(pthread_join(thread[i], NULL) == 0);
	CHECK(signal(SIGSEGV, SIG_DFL) == stop_here);
	for (unsigned i = 0; i < 2; i++)
		CHECK(close(stopped[i]) == 0 && close(go_on[i]) == 0);
	CHECK(munmap(slow, PAGE) == 0);
}

int main(void)
{
	char domain[32];
	snprintf(domain, sizeof domain, "said-%d", getpid());
	CHECK(setenv("PTL3_DOMAIN", domain, 1) == 0 && setenv("PTL3_NID", "6", 1) == 0);
	bad_environments_are_refused();
	the_environment_is_adopted();
	what_is_said_counts();
	a_child_waits_for_no_thread(false);
	cnos_says_the_same();
	ptl_handle_ni_t ni = enter();
	five_arguments_admit(ni);
	a_child_is_nobody();
	children_take_their_own_maps();
	wrong_maps_are_told();
	each_interface_knows(ni);
	a_child_waits_for_no_thread(true);
	the_environment_is_adopted();
	CHECK(cnos_barrier() == 0 && PtlNIFini(ni) == PTL_OK);
	PtlFini();
	the_only_interface_knows();
	return 0;
}
