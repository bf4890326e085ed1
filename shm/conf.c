/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of settings, and the parsers of their values. */
#include "shm/conf.h"
#include "shm/variant.h"
#include "shm/cpuset.h"
#include "shm/domain.h"
#include "shm/heap.h"
#include "shm/job.h"
#include "shm/log.h"
#include "shm/trace.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_LEN 480
#define SECONDS_MOST 1000000
#define NEAR         3 /* a name at most this many edits away is near */

/* is_NAME(): can the text be parsed? */
#define FORM(name, type, parse)                                                          \
	static bool is_##name(const char *text)                                          \
	{                                                                                \
		type value;                                                              \
		return parse(text, &value);                                              \
	}
FORM(trace, uint32_t, p3_conf_trace)
FORM(nid, uint32_t, p3_conf_nid)
FORM(absent, uint32_t, p3_conf_absent)
FORM(far_timeout, uint32_t, p3_conf_far_timeout)
FORM(net, struct p3_conf_net, p3_conf_net)
FORM(ablation, uint32_t, p3_ablation_parse)

static bool is_nic_cpus(const char *text)
{
	struct p3_cpuset set;
	return strcmp(text, "auto") == 0 || p3_cpulist_parse(text, &set);
}

/*
 * Return true for auto, off, or a name of a provider as libfabric writes it.  The
 * provider portals is this library, which would wait for itself.
 */
static bool is_fabric(const char *text)
{
	size_t n = strlen(text);
	bool is_this = strcspn(text, ";") == 7 && strncmp(text, "portals", 7) == 0;
	return n && n < 48 && !is_this &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_;-") == n;
}

static bool is_match(const char *text)
{
	struct p3_conf_match match;
	return p3_conf_match(text, 0, &match);
}

static bool is_log(const char *text)
{
	uint8_t levels[P3_LOG_AREAS];
	return p3_log_parse(text, levels);
}

/* Return true for a name of a CCI transport, which is the scheme of a URI. */
static bool is_transport(const char *text)
{
	size_t n = strlen(text);
	return n && n < 32 &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789+-.") == n;
}

/* Return true for any words: which program they name is seen when it runs. */
static bool is_program(const char *text)
{
	return text[strspn(text, " \t")] != '\0';
}

