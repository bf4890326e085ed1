/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * frame - the conformance suite of CCI: processes, checks, results
 *
 * A program of the suite holds some statements of the checklist (statements.txt), each a
 * function STATEMENT(number, name, processes, flags).  For each of them the program
 * starts that many processes, which all run the function and differ in their rank: rank
 * 0 is mostly the client, rank 1 the server.  They share a room, memory through which
 * they meet and tell each other URIs; it is no part of the library under test.
 *
 * A failed check prints one line, and all processes of this test end.  The program goes
 * on with the next statement, and prints the results as TAP lines.
 *
 *	cci_NAME             all of its statements
 *	cci_NAME NUMBER...   these statements only
 *
 * The environment selects how the processes run:
 *
 *	CCI_BY=yod       ranks of one job (the default)
 *	CCI_BY=hand      processes of a domain, started one by one
 *	CCI_BY=/PROGRAM  ranks on several hosts: tests/hosts/mpirun.sh or yod.sh
 *	CCI_CPUS=1       all of them on one CPU
 *	CCI_SHARE=N      an Nth of the rounds that the checklist names (default 1)
 *	PTL3_MODE, PTL3_MOVER, ...   as for any program
 */
#ifndef P3_TESTS_CCI_FRAME_H
#define P3_TESTS_CCI_FRAME_H

#include "../support/random.h"
#include "../support/suite.h"

#include <cci.h>

enum { RANKS_MOST = 72, URIS_MOST = 16, WORDS = 32 };

/* Flag of a statement: the processes are in a domain, which spawn() needs. */
enum { DOMAIN = 2 };

struct me {
	unsigned rank, size;
	bool is_client, is_server; /* rank 0, rank 1 */
};
extern struct me me;

#define STATEMENT(number, name, processes, flags)                                        \
	STATEMENT_OF(number, name, processes, flags)

/* ---- checks ---- */

/* Leave the statement out; the table shows the reason. */
_Noreturn void skip(const char *reason);

#define OK(call) CHECK_RC(call, CCI_SUCCESS)

/* ---- waits ---- */

