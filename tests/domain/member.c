/* SPDX-License-Identifier: BSD-3-Clause */
/* A member of a domain that obeys orders. */
#include "member.h"
#include "../support/random.h"
#include "../support/sweep.h"

#include <portals3.h>
#include <portals3_runtime.h>
#include <portals3x.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PORTAL = 4, FLOODED = 5, BUFFERS = 8, BUFFER = 4 << 20, EVENTS = 1 << 14 };
enum { FLOOD = 5 }; /* the seed of all bytes of a flood */

static struct {
	ptl_handle_ni_t ni;
	ptl_handle_eq_t in, out;
	char *buffer[BUFFERS];
	char *source, *flooded;
	unsigned long got, failed;
	unsigned last_jid;
} me;

_Noreturn void fail(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fprintf(stderr, "process %d: ", (int)getpid());
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(1);
}

static void ok(int rc, const char *what)
{
	if (rc != PTL_OK)
		fail("%s: %s", what, PtlErrorStr((unsigned)rc));
}

/* ---- bytes that follow from a seed ---- */

static void fill(char *at, size_t n, uint64_t seed)
{
	for (size_t i = 0; i < n; i += 8) {
		uint64_t word = mix(seed + i);
		memcpy(at + i, &word, n - i < 8 ? n - i : 8);
	}
}

static void compare(const char *at, size_t n, uint64_t seed)
{
	for (size_t i = 0; i < n; i += 8) {
		uint64_t word = mix(seed + i);
		if (memcmp(at + i, &word, n - i < 8 ? n - i : 8) != 0)
			fail("byte %zu or the next of %zu with seed %llx is wrong", i, n,
				(unsigned long long)seed);
	}
}

/* Compare; others write the same bytes over them meanwhile. */
__attribute__((no_sanitize("thread"))) static void compare_flood(const char *at, size_t n)
{
	const volatile uint64_t *word = (const volatile uint64_t *)(const void *)at;
	for (size_t i = 0; i < n / 8; i += 9)
		if (word[i] != mix(FLOOD + i * 8))
			fail("word %zu of a flood is wrong", i);
}

/* ---- receiving ---- */

static void offer(unsigned i)
{
	ptl_process_id_t anyone = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_md_t md = {.start = me.buffer[i],
		.length = BUFFER,
		.threshold = PTL_MD_THRESH_INF,
		.max_size = MEMBER_LONGEST,
		.options = PTL_MD_OP_PUT | PTL_MD_MAX_SIZE | PTL_MD_EVENT_START_DISABLE,
		.user_ptr = (void *)(uintptr_t)i,
		.eq_handle = me.in};
	ptl_handle_me_t at;
	ok(PtlMEAttach(me.ni, PORTAL, anyone, 0, ~0ull, PTL_UNLINK, PTL_INS_AFTER, &at),
		"PtlMEAttach");
	ok(PtlMDAttach(at, md, PTL_UNLINK, NULL), "PtlMDAttach");
}

/* Offer memory for any number of equal messages, which may overwrite each other. */
static void offer_for_floods(void)
{
	ptl_process_id_t anyone = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_md_t md = {.start = me.flooded,
		.length = MEMBER_LONGEST,
		.threshold = PTL_MD_THRESH_INF,
		.options =
			PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE,
		.eq_handle = me.in};
	ptl_handle_me_t at;
	ok(PtlMEAttach(me.ni, FLOODED, anyone, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &at),
		"PtlMEAttach");
	ok(PtlMDAttach(at, md, PTL_RETAIN, NULL), "PtlMDAttach");
}

static void take_event(const ptl_event_t *ev)
{
	if (ev->type == PTL_EVENT_UNLINK) {
		offer((unsigned)(uintptr_t)ev->md.user_ptr);
		return;
	}
	if (ev->type != PTL_EVENT_PUT_END)
		fail("event %d comes", (int)ev->type);
	me.last_jid = ev->jid;
	if (ev->ni_fail_type != PTL_NI_OK) {
		me.failed++;
		return;
	}
	me.got++;
	if (ev->pt_index == FLOODED)
		compare_flood(ev->md.start, ev->mlength);
	else
		compare((char *)ev->md.start + ev->offset, ev->mlength, ev->hdr_data);
}

void member_take(void)
{
	ptl_event_t ev;
	int rc;
	while ((rc = PtlEQGet(me.in, &ev)) == PTL_OK)
		take_event(&ev);
	if (rc != PTL_EQ_EMPTY)
		ok(rc, "PtlEQGet");
}

unsigned long member_got(void)
{
	return me.got;
}

/* ---- sending ---- */

