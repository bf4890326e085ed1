/* SPDX-License-Identifier: BSD-3-Clause */
/* The choice of the algorithm of tags by the cards of a job (lib/domain/modex.c): two
 * ranks, a process each, of which some have a CPU without AES: --wrap leads the calls of
 * dlsym to this file. */
#include "lib/domain/internal.h"
#include "support/cases.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 2 };

/* Of a rank's process. */
static bool lacks_aes;
static int other; /* socket to the other rank */
static struct p3_card cards[RANKS];
static struct p3_modex modex;
static struct p3_node node = {.modex = &modex};

void *__wrap_dlsym(void *lib, const char *name);
void *__real_dlsym(void *lib, const char *name);

static int is_not_available(void)
{
	return 0;
}

void *__wrap_dlsym(void *lib, const char *name)
{
	int (*no)(void) = is_not_available;
	void *it;
	memcpy(&it, &no, sizeof it);
	return lacks_aes && !strcmp(name, "crypto_aead_aes256gcm_is_available")
		       ? it
		       : __real_dlsym(lib, name);
}

/* ---- the launcher ---- */

static const char *host_name(struct p3_node *n, uint32_t rank)
{
	(void)n, (void)rank;
	return NULL;
}

static int put(struct p3_node *n, const struct p3_card *card)
{
	cards[n->modex->rank] = *card;
	return send(other, card, sizeof *card, 0) == sizeof *card ? 0 : -1;
}

static int fence(struct p3_node *n)
{
	struct p3_card *its = &cards[!n->modex->rank];
	return recv(other, its, sizeof *its, MSG_WAITALL) == sizeof *its ? 0 : -1;
}

static int get(struct p3_node *n, uint32_t rank, struct p3_card *card_out)
{
	(void)n;
	*card_out = cards[rank];
	return 0;
}

static const struct p3_modex_ops launcher = {
	.host_name = host_name, .put = put, .fence = fence, .get = get};

/* ---- a rank ---- */

/* Return true if the other rank's tags are right here, and of the expected algorithm. */
static bool can_read(bool aes)
{
	static const struct p3_mac_key key = {{7}};
	static const char text[] = "of both";
	struct p3_mac mac;
	p3_mac_begin(&mac, &key);
	struct p3_mac_tag tag = p3_mac_seal(&mac, 0, text, sizeof text);
	return mac.aes == aes && send(other, &tag, sizeof tag, 0) == sizeof tag &&
	       recv(other, &tag, sizeof tag, MSG_WAITALL) == sizeof tag &&
	       p3_mac_check(&mac, &tag, text, sizeof text);
}

static bool be_rank(uint32_t rank, const bool lacks[RANKS])
{
	struct p3_card card[RANKS];
	uint32_t leader[RANKS] = {0, 1};
	struct p3_remote remote[RANKS] = {{.rank = 0}, {.rank = 1}};
	lacks_aes = lacks[rank];
	modex = (struct p3_modex){.ops = &launcher,
		.rank = rank,
		.size = RANKS,
		.leader = leader,
		.card = card,
		.remote = remote};
	if (p3_modex_enter(&node))
		return false;
	bool all_have = !lacks[0] && !lacks[1] && p3_mac_has_aes();
	return !(lacks_aes && p3_mac_has_aes()) && can_read(all_have);
}

static void expect_agreement(bool first_lacks, bool second_lacks)
{
	const bool lacks[RANKS] = {first_lacks, second_lacks};
	int fds[RANKS], status;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (pid)
			continue;
		other = fds[rank];
		close(fds[!rank]); /* so that the other one's end is seen */
		_exit(!be_rank(rank, lacks));
	}
	close(fds[0]);
	close(fds[1]);
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
}

CASE(all_ranks_use_aes_if_each_cpu_has_it)
{
	expect_agreement(false, false);
}

CASE(none_uses_aes_if_a_cpu_lacks_it)
{
	expect_agreement(true, false);
	expect_agreement(false, true);
	expect_agreement(true, true);
}

int main(void)
{
	setenv("PTL3_FABRIC_NET", "lo", 1);
	return cases_run();
}
