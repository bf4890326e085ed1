/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The credits of GASNet's requests (lib/gasnet/credits.c): a lender and two holders, which
 * is a job of three nodes as its flow control sees it, since each lender keeps its own
 * books.
 *
 * Checked, in each state: the loans and the bank are the total; a loan is what its holder
 * has, and what is under way to and from it; a holder keeps MIN, with which it can always
 * send; requests that the lender has not answered fit the loan, and so the buffers; one
 * REVOKE or RETURN of a pair is under way at most, so SYS_EQ has room.  And no state is a
 * deadlock: a holder that lacks credits gets replies.
 *
 * The numbers that only advise (needs of the past, limits of an epoch, zero_reply) are
 * free choices here, so the model allows more than the code does.
 *
 * Bounds: MIN is 2, requests take 1 or 2, and a holder has two of them out at most, the
 * second one (but for LARGE) one.
 */
#define HOLDERS 2
#define MIN     2
#define SHARE   3
#define BANK    0
#define MOST    4 /* of one loan */
#define TOTAL   (HOLDERS * SHARE + BANK)
#define EXTRA   1
#ifdef LARGE
#define OUT(x)  2
#else
#define OUT(x)  (2 - x)
#endif

#ifndef WITHOUT
#define WITHOUT 0
#endif
#define CREDIT_1_to_give       1 /* keep those in use */
#define CREDIT_2_to_give       2 /* keep MIN */
#define CREDIT_3_lend          3 /* take them from the bank */
#define CREDIT_4_may_revoke    4 /* not while one is out */
#define CREDIT_5_credits_back  5 /* free them at the reply, not when the request is sent */
#define CREDIT_6_credits_take  6 /* wait for enough of them */

chan request[HOLDERS] = [4] of { byte, byte }; /* credits, wanted */
chan reply[HOLDERS] = [4] of { byte, byte };   /* credits, lent */
chan revoke[HOLDERS] = [2] of { bit };
chan give_back[HOLDERS] = [2] of { byte };

/* The lender's books. */
byte bank = BANK, loan[HOLDERS] = SHARE;
bool revoke_out[HOLDERS];

/* The holders' books. */
byte send[HOLDERS] = SHARE, in_use[HOLDERS], out[HOLDERS];

/* What is under way, and what the lender has to keep in its buffers. */
byte lent[HOLDERS], given[HOLDERS], unanswered[HOLDERS];

inline check()
{
	assert(bank + loan[0] + loan[1] == TOTAL);
	assert(loan[x] == send[x] + lent[x] + given[x]);
	assert(send[x] >= MIN && loan[x] <= MOST);
	assert(in_use[x] <= send[x]);
	assert(unanswered[x] <= loan[x]);
	assert(len(revoke[x]) + len(give_back[x]) <= 1)
}

inline choose(n) /* the credits of the next request */
{
	if
	:: n = 1
	:: n = 2
	fi
}

proctype holder(byte x)
{
	byte n, want, got, more;
	choose(n);
	do
	:: atomic { /* gasneti_credits_take */
		out[x] < OUT(x) &&
		(send[x] >= in_use[x] + n || WITHOUT == CREDIT_6_credits_take) ->
		in_use[x] = in_use[x] + n;
		unanswered[x] = unanswered[x] + n;
		out[x]++;
		request[x]!n, want;
		if
		:: WITHOUT == CREDIT_5_credits_back -> in_use[x] = in_use[x] - n
		:: else
		fi;
		choose(n);
		want = 0;
		check()
	}
	:: atomic { /* stalled */
		!want && send[x] < in_use[x] + n ->
		want = in_use[x] + n - send[x];
		if :: want > EXTRA -> want = EXTRA :: else fi
	}
	:: atomic { /* gasneti_credits_back */
		reply[x]?got, more ->
		out[x]--;
		if
		:: WITHOUT == CREDIT_5_credits_back
		:: else -> in_use[x] = in_use[x] - got
		fi;
		send[x] = send[x] + more;
		lent[x] = lent[x] - more;
		got = 0;
		more = 0;
		check()
	}
	:: atomic { /* revoked: give what is spare, or less */
		revoke[x]?_ ->
		do
		:: more < EXTRA &&
		   (send[x] > in_use[x] + more || WITHOUT == CREDIT_1_to_give) &&
		   (send[x] > MIN + more || WITHOUT == CREDIT_2_to_give) -> more++
		:: break
		od;
		send[x] = send[x] - more;
		given[x] = given[x] + more;
		give_back[x]!more;
		more = 0;
		check()
	}
	od
}

inline lend(x)
{
	if
	:: want && (want <= bank || WITHOUT == CREDIT_3_lend) && loan[x] + want <= MOST ->
		if
		:: WITHOUT == CREDIT_3_lend
		:: else -> bank = bank - want
		fi;
		loan[x] = loan[x] + want;
		lent[x] = lent[x] + want
	:: want = 0
	fi
}

proctype serve(byte x) /* what the lender does for a holder */
{
	byte n, want;
	do
	:: atomic { /* a request's handler, and its reply */
		request[x]?n, want ->
		unanswered[x] = unanswered[x] - n;
		lend(x);
		reply[x]!n, want;
		n = 0;
		want = 0;
		check()
	}
	:: atomic { /* scavenge */
		loan[x] > MIN && (!revoke_out[x] || WITHOUT == CREDIT_4_may_revoke) &&
		nfull(revoke[x]) ->
		revoke_out[x] = true;
		revoke[x]!1;
		check()
	}
	:: atomic { /* returned */
		give_back[x]?n ->
		revoke_out[x] = false;
		loan[x] = loan[x] - n;
		given[x] = given[x] - n;
		bank = bank + n;
		n = 0;
		check()
	}
	od
}

init {
	atomic {
		run holder(0); run holder(1);
		run serve(0); run serve(1)
	}
}
