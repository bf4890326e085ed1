/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meet - processes without a launcher find, reach and lose each other
 *
 *	meet SCENE
 *	meet member PID		one that obeys orders
 *	meet churner PID HOW	one of scene churn
 */
#include "member.h"
#include "../support/asleep.h"

#include <portals3x.h>

#include <errno.h>
#include <glob.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- two members ---- */

static void expect_put(struct kid *from, const struct kid *to, size_t n, unsigned entry,
	enum outcome wanted)
{
	enum outcome out =
		kid_put(from, to, n, entry, wanted == ACKED ? MEMBER_LONG_MS : 100);
	if (out != wanted)
		fail("a put of %zu bytes from pid %u to pid %u is %d, not %d", n,
			from->id.pid, to->id.pid, (int)out, (int)wanted);
}

static void expect_ok(struct kid *k, const char *order)
{
	const char *word = kid_ask(k, "%s", order);
	if (strcmp(word, "ok") != 0)
		fail("'%s' is answered '%s'", order, word);
}

static void talk(struct kid *a, struct kid *b)
{
	static const size_t lengths[] = {0, 8, 16, 17, 3000, 70000, MEMBER_LONGEST};
	kid_meet(a, b);
	kid_meet(b, a);
	for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
		expect_put(a, b, lengths[i], 0, ACKED);
		expect_put(b, a, lengths[i], 0, ACKED);
	}
}

/* Automatic ids, given ones; a member that left is gone, one that returns is
 * reachable. */
static void scene_two(void)
{
	struct kid a = kid_start(PTL_PID_ANY), b = kid_start(PTL_PID_ANY);
	struct kid c = kid_start(3000);
	if (a.id.nid != 0x7f000001 || a.id.pid == b.id.pid || a.id.pid >= 32768 ||
		c.id.pid != 3000)
		fail("ids %u and %u on node %#x", a.id.pid, b.id.pid, a.id.nid);
	if (a.jid == b.jid || a.uid != b.uid)
		fail("two processes started by hand have job %u", a.jid);
	talk(&a, &b);
	talk(&b, &c);
	kid_leave(&c);
	kid_await_company(&a, 2);
	expect_put(&a, &c, 100, 0, SENT);
	c = kid_start(3000);
	talk(&a, &c);
	kid_leave(&a);
	kid_leave(&b);
	kid_leave(&c);
	expect_nothing_left();
}

static void scene_child(void)
{
	struct kid a = kid_start(PTL_PID_ANY), b = kid_start(PTL_PID_ANY);
	if (strcmp(kid_ask(&a, "child"), "ok") != 0)
		fail("a forked child cannot join");
	talk(&a, &b);
	kid_leave(&a);
	kid_leave(&b);
	expect_nothing_left();
}

static void scene_clash(void)
{
	struct kid a = kid_start(777), b = kid_spawn(777);
	if (kid_joined(&b))
		fail("two have one process id");
	int status = kid_status(&b);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != MEMBER_CLASH)
		fail("a clash ends with status %#x", status);
	setenv("PTL3_NID", "10.0.0.7", 1);
	b = kid_start(777); /* on another node it is another id */
	unsetenv("PTL3_NID");
	if (b.id.nid != 0x0a000007)
		fail("PTL3_NID gives %#x", b.id.nid);
	talk(&a, &b);
	kid_kill(&a);
	a = kid_start(777); /* it is free again */
	talk(&a, &b);
	kid_leave(&a);
	kid_leave(&b);
	expect_nothing_left();
}

/* ---- deaths ---- */

/* Wait until only this number of members has a socket in the domain's directory. */
static void await_sockets(size_t n)
{
	char path[100];
	struct patience p = patience_begin();
	glob_t found = {.gl_pathc = 0};
	snprintf(path, sizeof path, "/dev/shm/ptl3-%u/%s/*.sock", (unsigned)geteuid(),
		getenv("PTL3_DOMAIN"));
	do {
		if (patience_is_over(&p))
			fail("there are %zu sockets of %zu members", found.gl_pathc, n);
		globfree(&found);
		(void)glob(path, 0, NULL, &found);
	} while (found.gl_pathc != n);
	globfree(&found);
}

