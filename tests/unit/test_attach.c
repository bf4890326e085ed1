/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looking at a job: yod's half in a forked process, nodes and lookers in this one.
 */
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/loop.h"
#include "launcher/look/look.h"
#include "shm/job.h"
#include "shm/layout.h"
#include "support/descriptors.h"
#include "support/patience.h"
#include "support/cases.h"

#define NODES  4
#define SEG    UINT64_C(8192)
#define LAYOUT UINT64_C(5)

/* The kernel's list of sockets may repeat or leave out one while others come and go.
 * Where that is allowed, have a list without those of other programs. */
__attribute__((constructor)) static void own_sockets(void)
{
	(void)unshare(CLONE_NEWNET);
}

struct world {
	pid_t yod;
	uint32_t jid;
	int sock[NODES];
	unsigned open_before;
};

/* ---- yod ---- */

static void serve(const int *sock)
{
	uint32_t self = (uint32_t)getpid();
	struct p3_loop loop;
	struct p3_rdv_conf conf = {.loop = &loop,
		.size = NODES,
		.layout = LAYOUT,
		.nid_base = 10,
		.jid = self,
		.cpus = 2};
	struct p3_rdv *rdv = p3_loop_open(&loop) ? NULL : p3_rdv_create(&conf);
	struct p3_attach *attach;
	if (!rdv || p3_attach_create(rdv, &attach))
		_exit(1);
	for (uint32_t i = 0; i < NODES; i++)
		if (p3_rdv_add(rdv, i, sock[i], self + i))
			_exit(1);
	for (;;)
		p3_loop_run(&loop, P3_NEVER);
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	int theirs[NODES];
	w->open_before = descriptors_of("self");
	for (int i = 0; i < NODES; i++) {
		int pair[2];
		assert_int_equal(
			socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
		theirs[i] = pair[0];
		w->sock[i] = pair[1];
	}
	w->yod = fork();
	if (!w->yod) {
		for (int i = 0; i < NODES; i++)
			close(w->sock[i]);
		serve(theirs);
		_exit(1);
	}
	w->jid = (uint32_t)w->yod;
	for (int i = 0; i < NODES; i++)
		close(theirs[i]);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	kill(w->yod, SIGKILL);
	waitpid(w->yod, NULL, 0);
	for (int i = 0; i < NODES; i++)
		if (w->sock[i] >= 0)
			close(w->sock[i]);
	assert_int_equal(descriptors_of("self"), w->open_before);
	free(w);
	return 0;
}

#define ATTACH_CASE(name) CASE_OF(struct world *w, name, setup, teardown)

/* Look at the job; its name appears when yod has come that far, which may take longer
 * than a looker waits. */
static struct p3_look *look_at(struct world *w)
{
	struct patience p = patience_begin();
	struct p3_look *look;
	int rc;
	while (((rc = p3_look_open(w->jid, &look)) == -ESRCH || rc == -ETIMEDOUT) &&
		!patience_is_over(&p))
		usleep(1000);
	assert_int_equal(rc, 0);
	return look;
}

/* ---- nodes ---- */

static void say(struct world *w, uint32_t i, enum p3_job_op op, uint64_t incarnation,
	const int *fds)
{
	struct p3_job_msg m = {.magic = P3_JOB_MAGIC,
		.op = op,
		.incarnation = incarnation,
		.layout = LAYOUT,
		.pid = {100, P3_JOB_NO_PID},
		.seg_len = op == P3_JOB_JOIN ? SEG : 0};
	assert_int_equal(p3_job_send(w->sock[i], &m, fds, fds ? 3 : 0), 0);
}

static void hear(struct world *w, uint32_t i, enum p3_job_op op)
{
	struct p3_job_packet p;
	do {
		assert_int_equal(p3_job_recv(w->sock[i], 0, &p), 0);
		p3_job_close(&p);
	} while (p.msg.op != op);
}

static int segment(const void *head, size_t len, const char *text)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(fd, (off_t)SEG), 0);
	assert_int_equal(pwrite(fd, head, len, 0), len);
	assert_true(pwrite(fd, text, strlen(text) + 1, (off_t)len) > 0);
	assert_int_equal(
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | 0x10 | F_SEAL_SEAL),
		0);
	return fd;
}

