/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tools.c - the functions of gasnet_tools.h
 *
 * They need neither gasnet_init nor the rest of the library, so that libgasnet_tools has
 * this file alone.
 */
#include <execinfo.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#pragma GCC visibility push(default)
#include <gasnet_tools.h>
#pragma GCC visibility pop

enum { FRAMES = 64, ROUNDS = 1000 };

gasnett_backtrace_type_t gasnett_backtrace_user;

/* ---- time ---- */

gasnett_tick_t gasnett_ticks_now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

double gasnett_tick_granularityus(void)
{
	uint64_t least = UINT64_MAX;
	for (int i = 0; i < ROUNDS; i++) {
		gasnett_tick_t start = gasnett_ticks_now(), end;
		while ((end = gasnett_ticks_now()) == start)
			;
		if (end - start < least)
			least = end - start;
	}
	return (double)least / 1000;
}

double gasnett_tick_overheadus(void)
{
	gasnett_tick_t start = gasnett_ticks_now();
	for (int i = 0; i < ROUNDS; i++)
		gasnett_ticks_now();
	return (double)(gasnett_ticks_now() - start) / ROUNDS / 1000;
}

uint64_t gasnett_gettimeofday_us(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* ---- environment ---- */

char *gasnett_getenv(const char *name)
{
	return getenv(name);
}

char *gasnett_getenv_withdefault(const char *name, const char *by_default)
{
	char *value = getenv(name);
	return value ? value : (char *)(uintptr_t)by_default;
}

int gasnett_getenv_yesno_withdefault(const char *name, int by_default)
{
	const char *value = getenv(name);
	if (!value || !*value)
		return by_default;
	if (strchr("yY1tT", *value))
		return 1;
	if (strchr("nN0fF", *value))
		return 0;
	gasnett_fatalerror("%s is '%s'; expected yes or no", name, value);
}

/* Return the power of two of a suffix K, M, G or T, or -1 for any other text.  Settings
 * of the library have the same suffixes (core.c). */
__attribute__((visibility("hidden"))) int gasneti_suffix_shift(const char *suffix)
{
	static const char letters[] = "kmgtKMGT";
	const char *at = strchr(letters, *suffix);
	if (!*suffix || !at || (suffix[1] && strcasecmp(suffix + 1, "B")))
		return -1;
	return (int)((at - letters) % 4 + 1) * 10;
}

/* Read a number; store whether all of the text made sense. */
static int64_t tools_parse(const char *text, uint64_t multiplier, int *right)
{
	char *end;
	double value = strtod(text, &end);
	int shift = gasneti_suffix_shift(end);
	*right = end != text && (!*end || (shift >= 0 && multiplier));
	if (*end && shift >= 0)
		return (int64_t)ldexp(value, shift);
	return (int64_t)(multiplier ? value * (double)multiplier : value);
}

int64_t gasnett_parse_int(const char *text, uint64_t mem_size_multiplier)
{
	int right;
	int64_t value = tools_parse(text, mem_size_multiplier, &right);
	if (!right)
		gasnett_fatalerror("'%s' is no number", text);
	return value;
}

int64_t gasnett_getenv_int_withdefault(
	const char *name, int64_t by_default, uint64_t mem_size_multiplier)
{
	const char *text = getenv(name);
	int right = 1;
	int64_t value = by_default;
	if (text && *text)
		value = tools_parse(text, mem_size_multiplier, &right);
	if (!right)
		gasnett_fatalerror("%s is '%s'; expected a number", name, text);
	return value;
}

double gasnett_getenv_dbl_withdefault(const char *name, double by_default)
{
	const char *text = getenv(name);
	char *end;
	if (!text || !*text)
		return by_default;
	double value = strtod(text, &end);
	if (end == text || *end)
		gasnett_fatalerror("%s is '%s'; expected a number", name, text);
	return value;
}

void gasnett_setenv(const char *name, const char *value)
{
	setenv(name, value, 1);
}

void gasnett_unsetenv(const char *name)
{
	unsetenv(name);
}

int gasnett_verboseenv(void)
{
	return gasnett_getenv_yesno_withdefault("GASNET_VERBOSEENV", 0);
}

char *gasnett_format_number(int64_t value, char *buf, size_t bufsz, int is_mem_size)
{
	static const char *const units[] = {" B", " KB", " MB", " GB", " TB"};
	int unit = 0;
	while (is_mem_size && unit < 4 && value && value % 1024 == 0) {
		value /= 1024;
		unit++;
	}
	snprintf(buf, bufsz, "%lld%s", (long long)value, is_mem_size ? units[unit] : "");
	return buf;
}

/* ---- system ---- */

int gasnett_cpu_count(void)
{
	cpu_set_t set;
	if (sched_getaffinity(0, sizeof(set), &set))
		return 1;
	return CPU_COUNT(&set);
}

static cpu_set_t affinity_all; /* of the process, before a thread was bound */

static void affinity_read(void)
{
	if (sched_getaffinity(0, sizeof(affinity_all), &affinity_all))
		CPU_ZERO(&affinity_all);
}

void gasnett_set_affinity(int rank)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	cpu_set_t one;
	(void)pthread_once(&once, affinity_read);
	int n = CPU_COUNT(&affinity_all);
	if (!n || rank < 0)
		return;
	int before = rank % n; /* CPUs in the set before that which it takes */
	CPU_ZERO(&one);
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &affinity_all) && before-- == 0)
			CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

