/* SPDX-License-Identifier: BSD-3-Clause */
/* The job that is asked for: programs, settings, hosts, and all of it as bytes. */
#include "launcher/yod/remote.h"
#include "shm/conf.h"
#include "shm/layout.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define USUAL_PATH "/bin:/usr/bin" /* the default of execvp() */

const struct p3_prog *p3_prog_of(const struct p3_prog *progs, uint32_t n, uint32_t rank)
{
	while (n > 1 && progs[n - 1].first > rank)
		n--;
	return &progs[n - 1];
}

int p3_prog_env_add(struct p3_prog *prog, const char *pair)
{
	const char **env = realloc(prog->env, (prog->env_n + 2) * sizeof *env);
	if (!env)
		return -ENOMEM;
	env[prog->env_n++] = pair;
	env[prog->env_n] = NULL;
	prog->env = env;
	return 0;
}

const char *p3_prog_getenv(const struct p3_prog *prog, const char *name)
{
	size_t len = strlen(name);
	for (uint32_t i = prog->env_n; i-- > 0;)
		if (!strncmp(prog->env[i], name, len) && prog->env[i][len] == '=')
			return prog->env[i] + len + 1;
	return getenv(name);
}

/* ---- the check ---- */

static int prog_can_run(int dir, const char *path)
{
	struct stat st;
	if (fstatat(dir, path, &st, 0))
		return errno;
	if (!S_ISREG(st.st_mode))
		return EACCES;
	return faccessat(dir, path, X_OK, AT_EACCESS) ? errno : 0;
}

/* Search PATH as execvp() does: a file that may not be run is remembered, and the
 * search goes on. */
static int prog_find_in_path(int dir, const char *name, const char *path)
{
	int err = ENOENT;
	for (const char *at = path;; at++) {
		char file[PATH_MAX];
		int len = (int)strcspn(at, ":");
		int n = snprintf(
			file, sizeof file, "%.*s%s%s", len, at, len ? "/" : "", name);
		int why = n < (int)sizeof file ? prog_can_run(dir, file) : ENAMETOOLONG;
		if (!why)
			return 0;
		if (why == EACCES)
			err = EACCES;
		at += len;
		if (!*at)
			return err;
	}
}

int p3_prog_check(const struct p3_prog *prog)
{
	int dir = AT_FDCWD;
	if (prog->dir) {
		dir = open(prog->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (dir < 0 || faccessat(dir, ".", X_OK, AT_EACCESS)) {
			p3_say_at(prog->place);
			p3_say("--wdir: '%s': %s; expected a directory that may be "
			       "entered",
				prog->dir, strerror(errno));
			p3_say_at(NULL);
			return P3_STATUS_NO_FILE;
		}
	}
	const char *name = prog->argv[0], *path = p3_prog_getenv(prog, "PATH");
	int err = strchr(name, '/')
			  ? prog_can_run(dir, name)
			  : prog_find_in_path(dir, name, path ? path : USUAL_PATH);
	if (dir != AT_FDCWD)
		close(dir);
	return err ? p3_prog_say_cannot(prog, err) : 0;
}

int p3_prog_say_cannot(const struct p3_prog *prog, int err)
{
	bool missing = err == ENOENT || err == ENOTDIR;
	p3_say_at(prog->place);
	if (missing)
		p3_say("%s: cannot be run: no such program (or its interpreter is "
		       "missing); expected a file, or a name found in PATH",
			prog->argv[0]);
	else
		p3_say("%s: cannot be run: %s; expected an executable file",
			prog->argv[0], strerror(err));
	p3_say_at(NULL);
	return missing ? P3_STATUS_NO_FILE : P3_STATUS_NO_EXEC;
}

/* ---- settings ---- */

#define SETTINGS_LINE_LEN 480

const char *p3_settings_text(const struct p3_prog *prog, int conf_id)
{
	const char *text =
		p3_prog_getenv(prog, p3_conf_row((enum p3_conf_id)conf_id)->name);
	return text && *text ? text : NULL;
}

static int settings_check_row(enum p3_conf_id id, const char *text)
{
	char line[SETTINGS_LINE_LEN];
	uint64_t value;
	struct p3_cpuset set;
	if (!p3_conf_value(p3_conf_row(id), text, &value)) {
		p3_conf_complain(p3_conf_row(id), text, line, sizeof line);
		p3_say("%s", line);
		return -EINVAL;
	}
	/* Reject a list of CPUs without any that this job may use. */
	if (id != P3_CONF_NIC_CPUS || !p3_conf_nic_cpus(text, &set) ||
		p3_place_is_possible(&set))
		return 0;
	p3_say("%s is '%.64s'; expected CPUs that this job may use (see taskset -p, "
	       "cpuset cgroups); unset it for the default",
		P3_CONF_NIC_CPUS_ENV, text);
	return -EINVAL;
}

/* Check "NAME=VALUE" of one program. */
static int settings_check_pair(const char *pair)
{
	size_t len = strcspn(pair, "=");
	for (enum p3_conf_id id = 0; id < P3_CONF_ROWS; id++) {
		const char *name = p3_conf_row(id)->name;
		if (strlen(name) != len || strncmp(name, pair, len) != 0)
			continue;
		if (id != P3_CONF_ATTACH) /* which yod reads */
			return settings_check_row(id, pair + len + 1);
		p3_say("%s is for the whole job; expected in the environment of yod",
			name);
		return -EINVAL;
	}
	return 0;
}

static void settings_hear(void *arg, const char *line)
{
	(void)arg;
	p3_say("%s", line);
}

int p3_settings_check(const struct p3_opt *opt)
{
	int rc = 0;
	for (enum p3_conf_id id = 0; id < P3_CONF_ROWS; id++)
		if (settings_check_row(id, p3_conf_text(id)))
			rc = -EINVAL;
	p3_conf_unknown(environ, settings_hear, NULL);
	for (uint32_t i = 0; i < opt->prog_n; i++) {
		const struct p3_prog *prog = &opt->prog[i];
		p3_say_at(prog->place);
		for (uint32_t k = 0; k < prog->env_n; k++)
			if (settings_check_pair(prog->env[k]))
				rc = -EINVAL;
		if (prog->env_n)
			p3_conf_unknown(
				(char *const *)(uintptr_t)prog->env, settings_hear, NULL);
		p3_say_at(NULL);
	}
	return rc;
}

/* ---- hosts ---- */

#define HOSTS_MOST     P3_MAX_NODES
#define HOSTS_LINE_LEN 400
#define HOSTS_BLANKS   " \t\r\n"

static bool hosts_take_slots(const char *text, uint32_t *slots_out)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);
	*slots_out = (uint32_t)n;
	return isdigit((unsigned char)*text) && !*end && n >= 1 && n <= HOSTS_MOST;
}

