/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * settings.c - settings from the environment, errors, and statistics at the end
 *
 * GASNET_VERBOSEENV=1 lets node 0 print each setting that it reads.
 */
#include <ctype.h>
#include <stdarg.h>
#include <strings.h>
#include <unistd.h>

#include "internal.h"

/* ---- settings ---- */

static void show(const char *name, const char *value, bool given)
{
	if (gasneti.set.verbose && gasneti.me == 0)
		fprintf(stderr, "ENV parameter: %s = %s%s\n", name, value,
			given ? "" : "   (default)");
}

static void wrong(const char *name, const char *value, const char *expected)
{
	gasneti_fatal("%s is '%s'; expected %s", name, value, expected);
}

/* Return the factor of a suffix K, M, G or T; 0 for any other text. */
static uint64_t factor(const char *suffix)
{
	static const char letters[] = "KMGT";
	if (!*suffix)
		return 1;
	const char *at = strchr(letters, toupper((unsigned char)*suffix));
	bool plain = suffix[1] == 0 ||
		     (toupper((unsigned char)suffix[1]) == 'B' && !suffix[2]);
	return at && plain ? (uint64_t)1 << 10 * (at - letters + 1) : 0;
}

/* Read a number with an optional suffix; return false if the setting is not there.  End
 * the job if it is out of range. */
static bool read_number(const char *name, double least, double most, double *number)
{
	const char *text = getenv(name);
	char expected[80], *end;
	if (!text || !*text)
		return false;
	*number = strtod(text, &end);
	uint64_t scale = factor(end);
	*number *= (double)scale;
	if (end == text || !scale || !(*number >= least) || *number > most) {
		snprintf(expected, sizeof(expected), "a number from %.15g to %.15g",
			least, most);
		wrong(name, text, expected);
	}
	return true;
}

/* Read a whole number. */
uint64_t gasneti_setting(
	const char *name, uint64_t by_default, uint64_t least, uint64_t most)
{
	double number;
	char shown[32];
	bool given = read_number(name, (double)least, (double)most, &number);
	uint64_t value = given ? (uint64_t)number : by_default;
	snprintf(shown, sizeof(shown), "%llu", (unsigned long long)value);
	show(name, shown, given);
	return value;
}

double gasneti_setting_real(
	const char *name, double by_default, double least, double most)
{
	double value = by_default;
	char shown[32];
	bool given = read_number(name, least, most, &value);
	snprintf(shown, sizeof(shown), "%g", value);
	show(name, shown, given);
	return value;
}

static uint32_t number(
	const char *name, uint64_t by_default, uint64_t least, uint64_t most)
{
	return (uint32_t)gasneti_setting(name, by_default, least, most);
}

/* Return the index of a word in a list that NULL ends, or of its end. */
static int find_word(const char *const *words, const char *text)
{
	int index = 0;
	while (words[index] && strcasecmp(words[index], text))
		index++;
	return index;
}

/* End the job: the setting is none of the words. */
static void wrong_word(const char *name, const char *text, const char *const *words)
{
	char all[128] = "one of";
	for (int i = 0; words[i]; i++) {
		size_t used = strlen(all);
		snprintf(all + used, sizeof(all) - used, " %s", words[i]);
	}
	wrong(name, text, all);
}

/* Read a word of a list that NULL ends; return its index. */
static int choice(const char *name, const char *const *words, int by_default)
{
	const char *text = getenv(name);
	int index = by_default;
	if (text && *text) {
		index = find_word(words, text);
		if (!words[index])
			wrong_word(name, text, words);
	}
	show(name, words[index], text && *text);
	return index;
}

/* Read a switch: 0 or 1, no or yes. */
static bool is_on(const char *name, bool by_default)
{
	static const char *const words[] = {
		"0", "1", "no", "yes", "n", "y", "off", "on", "false", "true", NULL};
	return choice(name, words, by_default) % 2;
}

