/* SPDX-License-Identifier: BSD-3-Clause */
/* The settings: the requested values, and the values in effect at each node. */
#include "launcher/ptlstat/ptlstat.h"
#include "shm/conf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENV_MOST 262144

/* Replace control characters: a program can write any text into its environment, and a
 * terminal would obey them. */
static void make_printable(char *env, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (env[i] && ((unsigned char)env[i] < ' ' || env[i] == 0x7f))
			env[i] = '?';
}

/* Return the environment with which the node's program was started, or NULL. */
static char *environment_of(const struct ptl_node *n, size_t *len_out)
{
	char path[40];
	uint32_t pid = ptl_process_of(n);
	snprintf(path, sizeof path, "/proc/%u/environ", pid);
	FILE *f = ptl_is_alive(n) ? fopen(path, "re") : NULL;
	if (!f)
		return NULL;
	char *env = malloc(ENV_MOST + 1);
	*len_out = env ? fread(env, 1, ENV_MOST, f) : 0;
	fclose(f);
	if (env) {
		make_printable(env, *len_out);
		env[*len_out] = '\0';
	}
	return env;
}

/* Return the value of a name in an environment, or NULL. */
static const char *in_environment(const char *env, size_t len, const char *name)
{
	size_t n = strlen(name);
	for (const char *at = env; at && at < env + len; at += strlen(at) + 1)
		if (!strncmp(at, name, n) && at[n] == '=' && at[n + 1])
			return at + n + 1;
	return NULL;
}

static const char *size_text(uint64_t bytes, char text[30])
{
	if (bytes && bytes % (1 << 30) == 0)
		snprintf(text, 30, "%lluG", (unsigned long long)bytes >> 30);
	else if (bytes && bytes % (1 << 20) == 0)
		snprintf(text, 30, "%lluM", (unsigned long long)bytes >> 20);
	else
		snprintf(text, 30, "%llu", (unsigned long long)bytes);
	return text;
}

/* Return the value in effect, or NULL if the node's words do not tell the value. */
const char *ptl_conf_got(const uint64_t *w, enum p3_conf_id id, char text[30])
{
	switch (id) {
	case P3_CONF_MODE:
		return ptl_mode_name(w[P3_G_MODE]);
	case P3_CONF_MATCH:
		return strcmp(ptl_mode_name(w[P3_G_MODE]), "generic") == 0 ? "host"
									   : "firmware";
	case P3_CONF_HUGEPAGES:
		return w[P3_G_PAGE] >= P3_HUGE ? "on" : "off";
	case P3_CONF_CMA:
		return w[P3_G_CMA] ? "on" : "off";
	case P3_CONF_BULK:
		return w[P3_G_BULK] ? "on" : "off";
	case P3_CONF_MEMBARRIER:
		return w[P3_G_MEMBARRIER] ? "on" : "off";
	case P3_CONF_LANES:
		return w[P3_G_BASE_LANES] ? "base" : NULL; /* else full or unswept */
	case P3_CONF_HEAP:
		return size_text(w[P3_G_HEAP], text);
	default:
		return NULL;
	}
}

static void print_row(
	const char *node, const struct p3_conf_row *row, const char *set, const char *got)
{
	printf("%5s  %-18s %-16s %s\n", node, row->name, set ? set : "-",
		got   ? got
		: set ? set
		      : row->usual);
}

static void conf_of_node(const struct ptl_picture *p, uint32_t i)
{
	const struct ptl_node *n = &p->node[i];
	size_t len = 0;
	char rank[20], text[30];
	snprintf(rank, sizeof rank, "%u", i);
	if (n->unseen) {
		printf("%5u  %s\n", i, n->unseen);
		return;
	}
	char *env = environment_of(n, &len);
	for (int id = 0; id < P3_CONF_ROWS; id++) {
		const struct p3_conf_row *row = p3_conf_row((enum p3_conf_id)id);
		print_row(rank, row, in_environment(env, len, row->name),
			ptl_conf_got(n->word, (enum p3_conf_id)id, text));
	}
	free(env);
}

/* Return true if a node's values are those of the node before it: they are not shown
 * again. */
static bool is_as_before(const struct ptl_picture *p, uint32_t i)
{
	const struct ptl_node *n = &p->node[i];
	if (!i || n->unseen || p->node[i - 1].unseen)
		return false;
	return !memcmp(&n->word[P3_G_MODE], &p->node[i - 1].word[P3_G_MODE],
		(P3_G_SPIN + 1 - P3_G_MODE) * sizeof n->word[0]);
}

static void conf_of_nobody(void)
{
	printf("%-18s %-16s %s\n", "setting", "here", "usual");
	for (int id = 0; id < P3_CONF_ROWS; id++) {
		const struct p3_conf_row *row = p3_conf_row((enum p3_conf_id)id);
		const char *text = p3_conf_text((enum p3_conf_id)id);
		printf("%-18s %-16s %s\n", row->name, text ? text : "-", row->usual);
	}
}

void ptl_conf(const struct ptl_picture *p)
{
	if (!p) {
		conf_of_nobody();
		return;
	}
	printf("%5s  %-18s %-16s %s\n", "node", "setting", "set to", "got");
	for (uint32_t i = 0; i < p->size; i++) {
		if (is_as_before(p, i))
			printf("%5u  as node %u\n", i, i - 1);
		else
			conf_of_node(p, i);
	}
}
