/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config - the configuration file of CCI, and the devices that it describes
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
#ifndef P3_LIB_CCI_CONFIG_H
#define P3_LIB_CCI_CONFIG_H

#include <cci.h>
#include <stdbool.h>
#include <stdio.h>

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

/* Return the device that NULL means, or NULL. */
const struct p3_cci_device *p3_cci_config_usual(const struct p3_cci_devices *devices);
/* Return the device of the list that has this address, or NULL. */
const struct p3_cci_device *p3_cci_config_find(
	const struct p3_cci_devices *devices, cci_device_t *device);

#endif
