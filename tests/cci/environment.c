/* SPDX-License-Identifier: BSD-3-Clause */
/* Conformance of CCI: init, finalize, configuration, devices, names. */
#include "frame.h"
#include "../headers/cci_layout.h"
#include "../support/leaks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int init(uint32_t version)
{
	uint32_t caps = 77;
	int rc = cci_init(version, 0, &caps);
	if (rc == CCI_SUCCESS)
		CHECK_EQ(caps, 0);
	return rc;
}

static cci_device_t *const *devices(void)
{
	cci_device_t *const *all = NULL;
	OK(cci_get_devices(&all));
	CHECK(all);
	return all;
}

static unsigned count(cci_device_t *const *all)
{
	unsigned n = 0;
	while (all[n])
		n++;
	return n;
}

/* Return the transport of devices that are found without a file. */
static const char *transport(void)
{
	static char name[64];
	OK(init(CCI_ABI_VERSION));
	CHECK(devices()[0]);
	snprintf(name, sizeof name, "%s", devices()[0]->transport);
	down();
	return name;
}

/* Write a configuration file in which each @ stands for the transport, and name it. */
static void configure(const char *text)
{
	static char path[] = "/tmp/cci_conf.XXXXXX";
	const char *scheme = transport();
	int fd = mkstemp(path);
	CHECK(fd >= 0);
	FILE *f = fdopen(fd, "w");
	CHECK(f);
	for (; *text; text++)
		if (*text == '@')
			fputs(scheme, f);
		else
			putc(*text, f);
	CHECK(fclose(f) == 0);
	CHECK(setenv("CCI_CONFIG", path, 1) == 0);
	OK(init(CCI_ABI_VERSION));
	(void)unlink(path);
	memcpy(path, "/tmp/cci_conf.XXXXXX", sizeof path);
	CHECK(unsetenv("CCI_CONFIG") == 0);
}

STATEMENT(1, init, 1, 0)
{
	OK(init(2));
}

STATEMENT(2, other_versions, 1, 0)
{
	cci_device_t *const *all;
	CHECK_RC(init(1), CCI_EINVAL);
	CHECK_RC(init(3), CCI_EINVAL);
	CHECK_RC(init(0), CCI_EINVAL);
	CHECK_RC(cci_get_devices(&all), CCI_ERROR);
	CHECK_RC(cci_finalize(), CCI_ERROR);
}

STATEMENT(3, no_caps, 1, 0)
{
	CHECK_RC(cci_init(CCI_ABI_VERSION, 0, NULL), CCI_EINVAL);
	CHECK_RC(cci_finalize(), CCI_ERROR);
}

static void exchange_once(void)
{
	struct both two = both(CCI_CONN_ATTR_RO);
	OK(cci_send(two.a.conn, "hello", 5, CONTEXT(7), 0));
	cci_event_t *event = EXPECT(two.b.ep, CCI_EVENT_RECV);
	CHECK_EQ(event->recv.len, 5);
	CHECK(memcmp(event->recv.ptr, "hello", 5) == 0);
	RETURN(event);
	SENT(two.a.ep, CONTEXT(7));
	down(); /* of both() */
}

STATEMENT(4, counted, 1, 0)
{
	cci_endpoint_t *ep;
	for (int i = 0; i < 3; i++)
		OK(init(CCI_ABI_VERSION));
	OK(cci_finalize());
	OK(cci_finalize());
	exchange_once();
	OK(cci_finalize());
	CHECK_RC(cci_finalize(), CCI_ERROR);
	CHECK(cci_create_endpoint(NULL, 0, &ep, NULL) != CCI_SUCCESS);
}

STATEMENT(5, again, 1, 0)
{
	struct leaks before;
	for (unsigned i = 0; i < many(100); i++) {
		exchange_once();
		if (i == 9) /* from here on all that a process has once is there */
			before = leaks_now();
	}
	struct leaks after = leaks_after(&before);
	CHECK(after.descriptors == before.descriptors);
	CHECK(after.threads == before.threads);
	CHECK(after.mappings <= before.mappings + 2);
	CHECK(after.kib <= before.kib + 2048);
}

STATEMENT(6, finalize_alone, 1, 0)
{
	CHECK_RC(cci_finalize(), CCI_ERROR);
}

STATEMENT(7, config_that_is_not_there, 1, 0)
{
	CHECK(setenv("CCI_CONFIG", "/nowhere/cci.conf", 1) == 0);
	CHECK_RC(init(CCI_ABI_VERSION), CCI_ERROR);
	CHECK_RC(cci_finalize(), CCI_ERROR);
	CHECK(setenv("CCI_CONFIG", "", 1) == 0);
	OK(init(CCI_ABI_VERSION));
	CHECK(count(devices()) >= 1);
}

