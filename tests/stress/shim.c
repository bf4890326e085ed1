/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shim - LD_PRELOAD: makes libportals run out of a system resource at a chosen call
 *
 *	P3_SHIM_FAIL=N	  the Nth of its calls for memory, descriptors or threads fails
 *	P3_SHIM_FAIL=N+	  and all after it, until the program calls shim_relax()
 *	P3_SHIM_ONLY=name only calls of this name count (fallocate, mmap, ...)
 *	P3_SHIM_READV=WHAT process_vm_readv: eperm (from call N on), enomem (one of N),
 *			  short (1..4096 bytes of each call)
 *	P3_SHIM_NUMA=1	  two NUMA nodes, of which none may be preferred (mbind: EPERM)
 *	P3_SHIM_RANK=R	  in this rank of a job only
 *
 * Other libraries and the program itself see the system as it is.  recvmsg fails as the
 * kernel's does: the packet comes without its descriptors.
 */
#include "shm/atomics.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t each);
void *__libc_memalign(size_t align, size_t n);
void shim_relax(void);
unsigned shim_calls(void);
unsigned shim_failed(void);

static bool ready, two_nodes;
static uintptr_t from, to; /* libportals */
static unsigned fail_at;
static bool for_long;
static const char *only, *readv_how;
static p3_a32 calls, failed, readvs;

/* ---- the caller, and its result ---- */

static int find_library(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size, (void)arg;
	if (!strstr(info->dlpi_name, "libportals"))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type == PT_LOAD && (p->p_flags & PF_X)) {
			from = info->dlpi_addr + p->p_vaddr;
			to = from + p->p_memsz;
		}
	}
	return 1;
}

__attribute__((constructor)) static void begin(void)
{
	const char *fail = getenv("P3_SHIM_FAIL"), *rank = getenv("P3_SHIM_RANK");
	const char *me = getenv("PTL_MY_RID");
	if (rank && (!me || strcmp(me, rank) != 0))
		return;
	fail_at = fail ? (unsigned)strtoul(fail, NULL, 10) : 0;
	for_long = fail && strchr(fail, '+');
	only = getenv("P3_SHIM_ONLY");
	readv_how = getenv("P3_SHIM_READV");
	two_nodes = getenv("P3_SHIM_NUMA") != NULL;
	dl_iterate_phdr(find_library, NULL);
	ready = true;
}

void shim_relax(void)
{
	for_long = false;
	if (p3_get(&calls) >= fail_at)
		fail_at = 0;
}

unsigned shim_calls(void)
{
	return p3_get(&calls);
}

unsigned shim_failed(void)
{
	return p3_get(&failed);
}

static bool runs_out(const char *name, const void *caller, int err)
{
	uintptr_t at = (uintptr_t)caller;
	if (!ready || at < from || at >= to || (only && strcmp(only, name) != 0))
		return false;
	unsigned n = p3_add32(&calls, 1) + 1;
	if (!fail_at || !(n == fail_at || (for_long && n > fail_at)))
		return false;
	p3_add32(&failed, 1);
	errno = err;
	return true;
}

#define RUNS_OUT(name, err) runs_out(name, __builtin_return_address(0), err)
#define NEXT(fn)            ((__typeof__(&fn))dlsym(RTLD_NEXT, #fn))

/* ---- memory ---- */

void *malloc(size_t n)
{
	return RUNS_OUT("malloc", ENOMEM) ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t each)
{
	return RUNS_OUT("malloc", ENOMEM) ? NULL : __libc_calloc(n, each);
}

void *aligned_alloc(size_t align, size_t n)
{
	return RUNS_OUT("malloc", ENOMEM) ? NULL : __libc_memalign(align, n);
}

void *mmap(void *at, size_t len, int prot, int flags, int fd, off_t off)
{
	if (RUNS_OUT("mmap", ENOMEM))
		return MAP_FAILED;
	return (void *)syscall(SYS_mmap, at, len, (long)prot, (long)flags, (long)fd, off);
}

int memfd_create(const char *name, unsigned flags)
{
	if (RUNS_OUT("memfd_create", EMFILE))
		return -1;
	return NEXT(memfd_create)(name, flags);
}

int ftruncate(int fd, off_t len)
{
	return RUNS_OUT("ftruncate", EFBIG) ? -1 : NEXT(ftruncate)(fd, len);
}

static bool call_fails(long number, const void *caller)
{
	if (number == SYS_fallocate)
		return runs_out("fallocate", caller, ENOSPC);
	if (number == SYS_mmap)
		return runs_out("mmap", caller, ENOMEM);
	return number == SYS_madvise && runs_out("populate", caller, ENOMEM);
}

