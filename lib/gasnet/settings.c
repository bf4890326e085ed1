/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * settings.c - settings from the environment
 *
 * GASNET_VERBOSEENV=1 lets node 0 print each setting that it reads.
 */
#include <ctype.h>
#include <strings.h>
#include <unistd.h>

#include "internal.h"

/* ---- settings ---- */

static void setting_show(const char *name, const char *value, bool given)
{
	if (gasneti.set.verbose && gasneti.me == 0)
		fprintf(stderr, "ENV parameter: %s = %s%s\n", name, value,
			given ? "" : "   (default)");
}

static void setting_wrong(const char *name, const char *value, const char *expected)
{
	gasneti_fatal("%s is '%s'; expected %s", name, value, expected);
}

/* Return the factor of a suffix K, M, G or T; 0 for any other text. */
static uint64_t setting_factor(const char *suffix)
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
static bool setting_read_number(
	const char *name, double least, double most, double *number)
{
	const char *text = getenv(name);
	char expected[80], *end;
	if (!text || !*text)
		return false;
	*number = strtod(text, &end);
	uint64_t scale = setting_factor(end);
	*number *= (double)scale;
	if (end == text || !scale || !(*number >= least) || *number > most) {
		snprintf(expected, sizeof(expected), "a number from %.15g to %.15g",
			least, most);
		setting_wrong(name, text, expected);
	}
	return true;
}

/* Read a whole number. */
uint64_t gasneti_setting(
	const char *name, uint64_t by_default, uint64_t least, uint64_t most)
{
	double number;
	char shown[32];
	bool given = setting_read_number(name, (double)least, (double)most, &number);
	uint64_t value = given ? (uint64_t)number : by_default;
	snprintf(shown, sizeof(shown), "%llu", (unsigned long long)value);
	setting_show(name, shown, given);
	return value;
}

static double setting_real(const char *name, double by_default, double least, double most)
{
	double value = by_default;
	char shown[32];
	bool given = setting_read_number(name, least, most, &value);
	snprintf(shown, sizeof(shown), "%g", value);
	setting_show(name, shown, given);
	return value;
}

static uint32_t setting_number(
	const char *name, uint64_t by_default, uint64_t least, uint64_t most)
{
	return (uint32_t)gasneti_setting(name, by_default, least, most);
}

/* Return the index of a word in a list that NULL ends, or of its end. */
static int setting_find_word(const char *const *words, const char *text)
{
	int index = 0;
	while (words[index] && strcasecmp(words[index], text))
		index++;
	return index;
}

/* End the job: the setting is none of the words. */
static void setting_wrong_word(
	const char *name, const char *text, const char *const *words)
{
	char all[128] = "one of";
	for (int i = 0; words[i]; i++) {
		size_t used = strlen(all);
		snprintf(all + used, sizeof(all) - used, " %s", words[i]);
	}
	setting_wrong(name, text, all);
}

/* Read a word of a list that NULL ends; return its index. */
static int setting_choice(const char *name, const char *const *words, int by_default)
{
	const char *text = getenv(name);
	int index = by_default;
	if (text && *text) {
		index = setting_find_word(words, text);
		if (!words[index])
			setting_wrong_word(name, text, words);
	}
	setting_show(name, words[index], text && *text);
	return index;
}

/* Read a switch: 0 or 1, no or yes. */
static bool setting_is_on(const char *name, bool by_default)
{
	static const char *const words[] = {
		"0", "1", "no", "yes", "n", "y", "off", "on", "false", "true", NULL};
	return setting_choice(name, words, by_default) % 2;
}

