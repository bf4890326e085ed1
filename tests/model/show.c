/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations and events as text. */
#include "model/model.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* Text to which parts are appended, cut off at its end. */
struct text {
	char *at;
	size_t left;
};

__attribute__((format(printf, 2, 3))) static void add(
	struct text *t, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(t->at, t->left, fmt, ap);
	va_end(ap);
	size_t used = n < 0 ? 0 : (size_t)n < t->left ? (size_t)n : t->left - 1;
	t->at += used;
	t->left -= used;
}

const char *show_kind(const struct m_op *op)
{
	static const char *const names[M_KINDS] = {
		[M_EQ_ALLOC] = "PtlEQAlloc",
		[M_EQ_FREE] = "PtlEQFree",
		[M_EQ_GET] = "PtlEQGet",
		[M_EQ_PEEK] = "PtlEQPeek",
		[M_EQ_POLL] = "PtlEQPoll",
		[M_ME_ATTACH] = "PtlMEAttach",
		[M_ME_ATTACH_ANY] = "PtlMEAttachAny",
		[M_ME_INSERT] = "PtlMEInsert",
		[M_ME_UNLINK] = "PtlMEUnlink",
		[M_MD_ATTACH] = "PtlMDAttach",
		[M_MD_BIND] = "PtlMDBind",
		[M_MD_UNLINK] = "PtlMDUnlink",
		[M_MD_UPDATE] = "PtlMDUpdate",
		[M_MEMD_ATTACH] = "PtlMEMDAttach",
		[M_MEMD_INSERT] = "PtlMEMDInsert",
		[M_MEMD_POST] = "PtlMEMDPost",
		[M_PUT] = "PtlPut",
		[M_GET] = "PtlGet",
		[M_GETPUT] = "PtlGetPut",
		[M_AC_ENTRY] = "PtlACEntry",
		[M_STATUS] = "PtlNIStatus",
		[M_HANDLE] = "PtlNIHandle",
		[M_STORE] = "store",
	};
	return names[op->kind];
}

static void add_ref(struct text *t, const char *what, struct m_ref r)
{
	static const char *const odd[] = {"", "none", "invalid", "0", "of another kind"};
	if (r.how == M_SLOT)
		add(t, " %s%u", what, r.slot);
	else
		add(t, " %s(%s)", what, odd[r.how]);
}

static void add_id(struct text *t, const char *what, unsigned nid, unsigned pid)
{
	unsigned id[2] = {nid, pid};
	add(t, " %s(", what);
	for (unsigned i = 0; i < 2; i++)
		if (id[i] == M_ANY)
			add(t, i ? ",any" : "any");
		else if (id[i] == M_OTHER)
			add(t, i ? ",nobody" : "nobody");
		else
			add(t, i ? ",%u" : "%u", id[i]);
	add(t, ")");
}

static void add_options(struct text *t, unsigned options)
{
	static const char *const names[] = {"PUT", "GET", "REMOTE", "TRUNCATE", "NOACK",
		"IOVEC", "MAX_SIZE", "NOSTART", "NOEND"};
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		if (options & 1u << i)
			add(t, "|%s", names[i]);
}

static void add_md(struct text *t, const struct m_md_arg *a)
{
	static const char *const faults[] = {"", " NULL", " WRAPS", " TOO MANY",
		" NULL ELEMENT", " BAD OPTION", " BAD THRESHOLD"};
	add(t, " {");
	for (unsigned i = 0; i < a->nseg; i++)
		add(t, "%s%u+%u", i ? " " : "", a->seg[i].at, a->seg[i].len);
	add(t, " th %d", a->threshold);
	add_options(t, a->options);
	if (a->options & PTL_MD_MAX_SIZE)
		add(t, " max_size %" PRIu64, a->max_size);
	add_ref(t, "eq", a->eq);
	add(t, "%s}", faults[a->fault]);
}

static void add_match(struct text *t, const struct m_op *op)
{
	add_id(t, "from", op->id_nid, op->id_pid);
	add(t, " bits %#" PRIx64 " ignore %#" PRIx64 "%s", op->bits, op->ignore,
		op->me_unlink ? " UNLINK" : "");
}

static void add_move(struct text *t, const struct m_op *op)
{
	if (op->region)
		add(t, " region %" PRIu64 "+%" PRIu64, op->local_offset, op->length);
	if (op->region && op->kind == M_GETPUT)
		add(t, " put from %" PRIu64, op->local_offset2);
	if (op->target >= M_NODES)
		add(t, op->target == M_ANY ? " to anybody" : " to nobody");
	else
		add(t, " to node %u", op->target);
	add(t, " pt %u ac %u bits %#" PRIx64 " remote_offset %" PRIu64 " hdr %#" PRIx64,
		op->pt, op->ac, op->bits, op->remote_offset, op->hdr);
	add(t, "%s%s", op->ack ? " ACK" : "", op->burst ? " ..." : "");
}