static bool next_event(ptl_event_t *ev, struct patience *p)
{
	ptl_handle_eq_t both[2] = {me.in, me.out};
	while (!patience_is_over(p)) {
		int which, rc = PtlEQPoll(both, 2, 20, ev, &which);
		if (rc == PTL_EQ_EMPTY)
			continue;
		ok(rc, "PtlEQPoll");
		if (which == 1)
			return true;
		take_event(ev);
	}
	return false;
}

static ptl_handle_md_t begin_put(ptl_process_id_t to, size_t n, unsigned entry)
{
	static uint64_t seed;
	ptl_handle_md_t h;
	seed += mix((uint64_t)getpid() * 77 + now_ms()) | 1;
	fill(me.source, n, seed);
	ptl_md_t md = {.start = me.source,
		.length = n,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_EVENT_START_DISABLE,
		.eq_handle = me.out};
	ok(PtlMDBind(me.ni, md, PTL_RETAIN, &h), "PtlMDBind");
	ok(PtlPut(h, PTL_ACK_REQ, to, PORTAL, entry, 0, 0, seed), "PtlPut");
	return h;
}

enum outcome member_put(ptl_process_id_t to, size_t n, unsigned entry, unsigned ms)
{
	ptl_event_t ev;
	ptl_handle_md_t h = begin_put(to, n, entry);
	enum outcome out = HUNG;
	struct patience p = patience_begin();
	while (out != ACKED && out != FAILED && next_event(&ev, &p)) {
		if (ev.md_handle != h)
			continue; /* late, of an earlier put */
		if (ev.type == PTL_EVENT_ACK)
			out = ev.ni_fail_type == PTL_NI_OK ? ACKED : FAILED;
		else if (ev.type == PTL_EVENT_SEND_END)
			out = ev.ni_fail_type == PTL_NI_OK ? SENT : FAILED;
		if (out == SENT && ms < MEMBER_LONG_MS)
			p = patience_ms(ms);
	}
	while (PtlMDUnlink(h) == PTL_MD_IN_USE)
		member_take();
	return out;
}

void member_meet(ptl_process_id_t other)
{
	struct patience p = patience_begin();
	while (member_put(other, 8, 0, MEMBER_LONG_MS) != ACKED)
		if (patience_is_over(&p))
			fail("process id %u cannot be reached", other.pid);
}

static bool is_acked(void)
{
	ptl_event_t ev;
	struct patience p = patience_begin();
	return next_event(&ev, &p) && ev.type == PTL_EVENT_ACK;
}

void member_flood(ptl_process_id_t to, unsigned pause_ms)
{
	int acks = 0;
	fill(me.source, MEMBER_LONGEST, FLOOD);
	ptl_md_t md = {.start = me.source,
		.length = MEMBER_LONGEST,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE,
		.eq_handle = me.out};
	ptl_handle_md_t h;
	ok(PtlMDBind(me.ni, md, PTL_RETAIN, &h), "PtlMDBind");
	for (;;) {
		ok(PtlPut(h, PTL_ACK_REQ, to, FLOODED, 0, 0, 0, FLOOD), "PtlPut");
		for (acks++; acks > 1;)
			acks -= is_acked();
		if (pause_ms)
			poll(NULL, 0, (int)pause_ms);
	}
}

/* ---- life ---- */

/* Become a user without privileges, whose descriptors under way are counted. */
static void give_up_privileges(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[2];
	if (syscall(SYS_capget, &head, caps) != 0)
		fail("capget: %s", strerror(errno));
	caps[0].effective &= ~(1u << CAP_SYS_RESOURCE | 1u << CAP_SYS_ADMIN);
	if (syscall(SYS_capset, &head, caps) != 0)
		fail("capset: %s", strerror(errno));
}

void member_start(ptl_pid_t pid)
{
	int most, rc;
	if (getenv("P3_MEMBER_PLAIN"))
		give_up_privileges();
	ok(PtlInit(&most), "PtlInit");
	rc = PtlNIInit(PTL_IFACE_DEFAULT, pid, NULL, NULL, &me.ni);
	if (rc == PTL_PID_INVALID)
		exit(MEMBER_CLASH);
	if (rc == PTL_IFACE_INVALID)
		exit(MEMBER_REFUSED);
	ok(rc, "PtlNIInit");
	ok(PtlEQAlloc(me.ni, EVENTS, PTL_EQ_HANDLER_NONE, &me.in), "PtlEQAlloc");
	ok(PtlEQAlloc(me.ni, EVENTS, PTL_EQ_HANDLER_NONE, &me.out), "PtlEQAlloc");
	me.source = malloc(MEMBER_LONGEST);
	me.flooded = calloc(1, MEMBER_LONGEST);
	offer_for_floods();
	for (unsigned i = 0; i < BUFFERS; i++) {
		me.buffer[i] = malloc(BUFFER);
		offer(i);
	}
}

