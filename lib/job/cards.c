/* SPDX-License-Identifier: BSD-3-Clause */
/* The exchange of cards by yod and its agents. */
#include "lib/job/cards.h"
#include "lib/job/yod.h"
#include "shm/fd.h"
#include "shm/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct p3_cards {
	bool came;            /* CARDS has come, */
	int status;           /* with this status: 0 or an errno */
	uint32_t ended;       /* with a status: the rank that has ended */
	struct p3_card *card; /* by rank; NULL: none have come */
	uint32_t nhosts;
	struct p3_job_host host[];
};

/* ---- the hosts ---- */

/* Return true if each rank of the job is on one host. */
static bool is_whole(const struct p3_cards *c, uint32_t size)
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

int p3_cards_begin(struct p3_node *node, int hosts)
{
	off_t len = lseek(hosts, 0, SEEK_END);
	size_t n = len > 0 ? (size_t)len / sizeof(struct p3_job_host) : 0;
	size_t bytes = n * sizeof(struct p3_job_host);
	struct p3_cards *c = n <= node->size ? calloc(1, sizeof *c + bytes) : NULL;
	if (!c)
		return n <= node->size ? -ENOMEM : -EPROTO;
	c->nhosts = (uint32_t)n;
	if (pread(hosts, c->host, bytes, 0) != (ssize_t)bytes ||
		!is_whole(c, node->size)) {
		free(c);
		return -EPROTO;
	}
	node->cards = c;
	return 0;
}

static const struct p3_job_host *host_of(const struct p3_cards *c, uint32_t rank)
{
	uint32_t i = c->nhosts - 1;
	while (i && c->host[i].first > rank)
		i--;
	return &c->host[i];
}

static int hosts(struct p3_node *node, uint32_t *leader_out)
{
	for (uint32_t i = 0; i < node->size; i++)
		leader_out[i] = host_of(node->cards, i)->first;
	return 0;
}

static const char *host_name(struct p3_node *node, uint32_t rank)
{
	return host_of(node->cards, rank)->name;
}

static const char *own_address(struct p3_node *node)
{
	const char *address = host_of(node->cards, node->rank)->address;
	return *address ? address : NULL;
}

/* ---- cards ---- */

static int say(const char *what, int rc)
{
	p3_error("the card of this process cannot be %s by yod: %s; see ulimit -n and "
		 "ulimit -v",
		what, strerror(-rc));
	return rc;
}

static int send_card(struct p3_node *node, const struct p3_card *card)
{
	struct p3_job_msg m = p3_job_message(node, P3_JOB_CARD);
	int fd = memfd_create("p3-card", MFD_CLOEXEC);
	if (fd < 0)
		return say("sent", -errno);
	int rc = write(fd, card, sizeof *card) == sizeof *card ? 0 : -ENOSPC;
	m.seg_len = sizeof *card;
	rc = rc ? rc : p3_job_send_to_yod(node, &m, &fd, 1);
	close(fd);
	return rc ? say("sent", rc) : 0;
}

/* PtlNIInit has disabled cancellation; these functions do it for themselves, since they
 * are called by pointers, where no tool can see that. */
static int put(struct p3_node *node, const struct p3_card *card)
{
	int was;
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &was);
	int rc = send_card(node, card);
	(void)pthread_setcancelstate(was, NULL);
	return rc;
}

/* A card with a status has no file, and is all zeros.  It needs no descriptor. */
static void give_up(struct p3_node *node)
{
	struct p3_job_msg m = p3_job_message(node, P3_JOB_CARD);
	int was;
	m.seg_len = sizeof(struct p3_card);
	m.status = ECANCELED;
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &was);
	(void)p3_job_send_to_yod(node, &m, NULL, 0);
	(void)pthread_setcancelstate(was, NULL);
}

/* Wait for the cards.  Print a line when that takes long: a rank that never calls
 * PtlNIInit holds up all others. */
static int await_cards(struct p3_node *node)
{
	struct p3_cards *c = node->cards;
	struct timespec late;
	int rc = 0;
	(void)clock_gettime(CLOCK_REALTIME, &late);
	late.tv_sec += P3_EXCHANGE_LATE_S;
	while (!c->came && !node->yod_gone && rc != ETIMEDOUT)
		rc = pthread_cond_timedwait(&node->changed, &node->life, &late);
	if (!c->came && !node->yod_gone)
		p3_warn(P3_EXCHANGE_LATE, node->rank, P3_EXCHANGE_LATE_S, node->size);
	while (!c->came && !node->yod_gone)
		pthread_cond_wait(&node->changed, &node->life);
	if (c->came && !c->status)
		return 0;
	if (c->came && c->status == EPIPE)
		p3_error("rank %u has ended before it could tell how to reach it; this "
			 "rank gives up with it (yod tells how it ended)",
			c->ended);
	else
		(void)say("exchanged", c->came ? -c->status : -EPIPE);
	return -EPIPE;
}

static int fence(struct p3_node *node)
{
	int was;
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &was);
	int rc = await_cards(node);
	(void)pthread_setcancelstate(was, NULL);
	return rc;
}

static int get(struct p3_node *node, uint32_t rank, struct p3_card *card_out)
{
	*card_out = node->cards->card[rank];
	explicit_bzero(node->cards->card[rank].secret, sizeof card_out->secret);
	return 0;
}

static int read_cards(struct p3_node *node, const struct p3_job_msg *m, int fd)
{
	struct p3_cards *c = node->cards;
	size_t len = node->size * sizeof *c->card;
	if (m->status)
		return m->status;
	if (m->seg_len != sizeof *c->card || fd < 0)
		return EPROTO;
	c->card = malloc(len);
	if (!c->card)
		return ENOMEM;
	return pread(fd, c->card, len, 0) == (ssize_t)len ? 0 : EPROTO;
}

void p3_cards_take(struct p3_node *node, const struct p3_job_msg *m, int fd)
{
	struct p3_cards *c = node->cards;
	if (!c || c->came)
		return;
	c->status = read_cards(node, m, fd);
	c->ended = m->ended;
	c->came = true;
}

static void end(struct p3_node *node)
{
	free(node->cards->card);
	node->cards->card = NULL;
}

static const struct p3_exchange exchange = {.hosts = hosts,
	.host_name = host_name,
	.own_address = own_address,
	.put = put,
	.give_up = give_up,
	.fence = fence,
	.get = get,
	.end = end};
const struct p3_exchange *const p3_yod = &exchange;