/* Split "name", "name:slots" or "[address]:slots"; the text is changed. */
static bool hosts_split(char *text, char **name_out, uint32_t *slots_out)
{
	char *close = *text == '[' ? strchr(text, ']') : NULL;
	char *colon = strchr(close ? close : text, ':'), *name = text + (close != NULL);
	*name_out = name;
	*slots_out = 0;
	if (close && close[1] && close + 1 != colon)
		return false;
	if (colon && !hosts_take_slots(colon + 1, slots_out))
		return false;
	if (colon)
		*colon = '\0';
	if (close)
		*close = '\0';
	size_t len = strlen(name), i = 0;
	while (isalnum((unsigned char)name[i]) || (name[i] && strchr("-_.:@%+", name[i])))
		i++;
	return len && i == len && len <= P3_HOST_NAMES && *name != '-';
}

static int hosts_add(
	struct p3_hosts *h, const char *option, const char *name, uint32_t slots)
{
	for (uint32_t i = 0; i < h->n; i++)
		if (!strcmp(h->host[i].name, name)) {
			p3_say("%s: host '%s' is there twice; expected once, with all "
			       "its slots, as in %s:4",
				option, name, name);
			return -EINVAL;
		}
	if (h->n == HOSTS_MOST) {
		p3_say("%s: '%s' is host number %u; expected %u hosts at most", option,
			name, h->n + 1, (unsigned)HOSTS_MOST);
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

int p3_hosts_parse(const char *list, struct p3_hosts *hosts_out)
{
	struct p3_hosts h = {0};
	char *copy = strdup(list), *rest = copy, *word;
	int rc = copy ? 0 : -ENOMEM;
	while (!rc && (word = strsep(&rest, ","))) {
		char *name, said[P3_HOST_NAMES + 40];
		uint32_t slots;
		snprintf(said, sizeof said, "%s", word);
		if (hosts_split(word, &name, &slots)) {
			rc = hosts_add(&h, "--hosts", name, slots);
			continue;
		}
		p3_say("--hosts: '%.100s' is no host; expected names, each with its "
		       "number of slots or without, as in --hosts c1:4,c2:2",
			said);
		rc = -EINVAL;
	}
	free(copy);
	*hosts_out = h;
	return rc;
}

/* Take a line.  It is changed, and has no newline. */
static int hosts_take_line(
	struct p3_hosts *h, const char *file, uint32_t line, char *text)
{
	char said[HOSTS_LINE_LEN], *name, *next;
	uint32_t slots, more = 0;
	text[strcspn(text, "#")] = '\0';
	text += strspn(text, HOSTS_BLANKS);
	snprintf(said, sizeof said, "%s", text);
	char *host = strtok_r(text, HOSTS_BLANKS, &next);
	char *rest = strtok_r(NULL, HOSTS_BLANKS, &next);
	if (!host)
		return 0;
	bool has_more =
		rest && !strncmp(rest, "slots=", 6) && hosts_take_slots(rest + 6, &more);
	if (!hosts_split(host, &name, &slots) || (rest && (!has_more || slots))) {
		p3_say("--hostfile: %s:%u: '%.100s' is no host; expected a name in each "
		       "line, with its number of slots or without, as in c1:4 or c1 "
		       "slots=4",
			file, line, said);
		return -EINVAL;
	}
	return hosts_add(h, "--hostfile", name, slots ? slots : more);
}

int p3_hosts_read(const char *file, struct p3_hosts *hosts_out)
{
	char *text = NULL;
	size_t size = 0;
	int rc = 0;
	*hosts_out = (struct p3_hosts){0};
	FILE *f = fopen(file, "re");
	if (!f) {
		p3_say("--hostfile: '%s': %s; expected a file with the name of a host in "
		       "each line",
			file, strerror(errno));
		return -EINVAL;
	}
	for (uint32_t line = 1; !rc && getline(&text, &size, f) > 0; line++) {
		text[strcspn(text, "\n")] = '\0';
		rc = hosts_take_line(hosts_out, file, line, text);
	}
	free(text);
	fclose(f);
	if (rc || hosts_out->n)
		return rc;
	p3_say("--hostfile: '%s' has no hosts; expected a name in each line, as in c1:4",
		file);
	return -EINVAL;
}

static uint64_t hosts_count_slots(const struct p3_hosts *h)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < h->n; i++)
		n += h->host[i].slots;
	return n;
}

