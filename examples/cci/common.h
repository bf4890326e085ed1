/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * common.h - the common part of these programs: opening an endpoint, waiting for an
 * event, and ending the program when something is wrong
 *
 * The programs sleep on the endpoint's descriptor while no event is there.  A program
 * that has a CPU of its own may pass NULL to cci_create_endpoint and call cci_get_event
 * in a loop instead: it hears of a message sooner.
 */
#ifndef CCI_EXAMPLES_COMMON_H
#define CCI_EXAMPLES_COMMON_H

#include <cci.h>

#include <poll.h>
#include <stdlib.h>
#include <string.h>

static struct {
	cci_endpoint_t *endpoint;
	cci_os_handle_t fd;
} here;

/* End the program if a call or an operation failed: an example cannot go on then. */
static inline void check(int status, const char *what)
{
	if (status != CCI_SUCCESS) {
		fprintf(stderr, "%s: %s\n", what,
			cci_strerror(here.endpoint, (cci_status_t)status));
		exit(1);
	}
}

/* End the program if a result is wrong. */
static inline void expect(int right, const char *what)
{
	if (!right) {
		fprintf(stderr, "wrong: %s\n", what);
		exit(1);
	}
}

/* Start CCI, and open an endpoint on the default device. */
static inline void open_endpoint(void)
{
	uint32_t caps;
	check(cci_init(CCI_ABI_VERSION, 0, &caps), "cci_init");
	check(cci_create_endpoint(NULL, 0, &here.endpoint, &here.fd),
		"cci_create_endpoint");
}

/* Print the address that clients need. */
static inline void print_uri(void)
{
	char *uri;
	check(cci_get_opt(here.endpoint, CCI_OPT_ENDPT_URI, &uri), "cci_get_opt");
	printf("Opened %s\n", uri);
	fflush(stdout);
	free(uri);
}

/* Return the next event, which is to be returned to CCI. */
static inline cci_event_t *next_event(void)
{
	cci_event_t *event;
	struct pollfd readable = {.fd = here.fd, .events = POLLIN};
	while (cci_get_event(here.endpoint, &event) != CCI_SUCCESS)
		(void)poll(&readable, 1, -1);
	return event;
}

static inline void done_with(cci_event_t *event)
{
	check(cci_return_event(event), "cci_return_event");
}

/* Wait for an event of a type; no other one is expected. */
static inline cci_event_t *await(cci_event_type_t type)
{
	cci_event_t *event = next_event();
	expect(event->type == type, cci_event_type_str(event->type));
	return event;
}

/* End the program if a server cannot be reached. */
static inline void check_server(int status, const char *uri)
{
	if (status != CCI_SUCCESS) {
		fprintf(stderr,
			"%s: %s; expected the address that a running server has printed, "
			"as in portals://default/0/71363\n",
			uri, cci_strerror(here.endpoint, (cci_status_t)status));
		exit(1);
	}
}

/* Connect to a server, reliably and in order. */
static inline cci_connection_t *connect_to(const char *uri)
{
	const struct timeval patience = {.tv_sec = 30};
	check_server(cci_connect(here.endpoint, uri, NULL, 0, CCI_CONN_ATTR_RO, NULL, 0,
			     &patience),
		uri);
	cci_event_t *event = await(CCI_EVENT_CONNECT);
	cci_connection_t *connection = event->connect.connection;
	check_server((int)event->connect.status, uri);
	done_with(event);
	return connection;
}

static inline void close_endpoint(void)
{
	check(cci_destroy_endpoint(here.endpoint), "cci_destroy_endpoint");
	here.endpoint = NULL;
	check(cci_finalize(), "cci_finalize");
}

#endif
