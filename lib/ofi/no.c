/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * no.c - operations that the provider does not have
 *
 * libfabric calls through its tables without a test, so each table is complete; only that
 * of the collective operations may be missing.
 */
#include "prov.h"

/* A function that refuses. */
#define NO(type, name, ...)                                                              \
	type name(__VA_ARGS__)                                                           \
	{                                                                                \
		return -FI_ENOSYS;                                                       \
	}

#pragma GCC diagnostic ignored "-Wunused-parameter"

/* clang-format off */
NO(int, ofi_no_bind, struct fid *fid, struct fid *bfid, uint64_t flags)
NO(int, ofi_no_control, struct fid *fid, int command, void *arg)
NO(int, ofi_no_ops_open, struct fid *fid, const char *name, uint64_t flags, void **ops,
	void *context)
NO(int, ofi_no_tostr, const struct fid *fid, char *buf, size_t len)
NO(int, ofi_no_ops_set, struct fid *fid, const char *name, uint64_t flags, void *ops,
	void *context)

NO(int, ofi_no_passive_ep, struct fid_fabric *fabric, struct fi_info *info,
	struct fid_pep **pep, void *context)
NO(int, ofi_no_wait_open, struct fid_fabric *fabric, struct fi_wait_attr *attr,
	struct fid_wait **wait)

NO(int, ofi_no_scalable_ep, struct fid_domain *domain, struct fi_info *info,
	struct fid_ep **sep, void *context)
NO(int, ofi_no_stx_ctx, struct fid_domain *domain, struct fi_tx_attr *attr,
	struct fid_stx **stx, void *context)
NO(int, ofi_no_srx_ctx, struct fid_domain *domain, struct fi_rx_attr *attr,
	struct fid_ep **rx_ep, void *context)
NO(int, ofi_no_query_collective, struct fid_domain *domain, enum fi_collective_op op,
	struct fi_collective_attr *attr, uint64_t flags)

NO(int, ofi_no_insertsym, struct fid_av *av, const char *node, size_t nodecnt,
	const char *service, size_t svccnt, fi_addr_t *addr, uint64_t flags,
	void *context)
NO(int, ofi_no_av_set, struct fid_av *av, struct fi_av_set_attr *attr,
	struct fid_av_set **set, void *context)

NO(int, ofi_no_tx_ctx, struct fid_ep *ep, int index, struct fi_tx_attr *attr,
	struct fid_ep **tx, void *context)
NO(int, ofi_no_rx_ctx, struct fid_ep *ep, int index, struct fi_rx_attr *attr,
	struct fid_ep **rx, void *context)
NO(ssize_t, ofi_no_size_left, struct fid_ep *ep)

NO(static int, no_setname, fid_t fid, void *addr, size_t addrlen)
NO(static int, no_getpeer, struct fid_ep *ep, void *addr, size_t *addrlen)
NO(static int, no_connect, struct fid_ep *ep, const void *addr, const void *param,
	size_t len)
NO(static int, no_listen, struct fid_pep *pep)
NO(static int, no_accept, struct fid_ep *ep, const void *param, size_t len)
NO(static int, no_reject, struct fid_pep *pep, fid_t handle, const void *param,
	size_t len)
NO(static int, no_shutdown, struct fid_ep *ep, uint64_t flags)
NO(static int, no_join, struct fid_ep *ep, const void *addr, uint64_t flags,
	struct fid_mc **mc, void *context)

/* clang-format on */

struct fi_ops_cm ofi_no_cm = {sizeof ofi_no_cm, no_setname, NULL, no_getpeer, no_connect,
	no_listen, no_accept, no_reject, no_shutdown, no_join};