static const struct p3_conf_row rows[P3_CONF_ROWS] = {
	[P3_CONF_MODE] = {.name = "PTL3_MODE",
		.range = "auto|lease|dedicated|park",
		.usual = "auto",
		.help = "which thread runs the firmware; auto: the NIC thread if each "
			"thread can have a CPU, else the thread that holds the lease"},
	[P3_CONF_MATCH] = {.name = "PTL3_MATCH",
		.kind = P3_CONF_FORM,
		.range = "firmware, host, host:0,2-3, host/signal/inline=0 ...",
		.usual = "firmware",
		.expected = "firmware, or host, then perhaps : and a list of ranks below "
			    "1024, "
			    "/futex, /signal or /poll, and /inline= with 0 to 32, as in "
			    "host:0,2-3/poll",
		.help = "which side matches: the firmware, or the host, which each "
			"message interrupts (generic mode)",
		.is_form = is_match},
	[P3_CONF_HUGEPAGES] = {.name = "PTL3_HUGEPAGES",
		.range = "auto|on|off",
		.usual = "auto",
		.help = "auto: use ordinary pages when hugepages are short"},
	[P3_CONF_MOVER] = {.name = "PTL3_MOVER",
		.range = "auto|read|window",
		.usual = "auto",
		.help = "how long messages outside of the shared heap are copied; read: "
			"by "
			"process_vm_readv; window: through a shared window; auto: the "
			"faster one"},
	[P3_CONF_MEMBARRIER] = {.name = "PTL3_MEMBARRIER",
		.range = "on|off",
		.usual = "on",
		.help = "on: a thread that goes to sleep calls membarrier, which "
			"interrupts the CPUs of Portals programs; off: each call ends "
			"with a fence instead"},
	[P3_CONF_HEAP] = {.name = P3_HEAP_ENV,
		.kind = P3_CONF_BYTES,
		.range = "0 to 1024G",
		.usual = "256M",
		.expected = "bytes, or with K, M or G, 1024G at most, as in 64M",
		.help = "size of the shared heap, by default 1G with --shared-heap; 0: "
			"none. Memory is used as blocks need it",
		.most = P3_HEAP_MOST},
	[P3_CONF_SHARED_HEAP] = {.name = P3_HEAP_SHARED_ENV,
		.internal = true,
		.range = "on|off",
		.usual = "off",
		.help = "on: long blocks of malloc come from the shared heap. yod "
			"--shared-heap sets it, with LD_PRELOAD and MALLOC_CONF; it has "
			"no effect alone"},
	[P3_CONF_PERSONALITY] = {.name = "PTL3_PERSONALITY",
		.range = "auto|document|cray",
		.usual = "auto",
		.help = "how both interfaces behave: as the document says, or as on a "
			"Cray XT; auto: only PTL_IFACE_SS as on a Cray XT"},
	[P3_CONF_LANES] = {.name = "PTL3_LANES",
		.internal = true,
		.range = "full|base|unswept",
		.usual = "full",
		.help = "base: use short base lanes only; unswept: use full lanes, and "
			"never search them for messages without a doorbell (both for "
			"tests)"},
	[P3_CONF_TRACE] = {.name = "PTL3_TRACE",
		.kind = P3_CONF_FORM,
		.range = "off, 32768, 2M ...",
		.usual = "off",
		.expected = "off, a number of records from 64 to 16777216, or bytes with "
			    "K, M or "
			    "G, from 7K to 1G, as in 2M",
		.help = "number of records of the firmware's last actions, for "
			"tracedump, or bytes for them",
		.is_form = is_trace},
	[P3_CONF_LOG] = {.name = "PTL3_LOG",
		.kind = P3_CONF_FORM,
		.range = "off, error, warn, info, drops, debug, match:drops ...",
		.usual = "warn",
		.expected = "off, error, warn, info, drops or debug, for all areas or as "
			    "in warn,match:drops for one of job, nic, peer, match, send, "
			    "event and heap",
		.help = "lines on standard error; drops: also requests that fail, and "
			"why. Areas: job, nic, peer, match, send, event, heap",
		.is_form = is_log},
	[P3_CONF_DOMAIN] = {.name = "PTL3_DOMAIN",
		.kind = P3_CONF_FORM,
		.range = "NAME, none",
		.usual = "default",
		.expected = "a name of letters, digits, '-', '_' and '.', 40 at most, or "
			    "none",
		.help = "the domain in which a process that yod did not start meets "
			"others of its user; none: it meets no other process. yod "
			"--domain sets it",
		.is_form = p3_domain_is_name},
	[P3_CONF_NID] = {.name = "PTL3_NID",
		.kind = P3_CONF_FORM,
		.range = "0 to 0xfffffffe",
		.usual = "127.0.0.1",
		.expected = "a number below 0xffffffff, or four with dots, as in "
			    "10.0.0.1",
		.help = "node id of a process that yod did not start",
		.is_form = is_nid},
	[P3_CONF_DOMAIN_NODES] = {.name = "PTL3_DOMAIN_NODES",
		.kind = P3_CONF_NUMBER,
		.range = "1 to 1024",
		.usual = "64",
		.expected = "a number of processes, 1 to 1024",
		.help = "number of processes that a domain has room for; the same for "
			"all its processes",
		.least = 1,
		.most = P3_MAX_NODES},
	[P3_CONF_LAUNCHED] = {.name = "PTL3_LAUNCHED",
		.range = "auto|off",
		.usual = "auto",
		.help = "auto: take rank, size and job from mpirun, PMI, PMIx or srun, "
			"unless PTL3_DOMAIN is set; off: started by hand. yod removes "
			"it, ranks may set it again"},
	[P3_CONF_FABRIC] = {.name = "PTL3_FABRIC",
		.kind = P3_CONF_FORM,
		.range = "auto, off, tcp ...",
		.usual = "auto",
		.expected = "auto, off, or a provider as fi_info shows it, as in "
			    "tcp;ofi_rxm, but not portals, which is this library",
		.help = "libfabric's provider between the hosts of a job, as rank 0 sets "
			"it; auto: sockets of libportals; off: a job of several hosts is "
			"refused",
		.is_form = is_fabric},
	[P3_CONF_FABRIC_NET] = {.name = "PTL3_FABRIC_NET",
		.kind = P3_CONF_FORM,
		.range = "eth0, 10.1.0.0/16 ...",
		.usual = "auto",
		.expected =
			"auto, an interface of 15 letters at most, or the addresses of "
			"a network, as in 10.1.0.0/16",
		.help = "the network between hosts: this host listens at its address in "
			"there, and nowhere else; auto: the network towards the first "
			"other host",
		.is_form = is_net},
	[P3_CONF_FAR_TIMEOUT] = {.name = "PTL3_FAR_TIMEOUT",
		.kind = P3_CONF_FORM,
		.range = "1 to 1000000, never",
		.usual = "30",
		.expected = "a number of seconds, 1 to 1000000, or never",
		.help = "seconds of silence of another host after which operations with "
			"its nodes fail",
		.is_form = is_far_timeout},
	[P3_CONF_RSH] = {.name = "PTL3_RSH",
		.kind = P3_CONF_FORM,
		.range = "ssh, ssh -q ...",
		.usual = "ssh",
		.expected = "a program that is called with a host and a command line, "
			    "and its arguments, as in ssh -q",
		.help = "remote shell of yod --hosts, as --rsh names it",
		.is_form = is_program},
	[P3_CONF_ABSENT] = {.name = "PTL3_ABSENT",
		.kind = P3_CONF_FORM,
		.range = "hold, hold:60, drop ...",
		.usual = "hold",
		.expected = "hold, drop, or hold with seconds from 1 to 1000000, as in "
			    "hold:60",
		.help = "messages to a process that has not called PtlNIInit; hold: they "
			"wait until it joins or ends, 300 seconds at most; drop: they "
			"are discarded",
		.is_form = is_absent},
	[P3_CONF_ATTACH] = {.name = "PTL3_ATTACH",
		.internal = true,
		.range = "auto|start|use",
		.usual = "auto",
		.help = "when two nodes map each other, for a whole job of yod; "
			"start: when both have joined; use: when one first sends; "
			"auto: use with more than 16 nodes"},
	[P3_CONF_ABLATE] = {.name = "PTL3_ABLATE",
		.internal = true,
		.kind = P3_CONF_FORM,
		.range = "none, index, prefetches,shadows ...",
		.usual = "none",
		.expected = "none, or a list of prefetches, lines, shadows, credits, "
			    "index and batches, as in prefetches,lines",
		.help = "parts that a library built with P3_ABLATION leaves out, to "
			"measure their use; the same in all nodes of a job",
		.is_form = is_ablation},
	[P3_CONF_CCI_TRANSPORT] = {.name = "PTL3_CCI_TRANSPORT",
		.kind = P3_CONF_FORM,
		.range = "portals, sock, tcp ...",
		.usual = "portals",
		.expected =
			"a name of at most 31 small letters, digits, '+', '-' and '.', "
			"as in sock",
		.help = "transport name of CCI devices: the scheme of URIs, and the "
			"transport of the devices in CCI_CONFIG that are used",
		.is_form = is_transport},
	[P3_CONF_STDOUT] = {.name = "PTL3_STDOUT",
		.internal = true,
		.range = "as-is|lines",
		.usual = "as-is",
		.help = "lines: PtlInit makes stdout line-buffered, so that a killed "
			"process has printed its whole lines; yod --line-buffered sets "
			"it"},
	[P3_CONF_NIC_CPUS] = {.name = P3_CONF_NIC_CPUS_ENV,
		.kind = P3_CONF_FORM,
		.range = "auto, 0,2-3 ...",
		.usual = "auto",
		.expected = "auto, or a list of CPUs as in 0,2-3",
		.help = "CPUs of the NIC thread; auto: as yod --bind plans, else those "
			"that yod may use",
		.is_form = is_nic_cpus},
};

