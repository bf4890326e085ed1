/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints: the node that CCI shares with Portals, URIs, options. */
#include "lib/cci/cci.h"
#include "lib/job/job.h"
#include "lib/init.h"
#include "lib/node/call.h"
#include "shm/log.h"
#include "shm/park.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- the node that CCI shares with Portals ---- */

/* Start the NIC without an interface of Portals.  The caller holds node->life. */
static int cci_node_start_nic(struct p3_node *node)
{
	struct p3_conf conf;
	struct p3_nic *nic;
	int rc = p3_conf_read(&conf);
	if (!rc)
		rc = p3_job_enter(node);
	if (rc)
		return rc;
	rc = p3_job_start_nic(node, &nic);
	if (rc) {
		p3_job_exit(node);
		return rc;
	}
	p3_node_set_nic(node, nic);
	rc = p3_job_join(node, nic);
	if (rc)
		p3_users_stop_nic(node);
	return rc;
}

/* Become a user of the job and of the NIC.  The caller holds node->call. */
static int cci_node_enter(struct p3_node *node)
{
	int rc = p3_users_enter(node);
	if (rc) {
		if (rc != -EINVAL) /* which had a line of its own */
			p3_error("cci_create_endpoint: %s", strerror(-rc));
		return rc;
	}
	pthread_mutex_lock(&node->life);
	if (!p3_nic(node))
		rc = cci_node_start_nic(node);
	node->cci_uses = !rc;
	pthread_mutex_unlock(&node->life);
	if (rc)
		p3_users_leave(node);
	return rc;
}

int p3_cci_node_use(struct p3_node *node, struct p3_nic **nic_out)
{
	int rc = 0;
	pthread_mutex_lock(&node->call);
	if (!node->cci_uses)
		rc = cci_node_enter(node);
	*nic_out = p3_nic(node);
	pthread_mutex_unlock(&node->call);
	if (!rc)
		return CCI_SUCCESS;
	return p3_job_passes(rc) || rc == -ENOSPC ? CCI_ENOMEM : CCI_ENODEV;
}

void p3_cci_node_release(struct p3_node *node)
{
	if (!node->cci_uses)
		return;
	p3_ni_await_sends(p3_nic(node), p3_now_ns());
	pthread_mutex_lock(&node->life);
	node->cci_uses = false;
	if (!p3_users_need_nic(node))
		p3_users_stop_nic(node);
	pthread_mutex_unlock(&node->life);
	p3_users_leave(node);
}

/*
 * ---- names of endpoints: TRANSPORT://PLACE/NODE/ENDPOINT ----
 *
 * PLACE is the name of the domain.  A job that is in no domain, or in one on each of its
 * hosts, has "job:" and its number, which no name of a domain looks like.  NODE is the
 * index of the node in that place.
 */

static void cci_uri_place(const struct p3_node *node, char *place, size_t size)
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
	cci_uri_place(node, place, sizeof place);
	snprintf(uri, P3_CCI_URI, "%s://%s/%u/%u", transport, place, node->index, number);
}

/* Read a decimal number without leading zeros, up to end. */
static bool cci_uri_number(const char *text, const char *end, uint32_t *out)
{
	return (*text != '0' || text + 1 == end) &&
	       p3_cci_parse_number(text, end, UINT32_MAX, out);
}

/* Split what follows the scheme: PLACE/NODE/ENDPOINT. */
static bool cci_uri_split(
	const char *rest, size_t *place_len, uint32_t *node_out, uint32_t *number_out)
{
	const char *end = rest + strlen(rest);
	const char *first = strchr(rest, '/');
	const char *second = first ? strchr(first + 1, '/') : NULL;
	if (!second || first == rest)
		return false;
	*place_len = (size_t)(first - rest);
	return cci_uri_number(first + 1, second, node_out) &&
	       cci_uri_number(second + 1, end, number_out) && *number_out;
}

static bool cci_uri_is(const char *text, size_t len, const char *name)
{
	return strlen(name) == len && memcmp(text, name, len) == 0;
}

int p3_cci_uri_parse(const struct p3_node *node, const char *transport, const char *uri,
	uint32_t *node_out, uint32_t *number_out)
{
	char place[P3_DOMAIN_NAMES + 1];
	const size_t scheme =
		strspn(uri, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			    "0123456789+-.");
	size_t len;
	if (strnlen(uri, P3_CCI_URI) == P3_CCI_URI || !scheme ||
		strncmp(uri + scheme, "://", strlen("://")) != 0)
		return CCI_EINVAL;
	if (!cci_uri_is(uri, scheme, transport))
		return CCI_EADDRNOTAVAIL;
	const char *rest = uri + scheme + strlen("://");
	if (!cci_uri_split(rest, &len, node_out, number_out))
		return CCI_EINVAL;
	cci_uri_place(node, place, sizeof place);
	if (!cci_uri_is(rest, len, place) || *node_out >= node->capacity)
		return CCI_EADDRNOTAVAIL;
	return CCI_SUCCESS;
}

/* ---- the OS handle ---- */

int cci_arm_os_handle(cci_endpoint_t *endpoint, int flags)
{
	P3_CCI_CHECK(endpoint && !flags && p3_cci_has_handle(endpoint));
	p3_cci_handle_begin(endpoint);
	return CCI_SUCCESS;
}

/* ---- creation ---- */

