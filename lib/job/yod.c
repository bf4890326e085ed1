/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection of a node to yod, and the life thread, which hears it from PtlInit to
 * PtlFini.
 *
 * The first packets, HELLO and WELCOME, tell rank and size.  After them the thread
 * processes yod's packets: births, ends, barriers, the cards of a job on several hosts.
 * At yod's end of file it kills this process.  This is the one case in which the library
 * ends a process: yod itself has been killed.
 */
#include "lib/job/job.h"
#include "lib/node/node.h"
#include "shm/fault.h"
#include "shm/fd.h"
#include "shm/log.h"
#include "shm/park.h"
#include "shm/seg.h"
#include "shm/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define WELCOME_MS   30000 /* longest wait for WELCOME */
#define RECEIVE_MOST 64    /* packets of yod taken in a row, before other work */
/* first wait, in ms, before AGAIN is sent for nodes that could not be mapped; it
 * doubles */
#define LIFE_AGAIN_MS   10
#define LIFE_AGAIN_MOST 1000
#define LATE_MS         20   /* time between looks at the last messages of ended nodes */
#define FLIGHT_MS       10   /* time between tries to send descriptors */
#define LOOK_MS         1000 /* longest time until foreign descriptors are noticed */

/* ---- the socket to yod, and the eventfd that wakes the life thread ---- */

/* Return true if the lifeline is still open (any thread).  The program may have closed
 * it, and its number may be a file of the program's. */
static bool yod_has_lifeline(const struct p3_node *node)
{
	return p3_fd_is(node->sock, node->sock_file);
}

/* Return true if wake_fd still names the eventfd that wakes the life thread. */
static bool yod_has_wake(const struct p3_node *node)
{
	return p3_fd_is(node->wake_fd, node->wake_file);
}

/* Wait a moment, in which the life thread goes on, while the processes of this user have
 * too many descriptors under way.  Print a line when that takes long: one that is stopped
 * takes none. */
static void yod_await_flight(struct p3_node *node, uint64_t *since_ns, bool *said)
{
	struct timespec then;
	if (!*since_ns)
		*since_ns = p3_now_ns();
	if (!*said && p3_now_ns() - *since_ns > P3_MODEX_LATE_S * UINT64_C(1000000000)) {
		struct rlimit most = {0, 0};
		(void)getrlimit(RLIMIT_NOFILE, &most);
		p3_warn("PtlNIInit waits: for %d s the processes of this user, this one "
			"included, have had more descriptors under way to each other "
			"than the %llu of `ulimit -n`; end those that are stopped and "
			"take none, or raise ulimit -n",
			P3_MODEX_LATE_S, (unsigned long long)most.rlim_cur);
		*said = true;
	}
	(void)clock_gettime(CLOCK_MONOTONIC, &then);
	then.tv_nsec += FLIGHT_MS * 1000000;
	then.tv_sec += then.tv_nsec / 1000000000;
	then.tv_nsec %= 1000000000;
	(void)pthread_cond_clockwait(&node->changed, &node->life, CLOCK_MONOTONIC, &then);
}

int p3_job_send_to_yod(
	struct p3_node *node, const struct p3_job_msg *m, const int *fds, unsigned nfds)
{
	uint64_t since_ns = 0;
	bool said = false;
	for (;; yod_await_flight(node, &since_ns, &said)) {
		int rc = yod_has_lifeline(node) ? p3_job_send(node->sock, m, fds, nfds)
						: -EPIPE;
		if (rc != -ETOOMANYREFS)
			return rc;
	}
}

/* Send a packet about an incarnation of a node, as p3_job_send_to_yod() does. */
static int yod_send_op(
	struct p3_node *node, enum p3_job_op op, uint32_t who, uint64_t incarnation)
{
	struct p3_job_msg m = {
		.magic = P3_JOB_MAGIC, .op = op, .node = who, .incarnation = incarnation};
	return p3_job_send_to_yod(node, &m, NULL, 0);
}