/* Names with the prefix PTL3_ that are no settings. */
static const char *const reserved[] = {P3_JOB_ENV, "PTL3_FAULT"};

const struct p3_conf_row *p3_conf_row(enum p3_conf_id id)
{
	return &rows[id];
}

const char *p3_conf_text(enum p3_conf_id id)
{
	const char *text = getenv(rows[id].name);
	return text && *text ? text : NULL;
}

/* ---- values ---- */

/* Return true if the first len bytes are this word. */
static bool is_word(const char *text, size_t len, const char *word)
{
	return strlen(word) == len && memcmp(text, word, len) == 0;
}

static bool word_value(const char *words, const char *text, uint64_t *value_out)
{
	for (*value_out = 0; *words; ++*value_out) {
		size_t n = strcspn(words, "|");
		if (is_word(words, n, text))
			return true;
		words += n + (words[n] == '|');
	}
	return false;
}

static unsigned shift_of(const char *unit)
{
	static const char units[] = "KMG";
	const char *at = *unit && !unit[1] ? strchr(units, *unit & ~0x20) : NULL;
	return !*unit ? 0 : at ? 10 * (unsigned)(at - units + 1) : 64;
}

bool p3_conf_size(const char *text, uint64_t usual, uint64_t most, uint64_t *len_out)
{
	char *unit;
	*len_out = usual;
	if (!text || !*text)
		return true;
	int saved = errno;
	errno = 0;
	unsigned long long n = strtoull(text, &unit, 10);
	bool fits = !errno;
	errno = saved;
	unsigned shift = shift_of(unit);
	if (*text < '0' || *text > '9' || !fits || shift > 30 || n > most >> shift)
		return false;
	*len_out = (uint64_t)n << shift;
	return true;
}

