/* SPDX-License-Identifier: BSD-3-Clause */
/* Events: cci_get_event, cci_return_event. */
#include "lib/cci/handle.h"
#include "lib/cci/up.h"
#include "nic/cci.h"

/* Take an event of an endpoint with an OS handle. */
static __attribute__((noinline)) int get_with_handle(
	cci_endpoint_t *endpoint, cci_event_t **event)
{
	struct p3_cci_handle *h = p3_cci_handle_enter(endpoint);
	int rc = p3_cci_get_event(endpoint, event);
	p3_cci_handle_looked(endpoint, h, rc == CCI_SUCCESS);
	return rc;
}

static P3_RARE int get_nothing(cci_endpoint_t *endpoint, cci_event_t **event)
{
	if (event)
		*event = NULL;
	return p3_cci_is_up() && (!endpoint || !event) ? CCI_EINVAL : CCI_ERROR;
}

int cci_get_event(cci_endpoint_t *endpoint, cci_event_t **event)
{
	if (p3_unlikely(!event || !endpoint || !p3_cci_is_up()))
		return get_nothing(endpoint, event);
	return p3_cci_has_handle(endpoint) ? get_with_handle(endpoint, event)
					   : p3_cci_get_event(endpoint, event);
}

int cci_return_event(cci_event_t *event)
{
	if (!p3_cci_is_up())
		return CCI_ERROR;
	return event ? p3_cci_return_event(event) : CCI_EINVAL;
}
