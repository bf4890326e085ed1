/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts for the reasons for which a request comes to nothing. */
#include "shm/why.h"

#include <stdbool.h>
#include <stdio.h>

static const struct {
	const char *name, *text;
} why_reasons[] = {
#define P3_X(id, name, text) {name, text},
	{"none", NULL}, P3_WHY_REASONS(P3_X)
#undef P3_X
};

const char *p3_why_name(uint32_t why)
{
	return why < P3_WHY_END ? why_reasons[why].name : "unknown";
}

const char *p3_why_atomic(uint32_t op)
{
	static const char *const names[] = {"atomic_min", "atomic_max", "atomic_sum",
		"atomic_prod", "atomic_lor", "atomic_land", "atomic_bor", "atomic_band",
		"atomic_lxor", "atomic_bxor", "atomic_read", "atomic_write",
		"atomic_cswap", "atomic_cswap_ne", "atomic_cswap_le", "atomic_cswap_lt",
		"atomic_cswap_ge", "atomic_cswap_gt", "atomic_mswap"};
	return op < sizeof names / sizeof *names ? names[op] : "?";
}

static const char *why_kind(const struct p3_case *c)
{
	return c->kind >= P3_CASE_ATOMIC   ? p3_why_atomic(c->kind - P3_CASE_ATOMIC)
	       : c->kind == P3_CASE_GET    ? "get"
	       : c->kind == P3_CASE_GETPUT ? "getput"
					   : "put";
}

static const char *why_article(const struct p3_case *c)
{
	return c->kind >= P3_CASE_ATOMIC ? "an" : "a";
}

struct why_pair {
	char text[60];
};

/* Write two identifiers, of which those with a mask of zero are any. */
static struct why_pair why_pair_of(
	const char *low, const char *high, const struct p3_case *c)
{
	struct why_pair p;
	char of[2][12] = {"any", "any"};
	for (int i = 0; i < 2; i++)
		if ((uint32_t)(c->mask >> 32 * i))
			snprintf(of[i], sizeof of[i], "%" PRIu32,
				(uint32_t)(c->near >> 32 * i));
	snprintf(p.text, sizeof p.text, "%s %s, %s %s", low, of[0], high, of[1]);
	return p;
}

/* Write the text of a reason, or the part of it behind what is common to its kind. */
static void why_detail(uint32_t why, const struct p3_case *c, char *text, size_t size)
{
	switch (why) {
	case P3_WHY_AC_ID:
		snprintf(text, size, " is for the process of %s",
			why_pair_of("nid", "pid", c).text);
		return;
	case P3_WHY_AC_OWNER:
		snprintf(text, size, " is for %s", why_pair_of("uid", "jid", c).text);
		return;
	case P3_WHY_BITS:
		snprintf(text, size,
			" has match bits 0x%" PRIx64 ", ignore bits 0x%" PRIx64
			"; the request differs in bits 0x%" PRIx64,
			c->near, c->mask, (c->bits ^ c->near) & ~c->mask);
		return;
	case P3_WHY_SOURCE:
		snprintf(text, size, " takes requests of %s only",
			why_pair_of("nid", "pid", c).text);
		return;
	case P3_WHY_OPERATION:
		snprintf(text, size,
			" has a descriptor that does not allow %s %s (PTL_MD_OP_PUT, "
			"PTL_MD_OP_GET)",
			why_article(c), why_kind(c));
		return;
	case P3_WHY_LATE:
		if (c->near)
			break;
		snprintf(text, size,
			"the %s came after its memory descriptor, or the event queue of "
			"that, was gone (a threshold counts the ACK or the reply, too)",
			c->kind == P3_CASE_PUT     ? "ACK"
			: c->kind < P3_CASE_ATOMIC ? "reply"
						   : "answer");
		return;
	default:
		break;
	}
	snprintf(text, size,
		why < P3_WHY_END && why_reasons[why].text
			? why_reasons[why].text
			: "for a reason that this program does not know",
		c->near, c->mask);
}

void p3_why_text(uint32_t why, const struct p3_case *c, char *text, size_t size)
{
	int n = 0;
	if (why >= P3_WHY_AC_RANGE && why <= P3_WHY_AC_PORTAL)
		n = snprintf(text, size, "access control entry %u", c->ac_index);
	else if (why >= P3_WHY_BITS && why <= P3_WHY_LENGTH)
		n = snprintf(text, size,
			"no match entry accepts it: the nearest of %" PRIu32, c->entries);
	if ((size_t)n < size)
		why_detail(why, c, text + n, size - (size_t)n);
}

void p3_case_text(const struct p3_case *c, char *text, size_t size)
{
	snprintf(text, size,
		"%s %s of %" PRIu64 " bytes to portal index %" PRIu32
		", match bits 0x%" PRIx64,
		why_article(c), why_kind(c), c->length, c->pt_index, c->bits);
}
