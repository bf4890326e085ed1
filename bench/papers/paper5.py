# SPDX-License-Identifier: BSD-3-Clause
"""Paper 5, Figures 2 to 5: GASNet over Portals, by gasnetperf, and over MPI, by peer_mpi, in turns."""
from functools import partial

from figures import run
from figures.judge import at, at_most, between, has_step, least, over, ratios, size_text, step
from figures.lab import Curve, Figure, Table, curves as by_key, microseconds

PAPER = "5: Porting GASNet to Portals: PGAS language support for the Cray XT"
INLINE = 16
MIB = 1 << 20
EQUAL = 0.95
# What gasnetperf runs: mark of its curves, figures, environment.
OURS = {"": ("2,3,4", {"GASNET_PORTAL_SEGMENT": "heap"}), "mmap_": ("3", {"GASNET_PORTAL_SEGMENT": "mmap"}),
        **{f"{side}_": ("5", {"GASNET_PORTAL_LOCAL": side}) for side in ("firehose", "tmpmd", "bounce", "all")}}
MPIS = run.Mpi.TITLES
# The tests of peer_mpi: figure, curve, and the ns of a message, or of both of a round trip, from the value.
OF_MPI = {"ack": ("2", "pingack", lambda size, ns: ns), "amput": ("2", "amput", lambda size, ns: ns),
          "stream": ("3", "bw", lambda size, mb: size * 1e3 / mb), "latency": ("4", "pingpong", lambda size, ns: 2 * ns)}
# Curves, and their names here; the first is ours.
CURVES = {
    "2": {"put": "GASNet put", "bare_put_ack": "PtlPut with ACK", "am_short": "AM Short, there and back"},
    "3": {"put_nb_bulk": "GASNet put", "bare_puts": "PtlPut", "mmap_put_nb_bulk": "GASNet put, segment in mmap",
          "mmap_bare_puts": "PtlPut, segment in mmap"},
    "4": {"am_medium": "AM Medium", "two_bare_puts": "two PtlPuts"},
    "5": {"firehose_put_bulk": "Firehose", "tmpmd_put_bulk": "TMPMD", "bounce_put_bulk": "bounce buffers",
          "all_put_bulk": "one descriptor of all memory"},
}
for mpi, its in MPIS.items():
    CURVES["2"] |= {f"{mpi}_amput": f"put by messages, {its}", f"{mpi}_pingack": f"Ping-Ack, {its}"}
    CURVES["3"] |= {f"{mpi}_bw": f"osu_bw, {its}"}
    CURVES["4"] |= {f"{mpi}_pingpong": f"ping-pong, {its}"}


def ours(lab, mark, figures, env):
    """Run gasnetperf once.  Return {((figure, curve, p50_ns or p99_ns), bytes): ns}."""
    return {((row["figure"], mark + row["way"], kind), row["bytes"]): row[kind]
            for row in lab.job("gasnetperf", ["--figure", figures], env) for kind in ("p50_ns", "p99_ns")}


def theirs(lab, mpi, sizes):
    """Run peer_mpi once, with the sizes that gasnetperf has had.  A stream has no p99."""
    # a test has no CPU for itself
    command, env = mpi.peer(2, lab.quick, mpi.name, "quick" if lab.quick else "tails")
    tests = {test: sizes[figure] for test, (figure, *_) in OF_MPI.items()}
    found = {}
    for _, test, size, *values in run.peer_lines(command, tests, env=env, limit=3600, name="peer_mpi"):
        figure, way, ns = OF_MPI[test]
        for kind, value in zip(("p50_ns", "p99_ns"), values[:1] if test == "stream" else values):
            found[(figure, f"{mpi.name}_{way}", kind), size] = ns(size, value)
    return found


