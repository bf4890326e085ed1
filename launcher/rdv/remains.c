/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of ended nodes' counters and traces. */
#include "launcher/rdv/remains.h"
#include "shm/seg.h"
#include "shm/layout.h"
#include "shm/trace.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE 16384u
/* The longest trace that is copied.  A longer copy would hold up yod's other work: 8
 * MiB take about 5 ms. */
#define COPIES_MOST (UINT64_C(8) << 20)
#define SEALS       (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)

/* Copy len bytes, or fewer if the file ends before.  Read the file instead of mapping it:
 * a hole in the file then raises no signal. */
static int copy(int to, int from, uint64_t off, uint64_t len)
{
	char piece[PIECE];
	while (len) {
		ssize_t n = pread(from, piece, len < PIECE ? len : PIECE, (off_t)off);
		if (n > 0)
			n = pwrite(to, piece, (size_t)n, (off_t)off);
		if (n <= 0)
			return n ? -errno : 0;
		off += (uint64_t)n;
		len -= (uint64_t)n;
	}
	return 0;
}

/* Return the length of the trace as its owner tells it, if the file has room for it;
 * else 0. */
static uint64_t trace_len(int published, uint64_t off, uint64_t size)
{
	struct p3_trace_header h;
	if (size <= off || pread(published, &h, sizeof h, (off_t)off) != sizeof h)
		return 0;
	if (h.magic != P3_TRACE_MAGIC || h.records > P3_TRACE_MOST)
		return 0;
	uint64_t len = p3_trace_len(h.records);
	return len <= size - off ? len : 0;
}

static int fill(
	int to, int published, const struct p3_layout *l, uint64_t trace, uint64_t size)
{
	struct rlimit most;
	/* Over the limit the kernel would send SIGXFSZ, which ends yod. */
	if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < size)
		return -EFBIG;
	int rc = ftruncate(to, (off_t)size) ? -errno : 0;
	if (!rc)
		rc = copy(to, published, 0, l->parts_off);
	if (!rc)
		rc = copy(to, published, l->seg_len, trace);
	return !rc && fcntl(to, F_ADD_SEALS, SEALS) ? -errno : rc;
}

int p3_remains_make(int published)
{
	struct stat st;
	uint32_t nnodes = p3_trace_nodes(published);
	if (!nnodes)
		return -EPROTO;
	if (fstat(published, &st))
		return -errno;
	struct p3_layout l = p3_layout_of(nnodes);
	uint64_t size = (uint64_t)st.st_size;
	uint64_t trace = trace_len(published, l.seg_len, size);
	int fd = trace > COPIES_MOST
			 ? fcntl(published, F_DUPFD_CLOEXEC, 0)
			 : memfd_create("p3-remains", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	int rc = trace > COPIES_MOST ? 0 : fill(fd, published, &l, trace, size);
	if (!rc)
		return fd;
	close(fd);
	return rc;
}
