/* SPDX-License-Identifier: BSD-3-Clause */
/* The broadcast: flow control, forwarding, and the end of a job. */
#include "cast.h"

#include <stdio.h>
#include <string.h>

static bool is_root(const struct cast *c)
{
	return c->w.rank == 0;
}

static uint32_t length_of(const struct cast *c, uint64_t chunk)
{
	uint64_t left = c->length - chunk * CHUNK;
	return left < CHUNK ? (uint32_t)left : CHUNK;
}

static char *slot_of(const struct cast *c, uint64_t chunk)
{
	return c->w.ring + chunk % SLOTS * CHUNK;
}

/* ---- the end ---- */

/*
 * End the job.  Rank 0 decides and tells every rank; the others pass it on.  So a rank
 * hears of it although one above it in the tree is gone.
 */
static void end(struct cast *c, int status)
{
	if (c->over)
		return;
	c->over = true;
	c->status = status;
	c->w.out[NOTE_END].value = (uint64_t)status;
	if (!is_root(c))
		wire_tell_children(&c->w, NOTE_END);
	for (unsigned i = 1; is_root(c) && i < c->w.size; i++)
		wire_tell(&c->w, NOTE_END, i);
}

/* Fail; c->why tells the reason. */
static void fail(struct cast *c)
{
	if (c->failed || c->over)
		return;
	c->failed = true;
	if (is_root(c)) {
		end(c, CAST_FAILED);
		return;
	}
	memcpy(c->w.out[NOTE_FAILURE].text, c->why, TEXT);
	wire_tell(&c->w, NOTE_FAILURE, 0);
}

static void conclude(struct cast *c)
{
	int status = CAST_OK;
	for (unsigned i = 0; i < c->w.size; i++)
		if (!cast_agrees(c, i))
			status = CAST_DIFFERS;
	end(c, status);
}

static void take_report(struct cast *c, const struct note *n)
{
	struct report *r = &c->report[n->rank];
	if (r->here)
		return;
	*r = (struct report){.here = true, .length = n->value, .spent = n->spent};
	memcpy(r->digest, n->digest, DIGEST);
	if (++c->nreports == c->w.size)
		conclude(c);
}

bool cast_agrees(const struct cast *c, unsigned rank)
{
	const struct report *a = &c->report[0], *b = &c->report[rank];
	return a->length == b->length && !memcmp(a->digest, b->digest, DIGEST);
}

/* Return false if a message to this rank was discarded: the copy would lack it. */
static bool nothing_dropped(struct cast *c)
{
	uint64_t drops = wire_drops(&c->w);
	if (drops)
		snprintf(c->why, TEXT,
			"%llu messages were discarded, expected 0; the credits are "
			"wrong, or "
			"another program puts to this one",
			(unsigned long long)drops);
	return !drops;
}

static void pass_final(struct cast *c, const uint8_t *digest)
{
	c->final = true;
	memcpy(c->w.out[NOTE_FINAL].digest, digest, DIGEST);
	wire_tell_children(&c->w, NOTE_FINAL);
}

static struct spent spent_by(const struct cast *c)
{
	struct spent s = {
		.files = c->source.reading + c->copy.writing, .hashing = c->copy.hashing};
	s.transfer = file_clock() - c->begun - s.files - s.hashing;
	return s;
}

static void report(struct cast *c)
{
	struct note *note = &c->w.out[NOTE_REPORT];
	note->value = c->copy.written;
	note->spent = spent_by(c);
	memcpy(note->digest, c->copy.digest, DIGEST);
	if (!is_root(c)) {
		wire_tell(&c->w, NOTE_REPORT, 0);
		return;
	}
	pass_final(c, c->copy.digest);
	take_report(c, note);
}

/* Finish: the copy is complete, and on all ranks except 0 the sender confirms it. */
static void finish(struct cast *c)
{
	if (c->eaten < c->chunks || c->reported || !(is_root(c) || c->final))
		return;
	c->reported = true;
	if (!copy_close(&c->copy, c->why) || !nothing_dropped(c))
		fail(c);
	else
		report(c);
}

/* ---- news ---- */

static void begin(struct cast *c, const char *name, uint64_t length)
{
	struct note *header = &c->w.out[NOTE_HEADER];
	c->length = length;
	c->chunks = (length + CHUNK - 1) / CHUNK;
	c->known = true;
	header->value = length;
	snprintf(header->text, TEXT, "%s", name);
	wire_tell_children(&c->w, NOTE_HEADER);
}

static void on_credit(struct cast *c, unsigned rank, uint64_t credit)
{
	for (unsigned i = 0; i < c->w.nchildren; i++)
		if (c->w.child[i] == rank && credit > c->credit[i])
			c->credit[i] = credit;
}

static void on_failure(struct cast *c, const struct note *n)
{
	if (!c->failed)
		snprintf(c->why, TEXT, "rank %u: %.400s", n->rank, n->text);
	fail(c);
}

