/* SPDX-License-Identifier: BSD-3-Clause */
/* The hosts of a job: reading their names and slots, placing ranks. */
#include "launcher/yod/hosts.h"
#include "launcher/yod/say.h"
#include "shm/layout.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST     P3_MAX_NODES
#define LINE_LEN 400
#define BLANKS   " \t\r\n"

/* ---- one host ---- */

static bool is_name(const char *name)
{
	size_t len = strlen(name);
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr("-_.:@%+", name[i]))
			return false;
	return len && len <= P3_HOST_NAMES && *name != '-';
}

static bool take_slots(const char *text, uint32_t *slots_out)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);
	*slots_out = (uint32_t)n;
	return isdigit((unsigned char)*text) && !*end && n >= 1 && n <= MOST;
}

/* Split "name", "name:slots" or "[address]:slots"; the text is changed. */
static bool split(char *text, char **name_out, uint32_t *slots_out)
{
	char *close = *text == '[' ? strchr(text, ']') : NULL;
	char *colon = strchr(close ? close : text, ':');
	*name_out = text + (close != NULL);
	*slots_out = 0;
	if (close && close[1] && close + 1 != colon)
		return false;
	if (colon && !take_slots(colon + 1, slots_out))
		return false;
	if (colon)
		*colon = '\0';
	if (close)
		*close = '\0';
	return is_name(*name_out);
}

static bool is_there(const struct p3_hosts *h, const char *name)
{
	for (uint32_t i = 0; i < h->n; i++)
		if (!strcmp(h->host[i].name, name))
			return true;
	return false;
}

static int add(struct p3_hosts *h, const char *option, const char *name, uint32_t slots)
{
	if (is_there(h, name)) {
		p3_say("%s: host '%s' is there twice; expected once, with all its "
		       "slots, as in %s:4",
			option, name, name);
		return -EINVAL;
	}
	if (h->n == MOST) {
		p3_say("%s: '%s' is host number %u; expected %u hosts at most", option,
			name, h->n + 1, (unsigned)MOST);
		return -EINVAL;
	}
	struct p3_host *more = realloc(h->host, (h->n + 1) * sizeof *more);
	if (!more)
		return -ENOMEM;
	h->host = more;
	struct p3_host *host = &h->host[h->n++];
	*host = (struct p3_host){.slots = slots};
	memcpy(host->name, name, strlen(name) + 1);
	return 0;
}

/* ---- a list ---- */

static int say_bad_word(const char *word)
{
	p3_say("--hosts: '%.100s' is no host; expected names, each with its "
	       "number of slots or without, as in --hosts c1:4,c2:2",
		word);
	return -EINVAL;
}

int p3_hosts_parse(const char *list, struct p3_hosts *hosts_out)
{
	struct p3_hosts h = {0};
	char *copy = strdup(list), *rest = copy, *word;
	int rc = copy ? 0 : -ENOMEM;
	while (!rc && (word = strsep(&rest, ","))) {
		char *name, said[P3_HOST_NAMES + 40];
		uint32_t slots;
		snprintf(said, sizeof said, "%s", word);
		rc = split(word, &name, &slots) ? add(&h, "--hosts", name, slots)
						: say_bad_word(said);
	}
	free(copy);
	*hosts_out = h;
	return rc;
}

/* ---- a file ---- */

static int say_bad_line(const char *file, uint32_t line, const char *text)
{
	p3_say("--hostfile: %s:%u: '%.100s' is no host; expected a name in each "
	       "line, with its number of slots or without, as in c1:4 or c1 "
	       "slots=4",
		file, line, text);
	return -EINVAL;
}

/* Take a line.  It is changed, and has no newline. */
static int take_line(struct p3_hosts *h, const char *file, uint32_t line, char *text)
{
	char said[LINE_LEN], *name;
	uint32_t slots, more = 0;
	text[strcspn(text, "#")] = '\0';
	text += strspn(text, BLANKS);
	snprintf(said, sizeof said, "%s", text);
	char *rest = text + strcspn(text, BLANKS);
	if (*rest)
		*rest++ = '\0';
	rest += strspn(rest, BLANKS);
	rest[strcspn(rest, BLANKS)] = '\0';
	if (!*text)
		return 0;
	bool has_more = !strncmp(rest, "slots=", 6) && take_slots(rest + 6, &more);
	if (!split(text, &name, &slots) || (*rest && (!has_more || slots)))
		return say_bad_line(file, line, said);
	return add(h, "--hostfile", name, slots ? slots : more);
}

static int take_lines(struct p3_hosts *h, const char *file, FILE *f)
{
	char *text = NULL;
	size_t size = 0;
	int rc = 0;
	for (uint32_t line = 1; !rc && getline(&text, &size, f) > 0; line++) {
		text[strcspn(text, "\n")] = '\0';
		rc = take_line(h, file, line, text);
	}
	free(text);
	if (rc || h->n)
		return rc;
	p3_say("--hostfile: '%s' has no hosts; expected a name in each line, as "
	       "in c1:4",
		file);
	return -EINVAL;
}

int p3_hosts_read(const char *file, struct p3_hosts *hosts_out)
{
	*hosts_out = (struct p3_hosts){0};
	FILE *f = fopen(file, "re");
	if (!f) {
		p3_say("--hostfile: '%s': %s; expected a file with the name of a "
		       "host in each line",
			file, strerror(errno));
		return -EINVAL;
	}
	int rc = take_lines(hosts_out, file, f);
	fclose(f);
	return rc;
}

/* ---- placement ---- */

static uint64_t count_slots(const struct p3_hosts *h)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < h->n; i++)
		n += h->host[i].slots;
	return n;
}

/* Give each host slots: those it has, or one, or if no host has any its even share. */
static void even_out(struct p3_hosts *h, uint32_t size)
{
	bool given = count_slots(h) > 0;
	for (uint32_t i = 0; i < h->n; i++)
		if (!given)
			h->host[i].slots = size / h->n + (i < size % h->n);
		else if (!h->host[i].slots)
			h->host[i].slots = 1;
}

int p3_hosts_place(struct p3_hosts *h, uint32_t size)
{
	uint32_t first = 0, used = 0;
	even_out(h, size);
	uint64_t slots = count_slots(h);
	if (slots < size) {
		p3_say("-sz: %u nodes, but the hosts have %llu slots; expected "
		       "%llu nodes at most, or more slots, as in --hosts c1:4",
			size, (unsigned long long)slots, (unsigned long long)slots);
		return -EINVAL;
	}
	for (uint32_t i = 0; i < h->n && first < size; i++, used++) {
		struct p3_host *host = &h->host[i];
		host->first = first;
		host->size = host->slots < size - first ? host->slots : size - first;
		first += host->size;
	}
	h->n = used;
	return 0;
}

const struct p3_host *p3_hosts_of(const struct p3_hosts *h, uint32_t rank)
{
	uint32_t i = h->n - 1;
	while (i && h->host[i].first > rank)
		i--;
	return &h->host[i];
}