/* Make the part of a segment that yod reads: the header, with the text behind it. */
static int published_segment(const char *text)
{
	struct p3_seg_header h = {
		.magic = P3_SEG_MAGIC, .layout = P3_LAYOUT_WORD, .nnodes = NODES};
	return segment(&h, sizeof h, text);
}

static void join(struct world *w, uint32_t i, uint64_t incarnation, const char *text)
{
	int fds[3] = {published_segment(text), segment("", 0, "doorbell"),
		segment("", 0, "host")};
	say(w, i, P3_JOB_JOIN, incarnation, fds);
	for (int k = 0; k < 3; k++)
		close(fds[k]);
	hear(w, i, P3_JOB_JOINED);
}

static void hello(struct world *w, uint32_t i)
{
	say(w, i, P3_JOB_HELLO, 0, NULL);
	hear(w, i, P3_JOB_WELCOME);
}

static void enter(struct world *w, uint32_t i, uint64_t incarnation, const char *text)
{
	hello(w, i);
	join(w, i, incarnation, text);
}

static void leave(struct world *w, uint32_t i, uint64_t incarnation)
{
	say(w, i, P3_JOB_LEAVE, incarnation, NULL);
	hear(w, i, P3_JOB_LEFT);
}

static void die(struct world *w, uint32_t i)
{
	close(w->sock[i]);
	w->sock[i] = -1;
}

/* A yod that has no CPU for long answers too late: then look anew. */
static void look_until(
	struct world *w, struct p3_look **look, uint32_t i, enum p3_rdv_state state)
{
	struct patience p = patience_begin();
	int rc;
	while ((rc = p3_look_again(*look)) != 0 ||
		p3_look_node(*look, i)->msg.state != state) {
		assert_true(rc == 0 || rc == -ETIMEDOUT);
		assert_false(patience_is_over(&p));
		if (rc) {
			p3_look_close(*look);
			*look = look_at(w);
		}
	}
}

static void published(struct p3_look *look, uint32_t i, const char *text)
{
	const char *at = p3_look_bytes(look, i, P3_LOOK_PUBLISHED, 0, SEG);
	assert_non_null(at);
	assert_string_equal(at + sizeof(struct p3_seg_header), text);
}

/* ---- cases ---- */

ATTACH_CASE(look_tells_of_each_node_what_became_of_it)
{
	struct p3_look *look = look_at(w);
	assert_int_equal(p3_look_job(look)->size, NODES);
	assert_int_equal(p3_look_job(look)->jid, w->jid);
	assert_int_equal(p3_look_job(look)->os_pid, (uint32_t)w->yod);
	for (uint32_t i = 0; i < NODES; i++) {
		hello(w, i);
		if (i)
			join(w, i, 7 + i, "seg");
	}
	leave(w, 2, 9);
	die(w, 3);
	look_until(w, &look, 3, P3_RDV_DIED);
	look_until(w, &look, 2, P3_RDV_LEFT);
	look_until(w, &look, 1, P3_RDV_JOINED);
	look_until(w, &look, 0, P3_RDV_NEVER_JOINED);
	assert_true(p3_look_node(look, 0)->msg.inited);
	assert_false(p3_look_node(look, 3)->msg.inited);
	assert_int_equal(p3_look_node(look, 1)->msg.nid, 11);
	assert_int_equal(p3_look_node(look, 1)->msg.pid[0], 100);
	assert_int_equal(p3_look_node(look, 1)->msg.os_pid, getpid());
	assert_int_equal(p3_look_node(look, 1)->msg.started_pid, w->jid + 1);
	assert_int_equal(p3_look_node(look, 1)->msg.incarnation, 8);
	assert_int_equal(p3_look_node(look, 1)->msg.layout, LAYOUT);
	p3_look_close(look);
}

