/* SPDX-License-Identifier: BSD-3-Clause */
/* The launcher's side of nodes that live in this process. */
#include "support/starter.h"

#include "launcher/rdv/rdv.h"
#include "shm/atomics.h"
#include "shm/layout.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { JID = 77, NID_BASE = 10, STEP_MS = 20 };

struct starter {
	struct p3_loop loop;
	struct p3_rdv *rdv;
	pthread_t thread;
	p3_a32 stop;
};

static void must(bool truth, const char *what)
{
	if (truth)
		return;
	perror(what);
	abort();
}

static void say(const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	fputs("rendezvous: ", stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
}

static void *serve(void *arg)
{
	struct starter *s = arg;
	while (!p3_acquire(&s->stop))
		p3_loop_run(&s->loop, p3_now_ms() + STEP_MS);
	return NULL;
}

struct starter *starter_new(uint32_t n, uint32_t cpus, bool apart, int *sock)
{
	struct starter *s = calloc(1, sizeof *s);
	must(s && !p3_loop_open(&s->loop), "loop");
	struct p3_rdv_conf conf = {.loop = &s->loop,
		.size = n,
		.layout = P3_LAYOUT_WORD,
		.nid_base = NID_BASE,
		.jid = JID,
		.cpus = cpus,
		.apart = apart,
		.say = say};
	s->rdv = p3_rdv_create(&conf);
	must(s->rdv, "rendezvous");
	for (uint32_t i = 0; i < n; i++) {
		int pair[2];
		must(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair),
			"sockets of a node");
		must(!p3_rdv_add(s->rdv, i, pair[0], 0), "a socket of the rendezvous");
		sock[i] = pair[1];
	}
	must(!pthread_create(&s->thread, NULL, serve, s), "thread of the rendezvous");
	return s;
}

void starter_end(struct starter *s)
{
	p3_release(&s->stop, 1);
	pthread_join(s->thread, NULL);
	p3_rdv_destroy(s->rdv);
	p3_loop_close(&s->loop);
	free(s);
}
