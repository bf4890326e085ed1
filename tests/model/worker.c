/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model_worker - a node of the model as a rank of a job: carries orders of remote.c out
 *
 *	model_worker SOCKET
 *
 * P3_MODEL_SPOIL=N lets node 1 change a byte that has just come in each changed piece of
 * its memory from number N on, which the program must notice.
 */
#include "lib/node/node.h"
#include "model/net.h"
#include "model/orders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#define LOOK_NS 2000000u /* of a look whether the node rests */

static int sock;
static ptl_handle_ni_t ni;
static unsigned char *arena;
static unsigned char known[NET_ARENA]; /* the arena as the program knows it */
static uint32_t asked;
static unsigned spoil;

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "model_worker: %s\n", what);
	exit(1);
}

/* ---- the arena ---- */

static void wrote(const struct order *o)
{
	must(order_read(sock, o->at, o->len), "the program has ended");
	size_t at = (size_t)((unsigned char *)o->at - arena);
	memcpy(known + at, o->at, o->len);
}

static bool has_changed(uint32_t at)
{
	return memcmp(arena + at, known + at, ORDER_PIECE) != 0;
}

static void send_piece(uint32_t at)
{
	static struct piece piece;
	piece.at = at;
	if (at != ORDER_LAST) {
		memcpy(piece.bytes, arena + at, ORDER_PIECE);
		memcpy(known + at, piece.bytes, ORDER_PIECE);
	}
	must(order_write(sock, &piece, sizeof piece), "the program has ended");
}

/* The program compares the bytes that operations have written, unless two of them did so
 * at the same time. */
static void spoil_piece(uint32_t at)
{
	while (arena[at] == known[at])
		at++;
	arena[at] ^= 1;
}

static void send_arena(void)
{
	static unsigned pieces;
	for (uint32_t at = 0; at < NET_ARENA; at += ORDER_PIECE) {
		if (!has_changed(at))
			continue;
		if (spoil && ++pieces >= spoil)
			spoil_piece(at);
		send_piece(at);
	}
	send_piece(ORDER_LAST);
}

/* ---- begin, rest ---- */

static void begin(const struct order *o, struct answer *a)
{
	ptl_ni_limits_t desired = o->limits;
	arena = o->at;
	a->rc = PtlNIInit(
		PTL_IFACE_DEFAULT, PTL_PID_ANY, arena ? &desired : NULL, &a->limits, &ni);
	a->handle[0] = ni;
	if (a->rc == PTL_OK) {
		p3_nic_attend(p3_nic(&p3_process)); /* no request waits for an entry */
		(void)PtlGetId(ni, &a->id);
		(void)PtlGetUid(ni, &a->uid);
		(void)PtlGetJid(ni, &a->jid);
	}
}

static void settle(const struct order *o, struct answer *a)
{
	struct p3_nic *nic = p3_nic(&p3_process);
	uint64_t end = now_ns() + LOOK_NS;
	if (o->first)
		asked = 0;
	while (!(a->rests = rest_look(nic, &asked)) && now_ns() < end)
		;
	a->done = p3_nic_counter(nic, P3_C_SENT) + p3_nic_counter(nic, P3_C_RECEIVED);
}

/* ---- calls ---- */

static struct answer *now; /* the answer to the present call */

static void on_event(ptl_event_t *event)
{
	now->handled++;
	now->handler_event = *event;
}

static bool has_elements(const struct order *o)
{
	return o->has_md && (o->md.options & PTL_MD_IOVEC) && o->md.start;
}

static int call_me(const struct order *o, struct answer *a)
{
	if (o->call == ORDER_ME_ATTACH)
		return PtlMEAttach(o->handle[0], o->pt, o->id, o->bits, o->ignore,
			o->me_unlink, o->position, &a->handle[0]);
	if (o->call == ORDER_ME_ATTACH_ANY)
		return PtlMEAttachAny(o->handle[0], &a->pt, o->id, o->bits, o->ignore,
			o->me_unlink, &a->handle[0]);
	if (o->call == ORDER_ME_INSERT)
		return PtlMEInsert(o->handle[0], o->id, o->bits, o->ignore, o->me_unlink,
			o->position, &a->handle[0]);
	return PtlMEUnlink(o->handle[0]);
}

