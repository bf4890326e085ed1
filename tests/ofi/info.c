/* SPDX-License-Identifier: BSD-3-Clause */
/* Conformance of the libfabric provider: what fi_getinfo says, and the objects. */
#include "../support/leaks.h"
#include "frame.h"

#include <dlfcn.h>
#include <portals3.h>
#include <rdma/providers/fi_prov.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Return what a command prints, or NULL if it fails. */
static char *printed(const char *command)
{
	enum { MOST = 1 << 20 };
	char *text = suite_alloc(MOST);
	FILE *f = popen(command, "re");
	CHECK(f);
	size_t n = fread(text, 1, MOST - 1, f);
	text[n] = 0;
	return pclose(f) == 0 ? text : NULL;
}

static unsigned times_in(const char *text, const char *word)
{
	unsigned n = 0;
	for (const char *at = text; (at = strstr(at, word)) != NULL; at++)
		n++;
	return n;
}

static const char *provider_path(void)
{
	const char *path = getenv("FI_PROVIDER_PATH");
	return path ? path : "";
}

static void need(const char *program)
{
	char command[100];
	only_plain();
	snprintf(command, sizeof command, "command -v %s", program);
	if (!printed(command))
		skip("a program is not installed: fi_info is in libfabric-bin");
}

#define LISTED_WITH(setting)                                                             \
	printed("env -u FI_LOG_SUBSYS FI_LOG_LEVEL=warn FI_LOG_PROV=portals " setting    \
		" fi_info -p portals 2>&1")

/* A setting at an end of its range gives no line, one beyond it gives one. */
static void list_with_settings(void)
{
	const char *at_ends[] = {LISTED_WITH("FI_PORTALS_EAGER=0"),
		LISTED_WITH("FI_PORTALS_EAGER=8192"),
		LISTED_WITH("FI_PORTALS_UNEXPECTED=262144"),
		LISTED_WITH("FI_PORTALS_UNEXPECTED=1073741824")};
	const char *beyond[] = {LISTED_WITH("FI_PORTALS_EAGER=8193"),
		LISTED_WITH("FI_PORTALS_UNEXPECTED=262143"),
		LISTED_WITH("FI_PORTALS_UNEXPECTED=1073741825")};
	for (unsigned i = 0; i < 4; i++)
		CHECK(at_ends[i] && times_in(at_ends[i], "is possible") == 0);
	for (unsigned i = 0; i < 3; i++)
		CHECK(beyond[i] && times_in(beyond[i], "is possible") == 1);
}

STATEMENT(1, listed, 1, 0)
{
	only_portals("it is about one provider");
	need("fi_info");
	char *text = printed("fi_info -p portals");
	CHECK(text);
	CHECK_EQ(times_in(text, "provider: portals"), 1);
	CHECK_EQ(times_in(text, "provider: "), 1);
	CHECK_EQ(times_in(text, "type: FI_EP_RDM"), 1);
	list_with_settings();
}

STATEMENT(2, others_stay, 1, 0)
{
	only_portals("it is about one provider");
	need("fi_info");
	char *without = printed("env -u FI_PROVIDER_PATH -u FI_PROVIDER fi_info |"
				"grep provider: | grep -v portals");
	char *with =
		printed("env -u FI_PROVIDER fi_info | grep provider: | grep -v portals");
	CHECK(without && with && times_in(with, "provider: ") > 1);
	if (strcmp(with, without) != 0)
		check_failed(__FILE__, __LINE__, "with portals: %s; without: %s", with,
			without);
}

STATEMENT(3, one_symbol, 1, 0)
{
	char command[1000];
	only_portals("it is about one provider");
	need("nm");
	snprintf(command, sizeof command,
		"nm -D --defined-only '%s/libportals-fi.so' | grep -vc ' A '",
		provider_path());
	char *text = printed(command);
	CHECK(text && strcmp(text, "1\n") == 0);
	snprintf(command, sizeof command, "nm -D '%s/libportals-fi.so' | grep -c %s",
		provider_path(), "' T fi_prov_ini'");
	text = printed(command);
	CHECK(text && strcmp(text, "1\n") == 0);
}

