/* SPDX-License-Identifier: BSD-3-Clause */
/* The frame of the conformance suite of CCI: the driver and the processes of a test. */
#include "frame.h"
#include "../support/asleep.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

const struct suite suite = {.statements = 137,
	.table = "docs/conformance-cci.md",
	.outside = "no statement",
	.status = 1};

/* State that the driver and the processes of a test share. */
struct room {
	struct meeting meeting;
	_Atomic uint32_t came, said, failed, skipped;
	_Atomic int pid[RANKS_MOST];
	_Atomic uint32_t done[RANKS_MOST], may_die[RANKS_MOST];
	_Atomic uint32_t uris[RANKS_MOST];
	char uri[RANKS_MOST][URIS_MOST][128];
	_Atomic uint64_t word[WORDS];
	char reason[120];
	_Alignas(64) unsigned char shared[SHARED];
};

static struct room *room;
static char room_path[64], program_path[PATH_MAX];
static bool is_helper;
static bool failed_firmly;

const char *helper_argument;

struct me me;

/* ---- failure ---- */

void suite_who(char *text, size_t n)
{
	snprintf(text, n, "%s %u of %u", is_helper ? "helper of rank" : "rank", me.rank,
		me.size);
}

bool suite_failed(bool can_give_up)
{
	(void)can_give_up; /* all processes of this test end */
	room->failed = 1;
	return false;
}

void skip(const char *reason)
{
	snprintf(room->reason, sizeof room->reason, "%s", reason);
	room->skipped = 1;
	_exit(0);
}

const char *check_code(int status)
{
	static const struct {
		int status;
		const char *name;
	} known[] = {{CCI_SUCCESS, "CCI_SUCCESS"}, {CCI_ERROR, "CCI_ERROR"},
		{CCI_ERR_DISCONNECTED, "CCI_ERR_DISCONNECTED"},
		{CCI_ERR_RNR, "CCI_ERR_RNR"},
		{CCI_ERR_DEVICE_DEAD, "CCI_ERR_DEVICE_DEAD"},
		{CCI_ERR_RMA_HANDLE, "CCI_ERR_RMA_HANDLE"},
		{CCI_ERR_RMA_OP, "CCI_ERR_RMA_OP"},
		{CCI_ERR_NOT_IMPLEMENTED, "CCI_ERR_NOT_IMPLEMENTED"},
		{CCI_ERR_NOT_FOUND, "CCI_ERR_NOT_FOUND"}, {CCI_EINVAL, "CCI_EINVAL"},
		{CCI_ETIMEDOUT, "CCI_ETIMEDOUT"}, {CCI_ENOMEM, "CCI_ENOMEM"},
		{CCI_ENODEV, "CCI_ENODEV"}, {CCI_ENETDOWN, "CCI_ENETDOWN"},
		{CCI_EBUSY, "CCI_EBUSY"}, {CCI_ERANGE, "CCI_ERANGE"},
		{CCI_EAGAIN, "CCI_EAGAIN"}, {CCI_ENOBUFS, "CCI_ENOBUFS"},
		{CCI_EMSGSIZE, "CCI_EMSGSIZE"}, {CCI_ENOMSG, "CCI_ENOMSG"},
		{CCI_EADDRNOTAVAIL, "CCI_EADDRNOTAVAIL"},
		{CCI_ECONNREFUSED, "CCI_ECONNREFUSED"}};
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		if (known[i].status == status)
			return known[i].name;
	return "an unknown status";
}

/* ---- waits ---- */

void look_at(const char *file, int line, struct patience *p, const char *what)
{
	if (room->failed || room->skipped)
		_exit(1); /* another process has said why */
	if (patience_is_over(p))
		check_failed(file, line, "this does not come: %s", what);
}

bool on_one_cpu(void)
{
	const char *cpus = getenv("CCI_CPUS");
	return (cpus && strcmp(cpus, "1") == 0) || sysconf(_SC_NPROCESSORS_ONLN) < 2;
}

unsigned long many(unsigned long full)
{
	const char *text = getenv("CCI_SHARE");
	unsigned long share = text ? strtoul(text, NULL, 10) : 1, n;
	n = share ? full / share : full;
	return n < 20 ? (full < 20 ? full : 20) : n;
}

/* ---- the room ---- */

