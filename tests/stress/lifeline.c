/* SPDX-License-Identifier: BSD-3-Clause */
/* The attacks of a hostile process on yod. */
#include "mp/mp.h"
#include "shm/job.h"
#include "shm/layout.h"
#include "shm/seg.h"
#include "stress/hostile.h"
#include "support/patience.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static struct {
	int sock;
	unsigned rank, size;
	uint64_t incarnation;
	struct p3_layout layout;
	int stolen; /* a descriptor of another node's published segment, -1: none yet */
} us = {.stolen = -1};

/* ---- descriptors ---- */

static int memfd_of(unsigned flags, uint64_t len, int seals)
{
	int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);
	if (fd >= 0 && (ftruncate(fd, (off_t)len) != 0 ||
			       (seals && fcntl(fd, F_ADD_SEALS, seals) != 0)))
		perror("memfd");
	return fd;
}

static int memfd(uint64_t len, int seals)
{
	return memfd_of(0, len, seals);
}

static int pipe_end(void)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) != 0)
		return -1;
	close(ends[1]);
	return ends[0];
}

static int file(uint64_t len)
{
	int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0 && ftruncate(fd, (off_t)len) != 0)
		perror("file");
	return fd;
}

static const int seals_of[] = {0, F_SEAL_SHRINK, F_SEAL_SHRINK | F_SEAL_GROW,
	F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE,
	F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE,
	F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL};

enum { PLAIN = 10, KINDS = PLAIN + sizeof seals_of / sizeof seals_of[0] };

/* Return a descriptor of the wrong kind, or of the right kind with wrong content. */
static int wrong_fd(unsigned kind, uint64_t len)
{
	switch (kind) {
	case 0:
		return open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	case 1:
		return pipe_end();
	case 2:
		return open("/dev/zero", O_RDWR | O_CLOEXEC);
	case 3:
		return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	case 4:
		return eventfd(0, EFD_CLOEXEC);
	case 5:
		return file(len);
	case 6:
		return open("/", O_PATH | O_CLOEXEC);
	case 7:
		return memfd(len / 2, seals_of[5]);
	case 8: /* without a page behind it */
		return memfd_of(MFD_HUGETLB, (len + P3_HUGE - 1) / P3_HUGE * P3_HUGE,
			seals_of[5]);
	case 9:
		return us.stolen >= 0 ? fcntl(us.stolen, F_DUPFD_CLOEXEC, 0)
				      : open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	default:
		return memfd(len, seals_of[kind - PLAIN]);
	}
}

/* Format a header that is right, or nearly right. */
static void format(void *base)
{
	struct p3_seg_header *h = base;
	h->magic = P3_SEG_MAGIC;
	h->layout = P3_LAYOUT_WORD;
	h->incarnation = us.incarnation;
	h->seg_len = us.layout.seg_len;
	h->nnodes = us.size;
	h->node = us.rank;
	if (attack_dice() % 2)
		((p3_a64 *)base)[attack_dice() % 8] = attack_number();
	p3_release(&h->state, P3_SEG_LIVE);
}

static int true_segment(void)
{
	int fd = memfd(us.layout.seg_len, 0);
	void *base = mmap(NULL, P3_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base != MAP_FAILED) {
		format(base);
		munmap(base, P3_PAGE);
	}
	(void)fcntl(fd, F_ADD_SEALS, seals_of[5]);
	return fd;
}

/* ---- packets ---- */

static struct p3_job_msg message(enum p3_job_op op)
{
	struct p3_job_msg m = {.magic = P3_JOB_MAGIC,
		.op = op,
		.node = us.rank,
		.incarnation = us.incarnation,
		.layout = P3_LAYOUT_WORD,
		.seg_len = us.layout.seg_len};
	m.pid[0] = P3_JOB_PID_BASE + us.rank;
	m.pid[1] = P3_JOB_NO_PID;
	return m;
}

static int say(enum p3_job_op op)
{
	struct p3_job_msg m = message(op);
	return p3_job_send(us.sock, &m, NULL, 0);
}

/* Hear yod's packets meanwhile, and keep a descriptor of one. */
static int hear(int ms, struct p3_job_msg *m)
{
	struct pollfd on = {.fd = us.sock, .events = POLLIN};
	struct p3_job_packet p;
	if (poll(&on, 1, ms) <= 0)
		return -EAGAIN;
	int rc = p3_job_recv(us.sock, 0, &p);
	if (rc)
		return rc;
	*m = p.msg;
	if (us.stolen < 0 && p.nfds && m->node != us.rank)
		us.stolen = dup(p.fds[0]);
	p3_job_close(&p);
	return 0;
}

static void hear_all(void)
{
	struct p3_job_msg m;
	while (hear(0, &m) == 0)
		;
}

