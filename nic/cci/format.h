/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * format - the words of CCI's messages in a lane
 *
 * Word 0 is that of each message (nic/proto/format.h), and so are the helpers.  The enums
 * below name the fields, one enum for each layout.  Each request that wants an answer
 * reserves one cell of the response ring, and carries a token, which names the operation
 * that waits for the answer.
 * The tag of a connection and the token of an operation are names of the process that
 * made them; other processes copy them only.
 */
#ifndef P3_NIC_CCI_FORMAT_H
#define P3_NIC_CCI_FORMAT_H

#include "nic/proto/format.h"

/* Flags of MSG and CONNECT: more parts of it follow; parts of it came before. */
enum { P3_F_CCI_MORE = 1, P3_F_CCI_LATER = 2 };
/* Flags of DECIDE: the request is accepted. */
enum { P3_F_CCI_ACCEPT = 1 };
/* Flags of WRITE: the target pulls the bytes. */
enum { P3_F_CCI_LONG = 1 };

/* All requests. */
enum p3_cci_request_fields {
	P3_CCI_ROOM = P3_FIELD(1, 48, 16), /* 1: an answer is wanted */
	P3_CCI_TOKEN = P3_FIELD(2, 0, 64),
	P3_CCI_TAG = P3_FIELD(3, 0, 64) /* of the target's connection */
};

/* MSG. */
enum p3_cci_msg_fields {
	P3_CCI_MSG_LENGTH = P3_FIELD(1, 0, 16), /* of this part */
	P3_CCI_MSG_SEQ = P3_FIELD(1, 16, 32),
	P3_CCI_MSG_DATA = P3_FIELD(4, 0, 256)
};

/* CONNECT, which has no tag. */
enum p3_cci_connect_fields {
	P3_CCI_CONNECT_TOTAL = P3_FIELD(1, 0, 16), /* bytes of all parts */
	P3_CCI_CONNECT_ATTRIBUTE = P3_FIELD(1, 16, 8),
	P3_CCI_CONNECT_NUMBER = P3_FIELD(3, 0, 32), /* of the endpoint */
	P3_CCI_CONNECT_MTU = P3_FIELD(3, 32, 32),
	P3_CCI_CONNECT_LENGTH = P3_FIELD(4, 0, 16), /* of this part */
	P3_CCI_CONNECT_DATA = P3_FIELD(5, 0, 192)
};

/* DECIDE. */
enum p3_cci_decide_fields { P3_CCI_DECIDE_MTU = P3_FIELD(4, 0, 32) };

/* WRITE and READ. */
enum p3_cci_rma_fields {
	P3_CCI_RMA_REGION = P3_FIELD(4, 0, 64),
	P3_CCI_RMA_OFFSET = P3_FIELD(5, 0, 64),
	P3_CCI_RMA_LENGTH = P3_FIELD(6, 0, 64),
	P3_CCI_RMA_XFER = P3_FIELD(7, 0, 64), /* long: the initiator's slot */
	P3_CCI_RMA_DATA = P3_FIELD(7, 0, 64)  /* WRITE: the first bytes */
};

/* An answer. */
enum p3_cci_answer_fields {
	P3_CCI_ANSWER_STATUS = P3_FIELD(1, 0, 32),
	P3_CCI_ANSWER_KIND = P3_FIELD(1, 32, 8), /* p3_req_kind of the request */
	P3_CCI_ANSWER_LONG = P3_FIELD(1, 40, 8), /* READ: the bytes are to be pulled */
	P3_CCI_ANSWER_TOKEN = P3_FIELD(2, 0, 64),
	P3_CCI_ANSWER_XFER =
		P3_FIELD(3, 0, 64), /* the slot that is over, or is to be read */
	P3_CCI_ANSWER_ADDR = P3_FIELD(4, 0, 64),
	P3_CCI_ANSWER_HEAP = P3_FIELD(5, 0, 64),
	P3_CCI_ANSWER_OWN = P3_FIELD(6, 0, 64),  /* READ, long: the initiator's slot */
	P3_CCI_ANSWER_DATA = P3_FIELD(3, 0, 320) /* READ: the bytes */
};

#define P3_CCI_MSG_HEAD     32u /* bytes of data in the header of a MSG, */
#define P3_CCI_CONNECT_HEAD 24u /* of a CONNECT, */
#define P3_CCI_WRITE_HEAD   8u  /* of a WRITE, */
#define P3_CCI_ANSWER_HEAD  40u /* and of the answer to a READ */

enum p3_cci_status {
	P3_CCI_OK,
	P3_CCI_RNR,     /* no room now */
	P3_CCI_REFUSED, /* there is no such connection or endpoint */
	P3_CCI_GONE,    /* DECIDE: the client has given up */
	P3_CCI_HANDLE,  /* RMA: there is no such region, or it has not the right */
	P3_CCI_NO_OP    /* RMA: the operation is unknown */
};

/* Return the cells of a message whose header has head bytes of its len. */
static inline uint32_t p3_cci_cells(uint32_t head, uint64_t len)
{
	return 1 + (len > head ? (uint32_t)((len - head + 63) / 64) : 0);
}

/* Return the most bytes of a message of this number of cells. */
static inline uint64_t p3_cci_most(uint32_t head, uint32_t cells)
{
	return head + 64ull * (cells - 1);
}

#endif