static void settings_read_credits(struct gasneti_settings *set)
{
	uint32_t n = gasneti.nodes, peers = n > 1 ? n - 1 : 1;
	uint32_t share = 2048 / peers, tens = n < 64 ? n : 64;
	share = share < GASNETI_MIN_CREDITS ? GASNETI_MIN_CREDITS
		: share > 128               ? 128
					    : share;
	set->flow_control = setting_is_on("GASNET_PORTAL_FLOW_CONTROL", true);
	set->dynamic = setting_is_on("GASNET_PORTAL_DYNAMIC_CREDITS", true);
	set->max_credits = setting_number(
		"GASNET_PORTAL_MAX_CRED_PER_NODE", 400, GASNETI_MIN_CREDITS, 10000);
	set->credits = setting_number("GASNET_PORTAL_CRED_PER_NODE", share,
		GASNETI_MIN_CREDITS, set->max_credits);
	set->banked = setting_number(
		"GASNET_PORTAL_BANKED_CREDITS", 512 + 64 * tens, 0, 1000000);
	set->epoch = setting_number("GASNET_PORTAL_EPOCH_DURATION", 1024, 1, 1000000);
	set->lend_limit = setting_number("GASNET_PORTAL_LENDER_LIMIT", 32, 0, 10000);
	set->revoke_limit = setting_number("GASNET_PORTAL_REVOKE_LIMIT", 32, 0, 10000);
	set->scavenge = setting_number("GASNET_PORTAL_SCAVENGE_BREADTH", 6, 1, 1024);
}

static void settings_read_local(struct gasneti_settings *set)
{
	static const char *const modes[] = {"all", "bounce", "tmpmd", "firehose", NULL};
	static const char *const segments[] = {"auto", "heap", "mmap", NULL};
	set->local = setting_choice("GASNET_PORTAL_LOCAL", modes, GASNETI_LOCAL_ALL);
	set->segment = *segments[setting_choice("GASNET_PORTAL_SEGMENT", segments, 0)];
	set->bounce_limit = setting_number(
		"GASNET_PORTAL_PUTGET_BOUNCE_LIMIT", GASNETI_CHUNK, 0, GASNETI_CHUNK);
	set->tmpmds = setting_number("GASNET_PORTAL_NUM_TMPMD", 1024, 1, 0x3fff);
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
	set->verbose = setting_is_on("GASNET_VERBOSEENV", false);
	set->max_threads = setting_number(
		"GASNET_MAX_THREADS", GASNETI_MAX_THREADS, 1, GASNETI_MAX_THREADS);
	set->msg_limit = setting_number("GASNET_PORTAL_MSG_LIMIT", 1024, 12, 100000);
	set->sb_chunks = setting_number("GASNET_PORTAL_SB_CHUNKS", 256, 2, 0x3ff0);
	set->rpl_chunks = setting_number("GASNET_PORTAL_RPL_CHUNKS", 64, 1, 0x3ff0);
	set->handlers =
		GASNETI_THREADS ? setting_number("GASNET_PORTAL_HANDLERS", 4, 1, 64) : 1;
	set->safe_limit = setting_number("GASNET_PORTAL_SAFE_LIMIT", 12, 0, 100000);
	set->am_limit = setting_number("GASNET_PORTAL_AM_LIMIT", 8, 0, 100000);
	set->safe_limit = set->safe_limit ? set->safe_limit : UINT32_MAX;
	set->am_limit = set->am_limit ? set->am_limit : UINT32_MAX;
	set->watch_ms = setting_number("GASNET_PORTAL_WATCH_MS", 200, 1, 10000);
	set->packed = setting_is_on("GASNET_PORTAL_PACKED_LONG", true);
	set->stats = setting_is_on("GASNET_PORTAL_STATS", false);
	settings_read_credits(set);
	settings_read_local(set);
}

/* Return the milliseconds that a coordinated end may take. */
uint64_t gasneti_setting_exit_ms(void)
{
	enum { MOST = 1000000 };
	double most = setting_real("GASNET_EXITTIMEOUT_MAX", 360, 0.001, MOST);
	double least = setting_real("GASNET_EXITTIMEOUT_MIN", 3, 0, MOST);
	double each = setting_real("GASNET_EXITTIMEOUT_FACTOR", 0.125, 0, MOST);
	double sum = least + gasneti.nodes * each;
	double seconds =
		setting_real("GASNET_EXITTIMEOUT", sum < most ? sum : most, 0.001, MOST);
	return (uint64_t)(seconds * 1000);
}