/* Parse a service: a number, or "A/B", of which B counts. */
static int cci_service_parse(const char *text, uint32_t *service_out)
{
	const char *slash = strchr(text, '/');
	if (slash)
		text = slash + 1;
	bool good = p3_cci_parse_number(
		text, text + strlen(text), P3_CCI_SERVICE_MOST, service_out);
	return good && *service_out ? CCI_SUCCESS : CCI_EINVAL;
}

static int cci_endpoint_make(struct p3_node *node, const struct p3_cci_device *device,
	uint32_t service, cci_endpoint_t **endpoint, bool with_handle)
{
	struct p3_nic *nic;
	struct p3_cci_endpoint_conf conf = {.device = &device->pub,
		.service = service,
		.max_send_size = device->pub.max_send_size,
		.with_handle = with_handle};
	int rc = p3_cci_node_use(node, &nic);
	if (rc != CCI_SUCCESS)
		return rc;
	/* Without a service of its own, it gets the first free one from that of the
	 * device on, or any number. */
	bool any = !service && device->service;
	if (any)
		conf.service = device->service;
	rc = p3_cci_endpoint_create(nic, &conf, endpoint);
	while (any && rc == CCI_EBUSY && conf.service++ < P3_CCI_SERVICE_MOST)
		rc = p3_cci_endpoint_create(nic, &conf, endpoint);
	return any && rc == CCI_EBUSY ? CCI_ERANGE : rc;
}

/* Create an endpoint on a device, NULL: the usual one, with a service, NULL: any. */
static int cci_endpoint_open(cci_device_t *device, const char *text,
	cci_endpoint_t **endpoint, cci_os_handle_t *fd)
{
	uint32_t service = 0;
	if (!p3_cci_is_up())
		return CCI_ENODEV;
	if (!endpoint)
		return CCI_EINVAL;
	if (device && !device->up)
		return CCI_ENETDOWN;
	const struct p3_cci_devices *devices = p3_node()->cci->devices;
	const struct p3_cci_device *d = device ? p3_cci_config_find(devices, device)
					       : p3_cci_config_usual(devices);
	if (!d)
		return device ? CCI_EINVAL : CCI_ENODEV;
	if (text && cci_service_parse(text, &service) != CCI_SUCCESS)
		return CCI_EINVAL;
	if (!d->pub.up)
		return CCI_ENODEV;
	if (p3_is_busy())
		return CCI_ERROR;
	struct p3_caller caller = p3_caller_save();
	int rc = cci_endpoint_make(p3_node(), d, service, endpoint, fd);
	if (rc == CCI_SUCCESS && fd)
		*fd = p3_cci_handle_fd(*endpoint);
	p3_caller_restore(caller);
	return rc;
}

int cci_create_endpoint(
	cci_device_t *device, int flags, cci_endpoint_t **endpoint, cci_os_handle_t *fd)
{
	(void)flags;
	return cci_endpoint_open(device, NULL, endpoint, fd);
}

int cci_create_endpoint_at(cci_device_t *device, const char *service, int flags,
	cci_endpoint_t **endpoint, cci_os_handle_t *fd)
{
	(void)flags;
	if (!device)
		return p3_cci_is_up() ? CCI_EINVAL : CCI_ENODEV;
	return cci_endpoint_open(device, service, endpoint, fd);
}

/* ---- destruction ---- */

int cci_destroy_endpoint(cci_endpoint_t *endpoint)
{
	P3_CCI_CHECK(endpoint);
	if (p3_is_busy())
		return CCI_ERROR;
	struct p3_caller caller = p3_caller_save();
	struct p3_nic *nic = p3_nic(p3_node());
	bool done = nic && p3_cci_endpoint_destroy(nic, endpoint);
	p3_caller_restore(caller);
	return done ? CCI_SUCCESS : CCI_EINVAL;
}

/* ---- options ---- */

/* Store the endpoint's URI, a string of the program's. */
static int cci_opt_get_uri(cci_opt_handle_t *handle, char **uri_out)
{
	cci_endpoint_t *endpoint = (cci_endpoint_t *)(uintptr_t)handle;
	char uri[P3_CCI_URI];
	if (p3_is_busy())
		return CCI_ENOMEM;
	struct p3_caller caller = p3_caller_save();
	p3_cci_uri_make(p3_node(), endpoint->device->transport,
		p3_cci_endpoint_number(endpoint), uri);
	char *copy = strdup(uri);
	p3_caller_restore(caller);
	if (!copy)
		return CCI_ENOMEM;
	*uri_out = copy;
	return CCI_SUCCESS;
}

int cci_set_opt(cci_opt_handle_t *handle, cci_opt_name_t name, const void *val)
{
	P3_CCI_CHECK(handle && val);
	return p3_cci_number(handle, name, true, (uint32_t *)(uintptr_t)val);
}

int cci_get_opt(cci_opt_handle_t *handle, cci_opt_name_t name, void *val)
{
	P3_CCI_CHECK(handle && val);
	switch (name) {
	case CCI_OPT_ENDPT_URI:
		return cci_opt_get_uri(handle, val);
	case CCI_OPT_ENDPT_RMA_ALIGN:
		*(cci_alignment_t *)val = (cci_alignment_t){0};
		return CCI_SUCCESS;
	default:
		return p3_cci_number(handle, name, false, val);
	}
}
