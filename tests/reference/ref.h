/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ref.h - the common functions of the programs of this folder
 *
 * The programs are written as the test programs of the reference implementation were:
 * each process learns its rank, attaches its entries, and then sends, although other
 * ranks may not have started.  They use the public interface only, and of the library's
 * own additions nothing.  mp/mp.h has their checks, objects and data.
 */
#ifndef REF_H
#define REF_H

#include "../mp/mp.h"

/*
 * Join as programs do that know yod, the maps in the environment and mpirun: take the
 * pid that the map names, or any.
 */
void ref_start(void);

/* End as REF_END says: "fini" (the default), "return" or "_exit". */
_Noreturn void ref_end(void);

#define FAIL(...)        mp_fail(__FILE__, __LINE__, __VA_ARGS__)
#define CHECK(condition) mp_check(condition, "not true: %s", #condition)

/* Attach an entry with a descriptor at the tail; both are unlinked together. */
ptl_handle_md_t ref_attach(ptl_pt_index_t index, ptl_process_id_t from,
	ptl_match_bits_t bits, ptl_md_t md, ptl_unlink_t unlink);

/* Wait for an event of an operation that has not failed. */
ptl_event_t ref_wait(ptl_handle_eq_t eq);

/* Fail if the event reports a failed operation. */
void ref_good(const ptl_event_t *event);

/* Return the rank of a process. */
unsigned int ref_rank(ptl_process_id_t id);

void *ref_memory(size_t bytes);

/* Return the argument of the program, or fallback. */
const char *ref_form(int argc, char **argv, const char *fallback);

#endif /* REF_H */
