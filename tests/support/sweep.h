/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sweep - a program that closes all descriptors, as daemons do, and gives their numbers
 * to pipes of its own, with a word in each.  The library must leave the pipes alone.
 */
#ifndef P3_TESTS_SWEEP_H
#define P3_TESTS_SWEEP_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SWEEP_PIPES = 300, SWEEP_LEAST = 150, SWEEP_WORD = 8 };

struct sweep {
	int pipe[SWEEP_PIPES][2];
	unsigned n;
};

/* Close the descriptors and open the pipes.  Return false if the kernel cannot close them
 * all at once (close_range). */
static inline bool sweep(struct sweep *s)
{
	if (syscall(SYS_close_range, 3u, ~0u, 0u) != 0)
		return false;
	while (s->n < SWEEP_PIPES && pipe(s->pipe[s->n]) == 0)
		if (write(s->pipe[s->n++][1], "program", SWEEP_WORD) != SWEEP_WORD)
			return false;
	return s->n > SWEEP_LEAST;
}

/* Return the highest descriptor whose file is of a kind, such as "[eventfd]", or -1. */
static inline int sweep_find(const char *kind)
{
	char path[40], file[80];
	for (int fd = 1023; fd > STDERR_FILENO; fd--) {
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		ssize_t n = readlink(path, file, sizeof file - 1);
		file[n > 0 ? n : 0] = '\0';
		if (strstr(file, kind))
			return fd;
	}
	return -1;
}

/* Give the number of a descriptor of this kind to a pipe. */
static inline bool sweep_one(struct sweep *s, const char *kind)
{
	int fd = sweep_find(kind), ends[2];
	if (fd < 0 || pipe(ends) != 0 || dup2(ends[0], fd) != fd)
		return false;
	s->pipe[s->n][0] = fd;
	s->pipe[s->n++][1] = ends[1];
	return write(ends[1], "program", SWEEP_WORD) == SWEEP_WORD;
}

/* Return the number of a pipe that is not as the program has left it, or -1. */
static inline int sweep_touched(const struct sweep *s)
{
	for (unsigned i = 0; i < s->n; i++) {
		int n = -1;
		if (ioctl(s->pipe[i][0], FIONREAD, &n) != 0 || n != SWEEP_WORD ||
			fcntl(s->pipe[i][1], F_GETFD) < 0)
			return (int)i;
	}
	return -1;
}

#endif
