/* SPDX-License-Identifier: BSD-3-Clause */
/* The messages of filecast, by Portals. */
#include "wire.h"

#include <portals3_runtime.h>
#include <portals3x.h>

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PORTAL_DATA = 4, PORTAL_NOTES = 5 };
enum { BITS_DATA = 0xda7a, BITS_NOTES = 0x407e };

static const ptl_process_id_t anyone = {PTL_NID_ANY, PTL_PID_ANY};

static void check(int rc, const char *what)
{
	if (rc == PTL_OK)
		return;
	fprintf(stderr, "filecast: %s answers %s, expected PTL_OK; see portals3.h\n",
		what, PtlErrorStr((unsigned)rc));
	exit(1);
}

static void *allocate(size_t length)
{
	void *p = aligned_alloc(4096, (length + 4095) / 4096 * 4096);
	if (p)
		return p;
	fprintf(stderr, "filecast: no memory for %zu bytes of buffers; use fewer ranks\n",
		length);
	exit(1);
}

/* ---- the tree: clearing the lowest bit of a rank gives its parent ---- */

static void find_family(struct wire *w)
{
	unsigned low = w->rank ? w->rank & -w->rank : 1u << 31;
	w->parent = w->rank & (w->rank - 1);
	for (unsigned bit = low >> 1; bit; bit >>= 1)
		if (bit < w->size && w->rank + bit < w->size)
			w->child[w->nchildren++] = w->rank + bit;
}

static ptl_process_id_t id_of(const struct wire *w, unsigned rank)
{
	ptl_process_id_t id;
	if (rank == w->rank)
		check(PtlGetId(w->ni, &id), "PtlGetId");
	else
		check(PtlGetRankId(w->ni, rank, &id), "PtlGetRankId");
	return id;
}

/* ---- setting up ---- */

/* Start; without yod there is no rank: a job of one. */
void wire_start(struct wire *w)
{
	int most;
	memset(w, 0, sizeof *w);
	check(PtlInit(&most), "PtlInit");
	int rc = PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &w->ni);
	check(rc, "PtlNIInit");
	if (PtlGetRank(w->ni, &w->rank, &w->size) != PTL_OK) {
		w->rank = 0;
		w->size = 1;
	}
	find_family(w);
}

static unsigned notes_owed(const struct wire *w)
{
	return w->nchildren * (SLOTS / 2 + 1) + (w->rank ? 0 : 2 * w->size) + 4;
}

static void open_queue(struct wire *w)
{
	ptl_size_t n = notes_owed(w) + SLOTS + (ptl_size_t)w->nchildren * (SLOTS + 4) + 8;
	check(PtlEQAlloc(w->ni, 2 * n, PTL_EQ_HANDLER_NONE, &w->eq), "PtlEQAlloc");
}

static void open_ring(struct wire *w)
{
	ptl_handle_me_t me;
	ptl_process_id_t from = id_of(w, w->parent);
	ptl_md_t md = {.start = w->ring,
		.length = SLOTS * CHUNK,
		.threshold = PTL_MD_THRESH_INF,
		.options =
			PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE,
		.eq_handle = w->eq};
	int rc = PtlMEAttach(
		w->ni, PORTAL_DATA, from, BITS_DATA, 0, PTL_RETAIN, PTL_INS_AFTER, &me);
	check(rc, "PtlMEAttach");
	check(PtlMDAttach(me, md, PTL_RETAIN, NULL), "PtlMDAttach");
}

static void open_pad(struct wire *w, struct pad *pad)
{
	ptl_handle_me_t me;
	ptl_md_t md = {.start = pad->at,
		.length = pad->length,
		.threshold = PTL_MD_THRESH_INF,
		.max_size = sizeof(struct note),
		.options = PTL_MD_OP_PUT | PTL_MD_MAX_SIZE | PTL_MD_EVENT_START_DISABLE,
		.user_ptr = pad,
		.eq_handle = w->eq};
	int rc = PtlMEAttach(w->ni, PORTAL_NOTES, anyone, BITS_NOTES, 0, PTL_UNLINK,
		PTL_INS_AFTER, &me);
	check(rc, "PtlMEAttach");
	check(PtlMDAttach(me, md, PTL_UNLINK, NULL), "PtlMDAttach");
}

static ptl_handle_md_t bind_source(struct wire *w, void *start, ptl_size_t length)
{
	ptl_handle_md_t handle;
	ptl_md_t md = {.start = start,
		.length = length,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_EVENT_START_DISABLE,
		.user_ptr = start,
		.eq_handle = w->eq};
	check(PtlMDBind(w->ni, md, PTL_RETAIN, &handle), "PtlMDBind");
	return handle;
}

