/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of the other nodes (lib/node/node.h), with a NIC that only notes what it is
 * told. */
#include "lib/node/node.h"
#include "support/cases.h"

#include <errno.h>
#include <string.h>

enum { NODES = 4, LIFE = 7 };

static struct p3_node node;

/* ---- the NIC ---- */

static char told[100];         /* a word for each call */
static int up;                 /* result of the next births */
static bool down;              /* result of the next ends */
static struct p3_peer_info as; /* argument of the last call */

static void note(const char *word, const struct p3_peer_info *info)
{
	strcat(strcat(told, *told ? " " : ""), word);
	as = *info;
}

int __wrap_p3_nic_peer_up(struct p3_nic *nic, struct p3_peer_info *info);
int __wrap_p3_nic_peer_up(struct p3_nic *nic, struct p3_peer_info *info)
{
	(void)nic;
	note("up", info);
	return up;
}

void __wrap_p3_nic_peer_expect(struct p3_nic *nic, struct p3_peer_info *info);
void __wrap_p3_nic_peer_expect(struct p3_nic *nic, struct p3_peer_info *info)
{
	(void)nic;
	note("expect", info);
}

void __wrap_p3_nic_peer_pids(struct p3_nic *nic, struct p3_peer_info *info);
void __wrap_p3_nic_peer_pids(struct p3_nic *nic, struct p3_peer_info *info)
{
	(void)nic;
	note("pids", info);
}

bool __wrap_p3_nic_peer_down(struct p3_nic *nic, struct p3_peer_info *info);
bool __wrap_p3_nic_peer_down(struct p3_nic *nic, struct p3_peer_info *info)
{
	(void)nic;
	note("down", info);
	return down || info->now;
}

static void expect_told(const char *words)
{
	assert_string_equal(told, words);
	*told = '\0';
}

/* ---- a node ---- */

static int set_up(void **state)
{
	(void)state;
	node = (struct p3_node){.capacity = NODES, .size = NODES, .jid = 5, .index = 3};
	*told = '\0';
	up = 0;
	down = true;
	return p3_members_make(&node);
}

static int tear_down(void **state)
{
	(void)state;
	p3_members_free(&node);
	return 0;
}

/* Let the node of index 1 be born. */
static struct p3_member *birth(bool lost)
{
	const int fds[] = {10, 11, 12};
	struct p3_job_msg m = {.op = P3_JOB_BORN,
		.node = 1,
		.incarnation = LIFE,
		.jid = 5,
		.rank = 2,
		.seg_len = 4096,
		.heap_len = 8192};
	struct p3_peer_info info = p3_member_info(&node, &m, lost ? NULL : fds);
	node.member[1].incarnation = LIFE;
	p3_member_attach(&node, NULL, &info, lost);
	return &node.member[1];
}

/* ---- cases: births ---- */

CASE_IN(a_birth_attaches_the_member, set_up, tear_down)
{
	const struct p3_member *b = birth(false);
	expect_told("up");
	assert_int_equal(as.node, 1);
	assert_int_equal(as.incarnation, LIFE);
	assert_int_equal(as.published, 10);
	assert_int_equal(as.doorbell, 11);
	assert_int_equal(as.heap, 12);
	assert_int_equal(as.heap_len, 8192);
	assert_false(b->missing);
	assert_false(p3_members_wait(&node));
}

CASE_IN(another_birth_gives_the_ids_of_an_attached_member, set_up, tear_down)
{
	up = -EEXIST;
	assert_false(birth(false)->missing);
	expect_told("up pids");
}

CASE_IN(a_member_without_room_is_expected_and_comes_later, set_up, tear_down)
{
	up = -ENOMEM;
	assert_true(birth(false)->missing);
	expect_told("up expect");
	assert_true(p3_members_wait(&node));
	up = 0;
	assert_false(birth(false)->missing);
	expect_told("up");
	assert_false(p3_members_wait(&node));
}

CASE_IN(a_member_whose_descriptors_are_lost_is_expected, set_up, tear_down)
{
	assert_true(birth(true)->missing);
	expect_told("expect");
	assert_int_equal(as.published, -1);
}

CASE_IN(a_member_that_cannot_be_attached_counts_as_dead, set_up, tear_down)
{
	up = -EPROTO;
	assert_false(birth(false)->missing);
	expect_told("up expect down");
	assert_int_equal(as.end, P3_PEER_DIED);
}

CASE_IN(a_member_that_is_leaving_is_left_alone, set_up, tear_down)
{
	up = -ESTALE;
	assert_false(birth(false)->missing);
	expect_told("up");
}

/* ---- cases: ends ---- */

CASE_IN(an_end_waits_until_all_messages_are_taken, set_up, tear_down)
{
	struct p3_member *b = birth(false);
	down = false;
	p3_member_end(b, P3_PEER_LEFT);
	assert_false(p3_member_remove(&node, NULL, 1, false));
	assert_int_equal(b->incarnation, LIFE);
	assert_true(p3_members_wait(&node));
	down = true;
	assert_true(p3_member_remove(&node, NULL, 1, false));
	expect_told("up down down");
	assert_int_equal(as.end, P3_PEER_LEFT);
	assert_int_equal(as.incarnation, LIFE);
	assert_int_equal(b->incarnation, 0);
	assert_false(p3_members_wait(&node));
	assert_false(p3_member_remove(&node, NULL, 1, false)); /* it comes once */
	expect_told("");
}

CASE_IN(an_end_discards_messages_when_it_must_be_over, set_up, tear_down)
{
	down = false;
	p3_member_end(birth(false), P3_PEER_DIED);
	assert_true(p3_member_remove(&node, NULL, 1, true));
	assert_true(as.now);
}

CASE_IN(the_first_end_counts, set_up, tear_down)
{
	struct p3_member *b = birth(false);
	p3_member_end(b, P3_PEER_LEFT);
	p3_member_end(b, P3_PEER_DIED);
	assert_true(p3_member_remove(&node, NULL, 1, false));
	assert_int_equal(as.end, P3_PEER_LEFT);
}

CASE_IN(an_ending_member_is_not_asked_for, set_up, tear_down)
{
	struct p3_member *b = birth(true);
	b->apart = true;
	p3_member_end(b, P3_PEER_DIED);
	assert_false(b->missing);
	assert_false(b->apart);
}

/* ---- cases: packets ---- */

CASE_IN(ranks_of_other_jobs_are_none, set_up, tear_down)
{
	struct p3_job_msg m = {.op = P3_JOB_DIED, .jid = 5, .rank = 2, .heap_len = 1};
	struct p3_peer_info info = p3_member_info(&node, &m, NULL);
	assert_int_equal(info.rank, 2);
	assert_int_equal(info.end, P3_PEER_DIED);
	assert_int_equal(info.published, -1);
	assert_int_equal(info.heap_len, 0);
	m.jid = 6;
	assert_int_equal(p3_member_info(&node, &m, NULL).rank, P3_JOB_NO_RANK);
}

CASE_IN(a_packet_has_the_index_and_the_capacity, set_up, tear_down)
{
	struct p3_job_msg m = p3_member_message(&node, P3_JOB_LEAVE);
	assert_int_equal(m.node, 3);
	assert_int_equal(m.size, NODES);
	assert_int_equal(m.rank, P3_JOB_NO_RANK);
	assert_int_equal(m.pid[0], P3_JOB_NO_PID);
	node.launched = true;
	node.rank = 1;
	assert_int_equal(p3_member_message(&node, P3_JOB_LEAVE).rank, 1);
}
