/* SPDX-License-Identifier: BSD-3-Clause */
/* The check of the nodes' settings. */
#include "launcher/yod/settings.h"
#include "launcher/yod/place.h"
#include "launcher/yod/say.h"
#include "shm/conf.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#define LINE_LEN 480

static void say_line(void *arg, const char *line)
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
static int check_nic_cpus(const char *text)
{
	struct p3_cpuset set;
	if (!p3_conf_nic_cpus(text, &set) || p3_place_is_possible(&set))
		return 0;
	p3_say("%s is '%.64s'; expected CPUs that this job may use (see taskset -p, "
	       "cpuset cgroups); unset it for the default",
		P3_CONF_NIC_CPUS_ENV, text);
	return -EINVAL;
}

static int check_row(enum p3_conf_id id, const char *text)
{
	char line[LINE_LEN];
	uint64_t value;
	if (p3_conf_value(p3_conf_row(id), text, &value))
		return id == P3_CONF_NIC_CPUS ? check_nic_cpus(text) : 0;
	p3_conf_complain(p3_conf_row(id), text, line, sizeof line);
	say_line(NULL, line);
	return -EINVAL;
}

/* Return true if yod itself reads the setting. */
static bool is_for_the_job(enum p3_conf_id id)
{
	return id == P3_CONF_NID_BASE || id == P3_CONF_ATTACH;
}

/* Check "NAME=VALUE" of one program. */
static int check_pair(const char *pair)
{
	size_t len = strcspn(pair, "=");
	for (enum p3_conf_id id = 0; id < P3_CONF_ROWS; id++) {
		const char *name = p3_conf_row(id)->name;
		if (strlen(name) != len || strncmp(name, pair, len) != 0)
			continue;
		if (!is_for_the_job(id))
			return check_row(id, pair + len + 1);
		p3_say("%s is for the whole job; expected in the environment of yod",
			name);
		return -EINVAL;
	}
	return 0;
}

static int check_prog(const struct p3_prog *prog)
{
	int rc = 0;
	p3_say_at(prog->place);
	for (uint32_t i = 0; i < prog->env_n; i++)
		if (check_pair(prog->env[i]))
			rc = -EINVAL;
	if (prog->env_n)
		p3_conf_unknown((char *const *)(uintptr_t)prog->env, say_line, NULL);
	p3_say_at(NULL);
	return rc;
}

int p3_settings_check(const struct p3_opt *opt)
{
	int rc = 0;
	for (enum p3_conf_id id = 0; id < P3_CONF_ROWS; id++)
		if (check_row(id, p3_conf_text(id)))
			rc = -EINVAL;
	p3_conf_unknown(environ, say_line, NULL);
	for (uint32_t i = 0; i < opt->prog_n; i++)
		if (check_prog(&opt->prog[i]))
			rc = -EINVAL;
	return rc;
}
