/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections over libfabric.
 *
 * Each node listens at the address that is its name.  It opens a connection to a peer for
 * its first frame to it.  With the request it sends its index, so the peer sends its
 * frames over that connection, too.  If both nodes open a connection at the same time,
 * both send over the one of the node with the lower name.  The network must be private: a
 * program that connects, and says that it is a peer, gets that peer's frames.
 *
 * All connections share the buffers for received frames (a shared receive context).
 *
 *	out	none --first frame--> connecting --CONNECTED--> up
 *		  ^-----------SHUTDOWN or an error--------------/
 *	in	CONNREQ --> connecting --CONNECTED--> up
 *		  --SHUTDOWN or an error--> closed
 *
 * A frame that finds no connection is refused with -EAGAIN; one whose connection could
 * not be made, with -EIO once, so that the link pauses before it tries again.
 */
#include "nic/far/fabric_end.h"
#include "nic/far/link.h"
#include "shm/fd.h"
#include "shm/park.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define SPARE_IN              64u /* connections that others may open, beside 2 a node */
#define CONNECTIONS_LOOK_EACH 64u /* polls for a look at the queue of events */

enum state { NONE, CONNECTING, UP, REFUSED };

struct conn {
	struct conn *next;
	struct fid_ep *ep;
	enum state state;
	bool in; /* the other node has opened it */
	/* out: the peer's latest connection in, or NULL; in: the peer's connection out,
	 * if this is that latest connection, else NULL */
	struct conn *pair;
	uint64_t node; /* index of the peer, as it says */
	uint32_t turn; /* out: number of the last resolve of its name */
	/* The other members are for out: the peer's name. */
	uint32_t len;
	unsigned char name[P3_FAR_NAME];
};

struct p3_connections {
	struct fid_pep *pep;
	struct fid_eq *eq;
	uint32_t polls;   /* since the last look at eq */
	uint32_t opening; /* connections that are neither up nor refused */
	uint32_t nin, most_in;
	struct conn *in;   /* a list */
	struct conn **out; /* an array of nout */
	uint32_t nout;
	uint32_t turns; /* names that were resolved */
};

/* ---- one connection ---- */

static int conns_open_ep(struct p3_endpoint *e, struct conn *c, struct fi_info *info)
{
	struct p3_connections *cs = e->conns;
	int rc = fi_endpoint(e->domain, info, &c->ep, c);
	rc = rc ? rc : fi_ep_bind(c->ep, &cs->eq->fid, 0);
	rc = rc ? rc : fi_ep_bind(c->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV);
	rc = rc ? rc : fi_ep_bind(c->ep, &e->rx->fid, 0);
	return rc ? rc : fi_enable(c->ep);
}

static void conns_close_ep(struct conn *c)
{
	if (c->ep)
		(void)fi_close(&c->ep->fid);
	c->ep = NULL;
}

/* Set the port of the local address to 0: its own port is in use by the listener. */
static void conns_clear_port(struct fi_info *info)
{
	if (info->addr_format == FI_SOCKADDR_IN6)
		((struct sockaddr_in6 *)info->src_addr)->sin6_port = 0;
	else
		((struct sockaddr_in *)info->src_addr)->sin_port = 0;
}

/* Return the info for a connection to the name of c, or NULL if there is no memory. */
static struct fi_info *conns_info_to(struct p3_endpoint *e, const struct conn *c)
{
	struct fi_info *info = e->dupinfo(e->info);
	if (!info)
		return NULL;
	free(info->dest_addr);
	info->dest_addr = malloc(c->len);
	if (!info->dest_addr || !info->src_addr) {
		e->freeinfo(info);
		return NULL;
	}
	memcpy(info->dest_addr, c->name, c->len);
	info->dest_addrlen = c->len;
	conns_clear_port(info);
	return info;
}

static int conns_connect_to(struct p3_endpoint *e, struct conn *c)
{
	struct fi_info *info = conns_info_to(e, c);
	uint64_t hello = e->node;
	int rc = info ? conns_open_ep(e, c, info) : -FI_ENOMEM;
	rc = rc ? rc : fi_connect(c->ep, c->name, &hello, sizeof hello);
	if (info)
		e->freeinfo(info);
	if (rc) {
		conns_close_ep(c);
		return -EIO;
	}
	c->state = CONNECTING;
	e->conns->opening++;
	return -EAGAIN;
}

/* ---- events ---- */

/* Return the connection to the last life of a node that this node has heard of, or
 * NULL. */
static struct conn *conns_out_to(const struct p3_connections *cs, uint64_t node)
{
	struct conn *last = NULL;
	for (uint32_t i = 0; i < cs->nout; i++)
		if (cs->out[i]->node == node && (!last || cs->out[i]->turn > last->turn))
			last = cs->out[i];
	return last;
}

/* Use a connection for frames to its peer, too, if that is known by now. */
static void conns_pair_up(struct conn *in, struct conn *out)
{
	if (!out)
		return;
	if (out->pair)
		out->pair->pair = NULL; /* an older connection */
	if (in->pair)
		in->pair->pair = NULL; /* that of an earlier life */
	in->pair = out;
	out->pair = in;
}

