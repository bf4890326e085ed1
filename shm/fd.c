/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors of the library among those of the program. */
#include "shm/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
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

p3_fd_id p3_fd_file(int fd)
{
	struct stat st;
	int saved = errno;
	bool is = fd >= 0 && fstat(fd, &st) == 0;
	errno = saved;
	/* Inodes of one device differ; the factor keeps devices apart. */
	return is ? (st.st_ino + st.st_dev * UINT64_C(0x9e3779b97f4a7c15)) : 0;
}

bool p3_fd_is(int fd, p3_fd_id id)
{
	return id && p3_fd_file(fd) == id;
}

void p3_fd_signal(int fd)
{
	uint64_t one = 1;
	int saved = errno;
	while (syscall(SYS_write, fd, &one, sizeof one) < 0 && errno == EINTR)
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