static void look_at_barrier(struct patience *p)
{
	look_at(__FILE__, __LINE__, p, "all processes at the barrier");
}

void barrier(void)
{
	meeting_come(&room->meeting, me.size, look_at_barrier, 20000);
}

void say(void)
{
	room->said++;
}

void hear(unsigned n)
{
	AWAIT(room->said >= n);
}

void set_word(unsigned i, uint64_t value)
{
	room->word[i] = value;
}

uint64_t word(unsigned i)
{
	return room->word[i];
}

void add_word(unsigned i, uint64_t value)
{
	room->word[i] += value;
}

void await_word(unsigned i, uint64_t least)
{
	AWAIT(room->word[i] >= least);
}

unsigned char *shared(void)
{
	return room->shared;
}

void may_die(unsigned rank)
{
	room->may_die[rank] = 1;
}

int pid_of(unsigned rank)
{
	AWAIT(room->pid[rank] != 0);
	return room->pid[rank];
}

void signal_rank(unsigned rank, int number)
{
	int pid = pid_of(rank);
	if (number == SIGKILL)
		may_die(rank);
	CHECK(kill(pid, number) == 0);
	if (number == SIGSTOP)
		AWAIT(process_has_state(pid, 'T'));
	if (number == SIGKILL)
		await_end(rank);
}

void await_end(unsigned rank)
{
	int pid = pid_of(rank);
	AWAIT(thread_state(pid) == 0 || thread_state(pid) == 'Z');
}

void leave(void)
{
	may_die(me.rank);
	room->done[me.rank] = 1;
	exit(0);
}

/* ---- processes ---- */

static struct room *map_room(const char *path, int flags)
{
	return map_shared(
		open(path, O_RDWR | O_CLOEXEC | flags, 0600), sizeof(struct room));
}

static void name_domain(char *text, size_t n)
{
	snprintf(text, n, "%s", check_base_name(room_path));
}

int spawn(const char *helper, const char *argument, const char *domain)
{
	char number[12], rank[12], own[64];
	snprintf(number, sizeof number, "%d", suite_now->number);
	snprintf(rank, sizeof rank, "%u", me.rank);
	name_domain(own, sizeof own);
	pid_t parent = getpid(), pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
		(void)unsetenv("PTL3_YOD_FD");
		(void)setenv("PTL3_DOMAIN", domain ? domain : own, 1);
		execl("/proc/self/exe", "helper", "--helper", number, rank, helper,
			argument ? argument : "", (char *)NULL);
		_exit(126);
	}
	return pid;
}

void join(int pid)
{
	int status = 0;
	pid_t got = 0;
	struct patience p = patience_begin();
	while ((got = waitpid(pid, &status, WNOHANG)) == 0) {
		look_at(__FILE__, __LINE__, &p, "the end of a helper");
		sleep_us(100);
	}
	CHECK_EQ(got, pid);
	if (status != 0)
		check_failed(__FILE__, __LINE__, "a helper ends with status %#x",
			(unsigned)status);
}

_Noreturn static void helper_main(char **argv)
{
	suite_now = statement_of(atoi(argv[2]));
	me.rank = (unsigned)atoi(argv[3]);
	me.size = suite_now->processes;
	is_helper = true;
	room = map_room(room_path, 0);
	helper_argument = argv[5];
	exit(scene_run(argv[4]) ? 0 : 125);
}

static bool a_rank_may_die(void)
{
	for (unsigned i = 0; i < me.size; i++)
		if (room->may_die[i])
			return true;
	return false;
}

/* Run a statement's function as one of its processes. */
_Noreturn static void rank_main(int number)
{
	suite_now = statement_of(number);
	room = map_room(room_path, 0);
	me.rank = room->came++;
	me.size = suite_now->processes;
	if (me.rank >= me.size)
		exit(4);
	me.is_client = me.rank == 0;
	me.is_server = me.rank == 1;
	room->pid[me.rank] = getpid();
	suite_now->fn();
	if (!a_rank_may_die() && me.size > 1)
		barrier();
	while (cci_finalize() == CCI_SUCCESS)
		;
	room->done[me.rank] = 1;
	exit(0);
}

/* ---- the driver ---- */

static pid_t started[RANKS_MOST];
static unsigned started_n;

static bool by_hand(void)
{
	const char *by = getenv("CCI_BY");
	return by && strcmp(by, "hand") == 0;
}

