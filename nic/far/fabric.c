/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints over libfabric.
 *
 * The provider must have connections (FI_EP_MSG) or reliable datagrams (FI_EP_RDM), and a
 * descriptor to wait for, and must not ask for registered buffers.  tcp is the usual one,
 * tcp;ofi_rxm is tested, too.  The far wire does not rely on the provider's
 * reliability: a connection that breaks loses messages that were reported as sent.
 *
 * libfabric is loaded when the first endpoint opens, and stays: programs without other
 * hosts neither link nor load it.  fabric.c and connections.c alone know it.
 */
#include "nic/far/fabric_end.h"
#include "shm/process.h"
#include "shm/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FABRIC_FILE_NAME "libfabric.so.1"
#define VERSION          FI_VERSION(1, 17)
#define FABRIC_SPARE                                                                     \
	128u /* room in the queue of completions beyond one for each buffer */
#define READS (FI_RMA | FI_READ | FI_REMOTE_READ)

_Static_assert(sizeof(struct fi_context2) <= sizeof(((struct p3_far_op *)0)->space) &&
		       offsetof(struct p3_far_op, space) == 0 &&
		       offsetof(struct p3_far_buffer, op) == 0 &&
		       offsetof(struct p3_far_read, op) == 0,
	"a provider may use that much of the context, which is the operation");

/* ---- the library ---- */

P3_PROCESS_LOCK(load_lock)

static struct {
	bool loaded;
	int (*getinfo)(uint32_t version, const char *node, const char *service,
		uint64_t flags, const struct fi_info *hints, struct fi_info **info);
	void (*freeinfo)(struct fi_info *info);
	struct fi_info *(*dupinfo)(const struct fi_info *info);
	int (*fabric)(
		struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
	const char *(*strerror)(int errnum);
} fi;

/*
 * One of libfabric's libraries, libinfinipath of the provider psm, handles SIGSEGV,
 * SIGTERM and four other signals when it is loaded, and then ends the process by exit(),
 * which a handler must not call; this variable prevents that.  The other one lets ofi_rxm
 * send frames with the longest message as wholes (most): by default it splits them.
 */
static int fabric_load_library(void)
{
	(void)setenv("IPATH_NO_BACKTRACE", "1", 0);
	(void)setenv("FI_OFI_RXM_BUFFER_SIZE", "18432", 0);
	void *lib = dlopen(FABRIC_FILE_NAME, RTLD_NOW | RTLD_LOCAL);
	if (lib && p3_dl_find(lib, "fi_getinfo", &fi.getinfo) &&
		p3_dl_find(lib, "fi_freeinfo", &fi.freeinfo) &&
		p3_dl_find(lib, "fi_dupinfo", &fi.dupinfo) &&
		p3_dl_find(lib, "fi_fabric", &fi.fabric) &&
		p3_dl_find(lib, "fi_strerror", &fi.strerror))
		return 0;
	const char *why = dlerror();
	p3_error("PTL3_FABRIC names a provider, which needs libfabric, which cannot be "
		 "loaded: %s; install it (Debian: libfabric1), or unset PTL3_FABRIC",
		why ? why : FABRIC_FILE_NAME);
	return -ENODEV;
}

static int fabric_load(void)
{
	pthread_mutex_lock(&load_lock);
	int rc = fi.loaded ? 0 : fabric_load_library();
	fi.loaded = rc == 0;
	pthread_mutex_unlock(&load_lock);
	return rc;
}

/* ---- opening ---- */

/* Ask for the provider with these abilities, and for no more than is used. */
static struct fi_info *fabric_ask(
	const struct p3_far_conf *conf, enum fi_ep_type type, uint64_t caps)
{
	struct fi_info *hints = fi.dupinfo(NULL);
	if (!hints)
		return NULL;
	hints->caps = caps;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = type;
	if (type == FI_EP_MSG)
		hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->tx_attr->size = P3_FAR_BUFFERS;
	hints->rx_attr->size = P3_FAR_POSTED;
	hints->fabric_attr->prov_name = strdup(conf->provider);
	return hints;
}

/* Open an endpoint for datagrams. */
static int fabric_open_datagrams(struct p3_endpoint *e)
{
	struct fi_av_attr av = {.type = e->info->domain_attr->av_type};
	size_t len = sizeof e->name;
	int rc = fi_av_open(e->domain, &av, &e->av, NULL);
	rc = rc ? rc : fi_control(&e->cq->fid, FI_GETWAIT, &e->news);
	rc = rc ? rc : fi_endpoint(e->domain, e->info, &e->ep, NULL);
	rc = rc ? rc : fi_ep_bind(e->ep, &e->av->fid, 0);
	rc = rc ? rc : fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV);
	rc = rc ? rc : fi_enable(e->ep);
	rc = rc ? rc : fi_getname(&e->ep->fid, e->name, &len);
	e->rx = e->ep;
	e->name_len = (uint32_t)len;
	return rc;
}

