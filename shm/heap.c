/* SPDX-License-Identifier: BSD-3-Clause */
/* Creation of shared heaps, and the functions that ask about one. */
#include "shm/heapin.h"
#include "shm/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FD_MIN     200 /* above the numbers that programs give their files */
#define FREE_PAGES "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages"

/* ---- creation ---- */

static uint64_t free_hugepages(void)
{
	unsigned long n = 0;
	FILE *f = fopen(FREE_PAGES, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%lu", &n) != 1)
		n = 0;
	fclose(f);
	return n;
}

static void move_up(struct p3_seg *seg)
{
	int fd = fcntl(seg->fd, F_DUPFD_CLOEXEC, FD_MIN);
	if (fd < 0)
		return;
	close(seg->fd);
	seg->fd = fd;
}

static int make_segment(uint64_t len, enum p3_huge_policy huge, struct p3_seg *seg)
{
	int fell_back, rc = 0;
	if (huge == P3_HUGE_AUTO && free_hugepages() < len / P3_HUGE)
		huge = P3_HUGE_OFF;
	rc = p3_seg_create("p3-heap", len, 0, huge, seg, &fell_back);
	if (rc)
		return rc;
	p3_seg_bind_here(seg);
	(void)madvise(seg->base, seg->len, MADV_HUGEPAGE);
	rc = p3_seg_seal(seg);
	if (rc)
		p3_seg_destroy(seg);
	else
		move_up(seg);
	return rc;
}

static int remember_file(struct p3_heap *h)
{
	struct stat st;
	if (fstat(h->seg.fd, &st) != 0)
		return -errno;
	h->dev = st.st_dev;
	h->ino = st.st_ino;
	return 0;
}

static struct p3_heap *take_kept(uint64_t len)
{
	for (struct p3_heap *h = p3_acquire(&p3_heaps); h; h = h->next) /* HEAP.1 */
		if (h->kept && !p3_get(&h->mine) && h->seg.len == len &&
			p3_heap_is_ours(h)) {
			h->kept = false;
			return h;
		}
	return NULL;
}

static int make_new(uint64_t len, enum p3_huge_policy huge, struct p3_heap **heap_out)
{
	struct p3_heap *h = calloc(1, sizeof *h);
	int rc =
		h && p3_heap_watches_forks() ? make_segment(len, huge, &h->seg) : -ENOMEM;
	if (!rc)
		rc = remember_file(h);
	if (rc) {
		free(h);
		return rc;
	}
	h->next = p3_get(&p3_heaps);
	p3_release(&p3_heaps, h); /* HEAP.1 */
	*heap_out = h;
	return 0;
}

int p3_heap_create(uint64_t len, enum p3_huge_policy huge, struct p3_heap **heap_out)
{
	int rc = 0;
	if (!len || len > P3_HEAP_MOST)
		return -EINVAL;
	len = p3_round_up(len, P3_HUGE);
	pthread_mutex_lock(&p3_heaps_lock);
	struct p3_heap *h = take_kept(len);
	if (!h)
		rc = make_new(len, huge, &h);
	pthread_mutex_unlock(&p3_heaps_lock);
	if (!rc)
		*heap_out = h;
	return rc;
}

void p3_heap_keep(struct p3_heap *heap)
{
	pthread_mutex_lock(&p3_heaps_lock);
	heap->kept = true;
	pthread_mutex_unlock(&p3_heaps_lock);
}

void *p3_heap_base(const struct p3_heap *h)
{
	return h->seg.base;
}

uint64_t p3_heap_len(const struct p3_heap *h)
{
	return h->seg.len;
}

int p3_heap_fd(const struct p3_heap *h)
{
	return p3_get(&h->mine) ? -1 : h->seg.fd; /* HEAP.2 */
}

int p3_heap_offer(const struct p3_heap *h)
{
	int fd = p3_heap_fd(h);
	return fd >= 0 && p3_heap_is_ours(h) ? fd : -1;
}
