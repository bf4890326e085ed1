/* SPDX-License-Identifier: BSD-3-Clause */
#include "shm/seg.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int p3_fd_above_std(int fd)
{
	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	int above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), saved = errno;
	close(fd);
	errno = saved;
	return above;
}
