/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration file of CCI, and the devices that it describes. */
#include "lib/cci/cci.h"
#include "nic/cci.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CCI_CONF_LINE     1024u /* bytes of a line that count, with its end */
#define CCI_CONF_KEY      255u
#define CCI_CONF_VALUE    511u
#define CCI_CONF_BLANK    " \t\r\n\v\f"
#define CCI_CONF_PRIORITY 50u

static const char cci_device_info[] = "Portals 3.3 network of this machine (libportals)";

/* ---- lines ---- */

/* Read a line, without its end; of a longer line the first bytes.  Return false at the
 * end of the file. */
static bool cci_conf_read_line(FILE *file, char line[CCI_CONF_LINE])
{
	int c = getc(file);
	size_t n = 0;
	if (c == EOF)
		return false;
	for (; c != EOF && c != '\n'; c = getc(file))
		if (n < CCI_CONF_LINE - 1)
			line[n++] = (char)c;
	line[n] = 0;
	return true;
}

/* Return the text without blanks around it. */
static char *cci_conf_trim(char *text)
{
	text += strspn(text, CCI_CONF_BLANK);
	size_t n = strlen(text);
	while (n && strchr(CCI_CONF_BLANK, text[n - 1]))
		n--;
	text[n] = 0;
	return text;
}

bool p3_cci_parse_number(const char *text, const char *end, uint32_t most, uint32_t *out)
{
	uint64_t n = 0;
	for (const char *c = text; c < end; c++) {
		if (*c < '0' || *c > '9' || n > most)
			return false;
		n = n * 10 + (uint64_t)(*c - '0');
	}
	*out = (uint32_t)n;
	return text < end && n <= most;
}

/* ---- devices ---- */

static void cci_device_free(struct p3_cci_device *d)
{
	for (uint32_t i = 0; i < d->npairs; i++)
		free(d->pair[i]);
	free(d->name);
	free(d);
}

/* Add a device.  Return NULL without memory. */
static struct p3_cci_device *cci_device_add(struct p3_cci_devices *all, const char *name)
{
	struct p3_cci_device *d = calloc(1, sizeof *d);
	if (!d)
		return NULL;
	d->name = strdup(name);
	if (!d->name) {
		free(d);
		return NULL;
	}
	d->priority = CCI_CONF_PRIORITY;
	d->pub.name = d->name;
	d->pub.up = 1;
	d->pub.info = cci_device_info;
	d->pub.conf_argv = (const char *const *)d->pair;
	d->pub.max_send_size = P3_CCI_MTU;
	d->pub.pci.domain = d->pub.pci.bus = UINT32_MAX;
	d->pub.pci.dev = d->pub.pci.func = UINT32_MAX;
	all->device[all->n++] = d;
	return d;
}

/* Let a pair have its effect on the device. */
static void cci_device_apply(struct p3_cci_devices *all, struct p3_cci_device *d,
	const char *key, const char *value)
{
	uint32_t n;
	const char *end = value + strlen(value);
	if (strcmp(key, "transport") == 0) {
		d->transports += strcmp(value, all->transport) == 0 ? 1 : 2;
		d->pub.transport = all->transport;
	} else if (strcmp(key, "mss") == 0 || strcmp(key, "mtu") == 0) {
		if (p3_cci_parse_number(value, end, UINT32_MAX - 1, &n))
			d->pub.max_send_size = n < P3_CCI_MTU_LEAST  ? P3_CCI_MTU_LEAST
					       : n > P3_CCI_MTU_MOST ? P3_CCI_MTU_MOST
								     : n;
	} else if (strcmp(key, "priority") == 0) {
		if (p3_cci_parse_number(value, end, 100, &n))
			d->priority = n;
	} else if (strcmp(key, "port") == 0 || strcmp(key, "id") == 0) {
		if (p3_cci_parse_number(value, end, P3_CCI_SERVICE_MOST, &n))
			d->service = n;
	} else if (strcmp(key, "default") == 0) {
		d->is_default = strcmp(value, "0") != 0;
	} else if (strcmp(key, "up") == 0) {
		d->pub.up = strcmp(value, "0") != 0;
	}
}