void member_end(void)
{
	PtlFini();
}

ptl_process_id_t member_id(void)
{
	ptl_process_id_t id;
	ok(PtlGetId(me.ni, &id), "PtlGetId");
	return id;
}

/* ---- obeying ---- */

static void fork_sleeper(unsigned ms)
{
	pid_t test = getppid();
	if (fork() == 0) {
		for (int fd = 0; fd <= STDERR_FILENO; fd++)
			close(fd); /* no thread waits for this connection */
		if (ms)
			poll(NULL, 0, (int)ms);
		else
			while (kill(test, 0) == 0)
				poll(NULL, 0, 50);
		_exit(0);
	}
}

/* Let a child join as a member of its own; answer whether the parent hears it. */
static const char *child_joins(void)
{
	ptl_process_id_t parent = member_id();
	int status;
	pid_t child = fork();
	if (child == 0) {
		member_start(PTL_PID_ANY);
		member_meet(parent);
		enum outcome out = member_put(parent, 5000, 0, MEMBER_LONG_MS);
		member_end();
		_exit(out == ACKED ? 0 : 9);
	}
	while (waitpid(child, &status, WNOHANG) == 0) {
		member_take();
		poll(NULL, 0, 1);
	}
	return status == 0 ? "ok" : "no";
}

static void become_another(void)
{
	execlp("sleep", "sleep", "5", NULL);
	fail("exec: %s", strerror(errno));
}

/* Allow this number of further descriptors; 0: as before. */
static const char *limit_files(unsigned spare)
{
	static struct rlimit had;
	struct rlimit now;
	if (!had.rlim_cur)
		getrlimit(RLIMIT_NOFILE, &had);
	now = had;
	if (spare)
		now.rlim_cur = 0;
	for (unsigned n = 0; n < spare; now.rlim_cur++)
		n += fcntl((int)now.rlim_cur, F_GETFD) < 0;
	return setrlimit(RLIMIT_NOFILE, &now) == 0 ? "ok" : strerror(errno);
}

static bool send_many(int sock, int fd)
{
	enum { MANY = 250 };
	static union {
		struct cmsghdr head;
		char room[CMSG_SPACE(MANY * sizeof(int))];
	} u;
	struct iovec iov = {.iov_base = "x", .iov_len = 1};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &u,
		.msg_controllen = sizeof u.room};
	u.head = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
		.cmsg_len = CMSG_LEN(MANY * sizeof(int))};
	for (int i = 0; i < MANY; i++)
		memcpy(CMSG_DATA(&u.head) + (size_t)i * sizeof fd, &fd, sizeof fd);
	return sendmsg(sock, &msg, 0) == 1;
}

/* Use up the descriptors that may be under way, or release them. */
static const char *cram(bool so)
{
	static int pair[2];
	if (!so)
		return close(pair[0]) == 0 && close(pair[1]) == 0 ? limit_files(0)
								  : strerror(errno);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0 ||
		!send_many(pair[0], pair[0]))
		return strerror(errno);
	const char *word = limit_files(32);
	return send_many(pair[0], pair[0]) ? "they can still be sent" : word;
}

/* Deny locks to this thread from now on. */
static void have_no_locks(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 3),
		BPF_STMT(
			BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_SETLK, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOLCK),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog all = {sizeof code / sizeof code[0], code};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) != 0)
		fail("seccomp: %s", strerror(errno));
}

static const char *open_without_locks(void)
{
	ptl_handle_ni_t other;
	have_no_locks();
	return PtlErrorStr(
		(unsigned)PtlNIInit(PTL_IFACE_SS, PTL_PID_ANY, NULL, NULL, &other));
}

/* Open and close a second interface, which all others hear of. */
static const char *change_ids(unsigned n)
{
	ptl_handle_ni_t other;
	ptl_process_id_t id;
	for (unsigned i = 0; i < n; i++) {
		ok(PtlNIInit(PTL_IFACE_SS, PTL_PID_ANY, NULL, NULL, &other), "PtlNIInit");
		ok(PtlGetId(other, &id), "PtlGetId");
		if (id.pid == member_id().pid)
			fail("two interfaces have process id %u", id.pid);
		poll(NULL, 0, 2);
		ok(PtlNIFini(other), "PtlNIFini");
		poll(NULL, 0, 2);
	}
	return "ok";
}

