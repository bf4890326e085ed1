/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ranks - statements of a suite that several processes run together
 *
 * A statement is a function STATEMENT(number, name, processes, flags).  The program
 * starts that many processes, which all run the function and differ in their rank: rank
 * 0 is mostly the client, rank 1 the server.  They share a room, memory through which
 * they meet and tell each other addresses; it is no part of the library under test.
 *
 * In a suite whose statements run together (struct suite) the same processes of one host
 * run one statement after the other, except those with a flag; a statement that needs
 * fewer processes has the first ones.
 *
 * A failed check prints one line, and all processes of this test end.  The program goes
 * on with the next statement, and prints the results as TAP lines (support/suite.h).
 *
 * The environment selects how the processes run:
 *
 *	SUITE_BY=yod       ranks of one job (the default)
 *	SUITE_BY=hand      processes of a domain, started one by one
 *	SUITE_BY=/PROGRAM  ranks on several hosts: tests/hosts/mpirun.sh or yod.sh
 *	SUITE_CPUS=1       all of them on one CPU
 *	SUITE_SHARE=N      an Nth of the rounds that the checklist names (default 1)
 *	PTL3_MODE, PTL3_MOVER, ...   as for any program
 */
#ifndef P3_TESTS_RANKS_H
#define P3_TESTS_RANKS_H

#include "random.h"
#include "suite.h"

enum { RANKS_MOST = 72, WORDS = 32, TALES_MOST = 16, TALE = 128 };

/* Flags of a statement: the processes are in a domain, which spawn() needs; they run no
 * other statement. */
enum { DOMAIN = 2, ALONE = 4 };

struct me {
	unsigned rank, size;
	bool is_client, is_server; /* rank 0, rank 1 */
};
extern struct me me;

#define STATEMENT(number, name, processes, flags)                                        \
	STATEMENT_OF(number, name, processes, flags)

/* ---- checks ---- */

/* Finish the library under test, in a rank that has run its function; each suite defines
 * it. */
void rank_ends(void);

/* Leave the statement out; the table shows the reason. */
_Noreturn void skip(const char *reason);

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

/* Function that each look of a wait calls, for libraries that make progress in calls
 * only; NULL at first. */
extern void (*ranks_progress)(void);

/* Return true if all processes of the tests share one CPU. */
bool on_one_cpu(void);
/* Let this thread, and those that it makes, run on the first CPU only. */
void use_one_cpu(void);
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
/* Tell all processes some bytes, such as an address: at most TALE. */
void tell(const void *tale, size_t n);
unsigned tales_told(void);
/* Return what a rank has told as its nth tale; wait for it.  The last 16 are kept. */
const void *told(unsigned rank, unsigned n);
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

/* ---- data ---- */

/* Return bytes that follow from a seed, at least 64 KiB; they belong to the frame. */
const unsigned char *pattern(uint64_t seed);
bool is_pattern(const void *at, size_t length, uint64_t seed);
void fill(void *at, size_t length, uint64_t seed);
void check_bytes_at(
	const char *file, int line, const void *at, size_t length, uint64_t seed);
#define CHECK_BYTES(at, length, seed) check_bytes_at(__FILE__, __LINE__, at, length, seed)

#endif
