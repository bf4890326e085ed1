# SPDX-License-Identifier: BSD-3-Clause
"""Paper 2, Figure 6: payload that goes with the header saves an interrupt."""
from lab import ACCELERATED, GENERIC, Curve, Figure, Verdict, at

PAPER = "2: SeaStar interconnect: C firmware for Portals"
INLINE = (0, 12, 32)
SIZES = [1, 4, 8, 12, 13, 16, 24, 32, 33, 48, 64]


def step(points, inline):
    """Return by how much longer the messages take that are just too long to go inline."""
    below = [ns for size, ns in points if size <= inline][-2:]
    above = [ns for size, ns in points if size > inline][:2]
    return (sum(above) / len(above)) / (sum(below) / len(below)) if below else 1.0


def figures(lab):
    sides = {f"generic, {n} bytes inline": {**GENERIC, "PTL3_INLINE": str(n)} for n in INLINE}
    sides["accelerated"] = ACCELERATED
    measured = {side: tests["put"] for side, tests in lab.perf(["put"], SIZES, sides, 3000).items()}
    names = [f"generic, {n} bytes inline" for n in INLINE]
    steps = [step(measured[names[1]], 12), step(measured[names[2]], 32)]
    flat = step(measured["accelerated"], 12)
    saved = at(measured[names[0]], 8) - at(measured[names[1]], 8)
    yield Figure(
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
