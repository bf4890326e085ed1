/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes that wait, and frames between yod, its agents and ptlstat. */
#ifndef P3_LAUNCHER_FRAMES_H
#define P3_LAUNCHER_FRAMES_H

#include "launcher/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * backlog - bytes that wait, in the order in which they came
 *
 *	p3_backlog_add --> [ taken | waiting | free ] --p3_backlog_bytes, _take-->
 *
 * Bytes that wait move only when they are no more than those taken since they last moved,
 * or when the memory doubles.  So the cost of a byte does not grow with the number of
 * those that wait.  The caller bounds that number.  A backlog that has had room for n
 * bytes at first needs no more memory while n wait at most.  A zeroed struct is an empty
 * backlog; one thread at a time uses it.
 */

struct p3_backlog {
	char *at;
	size_t begin, end, room;
};

static inline size_t p3_backlog_len(const struct p3_backlog *b)
{
	return b->end - b->begin;
}

/* Return the bytes that wait; they stay until the next p3_backlog_room(). */
static inline const char *p3_backlog_bytes(const struct p3_backlog *b)
{
	return b->at + b->begin;
}

/* Return memory for n > 0 more bytes, of which the caller adds those that it has written
 * to b->end; or NULL if out of memory. */
static inline char *p3_backlog_room(struct p3_backlog *b, size_t n)
{
	size_t len = p3_backlog_len(b), room = 2 * (len + n);
	char *at = b->at;
	if (b->room - b->end >= n)
		return b->at + b->end;
	if (b->begin < len || b->room - len < n)
		at = malloc(room);
	else
		room = b->room;
	if (!at)
		return NULL;
	if (len)
		memmove(at, b->at + b->begin, len);
	if (at != b->at)
		free(b->at);
	*b = (struct p3_backlog){at, 0, len, room};
	return at + len;
}

/* Add n bytes.  Return false if out of memory. */
static inline bool p3_backlog_add(struct p3_backlog *b, const void *bytes, size_t n)
{
	char *to = n ? p3_backlog_room(b, n) : NULL;
	if (to)
		memcpy(to, bytes, n);
	b->end += to ? n : 0;
	return to || !n;
}

/* Remove the first n bytes of those that wait. */
static inline void p3_backlog_take(struct p3_backlog *b, size_t n)
{
	b->begin += n;
	if (b->begin == b->end)
		b->begin = b->end = 0;
}

static inline void p3_backlog_free(struct p3_backlog *b)
{
	free(b->at);
	*b = (struct p3_backlog){.at = NULL};
}

/* Read n bytes at most from a descriptor that does not block.  Return their number, or
 * -EPIPE at the end of file or of the connection, or another -errno. */
ssize_t p3_backlog_read(struct p3_backlog *b, int fd, size_t n);
/* Write to a descriptor that does not block.  Return the number of bytes that it has
 * taken, or -errno. */
ssize_t p3_backlog_write(struct p3_backlog *b, int fd);

/*
 * beat - keepalives on the connection between yod and an agent
 *
 * When a host is switched off or its network is cut, its connections stay open.  So both
 * ends send a frame now and then (P3_FRAME_BEAT), and treat the other end as lost if no
 * frame has come for PTL3_FAR_TIMEOUT, unless that is "never".  A process that was itself
 * stopped would see such a silence, too.  So it checks twice, and reads the frames that
 * have come between the two checks.
 */

struct p3_beat {
	int64_t timeout_ms; /* 0: never, or not begun */
	int64_t send_at;
	int64_t lost_at; /* time of the next check for silence */
	bool late;       /* the last check found silence */
};