STATEMENT(4, no_effect, 1, ALONE)
{
	char path[1000];
	struct fi_info *info = NULL, *hints = hints_of(FI_TAGGED);
	only_portals("it is about one provider");
	unsigned descriptors = descriptors_settled("self");
	unsigned threads = entries_settled("/proc/self/task");
	snprintf(path, sizeof path, "%s/libportals-fi.so", provider_path());
	void *dso = dlopen(path, RTLD_NOW);
	CHECK(dso);
	struct fi_provider *(*ini)(void) =
		(struct fi_provider * (*)(void))(uintptr_t)dlsym(dso, "fi_prov_ini");
	CHECK(ini);
	struct fi_provider *p = ini();
	CHECK(p && p->getinfo && strcmp(p->name, "portals") == 0);
	CHECK(p->fi_version == API);
	OK(p->getinfo(API, NULL, NULL, 0, hints, &info));
	CHECK_EQ(descriptors_of("self"), descriptors);
	CHECK_EQ(entries_of("/proc/self/task"), threads);
	fi_freeinfo(info);
	fi_freeinfo(hints);
	dlclose(dso);
}

/* Return the number of infos for the hints, which are freed, or a negative code. */
static int infos(uint32_t version, struct fi_info *hints)
{
	struct fi_info *info = NULL;
	int n = 0, rc = fi_getinfo(version, NULL, NULL, 0, hints, &info);
	for (struct fi_info *i = info; rc == 0 && i; i = i->next) {
		CHECK(i->ep_attr->type == FI_EP_RDM);
		n++;
	}
	fi_freeinfo(hints);
	fi_freeinfo(info);
	return rc ? rc : n;
}

STATEMENT(5, endpoint_types, 1, 0)
{
	only_portals("others have other types");
	static const enum fi_ep_type types[] = {
		FI_EP_MSG, FI_EP_DGRAM, FI_EP_SOCK_STREAM, FI_EP_SOCK_DGRAM};
	for (unsigned i = 0; i < 4; i++) {
		struct fi_info *hints = hints_of(FI_MSG);
		hints->ep_attr->type = types[i];
		CHECK_EQ(infos(API, hints), -FI_ENODATA);
	}
	struct fi_info *hints = hints_of(FI_MSG);
	hints->ep_attr->type = FI_EP_UNSPEC;
	CHECK_EQ(infos(API, hints), 1);
}

/* ---- 6: what cannot be met ---- */

static char said_path[64];

/* Send standard error to a file, in which the log of libfabric is seen. */
static void watch_log(void)
{
	snprintf(said_path, sizeof said_path, "/tmp/ofi_log.%d", (int)getpid());
	CHECK(freopen(said_path, "w+e", stderr));
	(void)unlink(said_path);
	(void)setenv("FI_LOG_LEVEL", "info", 1);
	(void)setenv("FI_LOG_PROV", "portals", 1);
}

/* Return true if the log has a line more. */
static bool says_why(void)
{
	static long had;
	fflush(stderr);
	long now = (long)lseek(fileno(stderr), 0, SEEK_END), before = had;
	had = now;
	return now > before;
}

static void refuse_hints(const char *what, struct fi_info *hints)
{
	(void)says_why();
	int rc = infos(API, hints);
	bool why = says_why();
	if (rc != -FI_ENODATA || !why) {
		printf("# %s: %s, %s\n", what, rc > 0 ? "served" : check_code(rc),
			why ? "with a reason" : "without a reason in the log");
		fflush(stdout);
		set_word(0, 1);
	}
}