def measure(lab):
    """Return {(figure, curve, p50_ns or p99_ns): [(bytes, ns)]}, and notes about what is left out."""
    mpis, sizes = [lab.mpi(name) for name in MPIS], {}
    calls = {mark: partial(ours, lab, mark, *how) for mark, how in OURS.items()}

    def note_sizes():
        found = calls[""]()
        for (figure, *_), size in found:
            sizes.setdefault(figure, {})[size] = True
        return found
    seen = lab.turns({**calls, "": note_sizes, **{mpi: partial(theirs, lab, mpi, sizes)
                                                  for mpi, missing in mpis if not missing}})
    points = by_key({key: value for values in seen.values() for key, value in values.items()})
    return points, [missing for _, missing in mpis if missing]


def of_figure(points, figure):
    """Return {curve: [(bytes, ns)]}, the medians."""
    return {curve: values for (f, curve, kind), values in points.items() if (f, kind) == (figure, "p50_ns")}


def tails(points):
    """Return the table of p99 of single operations."""
    rows = [[names[curve], size_text(size), ns] for figure, names in CURVES.items() if figure in "24"
            for curve in names for size, ns in points.get((figure, curve, "p99_ns"), []) if size in (8, 16, 17, 1024)]
    ratio = at(points["2", "put", "p99_ns"], 8) / at(points["2", "put", "p50_ns"], 8)
    return Table("paper5-p99", "Tails of GASNet's operations", PAPER,
                 ["The paper has no figures of tails: these are p99 of the operations of Figures 2 and 4."],
                 ["operation", "size", "p99, ns"], rows,
                 [at_most("A bar of ours: p99 of a put of 8 bytes is at most twice its median", ratio, 2,
                          f"{ratio:.2f} times")])


def curves(figure, points, convert):
    names = CURVES[figure]
    return [Curve(name, convert(points[curve]), curve == next(iter(names)))
            for curve, name in names.items() if curve in points]


def rates(points):
    """Turn (bytes, ns) into (bytes, MB/s), of 2^20 bytes as in the paper."""
    return [(size, size * 1e9 / ns / MIB) for size, ns in points]


def compared(points, curve, other, sizes=None):
    """Return {size: times of curve / times of other}; {} if a curve is missing."""
    if curve not in points or other not in points:
        return {}
    return ratios(points[curve], points[other], sizes)


def beside(question, found, bar, other="MPI"):
    """Return the verdict that the ratio reaches a bar at each size; none if it was not measured."""
    if not found:
        return []
    return [least(question, found, lambda x: x >= bar, lambda size, ratio: (
        f"{other} takes {ratio:.2f} times as long or more; least at {size_text(size)}"))]


def inline(points):
    return [size for size, _ in points if size <= INLINE]


def latency(points, notes):
    return Figure(
        "paper5-fig2", "Latency of blocking puts of GASNet", PAPER,
        ["On a Cray XT4 a blocking put over Portals takes about half of the time of one over MPI up to "
         "16 bytes, which go in the packet of the header, and less than MPI Ping-Ack, the least that MPI "
         "could need.",
         "Here the put by MPI messages stands for mpi-conduit: it sends a header and the bytes, which "
         "the target copies, and answers. The paper's factor of two is that of mpi-conduit, which has more "
         "to do than these messages, so 1.5 times is asked for."],
        "bytes", "microseconds", curves("2", points, microseconds),
        [*beside("Up to 16 bytes a put by MPI messages takes about twice as long, 1.5 times or more",
                 compared(points, "openmpi_amput", "put", inline(points["put"])), 1.5),
         *beside("A put takes less time than MPI Ping-Ack at each size",
                 compared(points, "openmpi_pingack", "put"), 1),
         *beside("A bar of ours: a put of 8 bytes takes at most 1.25 times as long as a bare PtlPut to its ACK",
                 compared(points, "bare_put_ack", "put", [8]), 1 / 1.25, "The bare put"),
         *beside("A bar of ours: a put of 8 bytes takes at most 0.6 of the time of Ping-Ack over Open MPI",
                 compared(points, "openmpi_pingack", "put", [8]), 1 / 0.6, "Ping-Ack"),
         has_step("A put takes longer behind 16 bytes", points["put"], INLINE)],
        notes=notes)


