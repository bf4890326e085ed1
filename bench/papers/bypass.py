# SPDX-License-Identifier: BSD-3-Clause
"""Paper 1: the price of an interrupt, and the messages to a node that computes."""
from functools import partial

from figures.judge import least, over, reaches, under
from figures.lab import ACCELERATED, Table
from figures.stats import Measured, rounds_of
from paper1 import PAPER

SIDES = {"accelerated": ACCELERATED,
         **{f"generic, {how}": {"PTL3_MATCH": f"host/{how}"} for how in ("futex", "signal", "poll")}}
NODES = (1, 2, 16)
GENERIC_SIDE = "generic, futex"


# ---- the price of an interrupt ----

DEAR = 2  # times the time of a hand-over that needs no interrupt, or more


def dear(ns, ways):
    """Return a verdict for each way to interrupt: its time against that of polling."""
    polls = [way for way in ways if way[0] == "poll"]
    for way in ways if polls else []:
        if way[0] != "poll":
            here, free = ns[(*way, "p50_ns")], ns[(*polls[0], "p50_ns")]
            where = f"{way[1]} CPU{'s' * (way[1] != 'one')}"
            yield reaches(f"An interrupt by {way[0]} on {where} is costly: it takes twice as long as a word "
                          "that is polled, or more", here / free, DEAR,
                          f"{here:.0f} and {free:.0f} ns, {here / free:.1f} times")


def interrupts(lab):
    ns = lab.turns({"": lambda: {(row["way"], row["CPUs"], column): row[column] for row in
                                 lab.job("interrupts", [], {}, 1) for column in ("p50_ns", "p99_ns", "cpu_ns")}})[""]
    ways = dict.fromkeys((way, cpus) for way, cpus, _ in ns)
    rows = [[way, cpus, *(ns[way, cpus, column] for column in ("p50_ns", "p99_ns", "cpu_ns"))]
            for way, cpus in ways]
    sleeping = []
    if ("futex", "two") in ways:
        one, two = (ns["futex", cpus, "p50_ns"] for cpus in ("one", "two"))
        sleeping = [over("To wake a thread on another CPU, which sleeps, takes longer than on the same one",
                         two / one, 1, f"{two:.0f} and {one:.0f} ns")]
    return Table(
        "interrupts", "The price of an interrupt", PAPER,
        ["On the Cray XT3 an interrupt is very costly: at least 2 microseconds, where an empty trap into the "
         "kernel costs 75 ns and a put 4.89 microseconds. Here two threads interrupt each other in turns, "
         "without a message; poll has no interrupt: the other thread polls a word."],
        ["way", "CPUs", "median, ns", "p99, ns", "CPU time of both threads, ns"], rows,
        [*dear(ns, ways), *sleeping])


# ---- bypass ----

def bypass(lab):
    def once(env):
        rows = lab.job("overlap", ["--sizes", "8,64K", "--rounds", "100", "--work", "2000"], env)
        return {(row["bytes"], column): row[column] for row in rows if row["computes"] == "target"
                for column in ("p50_us", "work_us", "hidden")}
    seen = lab.turns({side: partial(once, env) for side, env in SIDES.items()})
    rows = [[side, size, *(seen[side][size, column] for column in ("p50_us", "work_us", "hidden"))]
            for side in SIDES for size in (8, 65536)]
    spare = {(row[0], row[1]): row[3] / row[2] for row in rows}
    mine, other = seen["accelerated"][8, "p50_us"], seen[GENERIC_SIDE][8, "p50_us"]
    return Table(
        "bypass", "A put to a node that computes", PAPER,
        ["Portals delivers a message without a call of the target's program: in accelerated mode the NIC "
         "does it alone, in generic mode the kernel of the target matches."],
        ["side", "bytes", "from PtlPut to ACK, microseconds", "the target's work, microseconds",
         "part of the message that the work hides"], rows,
        [least("In each mode the ACK comes while the target still computes", spare, lambda x: x > 1,
               lambda key, value: f"the work takes {value:.1f} times as long as the ACK or more; least with "
               f"{key[1]} bytes, {key[0]}"),
         under("Accelerated mode has the earlier ACK, at 8 bytes", mine / other, 1,
               f"{mine:.1f} and {other:.1f} microseconds")])


# ---- stolen time ----

COLUMNS = ("nic_ns", "kernel_ns", "interrupts", "work", "wall", "p50_us", "p99_us")


def of_both(row):
    """Return the CPU time of both threads, ns a message.  In a run of some milliseconds the kernel may
    have counted none: take the least that can be told from none."""
    value = row["nic_ns"] + row["kernel_ns"]
    least_ns = [max(ns, 1.0) for ns in rounds_of(value, 1)]
    return Measured(least_ns) if isinstance(value, Measured) else least_ns[0]


def frees(nodes, accelerated, generic):
    """Return the verdict on the CPU time that a message takes on the target's host, all threads of
    the library together."""
    mine, other = of_both(accelerated), of_both(generic)
    return under("A message takes less CPU time on the target's host in accelerated than in generic mode, "
                 f"NIC thread and kernel's thread together, {nodes} node{'s' * (nodes > 1)}", mine / other, 1,
                 f"{mine:.0f} and {other:.0f} ns a message")


def stolen(lab):
    def once(nodes, env):
        row = lab.job("stolen", [], env, nodes)[0]
        return {column: row[column] for column in COLUMNS}
    seen = lab.turns({(nodes, side): partial(once, nodes, env) for nodes in NODES for side, env in SIDES.items()})
    rows = [[nodes, side, *(seen[nodes, side][column] for column in COLUMNS)]
            for nodes in NODES for side in SIDES]
    return Table(
        "stolen", "CPU time that messages take from a node that computes", PAPER,
        ["Matching in the NIC frees the host: in generic mode each message takes time from the host's "
         "CPU, for its interrupts and for matching. Here the NIC is a thread of the host, which takes CPU "
         "time, too, so both threads count. Accelerated mode has no thread of the kernel. Work is the CPU "
         "time of the same computation, against that without messages; its time by the clock contains the "
         "turns of other threads."],
        ["nodes", "side", "NIC thread, ns a message", "kernel's thread, ns a message",
         "interrupts a message", "work",
         "work by the clock", "from PtlPut to ACK, median, microseconds", "p99, microseconds"], rows,
        [frees(nodes, seen[nodes, "accelerated"], seen[nodes, GENERIC_SIDE]) for nodes in NODES])


def figures(lab):
    return (measure(lab) for measure in (interrupts, bypass, stolen))
