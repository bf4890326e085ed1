/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cci - the Common Communication Interface on the host side
 *
 *	init.c		cci_init, cci_finalize, cci_get_devices
 *	config.c	the configuration file
 *	node.c		the node that CCI shares with Portals
 *	endpoint.c	endpoints, and the list of them
 *	connect.c	cci_connect
 *	uri.c		names of endpoints
 *	handle.c	OS handles
 *	opt.c		options
 *	strerror.c	names of statuses
 *	connection.c, event.c, send.c, rma.c	the calls that the firmware executes
 *
 * lib/cci/ checks arguments and holds objects that only the host needs; endpoints,
 * connections, events and registrations are the firmware's (nic/cci.h).  No type of
 * Portals is used here.
 *
 * The state of a node is struct p3_cci at node->cci.  node->call guards inits, flags and
 * devices; lock guards the list of endpoints.  Any thread may read devices while CCI is
 * initialized.
 */
#ifndef P3_LIB_CCI_CCI_H
#define P3_LIB_CCI_CCI_H

#include "lib/cci/config.h"
#include "lib/cci/up.h"
#include "lib/node/node.h"
#include "nic/cci.h"

#define P3_CCI_URI 128u /* bytes of a URI with its end, at most */

/* An endpoint, as far as the firmware need not know it. */
struct p3_cci_own {
	struct p3_cci_own *next;
	cci_endpoint_t *endpoint;
	int fd; /* the OS handle, or -1 */
	p3_fd_id file;
	char uri[P3_CCI_URI];
};

struct p3_cci {
	uint32_t inits; /* calls of cci_init without their cci_finalize */
	uint32_t flags;
	struct p3_cci_devices *devices;
	pthread_mutex_t lock;
	struct p3_cci_own *own;
};

/* ---- node.c ---- */

/* Make CCI a user of the node, unless it is one, and return the NIC.  The first use joins
 * the job or domain.  Return CCI_SUCCESS, or CCI_ENOMEM or CCI_ENODEV after a line. */
int p3_cci_node_use(struct p3_node *node, struct p3_nic **nic_out);
/* End the use of the node, if CCI uses it.  The caller holds the lock node->call. */
void p3_cci_node_release(struct p3_node *node);

/* ---- uri.c ---- */

/* Write the URI of an endpoint of this node. */
void p3_cci_uri_make(const struct p3_node *node, const char *transport, uint32_t number,
	char uri[P3_CCI_URI]);
/*
 * Find node and number in a URI.  Return CCI_SUCCESS, CCI_EINVAL if it cannot be parsed,
 * or CCI_EADDRNOTAVAIL if it is of another transport, another domain, or another job.
 */
int p3_cci_uri_parse(const struct p3_node *node, const char *transport, const char *uri,
	uint32_t *node_out, uint32_t *number_out);

/* ---- endpoint.c ---- */

/* Destroy all endpoints.  The caller holds the lock node->call. */
void p3_cci_endpoint_destroy_all(struct p3_cci *cci);
/* Return a copy of the endpoint's URI from malloc, or NULL.  *known_out is false if there
 * is no such endpoint. */
char *p3_cci_endpoint_uri(struct p3_cci *cci, const void *endpoint, bool *known_out);

#endif
