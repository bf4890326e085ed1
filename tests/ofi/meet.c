/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meet - processes that some starter has begun, which find each other by names in files
 *
 *	ofi_meet FOLDER N
 *
 * Each writes its endpoint's name to a file, sends a number to all, and adds what comes.
 */
#include <dirent.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME = 16, MOST = 64 };

#define OK(call)                                                                         \
	do {                                                                             \
		long rc_ = (long)(call);                                                 \
		if (rc_ < 0) {                                                           \
			fprintf(stderr, "meet.c:%d: %s: %s\n", __LINE__, #call,          \
				fi_strerror((int)-rc_));                                 \
			exit(1);                                                         \
		}                                                                        \
	} while (0)

static struct fid_av *av;
static struct fid_cq *cq;
static struct fid_ep *ep;

static void open_all(void)
{
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fi_info *info, *hints = fi_allocinfo();
	struct fi_av_attr table = {.type = FI_AV_TABLE};
	struct fi_cq_attr queue = {
		.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_UNSPEC};
	hints->caps = FI_TAGGED;
	hints->ep_attr->type = FI_EP_RDM;
	hints->fabric_attr->prov_name = strdup("portals");
	OK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	OK(fi_fabric(info->fabric_attr, &fabric, NULL));
	OK(fi_domain(fabric, info, &domain, NULL));
	OK(fi_av_open(domain, &table, &av, NULL));
	OK(fi_cq_open(domain, &queue, &cq, NULL));
	OK(fi_endpoint(domain, info, &ep, NULL));
	OK(fi_ep_bind(ep, &av->fid, 0));
	OK(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(ep));
	fi_freeinfo(hints);
	fi_freeinfo(info);
}

/* Write this process's name to a file that appears whole. */
static void write_name(const char *folder)
{
	char part[300], path[300];
	unsigned char name[NAME];
	size_t n = NAME;
	OK(fi_getname(&ep->fid, name, &n));
	snprintf(part, sizeof part, "%s/.%d", folder, (int)getpid());
	snprintf(path, sizeof path, "%s/%d", folder, (int)getpid());
	FILE *f = fopen(part, "we");
	if (!f || fwrite(name, NAME, 1, f) != 1 || fclose(f) != 0 ||
		rename(part, path) != 0) {
		perror(path);
		exit(1);
	}
}

/* Read all names that are there; return their number. */
static int read_names(const char *folder, unsigned char names[MOST][NAME])
{
	int n = 0;
	DIR *d = opendir(folder);
	for (struct dirent *e; d && n < MOST && (e = readdir(d)) != NULL;) {
		char path[600];
		snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
		FILE *f = e->d_name[0] == '.' ? NULL : fopen(path, "re");
		n += f && fread(names[n], NAME, 1, f) == 1;
		if (f)
			fclose(f);
	}
	if (d)
		closedir(d);
	return n;
}

int main(int argc, char **argv)
{
	static unsigned char names[MOST][NAME];
	static fi_addr_t at[MOST];
	static int got[MOST];
	const int one = 1;
	int n = argc == 3 ? atoi(argv[2]) : 0, sum = 0;
	if (n < 1 || n > MOST)
		return 2;
	open_all();
	write_name(argv[1]);
	while (read_names(argv[1], names) < n)
		usleep(1000); /* pause: between two looks */
	OK(fi_av_insert(av, names, (size_t)n, at, 0, NULL) == n ? 0 : -FI_EINVAL);
	for (int i = 0; i < n; i++)
		OK(fi_trecv(
			ep, &got[i], sizeof got[i], NULL, FI_ADDR_UNSPEC, 1, 0, &got[i]));
	for (int i = 0; i < n; i++)
		OK(fi_tsend(ep, &one, sizeof one, NULL, at[i], 1, NULL));
	for (int i = 0; i < 2 * n; i++) {
		struct fi_cq_tagged_entry e;
		OK(fi_cq_sread(cq, &e, 1, NULL, -1));
	}
	for (int i = 0; i < n; i++)
		sum += got[i];
	OK(fi_close(&ep->fid));
	return sum == n ? 0 : 1;
}
