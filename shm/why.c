/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts for the reasons for which a request comes to nothing. */
#include "shm/why.h"

#include <string.h>

/* ---- text without stdio ---- */

struct words {
	char *at, *end;
};

static struct words words_in(char *text, size_t size)
{
	*text = '\0';
	return (struct words){text, text + size - 1};
}

static void put(struct words *w, const char *s)
{
	while (*s && w->at < w->end)
		*w->at++ = *s++;
	*w->at = '\0';
}

static void put_number(struct words *w, uint64_t n, unsigned base)
{
	char digits[24], *at = digits + sizeof digits;
	*--at = '\0';
	do
		*--at = "0123456789abcdef"[n % base];
	while (n /= base);
	put(w, base == 16 ? "0x" : "");
	put(w, at);
}

static void put_hex(struct words *w, const char *before, uint64_t n)
{
	put(w, before);
	put_number(w, n, 16);
}

static void put_count(struct words *w, const char *before, uint64_t n, const char *behind)
{
	put(w, before);
	put_number(w, n, 10);
	put(w, behind);
}

/* Write one half of a pair of identifiers, if the entry selects by it. */
static void put_half(struct words *w, const char *name, uint64_t value, uint64_t mask)
{
	put(w, name);
	if ((uint32_t)mask)
		put_count(w, " ", (uint32_t)value, "");
	else
		put(w, " any");
}

static void put_pair(
	struct words *w, const char *low, const char *high, uint64_t value, uint64_t mask)
{
	put_half(w, low, value, mask);
	put_half(w, high, value >> 32, mask >> 32);
}

/* ---- reasons ---- */

const char *p3_why_name(uint32_t why)
{
	static const char *const names[] = {[P3_WHY_NONE] = "none",
		[P3_WHY_NO_PROCESS] = "no_process",
		[P3_WHY_NO_PORTAL] = "no_portal_index",
		[P3_WHY_AC_RANGE] = "access_control_index",
		[P3_WHY_AC_UNSET] = "access_control_not_set",
		[P3_WHY_AC_ID] = "access_control_process",
		[P3_WHY_AC_OWNER] = "access_control_owner",
		[P3_WHY_AC_PORTAL] = "access_control_portal_index",
		[P3_WHY_EMPTY] = "no_match_entry",
		[P3_WHY_BITS] = "match_bits",
		[P3_WHY_SOURCE] = "match_source",
		[P3_WHY_NO_MD] = "no_memory_descriptor",
		[P3_WHY_THRESHOLD] = "threshold",
		[P3_WHY_MAX_SIZE] = "max_size",
		[P3_WHY_OPERATION] = "operation",
		[P3_WHY_OFFSET] = "offset",
		[P3_WHY_LENGTH] = "too_long",
		[P3_WHY_GONE] = "initiator_gone",
		[P3_WHY_ACK_DISABLED] = "ack_disabled",
		[P3_WHY_LATE] = "late_answer",
		[P3_WHY_ABSENT] = "target_absent",
		[P3_WHY_ENDED] = "target_ended",
		[P3_WHY_NO_PID] = "no_such_pid",
		[P3_WHY_EVENT_LOST] = "event_lost",
		[P3_WHY_TRUNCATED] = "truncated"};
	return why < sizeof names / sizeof names[0] ? names[why] : "unknown";
}

static const char *kind_name(uint32_t kind)
{
	return kind == P3_CASE_GET ? "get" : kind == P3_CASE_GETPUT ? "getput" : "put";
}

static const char *answer_name(uint32_t kind)
{
	return kind == P3_CASE_PUT ? "the ACK" : "the reply";
}

static void put_access(struct words *w, uint32_t why, const struct p3_case *c)
{
	put_count(w, "access control entry ", c->ac_index, "");
	switch (why) {
	case P3_WHY_AC_RANGE:
		put_count(w, " does not exist: the highest index is ", c->near, "");
		break;
	case P3_WHY_AC_UNSET:
		put(w, " is not set; the target sets it with PtlACEntry");
		break;
	case P3_WHY_AC_ID:
		put_pair(w, " is for the process of nid", ", pid", c->near, c->mask);
		break;
	case P3_WHY_AC_OWNER:
		put_pair(w, " is for uid", ", jid", c->near, c->mask);
		break;
	default:
		put_count(w, " is for portal index ", c->near, "");
	}
}

