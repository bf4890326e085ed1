/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that writes to a descriptor that may block. */
#include "launcher/yod/sink.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

int p3_sink_open(struct p3_sink *sink, int fd)
{
	*sink = (struct p3_sink){.fd = fd, .done_fd = -1};
	pthread_mutex_init(&sink->lock, NULL);
	pthread_cond_init(&sink->wake, NULL);
	sink->buf = malloc(P3_SINK_ROOM);
	if (!sink->buf)
		return -ENOMEM;
	sink->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return sink->done_fd < 0 ? -errno : 0;
}

/* Wait until the descriptor has room: another process that shares it may have made it
 * non-blocking. */
static int wait_for_room(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	return poll(&p, 1, -1) < 0 && errno != EINTR ? errno : 0;
}

static int write_some(int fd, const char **at, uint32_t *len)
{
	ssize_t n = write(fd, *at, *len);
	if (n >= 0) {
		*at += n;
		*len -= (uint32_t)n;
		return 0;
	}
	if (errno == EAGAIN)
		return wait_for_room(fd);
	return errno == EINTR ? 0 : errno;
}

static int write_all(struct p3_sink *sink)
{
	const char *at = sink->buf;
	uint32_t len = sink->len;
	int err = 0;
	while (len && !err)
		err = write_some(sink->fd, &at, &len);
	return err;
}

static bool await_work(struct p3_sink *sink)
{
	pthread_mutex_lock(&sink->lock);
	while (!sink->full && !sink->quit)
		pthread_cond_wait(&sink->wake, &sink->lock);
	bool work = sink->full;
	pthread_mutex_unlock(&sink->lock);
	return work;
}

static void report(struct p3_sink *sink, int err)
{
	uint64_t one = 1;
	pthread_mutex_lock(&sink->lock);
	sink->full = false;
	sink->thread_err = err;
	pthread_mutex_unlock(&sink->lock);
	ssize_t n = write(sink->done_fd, &one, sizeof one);
	(void)n;
}

static void *run(void *arg)
{
	struct p3_sink *sink = arg;
	while (await_work(sink))
		report(sink, write_all(sink));
	return NULL;
}

int p3_sink_start(struct p3_sink *sink)
{
	int rc = pthread_create(&sink->thread, NULL, run, sink);
	sink->runs = rc == 0;
	return -rc;
}

void p3_sink_send(struct p3_sink *sink)
{
	sink->busy = true;
	pthread_mutex_lock(&sink->lock);
	sink->full = true;
	pthread_cond_signal(&sink->wake);
	pthread_mutex_unlock(&sink->lock);
}

void p3_sink_collect(struct p3_sink *sink)
{
	uint64_t n;
	if (read(sink->done_fd, &n, sizeof n) < 0)
		return;
	pthread_mutex_lock(&sink->lock);
	sink->err = sink->thread_err;
	pthread_mutex_unlock(&sink->lock);
	sink->len = 0;
	sink->busy = false;
}

void p3_sink_close(struct p3_sink *sink)
{
	if (sink->runs) {
		pthread_mutex_lock(&sink->lock);
		sink->quit = true;
		pthread_cond_signal(&sink->wake);
		pthread_mutex_unlock(&sink->lock);
		pthread_join(sink->thread, NULL);
	}
	if (sink->done_fd >= 0)
		close(sink->done_fd);
	free(sink->buf);
}