#define REFUSED(setting)                                                                 \
	do {                                                                             \
		struct fi_info *h = hints_of(FI_TAGGED | FI_MSG | FI_RMA);               \
		setting;                                                                 \
		refuse_hints(#setting, h);                                               \
	} while (0)

STATEMENT(6, what_cannot_be_met, 1, ALONE)
{
	only_portals("others can other things");
	watch_log();
	CHECK_EQ(infos(API, hints_of(FI_TAGGED)), 1);
	REFUSED(h->caps |= FI_MULTICAST);
	REFUSED(h->caps |= FI_COLLECTIVE);
	REFUSED(h->caps |= FI_NAMED_RX_CTX);
	REFUSED(h->caps |= FI_VARIABLE_MSG);
	REFUSED(h->caps |= FI_HMEM);
	REFUSED(h->caps |= FI_TRIGGER);
	REFUSED(h->tx_attr->msg_order = FI_ORDER_RMA_WAW);
	REFUSED(h->tx_attr->msg_order = FI_ORDER_RMA_RAW);
	REFUSED(h->rx_attr->msg_order = FI_ORDER_RMA_WAR);
	REFUSED(h->tx_attr->comp_order = FI_ORDER_STRICT);
	REFUSED(h->rx_attr->comp_order = FI_ORDER_STRICT);
	REFUSED(h->tx_attr->inject_size = 1 << 20);
	REFUSED(h->tx_attr->iov_limit = 9);
	REFUSED(h->rx_attr->iov_limit = 9);
	REFUSED(h->tx_attr->rma_iov_limit = 9);
	REFUSED(h->tx_attr->op_flags = FI_COMMIT_COMPLETE);
	REFUSED(h->ep_attr->max_msg_size = (size_t)1 << 41);
	REFUSED(h->ep_attr->max_order_waw_size = 65);
	REFUSED(h->ep_attr->max_order_raw_size = 65);
	REFUSED(h->ep_attr->tx_ctx_cnt = 2);
	REFUSED(h->ep_attr->rx_ctx_cnt = 2);
	REFUSED(h->ep_attr->msg_prefix_size = 1);
	REFUSED(h->domain_attr->cq_data_size = 8);
	REFUSED(h->domain_attr->max_ep_tx_ctx = 2);
	CHECK_EQ(word(0), 0);
}

/* ---- 7 to 11: what is returned ---- */

STATEMENT(7, as_hinted, 1, 0)
{
	only_portals("others return what is stronger");
	for (unsigned i = 0; i < 3 * 2 * 2 * 3; i++) {
		static const enum fi_threading threads[] = {
			FI_THREAD_SAFE, FI_THREAD_DOMAIN, FI_THREAD_COMPLETION};
		static const int modes[] = {0,
			FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY, FI_MR_LOCAL};
		struct fi_info *hints = hints_of(FI_TAGGED | FI_RMA);
		enum fi_threading thread = threads[i % 3];
		enum fi_progress progress =
			i / 3 % 2 ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
		enum fi_av_type type = i / 6 % 2 ? FI_AV_TABLE : FI_AV_MAP;
		hints->domain_attr->threading = thread;
		hints->domain_attr->control_progress = progress;
		hints->domain_attr->data_progress = progress;
		hints->domain_attr->av_type = type;
		hints->domain_attr->mr_mode = modes[i / 12];
		struct fi_info *info = info_of(hints);
		CHECK(info->next == NULL);
		CHECK(info->domain_attr->threading == thread);
		CHECK(info->domain_attr->control_progress == progress);
		CHECK(info->domain_attr->data_progress == progress);
		CHECK(info->domain_attr->av_type == type);
		CHECK_EQ(info->domain_attr->mr_mode & ~modes[i / 12], 0);
		fi_freeinfo(info);
	}
}

static bool memory_is_short;

/* The provider's calls come here, too. */
struct fi_info *fi_dupinfo(const struct fi_info *info)
{
	static struct fi_info *(*next)(const struct fi_info *);
	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "fi_dupinfo");
	return memory_is_short ? NULL : next(info);
}

STATEMENT(8, no_hints, 1, 0)
{
	struct fi_info *info = NULL;
	only_portals("the list of others is their own");
	(void)setenv("FI_PROVIDER", "portals", 1);
	OK(fi_getinfo(API, NULL, NULL, 0, NULL, &info));
	CHECK(info && !info->next);
	CHECK(strcmp(info->fabric_attr->prov_name, "portals") == 0);
	uint64_t least = FI_MSG | FI_TAGGED | FI_RMA;
	CHECK_EQ(info->caps & least, least);
	CHECK(info->src_addr && info->src_addrlen == 16);
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	OK(fi_fabric(info->fabric_attr, &fabric, NULL));
	OK(fi_domain(fabric, info, &domain, NULL));
	CLOSE(domain);
	CLOSE(fabric);
	fi_freeinfo(info);
	memory_is_short = true;
	CHECK(fi_getinfo(API, NULL, NULL, 0, NULL, &info) < 0);
	memory_is_short = false;
}

