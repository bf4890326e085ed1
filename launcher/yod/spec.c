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

static int prog_say_no_dir(const struct p3_prog *prog)
{
	p3_say_at(prog->place);
	p3_say("--wdir: '%s': %s; expected a directory that may be entered", prog->dir,
		strerror(errno));
	p3_say_at(NULL);
	return P3_STATUS_NO_FILE;
}

int p3_prog_check(const struct p3_prog *prog)
{
	int dir = AT_FDCWD;
	if (prog->dir) {
		dir = open(prog->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (dir < 0 || faccessat(dir, ".", X_OK, AT_EACCESS))
			return prog_say_no_dir(prog);
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

static void settings_say_line(void *arg, const char *line)
{
	(void)arg;
	p3_say("%s", line);
}

const char *p3_settings_text(const struct p3_prog *prog, int conf_id)
{
	const char *text =
		p3_prog_getenv(prog, p3_conf_row((enum p3_conf_id)conf_id)->name);
	return text && *text ? text : NULL;
}

/* Check a list of CPUs.  Reject a list without any CPU that this job may use. */
static int settings_check_nic_cpus(const char *text)
{
	struct p3_cpuset set;
	if (!p3_conf_nic_cpus(text, &set) || p3_place_is_possible(&set))
		return 0;
	p3_say("%s is '%.64s'; expected CPUs that this job may use (see taskset -p, "
	       "cpuset cgroups); unset it for the default",
		P3_CONF_NIC_CPUS_ENV, text);
	return -EINVAL;
}

static int settings_check_row(enum p3_conf_id id, const char *text)
{
	char line[SETTINGS_LINE_LEN];
	uint64_t value;
	if (p3_conf_value(p3_conf_row(id), text, &value))
		return id == P3_CONF_NIC_CPUS ? settings_check_nic_cpus(text) : 0;
	p3_conf_complain(p3_conf_row(id), text, line, sizeof line);
	settings_say_line(NULL, line);
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

int p3_settings_check(const struct p3_opt *opt)
{
	int rc = 0;
	for (enum p3_conf_id id = 0; id < P3_CONF_ROWS; id++)
		if (settings_check_row(id, p3_conf_text(id)))
			rc = -EINVAL;
	p3_conf_unknown(environ, settings_say_line, NULL);
	for (uint32_t i = 0; i < opt->prog_n; i++) {
		const struct p3_prog *prog = &opt->prog[i];
		p3_say_at(prog->place);
		for (uint32_t k = 0; k < prog->env_n; k++)
			if (settings_check_pair(prog->env[k]))
				rc = -EINVAL;
		if (prog->env_n)
			p3_conf_unknown((char *const *)(uintptr_t)prog->env,
				settings_say_line, NULL);
		p3_say_at(NULL);
	}
	return rc;
}

/* ---- hosts ---- */

#define HOSTS_MOST     P3_MAX_NODES
#define HOSTS_LINE_LEN 400
#define HOSTS_BLANKS   " \t\r\n"

/* ---- one host ---- */

static bool hosts_is_name(const char *name)
{
	size_t len = strlen(name);
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr("-_.:@%+", name[i]))
			return false;
	return len && len <= P3_HOST_NAMES && *name != '-';
}

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
	char *colon = strchr(close ? close : text, ':');
	*name_out = text + (close != NULL);
	*slots_out = 0;
	if (close && close[1] && close + 1 != colon)
		return false;
	if (colon && !hosts_take_slots(colon + 1, slots_out))
		return false;
	if (colon)
		*colon = '\0';
	if (close)
		*close = '\0';
	return hosts_is_name(*name_out);
}

static bool hosts_is_there(const struct p3_hosts *h, const char *name)
{
	for (uint32_t i = 0; i < h->n; i++)
		if (!strcmp(h->host[i].name, name))
			return true;
	return false;
}

static int hosts_add(
	struct p3_hosts *h, const char *option, const char *name, uint32_t slots)
{
	if (hosts_is_there(h, name)) {
		p3_say("%s: host '%s' is there twice; expected once, with all its slots, "
		       "as in %s:4",
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

/* ---- a list ---- */

static int hosts_say_bad_word(const char *word)
{
	p3_say("--hosts: '%.100s' is no host; expected names, each with its number of "
	       "slots or without, as in --hosts c1:4,c2:2",
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
		rc = hosts_split(word, &name, &slots)
			     ? hosts_add(&h, "--hosts", name, slots)
			     : hosts_say_bad_word(said);
	}
	free(copy);
	*hosts_out = h;
	return rc;
}

/* ---- a file ---- */

static int hosts_say_bad_line(const char *file, uint32_t line, const char *text)
{
	p3_say("--hostfile: %s:%u: '%.100s' is no host; expected a name in each line, "
	       "with its number of slots or without, as in c1:4 or c1 slots=4",
		file, line, text);
	return -EINVAL;
}

/* Take a line.  It is changed, and has no newline. */
static int hosts_take_line(
	struct p3_hosts *h, const char *file, uint32_t line, char *text)
{
	char said[HOSTS_LINE_LEN], *name;
	uint32_t slots, more = 0;
	text[strcspn(text, "#")] = '\0';
	text += strspn(text, HOSTS_BLANKS);
	snprintf(said, sizeof said, "%s", text);
	char *rest = text + strcspn(text, HOSTS_BLANKS);
	if (*rest)
		*rest++ = '\0';
	rest += strspn(rest, HOSTS_BLANKS);
	rest[strcspn(rest, HOSTS_BLANKS)] = '\0';
	if (!*text)
		return 0;
	bool has_more = !strncmp(rest, "slots=", 6) && hosts_take_slots(rest + 6, &more);
	if (!hosts_split(text, &name, &slots) || (*rest && (!has_more || slots)))
		return hosts_say_bad_line(file, line, said);
	return hosts_add(h, "--hostfile", name, slots ? slots : more);
}

static int hosts_take_lines(struct p3_hosts *h, const char *file, FILE *f)
{
	char *text = NULL;
	size_t size = 0;
	int rc = 0;
	for (uint32_t line = 1; !rc && getline(&text, &size, f) > 0; line++) {
		text[strcspn(text, "\n")] = '\0';
		rc = hosts_take_line(h, file, line, text);
	}
	free(text);
	if (rc || h->n)
		return rc;
	p3_say("--hostfile: '%s' has no hosts; expected a name in each line, as in c1:4",
		file);
	return -EINVAL;
}

int p3_hosts_read(const char *file, struct p3_hosts *hosts_out)
{
	*hosts_out = (struct p3_hosts){0};
	FILE *f = fopen(file, "re");
	if (!f) {
		p3_say("--hostfile: '%s': %s; expected a file with the name of a host in "
		       "each line",
			file, strerror(errno));
		return -EINVAL;
	}
	int rc = hosts_take_lines(hosts_out, file, f);
	fclose(f);
	return rc;
}

/* ---- placement ---- */

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

/* ---- packing ---- */

static void spec_put(FILE *f, const void *bytes, size_t len)
{
	fwrite(bytes, 1, len, f);
}

static void spec_put_number(FILE *f, uint64_t n)
{
	spec_put(f, &n, sizeof n);
}

/* Put a text, or NULL: its length with the final zero byte, or 0, and its bytes. */
static void spec_put_text(FILE *f, const char *text)
{
	size_t len = text ? strlen(text) + 1 : 0;
	spec_put_number(f, len);
	spec_put(f, text ? text : "", len);
}

static void spec_put_list(FILE *f, char *const *list)
{
	size_t n = 0;
	while (list && list[n])
		n++;
	spec_put_number(f, n);
	for (size_t i = 0; i < n; i++)
		spec_put_text(f, list[i]);
}

static void spec_put_programs(FILE *f, const struct p3_opt *opt)
{
	spec_put_number(f, opt->prog_n);
	for (uint32_t i = 0; i < opt->prog_n; i++) {
		const struct p3_prog *p = &opt->prog[i];
		spec_put_number(f, p->first);
		spec_put_number(f, p->size);
		spec_put_list(f, p->argv);
		spec_put_list(f, (char *const *)(uintptr_t)p->env);
		spec_put_text(f, p->dir);
		spec_put_text(f, p->place);
	}
}

/* Put the options that an agent obeys.  yod itself sees to the others. */
static void spec_put_options(FILE *f, const struct p3_opt *opt)
{
	spec_put_number(f, opt->size);
	spec_put_number(f, opt->keep_going);
	spec_put_number(f, opt->only);
	spec_put(f, &opt->only_ranks, sizeof opt->only_ranks);
	spec_put_number(f, opt->nid_base);
	spec_put_number(f, opt->shared_heap);
	spec_put_number(f, opt->line_buffered);
	spec_put_number(f, opt->valgrind);
	spec_put_number(f, opt->stats);
	spec_put_number(f, (uint64_t)opt->kill_after_ms);
	spec_put_text(f, opt->mode);
	spec_put_text(f, opt->trace);
	spec_put(f, &opt->place, sizeof opt->place);
}

char *p3_spec_pack(const struct p3_spec *order, size_t *len_out)
{
	char *bytes = NULL;
	FILE *f = open_memstream(&bytes, len_out);
	if (!f)
		return NULL;
	spec_put_number(f, order->jid);
	spec_put_number(f, order->host);
	spec_put_text(f, order->tag);
	spec_put_text(f, order->dir);
	spec_put_number(f, order->mask);
	spec_put_list(f, order->env);
	spec_put_options(f, &order->opt);
	spec_put_number(f, order->opt.hosts.n);
	spec_put(f, order->opt.hosts.host,
		order->opt.hosts.n * sizeof order->opt.hosts.host[0]);
	spec_put_programs(f, &order->opt);
	bool failed = ferror(f);
	if (fclose(f) || failed) {
		free(bytes);
		return NULL;
	}
	return bytes;
}

/* ---- unpacking ---- */

struct spec_reader {
	const char *at;
	size_t left;
	bool bad; /* the bytes are no order, or memory has run out; all reads give 0 */
};

static const void *spec_get(struct spec_reader *r, size_t len)
{
	const char *at = r->at;
	r->bad |= len > r->left;
	if (r->bad)
		return NULL;
	r->at += len;
	r->left -= len;
	return at;
}

static void spec_get_into(struct spec_reader *r, void *out, size_t len)
{
	const void *at = spec_get(r, len);
	if (at)
		memcpy(out, at, len);
	else
		memset(out, 0, len);
}

static uint64_t spec_get_number(struct spec_reader *r, uint64_t most)
{
	uint64_t n = 0;
	spec_get_into(r, &n, sizeof n);
	r->bad |= n > most;
	return r->bad ? 0 : n;
}

static char *spec_get_text(struct spec_reader *r)
{
	uint64_t len = spec_get_number(r, SIZE_MAX);
	const char *text = len ? spec_get(r, len) : NULL;
	r->bad |= text && text[len - 1];
	return (char *)(uintptr_t)text;
}

/* Return a new array that ends with NULL, or NULL if the bytes are bad. */
static char **spec_get_list(struct spec_reader *r)
{
	uint64_t n = spec_get_number(r, r->left / sizeof(uint64_t));
	char **list = r->bad ? NULL : calloc(n + 1, sizeof *list);
	r->bad |= !list;
	for (uint64_t i = 0; i < n && !r->bad; i++) {
		list[i] = spec_get_text(r);
		r->bad |= !list[i];
	}
	return list;
}

static void spec_get_programs(struct spec_reader *r, struct p3_opt *opt)
{
	uint64_t n = spec_get_number(r, P3_OPT_SIZE_MAX);
	opt->prog = calloc(n + 1, sizeof *opt->prog);
	r->bad |= !opt->prog || !n;
	while (opt->prog_n < n && !r->bad) {
		struct p3_prog *p = &opt->prog[opt->prog_n++];
		p->first = (uint32_t)spec_get_number(r, P3_OPT_SIZE_MAX);
		p->size = (uint32_t)spec_get_number(r, P3_OPT_SIZE_MAX);
		p->argv = spec_get_list(r);
		r->bad |= !p->argv || !p->argv[0];
		p->env = (const char **)(uintptr_t)spec_get_list(r);
		while (p->env && p->env[p->env_n])
			p->env_n++;
		p->dir = spec_get_text(r);
		p->place = spec_get_text(r);
	}
}

static void spec_get_options(struct spec_reader *r, struct p3_opt *opt)
{
	opt->size = (uint32_t)spec_get_number(r, P3_OPT_SIZE_MAX);
	opt->keep_going = spec_get_number(r, 1);
	opt->only = spec_get_number(r, 1);
	spec_get_into(r, &opt->only_ranks, sizeof opt->only_ranks);
	opt->nid_base = (uint32_t)spec_get_number(r, P3_OPT_NID_BASE_MOST);
	opt->shared_heap = spec_get_number(r, 1);
	opt->line_buffered = spec_get_number(r, 1);
	opt->valgrind = (enum p3_valgrind)spec_get_number(r, P3_VALGRIND_OFF);
	opt->stats = spec_get_number(r, 1);
	opt->kill_after_ms = (int64_t)spec_get_number(r, INT64_MAX);
	opt->mode = spec_get_text(r);
	opt->trace = spec_get_text(r);
	spec_get_into(r, &opt->place, sizeof opt->place);
	opt->output_dir_fd = -1;
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
	struct spec_reader r = {bytes, len, false};
	struct p3_spec o = {.jid = (uint32_t)spec_get_number(&r, UINT32_MAX)};
	o.host = (uint32_t)spec_get_number(&r, P3_OPT_SIZE_MAX);
	o.tag = spec_get_text(&r);
	o.dir = spec_get_text(&r);
	o.mask = (uint32_t)spec_get_number(&r, 0777);
	o.env = spec_get_list(&r);
	spec_get_options(&r, &o.opt);
	o.opt.hosts.n = (uint32_t)spec_get_number(&r, P3_OPT_SIZE_MAX);
	o.opt.hosts.host = calloc(o.opt.hosts.n + 1, sizeof *o.opt.hosts.host);
	r.bad |= !o.opt.hosts.host || !o.opt.hosts.n;
	if (o.opt.hosts.host)
		spec_get_into(
			&r, o.opt.hosts.host, o.opt.hosts.n * sizeof *o.opt.hosts.host);
	spec_get_programs(&r, &o.opt);
	*order_out = o;
	return !r.bad && !r.left && spec_is_sound(&o);
}