/* Drop a connection that has broken, that could not be made, or that must be closed. */
static void conns_drop(struct p3_connections *cs, struct conn *c)
{
	if (!c->ep)
		return;
	struct conn **at = &cs->in;
	while (c->in && *at && *at != c)
		at = &(*at)->next;
	if (c->in && !*at)
		return; /* an event of a connection that is closed */
	cs->opening -= c->state == CONNECTING;
	conns_close_ep(c);
	c->state = REFUSED;
	if (!c->in)
		return;
	*at = c->next;
	cs->nin--;
	if (c->pair)
		c->pair->pair = NULL;
	free(c);
}

/* Make room for one more connection: close the oldest one over which this node does not
 * send, so that unauthenticated ones do not keep peers out.  Return true if there is
 * room. */
static bool conns_make_room(struct p3_connections *cs)
{
	struct conn *oldest = NULL;
	for (struct conn *c = cs->nin < cs->most_in ? NULL : cs->in; c; c = c->next)
		oldest = c->pair ? oldest : c;
	if (oldest)
		conns_drop(cs, oldest);
	return cs->nin < cs->most_in;
}

/* Accept a connection.  Once it has an endpoint, that has the request: closing it turns
 * the other node away, and fi_reject() would free the request twice. */
static void conns_accept_from(struct p3_endpoint *e, struct fi_info *info,
	const unsigned char *data, size_t len)
{
	struct p3_connections *cs = e->conns;
	struct conn *c = calloc(1, sizeof *c);
	if (c && len >= sizeof c->node) {
		c->in = true;
		memcpy(&c->node, data, sizeof c->node);
	}
	if (!c || !c->in || !conns_make_room(cs) || conns_open_ep(e, c, info) ||
		fi_accept(c->ep, NULL, 0)) {
		if (c && c->ep)
			conns_close_ep(c);
		else
			(void)fi_reject(cs->pep, info->handle, NULL, 0);
		free(c);
		return;
	}
	c->next = cs->in;
	cs->in = c;
	c->state = CONNECTING;
	cs->nin++;
	cs->opening++;
	conns_pair_up(c, conns_out_to(cs, c->node));
}

static void conns_on_event(struct p3_endpoint *e, uint32_t what,
	const struct fi_eq_cm_entry *entry, size_t len)
{
	struct p3_connections *cs = e->conns;
	struct conn *c = entry->fid->context;
	if (what == FI_CONNREQ) {
		conns_accept_from(e, entry->info, entry->data, len - sizeof *entry);
		e->freeinfo(entry->info);
	} else if (what == FI_CONNECTED && c->state == CONNECTING) {
		c->state = UP;
		cs->opening--;
	} else if (what == FI_SHUTDOWN) {
		conns_drop(cs, c);
	}
}

static void conns_on_error(struct p3_connections *cs)
{
	struct fi_eq_err_entry err = {.err_data_size = 0};
	if (fi_eq_readerr(cs->eq, &err, 0) > 0 && err.fid && err.fid != &cs->pep->fid)
		conns_drop(cs, err.fid->context);
}

static void conns_look(struct p3_endpoint *e)
{
	struct p3_connections *cs = e->conns;
	_Alignas(16) unsigned char entry[sizeof(struct fi_eq_cm_entry) + 64];
	uint32_t what;
	for (unsigned i = 0; i < 16; i++) {
		ssize_t n = fi_eq_read(cs->eq, &what, entry, sizeof entry, 0);
		if (n == -FI_EAVAIL)
			conns_on_error(cs);
		else if (n < (ssize_t)sizeof(struct fi_eq_cm_entry))
			return;
		else
			conns_on_event(e, what, (void *)entry, (size_t)n);
	}
}

/* Close all connections of the peer.  That ends the reads of both sides, and the answers
 * to reads. */
void p3_conns_cut(struct p3_endpoint *e, uint64_t to)
{
	struct p3_connections *cs = e->conns;
	struct conn *out = cs->out[to], *next;
	for (struct conn *c = cs->in; c; c = next) {
		next = c->next;
		if (c->node == out->node)
			conns_drop(cs, c);
	}
	conns_drop(cs, out);
	out->state = NONE;
}

void p3_conns_look(struct p3_endpoint *e)
{
	struct p3_connections *cs = e->conns;
	if (cs->opening || ++cs->polls % CONNECTIONS_LOOK_EACH == 0)
		conns_look(e);
}

/* ---- frames ---- */