static bool hear_of(enum p3_job_op op)
{
	struct patience p = patience_begin();
	struct p3_job_msg m;
	int rc;
	do
		rc = hear(100, &m);
	while ((rc == -EAGAIN || (!rc && m.op != op)) && !patience_is_over(&p));
	if (!rc && op == P3_JOB_WELCOME)
		us.size = m.size;
	return !rc && m.op == op;
}

static int join_wrongly(void)
{
	uint64_t d = attack_dice();
	struct p3_job_msg m = message(P3_JOB_JOIN);
	int fds[P3_JOB_FDS];
	unsigned wrong = d % 4, kind = (unsigned)(d >> 8) % KINDS;
	if (wrong == 0 && kind < PLAIN && (d >> 24) % 16)
		kind = kind % 4 ? PLAIN + kind % 6 : 8; /* or yod closes the connection */
	m.incarnation = us.incarnation = attack_dice();
	m.heap_len = (d >> 16) % 4 ? P3_HUGE : 0;
	fds[0] = true_segment();
	fds[1] = memfd(P3_PAGE, seals_of[2]);
	fds[2] = memfd(P3_HUGE, seals_of[5]);
	fds[3] = memfd(P3_HUGE, seals_of[5]);
	close(fds[wrong]);
	fds[wrong] = wrong_fd(kind, wrong == 0   ? us.layout.seg_len
				    : wrong == 1 ? P3_PAGE
						 : P3_HUGE);
	unsigned n = m.heap_len ? 4 : 3;
	int rc = p3_job_send(us.sock, &m, fds, n);
	for (unsigned i = 0; i < P3_JOB_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return rc;
}

static int join_and_leave(void)
{
	int rc = join_wrongly();
	/* pause: random distances between packets */
	usleep((useconds_t)attack_dice() % 20000);
	hear_all();
	if (!rc && attack_dice() % 4)
		rc = say(P3_JOB_PIDS);
	return rc ? rc : say(P3_JOB_LEAVE);
}

/* Send any bytes with any number of any descriptors. */
static int babble(void)
{
	unsigned char bytes[200];
	int fds[20];
	unsigned n = attack_dice() % 4 ? 0 : (unsigned)attack_dice() % 20;
	struct iovec iov = {bytes, attack_dice() % sizeof bytes};
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof fds)];
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (unsigned char)attack_dice();
	for (unsigned i = 0; i < n; i++)
		fds[i] = wrong_fd((unsigned)attack_dice() % KINDS, P3_PAGE);
	if (n) {
		h.msg_control = control;
		h.msg_controllen = CMSG_SPACE(n * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&h);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	}
	ssize_t sent = sendmsg(us.sock, &h, MSG_NOSIGNAL);
	for (unsigned i = 0; i < n; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return sent < 0 ? -errno : 0;
}

/* Send packets of this protocol with any content. */
static int talk(void)
{
	struct p3_job_msg m = message((enum p3_job_op)(attack_dice() % 16));
	uint64_t *words = (uint64_t *)&m;
	for (uint64_t k = attack_dice() % 3; k; k--)
		words[1 + attack_dice() % (sizeof m / 8 - 1)] = attack_number();
	int fd = wrong_fd((unsigned)attack_dice() % KINDS, P3_PAGE);
	int rc = p3_job_send(us.sock, &m, &fd, attack_dice() % 4 == 0 && fd >= 0);
	if (fd >= 0)
		close(fd);
	return rc;
}

/* Send news for all as fast as possible, without reading. */
static int shout(void)
{
	int rc = join_wrongly();
	for (int i = 0; !rc && i < 20000; i++)
		rc = say(attack_dice() % 64 ? P3_JOB_PIDS : P3_JOB_DROPPED);
	return rc ? rc : say(P3_JOB_LEAVE);
}

static bool come_to_barrier(void)
{
	return !say(P3_JOB_BARRIER) && hear_of(P3_JOB_RELEASED);
}

unsigned lifeline_attack(unsigned rank, uint64_t ns)
{
	static int (*const kinds[])(void) = {
		join_and_leave, join_and_leave, join_and_leave, babble, talk, shout};
	const char *text = getenv(P3_JOB_ENV);
	us.rank = rank;
	us.sock = text ? atoi(text) : -1;
	attack_seed(now_ns() * 64 + rank);
	if (say(P3_JOB_HELLO) || !hear_of(P3_JOB_WELCOME) || !come_to_barrier() ||
		!come_to_barrier())
		return 0;
	us.layout = p3_layout_of(us.size);
	uint64_t until_ns = now_ns() + ns;
	int rc = 0;
	unsigned n = 0;
	for (; !rc && (n < 3 || now_ns() < until_ns); n++)
		rc = kinds[rank % (sizeof kinds / sizeof kinds[0])]();
	/* pause: yod has closed the lifeline, and the process stays for the time */
	while (now_ns() < until_ns)
		usleep(1000);
	return n;
}
