/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The nodes are ranks of a job (worker.c).
 *
 * P3_MODEL_JOB is the shell's line that starts the job; P3_MODEL_SOCKET is the path of
 * the socket that is made for its ranks.  Each rank makes passes when the program waits
 * for it to settle, and by its own means at any other time.
 */
#include "model/net.h"
#include "model/orders.h"
#include "support/patience.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#define MOST_RANKS 64u

struct remote {
	int sock;
	pthread_mutex_t lock;
	uint64_t drops;
};

static struct remote remote[MOST_RANKS]; /* the first are the nodes, others are spare */
static unsigned ranks;
static pid_t job;
static __thread unsigned me;

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "model: %s\n", what);
	exit(2);
}

/* ---- memory ---- */

void *net_memory(size_t size)
{
	static char *next;
	size_t len = (size + 65535) & ~(size_t)65535;
	if (!next)
		next = mmap(ORDER_PLACE, ORDER_MEMORY, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	must(next != MAP_FAILED, "no memory at the common place");
	char *at = next;
	next += len;
	must((size_t)(next - ORDER_PLACE) <= ORDER_MEMORY, "too little memory");
	return at;
}

void net_free(void *memory)
{
	(void)memory; /* until the end of the process */
}

/* ---- orders ---- */

/* A signal lets main.c name the seed. */
static void lose(unsigned node)
{
	fprintf(stderr, "model: the process of node %u %s\n", node,
		errno == EAGAIN ? "does not answer" : "has ended");
	abort();
}

static void tell(unsigned node, const struct order *o)
{
	errno = 0;
	if (!order_write(remote[node].sock, o, sizeof *o))
		lose(node);
}

static void hear(unsigned node, struct answer *a)
{
	errno = 0;
	if (!order_read(remote[node].sock, a, sizeof *a))
		lose(node);
}

static void hear_arena(unsigned node, unsigned char *arena)
{
	static __thread struct piece piece;
	for (;;) {
		if (!order_read(remote[node].sock, &piece, sizeof piece))
			lose(node);
		if (piece.at == ORDER_LAST)
			return;
		memcpy(arena + piece.at, piece.bytes, sizeof piece.bytes);
	}
}

void remote_ask(const struct order *o, struct answer *answer_out)
{
	unsigned node = me;
	pthread_mutex_lock(&remote[node].lock);
	tell(node, o);
	hear(node, answer_out);
	pthread_mutex_unlock(&remote[node].lock);
}

void net_wrote(const struct net *net, unsigned node, const void *at, size_t len)
{
	struct order o = {.call = ORDER_WROTE, .at = (void *)at, .len = len};
	(void)net;
	pthread_mutex_lock(&remote[node].lock);
	tell(node, &o);
	if (!order_write(remote[node].sock, at, len))
		lose(node);
	pthread_mutex_unlock(&remote[node].lock);
}

void net_read(const struct net *net, unsigned node)
{
	struct order o = {.call = ORDER_READ};
	struct answer a;
	pthread_mutex_lock(&remote[node].lock);
	tell(node, &o);
	hear(node, &a);
	hear_arena(node, net->arena[node]);
	remote[node].drops = a.drops;
	pthread_mutex_unlock(&remote[node].lock);
}

void net_enter(const struct net *net, unsigned node)
{
	(void)net;
	me = node;
}

uint64_t net_drops(const struct net *net, unsigned node)
{
	(void)net;
	return remote[node].drops;
}

/* ---- rest ---- */

/* Let nodes (bits) look at the same time.  Return true if all rest; add up the messages
 * that they have sent and received. */
static bool look(unsigned nodes, bool first, uint64_t *done_out)
{
	struct order o = {.call = ORDER_SETTLE, .first = first};
	struct answer a;
	bool all = true;
	*done_out = 0;
	for (unsigned i = 0; i < NET_NODES; i++)
		if (nodes & 1u << i) {
			pthread_mutex_lock(&remote[i].lock);
			tell(i, &o);
		}
	for (unsigned i = 0; i < NET_NODES; i++)
		if (nodes & 1u << i) {
			hear(i, &a);
			pthread_mutex_unlock(&remote[i].lock);
			all = all && a.rests;
			*done_out += a.done;
		}
	return all;
}

/* Nodes rest when all have said so twice, and no message was sent or received between. */
bool net_settle(const struct net *net, unsigned nodes)
{
	struct patience p = patience_times(2);
	uint64_t before = 0, now;
	bool rested = false;
	for (bool first = true;; first = false) {
		bool rest = look(nodes, first, &now);
		if (rest && rested && now == before)
			break;
		if (patience_is_over(&p))
			return false;
		rested = rest;
		before = now;
	}
	for (unsigned i = 0; i < NET_NODES; i++)
		if (nodes & 1u << i)
			net_read(net, i);
	return true;
}

/* ---- the job ---- */

static int listener(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const char *path = getenv("P3_MODEL_SOCKET");
	must(path && strlen(path) < sizeof at.sun_path,
		"P3_MODEL_SOCKET is not set, or too long; see tests/hosts/model.sh");
	strcpy(at.sun_path, path);
	unlink(path);
	must(sock >= 0 && bind(sock, (struct sockaddr *)&at, sizeof at) == 0 &&
			listen(sock, (int)MOST_RANKS) == 0,
		"no socket");
	return sock;
}

static void start_job(void)
{
	const char *line = getenv("P3_MODEL_JOB");
	must(line != NULL, "P3_MODEL_JOB is not set; see tests/hosts/model.sh");
	job = fork();
	must(job >= 0, "no process");
	if (job)
		return;
	execl("/bin/sh", "sh", "-c", line, NULL);
	_exit(127);
}

/* Return the place of a rank in the table: ranks that are neighbors on a host are not
 * neighbors here, so the first nodes are on different hosts. */
static unsigned place_of(const struct hello *h)
{
	return h->rank % 2 ? (h->size + 1) / 2 + h->rank / 2 : h->rank / 2;
}

static void meet_one(int sock)
{
	struct pollfd fd = {.fd = sock, .events = POLLIN};
	struct patience p = patience_times(2);
	struct timeval hangs = {.tv_sec = (time_t)((p.end_ns - now_ns()) / 1000000000)};
	struct hello h = {0};
	while (poll(&fd, 1, 1000) != 1)
		must(!patience_is_over(&p), "the ranks of the job do not come");
	int one = accept4(sock, NULL, NULL, SOCK_CLOEXEC);
	must(one >= 0 && order_read(one, &h, sizeof h), "a rank has ended early");
	must(h.size >= NET_NODES && h.size <= MOST_RANKS && h.rank < h.size,
		"the job has another size");
	setsockopt(one, SOL_SOCKET, SO_RCVTIMEO, &hangs, sizeof hangs);
	ranks = h.size;
	remote[place_of(&h)].sock = one;
	remote[place_of(&h)].drops = 0;
}

static void begin(struct net *net, unsigned i)
{
	struct order o = {.call = ORDER_BEGIN};
	if (i < NET_NODES) {
		o.limits = net->limits[i];
		o.at = net->arena[i];
	}
	tell(i, &o);
}

static void begun(struct net *net, unsigned i)
{
	struct answer a;
	hear(i, &a);
	must(a.rc == PTL_OK, "a rank cannot open its interface");
	if (i >= NET_NODES)
		return;
	net->ni[i] = a.handle[0];
	net->id[i] = a.id;
	net->uid = a.uid;
	net->jid = a.jid;
	net->limits[i] = a.limits;
}

void net_up(struct net *net, unsigned n)
{
	static bool was_up;
	for (unsigned i = 0; !was_up && i < MOST_RANKS; i++)
		pthread_mutex_init(&remote[i].lock, NULL);
	was_up = true;
	net->n = n;
	ranks = 1;
	int sock = listener();
	start_job();
	for (unsigned i = 0; i < ranks; i++)
		meet_one(sock);
	close(sock);
	for (unsigned i = 0; i < ranks; i++)
		begin(net, i);
	for (unsigned i = 0; i < ranks; i++)
		begun(net, i);
}

void net_down(struct net *net)
{
	struct order o = {.call = ORDER_END};
	int status = 0;
	(void)net;
	for (unsigned i = 0; i < ranks; i++)
		tell(i, &o);
	for (unsigned i = 0; i < ranks; i++)
		close(remote[i].sock);
	must(waitpid(job, &status, 0) == job && status == 0, "the job has failed");
}

bool net_missed_faults(void)
{
	return false; /* the job's log counts frames (tests/hosts/far.sh) */
}