static void add_target_of_me(struct text *t, const struct m_op *op)
{
	if (op->kind == M_ME_INSERT || op->kind == M_MEMD_INSERT ||
		op->kind == M_MEMD_POST)
		add_ref(t, "at me", op->me);
	else if (op->kind != M_ME_ATTACH_ANY)
		add(t, " pt %u", op->pt);
	add(t, op->before ? " BEFORE" : " AFTER");
	add_match(t, op);
	add(t, " => me%u", op->slot);
}

static void add_made_md(struct text *t, const struct m_op *op, unsigned slot)
{
	add_md(t, &op->arg);
	add(t, "%s => md%u", op->md_unlink ? " UNLINK" : "", slot);
}

static void add_rest(struct text *t, const struct m_op *op)
{
	switch (op->kind) {
	case M_EQ_ALLOC:
		add(t, " %u%s => eq%u", op->count, op->handler ? " handler" : "",
			op->slot);
		break;
	case M_EQ_GET:
		add(t, " x%u", op->count);
		/* fall through */
	case M_EQ_FREE:
	case M_EQ_PEEK:
		add_ref(t, "eq", op->eq);
		break;
	case M_EQ_POLL:
		for (unsigned i = 0; i < op->npoll; i++)
			add_ref(t, "eq", op->poll[i]);
		break;
	case M_ME_ATTACH:
	case M_ME_ATTACH_ANY:
	case M_ME_INSERT:
		add_target_of_me(t, op);
		break;
	case M_ME_UNLINK:
		add_ref(t, "me", op->me);
		break;
	case M_MD_ATTACH:
		add_ref(t, "me", op->me);
		/* fall through */
	case M_MD_BIND:
		add_made_md(t, op, op->slot);
		break;
	case M_MD_UNLINK:
	case M_HANDLE:
		add_ref(t, "md", op->md);
		break;
	case M_MD_UPDATE:
		add_ref(t, "md", op->md);
		if (!op->keep)
			add_md(t, &op->arg);
		add_ref(t, "if empty eq", op->eq);
		break;
	case M_MEMD_POST:
		add_ref(t, "if empty eq", op->eq);
		/* fall through */
	case M_MEMD_ATTACH:
	case M_MEMD_INSERT:
		add_target_of_me(t, op);
		add_made_md(t, op, op->slot2);
		break;
	case M_GETPUT:
		add_ref(t, "put md", op->md2);
		/* fall through */
	case M_PUT:
	case M_GET:
		add_ref(t, "md", op->md);
		add_move(t, op);
		break;
	case M_AC_ENTRY:
		add(t, " %u", op->ac);
		add_id(t, "from", op->id_nid, op->id_pid);
		add_id(t, "uid,jid", op->id_uid, op->id_jid);
		add(t, " pt %d", (int)op->pt);
		break;
	case M_STORE:
		add(t, " %u+%" PRIu64 " hdr %#" PRIx64, op->at, op->length, op->hdr);
		break;
	default:
		break;
	}
}

void show_op(char *text, size_t len, const struct m_op *op)
{
	struct text t = {text, len};
	add(&t, "node %u: %s%s", op->node, show_kind(op), op->region ? "Region" : "");
	add_rest(&t, op);
	if (op->ni_fault)
		add(&t, " BAD NI");
}

static void add_snap(struct text *t, const ptl_md_t *md)
{
	add(t, " md {%p+%" PRIu64 " th %d max_size %" PRIu64 " user %p", md->start,
		md->length, md->threshold, md->max_size, md->user_ptr);
	add_options(t, md->options);
	add(t, "}");
}

void show_event(char *text, size_t len, const ptl_event_t *ev)
{
	struct text t = {text, len};
	add(&t,
		"%s by %u,%u pt %u bits %#" PRIx64 " rlength %" PRIu64 " mlength %" PRIu64
		" offset %" PRIu64 " hdr %#" PRIx64 " md %#" PRIx64,
		PtlEventKindStr(ev->type), ev->initiator.nid, ev->initiator.pid,
		ev->pt_index, ev->match_bits, ev->rlength, ev->mlength, ev->offset,
		ev->hdr_data, ev->md_handle);
	add_snap(&t, &ev->md);
	add(&t, " link %u sequence %u unlinked %d fail %u", ev->link, ev->sequence,
		ev->unlinked, ev->ni_fail_type);
}

void show_expected(char *text, size_t len, const struct m_event *ev,
	const ptl_process_id_t *initiator, ptl_handle_md_t md)
{
	struct text t = {text, len};
	add(&t,
		"%s by %u,%u pt %u bits %#" PRIx64 " rlength %" PRIu64 " mlength %" PRIu64
		" offset %" PRIu64 " hdr %#" PRIx64 " md %#" PRIx64,
		PtlEventKindStr(ev->type), initiator->nid, initiator->pid, ev->pt,
		ev->bits, ev->rlength, ev->mlength, ev->offset, ev->hdr, md);
	add_snap(&t, &ev->snap);
	add(&t, " op %u%s", ev->class, ev->fail ? " fails" : "");
}