/* Take a line "key = value" of a device.  Return false without memory. */
static bool cci_conf_take_pair(
	struct p3_cci_devices *all, struct p3_cci_device *d, char *line)
{
	char *equal = strchr(line, '=');
	if (!equal)
		return true;
	*equal = 0;
	char *key = cci_conf_trim(line), *value = cci_conf_trim(equal + 1);
	value[strcspn(value, CCI_CONF_BLANK)] = 0;
	if (!*key || key[strcspn(key, CCI_CONF_BLANK)] || !*value ||
		strlen(key) > CCI_CONF_KEY || strlen(value) > CCI_CONF_VALUE)
		return true;
	if (d->npairs == P3_CCI_PAIRS)
		return true;
	size_t len = strlen(key) + strlen(value) + 2;
	char *pair = malloc(len);
	if (!pair)
		return false;
	snprintf(pair, len, "%s=%s", key, value);
	d->pair[d->npairs++] = pair;
	cci_device_apply(all, d, key, value);
	return true;
}

/* ---- the file ---- */

/* Take a line; *d is the device that it belongs to.  Return false without memory. */
static bool cci_conf_take_line(
	struct p3_cci_devices *all, struct p3_cci_device **d, char *line)
{
	char *end;
	line[strcspn(line, "#")] = 0;
	line = cci_conf_trim(line);
	if (line[0] != '[' || !(end = strchr(line, ']')))
		return !*d || cci_conf_take_pair(all, *d, line);
	*end = 0;
	*d = NULL; /* pairs of a device above the limit belong to none */
	if (all->n == P3_CCI_DEVICES)
		return true;
	*d = cci_device_add(all, cci_conf_trim(line + 1));
	return *d;
}

/* Drop the devices without a transport, with two of them, or with another one. */
static void cci_devices_drop_others(struct p3_cci_devices *all)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < all->n; i++)
		if (all->device[i]->transports == 1)
			all->device[n++] = all->device[i];
		else
			cci_device_free(all->device[i]);
	all->n = n;
}

/* Return true if a comes before b in the list: in use, default, priority. */
static bool cci_device_before(
	const struct p3_cci_device *a, const struct p3_cci_device *b)
{
	if (a->pub.up != b->pub.up)
		return a->pub.up;
	if (a->is_default != b->is_default)
		return a->is_default;
	return a->priority > b->priority;
}

/* Sort the devices; those that compare equal stay in the order of the file. */
static void cci_devices_sort(struct p3_cci_devices *all)
{
	for (uint32_t i = 1; i < all->n; i++)
		for (uint32_t k = i;
			k && cci_device_before(all->device[k], all->device[k - 1]); k--) {
			struct p3_cci_device *d = all->device[k];
			all->device[k] = all->device[k - 1];
			all->device[k - 1] = d;
		}
	for (uint32_t i = 0; i < all->n; i++)
		all->list[i] = &all->device[i]->pub;
	all->list[all->n] = NULL;
}

int p3_cci_config_read(FILE *file, const char *transport, struct p3_cci_devices **out)
{
	struct p3_cci_devices *all = calloc(1, sizeof *all);
	if (!all)
		return -ENOMEM;
	snprintf(all->transport, sizeof all->transport, "%s", transport);
	struct p3_cci_device *d = NULL;
	char line[CCI_CONF_LINE];
	bool ok = true;
	while (file && ok && cci_conf_read_line(file, line))
		ok = cci_conf_take_line(all, &d, line);
	if (!file) {
		d = cci_device_add(all, "portals0");
		ok = d != NULL;
	}
	if (!file && ok) {
		d->pub.transport = all->transport;
		d->transports = 1;
	}
	int rc = !ok ? -ENOMEM : file && ferror(file) ? -EIO : 0;
	if (rc) {
		p3_cci_config_free(all);
		return rc;
	}
	cci_devices_drop_others(all);
	cci_devices_sort(all);
	*out = all;
	return 0;
}

void p3_cci_config_free(struct p3_cci_devices *all)
{
	for (uint32_t i = 0; all && i < all->n; i++)
		cci_device_free(all->device[i]);
	free(all);
}

const struct p3_cci_device *p3_cci_config_usual(const struct p3_cci_devices *all)
{
	for (uint32_t i = 0; i < all->n; i++)
		if (all->device[i]->is_default)
			return all->device[i];
	return all->n ? all->device[0] : NULL;
}

const struct p3_cci_device *p3_cci_config_find(
	const struct p3_cci_devices *all, cci_device_t *device)
{
	for (uint32_t i = 0; i < all->n; i++)
		if (&all->device[i]->pub == device)
			return all->device[i];
	return NULL;
}
