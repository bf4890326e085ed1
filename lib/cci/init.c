/* SPDX-License-Identifier: BSD-3-Clause */
/* cci_init and cci_finalize, which are counted, and the list of devices. */
#include "lib/cci/cci.h"
#include "lib/init.h"
#include "lib/node/call.h"
#include "shm/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CONFIG "CCI_CONFIG"

/* Return the name of the transport.  The first endpoint complains of a wrong one. */
static const char *cci_transport(void)
{
	const struct p3_conf_row *row = p3_conf_row(P3_CONF_CCI_TRANSPORT);
	const char *name = p3_conf_text(P3_CONF_CCI_TRANSPORT);
	return name && row->is_form(name) ? name : row->usual;
}

/* Read the devices, from the file of the environment if there is one. */
static int cci_devices_read(struct p3_cci_devices **out)
{
	const char *path = getenv(CONFIG);
	if (!path || !*path)
		return p3_cci_config_read(NULL, cci_transport(), out);
	FILE *file = fopen(path, "re");
	int rc = file ? p3_cci_config_read(file, cci_transport(), out) : -errno;
	if (rc && rc != -ENOMEM)
		p3_error(CONFIG
			" is '%s', which cannot be read: %s; expected a file with "
			"devices, or unset it",
			path, rc == -EIO ? "it is no file of text" : strerror(-rc));
	if (file)
		(void)fclose(file);
	return rc;
}

/* Initialize CCI.  The caller holds the lock node->call. */
static int cci_begin(struct p3_node *node)
{
	int rc = p3_fork_watch(node);
	if (rc)
		return rc;
	struct p3_cci_host *cci = calloc(1, sizeof *cci);
	if (!cci)
		return -ENOMEM;
	p3_conf_log();
	rc = cci_devices_read(&cci->devices);
	if (rc) {
		free(cci);
		return rc;
	}
	node->cci = cci;
	p3_release(&p3_ready(node)->cci, 1); /* INIT.1 */
	return 0;
}

int cci_init(uint32_t abi_ver, uint32_t flags, uint32_t *caps)
{
	struct p3_node *node = p3_node();
	if (abi_ver != CCI_ABI_VERSION || !caps)
		return CCI_EINVAL;
	if (p3_is_busy())
		return CCI_ERROR;
	struct p3_caller caller = p3_caller_save();
	p3_fork_settle(node);
	p3_node_look_for_malloc();
	pthread_mutex_lock(&node->call);
	bool known = node->cci;
	int rc = known || flags ? 0 : cci_begin(node);
	if (!rc && !flags)
		node->cci->inits++;
	pthread_mutex_unlock(&node->call);
	p3_caller_restore(caller);
	if (flags)
		return known ? CCI_ERR_NOT_IMPLEMENTED : CCI_EINVAL;
	if (rc)
		return rc == -ENOMEM ? CCI_ENOMEM : CCI_ERROR;
	*caps = 0;
	return CCI_SUCCESS;
}

/* ---- finalize ---- */

/* Undo one cci_init.  The caller holds the lock node->call. */
static int cci_finalize_one(struct p3_node *node)
{
	struct p3_cci_host *cci = node->cci;
	if (!cci)
		return CCI_ERROR; /* another thread may have called it */
	if (--cci->inits)
		return CCI_SUCCESS;
	while (node->cci_uses && p3_cci_endpoint_destroy(p3_nic(node), NULL))
		;
	p3_cci_node_release(node);
	p3_release(&p3_ready(node)->cci, 0); /* INIT.1 */
	node->cci = NULL;
	p3_cci_config_free(cci->devices);
	free(cci);
	return CCI_SUCCESS;
}

int cci_finalize(void)
{
	struct p3_node *node = p3_node();
	if (!p3_cci_is_up() || p3_is_busy())
		return CCI_ERROR;
	struct p3_caller caller = p3_caller_save();
	pthread_mutex_lock(&node->call);
	int rc = cci_finalize_one(node);
	pthread_mutex_unlock(&node->call);
	p3_caller_restore(caller);
	return rc;
}

/* ---- devices ---- */

int cci_get_devices(cci_device_t *const **devices)
{
	P3_CCI_CHECK(devices);
	*devices = p3_node()->cci->devices->list;
	return CCI_SUCCESS;
}