/* Return the program that starts ranks on several hosts, or NULL. */
static const char *by_launcher(void)
{
	const char *by = getenv("CCI_BY");
	return by && by[0] == '/' ? by : NULL;
}

_Noreturn static void exec_on_hosts(const char *launcher, const char *number)
{
	enum { HOSTS = 3 };
	char count[12], each[12], path[80];
	unsigned n = suite_now->processes;
	snprintf(count, sizeof count, "%u", n);
	snprintf(each, sizeof each, "%u", (n + HOSTS - 1) / HOSTS);
	snprintf(path, sizeof path, "CCI_ROOM=%s", room_path);
	execl(launcher, launcher, "-n", count, "-p", each, "-x", path, "-x",
		"PTL3_LOG=info", program_path, "--rank", number, (char *)NULL);
	_exit(126);
}

static void exec_ranks(int number)
{
	char count[12], text[12], limit[24], domain[64];
	const char *yod = getenv("P3_YOD"), *most = getenv("P3_LIMIT");
	snprintf(count, sizeof count, "%u", suite_now->processes);
	snprintf(text, sizeof text, "%d", number);
	snprintf(limit, sizeof limit, "%s", most ? most : "3000");
	if (by_launcher())
		exec_on_hosts(by_launcher(), text);
	name_domain(domain, sizeof domain);
	(void)setenv("PTL3_DOMAIN_NODES", "128", 1);
	bool with_domain = by_hand() || (suite_now->flags & DOMAIN);
	(void)setenv("PTL3_DOMAIN", with_domain ? domain : "none", 1);
	if (by_hand())
		execl("/proc/self/exe", "rank", "--rank", text, (char *)NULL);
	else if (with_domain)
		execlp(yod, "yod", "--keep-going", "--timeout", limit, "--domain", domain,
			"-sz", count, program_path, "--rank", text, (char *)NULL);
	else
		execlp(yod, "yod", "--keep-going", "--timeout", limit, "-sz", count,
			program_path, "--rank", text, (char *)NULL);
	_exit(126);
}

static void start_ranks(int number)
{
	started_n = by_hand() ? suite_now->processes : 1;
	for (unsigned i = 0; i < started_n; i++) {
		started[i] = fork();
		if (started[i] < 0)
			exit(3);
		if (started[i] == 0)
			exec_ranks(number);
	}
}

/* Return true if all processes of the test have ended. */
static bool have_ended(bool wait)
{
	bool all = true;
	for (unsigned i = 0; i < started_n; i++) {
		if (started[i] && waitpid(started[i], NULL, wait ? 0 : WNOHANG) != 0)
			started[i] = 0;
		all &= started[i] == 0;
	}
	return all;
}

static void show_stacks(void)
{
	for (unsigned i = 0; i < RANKS_MOST && i < 8; i++) {
		char command[200];
		if (!room->pid[i] || room->done[i])
			continue;
		snprintf(command, sizeof command,
			"timeout 20s gdb -nx -batch -p %d -ex 'thread apply all "
			"backtrace 12' "
			"2>/dev/null </dev/null | grep -E '^(#|Thread)' | head -60 >&2",
			room->pid[i]);
		fprintf(stderr, "# rank %u, state %c:\n", i, thread_state(room->pid[i]));
		if (system(command) != 0)
			fprintf(stderr, "# no gdb\n");
	}
}

/* Return true if this is a process of this test: the number of a rank that has died may
 * belong to another program by now. */
static bool is_of_test(int pid)
{
	static char text[1 << 17];
	char path[40], mark[80];
	snprintf(path, sizeof path, "/proc/%d/environ", pid);
	snprintf(mark, sizeof mark, "CCI_ROOM=%s", room_path);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, text, sizeof text);
	close(fd);
	return n > 0 && memmem(text, (size_t)n, mark, strlen(mark) + 1);
}

static void end_all(void)
{
	for (unsigned i = 0; i < RANKS_MOST; i++)
		if (room->pid[i] && !room->done[i] && is_of_test(room->pid[i]))
			(void)kill(room->pid[i], SIGKILL);
	for (unsigned i = 0; i < started_n && by_hand(); i++)
		if (started[i])
			(void)kill(started[i], SIGKILL);
	struct patience p = patience_ms(2000);
	while (!have_ended(false) && !patience_is_over(&p))
		sleep_us(1000);
	for (unsigned i = 0; i < started_n; i++)
		if (started[i])
			(void)kill(started[i], SIGKILL);
	(void)have_ended(true);
}

