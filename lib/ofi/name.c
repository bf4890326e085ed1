/* SPDX-License-Identifier: BSD-3-Clause */
/* name.c - addresses of endpoints: 16 bytes, and texts for people and for fi_getinfo */
#include "prov.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MAGIC = 0x5033, NAME_VERSION = 1, NAME_MOST_PID = 65534 };
#define NAME_THIS_HOST 0x7f000001u /* the node id of processes that no launcher started */

struct ofi_name ofi_name_of(ptl_process_id_t id, unsigned endpoint, unsigned domain)
{
	return (struct ofi_name){
		.magic = NAME_MAGIC,
		.version = NAME_VERSION,
		.endpoint = (uint8_t)endpoint,
		.domain = (uint8_t)domain,
		.nid = id.nid,
		.pid = id.pid,
	};
}

bool ofi_name_is_good(const struct ofi_name *name)
{
	return name->magic == NAME_MAGIC && name->version == NAME_VERSION &&
	       name->endpoint < OFI_ENDPOINTS && name->domain < OFI_DOMAINS &&
	       name->nid != PTL_NID_ANY && name->pid != PTL_PID_ANY;
}

/* A node is a node id with dots, as of a job, or any name of this host. */
static uint32_t name_node(const char *node)
{
	struct in_addr addr;
	return node && inet_pton(AF_INET, node, &addr) == 1 ? ntohl(addr.s_addr)
							    : NAME_THIS_HOST;
}

int ofi_name_parse(const char *node, const char *service, struct ofi_name *name)
{
	static const char prefix[] = "portals://";
	char text[FI_NAME_MAX];
	unsigned long pid = 0, endpoint = 0;
	char *end;
	if (node && !strncmp(node, prefix, sizeof prefix - 1)) {
		/* portals://NODE/PID/ENDPOINT, as fi_av_straddr writes it */
		char nid[FI_NAME_MAX];
		snprintf(text, sizeof text, "%s", node + sizeof prefix - 1);
		if (sscanf(text, "%63[^/]/%lu/%lu", nid, &pid, &endpoint) != 3 ||
			pid > NAME_MOST_PID || endpoint >= OFI_ENDPOINTS)
			return -FI_ENODATA;
		*name = ofi_name_of((ptl_process_id_t){name_node(nid), (uint32_t)pid},
			(unsigned)endpoint, 0);
		return 0;
	}
	if (service) {
		pid = strtoul(service, &end, 10);
		if (end == service || *end || pid < 1 || pid > NAME_MOST_PID)
			return -FI_ENODATA;
	}
	*name = ofi_name_of((ptl_process_id_t){name_node(node), (uint32_t)pid}, 0, 0);
	return 0;
}

int ofi_name_text(const struct ofi_name *name, char *text, size_t size)
{
	char nid[INET_ADDRSTRLEN];
	struct in_addr addr = {htonl(name->nid)};
	inet_ntop(AF_INET, &addr, nid, sizeof nid);
	return snprintf(text, size, "portals://%s/%u/%u", nid, name->pid, name->endpoint);
}
