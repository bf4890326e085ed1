/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * local.c - the local side of puts, gets and Long payloads: the descriptor that names it
 *
 * Memory of the own segment is named by RARSRC.  GASNET_PORTAL_LOCAL says which
 * descriptor names other memory:
 *	all	one descriptor over the whole address space; nothing is made or copied
 *	bounce	up to the limit, a chunk of ReqSB, if one is free; otherwise as all
 *	tmpmd	as bounce; otherwise a descriptor of its own, until ACK or REPLY
 *	firehose	as bounce; otherwise a cached descriptor (firehose.c)
 * Each part of an operation carries the number of its resource in its match bits: a
 * chunk, a temporary descriptor, or a region; the handler of its last event gives it
 * back.
 */
#include "internal.h"

static gasneti_lock_t tmpmd_lock = GASNETI_UNLOCKED;
static ptl_handle_md_t *tmpmds;
static uint32_t *tmpmd_stack, tmpmds_free;
static ptl_handle_md_t bounce_md;
static void **bounce_to; /* destinations of gets, for each chunk */

ptl_handle_md_t gasneti_bind(
	void *start, size_t length, unsigned options, ptl_handle_eq_t eq)
{
	ptl_md_t md = {.start = start,
		.length = length,
		.threshold = PTL_MD_THRESH_INF,
		.options = options | PTL_MD_EVENT_START_DISABLE,
		.eq_handle = eq};
	ptl_handle_md_t handle;
	gasneti_must(PtlMDBind(gasneti.ni, md, PTL_RETAIN, &handle), "PtlMDBind");
	return handle;
}

/* Attach the segment as a target of puts, and of gets if allowed. */
static ptl_handle_md_t attach_segment(uint64_t bits, unsigned options, ptl_handle_eq_t eq)
{
	static const ptl_process_id_t any = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_md_t md = {.start = (void *)gasneti.base,
		.length = gasneti.size,
		.threshold = PTL_MD_THRESH_INF,
		.options = options | PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE |
			   PTL_MD_EVENT_START_DISABLE,
		.eq_handle = eq};
	ptl_handle_me_t me;
	ptl_handle_md_t handle;
	gasneti_must(PtlMEMDAttach(gasneti.ni, GASNETI_RAR_PTE, any, bits,
			     ~(ptl_match_bits_t)15, PTL_RETAIN, PTL_INS_AFTER, md,
			     PTL_RETAIN, &me, &handle),
		"PtlMEMDAttach");
	return handle;
}

static void tmpmds_init(void)
{
	uint32_t n = gasneti.set.tmpmds;
	tmpmds = calloc(n, sizeof(*tmpmds));
	tmpmd_stack = calloc(n, sizeof(*tmpmd_stack));
	if (!tmpmds || !tmpmd_stack)
		gasneti_fatal("no memory for %u temporary descriptors", n);
	for (tmpmds_free = 0; tmpmds_free < n; tmpmds_free++)
		tmpmd_stack[tmpmds_free] = tmpmds_free;
}

/* Make the descriptors of the segment and of the local side. */
void gasneti_local_attach(void)
{
	if (gasneti.size) {
		attach_segment(GASNETI_MD_RAR, PTL_MD_OP_GET, PTL_EQ_NONE);
		attach_segment(GASNETI_MD_RARAM, PTL_MD_ACK_DISABLE, gasneti.am_eq);
		gasneti.rarsrc = attach_segment(
			GASNETI_MD_RARSRC, PTL_MD_ACK_DISABLE, gasneti.safe_eq);
	}
	void *start = (void *)GASNETI_ANY_BASE;
	size_t length = GASNETI_ANY_END - GASNETI_ANY_BASE;
	gasneti.any = gasneti_bind(start, length, 0, gasneti.safe_eq);
	gasneti.any_quiet =
		gasneti_bind(start, length, PTL_MD_EVENT_END_DISABLE, gasneti.safe_eq);
	if (gasneti.set.local == GASNETI_LOCAL_ALL)
		return;
	bounce_md = gasneti_bind(gasneti.requests.memory,
		(size_t)gasneti.requests.count * GASNETI_CHUNK, 0, gasneti.safe_eq);
	bounce_to = calloc(gasneti.requests.count, sizeof(*bounce_to));
	if (!bounce_to)
		gasneti_fatal("no memory for bounce buffers");
	tmpmds_init();
	gasneti_firehose_attach();
}