ATTACH_CASE(look_reads_segments_of_the_living_and_of_the_dead)
{
	struct p3_look *look = look_at(w);
	hello(w, 0);
	hello(w, 1);
	join(w, 0, 5, "zero");
	join(w, 1, 6, "one");
	look_until(w, &look, 0, P3_RDV_JOINED);
	look_until(w, &look, 1, P3_RDV_JOINED);
	published(look, 0, "zero");
	assert_string_equal(p3_look_bytes(look, 0, P3_LOOK_HOST, 0, 5), "host");
	assert_null(p3_look_bytes(look, 0, P3_LOOK_PUBLISHED, 1, SEG));
	assert_null(p3_look_bytes(look, 0, P3_LOOK_PUBLISHED, UINT64_MAX, 2));
	assert_null(p3_look_bytes(look, 2, P3_LOOK_PUBLISHED, 0, 1));
	die(w, 1);
	look_until(w, &look, 1, P3_RDV_DIED);
	published(look, 1, "one");
	p3_look_close(look);
	look = look_at(w); /* and a looker that comes after its death */
	published(look, 1, "one");
	leave(w, 0, 5);
	look_until(w, &look, 0, P3_RDV_LEFT);
	published(look, 0, "zero");
	assert_null(p3_look_bytes(look, 0, P3_LOOK_HOST, 0, 1));
	join(w, 0, 50, "zero again");
	look_until(w, &look, 0, P3_RDV_JOINED);
	published(look, 0, "zero again");
	p3_look_close(look);
}