void p3_job_wake(struct p3_node *node)
{
	if (yod_has_lifeline(node) && yod_has_wake(node))
		p3_fd_signal(node->wake_fd);
}

/* ---- the modex by yod and its agents (lib/domain/mesh.h) ---- */

/*
 *	hosts	read the file of hosts that came with WELCOME
 *	put	send CARD with a file that contains the card; after a failure send
 *		CARD with a status, which stands for a card of zeros
 *	fence	wait for CARDS
 *	get	read the file that came with CARDS
 *
 * The files are memfds.  The life thread takes CARDS; put, fence and get are called by
 * the thread in PtlNIInit, which has disabled cancellation.  These functions disable it
 * for themselves, since they are called by pointers, where no tool can see that.  Both
 * threads hold node->life.
 */
struct p3_cards {
	bool came;            /* CARDS has come, */
	int status;           /* with this status: 0 or an errno */
	uint32_t ended;       /* with a status: the rank that has ended */
	struct p3_card *card; /* by rank; NULL: none have come */
	uint32_t nhosts;
	struct p3_job_host host[];
};

/* Return true if each rank of the job is on one host. */
static bool yod_modex_is_whole(const struct p3_cards *c, uint32_t size)
{
	uint32_t next = 0;
	for (uint32_t i = 0; i < c->nhosts; i++) {
		const struct p3_job_host *h = &c->host[i];
		if (h->first != next || h->size > size - next ||
			h->name[sizeof h->name - 1] || h->address[sizeof h->address - 1])
			return false;
		next += h->size;
	}
	return next == size;
}

/* Read the file of hosts, which stays the caller's; node->size is set.  Return 0 or
 * -errno. */
static int yod_modex_begin(struct p3_node *node, int hosts)
{
	off_t len = lseek(hosts, 0, SEEK_END);
	size_t n = len > 0 ? (size_t)len / sizeof(struct p3_job_host) : 0;
	size_t bytes = n * sizeof(struct p3_job_host);
	struct p3_cards *c = n <= node->size ? calloc(1, sizeof *c + bytes) : NULL;
	if (!c)
		return n <= node->size ? -ENOMEM : -EPROTO;
	c->nhosts = (uint32_t)n;
	if (pread(hosts, c->host, bytes, 0) != (ssize_t)bytes ||
		!yod_modex_is_whole(c, node->size)) {
		free(c);
		return -EPROTO;
	}
	node->cards = c;
	return 0;
}

static const struct p3_job_host *yod_modex_host_of(
	const struct p3_cards *c, uint32_t rank)
{
	uint32_t i = c->nhosts - 1;
	while (i && c->host[i].first > rank)
		i--;
	return &c->host[i];
}

static int yod_modex_hosts(struct p3_node *node, uint32_t *leader_out)
{
	for (uint32_t i = 0; i < node->size; i++)
		leader_out[i] = yod_modex_host_of(node->cards, i)->first;
	return 0;
}

static const char *yod_modex_host_name(struct p3_node *node, uint32_t rank)
{
	return yod_modex_host_of(node->cards, rank)->name;
}

static const char *yod_modex_own_address(struct p3_node *node)
{
	const char *address = yod_modex_host_of(node->cards, node->rank)->address;
	return *address ? address : NULL;
}

static int yod_modex_say(const char *what, int rc)
{
	p3_error("the card of this process cannot be %s by yod: %s; see ulimit -n and "
		 "ulimit -v",
		what, strerror(-rc));
	return rc;
}

static int yod_modex_put(struct p3_node *node, const struct p3_card *card)
{
	struct p3_job_msg m = p3_member_message(node, P3_JOB_CARD);
	int was, rc = -ENOSPC;
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &was);
	int fd = memfd_create("p3-card", MFD_CLOEXEC);
	m.seg_len = sizeof *card;
	if (fd < 0)
		rc = -errno;
	else if (write(fd, card, sizeof *card) == sizeof *card)
		rc = p3_job_send_to_yod(node, &m, &fd, 1);
	if (fd >= 0)
		close(fd);
	if (rc) {
		(void)yod_modex_say("sent", rc);
		m.status = ECANCELED;
		(void)p3_job_send_to_yod(node, &m, NULL, 0);
	}
	(void)pthread_setcancelstate(was, NULL);
	return rc;
}

