/* SPDX-License-Identifier: BSD-3-Clause */
/* Making the file of sleepers. */
#include "launcher/rdv/sleepers.h"
#include "shm/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static int fill(int fd, uint64_t len)
{
	if (ftruncate(fd, (off_t)len) || fallocate(fd, 0, 0, (off_t)len))
		return -errno;
	return fcntl(fd, F_ADD_SEALS, SEALS) ? -errno : 0;
}

int p3_sleepers_make(uint32_t nnodes)
{
	struct rlimit most;
	uint64_t len = p3_sleepers_len(nnodes);
	/* Over the limit the kernel would send SIGXFSZ, which ends yod. */
	if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < len)
		return -EFBIG;
	int fd = memfd_create("p3-sleepers", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	int rc = fill(fd, len);
	if (!rc)
		return fd;
	close(fd);
	return rc;
}
