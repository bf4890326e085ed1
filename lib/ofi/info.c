/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * info.c - what the provider offers, and whether it meets a program's hints
 *
 * One info answers every question.  Attributes that cost nothing are returned as the
 * program asks for them, never stronger.
 */
#include "prov.h"

#include <stdlib.h>
#include <string.h>

/* Refuse, with a reason for FI_LOG_LEVEL=info. */
#define REFUSE(...)                                                                      \
	({                                                                               \
		FI_INFO(&ofi_provider, FI_LOG_CORE, __VA_ARGS__);                        \
		-FI_ENODATA;                                                             \
	})

#define ALL_CAPS (OFI_TX_CAPS | OFI_RX_CAPS | OFI_DOMAIN_CAPS)

static struct fi_tx_attr info_tx = {
	.caps = OFI_TX_CAPS,
	.msg_order = OFI_MSG_ORDER,
	.inject_size = OFI_INJECT,
	.size = OFI_SENDS,
	.iov_limit = OFI_IOVS,
	.rma_iov_limit = OFI_IOVS,
};
static struct fi_rx_attr info_rx = {
	.caps = OFI_RX_CAPS,
	.msg_order = OFI_MSG_ORDER,
	.size = OFI_POSTED,
	.iov_limit = OFI_IOVS,
};
static struct fi_ep_attr info_ep = {
	.type = FI_EP_RDM,
	.protocol = OFI_PROTOCOL,
	.protocol_version = 1,
	.max_msg_size = OFI_MAX_MSG,
	.max_order_raw_size = OFI_ATOMIC,
	.max_order_war_size = OFI_ATOMIC,
	.max_order_waw_size = OFI_ATOMIC,
	.mem_tag_format = OFI_TAG_FORMAT,
	.tx_ctx_cnt = 1,
	.rx_ctx_cnt = 1,
};
static struct fi_domain_attr info_domain = {
	.name = OFI_NAME,
	.threading = FI_THREAD_SAFE,
	.control_progress = FI_PROGRESS_AUTO,
	.data_progress = FI_PROGRESS_AUTO,
	.resource_mgmt = FI_RM_ENABLED,
	.av_type = FI_AV_UNSPEC,
	.mr_key_size = sizeof(uint64_t),
	.cq_data_size = sizeof(uint32_t),
	.cq_cnt = OFI_ENDPOINTS,
	.ep_cnt = OFI_ENDPOINTS,
	.tx_ctx_cnt = OFI_ENDPOINTS,
	.rx_ctx_cnt = OFI_ENDPOINTS,
	.max_ep_tx_ctx = 1,
	.max_ep_rx_ctx = 1,
	.cntr_cnt = OFI_ENDPOINTS,
	.mr_iov_limit = OFI_IOVS,
	.caps = OFI_DOMAIN_CAPS,
	.mr_cnt = OFI_ENTRIES / 4,
};
static struct fi_fabric_attr info_fabric = {
	.name = OFI_NAME,
};
static const struct fi_info info_base = {
	.caps = ALL_CAPS,
	.addr_format = FI_FORMAT_UNSPEC,
	.tx_attr = &info_tx,
	.rx_attr = &info_rx,
	.ep_attr = &info_ep,
	.domain_attr = &info_domain,
	.fabric_attr = &info_fabric,
};

/* ---- hints ---- */

static int info_check_tx(const struct fi_tx_attr *hint)
{
	if (hint->caps & ~ALL_CAPS)
		return REFUSE("transmit capabilities are not supported\n");
	if (hint->op_flags & ~OFI_TX_FLAGS)
		return REFUSE("flags of transmit operations are not supported\n");
	if (hint->msg_order & ~OFI_MSG_ORDER)
		return REFUSE("the order of messages is not guaranteed\n");
	if (hint->comp_order)
		return REFUSE("completions have no order\n");
	if (hint->inject_size > OFI_INJECT || hint->size > OFI_SENDS ||
		hint->iov_limit > OFI_IOVS || hint->rma_iov_limit > OFI_IOVS)
		return REFUSE("a limit of transmit operations is too large\n");
	return 0;
}

static int info_check_rx(const struct fi_rx_attr *hint)
{
	if (hint->caps & ~ALL_CAPS)
		return REFUSE("receive capabilities are not supported\n");
	if (hint->op_flags & ~OFI_RX_FLAGS)
		return REFUSE("flags of receive operations are not supported\n");
	if (hint->msg_order & ~OFI_MSG_ORDER)
		return REFUSE("the order of messages is not guaranteed\n");
	if (hint->comp_order & ~FI_ORDER_DATA)
		return REFUSE("completions have no order\n");
	if (hint->iov_limit > OFI_IOVS)
		return REFUSE("receives have at most %d elements\n", OFI_IOVS);
	return 0;
}