STATEMENT(8, devices_without_config, 1, 0)
{
	CHECK(unsetenv("CCI_CONFIG") == 0);
	OK(init(CCI_ABI_VERSION));
	CHECK(count(devices()) >= 1);
	for (cci_device_t *const *d = devices(); *d; d++) {
		CHECK((*d)->up);
		CHECK((*d)->name && (*d)->name[0]);
		CHECK((*d)->transport && (*d)->transport[0]);
		CHECK((*d)->max_send_size >= 1024);
		CHECK((*d)->conf_argv && !(*d)->conf_argv[0]);
		CHECK_EQ((*d)->pci.domain, UINT32_MAX);
		CHECK_EQ((*d)->pci.bus, UINT32_MAX);
		CHECK_EQ((*d)->pci.dev, UINT32_MAX);
		CHECK_EQ((*d)->pci.func, UINT32_MAX);
	}
}

STATEMENT(9, sections_without_transport, 1, 0)
{
	configure("text = before\n[first]\ntransport = @\n[bare]\nmtu = 9\n"
		  "[twice]\ntransport = @\ntransport = @\n"
		  "[comment]\n#transport = @\n"
		  "[foreign]\ntransport = quadrics\n[last]\ntransport=@\n");
	CHECK_EQ(count(devices()), 2);
	CHECK(strcmp(devices()[0]->name, "first") == 0 ||
		strcmp(devices()[1]->name, "first") == 0);
	CHECK(strcmp(devices()[0]->name, "last") == 0 ||
		strcmp(devices()[1]->name, "last") == 0);
	CHECK(devices()[0]->up);
	down();
	configure("[foreign]\ntransport = quadrics\n");
	CHECK_EQ(count(devices()), 0);
	down();
	configure("");
	CHECK_EQ(count(devices()), 0);
}

STATEMENT(10, pairs_of_a_section, 1, 0)
{
	configure("[d]\n  transport =   @ # the name\nas=4711#text\nsubnet   =   17\n"
		  "# a comment\n\nno pair\nrouter = a b c\npriority = 10\ndefault = 1\n");
	static const char *const want[] = {
		"as=4711", "subnet=17", "router=a", "priority=10", "default=1"};
	const char *const *argv = devices()[0]->conf_argv;
	char first[80];
	snprintf(first, sizeof first, "transport=%s", devices()[0]->transport);
	CHECK(argv[0] && strcmp(argv[0], first) == 0);
	for (unsigned i = 0; i < 5; i++)
		if (!argv[i + 1] || strcmp(argv[i + 1], want[i]) != 0)
			check_failed(__FILE__, __LINE__, "pair %u is '%s', not '%s'",
				i + 1, argv[i + 1] ? argv[i + 1] : "NULL", want[i]);
	CHECK(!argv[6]);
}

STATEMENT(11, order_of_devices, 1, 0)
{
	static const char *const order[] = {
		"def", "top", "usual", "illegal", "low", "zero", "down"};
	configure("[down]\ntransport=@\nup=0\ndefault=1\n[usual]\ntransport=@\n"
		  "[zero]\ntransport=@\npriority=0\n[low]\ntransport=@\npriority=20\n"
		  "[def]\ntransport=@\npriority=1\ndefault=1\n"
		  "[illegal]\ntransport=@\npriority=101\n"
		  "[top]\ntransport=@\npriority=100\n");
	CHECK_EQ(count(devices()), 7);
	for (unsigned i = 0; i < 7; i++)
		if (strcmp(devices()[i]->name, order[i]) != 0)
			check_failed(__FILE__, __LINE__, "device %u is '%s', not '%s'", i,
				devices()[i]->name, order[i]);
}

/* Return the name of the device that NULL means. */
static const char *default_name(void)
{
	cci_endpoint_t *ep;
	OK(cci_create_endpoint(NULL, 0, &ep, NULL));
	const char *name = ep->device->name;
	OK(cci_destroy_endpoint(ep));
	return name;
}

STATEMENT(12, default_device, 1, 0)
{
	configure("[a]\ntransport=@\npriority=90\n[b]\ntransport=@\ndefault=1\n"
		  "[c]\ntransport=@\n");
	CHECK(strcmp(default_name(), "b") == 0);
	down();
	configure("[a]\ntransport=@\npriority=10\n[b]\ntransport=@\npriority=60\n"
		  "[c]\ntransport=@\ndefault=0\n");
	CHECK(strcmp(default_name(), "b") == 0);
	CHECK(strcmp(devices()[0]->name, "b") == 0);
}

