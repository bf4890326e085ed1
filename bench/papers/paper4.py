# SPDX-License-Identifier: BSD-3-Clause
"""Paper 4, Figures 2 to 4: CCI in the firmware beside Portals in both modes."""
from lab import (ACCELERATED, GENERIC, Curve, Figure, Verdict, absent, at, medians, microseconds, size_text)
from paper2 import step

PAPER = "4: SeaStar Unchained: multiplying the performance of the Cray SeaStar network"
SIZES = [0, 8, 12, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096]
INLINE = 12  # bytes that go with the header in generic mode, the default of PTL3_INLINE
UU, RO, ACCEL, GEN = "CCI, UU", "CCI, RO", "Portals, accelerated", "Portals, generic"
TITLES = {"paper4-fig2": "Latency of CCI and Portals",
          "paper4-fig3": "Streaming bandwidth of CCI and Portals",
          "paper4-fig4": "Streaming message rate of CCI and Portals"}
WAYS = {UU: "uu", RO: "ro", ACCEL: "put"}  # in the columns of cciperf
SMALL = 8  # bytes, where the paper says small messages
FLAT, EQUAL = 1.15, 0.9


def with_cci(lab):
    """Return {(way, test, bytes): value}: ns, or million messages a second."""
    seen = {}
    options = ["--test", "latency,stream", "--sizes", ",".join(map(str, SIZES))]
    column = {"latency": "_ns", "stream": "_Mmsg_per_s"}
    for _ in range(lab.rounds):
        for row in lab.job("cciperf", options, ACCELERATED)["results"]:
            for way, prefix in WAYS.items():
                value = row[prefix + column[row["test"]]]
                seen.setdefault((way, row["test"], row["bytes"]), []).append(value)
    return medians(seen)


def measure(lab):
    """Return {way: points} for latency in ns, and for rate in million messages a second."""
    cci = with_cci(lab)
    generic = lab.perf(["put", "stream"], SIZES, {GEN: GENERIC}, 200)[GEN]
    latency, rate = ({way: [(size, cci[way, test, size]) for size in SIZES] for way in WAYS}
                     for test in ("latency", "stream"))
    latency[GEN] = generic["put"]
    rate[GEN] = [(size, 1000 / ns) for size, ns in generic["stream"]]
    return latency, rate


def curves(ways):
    return [Curve(way, points, way == UU) for way, points in ways.items()]


def ratio(ways, way, other, size):
    return at(ways[way], size) / at(ways[other], size)


def ahead_of_generic(ns):
    ratios = {(way, size): ratio(ns, GEN, way, size) for way in (UU, RO) for size in SIZES}
    (way, size), least = min(ratios.items(), key=lambda item: item[1])
    return Verdict("UU and RO take at most half of the time of generic Portals at each size", least >= 2,
                   f"generic Portals takes {least:.1f} times as long or more; least beside {way} at "
                   f"{size_text(size)}")


def reliable(ns):
    first, last = (ratio(ns, RO, UU, size) for size in (SIZES[0], SIZES[-1]))
    return [Verdict("RO takes longer than UU, because of its acknowledgements, at 0 bytes", first > 1,
                    f"{first:.2f} times the time"),
            Verdict("RO comes nearer to UU at 4 KiB, where the bytes hide acknowledgements", last < first,
                    f"{last:.2f} times the time")]


def latency_figure(ns):
    grown = at(ns[UU], 512) / at(ns[UU], 0)
    jump = step(ns[GEN], INLINE)
    return Figure(
        "paper4-fig2", TITLES["paper4-fig2"], PAPER,
        ["On SeaStar messages of 0 bytes take 2.83 (UU) and 2.99 microseconds (RO), 30 to 50 % of the "
         "time of generic Portals; UU stays below 3 up to 512 bytes; at 4 KB they take 4.99 and 5.26. "
         "Generic Portals jumps at 32 bytes, where a message no longer fits its header."],
        "bytes", "microseconds", curves({way: microseconds(points) for way, points in ns.items()}),
        [ahead_of_generic(ns),
         Verdict("Generic Portals jumps where a message no longer fits its header, behind "
                 f"{INLINE} bytes here", jump > 1.05, f"{jump:.2f} times the time"),
         Verdict("The latency of UU is flat up to 512 bytes, within 15 %", grown < FLAT,
                 f"{grown:.2f} times that of 0 bytes"), *reliable(ns)])


def bandwidth_figure(rate):
    streams = {way: [(size, million * size) for size, million in points if size]
               for way, points in rate.items()}
    short = {size: ratio(streams, UU, GEN, size) for size in SIZES if 0 < size < 2048}
    size, least = min(short.items(), key=lambda item: item[1])
    early, late = (at(streams[UU], 2 * size) / at(streams[UU], size) for size in (8, 2048))
    return Figure(
        "paper4-fig3", TITLES["paper4-fig3"], PAPER,
        ["On SeaStar UU begins to run out of bandwidth at 2 KB, and ends at 2 GB/s with the largest "
         "message; for small messages it has almost 7 times the bandwidth of generic Portals."],
        "bytes", "MB/s", curves(streams),
        [Verdict("UU has at least 6 times the bandwidth of generic Portals below 2 KiB", least >= 6,
                 f"{least:.1f} times or more; least at {size_text(size)}"),
         Verdict("UU runs out of bandwidth behind 2 KiB: twice the size brings less than for small messages",
                 late < early,
                 f"{late:.2f} times from 2 to 4 KiB, {early:.2f} times from 8 to 16 bytes")])


def rate_figure(rate):
    injected = ratio(rate, UU, GEN, SMALL)
    kilo, most = (at(rate[UU], size) / at(rate[UU], SMALL) for size in (1024, 4096))
    small, last = (ratio(rate, RO, UU, size) for size in (SMALL, SIZES[-1]))
    return Figure(
        "paper4-fig4", TITLES["paper4-fig4"], PAPER,
        ["On SeaStar UU sends over one million messages a second up to 1 KB, one each 960 ns, six times "
         "as many as generic Portals, and slightly under 500000 near the largest size; RO sends over "
         "640000 a second, and is lower than UU until the largest size."],
        "bytes", "million messages a second", curves(rate),
        [Verdict("UU sends at least 6 times as many messages of 8 bytes as generic Portals", injected >= 6,
                 f"{injected:.0f} times as many"),
         Verdict("The rate of UU is flat up to 1 KiB, within 15 %", kilo * FLAT > 1,
                 f"{kilo:.2f} of that of 8 bytes"),
         Verdict("At 4 KiB the rate of UU is at most half of that of 8 bytes", most <= 0.5,
                 f"{most:.2f} of that of 8 bytes"),
         Verdict("RO sends fewer messages of 8 bytes than UU", small < 1, f"{small:.2f} of the rate of UU"),
         Verdict("RO has the rate of UU at 4 KiB, within 10 %", last >= EQUAL,
                 f"{last:.2f} of the rate of UU")])


def figures(lab):
    lack = lab.lacks("cciperf", "portalperf")
    if lack:
        yield from (absent(name, title, PAPER, [], lack) for name, title in TITLES.items())
        return
    ns, rate = measure(lab)
    yield latency_figure(ns)
    yield bandwidth_figure(rate)
    yield rate_figure(rate)