/* Wait for the cards.  Print a line when that takes long: a rank that never calls
 * PtlNIInit holds up all others. */
static int yod_modex_fence(struct p3_node *node)
{
	struct p3_cards *c = node->cards;
	struct timespec late;
	int was, rc = 0;
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &was);
	(void)clock_gettime(CLOCK_REALTIME, &late);
	late.tv_sec += P3_MODEX_LATE_S;
	while (!c->came && !node->yod_gone && rc != ETIMEDOUT)
		rc = pthread_cond_timedwait(&node->changed, &node->life, &late);
	if (!c->came && !node->yod_gone)
		p3_warn(P3_MODEX_LATE, node->rank, P3_MODEX_LATE_S, node->size);
	while (!c->came && !node->yod_gone)
		pthread_cond_wait(&node->changed, &node->life);
	rc = c->came && !c->status ? 0 : -EPIPE;
	if (rc && c->came && c->status == EPIPE)
		p3_error("rank %u has ended before it could tell how to reach it; this "
			 "rank gives up with it (yod tells how it ended)",
			c->ended);
	else if (rc)
		(void)yod_modex_say("exchanged", c->came ? -c->status : -EPIPE);
	(void)pthread_setcancelstate(was, NULL);
	return rc;
}

static int yod_modex_get(struct p3_node *node, uint32_t rank, struct p3_card *card_out)
{
	*card_out = node->cards->card[rank];
	explicit_bzero(node->cards->card[rank].secret, sizeof card_out->secret);
	return 0;
}

/* Read the cards of CARDS; fd stays the caller's, and is -1 without a file.  Return 0 or
 * an errno. */
static int yod_modex_read(struct p3_node *node, const struct p3_job_msg *m, int fd)
{
	struct p3_cards *c = node->cards;
	if (m->status)
		return m->status;
	if (m->seg_len != P3_JOB_CARD_LEN || fd < 0)
		return EPROTO;
	c->card = malloc(node->size * sizeof *c->card);
	for (uint32_t i = 0; c->card && i < node->size; i++)
		if (pread(fd, &c->card[i], sizeof *c->card, (off_t)(i * m->seg_len)) !=
			sizeof *c->card)
			return EPROTO;
	return c->card ? 0 : ENOMEM;
}

static void yod_modex_end(struct p3_node *node)
{
	free(node->cards->card);
	node->cards->card = NULL;
}

static const struct p3_modex_ops yod_modex = {.hosts = yod_modex_hosts,
	.host_name = yod_modex_host_name,
	.own_address = yod_modex_own_address,
	.put = yod_modex_put,
	.fence = yod_modex_fence,
	.get = yod_modex_get,
	.end = yod_modex_end};

/* ---- HELLO and WELCOME ---- */

/* Return the inherited socket, or -1: the number may be a left-over that names another
 * file. */
static int yod_inherited_socket(void)
{
	const char *text = getenv(P3_JOB_ENV);
	int type;
	socklen_t len = sizeof type;
	if (!text)
		return -1;
	int fd = atoi(text);
	if (fd <= 2 || getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) != 0 ||
		type != SOCK_SEQPACKET)
		return -1;
	return fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 ? fd : -1;
}

/* Lock the socket.  If another process has the lock, return false and its pid. */
static bool yod_lock_socket(int sock, pid_t *holder_out)
{
	struct flock mine = {.l_type = F_WRLCK, .l_whence = SEEK_SET}, theirs = mine;
	if (fcntl(sock, F_SETLK, &mine) == 0 || (errno != EAGAIN && errno != EACCES))
		return true; /* without locks of sockets this process is the rank */
	*holder_out = 0;
	if (fcntl(sock, F_GETLK, &theirs) != 0)
		return true;
	*holder_out = theirs.l_pid;
	return theirs.l_type == F_UNLCK && yod_lock_socket(sock, holder_out);
}

