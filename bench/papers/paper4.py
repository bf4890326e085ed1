# SPDX-License-Identifier: BSD-3-Clause
"""Paper 4, Figures 2 to 4: CCI in the firmware beside Portals in both modes."""
from functools import partial

from figures.judge import (at, at_most, has_step, least, over, ratios, reaches, size_text, under)
from figures.lab import ACCELERATED, GENERIC, Curve, Figure, microseconds
from figures.stats import by_rounds

PAPER = "4: SeaStar Unchained: multiplying the performance of the Cray SeaStar network"
SIZES = [0, 8, 12, 13, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096]
INLINE = 12  # bytes that go with the header in generic mode, by default
UU, RO, ACCEL, GEN = "CCI, UU", "CCI, RO", "Portals, accelerated", "Portals, generic"
WAYS = {"UU": UU, "RO": RO, "put": ACCEL, "puts": ACCEL}  # of cciperf
SMALL = 8  # bytes, where the paper says small messages
FLAT, EQUAL = 1.15, 0.9
WEAK = 1.5  # times the bandwidth for twice the size: little is left


def with_cci(lab):
    """Run cciperf once.  Return {(way, test, bytes): value}: ns, or million messages a second."""
    options = ["--test", "latency,stream", "--sizes", ",".join(map(str, SIZES))]
    rows = lab.job("cciperf", options, ACCELERATED)
    return {(WAYS[row["way"]], row["test"], row["bytes"]): row["p50_ns" if row["test"] == "latency" else "Mmsg_per_s"]
            for row in rows if row["way"] in WAYS}


def measure(lab):
    """Return {way: points} for latency in ns, and for rate in million messages a second."""
    seen = lab.turns({UU: partial(with_cci, lab),
                      GEN: partial(lab.perf_once, ["put", "stream"], SIZES, GENERIC, 200)})
    cci, generic = seen[UU], seen[GEN]
    latency, rate = ({way: [(size, cci[way, test, size]) for size in SIZES] for way in (UU, RO, ACCEL)}
                     for test in ("latency", "stream"))
    latency[GEN] = [(size, generic["put", size]) for size in SIZES]
    rate[GEN] = [(size, 1000 / generic["stream", size]) for size in SIZES]
    return latency, rate


def curves(ways):
    return [Curve(way, points, way == UU) for way, points in ways.items()]


def ratio(ways, way, other, size):
    return at(ways[way], size) / at(ways[other], size)


def ahead_of_generic(question, ns, sizes):
    """Return the verdict that UU and RO take at most half of generic Portals' time at these sizes."""
    values = {(way, size): value for way in (UU, RO)
              for size, value in ratios(ns[GEN], ns[way], sizes).items()}
    return least(question, values, lambda x: x >= 2, lambda key, value: (
        f"generic Portals takes {value:.1f} times as long or more; least beside {key[0]} at "
        f"{size_text(key[1])}"))


def latency_figure(ns):
    grown = at(ns[UU], 512) / at(ns[UU], 0)
    first, last = (ratio(ns, RO, UU, size) for size in (SIZES[0], SIZES[-1]))
    return Figure(
        "paper4-fig2", "Latency of CCI and Portals", PAPER,
        ["On SeaStar messages of 0 bytes take 2.83 (UU) and 2.99 microseconds (RO), 30 to 50 % of the "
         "time of generic Portals; UU stays below 3 up to 512 bytes; at 4 KB they take 4.99 and 5.26. "
         "By another sentence of the paper, the ACK of RO adds about 800 ns until the bytes hide it.",
         "Generic Portals jumps at 32 bytes, where a message no longer fits its header."],
        "bytes", "microseconds", curves({way: microseconds(points) for way, points in ns.items()}),
        [ahead_of_generic("UU and RO take at most half of the time of generic Portals at 0 bytes", ns, [0]),
         ahead_of_generic("UU and RO take at most half of that time at each size, too, which the paper does "
                          "not claim", ns, SIZES),
         has_step("Generic Portals jumps where a message no longer fits its header, behind "
                  f"{INLINE} bytes here", ns[GEN], INLINE),
         under("The latency of UU is flat up to 512 bytes, within 15 %", grown, FLAT,
               f"{grown:.2f} times that of 0 bytes"),
         over("RO takes longer than UU, because of its acknowledgements, at 0 bytes", first, 1,
              f"{first:.2f} times the time"),
         under("RO comes nearer to UU at 4 KiB, where the bytes hide acknowledgements", last / first, 1,
               f"{last:.2f} times the time")],
        notes=[f"Here the ACK of RO adds {at(ns[RO], 0) - at(ns[UU], 0):.0f} ns at 0 bytes."])


def runs_out(points):
    """Return the verdict that twice the size brings little more bandwidth in the end."""
    def grows(size):
        return by_rounds(lambda curve: at(curve, 2 * size) / at(curve, size), points)
    early, late = grows(8), grows(2048)
    return at_most("UU runs out of bandwidth behind 2 KiB: from 2 to 4 KiB it grows to 1.5 times at most",
                   late, WEAK, f"{late:.2f} times; {early:.2f} times from 8 to 16 bytes")


def bandwidth_figure(rate):
    streams = {way: [(size, million * size) for size, million in points if size]
               for way, points in rate.items()}
    return Figure(
        "paper4-fig3", "Streaming bandwidth of CCI and Portals", PAPER,
        ["On SeaStar UU begins to run out of bandwidth at 2 KB, and ends at 2 GB/s with the largest "
         "message; for small messages it has almost 7 times the bandwidth of generic Portals."],
        "bytes", "MB/s", curves(streams),
        [least("UU has at least 6 times the bandwidth of generic Portals below 2 KiB",
               ratios(streams[UU], streams[GEN], [size for size in SIZES if 0 < size < 2048]), lambda x: x >= 6,
               lambda size, value: f"{value:.1f} times or more; least at {size_text(size)}"), runs_out(streams[UU])])


def rate_verdicts(rate):
    injected = ratio(rate, UU, GEN, SMALL)
    kilo, most = (at(rate[UU], size) / at(rate[UU], SMALL) for size in (1024, 4096))
    small, last = (ratio(rate, RO, UU, size) for size in (SMALL, SIZES[-1]))
    yield reaches("UU sends at least 6 times as many messages of 8 bytes as generic Portals", injected, 6,
                  f"{injected:.0f} times as many")
    yield over("The rate of UU is flat up to 1 KiB, within 15 %", kilo * FLAT, 1,
               f"{kilo:.2f} of that of 8 bytes")
    yield at_most("At 4 KiB the rate of UU is at most half of that of 8 bytes", most, 0.5,
                  f"{most:.2f} of that of 8 bytes")
    yield under("RO sends fewer messages of 8 bytes than UU", small, 1, f"{small:.2f} of the rate of UU")
    yield reaches("RO has the rate of UU at 4 KiB, within 10 %", last, EQUAL, f"{last:.2f} of the rate of UU")


def rate_figure(rate):
    return Figure(
        "paper4-fig4", "Streaming message rate of CCI and Portals", PAPER,
        ["On SeaStar UU sends over one million messages a second up to 1 KB, one each 960 ns, six times "
         "as many as generic Portals, and slightly under 500,000 near the largest size; RO sends over "
         "640,000 a second, and is lower than UU until the largest size."],
        "bytes", "million messages a second", curves(rate), list(rate_verdicts(rate)))


def figures(lab):
    ns, rate = measure(lab)
    yield latency_figure(ns)
    yield bandwidth_figure(rate)
    yield rate_figure(rate)
