/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * domain.c - domains, and the interface that all domains of a process share
 *
 * The first domain opens PTL_IFACE_SS, and the last one closes it: there an automatic
 * unlink needs no event of its own, and PTL_IFACE_DEFAULT stays free for the program.
 */
#include "prov.h"

#include <stdlib.h>
#include <string.h>

struct ofi_node ofi_node = {.lock = PTHREAD_MUTEX_INITIALIZER};
_Thread_local bool ofi_starts;

/* ---- the interface ---- */

static void node_fork_child(void)
{
	ofi_node.forked = ofi_node.domains != 0;
}

/* Make the descriptor of the whole space that posts no events. */
static int node_bind_quiet(void)
{
	return PtlMDBind(ofi_node.ni,
		(ptl_md_t){
			.start = (void *)OFI_SPACE_BASE,
			.length = OFI_SPACE_END - OFI_SPACE_BASE,
			.threshold = PTL_MD_THRESH_INF,
			.eq_handle = PTL_EQ_NONE,
		},
		PTL_RETAIN, &ofi_node.quiet);
}

void ofi_messages_wait(unsigned endpoint, int kind, bool on)
{
	(void)PtlXPTHold(ofi_node.ni,
		(ptl_pt_index_t)(OFI_PT_MESSAGES + 2 * (int)endpoint + kind), on);
}

/* Open the interface; pid 0: any.  The lock is held. */
static int node_open(ptl_pid_t pid)
{
	static bool watches_fork;
	int most;
	ptl_handle_me_t answer; /* tells an initiator that this process lives */
	ptl_ni_limits_t wanted = {
		.max_mes = OFI_ENTRIES,
		.max_mds = OFI_ENTRIES,
		.max_eqs = 1024,
		.max_pt_index = OFI_PT_LAST,
		.max_me_list = OFI_ENTRIES,
	};
	if (!watches_fork && pthread_atfork(NULL, NULL, node_fork_child))
		return -FI_ENOMEM;
	watches_fork = true;
	int rc = PtlInit(&most);
	if (rc != PTL_OK)
		return -FI_ENODEV;
	ofi_starts = true;
	rc = PtlNIInit(
		PTL_IFACE_SS, pid ? pid : PTL_PID_ANY, &wanted, NULL, &ofi_node.ni);
	ofi_starts = false;
	if (rc != PTL_OK)
		return ofi_error(rc); /* PTL_IFACE_DUP: the interface is the program's */
	FAULT_POINT("ofi.interface_open");
	rc = PtlGetId(ofi_node.ni, &ofi_node.id);
	if (rc == PTL_OK)
		rc = ofi_accept(OFI_PT_SYSTEM, PTL_MD_ACK_DISABLE, &answer);
	if (rc == PTL_OK)
		rc = node_bind_quiet();
	if (rc != PTL_OK)
		PtlNIFini(ofi_node.ni);
	/* Who asks for a service sends before the endpoint is there. */
	for (int kind = 0; kind < OFI_LISTS && rc == PTL_OK; kind++)
		ofi_messages_wait(0, kind, true);
	return ofi_error(rc);
}

/* Take a number for a domain; the first one opens the interface. */
static int node_join(unsigned *number, ptl_pid_t pid)
{
	int rc = 0;
	pthread_mutex_lock(&ofi_node.lock);
	unsigned free = ~ofi_node.domains & ((1u << OFI_DOMAINS) - 1);
	if (!free)
		rc = -FI_EMFILE;
	else if (!ofi_node.domains)
		rc = node_open(pid);
	else if (pid && pid != ofi_node.id.pid)
		rc = -FI_EADDRINUSE;
	if (!rc) {
		*number = (unsigned)__builtin_ctz(free);
		ofi_node.domains |= 1u << *number;
	}
	pthread_mutex_unlock(&ofi_node.lock);
	return rc;
}

static void node_leave(unsigned number)
{
	pthread_mutex_lock(&ofi_node.lock);
	ofi_node.domains &= ~(1u << number);
	ofi_node.open[number] = NULL;
	FAULT_POINT("ofi.domain_closing");
	if (!ofi_node.domains)
		PtlNIFini(ofi_node.ni);
	pthread_mutex_unlock(&ofi_node.lock);
}

int ofi_endpoint_number(unsigned *number)
{
	int rc = -FI_EMFILE;
	pthread_mutex_lock(&ofi_node.lock);
	if (~ofi_node.endpoints) {
		*number = (unsigned)__builtin_ctzll(~ofi_node.endpoints);
		ofi_node.endpoints |= 1ull << *number;
		rc = 0;
	}
	pthread_mutex_unlock(&ofi_node.lock);
	return rc;
}