const char *gasnett_gethostname(void)
{
	static char name[256];
	if (gethostname(name, sizeof(name) - 1))
		snprintf(name, sizeof(name), "localhost");
	return name;
}

uint64_t gasnett_getPhysMemSz(int fail)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
	if (pages > 0 && size > 0)
		return (uint64_t)pages * (uint64_t)size;
	if (fail)
		gasnett_fatalerror("the size of the memory is unknown");
	return 0;
}

void gasnett_flush_streams(void)
{
	fflush(NULL);
}

void gasnett_close_streams(void)
{
	fflush(NULL);
	fclose(stdin);
	fclose(stdout);
	fclose(stderr);
}

void gasnett_fatalerror(const char *format, ...)
{
	va_list ap;
	fputs("*** FATAL ERROR: ", stderr);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	fflush(NULL);
	abort();
}

void gasnett_killmyprocess(int exitcode)
{
	_exit(exitcode);
}

gasnett_sighandlerfn_t gasnett_reghandler(
	int signal_number, gasnett_sighandlerfn_t handler)
{
	return signal(signal_number, handler);
}

void *gasnett_mmap(uintptr_t nbytes)
{
	void *pages = mmap(NULL, nbytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (pages == MAP_FAILED)
		gasnett_fatalerror("no %llu bytes of memory", (unsigned long long)nbytes);
	return pages;
}

/* FNV-1a. */
uint64_t gasnett_checksum(const void *start, uintptr_t nbytes)
{
	const unsigned char *p = start;
	uint64_t sum = 0xcbf29ce484222325u;
	for (uintptr_t i = 0; i < nbytes; i++)
		sum = (sum ^ p[i]) * 0x100000001b3u;
	return sum;
}

size_t gasnett_count0s(const void *start, size_t nbytes)
{
	const unsigned char *p = start;
	size_t zeros = 0;
	for (size_t i = 0; i < nbytes; i++)
		zeros += p[i] == 0;
	return zeros;
}

size_t gasnett_count0s_copy(void *dst, const void *src, size_t nbytes)
{
	if (nbytes)
		memcpy(dst, src, nbytes);
	return gasnett_count0s(src, nbytes);
}

const char *gasnett_performance_warning_str(void)
{
#ifdef GASNET_DEBUG
	return "        debugging of arguments is compiled in\n";
#else
	return "";
#endif
}

void gasnett_backtrace_init(const char *exename)
{
	(void)exename;
}

int gasnett_print_backtrace(int fd)
{
	void *frames[FRAMES];
	if (gasnett_backtrace_user.fn && !gasnett_backtrace_user.fn(fd))
		return 0;
	backtrace_symbols_fd(frames, backtrace(frames, FRAMES), fd);
	return 0;
}

int gasnett_print_backtrace_ifenabled(int fd)
{
	if (!gasnett_getenv_yesno_withdefault("GASNET_BACKTRACE", 0))
		return 1;
	return gasnett_print_backtrace(fd);
}