static void scene_killed(void)
{
	struct kid a = kid_start(PTL_PID_ANY), b = kid_start(500), c = kid_start(501);
	talk(&a, &b);
	kid_kill(&b);
	kid_lost(&a, &b);
	kid_ask(&c, "sleeper 0"); /* the sleeper holds copies of all its descriptors */
	kid_kill(&c);
	kid_lost(&a, &c);
	c = kid_start(501); /* beside the sleeper; it removes what the dead have left */
	talk(&a, &c);
	await_sockets(2);
	kid_kill(&c);
	kid_leave(&a);
	expect_nothing_left();
}

/* Make a directory whose maker was killed at once. */
static void bare_path(char path[120])
{
	snprintf(path, 120, "/dev/shm/ptl3-%u/%.40s.bare", (unsigned)geteuid(),
		getenv("PTL3_DOMAIN"));
}

static void make_bare(void)
{
	char path[120];
	bare_path(path);
	if (mkdir(path, 0700) != 0)
		fail("%s cannot be made: %s", path, strerror(errno));
}

static void expect_no_bare(void)
{
	char path[120];
	bare_path(path);
	if (rmdir(path) == 0)
		fail("%s was still there", path);
}

/* The rest of a domain whose members are all dead is removed when another is entered. */
static void scene_swept(void)
{
	char own[60], other[80];
	snprintf(own, sizeof own, "%.40s", getenv("PTL3_DOMAIN"));
	snprintf(other, sizeof other, "%.30s-other", own);
	struct kid a = kid_start(PTL_PID_ANY), b = kid_start(PTL_PID_ANY);
	kid_kill(&a);
	setenv("PTL3_DOMAIN", other, 1);
	struct kid c = kid_start(PTL_PID_ANY);
	setenv("PTL3_DOMAIN", own, 1);
	a = kid_start(PTL_PID_ANY); /* b is in there and alive */
	talk(&a, &b);
	kid_kill(&a);
	kid_kill(&b);
	setenv("PTL3_DOMAIN", other, 1);
	make_bare();
	struct kid d = kid_start(PTL_PID_ANY);
	expect_no_bare();
	setenv("PTL3_DOMAIN", own, 1);
	expect_nothing_left();
	setenv("PTL3_DOMAIN", other, 1);
	talk(&c, &d);
	kid_leave(&c);
	kid_leave(&d);
	expect_nothing_left();
}

/* Check that the threads of a member that is idle take little CPU time. */
static void expect_idle(struct kid *k)
{
	unsigned long before, after;
	sscanf(kid_ask(k, "cpu"), "%lu", &before);
	uint64_t began = now_ms();
	/* pause: the time over which the CPU time is measured */
	usleep(600000);
	sscanf(kid_ask(k, "cpu"), "%lu", &after);
	uint64_t ms = now_ms() - began;
	if (after - before > ms / 6)
		fail("threads of an idle member take %lu ms of %llu", after - before,
			(unsigned long long)ms);
}

static void stop(const struct kid *k)
{
	kill(k->os_pid, SIGSTOP);
	if (!await_stopped(k->os_pid))
		fail("process %d does not stop", (int)k->os_pid);
}

/*
 * A child of a member that stays holds copies of its connections to members that left
 * or were killed; it was stopped when the first one left, and has many packets to read.
 */
static void scene_left(void)
{
	struct kid a = kid_start(PTL_PID_ANY), c = kid_start(501);
	/* the default pid of its other interface */
	struct kid b = kid_start(100 + 16384);
	kid_ask(&a, "sleeper 0");
	stop(&a);
	kid_ask(&b, "ids 60");
	kid_leave(&b);
	kill(a.os_pid, SIGCONT);
	kid_await_company(&a, 2); /* it has read the packets, and knows that b has left */
	expect_put(&a, &b, 100, 0, SENT);
	kid_kill(&c);
	kid_lost(&a, &c);
	expect_idle(&a);
	kid_leave(&a);
	expect_nothing_left();
}

/* A member that closes all descriptors leaves the domain, and takes nothing of the files
 * that get their numbers; its slot and its id are free for others. */
