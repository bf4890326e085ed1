/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ref.h - the common functions of the programs of this folder
 *
 * The programs are written as the test programs of the reference implementation were:
 * each process learns its rank, attaches its entries, and then sends, although other
 * ranks may not have started.  They use the public interface only, and nothing of the
 * library's own additions.  A call that fails ends the process with status 1 and a line
 * that names the rank, the place and the code.
 */
#ifndef REF_H
#define REF_H

#include <portals3.h>
#include <portals3_runtime.h>

struct ref {
	unsigned int rank, size;
	ptl_handle_ni_t ni;
	ptl_process_id_t *id; /* by rank */
};

extern struct ref ref;

/*
 * Join as programs do that know yod, the maps in the environment and mpirun: take the
 * pid that the map names, or any.
 */
void ref_start(void);

/* End as REF_END says: "fini" (the default), "return" or "_exit". */
_Noreturn void ref_end(void);

/* Fail with a line that names the place; arguments as for printf. */
_Noreturn void ref_fail(const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#define FAIL(...) ref_fail(__FILE__, __LINE__, __VA_ARGS__)

#define CALL(call)                                                                       \
	do {                                                                             \
		int rc_ = (call);                                                        \
		if (rc_ != PTL_OK)                                                       \
			FAIL("%s: %s, PTL_OK was expected", #call,                       \
				PtlErrorStr((unsigned int)rc_));                         \
	} while (0)

#define CHECK(condition)                                                                 \
	do {                                                                             \
		if (!(condition))                                                        \
			FAIL("not true: %s", #condition);                                \
	} while (0)

ptl_handle_eq_t ref_queue(ptl_size_t count);

/* Describe a region: any number of operations, no options but those that are given. */
ptl_md_t ref_region(
	void *start, ptl_size_t length, unsigned int options, ptl_handle_eq_t eq);

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

/* Fill with bytes that belong to seed, and fail if they do not. */
void ref_fill(void *start, size_t bytes, unsigned int seed);
void ref_compare(const void *start, size_t bytes, unsigned int seed);

/* Return the argument of the program, or fallback. */
const char *ref_form(int argc, char **argv, const char *fallback);

#endif /* REF_H */
