/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints: their memory, their numbers, their end. */
#include "nic/cci/call.h"
#include "nic/cci/host_wait.h"
#include "nic/cci/item.h"
#include "nic/cci/lose.h"
#include "nic/cci/queue.h"
#include "shm/atomics.h"
#include "shm/seg.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define TX_SLOTS  4096u
#define CONN_MOST 4032u /* connections that an endpoint can have, as cci.h says */

#define ITEMS     (P3_CCI_RX_MOST + P3_CCI_TX_USUAL + P3_CCI_REQUESTS + 2 * CONN_MOST)

_Static_assert(ITEMS <= P3_CCI_ITEMS, "the rings have a word for each");

static struct p3_cci_endpoint *own(cci_endpoint_t *endpoint)
{
	return (struct p3_cci_endpoint *)(uintptr_t)endpoint;
}

/* ---- memory ---- */

/* Offsets of the parts of an endpoint's memory. */
struct plan {
	uint64_t rx, tx, request, queue, rx_slots, tx_slots, len;
	uint32_t stride;
};

static struct plan plan_of(uint32_t mtu)
{
	struct plan p = {.stride = (uint32_t)p3_round_up(mtu + 1, P3_CELL)};
	p.rx = p3_round_up(sizeof(struct p3_cci_endpoint), P3_PAGE);
	p.tx = p3_round_up(p.rx + P3_CCI_RX_MOST * sizeof(struct p3_cci_rx), P3_PAGE);
	p.request =
		p3_round_up(p.tx + P3_CCI_TX_USUAL * sizeof(struct p3_cci_tx), P3_PAGE);
	p.queue = p3_round_up(
		p.request + P3_CCI_REQUESTS * sizeof(struct p3_cci_request), P3_PAGE);
	p.rx_slots = p3_round_up(p.queue + P3_CCI_QUEUE_LEN, P3_PAGE);
	p.tx_slots =
		p3_round_up(p.rx_slots + (uint64_t)P3_CCI_RX_MOST * p.stride, P3_PAGE);
	p.len = p.tx_slots + (uint64_t)TX_SLOTS * p.stride;
	return p;
}