static unsigned long company(void)
{
	ptlx_stats_t stats = {.struct_size = sizeof stats};
	ok(PtlXStats(me.ni, &stats), "PtlXStats");
	return (unsigned long)stats.peers_alive;
}

/* Return the CPU time of all threads except this one. */
static unsigned long cpu_ms_of_others(void)
{
	struct rusage all, own;
	getrusage(RUSAGE_SELF, &all);
	getrusage(RUSAGE_THREAD, &own);
	timersub(&all.ru_utime, &own.ru_utime, &all.ru_utime);
	timersub(&all.ru_stime, &own.ru_stime, &all.ru_stime);
	timeradd(&all.ru_utime, &all.ru_stime, &all.ru_utime);
	return (unsigned long)(all.ru_utime.tv_sec * 1000 + all.ru_utime.tv_usec / 1000);
}

static struct sweep swept;

/* Obey an order: one line, with one line of answer. */
static bool obey(char *line)
{
	static const char *const names[] = {"acked", "sent", "failed", "hung"};
	unsigned long a = 0, b = 0, c = 0, d = 0, ms = 0;
	char word[20] = "";
	sscanf(line, "%19s %lu %lu %lu %lu %lu", word, &a, &b, &c, &d, &ms);
	member_take(); /* earlier messages count in the answer */
	ptl_process_id_t to = {(ptl_nid_t)a, (ptl_pid_t)b};
	if (strcmp(word, "put") == 0)
		printf("%s\n", names[member_put(to, c, (unsigned)d, (unsigned)ms)]);
	else if (strcmp(word, "flood") == 0)
		member_flood(to, 0);
	else if (strcmp(word, "got") == 0)
		printf("%lu %lu %u\n", me.got, me.failed, me.last_jid);
	else if (strcmp(word, "admit") == 0) /* entry uid jid */
		printf("%d\n", PtlACEntry(me.ni, (ptl_ac_index_t)a,
				       (ptl_process_id_t){PTL_NID_ANY, PTL_PID_ANY},
				       (ptl_uid_t)b, (ptl_jid_t)c, PTL_PT_INDEX_ANY));
	else if (strcmp(word, "sleeper") == 0)
		fork_sleeper((unsigned)a), puts("ok");
	else if (strcmp(word, "ids") == 0)
		puts(change_ids((unsigned)a));
	else if (strcmp(word, "files") == 0)
		puts(limit_files((unsigned)a));
	else if (strcmp(word, "cram") == 0)
		puts(cram(a));
	else if (strcmp(word, "locks") == 0)
		puts(open_without_locks());
	else if (strcmp(word, "barrier") == 0)
		puts(PtlXBarrier() == PTL_OK ? "released" : "failed");
	else if (strcmp(word, "company") == 0)
		printf("%lu\n", company());
	else if (strcmp(word, "cpu") == 0)
		printf("%lu\n", cpu_ms_of_others());
	else if (strcmp(word, "child") == 0)
		puts(child_joins());
	else if (strcmp(word, "sweep") == 0)
		puts(sweep(&swept) ? "ok" : "few");
	else if (sscanf(line, "take %19s", word) == 1)
		puts(sweep_one(&swept, word) ? "ok" : "none");
	else if (strcmp(word, "pipes") == 0)
		puts(sweep_touched(&swept) < 0 ? "ok" : "touched");
	else if (strcmp(word, "exec") == 0)
		become_another();
	else
		return false;
	fflush(stdout);
	return true;
}

/* Obey all whole lines, and remove them.  Return false at the end. */
static bool obey_all(char *lines)
{
	for (char *end; (end = strchr(lines, '\n')) != NULL;) {
		*end = '\0';
		if (!obey(lines))
			return false;
		memmove(lines, end + 1, strlen(end + 1) + 1);
	}
	return true;
}

/* Serve: orders come line by line; at the end of file leave. */
void member_serve(void)
{
	char lines[200] = "";
	for (;;) {
		struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
		size_t n = strlen(lines);
		member_take();
		if (poll(&in, 1, 1) <= 0)
			continue;
		ssize_t got = read(STDIN_FILENO, lines + n, sizeof lines - n - 1);
		if (got <= 0)
			return;
		lines[n + (size_t)got] = '\0';
		if (!obey_all(lines))
			return;
	}
}

void member_say_who(void)
{
	ptl_process_id_t id = member_id();
	ptl_jid_t jid;
	ptl_uid_t uid;
	ok(PtlGetJid(me.ni, &jid), "PtlGetJid");
	ok(PtlGetUid(me.ni, &uid), "PtlGetUid");
	printf("%u %u %u %u\n", id.nid, id.pid, jid, uid);
	fflush(stdout);
}
