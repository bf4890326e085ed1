/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weak - a small weak memory for the models
 *
 * A word keeps its last value and the one before.  Each process has a view: the set of
 * stores and accesses that it must not miss.  Who does not have a word's last store in
 * its view may read either value: that is what a store buffer, stores out of order and
 * loads ahead of time come to, on x86 (store, then load) and on arm64 (anything).
 *
 *	p3_set, p3_get		relaxed; who has read a word never reads an older one
 *	p3_release		the store carries its process's view
 *	p3_acquire		who reads that store adds what it carries
 *	exchange, add, cas	read the last value.  They are no fences.  A cas may fail
 *				over an old value
 *	p3_fence		adds the view that all fences share, and adds to that
 *	access(d)		plain memory: its last access must be in the view, whoever
 *				made it, or this one may be done before or after that one
 *
 * The last argument of each names the end of an ordering edge, as the comment does in C,
 * or is 0.  Compiled with -DWITHOUT=<end>, just that one is relaxed, or left out.
 *
 * Not modelled: values older than the one before the last; loads that are done after a
 * later store (but for those of plain memory, which access() forbids); what C11 fences
 * do for relaxed accesses beside them.  Complete models are thus checked on a memory
 * that is weaker than x86 and about as weak as arm64.
 *
 * A model defines first: PROCS, WORDS, DATA (numbers of each), and WITHOUT may be set.
 */
#ifndef WITHOUT
#define WITHOUT 0
#endif
#define HAS(end) ((end) && (end) != WITHOUT)

#define ALWAYS   255 /* an end that another model removes */

#define BIT(x)   (1 << (x))
#define ALL      (BIT(WORDS + DATA) - 1)
#define DATUM(d) (WORDS + (d))
#ifndef WEAK
#define WEAK ALL /* all others are sequentially consistent */
#endif

byte mem[WORDS], prev[WORDS];
short view[PROCS] = ALL;
short carried[WORDS], carried_before[WORDS]; /* by those two stores */
short fences;        /* view of them all */
hidden byte i_;
hidden int common_, lost_;

#define me _pid

/* What was known of x is old now to all but this process. */
inline only_i_know(x)
{
	lost_ = BIT(x) & WEAK;
	i_ = 0;
	do
	:: i_ < PROCS -> view[i_] = view[i_] & ~lost_; i_++
	:: else -> break
	od;
	i_ = 0;
	do
	:: i_ < WORDS ->
		carried[i_] = carried[i_] & ~lost_;
		carried_before[i_] = carried_before[i_] & ~lost_;
		i_++
	:: else -> break
	od;
	i_ = 0;
	fences = fences & ~lost_;
	lost_ = 0;
	view[me] = view[me] | BIT(x)
}

/* What all know need not be carried any more: fewer states. */
inline tidy()
{
	common_ = ALL;
	i_ = 0;
	do
	:: i_ < PROCS -> common_ = common_ & view[i_]; i_++
	:: else -> break
	od;
	fences = fences & ~common_;
	i_ = 0;
	do
	:: i_ < WORDS ->
		carried[i_] = carried[i_] & ~common_;
		carried_before[i_] = carried_before[i_] & ~common_;
		if
		:: common_ & BIT(i_) -> prev[i_] = mem[i_]; carried_before[i_] = 0
		:: else
		fi;
		i_++
	:: else -> break
	od;
	i_ = 0;
	common_ = 0
}

inline store_later(w, v)
{
	prev[w] = mem[w];
	carried_before[w] = carried[w];
	mem[w] = v
}

inline store(w, v, is_release)
{
	d_step {
		store_later(w, v);
		only_i_know(w);
		carried[w] = (is_release -> view[me] : BIT(w));
		tidy()
	}
}

inline load(w, out, is_acquire)
{
	atomic {
		if
		:: d_step {
			view[me] = view[me] | BIT(w) | (is_acquire -> carried[w] : 0);
			out = mem[w];
			tidy()
		   }
		:: !(view[me] & BIT(w)) && prev[w] != mem[w] ->
			view[me] = view[me] | (is_acquire -> carried_before[w] : 0);
			out = prev[w]
		fi
	}
}

/* Within an atomic: the two halves of what reads and writes at once. */
inline read_last(w, end)
{
	view[me] = view[me] | BIT(w) | (HAS(end) -> carried[w] : 0)
}

inline write_next(w, v, end)
{
	store_later(w, v);
	only_i_know(w);
	carried[w] = carried[w] | BIT(w) | (HAS(end) -> view[me] : 0)
}

#define p3_get(w, out)          load(w, out, false)
#define p3_set(w, v)            store(w, v, false)
#define p3_acquire(w, out, end) load(w, out, HAS(end))
#define p3_release(w, v, end)   store(w, v, HAS(end))

inline p3_exchange(w, v, out, acquires, releases)
{
	d_step {
		read_last(w, acquires);
		out = mem[w];
		write_next(w, v, releases);
		tidy()
	}
}

inline p3_rmw(w, v, acquires, releases) /* v: of mem[w] */
{
	d_step {
		read_last(w, acquires);
		write_next(w, v, releases);
		tidy()
	}
}

/* got: what was there; old, if it was done. */
inline p3_cas(w, old, v, got, acquires, releases)
{
	atomic {
		if
		:: mem[w] == old ->
			d_step {
				got = old;
				read_last(w, acquires);
				write_next(w, v, releases);
				tidy()
			}
		:: mem[w] != old ->
			d_step {
				got = mem[w];
				read_last(w, acquires);
				tidy()
			}
		:: !(view[me] & BIT(w)) && prev[w] != mem[w] && prev[w] != old ->
			got = prev[w]
		fi
	}
}

inline p3_fence(end)
{
	d_step {
		if
		:: HAS(end) ->
			view[me] = view[me] | fences;
			fences = view[me];
			tidy()
		:: else
		fi
	}
}

inline access(d)
{
	d_step {
		assert(view[me] & BIT(DATUM(d)));
		only_i_know(DATUM(d));
		tidy()
	}
}