/* Reserve the memory of an endpoint.  Only pages that messages use are ever touched. */
static struct p3_cci_endpoint *make(
	struct p3_nic *n, const struct p3_cci_endpoint_conf *conf)
{
	struct plan p = plan_of(conf->max_send_size);
	char *at = p3_pages_map(NULL, p.len, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return NULL;
	struct p3_cci_endpoint *ep = (struct p3_cci_endpoint *)at;
	ep->pub.device = conf->device;
	ep->nic = n;
	ep->len = p.len;
	ep->number = conf->service;
	ep->mtu = conf->max_send_size;
	ep->stride = p.stride;
	ep->handle.fd = conf->fd;
	ep->rx = (struct p3_cci_rx *)(at + p.rx);
	ep->tx = (struct p3_cci_tx *)(at + p.tx);
	ep->request = (struct p3_cci_request *)(at + p.request);
	ep->rx_slots = at + p.rx_slots;
	ep->tx_slots = at + p.tx_slots;
	ep->rx_count = P3_CCI_RX_USUAL;
	p3_set(&ep->rx_left, ep->rx_count);
	ep->tx_count = P3_CCI_TX_USUAL;
	ep->slot_count = TX_SLOTS;
	ep->chunks_most = CONN_MOST / P3_CCI_CHUNK;
	ep->timeout_us = P3_CCI_TIMEOUT_US;
	p3_cci_queue_init(&ep->queue, at + p.queue);
	p3_list_init(&ep->conns);
	p3_list_init(&ep->conns_free);
	p3_list_init(&ep->rma_sent);
	p3_list_init(&ep->starved);
	return ep;
}

static void drop(struct p3_cci_endpoint *ep)
{
	int saved = errno;
	while (ep->garbage) {
		struct p3_cci_blob *next = ep->garbage->next;
		free(ep->garbage);
		ep->garbage = next;
	}
	for (uint32_t i = 0; i < ep->nchunks; i++)
		free(ep->chunk[i]);
	for (uint32_t i = 0; i < ep->nregions; i++)
		free(ep->region[i]);
	(void)munmap(ep, ep->len);
	errno = saved;
}

/* ---- creation ---- */

struct creation {
	struct p3_cci_endpoint *ep;
	int rc;
};

static bool is_taken(const struct p3_nic *n, uint32_t number)
{
	for (uint32_t i = 0; i < n->cci.ends; i++)
		if (n->cci.ep[i] && n->cci.ep[i]->number == number)
			return true;
	return false;
}

static uint32_t free_number(struct p3_nic *n)
{
	uint32_t number;
	do {
		number = n->cci.next_number++;
		if (n->cci.next_number == 0)
			n->cci.next_number = P3_CCI_SERVICE_MOST + 1;
	} while (is_taken(n, number));
	return number;
}

static void attach(struct p3_nic *n, void *arg)
{
	struct creation *c = arg;
	struct p3_cci *cci = &n->cci;
	uint32_t i = 0;
	while (i < P3_CCI_ENDPOINTS && cci->ep[i])
		i++;
	c->rc = i == P3_CCI_ENDPOINTS ? CCI_ERANGE : CCI_SUCCESS;
	if (c->ep->number && is_taken(n, c->ep->number))
		c->rc = CCI_EBUSY;
	if (c->rc != CCI_SUCCESS)
		return;
	if (!c->ep->number)
		c->ep->number = free_number(n);
	c->ep->index = i;
	cci->ep[i] = c->ep;
	cci->nendpoints++;
	if (c->ep->handle.fd >= 0)
		p3_set(&cci->handles, p3_get(&cci->handles) + 1);
	if (i >= cci->ends)
		cci->ends = i + 1;
}

/* ---- the end ---- */

static void detach(struct p3_nic *n, void *arg)
{
	p3_cci_lose_endpoint(n, arg);
}

/* Move the destroyed endpoints whose rejections have left to another list. */
static void pick_destroyed(struct p3_nic *n, void *arg)
{
	struct p3_cci_endpoint **out = arg, **at = &n->cci.destroyed;
	while (*at) {
		struct p3_cci_endpoint *ep = *at;
		if (ep->rejects) {
			at = &ep->next;
			continue;
		}
		*at = ep->next;
		ep->next = *out;
		*out = ep;
	}
}

static void free_destroyed(struct p3_nic *n)
{
	struct p3_cci_endpoint *list = NULL;
	if (!p3_cci_call(n, pick_destroyed, &list))
		return;
	while (list) {
		struct p3_cci_endpoint *next = list->next;
		drop(list);
		list = next;
	}
}

int p3_cci_endpoint_create(struct p3_nic *nic, const struct p3_cci_endpoint_conf *conf,
	cci_endpoint_t **endpoint_out)
{
	struct creation c = {make(nic, conf), CCI_ENOBUFS};
	free_destroyed(nic);
	if (!c.ep)
		return CCI_ENOMEM;
	(void)p3_cci_call(nic, attach, &c);
	if (c.rc != CCI_SUCCESS)
		drop(c.ep);
	else
		*endpoint_out = &c.ep->pub;
	return c.rc;
}

void p3_cci_endpoint_destroy(cci_endpoint_t *endpoint)
{
	struct p3_cci_endpoint *ep = own(endpoint);
	struct p3_nic *n = ep->nic;
	if (!p3_cci_call(n, detach, ep))
		return; /* in a signal handler that has interrupted a call: it stays */
	p3_cci_wait_for_readers(n);
	free_destroyed(n);
}

void p3_cci_free_all(struct p3_nic *n)
{
	for (uint32_t i = 0; i < n->cci.ends; i++)
		if (n->cci.ep[i])
			drop(n->cci.ep[i]);
	while (n->cci.destroyed) {
		struct p3_cci_endpoint *next = n->cci.destroyed->next;
		drop(n->cci.destroyed);
		n->cci.destroyed = next;
	}
	n->cci.ends = 0;
}

/* ---- questions ---- */

uint32_t p3_cci_endpoint_number(cci_endpoint_t *endpoint)
{
	return own(endpoint)->number;
}

struct p3_nic *p3_cci_endpoint_nic(cci_endpoint_t *endpoint)
{
	return own(endpoint)->nic;
}

struct p3_cci_handle *p3_cci_handle_of(cci_endpoint_t *endpoint)
{
	return &own(endpoint)->handle;
}

bool p3_cci_any_event(cci_endpoint_t *endpoint)
{
	return p3_cci_queue_any(&own(endpoint)->queue);
}

bool p3_cci_nic_sleeps(cci_endpoint_t *endpoint)
{
	return p3_get(&own(endpoint)->nic->nic_asleep);
}