int p3_hosts_place(struct p3_hosts *h, uint32_t size)
{
	uint32_t first = 0, used = 0;
	/* Give each host those slots that it has, or one, or if no host has any its even
	 * share. */
	bool given = hosts_count_slots(h) > 0;
	for (uint32_t i = 0; i < h->n; i++)
		if (!given)
			h->host[i].slots = size / h->n + (i < size % h->n);
		else if (!h->host[i].slots)
			h->host[i].slots = 1;
	uint64_t slots = hosts_count_slots(h);
	if (slots < size) {
		p3_say("-sz: %u nodes, but the hosts have %llu slots; expected %llu "
		       "nodes at most, or more slots, as in --hosts c1:4",
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

/* ---- specifications as bytes ---- */

/* The same functions write the parts of an order, or read them in place of those that are
 * there, so that both know one form. */
struct codec {
	FILE *to; /* NULL: read */
	const char *at;
	size_t left;
	bool bad; /* the bytes are no order, or memory has run out; all reads give 0 */
};

static const void *spec_skip(struct codec *c, size_t len)
{
	const char *at = c->at;
	c->bad |= len > c->left;
	if (c->bad)
		return NULL;
	c->at += len;
	c->left -= len;
	return at;
}

static void spec_bytes(struct codec *c, void *bytes, size_t len)
{
	const void *at = c->to ? NULL : spec_skip(c, len);
	if (c->to)
		fwrite(bytes, 1, len, c->to);
	else if (at)
		memcpy(bytes, at, len);
	else
		memset(bytes, 0, len);
}

static uint64_t spec_number(struct codec *c, uint64_t n, uint64_t most)
{
	spec_bytes(c, &n, sizeof n);
	c->bad |= n > most;
	return c->bad ? 0 : n;
}

static void spec_u32(struct codec *c, uint32_t *n, uint32_t most)
{
	*n = (uint32_t)spec_number(c, *n, most);
}

static void spec_bool(struct codec *c, bool *on)
{
	*on = spec_number(c, *on, 1);
}

/* A text, or NULL: its length with the final zero byte, or 0, and its bytes.  The text
 * that is read lies in them. */
static const char *spec_text(struct codec *c, const char *text)
{
	size_t len = spec_number(c, text ? strlen(text) + 1 : 0, SIZE_MAX);
	if (c->to) {
		fwrite(text ? text : "", 1, len, c->to);
		return text;
	}
	text = len ? spec_skip(c, len) : NULL;
	c->bad |= text && text[len - 1];
	return text;
}

/* A list that ends with NULL: it is new if it is read, or NULL if the bytes are bad. */
static char **spec_list(struct codec *c, char **list)
{
	uint64_t n = 0;
	while (list && list[n])
		n++;
	n = spec_number(c, n, c->to ? n : c->left / sizeof(uint64_t));
	if (!c->to)
		list = c->bad ? NULL : calloc(n + 1, sizeof *list);
	c->bad |= !c->to && !list;
	for (uint64_t i = 0; i < n && !c->bad; i++) {
		list[i] = (char *)(uintptr_t)spec_text(c, list[i]);
		c->bad |= !list[i];
	}
	return list;
}

/* An array of n elements: it is new if it is read. */
static void *spec_array(struct codec *c, void *array, size_t n, size_t each)
{
	if (!c->to)
		array = calloc(n + 1, each);
	c->bad |= !array || !n;
	return array;
}

static void spec_programs(struct codec *c, struct p3_opt *opt)
{
	spec_u32(c, &opt->prog_n, P3_OPT_SIZE_MAX);
	opt->prog = spec_array(c, opt->prog, opt->prog_n, sizeof *opt->prog);
	for (uint32_t i = 0; i < opt->prog_n && !c->bad; i++) {
		struct p3_prog *p = &opt->prog[i];
		spec_u32(c, &p->first, P3_OPT_SIZE_MAX);
		spec_u32(c, &p->size, P3_OPT_SIZE_MAX);
		p->argv = spec_list(c, p->argv);
		c->bad |= !p->argv || !p->argv[0];
		p->env = (const char **)(uintptr_t)spec_list(
			c, (char **)(uintptr_t)p->env);
		while (!c->to && p->env && p->env[p->env_n])
			p->env_n++;
		p->dir = spec_text(c, p->dir);
		p->place = spec_text(c, p->place);
	}
}

/* The options that an agent obeys.  yod itself sees to the others. */
static void spec_options(struct codec *c, struct p3_opt *opt)
{
	spec_u32(c, &opt->size, P3_OPT_SIZE_MAX);
	spec_bool(c, &opt->keep_going);
	spec_bool(c, &opt->only);
	spec_bytes(c, &opt->only_ranks, P3_RANKS_MOST / 8);
	spec_u32(c, &opt->nid_base, P3_OPT_NID_BASE_MOST);
	spec_bool(c, &opt->shared_heap);
	spec_bool(c, &opt->line_buffered);
	opt->valgrind = spec_text(c, opt->valgrind);
	c->bad |= !opt->valgrind;
	spec_bool(c, &opt->stats);
	opt->kill_after_ms =
		(int64_t)spec_number(c, (uint64_t)opt->kill_after_ms, INT64_MAX);
	opt->mode = spec_text(c, opt->mode);
	opt->trace = spec_text(c, opt->trace);
	spec_bytes(c, &opt->place, sizeof opt->place);
}

static void spec_all(struct codec *c, struct p3_spec *o)
{
	struct p3_hosts *hosts = &o->opt.hosts;
	spec_u32(c, &o->jid, UINT32_MAX);
	spec_u32(c, &o->host, P3_OPT_SIZE_MAX);
	o->tag = spec_text(c, o->tag);
	o->dir = spec_text(c, o->dir);
	spec_u32(c, &o->mask, 0777);
	o->env = spec_list(c, o->env);
	spec_options(c, &o->opt);
	spec_u32(c, &hosts->n, P3_OPT_SIZE_MAX);
	hosts->host = spec_array(c, hosts->host, hosts->n, sizeof *hosts->host);
	if (hosts->host)
		spec_bytes(c, hosts->host, hosts->n * sizeof *hosts->host);
	spec_programs(c, &o->opt);
}

char *p3_spec_pack(const struct p3_spec *order, size_t *len_out)
{
	char *bytes = NULL;
	struct p3_spec o = *order;
	struct codec c = {.to = open_memstream(&bytes, len_out)};
	if (!c.to)
		return NULL;
	spec_all(&c, &o);
	c.bad |= ferror(c.to) != 0;
	if (fclose(c.to) || c.bad) {
		free(bytes);
		return NULL;
	}
	return bytes;
}

/* Return true if the ranks of each host and program are ranks of the job. */
static bool spec_is_sound(const struct p3_spec *o)
{
	uint64_t size = o->opt.size;
	for (uint32_t i = 0; i < o->opt.hosts.n; i++) {
		const struct p3_host *h = &o->opt.hosts.host[i];
		if ((uint64_t)h->first + h->size > size || h->name[P3_HOST_NAMES])
			return false;
	}
	for (uint32_t i = 0; i < o->opt.prog_n; i++)
		if ((uint64_t)o->opt.prog[i].first + o->opt.prog[i].size > size)
			return false;
	return size && o->host < o->opt.hosts.n && o->tag && o->dir;
}

bool p3_spec_unpack(const char *bytes, size_t len, struct p3_spec *order_out)
{
	struct codec c = {.at = bytes, .left = len};
	struct p3_spec o = {.opt.output_dir_fd = -1};
	spec_all(&c, &o);
	*order_out = o;
	return !c.bad && !c.left && spec_is_sound(&o);
}
