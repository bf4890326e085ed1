/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cci - the Common Communication Interface on the host side
 *
 *	init.c		cci_init, cci_finalize, cci_get_devices
 *	config.c	the configuration file, and the devices
 *	endpoint.c	endpoints, their URIs and options
 *	connection.c	connections, messages, RMA, events, and the names of statuses
 *
 * lib/cci/ checks arguments and holds devices; endpoints, connections, events and
 * registrations are the firmware's (nic/cci.h).  No type of
 * Portals is used here.
 *
 * The state of a node is struct p3_cci_host at node->cci, which node->call guards.  Any
 * thread may read devices while CCI is initialized.
 */
#ifndef P3_LIB_CCI_CCI_H
#define P3_LIB_CCI_CCI_H

#include "lib/node/node.h"
#include "nic/cci.h"

#include <cci.h>
#include <stdbool.h>
#include <stdio.h>

/*
 * ---- the configuration file, and the devices that it describes ----
 *
 *	# comment
 *	[name]				begins a device
 *	transport = portals		mandatory, once
 *	priority = 0 .. 100		50
 *	default = 1			the device that NULL means
 *	mss = BYTES, mtu = BYTES	longest message
 *	port = N, id = N		first number of endpoints for which the program
 *					does not ask for one
 *	up = 0				the device cannot be used now
 *	key = value			kept for the program
 *
 * A value is one word.  Text before the first device, lines of another form, and pairs
 * that are too long are ignored, and so are devices and pairs above the limits.
 *
 * One thread at a time calls these functions; the devices do not change until they are
 * freed.
 */
#define P3_CCI_DEVICES 32u /* most devices of a file, */
#define P3_CCI_PAIRS   32u /* and pairs of a device */

struct p3_cci_device {
	struct cci_device pub;
	char *name;
	char *pair[P3_CCI_PAIRS + 1]; /* "key=value", then NULL */
	uint32_t npairs;
	uint32_t transports; /* number of pairs with this key */
	uint32_t priority;
	uint32_t service; /* first number of endpoints, or 0: any */
	bool is_default;
};

struct p3_cci_devices {
	uint32_t n;
	cci_device_t *list[P3_CCI_DEVICES + 1]; /* in order, then NULL */
	struct p3_cci_device *device[P3_CCI_DEVICES];
	char transport[32]; /* the name of the transport, and the scheme of its URIs */
};

/* Read the devices of this transport from a file; NULL: make the one device that is there
 * without a file.  Return 0, -ENOMEM, or -EIO if the file cannot be read. */
int p3_cci_config_read(FILE *file, const char *transport, struct p3_cci_devices **out);
void p3_cci_config_free(struct p3_cci_devices *devices);

/* Convert the decimal number, of at most this value, from text to end. */
bool p3_cci_parse_number(const char *text, const char *end, uint32_t most, uint32_t *out);

/* Return the device that NULL means, or NULL. */
const struct p3_cci_device *p3_cci_config_usual(const struct p3_cci_devices *devices);
/* Return the device of the list that has this address, or NULL. */
const struct p3_cci_device *p3_cci_config_find(
	const struct p3_cci_devices *devices, cci_device_t *device);

/* ---- the state ---- */

#define P3_CCI_URI 128u /* bytes of a URI with its end, at most */

struct p3_cci_host {
	uint32_t inits; /* calls of cci_init without their cci_finalize */
	struct p3_cci_devices *devices;
};

/* Return true between cci_init and the last cci_finalize, but false in a forked child.
 * Any thread may call this function. */
static inline bool p3_cci_is_up(void)
{
	return p3_likely(p3_acquire(&p3_ready(p3_node())->cci)); /* INIT.1 */
}

/* Return from a call of CCI before cci_init, or with illegal arguments. */
#define P3_CCI_CHECK(legal)                                                              \
	do {                                                                             \
		if (!p3_cci_is_up())                                                     \
			return CCI_ERROR;                                                \
		if (!(legal))                                                            \
			return CCI_EINVAL;                                               \
	} while (0)

/* ---- endpoints ---- */

/* Make CCI a user of the node, unless it is one, and return the NIC.  The first use joins
 * the job or domain.  Return CCI_SUCCESS, or CCI_ENOMEM or CCI_ENODEV after a line. */
int p3_cci_node_use(struct p3_node *node, struct p3_nic **nic_out);
/* End the use of the node, if CCI uses it.  The caller holds the lock node->call. */
void p3_cci_node_release(struct p3_node *node);

/* Write the URI of an endpoint of this node. */
void p3_cci_uri_make(const struct p3_node *node, const char *transport, uint32_t number,
	char uri[P3_CCI_URI]);
/*
 * Find node and number in a URI.  Return CCI_SUCCESS, CCI_EINVAL if it cannot be parsed,
 * or CCI_EADDRNOTAVAIL if it is of another transport, another domain, or another job.
 */
int p3_cci_uri_parse(const struct p3_node *node, const char *transport, const char *uri,
	uint32_t *node_out, uint32_t *number_out);

#endif