/* Open the objects one by one.  Return 0 or a negative number of libfabric's errors,
 * which are those of errno up to a point. */
static int fabric_open_all(struct p3_endpoint *e, uint32_t nnodes)
{
	bool conns = e->info->ep_attr->type == FI_EP_MSG;
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_MSG,
		.wait_obj = FI_WAIT_FD,
		.size = P3_FAR_BUFFERS + P3_FAR_POSTED + FABRIC_SPARE};
	int rc = fi.fabric(e->info->fabric_attr, &e->fabric, NULL);
	rc = rc ? rc : fi_domain(e->fabric, e->info, &e->domain, NULL);
	rc = rc ? rc : fi_cq_open(e->domain, &cq, &e->cq, NULL);
	if (rc)
		return rc;
	return conns ? p3_conns_open(e, nnodes) : fabric_open_datagrams(e);
}

static void fabric_close_one(struct fid *what)
{
	if (what)
		(void)fi_close(what);
}

static void fabric_close_end(struct p3_endpoint *e)
{
	if (e->conns)
		p3_conns_close(e);
	fabric_close_one(e->ep ? &e->ep->fid : NULL);
	fabric_close_one(e->cq ? &e->cq->fid : NULL);
	fabric_close_one(e->av ? &e->av->fid : NULL);
	fabric_close_one(e->domain ? &e->domain->fid : NULL);
	fabric_close_one(e->fabric ? &e->fabric->fid : NULL);
	if (e->info)
		fi.freeinfo(e->info);
	free(e);
}

static int fabric_find_type(const struct p3_far_conf *conf, enum fi_ep_type type,
	uint64_t caps, struct fi_info **info_out)
{
	uint64_t flags = conf->address ? FI_SOURCE : 0;
	struct fi_info *hints = fabric_ask(conf, type, caps);
	if (!hints)
		return -ENOMEM;
	int rc = fi.getinfo(VERSION, conf->address, NULL, flags, hints, info_out);
	fi.freeinfo(hints);
	if (rc || strcmp((*info_out)->fabric_attr->prov_name, conf->provider) == 0)
		return rc;
	fi.freeinfo(*info_out);
	*info_out = NULL;
	return -FI_ENODATA;
}

/* Prefer connections, which a provider of datagrams on top of them would only wrap: on
 * TCP that wrapping doubles the time of a short message.  And only connections have
 * remote reads, since only they can be cut. */
static int fabric_find_provider(const struct p3_far_conf *conf, struct fi_info **info_out)
{
	uint64_t reads = FI_MSG | READS;
	int rc = fabric_find_type(conf, FI_EP_MSG, reads, info_out);
	rc = rc ? fabric_find_type(conf, FI_EP_MSG, FI_MSG, info_out) : 0;
	return rc ? fabric_find_type(conf, FI_EP_RDM, FI_MSG, info_out) : 0;
}

static int fabric_open_end(const struct p3_far_conf *conf, uint32_t node, uint32_t nnodes,
	struct p3_endpoint **ep_out)
{
	int rc = fabric_load();
	struct p3_endpoint *e = rc ? NULL : calloc(1, sizeof *e);
	if (!e)
		return rc ? rc : -ENOMEM;
	e->node = node;
	e->freeinfo = fi.freeinfo;
	e->dupinfo = fi.dupinfo;
	rc = fabric_find_provider(conf, &e->info);
	rc = rc ? rc : fabric_open_all(e, nnodes);
	if (!rc) {
		*ep_out = e;
		return 0;
	}
	p3_error("libfabric's provider %s (PTL3_FABRIC) at %s cannot be used: %s; "
		 "expected tcp or another provider that fi_info shows, and free "
		 "descriptors (ulimit -n)",
		conf->provider, conf->address ? conf->address : "any address",
		fi.strerror(-rc));
	fabric_close_end(e);
	return rc == -FI_ENOMEM ? -ENOMEM : -ENODEV;
}

/* ---- names ---- */

static uint32_t fabric_name(const struct p3_endpoint *e, unsigned char out[P3_FAR_NAME])
{
	memcpy(out, e->name, e->name_len);
	return e->name_len;
}

/* A provider of datagrams sends those that fit into one of its buffers as wholes, and
 * splits longer ones.  Shorter frames are a precaution: no test has shown yet that a
 * connection that breaks between the parts does harm. */
static uint32_t fabric_most(const struct p3_endpoint *e)
{
	size_t limit = 0, len = sizeof limit;
	if (e->conns || fi_getopt(&e->ep->fid, FI_OPT_ENDPOINT, FI_OPT_BUFFERED_LIMIT,
				&limit, &len))
		return P3_FAR_BYTES;
	return limit < P3_FAR_BYTES ? (uint32_t)limit : P3_FAR_BYTES;
}