def large(points, notes):
    bars = [(where, *bar) for where, mark in (("the heap", ""), ("mmap", "mmap_")) for bar in (
        ("a stream of bare puts", f"{mark}bare_puts", f"{mark}put_nb_bulk", EQUAL),
        ("osu_bw over Open MPI", "openmpi_bw", f"{mark}put_nb_bulk", 2))]
    return Figure(
        "paper5-fig3", "Bandwidth of GASNet's puts", PAPER,
        ["On a Cray XT4 non-blocking puts over Portals have about twice the bandwidth of those over MPI "
         "at each size, and meet or exceed MPI's own osu_bw.",
         "Here osu_bw's pattern stands for MPI, since the GASNet here has no conduit over MPI. The claim of "
         "twice the bandwidth is not asked for that reason."],
        "bytes", "MB/s (2^20)", curves("3", points, rates),
        [*beside("Puts meet or exceed the bandwidth of MPI at each size, within 5 %",
                 compared(points, "openmpi_bw", "put_nb_bulk"), EQUAL),
         *(v for where, other, messages, mine, bar in bars for v in beside(
             f"A bar of ours: puts of 64 KiB to 1 MiB from a segment in {where} have {bar} times the bandwidth of {other}",
             compared(points, messages, mine, between(65536, MIB, points[mine])), bar, other[:1].upper() + other[1:]))],
        notes=notes)


def active(points, put, notes):
    jumps = step(points["am_medium"], INLINE), step(put, INLINE)
    return Figure(
        "paper5-fig4", "Round trip of GASNet's active messages", PAPER,
        ["On a Cray XT4 the round trip of an AM Medium over Portals takes about half of the time of one "
         "over MPI up to 16 bytes; the jump behind 16 bytes is larger than that of a put, since bytes go "
         "both ways.",
         "Here a ping-pong stands for MPI: it is the least that active messages over MPI could need. Half "
         "of its time is not asked, since the paper's half is that of active messages over MPI."],
        "bytes", "microseconds", curves("4", points, microseconds),
        [*beside("The round trip takes less time than MPI's ping-pong up to 16 bytes",
                 compared(points, "openmpi_pingpong", "am_medium", inline(points["am_medium"])), 1),
         *beside("A bar of ours: a round trip of 16 bytes takes at most 1.5 times as long as two bare puts",
                 compared(points, "two_bare_puts", "am_medium", [16]), 1 / 1.5, "A pair of puts"),
         over("Behind 16 bytes the jump is larger than that of a put", jumps[0] / jumps[1], 1,
              f"{jumps[0]:.2f} and {jumps[1]:.2f} times the time")], notes=notes)


def sides(points):
    gains = {size: 100 * (ratio - 1)
             for size, ratio in ratios(points["tmpmd_put_bulk"], points["firehose_put_bulk"]).items()}
    last = max(gains)
    return Figure(
        "paper5-fig5", "Blocking puts of GASNet from outside of the segment", PAPER,
        ["On a Cray XT4 Firehose, which keeps descriptors, has at each size at least the bandwidth of "
         "TMPMD, which makes one for each put: 8.5 % more at 8 KB, the most, and 3.5 % more in the end."],
        "bytes", "MB/s (2^20)", curves("5", points, rates),
        [*beside("Firehose has at least the bandwidth of TMPMD at each size, within 5 %",
                 compared(points, "tmpmd_put_bulk", "firehose_put_bulk"), EQUAL, "TMPMD"),
         over("The gain of Firehose is larger at 8 KiB than at the largest size", gains[8192] - gains[last],
              0, f"{gains[8192]:.1f} % at 8 KiB, {gains[last]:.1f} % at {size_text(last)}")],
        notes=[f"To bind a descriptor of 8 KiB and to unlink it takes {at(points['all_bind_unlink'], 8192):.0f} ns."])


def figures(lab):
    points, notes = measure(lab)
    put = of_figure(points, "2")["put"]
    yield latency(of_figure(points, "2"), notes)
    yield large(of_figure(points, "3"), notes)
    yield active(of_figure(points, "4"), put, notes)
    yield sides(of_figure(points, "5"))
    yield tails(points)
