/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * endpoint - the medium between hosts, as the far wire sees it
 *
 * An endpoint sends datagrams of up to P3_FAR_BYTES between the nodes of a job.  It may
 * lose them, also those that it has reported as sent; it may double, delay, damage and
 * reorder them.  The far wire (far.c) handles all that, and asks nothing else of an
 * endpoint, except that its network is private, or that it authenticates frames.  So an
 * endpoint may be sockets (stream.c), a provider of libfabric (fabric.c), or queues in
 * one process (tests).
 *
 *	an operation of the far wire, on one of its buffers, or a read
 *	  --send, post or read-->  the endpoint has it  --poll: an event-->  it is free
 *
 * Each operation that the endpoint has taken comes back through poll once, or never after
 * close.  If loses_buffers is set, a buffer that was sent may also be lost with its
 * connection.
 *
 * An endpoint may also read the memory of other nodes (reads is not NULL).  A node
 * offers bytes under a key, and each node that knows the key may read them until they are
 * recalled.  A read that has begun cannot be called back: it may write to its own memory,
 * and be served from the owner's, until poll reports it, or until cut or close.  It
 * writes to memory of the far wire only.  No node can write to another node's memory.
 *
 * open and close run when the NIC starts and stops, name in any thread; the lease holder
 * calls all others.  No function waits.
 */
#ifndef P3_NIC_FAR_ENDPOINT_H
#define P3_NIC_FAR_ENDPOINT_H

#include "nic/nic.h"
#include "nic/wire/frame.h"

/* Cells of data of a frame at most: two chunks of a window, and short parts. */
#define P3_FAR_CELLS   (2 * P3_CHUNK_LEN / P3_CELL + 16)
#define P3_FAR_BYTES   (64 + 64 * P3_FAR_CELLS)

#define P3_FAR_BUFFERS 128u /* for frames to send, beyond those of each link (link.h) */
#define P3_FAR_POSTED  64u  /* for frames that come */

/* An operation that an endpoint has taken. */
struct p3_far_op {
	uint64_t space[12]; /* for the endpoint */
	enum { P3_FAR_SEND, P3_FAR_RECEIVE, P3_FAR_READ } kind;
};

/* Memory for one frame. */
struct p3_far_buffer {
	struct p3_far_op op;        /* P3_FAR_SEND or P3_FAR_RECEIVE */
	struct p3_far_buffer *next; /* in a list of the far wire, or of the endpoint */
	uint32_t node;              /* to send: the peer that the frame goes to */
	bool held;                  /* its frame waits for an acknowledgement */
	bool lent;                  /* the endpoint has it */
	uint64_t lent_ns;           /* time when the endpoint took it */
	_Alignas(64) struct p3_frame frame;
	unsigned char more[P3_FAR_BYTES - sizeof(struct p3_frame)]; /* of its data */
};

/* A read of another node's memory. */
struct p3_far_read {
	struct p3_far_op op; /* P3_FAR_READ */
	void *to;
	uint64_t len;
	uint64_t key;  /* of the owner's bytes */
	uint64_t from; /* offset in the bytes of that key */
	void *owner;   /* of the far wire */
};

/* Bytes that this node offers.  The endpoint may keep it in a list until it is recalled,
 * so it stays in its place. */
struct p3_far_region {
	void *handle;
	uint64_t key; /* not 0 */
	/* The other members are for endpoints that keep it. */
	const char *bytes;
	uint64_t len;
	struct p3_far_region *next;
	uint32_t uses; /* connections that send its bytes now */
};

/* An operation is over. */
struct p3_far_event {
	struct p3_far_op *op;
	bool failed;
	uint32_t len; /* P3_FAR_RECEIVE: bytes in the buffer */
};

enum p3_far_reads_kind {
	P3_FAR_NO_READS,
	P3_FAR_READS,         /* a read may be served before an earlier one is */
	P3_FAR_READS_IN_ORDER /* reads of a node are served in their order */
};

struct p3_endpoint;

struct p3_endpoint_ops {
	bool loses_buffers;
	/* Frames come unchanged, and from the node that they name, though perhaps of an
	 * earlier life of it. */
	bool authenticates;
	/* Open an endpoint of a node.  Return 0, or -errno after an error line. */
	int (*open)(const struct p3_far_conf *conf, uint32_t node, uint32_t nnodes,
		struct p3_endpoint **ep_out);
	void (*close)(struct p3_endpoint *ep);
	/* Write the name by which others find this endpoint.  Return its length. */
	uint32_t (*name)(const struct p3_endpoint *ep, unsigned char out[P3_FAR_NAME]);
	/* Return the longest frame, up to P3_FAR_BYTES, that is lost or arrives as a
	 * whole.  An endpoint may split longer ones, and never give back the buffers of
	 * one that broke.  NULL: it takes all as wholes. */
	uint32_t (*most)(const struct p3_endpoint *ep);
	/* Turn a name into an address, at the first frame of each life of the pair.
	 * Return 0 or -errno. */
	int (*resolve)(struct p3_endpoint *ep, uint32_t node, const unsigned char *name,
		uint32_t len, uint64_t *to_out);
	/* Take a buffer to send len bytes of its frame.  Return 0, or -EAGAIN: later, or
	 * another -errno: the connection is broken. */
	int (*send)(struct p3_endpoint *ep, uint64_t to, struct p3_far_buffer *b,
		uint32_t len);
	/* Send now what send has taken since the last call, as few system calls as
	 * possible for all of it.  NULL: send has done so. */
	void (*push)(struct p3_endpoint *ep);
	/* Take a buffer to receive a frame.  Return 0 or -errno. */
	int (*post)(struct p3_endpoint *ep, struct p3_far_buffer *b);
	/* Write the events since the last call, and return their number.  A call also
	 * makes the medium progress. */
	uint32_t (*poll)(struct p3_endpoint *ep, struct p3_far_event *out, uint32_t most);
	/* Return the descriptor that arm makes readable later, or -errno.  It does not
	 * change. */
	int (*news)(const struct p3_endpoint *ep);
	/* Make the descriptor readable when poll has news.  Return 0; -EAGAIN if poll has
	 * some now; -ENOSPC if the descriptor does not show all news, so that poll must
	 * look again after a while; or another -errno. */
	int (*arm)(struct p3_endpoint *ep);
	/* Remote reads; NULL: there are none. */
	enum p3_far_reads_kind (*reads)(const struct p3_endpoint *ep);
	/* Offer bytes under a key that cannot be guessed, and that was never used before.
	 * This neither pins nor touches the memory.  Return 0 or -errno. */
	int (*offer)(struct p3_endpoint *ep, const void *bytes, uint64_t len,
		struct p3_far_region *out);
	void (*recall)(struct p3_endpoint *ep, struct p3_far_region *r);
	/* Begin a read.  Return as send does. */
	int (*read)(struct p3_endpoint *ep, uint64_t to, struct p3_far_read *r);
	/* End all reads between this node and a peer, on both sides: none touches this
	 * node's memory any more, and poll reports the failure of this node's.  Frames
	 * may be lost.  close does the same for all peers. */
	void (*cut)(struct p3_endpoint *ep, uint64_t to);
};

/* The usual endpoint, p3_endpoint_stream, is in nic/nic.h. */
/* Endpoints over libfabric, of the provider of the configuration, at its address, which
 * may be NULL: the provider chooses. */
extern const struct p3_endpoint_ops p3_endpoint_fabric;

#endif