int p3_conns_resolve(struct p3_endpoint *e, uint32_t node, const unsigned char *name,
	uint32_t len, uint64_t *to_out)
{
	struct p3_connections *cs = e->conns;
	if (len != e->name_len)
		return -EPROTO;
	struct conn *c;
	for (*to_out = 0; *to_out < cs->nout; ++*to_out) {
		c = cs->out[*to_out];
		if (memcmp(c->name, name, len) != 0)
			continue;
		c->node = node; /* of an earlier life, perhaps of another node */
		c->turn = ++cs->turns;
		return 0;
	}
	struct conn **out = realloc(cs->out, (cs->nout + 1) * sizeof *out);
	if (!out)
		return -ENOMEM;
	cs->out = out;
	c = calloc(1, sizeof *c);
	if (!c)
		return -ENOMEM;
	memcpy(c->name, name, len);
	c->len = len;
	c->node = node;
	c->turn = ++cs->turns;
	out[cs->nout++] = c;
	for (struct conn *in = cs->in; in; in = in->next)
		if (in->node == node && !c->pair)
			conns_pair_up(in, c);
	return 0;
}

/* Return the connection to send over.  If both nodes have opened one, take that of the
 * node with the lower name. */
static struct conn *conns_conn_for(const struct p3_endpoint *e, struct conn *out)
{
	struct conn *in = out->pair;
	if (!in || in->state != UP)
		return out;
	return out->state == UP && memcmp(e->name, out->name, out->len) < 0 ? out : in;
}

int p3_conns_send(
	struct p3_endpoint *e, uint64_t to, struct p3_far_buffer *b, uint32_t len)
{
	struct conn *c = conns_conn_for(e, e->conns->out[to]);
	if (c->state == UP)
		return p3_fabric_error(fi_send(c->ep, &b->frame, len, NULL, 0, b));
	if (c->state == CONNECTING)
		return -EAGAIN;
	if (c->state == REFUSED) {
		c->state = NONE;
		return -EIO;
	}
	return conns_connect_to(e, c);
}

/* Begin a read.  Do not open a connection for it: the peer has sent the key in a frame,
 * so there is one, or it has broken and the next frame opens one. */
int p3_conns_read(struct p3_endpoint *e, uint64_t to, struct p3_far_read *r)
{
	struct conn *c = conns_conn_for(e, e->conns->out[to]);
	if (c->state != UP)
		return -EAGAIN;
	return p3_fabric_error(
		fi_read(c->ep, r->to, r->len, NULL, 0, r->from, r->key, r));
}

/* ---- sleeping ---- */

/* Let the set e->news report the next event of each queue, once until the next call. */
static int conns_watch(struct p3_endpoint *e, int op)
{
	struct fid *const queue[2] = {&e->cq->fid, &e->conns->eq->fid};
	struct epoll_event ev = {.events = EPOLLIN | EPOLLONESHOT};
	int fd, rc = 0;
	for (int i = 0; !rc && i < 2; i++) {
		rc = fi_control(queue[i], FI_GETWAIT, &fd);
		rc = rc ? rc : epoll_ctl(e->news, op, fd, &ev) ? -errno : 0;
	}
	return rc;
}

static int conns_open_news(struct p3_endpoint *e)
{
	e->news = p3_fd_high(epoll_create1(EPOLL_CLOEXEC));
	return e->news < 0 ? -errno : conns_watch(e, EPOLL_CTL_ADD);
}

int p3_conns_arm(struct p3_endpoint *e)
{
	struct fid *queue[2] = {&e->cq->fid, &e->conns->eq->fid};
	conns_look(e);
	int rc = fi_trywait(e->fabric, queue, 2);
	return p3_fabric_error(rc ? rc : conns_watch(e, EPOLL_CTL_MOD));
}

/* ---- opening and closing ---- */

int p3_conns_open(struct p3_endpoint *e, uint32_t nnodes)
{
	struct fi_eq_attr eq = {.wait_obj = FI_WAIT_FD};
	struct fi_rx_attr rx = *e->info->rx_attr;
	struct p3_connections *cs = calloc(1, sizeof *cs);
	size_t len = sizeof e->name;
	if (!cs)
		return -FI_ENOMEM;
	e->conns = cs;
	cs->most_in = 2 * nnodes + SPARE_IN;
	rx.size = P3_FAR_POSTED;
	int rc = fi_eq_open(e->fabric, &eq, &cs->eq, NULL);
	rc = rc ? rc : conns_open_news(e);
	rc = rc ? rc : fi_srx_context(e->domain, &rx, &e->rx, NULL);
	rc = rc ? rc : fi_passive_ep(e->fabric, e->info, &cs->pep, NULL);
	rc = rc ? rc : fi_pep_bind(cs->pep, &cs->eq->fid, 0);
	rc = rc ? rc : fi_listen(cs->pep);
	rc = rc ? rc : fi_getname(&cs->pep->fid, e->name, &len);
	e->name_len = (uint32_t)len;
	return rc;
}

void p3_conns_close(struct p3_endpoint *e)
{
	struct p3_connections *cs = e->conns;
	while (cs->in)
		conns_drop(cs, cs->in);
	for (uint32_t i = 0; i < cs->nout; i++) {
		conns_close_ep(cs->out[i]);
		free(cs->out[i]);
	}
	free(cs->out);
	if (cs->pep)
		(void)fi_close(&cs->pep->fid);
	if (e->rx)
		(void)fi_close(&e->rx->fid);
	if (e->news > 0)
		p3_fd_close(e->news);
	if (cs->eq)
		(void)fi_close(&cs->eq->fid);
	free(cs);
}
