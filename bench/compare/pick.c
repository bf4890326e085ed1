/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pick - lines for tally from the benchmarks' JSON on standard input
 *
 *	pick [WHO]	default ours
 *
 * Lines have the peers' form (peer.h): who, test, x, value.
 */
#include <jansson.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct pick {
	const char *program, *key, *is; /* use rows in which key has this value; or all */
	const char *test, *x, *value;
} picks[] = {
	{"portalperf", "test", "put", "latency", "bytes", "p50_ns"},
	{"portalperf", "test", "stream", "stream", "bytes", "MB_per_s"},
	{"portalperf", "test", "rate", "rate", "bytes", "Mmsg_per_s"},
	{"matchperf", NULL, NULL, "match", "depth", "p50_ns"},
	{"oversub", NULL, NULL, "alltoall", "nodes", "Mmsg_per_s"},
};

static const char *who = "ours";

static const char *text(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));
	return s ? s : "";
}

static void print(const struct pick *p, const json_t *row)
{
	double x = json_number_value(json_object_get(row, p->x));
	double value = json_number_value(json_object_get(row, p->value));
	printf("%s\t%s\t%.0f\t%.6g\n", who, p->test, x, value);
}

static void pick_row(const char *program, const json_t *row)
{
	for (size_t i = 0; i < sizeof picks / sizeof picks[0]; i++) {
		const struct pick *p = &picks[i];
		if (!strcmp(p->program, program) &&
			(!p->key || !strcmp(text(row, p->key), p->is)))
			print(p, row);
	}
}

int main(int argc, char **argv)
{
	json_error_t error;
	json_t *doc = json_loadf(stdin, 0, &error);
	size_t i;
	json_t *row;
	if (argc > 1)
		who = argv[1];
	if (!doc) {
		fprintf(stderr,
			"pick: standard input: %s; expected JSON of a program of "
			"bench/\n",
			error.text);
		return 2;
	}
	if (json_integer_value(json_object_get(doc, "errors"))) {
		fprintf(stderr, "pick: %s found errors; expected none; see its output\n",
			text(doc, "program"));
		return 1;
	}
	json_array_foreach(json_object_get(doc, "results"), i, row)
		pick_row(text(doc, "program"), row);
	json_decref(doc);
	return 0;
}
