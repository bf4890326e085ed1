# SPDX-License-Identifier: BSD-3-Clause
"""Paper 1, Figures 6 and 7: NetPIPE's pattern by pipeperf and, if its source is there, by NetPIPE
itself with the module netpipe/portals.c."""
import pathlib
import subprocess
import sys
import tempfile

from lab import (ACCELERATED, GENERIC, Curve, Figure, Verdict, at, bandwidth, half_bandwidth,
                 median_points, size_text)
from paper1 import PAPER
from paper2 import step

HERE = pathlib.Path(__file__).resolve().parent
INLINE = 12  # payload in the header, as in the paper's firmware
SIDES = {"accelerated": ACCELERATED, "generic": {**GENERIC, "PTL3_INLINE": str(INLINE)}}
TESTS = {"put": [], "get": ["--get"], "streaming put": ["--stream"], "bidirectional put": ["--bidir"]}
OF_NETPIPE = {"put": [], "streaming put": ["-s"], "bidirectional put": ["-2"]}
BIDIR = "bidirectional put"
NO_SOURCE = 77  # status of netpipe/build
SMALL = 1024  # the longest message of Figure 6
MEDIUM = (1024, 102400)
SOURCES = {"pipeperf": "", "NetPIPE": ", NetPIPE itself"}


def reach(lab):
    return 131072 if lab.quick else 2097152


# ---- pipeperf

def one_pipe(lab, test, env):
    options = ["--upper", reach(lab), "--perturbation", "0", "--time", "30", *TESTS[test]]
    return [(row["bytes"], row["p50_ns"]) for row in lab.job("pipeperf", options, env)["results"]]


def pipe(lab):
    """Return {(side, test): [(bytes, ns)]} of pipeperf, the medians of the rounds."""
    rounds = [{(side, test): one_pipe(lab, test, env) for test in TESTS for side, env in SIDES.items()}
              for _ in range(lab.rounds)]
    return {key: median_points([measured[key] for measured in rounds]) for key in rounds[0]}


# ---- NetPIPE itself

