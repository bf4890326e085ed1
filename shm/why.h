/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * why - the reasons for which a request comes to nothing, and texts for them
 *
 * The firmware counts each reason and keeps its last case in the control block
 * (layout.h); the log (log.h) and ptlstat describe it with the same texts.  Any thread
 * may call these functions, the lease holder too: nothing here uses stdio, and there is
 * no state.
 */
#ifndef P3_SHM_WHY_H
#define P3_SHM_WHY_H

#include <stddef.h>
#include <stdint.h>

enum p3_why {
	P3_WHY_NONE,
	/* dropped by the target */
	P3_WHY_NO_PROCESS, /* no interface of the node has the requested pid */
	P3_WHY_NO_PORTAL,  /* near: the highest portal index */
	P3_WHY_AC_RANGE,   /* near: the highest access control index */
	P3_WHY_AC_UNSET,   /* the access control entry is not set */
	P3_WHY_AC_ID,      /* the entry allows other processes only; near, mask:
			    * pid:nid */
	P3_WHY_AC_OWNER,   /* the entry allows other jobs or users only; near, mask:
			    * jid:uid */
	P3_WHY_AC_PORTAL,  /* the entry allows another portal index only: near */
	P3_WHY_EMPTY,      /* the portal index has no match entry */
	P3_WHY_BITS,       /* near, mask: match bits and ignore bits of an entry */
	P3_WHY_SOURCE,     /* the bits fit, but the entry accepts another process;
			    * near, mask: pid:nid */
	P3_WHY_NO_MD,      /* the entry has no memory descriptor */
	P3_WHY_THRESHOLD,  /* the descriptor's threshold is used up */
	P3_WHY_MAX_SIZE,   /* less than max_size bytes are left in the descriptor */
	P3_WHY_OPERATION,  /* the descriptor does not allow the operation */
	P3_WHY_OFFSET,     /* the offset, mask, is behind the descriptor's end, near */
	P3_WHY_LENGTH,     /* only near bytes are left, and the descriptor does not
			    * truncate */
	P3_WHY_GONE,       /* the initiator has ended before its request was served */
	/* no ACK, though the put was served */
	P3_WHY_ACK_DISABLED,
	/* dropped by the initiator: an answer that finds no descriptor or no queue */
	P3_WHY_LATE, /* near is 1 if the answer says that the target could not read a
		      * put of which the initiator had made a copy */
	/* never sent by the initiator */
	P3_WHY_ABSENT, /* no running process has the target's id */
	P3_WHY_ENDED,  /* the target has left or died */
	P3_WHY_NO_PID, /* the target's node has no interface with the requested pid */
	/* events */
	P3_WHY_EVENT_LOST, /* queue near was full: it has room for mask events */
	/* served, but not with all of its bytes */
	P3_WHY_TRUNCATED, /* only near bytes were left in the descriptor */
	P3_WHY_END
};

#define P3_WHYS (P3_WHY_END - 1u)

enum p3_case_kind { P3_CASE_PUT = 1, P3_CASE_GET, P3_CASE_GETPUT };

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

/* Return a short name for programs, such as "match_bits". */
const char *p3_why_name(uint32_t why);

/* Write the reason as text, such as "no match entry accepts it: the nearest of 3 has
 * match bits 0x17, 0x10 differs". */
void p3_why_text(uint32_t why, const struct p3_case *c, char *text, size_t size);

/* Write the request as text, such as "a put of 8 bytes to portal 4, match bits 0x7". */
void p3_case_text(const struct p3_case *c, char *text, size_t size);

#endif
