/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sink - a thread that writes one buffer at a time to a descriptor that may block
 *
 *	owner: fill buf[0..len) --p3_sink_send--> thread: write --done_fd--> owner
 *
 * While a sink is busy the buffer is the thread's, else the owner's.  The owner is yod's
 * main thread (output.c): it calls all functions, and p3_sink_send() only while the sink
 * is not busy.  The state is struct p3_sink.
 */
#ifndef P3_LAUNCHER_SINK_H
#define P3_LAUNCHER_SINK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define P3_SINK_ROOM (128 * 1024)

struct p3_sink {
	int fd;
	int done_fd; /* readable: call p3_sink_collect() */
	bool busy;   /* (owner) */
	bool runs;   /* (owner) */
	int err;     /* (owner) the errno that ended it; later output is dropped */
	uint32_t len;
	char *buf;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool full;      /* (lock) */
	bool quit;      /* (lock) */
	int thread_err; /* (lock) */
};

int p3_sink_open(struct p3_sink *sink, int fd);
int p3_sink_start(struct p3_sink *sink);
void p3_sink_send(struct p3_sink *sink);

/* Take the buffer back, empty, after done_fd was readable. */
void p3_sink_collect(struct p3_sink *sink);

/* Close a sink that is not busy. */
void p3_sink_close(struct p3_sink *sink);

#endif