def build(lab):
    """Return NetPIPE with the module, or the reason why there is no source.  A quick run
    downloads nothing."""
    out = lab.bin.parent / "netpipe"
    words = [HERE / "netpipe/build", "--bin", lab.bin, "--out", out]
    run = subprocess.run([str(w) for w in words + ["--no-fetch"] * lab.quick], text=True,
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    if run.returncode == 0:
        return out / "NPportals", ""
    if run.returncode != NO_SOURCE:
        sys.exit(f"papers: {words[0]} ended with status {run.returncode}: {run.stderr.strip()[-400:]}")
    return None, run.stderr.strip()


def points_of(text, number):
    """Read NetPIPE's lines: bytes of that number of ways, 2^20 bits in a second, seconds.  The
    seconds have 8 decimals only, so the time comes from the bandwidth."""
    rows = [line.split() for line in text.splitlines()]
    return [(int(total) // number, int(total) * 8e9 / (float(mbits) * 1048576))
            for total, mbits, _ in rows]


def one_netpipe(lab, program, test, env):
    """Run NetPIPE once: it reports the best of its three trials.  Sizes are those of pipeperf."""
    with tempfile.NamedTemporaryFile(suffix=".out") as out:
        few = ["-n", "5"] if lab.quick else []
        lab.run("NPportals", [*lab.two_nodes("--bind", "core"), program, "-p", "0", "-u", reach(lab),
                              "-o", out.name, *OF_NETPIPE[test], *few], env)
        return points_of(pathlib.Path(out.name).read_text(encoding="utf-8"), ways(test))


def netpipe(lab, program):
    return {(side, test): one_netpipe(lab, program, test, env)
            for test in OF_NETPIPE for side, env in SIDES.items()}


def note(reason):
    if not reason:
        return ("NetPIPE itself reports the best of three trials, and sends from the buffer into which "
                "it receives; pipeperf reports the median of seven trials and of the rounds.")
    return f"NetPIPE itself is not among the curves ({reason})."


# ---- the figures

def ways(test):
    return 2 if test == BIDIR else 1


def streams(measured):
    """Return bandwidths; those of bidirectional puts count both ways."""
    return {source: {(side, test): bandwidth(points, ways(test)) for (side, test), points in of.items()}
            for source, of in measured.items()}


def curves(of_sources, side, tests, convert):
    return [Curve(f"{test}{SOURCES[source]}", convert(of[side, test]),
                  source == "pipeperf" and test == "put")
            for source, of in of_sources.items() for test in tests if (side, test) in of]


def ahead(question, slow, fast, sizes):
    """Judge by the least ratio of two curves over the sizes."""
    slow, fast = dict(slow), dict(fast)
    size, least = min(((s, slow[s] / fast[s]) for s in slow if s in fast and sizes[0] <= s <= sizes[1]),
                      key=lambda item: item[1])
    return Verdict(question, least > 1, f"the least ratio is {least:.2f}, at {size_text(size)}")


def each(measured, judge):
    """Return the verdicts of judge(name, curves of that source) for each source."""
    return [v for source, of in measured.items() for v in judge(SOURCES[source], of)]


def gain(of, side):
    """Return by what factor a stream of 8 bytes is ahead of a ping-pong."""
    return at(of[side, "put"], 8) / at(of[side, "streaming put"], 8)


def latency_verdicts(side, name, of):
    longer = step(of[side, "put"], INLINE, 1)  # 16 bytes; 24 take a second cell in each mode
    said = f"{longer:.2f} times the time"
    if side == "generic":
        yield Verdict(f"A put has a step behind {INLINE} bytes{name}", longer > 1.05, said)
        gains = gain(of, side), gain(of, "accelerated")
        yield Verdict("Interrupts dominate a stream: it gains less than in accelerated mode, at 8 "
                      f"bytes{name}", gains[0] < gains[1],
                      f"{gains[0]:.2f} and {gains[1]:.2f} times as fast as a ping-pong")
        return
    yield ahead(f"A streaming put takes less time than a put up to 1 KiB{name}",
                of[side, "put"], of[side, "streaming put"], (1, SMALL))
    yield Verdict(f"A put has no step behind {INLINE} bytes{name}", longer < 1.05, said)
    yield ahead(f"A streaming put takes less time than in generic mode, up to 1 KiB{name}",
                of["generic", "streaming put"], of[side, "streaming put"], (1, SMALL))


def latency(measured, side, notes):
    def convert(points):
        return [(size, ns / 1000) for size, ns in points if size <= SMALL]
    return Figure(
        f"paper1-fig6-{side}", f"NetPIPE: latency, {side} mode", PAPER,
        ["The streaming numbers of the paper, in generic mode, are dominated by the interrupts.",
         "Up to 12 bytes go with the header and save an interrupt; longer ones need two interrupts, "
         "and with matching in the firmware none.",
         "Here, too, generic mode has 12 bytes of payload in its header.", notes],
        "bytes", "microseconds", curves(measured, side, ["put", "get", "streaming put"], convert),
        each(measured, lambda name, of: latency_verdicts(side, name, of)))


def twice(side, name, of):
    one, both = (max(mb for _, mb in of[side, test]) for test in ("put", BIDIR))
    return Verdict(f"Bidirectional puts deliver twice the bandwidth, within 20 %{name}",
                   abs(both / one / 2 - 1) <= 0.2, f"{both / one:.2f} times {one:.0f} MB/s, in the peaks")


def halves(of, side):
    """Return the lengths that reach half of the peak; both ways count."""
    return [half_bandwidth([(size * ways(test), mb) for size, mb in of[side, test]])
            for test in ("put", BIDIR)]


def bandwidth_verdicts(side, name, of):
    yield twice(side, name, of)
    one, both = halves(of, side)
    yield Verdict(f"Half of the peak needs more bytes for bidirectional puts{name}", both > one,
                  f"{size_text(both)} and {size_text(one)}")
    if (side, "get") in of:
        yield ahead(f"A put has more bandwidth than a get, 1 to 100 KiB{name}", of[side, "put"],
                    of[side, "get"], MEDIUM)
    if side == "accelerated":
        for less, more, word in zip(halves(of, side), halves(of, "generic"), ("a put", BIDIR + "s")):
            yield Verdict(f"Half of the peak of {word} needs fewer bytes than in generic mode{name}",
                          less < more, f"{size_text(less)} and {size_text(more)}")


def rates(measured, side, notes):
    return Figure(
        f"paper1-fig7-{side}", f"NetPIPE: bandwidth, {side} mode", PAPER,
        ["On SeaStar in generic mode the bidirectional bandwidth is twice the unidirectional one, with "
         "a peak at over 2200 MB/s.",
         "Half of the bandwidth comes at 8 KB in the unidirectional and at nearly 24 KB in the "
         "bidirectional case; the paper expects a dramatic decrease with matching in the firmware.",
         "The paper's lengths of bidirectional puts count both ways; in the picture they count one way.",
         "A get has slightly less bandwidth than a put with PortalPerf at 100 KB.", notes],
        "bytes", "MB/s", curves(measured, side, TESTS, list),
        each(measured, lambda name, of: bandwidth_verdicts(side, name, of)))


def figures(lab):
    measured = {"pipeperf": pipe(lab)}
    program, reason = build(lab)
    if program:
        measured["NetPIPE"] = netpipe(lab, program)
    for side in SIDES:
        yield latency(measured, side, note(reason))
    for side in SIDES:
        yield rates(streams(measured), side, note(reason))
