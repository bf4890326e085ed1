/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conf - the settings: one table of names, values, defaults and descriptions
 *
 *	environment --p3_conf_value--> numbers		the library, at PtlNIInit
 *	environment --p3_conf_check--> lines for people	yod, before it starts a job
 *	table --p3_conf_print--> yod --help-env, docs/settings.md
 *
 * A new setting is a row in conf.c and a name here; the code that reads the setting
 * gives it its effect.  An internal row is a word that yod, a test or a benchmark puts
 * into the environment of a node: it is checked like the others, and tables for people do
 * not show it.  Any thread may call these functions: the table is constant, and
 * there is no other state.
 */
#ifndef P3_SHM_CONF_H
#define P3_SHM_CONF_H

#include "shm/cpuset.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define P3_CONF_PREFIX "PTL3_"

enum p3_conf_id {
	P3_CONF_MODE,
	P3_CONF_MATCH,
	P3_CONF_HUGEPAGES,
	P3_CONF_MOVER,
	P3_CONF_MEMBARRIER,
	P3_CONF_HEAP,
	P3_CONF_SHARED_HEAP,
	P3_CONF_PERSONALITY,
	P3_CONF_LANES,
	P3_CONF_DOMAIN,
	P3_CONF_NID,
	P3_CONF_DOMAIN_NODES,
	P3_CONF_LAUNCHED,
	P3_CONF_FABRIC,
	P3_CONF_FABRIC_NET,
	P3_CONF_FAR_TIMEOUT,
	P3_CONF_RSH,
	P3_CONF_ABSENT,
	P3_CONF_ATTACH,
	P3_CONF_STDOUT,
	P3_CONF_NIC_CPUS,
	P3_CONF_TRACE,
	P3_CONF_LOG,
	P3_CONF_CCI_TRANSPORT,
	P3_CONF_ABLATE,
	P3_CONF_ROWS
};

/* words of PTL3_MOVER and of PTL3_LANES, in the order of the table */
enum p3_conf_mover { P3_CONF_MOVER_AUTO, P3_CONF_MOVER_READ, P3_CONF_MOVER_WINDOW };
enum p3_conf_lanes { P3_CONF_LANES_FULL, P3_CONF_LANES_BASE, P3_CONF_LANES_UNSWEPT };

enum p3_conf_kind {
	P3_CONF_WORDS, /* one of the words in range; the value is the word's index */
	P3_CONF_BYTES, /* a number, or one with K, M or G */
	P3_CONF_NUMBER,
	P3_CONF_FORM /* text with a grammar of its own, which is_form checks */
};

struct p3_conf_row {
	const char *name;
	enum p3_conf_kind kind;
	bool internal;
	const char *range;    /* words: separated by '|'; other kinds: the form of a
			       * value */
	const char *usual;    /* the default, as a user would write it */
	const char *expected; /* for error messages; NULL for words: range lists them */
	const char *help;
	uint64_t least, most;              /* bounds of bytes and numbers */
	bool (*is_form)(const char *text); /* form: checks the text */
};

const struct p3_conf_row *p3_conf_row(enum p3_conf_id id);

/* Return the setting's text in the environment, or NULL if it is unset or empty. */
const char *p3_conf_text(enum p3_conf_id id);

/* Convert a text to the setting's value; NULL and the empty text give the default, a
 * form always 0.  Return false if the text is not a valid value. */
bool p3_conf_value(const struct p3_conf_row *row, const char *text, uint64_t *value_out);

/* Write "PTL3_MODE is 'y'; expected ..." into line, with the setting's own name. */
void p3_conf_complain(
	const struct p3_conf_row *row, const char *text, char *line, size_t size);

/* Receives a line for people about one name of the environment. */
typedef void p3_conf_say(void *arg, const char *line);

/* Report each setting with an invalid value.  Return -EINVAL if there is one, else 0. */
int p3_conf_check(p3_conf_say *say, void *arg);

/* Report each name that has our prefix and is no setting, with the setting that its
 * author perhaps meant. */
