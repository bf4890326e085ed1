# SPDX-License-Identifier: BSD-3-Clause
"""Paper 1, Figures 6 and 7: NetPIPE's pattern by portalperf and, if its source is there, by NetPIPE
itself with the module netpipe/portals.c."""
import pathlib
import subprocess
import sys
import tempfile
from functools import partial

from figures.judge import (ahead, at, between, half_bandwidth, has_no_step, has_step, over, size_text,
                   under, within)
from figures.lab import ACCELERATED, Curve, Figure, bandwidth, microseconds
from figures.stats import by_rounds
from paper1 import PAPER

HERE = pathlib.Path(__file__).resolve().parent
INLINE = 12  # payload in the header, as in the paper's firmware
SIDES = {"accelerated": ACCELERATED, "generic": {"PTL3_MATCH": f"host/inline={INLINE}"}}
TESTS = {"put": "put", "get": "get", "streaming put": "stream", "bidirectional put": "bidir"}
OF_NETPIPE = {"put": [], "get": ["-g"], "streaming put": ["-s"], "bidirectional put": ["-2"]}
BIDIR = "bidirectional put"
NO_SOURCE = 77  # status of netpipe/build
SMALL = 1024  # the longest message of Figure 6
# Messages of a trial of NetPIPE, up to SMALL bytes and above.  Left alone, it chooses as many as take a
# tenth of a second, for each of some 40 sizes.
# A stream has STREAM times as many, since its module sends up to 256 ahead.
MANY = {"accelerated": (10000, 100), "generic": (300, 60)}
STREAM = 5
FEW = 5
MEDIUM = (1024, 102400)
SOURCES = {"portalperf": "", "NetPIPE": ", NetPIPE itself"}


def reach(lab):
    return 131072 if lab.quick else 2097152


def one_pipe(lab, test, env):
    """Run portalperf --sweep once.  Return {bytes: ns}."""
    options = ["--sweep", "--test", TESTS[test], "--upper", reach(lab), "--perturbation", "0", "--iters", "1000"]
    return {row["bytes"]: row["p50_ns"] for row in lab.job("portalperf", options, env)}


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


def one_netpipe(lab, program, test, side):
    """Run NetPIPE once: it reports the best of its three trials.  Return {bytes: ns}; the sizes are
    those of portalperf."""
    points = {}
    ranges = (1, SMALL), (SMALL, reach(lab))
    times = STREAM if test == "streaming put" else 1
    for (low, high), many in zip(ranges, MANY[side]):
        with tempfile.NamedTemporaryFile(suffix=".out") as out:
            lab.run("NPportals", [*lab.two_nodes("--bind", "core"), program, "-p", "0", "-o", out.name, "-l", low,
                                  "-u", high, "-n", FEW if lab.quick else times * many, *OF_NETPIPE[test]],
                    SIDES[side])
            points = {**dict(points_of(pathlib.Path(out.name).read_text(encoding="utf-8"), ways(test))), **points}
    return dict(sorted(points.items()))


# ---- the figures

def ways(test):
    return 2 if test == BIDIR else 1


def streams(measured):
    """Return bandwidths; those of bidirectional puts count both ways."""
    return {source: {(side, test): bandwidth(points, ways(test)) for (side, test), points in of.items()}
            for source, of in measured.items()}


def curves(of_sources, side, tests, convert):
    return [Curve(f"{test}{SOURCES[source]}", convert(of[side, test]),
                  source == "portalperf" and test == "put")
            for source, of in of_sources.items() for test in tests if (side, test) in of]


def each(measured, judge):
    """Return the verdicts of judge(name, curves of that source) for each source."""
    return [v for source, of in measured.items() for v in judge(SOURCES[source], of)]


def gain(of, side):
    """Return by what factor a stream of 8 bytes is ahead of a ping-pong."""
    return at(of[side, "put"], 8) / at(of[side, "streaming put"], 8)


def steps(side, name, of):
    """Return the verdicts on puts of 12 and 16 bytes; 24 take a second cell in each mode."""
    judge, a = (has_step, "a") if side == "generic" else (has_no_step, "no")
    for test, words, way in (("put", "A put has", ""), (BIDIR, "Bidirectional puts have", " each way")):
        yield judge(f"{words} {a} step behind {INLINE} bytes{way}{name}", of[side, test], INLINE)


