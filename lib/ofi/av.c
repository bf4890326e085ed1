/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * av.c - address vectors: tables of peers, and a hash that finds the address of a sender
 *
 * FI_AV_MAP and FI_AV_TABLE are the same: an address is an index.  The hash has twice as
 * many slots as the table has places, and is made anew when an address is removed.
 */
#include "prov.h"

#include <stdlib.h>
#include <string.h>

static size_t av_slot(const struct ofi_av *av, ptl_process_id_t id, unsigned endpoint)
{
	uint64_t key = (uint64_t)id.nid << 32 | id.pid;
	key = (key ^ (uint64_t)endpoint << 57) * 0x9e3779b97f4a7c15ull;
	return (key >> 24) & (av->nslots - 1);
}

fi_addr_t ofi_av_find(const struct ofi_av *av, ptl_process_id_t id, unsigned endpoint)
{
	if (!av || !av->nslots)
		return FI_ADDR_NOTAVAIL;
	size_t at = av_slot(av, id, endpoint);
	for (; av->slots[at]; at = (at + 1) & (av->nslots - 1)) {
		const struct ofi_peer *peer = &av->peers[av->slots[at] - 1];
		if (ofi_is_same(peer->id, id) && peer->endpoint == endpoint)
			return av->slots[at] - 1;
	}
	return FI_ADDR_NOTAVAIL;
}

/* Enter a peer; of several with the same name the first one counts. */
static void av_hash(struct ofi_av *av, size_t index)
{
	const struct ofi_peer *peer = &av->peers[index];
	if (ofi_av_find(av, peer->id, peer->endpoint) != FI_ADDR_NOTAVAIL)
		return;
	size_t at = av_slot(av, peer->id, peer->endpoint);
	while (av->slots[at])
		at = (at + 1) & (av->nslots - 1);
	av->slots[at] = index + 1;
}

static void av_hash_all(struct ofi_av *av)
{
	memset(av->slots, 0, av->nslots * sizeof *av->slots);
	for (size_t i = 0; i < av->used; i++)
		if (av->peers[i].live)
			av_hash(av, i);
}

static int av_grow(struct ofi_av *av, size_t room)
{
	while (room & (room - 1))
		room += room & -room;
	struct ofi_peer *peers = realloc(av->peers, room * sizeof *peers);
	if (!peers)
		return -FI_ENOMEM;
	av->peers = peers;
	size_t *slots = realloc(av->slots, 2 * room * sizeof *slots);
	if (!slots)
		return -FI_ENOMEM;
	av->slots = slots;
	av->nslots = 2 * room;
	av->room = room;
	av_hash_all(av);
	return 0;
}

/* Find a place for a peer: one that was removed, or the next one. */
static size_t av_place(struct ofi_av *av)
{
	if (av->removed) {
		for (size_t i = 0; i < av->used; i++) {
			if (av->peers[i].live)
				continue;
			av->removed--;
			return i;
		}
	}
	if (av->used == av->room && av_grow(av, av->room ? 2 * av->room : 64))
		return SIZE_MAX;
	return av->used++;
}

/* Insert one name; return its address, or FI_ADDR_NOTAVAIL with the reason. */
static fi_addr_t av_insert_one(struct ofi_av *av, const struct ofi_name *name, int *err)
{
	*err = FI_EADDRNOTAVAIL;
	if (!ofi_name_is_good(name))
		return FI_ADDR_NOTAVAIL;
	*err = FI_ENOMEM;
	size_t index = av_place(av);
	if (index == SIZE_MAX)
		return FI_ADDR_NOTAVAIL;
	av->peers[index] = (struct ofi_peer){
		.id = {name->nid, name->pid},
		.endpoint = name->endpoint,
		.domain = name->domain,
		.live = true,
	};
	av_hash(av, index);
	*err = 0;
	return index;
}

void ofi_av_meet(struct ofi_av *av, fi_addr_t addr, ptl_process_id_t id)
{
	if (addr < av->used && ofi_is_same(av->peers[addr].id, id))
		av->peers[addr].met = true;
}

static int av_insert(struct fid_av *fid, const void *addr, size_t count, fi_addr_t *out,
	uint64_t flags, void *context)
{
	struct ofi_av *av = container_of(fid, struct ofi_av, fid);
	int *errors = flags & FI_SYNC_ERR ? context : NULL;
	int inserted = 0;
	if ((!addr && count) || (flags & FI_SYNC_ERR && (!context || av->tells)))
		return -FI_EINVAL;
	if (av->tells && !av->eq)
		return -FI_ENOEQ;
	if (flags & ~(FI_MORE | FI_SYNC_ERR))
		return -FI_EBADFLAGS;
	OFI_ENTER(av->domain);
	for (size_t i = 0; i < count; i++) {
		struct ofi_name name;
		int err;
		memcpy(&name, (const char *)addr + i * sizeof name, sizeof name);
		fi_addr_t got = av_insert_one(av, &name, &err);
		if (out)
			out[i] = got;
		if (errors)
			errors[i] = err;
		inserted += got != FI_ADDR_NOTAVAIL;
	}
	ofi_leave(av->domain);
	if (!av->tells)
		return inserted;
	return ofi_eq_av(av->eq, &fid->fid, context, (uint64_t)inserted);
}

