/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * orders - messages between the program of the model and its nodes, if these are ranks of
 * a job
 *
 *	rank --- HELLO ---> program
 *	program --- order, bytes ---> rank --- answer, pieces of its arena ---> program
 *
 * They talk through a socket of the file system, which the hosts of tests/hosts share.
 * Memory that net_memory() returns is at the same place in all processes, so pointers in
 * orders and events mean the same everywhere.
 */
#ifndef P3_TESTS_MODEL_ORDERS_H
#define P3_TESTS_MODEL_ORDERS_H

#include "portals3.h"

#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#define ORDER_PLACE  ((char *)0x200000000000) /* of net_memory() */
#define ORDER_MEMORY ((size_t)16 << 20)
#define ORDER_IOVS   6u
#define ORDER_POLLS  3u
#define ORDER_PIECE  4096u
#define ORDER_LAST   UINT32_MAX

enum order_call {
	ORDER_BEGIN,  /* open an interface; at: the arena */
	ORDER_WROTE,  /* len bytes at "at" follow; no answer */
	ORDER_SETTLE, /* look for a while if the node rests; first: for the first time */
	ORDER_READ,   /* answer with the changed pieces of the arena */
	ORDER_END,
	ORDER_ME_ATTACH,
	ORDER_ME_ATTACH_ANY,
	ORDER_ME_INSERT,
	ORDER_ME_UNLINK,
	ORDER_MD_ATTACH,
	ORDER_MD_BIND,
	ORDER_MD_UNLINK,
	ORDER_MD_UPDATE,
	ORDER_MEMD_ATTACH,
	ORDER_MEMD_INSERT,
	ORDER_MEMD_POST,
	ORDER_PUT,
	ORDER_PUT_REGION,
	ORDER_GET,
	ORDER_GET_REGION,
	ORDER_GETPUT,
	ORDER_GETPUT_REGION,
	ORDER_AC_ENTRY,
	ORDER_EQ_ALLOC,
	ORDER_EQ_FREE,
	ORDER_EQ_GET,
	ORDER_EQ_PEEK,
	ORDER_EQ_POLL,
	ORDER_NI_STATUS,
	ORDER_NI_HANDLE,
	ORDER_IS_EQUAL,
	ORDER_GET_IDS
};

struct hello {
	uint32_t rank, size;
};

struct order {
	uint32_t call;
	bool first, has_md, has_old, has_handler;
	uint64_t handle[3];
	ptl_process_id_t id;
	uint32_t pt, ac;
	ptl_uid_t uid;
	ptl_jid_t jid;
	ptl_unlink_t me_unlink, md_unlink;
	ptl_ins_pos_t position;
	ptl_ack_req_t ack;
	uint64_t bits, ignore, hdr;
	uint64_t local_offset, local_offset2, length, remote_offset;
	int n; /* of EQAlloc, EQPoll and NIStatus */
	ptl_time_t timeout;
	ptl_md_t md, old;
	ptl_md_iovec_t iov[ORDER_IOVS]; /* at md.start */
	ptl_ni_limits_t limits;
	void *at;
	uint64_t len;
};

struct answer {
	int rc;
	bool rests;
	uint64_t done; /* messages so far */
	uint64_t drops;
	uint64_t handle[2];
	uint32_t pt;
	int which;
	uint32_t handled; /* calls of a queue's handler, with "event" */
	ptl_event_t handler_event;
	ptl_event_t event;
	ptl_sr_value_t value;
	ptl_md_t old;
	ptl_md_iovec_t iov[ORDER_IOVS];
	ptl_process_id_t id;
	ptl_uid_t uid;
	ptl_jid_t jid;
	ptl_ni_limits_t limits;
};

/* The answer to ORDER_READ; then pieces follow, the last one at ORDER_LAST. */
struct piece {
	uint32_t at; /* in the arena */
	unsigned char bytes[ORDER_PIECE];
};

static inline bool order_write(int sock, const void *from, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = write(sock, (const char *)from + done, len - done);
		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

static inline bool order_read(int sock, void *to, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = read(sock, (char *)to + done, len - done);
		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

/* remote.c: calls of Portals that another process makes */
/* Let the node of the last net_enter() of this thread carry an order out.  End the
 * program if the node's process has ended or hangs. */
void remote_ask(const struct order *o, struct answer *answer_out);

#endif
