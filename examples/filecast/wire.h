/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire - the messages between the ranks of filecast
 *
 * Chunks of the file go from parent to child into a ring of SLOTS chunks, behind one
 * remotely managed descriptor: chunk i is put at offset i % SLOTS * CHUNK and carries i
 * in hdr_data.  Notes, the small messages, are appended behind one another by a locally
 * managed descriptor.  It unlinks itself when the next note might not fit; a second one
 * in the match list goes on meanwhile, and the first is attached again.
 *
 * Portals discards messages that find no room, so none of this may ever be full:
 *	ring	the sender obeys credits, see cast.c
 *	notes	a rank can be sent a bounded number of notes at a time: by each child
 *		SLOTS / 2 + 1 credits, by its parent and rank 0 a header, a final and
 *		two ends, and as rank 0 a report and a failure of each rank.  Each of
 *		the two pads has room for twice that number
 *	queue	has room for all of that, and for the rank's own operations under way
 * The interface counts discarded messages: wire_drops() must be 0 at the end.
 */
#ifndef FILECAST_WIRE_H
#define FILECAST_WIRE_H

#include <portals3.h>

#include <stdbool.h>
#include <stdint.h>

enum { SLOTS = 8, CHUNK = 256 << 10, TEXT = 464, DIGEST = 32, CHILDREN = 32 };

enum note_type {
	NOTE_HEADER,  /* down: value bytes of the file named text will come */
	NOTE_CREDIT,  /* up: chunks below value may be put */
	NOTE_FINAL,   /* down: the last chunk has been sent; digest of all */
	NOTE_REPORT,  /* to rank 0: value bytes written, and their digest */
	NOTE_FAILURE, /* to rank 0: the rank cannot go on; text tells the reason */
	NOTE_END,     /* from rank 0, and down: the job is over; value is its status */
	NOTE_TYPES
};

/* The times of a rank, in seconds. */
struct spent {
	double files, hashing, transfer; /* transfer: the rest */
};

struct note {
	uint32_t type; /* note_type */
	uint32_t rank; /* sender */
	uint64_t value;
	uint8_t digest[DIGEST];
	struct spent spent; /* of a REPORT */
	char text[TEXT];
};

struct pad {
	char *at;
	ptl_size_t length;
};

struct wire {
	ptl_handle_ni_t ni;
	ptl_handle_eq_t eq;
	ptl_handle_md_t ring_out, notes_out; /* free-floating */
	unsigned rank, size;
	unsigned nchildren;
	unsigned child[CHILDREN]; /* ranks, the one with most ranks below it first */
	unsigned parent;
	char *ring; /* SLOTS * CHUNK bytes */
	struct pad pad[2];
	struct note out[NOTE_TYPES];    /* one note of each type can be under way */
	unsigned under_way[NOTE_TYPES]; /* ... to this number of ranks */
};

enum news_kind { NEWS_NONE, NEWS_NOTE, NEWS_CHUNK, NEWS_SENT, NEWS_BROKEN };

struct news {
	enum news_kind kind;
	struct note note; /* of NOTE */
	uint64_t chunk;   /* CHUNK: its number; the chunk is in the ring */
	unsigned slot;    /* SENT: a chunk in this slot has gone to one child */
};

/* Join the job; failures of Portals itself end the program with a line. */
void wire_start(struct wire *w);

/* Make ring, pads and descriptors.  No rank may put before all ranks have returned. */
void wire_open(struct wire *w);

/* Return the next event; NEWS_NONE if there is none and wait is false. */
void wire_next(struct wire *w, bool wait, struct news *news_out);

void wire_put_chunk(struct wire *w, unsigned child, uint64_t chunk, uint32_t length);

/*
 * Send out[type] to one rank, or to all children.  The caller has filled in value,
 * digest and text, and has checked wire_is_free(type).
 */
void wire_tell(struct wire *w, enum note_type type, unsigned rank);
void wire_tell_children(struct wire *w, enum note_type type);
bool wire_is_free(const struct wire *w, enum note_type type);

uint64_t wire_drops(const struct wire *w);

/* Wait for all ranks, then leave the job and end the process. */
_Noreturn void wire_leave(struct wire *w, int status);

#endif