/*
 * frames - the connection between yod and the agent on another host
 *
 *	yod  --stdin of the remote shell-->   yod --agent
 *	     <--stdout of the remote shell--
 *
 *	yod	ORDER			GO	SIGNAL, END, KILL, INPUT ...
 *	agent	HELLO, then READY or REFUSED	STARTED, OUTPUT, ENDED ...  DONE
 *
 * A frame is a header and bytes.  The first word of a header is the same in all
 * versions, so each side knows a peer of another version.  Both ends run one build on
 * machines of one kind (HELLO has the layout word), so numbers are the machine's.
 *
 * Neither side blocks on sending: frames wait in memory.  That memory is bounded, since
 * output, input and traces, the only frames of any number, are sent against room that the
 * receiver has granted: P3_STREAM_ROOM bytes of each stream at first, and with each ROOM
 * as many as have been handed on.  So a keepalive waits behind few bytes of a trace.  One
 * thread calls these functions; the state is struct p3_frames.
 */

#define P3_FRAMES_MAGIC 0x33504604u   /* the low byte is the version */
#define P3_STREAM_ROOM  (64u * 1024u) /* bytes of a stream under way at most */
#define P3_FRAMES_TRACE 2             /* beside 0, stdout, and 1, stderr */
#define P3_FRAMES_LONG  (64u << 20)   /* bytes of a frame at most */

enum p3_frame_op {
	P3_FRAME_ORDER = 1, /* yod: bytes: an order */
	P3_FRAME_GO,        /* yod */
	P3_FRAME_SIGNAL,    /* yod: value: a signal that yod got */
	P3_FRAME_END,       /* yod: end the nodes as after a failure of one */
	P3_FRAME_KILL,      /* yod: kill the nodes */
	P3_FRAME_INPUT,     /* yod: bytes for rank 0; none: the end of its input */
	P3_FRAME_NO_OUTPUT, /* yod: node, value: the stream has no reader any more */
	P3_FRAME_RELEASED,  /* yod: number: the barrier; value: 0, or EPIPE and node */
	P3_FRAME_CARDS,     /* yod: bytes: the cards of all ranks */
	P3_FRAME_ASK,       /* yod: number: the question's; value: p3_frame_ask bits;
			     * node: ms that rates are measured over */
	P3_FRAME_BEAT,      /* both: the sender is there (p3_beat) */
	P3_FRAME_ROOM,      /* both: number: bytes; yod: node, value: their stream, or
			     * P3_FRAMES_TRACE */
	P3_FRAME_GONE,      /* both: node: a rank that will never come to a barrier */
	P3_FRAME_HELLO,     /* agent: number: its layout word */
	P3_FRAME_SAY,       /* agent: bytes: a line for users */
	P3_FRAME_REFUSED,   /* agent: value: the exit status of a job that cannot start */
	P3_FRAME_READY,     /* agent */
	P3_FRAME_STARTED,   /* agent: node, value: its process */
	P3_FRAME_OUTPUT,    /* agent: node, value: 0 stdout, 1 stderr; bytes */
	P3_FRAME_OUTPUT_END, /* agent: node, value */
	P3_FRAME_IDLE,       /* agent: node, value: it has written no more for a while */
	P3_FRAME_NO_INPUT,   /* agent: rank 0 reads no more */
	P3_FRAME_ENDED,      /* agent: node, value: its wait status */
	P3_FRAME_BARRIER,    /* agent: number: all ranks here have come to this barrier;
			      * node: P3_JOB_NO_RANK, or a rank that has ended since, so
			      * that they have not */
	P3_FRAME_BROKEN,     /* agent: node: a process that has ended in the barrier */
	P3_FRAME_CARD,       /* agent: node; bytes: its card */
	P3_FRAME_STATS,      /* agent: node; bytes: its statistics (yod.h) */
	P3_FRAME_TRACE,      /* agent: bytes for the trace file of its host */
	P3_FRAME_REPORT,     /* agent: number; value: exit status; bytes: the report */
	P3_FRAME_DONE,       /* agent: all is over, and nothing is left */
	P3_FRAME_OPS
};

/* Subject and form of a report of ptlstat. */
enum p3_frame_ask {
	P3_ASK_WHY = 1, /* else rates */
	P3_ASK_CONF = 2,
	P3_ASK_JSON = 4,
	P3_ASK_BRIEF = 8,
	P3_ASK_ANY = 16 /* of a job without Portals, too */
};