def latency_verdicts(side, name, of):
    yield from steps(side, name, of)
    if side == "generic":
        here, there = gain(of, "generic"), gain(of, "accelerated")
        yield under("Interrupts dominate a stream: it gains less than in accelerated mode, at 8 bytes" + name,
                    here / there, 1, f"{here:.2f} and {there:.2f} times as fast as a ping-pong")
        return
    stream = of[side, "streaming put"]
    small = between(1, SMALL, stream)
    yield ahead(f"A streaming put takes less time than a put up to 1 KiB{name}", of[side, "put"], stream,
                small)
    yield ahead(f"A streaming put takes less time than in generic mode, up to 1 KiB{name}",
                of["generic", "streaming put"], stream, small)


def latency(measured, side, notes):
    def convert(points):
        return microseconds((size, ns) for size, ns in points if size <= SMALL)
    return Figure(
        f"paper1-fig6-{side}", f"NetPIPE: latency, {side} mode", PAPER,
        ["The streaming numbers of the paper, in generic mode, are dominated by the interrupts.",
         "Up to 12 bytes go with the header and save an interrupt; longer ones need two interrupts, "
         "and with matching in the firmware none. The cross-over is at 12 bytes in the unidirectional and "
         "at 24 in the bidirectional tests, where the paper counts both ways; the picture counts one way.",
         "Here, too, generic mode has 12 bytes of payload in its header.", notes],
        "bytes", "microseconds", curves(measured, side, TESTS, convert),
        each(measured, lambda name, of: latency_verdicts(side, name, of)))


def twice(side, name, of):
    one, both = (by_rounds(lambda curve: max(mb for _, mb in curve), of[side, test]) for test in ("put", BIDIR))
    return within(f"Bidirectional puts deliver twice the bandwidth, within 20 %{name}", both / one / 2, 0.2,
                  f"{both / one:.2f} times {one:.0f} MB/s, in the peaks")


def halves(of, side):
    """Return the lengths that reach half of the peak; both ways count."""
    return [half_bandwidth([(size * ways(test), mb) for size, mb in of[side, test]])
            for test in ("put", BIDIR)]


def bandwidth_verdicts(side, name, of):
    yield twice(side, name, of)
    one, both = halves(of, side)
    yield over(f"Half of the peak needs more bytes for bidirectional puts{name}", both / one, 1,
               f"{size_text(both)} and {size_text(one)}")
    yield ahead(f"A put has more bandwidth than a get, 1 to 100 KiB{name}", of[side, "put"], of[side, "get"],
                between(*MEDIUM, of[side, "get"]))
    if side == "accelerated":
        for less, more, word in zip(halves(of, side), halves(of, "generic"), ("a put", BIDIR + "s")):
            yield under(f"Half of the peak of {word} needs fewer bytes than in generic mode{name}", less / more, 1,
                        f"{size_text(less)} and {size_text(more)}")


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


def measure(lab, program):
    """Return {source: {(side, test): [(bytes, ns)]}} of portalperf, and of NetPIPE if it is there."""
    keys = {(side, test): env for test in TESTS for side, env in SIDES.items()}
    calls = {("portalperf", *key): partial(one_pipe, lab, key[1], env) for key, env in keys.items()}
    if program:
        calls |= {("NetPIPE", *key): partial(one_netpipe, lab, program, key[1], key[0]) for key in keys}
    measured = {}
    for (source, *key), points in lab.turns(calls).items():
        measured.setdefault(source, {})[tuple(key)] = list(points.items())
    return measured


def figures(lab):
    program, reason = build(lab)
    note = (f"NetPIPE itself is not among the curves ({reason})." if reason else
            "NetPIPE itself reports the best of three trials, and sends from the buffer into which it receives; "
            "portalperf reports the median of batches of rounds. Both run in turns, and the medians of the rounds are shown.")
    measured = measure(lab, program)
    for draw, of in ((latency, measured), (rates, streams(measured))):
        for side in SIDES:
            yield draw(of, side, note)