int p3_job_find_yod(struct p3_node *node)
{
	pid_t holder;
	const char *rank = getenv("PTL_MY_RID");
	if (node->harness || node->welcomed)
		return 0;
	int rc = p3_launched_is_asked();
	int sock = rc > 0 ? yod_inherited_socket() : -1;
	rc = rc < 0 ? rc : 0;
	/* Make this process the only one that uses the socket, until it ends or becomes
	 * another program.  Processes that were forked before PtlInit share the socket,
	 * and each would take packets that yod sends to another one; a record lock, which
	 * no child inherits, says which of them is the rank. */
	if (sock >= 0 && !yod_lock_socket(sock, &holder)) {
		p3_error("rank %.20s of this job of yod is process %d "
			 "already; " P3_LAUNCHED_ONE,
			rank && *rank ? rank : "?", (int)holder);
		rc = -EINVAL;
	}
	node->sock = rc ? -1 : sock;
	node->sock_file = p3_fd_file(node->sock);
	return rc;
}

/* Receive a packet within WELCOME_MS. */
static int yod_receive_next(int sock, struct p3_job_packet *p)
{
	struct pollfd on = {.fd = sock, .events = POLLIN};
	int rc;
	do
		rc = poll(&on, 1, WELCOME_MS);
	while (rc < 0 && errno == EINTR);
	if (rc <= 0)
		return rc < 0 ? -errno : -ETIMEDOUT;
	return p3_job_recv(sock, 0, p);
}

/* Map the job's sleepers for as long as the node is there.  fd stays the caller's. */
static int yod_map_sleepers(struct p3_node *node, uint32_t size, int fd)
{
	uint64_t len = p3_sleepers_len(size);
	void *base;
	int rc = p3_seg_map(fd, len, true, &base);
	if (rc)
		return rc;
	rc = p3_seg_reach(base, len);
	if (rc)
		p3_seg_unmap(base, len);
	else
		node->sleepers = base;
	return rc;
}

/*
 * Let yod's descendants, which the other nodes are, read this process' memory: Yama's
 * scope 1 allows that only to ancestors.
 */
static void yod_let_nodes_read(int sock)
{
	char scope = 0;
	struct ucred yod;
	socklen_t len = sizeof yod;
	int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	ssize_t n = read(fd, &scope, 1);
	close(fd);
	if (n == 1 && scope == '1' &&
		!getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &yod, &len))
		(void)prctl(PR_SET_PTRACER, (unsigned long)yod.pid, 0, 0, 0);
}

int p3_job_introduce(struct p3_node *node, bool *in_domain_out)
{
	struct p3_job_packet p = {.msg = p3_member_message(node, P3_JOB_HELLO)};
	const struct p3_job_msg *m = &p.msg;
	int rc = p3_job_send_to_yod(node, m, NULL, 0);
	FAULT_POINT("init.said_hello");
	if (!rc)
		rc = yod_receive_next(node->sock, &p);
	while (!rc && m->op != P3_JOB_WELCOME && m->op != P3_JOB_REFUSED) {
		p3_job_close(&p); /* news that an earlier program left unread */
		rc = yod_receive_next(node->sock, &p);
	}
	if (!rc && m->op == P3_JOB_REFUSED) {
		p3_error("this library has layout %#llx, the launcher's %#llx; link and "
			 "launch with the same libportals",
			(unsigned long long)P3_LAYOUT_WORD,
			(unsigned long long)m->layout);
		rc = -EPROTO;
	}
	if (!rc && (m->op != P3_JOB_WELCOME || !m->size || m->size > P3_MAX_NODES ||
			   m->node >= m->size))
		rc = -EPROTO;
	bool on_hosts = m->status & P3_JOB_ON_HOSTS;
	node->size = m->size;
	if (!rc && on_hosts)
		rc = yod_modex_begin(node, p.fds[0]);
	else if (!rc && p.nfds)
		rc = yod_map_sleepers(node, m->size, p.fds[0]);
	p3_job_close(&p);
	if (rc)
		return rc;
	node->rank = m->node;
	node->modex_ops = on_hosts ? &yod_modex : NULL;
	node->nid = m->nid;
	node->jid = m->jid;
	node->uid = m->uid;
	node->cpus = m->cpus;
	*in_domain_out = m->status & P3_JOB_IN_DOMAIN;
	node->welcomed = true;
	yod_let_nodes_read(node->sock);
	FAULT_POINT("init.welcomed");
	return 0;
}

