/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conf - the settings: one table of names, values, defaults and words about them
 *
 *	environment --p3_conf_value--> numbers		the library, at PtlNIInit
 *	environment --p3_conf_check--> lines for people	yod, before it starts a job
 *	table --p3_conf_print--> yod --help-env, docs/settings.md
 *
 * A new setting is a row in conf.c and a name here; what it does is its reader's.
 */
#ifndef P3_SHM_CONF_H
#define P3_SHM_CONF_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define P3_CONF_PREFIX "PTL3_"

enum p3_conf_id {
	P3_CONF_MODE,
	P3_CONF_HUGEPAGES,
	P3_CONF_CMA,
	P3_CONF_BULK,
	P3_CONF_MEMBARRIER,
	P3_CONF_HEAP,
	P3_CONF_SHARED_HEAP,
	P3_CONF_PERSONALITY,
	P3_CONF_LANES,
	P3_CONF_WIRE,
	P3_CONF_DOMAIN,
	P3_CONF_NID,
	P3_CONF_NID_BASE,
	P3_CONF_DOMAIN_NODES,
	P3_CONF_LAUNCHED,
	P3_CONF_ABSENT,
	P3_CONF_STDOUT,
	P3_CONF_NIC_CPUS,
	P3_CONF_TRACE,
	P3_CONF_LOG,
	P3_CONF_ROWS
};

enum p3_conf_kind {
	P3_CONF_WORDS, /* one of those, the value is which: 0, 1, ... */
	P3_CONF_BYTES, /* a number, or one with K, M or G */
	P3_CONF_NUMBER,
	P3_CONF_FORM /* has a grammar of its own */
};

struct p3_conf_row {
	const char *name;
	enum p3_conf_kind kind;
	const char *range;    /* words: with '|' between them; else how values look */
	const char *usual;    /* the default, as one would set it */
	const char *expected; /* for messages; words: NULL, as range says it */
	const char *help;
	uint64_t least, most;              /* bytes, numbers */
	bool (*is_form)(const char *text); /* form */
};

const struct p3_conf_row *p3_conf_row(enum p3_conf_id id);

/* What the environment has for it; NULL: nothing, or an empty text. */
const char *p3_conf_text(enum p3_conf_id id);

/* The value of a text (NULL, empty: the default; form: always 0); false: it has none. */
bool p3_conf_value(const struct p3_conf_row *row, const char *text, uint64_t *value_out);

/* "PTL3_X is 'y'; expected ..." into line. */
void p3_conf_complain(
	const struct p3_conf_row *row, const char *text, char *line, size_t size);

/* A line for people about one name of the environment. */
typedef void p3_conf_say(void *arg, const char *line);

/* Says which values are wrong, and -EINVAL if any are. */
int p3_conf_check(p3_conf_say *say, void *arg);

/* Says which names with our prefix are none of ours, and what was perhaps meant. */
void p3_conf_unknown(char *const *env, p3_conf_say *say, void *arg);

/* The setting whose name is nearly this one (which has our prefix), or NULL. */
const char *p3_conf_nearest(const char *name);

#define P3_CONF_NAME_LEN 40 /* of the longest name worth comparing */

/* How many letters to insert, to remove or to change to make b of a; b is that long. */
unsigned p3_conf_edits(const char *a, const char *b);

enum p3_conf_format { P3_CONF_TEXT, P3_CONF_MARKDOWN };
void p3_conf_print(FILE *out, enum p3_conf_format format);

/* Bytes of "64M"; usual for NULL and the empty text; false: it is no size. */
bool p3_conf_size(const char *text, uint64_t usual, uint64_t most, uint64_t *len_out);

/* Records of P3_CONF_TRACE's text (NULL, empty: 0), a power of two; false: no number, or
 * not between P3_TRACE_LEAST and P3_TRACE_MOST. */
bool p3_conf_trace(const char *text, uint32_t *records_out);

/* A node id of P3_CONF_NID's text (NULL, empty: 127.0.0.1): 0x7f000001 or 127.0.0.1. */
bool p3_conf_nid(const char *text, uint32_t *nid_out);

/* Seconds of P3_CONF_ABSENT's text (NULL, empty, hold: P3_CONF_HOLD_S; drop: 0). */
#define P3_CONF_HOLD_S 300u
bool p3_conf_absent(const char *text, uint32_t *seconds_out);

/* ---- CPUs of the NIC thread ---- */

#define P3_CONF_NIC_CPUS_ENV "PTL3_NIC_CPUS"

/* Of its text; false: no list is said (NULL, empty, auto). */
bool p3_conf_nic_cpus(const char *text, cpu_set_t *set_out);

/* ---- the wire for tests ---- */

/* What it does to frames (nic/faults.h). */
enum p3_wire_fault {
	P3_FAULT_DROP,
	P3_FAULT_CORRUPT,
	P3_FAULT_DELAY,
	P3_FAULT_DUP,
	P3_FAULT_REORDER,
	P3_FAULT_KINDS
};

struct p3_faults {
	bool on;                      /* or there is no such wire */
	uint32_t ppm[P3_FAULT_KINDS]; /* frames of a million that meet it */
	uint64_t seed;
};

/* Of P3_CONF_WIRE's text (NULL, empty: none); false: it makes no sense. */
bool p3_conf_wire(const char *text, struct p3_faults *faults_out);

#endif