static bool number_value(const char *text, uint64_t least, uint64_t most, uint64_t *out)
{
	bool digits = *text && text[strspn(text, "0123456789")] == '\0';
	return digits && p3_conf_size(text, 0, most, out) && *out >= least;
}

bool p3_conf_value(const struct p3_conf_row *row, const char *text, uint64_t *value_out)
{
	if (!text || !*text)
		text = row->usual;
	*value_out = 0;
	switch (row->kind) {
	case P3_CONF_WORDS:
		return word_value(row->range, text, value_out);
	case P3_CONF_BYTES:
		return p3_conf_size(text, 0, row->most, value_out) &&
		       *value_out >= row->least;
	case P3_CONF_NUMBER:
		return number_value(text, row->least, row->most, value_out);
	default:
		return row->is_form(text);
	}
}

/* Convert "/WORD" of this length, with the slash. */
static bool match_option(const char *text, size_t len, struct p3_conf_match *match)
{
	static const char inlined[] = "/inline=";
	char word[16];
	uint64_t value;
	snprintf(word, sizeof word, "%.*s", (int)len, text);
	if (len >= sizeof word)
		return false;
	if (strncmp(word, inlined, sizeof inlined - 1) == 0) {
		if (!number_value(
			    word + sizeof inlined - 1, 0, P3_CONF_INLINE_MOST, &value))
			return false;
		match->inlined = (uint32_t)value;
		return true;
	}
	bool good = word_value("futex|signal|poll", word + 1, &value);
	match->interrupt = (uint32_t)value;
	return good;
}

bool p3_conf_match(const char *text, uint32_t rank, struct p3_conf_match *match_out)
{
	static const char host[] = "host";
	struct p3_cpuset set;
	*match_out = (struct p3_conf_match){.inlined = P3_CONF_INLINE};
	if (!text || !*text || strcmp(text, "firmware") == 0)
		return true;
	if (strncmp(text, host, sizeof host - 1) != 0)
		return false;
	text += sizeof host - 1;
	match_out->on_host = true;
	if (*text == ':') {
		size_t len = strcspn(++text, "/");
		char *ranks = strndup(text, len);
		bool good = ranks && p3_cpulist_parse(ranks, &set);
		free(ranks);
		if (!good)
			return false;
		match_out->on_host = p3_cpuset_has(&set, rank);
		text += len;
	}
	while (*text == '/') {
		size_t len = 1 + strcspn(text + 1, "/");
		if (!match_option(text, len, match_out))
			return false;
		text += len;
	}
	return *text == '\0';
}

bool p3_conf_attach_late(const char *text, uint32_t nodes)
{
	enum { AUTO, START, USE };
	uint64_t when;
	if (!p3_conf_value(&rows[P3_CONF_ATTACH], text, &when))
		when = AUTO;
	return when == USE || (when == AUTO && nodes > P3_CONF_ATTACH_MOST);
}

