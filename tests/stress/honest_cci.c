/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of CCI between honest nodes. */
#include "stress/hostile.h"
#include "mp/mp.h"
#include "shm/atomics.h"
#include "support/patience.h"

#include <cci.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LEN = 200 };

static const char password[] = "between honest nodes";

static struct {
	cci_endpoint_t *ep;
	cci_connection_t *to;
	pthread_t thread;
	p3_a32 over;
	unsigned next;
	uint64_t sent, ended, received;
	bool heard_bye;
} own;

static void ok(int status)
{
	mp_check(status == CCI_SUCCESS, "CCI: %s",
		cci_strerror(NULL, (cci_status_t)status));
}

void honest_cci_open(void)
{
	uint32_t caps;
	char service[16];
	cci_device_t *const *devices;
	snprintf(service, sizeof service, "%d", HONEST_CCI_SERVICE);
	ok(cci_init(CCI_ABI_VERSION, 0, &caps));
	ok(cci_get_devices(&devices));
	ok(cci_create_endpoint_at(devices[0], service, 0, &own.ep, NULL));
}

/* ---- events ---- */

static void decide(cci_event_t *ev)
{
	bool honest = ev->request.data_len == sizeof password &&
		      !memcmp(ev->request.data_ptr, password, sizeof password);
	ok(honest ? cci_accept(ev, NULL) : cci_reject(ev));
}

static void check_message(const cci_event_recv_t *r)
{
	uint64_t number;
	const char *at = r->ptr;
	if (r->len == 3) {
		own.heard_bye = true;
		return;
	}
	mp_check(r->len == LEN, "a message of CCI has %u bytes", r->len);
	memcpy(&number, at, sizeof number);
	mp_check(number == own.received, "message %llu of CCI came, not %llu",
		(unsigned long long)number, (unsigned long long)own.received);
	for (unsigned i = sizeof number; i < LEN; i++)
		mp_check(at[i] == (char)(number + i), "a wrong byte in a message of CCI");
	own.received++;
}

static void handle(cci_event_t *ev)
{
	switch (ev->type) {
	case CCI_EVENT_CONNECT_REQUEST:
		decide(ev);
		break;
	case CCI_EVENT_CONNECT:
		ok((int)ev->connect.status);
		own.to = ev->connect.connection;
		break;
	case CCI_EVENT_SEND:
		ok((int)ev->send.status);
		own.ended++;
		break;
	case CCI_EVENT_RECV:
		check_message(&ev->recv);
		break;
	default:
		break;
	}
	ok(cci_return_event(ev));
}

static bool pump(void)
{
	cci_event_t *ev;
	if (cci_get_event(own.ep, &ev) != CCI_SUCCESS)
		return false;
	handle(ev);
	return true;
}

/* ---- the thread ---- */

static void join(void)
{
	char *mine, uri[200];
	ok(cci_get_opt(own.ep, CCI_OPT_ENDPT_URI, &mine));
	*strrchr(mine, '/') = 0;
	*strrchr(mine, '/') = 0;
	snprintf(uri, sizeof uri, "%s/%u/%d", mine, own.next, HONEST_CCI_SERVICE);
	free(mine);
	ok(cci_connect(
		own.ep, uri, password, sizeof password, CCI_CONN_ATTR_RO, NULL, 0, NULL));
	while (!own.to)
		if (!pump())
			usleep(100); /* pause: between two looks */
}

static void send_one(void)
{
	char bytes[LEN];
	memcpy(bytes, &own.sent, sizeof own.sent);
	for (unsigned i = sizeof own.sent; i < LEN; i++)
		bytes[i] = (char)(own.sent + i);
	int status = cci_send(own.to, bytes, LEN, NULL, 0);
	if (status == CCI_ENOBUFS)
		return;
	ok(status);
	own.sent++;
}

static void say_bye(void)
{
	int status;
	while ((status = cci_send(own.to, "bye", 3, NULL, 0)) == CCI_ENOBUFS)
		(void)pump();
	ok(status);
	own.sent++;
}

static void *run(void *arg)
{
	(void)arg;
	join();
	while (!p3_get(&own.over) || !own.sent) { /* one message at least */
		send_one();
		while (pump())
			;
		usleep(200); /* pause: between two messages */
	}
	say_bye();
	struct patience p = patience_begin();
	while (!own.heard_bye || own.ended < own.sent) {
		mp_check(!patience_is_over(&p), "messages of CCI are lost");
		if (!pump())
			usleep(100); /* pause: between two looks */
	}
	return NULL;
}

void honest_cci_start(unsigned next)
{
	own.next = next;
	mp_check(!pthread_create(&own.thread, NULL, run, NULL), "no thread");
}

uint64_t honest_cci_stop(void)
{
	p3_set(&own.over, 1);
	pthread_join(own.thread, NULL);
	ok(cci_destroy_endpoint(own.ep));
	ok(cci_finalize());
	return own.received;
}