/* Write the entry that came nearest, and the reason why it does not accept the
 * request. */
static void put_nearest(struct words *w, uint32_t why, const struct p3_case *c)
{
	put(w, "no match entry accepts it: the nearest of ");
	put_number(w, c->entries, 10);
	switch (why) {
	case P3_WHY_BITS:
		put_hex(w, " has match bits ", c->near);
		put_hex(w, ", ignore bits ", c->mask);
		put_hex(w, "; the request differs in bits ",
			(c->bits ^ c->near) & ~c->mask);
		break;
	case P3_WHY_SOURCE:
		put_pair(w, " takes requests of nid", ", pid", c->near, c->mask);
		put(w, " only");
		break;
	case P3_WHY_NO_MD:
		put(w, " has no memory descriptor");
		break;
	case P3_WHY_THRESHOLD:
		put(w, " has a descriptor whose threshold is used up");
		break;
	case P3_WHY_MAX_SIZE:
		put(w, " has a descriptor with less than max_size bytes left");
		break;
	case P3_WHY_OPERATION:
		put(w, " has a descriptor that does not allow a ");
		put(w, kind_name(c->kind));
		put(w, " (PTL_MD_OP_PUT, PTL_MD_OP_GET)");
		break;
	case P3_WHY_OFFSET:
		put_count(w, " has a descriptor of ", c->near, " bytes");
		put_count(w, ", and the offset is ", c->mask, "");
		break;
	default:
		put_count(w, " has a descriptor with ", c->near,
			" bytes left, and without PTL_MD_TRUNCATE");
	}
}

/* Return the text of a reason that needs no numbers. */
static const char *plain_text(uint32_t why)
{
	switch (why) {
	case P3_WHY_NO_PROCESS:
	case P3_WHY_NO_PID:
		return "the target has no interface with that pid";
	case P3_WHY_EMPTY:
		return "the portal index has no match entry";
	case P3_WHY_GONE:
		return "the initiator ended before the target could serve it";
	case P3_WHY_ACK_DISABLED:
		return "it was delivered, but the target's descriptor has "
		       "PTL_MD_ACK_DISABLE, so no ACK comes";
	case P3_WHY_ABSENT:
		return "no process with that id has joined yet";
	case P3_WHY_ENDED:
		return "the target has ended";
	default:
		return NULL;
	}
}

void p3_why_text(uint32_t why, const struct p3_case *c, char *text, size_t size)
{
	struct words w = words_in(text, size);
	const char *plain = plain_text(why);
	if (plain) {
		put(&w, plain);
	} else if (why == P3_WHY_NO_PORTAL) {
		put_count(&w, "the highest portal index is ", c->near, "");
	} else if (why >= P3_WHY_AC_RANGE && why <= P3_WHY_AC_PORTAL) {
		put_access(&w, why, c);
	} else if (why >= P3_WHY_BITS && why <= P3_WHY_LENGTH) {
		put_nearest(&w, why, c);
	} else if (why == P3_WHY_LATE && c->near) {
		put(&w, "the target could not read its bytes, and its SEND_END had said "
			"PTL_NI_OK: they had been copied");
	} else if (why == P3_WHY_LATE) {
		put(&w, answer_name(c->kind));
		put(&w, " came after its memory descriptor, or the event queue of that, "
			"was gone (a threshold counts the ACK or the reply, too)");
	} else if (why == P3_WHY_EVENT_LOST) {
		put_count(&w, "event queue ", c->near, " was full");
		put_count(&w, ": it holds ", c->mask, " events");
	} else if (why == P3_WHY_TRUNCATED) {
		put_count(&w, "the descriptor had ", c->near,
			" bytes left, and has PTL_MD_TRUNCATE");
	} else {
		put(&w, "for a reason that this program does not know");
	}
}

void p3_case_text(const struct p3_case *c, char *text, size_t size)
{
	struct words w = words_in(text, size);
	put(&w, "a ");
	put(&w, kind_name(c->kind));
	put_count(&w, " of ", c->length, " bytes");
	put_count(&w, " to portal index ", c->pt_index, "");
	put_hex(&w, ", match bits ", c->bits);
}