#define P3_QUERY_MS      10000 /* time for all answers, besides that of the rates */
#define P3_QUERY_RATE_MS 60000 /* that rates are measured over, at most */

/* Return the reason why a REPORT with this errno lacks a report. */
static inline const char *p3_query_why(int status)
{
	return status == EPIPE      ? "its agent has ended"
	       : status == ENOTCONN ? "its ranks have not started yet"
				    : strerror(status);
}

struct p3_frame {
	uint32_t magic; /* set by p3_frames_send() */
	uint32_t op;
	uint32_t node;
	int32_t value;
	uint64_t number;
	uint64_t len; /* bytes that follow */
};

_Static_assert(sizeof(struct p3_frame) == 32, "the header is a format");

struct p3_frames {
	/* not owned, and non-blocking after p3_frames_open(); -1: closed */
	int in, out;
	struct p3_backlog got; /* behind p3_frames_next(): a part of a frame */
	struct p3_backlog owed;
	int error; /* -errno: no more can be sent */
	struct p3_beat beat;
	struct p3_loop *loop; /* NULL before p3_frames_attach() */
	struct p3_loop_fd in_fd, out_fd;
	struct p3_loop_timer soon, turn; /* calls of `on`; of the beat */
	bool error_told;
	void (*on)(void *arg, int rc);
	void *arg;
};

/* Use these two descriptors.  Return 0 or -errno. */
int p3_frames_open(struct p3_frames *c, int in, int out);
/* From now on let a loop read, send, and see to the beat.  It calls `on`, which takes
 * the frames that have come, with
 *
 *	0		more bytes have come
 *	-EPIPE		the other end has closed the connection, or it is broken
 *	-ECONNRESET	the other end takes no frames any more
 *	-ETIMEDOUT	it is silent (beat)
 *	-errno		no more can be read, or sent
 *
 * and which may close the connection.  Return 0 or -errno. */
int p3_frames_attach(struct p3_frames *c, struct p3_loop *loop,
	void (*on)(void *arg, int rc), void *arg);
/* Begin to send keepalives, and to expect them. */
void p3_frames_begin_beat(struct p3_frames *c);
void p3_frames_close(struct p3_frames *c);
static inline bool p3_frames_are_open(const struct p3_frames *c)
{
	return c->out >= 0;
}
/* Queue a frame and send what the other side takes at once.  An error shows in
 * p3_frames_flush(), or in a later call of `on`.  A closed connection takes nothing. */
void p3_frames_send(struct p3_frames *c, struct p3_frame f, const void *bytes);
/* The same for a frame that has only these. */
static inline void p3_frames_tell(
	struct p3_frames *c, enum p3_frame_op op, uint32_t node, int32_t value)
{
	struct p3_frame f = {.op = op, .node = node, .value = value};
	p3_frames_send(c, f, NULL);
}
/* Send queued frames.  Return 0, also if some are left, or -errno: the connection is
 * broken. */
int p3_frames_flush(struct p3_frames *c);
/* Read what has come.  Return 0, or -EAGAIN if nothing has, -EPIPE at the end of file, or
 * another -errno. */
int p3_frames_fill(struct p3_frames *c);
/* Return 0 and the next whole frame but those of the beat, whose bytes stay valid until
 * more are read; or -EAGAIN; or -EPROTONOSUPPORT with another version in f->magic; or
 * -EPROTO: the bytes are no frame (p3_frames_text()). */
int p3_frames_next(struct p3_frames *c, struct p3_frame *f_out, const char **bytes_out);
/* Copy the first line of the bytes that have come, for messages.  Bytes that are not
 * printable become \012 and the like, as does a newline before all others. */
void p3_frames_text(const struct p3_frames *c, char *text, size_t size);
/* Wait for the next frame without a loop; beats: send keepalives meanwhile.  Return as
 * p3_frames_next(), or -ECONNRESET: the other end takes no frames any more, or
 * -ETIMEDOUT: it is silent, or this time has come, or -EPIPE, or another -errno. */
int p3_frames_await(struct p3_frames *c, int64_t until, bool beats,
	struct p3_frame *f_out, const char **bytes_out);

#endif
