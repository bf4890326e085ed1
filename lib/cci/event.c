/* SPDX-License-Identifier: BSD-3-Clause */
/* Events: cci_get_event, cci_return_event. */
#include "lib/cci/handle.h"
#include "lib/cci/up.h"
#include "nic/cci.h"

int cci_get_event(cci_endpoint_t *endpoint, cci_event_t **event)
{
	if (event)
		*event = NULL;
	if (!p3_cci_is_up())
		return CCI_ERROR;
	if (!endpoint || !event)
		return CCI_EINVAL;
	struct p3_cci_handle *h = p3_cci_handle_enter(endpoint);
	int rc = p3_cci_get_event(endpoint, event);
	p3_cci_handle_looked(endpoint, h, rc == CCI_SUCCESS);
	return rc;
}

int cci_return_event(cci_event_t *event)
{
	if (!p3_cci_is_up())
		return CCI_ERROR;
	return event ? p3_cci_return_event(event) : CCI_EINVAL;
}
