# SPDX-License-Identifier: BSD-3-Clause
"""Paper 5, Figures 2 to 5: GASNet over Portals and over MPI, as gasnetfigures measures them."""
import collections
import tempfile

from figures import gasnet, run
from figures.judge import has_step, least, over, ratios, size_text, step
from figures.lab import Curve, Figure, microseconds
from figures.stats import Measured

PAPER = "5: Porting GASNet to Portals: PGAS language support for the Cray XT"
INLINE = 16
MIB = 1 << 20
EQUAL = 0.95
# Curves of gasnetfigures, and their names here; the first is ours.
CURVES = {
    "2": {"put": "GASNet put", "bare_put_ack": "PtlPut with ACK", "openmpi_amput": "put by MPI messages",
          "openmpi_pingack": "MPI Ping-Ack"},
    "3": {"put_nb_bulk": "GASNet put", "bare_puts": "PtlPut", "openmpi_bw": "MPI, as osu_bw"},
    "4": {"am_medium": "AM Medium", "two_bare_puts": "two PtlPuts", "openmpi_pingpong": "MPI ping-pong"},
    "5": {"firehose_put_bulk": "Firehose", "tmpmd_put_bulk": "TMPMD", "bounce_put_bulk": "bounce buffers"},
}


def measure(lab):
    """Return {figure: {curve: [(bytes, ns)]}}, and notes about what is left out."""
    with tempfile.TemporaryDirectory() as work:
        rounds = gasnet.Rounds(lab.bin, work, lab.quick, ["openmpi"], gasnet.sizes_of())
        rounds.measure(lab.rounds)
    if rounds.failed:
        run.die(1, "gasnetperf, or the MPI beside it, failed; expected that they run")
    points = collections.defaultdict(lambda: collections.defaultdict(list))
    for (figure, curve, size), values in sorted(rounds.samples.p50.items()):
        points[str(figure)][curve].append((size, Measured(values.values())))
    return points, [f"The comparison with Open MPI is missing: {line.partition(': ')[2]}." for line in rounds.left_out]


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
         has_step("A put takes longer behind 16 bytes", points["put"], INLINE)],
        notes=notes)


def large(points, notes):
    return Figure(
        "paper5-fig3", "Bandwidth of GASNet's puts", PAPER,
        ["On a Cray XT4 non-blocking puts over Portals have about twice the bandwidth of those over MPI "
         "at each size, and meet or exceed MPI's own osu_bw.",
         "Here osu_bw's pattern stands for MPI, since the GASNet here has no conduit over MPI. The claim of "
         "twice the bandwidth is not asked for that reason."],
        "bytes", "MB/s (2^20)", curves("3", points, rates),
        [*beside("Puts meet or exceed the bandwidth of MPI at each size, within 5 %",
                 compared(points, "openmpi_bw", "put_nb_bulk"), EQUAL)], notes=notes)


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
              0, f"{gains[8192]:.1f} % at 8 KiB, {gains[last]:.1f} % at {size_text(last)}")])


def figures(lab):
    points, notes = measure(lab)
    yield latency(points["2"], notes)
    yield large(points["3"], notes)
    yield active(points["4"], points["2"]["put"], notes)
    yield sides(points["5"])
