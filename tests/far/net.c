/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints over sockets, or over libfabric, between nodes of one process. */
#include "far/net.h"

#include "nic/streams.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define NODES 64u

/* ---- streams: each node is connected with all others, and anew when that breaks ---- */

static struct {
	struct p3_endpoint *ep; /* NULL: not open */
	int fd[NODES];          /* to each other node; -1: none */
} mesh[NODES];
static pthread_mutex_t mesh_lock = PTHREAD_MUTEX_INITIALIZER;

/* Make a connection over TCP, which other programs can reset. */
static void connect_pair(int fds[2])
{
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof at;
	int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(listener, (struct sockaddr *)&at, len) || listen(listener, 1) ||
		getsockname(listener, (struct sockaddr *)&at, &len) ||
		connect(fds[0], (struct sockaddr *)&at, len)) {
		perror("net: a connection with this host");
		exit(1);
	}
	fds[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	close(listener);
	(void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
	for (int i = 0; i < 2; i++)
		(void)setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static void mesh_give(uint32_t a, uint32_t b, int fd)
{
	struct p3_connection c = {.fd = fd, .file = p3_fd_file(fd)};
	c.key[0].bytes[0] = (unsigned char)a;
	c.key[1].bytes[0] = (unsigned char)b;
	mesh[a].fd[b] = fd;
	p3_stream_give(mesh[a].ep, b, &c);
}

/* Connect a node with all that are open, and that have left its last connection. */
static void mesh_connect(uint32_t a)
{
	for (uint32_t b = 0; b < NODES; b++) {
		int fds[2];
		if (b == a || !mesh[b].ep || mesh[a].fd[b] >= 0 || mesh[b].fd[a] >= 0)
			continue;
		connect_pair(fds);
		mesh_give(a, b, fds[0]);
		mesh_give(b, a, fds[1]);
	}
}

static int mesh_open(const struct p3_far_conf *conf, uint32_t node, uint32_t nnodes,
	struct p3_endpoint **ep_out)
{
	struct p3_far_conf own = *conf;
	if (node >= NODES || p3_mac_load())
		return -EINVAL;
	own.streams = p3_streams_new(NODES);
	if (!own.streams)
		return -errno;
	pthread_mutex_lock(&mesh_lock);
	mesh[node].ep = own.streams;
	for (uint32_t b = 0; b < NODES; b++)
		mesh[node].fd[b] = -1;
	mesh_connect(node);
	pthread_mutex_unlock(&mesh_lock);
	return p3_endpoint_stream.open(&own, node, nnodes, ep_out);
}

static uint32_t mesh_node(const struct p3_endpoint *ep)
{
	uint32_t node = 0;
	while (mesh[node].ep != ep)
		node++;
	return node;
}

static void mesh_close(struct p3_endpoint *ep)
{
	p3_endpoint_stream.close(ep);
	pthread_mutex_lock(&mesh_lock);
	uint32_t node = mesh_node(ep);
	mesh[node].ep = NULL;
	for (uint32_t b = 0; b < NODES; b++) {
		if (mesh[node].fd[b] >= 0)
			close(mesh[node].fd[b]);
		mesh[node].fd[b] = -1;
	}
	p3_streams_free(ep);
	pthread_mutex_unlock(&mesh_lock);
}

/* The node has left a connection. */
static void mesh_left(struct p3_endpoint *ep, uint32_t other)
{
	pthread_mutex_lock(&mesh_lock);
	uint32_t node = mesh_node(ep);
	close(mesh[node].fd[other]);
	mesh[node].fd[other] = -1;
	mesh_connect(node);
	pthread_mutex_unlock(&mesh_lock);
}

static uint32_t mesh_poll(struct p3_endpoint *ep, struct p3_far_event *out, uint32_t most)
{
	struct p3_stream_news news;
	uint32_t n = p3_endpoint_stream.poll(ep, out, most);
	while (p3_streams_next(ep, &news))
		if (news.broken)
			mesh_left(ep, news.rank);
	return n;
}

/* Return the endpoint over streams as the nodes of a test use it. */
static const struct p3_endpoint_ops *of_streams(void)
{
	static struct p3_endpoint_ops ops;
	ops = p3_endpoint_stream;
	ops.open = mesh_open;
	ops.close = mesh_close;
	ops.poll = mesh_poll;
	return &ops;
}

/* ---- names ---- */

static struct {
	uint32_t len;
	unsigned char text[P3_FAR_NAME];
	struct p3_endpoint *ep; /* NULL: it is not open */
} names[NODES];
static const struct p3_endpoint_ops *base;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int open_named(const struct p3_far_conf *conf, uint32_t node, uint32_t nnodes,
	struct p3_endpoint **ep_out)
{
	int rc = node < NODES ? base->open(conf, node, nnodes, ep_out) : -EINVAL;
	if (rc)
		return rc;
	pthread_mutex_lock(&lock);
	names[node].ep = *ep_out;
	names[node].len = base->name(*ep_out, names[node].text);
	pthread_mutex_unlock(&lock);
	return 0;
}

static void close_named(struct p3_endpoint *ep)
{
	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < NODES; i++)
		if (names[i].ep == ep) {
			names[i].ep = NULL;
			names[i].len = 0;
		}
	pthread_mutex_unlock(&lock);
	base->close(ep);
}

static int resolve_named(struct p3_endpoint *ep, uint32_t node, const unsigned char *text,
	uint32_t len, uint64_t *to_out)
{
	(void)text;
	(void)len;
	pthread_mutex_lock(&lock);
	int rc = names[node].ep ? base->resolve(ep, node, names[node].text,
					  names[node].len, to_out)
				: -EAGAIN;
	pthread_mutex_unlock(&lock);
	return rc;
}

/* ThreadSanitizer does not know that sockets order what the threads of two nodes do: what
 * a node did before it sends comes before what another one does after it has received. */
#ifdef __SANITIZE_THREAD__
static void add_edge(void)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
}

