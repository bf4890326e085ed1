/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * why - the reasons for which a request comes to nothing, and texts for them
 *
 * The firmware counts each reason and keeps its last case in the control block
 * (layout.h); the log (log.h) and ptlstat describe it with the same texts.  Any thread
 * may call these functions, the lease holder too, as it may write to the log: they format
 * numbers and texts only, without memory of their own.  There is no state.
 */
#ifndef P3_SHM_WHY_H
#define P3_SHM_WHY_H

#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Each line has a reason, its short name for programs, and a format of its text for near
 * and mask, or NULL; a comment says what these are where no format does.  Reasons from
 * BITS to LENGTH are in the order of the tests for an entry: a later one is nearer to a
 * match.
 */
#define P3_WHY_REASONS(X)                                                                \
	/* dropped by the target */                                                      \
	X(NO_PROCESS, "no_process", "the target has no interface with that pid")         \
	X(NO_PORTAL, "no_portal_index", "the highest portal index is %" PRIu64)          \
	X(AC_RANGE, "access_control_index",                                              \
		" does not exist: the highest index is %" PRIu64)                        \
	X(AC_UNSET, "access_control_not_set",                                            \
		" is not set; the target sets it with PtlACEntry")                       \
	X(AC_ID, "access_control_process", NULL)  /* pid:nid that are allowed */         \
	X(AC_OWNER, "access_control_owner", NULL) /* jid:uid that are allowed */         \
	X(AC_PORTAL, "access_control_portal_index", " is for portal index %" PRIu64)     \
	X(EMPTY, "no_match_entry", "the portal index has no match entry")                \
	X(BITS, "match_bits", NULL)     /* match and ignore bits of an entry */          \
	X(SOURCE, "match_source", NULL) /* pid:nid that the entry accepts */             \
	X(NO_MD, "no_memory_descriptor", " has no memory descriptor")                    \
	X(THRESHOLD, "threshold", " has a descriptor whose threshold is used up")        \
	X(MAX_SIZE, "max_size", " has a descriptor with less than max_size bytes left")  \
	X(OPERATION, "operation", NULL)                                                  \
	X(OFFSET, "offset",                                                              \
		" has a descriptor of %" PRIu64 " bytes, and the offset is %" PRIu64)    \
	X(LENGTH, "too_long",                                                            \
		" has a descriptor with %" PRIu64                                        \
		" bytes left, and without PTL_MD_TRUNCATE")                              \
	X(GONE, "initiator_gone",                                                        \
		"the initiator ended before the target could serve it")                  \
	/* no ACK, though the put was served */                                          \
	X(ACK_DISABLED, "ack_disabled",                                                  \
		"it was delivered, but the target's descriptor has PTL_MD_ACK_DISABLE, " \
		"so no ACK comes")                                                       \
	/* dropped by the initiator: an answer without a descriptor or a queue; */       \
	/* near: 1 if the target could not read a put that had been copied */            \
	X(LATE, "late_answer",                                                           \
		"the target could not read its bytes, and its "                          \
		"SEND_END had said PTL_NI_OK: they had been copied")                     \
	/* never sent by the initiator */                                                \
	X(ABSENT, "target_absent", "no process with that id has joined yet")             \
	X(ENDED, "target_ended", "the target has ended")                                 \
	X(NO_PID, "no_such_pid", "the target has no interface with that pid")            \
	/* events */                                                                     \
	X(EVENT_LOST, "event_lost",                                                      \
		"event queue %" PRIu64 " was full: it holds %" PRIu64 " events")         \
	/* served, but not with all of its bytes */                                      \
	X(TRUNCATED, "truncated",                                                        \
		"the descriptor had %" PRIu64 " bytes left, and has PTL_MD_TRUNCATE")

enum p3_why {
	P3_WHY_NONE,
#define P3_X(id, name, text) P3_WHY_##id,
	P3_WHY_REASONS(P3_X)
#undef P3_X
		P3_WHY_END
};

#define P3_WHYS (P3_WHY_END - 1u)

/* ATOMIC and those behind it: the operations of PtlXAtomic. */
enum p3_case_kind { P3_CASE_PUT = 1, P3_CASE_GET, P3_CASE_GETPUT, P3_CASE_ATOMIC };

/* One request that came to nothing; the reason gives near and mask their meaning. */
struct p3_case {
	uint64_t count;   /* requests that had this reason */
	uint64_t who;     /* pid:nid of the other process */
	uint32_t node;    /* index of the other node, UINT32_MAX: not known */
	uint32_t entries; /* BITS to LENGTH: number of match entries that were looked
			   * at */
	uint32_t pt_index;
	uint16_t ac_index;
	uint16_t kind; /* p3_case_kind */
	uint64_t bits;
	uint64_t length;
	uint64_t near, mask;
};

#define P3_CASE_WORDS 8u

_Static_assert(sizeof(struct p3_case) == P3_CASE_WORDS * sizeof(uint64_t),
	"cases are handed on as words");

/* Return the name of an operation of PtlXAtomic, such as "atomic_sum". */
const char *p3_why_atomic(uint32_t op);

/* Return a short name for programs, such as "match_bits". */
const char *p3_why_name(uint32_t why);

/* Write the reason as text, such as "no match entry accepts it: the nearest of 3 has
 * match bits 0x17, 0x10 differs". */
void p3_why_text(uint32_t why, const struct p3_case *c, char *text, size_t size);

/* Write the request as text, such as "a put of 8 bytes to portal 4, match bits 0x7". */
void p3_case_text(const struct p3_case *c, char *text, size_t size);

#endif