bool p3_conf_nid(const char *text, uint32_t *nid_out)
{
	char *end;
	struct in_addr dotted;
	if (!text || !*text) {
		*nid_out = P3_DOMAIN_NID;
		return true;
	}
	if (strchr(text, '.') && inet_pton(AF_INET, text, &dotted) == 1) {
		*nid_out = ntohl(dotted.s_addr);
		return *nid_out != UINT32_MAX;
	}
	int saved = errno;
	errno = 0;
	unsigned long nid = strtoul(text, &end, 0);
	bool fits = !errno && nid < UINT32_MAX;
	errno = saved;
	*nid_out = (uint32_t)nid;
	return *text >= '0' && *text <= '9' && !*end && fits;
}

/* Convert the word for 0, or seconds behind a prefix, or no text. */
static bool seconds_value(const char *text, const char *zero, const char *prefix,
	uint32_t usual, uint32_t *seconds_out)
{
	uint64_t value = usual;
	size_t n = strlen(prefix);
	if (text && strcmp(text, zero) == 0)
		value = 0;
	else if (text && *text &&
		 (strncmp(text, prefix, n) != 0 ||
			 !number_value(text + n, 1, SECONDS_MOST, &value)))
		return false;
	*seconds_out = (uint32_t)value;
	return true;
}

bool p3_conf_absent(const char *text, uint32_t *seconds_out)
{
	const char *seconds = text && strcmp(text, "hold") == 0 ? NULL : text;
	return seconds_value(seconds, "drop", "hold:", P3_CONF_HOLD_S, seconds_out);
}

bool p3_conf_far_timeout(const char *text, uint32_t *seconds_out)
{
	return seconds_value(text, "never", "", P3_CONF_FAR_S, seconds_out);
}

/* Convert an address, "/" and a number of bits. */
static bool prefix(const char *text, const char *slash, struct p3_conf_net *net)
{
	char address[INET6_ADDRSTRLEN];
	uint64_t bits;
	size_t n = (size_t)(slash - text);
	if (n >= sizeof address)
		return false;
	memcpy(address, text, n);
	address[n] = '\0';
	net->family = strchr(address, ':') ? AF_INET6 : AF_INET;
	uint64_t most = net->family == AF_INET ? 32 : 128;
	if (inet_pton(net->family, address, net->address) != 1 ||
		!number_value(slash + 1, 0, most, &bits))
		return false;
	net->bits = (uint32_t)bits;
	return true;
}

bool p3_conf_net(const char *text, struct p3_conf_net *net_out)
{
	*net_out = (struct p3_conf_net){.bits = 0};
	if (!text || !*text || strcmp(text, "auto") == 0)
		return true;
	const char *slash = strchr(text, '/');
	size_t n = strlen(text);
	if (slash)
		return prefix(text, slash, net_out);
	if (n >= sizeof net_out->interface || strpbrk(text, " \t,;"))
		return false;
	memcpy(net_out->interface, text, n);
	return true;
}

/* ---- messages about wrong values ---- */

/* Write "a|b|c" as "a, b, c". */
static void spell_out(const char *words, const char *between, char *out, size_t size)
{
	size_t n = 0;
	for (; *words && n + strlen(between) + 2 < size; words++)
		if (*words == '|')
			n += (size_t)sprintf(out + n, "%s", between);
		else
			out[n++] = *words;
	out[n] = '\0';
}

void p3_conf_complain(
	const struct p3_conf_row *row, const char *text, char *line, size_t size)
{
	char words[128];
	spell_out(row->range, ", ", words, sizeof words);
	snprintf(line, size, "%s is '%.64s'; expected %s; unset it for the default",
		row->name, text, row->expected ? row->expected : words);
}

int p3_conf_check(p3_conf_say *say, void *arg)
{
	int rc = 0;
	for (enum p3_conf_id id = 0; id < P3_CONF_ROWS; id++) {
		char line[LINE_MAX_LEN];
		uint64_t value;
		const char *text = p3_conf_text(id);
		if (p3_conf_value(&rows[id], text, &value))
			continue;
		p3_conf_complain(&rows[id], text, line, sizeof line);
		say(arg, line);
		rc = -EINVAL;
	}
	return rc;
}