static int call_update(const struct order *o, struct answer *a)
{
	ptl_md_t new_md = o->md;
	a->old = o->old;
	if (o->has_old && (o->old.options & PTL_MD_IOVEC))
		a->old.start = a->iov;
	return PtlMDUpdate(o->handle[0], o->has_old ? &a->old : NULL,
		o->has_md ? &new_md : NULL, o->handle[1]);
}

static int call_md(const struct order *o, struct answer *a)
{
	if (o->call == ORDER_MD_ATTACH)
		return PtlMDAttach(o->handle[0], o->md, o->md_unlink, &a->handle[0]);
	if (o->call == ORDER_MD_BIND)
		return PtlMDBind(o->handle[0], o->md, o->md_unlink, &a->handle[0]);
	if (o->call == ORDER_MD_UNLINK)
		return PtlMDUnlink(o->handle[0]);
	return call_update(o, a);
}

static int call_memd(const struct order *o, struct answer *a)
{
	if (o->call == ORDER_MEMD_ATTACH)
		return PtlMEMDAttach(o->handle[0], o->pt, o->id, o->bits, o->ignore,
			o->me_unlink, o->position, o->md, o->md_unlink, &a->handle[0],
			&a->handle[1]);
	if (o->call == ORDER_MEMD_INSERT)
		return PtlMEMDInsert(o->handle[0], o->id, o->bits, o->ignore,
			o->me_unlink, o->position, o->md, o->md_unlink, &a->handle[0],
			&a->handle[1]);
	return PtlMEMDPost(o->handle[0], o->handle[1], o->id, o->bits, o->ignore,
		o->me_unlink, o->position, o->md, o->md_unlink, &a->handle[0],
		&a->handle[1], o->handle[2]);
}

static int call_put(const struct order *o)
{
	if (o->call == ORDER_PUT)
		return PtlPut(o->handle[0], o->ack, o->id, o->pt, o->ac, o->bits,
			o->remote_offset, o->hdr);
	return PtlPutRegion(o->handle[0], o->local_offset, o->length, o->ack, o->id,
		o->pt, o->ac, o->bits, o->remote_offset, o->hdr);
}

static int call_get(const struct order *o)
{
	if (o->call == ORDER_GET)
		return PtlGet(
			o->handle[0], o->id, o->pt, o->ac, o->bits, o->remote_offset);
	return PtlGetRegion(o->handle[0], o->local_offset, o->length, o->id, o->pt, o->ac,
		o->bits, o->remote_offset);
}

static int call_getput(const struct order *o)
{
	if (o->call == ORDER_GETPUT)
		return PtlGetPut(o->handle[0], o->handle[1], o->id, o->pt, o->ac, o->bits,
			o->remote_offset, o->hdr);
	return PtlGetPutRegion(o->handle[0], o->local_offset, o->handle[1],
		o->local_offset2, o->length, o->id, o->pt, o->ac, o->bits,
		o->remote_offset, o->hdr);
}

static int call_eq(const struct order *o, struct answer *a)
{
	ptl_handle_eq_t eqs[ORDER_POLLS];
	memcpy(eqs, o->handle, sizeof eqs);
	switch (o->call) {
	case ORDER_EQ_ALLOC:
		return PtlEQAlloc(o->handle[0], o->length,
			o->has_handler ? on_event : PTL_EQ_HANDLER_NONE, &a->handle[0]);
	case ORDER_EQ_FREE:
		return PtlEQFree(o->handle[0]);
	case ORDER_EQ_GET:
		return PtlEQGet(o->handle[0], &a->event);
	case ORDER_EQ_PEEK:
		return PtlEQPeek(o->handle[0], &a->event);
	default:
		return PtlEQPoll(eqs, o->n, o->timeout, &a->event, &a->which);
	}
}