STATEMENT(9, versions, 1, 0)
{
	only_portals("others serve other versions");
	for (unsigned minor = 0; minor <= 17; minor++) {
		struct fi_info *hints = hints_of(FI_TAGGED | FI_RMA);
		hints->domain_attr->mr_mode = minor < 5 ? FI_MR_SCALABLE : 0;
		CHECK_EQ(infos(FI_VERSION(1, minor), hints), 1);
		hints = hints_of(FI_TAGGED | FI_RMA);
		hints->domain_attr->mr_mode = FI_MR_UNSPEC;
		CHECK_EQ(infos(FI_VERSION(1, minor), hints), 1);
	}
	struct fi_info *hints = hints_of(FI_TAGGED | FI_RMA);
	hints->domain_attr->mr_mode = FI_MR_BASIC;
	CHECK_EQ(infos(FI_VERSION(1, 4), hints), -FI_ENODATA);
	hints = hints_of(FI_TAGGED | FI_RMA);
	hints->domain_attr->mr_mode = FI_MR_BASIC | FI_MR_SCALABLE;
	CHECK_EQ(infos(FI_VERSION(1, 4), hints), 1);
}

static const int basic = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;

static struct fi_info *hints_of_openmpi(void)
{
	struct fi_info *h =
		hints_of(FI_TAGGED | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV);
	h->mode = FI_CONTEXT | FI_CONTEXT2;
	h->tx_attr->op_flags = h->rx_attr->op_flags = FI_COMPLETION;
	h->domain_attr->threading = FI_THREAD_SAFE;
	h->domain_attr->cq_data_size = 4;
	h->domain_attr->av_type = FI_AV_MAP;
	h->domain_attr->mr_mode = FI_MR_UNSPEC;
	return h;
}

static struct fi_info *hints_of_rma(uint64_t caps)
{
	struct fi_info *h = hints_of(caps | FI_MSG);
	h->domain_attr->mr_mode = basic;
	h->domain_attr->resource_mgmt = FI_RM_UNSPEC;
	h->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	return h;
}

static struct fi_info *hints_of_mpich(void)
{
	uint64_t rma = FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE |
		       FI_ATOMIC;
	struct fi_info *h = hints_of(FI_TAGGED | FI_DIRECTED_RECV | FI_MSG |
				     FI_MULTI_RECV | FI_SEND | FI_RECV | (rma));
	h->mode = FI_CONTEXT | FI_CONTEXT2 | FI_ASYNC_IOV | FI_RX_CQ_DATA;
	h->ep_attr->mem_tag_format = 0x00E000007FFFFFFF;
	h->tx_attr->msg_order = h->rx_attr->msg_order =
		FI_ORDER_SAS | (FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_WAW);
	h->tx_attr->op_flags = FI_COMPLETION;
	h->domain_attr->threading = FI_THREAD_DOMAIN;
	h->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	h->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	h->domain_attr->av_type = FI_AV_TABLE;
	return h;
}

STATEMENT(10, clients, 1, 0)
{
	only_portals("others refuse some");
	const uint32_t old = FI_VERSION(1, 5);
	CHECK_EQ(infos(old, hints_of_openmpi()), 1);
	CHECK_EQ(infos(old, hints_of_rma(FI_RMA | FI_ATOMIC)), 1); /* btl/ofi */
	CHECK_EQ(infos(API, hints_of_mpich()), 1);
	struct fi_info *shmem = hints_of_rma(FI_RMA | FI_ATOMIC);
	shmem->domain_attr->data_progress = FI_PROGRESS_AUTO;
	shmem->domain_attr->resource_mgmt = FI_RM_ENABLED;
	shmem->domain_attr->av_type = FI_AV_TABLE;
	shmem->tx_attr->inject_size = 16;
	CHECK_EQ(infos(old, shmem), 1);
	CHECK_EQ(infos(old, hints_of_rma(FI_RMA)), 1); /* GASNet */
	struct fi_info *am = hints_of(FI_MSG | FI_MULTI_RECV);
	am->tx_attr->op_flags = FI_INJECT_COMPLETE;
	CHECK_EQ(infos(old, am), 1);
	struct fi_info *pingpong = hints_of(FI_TAGGED);
	pingpong->domain_attr->mr_mode = FI_MR_LOCAL | basic;
	pingpong->mode = FI_CONTEXT | FI_CONTEXT2 | FI_MSG_PREFIX;
	CHECK_EQ(infos(FI_VERSION(1, 4), pingpong) > 0, true);
}