/* Fail if the limit of a wait is over, or another process of this test has failed. */
void look_at(const char *file, int line, struct patience *p, const char *what);
/* Wait for a condition that library calls of this process bring about. */
#define POLL(condition)                                                                  \
	do {                                                                             \
		struct patience p_ = patience_begin();                                   \
		while (!(condition))                                                     \
			look_at(__FILE__, __LINE__, &p_, #condition);                    \
	} while (0)
/* Wait for a condition that others bring about. */
#define AWAIT(condition)                                                                 \
	do {                                                                             \
		struct patience p_ = patience_begin();                                   \
		while (!(condition)) {                                                   \
			look_at(__FILE__, __LINE__, &p_, #condition);                    \
			sleep_us(200);                                                   \
		}                                                                        \
	} while (0)

/* Return true if all processes of the tests share one CPU. */
bool on_one_cpu(void);
/* Return the number of rounds to do where the checklist names this one. */
unsigned long many(unsigned long full);

/* ---- the room ---- */

/* Wait for all processes of the test. */
void barrier(void);
/* Say a word to all processes; wait for the nth word of this test. */
void say(void);
void hear(unsigned n);
/* Numbers that all processes see, 0 at first; the release of set_word() orders stores
 * before it. */
void set_word(unsigned i, uint64_t value);
uint64_t word(unsigned i);
void await_word(unsigned i, uint64_t least);
void add_word(unsigned i, uint64_t value);
/* Memory that all processes share. */
enum { SHARED = 1 << 20 };
unsigned char *shared(void);

/* Do as if nothing happened when this process ends before its function does. */
void may_die(unsigned rank);
int pid_of(unsigned rank);
/* Send a signal to a rank; return when it is dead or stopped, if the signal says so. */
void signal_rank(unsigned rank, int number);
/* Wait until a rank's process has ended. */
void await_end(unsigned rank);
/* End this process at once, as exit() does, without waiting for others. */
_Noreturn void leave(void);

/* Start a process outside the job, in the same domain, that runs helper(name). */
extern const char *helper_argument;
#define HELPER(name)                                                                     \
	static void helper_##name(const char *argument);                                 \
	SCENE(name)                                                                      \
	{                                                                                \
		helper_##name(helper_argument);                                          \
	}                                                                                \
	static void helper_##name(const char *argument)
/* With domain NULL in the domain of the test. */
int spawn(const char *helper, const char *argument, const char *domain);
/* Wait for the end of a spawned process, which must be exit(0). */
void join(int pid);

/* ---- CCI in one line ---- */

void up(void);   /* cci_init */
void down(void); /* cci_finalize */
/* Create an endpoint of the default device, without and with a handle, and tell its URI
 * as this rank's next one. */
cci_endpoint_t *endpoint(void);
cci_endpoint_t *endpoint_fd(int *fd);
/* Return a URI of an endpoint, for ever. */
const char *uri_of(cci_endpoint_t *ep);
/* Return the nth URI that a rank has told; wait for it.  The last 16 are kept. */
const char *told_uri(unsigned rank, unsigned n);
void tell_uri(cci_endpoint_t *ep);
/* Return the number of URIs that this rank has told. */
unsigned uris_told(void);

/* Return the next event, of any type; of this type and status, or a success. */
cci_event_t *next_at(const char *file, int line, cci_endpoint_t *ep);
cci_event_t *expect_at(const char *file, int line, cci_endpoint_t *ep,
	cci_event_type_t type, int status);
#define NEXT(ep)                        next_at(__FILE__, __LINE__, ep)
#define EXPECT_STATUS(ep, type, status) expect_at(__FILE__, __LINE__, ep, type, status)
#define EXPECT(ep, type)                EXPECT_STATUS(ep, type, CCI_SUCCESS)
/* Return the event to the library. */
#define RETURN(event) OK(cci_return_event(event))
/* Expect, and return at once. */
#define TAKE(ep, type) RETURN(EXPECT(ep, type))
/* Expect a successful SEND with this context. */
void sent_at(const char *file, int line, cci_endpoint_t *ep, const void *context);
#define SENT(ep, context) sent_at(__FILE__, __LINE__, ep, context)
/* Check that there is no event now, nor within ms. */
void silence_at(const char *file, int line, cci_endpoint_t *ep, unsigned ms);
#define SILENCE(ep, ms) silence_at(__FILE__, __LINE__, ep, ms)
/* Return the status of a SEND, CONNECT or ACCEPT, and CCI_SUCCESS for other events. */
int status_of(cci_event_t *event);

/* Connect, and wait for success; any other event is a failure. */
cci_connection_t *connect_to(cci_endpoint_t *ep, const char *uri,
	cci_conn_attribute_t attribute, const void *context);
/* Start to connect, without payload and limit. */
void ask(cci_endpoint_t *ep, const char *uri, cci_conn_attribute_t attribute,
	const void *context);
/* Take a request and accept it; wait for ACCEPT. */
cci_connection_t *accept_one(cci_endpoint_t *ep, const void *context);

/* An endpoint and a connection of it. */
struct side {
	cci_endpoint_t *ep;
	cci_connection_t *conn;
};
/* Connect rank 0 to rank 1 with new endpoints, for others an endpoint only.  Both ranks
 * have told as many URIs before. */
struct side meet(cci_conn_attribute_t attribute);
struct side meet_fd(cci_conn_attribute_t attribute, int *fd);
/* Connect again, with endpoints that there are. */
cci_connection_t *meet_again(
	cci_endpoint_t *ep, unsigned nth_uri, cci_conn_attribute_t attribute);

/* Two connected endpoints of this process. */
struct both {
	struct side a, b;
};
struct both both(cci_conn_attribute_t attribute);

uint32_t option(const void *handle, cci_opt_name_t name);
void set_option(const void *handle, cci_opt_name_t name, uint32_t value);

/* Any value as a context. */
#define CONTEXT(n) ((const void *)(uintptr_t)(n))

#define EACH_ATTRIBUTE(a)                                                                \
	for (cci_conn_attribute_t a = CCI_CONN_ATTR_RO; a <= CCI_CONN_ATTR_UU; a++)

/* ---- data ---- */

/* Return bytes that follow from a seed, at least 64 KiB; they belong to the frame. */
const unsigned char *pattern(uint64_t seed);
bool is_pattern(const void *at, size_t length, uint64_t seed);
void fill(void *at, size_t length, uint64_t seed);
void check_bytes_at(
	const char *file, int line, const void *at, size_t length, uint64_t seed);
#define CHECK_BYTES(at, length, seed) check_bytes_at(__FILE__, __LINE__, at, length, seed)

#endif
