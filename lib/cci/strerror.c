/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of statuses. */
#include <cci.h>

#include <string.h>

struct name {
	enum cci_status status;
	const char *text;
};

#define ENTRY(name)                                                                      \
	{                                                                                \
		name, #name                                                              \
	}

static const struct name names[] = {ENTRY(CCI_SUCCESS), ENTRY(CCI_ERROR),
	ENTRY(CCI_ERR_DISCONNECTED), ENTRY(CCI_ERR_RNR), ENTRY(CCI_ERR_DEVICE_DEAD),
	ENTRY(CCI_ERR_RMA_HANDLE), ENTRY(CCI_ERR_RMA_OP), ENTRY(CCI_ERR_NOT_IMPLEMENTED),
	ENTRY(CCI_ERR_NOT_FOUND), ENTRY(CCI_EINVAL), ENTRY(CCI_ETIMEDOUT),
	ENTRY(CCI_ENOMEM), ENTRY(CCI_ENODEV), ENTRY(CCI_ENETDOWN), ENTRY(CCI_EBUSY),
	ENTRY(CCI_ERANGE), ENTRY(CCI_EAGAIN), ENTRY(CCI_ENOBUFS), ENTRY(CCI_EMSGSIZE),
	ENTRY(CCI_ENOMSG), ENTRY(CCI_EADDRNOTAVAIL), ENTRY(CCI_ECONNREFUSED)};

const char *cci_strerror(cci_endpoint_t *endpoint, enum cci_status status)
{
	(void)endpoint;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (names[i].status == status)
			return names[i].text;
	const char *text = strerrordesc_np((int)status);
	return text ? text : "unknown error";
}
