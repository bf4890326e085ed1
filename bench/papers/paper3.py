# SPDX-License-Identifier: BSD-3-Clause
"""Paper 3: a NIC that matches, Portals beside the vendor's own messages; here beside Open MPI."""
from functools import partial

import steps
from figures import run
from figures.judge import (Verdict, at, half_bandwidth, has_step, of_all, over, ratios, reaches, size_text, within)
from figures.lab import ACCELERATED, Curve, Figure, Table, bandwidth, curves, microseconds

PAPER = "3: A NIC-offload implementation of Portals for Quadrics QsNet"
INLINE = 16  # bytes in the first cell of a message, shm/lane.h
EQUAL = 0.2  # bandwidths meet within this part
SMALL = [0, 1, 8, 16, 17, 32, 33, 64, 128, 256, 288, 289, 512, 1024]
LARGE = [64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304]
# Step, the paper's microseconds for Portals and for Tports, and the step's number in
# bench/compare/peer.h.
INITIATOR = [("Post receive for pong", 6.4, 1.7, 1), ("Send ping", 2.2, 1.0, 2),
             ("Wait for send to complete", 2.8, 0.1, 3), ("Wait for pong to arrive", 24.7, 8.5, 4)]
CLOCK = 0
PORTALS, OPEN_MPI = "Portals", "Open MPI"


class Peers:
    """The two sides of a comparison; missing is a sentence if Open MPI is not there."""

    def __init__(self, lab):
        self.lab = lab
        self.sides = {PORTALS: ([*lab.two_nodes(), lab.bin / "peer_portals", "ours", lab.scale()], {})}
        mpi, self.missing = lab.mpi("openmpi")
        if not self.missing:  # a test has no CPU for itself
            self.sides[OPEN_MPI] = mpi.peer(2, lab.quick, mpi.name, lab.scale())

    def notes(self):
        """Return the notes of a figure that compares both sides."""
        return [self.missing] if self.missing else []

    def once(self, side, tests):
        """Run tests, {test: values of x}, once on a side.  Return {(test, x): ns}."""
        command, env = self.sides[side]
        rows = run.peer_lines(command, tests, env={**ACCELERATED, **env})
        return {(test, x): value for _, test, x, value in rows}

    def measure(self, tests, others=None):
        """Run tests on each side, and others, {name: function as of Lab.turns}, in turns.  Return
        {side or name: {test: [(x, ns)]}}."""
        ways = {side: partial(self.once, side, tests) for side in self.sides}
        return {side: curves(values) for side, values in self.lab.turns({**ways, **(others or {})}).items()}


# ---- Table 1 ----

def dearer(clock):
    """Return the verdict on each step's cost beside the competitor's, if that is there."""
    if OPEN_MPI not in clock:
        return []
    both = {row[0]: (clock[PORTALS][row[3]], clock[OPEN_MPI][row[3]]) for row in INITIATOR}
    data = "; ".join(f"{name}: {ours:.3f} and {theirs:.3f} microseconds"
                     for name, (ours, theirs) in both.items())
    return [of_all("Each step takes longer with Portals than with its competitor, Open MPI here",
                   [ours - theirs for ours, theirs in both.values()], lambda x: x > 0, data)]


def initiator(peers):
    # microseconds by looks at the clock, without the time of a look
    clock = {side: {x: (ns - at(tests["step"], CLOCK)) / 1000 for x, ns in tests["step"]} for side, tests in
             peers.measure({"step": [CLOCK, *(row[3] for row in INITIATOR)]}).items()}
    sides = [side for side in (PORTALS, OPEN_MPI) if side in clock]
    rows = [[name, *(clock[side][x] for side in sides), portals, tports] for name, portals, tports, x in INITIATOR]
    wait, whole = clock[PORTALS][INITIATOR[-1][3]], sum(clock[PORTALS][row[3]] for row in INITIATOR)
    rows.append(["Total", *(sum(column) for column in list(zip(*rows))[1:])])
    return Table(
        "paper3-table1", "Steps of a ping-pong at its initiator", PAPER,
        ["On QsNet a round takes the initiator 36.1 microseconds with Portals and 11.3 with Tports, because "
         "posting a receive takes two calls, and an event is larger than Tports' word.",
         "Here a look at the clock before and after each step gives its time, less the time of a look."],
        ["step", *(f"{side} here, microseconds" for side in sides), "Portals on QsNet, microseconds",
         "Tports on QsNet, microseconds"],
        rows,
        [*dearer(clock), over("The initiator spends most of a round, more than half, in its wait for the pong",
                              wait / whole, 0.5, f"{wait:.3f} of {whole:.3f} microseconds")], peers.notes())


# ---- Table 2 ----

def with_total(rows):
    """Add a row with the sums; its name has the steps whose time is not known here."""
    lacking = [row[0].lower() for row in rows if row[1] is None]
    name = f"Total, here without: {', '.join(lacking)}" if lacking else "Total"
    return rows + [[name, sum(row[1] for row in rows if row[1] is not None), 4.8, 1.4]]


def unlinking(slices):
    """Return the verdict on the step that the paper finds dear, by slices with one record each."""
    match, unlink = slices[steps.MATCH], slices[steps.UNLINK]
    return reaches("Unlinking the buffer takes at least half as long as finding it", unlink / match, 0.5,
                   f"{unlink:.3f} and {match:.3f} microseconds, each with one record of the trace")


