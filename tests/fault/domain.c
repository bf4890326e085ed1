/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * domain - a member of a domain dies at every point (shm/fault.h) named domain.* or
 * meet.*, and the others stay well
 *
 *	fault_domain [PART OF A POINT'S NAME]
 *	fault_domain member PID		one that obeys (tests/domain/member.h)
 *
 * Each play has a victim.  It is played once without a death, to count how often the
 * victim passes each point, and then for each of these, where it dies at the first and
 * at the last time.  Then all that stay lose the victim, and reach each other and its
 * successor; when they have left nothing is there any more.
 */
#include "domain/member.h"

#include <errno.h>
#include <portals3.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { POINTS = 200, RANKS = 3, SLOW_MS = 3300, EARLY_MS = 300 };

struct point {
	char name[64];
	unsigned reached; /* times that the victim reached it in the last count */
	bool done;
};

static struct point points[POINTS];
static int npoints, runs, strikes;
static char own[40], other[60], now_playing[200];

/* ---- the victim ---- */

/* Start the victim, with its standard error in a file. */
static struct kid spawn_victim(ptl_pid_t pid, const char *fault, int err)
{
	int was = dup(STDERR_FILENO);
	dup2(err, STDERR_FILENO);
	setenv("PTL3_FAULT", fault, 1);
	struct kid k = kid_spawn(pid);
	unsetenv("PTL3_FAULT");
	dup2(was, STDERR_FILENO);
	close(was);
	return k;
}

/* Send an order.  Return false if the victim is dead. */
static bool ask(struct kid *k, const char *order)
{
	char line[200];
	return fprintf(k->to, "%s\n", order) > 0 && fflush(k->to) == 0 &&
	       fgets(line, sizeof line, k->from);
}

/* Return true if it was killed; any other end must be in order. */
static bool is_killed(struct kid *v)
{
	int status = kid_status(v);
	if (status != 0 && (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL))
		fail("%s: the victim ends with status %#x", now_playing, status);
	return status != 0;
}

/* ---- the survivors ---- */

static void expect(struct kid *from, const struct kid *to, size_t n)
{
	enum outcome out = kid_put(from, to, n, 0, 5000);
	if (out != ACKED)
		fail("%s: a put from pid %u to pid %u is %d", now_playing, from->id.pid,
			to->id.pid, (int)out);
}

static void talk(struct kid *a, struct kid *b)
{
	expect(a, b, 100);
	expect(b, a, 70000);
}

/* Expect the loss; if it died before it was known, messages to it end well. */
static void expect_lost(struct kid *from, const struct kid *victim)
{
	enum outcome out = kid_put(from, victim, 100, 0, 100);
	if (out == SENT)
		out = kid_put(from, victim, 70000, 0, 100);
	if (out != FAILED && out != SENT)
		fail("%s: a put to the dead is %d", now_playing, (int)out);
}

static void expect_no_user(void)
{
	char path[60];
	snprintf(path, sizeof path, "/dev/shm/ptl3-%u", (unsigned)geteuid());
	if (rmdir(path) == 0)
		fail("%s: %s is left", now_playing, path);
}

/* Leave a dead member in another domain. */
static void leave_dead_domain(void)
{
	setenv("PTL3_DOMAIN", other, 1);
	struct kid x = kid_start(PTL_PID_ANY);
	setenv("PTL3_DOMAIN", own, 1);
	kid_kill(&x);
}

static void leave_dead_slots(void)
{
	struct kid d = kid_start(600), e = kid_start(601);
	kid_kill(&d);
	kid_kill(&e);
}

static void expect_both_gone(void)
{
	setenv("PTL3_DOMAIN", other, 1);
	expect_nothing_left();
	setenv("PTL3_DOMAIN", own, 1);
	expect_nothing_left();
}

/* ---- plays: each returns true if the victim was killed ---- */

/* It comes, talks, changes ids, hears of another member that comes and goes, and
 * leaves. */
static void live(struct kid *v, struct kid *a)
{
	char put[60];
	snprintf(put, sizeof put, "put %u %u 5000 0 2000", a->id.nid, a->id.pid);
	bool lives = kid_joined(v) && ask(v, put) && ask(v, "ids 1");
	struct kid c = kid_start(502);
	kid_ask(&c, "ids 1");
	if (lives)
		(void)kid_put(&c, v, 3000, 0, 2000);
	talk(&c, a);
	kid_leave(&c);
}

static bool play_among(const char *fault, int err)
{
	struct kid a = kid_start(500);
	leave_dead_slots();
	leave_dead_domain();
	struct kid v = spawn_victim(501, fault, err);
	live(&v, &a);
	bool killed = is_killed(&v);
	v.id = (ptl_process_id_t){a.id.nid, 501};
	if (killed)
		expect_lost(&a, &v);
	struct kid w = kid_start(501);
	talk(&a, &w);
	kid_leave(&a);
	kid_leave(&w);
	expect_both_gone();
	return killed;
}

static bool play_alone(const char *fault, int err)
{
	struct kid v = spawn_victim(501, fault, err);
	(void)kid_joined(&v);
	bool killed = is_killed(&v);
	struct kid w = kid_start(501);
	kid_leave(&w);
	expect_nothing_left();
	expect_no_user();
	return killed;
}

/* Check the others' barrier; the victim may be dead before, or die in it. */
static void all_in_barrier(struct kid *k, unsigned victim, const char *wanted)
{
	for (unsigned i = 0; i < RANKS; i++)
		if (i != victim || !wanted)
			kid_tell(&k[i], "barrier");
	for (unsigned i = 0; i < RANKS; i++) {
		char line[40] = "";
		bool told = (i != victim || !wanted) &&
			    fgets(line, sizeof line, k[i].from) != NULL;
		line[strcspn(line, "\n")] = '\0';
		if (i != victim && (!told || (wanted && strcmp(line, wanted) != 0)))
			fail("%s: rank %u's barrier is '%s'", now_playing, i, line);
	}
}

static void start_ranks(struct kid *k, unsigned victim, const char *fault, int err)
{
	char text[20];
	for (unsigned i = 0; i < RANKS; i++) {
		snprintf(text, sizeof text, "%u", i);
		setenv("PMI_RANK", text, 1);
		k[i] = i == victim ? spawn_victim(PTL_PID_ANY, fault, err)
				   : kid_spawn(PTL_PID_ANY);
	}
	for (unsigned i = 0; i < RANKS; i++)
		if (!kid_joined(&k[i]))
			fail("%s: rank %u does not start", now_playing, i);
}

/* A job of another launcher: the end of one rank, in order or not, ends the barriers. */
static bool play_ranks(unsigned victim, const char *fault, int err)
{
	struct kid k[RANKS];
	char job[40], domain[60];
	snprintf(job, sizeof job, "fault-%d", (int)getpid());
	snprintf(domain, sizeof domain, "pmi-%s", job);
	setenv("PMI_JOBID", job, 1);
	setenv("PMI_SIZE", "3", 1);
	unsetenv("PTL3_DOMAIN");
	start_ranks(k, victim, fault, err);
	all_in_barrier(k, victim, NULL);
	all_in_barrier(k, victim, NULL);
	bool killed = is_killed(&k[victim]);
	all_in_barrier(k, victim, "failed");
	for (unsigned i = 0; i < RANKS; i++)
		if (i != victim)
			kid_leave(&k[i]);
	unsetenv("PMI_RANK");
	setenv("PTL3_DOMAIN", domain, 1);
	expect_nothing_left();
	setenv("PTL3_DOMAIN", own, 1);
	return killed;
}

static bool play_rank_0(const char *fault, int err)
{
	return play_ranks(0, fault, err);
}

static bool play_rank_1(const char *fault, int err)
{
	return play_ranks(1, fault, err);
}

static void be_rank(unsigned job, unsigned rank, unsigned size)
{
	char text[60];
	snprintf(text, sizeof text, "fault-%d@%u", (int)getpid(), job);
	setenv("PMIX_NAMESPACE", text, 1);
	snprintf(text, sizeof text, "%u", rank);
	setenv("OMPI_COMM_WORLD_RANK", text, 1);
	snprintf(text, sizeof text, "%u", size);
	setenv("OMPI_COMM_WORLD_SIZE", text, 1);
}

/* A job that another one has spawned: its death harms neither its parents, nor a later
 * job that takes its slot. */
static bool play_spawned(const char *fault, int err)
{
	char domain[60];
	snprintf(domain, sizeof domain, "ompi-fault-%d", (int)getpid());
	unsetenv("PTL3_DOMAIN");
	struct kid k[RANKS], *v = &k[2];
	for (unsigned i = 0; i < 2; i++) {
		be_rank(1, i, 2);
		k[i] = kid_start(PTL_PID_ANY);
	}
	be_rank(2, 0, 1);
	*v = spawn_victim(PTL_PID_ANY, fault, err);
	be_rank(4, 0, 1); /* of the member that live() starts */
	live(v, &k[0]);
	bool killed = is_killed(v);
	v->id = (ptl_process_id_t){k[0].id.nid + 1, 100};
	if (killed)
		expect_lost(&k[0], v);
	be_rank(3, 0, 1);
	*v = kid_start(PTL_PID_ANY);
	talk(&k[1], v);
	all_in_barrier(k, 2, "released");
	kid_leave(&k[0]);
	kid_leave(&k[1]);
	kid_leave(v);
	unsetenv("OMPI_COMM_WORLD_RANK");
	setenv("PTL3_DOMAIN", domain, 1);
	expect_nothing_left();
	setenv("PTL3_DOMAIN", own, 1);
	return killed;
}

static bool play_yod(const char *fault, int err)
{
	char at_yod[120];
	int status;
	leave_dead_domain();
	snprintf(at_yod, sizeof at_yod, "%s%s", fault,
		strcmp(fault, "count") == 0 ? "" : "@yod");
	pid_t yod = fork();
	if (yod == 0) {
		dup2(err, STDERR_FILENO);
		setenv("PTL3_FAULT", at_yod, 1);
		execl(getenv("P3_YOD"), "yod", "-sz", "1", "--domain", own, "true", NULL);
		_exit(127);
	}
	if (waitpid(yod, &status, 0) != yod ||
		(status && WEXITSTATUS(status) != 128 + SIGKILL))
		fail("%s: yod ends with status %#x", now_playing, status);
	struct kid w = kid_start(501);
	kid_leave(&w);
	expect_both_gone();
	expect_no_user();
	return status != 0;
}

static const struct play {
	const char *name;
	bool (*play)(const char *fault, int err);
} plays[] = {{"alone", play_alone}, {"yod", play_yod}, {"among others", play_among},
	{"spawned", play_spawned}, {"rank 0", play_rank_0}, {"rank 1", play_rank_1}};

/* ---- points ---- */

static int new_file(void)
{
	int fd = memfd_create("stderr", MFD_CLOEXEC);
	if (fd < 0)
		fail("memfd: %s", strerror(errno));
	return fd;
}

static FILE *reread(int fd)
{
	lseek(fd, 0, SEEK_SET);
	return fdopen(fd, "r");
}

static void list_points(const char *only)
{
	char line[100];
	setenv("PTL3_FAULT", "list", 1);
	FILE *f = popen("/proc/$PPID/exe", "r");
	unsetenv("PTL3_FAULT");
	while (f && npoints < POINTS && fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n")] = '\0';
		bool ours = strncmp(line, "domain.", 7) == 0 ||
			    strncmp(line, "meet.", 5) == 0;
		if (ours && (!only || strstr(line, only)))
			strcpy(points[npoints++].name, line);
	}
	if (!f || pclose(f) != 0)
		fail("the points cannot be listed");
}

static void count(const struct play *p)
{
	char line[200], name[64];
	unsigned n;
	int err = new_file();
	snprintf(now_playing, sizeof now_playing, "%s, count", p->name);
	if (p->play("count", err))
		fail("%s: it is killed", now_playing);
	FILE *f = reread(err);
	for (int i = 0; i < npoints; i++)
		points[i].reached = 0;
	while (fgets(line, sizeof line, f))
		for (int i = 0; i < npoints; i++)
			if (sscanf(line, "fault: count %63s %u", name, &n) == 2 &&
				strcmp(name, points[i].name) == 0)
				points[i].reached = n;
	fclose(f);
}

static void strike(const struct play *p, struct point *at, unsigned nth)
{
	char fault[100];
	int err = new_file();
	alarm(300);
	snprintf(fault, sizeof fault, "%s:%u:kill", at->name, nth);
	snprintf(now_playing, sizeof now_playing, "PTL3_FAULT=%s, %s", fault, p->name);
	bool killed = p->play(fault, err);
	runs++;
	strikes += killed;
	at->done |= killed;
	close(err);
}

static void walk(const struct play *p)
{
	alarm(300);
	count(p);
	for (int i = 0; i < npoints; i++) {
		struct point *at = &points[i];
		bool ranks = p->play == play_rank_0 || p->play == play_rank_1;
		if (!at->reached || (at->done && ranks))
			continue; /* a rank that never comes is waited for */
		strike(p, at, 1);
		if (at->reached > 1)
			strike(p, at, at->reached);
	}
}

static void walk_all(const struct play *p, int n)
{
	for (int i = 0; i < n; i++) {
		uint64_t began = now_ms();
		walk(&p[i]);
		printf("# %s: %llu ms\n", p[i].name,
			(unsigned long long)(now_ms() - began));
	}
}

static void late(int sig)
{
	(void)sig;
	(void)!write(STDERR_FILENO, now_playing, strlen(now_playing));
	(void)!write(STDERR_FILENO, ": hangs\n", 8);
	_exit(1);
}

/* ---- a slow member ---- */

/* Stopped between its call and its first packet, until no member waits for that any
 * more. */
struct slow {
	struct kid stays, slow;
	uint64_t since_ms;
};

static struct slow begin_slow(void)
{
	struct slow s = {.since_ms = now_ms()};
	int err = new_file();
	setenv("PTL3_DOMAIN", "test-fault-slow", 1);
	s.stays = kid_start(500);
	s.slow = spawn_victim(501, "meet.connected:1:stop", err);
	setenv("PTL3_DOMAIN", own, 1);
	return s;
}

static void expect_stopped(const struct kid *k, int how)
{
	int status;
	if (waitpid(k->os_pid, &status, WUNTRACED | how) <= 0 || !WIFSTOPPED(status))
		fail("%s is not stopped", now_playing);
}

static void end_slow(struct slow *s)
{
	strcpy(now_playing, "a slow one");
	alarm(300);
	while (now_ms() < s->since_ms + SLOW_MS)
		usleep(10000);
	expect_stopped(&s->slow, WNOHANG);
	kill(s->slow.os_pid, SIGCONT);
	if (!kid_joined(&s->slow))
		fail("%s does not join", now_playing);
	talk(&s->slow, &s->stays);
	kid_leave(&s->slow);
	kid_leave(&s->stays);
	setenv("PTL3_DOMAIN", "test-fault-slow", 1);
	expect_nothing_left();
}

/* A member that has joined knows a member that can send to it; its ids were a dead
 * one's. */
static void join_one_that_maps_late(void)
{
	strcpy(now_playing, "one that maps late");
	alarm(300);
	int err = new_file();
	struct kid a = spawn_victim(500, "meet.born_heard:2:stop", err);
	if (!kid_joined(&a))
		fail("%s does not join", now_playing);
	struct kid dead = kid_start(501);
	kid_kill(&dead);
	struct kid w = kid_spawn(501);
	expect_stopped(&a, 0);
	bool early = kid_says(&w, EARLY_MS);
	kill(a.os_pid, SIGCONT);
	if (early || !kid_joined(&w))
		fail("%s: has not mapped who joins", now_playing);
	talk(&a, &w);
	kid_leave(&a);
	kid_leave(&w);
	expect_nothing_left();
	close(err);
}

/* A member that hears late of another one finds its end closed and its slot still
 * taken: that one has left. */
static void hear_late_of_one_that_leaves(void)
{
	int status;
	strcpy(now_playing, "one that hears late");
	alarm(300);
	int err = new_file();
	struct kid a = spawn_victim(500, "meet.born_heard:1:stop", err);
	if (!kid_joined(&a))
		fail("%s does not join", now_playing);
	struct kid b = spawn_victim(501, "fini.closing:1:stop", err);
	expect_stopped(&a, 0);
	if (!kid_joined(&b))
		fail("%s is waited for", now_playing);
	kid_tell(&b, "end");
	expect_stopped(&b, 0);
	kill(a.os_pid, SIGCONT);
	/* pause: puts before and after it has heard */
	for (int i = 0; i < 10; i++, usleep(50000)) /* before and after it has heard */
		if (kid_put(&a, &b, 100, 0, 50) == HUNG)
			fail("%s: its put to who left hangs", now_playing);
	kill(b.os_pid, SIGCONT);
	if (waitpid(b.os_pid, &status, 0) != b.os_pid || status)
		fail("%s: who left ends with status %#x", now_playing, status);
	fclose(b.to);
	fclose(b.from);
	kid_leave(&a);
	expect_nothing_left();
	close(err);
}

int main(int argc, char **argv)
{
	if (argc > 2 && strcmp(argv[1], "member") == 0) {
		member_start((ptl_pid_t)strtoul(argv[2], NULL, 10));
		member_say_who();
		member_serve();
		member_end();
		return 0;
	}
	signal(SIGPIPE, SIG_IGN);
	signal(SIGALRM, late);
	snprintf(own, sizeof own, "%.30s", getenv("PTL3_DOMAIN"));
	snprintf(other, sizeof other, "%s-other", own);
	list_points(argc > 1 ? argv[1] : NULL);
	join_one_that_maps_late();
	hear_late_of_one_that_leaves();
	walk_all(plays, 2);
	struct slow s = begin_slow();
	walk_all(plays + 2, 4);
	end_slow(&s);
	for (int i = 0; i < npoints; i++)
		if (!points[i].done)
			fail("%s is not reached", points[i].name);
	printf("%d points, %d runs, %d strikes\n", npoints, runs, strikes);
	return 0;
}