static int av_insertsvc(struct fid_av *fid, const char *node, const char *service,
	fi_addr_t *out, uint64_t flags, void *context)
{
	struct ofi_name name;
	if (!node || !service)
		return -FI_EINVAL;
	if (ofi_name_parse(node, service, &name))
		return -FI_EINVAL;
	return av_insert(fid, &name, 1, out, flags, context);
}

static int av_remove(struct fid_av *fid, fi_addr_t *addr, size_t count, uint64_t flags)
{
	struct ofi_av *av = container_of(fid, struct ofi_av, fid);
	if (flags)
		return -FI_EBADFLAGS;
	if (!addr && count)
		return -FI_EINVAL;
	int rc = 0;
	OFI_ENTER(av->domain);
	for (size_t i = 0; i < count; i++) {
		if (!ofi_av_peer(av, addr[i])) {
			rc = -FI_EINVAL;
			continue;
		}
		av->peers[addr[i]].live = false;
		av->removed++;
	}
	av_hash_all(av);
	ofi_leave(av->domain);
	return rc;
}

static int av_lookup(struct fid_av *fid, fi_addr_t fi_addr, void *addr, size_t *addrlen)
{
	struct ofi_av *av = container_of(fid, struct ofi_av, fid);
	struct ofi_name name;
	if (!addrlen || (!addr && *addrlen))
		return -FI_EINVAL;
	OFI_ENTER(av->domain);
	const struct ofi_peer *peer = ofi_av_peer(av, fi_addr);
	if (peer) {
		name = ofi_name_of(peer->id, peer->endpoint, peer->domain);
		memcpy(addr, &name, *addrlen < sizeof name ? *addrlen : sizeof name);
		*addrlen = sizeof name;
	}
	ofi_leave(av->domain);
	return peer ? 0 : -FI_EINVAL;
}

static const char *av_straddr(
	struct fid_av *fid, const void *addr, char *buf, size_t *len)
{
	(void)fid;
	struct ofi_name name;
	memcpy(&name, addr, sizeof name);
	*len = (size_t)ofi_name_text(&name, buf, *len) + 1;
	return buf;
}

static int av_close(struct fid *fid)
{
	struct ofi_av *av = container_of(fid, struct ofi_av, fid.fid);
	if (ofi_node.forked)
		return -FI_EOPBADSTATE;
	if (ofi_is_held(&av->refs))
		return -FI_EBUSY;
	ofi_let_go(&av->domain->refs);
	if (av->eq)
		ofi_let_go(&av->eq->refs);
	free(av->peers);
	free(av->slots);
	free(av);
	return 0;
}

static int av_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct ofi_av *av = container_of(fid, struct ofi_av, fid.fid);
	return ofi_eq_bind(&av->eq, bfid, flags);
}

/* clang-format off */
OFI_NO(int, av_insertsym, struct fid_av *av, const char *node, size_t nodecnt,
	const char *service, size_t svccnt, fi_addr_t *addr, uint64_t flags,
	void *context)
OFI_NO(int, av_set, struct fid_av *av, struct fi_av_set_attr *attr,
	struct fid_av_set **set, void *context)
/* clang-format on */

static struct fi_ops av_fid_ops = OFI_FID_OPS(av_close, av_bind, ofi_no_control);
static struct fi_ops_av av_ops = {
	.size = sizeof av_ops,
	.insert = av_insert,
	.insertsvc = av_insertsvc,
	.insertsym = av_insertsym,
	.remove = av_remove,
	.lookup = av_lookup,
	.straddr = av_straddr,
	.av_set = av_set,
};

int ofi_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av,
	void *context)
{
	if (!attr || !av || attr->rx_ctx_bits)
		return -FI_EINVAL;
	if (attr->type != FI_AV_UNSPEC && attr->type != FI_AV_MAP &&
		attr->type != FI_AV_TABLE)
		return -FI_EINVAL;
	if (attr->name)
		return -FI_ENOSYS; /* a vector that processes share */
	if (attr->flags & ~FI_EVENT)
		return -FI_EBADFLAGS;
	struct ofi_av *made = calloc(1, sizeof *made);
	if (!made)
		return -FI_ENOMEM;
	if (attr->count && attr->count <= 1u << 20 && av_grow(made, attr->count)) {
		free(made->peers);
		free(made);
		return -FI_ENOMEM;
	}
	attr->type = attr->type == FI_AV_TABLE ? FI_AV_TABLE : FI_AV_MAP;
	made->fid.fid = (struct fid){FI_CLASS_AV, context, &av_fid_ops};
	made->fid.ops = &av_ops;
	made->domain = container_of(domain, struct ofi_domain, fid);
	made->tells = attr->flags & FI_EVENT;
	ofi_hold(&made->domain->refs);
	*av = &made->fid;
	return 0;
}