STATEMENT(11, no_mode, 1, 0)
{
	not_over("tcp;ofi_rxm", "it likes to receive into its buffers");
	struct fi_info *hints = hints_of(FI_TAGGED | FI_RMA);
	hints->mode = UINT64_MAX >> 1;
	struct fi_info *info = info_of(hints);
	CHECK_EQ(info->mode, 0);
	CHECK_EQ(info->tx_attr->mode, 0);
	CHECK_EQ(info->rx_attr->mode, 0);
	CHECK_EQ(info->domain_attr->mode, 0);
	fi_freeinfo(info);
}

/* ---- 12: tables ---- */

/* Check that a table says its size, and has a function at each place. */
static void check_table(int line, const void *table, size_t size)
{
	const uintptr_t *words = table;
	if (!table)
		check_failed(__FILE__, line, "there is no table");
	if (words[0] != size)
		check_failed(
			__FILE__, line, "size is %zu, not %zu", (size_t)words[0], size);
	for (size_t i = 1; i < size / sizeof *words; i++)
		if (!words[i])
			check_failed(__FILE__, line, "function %zu is NULL", i);
}
#define TABLE(ops) check_table(__LINE__, ops, sizeof *(ops))

STATEMENT(12, no_function_is_missing, 1, 0)
{
	only_portals("others have gaps");
	struct fid_cntr *c[COUNTERS];
	struct side *s = side_open((struct how){
		.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC, .counters = c});
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct fid_eq *eq;
	static char bytes[8];
	OK(fi_eq_open(s->fabric, &attr, &eq, NULL));
	struct region r = region_open(s, bytes, 8, FI_REMOTE_READ, 1);
	struct fid_poll *set;
	OK(fi_poll_open(s->domain, &(struct fi_poll_attr){0}, &set));
	struct fid *const fids[] = {&s->fabric->fid, &s->domain->fid, &s->av->fid,
		&s->tx->fid, &s->ep->fid, &c[0]->fid, &eq->fid, &r.mr->fid, &set->fid};
	for (unsigned i = 0; i < sizeof fids / sizeof fids[0]; i++)
		TABLE(fids[i]->ops);
	TABLE(s->fabric->ops);
	TABLE(s->domain->ops);
	TABLE(s->domain->mr);
	TABLE(s->av->ops);
	TABLE(s->tx->ops);
	TABLE(c[0]->ops);
	TABLE(eq->ops);
	TABLE(set->ops);
	TABLE(s->ep->ops);
	TABLE(s->ep->cm);
	TABLE(s->ep->msg);
	TABLE(s->ep->rma);
	TABLE(s->ep->tagged);
	TABLE(s->ep->atomic);
	struct fid_ep *ep = NULL;
	struct fid_pep *pep = NULL;
	struct fid_stx *stx = NULL;
	FAILS(fi_passive_ep(s->fabric, s->info, &pep, NULL), -FI_ENOSYS);
	FAILS(fi_scalable_ep(s->domain, s->info, &ep, NULL), -FI_ENOSYS);
	FAILS(fi_stx_context(s->domain, NULL, &stx, NULL), -FI_ENOSYS);
	FAILS(fi_srx_context(s->domain, NULL, &ep, NULL), -FI_ENOSYS);
	FAILS(fi_tx_context(s->ep, 0, NULL, &ep, NULL), -FI_ENOSYS);
	FAILS(fi_rx_context(s->ep, 0, NULL, &ep, NULL), -FI_ENOSYS);
	FAILS(fi_connect(s->ep, bytes, NULL, 0), -FI_ENOSYS);
	FAILS(fi_accept(s->ep, NULL, 0), -FI_ENOSYS);
	FAILS(fi_shutdown(s->ep, 0), -FI_ENOSYS);
	FAILS(fi_getpeer(s->ep, bytes, &(size_t){8}), -FI_ENOSYS);
	CLOSE(set);
	CLOSE(r.mr);
	CLOSE(eq);
}

/* ---- 13 to 17: objects ---- */