/* Use a chunk, if one is free. */
static bool bounce(struct gasneti_local *local, void *addr, size_t nbytes, int way)
{
	int chunk;
	if (nbytes > gasneti.set.bounce_limit ||
		(chunk = gasneti_chunk_take(&gasneti.requests)) < 0)
		return false;
	size_t at = (size_t)chunk * GASNETI_CHUNK;
	if (way == GASNETI_PUT)
		memcpy(gasneti.requests.memory + at, addr, nbytes);
	bounce_to[chunk] = addr;
	*local = (struct gasneti_local){
		bounce_md, at, nbytes, (uint64_t)chunk + GASNETI_BOUNCE_RESOURCE};
	return true;
}

static int tmpmd_take(void)
{
	int slot = -1;
	gasneti_lock(&tmpmd_lock);
	if (tmpmds_free)
		slot = (int)tmpmd_stack[--tmpmds_free];
	gasneti_unlock(&tmpmd_lock);
	return slot;
}

static void tmpmd_back(uint32_t slot)
{
	gasneti_must(PtlMDUnlink(tmpmds[slot]), "PtlMDUnlink");
	gasneti_lock(&tmpmd_lock);
	tmpmd_stack[tmpmds_free++] = slot;
	gasneti_unlock(&tmpmd_lock);
}

static void tmpmd(struct gasneti_local *local, void *addr, size_t nbytes)
{
	int slot = tmpmd_take();
	if (slot < 0)
		gasneti_wait_for(GASNETI_SAFE, (slot = tmpmd_take()) >= 0);
	tmpmds[slot] = gasneti_bind(addr, nbytes, 0, gasneti.safe_eq);
	*local = (struct gasneti_local){
		tmpmds[slot], 0, nbytes, (uint64_t)slot + GASNETI_TMPMD_RESOURCE};
}

/* The local side in the modes that reproduce other networks. */
static GASNETI_RARE void take_otherwise(
	struct gasneti_local *local, void *addr, size_t nbytes, int way, bool whole)
{
	if (bounce(local, addr, nbytes, way))
		return;
	if (gasneti.set.local == GASNETI_LOCAL_TMPMD) {
		tmpmd(local, addr, nbytes);
	} else if (gasneti.set.local == GASNETI_LOCAL_FIREHOSE) {
		size_t most = gasneti.set.fh_region - GASNET_PAGESIZE;
		if (whole && nbytes > most)
			gasneti_fatal("a Long payload of %zu bytes", nbytes);
		gasneti_firehose_take(
			local, (uintptr_t)addr, nbytes < most ? nbytes : most);
	} else {
		*local = (struct gasneti_local){
			gasneti.any, (uintptr_t)addr - GASNETI_ANY_BASE, nbytes, 0};
	}
}

/*
 * Name the memory that an operation begins with; local->length may be less than nbytes,
 * unless whole.  way: GASNETI_PUT reads the memory, GASNETI_GET writes it.
 */
void gasneti_local_take(
	struct gasneti_local *local, void *addr, size_t nbytes, int way, bool whole)
{
	if (gasneti_in_segment(addr, nbytes))
		*local = (struct gasneti_local){
			gasneti.rarsrc, (uintptr_t)addr - gasneti.base, nbytes, 0};
	else if (gasneti_likely(gasneti.set.local == GASNETI_LOCAL_ALL))
		*local = (struct gasneti_local){
			gasneti.any, (uintptr_t)addr - GASNETI_ANY_BASE, nbytes, 0};
	else
		take_otherwise(local, addr, nbytes, way, whole);
}

static GASNETI_RARE void release(uint64_t resource)
{
	if (resource >= GASNETI_FIREHOSE_RESOURCE)
		gasneti_firehose_release(
			(uint32_t)(resource - GASNETI_FIREHOSE_RESOURCE));
	else if (resource >= GASNETI_TMPMD_RESOURCE)
		tmpmd_back((uint32_t)(resource - GASNETI_TMPMD_RESOURCE));
	else
		gasneti_chunk_back(&gasneti.requests,
			(uint32_t)(resource - GASNETI_BOUNCE_RESOURCE));
}

/* Give back the resource that match bits name. */
void gasneti_local_release(uint64_t bits)
{
	if (gasneti_unlikely(bits >> GASNETI_RESOURCE_SHIFT))
		release(bits >> GASNETI_RESOURCE_SHIFT);
}

/* Copy the bytes of a get from its bounce buffer, if it has one. */
void gasneti_local_arrived(uint64_t bits, size_t nbytes)
{
	uint64_t resource = bits >> GASNETI_RESOURCE_SHIFT;
	if (gasneti_likely(!resource || resource >= GASNETI_TMPMD_RESOURCE))
		return;
	uint64_t chunk = resource - GASNETI_BOUNCE_RESOURCE;
	memcpy(bounce_to[chunk], gasneti.requests.memory + chunk * GASNETI_CHUNK, nbytes);
}
