/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors of the library among those of the program. */
#include "shm/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HIGH 200

int p3_fd_high(int fd)
{
	if (fd < 0 || fd >= HIGH)
		return fd;
	int high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH);
	if (high < 0 && fd > STDERR_FILENO)
		return fd;
	if (high < 0)
		high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	int saved = errno;
	p3_fd_close(fd);
	errno = saved;
	return high;
}

/*
 * Return the number that the kernel has given an eventfd, plus one, or 0.  Descriptors
 * without a file in a file system share one inode, and this number tells them apart.
 * The calls are no cancellation points.
 */
static uint64_t fd_event_number(int fd)
{
	static const char key[] = "eventfd-id:";
	char path[40], text[400];
	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
	int info = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (info < 0)
		return 0;
	long n = syscall(SYS_read, info, text, sizeof text - 1);
	p3_fd_close(info);
	text[n > 0 ? n : 0] = '\0';
	const char *at = strstr(text, key);
	return at ? strtoull(at + sizeof key - 1, NULL, 10) + 1 : 0;
}

/* A p3_fd_id holds the eventfd's number in its low bits: 0 if the file is no eventfd, or
 * if the number is not known. */
#define FD_EVENTS    24
#define FD_EVENT(id) ((id) & ((UINT64_C(1) << FD_EVENTS) - 1))

p3_fd_id p3_fd_file(int fd)
{
	struct stat st;
	int saved = errno;
	bool is = fd >= 0 && fstat(fd, &st) == 0;
	uint64_t event = is && !(st.st_mode & S_IFMT) ? fd_event_number(fd) : 0;
	errno = saved;
	if (!is)
		return 0;
	/* Inodes of one device differ; the factor keeps devices apart. */
	uint64_t file = st.st_ino + st.st_dev * UINT64_C(0x9e3779b97f4a7c15);
	return ((file << 1 | 1) << FD_EVENTS) | FD_EVENT(event);
}

bool p3_fd_is(int fd, p3_fd_id id)
{
	p3_fd_id now = id ? p3_fd_file(fd) : 0;
	if (!now || now >> FD_EVENTS != id >> FD_EVENTS)
		return false;
	/* The eventfd's number cannot be read after chroot(), nor without a free
	 * descriptor: without it only device and inode count. */
	return !FD_EVENT(now) || !FD_EVENT(id) || now == id;
}

void p3_fd_signal(int fd)
{
	uint64_t one = 1;
	int saved = errno;
	while (syscall(SYS_write, fd, &one, sizeof one) < 0 && errno == EINTR)
		; /* interrupted by a signal */
	errno = saved;
}

void p3_fd_drain(int fd)
{
	uint64_t n;
	int saved = errno;
	while (syscall(SYS_read, fd, &n, sizeof n) < 0 && errno == EINTR)
		; /* interrupted by a signal */
	errno = saved;
}

void p3_fd_close(int fd)
{
#ifdef __SANITIZE_THREAD__
	/* ThreadSanitizer must see that another thread may get the number. */
	(void)close(fd);
#else
	(void)syscall(SYS_close, fd);
#endif
}

void p3_fd_close_own(int fd, p3_fd_id id)
{
	if (p3_fd_is(fd, id))
		p3_fd_close(fd);
}
