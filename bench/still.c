/* SPDX-License-Identifier: BSD-3-Clause */
/* A syscall() of the program's own, which holds the other threads on demand. */
#include "still.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Atomic uint32_t is_still, nheld;
static uint64_t of_main;
static _Thread_local int known; /* 0: unknown, 1: the main thread, 2: another one */

struct six {
	long a[6];
};

static long enter(long number, const struct six *s)
{
	register long r10 __asm__("r10") = s->a[3];
	register long r8 __asm__("r8") = s->a[4];
	register long r9 __asm__("r9") = s->a[5];
	long rc;
	__asm__ volatile("syscall"
			 : "=a"(rc)
			 : "a"(number), "D"(s->a[0]), "S"(s->a[1]), "d"(s->a[2]),
			 "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return rc;
}

static void wait_while(_Atomic uint32_t *word, uint32_t value)
{
	struct six s = {{(long)word, FUTEX_WAIT_PRIVATE, value}};
	while (atomic_load(word) == value)
		(void)enter(SYS_futex, &s);
}

static void wake(_Atomic uint32_t *word)
{
	struct six s = {{(long)word, FUTEX_WAKE_PRIVATE, 0x7fffffff}};
	(void)enter(SYS_futex, &s);
}

static void hold(void)
{
	atomic_fetch_add(&nheld, 1);
	wake(&nheld);
	wait_while(&is_still, 1);
	atomic_fetch_sub(&nheld, 1);
}

static int is_main(void)
{
	if (!known)
		known = getpid() == gettid() ? 1 : 2;
	return known == 1;
}

/* Replace libc's function for this program and the libraries that it has loaded.  As that
 * one does, it takes six arguments, also where its caller has passed fewer. */
__attribute__((no_sanitize("address"))) long syscall(long number, ...)
{
	struct six s;
	va_list args;
	va_start(args, number);
	for (int i = 0; i < 6; i++)
		s.a[i] = va_arg(args, long);
	va_end(args);
	long rc = enter(number, &s);
	if (is_main())
		of_main++;
	else if (number == SYS_futex && atomic_load(&is_still))
		hold();
	if (rc < 0 && rc > -4096) {
		errno = (int)-rc;
		return -1;
	}
	return rc;
}

void still_begin(void)
{
	atomic_store(&is_still, 1);
	wait_while(&nheld, 0);
}

void still_end(void)
{
	atomic_store(&is_still, 0);
	wake(&is_still);
}

uint64_t still_syscalls(void)
{
	return of_main;
}
