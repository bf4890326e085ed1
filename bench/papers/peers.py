# SPDX-License-Identifier: BSD-3-Clause
"""peers - the ping-pongs of bench/compare over Portals and over Open MPI, in turns."""
import pathlib
import subprocess
import tempfile
from functools import partial

from lab import ACCELERATED, curves

MPI = pathlib.Path(__file__).resolve().parent / "mpi"
PORTALS, OPEN_MPI = "Portals", "Open MPI"


class Peers:
    """The two sides of a comparison; missing is a sentence if Open MPI is not there."""

    def __init__(self, lab):
        self.lab = lab
        self.scale = "quick" if lab.quick else "full"
        self.work = tempfile.TemporaryDirectory()
        there = subprocess.run([MPI, "there"], stdout=subprocess.PIPE, text=True, check=False)
        self.missing = ""
        if there.returncode != 0:
            self.missing = f"The comparison with Open MPI is missing: {there.stdout.strip()}."
        if not self.missing:
            lab.run("peer_mpi's build", [MPI, "build", self.work.name], {})

    def notes(self):
        """Return the notes of a figure that compares both sides."""
        return [self.missing] if self.missing else []

    def sides(self):
        """Return the command of each side."""
        portals = [*self.lab.two_nodes(), self.lab.bin / "peer_portals", "ours", self.scale]
        mpi = [MPI, "run", self.work.name, self.scale]
        return {PORTALS: portals} if self.missing else {PORTALS: portals, OPEN_MPI: mpi}

    def once(self, side, tests):
        """Run tests, {test: values of x}, once on a side.  Return {(test, x): ns}."""
        words = [f"{test}={','.join(map(str, xs))}" for test, xs in tests.items()]
        lines, _ = self.lab.run(side, self.sides()[side] + words, ACCELERATED)
        rows = map(str.split, lines.splitlines())
        return {(test, int(x)): float(value) for _, test, x, value in rows}

    def measure(self, tests, others=None):
        """Run tests on each side, and others, {name: function as of Lab.turns}, in turns.  Return
        {side or name: {test: [(x, ns)]}}."""
        ways = {side: partial(self.once, side, tests) for side in self.sides()}
        return {side: curves(values) for side, values in self.lab.turns({**ways, **(others or {})}).items()}
