/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints and connections: the calls of the program. */
#include "nic/cci/internal.h"
#include "nic/run/evfd.h"
#include "shm/seg.h"

#include <errno.h>
#include <sys/mman.h>

#define CCI_TX_SLOTS 4096u

_Static_assert(
	P3_CCI_RX_MOST + P3_CCI_TX_USUAL + P3_CCI_REQUESTS + 2 * P3_CCI_CONN_MOST <=
		P3_CCI_ITEMS,
	"the rings have a word for each item");

/* ---- memory ---- */

/* Reserve the memory of an endpoint.  Only pages that messages use are ever touched. */
static struct p3_cci_endpoint *cci_endpoint_map(
	struct p3_nic *n, const struct p3_cci_endpoint_conf *conf)
{
	const uint32_t stride = (uint32_t)p3_round_up(conf->max_send_size + 1, P3_CELL);
	const uint64_t rx = p3_round_up(sizeof(struct p3_cci_endpoint), P3_PAGE);
	const uint64_t tx =
		p3_round_up(rx + P3_CCI_RX_MOST * sizeof(struct p3_cci_rx), P3_PAGE);
	const uint64_t request =
		p3_round_up(tx + P3_CCI_TX_USUAL * sizeof(struct p3_cci_tx), P3_PAGE);
	const uint64_t queue = p3_round_up(
		request + P3_CCI_REQUESTS * sizeof(struct p3_cci_request), P3_PAGE);
	const uint64_t conn = p3_round_up(queue + P3_CCI_QUEUE_LEN, P3_PAGE);
	const uint64_t conn_data = p3_round_up(
		conn + P3_CCI_CONN_MOST * sizeof(struct p3_cci_conn), P3_PAGE);
	const uint64_t region =
		p3_round_up(conn_data + P3_CCI_CONN_MOST * CCI_CONN_REQ_LEN, P3_PAGE);
	const uint64_t rx_slots = p3_round_up(
		region + P3_CCI_REGIONS * sizeof(struct p3_cci_region), P3_PAGE);
	const uint64_t tx_slots =
		p3_round_up(rx_slots + (uint64_t)P3_CCI_RX_MOST * stride, P3_PAGE);
	const uint64_t len = tx_slots + (uint64_t)CCI_TX_SLOTS * stride;
	char *at = p3_pages_map(NULL, len, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return NULL;
	struct p3_cci_endpoint *ep = (struct p3_cci_endpoint *)at;
	ep->pub.device = conf->device;
	ep->nic = n;
	ep->len = len;
	ep->number = conf->service;
	ep->mtu = conf->max_send_size;
	ep->stride = stride;
	ep->news = P3_NEWS_RESULT;
	ep->rx = (struct p3_cci_rx *)(at + rx);
	ep->tx = (struct p3_cci_tx *)(at + tx);
	ep->request = (struct p3_cci_request *)(at + request);
	ep->conn = (struct p3_cci_conn *)(at + conn);
	ep->conn_data = at + conn_data;
	ep->region = (struct p3_cci_region *)(at + region);
	ep->rx_slots = at + rx_slots;
	ep->tx_slots = at + tx_slots;
	ep->rx_count = P3_CCI_RX_USUAL;
	p3_set(&ep->rx_left, ep->rx_count);
	ep->tx_count = P3_CCI_TX_USUAL;
	ep->slot_count = CCI_TX_SLOTS;
	ep->timeout_us = P3_CCI_TIMEOUT_US;
	p3_cci_queue_init(&ep->queue, at + queue);
	p3_list_init(&ep->conns);
	p3_list_init(&ep->conns_free);
	p3_list_init(&ep->starved);
	return ep;
}

static void cci_endpoint_unmap(struct p3_cci_endpoint *ep)
{
	int saved = errno;
	(void)munmap(ep, ep->len);
	errno = saved;
}

/* ---- creation ---- */

struct cci_creation {
	struct p3_cci_endpoint *ep;
	int rc;
};

static void cci_endpoint_attach(struct p3_nic *n, void *arg)
{
	struct cci_creation *c = arg;
	struct p3_cci *cci = &n->cci;
	uint32_t i = 0;
	while (i < P3_CCI_ENDPOINTS && cci->ep[i])
		i++;
	c->rc = i == P3_CCI_ENDPOINTS ? CCI_ERANGE : CCI_SUCCESS;
	if (c->ep->number && p3_cci_endpoint_numbered(n, c->ep->number))
		c->rc = CCI_EBUSY;
	if (c->rc != CCI_SUCCESS)
		return;
	for (uint32_t number; !c->ep->number;) {
		number = cci->next_number++;
		if (cci->next_number == 0)
			cci->next_number = P3_CCI_SERVICE_MOST + 1;
		if (!p3_cci_endpoint_numbered(n, number))
			c->ep->number = number;
	}
	c->ep->index = i;
	cci->ep[i] = c->ep;
	cci->nendpoints++;
	if (c->ep->handle.evfd)
		p3_evfd_adopt(n);
	if (i >= cci->ends)
		cci->ends = i + 1;
}

/* ---- the end ---- */

static void cci_conn_withdraw(struct p3_nic *n, struct p3_cci_conn *conn)
{
	p3_list_each(it, &conn->fifo)
		p3_cci_rma_withdraw(n, p3_item(it, struct p3_cci_tx, fifo));
}

struct cci_destruction {
	struct p3_cci_endpoint *ep; /* NULL: any; out: NULL: there is none */
	struct p3_evfd *evfd;       /* out: of its handle, or NULL */
};

/* End an endpoint: no connection of it takes messages any more.  It joins the list
 * n->cci.destroyed. */
static void cci_endpoint_end(struct p3_nic *n, void *arg)
{
	struct cci_destruction *d = arg;
	struct p3_cci_endpoint *ep = NULL;
	for (uint32_t i = 0; i < n->cci.ends && !ep; i++)
		if (!d->ep || n->cci.ep[i] == d->ep)
			ep = n->cci.ep[i];
	d->ep = ep;
	if (!ep)
		return;
	d->evfd = ep->handle.evfd;
	p3_cci_desc_drain(n, ep);
	n->cci.last = &n->cci.none;
	n->cci.ep[ep->index] = NULL;
	n->cci.nendpoints--;
	p3_list_each(it, &ep->conns) {
		struct p3_cci_conn *conn = p3_item(it, struct p3_cci_conn, of_ep);
		cci_conn_withdraw(n, conn);
		p3_cci_conn_detach(n, conn);
		n->cci.nconns--;
	}
	p3_cci_region_end_all(n, ep);
	for (uint32_t i = 0; i < P3_CCI_REQUESTS; i++)
		if (ep->request[i].state == P3_CCI_REQ_COMING)
			p3_cci_setup_forget(ep->request[i].peer);
		else if (ep->request[i].state == P3_CCI_REQ_OPEN)
			p3_cci_setup_reject(n, &ep->request[i]);
	ep->next = n->cci.destroyed;
	n->cci.destroyed = ep;
}

/* Move the destroyed endpoints whose rejections have left to another list. */
static void cci_endpoint_pick_destroyed(struct p3_nic *n, void *arg)
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

static void cci_endpoint_unmap_all(struct p3_cci_endpoint *list)
{
	while (list) {
		struct p3_cci_endpoint *next = list->next;
		cci_endpoint_unmap(list);
		list = next;
	}
}

static void cci_endpoint_free_destroyed(struct p3_nic *n)
{
	struct p3_cci_endpoint *list = NULL;
	if (p3_cci_call(n, cci_endpoint_pick_destroyed, &list))
		cci_endpoint_unmap_all(list);
}

int p3_cci_endpoint_create(struct p3_nic *nic, const struct p3_cci_endpoint_conf *conf,
	cci_endpoint_t **endpoint_out)
{
	struct cci_creation c = {cci_endpoint_map(nic, conf), CCI_ENOBUFS};
	cci_endpoint_free_destroyed(nic);
	if (!c.ep)
		return CCI_ENOMEM;
	if (conf->with_handle) { /* endpoints share the news with queues */
		uint32_t news = 1u << (uintptr_t)c.ep / P3_PAGE % P3_NEWS_QUEUES;
		c.ep->handle.evfd = p3_evfd_open(nic, (uintptr_t)c.ep, news);
		c.ep->news |= news;
	}
	if (conf->with_handle && !c.ep->handle.evfd)
		c.rc = CCI_ENOMEM;
	else
		(void)p3_cci_call(nic, cci_endpoint_attach, &c);
	if (c.rc != CCI_SUCCESS) {
		if (c.ep->handle.evfd)
			p3_evfd_close(nic, c.ep->handle.evfd);
		cci_endpoint_unmap(c.ep);
		return c.rc;
	}
	*endpoint_out = &c.ep->pub;
	if (conf->with_handle)
		p3_cci_handle_begin(*endpoint_out);
	return CCI_SUCCESS;
}

bool p3_cci_endpoint_destroy(struct p3_nic *n, cci_endpoint_t *endpoint)
{
	struct cci_destruction d = {.ep = p3_cci_endpoint_own(endpoint)};
	if (!p3_cci_call(n, cci_endpoint_end, &d) || !d.ep)
		return false;
	p3_cci_wait_for_readers(n);
	/* Another thread may have freed the endpoint by now. */
	if (d.evfd)
		p3_evfd_close(n, d.evfd);
	FAULT_POINT("cci.destroyed");
	cci_endpoint_free_destroyed(n);
	return true;
}

void p3_cci_free_all(struct p3_nic *n)
{
	for (uint32_t i = 0; i < n->cci.ends; i++)
		if (n->cci.ep[i])
			cci_endpoint_unmap(n->cci.ep[i]);
	cci_endpoint_unmap_all(n->cci.destroyed);
	n->cci.destroyed = NULL;
	n->cci.ends = 0;
}

uint32_t p3_cci_endpoint_number(cci_endpoint_t *endpoint)
{
	return p3_cci_endpoint_own(endpoint)->number;
}

struct p3_cci_handle *p3_cci_handle_of(cci_endpoint_t *endpoint)
{
	return &p3_cci_endpoint_own(endpoint)->handle;
}

int p3_cci_handle_fd(cci_endpoint_t *endpoint)
{
	return p3_cci_endpoint_own(endpoint)->handle.evfd->shown;
}

/* ---- connections ---- */

int p3_cci_connect(cci_endpoint_t *endpoint, const struct p3_cci_connect *c)
{
	struct p3_cci_endpoint *ep = p3_cci_endpoint_own(endpoint);
	struct p3_cci_dial d = {.ep = ep, .c = c, .rc = CCI_ENOBUFS};
	if (c->node >= ep->nic->conf.nnodes)
		return CCI_EADDRNOTAVAIL;
	(void)p3_cci_call(ep->nic, p3_cci_setup_connect, &d);
	return d.rc;
}

int p3_cci_decide(cci_event_t *event, void *context, bool accept)
{
	struct p3_cci_item *item = (struct p3_cci_item *)(uintptr_t)event;
	struct p3_cci_decision d = {.request = (struct p3_cci_request *)item,
		.context = context,
		.accept = accept,
		.rc = CCI_ENOBUFS};
	if (item->what != P3_CCI_REQUEST)
		return CCI_EINVAL;
	(void)p3_cci_call(item->ep->nic, p3_cci_setup_decide, &d);
	return d.rc;
}

static void cci_conn_close_now(struct p3_nic *n, void *arg)
{
	struct p3_cci_conn *conn = arg;
	if (conn->state == P3_CCI_CLOSED)
		return;
	conn->refs++; /* keeps the connection until the end of this function */
	p3_set(&conn->closed, 1);
	p3_cci_msg_forget(conn);
	p3_cci_conn_detach(n, conn);
	p3_cci_conn_break(n, conn, CCI_ERR_DISCONNECTED);
	conn->state = P3_CCI_CLOSED;
	p3_cci_conn_unref(n, conn);
}

int p3_cci_disconnect(cci_connection_t *connection)
{
	struct p3_cci_conn *conn = p3_cci_conn_own(connection);
	struct p3_nic *n = conn->ep->nic;
	if (!p3_cci_call(n, cci_conn_close_now, conn))
		return CCI_ENOBUFS;
	p3_cci_wait_for_readers(n);
	return CCI_SUCCESS;
}

/* ---- options ---- */

/* An option that is a number: its word in the endpoint or the connection, and its
 * values. */
struct cci_option_row {
	cci_opt_name_t name;
	bool of_conn;
	uint32_t word, least, most;
};

#define CCI_OF_ENDPOINT(word) false, offsetof(struct p3_cci_endpoint, word)
#define CCI_OF_CONN(word)     true, offsetof(struct p3_cci_conn, word)

static const struct cci_option_row cci_option_rows[] = {
	{CCI_OPT_ENDPT_SEND_TIMEOUT, CCI_OF_ENDPOINT(timeout_us), 0, UINT32_MAX},
	{CCI_OPT_ENDPT_RECV_BUF_COUNT, CCI_OF_ENDPOINT(rx_count), 1, P3_CCI_RX_MOST},
	{CCI_OPT_ENDPT_SEND_BUF_COUNT, CCI_OF_ENDPOINT(tx_count), 1, P3_CCI_TX_USUAL},
	{CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT, CCI_OF_ENDPOINT(alive_us), 0, UINT32_MAX},
	{CCI_OPT_CONN_SEND_TIMEOUT, CCI_OF_CONN(timeout_us), 0, UINT32_MAX},
	{CCI_OPT_CONN_KEEPALIVE_TIMEOUT, CCI_OF_CONN(alive_us), 0, UINT32_MAX}};

struct cci_option {
	const struct cci_option_row *row;
	void *handle;
	bool set;
	uint32_t value;
	int rc;
};

static void cci_option_do(struct p3_nic *n, void *arg)
{
	struct cci_option *o = arg;
	struct p3_cci_endpoint *ep = o->handle;
	struct p3_cci_conn *conn = o->handle;
	uint32_t *word = (void *)((char *)o->handle + o->row->word);
	o->rc = CCI_SUCCESS;
	if (!o->set) {
		o->value = *word;
		return;
	}
	if (o->value < o->row->least || o->value > o->row->most) {
		o->rc = CCI_ERANGE;
		return;
	}
	switch (o->row->name) {
	case CCI_OPT_ENDPT_RECV_BUF_COUNT:
		p3_cci_desc_drain(n, ep);
		p3_cci_rx_set_count(ep, o->value);
		break;
	case CCI_OPT_CONN_SEND_TIMEOUT:
		p3_cci_expire_set_timeout(
			n, conn, o->value ? o->value : conn->ep->timeout_us);
		break;
	case CCI_OPT_CONN_KEEPALIVE_TIMEOUT:
		p3_cci_expire_set_alive(n, conn, o->value);
		break;
	case CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT:
		p3_list_each(it, &ep->conns)
			p3_cci_expire_set_alive(
				n, p3_item(it, struct p3_cci_conn, of_ep), o->value);
		/* fallthrough */
	default:
		*word = o->value;
	}
}

int p3_cci_number(const void *handle, cci_opt_name_t name, bool set, uint32_t *value)
{
	struct cci_option o = {cci_option_rows, (void *)(uintptr_t)handle, set,
		set ? *value : 0, CCI_ENOBUFS};
	const struct p3_cci_endpoint *ep = handle;
	while (o.row->name != name)
		if (++o.row == cci_option_rows + sizeof cci_option_rows / sizeof *o.row)
			return CCI_EINVAL;
	if (o.row->of_conn)
		ep = ((const struct p3_cci_conn *)handle)->ep;
	(void)p3_cci_call(ep->nic, cci_option_do, &o);
	if (!set && o.rc == CCI_SUCCESS)
		*value = o.value;
	return o.rc;
}
