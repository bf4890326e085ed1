# SPDX-License-Identifier: BSD-3-Clause
"""tally - medians and paired ratios of the samples that compare has collected.

Samples are {(test, x, who): {(round, slot): value}}.  In a slot "ours" and others ran one directly
after the other, so only values of one slot are divided by one another.  The ratio is the speed of
"ours" relative to the other, for times and rates alike: above 1 "ours" is faster.  The figure beside
ours_heap ("ours" from the shared heap) is its speed relative to raw_memcpy, in half round trips
relative to "ours".  old_heap (of an older build) has ours_heap as its partner; mpi_vader and fi_shm
have mpi_portals and fi_portals, which ran before them.

An acceptance line has one ratio of each round: of the medians of both sides over the slots of the round
that have both.
"""
from figures.stats import median, paired, spread

# Name: unit, x.
TESTS = {"latency": ("ns", "bytes"), "match": ("ns", "list"), "stream": ("MB/s", "bytes"),
         "rate": ("M/s", "bytes"), "alltoall": ("M/s", "nodes"), "eqget": ("ns", "queues"),
         "ack": ("ns", "bytes"), "get": ("ns", "bytes"), "am": ("ns", "bytes"), "queues": ("ns", "queues"),
         "threads": ("M/s", "threads"), "overlap": ("ns", "bytes"), "faa": ("M/s", "bytes")}
PARTNERS = {"old_heap": "ours_heap", "mpi_vader": "mpi_portals", "fi_shm": "fi_portals"}
# The named ratios by which a build of libportals is accepted.
ACCEPTED = [
    ("8 B half round trip / Open MPI", "latency", 8, "openmpi"),
    ("8 B half round trip / UCX", "latency", 8, "ucx"),
    ("8 B half round trip / bare design", "latency", 8, "raw_sketch"),
    ("8 B rate / bare design", "rate", 8, "raw_sketch"),
    ("8 B rate / Open MPI", "rate", 8, "openmpi"),
    ("16 nodes rate / bare design", "alltoall", 16, "raw_sketch"),
    ("active message, 8 B / Open MPI", "am", 8, "openmpi"),
    ("private 1 MiB one way / raw read", "stream", 1 << 20, "raw_cma"),
    ("private 1 MiB half round trip / raw", "latency", 1 << 20, "raw_cma")]
LEGEND = """ratio: how much faster ours is, by pairs that ran one after the other
(beside ours_heap: how much faster that is than raw_memcpy; latency: than ours)"""
ACCEPTANCE = """
acceptance: how much faster ours is; the median of the rounds' ratios, their extremes,
and the medians of both
""" + f"{'ratio of speed':<35} {'rounds':>6} {'ratio':>8} {'min':>8} {'max':>8} {'ours':>10} {'other':>10}"


def about(test):
    """Return the unit of a test and its x; one beside busy siblings is like the other one."""
    return TESTS[test.removeprefix("busy_")]


def speedup(test, ours, other):
    return other / ours if about(test)[0] == "ns" else ours / other


def ratios_of(samples, test, x, who):
    """Return the Spread of the ratios of a row, or None."""
    if who == "ours":
        return None
    mine = samples[test, x, who]
    if who == "ours_heap":
        partner = "ours" if about(test)[0] == "ns" else "raw_memcpy"
        return spread(paired(mine, samples.get((test, x, partner), {}), lambda a, b: speedup(test, a, b)))
    partner = PARTNERS.get(who, "ours")
    return spread(paired(mine, samples.get((test, x, partner), {}), lambda a, b: speedup(test, b, a)))


def rows_of(samples):
    """Return rows of test, x, who, and the Spreads of values and ratios; ours comes first."""
    return [(test, x, who, spread(samples[test, x, who].values()), ratios_of(samples, test, x, who))
            for test, x, who in sorted(samples, key=lambda key: (key[0], key[1], key[2] != "ours", key[2]))]


def print_rows(rows):
    before = ""
    print(LEGEND)
    for test, x, who, value, ratio in rows:
        unit, of_x = about(test)
        if test != before:
            print(f"\n{'test':<12} {of_x:>9} {'who':<12} {'n':>4} {'median':>12} {'':<4} {'p10':>10} {'p90':>10} "
                  f"{'ratio':>8} {'p10':>8} {'p90':>8}")
        before = test
        print(f"{test:<12} {x:>9} {who:<12} {value.n:>4} {value.median:>12.4g} {unit:<4} {value.p10:>10.4g} "
              f"{value.p90:>10.4g}" + (f" {ratio.median:>8.2f} {ratio.p10:>8.2f} {ratio.p90:>8.2f}" if ratio else ""))


def accept(samples, name, test, x, who):
    """Print an acceptance line, and return it: of the medians of both sides in each round, over the slots that both
    have."""
    mine, others = (samples.get((test, x, side), {}) for side in ("ours", who))
    slots = {}
    for turn in mine.keys() & others.keys():
        slots.setdefault(turn[0], []).append((mine[turn], others[turn]))
    rounds = [tuple(map(median, zip(*pairs))) for _, pairs in sorted(slots.items())]
    line = {"name": name, "test": test, "x": x, "who": who, "rounds": len(rounds)}
    if not rounds:
        print(f"{name:<35} not measured: {who}, {test} {x}")
        return line
    ratio = spread(speedup(test, *pair) for pair in rounds)
    ours, other = map(median, zip(*rounds))
    print(f"{name:<35} {ratio.n:>6} {ratio.median:>8.2f} {ratio.min:>8.2f} {ratio.max:>8.2f} {ours:>10.4g} "
          f"{other:>10.4g} {about(test)[0]}")
    return line | {"ratio": ratio.median, "min": ratio.min, "max": ratio.max, "ours": ours, "other": other,
                   "unit": about(test)[0]}


def tally(samples, note, left_out):
    """Print the table, and return the document of compare.json."""
    rows, results = rows_of(samples), []
    print_rows(rows)
    for test, x, who, value, ratio in rows:
        results.append({"test": test, "x": x, "who": who, "samples": value.n, "unit": about(test)[0],
                        "median": value.median, "p10": value.p10, "p90": value.p90})
        if ratio:
            results[-1] |= {"pairs": ratio.n, "ratio_median": ratio.median, "ratio_p10": ratio.p10,
                            "ratio_p90": ratio.p90}
    print("".join(f"\nleft out: {line}" for line in left_out))
    print(ACCEPTANCE)
    return {"program": "compare", "setting": note, "results": results,
            "left_out": left_out, "acceptance": [accept(samples, *line) for line in ACCEPTED]}


def points_of(samples, test):
    """Return {who: points with p10 and p90} of a test."""
    curves = {}
    for name, x, who, value, _ in rows_of(samples):
        if name == test:
            curves.setdefault(who, []).append((x, value.median, value.p10, value.p90))
    return curves
