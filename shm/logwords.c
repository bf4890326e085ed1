/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of PTL3_LOG, and its parser: also for programs that have no log of their
 * own. */
#include "shm/log.h"

#include <string.h>

const char *const p3_log_level_names[P3_LOG_LEVELS] = {
	"off", "error", "warn", "info", "drops", "debug"};
const char *const p3_log_area_names[P3_LOG_AREAS] = {
	"job", "nic", "peer", "match", "send", "event", "heap"};

/* Return the index of a word among n words, or n. */
static unsigned index_of(
	const char *const *words, unsigned n, const char *word, size_t len)
{
	unsigned i = 0;
	while (i < n && (strlen(words[i]) != len || memcmp(words[i], word, len) != 0))
		i++;
	return i;
}

/* Parse one item of the list, such as "drops" or "match:drops". */
static bool parse_item(const char *item, size_t len, uint8_t levels[P3_LOG_AREAS])
{
	const char *colon = memchr(item, ':', len);
	const char *word = colon ? colon + 1 : item;
	unsigned area = P3_LOG_AREAS;
	unsigned level = index_of(
		p3_log_level_names, P3_LOG_LEVELS, word, len - (size_t)(word - item));
	if (colon)
		area = index_of(
			p3_log_area_names, P3_LOG_AREAS, item, (size_t)(colon - item));
	if (level == P3_LOG_LEVELS || (colon && area == P3_LOG_AREAS))
		return false;
	if (colon)
		levels[area] = (uint8_t)level;
	else
		memset(levels, (int)level, P3_LOG_AREAS);
	return true;
}

bool p3_log_parse(const char *text, uint8_t levels_out[P3_LOG_AREAS])
{
	memset(levels_out, P3_LOG_WARN, P3_LOG_AREAS);
	if (!text || !*text)
		return true;
	for (;;) {
		size_t len = strcspn(text, ",");
		if (!parse_item(text, len, levels_out))
			return false;
		if (!text[len])
			return true;
		text += len + 1;
	}
}