static int fabric_resolve(struct p3_endpoint *e, uint32_t node, const unsigned char *text,
	uint32_t len, uint64_t *to_out)
{
	fi_addr_t to;
	if (e->conns)
		return p3_conns_resolve(e, node, text, len, to_out);
	if (len != e->name_len || fi_av_insert(e->av, text, 1, &to, 0, NULL) != 1)
		return -EPROTO;
	*to_out = to;
	return 0;
}

/* ---- frames ---- */

static int fabric_send_frame(
	struct p3_endpoint *e, uint64_t to, struct p3_far_buffer *b, uint32_t len)
{
	if (e->conns)
		return p3_conns_send(e, to, b, len);
	return p3_fabric_error(fi_send(e->ep, &b->frame, len, NULL, to, b));
}

static int fabric_post(struct p3_endpoint *e, struct p3_far_buffer *b)
{
	return p3_fabric_error(
		fi_recv(e->rx, &b->frame, P3_FAR_BYTES, NULL, FI_ADDR_UNSPEC, b));
}

/* Take one completion with an error.  Return false if there is none, or if it is of no
 * operation. */
static bool fabric_take_error(struct p3_endpoint *e, struct p3_far_event *out)
{
	struct fi_cq_err_entry err = {.err_data_size = 0};
	if (fi_cq_readerr(e->cq, &err, 0) <= 0 || !err.op_context)
		return false;
	*out = (struct p3_far_event){.op = err.op_context, .failed = true};
	return true;
}

static uint32_t fabric_take_events(
	struct p3_endpoint *e, struct p3_far_event *out, uint32_t most)
{
	struct fi_cq_msg_entry done[16];
	if (e->conns)
		p3_conns_look(e);
	ssize_t n = fi_cq_read(e->cq, done, most < 16 ? most : 16);
	if (n == -FI_EAVAIL)
		return fabric_take_error(e, out);
	for (ssize_t i = 0; i < n; i++)
		out[i] = (struct p3_far_event){
			.op = done[i].op_context, .len = (uint32_t)done[i].len};
	return n < 0 ? 0 : (uint32_t)n;
}

static int fabric_news(const struct p3_endpoint *e)
{
	return e->news;
}

static int fabric_arm(struct p3_endpoint *e)
{
	struct fid *what = &e->cq->fid;
	if (e->conns)
		return p3_conns_arm(e);
	return p3_fabric_error(fi_trywait(e->fabric, &what, 1));
}

/* ---- remote reads ---- */

static enum p3_far_reads_kind fabric_reads(const struct p3_endpoint *e)
{
	const struct fi_info *info = e->info;
	uint64_t order = info->tx_attr->msg_order & info->rx_attr->msg_order;
	if (!e->conns || (info->caps & READS) != READS || info->domain_attr->mr_mode ||
		info->domain_attr->mr_key_size < sizeof(uint64_t))
		return P3_FAR_NO_READS;
	return order & FI_ORDER_RAR ? P3_FAR_READS_IN_ORDER : P3_FAR_READS;
}

/* libc's getrandom is a cancellation point, and the lease is held. */
static uint64_t fabric_new_key(void)
{
	uint64_t key = 0;
	while (syscall(SYS_getrandom, &key, sizeof key, 0) != sizeof key || !key)
		; /* 8 bytes come whole, or the call was interrupted */
	return key;
}

static int fabric_offer(
	struct p3_endpoint *e, const void *bytes, uint64_t len, struct p3_far_region *out)
{
	struct fid_mr *mr;
	int rc = fi_mr_reg(
		e->domain, bytes, len, FI_REMOTE_READ, 0, fabric_new_key(), 0, &mr, NULL);
	if (rc)
		return -ENOMEM;
	out->handle = mr;
	out->key = fi_mr_key(mr);
	return 0;
}

static void fabric_recall(struct p3_endpoint *e, struct p3_far_region *r)
{
	struct fid_mr *mr = r->handle;
	(void)e;
	(void)fi_close(&mr->fid);
}

const struct p3_endpoint_ops p3_endpoint_fabric = {.loses_buffers = true,
	.open = fabric_open_end,
	.close = fabric_close_end,
	.name = fabric_name,
	.most = fabric_most,
	.resolve = fabric_resolve,
	.send = fabric_send_frame,
	.post = fabric_post,
	.poll = fabric_take_events,
	.news = fabric_news,
	.arm = fabric_arm,
	.reads = fabric_reads,
	.offer = fabric_offer,
	.recall = fabric_recall,
	.read = p3_conns_read,
	.cut = p3_conns_cut};

const struct p3_endpoint_ops *p3_nic_fabric(void)
{
	return fabric_load() ? NULL : &p3_endpoint_fabric;
}