long syscall(long number, ...)
{
	static long (*next)(long, ...);
	long a[6];
	va_list args;
	va_start(args, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (call_fails(number, __builtin_return_address(0)))
		return -1;
	if (!next)
		next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- descriptors and threads ---- */

int eventfd(unsigned n, int flags)
{
	static int (*next)(unsigned, int);
	if (RUNS_OUT("eventfd", EMFILE))
		return -1;
	if (!next)
		next = (int (*)(unsigned, int))dlsym(RTLD_NEXT, "eventfd");
	return next(n, flags);
}

int fcntl(int fd, int what, ...)
{
	static int (*next)(int, int, ...);
	va_list args;
	va_start(args, what);
	long arg = va_arg(args, long);
	va_end(args);
	if (what == F_ADD_SEALS && RUNS_OUT("seal", EPERM))
		return -1;
	if (what == F_DUPFD_CLOEXEC && RUNS_OUT("dup", EMFILE))
		return -1;
	if (!next)
		next = (int (*)(int, int, ...))dlsym(RTLD_NEXT, "fcntl");
	return next(fd, what, arg);
}

ssize_t sendmsg(int sock, const struct msghdr *msg, int flags)
{
	if (msg->msg_controllen && RUNS_OUT("sendmsg", ENOBUFS))
		return -1;
	return NEXT(sendmsg)(sock, msg, flags);
}

static void take_descriptors(struct msghdr *msg)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; c->cmsg_type == SCM_RIGHTS && i < n; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
			close(fd);
		}
	}
	msg->msg_controllen = 0;
	msg->msg_flags |= MSG_CTRUNC;
}

ssize_t recvmsg(int sock, struct msghdr *msg, int flags)
{
	ssize_t n = NEXT(recvmsg)(sock, msg, flags);
	if (n > 0 && CMSG_FIRSTHDR(msg) && RUNS_OUT("recvmsg", 0))
		take_descriptors(msg);
	return n;
}

int pthread_create(
	pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	return RUNS_OUT("thread", EAGAIN) ? EAGAIN
					  : NEXT(pthread_create)(thread, attr, fn, arg);
}

/* ---- cross-memory reads ---- */

static unsigned shim_number(const char *text)
{
	const char *at = strchr(text, ':');
	return at ? (unsigned)strtoul(at + 1, NULL, 10) : 1;
}

/* Read at most this number of bytes of a list of pieces on both sides. */
static ssize_t read_short(pid_t pid, const struct iovec *here, unsigned long nhere,
	const struct iovec *there, unsigned long nthere, size_t most)
{
	struct iovec part[130], *last = part;
	for (unsigned long i = 0; i < nhere && i < 130 && most; i++, last++) {
		*last = here[i];
		if (last->iov_len > most)
			last->iov_len = most;
		most -= last->iov_len;
	}
	return NEXT(process_vm_readv)(
		pid, part, (unsigned long)(last - part), there, nthere, 0);
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *here, unsigned long nhere,
	const struct iovec *there, unsigned long nthere, unsigned long flags)
{
	unsigned k = p3_add32(&readvs, 1) + 1;
	if (ready && readv_how) {
		unsigned n = shim_number(readv_how);
		bool denied = !strncmp(readv_how, "eperm", 5) && k >= n;
		bool broke = !strncmp(readv_how, "enomem", 6) && k % n == 0;
		if (denied || broke) {
			p3_add32(&failed, 1);
			errno = denied ? EPERM : ENOMEM;
			return -1;
		}
		if (!strncmp(readv_how, "short", 5))
			return read_short(pid, here, nhere, there, nthere,
				1 + k * 2654435761u % 4096);
	}
	return NEXT(process_vm_readv)(pid, here, nhere, there, nthere, flags);
}

/* ---- NUMA ---- */

int numa_available(void);
int numa_num_configured_nodes(void);
int numa_node_of_cpu(int cpu);
long mbind(void *at, unsigned long len, int mode, const unsigned long *mask,
	unsigned long most, unsigned flags);

int numa_available(void)
{
	return two_nodes ? 0 : NEXT(numa_available)();
}

int numa_num_configured_nodes(void)
{
	return two_nodes ? 2 : NEXT(numa_num_configured_nodes)();
}

int numa_node_of_cpu(int cpu)
{
	return two_nodes ? 0 : NEXT(numa_node_of_cpu)(cpu);
}

long mbind(void *at, unsigned long len, int mode, const unsigned long *mask,
	unsigned long most, unsigned flags)
{
	if (!two_nodes)
		return NEXT(mbind)(at, len, mode, mask, most, flags);
	p3_add32(&failed, 1);
	errno = EPERM;
	return -1;
}