/* Fail if a process has ended that should not, or at the end has never begun. */
static void look_at_ranks(bool at_end)
{
	for (unsigned i = 0; i < suite_now->processes; i++) {
		char state = room->pid[i] ? thread_state(room->pid[i]) : '-';
		bool gone = at_end || state == 0 || state == 'Z';
		if (!gone || room->done[i] || room->may_die[i] || room->failed ||
			room->skipped)
			continue;
		fprintf(stderr, "# %d %s: rank %u ends early\n", suite_now->number,
			suite_now->name, i);
		room->failed = 1;
	}
}

/* Return true if a statement's processes cannot be one job on several hosts. */
static bool is_for_one_host(void)
{
	return by_launcher() && suite_now->flags & DOMAIN;
}

/* Run all processes of a statement; return true if none of them fails. */
static bool run_processes(int number)
{
	struct patience p = patience_times(4);
	if (is_for_one_host()) {
		room->skipped = 1;
		snprintf(room->reason, sizeof room->reason, "one host");
		return true;
	}
	start_ranks(number);
	while (!have_ended(false)) {
		if (room->failed || room->skipped)
			break;
		if (patience_is_over(&p)) {
			fprintf(stderr, "# %d %s: does not end\n", number,
				suite_now->name);
			show_stacks();
			room->failed = 1;
		}
		look_at_ranks(false);
		sleep_us(500);
	}
	look_at_ranks(true);
	end_all();
	return !room->failed;
}

static void run(const struct statement *s)
{
	room = map_room(room_path, O_CREAT | O_TRUNC);
	uint64_t began = now_ns();
	bool good = run_processes(s->number);
	suite_report(good, room->skipped ? room->reason : NULL);
	if (getenv("CCI_TIMES"))
		printf("# %d ms\n", (int)((now_ns() - began) / 1000000));
	fflush(stdout);
	(void)munmap(room, sizeof *room);
	failed_firmly |= !good && !(s->flags & WEAK);
}

static void use_one_cpu(void)
{
	cpu_set_t had, one;
	const char *cpus = getenv("CCI_CPUS");
	if (!cpus || strcmp(cpus, "1") != 0)
		return;
	CPU_ZERO(&had);
	(void)sched_getaffinity(0, sizeof had, &had);
	for (size_t i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &had)) {
			CPU_ZERO(&one);
			CPU_SET(i, &one);
			(void)sched_setaffinity(0, sizeof one, &one);
			return;
		}
}

static void choose_room(void)
{
	if (readlink("/proc/self/exe", program_path, sizeof program_path - 1) < 0)
		exit(3);
	/* Hosts share the machine's files, and no other memory. */
	snprintf(room_path, sizeof room_path, "%s/cci_test.%d",
		by_launcher() ? "/tmp" : "/dev/shm", (int)getpid());
	(void)setenv("CCI_ROOM", room_path, 1);
}

int main(int argc, char **argv)
{
	const char *path = getenv("CCI_ROOM");
	if (path)
		snprintf(room_path, sizeof room_path, "%s", path);
	if (argc == 3 && strcmp(argv[1], "--rank") == 0)
		rank_main(atoi(argv[2]));
	if (argc == 6 && strcmp(argv[1], "--helper") == 0)
		helper_main(argv);
	if (!suite_plan(argc, argv, true))
		return 2;
	choose_room();
	use_one_cpu();
	suite_run(argc, argv, run);
	(void)unlink(room_path);
	return failed_firmly;
}

/* ---- data ---- */

enum { PATTERN = 1 << 17, CUTS = 1 << 16 };

const unsigned char *pattern(uint64_t seed)
{
	static unsigned char bytes[PATTERN];
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	static _Atomic bool ready;
	(void)once;
	if (!ready) { /* all threads write the same bytes */
		for (size_t i = 0; i < PATTERN; i += 8) {
			uint64_t x = mix(i);
			memcpy(bytes + i, &x, 8);
		}
		ready = true;
	}
	return bytes + mix(seed) % CUTS;
}

