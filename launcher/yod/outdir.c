/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of --output-dir. */
#include "launcher/yod/outdir.h"
#include "launcher/yod/say.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_LEN 24

static const char *name_of(char name[NAME_LEN], uint32_t rank, int which)
{
	snprintf(name, NAME_LEN, "rank%u.%s", rank, which ? "err" : "out");
	return name;
}

static int open_file(int dir_fd, uint32_t rank, int which, int more)
{
	char name[NAME_LEN];
	int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | more;
	int fd = openat(dir_fd, name_of(name, rank, which), flags, 0666);
	return fd < 0 ? -errno : fd;
}

int p3_outdir_file(int dir_fd, uint32_t rank, int which)
{
	return open_file(dir_fd, rank, which, 0);
}

void p3_outdir_say_lost(const char *dir, uint32_t rank, int which, int err)
{
	char name[NAME_LEN];
	p3_say("--output-dir: cannot write %s/%s: %s; bytes that do not fit are "
	       "lost, and the rank goes on; see df",
		dir, name_of(name, rank, which), strerror(err));
}

/* Empty the files now, so that errors appear before anything runs. */
static int empty_files(int dir_fd, const char *dir, uint32_t rank)
{
	char name[NAME_LEN];
	for (int which = 0; which < 2; which++) {
		int fd = open_file(dir_fd, rank, which, O_TRUNC | O_NONBLOCK);
		if (fd < 0) {
			p3_say("--output-dir: cannot write %s/%s: %s; expected a file "
			       "that you may write, or none; remove it, or name another "
			       "folder",
				dir, name_of(name, rank, which), strerror(-fd));
			return fd;
		}
		close(fd);
	}
	return 0;
}

int p3_outdir_open(const char *dir, uint32_t size)
{
	int made = mkdir(dir, 0777) && errno != EEXIST ? -errno : 0;
	int fd = made ? made : open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		p3_say("--output-dir: '%s' cannot be %s: %s; expected a folder, or the "
		       "name of a new one in a folder that is there",
			dir, made ? "made" : "opened", strerror(made ? -made : errno));
		return -1;
	}
	for (uint32_t i = 0; i < size; i++)
		if (empty_files(fd, dir, i)) {
			close(fd);
			return -1;
		}
	return fd;
}