/* ---- births, ids and ends that yod reports ---- */

/* Return true if yod's packets are entered in the table of members: the node has a NIC,
 * and meets the others by yod, not in a domain. */
static bool yod_introduces(const struct p3_node *node)
{
	return node->member && !node->mesh;
}

/* Ask yod to introduce the nodes that the NIC needs. */
static void yod_meet_wanted(struct p3_node *node)
{
	for (uint32_t i = 0; i < P3_MAX_NODES / 64; i++) {
		if (!p3_get(&node->wanted[i]))
			continue;
		uint64_t bits = p3_exchange64(&node->wanted[i], 0); /* ASK.1 */
		for (; bits; bits &= bits - 1) {
			uint32_t who = i * 64 + (uint32_t)__builtin_ctzll(bits);
			if (!yod_introduces(node) || who >= node->size ||
				!node->member[who].apart)
				continue; /* it has left meanwhile */
			FAULT_POINT("apart.unsaid");
			if (p3_job_passes(yod_send_op(node, P3_JOB_AGAIN, who,
				    node->member[who].incarnation)))
				p3_or64(&node->wanted[i], bits & -bits);
		}
	}
}

/* Enter the ids of a PIDS or BORN, and note those of this node: yod knows them.  A BORN
 * may have new ids, as yod puts them into one that waits in its queue. */
static void yod_take_ids(struct p3_node *node, const struct p3_job_msg *m)
{
	p3_directory_set(&node->directory, m->node, m->nid, m->pid);
	if (m->node == node->rank)
		memcpy(node->told_pid, m->pid, sizeof node->told_pid);
}

/* Drop a node that has ended, if all its messages are taken, or if now is true.  Return
 * false if messages are left. */
static bool yod_end_peer(struct p3_node *node, uint32_t who, bool now)
{
	struct p3_member *b = &node->member[who];
	uint64_t incarnation = b->incarnation;
	if (!p3_member_remove(node, p3_nic(node), who, now))
		return !b->ending;
	FAULT_POINT("peer.undropped");
	if (b->how == P3_PEER_DIED)
		(void)yod_send_op(node, P3_JOB_DROPPED, who, incarnation);
	return true;
}

/* Process a birth.  rc is the result of receiving the packet; after -EMFILE its
 * descriptors are lost. */
static void yod_on_birth(struct p3_node *node, struct p3_nic *nic,
	const struct p3_job_msg *m, struct p3_peer_info *info, int rc)
{
	struct p3_member *b = &node->member[m->node];
	if (b->incarnation != m->incarnation)
		(void)yod_end_peer(node, m->node, true);
	b->incarnation = m->incarnation;
	/* Yod keeps its descriptors until one of the two asks for the other. */
	b->apart = info->apart = !rc && info->published < 0;
	if (b->apart)
		p3_nic_peer_expect(nic, info);
	else
		p3_member_attach(node, nic, info, rc != 0);
}

/* ---- packets of yod ---- */