bool is_pattern(const void *at, size_t length, uint64_t seed)
{
	for (size_t i = 0; i < length; i += CUTS, seed++) {
		size_t n = length - i < CUTS ? length - i : CUTS;
		if (memcmp((const char *)at + i, pattern(seed), n) != 0)
			return false;
	}
	return true;
}

void fill(void *at, size_t length, uint64_t seed)
{
	for (size_t i = 0; i < length; i += CUTS, seed++)
		memcpy((char *)at + i, pattern(seed),
			length - i < CUTS ? length - i : CUTS);
}

void check_bytes_at(
	const char *file, int line, const void *at, size_t length, uint64_t seed)
{
	const unsigned char *bytes = at;
	if (is_pattern(at, length, seed))
		return;
	for (size_t i = 0; i < length; i++) {
		unsigned char want = pattern(seed + i / CUTS)[i % CUTS];
		if (bytes[i] != want)
			check_failed(file, line, "byte %zu of %zu is %#x, not %#x", i,
				length, bytes[i], want);
	}
	check_failed(file, line, "the bytes change while they are compared");
}

/* ---- CCI in one line ---- */

void up(void)
{
	uint32_t caps = 1;
	OK(cci_init(CCI_ABI_VERSION, 0, &caps));
}

void down(void)
{
	OK(cci_finalize());
}

/* The URIs of this process: a test may use each of them until its end. */
static struct uri {
	struct uri *before;
	char *text;
} * uris;

const char *uri_of(cci_endpoint_t *ep)
{
	struct uri *uri = calloc(1, sizeof *uri);
	CHECK(uri);
	uri->before = uris;
	uris = uri;
	OK(cci_get_opt((cci_opt_handle_t *)ep, CCI_OPT_ENDPT_URI, &uri->text));
	CHECK(uri->text && strlen(uri->text) < 128);
	return uri->text;
}

void tell_uri(cci_endpoint_t *ep)
{
	unsigned n = room->uris[me.rank];
	snprintf(room->uri[me.rank][n % URIS_MOST], sizeof room->uri[0][0], "%s",
		uri_of(ep));
	room->uris[me.rank] = n + 1;
}

unsigned uris_told(void)
{
	return room->uris[me.rank];
}

const char *told_uri(unsigned rank, unsigned n)
{
	AWAIT(room->uris[rank] > n);
	return room->uri[rank][n % URIS_MOST];
}

cci_endpoint_t *endpoint_fd(int *fd)
{
	cci_endpoint_t *ep = NULL;
	OK(cci_create_endpoint(NULL, 0, &ep, fd));
	CHECK(ep);
	tell_uri(ep);
	return ep;
}

cci_endpoint_t *endpoint(void)
{
	return endpoint_fd(NULL);
}

cci_event_t *next_at(const char *file, int line, cci_endpoint_t *ep)
{
	cci_event_t *event = NULL;
	struct patience p = patience_begin();
	int rc;
	while ((rc = cci_get_event(ep, &event)) == CCI_EAGAIN || rc == CCI_ENOBUFS)
		look_at(file, line, &p, "an event");
	if (rc != CCI_SUCCESS || !event)
		check_failed(file, line, "cci_get_event gives %s", check_code(rc));
	return event;
}

int status_of(cci_event_t *event)
{
	switch (event->type) {
	case CCI_EVENT_SEND:
		return (int)event->send.status;
	case CCI_EVENT_CONNECT:
		return (int)event->connect.status;
	case CCI_EVENT_ACCEPT:
		return (int)event->accept.status;
	default:
		return CCI_SUCCESS;
	}
}

cci_event_t *expect_at(
	const char *file, int line, cci_endpoint_t *ep, cci_event_type_t type, int status)
{
	cci_event_t *event = next_at(file, line, ep);
	if (event->type != type)
		check_failed(file, line, "the event is %s (%s), not %s",
			cci_event_type_str(event->type), check_code(status_of(event)),
			cci_event_type_str(type));
	if (status_of(event) != status)
		check_failed(file, line, "%s has status %s, not %s",
			cci_event_type_str(type), check_code(status_of(event)),
			check_code(status));
	return event;
}

void sent_at(const char *file, int line, cci_endpoint_t *ep, const void *context)
{
	cci_event_t *event = expect_at(file, line, ep, CCI_EVENT_SEND, CCI_SUCCESS);
	if (event->send.context != context)
		check_failed(file, line, "the context is %p, not %p", event->send.context,
			context);
	RETURN(event);
}