static void scene_closed(void)
{
	struct kid a = kid_start(PTL_PID_ANY), b = kid_start(500);
	talk(&a, &b);
	expect_ok(&b, "sweep");
	kid_lost(&a, &b);
	kid_lost(&b, &a);
	expect_idle(&b); /* without descriptors */
	struct kid c = kid_start(500);
	talk(&a, &c);
	expect_ok(&b, "pipes");
	kid_leave(&b);
	talk(&a, &c);
	kid_leave(&a);
	kid_leave(&c);
	expect_nothing_left();
}

/*
 * The same if it closes one descriptor: that of the other process, or the connection, of
 * which a child holds a copy while packets come.
 */
static void scene_replaced(void)
{
	struct kid a = kid_start(PTL_PID_ANY), b = kid_start(500), c = kid_start(501);
	talk(&a, &b);
	expect_ok(&b, "take pidfd");
	kid_lost(&a, &b);
	expect_ok(&b, "pipes");
	kid_leave(&b);
	expect_ok(&c, "sleeper 3000");
	expect_ok(&c, "take socket:");
	expect_ok(&a, "ids 5");
	kid_lost(&a, &c);
	expect_ok(&c, "pipes");
	kid_leave(&c);
	b = kid_start(500);
	talk(&a, &b);
	expect_ok(&b, "take pidfd");
	kid_kill(&a);
	kid_lost(&b, &a);
	expect_ok(&b, "pipes");
	kid_leave(&b);
	expect_nothing_left();
}

static void scene_exec(void)
{
	struct kid a = kid_start(PTL_PID_ANY), b = kid_start(500), c = kid_start(501);
	kid_tell(&b, "exec");
	kid_lost(&a, &b);
	kid_ask(&c, "sleeper 0");
	kid_tell(&c, "exec");
	kid_lost(&a, &c);
	kid_kill(&b);
	kid_kill(&c);
	kid_leave(&a);
	expect_nothing_left();
}

/* Give the next process this number.  Return false without the privilege. */
static bool set_next_pid(pid_t pid)
{
	FILE *f = fopen("/proc/sys/kernel/ns_last_pid", "w");
	if (!f)
		return false;
	fprintf(f, "%d", (int)pid - 1);
	return fclose(f) == 0;
}

/* Another process gets the number of a dead one, whose child holds its sockets. */
static bool reuse_once(struct kid *a, ptl_pid_t pid)
{
	struct kid b = kid_start(pid);
	kid_meet(a, &b);
	expect_put(a, &b, 70000, 0, ACKED);
	kid_ask(&b, "sleeper 0");
	kid_kill(&b);
	bool can = set_next_pid(b.os_pid);
	struct kid c = kid_start(pid + 1);
	bool same = c.os_pid == b.os_pid;
	kid_lost(a, &b);
	talk(a, &c);
	kid_leave(&c);
	if (can && same)
		printf("# process %d was two members\n", (int)b.os_pid);
	return !can || same;
}

static void scene_reused(void)
{
	struct kid a = kid_start(PTL_PID_ANY);
	for (ptl_pid_t i = 0; i < 20; i++)
		if (reuse_once(&a, 600 + 2 * i))
			break;
	kid_leave(&a);
	expect_nothing_left();
}

/* Return the number of whole messages that have come to a member. */
static unsigned long got_by(struct kid *k)
{
	unsigned long got = 0;
	sscanf(kid_ask(k, "got"), "%lu", &got);
	return got;
}

/* Let a member send long puts, until some have come. */
static void begin_flood(struct kid *from, struct kid *to)
{
	unsigned long before = got_by(to);
	struct patience p = patience_begin();
	kid_tell(from, "flood %u %u", to->id.nid, to->id.pid);
	while (got_by(to) == before)
		if (patience_is_over(&p))
			fail("no long puts come");
}

/* Killed in the middle of long puts: arrived bytes are whole, the rest ends with a
 * failure. */
static void scene_torn(void)
{
	struct kid a = kid_start(PTL_PID_ANY);
	unsigned long got = 0, failed = 0;
	unsigned jid;
	for (ptl_pid_t i = 0; i < 12; i++) {
		struct kid b = kid_start(600 + i);
		if (i % 3 == 2)
			kid_ask(&b, "sleeper 0");
		begin_flood(&b, &a);
		/* pause: each round kills the process at another point of its puts */
		usleep(i * 1777);
		kid_kill(&b);
		kid_lost(&a, &b);
	}
	sscanf(kid_ask(&a, "got"), "%lu %lu %u", &got, &failed, &jid);
	printf("# tried: 12 deaths in long puts; %lu came whole, %lu failed\n", got,
		failed);
	struct kid b = kid_start(PTL_PID_ANY);
	talk(&a, &b);
	kid_leave(&a);
	kid_leave(&b);
	expect_nothing_left();
}

