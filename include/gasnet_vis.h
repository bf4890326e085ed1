/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gasnet_vis.h - vector, indexed and strided puts and gets (VIS), an extension of
 * GASNet-1; gasnet.h includes it
 *
 * A call moves many pieces and has the semantics of one bulk put or get of their union:
 * the pieces must not change, or be relied on, before the sync.  Metadata (lists, counts
 * and strides) may be reused when the call returns.  Sources may overlap one another,
 * destinations may not.  Lengths, strides and counts[0] are in bytes.  The remote pieces
 * lie in the remote node's segment, the local ones anywhere.
 */
#ifndef _INCLUDED_GASNET_VIS_H
#define _INCLUDED_GASNET_VIS_H

#include <gasnet.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One piece of a vector operation. */
typedef struct {
	void *addr; /* first byte */
	size_t len; /* bytes, perhaps 0 */
} gasnet_memvec_t;

/*
 * gasnet_putv_bulk, gasnet_getv_bulk, gasnet_putv_nb_bulk, gasnet_getv_nb_bulk,
 * gasnet_putv_nbi_bulk, gasnet_getv_nbi_bulk - move lists of pieces		extension
 *
 *	dstnode, srcnode	in	remote node
 *	dstcount, dstlist	in	destination pieces
 *	srccount, srclist	in	source pieces; their total length is that of the
 *					destination
 *
 * The bytes of the sources, in order, fill those of the destinations, in order.  The
 * blocking form returns when all is in place, the _nb form a handle, and the _nbi form
 * belongs to the thread's implicit puts or gets.
 *
 * Main-line code; any thread.  The blocking forms block until the bytes are in place, the
 * others may block for resources.  All may run handlers meanwhile.
 */
void gasnet_putv_bulk(gasnet_node_t dstnode, size_t dstcount,
	gasnet_memvec_t const dstlist[], size_t srccount,
	gasnet_memvec_t const srclist[]);
void gasnet_getv_bulk(size_t dstcount, gasnet_memvec_t const dstlist[],
	gasnet_node_t srcnode, size_t srccount, gasnet_memvec_t const srclist[]);
gasnet_handle_t gasnet_putv_nb_bulk(gasnet_node_t dstnode, size_t dstcount,
	gasnet_memvec_t const dstlist[], size_t srccount,
	gasnet_memvec_t const srclist[]);
gasnet_handle_t gasnet_getv_nb_bulk(size_t dstcount, gasnet_memvec_t const dstlist[],
	gasnet_node_t srcnode, size_t srccount, gasnet_memvec_t const srclist[]);
void gasnet_putv_nbi_bulk(gasnet_node_t dstnode, size_t dstcount,
	gasnet_memvec_t const dstlist[], size_t srccount,
	gasnet_memvec_t const srclist[]);
void gasnet_getv_nbi_bulk(size_t dstcount, gasnet_memvec_t const dstlist[],
	gasnet_node_t srcnode, size_t srccount, gasnet_memvec_t const srclist[]);

/*
 * gasnet_puti_bulk, gasnet_geti_bulk, gasnet_puti_nb_bulk, gasnet_geti_nb_bulk,
 * gasnet_puti_nbi_bulk, gasnet_geti_nbi_bulk - move pieces of equal length	extension
 *
 *	dstnode, srcnode	in	remote node
 *	dstcount, dstlist, dstlen	in	destination: dstcount pieces of dstlen
 *						bytes
 *	srccount, srclist, srclen	in	source: srccount pieces of srclen bytes;
 *					srccount * srclen is dstcount * dstlen
 *
 * As gasnet_putv_bulk in all other respects.
 *
 * Main-line code; any thread.  The blocking forms block until the bytes are in place, the
 * others may block for resources.  All may run handlers meanwhile.
 */
void gasnet_puti_bulk(gasnet_node_t dstnode, size_t dstcount, void *const dstlist[],
	size_t dstlen, size_t srccount, void *const srclist[], size_t srclen);
void gasnet_geti_bulk(size_t dstcount, void *const dstlist[], size_t dstlen,
	gasnet_node_t srcnode, size_t srccount, void *const srclist[], size_t srclen);
gasnet_handle_t gasnet_puti_nb_bulk(gasnet_node_t dstnode, size_t dstcount,
	void *const dstlist[], size_t dstlen, size_t srccount, void *const srclist[],
	size_t srclen);
gasnet_handle_t gasnet_geti_nb_bulk(size_t dstcount, void *const dstlist[], size_t dstlen,
	gasnet_node_t srcnode, size_t srccount, void *const srclist[], size_t srclen);
void gasnet_puti_nbi_bulk(gasnet_node_t dstnode, size_t dstcount, void *const dstlist[],
	size_t dstlen, size_t srccount, void *const srclist[], size_t srclen);
void gasnet_geti_nbi_bulk(size_t dstcount, void *const dstlist[], size_t dstlen,
	gasnet_node_t srcnode, size_t srccount, void *const srclist[], size_t srclen);

/*
 * gasnet_puts_bulk, gasnet_gets_bulk, gasnet_puts_nb_bulk, gasnet_gets_nb_bulk,
 * gasnet_puts_nbi_bulk, gasnet_gets_nbi_bulk - move a box of a regular array	extension
 *
 *	dstnode, srcnode	in	remote node
 *	dstaddr, dststrides	in	destination: first byte, and stridelevels strides
 *	srcaddr, srcstrides	in	source, likewise
 *	count		in	stridelevels + 1 numbers: count[0] contiguous bytes, and
 *				for i from 1 on, count[i] repetitions at a distance of
 *				strides[i - 1] bytes.  If any of them is 0 nothing moves
 *	stridelevels	in	number of strides; 0: contiguous
 *
 * As gasnet_putv_bulk in all other respects.
 *
 * Main-line code; any thread.  The blocking forms block until the bytes are in place, the
 * others may block for resources.  All may run handlers meanwhile.
 */
void gasnet_puts_bulk(gasnet_node_t dstnode, void *dstaddr, const size_t dststrides[],
	void *srcaddr, const size_t srcstrides[], const size_t count[],
	size_t stridelevels);
void gasnet_gets_bulk(void *dstaddr, const size_t dststrides[], gasnet_node_t srcnode,
	void *srcaddr, const size_t srcstrides[], const size_t count[],
	size_t stridelevels);
gasnet_handle_t gasnet_puts_nb_bulk(gasnet_node_t dstnode, void *dstaddr,
	const size_t dststrides[], void *srcaddr, const size_t srcstrides[],
	const size_t count[], size_t stridelevels);
gasnet_handle_t gasnet_gets_nb_bulk(void *dstaddr, const size_t dststrides[],
	gasnet_node_t srcnode, void *srcaddr, const size_t srcstrides[],
	const size_t count[], size_t stridelevels);
void gasnet_puts_nbi_bulk(gasnet_node_t dstnode, void *dstaddr, const size_t dststrides[],
	void *srcaddr, const size_t srcstrides[], const size_t count[],
	size_t stridelevels);
void gasnet_gets_nbi_bulk(void *dstaddr, const size_t dststrides[], gasnet_node_t srcnode,
	void *srcaddr, const size_t srcstrides[], const size_t count[],
	size_t stridelevels);

#ifdef __cplusplus
}
#endif

#endif /* _INCLUDED_GASNET_VIS_H */