void silence_at(const char *file, int line, cci_endpoint_t *ep, unsigned ms)
{
	cci_event_t *event;
	uint64_t end = now_ns() + ms * UINT64_C(1000000);
	do {
		int rc = cci_get_event(ep, &event);
		if (rc == CCI_SUCCESS)
			check_failed(file, line, "%s (%s) comes, and nothing should",
				cci_event_type_str(event->type),
				check_code(status_of(event)));
		if (rc != CCI_EAGAIN && rc != CCI_ENOBUFS)
			check_failed(
				file, line, "cci_get_event gives %s", check_code(rc));
		if (event)
			check_failed(
				file, line, "an event comes with %s", check_code(rc));
	} while (now_ns() < end);
}

void ask(cci_endpoint_t *ep, const char *uri, cci_conn_attribute_t attribute,
	const void *context)
{
	OK(cci_connect(ep, uri, NULL, 0, attribute, context, 0, NULL));
}

static cci_connection_t *connection_of(cci_event_t *event)
{
	cci_connection_t *conn = event->connect.connection;
	CHECK(conn);
	RETURN(event);
	return conn;
}

cci_connection_t *connect_to(cci_endpoint_t *ep, const char *uri,
	cci_conn_attribute_t attribute, const void *context)
{
	ask(ep, uri, attribute, context);
	return connection_of(EXPECT(ep, CCI_EVENT_CONNECT));
}

/* A request that came before the ACCEPT of the last one: events of two connections have
 * no order. */
static struct {
	cci_endpoint_t *ep;
	cci_event_t *request;
} early;

static cci_event_t *next_request(cci_endpoint_t *ep)
{
	if (early.ep != ep)
		return EXPECT(ep, CCI_EVENT_CONNECT_REQUEST);
	early.ep = NULL;
	return early.request;
}

cci_connection_t *accept_one(cci_endpoint_t *ep, const void *context)
{
	cci_event_t *request = next_request(ep);
	OK(cci_accept(request, context));
	RETURN(request);
	cci_event_t *event = NEXT(ep);
	if (event->type == CCI_EVENT_CONNECT_REQUEST && !early.ep) {
		early.ep = ep;
		early.request = event;
		event = NEXT(ep);
	}
	CHECK(event->type == CCI_EVENT_ACCEPT);
	CHECK_EQ(event->accept.status, CCI_SUCCESS);
	return connection_of(event);
}

cci_connection_t *meet_again(
	cci_endpoint_t *ep, unsigned nth_uri, cci_conn_attribute_t attribute)
{
	if (me.is_client)
		return connect_to(ep, told_uri(1, nth_uri), attribute, CONTEXT(0xc11e47));
	return me.is_server ? accept_one(ep, CONTEXT(0x5e44e4)) : NULL;
}

struct side meet_fd(cci_conn_attribute_t attribute, int *fd)
{
	struct side s;
	up();
	unsigned nth = uris_told();
	s.ep = endpoint_fd(fd);
	s.conn = meet_again(s.ep, nth, attribute);
	return s;
}

struct side meet(cci_conn_attribute_t attribute)
{
	return meet_fd(attribute, NULL);
}

struct both both(cci_conn_attribute_t attribute)
{
	struct both two;
	up();
	two.a.ep = endpoint();
	two.b.ep = endpoint();
	ask(two.a.ep, uri_of(two.b.ep), attribute, CONTEXT(1));
	cci_event_t *request = EXPECT(two.b.ep, CCI_EVENT_CONNECT_REQUEST);
	OK(cci_accept(request, CONTEXT(2)));
	RETURN(request);
	two.a.conn = connection_of(EXPECT(two.a.ep, CCI_EVENT_CONNECT));
	two.b.conn = connection_of(EXPECT(two.b.ep, CCI_EVENT_ACCEPT));
	return two;
}

uint32_t option(const void *handle, cci_opt_name_t name)
{
	uint32_t value = 0;
	OK(cci_get_opt((cci_opt_handle_t *)handle, name, &value));
	return value;
}

void set_option(const void *handle, cci_opt_name_t name, uint32_t value)
{
	OK(cci_set_opt((cci_opt_handle_t *)handle, name, &value));
}
