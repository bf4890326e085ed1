# SPDX-License-Identifier: BSD-3-Clause
"""gasnet - the figures of the paper on GASNet over Portals: gasnetperf and, over MPI, peer_mpi, in turns."""
import os
import pathlib

from figures import run
from figures.run import Failed, Mpi, say
from figures.stats import collect, median, paired

MPIS = ["openmpi", "mpich"]
SMALL = [1, 2, 4, 8, 16, 17, 32, 64, 128, 256, 512, 1024]
LARGE = [1024 << i for i in range(12)]
# Its own sizes, the least and the greatest size that it can have, title, unit, is y logarithmic?
FIGURES = {2: (SMALL, 1, 16 << 20, "Figure 2: small transfer latency", "us", False),
           3: (LARGE, 1, 16 << 20, "Figure 3: large transfer bandwidth", "MB/s (2^20)", True),
           4: ([0, *SMALL, 1984], 0, 1984, "Figure 4: AM Medium round trip", "us", False),
           5: (LARGE, 1, 16 << 20, "Figure 5: local sides", "MB/s (2^20)", True)}
RATES = 3, 5
OF_MPI = {"ack": 2, "amput": 2, "bw": 3, "pingpong": 4}  # the tests of peer_mpi, and their figures
COLUMNS = ["figure", "way", "bytes", "p50_ns", "p99_ns", "ratio"]  # of gasnetperf
# What gasnetperf runs in a round: mark of its curves, figures, variable.
OURS = [("", [2, 3, 4], {"GASNET_PORTAL_SEGMENT": "heap"}), ("mmap_", [3], {"GASNET_PORTAL_SEGMENT": "mmap"}),
        *((f"{side}_", [5], {"GASNET_PORTAL_LOCAL": side}) for side in ("firehose", "tmpmd", "bounce", "all"))]


def sizes_of(figures=FIGURES, sizes=None):
    """Return {figure: sizes that it can have} of these figures, of sizes, or of their own ones."""
    found = {}
    for figure in figures:
        own, least, most, *_ = FIGURES[figure]
        found[figure] = [size for size in sizes or own if least <= size <= most]
    return found


class Samples:
    """Values of the rounds: {(figure, curve, bytes): {round: value}}."""

    def __init__(self):
        self.p50, self.p99, self.own, self.lines = {}, {}, {}, []

    def keep(self, number, mark, rows):
        """Keep rows of figure, curve, bytes and values, with the mark before the names of the curves."""
        for figure, curve, size, *values in rows:
            self.lines.append("\t".join(map(str, [number, figure, mark + curve, size, *values])) + "\n")
            for table, value in zip((self.p50, self.p99, self.own), values):
                collect(table, (int(figure), mark + curve, int(size)), number, float(value))

    def curves(self, figure):
        return list(dict.fromkeys(curve for f, curve, _ in self.p50 if f == figure))

    def sizes(self, figure, first=0, last=16 << 20):
        return list(dict.fromkeys(size for f, _, size in self.p50 if f == figure and first <= size <= last))

    def ratio(self, figure, a, b, size):
        """Return the median of the rounds' ratios of times, or None.  Bare Portals is in the same job as its
        other side, so gasnetperf has formed the ratio, that of its turns."""
        mine, other = (self.p50.get((figure, curve, size), {}) for curve in (a, b))
        if "bare" in b:
            own = self.own.get((figure, b, size), {})
            return median(own[number] for number in mine if number in own)
        return median(paired(mine, other, lambda x, y: x / y))

    def middle(self, figure, curve, size, table=None):
        """Return the median of a curve, in its unit; M is 2^20."""
        values = (table or self.p50).get((figure, curve, size), {}).values()
        return in_unit(figure, curve, size, median(values) or 0)


def unit_of(figure, curve):
    return "ns" if "bind" in curve else "MB/s" if figure in RATES else "us"


def in_unit(figure, curve, size, ns):
    unit = unit_of(figure, curve)
    return ns if unit == "ns" else size / ns * 1e9 / 1048576 if unit == "MB/s" and ns else ns / 1000


class Rounds:
    """Runs the rounds; sizes are for all figures, sizes_of those of each figure."""

    def __init__(self, folder, work, quick, only, sizes_of, sizes=None):
        self.folder, self.work, self.quick = folder, pathlib.Path(work), quick
        self.sizes_of, self.sizes, self.left_out = sizes_of, sizes, []
        self.samples, self.failed, self.mpis = Samples(), False, []
        self.limit = 60 if quick else 600
        self.env = {"PTL3_HUGEPAGES": os.environ.get("PTL3_HUGEPAGES", "off")}
        for mpi in (Mpi(name) for name in MPIS if name in only):
            if mpi.is_there():
                mpi.program = mpi.build_peer(self.work)
                self.mpis.append(mpi)
            else:
                self.left_out.append(mpi.missing())
                say(f"left out: {mpi.missing()}")

    def ours(self, number):
        sizes = ["--sizes", ",".join(map(str, self.sizes))] if self.sizes else []
        for mark, figures, env in OURS:
            chosen = ",".join(str(figure) for figure in figures if figure in self.sizes_of)
            if chosen:
                words = [*["--quick"] * self.quick, "--figure", chosen, *sizes]
                found = run.job(self.folder, 2, "gasnetperf", words, {**self.env, **env}, limit=self.limit)["results"]
                self.samples.keep(number, mark, [[row[key] for key in COLUMNS] for row in found])

    def theirs(self, number):
        for mpi in self.mpis:
            tests = [f"{test}={','.join(map(str, self.sizes_of[figure]))}"
                     for test, figure in OF_MPI.items() if figure in self.sizes_of]
            start, env = mpi.start(2, self.quick)  # a test has no CPU for itself
            if tests:
                said = run.output([*start, mpi.program, "figures", "quick" if self.quick else "full", *tests],
                                  {**self.env, **env}, limit=self.limit)[0]
                self.samples.keep(number, mpi.name + "_", [line.split("\t") for line in said.splitlines()])

    def measure(self, rounds):
        """Every second round the MPIs go first."""
        for number in range(1, rounds + 1):
            for side in (self.ours, self.theirs) if number % 2 else (self.theirs, self.ours):
                try:
                    side(number)
                except Failed as why:
                    say(f"{why}; expected that it runs")
                    self.failed = True
            if rounds > 1:
                say(f"round {number} of {rounds}")
