/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * prov.c - what libfabric loads: the entry point and the settings
 *
 * Every libfabric program of a host loads the provider, so loading has no effects.
 */
#include "prov.h"

struct ofi_settings ofi_settings = {
	.eager = 8192,
	.unexpected = 8u << 20,
};

static void prov_cleanup(void)
{
}

struct fi_provider ofi_provider = {
	.version = FI_VERSION(1, 0),
	.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.name = OFI_NAME,
	.getinfo = ofi_getinfo,
	.fabric = ofi_fabric_open,
	.cleanup = prov_cleanup,
};

/* Read a setting in bytes, and bring it into a range. */
static void prov_setting(const char *name, size_t *value, size_t least, size_t most)
{
	size_t wanted;
	if (fi_param_get_size_t(&ofi_provider, name, &wanted))
		return;
	if (wanted < least || wanted > most)
		FI_WARN(&ofi_provider, FI_LOG_CORE,
			"FI_PORTALS_%s is %zu; from %zu to %zu is possible\n", name,
			wanted, least, most);
	*value = wanted < least ? least : wanted > most ? most : wanted;
}

FI_EXT_INI
{
	fi_param_define(&ofi_provider, "eager", FI_PARAM_SIZE_T,
		"Longest message, in bytes, that is sent before its receiver asks for it "
		"(default: %zu, at most 8192)",
		ofi_settings.eager);
	fi_param_define(&ofi_provider, "unexpected", FI_PARAM_SIZE_T,
		"Bytes for messages that no receive waits for, of each endpoint's "
		"messages "
		"and of its tagged messages (default: %zu)",
		ofi_settings.unexpected);
	prov_setting("eager", &ofi_settings.eager, 0, 8192);
	prov_setting("unexpected", &ofi_settings.unexpected, 1u << 18, 1u << 30);
	return &ofi_provider;
}
