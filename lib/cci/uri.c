/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of endpoints: TRANSPORT://PLACE/NODE/ENDPOINT.
 *
 * PLACE is the name of the domain.  A job that is in no domain, or in one on each of its
 * hosts, has "job:" and its number, which no name of a domain looks like.  NODE is the
 * index of the node in that place.
 */
#include "lib/cci/cci.h"

#include <stdio.h>
#include <string.h>

static void make_place(const struct p3_node *node, char *place, size_t size)
{
	if (node->domain[0] && !node->far)
		snprintf(place, size, "%s", node->domain);
	else
		snprintf(place, size, "job:%u", node->jid);
}

void p3_cci_uri_make(const struct p3_node *node, const char *transport, uint32_t number,
	char uri[P3_CCI_URI])
{
	char place[P3_DOMAIN_NAMES + 1];
	make_place(node, place, sizeof place);
	snprintf(uri, P3_CCI_URI, "%s://%s/%u/%u", transport, place, node->index, number);
}

/* Read a decimal number without leading zeros, up to end. */
static bool number(const char *text, const char *end, uint32_t *out)
{
	uint64_t n = 0;
	if (text == end || (*text == '0' && text + 1 != end))
		return false;
	for (; text < end; text++) {
		if (*text < '0' || *text > '9')
			return false;
		n = n * 10 + (uint64_t)(*text - '0');
		if (n > UINT32_MAX)
			return false;
	}
	*out = (uint32_t)n;
	return true;
}

/* Split what follows the scheme: PLACE/NODE/ENDPOINT. */
static bool split(
	const char *rest, size_t *place_len, uint32_t *node_out, uint32_t *number_out)
{
	const char *end = rest + strlen(rest);
	const char *first = strchr(rest, '/');
	const char *second = first ? strchr(first + 1, '/') : NULL;
	if (!second || first == rest)
		return false;
	*place_len = (size_t)(first - rest);
	return number(first + 1, second, node_out) &&
	       number(second + 1, end, number_out) && *number_out;
}

/* Return true if the text begins with a scheme: letters, digits, '+', '-' and '.'. */
static bool has_scheme(const char *uri, size_t *len_out)
{
	const char *mark = strstr(uri, "://");
	if (!mark || mark == uri)
		return false;
	for (const char *c = uri; c < mark; c++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ01234567"
			    "89"
			    "+-.",
			    *c))
			return false;
	*len_out = (size_t)(mark - uri);
	return true;
}

static bool is(const char *text, size_t len, const char *name)
{
	return strlen(name) == len && memcmp(text, name, len) == 0;
}

int p3_cci_uri_parse(const struct p3_node *node, const char *transport, const char *uri,
	uint32_t *node_out, uint32_t *number_out)
{
	char place[P3_DOMAIN_NAMES + 1];
	size_t scheme, len;
	if (strnlen(uri, P3_CCI_URI) == P3_CCI_URI || !has_scheme(uri, &scheme))
		return CCI_EINVAL;
	if (!is(uri, scheme, transport))
		return CCI_EADDRNOTAVAIL;
	const char *rest = uri + scheme + strlen("://");
	if (!split(rest, &len, node_out, number_out))
		return CCI_EINVAL;
	make_place(node, place, sizeof place);
	if (!is(rest, len, place) || *node_out >= node->capacity)
		return CCI_EADDRNOTAVAIL;
	return CCI_SUCCESS;
}
