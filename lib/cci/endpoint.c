/* SPDX-License-Identifier: BSD-3-Clause */
/* Making and destroying endpoints. */
#include "lib/cci/cci.h"
#include "lib/cci/handle.h"
#include "lib/node/call.h"
#include "shm/fault.h"
#include "shm/fd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* ---- the list ---- */

static void list(struct p3_cci *cci, struct p3_cci_own *own)
{
	pthread_mutex_lock(&cci->lock);
	own->next = cci->own;
	cci->own = own;
	pthread_mutex_unlock(&cci->lock);
}

/* Take an endpoint out of the list; NULL: any.  Return NULL if it is not there. */
static struct p3_cci_own *unlist(struct p3_cci *cci, cci_endpoint_t *endpoint)
{
	pthread_mutex_lock(&cci->lock);
	struct p3_cci_own **at = &cci->own;
	while (*at && endpoint && (*at)->endpoint != endpoint)
		at = &(*at)->next;
	struct p3_cci_own *own = *at;
	if (own)
		*at = own->next;
	pthread_mutex_unlock(&cci->lock);
	return own;
}

char *p3_cci_endpoint_uri(struct p3_cci *cci, const void *endpoint, bool *known_out)
{
	char *uri = NULL;
	pthread_mutex_lock(&cci->lock);
	struct p3_cci_own *own = cci->own;
	while (own && own->endpoint != endpoint)
		own = own->next;
	*known_out = own;
	if (own)
		uri = strdup(own->uri);
	pthread_mutex_unlock(&cci->lock);
	return uri;
}

/* ---- creation ---- */

/* Parse a service: a number, or "A/B", of which B counts. */
static int parse_service(const char *text, uint32_t *service_out)
{
	const char *slash = strchr(text, '/');
	char *end;
	if (slash)
		text = slash + 1;
	if (*text < '0' || *text > '9')
		return CCI_EINVAL;
	errno = 0;
	unsigned long n = strtoul(text, &end, 10);
	if (*end || errno || n < 1 || n > P3_CCI_SERVICE_MOST)
		return CCI_EINVAL;
	*service_out = (uint32_t)n;
	return CCI_SUCCESS;
}

static int open_handle(struct p3_cci_own *own)
{
	own->fd = p3_fd_high(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	own->file = p3_fd_file(own->fd);
	return own->fd < 0 ? CCI_ENOMEM : CCI_SUCCESS;
}

/* Make the firmware's endpoint.  Without a service of its own, it gets the first free one
 * from that of the device on, or any number. */
static int make(struct p3_nic *nic, const struct p3_cci_device *device,
	struct p3_cci_endpoint_conf *conf, struct p3_cci_own *own)
{
	bool any = !conf->service && device->service;
	if (any)
		conf->service = device->service;
	int rc = p3_cci_endpoint_create(nic, conf, &own->endpoint);
	while (any && rc == CCI_EBUSY && conf->service++ < P3_CCI_SERVICE_MOST)
		rc = p3_cci_endpoint_create(nic, conf, &own->endpoint);
	return any && rc == CCI_EBUSY ? CCI_ERANGE : rc;
}

static int create(struct p3_node *node, const struct p3_cci_device *device,
	uint32_t service, struct p3_cci_own *own, bool with_handle)
{
	struct p3_nic *nic;
	struct p3_cci_endpoint_conf conf = {.device = &device->pub,
		.service = service,
		.max_send_size = device->pub.max_send_size};
	int rc = p3_cci_node_use(node, &nic);
	if (rc == CCI_SUCCESS && with_handle)
		rc = open_handle(own);
	conf.fd = own->fd;
	if (rc == CCI_SUCCESS)
		rc = make(nic, device, &conf, own);
	if (rc != CCI_SUCCESS)
		return rc;
	p3_cci_handle_begin(own->endpoint);
	p3_cci_uri_make(node, device->pub.transport,
		p3_cci_endpoint_number(own->endpoint), own->uri);
	list(node->cci, own);
	return CCI_SUCCESS;
}

/* Create an endpoint on a device that is up. */
static int create_on(const struct p3_cci_device *device, uint32_t service,
	cci_endpoint_t **endpoint, cci_os_handle_t *fd)
{
	if (p3_is_busy())
		return CCI_ERROR;
	struct p3_caller caller = p3_caller_save();
	struct p3_cci_own *own = calloc(1, sizeof *own);
	int rc = CCI_ENOMEM;
	if (own) {
		own->fd = -1;
		rc = create(p3_node(), device, service, own, fd);
	}
	if (rc == CCI_SUCCESS) {
		*endpoint = own->endpoint;
		if (fd)
			*fd = own->fd;
	} else if (own) {
		if (own->fd >= 0)
			p3_fd_close(own->fd);
		free(own);
	}
	p3_caller_restore(caller);
	return rc;
}

int cci_create_endpoint(
	cci_device_t *device, int flags, cci_endpoint_t **endpoint, cci_os_handle_t *fd)
{
	(void)flags;
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
	return d->pub.up ? create_on(d, 0, endpoint, fd) : CCI_ENODEV;
}

int cci_create_endpoint_at(cci_device_t *device, const char *service, int flags,
	cci_endpoint_t **endpoint, cci_os_handle_t *fd)
{
	uint32_t number = 0;
	(void)flags;
	if (!p3_cci_is_up())
		return CCI_ENODEV;
	if (!endpoint || !device)
		return CCI_EINVAL;
	if (!device->up)
		return CCI_ENETDOWN;
	const struct p3_cci_device *d =
		p3_cci_config_find(p3_node()->cci->devices, device);
	if (!d || (service && parse_service(service, &number) != CCI_SUCCESS))
		return CCI_EINVAL;
	return create_on(d, number, endpoint, fd);
}

/* ---- destruction ---- */

static void destroy(struct p3_cci_own *own)
{
	p3_cci_endpoint_destroy(own->endpoint);
	FAULT_POINT("cci.destroyed");
	if (own->fd >= 0)
		p3_fd_close_own(own->fd, own->file);
	free(own);
}

int cci_destroy_endpoint(cci_endpoint_t *endpoint)
{
	if (!p3_cci_is_up())
		return CCI_ERROR;
	if (!endpoint)
		return CCI_EINVAL;
	if (p3_is_busy())
		return CCI_ERROR;
	struct p3_caller caller = p3_caller_save();
	struct p3_cci_own *own = unlist(p3_node()->cci, endpoint);
	if (own)
		destroy(own);
	p3_caller_restore(caller);
	return own ? CCI_SUCCESS : CCI_EINVAL;
}

void p3_cci_endpoint_destroy_all(struct p3_cci *cci)
{
	struct p3_cci_own *own;
	while ((own = unlist(cci, NULL)) != NULL)
		destroy(own);
}
