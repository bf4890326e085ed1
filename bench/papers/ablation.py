# SPDX-License-Identifier: BSD-3-Clause
"""Parts of the machine left out: paper 2, Figure 5 and section 5.3, and long match lists."""
import pathlib
import re
from functools import partial

from figures.judge import at, at_most, least, over, reaches, size_text, under, within
from figures.lab import ACCELERATED, GENERIC, Curve, Figure, Table, bandwidth, microseconds
from paper2 import PAPER

SMALL = [8, 16, 32, 64, 128, 256, 512, 1024]
SHORT = 64  # longer messages wait for their bytes
LARGE = [1024, 4096, 16384, 65536, 262144, 1048576]
DEPTHS = [1, 4, 16, 64, 256, 1024, 4096]
TITLES = {"paper2-fig5-latency": "Prefetches and the places of lines: latency",
          "paper2-fig5-bandwidth": "Prefetches and the places of lines: bandwidth",
          "paper2-shadows": "Private copies of indexes",
          "parts": "Each part of the machine, left out",
          "match-depth": "Depth of the match list, walked and indexed"}
WHOLE = "whole"
HUGEPAGES = "hugepages"
PAGES_OF_A_JOB = 4  # free hugepages that a job of two nodes wants
CACHES = {WHOLE: [], "no prefetches": ["prefetches"], "cells on two lines": ["lines"],
          "neither": ["prefetches", "lines"]}
INDEXES = {WHOLE: [], "no copy of the credit": ["shadows"], "credit written each time": ["credits"],
           "neither": ["shadows", "credits"]}


def sides(lab, named):
    """Return the environments of these sides, which leave out parts of the same library."""
    return {name: {**ACCELERATED, "LD_LIBRARY_PATH": str(lab.bin.parent / "ablation"),
                   "PTL3_ABLATE": ",".join(parts) or "none"} for name, parts in named.items()}


# ---- Figure 5 ----

def latency(lab):
    measured = {side: tests["put"]
                for side, tests in lab.perf(["put"], SMALL, sides(lab, CACHES), 10000).items()}
    saved = {size: at(measured["neither"], size) - ns for size, ns in measured[WHOLE] if size <= SHORT}
    most = max(saved.values())
    return Figure(
        "paper2-fig5-latency", TITLES["paper2-fig5-latency"], PAPER,
        ["On SeaStar the caches of the firmware's CPU take between 7.75 and 11 microseconds off the "
         "latency of small messages. Here all memory is cached; instead a line that is about to be used "
         "is asked for early, and each cell of a lane is one line."],
        "bytes", "microseconds",
        [Curve(side, microseconds(points), side == WHOLE) for side, points in measured.items()],
        [least(f"Both together make each message up to {SHORT} bytes faster", saved, lambda x: x > 0,
               lambda size, ns: f"by {ns:.0f} to {most:.0f} ns; least at {size_text(size)}")])


def throughput(lab):
    measured = {side: bandwidth(tests["put"])
                for side, tests in lab.perf(["put"], LARGE, sides(lab, CACHES), 1000).items()}
    last = LARGE[-1]
    ratio = at(measured["neither"], last) / at(measured[WHOLE], last)
    return Figure(
        "paper2-fig5-bandwidth", TITLES["paper2-fig5-bandwidth"], PAPER,
        ["On SeaStar the bandwidths with and without caches hit the same asymptote, around 1.1 GB/s."],
        "bytes", "MB/s", [Curve(side, points, side == WHOLE) for side, points in measured.items()],
        [within(f"The bandwidths meet at {size_text(last)}, within 20 %", ratio, 0.2,
                f"without both it has {ratio:.2f} of the whole machine's")])


# ---- section 5.3 ----

def shadows(lab):
    measured = lab.perf(["put", "rate"], [8], sides(lab, INDEXES), 20000)
    times = {side: [at(tests["put"], 8), at(tests["rate"], 8)] for side, tests in measured.items()}
    rows = [[side, *values, *(mine / whole for mine, whole in zip(values, times[WHOLE]))]
            for side, values in times.items()]
    streams = {row[0]: row[4] for row in rows[1:]}
    return Table(
        "paper2-shadows", TITLES["paper2-shadows"], PAPER,
        ["The firmware keeps cached copies of the heads and tails of its FIFOs, and reads the peer's "
         "index only where the copy says that the FIFO is full. Here a producer keeps a copy of the "
         "consumer's credit, and the consumer writes the credit at each eighth of the ring."],
        ["side", "ping-pong of 8 bytes, ns", "stream of 8 bytes, ns a message",
         "ping-pong, against whole", "stream, against whole"], rows,
        [least("A stream takes longer without each of these copies", streams, lambda x: x > 1,
               lambda side, ratio: f"{ratio:.2f} times the time or more; least with {side}")])


# ---- the table of parts ----