STATEMENT(13, limits, 1, 0)
{
	enum { FABRICS = 2, DOMAINS = 16, ENDS = 64 };
	only_portals("others have other limits");
	struct fid_fabric *fabric[FABRICS + 1];
	struct fid_domain *domain[DOMAINS + 1];
	struct fid_ep *ep[ENDS + 1];
	struct fid_av *av[DOMAINS];
	struct fid_cq *cq[DOMAINS];
	struct fi_av_attr attr = {.type = FI_AV_TABLE};
	struct fi_info *info = info_of(hints_of(FI_TAGGED));
	for (unsigned i = 0; i < FABRICS; i++)
		OK(fi_fabric(info->fabric_attr, &fabric[i], NULL));
	for (unsigned i = 0; i < DOMAINS; i++) {
		OK(fi_domain(fabric[i % FABRICS], info, &domain[i], NULL));
		OK(fi_av_open(domain[i], &attr, &av[i], NULL));
		cq[i] = queue_open(domain[i], FI_CQ_FORMAT_TAGGED, FI_WAIT_NONE, 0);
	}
	FAILS(fi_domain(fabric[0], info, &domain[DOMAINS], NULL), -FI_EMFILE);
	for (unsigned i = 0; i < ENDS; i++) {
		OK(fi_endpoint(domain[i % DOMAINS], info, &ep[i], NULL));
		OK(fi_ep_bind(ep[i], &av[i % DOMAINS]->fid, 0));
		OK(fi_ep_bind(ep[i], &cq[i % DOMAINS]->fid, FI_TRANSMIT | FI_RECV));
		OK(fi_enable(ep[i]));
	}
	FAILS(fi_endpoint(domain[0], info, &ep[ENDS], NULL), -FI_EMFILE);
	CLOSE(ep[5]);
	OK(fi_endpoint(domain[0], info, &ep[5], NULL)); /* in the room of one that went */
	for (unsigned i = 0; i < ENDS; i++)
		CLOSE(ep[i]);
	for (unsigned i = 0; i < DOMAINS; i++) {
		CLOSE(av[i]);
		CLOSE(cq[i]);
		CLOSE(domain[i]);
	}
	CLOSE(fabric[0]);
	CLOSE(fabric[1]);
	fi_freeinfo(info);
}