static void read_credits(struct gasneti_settings *set)
{
	uint32_t n = gasneti.nodes, peers = n > 1 ? n - 1 : 1;
	uint32_t share = 2048 / peers, tens = n < 64 ? n : 64;
	share = share < GASNETI_MIN_CREDITS ? GASNETI_MIN_CREDITS
		: share > 128               ? 128
					    : share;
	set->flow_control = is_on("GASNET_PORTAL_FLOW_CONTROL", true);
	set->dynamic = is_on("GASNET_PORTAL_DYNAMIC_CREDITS", true);
	set->max_credits = number(
		"GASNET_PORTAL_MAX_CRED_PER_NODE", 400, GASNETI_MIN_CREDITS, 10000);
	set->credits = number("GASNET_PORTAL_CRED_PER_NODE", share, GASNETI_MIN_CREDITS,
		set->max_credits);
	set->banked = number("GASNET_PORTAL_BANKED_CREDITS", 512 + 64 * tens, 0, 1000000);
	set->epoch = number("GASNET_PORTAL_EPOCH_DURATION", 1024, 1, 1000000);
	set->lend_limit = number("GASNET_PORTAL_LENDER_LIMIT", 32, 0, 10000);
	set->revoke_limit = number("GASNET_PORTAL_REVOKE_LIMIT", 32, 0, 10000);
	set->scavenge = number("GASNET_PORTAL_SCAVENGE_BREADTH", 6, 1, 1024);
}

static void read_local(struct gasneti_settings *set)
{
	static const char *const modes[] = {"all", "bounce", "tmpmd", "firehose", NULL};
	static const char *const segments[] = {"auto", "heap", "mmap", NULL};
	set->local = choice("GASNET_PORTAL_LOCAL", modes, GASNETI_LOCAL_ALL);
	set->segment = *segments[choice("GASNET_PORTAL_SEGMENT", segments, 0)];
	set->bounce_limit = number(
		"GASNET_PORTAL_PUTGET_BOUNCE_LIMIT", GASNETI_CHUNK, 0, GASNETI_CHUNK);
	set->tmpmds = number("GASNET_PORTAL_NUM_TMPMD", 1024, 1, 0x3fff);
	set->fh_region = gasneti_setting("GASNET_FIREHOSE_MAXREGION_SIZE", 128 << 10,
				 2 * GASNET_PAGESIZE, 1 << 30) &
			 ~(uint64_t)(GASNET_PAGESIZE - 1);
	set->fh_regions = gasneti_setting("GASNET_FIREHOSE_R", 1024, 2, 0x7fff);
	set->fh_bytes = gasneti_setting("GASNET_FIREHOSE_M",
		set->fh_regions * set->fh_region, 2 * set->fh_region, UINT64_MAX / 2);
}

void gasneti_settings_read(void)
{
	struct gasneti_settings *set = &gasneti.set;
	set->verbose = is_on("GASNET_VERBOSEENV", false);
	set->max_threads =
		number("GASNET_MAX_THREADS", GASNETI_MAX_THREADS, 1, GASNETI_MAX_THREADS);
	set->msg_limit = number("GASNET_PORTAL_MSG_LIMIT", 1024, 12, 100000);
	set->sb_chunks = number("GASNET_PORTAL_SB_CHUNKS", 256, 2, 0x3ff0);
	set->rpl_chunks = number("GASNET_PORTAL_RPL_CHUNKS", 64, 1, 0x3ff0);
	set->handlers = GASNETI_THREADS ? number("GASNET_PORTAL_HANDLERS", 4, 1, 64) : 1;
	set->safe_limit = number("GASNET_PORTAL_SAFE_LIMIT", 12, 0, 100000);
	set->am_limit = number("GASNET_PORTAL_AM_LIMIT", 8, 0, 100000);
	set->safe_limit = set->safe_limit ? set->safe_limit : UINT32_MAX;
	set->am_limit = set->am_limit ? set->am_limit : UINT32_MAX;
	set->watch_ms = number("GASNET_PORTAL_WATCH_MS", 200, 1, 10000);
	set->packed = is_on("GASNET_PORTAL_PACKED_LONG", true);
	set->stats = is_on("GASNET_PORTAL_STATS", false);
	read_credits(set);
	read_local(set);
}

/* ---- errors ---- */

static const struct {
	int code;
	const char *name, *text;
} errors[] = {
	{GASNET_OK, "GASNET_OK", "No error"},
	{GASNET_ERR_NOT_INIT, "GASNET_ERR_NOT_INIT",
		"GASNet is not initialized, or has been initialized already"},
	{GASNET_ERR_RESOURCE, "GASNET_ERR_RESOURCE", "A resource or the network failed"},
	{GASNET_ERR_BAD_ARG, "GASNET_ERR_BAD_ARG", "An argument is illegal"},
	{GASNET_ERR_NOT_READY, "GASNET_ERR_NOT_READY",
		"The operation is not complete, or the lock not free"},
	{GASNET_ERR_BARRIER_MISMATCH, "GASNET_ERR_BARRIER_MISMATCH",
		"The values of the nodes at the barrier differ"},
};