/* Process a packet for the present incarnation of the node. */
static void yod_on_news(struct p3_node *node, struct p3_nic *nic,
	const struct p3_job_msg *m, struct p3_peer_info *info, int rc)
{
	struct p3_cards *cards = node->cards;
	switch (m->op) {
	case P3_JOB_BORN:
		yod_take_ids(node, m);
		if (nic)
			yod_on_birth(node, nic, m, info, rc);
		break;
	case P3_JOB_JOINED:
		node->joined = true;
		break;
	case P3_JOB_PIDS:
		yod_take_ids(node, m);
		if (nic)
			p3_nic_peer_pids(nic, info);
		break;
	case P3_JOB_TOLD:
		if (nic && m->incarnation == node->incarnation)
			p3_nic_peer_told(nic, m->round, NULL);
		break;
	case P3_JOB_OVER:
		info->nid = node->nid - node->rank + m->node;
		if (nic)
			p3_nic_peer_over(nic, info);
		break;
	case P3_JOB_LEFT:
	case P3_JOB_DIED:
		node->member[m->node].incarnation = m->incarnation;
		p3_member_end(&node->member[m->node],
			m->op == P3_JOB_DIED ? P3_PEER_DIED : P3_PEER_LEFT);
		(void)yod_end_peer(node, m->node, false);
		break;
	case P3_JOB_RELEASED:
		node->barriers_done++;
		node->barrier_status = m->status;
		node->barrier_ended = m->ended;
		break;
	case P3_JOB_CARDS:
		if (!cards || cards->came)
			break;
		cards->status = yod_modex_read(node, m, info->published);
		cards->ended = m->ended;
		cards->came = true;
		break;
	default:
		break;
	}
}

/* Process a packet.  The caller holds the lock node->life. */
static void yod_on_packet(struct p3_node *node, const struct p3_job_packet *p, int rc)
{
	const struct p3_job_msg *m = &p->msg;
	struct p3_nic *nic = p3_nic(node);
	struct p3_peer_info info = p3_member_info(node, m, p->fds);
	if (m->node >= node->size && m->op != P3_JOB_RELEASED && m->op != P3_JOB_JOINED)
		return;
	/* A packet between this node's LEAVE and yod's LEFT for it is for the incarnation
	 * that is over; yod tells the next one everything anew.  In a domain
	 * (which a job on several hosts has on each host) the members send most news
	 * themselves. */
	bool stale = node->leaving && m->op != P3_JOB_RELEASED;
	bool ignored = stale || (node->domain[0] && m->op != P3_JOB_JOINED &&
					m->op != P3_JOB_RELEASED &&
					m->op != P3_JOB_OVER && m->op != P3_JOB_CARDS);
	bool end = m->op == P3_JOB_DIED || m->op == P3_JOB_LEFT;
	if (stale && m->op == P3_JOB_LEFT && m->node == node->rank)
		node->leaving = false;
	if (m->op == P3_JOB_DIED && (ignored || !nic))
		(void)yod_send_op(node, P3_JOB_DROPPED, m->node, m->incarnation);
	if (ignored || (end && !nic))
		return;
	yod_on_news(node, nic, m, &info, rc);
	/* Threads wait for these two, and for packets about this node. */
	if (m->op == P3_JOB_JOINED || m->op == P3_JOB_RELEASED || m->node == node->rank)
		pthread_cond_broadcast(&node->changed);
}

/* Receive and process packets of yod, a bounded number at a time, since in a large job
 * many come at once and the thread has other work, too.  Return false if yod has ended.
 * The caller does not hold node->life. */
static bool life_receive(struct p3_node *node)
{
	struct p3_job_packet p;
	for (int i = 0; i < RECEIVE_MOST && yod_has_lifeline(node); i++) {
		int rc = p3_job_recv(node->sock, MSG_DONTWAIT, &p);
		if (rc == -EAGAIN || rc == -EPIPE)
			return rc == -EAGAIN;
		if (rc && rc != -EMFILE)
			continue;
		pthread_mutex_lock(&node->life);
		yod_on_packet(node, &p, rc);
		pthread_mutex_unlock(&node->life);
		p3_job_close(&p);
	}
	return true;
}

/* ---- the end of yod, or of the lifeline ---- */