/* Let another process have the rank and die; the socket stays, as a wrapper's does. */
static void live_and_die(struct world *w, uint32_t i, uint64_t incarnation)
{
	int status;
	pid_t pid = fork();
	if (!pid) {
		enter(w, i, incarnation, "first");
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* A dead node's memory may be the hugepages that its rank's next program needs. */
ATTACH_CASE(next_program_leaves_remains_of_the_dead)
{
	struct p3_look *look = look_at(w);
	int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (self < 0)
		skip(); /* without pidfds (valgrind) only the wrapper's end is noticed */
	close(self);
	live_and_die(w, 0, 5);
	look_until(w, &look, 0, P3_RDV_DIED);
	published(look, 0, "first");
	assert_non_null(p3_look_bytes(look, 0, P3_LOOK_HOST, 0, 5));
	hello(w, 0);
	look_until(w, &look, 0, P3_RDV_DIED);
	published(look, 0, "first");
	assert_null(p3_look_bytes(look, 0, P3_LOOK_HOST, 0, 5));
	assert_true(p3_look_node(look, 0)->remains);
	join(w, 0, 6, "second");
	look_until(w, &look, 0, P3_RDV_JOINED);
	published(look, 0, "second");
	p3_look_close(look);
}

/* A looker that looked all the time still has that segment mapped. */
ATTACH_CASE(only_the_last_remains_are_kept)
{
	enum { LIVES = 200 };
	struct p3_look *look = look_at(w);
	unsigned before = 0;
	char text[20], yod[20];
	snprintf(yod, sizeof yod, "%d", (int)w->yod);
	hello(w, 0);
	for (uint64_t life = 1; life <= LIVES; life++) {
		snprintf(text, sizeof text, "life %u", (unsigned)life);
		join(w, 0, life, text);
		if (life % 3 == 0)
			look_until(w, &look, 0, P3_RDV_JOINED);
		leave(w, 0, life);
		look_until(w, &look, 0, P3_RDV_LEFT);
		published(look, 0, text);
		if (life == 1)
			before = descriptors_settled(yod);
	}
	assert_int_equal(descriptors_within(yod, before), before);
	assert_int_equal(p3_look_node(look, 0)->mapped, LIVES);
	p3_look_close(look);
}

ATTACH_CASE(look_sees_who_waits_in_the_barrier)
{
	struct p3_look *look = look_at(w);
	for (uint32_t i = 0; i < 2; i++) {
		hello(w, i);
		say(w, i, P3_JOB_BARRIER, 0, NULL);
	}
	struct patience p = patience_begin();
	do
		look_until(w, &look, 1, P3_RDV_NEVER_JOINED);
	while (p3_look_node(look, 1)->msg.barrier_n != 2 && !patience_is_over(&p));
	assert_int_equal(p3_look_node(look, 0)->msg.barrier_n, 2);
	assert_int_equal(p3_look_node(look, 1)->msg.barrier_n, 2);
	assert_int_equal(p3_look_node(look, 2)->msg.barrier_n, 0);
	p3_look_close(look);
}

/* ---- misbehaving lookers ---- */

/* Write the address of a user's job; return its length. */
static socklen_t address_of(uint32_t uid, uint32_t jid, struct sockaddr_un *at)
{
	*at = (struct sockaddr_un){.sun_family = AF_UNIX};
	int n = snprintf(
		at->sun_path + 1, sizeof at->sun_path - 1, "portals3/%u/%u", uid, jid);
	return (socklen_t)offsetof(struct sockaddr_un, sun_path) + 1 + (socklen_t)n;
}

static int raw(const struct world *w)
{
	struct sockaddr_un at;
	socklen_t len = address_of(getuid(), w->jid, &at);
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(sock, (struct sockaddr *)&at, len), 0);
	return sock;
}

static struct p3_attach_msg question(enum p3_attach_op op, uint32_t node)
{
	return (struct p3_attach_msg){.magic = P3_ATTACH_MAGIC, .op = op, .node = node};
}

static void look_is_answered(struct world *w, uint32_t joined)
{
	struct p3_look *look = look_at(w);
	look_until(w, &look, joined, P3_RDV_JOINED);
	p3_look_close(look);
}

/* The lookers send as many questions as fit, and read nothing. */
ATTACH_CASE(stopped_lookers_hold_up_nobody)
{
	enum { MANY = 3 * P3_ATTACH_CLIENTS };
	int sock[MANY];
	p3_look_close(look_at(w));
	enter(w, 0, 5, "zero");
	for (int k = 0; k < MANY; k++) {
		struct p3_attach_msg m =
			question(k % 2 ? P3_ATTACH_LOOK : P3_ATTACH_SEGMENTS, 0);
		sock[k] = raw(w);
		while (send(sock[k], &m, sizeof m, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
			;
		look_is_answered(w, 0);
	}
	enter(w, 1, 6, "one");
	look_is_answered(w, 1);
	for (int k = 0; k < MANY; k++)
		close(sock[k]);
}

static bool is_hung_up_on(int sock)
{
	char any[200];
	struct pollfd p = {.fd = sock, .events = POLLIN};
	return poll(&p, 1, 600000) > 0 && recv(sock, any, sizeof any, 0) <= 0;
}

ATTACH_CASE(look_that_makes_no_sense_is_hung_up_on)
{
	struct p3_attach_msg bad[] = {question(P3_ATTACH_NODE, 0),
		question(P3_ATTACH_SEGMENTS, NODES), {.magic = 1, .op = P3_ATTACH_LOOK}};
	p3_look_close(look_at(w));
	enter(w, 0, 5, "zero");
	for (size_t k = 0; k < 3 + sizeof bad[0]; k++) {
		int sock = raw(w);
		struct p3_attach_msg good = question(P3_ATTACH_LOOK, 0);
		const void *packet = k < 3 ? &bad[k] : &good;
		size_t len = k < 3 ? sizeof bad[0] : k - 3; /* shorter than a packet */
		assert_int_equal(send(sock, packet, len, 0), (ssize_t)len);
		assert_true(is_hung_up_on(sock));
		close(sock);
	}
	look_is_answered(w, 0);
}

/* A looker cannot write through the descriptors that it gets. */
ATTACH_CASE(segments_are_handed_out_read_only)
{
	p3_look_close(look_at(w));
	enter(w, 0, 5, "zero");
	int sock = raw(w), fds[2];
	struct p3_attach_msg m = question(P3_ATTACH_SEGMENTS, 0);
	char control[CMSG_SPACE(sizeof fds)];
	struct iovec iov = {&m, sizeof m};
	struct msghdr hdr = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof control};
	assert_int_equal(send(sock, &m, sizeof m, 0), sizeof m);
	assert_int_equal(recvmsg(sock, &hdr, MSG_CMSG_CLOEXEC), sizeof m);
	assert_non_null(CMSG_FIRSTHDR(&hdr));
	memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&hdr)), sizeof fds);
	for (int k = 0; k < 2; k++) {
		assert_ptr_equal(
			mmap(NULL, SEG, PROT_READ | PROT_WRITE, MAP_SHARED, fds[k], 0),
			MAP_FAILED);
		assert_int_equal(pwrite(fds[k], "x", 1, 0), -1);
		assert_int_equal(ftruncate(fds[k], 0), -1);
		close(fds[k]);
	}
	close(sock);
}

