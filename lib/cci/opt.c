/* SPDX-License-Identifier: BSD-3-Clause */
/* Options. */
#include "lib/cci/cci.h"
#include "lib/node/call.h"

/* Store the endpoint's URI, a string of the program's. */
static int get_uri(const void *endpoint, char **uri_out)
{
	bool known;
	if (p3_is_busy())
		return CCI_ENOMEM;
	struct p3_caller caller = p3_caller_save();
	char *uri = p3_cci_endpoint_uri(p3_node()->cci, endpoint, &known);
	p3_caller_restore(caller);
	if (!uri)
		return known ? CCI_ENOMEM : CCI_EINVAL;
	*uri_out = uri;
	return CCI_SUCCESS;
}

/* Return true for an option that the firmware keeps.  The name decides what the handle
 * is, so the firmware must not see another name. */
static bool is_number(cci_opt_name_t name)
{
	switch (name) {
	case CCI_OPT_ENDPT_SEND_TIMEOUT:
	case CCI_OPT_ENDPT_RECV_BUF_COUNT:
	case CCI_OPT_ENDPT_SEND_BUF_COUNT:
	case CCI_OPT_ENDPT_KEEPALIVE_TIMEOUT:
	case CCI_OPT_CONN_SEND_TIMEOUT:
	case CCI_OPT_CONN_KEEPALIVE_TIMEOUT:
		return true;
	default:
		return false;
	}
}

int cci_set_opt(cci_opt_handle_t *handle, cci_opt_name_t name, const void *val)
{
	if (!p3_cci_is_up())
		return CCI_ERROR;
	if (!handle || !val || !is_number(name))
		return CCI_EINVAL;
	return p3_cci_set_number(handle, name, *(const uint32_t *)val);
}

int cci_get_opt(cci_opt_handle_t *handle, cci_opt_name_t name, void *val)
{
	if (!p3_cci_is_up())
		return CCI_ERROR;
	if (!handle || !val)
		return CCI_EINVAL;
	switch (name) {
	case CCI_OPT_ENDPT_URI:
		return get_uri(handle, val);
	case CCI_OPT_ENDPT_RMA_ALIGN:
		*(cci_alignment_t *)val = (cci_alignment_t){0};
		return CCI_SUCCESS;
	default:
		return is_number(name) ? p3_cci_get_number(handle, name, val)
				       : CCI_EINVAL;
	}
}
