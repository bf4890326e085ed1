/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of launcher/remains: short traces are copied, long ones are kept as they are. */
#include "launcher/rdv/table.h"
#include "shm/layout.h"
#include "shm/trace.h"
#include "support/cases.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NODES = 2, MARK = 0x5a };

/* Make the published segment of a node with a trace of that length: a file with holes. */
static int segment(uint32_t records)
{
	struct p3_layout l = p3_layout_of(NODES);
	struct p3_seg_header head = {
		.magic = P3_SEG_MAGIC, .layout = P3_LAYOUT_WORD, .nnodes = NODES};
	struct p3_trace_header trace = {.magic = P3_TRACE_MAGIC, .records = records};
	char mark = MARK;
	off_t end = (off_t)(l.seg_len + p3_trace_len(records));
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, end), 0);
	assert_int_equal(pwrite(fd, &head, sizeof head, 0), sizeof head);
	assert_int_equal(
		pwrite(fd, &trace, sizeof trace, (off_t)l.seg_len), sizeof trace);
	assert_int_equal(pwrite(fd, &mark, 1, end - 1), 1);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	return fd;
}

static void is_same_trace(int fd, uint32_t records)
{
	char mark = 0;
	off_t end = (off_t)(p3_layout_of(NODES).seg_len + p3_trace_len(records));
	assert_int_equal(p3_trace_nodes(fd), NODES);
	assert_int_equal(pread(fd, &mark, 1, end - 1), 1);
	assert_int_equal(mark, MARK);
}

static ino_t inode(int fd)
{
	struct stat st;
	assert_int_equal(fstat(fd, &st), 0);
	return st.st_ino;
}

CASE(short_trace_is_copied)
{
	int fd = segment(4096), kept = p3_remains_make(fd);
	assert_true(kept >= 0);
	assert_int_not_equal(inode(kept), inode(fd));
	close(fd);
	is_same_trace(kept, 4096);
	close(kept);
}

/* The node says how long its trace is: a copy of 768 MiB would hold up the whole job. */
CASE(long_trace_is_kept_and_not_copied)
{
	int fd = segment(P3_TRACE_MOST), kept = p3_remains_make(fd);
	assert_true(kept >= 0);
	assert_int_not_equal(kept, fd);
	assert_int_equal(inode(kept), inode(fd));
	close(fd);
	is_same_trace(kept, P3_TRACE_MOST);
	close(kept);
}