/* Release the waiting threads with an error: no more packets of yod come. */
static void life_fail_waits(struct p3_node *node)
{
	node->barriers_done += !node->yod_gone;
	node->barrier_status = EPIPE;
	node->barrier_ended = P3_JOB_NO_RANK;
	node->joined = node->yod_gone = true;
	pthread_cond_broadcast(&node->changed);
}

/*
 * The program has closed the lifeline: for yod this node has ended, and yod no longer
 * listens.  Let all operations with other nodes fail, and read or write no file that now
 * has one of the library's numbers.
 */
static void life_on_fds_lost(struct p3_node *node)
{
	if (!node->fds_lost)
		p3_error("the program has closed descriptor %d of the library, so this "
			 "process leaves the job, and its operations with others fail; "
			 "close only descriptors that the program has opened, and no "
			 "range of all numbers",
			yod_has_lifeline(node) ? node->wake_fd : node->sock);
	if (yod_has_lifeline(node)) /* only the eventfd is lost: yod must see the end */
		(void)shutdown(node->sock, SHUT_RDWR);
	pthread_mutex_lock(&node->life);
	node->fds_lost = true;
	struct p3_nic *nic = node->domain[0] ? NULL : p3_nic(node);
	for (uint32_t i = 0; nic && i < node->capacity; i++) {
		struct p3_peer_info info = {
			.node = i, .end = P3_PEER_DIED, .now = true, .any = true};
		if (i != node->index)
			(void)p3_nic_peer_down(nic, &info);
	}
	if (nic) {
		p3_nic_peer_told(nic, p3_get(&node->question), NULL);
		p3_members_clear(node);
	}
	life_fail_waits(node);
	pthread_mutex_unlock(&node->life);
}

/* ---- questions ---- */

/* Return true if the NIC has a question that yod has not received.  The caller holds the
 * lock node->life, so the NIC cannot stop meanwhile. */
static bool life_has_question(struct p3_node *node)
{
	return p3_nic(node) && !node->mesh &&
	       p3_get(&node->question) != node->asked; /* ASK.1 */
}

static void life_pass_question_on(struct p3_node *node)
{
	struct p3_job_msg m = {.magic = P3_JOB_MAGIC,
		.op = P3_JOB_ASK,
		.incarnation = node->incarnation,
		.round = p3_get(&node->question)}; /* ASK.1 */
	if (!life_has_question(node))
		return;
	FAULT_POINT("ask.unsaid");
	if (!p3_job_passes(p3_job_send_to_yod(node, &m, NULL, 0)))
		node->asked = m.round;
}

/* ---- requests that are held ---- */

/* Ask yod, once a life, to report ranks that end without having joined. */
static void life_watch_ends(struct p3_node *node)
{
	if (node->held.at && !node->held.watches)
		node->held.watches = !p3_job_passes(
			yod_send_op(node, P3_JOB_WATCH, 0, node->incarnation));
}

/* Serve held requests (p3_held_see_to).  The caller holds the lock node->life. */
static void life_serve_held(struct p3_node *node)
{
	if (!p3_nic(node))
		return;
	p3_held_see_to(node, p3_nic(node));
	life_watch_ends(node);
}

/* ---- the thread ---- */

/* The time at which to repeat AGAIN and other requests that failed.  Packets that arrive
 * earlier do not change that time. */
struct again {
	uint64_t at; /* 0 if there is nothing to repeat */
	uint32_t ms; /* from the last time to this one */
};

static void life_wait_again(struct again *a, uint32_t ms)
{
	a->ms = ms < LIFE_AGAIN_MOST ? ms : LIFE_AGAIN_MOST;
	a->at = p3_now_ns() + a->ms * UINT64_C(1000000);
}

