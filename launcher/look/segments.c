/* SPDX-License-Identifier: BSD-3-Clause */
/* The segments that a look has mapped, read-only. */
#include "launcher/look/lookin.h"
#include "shm/seg.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE          ((uint64_t)4096)
#define WHOLE_PAGE(n) (((n) + PAGE - 1) / PAGE * PAGE)

static bool is_sealed(int fd)
{
	int want = F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE;
	int seals = fcntl(fd, F_GET_SEALS);
	return seals >= 0 && (seals & want) == want;
}

static int map_one(int fd, struct p3_look_map *map_out)
{
	struct stat st;
	if (fstat(fd, &st) || !st.st_size || !is_sealed(fd))
		return -EPROTO;
	uint64_t len = (uint64_t)st.st_size;
	void *base = mmap(NULL, len, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	*map_out = (struct p3_look_map){.base = base, .len = len};
	return 0;
}

void p3_look_unmap(struct p3_look_node *n)
{
	for (unsigned k = 0; k < P3_ATTACH_FDS; k++) {
		if (n->seg[k].base)
			munmap((void *)(uintptr_t)n->seg[k].base, n->seg[k].len);
		n->seg[k] = (struct p3_look_map){.base = NULL};
	}
	n->mapped = 0;
	n->remains = false;
}

int p3_look_map(struct p3_look_node *n, const int fds[P3_ATTACH_FDS], unsigned nfds,
	const struct p3_attach_msg *msg)
{
	int rc = 0;
	for (unsigned k = 0; k < nfds && !rc; k++)
		rc = map_one(fds[k], &n->seg[k]);
	if (rc)
		p3_look_unmap(n);
	else if (nfds) /* else the node is gone, or yod could send none now */
		n->mapped = msg->incarnation;
	n->remains = n->mapped && msg->remains;
	return rc;
}

/* Unmap a node's segments if they are those of an earlier incarnation: the mapping
 * would keep the kernel from freeing them. */
void p3_look_unmap_stale(struct p3_look_node *n)
{
	if (n->mapped &&
		(n->mapped != n->msg.incarnation || n->remains != n->msg.remains))
		p3_look_unmap(n);
}

static bool reach(struct p3_look_map *m, uint64_t off, uint64_t len)
{
	uint64_t from = off / PAGE * PAGE, to = WHOLE_PAGE(off + len);
	if (off + len <= m->reached)
		return true;
	if (madvise((void *)(uintptr_t)(m->base + from), to - from, MADV_POPULATE_READ) &&
		errno != EINVAL) /* the kernel is older than Linux 5.14 */
		return false;
	if (from <= m->reached)
		m->reached = to;
	return true;
}

const void *p3_look_bytes(const struct p3_look *look, uint32_t i, enum p3_look_seg which,
	uint64_t off, uint64_t len)
{
	struct p3_look_map *m = &look->node[i].seg[which];
	if (!m->base || off > m->len || len > m->len - off || !reach(m, off, len))
		return NULL;
	return m->base + off;
}

void p3_look_close(struct p3_look *look)
{
	for (uint32_t i = 0; i < look->room; i++)
		p3_look_unmap(&look->node[i]);
	free(look->node);
	free(look->host);
	if (look->sock >= 0)
		close(look->sock);
	p3_domain_forget(&look->domain);
	free(look);
}
