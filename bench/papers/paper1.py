# SPDX-License-Identifier: BSD-3-Clause
"""Paper 1, Figures 3 to 5: PortalPerf on Red Storm, put, get and bidirectional put."""
from lab import ACCELERATED, GENERIC, Curve, Figure, Verdict, at, bandwidth, half_bandwidth, size_text

PAPER = "1: Implementation and performance of Portals 3.3 on the Cray XT3"
SMALL = [0, 1, 8, 12, 16, 32, 64, 128, 256, 512, 1024]
MEDIUM = [1024, 2048, 4096, 6144, 8192, 16384, 32768, 65536, 102400]
LONG = [102400, 262144, 524288, 1048576, 2097152, 8388608, 33554432]
TESTS = {"put": "put", "get": "get", "bidir": "bidirectional put"}
SIDES = {"accelerated": ACCELERATED, "generic": GENERIC}
PAPER_MOST = 2097152  # the longest message of the paper
SHORT_MOST = 8192  # the claim about the modes is for shorter messages


def latency(measured):
    curves = [Curve(f"{name}, {side}", [(s, ns / 1000) for s, ns in measured[side][test]],
                    side == "accelerated" and test == "put")
              for side in SIDES for test, name in TESTS.items()]
    ratios = {(test, size): at(measured["generic"][test], size) / ns
              for test in TESTS for size, ns in measured["accelerated"][test]}
    (test, size), least = min(ratios.items(), key=lambda item: item[1])
    return Figure(
        "paper1-fig3", "Latency of small messages", PAPER,
        ["Zero-length latency on SeaStar (500 MHz PowerPC), generic mode: put 4.89, get 6.09, "
         "bidirectional put 8.39 microseconds."],
        "bytes", "microseconds", curves,
        [Verdict("Accelerated mode is ahead of generic mode at each size up to 1 KiB", least > 1,
                 f"by {least:.1f} times or more; least for {TESTS[test]} of {size_text(size)}"),
         Verdict("A get takes longer than a put, in generic mode",
                 at(measured["generic"]["get"], 0) > at(measured["generic"]["put"], 0),
                 f"{at(measured['generic']['get'], 0) / 1000:.1f} and "
                 f"{at(measured['generic']['put'], 0) / 1000:.1f} microseconds at 0 bytes")])


def medium(measured):
    streams = {side: {test: bandwidth(points, 2 if test == "bidir" else 1)
                      for test, points in measured[side].items()} for side in SIDES}
    curves = [Curve(f"{name}, {side}", streams[side][test], side == "accelerated" and test == "put")
              for side in SIDES for test, name in TESTS.items()]
    halves = {side: half_bandwidth(streams[side]["put"]) for side in SIDES}
    short = {size: at(streams["accelerated"]["put"], size) / mb
             for size, mb in streams["generic"]["put"] if size < SHORT_MOST}
    size, least = min(short.items(), key=lambda item: item[1])
    return Figure(
        "paper1-fig4", "Bandwidth of medium messages", PAPER,
        ["On SeaStar a put reaches 1051 MB/s at 100 KB, a get 1012 MB/s, and half of the put's "
         "bandwidth at about 6 KB."],
        "bytes", "MB/s", curves,
        [Verdict("Half of the bandwidth is reached by shorter messages in accelerated mode",
                 halves["accelerated"] < halves["generic"],
                 f"at {size_text(halves['accelerated'])} and {size_text(halves['generic'])}"),
         Verdict("Accelerated mode is ahead at each size below 8 KiB", least > 1,
                 f"by {least:.1f} times or more; least at {size_text(size)}")])


def long(measured):
    streams = {side: bandwidth(measured[side]["put"]) for side in SIDES}
    ratios = [(size, at(streams["generic"], size) / mb) for size, mb in streams["accelerated"]]
    last, ratio = ratios[-1]
    paper, there = next(item for item in ratios if item[0] == PAPER_MOST)
    more = (at(measured["generic"]["put"], paper) - at(measured["accelerated"]["put"], paper)) / 1000
    return Figure(
        "paper1-fig5", "Bandwidth of long messages", PAPER,
        ["On SeaStar the bandwidth does not fall off up to 2 MB; a put ends at about 1108 MB/s."],
        "bytes", "MB/s",
        [Curve(f"put, {side}", points, side == "accelerated") for side, points in streams.items()],
        [Verdict(f"The bandwidths of both modes meet at {size_text(last)}, within 20 %",
                 abs(1 - ratio) <= 0.2,
                 f"generic mode has {ratio:.2f} of accelerated mode's; {there:.2f} at {size_text(paper)}, "
                 f"where a message takes {more:.0f} microseconds more")])


def figures(lab):
    yield latency(lab.perf(TESTS, SMALL, SIDES, 2000))
    yield medium(lab.perf(TESTS, MEDIUM, SIDES, 1000))
    yield long(lab.perf(["put"], LONG, SIDES, 60))