/* ---- names ---- */

/* Compute the table of edit distances row by row in one array: a row needs only the row
 * before it. */
unsigned p3_conf_edits(const char *a, const char *b)
{
	unsigned at[P3_CONF_NAME_LEN + 1], len = (unsigned)strlen(b);
	for (unsigned j = 0; j <= len; j++)
		at[j] = j;
	for (unsigned i = 1; *a; a++, i++) {
		unsigned corner = at[0];
		at[0] = i;
		for (unsigned j = 1; j <= len; j++) {
			unsigned best = corner + (*a != b[j - 1]);
			corner = at[j];
			best = at[j] + 1 < best ? at[j] + 1 : best;
			at[j] = at[j - 1] + 1 < best ? at[j - 1] + 1 : best;
		}
	}
	return at[len];
}

const char *p3_conf_nearest(const char *name)
{
	const char *best = NULL;
	size_t own = strlen(name) - strlen(P3_CONF_PREFIX);
	unsigned least = own < NEAR ? (unsigned)own : NEAR + 1;
	for (enum p3_conf_id id = 0; id < P3_CONF_ROWS; id++) {
		unsigned n = p3_conf_edits(name, rows[id].name);
		if (n < least && !rows[id].internal) {
			least = n;
			best = rows[id].name;
		}
	}
	return best;
}

static bool is_known(const char *word, size_t len)
{
	for (enum p3_conf_id id = 0; id < P3_CONF_ROWS; id++)
		if (is_word(word, len, rows[id].name))
			return true;
	for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++)
		if (is_word(word, len, reserved[i]))
			return true;
	return false;
}

void p3_conf_unknown(char *const *env, p3_conf_say *say, void *arg)
{
	for (; *env; env++) {
		char line[LINE_MAX_LEN], name[P3_CONF_NAME_LEN + 1];
		size_t len = strcspn(*env, "=");
		if (strncmp(*env, P3_CONF_PREFIX, sizeof P3_CONF_PREFIX - 1) != 0 ||
			is_known(*env, len))
			continue;
		snprintf(name, sizeof name, "%.*s", (int)len, *env);
		const char *near = p3_conf_nearest(name);
		snprintf(line, sizeof line,
			"%s is no setting; %s%s%syod --help-env lists them", name,
			near ? "did you mean " : "", near ? near : "", near ? "? " : "");
		say(arg, line);
	}
}

/* ---- the table for people ---- */

void p3_conf_print(FILE *out, enum p3_conf_format format)
{
	const bool markdown = format == P3_CONF_MARKDOWN;
	if (markdown)
		fputs("| variable | values | default | |\n|---|---|---|---|\n", out);
	for (const struct p3_conf_row *row = rows; row < rows + P3_CONF_ROWS; row++) {
		char range[128];
		if (row->internal)
			continue;
		spell_out(row->range, markdown ? "` `" : ", ", range, sizeof range);
		if (markdown)
			fprintf(out, "| `%s` | `%s` | `%s` | %s |\n", row->name, range,
				row->usual, row->help);
		else
			fprintf(out, "%s (%s): %s\n    %s\n", row->name, row->usual,
				range, row->help);
	}
}

/* ---- the trace ---- */

bool p3_conf_trace(const char *text, uint32_t *records_out)
{
	uint64_t n;
	*records_out = 0;
	if (!text || !*text || strcmp(text, "off") == 0)
		return true;
	if (!p3_conf_size(text, 0, (uint64_t)1 << 30, &n))
		return false;
	if (strpbrk(text, "kKmMgG")) { /* the records that fit into these bytes */
		uint64_t bytes = n;
		for (n = P3_TRACE_MOST; n >= P3_TRACE_LEAST;) {
			if (p3_trace_len((uint32_t)n) <= bytes)
				break;
			n /= 2;
		}
	}
	if (n < P3_TRACE_LEAST || n > P3_TRACE_MOST)
		return false;
	for (*records_out = P3_TRACE_LEAST; *records_out < n;)
		*records_out *= 2;
	return true;
}

/* ---- CPUs of the NIC thread ---- */

bool p3_conf_nic_cpus(const char *text, struct p3_cpuset *set_out)
{
	return text && p3_cpulist_parse(text, set_out);
}
