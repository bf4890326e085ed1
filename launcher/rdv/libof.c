/* SPDX-License-Identifier: BSD-3-Clause */
/* The libportals of a process, found in its memory map. */
#include "launcher/rdv/libof.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINE_LEN 4096

static bool in_maps(uint32_t os_pid, char *path)
{
	char name[32], line[LINE_LEN], *at = NULL;
	snprintf(name, sizeof name, "/proc/%u/maps", os_pid);
	FILE *f = fopen(name, "re");
	if (!f)
		return false;
	while (!at && fgets(line, sizeof line, f))
		at = strstr(line, "/libportals.so") ? strchr(line, '/') : NULL;
	fclose(f);
	if (!at)
		return false;
	at[strcspn(at, "\n")] = 0;
	snprintf(path, P3_LIBOF_LEN, "%s", at);
	return true;
}

const char *p3_libof(uint32_t os_pid, char path[P3_LIBOF_LEN])
{
	char name[32];
	if (!os_pid)
		return "?";
	if (in_maps(os_pid, path))
		return path;
	snprintf(name, sizeof name, "/proc/%u/exe", os_pid);
	ssize_t n = readlink(name, path, P3_LIBOF_LEN - 1);
	if (n <= 0)
		return "?";
	path[n] = 0;
	return path;
}
