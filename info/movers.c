/* SPDX-License-Identifier: BSD-3-Clause */
/* The CPU, and the rules by which bytes are moved. */
#include "info/movers.h"

#include "nic/proto/proto.h"
#include "nic/xfer/slices.h"
#include "nic/xfer/table.h"

#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The features of the CPU that memcpy, or the kernel's copy, chooses by. */
static const char *const features[] = {"erms", "fsrm", "avx2", "avx512f"};

/* Return the value of a line "name : value" of /proc/cpuinfo, or NULL. */
static char *value_of(char *line, const char *name)
{
	size_t k = strlen(name);
	char *colon = strchr(line, ':');
	if (strncmp(line, name, k) || strspn(line + k, " \t") + line + k != colon)
		return NULL;
	line[strcspn(line, "\n")] = 0;
	return colon + 1 + strspn(colon + 1, " ");
}

/* List those words of flags that are features. */
static json_t *list_features(char *flags)
{
	json_t *a = json_array();
	char *next = NULL;
	for (char *word = strtok_r(flags, " ", &next); word;
		word = strtok_r(NULL, " ", &next))
		for (size_t i = 0; i < sizeof features / sizeof *features; i++)
			if (!strcmp(word, features[i]))
				json_array_append_new(a, json_string(word));
	return a;
}

static void take_line(json_t *o, char *line)
{
	static const char *const names[][2] = {
		{"vendor_id", "vendor"}, {"model name", "model_name"}};
	static const char *const numbers[][2] = {
		{"cpu family", "family"}, {"model", "model"}};
	char *value;
	for (int i = 0; i < 2; i++) {
		if ((value = value_of(line, names[i][0])))
			json_object_set_new(o, names[i][1], json_string(value));
		if ((value = value_of(line, numbers[i][0])))
			json_object_set_new(
				o, numbers[i][1], json_integer(strtoll(value, NULL, 10)));
	}
	if ((value = value_of(line, "flags")))
		json_object_set_new(o, "features", list_features(value));
}

json_t *p3_info_cpu(void)
{
	char *line = NULL;
	size_t room = 0;
	json_t *o = json_pack("{s:n, s:n, s:n, s:n, s:[]}", "vendor", "family", "model",
		"model_name", "features");
	FILE *f = fopen("/proc/cpuinfo", "re");
	while (f && getline(&line, &room, f) > 0 && *line != '\n') /* the first CPU */
		take_line(o, line);
	free(line);
	if (f)
		fclose(f);
	json_object_set_new(o, "copy",
		json_sprintf("memcpy of libc %s, which chooses its loop by the CPU",
			gnu_get_libc_version()));
	return o;
}

json_t *p3_info_movers(void)
{
	return json_pack("{s:o, s:o, s:o}", "heap",
		json_sprintf("where the bytes lie in a shared heap; puts above %u bytes",
			P3_EAGER_MOST_HEAP),
		"cma",
		json_sprintf(
			"puts above %u bytes; slices of %u to %u KiB, of the length that "
			"took the least time lately, up to %u us each (ptlstat: "
			"slice_bytes)",
			P3_SHORT_MOST, P3_SLICE_LEAST >> 10, P3_SLICE_MOST >> 10,
			P3_SLICE_NS / 1000),
		"window",
		json_string("instead of cma where that took clearly less time lately, or "
			    "where cma is not allowed"));
}
