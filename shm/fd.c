/* SPDX-License-Identifier: BSD-3-Clause */
#include "shm/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

int p3_fd_above_std(int fd)
{
	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	int above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), saved = errno;
	p3_fd_close(fd);
	errno = saved;
	return above;
}

void p3_fd_signal(int fd)
{
	uint64_t one = 1;
	int saved = errno;
	while (syscall(SYS_write, fd, &one, sizeof one) < 0 && errno == EINTR)
		; /* a signal */
	errno = saved;
}

void p3_fd_close(int fd)
{
	(void)syscall(SYS_close, fd);
}