static int info_check_ep(const struct fi_ep_attr *hint)
{
	if (hint->type != FI_EP_UNSPEC && hint->type != FI_EP_RDM)
		return REFUSE("endpoints are of type FI_EP_RDM\n");
	if (hint->protocol != FI_PROTO_UNSPEC && hint->protocol != OFI_PROTOCOL)
		return REFUSE("the protocol is another one\n");
	if (hint->protocol_version > info_ep.protocol_version)
		return REFUSE("the protocol is older\n");
	if (hint->max_msg_size > OFI_MAX_MSG)
		return REFUSE("messages have at most %zu bytes\n", OFI_MAX_MSG);
	if (hint->msg_prefix_size)
		return REFUSE("messages have no prefix\n");
	if (hint->max_order_raw_size > OFI_ATOMIC ||
		hint->max_order_war_size > OFI_ATOMIC ||
		hint->max_order_waw_size > OFI_ATOMIC)
		return REFUSE("data of more than %d bytes have no order\n", OFI_ATOMIC);
	if (hint->mem_tag_format >> OFI_SOURCE_SHIFT)
		return REFUSE("tags have %d bits\n", OFI_SOURCE_SHIFT);
	if (hint->tx_ctx_cnt > 1 || hint->rx_ctx_cnt > 1)
		return REFUSE("endpoints have one context\n");
	if (hint->auth_key_size)
		return REFUSE("authorization keys are not supported\n");
	return 0;
}

static int info_check_domain(const struct fi_domain_attr *hint)
{
	if (hint->name && strcmp(hint->name, OFI_NAME))
		return REFUSE("domain %s is not mine\n", hint->name);
	if (hint->cq_data_size > info_domain.cq_data_size)
		return REFUSE("completion data have at most 4 bytes\n");
	if (hint->mr_key_size > info_domain.mr_key_size)
		return REFUSE("keys have at most 8 bytes\n");
	if (hint->ep_cnt > OFI_ENDPOINTS || hint->max_ep_tx_ctx > 1 ||
		hint->max_ep_rx_ctx > 1 || hint->max_ep_stx_ctx || hint->max_ep_srx_ctx)
		return REFUSE("too many endpoints or contexts\n");
	if (hint->mr_iov_limit > OFI_IOVS || hint->mr_cnt > info_domain.mr_cnt)
		return REFUSE("too many regions or elements of regions\n");
	if (hint->caps & ~OFI_DOMAIN_CAPS)
		return REFUSE("domain capabilities are not supported\n");
	if (hint->auth_key_size)
		return REFUSE("authorization keys are not supported\n");
	if (hint->mr_mode == FI_MR_BASIC)
		return REFUSE(
			"regions are addressed by offsets: FI_MR_BASIC alone is not "
			"supported\n");
	return 0;
}

static int info_check(const struct fi_info *hints)
{
	int rc = 0;
	if (hints->caps & ~ALL_CAPS)
		return REFUSE("capabilities are not supported: %s\n",
			fi_tostr(&(uint64_t){hints->caps & ~ALL_CAPS}, FI_TYPE_CAPS));
	if (hints->addr_format != FI_FORMAT_UNSPEC)
		return REFUSE("the format of addresses is another one\n");
	if (hints->fabric_attr && hints->fabric_attr->name &&
		strcmp(hints->fabric_attr->name, OFI_NAME))
		return REFUSE("fabric %s is not mine\n", hints->fabric_attr->name);
	if (hints->ep_attr)
		rc = info_check_ep(hints->ep_attr);
	if (!rc && hints->tx_attr)
		rc = info_check_tx(hints->tx_attr);
	if (!rc && hints->rx_attr)
		rc = info_check_rx(hints->rx_attr);
	if (!rc && hints->domain_attr)
		rc = info_check_domain(hints->domain_attr);
	return rc;
}

/* ---- the answer ---- */

/* The capabilities to return: those asked for, with both halves of each. */
static uint64_t info_caps(uint64_t asked)
{
	const uint64_t messages = FI_SEND | FI_RECV;
	const uint64_t remote = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
	uint64_t caps = asked ? asked | OFI_DOMAIN_CAPS : ALL_CAPS;
	if (caps & (FI_MSG | FI_TAGGED) && !(caps & messages))
		caps |= messages;
	if (caps & (FI_RMA | FI_ATOMIC) && !(caps & remote))
		caps |= remote;
	return caps;
}