static void on_note(struct cast *c, const struct note *n)
{
	switch ((enum note_type)n->type) {
	case NOTE_HEADER:
		begin(c, n->text, n->value);
		return;
	case NOTE_CREDIT:
		on_credit(c, n->rank, n->value);
		return;
	case NOTE_FINAL:
		pass_final(c, n->digest);
		return;
	case NOTE_REPORT:
		take_report(c, n);
		return;
	case NOTE_FAILURE:
		on_failure(c, n);
		return;
	case NOTE_END:
		end(c, (int)n->value);
		return;
	case NOTE_TYPES:
		return;
	}
}

/* Tell rank 0 of a failure; if that is impossible, rank 0 is gone. */
static void on_broken(struct cast *c)
{
	if (c->failed) {
		end(c, CAST_FAILED);
		return;
	}
	snprintf(c->why, TEXT,
		"a message could not be delivered: a rank is gone; start the job again");
	fail(c);
}

static void on_news(struct cast *c, const struct news *news)
{
	switch (news->kind) {
	case NEWS_NONE:
		return;
	case NEWS_NOTE:
		on_note(c, &news->note);
		return;
	case NEWS_CHUNK:
		c->is_there[news->chunk % SLOTS] = true;
		return;
	case NEWS_SENT:
		c->unsent[news->slot]--;
		return;
	case NEWS_BROKEN:
		on_broken(c);
		return;
	}
}

/* ---- chunks ---- */

static bool may_read(const struct cast *c)
{
	return is_root(c) && c->have < c->chunks && c->have - c->retired < SLOTS;
}

/* Read rank 0's next chunk from the file. */
static void read_one(struct cast *c)
{
	uint32_t length = length_of(c, c->have);
	if (source_read(&c->source, slot_of(c, c->have), length, c->have * CHUNK, c->why))
		c->is_there[c->have % SLOTS] = true;
	else
		fail(c);
}

/* ENDs may overtake each other: a chunk counts when all before it are there. */
static void count_arrived(struct cast *c)
{
	while (c->have < c->chunks && c->is_there[c->have % SLOTS]) {
		c->is_there[c->have % SLOTS] = false;
		c->unsent[c->have % SLOTS] = c->w.nchildren;
		c->have++;
	}
}

static void forward(struct cast *c)
{
	for (unsigned i = 0; i < c->w.nchildren; i++)
		for (; c->sent[i] < c->have && c->sent[i] < c->credit[i]; c->sent[i]++)
			wire_put_chunk(&c->w, c->w.child[i], c->sent[i],
				length_of(c, c->sent[i]));
}

static void eat_one(struct cast *c)
{
	if (c->eaten == c->have)
		return;
	uint32_t length = length_of(c, c->eaten);
	if (!copy_write(&c->copy, slot_of(c, c->eaten), length, c->why)) {
		fail(c);
		return;
	}
	c->eaten++;
	if (c->progress)
		c->progress(c->copy.written, c->length);
}

/* Give the parent credit, in one note for two chunks or more.  A note counts all chunks
 * that may be put, so it also says what earlier notes said. */
static void retire(struct cast *c)
{
	while (c->retired < c->eaten && !c->unsent[c->retired % SLOTS])
		c->retired++;
	if (is_root(c) || c->retired + SLOTS < c->told + 2 ||
		!wire_is_free(&c->w, NOTE_CREDIT))
		return;
	c->told = c->retired + SLOTS;
	c->w.out[NOTE_CREDIT].value = c->told;
	wire_tell(&c->w, NOTE_CREDIT, c->w.parent);
}

static bool may_go_on(const struct cast *c)
{
	return c->known && !c->failed && !c->over;
}

/* Do one step.  Return true if there is more to do at once. */
static bool work(struct cast *c)
{
	if (may_go_on(c) && may_read(c))
		read_one(c);
	if (may_go_on(c))
		count_arrived(c);
	if (may_go_on(c))
		forward(c);
	if (may_go_on(c))
		eat_one(c);
	if (may_go_on(c))
		retire(c);
	if (may_go_on(c))
		finish(c);
	return may_go_on(c) && (c->eaten < c->have || may_read(c));
}

static void start(struct cast *c, const char *file, const char *dir)
{
	c->told = SLOTS;
	for (unsigned i = 0; i < c->w.nchildren; i++)
		c->credit[i] = SLOTS;
	if (is_root(c) && !source_open(&c->source, file, c->why))
		fail(c);
	else if (!copy_open(&c->copy, dir, c->w.rank, file, c->why))
		fail(c);
	else if (is_root(c))
		begin(c, file, c->source.length);
}

void cast_run(struct cast *c, const char *file, const char *dir)
{
	struct news news;
	start(c, file, dir);
	c->begun = file_clock();
	while (!c->over || !wire_is_free(&c->w, NOTE_END)) {
		bool more = work(c);
		if (c->over && wire_is_free(&c->w, NOTE_END))
			break;
		wire_next(&c->w, !more, &news);
		on_news(c, &news);
	}
	if (c->status == CAST_FAILED)
		copy_discard(&c->copy);
}