void p3_conf_unknown(char *const *env, p3_conf_say *say, void *arg);

/* Return the setting whose name is closest to a name with our prefix, or NULL. */
const char *p3_conf_nearest(const char *name);

#define P3_CONF_NAME_LEN 40 /* longest name that p3_conf_nearest compares */

/* Return the edit distance of two names: how many letters have to be inserted, removed
 * or changed to turn a into b.  b has at most P3_CONF_NAME_LEN letters. */
unsigned p3_conf_edits(const char *a, const char *b);

enum p3_conf_format { P3_CONF_TEXT, P3_CONF_MARKDOWN };
void p3_conf_print(FILE *out, enum p3_conf_format format);

/* Convert a size such as "64M" to bytes; NULL and the empty text give the usual value.
 * Return false if the text is not a size or is above most. */
bool p3_conf_size(const char *text, uint64_t usual, uint64_t most, uint64_t *len_out);

/* Convert the text of P3_CONF_TRACE to a number of records, a power of two.  The text is
 * that number, which is rounded up, or, with a unit as in "2M", the most bytes that the
 * trace may take; NULL, the empty text and "off" give 0.  Return false if the text is
 * none of these, or gives less than P3_TRACE_LEAST or more than P3_TRACE_MOST records. */
bool p3_conf_trace(const char *text, uint32_t *records_out);

/* Convert the text of P3_CONF_NID, such as 0x7f000001 or 127.0.0.1, to a node id; NULL
 * and the empty text give 127.0.0.1.  Return false if the text is not a node id. */
bool p3_conf_nid(const char *text, uint32_t *nid_out);

/* Convert the text of P3_CONF_ABSENT to seconds; NULL, the empty text and "hold" give
 * P3_CONF_HOLD_S, "drop" gives 0.  Return false if it is none of these. */
#define P3_CONF_HOLD_S 300u
bool p3_conf_absent(const char *text, uint32_t *seconds_out);

/* Convert the text of P3_CONF_FAR_TIMEOUT to seconds; "never" gives 0, NULL and the empty
 * text give P3_CONF_FAR_S.  Return false if it is none of these. */
#define P3_CONF_FAR_S 30u
bool p3_conf_far_timeout(const char *text, uint32_t *seconds_out);

/* A setting of the networks of this host: an interface, or the addresses that begin with
 * the first bits of one. */
struct p3_conf_net {
	char interface[16]; /* empty: addresses */
	int family;         /* AF_INET or AF_INET6 */
	unsigned char address[16];
	uint32_t bits;
};
/* Convert the text of P3_CONF_FABRIC_NET.  Return false if it is not valid. */
bool p3_conf_net(const char *text, struct p3_conf_net *net_out);

/* Which side matches, and how the firmware interrupts a host that does. */
#define P3_CONF_INLINE      12u
#define P3_CONF_INLINE_MOST 32u
struct p3_conf_match {
	bool on_host;
	uint32_t interrupt; /* index of futex, signal or poll */
	uint32_t inlined;   /* most payload bytes that go to the host with the header,
			     * which saves the second interrupt */
};
/* Convert the text of P3_CONF_MATCH for this rank; NULL, the empty text and "firmware"
 * give that side, "host" the host, and "host:" with a list of ranks the host for these.
 * Words behind slashes say how.  Return false if the text is none of these. */
bool p3_conf_match(const char *text, uint32_t rank, struct p3_conf_match *match_out);

/* Return true if, by the text of P3_CONF_ATTACH, two nodes of a job of this size map
 * each other when one first sends to the other; false: when both have joined. */
#define P3_CONF_ATTACH_MOST 16u
bool p3_conf_attach_late(const char *text, uint32_t nodes);

/* ---- CPUs of the NIC thread ---- */

#define P3_CONF_NIC_CPUS_ENV "PTL3_NIC_CPUS"

/* Convert the text of P3_CONF_NIC_CPUS to a set of CPUs.  Return false if it lists none
 * (NULL, empty, or auto). */
bool p3_conf_nic_cpus(const char *text, struct p3_cpuset *set_out);

#endif