def one(lab, test, env, *options, size=8):
    """Return the median of one test and size."""
    iters = 2000 if env["PTL3_MATCH"].startswith("host") else 20000
    words = ["--test", test, "--sizes", size, "--iters", iters, *options]
    return lab.job("portalperf", words, env)[0]["p50_ns"]


# A part takes time, or saves it.
COSTS, SAVES = "costs", "saves"


def measurable(lab):
    """Return {part: [its test, COSTS or SAVES, how to measure with it, and without it]}."""
    def stream(*parts):
        return lambda: one(lab, "stream", {**sides(lab, {"": parts})[""], **GENERIC})

    def plain(env, *options, **more):
        return lambda: one(lab, "put", env, *options, **more)
    pages = {page: {**ACCELERATED, "PTL3_HUGEPAGES": page} for page in ("auto", "off")}
    inline = {n: {"PTL3_MATCH": f"host/inline={n}"} for n in (12, 0)}
    return {
        "START events": ["put of 8 bytes", COSTS, plain(ACCELERATED, "--starts"), plain(ACCELERATED)],
        HUGEPAGES: ["put of 64 KiB", SAVES, plain(pages["auto"], size=65536),
                    plain(pages["off"], size=65536)],
        "12 bytes inline, generic mode": ["put of 8 bytes", SAVES, plain(inline[12]), plain(inline[0])],
        "interrupt at the end of a pass, generic mode": [
            "stream of 8 bytes", SAVES, stream(), stream("batches")]}


def useful(part, kind, ratio):
    """Return the verdict on a part, by its time with / without."""
    data = f"{ratio:.2f} times the time that it takes without"
    if kind == COSTS:
        return over(f"A message takes longer with {part}", ratio, 1, data)
    return under(f"A message takes longer without {part}", ratio, 1, data)


def parts(lab):
    there, lacking = measurable(lab), []
    free = re.search(r"HugePages_Free: +(\d+)", pathlib.Path("/proc/meminfo").read_text(encoding="utf-8"))
    if not free or int(free[1]) < PAGES_OF_A_JOB:
        del there[HUGEPAGES]
        lacking = [HUGEPAGES]
    seen = lab.values({"ACK": lambda: one(lab, "ack", ACCELERATED),
                       **{(part, number): measure for part, (_, _, *both) in there.items()
                          for number, measure in enumerate(both)}})
    rows = [[part, test, seen[part, 0], seen[part, 1], seen[part, 0] / seen[part, 1]]
            for part, (test, *_) in there.items()]
    return Table(
        "parts", TITLES["parts"], PAPER,
        ["The parts that a message can do without, one by one, beside those of the figures above. An ACK has no "
         "ratio: no test sends the same messages without it."],
        ["part", "test", "with it, ns", "without it, ns", "with / without"],
        [*rows, *([part, "put of 64 KiB", None, None, None] for part in lacking),
         ["ACK: from PtlPut to the ACK and SEND_END", "put of 8 bytes", seen["ACK"], None, None]],
        [useful(part, there[part][1], ratio) for part, *_, ratio in rows],
        [f"This machine has fewer than {PAGES_OF_A_JOB} free hugepages, so their row is empty."] * bool(lacking))


# ---- the match list ----

def depth(lab):
    def once(env):
        options = ["--list", "exact", "--hit", "end", "--depth", ",".join(map(str, DEPTHS))]
        return {row["depth"]: row["p50_ns"] for row in lab.job("matchperf", options, env)}
    seen = lab.turns({side: partial(once, env)
                      for side, env in sides(lab, {"indexed": [], "walked": ["index"]}).items()})
    curves = {side: list(ns.items()) for side, ns in seen.items()}
    last, first = DEPTHS[-1], DEPTHS[0]
    worse = {side: at(points, last) / at(points, first) for side, points in curves.items()}
    return Figure(
        "match-depth", TITLES["match-depth"], PAPER,
        ["The firmware walks its match list; a message for the last entry passes all others. Here a list "
         "of 16 entries or more has an index."],
        "entries of the list", "ns a message", [Curve(side, points, side == "indexed")
                                                for side, points in curves.items()],
        [reaches(f"A walked list of {last} entries is slow: it takes 5 times a list of one, or more",
                 worse["walked"], 5, f"{worse['walked']:.1f} times"),
         at_most(f"An indexed list of {last} entries is not: it takes at most twice a list of one",
                 worse["indexed"], 2, f"{worse['indexed']:.2f} times")])


def figures(lab):
    library = lab.bin.parent / "ablation"
    if library.is_dir():
        return (measure(lab) for measure in (latency, throughput, shadows, parts, depth))
    lack = f"{library} has no library that can leave out parts: configure with -DP3_ABLATION=ON and build."
    return (Table(name, title, PAPER, [], [], [], [], [lack]) for name, title in TITLES.items())
