/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fileserver - blocks of a file at rank 0, for clients that its access control table
 * admits
 *
 *	yod -sz N fileserver FILE	(N of 3 or more; makes FILE, which must be new)
 *
 * The server maps FILE and describes that memory: clients read by PtlGet and write by
 * PtlPut, while the server's program does nothing.  Requests name an entry of its
 * access control table; entry r admits rank r.  The last rank has none, and the
 * interface discards its requests.
 */
#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PORTAL = 4, UNUSED = 5, BLOCK = 4096, BLOCKS = 64, REFUSED = 3 };

static unsigned char block[BLOCK], *file;
static ptl_handle_eq_t done;
static ptl_handle_md_t mine;

static void map_file(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
	if (fd >= 0 && ftruncate(fd, BLOCKS * BLOCK) == 0)
		file = mmap(
			NULL, BLOCKS * BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (file && file != MAP_FAILED)
		return;
	fprintf(stderr,
		"fileserver: %s: %s; expected a name for a new file; choose another\n",
		name, strerror(errno));
	exit(1);
}

static void admit(ptl_ac_index_t entry, ptl_process_id_t who, ptl_pt_index_t to)
{
	check(PtlACEntry(job.ni, entry, who, PTL_UID_ANY, PTL_JID_ANY, to), "PtlACEntry");
}

/* Restrict entry 0, which initially admits all processes to all portals, to one that
 * nobody uses. */
static void serve(const char *name)
{
	map_file(name);
	admit(0, job_anyone, UNUSED);
	for (unsigned client = 1; client < job.size - 1; client++)
		admit(client, job_id(client), PORTAL);
	ptl_md_t md = {.start = file,
		.length = BLOCKS * BLOCK,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE,
		.eq_handle = PTL_EQ_NONE};
	job_listen(PORTAL, md);
}

/* Return 1 if an answer for a whole block came.  The last rank must give up by itself:
 * the interface refuses its requests without an answer. */
static int answered(ptl_event_kind_t type)
{
	ptl_event_t ev = {.type = PTL_EVENT_SEND_START};
	ptl_time_t patience = job.rank == job.size - 1 ? 100 : PTL_TIME_FOREVER;
	int which;
	while (ev.type != type)
		if (PtlEQPoll(&done, 1, patience, &ev, &which) != PTL_OK)
			return 0;
	return ev.mlength == BLOCK && ev.ni_fail_type == PTL_NI_OK;
}

static int write_block(ptl_ac_index_t entry, unsigned number)
{
	memset(block, (int)number + 1, BLOCK);
	check(PtlPut(mine, PTL_ACK_REQ, job_id(0), PORTAL, entry, 0, number * BLOCK, 0),
		"PtlPut");
	return answered(PTL_EVENT_ACK);
}

static int read_block(ptl_ac_index_t entry, unsigned number)
{
	memset(block, 0, BLOCK);
	check(PtlGet(mine, job_id(0), PORTAL, entry, 0, number * BLOCK), "PtlGet");
	return answered(PTL_EVENT_REPLY_END) && block[BLOCK - 1] == number + 1;
}

static void use_file(void)
{
	for (unsigned i = job.rank - 1; i < BLOCKS; i += job.size - 2)
		expect(write_block(job.rank, i) && read_block(job.rank, i), "a block");
}

/* Try an empty entry, another client's entry, and entry 0. */
static void be_refused(void)
{
	expect(!write_block(job.rank, 0), "a write without an entry");
	expect(!write_block(1, 1), "a write with the entry of rank 1");
	expect(!read_block(0, 0), "a read with entry 0");
}

static ptl_sr_value_t dropped(void)
{
	ptl_sr_value_t n;
	check(PtlNIStatus(job.ni, PTL_SR_DROP_COUNT, &n), "PtlNIStatus");
	return n;
}

static void look_at_file(const char *name, ptl_sr_value_t refused)
{
	for (int i = 0; i < BLOCKS; i++)
		expect(file[i * BLOCK] == i + 1, "the file's bytes");
	expect(refused == REFUSED, "the number of refused requests");
	printf("%u clients wrote and read %d blocks of %s; %d requests of rank %u were "
	       "refused\n",
		job.size - 2, BLOCKS, name, (int)refused, job.size - 1);
}

int main(int argc, char **argv)
{
	job_start();
	job_want(job.size >= 3, "3 ranks or more, as in yod -sz 3 fileserver FILE");
	job_want_arguments(argc == 2, argc,
		"the name of a new file, as in yod -sz 3 fileserver FILE");
	done = job_queue(64);
	mine = job_bind(block, BLOCK, done);
	if (job.rank == 0)
		serve(argv[1]);
	ptl_sr_value_t before = dropped();
	job_meet();
	if (job.rank == job.size - 1)
		be_refused();
	else if (job.rank > 0)
		use_file();
	job_meet();
	while (job.rank == 0 && dropped() - before < REFUSED)
		; /* the barrier says nothing about requests under way */
	if (job.rank == 0)
		look_at_file(argv[1], dropped() - before);
	job_end();
	return 0;
}