/* Return the time-out for poll(). */
static int life_poll_ms(struct p3_node *node, struct again *a)
{
	pthread_mutex_lock(&node->life);
	bool any = (yod_introduces(node) && p3_members_wait(node)) ||
		   life_has_question(node) || (node->held.at && !node->held.watches);
	for (uint32_t i = 0; i < P3_MAX_NODES / 64; i++)
		any |= p3_get(&node->wanted[i]) != 0;
	int held = p3_held_patience(node, -1);
	pthread_mutex_unlock(&node->life);
	if (any && !a->at)
		life_wait_again(a, LIFE_AGAIN_MS);
	if (!any)
		*a = (struct again){0};
	uint64_t now = p3_now_ns();
	int ms = !any ? LOOK_MS : a->at > now ? (int)((a->at - now) / 1000000 + 1) : 0;
	return held < 0 || ms < held ? ms : held;
}

static void life_ask_if_due(struct p3_node *node, struct again *a)
{
	if (!a->at || p3_now_ns() < a->at)
		return;
	bool late = false;
	pthread_mutex_lock(&node->life);
	yod_meet_wanted(node);
	life_pass_question_on(node);
	life_watch_ends(node);
	for (uint32_t i = 0; yod_introduces(node) && i < node->size; i++) {
		if (node->member[i].missing) /* there may be room to map it now */
			(void)yod_send_op(
				node, P3_JOB_AGAIN, i, node->member[i].incarnation);
		late |= !yod_end_peer(node, i, false);
	}
	pthread_mutex_unlock(&node->life);
	life_wait_again(a, late ? LATE_MS : 2 * a->ms);
}

/* Process a wake-up.  Return false if the thread must end. */
static bool life_on_wake(struct p3_node *node)
{
	uint64_t n;
	while (read(node->wake_fd, &n, sizeof n) < 0 && errno == EINTR)
		;
	if (p3_get(&node->ending))
		return false;
	pthread_mutex_lock(&node->life);
	yod_meet_wanted(node);
	life_pass_question_on(node);
	life_serve_held(node);
	pthread_mutex_unlock(&node->life);
	return true;
}

static void *life_main(void *arg)
{
	struct p3_node *node = arg;
	struct pollfd on[2] = {{.fd = node->sock, .events = POLLIN},
		{.fd = node->wake_fd, .events = POLLIN}};
	struct again again = {0};
	for (;;) {
		int n = poll(on, 2, life_poll_ms(node, &again));
		if (!yod_has_lifeline(node) ||
			((on[1].revents || !n) && !yod_has_wake(node)))
			break;
		if (n < 0)
			continue;
		if (on[1].revents && !life_on_wake(node))
			return NULL;
		life_ask_if_due(node, &again);
		pthread_mutex_lock(&node->life);
		if (p3_held_is_due(node))
			life_serve_held(node);
		pthread_mutex_unlock(&node->life);
		if (!on[0].revents || life_receive(node))
			continue;
		/* Yod is gone, and no other process would clean up: kill this one.  In a
		 * node of a test process, release the waiting threads instead. */
		if (!node->harness)
			(void)kill(getpid(), SIGKILL);
		pthread_mutex_lock(&node->life);
		life_fail_waits(node);
		pthread_mutex_unlock(&node->life);
		return NULL;
	}
	/* Wait, without packets of yod, until the node ends.  Repeat life_on_fds_lost(),
	 * which answers the NIC's later questions: yod sends no TOLD for them. */
	for (; !p3_get(&node->ending); (void)poll(NULL, 0, LOOK_MS / 10))
		life_on_fds_lost(node);
	return NULL;
}

int p3_job_start_life(struct p3_node *node)
{
	node->wake_fd = p3_fd_high(eventfd(0, EFD_CLOEXEC));
	if (node->wake_fd < 0)
		return -errno;
	node->wake_file = p3_fd_file(node->wake_fd);
	p3_set(&node->ending, 0);
	int rc = p3_worker_start(&node->thread, life_main, node);
	if (rc)
		close(node->wake_fd);
	return rc;
}

void p3_job_stop_life(struct p3_node *node)
{
	p3_set(&node->ending, 1);
	p3_job_wake(node);
	pthread_join(node->thread, NULL);
	FAULT_POINT("fini.job_over");
	p3_fd_close_own(node->wake_fd, node->wake_file);
	node->wake_fd = -1;
}