def firmware(slices):
    return Table(
        "paper3-table2", "Steps of a message in the firmware", PAPER,
        ["On QsNet the NIC's thread needs 4.8 microseconds for an empty message with Portals, 1.4 with "
         "Tports; the largest differences are in matching and in unlinking the buffer, which writes over "
         "PCI.",
         "Here the lock is the lease under which a thread runs the firmware: a thread that waits for a "
         "message has taken it before, so taking it is no step of a message. Unlinking includes the "
         "event that tells of it and the delivery, so it contains two records of the trace; each other "
         "step contains one. The trace of one message, of paper 2, tells the cost of a record."],
        ["step (the paper's microseconds where two are in one)", "Portals here by the trace, microseconds",
         "Portals on QsNet, microseconds", "Tports on QsNet, microseconds"],
        # Where the trace has one slice for two steps of the paper, their sum stands beside it.
        with_total([
            ["Take lock", None, 0.2, 0.1],
            ["Inspect header (0.4; 0.1) and match (1.4; 0.3)", slices[steps.MATCH], 0.4 + 1.4, 0.1 + 0.3],
            ["Housekeeping (0.7; 0.2) and write completion event (0.7; 0.5)", slices[steps.EVENT],
             0.7 + 0.7, 0.2 + 0.5],
            ["Unlink matched buffer", slices[steps.UNLINK] + slices[steps.DELIVER], 1.3, 0.1],
            ["Drop lock", slices[steps.LEAVE], 0.1, 0.1]]), [unlinking(slices)])


# ---- Figures 3 and 4 ----

def latency(peers, measured):
    ours, perf = measured[PORTALS]["posted"], measured["portalperf"]
    drawn = [Curve("Portals put, receive posted", microseconds(ours), True),
             Curve("Portals put", microseconds(perf["put"])),
             Curve("Portals get", microseconds(perf["get"]))]
    verdicts = [has_step(f"A put takes longer behind the {INLINE} bytes that go with the header", ours,
                         INLINE)]
    if OPEN_MPI in measured:
        theirs = measured[OPEN_MPI]["posted"]
        drawn.append(Curve("Open MPI, receive posted", microseconds(theirs)))
        found = list(ratios(ours, theirs).values())
        verdicts.append(of_all("Portals has the higher latency at each size, beside Open MPI here", found, lambda x: x > 1,
                               f"at {sum(ratio > 1 for ratio in found)} of {len(found)} sizes; Portals takes "
                               f"{min(found):.2f} to {max(found):.2f} of its time"))
    return Figure(
        "paper3-fig3", "Latency of short messages beside Open MPI", PAPER,
        ["On QsNet Portals has about 15 microseconds more than Tports at each size, a jump behind 32 "
         "bytes, which go with the header, and one behind 288 bytes, where long messages begin. A round "
         "posts its receive."],
        "bytes", "microseconds", drawn, verdicts, notes=peers.notes())


def behind(ours, theirs):
    """Return the verdict that the competitor has more bandwidth until half of its peak is reached."""
    question = "The competitor, Open MPI here, has more bandwidth until half of its peak is reached"
    half = half_bandwidth(theirs)
    found = ratios(ours, theirs, [size for size, _ in ours if size <= half])
    if not found:
        return Verdict(question, None, f"half of the peak is reached at the first size, {size_text(half)}")
    count = sum(ratio < 1 for ratio in found.values())
    return of_all(question, found.values(), lambda x: x < 1,
                  f"at {count} of {len(found)} sizes up to {size_text(half)}")


def meet(ours, theirs):
    """Return the verdicts on the competitor's bandwidth."""
    last = ours[-1][0]
    ratio = at(ours, last) / at(theirs, last)
    return [behind(ours, theirs),
            within(f"Both meet at an asymptote: at {size_text(last)} they are within 20 %", ratio, EQUAL,
                   f"Portals has {ratio:.2f} of it")]


def throughput(peers, posted):
    streams = {side: bandwidth(tests["posted"]) for side, tests in posted.items()}
    ours = streams[PORTALS]
    before, end = (at(ours, size) for size in LARGE[-2:])
    verdicts = [within("The bandwidth reaches an asymptote: at 1 and 4 MiB it differs by at most 20 %",
                       end / before, EQUAL, f"{before:.0f} and {end:.0f} MB/s")]
    if OPEN_MPI in streams:
        verdicts += meet(ours, streams[OPEN_MPI])
    return Figure(
        "paper3-fig4", "Bandwidth of a ping-pong beside Open MPI", PAPER,
        ["On QsNet Tports has more bandwidth than Portals until an asymptote at about 307 MB/s. The "
         "bandwidth is the size divided by half of a round."],
        "bytes", "MB/s", [Curve(f"{side}, receive posted", points, side == PORTALS)
                          for side, points in streams.items()],
        verdicts, notes=peers.notes())


def figures(lab):
    peers = Peers(lab)
    yield initiator(peers)
    yield firmware(steps.rounds(lab))
    perf = {"portalperf": partial(lab.perf_once, ["put", "get"], SMALL, ACCELERATED, 4000)}
    yield latency(peers, peers.measure({"posted": SMALL}, perf))
    yield throughput(peers, peers.measure({"posted": LARGE}))
