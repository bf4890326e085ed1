/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * frame - datagrams over a medium that may lose, change, double and reorder them, and
 * go-back-n, which makes of them a stream that does not
 *
 * Each end of a pair has a struct p3_gbn for both directions:
 *
 *	begin, fill, commit	a frame joins the queue of those not acknowledged, with
 *				the next sequence number; none when the queue is full
 *	send			puts what was not put yet, goes back to the first one that
 *				is not acknowledged when that has been so for too long, or
 *				when the other end asks for it; then an acknowledgement
 *				if one is owed that no frame carried
 *	take			a frame from the medium: false unless it is intact and the
 *				very next one
 *
 * A frame carries its number, the number of the first frame that its sender has not
 * received (cumulative acknowledgement), and a CRC32C of all of it but the word that
 * belongs to the medium.  The sum begins with a key of the two lives of the pair: what
 * was left over from another life is as good as damaged.  Numbers are compared by
 * difference, and start so that they wrap early in every run.
 *
 * Knows no firmware and no lanes; one thread at a time.
 */
#ifndef P3_NIC_FRAME_H
#define P3_NIC_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#define P3_FRAME_CELLS  32u /* of data at most */
#define P3_FRAME_WINDOW 32u /* frames not acknowledged: a power of two */
#define P3_FRAME_START  0xfffffff0u
#define P3_RESEND_NS    1000000u  /* without an acknowledgement for so long, */
#define P3_RESEND_MOST  16000000u /* each time for twice as long, up to this */

enum p3_frame_kind {
	P3_FRAME_ACK = 1, /* no number, no data */
	P3_FRAME_STORE,   /* bytes of the sender's words or windows */
	P3_FRAME_REQUEST, /* one message of a ring */
	P3_FRAME_RESPONSE
};

struct p3_frame {
	uint64_t medium; /* not part of the frame */
	uint32_t seq;
	uint32_t ack; /* all before this one have been received */
	uint32_t crc;
	uint8_t kind;   /* p3_frame_kind */
	uint8_t again;  /* later ones have been received, this one not */
	uint16_t cells; /* of data */
	uint64_t at;    /* STORE: where; a message: its word 0 */
	uint64_t len;   /* STORE: bytes */
	uint64_t pad[3];
	unsigned char data[64 * P3_FRAME_CELLS];
};

/* Bytes of a frame as it travels. */
static inline uint32_t p3_frame_len(const struct p3_frame *f)
{
	return 64 + 64u * f->cells;
}

struct p3_gbn {
	struct p3_frame *queue; /* P3_FRAME_WINDOW of them */
	uint32_t base;          /* first one not acknowledged */
	uint32_t sent;          /* first one not put since we went back */
	uint32_t next;
	uint32_t expected; /* of the other end */
	uint32_t key_out, key_in;
	uint64_t since;   /* the last progress */
	uint64_t wait_ns; /* go back when it was so long ago */
	bool owes_ack;
	bool owes_again;
	bool asked; /* for the missing frame, already */
	/* for people and tests */
	uint64_t resent, bad_sums, doubles, gaps;
};

/* Keys: any number that belongs to this direction of this pair of lives. */
void p3_gbn_init(
	struct p3_gbn *g, struct p3_frame *queue, uint32_t key_out, uint32_t key_in);

/* The next frame to be filled (kind, cells, at, len, data); NULL: the queue is full. */
struct p3_frame *p3_gbn_begin(struct p3_gbn *g);
void p3_gbn_commit(struct p3_gbn *g, uint64_t now);

/* Puts len bytes on the medium; false: no room there now. */
typedef bool p3_frame_put(void *arg, const struct p3_frame *f, uint32_t len);

void p3_gbn_send(struct p3_gbn *g, uint64_t now, p3_frame_put *put, void *arg);

/* f is a private copy, len what the medium says of its length.  True: it is the next
 * one; what it carries is to be used now. */
bool p3_gbn_take(struct p3_gbn *g, const struct p3_frame *f, uint32_t len, uint64_t now);

/* Is anything not acknowledged? */
static inline bool p3_gbn_waits(const struct p3_gbn *g)
{
	return g->base != g->next;
}

/* Have all frames before this number been acknowledged? */
static inline bool p3_gbn_is_past(const struct p3_gbn *g, uint32_t seq)
{
	return (int32_t)(g->base - seq) >= 0;
}

#endif
