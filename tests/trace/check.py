#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check.py FILE [whole]: is this a trace in Trace Event Format that a viewer can show?

Each event has the fields of its phase; slices of a thread nest; flows and asynchronous
events come in pairs, in order, and flows stop inside slices.  whole: nothing was lost, so
each put, get and getput that was sent was taken, matched and delivered, unless its target
leaves: a few, each the last of its sender, that no node answered.  loose: a node lies, only
the form counts.
"""
import bisect
import collections
import json
import sys

NEEDS = {
    "X": ("name", "cat", "ts", "dur", "pid", "tid", "args"),
    "M": ("name", "pid", "tid", "args"),
    "s": ("name", "cat", "id", "ts", "pid", "tid"),
    "t": ("name", "cat", "id", "ts", "pid", "tid"),
    "f": ("name", "cat", "id", "ts", "pid", "tid", "bp"),
    "b": ("name", "cat", "id", "ts", "pid", "tid"),
    "e": ("name", "cat", "id", "ts", "pid", "tid"),
}
NS = 0.001
CLOSE = NS / 10  # sums of numbers of microseconds are not exact

with open(sys.argv[1], encoding="ascii") as text:
    trace = json.load(text)
events = trace["traceEvents"]
nodes = trace["otherData"]["nodes"]


def check(truth, *what):
    if not truth:
        sys.exit("check.py: " + " ".join(map(str, what)))


def check_fields(ev):
    needs = NEEDS.get(ev.get("ph"))
    check(needs, "phase", ev)
    check(all(name in ev for name in needs), "a field is missing", ev)
    check(0 <= ev["pid"] < nodes, "no such node", ev)
    check(ev.get("ts", 0) >= 0 and ev.get("dur", 0) >= 0, "negative time", ev)


def by_thread(phases):
    threads = collections.defaultdict(list)
    for ev in events:
        if ev["ph"] in phases:
            threads[ev["pid"], ev["tid"]].append(ev)
    return threads


def check_nesting(slices):
    """Sorted as viewers do it: a slice ends within those that it began in."""
    open_ = []
    for ev in sorted(slices, key=lambda ev: (ev["ts"], -ev["dur"])):
        end = ev["ts"] + ev["dur"]
        while open_ and open_[-1] <= ev["ts"] + CLOSE:
            open_.pop()
        check(not open_ or end <= open_[-1] + CLOSE, "slices overlap", ev)
        open_.append(end)


class Cover:
    """Times of a thread that lie in a slice."""

    def __init__(self, slices):
        self.begins, self.ends = [], []
        for ev in sorted(slices, key=lambda ev: ev["ts"]):
            end = ev["ts"] + ev["dur"]
            if self.ends and ev["ts"] <= self.ends[-1] + CLOSE:
                self.ends[-1] = max(self.ends[-1], end)
            else:
                self.begins.append(ev["ts"])
                self.ends.append(end)

    def holds(self, ts):
        at = bisect.bisect(self.begins, ts + CLOSE) - 1
        return at >= 0 and ts <= self.ends[at] + CLOSE


def check_flows(threads):
    flows = collections.defaultdict(list)
    for ev in events:
        if ev["ph"] in "stf":
            flows[ev["id"]].append(ev)
    cover = {thread: Cover(slices) for thread, slices in threads.items()}
    for stops in flows.values():
        phases = "".join(ev["ph"] for ev in stops)
        check(phases == "s" + "t" * (len(stops) - 2) + "f", "flow", phases, stops)
        times = [ev["ts"] for ev in stops]
        check(times == sorted(times), "a flow goes back", stops)
        for ev in stops:
            check(cover[ev["pid"], ev["tid"]].holds(ev["ts"]), "nowhere", ev)
    return flows


def check_pairs():
    open_ = {}
    for ev in events:
        if ev["ph"] == "b":
            check(ev["id"] not in open_, "begun twice", ev)
            open_[ev["id"]] = ev
        elif ev["ph"] == "e":
            begin = open_.pop(ev["id"], None)
            check(begin and begin["ts"] <= ev["ts"], "ended, not begun", ev)
    check(not open_, "not ended", open_)


def lane_of(message):
    return message.split(":")[0]


def nodes_of(message):
    return tuple(map(int, lane_of(message).split("-")))


def check_whole():
    """Every message that was sent has its way at the other end."""
    ways, when, taken = collections.defaultdict(set), {}, collections.Counter()
    for ev in events:
        if ev["ph"] == "X" and ev["args"]["message"]:
            message, point = ev["args"]["message"], ev["cat"]
            ways[message].add((ev["pid"], point))
            if point == "send":
                when[message] = ev["ts"] + ev["dur"]
    for message, way in ways.items():
        lane, (_, dst) = lane_of(message), nodes_of(message)
        if (dst, "take") in way:
            taken[lane] = max(taken[lane], when.get(message, 0))
    sent = left = 0
    for message, way in ways.items():
        src, dst = nodes_of(message)
        if (src, "send") not in way:
            continue
        sent += 1
        check((src, "command") in way, message, "no command")
        is_last = when[message] > taken[lane_of(message)]
        if not way & {(dst, "take"), (src, "answered")} and is_last:
            left += 1
            continue
        for point in ("take", "match", "deliver", "event"):
            check((dst, point) in way, message, "has no", point, way)
    commands = sum(
        ev["ph"] == "X"
        and ev["name"] in ("command put", "command get", "command getput")
        and bool(ev["args"]["message"])
        for ev in events
    )
    check(sent and commands == sent, commands, "commands,", sent, "sent")
    check(left <= nodes, left, "of", sent, "not taken")
    return sent


for ev in events:
    check_fields(ev)
if "loose" in sys.argv:
    sys.exit(0)
threads = by_thread("X")
for slices in threads.values():
    check_nesting(slices)
flows = check_flows(threads)
check_pairs()
sent = check_whole() if "whole" in sys.argv else 0
check(flows, "no flows")
print(f"# tried: {len(events)} events, {len(flows)} flows, {sent} messages whole")