STATEMENT(13, large_files, 1, 0)
{
	static char text[1 << 18];
	size_t n = 0;
	for (int i = 0; i < 40; i++) {
		n += (size_t)snprintf(
			text + n, sizeof text - n, "[d%d]\ntransport=@\n", i);
		n += (size_t)snprintf(
			text + n, sizeof text - n, "%0300d = %0700d\n", i, i);
		n += (size_t)snprintf(text + n, sizeof text - n, "k%02000d = 1\n", i);
		for (int k = 0; k < 40; k++)
			n += (size_t)snprintf(
				text + n, sizeof text - n, "key%d = %d\n", k, k);
	}
	snprintf(text + n, sizeof text - n, "[last]\ntransport=@");
	configure(text);
	CHECK(count(devices()) >= 1);
	for (cci_device_t *const *d = devices(); *d; d++)
		for (const char *const *pair = (*d)->conf_argv; *pair; pair++)
			CHECK(strchr(*pair, '=') && strlen(*pair) < 1100);
	exchange_once();
	down();
	configure("[");
	down();
	configure("[d]\n=\n = \ntransport\n=x\nkey=\n[]\ntransport=@\n]\n");
	(void)count(devices());
}

STATEMENT(14, mss, 1, 0)
{
	configure("[a]\ntransport=@\nmss=1024\n[b]\ntransport=@\nmss=99999999\n"
		  "[c]\ntransport=@\nmss=4096\n");
	for (cci_device_t *const *d = devices(); *d; d++) {
		uint32_t size = (*d)->max_send_size;
		CHECK((*d)->name[0] != 'a' || size == 1024);
		CHECK((*d)->name[0] != 'b' || (size >= 4096 && size < 99999999));
		CHECK((*d)->name[0] != 'c' || size == 4096);
	}
}

STATEMENT(15, same_devices, 1, 0)
{
	OK(init(CCI_ABI_VERSION));
	CHECK_RC(cci_get_devices(NULL), CCI_EINVAL);
	cci_device_t *first = devices()[0];
	unsigned n = count(devices());
	CHECK(devices()[0] == first);
	CHECK_EQ(count(devices()), n);
}

static const cci_status_t all_statuses[] = {CCI_SUCCESS, CCI_ERROR, CCI_ERR_DISCONNECTED,
	CCI_ERR_RNR, CCI_ERR_DEVICE_DEAD, CCI_ERR_RMA_HANDLE, CCI_ERR_RMA_OP,
	CCI_ERR_NOT_IMPLEMENTED, CCI_ERR_NOT_FOUND, CCI_EINVAL, CCI_ETIMEDOUT, CCI_ENOMEM,
	CCI_ENODEV, CCI_ENETDOWN, CCI_EBUSY, CCI_ERANGE, CCI_EAGAIN, CCI_ENOBUFS,
	CCI_EMSGSIZE, CCI_ENOMSG, CCI_EADDRNOTAVAIL, CCI_ECONNREFUSED};

static void check_names(cci_endpoint_t *ep)
{
	for (size_t i = 0; i < sizeof all_statuses / sizeof all_statuses[0]; i++) {
		const char *name = cci_strerror(ep, all_statuses[i]);
		CHECK(name);
		if (strcmp(name, check_code((int)all_statuses[i])) != 0)
			check_failed(__FILE__, __LINE__, "%d is %s, not %s",
				(int)all_statuses[i], name,
				check_code((int)all_statuses[i]));
	}
	CHECK(cci_strerror(ep, (enum cci_status)12345));
	CHECK(cci_strerror(ep, (enum cci_status) - 1));
	CHECK(cci_strerror(ep, (enum cci_status)EPERM));
}

STATEMENT(16, names_of_statuses, 1, 0)
{
	check_names(NULL);
	up();
	check_names(endpoint());
}

STATEMENT(17, names_of_events, 1, 0)
{
#define SAME(name) CHECK(strcmp(cci_event_type_str(name), #name) == 0)
	SAME(CCI_EVENT_NONE);
	SAME(CCI_EVENT_SEND);
	SAME(CCI_EVENT_RECV);
	SAME(CCI_EVENT_CONNECT);
	SAME(CCI_EVENT_CONNECT_REQUEST);
	SAME(CCI_EVENT_ACCEPT);
	SAME(CCI_EVENT_KEEPALIVE_TIMEDOUT);
	SAME(CCI_EVENT_ENDPOINT_DEVICE_FAILED);
#undef SAME
	CHECK(strcmp(cci_event_type_str((cci_event_type_t)8), "Unknown event") == 0);
	CHECK(strcmp(cci_event_type_str((cci_event_type_t)-1), "Unknown event") == 0);
}

/* The assertions of cci_layout.h are in this file, and in tests/headers, whose programs
 * include cci.h before all else in C99, C11 and C++17. */
STATEMENT(18, header_alone, 1, 0)
{
	CHECK(!type_names_are_wrong());
	CHECK_EQ(sizeof(union cci_event), 24);
}
