# SPDX-License-Identifier: BSD-3-Clause
"""Paper 1, Figures 3 to 5: PortalPerf on Red Storm, put, get and bidirectional put."""
from figures.judge import (all_within, at, falls_off, half_bandwidth, least, number, over, ratios, reaches,
                   size_text, under)
from figures.lab import ACCELERATED, GENERIC, Curve, Figure, bandwidth, microseconds

PAPER = "1: Implementation and performance of Portals 3.3 on the Cray XT3"
SMALL = [0, 1, 8, 12, 16, 32, 64, 128, 256, 512, 1024]
MEDIUM = [1024, 2048, 4096, 6144, 8192, 16384, 32768, 65536, 102400]
LONG = [102400, 262144, 524288, 1048576, 2097152, 8388608, 33554432]
TESTS = {"put": "put", "get": "get", "bidir": "bidirectional put"}
SIDES = {"accelerated": ACCELERATED, "generic": GENERIC}
PAPER_MOST = 2097152  # the longest message of the paper
SHORT_MOST = 8192  # the claim about the modes is for shorter messages
EQUAL = 0.2  # bandwidths meet within this part


def curves(measured):
    return [Curve(f"{name}, {side}", measured[side][test], side == "accelerated" and test == "put")
            for side in SIDES for test, name in TESTS.items()]


def rates(measured):
    """Turn times into bandwidths; those of bidirectional puts count both ways."""
    return {side: {test: bandwidth(points, 2 if test == "bidir" else 1)
                   for test, points in measured[side].items()} for side in SIDES}


def faster(question, measured, most):
    """Return the verdict that accelerated mode is ahead for each test and size up to most."""
    values = {(test, size): ratio for test in TESTS for size, ratio in
              ratios(measured["generic"][test], measured["accelerated"][test]).items() if size <= most}
    return least(question, values, lambda x: x > 1, lambda key, ratio: (
        f"by {ratio:.1f} times or more; least for a {TESTS[key[0]]} of {size_text(key[1])}"))


def latency(measured):
    put, get = (at(measured["generic"][test], 0) for test in ("put", "get"))
    return Figure(
        "paper1-fig3", "Latency of small messages", PAPER,
        ["Zero-length latency on SeaStar (500 MHz PowerPC), generic mode: put 4.89, get 6.09, "
         "bidirectional put 8.39 microseconds."],
        "bytes", "microseconds",
        curves({side: {test: microseconds(points) for test, points in tests.items()}
                for side, tests in measured.items()}),
        [faster("Accelerated mode is ahead of generic mode at each size up to 1 KiB, for put, get and "
                "bidirectional put", measured, SMALL[-1]),
         over("A get takes longer than a put, in generic mode", get / put, 1,
              f"{get / 1000:.1f} and {put / 1000:.1f} microseconds at 0 bytes")])


def medium(measured):
    streams = rates(measured)
    halves = {side: half_bandwidth(streams[side]["put"]) for side in SIDES}
    return Figure(
        "paper1-fig4", "Bandwidth of medium messages", PAPER,
        ["On SeaStar a put reaches 1051 MB/s at 100 KB, a get 1012 MB/s, and half of the put's "
         "bandwidth at about 6 KB."],
        "bytes", "MB/s", curves(streams),
        [under("Half of the bandwidth is reached by shorter messages in accelerated mode",
               halves["accelerated"] / halves["generic"], 1,
               f"at {size_text(halves['accelerated'])} and {size_text(halves['generic'])}"),
         faster("Accelerated mode is ahead at each size below 8 KiB, for put, get and bidirectional put",
                measured, SHORT_MOST - 1)])


def meets(streams, size, whose):
    """Return the verdict that both modes have the same bandwidth at this size, in each test."""
    there = {name: at(streams["generic"][test], size) / at(streams["accelerated"][test], size)
             for test, name in TESTS.items()}
    data = ", ".join(f"{ratio:.2f} ({name})" for name, ratio in there.items())
    return all_within(f"The bandwidths of both modes meet at {size_text(size)}, {whose}, within 20 %, for "
                      "put, get and bidirectional put", there.values(), EQUAL,
                      f"generic mode has {data} of accelerated mode's")


def stays(streams, side, test):
    kept = falls_off(streams[side][test], PAPER_MOST)
    return reaches(f"The bandwidth of a {TESTS[test]} does not fall off up to 2 MiB, {side} mode: there it "
                   "has 90 % of the peak", kept, 0.9, f"{100 * kept:.0f} % of the peak up to there")


def long(measured):
    streams = rates(measured)
    generic, accelerated = (at(measured[side]["put"], PAPER_MOST) / 1000 for side in ("generic", "accelerated"))
    return Figure(
        "paper1-fig5", "Bandwidth of long messages", PAPER,
        ["On SeaStar the bandwidth does not fall off up to 2 MB; a put ends at about 1108 MB/s. The "
         "bandwidth of bidirectional puts counts both ways. Here the lengths go on to 32 MiB, since a "
         "message of 2 MiB takes less than a tenth of its time on the SeaStar, and interrupts do not."],
        "bytes", "MB/s", curves(streams),
        [meets(streams, PAPER_MOST, "the paper's longest message"),
         meets(streams, LONG[-1], "our longest message"),
         *(stays(streams, side, test) for side in SIDES for test in TESTS)], notes=[
            f"A put of {size_text(PAPER_MOST)} takes {number(accelerated)} microseconds in accelerated mode, and "
            f"{number(generic)} in generic mode."])


def figures(lab):
    yield latency(lab.perf(TESTS, SMALL, SIDES, 2000))
    yield medium(lab.perf(TESTS, MEDIUM, SIDES, 1000))
    yield long(lab.perf(TESTS, LONG, SIDES, 60))
