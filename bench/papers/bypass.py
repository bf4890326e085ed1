# SPDX-License-Identifier: BSD-3-Clause
"""Paper 1: the price of an interrupt, and the messages to a node that computes."""
import json
import tempfile

from lab import ACCELERATED, GENERIC, Table, Verdict, absent, medians

PAPER = "1: Implementation and performance of Portals 3.3 on the Cray XT3"
SIDES = {"accelerated": ACCELERATED,
         **{f"generic, {how}": {**GENERIC, "PTL3_INTERRUPT": how} for how in ("futex", "signal", "poll")}}
NODES = (1, 2, 16)
GENERIC_SIDE = "generic, futex"
TITLES = {"interrupts": "The price of an interrupt", "bypass": "A put to a node that computes",
          "stolen": "CPU time that messages take from a node that computes"}


def jobs(lab, nodes, program, options, env):
    """Return the rows of a bench in a job of this number of nodes."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        quick = ["--quick"] if lab.quick else []
        lab.run(program, [lab.bin / "yod", "-sz", nodes, "--timeout", "600", lab.bin / program, *options,
                          "--json", out.name, *quick], env)
        return json.load(open(out.name, encoding="utf-8"))["results"]


# ---- the price of an interrupt ----

def interrupts(lab):
    seen = {}
    for _ in range(lab.rounds):
        for row in jobs(lab, 1, "interrupts", [], {}):
            for column in ("p50_ns", "p99_ns", "cpu_ns"):
                seen.setdefault((row["way"], row["CPUs"], column), []).append(row[column])
    ns = medians(seen)
    ways = dict.fromkeys((way, cpus) for way, cpus, _ in ns)
    rows = [[way, cpus, *(ns[way, cpus, column] for column in ("p50_ns", "p99_ns", "cpu_ns"))]
            for way, cpus in ways]
    one = ns["futex", "one", "p50_ns"]
    verdicts = [Verdict("An interrupt costs less than the 2 microseconds of the Cray XT3's host",
                        one < 2000, f"{one:.0f} ns by a futex on one CPU")]
    if ("futex", "two") in ways:
        two = ns["futex", "two", "p50_ns"]
        verdicts.append(Verdict("To wake a thread on another CPU, which sleeps, takes longer than on the "
                                "same one", two > one, f"{two:.0f} and {one:.0f} ns"))
    return Table(
        "interrupts", TITLES["interrupts"], PAPER,
        ["On the Cray XT3 an interrupt costs at least 2 microseconds. Here two threads interrupt each other "
         "in turns, without a message; poll has no interrupt: the other thread polls a word."],
        ["way", "CPUs", "median, ns", "p99, ns", "CPU time of both threads, ns"], rows, verdicts)


# ---- bypass ----

def bypass(lab):
    seen = {}
    options = ["--sizes", "8,64K", "--rounds", "100", "--work", "2000"]
    for _ in range(lab.rounds):
        for side, env in SIDES.items():
            for row in jobs(lab, 2, "overlap", options, env):
                if row["computes"] == "target":
                    for column in ("p50_us", "ratio", "work_us", "hidden"):
                        seen.setdefault((side, row["bytes"], column), []).append(row[column])
    value = medians(seen)
    rows = [[side, size, *(value[side, size, column] for column in ("p50_us", "work_us", "hidden"))]
            for side in SIDES for size in (8, 65536)]
    late = max(rows, key=lambda row: row[2] / row[3])
    mine, other = value["accelerated", 8, "p50_us"], value[GENERIC_SIDE, 8, "p50_us"]
    return Table(
        "bypass", TITLES["bypass"], PAPER,
        ["Portals delivers a message without a call of the target's program: in accelerated mode the NIC "
         "does it alone, in generic mode the kernel of the target matches."],
        ["side", "bytes", "from PtlPut to ACK, microseconds", "the target's work, microseconds",
         "part of the message that the work hides"], rows,
        [Verdict("In each mode the ACK comes while the target still computes", late[2] < late[3],
                 f"after {late[2]:.0f} of {late[3]:.0f} microseconds at the latest, {late[0]}"),
         Verdict("Accelerated mode has the earlier ACK, at 8 bytes", mine < other,
                 f"{mine:.1f} and {other:.1f} microseconds")])


# ---- stolen time ----

COLUMNS = ("nic_ns", "kernel_ns", "work", "p50_us", "p99_us")


def stolen(lab):
    seen = {}
    for _ in range(lab.rounds):
        for nodes in NODES:
            for side, env in SIDES.items():
                row = jobs(lab, nodes, "stolen", [], env)[0]
                for column in COLUMNS:
                    seen.setdefault((nodes, side, column), []).append(row[column])
    value = medians(seen)
    rows = [[nodes, side, *(value[nodes, side, column] for column in COLUMNS)]
            for nodes in NODES for side in SIDES]
    kernel = [value[nodes, GENERIC_SIDE, "kernel_ns"] for nodes in NODES]
    none = [value[nodes, "accelerated", "kernel_ns"] for nodes in NODES]
    return Table(
        "stolen", TITLES["stolen"], PAPER,
        ["Matching in the NIC frees the host: in generic mode each message takes time from the host's "
         "CPU, for its interrupts and for matching. Here the NIC is a thread of the host, which takes CPU "
         "time, too; the table tells its time from the kernel's. Work is the CPU time of the same "
         "computation, against that without messages."],
        ["nodes", "side", "NIC thread, ns a message", "kernel's thread, ns a message", "work",
         "from PtlPut to ACK, median, microseconds", "p99, microseconds"], rows,
        [Verdict("In generic mode messages take the kernel's time, in accelerated mode they take none",
                 min(kernel) > 0 and max(none) == 0,
                 ", ".join(f"{ns:.0f} ns a message with {nodes} nodes" for ns, nodes in zip(kernel, NODES)))])


def figures(lab):
    lack = lab.lacks("interrupts", "overlap", "stolen")
    if lack:
        yield from (absent(name, title, PAPER, [], lack) for name, title in TITLES.items())
        return
    yield interrupts(lab)
    yield bypass(lab)
    yield stolen(lab)