static int as_stranger(struct world *w)
{
	struct p3_look *look;
	struct p3_attach_msg m = {.op = 0};
	int sock = raw(w); /* the socket's name contains root's number */
	close(sock);
	if (setresuid(65534, 65534, 65534) || p3_look_open(w->jid, &look) != -EPERM)
		return 1;
	struct sockaddr_un at;
	socklen_t len = address_of(0, w->jid, &at);
	sock = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	if (connect(sock, (struct sockaddr *)&at, len))
		return 2;
	if (recv(sock, &m, sizeof m, 0) != sizeof m || m.op != P3_ATTACH_REFUSED)
		return 3;
	m = question(P3_ATTACH_LOOK, 0);
	return recv(sock, &m, sizeof m, 0) == 0 ? 0 : 4;
}

ATTACH_CASE(look_of_another_user_is_refused)
{
	int status;
	if (getuid() != 0)
		skip(); /* only root can become another user */
	p3_look_close(look_at(w));
	pid_t pid = fork();
	if (!pid)
		_exit(as_stranger(w));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Another user has the name that the user's yod would have: a looker must not trust
 * it. */
ATTACH_CASE(look_does_not_believe_a_name)
{
	struct p3_look *look;
	int ready[2];
	if (getuid() != 0)
		skip();
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (!pid) {
		struct sockaddr_un at;
		socklen_t len = address_of(0, (uint32_t)getpid(), &at);
		int sock = socket(AF_UNIX, SOCK_SEQPACKET, 0);
		if (setresuid(65534, 65534, 65534) ||
			bind(sock, (struct sockaddr *)&at, len) || listen(sock, 5))
			_exit(1);
		close(ready[1]);
		pause();
	}
	close(ready[1]);
	char c;
	assert_int_equal(read(ready[0], &c, 1), 0);
	assert_int_equal(p3_look_open((uint32_t)pid, &look), -ESRCH);
	close(ready[0]);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	(void)w;
}

ATTACH_CASE(look_ends_with_yod)
{
	struct p3_look *look = look_at(w), *other;
	kill(w->yod, SIGKILL);
	waitpid(w->yod, NULL, 0);
	assert_int_equal(p3_look_again(look), -EPIPE);
	assert_int_equal(p3_look_open(w->jid, &other), -ESRCH);
	p3_look_close(look);
}

ATTACH_CASE(look_gives_up_on_a_stopped_yod)
{
	struct p3_look *look = look_at(w);
	kill(w->yod, SIGSTOP);
	assert_int_equal(p3_look_again(look), -ETIMEDOUT);
	p3_look_close(look);
}

struct count {
	uint32_t jid, seen;
};

static void count_job(void *arg, uint32_t uid, uint32_t jid)
{
	struct count *c = arg;
	c->seen += uid == getuid() && jid == c->jid;
}

/* Accepted connections have the listener's name, too. */
ATTACH_CASE(job_is_listed_once)
{
	struct count c = {w->jid, 0};
	struct p3_look *look = look_at(w);
	p3_look_jobs(count_job, &c);
	assert_int_equal(c.seen, 1);
	p3_look_close(look);
}