/* ---- a stopped member ---- */

static void scene_stopped(void)
{
	struct kid a = kid_start(500), b = kid_start(501);
	talk(&a, &b);
	stop(&b);
	struct patience p = patience_begin();
	uint64_t began = now_ms();
	struct kid c = kid_start(502);
	if (patience_is_over(&p))
		fail("a stopped member holds up a newcomer for %llu ms",
			(unsigned long long)(now_ms() - began));
	talk(&a, &c);
	kill(b.os_pid, SIGCONT);
	kid_await_company(&b, 3);
	kid_await_company(&c, 3);
	talk(&b, &c);
	talk(&a, &b);
	kid_leave(&a);
	kid_leave(&b);
	kid_leave(&c);
	expect_nothing_left();
}

/* The called member has no room to introduce itself for a while. */
static void scene_unanswered(void)
{
	setenv("P3_MEMBER_PLAIN", "1", 1);
	struct kid a = kid_start(500);
	unsetenv("P3_MEMBER_PLAIN");
	expect_ok(&a, "cram 1");
	uint64_t began = now_ms();
	struct kid b = kid_spawn(501);
	/* It waits for a second, which may be over if this process had no CPU. */
	if (kid_says(&b, 300) && now_ms() - began < 1000)
		fail("who joins is not waiting for an answer");
	expect_ok(&a, "cram 0");
	if (!kid_joined(&b))
		fail("who joins has ended");
	talk(&b, &a);
	kid_leave(&b);
	kid_await_company(&a, 1);
	expect_put(&a, &b, 100, 0, SENT);
	kid_leave(&a);
	expect_nothing_left();
}

/* ---- many members that come and go ---- */

enum how { LEAVES, EXITS, KILLED, KILLED_LATE, KILLED_BY_OTHERS, EXECS, HOWS };
enum { FIRST = 1000, CHURNERS = 8, ANCHORS = 2, ROUNDS = 48 };

static ptl_process_id_t anchor(int i)
{
	return (ptl_process_id_t){0x7f000001, (ptl_pid_t)(FIRST - 1 - i)};
}

/* Be a process of scene churn: put to both anchors, and end in this way. */
static _Noreturn void churner(ptl_pid_t pid, enum how how)
{
	member_start(pid);
	for (int i = 0; i < ANCHORS; i++)
		member_meet(anchor(i));
	srand((unsigned)getpid());
	for (int i = 0; i < 4; i++) {
		size_t n = i == 3 ? 300000 : (size_t)rand() % 9000;
		enum outcome out = member_put(anchor(i % ANCHORS), n, 0, MEMBER_LONG_MS);
		if (out != ACKED)
			fail("churner %u: put %d of %zu bytes to an anchor is %d", pid, i,
				n, (int)out);
	}
	ptl_process_id_t other = {0x7f000001, (ptl_pid_t)(FIRST + rand() % CHURNERS)};
	if (other.pid != pid && member_put(other, 5000, 0, 0) == HUNG)
		fail("a put to somebody who comes and goes does not end");
	if (how == KILLED_LATE && fork() == 0) {
		/* pause: a child outlives its parent for this time */
		usleep(200000);
		_exit(0);
	}
	if (how == KILLED || how == KILLED_LATE)
		kill(getpid(), SIGKILL);
	if (how == EXECS)
		execlp("true", "true", NULL);
	if (how == KILLED_BY_OTHERS)
		member_flood(anchor(0), 1);
	if (how == LEAVES)
		member_end();
	_exit(0);
}

static pid_t start_churner(int i, enum how how)
{
	char pid[20], text[20];
	snprintf(pid, sizeof pid, "%d", FIRST + i);
	snprintf(text, sizeof text, "%d", (int)how);
	pid_t os_pid = fork();
	if (os_pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl("/proc/self/exe", "meet", "churner", pid, text, NULL);
		_exit(127);
	}
	return os_pid;
}