STATEMENT(14, order_of_closing, 1, 0)
{
	only_portals("others close what is used");
	struct fi_info *info = info_of(hints_of(FI_TAGGED | FI_RMA));
	for (unsigned order = 0; order < 24; order++) {
		struct fid_fabric *fabric;
		struct fid_domain *domain;
		struct fid_ep *ep;
		struct fid_av *av;
		struct fid_cq *cq;
		struct fid_cntr *cntr;
		struct fid_mr *mr;
		static char bytes[8];
		struct fi_av_attr attr = {.type = FI_AV_MAP};
		OK(fi_fabric(info->fabric_attr, &fabric, NULL));
		OK(fi_domain(fabric, info, &domain, NULL));
		OK(fi_av_open(domain, &attr, &av, NULL));
		cq = queue_open(domain, FI_CQ_FORMAT_TAGGED, FI_WAIT_NONE, 0);
		OK(fi_cntr_open(domain, NULL, &cntr, NULL));
		OK(fi_mr_reg(domain, bytes, 8, FI_REMOTE_WRITE, 0, 1, 0, &mr, NULL));
		OK(fi_endpoint(domain, info, &ep, NULL));
		OK(fi_ep_bind(ep, &av->fid, 0));
		OK(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
		OK(fi_ep_bind(ep, &cntr->fid, FI_SEND));
		OK(fi_enable(ep));
		FAILS(fi_close(&av->fid), -FI_EBUSY);
		FAILS(fi_close(&cq->fid), -FI_EBUSY);
		FAILS(fi_close(&cntr->fid), -FI_EBUSY);
		FAILS(fi_close(&domain->fid), -FI_EBUSY);
		FAILS(fi_close(&fabric->fid), -FI_EBUSY);
		CLOSE(ep);
		struct fid *rest[] = {&av->fid, &cq->fid, &cntr->fid, &mr->fid};
		for (unsigned n = 4, code = order; n > 0; code /= n, n--) {
			FAILS(fi_close(&domain->fid), -FI_EBUSY);
			OK(fi_close(rest[code % n]));
			rest[code % n] = rest[n - 1];
		}
		CLOSE(domain);
		CLOSE(fabric);
	}
	fi_freeinfo(info);
}

static void open_portals(ptl_interface_t face, int want, ptl_handle_ni_t *ni)
{
	int n;
	CHECK_EQ(PtlInit(&n), PTL_OK);
	CHECK_EQ(PtlNIInit(face, PTL_PID_ANY, NULL, NULL, ni), want);
}

STATEMENT(15, again, 1, ALONE)
{
	only_portals("it is about one interface");
	for (unsigned i = 0; i < 10; i++)
		side_close(side_open((struct how){.caps = FI_TAGGED}));
	ptl_handle_ni_t ni;
	open_portals(PTL_IFACE_SS, PTL_OK, &ni);
	CHECK_EQ(PtlNIFini(ni), PTL_OK);
	struct side *s = side_open((struct how){.caps = FI_TAGGED});
	int value = 15;
	send_now(s, 0, &value, sizeof value, 1);
	(void)recv_now(s, &value, sizeof value, 1);
}

/* Put eight bytes from this process into itself. */
static void put_to_self(ptl_handle_ni_t ni, uint64_t value)
{
	static uint64_t from, to;
	ptl_handle_eq_t eq;
	ptl_handle_me_t me_handle;
	ptl_handle_md_t target, source;
	ptl_process_id_t self, any = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_event_t event;
	ptl_md_t md = {.start = &to,
		.length = 8,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE};
	from = value;
	CHECK_EQ(PtlGetId(ni, &self), PTL_OK);
	CHECK_EQ(PtlEQAlloc(ni, 8, PTL_EQ_HANDLER_NONE, &eq), PTL_OK);
	md.eq_handle = eq;
	CHECK_EQ(PtlMEAttach(ni, 5, any, 1, 0, PTL_RETAIN, PTL_INS_AFTER, &me_handle),
		PTL_OK);
	CHECK_EQ(PtlMDAttach(me_handle, md, PTL_RETAIN, &target), PTL_OK);
	md.start = &from;
	md.eq_handle = PTL_EQ_NONE;
	CHECK_EQ(PtlMDBind(ni, md, PTL_RETAIN, &source), PTL_OK);
	CHECK_EQ(PtlPut(source, PTL_NOACK_REQ, self, 5, 0, 1, 0, 0), PTL_OK);
	CHECK_EQ(PtlEQWait(eq, &event), PTL_OK);
	CHECK(event.type == PTL_EVENT_PUT_END && to == value);
	CHECK_EQ(PtlMDUnlink(source), PTL_OK);
	CHECK_EQ(PtlMEUnlink(me_handle), PTL_OK);
	CHECK_EQ(PtlEQFree(eq), PTL_OK);
}

STATEMENT(16, beside_portals, 2, ALONE)
{
	only_portals("it is about one library");
	ptl_handle_ni_t ni;
	static uint32_t value;
	open_portals(PTL_IFACE_DEFAULT, PTL_OK, &ni);
	put_to_self(ni, 1);
	struct side *s = side_open((struct how){.caps = FI_TAGGED});
	put_to_self(ni, 2);
	if (me.is_client)
		send_now(s, 1, &value, 4, 1);
	else
		(void)recv_now(s, &value, 4, 1);
	put_to_self(ni, 3);
	barrier();
	side_close(s);
	put_to_self(ni, 4);
	CHECK_EQ(PtlNIFini(ni), PTL_OK);
	PtlFini();
}

STATEMENT(17, interface_in_use, 1, ALONE)
{
	only_portals("it is about one library");
	ptl_handle_ni_t ni;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fi_info *info = info_of(hints_of(FI_TAGGED));
	open_portals(PTL_IFACE_SS, PTL_OK, &ni);
	OK(fi_fabric(info->fabric_attr, &fabric, NULL));
	FAILS(fi_domain(fabric, info, &domain, NULL), -FI_EBUSY);
	CHECK_EQ(PtlNIFini(ni), PTL_OK);
	OK(fi_domain(fabric, info, &domain, NULL));
	CLOSE(domain);
	CLOSE(fabric);
	fi_freeinfo(info);
}
