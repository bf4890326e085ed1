/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The effects of yod's options on nodes, for yod_options.sh:
 *
 *	cpus			pins its thread to one CPU, begins, and prints the CPUs of
 *				itself and of the NIC thread
 *	count N [LIVES [DIES]]	N puts of 8 bytes to the next rank in each life; prints
 *				sent and received messages; rank DIES is killed then
 */
#include "mp.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BITS = 5, LONG = 1 << 16 };

/* Read the value of a key in a file of /proc; an empty string if there is none. */
static void read_key(const char *file, const char *key, char value[200])
{
	char line[400];
	size_t len = strlen(key);
	FILE *f = fopen(file, "re");
	*value = 0;
	while (f && fgets(line, sizeof line, f))
		if (!strncmp(line, key, len))
			sscanf(line + len, " %199s", value);
	if (f)
		fclose(f);
}

/* Find the CPUs of the thread of that name.  Return false if there is none (yet). */
static bool find_thread(const char *wanted, char cpus[200])
{
	char file[300], name[200] = "";
	DIR *d = opendir("/proc/self/task");
	for (struct dirent *e; strcmp(name, wanted) != 0 && (e = readdir(d));) {
		snprintf(file, sizeof file, "/proc/self/task/%s/status", e->d_name);
		read_key(file, "Name:", name);
		read_key(file, "Cpus_allowed_list:", cpus);
	}
	closedir(d);
	return !strcmp(name, wanted);
}

static void print_cpus(void)
{
	char wanted[40], own[200], nic[200];
	ptl_process_id_t id;
	mp_ok(PtlGetId(mp.ni, &id));
	snprintf(wanted, sizeof wanted, "p3nic.%u", id.nid);
	while (!find_thread(wanted, nic))
		sleep_ms(1);
	read_key("/proc/thread-self/status", "Cpus_allowed_list:", own);
	printf("rank %u own %s nic %s\n", mp.rank, own, nic);
}

struct sums {
	uint64_t sent, sent_bytes, received, received_bytes;
};

/* Send short messages, and a long one that needs a mover. */
static void one_life(unsigned n, struct sums *sums)
{
	static unsigned char from[LONG], to[LONG];
	ptlx_stats_t st = {.struct_size = sizeof st};
	mp_start();
	ptl_handle_eq_t eq = mp_queue(1024), sends = mp_queue(1024);
	mp_attach(BITS, to, sizeof to, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, eq);
	ptl_handle_md_t md = mp_bind(from, sizeof from, sends, 0);
	mp_barrier();
	for (unsigned i = 0; i <= n; i++) {
		mp_put(md, 0, i < n ? 8 : LONG, PTL_NO_ACK_REQ, (mp.rank + 1) % mp.size,
			BITS, 0, i);
		mp_expect(eq, PTL_EVENT_PUT_END);
	}
	for (unsigned i = 0; i <= n; i++)
		mp_expect(sends, PTL_EVENT_SEND_END);
	mp_barrier();
	mp_ok(PtlXStats(mp.ni, &st));
	sums->sent += st.msgs_sent;
	sums->sent_bytes += st.bytes_sent;
	sums->received += st.msgs_received;
	sums->received_bytes += st.bytes_received;
}

static void count(unsigned n, unsigned lives, int dies)
{
	struct sums s = {0};
	for (unsigned life = 1; life <= lives; life++) {
		one_life(n, &s);
		if (life < lives)
			mp_end();
	}
	printf("rank %u: %llu %llu %llu %llu\n", mp.rank, (unsigned long long)s.sent,
		(unsigned long long)s.sent_bytes, (unsigned long long)s.received,
		(unsigned long long)s.received_bytes);
	fflush(stdout);
	mp_barrier();
	if ((int)mp.rank == dies)
		raise(SIGKILL);
	PtlFini();
	free(mp_pattern);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "cpus")) {
		mp_pin(0);
		mp_start();
		print_cpus();
		mp_end();
		return 0;
	}
	mp_check(argc > 2 && !strcmp(argv[1], "count"), "cpus, or count N");
	count((unsigned)atoi(argv[2]), argc > 3 ? (unsigned)atoi(argv[3]) : 1,
		argc > 4 ? atoi(argv[4]) : -1);
	return 0;
}
