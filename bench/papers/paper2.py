# SPDX-License-Identifier: BSD-3-Clause
"""Paper 2: Figure 2, the trace of a message; section 4.2, memory; Figure 6, payload with the header."""
import pathlib
import re
import tempfile
from functools import partial

import steps
from figures.judge import Verdict, at, at_most, has_no_step, has_step, over, step, verdict
from figures.lab import ACCELERATED, Curve, Figure, Table, microseconds

PAPER = "2: SeaStar interconnect: C firmware for Portals"
INLINE = (0, 12, 16, 32)
OWN_CELL = 16  # bytes in the first cell of a message, shm/lane.h
SIZES = [1, 4, 8, 12, 13, 16, 17, 24, 32, 33, 48, 64]


# ---- Figure 2 ----

RECORD = re.compile(r" *([\d.]+): +(\d+): +(\S+): \w+ ([^ .]+)\S*?(\+\w+)? \((?:(\d+) ns)?.*?\) (.*)")
CHEAP = 0.1  # of a message's time


def one_message(lab):
    """Return the records of one message from the middle of a ping-pong: microseconds, node, value, function,
    offset, ns, meaning."""
    with tempfile.TemporaryDirectory() as work:
        file = pathlib.Path(work, "trace")
        numbers = [steps.message(e) for e in steps.traced(lab, file) if e["name"] == "deliver put" and e["pid"] == 1]
        text, _ = lab.run("tracedump", [lab.bin / "tracedump", "--message", numbers[len(numbers) // 2], file], {})
    return [m.groups() for m in map(RECORD.match, text.splitlines()) if m]


def receipt(rows):
    """Return a note about the records of the target's firmware; those of its program come later."""
    mine = [row for row in rows if row[1] == "1"]
    last = next(i for i, row in enumerate(mine) if row[5].startswith("deliver put"))
    span = 1000 * (float(mine[last][0]) - float(mine[0][0]))
    return (f"The firmware of node 1 has {last + 1} records of this message, which span {span:.0f} ns, from "
            "its first look at the message to its delivery. This span and the example's belong to different "
            "paths, so they are not compared.")


def trace(lab):
    records, price = one_message(lab), steps.price(lab)
    first = float(records[0][0])
    rows = [[f"{float(us) - first:.3f}", node, value, function + (offset or ""), ns, what]
            for us, node, value, function, offset, ns, what in records]
    return Table(
        "paper2-fig2", "The trace of one message", PAPER,
        ["On SeaStar a record costs about 10 ns. By the time stamps of the paper's example, in ticks of "
         "2 ns, its ten records span 1.056 microseconds. They are not the receipt of one message: they end "
         "one and begin to send another.",
         "Here the message is empty; node 0 sends it, and node 1 matches and delivers it. The time before a "
         "record is that since the record before it in the same node, of any message.",
         "The cost of a record is the difference between a ping-pong with a trace and one without, for each "
         "record of a message. A trace also keeps messages off the library's shortest path, so this is the "
         "most that a record can cost."],
        ["microseconds", "node", "value", "function", "before it, ns", "meaning"], rows,
        [at_most("A record is cheap: it costs at most a tenth of a message's time without a trace, a bar of "
                 "ours",
                 price.each / price.bare, CHEAP,
                 f"{price.each:.0f} ns or less, {price.records:.0f} records a message, which takes "
                 f"{price.bare:.0f} ns without a trace and {price.traced:.0f} with it")], [receipt(rows)])


# ---- section 4.2 ----

NODES = (64, 128, 256, 512, 1024)


def plan(lab, nodes):
    """Return the bytes that a node publishes, and the numbers of its sources and pendings."""
    text, _ = lab.run("yod", [lab.bin / "yod", "--plan", "-sz", nodes, "true"], {"PTL3_HUGEPAGES": "off"})
    published = 1024 * int(re.search(r"published (\d+) KiB", text)[1])
    sources = re.search(r"sources +each node (\d+) of (\d+) bytes, and (\d+) KiB .*\n.*; (\d+) bytes in private", text)
    pendings = re.search(r"pendings +each node up to (\d+) of (\d+) bytes", text)
    shared, lane = int(sources[2]), 1024 * int(sources[3])
    return published, int(sources[1]), shared, lane, int(sources[4]), *map(int, pendings.groups())


def memory(lab):
    rows = []
    for nodes in NODES:
        published, s, shared, lane, private, p, p_size = plan(lab, nodes)
        s_size = shared + private
        rows.append([s, s_size, p, p_size, s * s_size / 1024, s * shared / 1024, published / 1024,
                     s * (s_size + lane) / 1024, p * p_size / 1024])
    grows = [(b[6] - a[6]) / (b[5] - a[5]) for a, b in zip(rows, rows[1:])]
    return Table(
        "paper2-memory", "Memory of sources and pendings", PAPER,
        ["M = S * Ssize + P * Psize. The SeaStar's firmware has 1,024 sources and 1,274 pendings in 384 KB.",
         "Here yod --plan gives the numbers. A source has more memory once a pair has exchanged some "
         "messages; a node makes pendings when it needs them."],
        ["S, sources", "Ssize, bytes", "P, pendings at most", "Psize, bytes", "S * Ssize, KiB",
         "its published part, KiB", "all that is published at the start, KiB",
         "S * Ssize with full lanes, KiB", "P * Psize at most, KiB"], rows,
        [Verdict("The published memory grows by that of a source for each source, within 2 %",
                 all(abs(ratio - 1) <= 0.02 for ratio in grows),
                 f"{min(grows):.3f} to {max(grows):.3f} of it"),
         Verdict("As many sources as the SeaStar's fit its 384 KB", rows[-1][4] <= 384,
                 f"{rows[-1][0]} take {rows[-1][4]:.0f} KiB")])


# ---- Figure 6 ----

def inline(bytes_):
    return f"generic, {bytes_} bytes inline"


def saved(none, some):
    """Return the verdict on the time that payload in the header saves at 8 bytes."""
    less = at(none, 8) - at(some, 8)
    return over("8 bytes inline take less time than 8 bytes in a second step", less, 0,
                f"{less / 1000:.1f} of {at(none, 8) / 1000:.1f} microseconds are saved")


def one_more(question, some, more):
    """Return the verdict that messages have one interrupt more on the second side."""
    return verdict(question, more - some, lambda count: 0.9 <= count <= 1.1,
                   f"{some:.2f} and {more:.2f} interrupts a message")


def interrupts(lab, sides):
    """Return the verdicts on the interrupts of the target: payload in the header saves one, and the
    step lies at its size."""
    cases = {(n, size) for n in INLINE[1:] for size in (n, n + 1)} | {(0, 8), (12, 8)}

    def count(n, size):
        return lab.job("stolen", ["--bytes", size, "--messages", 1000], sides[inline(n)])[0]["interrupts"]
    seen = lab.values({case: partial(count, *case) for case in sorted(cases)})
    yield one_more("Payload in the header saves one interrupt of the target, at 8 bytes",
                   seen[12, 8], seen[0, 8])
    for n in INLINE[1:]:
        yield one_more(f"With {n} bytes inline {n + 1} bytes take one interrupt more than {n}",
                       seen[n, n], seen[n, n + 1])


def payload(lab):
    sides = {inline(n): {"PTL3_MATCH": f"host/inline={n}"} for n in INLINE}
    sides["accelerated"] = ACCELERATED
    measured = {side: tests["put"] for side, tests in lab.perf(["put"], SIZES, sides, 2000).items()}
    own = step(measured["accelerated"], OWN_CELL)
    return Figure(
        "paper2-fig6", "Very small messages: payload that goes with the header", PAPER,
        ["On SeaStar up to 12 bytes fit the header packet; going inline saves about 2.7 "
         "microseconds, one interrupt.",
         f"Here the first cell of a message has room for {OWN_CELL} bytes in each mode, which is a step of "
         "its own."],
        "bytes", "microseconds",
        [Curve(side, microseconds(points), side == "accelerated") for side, points in measured.items()],
        [*(has_step(f"Generic mode has a step behind {n} bytes with {n} bytes inline, from {n} to {n + 1} bytes",
                    measured[inline(n)], n) for n in INLINE[1:]),
         *(has_no_step(f"Accelerated mode has no step behind {n} bytes, from {n} to {n + 1} bytes",
                       measured["accelerated"], n) for n in (12, 32)),
         saved(measured[inline(0)], measured[inline(12)]), *interrupts(lab, sides)],
        notes=[f"From {OWN_CELL} to {OWN_CELL + 1} bytes accelerated mode takes {own:.2f} times the time."])


def figures(lab):
    yield trace(lab)
    yield memory(lab)
    yield payload(lab)