const char *gasnet_ErrorName(int code)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
		if (errors[i].code == code)
			return errors[i].name;
	return "unknown GASNet error";
}

const char *gasnet_ErrorDesc(int code)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
		if (errors[i].code == code)
			return errors[i].text;
	return "This number is no error of GASNet";
}

/* Print a message and abort the job. */
void gasneti_fatal(const char *format, ...)
{
	char text[512];
	va_list ap;
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	dprintf(STDERR_FILENO, "*** GASNet FATAL ERROR (node %u of %u): %s\n", gasneti.me,
		gasneti.nodes, text);
	if (gasneti.state == GASNETI_FRESH)
		abort();
	gasneti_leave(128 + 6, 6, false);
}

void gasneti_portals_failed(const char *call, int rc)
{
	gasneti_fatal("%s: %s", call, PtlErrorStr((unsigned)rc));
}

void gasneti_no_node(uint32_t node)
{
	gasneti_fatal("a put, get or memset to node %u; expected 0 to %u", node,
		gasneti.nodes - 1);
}

/*
 * An operation failed since its peer has died: end the job.  If the peer has left, its
 * EXIT is here, and the watch thread ends this process with its code.
 */
void gasneti_peer_died(uint32_t node)
{
	gasneti_exit_check();
	char target[32] = "its target";
	if (node != gasneti.me)
		snprintf(target, sizeof(target), "node %u", node);
	dprintf(STDERR_FILENO, "*** GASNet (node %u of %u): a message failed: %s died\n",
		gasneti.me, gasneti.nodes, target);
	gasneti_leave(1, 0, false);
}

/* ---- statistics ---- */

/* The watch thread prints them, so they avoid the lock of stderr, as messages of errors
 * do: the program may hold it for ever. */

#define LLU(n) ((unsigned long long)(n))

/* Print for each pair the credits that this node has lent, and those that it holds. */
static void pair_statistics(void)
{
	for (uint32_t i = 0; i < gasneti.nodes; i++)
		if (i != gasneti.me)
			dprintf(STDERR_FILENO,
				"gasnet pair %u %u: loan %u held %u in use %u\n",
				gasneti.me, i, gasneti_get(&gasneti.peers[i].loan),
				gasneti_get(&gasneti.peers[i].send),
				gasneti_get(&gasneti.peers[i].in_use));
}

static void credit_statistics(void)
{
	const struct gasneti_stats *s = &gasneti.stats;
	uint64_t loans = 0, held = 0;
	for (uint32_t i = 0; i < gasneti.nodes; i++) {
		loans += gasneti_get(&gasneti.peers[i].loan);
		held += gasneti_get(&gasneti.peers[i].send);
	}
	dprintf(STDERR_FILENO,
		"gasnet credits %u: loans %llu and bank %u of %u, held %llu; lent %llu, "
		"revoked %llu, returned %llu\n",
		gasneti.me, LLU(loans), gasneti_credits_bank(), gasneti_credits_total(),
		LLU(held), LLU(s->lent), LLU(s->revoked), LLU(s->returned));
}

/* Print the counters of this node: GASNET_PORTAL_STATS=1. */
void gasneti_statistics(void)
{
	const struct gasneti_stats *s = &gasneti.stats;
	ptl_sr_value_t drops = -1;
	if (!gasneti.set.stats)
		return;
	PtlNIStatus(gasneti.ni, PTL_SR_DROP_COUNT, &drops);
	credit_statistics();
	pair_statistics();
	dprintf(STDERR_FILENO,
		"gasnet stats %u: drops %lld; stalls: tickets %llu credits %llu chunks "
		"%llu; fewest tickets %lld; buffer turns %llu; most lids %llu\n",
		gasneti.me, (long long)drops, LLU(s->ticket_stalls),
		LLU(s->credit_stalls), LLU(s->chunk_stalls), (long long)s->tickets_low,
		LLU(s->turns), LLU(s->lid_high));
	if (gasneti.set.local == GASNETI_LOCAL_FIREHOSE)
		dprintf(STDERR_FILENO,
			"gasnet firehose %u: hits %llu misses %llu merges %llu evictions "
			"%llu; most regions %llu of %llu, most bytes %llu of %llu\n",
			gasneti.me, LLU(s->hits), LLU(s->misses), LLU(s->merges),
			LLU(s->evictions), LLU(s->regions_high),
			LLU(gasneti.set.fh_regions), LLU(s->bytes_high),
			LLU(gasneti.set.fh_bytes));
}