static void info_fill_domain(
	uint32_t version, const struct fi_domain_attr *hint, struct fi_domain_attr *attr)
{
	if (FI_VERSION_LT(version, FI_VERSION(1, 5)))
		attr->mr_mode = FI_MR_SCALABLE;
	if (!hint)
		return;
	attr->domain = hint->domain;
	if (hint->threading != FI_THREAD_UNSPEC)
		attr->threading = hint->threading;
	if (hint->control_progress != FI_PROGRESS_UNSPEC)
		attr->control_progress = hint->control_progress;
	if (hint->data_progress != FI_PROGRESS_UNSPEC)
		attr->data_progress = hint->data_progress;
	if (hint->resource_mgmt != FI_RM_UNSPEC)
		attr->resource_mgmt = hint->resource_mgmt;
	if (hint->mr_mode == FI_MR_SCALABLE)
		attr->mr_mode = FI_MR_SCALABLE;
	attr->av_type = hint->av_type;
	if (hint->caps)
		attr->caps = hint->caps;
}

static void info_fill(uint32_t version, const struct fi_info *hints, struct fi_info *info)
{
	info->caps = info_caps(hints ? hints->caps : 0);
	info->fabric_attr->api_version = version;
	info_fill_domain(version, hints ? hints->domain_attr : NULL, info->domain_attr);
	info->tx_attr->caps &= info->caps;
	info->rx_attr->caps &= info->caps;
	if (!hints)
		return;
	info->handle = hints->handle;
	if (hints->fabric_attr)
		info->fabric_attr->fabric = hints->fabric_attr->fabric;
	if (hints->tx_attr) {
		info->tx_attr->op_flags = hints->tx_attr->op_flags;
		if (hints->tx_attr->caps)
			info->tx_attr->caps &= hints->tx_attr->caps;
	}
	if (hints->rx_attr) {
		info->rx_attr->op_flags = hints->rx_attr->op_flags;
		if (hints->rx_attr->caps)
			info->rx_attr->caps &= hints->rx_attr->caps;
		if (hints->rx_attr->size > info->rx_attr->size)
			info->rx_attr->size = hints->rx_attr->size;
		info->rx_attr->comp_order = hints->rx_attr->comp_order;
	}
}

/* Store a copy of a name as an address of an info. */
static int info_address(const void *name, size_t len, void **addr, size_t *addrlen)
{
	if (len != sizeof(struct ofi_name) || !ofi_name_is_good(name))
		return REFUSE("an address is not of this provider\n");
	*addr = malloc(len);
	if (!*addr)
		return -FI_ENOMEM;
	memcpy(*addr, name, len);
	*addrlen = len;
	return 0;
}

/* The addresses of node and service, or else those of the hints. */
static int info_addresses(const char *node, const char *service, uint64_t flags,
	const struct fi_info *hints, struct fi_info *info)
{
	const bool is_source = flags & FI_SOURCE;
	struct ofi_name name, here;
	const void *src = hints ? hints->src_addr : NULL;
	const void *dest = hints ? hints->dest_addr : NULL;
	size_t src_len = hints ? hints->src_addrlen : 0;
	size_t dest_len = hints ? hints->dest_addrlen : 0;
	int rc = ofi_name_parse(NULL, NULL, &here);
	if (node || service) {
		rc = ofi_name_parse(is_source ? NULL : node, service, &name);
		*(is_source ? &src : &dest) = &name;
		*(is_source ? &src_len : &dest_len) = sizeof name;
	}
	if (!rc && src)
		rc = info_address(src, src_len, &info->src_addr, &info->src_addrlen);
	else if (!rc) /* this host, and any process id */
		rc = info_address(
			&here, sizeof here, &info->src_addr, &info->src_addrlen);
	if (!rc && dest)
		rc = info_address(dest, dest_len, &info->dest_addr, &info->dest_addrlen);
	return rc;
}

int ofi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
	const struct fi_info *hints, struct fi_info **info)
{
	if (ofi_starts)
		return REFUSE("libportals itself looks for a provider\n");
	int rc = hints ? info_check(hints) : 0;
	if (rc)
		return rc;
	struct fi_info *found = fi_dupinfo(&info_base);
	if (!found)
		return -FI_ENOMEM;
	info_fill(version, hints, found);
	rc = info_addresses(node, service, flags, hints, found);
	if (rc) {
		fi_freeinfo(found);
		return rc;
	}
	*info = found;
	return 0;
}
