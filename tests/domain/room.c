/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * room - processes that enter a domain at once agree on its capacity
 *
 *	room [ROUNDS]
 *
 * In each round PROCESSES members wish three capacities, and enter a new domain at the
 * same time.  All that have entered must have one capacity, which is one of the wishes.
 * At times a member leaves at once and enters again, while the others enter.
 */
#include "shm/domain.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES = 6, WISHES = 3, LEAVERS = 2 };

static const uint32_t wishes[WISHES] = {9, 64, 1024};

struct table {
	pthread_barrier_t all;
	uint32_t capacity[PROCESSES];
};

static _Noreturn void fail(unsigned round, const char *what, uint32_t value)
{
	fprintf(stderr, "room: round %u: %s %u\n", round, what, value);
	_exit(1);
}

static void enter(struct p3_domain *d, unsigned round)
{
	struct p3_domain_why why;
	char name[40];
	snprintf(name, sizeof name, "test-room-%d", (int)getppid());
	if (p3_domain_open(d, P3_DOMAIN_BASE, name, &why)) {
		fprintf(stderr, "room: %s\n", why.text);
		fail(round, "no domain", 0);
	}
}

static void agree(struct p3_domain *d, unsigned round, uint32_t wish, uint32_t *out)
{
	int rc = p3_domain_take_room(d, wish, out);
	if (rc)
		fail(round, "no agreement:", (uint32_t)-rc);
	if (*out != wishes[0] && *out != wishes[1] && *out != wishes[2])
		fail(round, "nobody's wish:", *out);
}

static void play(struct table *t, unsigned self, unsigned round)
{
	struct p3_domain d;
	uint32_t wish = wishes[(self + round) % WISHES], mine = 0;
	pthread_barrier_wait(&t->all);
	enter(&d, round);
	agree(&d, round, wish, &mine);
	if (self < LEAVERS) {
		p3_domain_leave(&d);
		enter(&d, round);
		agree(&d, round, wish, &mine);
	}
	t->capacity[self] = mine;
	pthread_barrier_wait(&t->all);
	for (unsigned i = 0; i < PROCESSES; i++)
		if (t->capacity[i] != mine)
			fail(round, "a member has another capacity:", t->capacity[i]);
	pthread_barrier_wait(&t->all);
	p3_domain_leave(&d);
}

static struct table *make_table(void)
{
	pthread_barrierattr_t shared;
	struct table *t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (t == MAP_FAILED)
		fail(0, "no memory", 0);
	pthread_barrierattr_init(&shared);
	pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&t->all, &shared, PROCESSES);
	return t;
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 100;
	struct table *t = make_table();
	pid_t child[PROCESSES];
	for (unsigned i = 0; i < PROCESSES; i++) {
		child[i] = fork();
		if (child[i] == 0) {
			alarm(600);
			for (unsigned k = 0; k < rounds; k++)
				play(t, i, k);
			_exit(0);
		}
	}
	for (unsigned i = 0; i < PROCESSES; i++) {
		int status = -1;
		if (wait(&status) <= 0 || status != 0) {
			for (unsigned k = 0; k < PROCESSES; k++)
				if (waitpid(child[k], NULL, WNOHANG) == 0)
					kill(child[k], SIGKILL);
			return 1;
		}
	}
	printf("# %u rounds of %d members\n", rounds, (int)PROCESSES);
	return 0;
}