static int call_ids(const struct order *o, struct answer *a)
{
	int rc = PtlGetUid(o->handle[0], &a->uid);
	return rc == PTL_OK ? PtlGetJid(o->handle[0], &a->jid) : rc;
}

static int call_rest(const struct order *o, struct answer *a)
{
	switch (o->call) {
	case ORDER_AC_ENTRY:
		return PtlACEntry(o->handle[0], o->ac, o->id, o->uid, o->jid, o->pt);
	case ORDER_NI_STATUS:
		return PtlNIStatus(o->handle[0], (ptl_sr_index_t)o->n, &a->value);
	case ORDER_NI_HANDLE:
		return PtlNIHandle(o->handle[0], &a->handle[0]);
	case ORDER_GET_IDS:
		return call_ids(o, a);
	default:
		return PtlHandleIsEqual(o->handle[0], o->handle[1]);
	}
}

static int call(const struct order *o, struct answer *a)
{
	if (o->call <= ORDER_ME_UNLINK)
		return call_me(o, a);
	if (o->call <= ORDER_MD_UPDATE)
		return call_md(o, a);
	if (o->call <= ORDER_MEMD_POST)
		return call_memd(o, a);
	if (o->call <= ORDER_PUT_REGION)
		return call_put(o);
	if (o->call <= ORDER_GET_REGION)
		return call_get(o);
	if (o->call <= ORDER_GETPUT_REGION)
		return call_getput(o);
	return o->call >= ORDER_EQ_ALLOC && o->call <= ORDER_EQ_POLL ? call_eq(o, a)
								     : call_rest(o, a);
}

/* Make a call.  The elements of a descriptor belong to the program again afterwards. */
static void make_call(const struct order *o, struct answer *a)
{
	if (has_elements(o))
		memcpy(o->md.start, o->iov, sizeof o->iov);
	now = a;
	a->rc = call(o, a);
	if (has_elements(o))
		memset(o->md.start, 0x5a, sizeof o->iov);
}

/* ---- orders ---- */

static bool obey(const struct order *o)
{
	struct answer a = {0};
	switch (o->call) {
	case ORDER_WROTE:
		wrote(o);
		return true;
	case ORDER_READ:
		a.drops = p3_nic_counter(p3_nic(&p3_process), P3_C_DROPS);
		break;
	case ORDER_BEGIN:
		begin(o, &a);
		break;
	case ORDER_SETTLE:
		settle(o, &a);
		break;
	case ORDER_END:
		return false;
	default:
		make_call(o, &a);
	}
	must(order_write(sock, &a, sizeof a), "the program has ended");
	if (o->call == ORDER_READ)
		send_arena();
	return true;
}

static void meet(const char *path)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	struct hello h = {.rank = p3_process.rank, .size = p3_process.size};
	const char *text = getenv("P3_MODEL_SPOIL");
	spoil = text && h.rank == 2 ? (unsigned)atoi(text) : 0; /* node 1: remote.c */
	snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
	sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(sock >= 0 && connect(sock, (struct sockaddr *)&at, sizeof at) == 0 &&
			order_write(sock, &h, sizeof h),
		"the program is not there");
}

int main(int argc, char **argv)
{
	struct order o;
	int most;
	must(argc == 2, "usage: model_worker SOCKET");
	must(mmap(ORDER_PLACE, ORDER_MEMORY, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
		     0) == ORDER_PLACE,
		"no memory at the common place");
	must(PtlInit(&most) == PTL_OK, "PtlInit fails");
	meet(argv[1]);
	do
		must(order_read(sock, &o, sizeof o), "the program has ended");
	while (obey(&o));
	must(PtlNIFini(ni) == PTL_OK, "PtlNIFini fails");
	PtlFini();
	return 0;
}
