/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading the source file and writing the copies. */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

__attribute__((format(printf, 2, 3))) static bool fails(char *why, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	vsnprintf(why, TEXT, fmt, args);
	va_end(args);
	return false;
}

double file_clock(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- source ---- */

bool source_open(struct source *s, const char *name, char *why)
{
	struct stat st;
	s->name = name;
	s->fd = open(name, O_RDONLY | O_CLOEXEC);
	if (s->fd < 0 || fstat(s->fd, &st))
		return fails(why,
			"%s: cannot be opened: %s; expected a file that rank 0 can read",
			name, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return fails(why,
			"%s: is no regular file; expected one, whose length is known; "
			"copy "
			"it to one",
			name);
	s->length = (uint64_t)st.st_size;
	return true;
}

static bool read_all(struct source *s, void *buf, uint32_t length, uint64_t at, char *why)
{
	for (uint32_t done = 0; done < length;) {
		ssize_t n = pread(
			s->fd, (char *)buf + done, length - done, (off_t)(at + done));
		if (n > 0)
			done += (uint32_t)n;
		else if (n == 0)
			return fails(why,
				"%s: ends at byte %llu, expected %llu; do not change it "
				"meanwhile",
				s->name, (unsigned long long)(at + done),
				(unsigned long long)s->length);
		else if (errno != EINTR)
			return fails(why,
				"%s: cannot be read at byte %llu: %s; check its disk",
				s->name, (unsigned long long)(at + done),
				strerror(errno));
	}
	return true;
}

bool source_read(struct source *s, void *buf, uint32_t length, uint64_t at, char *why)
{
	double begun = file_clock();
	bool done = read_all(s, buf, length, at, why);
	s->reading += file_clock() - begun;
	return done;
}

/* ---- copies ---- */

static bool is_same_file(const struct stat *a, const char *name)
{
	struct stat b;
	return !stat(name, &b) && a->st_dev == b.st_dev && a->st_ino == b.st_ino;
}

static bool open_empty(struct copy *c, const char *source, char *why)
{
	struct stat st;
	c->fd = open(c->name, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (c->fd < 0 || fstat(c->fd, &st))
		return fails(why,
			"%s: cannot be created: %s; expected a directory one may write "
			"in; "
			"choose another OUTDIR",
			c->name, strerror(errno));
	if (is_same_file(&st, source))
		return fails(why, "%s: is FILE itself; choose another OUTDIR", c->name);
	c->regular = S_ISREG(st.st_mode);
	if (c->regular && ftruncate(c->fd, 0))
		return fails(why, "%s: cannot be emptied: %s; remove it", c->name,
			strerror(errno));
	return true;
}

bool copy_open(
	struct copy *c, const char *dir, unsigned rank, const char *source, char *why)
{
	c->sha = EVP_MD_CTX_new();
	if (!c->sha || !EVP_DigestInit_ex(c->sha, EVP_sha256(), NULL))
		return fails(why, "libcrypto offers no sha256; install one that does");
	if (mkdir(dir, 0777) && errno != EEXIST)
		return fails(why,
			"%s: cannot be made: %s; expected a directory, or a name in one; "
			"make it, or choose another OUTDIR",
			dir, strerror(errno));
	int n = snprintf(c->name, sizeof c->name, "%s/%u", dir, rank);
	if (n >= (int)sizeof c->name)
		return fails(why, "OUTDIR has %d characters, expected less than %zu", n,
			sizeof c->name);
	return open_empty(c, source, why);
}

static bool write_all(struct copy *c, const void *buf, uint32_t length, char *why)
{
	for (uint32_t done = 0; done < length;) {
		ssize_t n = write(c->fd, (const char *)buf + done, length - done);
		if (n >= 0)
			done += (uint32_t)n;
		else if (errno != EINTR)
			return fails(why,
				"%s: cannot be written at byte %llu: %s; make room, or "
				"choose another OUTDIR",
				c->name, (unsigned long long)(c->written + done),
				strerror(errno));
	}
	c->written += length;
	return true;
}

bool copy_write(struct copy *c, const void *buf, uint32_t length, char *why)
{
	double begun = file_clock();
	bool done = write_all(c, buf, length, why);
	double written = file_clock();
	c->writing += written - begun;
	if (!done)
		return false;
	done = EVP_DigestUpdate(c->sha, buf, length);
	c->hashing += file_clock() - written;
	return done || fails(why, "libcrypto fails at sha256; install another");
}

bool copy_close(struct copy *c, char *why)
{
	int rc = close(c->fd);
	c->fd = -1;
	if (rc)
		return fails(why,
			"%s: cannot be finished: %s; make room, or choose another OUTDIR",
			c->name, strerror(errno));
	int ok = EVP_DigestFinal_ex(c->sha, c->digest, NULL);
	EVP_MD_CTX_free(c->sha);
	c->sha = NULL;
	return ok || fails(why, "libcrypto fails at sha256; install another");
}

void copy_discard(struct copy *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	if (c->regular)
		unlink(c->name);
	EVP_MD_CTX_free(c->sha);
	c->sha = NULL;
}