struct churn {
	pid_t os_pid[CHURNERS];
	enum how how[CHURNERS];
	uint64_t kill_at[CHURNERS];
	long begun, ended, rounds;
	struct kid anchor[ANCHORS];
};

static void one_ended(struct churn *c, int i, int status)
{
	bool killed = c->how[i] == KILLED || c->how[i] == KILLED_LATE ||
		      c->how[i] == KILLED_BY_OTHERS;
	if (killed ? !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL : status != 0)
		fail("churner %d of kind %d ended with status %#x", i, (int)c->how[i],
			status);
	c->os_pid[i] = 0;
	c->ended++;
}

static void look_after(struct churn *c, int i)
{
	int status;
	if (c->os_pid[i] && waitpid(c->os_pid[i], &status, WNOHANG) > 0)
		one_ended(c, i, status);
	if (c->os_pid[i] && c->how[i] == KILLED_BY_OTHERS && now_ms() > c->kill_at[i])
		kill(c->os_pid[i], SIGKILL);
	if (c->os_pid[i] || c->begun == c->rounds)
		return;
	c->how[i] = (enum how)(rand() % HOWS);
	c->kill_at[i] = now_ms() + (uint64_t)(rand() % 150);
	c->os_pid[i] = start_churner(i, c->how[i]);
	c->begun++;
}

static void end_churn(struct churn *c)
{
	unsigned long got, all = 0;
	for (int i = 0; i < ANCHORS; i++) {
		sscanf(kid_ask(&c->anchor[i], "got"), "%lu", &got);
		all += got;
	}
	talk(&c->anchor[0], &c->anchor[1]);
	for (int i = 0; i < ANCHORS; i++)
		kid_leave(&c->anchor[i]);
	printf("# tried: %ld members that came and went, %lu messages to those that "
	       "stayed\n",
		c->ended, all);
	expect_nothing_left();
}

static void scene_churn(void)
{
	const char *rounds = getenv("P3_DOMAIN_ROUNDS"), *seed = getenv("P3_DOMAIN_SEED");
	struct churn c = {.rounds = rounds ? atol(rounds) : ROUNDS};
	srand(seed ? (unsigned)atoi(seed) : (unsigned)getpid());
	for (int i = 0; i < ANCHORS; i++)
		c.anchor[i] = kid_start(anchor(i).pid);
	talk(&c.anchor[0], &c.anchor[1]);
	while (c.ended < c.rounds) {
		for (int i = 0; i < CHURNERS; i++)
			look_after(&c, i);
		expect_put(&c.anchor[0], &c.anchor[1], 20000, 0, ACKED);
		expect_put(&c.anchor[1], &c.anchor[0], 100, 0, ACKED);
	}
	end_churn(&c);
}

/* ---- */

static const struct scene {
	const char *name;
	void (*play)(void);
} scenes[] = {{"two", scene_two}, {"child", scene_child}, {"clash", scene_clash},
	{"killed", scene_killed}, {"left", scene_left}, {"swept", scene_swept},
	{"closed", scene_closed}, {"replaced", scene_replaced}, {"exec", scene_exec},
	{"reused", scene_reused}, {"torn", scene_torn}, {"stopped", scene_stopped},
	{"unanswered", scene_unanswered}, {"churn", scene_churn}};

/* Let no other run of this test on the machine be in the same domain. */
static void name_domain(void)
{
	char name[60];
	const char *given = getenv("PTL3_DOMAIN");
	snprintf(name, sizeof name, "%.30s-%d", given ? given : "meet", (int)getpid());
	setenv("PTL3_DOMAIN", name, 1);
}

static int play(const char *name)
{
	name_domain();
	for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++)
		if (strcmp(name, scenes[i].name) == 0) {
			signal(SIGPIPE, SIG_IGN);
			scenes[i].play();
			return 0;
		}
	fprintf(stderr, "'%s' is no scene\n", name);
	return 2;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 3 && strcmp(argv[1], "churner") == 0)
		churner((ptl_pid_t)atoi(argv[2]), (enum how)atoi(argv[3]));
	if (argc > 2 && strcmp(argv[1], "member") == 0) {
		member_start((ptl_pid_t)strtoul(argv[2], NULL, 10));
		member_say_who();
		member_serve();
		member_end();
		return 0;
	}
	return argc > 1 ? play(argv[1]) : 2;
}
