/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * late.c - messages that come before their receives, and the match list that takes them
 *
 *	posted receives | mark | blocks: short ones | mark | rest: exposed ones
 *
 * A short message that no receive takes goes into a block, of an exposed one the rest
 * takes no byte.  START events say in which order the messages were matched; END events,
 * which may come in another order, that the bytes of a message are there.  Each block and
 * each rest entry takes a bounded number of messages, so the queue never overflows.  A
 * block that is full is posted again when its last message is gone; if half of the blocks
 * are full, messages move to the heap instead.
 */
#include "prov.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
	LATE_BLOCKS = 8,
	LATE_RESTS = 2,
	LATE_ENTRIES = LATE_BLOCKS + LATE_RESTS,
	LATE_EVENTS = 16384, /* two for each message that an entry may take */
	LATE_REST_TAKES = 512,
	LATE_BLOCK_TAKES = (LATE_EVENTS / 2 - LATE_RESTS * LATE_REST_TAKES) / LATE_BLOCKS,
	LATE_LONGEST = 8192, /* bytes of a message in a block */
	LATE_REFUSE_MS = 1000
};

/* An entry for late messages; one of the rest has no bytes. */
struct ofi_block {
	struct ofi_sink sink;
	struct ofi_list *list;
	char *bytes;
	bool posted;
	ptl_handle_me_t me;
	LIST_HEAD(, ofi_late) lates; /* whose bytes lie here */
};

/* ---- entries ---- */

static int block_post(struct ofi_block *block)
{
	struct ofi_list *list = block->list;
	bool rest = !block->bytes;
	ptl_md_t md = {
		.start = block->bytes,
		.length = rest ? 0 : ofi_settings.unexpected / LATE_BLOCKS,
		.threshold = rest ? LATE_REST_TAKES : LATE_BLOCK_TAKES,
		.max_size = LATE_LONGEST,
		.options = PTL_MD_OP_PUT | PTL_MD_ACK_DISABLE |
			   (rest ? PTL_MD_TRUNCATE : PTL_MD_MAX_SIZE),
		.user_ptr = &block->sink,
		.eq_handle = list->late.eq,
	};
	int rc = rest ? PtlMEMDAttach(ofi_node.ni, list->index, ofi_anyone, OFI_EXPOSED,
				~OFI_EXPOSED, PTL_UNLINK, PTL_INS_AFTER, md, PTL_UNLINK,
				&block->me, NULL)
		      : PtlMEMDInsert(list->rest, ofi_anyone, 0, ~OFI_EXPOSED, PTL_UNLINK,
				PTL_INS_BEFORE, md, PTL_UNLINK, &block->me, NULL);
	block->posted = rc == PTL_OK;
	list->full -= block->posted && !rest;
	return ofi_error(rc);
}

/* Move the messages of a full block to the heap, as far as there is memory. */
static void block_empty(struct ofi_block *block)
{
	struct ofi_late *late, *next;
	for (late = LIST_FIRST(&block->lates); late; late = next) {
		next = LIST_NEXT(late, in_block);
		char *copy = malloc(late->len ? late->len : 1);
		if (!copy)
			return;
		memcpy(copy, late->bytes, late->len);
		late->bytes = copy;
		late->block = NULL;
		LIST_REMOVE(late, in_block);
	}
}

static void list_refill(struct ofi_list *list)
{
	for (int i = 0; i < LATE_ENTRIES && !list->closing; i++) {
		struct ofi_block *block = &list->blocks[i];
		if (block->posted)
			continue;
		if (list->full >= LATE_BLOCKS / 2)
			block_empty(block);
		if (LIST_EMPTY(&block->lates))
			block_post(block);
	}
}

/* ---- late messages ---- */

void ofi_late_free(struct ofi_list *list, struct ofi_late *late)
{
	struct ofi_block *block = late->block;
	if (block) {
		LIST_REMOVE(late, in_block);
		if (OFI_UNLIKELY(!block->posted) && LIST_EMPTY(&block->lates) &&
			!list->closing)
			block_post(block);
	} else if (!(late->bits & OFI_EXPOSED)) {
		free(late->bytes);
	}
	late->next_free = list->free;
	list->free = late;
}

static void late_start(struct ofi_block *block, const ptl_event_t *event)
{
	struct ofi_list *list = block->list;
	struct ofi_late *late = list->free;
	if (late)
		list->free = late->next_free;
	else
		late = malloc(sizeof *late);
	if (!late) {
		FI_WARN(&ofi_provider, FI_LOG_EP_DATA, "no memory: a message is lost\n");
		return;
	}
	*late = (struct ofi_late){
		.bits = event->match_bits,
		.from = event->initiator,
		.hdr = event->hdr_data,
		.len = event->rlength,
		.link = event->link,
	};
	if (block->bytes) {
		late->bytes = block->bytes + event->offset;
		late->block = block;
		LIST_INSERT_HEAD(&block->lates, late, in_block);
		TAILQ_INSERT_TAIL(&list->arriving, late, arrival);
	} else {
		late->ready = true; /* nothing of it comes here */
	}
	TAILQ_INSERT_TAIL(&list->arrived, late, next);
	FAULT_POINT("ofi.late");
	list->offer(list, late);
}