static void push_in_order(struct p3_endpoint *ep)
{
	add_edge();
	base->push(ep);
}

static uint32_t poll_in_order(
	struct p3_endpoint *ep, struct p3_far_event *out, uint32_t most)
{
	add_edge(); /* it sends, too */
	uint32_t n = base->poll(ep, out, most);
	add_edge();
	return n;
}

static int arm_in_order(struct p3_endpoint *ep)
{
	add_edge();
	return base->arm(ep);
}

static void add_edges(struct p3_endpoint_ops *ops)
{
	ops->push = push_in_order;
	ops->poll = poll_in_order;
	ops->arm = arm_in_order;
}
#else
static void add_edges(struct p3_endpoint_ops *ops)
{
	(void)ops;
}
#endif

static const struct p3_endpoint_ops *of_libfabric(void)
{
#ifdef P3_TEST_FABRIC
	return &p3_endpoint_fabric;
#else
	return NULL;
#endif
}

const struct p3_endpoint_ops *net_wished(const char **provider_out)
{
	static char provider[80];
	const char *text = getenv("P3_FABRIC");
	*provider_out = NULL;
	if (!text)
		return NULL;
	if (strcmp(text, "stream") == 0)
		return of_streams();
	snprintf(provider, sizeof provider, "%s", text);
	for (char *at = provider; *at; at++)
		*at = *at == '+' ? ';' : *at;
	*provider_out = provider;
	return of_libfabric();
}

bool net_from_environment(struct p3_far_conf *conf)
{
	static struct p3_endpoint_ops ops;
	base = net_wished(&conf->provider);
	if (!base)
		return false;
	ops = *base;
	ops.open = open_named;
	ops.close = close_named;
	ops.resolve = resolve_named;
	add_edges(&ops);
	conf->ops = &ops;
	conf->address = "127.0.0.1";
	return true;
}
