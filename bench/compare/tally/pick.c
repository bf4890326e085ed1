/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pick - lines for tally from the benchmarks' JSON on standard input
 *
 *	pick [WHO]	default ours
 *
 * Lines have the peers' form (peer.h): who, test, x, value.
 */
#include <jansson.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct pick {
	const char *program, *key, *is; /* use rows in which key has this value; or all */
	const char *test, *x, *value;   /* x is a key, or a number */
} picks[] = {
	{"portalperf", "test", "put", "latency", "bytes", "p50_ns"},
	{"portalperf", "test", "stream", "stream", "bytes", "MB_per_s"},
	{"portalperf", "test", "rate", "rate", "bytes", "Mmsg_per_s"},
	{"portalperf", "test", "ack", "ack", "bytes", "p50_ns"},
	{"portalperf", "test", "get", "get", "bytes", "p50_ns"},
	{"cmdperf", "calls", "EQGet, empty", "eqget", "1", "p50_ns"},
	{"cmdperf", "calls", "EQPoll of 3, empty", "eqpoll", "3", "p50_ns"},
	{"matchperf", NULL, NULL, "match", "depth", "p50_ns"},
	{"oversub", NULL, NULL, "alltoall", "nodes", "Mmsg_per_s"},
};

static const char *who = "ours";

/* Compare texts; the first one may have blanks behind it. */
static bool is_text(const char *padded, const char *text)
{
	size_t length = strlen(text);
	return !strncmp(padded, text, length) &&
	       !padded[length + strspn(padded + length, " ")];
}

/* Return a text of a row; the names of columns may have blanks behind them. */
static const char *text(json_t *object, const char *key)
{
	const char *name, *s = NULL;
	json_t *value;
	json_object_foreach(object, name, value)
		if (is_text(name, key))
			s = json_string_value(value);
	return s ? s : "";
}

static void print(const struct pick *p, json_t *row)
{
	const json_t *key = json_object_get(row, p->x);
	double x = key ? json_number_value(key) : strtod(p->x, NULL);
	double value = json_number_value(json_object_get(row, p->value));
	printf("%s\t%s\t%.0f\t%.6g\n", who, p->test, x, value);
}

static void pick_row(const char *program, json_t *row)
{
	for (size_t i = 0; i < sizeof picks / sizeof picks[0]; i++) {
		const struct pick *p = &picks[i];
		if (!strcmp(p->program, program) &&
			(!p->key || is_text(text(row, p->key), p->is)))
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