void wire_open(struct wire *w)
{
	w->ring = allocate(SLOTS * CHUNK);
	open_queue(w);
	if (w->rank)
		open_ring(w);
	for (unsigned i = 0; i < 2; i++) {
		w->pad[i].length = (ptl_size_t)2 * notes_owed(w) * sizeof(struct note);
		w->pad[i].at = allocate(w->pad[i].length);
		open_pad(w, &w->pad[i]);
	}
	w->ring_out = bind_source(w, w->ring, SLOTS * CHUNK);
	w->notes_out = bind_source(w, w->out, sizeof w->out);
	check(PtlXBarrier(), "PtlXBarrier");
}

/* ---- sending ---- */

void wire_put_chunk(struct wire *w, unsigned child, uint64_t chunk, uint32_t length)
{
	ptl_size_t at = chunk % SLOTS * CHUNK;
	int rc = PtlPutRegion(w->ring_out, at, length, PTL_NO_ACK_REQ, id_of(w, child),
		PORTAL_DATA, 0, BITS_DATA, at, chunk);
	check(rc, "PtlPutRegion");
}

bool wire_is_free(const struct wire *w, enum note_type type)
{
	return !w->under_way[type];
}

void wire_tell(struct wire *w, enum note_type type, unsigned rank)
{
	struct note *note = &w->out[type];
	size_t length = offsetof(struct note, text) + strlen(note->text) + 1;
	note->type = type;
	note->rank = w->rank;
	w->under_way[type]++;
	int rc = PtlPutRegion(w->notes_out, type * sizeof *note, length, PTL_NO_ACK_REQ,
		id_of(w, rank), PORTAL_NOTES, 0, BITS_NOTES, 0, 0);
	check(rc, "PtlPutRegion");
}

void wire_tell_children(struct wire *w, enum note_type type)
{
	for (unsigned i = 0; i < w->nchildren; i++)
		wire_tell(w, type, w->child[i]);
}

/* ---- receiving ---- */

static void on_put(const ptl_event_t *ev, struct news *news)
{
	if (ev->pt_index == PORTAL_DATA) {
		news->kind = NEWS_CHUNK;
		news->chunk = ev->hdr_data;
		return;
	}
	news->kind = NEWS_NOTE;
	memcpy(&news->note, (char *)ev->md.start + ev->offset, ev->mlength);
	news->note.text[TEXT - 1] = 0;
}

static void on_sent(struct wire *w, const ptl_event_t *ev, struct news *news)
{
	if (ev->md.user_ptr == w->out) {
		w->under_way[ev->offset / sizeof(struct note)]--;
		return;
	}
	news->kind = NEWS_SENT;
	news->slot = (unsigned)(ev->offset / CHUNK);
}

static void on_event(struct wire *w, const ptl_event_t *ev, struct news *news)
{
	if (ev->type == PTL_EVENT_UNLINK)
		open_pad(w, ev->md.user_ptr);
	else if (ev->type == PTL_EVENT_SEND_END)
		on_sent(w, ev, news);
	else if (ev->type == PTL_EVENT_PUT_END && ev->ni_fail_type == PTL_NI_OK)
		on_put(ev, news);
	if (ev->ni_fail_type != PTL_NI_OK)
		news->kind = NEWS_BROKEN;
}

void wire_next(struct wire *w, bool wait, struct news *news_out)
{
	ptl_event_t ev;
	news_out->kind = NEWS_NONE;
	do {
		int rc = wait ? PtlEQWait(w->eq, &ev) : PtlEQGet(w->eq, &ev);
		if (rc == PTL_EQ_EMPTY)
			return;
		check(rc, wait ? "PtlEQWait" : "PtlEQGet");
		on_event(w, &ev, news_out);
	} while (!wait && news_out->kind == NEWS_NONE);
}

uint64_t wire_drops(const struct wire *w)
{
	ptlx_stats_t stats = {.struct_size = sizeof stats};
	check(PtlXStats(w->ni, &stats), "PtlXStats");
	return stats.drops;
}

void wire_leave(struct wire *w, int status)
{
	fflush(stdout);
	(void)PtlXBarrier(); /* leave also if a rank is gone */
	PtlFini();
	free(w->ring);
	free(w->pad[0].at);
	free(w->pad[1].at);
	exit(status);
}