static void late_end(struct ofi_list *list, const ptl_event_t *event)
{
	struct ofi_late *late;
	TAILQ_FOREACH(late, &list->arriving, arrival)
	if (late->link == event->link && ofi_is_same(late->from, event->initiator))
		break;
	if (!late)
		return; /* there was no memory for it */
	TAILQ_REMOVE(&list->arriving, late, arrival);
	late->ready = true;
	late->fail = event->ni_fail_type;
	if (late->taker)
		list->ready(late->taker);
}

static void late_event(struct ofi_sink *sink, const ptl_event_t *event)
{
	struct ofi_block *block = container_of(sink, struct ofi_block, sink);
	struct ofi_list *list = block->list;
	if (event->type == PTL_EVENT_PUT_START)
		late_start(block, event);
	else if (event->type == PTL_EVENT_PUT_END && block->bytes)
		late_end(list, event);
	if (OFI_LIKELY(!event->unlinked))
		return;
	block->posted = false;
	FAULT_POINT("ofi.block_full");
	list->full += block->bytes != NULL;
	list_refill(list);
}

bool ofi_late_drain(struct ofi_list *list)
{
	bool any = false;
	while (ofi_queue_step(&list->late))
		any = true;
	return any;
}

/* ---- life ---- */

/* An entry without a descriptor matches nothing: it marks a place. */
static int list_mark(struct ofi_list *list, ptl_handle_me_t *me)
{
	return ofi_error(PtlMEAttach(ofi_node.ni, list->index, ofi_anyone, 0, ~0ull,
		PTL_RETAIN, PTL_INS_AFTER, me));
}

int ofi_late_open(struct ofi_list *list)
{
	list->mark = list->rest = PTL_INVALID_HANDLE;
	list->closing = false;
	list->memory = MAP_FAILED;
	TAILQ_INIT(&list->arrived);
	TAILQ_INIT(&list->arriving);
	TAILQ_INIT(&list->claimed);
	int rc = ofi_queue_open(&list->late, list->ep->domain, LATE_EVENTS);
	if (rc)
		return rc;
	list->blocks = calloc(LATE_ENTRIES, sizeof *list->blocks);
	list->memory = mmap(NULL, ofi_settings.unexpected, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	rc = list->blocks && list->memory != MAP_FAILED ? 0 : -FI_ENOMEM;
	if (!rc)
		rc = list_mark(list, &list->mark);
	if (!rc)
		rc = list_mark(list, &list->rest);
	list->full = LATE_BLOCKS;
	for (int i = 0; i < LATE_ENTRIES && !rc; i++) {
		struct ofi_block *block = &list->blocks[i];
		block->sink.event = late_event;
		block->list = list;
		if (i < LATE_BLOCKS)
			block->bytes =
				(char *)list->memory +
				(size_t)i * (ofi_settings.unexpected / LATE_BLOCKS);
		LIST_INIT(&block->lates);
		rc = block_post(block);
	}
	if (rc) {
		while (!ofi_late_withdraw(list))
			sched_yield(); /* a message comes into an entry */
		ofi_late_close(list);
	}
	return rc;
}

/* Tell the sender of an exposed message that nobody receives it, by a get of no bytes,
 * whose answer nobody needs. */
static void late_refuse(struct ofi_list *list, struct ofi_late *late)
{
	uint64_t end = ofi_now() + LATE_REFUSE_MS;
	while (PtlGetRegion(ofi_node.quiet, 0, 0, late->from, OFI_PT_EXPOSED, ofi_node.ac,
		       (uint32_t)late->hdr | OFI_REFUSED, 0) == PTL_NO_SPACE &&
		ofi_now() < end)
		PtlProgress(list->late.eq, 0);
	FAULT_POINT("ofi.refused");
}

/* Nobody receives what has come. */
static void late_free_all(struct ofi_list *list)
{
	struct ofi_lates *all[] = {&list->arrived, &list->claimed};
	struct ofi_late *late;
	for (int i = 0; i < 2; i++) {
		while ((late = TAILQ_FIRST(all[i]))) {
			TAILQ_REMOVE(all[i], late, next);
			if (late->bits & OFI_EXPOSED)
				late_refuse(list, late);
			ofi_late_free(list, late);
		}
	}
	while ((late = list->free)) {
		list->free = late->next_free;
		free(late);
	}
}

bool ofi_late_withdraw(struct ofi_list *list)
{
	bool posted = false;
	list->closing = true;
	for (int i = 0; list->blocks && i < LATE_ENTRIES; i++) {
		struct ofi_block *block = &list->blocks[i];
		if (block->posted && PtlMEUnlink(block->me) == PTL_OK)
			block->posted = false;
	}
	/* The events are there, also those of entries that had just taken their last. */
	ofi_late_drain(list);
	for (int i = 0; list->blocks && i < LATE_ENTRIES; i++)
		posted |= list->blocks[i].posted;
	return !posted && TAILQ_EMPTY(&list->arriving);
}

void ofi_late_close(struct ofi_list *list)
{
	if (list->mark != PTL_INVALID_HANDLE)
		PtlMEUnlink(list->mark);
	if (list->rest != PTL_INVALID_HANDLE)
		PtlMEUnlink(list->rest);
	late_free_all(list);
	ofi_queue_close(&list->late);
	if (list->memory != MAP_FAILED)
		munmap(list->memory, ofi_settings.unexpected);
	free(list->blocks);
}
