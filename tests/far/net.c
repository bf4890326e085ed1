/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints over sockets, or over libfabric, between nodes of one process. */
#include "far/net.h"

#include "nic/far/stream.h"
#ifdef P3_TEST_FABRIC
#include "nic/far/fabric.h"
#endif

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES 64u

static struct {
	uint32_t len; /* 0: the endpoint is not open */
	unsigned char text[P3_FAR_NAME];
	struct p3_endpoint *ep;
} names[NODES];
static const struct p3_endpoint_ops *base;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int open_named(const struct p3_far_conf *conf, uint32_t node, uint32_t nnodes,
	uint32_t sends, uint32_t posts, struct p3_endpoint **ep_out)
{
	int rc = node < NODES ? base->open(conf, node, nnodes, sends, posts, ep_out)
			      : -EINVAL;
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
	uint32_t len, const struct p3_far_keys *keys, uint64_t *to_out)
{
	(void)text;
	(void)len;
	pthread_mutex_lock(&lock);
	int rc = names[node].len ? base->resolve(ep, node, names[node].text,
					   names[node].len, keys, to_out)
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
		return &p3_endpoint_stream;
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
