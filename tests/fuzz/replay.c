/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a fuzz target on files, and on all files of directories, without libFuzzer. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define LEN_MOST (1u << 20)

static unsigned runs;

static void run_file(const char *path)
{
	static uint8_t buf[LEN_MOST];
	FILE *f = fopen(path, "rb");
	if (!f) {
		perror(path);
		exit(2);
	}
	size_t len = fread(buf, 1, sizeof buf, f);
	fclose(f);
	fprintf(stderr, "%s\n", path); /* the last one fails */
	/* A block of its own, so that reads behind the end are found. */
	uint8_t *data = malloc(len ? len : 1);
	if (!data)
		exit(2);
	for (size_t i = 0; i < len; i++)
		data[i] = buf[i];
	(void)LLVMFuzzerTestOneInput(data, len);
	free(data);
	runs++;
}

static void run_dir(const char *path)
{
	struct dirent **names;
	int n = scandir(path, &names, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		char file[1024];
		snprintf(file, sizeof file, "%s/%s", path, names[i]->d_name);
		if (names[i]->d_name[0] != '.')
			run_file(file);
		free(names[i]);
	}
	if (n >= 0)
		free(names);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		struct stat st;
		if (stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode))
			run_dir(argv[i]);
		else
			run_file(argv[i]);
	}
	fprintf(stderr, "%u inputs\n", runs);
	return runs ? 0 : 2;
}
