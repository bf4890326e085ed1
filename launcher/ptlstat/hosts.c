/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports of all hosts of a job, which its yod gets from its agents. */
#include "launcher/ptlstat/ptlstat.h"
#include "launcher/yod/frames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A report: the name of the host, with its zero byte, and the text. */
struct report {
	char *bytes;
	size_t len;
	int status;
};

struct reports {
	struct report *of; /* indexed by host */
	uint32_t n, got;   /* all, once the first has come; those that have come */
};

static int take(struct reports *r, const struct p3_frame *f, const char *bytes)
{
	if (!r->of && f->number <= P3_MAX_NODES + 1) {
		r->n = (uint32_t)f->number;
		r->of = calloc(r->n + 1, sizeof *r->of);
	}
	if (f->op != P3_FRAME_REPORT || !r->of || f->node >= r->n || !f->len ||
		!memchr(bytes, '\0', f->len) || r->of[f->node].bytes)
		return -EPROTO;
	struct report *o = &r->of[f->node];
	o->bytes = malloc(f->len);
	if (!o->bytes)
		return -ENOMEM;
	memcpy(o->bytes, bytes, f->len);
	o->len = f->len;
	o->status = f->value;
	r->got++;
	return 0;
}

static int collect(struct p3_frames *c, struct reports *r, int ms)
{
	struct p3_frame f;
	const char *bytes;
	do {
		int rc = p3_frames_next(c, &f, &bytes);
		if (!rc)
			rc = take(r, &f, bytes);
		else if (rc == -EAGAIN && (p3_frames_flush(c) || !p3_frames_wait(c, ms)))
			rc = -EPIPE;
		else if (rc == -EAGAIN && (rc = p3_frames_fill(c)) == -EAGAIN)
			rc = -ETIMEDOUT;
		if (rc)
			return rc;
	} while (!r->n || r->got < r->n);
	return 0;
}

static void print(const struct report *r, bool plain)
{
	const char *text = r->bytes + strlen(r->bytes) + 1;
	size_t len = r->len - strlen(r->bytes) - 1;
	if (!plain && *r->bytes)
		printf("host %s:\n", r->bytes);
	if (r->status)
		fprintf(stderr, "ptlstat: host %s: no report: %s\n", r->bytes,
			r->status == EPIPE ? "its agent has ended" : strerror(r->status));
	fwrite(text, 1, len, stdout);
	fflush(stdout);
}

static void drop(struct reports *r)
{
	for (uint32_t i = 0; r->of && i < r->n; i++)
		free(r->of[i].bytes);
	free(r->of);
}

int ptl_hosts(uint32_t job, int bits, double interval)
{
	struct p3_frames conn;
	struct reports r = {0};
	int sock = p3_look_connect_hosts(job);
	if (sock < 0)
		return sock;
	uint32_t ms = (uint32_t)(interval * 1000);
	int rc = p3_frames_open(&conn, sock, sock);
	if (!rc) {
		struct p3_frame ask = {.op = P3_FRAME_ASK, .value = bits, .node = ms};
		p3_frames_send(&conn, ask, NULL);
		rc = collect(&conn, &r, (int)ms + P3_QUERY_MS);
		p3_frames_close(&conn);
	}
	close(sock);
	for (uint32_t i = 0; !rc && i < r.n; i++)
		print(&r.of[i], bits & P3_ASK_JSON);
	drop(&r);
	return rc;
}