void ofi_endpoint_number_free(unsigned number)
{
	pthread_mutex_lock(&ofi_node.lock);
	ofi_node.endpoints &= ~(1ull << number);
	pthread_mutex_unlock(&ofi_node.lock);
}

/* ---- domains ---- */

static int domain_close(struct fid *fid)
{
	struct ofi_domain *domain = container_of(fid, struct ofi_domain, fid.fid);
	if (ofi_node.forked)
		return -FI_EOPBADSTATE;
	if (ofi_is_held(&domain->refs))
		return -FI_EBUSY;
	ofi_mrs_close(domain);
	node_leave(domain->number);
	ofi_let_go(&domain->fabric->refs);
	if (domain->eq)
		ofi_let_go(&domain->eq->refs);
	ofi_reqs_free(domain);
	pthread_mutex_destroy(&domain->lock);
	free(domain);
	return 0;
}

static int domain_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct ofi_domain *domain = container_of(fid, struct ofi_domain, fid.fid);
	return ofi_eq_bind(&domain->eq, bfid, flags & ~FI_REG_MR);
}

/* clang-format off */
OFI_NO(int, domain_scalable_ep, struct fid_domain *domain, struct fi_info *info,
	struct fid_ep **sep, void *context)
OFI_NO(int, domain_stx_ctx, struct fid_domain *domain, struct fi_tx_attr *attr,
	struct fid_stx **stx, void *context)
OFI_NO(int, domain_srx_ctx, struct fid_domain *domain, struct fi_rx_attr *attr,
	struct fid_ep **rx_ep, void *context)
OFI_NO(int, domain_query_collective, struct fid_domain *domain,
	enum fi_collective_op op, struct fi_collective_attr *attr, uint64_t flags)
/* clang-format on */

static struct fi_ops domain_fid_ops =
	OFI_FID_OPS(domain_close, domain_bind, ofi_no_control);
static struct fi_ops_domain domain_ops = {
	.size = sizeof domain_ops,
	.av_open = ofi_av_open,
	.cq_open = ofi_cq_open,
	.endpoint = ofi_ep_open,
	.scalable_ep = domain_scalable_ep,
	.cntr_open = ofi_cntr_open,
	.poll_open = ofi_poll_open,
	.stx_ctx = domain_stx_ctx,
	.srx_ctx = domain_srx_ctx,
	.query_atomic = ofi_query_atomic,
	.query_collective = domain_query_collective,
	.endpoint2 = ofi_ep_open2,
};

int ofi_domain_open(struct fid_fabric *fabric, struct fi_info *info,
	struct fid_domain **domain, void *context)
{
	ptl_pid_t pid = 0;
	if (!info || !info->domain_attr || !domain)
		return -FI_EINVAL;
	if (ofi_node.forked)
		return -FI_EOPBADSTATE;
	if (info->src_addr) {
		if (info->src_addrlen != sizeof(struct ofi_name) ||
			!ofi_name_is_good(info->src_addr))
			return -FI_EINVAL;
		pid = ((struct ofi_name *)info->src_addr)->pid;
	}
	struct ofi_domain *made = calloc(1, sizeof *made);
	if (!made)
		return -FI_ENOMEM;
	int rc = node_join(&made->number, pid);
	if (!rc) {
		rc = ofi_mrs_open(made);
		if (rc)
			node_leave(made->number);
	}
	if (rc) {
		free(made);
		return rc;
	}
	made->fid.fid = (struct fid){FI_CLASS_DOMAIN, context, &domain_fid_ops};
	made->fid.ops = &domain_ops;
	made->fid.mr = &ofi_mr_ops;
	made->fabric = container_of(fabric, struct ofi_fabric, fid);
	made->safe = info->domain_attr->threading != FI_THREAD_DOMAIN;
	pthread_mutex_init(&made->lock, NULL);
	LIST_INIT(&made->eps);
	TAILQ_INIT(&made->free);
	TAILQ_INIT(&made->watched);
	TAILQ_INIT(&made->asks);
	ofi_hold(&made->fabric->refs);
	pthread_mutex_lock(&ofi_node.lock);
	ofi_node.open[made->number] = made;
	pthread_mutex_unlock(&ofi_node.lock);
	*domain = &made->fid;
	return 0;
}
