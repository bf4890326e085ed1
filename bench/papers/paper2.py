# SPDX-License-Identifier: BSD-3-Clause
"""Paper 2: Figure 2, the trace of a message; section 4.2, memory; Figure 6, payload with the header."""
import pathlib
import re
import tempfile

import steps
from lab import ACCELERATED, GENERIC, Curve, Figure, Table, Verdict, absent, at

PAPER = "2: SeaStar interconnect: C firmware for Portals"
INLINE = (0, 12, 32)
SIZES = [1, 4, 8, 12, 13, 16, 24, 32, 33, 48, 64]


def step(points, inline, count=2):
    """Return by how much longer the messages take that are just too long to go inline, of this
    number of sizes on both sides."""
    below = [ns for size, ns in points if size <= inline][-count:]
    above = [ns for size, ns in points if size > inline][:count]
    return (sum(above) / len(above)) / (sum(below) / len(below)) if below else 1.0


# ---- Figure 2 ----

RECORD = re.compile(r" *([\d.]+): +(\d+): +(\S+): \w+ ([^ .]+)\S*?(\+\w+)? \((?:(\d+) ns)?.*?\) (.*)")
EXAMPLE = 1056  # ns between the first and the last record of the paper's example


def dump(lab, file, *options):
    """Return the records of a trace: microseconds, node, value, function, offset, ns, meaning."""
    text, _ = lab.run("tracedump", [lab.bin / "tracedump", *options, file], {})
    return [m.groups() for m in map(RECORD.match, text.splitlines()) if m]


def one_message(lab):
    """Return the records of one message from the middle of a ping-pong, and the time of a record."""
    with tempfile.TemporaryDirectory() as work:
        file = pathlib.Path(work, "trace")
        events = steps.traced(lab, file)
        numbers = [steps.message(e) for e in events if e["name"] == "deliver put" and e["pid"] == 1]
        return dump(lab, file, "--message", numbers[len(numbers) // 2]), 1000 * steps.record(events)


def trace(lab):
    records, each = one_message(lab)
    first = float(records[0][0])
    rows = [[f"{float(us) - first:.3f}", node, value, function + (offset or ""), ns, what]
            for us, node, value, function, offset, ns, what in records]
    there = [float(row[0]) for row in rows if row[1] == "1"]
    whole = 1000 * (there[-1] - there[0])
    return Table(
        "paper2-fig2", "The trace of one message", PAPER,
        ["On SeaStar the ten records of the paper's example span 1.056 microseconds, and a record costs "
         "about 10 ns. Here the message is empty; node 0 sends it, and node 1 matches and delivers it. "
         "The time before a record is that since the record before it in the same node, of any message."],
        ["microseconds", "node", "value", "function", "before it, ns", "meaning"], rows,
        [Verdict("The target's firmware needs less time for a message than the paper's example spans",
                 whole < EXAMPLE, f"{whole:.0f} ns, records included"),
         Verdict("A record costs at most twice the paper's 10 ns", each <= 20, f"{each:.0f} ns")])


# ---- section 4.2 ----

NODES = (64, 128, 256, 512, 1024)


def plan(lab, nodes):
    """Return the bytes that a node publishes, and the numbers of its sources and pendings."""
    text, _ = lab.run("yod", [lab.bin / "yod", "--plan", "-sz", nodes, "true"], {"PTL3_HUGEPAGES": "off"})
    published = int(re.search(r"published (\d+)", text)[1])
    sources = re.search(r"sources +each node (\d+) of (\d+) bytes, and (\d+)", text)
    pendings = re.search(r"pendings +each node up to (\d+) of (\d+) bytes", text)
    return published, *map(int, sources.groups()), *map(int, pendings.groups())


def memory(lab):
    rows = []
    for nodes in NODES:
        published, s, s_size, lane, p, p_size = plan(lab, nodes)
        rows.append([s, s_size, p, p_size, s * s_size / 1024, published / 1024, s * (s_size + lane) / 1024,
                     p * p_size / 1024])
    grows = [(b[5] - a[5]) / (b[4] - a[4]) for a, b in zip(rows, rows[1:])]
    return Table(
        "paper2-memory", "Memory of sources and pendings", PAPER,
        ["M = S * Ssize + P * Psize. The SeaStar's firmware has 1,024 sources and 1,274 pendings in 384 KB.",
         "Here yod --plan gives the numbers. A source has more memory once a pair has exchanged some "
         "messages; a node makes pendings when it needs them."],
        ["S, sources", "Ssize, bytes", "P, pendings at most", "Psize, bytes", "S * Ssize, KiB",
         "published at the start, KiB", "S * Ssize with full lanes, KiB", "P * Psize at most, KiB"], rows,
        [Verdict("The memory of a node grows by Ssize for each source, within 2 %",
                 all(abs(ratio - 1) <= 0.02 for ratio in grows),
                 f"{min(grows):.3f} to {max(grows):.3f} of it"),
         Verdict("As many sources as the SeaStar's fit its 384 KB", rows[-1][4] <= 384,
                 f"{rows[-1][0]} take {rows[-1][4]:.0f} KiB")])


# ---- Figure 6 ----

def payload(lab):
    sides = {f"generic, {n} bytes inline": {**GENERIC, "PTL3_INLINE": str(n)} for n in INLINE}
    sides["accelerated"] = ACCELERATED
    measured = {side: tests["put"] for side, tests in lab.perf(["put"], SIZES, sides, 3000).items()}
    names = [f"generic, {n} bytes inline" for n in INLINE]
    steps = [step(measured[names[1]], 12), step(measured[names[2]], 32)]
    flat = step(measured["accelerated"], 12)
    saved = at(measured[names[0]], 8) - at(measured[names[1]], 8)
    return Figure(
        "paper2-fig6", "Very small messages: payload that goes with the header", PAPER,
        ["On SeaStar up to 12 bytes fit the header packet; going inline saves about 2.7 "
         "microseconds, one interrupt."],
        "bytes", "microseconds",
        [Curve(side, [(size, ns / 1000) for size, ns in points], side == "accelerated")
         for side, points in measured.items()],
        [Verdict("Generic mode has a step behind 12 bytes with 12 bytes inline", steps[0] > 1.05,
                 f"{steps[0]:.2f} times the time"),
         Verdict("Generic mode has a step behind 32 bytes with 32 bytes inline", steps[1] > 1.05,
                 f"{steps[1]:.2f} times the time"),
         Verdict("Accelerated mode has no step behind 12 bytes", flat < 1.05,
                 f"{flat:.2f} times the time"),
         Verdict("8 bytes inline take less time than 8 bytes in a second step", saved > 0,
                 f"{saved / 1000:.1f} microseconds are saved")])


def figures(lab):
    lack = lab.lacks("peer_portals", "tracedump")
    yield absent("paper2-fig2", "The trace of one message", PAPER, [], lack) if lack else trace(lab)
    yield memory(lab)
    yield payload(lab)
