/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file - the source file and its copies
 *
 * Functions that return bool store one line without newline in why, TEXT bytes, when
 * they return false.
 */
#ifndef FILECAST_FILE_H
#define FILECAST_FILE_H

#include "wire.h"

#include <openssl/evp.h>

/* Return the time in seconds since some moment. */
double file_clock(void);

struct source {
	const char *name;
	int fd;
	uint64_t length;
	double reading; /* seconds */
};

bool source_open(struct source *s, const char *name, char *why);

/* Read bytes [at, at + length) of the file. */
bool source_read(struct source *s, void *buf, uint32_t length, uint64_t at, char *why);

struct copy {
	char name[4096];
	int fd;
	bool regular;
	EVP_MD_CTX *sha;
	uint64_t written;
	uint8_t digest[DIGEST];  /* after copy_close */
	double writing, hashing; /* seconds */
};

/* Open dir/rank and empty it; make dir if it is missing.  Refuse the source itself. */
bool copy_open(
	struct copy *c, const char *dir, unsigned rank, const char *source, char *why);

/* Append to the copy, and to the digest. */
bool copy_write(struct copy *c, const void *buf, uint32_t length, char *why);
bool copy_close(struct copy *c, char *why);

/* Remove a partial copy after a failure. */
void copy_discard(struct copy *c);

#endif
