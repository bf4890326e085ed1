/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loader LIBRARY TIMES - a program that is not linked with the library loads it, uses
 * it and unloads it, again and again; memory and descriptors stay the same
 */
#include "../support/descriptors.h"
#include "../support/memory.h"

#include <portals3.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLACK_KIB = 512 };

#define check(truth, ...)                                                                \
	do {                                                                             \
		if (!(truth)) {                                                          \
			fprintf(stderr, "loader: " __VA_ARGS__);                         \
			fputc('\n', stderr);                                             \
			exit(1);                                                         \
		}                                                                        \
	} while (0)

static void *lib;

static void *find(const char *name)
{
	void *at = dlsym(lib, name);
	check(at, "no %s", name);
	return at;
}

#define FIND(name) __typeof__(name) *name##_ = (__typeof__(name) *)find(#name)

/* Put to oneself, through an interface of its own. */
static void use(unsigned char byte)
{
	FIND(PtlNIInit);
	FIND(PtlGetId);
	FIND(PtlEQAlloc);
	FIND(PtlMEMDAttach);
	FIND(PtlMDBind);
	FIND(PtlPut);
	FIND(PtlEQWait);
	FIND(PtlNIFini);
	unsigned char from[100], to[100] = {0};
	ptl_process_id_t self, anyone = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_handle_ni_t ni;
	ptl_handle_eq_t eq;
	ptl_handle_me_t me;
	ptl_handle_md_t out;
	ptl_event_t ev;
	ptl_md_t md = {.start = to,
		.length = sizeof to,
		.threshold = 1,
		.options = PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE};
	memset(from, byte, sizeof from);
	check(!PtlNIInit_(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni), "PtlNIInit");
	check(!PtlGetId_(ni, &self), "PtlGetId");
	check(!PtlEQAlloc_(ni, 8, PTL_EQ_HANDLER_NONE, &eq), "PtlEQAlloc");
	md.eq_handle = eq;
	check(!PtlMEMDAttach_(ni, 1, anyone, 1, 0, PTL_RETAIN, PTL_INS_AFTER, md,
		      PTL_RETAIN, &me, NULL),
		"PtlMEMDAttach");
	md.start = from;
	md.eq_handle = PTL_EQ_NONE;
	check(!PtlMDBind_(ni, md, PTL_RETAIN, &out), "PtlMDBind");
	check(!PtlPut_(out, PTL_NO_ACK_REQ, self, 1, 0, 1, 0, 0), "PtlPut");
	check(!PtlEQWait_(eq, &ev) && ev.type == PTL_EVENT_PUT_END, "PtlEQWait");
	check(to[99] == byte && to[0] == byte, "nothing has come");
	check(!PtlNIFini_(ni), "PtlNIFini");
}

static void once(const char *path, unsigned n)
{
	int most;
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	check(lib, "%s", dlerror());
	FIND(PtlInit);
	FIND(PtlFini);
	check(!PtlInit_(&most), "PtlInit");
	use((unsigned char)(n % 255 + 1));
	if (n % 4) /* a program may also forget this */
		PtlFini_();
	check(!dlclose(lib), "%s", dlerror());
}

static unsigned long memory(void)
{
	return memory_kib("RssAnon") + memory_kib("RssShmem");
}

int main(int argc, char **argv)
{
	check(argc == 3, "loader LIBRARY TIMES");
	unsigned times = (unsigned)atoi(argv[2]), warm = times / 5;
	unsigned long kib = 0;
	unsigned fds = 0;
	for (unsigned n = 0; n < times; n++) {
		if (n == warm) {
			kib = memory();
			fds = descriptors_settled("self");
		}
		once(argv[1], n);
	}
	unsigned after = descriptors_within("self", fds);
	printf("%u times: %lu KiB, %lu after %u; %u descriptors, %u\n", times, memory(),
		kib, warm, after, fds);
#ifndef P3_SANITIZED
	check(memory() <= kib + SLACK_KIB, "memory grows");
#endif
	check(after == fds, "descriptors");
	return 0;
}
